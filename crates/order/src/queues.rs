use crate::dary::{parent_of, push_tight, sift_down, sift_up};
use crate::{PageIndex, ServerIndex};

/// A queue entry as one integer: the larger comes first. The lower 32 bits are the page's index,
/// inverted so that the page found earlier is larger. Comparing integers needs no branch, and a
/// heap mostly compares.
pub(crate) trait Key: Copy + Ord {
    /// The page of this entry.
    fn page(self) -> u32;
}

impl Key for u64 {
    fn page(self) -> u32 {
        !(self as u32)
    }
}

impl Key for u128 {
    fn page(self) -> u32 {
        !(self as u32)
    }
}

/// The value by which a queue is ordered; equal priorities are ordered by discovery.
pub(crate) trait Priority: Copy {
    /// Type of the queue entries.
    type Key: Key;

    /// The entry of a page with this priority.
    fn key(self, page: u32) -> Self::Key;

    /// Whether a server's entry depends on how many of its pages wait.
    const COUNTS_WAITING: bool = false;

    /// The entry of a server whose best page has this key, after `pages_taken` of its pages were
    /// taken, while so many wait.
    fn among_servers(best: Self::Key, _pages_taken: u32, _waiting: usize) -> Self::Key {
        best
    }
}

impl Priority for () {
    type Key = u64;

    fn key(self, page: u32) -> u64 {
        u64::from(!page)
    }
}

impl Priority for f64 {
    type Key = u128;

    fn key(self, page: u32) -> u128 {
        // The order of floats as integers: negative ones have all bits inverted, others the sign.
        let bits = self.to_bits();
        let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
        u128::from(ordered) << 32 | u128::from(!page)
    }
}

/// The bit of [`Page::position`] that says the page is in no queue; the other bits are then the
/// owner's note.
const NOT_QUEUED: u32 = 1 << 31;
/// The note until the owner writes one: the page was taken and not collected yet.
pub(crate) const TAKEN: u32 = NOT_QUEUED - 1;
const MARK_SHIFT: u32 = ServerIndex::LIMIT.trailing_zeros();
/// The largest number of servers; the upper byte of the server's number holds the owner's mark.
const MAX_SERVERS: u32 = ServerIndex::LIMIT;
const NOWHERE: u32 = u32::MAX;

/// A priority queue for each server and one of the servers by their best pages: indexed heaps with
/// exact order, and the owner's data for each page.
#[derive(Debug)]
pub(crate) struct ServerQueues<P: Priority, T> {
    pages: Vec<Page<T>>,
    servers: Vec<Server<P::Key>>,
    /// Servers with queued pages, the one with the best page first.
    ranking: Vec<RankedServer<P::Key>>,
}

/// One record per page, so that an addition touches one cache line.
#[derive(Clone, Copy, Debug)]
struct Page<T> {
    data: T,
    /// Position in its server's queue, or [`NOT_QUEUED`] and the owner's note.
    position: u32,
    server_and_mark: u32,
}

impl<T> Page<T> {
    fn server(&self) -> usize {
        (self.server_and_mark & (MAX_SERVERS - 1)) as usize
    }
}

#[derive(Debug)]
struct Server<K> {
    queue: Vec<K>,
    pages_taken: u32,
    /// Position in the ranking of servers, or [`NOWHERE`].
    position: u32,
}

#[derive(Clone, Copy, Debug)]
struct RankedServer<K> {
    best: K,
    server: u32,
}

impl<P: Priority, T> Default for ServerQueues<P, T> {
    fn default() -> Self {
        Self { pages: Vec::new(), servers: Vec::new(), ranking: Vec::new() }
    }
}

impl<P: Priority, T> ServerQueues<P, T> {
    /// Adds a page to its server's queue.
    pub(crate) fn insert(&mut self, server: ServerIndex, priority: P, data: T) -> PageIndex {
        let page = self.add_unqueued(server, TAKEN, data);
        self.put_back(page, priority);
        page
    }

