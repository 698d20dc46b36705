//! What changes make of the rows that were loaded. The rules are those of every engine.

use std::num::NonZeroU32;

use nenrin_urls::CanonicalUrl;

use super::{
    engine::Step,
    joint,
    work::{Kept, Member, PageRow, Work},
};
use crate::{
    Announced, Change, Committed, Discovered, DuePage, Linked, Mail, NewPage, Nth, NumberedMail,
    Origin, Outcome, PageId, PageLessons, PageRecord, PartitionId, PullForward, Reading, SiteId,
    StateError, VersionRow, VisitCommit, VisitedPage,
    known::{Fresh, Known},
    rules::{self, FarLink, Finding, Indexed, Part},
    url_hash,
};

/// Links of one page that are kept; some pages are nothing but links.
pub(super) const LINKS_MAX: usize = 2_000;

/// A page of this partition that was found.
struct Found {
    nth: Nth,
    /// The page, if the site did not know it yet.
    new_page: Option<NewPage>,
}

impl Work<'_, '_> {
    /// Makes one change.
    pub(super) fn apply(
        &mut self,
        change: &Change,
        known: &Known,
        fresh: &mut Vec<Fresh>,
        committed: &mut Committed,
    ) -> Step<()> {
        match change {
            Change::Visit(visit) if visit.origin == Origin::Packs => {
                committed.adopted += u64::from(self.adopt(visit)?);
            }
            Change::Visit(visit) => self.visit(visit, known, fresh, committed)?,
            Change::Lessons(lessons) => self.learn(lessons)?,
            Change::Robots { server, tried_s, copy } => {
                let robots = self.robots.entry(*server).or_insert((*tried_s, None));
                robots.0 = *tried_s;
                robots.1 = copy.clone().or(robots.1.take());
            }
            Change::Pace(pace) => drop(self.paces.insert(pace.server, *pace)),
            Change::Note(note) => {
                self.notes.insert((note.server, note.name.clone()), note.value.clone());
            }
            Change::Announced(announced) => self.announced(announced)?,
            Change::Found(found) => {
                for page in &found.pages {
                    let page = self.discover(found.site, page, found.at_s)?;
                    committed.new_pages.extend(page.and_then(|page| page.new_page));
                }
            }
            Change::MailTaken { from, mail } => self.take_mail(*from, mail, committed)?,
            Change::Due { page, due_s } => self.set_due(*page, *due_s),
            Change::PullForward(pull) => self.pull_forward(pull),
            Change::Links { page, links } => {
                let row = self.page(*page)?;
                let (site, nth) = (row.page.site, row.page.nth);
                let linked = self.keep_links(*page, nth, links, site, known)?;
                committed.linked.extend(linked);
            }
            Change::Weighed(pages) => self.weigh(pages),
            Change::Blocks { page, blocks } => drop(self.blocks.insert(*page, blocks.clone())),
            other => joint::apply(self, other)?,
        }
        Ok(())
    }

    /// Makes a page known to a site. One of another partition leaves as mail, and `None` is
    /// returned.
    fn discover(&mut self, site: SiteId, found: &Discovered, now_s: i64) -> Step<Option<Found>> {
        if let Some(partition) = self.elsewhere(&found.url) {
            self.send(partition, Mail::Found { site, at_s: now_s, page: found.clone() });
            return Ok(None);
        }
        let conditions = &self.site(site)?.conditions;
        let is_continuous = conditions.schedule.continuous().is_some();
        let depth_limit = conditions.depth;
        let due_s = rules::due_when_found(found, is_continuous, now_s);
        let server = self.server(&found.url);
        let page = match self.slot(server, &found.url) {
            Ok(page) => page,
            Err(free) => {
                let Some(free) = free else {
                    // Eight pages of one server within eight of 2^39 numbers.
                    return Err(self.t.damaged(format!("there is no number for {}", found.url)));
                };
                let due = self.enter(free, site, found, (now_s, due_s));
                return Ok(Some(Found { nth: due.page.nth, new_page: Some(NewPage { due }) }));
            }
        };
        let nth = self.page(page)?.page.nth;
        let member = self.members.get(&(site, page)).map(|member| member.depth);
        match rules::finding(member, found) {
            Finding::New => {}
            Finding::Known => return Ok(Some(Found { nth, new_page: None })),
            Finding::Nearer { depth } => {
                self.enter_member(site, page, found);
                if rules::loses_validators(depth, depth_limit) {
                    let row = self.page(page)?;
                    row.page.validators = Default::default();
                    row.is_changed = true;
                }
                return Ok(Some(Found { nth, new_page: None }));
            }
        }
        self.enter_member(site, page, found);
        self.sums.count_page(site);
        if let Some(due_s) = due_s {
            self.schedule_page(site, page, found.depth, due_s)?;
        }
        let page = self.page(page)?.page.clone();
        let due = DuePage { page, site, depth: found.depth, hops: found.hops, pulled: false };
        Ok(Some(Found { nth, new_page: Some(NewPage { due }) }))
    }

