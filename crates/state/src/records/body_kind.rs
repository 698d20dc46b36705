use serde::Serialize;

/// The kind of a body, as people distinguish it.
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
