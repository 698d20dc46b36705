//! A plain tar stream: as much of the format as `tar` would give to a compressor.

use std::io::{self, Write};

use super::corpus::CorpusFile;

const BLOCK: usize = 512;
const NAME_BYTES: usize = 100;

/// Writes one file.
pub(crate) fn append(out: &mut impl Write, file: &CorpusFile, body: &[u8]) -> io::Result<()> {
    let name = file.name.as_bytes();
    if name.len() > NAME_BYTES {
        // GNU's way for long names: an entry before it contains the name.
        out.write_all(&head(b"././@LongLink", name.len() as u64 + 1, b'L'))?;
        out.write_all(name)?;
        out.write_all(&[0])?;
        pad(out, name.len() + 1)?;
    }
    out.write_all(&head(&name[..name.len().min(NAME_BYTES)], body.len() as u64, b'0'))?;
    out.write_all(body)?;
    pad(out, body.len())
}

/// Ends the stream.
pub(crate) fn end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[0; 2 * BLOCK])
}

fn pad(out: &mut impl Write, length: usize) -> io::Result<()> {
    out.write_all(&[0; BLOCK][..(BLOCK - length % BLOCK) % BLOCK])
}

fn head(name: &[u8], length: u64, kind: u8) -> [u8; BLOCK] {
    let mut head = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{length:011o}\0").as_bytes());
    put(136, b"14000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar  \0");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    #[test]
    fn the_program_tar_lists_what_was_written() {
        let long = format!("{}/page.html", "d".repeat(120));
        let mut bytes = Vec::new();
        for name in ["a.html", &long] {
            let file =
                CorpusFile { path: PathBuf::new(), name: name.to_owned(), bytes: 3, is_html: true };
            append(&mut bytes, &file, b"abc").unwrap();
        }
        end(&mut bytes).unwrap();
        let program =
            Command::new("tar").arg("-t").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut program) = program else {
            eprintln!("SKIPPED: there is no program `tar` to compare with");
            return;
        };
        program.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listed = program.wait_with_output().unwrap();
        assert!(listed.status.success());
        assert_eq!(String::from_utf8(listed.stdout).unwrap(), format!("a.html\n{long}\n"));
    }
}
