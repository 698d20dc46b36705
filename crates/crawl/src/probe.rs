//! What a server shows for a page that does not exist, and which answers look like it.

use nenrin_extract::Fingerprint;
use nenrin_lang::Reason;
use nenrin_state::{Outcome, PageRecord};
use nenrin_urls::{CanonicalUrl, Server};
use serde::{Deserialize, Serialize};

use crate::{
    answer::{Answer, Trouble},
    verdict::Verdict,
};

/// A server that answers unknown pages honestly is asked again after this long.
const HONEST_FRESH_S: i64 = 30 * 86_400;
/// One that does not may change the look of its answer with its design.
const DISGUISED_FRESH_S: i64 = 7 * 86_400;
/// A probe without a usable answer is repeated after this long.
const UNANSWERED_FRESH_S: i64 = 86_400;
/// A page with fewer features (about half as many words) says too little to be known again.
const FEATURES_MIN: u32 = 8;
/// Pages judged before their share can say anything.
const JUDGED_MIN: u32 = 10;
/// Counts are halved at this number, so that a server can become another.
const JUDGED_MAX: u32 = 64;

/// What is known of a server's answer for pages that do not exist.
///
/// It never turns a page away when in doubt:
/// - a top page is never judged, nor is a page whose content did not change since it was taken;
/// - as long as neither the top page nor any page that looks otherwise was seen, none is judged;
/// - when the top page itself looks like the probe, every page does (a shell that scripts fill),
///   and the probe says nothing;
/// - the same holds when four in five of the pages that were not gone before look like it; pages
///   that stayed as they were count among the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Probe {
    /// When the server was last asked.
    pub asked_s: Option<i64>,
    /// What it answered.
    pub look: Look,
    /// What its top page looked like when it was last seen.
    pub top: Option<Fingerprint>,
    /// Where its top page led when it was last seen, if it led on.
    pub top_leads: Option<CanonicalUrl>,
    /// Pages compared with it.
    pub judged: u32,
    /// Of these, the ones that looked like it.
    pub alike: u32,
    /// Whether any page looked otherwise. One that stayed as it was may still look like the probe.
    pub has_other: bool,
    /// Pages called gone because of it.
    pub called_gone: u64,
}

/// How a server answers for a page that does not exist.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// Not known.
    #[default]
    Unknown,
    /// With an error status, as it should, or in a way that says nothing.
    Honest,
    /// With a page and a good status.
    Page(Fingerprint),
    /// With a redirect to a page that says nothing of the one asked for.
    Redirect(CanonicalUrl),
}

impl Probe {
    /// Whether the server should be asked (again).
    pub fn is_due(&self, now_s: i64) -> bool {
        let fresh_s = match self.look {
            Look::Unknown => UNANSWERED_FRESH_S,
            Look::Honest => HONEST_FRESH_S,
            Look::Page(_) | Look::Redirect(_) => DISGUISED_FRESH_S,
        };
        // If it was asked in the future, the clock was ahead.
        self.asked_s.is_none_or(|asked_s| asked_s > now_s || now_s - asked_s >= fresh_s)
    }

    /// Whether the server answers with a good status for pages that do not exist.
    pub fn is_disguised(&self) -> bool {
        matches!(self.look, Look::Page(_) | Look::Redirect(_))
    }

    /// Whether answers must be read for their fingerprint.
    pub fn wants_fingerprints(&self) -> bool {
        matches!(self.look, Look::Page(_))
    }

    /// Takes in what came of asking for `asked`.
    pub fn answered(&mut self, now_s: i64, asked: &CanonicalUrl, result: &Result<Answer, Trouble>) {
        self.asked_s = Some(now_s);
        let Some(look) = result.as_ref().ok().and_then(|answer| look(asked, answer)) else {
            return;
        };
        if look != self.look {
            (self.judged, self.alike, self.has_other) = (0, 0, false);
        }
        self.look = look;
    }

