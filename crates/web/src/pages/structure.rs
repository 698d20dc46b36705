//! A site's structure: index pages with their members, families, what changed together, and what
//! the last round left out.

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use nenrin_archive::{ChosenRound, site_structure};
use nenrin_lang::Lang;
use nenrin_state::Site;
use nenrin_structure::{FamilyView, RoundsBy, StructureView, TopsView, Why};

use crate::{
    WebError, format,
    guard::{Fields, Shared},
    layout::{self, Menu},
    pages::site,
    visitor::Visitor,
};

pub(crate) fn structure(
    shared: &Shared,
    visitor: &Visitor,
    site: &Site,
    query: &Fields,
) -> Result<Response, WebError> {
    let (state, own) = (shared.app.state.clone(), site.clone());
    let compute = move || site_structure(&*state, &own);
    let known = shared.structures.of(site.id, shared.app.now_s, compute)?;
    let part = html! {
        @if let Some((at_s, known)) = &known {
            (last_round(visitor, known.rounds_by, known.last_round.as_ref()))
            @if let Some(view) = &known.structure {
                (tops(visitor, view))
                (families(visitor, view))
            }
            (layout::computed_at(visitor, *at_s))
        } @else { (layout::being_computed(visitor)) }
    };
    if query.get("part") == "structure" {
        return Ok(Html(part.into_string()).into_response());
    }
    let live = known.is_none().then(|| format!("/sites/{}/structure?part=structure", site.id.0));
    let content = html! {
        div.heading { h1 { bdi { (site.name) } } }
        (site::tabs(visitor, site, site::Tab::Structure))
        p.lead { (visitor.t(
            "Many sites have index pages: when something below them changes, they change too. This is what was found here, and how far it can be relied on to leave out pages that did not change.",
            "多くのサイトには、配下が変わると一緒に変わる目次ページがあります。ここでは見つかった目次ページと、変わっていないページの訪問を省くためにどこまで頼れるかを示します。",
        )) }
        div data-live=[live] data-every="2" { (part) }
    };
    let title = format!("{} – {}", visitor.t("Structure", "構造"), site.name);
    Ok(layout::page(visitor, Menu::None, &title, content))
}

fn last_round(visitor: &Visitor, by: RoundsBy, round: Option<&ChosenRound>) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        section.card {
            h2 { (t("What the last round left out", "前回の収集で省いたページ")) }
            p { (t("A round visits: ", "1回の収集で訪問するページ：")) (choice(visitor, by)) }
            @if let Some(round) = round {
                p {
                    (format::counted(visitor.lang, round.visits, "visit", "visits", " 回訪問")) (t(", ", "、"))
                    (format::number(round.changed)) (t(" changed, ", " 件変更、"))
                    (format::counted(visitor.lang, round.skipped, "page", "pages", " ページ省略")) (t(" left out.", "。"))
                }
                @if !round.reasons.is_empty() {
                    div.scroll { table.cards {
                        thead { tr {
                            th scope="col" { (t("Why", "理由")) }
                            th.n scope="col" { (t("Pages", "ページ")) }
                            th scope="col" { (t("For example", "例")) }
                        } }
                        tbody { @for reason in &round.reasons {
                            tr {
                                th scope="row" { (why(visitor, reason.why)) }
                                td.n data-label=(t("Pages", "ページ")) { (format::number(reason.pages)) }
                                td data-label=(t("For example", "例")) { @for url in &reason.examples { div { bdi { (url) } } } }
                            }
                        } }
                    } }
                }
            } @else {
                p.muted { (t("No round has chosen its pages yet.", "ページを選ぶ収集はまだ行われていません。")) }
            }
        }
    }
}

fn choice<'a>(visitor: &Visitor, by: RoundsBy) -> &'a str {
    match by {
        RoundsBy::All => visitor.t("every page", "すべてのページ"),
        RoundsBy::A => visitor.t(
            "directories whose top pages changed (method A)",
            "最も浅いページが変わったディレクトリ（方式A）",
        ),
        RoundsBy::B => visitor.t(
            "pages below changed index pages (method B)",
            "変わったトップページの下のページ（方式B）",
        ),
        RoundsBy::C => visitor.t(
            "as method B, but only below changed parts of the site (method C)",
            "方式Bのうち、変わった上位サイトの下だけ（方式C）",
        ),
        RoundsBy::Auto => {
            visitor.t("the pages most likely to have changed", "変わった見込みの高いページ")
        }
    }
}

fn why<'a>(visitor: &Visitor, why: Why) -> &'a str {
    match why {
        Why::TopSame => {
            visitor.t("no index page above them changed", "上位の目次ページが変わっていない")
        }
        Why::UpperSame => {
            visitor.t("no part of the site above them changed", "上位のサイトが変わっていない")
        }
        Why::Unlikely => visitor.t("unlikely to have changed", "変わった見込みが低い"),
        Why::NoBudget => visitor.t("the limit of pages was reached", "上限に達した"),
        Why::Gone => visitor.t("gone, checked less often", "なくなった（時々確かめる）"),
        Why::NotReached => visitor.t("no links lead there", "リンクで届かない"),
    }
}

