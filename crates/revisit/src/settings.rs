//! How one site's pages are revisited, as a person sets it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use nenrin_calendar::write_duration;

use crate::{DAY_S, PolicySpec, RevisitError, duration::parse_duration};

/// How a site's pages are visited again, each on its own schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RevisitSettings {
    /// The rule.
    pub policy: PolicySpec,
    /// Shortest time between two visits to a page; `None` is one bucket.
    pub min_s: Option<i64>,
    /// No page waits longer.
    pub max_s: i64,
    /// Other bounds for some paths; the first that fits a page holds.
    pub paths: Vec<PathInterval>,
    /// Visits per day over all pages, at most.
    pub visits_per_day: Option<u64>,
}

impl Default for RevisitSettings {
    /// `auto`, and at least one visit in a year: a page never looked at again is lost.
    fn default() -> Self {
        Self {
            policy: PolicySpec::AUTO,
            min_s: None,
            max_s: 365 * DAY_S,
            paths: Vec::new(),
            visits_per_day: None,
        }
    }
}

impl RevisitSettings {
    /// Shortest and longest interval of a path, with buckets of `resolution_s`.
    pub fn bounds_s(&self, resolution_s: i64, path: &str) -> (i64, i64) {
        let rule = self.paths.iter().find(|rule| rule.fits(path));
        let min_s = rule.and_then(|rule| rule.min_s).or(self.min_s).unwrap_or(0);
        let max_s = rule.and_then(|rule| rule.max_s).unwrap_or(self.max_s).max(1);
        let min_s = min_s.max(resolution_s).max(1);
        (min_s, max_s.max(min_s))
    }
}

/// The longest pattern and the most stars that are accepted.
const PATTERN_MAX: usize = 500;
const STARS_MAX: usize = 10;

/// Limits for the intervals of some pages: `/news/* min=1h max=7d`.
///
/// The pattern is matched from the beginning of path and query; `*` matches anything, `$` at the
/// end the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathInterval {
    pattern: String,
    /// No sooner than this.
    pub min_s: Option<i64>,
    /// No later than this.
    pub max_s: Option<i64>,
}

impl PathInterval {
    /// Whether a path with its query is meant.
    pub fn fits(&self, path: &str) -> bool {
        let (pattern, anchored) = match self.pattern.strip_suffix('$') {
            Some(pattern) => (pattern, true),
            None => (self.pattern.as_str(), false),
        };
        let mut parts = pattern.split('*');
        let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
            return false;
        };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return !anchored || rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() && anchored {
                return rest.ends_with(part);
            }
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}

impl FromStr for PathInterval {
    type Err = RevisitError;

    fn from_str(text: &str) -> Result<Self, RevisitError> {
        let bad = |problem: &str| RevisitError::BadPathRule {
            text: text.to_owned(),
            problem: problem.to_owned(),
        };
        let mut words = text.split_whitespace();
        let pattern = words.next().ok_or_else(|| bad("the pattern is missing"))?;
        if !pattern.starts_with(['/', '*']) {
            return Err(bad("the pattern does not begin with / or *"));
        }
        if pattern.len() > PATTERN_MAX || pattern.matches('*').count() > STARS_MAX {
            return Err(bad("the pattern is too long or has more than 10 stars"));
        }
        let mut rule = Self { pattern: pattern.to_owned(), min_s: None, max_s: None };
        for word in words {
            let bound = match word.split_once('=') {
                Some(("min", bound)) => (&mut rule.min_s, bound),
                Some(("max", bound)) => (&mut rule.max_s, bound),
                _ => return Err(bad(&format!("'{word}' is neither min= nor max="))),
            };
            *bound.0 = Some(parse_duration(bound.1).map_err(|error| bad(&error.to_string()))?);
        }
        match (rule.min_s, rule.max_s) {
            (None, None) => Err(bad("it has neither min= nor max=")),
            (Some(min_s), Some(max_s)) if min_s > max_s => Err(bad("min is longer than max")),
            _ => Ok(rule),
        }
    }
}

impl fmt::Display for PathInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern)?;
        for (name, bound) in [("min", self.min_s), ("max", self.max_s)] {
            if let Some(bound_s) = bound {
                write!(f, " {name}={}", write_duration(bound_s))?;
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for PathInterval {
    type Error = RevisitError;

    fn try_from(text: String) -> Result<Self, RevisitError> {
        text.parse()
    }
}

impl From<PathInterval> for String {
    fn from(rule: PathInterval) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_from_the_beginning_with_stars_and_an_end() {
        let fits = |pattern: &str, path: &str| {
            format!("{pattern} min=1h").parse::<PathInterval>().unwrap().fits(path)
        };
        assert!(fits("/news/", "/news/today"));
        assert!(!fits("/news/", "/old/news/"));
        assert!(fits("*/print", "/a/b/print?x"));
        assert!(fits("/*.html$", "/a/b.html"));
        assert!(!fits("/*.html$", "/a/b.html?x"));
        assert!(fits("/a$", "/a") && !fits("/a$", "/ab"));
        assert!(fits("/*/x/*/y", "/1/x/2/y/3"));
    }

    #[test]
    fn the_first_rule_that_fits_bounds_a_page() {
        let settings = RevisitSettings {
            max_s: 100 * DAY_S,
            paths: vec![
                "/news/archive/ min=30d".parse().unwrap(),
                "/news/ min=2h max=1d".parse().unwrap(),
            ],
            ..RevisitSettings::default()
        };
        assert_eq!(settings.bounds_s(3600, "/news/a"), (7200, DAY_S));
        assert_eq!(settings.bounds_s(3600, "/news/archive/1"), (30 * DAY_S, 100 * DAY_S));
        assert_eq!(settings.bounds_s(3600, "/"), (3600, 100 * DAY_S));
    }

    #[test]
    fn settings_read_and_write_back_and_bad_rules_are_explained() {
        let mut settings = RevisitSettings::default();
        settings.paths.push("/a* min=1h max=7d".parse().unwrap());
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<RevisitSettings>(&text).unwrap(), settings);
        for (rule, problem) in [
            ("news min=1h", "begin with /"),
            ("/news", "neither min= nor max="),
            ("/news soon", "'soon' is neither"),
            ("/news min=2d max=1d", "longer than max"),
        ] {
            let error = rule.parse::<PathInterval>().unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
