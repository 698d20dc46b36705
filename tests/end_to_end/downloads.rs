//! Downloads of the interface, written by the real program and read by other means.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use crate::support::{Nenrin, Reply, Site, ask_with, get, until};

const ANYWHERE: [&str; 5] = ["--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];

/// Sends a form as a browser does: with the page's token and cookie.
fn submit(interface: &str, form: &str) -> u16 {
    let (_, head, page) = get(&format!("{interface}downloads"));
    let token = page.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let cookies: Vec<&str> = head
        .lines()
        .filter_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next())
        .collect();
    let body = format!("token={token}&{form}");
    let host = interface.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /downloads HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        cookies.join("; "),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_site_and_a_page_are_downloaded_and_other_programs_read_them() {
    let site = Site::of_pages(&[
        (
            "/",
            Reply::html("<h1>The front page</h1><a href=/a/inner.html>inner</a><img src=/i.png>"),
        ),
        ("/a/inner.html", Reply::html("<p>the inner page</p>")),
        ("/i.png", Reply::new("200 OK", "image/png", "not really a picture")),
    ]);
    let nenrin = Nenrin::new();
    let top = site.top();
    nenrin.collect(&[&top]).expect(0);
    let running = nenrin.start(&[&["serve"][..], &ANYWHERE].concat());
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    let download = |number: usize, form: &str, name: &str| {
        assert_eq!(submit(&interface, form), 303, "{form}");
        let link = format!("/downloads/{number}/file");
        until(form, || {
            let list = get(&format!("{interface}downloads?part=list")).2;
            assert!(!list.contains("Failed"), "{list}");
            list.contains(&link)
        });
        let (status, head, body) = ask_with(&format!("{interface}downloads/{number}/file"), "");
        assert_eq!(status, 200);
        assert!(head.contains("attachment; filename=\""), "{head}");
        let path = nenrin.file(name, "");
        std::fs::write(&path, body).unwrap();
        path
    };
    for (number, kind, name) in [(1, "wacz", "site.wacz"), (2, "warc", "site.warc.gz")] {
        let path = download(number, &format!("kind={kind}&site=1"), name);
        let other = Nenrin::new();
        other.run(&["import", "warc", &path]).expect(0);
        for page in ["", "a/inner.html", "i.png"] {
            let url = format!("{top}{page}");
            assert_eq!(other.cat(&url), nenrin.cat(&url), "{kind} {url}");
        }
    }
    let zip = download(3, "kind=mirror&site=1", "site.zip");
    let folder = Path::new(&zip).with_extension("unpacked");
    let unpacked =
        Command::new("python3").args(["-m", "zipfile", "-e", &zip]).arg(&folder).status().unwrap();
    assert!(unpacked.success());
    let files = files_of(&folder);
    let has = |end: &str, content: &[u8]| {
        files.iter().any(|(path, bytes)| path.ends_with(end) && bytes == content)
    };
    assert!(has("a/inner.html", &nenrin.cat(&format!("{top}a/inner.html"))), "{files:?}");
    assert!(has("i.png", b"not really a picture"), "{files:?}");
    let page = download(4, &format!("kind=page&url={top}"), "page.html");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("The front page") && page.contains("data:image/png"), "{page}");
    running.signal("TERM");
    running.finish().expect(0);
}

fn files_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files_of(&path)),
            false => found.push((path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
    found
}
