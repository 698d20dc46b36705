//! Dates, times and ages, in the most common languages of the web.

use super::Atom;

/// Replaces the atoms of dates, times and ages by one [`Atom::Date`] each.
pub(super) fn fold_dates(atoms: Vec<Atom>) -> Vec<Atom> {
    let mut folded: Vec<Atom> = Vec::with_capacity(atoms.len());
    let mut at = 0;
    while at < atoms.len() {
        let length = date_length(&atoms[at..]);
        if length == 0 {
            folded.push(atoms[at].clone());
            at += 1;
            continue;
        }
        at += length;
        // "Mon, 3 Mar 2024, 10:30" is one date.
        match folded.as_slice() {
            [.., Atom::Date] => {}
            [.., Atom::Date, Atom::Mark(',' | '.' | '-' | '–' | '|')] => {
                folded.pop();
            }
            _ => folded.push(Atom::Date),
        }
    }
    folded
}

/// How many atoms from here on form a part of a date; 0 if none.
fn date_length(atoms: &[Atom]) -> usize {
    let ahead = Ahead(atoms);
    match atoms.first() {
        Some(Atom::Number(_)) => ahead
            .time_length()
            .or_else(|| ahead.numeric_date_length())
            .or_else(|| ahead.day_and_month_length())
            .or_else(|| ahead.age_length())
            .unwrap_or(0),
        Some(Atom::Word(word)) => ahead.length_from_word(word),
        _ => 0,
    }
}

/// The atoms that follow, by position.
#[derive(Clone, Copy)]
struct Ahead<'a>(&'a [Atom]);

