use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};

use crate::{
    WebApp, WebError, api, assets,
    downloads::Downloads,
    feed,
    guard::{self, Fields, Shared, Submitted},
    layout, metrics,
    pages::{
        between, bulk, changes, downloads, ignore, lab, log, login, overview, page_list, patterns,
        picture, progress, register, removal, removals, schedule, search, site, structure,
        timeline, watch_form, watches,
    },
    scans::Scans,
    session::Sessions,
    turns::Turns,
    visitor::Visitor,
};

type Ctx = State<Arc<Shared>>;
type Id = Path<String>;

/// Pages made at once. They read the state, which answers one question at a time, so more would only
/// wait there.
const PAGES_AT_ONCE: usize = 8;
/// Pages that may wait: a few seconds of work.
const PAGES_WAITING_MAX: usize = 200;
/// Answers made at once that read the content of versions: each takes a processor, and one must be left
/// for the others.
const READING_AT_ONCE: usize = 2;
/// Those that may wait.
const READING_WAITING_MAX: usize = 100;
/// Passwords that may wait to be checked: about a second of work.
const PASSWORDS_WAITING_MAX: usize = 16;

/// All pages, forms, the API and the feeds.
pub fn router(app: WebApp) -> Router {
    let shared = Arc::new(Shared {
        app,
        sessions: Sessions::default(),
        turns: Turns::new(PAGES_AT_ONCE, PAGES_WAITING_MAX),
        reading: Turns::new(READING_AT_ONCE, READING_WAITING_MAX),
        passwords: Turns::new(1, PASSWORDS_WAITING_MAX),
        downloads: Downloads::default(),
        structures: Arc::default(),
        outlooks: Arc::default(),
        differences: Scans::default(),
        searches: Scans::default(),
        page_visits: Scans::default(),
        watchers: Arc::new(tokio::sync::Semaphore::new(progress::WATCHERS_MAX)),
    });
    Router::new()
        .route("/", get(show_overview))
        .route("/now", get(show_now))
        .route("/demo", post(start_demo))
        .route("/sites", post(add_site))
        .route("/sites/new", get(new_site))
        .route("/sites/new/look", post(look_at_new_site))
        .route("/sites/bulk", get(ask_bulk).post(add_bulk))
        .route("/sites/patterns", get(count_patterns))
        .route("/sites/{id}", get(show_site).post(save_site))
        .route("/sites/{id}/edit", get(edit_site))
        .route("/sites/{id}/look", post(look_at_site))
        .route("/sites/{id}/collect", post(collect_site))
        .route("/sites/{id}/pause", post(pause_site))
        .route("/sites/{id}/resume", post(resume_site))
        .route("/sites/{id}/browse", get(browse_site))
        .route("/sites/{id}/remove", get(ask_removal).post(remove_site))
        .route("/sites/{id}/restore", get(ask_restore).post(restore_site))
        .route("/removals", get(show_removals))
        .route("/sites/{id}/pages", get(show_site_pages))
        .route("/sites/{id}/schedule", get(show_schedule))
        .route("/sites/{id}/structure", get(show_structure))
        .route("/changes", get(show_changes))
        .route("/picture", get(show_picture))
        .route("/sites/{id}/between", get(show_between))
        .route("/sites/{id}/events", get(watch_site))
        .route("/watches", get(show_watches).post(add_watch))
        .route("/watches/new", get(new_watch))
        .route("/watches/test-mail", post(test_mail))
        .route("/watches/{id}", get(edit_watch).post(save_watch))
        .route("/watches/{id}/pause", post(pause_watch))
        .route("/watches/{id}/resume", post(resume_watch))
        .route("/watches/{id}/remove", post(remove_watch))
        .route("/downloads", get(show_downloads).post(begin_download))
        .route("/downloads/{id}/file", get(send_file))
        .route("/ignore", get(ask_ignore).post(save_ignore))
        .route("/visits", get(show_log))
        .route("/page", get(show_timeline))
        .route("/diff", get(show_diff))
        .route("/lab", get(show_reports))
        .route("/lab/{name}", get(show_report))
        .route("/lab/{name}/results", get(show_results))
        .route("/login", get(show_login).post(log_in))
        .route("/logout", post(log_out))
        .route("/lang", get(choose_language))
        .route("/assets/{name}", get(assets::asset))
        .route("/search", get(show_search))
        .route("/search.atom", get(show_search_feed))
        .route("/opensearch.xml", get(show_search_description))
        .route("/blame", get(show_blame))
        .route("/feed.atom", get(show_feed))
        .route("/api", get(show_api))
        .route("/metrics", get(show_metrics))
        .merge(api::router())
        .fallback(nothing_here)
        .layer(middleware::from_fn_with_state(shared.clone(), guard::guard))
        .with_state(shared)
}

