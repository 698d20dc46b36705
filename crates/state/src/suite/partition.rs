//! Partitions, epochs and mail. Each law gets a way to make the state of a partition.

use nenrin_lang::Hint;
use nenrin_urls::CanonicalUrl;

use super::{NOW_S, conditions, found, url, visit};
use crate::{
    Announced, Change, DuePage, Mail, Need, NumberedMail, Outcome, PartitionId, Partitioning,
    Received, RoundEnd, Schedule, SiteConditions, State, StateError, VersionRow, VisitCommit,
};

const TWO: Partitioning = Partitioning { count: 2 };
const HERE: PartitionId = PartitionId(0);
const THERE: PartitionId = PartitionId(1);

/// A URL of a partition.
fn url_in(partition: PartitionId, path: &str) -> CanonicalUrl {
    let mut servers = (0..).map(|n| url(&format!("http://s{n}.com{path}")));
    servers.find(|url| TWO.of(&url.server()) == partition).unwrap()
}

fn continuous(tops: Vec<CanonicalUrl>) -> SiteConditions {
    let schedule = Schedule::Continuous(Default::default());
    SiteConditions { tops, schedule, ..conditions("http://e.com/") }
}

/// Both partitions of an archive with one site that has a top page in each.
fn pair<S: State>(make: &dyn Fn(Partitioning, PartitionId) -> S) -> (S, S, DuePage) {
    let (here, there) = (make(TWO, HERE), make(TWO, THERE));
    let site = continuous(vec![url_in(HERE, "/"), url_in(THERE, "/")]);
    let id = here.add_site("e", &site, NOW_S).unwrap().id;
    assert_eq!(there.add_site("e", &site, NOW_S).unwrap().id, id);
    assert_eq!(here.page(&url_in(THERE, "/")).unwrap(), None, "each has its own servers");
    let round = here.begin_round(id, NOW_S).unwrap();
    let due = here.load_round(&round, None, 9).unwrap().remove(0);
    (here, there, due)
}

fn deliver<S: State>(from: &S, to: &S) -> Vec<NumberedMail> {
    let ((_, sender), (_, receiver)) = (from.partition(), to.partition());
    let mail = from.outbox(receiver, to.mail_read(sender).unwrap(), 99).unwrap();
    let taken = Change::MailTaken { from: sender, mail: mail.clone() };
    to.commit(&[taken]).unwrap();
    mail
}

pub fn a_page_of_another_partition_leaves_as_mail_and_is_taken_in_once<S: State>(
    make: &dyn Fn(Partitioning, PartitionId) -> S,
) {
    let (here, there, due) = pair(make);
    let mut seen = visit(&due, NOW_S + 1, Outcome::Changed);
    let far = url_in(THERE, "/far");
    seen.discovered = vec![found(url_in(HERE, "/near").as_str(), 2), found(far.as_str(), 2)];
    seen.links = Some(vec![far.clone()]);
    let committed = here.commit(&[Change::Visit(Box::new(seen.clone()))]).unwrap();
    assert_eq!(committed.new_pages.len(), 1);
    // What is known to be sent is not sent with every visit.
    here.commit(&[Change::Visit(Box::new(seen))]).unwrap();
    let mail = deliver(&here, &there);
    let page = found(far.as_str(), 2);
    let sent = Mail::Found { site: due.site, at_s: NOW_S + 1, page };
    assert_eq!(mail, [NumberedMail { number: 1, mail: sent }]);
    assert_eq!(there.mail_read(HERE).unwrap(), 1);
    assert_eq!(there.page(&far).unwrap().unwrap().due_s, Some(NOW_S + 1));

    // Delivered again by someone who did not know: nothing happens twice.
    let pages = there.sites().unwrap()[0].counts.pages;
    there.commit(&[Change::MailTaken { from: HERE, mail }]).unwrap();
    assert_eq!(there.sites().unwrap()[0].counts.pages, pages);
    assert_eq!(deliver(&here, &there), []);

    // What was delivered may go, and numbers go on.
    here.commit(&[Change::MailDelivered { to: THERE, upto: 1 }]).unwrap();
    assert_eq!(here.outbox(THERE, 0, 9).unwrap(), []);
    let mut next = visit(&due, NOW_S + 2, Outcome::Changed);
    next.discovered = vec![found(url_in(THERE, "/next").as_str(), 2)];
    here.commit(&[Change::Visit(Box::new(next))]).unwrap();
    assert_eq!(deliver(&here, &there)[0].number, 2);
}

