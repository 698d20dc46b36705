//! One budget for memory and time, whoever is on the other side.

use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};

use crate::support::{Nenrin, Reply, Running, STOPPED, Site, until};

/// Whatever servers do, the program's memory stays below this.
const MEMORY_MAX_KB: u64 = 300 << 10;

/// The most memory that a process ever had, in KB.
fn peak_kb(running: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid()));
    let peak = status.unwrap_or_default();
    let line = peak.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Runs until it ends by itself; returns its peak and what it said.
#[track_caller]
fn peak_of(mut running: Running, patience: Duration) -> (u64, Running) {
    let began = Instant::now();
    let mut peak = 0;
    while running.child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_kb(&running));
        assert!(began.elapsed() < patience, "it did not end: {}", running.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
    (peak, running)
}

fn gzip(parts: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    parts.for_each(|part| gzip.write_all(&part).unwrap());
    gzip.finish().unwrap()
}

fn collect_all(nenrin: &Nenrin, sites: &[Site], more: &[&str]) -> Running {
    let tops: Vec<String> = sites.iter().map(Site::top).collect();
    let mut args = vec!["collect", "--json", "--allow-private", "--delay", "0s", "--depth", "1"];
    args.extend(more);
    args.extend(tops.iter().map(String::as_str));
    nenrin.start(&args)
}

#[test]
fn sixty_bombs_at_once_take_little_memory() {
    // A megabyte that holds 250 MB.
    let bomb = gzip((0..250).map(|n| vec![n as u8; 1 << 20]));
    let sites: Vec<Site> = (0..60)
        .map(|_| {
            let bomb = bomb.clone();
            Site::serve(move |request| match request.path.as_str() {
                "/" => Reply::html(bomb.clone()).header("Content-Encoding", "gzip"),
                "/robots.txt" => Reply::text(bomb.clone()).header("Content-Encoding", "gzip"),
                _ => Reply::status("404 Not Found"),
            })
        })
        .collect();
    let nenrin = Nenrin::new();
    let running = collect_all(&nenrin, &sites, &[]);
    let (peak, running) = peak_of(running, Duration::from_secs(240));
    running.finish();
    assert!(peak < MEMORY_MAX_KB, "{peak} KB");
    let visits = nenrin.last_visits();
    for site in &sites {
        let visit = &visits[&site.top()];
        assert_eq!(visit["outcome"], "changed", "{visit}");
        let detail = visit["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("decodes to more than"), "{visit}");
    }
    assert_eq!(nenrin.cat(&sites[0].top()), bomb);
}

#[test]
fn sixty_large_bodies_that_drip_take_little_memory() {
    let sites: Vec<Site> = (0..60)
        .map(|_| {
            Site::serve(|request| match request.path.as_str() {
                "/" => Reply::raw(
                    "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
                    vec![b'x'; 8 << 20],
                )
                .then(vec![b'y'], 10_000, Duration::from_millis(200)),
                _ => Reply::status("404 Not Found"),
            })
        })
        .collect();
    let nenrin =
        Nenrin::new().with_config("[fetch]\nidle_timeout = \"5s\"\ntotal_timeout = \"12s\"\n");
    let running = collect_all(&nenrin, &sites, &[]);
    let (peak, running) = peak_of(running, Duration::from_secs(240));
    running.finish();
    assert!(peak < MEMORY_MAX_KB, "{peak} KB");
    let visits = nenrin.last_visits();
    assert!(sites.iter().all(|site| visits[&site.top()]["outcome"] == "failed"), "{visits:?}");
    // Nothing is left of what was received.
    let names = std::fs::read_dir(nenrin.archive()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".tmp")), "{names:?}");
}

/// What a large file holds, byte by byte.
fn part(number: u64) -> Vec<u8> {
    let word = |at: u64| (number << 32 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..1 << 17).flat_map(word).collect()
}

#[test]
fn a_large_file_takes_little_memory_and_comes_back_byte_for_byte() {
    const PARTS: u64 = 120;
    let body: Vec<u8> = (0..PARTS).flat_map(part).collect();
    let wanted = blake3::hash(&body);
    let site = Site::serve(move |request| match request.path.as_str() {
        "/film" => Reply::new("200 OK", "video/mp4", body.clone()),
        "/" => Reply::html("<a href=/film>film</a>"),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    let args = ["collect", "--json", "--allow-private", "--delay", "0s", &site.top()];
    let (peak, running) = peak_of(nenrin.start(&args), Duration::from_secs(120));
    running.finish().expect(0);
    assert!(peak < MEMORY_MAX_KB, "{peak} KB");
    let url = site.url("/film");
    let started = nenrin.start(&["cat", &url]);
    let (peak, running) = peak_of(started, Duration::from_secs(120));
    assert_eq!(blake3::hash(&running.finish().expect(0).stdout), wanted);
    assert!(peak < MEMORY_MAX_KB, "{peak} KB");
    nenrin.run(&["compact"]).expect(0);
    nenrin.assert_sound();
    assert_eq!(blake3::hash(&nenrin.cat(&url)), wanted);
}

/// A server with one large file, and an archive that has collected it.
fn archive_of(parts: u64) -> (Nenrin, String, blake3::Hash) {
    let body: Vec<u8> = (0..parts).flat_map(part).collect();
    let wanted = blake3::hash(&body);
    let site = Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html("<a href=/film>film</a>"),
        "/film" => Reply::new("200 OK", "video/mp4", body.clone()),
        _ => Reply::status("404 Not Found"),
    });
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    (nenrin, site.url("/film"), wanted)
}

