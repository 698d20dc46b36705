//! What is written in the head of a response.

use nenrin_fetch::header_fields;

/// The first value of a header field in the head of a response.
pub fn field(head: &[u8], name: &str) -> Option<String> {
    let [value] = fields(head, [name]);
    value
}

/// The first value of each of these header fields, found in one pass.
pub(crate) fn fields<const COUNT: usize>(
    head: &[u8],
    names: [&str; COUNT],
) -> [Option<String>; COUNT] {
    let mut found = [const { None }; COUNT];
    for (name, value) in header_fields(head) {
        let wanted = names.iter().position(|wanted| name.eq_ignore_ascii_case(wanted.as_bytes()));
        if let Some(value_found) = wanted.map(|at| &mut found[at]) {
            value_found.get_or_insert_with(|| String::from_utf8_lossy(&value).into_owned());
        }
    }
    found
}
