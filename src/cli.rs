//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use nenrin_archive::{Edge, GivenLogin, Span, changes::ChangeKind, parse_date};
use nenrin_lab::{
    experiment::{BudgetArgs, CrawlArgs, OrderArgs, RevisitArgs, StorageArgs, StructureArgs},
    workers::WorkersArgs,
};
use nenrin_revisit::PolicySpec;
use nenrin_state::{Bytes, Removal, ScheduleBy, Thinning};
use nenrin_structure::RoundsBy;
use nenrin_urls::Scope;

use crate::completions::{policies, sites};

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
    #[arg(long, default_value_t = 20)]
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

#[derive(Debug, Subcommand)]
pub(crate) enum SiteCommand {
    /// Registers a site; `nenrin run` collects it.
    #[command(after_help = example("nenrin site add https://example.com/ --exclude '/comments/*'"))]
    Add(SiteAddArgs),
    /// Lists all sites.
    #[command(after_help = example("nenrin site list"))]
    List,
    /// Shows one site and its conditions.
    #[command(after_help = example("nenrin site show example.com"))]
    Show(SiteName),
    /// Shows a site's index pages, what changed together, and what the last round left out and why.
    #[command(after_help = example("nenrin site structure example.com"))]
    Structure(SiteName),
    /// Changes a site's conditions.
    #[command(after_help = example("nenrin site set example.com --visits-per-day 500"))]
    Set(SiteSetArgs),
    /// Opens a browser window in which you log in to a site; its pages are visited with that log-in.
    #[command(after_help = example("nenrin site login example.com"))]
    Login(SiteName),
    /// Gives a site another name.
    #[command(after_help = example("nenrin site rename example.com 'Example, old'"))]
    Rename {
        /// The site's name or number.
        #[arg(value_name = "SITE", add = sites())]
        site: String,
        /// The new name.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Stops collecting a site until it is resumed.
    #[command(after_help = example("nenrin site pause example.com"))]
    Pause(SiteName),
    /// Resumes collecting a paused site.
    #[command(after_help = example("nenrin site resume example.com"))]
    Resume(SiteName),
    /// Removes a site in one of three ways, each including the ones before it.
    #[command(after_help = example("nenrin site remove example.com --how hide --reason 'it closed'"))]
    Remove(SiteRemoveArgs),
    /// Restores a hidden or denied site; it stays paused until it is resumed.
    #[command(after_help = example("nenrin site restore example.com --reason 'it is back'"))]
    Restore(SiteRestoreArgs),
    /// Lists removals and restorations, when and why.
    #[command(after_help = example("nenrin site removals"))]
    Removals,
}

#[derive(Debug, Args)]
pub(crate) struct SiteName {
    /// The site's name or number.
    #[arg(value_name = "SITE", add = sites())]
    pub site: String,
}

#[derive(Debug, Args)]
pub(crate) struct SiteAddArgs {
    /// Top pages.
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<String>,
    /// A name; the host by default.
    #[arg(long)]
    pub name: Option<String>,
    #[command(flatten)]
    pub conditions: ConditionArgs,
    #[command(flatten)]
    pub login: LoginArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SiteSetArgs {
    /// The site's name or number.
    #[arg(value_name = "SITE", add = sites())]
    pub site: String,
    #[command(flatten)]
    pub conditions: ConditionArgs,
    #[command(flatten)]
    pub login: LoginArgs,
}

/// The log-in of a site: files, so that no secret is part of a command.
#[derive(Debug, Default, Args)]
pub(crate) struct LoginArgs {
    /// Visit the site with the cookies of this cookies.txt; `none` forgets them.
    #[arg(long, value_name = "FILE")]
    pub cookies: Option<String>,
    /// Send the headers of this file to the servers of the top pages only, one in a line;
    /// `Basic: USER:PASSWORD` is HTTP Basic. `none` forgets them.
    #[arg(long, value_name = "FILE")]
    pub secret_headers: Option<String>,
    /// Where visitors are led who are not logged in; `none` for no such page.
    #[arg(long, value_name = "URL")]
    pub login_page: Option<String>,
}

impl LoginArgs {
    pub(crate) fn given(&self) -> GivenLogin<'_> {
        let (cookies, headers) = (self.cookies.as_deref(), self.secret_headers.as_deref());
        let page = self.login_page.as_deref();
        GivenLogin { cookies, headers, page, ..GivenLogin::default() }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SiteRemoveArgs {
    /// The site's name or number.
    #[arg(value_name = "SITE", add = sites())]
    pub site: String,
    /// hide: no longer listed and collected; deny: nobody can open it any more; delete: its content is
    /// deleted from storage, for ever.
    #[arg(long, value_name = "hide|deny|delete")]
    pub how: Removal,
    /// The reason; it is stored.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// To delete: the site's name, to confirm.
    #[arg(long, value_name = "SITE")]
    pub confirm: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SiteRestoreArgs {
    /// The site's name or number.
    #[arg(value_name = "SITE", add = sites())]
    pub site: String,
    /// The reason; it is stored.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// The conditions of a site that were given.
#[derive(Debug, Default, Args)]
pub(crate) struct ConditionArgs {
    /// How many links are followed from a top page; the top page itself has depth 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Which pages belong to the site: list, prefix, host, domain or any.
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<Scope>,
    /// Visit at most this many pages in a round.
    #[arg(long, value_name = "N")]
    pub max_pages: Option<u64>,
    /// Time from the beginning of one round to the next.
    #[arg(long, value_name = "D")]
    pub period: Option<Span>,
    /// Collect only on request.
    #[arg(long, conflicts_with = "period")]
    pub manual: bool,
    /// Visit every page on its own schedule, without rounds.
    #[arg(long, conflicts_with_all = ["period", "manual"])]
    pub continuous: bool,
    /// When a page is visited again: auto, auto(fair=0.5), mle.mix(0.1-10,2nd=7d),
    /// aimd(d=1d,r=0.5), every(7d), nutch(7d), stormcrawler(7d,max=365d), budget(learn=40d) …
    #[arg(long, value_name = "POLICY", add = policies(), conflicts_with_all = ["period", "manual"])]
    pub policy: Option<PolicySpec>,
    /// Most visits a day on pages' own schedules; 0 for no limit.
    #[arg(long, value_name = "N", conflicts_with_all = ["period", "manual"])]
    pub visits_per_day: Option<u64>,
    /// Shortest time between two visits to a page.
    #[arg(long, value_name = "D", conflicts_with_all = ["period", "manual"])]
    pub min: Option<Span>,
    /// Longest time between two visits to a page.
    #[arg(long, value_name = "D", conflicts_with_all = ["period", "manual"])]
    pub max: Option<Span>,
    /// Other limits for some paths; the first that matches applies. Replaces all such rules, and `none`
    /// removes them. Example: --path '/news/* min=1h max=1d'
    #[arg(long = "path", value_name = "RULE", conflicts_with_all = ["period", "manual"])]
    pub paths: Vec<String>,
    /// When the site may be visited; several add up, and `always` removes them.
    /// Example: --window 'mon-fri 22:00-06:00 Asia/Tokyo'
    #[arg(long = "window", value_name = "HOURS")]
    pub windows: Vec<String>,
    /// Shortest pause between two requests to one server.
    #[arg(long, value_name = "D")]
    pub delay: Option<Span>,
    /// Collect only pages that fit this pattern (* is anything), such as '/news/*'; several add up,
    /// and `all` removes them.
    #[arg(long = "include", value_name = "PATTERN")]
    pub includes: Vec<String>,
    /// Collect no pages that fit this pattern; several add up, and `none` removes them.
    #[arg(long = "exclude", value_name = "PATTERN")]
    pub excludes: Vec<String>,
    /// A header for requests to the site's own servers; `none` removes them.
    /// Example: --header 'Accept-Language: en'
    #[arg(long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Render pages in Chromium: auto (where a trial shows that it helps), never or always; for some
    /// pages with a pattern in front: '/app/* always'. Several add up.
    #[arg(long, value_name = "WHEN")]
    pub render: Vec<String>,
    /// Collect strings in scripts that look like addresses of files.
    #[arg(long, value_name = "BOOL")]
    pub likely_urls: Option<bool>,
    /// The proxy for the site: http://host:3128, socks5://…, socks5h://… (the proxy looks names up),
    /// `direct` for none, `usual` for the archive's.
    #[arg(long, value_name = "PROXY")]
    pub proxy: Option<String>,
    /// The address of this machine to send from; `usual` lets the system choose.
    #[arg(long, value_name = "ADDRESS")]
    pub source: Option<String>,
    /// Accept any certificate from the site's own servers, for this reason, which is stored; `none`
    /// checks them again.
    #[arg(long, value_name = "REASON")]
    pub any_certificate: Option<String>,
    /// The group in which the site is listed; empty for none.
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Tags of the site, with commas between; empty for none.
    #[arg(long, value_name = "TAGS")]
    pub tags: Option<String>,
    /// Collect images, styles and scripts from any host.
    #[arg(long, value_name = "BOOL")]
    pub embeds: Option<bool>,
    /// Allow private and loopback addresses.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub allow_private: Option<bool>,
    /// Ignore robots.txt, for this reason, which is stored.
    #[arg(long, value_name = "REASON")]
    pub ignore_robots: Option<String>,
    /// Let sitemaps and feeds add pages, and visit changed pages sooner.
    #[arg(long, value_name = "BOOL")]
    pub signals: Option<bool>,
    /// Pause the site while its versions take this much space in the packs: 10GB, 500MiB; 0 for no
    /// quota.
    #[arg(long, value_name = "BYTES")]
    pub quota: Option<Bytes>,
    /// Thin out old versions when idle: 30d,day:90d,month keeps all for 30 days, then one per day
    /// until 90 days old, then one per month; `none` keeps all.
    #[arg(long, value_name = "RULE")]
    pub prune: Option<String>,
    /// Which changes count for the schedule: any, or significant (without counters, dates and so on).
    #[arg(long, value_name = "CHANGES")]
    pub schedule_by: Option<ScheduleBy>,
    /// Which pages a round visits: all, structure(A), structure(B), structure(C) or structure(auto).
    #[arg(long, value_name = "METHOD", conflicts_with_all = ["continuous", "policy"])]
    pub rounds_by: Option<RoundsBy>,
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
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct PagesArgs {
    /// Only this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// Most pages listed.
    #[arg(long, value_name = "N")]
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

#[derive(Debug, Args)]
pub(crate) struct ChangesArgs {
    /// Only this site.
    #[arg(long, value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// How far back: 12h, 7d, 52w.
    #[arg(long, value_name = "D", default_value = "7d")]
    pub since: Span,
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
    #[arg(long, value_name = "N", default_value_t = 100)]
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
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,
    /// As of this date; the version before the newest by default.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub from: Option<i64>,
    /// As of this date; now by default.
    #[arg(long, value_name = "DATE", value_parser = last_second)]
    pub to: Option<i64>,
    /// Lines shown around a change.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub context: usize,
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
    /// The site whose pages it is about; pages outside its scope are left out.
    #[arg(long, value_name = "SITE", add = sites())]
    pub(crate) site: String,
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
    #[command(after_help = example("nenrin export parquet tables"))]
    Parquet {
        /// The folder to write into.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
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

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// The site's name or number; every site by default.
    #[arg(value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// Keep all versions younger than this. Without it, each site's own rule applies (`site set
    /// --prune`).
    #[arg(long, value_name = "D", requires = "then")]
    pub keep_all_for: Option<Span>,
    /// How older versions are thinned out: one-per-day, one-per-week or one-per-month; every step
    /// but the last needs the age until which it applies, as in one-per-day:90d.
    #[arg(long, value_name = "ONE-PER", requires = "keep_all_for")]
    pub then: Vec<Thinning>,
    /// Only show what would be deleted.
    #[arg(long)]
    pub dry_run: bool,
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
        #[arg(value_name = "NUMBER")]
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
    #[arg(long, value_name = "N", requires = "selector", default_value_t = 0)]
    pub nth: u32,
    /// Report only when the part appears.
    #[arg(long, group = "on")]
    pub appears: bool,
    /// Report only when the part vanishes.
    #[arg(long, group = "on")]
    pub vanishes: bool,
    /// Report when the part's first number rises above this.
    #[arg(long, value_name = "NUMBER", group = "on", allow_negative_numbers = true)]
    pub above: Option<f64>,
    /// Report when the part's first number falls below this.
    #[arg(long, value_name = "NUMBER", group = "on", allow_negative_numbers = true)]
    pub below: Option<f64>,
    /// A name for messages.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub name: String,
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
