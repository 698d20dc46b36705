//! Tables of text.

use crate::shown::{columns, wrapped};

/// Space that a folded line begins with.
const INDENT: &str = "      ";

/// A table with aligned columns; columns of numbers are aligned at their right.
#[derive(Debug, Default)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text. Where it is wider than `width`, the columns that do not fit follow below
    /// each row, with their names; those that say nothing (0, –) are left out there.
    pub fn text(&self, width: Option<usize>) -> String {
        let widths: Vec<usize> =
            (0..self.header.len()).map(|column| self.width_of(column)).collect();
        let fitting = width.map_or(widths.len(), |width| fitting(&widths, width));
        let right: Vec<bool> = (0..fitting).map(|column| self.is_of_numbers(column)).collect();
        let line = |cells: &[&str]| {
            let mut text = String::new();
            for (column, cell) in cells.iter().take(fitting).enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(columns(cell)));
                let (before, after) = if right[column] { (&pad[..], "") } else { ("", &pad[..]) };
                let space = if column > 0 { "  " } else { "" };
                text.extend([space, before, cell, after]);
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
            text
        };
        let mut text = line(&self.header);
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            text.push_str(&line(&cells));
            text.push_str(&self.folded(&cells, fitting, width.unwrap_or(usize::MAX)));
        }
        text
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| columns(cell)).max().unwrap_or(0);
        widest.max(self.header[column].len())
    }

    fn is_of_numbers(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column)).peekable();
        cells.peek().is_some() && cells.all(|cell| is_number(cell))
    }

    /// The cells behind the first `fitting`, with their names, in lines of at most `width`.
    fn folded(&self, cells: &[&str], fitting: usize, width: usize) -> String {
        let mut text = String::new();
        let mut used = 0;
        for (name, cell) in self.header.iter().zip(cells).skip(fitting) {
            if matches!(*cell, "" | "–" | "0" | "0 B") {
                continue;
            }
            let part = format!("{name} {cell}");
            let part_width = columns(&part);
            if used > 0 && used + 3 + part_width <= width {
                text.push_str(" · ");
                used += 3 + part_width;
            } else {
                text.push_str(if used > 0 { "\n" } else { "" });
                text.push_str(INDENT);
                used = INDENT.len() + part_width;
            }
            text.push_str(&part);
        }
        if used > 0 {
            text.push('\n');
        }
        wrapped(&text, width)
    }
}

/// How many columns, from the first on, fit into a line.
fn fitting(widths: &[usize], width: usize) -> usize {
    let mut used = 0;
    let fits = |column: &&usize| {
        used += if used > 0 { 2 } else { 0 } + **column;
        used <= width
    };
    widths.iter().take_while(fits).count().max(1)
}

fn is_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit()) && !cell.contains([':', '/'])
        || cell.is_empty()
        || cell == "–"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds() -> Table {
        let mut table = Table::new(&["round", "site", "visits", "failed", "received"]);
        table.row(["10", "The Ring", "26", "1", "6.62 kB"].map(str::to_owned).to_vec());
        table.row(["9", "Paper", "4", "0", "0 B"].map(str::to_owned).to_vec());
        table
    }

    #[test]
    fn numbers_are_aligned_at_their_right() {
        let expected = "round  site      visits  failed  received\n   \
                        10  The Ring      26       1   6.62 kB\n    \
                        9  Paper          4       0       0 B\n";
        assert_eq!(rounds().text(None), expected);
        assert_eq!(rounds().text(Some(41)), expected, "it just fits");
    }

    #[test]
    fn what_does_not_fit_follows_below_its_row() {
        let expected = "round  site\n   \
                        10  The Ring\n      \
                        visits 26\n      \
                        failed 1\n      \
                        received 6.62 kB\n    \
                        9  Paper\n      \
                        visits 4\n";
        assert_eq!(rounds().text(Some(22)), expected);
        assert!(rounds().text(Some(1)).contains("visits\n      26"), "however narrow");
        let mut long = Table::new(&["a", "why"]);
        long.row(["x", "too little was seen yet"].map(str::to_owned).to_vec());
        assert_eq!(long.text(Some(20)), "a\nx\n      why too little\n      was seen yet\n");
        let mut wide = Table::new(&["a long first column", "b", "c"]);
        wide.row(["x", "1", "2"].map(str::to_owned).to_vec());
        assert_eq!(wide.text(Some(20)), "a long first column\nx\n      b 1 · c 2\n");
    }

    #[test]
    fn an_empty_table_is_its_head() {
        assert_eq!(Table::new(&["a", "b"]).text(Some(80)), "a  b\n");
    }
}
