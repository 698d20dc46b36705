use std::collections::VecDeque;

use crate::queues::{Key as _, Priority, ServerQueues, TAKEN};
use crate::snapshot::{Reader, Writer};
use crate::{CrawlOrder, HandOn, NewPage, OrderError, PageIndex, ServerIndex};

/// The part of its score that a page hands on to its targets, as in PageRank. It also keeps an
/// endless chain of pages from gaining score with every step.
const DAMPING: f32 = 0.85;
/// A collected page hands on again once it has received this much, relative to what it has handed
/// on.
const HAND_ON_RATIO: f32 = 0.15;
/// Expected share of a not yet collected page's score that comes back to the pages found beside it,
/// because pages of one site link to each other.
const RETURNED: f32 = 0.4;
/// Score that top pages get together for each known page, beside what links give them: what is near
/// them is more important than the links seen so far show.
const TOP_SHARE: f32 = 0.02;
/// Top pages get more once their part has grown by this factor.
const TOP_GROWTH: f32 = 1.15;
/// Upper limit of additions per link of a collected page; the rest waits.
const ADDITIONS_PER_LINK: f64 = 4.5;

/// The largest increase of a priority by [`RETURNED`], as a factor minus 1.
const MAX_BONUS: f32 = 1.0 / (1.0 - RETURNED) - 1.0;
/// Steps in which a page's bonus is stored in its mark.
const BONUS_STEPS: f32 = 255.0;

/// Marks of a collected page: it waits to hand on; it has no links, so that it never does; it was
/// found without company.
const WAITING: u8 = 1;
const DANGLING: u8 = 2;
const FOUND_ALONE: u8 = 4;

/// Score that collected pages are taken to have had before anything was seen of how it grows.
const GROWTH_TRUST: f64 = 20.0;
/// How strongly pages found alone follow what such pages gained: a power.
const GROWTH_POWER: f64 = 0.5;
/// What they lose is looked at again when so many times as many pages are collected, and changed if it
/// is off by more than this share.
const GROWTH_LOOKS: f32 = 1.15;
const GROWTH_STEP: f32 = 0.05;

/// The default order: incremental PageRank that accumulates before it hands on, with damping, a
/// bonus for pages found among many unknown ones, less for those found alone, a part for top pages,
/// servers that take turns, and a limit on the work.
///
/// The lab and the live crawler use the same implementation, in f32 and with 12 bytes for each page
/// beside its queue entry. `docs/order.md` has the formulas and the experiments behind each.
#[derive(Debug, Default)]
pub struct AutoOrder {
    /// Scores. A collected page's note is the score it received and has not handed on; an
    /// uncollected page's mark is its bonus.
    queues: ServerQueues<Worth, f32>,
    /// Collected pages whose turn to hand on is still to come, first come first served.
    waiting: VecDeque<PageIndex>,
    links_collected: u64,
    additions: u64,
    /// Sum of all scores.
    sum: f64,
    pages_collected: usize,
    /// Collected top pages, and the score that each of them got as such.
    tops: Vec<PageIndex>,
    top_score: f32,
    growth: Growth,
}

/// How much the score of collected pages grew after they were taken: of those found in company, and
/// of those found alone. A page of a long chain has all it will ever get when it is found; a page
/// among others gets more from them later.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Growth {
    /// Scores when they were taken, in company and alone.
    at_first: [f64; 2],
    /// What they got since.
    since: [f64; 2],
    /// The share of their priority that pages found alone lose.
    loss: f32,
    /// Pages that were collected when the loss was looked at.
    looked_at: u32,
}

impl Growth {
    /// What pages found alone should lose.
    fn due_loss(&self) -> f32 {
        let [company, alone] =
            [0, 1].map(|kind| 1.0 + self.since[kind] / (self.at_first[kind] + GROWTH_TRUST));
        1.0 - (alone / company).min(1.0).powf(GROWTH_POWER) as f32
    }

    /// Looks at it anew if enough pages were collected since; returns whether it changed.
    fn follow(&mut self, collected: usize) -> bool {
        if (collected as f32) < GROWTH_LOOKS * self.looked_at as f32 {
            return false;
        }
        self.looked_at = collected as u32;
        let due = self.due_loss();
        let changes = ((1.0 - due) / (1.0 - self.loss) - 1.0).abs() > GROWTH_STEP;
        if changes {
            self.loss = due;
        }
        changes
    }
}

#[derive(Clone, Copy, Debug)]
struct Worth(f32);

impl Priority for Worth {
    type Key = u64;

    fn key(self, page: u32) -> u64 {
        // Worth is never negative, so its bits are in order.
        u64::from(self.0.to_bits()) << 32 | u64::from(!page)
    }

