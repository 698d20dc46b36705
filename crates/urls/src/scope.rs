use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::CanonicalUrl;

/// Which URLs belong to a site, given its top pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The top pages themselves and nothing else.
    List,
    /// URLs below the directory of a top page.
    Prefix,
    /// URLs on the host and port of a top page, http and https alike.
    Host,
    /// URLs on any host under the registrable domain of a top page (`a.example.co.uk` and
    /// `b.example.co.uk`).
    Domain,
    /// Any URL.
    Any,
}

impl Scope {
    /// Whether a URL belongs to the site with these top pages.
    pub fn contains(self, tops: &[CanonicalUrl], url: &CanonicalUrl) -> bool {
        match self {
            Self::Any => true,
            _ => tops.iter().any(|top| self.contains_for(top, url)),
        }
    }

    fn contains_for(self, top: &CanonicalUrl, url: &CanonicalUrl) -> bool {
        match self {
            Self::Any => true,
            Self::List => top == url,
            Self::Prefix => same_host(top, url) && url.path().starts_with(top.directory()),
            Self::Host => same_host(top, url),
            Self::Domain => {
                let domain = registrable(top.host());
                url.host() == domain
                    || url.host().strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
            }
        }
    }
}

/// To people, http on port 80 and https on port 443 of one host are one site.
fn same_host(a: &CanonicalUrl, b: &CanonicalUrl) -> bool {
    let explicit = |u: &CanonicalUrl| u.as_url().port();
    a.host() == b.host() && explicit(a) == explicit(b)
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.rsplit('.').next().is_some_and(|l| l.parse::<u8>().is_ok())
}

fn registrable(host: &str) -> &str {
    if is_address(host) { host } else { psl::domain_str(host).unwrap_or(host) }
}

/// Whether a host name is one under which names of different owners are registered, such as `co.uk`:
/// no cookie is for all of them. A name of a single word counts as one.
pub fn is_public_suffix(host: &str) -> bool {
    !is_address(host) && psl::domain_str(host).is_none()
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Prefix => "prefix",
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Any => "any",
        })
    }
}

impl FromStr for Scope {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::List, Self::Prefix, Self::Host, Self::Domain, Self::Any]
            .into_iter()
            .find(|scope| scope.to_string() == text)
            .ok_or_else(|| {
                format!("`{text}` is not a scope; write list, prefix, host, domain or any")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_holds_what_its_name_says() {
        let top = [CanonicalUrl::parse("https://www.example.co.uk/docs/index.html").unwrap()];
        let cases = [
            ("https://www.example.co.uk/docs/index.html", "list prefix host domain any"),
            ("https://www.example.co.uk/docs/a/b", "prefix host domain any"),
            ("http://www.example.co.uk/blog/", "host domain any"),
            ("https://cdn.example.co.uk/x", "domain any"),
            ("https://example.co.uk/", "domain any"),
            ("https://www.example.co.uk:8443/docs/", "domain any"),
            ("https://badexample.co.uk/", "any"),
            ("https://other.co.uk/", "any"),
        ];
        for (url, expected) in cases {
            let url = CanonicalUrl::parse(url).unwrap();
            for scope in ["list", "prefix", "host", "domain", "any"] {
                let inside = scope.parse::<Scope>().unwrap().contains(&top, &url);
                assert_eq!(inside, expected.split(' ').any(|s| s == scope), "{scope} {url}");
            }
        }
    }

    #[test]
    fn an_address_is_its_own_domain() {
        let top = [CanonicalUrl::parse("http://127.0.1.1:18080/").unwrap()];
        let other = CanonicalUrl::parse("http://127.0.1.2:18080/").unwrap();
        assert!(!Scope::Domain.contains(&top, &other));
        // The last two numbers of an address are no domain.
        let similar = CanonicalUrl::parse("http://10.9.1.1:18080/").unwrap();
        assert!(!Scope::Domain.contains(&top, &similar));
        assert!(Scope::Domain.contains(&top, &top[0]));
    }

    #[test]
    fn any_url_needs_no_top_page() {
        let url = CanonicalUrl::parse("http://e.com/").unwrap();
        assert!(Scope::Any.contains(&[], &url));
        assert!(!Scope::Host.contains(&[], &url));
    }
}
