//! Prepares an archived answer for sending: decoded if needed, rewritten where it could lead
//! outside.

use std::{borrow::Cow, sync::Arc};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::Bytes;
use nenrin_extract::{ContentKind, content_kind, decode_content, decode_front};

use nenrin_lang::Lang;

use super::{encoding, headers};
use crate::{
    Capture, Content, ReplayOptions,
    date::Stamp,
    head::Head,
    modifier::Modifier,
    origins::Origins,
    pages::banner,
    rewrite::{self, Links},
    scripts,
    stage::Stage,
};

/// An answer that depends only on the version, the date and its purpose.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) status: StatusCode,
    /// Archived headers and those of the content.
    pub(crate) headers: HeaderMap,
    /// None where it is sent as it is archived, read part by part.
    pub(crate) body: Option<Bytes>,
    /// Whether the body was changed from the archived one.
    pub(crate) is_rewritten: bool,
}

/// A larger body is sent part by part, unless it has to be rewritten.
pub(crate) const STREAMED_FROM_BYTES: u64 = 8 << 20;
/// As much of it is looked at to see its kind.
pub(crate) const FRONT_BYTES: usize = 512 << 10;

impl Prepared {
    /// Approximate memory in bytes.
    pub(crate) fn weight_bytes(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 64).sum();
        self.body.as_ref().map_or(0, Bytes::len) + headers + 128
    }

    #[cfg(test)]
    pub(crate) fn of_bytes(body: Vec<u8>) -> Self {
        let headers = HeaderMap::new();
        Self { status: StatusCode::OK, headers, body: Some(body.into()), is_rewritten: true }
    }
}

fn name_coding(coding: &str, headers: &mut HeaderMap) {
    if let Ok(value) = HeaderValue::from_str(coding)
        && !coding.is_empty()
    {
        headers.insert(header::CONTENT_ENCODING, value);
    }
}

/// What is done to a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    None,
    Page,
    Drawing,
    Style,
    Script,
    Manifest,
    Xml,
    Hls,
    Dash,
}

/// The preparation of one answer.
pub(crate) struct Preparing<'a> {
    pub(crate) capture: &'a Capture,
    pub(crate) content: &'a Content,
    pub(crate) at_s: i64,
    pub(crate) modifier: Modifier,
    /// Whether it must not become a document, whatever its type says: a script requested it, or a
    /// style sheet requested a font that the server labelled as HTML.
    pub(crate) is_not_document: bool,
    /// Language of the banner.
    pub(crate) lang: Lang,
    pub(crate) accept_encoding: &'a str,
    pub(crate) options: &'a ReplayOptions,
    /// Where it is shown, with the names of origins for archived servers.
    pub(crate) stage: Stage,
    pub(crate) origins: Option<&'a Arc<Origins>>,
}

