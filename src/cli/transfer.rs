//! Ways in and out of the archive: import, export, backup, and moving it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use nenrin_state::Bytes;

use super::{example, first_second, last_second};
use crate::completions::sites;

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct MigrateArgs {
    /// The folder of the archive to copy into the shared one.
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// The folder of the archive to copy the shared one into.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Imports a folder (a wget or HTTrack mirror, a published site) as one visit of that site.
    #[command(after_help = example("nenrin import mirror ./site --url https://example.com/ --at 2024-03-01"))]
    Mirror(ImportMirrorArgs),
    /// Imports WARC and ARC files (plain, gzip or zstd) and WACZ packages: captures become versions.
    #[command(visible_alias = "wacz", after_help = example("nenrin import warc crawl-2024.warc.gz"))]
    Warc(ImportWarcArgs),
    /// Learns how often pages change from dates and digests alone: the CDX or CDXJ index of another
    /// archive, an update log or a sitemap (plain, gzip or zstd). It makes no versions.
    #[command(after_help = example("nenrin import history --site example.com index.cdxj"))]
    History(ImportHistoryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ImportHistoryArgs {
    /// The file; its kind is recognised by its first lines.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The site whose pages it is about; pages outside its scope are left out. Not needed if the
    /// archive has one site only.
    #[arg(long, value_name = "SITE", add = sites())]
    pub(crate) site: Option<String>,
    /// Where the paths of an update log begin; by default at the site's top page.
    #[arg(long, value_name = "BASE")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportWarcArgs {
    /// WARC, ARC or WACZ files, in any order.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The site that gets the captures; by default one named after the first file.
    #[arg(long, value_name = "SITE", add = sites())]
    pub(crate) site: Option<String>,
    /// Do not compare captures with the digests in the files.
    #[arg(long)]
    pub(crate) trust: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportMirrorArgs {
    /// The folder.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The URL of the folder.
    #[arg(long, value_name = "BASE")]
    pub(crate) url: String,
    /// The date of the visit; the files' own times become Last-Modified.
    #[arg(long, value_name = "DATE", value_parser = first_second)]
    pub(crate) at: i64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Writes sites as of a date as a folder of files.
    #[command(after_help = example("nenrin export mirror --at 2024-03-01 -o ./site"))]
    Mirror(ExportMirrorArgs),
    /// Writes sites as WARC 1.1 files: every version in full, unchanged visits as revisits.
    #[command(after_help = example("nenrin export warc --site example.com -o example.warc.gz"))]
    Warc(ExportWarcArgs),
    /// Writes sites as one WACZ package with index, pages and their text.
    #[command(after_help = example("nenrin export wacz --site example.com -o example.wacz"))]
    Wacz(ExportWaczArgs),
    /// Writes visits, versions, text, pages and links as Parquet files, for DuckDB, pandas or Spark. Into a
    /// folder of an earlier export it writes what is new.
    #[command(after_help = example("nenrin export parquet -o tables"))]
    Parquet {
        /// The folder to write into.
        #[arg(short, long, value_name = "DIR", required_unless_present = "folder")]
        output: Option<PathBuf>,
        /// The same, without `-o`.
        #[arg(value_name = "DIR", hide = true, conflicts_with = "output")]
        folder: Option<PathBuf>,
    },
    /// Writes a page as one HTML file with images, styles and fonts in it, without scripts.
    #[command(after_help = example("nenrin export page https://example.com/ --at 2024-03-01 -o page.html"))]
    Page(ExportPageArgs),
    /// Writes the CDXJ index of WARC files.
    #[command(after_help = example("nenrin export cdxj example.warc.gz -o index.cdxj"))]
    Cdxj(ExportCdxjArgs),
}

/// What is exported.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Only this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub(crate) site: Option<String>,
    /// Only pages whose URL begins with this.
    #[arg(long, value_name = "URL")]
    pub(crate) prefix: Option<String>,
    /// Visited at or after this date.
    #[arg(long, value_name = "DATE", value_parser = first_second)]
    pub(crate) from: Option<i64>,
    /// Visited at or before this date.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub(crate) to: Option<i64>,
    /// Digests by SHA-1, as older tools expect, instead of SHA-256.
    #[arg(long)]
    pub(crate) sha1: bool,
    /// Begin a new WARC file after this many bytes.
    #[arg(long, value_name = "BYTES", default_value = "1000000000")]
    pub(crate) roll: Bytes,
}

#[derive(Debug, Args)]
pub(crate) struct ExportWarcArgs {
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// The file to write: `.warc.gz`, `.warc.zst` or `.warc`.
    #[arg(short, long, value_name = "FILE", required_unless_present = "go_on")]
    pub(crate) output: Option<PathBuf>,
    /// Write only what an earlier export into this folder does not have, as further numbered files
    /// with their index. The first time, that is everything.
    #[arg(long = "continue", value_name = "DIR", conflicts_with_all = ["output", "references", "cdxj"])]
    pub(crate) go_on: Option<PathBuf>,
    /// Write no content from before --from, and list what is left out in FILE.requires.jsonl.
    #[arg(long)]
    pub(crate) references: bool,
    /// Also write an index: FILE.cdxj.
    #[arg(long)]
    pub(crate) cdxj: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportWaczArgs {
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A title for the package; the site's name by default.
    #[arg(long)]
    pub(crate) title: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportPageArgs {
    /// The page.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// As of this date; now by default.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub(crate) at: Option<i64>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ExportCdxjArgs {
    /// WARC files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The index to write; `.cdx.gz` and `.cdxj.gz` get an `.idx` beside them. Standard output by
    /// default.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportMirrorArgs {
    /// As of this date.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub(crate) at: i64,
    /// Only this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub(crate) site: Option<String>,
    /// The folder to write to.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The folder of the copy, or s3://BUCKET/PREFIX (`?endpoint=URL` for a server other than Amazon's;
    /// keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY).
    #[arg(value_name = "DEST")]
    pub(crate) target: String,
    /// Copy the backup back to where --archive says; there must be no archive yet.
    #[arg(long)]
    pub(crate) restore: bool,
}
