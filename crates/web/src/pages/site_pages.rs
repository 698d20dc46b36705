//! The pages of a site: as a tree by directory, or as a list of paths that begin alike.

use axum::response::Response;
use maud::{Markup, html};
use nenrin_state::{PageRecord, PathQuery, Site, SiteServer, TreeEntry};

use crate::{
    WebApp, WebError, format,
    guard::Fields,
    layout::{self, Menu},
    pages::site,
    visitor::Visitor,
};

const SHOWN: usize = 100;
const SERVERS_SHOWN: usize = 50;

/// The part of the site that is shown.
struct PageListing<'a> {
    visitor: &'a Visitor,
    site: &'a Site,
    server: &'a SiteServer,
    prefix: String,
    as_list: bool,
}

pub(crate) fn pages(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    query: &Fields,
    search: Markup,
) -> Result<Response, WebError> {
    let servers = app.state.site_servers(site.id, SERVERS_SHOWN)?;
    let chosen: Option<u32> = query.number("server");
    let server = servers.iter().find(|s| Some(s.id.0) == chosen).or(servers.first());
    let title = format!("{} – {}", visitor.t("Pages", "ページ"), site.name);
    let content = match server {
        None => html! {
            (head(visitor, site, search))
            p.muted { (visitor.t("No pages are known yet.", "まだページがありません。")) }
        },
        Some(server) => {
            let prefix = prefix(query.get("prefix"));
            let as_list = query.get("list") == "1" || !prefix.ends_with('/');
            let place = PageListing { visitor, site, server, prefix, as_list };
            html! {
                (head(visitor, site, search))
                (place.chooser(&servers))
                (place.entries(app, query)?)
            }
        }
    };
    Ok(layout::page(visitor, Menu::None, &title, content))
}

/// The beginning of paths; a typed one may lack the slash.
fn prefix(typed: &str) -> String {
    let typed = typed.trim();
    if typed.starts_with('/') { typed.to_owned() } else { format!("/{typed}") }
}

fn head(visitor: &Visitor, site: &Site, search: Markup) -> Markup {
    html! {
        div.heading { h1 { bdi { (site.name) } } }
        (site::tabs(visitor, site, site::Tab::Pages))
        (search)
    }
}

