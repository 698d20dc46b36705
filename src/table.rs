//! Answers on standard output: aligned tables for people, JSON for programs.

use std::io::{self, Write};

use serde::Serialize;

/// A table with right-aligned numbers.
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes it to standard output.
    pub(crate) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (self.header.iter().enumerate())
            .map(|(column, head)| width(column).max(head.len()))
            .collect();
        let is_number = |cell: &str| {
            cell.starts_with(|c: char| c.is_ascii_digit()) && !cell.contains([':', '/'])
                || cell.is_empty()
                || cell == "–"
        };
        let right: Vec<bool> = (0..self.header.len())
            .map(|column| {
                let mut cells = self.rows.iter().filter_map(|row| row.get(column)).peekable();
                cells.peek().is_some() && cells.all(|cell| is_number(cell))
            })
            .collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| -> io::Result<()> {
            let mut text = String::new();
            for (column, cell) in cells.enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                if column > 0 {
                    text.push_str("  ");
                }
                let (before, after) = if right[column] { (&pad[..], "") } else { ("", &pad[..]) };
                text.push_str(before);
                text.push_str(cell);
                text.push_str(after);
            }
            writeln!(out, "{}", text.trim_end())
        };
        line(&mut self.header.iter().copied())?;
        for row in &self.rows {
            line(&mut row.iter().map(String::as_str))?;
        }
        Ok(())
    }
}

/// Writes one JSON document, or one line of a list, to standard output.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    // As an I/O error it keeps its kind, so that a reader that went away is recognised.
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Writes a line of text to standard output.
pub(crate) fn say(line: impl AsRef<str>) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", line.as_ref())
}
