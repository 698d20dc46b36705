//! Chooses the version of a URL for a date.

use nenrin_urls::{CanonicalUrl, UrlKey};

use crate::{Archive, ArchiveError, Capture, ReplayOptions, head::Head, modifier::Modifier};

/// The most versions tried before the one nearest to the date, if that one is not suitable.
const MAX_STEPS: usize = 64;

/// The rule, for one request.
pub(crate) struct Choice<'a> {
    pub(crate) archive: &'a dyn Archive,
    pub(crate) options: &'a ReplayOptions,
    pub(crate) url: &'a CanonicalUrl,
    pub(crate) at_s: i64,
    pub(crate) modifier: Modifier,
}

impl Choice<'_> {
    /// The newest version at or before the date, or else the oldest after it. A version of exactly
    /// this URL is preferred to one that only shares its key; a redirect to itself is never chosen;
    /// for parts of a page a good answer is preferred to an error near it.
    pub(crate) fn make(&self) -> Result<Option<Capture>, ArchiveError> {
        let key = self.url.key();
        let Some(first) = self.archive.as_of(&key, self.at_s)? else { return Ok(None) };
        if let Some(next) = self.soon_after(&key, &first)? {
            return Ok(Some(next));
        }
        if self.class(&first, &first) == 0 && !self.is_self_redirect(&key, &first)? {
            return Ok(Some(first));
        }
        self.search(&key, first)
    }

    /// The parts of a page are received after it, when a collector follows its links. So a version
    /// that came soon after the date, and nearer to it than the one before, belongs to the page,
    /// unless it was found by another round that began later.
    fn soon_after(&self, key: &UrlKey, first: &Capture) -> Result<Option<Capture>, ArchiveError> {
        let age_s = self.at_s.saturating_sub(first.at_s);
        let reach_s = self.options.part_grace_s.min(age_s.saturating_sub(1));
        if !self.modifier.is_part() || reach_s <= 0 {
            return Ok(None);
        }
        let until_s = self.at_s.saturating_add(reach_s);
        let next = self.archive.versions(key, self.at_s + 1, until_s, 1)?;
        let next = next.into_iter().find(|c| is_good(c) && same_page(&c.url, self.url));
        let Some(next) = next else { return Ok(None) };
        let is_of_another_round = self.archive.round_began(&next.url, self.at_s, next.at_s)?;
        Ok((!is_of_another_round).then_some(next))
    }

    fn search(&self, key: &UrlKey, first: Capture) -> Result<Option<Capture>, ArchiveError> {
        let mut best: Option<(u8, Capture)> = None;
        let mut consider = |class: u8, capture: Capture| -> Result<bool, ArchiveError> {
            let is_better = best.as_ref().is_none_or(|(found, _)| class < *found);
            if is_better && !self.is_self_redirect(key, &capture)? {
                best = Some((class, capture));
            }
            Ok(best.as_ref().is_some_and(|(class, _)| *class == 0))
        };
        let mut next = (first.at_s <= self.at_s).then(|| first.clone());
        for _ in 0..MAX_STEPS {
            let Some(capture) = next else { break };
            let before_s = capture.at_s;
            if consider(self.class(&capture, &first), capture)? {
                break;
            }
            next = self.archive.as_of(key, before_s - 1)?.filter(|c| c.at_s < before_s);
        }
        for capture in self.archive.versions(key, self.at_s + 1, i64::MAX, MAX_STEPS)? {
            let class = self.class(&capture, &first);
            let after = if class < 2 && self.modifier.is_part() { class + 1 } else { class + 4 };
            consider(after, capture)?;
        }
        Ok(best.map(|(_, capture)| capture))
    }

    /// How suitable a version is, apart from its time: 0 is best.
    fn class(&self, capture: &Capture, first: &Capture) -> u8 {
        let is_near = (capture.at_s - first.at_s).abs() <= self.options.good_span_s;
        let good = if self.modifier.is_part() && !(is_good(capture) && is_near) { 2 } else { 0 };
        good + u8::from(!same_page(&capture.url, self.url))
    }

    fn is_self_redirect(&self, key: &UrlKey, capture: &Capture) -> Result<bool, ArchiveError> {
        if !(300..400).contains(&capture.status) {
            return Ok(false);
        }
        let head = self.archive.head(capture.version)?;
        let location = Head::parse(&head.response_head).location(&capture.url);
        Ok(location.is_some_and(|to| to.key() == *key))
    }
}

fn is_good(capture: &Capture) -> bool {
    (200..300).contains(&capture.status)
}

