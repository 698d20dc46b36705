//! Sites behind a log-in: cookies and headers go where they belong, are never shown, and a log-in that
//! ends pauses the site before anything wrong is stored.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::support::{Nenrin, Ran, Reply, Request, Site, get, until};

const CONFIG: &str = "[politeness]\ndelay = \"50ms\"\n";
const LOGIN: &str = "<title>Door</title><h1>Please log in to the members' area of this small club</h1>\
    <form method=post><label>Your name <input name=user></label><label>Your password \
    <input type=password name=password></label><button>Log in now</button></form>";

fn has_cookie(request: &Request, wanted: &str) -> bool {
    let sent = request.headers.get("cookie").map(String::as_str).unwrap_or_default();
    sent.split("; ").any(|pair| pair == wanted)
}

/// A club whose sessions change with every visit of the top page, and end when told so.
/// `how`: 0 as it should be, 1 logged out with a redirect, 2 logged out with the log-in page itself.
fn club(how: Arc<AtomicUsize>, elsewhere: String) -> Site {
    Site::serve(move |request| {
        if request.path == "/robots.txt" {
            return Reply::status("404 Not Found");
        }
        if request.path.starts_with("/door") {
            return Reply::html(LOGIN).header("Set-Cookie", "sid=anonymous; Path=/");
        }
        let is_member =
            has_cookie(request, "sid=topsecret1") || has_cookie(request, "sid=topsecret2");
        let how = how.load(Ordering::SeqCst);
        if !is_member || how == 1 {
            let moved = Reply::new("302 Found", "text/plain", "");
            let moved = moved.header("Location", &format!("/door?next={}", request.path));
            return moved.header("Set-Cookie", "sid=anonymous; Path=/");
        }
        if how == 2 {
            return Reply::html(LOGIN).header("Set-Cookie", "sid=anonymous; Path=/");
        }
        match request.path.as_str() {
            "/" => Reply::html(format!(
                "<p>Welcome, member! <a href=/list>list</a> <a href=/logout>leave</a> \
                 <img src='{elsewhere}'>"
            ))
            .header("Set-Cookie", "sid=topsecret2; Path=/; HttpOnly"),
            "/list" => Reply::html("<p>The names of all members of the club are secret."),
            "/logout" => Reply::html("bye").header("Set-Cookie", "sid=; Max-Age=0; Path=/"),
            _ => Reply::status("404 Not Found"),
        }
    })
}

fn never_shown(nenrin: &Nenrin, ran: &Ran) {
    for secret in ["topsecret", "dG9wc2VjcmV0"] {
        assert!(!ran.said().contains(secret), "{}", ran.said());
    }
    let mut folders = vec![nenrin.archive().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.metadata().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let bytes = std::fs::read(entry.path()).unwrap();
                    let has = |secret: &[u8]| bytes.windows(secret.len()).any(|w| w == secret);
                    assert!(!has(b"topsecret"), "{}", entry.path().display());
                }
            }
        }
    }
}

