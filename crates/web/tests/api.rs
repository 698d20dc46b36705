//! The API against its own document, the feed and the metrics.
#![expect(clippy::unwrap_used, reason = "what cannot be asked must fail the test")]

use crate::support;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use nenrin_state::{Incident, Removal, SiteId};
use serde_json::{Value, json};
use support::{Answer, World, conditions};

impl World {
    async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost:8080")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        self.send(request).await
    }

    async fn document(&self) -> Value {
        serde_json::from_str(&self.get("/api/v1/openapi.json").await.body).unwrap()
    }
}

/// Whether a value fits a schema: the part of JSON Schema that the document uses.
fn fits(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        let schema = &document["components"]["schemas"][name];
        return if schema.is_null() {
            Err(format!("no schema {name}"))
        } else {
            fits(document, schema, value)
        };
    }
    if let Some(wanted) = schema.get("const") {
        return if wanted == value { Ok(()) } else { Err(format!("{value} is not {wanted}")) };
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| fits(document, choice, value).is_ok()).count();
        return if fitting == 1 {
            Ok(())
        } else {
            Err(format!("{value} fits {fitting} of a choice"))
        };
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Err(format!("a schema without a type: {schema}")),
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if !kinds.contains(&kind) {
        return Err(format!("{value} is {kind}, not {kinds:?}"));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        return Err(format!("{value} is none of {allowed:?}"));
    }
    if let Some(items) = value.as_array() {
        for item in items {
            fits(document, &schema["items"], item)?;
        }
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            return Err(format!("{name} is missing in {value}"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            fits(document, schema, value).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(())
}

#[test]
fn the_checker_can_refuse() {
    let document =
        json!({"components": {"schemas": {"A": {"type": "array", "items": {"type": "integer"}}}}});
    let a = json!({"$ref": "#/components/schemas/A"});
    assert!(fits(&document, &a, &json!([1, 2])).is_ok());
    for wrong in [json!({}), json!(["x"]), json!(null)] {
        assert!(fits(&document, &a, &wrong).is_err());
    }
    let record = json!({"type": "object", "required": ["x"], "properties": {"x": {"type": ["string", "null"]}}});
    assert!(fits(&document, &record, &json!({"x": null})).is_ok());
    assert!(fits(&document, &record, &json!({})).is_err());
}

/// Conditions that say something about everything.
fn full_conditions() -> Value {
    let mut all = json!(conditions("https://e.com/"));
    all["schedule"] = json!({"continuous": {
        "policy": "auto(fair=0.5)", "min_s": 3600, "max_s": 8_640_000, "visits_per_day": 500,
        "paths": ["/news/* min=1h max=1d"],
    }});
    all["windows"] = json!(["sat,sun 22:00-06:00 Asia/Tokyo"]);
    all["hints"] = json!({"signals": false, "schedule_by": "significant"});
    all["keeping"] = json!({"quota_bytes": 1_000_000, "prune": "30d,day:90d,month"});
    all["robots"] = json!({"ignore": {"reason": "our own site"}});
    all["pages"] = json!({"include": ["/a/*"], "exclude": ["print=1"]});
    all["headers"] = json!(["Accept-Language: en"]);
    all["ignored"] = json!([{"pages": "/*", "selector": "div.ad", "nth": 2}]);
    all["labels"] = json!({"group": "g", "tags": ["a", "b"]});
    all
}

/// A request that must succeed for every operation of the document.
fn example(id: &str) -> (&'static str, Value) {
    let new = json!({"name": "new", "conditions": conditions("https://new.org/")});
    match id {
        "addSite" => ("", new),
        "setSite" => ("", full_conditions()),
        "renameSite" => ("", json!({"name": "another name"})),
        "copySite" => ("", json!({"name": "a copy", "tops": ["https://copy.org/"]})),
        "previewSite" => ("", json!({"url": "https://e.com/", "allow_private": true})),
        "removeSite" => ("", json!({"how": "hide", "reason": "it closed"})),
        "restoreSite" => ("", json!({"reason": "it opened again"})),
        "addWatch" | "setWatch" => {
            ("", json!({"url": "https://e.com/", "part": {"words": "x"}, "on": {"below": 5}}))
        }
        "page" => ("?url=https://e.com/", Value::Null),
        "versions" => ("?url=https://e.com/&limit=1", Value::Null),
        "visits" => ("?site=1&outcome=failed&limit=5", Value::Null),
        "changes" => ("?site=1&kind=changed&from=2023-01-01&to=2024-01-01&parts=true", Value::Null),
        "siteBetween" => ("?from=2023-11-01&to=2023-11-14&limit=2", Value::Null),
        "siteDays" => ("?from=2023-01-01&to=2024", Value::Null),
        "sitePages" => ("?prefix=/a/&limit=1", Value::Null),
        _ => ("", Value::Null),
    }
}

#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let world = World::lived_in();
    let document = world.document().await;
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            // They need an index: tests/end_to_end/searching.rs asks them.
            if matches!(id, "search" | "blame") {
                continue;
            }
            let (query, body) = example(id);
            let uri = format!("{}{query}", path.replace("{id}", "1"));
            // Only a removed site can be restored, and the other way round.
            let removed = (id == "restoreSite").then_some(Removal::Hide);
            world.state.remove_site(SiteId(1), removed, "a test", support::NOW_S).unwrap();
            let answer = world.json(&method.to_uppercase(), &uri, &body).await;
            let response = &operation["responses"][answer.status.as_str()];
            assert!(answer.status.is_success(), "{id}: {} {}", answer.status, answer.body);
            assert!(!response.is_null(), "{id} answers {} undocumented", answer.status);
            let schema = &response["content"]["application/json"]["schema"];
            if schema.is_null() {
                let content = if id == "siteExport" { "WARC" } else { "" };
                assert_eq!(answer.body, content, "{id}");
            } else {
                let value: Value = serde_json::from_str(&answer.body).unwrap();
                fits(&document, schema, &value).unwrap_or_else(|e| panic!("{id}: {e}"));
            }
            seen += 1;
        }
    }
    assert!(seen >= 24, "only {seen} operations");
}

