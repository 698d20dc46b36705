use std::fmt::Write as _;

use super::Axis;
use super::axis::{Scale, trimmed};
use super::html::escape;
use super::svg;
use super::table::Table;

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Joined by straight lines.
    Line,
    /// Joined by steps: the value holds until the next point.
    Step,
    /// As single points.
    Scatter,
    /// As bars from zero.
    Bar,
}

/// Points of one kind with the name that the legend shows.
#[derive(Clone, Debug)]
pub struct Series {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) reference: bool,
}

impl Series {
    fn new(
        name: impl Into<String>,
        shape: Shape,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), shape, points, reference: false }
    }

    /// Points joined by straight lines.
    #[must_use]
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Line, points)
    }

    /// Points joined by steps.
    #[must_use]
    pub fn step(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Step, points)
    }

    /// Single points.
    #[must_use]
    pub fn scatter(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Scatter, points)
    }

    /// One bar for each category of a [`Plot::bars`], in the same order.
    #[must_use]
    pub fn bars(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let points = values.into_iter().enumerate().map(|(index, value)| (index as f64, value));
        Self::new(name, Shape::Bar, points)
    }

    /// Draws this series in grey and dashed: an ideal or a bound to compare with.
    #[must_use]
    pub fn as_reference(mut self) -> Self {
        self.reference = true;
        self
    }
}

/// A plot with its title, axes and series.
#[derive(Clone, Debug)]
pub struct Plot {
    pub(super) title: String,
    pub(super) note: Option<String>,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) categories: Vec<String>,
    pub(super) series: Vec<Series>,
}

/// Rows of numbers shown under a plot; longer series are thinned, and `results.json` has them all.
const MAX_NUMBER_ROWS: usize = 120;

impl Plot {
    /// A plot with plain linear axes and no series yet.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            note: None,
            x: Axis::linear(""),
            y: Axis::linear(""),
            categories: Vec::new(),
            series: Vec::new(),
        }
    }

    /// A bar chart over these categories; several [`Series::bars`] are side by side.
    #[must_use]
    pub fn bars<T: Into<String>>(
        title: impl Into<String>,
        categories: impl IntoIterator<Item = T>,
    ) -> Self {
        let categories = categories.into_iter().map(Into::into).collect();
        Self { categories, ..Self::new(title) }
    }

    /// The horizontal axis.
    #[must_use]
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// The vertical axis.
    #[must_use]
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// A line under the title: what to look for.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Adds a series; the first has the first colour.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.push(series);
        self
    }

    /// Adds a series to a plot that is filled in a loop.
    pub fn push(&mut self, series: Series) {
        self.series.push(series);
    }

    pub(super) fn write_html(&self, out: &mut String) {
        let _ = writeln!(out, "<figure><figcaption>{}</figcaption>", escape(&self.title));
        if let Some(note) = &self.note {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
        }
        if self.series.len() > 1 {
            svg::write_legend(self, out);
        }
        svg::write_plot(self, out);
        out.push_str("<details><summary>Numbers</summary>\n");
        self.numbers().write_html(out);
        out.push_str("</details></figure>\n");
    }

    /// The points as a table: one row for each x if all series have the same, otherwise one row for
    /// each point, because pairs of columns would mislead.
    fn numbers(&self) -> Table {
        let Some(first) = self.series.first() else { return Table::new(["no data"]) };
        let same_x = self.series.iter().all(|series| {
            series.points.len() == first.points.len()
                && series.points.iter().zip(&first.points).all(|(a, b)| a.0 == b.0)
        });
        if same_x { self.numbers_by_x(first) } else { self.numbers_by_point() }
    }

    fn numbers_by_x(&self, first: &Series) -> Table {
        let names = self.series.iter().map(|series| series.name.as_str());
        let mut table = Table::new([self.x.label.as_str()].into_iter().chain(names));
        for index in thinned(first.points.len()) {
            let values = self.series.iter().map(|series| trimmed(series.points[index].1, 5));
            table.push([self.x_text(first.points[index].0)].into_iter().chain(values));
        }
        table
    }

    fn numbers_by_point(&self) -> Table {
        let mut table = Table::new(["series", self.x.label.as_str(), self.y.label.as_str()]);
        for series in &self.series {
            for index in thinned(series.points.len()) {
                let (x, y) = series.points[index];
                table.push([series.name.clone(), self.x_text(x), trimmed(y, 5)]);
            }
        }
        table
    }

    /// An x value in words: its category or its number.
    pub(super) fn x_text(&self, x: f64) -> String {
        let category = (x >= 0.0).then(|| self.categories.get(x as usize)).flatten();
        category.cloned().unwrap_or_else(|| trimmed(x, 5))
    }

    /// Whether the point can be drawn on these axes.
    pub(super) fn shows(&self, (x, y): (f64, f64)) -> bool {
        self.x.can_show(x) && self.y.can_show(y)
    }

    /// Bars begin at zero, so that their lengths compare.
    pub(super) fn y_values(&self) -> impl Iterator<Item = f64> {
        let has_bars = self.series.iter().any(|series| series.shape == Shape::Bar);
        let zero = (has_bars && self.y.scale == Scale::Linear).then_some(0.0);
        let points = self.series.iter().flat_map(|series| series.points.iter().map(|p| p.1));
        points.chain(zero)
    }
}

