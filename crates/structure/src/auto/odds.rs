//! What a visit to one page tells about another, for schedules that know no rounds.

use crate::auto::beliefs::{Beliefs, Level, SharedBeliefs};
use crate::auto::gaussian::{Gaussian, Sum};
use crate::auto::layout::{FEATURES, HISTORIES};
use crate::auto::options::AutoOptions;
use crate::graph::{PageIndex, SiteGraph};

/// The chance of a change before and after something was learnt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Odds {
    /// The chance that the page changed, before.
    pub before: f64,
    /// And after.
    pub after: f64,
}

impl Odds {
    /// By how much the odds have grown: 1 when nothing was learnt.
    #[must_use]
    pub fn ratio(self) -> f64 {
        let odds = |chance: f64| {
            let chance = chance.clamp(1e-9, 1.0 - 1e-9);
            chance / (1.0 - chance)
        };
        odds(self.after) / odds(self.before)
    }
}

impl Beliefs {
    /// The odds that `page` changed, given that `visited` was seen to have changed or not since the
    /// same time. On a server whose pages go their own ways the two are nearly independent: the
    /// ratio is near 1, and nothing is pulled forward.
    ///
    /// `same_template`: whether the two are known to share one.
    #[must_use]
    pub fn odds_given(
        &self,
        options: &AutoOptions,
        shared: &SharedBeliefs,
        graph: &SiteGraph,
        page: PageIndex,
        (visited, changed): (PageIndex, bool),
        same_template: bool,
    ) -> Odds {
        let sum = self.sum(options, shared, graph, page);
        if page == visited {
            return Odds { before: sum.chance(), after: f64::from(u8::from(changed)) };
        }
        let common = self.common_variance(options, graph, page, visited, same_template);
        let lesson = self.sum(options, shared, graph, visited).lesson(changed);
        let after = Sum {
            mean: sum.mean + common * lesson.pull,
            variance: (sum.variance - common * common * lesson.shrink).max(1.0),
        };
        Odds { before: sum.chance(), after: after.chance() }
    }

    /// The chance that a page changes from one round to the next, before anything was seen.
    #[must_use]
    pub fn chance(
        &self,
        options: &AutoOptions,
        shared: &SharedBeliefs,
        graph: &SiteGraph,
        page: PageIndex,
    ) -> f64 {
        self.sum(options, shared, graph, page).chance()
    }

    fn sum(
        &self,
        options: &AutoOptions,
        shared: &SharedBeliefs,
        graph: &SiteGraph,
        page: PageIndex,
    ) -> Sum {
        let unknown = |variance| Gaussian::new(0.0, variance);
        let directory = self.directories.get(graph.directory(page) as usize).copied();
        let family = self.families.get(graph.family(page) as usize).copied();
        let own = self.pages.get(page.at());
        let page_variance = self.page_variance(shared, options);
        let history = own.map_or(1, |own| usize::from(own.history)).min(HISTORIES - 1);
        let mut sum = Sum::NOTHING.plus(self.bias).plus(shared.effects[FEATURES + history]);
        for level in [Level::Server, Level::Directory, Level::Family, Level::Template] {
            sum = sum.plus(unknown(self.shift_variance(level, shared, options)));
        }
        sum.plus(directory.unwrap_or_else(|| unknown(options.directory_variance)))
            .plus(family.unwrap_or_else(|| unknown(options.family_variance)))
            .plus(own.map_or_else(
                || unknown(page_variance),
                |own| own.level().under_prior(options.page_variance, page_variance),
            ))
    }

    /// The variance of what the two pages are known to have in common: only what rounds have
    /// shown, so that on a server where nothing was learnt one page says nothing of another.
    fn common_variance(
        &self,
        options: &AutoOptions,
        graph: &SiteGraph,
        a: PageIndex,
        b: PageIndex,
        same_template: bool,
    ) -> f64 {
        let learnt = |level| self.learnt_shift_variance(level, options);
        let mut common = learnt(Level::Server);
        if graph.directory(a) == graph.directory(b) {
            common += learnt(Level::Directory);
        }
        if graph.family(a) == graph.family(b) {
            common += learnt(Level::Family);
        }
        if same_template {
            common += learnt(Level::Template);
        }
        common
    }
}
