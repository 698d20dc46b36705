use memchr::memmem;

/// The path pattern of an Allow or Disallow line: literal pieces between `*`, with an optional `$`
/// for the end of the path. Pieces are in normal form (see [`normal_path`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pieces: Vec<Vec<u8>>,
    to_the_end: bool,
    octets: usize,
}

impl Pattern {
    /// Reads a pattern; `None` if it is empty.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (body, to_the_end) = match text.strip_suffix(b"$") {
            Some(body) => (body, true),
            None => (text, false),
        };
        let mut in_query = false;
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        for (at, piece) in body.split(|byte| *byte == b'*').enumerate() {
            // `**` means `*`: an empty piece matters only at either end.
            if at > 1 && pieces.last().is_some_and(Vec::is_empty) {
                pieces.pop();
            }
            pieces.push(normal(piece, &mut in_query));
        }
        let wildcards = pieces.len() - 1;
        let octets =
            pieces.iter().map(Vec::len).sum::<usize>() + wildcards + usize::from(to_the_end);
        Some(Self { pieces, to_the_end, octets })
    }

    /// How specific the pattern is: its length in normal form.
    pub(super) fn octets(&self) -> usize {
        self.octets
    }

    /// Whether a path in normal form matches. Taking the first occurrence of each piece is enough,
    /// as only `*` is between them, so the path is read at most once.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let Some((first, others)) = self.pieces.split_first() else { return false };
        let Some(mut rest) = path.strip_prefix(first.as_slice()) else { return false };
        let Some((last, middle)) = others.split_last() else {
            return !self.to_the_end || rest.is_empty();
        };
        for piece in middle {
            match memmem::find(rest, piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        if self.to_the_end { rest.ends_with(last) } else { memmem::find(rest, last).is_some() }
    }
}

/// A path and query in the form in which it is compared with patterns. As RFC 9309 says, octets
/// that are not plain characters are percent-encoded, and percent-encoded plain characters are
/// decoded. `*` and `$` are encoded, so that a pattern can mean them (`%2A`, `%24`).
pub(super) fn normal_path(path_and_query: &str) -> Vec<u8> {
    normal(path_and_query.as_bytes(), &mut false)
}

/// `in_query` says whether a `?` was passed, and is updated.
fn normal(text: &[u8], in_query: &mut bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(decoded) = percent_encoded(rest) {
            rest = &rest[3..];
            if is_unreserved(decoded) || (*in_query && is_plain_in_query(decoded)) {
                out.push(decoded);
            } else {
                push_encoded(&mut out, decoded);
            }
            continue;
        }
        rest = after;
        *in_query |= byte == b'?';
        if is_unreserved(byte) || is_reserved(byte) || byte == b'%' {
            out.push(byte);
        } else {
            push_encoded(&mut out, byte);
        }
    }
    out
}

/// The octet that a text starting with `%xx` encodes.
fn percent_encoded(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

fn push_encoded(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986's reserved characters, but for `*` and `$`.
fn is_reserved(byte: u8) -> bool {
    b":/?#[]@!&'()+,;=".contains(&byte)
}

/// Reserved characters that mean the same in a query with and without encoding: RFC 3986 allows the
/// first four there, and browsers encode the last.
fn is_plain_in_query(byte: u8) -> bool {
    b":/?@'".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::parse(pattern.as_bytes()).unwrap().matches(&normal_path(path))
    }

    #[test]
    fn paths_match_as_the_published_tables_say() {
        #[rustfmt::skip]
        let table: &[(&str, &[&str], &[&str])] = &[
            ("/", &["/", "/any"], &[]),
            ("/*", &["/", "/any"], &[]),
            ("/$", &["/"], &["/any"]),
            ("/fish",
             &["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html",
               "/fish.php?id=anything"],
             &["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"]),
            ("/fish*",
             &["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fish.php?id=anything"],
             &["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"]),
            ("/fish/",
             &["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
             &["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"]),
            ("/*.php",
             &["/index.php", "/filename.php", "/folder/filename.php",
               "/folder/filename.php?parameters", "/folder/any.php.file.html", "/filename.php/"],
             &["/", "/windows.PHP"]),
            ("/*.php$",
             &["/filename.php", "/folder/filename.php", "/a.php.php"],
             &["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"]),
            ("/fish*.php",
             &["/fish.php", "/fishheads/catfish.php?parameters"],
             &["/Fish.PHP"]),
            ("*", &["/", "/x"], &[]),
            ("$", &[], &["/", "/x"]),
            ("*$", &["/", "/x"], &[]),
            ("fish", &[], &["/fish"]),
            ("/a$b", &["/a$b", "/a%24bc"], &["/a"]),
            ("/a*b*c$", &["/abc", "/axbxc", "/abcc"], &["/acb", "/abcd"]),
            ("/a**b", &["/ab", "/axb"], &["/a"]),
            ("/a***$", &["/a", "/ab"], &["/"]),
            ("/ab*ab$", &["/abab"], &["/ab"]),
        ];
        for (pattern, good, bad) in table {
            for path in *good {
                assert!(matches(pattern, path), "{pattern} should match {path}");
            }
            for path in *bad {
                assert!(!matches(pattern, path), "{pattern} should not match {path}");
            }
        }
    }

    #[test]
    fn encoded_and_plain_octets_are_compared_as_the_rfc_says() {
        for (pattern, path) in [
            ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
            ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
            ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar"),
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
            ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
            ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
            ("/path/foo-%24", "/path/foo-$"),
            ("/a b|c", "/a%20b|c"),
            ("/~user/", "/%7Euser/"),
            ("/100%", "/100%"),
        ] {
            assert!(matches(pattern, path), "{pattern} should match {path}");
        }
        assert!(!matches("/a/b", "/a%2Fb"), "an encoded slash is not a separator");
        assert!(!matches("/a?b&c", "/a?b%26c"), "an encoded ampersand separates nothing");
        assert!(!matches("/x%2A", "/xyz"), "an encoded star is not a wildcard");
    }

    #[test]
    fn many_wildcards_cost_no_more_than_reading_the_path_once() {
        let pattern = format!("/{}b", "*a".repeat(2000));
        let path = format!("/{}", "a".repeat(4000));
        for _ in 0..50 {
            assert!(!matches(&pattern, &path));
        }
    }

    /// The definition, tried at every position: slow, but obviously right.
    fn matches_by_definition(pattern: &[u8], path: &[u8]) -> bool {
        match pattern.split_first() {
            None => true,
            Some((b'$', [])) => path.is_empty(),
            Some((b'*', after)) => {
                (0..=path.len()).any(|skip| matches_by_definition(after, &path[skip..]))
            }
            Some((byte, after)) => {
                path.first() == Some(byte) && matches_by_definition(after, &path[1..])
            }
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_its_definition(
            pattern in "/[ab*]{0,6}\\$?",
            path in "/[ab]{0,8}",
        ) {
            prop_assert_eq!(
                matches(&pattern, &path),
                matches_by_definition(pattern.as_bytes(), path.as_bytes())
            );
        }

        #[test]
        fn the_normal_form_of_a_path_is_its_own(path in "/[ -~é%]{0,20}") {
            let once = String::from_utf8(normal_path(&path)).unwrap();
            // A stray `%` may be followed by digits that were decoded; encoded paths have none.
            prop_assume!(!once.replace("%%", "!").contains('!'));
            if path.split('%').skip(1).all(|after| after.len() > 1
                && after.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit))
            {
                prop_assert_eq!(normal_path(&once), once.as_bytes());
            }
        }
    }
}
