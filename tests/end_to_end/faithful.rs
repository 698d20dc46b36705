//! Pages in replay beside their originals, in a real browser, with the original's server gone.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use nenrin_browser::{Browser, Names, Picture};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{Nenrin, Reply, Running, Site};

/// Pictures may differ by this share of their pixels.
const TOLERANCE: f64 = 0.01;
/// The page, made for the collector, that leads to every other.
pub(crate) const LIST: &str = "/_list_of_pages.html";

/// What a browser saw of a page.
struct Look {
    /// URLs asked for, and whether each was answered well; `None` where no answer came in time.
    asked: Vec<(String, Option<bool>)>,
    /// What it looks like; with scripts turned off where the page has any.
    picture: Picture,
    /// What it looks like with its scripts, if it has any.
    moving: Option<Picture>,
    /// The first lines of what its scripts did wrong, in order.
    errors: Vec<String>,
    /// The page led away, to a host that cannot be reached: the browser shows its own error.
    is_lost: bool,
}

async fn look(browser: &mut Browser, url: &str, has_scripts: bool) -> Look {
    browser.events.clear();
    browser.open(url).await;
    browser.wait(150).await;
    let asked = requests(browser);
    let errors = script_errors(browser);
    let moving = if has_scripts { Some(shown(browser).await) } else { None };
    let off = |off: bool| json!({"value": off});
    if has_scripts {
        browser.call("Emulation.setScriptExecutionDisabled", off(true)).await;
        browser.open(url).await;
        browser.wait(100).await;
    }
    let is_lost = browser.eval("location.protocol == 'chrome-error:'").await == true;
    let picture = shown(browser).await;
    browser.call("Emulation.setScriptExecutionDisabled", off(false)).await;
    Look { asked, picture, moving, errors, is_lost }
}

/// A picture of the page as it is now.
async fn shown(browser: &mut Browser) -> Picture {
    // Frames of hosts that nobody can reach here show the browser's own page for that, or ours.
    let hidden = "for (const f of document.querySelectorAll('iframe, frame, object, embed')) \
        if (!/127\\.0\\.0\\.1|^$/.test(f.src || f.data || '')) f.style.visibility = 'hidden'";
    browser.eval(hidden).await;
    browser.full_screenshot().await
}

fn script_errors(browser: &Browser) -> Vec<String> {
    let thrown = |event: &&Value| event["method"] == "Runtime.exceptionThrown";
    let line = |event: &Value| {
        let details = &event["params"]["exceptionDetails"];
        let text = details["exception"]["description"].as_str().or(details["text"].as_str());
        text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
    };
    let mut errors: Vec<String> = browser.events.iter().filter(thrown).map(line).collect();
    errors.sort();
    errors
}

fn requests(browser: &Browser) -> Vec<(String, Option<bool>)> {
    let of = |method: &str| {
        let method = method.to_owned();
        browser.events.iter().filter(move |event| event["method"] == method.as_str())
    };
    let is_of = |event: &Value, id: &Value| event["params"]["requestId"] == *id;
    of("Network.requestWillBeSent")
        .map(|event| {
            let id = &event["params"]["requestId"];
            let url = event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned();
            let status = of("Network.responseReceived")
                .find(|answer| is_of(answer, id))
                .and_then(|answer| answer["params"]["response"]["status"].as_u64());
            let is_lost = of("Network.loadingFailed")
                .any(|failure| is_of(failure, id) && failure["params"]["canceled"] != true);
            (url, if is_lost { Some(false) } else { status.map(|status| status < 400) })
        })
        .filter(|(url, _)| url.starts_with("http") || url.starts_with("ws"))
        .collect()
}

/// Serves a folder that can be changed for another, and becomes silent for ever when closed.
pub(crate) struct Folder {
    pub(crate) site: Site,
    pub(crate) folder: Arc<Mutex<PathBuf>>,
}

impl Folder {
    pub(crate) fn serve(folder: &Path) -> Self {
        let folder = Arc::new(Mutex::new(folder.to_owned()));
        let shown = folder.clone();
        let site = Site::serve(move |request| file(&shown.lock().unwrap(), &request.path));
        Self { site, folder }
    }
}

