//! What a transaction loads before the rules are asked: statements that need nothing of each other are
//! sent together.

use std::collections::BTreeSet;

use nenrin_urls::CanonicalUrl;
use tokio_postgres::Row;

use super::{
    engine::{Settings, Step, Tx, within},
    pool::Ask,
    rows::{self, Read, get, number, unsigned},
    values::{Element, Value},
    work::{Kept, MORE, Mailbox, Member, PROBES, PageRow, SiteRow, Work, elsewhere, first_number},
};
use crate::{
    Nth, PageId, PartitionId, ServerId, SiteId, VersionId,
    rules::{ALL_SITES, FarLink},
};

/// No site has this number: for look-ups that are for none.
pub(super) const NO_SITE: SiteId = SiteId(0);

/// What rows a transaction needs.
#[derive(Default)]
pub(super) struct Needs {
    pub(super) sites: BTreeSet<SiteId>,
    /// Sites whose top pages are entered.
    pub(super) tops: BTreeSet<SiteId>,
    /// URLs, and for which site they are looked up.
    pub(super) urls: BTreeSet<(SiteId, CanonicalUrl)>,
    pub(super) pages: BTreeSet<PageId>,
    pub(super) places: BTreeSet<Nth>,
    /// Pages whose links are needed, by number or by URL.
    pub(super) linking: BTreeSet<PageId>,
    pub(super) linking_urls: BTreeSet<CanonicalUrl>,
    pub(super) turns: bool,
    pub(super) mailboxes: bool,
    /// Versions found in packs, by URL or page.
    pub(super) packs: Vec<VersionId>,
    /// Versions that were compared.
    pub(super) compared: BTreeSet<(PageId, VersionId)>,
    /// Hashes of URLs of pages that get shares of scores.
    pub(super) shares: BTreeSet<u64>,
    /// Sites that ask for visits; 0 is the whole archive.
    pub(super) asking: BTreeSet<u32>,
}

/// What a statement loads.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Sites,
    Mailboxes,
    Servers,
    Pages,
    Members,
    Links,
    FarLinks,
    Turns,
    Uncompared,
    Received,
    AskedFor,
}

/// Statements, and what each loads.
#[derive(Default)]
pub(super) struct Loads {
    parts: Vec<Part>,
    pub(super) asks: Vec<Ask>,
}

/// Values for a statement.
fn boxed<T: Element + 'static>(values: impl Iterator<Item = T>) -> Box<dyn Value>
where
    Vec<T>: Value,
{
    Box::new(values.collect::<Vec<T>>())
}

fn page_ids(pages: &BTreeSet<PageId>) -> Box<dyn Value> {
    boxed(pages.iter().map(|page| page.0))
}