#[test]
fn exports_and_replay_of_a_large_file_take_little_memory() {
    const PARTS: u64 = 240;
    // Less than the file.
    const LITTLE_KB: u64 = 150 << 10;
    let (nenrin, url, wanted) = archive_of(PARTS);
    let file = |name: &str| nenrin.file(name, "");
    let patience = Duration::from_secs(120);
    let (warc, wacz, mirror) = (file("a.warc.gz"), file("a.wacz"), file("m") + "irror");
    for args in [
        &["export", "warc", "--output", &warc][..],
        &["export", "wacz", "--output", &wacz],
        &["export", "mirror", "--at", "2099-01-01", "--output", &mirror],
    ] {
        let (peak, running) = peak_of(nenrin.start(args), patience);
        running.finish().expect(0);
        assert!(peak < LITTLE_KB, "{args:?}: {peak} KB");
    }
    let found =
        std::process::Command::new("find").args([&mirror, "-name", "film"]).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let exported = std::fs::read(found.trim()).unwrap();
    assert_eq!(blake3::hash(&exported), wanted);
    let mut records = Vec::new();
    let file = std::fs::File::open(&warc).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut records).unwrap();
    let front = &records[..1 << 20];
    let begins = front.windows(64).position(|window| window == &exported[..64]).unwrap();
    assert!(records[begins..].starts_with(&exported));
    assert!(records[begins + exported.len()..].starts_with(b"\r\n\r\nWARC/1.1"));

    let anywhere = ["serve", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let serving = nenrin.start(&anywhere);
    let addresses = serving.first_line();
    let replay = addresses["replay"].as_str().unwrap().trim_end_matches('/').to_owned();
    let page = |modifier: &str| format!("{replay}/web/2{modifier}/{url}");
    let (status, head, path) = crate::support::ask_with(&page("id_"), "");
    assert_eq!(status, 302, "{head}");
    drop(path);
    let to = head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    let full = format!("{replay}{}", String::from_utf8_lossy(to.as_bytes()));
    let (status, head, body) = crate::support::ask_with(&full, "");
    assert_eq!((status, blake3::hash(&body)), (200, wanted), "{head}");
    let (first, last) = (100_u64 << 20, (100 << 20) + 9_999_999);
    let range = format!("Range: bytes={first}-{last}\r\n");
    let (status, head, part) = crate::support::ask_with(&full, &range);
    assert_eq!(status, 206, "{head}");
    assert!(part == exported[first as usize..=last as usize]);
    let (status, head, part) = crate::support::ask_with(&full, "Range: bytes=-5\r\n");
    assert_eq!(status, 206, "{head}");
    assert!(part == exported[exported.len() - 5..]);
    let peak = peak_kb(&serving);
    assert!(peak < LITTLE_KB, "{peak} KB");
}

#[test]
fn a_stop_is_heard_soon_while_a_flood_of_pages_is_entered() {
    let site = Site::serve(|request| {
        let host = &request.headers["host"];
        let n: u64 =
            request.path.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
        match request.path.as_str() {
            "/robots.txt" => Reply::text(format!("Sitemap: http://{host}/index\n")),
            "/index" => {
                let map = |n| format!("<sitemap><loc>http://{host}/map{n}</loc></sitemap>");
                let maps: String = (1..=200).map(map).collect();
                Reply::new(
                    "200 OK",
                    "application/xml",
                    format!("<sitemapindex>{maps}</sitemapindex>"),
                )
            }
            path if path.starts_with("/map") => {
                let entry = |e| format!("<url><loc>http://{host}/p{n}x{e}</loc></url>");
                let entries: String = (0..20_000).map(entry).collect();
                Reply::new("200 OK", "application/xml", format!("<urlset>{entries}</urlset>"))
            }
            path => Reply::html(format!("page {path}")),
        }
    });
    let nenrin = Nenrin::new();
    let running =
        nenrin.start(&["collect", "--json", "--allow-private", "--delay", "0s", &site.top()]);
    until("some sitemaps to be read", || {
        site.asked().keys().filter(|path| path.starts_with("/map")).count() >= 4
    });
    let began = Instant::now();
    running.signal("TERM");
    let (peak, running) = peak_of(running, Duration::from_secs(20));
    let took = began.elapsed();
    running.finish();
    assert!(took < STOPPED, "{took:?}");
    assert!(peak < MEMORY_MAX_KB, "{peak} KB");
    nenrin.assert_sound();
}

#[test]
fn a_mirror_with_a_large_file_takes_little_memory() {
    let nenrin = Nenrin::new();
    let mirror = nenrin.archive().with_file_name("mirror");
    std::fs::create_dir(&mirror).unwrap();
    // Without content on the disk: what is read of it are zeros.
    let film = std::fs::File::create(mirror.join("film.mp4")).unwrap();
    film.set_len(600 << 20).unwrap();
    let folder = mirror.to_str().unwrap();
    let args = ["import", "mirror", folder, "--url", "http://e.example/", "--at", "2024-01-02"];
    // The second time all is known, and compared.
    for _ in 0..2 {
        let (peak, running) = peak_of(nenrin.start(&args), Duration::from_secs(200));
        running.finish().expect(0);
        assert!(peak < MEMORY_MAX_KB, "{peak} KB");
    }
    let versions = nenrin.versions("http://e.example/film.mp4");
    assert_eq!(versions.len(), 1, "{versions:?}");
    nenrin.assert_sound();
}
