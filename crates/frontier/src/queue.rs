use std::collections::{BTreeMap, BTreeSet};

use crate::{Feedback, Pace, Politeness};

/// The number of a server.
pub type ServerKey = u32;

/// One priority queue per server, and which server may be asked when.
///
/// Laws: a server with a request under way is not offered; nor is one before its [`Pace`] allows.
/// Among servers that are ready, the one that has been ready longest goes first. What is queued
/// stays queued until it is taken or drained.
#[derive(Debug)]
pub struct Frontier<Item> {
    politeness: Politeness,
    servers: BTreeMap<ServerKey, ServerQueue<Item>>,
    /// Servers with something queued and nothing under way, by the time they become ready.
    ready: BTreeSet<(i64, ServerKey)>,
    queued: usize,
    sequence: u64,
}

#[derive(Debug)]
struct ServerQueue<Item> {
    waiting: BTreeMap<(u64, u64), Waiting<Item>>,
    /// Since when each of them has been waiting, with its sequence number: the one that has waited
    /// longest is first, whatever its priority.
    known_since: BTreeSet<(u64, u64)>,
    /// Items that share the server with those above, by priority and mark.
    waiting_new: BTreeMap<(u64, u64), Item>,
    /// New items that wait outside of the queue above.
    resting_new: usize,
    /// Since when new items have been waiting without a pause, in the unit of the priorities.
    new_since: u64,
    /// What new items have saved up, in percent of a turn; negative if they had more than their share.
    credit_percent: i32,
    /// The same, once what was taken last is asked for.
    credit_then: i32,
    pace: Pace,
    busy: bool,
    /// The entry in `ready`, if there is one.
    listed_ms: Option<i64>,
}

/// A known item in its queue.
#[derive(Debug)]
struct Waiting<Item> {
    /// In the unit of the priorities.
    since: u64,
    item: Item,
}

impl<Item> ServerQueue<Item> {
    fn len(&self) -> usize {
        self.waiting.len() + self.waiting_new.len()
    }

    /// The share of the turns that new items get: as set, or four of five for those, new or known,
    /// that have waited longer. By their numbers alone the last new items of a server that cannot
    /// keep up would wait for ever, since known ones come again and again.
    fn new_percent(&self, set: Option<u32>) -> u32 {
        let known_since = self.known_since.first().map_or(u64::MAX, |(since, _)| *since);
        let by_age = if self.new_since <= known_since { MORE_PERCENT } else { 100 - MORE_PERCENT };
        set.map_or(by_age, |percent| percent.min(100))
    }

    /// The next item: priority 0 before all, otherwise old and new ones by their shares. Those with the
    /// larger share begin, so that they get the turn where a server has one a day.
    fn pop(&mut self, new_percent: Option<u32>) -> Option<Item> {
        let urgent = self.waiting.first_key_value().is_some_and(|(place, _)| place.0 == 0);
        self.credit_then = self.credit_percent;
        let new_turn = match (self.waiting.is_empty(), self.waiting_new.is_empty()) {
            _ if urgent => false,
            (true, _) => true,
            (false, true) => false,
            (false, false) => {
                self.credit_then += self.new_percent(new_percent).cast_signed();
                let turn = self.credit_then >= TURN_PERCENT / 2;
                self.credit_then -= if turn { TURN_PERCENT } else { 0 };
                turn
            }
        };
        if new_turn {
            return self.waiting_new.pop_first().map(|(_, item)| item);
        }
        let ((_, sequence), Waiting { since, item }) = self.waiting.pop_first()?;
        self.known_since.remove(&(since, sequence));
        Some(item)
    }
}

/// Share of the turns of those, new or known, that have waited longer. The others get the rest.
const MORE_PERCENT: u32 = 80;
/// A turn.
const TURN_PERCENT: i32 = 100;

/// How full the frontier is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrontierStats {
    /// Items queued.
    pub queued: usize,
    /// Servers known.
    pub servers: usize,
    /// Servers with a request under way.
    pub busy: usize,
    /// Servers that are left alone after a failure.
    pub resting: usize,
}

impl<Item> Frontier<Item> {
    /// An empty frontier.
    pub fn new(politeness: Politeness) -> Self {
        Self {
            politeness,
            servers: BTreeMap::new(),
            ready: BTreeSet::new(),
            queued: 0,
            sequence: 0,
        }
    }

    /// Takes other politeness; it holds from each server's next request on.
    pub fn set_politeness(&mut self, politeness: Politeness) {
        self.politeness = politeness;
        let servers: Vec<ServerKey> = self.servers.keys().copied().collect();
        servers.into_iter().for_each(|server| self.list(server));
    }