impl Loads {
    /// All that is needed, as far as that is known before anything is loaded.
    pub(super) fn of(needs: &Needs, settings: Settings, schema: &str) -> Self {
        let mut loads = Self::default();
        let mut load = |part, sql: &str, values: Vec<Box<dyn Value>>| {
            loads.add(part, within(schema, sql), values);
        };
        if !needs.sites.is_empty() {
            let ids = boxed(needs.sites.iter().map(|site| site.0 as i32));
            let sql = "SELECT id, conditions FROM @sites WHERE id = ANY($1)";
            load(Part::Sites, sql, vec![ids]);
        }
        if needs.mailboxes && settings.partitioning.count > 1 {
            let sql = "SELECT partition, sent, read FROM @mailboxes";
            load(Part::Mailboxes, sql, Vec::new());
        }
        if !needs.pages.is_empty() {
            load(Part::Pages, &pages_where("p.id = ANY($1)"), vec![page_ids(&needs.pages)]);
        }
        if !needs.places.is_empty() {
            let places = boxed(needs.places.iter().map(|nth| nth.0 as i32));
            load(Part::Pages, &pages_where("p.nth = ANY($1)"), vec![places]);
        }
        if !needs.linking.is_empty() {
            let links = "SELECT l.nth, l.targets FROM @pages p JOIN @links l ON l.nth = p.nth
                         WHERE p.id = ANY($1)";
            load(Part::Links, links, vec![page_ids(&needs.linking)]);
            if settings.partitioning.count > 1 {
                let links = "SELECT l.nth, l.targets FROM @pages p
                             JOIN @far_links l ON l.nth = p.nth WHERE p.id = ANY($1)";
                load(Part::FarLinks, links, vec![page_ids(&needs.linking)]);
            }
        }
        if needs.turns {
            let mut sites: BTreeSet<u32> = needs.sites.iter().map(|site| site.0).collect();
            sites.insert(ALL_SITES);
            load(
                Part::Turns,
                "SELECT site, turns FROM @site_worth WHERE site = ANY($1)
                 UNION SELECT w.site, w.turns FROM @pages p JOIN @site_worth w ON w.site = p.site
                 WHERE p.id = ANY($2)",
                vec![boxed(sites.into_iter().map(|site| site as i32)), page_ids(&needs.pages)],
            );
        }
        if !needs.compared.is_empty() {
            load(
                Part::Uncompared,
                "SELECT v.page, v.version FROM unnest($1::bigint[], $2::bigint[]) k(page, version)
                 JOIN @versions v ON v.page = k.page AND v.version = k.version
                 WHERE v.permille IS NULL",
                vec![
                    boxed(needs.compared.iter().map(|(page, _)| page.0)),
                    boxed(needs.compared.iter().map(|(_, version)| version.0 as i64)),
                ],
            );
        }
        if !needs.shares.is_empty() {
            let hashes = boxed(needs.shares.iter().map(|hash| *hash as i64));
            let sql = "SELECT nth, micros, hash FROM @received WHERE hash = ANY($1)";
            load(Part::Received, sql, vec![hashes]);
        }
        if !needs.asking.is_empty() {
            let sites = boxed(needs.asking.iter().map(|site| *site as i32));
            let sql = "SELECT site, day, partition FROM @needs WHERE site = ANY($1)";
            load(Part::AskedFor, sql, vec![sites]);
        }
        loads.add_urls(needs.urls.iter(), settings, schema);
        loads
    }

    fn add(&mut self, part: Part, sql: String, values: Vec<Box<dyn Value>>) {
        self.parts.push(part);
        self.asks.push(Ask::new(sql, values));
    }

    /// The pages of URLs, as far as they are known, with all whose numbers they could have; and how
    /// the sites know them.
    fn add_urls<'u>(
        &mut self,
        urls: impl Iterator<Item = &'u (SiteId, CanonicalUrl)>,
        settings: Settings,
        schema: &str,
    ) {
        // The first number of a page is its server's and a hash of its path.
        let hash = |url: &CanonicalUrl| first_number(ServerId(0), url);
        let mut keys: BTreeSet<(String, i64)> = BTreeSet::new();
        let (mut sites, mut names, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
        for (site, url) in urls.filter(|(_, url)| elsewhere(settings, url).is_none()) {
            let name = url.server().as_str().to_owned();
            if *site != NO_SITE {
                sites.push(site.0 as i32);
                names.push(name.clone());
                hashes.push(hash(url));
            }
            keys.insert((name, hash(url)));
        }
        if keys.is_empty() {
            return;
        }
        let servers: BTreeSet<String> = keys.iter().map(|(name, _)| name.clone()).collect();
        let sql = within(schema, "SELECT name, id FROM @servers WHERE name = ANY($1)");
        self.add(Part::Servers, sql, vec![boxed(servers.into_iter())]);
        let sql = format!(
            "SELECT {}, {MORE} FROM unnest($1::text[], $2::bigint[]) k(name, hash)
             JOIN @servers s ON s.name = k.name CROSS JOIN LATERAL
                (SELECT * FROM @pages q WHERE q.id >= (s.id::bigint << 39) + k.hash
                 AND q.id < (s.id::bigint << 39) + k.hash + {PROBES}
                 ORDER BY q.id LIMIT {PROBES}) p",
            rows::PAGE
        );
        let values = vec![
            boxed(keys.iter().map(|(name, _)| name.clone())),
            boxed(keys.iter().map(|(_, hash)| *hash)),
        ];
        self.add(Part::Pages, within(schema, &sql), values);
        if !sites.is_empty() {
            let sql = format!(
                "SELECT m.site, m.page, m.depth, m.hops
                 FROM unnest($1::integer[], $2::text[], $3::bigint[]) k(site, name, hash)
                 JOIN @servers s ON s.name = k.name CROSS JOIN LATERAL
                    (SELECT * FROM @members q WHERE q.site = k.site
                     AND q.page >= (s.id::bigint << 39) + k.hash
                     AND q.page < (s.id::bigint << 39) + k.hash + {PROBES}
                     ORDER BY q.page LIMIT {PROBES}) m"
            );
            let values: Vec<Box<dyn Value>> =
                vec![Box::new(sites), Box::new(names), Box::new(hashes)];
            self.add(Part::Members, within(schema, &sql), values);
        }
    }
}

