/// A page's number in the order of discovery: the first page found is 0, the next 1, and so on.
///
/// It breaks ties, so the caller numbers pages on other hosts before pages on the same host (see
/// [`CrawlOrder::discover`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageIndex(pub u32);

/// A server's number, given by the caller: small and dense, because each has a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerIndex(pub u32);

impl ServerIndex {
    /// Server numbers must be below this.
    pub const LIMIT: u32 = 1 << 24;
}

/// What an order knows about a page that was just found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NewPage {
    /// The server whose queue it joins.
    pub server: ServerIndex,
    /// Number of `/` in its URL.
    pub slashes: u16,
    /// Length of its URL.
    pub url_bytes: u16,
    /// Its true importance. Only the lab knows it, and only the omniscient order reads it.
    pub importance: f64,
}

/// Decides which newly found page is collected first.
///
/// The caller reports which pages were found and collected and asks, server by server, for the best
/// page that was not collected yet. The order stores scores and queues, but no links: to hand on the
/// score of a page that was collected before, it asks the caller for that page's links.
///
/// ```text
/// discover(page) … next(server) → page → collect it → discover(each new target) … collected(page, targets)
///                                      then, until it answers None:  next_hand_on() → page → hand_on(page, targets)
/// ```
///
/// The same calls give the same answers, on any machine. Targets are listed without repetition
/// and without the page itself. A `PageIndex` that was never handed out by `discover` is a broken
/// invariant of the caller and panics.
pub trait CrawlOrder: HandOn {
    /// Makes a page known and returns its discovery number. For the pages found on one page, call
    /// this first for those on other hosts, in the order of their links, then for those on the same
    /// host.
    fn discover(&mut self, page: &NewPage) -> PageIndex;

    /// Takes the best page of one server, or of all, out of its queue; `None` if there is none.
    fn next(&mut self, server: Option<ServerIndex>) -> Option<PageIndex>;

    /// Takes a given page out of its queue, if it is there: it is being collected without having
    /// been chosen by [`Self::next`].
    fn take(&mut self, page: PageIndex);

    /// The server whose queue a page joined.
    fn server(&self, page: PageIndex) -> ServerIndex;

    /// Number of pages in a server's queue.
    fn waiting(&self, server: ServerIndex) -> usize;

    /// Puts back a page that was taken and could not be collected.
    fn put_back(&mut self, page: PageIndex);

    /// Records that a page was collected for the first time and what it links to. It need not have
    /// come from [`Self::next`]. `links` counts its links with those that lead to pages which another
    /// order knows; these get their shares there (see [`HandOn::receive`]).
    fn collected(&mut self, page: PageIndex, targets: &[PageIndex], links: usize);

    /// Records new links of a page that was collected before. The targets get their share of its
    /// score; nothing else changes.
    fn collected_again(&mut self, _page: PageIndex, _new_targets: &[PageIndex], _links: usize) {}

    /// The order's score of a page; larger is better.
    fn score(&self, page: PageIndex) -> f64;

    /// The value by which a page is sorted in its queue; larger is better.
    fn worth(&self, page: PageIndex) -> f64 {
        self.score(page)
    }

    /// A page's score relative to the mean of all known pages, from orders that compute one.
    /// Whether the page itself was collected makes no difference.
    fn importance(&self, _page: PageIndex) -> Option<f64> {
        None
    }

    /// The whole order as bytes for [`crate::Strategy::restore`]; `None` for orders that are
    /// rebuilt from all pages and links.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }

    /// Whether a page was collected, from orders that have a snapshot.
    fn is_collected(&self, _page: PageIndex) -> bool {
        false
    }

    /// Number of additions to scores so far: the cost by which strategies are compared.
    fn additions(&self) -> u64;

    /// Bytes of memory in use, from orders that count them.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// Number of known pages.
    fn known(&self) -> usize;
}

/// Handing scores on: to the targets of collected pages, in the background, and to the pages of
/// another order. Orders that hand on at once and know every page leave everything as it is here.
pub trait HandOn {
    /// What a page would give to the pages that it links to, together, were it collected now, for the
    /// first time or again. `None` from orders that give nothing to the pages of another.
    fn amount(&self, _page: PageIndex, _again: bool) -> Option<f64> {
        None
    }

    /// A page gets a share of the score of a page that another order knows.
    fn receive(&mut self, _page: PageIndex, _share: f64) {}

    /// The next collected page whose score is to be handed on to its targets. The answer stays the
    /// same until [`Self::hand_on`] is called for it. Orders that never hand on later return
    /// `None`.
    fn next_hand_on(&mut self) -> Option<PageIndex> {
        None
    }

    /// Hands on the score of the page that [`Self::next_hand_on`] named. `links` counts its links with
    /// those to pages that another order knows. Returns the share of each link, for these pages; 0 from
    /// orders that give nothing to the pages of another.
    fn hand_on(&mut self, _page: PageIndex, _targets: &[PageIndex], _links: usize) -> f64 {
        0.0
    }

    /// The pages that [`Self::next_hand_on`] will probably name next, in that order and at most
    /// `most`, so that their links can be fetched together.
    fn hand_ons_ahead(&mut self, most: usize) -> Vec<PageIndex> {
        self.next_hand_on().into_iter().take(most).collect()
    }
}
