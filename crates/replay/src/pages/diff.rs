//! Two versions beside each other.

use maud::{Markup, html};
use nenrin_lang::Lang;
use nenrin_urls::CanonicalUrl;

use super::{as_value, in_interface, layout};
use crate::{
    Capture,
    ask::Ask,
    date::Stamp,
    diff::{Change, compare},
};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;
/// The most lines shown.
const MAX_SHOWN: usize = 4000;
/// The characters of a line that are handed to the interface.
const ACTION_CHARS: usize = 300;
/// The most characters shown of a block.
const BLOCK_CHARS: usize = 600;

/// Comparison of the blocks of two versions.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) same: usize,
    pub(crate) same_bytes: usize,
    /// Blocks that only the older version has, as text.
    pub(crate) removed: Vec<String>,
    /// Blocks that only the newer version has, as text.
    pub(crate) added: Vec<String>,
}

/// Two versions to be shown.
pub(crate) struct Diff<'a> {
    pub(crate) ask: &'a Ask,
    pub(crate) url: &'a CanonicalUrl,
    pub(crate) old: &'a Capture,
    pub(crate) new: &'a Capture,
    pub(crate) old_lines: &'a [String],
    pub(crate) new_lines: &'a [String],
    pub(crate) blocks: &'a Blocks,
    /// Whether it can be shown as rendered.
    pub(crate) is_page: bool,
    pub(crate) pictures: Option<&'a [Capture; 2]>,
}

impl Diff<'_> {
    pub(crate) fn page(&self) -> Markup {
        let (from, to) = (Stamp(self.old.at_s), Stamp(self.new.at_s));
        let changes = compare(self.old_lines, self.new_lines);
        let count = |lines: &dyn Fn(&Change) -> usize| changes.iter().map(lines).sum::<usize>();
        let removed = count(&|c| if let Change::Changed(a, _) = c { a.len() } else { 0 });
        let added = count(&|c| if let Change::Changed(_, b) = c { b.len() } else { 0 });
        let t = |en, ja| self.ask.lang().t(en, ja);
        let content = html! {
            h1 { (t("What changed", "変更点")) }
            p.url { bdi { (self.url.shown()) } }
            p {
                a href={ "/web/" (from) "/" (self.old.url) } { (from.plain()) } " \u{2192} "
                a href={ "/web/" (to) "/" (self.new.url) } { (to.plain()) } " (UTC), "
                a href={ "/web/*/" (self.url) } { (t("all versions", "すべての版")) }
                @if self.is_page { ", " a href={ "/diff/side/" (from) "/" (to) "/" (self.url) } { (t("side by side as rendered", "表示を並べて比較")) } }
                (in_interface(self.ask, self.url, ", "))
            }
            @if self.old.version == self.new.version {
                p { (t("Both dates have the same version.", "どちらの日付も同じ版です。")) }
            } @else {
                p { (self.summary(removed, added)) }
                @if removed + added == 0 { p { (t("No difference in the text that readers see.", "読者が目にする文章に違いはありません。")) } }
                (picture_list(self.ask, self.pictures))
                table.diff { (self.rows(&changes)) }
                (self.block_list())
            }
        };
        layout(self.ask, t("What changed", "変更点"), &content)
    }

    fn summary(&self, removed: usize, added: usize) -> String {
        let blocks = self.blocks;
        let (same, bytes) = (blocks.same, blocks.same_bytes);
        let (gone, new) = (blocks.removed.len(), blocks.added.len());
        match self.ask.lang() {
            Lang::En => format!(
                "{removed} lines removed, {added} added; {same} blocks ({bytes} bytes) are the same, \
                 {gone} are gone, {new} are new."
            ),
            Lang::Ja => format!(
                "削除 {removed} 行、追加 {added} 行。ブロックは {same} 個（{bytes} バイト）が同じ、\
                 {gone} 個が削除、{new} 個が追加。"
            ),
        }
    }

    fn rows(&self, changes: &[Change]) -> Markup {
        let mut shown = 0;
        html! {
            @for (i, change) in changes.iter().enumerate() {
                @if shown < MAX_SHOWN {
                    @match change {
                        Change::Same(_, new) => {
                            @let (head, tail) = context(new.len(), i == 0, i + 1 == changes.len());
                            @for line in &self.new_lines[new.start..new.start + head] { (same_row(line)) }
                            @if head + tail < new.len() {
                                tr.gap { td colspan="2" { (self.left_out(new.len() - head - tail)) } }
                            }
                            @for line in &self.new_lines[new.end - tail..new.end] { (same_row(line)) }
                        }
                        Change::Changed(old, new) => {
                            @for n in 0..old.len().max(new.len()) {
                                (self.changed_row(self.old_lines[old.clone()].get(n), self.new_lines[new.clone()].get(n)))
                            }
                            ({ shown += old.len().max(new.len()); "" })
                        }
                    }
                }
            }
            @if shown >= MAX_SHOWN { tr.gap { td colspan="2" { (self.ask.lang().t("more changes are not shown", "以降の変更は表示していません")) } } }
        }
    }

    /// Two lines with the words that differ marked, and what can be done about them.
    fn changed_row(&self, old: Option<&String>, new: Option<&String>) -> Markup {
        changed_row(old, new, &self.actions(new.or(old)))
    }

    /// Links to the interface, to watch a line or to ignore its changes.
    fn actions(&self, line: Option<&String>) -> Markup {
        let (Some(interface), Some(line)) = (&self.ask.interface, line) else { return html! {} };
        let text: String = line.chars().take(ACTION_CHARS).collect();
        let query = format!("url={}&text={}", as_value(self.url.as_str()), as_value(&text));
        let t = |en, ja| self.ask.lang().t(en, ja);
        html! {
            span.acts {
                a href={ (interface) "/watches/new?" (query) } title=(t("Get a message when this changes", "変わったときに知らせる")) { (t("watch", "監視")) } " "
                a href={ (interface) "/ignore?" (query) } title=(t("Changes of this part do not count", "この箇所の変更を数えない")) { (t("ignore", "無視")) }
            }
        }
    }

    fn left_out(&self, lines: usize) -> String {
        match (self.ask.lang(), lines) {
            (Lang::En, 1) => "1 line the same".to_owned(),
            (Lang::En, lines) => format!("{lines} lines the same"),
            (Lang::Ja, lines) => format!("同じ {lines} 行"),
        }
    }

    fn block_list(&self) -> Markup {
        let list = |blocks: &[String], class: &str| {
            html! {
                @for block in blocks.iter().take(200) {
                    pre class=(class) { (block.chars().take(BLOCK_CHARS).collect::<String>()) }
                }
            }
        };
        html! {
            details {
                summary { (self.ask.lang().t("Blocks of the source that changed", "変更されたソースのブロック")) }
                div.blocks {
                    div { (list(&self.blocks.removed, "old")) }
                    div { (list(&self.blocks.added, "new")) }
                }
            }
        }
    }
}

