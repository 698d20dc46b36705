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

/// A file's text with one text of a table set; all else, comments too, stays as it is.
pub fn with_setting(text: &str, table: &str, field: &str, value: &str) -> String {
    let head = format!("[{table}]");
    let line = format!("{field} = \"{value}\"");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(section) = lines.iter().position(|line| line.trim() == head) else {
        if lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(String::new());
        }
        lines.extend([head, line]);
        return lines.join("\n") + "\n";
    };
    let end = lines[section + 1..]
        .iter()
        .position(|line| line.trim_start().starts_with('['))
        .map_or(lines.len(), |place| section + 1 + place);
    let is_field = |line: &String| {
        line.trim_start().strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    match lines[section + 1..end].iter().position(is_field) {
        Some(place) => lines[section + 1 + place] = line,
        None => lines.insert(section + 1, line),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] =
        &["contact", "webhook", "crawl.parallel", "crawl.order", "politeness.delay"];

    #[test]
    fn a_field_is_set_and_all_else_stays() {
        let set = |text: &str, field, value| with_setting(text, "serve", field, value);
        assert_eq!(set("", "password", "h"), "[serve]\npassword = \"h\"\n");
        let text =
            "contact = \"x\" # me\n[serve]\n# mine\npassword = \"old\"\n[state]\nbucket = \"1h\"\n";
        let new = set(text, "password", "h");
        assert_eq!(new, text.replace("old", "h"));
        let both = set(&new, "reader_password", "r");
        assert!(both.contains("[serve]\nreader_password = \"r\"\n# mine\npassword = \"h\""));
        assert_eq!(set(&both, "password", "h"), both);
    }

    #[test]
    fn unknown_names_are_named_with_the_nearest_right_one() {
        for (text, name, line, named) in [
            ("colour = 1", "colour", 1, "settings without a table: contact, webhook"),
            ("[politness]\ndelay = 1", "politness", 1, "did you mean `[politeness]`?"),
            ("[wood]\nrings = 1", "wood", 1, "`nenrin config` shows all settings"),
            ("paralel = 3", "paralel", 1, "did you mean `crawl.parallel`?"),
            ("\n[politeness]\n# why\ndelai = 1", "delai", 4, "did you mean `politeness.delay`?"),
            ("[crawl]\ncolour = 1", "colour", 2, "settings of [crawl]: parallel, order"),
        ] {
            let file = SettingsFile { file: Path::new("n.toml"), text, settings: NAMES };
            let at = text.find(name).unwrap();
            let said = file.unreadable(&format!("unknown field `{name}`, expected `x`"), at);
            assert!(said.starts_with(&format!("n.toml, line {line}: unknown ")), "{said}");
            assert!(said.contains(named), "{said}");
        }
    }

    #[test]
    fn wrong_values_are_named_with_their_line() {
        let text = "contact = \"me\"\ncrawl.order = \"fastest\"\n[politeness]\ndelay = \"soon\"";
        let file = SettingsFile { file: Path::new("n.toml"), text, settings: NAMES };
        assert_eq!(
            file.refused("crawl.order is `fastest`"),
            "n.toml, line 2: crawl.order is `fastest`"
        );
        assert_eq!(file.refused("crawl.depth is 0"), "n.toml: crawl.depth is 0");
        let said = file.unreadable("`soon` is not a duration", text.len() - 2);
        assert_eq!(said, "n.toml, line 4: politeness.delay: `soon` is not a duration");
    }
}
