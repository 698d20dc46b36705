//! Mistakes in a file of settings (TOML): the file, the line, the reason and the nearest right name.

use std::path::Path;

/// A file of settings and the names that it may set.
#[derive(Debug, Clone, Copy)]
pub struct SettingsFile<'a> {
    /// Where it is.
    pub file: &'a Path,
    /// What is in it.
    pub text: &'a str,
    /// Dotted names of all settings.
    pub settings: &'a [&'a str],
}

/// Names that differ by more than this from what was written are no help.
const FARTHEST: usize = 3;

impl SettingsFile<'_> {
    /// What is wrong with a file that could not be read as settings: the reader's message, and the byte
    /// where it stopped.
    pub fn unreadable(&self, message: &str, at: usize) -> String {
        let start = at.min(self.text.len());
        let line = 1 + self.text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
        let reason = match message.strip_prefix("unknown field `").and_then(|m| m.split_once('`')) {
            Some((name, _)) => self.unknown(line, name),
            None => match self.setting_at(line) {
                Some(setting) => format!("{setting}: {message}"),
                None => message.to_owned(),
            },
        };
        self.at(Some(line), &reason)
    }

    /// What is wrong with a value; the message begins with the name of its setting.
    pub fn refused(&self, message: &str) -> String {
        let name = message.split(' ').next().unwrap_or_default();
        let line = (1..=self.text.lines().count())
            .find(|&line| self.setting_at(line).is_some_and(|setting| setting == name));
        self.at(line, message)
    }

    fn at(&self, line: Option<usize>, reason: &str) -> String {
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        format!("{}{line}: {reason}", self.file.display())
    }

    /// The table that a line is in, and what is written in front of its equals sign.
    fn table_and_key(&self, line: usize) -> (String, Option<&str>) {
        let mut table = String::new();
        let mut key = None;
        for text in self.text.lines().take(line) {
            let text = text.trim();
            key = None;
            if let Some(name) = text.strip_prefix('[') {
                let name = name.split(']').next().unwrap_or_default();
                table = name.trim_matches(['[', ' ']).to_owned();
            } else if !text.starts_with('#') {
                key = text.split_once('=').map(|(key, _)| key.trim());
            }
        }
        (table, key)
    }

    /// The dotted name of the setting in a line.
    fn setting_at(&self, line: usize) -> Option<String> {
        let (table, key) = self.table_and_key(line);
        Some(dotted(&table, key?))
    }

    fn unknown(&self, line: usize, name: &str) -> String {
        let (table, key) = self.table_and_key(line);
        let tables = || self.settings.iter().filter_map(|setting| setting.split_once('.'));
        if key.is_none() {
            let near = nearest(name, tables().map(|(table, _)| table));
            return match near {
                Some(near) => format!("unknown table `[{name}]`; did you mean `[{near}]`?"),
                None => format!("unknown table `[{name}]`; `nenrin config` shows all settings"),
            };
        }
        let written = dotted(&table, name);
        let here = self
            .settings
            .iter()
            .copied()
            .filter(|setting| setting.rsplit_once('.').map_or("", |(of, _)| of) == table);
        let last = |setting: &&str| setting.rsplit('.').next().unwrap_or_default().to_owned();
        let near = nearest(&written, here.clone()).map(str::to_owned).or_else(|| {
            let all: Vec<_> = self.settings.iter().map(last).collect();
            let near = nearest(name, all.iter().map(String::as_str))?;
            let index = all.iter().position(|other| other == near)?;
            Some(self.settings[index].to_owned())
        });
        match near {
            Some(near) => format!("unknown setting `{written}`; did you mean `{near}`?"),
            None => {
                let names: Vec<_> = here.map(|setting| last(&setting)).collect();
                let place = if table.is_empty() {
                    "without a table".into()
                } else {
                    format!("of [{table}]")
                };
                format!("unknown setting `{written}`; settings {place}: {}", names.join(", "))
            }
        }
    }
}

fn dotted(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .filter(|(distance, other)| *distance <= FARTHEST.min(other.len() / 2))
        .min()
        .map(|(_, other)| other)
}
