//! The policies by name.

use std::fmt;
use std::str::FromStr;

use nenrin_calendar::write_duration;
use serde::{Deserialize, Serialize};

use crate::auto::{AutoPolicy, AutoTuning};
use crate::fixed::FixedPolicy;
use crate::mle::MlePolicy;
use crate::share::SharePolicy;
use crate::stepped::{Growth, Shrink, SteppedPolicy};
use crate::{
    DAY_S, Limits, MleKind, MleSpec, RevisitError, RevisitPolicy, Weights, duration::parse_duration,
};

const AIMD_START_S: i64 = 7 * DAY_S;
const NUTCH_MIN_S: i64 = 60;
const NUTCH_MAX_S: i64 = 365 * DAY_S;
/// StormCrawler's defaults: a change takes the interval half of the way to an hour.
const STORM_MIN_S: i64 = 3_600;
const STORM_SHARE: f64 = 0.5;

/// A policy with its parameters; reads and writes names such as `mle.mix(0.1-10,2nd=7d,x0.5,lm)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PolicySpec {
    /// Maximum likelihood of the change rate (paper 004).
    Mle(MleSpec),
    /// Adds on no change, multiplies on a change (paper 004's comparison).
    Aimd {
        /// d: what is added.
        add_s: i64,
        /// Unchanged visits in a row after which it is added: 2 in the "1/2" variant.
        runs: u32,
        /// r: the factor on a change.
        ratio: f64,
    },
    /// A fixed interval.
    Every {
        /// The interval.
        interval_s: i64,
    },
    /// Apache Nutch's adaptive rule: ×1.4 unchanged, ×0.8 changed, 60 s to 365 d.
    Nutch {
        /// The first interval.
        start_s: i64,
    },
    /// StormCrawler's adaptive rule: ×1.5 unchanged, half of the way to an hour changed.
    StormCrawler {
        /// The first interval.
        start_s: i64,
        /// The longest interval.
        max_s: i64,
    },
    /// Ours: when the expected change is worth the price of a visit, seen with the neighbours.
    Auto {
        /// 0 for the most versions in all; 0.5 for the best mean coverage of pages.
        fair: f64,
        /// Whether Last-Modified splits a changed gap.
        last_modified: bool,
    },
    /// A fixed number of visits shared out by m = k·√(λ·w) after a time of learning (paper 002).
    Budget {
        /// Every page is visited daily for this long first.
        learn_s: i64,
        /// No page waits longer, so that one without a seen change is still visited.
        least_s: i64,
        /// w by extension, file name and Last-Modified.
        weights: Weights,
    },
}

/// The numbers of a policy are finite: the parser accepts no others.
impl Eq for PolicySpec {}

impl TryFrom<String> for PolicySpec {
    type Error = RevisitError;

    fn try_from(text: String) -> Result<Self, RevisitError> {
        text.parse()
    }
}

impl From<PolicySpec> for String {
    fn from(spec: PolicySpec) -> Self {
        spec.to_string()
    }
}

impl PolicySpec {
    /// Our default.
    pub const AUTO: Self = Self::Auto { fair: 0.0, last_modified: false };

    /// The policy, ready to decide within `limits`.
    pub fn build(&self, limits: Limits) -> Box<dyn RevisitPolicy> {
        match *self {
            Self::Mle(spec) => Box::new(MlePolicy { spec, limits }),
            Self::Every { interval_s } => Box::new(FixedPolicy { interval_s, limits }),
            Self::Aimd { add_s, runs, ratio } => Box::new(SteppedPolicy {
                spec: *self,
                start_s: AIMD_START_S,
                growth: Growth::Add { seconds: add_s as f64, runs },
                shrink: Shrink::Times(ratio),
                min_s: limits.resolution_s,
                max_s: i64::MAX / 1_000,
                limits,
            }),
            Self::Auto { fair, last_modified } => {
                Box::new(AutoPolicy::new(fair, last_modified, limits, AutoTuning::default()))
            }
            Self::Budget { learn_s, least_s, weights } => {
                Box::new(SharePolicy::new(learn_s, least_s, weights, limits))
            }
            Self::Nutch { start_s } => Box::new(self.times(
                start_s,
                (1.4, Shrink::Times(0.8)),
                (NUTCH_MIN_S, NUTCH_MAX_S),
                limits,
            )),
            Self::StormCrawler { start_s, max_s } => {
                let shrink = Shrink::Towards(STORM_SHARE);
                Box::new(self.times(start_s, (1.5, shrink), (STORM_MIN_S, max_s), limits))
            }
        }
    }

