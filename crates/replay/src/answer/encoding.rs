//! Which content codings a client accepts.

/// Whether the client accepts every coding of a body.
pub(crate) fn accepts(accept_encoding: &str, content_encoding: &str) -> bool {
    content_encoding
        .split(',')
        .map(|coding| coding.trim().to_ascii_lowercase())
        .filter(|coding| !coding.is_empty() && coding != "identity")
        .all(|coding| takes(accept_encoding, coding.trim_start_matches("x-")))
}

fn takes(accept_encoding: &str, coding: &str) -> bool {
    accept_encoding.split(',').any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_named =
            parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding) || name == "*");
        let is_refused = parts.any(|parameter| {
            let weight = parameter.strip_prefix("q=").or(parameter.strip_prefix("Q="));
            weight.is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
        });
        is_named && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codings_that_were_named_are_accepted() {
        assert!(accepts("gzip, br", "gzip"));
        assert!(accepts("gzip, br", "x-gzip"));
        assert!(accepts("", "identity"));
        assert!(accepts("*", "zstd"));
        assert!(!accepts("gzip;q=0, br", "gzip"));
        assert!(!accepts("gzip", "gzip, br"));
        assert!(!accepts("", "gzip"));
    }
}
