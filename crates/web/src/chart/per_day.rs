use maud::{Markup, html};

use super::ticks;
use crate::{format, visitor::Visitor};

const WIDTH: f64 = 720.0;
/// Width of the name of a month, including space beside it.
const LABEL_WIDTH: f64 = 52.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 166.0;

/// How values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// Bars, overlapping on the same base line.
    Bars,
    /// One line for each series.
    Lines,
}

/// One value for each day.
pub(crate) struct Series<'a> {
    pub(crate) name: &'a str,
    /// The class for its colour.
    pub(crate) class: &'static str,
    pub(crate) values: Vec<u64>,
}

/// A chart over days.
pub(crate) struct PerDay<'a> {
    pub(crate) visitor: &'a Visitor,
    pub(crate) title: &'a str,
    pub(crate) first_day: i64,
    /// Days from one value to the next.
    pub(crate) step_days: i64,
    pub(crate) marks: Marks,
    pub(crate) series: Vec<Series<'a>>,
    /// A value as text.
    pub(crate) show: fn(u64) -> String,
}

impl PerDay<'_> {
    pub(crate) fn draw(&self) -> Markup {
        let most = self.series.iter().flat_map(|s| &s.values).copied().max().unwrap_or(0);
        let ticks = ticks(most);
        let top = ticks.last().copied().unwrap_or(1).max(1);
        html! {
            figure.chart {
                figcaption { (self.title) (self.legend()) }
                div.scroll.from-end {
                    svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.title) {
                        @for tick in &ticks {
                            @let y = format!("{:.1}", y(*tick, top));
                            line.grid x1=(LEFT) x2=(WIDTH) y1=(y) y2=(y) {}
                            text.axis.end x=(LEFT - 6.0) y=(y) dy="3" { ((self.show)(*tick)) }
                        }
                        @for (x, label) in self.dates() { text.axis.date x=(format!("{x:.1}")) y=(BOTTOM + 16.0) { (label) } }
                        @for series in &self.series { (self.drawn(series, top)) }
                        (self.hints())
                    }
                }
                (self.numbers())
            }
        }
    }

    fn days(&self) -> usize {
        self.series.iter().map(|s| s.values.len()).max().unwrap_or(0)
    }

    fn width(&self) -> f64 {
        (WIDTH - LEFT) / self.days().max(1) as f64
    }

    fn x(&self, i: usize) -> f64 {
        LEFT + self.width() * i as f64
    }

    fn legend(&self) -> Markup {
        html! {
            span.keys { @for series in &self.series {
                span.key { svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true" { rect class=(series.class) width="10" height="10" rx="2" {} } (series.name) }
            } }
        }
    }

    fn day(&self, i: usize) -> i64 {
        self.first_day + self.step_days * i as i64
    }

    /// Positions of labels: beginnings of months, with space between them.
    fn dates(&self) -> Vec<(f64, String)> {
        let mut dates: Vec<(f64, String)> = Vec::new();
        let mut last_month = String::new();
        for i in 0..self.days() {
            let month = format::date(self.day(i) * format::DAY_S)[..7].to_owned();
            let begins = i > 0 && month != last_month;
            last_month.clone_from(&month);
            let x = self.x(i);
            if begins && self.is_labelled(self.day(i)) && x < WIDTH - LABEL_WIDTH + 10.0 {
                dates.push((x, month));
            }
        }
        dates
    }

    /// Every month, every second, every third …, depending on the width.
    fn is_labelled(&self, day: i64) -> bool {
        let month_width = self.width() * 30.4 / self.step_days as f64;
        let every = (LABEL_WIDTH / month_width.max(1.0)).ceil().max(1.0) as i64;
        format::month_number(day) % every == 0
    }

    fn drawn(&self, series: &Series<'_>, top: u64) -> Markup {
        match self.marks {
            Marks::Bars => {
                let width = (self.width() * 0.8).max(0.5);
                html! {
                    g class=(series.class) {
                        @for (i, value) in series.values.iter().enumerate().filter(|(_, v)| **v > 0) {
                            @let y = y(*value, top);
                            rect x=(format!("{:.1}", self.x(i))) y=(format!("{y:.1}")) width=(format!("{width:.1}")) height=(format!("{:.1}", BOTTOM - y)) {}
                        }
                    }
                }
            }
            Marks::Lines => {
                let points: Vec<String> = series
                    .values
                    .iter()
                    .enumerate()
                    .map(|(i, v)| {
                        format!("{:.1},{:.1}", self.x(i) + self.width() / 2.0, y(*v, top))
                    })
                    .collect();
                // A line of one point would be invisible: the first day is a dot.
                if let [only] = series.values.as_slice() {
                    let x = self.x(0) + self.width() / 2.0;
                    return html! { circle class=(series.class) cx=(format!("{x:.1}")) cy=(format!("{:.1}", y(*only, top))) r="5" {} };
                }
                html! { polyline class=(format!("line {}", series.class)) points=(points.join(" ")) {} }
            }
        }
    }

    /// Tooltips with the figures.
    fn hints(&self) -> Markup {
        html! {
            @for i in 0..self.days() {
                rect.hint-area x=(format!("{:.1}", self.x(i))) y=(TOP) width=(format!("{:.1}", self.width())) height=(BOTTOM - TOP) {
                    title {
                        (format::date(self.day(i) * format::DAY_S))
                        @for series in &self.series { "\n" (series.name) ": " ((self.show)(series.values.get(i).copied().unwrap_or(0))) }
                    }
                }
            }
        }
    }

    fn numbers(&self) -> Markup {
        let t = |en, ja| self.visitor.t(en, ja);
        let is_quiet =
            |i: usize| self.series.iter().all(|s| s.values.get(i).is_none_or(|v| *v == 0));
        html! {
            details.numbers {
                summary { (t("Numbers", "数値")) }
                div.scroll.tall { table {
                    thead { tr {
                        th scope="col" { (t("Day", "日")) }
                        @for series in &self.series { th.n scope="col" { (series.name) } }
                    } }
                    tbody { @for i in (0..self.days()).rev().filter(|i| !is_quiet(*i)) {
                        tr {
                            td { (format::date(self.day(i) * format::DAY_S)) }
                            @for series in &self.series { td.n { ((self.show)(series.values.get(i).copied().unwrap_or(0))) } }
                        }
                    } }
                } }
            }
        }
    }
}

fn y(value: u64, top: u64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * (value as f64 / top as f64).min(1.0)
}