impl Preparing<'_> {
    fn links(&self) -> Links {
        let links = Links::new(self.at_s, self.modifier, self.capture.url.clone());
        match (self.stage, self.origins) {
            (Stage::Own { is_bare }, Some(origins)) => links.on(origins, is_bare),
            _ => links,
        }
    }

    /// The answer whose body is sent part by part, if the content, of which only the front is given,
    /// needs nothing done to it.
    pub(crate) fn make_streamed(&self) -> Option<Prepared> {
        let head = Head::parse(&self.content.head.response_head);
        let coding = head.get_str("content-encoding").unwrap_or_default();
        let is_too_large = self.capture.body_bytes > self.options.max_rewritten_bytes as u64;
        if self.modifier != Modifier::Identity && !is_too_large {
            if !encoding::accepts(self.accept_encoding, coding) {
                return None;
            }
            let source = || Box::new(&self.content.body[..]) as Box<dyn std::io::BufRead>;
            let bytes = self.content.body.len() as u64;
            let content_type = head.content_type();
            let front = decode_front(Some(coding), &source, bytes, FRONT_BYTES / 2);
            // What cannot be decoded is not rewritten either.
            let kind = front.map(|front| {
                content_kind(content_type.as_deref(), &self.capture.url, &front.bytes)
            });
            if kind.is_ok_and(|kind| self.treatment(kind) != Treatment::None) {
                return None;
            }
        }
        let (status, mut headers) = self.begin(&head);
        name_coding(coding, &mut headers);
        Some(Prepared { status, headers, body: None, is_rewritten: false })
    }

    fn begin(&self, head: &Head<'_>) -> (StatusCode, HeaderMap) {
        let mut headers = headers::archived(head);
        let status = StatusCode::from_u16(self.capture.status)
            .ok()
            .filter(|s| s.as_u16() >= 200 && *s != StatusCode::PARTIAL_CONTENT)
            .unwrap_or(StatusCode::OK);
        self.redirect(head, &mut headers);
        (status, headers)
    }

    pub(crate) fn make(&self) -> Prepared {
        let head = Head::parse(&self.content.head.response_head);
        let (status, mut headers) = self.begin(&head);
        let coding = head.get_str("content-encoding").unwrap_or_default();
        let decoded =
            || decode_content(Some(coding), &self.content.body, self.options.max_rewritten_bytes);
        if self.modifier != Modifier::Identity {
            let decoded = decoded().ok();
            let content_type = head.content_type();
            let kind = |body: &[u8]| content_kind(content_type.as_deref(), &self.capture.url, body);
            if let Some(body) = decoded
                && let Some(body) = self.rewritten(kind(&body), &body)
            {
                let body = Some(body.into());
                return Prepared { status, headers, body, is_rewritten: true };
            }
        }
        let passes =
            self.modifier == Modifier::Identity || encoding::accepts(self.accept_encoding, coding);
        let body = match decoded() {
            Ok(Cow::Owned(body)) if !passes => body.into(),
            _ => {
                name_coding(coding, &mut headers);
                self.content.body.clone()
            }
        };
        Prepared { status, headers, body: Some(body), is_rewritten: false }
    }

    fn redirect(&self, head: &Head<'_>, headers: &mut HeaderMap) {
        let links = self.links();
        if (300..400).contains(&self.capture.status)
            && let Some(to) = head.location(&self.capture.url)
        {
            let fragment = head.get_str("location").and_then(|l| l.split_once('#'));
            let fragment =
                fragment.map(|(_, f)| f).filter(|f| f.bytes().all(|b| b.is_ascii_graphic()));
            let to = links.to(&to, self.modifier);
            let to = fragment.map_or(to.clone(), |f| format!("{to}#{f}"));
            if let Ok(value) = HeaderValue::from_str(&to) {
                headers.insert(header::LOCATION, value);
            }
        }
        if let Some(value) = head.get("refresh")
            && let Some(range) = rewrite::refresh::url_range(value)
            && let Some(new) = links.rewrite(&value[range.clone()], links.page_modifier())
            && let Ok(value) = HeaderValue::from_bytes(&[&value[..range.start], &new].concat())
        {
            headers.insert("refresh", value);
        }
    }

    fn rewritten(&self, kind: ContentKind, body: &[u8]) -> Option<Vec<u8>> {
        let links = self.links();
        match self.treatment(kind) {
            Treatment::None => None,
            Treatment::Style => Some(rewrite::css::rewrite(body, &links).unwrap_or(body.to_vec())),
            Treatment::Script => self.script(body, &links),
            Treatment::Manifest => rewrite::json::manifest(body, &links),
            Treatment::Xml => rewrite::playlist::xml_stylesheets(body, &links),
            Treatment::Hls => rewrite::playlist::hls(body, &links),
            Treatment::Dash => rewrite::playlist::dash(body, &links),
            Treatment::Drawing => {
                let styled = rewrite::playlist::xml_stylesheets(body, &links);
                let body = styled.as_deref().unwrap_or(body);
                Some(rewrite::html::rewrite(body, &links, rewrite::html::Injected::default()))
            }
            Treatment::Page => {
                let added =
                    banner::Added { capture: self.capture, at_s: self.at_s, home: self.home() };
                let head = added.script(self.stage);
                let end = match (self.modifier, kind) {
                    (Modifier::Page, ContentKind::Html) => added.banner(self.lang),
                    _ => String::new(),
                };
                let injected = rewrite::html::Injected { head: &head, end: &end };
                Some(rewrite::html::rewrite(body, &links, injected))
            }
        }
    }

    fn script(&self, body: &[u8], links: &Links) -> Option<Vec<u8>> {
        let rewritten = rewrite::script::rewrite(body, links);
        if self.modifier != Modifier::Worker {
            return rewritten;
        }
        let mut page = serde_json::json!({
            "at": Stamp(self.at_s).to_string(),
            "from": self.capture.at_s,
            "seed": self.capture.version.0,
        });
        if let Stage::Own { is_bare } = self.stage {
            page["server"] = self.capture.url.server().as_str().into();
            page["home"] = self.home().into();
            page["bare"] = is_bare.then_some("1").into();
        }
        let start = scripts::worker_start(&page);
        Some([start.as_bytes(), &rewritten.unwrap_or_else(|| body.to_vec())].concat())
    }

    /// What comes before the paths of our own pages.
    fn home(&self) -> String {
        match (self.stage, self.origins) {
            (Stage::Own { .. }, Some(origins)) => origins.home(),
            _ => String::new(),
        }
    }

    fn is_manifest(&self) -> bool {
        let path = self.capture.url.path();
        self.capture.mime == "application/manifest+json"
            || path.ends_with(".webmanifest")
            || path.ends_with("/manifest.json")
    }

    fn treatment(&self, kind: ContentKind) -> Treatment {
        // Browsers do not show it, whatever it begins with.
        let is_download = self.capture.mime == "application/octet-stream";
        let path = self.capture.url.path();
        match (kind, self.modifier) {
            (_, Modifier::Identity) => Treatment::None,
            (ContentKind::Html | ContentKind::Xhtml | ContentKind::Svg, _) if is_download => {
                Treatment::None
            }
            _ if path.ends_with(".m3u8") || self.capture.mime.ends_with("mpegurl") => {
                Treatment::Hls
            }
            _ if path.ends_with(".mpd") || self.capture.mime == "application/dash+xml" => {
                Treatment::Dash
            }
            (ContentKind::Xml | ContentKind::Feed | ContentKind::Sitemap, _) => Treatment::Xml,
            (ContentKind::Css, _) | (ContentKind::Text | ContentKind::Other, Modifier::Style) => {
                Treatment::Style
            }
            (ContentKind::Html | ContentKind::Xhtml, m) => {
                let is_shown = m.is_page() || (m == Modifier::Object && !self.is_not_document);
                if is_shown { Treatment::Page } else { Treatment::None }
            }
            (ContentKind::Svg, _) => Treatment::Drawing,
            // What a script reads as text stays as it was.
            (ContentKind::JavaScript, Modifier::Object) if self.is_not_document => Treatment::None,
            (ContentKind::JavaScript, _) => Treatment::Script,
            (ContentKind::Text | ContentKind::Other, Modifier::Script | Modifier::Worker) => {
                Treatment::Script
            }
            (ContentKind::Json, _) if self.is_manifest() => Treatment::Manifest,
            _ => Treatment::None,
        }
    }
}