impl PageListing<'_> {
    fn link(&self, prefix: &str, as_list: bool, after: Option<&str>) -> String {
        let mut link = format!(
            "/sites/{}/pages?server={}&prefix={}",
            self.site.id.0,
            self.server.id.0,
            format::encoded(prefix)
        );
        if as_list {
            link.push_str("&list=1");
        }
        if let Some(after) = after {
            link.push_str("&after=");
            link.push_str(&format::encoded(after));
        }
        link
    }

    fn chooser(&self, servers: &[SiteServer]) -> Markup {
        let t = |en, ja| self.visitor.t(en, ja);
        html! {
            form.filter method="get" {
                @if servers.len() > 1 {
                    label.sr for="server" { (t("Server", "サーバー")) }
                    select #server name="server" data-submit {
                        @for server in servers {
                            option value=(server.id.0) selected[server.id == self.server.id] { (server.server) }
                        }
                    }
                }
                label.sr for="prefix" { (t("Path begins with", "パスの先頭")) }
                input #prefix name="prefix" value=(self.prefix) placeholder="/" spellcheck="false" autocomplete="off";
                @if self.as_list { input type="hidden" name="list" value="1"; }
                button { (t("Show", "表示")) }
                @if self.as_list {
                    a href=(self.link("/", false, None)) { (t("as a tree", "ツリー表示")) }
                } @else {
                    a href=(self.link(&self.prefix, true, None)) { (t("as a list", "一覧表示")) }
                }
            }
            p.crumbs { (self.crumbs()) }
        }
    }

    /// The path down to the directory that is shown, each step a link.
    fn crumbs(&self) -> Markup {
        let ends = self.prefix.match_indices('/').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends.clone());
        html! {
            span.muted { (self.server.server) }
            @for (start, end) in starts.zip(ends) {
                a href=(self.link(&self.prefix[..end], false, None)) { (nenrin_urls::shown_text(&self.prefix[start..end])) }
            }
        }
    }

    fn entries(&self, app: &WebApp, query: &Fields) -> Result<Markup, WebError> {
        let asked = PathQuery {
            site: self.site.id,
            server: self.server.id,
            prefix: self.prefix.clone(),
            after: query.some("after").map(str::to_owned),
            limit: SHOWN + 1,
        };
        let mut entries = if self.as_list {
            let page = |page: PageRecord| TreeEntry {
                path: page.url.path_and_query().to_owned(),
                page: Some(page),
            };
            app.state.pages_by_path(&asked)?.into_iter().map(page).collect()
        } else {
            app.state.directory(&asked)?
        };
        let is_more = entries.len() > SHOWN;
        entries.truncate(SHOWN);
        let t = |en, ja| self.visitor.t(en, ja);
        Ok(html! {
            div.scroll { table.cards {
                thead { tr {
                    th scope="col" { (t("Path", "パス")) }
                    th scope="col" { (t("Last result", "最新の結果")) }
                    th.n scope="col" { (t("Visits", "訪問")) }
                    th.n scope="col" { (t("Versions", "版")) }
                    th.n scope="col" title=(t("how many times that of the average page", "平均的なページの何倍か")) { (t("Importance", "重要度")) }
                    th.n scope="col" title=(t("estimated changes per day", "1日あたりの変更回数の推定")) { (t("Changes a day", "変更/日")) }
                    th.n scope="col" { (t("Size", "サイズ")) }
                    th scope="col" { (t("Last visit", "最終訪問")) }
                } }
                tbody { @for entry in &entries { (self.row(entry)) } }
            } }
            @if entries.is_empty() { p.muted { (t("Nothing here.", "該当するページはありません。")) } }
            @if is_more && let Some(last) = entries.last() {
                p.paging { a.button rel="next" href=(self.link(&self.prefix, self.as_list, Some(&past(last, self.as_list)))) { (t("Further", "次へ")) " →" } }
            }
        })
    }

    fn row(&self, entry: &TreeEntry) -> Markup {
        let is_directory = !self.as_list && entry.path.ends_with('/') && entry.path != self.prefix;
        let name = if self.as_list {
            &entry.path
        } else {
            &entry.path[self.prefix.len().min(entry.path.len())..]
        };
        let name = if name.is_empty() { entry.path.as_str() } else { name };
        let t = |en, ja| self.visitor.t(en, ja);
        html! {
            tr {
                td.path {
                    @if is_directory {
                        a.directory href=(self.link(&entry.path, false, None)) { bdi { (nenrin_urls::shown_text(name)) } }
                        @if let Some(page) = &entry.page { " " a.muted href=(layout::page_link(&page.url)) { (self.visitor.t("its page", "このページ")) } }
                    } @else if let Some(page) = &entry.page {
                        a href=(layout::page_link(&page.url)) { bdi { (nenrin_urls::shown_text(name)) } }
                    }
                }
                @match &entry.page {
                    None => td colspan="7" {},
                    Some(page) => {
                        td { @if let Some(outcome) = page.outcome { (layout::last_outcome(self.visitor, page, outcome)) } @else { span.muted { (self.visitor.t("not visited yet", "未訪問")) } } }
                        td.n data-label=(t("Visits", "訪問")) { (format::number(u64::from(page.visits))) }
                        td.n data-label=(t("Versions", "版")) { (format::number(u64::from(page.changes))) }
                        td.n data-label=[page.importance().map(|_| t("Importance", "重要度"))] { @if let Some(importance) = page.importance() { (format::importance(importance)) } }
                        // Without a schedule of its own, nobody has asked how often it changes.
                        @let estimate = page.estimate.filter(|_| page.due_s.is_some());
                        td.n data-label=[estimate.map(|_| t("Changes a day", "変更/日"))] { @if let Some(estimate) = estimate {
                            span title=(format!("{}{}%{}", self.visitor.t("", "確信度 "), estimate.confidence_percent, self.visitor.t(" sure", ""))) { (format::rate(estimate.rate_per_day())) }
                        } }
                        td.n data-label=[(page.visits > 0).then(|| t("Size", "サイズ"))] { @if page.visits > 0 { (format::bytes(page.bytes)) } }
                        td data-label=[page.visited_s.map(|_| t("Last visit", "最終訪問"))] { (format::maybe_time(page.visited_s)) }
                    }
                }
            }
        }
    }
}

/// Where the next part begins: in the tree after a whole directory.
fn past(last: &TreeEntry, as_list: bool) -> String {
    if !as_list && last.path.ends_with('/') {
        format!("{}\u{7f}", last.path)
    } else {
        last.path.clone()
    }
}