    /// Sets a server's pace, for one that is loaded from the state or whose rules changed.
    pub fn set_pace(&mut self, server: ServerKey, pace: Pace) {
        self.entry(server).pace = pace;
        self.list(server);
    }

    /// Forgets a server that has nothing queued and nothing under way; returns whether it did.
    pub fn forget(&mut self, server: ServerKey) -> bool {
        let idle = self.servers.get(&server).is_none_or(|queue| !queue.busy && queue.len() == 0);
        if idle {
            self.servers.remove(&server);
        }
        idle
    }

    /// A server's pace.
    pub fn pace(&self, server: ServerKey) -> Option<&Pace> {
        self.servers.get(&server).map(|queue| &queue.pace)
    }

    /// Queues an item; smaller priorities go first, equal ones in the order they came. A priority is
    /// the time since which the item has been waiting, or 0 for what goes before all.
    pub fn push(&mut self, server: ServerKey, priority: u64, item: Item) {
        self.push_since(server, priority, priority, item);
    }

    /// As [`Self::push`], for an item that goes before others which have waited longer: since when it
    /// has been waiting says which share known and new items get, not its priority.
    pub fn push_since(&mut self, server: ServerKey, priority: u64, since: u64, item: Item) {
        self.sequence += 1;
        let sequence = self.sequence;
        let queue = self.entry(server);
        queue.waiting.insert((priority, sequence), Waiting { since, item });
        queue.known_since.insert((since, sequence));
        self.queued += 1;
        self.list(server);
    }

    /// Queues a new item that has been waiting since a time: these have their share of the turns
    /// ([`Politeness::new_percent`]) while others wait, and all turns otherwise. Smaller priorities
    /// go first, then smaller marks; no two items of a server have the same mark.
    pub fn push_new(
        &mut self,
        server: ServerKey,
        (priority, mark): (u64, u64),
        since: u64,
        item: Item,
    ) {
        let queue = self.entry(server);
        let is_first = queue.waiting_new.is_empty() && queue.resting_new == 0;
        queue.new_since = if is_first { since } else { queue.new_since.min(since) };
        if queue.waiting_new.insert((priority, mark), item).is_none() {
            self.queued += 1;
        }
        self.list(server);
    }

    /// Gives a new item that is queued another priority.
    pub fn reprioritise_new(&mut self, server: ServerKey, mark: u64, from: u64, to: u64) {
        let Some(queue) = self.servers.get_mut(&server) else { return };
        if let Some(item) = queue.waiting_new.remove(&(from, mark)) {
            queue.waiting_new.insert((to, mark), item);
        }
    }

    /// Says how many new items of a server wait elsewhere: while there are any, new items have been
    /// waiting without a pause.
    pub fn set_resting_new(&mut self, server: ServerKey, resting: usize) {
        self.entry(server).resting_new = resting;
    }

    /// New items queued for one server.
    pub fn queued_new_for(&self, server: ServerKey) -> usize {
        self.servers.get(&server).map_or(0, |queue| queue.waiting_new.len())
    }

    /// Takes the next item of a server that may be asked now. The server is busy until
    /// [`Frontier::done`]. The item has had its turn once it is [asked for](Frontier::asked); if
    /// something else is asked first, or nothing, the turn is still to come.
    pub fn take(&mut self, now_ms: i64) -> Option<(ServerKey, Item)> {
        let &(ready_ms, server) = self.ready.first()?;
        if ready_ms > now_ms {
            return None;
        }
        self.ready.pop_first();
        let queue = self.servers.get_mut(&server)?;
        queue.listed_ms = None;
        let item = queue.pop(self.politeness.new_percent)?;
        queue.busy = true;
        self.queued -= 1;
        Some((server, item))
    }

    /// The item that was taken last from a server is asked for: its turn counts.
    pub fn asked(&mut self, server: ServerKey) {
        if let Some(queue) = self.servers.get_mut(&server) {
            queue.credit_percent = queue.credit_then;
        }
    }

    /// Takes the next item of one server, without asking the server for anything.
    pub fn take_from(&mut self, server: ServerKey) -> Option<Item> {
        let item = self.servers.get_mut(&server)?.pop(self.politeness.new_percent)?;
        self.queued -= 1;
        self.list(server);
        Some(item)
    }

    /// The request to a server has ended.
    pub fn done(&mut self, server: ServerKey, now_ms: i64, feedback: Feedback) {
        let politeness = self.politeness.clone();
        let queue = self.entry(server);
        queue.busy = false;
        queue.pace.learn(now_ms, feedback, &politeness, u64::from(server));
        self.list(server);
    }

