//! Adding many sites at once.

use axum::{http::StatusCode, response::Response};
use maud::{Markup, html};
use nenrin_archive::{
    bulk::{BulkSite, read_bulk},
    sites::{free_name, registered},
};
use nenrin_lang::Lang;
use nenrin_revisit::RevisitSettings;
use nenrin_state::{Schedule, Site, SiteConditions, SiteLabels, StateError};

use crate::{
    WebApp, WebError,
    form::{CONTINUOUS, PERIODS},
    guard::Fields,
    layout::{self, Menu},
    visitor::Visitor,
};

/// What became of a list.
#[derive(Default)]
struct Outcome {
    added: Vec<Site>,
    /// Already registered: line and site.
    known: Vec<(usize, Site)>,
    errors: Vec<(usize, String)>,
}

pub(crate) fn ask(visitor: &Visitor) -> Response {
    page(visitor, &Fields::default(), None)
}

pub(crate) fn add(app: &WebApp, visitor: &Visitor, fields: &Fields) -> Result<Response, WebError> {
    let list = read_bulk(fields.get("list"));
    let mut outcome = Outcome { errors: list.errors, ..Outcome::default() };
    if list.sites.is_empty() && outcome.errors.is_empty() {
        let text = visitor.t("the list is empty", "一覧が空です");
        outcome.errors.push((1, text.to_owned()));
    }
    for entry in &list.sites {
        if let Some(site) = registered(&*app.state, std::slice::from_ref(&entry.url))? {
            outcome.known.push((entry.line, site));
            continue;
        }
        match conditions(app, fields, entry) {
            Err(error) => outcome.errors.push((entry.line, error)),
            Ok(conditions) => {
                let site = add_one(app, visitor, entry, &conditions)?;
                outcome.added.push(site);
            }
        }
    }
    if !outcome.added.is_empty() {
        app.control.sites_changed();
        for site in &outcome.added {
            // Where nothing is collected in this process, they wait for one that does.
            let _ = app.control.collect_now(site.id);
        }
    }
    outcome.errors.sort();
    let mut response = page(visitor, fields, Some(&outcome));
    if outcome.added.is_empty() && !outcome.errors.is_empty() {
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    Ok(response)
}

fn conditions(app: &WebApp, fields: &Fields, entry: &BulkSite) -> Result<SiteConditions, String> {
    let group = if entry.group.is_empty() { fields.get("group") } else { &entry.group };
    let tags = format!("{},{}", entry.tags, fields.get("tags"));
    let schedule = match fields.get("period") {
        "manual" => Schedule::Manual,
        CONTINUOUS | "" => Schedule::Continuous(RevisitSettings::default()),
        period => match nenrin_calendar::parse_duration(period) {
            Some(period_s) if period_s >= 60 => Schedule::Rounds { period_s },
            _ => return Err(format!("`{period}` is not a duration; write 90s, 15m, 12h or 7d")),
        },
    };
    Ok(SiteConditions {
        depth: app.options.depth,
        schedule,
        labels: SiteLabels::typed(group, &tags)?,
        allow_private: entry.url.is_on_private_network() && !fields.get("allow_private").is_empty(),
        ..SiteConditions::new(vec![entry.url.clone()])
    })
}

/// Adds a site under its name, or under another one if that is taken.
fn add_one(
    app: &WebApp,
    visitor: &Visitor,
    entry: &BulkSite,
    conditions: &SiteConditions,
) -> Result<Site, WebError> {
    let name: String = entry.name.chars().filter(|c| !c.is_control()).take(100).collect();
    if !name.is_empty() {
        match app.state.add_site(&name, conditions, visitor.now_s) {
            Err(StateError::SiteExists { .. }) => {}
            done => return Ok(done?),
        }
    }
    let free = free_name(&*app.state, conditions)?;
    Ok(app.state.add_site(&free, conditions, visitor.now_s)?)
}

fn page(visitor: &Visitor, fields: &Fields, outcome: Option<&Outcome>) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let title = t("Add many sites", "サイトをまとめて追加");
    let period = fields.some("period").unwrap_or(CONTINUOUS);
    let content = html! {
        section.narrow {
            h1 { (title) }
            p.lead { (t(
                "Paste addresses, one per line, a CSV table with a column “url” (and name, group, tags), or an OPML file of your feed reader.",
                "アドレスを1行に1つ貼り付けます。「url」列（name、group、tags も可）のあるCSVや、フィードリーダーのOPMLも使えます。",
            )) }
            @if let Some(outcome) = outcome { (results(visitor, outcome)) }
            form.sheet method="post" action="/sites/bulk" {
                (layout::token(visitor))
                div.field {
                    label for="list" { (t("Addresses", "アドレス")) }
                    textarea #list name="list" rows="12" spellcheck="false" placeholder="https://example.org/\nexample.com" aria-describedby="list-hint" {
                        "\n" @if outcome.is_none_or(|outcome| !outcome.errors.is_empty()) { (fields.get("list")) }
                    }
                    p.hint #list-hint { (t("At most 1,000 addresses. Addresses that are registered already are left as they are.", "1,000件まで。登録済みのアドレスは変わりません。")) }
                }
                div.field data-needs-script="" hidden {
                    label for="file" { (t("Or choose a file", "ファイルから読み込む")) }
                    input #file type="file" accept=".opml,.xml,.csv,.txt,text/*" data-fills="list";
                }
                div.row {
                    div.field {
                        label for="period" { (t("How often", "頻度")) }
                        select #period name="period" { @for (value, en, ja) in PERIODS {
                            option value=(value) selected[period == value] { (t(en, ja)) }
                        } }
                    }
                    div.field { label for="group" { (t("Group", "グループ")) } input #group name="group" value=(fields.get("group")) autocomplete="off"; }
                    div.field { label for="tags" { (t("Tags", "タグ")) } input #tags name="tags" value=(fields.get("tags")) autocomplete="off"; }
                }
                label.check { input type="checkbox" name="allow_private" value="1" checked[!fields.get("allow_private").is_empty()]; span { (t("Addresses on this computer or your own network are allowed", "このコンピューターや自分のネットワーク内のアドレスを許可する")) } }
                div.actions { button.primary { (t("Add and collect", "追加して収集を始める")) } a href="/" { (t("Cancel", "やめる")) } }
            }
        }
    };
    layout::page(visitor, Menu::Add, title, content)
}

