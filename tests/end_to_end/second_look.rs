//! What people stumbled over on a second look, each met again with the real program in a browser.

use std::path::Path;

use nenrin_browser::{Browser, Names};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::{Nenrin, Reply, Running, Site, get};

/// The program at work, its addresses, and a browser.
struct Desk {
    runtime: Runtime,
    browser: Browser,
    _running: Running,
    interface: String,
    replay: String,
}

fn desk(nenrin: &Nenrin, command: &str) -> Option<Desk> {
    let runtime = Runtime::new().unwrap();
    let browser = runtime.block_on(Browser::start(Names::Nothing))?;
    let running =
        nenrin.start(&[command, "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"]);
    let first = running.first_line();
    let address = |name: &str| first[name].as_str().unwrap().to_owned();
    let (interface, replay) = (address("interface"), address("replay"));
    Some(Desk { runtime, browser, _running: running, interface, replay })
}

impl Desk {
    fn open(&mut self, path: &str) {
        let place = format!("{}{path}", self.interface);
        self.runtime.block_on(self.browser.open(&place));
    }

    fn follow(&mut self, selector: &str) {
        self.runtime.block_on(self.browser.follow(selector));
    }

    fn eval(&mut self, expression: &str) -> serde_json::Value {
        self.runtime.block_on(self.browser.eval(expression))
    }

    fn text(&mut self) -> String {
        self.runtime.block_on(self.browser.text())
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn an_imported_mirror_is_browsed_by_date_and_found_by_its_directory() {
    let nenrin = Nenrin::new();
    for (date, text) in [("2018-09-09", "the first edition"), ("2019-03-28", "the second edition")]
    {
        let folder = nenrin.archive().parent().unwrap().join(date);
        write(&folder, "index.html", &format!("<title>Old</title><p>{text}</p>"));
        let args = ["import", "mirror", date, "--url", "http://old.example/", "--at", date];
        nenrin.run(&args).expect(0);
    }
    let first = b"<title>Old</title><p>the first edition</p>";
    let cat = nenrin.run(&["cat", "http://old.example/", "--at", "2018"]).expect(0);
    assert_eq!(cat.stdout, first);
    let Some(mut desk) = desk(&nenrin, "serve") else { return };
    let exact = get(&format!("{}web/2018id_/http://old.example/", desk.replay));
    assert_eq!((exact.0, exact.2.as_bytes()), (200, &first[..]));

    desk.open("sites/1");
    let field = "(f => [f.min, f.value, f.checkValidity()])(document.querySelector('#at'))";
    assert_eq!(desk.eval(field), json!(["2018-09-09", "2019-03-28", true]));
    let days = "[...document.querySelectorAll('svg.calendar a')].map(a => a.ariaLabel)";
    assert_eq!(desk.eval(days), json!(["2019-03-28: 1 version"]), "where the data is");
    desk.follow("nav.years a:last-child");
    assert_eq!(desk.eval(days), json!(["2018-09-09: 1 version"]));
    desk.follow("a[href^='/page?url=']");
    let text = desk.text();
    assert!(text.contains("2018-09-0") && text.contains("2019-03-2"), "{text}");
}

#[test]
fn an_address_that_is_there_is_offered_and_not_doubled() {
    let site = Site::of_pages(&[("/", Reply::html("a page"))]);
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    let again = ["site", "add", &site.top(), "--allow-private"];
    nenrin.run(&again).expect_said(2, &["nenrin collect", "--name"]);
    assert_eq!(nenrin.run(&["site", "list", "--json"]).expect(0).lines().len(), 1);
    let Some(mut desk) = desk(&nenrin, "run") else { return };
    desk.open("sites/new");
    desk.runtime.block_on(desk.browser.fill("#url", &site.top()));
    desk.eval("document.querySelector('#allow_private').checked = true");
    desk.follow("form.sheet button.primary");
    for way in ["a[href='/sites/1']", "form[action='/sites/1/collect']", "input[name=again]"] {
        let found = desk.eval(&format!("document.querySelector({way:?}) !== null"));
        assert_eq!(found, json!(true), "{way} in {}", desk.text());
    }
}

#[test]
fn hosts_that_do_not_exist_denied_pages_and_removals_are_called_by_their_names() {
    let site = Site::of_pages(&[("/", Reply::html("a page"))]);
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    let Some(mut desk) = desk(&nenrin, "run") else { return };
    desk.open("sites/new");
    desk.runtime.block_on(desk.browser.fill("#url", "http://no-such-host.invalid/"));
    desk.follow("button[formaction='/sites/new/look']");
    let look = desk.text();
    assert!(look.contains("not reached") || look.contains("Not reached"), "{look}");
    assert!(!look.contains("forbids"), "{look}");

    desk.open("sites/1/remove");
    desk.eval("document.querySelector('[name=removal][value=deny]').click()");
    desk.runtime.block_on(desk.browser.fill("[name=reason]", "they asked"));
    desk.follow("form.sheet button.danger");
    assert!(desk.text().contains("The removal was logged"), "{}", desk.text());
    let (status, _, denied) = get(&format!("{}web/2/{}", desk.replay, site.top()));
    assert_eq!(status, 403);
    assert!(denied.contains("removed from view") && !denied.contains("never archived"), "{denied}");

    desk.eval("document.cookie = 'lang=ja; path=/'");
    desk.open("page?url=http%3A%2F%2Fnowhere.example%2FX");
    let text = desk.text();
    assert!(!text.contains("Http://"), "{text}");
}
