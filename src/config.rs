//! The configuration: one TOML file, unknown fields refused, every default with its reason.

use std::{io::Read, path::Path};

use anyhow::Context;
use nenrin_archive::{LoginKey, Quotas, Span};
use nenrin_crawl::CrawlOptions;
use nenrin_fetch::{FetchOptions, certificates_in, system_certificates};
use nenrin_frontier::Politeness;
use nenrin_lang::SettingsFile;
use nenrin_notify::{MailSettings, Webhook};
use nenrin_order::{OrderError, Strategy};
use nenrin_render::RenderOptions;
use serde::{Deserialize, Serialize};

use nenrin_state::Bytes;

use crate::exit::usage;

/// The effective configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub contact: String,
    pub crawl: Crawl,
    pub politeness: Polite,
    pub fetch: Fetch,
    pub serve: Serve,
    pub state: State,
    pub disk: Disk,
    pub render: Render,
    pub search: SearchIndex,
    pub webhook: Vec<Webhook>,
    pub mail: MailSettings,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Crawl {
    pub parallel: usize,
    pub depth: u32,
    pub period: Span,
    pub redirects: u32,
    pub visits_per_day: u64,
    pub new_percent: u32,
    pub order: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Polite {
    pub delay: Span,
    pub response_factor: f64,
    pub crawl_delay_max: Span,
    pub rest_first: Span,
    pub rest_max: Span,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Fetch {
    pub accept_encoding: String,
    pub max_body: Bytes,
    pub memory: Bytes,
    pub connect_timeout: Span,
    pub idle_timeout: Span,
    pub total_timeout: Span,
    pub system_roots: bool,
    pub ca_files: Vec<String>,
    pub proxy: String,
    pub proxies: Vec<String>,
    pub source: String,
}

/// Whether names below replay's host name lead to replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReplayHosts {
    Auto,
    On,
    Off,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Serve {
    pub interface: String,
    pub replay: String,
    pub replay_origin: String,
    pub replay_hosts: ReplayHosts,
    pub origin: String,
    pub password: String,
    pub reader_password: String,
    pub public_reading: bool,
    pub host_names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct State {
    pub bucket: Span,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Disk {
    pub min_free: Bytes,
    pub quota: Bytes,
    pub site_quota: Bytes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Render {
    pub program: String,
    pub as_root: bool,
    pub page_timeout: Span,
    pub memory: Bytes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SearchIndex {
    pub index: bool,
}

impl Default for Render {
    fn default() -> Self {
        let (program, page_timeout) = (String::new(), Span::secs(30));
        Self { program, as_root: false, page_timeout, memory: Bytes(2 << 30) }
    }
}

impl Default for SearchIndex {
    fn default() -> Self {
        Self { index: true }
    }
}

impl Default for Crawl {
    fn default() -> Self {
        Self {
            parallel: 64,
            depth: nenrin_state::SiteConditions::DEFAULT_DEPTH,
            period: Span::secs(0),
            redirects: 20,
            visits_per_day: 0,
            new_percent: 0,
            order: "auto".to_owned(),
        }
    }
}

impl Default for Polite {
    fn default() -> Self {
        Self {
            delay: Span::secs(1),
            response_factor: 2.0,
            crawl_delay_max: Span::secs(300),
            rest_first: Span::secs(60),
            rest_max: Span::secs(86_400),
        }
    }
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            accept_encoding: "gzip".to_owned(),
            max_body: Bytes(2 << 30),
            memory: Bytes(64 << 20),
            connect_timeout: Span::secs(20),
            idle_timeout: Span::secs(30),
            total_timeout: Span::secs(600),
            system_roots: true,
            ca_files: Vec::new(),
            proxy: String::new(),
            proxies: Vec::new(),
            source: String::new(),
        }
    }
}

impl Default for Serve {
    fn default() -> Self {
        Self {
            interface: "127.0.0.1:8080".to_owned(),
            replay: "127.0.0.1:8081".to_owned(),
            replay_origin: "http://replay.localhost".to_owned(),
            replay_hosts: ReplayHosts::Auto,
            origin: String::new(),
            password: String::new(),
            reader_password: String::new(),
            public_reading: false,
            host_names: Vec::new(),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self { bucket: Span::secs(3600) }
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self { min_free: Bytes(512 << 20), quota: Bytes(0), site_quota: Bytes(0) }
    }
}

impl Serve {
    fn check(&self) -> anyhow::Result<()> {
        for (name, address) in [("interface", &self.interface), ("replay", &self.replay)] {
            anyhow::ensure!(
                address.parse::<std::net::SocketAddr>().is_ok(),
                "serve.{name} is `{address}`; write an address of this machine and a port, such as 127.0.0.1:8080"
            );
        }
        for (name, origin) in [("origin", &self.origin), ("replay_origin", &self.replay_origin)] {
            let is_web = origin.starts_with("http://") || origin.starts_with("https://");
            anyhow::ensure!(
                is_web || (name == "origin" && origin.is_empty()),
                "serve.{name} is `{origin}`; write one like https://archive.example.org"
            );
        }
        let hashes = [("password", &self.password), ("reader_password", &self.reader_password)];
        for (name, hash) in hashes {
            anyhow::ensure!(
                hash.is_empty() || hash.starts_with("$argon2"),
                "serve.{name} is not what `nenrin --config FILE config set-password` writes; a password itself \
                 is never in this file"
            );
        }
        Ok(())
    }
}

/// One setting, for a person.
#[derive(Debug, Serialize)]
pub(crate) struct Setting {
    pub name: &'static str,
    pub value: String,
    pub default: String,
    pub reason: &'static str,
}

/// The largest configuration: far more than all settings with their reasons.
const FILE_MAX_BYTES: u64 = 1 << 20;

fn read_limited(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text)? as u64 > FILE_MAX_BYTES {
        return Err(std::io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

impl Config {
    /// Reads a file; without one, the defaults.
    pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = read_limited(path)
            .with_context(|| {
                format!(
                    "cannot read the configuration {} (`nenrin config` prints one to start from)",
                    path.display()
                )
            })
            .map_err(usage)?;
        let names: Vec<_> = settings_with_reasons().map(|(name, _)| name).collect();
        let file = SettingsFile { file: path, text: &text, settings: &names };
        let config: Self = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            usage(anyhow::anyhow!(file.unreadable(error.message(), at)))
        })?;
        config
            .check()
            .map_err(|error| usage(anyhow::anyhow!(file.refused(&format!("{error:#}")))))?;
        Ok(config)
    }

    fn check(&self) -> anyhow::Result<()> {
        for webhook in &self.webhook {
            nenrin_urls::CanonicalUrl::parse(&webhook.url)
                .map_err(|error| anyhow::anyhow!("webhook.url `{}`: {error}", webhook.url))?;
            anyhow::ensure!(
                webhook.secret.len() >= 16,
                "webhook.secret of {} has fewer than 16 characters; anyone could guess it",
                webhook.url
            );
        }
        anyhow::ensure!(
            (1..=10_000).contains(&self.crawl.parallel),
            "crawl.parallel is {}; it must be between 1 and 10000",
            self.crawl.parallel
        );
        anyhow::ensure!(
            (0.0..=100.0).contains(&self.politeness.response_factor),
            "politeness.response_factor is {}; it must be between 0 and 100",
            self.politeness.response_factor
        );
        anyhow::ensure!(
            self.crawl.new_percent <= 99,
            "crawl.new_percent is {}; it must be between 1 and 99, or 0 to follow which have waited longer",
            self.crawl.new_percent
        );
        let order = self.order();
        anyhow::ensure!(
            order.as_ref().is_ok_and(|order| order.can_collect()),
            "crawl.order is `{}`; it must be one of {}",
            self.crawl.order,
            Strategy::ALL
                .into_iter()
                .filter(|order| order.can_collect())
                .map(Strategy::name)
                .collect::<Vec<_>>()
                .join(", "),
        );
        anyhow::ensure!(self.crawl.depth >= 1, "crawl.depth is 0; a top page alone has depth 1");
        anyhow::ensure!(
            self.contact.bytes().all(|b| (0x20..0x7f).contains(&b)),
            "contact contains characters that are not allowed in a request header"
        );
        anyhow::ensure!(self.fetch.memory.0 >= 16 << 20, "fetch.memory must be at least 16 MB");
        anyhow::ensure!(
            self.fetch.max_body.0 <= nenrin_store::MAX_BODY_BYTES,
            "fetch.max_body must be at most 4 GB, the largest that the archive takes"
        );
        self.mail.check()?;
        if self.fetch != Fetch::default() {
            nenrin_fetch::Fetcher::new(self.fetch_options()?)?;
        }
        anyhow::ensure!(self.state.bucket.as_s() >= 1, "state.bucket must be at least 1s");
        anyhow::ensure!(
            !self.render.page_timeout.0.is_zero(),
            "render.page_timeout must not be zero"
        );
        anyhow::ensure!(
            self.politeness.rest_first.0 <= self.politeness.rest_max.0,
            "politeness.rest_first is longer than politeness.rest_max"
        );
        self.serve.check()
    }

    /// The name under which servers see us.
    pub(crate) fn user_agent(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match self.contact.as_str() {
            "" => format!("Mozilla/5.0 (compatible; nenrin/{version})"),
            contact => format!("Mozilla/5.0 (compatible; nenrin/{version} +{contact})"),
        }
    }

    /// The fetcher's part.
    pub(crate) fn fetch_options(&self) -> anyhow::Result<FetchOptions> {
        let default = FetchOptions::default();
        let fetch = &self.fetch;
        let roots = fetch.ca_files.iter().map(|file| certificates_in(Path::new(file)));
        let roots = roots.collect::<Result<Vec<_>, _>>()?.concat();
        let proxy = |name: &str, text: &str| {
            let read = text.parse::<nenrin_urls::Proxy>();
            read.map_err(|why| anyhow::anyhow!("{name}: {why}"))
        };
        let all = Some(fetch.proxy.as_str()).filter(|text| !text.is_empty());
        let named = fetch.proxies.iter().map(|text| proxy("fetch.proxies", text));
        let source = Some(fetch.source.as_str()).filter(|text| !text.is_empty());
        // A shorter time for the whole request also shortens its steps: each gets at most a quarter.
        let share = self.fetch.total_timeout.0 / 4;
        Ok(FetchOptions {
            user_agent: self.user_agent(),
            accept_encoding: self.fetch.accept_encoding.clone(),
            dns_timeout: default.dns_timeout.min(share),
            connect_timeout: self.fetch.connect_timeout.0.min(share),
            tls_timeout: default.tls_timeout.min(share),
            head_timeout: default.head_timeout.min(share),
            idle_timeout: self.fetch.idle_timeout.0,
            total_timeout: self.fetch.total_timeout.0,
            max_body_bytes: self.fetch.max_body.0,
            extra_roots_der: roots,
            system_roots_der: if fetch.system_roots { system_certificates } else { Vec::new },
            proxy: all.map(|text| proxy("fetch.proxy", text)).transpose()?,
            proxies: named.collect::<anyhow::Result<_>>()?,
            source: source.map(str::parse).transpose().with_context(|| {
                format!("fetch.source is `{}`; write an IP address of this machine", fetch.source)
            })?,
            ..default
        })
    }

    /// The renderer's part.
    pub(crate) fn render_options(&self) -> RenderOptions {
        let program = Some(self.render.program.as_str()).filter(|text| !text.is_empty());
        RenderOptions {
            program: program.map(Into::into),
            as_root: self.render.as_root,
            page_timeout: self.render.page_timeout.0,
            max_memory_bytes: self.render.memory.0,
            ..RenderOptions::default()
        }
    }

    /// The most that the archive and its sites may take.
    pub(crate) fn quotas(&self) -> Quotas {
        Quotas { archive_bytes: self.disk.quota.0, site_bytes: self.disk.site_quota.0 }
    }

    fn order(&self) -> Result<Strategy, OrderError> {
        self.crawl.order.parse()
    }

    /// The machine's part.
    pub(crate) fn crawl_options(&self) -> CrawlOptions {
        CrawlOptions {
            parallel: self.crawl.parallel,
            redirects_max: self.crawl.redirects,
            visits_per_day: Some(self.crawl.visits_per_day).filter(|&visits| visits > 0),
            order: self.order().unwrap_or(Strategy::Auto),
            politeness: Politeness {
                delay_ms: self.politeness.delay.as_ms(),
                response_factor: self.politeness.response_factor,
                crawl_delay_max_ms: self.politeness.crawl_delay_max.as_ms(),
                rest_first_ms: self.politeness.rest_first.as_ms(),
                rest_max_ms: self.politeness.rest_max.as_ms(),
                new_percent: Some(self.crawl.new_percent).filter(|&percent| percent > 0),
                ..Politeness::default()
            },
            ..CrawlOptions::default()
        }
    }

    /// Every setting with its value, its default and the reason for the default.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let default = Self::default();
        settings_with_reasons()
            .map(|(name, reason)| Setting {
                name,
                value: self.value(name),
                default: default.value(name),
                reason,
            })
            .collect()
    }

    /// A file that sets everything as it is now. Secrets are left out of it.
    pub(crate) fn as_file(&self) -> String {
        let mut file = "# The effective configuration. A file with these lines, given by --config, changes them.\n".to_owned();
        let mut section = "";
        for setting in self.settings() {
            let (table, field) = setting.name.rsplit_once('.').unwrap_or(("", setting.name));
            if table != section {
                file += &format!("\n[{table}]\n");
                section = table;
            }
            file += &format!("# {}\n", setting.reason);
            file += &match self.toml(setting.name) {
                _ if setting.value == HIDDEN => format!("# {field} = {HIDDEN}, not shown here\n"),
                Some(value) if setting.value == setting.default => format!("{field} = {value}\n"),
                Some(value) => format!("{field} = {value}  # default: {}\n", setting.default),
                None => String::new(),
            };
        }
        file
    }

    fn toml(&self, name: &str) -> Option<toml::Value> {
        let whole = toml::Value::try_from(self).ok()?;
        name.split('.').try_fold(&whole, |at, part| at.get(part)).cloned()
    }

    /// A setting by its dotted name, for a person.
    fn value(&self, name: &str) -> String {
        match self.toml(name) {
            // A hash on a screen is one that someone may try to break.
            Some(toml::Value::String(text)) if name.ends_with("password") && !text.is_empty() => {
                HIDDEN.to_owned()
            }
            // Proxies may have passwords.
            Some(toml::Value::String(text)) if name == "fetch.proxy" && text.contains('@') => {
                HIDDEN.to_owned()
            }
            Some(toml::Value::Array(list))
                if matches!(name, "webhook" | "fetch.proxies") && !list.is_empty() =>
            {
                HIDDEN.to_owned()
            }
            Some(toml::Value::String(text)) => text,
            Some(value) => value.to_string(),
            None => String::new(),
        }
    }
}

/// Every setting by its dotted name, and the reason for its default.
fn settings_with_reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    REASONS.lines().filter_map(|line| line.split_once(" = "))
}

/// Shown instead of a secret.
const HIDDEN: &str = "(set)";

/// Every setting, and the reason for its default; those without a table first, as a file needs them.
const REASONS: &str = include_str!("../docs/settings.txt");

/// Where the key of the log-ins comes from.
pub(crate) fn login_key() -> LoginKey {
    let variable = |name| std::env::var(name).ok();
    LoginKey::given(variable("NENRIN_LOGIN_KEY"), variable("NENRIN_LOGIN_KEY_FILE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_described() {
        fn leaves(prefix: &str, value: &toml::Value, into: &mut Vec<String>) {
            match value {
                toml::Value::Table(table) => {
                    for (name, value) in table {
                        let dot = if prefix.is_empty() { "" } else { "." };
                        leaves(&format!("{prefix}{dot}{name}"), value, into);
                    }
                }
                _ => into.push(prefix.to_owned()),
            }
        }
        let mut fields = Vec::new();
        leaves("", &toml::Value::try_from(Config::default()).unwrap(), &mut fields);
        let mut described: Vec<_> =
            Config::default().settings().iter().map(|s| s.name.to_owned()).collect();
        fields.sort();
        described.sort();
        assert_eq!(fields, described);
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nenrin.toml");
        for (text, named) in [
            (
                "\n[politeness]\ndelai = \"1s\"",
                "line 3: unknown setting `politeness.delai`; did you mean",
            ),
            ("[crawl]\norder = \"bf\"\nparallel = 0", "line 3: crawl.parallel is 0; it must be"),
            (
                "[politeness]\ndelay = \"soon\"",
                "line 2: politeness.delay: `soon` is not a duration",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", Config::load(Some(&path)).unwrap_err());
            assert!(error.contains(named), "{text:?} gave: {error}");
        }
    }

    #[test]
    fn the_user_agent_names_the_contact() {
        let config = Config { contact: "https://e.com/bot".into(), ..Config::default() };
        assert!(config.user_agent().ends_with("+https://e.com/bot)"));
    }
}
