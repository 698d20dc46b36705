use proptest::prelude::*;

use super::*;
use LinkKind::{Embed, Frame, Page};

const URL: &str = "http://example.com/dir/page.html";

fn links_of(kind: ContentKind, content_type: &str, body: &[u8]) -> PageLinks {
    let url = CanonicalUrl::parse(URL).unwrap();
    page_links(&url, kind, Some(content_type), body, &ExtractLimits::default())
}

fn html(body: &str) -> PageLinks {
    links_of(ContentKind::Html, "text/html; charset=utf-8", body.as_bytes())
}

/// Links as text, relative to the folder of the page.
fn shown(page: &PageLinks) -> Vec<(String, LinkKind)> {
    let short = |url: &CanonicalUrl| {
        let text = url.as_str();
        text.strip_prefix("http://example.com/dir/").unwrap_or(text).to_owned()
    };
    page.links.iter().map(|link| (short(&link.url), link.kind)).collect()
}

fn assert_links(body: &str, expected: &[(&str, LinkKind)]) {
    let expected: Vec<_> = expected.iter().map(|(url, kind)| ((*url).to_owned(), *kind)).collect();
    assert_eq!(shown(&html(body)), expected, "{body}");
}

#[test]
fn each_element_gives_its_links() {
    let table: &[(&str, &[(&str, LinkKind)])] = &[
        ("<a href=x.html>", &[("x.html", Page)]),
        ("<A HREF='x.html#part'>", &[("x.html", Page)]),
        ("<area href=x.html>", &[("x.html", Page)]),
        ("<form action=x.cgi>", &[("x.cgi", Page)]),
        ("<form method=GET action=x.cgi>", &[("x.cgi", Page)]),
        ("<form method=post action=x.cgi>", &[]),
        ("<form>", &[]),
        ("<meta http-equiv=Refresh content='0; url=x.html'>", &[("x.html", Page)]),
        ("<iframe src=x.html></iframe>", &[("x.html", Frame)]),
        ("<frameset><frame src=x.html></frameset>", &[("x.html", Frame)]),
        (
            "<iframe srcdoc='<img src=&quot;i.png&quot;><a href=x.html>'></iframe>",
            &[("i.png", Embed), ("x.html", Page)],
        ),
        ("<img src=i.png>", &[("i.png", Embed)]),
        (
            "<img src=i.png srcset='i.png 1x, j,k.png 2x' longdesc=d.html>",
            &[("i.png", Embed), ("j,k.png", Embed), ("d.html", Page)],
        ),
        ("<img data-src=i.png src='data:image/gif;base64,R0'>", &[("i.png", Embed)]),
        ("<img lowsrc=i.png>", &[("i.png", Embed)]),
        (
            "<picture><source srcset='a.webp, b.webp 2x'><img src=c.png></picture>",
            &[("a.webp", Embed), ("b.webp", Embed), ("c.png", Embed)],
        ),
        (
            "<video src=v.mp4 poster=p.jpg><track src=t.vtt></video>",
            &[("v.mp4", Embed), ("p.jpg", Embed), ("t.vtt", Embed)],
        ),
        ("<audio><source src=a.ogg></audio>", &[("a.ogg", Embed)]),
        ("<script src=s.js></script>", &[("s.js", Embed)]),
        ("<input type=image src=i.png>", &[("i.png", Embed)]),
        ("<embed src=e.swf>", &[("e.swf", Embed)]),
        ("<object data=o.swf codebase=/c/>", &[("http://example.com/c/o.swf", Embed)]),
        ("<object><param name=movie value=m.swf></object>", &[("m.swf", Embed)]),
        ("<applet code=A.class archive='a.jar, b.jar'>", &[("a.jar", Embed), ("b.jar", Embed)]),
        ("<applet code=A.class codebase=k>", &[("k/A.class", Embed)]),
        ("<body background=b.gif>", &[("b.gif", Embed)]),
        ("<table><td background=b.gif>", &[("b.gif", Embed)]),
        ("<bgsound src=m.mid>", &[("m.mid", Embed)]),
        ("<link rel=stylesheet href=s.css>", &[("s.css", Embed)]),
        ("<link rel='alternate stylesheet' href=s.css>", &[("s.css", Embed)]),
        ("<link rel='Shortcut Icon' href=f.ico>", &[("f.ico", Embed)]),
        ("<link rel=preload as=image imagesrcset='p.png 1x'>", &[("p.png", Embed)]),
        ("<link rel=manifest href=m.json>", &[("m.json", Embed)]),
        ("<link rel=next href=n.html>", &[("n.html", Page)]),
        ("<link rel=dns-prefetch href=//cdn.example>", &[]),
        ("<link href=x.html>", &[]),
        ("<p style='background: url(b.png)'>", &[("b.png", Embed)]),
        ("<p style=\"background: url(&quot;b.png&quot;)\">", &[("b.png", Embed)]),
        (
            "<style>@import 's.css'; /* url(c.png) */ p { background: url(b.png) }</style>",
            &[("s.css", Embed), ("b.png", Embed)],
        ),
        (
            "<svg><a xlink:href=x.html><image href=i.png /><use xlink:href='u.svg#a'/></a>\
             <style>rect { fill: url(#f) }</style></svg>",
            &[("x.html", Page), ("i.png", Embed), ("u.svg", Embed)],
        ),
        (
            "<noscript><img src=i.png><a href='x.html?a&amp;b'></noscript>",
            &[("i.png", Embed), ("x.html?a&b", Page)],
        ),
        ("<noframes><a href=x.html></noframes>", &[("x.html", Page)]),
        ("<template><a href=x.html></template>", &[("x.html", Page)]),
    ];
    for (body, expected) in table {
        assert_links(body, expected);
    }
}

