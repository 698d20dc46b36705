//! The form of a site's conditions: what was typed, its meaning, and its mistakes.

mod check;
mod choice;
mod keeping;
mod revisit;
mod road;

use nenrin_lang::Lang;
use nenrin_revisit::{CollectingWindow, RevisitSettings};
use nenrin_state::{RobotsPolicy, Schedule, ScheduleBy, SiteConditions, SiteHeader, SiteHints};
use nenrin_structure::RoundsBy;
use nenrin_urls::{CanonicalUrl, Scope};

use self::{check::Check, revisit::lines};
pub(crate) use self::{
    check::Wrong,
    revisit::{MAX_INTERVAL_S, POLICIES},
};
use crate::{format, guard::Fields};

const MAX_DEPTH: u32 = 1_000;
pub(crate) const MAX_TOPS: usize = 200;
const MAX_NAME_CHARS: usize = 100;
pub(crate) const MAX_REASON_CHARS: usize = 1_000;
pub(crate) const MAX_PATH_RULES: usize = 100;
pub(crate) const MAX_WINDOWS: usize = 50;
/// The shortest period of rounds; shorter ones would burden any server.
const MIN_PERIOD_S: i64 = 60;
const MAX_PERIOD_S: i64 = 10 * 365 * format::DAY_S;
const MAX_DELAY_MS: u64 = 3_600_000;

/// Every page has its own schedule instead of a period.
pub(crate) const CONTINUOUS: &str = "continuous";
/// None of the offered choices: it is typed.
pub(crate) const OTHER: &str = "other";

/// The periods offered; others are typed.
pub(crate) const PERIODS: [(&str, &str, &str); 7] = [
    (CONTINUOUS, "each page on its own schedule", "ページごとの予定"),
    ("manual", "only when I start it", "手動のみ"),
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
    pub(crate) policy: String,
    pub(crate) policy_text: String,
    pub(crate) visits_per_day: String,
    pub(crate) min: String,
    pub(crate) max: String,
    pub(crate) paths: String,
    pub(crate) windows: String,
    pub(crate) signals: bool,
    pub(crate) schedule_by: String,
    pub(crate) rounds_by: String,
    pub(crate) quota: String,
    pub(crate) prune: String,
    pub(crate) scope: String,
    pub(crate) depth: String,
    pub(crate) max_pages: String,
    pub(crate) embeds: bool,
    pub(crate) delay: String,
    pub(crate) robots: String,
    pub(crate) robots_reason: String,
    pub(crate) allow_private: bool,
    pub(crate) include: String,
    pub(crate) exclude: String,
    pub(crate) headers: String,
    pub(crate) ignored: String,
    pub(crate) group: String,
    pub(crate) tags: String,
    pub(crate) proxy: String,
    pub(crate) source: String,
    pub(crate) any_certificate: String,
    pub(crate) login_page: String,
    pub(crate) render: String,
    pub(crate) render_paths: String,
    pub(crate) likely_urls: bool,
}

impl SiteForm {
    /// A new site, with the defaults.
    pub(crate) fn fresh(depth: u32) -> Self {
        Self {
            url: String::new(),
            more_tops: String::new(),
            name: String::new(),
            period: CONTINUOUS.into(),
            other_period: String::new(),
            policy: "auto".into(),
            policy_text: String::new(),
            visits_per_day: String::new(),
            min: String::new(),
            max: nenrin_calendar::write_duration(RevisitSettings::default().max_s),
            paths: String::new(),
            windows: String::new(),
            signals: true,
            schedule_by: "any".into(),
            rounds_by: RoundsBy::default().to_string(),
            quota: String::new(),
            prune: String::new(),
            scope: Scope::Host.to_string(),
            depth: depth.min(MAX_DEPTH).to_string(),
            max_pages: String::new(),
            embeds: true,
            delay: String::new(),
            robots: "obey".into(),
            robots_reason: String::new(),
            allow_private: false,
            include: String::new(),
            exclude: String::new(),
            headers: String::new(),
            ignored: String::new(),
            group: String::new(),
            tags: String::new(),
            proxy: String::new(),
            source: String::new(),
            any_certificate: String::new(),
            login_page: String::new(),
            render: "never".into(),
            render_paths: String::new(),
            likely_urls: false,
        }
    }

