//! How a site is reached, and what is done for its scripts.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use nenrin_urls::{CanonicalUrl, Proxy, UrlPattern};
use serde::{Deserialize, Serialize};

/// How requests for a site leave this machine. What is not set is as for the archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteRoad {
    /// The proxy. It has no login here: that of the configuration is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// The address to send from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Why the site's own servers may have any certificate: who allowed it, or why it is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_certificate: Option<String>,
}

impl SiteRoad {
    /// The longest reason.
    pub const REASON_MAX_CHARS: usize = 1_000;

    /// Whether all is as for the archive.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Changes what is given, as people write it.
    ///
    /// # Errors
    /// A sentence that names the mistake.
    pub fn set(
        &mut self,
        proxy: Option<&str>,
        source: Option<&str>,
        any_certificate: Option<&str>,
    ) -> Result<(), String> {
        match proxy {
            None => {}
            Some("usual") => self.proxy = None,
            Some(text) => self.proxy = Some(text.parse()?),
        }
        match source {
            None => {}
            Some("usual") => self.source = None,
            Some(text) => {
                let wrong = |_| format!("`{text}` is not an address; write one like 192.0.2.7");
                self.source = Some(text.parse().map_err(wrong)?);
            }
        }
        match any_certificate {
            None => {}
            Some("none") => self.any_certificate = None,
            Some(reason) => self.any_certificate = Some(reason.trim().to_owned()),
        }
        self.problem().map_or(Ok(()), |problem| Err(problem.to_owned()))
    }

    /// What is wrong with it, if something is.
    pub fn problem(&self) -> Option<&'static str> {
        let has_login = matches!(&self.proxy, Some(Proxy::Server(proxy)) if proxy.login.is_some());
        let is_bad = |reason: &String| {
            reason.trim().is_empty() || reason.chars().count() > Self::REASON_MAX_CHARS
        };
        if has_login {
            Some("a site's proxy has no login; put it into fetch.proxies of the configuration")
        } else if self.any_certificate.as_ref().is_some_and(is_bad) {
            Some("the reason for accepting any certificate needs 1 to 1000 characters")
        } else {
            None
        }
    }
}

/// What is done for a site's scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteScripts {
    /// Which pages are rendered in a browser.
    #[serde(skip_serializing_if = "RenderWhen::is_never")]
    pub render: RenderWhen,
    /// Other choices for some pages; the first that fits applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RenderRule>,
    /// Whether strings in scripts that only look like URLs are collected as parts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub likely_urls: bool,
}

impl SiteScripts {
    /// The most rules for some pages.
    pub const PATHS_MAX: usize = 100;

    /// Whether nothing is done for them.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Changes what is given: words for all pages, rules for some.
    ///
    /// # Errors
    /// A sentence that names the mistake.
    pub fn set(&mut self, render: &[String], likely_urls: Option<bool>) -> Result<(), String> {
        let (rules, words): (Vec<&String>, Vec<&String>) =
            render.iter().partition(|text| text.trim().contains(char::is_whitespace));
        if let Some(word) = words.last() {
            self.render = word.parse()?;
            self.paths.clear();
        }
        if !rules.is_empty() {
            self.paths = rules.iter().map(|rule| rule.parse()).collect::<Result<_, _>>()?;
        }
        self.likely_urls = likely_urls.unwrap_or(self.likely_urls);
        Ok(())
    }

    /// Whether a page is rendered.
    pub fn render(&self, url: &CanonicalUrl) -> RenderWhen {
        let rule = self.paths.iter().find(|rule| rule.pages.matches(url));
        rule.map_or(self.render, |rule| rule.render)
    }
}

/// When a page is rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RenderWhen {
    /// No page is rendered.
    #[default]
    Never,
    /// Where a trial showed that it brings something.
    Auto,
    /// After every change.
    Always,
}

impl RenderWhen {
    fn is_never(&self) -> bool {
        *self == Self::Never
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Auto => "auto",
            Self::Always => "always",
        }
    }
}

impl FromStr for RenderWhen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Never, Self::Auto, Self::Always];
        let found = all.into_iter().find(|when| when.name() == text.trim());
        found.ok_or_else(|| format!("`{text}` is not a choice; write auto, never or always"))
    }
}

/// A choice for some pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenderRule {
    /// The pages.
    pub pages: UrlPattern,
    /// When they are rendered.
    pub render: RenderWhen,
}

/// As people write it: the pattern and the word.
impl fmt::Display for RenderRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pages, self.render.name())
    }
}

impl FromStr for RenderRule {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (pages, when) = line
            .trim()
            .rsplit_once(char::is_whitespace)
            .ok_or_else(|| format!("`{line}` is not a rule; write it like /app/* always"))?;
        Ok(Self { pages: pages.trim().parse()?, render: when.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let url = |path: &str| CanonicalUrl::parse(&format!("https://e.com{path}")).unwrap();
        let rule = |line: &str| line.parse::<RenderRule>().unwrap();
        let scripts = SiteScripts {
            render: RenderWhen::Auto,
            paths: vec![rule("/app/old/* never"), rule("/app/* always")],
            likely_urls: false,
        };
        for (path, when) in [
            ("/", RenderWhen::Auto),
            ("/app/x", RenderWhen::Always),
            ("/app/old/x", RenderWhen::Never),
        ] {
            assert_eq!(scripts.render(&url(path)), when, "{path}");
        }
        assert_eq!(rule("/app/* always").to_string(), "/app/* always");
        for wrong in ["", "always", "/app/* sometimes"] {
            assert!(wrong.parse::<RenderRule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_road_without_anything_takes_no_space_and_a_login_is_refused() {
        assert_eq!(serde_json::to_string(&SiteRoad::default()).unwrap(), "{}");
        let road = SiteRoad {
            proxy: Some("socks5h://127.0.0.1:9050".parse().unwrap()),
            any_certificate: Some("an old server of ours".to_owned()),
            ..SiteRoad::default()
        };
        assert_eq!(road.problem(), None);
        let again: SiteRoad = serde_json::from_str(&serde_json::to_string(&road).unwrap()).unwrap();
        assert_eq!(again, road);
        let login = SiteRoad { proxy: Some("http://a:b@p".parse().unwrap()), ..road.clone() };
        assert!(login.problem().is_some());
        let silent = SiteRoad { any_certificate: Some("  ".to_owned()), ..road };
        assert!(silent.problem().is_some());
    }
}
