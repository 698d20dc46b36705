//! Several workers on one archive, with real servers: PostgreSQL and SeaweedFS.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use self::{object_server::ObjectServer, postgres_server::PostgresServer};
use crate::{
    support::{Nenrin, Reply, Running, Site},
    warc::records,
};

#[path = "../../crates/store/src/backend/server.rs"]
mod object_server;
#[path = "../../crates/state/src/suite/postgres_server.rs"]
mod postgres_server;

const DELAY_MS: u64 = 300;
const PAGES: usize = 5;
/// How long a worker holds partitions without being heard.
const LEASE: Duration = Duration::from_secs(20);

/// A database, a server of objects, and what programs on them share.
struct Machines {
    folder: tempfile::TempDir,
    postgres: PostgresServer,
    objects: ObjectServer,
    partitions: u32,
}

impl Machines {
    fn start(partitions: u32) -> Option<Self> {
        let objects = ObjectServer::start()?;
        let folder = tempfile::tempdir().unwrap();
        let postgres = PostgresServer::start(folder.path());
        Some(Self { folder, postgres, objects, partitions })
    }

    /// The program on one of the machines.
    fn machine(&self, name: &str) -> Nenrin {
        let archive = self.folder.path().join(name);
        Nenrin::with_archive(archive)
            .with_env("NENRIN_STATE", &self.postgres.address("nenrin"))
            .with_env("NENRIN_CONTENT", &self.objects.address("archive"))
            .with_env("NENRIN_PARTITIONS", &self.partitions.to_string())
            .with_config("[state]\nbucket = \"1s\"\n")
    }

