use std::fmt::Write as _;

use super::axis::{Ruler, short_number, trimmed};
use super::html::escape;
use super::plot::{Plot, Series, Shape};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
/// Room for the names at the ends of lines, which plots of more lines than this have.
const RIGHT_WITH_NAMES: f64 = 128.0;
const MAX_UNNAMED: usize = 5;
/// Longer names are cut at the end of their line, and names keep this distance.
const MAX_NAME_CHARS: usize = 18;
const NAME_HEIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 46.0;
/// Colours in the style sheet; series beyond them repeat the colours with dashes.
const COLOURS: usize = 8;
const DASHES: [&str; 3] = ["", "7 4", "2 4"];
/// Points with a dot or a tooltip in one series; a curve of thousands of points needs no more.
const MAX_MARKS: usize = 60;
/// A line with more points than this has no dots, only tooltips.
const MAX_DOTS: usize = 16;
/// Categories with longer names have them slanted.
const LONG_CATEGORY_CHARS: usize = 9;

/// The plot's rectangle and rulers: turns values into positions.
struct Frame<'a> {
    plot: &'a Plot,
    x: Ruler,
    y: Ruler,
    right: f64,
    bottom: f64,
}

impl Frame<'_> {
    fn x_position(&self, value: f64) -> f64 {
        LEFT + self.x.fraction(value) * (self.right - LEFT)
    }

    fn y_position(&self, value: f64) -> f64 {
        self.bottom - self.y.fraction(value) * (self.bottom - TOP)
    }

    fn position(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x_position(x), self.y_position(y))
    }
}

pub(super) fn write_plot(plot: &Plot, out: &mut String) {
    let x_values = plot.series.iter().flat_map(|series| series.points.iter().map(|p| p.0));
    let slanted = slants_categories(plot);
    let height = if slanted { HEIGHT + 44.0 } else { HEIGHT };
    let names = names_lines(plot);
    let frame = Frame {
        plot,
        right: WIDTH - if names { RIGHT_WITH_NAMES } else { RIGHT },
        x: plot.x.fit(x_values),
        y: plot.y.fit(plot.y_values()),
        bottom: HEIGHT - BOTTOM,
    };
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(&plot.title)
    );
    write_grid(&frame, out);
    if plot.categories.is_empty() {
        for (index, series) in plot.series.iter().enumerate() {
            write_series(&frame, index, series, out);
        }
        if names {
            write_names(&frame, out);
        }
    } else {
        write_bars(&frame, slanted, out);
    }
    write_labels(&frame, height, out);
    out.push_str("</svg>\n");
}

/// Whether there are so many lines that their colours alone would be hard to tell apart.
fn names_lines(plot: &Plot) -> bool {
    let is_line = |series: &&Series| matches!(series.shape, Shape::Line | Shape::Step);
    plot.categories.is_empty() && plot.series.iter().filter(is_line).count() > MAX_UNNAMED
}

/// The name of each line at its end, moved apart where lines end close together.
fn write_names(frame: &Frame<'_>, out: &mut String) {
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (index, series) in frame.plot.series.iter().enumerate() {
        let last = series.points.iter().rfind(|point| frame.plot.shows(**point));
        ends.extend(last.map(|point| (frame.y_position(point.1), index)));
    }
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = TOP + NAME_HEIGHT / 2.0;
    for (place, &(end, index)) in ends.iter().enumerate() {
        let below = (ends.len() - place - 1) as f64 * NAME_HEIGHT;
        let y = end.min(frame.bottom - below).max(free);
        free = y + NAME_HEIGHT;
        let series = &frame.plot.series[index];
        let short: String = series.name.chars().take(MAX_NAME_CHARS).collect();
        let cut = if short.len() < series.name.len() { "…" } else { "" };
        let _ = writeln!(
            out,
            "<text class=\"name {}\" x=\"{:.1}\" y=\"{:.1}\">{}{cut}</text>",
            series_class(index, series),
            frame.right + 6.0,
            y + 4.0,
            escape(&short)
        );
    }
}