#[test]
fn what_is_loaded_late_is_found() {
    let table: &[(&str, &[(&str, LinkKind)])] = &[
        ("<img data-src=i.png>", &[("i.png", Embed)]),
        ("<img data-src=picture?7>", &[("picture?7", Embed)]),
        ("<img data-src-retina=i.png data-src-small=s.png>", &[("i.png", Embed), ("s.png", Embed)]),
        ("<img data-lazy=i.png>", &[("i.png", Embed)]),
        ("<img data-lazysrc=i.png>", &[("i.png", Embed)]),
        ("<img data-original-set='a.png 1x, b.png 2x'>", &[("a.png", Embed), ("b.png", Embed)]),
        ("<img data-lazy-srcset='a.png 1x, b.png 2x'>", &[("a.png", Embed), ("b.png", Embed)]),
        ("<source data-srcset='a.png 9w,b.png 8w'>", &[("a.png", Embed), ("b.png", Embed)]),
        ("<div data-bg=i.png>", &[("i.png", Embed)]),
        ("<div data-bg='url(i.png)'>", &[("i.png", Embed)]),
        (
            "<div data-background-image=\"url('/a b.png')\">",
            &[("http://example.com/a%20b.png", Embed)],
        ),
        ("<div data-background-image=/picture/7>", &[("http://example.com/picture/7", Embed)]),
        ("<div data-bgset='a.png 1x, b.png'>", &[("a.png", Embed), ("b.png", Embed)]),
        ("<div data-images='a.png'>", &[]),
        ("<div data-image=a.png,b.png>", &[("a.png", Embed), ("b.png", Embed)]),
        ("<div data-image='a.png, b.png'>", &[("a.png", Embed), ("b.png", Embed)]),
        (
            "<div data-src='[\"/a.png\",\"/b.png\"]'>",
            &[("http://example.com/a.png", Embed), ("http://example.com/b.png", Embed)],
        ),
        ("<div data-image=logo data-bg=dark data-src=#x data-full=true data-zoom=2>", &[]),
        ("<div data-url=/x data-source=/y.png data-target=z.png>", &[]),
        ("<iframe data-src=x.html></iframe>", &[("x.html", Frame)]),
        ("<video data-poster=p.jpg data-src=v.mp4>", &[("p.jpg", Embed), ("v.mp4", Embed)]),
        ("<form><button formaction=x>", &[("x", Page)]),
        ("<form method=post><input type=submit formaction=x>", &[]),
        ("<form method=post><button formmethod=get formaction=x>", &[("x", Page)]),
        ("<form><button formmethod=post formaction=x>", &[]),
        ("<img src=///other.example/i.png>", &[("http://other.example/i.png", Embed)]),
    ];
    for (body, expected) in table {
        assert_links(body, expected);
    }
}