    /// No answer can be had (robots.txt forbids it): asked again as if it had been honest. A look that
    /// is known stays: the server shows it whether or not it may be asked again.
    pub fn not_allowed(&mut self, now_s: i64) {
        self.asked_s = Some(now_s);
        if self.look == Look::Unknown {
            self.look = Look::Honest;
        }
    }

    /// Whether the top page must be seen whole: there is nothing to compare the probe with.
    pub fn wants_top(&self) -> bool {
        self.wants_fingerprints() && self.top.is_none()
    }

    /// A top page was seen: one that looks like the probe makes the probe worthless. Answers whether
    /// it looks otherwise than before.
    pub fn saw_top(&mut self, answer: &Answer) -> bool {
        if answer.fingerprint.is_none() && answer.location.is_none() {
            return false;
        }
        let changed = self.top != answer.fingerprint || self.top_leads != answer.location;
        self.top = answer.fingerprint;
        self.top_leads.clone_from(&answer.location);
        changed
    }

    /// Why a good answer for a page other than a top page means that there is no such page, if so.
    pub fn judge(&mut self, page: &PageRecord, answer: &Answer) -> Option<Reason> {
        let gone_before = page.outcome == Some(Outcome::Gone);
        if page.version.is_some() && !gone_before && page.mark == answer.mark {
            self.stayed();
            return None;
        }
        let alike = self.resembles(answer.fingerprint.as_ref(), answer.location.as_ref());
        if !gone_before && self.can_compare(answer) {
            self.count(alike);
            self.has_other |= !alike;
        }
        if !alike || self.is_worthless() || !gone_before && self.is_untried() {
            return None;
        }
        self.called_gone += 1;
        Some(match &self.look {
            Look::Redirect(to) => Reason::RedirectsLikeMissingPages(to.to_string()),
            _ => Reason::LooksLikeMissingPages,
        })
    }

    /// Corrects what an answer of a page other than a top page was taken for: a good one that is what
    /// the server shows for pages that do not exist means gone.
    pub fn correct(&mut self, page: &PageRecord, answer: &Answer, found: Verdict) -> Verdict {
        let reason = match found.outcome {
            Outcome::Changed | Outcome::Same => self.judge(page, answer),
            Outcome::NotModified => {
                self.stayed();
                None
            }
            _ => None,
        };
        match reason {
            Some(reason) => Verdict::because(Outcome::Gone, reason),
            None => found,
        }
    }

    /// A page stayed as it was: the server does not confuse it with one that does not exist. Counted only
    /// against pages that looked like the probe, so that nothing is written of servers without.
    pub fn stayed(&mut self) {
        if self.alike > 0 {
            self.count(false);
        }
    }

    /// Whether an answer says if it looks like the probe. No fingerprint is taken of pages where a
    /// redirect is the look, and a page that leads nowhere is not alike.
    fn can_compare(&self, answer: &Answer) -> bool {
        match self.look {
            Look::Redirect(_) => true,
            Look::Page(_) => answer.fingerprint.is_some() || answer.location.is_some(),
            Look::Unknown | Look::Honest => false,
        }
    }

    fn count(&mut self, alike: bool) {
        self.judged += 1;
        self.alike += u32::from(alike);
        if self.judged >= JUDGED_MAX {
            self.judged /= 2;
            self.alike /= 2;
        }
    }

    /// Whether the probe says nothing because good pages look like it too.
    pub fn is_worthless(&self) -> bool {
        self.resembles(self.top.as_ref(), self.top_leads.as_ref())
            || self.judged >= JUDGED_MIN && self.alike * 5 >= self.judged * 4
    }

    /// Whether no page was seen yet that looks otherwise: then all may be shells that scripts fill.
    pub(crate) fn is_untried(&self) -> bool {
        self.wants_top() && !self.has_other
    }

