//! What is written in an e-mail.

use nenrin_archive::{
    noticing::{Message, watch_link},
    readable_date,
};
use nenrin_lang::{Lang, escaped};
use nenrin_state::WatchHit;

use crate::Links;

/// The longest subject.
const SUBJECT_CHARS_MAX: usize = 160;
/// The longest text of a part in a letter; the link leads to the rest.
const EXCERPT_CHARS_MAX: usize = 800;

/// An e-mail without its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// One line of plain text.
    pub subject: String,
    /// The text for readers without HTML.
    pub text: String,
    /// The same as a page.
    pub html: String,
}

impl Letter {
    /// A letter whose subject is one line, whatever was in it.
    pub fn new(subject: &str, text: String, html: String) -> Self {
        Self { subject: one_line(subject, SUBJECT_CHARS_MAX), text, html }
    }
}

/// Text as one line without control characters, of at most so many characters.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() || is_reordering(c) { ' ' } else { c });
    let folded = plain.collect::<String>();
    let folded = folded.split_whitespace().collect::<Vec<_>>().join(" ");
    match folded.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &folded[..end]),
        None => folded,
    }
}

/// Characters that show the text behind them in another order.
fn is_reordering(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// Text of a part, shortened, with its lines.
fn excerpt(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| one_line(line, EXCERPT_CHARS_MAX))
        .filter(|l| !l.is_empty())
        .collect();
    let joined = lines.join("\n");
    match joined.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &joined[..end]),
        None => joined,
    }
}

const PAGE_STYLE: &str = "font:16px/1.5 system-ui,sans-serif;max-width:40em;color:#26221c";

/// The whole page of a letter.
pub(crate) fn page(content: &str, lang: Lang) -> String {
    format!(
        "<!doctype html><html lang=\"{}\"><body style=\"{PAGE_STYLE}\">{content}</body></html>",
        lang.code()
    )
}

/// A letter about what watches reported: the text before and after, and a link.
pub fn about_hits(hits: &[WatchHit], links: &Links, lang: Lang) -> Letter {
    let t = |en, ja| lang.t(en, ja);
    let subject = match hits {
        [one] => format!("{}: {}", one.title, one.what(lang)),
        many => match lang {
            Lang::En => format!("Nenrin: {} watches reported something", many.len()),
            Lang::Ja => format!("Nenrin：{} 件の監視から報告があります", many.len()),
        },
    };
    let (mut text, mut html) = (String::new(), String::new());
    for hit in hits {
        let title = one_line(&hit.title, 300);
        let what = hit.what(lang);
        let link = watch_link(hit, &links.replay);
        let edit = format!("{}/watches/{}", links.interface, hit.watch.0);
        let when = format!("{} UTC", readable_date(hit.at_s));
        text += &format!("{title}\n{what} · {when}\n{}\n\n", hit.url.shown());
        html += &format!(
            "<h2 style=\"font-size:1.1em;margin:1.2em 0 .2em\">{}</h2><p style=\"margin:0\">{} · {}<br>{}</p>",
            escaped(&title),
            escaped(what),
            escaped(&when),
            escaped(&hit.url.shown())
        );
        if let Some(trouble) = hit.trouble {
            let why = trouble.text(lang);
            text += &format!("  {why}\n\n");
            html += &format!("<p><b>{}</b></p>", escaped(why));
        }
        for (name, part, colour) in [
            (t("Before", "変更前"), &hit.before, "#a8322a"),
            (t("Now", "変更後"), &hit.after, "#2c6e49"),
        ] {
            if hit.trouble.is_some() && part.is_none() {
                continue;
            }
            let shown = match part {
                Some(part) => excerpt(part),
                None => t("(not there)", "（なし）").to_owned(),
            };
            text += &format!("{name}:\n  {}\n", shown.replace('\n', "\n  "));
            html += &format!(
                "<p style=\"margin:.6em 0;padding-left:.8em;border-left:4px solid {colour}\"><small>{}</small><br>{}</p>",
                escaped(name),
                shown.lines().map(escaped).collect::<Vec<_>>().join("<br>")
            );
        }
        text += &format!(
            "\n{}: {link}\n{}: {edit}\n\n",
            t("Look", "表示"),
            t("Change this watch", "この監視を変更")
        );
        html += &format!(
            "<p><a href=\"{}\">{}</a> · <a href=\"{}\">{}</a></p>",
            escaped(&link),
            t("Look at the comparison", "比較を見る"),
            escaped(&edit),
            t("Change this watch", "この監視を変更")
        );
    }
    Letter::new(&subject, text, page(&html, lang))
}

