//! Schedules: each continuous site's page revisit scheduler, its budget, and whether a site may be
//! collected now.

mod openings;

use std::collections::BTreeMap;

use nenrin_revisit::{
    Circle, Companions, DAY_S, NEAR_MAX, PageRevisitScheduler, WORTH_MAX_S, is_open, next_turn_s,
};
use nenrin_state::{
    Change, Division, DuePage, Estimate, Need, Outcome, PageRecord, Site, SiteId, VisitCommit,
};
use nenrin_urls::CanonicalUrl;

use crate::{
    answer::{Answer, LinkRole},
    events::{Command, Load},
    near::NearQuery,
    options::CrawlOptions,
    sites::Sites,
};

use self::openings::{Opening, Openings};

/// The schedules of all sites.
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    /// Sites whose pages have times of their own.
    sites: BTreeMap<SiteId, SiteSchedule>,
    openings: Openings,
    /// Visits to pages with times of their own.
    today: DayVisits,
    /// Those of the day before the machine began, as far as they were loaded.
    yesterday: DayVisits,
    /// How the visits of a day of all sites are divided among partitions, if there are several and the
    /// archive keeps a budget.
    division: Option<Division>,
    /// Pages of all sites, counted when the archive's budget was last shared out.
    pages: u64,
    /// Whether any visits are divided among partitions.
    has_divisions: bool,
    /// The day for which divisions were last asked for.
    divided_day: i64,
}

/// A continuous site.
#[derive(Debug)]
struct SiteSchedule {
    scheduler: PageRevisitScheduler,
    /// Its pages' shared memory was loaded.
    is_ready: bool,
    today: DayVisits,
    /// Those of the day before the machine began.
    yesterday: DayVisits,
    /// When a day's visits were last used up.
    spent_s: Option<i64>,
    /// How the site's visits of a day are divided among partitions, if there are several.
    division: Option<Division>,
}

/// The visits of one day.
#[derive(Debug, Clone, Copy, Default)]
struct DayVisits {
    day: i64,
    visits: u64,
}

impl DayVisits {
    fn on(self, day: i64) -> u64 {
        if self.day == day { self.visits } else { 0 }
    }

    fn add(&mut self, day: i64, visits: u64) {
        *self = Self { day, visits: self.on(day) + visits };
    }

    /// Whether no more visits are allowed.
    fn are_spent(self, day: i64, most: Option<u64>) -> bool {
        most.is_some_and(|most| self.on(day) >= most)
    }
}

impl Schedules {
    /// The sites changed: each site whose pages have times of their own gets a scheduler.
    pub(crate) fn follow(&mut self, sites: &Sites, bucket_s: i64, out: &mut Vec<Command>) {
        self.openings.follow(sites);
        self.sites.retain(|&id, schedule| {
            let settings = sites.get(id).and_then(|site| site.conditions.schedule.continuous());
            settings == Some(schedule.scheduler.settings())
        });
        for site in sites.iter() {
            let Some(settings) = site.conditions.schedule.continuous() else { continue };
            self.sites.entry(site.id).or_insert_with(|| {
                out.push(Command::Load(Load::Shared(site.id)));
                SiteSchedule {
                    scheduler: PageRevisitScheduler::new(settings.clone(), bucket_s),
                    is_ready: false,
                    today: DayVisits::default(),
                    yesterday: DayVisits::default(),
                    spent_s: None,
                    division: None,
                }
            });
        }
    }

    /// What a site's pages share came from the state, with its visits of yesterday and today. Returns
    /// whether the site is a continuous one.
    pub(crate) fn loaded(
        &mut self,
        now_s: i64,
        site: SiteId,
        bytes: &[u8],
        [visits_yesterday, visits_today]: [u64; 2],
    ) -> bool {
        let Some(schedule) = self.sites.get_mut(&site) else { return false };
        // A memory that is damaged, or was another policy's, is learnt again.
        let _ = schedule.scheduler.restore(bytes);
        schedule.is_ready = true;
        let day = now_s.div_euclid(DAY_S);
        schedule.today = DayVisits { day, visits: visits_today };
        schedule.yesterday = DayVisits { day: day - 1, visits: visits_yesterday };
        self.yesterday.add(day - 1, visits_yesterday);
        if schedule.today.are_spent(day, schedule.visits_per_day()) {
            schedule.spent_s = Some(now_s);
        }
        self.today.add(day, visits_today);
        // They count for the archive's budget, so other sites may have to wait.
        self.openings.forget_all();
        true
    }