    /// Adds a page that is in no queue.
    pub(crate) fn add_unqueued(&mut self, server: ServerIndex, note: u32, data: T) -> PageIndex {
        assert!(server.0 < MAX_SERVERS, "fewer than 2^24 servers are known");
        assert!(self.pages.len() < NOT_QUEUED as usize, "fewer than 2^31 pages are known");
        let index = self.pages.len() as u32;
        let position = NOT_QUEUED | note;
        push_tight(&mut self.pages, Page { data, position, server_and_mark: server.0 });
        while self.servers.len() <= server.0 as usize {
            push_tight(
                &mut self.servers,
                Server { queue: Vec::new(), pages_taken: 0, position: NOWHERE },
            );
        }
        PageIndex(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// How many pages of a server were taken.
    pub(crate) fn taken_from(&self, server: ServerIndex) -> u32 {
        self.servers.get(server.0 as usize).map_or(0, |server| server.pages_taken)
    }

    pub(crate) fn data(&self, page: PageIndex) -> &T {
        &self.pages[page.0 as usize].data
    }

    pub(crate) fn data_mut(&mut self, page: PageIndex) -> &mut T {
        &mut self.pages[page.0 as usize].data
    }

    pub(crate) fn server(&self, page: PageIndex) -> ServerIndex {
        ServerIndex(self.pages[page.0 as usize].server() as u32)
    }

    /// The owner's note on a page that is in no queue.
    pub(crate) fn note(&self, page: PageIndex) -> Option<u32> {
        let position = self.pages[page.0 as usize].position;
        (position & NOT_QUEUED != 0).then_some(position & !NOT_QUEUED)
    }

    /// Writes a note of 31 bits on a page that is in no queue.
    pub(crate) fn set_note(&mut self, page: PageIndex, note: u32) {
        debug_assert!(self.note(page).is_some() && note < NOT_QUEUED);
        self.pages[page.0 as usize].position = NOT_QUEUED | note;
    }

    /// The owner's mark on a page, 0 at first.
    pub(crate) fn mark(&self, page: PageIndex) -> u8 {
        (self.pages[page.0 as usize].server_and_mark >> MARK_SHIFT) as u8
    }

    pub(crate) fn set_mark(&mut self, page: PageIndex, mark: u8) {
        let word = &mut self.pages[page.0 as usize].server_and_mark;
        *word = *word & (MAX_SERVERS - 1) | u32::from(mark) << MARK_SHIFT;
    }

    /// Number of pages in a server's queue.
    pub(crate) fn waiting(&self, server: ServerIndex) -> usize {
        self.servers.get(server.0 as usize).map_or(0, |server| server.queue.len())
    }

    /// How many pages of each server were taken.
    pub(crate) fn pages_taken(&self) -> impl Iterator<Item = u32> {
        self.servers.iter().map(|server| server.pages_taken)
    }

    pub(crate) fn set_pages_taken(&mut self, server: ServerIndex, pages_taken: u32) {
        self.servers[server.0 as usize].pages_taken = pages_taken;
        self.rank_server(server.0 as usize);
    }

    /// Takes out the best page of a server, or of all.
    pub(crate) fn pop(&mut self, server: Option<ServerIndex>) -> Option<PageIndex> {
        let server = match server {
            Some(server) => server.0,
            None => self.ranking.first()?.server,
        } as usize;
        let page = PageIndex(self.servers.get(server)?.queue.first()?.page());
        self.servers[server].pages_taken += 1;
        self.remove(page);
        Some(page)
    }

    /// Puts a page into its server's queue, unless it is there already.
    pub(crate) fn put_back(&mut self, page: PageIndex, priority: P) {
        if self.note(page).is_none() {
            return;
        }
        let server = self.pages[page.0 as usize].server();
        let queue = &mut self.servers[server].queue;
        push_tight(queue, priority.key(page.0));
        let last = queue.len() - 1;
        if self.sift_up(server, last) == 0 || P::COUNTS_WAITING {
            self.rank_server(server);
        }
    }

    /// Takes a page out of its queue, wherever it is in it.
    pub(crate) fn remove(&mut self, page: PageIndex) {
        let Page { position, .. } = self.pages[page.0 as usize];
        if position & NOT_QUEUED != 0 {
            return;
        }
        self.pages[page.0 as usize].position = NOT_QUEUED | TAKEN;
        let server = self.pages[page.0 as usize].server();
        let queue = &mut self.servers[server].queue;
        let Some(last) = queue.pop() else { return };
        let position = position as usize;
        if position < queue.len() {
            queue[position] = last;
            if self.sift_up(server, position) == position {
                self.sift_down(server, position);
            }
        }
        if queue_is_sparse(&self.servers[server].queue) {
            let queue = &mut self.servers[server].queue;
            queue.shrink_to(queue.len() * 2);
        }
        if position == 0 || P::COUNTS_WAITING {
            self.rank_server(server);
        }
    }

    /// Changes the priority of a page if it is queued.
    pub(crate) fn reprioritise(&mut self, page: PageIndex, priority: P) {
        let Page { position, .. } = self.pages[page.0 as usize];
        if position & NOT_QUEUED != 0 {
            return;
        }
        let server = self.pages[page.0 as usize].server();
        let key = priority.key(page.0);
        let old = std::mem::replace(&mut self.servers[server].queue[position as usize], key);
        let is_raised = key > old;
        let changes_best = if is_raised {
            self.sift_up(server, position as usize) == 0
        } else {
            self.sift_down(server, position as usize);
            position == 0
        };
        if changes_best {
            self.rank_server(server);
        }
    }

    /// Loads the records of several pages at once. The loads overlap, while the changes that follow
    /// would each wait for their own.
    pub(crate) fn touch(&self, pages: &[PageIndex]) {
        let touched = pages.iter().fold(0, |sum, page| sum ^ self.pages[page.0 as usize].position);
        std::hint::black_box(touched);
    }

    /// Changes the data of a page and, if it is queued, raises its priority to what `change`
    /// returns. It looks at the page's record once: this is where an order spends its time.
    pub(crate) fn raise(&mut self, page: PageIndex, change: impl FnOnce(&mut T) -> P) {
        let record = &mut self.pages[page.0 as usize];
        let priority = change(&mut record.data);
        if record.position & NOT_QUEUED != 0 {
            return;
        }
        let (server, position) = (record.server(), record.position as usize);
        let queue = &mut self.servers[server].queue;
        queue[position] = priority.key(page.0);
        let rises = position > 0 && queue[position] > queue[parent_of(position)];
        if position == 0 || (rises && self.sift_up(server, position) == 0) {
            self.rank_server(server);
        }
    }

    /// Gives every queued page a new priority at once, by its data and its mark.
    pub(crate) fn reprioritise_all(&mut self, priority: impl Fn(&T, u8) -> P) {
        for server in 0..self.servers.len() {
            for key in &mut self.servers[server].queue {
                let page = key.page();
                let record = &self.pages[page as usize];
                let mark = (record.server_and_mark >> MARK_SHIFT) as u8;
                *key = priority(&record.data, mark).key(page);
            }
            for position in (0..self.servers[server].queue.len()).rev() {
                self.sift_down(server, position);
            }
            self.rank_server(server);
        }
    }

    /// Bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        let queued: usize = self.servers.iter().map(|server| server.queue.capacity()).sum();
        self.pages.capacity() * size_of::<Page<T>>()
            + self.servers.capacity() * size_of::<Server<P::Key>>()
            + self.ranking.capacity() * size_of::<RankedServer<P::Key>>()
            + queued * size_of::<P::Key>()
    }

    fn sift_up(&mut self, server: usize, position: usize) -> usize {
        let pages = &mut self.pages;
        sift_up(
            &mut self.servers[server].queue,
            position,
            |a, b| a > b,
            |key, position| {
                pages[key.page() as usize].position = position as u32;
            },
        )
    }

    fn sift_down(&mut self, server: usize, position: usize) {
        let pages = &mut self.pages;
        sift_down(
            &mut self.servers[server].queue,
            position,
            |a, b| a > b,
            |key, position| {
                pages[key.page() as usize].position = position as u32;
            },
        );
    }

    /// Moves a server to the rank of its best page.
    fn rank_server(&mut self, server: usize) {
        let Server { queue, pages_taken, position } = &self.servers[server];
        let position = *position as usize;
        let Some(best) = queue.first().copied() else {
            return self.unrank_server(server);
        };
        let best = P::among_servers(best, *pages_taken, queue.len());
        let entry = RankedServer { best, server: server as u32 };
        if position == NOWHERE as usize {
            push_tight(&mut self.ranking, entry);
            self.settle(self.ranking.len() - 1);
        } else {
            self.ranking[position] = entry;
            self.settle(position);
        }
    }

    fn unrank_server(&mut self, server: usize) {
        let position = std::mem::replace(&mut self.servers[server].position, NOWHERE);
        if position == NOWHERE {
            return;
        }
        let Some(last) = self.ranking.pop() else { return };
        if (position as usize) < self.ranking.len() {
            self.ranking[position as usize] = last;
            self.settle(position as usize);
        }
    }

    fn settle(&mut self, position: usize) {
        let servers = &mut self.servers;
        let mut moved = |entry: &RankedServer<P::Key>, position: usize| {
            servers[entry.server as usize].position = position as u32;
        };
        let is_before = |a: &RankedServer<P::Key>, b: &RankedServer<P::Key>| a.best > b.best;
        if sift_up(&mut self.ranking, position, is_before, &mut moved) == position {
            sift_down(&mut self.ranking, position, is_before, &mut moved);
        }
    }
}

/// Whether a queue holds much more memory than it needs.
fn queue_is_sparse<E>(queue: &Vec<E>) -> bool {
    queue.capacity() > 64 && queue.len() < queue.capacity() / 4
}
/// The part of [`crate::CrawlOrder`] that is the same for all orders that keep their queues in a
/// field `queues`, with the value that a page is ranked by as its data.
macro_rules! by_queues {
    () => {
        fn next(&mut self, server: Option<$crate::ServerIndex>) -> Option<$crate::PageIndex> {
            self.queues.pop(server)
        }

        fn take(&mut self, page: $crate::PageIndex) {
            self.queues.remove(page);
        }

        fn put_back(&mut self, page: $crate::PageIndex) {
            self.queues.put_back(page, *self.queues.data(page));
        }

        fn server(&self, page: $crate::PageIndex) -> $crate::ServerIndex {
            self.queues.server(page)
        }

        fn waiting(&self, server: $crate::ServerIndex) -> usize {
            self.queues.waiting(server)
        }

        fn known(&self) -> usize {
            self.queues.len()
        }
    };
}
pub(crate) use by_queues;
