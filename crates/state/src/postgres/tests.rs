use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::*;
use crate::{suite::PostgresServer, *};

const SINGLE: Partitioning = Partitioning::SINGLE;

fn right(_: &Found) -> Result<(), StateError> {
    Ok(())
}

fn archive(address: &str, partitioning: Partitioning) -> PostgresArchive {
    PostgresArchive::open(&address.parse().unwrap(), Some((3600, partitioning)), right).unwrap()
}

/// Runs laws, four at a time, each on archives of its own; fails with the names of those broken.
fn hold<L: Copy + Send + Sync>(laws: &[(&str, L)], run: impl Fn(L, &str) + Sync) {
    let (next, broken) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((name, law)) = laws.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let archive: String = name.chars().take(34).collect();
                    if catch_unwind(AssertUnwindSafe(|| run(*law, &archive))).is_err() {
                        broken.lock().unwrap().push((*name).to_owned());
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{} of {} laws are broken: {broken:#?}", broken.len(), laws.len());
}

#[test]
fn the_contracts_hold() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let laws = crate::contract_suite!(list PostgresState);
    hold(&laws, |law, name| {
        let state = archive(&server.address(name), SINGLE).partition(PartitionId(0));
        law(&state);
        assert_eq!(state.check().unwrap(), Vec::<String>::new());
        // With rows kept in memory.
        let name = format!("h{name}");
        let state = archive(&server.address(&name), SINGLE).hold(PartitionId(0));
        law(&state);
        assert_eq!(state.check().unwrap(), Vec::<String>::new());
    });
    let laws = crate::partition_suite!(list PostgresState);
    hold(&laws, |law, name| {
        let made = AtomicUsize::new(0);
        law(&|partitioning, own| {
            // A single partition is an archive of its own.
            let number =
                if partitioning.count == 1 { made.fetch_add(1, Ordering::Relaxed) } else { 0 };
            let name = format!("q{}_{number}_{name}", partitioning.count);
            archive(&server.address(&name[..name.len().min(40)]), partitioning).hold(own)
        });
    });
}

/// What happens to a connection when its client commits.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// It is lost before it reaches the server.
    Before,
    /// The server commits, and the answer is lost.
    After,
}

/// A proxy between the state and the server that cuts connections at chosen commits.
struct Proxy {
    port: u16,
    cuts: Arc<Mutex<BTreeMap<usize, Cut>>>,
}

impl Proxy {
    #[expect(clippy::disallowed_methods, reason = "a proxy of a test")]
    fn start(server: u16, cuts: BTreeMap<usize, Cut>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(Mutex::new(cuts));
        let (plan, commits) = (cuts.clone(), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (plan, commits) = (plan.clone(), commits.clone());
                let answers = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let is_muted = Arc::new(AtomicBool::new(false));
                let muted = is_muted.clone();
                std::thread::spawn(move || pump_answers(answers, &muted));
                std::thread::spawn(move || {
                    let _ = pump_questions(client, server, &plan, &commits, &is_muted);
                });
            }
        });
        Self { port, cuts }
    }

    fn address(&self, archive: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?archive={archive}", self.port)
    }
}

