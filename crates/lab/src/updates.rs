//! Update logs: when pages truly changed, cut into slots.
//!
//! One line per page, separated by tabs: `page_id path source_id start end updates`, times in
//! seconds since the epoch, updates ascending and separated by commas; plain or zstd-compressed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::LabError;

/// A longer line is not a page: a page that changed every minute of two years is shorter.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// Times from here on, in the year 5138, are taken for milliseconds.
const LATEST_S: i64 = 100_000_000_000;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How a log is cut into slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The width of a slot; updates in one slot count once.
    pub resolution_s: i64,
    /// The length of the window, counted back from each source's end.
    pub days: i64,
    /// A page takes part if it has at least this many update slots after its first visit.
    pub min_updates: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { resolution_s: 86_400, days: 365, min_updates: 2 }
    }
}

/// A page with its updates in slots of its source's window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedPage {
    /// The page's number in the log.
    pub id: u64,
    /// The path, which gives the directory.
    pub path: String,
    /// The source it belongs to: a server.
    pub source: u32,
    /// The slot of the first visit: the window's first, or the page's creation.
    pub first_slot: u32,
    /// The slot after the last: the window's end, or the page's deletion.
    pub end_slot: u32,
    /// Slots with an update after the first visit, ascending.
    pub updates: Vec<u32>,
}

impl LoggedPage {
    /// Mean slots between updates, (last − first)/(n − 1), if there are two.
    pub fn mean_interval(&self) -> Option<f64> {
        let (first, last) = (self.updates.first()?, self.updates.last()?);
        let gaps = self.updates.len().checked_sub(1).filter(|&gaps| gaps > 0)?;
        Some(f64::from(last - first) / gaps as f64)
    }
}

/// The pages of one or more logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateLog {
    /// How it was cut.
    pub window: Window,
    /// The pages that take part, in the logs' order.
    pub pages: Vec<LoggedPage>,
    /// Pages that do not take part: too few of their updates are in the window.
    pub left_out: usize,
}

/// A page with the times of its updates: a line of a log.
pub(crate) struct RawPage {
    pub(crate) id: u64,
    pub(crate) path: String,
    pub(crate) source: u32,
    pub(crate) start_s: i64,
    pub(crate) end_s: i64,
    pub(crate) updates_s: Vec<i64>,
    pub(crate) is_static: bool,
}

impl UpdateLog {
    /// Reads the log of changing pages and, if given, the one of static pages, which take part
    /// whatever their number of updates.
    ///
    /// # Errors
    /// [`LabError::File`] when a log cannot be read, [`LabError::Log`] when a line is malformed,
    /// [`LabError::Setting`] when the window makes no sense.
    pub fn read(log: &Path, statics: Option<&Path>, window: Window) -> Result<Self, LabError> {
        let mut raw = Vec::new();
        read_lines(log, false, &mut raw)?;
        if raw.is_empty() {
            let what = format!("{} is empty: it has no page", log.display());
            return Err(LabError::Input { what });
        }
        if let Some(statics) = statics {
            read_lines(statics, true, &mut raw)?;
        }
        Self::cut(raw, window)
    }

    /// Cuts pages into slots, each within the window of its source.
    pub(crate) fn cut(raw: Vec<RawPage>, window: Window) -> Result<Self, LabError> {
        if window.resolution_s < 60 || window.days < 1 {
            let problem = "slots of at least a minute and a window of at least a day".to_owned();
            return Err(LabError::Setting { setting: "--resolution and --days", problem });
        }
        let mut ends_s = BTreeMap::<u32, (i64, i64)>::new();
        for page in &raw {
            let (start_s, end_s) = ends_s.entry(page.source).or_insert((i64::MAX, 0));
            *start_s = page.start_s.min(*start_s);
            *end_s = page.end_s.max(*end_s);
        }
        let all = raw.len();
        let pages: Vec<LoggedPage> = raw
            .into_iter()
            .filter_map(|page| {
                let span_s = ends_s.get(&page.source).copied()?;
                page.cut(span_s, window)
            })
            .collect();
        let left_out = all - pages.len();
        Ok(Self { window, pages, left_out })
    }

