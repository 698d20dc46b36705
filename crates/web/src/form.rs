//! The form of a site's conditions: what was typed, what it means, and what is wrong with it.

use std::collections::BTreeMap;

use nenrin_revisit::RevisitSettings;
use nenrin_state::{RobotsPolicy, Schedule, SiteConditions};
use nenrin_urls::{CanonicalUrl, Scope};

use crate::{format, guard::Fields, lang::Lang};

/// Depth of a new site: enough for nearly all of a site that is linked from its top page.
const DEFAULT_DEPTH: u32 = 8;
const MAX_DEPTH: u32 = 1_000;
const MAX_TOPS: usize = 200;
const MAX_NAME_CHARS: usize = 100;
/// Rounds that follow closer than this would be a load to any server.
const MIN_PERIOD_S: i64 = 60;
const MAX_PERIOD_S: i64 = 10 * 365 * format::DAY_S;
const MAX_DELAY_MS: u64 = 3_600_000;

/// No period: every page has its own schedule.
const CONTINUOUS: &str = "continuous";

/// The periods offered; others are typed.
pub(crate) const PERIODS: [(&str, &str, &str); 7] = [
    (CONTINUOUS, "each page when a change is likely", "ページごとに自動で"),
    ("manual", "only when I ask", "手動のみ"),
    ("1h", "every hour", "1時間ごと"),
    ("12h", "twice a day", "1日2回"),
    ("1d", "every day", "毎日"),
    ("7d", "every week", "毎週"),
    ("30d", "every month", "毎月"),
];

/// The text of every field, exactly as typed, so that nothing is lost when something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SiteForm {
    pub(crate) url: String,
    pub(crate) more_tops: String,
    pub(crate) name: String,
    pub(crate) period: String,
    pub(crate) other_period: String,
    pub(crate) scope: String,
    pub(crate) depth: String,
    pub(crate) max_pages: String,
    pub(crate) embeds: bool,
    pub(crate) delay: String,
    pub(crate) robots: String,
    pub(crate) robots_reason: String,
    pub(crate) allow_private: bool,
}

/// What is wrong, by field.
pub(crate) type Wrong = BTreeMap<&'static str, String>;

impl SiteForm {
    /// A new site, with the defaults.
    pub(crate) fn fresh() -> Self {
        Self {
            url: String::new(),
            more_tops: String::new(),
            name: String::new(),
            period: CONTINUOUS.into(),
            other_period: String::new(),
            scope: Scope::Host.to_string(),
            depth: DEFAULT_DEPTH.to_string(),
            max_pages: String::new(),
            embeds: true,
            delay: String::new(),
            robots: "obey".into(),
            robots_reason: String::new(),
            allow_private: false,
        }
    }

    /// A site that exists.
    pub(crate) fn of(name: &str, conditions: &SiteConditions) -> Self {
        let mut form = Self::fresh();
        let mut tops = conditions.tops.iter().map(ToString::to_string);
        form.url = tops.next().unwrap_or_default();
        form.more_tops = tops.collect::<Vec<_>>().join("\n");
        form.name = name.to_owned();
        match &conditions.schedule {
            Schedule::Manual => form.period = "manual".into(),
            Schedule::Rounds { period_s } => form.set_period(*period_s),
            Schedule::Continuous(_) => form.period = CONTINUOUS.into(),
        }
        form.scope = conditions.scope.to_string();
        form.depth = conditions.depth.to_string();
        form.max_pages = conditions.max_pages.map(|n| n.to_string()).unwrap_or_default();
        form.embeds = conditions.embeds;
        form.delay = conditions.delay_ms.map(delay_text).unwrap_or_default();
        if let RobotsPolicy::Ignore { reason } = &conditions.robots {
            form.robots = "ignore".into();
            form.robots_reason = reason.clone();
        }
        form.allow_private = conditions.allow_private;
        form
    }

    fn set_period(&mut self, period_s: i64) {
        let text = format::duration(period_s);
        if PERIODS.iter().any(|(value, ..)| *value == text) {
            self.period = text;
        } else {
            self.period = "other".into();
            self.other_period = text;
        }
    }

    /// What was typed.
    pub(crate) fn submitted(fields: &Fields) -> Self {
        let text = |name| fields.get(name).to_owned();
        Self {
            url: text("url"),
            more_tops: text("more_tops"),
            name: text("name"),
            period: text("period"),
            other_period: text("other_period"),
            scope: text("scope"),
            depth: text("depth"),
            max_pages: text("max_pages"),
            embeds: !fields.get("embeds").is_empty(),
            delay: text("delay"),
            robots: text("robots"),
            robots_reason: text("robots_reason"),
            allow_private: !fields.get("allow_private").is_empty(),
        }
    }

