//! What a site's owner adds to its scope: patterns, headers, parts to ignore, group and tags.

use nenrin_urls::{CanonicalUrl, UrlPattern};
use serde::{Deserialize, Serialize};

/// Which pages inside the scope are collected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PagePatterns {
    /// With any, only pages that fit one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<UrlPattern>,
    /// No pages that fit one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<UrlPattern>,
}

impl PagePatterns {
    /// The most patterns of a kind.
    pub const MAX: usize = 100;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether a page is wanted.
    pub fn admit(&self, url: &CanonicalUrl) -> bool {
        let fits = |patterns: &[UrlPattern]| patterns.iter().any(|pattern| pattern.matches(url));
        (self.include.is_empty() || fits(&self.include)) && !fits(&self.exclude)
    }
}

/// A header that is sent with every request to the site's own servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SiteHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl SiteHeader {
    /// The most headers of a site.
    pub const MAX: usize = 20;
    const VALUE_MAX_BYTES: usize = 4_000;
    /// Where a header with a secret belongs.
    pub const ADVICE: &'static str =
        "put it into a file and set it with `nenrin site set SITE --secret-headers FILE`";

    /// Whether its value is a secret, which is not a condition of a site that anyone may read.
    pub fn is_secret(&self) -> bool {
        let secret = ["authorization", "cookie", "proxy-authorization"];
        secret.contains(&self.name.to_ascii_lowercase().as_str())
    }

    /// They belong to the connection or are the crawler's own.
    const RESERVED: [&'static str; 9] = [
        "connection",
        "content-length",
        "host",
        "if-modified-since",
        "if-none-match",
        "range",
        "te",
        "transfer-encoding",
        "upgrade",
    ];
}

impl TryFrom<String> for SiteHeader {
    type Error = String;

    fn try_from(line: String) -> Result<Self, String> {
        let wrong = || format!("`{line}` is not a header; write it like Accept-Language: en");
        if line.chars().any(char::is_control) {
            return Err(wrong());
        }
        let (name, value) = line.split_once(':').ok_or_else(wrong)?;
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let in_name = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let in_value = |b: u8| (0x20..0x7f).contains(&b);
        if name.is_empty() || name.len() > 100 || !name.bytes().all(in_name) {
            return Err(wrong());
        }
        if value.len() > Self::VALUE_MAX_BYTES || !value.bytes().all(in_value) {
            return Err(wrong());
        }
        if Self::RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
            return Err(format!("the header {name} cannot be set"));
        }
        Ok(Self { name, value })
    }
}

impl std::str::FromStr for SiteHeader {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let header = Self::try_from(line.to_owned())?;
        match header.is_secret() {
            true => Err(format!("{} is a secret; {}", header.name, Self::ADVICE)),
            false => Ok(header),
        }
    }
}

impl From<SiteHeader> for String {
    fn from(header: SiteHeader) -> Self {
        header.to_string()
    }
}

impl std::fmt::Display for SiteHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

/// A part of pages whose changes are noise: an advertisement, a counter. Versions are stored whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnoredPart {
    /// The pages that have it.
    pub pages: UrlPattern,
    /// The CSS selector of the part.
    pub selector: String,
    /// Which of the elements that the selector names, from 1; 0 for all.
    #[serde(default)]
    pub nth: u32,
}

impl IgnoredPart {
    /// The most ignored parts of a site.
    pub const MAX: usize = 100;
}

/// As people write it: the pattern, the number unless it is 0, and the selector.
impl std::fmt::Display for IgnoredPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.nth {
            0 => write!(f, "{} {}", self.pages, self.selector),
            nth => write!(f, "{} {nth} {}", self.pages, self.selector),
        }
    }
}

impl std::str::FromStr for IgnoredPart {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let wrong = || format!("`{line}` is not a part of pages; write it like /news/* div.ad");
        let (pages, rest) = line.trim().split_once(char::is_whitespace).ok_or_else(wrong)?;
        let rest = rest.trim();
        let numbered = rest.split_once(char::is_whitespace);
        let (nth, selector) = match numbered.and_then(|(n, rest)| Some((n.parse().ok()?, rest))) {
            Some((nth, selector)) => (nth, selector.trim()),
            None => (0, rest),
        };
        if selector.is_empty() {
            return Err(wrong());
        }
        Ok(Self { pages: pages.parse()?, selector: selector.to_owned(), nth })
    }
}

/// Where a site is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteLabels {
    /// Sites of a group are listed together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Words by which sites are found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl SiteLabels {
    /// The most tags of a site.
    pub const TAGS_MAX: usize = 20;
    /// The longest group or tag.
    pub const CHARS_MAX: usize = 50;

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.group.is_empty() && self.tags.is_empty()
    }

    /// The labels as people type them: tags with commas between.
    ///
    /// # Errors
    /// A sentence that names the limit.
    pub fn typed(group: &str, tags: &str) -> Result<Self, String> {
        let group = group.trim().to_owned();
        let mut list: Vec<String> = Vec::new();
        for tag in tags.split([',', '、']).map(str::trim).filter(|tag| !tag.is_empty()) {
            if !list.iter().any(|known| known == tag) {
                list.push(tag.to_owned());
            }
        }
        let is_long = |text: &String| {
            text.chars().count() > Self::CHARS_MAX || text.chars().any(char::is_control)
        };
        if list.len() > Self::TAGS_MAX || is_long(&group) || list.iter().any(is_long) {
            let (tags, chars) = (Self::TAGS_MAX, Self::CHARS_MAX);
            return Err(format!("at most {tags} tags, each of at most {chars} characters"));
        }
        Ok(Self { group, tags: list })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_cannot_carry_another_one() {
        for wrong in
            ["", "a", ": b", "a b: c", "a: b\r\nc: d", "Host: e.com", "a: \u{e9}", "x\n: y"]
        {
            assert!(SiteHeader::try_from(wrong.to_owned()).is_err(), "{wrong:?}");
        }
        let header: SiteHeader = "X-Key:  a=b; c=d ".parse().unwrap();
        assert_eq!(header.to_string(), "X-Key: a=b; c=d");
        assert!("Cookie: a=b".parse::<SiteHeader>().is_err(), "it is a secret");
        assert!(SiteHeader::try_from("Cookie: a=b".to_owned()).is_ok(), "older archives have some");
    }

    #[test]
    fn an_ignored_part_is_one_line() {
        for line in ["/* div.ad", "/news/* 2 div.ad > p"] {
            assert_eq!(line.parse::<IgnoredPart>().unwrap().to_string(), line);
        }
        assert!("/news/*".parse::<IgnoredPart>().is_err());
    }

    #[test]
    fn patterns_choose_pages() {
        let url = |path: &str| CanonicalUrl::parse(&format!("https://e.com{path}")).unwrap();
        let pattern = |text: &str| vec![text.parse().unwrap()];
        let choice = PagePatterns { include: pattern("/a/*"), exclude: pattern("/a/b/*") };
        assert!(choice.admit(&url("/a/c")));
        assert!(!choice.admit(&url("/a/b/c")));
        assert!(!choice.admit(&url("/d")));
        assert!(PagePatterns::default().admit(&url("/d")));
    }

    #[test]
    fn tags_are_typed_with_commas() {
        let labels = SiteLabels::typed(" News ", "a, b,,a、日本").unwrap();
        assert_eq!((labels.group.as_str(), labels.tags.join("|")), ("News", "a|b|日本".to_owned()));
        assert!(SiteLabels::typed("", &"x".repeat(51)).is_err());
    }
}
