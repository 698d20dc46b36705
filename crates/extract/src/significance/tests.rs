use nenrin_urls::CanonicalUrl;
use proptest::prelude::*;

use super::*;

fn url(path: &str) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("http://example.com/{path}")).unwrap()
}

fn compared(old: &str, new: &str) -> Comparison {
    compare(ContentKind::Html, Some("text/html; charset=utf-8"), old.as_bytes(), new.as_bytes())
}

fn judged(old: &str, new: &str) -> Change {
    compared(old, new).judge(&NoisyParts::default())
}

fn share(change: Change) -> f32 {
    match change {
        Change::Significant { changed_share } => changed_share,
        other => panic!("{other:?}"),
    }
}

const ARTICLE: &str = "<p>A tree adds a ring of wood each year. Wide rings tell of wet years, \
    narrow ones of drought. Whoever counts them knows the age of the tree.</p>";

/// A page of a site with a clock, an advertisement and an article.
fn page(article: &str, time: &str, ad: &str) -> String {
    format!(
        "<html><head><title>Trees</title><script nonce={time}>start({time})</script></head><body>\
         <div class=clock>It is {time}</div><div class=ad><a href=/ad/{ad}><img src=/i/{ad}.png>\
         Buy {ad} now</a></div><div id=main><h1>Rings</h1>{article}</div><!-- {time} --></body>"
    )
}

#[test]
fn the_same_bytes_are_identical() {
    assert_eq!(judged(ARTICLE, ARTICLE), Change::Identical);
}

#[test]
fn clocks_tokens_and_comments_are_noise() {
    let old = page(ARTICLE, "10:30", "saws");
    assert_eq!(judged(&old, &page(ARTICLE, "11:47", "saws")), Change::Noise);
    assert_eq!(judged(&old, &old.replace("<div id", "\n\n<div id")), Change::Noise);
    assert_eq!(judged(&old, &old.replace("class=clock", "class=watch")), Change::Noise);
    assert_eq!(
        judged(&old, &old.replace("<head>", "<head><link rel=x href=y.css>")),
        Change::Noise
    );
}

#[test]
fn a_changed_article_is_significant_by_its_share() {
    let old = page(ARTICLE, "10:30", "saws");
    let edited = page(&ARTICLE.replace("wet years", "rain"), "11:30", "saws");
    let more = page(&format!("{ARTICLE}{}", "<p>Another paragraph about oaks.</p>"), "1:3", "saws");
    let other = page("<p>Nothing is left of the tree.</p>", "11:30", "saws");
    assert!(share(judged(&old, &edited)) > 0.0);
    assert!(share(judged(&old, &more)) < 0.3, "{:?}", judged(&old, &more));
    assert!(share(judged(&old, &other)) > 0.6, "{:?}", judged(&old, &other));
    assert!(share(judged(&old, "")) > 0.9);
}

#[test]
fn links_and_images_are_content() {
    let old = "<p>See <a href=/oak>this</a> and <img src=/oak.png>";
    assert!(share(judged(old, &old.replace("/oak>", "/ash>"))) > 0.0);
    assert!(share(judged(old, &old.replace("oak.png", "ash.png"))) > 0.0);
    assert_eq!(judged(old, &old.replace("oak.png", "oak.png?v=2")), Change::Noise);
}

#[test]
fn scripts_count_only_where_they_are_the_content() {
    let text = ARTICLE.repeat(3);
    let with = |script: &str| format!("{text}<script>{script}</script>");
    assert_eq!(judged(&with("let a = 'x'"), &with("let b = 'y'")), Change::Noise);
    let shell = |script: &str| format!("<div id=app></div><script>{script}</script>");
    assert!(share(judged(&shell("show('oak')"), &shell("show('ash')"))) > 0.0);
    assert_eq!(judged(&shell("show(12)"), &shell("show(999)")), Change::Noise);
    let json = |data: &str| format!("{text}<script type=application/ld+json>{data}</script>");
    assert!(share(judged(&json("{\"a\":\"oak\"}"), &json("{\"a\":\"ash\"}"))) > 0.0);
}

#[test]
fn a_rotating_advertisement_is_learnt() {
    let mut learnt = NoisyParts::default();
    let ads = ["saws", "axes", "rope"];
    let mut old = page(ARTICLE, "10:30", ads[0]);
    for visit in 1..9 {
        let new = page(ARTICLE, "10:31", ads[visit % 3]);
        learnt.learn(&url("page"), &compared(&old, &new));
        old = new;
    }
    let ad_only = page(ARTICLE, "12:00", "gloves");
    assert!(share(judged(&old, &ad_only)) > 0.0, "without learning it counts");
    assert_eq!(compared(&old, &ad_only).judge(&learnt), Change::Noise);
    // The article still counts.
    let edited = page(&ARTICLE.replace("wet", "rainy"), "12:00", "boots");
    assert!(share(compared(&old, &edited).judge(&learnt)) > 0.0);
}

