//! The size of the same visits in other ways of storing them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use nenrin_store::{Class, Digest, PaperBytes, PaperCount};
use nenrin_urls::CanonicalUrl;
use nenrin_warc::{
    BodyDigests, Capture, Compressed, DigestAlgorithm, RecordWriter, Revisit, RevisitProfile,
    write_warcinfo,
};
use serde::{Deserialize, Serialize};

use super::clock::{Took, timed};
use super::corpus::{CorpusSite, CorpusVisit, Split};
use super::{program, tar, visit_at_s};
use crate::LabError;

/// The size of a site in one way of storing it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OtherWay {
    /// Its name.
    pub name: String,
    /// All bytes.
    pub bytes: u64,
    /// By kind, if known.
    pub split: Option<Split>,
    /// Bytes that each visit adds, where visits are stored one by one.
    pub by_visit: Vec<u64>,
    /// Whether one page can be read without reading everything before it.
    pub is_random_access: bool,
    /// Its time; for other programs only the wall-clock time is known.
    pub took: Took,
}

/// Everything measured for one site except our own archive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OtherWays {
    /// Way by way.
    pub ways: Vec<OtherWay>,
    /// Paper 001's steps on HTML, by visit.
    pub paper_html: Vec<StepBytes>,
    /// And on everything else.
    pub paper_other: Vec<StepBytes>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}

/// What remains of one visit after each of paper 001's four steps, blocks uncompressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepBytes {
    /// Bytes of a full copy.
    pub raw: u64,
    /// Without files that did not change since the visit before.
    pub file_in_time: u64,
    /// Without files that are twice in this visit.
    pub file_in_space: u64,
    /// Without blocks of HTML that were in the visit before.
    pub block_in_time: u64,
    /// Without blocks of HTML that are twice in this visit.
    pub block_in_space: u64,
}

impl StepBytes {
    /// The four steps and raw, in their order.
    #[must_use]
    pub fn in_order(self) -> [u64; 5] {
        [self.raw, self.file_in_time, self.file_in_space, self.block_in_time, self.block_in_space]
    }
}

impl From<PaperBytes> for StepBytes {
    fn from(bytes: PaperBytes) -> Self {
        Self {
            raw: bytes.raw,
            file_in_time: bytes.after_file_in_time,
            file_in_space: bytes.after_file_in_space,
            block_in_time: bytes.after_block_in_time,
            block_in_space: bytes.after_block_in_space,
        }
    }
}

impl std::iter::Sum for StepBytes {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |a, b| Self {
            raw: a.raw + b.raw,
            file_in_time: a.file_in_time + b.file_in_time,
            file_in_space: a.file_in_space + b.file_in_space,
            block_in_time: a.block_in_time + b.block_in_time,
            block_in_space: a.block_in_space + b.block_in_space,
        })
    }
}

/// The default level of `zip`.
const ZIP_LEVEL: u32 = 6;
const GZIP_LEVEL: u32 = 9;
const ZSTD_LEVEL: i32 = 19;