/// Runs what reads the state on a thread that may block, and shows what went wrong.
async fn run(
    shared: Arc<Shared>,
    visitor: Visitor,
    work: impl FnOnce(&Arc<Shared>, &Visitor) -> Result<Response, WebError> + Send + 'static,
) -> Response {
    let (at_work, asker) = (shared.clone(), visitor.clone());
    let answer =
        shared.turns_for(&visitor.here).run(visitor.from, move || work(&at_work, &asker)).await;
    answer.flatten().unwrap_or_else(|error| layout::error(&visitor, &error))
}

/// Forms are shown to those who may send them.
fn admin(visitor: &Visitor) -> Result<(), WebError> {
    if visitor.is_admin() { Ok(()) } else { Err(WebError::NotAllowed) }
}

async fn show_overview(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| overview::overview(&s.app, v, &query)).await
}

async fn show_now(State(shared): Ctx, visitor: Visitor) -> Response {
    run(shared, visitor, |s, v| Ok(overview::now(&s.app, v))).await
}

async fn start_demo(State(shared): Ctx, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, |s, _| overview::start_demo(&s.app)).await
}

async fn new_site(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| {
        admin(v)?;
        Ok(register::new_site(&s.app, v, &query))
    })
    .await
}

async fn add_site(State(shared): Ctx, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| register::add(&s.app, v, &fields)).await
}

async fn look_at_new_site(State(shared): Ctx, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| Ok(register::look(&s.app, v, None, &fields))).await
}

async fn show_site(State(shared): Ctx, Path(id): Id, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| site::site(&s.app, v, &site::find(&s.app, &id)?, &query)).await
}

async fn edit_site(State(shared): Ctx, Path(id): Id, visitor: Visitor) -> Response {
    run(shared, visitor, move |s, v| {
        admin(v)?;
        Ok(register::edit(v, &site::find(&s.app, &id)?))
    })
    .await
}

async fn save_site(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| {
        register::save(&s.app, v, &site::find(&s.app, &id)?, &fields)
    })
    .await
}

async fn look_at_site(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| {
        Ok(register::look(&s.app, v, Some(&site::find(&s.app, &id)?), &fields))
    })
    .await
}

async fn collect_site(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, move |s, _| {
        site::collect(&s.app, site::kept(site::find(&s.app, &id)?)?.id)
    })
    .await
}

async fn pause_site(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, move |s, _| {
        site::set_paused(&s.app, site::find(&s.app, &id)?.id, true)
    })
    .await
}

async fn resume_site(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, move |s, _| {
        site::set_paused(&s.app, site::kept(site::find(&s.app, &id)?)?.id, false)
    })
    .await
}

async fn ask_removal(State(shared): Ctx, Path(id): Id, visitor: Visitor) -> Response {
    run(shared, visitor, move |s, v| {
        admin(v)?;
        let site = site::find(&s.app, &id)?;
        Ok(removal::ask(&s.app, v, &site, &Fields::default(), &[]))
    })
    .await
}

async fn remove_site(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| {
        removal::remove(&s.app, v, &site::find(&s.app, &id)?, &fields)
    })
    .await
}

