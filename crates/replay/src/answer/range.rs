use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::Bytes;

/// Cuts the requested range out of a body. Several ranges, or a range that is not in bytes, get the
/// whole body, as the standard allows.
pub(crate) fn serve_range(
    request: &HeaderMap,
    etag: &str,
    response: &mut HeaderMap,
    body: Bytes,
) -> (StatusCode, Bytes) {
    let text = |name| request.get(name).and_then(|v: &HeaderValue| v.to_str().ok());
    let is_current = text(header::IF_RANGE).is_none_or(|tag| tag == etag);
    let Some(spec) = text(header::RANGE).filter(|_| is_current) else {
        return (StatusCode::OK, body);
    };
    let total = body.len();
    match parse(spec, total) {
        Asked::Whole => (StatusCode::OK, body),
        Asked::Part(first, last) => {
            let value = format!("bytes {first}-{last}/{total}");
            response.insert(header::CONTENT_RANGE, header_value(&value));
            (StatusCode::PARTIAL_CONTENT, body.slice(first..=last))
        }
        Asked::Nothing => {
            let value = format!("bytes */{total}");
            response.insert(header::CONTENT_RANGE, header_value(&value));
            (StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new())
        }
    }
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    Part(usize, usize),
    Nothing,
}

fn parse(spec: &str, total: usize) -> Asked {
    let Some((first, last)) = spec.strip_prefix("bytes=").and_then(|r| r.trim().split_once('-'))
    else {
        return Asked::Whole;
    };
    match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), _) if first >= total => Asked::Nothing,
        (Ok(first), Ok(last)) if first <= last => Asked::Part(first, last.min(total - 1)),
        (Ok(first), Err(_)) if last.is_empty() => Asked::Part(first, total - 1),
        (Err(_), Ok(0)) if first.is_empty() => Asked::Nothing,
        (Err(_), Ok(length)) if first.is_empty() && total > 0 => {
            Asked::Part(total - length.min(total), total - 1)
        }
        _ => Asked::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_as_the_standard_says() {
        for (spec, expected) in [
            ("bytes=0-3", Asked::Part(0, 3)),
            ("bytes=8-99", Asked::Part(8, 9)),
            ("bytes=4-", Asked::Part(4, 9)),
            ("bytes=-3", Asked::Part(7, 9)),
            ("bytes=-30", Asked::Part(0, 9)),
            ("bytes=10-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=0-1,3-4", Asked::Whole),
            ("bytes=5-2", Asked::Whole),
            ("lines=1-2", Asked::Whole),
            ("bytes=99999999999999999999-", Asked::Whole),
        ] {
            assert_eq!(parse(spec, 10), expected, "{spec}");
        }
        assert_eq!(parse("bytes=0-", 0), Asked::Nothing);
        assert_eq!(parse("bytes=-5", 0), Asked::Whole);
    }
}
