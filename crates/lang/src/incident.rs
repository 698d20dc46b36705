//! What an incident is about.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};

use crate::{Lang, Reason};

/// What an incident is about: data, put into words where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IncidentDetail {
    /// The last of several visits that brought nothing.
    Visit {
        /// The page.
        url: String,
        /// The HTTP status, 0 without an answer.
        status: u16,
        /// Why, where that is known.
        reason: Option<Reason>,
    },
    /// A quota is reached.
    Quota {
        /// The site; none for the archive.
        site: Option<String>,
        /// Bytes that it takes.
        bytes: u64,
        /// The limit.
        quota_bytes: u64,
    },
    /// A server cannot keep up, so that intervals are stretched.
    Overflow {
        /// The server.
        server: String,
        /// How far, in percent.
        percent: u32,
    },
    /// This sitemap or feed does not answer any more.
    SignalLost(String),
}

impl IncidentDetail {
    /// In words.
    pub fn text(&self, lang: Lang) -> String {
        match lang {
            Lang::En => self.to_string(),
            Lang::Ja => self.japanese(),
        }
    }

    fn japanese(&self) -> String {
        match self {
            Self::Visit { url, reason: Some(reason), .. } => {
                format!("{url}：{}", reason.text(Lang::Ja))
            }
            Self::Visit { url, status: 0, .. } => url.clone(),
            Self::Visit { url, status, .. } => format!("{url}：HTTP {status}"),
            Self::Quota { site, bytes, quota_bytes } => {
                let (bytes, quota) = (readable_bytes(*bytes), readable_bytes(*quota_bytes));
                let whose = match site {
                    Some(name) => format!("サイト「{name}」"),
                    None => "アーカイブ".to_owned(),
                };
                format!("{whose}が容量の上限に達しました（{quota} のうち {bytes}）")
            }
            Self::Overflow { server, percent } => {
                format!("{server} が間に合わないため、間隔を {} 倍にしています", factor(*percent))
            }
            Self::SignalLost(source) => format!("{source} が応答しなくなりました"),
        }
    }

    /// As its JSON text, as it is stored.
    pub fn to_json(&self) -> String {
        // Plain data always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The detail of a stored JSON text, if it is one.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

fn factor(percent: u32) -> String {
    format!("{:.2}", f64::from(percent) / 100.0)
}

impl fmt::Display for IncidentDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Visit { url, reason: Some(reason), .. } => write!(f, "{url}: {reason}"),
            Self::Visit { url, status: 0, .. } => f.write_str(url),
            Self::Visit { url, status, .. } => write!(f, "{url}: HTTP {status}"),
            Self::Quota { site, bytes, quota_bytes } => {
                match site {
                    Some(name) => write!(f, "site `{name}`")?,
                    None => f.write_str("the archive")?,
                }
                let (bytes, quota) = (readable_bytes(*bytes), readable_bytes(*quota_bytes));
                write!(f, " has reached its quota: {bytes} of {quota}")
            }
            Self::Overflow { server, percent } => {
                write!(f, "{server} cannot keep up: intervals × {}", factor(*percent))
            }
            Self::SignalLost(source) => write!(f, "{source} does not answer any more"),
        }
    }
}

/// For programs: `detail` in words and `about` as data, beside the other fields of a record.
///
/// # Errors
/// What the serializer says.
pub fn serialize_incident_detail<S: Serializer>(
    detail: &Option<IncidentDetail>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(Some(2))?;
    fields
        .serialize_entry("detail", &detail.as_ref().map(ToString::to_string).unwrap_or_default())?;
    fields.serialize_entry("about", detail)?;
    fields.end()
}

/// A size for people, to three digits: `12.3 MB`.
pub fn readable_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    match (unit, size) {
        (0, _) => format!("{bytes} B"),
        (_, size) if size < 9.995 => format!("{size:.2} {}", UNITS[unit]),
        (_, size) if size < 99.95 => format!("{size:.1} {}", UNITS[unit]),
        (_, size) => format!("{size:.0} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_to_three_digits() {
        assert_eq!(readable_bytes(999), "999 B");
        assert_eq!(readable_bytes(12_345_678), "12.3 MB");
        assert_eq!(readable_bytes(1_000), "1.00 kB");
    }

    #[test]
    fn details_have_words_in_both_languages_and_come_back() {
        let visit = |status, reason| IncidentDetail::Visit { url: "u".to_owned(), status, reason };
        let quota = |site| IncidentDetail::Quota { site, bytes: 2_000, quota_bytes: 1_000 };
        for (detail, en, ja) in [
            (visit(404, Some(Reason::Status(404))), "u: status 404", "u：状態 404"),
            (visit(500, None), "u: HTTP 500", "u：HTTP 500"),
            (visit(0, None), "u", "u"),
            (
                quota(Some("s".to_owned())),
                "site `s` has reached its quota: 2.00 kB of 1.00 kB",
                "サイト「s」が容量の上限に達しました（1.00 kB のうち 2.00 kB）",
            ),
            (
                quota(None),
                "the archive has reached its quota: 2.00 kB of 1.00 kB",
                "アーカイブが容量の上限に達しました（1.00 kB のうち 2.00 kB）",
            ),
            (
                IncidentDetail::Overflow { server: "s".to_owned(), percent: 160 },
                "s cannot keep up: intervals × 1.60",
                "s が間に合わないため、間隔を 1.60 倍にしています",
            ),
            (
                IncidentDetail::SignalLost("s".to_owned()),
                "s does not answer any more",
                "s が応答しなくなりました",
            ),
        ] {
            assert_eq!((detail.text(Lang::En).as_str(), detail.text(Lang::Ja).as_str()), (en, ja));
            assert_eq!(IncidentDetail::from_json(&detail.to_json()), Some(detail));
        }
    }
}