fn tops(visitor: &Visitor, view: &StructureView) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let counts = view.sites.iter().any(|site| site.top_seen > 0);
    html! {
        section.card {
            h2 { (t("Index pages and the pages below them", "目次ページと配下")) }
            p.hint {
                (format::counted(visitor.lang, view.pages as u64, "page", "pages", " ページ")) (t(", ", "、"))
                (format::counted(visitor.lang, view.links as u64, "link", "links", " リンク"))
                @if counts {
                    (t(". Counted are the last eight rounds that chose which pages to visit, and of them the pages that were visited.", "。変更の回数は、ページを選んだ最近8回の収集で、訪問したものだけを数えます。"))
                } @else {
                    (t(". What changes together is counted once rounds choose their pages: choose so under Conditions, “Pages of a round”.", "。一緒に変わるページは、収集条件の「1巡で訪れるページ」でページを選ぶ方法にすると数え始めます。"))
                }
            }
            div.scroll { table.cards {
                thead { tr {
                    th.n scope="col" { (t("Depth", "深さ")) }
                    th scope="col" { (t("Index page", "目次ページ")) }
                    th.n scope="col" { (t("Pages below", "配下")) }
                    @if counts {
                    th.n scope="col" title=(t("rounds in which the index page changed, of those that visited it", "目次ページが変わった回数／訪問した回数")) { (t("Index page changed", "目次の変更")) }
                    th.n scope="col" title=(t("pages below that had changed, of those visited, when the index page had changed", "目次が変わったときに変わった配下／訪問した配下")) { (t("Pages below changed when it did", "そのとき変わった配下")) }
                    th.n scope="col" title=(t("pages below that had changed, of those visited, when the index page had not", "目次が変わらないときに変わった配下／訪問した配下")) { (t("When it did not", "目次が変わらないとき")) }
                    }
                } }
                tbody { @for site in &view.sites { (top(visitor, site, counts)) } }
            } }
            @if view.site_count > view.sites.len() {
                p.muted { (t("The largest of ", "全")) (format::number(view.site_count as u64)) (t(" are shown.", " 件のうち大きいものです。")) }
            }
        }
    }
}

fn top(visitor: &Visitor, site: &TopsView, counts: bool) -> Markup {
    let of = |seen: u32, changed: u32| match (seen, visitor.lang) {
        (0, _) => "–".to_owned(),
        (_, Lang::En) => format!("{changed} of {seen}"),
        (_, Lang::Ja) => format!("{seen} のうち {changed}"),
    };
    html! {
        tr {
            td.n data-label=(visitor.t("Depth", "深さ")) { (site.depth) }
            th scope="row" {
                @for path in &site.tops { div { bdi { (path) } } }
                @if let Some(learnt) = learnt(visitor, site) { div.hint { (learnt) } }
                @if !site.members.is_empty() {
                    details {
                        summary { (visitor.t("pages below", "配下")) }
                        @for path in &site.members { div { bdi { (path) } } }
                        @if site.member_count > site.members.len() { div { "…" } }
                    }
                }
            }
            td.n data-label=(visitor.t("Pages below", "配下")) { (format::number(site.member_count as u64)) }
            @if counts {
                td.n data-label=(visitor.t("Index page changed", "目次の変更")) { (of(site.top_seen, site.top_changed)) }
                td.n data-label=(visitor.t("Pages below changed when it did", "そのとき変わった配下")) { (of(site.under_changed.0, site.under_changed.1)) }
                td.n data-label=(visitor.t("When it did not", "目次が変わらないとき")) { (of(site.under_same.0, site.under_same.1)) }
            }
        }
    }
}

/// What was learnt of an index page, as a sentence.
fn learnt(visitor: &Visitor, site: &TopsView) -> Option<String> {
    let (seen_then, changed_then) = site.under_changed;
    let (seen_else, changed_else) = site.under_same;
    if seen_then == 0 || seen_else == 0 {
        return None;
    }
    let (then, otherwise) = (share(changed_then, seen_then), share(changed_else, seen_else));
    Some(match visitor.lang {
        Lang::En => format!(
            "When it had changed, {then}% of the pages below had changed, too; when it had not, {otherwise}%."
        ),
        Lang::Ja => format!(
            "これが変わったときは配下の {then}%、変わらないときは {otherwise}% が変わっていました。"
        ),
    })
}

fn share(changed: u32, seen: u32) -> u32 {
    (u64::from(changed) * 100).checked_div(u64::from(seen)).map_or(0, |share| share as u32)
}

fn families(visitor: &Visitor, view: &StructureView) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let none = |family: &FamilyView| {
        let together = family.together;
        together.rounds - together.all - together.some
    };
    html! {
        @if view.families.iter().any(|family| family.together.rounds > 0) {
            section.card {
                h2 { (t("Pages of one kind", "同種のページ")) }
                p.hint { (t("Pages whose addresses differ only in numbers (# is any number, * any name). In how many rounds had all of the visited ones changed, some, or none?", "番号だけが異なるページ（# は任意の数、* は任意の名前）と、訪問したもののすべて・一部・なしが変わった収集の回数です。")) }
                div.scroll { table.cards {
                    thead { tr {
                        th scope="col" { (t("Address", "アドレス")) }
                        th.n scope="col" { (t("Pages", "ページ")) }
                        th.n scope="col" { (t("All changed", "すべて変更")) }
                        th.n scope="col" { (t("Some", "一部")) }
                        th.n scope="col" { (t("None", "なし")) }
                    } }
                    tbody { @for family in &view.families {
                        tr {
                            th scope="row" { bdi { (family.family) } }
                            td.n data-label=(t("Pages", "ページ")) { (format::number(family.pages as u64)) }
                            td.n data-label=(t("All changed", "すべて変更")) { (family.together.all) }
                            td.n data-label=(t("Some", "一部")) { (family.together.some) }
                            td.n data-label=(t("None", "なし")) { (none(family)) }
                        }
                    } }
                } }
            }
        }
    }
}
