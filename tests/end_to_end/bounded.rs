//! One budget for memory and time, whoever is on the other side.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};

use crate::support::{Nenrin, Reply, Running, Site, until};

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

#[test]
fn a_stop_is_heard_within_five_seconds_while_a_flood_of_pages_is_entered() {
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
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(peak < MEMORY_MAX_KB, "{peak} KB");
    nenrin.assert_sound();
}
