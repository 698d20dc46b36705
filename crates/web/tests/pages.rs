//! Every page and form, requested without sockets.

use crate::support;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use nenrin_state::{
    Change, Outcome, Removal, RobotsPolicy, Schedule, ScheduleBy, ServerNote, SiteId,
};
use nenrin_urls::Scope;
use nenrin_web::{UnderWay, WebOptions};
use support::{NOW_S, World, site_fields, url};

/// Pages that a person can open in a filled archive.
const PAGES: [&str; 20] = [
    "/",
    "/?q=paper&sort=versions&down=1",
    "/now",
    "/sites/new",
    "/sites/1",
    "/sites/1?note=paused",
    "/sites/1/edit",
    "/sites/1/remove",
    "/sites/1/restore",
    "/removals",
    "/lab",
    "/sites/1/pages",
    "/sites/1/schedule",
    "/sites/1/pages?prefix=%2Fa%2F",
    "/sites/1/pages?list=1",
    "/visits",
    "/visits?site=1&outcome=failed",
    "/page?url=https%3A%2F%2Fe.com%2F",
    "/page?url=e.com",
    "/assets/style.css",
];

const FORMS: [&str; 12] = [
    "/demo",
    "/sites",
    "/sites/new/look",
    "/sites/1",
    "/sites/1/look",
    "/sites/1/collect",
    "/sites/1/pause",
    "/sites/1/resume",
    "/sites/1/remove",
    "/sites/1/restore",
    "/login",
    "/logout",
];

