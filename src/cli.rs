//! The command line.

mod reading;
mod sites;
mod transfer;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use nenrin_archive::{Edge, parse_date};
use nenrin_lab::{
    experiment::{BudgetArgs, CrawlArgs, OrderArgs, RevisitArgs, StorageArgs, StructureArgs},
    workers::WorkersArgs,
};

pub(crate) use self::{reading::*, sites::*, transfer::*};

/// The end of every `--help`.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done · 1 part of the work failed; the message says which · 2 bad \
usage, configuration or input · 3 no space (disk or quota) · 4 the archive is damaged · \
130 interrupted, state saved.";

/// Head of the options that every command has; a command's own come first.
const EVERYWHERE: &str = "Options of every command";

/// Nenrin (年輪, "tree rings"): a continuous web archive. It visits websites again and again, keeps
/// every version while storing only what is new, and shows any site as of any date.
#[derive(Debug, Parser)]
#[command(version = env!("NENRIN_VERSION"), after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    /// The archive's folder; created on first use.
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "NENRIN_ARCHIVE",
        default_value = "./nenrin-data",
        value_name = "DIR"
    )]
    pub archive: PathBuf,
    /// A state that several workers share, in PostgreSQL; --archive is then a cache of this machine.
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "NENRIN_STATE",
        value_name = "postgres://…",
        requires = "content",
        hide_env_values = true
    )]
    pub state: Option<String>,
    /// Where the content of a shared archive is kept: a bucket, or a folder as file:///folder.
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "NENRIN_CONTENT",
        value_name = "s3://BUCKET/PREFIX",
        requires = "state"
    )]
    pub content: Option<String>,
    /// Into how many parts a new shared archive is divided; each is held by one worker at a time.
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "NENRIN_PARTITIONS",
        value_name = "N",
        default_value_t = 16
    )]
    pub partitions: u32,
    /// A configuration file (TOML); `nenrin config` shows what can be set.
    #[arg(long, global = true, help_heading = EVERYWHERE, env = "NENRIN_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Answer in JSON on standard output: one document, or one line per item of a list.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// Write more messages to standard error; twice for everything.
    #[arg(short, long, global = true, help_heading = EVERYWHERE, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Format of log lines on standard error: text, or json with one document per line.
    #[arg(
        long,
        global = true,
        help_heading = EVERYWHERE,
        env = "NENRIN_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    pub log_format: LogFormat,
    #[command(subcommand)]
    pub command: Command,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The main job: collects every site that is due until you stop it, and serves interface and replay.
    #[command(after_help = example("nenrin run"))]
    Run(ServeArgs),
    /// Collects a small changing website of its own, without internet, to try the program.
    #[command(after_help = example("nenrin demo"))]
    Demo(DemoArgs),
    /// Collects one round of each URL's site now, registering new sites, and stops.
    #[command(after_help = example("nenrin collect https://example.com/ --depth 3"))]
    Collect(CollectArgs),
    /// Registers, lists, changes and removes sites.
    #[command(subcommand, after_help = example("nenrin site list"))]
    Site(SiteCommand),
    /// Shows the collection log: rounds, or with --visits every single visit.
    #[command(after_help = example("nenrin log --site example.com"))]
    Log(LogArgs),
    /// Lists known pages: visits, changes, estimated rate, when each is due and why.
    #[command(after_help = example("nenrin pages --site example.com"))]
    Pages(PagesArgs),
    /// Lists the versions of a page.
    #[command(after_help = example("nenrin versions https://example.com/"))]
    Versions(VersionsArgs),
    /// Writes a version of a page to standard output, as it was received.
    #[command(after_help = example("nenrin cat https://example.com/ --at 2024-03-01"))]
    Cat(CatArgs),
    /// Lists pages that are new, have changed or are gone, with the line that says most about each.
    #[command(after_help = example("nenrin changes --since 7d --site example.com"))]
    Changes(ChangesArgs),
    /// Shows what changed between two versions of a page, or with --site between two dates of a site.
    #[command(after_help = example("nenrin diff https://example.com/ --from 2024-03-01 --to 2024-04-01\n         nenrin diff --site example.com 2024-03-01 2024-04-01"))]
    Diff(DiffArgs),
    /// Finds pages by their text, title and address, and says from when to when it was there.
    #[command(after_help = example("nenrin search tree rings --site example.com --appeared 2024-01..2024-03"))]
    Search(SearchArgs),
    /// Shows the text of a page, each block with the time it was first seen.
    #[command(after_help = example("nenrin blame https://example.com/ --at 2024-03-01"))]
    Blame(BlameArgs),
    /// Watches parts of pages, and sends messages when they change.
    #[command(subcommand, after_help = example("nenrin watch add https://example.com/shop --selector p.price --below 100"))]
    Watch(WatchCommand),
    /// Serves the interface and replay, without collecting.
    #[command(after_help = example("nenrin serve"))]
    Serve(ServeArgs),
    /// Imports existing collections.
    #[command(subcommand, after_help = example("nenrin import mirror ./site --url https://example.com/ --at 2024-03-01"))]
    Import(ImportCommand),
    /// Exports the archive in other formats.
    #[command(subcommand, after_help = example("nenrin export mirror --at 2024-03-01 -o ./site"))]
    Export(ExportCommand),
    /// Shows pages, visits, versions and bytes, per site and in total.
    #[command(after_help = example("nenrin stats --json"))]
    Stats,
    /// Shows the workers of a shared archive, who holds which partition, and what waits there.
    #[command(after_help = example("nenrin workers --state postgres://… --content s3://bucket/prefix"))]
    Workers,
    /// Checks the archive for damage.
    #[command(after_help = example("nenrin verify --deep"))]
    Verify(VerifyArgs),
    /// Rebuilds the indexes from the packs.
    #[command(after_help = example("nenrin reindex"))]
    Reindex {
        /// Rebuild the search index instead.
        #[arg(long)]
        search: bool,
    },
    /// Compresses what was collected further, and frees the space of deleted versions.
    #[command(after_help = example("nenrin compact"))]
    Compact,
    /// Copies an archive in a folder into one that workers share (--state, --content), or back, and
    /// compares both. Cut short, it goes on when it is run again.
    #[command(after_help = example("nenrin migrate --from ./nenrin-data --state postgres://… --content s3://bucket/prefix"))]
    Migrate(MigrateArgs),
    /// Looks at the machine, the configuration and the archive, and says what to do.
    #[command(after_help = example("nenrin doctor"))]
    Doctor,
    /// Copies the archive into a folder or a bucket, also while `nenrin run` goes on; the next time only
    /// what is new. The copy in a folder is an archive that opens as it is.
    #[command(after_help = example("nenrin backup /mnt/disk/archive"))]
    Backup(BackupArgs),
    /// Thins out old versions: keeps all for a while, then one per day, week or month. The first and the
    /// newest version of every page stay.
    #[command(after_help = example("nenrin prune example.com --keep-all-for 30d --then one-per-day:90d --then one-per-month --dry-run"))]
    Prune(PruneArgs),
    /// Prints a script that completes commands, options, sites and policies in your shell.
    #[command(after_help = example("source <(nenrin completions bash)"))]
    Completions {
        /// bash, zsh, fish, elvish or powershell.
        #[arg(value_name = "SHELL")]
        shell: String,
    },
    /// Writes man pages, completions, commands, exit codes, settings, metrics and the API as files.
    #[command(after_help = example("nenrin reference -o ./reference"))]
    Reference {
        /// The folder to write to.
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
    },
    /// Prints the configuration in effect, with the reason for each default.
    #[command(after_help = example("nenrin config"))]
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Runs the papers' experiments on the program's own code.
    #[command(subcommand, after_help = example("nenrin lab crawl --servers 200 --pages 50"))]
    Lab(LabCommand),
}

