//! What every order guarantees, whatever it decides: one suite for all strategies.

use nenrin_order::{AutoOrder, CrawlOrder, NewPage, OrderError, PageIndex, ServerIndex, Strategy};
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// A small web: the targets of each page, and its server.
#[derive(Clone, Debug)]
struct Web {
    links: Vec<Vec<usize>>,
    servers: Vec<u32>,
}

fn webs() -> impl Generator<Value = Web> {
    (2_usize..40).prop_flat_map(|pages| {
        let links = prop::collection::vec(prop::collection::btree_set(0..pages, 0..8), pages);
        let servers = prop::collection::vec(0_u32..4, pages);
        (links, servers).prop_map(|(links, servers)| {
            let links = links.into_iter().enumerate();
            let links = links
                .map(|(page, targets)| targets.into_iter().filter(|t| *t != page).collect())
                .collect();
            Web { links, servers }
        })
    })
}

/// A crawl that can be stopped and inspected.
struct Crawl<'a, O: ?Sized> {
    web: &'a Web,
    order: Box<O>,
    numbers: Vec<Option<PageIndex>>,
    pages: Vec<usize>,
    collected: Vec<usize>,
    links_collected: usize,
}

impl<'a, O: CrawlOrder + ?Sized> Crawl<'a, O> {
    fn new(web: &'a Web, order: Box<O>) -> Self {
        let numbers = vec![None; web.links.len()];
        let mut crawl =
            Self { web, order, numbers, pages: vec![], collected: vec![], links_collected: 0 };
        crawl.find(0);
        crawl
    }

    fn find(&mut self, page: usize) -> PageIndex {
        if let Some(number) = self.numbers[page] {
            return number;
        }
        let server = ServerIndex(self.web.servers[page]);
        let importance = page as f64;
        let number = self.order.discover(&NewPage { server, importance, ..NewPage::default() });
        assert_eq!(number.0 as usize, self.pages.len(), "numbers follow discovery");
        self.numbers[page] = Some(number);
        self.pages.push(page);
        number
    }

    fn targets(&mut self, page: usize) -> Vec<PageIndex> {
        self.web.links[page].iter().map(|target| self.find(*target)).collect()
    }

    fn collect(&mut self, number: PageIndex) {
        let page = self.pages[number.0 as usize];
        let targets = self.targets(page);
        self.links_collected += targets.len();
        self.order.collected(number, &targets, targets.len());
        while let Some(again) = self.order.next_hand_on() {
            let targets = self.targets(self.pages[again.0 as usize]);
            self.order.hand_on(again, &targets, targets.len());
        }
        self.collected.push(page);
    }

    fn step(&mut self) -> bool {
        let next = self.order.next(None);
        if let Some(number) = next {
            self.collect(number);
        }
        next.is_some()
    }

    fn scores(&self) -> Vec<f64> {
        (0..self.pages.len() as u32).map(|page| self.order.score(PageIndex(page))).collect()
    }
}

fn reachable(web: &Web) -> usize {
    let mut is_reached = vec![false; web.links.len()];
    let mut stack = vec![0];
    while let Some(page) = stack.pop() {
        if !std::mem::replace(&mut is_reached[page], true) {
            stack.extend(&web.links[page]);
        }
    }
    is_reached.into_iter().filter(|reached| *reached).count()
}

/// Depth limit 1 exactly as in the paper, without any optimisation.
fn naive_depth_limit_1(web: &Web) -> Vec<usize> {
    let mut scores: Vec<(usize, f64)> = vec![(0, 0.0)];
    let mut collected: Vec<usize> = vec![];
    loop {
        let best = scores
            .iter_mut()
            .filter(|(page, _)| !collected.contains(page))
            .reduce(|best, other| if other.1 > best.1 { other } else { best });
        let Some((page, score)) = best else { return collected };
        *score += 1.0;
        let (page, score) = (*page, *score);
        collected.push(page);
        for target in &web.links[page] {
            if !scores.iter().any(|(known, _)| known == target) {
                scores.push((*target, 0.0));
            }
        }
        for (known, value) in &mut scores {
            if web.links[page].contains(known) {
                *value += score / web.links[page].len() as f64;
            }
        }
    }
}