/// The same except for http and https: sites moved from one to the other without changing.
fn same_page(a: &CanonicalUrl, b: &CanonicalUrl) -> bool {
    let after_scheme = |url: &CanonicalUrl| url.as_str()[url.scheme().len()..].to_owned();
    a == b || (a.scheme() != b.scheme() && after_scheme(a) == after_scheme(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryArchive;

    fn url(text: &str) -> CanonicalUrl {
        CanonicalUrl::parse(text).unwrap()
    }

    fn archive(versions: &[(&str, i64, u16, &str)]) -> MemoryArchive {
        let mut archive = MemoryArchive::new();
        for (text, at_s, status, location) in versions {
            archive.put(&url(text), *at_s, *status, &format!("Location: {location}"), "x");
        }
        archive
    }

    fn chosen(
        archive: &MemoryArchive,
        text: &str,
        at_s: i64,
        m: Modifier,
    ) -> Option<(String, i64)> {
        let options = ReplayOptions::default();
        let url = url(text);
        let choice = Choice { archive, options: &options, url: &url, at_s, modifier: m };
        choice.make().unwrap().map(|c| (c.url.to_string(), c.at_s))
    }

    const DAY: i64 = 86_400;
    const A: &str = "http://e.com/a";

    #[test]
    fn the_newest_version_at_or_before_the_date_is_chosen() {
        let archive = archive(&[(A, DAY, 200, ""), (A, 5 * DAY, 200, ""), (A, 9 * DAY, 200, "")]);
        for (at, expected) in
            [(DAY, DAY), (5 * DAY - 1, DAY), (5 * DAY, 5 * DAY), (99 * DAY, 9 * DAY)]
        {
            for m in [Modifier::Page, Modifier::Image] {
                // A part that came within the grace period has its own test.
                if m == Modifier::Image && at == 5 * DAY - 1 {
                    continue;
                }
                assert_eq!(chosen(&archive, A, at, m), Some((A.to_owned(), expected)), "{at}");
            }
        }
        assert_eq!(chosen(&archive, A, 0, Modifier::Page).unwrap().1, DAY);
        assert_eq!(chosen(&archive, "http://e.com/b", 0, Modifier::Page), None);
    }

    #[test]
    fn a_part_received_just_after_its_page_belongs_to_it() {
        let archive = archive(&[(A, DAY, 200, ""), (A, 5 * DAY + 60, 200, "")]);
        assert_eq!(chosen(&archive, A, 5 * DAY, Modifier::Style).unwrap().1, 5 * DAY + 60);
        assert_eq!(chosen(&archive, A, 5 * DAY, Modifier::Page).unwrap().1, DAY);
        assert_eq!(chosen(&archive, A, 3 * DAY, Modifier::Style).unwrap().1, DAY);
    }

    #[test]
    fn a_part_that_the_next_round_found_changed_stays_what_it_was() {
        let mut archive = archive(&[(A, DAY, 200, ""), (A, 5 * DAY + 60, 200, "")]);
        archive.begin_round(5 * DAY);
        assert_eq!(chosen(&archive, A, 5 * DAY, Modifier::Style).unwrap().1, 5 * DAY + 60);
        archive.begin_round(5 * DAY + 50);
        assert_eq!(chosen(&archive, A, 5 * DAY, Modifier::Style).unwrap().1, DAY);
    }

    #[test]
    fn a_good_part_goes_before_an_error_near_it() {
        let archive = archive(&[(A, DAY, 200, ""), (A, 5 * DAY, 404, "")]);
        assert_eq!(chosen(&archive, A, 6 * DAY, Modifier::Image).unwrap().1, DAY);
        assert_eq!(chosen(&archive, A, 6 * DAY, Modifier::Page).unwrap().1, 5 * DAY);
    }

    #[test]
    fn a_good_part_after_the_date_goes_before_an_error_before_it() {
        let archive = archive(&[(A, DAY, 500, ""), (A, 8 * DAY, 200, "")]);
        assert_eq!(chosen(&archive, A, 2 * DAY, Modifier::Image).unwrap().1, 8 * DAY);
    }

    #[test]
    fn an_error_far_from_any_good_answer_stays_an_error() {
        let archive = archive(&[(A, DAY, 200, ""), (A, 500 * DAY, 404, "")]);
        assert_eq!(chosen(&archive, A, 600 * DAY, Modifier::Image).unwrap().1, 500 * DAY);
    }

    #[test]
    fn a_version_of_the_exact_url_goes_before_one_that_shares_its_key() {
        let archive = archive(&[("http://e.com/A", DAY, 200, ""), (A, 5 * DAY, 200, "")]);
        assert_eq!(
            chosen(&archive, "http://e.com/A", 6 * DAY, Modifier::Page),
            Some(("http://e.com/A".to_owned(), DAY))
        );
        assert_eq!(
            chosen(&archive, "http://www.e.com/a/", 6 * DAY, Modifier::Page),
            Some((A.to_owned(), 5 * DAY))
        );
    }

    #[test]
    fn a_redirect_to_itself_is_never_chosen() {
        let secure = "https://e.com/a";
        let archive = archive(&[(secure, DAY, 200, ""), (A, 5 * DAY, 301, secure)]);
        let expected = Some((secure.to_owned(), DAY));
        assert_eq!(chosen(&archive, A, 6 * DAY, Modifier::Page), expected);
        assert_eq!(chosen(&archive, secure, 6 * DAY, Modifier::Page), expected);
        let only_loop = super::tests::archive(&[(A, DAY, 301, secure)]);
        assert_eq!(chosen(&only_loop, A, 6 * DAY, Modifier::Page), None);
    }
}
