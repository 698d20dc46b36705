//! Adding and changing a watch: the page, the part of it, and what is reported.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};
use nenrin_archive::watching::{check_watch, page_blocks, part_with_text, try_watch};
use nenrin_extract::TextBlock;
use nenrin_state::{Watch, WatchEvent, WatchId, WatchedPart};
use nenrin_urls::CanonicalUrl;

use super::watches::{excerpt, part_words, reports, state_badge};
use crate::{
    WebApp, WebError, format,
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

/// What was typed.
struct Form {
    url: String,
    name: String,
    /// `page`, `words`, `selector`, or a block as `<nth> <selector>`.
    part: String,
    words: String,
    selector: String,
    nth: String,
    on: String,
    bound: String,
}

type Wrong = Vec<(&'static str, String)>;

const EVENTS: [(&str, &str, &str); 5] = [
    ("changes", "it changes", "変わったとき"),
    ("appears", "it appears", "現れたとき"),
    ("vanishes", "it vanishes", "消えたとき"),
    ("above", "its number rises above", "数値が次の値を超えたとき"),
    ("below", "its number falls below", "数値が次の値を下回ったとき"),
];

impl Form {
    fn submitted(fields: &Fields) -> Self {
        let text = |name| fields.get(name).to_owned();
        Self {
            url: text("url"),
            name: text("name"),
            part: text("part"),
            words: text("words"),
            selector: text("selector"),
            nth: text("nth"),
            on: text("on"),
            bound: text("bound"),
        }
    }

    fn of(watch: &Watch) -> Self {
        let (on, bound) = match watch.on {
            WatchEvent::Changes => ("changes", String::new()),
            WatchEvent::Appears => ("appears", String::new()),
            WatchEvent::Vanishes => ("vanishes", String::new()),
            WatchEvent::Above(bound) => ("above", bound.to_string()),
            WatchEvent::Below(bound) => ("below", bound.to_string()),
        };
        let mut form = Self {
            url: watch.url.to_string(),
            name: watch.name.clone(),
            part: String::new(),
            words: String::new(),
            selector: String::new(),
            nth: String::new(),
            on: on.to_owned(),
            bound,
        };
        form.set_part(&watch.part);
        form
    }

    fn set_part(&mut self, part: &WatchedPart) {
        match part {
            WatchedPart::Page => self.part = "page".into(),
            WatchedPart::Words(words) => {
                (self.part, self.words) = ("words".into(), words.clone());
            }
            WatchedPart::Selector { selector, nth } => {
                (self.part, self.selector) = ("selector".into(), selector.clone());
                self.nth = if *nth > 0 { nth.to_string() } else { String::new() };
            }
        }
    }

    /// The watch, or the mistake in each field.
    fn read(&self, visitor: &Visitor) -> Result<Watch, Wrong> {
        let t = |en, ja| visitor.t(en, ja);
        let mut wrong = Wrong::new();
        let url = CanonicalUrl::parse_typed(&self.url);
        if let Err(error) = &url {
            let text = visitor.lang.translate(&error.to_string()).into_owned();
            wrong.push(("url", layout::capitalised(&text)));
        }
        let nth = match self.nth.trim() {
            "" => Some(0),
            text => text.parse::<u32>().ok().filter(|nth| *nth <= 200),
        };
        if nth.is_none() {
            wrong.push((
                "nth",
                t(
                    "Write a number from 1 to 200, or nothing.",
                    "1から200までの数か、空欄にしてください。",
                )
                .into(),
            ));
        }
        let part = self.watched_part(visitor, nth.unwrap_or(0), &mut wrong);
        let on = self.event(visitor, &mut wrong);
        let name = self.name.trim();
        if name.chars().count() > Watch::TEXT_CHARS_MAX || name.chars().any(char::is_control) {
            wrong.push((
                "name",
                t("At most 300 characters in one line.", "1行300文字までです。").into(),
            ));
        }
        let Ok(url) = url else { return Err(wrong) };
        let watch = Watch {
            id: WatchId(0),
            name: name.to_owned(),
            url,
            part,
            on,
            paused: false,
            created_s: visitor.now_s,
            last: None,
            trouble: None,
        };
        if let (true, Err(error)) = (wrong.is_empty(), check_watch(&watch)) {
            let field =
                if matches!(watch.part, WatchedPart::Words(_)) { "words" } else { "selector" };
            wrong.push((field, layout::capitalised(&visitor.lang.translate(&error.to_string()))));
        }
        if wrong.is_empty() { Ok(watch) } else { Err(wrong) }
    }

    fn watched_part(&self, visitor: &Visitor, nth: u32, wrong: &mut Wrong) -> WatchedPart {
        match self.part.as_str() {
            "page" => WatchedPart::Page,
            "words" => {
                let words = self.words.trim().to_owned();
                if words.is_empty() || words.chars().count() > Watch::TEXT_CHARS_MAX {
                    let text =
                        visitor.t("Write 1 to 300 characters.", "1〜300文字で入力してください。");
                    wrong.push(("words", text.into()));
                }
                WatchedPart::Words(words)
            }
            "selector" => WatchedPart::Selector { selector: self.selector.trim().to_owned(), nth },
            block => match block.split_once(' ').map(|(nth, s)| (nth.parse(), s)) {
                Some((Ok(nth), selector)) => {
                    WatchedPart::Selector { selector: selector.to_owned(), nth }
                }
                _ => {
                    let text = visitor.t("Choose what to watch.", "監視する箇所を選んでください。");
                    wrong.push(("part", text.into()));
                    WatchedPart::Page
                }
            },
        }
    }

    fn event(&self, visitor: &Visitor, wrong: &mut Wrong) -> WatchEvent {
        let bound = self.bound.trim().parse::<f64>().ok().filter(|bound| bound.is_finite());
        match (self.on.as_str(), bound) {
            ("changes", _) => WatchEvent::Changes,
            ("appears", _) => WatchEvent::Appears,
            ("vanishes", _) => WatchEvent::Vanishes,
            ("above", Some(bound)) => WatchEvent::Above(bound),
            ("below", Some(bound)) => WatchEvent::Below(bound),
            ("above" | "below", None) => {
                let text = visitor.t(
                    "Write a number such as 1200 or 9.5.",
                    "1200 や 9.5 のような数を入力してください。",
                );
                wrong.push(("bound", text.into()));
                WatchEvent::Changes
            }
            _ => {
                let text = visitor.t("Choose one of these.", "いずれかを選んでください。");
                wrong.push(("on", text.into()));
                WatchEvent::Changes
            }
        }
    }
}

/// The form as it is shown.
struct Sheet<'a> {
    visitor: &'a Visitor,
    form: &'a Form,
    wrong: &'a Wrong,
    blocks: &'a [TextBlock],
    watch: Option<&'a Watch>,
    /// What the watch would find now.
    tried: Option<Markup>,
}

pub(crate) fn new(app: &WebApp, visitor: &Visitor, query: &Fields) -> Result<Response, WebError> {
    let mut form = Form { on: "changes".into(), ..Form::submitted(query) };
    let mut wrong = Wrong::new();
    let blocks = match CanonicalUrl::parse_typed(&form.url) {
        Ok(url) => blocks_of(app, &url)?,
        Err(_) if form.url.trim().is_empty() => Vec::new(),
        Err(error) => {
            let text = visitor.lang.translate(&error.to_string()).into_owned();
            wrong.push(("url", layout::capitalised(&text)));
            Vec::new()
        }
    };
    match query.some("text") {
        Some(text) => form.set_part(&part_with_text(&blocks, text)),
        None if form.part.is_empty() => form.part = "page".into(),
        None => {}
    }
    Ok(Sheet { visitor, form: &form, wrong: &wrong, blocks: &blocks, watch: None, tried: None }
        .show())
}

pub(crate) fn edit(app: &WebApp, visitor: &Visitor, watch: &Watch) -> Result<Response, WebError> {
    let blocks = blocks_of(app, &watch.url)?;
    let form = Form::of(watch);
    let mut hits = app.state.watch_hits()?;
    hits.retain(|hit| hit.watch == watch.id);
    let shown = Sheet {
        visitor,
        form: &form,
        wrong: &Wrong::new(),
        blocks: &blocks,
        watch: Some(watch),
        tried: None,
    };
    let content = html! { (shown.content()) @if !hits.is_empty() { (reports(visitor, &hits)) } };
    Ok(layout::page(visitor, Menu::Watches, &shown.title(), content))
}

/// Adds a watch, changes one, or tries what it would find.
pub(crate) fn save(
    app: &WebApp,
    visitor: &Visitor,
    before: Option<&Watch>,
    fields: &Fields,
) -> Result<Response, WebError> {
    let form = Form::submitted(fields);
    let mut tried = None;
    let wrong = match form.read(visitor) {
        Err(wrong) => wrong,
        Ok(watch) if !fields.get("try").is_empty() => {
            tried = Some(try_now(app, visitor, &watch)?);
            Wrong::new()
        }
        Ok(_) if before.is_none() && app.state.watches()?.len() >= Watch::MAX => {
            let text = visitor.t(
                "There are 1,000 watches already; remove some first.",
                "監視は1,000件までです。先に削除してください。",
            );
            vec![("url", text.to_owned())]
        }
        Ok(watch) => {
            let kept = match before {
                None => app.state.keep_watch(&watch)?,
                Some(before) => {
                    let is_same = before.url == watch.url && before.part == watch.part;
                    let last = before.last.clone().filter(|_| is_same);
                    let trouble = before.trouble.filter(|_| is_same);
                    let (id, paused, created_s) = (before.id, before.paused, before.created_s);
                    app.state.keep_watch(&Watch {
                        id,
                        paused,
                        created_s,
                        last,
                        trouble,
                        ..watch
                    })?
                }
            };
            let target = match before {
                None => "/watches?note=added".to_owned(),
                Some(_) => format!("/watches/{}", kept.id.0),
            };
            return Ok(Redirect::to(&target).into_response());
        }
    };
    let blocks = match CanonicalUrl::parse_typed(&form.url) {
        Ok(url) => blocks_of(app, &url)?,
        Err(_) => Vec::new(),
    };
    Ok(Sheet { visitor, form: &form, wrong: &wrong, blocks: &blocks, watch: before, tried }.show())
}

fn blocks_of(app: &WebApp, url: &CanonicalUrl) -> Result<Vec<TextBlock>, WebError> {
    let Some(store) = &app.store else { return Ok(Vec::new()) };
    Ok(page_blocks(&*app.state, store, url)?.unwrap_or_default())
}

fn try_now(app: &WebApp, visitor: &Visitor, watch: &Watch) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let found = match &app.store {
        Some(store) => try_watch(&*app.state, store, watch)?,
        None => None,
    };
    Ok(html! {
        @match found {
            None => p { (t("This page has no version in the archive yet. The watch begins with the first one.", "このページの版はまだありません。最初の版から監視を始めます。")) },
            Some((at_s, Ok(text))) => {
                p { (t("In the version of ", "")) (format::time(at_s)) (t(" this is found:", " の版での内容：")) }
                p.found { (excerpt(visitor, text.as_deref())) }
            }
            Some((at_s, Err(trouble))) => {
                p { (format::time(at_s)) ": " (trouble.text(visitor.lang)) }
            }
        }
    })
}