fn file(folder: &Path, asked: &str) -> Reply {
    let path = unescaped(asked.split(['?', '#']).next().unwrap_or_default());
    if path == LIST {
        let links: String = html_files(folder)
            .iter()
            .map(|path| format!("<a href='{}'>page</a>\n", escaped(path)))
            .collect();
        return Reply::html(links);
    }
    let mut file = folder.join(path.trim_start_matches('/'));
    if file.is_dir() && !path.ends_with('/') {
        return Reply::redirect(&format!("{asked}/"));
    }
    if file.is_dir() {
        file = file.join("index.html");
    }
    match std::fs::read(&file) {
        Ok(body) => Reply::new("200 OK", mime(&file), body),
        Err(_) => Reply::status("404 Not Found"),
    }
}

fn mime(file: &Path) -> &'static str {
    match file.extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "js" => "text/javascript",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "ico" => "image/x-icon",
        "xml" => "application/xml",
        "json" => "application/json",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "pdf" => "application/pdf",
        "txt" | "md" => "text/plain",
        _ => "application/octet-stream",
    }
}

fn unescaped(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut plain = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = path.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 3;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn escaped(path: &str) -> String {
    path.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Paths of the pages below a folder, in order.
fn html_files(folder: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, into);
            } else if path.extension().is_some_and(|e| e == "html" || e == "htm") {
                into.push(format!("/{}", path.strip_prefix(root).unwrap().display()));
            }
        }
    }
    let mut files = Vec::new();
    walk(folder, folder, &mut files);
    files.sort();
    files
}

/// The pages that the site's robots.txt lets everyone have: no other can be in an archive.
fn allowed_pages(folder: &Path) -> Vec<String> {
    let robots = std::fs::read_to_string(folder.join("robots.txt")).unwrap_or_default();
    let is_forbidden = |page: &String| {
        robots
            .lines()
            .skip_while(|line| line.trim() != "User-agent: *")
            .take_while(|line| !line.trim().is_empty())
            .filter_map(|line| line.strip_prefix("Disallow:"))
            .any(|rule| !rule.trim().is_empty() && page.starts_with(rule.trim()))
    };
    html_files(folder).into_iter().filter(|page| !is_forbidden(page)).collect()
}

/// Some of the pages, spread evenly, others for every visit.
fn sample(pages: &[String], count: usize, visit: usize) -> Vec<String> {
    let count = count.min(pages.len());
    (0..count).map(|n| pages[(n * pages.len() / count + visit) % pages.len()].clone()).collect()
}

/// A page as it was, and when.
struct Original {
    url: String,
    date: String,
    look: Look,
    has_scripts: bool,
    /// Whether it looks the same twice, with its scripts.
    is_steady: bool,
}

/// How many of the pages are exactly as they were.
#[derive(Default)]
struct Equal {
    pixels: usize,
    moving: usize,
    errors: usize,
    outside: usize,
}

impl Equal {
    fn count(&mut self, original: &Original, replayed: &Look, asked_outside: bool) {
        let is_same = |a: &Picture, b: &Picture| a.difference(b) == 0.0;
        self.pixels += usize::from(is_same(&original.look.picture, &replayed.picture));
        if let (Some(a), Some(b)) = (&original.look.moving, &replayed.moving) {
            self.moving += usize::from(original.is_steady && is_same(a, b));
        }
        self.errors += usize::from(original.look.errors == replayed.errors);
        self.outside += usize::from(asked_outside);
    }

    fn text(&self, originals: &[Original]) -> String {
        let steady = originals.iter().filter(|o| o.is_steady && o.has_scripts).count();
        format!(
            "no pixel different in {} of {}, with scripts in {} of {steady} that look the same twice; \
             the same script errors in {}; {} asked for something outside",
            self.pixels,
            originals.len(),
            self.moving,
            self.errors,
            self.outside
        )
    }
}

/// The digits of the date at which the last round ended.
fn last_round_ended(nenrin: &Nenrin) -> String {
    let round = &nenrin.run(&["log", "--json", "--limit", "1"]).expect(0).lines()[0];
    let ended = round["ended"].as_str().unwrap().split('.').next().unwrap();
    ended.chars().filter(char::is_ascii_digit).take(14).collect()
}