    const COUNTS_WAITING: bool = true;

    /// Pages of a server lose priority as more of it is collected, and gain it while most of what is
    /// known of the server waits: the links inside it, which would tell more, were not seen yet.
    fn among_servers(best: u64, pages_taken: u32, waiting: usize) -> u64 {
        let worth = f32::from_bits((best >> 32) as u32);
        let taken = pages_taken as f32 + 1.0;
        Self(worth * (taken + waiting as f32) / (taken * taken)).key(best.page())
    }
}

/// The priority of a page that is not collected, by its score and its bonus; none is the mark of a
/// page without company.
fn worth(score: f32, bonus: u8, loss: f32) -> Worth {
    match bonus {
        0 => Worth(score * (1.0 - loss)),
        _ => Worth(score * (1.0 + f32::from(bonus) * (MAX_BONUS / BONUS_STEPS))),
    }
}

impl AutoOrder {
    fn queue_worth(&self, page: PageIndex) -> Worth {
        worth(*self.queues.data(page), self.queues.mark(page), self.growth.loss)
    }

    /// Gives all queued pages their priority again, if what those found alone lose has changed.
    fn follow_growth(&mut self) {
        if self.growth.follow(self.pages_collected) {
            let loss = self.growth.loss;
            self.queues.reprioritise_all(|score, mark| worth(*score, mark, loss));
        }
    }

    /// Divides an amount among the targets of a page.
    fn give(&mut self, amount: f32, links: usize, targets: &[PageIndex]) {
        if targets.is_empty() {
            return;
        }
        let uncollected = targets.iter().filter(|target| !self.is_collected(**target)).count();
        let share = DAMPING * amount / links as f32;
        // A page found alone has no company that could link to it.
        let company = uncollected.saturating_sub(1);
        let returned = RETURNED * company as f32 / links as f32;
        let bonus = returned / (1.0 - returned);
        for target in targets {
            if self.is_collected(*target) {
                self.give_collected(*target, share);
            } else {
                self.give_uncollected(*target, share, bonus);
            }
        }
        self.additions += targets.len() as u64;
        self.sum += f64::from(share) * targets.len() as f64;
    }

    /// Sets the page's bonus to the mean of the bonuses it received, weighted by score.
    fn give_uncollected(&mut self, page: PageIndex, share: f32, bonus: f32) {
        let before = *self.queues.data(page);
        let score = before + share;
        let old_bonus = f32::from(self.queues.mark(page)) * (MAX_BONUS / BONUS_STEPS);
        let mean = (before * old_bonus + share * bonus) / score;
        *self.queues.data_mut(page) = score;
        // A share too small to be noticed gives 0/0 on a page without score: no bonus then.
        let mark = (mean / MAX_BONUS * BONUS_STEPS).round().clamp(0.0, BONUS_STEPS) as u8;
        self.queues.set_mark(page, mark);
        self.queues.reprioritise(page, self.queue_worth(page));
    }

    /// Whether a page is where collecting a server begins: taken first, and linked to by none.
    fn is_top(&self, page: PageIndex) -> bool {
        *self.queues.data(page) == 0.0 && self.queues.taken_from(self.server(page)) <= 1
    }

    /// Gives top pages their part, which grows with the number of known pages.
    fn raise_tops(&mut self) {
        let due = TOP_SHARE * self.queues.len() as f32 / self.tops.len() as f32;
        if due <= TOP_GROWTH * self.top_score {
            return;
        }
        let more = due - std::mem::replace(&mut self.top_score, due);
        for at in 0..self.tops.len() {
            let page = self.tops[at];
            if self.queues.mark(page) & DANGLING == 0 {
                self.give_collected(page, more);
                self.sum += f64::from(more);
            }
        }
    }

    fn give_collected(&mut self, page: PageIndex, share: f32) {
        let score = self.queues.data_mut(page);
        *score += share;
        let score = *score;
        let mark = self.queues.mark(page);
        self.growth.since[usize::from(mark & FOUND_ALONE != 0)] += f64::from(share);
        let pending = self.pending(page) + share;
        self.queues.set_note(page, pending.to_bits());
        let is_due = pending > HAND_ON_RATIO * (score - pending);
        if is_due && mark & (WAITING | DANGLING) == 0 {
            self.queues.set_mark(page, mark | WAITING);
            self.waiting.push_back(page);
        }
    }

    /// Score that a collected page received and has not handed on.
    fn pending(&self, page: PageIndex) -> f32 {
        self.queues.note(page).map_or(0.0, f32::from_bits)
    }
}

