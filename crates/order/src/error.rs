/// Errors of the crawl order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// A snapshot is damaged or from another version. The order can be rebuilt from the known pages
    /// and links.
    #[error("the snapshot of the crawl order cannot be read ({reason}); rebuild it from the links")]
    BadSnapshot {
        /// What is wrong.
        reason: &'static str,
    },
    /// A strategy's name is not known.
    #[error("unknown strategy {name:?}; write one of {known}", known = crate::Strategy::NAMES.join(", "))]
    UnknownStrategy {
        /// The name given.
        name: String,
    },
}
