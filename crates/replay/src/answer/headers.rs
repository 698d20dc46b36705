//! Headers of answers: the archived ones under another name, and those that keep a page isolated.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{ReplayOptions, head::Head, origins::Origins, stage::Stage};

/// The longest archived header value that is passed on.
const MAX_VALUE_BYTES: usize = 4096;
/// The most archived header lines that are passed on: clients refuse answers with too many.
const MAX_PASSED: usize = 64;

/// Archived headers that describe the content and keep their name.
const KEPT: [&str; 2] = ["content-language", "content-disposition"];

/// Archived headers that are not passed on: they may be of a log-in.
const SECRET: [&str; 2] = ["set-cookie", "authorization"];

/// The archived headers, each as `X-Archive-Orig-…`, and those that describe the content unchanged.
/// Values with control characters are left out.
pub(crate) fn archived(head: &Head<'_>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(48);
    for (name, value) in head.iter().take(MAX_PASSED) {
        if SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret.as_bytes())) {
            continue;
        }
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        if value.len() > MAX_VALUE_BYTES {
            continue;
        }
        let kept = KEPT.iter().find(|kept| name.eq_ignore_ascii_case(kept.as_bytes()));
        if let Some(kept) = kept {
            headers.insert(HeaderName::from_static(kept), value.clone());
        }
        let prefixed = [b"x-archive-orig-", name].concat();
        if let Ok(name) = HeaderName::from_bytes(&prefixed) {
            headers.append(name, value);
        }
    }
    // One type, so that what is checked here is what the browser shows.
    let content_type = head.content_type();
    if let Some(Ok(value)) = content_type.map(|value| HeaderValue::from_str(&value)) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    headers
}

/// What a sandbox lets archived pages do. Without `allow-same-origin` a page has an origin that
/// nothing else shares: it can neither read nor store.
const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads \
    allow-pointer-lock allow-top-navigation-by-user-activation";

/// Headers that isolate content, built once.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    shared: HeaderValue,
    shared_pdf: HeaderValue,
    own: HeaderValue,
    own_pdf: HeaderValue,
    exact: HeaderValue,
    pages: HeaderValue,
}

impl Guard {
    pub(crate) fn new(options: &ReplayOptions, origins: Option<&Origins>) -> Self {
        let is_origin = |o: &&String| {
            o.starts_with("http")
                && o.bytes().all(|b| b.is_ascii_graphic() && b != b';' && b != b',')
        };
        let ancestors: String =
            options.frame_ancestors.iter().filter(is_origin).map(|o| format!(" {o}")).collect();
        // Where servers have their own origins, they show each other in frames, and so do our pages.
        let (below, home) = match origins {
            Some(origins) => (format!(" {}", origins.pattern()), format!(" {}", origins.home())),
            None => (String::new(), String::new()),
        };
        let value = |text: &str| {
            HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
        };
        let policy =
            |text: &str| value(&format!("{text}; frame-ancestors 'self'{home}{below}{ancestors}"));
        // Scripts of the page run, but can reach only archived servers; the same holds for frames,
        // forms and plug-ins.
        let content = |below: &str, forms: &str| {
            format!(
                "default-src 'self'{below} 'unsafe-inline' 'unsafe-eval' data: blob: mediastream:; \
                 frame-src 'self'{below}; form-action 'self'{below}{forms}; base-uri 'self'{below}; \
                 object-src 'self'{below} data: blob:"
            )
        };
        let (shared, own) = (content("", ""), content(&below, &home));
        Self {
            // Pages without an origin show each other in frames: no list could name them.
            shared: value(&format!("{shared}; {SANDBOX}")),
            shared_pdf: policy(&shared),
            own: policy(&format!("{own}; {SANDBOX} allow-same-origin")),
            own_pdf: policy(&own),
            exact: policy("default-src 'none'; style-src 'unsafe-inline'; sandbox"),
            pages: policy(&format!(
                "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'{below}; \
                 connect-src 'self'; frame-src 'self'{below}; form-action 'self'; base-uri 'none'"
            )),
        }
    }