impl<'a> Ahead<'a> {
    fn number(self, at: usize) -> Option<&'a str> {
        match self.0.get(at) {
            Some(Atom::Number(digits)) => Some(digits),
            _ => None,
        }
    }

    fn mark(self, at: usize) -> Option<char> {
        match self.0.get(at) {
            Some(Atom::Mark(c)) => Some(*c),
            _ => None,
        }
    }

    fn word(self, at: usize) -> Option<&'a str> {
        match self.0.get(at) {
            Some(Atom::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn is_short(self, at: usize) -> bool {
        self.number(at).is_some_and(|number| number.len() <= 2)
    }

    fn is_day_or_year(self, at: usize) -> bool {
        self.number(at).is_some_and(|number| number.len() <= 2 || is_year(number))
    }

    /// 10:30, 10:30:05, with "am", "Uhr" or a zone after it.
    fn time_length(self) -> Option<usize> {
        if !(self.is_short(0) && self.mark(1) == Some(':') && self.is_short(2)) {
            return None;
        }
        let seconds = if self.mark(3) == Some(':') && self.is_short(4) { 2 } else { 0 };
        let suffix = usize::from(self.word(3 + seconds).is_some_and(is_time_suffix));
        Some(3 + seconds + suffix)
    }

    /// 2024-03-01, 1/3/2024, and 01.03.2024, which was read as one number.
    fn numeric_date_length(self) -> Option<usize> {
        if is_dotted_date(self.number(0)?) {
            return Some(1);
        }
        let separator = self.mark(1).filter(|c| matches!(c, '-' | '/'))?;
        let is_date = self.mark(3) == Some(separator)
            && self.is_day_or_year(0)
            && self.is_short(2)
            && self.is_day_or_year(4);
        let time_follows = usize::from(self.word(5) == Some("t"));
        is_date.then_some(5 + time_follows)
    }

    /// 3 March 2024, 3rd of March, 3. März.
    fn day_and_month_length(self) -> Option<usize> {
        let is_filler = |at: &usize| {
            matches!(self.mark(*at), Some('.' | '-'))
                || self
                    .word(*at)
                    .is_some_and(|word| is_ordinal(word) || matches!(word, "of" | "de"))
        };
        let month = 1 + (1..=3).take_while(is_filler).count();
        let is_date = self.is_short(0) && self.word(month).is_some_and(is_month);
        is_date.then(|| month + 1 + year_length(&self.0[month + 1..]))
    }

    /// 3 hours ago; 3分前, where the unit stays a word.
    fn age_length(self) -> Option<usize> {
        let unit = self.word(1)?;
        if is_date_unit(unit) {
            return Some(1);
        }
        (is_age_unit(unit) && self.word(2) == Some("ago")).then_some(3)
    }

    fn length_from_word(self, word: &str) -> usize {
        match word {
            "vor" if self.number(1).is_some() && self.word(2).is_some_and(is_age_unit) => 3,
            "yesterday" | "today" | "gestern" | "heute" | "今日" | "昨日" => 1,
            name if is_weekday(name) => 1,
            name if is_month(name) => self.length_from_month(),
            _ => 0,
        }
    }

    /// March 3rd, 2024; March 2024. "May" alone is a word like any other.
    fn length_from_month(self) -> usize {
        let name = 1 + usize::from(self.mark(1) == Some('.'));
        let mut length = name;
        if self.is_short(length) {
            length += 1;
            length += usize::from(self.word(length).is_some_and(is_ordinal));
        }
        let year = year_length(&self.0[length..]);
        if length > name || year > 0 { length + year } else { 0 }
    }
}

/// A year after the day and month: "2024", ", 2024", "-2024".
fn year_length(atoms: &[Atom]) -> usize {
    match atoms {
        [Atom::Number(year), ..] if is_year(year) => 1,
        [Atom::Mark(',' | '.' | '-'), Atom::Number(year), ..] if is_year(year) => 2,
        _ => 0,
    }
}

fn is_ordinal(word: &str) -> bool {
    matches!(word, "st" | "nd" | "rd" | "th")
}

fn is_year(number: &str) -> bool {
    number.len() == 4 && (number.starts_with("19") || number.starts_with("20"))
}

/// 01.03.2024 or 1.3.24.
fn is_dotted_date(number: &str) -> bool {
    let parts: Vec<&str> = number.split('.').collect();
    matches!(parts.as_slice(), [day, month, year]
        if (1..=2).contains(&day.len()) && (1..=2).contains(&month.len()) && is_year(year))
}

fn is_month(word: &str) -> bool {
    const MONTHS: [&str; 41] = [
        "jan",
        "january",
        "januar",
        "janvier",
        "feb",
        "february",
        "februar",
        "février",
        "mar",
        "march",
        "märz",
        "mars",
        "apr",
        "april",
        "avril",
        "may",
        "mai",
        "jun",
        "june",
        "juni",
        "juin",
        "jul",
        "july",
        "juli",
        "juillet",
        "aug",
        "august",
        "août",
        "sep",
        "sept",
        "september",
        "septembre",
        "oct",
        "october",
        "oktober",
        "octobre",
        "nov",
        "november",
        "novembre",
        "dec",
        "december",
    ];
    MONTHS.contains(&word) || matches!(word, "dez" | "dezember" | "décembre" | "okt")
}

fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 31] = [
        "mon",
        "tue",
        "tues",
        "wed",
        "thu",
        "thur",
        "thurs",
        "fri",
        "sat",
        "sun",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "montag",
        "dienstag",
        "mittwoch",
        "donnerstag",
        "freitag",
        "samstag",
        "sonnabend",
        "sonntag",
        "lundi",
        "mardi",
        "mercredi",
        "jeudi",
        "vendredi",
        "samedi",
    ];
    DAYS.contains(&word) || word == "dimanche"
}

fn is_time_suffix(word: &str) -> bool {
    matches!(
        word,
        "am" | "pm"
            | "uhr"
            | "gmt"
            | "utc"
            | "z"
            | "cet"
            | "cest"
            | "est"
            | "edt"
            | "pst"
            | "pdt"
            | "jst"
    )
}

fn is_age_unit(word: &str) -> bool {
    const UNITS: [&str; 24] = [
        "second", "seconds", "sec", "secs", "minute", "minutes", "min", "mins", "hour", "hours",
        "hr", "hrs", "day", "days", "week", "weeks", "month", "months", "year", "years", "minuten",
        "stunde", "stunden", "tagen",
    ];
    UNITS.contains(&word) || matches!(word, "tag" | "wochen" | "monaten" | "jahren")
}

/// 2024年3月1日, 10時, 3分前.
fn is_date_unit(word: &str) -> bool {
    word.starts_with(['年', '月', '日', '時', '分', '秒'])
}
