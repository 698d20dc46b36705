//! Fields that narrow a search down, for people who do not know the words for it. What they say
//! becomes part of the query, so that there is one way to write a search.

use maud::{Markup, html};
use nenrin_state::Site;

use crate::{format, guard::Fields, visitor::Visitor};

/// Times that a search can be about: in a query, in English, in Japanese.
const TIMES: [(&str, &str, &str); 5] = [
    ("", "at any time", "いつでも"),
    ("at", "as of", "この日の時点"),
    ("during", "at some time from … to", "この期間中"),
    ("appeared", "appeared from … to", "この期間に現れた"),
    ("vanished", "vanished from … to", "この期間に消えた"),
];
const KINDS: [&str; 5] = ["html", "pdf", "text", "feed", "data"];
/// Sites in the list.
const SITES_SHOWN: usize = 500;

/// A query, taken apart into what the fields are about and the rest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrowed {
    words: String,
    time: String,
    from: String,
    to: String,
    site: String,
    kind: String,
}

impl Narrowed {
    pub(crate) fn of(query: &str) -> Self {
        let mut found = Self::default();
        let mut words: Vec<&str> = Vec::new();
        for part in parts(query) {
            let (name, value) = part.split_once(':').unwrap_or(("", part));
            match name {
                "at" | "during" | "appeared" | "vanished" if found.time.is_empty() => {
                    // A date alone is both ends.
                    let (from, to) = value.split_once("..").unwrap_or((value, value));
                    (found.time, found.from, found.to) = (name.into(), from.into(), to.into());
                }
                "site" if found.site.is_empty() => found.site = value.to_owned(),
                "type" if found.kind.is_empty() => found.kind = value.to_owned(),
                _ => words.push(part),
            }
        }
        found.words = words.join(" ");
        found
    }

    pub(crate) fn submitted(fields: &Fields) -> Self {
        let text = |name| fields.get(name).trim().to_owned();
        Self {
            words: text("words"),
            time: text("time"),
            from: text("from"),
            to: text("to"),
            site: text("site"),
            kind: text("kind"),
        }
    }

    pub(crate) fn query(&self) -> String {
        let mut query = self.words.clone();
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                query = format!("{query} {name}:{value}").trim_start().to_owned();
            }
        };
        let Self { time, from, to, site, kind, .. } = self;
        match (time.as_str(), from.as_str(), to.as_str()) {
            ("", ..) | (_, "", "") => {}
            ("at", "", day) | ("at", day, _) => add("at", day),
            (time, from, to) if from == to => add(time, from),
            (time, from, to) => add(time, &format!("{from}..{to}")),
        }
        add("site", site);
        add("type", kind);
        query
    }

    pub(crate) fn form(&self, visitor: &Visitor, sites: &[Site], order: &str) -> Markup {
        let t = |en, ja| visitor.t(en, ja);
        let is_this = |site: &Site| self.site == site.id.0.to_string() || self.site == site.name;
        let day = |text: &str| format::parse_date(text).map(|_| text.to_owned());
        html! {
            form.filter.narrow action="/search" {
                input type="hidden" name="narrow" value="1";
                input type="hidden" name="words" value=(self.words);
                @if !order.is_empty() { input type="hidden" name="order" value=(order); }
                label { span.sr { (t("When", "時期")) }
                    select name="time" { @for (value, en, ja) in TIMES {
                        option value=(value) selected[self.time == value] { (t(en, ja)) }
                    } } }
                label { (t("from", "開始日")) " " input type="date" name="from" value=[day(&self.from)]; }
                label { (t("to", "終了日")) " " input type="date" name="to" value=[day(&self.to)]; }
                @if sites.len() > 1 {
                    label { span.sr { (t("Site", "サイト")) }
                        select name="site" {
                            option value="" { (t("all sites", "すべてのサイト")) }
                            @for site in sites.iter().take(SITES_SHOWN) {
                                option value=(site.id.0) selected[is_this(site)] { (site.name) }
                            }
                        } }
                } @else { input type="hidden" name="site" value=(self.site); }
                label { span.sr { (t("Kind", "種類")) }
                    select name="kind" {
                        option value="" { (t("all kinds", "すべての種類")) }
                        @for kind in KINDS { option value=(kind) selected[self.kind == kind] { (kind) } }
                    } }
                button { (t("Narrow down", "絞り込む")) }
            }
        }
    }
}

/// The parts of a query between spaces; a phrase in quotation marks is one.
fn parts(query: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let ends = |c: char| {
        is_quoted ^= c == '"';
        c.is_whitespace() && !is_quoted
    };
    query.split(ends).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_the_same_after_it_was_taken_apart() {
        for query in [
            "oak ring",
            "\"tree rings are: old\" -oak during:2023-01-01..2024-01-01 site:3 type:pdf",
            "x at:2024-03-01",
            "x vanished:2024..",
            "title:ring site:2",
            "",
        ] {
            assert_eq!(Narrowed::of(query).query(), query);
        }
        let found = Narrowed::of("during:2024-02 oak -site:4 site:\"a b\"");
        assert_eq!((found.words.as_str(), found.site.as_str()), ("oak -site:4", "\"a b\""));
        assert_eq!(found.query(), "oak -site:4 during:2024-02 site:\"a b\"");
    }

    #[test]
    fn fields_become_a_query() {
        let narrowed =
            |fields: &str| Narrowed::submitted(&Fields::parse(fields.as_bytes())).query();
        assert_eq!(narrowed("words=oak&time=at&from=&to=2024-01-02"), "oak at:2024-01-02");
        assert_eq!(
            narrowed("words=oak&time=appeared&from=2024-01-01&to="),
            "oak appeared:2024-01-01.."
        );
        assert_eq!(
            narrowed("words=oak&time=during&from=&to=&site=2&kind=feed"),
            "oak site:2 type:feed"
        );
        assert_eq!(narrowed("words=&time=&site=2"), "site:2");
    }
}
