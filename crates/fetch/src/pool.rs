use std::collections::VecDeque;
use std::time::Duration;

use nenrin_urls::Server;
use tokio::time::Instant;

/// Connections that rest between two requests, bounded in number and age. One server is asked one
/// thing at a time, so a connection is taken out for an exchange and put back after it.
pub(crate) struct Pool<C> {
    /// The one that rests longest is first.
    resting: VecDeque<Resting<C>>,
    max_count: usize,
    max_age: Duration,
}

struct Resting<C> {
    server: Server,
    connection: C,
    until: Instant,
}

impl<C> Pool<C> {
    pub(crate) fn new(max_count: usize, max_age: Duration) -> Self {
        Self { resting: VecDeque::new(), max_count, max_age }
    }

    /// The connection to this server that was used last.
    pub(crate) fn take(&mut self, server: &Server, now: Instant) -> Option<C> {
        self.drop_old(now);
        let place = self.resting.iter().rposition(|resting| resting.server == *server)?;
        self.resting.remove(place).map(|resting| resting.connection)
    }

    /// Keeps a connection; the one that rests longest makes room for it.
    pub(crate) fn put(&mut self, server: Server, connection: C, now: Instant) {
        self.drop_old(now);
        self.resting.push_back(Resting { server, connection, until: now + self.max_age });
        if self.resting.len() > self.max_count {
            self.resting.pop_front();
        }
    }

    /// Drops what has rested too long.
    pub(crate) fn drop_old(&mut self, now: Instant) {
        let old = self.resting.partition_point(|resting| resting.until <= now);
        self.resting.drain(..old);
    }

    /// When the next connection will have rested too long.
    pub(crate) fn next_old(&self) -> Option<Instant> {
        self.resting.front().map(|resting| resting.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_urls::CanonicalUrl;

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
        assert_eq!(pool.take(&server("a"), now), None, "made room");
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
