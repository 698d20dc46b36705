//! The page that an experiment writes: text, tables and plots, in one file without scripts or
//! outside resources, readable in light and dark, and `results.json` beside it.
//!
//! Read in this order: [`Report`], [`Table`], [`Plot`] with its [`Series`] and [`Axis`].

mod axis;
mod html;
mod plot;
mod svg;
mod table;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

pub use self::axis::{Axis, Scale};
pub use self::html::escape;
pub use self::plot::{Plot, Series, Shape};
pub use self::table::Table;

use crate::LabError;

/// The file with the plots, inside the folder of an experiment.
pub const REPORT_FILE: &str = "report.html";
/// The file with the numbers, inside the folder of an experiment.
pub const RESULTS_FILE: &str = "results.json";

/// A page under construction: what is added appears in that order.
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    subtitle: String,
    body: String,
    headings: Vec<String>,
}

impl Report {
    /// An empty page. The subtitle says in one sentence what was tried on what.
    #[must_use]
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: subtitle.into(),
            body: String::new(),
            headings: Vec::new(),
        }
    }

    /// Starts a section; the page lists its sections at the top when there are several.
    pub fn section(&mut self, heading: impl Into<String>) -> &mut Self {
        let heading = heading.into();
        let number = self.headings.len() + 1;
        self.body.push_str(&format!("<h2 id=\"section-{number}\">{}</h2>\n", escape(&heading)));
        self.headings.push(heading);
        self
    }

    /// A paragraph of plain text.
    pub fn paragraph(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.body.push_str(&format!("<p>{}</p>\n", escape(text.as_ref())));
        self
    }

    /// A command or other text that is shown unchanged.
    pub fn preformatted(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.body.push_str(&format!("<pre>{}</pre>\n", escape(text.as_ref())));
        self
    }

    /// A table.
    pub fn table(&mut self, table: &Table) -> &mut Self {
        table.write_html(&mut self.body);
        self
    }

    /// A plot; consecutive plots are side by side in a wide window.
    pub fn plot(&mut self, plot: &Plot) -> &mut Self {
        // A row of plots stays open by joining with the one that was just closed.
        match self.body.strip_suffix(html::PLOT_ROW_END) {
            Some(open_row) => self.body.truncate(open_row.len()),
            None => self.body.push_str(html::PLOT_ROW_START),
        }
        plot.write_html(&mut self.body);
        self.body.push_str(html::PLOT_ROW_END);
        self
    }

    /// The whole page.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(&self.title, &self.subtitle, &self.headings, &self.body)
    }

    /// Writes `report.html` and `results.json` into `dir`, which is created if need be. Each file
    /// appears whole or not at all.
    ///
    /// # Errors
    /// [`LabError::File`] when the folder or a file cannot be written.
    pub fn write(&self, dir: &Path, results: &Value) -> Result<(), LabError> {
        fs::create_dir_all(dir).map_err(LabError::file("create", dir))?;
        replace_file(&dir.join(RESULTS_FILE), format!("{results:#}\n").as_bytes())?;
        replace_file(&dir.join(REPORT_FILE), self.to_html().as_bytes())
    }
}

/// Writes beside the file and renames, so that a reader never sees half of it.
fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let partial = path.with_extension("partial");
    let written = File::create(&partial)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&partial, path));
    written.map_err(LabError::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Report {
        let mut report = Report::new("A <title>", "What & why");
        report.section("First").paragraph("1 < 2").preformatted("nenrin lab --out <DIR>");
        report.plot(&Plot::new("One").series(Series::line("s", [(0.0, 1.0), (1.0, 2.0)])));
        report.plot(&Plot::new("Two").series(Series::scatter("t", [(0.0, 1.0)])));
        report.table(&Table::new(["name", "value"]).row(["<b>", "1.5"]));
        report
    }

    #[test]
    fn what_came_from_outside_is_escaped_everywhere() {
        let html = sample().to_html();
        for raw in ["<b>", "A <title>", "1 < 2", "<DIR>"] {
            assert!(!html.contains(raw), "{raw} was not escaped");
        }
        assert!(html.contains("&lt;b&gt;") && html.contains("What &amp; why"));
    }

    #[test]
    fn a_page_needs_nothing_but_itself() {
        let html = sample().to_html();
        for outside in ["<script", "src=", "@import", "url(", "<link"] {
            assert!(!html.contains(outside), "{outside} found");
        }
    }

    #[test]
    fn plots_in_succession_share_a_row() {
        assert_eq!(sample().to_html().matches(html::PLOT_ROW_START.trim()).count(), 1);
    }

    #[test]
    fn a_plot_after_a_table_is_outside_of_it() {
        let mut report = sample();
        report.plot(&Plot::new("Three").series(Series::scatter("t", [(0.0, 1.0)])));
        let html = report.to_html();
        assert_eq!(html.matches(html::PLOT_ROW_START.trim()).count(), 2);
        assert!(html.contains("</table></div>\n<div class=\"plots\">"), "{html}");
    }

    #[test]
    fn both_files_are_written_and_no_partial_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("deep/er");
        sample().write(&folder, &json!({"pages": 3})).unwrap();
        sample().write(&folder, &json!({"pages": 4})).unwrap();
        let mut names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [REPORT_FILE, RESULTS_FILE]);
        let results = fs::read_to_string(folder.join(RESULTS_FILE)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&results).unwrap()["pages"], 4);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_in_the_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = sample().write(&file.join("sub"), &Value::Null).unwrap_err().to_string();
        assert!(error.contains("file/sub"), "{error}");
    }
}
