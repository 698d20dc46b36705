//! What a script names: the modules that it imports, its workers, and what it asks for by a literal
//! URL. Nothing is run: only strings in places where they can mean nothing but a URL are taken.
//!
//! [`collect`] reads scripts and JSON alike, token by token, and looks at a few tokens around each
//! string.

use std::collections::{BTreeMap, VecDeque};

use nenrin_urls::CanonicalUrl;

use super::LinkKind::{self, Embed, Page};
use super::references::References;
use super::tokens::{Token, Tokens};
use crate::css::css_references;

/// Tokens before and after a string that are looked at. The options of a `fetch` are after it.
const BEFORE: usize = 6;
const AFTER: usize = 24;

/// The most entries of an import map.
const MAX_MAP_ENTRIES: usize = 10_000;

/// A longer string is not a URL that anybody wrote.
const MAX_STRING_BYTES: usize = 4096;

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A script in a page. It may contain the page's state as JSON.
    Inline,
    /// A file with a script.
    File,
    /// JSON in a page, which its scripts show.
    InlineJson,
    /// A file with JSON. Only its pictures and the like are parts of a page.
    JsonFile,
}

impl Source {
    /// What a `script` element of this type contains, if it is read.
    pub(super) fn of_type(declared: &str) -> Option<Self> {
        let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            ""
            | "module"
            | "text/javascript"
            | "application/javascript"
            | "application/x-javascript"
            | "text/ecmascript"
            | "application/ecmascript" => Some(Self::Inline),
            "speculationrules" | "importmap" => None,
            kind if kind.ends_with("json") => Some(Self::InlineJson),
            _ => None,
        }
    }
}

/// An import map: which URL a bare name of a module stands for.
#[derive(Debug, Default)]
pub(super) struct ImportMap {
    names: BTreeMap<String, String>,
}

impl ImportMap {
    /// Takes the entries of a map, and adds the modules that it names.
    pub(super) fn read(&mut self, json: &str, references: &mut References<'_>) {
        let mut key: Option<String> = None;
        let mut tokens = Tokens::new(json).peekable();
        while let Some(token) = tokens.next() {
            let Token::String(text) = token else { continue };
            if tokens.peek() == Some(&Token::Mark(b':')) {
                key = Some(text.into_owned());
            } else if let Some(name) = key.take()
                && self.names.len() < MAX_MAP_ENTRIES
            {
                if !text.ends_with('/') {
                    references.add(&text, Embed);
                }
                self.names.insert(name, text.into_owned());
            }
        }
    }

    /// The URL of a module by the name that an import gives it.
    fn find(&self, name: &str) -> Option<String> {
        if let Some(url) = self.names.get(name) {
            return Some(url.clone());
        }
        // The longest prefix counts.
        let mut prefixes = self.names.iter().rev().filter(|(key, _)| key.ends_with('/'));
        prefixes.find_map(|(key, url)| Some(format!("{url}{}", name.strip_prefix(key.as_str())?)))
    }
}

/// Adds what a script or JSON names. `file` is the URL of a file, none for a part of a page.
pub(super) fn collect(
    text: &str,
    source: Source,
    file: Option<&CanonicalUrl>,
    references: &mut References<'_>,
) {
    let mut reader = Reader { source, file, references, in_import_scripts: false };
    let mut tokens = Tokens::new(text);
    let mut window: VecDeque<Token<'_>> = VecDeque::with_capacity(BEFORE + AFTER + 2);
    let mut at = 0;
    loop {
        while window.len() <= at + AFTER {
            match tokens.next() {
                Some(token) => window.push_back(token),
                None => break,
            }
        }
        if at >= window.len() {
            return;
        }
        if let (Source::Inline, Token::Word(word)) = (source, &window[at]) {
            reader.references.note_script(word);
        }
        reader.read(&Around { window: &window, at });
        at += 1;
        if at > BEFORE {
            window.pop_front();
            at -= 1;
        }
    }
}

/// A token and what is around it.
struct Around<'w, 't> {
    window: &'w VecDeque<Token<'t>>,
    at: usize,
}

