//! When a site's pages are visited again, what to expect from that, and what was learnt about its
//! servers.

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use nenrin_archive::{Outlook, outlook};
use nenrin_lang::Lang;
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
                        Some(visits) => { (format::counted(visitor.lang, visits, "visit", "visits", " 回/日")) (t(" a day", "")) },
                        None => { (t("none", "なし")) },
                    } }
                    @for rule in &settings.paths {
                        dt { (t("For paths", "パス")) } dd { bdi { (rule) } }
                    }
                }
                @for window in &conditions.windows {
                    dt { (t("Only during", "収集時間帯")) } dd { bdi { (window) } }
                }
            }
            @if let Some((pages, rate, confidence)) = rate {
                p { (changes_sentence(visitor, pages, rate, confidence)) }
            }
            @if settings.is_some() { p.hint { (t("Each page's own screen says when it is due and why.", "次回の訪問日時とその理由は、各ページの画面に表示されます。")) } }
        }
    })
}

/// How often pages change, as far as it is known.
fn changes_sentence(visitor: &Visitor, pages: u64, rate: f64, confidence: f64) -> String {
    let (pages, rate, sure) = (
        format::counted(visitor.lang, pages, "page", "pages", " ページ"),
        format::rate(rate),
        chart::percent(confidence),
    );
    match visitor.lang {
        Lang::En => format!(
            "A page of this site changes about {rate} times a day on average ({sure} sure, learnt from {pages})."
        ),
        Lang::Ja => format!(
            "このサイトのページは平均して1日に約 {rate} 回変わります（確信度 {sure}、{pages}の観測から）。"
        ),
    }
}

/// What the visits of now see, and what twice as many would, in one sentence.
fn forecast_sentence(visitor: &Visitor, points: &[ForecastPoint]) -> Option<String> {
    let at = |wanted: fn(f64) -> bool| points.iter().find(|point| wanted(point.factor));
    let (now, twice) = (at(|factor| factor == 1.0)?, at(|factor| factor > 1.0)?);
    let (now, twice) = (now.coverage * 100.0, twice.coverage * 100.0);
    Some(match visitor.lang {
        Lang::En => format!(
            "Visited as often as now, about {now:.0}% of all versions of these pages are seen before they change again. Twice as many visits would see {twice:.0}%."
        ),
        Lang::Ja => format!(
            "現在の訪問回数では、全ての版のうち約 {now:.0}% を次に変わる前に保存できます。訪問を2倍にすると {twice:.0}% になります。"
        ),
    })
}