#[test]
fn a_login_is_used_renewed_and_never_shown_and_its_end_pauses_the_site() {
    let other = Site::serve(|_| Reply::new("200 OK", "image/png", "picture"));
    let how = Arc::new(AtomicUsize::new(0));
    // Another name of this machine is another host.
    let elsewhere = other.url("/picture.png").replace("127.0.0.1", "localhost");
    let club = club(how.clone(), elsewhere);
    let nenrin = Nenrin::new().with_config(CONFIG);
    let cookies = |value: &str| {
        let text = format!("127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{value}\n");
        nenrin.file("cookies.txt", &text)
    };
    let headers = nenrin.file("headers", "Basic: me:topsecret\n");
    let (top, door) = (club.url("/"), club.url("/door"));
    let file = cookies("topsecret1");
    let added = nenrin.run(&[
        "site",
        "add",
        &top,
        "--name",
        "club",
        "--allow-private",
        "--manual",
        "--cookies",
        &file,
        "--secret-headers",
        &headers,
        "--login-page",
        &door,
    ]);
    never_shown(&nenrin, &added.expect(0));
    let key = nenrin.archive().with_file_name("archive.login-key");
    assert!(key.exists(), "the key is beside the archive");

    let collected = nenrin.run(&["collect", &top]).expect(0);
    never_shown(&nenrin, &collected);
    let members = nenrin.cat(&club.url("/list"));
    assert!(String::from_utf8(members).unwrap().contains("names of all members"));
    let requests = club.take_requests();
    let asked = |path: &str| requests.iter().find(|request| request.path == path);
    assert!(has_cookie(asked("/").unwrap(), "sid=topsecret1"));
    assert!(has_cookie(asked("/list").unwrap(), "sid=topsecret2"), "an answer changed it");
    assert_eq!(asked("/list").unwrap().headers["authorization"], "Basic bWU6dG9wc2VjcmV0");
    assert!(asked("/logout").is_none(), "nobody logs out");
    for path in ["/robots.txt", "/door"] {
        let plain = &asked(path).unwrap().headers;
        assert!(!plain.contains_key("cookie") && !plain.contains_key("authorization"), "{path}");
    }
    for request in other.requests() {
        let names: Vec<&String> = request.headers.keys().collect();
        assert!(!request.headers.contains_key("cookie"), "{names:?}");
        assert!(!request.headers.contains_key("authorization"), "{names:?}");
    }

    // What leaves the archive has no secrets either.
    let warc = nenrin.file("club.warc", "");
    std::fs::remove_file(&warc).unwrap();
    nenrin.run(&["export", "warc", "--site", "club", "-o", &warc]).expect(0);
    let exported = String::from_utf8_lossy(&std::fs::read(&warc).unwrap()).into_owned();
    assert!(exported.contains("names of all members") && !exported.contains("topsecret"));
    let exported = exported.to_lowercase();
    for name in ["\ncookie", "\nauthorization", "\nset-cookie"] {
        assert!(exported.contains(&format!("{name}: redacted\r\n")), "{name}: {exported}");
    }

    for ended in [1, 2] {
        how.store(ended, Ordering::SeqCst);
        let failed = nenrin.run(&["collect", &top]);
        assert_ne!(failed.code, Some(0), "{}", failed.said());
        never_shown(&nenrin, &failed);
        assert!(failed.said().contains("logged out"), "{}", failed.said());
        let shown = nenrin.run(&["site", "show", "club"]);
        shown.expect_said(0, &["(paused)", "logged out", "--cookies FILE"]);
        let json = nenrin.run(&["--json", "site", "show", "club"]).document();
        assert_eq!(json["login"]["is_set"], true, "{json}");
        assert!(json["login"]["logged_out"]["detail"].as_str().unwrap().contains("logged out"));
        assert_eq!(nenrin.versions(&top).len(), 1, "what came is not a version");
        let (code, said) = serve_and_get(&nenrin, "/api/v1/sites/1");
        assert!(code == 200 && said.contains("logged out"), "{code} {said}");

        // A new log-in, and the site goes on.
        how.store(0, Ordering::SeqCst);
        let file = cookies("topsecret1");
        nenrin.run(&["site", "set", "club", "--cookies", &file]).expect(0);
        club.take_requests();
        nenrin.run(&["collect", &top]).expect(0);
        let requests = club.requests();
        let sent = |request: &Request| has_cookie(request, "sid=anonymous");
        assert!(!requests.iter().any(sent), "a logged-out jar is not kept");
    }
    nenrin.assert_sound();

    // Without its key nothing is asked for.
    std::fs::remove_file(&key).unwrap();
    club.take_requests();
    let failed = nenrin.run(&["collect", &top]);
    assert_ne!(failed.code, Some(0), "{}", failed.said());
    assert!(club.requests().iter().all(Request::is_about_the_server), "{:?}", club.requests());
    nenrin.run(&["site", "show", "club"]).expect_said(0, &["cannot be read"]);
}

