//! What the interface reads: sums per day and per site, the log with filters, pages by path.

use nenrin_urls::{CanonicalUrl, Server};
use serde::Serialize;

use crate::{Outcome, PageRecord, ServerId, SiteId};

/// Sums of one day (UTC), kept with every commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DayCounts {
    /// Days since the epoch.
    pub day: i64,
    /// Visits made.
    pub visits: u64,
    /// Versions kept.
    pub versions: u64,
    /// Visits that failed or were refused.
    pub troubles: u64,
    /// What a mirror of these visits would take.
    pub raw_bytes: u64,
    /// Bytes of bodies received.
    pub received_bytes: u64,
    /// Bytes added to packs.
    pub stored_bytes: u64,
}

/// What a body is, roughly: the kinds that people tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyKind {
    /// HTML.
    Html,
    /// Styles, scripts, data and plain text.
    Text,
    /// Images.
    Image,
    /// PDF and the like.
    Document,
    /// Sound and film.
    Media,
    /// Anything else.
    Other,
}

impl BodyKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Html, Self::Text, Self::Image, Self::Document, Self::Media, Self::Other];

    /// By a content type, with or without parameters.
    pub fn of(mime: &str) -> Self {
        let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let of_text = ["json", "xml", "javascript", "ecmascript", "yaml", "csv"];
        match mime.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            image if image.starts_with("image/") => Self::Image,
            media if media.starts_with("audio/") || media.starts_with("video/") => Self::Media,
            text if text.starts_with("text/") => Self::Text,
            text if of_text.iter().any(|word| text.ends_with(word)) => Self::Text,
            "application/pdf"
            | "application/postscript"
            | "application/rtf"
            | "application/msword"
            | "application/epub+zip" => Self::Document,
            office if office.contains("officedocument") || office.contains("opendocument") => {
                Self::Document
            }
            office if office.starts_with("application/vnd.ms-") => Self::Document,
            _ => Self::Other,
        }
    }
}

/// What versions of one kind took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KindSums {
    /// The kind.
    pub kind: BodyKind,
    /// Versions kept.
    pub versions: u64,
    /// Bytes of their bodies, as received.
    pub received_bytes: u64,
    /// Bytes added to packs for them.
    pub stored_bytes: u64,
}

/// Which days to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayQuery {
    /// Only this site; `None` sums over all.
    pub site: Option<SiteId>,
    /// The first day, in days since the epoch.
    pub from_day: i64,
    /// The last day.
    pub to_day: i64,
}

/// What a site has cost and how fast it grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SiteSums {
    /// The site.
    pub site: SiteId,
    /// Bytes of bodies received.
    pub received_bytes: u64,
    /// Bytes added to packs for it.
    pub stored_bytes: u64,
    /// Of them, since the day asked for.
    pub recent_stored_bytes: u64,
    /// Versions kept since the day asked for.
    pub recent_versions: u64,
    /// Visits that failed or were refused since the day asked for.
    pub recent_troubles: u64,
}

/// Which visits to list, newest first, with an index for every combination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only visits for this site.
    pub site: Option<SiteId>,
    /// Only visits that found this.
    pub outcome: Option<Outcome>,
    /// Begin before this row.
    pub before: Option<i64>,
    /// At most this many.
    pub limit: usize,
}

/// Troubles of a site with one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TroubleGroup {
    /// Gone, refused or failed.
    pub outcome: Outcome,
    /// HTTP status, 0 without an answer.
    pub status: u16,
    /// Why.
    pub detail: Option<String>,
    /// How often among the troubles looked at.
    pub count: u64,
    /// When last.
    pub last_s: i64,
    /// The page of the last one.
    pub last_url: CanonicalUrl,
}

/// Where a list of pages by path stands, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathQuery {
    /// Pages of this site.
    pub site: SiteId,
    /// Pages of this server.
    pub server: ServerId,
    /// Only paths that begin like this.
    pub prefix: String,
    /// Begin after this path.
    pub after: Option<String>,
    /// At most this many.
    pub limit: usize,
}

/// A server that has pages of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteServer {
    /// Its number.
    pub id: ServerId,
    /// Its name.
    pub server: Server,
}

/// One entry of a directory of a server: a page, a directory below, or both at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path up to and including this entry; a directory's ends in `/`.
    pub path: String,
    /// The page at exactly this path, if it is one.
    pub page: Option<PageRecord>,
}

#[cfg(test)]
mod tests {
    use super::BodyKind;

    #[test]
    fn kinds_are_told_by_the_content_type() {
        for (mime, kind) in [
            ("text/html; charset=utf-8", BodyKind::Html),
            ("TEXT/CSS", BodyKind::Text),
            ("application/ld+json", BodyKind::Text),
            ("image/svg+xml", BodyKind::Image),
            ("application/pdf", BodyKind::Document),
            ("application/vnd.ms-excel", BodyKind::Document),
            ("video/mp4", BodyKind::Media),
            ("application/zip", BodyKind::Other),
            ("", BodyKind::Other),
        ] {
            assert_eq!(BodyKind::of(mime), kind, "{mime}");
        }
    }
}
