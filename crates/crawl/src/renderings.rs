//! Which pages are rendered in a browser, and which wait for parts that a rendering missed.
//!
//! A page is rendered from the archive; what it asked for and was not there is collected as its parts,
//! and then it is rendered again, a few times at most (docs/decisions/0016-rendering.md).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nenrin_state::{Discovered, DuePage, RenderWhen, VersionId};
use nenrin_structure::family_of;
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::answer::Ticket;

/// The most times that one version of a page is rendered.
const PASSES_MAX: u32 = 6;

/// A family of pages gets so many trials before it counts as one that needs no browser.
pub const TRIALS: u32 = 2;

/// Families of a server that are remembered; pages of others are not rendered by `auto`.
const FAMILIES_MAX: usize = 200;

/// What a page's scripts ask for, as far as it is remembered.
pub const DATA_MAX: usize = 20;

/// Pages of a server whose data are remembered.
const DATA_PAGES_MAX: usize = 200;

/// Pages that wait for parts at once; beyond, the one that has waited longest is left as it is.
const WAITING_MAX: usize = 1_000;

/// Visits that are remembered while a page is being rendered.
const RECENT_MAX: usize = 10_000;

/// A page to be rendered.
#[derive(Debug, Clone)]
pub(crate) struct RenderCase {
    pub(crate) due: Box<DuePage>,
    pub(crate) version: VersionId,
    pub(crate) at_s: i64,
    /// The kind of its scripts.
    pub(crate) scripts: u64,
    /// From 1.
    pub(crate) pass: u32,
    /// What the last pass found.
    pub(crate) found: Vec<Discovered>,
}

/// The families of a server by name.
pub type Families = BTreeMap<String, Family>;

/// What the scripts of a server's pages ask for, by path and query of the pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DataOfPages(BTreeMap<String, Vec<CanonicalUrl>>);

impl DataOfPages {
    /// What a page asks for besides its parts: it is of the time of the page if both are visited
    /// together.
    pub(crate) fn of(&self, page: &CanonicalUrl) -> &[CanonicalUrl] {
        self.0.get(page.path_and_query()).map_or(&[], Vec::as_slice)
    }

    /// Returns whether that is new.
    pub(crate) fn learn(&mut self, page: &CanonicalUrl, data: &[CanonicalUrl]) -> bool {
        let is_known = self.0.contains_key(page.path_and_query());
        if self.of(page) == data || (!is_known && self.0.len() >= DATA_PAGES_MAX) {
            return false;
        }
        match data.is_empty() {
            true => self.0.remove(page.path_and_query()),
            false => self.0.insert(page.path_and_query().to_owned(), data.to_vec()),
        };
        true
    }
}

/// What is known of a family of pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Family {
    /// Pages that were rendered to the end.
    pub trials: u32,
    /// Whether rendering brought something that the plain visit had not.
    pub is_useful: bool,
    /// The kind of the scripts when it was last tried.
    pub scripts: u64,
}

/// The result of rendering a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Whether there is no browser, so that nothing can be rendered.
    pub has_no_browser: bool,
    /// What the page asked for that is not in the archive.
    pub missing: Vec<CanonicalUrl>,
    /// What its scripts asked for, to read it.
    pub data: Vec<CanonicalUrl>,
    /// Where its links lead, and whether each is a frame.
    pub links: Vec<(CanonicalUrl, bool)>,
    /// Whether it shows text that is not in its HTML.
    pub adds_text: bool,
    /// How long it took.
    pub elapsed_ms: i64,
    /// Nothing was rendered: what an earlier rendering brought is stored now.
    pub is_kept: bool,
}

/// What follows after a pass.
#[derive(Debug)]
pub(crate) enum Next {
    /// Another pass at once: what was missing has come meanwhile.
    Pass(RenderCase),
    /// Another pass when its parts are there; this is what was found meanwhile.
    Waits(RenderCase),
    /// It was the last.
    Done(RenderCase),
}

/// The pages that are rendered, and those that wait.
#[derive(Debug, Default)]
pub(crate) struct Renderings {
    /// No browser was found.
    is_off: bool,
    /// Pages to be rendered, and the one that is: one at a time, so that each learns from those before it.
    line: VecDeque<Ticket>,
    at_work: Option<Ticket>,
    waiting: VecDeque<(RenderCase, BTreeSet<CanonicalUrl>)>,
    /// By how many pages each part is waited for.
    awaited: BTreeMap<CanonicalUrl, usize>,
    /// Pages visited while others are being rendered: what was missing may have come meanwhile.
    recent: VecDeque<CanonicalUrl>,
}