fn results(visitor: &Visitor, outcome: &Outcome) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let (added, known, wrong) = (outcome.added.len(), outcome.known.len(), outcome.errors.len());
    let sentence = match visitor.lang {
        Lang::En => format!(
            "{added} {} added, {known} registered already, {wrong} {} with a mistake.",
            if added == 1 { "site" } else { "sites" },
            if wrong == 1 { "line" } else { "lines" }
        ),
        Lang::Ja => format!("追加 {added} 件、登録済み {known} 件、誤りのある行 {wrong} 件。"),
    };
    let line = |number: usize| match visitor.lang {
        Lang::En => format!("Line {number}: "),
        Lang::Ja => format!("{number}行目："),
    };
    html! {
        div.notice.bad[added == 0 && wrong > 0] role="status" {
            p { strong { (sentence) } }
            @if wrong > 0 {
                ul.bulk-errors { @for (number, error) in &outcome.errors {
                    li { (line(*number)) bdi { (visitor.lang.translate(error)) } }
                } }
            }
            @if !outcome.known.is_empty() {
                details { summary { (t("Registered already", "登録済み")) } ul { @for (number, site) in &outcome.known {
                    li { (line(*number)) a href=(format!("/sites/{}", site.id.0)) { bdi { (site.name) } } }
                } } }
            }
            @if !outcome.added.is_empty() {
                ul { @for site in &outcome.added { li { a href=(format!("/sites/{}", site.id.0)) { bdi { (site.name) } } } } }
            }
        }
    }
}
