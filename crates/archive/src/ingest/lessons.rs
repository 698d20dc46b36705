//! What imported visits teach, once they are committed: they are gone through in the order of their
//! times, by the parts of the machine that learn from our own visits.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_crawl::{Answer, Appetite, PastVisit, Taught, Teacher, learn_pass, verdict::verdict};
use nenrin_revisit::PageHistory;
use nenrin_state::{
    Change, ContentMark, DuePage, KeptStructure, Outcome, PageId, PageLessons, PageRecord,
    ServerId, Site, SiteId,
};
use nenrin_store::VersionId;
use nenrin_structure::Seen;
use nenrin_urls::CanonicalUrl;

use super::{exchange::exchange, recent::move_on};
use crate::{
    Archive, Result,
    visiting::{LINKS_FROM_MAX_BYTES, read_fetched, read_small},
};

/// Visits that are remembered; those beyond teach nothing.
const VISITS_MAX: usize = 500_000;
/// Pages whose visits are remembered.
const PAGES_MAX: usize = 100_000;
/// Pages that are looked up or committed together.
const TOGETHER: usize = 500;
/// Bytes of contents that are read again to learn from them: about a minute. Beyond, visits teach
/// what their outcomes say, and links are read while collecting.
const READ_MAX_BYTES: u64 = 1 << 30;
/// Passes over a site that teach its structure, the last ones.
const PASSES_MAX: usize = 64;

/// In place of the number of a version whose content is not in this archive.
const ELSEWHERE: VersionId = VersionId(u64::MAX);

/// How much is learnt from contents, which must be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Links, blocks, noise and structure.
    Read,
    /// Nothing: only what the outcomes say.
    Unread,
}

/// A visit, as far as it teaches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lesson {
    pub(crate) at_s: i64,
    pub(crate) outcome: Outcome,
    /// Mark of the content, where there is one.
    pub(crate) mark: Option<ContentMark>,
    /// The version that it became.
    pub(crate) version: Option<VersionId>,
    pub(crate) last_modified_s: Option<i64>,
}

impl Lesson {
    /// A visit of which only the outcome is known.
    pub(crate) fn without_body(at_s: i64, outcome: Outcome) -> Self {
        Self { at_s, outcome, mark: None, version: None, last_modified_s: None }
    }
}

/// Visits that were taken in, by page.
#[derive(Default)]
pub(crate) struct Lessons {
    pages: BTreeMap<CanonicalUrl, OfPage>,
    visits: usize,
}

/// The visits of a page.
struct OfPage {
    /// The page before the first of them came.
    before: PageRecord,
    visits: Vec<Lesson>,
}

impl Lessons {
    /// A visit to a page, which is as it was before.
    pub(crate) fn add(&mut self, before: &PageRecord, lesson: impl FnOnce() -> Lesson) {
        let is_known = self.pages.contains_key(&before.url);
        if self.visits >= VISITS_MAX || (!is_known && self.pages.len() >= PAGES_MAX) {
            return;
        }
        let page = self
            .pages
            .entry(before.url.clone())
            .or_insert_with(|| OfPage { before: before.clone(), visits: Vec::new() });
        page.visits.push(lesson());
        self.visits += 1;
    }

    /// Adds those of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        for (url, of_page) in other.pages {
            self.visits += of_page.visits.len();
            match self.pages.get_mut(&url) {
                Some(known) => known.visits.extend(of_page.visits),
                None => drop(self.pages.insert(url, of_page)),
            }
        }
    }

    /// Where only changes are known, the page stayed as it was between two of them: a visit halfway
    /// says so. Without it every visit would have seen a change.
    pub(crate) fn fill_gaps(&mut self) {
        for of_page in self.pages.values_mut() {
            of_page.visits.sort_by_key(|visit| visit.at_s);
            let halfway = |pair: &[Lesson]| {
                let at_s = pair[0].at_s + (pair[1].at_s - pair[0].at_s) / 2;
                let is_between = at_s > pair[0].at_s && pair[0].outcome == Outcome::Changed;
                is_between.then(|| Lesson::without_body(at_s, Outcome::Same))
            };
            let between: Vec<Lesson> = of_page.visits.windows(2).filter_map(halfway).collect();
            of_page.visits.extend(between);
        }
    }
}

impl Archive {
    /// Learns from visits of a site that were taken in and committed.
    pub(crate) fn learn(&self, site: SiteId, lessons: Lessons, contents: Contents) -> Result<()> {
        let site = self.state().sites()?.into_iter().find(|known| known.id == site);
        let Some(site) = site.filter(|_| lessons.visits > 0) else { return Ok(()) };
        let mut learning = Learning::new(self, site, lessons, contents)?;
        learning.go_through();
        let passes = std::mem::take(&mut learning.passes);
        learning.commit()?;
        if contents == Contents::Read { passes.learn(self) } else { Ok(()) }
    }
}

