//! Letters over a real SMTP connection on loopback.
#![expect(clippy::unwrap_used, reason = "a broken connection must fail the test")]

use std::{
    io::BufRead,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use nenrin_archive::{Archive, Capture, OpenOptions};
use nenrin_notify::{Letter, Links, MailSettings, Mailer, Notifier, Security, SendTest};
use nenrin_state::{SiteConditions, Watch, WatchEvent, WatchId, WatchedPart};
use nenrin_urls::CanonicalUrl;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

type Received = Arc<Mutex<Vec<String>>>;

/// A mail server that takes every letter, or refuses a given number of connections.
async fn server(refusals: usize) -> (u16, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Received::default();
    let kept = received.clone();
    tokio::spawn(async move {
        let mut refused = 0;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if refused < refusals {
                refused += 1;
                continue;
            }
            let kept = kept.clone();
            tokio::spawn(async move { talk(stream, kept, &[]).await });
        }
    });
    (port, received)
}

/// Speaks SMTP; returns the connection where the client asks to change to TLS.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    received: Received,
    offers: &[&str],
) -> Option<S> {
    stream.write_all(b"220 test\r\n").await.unwrap();
    speak(stream, received, offers).await
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    received: Received,
    offers: &[&str],
) -> Option<S> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while matches!(stream.read_line(&mut line).await, Ok(1..)) {
        let answer = match line.trim_end().to_ascii_uppercase() {
            line if line.starts_with("EHLO") => {
                let offers: String =
                    offers.iter().map(|offer| format!("250-{offer}\r\n")).collect();
                format!("250-test\r\n{offers}250 8BITMIME\r\n")
            }
            line if line == "STARTTLS" => {
                stream.write_all(b"220 go on\r\n").await.unwrap();
                return Some(stream.into_inner());
            }
            line if line.starts_with("AUTH PLAIN ") => {
                received.lock().unwrap().push(line);
                "235 welcome\r\n".to_owned()
            }
            line if line.starts_with("DATA") => {
                stream.write_all(b"354 go on\r\n").await.unwrap();
                let mut letter = String::new();
                let mut line = String::new();
                while matches!(stream.read_line(&mut line).await, Ok(1..)) && line != ".\r\n" {
                    letter += line.trim_end_matches(['\r', '\n']);
                    letter.push('\n');
                    line.clear();
                }
                received.lock().unwrap().push(letter);
                "250 taken\r\n".to_owned()
            }
            line if line.starts_with("QUIT") => "221 bye\r\n".to_owned(),
            _ => "250 ok\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
        line.clear();
    }
    None
}

/// A text of a certificate or key, as files have it.
fn pem(name: &str, der: &[u8]) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN {name}-----\n{}-----END {name}-----\n", lines.collect::<String>())
}

/// A certificate authority of the test's own, and a server's certificate from it with its key.
struct Authority {
    root: String,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let root = pem("CERTIFICATE", issuer.der());
    Authority { root, certificate: certificate.der().to_vec(), key: key.serialize_der() }
}

impl Authority {
    fn acceptor(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone().into()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A mail server that takes letters over TLS alone: from the first byte, or after `STARTTLS`.
async fn secure_server(acceptor: TlsAcceptor, security: Security) -> (u16, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Received::default();
    let kept = received.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, kept) = (acceptor.clone(), kept.clone());
            tokio::spawn(async move {
                match security {
                    Security::Starttls => {
                        let plain = talk(stream, Received::default(), &["STARTTLS"]).await;
                        let Some(stream) = plain else { return };
                        let Ok(stream) = acceptor.accept(stream).await else { return };
                        speak(stream, kept, &["AUTH PLAIN"]).await;
                    }
                    _ => {
                        let Ok(stream) = acceptor.accept(stream).await else { return };
                        talk(stream, kept, &["AUTH PLAIN"]).await;
                    }
                }
            });
        }
    });
    (port, received)
}

#[tokio::test]
async fn letters_and_passwords_go_over_tls_to_the_right_server_alone() {
    let folder = tempfile::tempdir().unwrap();
    let authority = authority();
    let acceptor = authority.acceptor();
    let ca_file = folder.path().join("ca.pem").display().to_string();
    std::fs::write(&ca_file, &authority.root).unwrap();
    for security in [Security::Tls, Security::Starttls] {
        let (port, received) = secure_server(acceptor.clone(), security).await;
        let good = MailSettings {
            server: format!("localhost:{port}"),
            security,
            ca_file: ca_file.clone(),
            user: "archive".into(),
            ..settings(port)
        };
        let password = || Some("open sesame".to_owned());
        SendTest::send(&good, password(), 0).await.unwrap();
        let got = letters(&received, 2).await;
        assert!(got[0].starts_with("AUTH PLAIN "), "{got:?}");
        assert!(got[1].contains("Subject: Nenrin: a test letter"), "{got:?}");
        // An authority that nobody named, a name that is not the server's, a server without TLS.
        let strange = MailSettings { ca_file: String::new(), ..good.clone() };
        let misnamed = MailSettings { server: format!("127.0.0.1:{port}"), ..good.clone() };
        let (plain, heard) = server(0).await;
        let plain = MailSettings { server: format!("localhost:{plain}"), ..good.clone() };
        for wrong in [strange, misnamed, plain] {
            let error = SendTest::send(&wrong, password(), 0).await.unwrap_err().to_string();
            assert!(error.contains("did not take the letter"), "{error}");
        }
        assert_eq!((received.lock().unwrap().len(), heard.lock().unwrap().len()), (2, 0));
    }
    let (port, _) = server(0).await;
    let missing = MailSettings {
        security: Security::Tls,
        ca_file: "/nonexistent.pem".into(),
        ..settings(port)
    };
    let error = missing.check().unwrap_err().to_string();
    assert!(error.starts_with("mail.ca_file `/nonexistent.pem` cannot be read"), "{error}");
}