impl Renderings {
    /// Whether a page that changed is rendered.
    pub(crate) fn wants(
        &self,
        when: RenderWhen,
        due: &DuePage,
        scripts: Option<u64>,
        families: Option<&Families>,
    ) -> bool {
        let Some(scripts) = scripts.filter(|_| !self.is_off) else { return false };
        match when {
            RenderWhen::Never => false,
            RenderWhen::Always => true,
            RenderWhen::Auto => {
                let name = family_of(due.page.url.path());
                match families.and_then(|families| families.get(&name)) {
                    Some(family) => {
                        family.is_useful || family.trials < TRIALS || family.scripts != scripts
                    }
                    None => families.is_none_or(|families| families.len() < FAMILIES_MAX),
                }
            }
        }
    }

    /// Learns from a rendering. `found_more` says whether it found links or requests of its own.
    pub(crate) fn learn(
        &mut self,
        families: &mut Families,
        case: &RenderCase,
        rendered: &Rendered,
        found_more: bool,
    ) {
        self.is_off |= rendered.has_no_browser;
        if rendered.has_no_browser {
            return;
        }
        let name = family_of(case.due.page.url.path());
        if families.len() >= FAMILIES_MAX && !families.contains_key(&name) {
            return;
        }
        let family = families.entry(name).or_default();
        if family.scripts != case.scripts {
            // Other scripts may do other things.
            *family = Family { scripts: case.scripts, ..Family::default() };
        }
        if case.pass == 1 {
            family.trials = family.trials.saturating_add(1);
        }
        family.is_useful |= found_more || rendered.adds_text;
    }

    /// A page is to be rendered after those before it.
    pub(crate) fn line_up(&mut self, ticket: Ticket) {
        self.line.push_back(ticket);
    }

    /// The next in line, if none is being rendered or all are dropped.
    pub(crate) fn next_in_line(&mut self, drops_all: bool) -> Option<Ticket> {
        match self.at_work.is_none() || drops_all {
            true => self.line.pop_front(),
            false => None,
        }
    }

    pub(crate) fn begin(&mut self, ticket: Ticket) {
        self.at_work = Some(ticket);
    }

    pub(crate) fn ended(&mut self, ticket: Ticket) {
        self.at_work.take_if(|at_work| *at_work == ticket);
    }

    /// What follows after a pass that missed these parts.
    pub(crate) fn wait(&mut self, mut case: RenderCase, mut parts: BTreeSet<CanonicalUrl>) -> Next {
        if parts.is_empty() || case.pass >= PASSES_MAX {
            return Next::Done(case);
        }
        let found = std::mem::take(&mut case.found);
        case.pass += 1;
        parts.retain(|part| !self.recent.contains(part));
        if parts.is_empty() {
            return Next::Pass(case);
        }
        if self.waiting.len() >= WAITING_MAX
            && let Some((_, parts)) = self.waiting.pop_front()
        {
            parts.iter().for_each(|part| self.not_awaited(part));
        }
        for part in &parts {
            *self.awaited.entry(part.clone()).or_default() += 1;
        }
        self.waiting.push_back((case.clone(), parts));
        Next::Waits(RenderCase { found, ..case })
    }

    /// Whether a rendering waits for this part.
    pub(crate) fn awaits(&self, url: &CanonicalUrl) -> bool {
        self.awaited.contains_key(url)
    }

    /// One page less waits for a part.
    fn not_awaited(&mut self, part: &CanonicalUrl) {
        if let Some(pages) = self.awaited.get_mut(part) {
            *pages -= 1;
            if *pages == 0 {
                self.awaited.remove(part);
            }
        }
    }

    /// A page was visited. Returns the pages that waited for nothing else; `is_rendering` says
    /// whether some page is being rendered now.
    pub(crate) fn visited(&mut self, url: &CanonicalUrl, is_rendering: bool) -> Vec<RenderCase> {
        if is_rendering {
            self.recent.push_back(url.clone());
            if self.recent.len() > RECENT_MAX {
                self.recent.pop_front();
            }
        } else {
            self.recent.clear();
        }
        let mut ready = Vec::new();
        if self.awaited.remove(url).is_none() {
            return ready;
        }
        self.waiting.retain_mut(|(case, parts)| {
            parts.remove(url);
            if parts.is_empty() {
                ready.push(case.clone());
            }
            !parts.is_empty()
        });
        ready
    }
}

#[cfg(test)]
mod tests {
    use nenrin_state::{Nth, PageId, PageRecord, SiteId};

    use super::*;

