//! Bodies share their memory, large ones go to files, and work follows bytes.

use std::io::Read as _;

use tokio::io::AsyncWriteExt;

use super::server::read_request;
use super::*;
use crate::Memory;

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 3 % 251) as u8).collect()
}

async fn server_of(body: Vec<u8>) -> TestServer {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    TestServer::answering([head.into_bytes(), body].concat()).await
}

#[tokio::test]
async fn a_large_body_is_in_a_file_without_a_name_and_gone_with_its_last_user() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::new(1 << 20, folder.path().to_owned());
    let server = server_of(pattern(3_000_000)).await;
    let fetcher = fetcher().with_memory(memory.clone());
    let body = fetcher.fetch(&request(&server.url("/"))).await.unwrap().body;
    assert!(body.is_spooled());
    assert_eq!((body.len(), memory.spooled_bytes()), (3_000_000, 3_000_000));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let mut read = Vec::new();
    body.reader().read_to_end(&mut read).unwrap();
    assert!(read == pattern(3_000_000));
    assert_eq!(*body.front(1000).unwrap(), pattern(1000));
    let other = body.clone();
    drop(body);
    assert_eq!(memory.spooled_bytes(), 3_000_000);
    drop(other);
    assert_eq!(memory.spooled_bytes(), 0);
}

#[tokio::test]
async fn bodies_that_find_no_room_in_memory_go_to_files_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    // Room for one body of 100,000 bytes, beside the half for reading.
    let memory = Memory::new(300_000, folder.path().to_owned());
    let server = server_of(pattern(100_000)).await;
    let fetcher = fetcher().with_memory(memory);
    let fetch = async || fetcher.fetch(&request(&server.url("/"))).await.unwrap().body;
    let (first, second) = (fetch().await, fetch().await);
    assert_eq!((first.is_spooled(), second.is_spooled()), (false, true));
    assert_eq!(*second.front(usize::MAX).unwrap(), pattern(100_000));
    drop(first);
    assert!(!fetch().await.is_spooled());
}

#[tokio::test]
async fn a_body_without_room_on_the_disk_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::new(1 << 20, folder.path().to_owned());
    memory.set_spare_bytes(4_000_000);
    let server = server_of(pattern(6_000_000)).await;
    let fetcher = fetcher().with_memory(memory.clone());
    let failure = fetcher.fetch(&request(&server.url("/"))).await.unwrap_err();
    assert_eq!(failure.kind(), "unkept", "{failure}");
    assert!(failure.to_string().contains("no space"), "{failure}");
    assert_eq!(memory.spooled_bytes(), 0);
    memory.set_spare_bytes(14_000_000);
    assert!(fetcher.fetch(&request(&server.url("/"))).await.is_ok());
}

#[tokio::test]
async fn who_reads_waits_for_memory_and_gives_back_what_is_left() {
    let memory = Memory::new(2 << 20, std::env::temp_dir());
    let mut all = memory.for_reading(u64::MAX).await.unwrap();
    let waiting = timeout(Duration::from_millis(20), memory.for_reading(1)).await;
    assert!(waiting.is_err());
    all.shrink_to(1 << 19);
    let half = timeout(Duration::from_millis(20), memory.for_reading(1 << 19)).await;
    assert!(half.is_ok());
}

#[tokio::test]
async fn a_body_in_endless_one_byte_chunks_is_given_up() {
    let server = TestServer::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        while stream.write_all(&b"1\r\nx\r\n".repeat(1000)).await.is_ok() {}
    })
    .await;
    let failure = fetcher().fetch(&request(&server.url("/"))).await.unwrap_err();
    assert!(failure.to_string().contains("too small parts"), "{failure}");
    let FetchFailure::BodyCut { received, .. } = failure else { panic!("{failure}") };
    assert!(received < 100_000, "{received}");
}

#[tokio::test]
async fn a_body_in_chunks_of_a_line_is_taken() {
    let lines = b"20\r\n0123456789abcdef0123456789abcde\n\r\n".repeat(50_000);
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let exchange = answered_with([&head[..], &lines, b"0\r\n\r\n"].concat()).await.unwrap();
    assert_eq!(exchange.body.len(), 1_600_000);
}

#[tokio::test]
async fn a_head_in_thousands_of_parts_is_given_up() {
    let server = TestServer::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        let _ = stream.set_nodelay(true);
        let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(20_000));
        for byte in head.bytes() {
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let options = FetchOptions {
        head_timeout: Duration::from_secs(20),
        total_timeout: Duration::from_secs(40),
        ..quick()
    };
    let fetched = Fetcher::new(options).unwrap().fetch(&request(&server.url("/"))).await;
    // A busy machine may hand over several bytes at once; then there are fewer parts.
    if let Err(failure) = fetched {
        assert!(failure.to_string().contains("parts"), "{failure}");
    }
}
