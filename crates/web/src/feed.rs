//! The newest changes and incidents as an Atom feed (RFC 4287).

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use nenrin_archive::{changes::ListedChange, noticing::watch_link};
use nenrin_lang::escaped;
use nenrin_state::{Incident, Site, WatchHit};

use crate::{
    WebApp, WebError,
    app::{diff_link, replay_link},
    format,
    guard::Fields,
    layout::{self, page_link},
    pages::changes,
    visitor::Visitor,
};

const ENTRIES: usize = 50;

pub(crate) fn feed(
    app: &WebApp,
    visitor: &Visitor,
    origin: &str,
    query: &Fields,
) -> Result<Response, WebError> {
    let mut filter = changes::Asked::of(app, visitor, query)?.filter;
    // The newest, whenever they were.
    (filter.from_s, filter.to_s, filter.limit) = (i64::MIN, i64::MAX, ENTRIES);
    let site = filter.site;
    let changes = app.changes.list(&filter, changes::PATIENCE)?.items;
    let mut incidents = app.state.incidents()?;
    incidents.retain(|incident| site.is_none() || incident.site == site);
    let sites = app.state.sites()?;
    let name = |id| sites.iter().find(|s: &&Site| s.id == id).map_or("", |s| s.name.as_str());
    let title = match site {
        None => visitor.t("Changes · Nenrin", "変更 · Nenrin").to_owned(),
        Some(id) => format!("{} · Nenrin", name(id)),
    };
    let only_watches = !query.get("watches").is_empty();
    let (changes, incidents) = match only_watches {
        true => (Vec::new(), Vec::new()),
        false => (changes, incidents),
    };
    let mut entries: Vec<(i64, String)> = Vec::new();
    for hit in app.state.watch_hits()?.iter().filter(|_| site.is_none()).take(ENTRIES) {
        entries.push((hit.at_s, watch_entry(visitor, origin, hit)));
    }
    for change in &changes {
        let entry = change_entry(visitor, origin, name(change.change.site), change);
        entries.push((change.change.at_s, entry));
    }
    for incident in incidents.iter().take(ENTRIES) {
        entries.push((incident.at_s, incident_entry(visitor, origin, incident)));
    }
    entries.sort_by_key(|(at_s, _)| std::cmp::Reverse(*at_s));
    entries.truncate(ENTRIES);
    let updated_s = entries.first().map_or(0, |(at_s, _)| *at_s);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    out.push_str("<feed xmlns=\"http://www.w3.org/2005/Atom\">\n");
    element(&mut out, "title", &title);
    element(&mut out, "id", &format!("{origin}{}", visitor.here));
    element(&mut out, "updated", &format::rfc3339(updated_s));
    link(&mut out, "self", &format!("{origin}{}", visitor.here));
    out.push_str("<author><name>Nenrin</name></author>\n");
    entries.iter().for_each(|(_, entry)| out.push_str(entry));
    out.push_str("</feed>\n");
    Ok(([(header::CONTENT_TYPE, "application/atom+xml; charset=utf-8")], out).into_response())
}

fn change_entry(visitor: &Visitor, origin: &str, site: &str, one: &ListedChange) -> String {
    let change = &one.change;
    let mut out = String::from("<entry>\n");
    element(&mut out, "title", &one.title().map_or_else(|| change.url.shown(), str::to_owned));
    // Numbers of versions and pages never change, whatever name the archive has.
    let id = match &change.version {
        Some(row) => format!("urn:nenrin:version:{}", row.version.0),
        None => format!("urn:nenrin:gone:{}:{}", change.page.0, change.at_s),
    };
    element(&mut out, "id", &id);
    element(&mut out, "updated", &format::rfc3339(change.at_s));
    category(&mut out, one.kind.as_str());
    let compare = match (&change.version, &change.previous) {
        (Some(new), Some(old)) => Some(diff_link(&visitor.replay, old.at_s, new.at_s, &change.url)),
        _ => None,
    };
    let shown = change.version.as_ref().or(change.previous.as_ref());
    let open = replay_link(&visitor.replay, shown.map_or(change.at_s, |row| row.at_s), &change.url);
    link(&mut out, "alternate", compare.as_deref().unwrap_or(&open));
    link(&mut out, "related", &format!("{origin}{}", page_link(&change.url)));
    let mut summary = format!("{site}: {}", changes::kind_word(visitor, one.kind));
    if let Some((line, removed)) = one.line() {
        summary.push_str(if removed { " − " } else { " + " });
        summary.push_str(line);
    }
    element(&mut out, "summary", &format!("{summary} ({})", change.url.shown()));
    out.push_str("</entry>\n");
    out
}

fn watch_entry(visitor: &Visitor, origin: &str, hit: &WatchHit) -> String {
    let mut out = String::from("<entry>\n");
    element(&mut out, "title", &format!("{}: {}", hit.title, hit.what(visitor.lang)));
    element(&mut out, "id", &format!("urn:nenrin:watch:{}:{}", hit.watch.0, hit.id));
    element(&mut out, "updated", &format::rfc3339(hit.at_s));
    category(&mut out, if hit.trouble.is_some() { "watch-lost" } else { "watch" });
    link(&mut out, "alternate", &watch_link(hit, &visitor.replay));
    link(&mut out, "related", &format!("{origin}/watches/{}", hit.watch.0));
    let nothing = visitor.t("(not there)", "（なし）");
    let text = |part: &Option<String>| part.clone().unwrap_or_else(|| nothing.to_owned());
    let summary = match hit.trouble {
        Some(trouble) => trouble.text(visitor.lang).to_owned(),
        None => format!("{} → {}", text(&hit.before), text(&hit.after)),
    };
    element(&mut out, "summary", &summary);
    out.push_str("</entry>\n");
    out
}

fn incident_entry(visitor: &Visitor, origin: &str, incident: &Incident) -> String {
    let (word, what) = layout::incident_words(visitor, incident.event);
    let name = if incident.name.is_empty() {
        visitor.t("The archive", "アーカイブ")
    } else {
        incident.name.as_str()
    };
    let path = incident.site.map_or("/".to_owned(), |site| format!("/sites/{}", site.0));
    let mut out = String::from("<entry>\n");
    element(&mut out, "title", &format!("{name}: {what}"));
    element(&mut out, "id", &format!("urn:nenrin:incident:{}", incident.id));
    element(&mut out, "updated", &format::rfc3339(incident.at_s));
    category(&mut out, word);
    link(&mut out, "alternate", &format!("{origin}{path}"));
    let detail = incident.detail.as_ref().map(|detail| detail.text(visitor.lang));
    element(&mut out, "summary", &detail.unwrap_or_default());
    out.push_str("</entry>\n");
    out
}

fn link(out: &mut String, relation: &str, target: &str) {
    out.push_str(&format!("<link rel=\"{relation}\" href=\"{}\"/>\n", escaped(target)));
}

/// Readers of the feed can filter by it: the word that webhooks use.
fn category(out: &mut String, word: &str) {
    out.push_str(&format!("<category term=\"{word}\"/>\n"));
}

fn element(out: &mut String, name: &str, text: &str) {
    out.push_str(&format!("<{name}>{}</{name}>\n", escaped(text)));
}