impl CrawlOrder for AutoOrder {
    fn discover(&mut self, page: &NewPage) -> PageIndex {
        self.queues.insert(page.server, Worth(0.0), 0.0)
    }

    fn next(&mut self, server: Option<ServerIndex>) -> Option<PageIndex> {
        self.queues.pop(server)
    }

    fn put_back(&mut self, page: PageIndex) {
        if !self.is_collected(page) {
            self.queues.put_back(page, self.queue_worth(page));
        }
    }

    fn take(&mut self, page: PageIndex) {
        self.queues.remove(page);
    }

    fn server(&self, page: PageIndex) -> ServerIndex {
        self.queues.server(page)
    }

    fn waiting(&self, server: ServerIndex) -> usize {
        self.queues.waiting(server)
    }

    fn collected(&mut self, page: PageIndex, targets: &[PageIndex], links: usize) {
        if self.is_collected(page) {
            return;
        }
        let links = links.max(targets.len());
        let is_top = self.is_top(page);
        let is_alone = self.queues.mark(page) == 0;
        self.growth.at_first[usize::from(is_alone)] += f64::from(*self.queues.data(page));
        self.queues.remove(page);
        self.queues.set_note(page, 0.0_f32.to_bits());
        let found = if is_alone { FOUND_ALONE } else { 0 };
        self.queues.set_mark(page, found | if links == 0 { DANGLING } else { 0 });
        let own = if is_top { 1.0 + self.top_score } else { 1.0 };
        let score = self.queues.data_mut(page);
        *score += own;
        self.sum += f64::from(own);
        self.pages_collected += 1;
        let amount = *score;
        self.links_collected += links as u64;
        self.give(amount, links, targets);
        if is_top {
            self.tops.push(page);
        }
        if !self.tops.is_empty() {
            self.raise_tops();
        }
        self.follow_growth();
    }

    fn collected_again(&mut self, page: PageIndex, new_targets: &[PageIndex], links: usize) {
        let amount = *self.queues.data(page);
        self.links_collected += new_targets.len() as u64;
        self.give(amount, links.max(new_targets.len()), new_targets);
        let mark = self.queues.mark(page);
        if self.is_collected(page) && mark & DANGLING != 0 && links > 0 {
            self.queues.set_mark(page, mark & !DANGLING);
        }
    }

    fn score(&self, page: PageIndex) -> f64 {
        f64::from(*self.queues.data(page))
    }

    fn worth(&self, page: PageIndex) -> f64 {
        f64::from(self.queue_worth(page).0)
    }

    fn importance(&self, page: PageIndex) -> Option<f64> {
        // A page gets a score of 1 when it is collected. Counting that 1 for uncollected pages too
        // makes both kinds comparable.
        let uncollected = self.queues.len() - self.pages_collected;
        let mean = (self.sum + uncollected as f64) / self.queues.len() as f64;
        let own = if self.is_collected(page) { 0.0 } else { 1.0 };
        Some((self.score(page) + own) / mean)
    }

    fn snapshot(&self) -> Option<Vec<u8>> {
        Some(self.export())
    }

    fn is_collected(&self, page: PageIndex) -> bool {
        self.queues.note(page).is_some_and(|note| note != TAKEN)
    }

    fn additions(&self) -> u64 {
        self.additions
    }

    fn memory_bytes(&self) -> usize {
        let listed = self.waiting.capacity() + self.tops.capacity();
        self.queues.memory_bytes() + listed * size_of::<PageIndex>()
    }

    fn known(&self) -> usize {
        self.queues.len()
    }
}

impl HandOn for AutoOrder {
    fn amount(&self, page: PageIndex, again: bool) -> Option<f64> {
        let own = if again { 0.0 } else { 1.0 };
        Some(f64::from(DAMPING) * (self.score(page) + own))
    }

    fn receive(&mut self, page: PageIndex, share: f64) {
        let share = share as f32;
        match self.is_collected(page) {
            true => self.give_collected(page, share),
            false => self.give_uncollected(page, share, 0.0),
        }
        self.additions += 1;
        self.sum += f64::from(share);
    }

    fn next_hand_on(&mut self) -> Option<PageIndex> {
        let budget = ADDITIONS_PER_LINK * self.links_collected as f64;
        let page = self.waiting.front().copied()?;
        ((self.additions as f64) < budget).then_some(page)
    }

