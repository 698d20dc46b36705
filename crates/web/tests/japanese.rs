//! Every sentence that the program can write in English has a Japanese translation.

use crate::support;

use std::{net::IpAddr, time::Duration};

use nenrin_fetch::{AddressKind, FetchFailure, Waiting};
use nenrin_lang::{IncidentDetail, Lang};
use nenrin_revisit::{CollectingWindow, PathInterval, PolicySpec};
use nenrin_state::{Incident, IncidentKind, PruneRule, SiteId};
use nenrin_urls::CanonicalUrl;
use support::{NOW_S, World};

#[track_caller]
fn assert_translated(noted: &str) {
    let translated = Lang::Ja.translate(noted);
    assert_ne!(translated, noted, "there is no Japanese for it");
}

#[test]
fn why_a_request_brought_nothing() {
    let host = || "e.com".to_owned();
    let reason = || "Connection refused (os error 111)".to_owned();
    let address = IpAddr::from([10, 0, 0, 1]);
    let mut failures = vec![
        FetchFailure::Request { reason: reason() },
        FetchFailure::Dns { host: host(), reason: reason() },
        FetchFailure::Connect { host: host(), port: 80, reason: reason() },
        FetchFailure::Tls { host: host(), reason: reason() },
        FetchFailure::Closed { host: host() },
        FetchFailure::Protocol { host: host(), reason: reason() },
        FetchFailure::HeadTooLarge { host: host(), limit_bytes: 1, limit_headers: 1 },
        FetchFailure::BodyTooLarge { host: host(), limit: 1, announced: Some(2) },
        FetchFailure::BodyTooLarge { host: host(), limit: 1, announced: None },
        FetchFailure::BodyCut { host: host(), received: 1, reason: reason() },
    ];
    for kind in [AddressKind::Loopback, AddressKind::Private, AddressKind::Multicast] {
        failures.push(FetchFailure::AddressRefused { host: host(), address, kind });
    }
    for waiting in [
        Waiting::Dns,
        Waiting::Connect,
        Waiting::Handshake,
        Waiting::Head,
        Waiting::Body,
        Waiting::BodyRate,
        Waiting::Exchange,
    ] {
        failures.push(FetchFailure::Timeout { host: host(), waiting, after: Duration::ZERO });
    }
    for failure in failures {
        assert_translated(&failure.to_string());
    }
}

#[test]
fn what_was_typed_wrongly() {
    let wrong = |typed: &str, error: Option<String>| match error {
        Some(error) => assert_translated(&error),
        None => panic!("{typed} is not wrong"),
    };
    for typed in
        ["", "htp:/x", "https//x", "://x", "http://", "a.b:0", "a.b:99999", "u:p@a.b", "a b.c"]
    {
        wrong(typed, CanonicalUrl::parse_typed(typed).err().map(|e| e.to_string()));
    }
    let long = format!("http://e.com/{}", "a".repeat(5_000));
    wrong(&long, CanonicalUrl::parse_typed(&long).err().map(|e| e.to_string()));
    for typed in ["weekly", "every(x)", "aimd(d=0d,r=2)"] {
        wrong(typed, typed.parse::<PolicySpec>().err().map(|e| e.to_string()));
    }
    for typed in ["news", "/a", "/a soon", "/a min=2d max=1d", "/a min=x"] {
        wrong(typed, typed.parse::<PathInterval>().err().map(|e| e.to_string()));
    }
    for typed in ["Mars/Olympus", "mon-fri 25:00-06:00"] {
        wrong(typed, typed.parse::<CollectingWindow>().err().map(|e| e.to_string()));
    }
    for typed in ["30d", "x,month", "30d,never", "30d,day,month"] {
        wrong(typed, typed.parse::<PruneRule>().err());
    }
}

#[tokio::test]
async fn incidents_causes_and_reasons_are_shown_in_japanese() {
    let world = World::lived_in();
    let incident = |id: &str, event, detail: IncidentDetail| Incident {
        id: id.into(),
        event,
        at_s: NOW_S,
        over_s: None,
        site: Some(SiteId(1)),
        name: "paper".into(),
        detail: Some(detail),
        cause: String::new(),
    };
    world
        .state
        .keep_incidents(&[
            incident(
                "1",
                IncidentKind::Overflow,
                IncidentDetail::Overflow { server: "https://e.com".into(), percent: 250 },
            ),
            incident(
                "2",
                IncidentKind::SignalLost,
                IncidentDetail::SignalLost("https://e.com/feed".into()),
            ),
            incident(
                "3",
                IncidentKind::Failing,
                IncidentDetail::Visit {
                    url: "https://e.com/<b>".into(),
                    status: 500,
                    reason: None,
                },
            ),
            incident(
                "4",
                IncidentKind::Quota,
                IncidentDetail::Quota {
                    site: Some("paper".into()),
                    bytes: 2_000,
                    quota_bytes: 1_000,
                },
            ),
        ])
        .unwrap();
    for path in ["/", "/sites/1", "/feed.atom"] {
        let page = world.get_as(path, "nenrin_lang=ja").await.body;
        for expected in
            ["間隔を 2.50 倍に", "応答しなくなりました", "：HTTP 500", "1.00 kB のうち 2.00 kB"]
        {
            assert!(page.contains(expected), "{expected} in {path}: {page}");
        }
        assert!(!page.contains("<b>:") && !page.contains("cannot keep up"), "{path}");
    }
}