/// What a running interface answers.
fn serve_and_get(nenrin: &Nenrin, path: &str) -> (u16, String) {
    let anywhere = ["--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&[&["serve", "--json"], &anywhere[..]].concat());
    let origin = running.first_line()["interface"].as_str().unwrap().to_owned();
    let (status, _, body) = get(&format!("{}{path}", origin.trim_end_matches('/')));
    (status, body)
}

#[test]
fn a_mistake_in_a_file_of_secrets_is_named_without_them() {
    let nenrin = Nenrin::new();
    nenrin.run(&["site", "add", "https://example.com/"]).expect(0);
    for (text, option) in [
        ("example.com\tTRUE\t/\tTRUE\tsoon\tsid\ttopsecret", "--cookies"),
        ("topsecret", "--cookies"),
        ("topsecret", "--secret-headers"),
        ("Basic: topsecret", "--secret-headers"),
        ("Host: topsecret", "--secret-headers"),
    ] {
        let file = nenrin.file("given", text);
        let ran = nenrin.run(&["site", "set", "example.com", option, &file]);
        assert!(ran.code != Some(0) && ran.said().contains("line 1"), "{}", ran.said());
        assert!(!ran.said().contains("topsecret"), "{}", ran.said());
    }
    nenrin
        .run(&["site", "set", "example.com", "--header", "Cookie: a=b"])
        .expect_said(2, &["--secret-headers FILE"]);
}

/// A display without a screen, until it is dropped.
struct Display(std::process::Child, String);

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn display() -> Option<Display> {
    use std::io::{BufRead, BufReader};
    let mut command = std::process::Command::new("Xvfb");
    command.args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let Ok(mut child) = command.spawn() else {
        eprintln!("SKIPPED: no Xvfb found (Debian: apt-get install xvfb)");
        return None;
    };
    let mut number = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut number).unwrap();
    Some(Display(child, format!(":{}", number.trim())))
}

#[test]
fn a_person_logs_in_in_a_window_and_the_site_is_visited_so() {
    let Some(display) = display() else { return };
    // Whoever opens the door sends the form: a person would press the button.
    let club = Site::serve(|request| match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/door") if request.body == "name=member" => {
            Reply::html("<p>Welcome").header("Set-Cookie", "sid=topsecret1; Path=/; HttpOnly")
        }
        (_, "/door") => Reply::html(
            "<form method=post><input name=name value=member></form><script>\
             setTimeout(() => document.forms[0].submit(), 300)</script>",
        ),
        (_, "/") if has_cookie(request, "sid=topsecret1") => Reply::html("<p>For members"),
        (_, "/robots.txt") => Reply::status("404 Not Found"),
        _ => Reply::status("401 Unauthorized"),
    });
    let nenrin =
        Nenrin::new().with_config("[render]\nas_root = true\n[politeness]\ndelay = \"50ms\"\n");
    let (top, door) = (club.url("/"), club.url("/door"));
    let add = ["site", "add", &top, "--name", "club", "--allow-private", "--manual"];
    nenrin.run(&[&add[..], &["--login-page", &door]].concat()).expect(0);
    let mut without = nenrin.command(&["site", "login", "club"]);
    let said = without.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("no display") || said.contains("no Chromium"), "{said}");
    if said.contains("no Chromium") {
        return;
    }
    let profiles = tempfile::tempdir().unwrap();
    let mut command = nenrin.command(&["site", "login", "club"]);
    command.env("DISPLAY", &display.1).env("TMPDIR", profiles.path());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let running = command.spawn().unwrap();
    until("someone to log in", || club.requests().iter().any(|request| request.method == "POST"));
    // The window is closed once its cookies were seen.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let browser = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_first = line.contains(profiles.path().to_str()?) && !line.contains("--type=");
        entry.file_name().to_str()?.parse::<u32>().ok().filter(|_| is_first)
    });
    for process in browser {
        let _ = std::process::Command::new("kill").arg(process.to_string()).status();
    }
    let ended = running.wait_with_output().unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ended.status.success() && !said.contains("topsecret"), "{said}");
    nenrin.run(&["collect", &top]).expect(0);
    assert!(String::from_utf8(nenrin.cat(&top)).unwrap().contains("For members"));
}