/// A program of others that speaks SMTP (aiosmtpd), which `scripts/test` installs.
#[expect(clippy::print_stderr, reason = "a judge that was not asked must be noticed")]
fn judge() -> Option<PathBuf> {
    let folder = std::env::var_os("NENRIN_JUDGES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/judges"),
        PathBuf::from,
    );
    let python = folder.join("bin/python");
    let has_it = Command::new(&python).args(["-c", "import aiosmtpd"]).output();
    if has_it.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(std::env::var_os("CI").is_none(), "no aiosmtpd in {}", folder.display());
    eprintln!("SKIPPED: no aiosmtpd in {}; scripts/test installs it", folder.display());
    None
}

/// Ends the program with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_server_of_others_takes_letters_over_tls() {
    let Some(python) = judge() else { return };
    let folder = tempfile::tempdir().unwrap();
    let authority = authority();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    let ca_file = file("ca.pem", &authority.root);
    let certificate = file("server.pem", &pem("CERTIFICATE", &authority.certificate));
    let key = file("key.pem", &pem("PRIVATE KEY", &authority.key));
    for (security, name) in [(Security::Tls, "tls"), (Security::Starttls, "starttls")] {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server.py");
        let mut server = Command::new(&python)
            .args([script, name, &certificate, &key])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufReader::new(server.stdout.take().unwrap()).lines();
        let _server = Process(server);
        let port: u16 = lines.next().unwrap().unwrap().trim().parse().unwrap();
        let good = MailSettings {
            server: format!("localhost:{port}"),
            security,
            ca_file: ca_file.clone(),
            user: "archive".into(),
            ..settings(port)
        };
        let wrong = SendTest::send(&good, Some("sesame".to_owned()), 0).await.unwrap_err();
        assert!(wrong.to_string().contains("did not take the letter"), "{name}: {wrong}");
        SendTest::send(&good, Some("open sesame".to_owned()), 0).await.unwrap();
        let letter: serde_json::Value =
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(letter["user"], "archive", "{name}");
        assert_eq!(letter["from"], "archive@example.org", "{name}");
        assert_eq!(letter["to"], serde_json::json!(["reader@example.org"]), "{name}");
        let content = letter["content"].as_str().unwrap();
        assert!(content.contains("Subject: Nenrin: a test letter"), "{name}: {content}");
    }
}

fn settings(port: u16) -> MailSettings {
    MailSettings {
        server: format!("127.0.0.1:{port}"),
        security: Security::None,
        from: "Archive <archive@example.org>".into(),
        to: vec!["reader@example.org".into()],
        ..MailSettings::default()
    }
}

