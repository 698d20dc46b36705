//! Puts a corpus of site mirrors through the store and prints what it takes and how fast it is.
//!
//! `corpus DIR [--sites a,b] [--work DIR] [--images-as-they-are] [--no-compact] [--speed]
//! [--steps file|time|space|all|none] [--effort quick|usual|thorough] [--restore-only]`, where DIR/SITE/VISIT/… are the files of
//! each visit. `--restore-only` reads everything out of the archive of an earlier run.
#![expect(clippy::print_stdout, reason = "this is a report for a person")]
#![expect(clippy::unwrap_used, reason = "an experiment may stop anywhere")]
#![expect(clippy::disallowed_methods, reason = "an experiment measures time")]

mod measure;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use measure::{cpu_s, distribution, peak_memory_mb};
use nenrin_store::{
    Class, CompactOptions, Digest, Effort, LocalFolder, NewVersion, PaperBytes, PaperCount, Steps,
    Store, StoreOptions, VersionId,
};
use nenrin_urls::CanonicalUrl;
use sha2::Digest as _;

#[derive(Default)]
struct Totals {
    html_only: bool,
    no_html: bool,
    paper: BTreeMap<String, PaperCount>,
    paper_html: PaperBytes,
    paper_other: PaperBytes,
    files: u64,
    raw_bytes: u64,
    raw_html_bytes: u64,
    versions: Vec<VersionId>,
    /// CPU seconds and bytes of puts of changed HTML.
    changed_html: (f64, u64),
    /// CPU seconds that `zstd -9` took for the same bytes, in turn with the puts.
    changed_html_by_zstd_s: f64,
    /// One file of each content.
    unique: BTreeMap<Digest, PathBuf>,
    last: BTreeMap<String, (VersionId, Digest)>,
}

/// What was typed.
struct Arguments(Vec<String>);