async fn ask_restore(State(shared): Ctx, Path(id): Id, visitor: Visitor) -> Response {
    run(shared, visitor, move |s, v| {
        admin(v)?;
        Ok(removals::ask(v, &site::find(&s.app, &id)?, "", None))
    })
    .await
}

async fn restore_site(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| {
        removals::restore(&s.app, v, &site::find(&s.app, &id)?, &fields)
    })
    .await
}

async fn show_removals(State(shared): Ctx, visitor: Visitor) -> Response {
    run(shared, visitor, |s, v| removals::list(&s.app, v)).await
}

async fn browse_site(
    State(shared): Ctx,
    Path(id): Id,
    visitor: Visitor,
    query: Fields,
) -> Response {
    run(shared, visitor, move |s, v| site::open_as_of(v, &site::find(&s.app, &id)?, &query)).await
}

async fn show_site_pages(
    State(shared): Ctx,
    Path(id): Id,
    visitor: Visitor,
    query: Fields,
) -> Response {
    run(shared, visitor, move |s, v| page_list::pages(s, v, &site::find(&s.app, &id)?, &query))
        .await
}

async fn show_schedule(
    State(shared): Ctx,
    Path(id): Id,
    visitor: Visitor,
    query: Fields,
) -> Response {
    run(shared, visitor, move |s, v| schedule::schedule(s, v, &site::find(&s.app, &id)?, &query))
        .await
}

async fn show_structure(
    State(shared): Ctx,
    Path(id): Id,
    visitor: Visitor,
    query: Fields,
) -> Response {
    run(shared, visitor, move |s, v| structure::structure(s, v, &site::find(&s.app, &id)?, &query))
        .await
}

async fn show_changes(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| changes::changes(&s.app, v, &query)).await
}

async fn show_picture(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, _| picture::picture(&s.app, &query)).await
}

async fn show_between(
    State(shared): Ctx,
    Path(id): Id,
    visitor: Visitor,
    query: Fields,
) -> Response {
    run(shared, visitor, move |s, v| between::between(s, v, &site::find(&s.app, &id)?, &query))
        .await
}

async fn watch_site(State(shared): Ctx, Path(id): Id, visitor: Visitor) -> Response {
    progress::watch(shared, visitor, id)
}

async fn ask_bulk(State(shared): Ctx, visitor: Visitor) -> Response {
    run(shared, visitor, |_, v| {
        admin(v)?;
        Ok(bulk::ask(v))
    })
    .await
}

async fn add_bulk(State(shared): Ctx, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| bulk::add(&s.app, v, &fields)).await
}

async fn count_patterns(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| patterns::count(&s.app, v, &query)).await
}

async fn show_watches(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| watches::list(&s.app, v, &query)).await
}

async fn new_watch(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| {
        admin(v)?;
        watch_form::new(&s.app, v, &query)
    })
    .await
}

async fn add_watch(State(shared): Ctx, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| watch_form::save(&s.app, v, None, &fields)).await
}

async fn edit_watch(State(shared): Ctx, Path(id): Id, visitor: Visitor) -> Response {
    run(shared, visitor, move |s, v| watch_form::edit(&s.app, v, &watches::find(&s.app, &id)?))
        .await
}

async fn save_watch(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| {
        watch_form::save(&s.app, v, Some(&watches::find(&s.app, &id)?), &fields)
    })
    .await
}

async fn pause_watch(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, move |s, _| {
        watches::set_paused(&s.app, watches::find(&s.app, &id)?, true)
    })
    .await
}

async fn resume_watch(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, move |s, _| {
        watches::set_paused(&s.app, watches::find(&s.app, &id)?, false)
    })
    .await
}

async fn remove_watch(State(shared): Ctx, Path(id): Id, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, move |s, _| {
        watches::remove(&s.app, watches::find(&s.app, &id)?.id)
    })
    .await
}

async fn test_mail(State(shared): Ctx, submitted: Submitted) -> Response {
    run(shared, submitted.visitor, |s, _| watches::test_mail(&s.app)).await
}

