//! robots.txt by RFC 9309. Parsed rules are not stored: the text of the file can be parsed again,
//! also for another agent.

mod lines;
mod pattern;

use std::time::Duration;

use nenrin_urls::{CanonicalUrl, MAX_URL_BYTES};

use lines::{Field, Line};
use pattern::{Pattern, normal_path};

/// How much of a robots.txt is read. RFC 9309 requires at least this much.
pub const MAX_ROBOTS_BYTES: usize = 500 * 1024;

/// How many Sitemap lines are used: far more than real sites have, few enough to be fetched.
const MAX_SITEMAPS: usize = 1000;

/// The longest Crawl-delay that is understood; callers cap it further.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What one robots.txt says to one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct RobotsRules {
    /// In the order of precedence: the first that matches decides.
    rules: Vec<Rule>,
    otherwise_allowed: bool,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
}

/// Whether a path may be fetched, and which line says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsVerdict {
    /// Whether the path may be fetched.
    pub allowed: bool,
    /// The line that decided; `None` when no line applies to the path.
    pub rule: Option<RobotsLine>,
}

/// A line of a robots.txt, to show a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsLine {
    /// Line number, from 1.
    pub number: usize,
    /// Its field and value, such as `Disallow: /private/`.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    allow: bool,
    pattern: Pattern,
    line: usize,
    text: String,
}

/// The rules of the groups for one agent, or for all agents, together.
#[derive(Debug, Default)]
struct Group {
    named: bool,
    rules: Vec<Rule>,
    crawl_delay: Option<Duration>,
}

impl RobotsRules {
    /// Reads a robots.txt for the agent with this product token (`nenrin` in `nenrin/1.0`). Groups
    /// that name the agent are merged; if none does, those for `*` are. Every line that can be
    /// understood is used; all others are skipped. Nothing beyond [`MAX_ROBOTS_BYTES`] is read, and
    /// the line cut by that limit is dropped.
    pub fn parse(text: &[u8], agent_token: &str) -> Self {
        let agent = product_token(agent_token.as_bytes());
        let (mut own, mut general) = (Group::default(), Group::default());
        let mut sitemaps: Vec<String> = Vec::new();
        let (mut for_own, mut for_general, mut in_rules) = (false, false, false);
        let text = lines::as_utf8(text);
        for line in lines::lines(&text) {
            match line.field {
                Field::UserAgent => {
                    if in_rules {
                        (for_own, for_general, in_rules) = (false, false, false);
                    }
                    if is_everyone(line.value) {
                        for_general = true;
                        general.named = true;
                    } else if !agent.is_empty()
                        && product_token(line.value).eq_ignore_ascii_case(agent)
                    {
                        for_own = true;
                        own.named = true;
                    }
                }
                Field::Allow | Field::Disallow | Field::CrawlDelay => {
                    // Crawl-delay is not in the RFC, but its author means the group above it: the
                    // next User-agent starts another.
                    in_rules = true;
                    if for_own {
                        own.add(&line);
                    }
                    if for_general {
                        general.add(&line);
                    }
                }
                Field::Sitemap => keep_sitemap(&mut sitemaps, line.value),
            }
        }
        let group = if own.named { own } else { general };
        Self { sitemaps, ..group.into_rules() }
    }

    /// No restriction: for a server without robots.txt (any 4xx answer).
    pub fn allow_all() -> Self {
        Self { rules: vec![], otherwise_allowed: true, crawl_delay: None, sitemaps: vec![] }
    }

    /// Nothing may be fetched: for a server whose robots.txt cannot be reached (5xx, network).
    pub fn disallow_all() -> Self {
        Self { otherwise_allowed: false, ..Self::allow_all() }
    }

    /// Whether a path, with its query, may be fetched: the longest pattern that matches decides,
    /// Allow when two are equally long. `/robots.txt` itself always may.
    pub fn allows(&self, path_and_query: &str) -> RobotsVerdict {
        let path = path_and_query.split(['?', '#']).next().unwrap_or_default();
        if path == "/robots.txt" {
            return RobotsVerdict { allowed: true, rule: None };
        }
        let normal = normal_path(path_and_query);
        match self.rules.iter().find(|rule| rule.pattern.matches(&normal)) {
            Some(rule) => RobotsVerdict {
                allowed: rule.allow,
                rule: Some(RobotsLine { number: rule.line, text: rule.text.clone() }),
            },
            None => RobotsVerdict { allowed: self.otherwise_allowed, rule: None },
        }
    }

    /// The delay between two requests that the server asks for; the longest, if several.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The sitemaps that the file names, for all agents, resolved against the URL of the
    /// robots.txt. Values that are not http or https URLs are left out.
    pub fn sitemaps(&self, robots_url: &CanonicalUrl) -> Vec<CanonicalUrl> {
        self.sitemaps.iter().filter_map(|text| robots_url.join(text).ok()).collect()
    }
}

impl Group {
    fn add(&mut self, line: &Line<'_>) {
        if line.field == Field::CrawlDelay {
            self.crawl_delay = self.crawl_delay.max(seconds(line.value));
            return;
        }
        // An empty Disallow forbids nothing, and an empty Allow permits nothing.
        let Some(pattern) = Pattern::parse(line.value) else { return };
        let allow = line.field == Field::Allow;
        let field = if allow { "Allow" } else { "Disallow" };
        let text = format!("{field}: {}", String::from_utf8_lossy(line.value));
        self.rules.push(Rule { allow, pattern, line: line.number, text });
    }

    fn into_rules(mut self) -> RobotsRules {
        self.rules.sort_by_key(|rule| {
            (std::cmp::Reverse(rule.pattern.octets()), std::cmp::Reverse(rule.allow))
        });
        RobotsRules {
            rules: self.rules,
            otherwise_allowed: true,
            crawl_delay: self.crawl_delay,
            sitemaps: vec![],
        }
    }
}

/// The product token at the start of a User-agent value: letters, `_` and `-`.
fn product_token(value: &[u8]) -> &[u8] {
    let is_token = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-');
    let end = value.iter().position(|byte| !is_token(byte)).unwrap_or(value.len());
    &value[..end]
}

/// `*`, alone or with something after a space.
fn is_everyone(value: &[u8]) -> bool {
    matches!(value, [b'*'] | [b'*', b' ' | b'\t', ..])
}

/// The number at the start of a Crawl-delay value.
fn seconds(value: &[u8]) -> Option<Duration> {
    let end = value.iter().position(|b| !b.is_ascii_digit() && *b != b'.').unwrap_or(value.len());
    let seconds: f64 = std::str::from_utf8(&value[..end]).ok()?.parse().ok()?;
    Some(Duration::from_secs_f64(seconds.min(MAX_CRAWL_DELAY.as_secs_f64())))
}

fn keep_sitemap(sitemaps: &mut Vec<String>, value: &[u8]) {
    let Ok(text) = std::str::from_utf8(value) else { return };
    let fits = !text.is_empty() && text.len() <= MAX_URL_BYTES && sitemaps.len() < MAX_SITEMAPS;
    if fits && !sitemaps.iter().any(|known| known == text) {
        sitemaps.push(text.to_owned());
    }
}

#[cfg(test)]
mod tests;