#[tokio::test]
async fn every_page_answers_with_its_guards() {
    let world = World::lived_in();
    for page in PAGES {
        let answer = world.get(page).await;
        assert_eq!(answer.status, StatusCode::OK, "{page}: {}", answer.body);
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{page}: {policy}");
        assert!(!policy.contains("unsafe"), "{page}");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn no_page_carries_inline_script_or_style() {
    let world = World::lived_in();
    for page in PAGES.iter().filter(|page| !page.starts_with("/assets")) {
        let body = world.get(page).await.body;
        for inline in [" style=\"", " onclick", " onerror", "<style", "javascript:"] {
            assert!(!body.contains(inline), "{page} has {inline}");
        }
        assert_eq!(
            body.matches("<script").count(),
            body.matches("<script src=\"/assets/app.js\"").count()
        );
        assert!(!body.contains("http://fonts") && !body.contains("//cdn"));
    }
}

#[tokio::test]
async fn an_empty_archive_greets_and_offers_a_site_and_the_demo() {
    let world = World::new();
    let answer = world.get("/").await;
    assert!(answer.body.contains("Welcome to Nenrin"));
    assert!(answer.body.contains("action=\"/sites/new\""));
    assert!(answer.body.contains("Try the demo site"));
    let (cookie, token) = answer.session();
    world.live("demo", "http://127.0.0.1:1/");
    assert_eq!(world.post_as("/demo", &cookie, &token, &[]).await.location(), "/sites/1?note=demo");
    assert_eq!(*world.control.asked.lock().unwrap(), ["demo"]);
}

#[tokio::test]
async fn an_address_alone_registers_a_site_and_begins_collecting() {
    let world = World::new();
    let answer = world.submit("/sites/new", "/sites", &site_fields("example.org", "")).await;
    assert_eq!(answer.location(), "/sites/1?note=added");
    let site = world.state.sites().unwrap().remove(0);
    assert_eq!((site.name.as_str(), site.created_s), ("example.org", NOW_S));
    assert_eq!(site.conditions.tops, [url("https://example.org/")]);
    assert_eq!(*world.control.asked.lock().unwrap(), ["changed", "collect 1"]);
    assert!(world.get("/sites/1?note=added").await.body.contains("collecting has begun"));
}

#[tokio::test]
async fn bad_input_gets_its_message_beside_the_field_and_loses_nothing() {
    let world = World::new();
    let mut fields = site_fields("ftp://x<y>", "Näme \"quoted\"");
    for field in &mut fields {
        match field.0 {
            "depth" => field.1 = "deep <b>",
            "delay" => field.1 = "soon",
            "more_tops" => field.1 = "ok.org\nnot a url",
            "max_pages" => field.1 = "-3",
            "robots" => field.1 = "ignore",
            "scope" => field.1 = "prefix",
            "period" => field.1 = "continuous",
            "policy" => field.1 = "other",
            "policy_text" => field.1 = "weekly<",
            "visits_per_day" => field.1 = "many",
            "min" => field.1 = "short",
            "max" => field.1 = "long",
            "paths" => field.1 = "/a min=1h\nnews",
            "windows" => field.1 = "\nat night",
            "schedule_by" => field.1 = "mood",
            "quota" => field.1 = "much",
            "prune" => field.1 = "some",
            _ => {}
        }
    }
    let answer = world.submit("/sites/new", "/sites", &fields).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    for field in [
        "url",
        "depth",
        "delay",
        "more_tops",
        "max_pages",
        "robots_reason",
        "policy_text",
        "visits_per_day",
        "min",
        "max",
        "paths",
        "windows",
        "schedule_by",
        "quota",
        "prune",
    ] {
        assert!(answer.body.contains(&format!("id=\"{field}-error\"")), "{field}");
    }
    for kept in [
        "value=\"ftp://x&lt;y&gt;\"",
        "value=\"Näme &quot;quoted&quot;\"",
        "value=\"deep &lt;b&gt;\"",
        "ok.org\nnot a url</textarea>",
        "value=\"prefix\" selected",
        "value=\"ignore\" selected",
        "value=\"other\" selected",
        "value=\"weekly&lt;\"",
        "value=\"many\"",
        "value=\"short\"",
        "value=\"long\"",
        "value=\"much\"",
        "value=\"some\"",
        "/a min=1h\nnews</textarea>",
        // A browser does not show the first line break, so there are two.
        ">\n\nat night</textarea>",
    ] {
        assert!(answer.body.contains(kept), "{kept} lost in {}", answer.body);
    }
    assert!(answer.body.contains("<details class=\"fold\" open"), "the folded errors are shown");
    assert!(world.state.sites().unwrap().is_empty());
}

#[tokio::test]
async fn a_choice_that_was_not_offered_is_said_beside_its_field() {
    let world = World::lived_in();
    let choices =
        ["period", "scope", "robots", "rounds_by", "schedule_by", "policy", "other_period", "name"];
    for choice in choices {
        let mut fields = site_fields("https://g.com/", "new");
        let long = "n".repeat(101);
        let wrong = if choice == "name" { long.as_str() } else { "<mood>" };
        for field in &mut fields {
            match field.0 {
                "period" if choice == "other_period" => field.1 = "other",
                "period" if choice == "policy" => field.1 = "continuous",
                name if name == choice => field.1 = wrong,
                _ => {}
            }
        }
        for (form, path) in [("/sites/new", "/sites"), ("/sites/1/edit", "/sites/1")] {
            if (form, choice) == ("/sites/1/edit", "name") {
                continue;
            }
            let answer = world.submit(form, path, &fields).await;
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{choice} {form}");
            let error = format!("id=\"{choice}-error\"");
            assert!(answer.body.contains(&error), "{choice} in {}", answer.body);
            assert!(answer.body.contains("value=\"https://g.com/\""), "{choice}");
        }
    }
    assert_eq!(world.state.sites().unwrap().len(), 1);
}

#[tokio::test]
async fn a_date_that_is_none_is_said_beside_its_field_and_kept() {
    let world = World::lived_in();
    let answer = world.get("/sites/1/browse?at=yester%22day").await;
    assert_eq!(answer.location(), "/sites/1?at=yester%22day#at");
    let page = world.get("/sites/1?at=yester%22day").await.body;
    assert!(page.contains("id=\"at-error\"") && page.contains("value=\"yester&quot;day\""));
    assert!(!world.get("/sites/1").await.body.contains("at-error"));
}

#[tokio::test]
async fn a_taken_name_is_said_beside_the_name() {
    let world = World::lived_in();
    let answer = world.submit("/sites/new", "/sites", &site_fields("example.org", "paper")).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        answer.body.contains("id=\"name-error\"") && answer.body.contains("value=\"example.org\"")
    );
}

#[tokio::test]
async fn a_first_look_shows_what_was_found_and_keeps_the_form() {
    let world = World::new();
    let answer = world.submit("/sites/new", "/sites/new/look", &site_fields("e.com", "n")).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.body.contains("A first look") && answer.body.contains("value=\"e.com\""));
    assert!(answer.body.contains("&lt;script&gt;alert('robots')"), "{}", answer.body);
    assert!(!answer.body.contains("<script>") && !answer.body.contains("<img"));
    assert_eq!(*world.control.asked.lock().unwrap(), ["preview https://e.com/"]);
    assert!(world.state.sites().unwrap().is_empty());
}