fn slants_categories(plot: &Plot) -> bool {
    let longest = plot.categories.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    longest > LONG_CATEGORY_CHARS && plot.categories.len() > 3
        || plot.categories.len() * longest > 70
}

fn write_grid(frame: &Frame<'_>, out: &mut String) {
    let (left, right, bottom) = (LEFT, frame.right, frame.bottom);
    for tick in &frame.y.ticks {
        let y = frame.y_position(*tick);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 4.0,
            short_number(*tick)
        );
    }
    if frame.plot.categories.is_empty() {
        for tick in &frame.x.ticks {
            let x = frame.x_position(*tick);
            let _ = writeln!(
                out,
                "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 4.0,
                bottom + 18.0,
                short_number(*tick)
            );
        }
    }
    let base = frame.y_position(frame.y.base());
    let _ = writeln!(
        out,
        "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{base:.1}\" y2=\"{base:.1}\"/>"
    );
}

fn write_labels(frame: &Frame<'_>, height: f64, out: &mut String) {
    let middle = LEFT + (frame.right - LEFT) / 2.0;
    let centre = TOP + (frame.bottom - TOP) / 2.0;
    let _ = writeln!(
        out,
        "<text class=\"label\" x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text class=\"label\" x=\"12\" y=\"{centre}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 12 {centre})\">{}</text>",
        height - 8.0,
        escape(&frame.plot.x.label),
        escape(&frame.plot.y.label)
    );
}

fn write_series(frame: &Frame<'_>, index: usize, series: &Series, out: &mut String) {
    let shown: Vec<(f64, f64)> =
        series.points.iter().copied().filter(|point| frame.plot.shows(*point)).collect();
    let class = series_class(index, series);
    let _ = writeln!(out, "<g class=\"{class}\">");
    if series.shape != Shape::Scatter {
        let path = path_of(frame, series.shape, &shown);
        let _ = writeln!(out, "<path class=\"line\"{} d=\"{path}\"/>", dash_of(index, series));
    }
    write_marks(frame, series, &shown, out);
    out.push_str("</g>\n");
}

fn path_of(frame: &Frame<'_>, shape: Shape, points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let mut drawn = (f64::NAN, f64::NAN);
    for (index, point) in points.iter().enumerate() {
        let (x, y) = frame.position(*point);
        // Points closer than a quarter of a pixel look the same and only enlarge the file.
        let is_last = index + 1 == points.len();
        if (x - drawn.0).abs() < 0.25 && (y - drawn.1).abs() < 0.25 && !is_last {
            continue;
        }
        let _ = match (index, shape) {
            (0, _) => write!(path, "M{x:.1} {y:.1}"),
            (_, Shape::Step) => write!(path, "H{x:.1}V{y:.1}"),
            _ => write!(path, "L{x:.1} {y:.1}"),
        };
        drawn = (x, y);
    }
    path
}

/// Dots where there are few points, and a tooltip on each mark.
fn write_marks(frame: &Frame<'_>, series: &Series, shown: &[(f64, f64)], out: &mut String) {
    let scatter = series.shape == Shape::Scatter;
    let stride = if scatter { 1 } else { shown.len().div_ceil(MAX_MARKS).max(1) };
    let dots = scatter || shown.len() <= MAX_DOTS;
    let (class, radius) = if dots { ("dot", 3.5) } else { ("hit", 5.0) };
    for point in shown.iter().step_by(stride) {
        let (x, y) = frame.position(*point);
        let _ = writeln!(
            out,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\">\
             <title>{}: {}, {}</title></circle>",
            escape(&series.name),
            escape(&frame.plot.x_text(point.0)),
            trimmed(point.1, 5)
        );
    }
}