    fn hand_on(&mut self, page: PageIndex, targets: &[PageIndex], links: usize) -> f64 {
        let links = links.max(targets.len());
        let first = self.waiting.pop_front();
        assert_eq!(first, Some(page), "pages hand on in the order in which they were named");
        let amount = self.pending(page);
        self.queues.set_note(page, 0.0_f32.to_bits());
        let found = self.queues.mark(page) & FOUND_ALONE;
        self.queues.set_mark(page, found | if links == 0 { DANGLING } else { 0 });
        self.give(amount, links, targets);
        self.additions += (links - targets.len()) as u64;
        f64::from(DAMPING * amount / links.max(1) as f32)
    }

    fn hand_ons_ahead(&mut self, most: usize) -> Vec<PageIndex> {
        match self.next_hand_on() {
            Some(_) => self.waiting.iter().copied().take(most).collect(),
            None => Vec::new(),
        }
    }
}

/// State of a page in a snapshot: in its queue, taken from it, or collected.
const QUEUED_STATE: u8 = 0;
const TAKEN_STATE: u8 = 1;
const COLLECTED_STATE: u8 = 2;

impl AutoOrder {
    /// The whole order as bytes: 14 for each page, 4 for each server.
    #[must_use]
    pub fn export(&self) -> Vec<u8> {
        let mut out = Writer::new(self.queues.len() * 14);
        out.u64(self.links_collected);
        out.u64(self.additions);
        out.u32(self.queues.pages_taken().count() as u32);
        self.queues.pages_taken().for_each(|taken| out.u32(taken));
        out.u32(self.queues.len() as u32);
        for page in (0..self.queues.len() as u32).map(PageIndex) {
            let (state, pending) = match self.queues.note(page) {
                None => (QUEUED_STATE, 0),
                Some(TAKEN) => (TAKEN_STATE, 0),
                Some(pending) => (COLLECTED_STATE, pending),
            };
            out.u8(state);
            out.u8(self.queues.mark(page));
            out.u32(self.queues.server(page).0);
            out.u32(self.queues.data(page).to_bits());
            out.u32(pending);
        }
        for list in [&self.waiting.iter().collect::<Vec<_>>(), &self.tops.iter().collect()] {
            out.u32(list.len() as u32);
            list.iter().for_each(|page| out.u32(page.0));
        }
        out.u32(self.top_score.to_bits());
        let growth = &self.growth;
        for number in growth.at_first.iter().chain(&growth.since) {
            out.u64(number.to_bits());
        }
        out.u32(growth.loss.to_bits());
        out.u32(growth.looked_at);
        out.finish()
    }

    /// An order that continues where the exported one was. Pages that were taken but not collected
    /// are back in their queues, because nobody is fetching them any more.
    ///
    /// # Errors
    /// [`OrderError::BadSnapshot`] when the bytes were not made by [`Self::export`].
    pub fn import(bytes: &[u8]) -> Result<Self, OrderError> {
        let mut input = Reader::new(bytes)?;
        let mut order =
            Self { links_collected: input.u64()?, additions: input.u64()?, ..Self::default() };
        let server_count = input.u32()?;
        let pages_taken: Vec<u32> =
            (0..server_count).map(|_| input.u32()).collect::<Result<_, _>>()?;
        for _ in 0..input.u32()? {
            order.import_page(&mut input, server_count)?;
        }
        for (server, taken) in (0..).map(ServerIndex).zip(pages_taken) {
            order.queues.set_pages_taken(server, taken);
        }
        for _ in 0..input.u32()? {
            let page = PageIndex(input.u32()?);
            let is_known = (page.0 as usize) < order.queues.len();
            if !is_known || !order.is_collected(page) || order.queues.mark(page) & WAITING == 0 {
                return Err(OrderError::BadSnapshot {
                    reason: "a page is waiting that cannot hand on",
                });
            }
            order.waiting.push_back(page);
        }
        for _ in 0..input.u32()? {
            let page = PageIndex(input.u32()?);
            if (page.0 as usize) >= order.queues.len() || !order.is_collected(page) {
                return Err(OrderError::BadSnapshot { reason: "a top page is not collected" });
            }
            order.tops.push(page);
        }
        order.top_score = f32::from_bits(input.u32()?);
        if !order.top_score.is_finite() || order.top_score.is_sign_negative() {
            return Err(OrderError::BadSnapshot { reason: "top pages have an impossible score" });
        }
        order.growth = import_growth(&mut input)?;
        input.end()?;
        let loss = order.growth.loss;
        order.queues.reprioritise_all(|score, mark| worth(*score, mark, loss));
        Ok(order)
    }

