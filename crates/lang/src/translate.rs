//! Translates an English sentence of the program into Japanese, by a table of phrases with holes.

use crate::phrases::PHRASES;

/// Sentences contain sentences, but only this deep.
const MAX_DEPTH: u32 = 4;
/// Longer texts are not sentences of ours and stay unchanged.
const MAX_BYTES: usize = 20_000;

/// The sentence in Japanese, if it is a known one.
pub(crate) fn in_japanese(noted: &str) -> Option<String> {
    if noted.len() > MAX_BYTES { None } else { phrase(noted, 0) }
}

fn phrase(noted: &str, depth: u32) -> Option<String> {
    if depth == MAX_DEPTH {
        return None;
    }
    PHRASES.iter().find_map(|(en, ja)| {
        let found = holes(en, noted)?;
        let filled: Option<Vec<String>> =
            found.into_iter().map(|(kind, text)| filled(kind, text, depth)).collect();
        Some(put_in(ja, &filled?))
    })
}

/// The translated content of a hole, by its kind.
fn filled(kind: &str, text: &str, depth: u32) -> Option<String> {
    match kind {
        // A sentence, translated if it is known.
        "t" => Some(phrase(text, depth + 1).unwrap_or_else(|| text.to_owned())),
        // A sentence that must be known, or the whole phrase does not match.
        "!" => phrase(text, depth + 1),
        // Any text.
        _ => Some(text.to_owned()),
    }
}

/// The contents of the holes of a phrase, with their kinds, if the sentence matches it.
fn holes<'p, 't>(phrase: &'p str, noted: &'t str) -> Option<Vec<(&'p str, &'t str)>> {
    let mut parts = phrase.split('{');
    let mut rest = noted.strip_prefix(parts.next()?)?;
    let mut found = Vec::new();
    for part in parts {
        let (kind, literal) = part.split_once('}')?;
        let end = match literal {
            "" => rest.len(),
            _ if phrase.ends_with(part) => rest.len().checked_sub(literal.len())?,
            _ => rest.find(literal)?,
        };
        let behind = rest.get(end..)?.strip_prefix(literal)?;
        if end == 0 {
            return None;
        }
        found.push((kind, &rest[..end]));
        rest = behind;
    }
    rest.is_empty().then_some(found)
}

/// Replaces `{0}` and so on in one pass, so that inserted text is not searched again.
fn put_in(ja: &str, holes: &[String]) -> String {
    let mut parts = ja.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, literal) = part.split_once('}').unwrap_or(("", part));
        let hole = number.parse::<usize>().ok().and_then(|n| holes.get(n));
        out.push_str(hole.map_or("", String::as_str));
        out.push_str(literal);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn japanese(noted: &str) -> String {
        in_japanese(noted).unwrap_or_else(|| panic!("no translation: {noted}"))
    }

    #[test]
    fn sentences_hold_sentences() {
        assert_eq!(japanese("status 404"), "状態 404");
        assert_eq!(
            japanese(
                "http://e.com/4: connect: no connection to `e.com` port 80: Connection refused (os error 111)"
            ),
            "http://e.com/4：「e.com」のポート 80 に接続できません（接続が拒否されました）"
        );
    }

    #[test]
    fn what_is_not_known_stays_as_it_is() {
        for noted in ["", "nothing of ours", "status", "status ", "http://e.com/: nothing of ours"]
        {
            assert_eq!(in_japanese(noted), None, "{noted}");
        }
        assert_eq!(in_japanese(&"status 1".repeat(10_000)), None);
    }

    #[test]
    fn what_came_from_the_web_is_not_read_as_a_phrase() {
        assert_eq!(
            japanese("robots.txt line 3: Disallow: /{0}<script>"),
            "robots.txt の 3 行目：Disallow: /{0}<script>"
        );
    }

    #[test]
    fn every_phrase_is_translated_with_all_its_holes() {
        for (en, ja) in PHRASES {
            let kinds: Vec<&str> =
                en.split('{').skip(1).filter_map(|p| p.split('}').next()).collect();
            assert!(kinds.iter().all(|kind| ["", "t", "!"].contains(kind)), "{en}");
            for part in ja.split('{').skip(1) {
                let number: usize = part.split('}').next().unwrap().parse().unwrap();
                assert!(number < kinds.len(), "{ja} has no hole {number}");
            }
            assert!(!ja.is_ascii() || *ja == "{0}", "{ja}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_sentence_is_answered(noted in "(status |robots.txt |: |every |`|\\PC){0,12}") {
            let _ = in_japanese(&noted);
        }
    }
}