impl Arguments {
    fn flag(&self, name: &str) -> bool {
        self.0.iter().any(|argument| argument == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number<N: std::str::FromStr<Err = std::num::ParseIntError>>(&self, name: &str) -> Option<N> {
        self.value(name).map(|text| text.parse().unwrap())
    }

    fn effort(&self) -> Effort {
        match self.value("--effort") {
            Some("quick") => Effort::Quick,
            Some("usual") => Effort::Usual,
            _ => Effort::Thorough,
        }
    }

    fn store_options(&self, work: &Path) -> StoreOptions {
        let defaults = options(work, self.value("--steps"));
        StoreOptions {
            level: self.number("--level").unwrap_or(defaults.level),
            first_level: self.number("--first-level").unwrap_or(defaults.first_level),
            recode_gifs: !self.flag("--images-as-they-are"),
            ..defaults
        }
    }

    fn compact_options(&self) -> CompactOptions {
        let defaults = CompactOptions::default();
        let kb = |name: &str| self.number::<usize>(name).map(|kb| kb << 10);
        CompactOptions {
            recode_images: !self.flag("--images-as-they-are"),
            frame_bytes: kb("--frame-kb").unwrap_or(defaults.frame_bytes),
            frame_reading_bytes: kb("--reading-kb")
                .map_or(defaults.frame_reading_bytes, |bytes| bytes as u64),
            prefix_bytes: kb("--prefix-kb").unwrap_or(defaults.prefix_bytes),
            versions_per_slow: self
                .number("--versions-per-slow")
                .unwrap_or(defaults.versions_per_slow),
            level: self.number("--compact-level").unwrap_or(defaults.level),
            ..defaults
        }
    }
}

fn main() {
    let arguments = Arguments(std::env::args().skip(1).collect());
    let corpus = PathBuf::from(&arguments.0[0]);
    let work = PathBuf::from(arguments.value("--work").unwrap_or("corpus-archive"));
    if arguments.flag("--restore-only") {
        return restore_only(&work);
    }
    let _ = std::fs::remove_dir_all(&work);
    let mut sites: Vec<String> = entries(&corpus).iter().map(|path| name(path)).collect();
    if let Some(wanted) = arguments.value("--sites") {
        sites.retain(|site| wanted.split(',').any(|wanted| wanted == site));
    }
    let options = arguments.store_options(&work);
    let mut totals = Totals {
        html_only: arguments.flag("--html-only"),
        no_html: arguments.flag("--no-html"),
        ..Totals::default()
    };
    let store = open(&work, &options);
    store.set_effort(arguments.effort());
    put_everything(&store, &corpus, &sites, &mut totals);
    drop(store);
    // As it is when the program that collected has ended: the log of the index is part of
    // the index by then.
    let store = open(&work, &options);
    report("before compact", &store, &totals);
    let (seconds, bytes) = totals.changed_html;
    println!(
        "changed HTML: {:.0} MB at {:.1} MB per CPU s, zstd -9 on the same bytes at {:.1}: {:.2} times",
        mb(bytes),
        mb(bytes) / seconds,
        mb(bytes) / totals.changed_html_by_zstd_s,
        totals.changed_html_by_zstd_s / seconds
    );
    restore("before compact", &work, &options, &totals);
    if !arguments.flag("--no-compact") {
        compact(&store, &arguments, &totals);
        restore("after compact", &work, &options, &totals);
        let sound = store.verify(true, &mut |_, _| {}).unwrap();
        assert!(sound.is_sound(), "{:#?}", sound.damage);
        println!("verify: {} versions sound", sound.versions);
    }
    if arguments.flag("--speed") {
        speed(&store, &corpus, &sites);
    }
    println!("peak memory {} MB", peak_memory_mb());
}

/// Reads everything out of the archive of an earlier run.
fn restore_only(work: &Path) {
    let options = options(work, None);
    let mut totals = Totals::default();
    open(work, &options)
        .scan(&mut |head| {
            totals.versions.push(head.id);
            Ok(())
        })
        .unwrap();
    restore("as it is", work, &options, &totals);
}

fn put_everything(store: &Store, corpus: &Path, sites: &[String], totals: &mut Totals) {
    let begin = (Instant::now(), cpu_s());
    for visit in 1..=8 {
        for (group, site) in sites.iter().enumerate() {
            put_visit(store, corpus, site, group as u32 + 1, visit, totals);
        }
        store.sync().unwrap();
    }
    for (what, count) in [("HTML", totals.paper_html), ("other", totals.paper_other)] {
        let percent = |bytes: u64| 100.0 * bytes as f64 / count.raw.max(1) as f64;
        println!(
            "paper 001, blocks uncompressed, {what}: file in time {:.1}%, file in space {:.1}%, \
             block in time {:.1}%, block in space {:.1}%",
            percent(count.after_file_in_time),
            percent(count.after_file_in_space),
            percent(count.after_block_in_time),
            percent(count.after_block_in_space)
        );
    }
    println!("put: {:.1} s, {:.1} CPU s", begin.0.elapsed().as_secs_f64(), cpu_s() - begin.1);
}

fn compact(store: &Store, arguments: &Arguments, totals: &Totals) {
    // Half of the files before compacting and half behind it, so that both had the same machine.
    let (mut zstd_s, mut unique_bytes) = (0.0, 0);
    if arguments.flag("--speed") {
        by_zstd_19(totals, 0, &mut zstd_s, &mut unique_bytes);
    }
    let begin = (Instant::now(), cpu_s());
    let done = store.compact(&arguments.compact_options(), &mut |_, _| {}).unwrap();
    let compact_s = cpu_s() - begin.1;
    println!(
        "compact: {:.1} s, {:.1} CPU s, {} frames, {:.1} MB compressed, {} recoded, {} of them slow to read",
        begin.0.elapsed().as_secs_f64(),
        compact_s,
        done.frames_written,
        mb(done.compressed_bytes),
        done.recoded,
        done.slow
    );
    report("after compact", store, totals);
    if arguments.flag("--speed") {
        by_zstd_19(totals, 1, &mut zstd_s, &mut unique_bytes);
        println!(
            "compact: {:.0} MB of new content at {:.2} MB per CPU s, zstd -19 file by file on the same bytes at {:.2}: {:.2} times",
            mb(unique_bytes),
            mb(unique_bytes) / compact_s,
            mb(unique_bytes) / zstd_s,
            zstd_s / compact_s
        );
    }
}

fn options(work: &Path, steps: Option<&str>) -> StoreOptions {
    let steps = match steps {
        Some("none") => Steps { file: false, block_in_time: false, block_in_space: false },
        Some("file") => Steps { file: true, block_in_time: false, block_in_space: false },
        Some("time") => Steps { file: true, block_in_time: true, block_in_space: false },
        Some("space") => Steps { file: true, block_in_time: false, block_in_space: true },
        _ => Steps::default(),
    };
    StoreOptions { index_path: Some(work.join("index.sqlite")), steps, ..StoreOptions::default() }
}

fn open(work: &Path, options: &StoreOptions) -> Store {
    let packs = LocalFolder::open(work.join("packs")).unwrap();
    Store::open(Arc::new(packs), options.clone()).unwrap()
}

/// Imports a mirror as one visit, as `nenrin import mirror` does.
fn put_visit(
    store: &Store,
    corpus: &Path,
    site: &str,
    group: u32,
    visit: u64,
    totals: &mut Totals,
) {
    let root = corpus.join(site).join(visit.to_string());
    let mut files = Vec::new();
    walk(&root, &mut files);
    let mut paper = totals.paper.remove(site).unwrap_or_default();
    for file in files {
        let body = std::fs::read(&file).unwrap();
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let url = CanonicalUrl::parse(&format!("https://{site}.example/{path}")).unwrap();
        let media = media_type(&path);
        let is_html = media == "text/html";
        if if is_html { totals.no_html } else { totals.html_only } {
            continue;
        }
        let class = if is_html { Class::Html } else { Class::Other };
        let count = paper.file(&path, class, &body);
        if is_html {
            totals.paper_html.add(&count)
        } else {
            totals.paper_other.add(&count)
        }
        totals.unique.entry(Digest::of(&body)).or_insert_with(|| file.clone());
        totals.files += 1;
        totals.raw_bytes += body.len() as u64;
        totals.raw_html_bytes += if is_html { body.len() as u64 } else { 0 };
        let before = totals.last.get(url.as_str()).copied();
        if before.is_some_and(|(_, digest)| digest == Digest::of(&body)) {
            continue;
        }
        let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
        let modified_s = modified.duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {}\r\nLast-Modified: {}\r\n\r\n",
            body.len(),
            http_date(modified_s)
        );
        let version = NewVersion {
            url: &url,
            group,
            visited_at_s: 1_640_995_200 + 2_592_000 * visit as i64,
            status: 200,
            protocol: "http/1.1",
            tls: None,
            server_address: None,
            request_head: b"",
            response_head: head.as_bytes(),
            body: &body,
            truncated: None,
            previous: before.map(|(id, _)| id),
        };
        let begin = cpu_s();
        let put = store.put(&version).unwrap();
        if is_html && before.is_some() {
            totals.changed_html.0 += cpu_s() - begin;
            totals.changed_html.1 += body.len() as u64;
            let begin = cpu_s();
            std::hint::black_box(zstd::bulk::compress(&body, 9).unwrap());
            totals.changed_html_by_zstd_s += cpu_s() - begin;
        }
        totals.versions.push(put.id);
        totals.last.insert(url.as_str().to_owned(), (put.id, put.digest));
    }
    paper.end();
    totals.paper.insert(site.to_owned(), paper);
}

fn report(when: &str, store: &Store, totals: &Totals) {
    let stats = store.stats().unwrap();
    let percent = |bytes: u64, of: u64| 100.0 * bytes as f64 / of as f64;
    println!(
        "{when}: {} files, {:.1} MB raw, {} versions, {:.1} MB unique: {} bytes = {:.3}% of raw; \
         html {} = {:.3}% of raw HTML; other {} = {:.3}%; records and index {} ({} packs)",
        totals.files,
        mb(totals.raw_bytes),
        stats.versions,
        mb(stats.unique_bytes),
        stats.stored_bytes,
        percent(stats.stored_bytes, totals.raw_bytes),
        stats.html_bytes,
        percent(stats.html_bytes, totals.raw_html_bytes),
        stats.other_bytes,
        percent(stats.other_bytes, totals.raw_bytes - totals.raw_html_bytes),
        stats.index_bytes,
        stats.packs
    );
    let shares = stats.sites.iter().map(|site| {
        format!(
            "{}: html {} other {} records {}",
            site.group, site.html_bytes, site.other_bytes, site.record_bytes
        )
    });
    println!("  {}", shares.collect::<Vec<_>>().join("\n  "));
}

/// Reads versions one by one without a cache of ours.
fn restore(when: &str, work: &Path, options: &StoreOptions, totals: &Totals) {
    let cold = StoreOptions { cache_bytes: 0, ..options.clone() };
    let store = open(work, &cold);
    let mut times_ms: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for id in &totals.versions {
        let begin = cpu_s();
        let version = store.read(*id).unwrap();
        let took_ms = 1000.0 * (cpu_s() - begin);
        times_ms.entry(kind(&version.head.response_head)).or_default().push(took_ms);
        times_ms.entry(" all".to_owned()).or_default().push(took_ms);
    }
    for (what, mut times_ms) in times_ms {
        println!("restore {when}, {}: {}", what.trim(), distribution(&mut times_ms));
    }
}

/// The content type in a head.
fn kind(head: &[u8]) -> String {
    let head = String::from_utf8_lossy(head);
    let line = head.lines().find_map(|line| line.strip_prefix("Content-Type: "));
    line.unwrap_or("unknown").to_owned()
}

/// Every other file of each content through `zstd -19`.
fn by_zstd_19(totals: &Totals, which: usize, seconds: &mut f64, bytes: &mut u64) {
    for file in totals.unique.values().skip(which).step_by(2) {
        let body = std::fs::read(file).unwrap();
        let begin = cpu_s();
        std::hint::black_box(zstd::bulk::compress(&body, 19).unwrap());
        *seconds += cpu_s() - begin;
        *bytes += body.len() as u64;
    }
}

/// Known content against sha256.
fn speed(store: &Store, corpus: &Path, sites: &[String]) {
    let mut bodies = Vec::new();
    for site in sites {
        let mut files = Vec::new();
        walk(&corpus.join(site).join("8"), &mut files);
        bodies.extend(files.into_iter().map(|file| std::fs::read(file).unwrap()));
    }
    let all: u64 = bodies.iter().map(|body| body.len() as u64).sum();
    let url = CanonicalUrl::parse("https://known.example/").unwrap();
    let rate = |what: &str, bytes: u64, work: &mut dyn FnMut()| {
        let begin = cpu_s();
        work();
        println!(
            "{what}: {:.0} MB at {:.1} MB per CPU s",
            mb(bytes),
            mb(bytes) / (cpu_s() - begin)
        );
    };
    rate("sha256", all, &mut || {
        bodies.iter().for_each(|body| {
            std::hint::black_box(sha2::Sha256::digest(body));
        });
    });
    rate("put of known content", all, &mut || {
        for body in &bodies {
            let version = NewVersion {
                url: &url,
                group: 1,
                visited_at_s: 0,
                status: 200,
                protocol: "h2",
                tls: None,
                server_address: None,
                request_head: b"",
                response_head: b"HTTP/1.1 200 OK\r\n\r\n",
                body,
                truncated: None,
                previous: None,
            };
            assert!(store.put(&version).unwrap().whole_body_known);
        }
        store.sync().unwrap();
    });
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" | "map" => "application/json",
        "xml" | "rss" => "application/xml",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "woff" => "font/woff",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}

/// Enough for Last-Modified: the store takes any bytes.
fn http_date(time_s: i64) -> String {
    let days = time_s / 86_400;
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let names =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let year = year + 400 * era + i64::from(month >= 10);
    let second = time_s % 86_400;
    format!(
        "{weekday}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        names[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
