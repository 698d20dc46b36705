//! Who may log in, and what they may do.
#![expect(clippy::unwrap_used, reason = "what cannot be asked must fail the test")]

use crate::support;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use nenrin_web::{WebOptions, hash_password};
use support::{World, site_fields};

fn locked() -> WebOptions {
    WebOptions {
        admin_hash: Some(hash_password("right", [1; 16]).unwrap()),
        reader_hash: Some(hash_password("look", [2; 16]).unwrap()),
        ..WebOptions::new([7; 32])
    }
}

impl World {
    fn locked() -> Self {
        let world = Self::with(locked(), false);
        world.live("paper", "https://e.com/");
        world
    }

    /// Logs in and returns the session's cookie.
    async fn log_in(&self, password: &str) -> String {
        let answer =
            self.submit("/login", "/login", &[("password", password), ("back", "/visits")]).await;
        assert_eq!(answer.location(), "/visits");
        answer.header("set-cookie").split(';').next().unwrap().to_owned()
    }

    async fn with_password(&self, path: &str, basic: &str) -> StatusCode {
        let request = Request::get(path)
            .header(header::HOST, "archive.example.org")
            .header(header::AUTHORIZATION, format!("Basic {basic}"))
            .body(Body::empty())
            .unwrap();
        self.send(request).await.status
    }
}

#[tokio::test]
async fn without_a_password_nothing_is_shown() {
    let world = World::locked();
    for page in ["/", "/sites/1", "/visits", "/page?url=e.com", "/now", "/sites/new"] {
        let answer = world.get(page).await;
        assert!(answer.location().starts_with("/login?back=%2F"), "{page}");
        assert!(!answer.body.contains("paper"));
    }
    for program in ["/api/v1/sites", "/metrics", "/feed.atom", "/api/v1/openapi.json"] {
        assert_eq!(world.get(program).await.status, StatusCode::UNAUTHORIZED, "{program}");
    }
    let login = world.get("/login").await;
    assert_eq!(login.status, StatusCode::OK);
    assert!(!login.body.contains("paper"));
    assert_eq!(world.get("/assets/style.css").await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_administrator_changes_and_the_reader_reads() {
    let world = World::locked();
    let admin = world.log_in("right").await;
    let page = world.get_as("/sites/new", &admin).await;
    let token =
        page.body.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let added = world.post_as("/sites", &admin, token, &site_fields("f.org", "")).await;
    assert_eq!(added.location(), "/sites/2?note=added");

    let reader = world.log_in("look").await;
    let page = world.get_as("/sites/1", &reader).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.body.contains("Collect now") && !page.body.contains("/sites/1/pause"));
    let token =
        page.body.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    for form in ["/sites/1/pause", "/sites", "/demo", "/sites/1"] {
        let answer = world.post_as(form, &reader, token, &[]).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{form}");
    }
    for form in ["/sites/new", "/sites/1/edit", "/sites/1/remove"] {
        assert_eq!(world.get_as(form, &reader).await.status, StatusCode::FORBIDDEN, "{form}");
    }
    assert!(!world.state.sites().unwrap()[0].paused);
    let out = world.post_as("/logout", &reader, token, &[]).await;
    assert_eq!(out.location(), "/");
    assert!(world.get_as("/", &reader).await.location().starts_with("/login"));
}

#[tokio::test]
async fn a_new_session_is_made_when_someone_logs_in() {
    let world = World::locked();
    let (before, token) = world.get("/login").await.session();
    let answer = world
        .post_as("/login", &before, &token, &[("password", "right"), ("back", "//evil")])
        .await;
    assert_eq!(answer.location(), "/");
    let cookie = answer.header("set-cookie");
    assert!(
        !cookie.starts_with(&before)
            && cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Lax")
    );
    assert!(
        world.get_as("/", &before).await.location().starts_with("/login"),
        "the old one stays outside"
    );
}

#[tokio::test]
async fn wrong_passwords_are_refused_and_then_slowed_down() {
    let world = World::locked();
    for _ in 0..4 {
        let answer = world.submit("/login", "/login", &[("password", "<script>")]).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(!answer.body.contains("<script>"));
    }
    let answer = world.submit("/login", "/login", &[("password", "right")]).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn whoever_has_to_wait_hears_so_without_a_turn() {
    let world = World::locked();
    for _ in 0..4 {
        world.submit("/login", "/login", &[("password", "guess")]).await;
    }
    let (cookie, token) = world.get("/login").await.session();
    let fields = [("password", "guess")];
    // Many more than may wait for their turn.
    let guesses = (0..100).map(|_| world.post_as("/login", &cookie, &token, &fields));
    for answer in futures_util::future::join_all(guesses).await {
        assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(answer.body.contains("Too many wrong passwords"), "{}", answer.body);
    }
}

#[tokio::test]
async fn programs_send_the_password_each_time() {
    let world = World::locked();
    let (right, wrong) = ("YW55OnJpZ2h0", "YW55Ondyb25n");
    for path in ["/api/v1/sites", "/metrics", "/feed.atom"] {
        assert_eq!(world.with_password(path, right).await, StatusCode::OK, "{path}");
    }
    assert_eq!(world.with_password("/metrics", wrong).await, StatusCode::UNAUTHORIZED);
    assert_eq!(world.with_password("/", right).await, StatusCode::SEE_OTHER, "pages use the form");
}

#[tokio::test]
async fn public_reading_lets_everyone_read_and_no_one_change() {
    let world = World::with(WebOptions { public_reading: true, ..locked() }, false);
    world.live("paper", "https://e.com/");
    let page = world.get("/sites/1").await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(!page.body.contains("Collect now"));
    let (cookie, _) = page.session();
    assert_eq!(
        world.post_as("/sites/1/pause", &cookie, "", &[]).await.status,
        StatusCode::FORBIDDEN
    );
}
