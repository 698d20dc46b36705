//! When a site's pages are visited again, what to expect from that, and what was learnt about its
//! servers.

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use nenrin_archive::{Outlook, outlook};
use nenrin_revisit::ForecastPoint;
use nenrin_state::{ServerId, ServerRecord, Site};
use serde_json::Value;

use crate::{
    WebApp, WebError, chart, format,
    guard::{Fields, Shared},
    layout::{self, Menu},
    pages::{charts, site},
    visitor::Visitor,
};

const SERVERS_SHOWN: usize = 50;
const ROWS_SHOWN: usize = 200;

pub(crate) fn schedule(
    shared: &Shared,
    visitor: &Visitor,
    site: &Site,
    query: &Fields,
) -> Result<Response, WebError> {
    let app = &shared.app;
    let (state, own) = (app.state.clone(), site.clone());
    let expected = shared.outlooks.of(site.id, app.now_s, move || outlook(&*state, &own))?;
    let part = html! {
        @match &expected {
            None => { (layout::being_computed(visitor)) }
            Some((at_s, outlook)) => @if let Some(outlook) = &**outlook {
                (forecast(visitor, outlook, *at_s))
                (overflow(visitor, outlook))
            }
        }
    };
    if query.get("part") == "outlook" {
        return Ok(Html(part.into_string()).into_response());
    }
    let live = expected.is_none().then(|| format!("/sites/{}/schedule?part=outlook", site.id.0));
    let servers = app.state.site_servers(site.id, SERVERS_SHOWN)?;
    let ids: Vec<ServerId> = servers.iter().map(|server| server.id).collect();
    let records = app.state.servers(&ids)?;
    let content = html! {
        div.heading { h1 { bdi { (site.name) } } }
        (site::tabs(visitor, site, site::Tab::Schedule))
        (rule(app, visitor, site)?)
        div data-live=[live] data-every="2" { (part) }
        (signals(visitor, &records))
        (traps(visitor, &records))
    };
    let title = format!("{} – {}", visitor.t("Schedule", "予定"), site.name);
    Ok(layout::page(visitor, Menu::None, &title, content))
}

fn rule(app: &WebApp, visitor: &Visitor, site: &Site) -> Result<Markup, WebError> {
    let t = |en, ja| visitor.t(en, ja);
    let conditions = &site.conditions;
    let settings = conditions.schedule.continuous();
    let worth = app.state.site_worth()?.into_iter().find(|worth| worth.site == site.id);
    let rate = worth.filter(|_| settings.is_some()).and_then(|worth| {
        Some((worth.estimated_pages, worth.mean_rate_per_day()?, worth.mean_confidence()?))
    });
    Ok(html! {
        section.card {
            h2 { (t("When pages are visited", "訪問の予定")) }
            dl.facts {
                dt { (t("How often", "頻度")) } dd { (site::schedule(visitor, &conditions.schedule)) }
                @if let Some(settings) = settings {
                    dt { (t("Budget", "予算")) } dd { @match settings.visits_per_day {
                        Some(visits) => { (format::number(visits)) (t(" visits a day", " 回/日")) },
                        None => { (t("none", "なし")) },
                    } }
                    @for rule in &settings.paths {
                        dt { (t("For paths", "パス")) } dd { bdi { (rule) } }
                    }
                }
                @for window in &conditions.windows {
                    dt { (t("Only during", "収集時間帯")) } dd { bdi { (window) } }
                }
                @if let Some((pages, rate, confidence)) = rate {
                    dt { (t("Estimated changes", "変更の推定")) } dd {
                        (format::rate(rate)) (t(" per page and day on average, ", " 回/日（ページ平均）、確信度 ")) (chart::percent(confidence))
                        (t(" sure, from ", "、")) (format::number(pages)) (t(" pages", " ページから"))
                    }
                }
            }
            @if settings.is_some() { p.hint { (t("Each page's own screen says when it is due and why.", "次回の訪問日時とその理由は、各ページの画面に表示されます。")) } }
        }
    })
}

fn forecast(visitor: &Visitor, outlook: &Outlook, at_s: i64) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let name = |point: &ForecastPoint| match point.factor {
        factor if factor < 1.0 => t("half as many visits", "半分の訪問"),
        factor if factor > 1.0 => t("twice as many visits", "倍の訪問"),
        _ => t("as now", "現在"),
    };
    html! {
        section.card {
            h2 { (t("What to expect", "見込み")) }
            @if outlook.forecast.pages == 0 {
                p.muted { (t("No page has been visited on its own schedule yet, so nothing can be predicted.", "まだ見込みを立てられません。")) }
            } @else {
                p {
                    (t("Versions missed between visits so far: about ", "これまでに訪問の合間に見逃した版：約 "))
                    (format!("{:.0}", outlook.missed.versions)) " ("
                    (format!("{:.0}", outlook.missed.range.0)) (t(" to ", "〜"))
                    (format!("{:.0}", outlook.missed.range.1)) ")"
                }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { (t("Spending", "訪問量")) }
                        th.n scope="col" { (t("Visits a day", "訪問/日")) }
                        th.n scope="col" { (t("Versions found", "得られる版")) }
                    } }
                    tbody { @for point in &outlook.forecast.points {
                        tr {
                            th scope="row" { (name(point)) }
                            td.n { (format!("{:.1}", point.visits_per_day)) }
                            td.n { (format!("{:.0}%", point.coverage * 100.0)) }
                        }
                    } }
                } }
                (charts::forecast(visitor, &outlook.forecast.points))
                p.hint { (t("Estimated from the histories of ", "")) (format::number(outlook.forecast.pages as u64)) (t(" pages.", " ページの履歴によります。")) }
                (layout::computed_at(visitor, at_s))
            }
        }
    }
}

