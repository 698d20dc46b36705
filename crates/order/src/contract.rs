/// A known page's place in the order of discovery: the first page found is 0, the next 1, …
///
/// Ties are broken by it, so whoever numbers the pages found on one page puts those of other
/// hosts first (see [`CrawlOrder::discover`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageIndex(pub u32);

/// A server's number, given by the caller; small and dense, for each has a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerIndex(pub u32);

impl ServerIndex {
    /// Servers that an order can tell apart: numbers lie below.
    pub const LIMIT: u32 = 1 << 24;
}

/// What an order may know of a page that was just found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NewPage {
    /// Whose queue it joins.
    pub server: ServerIndex,
    /// How many `/` its URL has.
    pub slashes: u16,
    /// How long its URL is.
    pub url_bytes: u16,
    /// Its true importance, which only the omniscient order reads and only the lab knows.
    pub importance: f64,
}

/// Which newly found page is collected first.
///
/// The caller tells what was found and collected and asks, server by server, for the best page
/// that was not collected yet. The order keeps scores and queues, not links: where a score goes
/// on from a page that was collected before, it asks for that page's links.
///
/// ```text
/// discover(page) … next(server) → page → collect it → discover(each new target) … collected(page, targets)
///                                      then, until it answers None:  next_hand_on() → page → hand_on(page, targets)
/// ```
///
/// The same calls give the same answers, on any machine. Targets are listed without repetition
/// and without the page itself. A `PageIndex` that was never handed out by `discover` is a broken
/// invariant of the caller and panics.
pub trait CrawlOrder {
    /// Makes a page known and returns its discovery number. Of the pages found on one page, those
    /// on other hosts are announced first, in the order of their links, then those on its own.
    fn discover(&mut self, page: &NewPage) -> PageIndex;

    /// Takes the best page of a server, or of all servers, out of its queue; `None` when there is
    /// none.
    fn next(&mut self, server: Option<ServerIndex>) -> Option<PageIndex>;

    /// Takes a certain page out of its queue, if it stands there: someone collects it without
    /// having asked which is best.
    fn take(&mut self, page: PageIndex);

    /// Whose queue a page joined.
    fn server(&self, page: PageIndex) -> ServerIndex;

    /// How many pages stand in a server's queue.
    fn waiting(&self, server: ServerIndex) -> usize;

    /// Puts back a page that was taken and could not be collected.
    fn put_back(&mut self, page: PageIndex);

    /// Says that a page was collected for the first time and what it links to. It need not have
    /// been taken by [`Self::next`].
    fn collected(&mut self, page: PageIndex, targets: &[PageIndex]);

    /// Says that a page which was collected before was found to link to pages that it did not
    /// link to then. They share in its score as the others did; nothing else changes.
    fn collected_again(&mut self, _page: PageIndex, _new_targets: &[PageIndex], _links: usize) {}

    /// The next collected page whose score is to be handed on to its targets; the same until
    /// [`Self::hand_on`] is called for it. Orders that never look back answer `None`.
    fn next_hand_on(&mut self) -> Option<PageIndex> {
        None
    }

    /// Hands on the score of the page that [`Self::next_hand_on`] named.
    fn hand_on(&mut self, _page: PageIndex, _targets: &[PageIndex]) {}

    /// The pages that [`Self::next_hand_on`] is likely to name next, the first first and at most
    /// `most`, so that their links can be fetched together.
    fn hand_ons_ahead(&mut self, most: usize) -> Vec<PageIndex> {
        self.next_hand_on().into_iter().take(most).collect()
    }

    /// What the order thinks of a page; larger is better.
    fn score(&self, page: PageIndex) -> f64;

    /// What a page's place in its queue goes by; larger is better.
    fn worth(&self, page: PageIndex) -> f64 {
        self.score(page)
    }

    /// A page's score in proportion to the mean of all known pages, from orders that reckon one. What
    /// a page gets by being collected itself makes no difference.
    fn importance(&self, _page: PageIndex) -> Option<f64> {
        None
    }

    /// Everything the order knows, for [`crate::Strategy::restore`]; `None` from orders that are
    /// built anew by telling them all pages and links.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }

    /// Whether a page was collected, from orders that have a snapshot.
    fn is_collected(&self, _page: PageIndex) -> bool {
        false
    }

    /// How many scores were changed by additions so far: the cost that strategies are compared by.
    fn additions(&self) -> u64;

    /// Bytes held on the heap, from orders that count them.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// How many pages are known.
    fn known(&self) -> usize;
}
