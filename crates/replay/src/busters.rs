//! Parameters that only keep caches from answering: a number that is never the same again. Which
//! they are is learnt from the archive: where two addresses differ in one parameter alone and the
//! answers are the same, and nowhere are they different, the parameter never altered an answer. A
//! parameter that was the time or a random number when it was archived, and is one again, is not
//! compared either.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_urls::CanonicalUrl;

use crate::{Capture, ReplayError, modifier::Modifier, served::Replay, target::after_prefix};

/// The most addresses with the same path that are looked at.
const MAX_URLS: usize = 64;
/// The most parameters of an address that is looked for.
const MAX_PARAMETERS: usize = 32;
/// How far the time in an address may be from when it was received.
const CLOCK_SPAN_S: i64 = 24 * 60 * 60;

type Parameters = Vec<(String, String)>;

/// A version of an address that differs from this one only in parameters that never altered an
/// answer, and the names of these.
pub(crate) fn without(
    replay: &Replay,
    url: &CanonicalUrl,
    at_s: i64,
    modifier: Modifier,
) -> Result<Option<(Capture, Vec<String>)>, ReplayError> {
    let wanted = parameters(url);
    if wanted.is_empty() || wanted.len() > MAX_PARAMETERS {
        return Ok(None);
    }
    let Ok(path) = url.server().url(url.path()) else { return Ok(None) };
    let from = format!("{}?", path.key());
    let mut known: Vec<(Capture, Parameters, String)> = Vec::new();
    for found in replay.archive.urls(&from, &after_prefix(&from), MAX_URLS)? {
        let given = parameters(&found);
        let names = |of: &Parameters| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let is_alike = found.path() == url.path() && names(&given) == names(&wanted);
        if is_alike && let Some(capture) = replay.choose(&found, at_s, modifier)? {
            let digest = replay.archive.head(capture.version)?.digest;
            known.push((capture, given, digest));
        }
    }
    let ignored = learnt(known.iter().map(|(_, given, digest)| (given, digest.as_str())));
    for (capture, given, _) in known {
        let differing = || given.iter().zip(&wanted).filter(|(a, b)| a != b);
        let first = replay.archive.versions(&capture.url.key(), i64::MIN, i64::MAX, 1)?;
        let first_s = first.first().map_or(capture.at_s, |first| first.at_s);
        let is_ignored = |(archived, asked): (&(String, String), &(String, String))| {
            ignored.contains(&archived.0)
                || is_chance(&archived.1) && is_chance(&asked.1)
                || is_clock(&archived.1, &asked.1, first_s)
        };
        if differing().all(is_ignored) {
            let names = differing().map(|(archived, _)| archived.0.clone()).collect();
            return Ok(Some((capture, names)));
        }
    }
    Ok(None)
}

/// Whether a value was the time when it was first received, and another one is of about the same
/// time, in seconds or milliseconds.
fn is_clock(archived: &str, asked: &str, first_s: i64) -> bool {
    let seconds = |text: &str| -> Option<i64> {
        let number: i64 = text.parse().ok()?;
        match text.len() {
            10 => Some(number),
            13 => Some(number / 1000),
            _ => None,
        }
    };
    let (Some(then_s), Some(asked_s)) = (seconds(archived), seconds(asked)) else { return false };
    let is_near = |a_s: i64, b_s: i64| (a_s - b_s).abs() <= CLOCK_SPAN_S;
    archived.len() == asked.len() && is_near(then_s, first_s) && is_near(then_s, asked_s)
}

/// Whether a value is what `Math.random` gives.
fn is_chance(text: &str) -> bool {
    let digits = text.strip_prefix("0.").unwrap_or_default();
    digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn parameters(url: &CanonicalUrl) -> Parameters {
    let query = url.query().unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// The parameters that never altered an answer.
fn learnt<'a>(known: impl Iterator<Item = (&'a Parameters, &'a str)>) -> BTreeSet<String> {
    // By name and all other parameters: the answers to its values.
    let mut groups: BTreeMap<(String, Parameters), Vec<&str>> = BTreeMap::new();
    for (given, digest) in known {
        for (at, (name, _)) in given.iter().enumerate() {
            let mut others = given.clone();
            others.remove(at);
            groups.entry((name.clone(), others)).or_default().push(digest);
        }
    }
    let (mut same, mut differing) = (BTreeSet::new(), BTreeSet::new());
    for ((name, _), digests) in groups {
        if digests.len() > 1 {
            let is_same = digests.iter().all(|digest| *digest == digests[0]);
            if is_same {
                same.insert(name)
            } else {
                differing.insert(name)
            };
        }
    }
    same.difference(&differing).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Parameters {
        parameters(&CanonicalUrl::parse(&format!("http://e.com/?{query}")).unwrap())
    }

    #[test]
    fn the_time_and_random_numbers_are_recognised() {
        let at_s = 1_709_640_794;
        for (archived, asked, is) in [
            ("1709640794123", "1709640795001", true),
            ("1709640794", "1709640700", true),
            ("1709640794", "1709640794123", false),
            ("1609640794", "1609640799", false),
            ("1709640794", "1809640794", false),
            ("5", "6", false),
        ] {
            assert_eq!(is_clock(archived, asked, at_s), is, "{archived} {asked}");
        }
        assert!(is_chance("0.8273645192837465") && !is_chance("0.5") && !is_chance("0.1234567x"));
    }

    #[test]
    fn a_parameter_is_ignored_only_if_it_never_altered_an_answer() {
        let names = |known: &[(&str, &str)]| {
            let known: Vec<_> = known.iter().map(|(query, digest)| (of(query), *digest)).collect();
            learnt(known.iter().map(|(given, digest)| (given, *digest)))
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&[("p=1&t=5", "a"), ("p=1&t=6", "a"), ("p=2&t=5", "b")]), ["t"]);
        assert_eq!(names(&[("p=1&t=5", "a"), ("p=2&t=6", "a")]), [""; 0], "two at once");
        assert_eq!(names(&[("t=5", "a"), ("t=6", "a"), ("t=7", "b")]), [""; 0]);
        assert_eq!(names(&[("t=5", "a")]), [""; 0], "no evidence");
    }
}
