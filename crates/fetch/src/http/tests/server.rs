//! Small servers on loopback that do exactly what a test says, however wrong.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestServer {
    /// Runs `handle` on every connection, with its number from 0.
    pub(super) async fn start<F, Fut>(handle: F) -> Self
    where
        F: Fn(TcpStream, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self::start_on("127.0.0.1:0", handle).await
    }

    pub(super) async fn start_on<F, Fut>(address: &str, handle: F) -> Self
    where
        F: Fn(TcpStream, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(handle(stream, number));
            }
        });
        Self { address, accepted, task }
    }

    /// Answers the first request of every connection with these bytes and closes.
    pub(super) async fn answering_once(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |mut stream, _| {
            let answer = answer.clone();
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
                // Closing with bytes unread would reset the connection under the answer.
                let _ = stream.read(&mut [0; 64]).await;
            }
        })
        .await
    }

    /// Answers every request of every connection with these bytes.
    pub(super) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |mut stream, _| {
            let answer = answer.clone();
            async move {
                while read_request(&mut stream).await.is_some() {
                    let _ = stream.write_all(&answer).await;
                }
            }
        })
        .await
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections were made.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// The bytes of one request head; none when the client has closed.
pub(super) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(head)
}
