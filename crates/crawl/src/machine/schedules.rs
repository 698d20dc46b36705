//! Schedules: each continuous site's page revisit scheduler, its budget, and whether a site may be
//! collected now.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_revisit::{DAY_S, Found, PageRevisitScheduler, is_open, next_turn_s};
use nenrin_state::{Change, DuePage, Estimate, Outcome, ServerId, Site, SiteId, VisitCommit};

use super::Crawl;
use crate::{Answer, Command};

/// A continuous site.
#[derive(Debug)]
pub(super) struct SiteSchedule {
    pub(super) scheduler: PageRevisitScheduler,
    /// Its pages' shared memory was loaded.
    ready: bool,
    /// The day and the visits made in it.
    today: (i64, u64),
    /// When a day's visits were last used up.
    spent_s: Option<i64>,
}

/// Whether a site may be collected, and until when that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Door {
    open: bool,
    /// Whether these are the site's hours, and since when if they were not before.
    in_hours: bool,
    opened_ms: i64,
    until_ms: i64,
}

impl Door {
    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

impl SiteSchedule {
    /// Whether its pages' shared memory was loaded.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }
}

impl Crawl {
    /// The sites are as told: schedulers follow.
    pub(super) fn sites_told(&mut self, sites: Vec<Site>, out: &mut Vec<Command>) {
        self.sites = sites.into_iter().map(|site| (site.id, site)).collect();
        self.doors.retain(|site, _| self.sites.contains_key(site));
        self.doors.values_mut().for_each(|door| door.until_ms = i64::MIN);
        self.doors_until_ms = i64::MIN;
        let bucket_s = self.options.bucket_s;
        let sites = &self.sites;
        self.schedules.retain(|id, schedule| {
            let settings = sites.get(id).and_then(|site| site.conditions.schedule.continuous());
            settings == Some(schedule.scheduler.settings())
        });
        for site in self.sites.values() {
            let Some(settings) = site.conditions.schedule.continuous() else { continue };
            self.schedules.entry(site.id).or_insert_with(|| {
                out.push(Command::LoadShared(site.id));
                let scheduler = PageRevisitScheduler::new(settings.clone(), bucket_s);
                SiteSchedule { scheduler, ready: false, today: (0, 0), spent_s: None }
            });
        }
        self.look_again();
    }

    pub(super) fn shared_loaded(
        &mut self,
        now_ms: i64,
        site: SiteId,
        bytes: &[u8],
        visits_today: u64,
    ) {
        let Some(schedule) = self.schedules.get_mut(&site) else { return };
        // A memory that is damaged, or was another policy's, is learnt anew.
        let _ = schedule.scheduler.restore(bytes);
        schedule.ready = true;
        let day = (now_ms / 1000).div_euclid(DAY_S);
        schedule.today = (day, visits_today);
        let so_far = if self.today.0 == day { self.today.1 } else { 0 };
        self.today = (day, so_far + visits_today);
        self.forget_door(site);
        self.look_again();
        self.share_budget();
    }

    /// Pages that rest may be visited now: they are looked for again.
    pub(super) fn look_again(&mut self) {
        self.refresher.look_again();
        self.new_pages_look_again();
    }

    /// Divides the archive's budget among the sites without their own, by what their pages ask for.
    fn share_budget(&mut self) {
        let Some(all) = self.options.visits_per_day else { return };
        let own: u64 =
            self.schedules.values().filter_map(|s| s.scheduler.settings().visits_per_day).sum();
        let left = all.saturating_sub(own) as f64;
        let pages = |site: &SiteId| self.sites.get(site).map_or(0, |site| site.counts.pages);
        let need = |site: &SiteId, schedule: &SiteSchedule| {
            let known = schedule.scheduler.need_per_day().filter(|need| *need > 0.0);
            known.unwrap_or(1.0 + pages(site) as f64 / 7.0)
        };
        let needs: BTreeMap<SiteId, f64> = self
            .schedules
            .iter()
            .filter(|(_, schedule)| schedule.scheduler.settings().visits_per_day.is_none())
            .map(|(site, schedule)| (*site, need(site, schedule)))
            .collect();
        let sum: f64 = needs.values().sum();
        for (site, need) in needs {
            if let Some(schedule) = self.schedules.get_mut(&site) {
                schedule.scheduler.set_visits_per_day(Some((left * need / sum).max(1.0)));
            }
        }
    }