proptest! {
    #[test]
    fn every_order_collects_each_page_that_can_be_reached_once(web in webs()) {
        for strategy in Strategy::ALL {
            let mut crawl = Crawl::new(&web, strategy.build(40));
            while crawl.step() {}
            let mut pages = crawl.collected.clone();
            pages.sort_unstable();
            pages.dedup();
            prop_assert_eq!(pages.len(), crawl.collected.len(), "{} repeats pages", strategy);
            prop_assert_eq!(pages.len(), reachable(&web), "{} misses pages", strategy);
            prop_assert_eq!(crawl.order.known(), pages.len());
        }
    }

    #[test]
    fn the_same_calls_give_the_same_order(web in webs()) {
        for strategy in Strategy::ALL {
            let orders: Vec<Vec<usize>> = (0..2)
                .map(|_| {
                    let mut crawl = Crawl::new(&web, strategy.build(40));
                    while crawl.step() {}
                    crawl.collected
                })
                .collect();
            prop_assert_eq!(&orders[0], &orders[1]);
        }
    }

    #[test]
    fn depth_limit_1_agrees_with_a_naive_version_of_the_paper(web in webs()) {
        let mut crawl = Crawl::new(&web, Strategy::IprDl1.build(40));
        while crawl.step() {}
        prop_assert_eq!(crawl.collected, naive_depth_limit_1(&web));
    }

    #[test]
    fn scores_are_never_negative(web in webs()) {
        for strategy in Strategy::ALL.into_iter().filter(|s| *s != Strategy::BreadthFirst) {
            let mut crawl = Crawl::new(&web, strategy.build(40));
            while crawl.step() {
                prop_assert!(crawl.scores().iter().all(|score| *score >= -1e-12), "{}", strategy);
            }
        }
    }

    #[test]
    fn opic_never_makes_or_loses_cash(web in webs()) {
        let mut crawl = Crawl::new(&web, Strategy::Opic.build(40));
        while crawl.step() {
            let total: f64 = crawl.scores().iter().sum();
            prop_assert!((total - 1.0).abs() < 1e-9, "{}", total);
        }
    }

    #[test]
    fn auto_scores_stay_below_what_damping_allows(web in webs()) {
        let mut crawl = Crawl::new(&web, Strategy::Auto.build(40));
        while crawl.step() {
            let total: f64 = crawl.scores().iter().sum();
            let most = crawl.collected.len() as f64 / 0.15;
            prop_assert!(total <= most * 1.001, "{} of at most {}", total, most);
        }
    }

    #[test]
    fn additions_stay_within_their_bound(web in webs()) {
        let longest = web.links.iter().map(Vec::len).max().unwrap_or(0);
        let mut direct = Crawl::new(&web, Strategy::IprDl1.build(40));
        while direct.step() {}
        prop_assert_eq!(direct.order.additions(), direct.links_collected as u64);
        let mut auto = Crawl::new(&web, Strategy::Auto.build(40));
        while auto.step() {
            let bound = 4.5 * auto.links_collected as f64 + longest as f64;
            prop_assert!(auto.order.additions() as f64 <= bound);
        }
    }

    #[test]
    fn a_server_answers_with_its_own_pages_only(web in webs(), turns in prop::collection::vec(0_u32..4, 1..60)) {
        for strategy in Strategy::ALL {
            let mut crawl = Crawl::new(&web, strategy.build(40));
            for server in &turns {
                let Some(number) = crawl.order.next(Some(ServerIndex(*server))) else { continue };
                prop_assert_eq!(web.servers[crawl.pages[number.0 as usize]], *server);
                crawl.collect(number);
            }
        }
    }

    #[test]
    fn a_page_put_back_is_the_next_again(web in webs(), steps in 0_usize..20) {
        for strategy in Strategy::ALL {
            let mut crawl = Crawl::new(&web, strategy.build(40));
            for _ in 0..steps {
                crawl.step();
            }
            let server = ServerIndex(0);
            let Some(taken) = crawl.order.next(Some(server)) else { continue };
            crawl.order.put_back(taken);
            prop_assert_eq!(crawl.order.next(Some(server)), Some(taken), "{}", strategy);
        }
    }

    #[test]
    fn a_page_collected_without_being_taken_leaves_its_queue(web in webs(), which in 0_usize..40) {
        for strategy in Strategy::ALL {
            let mut crawl = Crawl::new(&web, strategy.build(40));
            crawl.step();
            let number = PageIndex((which % crawl.pages.len()) as u32);
            if crawl.collected.contains(&crawl.pages[number.0 as usize]) {
                continue;
            }
            crawl.collect(number);
            while crawl.step() {}
            prop_assert_eq!(crawl.collected.len(), reachable(&web), "{}", strategy);
        }
    }

    #[test]
    fn an_imported_order_continues_where_the_exported_one_was(web in webs(), steps in 0_usize..40) {
        let mut first = Crawl::new(&web, Box::new(AutoOrder::default()));
        for _ in 0..steps {
            first.step();
        }
        let mut second = Crawl {
            web: &web,
            order: Box::new(AutoOrder::import(&first.order.export()).unwrap()),
            numbers: first.numbers.clone(),
            pages: first.pages.clone(),
            collected: first.collected.clone(),
            links_collected: first.links_collected,
        };
        prop_assert_eq!(first.scores(), second.scores());
        while first.step() {
            second.step();
        }
        prop_assert_eq!(first.collected, second.collected);
        prop_assert_eq!(first.order.additions(), second.order.additions());
    }

    #[test]
    fn a_damaged_snapshot_is_refused(web in webs(), at in any::<prop::sample::Index>(), bit in 0_u32..8) {
        let mut crawl = Crawl::new(&web, Box::new(AutoOrder::default()));
        (0..10).for_each(|_| { crawl.step(); });
        let mut bytes = crawl.order.export();
        let at = at.index(bytes.len());
        prop_assert!(AutoOrder::import(&bytes[..at]).is_err());
        bytes[at] ^= 1_u8 << bit;
        let refused = matches!(AutoOrder::import(&bytes), Err(OrderError::BadSnapshot { .. }));
        prop_assert!(refused);
    }
}

