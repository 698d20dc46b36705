//! Pages that a bot guard shows instead of the content.

/// How much of a body is searched. Guards' pages are small and show their marks early.
const SEARCHED_BYTES: usize = 64 * 1024;

/// A body larger than this is a real page, whatever it mentions.
const MAX_CHALLENGE_BYTES: usize = 256 * 1024;

/// One guard and how its pages are recognised.
struct Guard {
    name: &'static str,
    /// Statuses that it answers with; empty for any, because the marks leave no doubt.
    statuses: &'static [u16],
    /// Texts that are all in its pages.
    marks: &'static [&'static [u8]],
}

/// Headers that name the guard: name, value, guard.
const HEADERS: [(&str, &str, &str); 4] = [
    ("cf-mitigated", "challenge", "cloudflare"),
    ("x-amzn-waf-action", "challenge", "aws-waf"),
    ("x-amzn-waf-action", "captcha", "aws-waf"),
    ("x-vercel-mitigated", "challenge", "vercel"),
];

const REFUSALS: &[u16] = &[401, 403, 405, 429, 503];

/// Marks are scripts and resources that only the guard itself serves, never words that an article
/// about guards would contain too.
const GUARDS: [Guard; 12] = [
    Guard {
        name: "cloudflare",
        statuses: REFUSALS,
        marks: &[b"<title>Just a moment...</title>", b"/cdn-cgi/challenge-platform/"],
    },
    Guard {
        name: "cloudflare",
        statuses: REFUSALS,
        marks: &[b"<title>Attention Required! | Cloudflare</title>", b"cf-error-details"],
    },
    Guard { name: "anubis", statuses: &[], marks: &[b"/.within.website/x/cmd/anubis/static/"] },
    Guard {
        name: "aws-waf",
        statuses: &[202, 403, 405],
        marks: &[b"window.gokuProps", b"awswaf.com"],
    },
    Guard { name: "datadome", statuses: REFUSALS, marks: &[b"captcha-delivery.com/", b"var dd="] },
    Guard { name: "perimeterx", statuses: REFUSALS, marks: &[b"window._pxAppId", b"captcha"] },
    Guard {
        name: "incapsula",
        statuses: &[200, 403, 503],
        marks: &[b"/_Incapsula_Resource?", b"Request unsuccessful. Incapsula incident ID"],
    },
    Guard { name: "sucuri", statuses: &[], marks: &[b"sucuri_cloudproxy_js=", b"document.cookie"] },
    Guard {
        name: "ddos-guard",
        statuses: REFUSALS,
        marks: &[b"<title>DDoS-Guard</title>", b"/.well-known/ddos-guard/"],
    },
    Guard {
        name: "akamai",
        statuses: &[403],
        marks: &[b"<TITLE>Access Denied</TITLE>", b"errors.edgesuite.net"],
    },
    Guard { name: "captcha", statuses: REFUSALS, marks: &[b"class=\"g-recaptcha\""] },
    Guard { name: "captcha", statuses: REFUSALS, marks: &[b"class=\"h-captcha\""] },
];

/// Whether an answer is a guard's challenge or block instead of the page, and whose. `body` has its
/// content coding undone; header names are in lower case.
///
/// It is better to archive a challenge than to throw away a page, so only sure marks count.
pub fn challenge(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Option<&'static str> {
    let by_header = HEADERS.iter().find(|(name, value, _)| {
        headers.iter().any(|(n, v)| n.eq_ignore_ascii_case(name) && v.eq_ignore_ascii_case(value))
    });
    if let Some((_, _, guard)) = by_header {
        return Some(guard);
    }
    if body.len() > MAX_CHALLENGE_BYTES {
        return None;
    }
    let searched = &body[..body.len().min(SEARCHED_BYTES)];
    let shows = |guard: &&Guard| {
        (guard.statuses.is_empty() || guard.statuses.contains(&status))
            && guard.marks.iter().all(|mark| memchr::memmem::find(searched, mark).is_some())
    };
    GUARDS.iter().find(shows).map(|guard| guard.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOUDFLARE: &[u8] = b"<!DOCTYPE html><html><head><title>Just a moment...</title></head>\
        <body><script src=\"/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1\"></script>";

    #[test]
    fn guards_are_known_by_their_marks() {
        assert_eq!(challenge(503, &[], CLOUDFLARE), Some("cloudflare"));
        assert_eq!(challenge(403, &[("CF-Mitigated", "challenge")], b""), Some("cloudflare"));
        assert_eq!(challenge(202, &[("x-amzn-waf-action", "challenge")], b""), Some("aws-waf"));
        let anubis = b"<script src=\"/.within.website/x/cmd/anubis/static/js/main.mjs\">";
        assert_eq!(challenge(200, &[], anubis), Some("anubis"));
        let captcha = b"<form><div class=\"g-recaptcha\" data-sitekey=x></div></form>";
        assert_eq!(challenge(429, &[], captcha), Some("captcha"));
    }

    #[test]
    fn pages_are_not_taken_for_challenges() {
        // The same marks on a real page: an article, a form with a captcha.
        assert_eq!(challenge(200, &[], CLOUDFLARE), None);
        let form = b"<form><div class=\"g-recaptcha\"></div></form>";
        assert_eq!(challenge(200, &[], form), None);
        assert_eq!(challenge(403, &[], b"<title>Just a moment...</title> says the film"), None);
        assert_eq!(challenge(403, &[("server", "cloudflare")], b"<h1>Forbidden</h1>"), None);
        let mut large = CLOUDFLARE.to_vec();
        large.resize(MAX_CHALLENGE_BYTES + 1, b' ');
        assert_eq!(challenge(503, &[], &large), None);
        assert_eq!(challenge(404, &[], b""), None);
    }
}