    /// Whether a site's pages may be asked for now.
    pub(super) fn is_open(&self, site: SiteId) -> bool {
        self.doors.get(&site).is_none_or(|door| door.open)
    }

    /// Looks which sites are open, where that may have changed.
    pub(super) fn watch_doors(&mut self, now_ms: i64) {
        if now_ms < self.doors_until_ms {
            return;
        }
        let mut opened = false;
        for site in self.sites.values() {
            if self.doors.get(&site.id).is_some_and(|door| now_ms < door.until_ms) {
                continue;
            }
            let mut door = self.door(now_ms, site);
            door.opened_ms = match self.doors.get(&site.id) {
                None => i64::MIN,
                Some(before) if before.in_hours => before.opened_ms,
                Some(_) => now_ms,
            };
            let before = self.doors.insert(site.id, door);
            opened |= door.open && before.is_some_and(|before| !before.open);
        }
        let until_ms = self.doors.values().map(|door| door.until_ms);
        self.doors_until_ms = until_ms.min().unwrap_or(i64::MAX);
        if opened {
            self.look_again();
            self.share_budget();
        }
    }

    /// Other sites than before have reached their quota.
    pub(super) fn sites_full(&mut self, sites: BTreeSet<SiteId>) {
        let before = std::mem::replace(&mut self.full, sites);
        let turned: Vec<SiteId> = before.symmetric_difference(&self.full).copied().collect();
        turned.into_iter().for_each(|site| self.forget_door(site));
    }

    /// A site's door is to be looked at anew.
    fn forget_door(&mut self, site: SiteId) {
        if let Some(door) = self.doors.get_mut(&site) {
            door.until_ms = i64::MIN;
        }
        self.doors_until_ms = i64::MIN;
    }

    fn door(&self, now_ms: i64, site: &Site) -> Door {
        let now_s = now_ms / 1000;
        let windows = &site.conditions.windows;
        let turn_ms = next_turn_s(windows, now_s).map_or(i64::MAX, |turn_s| turn_s * 1000);
        let Some(schedule) = self.schedules.get(&site.id) else {
            let open = is_open(windows, now_s) && !self.full.contains(&site.id);
            return Door { open, in_hours: open, opened_ms: now_ms, until_ms: turn_ms };
        };
        let midnight_ms = (now_s.div_euclid(DAY_S) + 1) * DAY_S * 1000;
        let is_full = self.full.contains(&site.id);
        let in_hours = !site.paused && !is_full && is_open(windows, now_s);
        let open = in_hours && schedule.ready && !self.is_spent(now_s, schedule);
        let until_ms = turn_ms.min(midnight_ms);
        Door { open, in_hours, opened_ms: now_ms, until_ms }
    }

    /// Whether today's visits are used up.
    fn is_spent(&self, now_s: i64, schedule: &SiteSchedule) -> bool {
        let day = now_s.div_euclid(DAY_S);
        let reached = |most: Option<u64>, today: (i64, u64)| {
            most.is_some_and(|most| today.0 == day && today.1 >= most)
        };
        reached(schedule.scheduler.settings().visits_per_day, schedule.today)
            || reached(self.options.visits_per_day, self.today)
    }

    /// When a site next opens or closes.
    pub(super) fn next_door_ms(&self) -> Option<i64> {
        Some(self.doors_until_ms).filter(|&until_ms| until_ms < i64::MAX)
    }

    /// Sites whose due pages rest.
    pub(super) fn closed_sites(&self) -> Vec<SiteId> {
        self.schedules.keys().copied().filter(|&site| !self.is_open(site)).collect()
    }

    /// A request for a page of this site goes out.
    pub(super) fn count_visit(&mut self, now_ms: i64, site: SiteId) {
        let day = (now_ms / 1000).div_euclid(DAY_S);
        let Some(schedule) = self.schedules.get_mut(&site) else { return };
        for today in [&mut schedule.today, &mut self.today] {
            *today = if today.0 == day { (day, today.1 + 1) } else { (day, 1) };
        }
        if schedule.scheduler.settings().visits_per_day == Some(schedule.today.1) {
            schedule.spent_s = Some(now_ms / 1000);
            self.forget_door(site);
        }
        if self.options.visits_per_day == Some(self.today.1) {
            let all = self.schedules.values_mut();
            all.for_each(|schedule| schedule.spent_s = Some(now_ms / 1000));
            self.doors.values_mut().for_each(|door| door.until_ms = i64::MIN);
            self.doors_until_ms = i64::MIN;
        }
        self.watch_doors(now_ms);
    }