impl Around<'_, '_> {
    fn before(&self, n: usize) -> Option<&Token<'_>> {
        self.window.get(self.at.checked_sub(n)?)
    }

    fn after(&self, n: usize) -> Option<&Token<'_>> {
        self.window.get(self.at + n)
    }

    fn word(&self, n: usize) -> &str {
        match self.before(n) {
            Some(&Token::Word(word)) => word,
            _ => "",
        }
    }

    fn mark(&self, n: usize) -> u8 {
        mark(self.before(n))
    }

    fn next_mark(&self) -> u8 {
        mark(self.after(1))
    }

    /// Whether the string is a whole argument: it is not joined to something else.
    fn is_argument(&self) -> bool {
        matches!(self.next_mark(), b')' | b',')
    }

    /// Whether the tokens after a comma are these words with points between them.
    fn is_followed_by(&self, words: &[&str]) -> bool {
        self.next_mark() == b','
            && words.iter().enumerate().all(|(n, word)| {
                let found = matches!(self.after(2 + 2 * n), Some(Token::Word(w)) if w == word);
                found && (n == 0 || mark(self.after(1 + 2 * n)) == b'.')
            })
    }

    /// Whether the options after a request's URL send it by another method than GET.
    fn is_sent_otherwise(&self) -> bool {
        let mut depth = 0;
        for n in 1..=AFTER {
            match self.after(n) {
                Some(Token::Mark(b'(' | b'{' | b'[')) => depth += 1,
                Some(Token::Mark(b')')) if depth == 0 => return false,
                Some(Token::Mark(b')' | b'}' | b']')) => depth -= 1,
                Some(Token::Word("method" | "body")) => {
                    let get = |token: Option<&Token<'_>>| matches!(token, Some(Token::String(m)) if m.eq_ignore_ascii_case("get"));
                    return !get(self.after(n + 2));
                }
                Some(_) => {}
                None => return false,
            }
        }
        false
    }
}

fn mark(token: Option<&Token<'_>>) -> u8 {
    match token {
        Some(Token::Mark(mark)) => *mark,
        _ => 0,
    }
}

struct Reader<'r, 'l> {
    source: Source,
    file: Option<&'r CanonicalUrl>,
    references: &'r mut References<'l>,
    /// Within the arguments of `importScripts`.
    in_import_scripts: bool,
}

impl Reader<'_, '_> {
    fn read(&mut self, around: &Around<'_, '_>) {
        let text = match around.before(0) {
            Some(Token::String(text)) if text.len() <= MAX_STRING_BYTES => text,
            Some(Token::Mark(b')')) => {
                self.in_import_scripts = false;
                return;
            }
            _ => return,
        };
        let is_json = matches!(self.source, Source::InlineJson | Source::JsonFile);
        if is_json || self.is_state(around) {
            self.add_state(text, around);
        } else if !self.add_module(text, around) && !self.add_request(text, around) {
            self.add_likely(text, around);
        }
    }

    /// Modules and what a worker imports, relative to the script itself.
    fn add_module(&mut self, text: &str, around: &Around<'_, '_>) -> bool {
        let is_call = around.mark(1) == b'(';
        let is_import = match (around.word(1), around.word(2)) {
            ("from", _) => true,
            ("import", _) => around.mark(2) != b'.',
            (_, "import") if is_call => around.mark(3) != b'.' && around.is_argument(),
            _ => false,
        };
        if is_import {
            let is_url = ["/", "./", "../", "http:", "https:"].iter().any(|s| text.starts_with(s));
            match self.references.imports.find(text) {
                Some(mapped) => self.references.add(&mapped, Embed),
                None if is_url => self.references.add(text, Embed),
                None => {}
            }
            return true;
        }
        if is_call && around.word(2) == "importScripts" {
            self.in_import_scripts = true;
        }
        let from_itself = self.in_import_scripts && around.is_argument()
            || is_call
                && around.word(2) == "URL"
                && around.is_followed_by(&["import", "meta", "url"]);
        if from_itself {
            self.references.add(text, Embed);
        }
        from_itself
    }

    /// What a script asks for, relative to its page.
    fn add_request(&mut self, text: &str, around: &Around<'_, '_>) -> bool {
        let is_asked = match around.mark(1) {
            b'(' if around.is_argument() => match around.word(2) {
                "Worker" | "SharedWorker" | "Audio" | "addModule" | "getJSON" => true,
                "fetch" => !around.is_sent_otherwise(),
                "get" => {
                    around.mark(3) == b'.' && matches!(around.word(4), "axios" | "$" | "jQuery")
                }
                "URL" => {
                    around.is_followed_by(&["document", "baseURI"])
                        || around.is_followed_by(&["location", "href"])
                        || around.is_followed_by(&["window", "location", "href"])
                }
                _ => false,
            },
            // x.open("GET", "url")
            b',' if around.is_argument() && around.mark(3) == b'(' => {
                let is_get = matches!(around.before(2), Some(Token::String(m)) if m.eq_ignore_ascii_case("get"));
                if around.word(4) == "FontFace" {
                    self.add_css_value(text);
                }
                is_get && around.word(4) == "open" && around.mark(5) == b'.'
            }
            // x.src = "url"
            b'=' => {
                around.mark(3) == b'.'
                    && matches!(around.word(2), "src" | "href" | "srcset" | "poster")
                    && !matches!(around.next_mark(), b'+' | b'.' | b'[' | b'?')
                    && is_part(text)
            }
            _ => false,
        };
        if is_asked {
            self.add_from_page(text, Embed);
        }
        is_asked
    }

