use std::collections::BTreeMap;

use nenrin_lang::Lang;

/// Mistakes by field.
pub(crate) type Wrong = BTreeMap<&'static str, String>;

/// Collects mistakes; the first of each field counts.
pub(super) struct Check {
    pub(super) lang: Lang,
    pub(super) wrong: Wrong,
}

impl Check {
    pub(super) fn new(lang: Lang) -> Self {
        Self { lang, wrong: Wrong::new() }
    }

    /// Records the error of parsing a field.
    pub(super) fn error(&mut self, field: &'static str, error: &str) {
        self.wrong.entry(field).or_insert_with(|| self.lang.translate(error).into_owned());
    }

    pub(super) fn say(&mut self, field: &'static str, en: &str, ja: &str) {
        self.wrong.entry(field).or_insert_with(|| self.lang.t(en, ja).to_owned());
    }

    /// The value is none of those offered.
    pub(super) fn say_choose(&mut self, field: &'static str) {
        self.say(field, "choose one of these", "いずれかを選んでください");
    }

    pub(super) fn number(
        &mut self,
        field: &'static str,
        text: &str,
        low: u64,
        high: u64,
    ) -> Option<u64> {
        let number = text.trim().parse().ok().filter(|n| (low..=high).contains(n));
        if number.is_none() {
            let (en, ja) = if high > 1_000_000 {
                (
                    format!("write a whole number of at least {low}"),
                    format!("{low}以上の整数を入力してください"),
                )
            } else {
                (
                    format!("write a whole number from {low} to {high}"),
                    format!("{low}から{high}までの整数を入力してください"),
                )
            };
            self.say(field, &en, &ja);
        }
        number
    }

    /// A number that may be left out.
    pub(super) fn maybe_number(
        &mut self,
        field: &'static str,
        text: &str,
        low: u64,
        high: u64,
    ) -> Option<u64> {
        if text.trim().is_empty() { None } else { self.number(field, text, low, high) }
    }

    /// One value in every line that is not empty; the first wrong line is reported.
    pub(super) fn lines<T: std::str::FromStr<Err: std::fmt::Display>>(
        &mut self,
        field: &'static str,
        text: &str,
        most: usize,
    ) -> Vec<T> {
        let mut read = Vec::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match line.trim().parse::<T>() {
                Ok(one) => read.push(one),
                Err(error) => {
                    let error = error.to_string();
                    let en = format!("line {}: {error}", at + 1);
                    self.say(
                        field,
                        &en,
                        &format!("{}行目：{}", at + 1, self.lang.translate(&error)),
                    );
                }
            }
        }
        if read.len() > most {
            self.say(field, &format!("at most {most} lines"), &format!("{most}行までです"));
        }
        read
    }
}