#[tokio::test]
async fn every_operation_refuses_as_the_document_says() {
    let world = World::lived_in();
    let document = world.document().await;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let mut bad = Vec::new();
            if path.contains("{id}") {
                bad.push((path.replace("{id}", "99"), example(id).1));
                bad.push((path.replace("{id}", "%3Cx%3E"), example(id).1));
            }
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            if !body["$ref"].is_null() {
                bad.push((path.replace("{id}", "1"), json!({"name": 1, "<script>": true})));
            }
            for parameter in operation["parameters"].as_array().unwrap() {
                let is_number =
                    parameter["schema"]["type"] == "integer" && parameter["in"] == "query";
                if is_number {
                    let name = parameter["name"].as_str().unwrap();
                    bad.push((format!("{}?{name}=x", path.replace("{id}", "1")), Value::Null));
                }
            }
            for (uri, body) in bad {
                let answer = world.json(&method.to_uppercase(), &uri, &body).await;
                assert!(answer.status.is_client_error(), "{id} {uri}: {}", answer.status);
                let response = &operation["responses"][answer.status.as_str()];
                let schema = &response["content"]["application/json"]["schema"];
                let value: Value = serde_json::from_str(&answer.body).unwrap();
                fits(&document, schema, &value).unwrap_or_else(|e| panic!("{id} {uri}: {e}"));
            }
        }
    }
}

#[tokio::test]
async fn conditions_come_back_as_they_were_sent_and_bad_ones_change_nothing() {
    let world = World::lived_in();
    let sent = full_conditions();
    let answer = world.json("PUT", "/api/v1/sites/1", &sent).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let shown: Value = serde_json::from_str(&world.get("/api/v1/sites/1").await.body).unwrap();
    assert_eq!(shown["conditions"], sent);
    for (pointer, bad) in [
        ("/depth", json!(0)),
        ("/schedule/continuous/visits_per_day", json!(0)),
        ("/schedule/continuous/policy", json!("weekly")),
        ("/schedule/continuous/paths", json!(["news soon"])),
        ("/windows", json!(["fri 22:00-06:00 Mars/Olympus"])),
        ("/robots/ignore/reason", json!(" ")),
    ] {
        let mut conditions = sent.clone();
        *conditions.pointer_mut(pointer).unwrap() = bad;
        let answer = world.json("PUT", "/api/v1/sites/1", &conditions).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{pointer}");
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(error["error"].as_str().unwrap().len() > 20, "{error}");
    }
    assert_eq!(json!(world.state.sites().unwrap()[0].conditions), sent);
}

