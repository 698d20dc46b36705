//! A small website of our own that changes in fast motion: a news front page, a blog, a static
//! corner, and images that the pages share. What it shows is a function of the issue number alone.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use maud::{DOCTYPE, Markup, html};

/// The demo site, being served.
pub struct DemoSite {
    /// Where it is served.
    pub address: SocketAddr,
    issue: Arc<AtomicU32>,
}

impl DemoSite {
    /// Serves the site on a loopback port until the runtime ends; port 0 takes a free one.
    pub async fn start(port: u16, first_issue: u32) -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let issue = Arc::new(AtomicU32::new(first_issue));
        let app = Router::new().fallback(get(serve)).with_state(issue.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { address, issue })
    }

    /// Lets the days go by, for ever.
    pub async fn live(self) {
        loop {
            tokio::time::sleep(DAY).await;
            self.next_issue();
        }
    }

    /// Lets a day go by on the site.
    pub fn next_issue(&self) {
        self.issue.fetch_add(1, Ordering::Relaxed);
    }

    /// Its top page.
    pub fn top(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// A day of the demo site, and the period of its rounds.
pub const DAY: Duration = Duration::from_secs(10);

/// Days between two blog posts.
const POST_EVERY: u32 = 3;
/// Stories on the front page.
const FRONT_STORIES: u32 = 6;

/// Of each story: its title, what happened, what somebody said about it, and that person's name, first
/// wrong and then right.
const STORIES: [[&str; 5]; 12] = [
    [
        "Beech wood found to remember the drought",
        "Three narrow rings in a fallen beech mark the dry summers that nobody in town had written down.",
        "Every tree has rings, and every ring has a summer to tell of",
        "Ida Moor",
        "Ida Moore",
    ],
    [
        "Town library opens its reading room at night",
        "From Monday on the reading room stays open until two in the morning, with tea and without Wi-Fi.",
        "People read better when it rains, and it mostly rains at night",
        "Jon Falk",
        "John Falk",
    ],
    [
        "Night trains return to the coast line",
        "Two sleeping cars leave at 22:40 and reach the harbour in time for the first ferry.",
        "We kept the old bells and mended the old beds",
        "Mary Lind",
        "Maria Lind",
    ],
    [
        "Volunteers count 312 swifts over the harbour",
        "That is 41 more than last year, and the most since the count began.",
        "We stopped counting when it was too dark to be sure",
        "Tom Berg",
        "Tomas Berg",
    ],
    [
        "Old observatory gets a new roof",
        "The dome turns again after eleven years, by hand, with a crank from the mill.",
        "You can see Saturn on Thursday if the clouds are willing",
        "Ana Roth",
        "Anna Roth",
    ],
    [
        "Bakers' guild agrees on the length of a loaf",
        "After four hours of debate a loaf is now as long as a forearm, measured at the baker's own arm.",
        "Small bakers will have to work on their posture",
        "Otto Kern",
        "Otto Kerner",
    ],
    [
        "River ice breaks two weeks early",
        "The ice went out on Tuesday at noon with a noise that stopped the lessons at the school.",
        "My grandfather wrote down the day every year, and it was never in February",
        "Eva Holm",
        "Eva Holmes",
    ],
    [
        "School children map every tree in the district",
        "The map has 4,187 trees, 61 species, and one oak that is on nobody's land.",
        "We named the oak after our teacher",
        "class 3a",
        "class 3b",
    ],
    [
        "Ferry timetable grows by one crossing",
        "A boat at 17:15 spares people who work on the island the walk over the dam.",
        "It is one boat, and it is half an hour of every day",
        "Per Sund",
        "Peer Sund",
    ],
    [
        "Museum shows the first printed almanac",
        "The almanac of 1648 foretells a mild winter; the margins say that it was not.",
        "The notes in the margin are the better book",
        "Lea Winter",
        "Lena Winter",
    ],
    [
        "Storm takes the weathercock, not the tower",
        "The copper bird was found in a garden in Mill Lane, facing north.",
        "It always was a little stubborn",
        "Hans Vogt",
        "Hanna Vogt",
    ],
    [
        "Council votes for quieter paving stones",
        "Market Street will be paved with cut stone by May, and the carts will be heard no more.",
        "I shall miss the noise, but not before eight in the morning",
        "Rosa Dahl",
        "Rosa Dahle",
    ],
];

async fn serve(State(issue): State<Arc<AtomicU32>>, uri: Uri, headers: HeaderMap) -> Response {
    let issue = issue.load(Ordering::Relaxed);
    let Some((content_type, body)) = content(uri.path(), issue) else {
        return (StatusCode::NOT_FOUND, "there is no such page").into_response();
    };
    let etag = format!("\"{}\"", &blake3::hash(body.as_bytes()).to_hex()[..16]);
    let asked = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if asked == Some(etag.as_str()) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response();
    }
    ([(header::CONTENT_TYPE, content_type.to_owned()), (header::ETAG, etag)], body).into_response()
}