pub fn hints_and_top_pages_reach_the_partition_that_has_the_page<S: State>(
    make: &dyn Fn(Partitioning, PartitionId) -> S,
) {
    let (here, there, due) = pair(make);
    let top = url_in(THERE, "/");
    let known = there.load_due(&crate::DueQuery {
        until_s: NOW_S,
        per_server: 9,
        limit: 9,
        ..Default::default()
    });
    let mut seen = visit(&known.unwrap().pages[0], NOW_S + 1, Outcome::Changed);
    seen.update.due_s = Some(NOW_S + 1_000_000);
    there.commit(&[Change::Visit(Box::new(seen))]).unwrap();

    let hint = Announced {
        at_s: NOW_S + 10,
        pages: vec![(top.clone(), NOW_S + 5)],
        odds_percent: 100,
        hint: Hint::AnnouncedBy("its sitemap".into()),
    };
    let mut moved = visit(&due, NOW_S + 11, Outcome::Changed);
    moved.new_tops = vec![url_in(THERE, "/moved")];
    let visits = [Change::Announced(hint), Change::Visit(Box::new(moved.clone()))];
    here.commit(&visits).unwrap();
    here.commit(&[Change::Visit(Box::new(moved))]).unwrap();
    assert_eq!(deliver(&here, &there).len(), 2, "a top page is new once");
    assert_eq!(there.page(&top).unwrap().unwrap().due_s, Some(NOW_S + 10));
    let tops = |state: &S| state.sites().unwrap().remove(0).conditions.tops;
    assert_eq!(tops(&there), tops(&here));
    assert!(there.page(&url_in(THERE, "/moved")).unwrap().is_some());
    assert_eq!(there.outbox(HERE, 0, 9).unwrap(), [], "nothing comes back");
}

pub fn who_lost_a_partition_commits_nothing<S: State>(
    make: &dyn Fn(Partitioning, PartitionId) -> S,
) {
    let (here, _, due) = pair(make);
    let first = here.take_over().unwrap();
    let seen = |at_s| [Change::Visit(Box::new(visit(&due, at_s, Outcome::Changed)))];
    here.commit_under(first, &seen(NOW_S + 1)).unwrap();
    let second = here.take_over().unwrap();
    assert!(second > first);
    let error = here.commit_under(first, &seen(NOW_S + 2)).unwrap_err();
    assert!(matches!(error, StateError::Superseded { .. }) && !error.is_transient(), "{error}");
    assert_eq!(here.page(&due.page.url).unwrap().unwrap().visited_s, Some(NOW_S + 1));
    here.commit_under(second, &seen(NOW_S + 3)).unwrap();
}

pub fn a_visit_of_another_partitions_page_is_refused<S: State>(
    make: &dyn Fn(Partitioning, PartitionId) -> S,
) {
    let (here, _, due) = pair(make);
    let row = VersionRow { ..super::row(1, NOW_S) };
    let far = VisitCommit::in_packs(due.site, url_in(THERE, "/far"), row);
    let error = here.commit(&[Change::Visit(Box::new(far))]).unwrap_err();
    assert!(matches!(error, StateError::OtherPartition { .. }), "{error}");
}

pub fn a_single_partition_sends_no_mail<S: State>(make: &dyn Fn(Partitioning, PartitionId) -> S) {
    let state = make(Partitioning::SINGLE, HERE);
    let (_, due) = super::begun(&state);
    let mut seen = visit(&due, NOW_S + 1, Outcome::Changed);
    let pages = [HERE, THERE].map(|partition| found(url_in(partition, "/").as_str(), 2));
    seen.discovered = pages.to_vec();
    let new = state.commit(&[Change::Visit(Box::new(seen))]).unwrap().new_pages;
    assert_eq!(new.len(), 2);
    for partition in [HERE, THERE] {
        assert_eq!(state.outbox(partition, 0, 9).unwrap(), []);
    }
}

