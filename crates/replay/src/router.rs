//! The routes, and how a request gets to a thread that may wait for the disk.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, State as Shared},
    http::{HeaderValue, Method, Request, Response, StatusCode, header},
    middleware::{self, Next},
    routing::{any, get},
};

use nenrin_urls::PostedUrl;

use crate::{
    Archive, ReplayError, ReplayOptions,
    ask::Ask,
    assets, cdx, compare,
    host_check::{self, HostCheck},
    hosted, language, neighbours,
    origins::Named,
    pages,
    served::{Replay, own_page, plain, redirect},
    span, timemap, web,
};

/// The most that a request may send: no more is archived with one.
const MAX_POSTED_BYTES: usize = 1 << 20;

/// All routes of replay. They must be served on an origin of their own, because other people's
/// pages run there.
pub fn router(archive: Arc<dyn Archive>, options: ReplayOptions) -> Router {
    let replay = Arc::new(Replay::new(archive, options));
    Router::new()
        .route("/web/cdx", get(handle(cdx::answer)))
        .route("/cdx", get(handle(cdx::answer)))
        .route("/web/timemap/{format}/{*rest}", get(handle(timemap::answer)))
        .route("/web/{*rest}", any(handle(web::answer)))
        .route("/diff/{*rest}", get(handle(compare::answer)))
        .route("/_nenrin/span/{*rest}", get(handle(span::answer)))
        .route("/_nenrin/previous/{*rest}", get(handle(neighbours::to_previous)))
        .route("/_nenrin/next/{*rest}", get(handle(neighbours::to_next)))
        .route("/_nenrin/changed/{*rest}", get(handle(neighbours::to_changes)))
        .route("/_nenrin/parts/{*rest}", get(handle(span::list)))
        .route("/_nenrin/record/{*rest}", get(handle(web::record)))
        .route("/_nenrin/watch", get(handle(web::watch)))
        .route("/_nenrin/go", get(handle(web::go)))
        .route("/_nenrin/lang/{code}/{*rest}", get(handle(language::answer)))
        .route("/_nenrin/{file}", get(assets::serve))
        .route("/robots.txt", get(assets::robots))
        .route("/", get(handle_at_once(web::front)))
        .fallback(handle(web::escaped))
        .layer(middleware::from_fn_with_state(replay.clone(), by_host))
        .with_state(replay)
}

/// Requests to the origin of an archived server do not reach the routes: all their paths are the
/// server's own.
async fn by_host(
    Shared(replay): Shared<Arc<Replay>>,
    request: Request<Body>,
    next: Next,
) -> Answer {
    let Some(origins) = replay.origins.clone() else { return next.run(request).await };
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or(request.uri().authority().map(|a| a.as_str())).unwrap_or_default();
    let Some(named) = origins.read(host) else { return next.run(request).await };
    let (ask, method) = match read(request).await {
        Ok(read) => read,
        Err(refused) => return refused,
    };
    let Named::Shelf(shelf) = named else { return hosted::forgotten(&replay, &ask) };
    made(replay, ask, method, move |replay, ask, method| {
        hosted::answer(replay, ask, method, &shelf)
    })
    .await
}

/// Does the work of an answer where blocking is allowed, and shows its errors to people.
async fn made(
    replay: Arc<Replay>,
    ask: Ask,
    method: Method,
    work: impl FnOnce(&Replay, &Ask, &Method) -> Result<Answer, ReplayError> + Send + 'static,
) -> Answer {
    // The line is never closed, so a turn always comes. It lasts as long as the work does, also when
    // the reader has disconnected.
    let turn = replay.makers.turn(ask.from).await;
    let is_head = method == Method::HEAD;
    let answered = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work(&replay, &ask, &method).unwrap_or_else(|error| refused(&replay, &ask, &error))
    });
    let answer = answered.await.unwrap_or_else(|error| {
        tracing::error!(%error, "an answer was not finished");
        plain(StatusCode::INTERNAL_SERVER_ERROR, "the answer was not finished")
    });
    if is_head { without_body(answer) } else { answer }
}

