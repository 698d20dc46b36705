use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Connections that are idle between two requests, limited in number and age. A server gets one
/// request at a time, so a connection is taken out for an exchange and put back after it.
pub(crate) struct Pool<K, C> {
    /// The one that has been idle longest is first.
    idle: VecDeque<Idle<K, C>>,
    max_count: usize,
    max_age: Duration,
}

struct Idle<K, C> {
    /// Where it leads, and how.
    key: K,
    connection: C,
    until: Instant,
}

impl<K: PartialEq, C> Pool<K, C> {
    pub(crate) fn new(max_count: usize, max_age: Duration) -> Self {
        Self { idle: VecDeque::new(), max_count, max_age }
    }

    /// The connection with this key that was used last.
    pub(crate) fn take(&mut self, key: &K, now: Instant) -> Option<C> {
        self.drop_old(now);
        let at = self.idle.iter().rposition(|idle| idle.key == *key)?;
        self.idle.remove(at).map(|idle| idle.connection)
    }

    /// Stores a connection; if the pool is full, the one idle longest is dropped.
    pub(crate) fn put(&mut self, key: K, connection: C, now: Instant) {
        self.drop_old(now);
        self.idle.push_back(Idle { key, connection, until: now + self.max_age });
        if self.idle.len() > self.max_count {
            self.idle.pop_front();
        }
    }

    /// Drops connections that were idle too long.
    pub(crate) fn drop_old(&mut self, now: Instant) {
        let old = self.idle.partition_point(|idle| idle.until <= now);
        self.idle.drain(..old);
    }

    /// Drops all connections.
    pub(crate) fn drop_all(&mut self) {
        self.idle.clear();
    }

    /// When the next connection will have been idle too long.
    pub(crate) fn next_old(&self) -> Option<Instant> {
        self.idle.front().map(|idle| idle.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::{CanonicalUrl, Server};

    fn server(name: &str) -> Server {
        CanonicalUrl::parse(&format!("http://{name}/")).unwrap().server()
    }

    #[tokio::test]
    async fn connections_are_kept_per_server_and_bounded_in_number() {
        let now = Instant::now();
        let mut pool = Pool::new(2, Duration::from_secs(10));
        pool.put(server("a"), 1, now);
        pool.put(server("b"), 2, now);
        pool.put(server("b"), 3, now);
        assert_eq!(pool.take(&server("a"), now), None, "was dropped");
        assert_eq!(pool.take(&server("b"), now), Some(3));
        assert_eq!(pool.take(&server("b"), now), Some(2));
        assert_eq!(pool.take(&server("b"), now), None);
    }

    #[tokio::test]
    async fn a_connection_rests_no_longer_than_its_time() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut pool = Pool::new(9, Duration::from_secs(10));
        pool.put(server("a"), 1, start);
        pool.put(server("b"), 2, after(5));
        assert_eq!(pool.next_old(), Some(after(10)));
        pool.drop_old(after(10));
        assert_eq!(pool.next_old(), Some(after(15)));
        assert_eq!(pool.take(&server("b"), after(15)), None);
        assert_eq!(pool.next_old(), None);
    }

    #[tokio::test]
    async fn a_pool_of_nothing_keeps_nothing() {
        let now = Instant::now();
        let mut pool = Pool::new(0, Duration::from_secs(10));
        pool.put(server("a"), 1, now);
        assert_eq!(pool.take(&server("a"), now), None);
    }
}
