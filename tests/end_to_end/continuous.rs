//! Every page on its own schedule, by `nenrin run`, also through kills.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::support::{Nenrin, Reply, Running, Site, until};

const DELAY_MS: u64 = 30;
const PAGES: usize = 8;

/// A site whose odd pages change with every second of its life, and whose pages have buckets of a
/// second.
struct World {
    nenrin: Nenrin,
    site: Site,
    config: String,
}

impl World {
    fn new(conditions: &[&str]) -> Self {
        let born = Instant::now();
        let site = Site::serve(move |request| {
            let edition = born.elapsed().as_secs();
            match request.path.as_str() {
                "/robots.txt" => Reply::status("404 Not Found"),
                "/" => {
                    let links = (1..PAGES).map(|n| format!("<a href='/{n}'>{n}</a>"));
                    Reply::html(links.collect::<String>())
                }
                path if path.ends_with(['1', '3', '5', '7']) => {
                    Reply::html(format!("{path} {edition}"))
                }
                path => Reply::html(path),
            }
            .validated(request)
        });
        let nenrin = Nenrin::new();
        let config = nenrin.file("nenrin.toml", "[state]\nbucket = \"1s\"\n");
        let (top, delay) = (site.top(), format!("{DELAY_MS}ms"));
        let mut add = vec!["--config", &config, "site", "add", &top, "--allow-private"];
        add.extend(["--delay", &delay]);
        add.extend(conditions);
        nenrin.run(&add).expect(0);
        Self { nenrin, site, config }
    }

    fn run(&self) -> Running {
        let listen = ["--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
        let mut args = vec!["--config", &self.config, "run"];
        args.extend(listen);
        self.nenrin.start(&args)
    }

    fn asked(&self) -> usize {
        self.site.requests().len()
    }

    fn versions(&self) -> BTreeMap<String, u64> {
        let pages = self.nenrin.run(&["pages", "--json"]).expect(0).lines();
        let changes = |page: &serde_json::Value| page["changes"].as_u64().unwrap();
        pages.iter().map(|p| (p["url"].as_str().unwrap().to_owned(), changes(p))).collect()
    }

    /// As the server saw it: never two requests at once, never one too soon.
    fn assert_polite(&self) {
        for pair in self.site.requests().windows(2) {
            let Some(ended) = pair[0].ended else { continue };
            let pause = pair[1].began.saturating_duration_since(ended);
            assert!(pause >= Duration::from_millis(DELAY_MS), "{pause:?} before {}", pair[1].path);
        }
    }
}

fn survive(kills: u64) {
    let world = World::new(&["--policy", "every(1s)"]);
    let mut moment = 20_261_116_u64;
    let mut before = BTreeMap::new();
    for kill in 0..kills {
        let asked = world.asked();
        let began = Instant::now();
        let running = world.run();
        until("the first request", || world.asked() > asked);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?} to open", began.elapsed());
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis((moment >> 33) % 900));
        running.kill();
        let now = world.versions();
        for (url, changes) in &before {
            assert!(now.get(url) >= Some(changes), "kill {kill}: {url} lost versions");
        }
        before = now;
    }
    world.nenrin.assert_sound();
    world.assert_polite();

    let asked = world.asked();
    let running = world.run();
    until("the first request", || world.asked() > asked);
    let known = || world.versions().len() == PAGES;
    until("every page to be known", known);
    let often = |world: &World| {
        let asked = world.site.asked();
        (0..PAGES).all(|n| {
            let path = if n == 0 { "/".to_owned() } else { format!("/{n}") };
            asked.get(&path).is_some_and(|&times| times >= 2)
        })
    };
    until("every page to be visited twice", || often(&world));
    running.signal("TERM");
    running.finish().expect(0);
    world.nenrin.assert_sound();
    world.assert_polite();
    let changes = world.versions();
    assert!(changes[&world.site.url("/1")] >= 2, "{changes:?}");
    assert_eq!(changes[&world.site.url("/2")], 1, "{changes:?}");
}

#[test]
fn eight_kills_of_a_running_crawl_lose_nothing() {
    survive(8);
}

/// `cargo test --test end_to_end -- --ignored hundred`
#[test]
#[ignore = "takes minutes; the same with fewer kills runs always"]
fn a_hundred_kills_of_a_running_crawl_lose_nothing() {
    survive(100);
}

#[test]
fn pages_tell_when_they_are_due_and_why() {
    let world = World::new(&["--path", "/1 max=1s"]);
    let running = world.run();
    until("every page to be visited", || world.site.asked().len() >= PAGES);
    until("a second visit", || world.site.asked().get("/1").is_some_and(|&times| times >= 3));
    running.signal("TERM");
    running.finish().expect(0);
    let pages = world.nenrin.run(&["pages", "--json"]).expect(0).lines();
    for page in &pages {
        assert!(page["due"].is_string(), "{page}");
        let why = page["why"].as_str().unwrap();
        let tells_rate = why.contains("changes about") || why.contains("too little was seen");
        assert!(why.contains("every") && tells_rate, "{why}");
        assert!(page["rate_per_day"].as_f64().unwrap() > 0.0, "{page}");
    }
    let shown = world.nenrin.run(&["site", "show", "1"]).expect(0).text();
    assert!(shown.contains("each page on its own schedule, auto"), "{shown}");
    assert!(shown.contains("forecast") && shown.contains("visits a day get"), "{shown}");
}

#[test]
fn a_budget_and_closed_hours_hold_requests_back() {
    let world = World::new(&["--policy", "every(1s)", "--visits-per-day", "5"]);
    let running = world.run();
    until("the budget to be spent", || world.asked() >= 5);
    std::thread::sleep(Duration::from_millis(2_500));
    running.signal("TERM");
    running.finish().expect(0);
    // robots.txt is no visit, nor are the two looks at the server itself.
    assert_eq!(world.asked(), 8, "{:?}", world.site.asked());

    world.nenrin.run(&["site", "set", "1", "--window", "someday"]).expect(2);
    let set = ["site", "set", "1", "--visits-per-day", "0", "--window", "01:00-01:01 UTC"];
    world.nenrin.run(&set).expect(0);
    let minute = world.nenrin.run(&["site", "show", "1"]).expect(0).text();
    assert!(minute.contains("daily 01:00-01:01 UTC"), "{minute}");
}
