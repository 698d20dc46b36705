//! The fields that set when each page is visited again, and the hours of the site.

use nenrin_revisit::{PathInterval, PolicySpec, RevisitSettings};

use super::{MAX_PATH_RULES, OTHER, SiteForm, check::Check};
use crate::format;

/// The longest interval: a century.
pub(crate) const MAX_INTERVAL_S: i64 = 36_500 * format::DAY_S;

/// The policies offered by name; others are typed.
pub(crate) const POLICIES: [(&str, &str, &str); 9] = [
    ("auto", "when a change is likely (usual)", "変わっていそうなときに（標準）"),
    (
        "auto(fair=0.5)",
        "the same, with more visits for pages that rarely change",
        "同上。あまり変わらないページも重視",
    ),
    (
        "budget(learn=40d,least=90d)",
        "visits per day divided by change rates",
        "1日の訪問数を変更頻度に応じて配分",
    ),
    ("mle.mix(0.1-10,2nd=7d)", "by the estimated change interval", "推定した変更間隔で"),
    (
        "aimd(d=1d,r=0.5)",
        "interval one day longer if unchanged, half if changed",
        "同じなら1日延ばし、変われば半分に",
    ),
    ("every(7d)", "every page every 7 days", "全ページを7日ごとに"),
    ("nutch(7d)", "as Apache Nutch does", "Apache Nutch と同じ規則"),
    ("stormcrawler(7d,max=365d)", "as StormCrawler does", "StormCrawler と同じ規則"),
    (OTHER, "another rule, typed…", "その他の規則（書式で指定）…"),
];

impl SiteForm {
    pub(super) fn set_revisit(&mut self, settings: &RevisitSettings) {
        let policy = settings.policy.to_string();
        if POLICIES.iter().any(|(value, ..)| *value == policy) {
            self.policy = policy;
        } else {
            self.policy = OTHER.into();
            self.policy_text = policy;
        }
        self.visits_per_day = settings.visits_per_day.map(|n| n.to_string()).unwrap_or_default();
        self.min = settings.min_s.map(nenrin_calendar::write_duration).unwrap_or_default();
        self.max = nenrin_calendar::write_duration(settings.max_s);
        self.paths = lines(&settings.paths);
    }

    pub(super) fn revisit(&self, check: &mut Check) -> RevisitSettings {
        let min_s = match self.min.trim() {
            "" => None,
            text => interval(check, "min", text, 0),
        };
        let max_s = match self.max.trim() {
            "" => RevisitSettings::default().max_s,
            text => interval(check, "max", text, 1).unwrap_or(1),
        };
        if min_s.is_some_and(|min_s| min_s > max_s) {
            check.say(
                "max",
                "the longest wait is shorter than the shortest",
                "最長の間隔が最短より短くなっています",
            );
        }
        RevisitSettings {
            policy: self.policy(check),
            min_s,
            max_s,
            paths: check.lines::<PathInterval>("paths", &self.paths, MAX_PATH_RULES),
            visits_per_day: check.maybe_number(
                "visits_per_day",
                &self.visits_per_day,
                1,
                u64::MAX / 4,
            ),
        }
    }

    fn policy(&self, check: &mut Check) -> PolicySpec {
        if self.policy == OTHER {
            return self.policy_text.parse().unwrap_or_else(
                |error: nenrin_revisit::RevisitError| {
                    check.error("policy_text", &error.to_string());
                    PolicySpec::AUTO
                },
            );
        }
        let offered = POLICIES.iter().any(|(value, ..)| *value == self.policy);
        match self.policy.parse() {
            Ok(policy) if offered => policy,
            _ => {
                check.say_choose("policy");
                PolicySpec::AUTO
            }
        }
    }
}

fn interval(check: &mut Check, field: &'static str, text: &str, low_s: i64) -> Option<i64> {
    let interval_s =
        nenrin_calendar::parse_duration(text).filter(|s| (low_s..=MAX_INTERVAL_S).contains(s));
    if interval_s.is_none() {
        check.say(
            field,
            "write a time from 1s to 36500d, such as 30m, 6h or 90d",
            "1s から 36500d までの時間（例：30m、6h、90d）を入力してください",
        );
    }
    interval_s
}

/// One value in each line.
pub(super) fn lines<T: ToString>(things: &[T]) -> String {
    things.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offered_policy_is_one_and_is_written_the_way_it_is_offered() {
        for (value, ..) in POLICIES.iter().filter(|(value, ..)| *value != OTHER) {
            assert_eq!(value.parse::<PolicySpec>().unwrap().to_string(), *value);
        }
    }
}