async fn show_downloads(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| downloads::list(s, v, &query)).await
}

async fn begin_download(State(shared): Ctx, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| downloads::begin(s, v, &fields)).await
}

async fn send_file(State(shared): Ctx, Path(id): Id, visitor: Visitor) -> Response {
    run(shared, visitor, move |s, _| downloads::file(&*s.downloads.find(&id)?)).await
}

async fn ask_ignore(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| {
        admin(v)?;
        ignore::ask(&s.app, v, &query)
    })
    .await
}

async fn save_ignore(State(shared): Ctx, submitted: Submitted) -> Response {
    let fields = submitted.fields;
    run(shared, submitted.visitor, move |s, v| ignore::save(&s.app, v, &fields)).await
}

async fn show_log(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| log::log(&s.app, v, &query)).await
}

async fn show_timeline(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| timeline::timeline(s, v, &query)).await
}

async fn show_diff(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |_, v| timeline::diff(v, &query)).await
}

async fn show_reports(State(shared): Ctx, visitor: Visitor) -> Response {
    run(shared, visitor, |s, v| Ok(lab::list(&s.app, v))).await
}

async fn show_report(State(shared): Ctx, Path(name): Id, visitor: Visitor) -> Response {
    run(shared, visitor, move |s, v| lab::report(&s.app, v, &name)).await
}

async fn show_results(State(shared): Ctx, Path(name): Id, visitor: Visitor) -> Response {
    run(shared, visitor, move |s, _| lab::results(&s.app, &name)).await
}

async fn show_login(visitor: Visitor, query: Fields) -> Response {
    login::ask(&visitor, query.get("back"))
}

async fn log_in(State(shared): Ctx, submitted: Submitted) -> Response {
    let Submitted { visitor, fields, from } = submitted;
    let password = fields.get("password").to_owned();
    match shared.check_password(password, from, Sessions::log_in).await {
        Ok(log_in) => login::answer(&visitor, fields.get("back"), log_in),
        Err(error) => layout::error(&visitor, &error),
    }
}

async fn log_out(State(shared): Ctx, submitted: Submitted) -> Response {
    login::log_out(&shared, &submitted.visitor)
}

async fn choose_language(query: Fields) -> Response {
    login::choose_language(&query)
}

async fn show_feed(
    State(shared): Ctx,
    headers: HeaderMap,
    visitor: Visitor,
    query: Fields,
) -> Response {
    let origin = origin(&headers);
    run(shared, visitor, move |s, v| feed::feed(&s.app, v, &origin, &query)).await
}

async fn show_search(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| search::results(&s.app, v, &query)).await
}

async fn show_search_feed(
    State(shared): Ctx,
    headers: HeaderMap,
    visitor: Visitor,
    query: Fields,
) -> Response {
    let origin = origin(&headers);
    run(shared, visitor, move |s, v| search::feed(&s.app, v, &origin, &query)).await
}

async fn show_search_description(headers: HeaderMap, visitor: Visitor) -> Response {
    search::description(&visitor, &origin(&headers))
}

async fn show_blame(State(shared): Ctx, visitor: Visitor, query: Fields) -> Response {
    run(shared, visitor, move |s, v| search::blame(&s.app, v, &query)).await
}

/// The interface as its visitor reached it.
fn origin(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|v| v.to_str().ok()).unwrap_or("localhost");
    format!("http://{host}")
}

async fn show_api(visitor: Visitor) -> Response {
    api::human::page(&visitor)
}

async fn show_metrics(State(shared): Ctx, visitor: Visitor) -> Response {
    run(shared, visitor, |s, _| {
        let mime = "text/plain; version=0.0.4; charset=utf-8";
        Ok(([(header::CONTENT_TYPE, mime)], metrics::metrics(s)?).into_response())
    })
    .await
}

async fn nothing_here(visitor: Visitor) -> Response {
    layout::error(&visitor, &WebError::not_found("such page here"))
}