fn pages_where(condition: &str) -> String {
    let (page, server) = (rows::PAGE, rows::SERVER_OF_PAGE);
    format!("SELECT {page}, {MORE} FROM @pages p {server} WHERE {condition}")
}

impl<'t, 'l> Work<'t, 'l> {
    /// Loads what is needed.
    pub(super) fn load(t: &'t mut Tx<'l>, needs: &Needs) -> Step<Self> {
        let loads = Loads::of(needs, t.settings, t.schema());
        let loaded = t.query_all(&loads.asks)?;
        Self::loaded(t, needs, &loads, &loaded)
    }

    /// Takes what was loaded, and loads what could not be asked for before.
    pub(super) fn loaded(
        t: &'t mut Tx<'l>,
        needs: &Needs,
        loads: &Loads,
        loaded: &[Vec<Row>],
    ) -> Step<Self> {
        let mut work = Self::new(t);
        work.take_all(loads, loaded)?;
        let top = |site: &SiteId| {
            let tops = work.sites.get(site).map(|row| row.conditions.tops.clone());
            tops.into_iter().flatten().map(|top| (*site, top)).collect::<Vec<_>>()
        };
        let tops: Vec<(SiteId, CanonicalUrl)> = needs.tops.iter().flat_map(top).collect();
        let mut more = Loads::default();
        more.add_urls(tops.iter(), work.settings, work.t.schema());
        work.load_more(more)?;
        work.load_of_urls(needs)?;
        if !needs.packs.is_empty() {
            work.load_packs(&needs.packs)?;
        }
        Ok(work)
    }

    fn load_more(&mut self, loads: Loads) -> Step<()> {
        let loaded = self.t.query_all(&loads.asks)?;
        self.take_all(&loads, &loaded)
    }

    /// The links of pages that are visited by their URLs, and the turns of their sites.
    fn load_of_urls(&mut self, needs: &Needs) -> Step<()> {
        let known: BTreeSet<PageId> =
            needs.linking_urls.iter().filter_map(|url| self.find(url)).collect();
        if known.is_empty() {
            return Ok(());
        }
        let needs = Needs {
            linking: known.clone(),
            pages: if needs.turns { known } else { BTreeSet::new() },
            turns: needs.turns,
            ..Needs::default()
        };
        let loads = Loads::of(&needs, self.settings, self.t.schema());
        self.load_more(loads)
    }

    fn take_all(&mut self, loads: &Loads, loaded: &[Vec<Row>]) -> Step<()> {
        for (part, found) in loads.parts.iter().zip(loaded) {
            self.take(*part, found).map_err(|e| self.t.damaged(e))?;
        }
        Ok(())
    }