/// A letter about incidents.
pub fn about_incidents(messages: &[Message], links: &Links, lang: Lang) -> Letter {
    let line = |message: &Message| {
        let detail = message.detail.as_ref().map(|detail| detail.text(lang));
        let page = message.pages.last().map(|page| page.url().shown());
        let what = detail.or(page).unwrap_or_default();
        let name = if message.name.is_empty() { "Nenrin" } else { &message.name };
        one_line(&format!("{name}: {} {what}", incident_word(message, lang)), 500)
    };
    let lines: Vec<String> = messages.iter().map(line).collect();
    let subject = match lines.as_slice() {
        [one] => one.clone(),
        many => match lang {
            Lang::En => format!("Nenrin: {} things to look at", many.len()),
            Lang::Ja => format!("Nenrin：確認が必要な事項が {} 件あります", many.len()),
        },
    };
    let text = format!("{}\n\n{}/\n", lines.join("\n"), links.interface);
    let items: String = lines.iter().map(|line| format!("<li>{}</li>", escaped(line))).collect();
    let origin = escaped(&links.interface);
    let html = format!("<ul>{items}</ul><p><a href=\"{origin}/\">{origin}</a></p>");
    Letter::new(&subject, text, page(&html, lang))
}

fn incident_word(message: &Message, lang: Lang) -> &'static str {
    use nenrin_archive::noticing::Happening;
    let (en, ja) = match message.event {
        Happening::Failing => ("visits keep failing.", "訪問の失敗が続いています。"),
        Happening::Blocked => ("visits are refused.", "訪問が拒否されています。"),
        Happening::Quota => ("quota reached.", "容量の上限に達しました。"),
        Happening::Overflow => ("a server cannot keep up.", "サーバーが間に合いません。"),
        Happening::SignalLost => (
            "a sitemap or feed no longer answers.",
            "サイトマップかフィードが応答しなくなりました。",
        ),
        Happening::Changed | Happening::Watch | Happening::WatchLost => ("changed.", "変更あり。"),
    };
    lang.t(en, ja)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nenrin_state::WatchId;

    #[test]
    fn titles_are_text_and_one_line() {
        let hit = WatchHit {
            id: 1,
            watch: WatchId(7),
            title: "a\r\nBcc: x@e.com\u{202e}<script>".into(),
            url: nenrin_urls::CanonicalUrl::parse("http://e.com/\"><b>").unwrap(),
            at_s: 90_000,
            before_s: Some(0),
            before: Some("<img src=x onerror=alert(1)>\nsecond".into()),
            after: None,
            trouble: None,
            mailed: false,
        };
        let links = Links { interface: "http://i".into(), replay: "http://r".into() };
        for lang in [Lang::En, Lang::Ja] {
            let letter = about_hits(std::slice::from_ref(&hit), &links, lang);
            assert!(letter.subject.starts_with("a Bcc: x@e.com <script>"), "{}", letter.subject);
            assert!(!letter.subject.contains(['\r', '\n', '\u{202e}']));
            for markup in ["<script", "<img", "<b>"] {
                assert!(!letter.html.contains(markup), "{}", letter.html);
            }
            assert!(letter.html.contains("&lt;img src=x onerror=alert(1)&gt;<br>second"));
            assert!(letter.text.contains("http://r/diff/19700101000000/19700102010000/"));
            assert!(letter.text.contains("http://i/watches/7"));
        }
        let many = about_hits(&[hit.clone(), hit], &links, Lang::En);
        assert_eq!(many.subject, "Nenrin: 2 watches reported something");
    }
}