impl Sheet<'_> {
    fn t<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.visitor.t(en, ja)
    }

    fn title(&self) -> String {
        match self.watch {
            None => self.t("Add a watch", "監視を追加").to_owned(),
            Some(watch) => format!("{} – {}", self.t("Watch", "監視"), watch.title()),
        }
    }

    fn show(&self) -> Response {
        let title = self.title();
        let mut response = layout::page(self.visitor, Menu::Watches, &title, self.content());
        if !self.wrong.is_empty() {
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        }
        response
    }

    fn content(&self) -> Markup {
        let action = self.watch.map_or("/watches".to_owned(), |w| format!("/watches/{}", w.id.0));
        html! {
            section.narrow {
                p.eyebrow { a href="/watches" { (self.t("Watches", "監視")) } }
                h1 { @match self.watch { None => (self.title()), Some(watch) => bdi { (watch.title()) } } }
                @if let Some(watch) = self.watch { p { (state_badge(self.visitor, watch)) " " span.muted { (part_words(self.visitor, &watch.part)) } } }
                @if let Some(tried) = &self.tried { div.notice role="status" { (tried) } }
                @if self.visitor.is_admin() {
                    form.sheet method="post" action=(action) novalidate {
                        (layout::token(self.visitor))
                        (self.text("url", self.t("Page", "ページ"), self.t("An archived page, or one that will be.", "保存済み、またはこれから保存するページ。"), &self.form.url, "https://example.org/news"))
                        (self.parts())
                        (self.events())
                        (self.text("name", self.t("Name", "名前"), self.t("For your messages; may be empty.", "お知らせに表示します。空欄でも構いません。"), &self.form.name, ""))
                        div.actions {
                            button.primary { (if self.watch.is_some() { self.t("Save", "保存") } else { self.t("Watch", "監視する") }) }
                            button name="try" value="1" { (self.t("Try it", "試す")) }
                            a href="/watches" { (self.t("Cancel", "やめる")) }
                        }
                    }
                    (self.more())
                }
            }
        }
    }

    /// Pausing and removing.
    fn more(&self) -> Markup {
        let Some(watch) = self.watch else { return html! {} };
        let base = format!("/watches/{}", watch.id.0);
        let (turn, label) = match watch.paused {
            true => ("resume", self.t("Resume", "再開")),
            false => ("pause", self.t("Pause", "一時停止")),
        };
        html! {
            div.actions.apart {
                (layout::button(self.visitor, &format!("{base}/{turn}"), "", label))
                (layout::button(self.visitor, &format!("{base}/remove"), "danger", self.t("Remove", "削除")))
            }
        }
    }

    fn error(&self, name: &str) -> Markup {
        let wrong = self.wrong.iter().find(|(field, _)| *field == name);
        html! { @if let Some((_, text)) = wrong { p.error id=(format!("{name}-error")) role="alert" { (text) } } }
    }

    fn text(&self, name: &str, label: &str, hint: &str, value: &str, placeholder: &str) -> Markup {
        let is_wrong = self.wrong.iter().any(|(field, _)| *field == name);
        html! {
            div.field.wrong[is_wrong] {
                label for=(name) { (label) }
                input #(name) name=(name) value=(value) placeholder=(placeholder) autocomplete="off" spellcheck="false"
                    aria-describedby=(format!("{name}-hint")) aria-invalid=[is_wrong.then_some("true")];
                (self.error(name))
                p.hint id=(format!("{name}-hint")) { (hint) }
            }
        }
    }

    fn parts(&self) -> Markup {
        let form = self.form;
        let chosen = match form.part.as_str() {
            "selector" => format!("{} {}", form.nth.trim(), form.selector.trim()),
            part => part.to_owned(),
        };
        let text_view = (!form.url.is_empty() && !self.blocks.is_empty())
            .then(|| format!("/blame?url={}", format::encoded(&form.url)));
        let is_block = self.blocks.iter().any(|block| value_of(block) == chosen);
        let radio = |value: &str, checked: bool, label: Markup| {
            html! { label.check { input type="radio" name="part" value=(value) checked[checked]; span { (label) } } }
        };
        html! {
            fieldset.choices {
                legend { (self.t("What to watch", "監視する箇所")) }
                (self.error("part"))
                @if let Some(link) = text_view { p.hint { a href=(link) { (self.t("Select it in the page's text", "ページの文章から選択する")) } } }
                (radio("page", form.part == "page", html! { (self.t("The whole text of the page", "ページの全文")) }))
                (radio("words", form.part == "words", html! { (self.t("The line with these words", "次の語句を含む行")) }))
                div.indent data-only-for="part" data-only-value="words" {
                    (self.text("words", self.t("Words", "語句"), self.t("Capitals and spaces do not matter. For a number: the words before it.", "大文字・小文字や空白は区別しません。数値の場合はその前の語句。"), &form.words, self.t("in stock", "在庫")))
                }
                (radio("selector", form.part == "selector" && !is_block, html! { (self.t("Elements by CSS selector", "CSSセレクターで指定")) }))
                div.indent.row data-only-for="part" data-only-value="selector" {
                    (self.text("selector", self.t("Selector", "セレクター"), self.t("Tags, #id, .class, [name=value], :nth-child(2), spaces and >.", "タグ、#id、.class、[name=value]、:nth-child(2)、空白と >"), &form.selector, "#main p.price"))
                    (self.text("nth", self.t("Which one", "何番目"), self.t("Empty: all that it names.", "空欄：該当するすべて"), &form.nth, "1"))
                }
                @if !self.blocks.is_empty() {
                    details open[is_block || form.part.is_empty() || form.part == "page"] {
                        summary { (self.t("Choose a block of the newest version", "最新の版から選ぶ")) " (" (self.blocks.len()) ")" }
                        div.blocks { @for block in self.blocks {
                            (radio(&value_of(block), value_of(block) == chosen, html! { bdi { (shortened(&block.text)) } }))
                        } }
                    }
                }
            }
        }
    }

    fn events(&self) -> Markup {
        let form = self.form;
        html! {
            div.row {
                div.field {
                    label for="on" { (self.t("Report when", "報告する条件")) }
                    select #on name="on" { @for (value, en, ja) in EVENTS {
                        option value=(value) selected[form.on == value] { (self.t(en, ja)) }
                    } }
                    (self.error("on"))
                }
                (self.text("bound", self.t("Limit", "しきい値"), self.t("Only for numbers: the first number of the part is compared.", "数値の場合のみ。箇所の最初の数値と比べます。"), &form.bound, "1000"))
            }
        }
    }
}

fn value_of(block: &TextBlock) -> String {
    format!("{} {}", block.nth, block.selector)
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(160).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}
