use std::{path::PathBuf, sync::Arc};

use nenrin_archive::changes::ChangeReader;
use nenrin_search::Search;
use nenrin_state::{SiteConditions, SiteSums, State, StateError};
use nenrin_store::Store;
use nenrin_urls::CanonicalUrl;

use crate::{Control, format};

/// Everything that the interface uses.
pub struct WebApp {
    /// Sites, pages, visits and versions.
    pub state: Arc<dyn State>,
    /// Titles and lines of changes.
    pub changes: Arc<ChangeReader>,
    /// The content of versions, where this process has it.
    pub store: Option<Arc<Store>>,
    /// The running program.
    pub control: Arc<dyn Control>,
    /// The sizes of the store; called at most once per page shown, so it should be quick.
    pub store_stats: Arc<dyn Fn() -> StoreSummary + Send + Sync>,
    /// Where replay is.
    pub replay_base: ReplayBase,
    /// Passwords and what is offered.
    pub options: WebOptions,
    /// The clock: seconds since the epoch.
    pub now_s: fn() -> i64,
}

impl WebApp {
    /// What each site cost. What it takes on disk is what its packs have now: after `compact` that is
    /// less than what collecting added.
    pub(crate) fn site_sums(&self, since_day: i64) -> Result<Vec<SiteSums>, StateError> {
        let mut sums = self.state.site_sums(since_day)?;
        let stored = self.store.as_ref().and_then(|store| store.site_bytes().ok());
        for sum in &mut sums {
            let of_site = stored.iter().flatten().find(|bytes| bytes.group == sum.site.0);
            sum.stored_bytes = of_site.map_or(sum.stored_bytes, |bytes| bytes.stored_bytes());
        }
        Ok(sums)
    }
}

/// Passwords and what is offered.
#[derive(Clone)]
pub struct WebOptions {
    /// Random bytes from the operating system; all tokens are derived from them.
    pub secret: [u8; 32],
    /// The hash of the password for changing things ([`crate::hash_password`]).
    pub admin_hash: Option<String>,
    /// The hash of the password for reading.
    pub reader_hash: Option<String>,
    /// Whether everyone may read even though there is a password.
    pub public_reading: bool,
    /// Host names of the interface, besides loopback and addresses. Without a password other names
    /// are refused, so that no other website can reach it by a name that resolves to loopback.
    pub host_names: Vec<String>,
    /// Whether the demo site is offered in an empty archive.
    pub offers_demo: bool,
    /// A folder of lab reports, each a folder with `report.html` and `results.json`.
    pub reports: Option<PathBuf>,
    /// The default depth in the form for a new site.
    pub depth: u32,
    /// Finds pages by their text, unless it is switched off.
    pub search: Option<Arc<Search>>,
}

impl WebOptions {
    /// No password, and the demo is offered.
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            admin_hash: None,
            reader_hash: None,
            public_reading: false,
            host_names: Vec::new(),
            offers_demo: true,
            reports: None,
            depth: SiteConditions::DEFAULT_DEPTH,
            search: None,
        }
    }
}

/// Sizes of the archive. What was received and what of it was distinct are known as totals only;
/// what is on disk is known by kind, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct StoreSummary {
    /// What full copies of every visit would take.
    pub raw_bytes: u64,
    /// Distinct content, uncompressed.
    pub unique_bytes: u64,
    /// HTML on disk.
    pub html_bytes: u64,
    /// Everything else that was fetched, on disk.
    pub other_bytes: u64,
    /// Indexes and state on disk.
    pub index_bytes: u64,
}

impl StoreSummary {
    /// The sizes of an archive; zeros where they cannot be read.
    pub fn of(archive: &nenrin_archive::Archive) -> Self {
        let (Ok(store), Ok(state), Ok(files)) =
            (archive.store().stats(), archive.state().stats(), archive.file_bytes())
        else {
            return Self::default();
        };
        Self {
            raw_bytes: state.raw_bytes,
            unique_bytes: store.unique_bytes,
            html_bytes: store.html_bytes,
            other_bytes: store.other_bytes,
            index_bytes: files.saturating_sub(store.html_bytes + store.other_bytes),
        }
    }