    /// What the database answers, one line for each row.
    fn sql(&self, sql: &str) -> Vec<String> {
        let ran = Command::new("psql")
            .args(["-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-U", "postgres", "-d", "postgres"])
            .args(["-p", &self.postgres.port().to_string(), "-c", sql])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    fn number(&self, sql: &str) -> u64 {
        self.sql(sql)[0].parse().unwrap()
    }

    /// Every committed version: its page, time and number.
    fn versions(&self) -> BTreeSet<String> {
        let rows = self.sql("SELECT url, received_at, version FROM nenrin.all_versions");
        let found: BTreeSet<String> = rows.iter().cloned().collect();
        assert_eq!(found.len(), rows.len(), "a version is listed twice");
        found
    }
}

fn worker(machine: &Nenrin) -> Running {
    machine.start(&["run", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"])
}

/// Servers whose pages change every few seconds, until they are still.
struct World {
    born: Instant,
    sites: Vec<Site>,
    still: Arc<AtomicBool>,
}

impl World {
    fn start(servers: usize) -> Self {
        let (born, still) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let serve = |server: usize| {
            let still = still.clone();
            Site::serve(move |request| {
                let edition = match still.load(Ordering::SeqCst) {
                    true => "last".to_owned(),
                    false => format!("{}", born.elapsed().as_secs() / 4),
                };
                let text =
                    |path: &str| format!("server {server} page {path} edition {edition} end");
                match request.path.as_str() {
                    "/" => {
                        let links = (1..PAGES).map(|n| format!("<a href='/{n}'>{n}</a>"));
                        Reply::html(format!("{} {}", text("/"), links.collect::<String>()))
                    }
                    path if path[1..].parse::<usize>().is_ok() => Reply::html(text(path)),
                    _ => Reply::status("404 Not Found"),
                }
                .validated(request)
            })
        };
        Self { born, sites: (0..servers).map(serve).collect(), still }
    }

    /// Registers the servers, ten in a site.
    fn register(&self, nenrin: &Nenrin) {
        let delay = format!("{DELAY_MS}ms");
        for (nth, sites) in self.sites.chunks(10).enumerate() {
            let name = format!("site {nth}");
            let mut add =
                vec!["site", "add", "--allow-private", "--delay", &delay, "--name", &name];
            add.extend(["--policy", "every(2s)"]);
            let tops: Vec<String> = sites.iter().map(Site::top).collect();
            add.extend(tops.iter().map(String::as_str));
            nenrin.run(&add).expect(0);
        }
    }

    fn asked(&self) -> usize {
        self.sites.iter().map(|site| site.requests().len()).sum()
    }

    fn pages(&self) -> u64 {
        (self.sites.len() * PAGES) as u64
    }

    /// As each server saw it: never two requests at once, never one too soon.
    fn assert_polite(&self) {
        let mut hurried = Vec::new();
        for site in &self.sites {
            let requests = site.requests();
            for pair in requests.windows(2) {
                let pause =
                    pair[0].ended.map(|ended| pair[1].began.saturating_duration_since(ended));
                let is_soon = pause.is_some_and(|pause| pause < Duration::from_millis(DELAY_MS));
                if is_soon || pair[1].beside > 0 {
                    let (at, beside) = (pair[1].began - self.born, pair[1].beside);
                    let (first, second) = (&pair[0].path, &pair[1].path);
                    let of = site.address;
                    hurried.push(format!(
                        "{at:?}: {second} {pause:?} after {first}, {beside} beside, of {of}"
                    ));
                }
            }
        }
        hurried.sort();
        assert!(hurried.is_empty(), "too soon: {hurried:#?}");
    }
}

#[track_caller]
fn within(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < patience, "waited {patience:?} for {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
    began.elapsed()
}

/// Kills, stops, restarts: nothing is lost, doubled or asked too soon.
fn suffer(servers: usize, partitions: u32) {
    let Some(mut machines) = Machines::start(partitions) else { return };
    let world = World::start(servers);
    let names = ["a", "b", "c"];
    let fleet: Vec<Nenrin> = names.iter().map(|name| machines.machine(name)).collect();
    world.register(&fleet[0]);
    let mut workers: Vec<Option<Running>> = fleet.iter().map(|m| Some(worker(m))).collect();
    let held = |machines: &Machines| {
        let sql = "SELECT worker, count(*) FROM nenrin.leases
                   WHERE until_at > clock_timestamp() GROUP BY 1 ORDER BY 1";
        let split = |row: String| row.split_once('|').map(|(w, n)| (w.to_owned(), n.to_owned()));
        let rows = machines.sql(sql).into_iter().filter_map(split);
        rows.map(|(w, n)| (w, n.parse::<u64>().unwrap())).collect::<BTreeMap<_, _>>()
    };
    within(Duration::from_secs(60), "three workers that share the partitions", || {
        let held = held(&machines);
        held.len() == 3 && held.values().sum::<u64>() == u64::from(partitions)
    });
    within(Duration::from_secs(60), "visits", || world.asked() > servers * 3);
    let say = |what: &str| eprintln!("{:?}: {what}", world.born.elapsed());
    let mut listed = BTreeSet::new();
    let mut check = |machines: &Machines, when: &str| {
        let now = machines.versions();
        let lost: Vec<&String> = listed.difference(&now).collect();
        assert!(lost.is_empty(), "{when}: lost {lost:?}");
        eprintln!("{:?}: {when}, {} versions", world.born.elapsed(), now.len());
        listed = now;
    };

    // One is killed, and one stopped for longer than it is waited for.
    check(&machines, "before the kill");
    workers[0].take().unwrap().kill();
    workers[1].as_ref().unwrap().signal("STOP");
    let took = within(2 * LEASE, "a take-over by the third", || {
        let held = held(&machines);
        held.len() == 1 && held.values().sum::<u64>() == u64::from(partitions)
    });
    say(&format!("taken over after {took:?}"));
    check(&machines, "after the take-over");
    workers[1].as_ref().unwrap().signal("CONT");
    workers[0] = Some(worker(&fleet[0]));
    within(2 * LEASE, "all three at work again", || held(&machines).len() == 3);

    // The database restarts, then the server of objects is away for a while.
    machines.postgres.stop();
    std::thread::sleep(Duration::from_secs(1));
    machines.postgres.resume();
    say("the database is back");
    check(&machines, "after the restart of the database");
    machines.objects.stop();
    std::thread::sleep(Duration::from_secs(6));
    machines.objects.resume();
    say("the objects are back");
    check(&machines, "after the rest of the objects");

    // In the end every page is visited as it stays.
    world.still.store(true, Ordering::SeqCst);
    let from = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 1;
    let fresh = format!(
        "SELECT count(*) FROM nenrin.all_pages WHERE visited_at > to_timestamp({from})
         AND outcome IN ('changed', 'same', 'not-modified')"
    );
    within(3 * LEASE, "a visit to every page", || machines.number(&fresh) == world.pages());
    check(&machines, "in the end");
    for running in workers.iter_mut().flatten() {
        running.signal("TERM");
    }
    for running in workers.into_iter().flatten() {
        running.finish().expect(0);
    }
    assert_eq!(
        machines.sql("SELECT partition FROM nenrin.leases WHERE worker IS NOT NULL").len(),
        0
    );
    check(&machines, "after the stop");
    assert_contents(&machines, &world);
    world.assert_polite();
}

/// Every committed version can be exported once, with bytes that its server sent, and no page has
/// the same content twice in a row.
fn assert_contents(machines: &Machines, world: &World) {
    let reader = machines.machine("reader");
    reader.assert_sound();
    let path = machines.folder.path().join("all.warc.gz");
    reader.run(&["export", "warc", "-o", path.to_str().unwrap()]).expect(0);
    let mut editions: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut responses = 0;
    for (kind, fields, block) in records(&path) {
        if format!("{kind:?}") != "Response" {
            continue;
        }
        responses += 1;
        let field = |name: &str| fields.iter().find(|(n, _)| n == name).unwrap().1.clone();
        let text = String::from_utf8_lossy(&block).into_owned();
        let Some((_, rest)) = text.split_once("server ") else { continue };
        let said = rest.split_once(" end").unwrap().0.to_owned();
        editions.entry(field("WARC-Target-URI")).or_default().push((field("WARC-Date"), said));
    }
    assert_eq!(responses, machines.versions().len(), "exported responses and committed versions");
    assert_eq!(editions.len() as u64, world.pages());
    for (nth, site) in world.sites.iter().enumerate() {
        for path in (0..PAGES).map(|n| if n == 0 { "/".to_owned() } else { format!("/{n}") }) {
            let mut found = editions.remove(&site.url(&path)).unwrap();
            found.sort();
            let own = format!("{nth} page {path} edition ");
            for (_, said) in &found {
                assert!(said.starts_with(&own), "{said} is not of {own}");
            }
            let twice = found.windows(2).find(|pair| pair[0].1 == pair[1].1);
            assert!(twice.is_none(), "the same content twice in a row: {twice:?}");
            assert!(found.last().unwrap().1.ends_with("last"), "{found:?}");
        }
    }
}

#[test]
fn three_workers_lose_double_and_hurry_nothing_whatever_stops() {
    suffer(40, 12);
}

/// The same with more of everything; a few minutes.
#[test]
#[ignore = "large: 200 servers"]
fn three_workers_on_200_servers_lose_double_and_hurry_nothing() {
    suffer(200, 16);
}
