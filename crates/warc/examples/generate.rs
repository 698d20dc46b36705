//! Writes a WARC file of a made-up site, for measuring: `generate FILE MEGABYTES`. The same size
//! gives the same bytes. Five pages of about 23 KB, sharing a template, for each picture of 60 KB.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a tool for measuring may panic")]

use std::fs::File;
use std::io::BufWriter;

use nenrin_urls::CanonicalUrl;
use nenrin_warc::{
    BodyDigests, Capture, Compressed, DigestAlgorithm, RecordWriter, write_warcinfo,
};

/// xorshift: quick, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn word(&mut self) -> String {
        // Few words are frequent and many are rare.
        let bits = self.next() % 12;
        let number = self.next() % (2 << bits);
        let mut letters = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..3 + letters.next() % 8)
            .map(|_| char::from(b'a' + (letters.next() % 26) as u8))
            .collect()
    }
}

fn page(random: &mut Random, number: u64) -> Vec<u8> {
    let mut page = format!(
        "<!DOCTYPE html><html><head><title>Page {number}</title><link rel=stylesheet href=/s.css>\
         </head><body><nav>"
    );
    for link in 0..40 {
        page.push_str(&format!(
            "<a class=\"nav item\" href=\"/section/{link}\">Section {link}</a>"
        ));
    }
    page.push_str("</nav><main>");
    while page.len() < 22_500 {
        page.push_str("<p>");
        for _ in 0..60 {
            page.push_str(&random.word());
            page.push(' ');
        }
        page.push_str(&format!("<a href=\"/page/{}\">more</a></p>\n", random.next() % 100_000));
    }
    page.push_str("</main><footer>All rights reserved.</footer></body></html>\n");
    page.into_bytes()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (path, megabytes) = (args.next().unwrap(), args.next().unwrap());
    let bytes = megabytes.parse::<u64>().unwrap() * 1_000_000;
    let out = BufWriter::new(File::create(&path).unwrap());
    let mut writer = RecordWriter::new(out, Compressed::Gzip).unwrap();
    let algorithm = DigestAlgorithm::Sha256;
    let id = write_warcinfo(&mut writer, "made.warc.gz", 0, &[("software", "generate")], algorithm)
        .unwrap();
    let mut random = Random(42);
    let mut number = 0;
    while writer.position() < bytes {
        let is_picture = number % 6 == 5;
        let (path, mime, body) = match is_picture {
            true => {
                let noise = (0..7_500).flat_map(|_| random.next().to_le_bytes()).collect();
                (format!("/picture/{number}.jpg"), "image/jpeg", noise)
            }
            false => {
                (format!("/page/{number}"), "text/html; charset=utf-8", page(&mut random, number))
            }
        };
        let url = CanonicalUrl::parse(&format!("http://made.example.org{path}")).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let request = format!("GET {path} HTTP/1.1\r\nHost: made.example.org\r\n\r\n");
        let digests = BodyDigests::of(algorithm, head.as_bytes(), &body);
        let capture = Capture {
            url: &url,
            at_s: 1_700_000_000 + number as i64,
            serial: number,
            server_address: None,
            protocol: "http/1.1",
            tls: None,
            request_head: request.as_bytes(),
            body: &digests,
            truncated: None,
            resource: None,
        };
        let fields = capture.prepare(algorithm);
        fields.write(&mut writer, &id, request.as_bytes(), &mut |take| take(&body)).unwrap();
        number += 1;
    }
    eprintln!("{number} captures, {} bytes", writer.position());
    writer.finish().unwrap();
}
