//! Changes by time, and a site on two dates, for programs.

use axum::response::Response;
use nenrin_archive::changes::{
    Between, ChangeFilter, ChangeKind, ListedChange, PageDifference, between,
};
use nenrin_state::{PageId, SiteId, VersionRow};
use serde_json::{Value, json};

use super::{
    answers::Portion,
    call::{Call, bad, ok},
};
use crate::{
    WebError,
    app::{diff_link, replay_link},
    format,
    pages::changes,
    visitor::Visitor,
};

/// Days of changes unless others are asked for.
const DAYS: i64 = 7;

/// Whether a switch is on.
fn switch(call: &Call<'_>, name: &str) -> Result<bool, WebError> {
    match call.query.given(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(bad(name, "is neither true nor false")),
    }
}

pub(super) fn changes(call: &Call<'_>) -> Result<Response, WebError> {
    let today = call.visitor.now_s.div_euclid(format::DAY_S);
    let last = call.day("to")?.unwrap_or(today);
    let first = call.day("from")?.unwrap_or_else(|| last.saturating_sub(DAYS - 1));
    let kind = match call.query.given("kind") {
        None => None,
        Some(word) => {
            let kind = ChangeKind::from_word(word);
            Some(kind.ok_or_else(|| bad("kind", "is not one of new, changed and gone"))?)
        }
    };
    let before = match call.query.given("before") {
        None => None,
        Some(text) => {
            let cursor = changes::cursor(text);
            Some(cursor.ok_or_else(|| bad("before", "is not a `next` of an answer"))?)
        }
    };
    let filter = ChangeFilter {
        site: call.number("site")?.map(SiteId),
        from_s: first.saturating_mul(format::DAY_S),
        to_s: last.saturating_add(1).saturating_mul(format::DAY_S).saturating_sub(1),
        before,
        kind,
        significant: switch(call, "significant")?,
        text: call.query.get("text").to_owned(),
        parts: switch(call, "parts")?,
        limit: call.limit()?,
    };
    let listed = call.app.changes.list(&filter, changes::PATIENCE)?;
    let names = call.app.state.sites()?;
    let name = |id: SiteId| names.iter().find(|site| site.id == id).map(|site| &site.name);
    let items: Vec<Value> = listed
        .items
        .iter()
        .map(|one| {
            let mut item = change(call.visitor, one);
            item["name"] = json!(name(one.change.site));
            item
        })
        .collect();
    ok(Portion { items, next: listed.next.map(changes::written) })
}

fn change(visitor: &Visitor, one: &ListedChange) -> Value {
    let change = &one.change;
    let line = one.line();
    let mut item = sides(visitor, &change.url, change.previous.as_ref(), change.version.as_ref());
    let more = json!({
        "at": format::rfc3339(change.at_s), "at_s": change.at_s, "site": change.site,
        "kind": one.kind, "significant": one.is_significant(), "read": one.summary.is_some(),
        "title": one.title(), "line": line.map(|(line, _)| line),
        "removed": line.is_some_and(|(_, removed)| removed),
    });
    if let (Value::Object(item), Value::Object(more)) = (&mut item, more) {
        item.extend(more);
    }
    item
}

/// Two versions of a page and where they are shown.
fn sides(
    visitor: &Visitor,
    url: &nenrin_urls::CanonicalUrl,
    old: Option<&VersionRow>,
    new: Option<&VersionRow>,
) -> Value {
    let side = |row: Option<&VersionRow>| {
        row.map(|row| {
            json!({
                "version": row.version, "at": format::rfc3339(row.at_s), "status": row.status,
                "mime": row.mime, "bytes": row.bytes,
            })
        })
    };
    let compare = match (old, new) {
        (Some(old), Some(new)) => Some(diff_link(&visitor.replay, old.at_s, new.at_s, url)),
        _ => None,
    };
    let replay = new.or(old).map(|row| replay_link(&visitor.replay, row.at_s, url));
    json!({"url": url, "old": side(old), "new": side(new), "compare": compare, "replay": replay})
}

pub(super) fn site_between(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let end_of = |name: &str| match call.day(name)? {
        Some(day) => Ok(day.saturating_add(1).saturating_mul(format::DAY_S).saturating_sub(1)),
        None => Err(bad(name, "is missing")),
    };
    let (from_s, to_s) = (end_of("from")?, end_of("to")?);
    if from_s > to_s {
        return Err(bad("from", "is later than `to`"));
    }
    let dates = Between { site: &site, from_s, to_s, parts: switch(call, "parts")? };
    let after = call.number("after")?.map(PageId);
    let (pages, looked_at, next) = between(&*call.app.state, dates, after, call.limit()?)?;
    let item = |page: &PageDifference| {
        let mut item = sides(call.visitor, &page.url, page.old.as_ref(), page.new.as_ref());
        item["kind"] = json!(page.kind);
        item["significant"] = json!(page.is_significant);
        item
    };
    let items: Vec<Value> = pages.iter().map(item).collect();
    let next = next.map(|page| page.0.to_string());
    ok(json!({"items": items, "next": next, "compared": looked_at}))
}
