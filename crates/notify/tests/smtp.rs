//! Letters over a real SMTP connection on loopback.
#![expect(clippy::unwrap_used, reason = "a broken connection must fail the test")]

use std::sync::{Arc, Mutex};

use nenrin_archive::{Archive, Capture, OpenOptions};
use nenrin_notify::{Letter, Links, MailSettings, Mailer, Notifier, Security, SendTest};
use nenrin_state::{SiteConditions, Watch, WatchEvent, WatchId, WatchedPart};
use nenrin_urls::CanonicalUrl;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

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
            tokio::spawn(talk(stream, kept.clone()));
        }
    });
    (port, received)
}

async fn talk(stream: TcpStream, received: Received) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(b"220 test\r\n").await.unwrap();
    while let Ok(Some(line)) = lines.next_line().await {
        let answer = match line.to_ascii_uppercase() {
            line if line.starts_with("EHLO") => "250-test\r\n250 8BITMIME\r\n",
            line if line.starts_with("DATA") => {
                writer.write_all(b"354 go on\r\n").await.unwrap();
                let mut letter = String::new();
                while let Ok(Some(line)) = lines.next_line().await {
                    if line == "." {
                        break;
                    }
                    letter += &line;
                    letter.push('\n');
                }
                received.lock().unwrap().push(letter);
                "250 taken\r\n"
            }
            line if line.starts_with("QUIT") => "221 bye\r\n",
            _ => "250 ok\r\n",
        };
        writer.write_all(answer.as_bytes()).await.unwrap();
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