    fn take(&mut self, part: Part, found: &[Row]) -> Read<()> {
        for row in found {
            match part {
                Part::Sites => {
                    let row = (SiteId(number(row, 0)?), rows::json(row, 1)?);
                    let (id, conditions) = row;
                    self.sites.insert(id, SiteRow { conditions, is_changed: false });
                }
                Part::Mailboxes => {
                    let partition = PartitionId(number(row, 0)?);
                    let (sent, read) = (unsigned(row, 1)?, unsigned(row, 2)?);
                    self.mailboxes.insert(partition, Mailbox { sent, read, ..Mailbox::default() });
                }
                Part::Servers => {
                    self.servers.insert(get(row, 0)?, ServerId(number(row, 1)?));
                }
                Part::Pages => {
                    let row = PageRow::read(row)?;
                    self.by_nth.insert(row.page.nth, row.page.id);
                    self.pages.entry(row.page.id).or_insert(row);
                }
                Part::Members => {
                    let key = (SiteId(number(row, 0)?), PageId(get(row, 1)?));
                    let (depth, hops) = (number(row, 2)?, number(row, 3)?);
                    let member = Member { depth, hops, is_changed: false };
                    self.members.entry(key).or_insert(member);
                }
                Part::Links => {
                    let targets: Vec<i32> = get(row, 1)?;
                    let targets = targets.into_iter().map(|nth| Nth(nth as u32)).collect();
                    let nth = Nth(number(row, 0)?);
                    self.links.insert(nth, Kept { targets, is_changed: false });
                }
                Part::FarLinks => {
                    let targets: Vec<i64> = get(row, 1)?;
                    let link = |link: &[i64]| FarLink {
                        hash: link[0] as u64,
                        to: PartitionId(link[1] as u32),
                    };
                    let targets = targets.chunks_exact(2).map(link).collect();
                    let nth = Nth(number(row, 0)?);
                    self.far_links.entry(nth).or_insert(Kept { targets, is_changed: false });
                }
                Part::Turns => {
                    self.turns.insert(number(row, 0)?, unsigned(row, 1)?);
                }
                Part::Uncompared => {
                    self.uncompared.insert((PageId(get(row, 0)?), VersionId(unsigned(row, 1)?)));
                }
                Part::Received => {
                    let got = (unsigned(row, 1)?, unsigned(row, 2)?);
                    self.received_before.insert(Nth(number(row, 0)?), got);
                }
                Part::AskedFor => {
                    let asked = (number(row, 0)?, get(row, 1)?, PartitionId(number(row, 2)?));
                    self.asked_for.insert(asked);
                }
            }
        }
        Ok(())
    }

    pub(super) fn take_members(&mut self, found: &[Row]) -> Step<()> {
        self.take(Part::Members, found).map_err(|e| self.t.damaged(e))
    }

    /// Loads pages by a condition with one value.
    pub(super) fn load_where(&mut self, condition: &str, value: &dyn Value) -> Step<()> {
        let found = self.t.query(&pages_where(condition), &[value])?;
        self.take(Part::Pages, &found).map_err(|e| self.t.damaged(e))
    }

    /// Loads links to pages of other partitions, of pages by their discovery numbers.
    pub(super) fn load_far_links(&mut self, places: impl IntoIterator<Item = Nth>) -> Step<()> {
        let unknown = |nth: &Nth| !self.far_links.contains_key(nth);
        let places: Vec<i32> = places.into_iter().filter(unknown).map(|nth| nth.0 as i32).collect();
        if places.is_empty() {
            return Ok(());
        }
        let found =
            self.t.query("SELECT nth, targets FROM @far_links WHERE nth = ANY($1)", &[&places])?;
        self.take(Part::FarLinks, &found).map_err(|e| self.t.damaged(e))
    }

    /// What is listed of versions that were found in packs, and of their pages.
    fn load_packs(&mut self, versions: &[VersionId]) -> Step<()> {
        let pages = || boxed(self.pages.keys().map(|page| page.0));
        let numbers = || boxed(versions.iter().map(|version| version.0 as i64));
        let asks = [
            self.t.ask(
                "SELECT p.id, (SELECT max(v.at_s) FROM @versions v WHERE v.page = p.id)
                 FROM unnest($1::bigint[]) p(id)",
                vec![pages()],
            ),
            self.t.ask(
                "SELECT page, at_s, version FROM @versions
                 WHERE page = ANY($1) AND version = ANY($2)",
                vec![pages(), numbers()],
            ),
            self.t.ask("SELECT version FROM @pruning WHERE version = ANY($1)", vec![numbers()]),
        ];
        let found = self.t.query_all(&asks)?;
        let [newest, listed, pruning] = found.as_slice() else { return Ok(()) };
        self.take_packs(newest, listed, pruning).map_err(|e| self.t.damaged(e))
    }

    fn take_packs(&mut self, newest: &[Row], listed: &[Row], pruning: &[Row]) -> Read<()> {
        for row in newest {
            if let Some(at_s) = get::<Option<i64>>(row, 1)? {
                self.newest_s.insert(PageId(get(row, 0)?), at_s);
            }
        }
        for row in listed {
            let version = VersionId(unsigned(row, 2)?);
            self.listed.insert((PageId(get(row, 0)?), get(row, 1)?, version));
        }
        for row in pruning {
            self.pruning.insert(VersionId(unsigned(row, 0)?));
        }
        Ok(())
    }
}