    /// Size of all files of the archive, in bytes.
    pub fn stored_bytes(&self) -> u64 {
        self.html_bytes + self.other_bytes + self.index_bytes
    }
}

/// Where replayed pages are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayBase {
    /// Another port of the host under which the interface was reached.
    Port(u16),
    /// An origin, such as `https://replay.example.org`, without a slash at its end.
    Origin(String),
    /// A name below `localhost` and a port, for visitors on loopback: browsers take it for this
    /// machine, and it shares no cookie with the interface. For others, another port.
    Local {
        /// Such as `replay.localhost`.
        name: String,
        /// The port of replay.
        port: u16,
    },
}

impl ReplayBase {
    /// Of a setting such as `http://replay.localhost` or `https://replay.example.org`, and the origin
    /// that browsers use. Where a local one names no port, it is that on which replay listens.
    pub fn named(setting: &str, port: u16) -> Option<(Self, String)> {
        let (scheme, host) = setting.split_once("://")?;
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        if !matches!(scheme, "http" | "https") || host.is_empty() || !host.chars().all(is_plain) {
            return None;
        }
        let (name, named) = match host.rsplit_once(':') {
            Some((name, digits)) if !digits.contains(']') => (name, Some(digits.parse().ok()?)),
            _ => (host, None),
        };
        if name != "localhost" && !name.ends_with(".localhost") {
            return Some((Self::Origin(setting.to_owned()), setting.to_owned()));
        }
        let port = named.unwrap_or(port);
        let origin = format!("{scheme}://{name}:{port}");
        Some((Self::Local { name: name.to_owned(), port }, origin))
    }

    /// The replay origin as seen by someone who reached the interface under this `Host`.
    pub(crate) fn origin(&self, host: &str) -> String {
        match self {
            Self::Origin(origin) => origin.clone(),
            Self::Local { name, port } if is_loopback(without_port(host)) => {
                format!("http://{name}:{port}")
            }
            Self::Local { port, .. } | Self::Port(port) => {
                format!("http://{}:{port}", without_port(host))
            }
        }
    }
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The page as of a time.
pub(crate) fn replay_link(origin: &str, at_s: i64, url: &CanonicalUrl) -> String {
    format!("{origin}/web/{}/{url}", format::digits(at_s))
}

/// What changed between two times.
pub(crate) fn diff_link(origin: &str, from_s: i64, to_s: i64, url: &CanonicalUrl) -> String {
    format!("{origin}/diff/{}/{}/{url}", format::digits(from_s), format::digits(to_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_is_another_origin_than_the_interface() {
        for (host, origin) in [
            ("localhost:8080", "http://localhost:8081"),
            ("localhost", "http://localhost:8081"),
            ("127.0.0.1:8080", "http://127.0.0.1:8081"),
            ("[::1]:8080", "http://[::1]:8081"),
            ("[::1]", "http://[::1]:8081"),
        ] {
            assert_eq!(ReplayBase::Port(8081).origin(host), origin);
        }
        let local = ReplayBase::Local { name: "replay.localhost".into(), port: 8081 };
        for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "nenrin.localhost"] {
            assert_eq!(local.origin(host), "http://replay.localhost:8081");
        }
        assert_eq!(local.origin("10.0.0.7:8080"), "http://10.0.0.7:8081", "another machine");
        let named = ReplayBase::Origin("https://replay.example.org".into());
        assert_eq!(named.origin("archive.example.org"), "https://replay.example.org");
    }

    #[test]
    fn links_carry_fourteen_digits_and_the_whole_url() {
        let url = CanonicalUrl::parse("http://e.com/a?b=1").unwrap();
        assert_eq!(
            replay_link("http://r", 1_700_000_000, &url),
            "http://r/web/20231114221320/http://e.com/a?b=1"
        );
        assert_eq!(
            diff_link("http://r", 0, 1, &url),
            "http://r/diff/19700101000000/19700101000001/http://e.com/a?b=1"
        );
    }
}
