use nenrin_state::{Change, ServerNote, ServerPace, SiteConditions, SqliteState};

use super::{message::incident, *};

const NOW_S: i64 = 1_800_000_000;

fn visit(id: i64, outcome: Outcome, status: u16) -> VisitRow {
    VisitRow {
        id,
        at_s: 1_700_000_000 + id,
        url: CanonicalUrl::parse(&format!("http://e.com/{id}")).unwrap(),
        site: SiteId(1),
        outcome,
        status,
        reason: None,
        elapsed_ms: 1,
        received_bytes: 1,
    }
}

#[test]
fn a_quota_is_reported_once_until_there_is_room_again() {
    let mut watch = Watch::default();
    let of = |site: Option<u32>| Reached {
        site: site.map(|id| (SiteId(id), format!("s{id}"))),
        bytes: 2_000,
        quota_bytes: 1_000,
    };
    let reported = watch.quotas(&[of(None), of(Some(3))], NOW_S);
    assert_eq!(reported.len(), 2);
    assert_eq!((reported[1].event, reported[1].name.as_str()), (Happening::Quota, "s3"));
    assert!(reported[1].detail.as_ref().unwrap().to_string().contains("2.00 kB of 1.00 kB"));
    assert!(watch.quotas(&[of(None), of(Some(3))], NOW_S).is_empty());
    assert!(watch.quotas(&[of(None)], NOW_S).is_empty());
    assert_eq!(watch.quotas(&[of(None), of(Some(3))], NOW_S).len(), 1);
}

#[test]
fn changes_are_told_together_and_trouble_once_until_it_is_over() {
    let mut watch = Watch::default();
    let mut reported = |visits: &[VisitRow]| -> Vec<(Happening, usize)> {
        watch.messages(visits, &[]).iter().map(|m| (m.event, m.count)).collect()
    };
    let changed = |id| visit(id, Outcome::Changed, 200);
    let failed = |id| visit(id, Outcome::Failed, 500);
    let forbidden = |id| visit(id, Outcome::Failed, 403);
    assert_eq!(reported(&[changed(1), changed(2)]), [(Happening::Changed, 2)]);
    assert_eq!(reported(&[failed(3), failed(4)]), []);
    assert_eq!(reported(&[failed(5), failed(6)]), [(Happening::Failing, 1)]);
    assert_eq!(reported(&[failed(7), failed(8)]), []);
    assert_eq!(reported(&[visit(9, Outcome::Same, 200)]), []);
    assert_eq!(reported(&[forbidden(10), forbidden(11), forbidden(12)]), [(Happening::Blocked, 1)]);
    assert_eq!(watch.ended, ["5-1"]);
    watch.messages(&[visit(13, Outcome::Same, 200)], &[]);
    assert_eq!(watch.ended, ["5-1", "12-1"]);
}

#[test]
fn a_change_is_no_incident() {
    let mut watch = Watch::default();
    let failed = |id| visit(id, Outcome::Failed, 500);
    let reported =
        watch.messages(&[visit(1, Outcome::Changed, 200), failed(2), failed(3), failed(4)], &[]);
    let all: Vec<Incident> =
        reported.iter().filter_map(|message| incident(message, String::new())).collect();
    assert_eq!((reported.len(), all.len()), (2, 1));
    assert_eq!((all[0].event, all[0].over_s), (IncidentKind::Failing, None));
    assert_eq!(all[0].detail.as_ref().unwrap().to_string(), "http://e.com/4: HTTP 500");
}

