//! Adding a site and changing its conditions.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use nenrin_state::{Site, StateError};

use crate::{
    Preview, WebApp, WebError,
    form::{PERIODS, SiteForm, Wrong},
    format,
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

pub(crate) fn new_site(visitor: &Visitor, query: &Fields) -> Response {
    let mut form = SiteForm::fresh();
    form.url = query.get("url").to_owned();
    Sheet { visitor, form: &form, wrong: &Wrong::new(), site: None, look: None }.show()
}

pub(crate) fn add(app: &WebApp, visitor: &Visitor, fields: &Fields) -> Result<Response, WebError> {
    let form = SiteForm::submitted(fields);
    let wrong = match form.read(visitor.lang, None) {
        Err(wrong) => wrong,
        Ok((name, conditions)) => match app.state.add_site(&name, &conditions, visitor.now_s) {
            Ok(site) => {
                app.control.sites_changed();
                let started = app.control.collect_now(site.id).is_ok();
                let note = if started { "added" } else { "added-only" };
                let target = format!("/sites/{}?note={note}", site.id.0);
                return Ok(Redirect::to(&target).into_response());
            }
            Err(StateError::SiteExists { name }) => Wrong::from([("name", taken(visitor, &name))]),
            Err(error) => return Err(error.into()),
        },
    };
    Ok(Sheet { visitor, form: &form, wrong: &wrong, site: None, look: None }.show())
}

fn taken(visitor: &Visitor, name: &str) -> String {
    match visitor.lang {
        crate::lang::Lang::En => {
            format!("a site named “{name}” exists already; choose another name")
        }
        crate::lang::Lang::Ja => format!("「{name}」という名前は既に使われています"),
    }
}

/// The form again, with what a first look at the site found.
pub(crate) fn look(
    app: &WebApp,
    visitor: &Visitor,
    site: Option<&Site>,
    fields: &Fields,
) -> Response {
    let form = SiteForm::submitted(fields);
    let (wrong, look) = match form.read(visitor.lang, site.map(|s| &s.conditions)) {
        Err(wrong) => (wrong, None),
        Ok((_, conditions)) => {
            let found = conditions
                .tops
                .first()
                .map(|top| app.control.preview(top, conditions.allow_private));
            (Wrong::new(), found.map(|found| found.map_err(|e| e.to_string())))
        }
    };
    Sheet { visitor, form: &form, wrong: &wrong, site, look }.show()
}

pub(crate) fn edit(visitor: &Visitor, site: &Site) -> Response {
    let form = SiteForm::of(&site.name, &site.conditions);
    Sheet { visitor, form: &form, wrong: &Wrong::new(), site: Some(site), look: None }.show()
}

pub(crate) fn save(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    fields: &Fields,
) -> Result<Response, WebError> {
    let mut form = SiteForm::submitted(fields);
    form.name = site.name.clone();
    match form.read(visitor.lang, Some(&site.conditions)) {
        Err(wrong) => {
            Ok(Sheet { visitor, form: &form, wrong: &wrong, site: Some(site), look: None }.show())
        }
        Ok((_, conditions)) => {
            app.state.set_site(site.id, &conditions, visitor.now_s)?;
            app.control.sites_changed();
            Ok(Redirect::to(&format!("/sites/{}?note=saved", site.id.0)).into_response())
        }
    }
}

/// The form as it is shown.
struct Sheet<'a> {
    visitor: &'a Visitor,
    form: &'a SiteForm,
    wrong: &'a Wrong,
    /// The site that is changed, `None` for a new one.
    site: Option<&'a Site>,
    look: Option<Result<Preview, String>>,
}

/// Fields that are folded away at first.
const FOLDED: [&str; 8] =
    ["more_tops", "scope", "depth", "max_pages", "delay", "robots", "robots_reason", "name"];