pub fn shares_of_a_score_leave_with_new_links_and_add_up_where_they_arrive<S: State>(
    make: &dyn Fn(Partitioning, PartitionId) -> S,
) {
    let (here, there, due) = pair(make);
    let (near, far) = (url_in(HERE, "/near"), url_in(THERE, "/far"));
    let linking = |at_s, far: &[&CanonicalUrl]| {
        let urls: Vec<CanonicalUrl> =
            [&near].into_iter().chain(far.iter().copied()).cloned().collect();
        let discovered = urls.iter().map(|url| found(url.as_str(), 2)).collect();
        // A link out of the site gets no share.
        let links = urls.into_iter().chain([url_in(THERE, "/outside")]).collect();
        let gives_micros = Some(900_000);
        let seen = visit(&due, at_s, Outcome::Changed);
        VisitCommit { discovered, links: Some(links), gives_micros, ..seen }
    };
    let commit = |visit: VisitCommit| here.commit(&[Change::Visit(Box::new(visit))]).unwrap();
    let linked = commit(linking(NOW_S + 1, &[&far])).linked;
    assert_eq!((linked[0].targets.len(), linked[0].links), (1, 2), "one here and one there");
    let shares = |mail: &[NumberedMail]| {
        let micros = mail.iter().filter_map(|one| match &one.mail {
            Mail::Share { url, micros } => Some((url.clone(), *micros)),
            _ => None,
        });
        micros.collect::<Vec<_>>()
    };
    let mail = deliver(&here, &there);
    assert_eq!(shares(&mail), [(far.clone(), 450_000)]);
    let nth = there.page(&far).unwrap().unwrap().nth;
    let got = |kept, micros| vec![Received { nth, micros, kept }];
    assert_eq!(there.received().unwrap(), got(0, 450_000));
    there.commit(&[Change::MailTaken { from: HERE, mail }]).unwrap();
    assert_eq!(there.received().unwrap(), got(0, 450_000), "once");

    // The same links give nothing again; a further one does.
    commit(linking(NOW_S + 2, &[&far]));
    assert_eq!(shares(&deliver(&here, &there)), []);
    let further = url_in(THERE, "/further");
    commit(linking(NOW_S + 3, &[&far, &further]));
    assert_eq!(shares(&deliver(&here, &there)), [(further, 300_000)]);
    let first = linked[0].nth;
    assert_eq!(here.links(&[first]).unwrap()[0].far, 2);

    let kept =
        Change::Order { bytes: vec![1], received: vec![(nth, 450_000)], handed_on: Vec::new() };
    there.commit(&[kept]).unwrap();
    assert_eq!(there.received().unwrap()[0], got(450_000, 450_000)[0]);

    // What a page hands on later goes to all its links.
    let later = Change::Order { bytes: vec![1], received: Vec::new(), handed_on: vec![(first, 7)] };
    here.commit(&[later]).unwrap();
    assert_eq!(deliver(&here, &there).len(), 2);
    let micros: Vec<u64> = there.received().unwrap().iter().map(|page| page.micros).collect();
    assert_eq!(micros, [450_007, 300_007]);
}

pub fn a_round_waits_until_the_one_before_has_ended_everywhere<S: State>(
    make: &dyn Fn(Partitioning, PartitionId) -> S,
) {
    let (here, there, due) = pair(make);
    let end = |state: &S, at_s| {
        let round = state.begin_round(due.site, at_s).unwrap().id;
        let end = RoundEnd { round, site: due.site, at_s: at_s + 1, skips: None };
        state.commit(&[Change::RoundEnd(end)]).unwrap();
    };
    assert!(here.may_begin_round(due.site).unwrap(), "its own goes on");
    end(&here, NOW_S);
    assert!(!here.may_begin_round(due.site).unwrap());
    assert!(there.may_begin_round(due.site).unwrap(), "it has not begun its first");
    deliver(&here, &there);
    end(&there, NOW_S + 2);
    assert!(there.may_begin_round(due.site).unwrap(), "both have ended their first");
    assert!(!here.may_begin_round(due.site).unwrap(), "it does not know yet");
    deliver(&there, &here);
    assert!(here.may_begin_round(due.site).unwrap());
}

pub fn visits_are_divided_by_what_was_said_first_in_every_partition<S: State>(
    make: &dyn Fn(Partitioning, PartitionId) -> S,
) {
    let (here, there, due) = pair(make);
    let need = |state: &S, milli_visits| {
        let need = Need { milli_visits, pages: 4 };
        state.commit(&[Change::Need { site: Some(due.site), day: 7, need }]).unwrap();
    };
    let of = |state: &S, site| {
        let needs = state.division(site, 7).unwrap().unwrap().needs;
        needs.iter().map(|need| need.milli_visits).collect::<Vec<_>>()
    };
    let needs = |state: &S| of(state, Some(due.site));
    need(&here, 3_000);
    assert_eq!(needs(&here), [1, 1], "not known of all");
    need(&there, 1_000);
    need(&there, 9_000);
    assert_eq!(deliver(&there, &here).len(), 1);
    deliver(&here, &there);
    assert_eq!((needs(&here), needs(&there)), (vec![3_000, 1_000], vec![3_000, 1_000]));
    let part = |state: &S| state.division(Some(due.site), 7).unwrap().unwrap().part_of(20);
    assert_eq!(part(&here) + part(&there), 20);
    assert_eq!(needs(&here).len(), 2);
    let single = make(Partitioning::SINGLE, HERE);
    assert_eq!(single.division(Some(due.site), 7).unwrap(), None);

    // The budget of the whole archive is divided apart from those of sites.
    for (state, milli_visits) in [(&here, 5_000), (&there, 2_000)] {
        let need = Need { milli_visits, pages: 9 };
        state.commit(&[Change::Need { site: None, day: 7, need }]).unwrap();
    }
    deliver(&there, &here);
    assert_eq!((of(&here, None), needs(&here)), (vec![5_000, 2_000], vec![3_000, 1_000]));
}
