//! Patterns, headers, ignored parts, group and tags in the form.

use nenrin_extract::PartSelector;
use nenrin_state::{IgnoredPart, PagePatterns, SiteConditions, SiteLabels};

use super::{SiteForm, check::Check, revisit::lines};

impl SiteForm {
    pub(super) fn set_choice(&mut self, conditions: &SiteConditions) {
        self.include = lines(&conditions.pages.include);
        self.exclude = lines(&conditions.pages.exclude);
        self.headers = lines(&conditions.headers);
        self.ignored = lines(&conditions.ignored);
        self.group = conditions.labels.group.clone();
        self.tags = conditions.labels.tags.join(", ");
    }

    pub(super) fn patterns(&self, check: &mut Check) -> PagePatterns {
        PagePatterns {
            include: check.lines("include", &self.include, PagePatterns::MAX),
            exclude: check.lines("exclude", &self.exclude, PagePatterns::MAX),
        }
    }

    pub(super) fn ignored_parts(&self, check: &mut Check) -> Vec<IgnoredPart> {
        let parts: Vec<IgnoredPart> = check.lines("ignored", &self.ignored, IgnoredPart::MAX);
        for part in &parts {
            if let Err(error) = PartSelector::parse(&part.selector) {
                check.error("ignored", &error.to_string());
            }
        }
        parts
    }

    pub(super) fn labels(&self, check: &mut Check) -> SiteLabels {
        SiteLabels::typed(&self.group, &self.tags).unwrap_or_else(|error| {
            check.error("tags", &error);
            SiteLabels::default()
        })
    }
}