    fn resembles(&self, print: Option<&Fingerprint>, leads: Option<&CanonicalUrl>) -> bool {
        match (&self.look, print, leads) {
            (Look::Page(look), Some(print), _) => look.resembles(print),
            (Look::Redirect(look), _, Some(to)) => look == to,
            _ => false,
        }
    }
}

fn look(asked: &CanonicalUrl, answer: &Answer) -> Option<Look> {
    if answer.challenge.is_some() {
        return None;
    }
    match answer.status {
        200..=299 => {
            let telling = answer.fingerprint.filter(|print| print.features >= FEATURES_MIN);
            Some(telling.map_or(Look::Honest, Look::Page))
        }
        // A redirect that carries the path on (to https, to a login) says nothing about the page.
        300..=399 => answer.location.clone().map(|to| {
            let name = asked.path().trim_start_matches('/');
            if to.as_str().contains(name) { Look::Honest } else { Look::Redirect(to) }
        }),
        429 | 500..=599 => None,
        _ => Some(Look::Honest),
    }
}

/// A URL that no server has: a name drawn from seed, server and time.
pub(crate) fn probe_url(server: &Server, seed: u64, now_s: i64) -> Option<CanonicalUrl> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(server.as_str().as_bytes());
    hasher.update(&now_s.to_le_bytes());
    let letters = hasher.finalize();
    let name: String =
        letters.as_bytes()[..16].iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    server.url(&format!("/{name}")).ok()
}