/// How many unchanged lines are shown before and after a gap.
fn context(lines: usize, is_first: bool, is_last: bool) -> (usize, usize) {
    let head = if is_first { 0 } else { CONTEXT.min(lines) };
    let tail = if is_last { 0 } else { CONTEXT.min(lines - head) };
    (head, tail)
}

fn same_row(line: &str) -> Markup {
    html! { tr { td { (line) } td { (line) } } }
}

fn changed_row(old: Option<&String>, new: Option<&String>, actions: &Markup) -> Markup {
    let words = |line: Option<&String>| -> Vec<String> {
        line.map_or(Vec::new(), |l| l.split_inclusive(' ').map(str::to_owned).collect())
    };
    let (old_words, new_words) = (words(old), words(new));
    let changes = match (old, new) {
        (Some(_), Some(_)) => compare(&old_words, &new_words),
        _ => vec![Change::Changed(0..old_words.len(), 0..new_words.len())],
    };
    html! {
        tr.changed {
            td class=[old.map(|_| "old")] {
                @for change in &changes { @match change {
                    Change::Same(a, _) => (old_words[a.clone()].concat()),
                    Change::Changed(a, _) => @if !a.is_empty() { del { (old_words[a.clone()].concat()) } }
                } }
            }
            td class=[new.map(|_| "new")] {
                @for change in &changes { @match change {
                    Change::Same(_, b) => (new_words[b.clone()].concat()),
                    Change::Changed(_, b) => @if !b.is_empty() { ins { (new_words[b.clone()].concat()) } }
                } }
                (actions)
            }
        }
    }
}

/// Pictures of both versions, and one of what differs: pixels that are the same are black in it.
fn picture_list(ask: &Ask, pictures: Option<&[Capture; 2]>) -> Markup {
    let Some([old, new]) = pictures else { return html! {} };
    let t = |en, ja| ask.lang().t(en, ja);
    let address = |shown: &Capture| format!("/web/{}id_/{}", Stamp(shown.at_s), shown.url);
    let picture = |shown: &Capture, alt: &str| {
        html! { img src=(address(shown)) alt=(alt) loading="lazy"; }
    };
    html! {
        details.pictures {
            summary { (t("Pictures of both", "両方の画像")) }
            @if old.version == new.version {
                p { (t("Both were rendered to the same picture.", "どちらも同じ画像に描画されました。")) }
            }
            div {
                figure { (picture(old, t("older version", "古い版"))) figcaption { (Stamp(old.at_s).plain()) } }
                figure { (picture(new, t("newer version", "新しい版"))) figcaption { (Stamp(new.at_s).plain()) } }
                @if old.version != new.version {
                    figure {
                        div.difference { (picture(old, "")) (picture(new, t("difference", "差分"))) }
                        figcaption { (t("Difference: black where both are the same", "差分（同じ部分は黒）")) }
                    }
                }
            }
        }
    }
}

/// Both versions as rendered, in two frames.
pub(crate) fn side_by_side(
    ask: &Ask,
    url: &CanonicalUrl,
    (old, new): (&Capture, &Capture),
    frames: &[String; 2],
    pictures: Option<&[Capture; 2]>,
) -> Markup {
    let t = |en, ja| ask.lang().t(en, ja);
    let (from, to) = (Stamp(old.at_s), Stamp(new.at_s));
    let content = html! {
        h1 { (t("Side by side", "並べて表示")) }
        p.url { bdi { (url.shown()) } }
        p { a href={ "/diff/" (from) "/" (to) "/" (url) } { (t("As text", "文章で比較")) } ", "
            a href={ "/web/*/" (url) } { (t("all versions", "すべての版")) }
            (in_interface(ask, url, ", ")) }
        (picture_list(ask, pictures))
        p.changes {
            button type="button" value="-1" disabled { "◀ " (t("previous change", "前の変更")) } " "
            button type="button" value="1" disabled { (t("next change", "次の変更")) " ▶" } " "
            output data-none=(t("No text differs: nothing could be marked.", "文章に違いがなく、印を付けられませんでした。")) {}
        }
        div.sides {
            section { h2 { (from.plain()) } iframe title=(t("older version", "古い版")) src=(frames[0]) {} }
            section { h2 { (to.plain()) } iframe title=(t("newer version", "新しい版")) src=(frames[1]) {} }
        }
    };
    let content = html! { (content) script src="/_nenrin/sides.js" {} };
    layout(ask, t("Side by side", "並べて表示"), &content)
}
