//! What the state costs at many URLs: `scale --urls N [--at M] [--updates N] [--changed PERCENT]
//! [--together N] [--dir D]`, or `scale --open FILE` of a state that there is. With `--at` the visits are measured at M URLs as well, on the way to N.
//!
//! Generated URLs of one site become known in the crawler's batches, due buckets are loaded in the
//! refresher's way, and the pages that come are visited in random order. The same rows go in the
//! same batches into a bare SQLite table in turn, so that both meet the same load of the machine.
#![expect(clippy::print_stdout, reason = "this is a report for a person")]
#![expect(clippy::unwrap_used, reason = "an experiment may stop at an error")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nenrin_revisit::RevisitSettings;
use nenrin_state::{
    Change, ContentMark, CrawlState, Discovered, DuePage, DueQuery, Estimate, FoundPages, NewPage,
    Outcome, PageUpdate, Reports, Schedule, SiteConditions, SiteId, SqliteState, State, Upkeep,
    Validators, VersionId, VersionRow, VisitCommit,
};
use nenrin_urls::CanonicalUrl;
use rusqlite::{Connection, params};

/// Changes in a commit, as in the crawler's driver.
const COMMIT_BATCH: usize = 1000;
/// Pages in a load and of one server in it, as in the crawler's options.
const LOAD_BATCH: usize = 2000;
const PER_SERVER: usize = 200;
/// Links that one visit finds on its server.
const FOUND_TOGETHER: u64 = 50;
const BUCKET_S: i64 = 3600;
const BEGIN_S: i64 = 1_800_000_000;
/// Pages are due within this many buckets.
const SPREAD_BUCKETS: u64 = 30 * 24;
const HISTORY_BYTES: usize = 32;

struct Arguments {
    urls: u64,
    updates: u64,
    changed_percent: u64,
    /// Measure at this many URLs too.
    at: Option<u64>,
    /// Pages that become known in a commit.
    together: u64,
    dir: PathBuf,
}

impl Arguments {
    /// The numbers of URLs at which visits are measured.
    fn stages(&self) -> impl Iterator<Item = u64> {
        self.at.into_iter().filter(|at| *at < self.urls).chain([self.urls])
    }
}

fn main() {
    if let Some(path) = value_of("--open") {
        return print_opened(Path::new(&path));
    }
    let arguments = arguments();
    let _ = std::fs::remove_dir_all(&arguments.dir);
    std::fs::create_dir_all(&arguments.dir).unwrap();
    let path = arguments.dir.join("state.sqlite");
    let mut bare = Bare::open(&arguments.dir.join("bare.sqlite"));
    let state = SqliteState::open(&path, BUCKET_S).unwrap();
    let site = add_site(&state);

    let (mut known, mut url_bytes, mut bucket) = (0, 0, 0);
    for urls in arguments.stages() {
        url_bytes += make_known(&state, site, known..urls, &arguments, &mut bare);
        known = urls;
        print_disk("known", &path, urls, url_bytes);
        bucket = visit_due(&state, site, bucket, &arguments, &mut bare);
        print_disk("after the visits", &path, urls, url_bytes);
    }
    drop(state);

    let begin = Instant::now();
    let state = SqliteState::open(&path, BUCKET_S).unwrap();
    state.load_due(&due_query(1, None)).unwrap();
    println!("opened and first load: {:.3} s", begin.elapsed().as_secs_f64());
    drop(state);
    println!("peak memory {} MB, with the bare loop's cache", peak_memory_mb());
    print_tables(&path, arguments.urls);
    std::fs::remove_dir_all(&arguments.dir).unwrap();
}

/// Opens a state and prints what it takes.
fn print_opened(path: &Path) {
    let begin = Instant::now();
    let state = SqliteState::open(path, BUCKET_S).unwrap();
    println!("opened: {:.3} s", begin.elapsed().as_secs_f64());
    state.tidy_up().unwrap();
    let (stats, wrong) = (state.stats().unwrap(), state.check().unwrap());
    println!(
        "{} pages, {} visits, {} versions; wrong: {wrong:?}",
        stats.pages, stats.visits, stats.versions
    );
    drop(state);
    println!("{} bytes", std::fs::metadata(path).unwrap().len());
    print_tables(path, stats.pages);
}

fn value_of(name: &str) -> Option<String> {
    let mut given = std::env::args().skip_while(|argument| argument != name);
    given.nth(1)
}

fn arguments() -> Arguments {
    let value = value_of;
    let number = |name: &str, default: u64| value(name).map_or(default, |n| n.parse().unwrap());
    let urls = number("--urls", 1_000_000);
    Arguments {
        urls,
        updates: number("--updates", urls.min(500_000)).min(urls),
        changed_percent: number("--changed", 20),
        at: value("--at").map(|n| n.parse().unwrap()),
        together: number("--together", COMMIT_BATCH as u64).max(1),
        dir: value("--dir").map_or_else(|| std::env::temp_dir().join("nenrin-scale"), Into::into),
    }
}