fn script_in_page(script: &str) -> Vec<(String, LinkKind)> {
    shown(&html(&format!("<script>{script}</script>")))
}

#[test]
fn scripts_name_modules_workers_and_requests() {
    let one = |url: &str| vec![(url.to_owned(), Embed)];
    for (script, expected) in [
        ("import './a.js'", one("a.js")),
        ("import a, {b as c} from './a.js'; a()", one("a.js")),
        ("export * from '../a.js'", one("http://example.com/a.js")),
        ("import('./a.js').then(x)", one("a.js")),
        ("import(`./a.js`, {with: {type: 'json'}})", one("a.js")),
        ("import a from 'bare'", vec![]),
        ("import('./' + name)", vec![]),
        ("import(`./${name}.js`)", vec![]),
        ("x.import('./a.js')", vec![]),
        ("new Worker('w.js')", one("w.js")),
        ("new window.SharedWorker(\"/w.js\", {type: 'module'})", one("http://example.com/w.js")),
        ("new Worker(new URL('./w.js', import.meta.url), {type: 'module'})", one("w.js")),
        ("new URL('i.png', document.baseURI)", one("i.png")),
        ("new URL('i.png', base)", vec![]),
        (
            "importScripts('a.js', 'b.js'); f('c.js')",
            vec![("a.js".into(), Embed), ("b.js".into(), Embed)],
        ),
        ("fetch('/d.json').then(r => r.json())", one("http://example.com/d.json")),
        ("fetch('d?x=1', {headers: {a: 'b'}, method: 'GET'})", one("d?x=1")),
        ("fetch('d', {method: 'POST', body: x})", vec![]),
        ("fetch('/d/' + id)", vec![]),
        ("await fetch(`d.json`)", one("d.json")),
        ("x.open('GET', 'd.json', true)", one("d.json")),
        ("x.open('POST', 'd.json')", vec![]),
        ("window.open('x.html', 'y')", vec![]),
        (
            "$.getJSON('d.json', f); axios.get('e.json')",
            vec![("d.json".into(), Embed), ("e.json".into(), Embed)],
        ),
        ("map.get('d.json')", vec![]),
        ("i.src = 'i.png'; i.src = 'j' + '.png'; i.src = x", one("i.png")),
        ("i.title = 'i.png'", vec![]),
        ("new FontFace('f', 'url(f.woff2)')", one("f.woff2")),
        ("c.audioWorklet.addModule('w.js')", one("w.js")),
        ("// import './a.js'\n/* fetch('b') */ 'import \"c.js\"'", vec![]),
        ("s = '/a.png'; t = 'https://e.com/b.js'", vec![]),
    ] {
        assert_eq!(script_in_page(script), expected, "{script}");
    }
}

#[test]
fn import_maps_say_what_bare_names_mean() {
    let page = html(
        r#"<script type=importmap>{"imports": {"lib": "/l/lib.js", "parts/": "./p/"},
           "scopes": {"/x/": {"lib": "/l/old.js"}}}</script>
           <script type=module>import "lib"; import x from "parts/a.js"; import "other"</script>"#,
    );
    assert_eq!(
        shown(&page),
        [
            ("http://example.com/l/lib.js".into(), Embed),
            ("http://example.com/l/old.js".into(), Embed),
            ("p/a.js".into(), Embed)
        ]
    );
}