    /// A machine that has just begun does not know whether the visits of yesterday were used up: those of
    /// a site that was loaded, and those of the archive once all sites were, say so. Without that the
    /// servers that may be asked most often would take the day's visits after every restart.
    pub(crate) fn recall_yesterday(&mut self, now_s: i64, site: SiteId, options: &CrawlOptions) {
        let day = now_s.div_euclid(DAY_S);
        let end_s = day * DAY_S - 1;
        if let Some(schedule) = self.sites.get_mut(&site)
            && schedule.yesterday.are_spent(day - 1, schedule.visits_per_day())
        {
            schedule.spent_s = schedule.spent_s.max(Some(end_s));
        }
        let all_ready = self.sites.values().all(|schedule| schedule.is_ready);
        if all_ready && self.yesterday.are_spent(day - 1, self.archive_visits(options)) {
            for schedule in self.sites.values_mut() {
                schedule.spent_s = schedule.spent_s.max(Some(end_s));
            }
        }
    }

    /// Whether no page has a time of its own.
    pub(crate) fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Whether nothing of a site is still being loaded.
    pub(crate) fn is_ready(&self, site: SiteId) -> bool {
        self.sites.get(&site).is_none_or(|schedule| schedule.is_ready)
    }

    /// Before the end: what was learnt since it was last kept.
    pub(crate) fn keep_all(&mut self, out: &mut Vec<Command>) {
        for (&site, schedule) in &mut self.sites {
            if let Some(bytes) = schedule.scheduler.keep_now() {
                out.push(Command::commit(Change::Shared { site, bytes }));
            }
        }
    }
}

/// Hours and budgets.
impl Schedules {
    /// Whether a site's pages may be asked for now.
    pub(crate) fn is_open(&self, site: SiteId) -> bool {
        self.openings.is_open(site)
    }

    /// Sites whose due pages rest.
    pub(crate) fn closed_sites(&self) -> Vec<SiteId> {
        self.sites.keys().copied().filter(|&site| !self.is_open(site)).collect()
    }

    /// When a site next opens or closes.
    pub(crate) fn next_turn_ms(&self) -> Option<i64> {
        self.openings.next_turn_ms()
    }

    /// Whether a site may be collected is to be looked at again.
    pub(crate) fn reconsider(&mut self, site: SiteId) {
        self.openings.forget(site);
    }

    /// Looks which sites are open, where that may have changed. Returns whether one opened.
    pub(crate) fn watch(&mut self, now_ms: i64, sites: &Sites, options: &CrawlOptions) -> bool {
        let (schedules, today) = (&self.sites, self.today);
        let (all, division) = (self.archive_visits(options), &self.division);
        // Before the visits of every site came, those of the archive are not known.
        let is_counted = all.is_none() || schedules.values().all(|schedule| schedule.is_ready);
        self.openings.watch(now_ms, sites, |site| {
            opening(now_ms, site, sites.is_full(site.id), schedules.get(&site.id), |day| {
                !is_counted || today.are_spent(day, all) || !is_of_day(division.as_ref(), day)
            })
        })
    }

    /// The pause between two requests to a server for a site whose visits of yesterday, or those of the
    /// archive, were used up: half a day is enough for today's. Otherwise the servers that may be asked most often would take
    /// all of them every day, and the pages of the others would wait for ever.
    pub(crate) fn pause_ms(
        &self,
        now_ms: i64,
        site: SiteId,
        options: &CrawlOptions,
    ) -> Option<i64> {
        let schedule = self.sites.get(&site)?;
        let visits = schedule.visits_per_day().or_else(|| self.archive_visits(options))?;
        let visits = i64::try_from(visits).ok()?;
        let is_day_before =
            |spent_s: &i64| spent_s.div_euclid(DAY_S) + 1 == now_ms.div_euclid(1000 * DAY_S);
        let day = schedule.spent_s.as_ref().is_some_and(is_day_before).then_some(DAY_S * 1000);
        day.map(|day_ms| day_ms / visits.max(1).saturating_mul(2))
    }

    /// Divides the archive's budget among the sites without their own, by what their pages ask for.
    pub(crate) fn share_budget(&mut self, sites: &Sites, options: &CrawlOptions) {
        let Some(all) = self.archive_visits(options) else { return };
        self.pages = self.sites.keys().map(|&site| pages_of(sites.get(site))).sum();
        let own = SiteSchedule::visits_per_day;
        let taken: u64 = self.sites.values().filter_map(own).sum();
        let left = all.saturating_sub(taken) as f64;
        let sharing = self.sites.iter().filter(|(_, schedule)| own(schedule).is_none());
        let needs: BTreeMap<SiteId, f64> =
            sharing.map(|(&site, schedule)| (site, schedule.need(sites.get(site)))).collect();
        let sum: f64 = needs.values().sum();
        for (site, need) in needs {
            if let Some(schedule) = self.sites.get_mut(&site) {
                schedule.scheduler.set_visits_per_day(Some((left * need / sum).max(1.0)));
            }
        }
    }

