use nenrin_order::{CrawlOrder, NewPage, PageIndex, ServerIndex};

use super::numbering::Numbering;
use super::{Graph, Importance};

/// A crawl of a graph by an order: numbers found pages as the live crawler does.
pub(super) struct Crawl<'a, N> {
    graph: &'a Graph,
    /// The true importance, for the omniscient order.
    truth: Option<&'a Importance>,
    order: &'a mut dyn CrawlOrder,
    numbering: N,
    /// The page of the graph with each discovery number.
    pages: Vec<u32>,
    /// The links of the current page, by discovery number.
    targets: Vec<PageIndex>,
}

impl<'a, N: Numbering> Crawl<'a, N> {
    pub(super) fn new(
        graph: &'a Graph,
        truth: Option<&'a Importance>,
        order: &'a mut dyn CrawlOrder,
        numbering: N,
    ) -> Self {
        Self { graph, truth, order, numbering, pages: Vec::new(), targets: Vec::new() }
    }

    /// Collects everything that can be reached, the best page first; returns the pages in order.
    pub(super) fn run(&mut self, start: u32) -> Vec<u32> {
        self.find(start);
        let mut collected = Vec::with_capacity(self.graph.pages());
        while let Some(page) = self.order.next(None) {
            collected.push(self.collect(page));
        }
        collected
    }

    /// Collects one page of each server in turn, as politeness does.
    pub(super) fn run_interleaved(&mut self, start: u32) -> Vec<u32> {
        self.find(start);
        let mut collected = Vec::with_capacity(self.graph.pages());
        // Servers take turns in the order in which they were found; those without a page to
        // collect leave the round until one is found.
        let mut round = vec![self.graph.host(start)];
        let mut is_in_round = vec![false; self.graph.hosts() as usize];
        is_in_round[round[0] as usize] = true;
        let mut seen_pages = 1;
        while !round.is_empty() {
            round.retain(|server| {
                let page = self.order.next(Some(ServerIndex(*server)));
                is_in_round[*server as usize] = page.is_some();
                collected.extend(page.map(|page| self.collect(page)));
                page.is_some()
            });
            for page in &self.pages[seen_pages..] {
                let server = self.graph.host(*page);
                if !std::mem::replace(&mut is_in_round[server as usize], true) {
                    round.push(server);
                }
            }
            seen_pages = self.pages.len();
        }
        collected
    }

    fn collect(&mut self, page: PageIndex) -> u32 {
        let id = self.pages[page.0 as usize];
        if self.graph.hosts() > 1 {
            self.find_on_other_hosts(id);
        }
        self.list_targets(id);
        self.order.collected(page, &self.targets, self.targets.len());
        while let Some(again) = self.order.next_hand_on() {
            self.list_targets(self.pages[again.0 as usize]);
            self.order.hand_on(again, &self.targets, self.targets.len());
        }
        id
    }

    /// Pages on other hosts are numbered before those on the page's own.
    fn find_on_other_hosts(&mut self, id: u32) {
        let graph = self.graph;
        let host = graph.host(id);
        for target in graph.targets(id) {
            if graph.host(*target) != host {
                self.find(*target);
            }
        }
    }

    /// Numbers what is new among the targets and lists them all.
    fn list_targets(&mut self, id: u32) {
        let graph = self.graph;
        self.targets.clear();
        for target in graph.targets(id) {
            let number = self.find(*target);
            self.targets.push(number);
        }
    }

    fn find(&mut self, id: u32) -> PageIndex {
        if let Some(number) = self.numbering.number(id) {
            return PageIndex(number);
        }
        let (slashes, url_bytes) = self.graph.url_shape(id);
        let server = ServerIndex(self.graph.host(id));
        let importance = self.truth.map_or(0.0, |truth| truth.of_page[id as usize]);
        let number = self.order.discover(&NewPage { server, slashes, url_bytes, importance });
        self.numbering.set(id, number.0);
        self.pages.push(id);
        number
    }
}
