//! What an answer means for the page: changed, same, not modified, gone, refused or failed.

use nenrin_lang::{Reason, Unfetched};
use nenrin_state::{Outcome, PageRecord};

use crate::answer::{Answer, Trouble};

/// The meaning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What was found.
    pub outcome: Outcome,
    /// Why, where it needs a reason.
    pub reason: Option<Reason>,
}

impl Verdict {
    pub(crate) fn because(outcome: Outcome, reason: Reason) -> Self {
        Self { outcome, reason: Some(reason) }
    }
}

/// Judges one exchange. An error is a result, never a version: only a good answer or a redirect
/// with other content than last time is a change.
pub fn verdict(page: &PageRecord, asked_conditionally: bool, answer: &Answer) -> Verdict {
    if let Some(guard) = &answer.challenge {
        return Verdict::because(Outcome::Refused, Reason::Challenge(guard.clone()));
    }
    match answer.status {
        304 if asked_conditionally => Verdict { outcome: Outcome::NotModified, reason: None },
        304 => Verdict::because(Outcome::Failed, Reason::NotModifiedUnasked),
        206 => Verdict::because(Outcome::Failed, Reason::PartUnasked),
        200..=299 => content(page, answer),
        300..=399 => match &answer.location {
            Some(location) if *location == page.url => {
                Verdict::because(Outcome::Failed, Reason::RedirectToItself)
            }
            Some(_) => content(page, answer),
            None => Verdict::because(Outcome::Failed, Reason::NoLocation(answer.status)),
        },
        status @ (404 | 410) => Verdict::because(Outcome::Gone, Reason::Status(status)),
        status => Verdict::because(Outcome::Failed, Reason::Status(status)),
    }
}

fn content(page: &PageRecord, answer: &Answer) -> Verdict {
    // A page that was gone and comes back is a version, even with the content of old: as of the
    // time between, there was none.
    let there = page.version.is_some() && page.outcome != Some(Outcome::Gone);
    let same = there && page.mark.is_some() && page.mark == answer.mark;
    let outcome = if same { Outcome::Same } else { Outcome::Changed };
    Verdict { outcome, reason: answer.unreadable.clone().map(Reason::Undecoded) }
}

/// Judges a fetch that brought nothing.
pub fn trouble(trouble: &Trouble) -> Verdict {
    let outcome = if trouble.refused { Outcome::Refused } else { Outcome::Failed };
    Verdict::because(outcome, trouble.reason.clone())
}

/// Judges a page that was not visited because its server's robots.txt did not come. Where the server
/// cannot be reached at all, that is said; else that it was its robots.txt.
pub(crate) fn robots_trouble(of_robots: &Trouble) -> Verdict {
    let verdict = trouble(of_robots);
    let of_server = match &of_robots.reason {
        Reason::Unfetched(why) => matches!(
            why,
            Unfetched::Address { .. }
                | Unfetched::Dns { .. }
                | Unfetched::Connect { .. }
                | Unfetched::Tls { .. }
        ),
        _ => false,
    };
    if of_server {
        return verdict;
    }
    let why = Box::new(of_robots.reason.clone());
    Verdict::because(verdict.outcome, Reason::RobotsUnfetched(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_state::{ContentMark, Nth, PageId, SiteId, VersionId};
    use nenrin_urls::CanonicalUrl;

    fn page(mark: Option<u8>) -> PageRecord {
        let url = CanonicalUrl::parse("http://e.com/a").unwrap();
        PageRecord {
            mark: mark.map(|m| ContentMark([m; 16])),
            version: mark.map(|mark| VersionId(mark.into())),
            ..PageRecord::unvisited((PageId(1), Nth(1)), url, SiteId(1), 0, None)
        }
    }

    fn answer(status: u16, mark: u8) -> Answer {
        Answer { status, mark: Some(ContentMark([mark; 16])), ..Answer::default() }
    }

    #[test]
    fn statuses_mean_what_they_say() {
        let known = page(Some(1));
        for (status, mark, asked, expected) in [
            (200, 1, false, Outcome::Same),
            (200, 2, false, Outcome::Changed),
            (304, 9, true, Outcome::NotModified),
            (304, 9, false, Outcome::Failed),
            (404, 9, false, Outcome::Gone),
            (410, 9, true, Outcome::Gone),
            (403, 9, false, Outcome::Failed),
            (500, 1, false, Outcome::Failed),
            (429, 1, false, Outcome::Failed),
            (206, 1, false, Outcome::Failed),
        ] {
            assert_eq!(verdict(&known, asked, &answer(status, mark)).outcome, expected, "{status}");
        }
        assert_eq!(verdict(&page(None), false, &answer(200, 1)).outcome, Outcome::Changed);
    }

    #[test]
    fn a_challenge_is_no_version_whatever_its_status() {
        for status in [200, 403, 503] {
            let challenge = Some("cloudflare".to_owned());
            let challenged = Answer { challenge, ..answer(status, 9) };
            let found = verdict(&page(Some(1)), false, &challenged);
            assert_eq!(found.outcome, Outcome::Refused, "{status}");
            assert_eq!(found.reason, Some(Reason::Challenge("cloudflare".to_owned())));
        }
    }

    #[test]
    fn a_page_that_comes_back_is_a_version() {
        let gone = PageRecord { outcome: Some(Outcome::Gone), ..page(Some(1)) };
        assert_eq!(verdict(&gone, false, &answer(200, 1)).outcome, Outcome::Changed);
    }

    #[test]
    fn a_redirect_is_content_unless_it_leads_nowhere() {
        let mut moved = answer(301, 3);
        assert_eq!(verdict(&page(None), false, &moved).outcome, Outcome::Failed);
        moved.location = Some(CanonicalUrl::parse("http://e.com/b").unwrap());
        assert_eq!(verdict(&page(None), false, &moved).outcome, Outcome::Changed);
        assert_eq!(verdict(&page(Some(3)), false, &moved).outcome, Outcome::Same);
        moved.location = Some(CanonicalUrl::parse("http://e.com/a").unwrap());
        let itself = verdict(&page(None), false, &moved);
        assert_eq!(itself.outcome, Outcome::Failed);
        assert_eq!(itself.reason, Some(Reason::RedirectToItself));
    }
}
