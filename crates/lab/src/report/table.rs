use std::fmt::Write as _;

use super::html::escape;

/// A table; columns whose cells are all numbers are set to the right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    caption: Option<String>,
    headings: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    cells: Vec<String>,
    strong: bool,
}

impl Table {
    /// A table with these column headings and no rows yet.
    #[must_use]
    pub fn new<T: Into<String>>(headings: impl IntoIterator<Item = T>) -> Self {
        Self { headings: headings.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// A line above the table.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = Some(caption.into());
        self
    }

    /// Adds a row. Missing cells are empty, surplus ones have no heading.
    #[must_use]
    pub fn row<T: Into<String>>(mut self, cells: impl IntoIterator<Item = T>) -> Self {
        self.push(cells);
        self
    }

    /// Adds a row to a table that is filled in a loop.
    pub fn push<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(Row { cells: cells.into_iter().map(Into::into).collect(), strong: false });
    }

    /// Sets the last row in bold: the result that the reader looks for.
    pub fn strong(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.strong = true;
        }
    }

    pub(super) fn write_html(&self, out: &mut String) {
        let columns = self
            .rows
            .iter()
            .map(|row| row.cells.len())
            .chain([self.headings.len()])
            .max()
            .unwrap_or(0);
        let numeric: Vec<bool> = (0..columns).map(|column| self.is_numeric(column)).collect();
        out.push_str("<div class=\"scroll\"><table>");
        if let Some(caption) = &self.caption {
            let _ = write!(out, "<caption>{}</caption>", escape(caption));
        }
        out.push_str("<thead>");
        write_row(out, "th", "", &self.headings, &numeric);
        out.push_str("</thead><tbody>\n");
        for row in &self.rows {
            let class = if row.strong { " class=\"strong\"" } else { "" };
            write_row(out, "td", class, &row.cells, &numeric);
        }
        out.push_str("</tbody></table></div>\n");
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut cells =
            self.rows.iter().filter_map(|row| row.cells.get(column)).filter(|c| !c.is_empty());
        cells.clone().next().is_some() && cells.all(|cell| looks_like_a_number(cell))
    }
}

fn write_row(out: &mut String, tag: &str, row_class: &str, cells: &[String], numeric: &[bool]) {
    let _ = write!(out, "<tr{row_class}>");
    for (column, is_number) in numeric.iter().enumerate() {
        let cell = cells.get(column).map_or("", String::as_str);
        let class = match (is_number, cell.chars().count() > 60) {
            (true, _) => " class=\"number\"",
            (false, true) => " class=\"wide\"",
            (false, false) => "",
        };
        let _ = write!(out, "<{tag}{class}>{}</{tag}>", escape(cell));
    }
    out.push_str("</tr>\n");
}

/// A number, perhaps with thousands separators, a sign, a percent sign or a dash for "none".
fn looks_like_a_number(cell: &str) -> bool {
    let bare: String = cell.chars().filter(|c| !matches!(c, ',' | '%' | '×' | ' ')).collect();
    matches!(cell, "–" | "-") || bare.replace('−', "-").parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(table: &Table) -> String {
        let mut out = String::new();
        table.write_html(&mut out);
        out
    }

    #[test]
    fn columns_of_numbers_are_right_aligned() {
        let out = html(&Table::new(["name", "pages"]).row(["bf", "1,234"]).row(["pr", "–"]));
        assert!(out.contains("<td class=\"number\">1,234</td>"), "{out}");
        assert!(out.contains("<td>bf</td>"), "{out}");
    }

    #[test]
    fn a_column_with_one_word_is_text() {
        let out = html(&Table::new(["x"]).row(["1"]).row(["one"]));
        assert!(!out.contains("number"), "{out}");
    }

    #[test]
    fn short_rows_are_filled_with_empty_cells() {
        let out = html(&Table::new(["a", "b"]).row(["only"]));
        assert!(out.contains("<td>only</td><td></td>"), "{out}");
    }

    #[test]
    fn only_the_marked_row_is_strong() {
        let mut table = Table::new(["a"]).row(["1"]).row(["2"]);
        table.strong();
        table.push(["3"]);
        let out = html(&table);
        assert_eq!(out.matches("class=\"strong\"").count(), 1);
        assert!(out.contains("<tr class=\"strong\"><td class=\"number\">2</td>"), "{out}");
    }
}