/// A state with a site, its page and its sitemap, which was read.
fn state_with_sitemap() -> (Box<dyn State>, CanonicalUrl) {
    let state: Box<dyn State> = Box::new(SqliteState::in_memory(3600).unwrap());
    let sitemap = CanonicalUrl::parse("http://e.com/sitemap.xml").unwrap();
    let conditions = SiteConditions::new(vec![sitemap.clone()]);
    let site = state.add_site("e", &conditions, 0).unwrap();
    state.begin_round(site.id, 0).unwrap();
    let server = state.site_servers(site.id, 1).unwrap()[0].id;
    let value = format!(r#"{{"sources": {{"{sitemap}": {{"read_s": 7}}}}}}"#);
    let note = ServerNote { server, name: "signals".into(), value };
    state.commit(&[Change::Note(note)]).unwrap();
    (state, sitemap)
}

#[test]
fn a_lost_sitemap_is_reported_once_until_it_answers_again() {
    let (state, sitemap) = state_with_sitemap();
    let mut watch = Watch::default();
    let mut reported = |outcome, url: &CanonicalUrl| {
        let visits = [VisitRow { url: url.clone(), ..visit(1, outcome, 404) }];
        watch.signals(&*state, &visits, &[]).unwrap().len()
    };
    assert_eq!(reported(Outcome::Gone, &CanonicalUrl::parse("http://e.com/x").unwrap()), 0);
    assert_eq!(reported(Outcome::Gone, &sitemap), 1);
    assert_eq!(reported(Outcome::Gone, &sitemap), 0);
    assert_eq!(reported(Outcome::Same, &sitemap), 0);
    assert_eq!(reported(Outcome::Failed, &sitemap), 0);
    assert_eq!(reported(Outcome::Refused, &sitemap), 0);
    assert_eq!(reported(Outcome::Failed, &sitemap), 1);
    assert_eq!(reported(Outcome::Gone, &sitemap), 0);
    assert_eq!(reported(Outcome::Same, &sitemap), 0);
    assert_eq!(watch.ended.len(), 2, "both times it is known that it is over");
}

#[test]
fn an_overflow_is_reported_once_until_it_is_over() {
    let (state, _) = state_with_sitemap();
    let server = state.site_servers(SiteId(1), 1).unwrap()[0].id;
    let mut watch = Watch::default();
    let mut reported = |stretch_percent: u32| {
        let pace =
            ServerPace { server, asked_ms: 0, resting_until_ms: None, strikes: 0, stretch_percent };
        state.commit(&[Change::Pace(pace)]).unwrap();
        watch.overflow(&*state, NOW_S).unwrap()
    };
    assert!(reported(100).is_empty());
    let first = reported(160);
    assert_eq!((first.len(), first[0].event), (1, Happening::Overflow));
    let detail = first[0].detail.as_ref().unwrap().to_string();
    assert_eq!(detail, "http://e.com cannot keep up: intervals × 1.60");
    assert!(reported(200).is_empty());
    assert!(reported(100).is_empty());
    assert_eq!(reported(130).len(), 1);
    assert_eq!(watch.ended, [first[0].id.clone()]);
}
#[test]
fn incidents_outlive_the_process_and_their_end_is_noticed() {
    let (state, sitemap) = state_with_sitemap();
    let mut watch = Watch::default();
    let failed: Vec<VisitRow> = (5..8).map(|id| visit(id, Outcome::Failed, 403)).collect();
    let lost = [VisitRow { url: sitemap.clone(), ..visit(9, Outcome::Gone, 404) }];
    let mut messages = watch.messages(&failed, &[]);
    messages.extend(watch.signals(&*state, &lost, &[]).unwrap());
    let kept: Vec<Incident> =
        messages.iter().filter_map(|one| incident(one, watch.cause_of(&one.id))).collect();
    state.keep_incidents(&kept).unwrap();
    drop(watch);

    let mut next = Watch::after(&*state).unwrap();
    assert_eq!(next.messages(&failed, &[]).len(), 0, "it was reported before the restart");
    assert_eq!(next.signals(&*state, &lost, &[]).unwrap().len(), 0);
    next.messages(&[visit(20, Outcome::Same, 200)], &[]);
    let answers = [VisitRow { url: sitemap, ..visit(21, Outcome::Same, 200) }];
    next.signals(&*state, &answers, &[]).unwrap();
    next.look_and_keep(&*state, &[], NOW_S).unwrap();
    let all = state.incidents().unwrap();
    assert_eq!((all.len(), all[1].event), (2, IncidentKind::Blocked));
    assert!(all.iter().all(|one| one.over_s.is_some()), "{all:?}");
    assert!(Watch::after(&*state).unwrap().open.is_empty());
}

#[test]
fn failing_parts_of_other_servers_are_no_trouble_of_the_site() {
    let conditions =
        SiteConditions::new(vec![CanonicalUrl::parse("http://site.example/").unwrap()]);
    let state = SqliteState::in_memory(3600).unwrap();
    let site = nenrin_state::Registry::add_site(&state, "s", &conditions, 0).unwrap();
    let mut watch = Watch::default();
    let failed: Vec<VisitRow> = (1..9).map(|id| visit(id, Outcome::Failed, 500)).collect();
    assert!(watch.messages(&failed, std::slice::from_ref(&site)).is_empty(), "e.com is another's");
    let own = |id, outcome| VisitRow {
        url: CanonicalUrl::parse("http://site.example/a").unwrap(),
        ..visit(id, outcome, 500)
    };
    let failed: Vec<VisitRow> = (11..14).map(|id| own(id, Outcome::Failed)).collect();
    assert_eq!(watch.messages(&failed, std::slice::from_ref(&site)).len(), 1);
    watch.messages(&[visit(15, Outcome::Same, 200)], std::slice::from_ref(&site));
    assert!(watch.ended.is_empty(), "another's answer does not end it");
    watch.messages(&[own(16, Outcome::Same)], std::slice::from_ref(&site));
    assert_eq!(watch.ended.len(), 1);
}