#[test]
fn the_state_of_a_page_as_json_names_pictures_and_pages() {
    let json = r#"{"props": {"image": "\/i\/a.png", "list": ["https://cdn.example/b.webp?w=9"],
        "url": "/about", "href": "https://example.com/c", "name": "/d", "slug": "e/f",
        "text": "see /g.png now", "/h.png": 1, "description": "a.png"}}"#;
    let expected: Vec<(String, LinkKind)> = vec![
        ("http://example.com/i/a.png".into(), Embed),
        ("https://cdn.example/b.webp?w=9".into(), Embed),
        ("http://example.com/about".into(), Page),
        ("https://example.com/c".into(), Page),
    ];
    for page in [
        html(&format!("<script type=application/json id=__NEXT_DATA__>{json}</script>")),
        html(&format!("<script>window.__STATE__ = {json}; f('/x.png')</script>")),
    ] {
        assert_eq!(shown(&page).len(), expected.len(), "{:?}", shown(&page));
        assert_eq!(shown(&page), expected);
    }
    let file = links_of(ContentKind::Json, "application/json", json.as_bytes());
    assert_eq!(shown(&file), expected[..2]);
}

#[test]
fn a_script_file_names_modules_beside_it_and_requests_of_its_page() {
    let file = |url: &str, script: &str| {
        let url = CanonicalUrl::parse(url).unwrap();
        let limits = ExtractLimits::default();
        let links =
            page_links(&url, ContentKind::JavaScript, None, script.as_bytes(), &limits).links;
        links.into_iter().map(|link| link.url.to_string()).collect::<Vec<_>>()
    };
    for (script, expected) in [
        ("import './a.js'", "http://e.com/site/js/a.js"),
        ("new Worker('js/w.js')", "http://e.com/site/js/w.js"),
        ("new Worker('w.js')", "http://e.com/site/js/w.js"),
        ("fetch('/d.json')", "http://e.com/d.json"),
    ] {
        assert_eq!(file("http://e.com/site/js/app.js", script), [expected], "{script}");
    }
}

#[test]
fn strings_that_look_like_urls_count_where_that_is_wanted() {
    let url = CanonicalUrl::parse(URL).unwrap();
    let limits = ExtractLimits { likely_script_urls: true, ..ExtractLimits::default() };
    let script = b"a = '/a.png'; b = 'https://e.com/b.js'; c = 'text/css'; d = 'x' + '/d.png';
        e = 'no url.png'; f = 'img/f.jpg'; g = '/page'; h = 'a.b'";
    let found = page_links(&url, ContentKind::JavaScript, None, script, &limits);
    assert_eq!(
        shown(&found),
        [
            ("http://example.com/a.png".into(), Embed),
            ("https://e.com/b.js".into(), Embed),
            ("img/f.jpg".into(), Embed)
        ]
    );
}

#[test]
fn nothing_is_guessed_from_scripts_comments_and_text() {
    for body in [
        "<script>location = 'x.html'; document.write('<a href=y.html>')</script>",
        "<!-- <a href=x.html> -->",
        "<textarea><a href=x.html></textarea>",
        "<title><a href=x.html></title>",
        "http://example.com/x.html",
        "<a name=x>",
        "<blockquote cite=x.html>",
    ] {
        assert_links(body, &[]);
    }
}

#[test]
fn references_are_resolved_against_the_base_even_before_it() {
    let page = html("<a href=a.html><base href='/b/'><base href='/c/'><a href=d.html>");
    assert_eq!(page.base.as_str(), "http://example.com/b/");
    assert_eq!(
        shown(&page),
        [
            ("http://example.com/b/a.html".into(), Page),
            ("http://example.com/b/d.html".into(), Page)
        ]
    );
    let page = html("<base href='javascript:x'><a href=a.html>");
    assert_eq!(page.base.as_str(), URL);
    assert_eq!(shown(&page), [("a.html".into(), Page)]);
    // A base without href does not count as the first.
    let page = html("<base target=_top><base href='/c/'><a href=d.html>");
    assert_eq!(page.base.as_str(), "http://example.com/c/");
}

