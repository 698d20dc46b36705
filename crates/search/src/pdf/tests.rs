use std::{fmt::Write as _, io::Write as _};

use proptest::prelude::*;

use super::*;

/// A file of objects, numbered from 1: the first is the catalog.
fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"%PDF-1.5\n".to_vec();
    for (number, object) in (1..).zip(objects) {
        file.extend(format!("{number} 0 obj\n").as_bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    file.extend(b"trailer\n<< /Root 1 0 R /Info 2 0 R >>\n%%EOF");
    file
}

fn stream(dict: &str, content: &[u8]) -> Vec<u8> {
    let mut stream = format!("<< {dict} /Length {} >>\nstream\n", content.len()).into_bytes();
    stream.extend(content);
    stream.extend(b"\nendstream");
    stream
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

/// One page with this content and this font.
fn page(font: &str, content: Vec<u8>, more: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 3 0 R /Lang (de-AT) >>".to_vec(),
        b"<< /Title <FEFF00C4006C0074> >>".to_vec(),
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 /Resources << /Font << /F 5 0 R >> /XObject << /X 7 0 R >> >> >>".to_vec(),
        b"<< /Type /Page /Parent 3 0 R /Contents 6 0 R >>".to_vec(),
        font.as_bytes().to_vec(),
        content,
    ];
    objects.extend_from_slice(more);
    file(&objects)
}

const PLAIN: &str = "<< /Type /Font /Subtype /Type1 /BaseFont /Times /Encoding /WinAnsiEncoding >>";

fn blocks(file: &[u8]) -> Vec<String> {
    let text = pdf_text(file, 1 << 20);
    text.blocks.into_iter().filter(|b| b.kind != TextKind::Title).map(|b| b.text).collect()
}

#[test]
fn words_lines_and_paragraphs_are_read() {
    let content = b"BT /F 10 Tf 50 700 Td (Every tree has) Tj 0 -12 Td [(an)-300(nual ) 40 (r) 20 (ings, divi-)] TJ \
        T* 0 -12 Td (ded here.) Tj 0 -40 Td (A new \\(second\\) paragraph \\344\\050) Tj ET";
    let file = page(PLAIN, stream("", content), &[]);
    assert_eq!(
        blocks(&file),
        ["Every tree has an nual rings, divided here.", "A new (second) paragraph ä("]
    );
    let text = pdf_text(&file, 1 << 20);
    assert_eq!((text.title(), text.lang.as_deref()), (Some("Ält"), Some("de-AT")));
}

#[test]
fn every_packing_is_undone() {
    let content = b"BT /F 10 Tf (packed text) Tj ET";
    let hex: String = content.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let mut runs = vec![content.len() as u8 - 1];
    runs.extend(content);
    runs.push(128);
    // From the specification: 45 45 45 45 45 65 45 45 45 66.
    let lzw =
        filters::unpack(b"LZWDecode", &[0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 1], 99);
    assert_eq!(lzw.unwrap(), [45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
    let ascii85 = filters::unpack(b"ASCII85Decode", b"87cUR D]i,\"Ebo80~>", 99).unwrap();
    assert_eq!(ascii85, b"Hello World!");
    for (filter, packed) in [
        ("/FlateDecode", deflated(content)),
        ("[/ASCIIHexDecode]", hex.clone().into_bytes()),
        ("[/ASCIIHexDecode /RunLengthDecode]", {
            runs.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes()
        }),
    ] {
        let file = page(PLAIN, stream(&format!("/Filter {filter}"), &packed), &[]);
        assert_eq!(blocks(&file), ["packed text"], "{filter}");
    }
}

#[test]
fn fonts_say_what_their_codes_mean() {
    let map = b"1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfchar <0001> <5E74> endbfchar \
        1 beginbfrange <0002> <0003> <8F2A> <0010> <0011> [<00660069> <0041>] endbfrange";
    let wide = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 7 0 R >>";
    let file = page(wide, stream("", b"BT /F 9 Tf <000100020010> Tj ET"), &[stream("", map)]);
    assert_eq!(blocks(&file), ["年輪fi"]);
    let japanese = "<< /Type /Font /Subtype /Type0 /Encoding /90ms-RKSJ-H >>";
    let file = page(japanese, stream("", b"BT /F 9 Tf <944E97D6> Tj 0 -10 Td <82CC> Tj ET"), &[]);
    assert_eq!(blocks(&file), ["年輪の"]);
    let named = "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [1 /eacute /ffi /uni5E74 /A.sc /zero /nonsense] >> >>";
    let file = page(named, stream("", b"BT /F 9 Tf <010203040506> Tj ET"), &[]);
    assert_eq!(blocks(&file), ["éffi年A0"]);
}

#[test]
fn objects_in_streams_and_drawings_are_found() {
    let inner = b"4 0 5 51 << /Type /Page /Parent 3 0 R /Contents 6 0 R >>    << /Subtype /Type1 /Encoding /WinAnsiEncoding >>";
    let first = inner.iter().position(|byte| *byte == b'<').unwrap();
    let held = stream(
        &format!("/Type /ObjStm /N 2 /First {first} /Filter /FlateDecode"),
        &deflated(inner),
    );
    let objects = [
        b"<< /Type /Catalog /Pages 3 0 R >>".to_vec(),
        b"<< >>".to_vec(),
        b"<< /Type /Pages /Kids [4 0 R] /Resources << /Font << /F 5 0 R >> /XObject << /X 8 0 R >> >> >>".to_vec(),
        b"null".to_vec(),
        b"null".to_vec(),
        stream("", b"BT /F 9 Tf (on the page) Tj ET q 1 0 0 1 0 -90 cm /X Do Q"),
        held,
        stream("/Subtype /Form", b"BT /F 9 Tf (in a drawing) Tj ET /X Do"),
    ];
    let found = blocks(&file(&objects));
    assert_eq!(found[0], "on the page");
    // The drawing is in itself: that ends after some steps.
    assert_eq!(found[1].matches("in a drawing").count(), 6, "{found:?}");
}

#[test]
fn what_is_encrypted_has_no_text() {
    let mut file = page(PLAIN, stream("", b"BT /F 9 Tf (secret) Tj ET"), &[]);
    assert_eq!(blocks(&file), ["secret"]);
    file.extend(b"trailer << /Encrypt 9 0 R >>");
    assert_eq!(blocks(&file), [""; 0]);
}

/// Files that claim to be much more than they are: each ends soon, and with little text.
#[test]
fn bombs_are_bounded() {
    let zeros = deflated(&vec![b' '; 100 << 20]);
    let twice = deflated(&deflated(&vec![0; 200 << 20]));
    let rings = "/X Do ".repeat(5_000);
    let shows = format!("BT /F 9 Tf {} ET", "(word word word) Tj ".repeat(200_000));
    let packed = deflated(shows.as_bytes());
    let deep = format!("BT /F 9 Tf {} (text) Tj ET", "[".repeat(1_000_000));
    let flate = "/Filter /FlateDecode";
    let files = [
        page(PLAIN, stream(flate, &zeros), &[]),
        page(PLAIN, stream("/Filter [/FlateDecode /FlateDecode]", &twice), &[]),
        page(PLAIN, stream("", rings.as_bytes()), &[stream("/Subtype /Form", rings.as_bytes())]),
        page(
            PLAIN,
            stream("", rings.as_bytes()),
            &[stream(&format!("/Subtype /Form {flate}"), &packed)],
        ),
        page(PLAIN, stream("", deep.as_bytes()), &[]),
        page(
            PLAIN,
            stream(flate, &packed),
            &vec![stream(&format!("/Type /ObjStm /First 10 {flate}"), &zeros); 40],
        ),
        // Each page leads to all others, and streams never end.
        page(PLAIN, b"<< /Kids [3 0 R 6 0 R 6 0 R] >>".to_vec(), &[]),
        file(&vec![
            b"<< /Pages 3 0 R /Kids [1 0 R 2 0 R 3 0 R] /Contents 1 0 R >> stream ".to_vec();
            30_000
        ]),
        [b"%PDF-1.4 1 0 obj (".to_vec(), b"/Root(/Info(/Encrypt(".repeat(400_000)].concat(),
        [b"%PDF-1.4 ".to_vec(), b"1 0 obj ".repeat(1_000_000)].concat(),
    ];
    for file in files {
        let text = pdf_text(&file, 1 << 20);
        assert!(text.blocks.iter().map(|block| block.text.len()).sum::<usize>() <= 1 << 20);
    }
}

proptest! {
    #[test]
    fn any_bytes_end(bytes: Vec<u8>) {
        let mut file = b"%PDF-1.4\n1 0 obj".to_vec();
        file.extend(bytes);
        let _ = pdf_text(&file, 1 << 16);
    }

    #[test]
    fn a_damaged_file_ends(at in 0_usize..900, byte: u8, cut in 0_usize..900) {
        let content = deflated(b"BT /F 10 Tf [(some) -300 (text)] TJ (x) ' ET");
        let mut file = page(PLAIN, stream("/Filter /FlateDecode", &content), &[]);
        let length = file.len();
        file[at % length] = byte;
        let _ = pdf_text(&file, 1 << 16);
        file.truncate(cut % length);
        let _ = pdf_text(&file, 1 << 16);
    }
}