impl Sheet<'_> {
    fn t<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.visitor.t(en, ja)
    }

    fn show(&self) -> Response {
        let title = match self.site {
            None => self.t("Add a site", "サイトを追加").to_owned(),
            Some(site) => format!("{} – {}", self.t("Conditions", "収集条件"), site.name),
        };
        let action = self.site.map_or("/sites".to_owned(), |site| format!("/sites/{}", site.id.0));
        let content = html! {
            section.narrow {
                h1 { (title) }
                @if self.site.is_none() {
                    p.lead {
                        (self.t(
                            "An address is enough. Nenrin visits the pages it finds there, keeps every version, and comes again.",
                            "アドレスだけで始められます。見つけたページを訪れ、すべての版を保存し、また訪れます。",
                        ))
                    }
                }
                @if !self.wrong.is_empty() {
                    p.notice.bad role="alert" {
                        (self.t("Nothing was saved yet: please look at the marked fields.", "まだ保存されていません。印の付いた項目を確認してください。"))
                    }
                }
                form.sheet method="post" action=(action) novalidate {
                    (layout::token(self.visitor))
                    (self.simple_fields())
                    details.fold open[self.is_unfolded()] {
                        summary { (self.t("More conditions", "詳しい条件")) span.muted { (self.t("all have sensible defaults", "既定値のままで構いません")) } }
                        (self.folded_fields())
                    }
                    div.actions {
                        button.primary { (match self.site {
                            None => self.t("Add and collect", "追加して収集を始める"),
                            Some(_) => self.t("Save", "保存"),
                        }) }
                        button formaction=(format!("{}/look", if self.site.is_some() { action.as_str() } else { "/sites/new" })) {
                            (self.t("Look first", "下見する"))
                        }
                        a href=(self.site.map_or("/".to_owned(), |_| action.clone())) { (self.t("Cancel", "やめる")) }
                    }
                }
                (self.first_look())
            }
        };
        let menu = if self.site.is_none() { Menu::Add } else { Menu::None };
        let mut response = layout::page(self.visitor, menu, &title, content);
        if !self.wrong.is_empty() {
            *response.status_mut() = axum::http::StatusCode::UNPROCESSABLE_ENTITY;
        }
        response
    }

    fn is_unfolded(&self) -> bool {
        self.site.is_some()
            || self.form.allow_private
            || FOLDED.iter().any(|field| self.wrong.contains_key(field))
    }

    /// A label, its input, a hint and what is wrong, tied together for screen readers.
    fn field(&self, name: &str, label: &str, hint: &str, input: Markup) -> Markup {
        let wrong = self.wrong.get(name);
        html! {
            div.field.wrong[wrong.is_some()] {
                label for=(name) { (label) }
                (input)
                @if let Some(wrong) = wrong { p.error id=(format!("{name}-error")) { (layout::capitalised(wrong)) } }
                @if !hint.is_empty() { p.hint id=(format!("{name}-hint")) { (hint) } }
            }
        }
    }

    fn described(&self, name: &str) -> String {
        format!("{name}-error {name}-hint")
    }

    fn text(&self, name: &str, label: &str, hint: &str, value: &str, placeholder: &str) -> Markup {
        let input = html! {
            input #(name) name=(name) value=(value) placeholder=(placeholder) autocomplete="off"
                spellcheck="false" aria-describedby=(self.described(name))
                aria-invalid=[self.wrong.contains_key(name).then_some("true")]
                autofocus[name == "url" && self.site.is_none()];
        };
        self.field(name, label, hint, input)
    }

    fn simple_fields(&self) -> Markup {
        let form = self.form;
        html! {
            (self.text("url", self.t("Address", "アドレス"),
                self.t("Where collecting begins: a top page.", "収集を始めるトップページです。"),
                &form.url, "https://example.org/"))
            (self.field("period", self.t("How often", "頻度"), "", html! {
                select #period name="period" aria-describedby=(self.described("period")) {
                    @for (value, en, ja) in PERIODS {
                        option value=(value) selected[form.period == value] { (self.t(en, ja)) }
                    }
                    option value="other" selected[form.period == "other"] { (self.t("another period…", "その他の間隔…")) }
                }
            }))
            div data-only-for="period" data-only-value="other" {
                (self.text("other_period", self.t("Period", "間隔"),
                    self.t("Only with “another period”: 15m, 12h, 7d …", "「その他の間隔」のとき:15m、12h、7d など"),
                    &form.other_period, "36h"))
            }
        }
    }

    fn folded_fields(&self) -> Markup {
        let form = self.form;
        html! {
            @if self.site.is_none() {
                (self.text("name", self.t("Name", "名前"),
                    self.t("Left empty, the host's name is taken.", "空欄のときはホスト名になります。"), &form.name, ""))
            }
            (self.field("scope", self.t("What belongs to the site", "サイトの範囲"),
                self.t("Pages outside are not followed.", "範囲外のページはたどりません。"), html! {
                select #scope name="scope" aria-describedby=(self.described("scope")) {
                    @for (value, en, ja) in [
                        ("host", "everything on this host (usual)", "このホストのすべて(標準)"),
                        ("prefix", "only below this directory", "このディレクトリの下だけ"),
                        ("domain", "all hosts of this domain", "このドメインの全ホスト"),
                        ("list", "only the top pages themselves", "トップページ自身だけ"),
                        ("any", "anything that is linked", "リンク先すべて"),
                    ] {
                        option value=(value) selected[form.scope == value] { (self.t(en, ja)) }
                    }
                }
            }))
            div.row {
                (self.text("depth", self.t("Depth", "深さ"),
                    self.t("Links followed; a top page is 1.", "たどるリンクの数。トップページが1です。"), &form.depth, ""))
                (self.text("max_pages", self.t("Most pages in a round", "1巡の最大ページ数"),
                    self.t("Empty: no limit.", "空欄:制限なし"), &form.max_pages, ""))
                (self.text("delay", self.t("Pause between requests", "要求の間隔"),
                    self.t("Per server, at least. Empty: the archive's default.", "サーバーごとの最小値。空欄:既定値"), &form.delay, "2s"))
            }
            (self.field("more_tops", self.t("More top pages", "その他のトップページ"),
                self.t("One address per line.", "1行に1つのアドレス"), html! {
                textarea #more_tops name="more_tops" rows="3" spellcheck="false" aria-describedby=(self.described("more_tops")) { (form.more_tops) }
            }))
            (self.field("robots", "robots.txt",
                self.t("The site's own wishes, asked for before anything else.", "サイト自身の希望です。最初に確認します。"), html! {
                select #robots name="robots" aria-describedby=(self.described("robots")) {
                    option value="obey" selected[form.robots == "obey"] { (self.t("obey (usual)", "従う(標準)")) }
                    option value="ignore" selected[form.robots == "ignore"] { (self.t("do not ask, for a reason", "理由があって確認しない")) }
                }
            }))
            div data-only-for="robots" data-only-value="ignore" {
                (self.text("robots_reason", self.t("The reason", "理由"),
                    self.t("Only when robots.txt is not asked for.", "robots.txt を確認しない場合のみ"), &form.robots_reason, ""))
            }
            (checkbox("embeds", form.embeds,
                self.t("Images, styles and scripts of a page are collected wherever they lie", "ページの画像・スタイル・スクリプトはどこにあっても収集する")))
            (checkbox("allow_private", form.allow_private,
                self.t("May ask private and loopback addresses (for sites of your own network)", "プライベートアドレスへの接続を許す(自分のネットワーク内のサイト用)")))
        }
    }

    fn first_look(&self) -> Markup {
        let t = |en, ja| self.t(en, ja);
        html! {
            @match &self.look {
                None => {}
                Some(Err(reason)) => p.notice.bad role="alert" { (layout::capitalised(reason)) },
                Some(Ok(found)) => section.card aria-live="polite" {
                    h2 { (t("A first look", "下見の結果")) }
                    dl.facts {
                        dt { (t("Top page", "トップページ")) } dd { (found.top) }
                        dt { "robots.txt" } dd { (found.robots) }
                        dt { (t("Sitemap", "サイトマップ")) } dd { (found.sitemap) }
                        @if let Some(pages) = found.estimated_pages {
                            dt { (t("Pages, roughly", "推定ページ数")) } dd { (format::number(pages)) }
                        }
                        @if let Some(bytes) = found.estimated_bytes {
                            dt { (t("Room for one round", "1巡に必要な容量")) } dd { (format::bytes(bytes)) }
                        }
                    }
                    @if !found.links.is_empty() {
                        h3 { (t("First links", "最初のリンク")) }
                        ul.plain { @for link in found.links.iter().take(20) { li.url { bdi { (format::shown_text(link)) } } } }
                    }
                }
            }
        }
    }
}

fn checkbox(name: &str, checked: bool, label: &str) -> Markup {
    html! {
        label.check { input type="checkbox" name=(name) value="1" checked[checked]; span { (label) } }
    }
}