    /// A request for a page of this site goes out. Returns whether the site keeps a budget, so that
    /// it is to be looked at whether the site has closed.
    pub(crate) fn count_visit(&mut self, now_s: i64, site: SiteId, options: &CrawlOptions) -> bool {
        let day = now_s.div_euclid(DAY_S);
        let Some(schedule) = self.sites.get_mut(&site) else { return false };
        schedule.today.add(day, 1);
        self.today.add(day, 1);
        if schedule.today.are_spent(day, schedule.visits_per_day()) {
            schedule.spent_s = Some(now_s);
            self.openings.forget(site);
        }
        if self.today.are_spent(day, self.archive_visits(options)) {
            self.sites.values_mut().for_each(|schedule| schedule.spent_s = Some(now_s));
            self.openings.forget_all();
        }
        true
    }

    /// The visits that all sites may have here on a day.
    fn archive_visits(&self, options: &CrawlOptions) -> Option<u64> {
        let visits = options.visits_per_day?;
        Some(self.division.as_ref().map_or(visits, |division| division.part_of(visits)))
    }
}

/// Budgets over several partitions, of sites and of the archive. Every day each partition says what its
/// pages will ask for on the next, and all divide the visits by that.
impl Schedules {
    /// A day begins: how its visits are divided is asked for.
    pub(crate) fn begin_day(&mut self, now_s: i64, out: &mut Vec<Command>) {
        let day = now_s.div_euclid(DAY_S);
        if !self.has_divisions || self.divided_day == day {
            return;
        }
        self.divided_day = day;
        for (&site, schedule) in &self.sites {
            if schedule.is_ready && !is_of_day(schedule.division.as_ref(), day) {
                out.push(Command::Load(Load::Division { site: Some(site), day }));
            }
        }
        if !is_of_day(self.division.as_ref(), day) {
            out.push(Command::Load(Load::Division { site: None, day }));
        }
    }

    /// How a site's visits of a day are divided came from the state.
    pub(crate) fn divided(
        &mut self,
        now_s: i64,
        site: SiteId,
        division: Division,
        sites: &Sites,
        out: &mut Vec<Command>,
    ) {
        let Some(schedule) = self.sites.get_mut(&site) else { return };
        if schedule.scheduler.settings().visits_per_day.is_none() {
            return;
        }
        self.has_divisions = true;
        let day = now_s.div_euclid(DAY_S);
        if division.day != day {
            // Midnight passed meanwhile.
            out.push(Command::Load(Load::Division { site: Some(site), day }));
        }
        schedule.division = Some(division);
        if schedule.today.are_spent(day, schedule.visits_per_day()) {
            schedule.spent_s = Some(now_s);
        }
        // A day without any visit must not look as if pages were never worth one.
        let part = schedule.visits_per_day().map(|visits| visits.max(1) as f64);
        schedule.scheduler.set_visits_per_day(part);
        let need = schedule.need_with_new(sites.get(site));
        out.push(Command::commit(Change::Need { site: Some(site), day: day + 1, need }));
        self.openings.forget(site);
    }

    /// How the archive's visits of a day are divided came from the state.
    pub(crate) fn archive_divided(
        &mut self,
        now_s: i64,
        division: Division,
        sites: &Sites,
        options: &CrawlOptions,
        out: &mut Vec<Command>,
    ) {
        if options.visits_per_day.is_none() {
            return;
        }
        self.has_divisions = true;
        let day = now_s.div_euclid(DAY_S);
        if division.day != day {
            // Midnight passed meanwhile.
            out.push(Command::Load(Load::Division { site: None, day }));
        }
        self.division = Some(division);
        if self.today.are_spent(day, self.archive_visits(options)) {
            self.sites.values_mut().for_each(|schedule| schedule.spent_s = Some(now_s));
        }
        // What was said first holds, so all sites must be known.
        if self.sites.values().all(|schedule| schedule.is_ready) {
            let mut need = Need { milli_visits: 0, pages: 0 };
            for (&id, schedule) in &self.sites {
                let of_site = schedule.need_with_new(sites.get(id));
                need.milli_visits += of_site.milli_visits;
                need.pages += of_site.pages;
            }
            out.push(Command::commit(Change::Need { site: None, day: day + 1, need }));
        }
        self.openings.forget_all();
    }
}

