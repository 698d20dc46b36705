//! Several workers on one archive, with real servers: PostgreSQL and SeaweedFS.
#![expect(clippy::print_stderr, reason = "a long test says where it is")]

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
    killing::imported,
    support::{Nenrin, Reply, Running, Site},
    warc::records,
};

#[path = "../../crates/store/src/backend/server.rs"]
mod object_server;
#[path = "../../crates/state/src/suite/postgres_server.rs"]
#[expect(unreachable_pub, reason = "it is part of a library as well")]
mod postgres_server;

const DELAY_MS: u64 = 300;
/// The program's clock counts in milliseconds, and the server notes the time a moment late.
const CLOCK: Duration = Duration::from_millis(5);
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

    /// The names of all objects.
    fn keys(&self) -> Vec<String> {
        let address = self.objects.address("");
        let endpoint = address.split_once("endpoint=").unwrap().1.replace("&anonymous", "");
        let url = format!("{endpoint}/{}?list-type=2", ObjectServer::BUCKET);
        let (status, _, body) = crate::support::get(&url);
        assert_eq!(status, 200, "{body}");
        let keys = body.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
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
    machine.start(&["run", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"])
}

/// Servers whose pages change every few seconds, until they are still.
struct World {
    born: Instant,
    sites: Vec<Site>,
    still: Arc<AtomicBool>,
}

impl World {
    fn start(servers: usize) -> Self {
        Self::of(servers, PAGES)
    }

    fn of(servers: usize, pages: usize) -> Self {
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
                        let links = (1..pages).map(|n| format!("<a href='/{n}'>{n}</a>"));
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
                let is_soon =
                    pause.is_some_and(|pause| pause + CLOCK < Duration::from_millis(DELAY_MS));
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
fn suffer(servers: usize, partitions: u32, fills: bool) {
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

    // Its disk is full for a while: what is stored can be read, and nothing new is committed.
    if fills {
        machines.objects.fill(true);
        std::thread::sleep(Duration::from_secs(10));
        let before = machines.versions().len();
        std::thread::sleep(Duration::from_secs(10));
        let after = machines.versions().len();
        assert_eq!(before, after, "versions were committed that could not be stored");
        machines.objects.fill(false);
        say("the objects have room again");
        within(3 * LEASE, "new versions", || machines.versions().len() > after);
        check(&machines, "after the full disk");
    }

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
    suffer(40, 12, false);
}

/// A program whose clock is an hour ahead: `LD_PRELOAD` of this.
const CLOCK_AHEAD: &str = "#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, \"clock_gettime\");
    int done = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += 3600;
    return done;
}";

#[test]
fn what_is_wrong_is_said_at_the_start_before_anything_is_written() {
    let Some(mut machines) = Machines::start(3) else { return };
    let data = machines.folder.path().join("postgres/data/pg_hba.conf");
    let rules = std::fs::read_to_string(&data).unwrap();
    let careful = "host all careful 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(&data, format!("{careful}{rules}")).unwrap();
    machines.sql("SELECT pg_reload_conf()");
    machines.sql("CREATE ROLE careful LOGIN PASSWORD 'right'");
    machines.sql("REVOKE CREATE ON DATABASE postgres FROM PUBLIC");
    let port = machines.postgres.port();
    let by = |password: &str| format!("postgres://careful:{password}@127.0.0.1:{port}/postgres");
    let run = ["run", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let schemas = |machines: &Machines, like: &str| {
        let sql = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE";
        machines.number(&format!("{sql} '{like}%'"))
    };
    let refused = |machines: &Machines, state: &str, content: &str, words: &[&str]| {
        let machine = machines.machine("m").with_env("NENRIN_STATE", state);
        machine.with_env("NENRIN_CONTENT", content).run(&run).expect_said(2, words);
    };
    let (right, content) =
        (machines.postgres.address("nenrin"), machines.objects.address("archive"));

    refused(&machines, &by("wrong"), &content, &["password is wrong"]);
    refused(&machines, &by("right"), &content, &["GRANT CREATE"]);
    let nowhere = content.replace(ObjectServer::BUCKET, "no-such-bucket");
    refused(&machines, &right, &nowhere, &["no such bucket", "name another"]);
    let away = format!("s3://b-u-cket/x?endpoint=http://{}&anonymous", crate::support::deserted());
    refused(&machines, &right, &away, &["cannot use the content in s3://b-u-cket"]);
    let source = machines.folder.path().join("ahead.c");
    std::fs::write(&source, CLOCK_AHEAD).unwrap();
    let library = source.with_extension("so");
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(made.unwrap().success());
    let ahead = machines.machine("ahead").with_env("LD_PRELOAD", library.to_str().unwrap());
    ahead.run(&run).expect_said(2, &["seconds apart", "time server"]);
    let reader = machines.machine("reader");
    reader.run(&["site", "list"]).expect_said(2, &["there is no archive", "nenrin run"]);
    assert_eq!(schemas(&machines, "nenrin"), 0, "nothing was written");

    let site = Site::of_pages(&[("/", Reply::html("one"))]);
    reader.run(&["site", "add", &site.top(), "--allow-private"]).expect(0);
    assert_eq!(schemas(&machines, "nenrin"), 4);
    let other = machines.postgres.address("other");
    refused(&machines, &other, &content, &["another archive", "another prefix"]);
    refused(
        &machines,
        &right,
        &machines.objects.address("new"),
        &["has its content in", "--content"],
    );
    machines.sql("UPDATE nenrin.archive SET schema_number = 99");
    refused(&machines, &right, &content, &["schema 99", "use a newer nenrin"]);
    machines.sql("UPDATE nenrin.archive SET schema_number = 0");
    refused(&machines, &right, &content, &["pre-release"]);
    machines.sql("UPDATE nenrin.archive SET schema_number = 1");
    machines.objects.restrict(
        r#"{"identities": [{"name": "anonymous", "actions": ["Read", "List"]},
            {"name": "writer", "credentials": [{"accessKey": "someone", "secretKey": "secret"}],
             "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}"#,
    );
    refused(&machines, &right, &content, &["keys do not allow", "AWS_ACCESS_KEY_ID"]);
    let third = machines.objects.address("third");
    refused(&machines, &other, &third, &["keys do not allow"]);
    assert_eq!(schemas(&machines, "other"), 0, "nothing was written");
    // Who may only read still can.
    reader.run(&["site", "list"]).expect(0);
}

#[test]
fn commands_on_a_shared_archive_work_or_say_the_way_out() {
    let Some(machines) = Machines::start(3) else { return };
    let world = World::start(6);
    let machine = machines.machine("a");
    world.register(&machine);
    let running = worker(&machine);
    let versions = || machines.number("SELECT count(*) FROM nenrin.all_versions");
    within(Duration::from_secs(60), "versions", || versions() > 2 * world.pages());

    // Beside a worker that collects.
    let other = machines.machine("b");
    other.run(&["compact"]).expect_said(2, &["is at work", "stop `nenrin run`"]);
    let prune = ["prune", "site 0", "--keep-all-for", "1s", "--then", "one-per-month"];
    other.run(&prune).expect_said(2, &["stop `nenrin run`"]);
    let top = world.sites[0].top();
    for (args, words) in [
        (vec!["collect", &top], "nenrin site add"),
        (vec!["backup", "copy"], "pg_dump"),
        (vec!["verify", "--repair"], "from a backup"),
    ] {
        other.run(&args).expect_said(2, &["workers share", words]);
    }
    let mirror = machines.folder.path().join("mirror");
    std::fs::create_dir(&mirror).unwrap();
    std::fs::write(mirror.join("index.html"), "an old top page").unwrap();
    std::fs::write(mirror.join("old.html"), "an old page").unwrap();
    let mirror = mirror.to_str().unwrap();
    let mirror = ["import", "mirror", mirror, "--url", &top, "--at", "2024-03-01", "--json"];
    other.run(&mirror).expect_said(2, &["is at work"]);
    other.run(&["reindex"]).expect_said(2, &["is at work"]);
    let workers = other.run(&["workers"]).expect(0).text();
    assert!(workers.contains("3 partitions") && workers.contains("partition 2"), "{workers}");
    // An index of each partition begins here, and follows what is collected from now on.
    other.run(&["search", "edition"]).expect(0);
    world.still.store(true, Ordering::SeqCst);
    std::thread::sleep(Duration::from_secs(5));
    running.signal("TERM");
    running.finish().expect(0);

    let exported = |name: &str| {
        let path = machines.folder.path().join(name);
        other.run(&["export", "warc", "-o", path.to_str().unwrap()]).expect(0);
        records(&path)
    };
    let before = exported("before.warc.gz");
    let packs = || machines.keys().iter().filter(|key| key.contains("/pack-")).count();
    let packs_before = packs();
    other.run(&["compact"]).expect(0);
    other.assert_sound();
    assert_eq!(exported("after.warc.gz"), before, "compacting changes nothing that is shown");
    let search = ["--json", "search", "\"edition last\"", "at:2100", "--limit", "99"];
    let found = other.run(&search).expect(0).lines();
    for site in &world.sites {
        let is_of_site = |page: &&serde_json::Value| {
            page["url"].as_str().is_some_and(|url| url.starts_with(&site.top()))
        };
        assert!(found.iter().any(|page| is_of_site(&page)), "{}: {found:?}", site.top());
    }
    other.run(&prune).expect_said(0, &["1s,month"]);
    let (count, path) = (versions(), machines.folder.path().join("before.warc.gz"));
    let import = ["import", "warc", "--json", "--site", "site 0", path.to_str().unwrap()];
    let imported = other.run(&import).expect(0).document();
    let captures = before.iter().filter(|(kind, ..)| format!("{kind:?}") != "Request").count();
    assert_eq!(imported["known"], captures, "{imported}");
    assert_eq!(versions(), count, "what is known is not imported again");

    // Folders and dates are imported, and what the objects have is compared with the database.
    assert_eq!(other.run(&mirror).expect(0).document()["files"], 2);
    assert_eq!(versions(), count + 2);
    other.run(&["cat", &format!("{top}old.html")]).expect_said(0, &["an old page"]);
    let dates = machines.folder.path().join("sitemap.xml");
    let entry = |site: &Site| {
        format!("<url><loc>{}new</loc><lastmod>2024-01-02</lastmod></url>", site.top())
    };
    let entries: String = world.sites.iter().map(entry).collect();
    std::fs::write(&dates, format!("<urlset>{entries}</urlset>")).unwrap();
    let history = ["import", "history", "--json", "--site", "site 0", dates.to_str().unwrap()];
    let learnt = other.run(&history).expect(0).document();
    assert_eq!((&learnt["pages"], &learnt["new_pages"]), (&6.into(), &6.into()), "{learnt}");
    let found = other.run(&["reindex", "--json"]).expect(0).document();
    assert_eq!((&found["adopted"], &found["lost"]), (&0.into(), &0.into()), "{found}");
    assert_eq!(versions(), count + 2);
    other.assert_sound();

    // Collecting goes on, and what was replaced is deleted by who holds the partitions next.
    let running = worker(&machine);
    let asked = world.asked();
    within(Duration::from_secs(60), "visits", || world.asked() > asked + 40);
    let (status, _, body) = {
        let replay = running.first_line()["replay"].as_str().unwrap().to_owned();
        crate::support::get(&format!("{replay}web/2/{}", world.sites[0].url("/1")))
    };
    assert!(status == 200 && body.contains("edition last"), "{status} {body}");
    running.signal("TERM");
    running.finish().expect(0);
    other.assert_sound();
    assert!(packs() < packs_before, "{} of {packs_before} packs are left", packs());

    let delete =
        ["site", "remove", "site 0", "--how", "delete", "--reason", "x", "--confirm", "site 0"];
    other.run(&delete).expect_said(0, &["that were deleted"]);
    assert_eq!(versions(), 0);
    other.assert_sound();
}

#[test]
fn an_archive_moves_to_several_machines_and_back_also_when_it_is_killed_on_the_way() {
    let Some(machines) = Machines::start(3) else { return };
    let world = World::start(6);
    let embedded = Nenrin::new();
    let tops: Vec<String> = world.sites.iter().map(Site::top).collect();
    let tops: Vec<&str> = tops.iter().map(String::as_str).collect();
    embedded.collect(&tops).expect(0);
    std::thread::sleep(Duration::from_secs(4));
    embedded.collect(&tops).expect(0);
    let exported = |nenrin: &Nenrin, name: &str| {
        let path = machines.folder.path().join(name);
        nenrin.run(&["export", "warc", "-o", path.to_str().unwrap()]).expect(0);
        records(&path)
    };
    let before = exported(&embedded, "before.warc.gz");
    assert!(before.len() > 2 * world.sites.len() * PAGES, "{}", before.len());

    let watch = ["watch", "add", tops[0], "--words", "edition"];
    embedded.run(&watch).expect(0);
    embedded.run(&["site", "add", "https://denied.example/", "--name", "denied"]).expect(0);
    embedded
        .run(&["site", "remove", "denied", "--how", "deny", "--reason", "x", "--confirm", "denied"])
        .expect(0);

    let machine = machines.machine("a");
    let from = embedded.archive().to_str().unwrap();
    let move_there = ["migrate", "--json", "--from", from];
    let running = machine.start(&move_there);
    let committed = "SELECT count(*) FROM nenrin.all_versions";
    let made = "SELECT count(*) FROM pg_views WHERE viewname = 'all_versions'";
    within(Duration::from_secs(60), "the first versions", || {
        machines.number(made) > 0 && machines.number(committed) > 0
    });
    running.kill();
    let copied = machines.number(committed);
    let mut report = None;
    within(3 * LEASE, "the move to go on", || {
        let ran = machine.run(&move_there);
        match ran.code {
            Some(0) => report = Some(ran.document()),
            code => assert!(code == Some(2) && ran.said().contains("again in"), "{}", ran.said()),
        }
        report.is_some()
    });
    let report = report.unwrap();
    assert!(report["known"].as_u64().unwrap() >= copied, "it went on: {copied}, {report}");
    assert_eq!(exported(&machine, "there.warc.gz"), before);
    let watches = machine.run(&["watch", "list", "--json"]).expect(0).lines();
    assert_eq!(watches.len(), 1, "{watches:?}");
    assert_eq!(report["left_out"], serde_json::json!(["denied"]));
    machine.assert_sound();
    let again = machine.run(&move_there).expect(0).document();
    assert_eq!(again["copied"], 0, "{again}");

    let back = Nenrin::new();
    machine.run(&["migrate", "--to", back.archive().to_str().unwrap()]).expect(0);
    assert_eq!(exported(&back, "back.warc.gz"), before);
    back.assert_sound();
    let sites = |nenrin: &Nenrin| nenrin.run(&["site", "list", "--json"]).expect(0).lines();
    let conditions = |nenrin: &Nenrin| {
        let of =
            |site: &serde_json::Value| (site["name"].to_string(), site["conditions"].to_string());
        sites(nenrin).iter().map(of).collect::<BTreeSet<_>>()
    };
    assert_eq!(conditions(&back), conditions(&embedded));
}

/// The same with more of everything; a few minutes.
#[test]
#[ignore = "large: 200 servers"]
fn three_workers_on_200_servers_lose_double_and_hurry_nothing() {
    suffer(200, 16, true);
}

/// What collecting costs the database and the server of objects, for docs/scale.md.
#[test]
#[ignore = "prints figures"]
fn what_a_page_costs() {
    const EACH: usize = 200;
    let Some(machines) = Machines::start(4) else { return };
    let world = World::of(30, EACH);
    world.still.store(true, Ordering::SeqCst);
    let machine = machines.machine("a").with_config("");
    let tops: Vec<String> = world.sites.iter().map(Site::top).collect();
    let mut add = vec!["site", "add", "--allow-private", "--delay", "0s", "--policy", "every(7d)"];
    add.extend(tops.iter().map(String::as_str));
    machine.run(&add).expect(0);
    let began = Instant::now();
    let args = ["-v", "run", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = machine.start(&args);
    let pages = (world.sites.len() * EACH) as u64;
    let visited = "SELECT count(*) FROM nenrin.all_pages WHERE visited_at IS NOT NULL";
    within(Duration::from_secs(600), "all pages", || machines.number(visited) >= pages);
    let took = began.elapsed();
    running.signal("TERM");
    let said = running.finish().expect(0).stderr;
    let last = said.lines().rfind(|line| line.contains("round_trips")).unwrap_or_default();
    let sizes =
        "SELECT relname, sum(n_live_tup)::bigint, sum(pg_total_relation_size(relid))::bigint
                 FROM pg_stat_user_tables GROUP BY 1 HAVING sum(n_live_tup) > 100 ORDER BY 3 DESC";
    machines.sql("VACUUM ANALYZE");
    let all = "SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_stat_user_tables";
    let (bytes, objects) = (machines.number(all), machines.keys().len());
    eprintln!("{pages} pages in {took:?}; {bytes} bytes of database, {objects} objects");
    eprintln!("{last}");
    machines.sql(sizes).iter().for_each(|row| eprintln!("{row}"));
}

#[test]
fn a_backup_in_a_bucket_survives_kills_and_comes_back() {
    let Some(objects) = ObjectServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let nenrin = imported(folder.path());
    let bucket = objects.address("copy");
    let began = Instant::now();
    nenrin.run(&["backup", &objects.address("first")]).expect(0);
    let whole = began.elapsed();
    for part in 1..=4 {
        let copying = nenrin.start(&["backup", &bucket]);
        std::thread::sleep(whole * part / 5);
        copying.kill();
        nenrin.assert_sound();
    }
    nenrin.run(&["backup", &bucket]).expect(0);
    let again = nenrin.run(&["--json", "backup", &bucket]).expect(0).document();
    assert_eq!(again["copied_bytes"], 0, "{again}");
    let restored = Nenrin::with_archive(folder.path().join("restored"));
    let restoring = restored.start(&["backup", "--restore", &bucket]);
    std::thread::sleep(whole / 4);
    restoring.kill();
    let ran = restored.run(&["backup", "--restore", &bucket]);
    // One that was finished before the kill is an archive, and not restored again.
    assert!(ran.code == Some(0) || ran.said().contains("not a backup"), "{}", ran.said());
    restored.assert_sound();
    let exported = |nenrin: &Nenrin, name: &str| {
        let path = folder.path().join(name);
        nenrin.run(&["export", "warc", "-o", path.to_str().unwrap()]).expect(0);
        records(&path)
    };
    assert_eq!(exported(&restored, "restored.warc.gz"), exported(&nenrin, "archive.warc.gz"));
    let nowhere = bucket.replace(ObjectServer::BUCKET, "no-such-bucket");
    nenrin.run(&["backup", &nowhere]).expect_said(1, &["no such bucket"]);
}
