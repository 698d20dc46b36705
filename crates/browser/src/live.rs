use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The live web that a replayed page must not reach: a server that counts every connection.
pub struct LiveWeb {
    /// Where it listens, on loopback.
    pub port: u16,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    visits: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl LiveWeb {
    /// Begins to listen.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(note(stream, Arc::clone(&shared)));
            }
        });
        Self { port, seen }
    }

    /// Connections made so far: even one without a request is one too many.
    pub fn visits(&self) -> usize {
        self.seen.visits.load(Ordering::SeqCst)
    }

    /// The first lines of the requests made so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }
}

async fn note(mut stream: TcpStream, seen: Arc<Seen>) {
    let mut buffer = [0; 2000];
    let n = stream.read(&mut buffer).await.unwrap_or(0);
    let start = &buffer[..n];
    // Browsers contact their makers, whatever the options; the hosts of pages under test end with
    // `.test`, also in the name that TLS sends.
    let names = |word: &[u8]| start.windows(word.len()).any(|window| window == word);
    let is_tls = start.first() == Some(&0x16);
    if !names(b".test") && (is_tls || names(b".google.com") || names(b".googleapis.com")) {
        return;
    }
    seen.visits.fetch_add(1, Ordering::SeqCst);
    let line = String::from_utf8_lossy(start).lines().take(2).collect();
    seen.requests.lock().unwrap().push(line);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlive";
    let _ = stream.write_all(answer.as_bytes()).await;
}
