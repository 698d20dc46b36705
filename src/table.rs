//! Answers on standard output: aligned tables for people, JSON for programs.

use std::io::{self, Write};

use nenrin_lang::{Colour, shown, shown_json, wrapped};
use nenrin_search::Marks;
use serde::Serialize;

pub(crate) use nenrin_lang::Table;

/// Writes a table to standard output, no wider than the terminal.
pub(crate) fn print_table(table: &Table) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let wanted = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
    let text = table.text(width_of(&out).or_else(wanted));
    let text = shown(&text);
    match text.split_once('\n') {
        Some((head, rows)) if has_colours(&out) => write!(out, "\u{1b}[1m{head}\u{1b}[0m\n{rows}"),
        _ => write!(out, "{text}"),
    }
}

/// How many columns a terminal has; `None` for anything else.
fn width_of(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    let window = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(window.ws_col)).filter(|width| *width > 0)
}

/// Whether a stream is shown to a person who wants colours.
pub(crate) fn has_colours(stream: &impl io::IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes one JSON document, or one line of a list, to standard output.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let text = serde_json::to_string(value)?;
    // As an I/O error it keeps its kind, so that a reader that went away is recognised.
    writeln!(out, "{}", shown_json(&text))?;
    Ok(())
}

/// Writes a line of text to standard output, on a terminal broken between words.
pub(crate) fn say(line: impl AsRef<str>) -> io::Result<()> {
    say_in(Colour::None, line)
}

/// The same in a colour, where a person wants colours.
pub(crate) fn say_in(colour: Colour, line: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let line = fitted(&out, line.as_ref());
    let colour = if has_colours(&out) { colour } else { Colour::None };
    writeln!(out, "{}", colour.paint(&line))
}

/// Text without characters that a terminal obeys, broken between words.
fn fitted(out: &impl std::os::fd::AsFd, text: &str) -> String {
    let text = shown(text);
    width_of(out).map_or_else(|| text.to_string(), |width| wrapped(&text, width))
}

/// The marks that a person's terminal shows as colour: no text of an archive has them.
const COLOURED: Marks = Marks { begin: '\u{e000}', end: '\u{e001}' };

/// What surrounds what was found: marks that [`say_marked`] turns into colour, where a person wants that.
pub(crate) fn marks() -> Marks {
    if has_colours(&io::stdout()) { COLOURED } else { Marks::default() }
}

/// Writes text with [`marks`].
pub(crate) fn say_marked(text: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let text = fitted(&out, text.as_ref());
    writeln!(out, "{}", Colour::Bold.paint_between((COLOURED.begin, COLOURED.end), &text))
}