#[test]
fn each_url_is_listed_once_and_an_embedded_one_stays_embedded() {
    let page = html(
        "<a href=i.png><a href=x.html><img src=i.png><a href=x.html#y><a href=''><a href='#top'>\
         <a href=page.html><iframe src=f.html></iframe><a href=f.html>",
    );
    assert_eq!(
        shown(&page),
        [("i.png".into(), Embed), ("x.html".into(), Page), ("f.html".into(), Frame)]
    );
    assert_eq!(page.refused, 0);
}

#[test]
fn other_schemes_broken_and_endless_urls_are_counted_not_kept() {
    let long = "a".repeat(5000);
    let page = html(&format!(
        "<a href='mailto:a@b'><a href='javascript:x()'><img src='data:,x'><a href='http://[x/'>\
         <a href='{long}'><a href='x:y/z'><a href=' http://Example.com:80/y '>"
    ));
    assert_eq!(page.refused, 6);
    assert_eq!(shown(&page), [("http://example.com/y".into(), Page)]);
}

#[test]
fn entities_in_references_are_decoded_as_browsers_do() {
    assert_links(
        "<a href='?a=1&amp;b=2&copy=3&#38;d=4'>",
        &[("page.html?a=1&b=2&copy=3&d=4", Page)],
    );
    assert_links("<a href=\"x\ny.html\">", &[("xy.html", Page)]);
}

#[test]
fn the_title_is_the_pages_own_decoded_and_folded() {
    let page =
        html("<svg><title>drawing</title></svg><title>\n Rings &amp;  trees&hellip; </title>");
    assert_eq!(page.title.as_deref(), Some("Rings & trees…"));
    assert_eq!(html("<title> </title>").title, None);
    assert_eq!(html("<title>a</title><title>b</title>").title.as_deref(), Some("a"));
    let long = html(&format!("<title>{}</title>", "年".repeat(10_000)));
    assert_eq!(long.title.unwrap().chars().count(), ExtractLimits::default().max_title_chars);
}

#[test]
fn robots_feeds_and_canonical_are_found() {
    let page = html(
        "<meta name=ROBOTS content='NoIndex, nofollow'><meta name=robots content=noarchive>\
         <link rel=alternate type=application/rss+xml href=/feed title=News>\
         <link rel=alternate type='application/atom+xml; charset=utf-8' href=atom.xml>\
         <link rel=alternate hreflang=fr href=/fr/><link rel=canonical href=/page>",
    );
    assert_eq!(page.robots, MetaRobots { noindex: true, nofollow: true, noarchive: true });
    let feeds: Vec<_> = page.feeds.iter().map(CanonicalUrl::as_str).collect();
    assert_eq!(feeds, ["http://example.com/feed", "http://example.com/dir/atom.xml"]);
    assert_eq!(page.canonical.unwrap().as_str(), "http://example.com/page");
    assert_eq!(page.links.len(), 4);
}

#[test]
fn japanese_pages_are_read_and_queries_written_in_their_charset() {
    // 「年輪」 as title and in a query, in the page's own bytes.
    let table: [(&str, &[u8], &str); 3] = [
        ("shift_jis", b"\x94\x4e\x97\xd6", "%94N%97%D6"),
        ("euc-jp", b"\xc7\xaf\xce\xd8", "%C7%AF%CE%D8"),
        ("iso-2022-jp", b"\x1b$BG/NX\x1b(B", "%1B$BG/NX%1B(B"),
    ];
    for (label, nenrin, query) in table {
        let mut body = format!("<meta charset={label}><title>").into_bytes();
        body.extend_from_slice(nenrin);
        body.extend_from_slice(b"</title><a href=\"/s?q=");
        body.extend_from_slice(nenrin);
        body.extend_from_slice(b"\"><a href=\"/");
        body.extend_from_slice(nenrin);
        body.extend_from_slice(b"\">");
        let page = links_of(ContentKind::Html, "text/html", &body);
        assert_eq!(page.title.as_deref(), Some("年輪"), "{label}");
        let urls: Vec<_> = page.links.iter().map(|link| link.url.path_and_query()).collect();
        // The path is always UTF-8, the query is not.
        assert_eq!(urls, [format!("/s?q={query}").as_str(), "/%E5%B9%B4%E8%BC%AA"], "{label}");
    }
}

