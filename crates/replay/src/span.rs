//! How far the parts of a page are apart in time. The banner requests this after the page is shown,
//! so that pages do not wait for it.

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use nenrin_extract::{ExtractLimits, LinkKind, content_kind, decode_content, page_links};
use nenrin_lang::Lang;
use nenrin_urls::CanonicalUrl;
use serde_json::json;

use crate::{
    Capture, ReplayError,
    ask::Ask,
    date::Stamp,
    head::Head,
    modifier::Modifier,
    neighbours,
    pages::{self, parts::Part},
    served::{Replay, own_page, plain, text_answer},
    target::{Target, When},
};

/// The most parts that are checked.
const MAX_PARTS: usize = 200;

/// Times of a page's parts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Span {
    parts: usize,
    missing: usize,
    oldest_s: Option<i64>,
    newest_s: Option<i64>,
    /// The longest time between the date and when a part is known to have looked as shown, in
    /// seconds.
    off_s: i64,
}

pub(crate) fn answer(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let Some((page, at_s)) = asked(replay, ask, "/_nenrin/span/")? else {
        return Ok(text_answer(replay, "application/json", "{}".to_owned()));
    };
    let stamp = |found: Option<Capture>| found.map(|c| Stamp(c.at_s).to_string());
    let span = measured(&parts_of(replay, &page, at_s)?);
    let is_wide = span.off_s > replay.options.wide_span_s;
    let answer = json!({
        "previous": stamp(neighbours::previous(replay, &page)?),
        "next": stamp(neighbours::next(replay, &page)?),
        "parts": span.parts,
        "missing": span.missing,
        "oldest": span.oldest_s.map(|s| Stamp(s).to_string()),
        "newest": span.newest_s.map(|s| Stamp(s).to_string()),
        "off_s": span.off_s,
        "wide": is_wide,
        "text": text(ask.lang(), &span, is_wide),
        "detail": detail(ask.lang(), &span),
        "warning": warning(replay, ask.lang(), &page, at_s)?,
    });
    Ok(text_answer(replay, "application/json", answer.to_string()))
}

/// The page about a page's parts: which are missing, and which are of another time.
pub(crate) fn list(replay: &Replay, ask: &Ask) -> Result<Response<Body>, ReplayError> {
    let Some((page, at_s)) = asked(replay, ask, "/_nenrin/parts/")? else {
        return Ok(plain(StatusCode::NOT_FOUND, "not in the archive"));
    };
    let parts = parts_of(replay, &page, at_s)?;
    let shown = pages::parts::page(ask, &page, at_s, &parts, &|off_s| duration(ask.lang(), off_s));
    Ok(own_page(replay, StatusCode::OK, &shown))
}

/// The version and the date that an address names.
fn asked(replay: &Replay, ask: &Ask, prefix: &str) -> Result<Option<(Capture, i64)>, ReplayError> {
    let target = Target::parse(ask.rest(prefix))?;
    let at_s = match target.when {
        When::AsOf(period) => period.last_s,
        When::Latest | When::Calendar(_) => i64::MAX,
    };
    let page = replay.choose(&target.url, at_s, Modifier::Page)?;
    Ok(page.map(|page| (page, at_s)))
}

fn parts_of(replay: &Replay, page: &Capture, at_s: i64) -> Result<Vec<Part>, ReplayError> {
    let mut parts = Vec::new();
    for url in part_urls(replay, page)? {
        let found = replay.choose(&url, at_s, Modifier::Object)?;
        let shown = match found {
            Some(found) => {
                let off_s = off_s(replay, &found, at_s)?;
                Some((found, off_s))
            }
            None => None,
        };
        parts.push(Part { url, shown });
    }
    Ok(parts)
}

fn measured(parts: &[Part]) -> Span {
    let shown = || parts.iter().filter_map(|part| part.shown.as_ref());
    Span {
        parts: parts.len(),
        missing: parts.len() - shown().count(),
        oldest_s: shown().map(|(found, _)| found.at_s).min(),
        newest_s: shown().map(|(found, _)| found.at_s).max(),
        off_s: shown().map(|(_, off_s)| *off_s).max().unwrap_or(0),
    }
}

/// What to say of a page that is shown for a date on which it was not there, as far as is known.
fn warning(
    replay: &Replay,
    lang: Lang,
    page: &Capture,
    at_s: i64,
) -> Result<Option<String>, ReplayError> {
    let day = |at_s: i64| Stamp(at_s).plain().chars().take(10).collect::<String>();
    if page.at_s > at_s {
        let day = day(page.at_s);
        return Ok(Some(match lang {
            Lang::En => format!("first seen {day}"),
            Lang::Ja => format!("初めて確認したのは {day}"),
        }));
    }
    // Gone since it was last seen: a version after that would be shown instead.
    let next = replay.archive.versions(&page.url.key(), page.at_s + 1, i64::MAX, 1)?;
    let until_s = next.first().map_or(i64::MAX, |next| next.at_s);
    let seen_s = replay.archive.last_seen_s(&page.url)?.filter(|seen_s| *seen_s < until_s);
    let from_s = seen_s.unwrap_or(page.at_s);
    let gone = replay.archive.gone_times_s(&page.url)?;
    let gone = gone.into_iter().find(|gone_s| (page.at_s..=at_s).contains(gone_s));
    let gone = gone.filter(|gone_s| *gone_s >= from_s || seen_s.is_none());
    Ok(gone.map(|gone_s| match lang {
        Lang::En => format!("gone since {}", day(gone_s)),
        Lang::Ja => format!("{} から無くなっています", day(gone_s)),
    }))
}

