//! Requests to the origin of an archived server: everything there is the server's own path, except
//! for `/_nenrin/`.

use axum::{
    body::Body,
    http::{HeaderValue, Method, Response, StatusCode, header},
};

use nenrin_urls::CanonicalUrl;

use crate::{
    ReplayError,
    ask::Ask,
    assets, compare, fences,
    modifier::Modifier,
    origins::Shelf,
    pages,
    rewrite::{Links, script},
    served::{Replay, own_page, plain, redirect},
    span,
    target::{self, Target},
    web,
};

type Answer = Response<Body>;

/// Answers as the archived server did on the date.
pub(crate) fn answer(
    replay: &Replay,
    ask: &Ask,
    method: &Method,
    shelf: &Shelf,
) -> Result<Answer, ReplayError> {
    if ask.header("service-worker").is_some() {
        return Ok(plain(StatusCode::FORBIDDEN, "archived service workers are not started"));
    }
    if !fences::may_ask(ask) {
        return Ok(plain(StatusCode::FORBIDDEN, "archived pages cannot read other sites"));
    }
    if *method == Method::OPTIONS {
        let mut answer = plain(StatusCode::NO_CONTENT, "");
        if let Some(origins) = &replay.origins {
            fences::preflight(ask, origins, answer.headers_mut());
        }
        return Ok(answer);
    }
    if *method != Method::GET && *method != Method::HEAD && ask.posted.is_none() {
        let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "this request was not archived");
        answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Ok(answer);
    }
    match ask.uri.path().strip_prefix("/_nenrin/") {
        Some(own) if ask.posted.is_none() => own_path(replay, ask, shelf, own),
        Some("script") => Ok(script(replay, ask, shelf)),
        _ => web::on_shelf(replay, ask, shelf),
    }
}

fn own_path(replay: &Replay, ask: &Ask, shelf: &Shelf, path: &str) -> Result<Answer, ReplayError> {
    // Only the page itself may ask about itself.
    let is_about_itself = |url: &nenrin_urls::CanonicalUrl| url.server() == shelf.server;
    match path.split('/').next().unwrap_or_default() {
        "span" if is_about_itself(&Target::parse(ask.rest("/_nenrin/span/"))?.url) => {
            span::answer(replay, ask)
        }
        "diff" => compare::on_shelf(replay, ask, shelf),
        "to" => {
            let (url, _) = target::archived_url(ask.rest("/_nenrin/to/"))?;
            let Some(origins) = &replay.origins else {
                return Ok(plain(StatusCode::NOT_FOUND, "no such file"));
            };
            let shelf = Shelf { server: url.server(), ..shelf.clone() };
            let to = format!("{}{}", origins.of(&shelf), url.path_and_query());
            Ok(redirect(StatusCode::TEMPORARY_REDIRECT, &to))
        }
        _ => Ok(assets::file(path)),
    }
}

/// A script that a page makes of text while it runs, rewritten as one that is loaded.
fn script(replay: &Replay, ask: &Ask, shelf: &Shelf) -> Answer {
    let text = ask.posted.as_ref().map_or(&[][..], |(_, text)| text);
    let base = CanonicalUrl::parse(&format!("{}/", shelf.server.as_str()));
    let (Some(origins), Ok(base)) = (&replay.origins, base) else {
        return plain(StatusCode::NOT_FOUND, "no such file");
    };
    let links = Links::new(shelf.at_s, Modifier::Script, base).on(origins, shelf.is_bare);
    let new = match ask.uri.query() {
        Some("handler") => script::rewrite_handler(text, &links),
        _ => script::rewrite(text, &links),
    };
    match new {
        // Never a page, whatever was sent.
        Some(new) => plain(StatusCode::OK, "").map(|_| Body::from(new)),
        None => plain(StatusCode::NO_CONTENT, ""),
    }
}

/// A name of ours whose server is not known any more.
pub(crate) fn forgotten(replay: &Replay, ask: &Ask) -> Answer {
    let sentence = (
        "This name was made for a page that was open before, and is no longer known. Open the page \
         again from its address /web/<date>/<url>.",
        "この名前は以前に開いたページのためのもので、今は使えません。/web/<日付>/<URL> から開き直してください。",
    );
    let title = ("This name is no longer known", "この名前は使えなくなりました");
    let page = pages::missing::refusal(ask, title, sentence);
    own_page(replay, StatusCode::MISDIRECTED_REQUEST, &page)
}