/// A web in which each page links to the next.
fn chain(pages: usize) -> Web {
    let links = (1..=pages).map(|next| if next < pages { vec![next] } else { vec![] }).collect();
    Web { links, servers: vec![0; pages] }
}

#[test]
fn an_endless_chain_does_not_gain_with_every_step_under_auto() {
    let web = chain(500);
    let last_score = |strategy: Strategy| {
        let mut crawl = Crawl::new(&web, strategy.build(500));
        while crawl.step() {}
        crawl.scores()[499]
    };
    assert!(last_score(Strategy::Auto) < 7.0);
    assert!(last_score(Strategy::IprDl1) > 400.0, "depth limit 1 walks into such traps");
}

#[test]
fn new_links_of_a_page_visited_again_share_in_its_score() {
    for strategy in [Strategy::IprDl1, Strategy::IprAr, Strategy::Auto] {
        let mut order = strategy.build(10);
        let page = NewPage::default();
        let home = order.discover(&page);
        let first = order.discover(&page);
        order.next(None);
        order.collected(home, &[first], 1);
        let news = order.discover(&page);
        assert_eq!(order.score(news), 0.0);
        order.collected_again(home, &[news], 2);
        assert!(order.score(news) > 0.0, "{strategy}");
        assert!(order.score(news) < order.score(first), "{strategy}");
    }
}

#[test]
fn a_page_collected_twice_counts_once_under_auto() {
    let mut order = AutoOrder::default();
    let page = NewPage::default();
    let (home, other) = (order.discover(&page), order.discover(&page));
    order.collected(home, &[other], 1);
    let before = order.score(other);
    order.collected(home, &[other], 1);
    assert_eq!(order.score(other), before);
}

#[test]
fn servers_lose_priority_as_more_of_them_is_collected() {
    let mut order = AutoOrder::default();
    let on = |server| NewPage { server: ServerIndex(server), ..NewPage::default() };
    let hub = order.discover(&on(0));
    let pages: Vec<PageIndex> = (0..200).map(|_| order.discover(&on(0))).collect();
    let elsewhere = order.discover(&on(1));
    // Every page of server 0 scores a little better than the one page elsewhere.
    let targets: Vec<PageIndex> = pages.iter().copied().chain([elsewhere]).collect();
    order.next(None);
    order.collected(hub, &targets, targets.len());
    order.collected_again(hub, &pages, 2_000);
    // At 14 of 201 known pages the other server has lost its advantage: 201/(14 + 1)² is below 1.
    let place = (0..).find(|_| order.next(None) == Some(elsewhere)).unwrap();
    assert!((8..16).contains(&place), "it came after {place} pages of the other server");
}

#[test]
fn of_two_servers_the_one_that_is_hardly_known_goes_first() {
    let mut order = AutoOrder::default();
    let on = |server| NewPage { server: ServerIndex(server), ..NewPage::default() };
    let hub = order.discover(&on(0));
    order.next(None);
    let small: Vec<PageIndex> = (0..3).map(|_| order.discover(&on(1))).collect();
    let large: Vec<PageIndex> = (0..90).map(|_| order.discover(&on(2))).collect();
    let targets: Vec<PageIndex> = small.iter().chain(&large).copied().collect();
    order.collected(hub, &targets, targets.len());
    let first: Vec<PageIndex> = (0..4).filter_map(|_| order.next(None)).collect();
    assert!(first.iter().all(|page| large.contains(page)), "{first:?}");
}

#[test]
fn a_known_page_takes_at_most_24_bytes() {
    const PAGES: u32 = 300_000;
    const SERVERS: u32 = 5_000;
    let mut order = AutoOrder::default();
    for page in 0..PAGES {
        let server = ServerIndex(page % SERVERS);
        order.discover(&NewPage { server, ..NewPage::default() });
    }
    let bytes = order.memory_bytes() as f64 / f64::from(PAGES);
    assert!(bytes <= 24.0, "{bytes} bytes");
}
