//! The form of a site's conditions as it is shown: its frame, and the result of a first look.

use axum::response::Response;
use maud::{Markup, html};
use nenrin_archive::preview::SitePreview;
use nenrin_state::Site;

use crate::{
    form::{SiteForm, Wrong},
    format,
    layout::{self, Menu},
    visitor::Visitor,
};

/// The form as it is shown.
pub(super) struct Sheet<'a> {
    pub(super) visitor: &'a Visitor,
    pub(super) form: &'a SiteForm,
    pub(super) wrong: &'a Wrong,
    /// The site that is changed, `None` for a new one.
    pub(super) site: Option<&'a Site>,
    pub(super) look: Option<Result<SitePreview, String>>,
    /// The site that already has this address.
    pub(super) already: Option<&'a Site>,
    /// Sites whose conditions can be copied, and the one whose are.
    pub(super) others: &'a [Site],
    pub(super) copied: Option<&'a Site>,
}

/// Fields that are always visible.
const SIMPLE: [&str; 4] = ["url", "allow_private", "period", "other_period"];

impl<'a> Sheet<'a> {
    /// The form of a new site.
    pub(super) fn of(visitor: &'a Visitor, form: &'a SiteForm, wrong: &'a Wrong) -> Self {
        Self {
            visitor,
            form,
            wrong,
            site: None,
            look: None,
            already: None,
            others: &[],
            copied: None,
        }
    }
}