    /// The conditions, or what is wrong with which field. Conditions that the form does not show
    /// are taken from `before`.
    pub(crate) fn read(
        &self,
        lang: Lang,
        before: Option<&SiteConditions>,
    ) -> Result<(String, SiteConditions), Wrong> {
        let mut check = Check { lang, wrong: Wrong::new() };
        let tops = self.tops(&mut check);
        let name = self.site_name(&mut check, tops.first());
        let schedule = self.schedule(&mut check, before.map(|before| &before.schedule));
        let scope = self.scope.parse().unwrap_or_else(|_| {
            check.say("scope", "choose one of these", "いずれかを選んでください");
            Scope::Host
        });
        let depth = check.number("depth", &self.depth, 1, u64::from(MAX_DEPTH)).unwrap_or(1) as u32;
        let max_pages = match self.max_pages.trim() {
            "" => None,
            text => check.number("max_pages", text, 1, u64::MAX / 4),
        };
        let delay_ms = self.delay_ms(&mut check);
        let robots = self.robots(&mut check);
        if !check.wrong.is_empty() {
            return Err(check.wrong);
        }
        let mut conditions = before.cloned().unwrap_or_else(|| defaults(tops.clone()));
        conditions.tops = tops;
        conditions.scope = scope;
        conditions.depth = depth;
        conditions.max_pages = max_pages;
        conditions.embeds = self.embeds;
        conditions.schedule = schedule;
        conditions.delay_ms = delay_ms;
        conditions.allow_private = self.allow_private;
        conditions.robots = robots;
        Ok((name, conditions))
    }

    fn tops(&self, check: &mut Check) -> Vec<CanonicalUrl> {
        let mut tops: Vec<CanonicalUrl> = Vec::new();
        if self.url.trim().is_empty() {
            check.say("url", "enter the address of the site", "サイトのアドレスを入力してください");
        }
        let more = self.more_tops.lines().map(|line| ("more_tops", line));
        for (field, text) in [("url", self.url.as_str())].into_iter().chain(more) {
            if text.trim().is_empty() {
                continue;
            }
            match CanonicalUrl::parse_typed(text) {
                Ok(url) if !is_plausible(&url) => check.say(
                    field,
                    "this is not a host name; did you mean something like example.org?",
                    "ホスト名ではありません(例:example.org)",
                ),
                Ok(url) if !tops.contains(&url) => tops.push(url),
                Ok(_) => {}
                Err(error) => {
                    check.wrong.entry(field).or_insert_with(|| error.to_string());
                }
            }
        }
        if tops.len() > MAX_TOPS {
            check.say("more_tops", "at most 200 top pages", "トップページは200件までです");
        }
        tops
    }

    fn site_name(&self, check: &mut Check, top: Option<&CanonicalUrl>) -> String {
        let name = self.name.trim();
        if name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            check.say("name", "at most 100 characters in one line", "1行100文字までです");
        }
        if name.is_empty() { top.map(default_name).unwrap_or_default() } else { name.to_owned() }
    }

    fn schedule(&self, check: &mut Check, before: Option<&Schedule>) -> Schedule {
        let (field, text) = match self.period.as_str() {
            // Its policy and bounds are not shown here, so they stay as they are.
            CONTINUOUS => {
                let settings = before.and_then(Schedule::continuous).cloned();
                return Schedule::Continuous(settings.unwrap_or_default());
            }
            "manual" => return Schedule::Manual,
            "other" => ("other_period", self.other_period.as_str()),
            period => ("period", period),
        };
        match format::parse_duration(text) {
            Some(period_s) if (MIN_PERIOD_S..=MAX_PERIOD_S).contains(&period_s) => {
                Schedule::Rounds { period_s }
            }
            _ => {
                check.say(
                    field,
                    "write a time from 60s to 3650d, such as 15m, 12h or 7d",
                    "60s から 3650d までの時間(例:15m、12h、7d)を入力してください",
                );
                Schedule::Manual
            }
        }
    }

    fn delay_ms(&self, check: &mut Check) -> Option<u64> {
        let text = self.delay.trim();
        if text.is_empty() {
            return None;
        }
        let delay_ms = match text.strip_suffix("ms") {
            Some(ms) => ms.trim().parse().ok(),
            None => format::parse_duration(text).map(|s| (s as u64).saturating_mul(1000)),
        };
        if delay_ms.is_none_or(|ms: u64| ms > MAX_DELAY_MS) {
            check.say(
                "delay",
                "write a time up to 1h, such as 500ms, 2s or 1m",
                "1h までの時間(例:500ms、2s、1m)を入力してください",
            );
        }
        delay_ms
    }

    fn robots(&self, check: &mut Check) -> RobotsPolicy {
        let reason = self.robots_reason.trim();
        match self.robots.as_str() {
            "obey" => RobotsPolicy::Obey,
            "ignore" if reason.is_empty() || reason.chars().count() > 1_000 => {
                check.say(
                    "robots_reason",
                    "say who allowed it or why it is right; it is kept with the site",
                    "許可者または理由を書いてください(サイトとともに記録されます)",
                );
                RobotsPolicy::Obey
            }
            "ignore" => RobotsPolicy::Ignore { reason: reason.to_owned() },
            _ => {
                check.say("robots", "choose one of these", "いずれかを選んでください");
                RobotsPolicy::Obey
            }
        }
    }
}