    fn add_css_value(&mut self, value: &str) {
        let mut found = Vec::new();
        css_references(value, &mut |url| found.push(url.to_owned()));
        found.iter().for_each(|url| self.add_from_page(url, Embed));
    }

    /// Whether a string is the value of a quoted key, or in a list of strings: scripts that contain the state of a page have
    /// it as JSON.
    fn is_state(&self, around: &Around<'_, '_>) -> bool {
        let is_string = |n: usize| matches!(around.before(n), Some(Token::String(_)));
        let is_in_list = match around.mark(1) {
            b'[' => true,
            b',' => is_string(2) && matches!(around.mark(3), b'[' | b','),
            _ => false,
        };
        let is_value = around.mark(1) == b':' && is_string(2);
        let ends = matches!(around.next_mark(), b',' | b']' | b'}');
        self.source == Source::Inline && ends && (is_value || is_in_list)
    }

    /// URLs in JSON: pictures and the like wherever they are, pages where the key says so.
    fn add_state(&mut self, text: &str, around: &Around<'_, '_>) {
        let is_key = around.next_mark() == b':';
        let is_rooted = text.starts_with('/') || is_absolute(text);
        if is_key || text.contains(char::is_whitespace) {
            return;
        }
        let key = match (around.mark(1), around.before(2)) {
            (b':', Some(Token::String(key))) => key.as_ref(),
            _ => "",
        };
        if is_part(text) && (is_rooted || text.starts_with("./") || text.contains('/')) {
            // A relative reference in a file may be relative to anything.
            if is_rooted || self.file.is_none() {
                self.references.add(text, Embed);
            }
        } else if is_rooted && self.source != Source::JsonFile && names_page(key) {
            self.references.add(text, Page);
        }
    }

    /// Any string that looks like a URL, where the site wants that.
    fn add_likely(&mut self, text: &str, around: &Around<'_, '_>) {
        let is_joined = around.next_mark() == b'+' || around.mark(1) == b'+';
        if !self.references.limits.likely_script_urls || is_joined {
            return;
        }
        let is_plain = !text.contains(|c: char| c.is_whitespace() || "<>{}|\\^`\"'".contains(c));
        let is_rooted =
            is_absolute(text) || ["/", "./", "../"].iter().any(|start| text.starts_with(start));
        if is_plain && (is_rooted && text.len() > 2 || text.contains('/')) && is_part(text) {
            self.add_from_page(text, Embed);
        }
    }

    /// A reference relative to the page. Which page uses a file is not known: it is taken for one in
    /// the same folder, or in the folder above that contains the first folder of the reference.
    fn add_from_page(&mut self, text: &str, kind: LinkKind) {
        let is_relative = !text.starts_with('/') && !text.starts_with('.') && !is_absolute(text);
        if let (Some(file), true) = (self.file, is_relative)
            && let Some((first, _)) = text.split_once('/')
            && let Some((above, _)) = file.path().split_once(&format!("/{first}/"))
        {
            self.references.add(&format!("{above}/{text}"), kind);
        } else {
            self.references.add(text, kind);
        }
    }
}

fn is_absolute(text: &str) -> bool {
    let starts =
        |start: &str| text.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start));
    starts("https://") || starts("http://")
}

/// Whether a key of JSON says that its value is the URL of a page.
fn names_page(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["url", "href", "permalink", "link"].iter().any(|name| key == *name)
        || key.ends_with("_url")
        || key.ends_with("href")
}

/// Whether a reference ends like a file that is part of a page.
pub(super) fn is_part(reference: &str) -> bool {
    let path = reference.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let extension = extension.to_ascii_lowercase();
    !stem.is_empty() && PART_EXTENSIONS.contains(&extension.as_str())
}

const PART_EXTENSIONS: [&str; 34] = [
    "png", "jpg", "jpeg", "gif", "webp", "avif", "svg", "ico", "bmp", "jxl", "apng", "css", "js",
    "mjs", "cjs", "json", "wasm", "woff", "woff2", "ttf", "otf", "eot", "mp4", "m4v", "webm",
    "ogv", "mp3", "m4a", "ogg", "oga", "wav", "vtt", "glb", "xml",
];