fn overflow(visitor: &Visitor, outlook: &Outlook) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    html! {
        @if !outlook.stretched.is_empty() {
            section.card {
                h2 { (t("Overloaded servers", "訪問が間に合わないサーバー")) }
                p.hint { (t("More pages are due than politeness allows. All intervals are stretched by this factor until the server catches up.", "礼儀を守ると訪問が間に合わないため、追いつくまで間隔をこの倍率で延ばしています。")) }
                ul { @for (server, percent) in &outlook.stretched {
                    li { bdi { (server) } ": × " (format!("{:.2}", f64::from(*percent) / 100.0)) }
                } }
            }
        }
    }
}

/// A sitemap or feed and its accuracy, from the crawler's notes.
struct Source {
    url: String,
    note: Value,
}

fn sources(records: &[ServerRecord]) -> Vec<Source> {
    let notes = records.iter().filter_map(|record| note(record, "signals"));
    let named = notes.filter_map(|note| note.get("sources")?.as_object().cloned());
    named.flatten().take(ROWS_SHOWN).map(|(url, note)| Source { url, note }).collect()
}

fn note(record: &ServerRecord, name: &str) -> Option<Value> {
    serde_json::from_str(record.notes.get(name)?).ok()
}

fn signals(visitor: &Visitor, records: &[ServerRecord]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let sources = sources(records);
    let share = |source: &Source, of: &str| match source.note["trust"][of].as_f64() {
        Some(share) => format!("{:.0}%", share * 100.0),
        None => "–".to_owned(),
    };
    html! {
        section.card {
            h2 { (t("Sitemaps and feeds", "サイトマップとフィード")) }
            @if sources.is_empty() {
                p.muted { (t("None found.", "見つかっていません。")) }
            } @else {
                div.scroll { table {
                    thead { tr {
                        th scope="col" { (t("Source", "情報源")) }
                        th.n scope="col" { (t("Pages", "ページ")) }
                        th.n scope="col" title=(t("share of announced changes that were real", "予告のうち実際に変わった割合")) { (t("Precision", "適合率")) }
                        th.n scope="col" title=(t("share of changes that were announced", "変更のうち予告された割合")) { (t("Recall", "再現率")) }
                        th.n scope="col" title=(t("how much an announcement raises the odds of a change", "予告で変更のオッズが何倍になるか")) { (t("Odds", "オッズ")) }
                    } }
                    tbody { @for source in &sources {
                        tr {
                            td.url { bdi { (source.url) } }
                            td.n { (format::number(source.note["entries"].as_u64().unwrap_or(0))) }
                            td.n { (share(source, "precision")) }
                            td.n { (share(source, "recall")) }
                            td.n { (source.note["trust"]["odds"].as_f64().map_or("–".to_owned(), |odds| format!("× {odds:.1}"))) }
                        }
                    } }
                } }
            }
        }
    }
}

/// The crawler's name of a trap, in words.
fn trap_words<'a>(visitor: &Visitor, trap: &'a str) -> &'a str {
    let t = |en, ja| visitor.lang.t(en, ja);
    match trap {
        "long-url" => t("URLs longer than 2000 bytes", "2000 バイトを超える URL"),
        "deep-path" => t("more than 20 directories deep", "20 段を超えるディレクトリ"),
        "repeated-segments" => t("directories that repeat", "ディレクトリの繰り返し"),
        "query-combinations" => {
            t("too many combinations of parameters", "パラメーターの組み合わせが多すぎる")
        }
        "calendar" => t("an endless calendar", "終わりのないカレンダー"),
        "session-id" => t("session ids, left out of the URL", "セッションID（URL から除いて収集）"),
        other => other,
    }
}

fn traps(visitor: &Visitor, records: &[ServerRecord]) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let notes = records.iter().filter_map(|record| note(record, "traps"));
    let refused = notes.filter_map(|note| note.get("refused")?.as_object().cloned());
    let refused: Vec<(String, Value)> = refused.flatten().take(ROWS_SHOWN).collect();
    html! {
        @if !refused.is_empty() {
            section.card {
                h2 { (t("Links not followed", "たどらなかったリンク")) }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { (t("Trap", "理由")) }
                        th.n scope="col" { (t("Links", "リンク")) }
                        th scope="col" { (t("For example", "例")) }
                    } }
                    tbody { @for (trap, count) in &refused {
                        tr {
                            td { (trap_words(visitor, trap)) }
                            td.n { (format::number(count["links"].as_u64().unwrap_or(0))) }
                            td.url { bdi { (count["example"].as_str().unwrap_or_default()) } }
                        }
                    } }
                } }
            }
        }
    }
}