    /// For archived content; `is_exact` where its bytes are as they were received.
    pub(crate) fn archived(&self, headers: &mut HeaderMap, stage: Stage, is_exact: bool) {
        // Browsers refuse to show PDF in a sandbox; its scripts cannot reach the page.
        let is_pdf = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok()?.split(';').next())
            .is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/pdf"));
        let policy = match (stage, is_pdf) {
            (_, false) if is_exact => &self.exact,
            (Stage::Shared, false) => &self.shared,
            (Stage::Shared, true) => &self.shared_pdf,
            (Stage::Own { .. }, false) => &self.own,
            (Stage::Own { .. }, true) => &self.own_pdf,
        };
        headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
        common(headers);
        if stage == Stage::Shared {
            // A page without an origin is another site to its own parts.
            let any = HeaderValue::from_static("cross-origin");
            headers.insert("cross-origin-resource-policy", any);
        }
    }

    /// Lets a page of our own send its form to the interface.
    pub(crate) fn allow_form(&self, headers: &mut HeaderMap, interface: &str) {
        let Ok(policy) = self.pages.to_str() else { return };
        let policy =
            policy.replace("form-action 'self'", &format!("form-action 'self' {interface}"));
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }

    /// For pages of our own: no inline scripts or styles at all.
    pub(crate) fn own(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_SECURITY_POLICY, self.pages.clone());
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        common(headers);
    }
}

fn common(headers: &mut HeaderMap) {
    // The path of a replayed page shows what someone reads: no other origin may learn it.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert("x-dns-prefetch-control", HeaderValue::from_static("off"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-site"));
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex, nofollow"));
    headers.insert(
        "permissions-policy",
        HeaderValue::from_static(
            "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), hid=(), \
             bluetooth=(), midi=(), publickey-credentials-get=(), display-capture=()",
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archived_headers_get_a_prefix_and_none_can_break_out() {
        let raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=Shift_JIS\r\n\
            Set-Cookie: a=b\r\nX-Bad: a\x01b\r\nBad Name: x\r\nX-Latin: \xe9\r\n\r\n";
        let headers = archived(&Head::parse(raw));
        assert_eq!(headers["content-type"], "text/html; charset=Shift_JIS");
        assert!(!headers.contains_key("x-archive-orig-set-cookie"));
        assert!(!headers.contains_key("set-cookie"));
        assert!(!headers.contains_key("x-archive-orig-x-bad"));
        assert_eq!(headers["x-archive-orig-x-latin"].as_bytes(), b"\xe9");
    }

    #[test]
    fn a_list_of_types_is_shown_as_its_last_one_inside_the_sandbox() {
        let raw = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf, text/html\r\n\r\n";
        let twice =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Type: text/html\r\n\r\n";
        for raw in [&raw[..], twice] {
            let mut headers = archived(&Head::parse(raw));
            assert_eq!(headers.get_all("content-type").iter().collect::<Vec<_>>(), ["text/html"]);
            Guard::new(&ReplayOptions::default(), None).archived(
                &mut headers,
                Stage::Shared,
                false,
            );
            let policy = headers["content-security-policy"].to_str().unwrap();
            assert!(policy.contains("sandbox"), "{policy}");
        }
        let headers = archived(&Head::parse(b"HTTP/1.1 200 OK\r\nContent-Type: pdf\r\n\r\n"));
        assert!(!headers.contains_key("content-type"));
    }

    #[test]
    fn an_ancestor_that_would_end_the_policy_is_refused() {
        let options = ReplayOptions {
            frame_ancestors: vec!["http://a:1".into(), "http://b; script-src *".into()],
            ..ReplayOptions::default()
        };
        let mut headers = HeaderMap::new();
        let own = Stage::Own { is_bare: false };
        Guard::new(&options, None).archived(&mut headers, own, false);
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.ends_with("frame-ancestors 'self' http://a:1"), "{policy}");
        assert!(policy.contains("sandbox allow-scripts"), "{policy}");
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/pdf"));
        Guard::new(&options, None).archived(&mut headers, Stage::Shared, false);
        assert!(!headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    }
}