fn pump_answers((mut server, mut client): (TcpStream, TcpStream), is_muted: &AtomicBool) {
    let mut bytes = [0; 8192];
    while let Ok(length) = server.read(&mut bytes) {
        let is_over = is_muted.load(Ordering::SeqCst);
        if length == 0 || is_over || client.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// Messages of a client: the first has no letter in front of its length.
fn pump_questions(
    mut client: TcpStream,
    mut server: TcpStream,
    plan: &Mutex<BTreeMap<usize, Cut>>,
    commits: &AtomicUsize,
    is_muted: &AtomicBool,
) -> std::io::Result<()> {
    let mut is_first = true;
    loop {
        let mut head = vec![0; if is_first { 4 } else { 5 }];
        client.read_exact(&mut head)?;
        let length = u32::from_be_bytes(head[head.len() - 4..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        client.read_exact(&mut body)?;
        // A client that asks for encryption is refused it, and begins again.
        let asks_for_tls = is_first && body == 80_877_103_u32.to_be_bytes();
        if !asks_for_tls && head[0] == b'Q' && body.starts_with(b"COMMIT") {
            let nth = commits.fetch_add(1, Ordering::SeqCst);
            match plan.lock().unwrap().remove(&nth) {
                Some(Cut::Before) => return server.shutdown(Shutdown::Both),
                Some(Cut::After) => {
                    is_muted.store(true, Ordering::SeqCst);
                    server.write_all(&[head, body].concat())?;
                    std::thread::sleep(Duration::from_millis(150));
                    return server.shutdown(Shutdown::Both);
                }
                None => {}
            }
        }
        server.write_all(&[head, body].concat())?;
        is_first &= asks_for_tls;
    }
}

/// A site with a page, and a visit of it.
fn visited(state: &PostgresState) -> impl Fn(i64) -> Change {
    let top = nenrin_urls::CanonicalUrl::parse("http://e.com/").unwrap();
    let site = state.add_site("e", &SiteConditions::new(vec![top]), 0).unwrap();
    let round = state.begin_round(site.id, 0).unwrap();
    let page = state.load_round(&round, None, 1).unwrap().remove(0).page.id;
    move |at_s| {
        let url = format!("http://e.com/{at_s}");
        let url = nenrin_urls::CanonicalUrl::parse(&url).unwrap();
        let discovered = vec![Discovered { url, depth: 2, hops: 0, due_s: None }];
        let visit = VisitCommit::new(page, site.id, at_s, Outcome::Changed);
        Change::Visit(Box::new(VisitCommit { discovered, ..visit }))
    }
}

#[test]
fn a_lost_connection_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = PostgresServer::start(folder.path());
    let plain = archive(&server.address("cut"), SINGLE);
    // The first commits are those of making the site and its round.
    let cuts = [(3, Cut::Before), (5, Cut::After), (6, Cut::After), (8, Cut::Before)];
    let proxy = Proxy::start(server.port(), cuts.into_iter().collect());
    let state = archive(&proxy.address("cut"), SINGLE).partition(PartitionId(0));
    let visit = visited(&state);
    let epoch = state.take_over().unwrap();
    for at_s in 1..=8 {
        let committed = state.commit_under(epoch, &[visit(at_s)]).unwrap();
        assert_eq!(committed.new_pages.len(), 1, "{at_s}");
    }
    assert!(proxy.cuts.lock().unwrap().is_empty(), "every cut was made");
    let direct = plain.partition(PartitionId(0));
    assert_eq!(direct.stats().unwrap().visits, 8);
    let log = direct.visits(VisitFilter { limit: 99, ..VisitFilter::default() }).unwrap();
    let times: Vec<i64> = log.iter().rev().map(|visit| visit.at_s).collect();
    assert_eq!(times, (1..=8).collect::<Vec<_>>());
    assert_eq!(direct.check().unwrap(), Vec::<String>::new());

    // A restart of the server is waited out.
    server.stop();
    let restart = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        server.resume();
        server
    });
    direct.commit_under(epoch, &[visit(9)]).unwrap();
    assert_eq!(direct.stats().unwrap().visits, 9);
    drop(restart.join().unwrap());
}

#[test]
fn transactions_in_each_others_way_are_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let state = archive(&server.address("busy"), SINGLE).partition(PartitionId(0));
    let visit = visited(&state);
    for sql in [
        "CREATE SEQUENCE @faults",
        "CREATE FUNCTION @fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('busy_p0.faults') % 3 > 0 THEN
                RAISE EXCEPTION 'in the way' USING ERRCODE = '40001';
            END IF; RETURN NULL; END $$",
        "CREATE TRIGGER fail AFTER INSERT ON @visits FOR EACH STATEMENT EXECUTE FUNCTION @fail()",
    ] {
        state.maintain(sql).unwrap();
    }
    for at_s in 1..=5 {
        state.commit(&[visit(at_s)]).unwrap();
    }
    assert_eq!(state.stats().unwrap().visits, 5);
    assert_eq!(state.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_thousand_visits_are_two_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let archive = archive(&server.address("many"), SINGLE);
    let state = archive.partition(PartitionId(0));
    let visit = visited(&state);
    state.commit(&(1..=1_000).map(&visit).collect::<Vec<_>>()).unwrap();
    let before = archive.round_trips().sum();
    let again: Vec<Change> = (1_001..=2_000).map(&visit).collect();
    state.commit(&again).unwrap();
    let trips = archive.round_trips().sum() - before;
    assert_eq!(trips, 2, "one begins and loads, one writes and commits");
    assert_eq!(state.stats().unwrap().pages, 2_001);
}

#[test]
fn who_holds_a_partition_asks_for_what_it_found_and_for_servers_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let archive = archive(&server.address("held"), SINGLE);
    let (state, other) = (archive.hold(PartitionId(0)), archive.partition(PartitionId(0)));
    let url =
        |path: &str| nenrin_urls::CanonicalUrl::parse(&format!("http://e.com/{path}")).unwrap();
    let mut conditions = SiteConditions::new(vec![url("")]);
    conditions.schedule = Schedule::Continuous(Default::default());
    let site = state.add_site("e", &conditions, 0).unwrap();
    let top = state.page(&url("")).unwrap().unwrap();
    let epoch = state.take_over().unwrap();
    let discovered = (1..=3)
        .map(|n| Discovered { url: url(&n.to_string()), depth: 2, hops: 0, due_s: Some(99) })
        .collect();
    let visit = VisitCommit::new(top.id, site.id, 5, Outcome::Changed);
    let visit = Change::Visit(Box::new(VisitCommit { discovered, ..visit }));
    let committed = state.commit_under(epoch, &[visit]).unwrap();
    let places: Vec<Nth> = committed.new_pages.iter().map(|new| new.due.page.nth).collect();
    let servers = [top.id.server()];
    assert_eq!(state.servers(&servers).unwrap(), other.servers(&servers).unwrap());
    let asked = |what: &dyn Fn()| {
        let before = archive.round_trips().sum();
        what();
        archive.round_trips().sum() - before
    };

    // Nothing is asked, and the answer is that of the database.
    let found = state.load_found(&places).unwrap();
    assert_eq!((found.len(), &found), (3, &other.load_found(&places).unwrap()));
    let trips = asked(&|| {
        assert_eq!(state.load_found(&places).unwrap().len(), 3);
        assert_eq!(state.servers(&servers).unwrap().len(), 1);
    });
    assert_eq!(trips, 0);

    // What its own commits change, it knows.
    let pace = ServerPace {
        server: servers[0],
        asked_ms: 7_000,
        resting_until_ms: Some(9_000),
        strikes: 2,
        stretch_percent: 150,
    };
    let copy = RobotsCopy { good_at_s: 6, status: 200, body: b"User-agent: *".to_vec() };
    let note = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        Change::Note(ServerNote { server: servers[0], name, value })
    };
    let tried = |tried_s, copy| Change::Robots { server: servers[0], tried_s, copy };
    let pull = PullForward {
        page: found[0].page.id,
        to_s: 50,
        odds_percent: 100,
        hint: nenrin_lang::Hint::ChangesWith("http://e.com/".to_owned()),
    };
    let visit = VisitCommit::new(found[1].page.id, site.id, 8, Outcome::Same);
    let changes = [
        Change::Pace(pace),
        tried(6, Some(copy)),
        tried(7, None),
        note("a", "1"),
        note("b", "2"),
        note("a", ""),
        Change::PullForward(pull),
        Change::Visit(Box::new(visit)),
        Change::Weighed(vec![(places[2], 250)]),
    ];
    state.commit_under(epoch, &changes).unwrap();
    let unvisited = [places[0], places[2]];
    let trips = asked(&|| {
        drop((state.servers(&servers).unwrap(), state.load_found(&unvisited).unwrap()));
    });
    assert_eq!(trips, 0);
    assert_eq!(state.servers(&servers).unwrap(), other.servers(&servers).unwrap());
    assert_eq!(state.load_found(&places).unwrap(), other.load_found(&places).unwrap());
    assert!(state.load_found(&places).unwrap()[0].pulled, "what is kept follows");

    // Others change sites: all is asked again.
    other.pause_site(site.id, true).unwrap();
    state.commit_under(epoch, &[note("c", "3")]).unwrap();
    assert!(asked(&|| drop(state.load_found(&unvisited).unwrap())) > 0);
    assert!(asked(&|| drop(state.servers(&servers).unwrap())) > 0);
    assert_eq!(state.servers(&servers).unwrap(), other.servers(&servers).unwrap());
}