    fn times(
        &self,
        start_s: i64,
        (grow, shrink): (f64, Shrink),
        (min_s, max_s): (i64, i64),
        limits: Limits,
    ) -> SteppedPolicy {
        let growth = Growth::Times(grow);
        SteppedPolicy { spec: *self, start_s, growth, shrink, min_s, max_s, limits }
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Mle(spec) => spec.fmt(f),
            Self::Aimd { add_s, runs: 1, ratio } => {
                write!(f, "aimd(d={},r={ratio})", write_duration(add_s))
            }
            Self::Aimd { add_s, runs, ratio } => {
                let added = write_duration(add_s);
                let (number, unit) = added.split_at(added.len() - 1);
                write!(f, "aimd(d={number}/{runs}{unit},r={ratio})")
            }
            Self::Every { interval_s } => write!(f, "every({})", write_duration(interval_s)),
            Self::Nutch { start_s } => write!(f, "nutch({})", write_duration(start_s)),
            Self::StormCrawler { start_s, max_s } => {
                let (start, max) = (write_duration(start_s), write_duration(max_s));
                write!(f, "stormcrawler({start},max={max})")
            }
            Self::Auto { fair, last_modified } => match (fair != 0.0, last_modified) {
                (false, false) => write!(f, "auto"),
                (true, false) => write!(f, "auto(fair={fair})"),
                (false, true) => write!(f, "auto(lm)"),
                (true, true) => write!(f, "auto(fair={fair},lm)"),
            },
            Self::Budget { learn_s, least_s, weights } => {
                write!(f, "budget(learn={}", write_duration(learn_s))?;
                write!(f, ",least={}", write_duration(least_s))?;
                let named = [
                    ("ext", weights.by_extension),
                    ("name", weights.by_name),
                    ("no-lm", weights.without_last_modified),
                ];
                for (name, weight) in named.into_iter().filter(|(_, weight)| *weight != 1.0) {
                    write!(f, ",{name}={weight}")?;
                }
                if weights.by_importance != 0.0 {
                    write!(f, ",importance={}", weights.by_importance)?;
                }
                write!(f, ")")
            }
        }
    }
}

impl fmt::Display for MleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            MleKind::Min => "min",
            MleKind::Avg => "avg",
            MleKind::Mix => "mix",
            MleKind::Exact => "exact",
        };
        let second = write_duration(self.second_s);
        write!(f, "mle.{kind}({}-{},2nd={second}", self.low, self.high)?;
        if self.alpha != 1.0 {
            write!(f, ",x{}", self.alpha)?;
        }
        write!(f, "{})", if self.last_modified { ",lm" } else { "" })
    }
}

impl FromStr for PolicySpec {
    type Err = RevisitError;

    fn from_str(text: &str) -> Result<Self, RevisitError> {
        let call = Call::split(text.trim())?;
        match call.name {
            "mle.min" => mle(MleKind::Min, &call),
            "mle.avg" => mle(MleKind::Avg, &call),
            "mle.mix" => mle(MleKind::Mix, &call),
            "mle.exact" => mle(MleKind::Exact, &call),
            "aimd" => aimd(&call),
            "every" => Ok(Self::Every { interval_s: every(&call)? }),
            "nutch" => Ok(Self::Nutch { start_s: nutch(&call)? }),
            "stormcrawler" => stormcrawler(&call),
            "auto" => auto(&call),
            "budget" => budget(&call),
            name => Err(RevisitError::UnknownPolicy { name: name.to_owned() }),
        }
    }
}

/// A name with its arguments in parentheses.
struct Call<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
}

/// How a policy is written, for error messages.
struct Form {
    policy: &'static str,
    example: &'static str,
}

impl Form {
    fn error(&self, problem: impl Into<String>) -> RevisitError {
        let (policy, example) = (self.policy, self.example);
        RevisitError::BadPolicy { policy, problem: problem.into(), example }
    }

    fn interval(&self, text: &str) -> Result<i64, RevisitError> {
        let seconds = parse_duration(text).map_err(|error| self.error(error.to_string()))?;
        if seconds == 0 { Err(self.error("an interval of 0 never ends")) } else { Ok(seconds) }
    }

    fn number(&self, what: &str, text: &str) -> Result<f64, RevisitError> {
        let number: Option<f64> = text.parse().ok();
        number
            .filter(|n| n.is_finite() && *n > 0.0)
            .ok_or_else(|| self.error(format!("{what} '{text}' is not a number above 0")))
    }
}