type Answer = Response<Body>;
type Answering = fn(&Replay, &Ask) -> Result<Answer, ReplayError>;

type Pending = std::pin::Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A handler that runs its work in a turn, where blocking is allowed.
fn handle(
    work: Answering,
) -> impl Fn(Shared<Arc<Replay>>, Request<Body>) -> Pending + Clone + Send + 'static {
    handler(work, true)
}

/// A handler of what does not read the archive: it does not wait behind a flood of pages.
fn handle_at_once(
    work: Answering,
) -> impl Fn(Shared<Arc<Replay>>, Request<Body>) -> Pending + Clone + Send + 'static {
    handler(work, false)
}

/// A handler that shows its errors to people.
fn handler(
    work: Answering,
    reads_archive: bool,
) -> impl Fn(Shared<Arc<Replay>>, Request<Body>) -> Pending + Clone + Send + 'static {
    move |Shared(replay), request| {
        Box::pin(async move {
            let (mut ask, method) = match read(request).await {
                Ok(read) => read,
                Err(refused) => return refused,
            };
            ask.interface = host_check::interface(&replay.options, ask.host());
            let may_be_archived = ask.posted.is_some() && ask.uri.path().starts_with("/web/");
            if method != Method::GET && method != Method::HEAD && !may_be_archived {
                return web::not_allowed(&replay, &ask);
            }
            match host_check::judge(&replay.options, &ask) {
                HostCheck::Own => {}
                HostCheck::Redirect(to) => return redirect(StatusCode::TEMPORARY_REDIRECT, &to),
                HostCheck::Foreign => return misdirected(&replay, &ask),
            }
            if !reads_archive {
                return work(&replay, &ask).unwrap_or_else(|error| refused(&replay, &ask, &error));
            }
            made(replay, ask, method, move |replay, ask, _| work(replay, ask)).await
        })
    }
}

fn refused(replay: &Replay, ask: &Ask, error: &ReplayError) -> Answer {
    let (status, title) = match error {
        ReplayError::BadUrl { .. } | ReplayError::BadParameter { .. } => {
            (StatusCode::BAD_REQUEST, ("This address cannot be read", "調べられません"))
        }
        ReplayError::Archive(cause) => {
            tracing::error!(%cause, path = %ask.uri.path(), "the archive could not be read");
            let title = ("The archive could not be read", "アーカイブを読めませんでした");
            (StatusCode::INTERNAL_SERVER_ERROR, title)
        }
    };
    let (en, ja) = (error.to_string(), error.in_japanese());
    own_page(replay, status, &pages::missing::refusal(ask, title, (&en, &ja)))
}

/// Reads the parts that matter, also the body where the archive may have an answer to it.
async fn read(request: Request<Body>) -> Result<(Ask, Method), Answer> {
    let (parts, body) = request.into_parts();
    let method = parts.method;
    let from = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(from)| from.ip());
    let mut ask =
        Ask { uri: parts.uri, headers: parts.headers, from, interface: None, posted: None };
    if PostedUrl::has_address(method.as_str()) {
        let body = axum::body::to_bytes(body, MAX_POSTED_BYTES).await;
        let too_long = |_| plain(StatusCode::PAYLOAD_TOO_LARGE, "more than 1 MiB is not archived");
        ask.posted = Some((method.clone(), body.map_err(too_long)?));
    }
    Ok((ask, method))
}

fn misdirected(replay: &Replay, ask: &Ask) -> Answer {
    let sentence = (
        "Replay is not available under this host name. Use the one in `serve.replay_origin` of the \
         configuration.",
        "このホスト名では閲覧できません。設定の `serve.replay_origin` にある名前を使ってください。",
    );
    let title = ("Not under this name", "この名前では使えません");
    let page = pages::missing::refusal(ask, title, sentence);
    own_page(replay, StatusCode::MISDIRECTED_REQUEST, &page)
}

/// An answer to HEAD has the length of what GET would send.
fn without_body(answer: Answer) -> Answer {
    use axum::body::HttpBody;
    let (mut parts, body) = answer.into_parts();
    if let Some(length) = body.size_hint().exact() {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Body::empty())
}