    /// A site that exists.
    pub(crate) fn of(name: &str, conditions: &SiteConditions) -> Self {
        let mut form = Self::fresh(conditions.depth);
        let mut tops = conditions.tops.iter().map(ToString::to_string);
        form.url = tops.next().unwrap_or_default();
        form.more_tops = tops.collect::<Vec<_>>().join("\n");
        form.name = name.to_owned();
        match &conditions.schedule {
            Schedule::Manual => form.period = "manual".into(),
            Schedule::Rounds { period_s } => form.set_period(*period_s),
            Schedule::Continuous(settings) => form.set_revisit(settings),
        }
        form.set_keeping(&conditions.keeping);
        form.windows = lines(&conditions.windows);
        form.signals = conditions.hints.signals;
        form.schedule_by = match conditions.hints.schedule_by {
            ScheduleBy::Any => "any".into(),
            ScheduleBy::Significant => "significant".into(),
        };
        form.rounds_by = conditions.rounds_by.to_string();
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
        form.set_choice(conditions);
        form.set_road(conditions);
        form
    }

    fn set_period(&mut self, period_s: i64) {
        let text = nenrin_calendar::write_duration(period_s);
        if PERIODS.iter().any(|(value, ..)| *value == text) {
            self.period = text;
        } else {
            self.period = OTHER.into();
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
            policy: text("policy"),
            policy_text: text("policy_text"),
            visits_per_day: text("visits_per_day"),
            min: text("min"),
            max: text("max"),
            paths: text("paths"),
            windows: text("windows"),
            signals: !fields.get("signals").is_empty(),
            schedule_by: text("schedule_by"),
            rounds_by: text("rounds_by"),
            quota: text("quota"),
            prune: text("prune"),
            scope: text("scope"),
            depth: text("depth"),
            max_pages: text("max_pages"),
            embeds: !fields.get("embeds").is_empty(),
            delay: text("delay"),
            robots: text("robots"),
            robots_reason: text("robots_reason"),
            allow_private: !fields.get("allow_private").is_empty(),
            include: text("include"),
            exclude: text("exclude"),
            headers: text("headers"),
            ignored: text("ignored"),
            group: text("group"),
            tags: text("tags"),
            proxy: text("proxy"),
            source: text("source"),
            any_certificate: text("any_certificate"),
            login_page: text("login_page"),
            render: text("render"),
            render_paths: text("render_paths"),
            likely_urls: !fields.get("likely_urls").is_empty(),
        }
    }

    /// The site's name and conditions, or the mistake in each field.
    pub(crate) fn read(&self, lang: Lang) -> Result<(String, SiteConditions), Wrong> {
        let mut check = Check::new(lang);
        let tops = self.tops(&mut check);
        let name = self.site_name(&mut check, tops.first());
        if !self.allow_private && tops.iter().any(CanonicalUrl::is_on_private_network) {
            check.say(
                "allow_private",
                "this address is on your own network; tick to allow it",
                "このアドレスはその中にあります。許可するには選択してください",
            );
        }
        let conditions = SiteConditions {
            tops,
            scope: self.scope(&mut check),
            depth: check.number("depth", &self.depth, 1, u64::from(MAX_DEPTH)).unwrap_or(1) as u32,
            max_pages: check.maybe_number("max_pages", &self.max_pages, 1, u64::MAX / 4),
            embeds: self.embeds,
            schedule: self.schedule(&mut check),
            windows: check.lines::<CollectingWindow>("windows", &self.windows, MAX_WINDOWS),
            delay_ms: self.delay_ms(&mut check),
            allow_private: self.allow_private,
            robots: self.robots(&mut check),
            hints: self.hints(&mut check),
            keeping: self.keeping(&mut check),
            rounds_by: self.rounds_by(&mut check),
            pages: self.patterns(&mut check),
            headers: check.lines("headers", &self.headers, SiteHeader::MAX),
            ignored: self.ignored_parts(&mut check),
            labels: self.labels(&mut check),
            road: self.road(&mut check),
            scripts: self.scripts(&mut check),
            login_page: self.login_page(&mut check),
        };
        if check.wrong.is_empty() { Ok((name, conditions)) } else { Err(check.wrong) }
    }

    fn scope(&self, check: &mut Check) -> Scope {
        self.scope.parse().unwrap_or_else(|_| {
            check.say_choose("scope");
            Scope::Host
        })
    }

