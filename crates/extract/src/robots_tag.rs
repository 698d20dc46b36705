//! Robots directives of pages and answers.

use serde::{Deserialize, Serialize};

/// What `meta name=robots` or `X-Robots-Tag` demands. Whether to obey is the caller's policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MetaRobots {
    /// Not to be listed in search results.
    pub noindex: bool,
    /// Links are not to be followed.
    pub nofollow: bool,
    /// No archived copy is to be shown.
    pub noarchive: bool,
}

impl MetaRobots {
    /// Adds the directives of a list such as `noindex, nofollow`.
    pub(crate) fn add(&mut self, directives: &str) {
        for directive in directives.split([',', ' ', ';']) {
            match directive.trim().to_ascii_lowercase().as_str() {
                "noindex" => self.noindex = true,
                "nofollow" => self.nofollow = true,
                "noarchive" | "nocache" => self.noarchive = true,
                "none" => {
                    self.noindex = true;
                    self.nofollow = true;
                }
                _ => {}
            }
        }
    }

    /// The stricter of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            noindex: self.noindex || other.noindex,
            nofollow: self.nofollow || other.nofollow,
            noarchive: self.noarchive || other.noarchive,
        }
    }
}

/// Reads one `X-Robots-Tag` value. Directives for a named robot count only if the name is
/// `product`, our own token.
pub fn x_robots_tag(value: &str, product: &str) -> MetaRobots {
    let mut robots = MetaRobots::default();
    let mut concerns_us = true;
    for part in value.split(',') {
        let mut directive = part.trim();
        // "unavailable_after: date" and "max-snippet: 1" have a colon but name no robot.
        if let Some((name, rest)) = directive.split_once(':') {
            let name = name.trim().to_ascii_lowercase();
            if name.starts_with("max-") || name == "unavailable_after" {
                continue;
            }
            concerns_us = name == "*" || name.eq_ignore_ascii_case(product);
            directive = rest.trim();
        }
        if concerns_us {
            robots.add(directive);
        }
    }
    robots
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOINDEX: MetaRobots = MetaRobots { noindex: true, nofollow: false, noarchive: false };
    const NONE: MetaRobots = MetaRobots { noindex: true, nofollow: true, noarchive: false };

    #[test]
    fn directives_are_read_from_answers() {
        assert_eq!(x_robots_tag("noindex", "nenrin"), NOINDEX);
        assert_eq!(x_robots_tag("None", "nenrin"), NONE);
        assert_eq!(x_robots_tag("otherbot: noindex, nofollow", "nenrin"), MetaRobots::default());
        assert_eq!(x_robots_tag("Nenrin: noindex, nofollow", "nenrin"), NONE);
        assert_eq!(x_robots_tag("otherbot: nofollow, nenrin: noindex", "nenrin"), NOINDEX);
        assert_eq!(
            x_robots_tag(
                "max-snippet: 3, unavailable_after: 1 Jan 2030 00:00:00 GMT, noindex",
                "x"
            ),
            NOINDEX
        );
        assert!(x_robots_tag("noarchive", "x").and(NONE).noarchive);
    }
}