#[test]
fn an_archive_of_the_first_schema_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let state = archive(&server.address("old"), SINGLE).partition(PartitionId(0));
    let visit = visited(&state);
    for sql in [
        "ALTER TABLE @partition DROP COLUMN outside",
        "DROP INDEX @pages_by_time",
        "DROP INDEX @pages_by_key",
        "CREATE INDEX pages_by_time ON @pages (bucket, id) WHERE bucket IS NOT NULL",
        "CREATE INDEX pages_by_key ON @pages (key, id) WHERE key IS NOT NULL",
        "UPDATE old.archive SET schema_number = 1",
    ] {
        state.maintain(sql).unwrap();
    }
    let place: PostgresPlace = server.address("old").parse().unwrap();
    let archive = PostgresArchive::open(&place, None, right).unwrap();
    let state = archive.partition(PartitionId(0));
    state.commit(&[visit(1)]).unwrap();
    assert_eq!(state.stats().unwrap().visits, 1);
    let indexes = "SELECT count(*) FROM pg_indexes WHERE schemaname = 'old_p0'
                   AND (indexdef LIKE '%hashtext%' OR indexdef LIKE '%9223372036854775806%')";
    let found = state.read(indexes, &[]).unwrap();
    assert_eq!(found[0].get::<_, i64>(0), 2);
}

