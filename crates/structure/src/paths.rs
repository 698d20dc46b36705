//! What a path says about a page: its directory, its family, whether it is an index.

/// The path up to and including the last `/`.
#[must_use]
pub fn directory_of(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

/// The directory and the file name with every run of digits masked as `#`: numbered pages
/// (`news-12.html`, `2021/05/`) fall into one family.
///
/// Directories are masked too, so that `2021/05/a.html` and `2022/01/a.html` are in one family. A
/// page named after its directory alone (`posts/one/index.html`) counts under its grandparent,
/// because there every directory holds one page and would be a family of one.
#[must_use]
pub fn family_of(path: &str) -> String {
    let (head, file) = path.split_at(directory_of(path).len());
    let head = if is_index(path) { directory_of(head.trim_end_matches('/')) } else { head };
    let mut family = String::with_capacity(path.len());
    mask_digits(head, &mut family);
    if is_index(path) && head.len() + file.len() < path.len() {
        family.push_str("*/");
    }
    mask_digits(file, &mut family);
    family
}

/// Whether the path names a directory's index.
#[must_use]
pub fn is_index(path: &str) -> bool {
    let file = &path[directory_of(path).len()..];
    file.is_empty() || file.split('.').next().is_some_and(|stem| stem.eq_ignore_ascii_case("index"))
}

fn mask_digits(text: &str, into: &mut String) {
    let mut in_number = false;
    for letter in text.chars() {
        if letter.is_ascii_digit() {
            if !in_number {
                into.push('#');
            }
            in_number = true;
        } else {
            in_number = false;
            into.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_ends_with_its_slash() {
        assert_eq!(directory_of("a/b/c.html"), "a/b/");
        assert_eq!(directory_of("c.html"), "");
        assert_eq!(directory_of("a/"), "a/");
    }

    #[test]
    fn numbered_pages_are_one_family() {
        assert_eq!(family_of("news/n-12.html"), family_of("news/n-3.html"));
        assert_eq!(family_of("2021/05/a.html"), family_of("2022/11/a.html"));
        assert_ne!(family_of("news/n-12.html"), family_of("old/n-12.html"));
    }

    #[test]
    fn pages_with_a_directory_each_are_one_family() {
        assert_eq!(family_of("posts/one/index.html"), family_of("posts/two/index.html"));
        assert_eq!(family_of("posts/one/"), "posts/*/");
        assert_ne!(family_of("posts/one/index.html"), family_of("posts/index.html"));
        assert_eq!(family_of("index.html"), "index.html");
    }
}