    fn case(path: &str, scripts: u64) -> RenderCase {
        let url = CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap();
        let page = PageRecord::unvisited((PageId(1), Nth(1)), url, SiteId(1), 0, None);
        let due = Box::new(DuePage { page, site: SiteId(1), depth: 1, hops: 0, pulled: false });
        RenderCase { due, version: VersionId(1), at_s: 0, scripts, pass: 1, found: Vec::new() }
    }

    fn url(path: &str) -> CanonicalUrl {
        CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap()
    }

    #[test]
    fn a_family_is_tried_and_left_alone_until_its_scripts_change() {
        let (mut renderings, mut families) = (Renderings::default(), Families::default());
        let wants = |families: &Families, path: &str, scripts: u64| {
            let due = &case(path, 0).due;
            Renderings::default().wants(RenderWhen::Auto, due, Some(scripts), Some(families))
        };
        assert!(!renderings.wants(RenderWhen::Auto, &case("/a", 0).due, None, None), "no scripts");
        for n in 0..TRIALS {
            let path = format!("/news/{n}");
            assert!(wants(&families, &path, 7), "{n}");
            renderings.learn(&mut families, &case(&path, 7), &Rendered::default(), false);
        }
        assert!(!wants(&families, "/news/9", 7));
        assert!(wants(&families, "/news/9", 8), "the scripts are others");
        assert!(wants(&families, "/app", 7), "another family");
        renderings.learn(
            &mut families,
            &case("/app", 7),
            &Rendered { adds_text: true, ..Rendered::default() },
            false,
        );
        renderings.learn(&mut families, &case("/app", 7), &Rendered::default(), false);
        assert!(wants(&families, "/app", 7), "it is useful");
        assert!(!renderings.wants(RenderWhen::Never, &case("/app", 7).due, Some(7), None));
        let none = Rendered { has_no_browser: true, ..Rendered::default() };
        renderings.learn(&mut families, &case("/app", 7), &none, false);
        assert!(!renderings.wants(RenderWhen::Always, &case("/app", 7).due, Some(7), None));
    }

    #[test]
    fn data_are_remembered_for_some_pages() {
        let mut known = DataOfPages::default();
        let data = [url("/a.json")];
        assert!(known.learn(&url("/?x"), &data) && !known.learn(&url("/?x"), &data));
        assert_eq!((known.of(&url("/?x")), known.of(&url("/"))), (&data[..], &[][..]));
        for n in 0..DATA_PAGES_MAX {
            known.learn(&url(&format!("/{n}")), &data);
        }
        assert!(known.of(&url(&format!("/{}", DATA_PAGES_MAX - 1))).is_empty());
        assert!(known.learn(&url("/?x"), &[]) && known.of(&url("/?x")).is_empty());
    }

    #[test]
    fn a_page_waits_for_all_its_parts_and_not_for_ever() {
        let mut renderings = Renderings::default();
        let parts = BTreeSet::from([url("/a.json"), url("/b.json")]);
        assert!(matches!(renderings.wait(case("/", 1), parts.clone()), Next::Waits(_)));
        assert!(renderings.awaits(&url("/a.json")) && !renderings.awaits(&url("/c.json")));
        assert!(renderings.visited(&url("/a.json"), false).is_empty());
        let ready = renderings.visited(&url("/b.json"), false);
        assert_eq!(ready.iter().map(|case| case.pass).collect::<Vec<_>>(), [2]);
        assert!(renderings.visited(&url("/b.json"), false).is_empty());
        // What came while the page was being rendered need not be waited for.
        renderings.visited(&url("/a.json"), true);
        renderings.visited(&url("/b.json"), true);
        let next = renderings.wait(case("/", 1), parts.clone());
        assert!(matches!(next, Next::Pass(RenderCase { pass: 2, .. })), "{next:?}");
        let last = RenderCase { pass: PASSES_MAX, ..case("/", 1) };
        assert!(matches!(renderings.wait(last, parts), Next::Done(_)));
        assert!(renderings.waiting.is_empty() && renderings.awaited.is_empty());
        // Beyond the limit the first is left as it is.
        for n in 0..=WAITING_MAX {
            let parts = BTreeSet::from([url("/all.json"), url(&format!("/{n}.json"))]);
            assert!(matches!(renderings.wait(case("/", 1), parts), Next::Waits(_)));
        }
        assert!(!renderings.awaits(&url("/0.json")) && renderings.awaits(&url("/all.json")));
        assert!(renderings.visited(&url("/all.json"), false).is_empty());
        assert_eq!(renderings.visited(&url("/1.json"), false).len(), 1);
        assert_eq!(renderings.awaited.len(), WAITING_MAX - 1);
    }
}