    fn rounds_by(&self, check: &mut Check) -> RoundsBy {
        self.rounds_by.parse().unwrap_or_else(|_| {
            check.say_choose("rounds_by");
            RoundsBy::default()
        })
    }

    fn hints(&self, check: &mut Check) -> SiteHints {
        let schedule_by = match self.schedule_by.as_str() {
            "any" => ScheduleBy::Any,
            "significant" => ScheduleBy::Significant,
            _ => {
                check.say_choose("schedule_by");
                ScheduleBy::Any
            }
        };
        SiteHints { signals: self.signals, schedule_by }
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
                    "this is not a host name; write one like example.org",
                    "ホスト名ではありません（例：example.org）",
                ),
                Ok(url) if !tops.contains(&url) => tops.push(url),
                Ok(_) => {}
                Err(error) => check.error(field, &error.to_string()),
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

    fn schedule(&self, check: &mut Check) -> Schedule {
        let (field, text) = match self.period.as_str() {
            CONTINUOUS => return Schedule::Continuous(self.revisit(check)),
            "manual" => return Schedule::Manual,
            OTHER => ("other_period", self.other_period.as_str()),
            period => ("period", period),
        };
        match nenrin_calendar::parse_duration(text) {
            Some(period_s) if (MIN_PERIOD_S..=MAX_PERIOD_S).contains(&period_s) => {
                Schedule::Rounds { period_s }
            }
            _ => {
                check.say(
                    field,
                    "write a time from 60s to 3650d, such as 15m, 12h or 7d",
                    "60s から 3650d までの時間（例：15m、12h、7d）を入力してください",
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
        let delay_ms = nenrin_calendar::parse_duration_ms(text);
        if delay_ms.is_none_or(|ms| ms > MAX_DELAY_MS) {
            check.say(
                "delay",
                "write a time up to 1h, such as 500ms, 2s or 1m",
                "1h までの時間（例：500ms、2s、1m）を入力してください",
            );
        }
        delay_ms
    }

    fn robots(&self, check: &mut Check) -> RobotsPolicy {
        let reason = self.robots_reason.trim();
        match self.robots.as_str() {
            "obey" => RobotsPolicy::Obey,
            "ignore" if reason.is_empty() || reason.chars().count() > MAX_REASON_CHARS => {
                check.say(
                    "robots_reason",
                    "write who allowed it or why it is right; this is stored with the site",
                    "許可者または理由を書いてください（サイトとともに記録されます）",
                );
                RobotsPolicy::Obey
            }
            "ignore" => RobotsPolicy::Ignore { reason: reason.to_owned() },
            _ => {
                check.say_choose("robots");
                RobotsPolicy::Obey
            }
        }
    }
}

/// A word without a dot is more often a typing error than a host on the local network.
fn is_plausible(url: &CanonicalUrl) -> bool {
    url.host().contains(['.', ':']) || url.host() == "localhost" || url.as_url().port().is_some()
}

fn default_name(top: &CanonicalUrl) -> String {
    let host = top.shown_host();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let port = top.as_url().port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{host}{port}").chars().take(MAX_NAME_CHARS).collect()
}

fn delay_text(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        nenrin_calendar::write_duration((ms / 1000) as i64)
    } else {
        format!("{ms}ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(change: impl FnOnce(&mut SiteForm)) -> SiteForm {
        let mut form = SiteForm::fresh(SiteConditions::DEFAULT_DEPTH);
        form.url = "example.org".into();
        change(&mut form);
        form
    }

    #[test]
    fn an_address_is_enough() {
        let (name, conditions) = typed(|_| {}).read(Lang::En).unwrap();
        assert_eq!(name, "example.org");
        assert_eq!(conditions.tops[0].as_str(), "https://example.org/");
        assert_eq!(conditions.schedule, Schedule::Continuous(RevisitSettings::default()));
    }

    #[test]
    fn a_form_made_from_conditions_reads_as_the_same_conditions() {
        let (_, mut conditions) = typed(|_| {}).read(Lang::En).unwrap();
        conditions.tops.push(CanonicalUrl::parse("http://b.org/x").unwrap());
        conditions.scope = Scope::Domain;
        conditions.depth = 3;
        conditions.max_pages = Some(77);
        conditions.embeds = false;
        conditions.schedule = Schedule::Rounds { period_s: 5400 };
        conditions.delay_ms = Some(1500);
        conditions.allow_private = true;
        conditions.robots = RobotsPolicy::Ignore { reason: "our own".into() };
        conditions.windows = vec!["mon-fri 22:00-06:00 Asia/Tokyo".parse().unwrap()];
        conditions.hints = SiteHints { signals: false, schedule_by: ScheduleBy::Significant };
        conditions.keeping.quota_bytes = Some(0);
        conditions.rounds_by = RoundsBy::C;
        conditions.keeping.prune = Some("30d,day:90d,month".parse().unwrap());
        let form = SiteForm::of("n", &conditions);
        assert_eq!(form.read(Lang::En).unwrap(), ("n".to_owned(), conditions));
    }

    #[test]
    fn pages_schedules_come_back_from_the_form_as_they_were() {
        let (_, mut conditions) = typed(|_| {}).read(Lang::En).unwrap();
        for policy in ["auto(fair=0.5)", "aimd(d=1/2d,r=0.5)", "every(7d)", "every(3d)"] {
            conditions.schedule = Schedule::Continuous(RevisitSettings {
                policy: policy.parse().unwrap(),
                min_s: Some(5_400),
                max_s: 90 * format::DAY_S,
                paths: vec![
                    "/news/* min=1h max=1d".parse().unwrap(),
                    "/old/ min=30d".parse().unwrap(),
                ],
                visits_per_day: Some(5_000),
            });
            let form = SiteForm::of("n", &conditions);
            assert_eq!(form.read(Lang::En).unwrap().1, conditions, "{policy}");
        }
    }

    #[test]
    fn wrong_schedules_are_named_line_by_line() {
        let form = typed(|f| {
            f.policy = OTHER.into();
            f.policy_text = "weekly".into();
            f.visits_per_day = "0".into();
            f.min = "2d".into();
            f.max = "1d".into();
            f.paths = "/a min=1h\n\nnews soon".into();
            f.windows = "fri 22:00-06:00 Mars/Olympus".into();
            f.schedule_by = "mood".into();
            f.rounds_by = "luck".into();
            f.quota = "much".into();
            f.prune = "30d".into();
        });
        let wrong = form.read(Lang::En).unwrap_err();
        let fields: Vec<_> = wrong.keys().copied().collect();
        assert_eq!(
            fields,
            [
                "max",
                "paths",
                "policy_text",
                "prune",
                "quota",
                "rounds_by",
                "schedule_by",
                "visits_per_day",
                "windows"
            ]
        );
        assert!(wrong["paths"].starts_with("line 3: "), "{}", wrong["paths"]);
        assert!(wrong["windows"].contains("Mars/Olympus"), "{}", wrong["windows"]);
        // Fields that rounds do not use cannot be wrong with rounds.
        let rounds = SiteForm { period: "1d".into(), ..form };
        assert_eq!(rounds.read(Lang::Ja).unwrap_err().len(), 5);
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
        let wrong = form.read(Lang::En).unwrap_err();
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
        assert!(typed(|f| f.url = "example".into()).read(Lang::En).is_err());
        assert!(typed(|f| f.url = "http://intranet:8000/".into()).read(Lang::En).is_ok());
        assert!(typed(|f| f.url = "   ".into()).read(Lang::Ja).is_err());
    }

    #[test]
    fn an_address_of_ones_own_network_needs_leave() {
        for own in ["http://localhost:8000", "http://[::1]/", "127.0.0.1:81", "http://10.1.2.3/"] {
            let form = typed(|f| f.url = own.into());
            let wrong = form.read(Lang::En).unwrap_err();
            assert_eq!(wrong.keys().collect::<Vec<_>>(), [&"allow_private"], "{own}");
            assert!(SiteForm { allow_private: true, ..form }.read(Lang::En).is_ok(), "{own}");
        }
        assert!(typed(|f| f.url = "http://93.184.216.34/".into()).read(Lang::En).is_ok());
    }

    proptest::proptest! {
        #[test]
        fn any_text_in_any_field_is_answered(texts in proptest::collection::vec("\\PC{0,30}", 14)) {
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
                f.paths = texts[8].clone();
                f.windows = texts[9].clone();
                f.min = texts[10].clone();
                f.max = texts[11].clone();
                f.policy_text = texts[12].clone();
                f.visits_per_day = texts[13].clone();
                f.policy = OTHER.into();
            });
            let _ = form.read(Lang::Ja);
            let _ = SiteForm { period: CONTINUOUS.into(), ..form }.read(Lang::Ja);
        }
    }
}
