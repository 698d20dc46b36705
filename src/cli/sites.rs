//! Sites: registering and removing them, their conditions, and what is kept of them.

use clap::{Args, Subcommand};
use nenrin_archive::{GivenLogin, Span};
use nenrin_revisit::PolicySpec;
use nenrin_state::{Bytes, Removal, ScheduleBy, Thinning};
use nenrin_structure::RoundsBy;
use nenrin_urls::Scope;

use super::{example, reading::whole};
use crate::completions::{policies, sites};

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

fn depth(text: &str) -> Result<u32, String> {
    whole(text).and_then(
        |depth| if depth > 0 { Ok(depth) } else { Err("the top page has depth 1".into()) },
    )
}

/// The conditions of a site that were given.
#[derive(Debug, Default, Args)]
pub(crate) struct ConditionArgs {
    /// How many links are followed from a top page; the top page itself has depth 1.
    #[arg(long, value_name = "N", value_parser = depth)]
    pub depth: Option<u32>,
    /// Which pages belong to the site: list, prefix, host, domain or any.
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<Scope>,
    /// Visit at most this many pages in a round.
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
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
    #[arg(long, value_name = "N", conflicts_with_all = ["period", "manual"], value_parser = whole::<u64>)]
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
pub(crate) struct PruneArgs {
    /// The site's name or number; every site by default.
    #[arg(value_name = "SITE", add = sites())]
    pub site: Option<String>,
    /// The same, as other commands take it.
    #[arg(long = "site", value_name = "SITE", hide = true, conflicts_with = "site")]
    pub named_site: Option<String>,
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