fn write_bars(frame: &Frame<'_>, slanted: bool, out: &mut String) {
    let plot = frame.plot;
    let slot = (frame.right - LEFT) / plot.categories.len() as f64;
    let group = (slot * 0.76).min(90.0 * plot.series.len() as f64);
    let bar = group / plot.series.len().max(1) as f64;
    let base = frame.y_position(frame.y.base());
    for (category, name) in plot.categories.iter().enumerate() {
        let centre = LEFT + (category as f64 + 0.5) * slot;
        for (index, series) in plot.series.iter().enumerate() {
            let x = centre - group / 2.0 + index as f64 * bar;
            let Some(value) = series.points.get(category).map(|point| point.1) else { continue };
            if plot.y.can_show(value) {
                write_bar(frame, series, index, (x, bar, base), (name, value), out);
            }
        }
        write_category(frame, slanted, centre, name, out);
    }
}

fn write_bar(
    frame: &Frame<'_>,
    series: &Series,
    index: usize,
    (x, width, base): (f64, f64, f64),
    (category, value): (&str, f64),
    out: &mut String,
) {
    let y = frame.y_position(value);
    let (top, height) = (y.min(base), (y - base).abs().max(0.5));
    // A gap between bars keeps neighbours apart without a border.
    let inner = (width - 2.0).max(1.0);
    let _ = writeln!(
        out,
        "<rect class=\"bar {}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{inner:.1}\" \
         height=\"{height:.1}\" rx=\"2\"><title>{}: {}, {}</title></rect>",
        series_class(index, series),
        x + 1.0,
        escape(&series.name),
        escape(category),
        trimmed(value, 5)
    );
    if width >= 30.0 {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x + width / 2.0,
            if value < 0.0 { top + height + 12.0 } else { (top - 4.0).max(10.0) },
            bar_value(value)
        );
    }
}

fn bar_value(value: f64) -> String {
    if value.abs() >= 1e4 { short_number_rounded(value) } else { trimmed(value, 3) }
}

fn short_number_rounded(value: f64) -> String {
    let magnitude = 10.0_f64.powf(value.abs().log10().floor() - 2.0);
    short_number((value / magnitude).round() * magnitude)
}

fn write_category(frame: &Frame<'_>, slanted: bool, x: f64, name: &str, out: &mut String) {
    let y = frame.bottom + 18.0;
    let placing = if slanted {
        format!("text-anchor=\"end\" transform=\"rotate(-32 {x:.1} {y:.1})\"")
    } else {
        "text-anchor=\"middle\"".to_owned()
    };
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {placing}>{}</text>", escape(name));
}

fn series_class(index: usize, series: &Series) -> String {
    if series.reference { "reference".into() } else { format!("s{}", index % COLOURS) }
}

fn dash_of(index: usize, series: &Series) -> String {
    let dash = if series.reference { "5 4" } else { DASHES[index / COLOURS % DASHES.len()] };
    if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") }
}

pub(super) fn write_legend(plot: &Plot, out: &mut String) {
    out.push_str("<ul class=\"legend\">");
    for (index, series) in plot.series.iter().enumerate() {
        let class = series_class(index, series);
        let mark = match series.shape {
            Shape::Line | Shape::Step => {
                format!("<path class=\"line\"{} d=\"M1 6H21\"/>", dash_of(index, series))
            }
            Shape::Scatter => "<circle class=\"dot\" cx=\"11\" cy=\"6\" r=\"4\"/>".into(),
            Shape::Bar => {
                "<rect class=\"bar\" x=\"5\" y=\"0\" width=\"12\" height=\"12\" rx=\"2\"/>".into()
            }
        };
        let _ = write!(
            out,
            "<li><svg class=\"{class}\" viewBox=\"0 0 22 12\" aria-hidden=\"true\">{mark}</svg>{}</li>",
            escape(&series.name)
        );
    }
    out.push_str("</ul>\n");
}