    /// Takes everything queued for a server away.
    pub fn drain(&mut self, server: ServerKey) -> Vec<Item> {
        let Some(queue) = self.servers.get_mut(&server) else { return Vec::new() };
        queue.known_since.clear();
        let known = std::mem::take(&mut queue.waiting).into_values().map(|waiting| waiting.item);
        let new = std::mem::take(&mut queue.waiting_new).into_values();
        let items: Vec<Item> = known.chain(new).collect();
        self.queued -= items.len();
        self.list(server);
        items
    }

    /// When the next server becomes ready.
    pub fn next_ready_ms(&self) -> Option<i64> {
        self.ready.first().map(|&(ready_ms, _)| ready_ms)
    }

    /// Items queued.
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Items queued for one server.
    pub fn queued_for(&self, server: ServerKey) -> usize {
        self.servers.get(&server).map_or(0, ServerQueue::len)
    }

    /// How full the frontier is.
    pub fn stats(&self, now_ms: i64) -> FrontierStats {
        let resting = |q: &&ServerQueue<Item>| q.pace.resting_until_ms.is_some_and(|t| t > now_ms);
        FrontierStats {
            queued: self.queued,
            servers: self.servers.len(),
            busy: self.servers.values().filter(|q| q.busy).count(),
            resting: self.servers.values().filter(resting).count(),
        }
    }

    fn entry(&mut self, server: ServerKey) -> &mut ServerQueue<Item> {
        self.servers.entry(server).or_insert_with(|| ServerQueue {
            waiting: BTreeMap::new(),
            known_since: BTreeSet::new(),
            waiting_new: BTreeMap::new(),
            resting_new: 0,
            new_since: 0,
            credit_percent: 0,
            credit_then: 0,
            pace: Pace::new(),
            busy: false,
            listed_ms: None,
        })
    }