impl<'a> Call<'a> {
    fn split(text: &'a str) -> Result<Self, RevisitError> {
        let unknown = || RevisitError::UnknownPolicy { name: text.to_owned() };
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self { name: text, arguments: Vec::new() });
        };
        let inside = rest.strip_suffix(')').ok_or_else(unknown)?;
        let arguments = inside.split(',').map(str::trim).filter(|a| !a.is_empty()).collect();
        Ok(Self { name: name.trim(), arguments })
    }

    /// The only argument.
    fn single(&self, form: &Form) -> Result<&'a str, RevisitError> {
        match self.arguments.as_slice() {
            [one] => Ok(one),
            [] => Err(form.error("the interval is missing")),
            [_, more, ..] => Err(form.error(format!("'{more}' is one argument too many"))),
        }
    }
}

const MLE: Form = Form { policy: "mle", example: "mle.mix(0.1-10,2nd=7d,x0.5,lm)" };
const AIMD: Form = Form { policy: "aimd", example: "aimd(d=1d,r=0.5) or aimd(d=1/2d,r=0.5)" };
const EVERY: Form = Form { policy: "every", example: "every(30d)" };
const NUTCH: Form = Form { policy: "nutch", example: "nutch(7d)" };
const STORM: Form = Form { policy: "stormcrawler", example: "stormcrawler(7d,max=365d)" };

const AUTO: Form = Form { policy: "auto", example: "auto, auto(fair=0.5) or auto(fair=0.5,lm)" };

fn auto(call: &Call<'_>) -> Result<PolicySpec, RevisitError> {
    let (mut fair, mut last_modified) = (0.0, false);
    for argument in &call.arguments {
        match argument.split_once('=') {
            None if *argument == "lm" => last_modified = true,
            Some(("fair", text)) => fair = AUTO.number("fairness", text)?,
            _ => return Err(AUTO.error(format!("'{argument}' is unknown"))),
        }
    }
    if fair > 1.0 {
        return Err(AUTO.error(format!("fairness {fair} is above 1")));
    }
    Ok(PolicySpec::Auto { fair, last_modified })
}

const BUDGET: Form =
    Form { policy: "budget", example: "budget(learn=40d,least=90d,ext=0.25,name=2,no-lm=4)" };

/// Paper 002's forty days of daily visits; and a visit in three months at least.
const LEARN_S: i64 = 40 * DAY_S;
const LEAST_S: i64 = 90 * DAY_S;

fn budget(call: &Call<'_>) -> Result<PolicySpec, RevisitError> {
    let (mut learn_s, mut least_s) = (LEARN_S, LEAST_S);
    let mut weights = Weights::default();
    for argument in &call.arguments {
        match argument.split_once('=') {
            Some(("learn", text)) => learn_s = BUDGET.interval(text)?,
            Some(("least", text)) => least_s = BUDGET.interval(text)?,
            Some(("ext", text)) => weights.by_extension = BUDGET.number("weight", text)?,
            Some(("name", text)) => weights.by_name = BUDGET.number("weight", text)?,
            Some(("no-lm", text)) => {
                weights.without_last_modified = BUDGET.number("weight", text)?;
            }
            Some(("importance", text)) => {
                weights.by_importance = BUDGET.number("power", text)?;
            }
            _ => return Err(BUDGET.error(format!("'{argument}' is unknown"))),
        }
    }
    Ok(PolicySpec::Budget { learn_s, least_s, weights })
}

fn mle(kind: MleKind, call: &Call<'_>) -> Result<PolicySpec, RevisitError> {
    let mut bounds = None;
    let mut second_s = None;
    let (mut alpha, mut last_modified) = (1.0, false);
    for argument in &call.arguments {
        if *argument == "lm" {
            last_modified = true;
        } else if let Some(second) = argument.strip_prefix("2nd=") {
            second_s = Some(MLE.interval(second)?);
        } else if let Some(factor) = argument.strip_prefix('x') {
            alpha = MLE.number("factor", factor)?;
        } else if let Some((low, high)) = argument.split_once('-') {
            bounds = Some((MLE.number("bound", low)?, MLE.number("bound", high)?));
        } else {
            return Err(MLE.error(format!("'{argument}' is unknown")));
        }
    }
    let (low, high) =
        bounds.ok_or_else(|| MLE.error("the bounds of the multiplier are missing"))?;
    let second_s = second_s.ok_or_else(|| MLE.error("the second visit's interval is missing"))?;
    if low >= high {
        return Err(MLE.error(format!("the lower bound {low} is not below the upper {high}")));
    }
    if alpha > 1.0 {
        return Err(MLE.error(format!("the factor x{alpha} is above 1")));
    }
    Ok(PolicySpec::Mle(MleSpec { kind, low, high, second_s, alpha, last_modified }))
}