    fn import_page(&mut self, input: &mut Reader<'_>, servers: u32) -> Result<(), OrderError> {
        let (state, mark) = (input.u8()?, input.u8()?);
        let server = ServerIndex(input.u32()?);
        let score = f32::from_bits(input.u32()?);
        let pending = f32::from_bits(input.u32()?);
        let is_amount = |amount: f32| amount.is_finite() && amount.is_sign_positive();
        if server.0 >= servers || !is_amount(score) || !is_amount(pending) {
            return Err(OrderError::BadSnapshot { reason: "a page has an impossible score" });
        }
        let note = if state == COLLECTED_STATE { pending.to_bits() } else { TAKEN };
        let page = self.queues.add_unqueued(server, note, score);
        self.queues.set_mark(page, mark);
        self.sum += f64::from(score);
        match state {
            COLLECTED_STATE => self.pages_collected += 1,
            QUEUED_STATE | TAKEN_STATE => self.queues.put_back(page, self.queue_worth(page)),
            _ => return Err(OrderError::BadSnapshot { reason: "a page has an unknown state" }),
        }
        Ok(())
    }
}

fn import_growth(input: &mut Reader<'_>) -> Result<Growth, OrderError> {
    let mut growth = Growth::default();
    for number in growth.at_first.iter_mut().chain(&mut growth.since) {
        *number = f64::from_bits(input.u64()?);
    }
    (growth.loss, growth.looked_at) = (f32::from_bits(input.u32()?), input.u32()?);
    let is_sum = |number: &f64| number.is_finite() && *number >= 0.0;
    let are_sums = growth.at_first.iter().chain(&growth.since).all(is_sum);
    if !are_sums || !(0.0..1.0).contains(&growth.loss) {
        return Err(OrderError::BadSnapshot { reason: "scores grew by an impossible amount" });
    }
    Ok(growth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importance_does_not_jump_when_a_page_is_collected_and_survives_a_restart() {
        let mut order = AutoOrder::default();
        let new = NewPage { server: ServerIndex(0), slashes: 0, url_bytes: 0, importance: 0.0 };
        let pages: Vec<PageIndex> = (0..4).map(|_| order.discover(&new)).collect();
        assert!(pages.iter().all(|page| order.importance(*page) == Some(1.0)));
        order.collected(pages[0], &pages[1..2], 1);
        let before = order.importance(pages[1]).unwrap();
        assert!(before > 1.3 && order.importance(pages[2]).unwrap() < 1.0, "{before}");
        order.collected(pages[1], &[], 0);
        assert_eq!(order.importance(pages[1]), Some(before));
        let mean: f64 = pages.iter().filter_map(|page| order.importance(*page)).sum();
        assert!((mean - 4.0).abs() < 1e-6, "{mean}");
        let again = AutoOrder::import(&order.export()).unwrap();
        let kept = |order: &AutoOrder| order.importance(pages[1]).unwrap();
        assert!((kept(&again) - kept(&order)).abs() < 1e-6);
    }

    fn page(server: u32) -> NewPage {
        NewPage { server: ServerIndex(server), slashes: 0, url_bytes: 0, importance: 0.0 }
    }

    #[test]
    fn a_chain_waits_once_pages_in_company_turned_out_to_be_worth_more() {
        let mut growth = Growth { at_first: [100.0, 100.0], ..Growth::default() };
        assert!(!growth.follow(1));
        growth.since = [300.0, 20.0];
        assert!(!growth.follow(1), "nothing was collected since");
        assert!(growth.follow(2) && (0.4..0.6).contains(&growth.loss), "{}", growth.loss);
        let (chain, among_others) = (worth(1.5, 0, growth.loss), worth(1.0, 100, growth.loss));
        assert!(among_others.0 > chain.0 && worth(1.5, 0, 0.0).0 > among_others.0);
        // Where pages found alone gain as much, they lose nothing.
        growth.since = [300.0, 300.0];
        assert!(growth.follow(3) && growth.loss == 0.0, "{}", growth.loss);
    }

    #[test]
    fn a_top_page_gains_with_the_pages_that_become_known_and_others_do_not() {
        let mut order = AutoOrder::default();
        let top = order.discover(&page(0));
        assert_eq!(order.next(None), Some(top));
        let first: Vec<PageIndex> = (0..9).map(|_| order.discover(&page(0))).collect();
        order.collected(top, &first, first.len());
        let before = order.score(top);
        let found = order.next(None).unwrap();
        let more: Vec<PageIndex> = (0..990).map(|_| order.discover(&page(1))).collect();
        order.collected(found, &more, more.len());
        assert!(order.score(top) - before > 15.0, "{} of 1,000 known pages", order.score(top));
        assert!(order.score(found) < 3.0, "a page that was found by a link is no top page");
        let again = AutoOrder::import(&order.export()).unwrap();
        assert_eq!(again.export(), order.export());
        assert_eq!((again.tops, again.top_score), (order.tops, order.top_score));
    }
}