#[test]
fn a_character_that_the_charset_lacks_becomes_a_reference_in_the_query() {
    let page = links_of(
        ContentKind::Html,
        "text/html; charset=windows-1252",
        b"<a href='?q=\xe9&#24180;x'>",
    );
    assert_eq!(page.links[0].url.query(), Some("q=%E9%26%2324180%3Bx"));
}

#[test]
fn utf_16_pages_are_read() {
    let mut body = b"\xff\xfe".to_vec();
    body.extend("<a href='?q=é'>".encode_utf16().flat_map(u16::to_le_bytes));
    let page = links_of(ContentKind::Html, "text/html", &body);
    assert_eq!(page.links[0].url.query(), Some("q=%C3%A9"));
}

#[test]
fn style_sheets_xhtml_and_drawings_have_links() {
    let css = links_of(ContentKind::Css, "text/css", b"@import 'a.css'; b { c: url(d.png) }");
    assert_eq!(shown(&css), [("a.css".into(), Embed), ("d.png".into(), Embed)]);

    let xhtml = links_of(
        ContentKind::Xhtml,
        "application/xhtml+xml",
        b"<?xml version='1.0'?><?xml-stylesheet href='s.css' type='text/css'?>\
          <html xmlns='http://www.w3.org/1999/xhtml'><head><title>T &amp; t</title>\
          <script src='s.js'/><style><![CDATA[ p { a: url(b.png) } ]]></style></head>\
          <body><a href='x.html?a&amp;b'>x</a></body></html>",
    );
    assert_eq!(xhtml.title.as_deref(), Some("T & t"));
    assert_eq!(
        shown(&xhtml),
        [
            ("s.css".into(), Embed),
            ("s.js".into(), Embed),
            ("b.png".into(), Embed),
            ("x.html?a&b".into(), Page)
        ]
    );

    let svg = links_of(
        ContentKind::Svg,
        "image/svg+xml",
        b"<svg xmlns:xlink='x'><title>Rings</title><image xlink:href='i.png'/>\
          <a href='x.html'><use href='#a'/></a></svg>",
    );
    assert_eq!(shown(&svg), [("i.png".into(), Embed), ("x.html".into(), Page)]);
    assert_eq!(svg.title.as_deref(), Some("Rings"));
}

#[test]
fn xml_that_is_not_well_formed_is_read_on_as_html() {
    let page = links_of(
        ContentKind::Xhtml,
        "application/xhtml+xml",
        b"<html><a href='a.html'>x</b></c> & <!x <a href=b.html>y</a><a href='c.html'>",
    );
    let urls: Vec<_> = shown(&page).into_iter().map(|(url, _)| url).collect();
    assert!(urls.contains(&"a.html".to_owned()) && urls.contains(&"c.html".to_owned()), "{urls:?}");
}

#[test]
fn markup_in_scripts_images_and_the_rest_has_no_links() {
    for kind in [ContentKind::JavaScript, ContentKind::Json, ContentKind::Image, ContentKind::Other]
    {
        let page = links_of(kind, "x/y", b"<a href=x.html>");
        assert!(page.links.is_empty() && !page.truncated);
    }
}

