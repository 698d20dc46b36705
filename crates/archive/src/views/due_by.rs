//! Why a page is due, in words.

use nenrin_lang::Lang;
use nenrin_revisit::{DAY_S, FAILED_S, Reason, Rule, Why, rounded};
use serde::{Serialize, Serializer};

/// Why a page is due, apart from hints.
#[derive(Debug, Clone, PartialEq)]
pub enum DueBy {
    /// Its site is collected in rounds: with the next one.
    Round,
    /// It has a time of its own, for this reason.
    Schedule(Why),
}

impl DueBy {
    /// In words.
    pub fn text(&self, lang: Lang) -> String {
        match (self, lang) {
            (Self::Round, _) => {
                lang.t("with its site's next round", "サイトの次の収集のときに").to_owned()
            }
            (Self::Schedule(why), Lang::En) => why.to_string(),
            (Self::Schedule(why), Lang::Ja) => in_japanese(why),
        }
    }
}

/// Programs get the English words; rate and confidence are numbers beside them.
impl Serialize for DueBy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text(Lang::En))
    }
}

fn in_japanese(why: &Why) -> String {
    match why {
        Why::New(_) => match why.rate() {
            Some((rate, confidence)) => {
                format!("まだ訪問していません。取り込んだ履歴では{}", often(rate, confidence))
            }
            None => "まだ訪問していません".to_owned(),
        },
        Why::Policy(explanation) => planned(&explanation.next.why),
        Why::Gone { times } => format!("消失。間隔を延ばしながら確認（{times} 回）"),
        Why::Refused => "取得が許されていません。間隔を延ばしながら確認".to_owned(),
        Why::Failed { times } => {
            let (first, longest) = (span(FAILED_S.0), span(FAILED_S.1));
            format!("{times} 回続けて失敗。{first}から{longest}の間隔で再試行")
        }
    }
}

fn planned(why: &Reason) -> String {
    let interval = span(why.interval_s);
    let rule = rule(why.rule);
    let goes_by_rate = matches!(why.rule, Rule::Worth | Rule::Estimate);
    let mut text = match why.rate_if_known().map(|rate| often(rate, why.confidence)) {
        Some(changes) if goes_by_rate => {
            format!("{changes}のため、{interval}ごとに訪問します")
        }
        Some(changes) => format!("{rule}（{interval}ごと）。{changes}"),
        None if goes_by_rate => {
            format!("変更頻度を知るにはまだ観測が足りません。{interval}ごとに訪問します")
        }
        None => format!("{rule}（{interval}ごと）"),
    };
    let percent = (why.neighbours.unwrap_or(0.0) * 100.0).round();
    match percent {
        1.0.. => text += &format!("。近くのページの変化により早めます（{percent}%）"),
        ..=-1.0 => {
            text += &format!("。近くのページに変化がないため遅らせます（{}%）", -percent);
        }
        _ => {}
    }
    if let Some((from, to)) = why.busy_hours {
        text += &format!("。変化は主に協定世界時の {from}:00〜{to}:00");
    }
    text
}

fn often(rate_per_day: f64, confidence: f64) -> String {
    let percent = confidence * 100.0;
    if rate_per_day >= 1.0 {
        format!("1日に約 {rate_per_day:.1} 回変わる見込み（確信度 {percent:.0}%）")
    } else {
        // The cast saturates: a page that never changes has the longest interval.
        let interval = span((DAY_S as f64 / rate_per_day) as i64);
        format!("約{interval}ごとに変わる見込み（確信度 {percent:.0}%）")
    }
}

fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::FirstInterval => "最初の間隔",
        Rule::Fixed => "一定の間隔",
        Rule::NeverChanged => "まだ変更を見ていない",
        Rule::LowerBound => "ほぼ訪問のたびに変わる",
        Rule::Estimate => "推定した変更頻度",
        Rule::UpperBound => "めったに変わらない",
        Rule::Shortened => "前回の訪問で変わっていた",
        Rule::Lengthened => "前回の訪問で変わっていなかった",
        Rule::Kept => "変わっておらず、間隔はそのまま",
        Rule::Share => "予算の配分",
        Rule::Worth => "変わった見込みが高い",
        Rule::Signal => "変更の通知があった",
    }
}

/// A length of time, to a tenth of its unit.
fn span(seconds: i64) -> String {
    let (number, unit) = rounded(seconds);
    let unit = match unit {
        's' => "秒",
        'm' => "分",
        'h' => "時間",
        _ => "日",
    };
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [Rule; 12] = [
        Rule::FirstInterval,
        Rule::Fixed,
        Rule::NeverChanged,
        Rule::LowerBound,
        Rule::Estimate,
        Rule::UpperBound,
        Rule::Shortened,
        Rule::Lengthened,
        Rule::Kept,
        Rule::Share,
        Rule::Worth,
        Rule::Signal,
    ];

    fn reason(rule: Rule, rate_per_day: Option<f64>) -> Reason {
        Reason {
            rule,
            interval_s: 5 * DAY_S + 25_920,
            rate_per_day,
            confidence: 0.52,
            neighbours: None,
            busy_hours: None,
        }
    }

    #[test]
    fn every_reason_has_japanese_words() {
        for rule in RULES {
            for rate in [None, Some(0.14), Some(2.7)] {
                for neighbours in [None, Some(0.12), Some(-0.03)] {
                    for busy_hours in [None, Some((9, 12))] {
                        let why = Reason { neighbours, busy_hours, ..reason(rule, rate) };
                        let text = planned(&why);
                        assert!(!text.chars().any(|c| c.is_ascii_alphabetic()), "{text}");
                    }
                }
            }
        }
        for why in [Why::New(None), Why::Refused, Why::Gone { times: 2 }, Why::Failed { times: 3 }]
        {
            let text = DueBy::Schedule(why).text(Lang::Ja);
            assert!(!text.chars().any(|c| c.is_ascii_alphabetic()), "{text}");
        }
        assert!(!DueBy::Round.text(Lang::Ja).is_ascii());
    }

    #[test]
    fn the_words_say_how_often_and_why() {
        let why = Reason { neighbours: Some(0.12), ..reason(Rule::Worth, Some(2.7)) };
        assert_eq!(
            planned(&why),
            "1日に約 2.7 回変わる見込み（確信度 52%）のため、5.3日ごとに訪問します。近くのページの変化により早めます（12%）"
        );
        let why = reason(Rule::UpperBound, Some(0.14));
        assert_eq!(
            planned(&why),
            "めったに変わらない（5.3日ごと）。約7.1日ごとに変わる見込み（確信度 52%）"
        );
        assert_eq!(
            in_japanese(&Why::Failed { times: 3 }),
            "3 回続けて失敗。1時間から7日の間隔で再試行"
        );
    }
}