impl Sheet<'_> {
    pub(super) fn t<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.visitor.t(en, ja)
    }

    pub(super) fn show(&self) -> Response {
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
                            "An address is enough. Nenrin visits the pages it finds there, stores every version, and visits them again.",
                            "アドレスだけで始められます。見つけたページを訪れ、すべての版を保存し、また訪れます。",
                        ))
                    }
                }
                @if !self.wrong.is_empty() {
                    p.notice.bad role="alert" {
                        (self.t("Nothing was saved yet. Please check the marked fields.", "まだ保存されていません。印の付いた項目を確認してください。"))
                    }
                }
                (self.already_registered())
                (self.first_look())
                (self.shortcuts())
                form.sheet method="post" action=(action) novalidate {
                    (layout::token(self.visitor))
                    @if self.already.is_some() { input type="hidden" name="again" value="1"; }
                    (self.simple_fields())
                    details.fold open[self.is_unfolded()] {
                        summary { (self.t("More conditions", "詳しい条件")) span.muted { (self.t("all have sensible defaults", "既定値のままで構いません")) } }
                        (self.folded_fields())
                    }
                    div.actions {
                        button.primary { (match self.site {
                            None if self.already.is_some() => self.t("Add it once more", "もう一度追加する"),
                            None => self.t("Add and collect", "追加して収集を始める"),
                            Some(_) => self.t("Save", "保存"),
                        }) }
                        button formaction=(format!("{}/look", if self.site.is_some() { action.as_str() } else { "/sites/new" })) {
                            (self.t("Look first", "下見する"))
                        }
                        a href=(self.site.map_or("/".to_owned(), |_| action.clone())) { (self.t("Cancel", "やめる")) }
                    }
                }
            }
        };
        let menu = if self.site.is_none() { Menu::Add } else { Menu::None };
        let mut response = layout::page(self.visitor, menu, &title, content);
        if !self.wrong.is_empty() {
            *response.status_mut() = axum::http::StatusCode::UNPROCESSABLE_ENTITY;
        }
        response
    }

    /// Whether there is nothing to read before the fields yet.
    fn is_fresh(&self) -> bool {
        self.site.is_none() && self.look.is_none() && self.wrong.is_empty()
    }

    fn is_unfolded(&self) -> bool {
        self.site.is_some()
            || self.already.is_some()
            || self.copied.is_some()
            || self.wrong.keys().any(|field| !SIMPLE.contains(field))
    }

    /// A label, its input, a hint and an error, linked for screen readers.
    pub(super) fn field(&self, name: &str, label: &str, hint: &str, input: Markup) -> Markup {
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

    pub(super) fn described(&self, name: &str) -> String {
        format!("{name}-error {name}-hint")
    }

    pub(super) fn text(
        &self,
        name: &str,
        label: &str,
        hint: &str,
        value: &str,
        placeholder: &str,
    ) -> Markup {
        let input = html! {
            input #(name) name=(name) value=(value) placeholder=(placeholder) autocomplete="off"
                spellcheck="false" aria-describedby=(self.described(name))
                aria-invalid=[self.wrong.contains_key(name).then_some("true")]
                autofocus[name == "url" && self.is_fresh()];
        };
        self.field(name, label, hint, input)
    }

    /// Other ways to fill the form of a new site.
    fn shortcuts(&self) -> Markup {
        if self.site.is_some() || !self.wrong.is_empty() || self.look.is_some() {
            return html! {};
        }
        let kept = || self.others.iter().filter(|site| site.removed.is_none()).take(500);
        html! {
            @if let Some(site) = self.copied {
                p.notice { (self.t("The conditions are those of ", "次のサイトの条件を写しました：")) strong { bdi { (site.name) } } (self.t(". Enter the address.", "。アドレスを入力してください。")) }
            }
            div.shortcuts {
                a href="/sites/bulk" { (self.t("Add many addresses at once", "複数のアドレスをまとめて追加")) }
                @if kept().next().is_some() {
                    form.inline method="get" action="/sites/new" {
                        label for="copy" { (self.t("Copy conditions from ", "条件を写すサイト：")) }
                        select #copy name="copy" { @for site in kept() {
                            option value=(site.id.0) selected[self.copied.is_some_and(|copied| copied.id == site.id)] { (site.name) }
                        } }
                        " " button { (self.t("Copy", "写す")) }
                    }
                }
            }
        }
    }

    fn already_registered(&self) -> Markup {
        let Some(site) = self.already else { return html! {} };
        let base = format!("/sites/{}", site.id.0);
        html! {
            section.notice.already role="alert" {
                p {
                    (self.t("This address is already registered as the site ", "このアドレスは既に登録されています："))
                    strong { bdi { (site.name) } } (self.t(".", ""))
                }
                div.actions {
                    a.button href=(base) { (self.t("Open the site", "サイトを開く")) }
                    (layout::button(self.visitor, &format!("{base}/collect"), "", self.t("Collect it now", "今すぐ収集")))
                }
                p.hint { (self.t("To collect it a second time with other conditions, change them below and add it once more.", "別の条件でもう一度登録するには、下の条件を変えて追加してください。")) }
            }
        }
    }

    fn first_look(&self) -> Markup {
        let t = |en, ja| self.t(en, ja);
        let translated = |noted: &str| self.visitor.lang.translate(noted).into_owned();
        html! {
            @match &self.look {
                None => {}
                Some(Err(reason)) => p.notice.bad role="alert" { (layout::capitalised(&translated(reason))) },
                Some(Ok(found)) => section.card.look {
                    h2 { (t("A first look", "下見の結果")) }
                    dl.facts {
                        dt { (t("Top page", "トップページ")) } dd { (translated(&found.top)) }
                        dt { "robots.txt" } dd { (translated(&found.robots)) }
                        dt { (t("Sitemap", "サイトマップ")) } dd { (translated(&found.sitemap)) }
                        @if let Some(pages) = found.estimated_pages {
                            dt { (t("Pages, roughly", "推定ページ数")) } dd { (format::number(pages)) }
                        }
                        @if let Some(bytes) = found.estimated_bytes {
                            dt { (t("Received in one round, roughly", "1巡の受信量（概算）")) } dd { (format::bytes(bytes)) }
                        }
                    }
                    @if !found.links.is_empty() {
                        h3 { (t("First links", "最初のリンク")) }
                        ul.plain { @for link in found.links.iter().take(20) { li.url { bdi { (nenrin_urls::shown_text(link)) } } } }
                    }
                }
            }
        }
    }
}