fn forecast(visitor: &Visitor, outlook: &Outlook, at_s: i64) -> Markup {
    let t = |en, ja| visitor.t(en, ja);
    let name = |point: &ForecastPoint| match point.factor {
        factor if factor < 1.0 => t("half as often", "半分の回数"),
        factor if factor > 1.0 => t("twice as often", "2倍の回数"),
        _ => t("as often as now", "現在の回数"),
    };
    html! {
        section.card {
            h2 { (t("What to expect", "見込み")) }
            @if outlook.forecast.pages == 0 {
                p.muted { (t("No page has been visited on its own schedule yet, so nothing can be predicted.", "まだ見込みを立てられません。")) }
            } @else {
                @if let Some(sentence) = forecast_sentence(visitor, &outlook.forecast.points) { p { (sentence) } }
                p {
                    (t("Versions missed between visits so far: ", "これまでに訪問の合間に見逃した版："))
                    @if outlook.missed.range.1 < 0.5 { (t("none", "なし")) } @else {
                        (t("about ", "約 ")) (format!("{:.0}", outlook.missed.versions)) " ("
                        (format!("{:.0}", outlook.missed.range.0)) (t(" to ", "〜"))
                        (format!("{:.0}", outlook.missed.range.1)) ")"
                    }
                }
                div.scroll { table.cards {
                    thead { tr {
                        th scope="col" { (t("If pages are visited", "訪問の頻度")) }
                        th.n scope="col" { (t("Visits a day", "訪問/日")) }
                        th.n scope="col" title=(t("share of all versions that are seen before they change again", "次に変わる前に保存できる版の割合")) { (t("Versions seen", "保存できる版")) }
                    } }
                    tbody { @for point in &outlook.forecast.points {
                        tr {
                            th scope="row" { (name(point)) }
                            td.n data-label=(t("Visits a day", "訪問/日")) { (format!("{:.1}", point.visits_per_day)) }
                            td.n data-label=(t("Versions seen", "保存できる版")) { (format!("{:.0}%", point.coverage * 100.0)) }
                        }
                    } }
                } }
                (charts::forecast(visitor, &outlook.forecast.points))
                p.hint { (t("Estimated from the histories of ", "")) (format::counted(visitor.lang, outlook.forecast.pages as u64, "page", "pages", " ページの履歴によります")) (t(".", "。")) }
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
                p.hint { (t("More pages are due there than can be visited with a pause between requests. Until that is over, the time between two visits to a page is longer.", "間を置いて訪問すると間に合わないため、追いつくまで各ページの訪問間隔を延ばしています。")) }
                ul { @for (server, percent) in &outlook.stretched {
                    li { bdi { (server) } ": " (t("the time between visits is ", "間隔は")) (format!("{:.1}", f64::from(*percent) / 100.0)) (t(" times as long", "倍")) }
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
    // Before the first announcement was checked nothing is known of it.
    let is_tried = |source: &Source| source.note["trust"]["precision"].is_number();
    html! {
        section.card {
            h2 { (t("Sitemaps and feeds", "サイトマップとフィード")) }
            @if sources.is_empty() {
                p.muted { (t("None found.", "見つかっていません。")) }
            } @else {
                p.hint { (t("They announce which pages are new or have changed. How far an announcement is trusted depends on how often it was right.", "新しいページや変わったページを知らせるものです。どれだけ当たったかに応じて信頼します。")) }
                div.scroll { table.cards {
                    thead { tr {
                        th scope="col" { (t("Source", "情報源")) }
                        th.n scope="col" { (t("Pages", "ページ")) }
                        th.n scope="col" title=(t("share of announced changes that were real", "予告のうち実際に変わった割合")) { (t("Announcements that were right", "当たった予告")) }
                        th.n scope="col" title=(t("share of changes that were announced", "変更のうち予告された割合")) { (t("Changes that were announced", "予告された変更")) }
                        th.n scope="col" title=(t("how much likelier a change is after an announcement, as odds", "予告の後に変更がどれだけ起こりやすいか（オッズ比）")) { (t("A change is likelier after it", "予告後の変わりやすさ")) }
                    } }
                    tbody { @for source in &sources {
                        tr {
                            td.url { bdi { (source.url) } }
                            td.n data-label=(t("Pages", "ページ")) { (format::number(source.note["entries"].as_u64().unwrap_or(0))) }
                            td.n data-label=(t("Announcements that were right", "当たった予告")) { (share(source, "precision")) }
                            td.n data-label=(t("Changes that were announced", "予告された変更")) { (share(source, "recall")) }
                            td.n data-label=(t("A change is likelier after it", "予告後の変わりやすさ")) { (source.note["trust"]["odds"].as_f64().filter(|_| is_tried(source)).map_or("–".to_owned(), |odds| format!("× {odds:.1}"))) }
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
                div.scroll { table.cards {
                    thead { tr {
                        th scope="col" { (t("Trap", "理由")) }
                        th.n scope="col" { (t("Links", "リンク")) }
                        th scope="col" { (t("For example", "例")) }
                    } }
                    tbody { @for (trap, count) in &refused {
                        tr {
                            td { (trap_words(visitor, trap)) }
                            td.n data-label=(t("Links", "リンク")) { (format::number(count["links"].as_u64().unwrap_or(0))) }
                            td.url { bdi { (count["example"].as_str().unwrap_or_default()) } }
                        }
                    } }
                } }
            }
        }
    }
}