fn add_site(state: &dyn State) -> SiteId {
    let top = CanonicalUrl::parse("https://www.site-00000.example/").unwrap();
    let mut conditions = SiteConditions::new(vec![top]);
    conditions.schedule = Schedule::Continuous(RevisitSettings::default());
    // Far away, so that the generated pages alone come due.
    state.add_site("scale", &conditions, BEGIN_S * 2).unwrap().id
}

/// Returns the bytes of the text of all URLs.
fn make_known(
    state: &dyn State,
    site: SiteId,
    numbers: std::ops::Range<u64>,
    arguments: &Arguments,
    bare: &mut Bare,
) -> u64 {
    let servers = (arguments.urls / 2000).clamp(10, 5000);
    let (mut ours, mut url_bytes, mut number) = (Duration::ZERO, 0, numbers.start);
    let bare_before = bare.spent;
    while number < numbers.end {
        let end = (number + arguments.together).min(numbers.end);
        let pages: Vec<Discovered> = (number..end).map(|n| generated(n, servers)).collect();
        url_bytes += pages.iter().map(|page| page.url.as_str().len() as u64).sum::<u64>();
        let change = Change::Found(FoundPages { site, at_s: BEGIN_S, pages });
        let begin = Instant::now();
        let new_pages = state.commit(&[change]).unwrap();
        ours += begin.elapsed();
        bare.insert(&new_pages.new_pages);
        number = end;
    }
    let made = numbers.end - numbers.start;
    println!(
        "{number} URLs on {servers} servers, {:.1} bytes of text each",
        url_bytes as f64 / made as f64
    );
    print_rates("made known", made, ours, bare.spent - bare_before);
    url_bytes
}

fn generated(number: u64, servers: u64) -> Discovered {
    let server = mixed(number / FOUND_TOGETHER) % servers;
    let shape = mixed(number ^ 0x5eed);
    let word = ["annual-report", "town-council-minutes", "news", "library-exhibition"]
        [(shape % 4) as usize];
    let text = format!(
        "https://www.site-{server:05}.example/section-{}/{}/{:02}/{word}-{number:09}.html",
        shape >> 8 & 63,
        1998 + (shape >> 16) % 28,
        1 + (shape >> 24) % 12,
    );
    let due_s = BEGIN_S + (mixed(number ^ 0xd0e) % SPREAD_BUCKETS) as i64 * BUCKET_S;
    let url = CanonicalUrl::parse(&text).unwrap();
    // A top page is in a bucket of time at once; others wait for a crawl order.
    Discovered { url, depth: 1, hops: 0, due_s: Some(due_s) }
}

fn due_query(bucket: i64, after: Option<nenrin_state::DueCursor>) -> DueQuery {
    DueQuery {
        until_s: BEGIN_S + bucket * BUCKET_S,
        after,
        new: false,
        server: None,
        without: Vec::new(),
        per_server: PER_SERVER,
        limit: LOAD_BATCH,
    }
}

/// Hour after hour, loads what is due and visits it. Returns the hour where it stopped.
fn visit_due(
    state: &dyn State,
    site: SiteId,
    first_bucket: i64,
    arguments: &Arguments,
    bare: &mut Bare,
) -> i64 {
    let (mut loading, mut ours) = (Duration::ZERO, Duration::ZERO);
    let (mut visited, mut loads, mut bucket, mut after) = (0, 0, first_bucket, None);
    let bare_before = bare.spent;
    while visited < arguments.updates && bucket <= SPREAD_BUCKETS as i64 {
        let begin = Instant::now();
        let load = state.load_due(&due_query(bucket, after)).unwrap();
        loading += begin.elapsed();
        loads += 1;
        let mut pages = load.pages;
        pages.sort_by_key(|due| mixed(due.page.id.0 as u64));
        for batch in pages.chunks(COMMIT_BATCH) {
            let changes: Vec<Change> = batch
                .iter()
                .zip(visited..)
                .map(|(due, number)| visit(due, site, bucket, arguments, number))
                .map(|visit| Change::Visit(Box::new(visit)))
                .collect();
            let begin = Instant::now();
            state.commit(&changes).unwrap();
            ours += begin.elapsed();
            bare.upsert(batch, &changes);
            visited += batch.len() as u64;
        }
        after = load.next;
        if after.is_none() && load.more.is_empty() {
            bucket += 1;
        }
    }
    println!(
        "due scan: {visited} pages in {loads} loads of {bucket} buckets, {:.0} pages/s, {:.1} ms a load",
        visited as f64 / loading.as_secs_f64(),
        1000.0 * loading.as_secs_f64() / f64::from(loads)
    );
    print_rates("visits", visited, ours, bare.spent - bare_before);
    bucket
}