    /// Enters a page that no site knew.
    fn enter(
        &mut self,
        page: PageId,
        site: SiteId,
        found: &Discovered,
        (now_s, due_s): (i64, Option<i64>),
    ) -> DuePage {
        self.t.head.pages += 1;
        let nth = Nth(self.t.head.pages as u32);
        let record = PageRecord::unvisited((page, nth), found.url.clone(), site, now_s, due_s);
        let due = DuePage {
            page: record.clone(),
            site,
            depth: found.depth,
            hops: found.hops,
            pulled: false,
        };
        let mut row = PageRow::new(record);
        if due_s.is_some() {
            row.enter_queue(rules::wait(false, found.depth), self.settings.bucket_s);
        }
        self.pages.insert(page, row);
        self.entered.insert(page);
        self.by_nth.insert(nth, page);
        self.enter_member(site, page, found);
        self.sums.count_page(site);
        due
    }

    fn enter_member(&mut self, site: SiteId, page: PageId, found: &Discovered) {
        let member = Member { depth: found.depth, hops: found.hops, is_changed: true };
        self.members.insert((site, page), member);
    }

    /// Gives a page that has no time of its own one, kept by this site.
    pub(super) fn schedule_page(
        &mut self,
        site: SiteId,
        page: PageId,
        depth: u32,
        due_s: i64,
    ) -> Step<()> {
        let bucket_s = self.settings.bucket_s;
        let row = self.page(page)?;
        if row.page.due_s.is_some() {
            return Ok(());
        }
        let before = row.part();
        (row.page.due_s, row.page.site, row.is_changed) = (Some(due_s), site, true);
        row.enter_queue(rules::wait(row.page.visited_s.is_some(), depth), bucket_s);
        self.sums.worth.replace(&before, &Part { site, ..before });
        Ok(())
    }

    /// Enters the top pages of a site; other partitions enter their own.
    pub(super) fn enter_tops(&mut self, site: SiteId, now_s: i64) -> Step<()> {
        let conditions = &self.site(site)?.conditions;
        let due_s = conditions.schedule.continuous().map(|_| now_s);
        for url in conditions.tops.clone() {
            if self.elsewhere(&url).is_none() {
                self.discover(site, &Discovered { url, depth: 1, hops: 0, due_s }, now_s)?;
            }
        }
        Ok(())
    }

    /// Adds top pages to a site; returns those that it did not have.
    fn add_tops(
        &mut self,
        site: SiteId,
        tops: &[CanonicalUrl],
        at_s: i64,
    ) -> Step<Vec<CanonicalUrl>> {
        let row = self.site(site)?;
        let is_new = |top: &&CanonicalUrl| !row.conditions.tops.contains(top);
        let new: Vec<CanonicalUrl> = tops.iter().filter(is_new).cloned().collect();
        row.conditions.tops.extend(new.iter().cloned());
        row.is_changed |= !new.is_empty();
        self.enter_tops(site, at_s)?;
        Ok(new)
    }

    /// The number of a visit's page, which is known from now on.
    fn visited_page(&mut self, visit: &VisitCommit) -> Step<PageId> {
        let found = match &visit.page {
            VisitedPage::Known(page) => return Ok(*page),
            VisitedPage::Url(found) => found,
        };
        if self.elsewhere(&found.url).is_some() {
            return Err(StateError::OtherPartition { url: found.url.to_string() }.into());
        }
        self.discover(visit.site, found, visit.at_s)?;
        let entered = self.find(&found.url);
        entered.ok_or_else(|| self.t.damaged(format!("{} was not entered", found.url)))
    }

