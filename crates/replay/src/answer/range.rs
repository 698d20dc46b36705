use std::ops::Range;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

/// The part of a body that is sent: the requested range, if one was. Several ranges, or a range that
/// is not in bytes, get the whole body, as the standard allows.
pub(crate) fn serve_range(
    request: &HeaderMap,
    etag: &str,
    response: &mut HeaderMap,
    total: u64,
) -> (StatusCode, Range<u64>) {
    let text = |name| request.get(name).and_then(|v: &HeaderValue| v.to_str().ok());
    let is_current = text(header::IF_RANGE).is_none_or(|tag| tag == etag);
    let Some(spec) = text(header::RANGE).filter(|_| is_current) else {
        return (StatusCode::OK, 0..total);
    };
    match parse(spec, total) {
        Asked::Whole => (StatusCode::OK, 0..total),
        Asked::Part(first, last) => {
            let value = format!("bytes {first}-{last}/{total}");
            response.insert(header::CONTENT_RANGE, header_value(&value));
            (StatusCode::PARTIAL_CONTENT, first..last + 1)
        }
        Asked::Nothing => {
            let value = format!("bytes */{total}");
            response.insert(header::CONTENT_RANGE, header_value(&value));
            (StatusCode::RANGE_NOT_SATISFIABLE, 0..0)
        }
    }
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    Part(u64, u64),
    Nothing,
}

fn parse(spec: &str, total: u64) -> Asked {
    let Some((first, last)) = spec.strip_prefix("bytes=").and_then(|r| r.trim().split_once('-'))
    else {
        return Asked::Whole;
    };
    match (first.parse::<u64>(), last.parse::<u64>()) {
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
