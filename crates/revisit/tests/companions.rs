//! Pages that change together are recognised, on generated sites.
#![expect(clippy::unwrap_used, reason = "a schedule that cannot be built must fail its test")]

use std::collections::BTreeSet;

use nenrin_revisit::{
    Circle, Companions, DAY_S, KnownPage, Outcome, PageRevisitScheduler, Planned, RevisitSettings,
};

/// Odd numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, share: f64) -> bool {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as f64 / f64::from(1u32 << 31)) < share
    }
}

struct Page {
    path: String,
    /// Whether it takes part in what is common.
    common: bool,
    changed_day: i64,
    visited_day: i64,
    due_day: i64,
    planned: Option<Planned>,
}

/// A site whose pages are visited by a schedule, a day at a time.
struct MadeUp {
    scheduler: PageRevisitScheduler,
    pages: Vec<Page>,
    chance: Chance,
    day: i64,
    /// Links of the first page.
    below: Vec<u32>,
    /// Pages named for one that changed, and whether they are of those that change together.
    named: Vec<(usize, bool)>,
    circles: BTreeSet<Circle>,
}

fn scheduler(policy: &str) -> PageRevisitScheduler {
    let settings =
        RevisitSettings { policy: policy.parse().unwrap(), ..RevisitSettings::default() };
    PageRevisitScheduler::new(settings, DAY_S)
}

impl MadeUp {
    fn new(policy: &str, seed: u64, paths: impl Iterator<Item = (String, bool)>) -> Self {
        let page = |(path, common)| Page {
            path,
            common,
            changed_day: 0,
            visited_day: -1,
            due_day: 0,
            planned: None,
        };
        Self {
            scheduler: scheduler(policy),
            pages: paths.map(page).collect(),
            chance: Chance(seed),
            day: 0,
            below: Vec::new(),
            named: Vec::new(),
            circles: BTreeSet::new(),
        }
    }

    fn known(page: &Page) -> KnownPage<'_> {
        KnownPage {
            server: 7,
            path: &page.path,
            history: page.planned.as_ref().map_or(&[], |planned| &planned.history),
            found: page.planned.as_ref().map(|_| Outcome::Same),
            failures: 0,
            importance_percent: 100,
        }
    }

    /// Lets days pass: on one in twenty all common pages change, and each other page on its own.
    fn pass(&mut self, days: i64) {
        for _ in 0..days {
            self.day += 1;
            let event = self.chance.below(0.05);
            for at in 0..self.pages.len() {
                let own = self.chance.below(0.05);
                if if self.pages[at].common { event } else { own } {
                    self.pages[at].changed_day = self.day;
                }
            }
            for at in 0..self.pages.len() {
                if self.pages[at].due_day <= self.day {
                    self.visit(at);
                }
            }
        }
    }

    fn visit(&mut self, at: usize) {
        let now_s = self.day * DAY_S + at as i64;
        let page = &self.pages[at];
        let changed = page.changed_day > page.visited_day;
        let found = if changed { Outcome::Changed } else { Outcome::Same };
        let links: &[u32] = if at == 0 { &self.below } else { &[] };
        let circles = self.scheduler.learn_together(now_s, &Self::known(page), found, true, links);
        let planned = self.scheduler.visited(now_s, &Self::known(page), found, None, 1.0);
        let page = &mut self.pages[at];
        page.visited_day = self.day;
        // Not all on one day.
        let first_day = self.day + 1 + at as i64 % 7;
        page.due_day = if page.planned.is_none() { first_day } else { planned.due_s / DAY_S };
        page.planned = Some(planned);
        self.circles.extend(&circles);
        if circles.is_empty() {
            return;
        }
        for other in 0..self.pages.len() {
            let known = Self::known(&self.pages[other]);
            let below = || self.below.contains(&Companions::key(7, known.path));
            let is_near = circles.iter().any(|circle| match circle {
                Circle::Below => below(),
                around => around.joins(&self.pages[at].path, known.path),
            });
            if other != at && is_near && self.scheduler.chance_if_worth(now_s, &known).is_some() {
                self.named.push((other, self.pages[other].common));
            }
        }
    }

    fn named(&self, common: bool) -> usize {
        self.named.iter().filter(|(_, named)| *named == common).count()
    }
}

fn two_directories() -> impl Iterator<Item = (String, bool)> {
    (0..40).map(|n| match n < 20 {
        true => (format!("/manual/page{n}.html"), true),
        false => (format!("/people/name{n}.html"), false),
    })
}

fn two_families() -> impl Iterator<Item = (String, bool)> {
    (0..40).map(|n| match n < 20 {
        true => (format!("/d/chapter{n}.html"), true),
        false => (format!("/d/note{n}.html"), false),
    })
}

