use super::*;

const NOW_S: i64 = 1_700_000_000;

fn url(path: &str) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("http://e.com{path}")).unwrap()
}

fn check(path: &str) -> Result<(), Trap> {
    Traps::default().check(&url(path), NOW_S)
}

/// Follows links as the crawler does: those that are allowed become known.
fn follow(traps: &mut Traps, paths: impl Iterator<Item = String>) -> usize {
    let mut known = 0;
    for path in paths {
        let url = url(&path);
        match traps.check(&url, NOW_S) {
            Ok(()) => {
                traps.met(&url, NOW_S);
                known += 1;
            }
            Err(trap) => {
                traps.refuse(trap, &url, NOW_S);
            }
        }
    }
    known
}

#[test]
fn loops_of_directories_end() {
    for path in ["/a/a/a/", "/x/a/b/a/b/a/b/c", "/a/b/c/a/b/c/a/b/c", "/a/1/a/2/a/3/a/4/a/5"] {
        assert_eq!(check(path), Err(Trap::RepeatedSegments), "{path}");
    }
    for path in ["/a/a/b", "/2011/11/11/11", "/en/docs/en/", "/a/b/a/b/c", "/1/1/1/1"] {
        assert_eq!(check(path), Ok(()), "{path}");
    }
    let deep = (0..21).map(|n| format!("/d{n}x")).collect::<String>();
    assert_eq!(check(&deep), Err(Trap::DeepPath));
    assert_eq!(check(&format!("/{}", "x".repeat(2000))), Err(Trap::LongUrl));
}

#[test]
fn combinations_of_parameters_end() {
    let mut traps = Traps::default();
    let names = ["colour", "size", "sort", "page", "brand", "price"];
    let facets = (1..64_u32).map(|set| {
        let chosen = names.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
        let query: Vec<String> = chosen.map(|(_, name)| format!("{name}=1")).collect();
        format!("/shop?{}", query.join("&"))
    });
    assert_eq!(follow(&mut traps, facets), NAME_SETS_MAX);
    let refused = &traps.refused[&Trap::QueryCombinations];
    assert_eq!(refused.links, 63 - NAME_SETS_MAX as u64);
    assert!(refused.example.starts_with("http://e.com/shop?"));
    // Other paths of the server are not hurt, nor known combinations with other values.
    assert_eq!(traps.check(&url("/other?a=1"), NOW_S), Ok(()));
    assert_eq!(traps.check(&url("/shop?colour=2"), NOW_S), Ok(()));
}

#[test]
fn the_same_parameters_in_another_order_are_known() {
    let mut traps = Traps::default();
    traps.met(&url("/s?a=1&b=2"), NOW_S);
    assert_eq!(traps.check(&url("/s?a=1&b=2"), NOW_S), Ok(()));
    assert_eq!(traps.check(&url("/s?b=2&a=1"), NOW_S), Err(Trap::QueryCombinations));
    assert_eq!(traps.check(&url("/s?b=1&a=2"), NOW_S), Ok(()));
}

#[test]
fn many_values_of_many_parameters_end_and_one_number_does_not() {
    let mut traps = Traps::default();
    let search = (0..3000).map(|n| format!("/find?a={n}&b=2&c=3&d=4"));
    assert_eq!(follow(&mut traps, search), MANY_ARGUMENTS_PAGES_MAX as usize);
    let topics = (0..5000).map(|n| format!("/topic.php?id={n}"));
    assert_eq!(follow(&mut traps, topics), 5000);
    let articles = (0..5000).map(|n| format!("/read?article-{n}"));
    assert_eq!(follow(&mut traps, articles), 5000);
}

#[test]
fn calendars_end_in_both_directions() {
    let mut traps = Traps::default();
    let future = (2027..2100).flat_map(|y| (1..=12).map(move |m| format!("/cal/{y}/{m:02}/")));
    assert_eq!(follow(&mut traps, future), FUTURE_PAGES_MAX as usize);
    let past = (1000..1970).flat_map(|y| (1..=12).map(move |m| format!("/old/{y}/{m:02}/")));
    assert_eq!(follow(&mut traps, past), PAST_PAGES_MAX as usize);
    let news = (1995..2024).flat_map(|y| (1..=12).map(move |m| format!("/news/{y}/{m:02}/a")));
    assert_eq!(follow(&mut traps, news), 29 * 12);
    let days = (0..4000)
        .map(|n| format!("/day?date=20{:02}-{:02}-{:02}", n / 300, n / 25 % 12 + 1, n % 25 + 1));
    assert_eq!(follow(&mut traps, days), DATED_QUERIES_MAX as usize);
    assert!(traps.refused[&Trap::Calendar].links > 1000);
}

#[test]
fn session_ids_are_left_out_of_urls() {
    let bare = |path: &str| without_session(&url(path)).map(|u| u.path_and_query().to_owned());
    assert_eq!(bare("/a;jsessionid=1A2B?x=1"), Some("/a?x=1".into()));
    assert_eq!(bare("/a?PHPSESSID=abc&x=1"), Some("/a?x=1".into()));
    assert_eq!(bare("/a?sid=0123456789abcdef"), Some("/a".into()));
    assert_eq!(bare("/a?sid=17"), None);
    assert_eq!(bare("/a?session=spring-2024&inside=1"), None);
    assert_eq!(bare("/a"), None);
}