async fn letters(received: &Received, count: usize) -> Vec<String> {
    for _ in 0..200 {
        let now = received.lock().unwrap().clone();
        if now.len() >= count {
            return now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("no letter came: {:?}", received.lock().unwrap());
}

#[tokio::test]
async fn a_test_letter_arrives_and_a_silent_server_is_named() {
    let (port, received) = server(0).await;
    SendTest::send(&settings(port), None, 1_800_000_000).await.unwrap();
    let letter = letters(&received, 1).await.remove(0);
    assert!(letter.contains("Subject: Nenrin: a test letter"), "{letter}");
    assert!(
        letter.contains("From: \"Archive\" <archive@example.org>")
            || letter.contains("From: Archive <archive@example.org>"),
        "{letter}"
    );
    assert!(letter.contains("Date: Fri, 15 Jan 2027 08:00:00"), "{letter}");
    let unset = MailSettings::default();
    let error = SendTest::send(&unset, None, 0).await.unwrap_err().to_string();
    assert!(error.starts_with("mail.server is empty"), "{error}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = listener.local_addr().unwrap().port();
    drop(listener);
    let error = SendTest::send(&settings(free), None, 0).await.unwrap_err().to_string();
    assert!(error.contains(&format!("127.0.0.1:{free} did not take the letter")), "{error}");
}

#[tokio::test]
async fn a_title_can_add_neither_a_header_nor_a_recipient() {
    let (port, received) = server(0).await;
    let mailer = Mailer::new(&settings(port), None).unwrap().unwrap();
    let evil = "x\r\nBcc: victim@example.org\r\n\r\nbody \u{7}\u{202e}日本<b>";
    let letter = Letter::new(evil, "a\r\n.\r\nMAIL FROM:<x@e.com>\r\n".into(), "<p>b</p>".into());
    mailer.send(&letter, 0).await.unwrap();
    let all = letters(&received, 1).await;
    assert_eq!(all.len(), 1, "a line with a point alone ends no letter");
    let head = all[0].split("\n\n").next().unwrap();
    assert!(!head.lines().any(|line| line.starts_with("Bcc:")), "{head}");
    assert_eq!(head.lines().filter(|line| line.starts_with("To:")).count(), 1, "{head}");
}

#[tokio::test]
async fn a_watch_is_reported_by_mail_also_after_refusals_and_only_once() {
    let (port, received) = server(1).await;
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
    let url = CanonicalUrl::parse("http://e.com/a").unwrap();
    let conditions = SiteConditions::new(vec![url.clone()]);
    let site = archive.state().add_site("e", &conditions, 0).unwrap().id;
    let watch = Watch {
        id: WatchId(0),
        name: "The price <b>".into(),
        url: url.clone(),
        part: WatchedPart::Selector { selector: "p".into(), nth: 1 },
        on: WatchEvent::Changes,
        paused: false,
        created_s: 0,
        last: None,
        trouble: None,
    };
    archive.state().keep_watch(&watch).unwrap();
    let take = |at_s: i64, body: &str| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
        let mut ingest = archive.ingest(site).unwrap();
        ingest.take(&Capture::new(&url, at_s, 200, head, body.as_bytes())).unwrap();
        ingest.finish().unwrap();
    };
    fn now_s() -> i64 {
        1_000_000
            + i64::try_from(TICKS.fetch_add(20, std::sync::atomic::Ordering::Relaxed)).unwrap()
    }
    static TICKS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    take(1_000_000, "<p>9 EUR</p>");
    let links = Links { interface: "http://i".into(), replay: "http://r".into() };
    let state = archive.state().clone();
    let notifier = Notifier::new(state.clone(), archive.store().clone(), links, now_s)
        .with_mail(&settings(port), None)
        .unwrap();
    let task = tokio::spawn(notifier.follow(Vec::new));
    for _ in 0..100 {
        if state.watches().unwrap()[0].last.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    take(1_000_100, "<p>8 EUR</p>");
    // Long lines are folded on the way.
    let letter = letters(&received, 1).await.remove(0).replace("=\n", "");
    for part in ["Subject: The price <b>: changed", "9 EUR", "8 EUR", "http://i/watches/1"] {
        assert!(letter.contains(part), "{part} is not in {letter}");
    }
    assert!(letter.contains("The price &lt;b&gt;"), "{letter}");
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(received.lock().unwrap().len(), 1, "not twice");
    assert!(state.watch_hits().unwrap()[0].mailed);
    task.abort();
}

#[tokio::test]
async fn a_digest_has_titles_lines_and_links_and_no_noise() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path(), &OpenOptions::writing()).unwrap();
    let url = |path: &str| CanonicalUrl::parse(&format!("http://e.com/{path}")).unwrap();
    let conditions = SiteConditions::new(vec![url("")]);
    let site = archive.state().add_site("The <b>shop</b>", &conditions, 0).unwrap().id;
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let mut ingest = archive.ingest(site).unwrap();
    for (path, at_s, body) in [
        ("a", 1_000, "<title>Prices &lt;i&gt;</title><p>Apples are sold here every day</p>"),
        ("a", 90_000, "<title>Prices &lt;i&gt;</title><p>Pears are sold here every day</p>"),
        ("b", 90_100, "<title>News</title><p>A new page about trees</p>"),
    ] {
        ingest.take(&Capture::new(&url(path), at_s, 200, head, body.as_bytes())).unwrap();
    }
    ingest.finish().unwrap();
    let links = Links { interface: "http://i".into(), replay: "http://r".into() };
    let (state, store) = (archive.state().clone(), archive.store().clone());
    let of_range =
        |range, lang| nenrin_notify::digest(&state, &store, range, &links, lang).unwrap();
    let letter = of_range((80_000, 100_000), nenrin_lang::Lang::En).unwrap();
    assert_eq!(letter.subject, "Nenrin: 1 new, 1 changed on 1 site");
    for part in ["Prices <i> (changed)", "+ Pears are sold here every day", "News (new)"] {
        assert!(letter.text.contains(part), "{part} is not in {}", letter.text);
    }
    assert!(letter.text.contains("http://r/diff/"), "{}", letter.text);
    assert!(letter.html.contains("Prices &lt;i&gt;") && !letter.html.contains("<b>"));
    let japanese = of_range((80_000, 100_000), nenrin_lang::Lang::Ja).unwrap();
    assert_eq!(japanese.subject, "Nenrin: 1サイトで新規1件、変更1件");
    assert_eq!(of_range((200_000, 300_000), nenrin_lang::Lang::En), None);
}
