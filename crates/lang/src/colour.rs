//! Colours on a terminal.

/// The colour of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// As the terminal shows text.
    None,
    /// What stands out: a heading, a date, a word that was searched.
    Bold,
    /// What is gone.
    Red,
    /// What is new.
    Green,
    /// What parts a list.
    Cyan,
}

const PLAIN: &str = "\u{1b}[0m";

impl Colour {
    /// Of a line of the comparison of two versions.
    pub fn of_comparison(line: &str) -> Self {
        match line.as_bytes() {
            [b'-', ..] => Self::Red,
            [b'+', ..] => Self::Green,
            b"@@" => Self::Cyan,
            _ => Self::None,
        }
    }

    /// Of a line of a list of changes: days stand out, and so do lines that came and went.
    pub fn of_changes(line: &str) -> Self {
        let text = line.trim_start();
        match line.len() - text.len() {
            _ if text.starts_with("+ ") || line.starts_with("new ") => Self::Green,
            _ if text.starts_with("- ") || line.starts_with("gone ") => Self::Red,
            0 | 1 if text.ends_with("(UTC)") => Self::Bold,
            _ => Self::None,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Bold => "\u{1b}[1m",
            Self::Red => "\u{1b}[31m",
            Self::Green => "\u{1b}[32m",
            Self::Cyan => "\u{1b}[36m",
        }
    }

    /// A line as a terminal shows it in this colour.
    pub fn paint(self, line: &str) -> String {
        match self {
            Self::None => line.to_owned(),
            _ => format!("{}{line}{PLAIN}", self.code()),
        }
    }

    /// A text with the parts between two marks in this colour.
    pub fn paint_between(self, (begin, end): (char, char), text: &str) -> String {
        text.replace(begin, self.code()).replace(end, PLAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_came_and_went_have_their_colours() {
        assert_eq!(Colour::of_comparison("+ a"), Colour::Green);
        assert_eq!(Colour::of_comparison("- a"), Colour::Red);
        assert_eq!(Colour::of_comparison("  a"), Colour::None);
        assert_eq!(Colour::of_changes("2024-03-01 (UTC)"), Colour::Bold);
        assert_eq!(Colour::of_changes("      + a line"), Colour::Green);
        assert_eq!(Colour::Red.paint("a"), "\u{1b}[31ma\u{1b}[0m");
        assert_eq!(Colour::None.paint("a"), "a");
        assert_eq!(Colour::Bold.paint_between(('<', '>'), "a <b>"), "a \u{1b}[1mb\u{1b}[0m");
    }
}