/// Collects a visit, and looks at the pages of a sample while their server is there.
fn visit(
    nenrin: &Nenrin,
    served: &Folder,
    runtime: &Runtime,
    browser: &mut Browser,
    pages: &[String],
) -> Vec<Original> {
    let list = served.site.url(LIST);
    let ran = nenrin.collect(&[&list, "--embeds", "false"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.said());
    let date = last_round_ended(nenrin);
    let folder = served.folder.lock().unwrap().clone();
    pages
        .iter()
        .map(|page| {
            let bytes = std::fs::read(folder.join(page.trim_start_matches('/'))).unwrap();
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            let has_scripts = text.contains("<script") || text.contains("<noscript");
            let url = served.site.url(&escaped(page));
            let first = runtime.block_on(look(browser, &url, has_scripts));
            let is_steady = !has_scripts || {
                let again = runtime.block_on(look(browser, &url, true));
                first.moving.as_ref().zip(again.moving.as_ref()).is_some_and(|(a, b)| a == b)
            };
            Original { url, date: date.clone(), look: first, has_scripts, is_steady }
        })
        .collect()
}

/// The archived address that one of replay stands for, on its own origin or below a server's name,
/// and whether it is one of replay's own files.
fn archived(url: &str, replay: &str) -> Option<(String, bool)> {
    if let Some(inside) = url.strip_prefix(replay) {
        let archived = inside.splitn(3, '/').nth(2).unwrap_or_default();
        return Some((archived.to_owned(), inside.starts_with("_nenrin")));
    }
    let below = format!(".{}", replay.strip_prefix("http://")?);
    let (label, path) = url.strip_prefix("http://")?.split_once(&below)?;
    let (flags, host) = label.get(14..)?.split_once('-')?;
    let flags = flags.trim_start_matches('m');
    let (scheme, flags) = match flags.strip_prefix('s') {
        Some(flags) => ("https", flags),
        None => ("http", flags),
    };
    let port = flags.strip_prefix('p').map_or(String::new(), |port| format!(":{port}"));
    let host = host.replace("--", "\0").replace('-', ".").replace('\0', "-");
    Some((format!("{scheme}://{host}{port}/{path}"), path.starts_with("_nenrin")))
}

/// What is wrong with a replayed page.
fn faults(original: &Original, replayed: &Look, replay: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let is_well = |asked: &&(String, Option<bool>)| asked.1 == Some(true);
    let went_well: BTreeSet<&str> =
        original.look.asked.iter().filter(is_well).map(|(url, _)| &**url).collect();
    for (url, is_well) in &replayed.asked {
        let Some((archived, is_ours)) = archived(url, replay) else {
            faults.push(format!("asked outside: {url}"));
            continue;
        };
        // What the original did not have either cannot be here.
        if *is_well == Some(false) && (went_well.contains(&*archived) || is_ours) {
            faults.push(format!("failed: {url}"));
        }
    }
    // An original that leads to another host looks like the browser's error, ours like our own.
    let share = original.look.picture.difference(&replayed.picture);
    if share > TOLERANCE && !original.look.is_lost {
        faults.push(format!("{:.1}% of the pixels differ", share * 100.0));
    }
    faults
}

/// Keeps pictures for a person to look at, where `NENRIN_PICTURES` names a folder.
fn keep(name: &str, number: usize, original: &Look, replayed: &Look) {
    let Some(folder) = std::env::var_os("NENRIN_PICTURES") else { return };
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (look, kind) in [(original, "original"), (replayed, "replay")] {
        let file = folder.join(format!("{name}-{number}-{kind}.png"));
        std::fs::write(file, &look.picture.png).unwrap();
    }
}

fn replay_of(nenrin: &Nenrin) -> (Running, String) {
    let anywhere = ["serve", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&anywhere);
    let replay = running.first_line()["replay"].as_str().unwrap().to_owned();
    // Where browsers are led to.
    (running, replay.replace("127.0.0.1", "replay.localhost"))
}

/// Replays what was seen and returns all that is wrong, and how many pages are exactly as they were.
fn compared(
    name: &str,
    nenrin: &Nenrin,
    runtime: &Runtime,
    originals: &[Original],
) -> (Vec<String>, Equal) {
    let (_running, replay) = replay_of(nenrin);
    // Another browser: nothing of the originals is in its cache, and no connection is left.
    let mut browser = runtime.block_on(Browser::start(Names::Nothing)).unwrap();
    let (mut wrong, mut equal) = (Vec::new(), Equal::default());
    for (number, original) in originals.iter().enumerate() {
        let place = format!("{replay}web/{}mp_/{}", original.date, original.url);
        let replayed = runtime.block_on(look(&mut browser, &place, original.has_scripts));
        keep(name, number, &original.look, &replayed);
        let found = faults(original, &replayed, &replay);
        let is_outside = found.iter().any(|fault| fault.starts_with("asked outside"));
        equal.count(original, &replayed, is_outside);
        wrong.extend(found.into_iter().map(|fault| format!("{name}-{number} {place}: {fault}")));
    }
    (wrong, equal)
}

/// pywb, if `NENRIN_PYWB` names the folder of its programs, over an export of the same archive.
fn by_pywb(nenrin: &Nenrin, runtime: &Runtime, originals: &[Original]) -> Option<Equal> {
    let programs = PathBuf::from(std::env::var_os("NENRIN_PYWB")?);
    let work = tempfile::tempdir().unwrap();
    let warc = work.path().join("site.warc.gz");
    nenrin.run(&["export", "warc", "-o", warc.to_str().unwrap()]).expect(0);
    std::fs::write(work.path().join("config.yaml"), "framed_replay: false\n").unwrap();
    for args in [&["init", "c"][..], &["add", "c", "site.warc.gz"]] {
        let mut command = Command::new(programs.join("wb-manager"));
        let made = command.args(args).current_dir(work.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut pywb = Command::new(programs.join("wayback"))
        .args(["-b", "127.0.0.1", "-p", &free.to_string()])
        .current_dir(work.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let home = format!("http://127.0.0.1:{free}/");
    crate::support::until("pywb to listen", || {
        std::net::TcpStream::connect(("127.0.0.1", free)).is_ok()
    });
    let mut browser = runtime.block_on(Browser::start(Names::Nothing)).unwrap();
    let mut equal = Equal::default();
    for original in originals {
        let place = format!("{home}c/{}mp_/{}", original.date, original.url);
        let replayed = runtime.block_on(look(&mut browser, &place, original.has_scripts));
        let is_outside = |(url, _): &(String, Option<bool>)| !url.starts_with(&home);
        equal.count(original, &replayed, replayed.asked.iter().any(is_outside));
    }
    pywb.kill().unwrap();
    pywb.wait().unwrap();
    Some(equal)
}

/// The program that writes the sites of the corpus, if they are here.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn materialise() -> Option<PathBuf> {
    let data = std::env::var_os("NENRIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data")),
        PathBuf::from,
    );
    let program = data.join("sites/materialise");
    if !program.exists() {
        eprintln!("SKIPPED: {} is not there; set NENRIN_DATA", program.display());
        return None;
    }
    Some(program)
}

/// One site of the corpus at three visits: seven pages of each, or as many as `NENRIN_PAGES` says.
#[expect(clippy::print_stderr, reason = "a person runs it and reads how much was seen")]
fn a_real_site_replays_as_it_was(name: &str) {
    const VISITS: [usize; 3] = [1, 4, 8];
    let count =
        std::env::var("NENRIN_PAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(7);
    let Some(materialise) = materialise() else { return };
    let runtime = Runtime::new().unwrap();
    let Some(mut browser) = runtime.block_on(Browser::start(Names::Nothing)) else { return };
    let work = tempfile::tempdir().unwrap();
    let folder = |visit: usize| work.path().join(visit.to_string());
    for visit in VISITS {
        let made = Command::new(&materialise)
            .args([name, &visit.to_string(), folder(visit).to_str().unwrap()])
            .status();
        assert!(made.unwrap().success());
    }
    let nenrin = Nenrin::new();
    let served = Folder::serve(&folder(VISITS[0]));
    let mut originals = Vec::new();
    for (number, of_visit) in VISITS.into_iter().enumerate() {
        *served.folder.lock().unwrap() = folder(of_visit);
        let pages = sample(&allowed_pages(&folder(of_visit)), count, number);
        originals.extend(visit(&nenrin, &served, &runtime, &mut browser, &pages));
        // Versions are distinguished by seconds.
        std::thread::sleep(Duration::from_millis(1100));
    }
    drop(browser);
    let gone = served.site.close();
    let (wrong, equal) = compared(name, &nenrin, &runtime, &originals);
    assert!(std::net::TcpStream::connect(gone).is_err(), "the original's server is still there");
    let without = originals.iter().filter(|original| !original.has_scripts).count();
    let lost = originals.iter().filter(|original| original.look.is_lost).count();
    eprintln!(
        "{name}: {} pages, {without} of them without scripts; {lost} lead to another host, so that \
         their pictures were not compared",
        originals.len()
    );
    eprintln!("{name}: nenrin: {}", equal.text(&originals));
    if let Some(rival) = by_pywb(&nenrin, &runtime, &originals) {
        eprintln!("{name}: pywb: {}", rival.text(&originals));
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! real_sites {
    ($($name:ident)*) => {$(
        #[test]
        #[ignore = "minutes; run with --run-ignored all (nextest) or --ignored"]
        fn $name() {
            a_real_site_replays_as_it_was(stringify!($name));
        }
    )*};
}

mod real_site {
    use super::a_real_site_replays_as_it_was;
    real_sites!(azhenley dplyr heise openbsd tromp umio vimdoc zeit);
}

/// A page in each of the encodings that Japanese pages were written in, with styles, images,
/// frames and the rest of what a page may hold.
fn made_site(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    for label in ["Shift_JIS", "EUC-JP", "ISO-2022-JP", "UTF-8"] {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        let page = format!(
            "<html><head><meta http-equiv='Content-Type' content='text/html; charset={label}'>\
             <link rel=stylesheet href='/s/site.css'><title>年輪</title></head><body>\
             <h1>年輪、表示とソース</h1><p class=box>能ある鷹は爪を隠す。構造化 {label}</p>\
             <p><a href='/other.html?q=表'>次のページ</a></p><img src='../i/red.svg' alt='赤い四角'>\
             </body></html>"
        );
        write(&format!("jp/{label}.html"), &encoding.encode(&page).0);
    }
    write("s/site.css", b"@import 'more.css'; h1{color:#063} body{background:url(/i/red.svg)}");
    write("s/more.css", b".box{border:4px solid #c30; padding:1em; background:#fff}");
    let red = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'>\
               <rect width='30' height='30' fill='#c30'/></svg>";
    write("i/red.svg", red.as_bytes());
    write(
        "frames.html",
        b"<frameset cols='40%,*'><frame src='jp/EUC-JP.html'><frame src='/mixed.html'></frameset>",
    );
    write(
        "mixed.html",
        b"<!doctype html><base href='/s/'><link rel=stylesheet href='site.css'>\
          <style>div{background:url('../i/red.svg');height:60px}</style><div></div>\
          <picture><source srcset='/i/red.svg 1x, /i/red.svg?2 2x'><img src='/i/none.png'></picture>\
          <iframe src='../jp/Shift_JIS.html' width=500 height=200></iframe>\
          <table background='/i/red.svg' width=200><tr><td>cell</table>\
          <svg width=60 height=60><image href='/i/red.svg' width=60 height=60 /></svg>\
          <form action='/search'><input value='typed'></form>",
    );
}

#[test]
fn made_pages_replay_as_they_looked_in_every_encoding() {
    let runtime = Runtime::new().unwrap();
    let Some(mut browser) = runtime.block_on(Browser::start(Names::Nothing)) else { return };
    let work = tempfile::tempdir().unwrap();
    made_site(work.path());
    let nenrin = Nenrin::new();
    let served = Folder::serve(work.path());
    let pages = html_files(work.path());
    assert_eq!(pages.len(), 6);
    let originals = visit(&nenrin, &served, &runtime, &mut browser, &pages);
    drop(browser);
    served.site.close();
    assert!(originals.iter().all(|original| original.look.picture.colours() > 2));
    let (wrong, equal) = compared("made", &nenrin, &runtime, &originals);
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((equal.pixels, equal.errors), (6, 6), "{}", equal.text(&originals));
}