    fn visit(
        &mut self,
        visit: &VisitCommit,
        known: &Known,
        fresh: &mut Vec<Fresh>,
        committed: &mut Committed,
    ) -> Step<()> {
        let page = self.visited_page(visit)?;
        let is_new = self.page(page)?.page.visited_s.is_none();
        let nth = self.update_page(page, visit)?;
        if let Some(version) = &visit.version {
            self.enter_version(page, version)?;
        }
        if let Some(round) = visit.round {
            self.tried.insert((visit.site, page), round);
        }
        let mut new_pages = 0;
        for found in &visit.discovered {
            let key = Known::key(visit.site, &found.url);
            if known.get(&key).is_none_or(|(depth, _)| depth > found.depth) {
                let page = self.discover(visit.site, found, visit.at_s)?;
                let place = page.as_ref().and_then(|page| NonZeroU32::new(page.nth.0));
                let new_page = page.and_then(|page| page.new_page);
                new_pages += u64::from(new_page.is_some());
                committed.new_pages.extend(new_page);
                fresh.push((key, found.depth, place));
            }
        }
        if !visit.new_tops.is_empty() {
            let (site, at_s) = (visit.site, visit.at_s);
            for url in self.add_tops(site, &visit.new_tops, at_s)? {
                self.send_to_all(&Mail::Top { site, at_s, url });
            }
        }
        self.sums.count_visit(visit, new_pages);
        let mut linked = match &visit.links {
            Some(urls) => self.keep_links(page, nth, urls, visit.site, known)?,
            None => {
                let reading = rules::reading_without_links(visit);
                // A page that was visited before was tried then at the latest.
                if is_new || reading != Reading::Tried {
                    self.page(page)?.set_reading(reading);
                }
                None
            }
        };
        if self.is_divided() {
            self.keep_far_links(nth, visit, linked.as_mut());
        }
        committed.linked.extend(linked);
        self.visits.push((page, logged(visit)));
        Ok(())
    }

    /// Writes what a visit leaves of its page; returns its discovery number.
    fn update_page(&mut self, page: PageId, visit: &VisitCommit) -> Step<Nth> {
        let before = self.page(page)?.before();
        let mut after = rules::visited(&before, &[visit]);
        if after.gets_turn {
            let site = before.worth.site;
            let (of_site, of_all) = (self.turns(site.0), self.turns(rules::ALL_SITES));
            after.worth.turn = self.sums.worth.next_turn(site, of_site, of_all);
        }
        self.gone.extend(after.gone_s.iter().map(|gone_s| (page, *gone_s)));
        let bucket_s = self.settings.bucket_s;
        let row = self.page(page)?;
        row.is_changed = true;
        let record = &mut row.page;
        record.visits += after.visits;
        record.changes += after.changes;
        record.significant += after.significant;
        record.version = after.version;
        if let Some(VisitCommit { outcome, update, .. }) = after.last {
            record.visited_s = after.visited_s;
            record.outcome = Some(*outcome);
            record.due_s = update.due_s;
            record.failures = update.failures;
            record.validators = update.validators.clone();
            (record.mark, record.bytes) = (update.mark, update.bytes);
            record.history = update.history.clone();
            record.importance_percent = after.worth.importance_percent;
            record.estimate = after.worth.estimate;
            row.turn = after.worth.turn;
            row.pulled = None;
            row.wait_for_time(bucket_s);
        }
        self.sums.worth.replace(&before.worth, &after.worth);
        Ok(before.nth)
    }

    /// Enters a version of a page. A denied page stays denied, also when it is visited again.
    fn enter_version(&mut self, page: PageId, version: &VersionRow) -> Step<()> {
        let row = self.page(page)?;
        if row.key.is_none() && row.denied.is_none() {
            row.key = Some(row.page.url.key().as_str().to_owned());
            row.is_changed = true;
        }
        let key = (page, version.at_s, version.version);
        if version.changed_permille.is_none() {
            self.uncompared.insert((page, version.version));
        }
        self.versions.entry(key).or_insert_with(|| version.clone());
        Ok(())
    }

    /// Keeps the links of a page, and returns what became known by them.
    fn keep_links(
        &mut self,
        page: PageId,
        nth: Nth,
        urls: &[CanonicalUrl],
        site: SiteId,
        known: &Known,
    ) -> Step<Option<Linked>> {
        let place = |url: &CanonicalUrl| match known.get(&Known::key(site, url)) {
            Some((_, place)) => place.map(|nth| Nth(nth.get())),
            None => self.find(url).and_then(|page| Some(self.pages.get(&page)?.page.nth)),
        };
        let targets = urls.iter().take(LINKS_MAX).filter_map(place).collect();
        let before = self.links.get(&nth).map(|kept| kept.targets.clone());
        let Some(links) = rules::linked(nth, before, targets) else { return Ok(None) };
        self.links.insert(nth, Kept { targets: links.targets, is_changed: true });
        let row = self.page(page)?;
        row.set_reading(Reading::Read);
        row.is_changed = true;
        Ok(Some(links.linked))
    }