fn example(command: &str) -> String {
    format!("Example: {command}\n\n{EXIT_CODES}")
}

#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// Addresses where collecting begins; https is assumed if there is no scheme.
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    #[command(flatten)]
    pub(crate) conditions: ConditionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where the interface listens [default: serve.interface].
    #[arg(long, value_name = "ADDRESS")]
    pub interface: Option<String>,
    /// Where replay listens [default: serve.replay].
    #[arg(long, value_name = "ADDRESS")]
    pub replay: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Rounds collected before the interface is offered.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Stop after collecting instead of serving.
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Read every version and compare it with its digest.
    #[arg(long)]
    pub deep: bool,
    /// First repair damaged packs, as far as their parity allows.
    #[arg(long)]
    pub repair: bool,
    /// Take versions that cannot be read any more off the lists, so that the archive is sound again. If
    /// you have a backup of the damaged files, restore it first instead.
    #[arg(long)]
    pub accept_loss: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Sends a test letter by the settings of [mail].
    #[command(after_help = example("nenrin --config nenrin.toml config test-mail"))]
    TestMail,
    /// Asks for a password, or reads it from standard input, and writes its hash into the
    /// configuration file, which --config must name.
    #[command(after_help = example("nenrin --config nenrin.toml config set-password"))]
    SetPassword(SetPasswordArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetPasswordArgs {
    /// A password for people who may read but change nothing.
    #[arg(long)]
    pub reader: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// The crawler on a simulated web for a simulated time, with faults; checked against its laws.
    #[command(after_help = example("nenrin lab crawl --servers 200 --pages 50"))]
    Crawl(CrawlArgs),
    /// Compares crawl orders on a link graph: which new page first (paper 003).
    #[command(after_help = example("nenrin lab order --synthetic 100000 --out ./report"))]
    Order(OrderArgs),
    /// Compares revisit policies on an update log: when to visit again (paper 004).
    #[command(after_help = example("nenrin lab revisit --log updates.tsv.zst --compare --policy auto 'nutch(7d)'"))]
    Revisit(RevisitArgs),
    /// Compares allocations of a visit budget: how many visits each page gets (paper 002).
    #[command(after_help = example("nenrin lab budget --log updates.tsv.zst --visits-per-day 3000"))]
    Budget(BudgetArgs),
    /// Compares methods of finding changed parts of a server, on mirrors or generated servers (paper 000).
    #[command(after_help = example("nenrin lab structure --synthetic --out ./report"))]
    Structure(StructureArgs),
    /// Compares the size of our archive with other ways of storing visits (paper 001).
    #[command(after_help = example("nenrin lab storage --corpus ./visits --out ./report"))]
    Storage(StorageArgs),
    /// Many workers on a shared archive, some of them killed or stopped: who asks which server when.
    #[command(after_help = example("nenrin lab workers --workers 100 --servers 1000000"))]
    Workers(WorkersArgs),
}

fn first_second(text: &str) -> Result<i64, String> {
    parse_date(text, Edge::First)
}

pub(crate) fn last_second(text: &str) -> Result<i64, String> {
    parse_date(text, Edge::Last)
}
