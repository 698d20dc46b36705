use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::{format, visitor::Visitor};

/// Weeks shown: a year and the current week.
const WEEKS: i64 = 53;
const CELL: i64 = 13;
const LEFT: i64 = 26;
const TOP: i64 = 16;

/// The first day of a calendar that ends on a day.
pub(crate) fn first_day(last_day: i64) -> i64 {
    last_day - format::weekday(last_day) - 7 * (WEEKS - 1)
}

/// A year of days, one column a week, darker where more happened; `link` gives the link of a day
/// with something on it.
pub(crate) fn calendar(
    visitor: &Visitor,
    last_day: i64,
    counts: &BTreeMap<i64, u64>,
    label: &str,
    link: impl Fn(i64) -> String,
) -> Markup {
    let first = first_day(last_day);
    let most = counts.range(first..=last_day).map(|(_, n)| *n).max().unwrap_or(0);
    let (width, height) = (LEFT + WEEKS * CELL, TOP + 7 * CELL);
    let (monday, wednesday, friday) =
        (visitor.t("Mon", "月"), visitor.t("Wed", "水"), visitor.t("Fri", "金"));
    html! {
        div.scroll.from-end tabindex="0" role="group" aria-label=(label) {
            svg.calendar viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="group" {
                @for (row, name) in [(0, monday), (2, wednesday), (4, friday)] {
                    text.axis x="0" y=(TOP + row * CELL + 10) { (name) }
                }
                @for week in 0..WEEKS {
                    @let monday = first + 7 * week;
                    @if let Some(day) = (monday..monday + 7).find(|d| format::day_of_month(*d) == 1 && *d <= last_day) {
                        text.axis x=(LEFT + week * CELL) y="10" { (format::month(visitor.lang, day)) }
                    }
                    @for day in (monday..monday + 7).take_while(|day| *day <= last_day) {
                        @let count = counts.get(&day).copied().unwrap_or(0);
                        (cell(visitor, week, day, count, most, &link))
                    }
                }
            }
        }
        p.legend {
            span { (visitor.t("less", "少")) }
            svg width="70" height="12" viewBox="0 0 70 12" aria-hidden="true" {
                @for level in 0..5 { rect class=(format!("heat h{level}")) x=(level * 14) y="0" width="11" height="11" rx="2" {} }
            }
            span { (visitor.t("more", "多")) }
        }
    }
}

fn cell(
    visitor: &Visitor,
    week: i64,
    day: i64,
    count: u64,
    most: u64,
    link: &impl Fn(i64) -> String,
) -> Markup {
    let (x, y) = (LEFT + week * CELL, TOP + format::weekday(day) * CELL);
    let class = format!("heat h{}", level(count, most));
    let versions = format::counted(visitor.lang, count, "version", "versions", " 版");
    let title = format!("{}: {versions}", format::date(day * format::DAY_S));
    let square = html! {
        rect class=(class) x=(x) y=(y) width="11" height="11" rx="2" { title { (title) } }
    };
    html! {
        @if count > 0 {
            a href=(link(day)) aria-label=(title) { (square) }
        } @else {
            (square)
        }
    }
}

/// Four levels by the square root: one busy day does not make all others pale, and where there is
/// at most one a day, all stay light.
fn level(count: u64, most: u64) -> u64 {
    match count {
        0 => 0,
        _ => (4.0 * (count as f64 / most.max(4) as f64).sqrt()).ceil().clamp(1.0, 4.0) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_begins_on_a_monday_and_holds_today() {
        for today in 20_000..20_014 {
            let first = first_day(today);
            assert_eq!(format::weekday(first), 0);
            assert!((first..first + 7 * WEEKS).contains(&today));
        }
    }

    #[test]
    fn levels_grow_with_counts() {
        assert_eq!(level(0, 0), 0);
        assert_eq!(level(1, 1), 2);
        let levels: Vec<_> = [0, 1, 7, 26, 57, 100].iter().map(|n| level(*n, 100)).collect();
        assert_eq!(levels, [0, 1, 2, 3, 4, 4]);
    }
}
