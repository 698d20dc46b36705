//! What URLs have in common: directories, names of parameters, session ids.

use nenrin_urls::CanonicalUrl;

/// A group of directories may follow itself this often.
const REPEATS_MAX: usize = 2;
/// The same name may occur this often in a path, anywhere.
const SAME_NAME_MAX: usize = 4;

/// Whether directories repeat: a group of them three times in a row, or one name five times.
/// Numbers of one or two digits (days, months, pages) repeat in good URLs as well.
pub(super) fn has_repetition(segments: &[&str]) -> bool {
    let is_small = |s: &str| s.len() <= 2 && s.bytes().all(|b| b.is_ascii_digit());
    let names: Vec<&str> = segments.iter().copied().filter(|s| !is_small(s)).collect();
    let too_often =
        |name: &&str| names.iter().filter(|other| *other == name).count() > SAME_NAME_MAX;
    if names.iter().any(too_often) {
        return true;
    }
    (1..=names.len() / (REPEATS_MAX + 1)).any(|size| {
        let span = size * (REPEATS_MAX + 1);
        (0..=names.len() - span)
            .any(|at| (at + size..at + span).all(|i| names[i] == names[i - size]))
    })
}

/// The parameters of a URL, as written.
pub(super) fn arguments(url: &CanonicalUrl) -> Vec<&str> {
    let query = url.query().unwrap_or_default();
    query.split(['&', ';']).filter(|argument| !argument.is_empty()).collect()
}

/// The parameters' names, whatever their order, values and indexes (`a[3]`).
pub(super) fn name_set_key(arguments: &[&str]) -> u32 {
    let name = |argument: &&str| {
        let name = argument.split(['=', '[']).next().unwrap_or_default();
        name.trim_end_matches("%5B%5D").to_ascii_lowercase()
    };
    let mut names: Vec<String> = arguments.iter().map(name).collect();
    // A bare value is not a name: `?20240301`, `?some-article`.
    names.retain(|name| !name.is_empty());
    if !arguments.iter().any(|argument| argument.contains('=')) {
        names = vec!["?".to_owned()];
    }
    names.sort_unstable();
    names.dedup();
    (hash(&[&names.join("&")]) >> 32) as u32
}

pub(super) fn path_key(url: &CanonicalUrl) -> u64 {
    hash(&["path", url.path()])
}

/// The directory, all its digits alike.
pub(super) fn directory_key(url: &CanonicalUrl) -> u64 {
    let plain: String =
        url.directory().chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    hash(&["directory", &plain])
}

pub(super) fn sorted_key(url: &CanonicalUrl, arguments: &[&str]) -> u64 {
    let mut sorted = arguments.to_vec();
    sorted.sort_unstable();
    hash(&[url.path(), &sorted.join("&")])
}

pub(super) fn exact_key(url: &CanonicalUrl) -> u64 {
    hash(&[url.path_and_query()])
}

fn hash(parts: &[&str]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// The URL without its session id, if it has one.
pub(crate) fn without_session(url: &CanonicalUrl) -> Option<CanonicalUrl> {
    let whole = url.path_and_query();
    let lower = whole.to_ascii_lowercase();
    let mut path = url.path().to_owned();
    let mut found = false;
    if let Some(start) = path.to_ascii_lowercase().find(";jsessionid=") {
        let end = path[start + 1..].find(['/', ';']).map_or(path.len(), |i| start + 1 + i);
        path.replace_range(start..end, "");
        found = true;
    }
    let mut query = String::new();
    if lower.contains("sess") || lower.contains("sid=") || lower.contains("cftoken=") {
        for argument in url.query().unwrap_or_default().split('&') {
            if is_session(argument) {
                found = true;
                continue;
            }
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(argument);
        }
    } else if let Some(text) = url.query() {
        query = format!("?{text}");
    }
    if !found {
        return None;
    }
    url.server().url(&format!("{path}{query}")).ok()
}

fn is_session(argument: &str) -> bool {
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    let name = name.to_ascii_lowercase();
    let token = value.len() >= 16
        && value.bytes().all(|b| b.is_ascii_alphanumeric())
        && value.bytes().any(|b| b.is_ascii_digit());
    matches!(name.as_str(), "jsessionid" | "phpsessid" | "cftoken")
        || name.starts_with("aspsessionid")
        || matches!(name.as_str(), "sid" | "sessionid" | "session_id" | "osc_sid") && token
}
