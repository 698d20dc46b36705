//! Parameters that only keep caches from answering: a number that is never the same again. Which
//! they are is learnt from the archive: where two addresses differ in one parameter alone and the
//! answers are the same, and nowhere are they different, the parameter never altered an answer.

use std::collections::{BTreeMap, BTreeSet};

use nenrin_urls::CanonicalUrl;

use crate::{Capture, ReplayError, modifier::Modifier, served::Replay, target::after_prefix};

/// The most addresses with the same path that are looked at.
const MAX_URLS: usize = 64;
/// The most parameters of an address that is looked for.
const MAX_PARAMETERS: usize = 32;

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
    let agrees = |given: &Parameters| {
        given.iter().zip(&wanted).all(|(a, b)| a == b || ignored.contains(&a.0))
    };
    let found = known.into_iter().find(|(_, given, _)| agrees(given));
    Ok(found.map(|(capture, _, _)| (capture, ignored.into_iter().collect())))
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
