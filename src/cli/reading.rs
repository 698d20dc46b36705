//! Looking at what is archived, and watching it.

use clap::{Args, Subcommand};
use nenrin_archive::{Since, changes::ChangeKind};

use super::{example, first_second, last_second};
use crate::completions::sites;

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words, "phrases", beginnings*, a OR b, title:, url:, type:, lang:, and after -- also -without.
    pub words: Vec<String>,
    /// Only pages of this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// As of a date.
    #[arg(long, value_name = "DATE")]
    pub at: Option<String>,
    /// On the page at some time between two dates.
    #[arg(long, value_name = "DATE..DATE")]
    pub during: Option<String>,
    /// First seen on the page between two dates.
    #[arg(long, value_name = "DATE..DATE")]
    pub appeared: Option<String>,
    /// Removed from the page between two dates.
    #[arg(long, value_name = "DATE..DATE")]
    pub vanished: Option<String>,
    /// At most this many pages.
    #[arg(long, default_value_t = 20, value_parser = whole::<usize>)]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct BlameArgs {
    /// The page's address.
    pub url: String,
    /// As of this date; the newest version without it.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub at: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Only this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// Every visit instead of rounds.
    #[arg(long)]
    pub visits: bool,
    /// Most rows shown, newest first.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<usize>)]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PagesArgs {
    /// Only this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// Most pages listed.
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    pub limit: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct VersionsArgs {
    /// The page.
    #[arg(value_name = "URL")]
    pub url: String,
    /// Received at or after this date.
    #[arg(long, value_name = "DATE", value_parser = first_second)]
    pub from: Option<i64>,
    /// Received at or before this date.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub to: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The page.
    #[arg(value_name = "URL")]
    pub url: String,
    /// As of this date; now by default.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub at: Option<i64>,
    /// Write the response's status line and headers first.
    #[arg(long)]
    pub headers: bool,
    /// Undo the content coding (gzip, br, zstd, deflate) instead of writing the body as received.
    #[arg(long)]
    pub decode: bool,
}

/// A number without a fraction, not below 0.
pub(super) fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 on; write one like 20"))
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number; write one like 90 or 12.5"))
}

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// Only this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// How far back: 12h, 7d, 52w, or the date to begin at.
    #[arg(long, value_name = "D|DATE", default_value = "7d")]
    pub since: Since,
    /// Only this kind: new, changed or gone.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<ChangeKind>,
    /// Leave out pages of which only dates, counters and the like changed.
    #[arg(long)]
    pub significant: bool,
    /// Only where address, title or line have this text.
    #[arg(long, value_name = "TEXT")]
    pub text: Option<String>,
    /// Also list styles, scripts, fonts and files of other servers.
    #[arg(long)]
    pub all_files: bool,
    /// Most changes listed, newest first.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole::<usize>)]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The page; with --site two dates.
    #[arg(required = true, num_args = 1..=2, value_name = "URL | DATE DATE")]
    pub what: Vec<String>,
    /// Compare all pages of this site on two dates.
    #[arg(long, value_name = "SITE", add = sites(), conflicts_with_all = ["from", "to"])]
    pub site: Option<String>,
    /// With --site: also styles, scripts, fonts and files of other servers.
    #[arg(long, requires = "site")]
    pub all_files: bool,
    /// With --site: most pages listed.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = whole::<usize>)]
    pub limit: usize,
    /// As of this date; the version before the newest by default.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub from: Option<i64>,
    /// As of this date; now by default.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub to: Option<i64>,
    /// Lines shown around a change.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<usize>)]
    pub context: usize,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WatchCommand {
    /// Watches a page, the line with some words, or elements; `nenrin run` reports by e-mail, webhook
    /// and feed.
    #[command(after_help = example("nenrin watch add https://example.com/shop --words 'in stock' --vanishes"))]
    Add(WatchAddArgs),
    /// Lists watches, what each found last, and which cannot be checked any more.
    #[command(after_help = example("nenrin watch list"))]
    List,
    /// Removes a watch.
    #[command(after_help = example("nenrin watch remove 3"))]
    Remove {
        /// Its number, as `watch list` shows it.
        #[arg(value_name = "NUMBER", value_parser = whole::<u32>)]
        watch: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WatchAddArgs {
    /// The page.
    #[arg(value_name = "URL")]
    pub url: String,
    /// The line that has these words; without it and --selector, the whole text.
    #[arg(long, value_name = "TEXT", conflicts_with = "selector")]
    pub words: Option<String>,
    /// The elements that this CSS selector names.
    #[arg(long, value_name = "CSS")]
    pub selector: Option<String>,
    /// Which of them, from 1; all by default.
    #[arg(long, value_name = "N", requires = "selector", default_value_t = 0, value_parser = whole::<u32>)]
    pub nth: u32,
    /// Report only when the part appears.
    #[arg(long, group = "on")]
    pub appears: bool,
    /// Report only when the part vanishes.
    #[arg(long, group = "on")]
    pub vanishes: bool,
    /// Report when the part's first number rises above this.
    #[arg(long, value_name = "NUMBER", group = "on", allow_negative_numbers = true, value_parser = number)]
    pub above: Option<f64>,
    /// Report when the part's first number falls below this.
    #[arg(long, value_name = "NUMBER", group = "on", allow_negative_numbers = true, value_parser = number)]
    pub below: Option<f64>,
    /// A name for messages.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub name: String,
}