/// Measures every way on one site.
pub(crate) fn measure(
    site: &CorpusSite,
    work: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<OtherWays, LabError> {
    let mut all = OtherWays::default();
    steps(site, &mut all)?;
    let mut say = |name: &str| tell(&format!("{}: {name}", site.name));
    say("zip");
    all.by_visit("zip", true, site, &mut zip_visit)?;
    say("tar.gz");
    all.by_visit("tar.gz -9", false, site, &mut |visit| {
        each_kind(
            visit,
            |out| Ok(GzEncoder::new(out, Compression::new(GZIP_LEVEL))),
            |gz| gz.finish(),
        )
    })?;
    say("zstd per file");
    let mut known = BTreeMap::new();
    all.by_visit("zstd -19 per file", true, site, &mut |visit| zstd_files(visit, &mut known))?;
    for revisits in [false, true] {
        let name = if revisits { "WARC.gz with revisits" } else { "WARC.gz" };
        say(name);
        let mut payloads = BTreeMap::new();
        let mut number = 0;
        all.by_visit(name, true, site, &mut |visit| {
            number += 1;
            warc(site, visit, visit_at_s(number), revisits.then_some(&mut payloads))
        })?;
    }
    say("zstd solid");
    let (split, took) = timed(|| each_kind_of_site(site, zstd_solid));
    all.solid("zstd -19 solid", split?, took);
    for (name, program, argument) in
        [("tar.bz2 -9 solid", "bzip2", "-9"), ("tar.xz -9 solid", "xz", "-9")]
    {
        say(name);
        if !program::is_there(program) {
            all.left_out.push(format!("{name}: there is no program `{program}` here"));
            continue;
        }
        let piped = |site: &CorpusSite, is_html: bool| {
            program::piped_bytes(program, &[argument, "-c"], |out| site_tar(site, is_html, out))
        };
        let (split, took) = timed(|| each_kind_of_site(site, piped));
        all.solid(name, split?, took);
    }
    say("git");
    if program::is_there("git") {
        let visits: Vec<&Path> = site.visits.iter().map(|visit| visit.folder.as_path()).collect();
        let (bytes, took) = timed(|| program::git_bytes(work, &visits));
        all.ways.push(OtherWay {
            name: "git, repacked".to_owned(),
            bytes: bytes.map_err(LabError::file("pack with git", work))?,
            split: None,
            by_visit: Vec::new(),
            is_random_access: true,
            took,
        });
    } else {
        all.left_out.push("git: there is no program `git` here".to_owned());
    }
    Ok(all)
}

impl OtherWays {
    fn by_visit(
        &mut self,
        name: &str,
        is_random_access: bool,
        site: &CorpusSite,
        visit_bytes: &mut dyn FnMut(&CorpusVisit) -> Result<Split, LabError>,
    ) -> Result<(), LabError> {
        let (visits, took) =
            timed(|| site.visits.iter().map(visit_bytes).collect::<Result<Vec<Split>, LabError>>());
        let visits = visits?;
        let split: Split = visits.iter().copied().sum();
        self.ways.push(OtherWay {
            name: name.to_owned(),
            bytes: split.total(),
            split: Some(split),
            by_visit: visits.iter().map(|visit| visit.total()).collect(),
            is_random_access,
            took,
        });
        Ok(())
    }

    fn solid(&mut self, name: &str, split: Split, took: Took) {
        self.ways.push(OtherWay {
            name: name.to_owned(),
            bytes: split.total(),
            split: Some(split),
            by_visit: Vec::new(),
            is_random_access: false,
            took,
        });
    }
}

fn steps(site: &CorpusSite, all: &mut OtherWays) -> Result<(), LabError> {
    let mut count = PaperCount::default();
    for visit in &site.visits {
        let (mut html, mut other) = (PaperBytes::default(), PaperBytes::default());
        for file in &visit.files {
            let (class, sum) = match file.is_html {
                true => (Class::Html, &mut html),
                false => (Class::Other, &mut other),
            };
            sum.add(&count.file(&file.name, class, &file.read()?));
        }
        count.end();
        all.paper_html.push(html.into());
        all.paper_other.push(other.into());
    }
    Ok(())
}

/// Takes bytes in and counts them.
#[derive(Default)]
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A visit's HTML and its other files as two tar files through a compressor.
fn each_kind<W: Write>(
    visit: &CorpusVisit,
    begin: impl Fn(Count) -> io::Result<W>,
    finish: impl Fn(W) -> io::Result<Count>,
) -> Result<Split, LabError> {
    let mut split = Split::default();
    for is_html in [true, false] {
        if visit.files.iter().all(|file| file.is_html != is_html) {
            continue;
        }
        let write = || {
            let mut out = begin(Count::default())?;
            visit_tar(visit, is_html, &mut out)?;
            tar::end(&mut out)?;
            finish(out)
        };
        let counted = write().map_err(LabError::file("compress", &visit.folder))?;
        split.count(is_html, counted.0);
    }
    Ok(split)
}

fn visit_tar(visit: &CorpusVisit, is_html: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut out = out;
    for file in visit.files.iter().filter(|file| file.is_html == is_html) {
        tar::append(&mut out, file, &std::fs::read(&file.path)?)?;
    }
    Ok(())
}

/// All visits of a site in one tar file, oldest first.
fn site_tar(site: &CorpusSite, is_html: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut out = out;
    for visit in &site.visits {
        visit_tar(visit, is_html, &mut out)?;
    }
    tar::end(&mut out)
}

fn each_kind_of_site(
    site: &CorpusSite,
    bytes: impl Fn(&CorpusSite, bool) -> io::Result<u64>,
) -> Result<Split, LabError> {
    let mut split = Split::default();
    for is_html in [true, false] {
        let is_there = site.visits.iter().flat_map(|visit| &visit.files);
        if is_there.into_iter().any(|file| file.is_html == is_html) {
            let counted = bytes(site, is_html).map_err(LabError::file("compress", &site.name))?;
            split.count(is_html, counted);
        }
    }
    Ok(split)
}

/// One frame with a window over the whole, as `zstd -19 --long=31` makes it.
fn zstd_solid(site: &CorpusSite, is_html: bool) -> io::Result<u64> {
    let raw = site.raw();
    let length = if is_html { raw.html } else { raw.other };
    let window_log = (64 - length.leading_zeros()).clamp(20, 31);
    let mut encoder = zstd::Encoder::new(Count::default(), ZSTD_LEVEL)?;
    encoder.long_distance_matching(true)?;
    encoder.window_log(window_log)?;
    site_tar(site, is_html, &mut encoder)?;
    Ok(encoder.finish()?.0)
}

/// What the format adds to the contents: local head, central entry and the directory's end.
const ZIP_ENTRY_BYTES: u64 = 30 + 46;
const ZIP_END_BYTES: u64 = 22;

fn zip_visit(visit: &CorpusVisit) -> Result<Split, LabError> {
    let mut split = Split { html: 0, other: ZIP_END_BYTES };
    for file in &visit.files {
        let mut out = DeflateEncoder::new(Count::default(), Compression::new(ZIP_LEVEL));
        let deflated = out.write_all(&file.read()?).and_then(|()| out.finish());
        let deflated = deflated.map_err(LabError::file("compress", &file.path))?.0;
        let names = 2 * file.name.len() as u64;
        split.count(file.is_html, deflated.min(file.bytes) + ZIP_ENTRY_BYTES + names);
    }
    Ok(split)
}

/// The same content is compressed once, though it counts every time.
fn zstd_files(visit: &CorpusVisit, known: &mut BTreeMap<Digest, u64>) -> Result<Split, LabError> {
    let mut split = Split::default();
    for file in &visit.files {
        let body = file.read()?;
        let digest = Digest::of(&body);
        let bytes = match known.get(&digest) {
            Some(bytes) => *bytes,
            None => {
                let compressed = zstd::bulk::compress(&body, ZSTD_LEVEL);
                compressed.map_err(LabError::file("compress", &file.path))?.len() as u64
            }
        };
        known.insert(digest, bytes);
        split.count(file.is_html, bytes);
    }
    Ok(split)
}

type Payloads = BTreeMap<String, (CanonicalUrl, i64)>;

/// One file per visit by our own writer; with payloads known, a body that was written before becomes
/// a revisit record.
fn warc(
    site: &CorpusSite,
    visit: &CorpusVisit,
    at_s: i64,
    mut payloads: Option<&mut Payloads>,
) -> Result<Split, LabError> {
    let algorithm = DigestAlgorithm::Sha1;
    let failed = || LabError::file("write as WARC", visit.folder.clone());
    let mut split = Split::default();
    let mut writer = RecordWriter::new(Count::default(), Compressed::Gzip).map_err(failed())?;
    let about = [("software", "nenrin lab"), ("format", "WARC File Format 1.1")];
    let info = write_warcinfo(&mut writer, "visit.warc.gz", at_s, &about, algorithm);
    let info = info.map_err(failed())?;
    split.other += writer.position();
    for (serial, file) in visit.files.iter().enumerate() {
        let (serial, body) = (serial as u64, file.read()?);
        let url = url(&site.name, &file.name)?;
        let mime = if file.is_html { "text/html" } else { "application/octet-stream" };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let digests = BodyDigests::of(algorithm, head.as_bytes(), &body);
        let capture = Capture {
            url: &url,
            at_s,
            serial,
            server_address: None,
            protocol: "http/1.1",
            tls: None,
            request_head: b"",
            body: &digests,
            truncated: None,
            resource: None,
        };
        let fields = capture.prepare(algorithm);
        let digest = fields.payload_digest().to_owned();
        let known = payloads.as_ref().and_then(|payloads| payloads.get(&digest).cloned());
        let written = match known {
            Some((original_url, original_at_s)) => Revisit {
                url: &url,
                at_s,
                serial,
                profile: RevisitProfile::IdenticalPayload,
                original_url: &original_url,
                original_at_s,
                payload_digest: &digest,
                request_head: b"",
            }
            .write(&mut writer, &info, algorithm),
            None => fields.write(&mut writer, &info, b"", &mut |take| take(&body)),
        };
        split.count(file.is_html, written.map_err(failed())?.length);
        if let Some(payloads) = &mut payloads {
            payloads.entry(digest).or_insert((url, at_s));
        }
    }
    Ok(split)
}

fn url(site: &str, name: &str) -> Result<CanonicalUrl, LabError> {
    let path: String = name
        .bytes()
        .map(|byte| match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => (byte as char).to_string(),
            byte if byte.is_ascii_alphanumeric() => (byte as char).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let text = format!("http://{site}.example/{path}");
    CanonicalUrl::parse(&text)
        .map_err(|error| LabError::Input { what: format!("{name} cannot be made a URL: {error}") })
}
