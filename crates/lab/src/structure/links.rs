//! The links of a page as paths on its own site, by the rules of the golden cases.

use nenrin_extract::{ContentKind, ExtractLimits, LinkKind, page_links};
use nenrin_urls::CanonicalUrl;

/// A link as a path on the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SiteLink {
    pub(crate) path: String,
    pub(crate) frame: bool,
}

/// The links of the page at `url` that stay on the site's hosts: http and https are the same, query
/// and fragment are dropped, a directory means its index.
pub(crate) fn site_links(url: &CanonicalUrl, hosts: &[String], body: &[u8]) -> Vec<SiteLink> {
    let found =
        page_links(url, ContentKind::Html, Some("text/html"), body, &ExtractLimits::default());
    let on_site = |link: &&nenrin_extract::Link| {
        let host = link.url.host();
        host == url.host() || hosts.iter().any(|known| known == host)
    };
    let mut links: Vec<SiteLink> = found
        .links
        .iter()
        .filter(|link| link.kind != LinkKind::Embed)
        .filter(on_site)
        .map(|link| SiteLink { path: site_path(&link.url), frame: link.kind == LinkKind::Frame })
        .collect();
    links.sort_by(|a, b| a.path.cmp(&b.path).then(b.frame.cmp(&a.frame)));
    links.dedup_by(|a, b| a.path == b.path);
    links
}

/// The file of a URL.
pub(crate) fn site_path(url: &CanonicalUrl) -> String {
    let mut path = percent_decoded(url.path().trim_start_matches('/'));
    if path.is_empty() || path.ends_with('/') {
        path.push_str("index.html");
    }
    path
}

/// Paths as in file systems.
fn percent_decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = path.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_paths_on_the_site() {
        let url = CanonicalUrl::parse("http://example.org/a/b.html").unwrap();
        let body = br#"<a href="c.html?x#y">1</a><a href="/d/">2</a><a href="https://www.example.org">3</a>
            <a href="http://elsewhere.org/e.html">4</a><iframe src="../f%20g.html"></iframe>"#;
        let hosts = ["www.example.org".to_owned()];
        let links = site_links(&url, &hosts, body);
        let paths: Vec<&str> = links.iter().map(|link| link.path.as_str()).collect();
        assert_eq!(paths, ["a/c.html", "d/index.html", "f g.html", "index.html"]);
        assert!(links[2].frame && !links[0].frame);
    }
}
