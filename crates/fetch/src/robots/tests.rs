use super::*;
use proptest::prelude::*;

fn rules(text: &str) -> RobotsRules {
    RobotsRules::parse(text.as_bytes(), "FooBot")
}

fn allowed(text: &str, path: &str) -> bool {
    rules(text).allows(path).allowed
}

#[test]
fn an_empty_or_absent_file_allows_everything() {
    assert!(allowed("", "/x"));
    assert!(allowed("User-agent: FooBot\nDisallow:\n", "/x"));
    assert!(allowed("<html><body>Not found</body></html>", "/x"));
    assert!(RobotsRules::allow_all().allows("/x").allowed);
    assert!(!RobotsRules::disallow_all().allows("/x").allowed);
}

#[test]
fn the_robots_file_itself_is_always_allowed() {
    assert!(allowed("user-agent: *\ndisallow: /", "/robots.txt"));
    assert!(RobotsRules::disallow_all().allows("/robots.txt").allowed);
    assert!(!allowed("user-agent: *\ndisallow: /", "/robots.txt.bak"));
    assert!(!allowed("user-agent: *\ndisallow: /", "/a/robots.txt"));
}

#[test]
fn the_verdict_names_the_line_that_decided() {
    let rules = rules("# hello\nUser-agent: *\n\nDISALLOW :  /private/  # keep out\n");
    let verdict = rules.allows("/private/a");
    assert!(!verdict.allowed);
    let line = RobotsLine { number: 4, text: "Disallow: /private/".to_owned() };
    assert_eq!(verdict.rule, Some(line));
    assert_eq!(rules.allows("/public").rule, None);
}

#[test]
fn the_agents_own_group_replaces_the_general_one() {
    let text = "user-agent: *\ndisallow: /\n\nuser-agent: foobot\nallow: /\n";
    assert!(allowed(text, "/x"));
    let text = "user-agent: foobot\nuser-agent: other\ndisallow: /a\n\nuser-agent: *\ndisallow: /";
    assert!(allowed(text, "/x"));
    assert!(!allowed(text, "/a"));
    assert!(allowed("user-agent: *\ndisallow: /\nuser-agent: foobot\n", "/x"));
    assert!(allowed("user-agent: other\ndisallow: /\n", "/x"));
}

#[test]
fn groups_of_the_same_agent_are_merged() {
    let text = "user-agent: foobot\ndisallow: /a\n\nuser-agent: other\ndisallow: /b\n\n\
                User-Agent: FOOBOT\ndisallow: /c\n";
    assert!(!allowed(text, "/a"));
    assert!(allowed(text, "/b"));
    assert!(!allowed(text, "/c"));
    let text = "user-agent: *\ndisallow: /a\n\nuser-agent: *\ndisallow: /b\n";
    assert!(!allowed(text, "/a"));
    assert!(!allowed(text, "/b"));
}

#[test]
fn the_product_token_is_compared_whole_and_without_its_version() {
    for (agent, is_ours) in [
        ("FooBot", true),
        ("foobot/2.1", true),
        ("FOOBOT (+http://example.com)", true),
        ("foobot2", true),
        ("foo", false),
        ("foobot-news", false),
        ("xfoobot", false),
        ("foo bot", false),
        ("*", true),
        ("* ", true),
        ("* baz", true),
        ("*foobot", false),
        ("", false),
    ] {
        let text = format!("user-agent: {agent}\ndisallow: /\n");
        assert_eq!(allowed(&text, "/x"), !is_ours, "{agent}");
    }
    let text = "user-agent: foobot\ndisallow: /";
    assert!(!RobotsRules::parse(text.as_bytes(), "FooBot/1.0").allows("/x").allowed);
    assert!(RobotsRules::parse(b"user-agent: 1\ndisallow: /", "").allows("/x").allowed);
}

#[test]
fn rules_before_any_agent_are_for_nobody() {
    assert!(allowed("disallow: /\nuser-agent: foobot\nallow: /a", "/x"));
}

#[test]
fn other_lines_do_not_end_the_list_of_agents() {
    let text = "user-agent: foobot\nsitemap: http://e.com/s.xml\nfoo: bar\n\nuser-agent: other\ndisallow: /\n";
    assert!(!allowed(text, "/x"));
}

#[test]
fn a_crawl_delay_ends_the_list_of_agents() {
    let text = "user-agent: *\ncrawl-delay: 10\n\nuser-agent: badbot\ndisallow: /\n";
    assert!(allowed(text, "/x"));
    assert_eq!(rules(text).crawl_delay(), Some(Duration::from_secs(10)));
}

#[test]
fn the_longest_match_wins_and_allow_wins_a_tie() {
    for (disallow, allow, path, expected) in [
        ("/x/", "/x/page.html", "/x/page.html", true),
        ("/x/page.html", "/x/", "/x/page.html", false),
        ("/", "", "/x", false),
        ("/x", "/x", "/x", true),
        ("/*.html", "/x", "/x.html", false),
        ("/*.ph", "/folder", "/folder/page.php", true),
        ("/folder", "/folder", "/folder/page", true),
        ("/*.htm", "/page", "/page.htm", false),
        ("/*.php5", "/page", "/page.php5", false),
        ("/", "/$", "/", true),
        ("/", "/$", "/page.htm", false),
        ("/p", "/", "/page", false),
        ("/", "/p", "/page", true),
    ] {
        for text in [
            format!("user-agent: foobot\ndisallow: {disallow}\nallow: {allow}\n"),
            format!("user-agent: foobot\nallow: {allow}\ndisallow: {disallow}\n"),
        ] {
            assert_eq!(allowed(&text, path), expected, "{text}{path}");
        }
    }
}