/// The conditions of a new site.
fn defaults(tops: Vec<CanonicalUrl>) -> SiteConditions {
    SiteConditions {
        tops,
        scope: Scope::Host,
        depth: DEFAULT_DEPTH,
        max_pages: None,
        embeds: true,
        schedule: Schedule::Continuous(RevisitSettings::default()),
        windows: Vec::new(),
        delay_ms: None,
        allow_private: false,
        robots: RobotsPolicy::Obey,
        hints: nenrin_state::SiteHints::default(),
        keeping: nenrin_state::Keeping::default(),
        rounds_by: nenrin_structure::RoundsBy::default(),
    }
}

/// A word without a dot is a slip far more often than a host on the local network.
fn is_plausible(url: &CanonicalUrl) -> bool {
    url.host().contains(['.', ':']) || url.host() == "localhost" || url.as_url().port().is_some()
}

fn default_name(top: &CanonicalUrl) -> String {
    let host = top.host().strip_prefix("www.").unwrap_or(top.host());
    let port = top.as_url().port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{host}{port}").chars().take(MAX_NAME_CHARS).collect()
}

fn delay_text(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format::duration((ms / 1000) as i64) } else { format!("{ms}ms") }
}

/// Collects what is wrong.
struct Check {
    lang: Lang,
    wrong: Wrong,
}

impl Check {
    fn say(&mut self, field: &'static str, en: &str, ja: &str) {
        self.wrong.entry(field).or_insert_with(|| self.lang.t(en, ja).to_owned());
    }

    fn number(&mut self, field: &'static str, text: &str, low: u64, high: u64) -> Option<u64> {
        let number = text.trim().parse().ok().filter(|n| (low..=high).contains(n));
        if number.is_none() {
            let (en, ja) = if high > 1_000_000 {
                (
                    format!("write a whole number of at least {low}"),
                    format!("{low}以上の整数を入力してください"),
                )
            } else {
                (
                    format!("write a whole number from {low} to {high}"),
                    format!("{low}から{high}までの整数を入力してください"),
                )
            };
            self.say(field, &en, &ja);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(change: impl FnOnce(&mut SiteForm)) -> SiteForm {
        let mut form = SiteForm::fresh();
        form.url = "example.org".into();
        change(&mut form);
        form
    }

    #[test]
    fn an_address_is_enough() {
        let (name, conditions) = typed(|_| {}).read(Lang::En, None).unwrap();
        assert_eq!(name, "example.org");
        assert_eq!(conditions.tops[0].as_str(), "https://example.org/");
        assert_eq!(conditions.schedule, Schedule::Continuous(RevisitSettings::default()));
    }

    #[test]
    fn a_form_made_from_conditions_reads_as_the_same_conditions() {
        let (_, mut conditions) = typed(|_| {}).read(Lang::En, None).unwrap();
        conditions.tops.push(CanonicalUrl::parse("http://b.org/x").unwrap());
        conditions.scope = Scope::Domain;
        conditions.depth = 3;
        conditions.max_pages = Some(77);
        conditions.embeds = false;
        conditions.schedule = Schedule::Rounds { period_s: 5400 };
        conditions.delay_ms = Some(1500);
        conditions.allow_private = true;
        conditions.robots = RobotsPolicy::Ignore { reason: "our own".into() };
        let form = SiteForm::of("n", &conditions);
        assert_eq!(form.read(Lang::En, None).unwrap(), ("n".to_owned(), conditions));
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let form = typed(|f| {
            f.url = "ftp://example.org".into();
            f.more_tops = "ok.org\nhttp://".into();
            f.name = "x".repeat(101);
            f.period = "other".into();
            f.other_period = "often".into();
            f.scope = "galaxy".into();
            f.depth = "-1".into();
            f.max_pages = "many".into();
            f.delay = "2 days".into();
            f.robots = "ignore".into();
        });
        let wrong = form.read(Lang::En, None).unwrap_err();
        let fields: Vec<_> = wrong.keys().copied().collect();
        assert_eq!(
            fields,
            [
                "delay",
                "depth",
                "max_pages",
                "more_tops",
                "name",
                "other_period",
                "robots_reason",
                "scope",
                "url"
            ]
        );
    }

    #[test]
    fn a_single_word_is_not_taken_for_a_host() {
        assert!(typed(|f| f.url = "example".into()).read(Lang::En, None).is_err());
        assert!(typed(|f| f.url = "http://localhost:8000".into()).read(Lang::En, None).is_ok());
        assert!(typed(|f| f.url = "http://[::1]/".into()).read(Lang::En, None).is_ok());
        assert!(typed(|f| f.url = "   ".into()).read(Lang::Ja, None).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_in_any_field_is_answered(texts in proptest::collection::vec("\\PC{0,30}", 8)) {
            let form = typed(|f| {
                f.url = texts[0].clone();
                f.more_tops = texts[1].clone();
                f.name = texts[2].clone();
                f.other_period = texts[3].clone();
                f.period = "other".into();
                f.depth = texts[4].clone();
                f.delay = texts[5].clone();
                f.max_pages = texts[6].clone();
                f.robots = texts[7].clone();
            });
            let _ = form.read(Lang::Ja, None);
        }
    }
}
