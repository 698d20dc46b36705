//! The newest changes as an Atom feed (RFC 4287).

use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use nenrin_state::{LogQuery, Outcome, Site, SiteId, VisitRow};

use crate::{
    WebApp, WebError, app::replay_link, format, guard::Fields, layout::page_link, visitor::Visitor,
};

const ENTRIES: usize = 50;

pub(crate) fn feed(
    app: &WebApp,
    visitor: &Visitor,
    origin: &str,
    query: &Fields,
) -> Result<Response, WebError> {
    let site: Option<SiteId> = query.number("site").map(SiteId);
    let log = LogQuery { site, outcome: Some(Outcome::Changed), before: None, limit: ENTRIES };
    let changes = app.state.visit_log(log)?;
    let sites = app.state.sites()?;
    let name = |id| sites.iter().find(|s: &&Site| s.id == id).map_or("", |s| s.name.as_str());
    let title = match site {
        None => visitor.t("Changes · Nenrin", "変更 · Nenrin").to_owned(),
        Some(id) => format!("{} · Nenrin", name(id)),
    };
    let updated_s = changes.first().map_or(0, |visit| visit.at_s);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    out.push_str("<feed xmlns=\"http://www.w3.org/2005/Atom\">\n");
    element(&mut out, "title", &title);
    element(&mut out, "id", &format!("{origin}{}", visitor.here));
    element(&mut out, "updated", &format::rfc3339(updated_s));
    out.push_str(&format!(
        "<link rel=\"self\" href=\"{}\"/>\n",
        escaped(&format!("{origin}{}", visitor.here))
    ));
    out.push_str("<author><name>Nenrin</name></author>\n");
    for change in &changes {
        entry(&mut out, visitor, origin, name(change.site), change);
    }
    out.push_str("</feed>\n");
    Ok(([(header::CONTENT_TYPE, "application/atom+xml; charset=utf-8")], out).into_response())
}

fn entry(out: &mut String, visitor: &Visitor, origin: &str, site: &str, change: &VisitRow) {
    out.push_str("<entry>\n");
    element(out, "title", &format::shown_url(&change.url));
    // The place in the log never changes, whatever name the archive is reached by.
    element(out, "id", &format!("urn:nenrin:visit:{}", change.id));
    element(out, "updated", &format::rfc3339(change.at_s));
    let replay = replay_link(&visitor.replay, change.at_s, &change.url);
    let page = format!("{origin}{}", page_link(&change.url));
    out.push_str(&format!("<link rel=\"alternate\" href=\"{}\"/>\n", escaped(&replay)));
    out.push_str(&format!("<link rel=\"related\" href=\"{}\"/>\n", escaped(&page)));
    let size = format::bytes(change.received_bytes);
    element(out, "summary", &format!("{site}: {} ({size})", visitor.t("changed", "変更あり")));
    out.push_str("</entry>\n");
}

fn element(out: &mut String, name: &str, text: &str) {
    out.push_str(&format!("<{name}>{}</{name}>\n", escaped(text)));
}

/// Text in XML: markup is escaped, and what XML 1.0 forbids is replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