#[test]
fn paths_are_case_sensitive_and_fields_are_not() {
    assert!(allowed("USER-AGENT: foobot\nDISALLOW: /X", "/x"));
    assert!(!allowed("USER-AGENT: foobot\nDISALLOW: /X", "/X"));
}

#[test]
fn the_example_of_the_rfc_is_understood() {
    let text = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
                User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
                User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\n\
                User-Agent: quxbot\n\nEOF\n";
    let may =
        |agent: &str, path: &str| RobotsRules::parse(text.as_bytes(), agent).allows(path).allowed;
    assert!(!may("anybot", "/a.gif") && may("anybot", "/a.gif?x") && !may("anybot", "/example/"));
    assert!(may("foobot", "/example/page.html") && may("foobot", "/example/allowed.gif"));
    assert!(!may("foobot", "/example/disallowed.gif") && !may("foobot", "/publications/"));
    assert!(!may("barbot", "/example/page.html") && may("bazbot", "/example/x.gif"));
    assert!(may("quxbot", "/example/page.html"), "a group without rules allows everything");
}

#[test]
fn a_byte_order_mark_and_junk_are_survived() {
    let mut text = b"\xEF\xBB\xBFUser-agent: foobot\n\x00\xFF\xFE junk\n:::\n".to_vec();
    text.extend(b"Disallow: /a\n");
    let rules = RobotsRules::parse(&text, "foobot");
    assert!(!rules.allows("/a").allowed);
}

#[test]
fn rules_beyond_four_kilobytes_count() {
    let mut text = "user-agent: *\n".to_owned();
    for i in 0..10_000 {
        text.push_str(&format!("disallow: /{i:05}/\n"));
    }
    let rules = rules(&text);
    assert!(!rules.allows("/09999/x").allowed);
    assert!(rules.allows("/10000/x").allowed);
}

#[test]
fn crawl_delays_are_read_leniently_and_the_longest_counts() {
    for (text, seconds) in [
        ("5", Some(5.0)),
        ("0.5", Some(0.5)),
        ("10s", Some(10.0)),
        ("1e9", Some(1.0)),
        ("99999999999999999999", Some(86_400.0)),
        ("-1", None),
        ("soon", None),
        ("1.2.3", None),
        ("", None),
    ] {
        let rules = rules(&format!("user-agent: foobot\ncrawl-delay: {text}\n"));
        assert_eq!(rules.crawl_delay().map(|d| d.as_secs_f64()), seconds, "{text}");
    }
    let merged = rules("user-agent: foobot\ncrawl-delay: 2\nuser-agent: foobot\ncrawl-delay: 1\n");
    assert_eq!(merged.crawl_delay(), Some(Duration::from_secs(2)));
    let general = rules("user-agent: foobot\ndisallow:\nuser-agent: *\ncrawl-delay: 9\n");
    assert_eq!(general.crawl_delay(), None, "the own group replaces the general one wholly");
}

#[test]
fn sitemaps_are_for_all_agents_absolute_and_bounded() {
    let mut text = "sitemap: http://other.example/s.xml\nuser-agent: otherbot\n\
                    Sitemap: /deep/sitemap.xml\nsitemap: ftp://e.com/\nsitemap: /deep/sitemap.xml\n"
        .to_owned();
    let base = CanonicalUrl::parse("https://e.com/robots.txt").unwrap();
    let found: Vec<_> = rules(&text).sitemaps(&base).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["http://other.example/s.xml", "https://e.com/deep/sitemap.xml"]);
    for i in 0..2 * MAX_SITEMAPS {
        text.push_str(&format!("sitemap: /{i}\n"));
    }
    assert!(rules(&text).sitemaps(&base).len() <= MAX_SITEMAPS);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        text in proptest::collection::vec(any::<u8>(), 0..200),
        path in "\\PC{0,30}",
    ) {
        let _ = RobotsRules::parse(&text, "foobot").allows(&path);
    }

    #[test]
    fn any_lines_are_survived_and_answered_the_same_way_twice(
        lines in proptest::collection::vec(
            "(user-agent|allow|disallow|crawl-delay|sitemap|x)[: ]{1,2}[*a$%/?0-9.é]{0,12}[\r\n]{1,2}",
            0..20,
        ),
        path in "/[*a$%/?é]{0,12}",
    ) {
        let text = lines.concat();
        let parse = || RobotsRules::parse(text.as_bytes(), "a");
        prop_assert_eq!(parse().allows(&path), parse().allows(&path));
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        rules in proptest::collection::vec((any::<bool>(), "/[ab*]{0,4}"), 0..6),
        path in "/[ab]{0,6}",
    ) {
        let text = |rules: &mut dyn Iterator<Item = &(bool, String)>| {
            rules.fold("user-agent: a\n".to_owned(), |text, (allow, pattern)| {
                format!("{text}{}allow: {pattern}\n", if *allow { "" } else { "dis" })
            })
        };
        let forward = RobotsRules::parse(text(&mut rules.iter()).as_bytes(), "a");
        let backward = RobotsRules::parse(text(&mut rules.iter().rev()).as_bytes(), "a");
        prop_assert_eq!(forward.allows(&path).allowed, backward.allows(&path).allowed);
    }
}

#[test]
fn a_robots_txt_in_utf_16_is_obeyed() {
    let text: Vec<u8> = "User-agent: *\nDisallow: /private\nSitemap: /s.xml\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for text in [text.clone(), [&[0xff, 0xfe][..], &text].concat()] {
        let rules = RobotsRules::parse(&text, "FooBot");
        assert!(!rules.allows("/private/x").allowed && rules.allows("/x").allowed);
        let url = CanonicalUrl::parse("http://e.com/robots.txt").unwrap();
        assert_eq!(rules.sitemaps(&url).len(), 1);
    }
}