/// Seconds before or after the date at which a part is known to have looked as shown. A part that
/// was seen unchanged after the date was the same on the date, however old it is.
fn off_s(replay: &Replay, part: &Capture, at_s: i64) -> Result<i64, ReplayError> {
    if part.at_s > at_s {
        return Ok(part.at_s - at_s);
    }
    let seen_s = replay.archive.last_seen_s(&part.url)?.unwrap_or(part.at_s);
    let is_last = replay
        .archive
        .versions(&part.url.key(), part.at_s + 1, i64::MAX, 1)?
        .first()
        .map(|next| next.at_s);
    // Without a later version it was last seen as it is; with one, it changed after the date.
    Ok(match is_last {
        Some(_) => 0,
        None => at_s.saturating_sub(seen_s.max(part.at_s)).max(0),
    })
}

fn part_urls(replay: &Replay, page: &Capture) -> Result<Vec<CanonicalUrl>, ReplayError> {
    if page.body_bytes > replay.options.max_rewritten_bytes as u64 {
        return Ok(Vec::new());
    }
    let content = replay.archive.read(page.version)?;
    let head = Head::parse(&content.head.response_head);
    let coding = head.get_str("content-encoding");
    let Ok(body) = decode_content(coding, &content.body, replay.options.max_rewritten_bytes) else {
        return Ok(Vec::new());
    };
    let content_type = head.get_str("content-type");
    let kind = content_kind(content_type, &page.url, &body);
    let links = page_links(&page.url, kind, content_type, &body, &ExtractLimits::default());
    let is_part = |kind: LinkKind| matches!(kind, LinkKind::Embed | LinkKind::Frame);
    let parts = links.links.into_iter().filter(|link| is_part(link.kind)).map(|link| link.url);
    Ok(parts.take(MAX_PARTS).collect())
}

fn text(lang: Lang, span: &Span, is_wide: bool) -> String {
    match lang {
        _ if span.parts == 0 => String::new(),
        Lang::En => english(span, is_wide),
        Lang::Ja => japanese(span, is_wide),
    }
}

fn japanese(span: &Span, is_wide: bool) -> String {
    let off = duration(Lang::Ja, span.off_s);
    let when = match (is_wide, span.off_s) {
        (true, _) => format!("最大 {off}のずれ"),
        (false, 0) => "すべて同じ時点".to_owned(),
        (false, _) => format!("{off}以内"),
    };
    match (span.parts, span.missing) {
        (parts, 0) => format!("画像・スタイルなど {parts} 個、{when}"),
        (parts, missing) if missing == parts => {
            format!("画像・スタイルなど {parts} 個、いずれも未保存")
        }
        (parts, missing) => format!("画像・スタイルなど {parts} 個、{when}、未保存 {missing} 個"),
    }
}

fn english(span: &Span, is_wide: bool) -> String {
    let parts = match span.parts {
        1 => "1 image or style".to_owned(),
        parts => format!("{parts} images and styles"),
    };
    let when = match (is_wide, span.off_s) {
        (true, off_s) => format!("some up to {} from this date", duration(Lang::En, off_s)),
        (false, 0) => "all from this date".to_owned(),
        (false, off_s) => format!("within {}", duration(Lang::En, off_s)),
    };
    match (span.missing, span.missing == span.parts) {
        (0, _) => format!("{parts}, {when}"),
        (_, true) => format!("{parts}, none archived"),
        (missing, _) => format!("{parts}, {when}, {missing} missing"),
    }
}

fn detail(lang: Lang, span: &Span) -> String {
    let (Some(oldest), Some(newest)) = (span.oldest_s, span.newest_s) else {
        return String::new();
    };
    let (oldest, newest) = (Stamp(oldest).plain(), Stamp(newest).plain());
    match lang {
        Lang::En => {
            format!("images and styles of this page were received from {oldest} to {newest} (UTC)")
        }
        Lang::Ja => {
            format!("このページの画像・スタイルなどは {oldest} から {newest}（UTC）に受信しました")
        }
    }
}

/// A length of time in the largest unit that fits.
fn duration(lang: Lang, seconds: i64) -> String {
    let units = [
        (31_557_600, "year", "年"),
        (86_400, "day", "日"),
        (3600, "hour", "時間"),
        (60, "minute", "分"),
    ];
    let (size, en, ja) =
        units.into_iter().find(|(size, ..)| seconds >= *size).unwrap_or((1, "second", "秒"));
    let count = seconds.div_euclid(size);
    match lang {
        Lang::En => format!("{count} {en}{}", if count == 1 { "" } else { "s" }),
        Lang::Ja => format!("{count}{ja}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_described_in_a_few_words() {
        let span = |parts, missing, off_s| Span { parts, missing, off_s, ..Span::default() };
        assert_eq!(text(Lang::En, &span(0, 0, 0), false), "");
        assert_eq!(text(Lang::En, &span(1, 0, 0), false), "1 image or style, all from this date");
        assert_eq!(
            text(Lang::En, &span(3, 1, 7200), false),
            "3 images and styles, within 2 hours, 1 missing"
        );
        assert_eq!(
            text(Lang::En, &span(3, 0, 90 * 86_400), true),
            "3 images and styles, some up to 90 days from this date"
        );
        assert_eq!(text(Lang::En, &span(2, 2, 0), false), "2 images and styles, none archived");
        assert_eq!(
            text(Lang::Ja, &span(3, 1, 7200), false),
            "画像・スタイルなど 3 個、2時間以内、未保存 1 個"
        );
    }
}