#[tokio::test]
async fn conditions_are_changed_and_come_back() {
    let world = World::lived_in();
    let mut fields = site_fields("https://e.com/", "renamed");
    for field in &mut fields {
        match field.0 {
            "period" => field.1 = "other",
            "other_period" => field.1 = "36h",
            "scope" => field.1 = "domain",
            "robots" => field.1 = "ignore",
            "robots_reason" => field.1 = "our own site",
            "windows" => field.1 = "mon-fri 22:00-06:00 Asia/Tokyo\nsat,sun",
            "schedule_by" => field.1 = "significant",
            _ => {}
        }
    }
    fields.retain(|(name, _)| *name != "signals");
    let answer = world.submit("/sites/1/edit", "/sites/1", &fields).await;
    assert_eq!(answer.location(), "/sites/1?note=saved");
    let site = world.state.sites().unwrap().remove(0);
    assert_eq!(site.name, "renamed");
    assert_eq!(site.conditions.schedule, Schedule::Rounds { period_s: 129_600 });
    assert_eq!(site.conditions.scope, Scope::Domain);
    assert_eq!(site.conditions.robots, RobotsPolicy::Ignore { reason: "our own site".into() });
    assert_eq!(site.conditions.windows.len(), 2);
    assert!(!site.conditions.hints.signals);
    assert_eq!(site.conditions.hints.schedule_by, ScheduleBy::Significant);
    let form = world.get("/sites/1/edit").await.body;
    assert!(form.contains("value=\"36h\"") && form.contains("value=\"our own site\""));
    let page = world.get("/sites/1").await.body;
    assert!(page.contains("22:00-06:00 Asia/Tokyo") && page.contains("only significant changes"));
}

#[tokio::test]
async fn pages_own_schedules_are_set_in_the_form_and_kept_when_it_is_saved_again() {
    let world = World::lived_in();
    let mut fields = site_fields("https://e.com/", "ignored");
    for field in &mut fields {
        match field.0 {
            "period" => field.1 = "continuous",
            "policy" => field.1 = "every(7d)",
            "visits_per_day" => field.1 = "500",
            "min" => field.1 = "2h",
            "max" => field.1 = "90d",
            "paths" => field.1 = "/news/* min=1h max=1d\r\n/old/ min=30d",
            _ => {}
        }
    }
    world.submit("/sites/1/edit", "/sites/1", &fields).await.location();
    let conditions = world.state.sites().unwrap().remove(0).conditions;
    let settings = conditions.schedule.continuous().unwrap();
    assert_eq!(settings.policy.to_string(), "every(7d)");
    assert_eq!((settings.min_s, settings.max_s), (Some(7_200), 90 * 86_400));
    assert_eq!((settings.visits_per_day, settings.paths.len()), (Some(500), 2));
    let form = world.get("/sites/1/edit").await.body;
    assert!(form.contains("value=\"every(7d)\" selected"));
    assert!(form.contains("/news/* min=1h max=1d\n/old/ min=30d</textarea>"));
}

