//! A summary of the changes of some days.

use std::collections::BTreeMap;

use nenrin_lang::Lang;
use nenrin_state::{Outcome, SiteId, State, StateError, VisitFilter, VisitRow};

use crate::{
    Letter, Links,
    letter::{escaped, one_line, page},
};

/// Changes read, and pages named for each site.
const CHANGES_MAX: usize = 5_000;
const PORTION: usize = 250;
const PAGES_PER_SITE: usize = 20;

/// The changes from one time to another, site by site; `None` where nothing changed.
///
/// # Errors
/// [`StateError`] of the state.
pub fn digest(
    state: &dyn State,
    (from_s, to_s): (i64, i64),
    links: &Links,
    lang: Lang,
) -> Result<Option<Letter>, StateError> {
    let mut by_site: BTreeMap<SiteId, Vec<VisitRow>> = BTreeMap::new();
    let (mut before, mut read) = (None, 0);
    while read < CHANGES_MAX {
        let filter = VisitFilter {
            outcome: Some(Outcome::Changed),
            before,
            limit: PORTION,
            ..VisitFilter::default()
        };
        let visits = state.visits(filter)?;
        read += visits.len();
        before = visits.last().map(|visit| visit.id);
        let is_last = visits.len() < PORTION || visits.iter().all(|visit| visit.at_s < from_s);
        for visit in visits.into_iter().filter(|visit| (from_s..=to_s).contains(&visit.at_s)) {
            by_site.entry(visit.site).or_default().push(visit);
        }
        if is_last {
            break;
        }
    }
    let sites = state.sites()?;
    let shown = sites.iter().filter(|site| site.removed.is_none());
    let listed: Vec<_> =
        shown.filter_map(|site| Some((site.name.as_str(), by_site.get(&site.id)?))).collect();
    let total: usize = listed.iter().map(|(_, visits)| visits.len()).sum();
    if total == 0 {
        return Ok(None);
    }
    let subject = match lang {
        Lang::En => format!(
            "Nenrin: {} on {}",
            counted(total, "changed page"),
            counted(listed.len(), "site")
        ),
        Lang::Ja => format!("Nenrin：{} サイトで {total} ページの変更", listed.len()),
    };
    let (mut text, mut html) = (String::new(), String::new());
    for (name, visits) in listed {
        let name = one_line(name, 120);
        text += &format!("{name} ({})\n", visits.len());
        html += &format!(
            "<h2 style=\"font-size:1.1em\">{} ({})</h2><ul>",
            escaped(&name),
            visits.len()
        );
        for visit in visits.iter().take(PAGES_PER_SITE) {
            let shown = one_line(&visit.url.shown(), 300);
            let link = format!("{}/page?url={}", links.interface, encoded(visit.url.as_str()));
            text += &format!("  {shown}\n    {link}\n");
            html += &format!("<li><a href=\"{}\">{}</a></li>", escaped(&link), escaped(&shown));
        }
        let more = visits.len().saturating_sub(PAGES_PER_SITE);
        if more > 0 {
            let line = match lang {
                Lang::En => format!("and {more} more"),
                Lang::Ja => format!("ほか {more} 件"),
            };
            text += &format!("  {line}\n");
            html += &format!("<li>{line}</li>");
        }
        text.push('\n');
        html += "</ul>";
    }
    text += &format!("{}/\n", links.interface);
    Ok(Some(Letter::new(&subject, text, page(&html, lang))))
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A URL as a value in a query.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                out.push(byte as char);
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
