//! What is known of a page beside its history and its place.

/// What a feed or a sitemap says of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Hint {
    /// Nothing.
    #[default]
    Silent,
    /// It changed since the last visit.
    SaysChanged,
    /// It did not.
    SaysSame,
}

/// Optional evidence about one page, as of the beginning of a round. What each kind is worth is
/// learnt from how visits turn out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// How old the content was, by Last-Modified, when the page was last visited.
    pub age_at_last_visit_s: Option<i64>,
    /// What feeds and sitemaps say.
    pub hint: Hint,
    /// Rounds that passed without a visit to the page: it has had longer to change.
    pub rounds_unseen: u32,
    /// Pages with this in common change together: a template, a shared block.
    pub template: Option<u32>,
}