/// The pages of a site.
fn pages_of(site: Option<&Site>) -> u64 {
    site.map_or(0, |site| site.counts.pages)
}

/// How long it takes to visit so many pages once.
fn once_s(pages: u64, visits_per_day: u64) -> i64 {
    let days = pages as f64 / visits_per_day.max(1) as f64;
    (days * DAY_S as f64) as i64
}

/// Whether it is known how the visits of a day are divided, where they are.
fn is_of_day(division: Option<&Division>, day: i64) -> bool {
    division.is_none_or(|division| division.day == day)
}

fn opening(
    now_ms: i64,
    site: &Site,
    is_full: bool,
    schedule: Option<&SiteSchedule>,
    archive_is_spent: impl Fn(i64) -> bool,
) -> Opening {
    let now_s = now_ms / 1000;
    let windows = &site.conditions.windows;
    let turn_ms = next_turn_s(windows, now_s).map_or(i64::MAX, |turn_s| turn_s * 1000);
    let in_window = is_open(windows, now_s) && !is_full;
    let Some(schedule) = schedule else {
        return Opening { is_open: in_window, in_hours: in_window, until_ms: turn_ms };
    };
    let day = now_s.div_euclid(DAY_S);
    let own = schedule.visits_per_day();
    let is_spent = schedule.today.are_spent(day, own) || archive_is_spent(day);
    let is_divided = is_of_day(schedule.division.as_ref(), day);
    let in_hours = !site.paused && in_window;
    let midnight_ms = (day + 1) * DAY_S * 1000;
    Opening {
        is_open: in_hours && schedule.is_ready && is_divided && !is_spent,
        in_hours,
        until_ms: turn_ms.min(midnight_ms),
    }
}

/// When pages are visited next.
impl Schedules {
    /// The later time of a page whose visit is not worth it after all.
    pub(crate) fn put_off(
        &mut self,
        now_s: i64,
        due: &DuePage,
        stretch: f64,
        bucket_s: i64,
    ) -> Option<i64> {
        let bucket_s = bucket_s.max(1);
        let schedule = self.sites.get_mut(&due.site).filter(|_| !due.pulled)?;
        let at_s = due.page.due_s.unwrap_or(now_s).max(now_s);
        let later_s = schedule.scheduler.put_off(at_s, &due.page.known(), stretch);
        // A time in the present bucket would not be looked at again.
        later_s.filter(|later_s| later_s.div_euclid(bucket_s) > now_s.div_euclid(bucket_s))
    }

    /// Since when a page that is due counts as waiting. Where pages go by the worth of a visit, those
    /// that are worth least would never get a turn: a page that has been due for as long as it takes to
    /// visit every page once goes before all that have not, and among these the one that is due longest.
    pub(crate) fn waits_since_s(
        &self,
        now_s: i64,
        due: &DuePage,
        sites: &Sites,
        options: &CrawlOptions,
    ) -> i64 {
        let due_s = due.page.due_s.unwrap_or(0);
        let schedule = self.sites.get(&due.site);
        let Some(schedule) = schedule.filter(|schedule| schedule.scheduler.goes_by_worth()) else {
            return due_s;
        };
        let of_site =
            schedule.visits_per_day().map(|visits| (pages_of(sites.get(due.site)), visits));
        let of_all = self.archive_visits(options).map(|visits| (self.pages, visits));
        let once = of_site.into_iter().chain(of_all).map(|(pages, visits)| once_s(pages, visits));
        if now_s - due_s >= once.max().unwrap_or(0) {
            return due_s - WORTH_MAX_S - DAY_S;
        }
        // A page that was announced, or that the last visit did not see, has no worth of its own.
        let by_worth_s = schedule.scheduler.waits_since_s(&due.page.known());
        by_worth_s.filter(|_| !due.pulled).unwrap_or(due_s)
    }