#[test]
fn navigation_that_changes_on_several_pages_at_once_is_learnt() {
    let with_nav = |text: &str, latest: &str| {
        format!("<div class=latest><a href=/{latest}>{latest}</a></div><div id=main>{text}</div>")
    };
    let mut learnt = NoisyParts::default();
    for page in ["a", "b", "c"] {
        let text = format!("{ARTICLE}<p>This is page {page}.");
        let comparison = compared(&with_nav(&text, "oak"), &with_nav(&text, "ash"));
        assert!(matches!(comparison.judge(&learnt), Change::Significant { .. }), "{page}");
        learnt.learn(&url(page), &comparison);
    }
    let comparison = compared(&with_nav(ARTICLE, "oak"), &with_nav(ARTICLE, "ash"));
    assert_eq!(comparison.judge(&learnt), Change::Noise);
    // Another change in the same context is not yet known.
    let comparison = compared(&with_nav(ARTICLE, "ash"), &with_nav(ARTICLE, "elm"));
    assert!(share(comparison.judge(&learnt)) > 0.0);
}

#[test]
fn a_busy_front_page_is_not_taken_for_noise() {
    let front = |visit: usize| {
        let items: String = (0..30)
            .map(|n| format!("<li><a href=/story/{visit}-{n}>Story {visit}-{n} about trees</a>"))
            .collect();
        format!("<h1>News</h1><ul class=news>{items}</ul>")
            .replace("Story", ["Tale", "Word", "Hint", "Note", "Fact", "Myth", "Clue"][visit % 7])
    };
    let mut learnt = NoisyParts::default();
    for visit in 0..6 {
        learnt.learn(&url(""), &compared(&front(visit), &front(visit + 1)));
    }
    assert!(share(compared(&front(6), &front(8)).judge(&learnt)) > 0.3);
}

#[test]
fn what_is_learnt_is_bounded_and_survives_storage() {
    let mut learnt = NoisyParts::default();
    let with = |n: usize, text: &str| {
        let blocks: String = (0..500)
            .map(|at| {
                let class: String =
                    format!("{n}-{at}").bytes().map(|b| char::from(b + 60)).collect();
                format!("<div class={class}>{text}</div>")
            })
            .collect();
        blocks
    };
    for n in 0..20 {
        learnt.learn(&url("x"), &compared(&with(n, "oak"), &with(n, "ash")));
    }
    assert_eq!(learnt.counts().0, MAX_NOISY_PARTS);
    let stored = serde_json::to_string(&learnt).unwrap();
    assert!(stored.len() < 200 * MAX_NOISY_PARTS, "{}", stored.len());
    assert_eq!(serde_json::from_str::<NoisyParts>(&stored).unwrap(), learnt);
}

#[test]
fn other_kinds_are_judged_by_line_or_as_a_whole() {
    let compared =
        |kind, old: &[u8], new: &[u8]| significance(kind, None, old, new, &NoisyParts::default());
    assert_eq!(
        compared(ContentKind::Image, b"a", b"b"),
        Change::Significant { changed_share: 1.0 }
    );
    assert_eq!(
        compared(ContentKind::Text, b"oak\nmade 2024-01-01\n", b"oak\nmade 2024-01-02\n"),
        Change::Noise
    );
    assert!(share(compared(ContentKind::Text, b"oak\nash\n", b"oak\nelm\n")) < 0.6);
    let jis = |text: &str| encoding_rs::ISO_2022_JP.encode(text).0.into_owned();
    let (old, new) = (jis("<p>年輪 2024年3月1日"), jis("<p>年輪 2024年4月2日"));
    assert_eq!(compared(ContentKind::Html, &old, &new), Change::Noise);
    assert!(share(compared(ContentKind::Html, &old, &jis("<p>木目 2024年3月1日"))) > 0.0);
}

proptest! {
    #[test]
    fn any_bytes_are_judged(
        old in prop::collection::vec(any::<u8>(), 0..200),
        new in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for kind in [ContentKind::Html, ContentKind::Text] {
            let comparison = compare(kind, None, &old, &new);
            let mut learnt = NoisyParts::default();
            learnt.learn(&url("x"), &comparison);
            match comparison.judge(&learnt) {
                Change::Identical => prop_assert_eq!(&old, &new),
                Change::Noise => {}
                Change::Significant { changed_share } => {
                    prop_assert!(changed_share > 0.0 && changed_share <= 1.0);
                }
            }
        }
    }

    #[test]
    fn any_markup_is_judged_the_same_from_both_sides(
        old in "(<p>|<a href=x>|</a>|oak|ash|12|10:30|&|<!--|-->| |é){0,20}",
        new in "(<p>|<a href=x>|</a>|oak|ash|12|10:30|&|<!--|-->| |é){0,20}",
    ) {
        let is_content = |change| matches!(change, Change::Significant { .. });
        prop_assert_eq!(is_content(judged(&old, &new)), is_content(judged(&new, &old)));
    }
}
