/// Where an archived answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// On replay's one origin, from which the sandbox keeps it apart.
    Shared,
    /// On the origin of its server, with or without a banner.
    Own {
        /// Whether pages have no banner.
        is_bare: bool,
    },
}