/// Whether a URL may name a page for people: its server is probed before the first of these, not
/// for the sake of pictures and styles alone.
pub(crate) fn may_be_a_document(url: &CanonicalUrl) -> bool {
    const PARTS: [&str; 26] = [
        "css", "js", "mjs", "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "woff",
        "woff2", "ttf", "otf", "eot", "mp3", "mp4", "webm", "ogg", "pdf", "zip", "gz", "xml",
        "json", "txt",
    ];
    let name = url.path().rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, end)) => !PARTS.contains(&end.to_ascii_lowercase().as_str()),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_extract::{ContentKind, fingerprint};
    use nenrin_state::{ContentMark, Nth, PageId, SiteId, VersionId};

    fn url(path: &str) -> CanonicalUrl {
        CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap()
    }

    fn page(path: &str) -> PageRecord {
        PageRecord::unvisited((PageId(1), Nth(1)), url(path), SiteId(1), 0, None)
    }

    fn shown(path: &str, body: &str) -> Answer {
        let print = fingerprint(&url(path), ContentKind::Html, Some("text/html"), body.as_bytes());
        let digest = blake3::hash(body.as_bytes());
        let mut mark = [0; 16];
        mark.copy_from_slice(&digest.as_bytes()[..16]);
        Answer {
            status: 200,
            fingerprint: Some(print),
            mark: Some(ContentMark(mark)),
            ..Answer::default()
        }
    }

    fn moved(to: &str) -> Answer {
        Answer { status: 302, location: Some(url(to)), ..Answer::default() }
    }

    const SORRY: &str = "<title>Sorry</title><p>There is no such page here, alas. Look for it in \
        the index, ask the keeper of the rings, or begin again at the front.</p>";

    fn article(n: u32) -> String {
        let words = ["oak", "ash", "elm", "fir", "yew", "lime", "pine", "birch", "alder", "beech"];
        let text: Vec<&str> = (0..40).map(|i| words[(n as usize * 7 + i * i) % 10]).collect();
        format!("<title>Tree {}</title><p>{}", words[n as usize % 10], text.join(" "))
    }

    fn probed(answer: Answer) -> Probe {
        let mut probe = Probe::default();
        probe.answered(1000, &url("/qwertzuiopasdfgh"), &Ok(answer));
        probe
    }

    #[test]
    fn a_page_that_looks_like_the_probe_is_gone_and_others_are_not() {
        let mut probe = probed(shown("/qwertzuiopasdfgh", SORRY));
        assert_eq!(probe.judge(&page("/0"), &shown("/0", SORRY)), None, "all may look like this");
        probe.saw_top(&shown("/", &article(2)));
        let why = probe.judge(&page("/a"), &shown("/a", SORRY));
        assert_eq!(why, Some(Reason::LooksLikeMissingPages));
        assert_eq!(probe.judge(&page("/b"), &shown("/b", &article(1))), None);
        assert_eq!(probe.called_gone, 1);
    }

    #[test]
    fn a_probe_that_says_next_to_nothing_judges_nothing() {
        assert_eq!(probed(shown("/qwertzuiopasdfgh", "page /qwertzuiopasdfgh")).look, Look::Honest);
    }

    #[test]
    fn a_redirect_to_where_every_unknown_page_leads_is_gone() {
        let mut probe = probed(moved("/"));
        let why = probe.judge(&page("/old"), &moved("/"));
        assert_eq!(why, Some(Reason::RedirectsLikeMissingPages("http://e.com/".to_owned())));
        assert_eq!(probe.judge(&page("/old"), &moved("/new")), None);
    }

    #[test]
    fn a_redirect_that_carries_the_path_on_tells_nothing() {
        let probe = probed(moved("/login?next=/qwertzuiopasdfgh"));
        assert_eq!(probe.look, Look::Honest);
    }

    #[test]
    fn a_page_of_a_shell_that_stayed_does_not_look_otherwise() {
        let shell = "<title>App</title><p>This application needs scripts to show its pages.</p>";
        let mut probe = probed(shown("/qwertzuiopasdfgh", shell));
        assert_eq!(probe.judge(&page("/a"), &shown("/a", shell)), None);
        // Another site visits the same page, before the top page was seen.
        let known = PageRecord {
            version: Some(VersionId(1)),
            outcome: Some(Outcome::Changed),
            mark: shown("/a", shell).mark,
            ..page("/a")
        };
        assert_eq!(probe.judge(&known, &shown("/a", shell)), None);
        assert_eq!(probe.judge(&page("/b"), &shown("/b", shell)), None);
    }

    #[test]
    fn a_shell_that_scripts_fill_is_never_gone() {
        let shell = "<title>App</title><p>This application needs scripts to show its pages.</p>";
        let mut probe = probed(shown("/qwertzuiopasdfgh", shell));
        probe.saw_top(&shown("/", shell));
        assert!(probe.is_worthless());
        assert_eq!(probe.judge(&page("/a"), &shown("/a", shell)), None);
        // A top page that looks otherwise makes the probe worth something again.
        probe.saw_top(&shown("/", &article(1)));
        assert!(probe.judge(&page("/a"), &shown("/a", shell)).is_some());
    }

    #[test]
    fn when_most_pages_look_like_the_probe_it_is_worthless() {
        let mut probe = probed(shown("/qwertzuiopasdfgh", SORRY));
        probe.saw_top(&shown("/", &article(2)));
        for n in 0..9 {
            let path = format!("/{n}");
            assert!(probe.judge(&page(&path), &shown(&path, SORRY)).is_some());
        }
        assert_eq!(probe.judge(&page("/9"), &shown("/9", SORRY)), None);
        // Good pages bring it back.
        for n in 0..10 {
            let path = format!("/good{n}");
            assert_eq!(probe.judge(&page(&path), &shown(&path, &article(n))), None);
        }
        assert!(probe.judge(&page("/x"), &shown("/x", SORRY)).is_some());
    }

    #[test]
    fn good_pages_speak_for_a_probe_that_leads_elsewhere() {
        let mut probe = probed(moved("/"));
        let plain = Answer { status: 200, ..Answer::default() };
        for n in 0..10 {
            assert_eq!(probe.judge(&page(&format!("/good{n}")), &plain), None);
        }
        for n in 0..30 {
            assert!(probe.judge(&page(&format!("/{n}")), &moved("/")).is_some(), "{n}");
        }
    }

    #[test]
    fn pages_that_stay_as_they_were_speak_for_the_probe() {
        let mut probe = probed(shown("/qwertzuiopasdfgh", SORRY));
        probe.saw_top(&shown("/", &article(2)));
        for n in 0..500 {
            let path = format!("/{n}");
            assert!(probe.judge(&page(&path), &shown(&path, SORRY)).is_some(), "{n}");
            probe.stayed();
        }
    }

    #[test]
    fn pages_that_were_gone_before_do_not_make_the_probe_worthless() {
        let mut probe = probed(shown("/qwertzuiopasdfgh", SORRY));
        let gone = PageRecord { outcome: Some(Outcome::Gone), ..page("/gone") };
        for _ in 0..100 {
            assert!(probe.judge(&gone, &shown("/gone", SORRY)).is_some());
        }
    }

    #[test]
    fn a_page_that_did_not_change_since_it_was_taken_is_never_gone() {
        let mut probe = probed(shown("/qwertzuiopasdfgh", SORRY));
        probe.saw_top(&shown("/", &article(2)));
        let answer = shown("/a", SORRY);
        let taken = PageRecord {
            version: Some(VersionId(1)),
            mark: answer.mark,
            outcome: Some(Outcome::Changed),
            ..page("/a")
        };
        assert_eq!(probe.judge(&taken, &answer), None);
        let changed = PageRecord { mark: Some(ContentMark([1; 16])), ..taken };
        assert!(probe.judge(&changed, &answer).is_some());
    }

    #[test]
    fn a_known_look_stays_when_it_may_not_be_asked_for_again() {
        let mut probe = probed(shown("/qwertzuiopasdfgh", SORRY));
        probe.saw_top(&shown("/", &article(2)));
        probe.not_allowed(2000);
        assert!(probe.is_disguised() && !probe.is_due(2001));
        assert!(probe.judge(&page("/a"), &shown("/a", SORRY)).is_some());
        let mut unknown = Probe::default();
        unknown.not_allowed(2000);
        assert_eq!(unknown.look, Look::Honest);
    }

    #[test]
    fn an_honest_server_is_asked_rarely_and_a_silent_one_soon() {
        let honest = probed(Answer { status: 404, ..Answer::default() });
        assert_eq!(honest.look, Look::Honest);
        assert!(!honest.is_due(1000 + HONEST_FRESH_S - 1) && honest.is_due(1000 + HONEST_FRESH_S));
        assert!(!honest.is_due(1000) && honest.is_due(999), "the clock was ahead");
        let mut silent = Probe::default();
        assert!(silent.is_due(0));
        silent.answered(1000, &url("/x"), &Ok(Answer { status: 503, ..Answer::default() }));
        assert!(!silent.is_due(1001) && silent.is_due(1000 + UNANSWERED_FRESH_S));
        let mut known = probed(shown("/qwertzuiopasdfgh", SORRY));
        let before = known.look.clone();
        known.answered(2000, &url("/y"), &Ok(Answer { status: 500, ..Answer::default() }));
        assert_eq!(known.look, before);
    }

    #[test]
    fn the_probes_url_is_the_same_for_the_same_seed_and_new_each_time() {
        let server = url("/").server();
        assert_eq!(probe_url(&server, 1, 5), probe_url(&server, 1, 5));
        assert_ne!(probe_url(&server, 1, 5), probe_url(&server, 1, 6));
        assert_ne!(probe_url(&server, 1, 5), probe_url(&server, 2, 5));
    }

    #[test]
    fn pictures_alone_cause_no_probe() {
        assert!(may_be_a_document(&url("/a/b")) && may_be_a_document(&url("/a.html")));
        assert!(!may_be_a_document(&url("/i/x.PNG")) && !may_be_a_document(&url("/s.css?v=1")));
    }
}