    /// Keeps the links of a visited page that lead to other partitions. Each that is new gets its
    /// share of what the page gives, by mail. `linked` counts them from now on.
    fn keep_far_links(&mut self, nth: Nth, visit: &VisitCommit, linked: Option<&mut Linked>) {
        let Some(links) = &visit.links else { return };
        let inside: std::collections::BTreeSet<&CanonicalUrl> =
            visit.discovered.iter().map(|found| &found.url).collect();
        let far: Vec<(PartitionId, &CanonicalUrl)> = links
            .iter()
            .filter(|url| inside.contains(url))
            .filter_map(|url| Some((self.elsewhere(url)?, url)))
            .collect();
        let now: Vec<FarLink> =
            far.iter().map(|&(to, url)| FarLink { hash: url_hash(url), to }).collect();
        let before: &[FarLink] = self.far_links.get(&nth).map_or(&[], |kept| &kept.targets);
        let Some(kept) = rules::far_links(before, &now) else {
            let count = before.len();
            linked.into_iter().for_each(|linked| linked.links += count);
            return;
        };
        let near = self.links.get(&nth).map_or(0, |kept| kept.targets.len());
        if let Some(gives_micros) = visit.gives_micros {
            let micros = rules::share_micros(gives_micros, near + kept.kept.len());
            for (to, url) in kept.fresh.iter().map(|&at| far[at]) {
                self.send(to, Mail::Share { url: url.clone(), micros });
            }
        }
        linked.into_iter().for_each(|linked| linked.links += kept.kept.len());
        self.far_links.insert(nth, Kept { targets: kept.kept, is_changed: true });
    }

    /// Enters a version that was found in the packs; returns whether the index did not have it.
    fn adopt(&mut self, visit: &VisitCommit) -> Step<bool> {
        let page = self.visited_page(visit)?;
        let Some(version) = &visit.version else { return Ok(false) };
        if self.pruning.contains(&version.version) || self.is_listed(page, version) {
            return Ok(false);
        }
        let newest_s = self.newest_s(page);
        let bucket_s = self.settings.bucket_s;
        let row = self.page(page)?;
        let PageRecord { visited_s, visits, outcome, .. } = row.page;
        let before = Indexed { newest_s, visited_s, visits, outcome };
        if let Some(after) = rules::adopted(&before, version.at_s, visit.outcome) {
            let record = &mut row.page;
            (record.version, record.bytes) = (Some(version.version), version.bytes);
            (record.visited_s, record.visits) = (Some(after.visited_s), after.visits);
            record.outcome = Some(after.outcome);
            if after.is_last {
                record.validators = visit.update.validators.clone();
                record.mark = visit.update.mark;
            }
        }
        row.set_reading(Reading::Unread);
        row.wait_for_time(bucket_s);
        row.is_changed = true;
        self.enter_version(page, version)?;
        if visit.outcome == Outcome::Gone {
            self.gone.insert((page, version.at_s));
        }
        self.sums.count_adopted(visit.site, version);
        Ok(true)
    }

    /// Writes what visits that were made elsewhere taught of a page.
    fn learn(&mut self, lessons: &PageLessons) -> Step<()> {
        let page = lessons.page;
        let before = self.page(page)?.before();
        let Some(after) = rules::learnt(&before, lessons) else { return Ok(()) };
        let mut noise = 0;
        for &(version, permille) in &lessons.compared {
            if self.uncompared.remove(&(page, version)) {
                self.compared.insert((page, version), permille);
                noise += u32::from(permille == 0);
            }
        }
        let bucket_s = self.settings.bucket_s;
        let row = self.page(page)?;
        row.page.history = lessons.history.clone();
        row.page.failures = lessons.failures;
        row.page.due_s = after.due_s;
        row.page.estimate = after.worth.estimate;
        row.page.significant = row.page.significant.saturating_sub(noise);
        row.time_changed(bucket_s);
        row.is_changed = true;
        self.sums.worth.replace(&before.worth, &after.worth);
        self.sums.worth.count_noise(before.worth.site, i64::from(noise));
        Ok(())
    }

