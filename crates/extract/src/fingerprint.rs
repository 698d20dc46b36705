//! Compares what pages say, approximately.

use nenrin_urls::CanonicalUrl;
use serde::{Deserialize, Serialize};

use crate::hash::stable_hash;
use crate::{ContentKind, visible_text};

/// The most visible text that enters a fingerprint.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// What a page says, in a few bytes: pages that say almost the same have fingerprints with few
/// different bits (a simhash, Charikar 2002).
///
/// Its purpose is to recognise a server's "not found" page that comes with status 200. So numbers
/// and the page's own URL, which such pages repeat, are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The simhash of the text: pairs of neighbouring words, or pairs of characters where the
    /// script has no spaces.
    pub simhash: u64,
    /// The hash of the title.
    pub title: u64,
    /// Number of features in the text.
    pub features: u32,
}

impl Fingerprint {
    /// The most bits of 64 that may differ between two fingerprints of the same page, as Manku,
    /// Jain and Das Sarma (2007) found for the web.
    pub const MAX_DISTANCE: u32 = 3;

    /// The number of different bits, 0 to 64.
    pub fn distance(&self, other: &Self) -> u32 {
        (self.simhash ^ other.simhash).count_ones()
    }

    /// Whether both are the same page except for details: texts within [`Self::MAX_DISTANCE`] and
    /// of about the same length (within a tenth), and equal titles. Without text the answer is no.
    ///
    /// The titles matter on sites whose navigation outweighs every article.
    pub fn resembles(&self, other: &Self) -> bool {
        let (fewer, more) = (self.features.min(other.features), self.features.max(other.features));
        fewer > 0
            && self.title == other.title
            && more - fewer <= more / 10
            && self.distance(other) <= Self::MAX_DISTANCE
    }
}

/// The fingerprint of a page.
pub fn fingerprint(
    url: &CanonicalUrl,
    kind: ContentKind,
    content_type: Option<&str>,
    body: &[u8],
) -> Fingerprint {
    let text = without_url(visible_text(kind, content_type, body, MAX_TEXT_BYTES), url);
    // The title is the first line of a page with a head; on others the first line serves as well.
    let title = text.lines().next().unwrap_or_default();
    let mut title_hash = 0;
    features(title, &mut |feature| title_hash ^= feature.rotate_left(7).wrapping_mul(31));
    let mut sums = [0_i32; 64];
    let mut count = 0_u32;
    features(&text, &mut |feature| {
        count = count.saturating_add(1);
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if feature >> bit & 1 == 1 { 1 } else { -1 };
        }
    });
    let simhash =
        sums.iter().enumerate().fold(0, |hash, (bit, sum)| hash | u64::from(*sum > 0) << bit);
    Fingerprint { simhash, title: title_hash, features: count }
}

/// The text without the page's own URL and parts of it, which "not found" pages repeat. Single words
/// of the URL stay: they may belong to the navigation.
fn without_url(text: String, url: &CanonicalUrl) -> String {
    let decoded = percent_decoded(url.path_and_query());
    let path = url.path();
    let name = path.rsplit('/').next().unwrap_or_default();
    let decoded_name = percent_decoded(name);
    let bare = |text: &str| text.trim_start_matches('/').to_owned();
    let forms = [
        url.as_str().to_owned(),
        bare(&decoded),
        bare(url.path_and_query()),
        bare(path),
        name.to_owned(),
        decoded_name,
    ];
    forms.iter().filter(|form| form.chars().count() >= MIN_ECHO_CHARS).fold(text, |text, form| {
        if text.contains(form.as_str()) { text.replace(form.as_str(), " ") } else { text }
    })
}

/// Shorter names are left in: they are too likely to be a word of the text.
const MIN_ECHO_CHARS: usize = 4;

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Calls `found` with the hash of each feature of a text.
fn features(text: &str, found: &mut dyn FnMut(u64)) {
    let mut previous = 0;
    for word in words(text) {
        if word.contains(is_unspaced) {
            let mut last = None;
            for c in word.chars() {
                if let Some(last) = last {
                    let pair = [u32::from(last), u32::from(c)];
                    found(stable_hash(pair.into_iter().flat_map(u32::to_le_bytes)));
                }
                last = Some(c);
            }
            continue;
        }
        let word = word.to_lowercase();
        if word.contains(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let hash = stable_hash(word.bytes());
        found(hash);
        found(hash.rotate_left(17) ^ previous);
        previous = hash;
    }
}

/// Characters of scripts that put no space between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, body: &str) -> Fingerprint {
        let url = CanonicalUrl::parse(&format!("http://example.com{path}")).unwrap();
        fingerprint(&url, ContentKind::Html, Some("text/html; charset=utf-8"), body.as_bytes())
    }

    const NAVIGATION: &str = "<ul><li>Home<li>News from the forest<li>About the trees<li>Contact us\
        <li>Imprint<li>Search the archive<li>Old rings<li>New rings<li>Weather</ul>";

    fn not_found(path: &str, time: &str) -> String {
        format!(
            "<title>{path}: not found</title>{NAVIGATION}<h1>Sorry!</h1><p>The page {path} could \
             not be found on this server. It may have moved or never existed. Try the search, or \
             go back to the front page.</p><p>Request 8f3a{time} at {time}</p>"
        )
    }

    #[test]
    fn a_not_found_page_is_known_again_although_it_repeats_the_url() {
        let probe = of("/x7f3qzkw", &not_found("/x7f3qzkw", "12:30:05"));
        let other = of("/forest/oak-rings.html", &not_found("/forest/oak-rings.html", "18:01:44"));
        assert!(probe.resembles(&other), "{}", probe.distance(&other));
        let japanese = "<title>エラー</title><p>お探しのページは見つかりませんでした。移動または削除された可能性があります。";
        assert!(of("/a", japanese).resembles(&of("/b/c", &format!("{japanese}12:01"))));
    }

    #[test]
    fn pages_with_the_same_navigation_differ_by_what_they_say() {
        let oak = format!(
            "<title>Oak</title>{NAVIGATION}<p>The oak grows slowly and lives for a \
            thousand years. Its wood is hard and its rings are narrow.</p>"
        );
        let ash = format!(
            "<title>Ash</title>{NAVIGATION}<p>Ash trees are quick: in forty years they \
            give handles, oars and skis, pale and springy.</p>"
        );
        assert!(!of("/oak", &oak).resembles(&of("/ash", &ash)));
        let ash = ash.replace("<title>Ash", "<title>Oak");
        assert!(!of("/1", &oak).resembles(&of("/2", &ash)));
        assert!(!of("/1", &oak).resembles(&of("/1", &not_found("/1", "1"))));
        let a = "<p>年輪は木の断面に見られる同心円状の模様である。一年に一つずつ増える。";
        let b = "<p>本日の天気は晴れのち曇り、最高気温は二十五度の見込みです。夜は雨。";
        assert!(of("/1", a).distance(&of("/2", b)) > 10);
    }

    #[test]
    fn the_hash_of_kept_fingerprints_never_changes() {
        assert_eq!(
            of("/", "<title>a b</title><p>Rings of trees 年輪"),
            Fingerprint {
                simhash: 7_094_913_979_568_258_469,
                title: 4_290_973_702_293_483_280,
                features: 11
            }
        );
    }
}
