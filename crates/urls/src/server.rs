use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CanonicalUrl, UrlError};

/// One scheme, host and port: the unit of politeness. Written `http://example.com:8080`, the
/// scheme's default port left out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Server(String);

impl Server {
    pub(crate) fn of(url: &CanonicalUrl) -> Self {
        Self(url.as_url()[..url::Position::BeforePath].to_owned())
    }

    /// The server as text, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URL of a path on this server; the path starts with `/`.
    pub fn url(&self, path_and_query: &str) -> Result<CanonicalUrl, UrlError> {
        CanonicalUrl::parse(&format!("{}{path_and_query}", self.0))
    }

    /// Host name or address, without port.
    pub fn host(&self) -> &str {
        let rest = &self.0[self.0.find("://").map_or(0, |i| i + 3)..];
        let end = match rest.strip_prefix('[') {
            Some(v6) => v6.find(']').map_or(rest.len(), |i| i + 2),
            None => rest.find(':').unwrap_or(rest.len()),
        };
        &rest[..end]
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Server {
    type Error = UrlError;
    fn try_from(text: String) -> Result<Self, UrlError> {
        Ok(CanonicalUrl::parse(&text)?.server())
    }
}

impl From<Server> for String {
    fn from(server: Server) -> String {
        server.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_scheme_host_and_unusual_port() {
        for (url, server, host) in [
            ("http://Example.com/a", "http://example.com", "example.com"),
            ("https://example.com:443/", "https://example.com", "example.com"),
            ("http://example.com:8080/x?y", "http://example.com:8080", "example.com"),
            ("http://[::1]:81/", "http://[::1]:81", "[::1]"),
        ] {
            let found = CanonicalUrl::parse(url).unwrap().server();
            assert_eq!((found.as_str(), found.host()), (server, host));
            assert_eq!((&*found.to_string(), &*format!("{found:?}")), (server, server));
            assert_eq!(String::from(found.clone()), server);
            assert_eq!(Server::try_from(server.to_owned()).unwrap(), found);
        }
    }

    #[test]
    fn a_server_makes_its_urls() {
        let server = CanonicalUrl::parse("http://example.com:8080/x").unwrap().server();
        assert_eq!(
            server.url("/robots.txt").unwrap().as_str(),
            "http://example.com:8080/robots.txt"
        );
    }
}