fn content(path: &str, issue: u32) -> Option<(&'static str, String)> {
    const HTML: &str = "text/html; charset=utf-8";
    let numbered = |prefix: &str| -> Option<u32> {
        path.strip_prefix(prefix)?.strip_suffix(".html")?.parse().ok()
    };
    let page = match path {
        "/robots.txt" => return Some(("text/plain", "User-agent: *\nDisallow: /drafts/\n".into())),
        "/style.css" => return Some(("text/css", STYLE.to_owned())),
        "/rings.svg" => return Some(("image/svg+xml", rings(7))),
        "/" => front(issue),
        "/blog/" => blog(issue),
        "/about/" => about(),
        "/about/history.html" => history(),
        "/drafts/" => frame("Drafts", html! { p { "Not for crawlers." } }),
        _ => match (numbered("/news/"), numbered("/blog/")) {
            (Some(number), _) if (1..=issue + FRONT_STORIES).contains(&number) => {
                story(number, issue)
            }
            (_, Some(number)) if (1..=posts(issue)).contains(&number) => post(number),
            _ => return None,
        },
    };
    Some((HTML, page.into_string()))
}

fn facts(number: u32) -> [&'static str; 5] {
    STORIES[number as usize % STORIES.len()]
}

fn title(number: u32) -> &'static str {
    facts(number)[0]
}

fn lead(number: u32) -> &'static str {
    facts(number)[1]
}

fn posts(issue: u32) -> u32 {
    1 + issue / POST_EVERY
}

fn frame(title: &str, main: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) " · The Ring" }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="/rings.svg";
            }
            body {
                header {
                    img src="/rings.svg" alt="" width="48" height="48";
                    a href="/" { "The Ring" }
                    nav {
                        a href="/blog/" { "Blog" } " "
                        a href="/about/" { "About" } " "
                        a href="/drafts/" { "Drafts" }
                    }
                }
                main { (main) }
                footer { "The Ring is the newspaper of a town that exists only on this machine." }
            }
        }
    }
}

fn front(issue: u32) -> Markup {
    frame(
        "Front page",
        html! {
            p.issue { "Issue " (issue) }
            @for number in (issue..issue + FRONT_STORIES).rev() {
                article {
                    h2 { a href={ "/news/" (number + 1) ".html" } { (title(number + 1)) } }
                    p { (lead(number + 1)) }
                }
            }
        },
    )
}

/// A story is corrected once, the day after it appeared.
fn story(number: u32, issue: u32) -> Markup {
    let is_corrected = issue >= number;
    let [title, lead, quote, wrong, right] = facts(number);
    let name = if is_corrected { right } else { wrong };
    frame(
        title,
        html! {
            h1 { (title) }
            p { (lead) }
            p { "“" (quote) "”, says " (name) "." }
            @if is_corrected {
                p.correction { "Corrected: an earlier version said " (wrong) " instead of " (right) "." }
            }
            p { a href={ "/news/" (number.saturating_sub(1).max(1)) ".html" } { "The story before" } }
        },
    )
}