#[test]
fn pages_that_change_together_are_named_and_the_others_never() {
    for policy in ["every(7d)", "mle.mix(0.1-10,2nd=7d)", "aimd(d=1d,r=0.5)", "auto"] {
        for (what, paths) in
            [("directories", two_directories().collect()), ("families", two_families().collect())]
        {
            let paths: Vec<(String, bool)> = paths;
            let mut site = MadeUp::new(policy, 5, paths.into_iter());
            site.pass(400);
            let (right, wrong) = (site.named(true), site.named(false));
            // Twenty events, each of which leaves some nineteen pages to be named once or more.
            assert!(right >= 60, "{policy}, {what}: {right}");
            assert!(wrong * 20 <= right, "{policy}, {what}: {wrong} of {right}");
            let reached: BTreeSet<usize> = site.named.iter().map(|(page, _)| *page).collect();
            assert!(reached.iter().filter(|&&page| page < 20).count() >= 18, "{reached:?}");
        }
    }
}

#[test]
fn pages_that_go_their_own_ways_are_not_named() {
    for policy in ["every(7d)", "mle.mix(0.1-10,2nd=7d)", "auto"] {
        let (mut named, mut visits) = (0, 0);
        let mut telling = 0;
        for seed in 0..10 {
            let paths = (0..40).map(|n| (format!("/d/page{n}.html"), false));
            let mut site = MadeUp::new(policy, seed, paths);
            site.pass(400);
            named += site.named.len();
            telling += usize::from(!site.circles.is_empty());
            visits += 40 * 400 / 7;
        }
        assert!(
            named * 200 <= visits,
            "{policy}: {named} of {visits} visits, {telling} of 10 sites"
        );
    }
}

#[test]
fn a_site_that_never_changes_keeps_nothing_and_names_nothing() {
    let mut site = MadeUp::new("every(7d)", 1, two_directories());
    site.chance = Chance(0);
    site.pages.iter_mut().for_each(|page| page.common = true);
    for _ in 0..200 {
        site.day += 1;
        for at in 0..site.pages.len() {
            if site.pages[at].due_day <= site.day {
                site.visit(at);
            }
        }
    }
    assert_eq!(site.scheduler.companions().groups(), 0);
    assert!(site.circles.is_empty() && site.named.is_empty());
}

#[test]
fn what_was_learnt_survives_a_restart_and_another_policy() {
    let mut site = MadeUp::new("every(7d)", 5, two_directories());
    site.pass(300);
    let learnt = site.scheduler.companions().learnt();
    assert!(learnt > 0);
    let kept = site.scheduler.keep_now().unwrap();
    for policy in ["every(7d)", "aimd(d=1d,r=0.5)"] {
        let mut other = scheduler(policy);
        other.restore(&kept).unwrap();
        assert_eq!(other.companions().learnt(), learnt, "{policy}");
        assert!(other.restore(&kept[..kept.len() - 1]).is_err());
    }
    assert!(kept.len() < 1_000, "{} bytes", kept.len());
    site.scheduler = scheduler("every(7d)");
    site.scheduler.restore(&kept).unwrap();
    site.named.clear();
    site.pass(60);
    assert!(site.named(true) >= 8, "{:?}", site.named);
    assert_eq!(site.named(false), 0);
}

#[test]
fn bytes_of_an_earlier_version_are_the_policys_alone() {
    let mut first = scheduler("auto");
    let page = KnownPage {
        server: 1,
        path: "/a",
        history: &[],
        found: None,
        failures: 0,
        importance_percent: 100,
    };
    first.visited(0, &page, Outcome::Changed, None, 1.0);
    let both = first.keep_now().unwrap();
    // The mark, then the length in two bytes.
    let of_policy = &both[6..];
    let mut second = scheduler("auto");
    second.restore(of_policy).unwrap();
    second.restore(&[]).unwrap();
    assert!(second.need_per_day().unwrap() > 0.0);
}

#[test]
fn pages_below_one_that_announces_them_are_named_wherever_they_lie() {
    let paths = (0..120).map(|n| (format!("/{n}/page.html"), n < 20));
    let mut site = MadeUp::new("every(9d)", 3, paths);
    let targets = (1..20).chain(30..36).map(|at: usize| Companions::key(7, &site.pages[at].path));
    site.below = targets.collect();
    site.pass(600);
    assert!(site.circles.contains(&Circle::Below), "{:?}", site.circles);
    let (right, wrong) = (site.named(true), site.named(false));
    // Six of the 25 linked pages change independently, and nothing distinguishes them from the
    // others.
    assert!(right >= 40 && wrong * 3 <= right, "{wrong} wrong, {right} right");
}
