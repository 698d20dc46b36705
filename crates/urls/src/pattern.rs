use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::CanonicalUrl;

/// The longest pattern that is read.
const MAX_CHARS: usize = 500;

/// A pattern of addresses, with `*` for any run of characters. One that begins with `/` is compared
/// with the path and query from their beginning, one with `://` with the whole URL; any other may be
/// anywhere in the URL. At its end a pattern stops where it stops: `/news/*` is everything below
/// `/news/`, and `/news/` that page alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UrlPattern(String);

impl UrlPattern {
    /// Whether a URL fits the pattern. The time grows with the product of their lengths at most.
    pub fn matches(&self, url: &CanonicalUrl) -> bool {
        let pattern = self.0.as_bytes();
        if self.0.starts_with('/') {
            fits(pattern, url.path_and_query().as_bytes())
        } else if self.0.contains("://") {
            fits(pattern, url.as_str().as_bytes())
        } else {
            let anywhere = [b"*", pattern, b"*"].concat();
            fits(&anywhere, url.as_str().as_bytes())
        }
    }
}

/// Goes back to the last `*` only, which is enough.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

impl FromStr for UrlPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text.chars().count() > MAX_CHARS {
            return Err(format!("a pattern needs 1 to {MAX_CHARS} characters"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(format!("`{text}` is not a pattern: it contains a space"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for UrlPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<UrlPattern> for String {
    fn from(pattern: UrlPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for UrlPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_paths_urls_or_anything() {
        let matches = |pattern: &str, url: &str| {
            let pattern: UrlPattern = pattern.parse().unwrap();
            pattern.matches(&CanonicalUrl::parse(url).unwrap())
        };
        for (pattern, url, expected) in [
            ("/news/*", "https://e.com/news/1", true),
            ("/news/*", "https://e.com/old/news/1", false),
            ("/news/", "https://e.com/news/", true),
            ("/news/", "https://e.com/news/1", false),
            ("/*.pdf", "https://e.com/a/b.pdf", true),
            ("/*.pdf", "https://e.com/a/b.pdf?x=1", false),
            ("print=1", "https://e.com/a?print=1&b", true),
            ("*", "https://e.com/", true),
            ("https://a.e.com/*", "https://a.e.com/x", true),
            ("https://a.e.com/*", "https://b.e.com/x", false),
            ("/a*b*c", "https://e.com/a1b2b3c", true),
            ("/a*b*c", "https://e.com/a1b2b3", false),
        ] {
            assert_eq!(matches(pattern, url), expected, "{pattern} {url}");
        }
        for wrong in ["", " ", "a b", "a\nb", &"x".repeat(501)] {
            assert!(wrong.parse::<UrlPattern>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_the_product() {
        let pattern: UrlPattern = format!("/{}", "a*".repeat(240)).parse().unwrap();
        let url = CanonicalUrl::parse(&format!("https://e.com/{}b", "a".repeat(1_900))).unwrap();
        assert!(pattern.matches(&url));
    }
}