    /// Whether a page's visit is not worth it after all: then it gets another time.
    pub(super) fn put_off(&mut self, now_ms: i64, due: &DuePage, out: &mut Vec<Command>) -> bool {
        let bucket_s = self.options.bucket_s.max(1);
        let stretch = self.stretch(due.page.id.server());
        let Some(schedule) = self.schedules.get_mut(&due.site).filter(|_| !due.pulled) else {
            return false;
        };
        let now_s = now_ms / 1000;
        let at_s = due.page.due_s.unwrap_or(now_s).max(now_s);
        let later_s = schedule.scheduler.put_off(at_s, &due.page.known(), stretch);
        // A time in the present bucket would not be looked at again.
        let later_s =
            later_s.filter(|later_s| later_s.div_euclid(bucket_s) > now_s.div_euclid(bucket_s));
        let Some(due_s) = later_s else { return false };
        let change = Change::Due { page: due.page.id, due_s };
        out.push(Command::Commit { ticket: None, change });
        true
    }

    /// Paper 004's page revisit scheduler: sets the next visit and keeps what the policy learnt.
    ///
    /// `changed` is the change that drives the schedule: any byte, or a significant one.
    pub(super) fn plan_next(
        &mut self,
        due: &DuePage,
        visit: &mut VisitCommit,
        changed: bool,
        answer: Option<&Answer>,
        out: &mut Vec<Command>,
    ) {
        let server = due.page.id.server();
        let stretch = self.stretch(server);
        let mut known = due.page.known();
        known.importance_percent = visit.importance_percent.unwrap_or(known.importance_percent);
        let found = match visit.outcome {
            Outcome::Changed | Outcome::Same | Outcome::NotModified if changed => Found::Changed,
            Outcome::Changed | Outcome::Same | Outcome::NotModified => Found::Same,
            missed => missed.found(),
        };
        self.tell_companions(due, visit, found, answer, out);
        let Some(schedule) = self.schedules.get_mut(&due.site) else { return };
        let last_modified_s = answer.and_then(|answer| answer.last_modified_s);
        let planned =
            schedule.scheduler.visited(visit.at_s, &known, found, last_modified_s, stretch);
        visit.update.due_s = Some(planned.due_s);
        visit.update.history = planned.history;
        visit.update.failures = planned.failures;
        visit.estimate = planned.rate.map(|(rate, confidence)| Estimate::new(rate, confidence));
        if let Some(bytes) = schedule.scheduler.keep() {
            let change = Change::Shared { site: due.site, bytes };
            out.push(Command::Commit { ticket: None, change });
        }
        self.note_lateness(server, due, visit);
    }

    /// A server whose pages are visited late has its intervals stretched. Outside a site's hours,
    /// and where a day's visits were used up since a page was due, pages are late for another
    /// reason.
    fn note_lateness(&mut self, server: ServerId, due: &DuePage, visit: &VisitCommit) {
        let spent_s = self.schedules.get(&due.site).and_then(|schedule| schedule.spent_s);
        if spent_s.is_some_and(|spent_s| due.page.due_s.is_some_and(|due_s| due_s <= spent_s)) {
            return;
        }
        let opened_s = self.doors.get(&due.site).map_or(i64::MIN, |door| door.opened_ms / 1000);
        let planned_s = due.page.due_s.filter(|_| due.page.visited_s.is_some() && !due.pulled);
        let planned_s = planned_s.map(|due_s| due_s.max(opened_s));
        let (Some(due_s), Some(state)) = (planned_s, self.servers.get_mut(&server)) else { return };
        let interval_s = visit.update.due_s.map_or(0, |next_s| next_s - visit.at_s);
        state.overflow.visited(visit.at_s, due_s, interval_s, self.options.bucket_s);
    }

    pub(super) fn stretch(&self, server: ServerId) -> f64 {
        self.servers.get(&server).map_or(1.0, |state| state.overflow.stretch())
    }

    /// Before the end: what was learnt since it was last kept.
    pub(super) fn keep_all(&mut self, out: &mut Vec<Command>) {
        for (&site, schedule) in &mut self.schedules {
            if let Some(bytes) = schedule.scheduler.keep_now() {
                out.push(Command::Commit { ticket: None, change: Change::Shared { site, bytes } });
            }
        }
    }
}