/// Indices of at most [`MAX_NUMBER_ROWS`] points, evenly spread, the last always among them.
fn thinned(length: usize) -> impl Iterator<Item = usize> {
    let stride = length.div_ceil(MAX_NUMBER_ROWS).max(1);
    let last = length.checked_sub(1).filter(|last| last % stride != 0);
    (0..length).step_by(stride).chain(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(plot: &Plot) -> String {
        let mut out = String::new();
        plot.write_html(&mut out);
        out
    }

    #[test]
    fn every_point_shows_its_name_and_numbers_on_hover() {
        let plot = Plot::new("t").series(Series::scatter("dl1 <x>", [(1.0, 0.5)]));
        assert!(html(&plot).contains("<title>dl1 &lt;x&gt;: 1, 0.5</title>"), "{}", html(&plot));
    }

    #[test]
    fn numbers_with_the_same_x_share_rows() {
        let plot = Plot::new("t")
            .x(Axis::linear("pages"))
            .series(Series::line("a", [(1.0, 2.0)]))
            .series(Series::line("b", [(1.0, 3.0)]));
        assert!(html(&plot).contains(
            "<td class=\"number\">1</td><td class=\"number\">2</td><td class=\"number\">3</td>"
        ));
    }

    #[test]
    fn numbers_with_different_x_are_listed_by_series() {
        let plot = Plot::new("t")
            .series(Series::line("a", [(1.0, 2.0)]))
            .series(Series::line("b", [(4.0, 3.0)]));
        assert!(html(&plot).contains("<td>b</td><td class=\"number\">4</td>"), "{}", html(&plot));
    }

    #[test]
    fn more_than_five_lines_have_their_names_at_their_ends() {
        let lines = |count: usize| {
            (0..count).fold(Plot::new("t"), |plot, number| {
                plot.series(Series::line(format!("line {number}"), [(1.0, 2.0), (2.0, 2.0)]))
            })
        };
        assert!(!html(&lines(5)).contains("class=\"name"));
        let six = html(&lines(6));
        assert!((0..6).all(|number| six.contains(&format!("<text class=\"name s{number}\""))));
        // All lines end at one point; their names do not.
        let heights: std::collections::BTreeSet<&str> = six
            .split("<text class=\"name")
            .skip(1)
            .filter_map(|text| text.split(" y=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(heights.len(), 6);
    }

    #[test]
    fn long_series_are_thinned_and_keep_their_end() {
        let kept: Vec<usize> = thinned(1_000).collect();
        assert!(kept.len() <= MAX_NUMBER_ROWS + 1);
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, 999));
        assert_eq!(thinned(0).count(), 0);
    }

    #[test]
    fn categories_name_the_bars() {
        let plot = Plot::bars("t", ["bf", "pr"]).series(Series::bars("speed", [1.0, 2.0]));
        let out = html(&plot);
        assert!(out.contains(">pr</text>") && out.contains("speed: pr, 2"), "{out}");
    }

    #[test]
    fn values_that_a_log_axis_cannot_show_are_left_out() {
        let plot =
            Plot::new("t").y(Axis::log("y")).series(Series::line("a", [(0.0, 0.0), (1.0, 5.0)]));
        assert!(!html(&plot).contains("NaN") && !html(&plot).contains("inf"));
    }

    #[test]
    fn an_empty_plot_is_still_a_figure() {
        assert!(html(&Plot::new("nothing yet")).contains("no data"));
    }
}
