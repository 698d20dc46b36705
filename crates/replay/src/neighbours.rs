//! The versions before and after the one that is shown.

use axum::{
    body::Body,
    http::{Response, StatusCode},
};

use crate::{
    Capture, ReplayError,
    ask::Ask,
    date::Stamp,
    modifier::Modifier,
    pages::missing::refusal,
    served::{Replay, own_page, redirect},
    target::{Target, When},
};

/// The most versions tried: of a page that redirects to itself, many are not shown.
const MAX_STEPS: usize = 64;

/// The version that is shown for the nearest earlier date at which another one is shown.
pub(crate) fn previous(replay: &Replay, shown: &Capture) -> Result<Option<Capture>, ReplayError> {
    let key = shown.url.key();
    let mut before_s = shown.at_s;
    for _ in 0..MAX_STEPS {
        let found = replay.archive.as_of(&key, before_s.saturating_sub(1))?;
        let Some(found) = found.filter(|c| c.at_s < before_s) else { return Ok(None) };
        before_s = found.at_s;
        let instead = replay.choose(&found.url, found.at_s, Modifier::Page)?;
        if let Some(instead) = instead.filter(|c| is_other(c, shown) && c.at_s < shown.at_s) {
            return Ok(Some(instead));
        }
    }
    Ok(None)
}

/// The version that is shown for the nearest later date at which another one is shown.
pub(crate) fn next(replay: &Replay, shown: &Capture) -> Result<Option<Capture>, ReplayError> {
    let after_s = shown.at_s.saturating_add(1);
    for found in replay.archive.versions(&shown.url.key(), after_s, i64::MAX, MAX_STEPS)? {
        let instead = replay.choose(&found.url, found.at_s, Modifier::Page)?;
        if let Some(instead) = instead.filter(|c| is_other(c, shown) && c.at_s > shown.at_s) {
            return Ok(Some(instead));
        }
    }
    Ok(None)
}

fn is_other(found: &Capture, shown: &Capture) -> bool {
    found.version != shown.version
}

pub(crate) fn to_previous(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    lead(replay, ask, "/_nenrin/previous/", previous)
}

pub(crate) fn to_next(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    lead(replay, ask, "/_nenrin/next/", next)
}

/// What changed from the version before to the one that is shown.
pub(crate) fn to_changes(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let target = Target::parse(ask.rest("/_nenrin/changed/"))?;
    let at_s = if let When::AsOf(period) = target.when { period.last_s } else { i64::MAX };
    let shown = replay.choose(&target.url, at_s, Modifier::Page)?;
    let before = shown.as_ref().map_or(Ok(None), |shown| previous(replay, shown))?;
    let to = match (before, shown) {
        (Some(before), Some(shown)) => {
            format!("/diff/{}/{}/{}", Stamp(before.at_s), Stamp(shown.at_s), shown.url)
        }
        _ => format!("/web/*/{}", target.url),
    };
    Ok(redirect(StatusCode::FOUND, &to))
}

fn lead(
    replay: &Replay,
    ask: &Ask,
    prefix: &str,
    find: fn(&Replay, &Capture) -> Result<Option<Capture>, ReplayError>,
) -> Result<Response<Body>, ReplayError> {
    let target = Target::parse(ask.rest(prefix))?;
    let When::AsOf(period) = target.when else {
        return Ok(redirect(StatusCode::FOUND, &format!("/web/*/{}", target.url)));
    };
    let shown = replay.choose(&target.url, period.last_s, Modifier::Page)?;
    let found = shown.map_or(Ok(None), |shown| find(replay, &shown))?;
    let Some(found) = found else {
        let page = refusal(
            ask,
            ("No such version", "その版はありません"),
            (
                "There is no further version in this direction.",
                "この方向に、ほかの版はありません。",
            ),
        );
        return Ok(own_page(replay, StatusCode::NOT_FOUND, &page));
    };
    Ok(redirect(StatusCode::FOUND, &format!("/web/{}/{}", Stamp(found.at_s), found.url)))
}