#[tokio::test]
async fn what_the_document_does_not_allow_is_refused() {
    let world = World::lived_in();
    for bad in [
        "/api/v1/visits?limit=0",
        "/api/v1/visits?limit=1001",
        "/api/v1/visits?limit=",
        "/api/v1/visits?outcome=",
        "/api/v1/visits?before=-1",
        "/api/v1/sites/1/days?to=",
        "/api/v1/sites/1/export.warc.gz?from=soon",
        "/api/v1/versions?url=https://e.com/&url=https://e.com/",
    ] {
        assert_eq!(world.get(bad).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
    let mut listed = full_conditions();
    listed["keeping"] = json!([null, null]);
    let answer = world.json("PUT", "/api/v1/sites/1", &listed).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "a list is not an object");
    let pause = "/api/v1/sites/1/pause";
    for (body, status) in [
        (json!([null]), StatusCode::BAD_REQUEST),
        (json!({}), StatusCode::NO_CONTENT),
        (Value::Null, StatusCode::NO_CONTENT),
    ] {
        assert_eq!(world.json("POST", pause, &body).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn deleting_asks_for_the_name_once_more() {
    let world = World::lived_in();
    let path = "/api/v1/sites/1/remove";
    let mut wanted = json!({"how": "delete", "reason": "asked to"});
    assert_eq!(world.json("POST", path, &wanted).await.status, StatusCode::BAD_REQUEST);
    wanted["confirm"] = json!("paper");
    assert_eq!(world.json("POST", path, &wanted).await.status, StatusCode::NO_CONTENT);
    assert_eq!(*world.control.asked.lock().unwrap(), ["remove 1 Delete asked to", "changed"]);
}

#[tokio::test]
async fn what_was_learnt_of_a_server_is_shown_without_its_inner_memory() {
    let world = World::lived_in();
    let top = nenrin_urls::CanonicalUrl::parse("https://e.com/").unwrap();
    let server = world.state.page(&top).unwrap().unwrap().id.server();
    let note = |name: &str, value: Value| {
        let (name, value) = (name.to_owned(), value.to_string());
        nenrin_state::Change::Note(nenrin_state::ServerNote { server, name, value })
    };
    let source = json!({"trust": {"precision": 0.5}, "claims": [[1, 2]]});
    let notes = [
        note("signals", json!({"sources": {"https://e.com/s.xml": source}})),
        note("traps", json!({"refused": {"long-url": {"links": 7}}, "counted": {"1": {}}})),
        note("noise", json!({"blocks": {}})),
    ];
    world.state.commit(&notes).unwrap();
    let body = world.get("/api/v1/sites/1/learnt").await.body;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        answer[0]["notes"],
        json!({
            "signals": {"sources": {"https://e.com/s.xml": {"trust": {"precision": 0.5}}}},
            "traps": {"refused": {"long-url": {"links": 7}}},
        })
    );
}

#[tokio::test]
async fn a_change_needs_json_so_that_no_foreign_page_can_make_it() {
    let world = World::lived_in();
    for mime in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let request = Request::post("/api/v1/sites/1/pause")
            .header(header::HOST, "localhost:8080")
            .header(header::CONTENT_TYPE, mime)
            .body(Body::empty())
            .unwrap();
        assert_eq!(world.send(request).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    assert!(!world.state.sites().unwrap()[0].paused);
}

#[tokio::test]
async fn lists_are_read_on_with_next() {
    let world = World::lived_in();
    for list in [
        "/api/v1/visits?limit=2",
        "/api/v1/versions?url=e.com&limit=1",
        "/api/v1/sites/1/pages?limit=1",
    ] {
        let cursor = if list.contains("pages") { "after" } else { "before" };
        let (mut path, mut items, mut rounds) = (list.to_owned(), 0, 0);
        loop {
            let value: Value = serde_json::from_str(&world.get(&path).await.body).unwrap();
            items += value["items"].as_array().unwrap().len();
            rounds += 1;
            match value["next"].as_str() {
                Some(next) => path = format!("{list}&{cursor}={next}"),
                None => break,
            }
        }
        let expected = if list.contains("visits") {
            7
        } else if list.contains("pages") {
            4
        } else {
            2
        };
        assert_eq!(items, expected, "{list}");
        assert!(rounds > 2, "{list}");
    }
}

#[tokio::test]
async fn the_feed_lists_changes_and_escapes_what_came_from_the_web() {
    let world = World::new();
    world.live("<b>&\"\u{1}", "https://e.com/?a=1&b=<x>");
    let answer = world.get("/feed.atom?site=1").await;
    assert!(answer.header("content-type").starts_with("application/atom+xml"));
    assert_eq!(answer.body.matches("<entry>").count(), 3, "new, changed, gone");
    assert!(
        answer.body.contains("http://localhost:8081/web/20231105221320/https://e.com/?a=1&amp;b=")
    );
    assert!(answer.body.contains("&lt;b&gt;&amp;&quot;\u{fffd}"));
    assert!(!answer.body.contains("<b>") && !answer.body.contains("<x>"));
    let opened = answer.body.matches("<entry>").count() + answer.body.matches("<feed").count();
    assert_eq!(
        opened,
        answer.body.matches("</entry>").count() + answer.body.matches("</feed>").count()
    );
}

#[tokio::test]
async fn incidents_are_in_the_feed_on_the_pages_and_in_the_api() {
    let world = World::lived_in();
    world.state.keep_incidents(&[support::incident()]).unwrap();
    let feed = world.get("/feed.atom").await.body;
    assert_eq!(feed.matches("<entry>").count(), 4);
    let newest = feed.split("<entry>").nth(1).unwrap();
    assert!(newest.contains("urn:nenrin:incident:7-1"), "the newest comes first");
    assert!(feed.contains("<category term=\"signal-lost\"/>"));
    assert!(feed.contains("a sitemap or feed no longer answers") && !feed.contains("<script>"));
    assert!(!world.get("/feed.atom?site=2").await.body.contains("incident"));
    for page in ["/", "/sites/1"] {
        let body = world.get(page).await.body;
        assert!(body.contains("a sitemap or feed no longer answers"), "{page}");
        assert!(body.contains("&lt;script&gt;alert(5)"), "{page}");
    }
    world.state.end_incidents(&[support::incident().id], support::NOW_S).unwrap();
    assert!(!world.get("/").await.body.contains("no longer answers"), "it is over");
    assert!(world.get("/feed.atom").await.body.contains("no longer answers"), "but it happened");
    let other = Incident { id: "8-1".into(), ..support::incident() };
    world.state.keep_incidents(&[other]).unwrap();
    let incidents: Value =
        serde_json::from_str(&world.get("/api/v1/incidents").await.body).unwrap();
    assert_eq!(
        (&incidents[0]["event"], &incidents[0]["over_s"]),
        (&json!("signal-lost"), &Value::Null)
    );
    assert_eq!(incidents[1]["over_s"], support::NOW_S);
    let document = world.document().await;
    let schema = json!({"$ref": "#/components/schemas/Incidents"});
    fits(&document, &schema, &incidents).unwrap();
}

#[tokio::test]
async fn figures_are_there_for_prometheus() {
    let world = World::lived_in();
    let answer = world.get("/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "nenrin_sites 1",
        "nenrin_site_visits_total{site=\"1\"} 7",
        "nenrin_site_versions_total{site=\"1\"} 2",
        "nenrin_store_bytes{kind=\"html\",form=\"stored\"} 400",
        "nenrin_fetches_under_way 0",
    ] {
        assert!(answer.body.lines().any(|l| l == line), "{line} in {}", answer.body);
    }
}