fn aimd(call: &Call<'_>) -> Result<PolicySpec, RevisitError> {
    let (mut added, mut ratio) = (None, None);
    for argument in &call.arguments {
        match argument.split_once('=') {
            Some(("d", text)) => added = Some(added_after(text)?),
            Some(("r", text)) => ratio = Some(AIMD.number("ratio", text)?),
            _ => return Err(AIMD.error(format!("'{argument}' is unknown"))),
        }
    }
    let (add_s, runs) = added.ok_or_else(|| AIMD.error("d is missing"))?;
    let ratio = ratio.ok_or_else(|| AIMD.error("r is missing"))?;
    if ratio >= 1.0 {
        return Err(AIMD.error(format!("the ratio {ratio} is not below 1")));
    }
    Ok(PolicySpec::Aimd { add_s, runs, ratio })
}

/// `1d` is a day after each unchanged visit, `1/2d` a day after each two in a row.
fn added_after(text: &str) -> Result<(i64, u32), RevisitError> {
    let Some((number, rest)) = text.split_once('/') else {
        return Ok((AIMD.interval(text)?, 1));
    };
    let unit_at = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (runs, unit) = rest.split_at(unit_at);
    let runs = runs.parse().ok().filter(|&runs| (2..=1_000).contains(&runs));
    let runs = runs.ok_or_else(|| AIMD.error(format!("'{text}' names no number of visits")))?;
    Ok((AIMD.interval(&format!("{number}{unit}"))?, runs))
}

fn every(call: &Call<'_>) -> Result<i64, RevisitError> {
    EVERY.interval(call.single(&EVERY)?)
}

fn nutch(call: &Call<'_>) -> Result<i64, RevisitError> {
    NUTCH.interval(call.single(&NUTCH)?)
}

fn stormcrawler(call: &Call<'_>) -> Result<PolicySpec, RevisitError> {
    let [start, max] = call.arguments.as_slice() else {
        return Err(STORM.error("it takes a first and a longest interval"));
    };
    let max = max.strip_prefix("max=").ok_or_else(|| STORM.error("max= is missing"))?;
    let (start_s, max_s) = (STORM.interval(start)?, STORM.interval(max)?);
    if start_s > max_s {
        return Err(STORM.error("the first interval is longer than the longest"));
    }
    Ok(PolicySpec::StormCrawler { start_s, max_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_contract_reads_and_writes_back() {
        for name in [
            "mle.mix(0.1-10,2nd=7d)",
            "mle.mix(0.1-10,2nd=7d,x0.5)",
            "mle.mix(0.1-10,2nd=7d,x0.5,lm)",
            "mle.min(0.5-2,2nd=15d)",
            "mle.avg(0.1-10,2nd=12h,lm)",
            "mle.exact(0.1-10,2nd=7d)",
            "aimd(d=1d,r=0.5)",
            "aimd(d=1/2d,r=0.75)",
            "every(30d)",
            "nutch(7d)",
            "stormcrawler(7d,max=365d)",
            "auto",
            "auto(fair=0.5,lm)",
            "budget(learn=40d,least=90d)",
            "budget(learn=10d,least=90d,ext=0.25,no-lm=4)",
            "budget(learn=10d,least=90d,importance=0.5)",
        ] {
            let spec: PolicySpec = name.parse().unwrap();
            assert_eq!(spec.to_string(), name);
        }
    }

    #[test]
    fn spaces_are_allowed_where_people_write_them() {
        let spec: PolicySpec = " mle.mix( 0.1-10, 2nd=7d ) ".parse().unwrap();
        assert_eq!(spec.to_string(), "mle.mix(0.1-10,2nd=7d)");
    }

    #[test]
    fn a_wrong_name_says_what_is_wrong_and_how_to_write_it() {
        let message = |name: &str| name.parse::<PolicySpec>().unwrap_err().to_string();
        assert_eq!(
            message("mle.mix(10-0.1,2nd=7d)"),
            "policy 'mle': the lower bound 10 is not below the upper 0.1; write it as \
             mle.mix(0.1-10,2nd=7d,x0.5,lm)"
        );
        assert_eq!(
            message("every()"),
            "policy 'every': the interval is missing; write it as every(30d)"
        );
        assert!(
            message("weekly").starts_with("'weekly' is not a revisit policy; write one of mle.min")
        );
        assert!(message("mle.mix(0.1-10,2nd=7d").starts_with("'mle.mix(0.1-10,2nd=7d' is no"));
        assert!(message("aimd(d=1/0d,r=0.5)").contains("'1/0d' names no number of visits"));
        assert!(message("aimd(d=1d,r=NaN)").contains("ratio 'NaN' is not a number above 0"));
        assert!(message("nutch(0d)").contains("an interval of 0 never ends"));
        assert!(message("stormcrawler(7d)").contains("a first and a longest interval"));
    }
}