    /// Paper 004's page revisit scheduler: sets the next visit and keeps what the policy learnt.
    ///
    /// `changed` is the change that drives the schedule: any byte, or a significant one. Returns when
    /// the page was planned for, if its lateness is the server's fault.
    pub(crate) fn plan_next(
        &mut self,
        due: &DuePage,
        visit: &mut VisitCommit,
        changed: bool,
        answer: Option<&Answer>,
        stretch: f64,
        out: &mut Vec<Command>,
    ) -> Option<i64> {
        let found = match visit.outcome {
            Outcome::Changed | Outcome::Same | Outcome::NotModified if changed => Outcome::Changed,
            Outcome::Changed | Outcome::Same | Outcome::NotModified => Outcome::Same,
            missed => missed,
        };
        let schedule = self.sites.get_mut(&due.site)?;
        if let Some(query) = schedule.near(due, visit.at_s, found, answer) {
            out.push(Command::Load(Load::Near(Box::new(query))));
        }
        let mut known = due.page.known();
        known.importance_percent = visit.importance_percent.unwrap_or(known.importance_percent);
        let last_modified_s = answer.and_then(|answer| answer.last_modified_s);
        let planned =
            schedule.scheduler.visited(visit.at_s, &known, found, last_modified_s, stretch);
        visit.update.due_s = Some(planned.due_s);
        visit.update.history = planned.history;
        visit.update.failures = planned.failures;
        visit.estimate = planned.rate.map(|(rate, confidence)| Estimate::new(rate, confidence));
        if let Some(bytes) = schedule.scheduler.keep() {
            out.push(Command::commit(Change::Shared { site: due.site, bytes }));
        }
        self.planned_s(due)
    }

    /// When a known page was planned for. Outside a site's hours, and where a day's visits were used
    /// up since a page was due, pages are late for another reason.
    fn planned_s(&self, due: &DuePage) -> Option<i64> {
        let due_s = due.page.due_s.filter(|_| due.page.visited_s.is_some() && !due.pulled)?;
        let spent_s = self.sites.get(&due.site)?.spent_s;
        let opened_s = self.openings.opened_ms(due.site) / 1000;
        spent_s.is_none_or(|spent_s| due_s > spent_s).then_some(due_s.max(opened_s))
    }

    /// Whether the change of another page makes a visit to this one worth its price.
    pub(crate) fn is_worth(&self, now_s: i64, site: SiteId, page: &PageRecord) -> bool {
        let is_due_later = page.due_s.is_some_and(|due_s| due_s > now_s);
        let is_likely = |schedule: &SiteSchedule| {
            schedule.scheduler.chance_if_worth(now_s, &page.known()).is_some()
        };
        is_due_later && self.sites.get(&site).is_some_and(is_likely)
    }
}

impl SiteSchedule {
    /// The visits that may be made here on a day.
    fn visits_per_day(&self) -> Option<u64> {
        let visits = self.scheduler.settings().visits_per_day?;
        Some(self.division.as_ref().map_or(visits, |division| division.part_of(visits)))
    }

    /// The visits per day that the pages ask for.
    fn need(&self, site: Option<&Site>) -> f64 {
        let known = self.scheduler.need_per_day().filter(|need| *need > 0.0);
        known.unwrap_or_else(|| 1.0 + pages_of(site) as f64 / 7.0)
    }

    /// As [`Self::need`], with pages that were never visited: they ask for nothing yet, and would wait
    /// for ever.
    fn need_with_new(&self, site: Option<&Site>) -> Need {
        let pages = pages_of(site);
        let visits = self.need(site) + pages as f64 / 7.0;
        Need { milli_visits: (visits * 1e3).clamp(1.0, 1e15) as u64, pages }
    }

    /// Learns what a visit says of the pages around it; the query asks for those that are to be
    /// looked at.
    fn near(
        &mut self,
        due: &DuePage,
        at_s: i64,
        found: Outcome,
        answer: Option<&Answer>,
    ) -> Option<NearQuery> {
        let server = due.page.url.server();
        let is_below = |url: &CanonicalUrl| *url != due.page.url && url.server() == server;
        let links = answer.filter(|_| found == Outcome::Changed).map(|answer| &answer.links);
        let links: Vec<&CanonicalUrl> = (links.into_iter().flatten())
            .filter(|link| matches!(link.role, LinkRole::Page | LinkRole::Frame))
            .map(|link| &link.url)
            .filter(|url| is_below(url))
            .collect();
        let number = u64::from(due.page.id.server().0);
        let keys: Vec<u32> =
            links.iter().map(|url| Companions::key(number, url.path_and_query())).collect();
        let known = due.page.known();
        let circles = self.scheduler.learn_together(at_s, &known, found, !due.pulled, &keys);
        if circles.is_empty() {
            return None;
        }
        let links = match circles.contains(&Circle::Below) {
            true => links.into_iter().take(NEAR_MAX).cloned().collect(),
            false => Vec::new(),
        };
        Some(NearQuery {
            site: due.site,
            page: due.page.id,
            url: due.page.url.clone(),
            circles,
            links,
            limit: NEAR_MAX,
            is_data: false,
        })
    }
}