#[test]
fn leases_go_to_one_worker_at_a_time_and_on_after_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let archive = archive(&server.address("leased"), Partitioning { count: 3 });
    let (one, two) = (archive.enter_worker("one").unwrap(), archive.enter_worker("two").unwrap());
    let lease = Duration::from_secs(2);
    let all: Vec<PartitionId> = archive.partitioning().all().collect();
    let none = BTreeMap::new();
    let first = archive.take_partitions(one, lease, &all[..2]).unwrap();
    let rest = archive.take_partitions(two, lease, &all).unwrap();
    assert_eq!((first.len(), rest.len()), (2, 1));
    assert!(first.iter().all(|lease| !lease.was_lost));
    assert_eq!(archive.take_partitions(two, lease, &all).unwrap(), []);
    let said = BTreeMap::from([(first[0].partition, 70)]);
    let now = archive.renew(one, lease, &said).unwrap();
    assert_eq!(now.held, BTreeMap::from([(all[0], 70), (all[1], IDLE_LOAD)]));
    assert_eq!(now.workers, BTreeMap::from([(one, 70 + IDLE_LOAD), (two, IDLE_LOAD)]));
    assert_eq!(now.free, []);
    let names: Vec<_> = archive.workers(Duration::from_secs(60)).unwrap();
    assert_eq!(names.iter().map(|row| row.partitions).collect::<Vec<_>>(), [2, 1]);

    // One is stopped for longer than its lease: another takes over, and one commits nothing more.
    std::thread::sleep(Duration::from_millis(2_500));
    let taken = archive.take_partitions(two, lease, &all).unwrap();
    assert!(taken.len() >= 2 && taken.iter().all(|lease| lease.was_lost), "{taken:?}");
    assert_eq!(archive.renew(one, lease, &none).unwrap().held, none);
    let late = archive.partition(first[0].partition);
    let pace = Change::Shared { site: SiteId(1), bytes: vec![1] };
    let error = late.commit_under(first[0].epoch, &[pace]).unwrap_err();
    assert!(matches!(error, StateError::Superseded { .. }), "{error}");

    // What is handed over is free at once.
    archive.leave(two).unwrap();
    let again = archive.take_partitions(one, lease, &all).unwrap();
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|lease| !lease.was_lost));
    assert_eq!(archive.partitions().unwrap().len(), 3);
}

