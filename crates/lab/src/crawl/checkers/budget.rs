use std::collections::BTreeMap;

use super::Findings;

const DAY_S: i64 = 86_400;

/// The law: the pages of a site, and those of the whole archive, are asked for no more often in a day
/// than the budget says, in all partitions together. The slack: what a worker had under way when it lost its partition was asked for
/// and is not known to the next one.
#[derive(Debug, Default)]
pub struct Budget {
    /// Requests and slack, by the number of the budget and day.
    days: BTreeMap<(u32, i64), (u64, u64)>,
    /// What was broken.
    pub findings: Findings,
}

impl Budget {
    /// A page that counts for a budget is asked for.
    pub fn asked(&mut self, now_s: i64, budget: u32, most: u64) {
        let day = now_s.div_euclid(DAY_S);
        let (asked, slack) = self.days.entry((budget, day)).or_default();
        *asked += 1;
        if *asked > most + *slack {
            let (asked, slack) = (*asked, *slack);
            let says =
                || format!("budget {budget}: {asked} visits on day {day}, {most} + {slack} may be");
            self.findings.note(says);
        }
    }

    /// A worker lost its partition while it had requests that count for a budget under way.
    pub fn lost(&mut self, now_s: i64, budget: u32, under_way: u64) {
        self.days.entry((budget, now_s.div_euclid(DAY_S))).or_default().1 += under_way;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_visit_too_many_is_noticed() {
        let mut budget = Budget::default();
        (0..3).for_each(|_| budget.asked(5, 1, 3));
        budget.asked(DAY_S, 1, 3);
        budget.asked(5, 2, 3);
        assert!(budget.findings.0.is_empty());
        budget.lost(6, 1, 1);
        budget.asked(7, 1, 3);
        assert!(budget.findings.0.is_empty(), "what a worker had under way may be asked for again");
        budget.asked(8, 1, 3);
        assert_eq!(budget.findings.0.len(), 1);
    }
}