#[test]
fn limits_hold_and_are_reported() {
    let many: String = (0..100).map(|n| format!("<a href={n}>")).collect();
    let url = CanonicalUrl::parse(URL).unwrap();
    let limits = ExtractLimits { max_links: 10, ..ExtractLimits::default() };
    let page = page_links(&url, ContentKind::Html, None, many.as_bytes(), &limits);
    assert_eq!((page.links.len(), page.truncated), (10, true));
    let limits = ExtractLimits { max_references: 20, ..ExtractLimits::default() };
    let page = page_links(&url, ContentKind::Html, None, many.as_bytes(), &limits);
    assert_eq!((page.links.len(), page.truncated), (20, true));
    let page = page_links(&url, ContentKind::Html, None, b"<a href=x>", &limits);
    assert!(!page.truncated);

    let limits = ExtractLimits { max_link_bytes: 50_000, ..ExtractLimits::default() };
    let long = format!("<base href=/{}/>{many}", "b".repeat(3_000));
    let page = page_links(&url, ContentKind::Html, None, long.as_bytes(), &limits);
    assert_eq!((page.links.len(), page.truncated), (16, true), "short ones with a long base");

    // Attributes of names that differ are each looked for among all of them.
    let late_name = |n: usize| -> String {
        (0..16)
            .map(|bit| ["-src", "-img"][n >> bit & 1])
            .chain([format!("=/{n}.png ").as_str()])
            .collect()
    };
    let late: String = (0..15_000).map(|n| format!("data{}", late_name(n))).collect();
    let page = html(&format!("<img {late}>"));
    assert!((1..100).contains(&page.links.len()), "{}", page.links.len());

    let mut nested = "<a href=x.html>".to_owned();
    for _ in 0..5 {
        let escaped = nested.replace('&', "&amp;").replace('"', "&quot;");
        nested = format!("<iframe srcdoc=\"{escaped}\"></iframe>");
    }
    let page = html(&nested);
    assert_eq!((page.links.len(), page.truncated), (0, true));
}

#[test]
fn what_was_found_before_the_parser_gives_up_is_kept() {
    let url = CanonicalUrl::parse(URL).unwrap();
    let limits = ExtractLimits { max_parser_bytes: 4096, ..ExtractLimits::default() };
    let deep = format!("<a href=x.html>{}", "<div>".repeat(100_000));
    let page = page_links(&url, ContentKind::Html, None, deep.as_bytes(), &limits);
    assert_eq!((page.links.len(), page.truncated), (1, true));
    let page = html(&deep);
    assert_eq!((page.links.len(), page.truncated), (1, false));
}

#[test]
fn a_page_that_is_cut_off_gives_what_it_has() {
    let page = html("<a href=x.html><a href='y.html");
    assert_eq!(shown(&page), [("x.html".into(), Page)]);
}

proptest! {
    #[test]
    fn any_bytes_of_any_kind_never_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        for kind in ALL_KINDS {
            links_of(kind, "text/html", &body);
        }
    }

    #[test]
    fn any_markup_never_panics_and_links_are_unique(
        body in "(<a |<img |<style>|</style>|<svg>|</svg>|<!\\[CDATA\\[|\\]\\]>|<noscript>|</noscript>|href=|srcset=|src=|style=|'|\"|>|/>|url\\(|\\)|&amp;|&#|http://|//|x|,| |<!--|-->|\\?|\\PC){0,40}"
    ) {
        for kind in ALL_KINDS {
            let page = links_of(kind, "text/html", body.as_bytes());
            let mut urls: Vec<_> = page.links.iter().map(|link| link.url.clone()).collect();
            urls.sort();
            urls.dedup();
            prop_assert_eq!(urls.len(), page.links.len());
            prop_assert!(urls.iter().all(|url| url.as_str() != URL));
        }
    }
}

const ALL_KINDS: [ContentKind; 12] = [
    ContentKind::Html,
    ContentKind::Xhtml,
    ContentKind::Css,
    ContentKind::JavaScript,
    ContentKind::Json,
    ContentKind::Xml,
    ContentKind::Svg,
    ContentKind::Feed,
    ContentKind::Sitemap,
    ContentKind::Text,
    ContentKind::Image,
    ContentKind::Other,
];

#[test]
fn feeds_and_sitemaps_link_what_they_announce() {
    let feed = links_of(
        ContentKind::Feed,
        "application/rss+xml",
        b"<rss><channel><link>/</link><item><link>/dir/a</link></item></channel></rss>",
    );
    assert_eq!(shown(&feed), [("http://example.com/".into(), Page), ("a".into(), Page)]);
    let sitemap = links_of(
        ContentKind::Sitemap,
        "text/xml",
        b"<sitemapindex><sitemap><loc>/dir/s.xml</loc></sitemap></sitemapindex>",
    );
    assert_eq!(shown(&sitemap), [("s.xml".into(), Page)]);
}
