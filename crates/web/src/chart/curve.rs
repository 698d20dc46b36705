use maud::{Markup, html};

use crate::visitor::Visitor;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 708.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 182.0;
/// Marks on each axis besides 0.
const TICKS: u32 = 4;
/// With more points than this, they get no dots and no tooltips.
const DOTS_MAX: usize = 12;

/// One line of a chart.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    /// The class for its colour.
    pub(crate) class: &'static str,
    /// From left to right; the second number is a share from 0 to 1.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Shares as a function of an amount.
pub(crate) struct Curves<'a> {
    pub(crate) visitor: &'a Visitor,
    pub(crate) title: &'a str,
    /// Labels below and to the left.
    pub(crate) axes: (&'a str, &'a str),
    /// The amount at the right end.
    pub(crate) most: f64,
    /// An amount as text.
    pub(crate) show: fn(f64) -> String,
    pub(crate) curves: Vec<Curve<'a>>,
    /// The rows of the table: an amount, and the value of each curve there.
    pub(crate) rows: Vec<(f64, Vec<f64>)>,
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

impl Curves<'_> {
    pub(crate) fn draw(&self) -> Markup {
        let ticks = || (0..=TICKS).map(|tick| f64::from(tick) / f64::from(TICKS));
        html! {
            figure.chart {
                figcaption {
                    (self.title)
                    span.keys { @for curve in &self.curves {
                        span.key { svg width="14" height="10" viewBox="0 0 14 10" aria-hidden="true" { line class=(line_class(curve)) x1="0" x2="14" y1="5" y2="5" {} } (curve.name) }
                    } }
                }
                div.scroll {
                    svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.title) {
                        @for share in ticks() {
                            @let y = format!("{:.1}", y(share));
                            line.grid x1=(LEFT) x2=(RIGHT) y1=(y) y2=(y) {}
                            text.axis.end.zero[share == 0.0] x=(LEFT - 6.0) y=(y) dy="3" { (percent(share)) }
                            text class=(if share < 1.0 { "axis middle tick" } else { "axis last tick" }) x=(format!("{:.1}", self.x(share * self.most))) y=(BOTTOM + 15.0) { ((self.show)(share * self.most)) }
                        }
                        text.axis.middle.below x=((LEFT + RIGHT) / 2.0) y=(HEIGHT - 6.0) { (self.axes.0) }
                        @for curve in &self.curves { (self.drawn(curve)) }
                    }
                }
                (self.numbers())
            }
        }
    }

    fn x(&self, amount: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (amount / self.most).clamp(0.0, 1.0)
    }

    fn drawn(&self, curve: &Curve<'_>) -> Markup {
        let points: Vec<String> = curve
            .points
            .iter()
            .map(|(amount, share)| format!("{:.1},{:.1}", self.x(*amount), y(*share)))
            .collect();
        html! {
            polyline class=(line_class(curve)) points=(points.join(" ")) {}
            // Several curves with dots would hide each other.
            @if self.curves.len() == 1 && curve.points.len() <= DOTS_MAX {
                @for (amount, share) in &curve.points {
                    circle class=(curve.class) cx=(format!("{:.1}", self.x(*amount))) cy=(format!("{:.1}", y(*share))) r="4" {
                        title { (curve.name) "\n" (self.axes.0) ": " ((self.show)(*amount)) "\n" (self.axes.1) ": " (percent(*share)) }
                    }
                }
            }
        }
    }

    fn numbers(&self) -> Markup {
        html! {
            details.numbers {
                summary { (self.visitor.t("Numbers", "数値")) }
                div.scroll.tall { table {
                    thead { tr {
                        th.n scope="col" { (self.axes.0) }
                        @for curve in &self.curves { th.n scope="col" { (curve.name) } }
                    } }
                    tbody { @for (amount, shares) in &self.rows {
                        tr {
                            td.n { ((self.show)(*amount)) }
                            @for share in shares { td.n { (percent(*share)) } }
                        }
                    } }
                } }
            }
        }
    }
}

fn line_class(curve: &Curve<'_>) -> String {
    format!("line {}", curve.class)
}

fn y(share: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * share.clamp(0.0, 1.0)
}
