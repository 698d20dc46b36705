//! Answers on standard output: aligned tables for people, JSON for programs.

use std::io::{self, Write};

use nenrin_lang::{shown, shown_json, wrapped};
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

/// The colour of a line, where a person wants colours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    None,
    Bold,
    Red,
    Green,
    Cyan,
}

const PLAIN: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";

/// The same in a colour.
pub(crate) fn say_in(colour: Colour, line: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let line = shown(line.as_ref());
    let line = width_of(&out).map_or(line.clone(), |width| wrapped(&line, width).into());
    let code = match colour {
        Colour::None => "",
        Colour::Bold => BOLD,
        Colour::Red => "\u{1b}[31m",
        Colour::Green => "\u{1b}[32m",
        Colour::Cyan => "\u{1b}[36m",
    };
    match code {
        code if !code.is_empty() && has_colours(&out) => writeln!(out, "{code}{line}{PLAIN}"),
        _ => writeln!(out, "{line}"),
    }
}

/// What stands around what was found: where a person wants colours, characters that [`say_marked`] turns into
/// them and that no text of an archive has there.
pub(crate) fn marks() -> Marks {
    match has_colours(&io::stdout()) {
        true => Marks { begin: '\u{e000}', end: '\u{e001}' },
        false => Marks::default(),
    }
}

/// Writes text with [`marks`].
pub(crate) fn say_marked(text: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let text = shown(text.as_ref());
    let text = width_of(&out).map_or(text.clone(), |width| wrapped(&text, width).into());
    match has_colours(&out) {
        true => writeln!(out, "{}", text.replace('\u{e000}', BOLD).replace('\u{e001}', PLAIN)),
        false => writeln!(out, "{text}"),
    }
}