    /// Brings pages nearer that were not visited since they are said to have changed.
    fn announced(&mut self, announced: &Announced) -> Step<()> {
        let Announced { at_s, odds_percent, ref hint, .. } = *announced;
        for (url, changed_s) in &announced.pages {
            if let Some(partition) = self.elsewhere(url) {
                let (url, hint, changed_s) = (url.clone(), hint.clone(), *changed_s);
                self.send(partition, Mail::Hint { at_s, url, changed_s, odds_percent, hint });
                continue;
            }
            let Some(page) = self.find(url) else { continue };
            if rules::is_news(self.page(page)?.page.visited_s, *changed_s) {
                let hint = hint.clone();
                self.pull_forward(&PullForward { page, to_s: at_s, odds_percent, hint });
            }
        }
        Ok(())
    }

    fn pull_forward(&mut self, pull: &PullForward) {
        let Some(row) = self.pages.get_mut(&pull.page) else { return };
        if let Some(nearer_s) = rules::pulled_forward(row.page.due_s, pull) {
            row.pulled = Some(pull.hint.to_json());
            self.set_due(pull.page, nearer_s);
        }
    }

    /// Another time for a page that has one of its own.
    fn set_due(&mut self, page: PageId, due_s: i64) {
        let bucket_s = self.settings.bucket_s;
        let Some(row) = self.pages.get_mut(&page) else { return };
        if row.page.due_s.is_some() {
            (row.page.due_s, row.is_changed) = (Some(due_s), true);
            row.time_changed(bucket_s);
        }
    }

    fn weigh(&mut self, pages: &[(Nth, u32)]) {
        for &(nth, importance_percent) in pages {
            let page = self.by_nth.get(&nth).and_then(|page| self.pages.get_mut(page));
            let Some(row) = page else { continue };
            let before = row.part();
            (row.page.importance_percent, row.is_changed) = (importance_percent, true);
            self.sums.worth.replace(&before, &Part { importance_percent, ..before });
        }
    }

    /// Takes in mail of another partition, as far as it was not taken in yet.
    fn take_mail(
        &mut self,
        from: PartitionId,
        mails: &[NumberedMail],
        committed: &mut Committed,
    ) -> Step<()> {
        for one in mails {
            let mailbox = self.mailboxes.entry(from).or_default();
            if one.number > mailbox.read {
                (mailbox.read, mailbox.is_changed) = (one.number, true);
                self.take_one(from, &one.mail, committed)?;
            }
        }
        Ok(())
    }

    fn take_one(&mut self, from: PartitionId, mail: &Mail, committed: &mut Committed) -> Step<()> {
        match mail {
            Mail::Found { site, at_s, page } => {
                let found = self.discover(*site, page, *at_s)?;
                committed.new_pages.extend(found.and_then(|found| found.new_page));
            }
            Mail::Share { url, micros } => {
                // The mail that made it known came before.
                let page = self.find(url).and_then(|page| self.pages.get(&page));
                if let Some(nth) = page.map(|row| row.page.nth) {
                    let got = self.received.entry(nth).or_insert((0, url_hash(url)));
                    got.0 += micros;
                }
            }
            Mail::MoreShare { hash, micros } => {
                *self.received_more.entry(*hash).or_default() += micros;
            }
            Mail::RoundEnd { site, ended } => joint::round_ended(self, from, *site, *ended),
            &Mail::Need { site, day, need } => {
                joint::need(self, from, site, day, need);
            }
            Mail::Top { site, at_s, url } => {
                self.add_tops(*site, std::slice::from_ref(url), *at_s)?;
            }
            Mail::Hint { at_s, url, changed_s, odds_percent, hint } => {
                let pages = vec![(url.clone(), *changed_s)];
                let (at_s, odds_percent, hint) = (*at_s, *odds_percent, hint.clone());
                self.announced(&Announced { at_s, pages, odds_percent, hint })?;
            }
        }
        Ok(())
    }
}

/// What the log keeps of a visit.
fn logged(visit: &VisitCommit) -> VisitCommit {
    VisitCommit {
        status: visit.status,
        reason: visit.reason.clone(),
        elapsed_ms: visit.elapsed_ms,
        received_bytes: visit.received_bytes,
        ..VisitCommit::new(PageId(0), visit.site, visit.at_s, visit.outcome)
    }
}
