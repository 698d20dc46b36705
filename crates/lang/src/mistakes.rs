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
            None => match (self.setting_at(line), plain(message)) {
                (Some(setting), message) => format!("{setting}: {message}"),
                (None, message) => message,
            },
        };
        self.at(Some(line), &reason)
    }

    /// What is wrong with a value; the message begins with the name of its setting.
    pub fn refused(&self, message: &str) -> String {
        let name = message.split(' ').next().unwrap_or_default().trim_end_matches(':');
        let lines = 1..=self.text.lines().count();
        let is_set = |&line: &usize| self.setting_at(line).is_some_and(|setting| setting == name);
        // What is missing has no line; the table that it belongs to may have one.
        let table = name.split('.').next().unwrap_or_default();
        let is_head = |&line: &usize| self.table_and_key(line) == (table.to_owned(), None);
        let line = lines.clone().find(is_set).or_else(|| lines.clone().find(is_head));
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
        if key.is_none()
            && let Some((outer, _)) = table.split_once('.')
        {
            let outer = tables().map(|(table, _)| table).find(|known| *known == outer);
            return match outer {
                Some(outer) => format!(
                    "unknown table `[{table}]`; `[{outer}]` has settings and no tables of its own"
                ),
                None => format!("unknown table `[{table}]`; `nenrin config` shows all settings"),
            };
        }
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

/// What the reader of TOML says, in words for people who do not program.
fn plain(message: &str) -> String {
    let kinds = [
        ("unsigned integer", "whole number"),
        ("integer", "whole number"),
        ("floating point", "number"),
        ("boolean", "word"),
        ("string", "text"),
        ("sequence", "list"),
        ("map", "table"),
    ];
    let wanted = |text: &str| match text {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number, without quotes".to_owned(),
        "i64" => "a whole number".to_owned(),
        "f64" => "a number, without quotes".to_owned(),
        "a boolean" => "true or false, without quotes".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "a sequence" => "a list, such as [\"one\", \"two\"]".to_owned(),
        other if other.starts_with("struct ") => "a table of this name".to_owned(),
        other => other.to_owned(),
    };
    let given = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = given.and_then(|rest| rest.split_once(", expected ")) {
        let kind = kinds.iter().find_map(|(kind, word)| Some((found.strip_prefix(kind)?, word)));
        let found = kind.map_or(found.to_owned(), |(value, word)| format!("the {word}{value}"));
        let is_number = found.contains("number");
        let most = match expected {
            "u8" => " up to 255",
            "u16" => " up to 65535",
            "u32" => " up to 4294967295",
            "u64" | "usize" => " on",
            _ => "",
        };
        if found.starts_with("the whole number") && !most.is_empty() {
            return format!("{found} is not right here; write a whole number from 0{most}");
        }
        let units = if is_number && expected == "a string" {
            ", with its unit: \"5s\" or \"2h\" for a time, \"64MiB\" for a size"
        } else {
            ""
        };
        return format!("{found} is not right here; write {}{units}", wanted(expected));
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return rest.replacen(", expected ", " is not known here; write ", 1);
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        return format!("{rest} is missing");
    }
    if message == "duplicate key" {
        return "this is set twice".to_owned();
    }
    if message.starts_with("string values must be quoted") {
        return "the value is missing, or is text without quotes".to_owned();
    }
    message.to_owned()
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
            ("[crawl.inner]\nx = 1", "inner", 1, "unknown table `[crawl.inner]`; `[crawl]` has"),
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
        assert_eq!(
            file.refused("politeness.delay: too long"),
            "n.toml, line 4: politeness.delay: too long"
        );
    }

    #[test]
    fn types_are_named_in_plain_words() {
        for (message, said) in [
            (
                "invalid type: string \"many\", expected usize",
                "the text \"many\" is not right here; write a whole number, without quotes",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "the whole number `5` is not right here; write text in quotes, with its unit: \"5s\" or \"2h\" for a time, \"64MiB\" for a size",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "the whole number `-1` is not right here; write a whole number from 0 up to 4294967295",
            ),
            (
                "invalid type: integer `1`, expected a boolean",
                "the whole number `1` is not right here; write true or false, without quotes",
            ),
            (
                "unknown variant `maybe`, expected one of `auto`, `on`, `off`",
                "`maybe` is not known here; write one of `auto`, `on`, `off`",
            ),
            ("missing field `secret`", "`secret` is missing"),
            ("`soon` is not a duration", "`soon` is not a duration"),
        ] {
            assert_eq!(plain(message), said);
        }
    }
}
