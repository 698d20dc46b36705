use std::sync::Mutex;

use nenrin_state::{
    CrawlState as _, Outcome, PartitionState as _, Registry as _, ServerId, ServerPace,
    SiteConditions, SqliteState, VisitCommit,
};
use nenrin_urls::CanonicalUrl;

use super::*;

#[expect(clippy::disallowed_methods, reason = "the clock of a test")]
fn clock() -> Instant {
    Instant::now()
}

/// What is reported of some jobs: how many visits each commit has, or that it was a load.
fn reported(
    pause: Option<Duration>,
    jobs: impl FnOnce(&dyn Fn(StateJob), &dyn Fn(u64) -> StateJob),
) -> Vec<String> {
    let state = SqliteState::in_memory(3_600).unwrap();
    let top = CanonicalUrl::parse("http://e.com/").unwrap();
    let site = state.add_site("e", &SiteConditions::new(vec![top]), 0).unwrap();
    let round = state.begin_round(site.id, 0).unwrap();
    let page = state.load_round(&round, None, 1).unwrap().remove(0).page.id;
    let work = StateWork {
        epoch: state.take_over().unwrap(),
        state: Arc::new(state),
        pause,
        clock,
        now_s: || 0,
        is_stopping: Arc::default(),
        is_given_up: Arc::default(),
    };
    let (sender, queue) = mpsc::channel();
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = said.clone();
    let thread = std::thread::spawn(move || {
        work.serve(&queue, |answer| {
            heard.lock().unwrap().push(match answer.unwrap() {
                Event::Committed { tickets, .. } => format!("{} visits", tickets.len()),
                Event::NewLoaded { .. } => "new".to_owned(),
                _ => "load".to_owned(),
            });
        });
    });
    let visit = |n: u64| {
        let visit = VisitCommit::new(page, site.id, n as i64, Outcome::Same);
        let change = Change::Visit(Box::new(visit));
        StateJob::Commit { ticket: Some(Ticket(n)), change, share: None }
    };
    jobs(&|job| sender.send(job).unwrap(), &visit);
    drop(sender);
    thread.join().unwrap();
    Arc::into_inner(said).unwrap().into_inner().unwrap()
}

fn asked() -> StateJob {
    let pace = ServerPace {
        server: ServerId(1),
        asked_ms: 1,
        resting_until_ms: None,
        strikes: 0,
        stretch_percent: 100,
    };
    StateJob::Commit { ticket: None, change: Change::Pace(pace), share: None }
}

#[test]
fn where_commits_are_dear_they_wait_for_each_other_and_loads_do_not() {
    let pause = Duration::from_millis(400);
    let said = reported(Some(pause), |send, visit| {
        // A note alone waits for a visit, and visits for others.
        send(asked());
        std::thread::sleep(2 * pause);
        send(visit(1));
        std::thread::sleep(pause / 4);
        send(visit(2));
        send(visit(3));
        send(StateJob::Load(Load::New(Vec::new())));
        send(StateJob::Load(Load::Sites));
        // Enough visits wait for no more.
        (4..4 + VISITS_TOGETHER as u64).for_each(|n| send(visit(n)));
        std::thread::sleep(pause / 4);
        send(asked());
    });
    let many = format!("{VISITS_TOGETHER} visits");
    assert_eq!(said, ["1 visits", "new", "2 visits", "load", &many, "0 visits"]);
}

#[test]
fn where_they_are_not_a_change_waits_for_nothing() {
    let said = reported(None, |send, visit| {
        for n in 1..=3 {
            send(visit(n));
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    assert_eq!(said, ["1 visits"; 3]);
}