fn blog(issue: u32) -> Markup {
    frame(
        "Blog",
        html! {
            h1 { "From the editor's desk" }
            ul {
                @for number in (1..=posts(issue)).rev() {
                    li { a href={ "/blog/" (number) ".html" } { "Note " (number) ": " (title(number * 5)) } }
                }
            }
        },
    )
}

fn post(number: u32) -> Markup {
    frame(
        &format!("Note {number}"),
        html! {
            h1 { "Note " (number) }
            img src="/rings.svg" alt="Tree rings" width="120" height="120";
            p { "We were asked about “" (title(number * 5)) "”. " (lead(number * 5)) }
            p { "Write to the editor; letters are printed on Saturdays. This is note " (number) "." }
        },
    )
}

fn about() -> Markup {
    frame(
        "About",
        html! {
            h1 { "About The Ring" }
            p { "Founded in the year of the great frost, printed ever since." }
            p { a href="/about/history.html" { "Our history" } }
        },
    )
}

fn history() -> Markup {
    const YEARS: [(&str, &str); 5] = [
        ("1709", "The great frost. The first issue has one page and no advertisements."),
        ("1815", "The press is moved to the mill, because of the water."),
        ("1893", "The first picture: the oak at the crossing, in winter."),
        ("1947", "No paper for six weeks. The news is read aloud in the market instead."),
        ("1998", "The first issue that can be read without ink on one's fingers."),
    ];
    frame(
        "History",
        html! {
            h1 { "Our history" }
            @for (year, text) in YEARS { h2 { (year) } p { (text) } }
        },
    )
}

fn rings(count: u32) -> String {
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" {
            circle cx="50" cy="50" r="49" fill="#f3e3c3" stroke="#7a4a21" stroke-width="2" {}
            @for ring in 1..count {
                circle cx={ (50 + ring % 2) } cy="50" r={ (49 - ring * 49 / count) } fill="none"
                    stroke="#a9713a" stroke-width="1.5" {}
            }
        }
    }
    .into_string()
}

const STYLE: &str = "body{font:18px/1.5 Georgia,serif;max-width:44rem;margin:0 auto;padding:1rem;color:#222;background:#fffdf8}
header{display:flex;gap:1rem;align-items:center;border-bottom:2px solid #7a4a21;padding-bottom:.5rem}
header>a{font-size:1.8rem;font-weight:bold;color:#7a4a21;text-decoration:none}
nav{margin-left:auto}
a{color:#7a4a21}
article{border-bottom:1px solid #e5d5b5;padding:.5rem 0}
h2{margin:.2rem 0}
.issue,.correction,footer{color:#7a6a55;font-style:italic}
footer{margin-top:2rem;font-size:.8rem}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_page_changes_and_the_static_corner_does_not() {
        assert_ne!(content("/", 1), content("/", 2));
        for path in ["/about/", "/about/history.html", "/rings.svg", "/style.css"] {
            assert!(content(path, 1).is_some());
            assert_eq!(content(path, 1), content(path, 9), "{path}");
        }
    }

    #[test]
    fn every_link_on_every_issue_leads_somewhere() {
        for issue in 1..20 {
            for page in ["/", "/blog/", "/about/", "/news/1.html", "/blog/1.html"] {
                let (_, body) = content(page, issue).unwrap();
                for link in body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next())
                {
                    assert!(content(link, issue).is_some(), "issue {issue}: {page} -> {link}");
                }
            }
        }
    }

    #[test]
    fn an_unknown_page_is_not_there() {
        assert_eq!(content("/news/999.html", 1), None);
        assert_eq!(content("/blog/5.html", 1), None);
    }
}