#[test]
fn what_was_learnt_survives_being_written_down() {
    let mut traps = Traps::default();
    follow(&mut traps, (0..100).map(|n| format!("/s?a{n}=1&b=2")));
    let text = serde_json::to_string(&traps).unwrap();
    let back: Traps = serde_json::from_str(&text).unwrap();
    assert_eq!(back.refused, traps.refused);
    assert_eq!(back.check(&url("/s?new=1"), NOW_S), Err(Trap::QueryCombinations));
}

#[test]
fn memory_is_bounded() {
    let mut traps = Traps::default();
    follow(&mut traps, (0..20_000).map(|n| format!("/p{n}?a=1&b=2&c=3")));
    assert!(traps.counted.len() <= COUNTED_MAX && traps.orders.len() <= ORDERS_MAX);
    assert!(serde_json::to_string(&traps).unwrap().len() < 100_000);
}

#[test]
fn pages_that_repeat_what_is_known_end() {
    let mut traps = Traps::default();
    for n in 0..SAME_FROM {
        assert_eq!(traps.check(&url(&format!("/list?zz={n}")), NOW_S), Ok(()), "{n}");
        traps.brought(&url(&format!("/list?zz={n}")), (180, true), none());
    }
    assert_eq!(traps.check(&url("/list?zz=x"), NOW_S), Err(Trap::NothingNew));
    // Neither other paths nor the page itself are hurt.
    assert_eq!(traps.check(&url("/other?zz=x"), NOW_S), Ok(()));
    assert_eq!(traps.check(&url("/list"), NOW_S), Ok(()));
    // Among pages of which one in ten is new, all are followed; so are many small ones.
    for n in 0..SAME_FROM {
        traps.brought(&url(&format!("/news/{n}")), (9_000, n % 10 > 0), none());
        (0..9).for_each(|_| traps.brought(&url(&format!("/small/{n}")), (180, false), none()));
    }
    assert_eq!(traps.check(&url("/news/x"), NOW_S), Ok(()));
    assert_eq!(traps.check(&url("/small/x"), NOW_S), Ok(()));
}

#[test]
fn a_farm_of_pages_that_say_almost_nothing_ends() {
    let mut traps = Traps::default();
    (0..LITTLE_FROM).for_each(|n| traps.brought(&url(&format!("/farm/{n}")), (300, false), none()));
    assert_eq!(traps.check(&url("/farm/x"), NOW_S), Err(Trap::NothingNew));
    assert_eq!(traps.check(&url("/elsewhere/x"), NOW_S), Ok(()));
    // Also if each is in a directory of its own.
    let name =
        |n: u64| format!("/{}y{}/", "x".repeat((n % 99) as usize), "z".repeat((n / 999) as usize));
    (0..SERVER_TIMES * LITTLE_FROM)
        .for_each(|n| traps.brought(&url(&name(n)), (300, false), none()));
    assert_eq!(traps.check(&url("/quite/another"), NOW_S), Err(Trap::NothingNew));
}

#[test]
fn a_list_adds_no_more_pages_than_can_be_visited_in_days() {
    let mut traps = Traps::default();
    assert_eq!(traps.room(true), LISTED_WAITING_MAX);
    for n in 0..1000 {
        traps.met(&url(&format!("/{n}")), NOW_S);
    }
    assert_eq!(traps.room(true), LISTED_WAITING_MAX - 1000);
    (0..400).for_each(|_| traps.tried());
    assert_eq!(traps.room(true), LISTED_WAITING_MAX - 600);
}

#[test]
fn a_few_pages_cannot_make_a_million_known() {
    let mut traps = Traps::default();
    assert_eq!(traps.room(false), WAITING_AT_FIRST);
    (0..15).for_each(|_| traps.tried());
    (0..100).for_each(|n| traps.met(&url(&format!("/{n}")), NOW_S));
    assert_eq!(traps.room(false), WAITING_AT_FIRST + 15 * WAITING_PER_TRIED - 85);
    (0..2000).for_each(|_| traps.tried());
    assert_eq!(traps.room(false), WAITING_MAX);
}

/// No links.
fn none() -> std::slice::Iter<'static, CanonicalUrl> {
    std::slice::Iter::default()
}

#[test]
fn a_farm_whose_pages_have_new_links_only_ends() {
    let mut traps = Traps::default();
    let links = |n: u64| (0..50).map(|m| url(&format!("/farm/{n}x{m}"))).collect::<Vec<_>>();
    // On a real site most links are on every page: what else is on it counts.
    let bar: Vec<CanonicalUrl> = (0..200).map(|m| url(&format!("/bar/{m}"))).collect();
    for n in 0..LITTLE_FROM {
        traps.brought(&url(&format!("/farm/{n}")), (1_500, false), links(n).iter());
        traps.brought(&url(&format!("/site/{n}")), (1_500, false), bar.iter());
    }
    assert_eq!(traps.check(&url("/farm/x"), NOW_S), Err(Trap::NothingNew));
    assert_eq!(traps.check(&url("/site/x"), NOW_S), Ok(()));
    assert!(traps.links.len() <= LINKS_MAX + 200);
}
