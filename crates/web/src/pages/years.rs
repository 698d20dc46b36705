//! Which days a calendar or a chart shows: the newest, or a year that was chosen.

use maud::{Markup, html};
use nenrin_state::{DayCounts, DayQuery, SiteId};

use crate::{WebApp, WebError, chart, format, guard::Fields, visitor::Visitor};

/// The years with data, and the one that is shown.
pub(crate) struct Years {
    today: i64,
    /// The years with data, oldest first.
    known: Vec<i64>,
    /// `None` shows the last twelve months.
    shown: Option<i64>,
}

impl Years {
    /// `days` are the days with data, oldest first. Unless a year with data is asked for, the last
    /// twelve months are shown, or the year of the newest data if that is older.
    pub(crate) fn of(days: impl Iterator<Item = i64>, query: &Fields, today: i64) -> Self {
        let mut known = Vec::new();
        let mut newest = today;
        for day in days {
            let year = format::year(day);
            if known.last() != Some(&year) {
                known.push(year);
            }
            newest = day;
        }
        let asked = query.number("year").filter(|year| known.contains(year));
        let shown =
            asked.or_else(|| (newest < chart::first_day(today)).then(|| format::year(newest)));
        Self { today, known, shown }
    }

    /// The last day to show.
    pub(crate) fn last_day(&self) -> i64 {
        self.shown.map_or(self.today, |year| format::first_of_year(year + 1) - 1).min(self.today)
    }

    /// The first and last day of the year that is shown.
    pub(crate) fn chosen(&self) -> Option<(i64, i64)> {
        self.shown.map(|year| (format::first_of_year(year), self.last_day()))
    }

    /// Links to the other years. `base` is the page's own address, with its query.
    pub(crate) fn links(&self, visitor: &Visitor, base: &str) -> Markup {
        let link = |year: Option<i64>| {
            let join = if base.contains('?') { '&' } else { '?' };
            let year = year.map_or(String::new(), |year| year.to_string());
            format!("{base}{join}year={year}#days")
        };
        let here = |year| (year == self.shown).then_some("true");
        let is_recent = self.known.last().is_some_and(|year| *year + 1 >= format::year(self.today));
        html! {
            @if let ([year], Some(_)) = (&self.known[..], self.shown) {
                p.muted.years { (year) }
            }
            @if self.known.len() > 1 {
                nav.years aria-label=(visitor.t("Year", "年")) {
                    @if is_recent {
                        a href=(link(None)) aria-current=[here(None)] { (visitor.t("last 12 months", "直近12か月")) }
                    }
                    @for year in self.known.iter().rev() {
                        a href=(link(Some(*year))) aria-current=[here(Some(*year))] { (year) }
                    }
                }
            }
        }
    }
}

/// All days with visits, of one site or of all, oldest first.
pub(crate) fn days(
    app: &WebApp,
    visitor: &Visitor,
    site: Option<SiteId>,
) -> Result<Vec<DayCounts>, WebError> {
    let to_day = visitor.now_s.div_euclid(format::DAY_S);
    Ok(app.state.days(DayQuery { site, from_day: i64::MIN, to_day })?)
}

/// The first and the newest day with a version.
pub(crate) fn with_versions(days: &[DayCounts]) -> Option<(i64, i64)> {
    let mut kept = days.iter().filter(|day| day.versions > 0).map(|day| day.day);
    let first = kept.next()?;
    Some((first, kept.next_back().unwrap_or(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn years(days: &[i64], asked: &str) -> Years {
        let query = Fields::parse(format!("year={asked}").as_bytes());
        Years::of(days.iter().copied(), &query, format::first_of_year(2026) + 100)
    }

    #[test]
    fn an_archive_of_old_days_opens_where_its_data_is() {
        let old = format::first_of_year(2022) + 40;
        let shown = years(&[old, old + 1], "");
        assert_eq!(shown.chosen(), Some((format::first_of_year(2022), shown.last_day())));
        assert_eq!(shown.last_day(), format::first_of_year(2023) - 1);
    }

    #[test]
    fn the_last_twelve_months_are_shown_where_there_is_something_new() {
        let today = format::first_of_year(2026) + 100;
        let shown = years(&[format::first_of_year(2019), today - 3], "");
        assert_eq!((shown.chosen(), shown.last_day()), (None, today));
        assert_eq!(years(&[], "").last_day(), today, "an empty archive");
    }

    #[test]
    fn a_year_can_be_chosen_if_it_has_data() {
        let today = format::first_of_year(2026) + 100;
        let days = [format::first_of_year(2019) + 5, today];
        assert_eq!(years(&days, "2019").last_day(), format::first_of_year(2020) - 1);
        assert_eq!(years(&days, "2026").last_day(), today, "nothing is known of the future");
        assert_eq!(years(&days, "2021").chosen(), None, "no data");
        assert_eq!(years(&days, "-1e9").chosen(), None);
    }
}
