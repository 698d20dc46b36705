//! The purpose for which content is replayed.

/// The two letters after a date: `20240305im_`. They say how the content is treated, and whether it
/// is a page of its own or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Modifier {
    /// No modifier: the page with its banner.
    Page,
    /// `mp_`: the page without a banner.
    MainPage,
    /// `if_`: a page inside a frame.
    InFrame,
    /// `id_`: the bytes as they were received.
    Identity,
    /// `im_`: an image.
    Image,
    /// `js_`: a script.
    Script,
    /// `wkr_`: the script of a worker.
    Worker,
    /// `cs_`: a style sheet.
    Style,
    /// `oe_`: an object, sound, video or font.
    Object,
}

impl Modifier {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" => Self::Page,
            "mp_" => Self::MainPage,
            "if_" | "fr_" => Self::InFrame,
            "id_" => Self::Identity,
            "im_" => Self::Image,
            "js_" => Self::Script,
            "wkr_" => Self::Worker,
            "cs_" => Self::Style,
            // Other archives write these for a banner, a WebSocket and a service worker.
            "bn_" => Self::Page,
            "sw_" => Self::Script,
            "oe_" | "ws_" => Self::Object,
            _ => return None,
        })
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Page => "",
            Self::MainPage => "mp_",
            Self::InFrame => "if_",
            Self::Identity => "id_",
            Self::Image => "im_",
            Self::Script => "js_",
            Self::Worker => "wkr_",
            Self::Style => "cs_",
            Self::Object => "oe_",
        }
    }

    /// Whether a person or a frame shows it as a page of its own.
    pub(crate) fn is_page(self) -> bool {
        matches!(self, Self::Page | Self::MainPage | Self::InFrame)
    }

    /// Whether it is a part of the page whose date it carries.
    pub(crate) fn is_part(self) -> bool {
        !matches!(self, Self::Page | Self::MainPage | Self::Identity)
    }

    /// The purpose according to the browser, if it says so (`Sec-Fetch-Dest`). Relative references
    /// are not rewritten, so a part may carry the modifier of its page.
    pub(crate) fn with_destination(self, destination: Option<&[u8]>) -> Self {
        if !self.is_page() {
            return self;
        }
        match destination {
            Some(b"iframe" | b"frame") => Self::InFrame,
            Some(b"image") => Self::Image,
            Some(b"script" | b"serviceworker" | b"audioworklet" | b"paintworklet") => Self::Script,
            Some(b"worker" | b"sharedworker") => Self::Worker,
            Some(b"style") => Self::Style,
            Some(
                b"font" | b"audio" | b"video" | b"track" | b"object" | b"embed" | b"manifest"
                | b"empty" | b"json" | b"xslt",
            ) => Self::Object,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_modifier_is_read_back() {
        for m in [
            Modifier::Page,
            Modifier::MainPage,
            Modifier::InFrame,
            Modifier::Identity,
            Modifier::Image,
            Modifier::Script,
            Modifier::Worker,
            Modifier::Style,
            Modifier::Object,
        ] {
            assert_eq!(Modifier::parse(m.as_str()), Some(m));
        }
        assert_eq!(Modifier::parse("zz_"), None);
    }

    #[test]
    fn a_relative_image_is_known_by_its_destination() {
        assert_eq!(Modifier::Page.with_destination(Some(b"image")), Modifier::Image);
        assert_eq!(Modifier::Identity.with_destination(Some(b"image")), Modifier::Identity);
        assert_eq!(Modifier::Page.with_destination(Some(b"document")), Modifier::Page);
    }
}
