//! Changes as the text of a message.

use std::collections::BTreeMap;

use nenrin_lang::{Lang, escaped, shown};
use nenrin_state::SiteId;
use nenrin_urls::CanonicalUrl;

use super::{kind::ChangeKind, list::ListedChange};
use crate::{digits14, readable_date};

/// Where the links of a message lead, without a slash at the end.
#[derive(Debug, Clone, Copy)]
pub struct DigestLinks<'a> {
    /// The interface, such as `https://archive.example.org`.
    pub interface: &'a str,
    /// The address of replay, such as `https://replay.example.org`.
    pub replay: &'a str,
}

/// A message in two forms that say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// One line.
    pub subject: String,
    /// Plain text.
    pub text: String,
    /// HTML without scripts and without anything from outside; what came from the web is escaped.
    pub html: String,
}

/// The content of a message about changes, grouped by site, newest first. `names` has the names of the sites;
/// `more` says whether there are more changes than these.
pub fn digest(
    lang: Lang,
    changes: &[ListedChange],
    names: &BTreeMap<SiteId, String>,
    links: DigestLinks<'_>,
    more: bool,
) -> Digest {
    let mut by_site: BTreeMap<SiteId, Vec<&ListedChange>> = BTreeMap::new();
    for one in changes {
        by_site.entry(one.change.site).or_default().push(one);
    }
    let subject = subject(lang, changes, by_site.len());
    let (mut text, mut html) = (String::new(), String::new());
    html.push_str(&format!(
        "<!doctype html><html lang=\"{}\"><meta charset=\"utf-8\"><title>{}</title><body>\n",
        lang.code(),
        escaped(&subject)
    ));
    for (site, changes) in &by_site {
        let name = names.get(site).map_or("?", String::as_str);
        let name = shown(name);
        text.push_str(&format!("{name}\n{}\n\n", "=".repeat(name.chars().count().min(72))));
        html.push_str(&format!("<h2>{}</h2>\n<ul>\n", escaped(&name)));
        for one in changes {
            let entry = Entry::of(lang, one, links);
            entry.write_text(&mut text);
            entry.write_html(&mut html);
        }
        html.push_str("</ul>\n");
    }
    let all = format!("{}/changes", links.interface);
    let label = match (more, lang) {
        (true, Lang::En) => "There are more changes. All of them",
        (true, Lang::Ja) => "ほかにも変更があります。すべての変更",
        (false, Lang::En) => "All changes",
        (false, Lang::Ja) => "すべての変更",
    };
    text.push_str(&format!("{label}: {all}\n"));
    html.push_str(&format!("<p><a href=\"{}\">{label}</a></p>\n</body></html>\n", escaped(&all)));
    Digest { subject, text, html }
}

fn subject(lang: Lang, changes: &[ListedChange], sites: usize) -> String {
    let count = |kind| changes.iter().filter(|one| one.kind == kind).count();
    let parts: Vec<String> = ChangeKind::ALL
        .into_iter()
        .map(|kind| (kind, count(kind)))
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| match lang {
            Lang::En => format!("{count} {}", word(lang, kind)),
            Lang::Ja => format!("{}{count}件", word(lang, kind)),
        })
        .collect();
    match (lang, parts.is_empty()) {
        (Lang::En, true) => "No changes".to_owned(),
        (Lang::Ja, true) => "変更はありません".to_owned(),
        (Lang::En, false) => {
            let sites = if sites == 1 { "1 site".to_owned() } else { format!("{sites} sites") };
            format!("{} on {sites}", parts.join(", "))
        }
        (Lang::Ja, false) => format!("{sites}サイトで{}", parts.join("、")),
    }
}

/// The kind of a change in words.
pub(super) fn word(lang: Lang, kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::New => lang.t("new", "新規"),
        ChangeKind::Changed => lang.t("changed", "変更"),
        ChangeKind::Gone => lang.t("gone", "消失"),
    }
}

struct Entry {
    word: &'static str,
    title: String,
    url: String,
    when: String,
    line: Option<(String, bool)>,
    link: String,
}

impl Entry {
    fn of(lang: Lang, one: &ListedChange, links: DigestLinks<'_>) -> Self {
        let url = shown(&one.change.url.shown()).into_owned();
        Self {
            word: word(lang, one.kind),
            title: one.title().map_or_else(|| url.clone(), |title| shown(title).into_owned()),
            url,
            when: format!("{} UTC", readable_date(one.change.at_s)),
            line: one.line().map(|(line, removed)| (shown(line).into_owned(), removed)),
            link: link(one, links),
        }
    }

    fn write_text(&self, out: &mut String) {
        let Self { word, title, url, when, link, .. } = self;
        out.push_str(&format!("* {title} ({word})\n  {url}\n  {when}\n"));
        if let Some((line, removed)) = &self.line {
            out.push_str(&format!("  {} {line}\n", if *removed { '-' } else { '+' }));
        }
        out.push_str(&format!("  {link}\n\n"));
    }

    fn write_html(&self, out: &mut String) {
        let Self { word, title, url, when, link, .. } = self;
        let [title, url, when, link] = [title, url, when, link].map(|text| escaped(text));
        out.push_str(&format!(
            "<li><a href=\"{link}\"><bdi>{title}</bdi></a> ({word})<br><small><bdi>{url}</bdi> · {when}</small>"
        ));
        if let Some((line, removed)) = &self.line {
            let tag = if *removed { "del" } else { "ins" };
            out.push_str(&format!("<br><{tag}><bdi>{}</bdi></{tag}>", escaped(line)));
        }
        out.push_str("</li>\n");
    }
}

/// What changed, or the page as it is or was.
fn link(one: &ListedChange, links: DigestLinks<'_>) -> String {
    let change = &one.change;
    let url: &CanonicalUrl = &change.url;
    match (&change.version, &change.previous) {
        (Some(new), Some(old)) => {
            format!("{}/diff/{}/{}/{url}", links.replay, digits14(old.at_s), digits14(new.at_s))
        }
        (Some(row), None) | (None, Some(row)) => {
            format!("{}/web/{}/{url}", links.replay, digits14(row.at_s))
        }
        (None, None) => links.interface.to_owned(),
    }
}