    /// Refuses a log on which nothing can be measured.
    ///
    /// # Errors
    /// [`LabError::Input`] with the reason and the way out.
    pub fn check(&self) -> Result<(), LabError> {
        let what = match (self.pages.is_empty(), self.versions()) {
            (true, _) => format!(
                "the log has no page with at least {} updates in the last {} days of its source; \
                 give a log with more updates, or more --days",
                self.window.min_updates, self.window.days
            ),
            (false, 0) => format!(
                "no update of the log is in the last {} days of its source; give more --days",
                self.window.days
            ),
            (false, _) => return Ok(()),
        };
        Err(LabError::Input { what })
    }

    /// Slots of the window.
    pub fn slots(&self) -> u32 {
        self.pages.iter().map(|page| page.end_slot).max().unwrap_or(0)
    }

    /// All versions after the first visits.
    pub fn versions(&self) -> u64 {
        self.pages.iter().map(|page| page.updates.len() as u64).sum()
    }
}

impl UpdateLog {
    /// The kind of each source, by the most frequent kind of file in it: logs do not name it.
    pub fn categories(&self) -> BTreeMap<u32, &'static str> {
        let mut counts = BTreeMap::<u32, BTreeMap<&'static str, usize>>::new();
        for page in &self.pages {
            *counts.entry(page.source).or_default().entry(kind_of(&page.path)).or_default() += 1;
        }
        let most = |kinds: BTreeMap<&'static str, usize>| {
            kinds.into_iter().max_by_key(|(_, count)| *count).map_or("other", |(kind, _)| kind)
        };
        counts.into_iter().map(|(source, kinds)| (source, most(kinds))).collect()
    }
}

fn kind_of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html" | "htm" | "xhtml" | "php") => "web pages",
        Some("md" | "rst" | "adoc" | "txt" | "tex") => "documents",
        Some("json" | "toml" | "yml" | "yaml" | "xml" | "rb" | "csv") => "records",
        _ => "other",
    }
}

impl RawPage {
    /// The page in slots of its source's window, if it takes part.
    fn cut(self, (start_s, end_s): (i64, i64), window: Window) -> Option<LoggedPage> {
        let slot_of = |at_s: i64| at_s.div_euclid(window.resolution_s);
        let window_start_s =
            (end_s - window.days * 86_400).max(start_s - start_s.rem_euclid(86_400));
        let origin = slot_of(window_start_s);
        let slot = |at_s: i64| (slot_of(at_s) - origin).max(0);
        let (first, end) = (slot(self.start_s), slot(self.end_s));
        let mut updates: Vec<u32> = self
            .updates_s
            .iter()
            .map(|&at_s| slot(at_s))
            .filter(|&slot| first < slot && slot < end)
            .filter_map(|slot| u32::try_from(slot).ok())
            .collect();
        updates.dedup();
        let takes_part = self.is_static || updates.len() >= window.min_updates;
        (takes_part && end > first).then_some(LoggedPage {
            id: self.id,
            path: self.path,
            source: self.source,
            first_slot: u32::try_from(first).ok()?,
            end_slot: u32::try_from(end).ok()?,
            updates,
        })
    }
}

fn read_lines(path: &Path, is_static: bool, pages: &mut Vec<RawPage>) -> Result<(), LabError> {
    let mut lines = open(path).map_err(LabError::file("read", path))?;
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        let mut limited = lines.by_ref().take(MAX_LINE_BYTES);
        let read = limited.read_line(&mut text).map_err(LabError::file("read", path))?;
        if read == 0 {
            break;
        }
        let page = parse_line(text.trim_end_matches(['\n', '\r']), is_static);
        let bad = |problem| LabError::Log { path: path.to_owned(), line, problem };
        pages.push(page.map_err(bad)?);
    }
    Ok(())
}

fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::new(File::open(path)?);
    if file.fill_buf()?.starts_with(&ZSTD_MAGIC) {
        return Ok(Box::new(BufReader::new(zstd::Decoder::with_buffer(file)?)));
    }
    Ok(Box::new(file))
}

fn parse_line(line: &str, is_static: bool) -> Result<RawPage, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [id, path, source, start, end, updates] = fields.as_slice() else {
        return Err(format!("{} fields", fields.len()));
    };
    let number = |text: &str| match text.parse::<i64>() {
        Ok(at_s) if at_s.abs() < LATEST_S => Ok(at_s),
        Ok(_) => Err(format!("'{text}' looks like milliseconds; times are seconds since 1970")),
        Err(_) => Err(format!("'{text}' is not a number")),
    };
    let updates_s = updates
        .split(',')
        .filter(|text| !text.is_empty())
        .map(number)
        .collect::<Result<Vec<i64>, String>>()?;
    if updates_s.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err("updates are not ascending".to_owned());
    }
    Ok(RawPage {
        id: id.parse().map_err(|_| format!("'{id}' is not a page number"))?,
        path: (*path).to_owned(),
        source: source.parse().map_err(|_| format!("'{source}' is not a source number"))?,
        start_s: number(start)?,
        end_s: number(end)?,
        updates_s,
        is_static,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn cut(start: i64, end: i64, updates: &[i64]) -> Option<LoggedPage> {
        let raw = RawPage {
            id: 1,
            path: "a/b".to_owned(),
            source: 1,
            start_s: start,
            end_s: end,
            updates_s: updates.to_vec(),
            is_static: false,
        };
        raw.cut((0, 400 * DAY), Window::default())
    }

    #[test]
    fn updates_count_once_per_slot_and_only_after_the_first_visit() {
        let at = |day: i64, hour: i64| (35 + day) * DAY + hour * 3_600;
        let page = cut(0, 400 * DAY, &[at(-3, 0), at(0, 5), at(2, 1), at(2, 9), at(7, 0)]).unwrap();
        assert_eq!((page.first_slot, page.end_slot), (0, 365));
        assert_eq!(page.updates, [2, 7]);
        assert_eq!(page.mean_interval(), Some(5.0));
    }

    #[test]
    fn a_page_is_known_from_its_creation_to_its_deletion() {
        let page = cut(45 * DAY + 5, 100 * DAY + 9, &[45 * DAY + 5, 50 * DAY, 60 * DAY]).unwrap();
        assert_eq!((page.first_slot, page.end_slot), (10, 65));
        assert_eq!(page.updates, [15, 25]);
    }

    #[test]
    fn a_page_with_one_update_takes_no_part() {
        assert_eq!(cut(0, 400 * DAY, &[50 * DAY]), None);
    }

    #[test]
    fn pages_with_too_few_updates_are_counted_and_static_ones_take_part() {
        let dir = tempfile::tempdir().unwrap();
        let (path, statics) = (dir.path().join("log.tsv"), dir.path().join("static.tsv"));
        std::fs::write(&path, "1\ta\t1\t0\t864000\t100000,200000\n2\tb\t1\t0\t864000\t\n").unwrap();
        std::fs::write(&statics, "2\tb\t1\t0\t864000\t\n").unwrap();
        let log = UpdateLog::read(&path, None, Window::default()).unwrap();
        assert_eq!((log.pages.len(), log.left_out), (1, 1));
        let log = UpdateLog::read(&path, Some(&statics), Window::default()).unwrap();
        assert_eq!((log.pages.len(), log.left_out), (2, 1));
    }

    #[test]
    fn a_malformed_line_is_named_by_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.tsv");
        std::fs::write(&path, "1\ta\t1\t0\t9\t1,2\n1\ta\t1\t0\t9\t2,x\n").unwrap();
        let error = UpdateLog::read(&path, None, Window::default()).unwrap_err().to_string();
        assert!(error.contains("log.tsv line 2: 'x' is not a number"), "{error}");
    }
}
