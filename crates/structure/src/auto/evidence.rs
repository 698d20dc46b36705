//! What is known of a page beside its history and its position in the site.

/// What a feed or a sitemap says about a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Hint {
    /// Nothing about this page.
    #[default]
    Silent,
    /// It changed since the last visit.
    SaysChanged,
    /// It did not.
    SaysSame,
}

/// Optional evidence about one page at the beginning of a round. How much each kind is worth is
/// learnt from visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Age of the content by Last-Modified, in seconds, when the page was last visited.
    pub age_at_last_visit_s: Option<i64>,
    /// What feeds and sitemaps say.
    pub hint: Hint,
    /// Rounds that passed without a visit to the page: it has had more time to change.
    pub rounds_unseen: u32,
    /// Pages with the same number change together: they share a template or a fragment.
    pub template: Option<u32>,
}
