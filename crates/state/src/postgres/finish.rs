//! Writes the rows that a transaction changed, each table with one statement. They are sent together
//! when the transaction ends.

use nenrin_lang::Reason;
use nenrin_structure::PageFragments;

use super::{
    engine::Step,
    rows,
    values::Value,
    work::{PageRow, Work},
};
use crate::{
    Committed,
    rules::{ALL_SITES, FarLink},
};

/// Days for which needs are kept.
const DAYS_KEPT: i64 = 3;

/// The values of a statement: one list for each column.
macro_rules! columns {
    ($rows:expr; $($column:expr),+ $(,)?) => {
        vec![$({
            let column: Vec<_> = $rows.iter().map($column).collect();
            Box::new(column) as Box<dyn Value>
        }),+]
    };
}

impl Work<'_, '_> {
    /// Writes everything that changed.
    pub(super) fn finish(&mut self, committed: &mut Committed) {
        self.write_sites();
        self.write_servers();
        self.write_pages();
        self.write_members();
        self.write_links();
        self.write_versions();
        self.write_visits();
        self.write_mail();
        self.write_blocks();
        self.write_learnt();
        self.write_received(committed);
        self.write_needs();
        self.write_sums();
        self.write_worth();
    }

    /// The same at once, for a transaction that goes on with it.
    pub(super) fn finish_now(&mut self) -> Step<()> {
        self.finish(&mut Committed::default());
        self.t.write_now()
    }

    fn write_sites(&mut self) {
        let changed: Vec<(i32, String)> = self
            .sites
            .iter()
            .filter(|(_, row)| row.is_changed)
            // Conditions are plain data with text keys, which always has a JSON form.
            .map(|(id, row)| {
                (id.0 as i32, serde_json::to_string(&row.conditions).unwrap_or_default())
            })
            .collect();
        for (id, conditions) in changed {
            let sql = "UPDATE @sites SET conditions = $2 WHERE id = $1";
            self.t.later(sql, vec![Box::new(id), Box::new(conditions)]);
        }
    }

