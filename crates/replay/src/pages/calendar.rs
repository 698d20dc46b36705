//! All versions of a page, by year and day.

use std::collections::BTreeMap;

use maud::{Markup, html};
use nenrin_calendar::{MONTHS, day_of, days_in_month};
use nenrin_lang::Lang;
use nenrin_urls::CanonicalUrl;

use super::{in_interface, layout};
use crate::{Capture, ask::Ask, date::Stamp};

/// The most versions listed one by one below the calendar; the rest is found by day.
const MAX_LISTED: usize = 300;

/// A page's versions, oldest first.
pub(crate) struct Calendar<'a> {
    pub(crate) ask: &'a Ask,
    pub(crate) url: &'a CanonicalUrl,
    pub(crate) captures: &'a [Capture],
    /// The year shown; by default the newest with versions.
    pub(crate) year: Option<i64>,
    /// Whether there are more versions than were read.
    pub(crate) is_cut: bool,
}

impl Calendar<'_> {
    pub(crate) fn page(&self) -> Markup {
        let mut by_year: BTreeMap<i64, usize> = BTreeMap::new();
        for capture in self.captures {
            *by_year.entry(Stamp(capture.at_s).civil().year).or_default() += 1;
        }
        let newest = by_year.last_key_value().map_or(1970, |(year, _)| *year);
        let year = self.year.unwrap_or(newest);
        let t = |en, ja| self.lang().t(en, ja);
        let content = html! {
            h1 { (count(self.lang(), self.captures.len(), self.is_cut)) }
            p.url { bdi { (self.url.shown()) } }
            @if let (Some(first), Some(last)) = (self.captures.first(), self.captures.last()) {
                p {
                    @if self.captures.len() > 1 { (t("First ", "最初 ")) (self.link(first)) (t(", last ", "、最新 ")) }
                    @else { (t("Received ", "受信日時 ")) }
                    (self.link(last)) (t(" (UTC). ", "（UTC）。"))
                    @let is_same = first.version == last.version;
                    @if !is_same {
                        a href={ "/diff/" (Stamp(first.at_s)) "/" (Stamp(last.at_s)) "/" (self.url) } { (t("Compare them", "この2つを比較")) }
                    }
                    (in_interface(self.ask, self.url, if is_same { "" } else { ", " }))
                }
            }
            nav.years aria-label=(t("Years", "年")) {
                @for (&each, &versions) in &by_year {
                    @if each == year { b { (each) " " small { (versions) } } }
                    @else { a href={ "/web/" (format!("{each:04}")) "*/" (self.url) } { (each) " " small { (versions) } } }
                }
            }
            (self.months(year))
            (self.list(year))
        };
        layout(self.ask, t("All versions", "すべての版"), &content)
    }

    fn lang(&self) -> Lang {
        self.ask.lang()
    }

    fn link(&self, capture: &Capture) -> Markup {
        html! { a href={ "/web/" (Stamp(capture.at_s)) "/" (capture.url) } { (Stamp(capture.at_s).plain()) } }
    }

    fn months(&self, year: i64) -> Markup {
        let mut by_day: BTreeMap<(i64, i64), (usize, &Capture)> = BTreeMap::new();
        for capture in self.captures {
            let c = Stamp(capture.at_s).civil();
            if c.year == year {
                by_day.entry((c.month, c.day)).or_insert((0, capture)).0 += 1;
            }
        }
        html! {
            div.months {
                @for month in 1..=12 {
                    section.month.empty[!by_day.keys().any(|(of, _)| *of == month)] {
                        h3 { (self.month(year, month)) }
                        table {
                            tr { @for day in self.weekdays() { th scope="col" { (day) } } }
                            @for week in weeks(year, month) {
                                tr { @for day in week { (day_cell(self.lang(), day, by_day.get(&(month, day)))) } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn month(&self, year: i64, month: i64) -> String {
        match self.lang() {
            Lang::En => format!("{} {year}", MONTHS[(month - 1) as usize]),
            Lang::Ja => format!("{year}年{month}月"),
        }
    }

    fn weekdays(&self) -> [&'static str; 7] {
        match self.lang() {
            Lang::En => ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"],
            Lang::Ja => ["月", "火", "水", "木", "金", "土", "日"],
        }
    }

    fn list(&self, year: i64) -> Markup {
        let t = |en, ja| self.lang().t(en, ja);
        let of_year = || self.captures.iter().filter(|c| Stamp(c.at_s).civil().year == year);
        let mut before: Option<&Capture> = None;
        html! {
            h2 { (t("Versions of ", "")) (year) (t("", "年の版")) }
            div.scroll { table.list {
                tr {
                    th scope="col" { (t("received (UTC)", "受信日時（UTC）")) }
                    th scope="col" { (t("status", "状態")) }
                    th scope="col" { (t("type", "種類")) }
                    th.n scope="col" { (t("bytes", "バイト")) }
                    th scope="col" { (t("change", "変更")) }
                }
                @for capture in of_year().take(MAX_LISTED) {
                    tr {
                        td { (self.link(capture)) @if capture.url != *self.url { " " small { bdi { (capture.url.shown()) } } } }
                        td { (capture.status) }
                        td { (capture.mime) }
                        td.n { (capture.body_bytes) }
                        td { @if let Some(before) = before.replace(capture) {
                            a href={ "/diff/" (Stamp(before.at_s)) "/" (Stamp(capture.at_s)) "/" (self.url) } { (t("compare", "比較")) }
                        } }
                    }
                }
            } }
            @if of_year().count() > MAX_LISTED { p { (t("Only the first ", "最初の ")) (MAX_LISTED) (t(" are listed; the days above lead to the rest.", " 件だけを載せています。残りは上の日付から開けます。")) } }
        }
    }
}

fn count(lang: Lang, versions: usize, is_cut: bool) -> String {
    match (lang, versions, is_cut) {
        (Lang::En, 1, _) => "One version".to_owned(),
        (Lang::En, n, false) => format!("{n} versions"),
        (Lang::En, n, true) => format!("The first {n} versions"),
        (Lang::Ja, n, false) => format!("{n} 個の版"),
        (Lang::Ja, n, true) => format!("最初の {n} 個の版"),
    }
}

fn day_cell(lang: Lang, day: i64, versions: Option<&(usize, &Capture)>) -> Markup {
    html! {
        td {
            @match versions {
                Some((n, first)) => {
                    a class=[(*n > 1).then_some("many")] title=(count(lang, *n, false))
                        href={ "/web/" (Stamp(first.at_s)) "/" (first.url) } { (day) }
                }
                None => @if day > 0 { (day) }
            }
        }
    }
}

/// The weeks of a month, from Monday; 0 marks days of other months.
fn weeks(year: i64, month: i64) -> Vec<[i64; 7]> {
    // The epoch was a Thursday.
    let first = (day_of(year, month, 1) + 3).rem_euclid(7);
    let last = days_in_month(year, month);
    (0..(first + last + 6) / 7)
        .map(|week| {
            std::array::from_fn(|weekday| {
                let day = week * 7 + weekday as i64 - first + 1;
                if (1..=last).contains(&day) { day } else { 0 }
            })
        })
        .collect()
}

/// URLs below a prefix.
pub(crate) fn prefix_list(
    ask: &Ask,
    prefix: &CanonicalUrl,
    urls: &[CanonicalUrl],
    is_cut: bool,
) -> Markup {
    let t = |en, ja| ask.lang().t(en, ja);
    let content = html! {
        h1 { @if is_cut { (t("The first ", "最初の ")) } (urls.len()) (t(" archived pages below", " 件の保存ページ")) }
        p.url { bdi { (prefix.shown()) "*" } }
        ul.urls { @for url in urls { li { a href={ "/web/*/" (url) } { bdi { (url.shown()) } } } } }
    };
    layout(ask, t("Archived pages", "保存ページ"), &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_monday() {
        let march = weeks(2024, 3);
        assert_eq!(march[0], [0, 0, 0, 0, 1, 2, 3]);
        assert_eq!(march.last().unwrap(), &[25, 26, 27, 28, 29, 30, 31]);
        assert_eq!(weeks(2021, 2).len(), 4);
    }
}