/// Learning from visits.
struct Learning<'a> {
    archive: &'a Archive,
    site: Site,
    pages: Vec<Pupil>,
    teacher: Teacher,
    passes: Passes,
    left_bytes: u64,
}

/// A page whose visits are gone through.
struct Pupil {
    /// As it is before the next visit.
    due: DuePage,
    visits: Vec<Lesson>,
    compared: Vec<(VersionId, u16)>,
    /// What its last content said.
    last: Option<Taught>,
}

impl<'a> Learning<'a> {
    fn new(archive: &'a Archive, site: Site, lessons: Lessons, contents: Contents) -> Result<Self> {
        let state = archive.state();
        let mut pages = Vec::with_capacity(lessons.pages.len());
        let mut rest = lessons.pages.into_iter();
        loop {
            let portion: Vec<(CanonicalUrl, OfPage)> = rest.by_ref().take(TOGETHER).collect();
            if portion.is_empty() {
                break;
            }
            let urls: Vec<&CanonicalUrl> = portion.iter().map(|(url, _)| url).collect();
            let known = state.pages_of(&urls)?;
            let known = portion.into_iter().zip(known);
            pages.extend(known.filter_map(|((_, of_page), page)| pupil(&site, of_page, page?)));
        }
        let ids: BTreeSet<ServerId> = pages.iter().map(|page| page.due.page.id.server()).collect();
        let servers = state.servers(&ids.into_iter().collect::<Vec<_>>())?;
        let teacher = Teacher::new(&site, &state.shared(site.id)?, state.bucket_s(), &servers);
        let left_bytes = if contents == Contents::Read { READ_MAX_BYTES } else { 0 };
        let seen = |page: &&Pupil| page.due.page.outcome.is_some();
        let known = pages.iter().filter(seen).map(|page| page.due.page.id).collect();
        let passes = Passes { site: site.id, known, ..Passes::default() };
        Ok(Self { archive, site, pages, teacher, passes, left_bytes })
    }

    fn go_through(&mut self) {
        let mut order: Vec<(i64, usize, usize)> = Vec::new();
        for (at, page) in self.pages.iter().enumerate() {
            order.extend(page.visits.iter().enumerate().map(|(nth, v)| (v.at_s, at, nth)));
        }
        order.sort_unstable();
        for (_, at, nth) in order {
            self.visit(at, self.pages[at].visits[nth]);
        }
    }

    fn visit(&mut self, at: usize, lesson: Lesson) {
        let due = &self.pages[at].due;
        let outcome = judged(&due.page, &lesson);
        let version = lesson.version.filter(|_| outcome == Outcome::Changed);
        let read = version.and_then(|version| self.read(due, lesson.at_s, version));
        let (answer, bytes) = read.unzip();
        self.left_bytes = self.left_bytes.saturating_sub(bytes.unwrap_or(0));
        let Lesson { at_s, last_modified_s, .. } = lesson;
        let past = PastVisit { at_s, outcome, last_modified_s, answer: answer.as_ref() };
        let due = &self.pages[at].due;
        let mut taught = self.teacher.visited(due, &past);
        if matches!(outcome, Outcome::Changed | Outcome::Same) {
            taught.update.mark = lesson.mark.or(due.page.mark);
        }
        let lost = taught.blocks.as_ref().and_then(|blocks| blocks.lost.clone());
        self.passes.add(due.page.id, taught.seen, lost);
        let page = &mut self.pages[at];
        page.compared.extend(version.zip(taught.changed_permille));
        // What was seen has a version somewhere, if not here.
        let known = lesson.version.or(page.due.page.version);
        let newest = known.or(lesson.mark.map(|_| ELSEWHERE)).filter(|_| outcome.is_seen());
        move_on(&mut page.due.page, (at_s, outcome), newest, &taught.update);
        page.due.page.due_s = taught.update.due_s;
        page.due.page.estimate = match outcome {
            Outcome::Gone => None,
            _ => taught.estimate.or(page.due.page.estimate),
        };
        // What the version before says is out of date, read or not.
        if outcome == Outcome::Changed {
            page.last = Some(taught);
        }
    }

    /// Reads a version as an answer to a visit is read.
    fn read(&self, due: &DuePage, at_s: i64, version: VersionId) -> Option<(Answer, u64)> {
        if self.left_bytes == 0 {
            return None;
        }
        // A version that cannot be read teaches nothing; `verify` is for that.
        let stored = read_small(self.archive.store(), version, LINKS_FROM_MAX_BYTES)?;
        let order = self.teacher.reading(due);
        let head = stored.head;
        let exchange = exchange(head.status, &head.response_head, stored.body);
        let store = self.archive.store();
        let answer = read_fetched(store, &order, &exchange, at_s, Appetite::full()).ok()??;
        Some((answer, head.body_bytes))
    }