    fn write_servers(&mut self) {
        let new = std::mem::take(&mut self.new_servers);
        if !new.is_empty() {
            let columns = columns![new; |(id, _)| id.0 as i32, |(_, name)| name.clone()];
            self.t.later(
                "INSERT INTO @servers (id, name) SELECT * FROM unnest($1::integer[], $2::text[])",
                columns,
            );
        }
        let paces: Vec<_> = std::mem::take(&mut self.paces).into_values().collect();
        if !paces.is_empty() {
            let columns = columns![paces;
                |pace| pace.server.0 as i32, |pace| pace.asked_ms, |pace| pace.resting_until_ms,
                |pace| pace.strikes as i32, |pace| i64::from(pace.stretch_percent)];
            self.t.later(
                "UPDATE @servers s SET asked_ms = k.asked, resting_until_ms = k.resting,
                    strikes = k.strikes, stretch_percent = k.stretch
                 FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::integer[],
                    $5::bigint[]) k(id, asked, resting, strikes, stretch) WHERE s.id = k.id",
                columns,
            );
        }
        let robots: Vec<_> = std::mem::take(&mut self.robots).into_iter().collect();
        if !robots.is_empty() {
            let columns = columns![robots;
                |(id, _)| id.0 as i32, |(_, (tried_s, _))| *tried_s,
                |(_, (_, copy))| copy.as_ref().map(|copy| copy.good_at_s),
                |(_, (_, copy))| copy.as_ref().map(|copy| i32::from(copy.status)),
                |(_, (_, copy))| copy.as_ref().map(|copy| copy.body.clone())];
            self.t.later(
                "UPDATE @servers s SET robots_tried_s = k.tried,
                    robots_good_s = COALESCE(k.good, s.robots_good_s),
                    robots_status = COALESCE(k.status, s.robots_status),
                    robots_body = COALESCE(k.body, s.robots_body)
                 FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::integer[],
                    $5::bytea[]) k(id, tried, good, status, body) WHERE s.id = k.id",
                columns,
            );
        }
    }

    fn write_pages(&mut self) {
        let changed: Vec<&PageRow> = self.pages.values().filter(|row| row.is_changed).collect();
        if changed.is_empty() {
            return;
        }
        let columns = columns![changed;
            |r| r.page.id.0, |r| r.page.discovered_s, |r| r.page.visited_s, |r| r.page.due_s,
            |r| r.bucket, |r| r.page.bytes as i64, |r| r.page.version.map(|v| v.0 as i64),
            |r| i64::from(r.page.importance_percent),
            |r| r.page.estimate.map(|estimate| i64::from(estimate.rate_micros)),
            |r| r.page.nth.0 as i32, |r| r.page.site.0 as i32, |r| r.page.visits as i32,
            |r| r.page.changes as i32, |r| r.page.significant as i32, |r| r.page.failures as i32,
            |r| r.turn as i32, |r| r.denied.map(|site| site.0 as i32),
            |r| r.page.outcome.map(rows::outcome_number), |r| rows::reading_number(r.reading),
            |r| r.page.estimate.map(|estimate| i16::from(estimate.confidence_percent)),
            |r| r.page.url.path_and_query().to_owned(), |r| r.key.clone(),
            |r| r.page.validators.etag.clone(), |r| r.page.validators.last_modified.clone(),
            |r| r.page.mark.map(|mark| mark.0.to_vec()),
            |r| Some(r.page.history.clone()).filter(|history| !history.is_empty()),
            |r| r.pulled.clone()];
        self.t.later(
            "INSERT INTO @pages SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[],
                $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
                $10::integer[], $11::integer[], $12::integer[], $13::integer[], $14::integer[],
                $15::integer[], $16::integer[], $17::integer[], $18::smallint[], $19::smallint[],
                $20::smallint[], $21::text[], $22::text[], $23::text[], $24::text[], $25::bytea[],
                $26::bytea[], $27::text[])
             ON CONFLICT (id) DO UPDATE SET discovered_s = excluded.discovered_s,
                visited_s = excluded.visited_s, due_s = excluded.due_s, bucket = excluded.bucket,
                bytes = excluded.bytes, version = excluded.version,
                importance = excluded.importance, rate = excluded.rate, site = excluded.site,
                visits = excluded.visits, changes = excluded.changes,
                significant = excluded.significant, failures = excluded.failures,
                turn = excluded.turn, denied = excluded.denied, outcome = excluded.outcome,
                reading = excluded.reading, sure = excluded.sure, key = excluded.key,
                etag = excluded.etag, last_modified = excluded.last_modified,
                mark = excluded.mark, history = excluded.history, pulled = excluded.pulled",
            columns,
        );
    }

    fn write_members(&mut self) {
        let changed: Vec<_> = self.members.iter().filter(|(_, row)| row.is_changed).collect();
        if !changed.is_empty() {
            let columns = columns![changed;
                |((site, _), _)| site.0 as i32, |((_, page), _)| page.0,
                |(_, row)| row.depth as i32, |(_, row)| row.hops as i32];
            self.t.later(
                "INSERT INTO @members (site, page, depth, hops)
                 SELECT * FROM unnest($1::integer[], $2::bigint[], $3::integer[], $4::integer[])
                 ON CONFLICT (site, page) DO UPDATE SET depth = excluded.depth,
                    hops = excluded.hops",
                columns,
            );
        }
        let tried: Vec<_> = self.tried.iter().collect();
        if !tried.is_empty() {
            let columns = columns![tried;
                |((site, _), _)| site.0 as i32, |((_, page), _)| page.0, |(_, round)| round.0];
            self.t.later(
                "UPDATE @members m SET round = k.round
                 FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) k(site, page, round)
                 WHERE m.site = k.site AND m.page = k.page",
                columns,
            );
        }
    }

    fn write_links(&mut self) {
        let changed: Vec<_> = self.links.iter().filter(|(_, kept)| kept.is_changed).collect();
        if !changed.is_empty() {
            // Lists of different lengths go as text: an array of arrays has one width.
            let columns = columns![changed;
                |(nth, _)| nth.0 as i32,
                |(_, kept)| list(kept.targets.iter().map(|nth| i64::from(nth.0)))];
            self.t.later(
                "INSERT INTO @links SELECT nth, targets::integer[]
                 FROM unnest($1::integer[], $2::text[]) k(nth, targets)
                 ON CONFLICT (nth) DO UPDATE SET targets = excluded.targets",
                columns,
            );
        }
        let changed: Vec<_> = self.far_links.iter().filter(|(_, kept)| kept.is_changed).collect();
        if !changed.is_empty() {
            let columns = columns![changed;
            |(nth, _)| nth.0 as i32,
            |(_, kept)| {
                let link = |link: &FarLink| [link.hash as i64, i64::from(link.to.0)];
                list(kept.targets.iter().flat_map(link))
            }];
            self.t.later(
                "INSERT INTO @far_links SELECT nth, targets::bigint[]
                 FROM unnest($1::integer[], $2::text[]) k(nth, targets)
                 ON CONFLICT (nth) DO UPDATE SET targets = excluded.targets",
                columns,
            );
        }
    }

    fn write_versions(&mut self) {
        let versions: Vec<_> = std::mem::take(&mut self.versions).into_iter().collect();
        if !versions.is_empty() {
            let mut mimes: Vec<String> = versions.iter().map(|(_, row)| row.mime.clone()).collect();
            mimes.sort_unstable();
            mimes.dedup();
            self.t.later(
                "INSERT INTO @mimes (name) SELECT k.name FROM unnest($1::text[]) k(name)
                 WHERE NOT EXISTS (SELECT 1 FROM @mimes m WHERE m.name = k.name)",
                vec![Box::new(mimes)],
            );
            let columns = columns![versions;
                |((page, ..), _)| page.0, |((_, at_s, _), _)| *at_s,
                |((.., version), _)| version.0 as i64, |(_, row)| row.bytes as i64,
                |(_, row)| row.mime.clone(), |(_, row)| i32::from(row.status),
                |(_, row)| row.changed_permille.map(|permille| permille as i16)];
            self.t.later(
                "INSERT INTO @versions
                 SELECT k.page, k.at_s, k.version, k.bytes, m.id, k.status, k.permille
                 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[],
                    $6::integer[], $7::smallint[])
                    k(page, at_s, version, bytes, mime, status, permille)
                 JOIN @mimes m ON m.name = k.mime ON CONFLICT DO NOTHING",
                columns,
            );
        }
        let gone: Vec<_> = std::mem::take(&mut self.gone).into_iter().collect();
        if !gone.is_empty() {
            let columns = columns![gone; |(page, _)| page.0, |(_, at_s)| *at_s];
            self.t.later(
                "INSERT INTO @gone SELECT * FROM unnest($1::bigint[], $2::bigint[])
                 ON CONFLICT DO NOTHING",
                columns,
            );
        }
        let compared: Vec<_> = std::mem::take(&mut self.compared).into_iter().collect();
        if !compared.is_empty() {
            let columns = columns![compared;
                |((page, _), _)| page.0, |((_, version), _)| version.0 as i64,
                |(_, permille)| *permille as i16];
            self.t.later(
                "UPDATE @versions v SET permille = k.permille
                 FROM unnest($1::bigint[], $2::bigint[], $3::smallint[])
                    k(page, version, permille)
                 WHERE v.page = k.page AND v.version = k.version AND v.permille IS NULL",
                columns,
            );
        }
    }

    fn write_visits(&mut self) {
        let visits = std::mem::take(&mut self.visits);
        if visits.is_empty() {
            return;
        }
        let partitions = i64::from(self.settings.partitioning.count.max(1));
        let own = i64::from(self.settings.own.0);
        let first = self.t.head.visits + 1;
        self.t.head.visits += visits.len() as i64;
        let numbered: Vec<_> = (first..).zip(visits).collect();
        let columns = columns![numbered;
            |(nth, _)| nth * partitions + own, |(_, (page, _))| page.0, |(_, (_, v))| v.at_s,
            |(_, (_, v))| v.received_bytes as i64, |(_, (_, v))| i64::from(v.elapsed_ms),
            |(_, (_, v))| v.site.0 as i32, |(_, (_, v))| i32::from(v.status),
            |(_, (_, v))| rows::outcome_number(v.outcome),
            |(_, (_, v))| v.reason.as_ref().map(Reason::to_json)];
        self.t.later(
            "INSERT INTO @visits SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[],
                $4::bigint[], $5::bigint[], $6::integer[], $7::integer[], $8::smallint[],
                $9::text[])",
            columns,
        );
    }

    fn write_mail(&mut self) {
        let mut sent = Vec::new();
        let mut boxes = Vec::new();
        for (partition, mailbox) in &mut self.mailboxes {
            if !mailbox.is_changed {
                continue;
            }
            for mail in mailbox.mail.drain(..) {
                mailbox.sent += 1;
                // Mail is plain data, which always has a JSON form.
                let text = serde_json::to_string(&mail).unwrap_or_default();
                sent.push((partition.0 as i32, mailbox.sent as i64, text));
            }
            boxes.push((partition.0 as i32, mailbox.sent as i64, mailbox.read as i64));
        }
        if !sent.is_empty() {
            let columns =
                columns![sent; |(to, ..)| *to, |(_, number, _)| *number, |(.., text)| text.clone()];
            self.t.later(
                "INSERT INTO @outbox SELECT * FROM unnest($1::integer[], $2::bigint[], $3::text[])",
                columns,
            );
        }
        if !boxes.is_empty() {
            let columns = columns![boxes; |(of, ..)| *of, |(_, sent, _)| *sent, |(.., read)| *read];
            self.t.later(
                "INSERT INTO @mailboxes
                 SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bigint[])
                 ON CONFLICT (partition) DO UPDATE SET sent = excluded.sent, read = excluded.read",
                columns,
            );
        }
    }

    fn write_blocks(&mut self) {
        let nothing = PageFragments::default();
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.blocks)
            .into_iter()
            .partition(|(_, blocks)| *blocks == nothing);
        if !gone.is_empty() {
            let pages: Vec<i64> = gone.iter().map(|(page, _)| page.0).collect();
            self.t.later("DELETE FROM @blocks WHERE page = ANY($1)", vec![Box::new(pages)]);
        }
        if !kept.is_empty() {
            let columns = columns![kept; |(page, _)| page.0, |(_, blocks)| blocks.to_bytes()];
            self.t.later(
                "INSERT INTO @blocks SELECT * FROM unnest($1::bigint[], $2::bytea[])
                 ON CONFLICT (page) DO UPDATE SET blocks = excluded.blocks",
                columns,
            );
        }
    }

    fn write_learnt(&mut self) {
        let notes: Vec<_> = std::mem::take(&mut self.notes).into_iter().collect();
        if !notes.is_empty() {
            let columns = columns![notes;
                |((server, _), _)| server.0 as i32, |((_, name), _)| name.clone(),
                |(_, value)| value.clone()];
            self.t.later(
                "INSERT INTO @notes
                 SELECT * FROM unnest($1::integer[], $2::text[], $3::text[])
                 ON CONFLICT (server, name) DO UPDATE SET value = excluded.value",
                columns,
            );
            if notes.iter().any(|(_, value)| value.is_empty()) {
                self.t.later("DELETE FROM @notes WHERE value = ''", Vec::new());
            }
        }
    }

    fn write_received(&mut self, committed: &mut Committed) {
        let received: Vec<_> = std::mem::take(&mut self.received).into_iter().collect();
        for &(nth, (micros, hash)) in &received {
            let got = self.received_before.entry(nth).or_insert((0, hash));
            got.0 += micros;
            committed.received.push((nth, got.0));
        }
        if !received.is_empty() {
            let columns = columns![received;
                |(nth, _)| nth.0 as i32, |(_, (got, _))| *got as i64,
                |(_, (_, hash))| *hash as i64];
            self.t.later(
                "INSERT INTO @received AS r (nth, micros, hash)
                 SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bigint[])
                 ON CONFLICT (nth) DO UPDATE SET micros = r.micros + excluded.micros",
                columns,
            );
        }
        let more: Vec<_> = std::mem::take(&mut self.received_more).into_iter().collect();
        for (hash, micros) in &more {
            let of_url = self.received_before.iter_mut().filter(|(_, got)| got.1 == *hash);
            for (nth, got) in of_url {
                got.0 += micros;
                committed.received.push((*nth, got.0));
            }
        }
        if !more.is_empty() {
            let columns = columns![more; |(hash, _)| *hash as i64, |(_, micros)| *micros as i64];
            self.t.later(
                "UPDATE @received r SET micros = r.micros + k.micros
                 FROM unnest($1::bigint[], $2::bigint[]) k(hash, micros) WHERE r.hash = k.hash",
                columns,
            );
        }
    }

    fn write_needs(&mut self) {
        let new = std::mem::take(&mut self.new_needs);
        if new.is_empty() {
            return;
        }
        let old = columns![new; |(site, ..)| *site as i32, |(_, day, ..)| day - DAYS_KEPT];
        self.t.later(
            "DELETE FROM @needs n USING unnest($1::integer[], $2::bigint[]) k(site, day)
             WHERE n.site = k.site AND n.day < k.day",
            old,
        );
        let columns = columns![new;
            |(site, ..)| *site as i32, |(_, day, ..)| *day, |(_, _, from, _)| from.0 as i32,
            |(.., need)| need.milli_visits as i64, |(.., need)| need.pages as i64];
        self.t.later(
            "INSERT INTO @needs SELECT * FROM unnest($1::integer[], $2::bigint[], $3::integer[],
                $4::bigint[], $5::bigint[]) ON CONFLICT DO NOTHING",
            columns,
        );
    }

    fn write_sums(&mut self) {
        let sites: Vec<_> = std::mem::take(&mut self.sums.sites).into_iter().collect();
        if !sites.is_empty() {
            let columns = columns![sites;
                |(site, _)| site.0 as i32, |(_, c)| c.pages as i64, |(_, c)| c.visits as i64,
                |(_, c)| c.versions as i64, |(_, c)| c.problems as i64,
                |(_, c)| c.raw_bytes as i64];
            self.t.later(
                "UPDATE @sites s SET pages = s.pages + k.pages, visits = s.visits + k.visits,
                    versions = s.versions + k.versions, problems = s.problems + k.problems,
                    raw_bytes = s.raw_bytes + k.raw_bytes
                 FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[],
                    $5::bigint[], $6::bigint[])
                    k(id, pages, visits, versions, problems, raw_bytes) WHERE s.id = k.id",
                columns,
            );
        }
        let rounds: Vec<_> = std::mem::take(&mut self.sums.rounds).into_iter().collect();
        if !rounds.is_empty() {
            let columns = columns![rounds;
                |(round, _)| round.0, |(_, c)| c.new_pages as i64, |(_, c)| c.changed as i64,
                |(_, c)| c.same as i64, |(_, c)| c.not_modified as i64, |(_, c)| c.gone as i64,
                |(_, c)| c.refused as i64, |(_, c)| c.failed as i64,
                |(_, c)| c.received_bytes as i64, |(_, c)| c.stored_bytes as i64,
                |(_, c)| c.trapped as i64, |(_, c)| c.first as i64];
            self.t.later(
                "UPDATE @rounds r SET new_pages = r.new_pages + k.new_pages,
                    changed = r.changed + k.changed, same = r.same + k.same,
                    not_modified = r.not_modified + k.not_modified, gone = r.gone + k.gone,
                    refused = r.refused + k.refused, failed = r.failed + k.failed,
                    received_bytes = r.received_bytes + k.received_bytes,
                    stored_bytes = r.stored_bytes + k.stored_bytes,
                    trapped = r.trapped + k.trapped, first = r.first + k.first
                 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                    $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
                    $11::bigint[], $12::bigint[]) k(id, new_pages, changed, same, not_modified,
                    gone, refused, failed, received_bytes, stored_bytes, trapped, first)
                 WHERE r.id = k.id",
                columns,
            );
        }
        self.write_days()
    }

    fn write_days(&mut self) {
        let days: Vec<_> = std::mem::take(&mut self.sums.days).into_iter().collect();
        if !days.is_empty() {
            let columns = columns![days;
                |((site, _), _)| *site as i32, |((_, day), _)| *day, |(_, c)| c.visits as i64,
                |(_, c)| c.versions as i64, |(_, c)| c.problems as i64,
                |(_, c)| c.raw_bytes as i64, |(_, c)| c.received_bytes as i64,
                |(_, c)| c.stored_bytes as i64];
            self.t.later(
                "INSERT INTO @days AS d SELECT * FROM unnest($1::integer[], $2::bigint[],
                    $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                    $8::bigint[])
                 ON CONFLICT (site, day) DO UPDATE SET visits = d.visits + excluded.visits,
                    versions = d.versions + excluded.versions,
                    problems = d.problems + excluded.problems,
                    raw_bytes = d.raw_bytes + excluded.raw_bytes,
                    received_bytes = d.received_bytes + excluded.received_bytes,
                    stored_bytes = d.stored_bytes + excluded.stored_bytes",
                columns,
            );
            let mut sums = std::collections::BTreeMap::<u32, (i64, i64)>::new();
            for ((site, _), counts) in days.iter().filter(|((site, _), _)| *site != ALL_SITES) {
                let sum = sums.entry(*site).or_default();
                sum.0 += counts.received_bytes as i64;
                sum.1 += counts.stored_bytes as i64;
            }
            let sums: Vec<_> = sums.into_iter().collect();
            let columns = columns![sums;
                |(site, _)| *site as i32, |(_, sum)| sum.0, |(_, sum)| sum.1];
            self.t.later(
                "INSERT INTO @site_sums AS s
                 SELECT * FROM unnest($1::integer[], $2::bigint[], $3::bigint[])
                 ON CONFLICT (site) DO UPDATE SET
                    received_bytes = s.received_bytes + excluded.received_bytes,
                    stored_bytes = s.stored_bytes + excluded.stored_bytes",
                columns,
            );
        }
        let kinds: Vec<_> = std::mem::take(&mut self.sums.kinds).into_iter().collect();
        if !kinds.is_empty() {
            let columns = columns![kinds;
                |((site, _), _)| *site as i32, |((_, kind), _)| *kind as i16, |(_, sum)| sum.0,
                |(_, sum)| sum.1, |(_, sum)| sum.2];
            self.t.later(
                "INSERT INTO @kind_sums AS s SELECT * FROM unnest($1::integer[], $2::smallint[],
                    $3::bigint[], $4::bigint[], $5::bigint[])
                 ON CONFLICT (site, kind) DO UPDATE SET versions = s.versions + excluded.versions,
                    received_bytes = s.received_bytes + excluded.received_bytes,
                    stored_bytes = s.stored_bytes + excluded.stored_bytes",
                columns,
            );
        }
    }

    fn write_worth(&mut self) {
        let sites: Vec<_> = std::mem::take(&mut self.sums.worth.sites).into_iter().collect();
        if !sites.is_empty() {
            let columns = columns![sites;
                |(site, _)| *site as i32, |(_, d)| d.turns.map(|turns| turns as i64),
                |(_, d)| d.estimated, |(_, d)| d.rate, |(_, d)| d.sure, |(_, d)| d.weighed,
                |(_, d)| d.importance, |(_, d)| d.significant];
            self.t.later(
                "INSERT INTO @site_worth AS w
                 SELECT k.site, COALESCE(k.turns, (SELECT o.turns FROM @site_worth o
                        WHERE o.site = k.site), 0), k.estimated, k.rate, k.sure, k.weighed,
                    k.importance, k.significant
                 FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                    $6::bigint[], $7::bigint[], $8::bigint[])
                    k(site, turns, estimated, rate, sure, weighed, importance, significant)
                 ON CONFLICT (site) DO UPDATE SET turns = excluded.turns,
                    estimated = w.estimated + excluded.estimated, rate = w.rate + excluded.rate,
                    sure = w.sure + excluded.sure, weighed = w.weighed + excluded.weighed,
                    importance = w.importance + excluded.importance,
                    significant = w.significant + excluded.significant",
                columns,
            );
        }
        let groups: Vec<_> = std::mem::take(&mut self.sums.worth.groups)
            .into_iter()
            .filter(|(_, sum)| *sum != (0, 0))
            .collect();
        if !groups.is_empty() {
            let columns = columns![groups;
                |((site, ..), _)| *site as i32, |((_, best, _), _)| *best,
                |((.., group), _)| *group as i32, |(_, sum)| sum.0, |(_, sum)| sum.1];
            self.t.later(
                "INSERT INTO @worth_groups AS g SELECT * FROM unnest($1::integer[], $2::boolean[],
                    $3::integer[], $4::bigint[], $5::bigint[])
                 ON CONFLICT (site, best, grp) DO UPDATE SET pages = g.pages + excluded.pages,
                    importance = g.importance + excluded.importance",
                columns,
            );
        }
    }
}

/// A list as the engine writes it.
fn list(numbers: impl Iterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("{{{}}}", numbers.join(","))
}
