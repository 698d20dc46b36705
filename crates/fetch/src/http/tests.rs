mod gallery;
mod heads;
mod limits;
mod memory;
mod reuse;
mod roads;
mod secure;
mod server;

use super::*;
use crate::AddressPolicy;
use server::TestServer;

/// Options with times that let a test fail quickly.
fn quick() -> FetchOptions {
    FetchOptions {
        user_agent: "nenrin-test".to_owned(),
        dns_timeout: Duration::from_secs(3),
        connect_timeout: Duration::from_millis(500),
        tls_timeout: Duration::from_millis(500),
        head_timeout: Duration::from_millis(500),
        idle_timeout: Duration::from_millis(500),
        total_timeout: Duration::from_secs(5),
        ..FetchOptions::default()
    }
}

fn fetcher() -> Fetcher {
    Fetcher::new(quick()).unwrap()
}

fn request(url: &str) -> FetchRequest {
    FetchRequest {
        addresses: AddressPolicy::AllowPrivate,
        ..FetchRequest::new(CanonicalUrl::parse(url).unwrap())
    }
}

fn text(exchange: &Exchange) -> String {
    String::from_utf8(exchange.body.front(usize::MAX).unwrap().into_owned()).unwrap()
}

/// What one request to a server that always answers with these bytes, and then closes, brings.
async fn answered_with(answer: impl Into<Vec<u8>>) -> Result<Exchange, FetchFailure> {
    let server = TestServer::answering_once(answer).await;
    fetcher().fetch(&request(&server.url("/"))).await
}