#[tokio::test]
async fn buttons_pause_resume_and_collect() {
    let world = World::lived_in();
    for (button, note, paused) in
        [("pause", "paused", true), ("resume", "resumed", false), ("collect", "collect", false)]
    {
        let answer = world.submit("/sites/1", &format!("/sites/1/{button}"), &[]).await;
        assert_eq!(answer.location(), format!("/sites/1?note={note}"));
        assert_eq!(world.state.sites().unwrap()[0].paused, paused);
    }
    assert_eq!(*world.control.asked.lock().unwrap(), ["changed", "changed", "collect 1"]);
}

#[tokio::test]
async fn a_process_that_only_serves_shows_no_buttons_for_collecting_and_says_why() {
    let world = World::with(WebOptions::new([7; 32]), true);
    assert!(!world.get("/").await.body.contains("demo site"));
    world.live("paper", "https://e.com/");
    assert!(!world.get("/sites/1").await.body.contains("Collect now"));
    let answer = world.submit("/sites/1", "/sites/1/collect", &[]).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.body.contains("nenrin run"));
}

#[tokio::test]
async fn a_form_without_its_token_does_nothing() {
    let world = World::lived_in();
    let (cookie, token) = world.get("/sites/new").await.session();
    for form in FORMS {
        for (cookie, token) in [(cookie.as_str(), ""), (cookie.as_str(), "x"), ("", token.as_str())]
        {
            let answer = world.post_as(form, cookie, token, &site_fields("f.com", "f")).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{form}");
        }
    }
    assert_eq!(world.state.sites().unwrap().len(), 1);
    assert!(world.control.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_form_sent_from_another_site_does_nothing_even_with_the_token() {
    let world = World::lived_in();
    let (cookie, token) = world.get("/sites/new").await.session();
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:8081"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let request = Request::post("/sites/1/pause")
            .header(header::HOST, "localhost:8080")
            .header(header::COOKIE, &cookie)
            .header(name, value)
            .body(Body::from(format!("token={token}")))
            .unwrap();
        assert_eq!(world.send(request).await.status, StatusCode::FORBIDDEN, "{name}: {value}");
    }
    assert!(!world.state.sites().unwrap()[0].paused);
}

#[tokio::test]
async fn a_foreign_name_that_resolves_to_us_is_refused() {
    let world = World::lived_in();
    let ask =
        |host: &str| Request::get("/").header(header::HOST, host).body(Body::empty()).unwrap();
    for ours in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "a.localhost"] {
        assert_eq!(world.send(ask(ours)).await.status, StatusCode::OK, "{ours}");
    }
    for foreign in ["rebound.evil.example:8080", "localhost.evil.example", "<script>"] {
        let answer = world.send(ask(foreign)).await;
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{foreign}");
        assert!(!answer.body.contains("<script>"));
    }
}

#[tokio::test]
async fn a_hostile_site_shows_nothing_but_text() {
    let world = World::new();
    let name = "\"><script>alert('name')</script><img src=x onerror=alert(2)>";
    world.live(name, "https://e.com/\"'><script>alert('top')</script>?<svg/onload=alert(3)>");
    world.control.under_way.lock().unwrap().push(UnderWay {
        url: "https://e.com/<script>alert('now')</script>".into(),
        server: "https://e.com".into(),
        since_s: NOW_S,
        phase: "receiving",
    });
    let page = format!(
        "/page?url={}",
        support_encoded("https://e.com/\"'><script>alert('top')</script>?<svg/onload=alert(3)>")
    );
    for path in [
        "/",
        "/now",
        "/sites/1",
        "/sites/1/edit",
        "/sites/1/pages",
        "/sites/1/pages?list=1",
        "/visits",
        &page,
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        for live in ["<script>", "<img", "onerror=alert(2)>", "<svg/", "javascript:"] {
            assert!(!answer.body.contains(live), "{path} shows {live}: {}", answer.body);
        }
        assert!(answer.body.contains("alert("), "{path} shows it as text");
    }
}

