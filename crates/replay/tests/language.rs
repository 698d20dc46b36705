//! Replay's own pages in the reader's language.

use crate::support;

use std::sync::Arc;

use nenrin_replay::{MemoryArchive, ReplayOptions, router};
use support::{HTML, ask, ask_by, at, served, url};

const PAGE: &str = "http://e.com/a";
const JAPANESE: [(&str, &str); 1] = [("accept-language", "ja,en;q=0.5")];

fn archive() -> MemoryArchive {
    let mut archive = MemoryArchive::new();
    archive.put(&url(PAGE), at(10, 0), 200, HTML, "<html><body><p>one</body></html>");
    archive.put(&url(PAGE), at(20, 0), 200, HTML, "<html><body><p>two</body></html>");
    archive
}

/// The words of a page: the text between tags, without addresses and names.
fn words(html: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_default();
        if !tag.starts_with("style") && !tag.starts_with("script") {
            texts.extend(text.split_whitespace().map(str::to_owned));
        }
    }
    let is_word = |word: &String| {
        let word = word.trim_end_matches(['.', ',']);
        word.len() > 3 && word.chars().all(|c| c.is_ascii_alphabetic())
    };
    let is_name = |word: &String| ["Nenrin", "English"].contains(&word.as_str());
    texts.into_iter().filter(|word| is_word(word) && !is_name(word)).collect()
}

#[test]
fn every_page_of_replay_speaks_japanese() {
    let router = served(archive());
    for (path, status, expected) in [
        (format!("/web/*/{PAGE}"), 200, "2 個の版"),
        (format!("/web/2024*/{PAGE}"), 200, "2024年1月"),
        ("/web/*/http://e.com/*".to_owned(), 200, "件の保存ページ"),
        ("/web/2024/http://e.com/none".to_owned(), 404, "アーカイブにありません"),
        ("/web/2024/http://none.org/".to_owned(), 404, "のほかのページも保存されていません"),
        ("/web/2024/htp:/x".to_owned(), 400, "「htp:」で始まっています"),
        ("/nothing".to_owned(), 404, "ここには何もありません"),
        (format!("/_nenrin/next/20240120000000/{PAGE}"), 404, "この方向に"),
        (format!("/diff/20240110/20240120/{PAGE}"), 200, "変更点"),
        (format!("/diff/side/20240110/20240120/{PAGE}"), 200, "並べて表示"),
        (format!("/diff/x/20240120/{PAGE}"), 400, "読み取れません"),
        ("/diff/20240110/20240120/http://none.org/".to_owned(), 404, "比較できる版"),
    ] {
        let answer = ask(&router, &path, &JAPANESE);
        assert_eq!(answer.status, status, "{path}");
        let text = answer.text();
        assert!(text.contains("<html lang=\"ja\">") && text.contains(expected), "{path}: {text}");
        assert_eq!(words(&text), Vec::<String>::new(), "{path}");
        let english = ask(&router, &path, &[]).text();
        assert!(english.contains("<html lang=\"en\">") && !english.contains(expected), "{path}");
    }
    let sent = ask_by("POST", &router, &format!("/web/2024/{PAGE}"), &JAPANESE);
    assert!(sent.status == 405 && sent.text().contains("再現できません"), "{}", sent.text());
}

#[test]
fn the_banner_speaks_the_readers_language_and_no_copy_of_another() {
    let router = served(archive());
    let path = format!("/web/20240120000000/{PAGE}");
    let english = ask(&router, &path, &[]);
    let japanese = ask(&router, &path, &JAPANESE);
    assert!(english.text().contains("archived ") && !japanese.text().contains("archived "));
    // 保存日時
    assert!(japanese.text().contains("&#20445;&#23384;&#26085;&#26178;"), "{}", japanese.text());
    assert_ne!(english.header("etag"), japanese.header("etag"));
    assert!(japanese.header("vary").contains("accept-language"));
    let span = ask(&router, &format!("/_nenrin/span/20240120000000/{PAGE}"), &JAPANESE);
    assert_eq!(span.status, 200);
}

#[test]
fn a_language_can_be_chosen_and_leads_nowhere_else() {
    let router = served(archive());
    let page = ask(&router, &format!("/web/*/{PAGE}"), &[]).text();
    let switch = format!("/_nenrin/lang/ja/web/*/{PAGE}");
    assert!(page.contains(&format!("href=\"{switch}\"")), "{page}");
    let chosen = ask(&router, &switch, &[]);
    assert_eq!(
        (chosen.status, chosen.header("location")),
        (302, format!("/web/*/{PAGE}").as_str())
    );
    assert!(chosen.header("set-cookie").starts_with("nenrin_lang=ja; Path=/;"));
    let kept = [("cookie", "nenrin_lang=ja"), ("accept-language", "en")];
    assert!(ask(&router, &format!("/web/*/{PAGE}"), &kept).text().contains("<html lang=\"ja\">"));
    for away in ["/_nenrin/lang/ja//evil.example/", "/_nenrin/lang/ja/%5C/evil.example/"] {
        let location = ask(&router, away, &[]).header("location").to_owned();
        assert!(location.starts_with('/') && !location.starts_with("//"), "{location}");
    }
    let unknown = ask(&router, "/_nenrin/lang/tlh/web/*/http://e.com/", &[]);
    assert_eq!((unknown.status, unknown.header("set-cookie")), (302, ""));
}

#[test]
fn own_pages_lead_back_to_the_interface_and_archived_ones_do_not_know_of_it() {
    let options =
        ReplayOptions { interface: Some("127.0.0.1:8080".parse().unwrap()), ..Default::default() };
    let router = router(Arc::new(archive()), options);
    let here = [("host", "127.0.0.1:8081"), JAPANESE[0]];
    let of_page = "href=\"http://127.0.0.1:8080/page?url=http%3A%2F%2Fe.com%2Fa\"";
    for (path, link) in [
        (format!("/web/*/{PAGE}"), of_page),
        (format!("/diff/20240110/20240120/{PAGE}"), of_page),
        (format!("/diff/side/20240110/20240120/{PAGE}"), of_page),
        ("/web/2024/http://e.com/none".to_owned(), "href=\"http://127.0.0.1:8080/\""),
        (
            "/web/2024/http://none.org/?a=%22".to_owned(),
            "href=\"http://127.0.0.1:8080/sites/new?url=http%3A%2F%2Fnone.org%2F%3Fa%3D%2522\"",
        ),
    ] {
        let text = ask(&router, &path, &here).text();
        assert!(text.contains(link), "{path}: {text}");
        assert_eq!(words(&text), Vec::<String>::new(), "{path}");
        let away = ask(&router, &path, &[("host", "10.0.0.7:8081")]).text();
        assert!(!away.contains(":8080"), "out of reach: {path}");
    }
    let archived = ask(&router, &format!("/web/20240110000000/{PAGE}"), &here);
    assert_eq!(archived.status, 200);
    assert!(!archived.text().contains(":8080"));
}
