//! Since when each block of a page is there.

use nenrin_archive::{Archive, readable_date};
use nenrin_extract::{PageText, TextKind};
use nenrin_state::VersionRow;
use nenrin_urls::CanonicalUrl;
use serde::Serialize;

use crate::{
    SearchError,
    history::{BlockRuns, OPEN, distinct},
    reading,
};

/// Versions that are looked at, the newest before the date; older ones count as the oldest of them.
const MAX_VERSIONS: usize = 5_000;

/// A page as of a date, with the history of its blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blame {
    /// The page.
    pub url: CanonicalUrl,
    /// When the version shown was received.
    pub at_s: i64,
    /// When the oldest version that was looked at was received.
    pub oldest_s: i64,
    /// How many versions were looked at.
    pub versions: usize,
    /// The title.
    pub title: Option<String>,
    /// Its blocks, in the order of the page.
    pub blocks: Vec<BlamedBlock>,
}

impl Blame {
    /// The page as lines for a terminal: when each block was first seen, and the block.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let line =
            |block: &BlamedBlock| format!("{}  {}", readable_date(block.first_s), block.text);
        self.blocks.iter().map(line)
    }
}

/// A block of text, and since when it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlamedBlock {
    /// When it was seen for the first time.
    pub first_s: i64,
    /// Since when it is there without a break.
    pub since_s: i64,
    /// When the version before that was received, in which it was not; none for the oldest.
    pub before_s: Option<i64>,
    /// Whether it is a heading or the title.
    pub is_heading: bool,
    /// The text.
    pub text: String,
}

/// The blocks of a page as of a time, each with the time it was first seen. `None` if there is no
/// version of that time.
pub fn blame(
    archive: &Archive,
    url: &CanonicalUrl,
    at_s: i64,
) -> Result<Option<Blame>, SearchError> {
    let (mut rows, _) = reading::versions(archive, url)?;
    rows.retain(|row| row.at_s <= at_s);
    let rows = &rows[rows.len().saturating_sub(MAX_VERSIONS)..];
    let (Some(oldest), Some(newest)) = (rows.first(), rows.last()) else { return Ok(None) };
    let mut runs = BlockRuns::default();
    let mut before: Option<PageText> = None;
    for (at, row) in rows.iter().enumerate() {
        let (_, text) = reading::text(archive, url, row)?;
        runs.add(at as u32, before.as_ref(), &text, &mut |_, _| {});
        before = Some(text);
    }
    let text = before.unwrap_or_default();
    let blocks = distinct(&text)
        .into_iter()
        .zip(&runs.current)
        .filter_map(|((kind, text), number)| blamed(rows, runs.of(*number), kind, text))
        .collect();
    Ok(Some(Blame {
        url: url.clone(),
        at_s: newest.at_s,
        oldest_s: oldest.at_s,
        versions: rows.len(),
        title: text.title().map(str::to_owned),
        blocks,
    }))
}

fn blamed(
    rows: &[VersionRow],
    runs: &[(u32, u32)],
    kind: TextKind,
    text: &str,
) -> Option<BlamedBlock> {
    let time = |slot: u32| rows.get(slot as usize).map(|row| row.at_s);
    let (first, since) = (runs.first()?.0, runs.iter().find(|(_, until)| *until == OPEN)?.0);
    Some(BlamedBlock {
        first_s: time(first)?,
        since_s: time(since)?,
        before_s: since.checked_sub(1).and_then(time),
        is_heading: matches!(kind, TextKind::Title | TextKind::Heading),
        text: text.to_owned(),
    })
}