fn visit(
    due: &DuePage,
    site: SiteId,
    bucket: i64,
    arguments: &Arguments,
    number: u64,
) -> VisitCommit {
    let random = mixed(due.page.id.0 as u64 ^ 0xabc);
    let at_s = BEGIN_S + bucket * BUCKET_S + (random % 3600) as i64;
    let changed = random % 100 < arguments.changed_percent;
    let outcome = if changed { Outcome::Changed } else { Outcome::NotModified };
    let mut mark = [0; 16];
    mark[..8].copy_from_slice(&random.to_le_bytes());
    mark[8..].copy_from_slice(&mixed(random).to_le_bytes());
    VisitCommit {
        status: if changed { 200 } else { 304 },
        elapsed_ms: (random % 900) as u32,
        received_bytes: if changed { 20_000 } else { 0 },
        stored_bytes: if changed { 1_000 } else { 0 },
        version: changed.then(|| VersionRow {
            at_s,
            // The store counts them.
            version: VersionId(number + 1),
            status: 200,
            mime: "text/html".into(),
            bytes: 20_000,
            changed_permille: Some(40),
        }),
        update: PageUpdate {
            validators: Validators {
                etag: Some(format!("\"{:016x}\"", random)),
                last_modified: Some("Fri, 15 Jan 2027 08:00:00 GMT".into()),
            },
            mark: Some(ContentMark(mark)),
            bytes: 20_000,
            history: mark.iter().copied().cycle().take(HISTORY_BYTES).collect(),
            due_s: Some(at_s + 86_400 * (31 + (random >> 40) as i64 % 60)),
            failures: 0,
        },
        importance_percent: Some(40 + (at_s % 200) as u32),
        estimate: Some(Estimate::new(0.02, 0.4)),
        ..VisitCommit::new(due.page.id, site, at_s, outcome)
    }
}

/// The loop to compare with: one table with rows of the same size, no index beside its key.
struct Bare {
    connection: Connection,
    spent: Duration,
}

impl Bare {
    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        connection.pragma_update(None, "cache_size", -32_000).unwrap();
        connection
            .execute_batch("CREATE TABLE pages (id INTEGER PRIMARY KEY, path TEXT, row BLOB)")
            .unwrap();
        Self { connection, spent: Duration::ZERO }
    }

    fn insert(&mut self, pages: &[NewPage]) {
        let rows: Vec<_> = pages.iter().map(|new| (&new.due, vec![1; 12])).collect();
        self.write(&rows);
    }

    fn upsert(&mut self, pages: &[DuePage], changes: &[Change]) {
        let rows: Vec<_> = pages.iter().zip(changes).map(|(due, c)| (due, record(c))).collect();
        self.write(&rows);
    }

    fn write(&mut self, rows: &[(&DuePage, Vec<u8>)]) {
        let begin = Instant::now();
        let transaction = self.connection.transaction().unwrap();
        for (due, record) in rows {
            transaction
                .prepare_cached(
                    "INSERT INTO pages VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET row = ?3",
                )
                .unwrap()
                .execute(params![due.page.id.0, due.page.url.path_and_query(), record])
                .unwrap();
        }
        transaction.commit().unwrap();
        self.spent += begin.elapsed();
    }
}

/// As many bytes as the page's record has after this visit: its texts, and about 30 of numbers.
fn record(change: &Change) -> Vec<u8> {
    let Change::Visit(visit) = change else { return Vec::new() };
    let update = &visit.update;
    let Validators { etag, last_modified } = &update.validators;
    let texts = etag.iter().chain(last_modified).map(String::len).sum::<usize>();
    vec![2; texts + 16 + update.history.len() + 30]
}

fn print_rates(what: &str, count: u64, ours: Duration, bare: Duration) {
    let rate = |spent: Duration| count as f64 / spent.as_secs_f64();
    println!(
        "{what}: {:.0}/s, bare upserts {:.0}/s, ratio {:.2}",
        rate(ours),
        rate(bare),
        rate(ours) / rate(bare)
    );
}

fn print_disk(when: &str, path: &Path, urls: u64, url_bytes: u64) {
    let bytes = std::fs::metadata(path).unwrap().len();
    println!(
        "on disk, {when}: {bytes} bytes, {:.1} per URL, {:.1} beyond its text",
        bytes as f64 / urls as f64,
        (bytes as f64 - url_bytes as f64) / urls as f64
    );
}

fn print_tables(path: &Path, urls: u64) {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection
        .prepare(
            "SELECT name, pgsize, payload FROM dbstat WHERE aggregate = TRUE ORDER BY pgsize DESC LIMIT 8",
        )
        .unwrap();
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get(2)?)))
        .unwrap();
    for (name, bytes, payload) in rows.map(Result::unwrap) {
        let payload: i64 = payload;
        println!(
            "  {name}: {:.1} bytes per URL, {:.0}% used",
            bytes as f64 / urls as f64,
            100.0 * payload as f64 / bytes as f64
        );
    }
}

/// A number that looks random, the same at every run (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