#[test]
fn what_is_wrong_at_the_start_is_said_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let open = |address: &str| {
        let opened = PostgresArchive::open(&address.parse().unwrap(), Some((3600, SINGLE)), right);
        opened.map(|_| ()).unwrap_err()
    };
    let none = format!("postgres://postgres@127.0.0.1:{}/nowhere", server.port());
    assert!(open(&none).to_string().contains("createdb"), "{}", open(&none));
    let place: PostgresPlace = server.address("none").parse().unwrap();
    let missing = PostgresArchive::open(&place, None, right).map(|_| ()).unwrap_err();
    assert!(missing.to_string().contains("nenrin run"), "{missing}");
    // What whoever opens finds wrong leaves nothing behind.
    let wrong = PostgresArchive::open(&place, Some((3600, SINGLE)), |found| {
        assert!(!found.id.is_empty() && found.content.is_none());
        Err(StateError::NotHeld)
    });
    assert!(matches!(wrong, Err(StateError::NotHeld)));
    assert!(PostgresArchive::open(&place, None, right).is_err(), "it was not made");

    let made = archive(&server.address("made"), Partitioning { count: 2 });
    made.bind_content("s3://a/b").unwrap();
    made.bind_content("s3://a/c").unwrap();
    let mut bound = None;
    let look = |found: &Found| {
        bound.clone_from(&found.content);
        right(found)
    };
    PostgresArchive::open(&server.address("made").parse().unwrap(), None, look).unwrap();
    assert_eq!(bound.as_deref(), Some("s3://a/b"), "the first stays");
    let idle = made.partition(PartitionId(0)).read("SHOW idle_in_transaction_session_timeout", &[]);
    assert_eq!(idle.unwrap()[0].get::<_, String>(0), "10s", "a worker that stops holds no locks");
    // An existing archive stays divided as it is.
    assert_eq!(archive(&server.address("made"), SINGLE).partitioning().count, 2);
    let state = made.partition(PartitionId(0));
    state.maintain("UPDATE made.archive SET schema_number = 99").unwrap();
    let newer = open(&server.address("made"));
    assert!(matches!(newer, StateError::SchemaTooNew { found: 99, .. }), "{newer}");

    state.maintain("UPDATE made.archive SET schema_number = 0").unwrap();
    let older = open(&server.address("made"));
    assert!(matches!(older, StateError::PreRelease { .. }), "{older}");

    state.maintain("CREATE ROLE reader LOGIN PASSWORD 'secret'").unwrap();
    state.maintain("REVOKE CREATE ON DATABASE postgres FROM PUBLIC").unwrap();
    let reader = format!("postgres://reader:secret@127.0.0.1:{}/postgres", server.port());
    let refused = open(&format!("{reader}?archive=mine"));
    assert!(matches!(refused, StateError::Refused { .. }), "{refused}");
    for wrong in ["postgres://e.com/x?archive=A-B", "mysql://e.com/", "postgres://h:x/"] {
        assert!(wrong.parse::<PostgresPlace>().is_err(), "{wrong}");
    }
    assert!(!place.shown().contains("secret"));
}

#[test]
fn partitions_are_one_archive_to_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let server = PostgresServer::start(folder.path());
    let archive = archive(&server.address("joined"), Partitioning { count: 3 });
    read_as_one(&archive);
}

#[test]
fn partitions_on_two_servers_are_one_archive() {
    let folder = tempfile::tempdir().unwrap();
    let first = PostgresServer::start(folder.path());
    let second = PostgresServer::start(&folder.path().join("second"));
    let map = format!("{} {}&partitions=1-2", first.address("far"), second.address("x"));
    let three = Partitioning { count: 3 };
    let archive = archive(&map, three);
    read_as_one(&archive);
    let schemas = |own: u32, like: &str| {
        let sql = format!("SELECT count(*) FROM pg_namespace WHERE nspname LIKE '{like}'");
        archive.partition(PartitionId(own)).read(&sql, &[]).unwrap()[0].get::<_, i64>(0)
    };
    assert_eq!((schemas(0, "far\\_p%"), schemas(1, "far\\_p%")), (1, 2));
    assert_eq!(schemas(2, "far"), 1, "views of its partitions");

    // Leases are on the first server, epochs with the partitions; mail goes from one to the other.
    let (one, two) = (archive.enter_worker("one").unwrap(), archive.enter_worker("two").unwrap());
    let (lease, all) = (Duration::from_millis(300), three.all().collect::<Vec<_>>());
    let held = archive.take_partitions(one, lease, &all).unwrap();
    assert_eq!(held.len(), 3);
    let url = |n: i64| nenrin_urls::CanonicalUrl::parse(&format!("http://t{n}.com/")).unwrap();
    let pages = (0..30).map(|n| Discovered { url: url(n), depth: 2, hops: 0, due_s: None });
    let found = FoundPages { site: SiteId(1), at_s: 9, pages: pages.collect() };
    let of = |own: u32| held.iter().find(|lease| lease.partition.0 == own).unwrap().epoch;
    archive.hold(all[0]).commit_under(of(0), &[Change::Found(found)]).unwrap();
    let waiting = archive.news().unwrap().mail;
    assert!(waiting.iter().any(|row| row.to == all[1] && row.from == all[0] && row.sent > 0));
    let mail = archive.mail_to(all[1], &BTreeMap::from([(all[0], 0)]), 99).unwrap();
    assert!(!mail[&all[0]].is_empty());

    // Who lost the lease commits nothing more on any server.
    std::thread::sleep(2 * lease);
    let taken = archive.take_partitions(two, lease, &all).unwrap();
    assert!(taken.len() == 3 && taken.iter().all(|lease| lease.was_lost));
    for own in 0..3 {
        let note = Change::Shared { site: SiteId(1), bytes: vec![1] };
        let late = archive.partition(PartitionId(own)).commit_under(of(own), &[note]);
        assert!(matches!(late, Err(StateError::Superseded { .. })));
    }

    // A map that does not fit is refused, and nothing is made anew.
    let open = |text: &str| {
        let place: PostgresPlace = text.parse().unwrap();
        PostgresArchive::open(&place, Some((3600, three)), right).err().unwrap().to_string()
    };
    assert!(open(&first.address("far")).contains("partition 1 is not in"));
    let swapped = format!("{} {}&partitions=0-2", first.address("far"), second.address("x"));
    assert!(open(&swapped).contains("partition 0 is not in"));
    super::tests::archive(&first.address("other"), three);
    let foreign = format!("{} {}&partitions=1", second.address("far2"), first.address("x"));
    PostgresArchive::open(&foreign.parse().unwrap(), Some((3600, three)), right).unwrap();
    let foreign = format!("{} {}&partitions=1", second.address("other"), first.address("x"));
    assert!(open(&foreign).contains("of another archive"));
    for wrong in ["partitions=5-2", "partitions=a", "archive=y"] {
        let text = format!("{} {}&{wrong}", first.address("far"), second.address("x"));
        assert!(text.parse::<PostgresPlace>().is_err(), "{wrong}");
    }
}

