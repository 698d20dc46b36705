//! Changes for a terminal and for programs.

use std::collections::BTreeMap;

use nenrin_state::{SiteId, VersionRow};
use serde_json::{Value, json};

use super::{
    between::{Between, FolderCounts, PageDifference, SiteDifference},
    kind::ChangeKind,
    list::ListedChange,
};
use crate::{counted, readable_bytes, readable_date, rfc3339};

/// Folders shown in a terminal.
const FOLDERS_SHOWN: usize = 20;

impl ListedChange {
    /// The change for programs; `name` is its site's.
    pub fn as_json(&self, name: Option<&str>) -> Value {
        let change = &self.change;
        let line = self.line();
        json!({
            "at": rfc3339(change.at_s), "site": change.site, "name": name, "kind": self.kind,
            "url": change.url, "title": self.title(), "line": line.map(|(line, _)| line),
            "removed": line.is_some_and(|(_, removed)| removed),
            "significant": self.is_significant(),
            "old": side(change.previous.as_ref()), "new": side(change.version.as_ref()),
        })
    }
}

impl PageDifference {
    /// The difference for programs.
    pub fn as_json(&self) -> Value {
        json!({
            "url": self.url, "kind": self.kind, "significant": self.is_significant,
            "old": side(self.old.as_ref()), "new": side(self.new.as_ref()),
        })
    }
}

fn side(row: Option<&VersionRow>) -> Value {
    json!(row.map(|row| {
        json!({
            "at": rfc3339(row.at_s), "version": row.version, "status": row.status,
            "mime": row.mime, "bytes": row.bytes,
        })
    }))
}

/// How much of a page changed, for a person.
pub fn changed_text(changed_permille: Option<u16>) -> String {
    match changed_permille {
        None => "–".to_owned(),
        Some(0) => "noise".to_owned(),
        Some(share) => format!("{}.{}%", share / 10, share % 10),
    }
}

/// Changes by day and site, for a terminal.
pub fn lines(changes: &[ListedChange], names: &BTreeMap<SiteId, String>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut head: Option<(String, SiteId)> = None;
    for one in changes {
        let when = readable_date(one.change.at_s);
        let (day, time) = when.split_once(' ').unwrap_or((&when, ""));
        let site = one.change.site;
        if head.as_ref().is_none_or(|(last, _)| last != day) {
            lines.push(format!("{}{day} (UTC)", if lines.is_empty() { "" } else { "\n" }));
        }
        if head.as_ref().is_none_or(|(last, at)| last != day || *at != site) {
            lines.push(format!("  {}", names.get(&site).map_or("?", String::as_str)));
        }
        head = Some((day.to_owned(), site));
        let time = time.get(..5).unwrap_or(time);
        let url = one.change.url.to_string();
        let title = one.title().unwrap_or(&url);
        lines.push(format!("    {time}  {:<8} {title}", one.kind.as_str()));
        let indent = " ".repeat(20);
        if one.title().is_some() {
            lines.push(format!("{indent}{url}"));
        }
        if let Some((line, removed)) = one.line() {
            let mark = match (one.kind, removed) {
                (ChangeKind::New, _) => "",
                (_, true) => "- ",
                (_, false) => "+ ",
            };
            lines.push(format!("{indent}{mark}{line}"));
        } else if !one.is_significant() {
            lines.push(format!("{indent}only dates, counters or other small parts differ"));
        }
    }
    lines
}

impl SiteDifference {
    /// What differs, for a terminal: counts, folders, and at most `limit` pages.
    pub fn lines(&self, dates: Between<'_>, limit: usize) -> Vec<String> {
        let mut lines = vec![
            format!(
                "{} between {} and {} (UTC)",
                dates.site.name,
                readable_date(dates.from_s),
                readable_date(dates.to_s)
            ),
            format!(
                "{} compared: {} new, {} changed, {} gone",
                counted(self.looked_at, "page"),
                self.counts.new,
                self.counts.changed,
                self.counts.gone
            ),
        ];
        let mut folders: Vec<_> = self.folders.iter().collect();
        folders.sort_by_key(|(name, counts)| (std::cmp::Reverse(counts.total()), *name));
        if folders.len() > 1 {
            lines.push(String::new());
            lines.push(format!("  {:>5} {:>7} {:>5}  folder", "new", "changed", "gone"));
        }
        for (name, counts) in folders.iter().take(FOLDERS_SHOWN).filter(|_| folders.len() > 1) {
            let FolderCounts { new, changed, gone } = counts;
            lines.push(format!("  {new:>5} {changed:>7} {gone:>5}  {name}"));
        }
        let mut pages: Vec<&PageDifference> = self.pages.iter().collect();
        pages.sort_by_key(|page| (page.kind, page.url.as_str()));
        if !pages.is_empty() {
            lines.push(String::new());
        }
        lines.extend(pages.iter().take(limit).map(|page| page.line()));
        let listed = pages.len().min(limit) as u64;
        if listed < self.counts.total() {
            let left = self.counts.total() - listed;
            lines.push(format!(
                "… and {}; --limit N lists more, --json all",
                counted(left, "more page")
            ));
        }
        lines
    }
}

impl PageDifference {
    fn line(&self) -> String {
        let bytes = |row: &Option<VersionRow>| {
            row.as_ref().map_or(String::new(), |row| readable_bytes(row.bytes))
        };
        let sizes = match self.kind {
            ChangeKind::Changed => format!("{} → {}", bytes(&self.old), bytes(&self.new)),
            ChangeKind::New => bytes(&self.new),
            ChangeKind::Gone => bytes(&self.old),
        };
        let small = if self.is_significant { "" } else { ", small differences only" };
        format!("{:<8} {}  ({sizes}{small})", self.kind.as_str(), self.url)
    }
}