    /// What was learnt of the pages, their servers and the schedule.
    fn commit(self) -> Result<()> {
        let state = self.archive.state();
        let is_continuous = self.site.conditions.schedule.continuous().is_some();
        for portion in self.pages.chunks(TOGETHER) {
            let changes: Vec<Change> =
                portion.iter().flat_map(|page| page.changes(is_continuous)).collect();
            state.commit(&changes)?;
        }
        state.commit(&self.teacher.finish())?;
        Ok(())
    }
}

/// What a visit found, compared with the one before it in time, whatever the order in which they came.
fn judged(page: &PageRecord, lesson: &Lesson) -> Outcome {
    match lesson.outcome {
        Outcome::Changed | Outcome::Same if lesson.mark.is_some() => {
            let answer = Answer { status: 200, mark: lesson.mark, ..Answer::default() };
            verdict(page, false, &answer).outcome
        }
        outcome => outcome,
    }
}

/// A page that is known to the state by now.
fn pupil(site: &Site, of_page: OfPage, known: PageRecord) -> Option<Pupil> {
    let OfPage { before, mut visits } = of_page;
    // A visit that is older than the page's last one before the import teaches nothing.
    let taught_s = PageHistory::from_bytes(&before.history).ok().and_then(|h| h.last_visit_s());
    visits.retain(|visit| {
        before.visited_s.is_none_or(|last_s| visit.at_s >= last_s)
            && taught_s.is_none_or(|taught_s| visit.at_s > taught_s)
    });
    if visits.is_empty() {
        return None;
    }
    let depth = if site.conditions.tops.contains(&known.url) { 1 } else { 2 };
    let PageRecord { id, nth, importance_percent, due_s, .. } = known;
    let page = PageRecord { id, nth, importance_percent, due_s, ..before };
    let due = DuePage { page, site: site.id, depth, hops: 0, pulled: false };
    Some(Pupil { due, visits, compared: Vec::new(), last: None })
}

impl Pupil {
    fn changes(&self, is_continuous: bool) -> impl Iterator<Item = Change> {
        let page = self.due.page.id;
        let links = self.last.as_ref().and_then(|last| last.links.clone());
        let blocks = self.last.as_ref().and_then(|last| last.blocks.clone());
        let record = &self.due.page;
        let lessons = PageLessons {
            page,
            until_s: record.visited_s.unwrap_or_default(),
            history: record.history.clone(),
            failures: record.failures,
            due_s: record.due_s.filter(|_| is_continuous),
            estimate: record.estimate,
            compared: self.compared.clone(),
        };
        let links = links.map(|links| Change::Links { page, links });
        let blocks = blocks.map(|blocks| Change::Blocks { page, blocks });
        links.into_iter().chain(blocks).chain([Change::Lessons(Box::new(lessons))])
    }
}

/// A visit as the structure of a site sees it, with the blocks that the page lost.
type Sight = (PageId, Seen, Option<Vec<u32>>);

/// Visits as passes over the site. A pass ends when a page comes a second time.
struct Passes {
    site: SiteId,
    /// Pages that were seen before the first pass.
    known: BTreeSet<PageId>,
    passes: Vec<Vec<Sight>>,
    in_last: BTreeSet<PageId>,
}

impl Default for Passes {
    fn default() -> Self {
        let (known, in_last) = (BTreeSet::new(), BTreeSet::new());
        Self { site: SiteId(0), known, passes: Vec::new(), in_last }
    }
}

impl Passes {
    fn add(&mut self, page: PageId, seen: Seen, lost: Option<Vec<u32>>) {
        if !self.in_last.insert(page) || self.passes.is_empty() {
            self.in_last = BTreeSet::from([page]);
            self.passes.push(Vec::new());
            if self.passes.len() > PASSES_MAX {
                self.known.extend(self.passes.remove(0).iter().map(|(page, ..)| *page));
            }
        }
        if let Some(last) = self.passes.last_mut() {
            last.push((page, seen, lost));
        }
    }

    /// Learns the structure of the site, with its links as they are committed now.
    fn learn(mut self, archive: &Archive) -> Result<()> {
        let mut map = archive.state().site_pages(self.site)?;
        let mut has_learnt = false;
        for pass in self.passes {
            has_learnt |= learn_pass(&mut map, &pass, |page| self.known.contains(&page));
            self.known.extend(pass.iter().map(|(page, ..)| *page));
        }
        if has_learnt {
            let of_site = KeptStructure { site: Some(self.site), bytes: map.kept };
            let of_all = KeptStructure { site: None, bytes: map.kept_of_all };
            let changes = [of_site, of_all].map(Change::Structure);
            archive.state().commit(&changes)?;
        }
        Ok(())
    }
}