/// Pages on every partition, read together.
fn read_as_one(archive: &PostgresArchive) {
    let parts = archive.partitioning().all();
    let joined = JoinedState::new(
        parts.map(|own| Arc::new(archive.partition(own)) as Arc<dyn State>).collect(),
    );
    let url = |n: i64| nenrin_urls::CanonicalUrl::parse(&format!("http://s{n}.com/p")).unwrap();
    let conditions = SiteConditions::new((0..20).map(url).collect());
    let site = joined.add_site("e", &conditions, 5).unwrap();
    assert_eq!((site.counts.pages, joined.sites().unwrap().len()), (20, 1));
    let visits: Vec<Change> = (0..20)
        .map(|n| {
            let version = VersionRow {
                at_s: 100 + n,
                version: VersionId(n as u64 + 1),
                status: 200,
                mime: "text/html".into(),
                bytes: 10,
                changed_permille: None,
            };
            let found = Discovered { url: url(n), depth: 1, hops: 0, due_s: None };
            let visit = VisitCommit::new(found, site.id, 100 + n, Outcome::Changed);
            Change::Visit(Box::new(VisitCommit { version: Some(version), ..visit }))
        })
        .collect();
    joined.commit(&visits).unwrap();
    let held = |own: u32| archive.partition(PartitionId(own)).stats().unwrap().pages;
    assert!((0..3).all(|own| held(own) > 0), "every partition has some");
    assert_eq!(joined.stats().unwrap().pages, 20);
    assert_eq!(joined.sites().unwrap()[0].counts.versions, 20);
    for n in 0..20 {
        let page = joined.page(&url(n)).unwrap().unwrap();
        assert_eq!(joined.url_of(page.id).unwrap(), Some(url(n)));
        let (found, row) = joined.version_as_of(&url(n).key(), 500).unwrap().unwrap();
        assert_eq!((found, row.version), (url(n), VersionId(n as u64 + 1)));
        assert_eq!(joined.visits_of(&url(n), 0, 500).unwrap().len(), 1);
    }
    // In portions, everything comes once and in order.
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let filter = PageFilter { site: Some(site.id), after, limit: 7 };
        let some = joined.pages(filter).unwrap();
        let Some(last) = some.last() else { break };
        after = Some(last.id);
        seen.extend(some.iter().map(|page| page.id));
    }
    assert!(seen.len() == 20 && seen.is_sorted());
    let urls = joined.urls("", "~", 99).unwrap();
    assert!(urls.len() == 20 && urls.is_sorted_by_key(|url| url.key()));
    let mut query = ChangeQuery {
        from_s: i64::MIN,
        to_s: i64::MAX,
        limit: 6,
        looked_at: 4,
        ..ChangeQuery::default()
    };
    let mut times = Vec::new();
    loop {
        let portion = joined.changes(&query).unwrap();
        times.extend(portion.changes.iter().map(|change| change.at_s));
        query.before = portion.next;
        if portion.next.is_none() {
            break;
        }
    }
    assert_eq!(times, (100..120).rev().collect::<Vec<_>>());
    assert!(matches!(joined.take_over(), Err(StateError::NotHeld)));
    joined.pause_site(site.id, true).unwrap();
    assert!(joined.sites().unwrap()[0].paused);
    assert_eq!(joined.check().unwrap(), Vec::<String>::new());
}