    /// Brings a server's entry in `ready` up to date.
    fn list(&mut self, server: ServerKey) {
        let Some(queue) = self.servers.get_mut(&server) else { return };
        let wanted =
            (!queue.busy && queue.len() > 0).then(|| queue.pace.ready_ms(&self.politeness));
        if wanted == queue.listed_ms {
            return;
        }
        if let Some(listed_ms) = queue.listed_ms {
            self.ready.remove(&(listed_ms, server));
        }
        if let Some(ready_ms) = wanted {
            self.ready.insert((ready_ms, server));
        }
        queue.listed_ms = wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frontier() -> Frontier<u32> {
        Frontier::new(Politeness::default())
    }

    /// Takes the next item of a server and asks for it.
    fn ask(frontier: &mut Frontier<u32>, server: ServerKey) -> Option<u32> {
        let item = frontier.take_from(server);
        frontier.asked(server);
        item
    }

    #[test]
    fn other_politeness_holds_at_once() {
        let mut frontier = frontier();
        frontier.push(1, 0, 10);
        frontier.push(1, 0, 11);
        assert_eq!(frontier.take(0), Some((1, 10)));
        frontier.done(1, 0, Feedback::Answered { elapsed_ms: 0 });
        assert_eq!(frontier.next_ready_ms(), Some(1_000));
        frontier.set_politeness(Politeness { delay_ms: 5_000, ..Politeness::default() });
        assert_eq!(frontier.next_ready_ms(), Some(5_000));
    }

    #[test]
    fn a_server_is_forgotten_only_when_it_has_nothing() {
        let mut frontier = frontier();
        assert!(frontier.forget(1), "nobody knows it");
        frontier.push(1, 0, 10);
        assert!(!frontier.forget(1), "something is queued");
        assert_eq!(frontier.take(0), Some((1, 10)));
        assert!(!frontier.forget(1), "something is under way");
        frontier.done(1, 0, Feedback::Answered { elapsed_ms: 0 });
        assert!(frontier.pace(1).is_some());
        assert!(frontier.forget(1));
        assert!(frontier.pace(1).is_none());
    }

    #[test]
    fn a_pace_that_is_loaded_holds_at_once() {
        let mut pace = Pace::new();
        let busy = Feedback::Overloaded { retry_after_s: Some(120) };
        pace.learn(0, busy, &Politeness::default(), 1);
        let mut frontier = frontier();
        frontier.push(1, 0, 10);
        frontier.set_pace(1, pace.clone());
        assert_eq!(frontier.pace(1), Some(&pace));
        assert_eq!(frontier.next_ready_ms(), Some(120_000));
        assert_eq!(frontier.take(119_999), None);
        let stats = frontier.stats(119_999);
        assert_eq!((stats.queued, stats.servers, stats.busy, stats.resting), (1, 1, 0, 1));
        assert_eq!(frontier.stats(120_000).resting, 0);
        assert_eq!(frontier.take(120_000), Some((1, 10)));
        assert_eq!((frontier.stats(0).busy, frontier.next_ready_ms()), (1, None));
    }

    #[test]
    fn items_are_counted_moved_and_taken_away() {
        let mut frontier = frontier();
        frontier.push(1, 3, 1);
        frontier.push_new(1, (5, 1), 3, 2);
        frontier.push_new(1, (5, 1), 3, 3);
        frontier.push_new(1, (6, 2), 3, 4);
        frontier.push(2, 0, 5);
        assert_eq!(
            (frontier.queued(), frontier.queued_for(1), frontier.queued_new_for(1)),
            (4, 3, 2)
        );
        assert_eq!((frontier.queued_for(9), frontier.queued_new_for(9)), (0, 0));
        frontier.reprioritise_new(1, 2, 6, 4);
        frontier.reprioritise_new(1, 7, 6, 4);
        assert_eq!(frontier.drain(1), [1, 4, 3]);
        assert_eq!((frontier.queued(), frontier.queued_for(1)), (1, 0));
        assert_eq!(frontier.take(0), Some((2, 5)));
        assert_eq!(frontier.take(i64::MAX), None);
        assert_eq!(frontier.drain(9), []);
    }

    #[test]
    fn new_and_known_items_share_the_turns() {
        let politeness = Politeness { new_percent: Some(50), ..Politeness::default() };
        let mut frontier = Frontier::new(politeness);
        for n in 0..10 {
            frontier.push(1, 5, n);
            frontier.push_new(1, (0, u64::from(n)), 5, 100 + n);
        }
        frontier.push(1, 0, 999);
        let order: Vec<u32> = std::iter::from_fn(|| ask(&mut frontier, 1)).collect();
        assert_eq!(order[0], 999);
        assert_eq!(order[1..7].iter().filter(|&&n| n >= 100).count(), 3);
        assert_eq!(order.len(), 21);
        assert_eq!(frontier.queued(), 0);
    }

    #[test]
    fn those_that_have_waited_longer_get_four_turns_of_five() {
        let taken = |known_since: u64, new_since: u64| {
            let mut frontier = frontier();
            (0..100).for_each(|n| frontier.push(1, known_since, n));
            (0..20).for_each(|n| frontier.push_new(1, (0, n), new_since, 1_000));
            (0..20).filter_map(|_| ask(&mut frontier, 1)).filter(|&n| n >= 1_000).count()
        };
        assert_eq!((taken(5, 6), taken(5, 5), taken(6, 5)), (4, 16, 16));
    }

    #[test]
    fn where_a_server_has_a_single_turn_those_get_it_that_have_waited_longer() {
        let first = |known_since: u64, new_since: u64| {
            let mut frontier = frontier();
            (0..9).for_each(|n| frontier.push(1, known_since, n));
            (0..9).for_each(|n| frontier.push_new(1, (0, n), new_since, 1_000));
            // Its robots.txt is asked for before, and a page whose site has closed is put to rest.
            for _ in 0..3 {
                frontier.take_from(1);
            }
            ask(&mut frontier, 1).is_some_and(|n| n >= 1_000)
        };
        assert_eq!((first(5, 6), first(6, 5)), (false, true));
    }

    /// Pages whose visits are worth much go first among the known ones, but take no turns from new ones
    /// that have waited longer.
    #[test]
    fn an_urgent_known_item_does_not_count_as_one_that_has_waited_long() {
        let mut frontier = frontier();
        (0..100).for_each(|n| frontier.push_since(1, 2, 9, n));
        frontier.push_since(1, 1, 9, 500);
        (0..20).for_each(|n| frontier.push_new(1, (0, n), 8, 1_000));
        let taken: Vec<u32> = (0..20).filter_map(|_| ask(&mut frontier, 1)).collect();
        assert_eq!(taken.iter().filter(|&&n| n >= 1_000).count(), 16);
        assert_eq!(taken.iter().find(|&&n| n < 1_000), Some(&500));
        // One that has waited longer than all new ones gives the known ones their share.
        frontier.push_since(1, 3, 7, 600);
        let taken: Vec<u32> = (0..20).filter_map(|_| ask(&mut frontier, 1)).collect();
        assert_eq!(taken.iter().filter(|&&n| n >= 1_000).count(), 4);
        assert!(!taken.contains(&600), "its priority is as it was");
    }

    #[test]
    fn new_items_have_waited_since_the_first_of_them_came_until_none_is_left() {
        let since = |resting: usize| {
            let mut frontier = frontier();
            frontier.push_new(1, (0, 1), 5, 1);
            frontier.set_resting_new(1, resting);
            frontier.take_from(1);
            frontier.push_new(1, (0, 2), 9, 2);
            frontier.servers[&1].new_since
        };
        assert_eq!((since(1), since(0)), (5, 9));
    }

    #[test]
    fn a_new_item_moves_with_its_priority() {
        let mut frontier = frontier();
        for (mark, priority) in [(1, 9), (2, 5), (3, 5)] {
            frontier.push_new(1, (priority, mark), 0, mark as u32);
        }
        frontier.reprioritise_new(1, 1, 9, 4);
        frontier.reprioritise_new(1, 2, 9, 1);
        frontier.reprioritise_new(1, 3, 5, 6);
        let order: Vec<u32> = std::iter::from_fn(|| frontier.take_from(1)).collect();
        assert_eq!(order, [1, 2, 3]);
    }

    #[test]
    fn one_request_per_server_at_a_time() {
        let mut frontier = frontier();
        frontier.push(1, 0, 10);
        frontier.push(1, 0, 11);
        frontier.push(2, 0, 20);
        assert_eq!(frontier.take(0), Some((1, 10)));
        assert_eq!(frontier.take(0), Some((2, 20)));
        assert_eq!(frontier.take(0), None);
        frontier.done(1, 50, Feedback::Answered { elapsed_ms: 50 });
        assert_eq!(frontier.take(1_049), None);
        assert_eq!(frontier.next_ready_ms(), Some(1_050));
        assert_eq!(frontier.take(1_050), Some((1, 11)));
    }

    #[test]
    fn smaller_priorities_go_first() {
        let mut frontier = frontier();
        for (priority, item) in [(5, 1), (1, 2), (5, 3), (0, 4)] {
            frontier.push(1, priority, item);
        }
        let mut order = Vec::new();
        let mut now_ms = 0;
        while let Some((server, item)) = frontier.take(now_ms) {
            order.push(item);
            frontier.done(server, now_ms, Feedback::NotAsked);
            now_ms += 10_000;
        }
        assert_eq!(order, [4, 2, 1, 3]);
    }

    #[test]
    fn a_drained_server_has_nothing_left() {
        let mut frontier = frontier();
        frontier.push(1, 0, 1);
        frontier.push(1, 0, 2);
        assert_eq!(frontier.drain(1), [1, 2]);
        assert_eq!((frontier.queued(), frontier.next_ready_ms()), (0, None));
        assert_eq!(frontier.take(i64::MAX), None);
    }

    #[derive(Debug, Clone)]
    enum Act {
        Push(u32, u64),
        Take,
        Done(usize, i64),
        Wait(i64),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0..4_u32, 0..3_u64).prop_map(|(server, priority)| Act::Push(server, priority)),
            Just(Act::Take),
            (0..4_usize, 0..3_000_i64).prop_map(|(which, elapsed)| Act::Done(which, elapsed)),
            (0..2_000_i64).prop_map(Act::Wait),
        ]
    }

    proptest! {
        #[test]
        fn a_server_is_never_asked_twice_within_its_delay(acts in prop::collection::vec(act(), 1..200)) {
            let mut frontier = frontier();
            let (mut now_ms, mut pushed, mut taken) = (0, 0, 0);
            let mut under_way: Vec<u32> = Vec::new();
            let mut ended: BTreeMap<u32, i64> = BTreeMap::new();
            for act in acts {
                match act {
                    Act::Push(server, priority) => { frontier.push(server, priority, pushed); pushed += 1; }
                    Act::Wait(ms) => now_ms += ms,
                    Act::Take => if let Some((server, _)) = frontier.take(now_ms) {
                        prop_assert!(!under_way.contains(&server));
                        if let Some(end_ms) = ended.get(&server) {
                            prop_assert!(now_ms - end_ms >= 1_000);
                        }
                        under_way.push(server);
                        taken += 1;
                    },
                    Act::Done(which, elapsed_ms) => if !under_way.is_empty() {
                        let server = under_way.swap_remove(which % under_way.len());
                        frontier.done(server, now_ms, Feedback::Answered { elapsed_ms });
                        ended.insert(server, now_ms);
                    },
                }
                prop_assert_eq!(frontier.queued(), (pushed - taken) as usize);
            }
        }
    }
}
