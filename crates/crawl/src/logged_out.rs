//! Whether an answer to a request with a log-in is what a visitor gets who is not logged in.
//!
//! Such an answer never becomes a version, and its site pauses.

use nenrin_extract::Fingerprint;
use nenrin_lang::Reason;
use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Trouble};

/// A log-in page may change its look with the site's design.
const FRESH_S: i64 = 7 * 86_400;
/// Without a usable answer it is asked for again after this long.
const UNANSWERED_FRESH_S: i64 = 86_400;
/// A page with fewer features says too little to be known again.
const FEATURES_MIN: u32 = 8;

/// What a site's log-in page looks like to a visitor who is not logged in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoginLook {
    /// When it was last asked for.
    pub asked_s: Option<i64>,
    /// What it says.
    pub look: Option<Fingerprint>,
}

impl LoginLook {
    /// Whether it should be asked for (again).
    pub fn is_due(&self, now_s: i64) -> bool {
        let fresh_s = if self.look.is_some() { FRESH_S } else { UNANSWERED_FRESH_S };
        self.asked_s.is_none_or(|asked_s| now_s - asked_s >= fresh_s)
    }

    /// Takes in what came of asking for it.
    pub fn answered(&mut self, now_s: i64, result: &Result<Answer, Trouble>) {
        self.asked_s = Some(now_s);
        let seen = result.as_ref().ok().filter(|answer| answer.status == 200);
        let look = seen.and_then(|answer| answer.fingerprint);
        self.look = look.filter(|look| look.features >= FEATURES_MIN).or(self.look);
    }
}

/// Why an answer means that nobody is logged in, if it does.
pub fn logged_out(
    page: &CanonicalUrl,
    login_page: Option<&CanonicalUrl>,
    known: &LoginLook,
    answer: &Answer,
) -> Option<Reason> {
    let is_login_page = |url: &CanonicalUrl| match login_page {
        Some(login) => url.server() == login.server() && url.path() == login.path(),
        None => false,
    };
    let asks_for_login = |url: &CanonicalUrl| is_login_page(url) || is_named_login(url);
    if !answer.with_login || asks_for_login(page) {
        return None;
    }
    let reason = |to| Some(Reason::LoggedOut { status: answer.status, to });
    match (answer.status, &answer.location) {
        (401, _) => reason(None),
        (300..=399, Some(to)) if asks_for_login(to) => reason(Some(to.to_string())),
        (200..=299, _) => {
            let look = known.look.filter(|_| login_page.is_some())?;
            let is_alike = answer.fingerprint.is_some_and(|found| found.resembles(&look));
            if is_alike { reason(None) } else { None }
        }
        _ => None,
    }
}

/// Whether a URL is named as log-in pages are.
fn is_named_login(url: &CanonicalUrl) -> bool {
    const HOSTS: [&str; 7] = ["login", "signin", "sso", "auth", "accounts", "idp", "id"];
    const WORDS: [&str; 8] =
        ["login", "signin", "logon", "wplogin", "userlogin", "sso", "authenticate", "authorize"];
    let first = url.host().split('.').next().unwrap_or_default();
    HOSTS.contains(&first) && url.host().split('.').count() > 2
        || words_of(url).any(|word| WORDS.contains(&word.as_str()))
}

/// Whether asking for a URL would probably end the log-in.
pub fn logs_out(url: &CanonicalUrl) -> bool {
    const WORDS: [&str; 6] = ["logout", "signout", "logoff", "signoff", "wplogout", "userlogout"];
    let asked = url.as_url().query().unwrap_or_default().to_ascii_lowercase();
    words_of(url).any(|word| WORDS.contains(&word.as_str()))
        || asked.split('&').any(|pair| pair.split('=').any(|word| WORDS.contains(&word)))
}

/// The folders and the file of a URL: without ending, dashes and the like, in lower case.
fn words_of(url: &CanonicalUrl) -> impl Iterator<Item = String> {
    url.path().split('/').map(|part| {
        let name = part.split('.').next().unwrap_or_default();
        name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_ascii_lowercase()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> CanonicalUrl {
        CanonicalUrl::parse(text).unwrap()
    }

    #[test]
    fn a_logged_out_answer_is_recognised_by_where_it_leads_and_what_it_says() {
        let look = Fingerprint { simhash: 0xFF00, title: 7, features: 40 };
        let mut known = LoginLook::default();
        assert!(known.is_due(0));
        let answer = |status, location: Option<&str>, fingerprint| Answer {
            status,
            location: location.map(url),
            fingerprint,
            with_login: true,
            ..Answer::default()
        };
        known.answered(5, &Ok(answer(200, None, Some(look))));
        assert!(!known.is_due(6) && known.is_due(5 + FRESH_S));
        let own = url("https://e.com/door");
        let other = Fingerprint { simhash: 0xFFFF_0000, ..look };
        for (page, answer, is_out) in [
            ("https://e.com/a", answer(200, None, Some(other)), false),
            ("https://e.com/a", answer(200, None, Some(look)), true),
            ("https://e.com/door", answer(200, None, Some(look)), false),
            ("https://e.com/a", answer(302, Some("https://e.com/door?next=/a"), None), true),
            ("https://e.com/a", answer(302, Some("https://e.com/users/sign_in"), None), true),
            ("https://e.com/a", answer(303, Some("https://login.other.com/x"), None), true),
            ("https://e.com/a", answer(301, Some("https://e.com/b"), None), false),
            ("https://e.com/login", answer(302, Some("https://e.com/login/2"), None), false),
            ("https://e.com/a", answer(401, None, None), true),
            ("https://e.com/a", answer(403, None, None), false),
            ("https://e.com/a", answer(500, None, None), false),
        ] {
            let found = logged_out(&url(page), Some(&own), &known, &answer);
            assert_eq!(found.is_some(), is_out, "{page} {answer:?}");
            let plain = Answer { with_login: false, ..answer };
            assert_eq!(logged_out(&url(page), Some(&own), &known, &plain), None);
        }
    }

    #[test]
    fn pages_that_end_a_login_are_known() {
        for (page, ends) in [
            ("https://e.com/logout", true),
            ("https://e.com/users/sign_out", true),
            ("https://e.com/index.php?action=logout&x=1", true),
            ("https://e.com/Log-Out.aspx", true),
            ("https://e.com/blog/how-to-logout-of-x", false),
            ("https://e.com/a?next=/b", false),
        ] {
            assert_eq!(logs_out(&url(page)), ends, "{page}");
        }
    }
}
