//! ETag and Last-Modified in few bytes. Almost every Last-Modified is a date in one fixed form, and
//! almost every ETag is hexadecimal: they are kept as a number and as half as many bytes. Whatever
//! does not come back exactly so is kept as the text it is.

use nenrin_calendar::{parse_http, write_http};
use rusqlite::{
    Row,
    types::{ToSqlOutput, Type, Value, ValueRef},
};

/// Longer ETags, or with more hyphens, are rare.
const GROUPS_MAX: usize = 8;
const WEAK: u8 = 1 << 7;

/// A Last-Modified as a column's value.
pub(super) fn date_value(text: Option<&str>) -> ToSqlOutput<'_> {
    match text {
        None => ToSqlOutput::Owned(Value::Null),
        Some(text) => match parse_http(text) {
            Some(at_s) => ToSqlOutput::Owned(Value::Integer(at_s)),
            None => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        },
    }
}

/// The Last-Modified in a column.
pub(super) fn date(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Integer(at_s) => Ok(write_http(at_s)),
        _ => row.get(column),
    }
}

/// An ETag as a column's value.
pub(super) fn etag_value(text: Option<&str>) -> ToSqlOutput<'_> {
    match text {
        None => ToSqlOutput::Owned(Value::Null),
        Some(text) => match packed(text) {
            Some(bytes) => ToSqlOutput::Owned(Value::Blob(bytes)),
            None => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        },
    }
}

/// The ETag in a column.
pub(super) fn etag(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) => unpacked(bytes).map(Some).ok_or_else(|| {
            let name = "etag".to_owned();
            rusqlite::Error::InvalidColumnType(column, name, Type::Blob)
        }),
        _ => row.get(column),
    }
}

/// `"5f3e-1a2b"` as the number of groups, their lengths and their digits, two to a byte.
fn packed(text: &str) -> Option<Vec<u8>> {
    let (weak, quoted) = match text.strip_prefix("W/") {
        Some(rest) => (WEAK, rest),
        None => (0, text),
    };
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let groups: Vec<&str> = inner.split('-').collect();
    if groups.len() > GROUPS_MAX {
        return None;
    }
    let mut bytes = vec![weak | groups.len() as u8];
    for group in &groups {
        bytes.push(group.len().try_into().ok()?);
    }
    let digits = groups
        .iter()
        .flat_map(|group| group.bytes())
        .map(|digit| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        })
        .collect::<Option<Vec<u8>>>()?;
    bytes.extend(digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)));
    Some(bytes)
}

fn unpacked(bytes: &[u8]) -> Option<String> {
    let (&head, rest) = bytes.split_first()?;
    let (lengths, digits) = rest.split_at_checked(usize::from(head & !WEAK))?;
    let mut digits = digits.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut text = String::from(if head & WEAK != 0 { "W/\"" } else { "\"" });
    for (at, &length) in lengths.iter().enumerate() {
        if at > 0 {
            text.push('-');
        }
        for _ in 0..length {
            text.push(char::from_digit(digits.next()?.into(), 16)?);
        }
    }
    text.push('"');
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_dates_become_numbers_and_others_stay() {
        assert_eq!(parse_http("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse_http("Fri, 15 Jan 2027 08:00:00 GMT"), Some(1_800_000_000));
        assert_eq!(parse_http("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        for other in [
            "",
            "Fri, 15 Jan 2027 08:00:00",
            "Thu, 15 Jan 2027 08:00:00 GMT",
            "Fri, 15-Jan-2027 08:00:00 GMT",
            "Thu, 30 Feb 2024 00:00:00 GMT",
            "Fri, 15 Jan 2027 8:00:00 GMT",
            "Fri, 15 Jan 2027 08:00:00 GMT ",
            "Fri, +5 Jan 2027 08:00:00 GMT",
            "日, 15 Jan 2027 08:00:00 GMT",
        ] {
            assert_eq!(parse_http(other), None, "{other}");
        }
    }

    #[test]
    fn usual_etags_take_half_the_room() {
        for (text, bytes) in [
            ("\"0123456789abcdef\"", 10),
            ("\"5f3e1a2b-1c2d3\"", 10),
            ("W/\"5f3e1a2b-1c2d3\"", 10),
            ("\"\"", 2),
        ] {
            let found = packed(text).unwrap();
            assert_eq!((unpacked(&found).as_deref(), found.len()), (Some(text), bytes));
        }
        for other in ["", "\"", "abc", "\"ABC\"", "\"xyz\"", "w/\"12\"", "\"1-2-3-4-5-6-7-8-9\""] {
            assert_eq!(packed(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn every_second_of_a_thousand_years_comes_back(at_s in -62_000_000_000_i64..250_000_000_000) {
            prop_assert_eq!(parse_http(&write_http(at_s).unwrap()), Some(at_s));
        }

        #[test]
        fn what_is_packed_comes_back_exactly(text in "(W/)?\"?[0-9a-f-]{0,40}\"?") {
            if let Some(bytes) = packed(&text) {
                prop_assert_eq!(unpacked(&bytes), Some(text));
            }
        }

        #[test]
        fn other_bytes_are_no_panic(bytes: Vec<u8>, text: String) {
            let _ = (unpacked(&bytes), parse_http(&text));
        }
    }
}