fn support_encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[tokio::test]
async fn the_site_page_shows_all_sections() {
    let world = World::lived_in();
    let body = world.get("/sites/1").await.body;
    for part in
        ["Rounds", "Problems by cause", "Versions, day by day", "Browse the site as of a date"]
    {
        assert!(body.contains(part), "{part}");
    }
    let day = "http://localhost:8081/web/20231104235959/https://e.com/";
    assert!(body.contains(day), "the calendar leads to replay");
    assert_eq!(
        body.matches("<a href=\"http://localhost:8081/web/").count(),
        2,
        "one link a day with versions"
    );
}

#[tokio::test]
async fn browsing_leads_to_the_top_page_as_of_the_date() {
    let world = World::lived_in();
    let answer = world.get("/sites/1/browse?at=2023-11-10").await;
    assert_eq!(answer.location(), "http://localhost:8081/web/20231110235959/https://e.com/");
    for bad in ["", "yesterday", "2023-99-99"] {
        let answer = world.get(&format!("/sites/1/browse?at={bad}")).await;
        assert_eq!(answer.location(), format!("/sites/1?at={bad}#at"));
    }
}

#[tokio::test]
async fn a_page_shows_its_versions_with_ways_to_replay_and_diff() {
    let world = World::lived_in();
    let body = world.get("/page?url=https%3A%2F%2Fe.com%2F").await.body;
    assert!(body.contains("http://localhost:8081/web/20231104221320/https://e.com/"));
    assert!(body.contains("http://localhost:8081/web/20231105221320/https://e.com/"));
    assert!(
        body.contains("http://localhost:8081/diff/20231104221320/20231105221320/https://e.com/")
    );
    let (newer, older) = (NOW_S, NOW_S - 100);
    let chosen =
        world.get(&format!("/diff?url=https%3A%2F%2Fe.com%2F&from={newer}&to={older}")).await;
    assert_eq!(
        chosen.location(),
        "http://localhost:8081/diff/20231114221140/20231114221320/https://e.com/"
    );
    assert_eq!(
        world.get("/page?url=https%3A%2F%2Funknown.org").await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(world.get("/page?url=").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_long_timeline_is_read_in_portions() {
    let world = World::lived_in();
    let round = world.state.begin_round(SiteId(1), NOW_S).unwrap();
    let pages = world.state.load_round(&round, None, 9).unwrap();
    let due = pages.iter().find(|d| d.page.url == url("https://e.com/")).unwrap();
    for n in 0..250 {
        let at_s = NOW_S - 86_400 + n;
        let mut one = support::visit(due, at_s, Outcome::Changed);
        one.version = Some(support::version(10 + n as u64, at_s));
        world.state.commit(&[nenrin_state::Change::Visit(Box::new(one))]).unwrap();
    }
    let mut path = "/page?url=https%3A%2F%2Fe.com%2F".to_owned();
    let mut seen = 0;
    for _ in 0..9 {
        let body = world.get(&path).await.body;
        seen += body.matches("name=\"from\"").count();
        match body.split("rel=\"next\" href=\"").nth(1) {
            Some(rest) => path = rest.split('"').next().unwrap().replace("&amp;", "&"),
            None => break,
        }
    }
    assert_eq!(seen, 252);
}

#[tokio::test]
async fn the_log_is_filtered_and_paged() {
    let world = World::lived_in();
    let all = world.get("/visits").await.body;
    assert_eq!(all.matches("<tr>").count(), 8);
    let failed = world.get("/visits?outcome=failed&site=1").await.body;
    assert_eq!(failed.matches("<tr>").count(), 2);
    assert!(failed.contains("alert('failed')") && !failed.contains("alert('gone')"));
    assert!(world.get("/visits?site=99").await.body.contains("No matching visits"));
    assert_eq!(
        world.get("/visits?before=x&outcome=what&site=y").await.body.matches("<tr>").count(),
        8
    );
}

#[tokio::test]
async fn pages_are_shown_as_a_tree_and_as_a_list() {
    let world = World::lived_in();
    let top = world.get("/sites/1/pages").await.body;
    assert!(top.contains("class=\"directory\"") && top.contains("img.png") && !top.contains("a/x"));
    let below = world.get("/sites/1/pages?prefix=%2Fa%2F").await.body;
    assert!(below.contains(">x</bdi>") && below.contains(">y</bdi>"));
    let list = world.get("/sites/1/pages?list=1").await.body;
    assert!(list.contains("/a/x") && list.contains("/img.png"));
    assert!(world.get("/sites/1/pages?prefix=zzz").await.body.contains("Nothing here"));
}

#[tokio::test]
async fn sites_are_sorted_and_searched() {
    let world = World::lived_in();
    world.live("Aardvark", "https://a.org/");
    let order = |body: &str| body.find("Aardvark").unwrap() < body.find(">paper<").unwrap();
    assert!(order(&world.get("/").await.body));
    assert!(!order(&world.get("/?sort=name&down=1").await.body));
    let found = world.get("/?q=a.ORG").await.body;
    assert!(found.contains("Aardvark") && !found.contains(">paper<"));
    assert!(world.get("/?q=%3Cscript%3E").await.body.contains("No site matches"));
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let world = World::lived_in();
    for path in ["/nothing", "/sites/99", "/sites/x", "/sites/1/nothing", "/assets/../Cargo.toml"] {
        assert_eq!(world.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(world.get("/sites/99").await.body.contains("There is no site number 99."));
    let in_japanese = world.get_as("/sites/99", "nenrin_lang=ja").await.body;
    assert!(in_japanese.contains("お探しのものは") && in_japanese.contains("番号 99 のサイトは"));
}

#[tokio::test]
async fn japanese_is_spoken_by_preference_and_by_choice() {
    let world = World::new();
    let request = Request::get("/")
        .header(header::HOST, "localhost")
        .header(header::ACCEPT_LANGUAGE, "ja,en;q=0.5")
        .body(Body::empty())
        .unwrap();
    let answer = world.send(request).await;
    assert!(answer.body.contains("<html lang=\"ja\">") && answer.body.contains("ようこそ"));
    let chosen = world.get("/lang?to=ja&back=%2Fvisits").await;
    assert_eq!(chosen.location(), "/visits");
    assert!(chosen.header("set-cookie").starts_with("nenrin_lang=ja"));
    assert!(world.get_as("/", "nenrin_lang=ja").await.body.contains("ようこそ"));
    assert_eq!(world.get("/lang?to=xx&back=https%3A%2F%2Fevil.example").await.location(), "/");
}

#[tokio::test]
async fn without_a_password_there_is_nothing_to_log_in_to() {
    let world = World::lived_in();
    assert_eq!(world.get("/login?back=%2Fvisits").await.location(), "/visits");
    assert_eq!(world.get("/login?back=%2F%2Fevil.example").await.location(), "/");
}

#[tokio::test]
async fn a_form_too_large_is_refused() {
    let world = World::lived_in();
    let (cookie, token) = world.get("/sites/new").await.session();
    let long = "x".repeat(300_000);
    let answer = world.post_as("/sites", &cookie, &token, &[("url", &long)]).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn removing_asks_which_removal_is_meant_and_why() {
    let world = World::lived_in();
    let body = world.get("/sites/1/remove").await.body;
    assert!(body.contains("value=\"hide\">") && body.contains("value=\"deny\" disabled"), "{body}");
    for (fields, field) in [
        (vec![("reason", "x")], "Choose one of these"),
        (vec![("removal", "hide"), ("reason", " ")], "reason-error"),
        (
            vec![("removal", "delete"), ("reason", "<asked>"), ("confirm", "papier")],
            "confirm-error",
        ),
        (vec![("removal", "delete")], "confirm-error"),
        (vec![("removal", "delete")], "reason-error\" role"),
        (vec![], "reason-error\" role"),
    ] {
        let answer = world.submit("/sites/1/remove", "/sites/1/remove", &fields).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.body.contains(field), "{field}");
    }
    assert!(world.control.asked.lock().unwrap().is_empty());
    let fields = [("removal", "delete"), ("reason", "asked to"), ("confirm", "paper")];
    let answer = world.submit("/sites/1/remove", "/sites/1/remove", &fields).await;
    assert_eq!(answer.location(), "/?note=removed");
    assert_eq!(*world.control.asked.lock().unwrap(), ["remove 1 Delete asked to", "changed"]);
}

#[tokio::test]
async fn what_was_removed_is_listed_with_its_reason_and_given_back() {
    let world = World::lived_in();
    let body = world.get("/removals").await.body;
    assert!(body.contains("No sites are removed"), "{body}");
    world.state.remove_site(SiteId(1), Some(Removal::Deny), "<asked>", NOW_S).unwrap();
    let overview = world.get("/").await.body;
    assert!(overview.contains("href=\"/removals\""), "the way back is in sight: {overview}");
    let list = world.get("/removals").await.body;
    assert!(list.contains("&lt;asked&gt;") && list.contains("href=\"/sites/1/restore\""));
    let answer = world.submit("/sites/1/restore", "/sites/1/restore", &[("reason", "  ")]).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(answer.body.contains("reason-error"));
    let fields = [("reason", "it was a mistake")];
    let answer = world.submit("/sites/1/restore", "/sites/1/restore", &fields).await;
    assert_eq!(answer.location(), "/sites/1?note=restored");
    assert_eq!(world.state.sites().unwrap()[0].removed, None);
    assert!(world.get("/removals").await.body.contains("it was a mistake"));
    let again = world.submit("/sites/1/restore", "/sites/1/restore", &fields).await;
    assert_eq!(again.status, StatusCode::NOT_FOUND, "nothing is left to undo");
    world.state.remove_site(SiteId(1), Some(Removal::Delete), "gone", NOW_S).unwrap();
    assert!(!world.get("/removals").await.body.contains("/restore\""), "deleted for good");
    let late = world.submit("/sites/1/restore", "/sites/1/restore", &fields).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn the_schedule_shows_what_is_expected_and_what_was_learnt_as_text() {
    let world = World::lived_in();
    let mut conditions = world.state.sites().unwrap()[0].conditions.clone();
    conditions.schedule = Schedule::Continuous(Default::default());
    world.state.set_site(SiteId(1), &conditions, NOW_S).unwrap();
    let server = world.state.site_servers(SiteId(1), 1).unwrap()[0].id;
    let note = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        Change::Note(ServerNote { server, name, value })
    };
    let sources = r#"{"sources": {"https://e.com/<script>.xml": {"entries": 7, "trust": {"precision": 0.25, "odds": 3.0}}}}"#;
    let traps =
        r#"{"refused": {"deep-path": {"links": 12, "example": "/<script>/a", "last_s": 0}}}"#;
    world.state.commit(&[note("signals", sources), note("traps", traps)]).unwrap();
    let page = world.get("/sites/1/schedule").await;
    assert_eq!(page.status, StatusCode::OK);
    for shown in ["auto", "25%", "× 3.0", "20 directories deep", "12", "&lt;script&gt;.xml"] {
        assert!(page.body.contains(shown), "{shown} in {}", page.body);
    }
    assert!(!page.body.contains("<script>"));
}
