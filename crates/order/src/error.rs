/// What can go wrong in the order of collection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// A snapshot is damaged or from another version; the order can be rebuilt by telling it the
    /// known pages and links again.
    #[error("the snapshot of the crawl order cannot be read ({reason}); rebuild it from the links")]
    BadSnapshot {
        /// What is wrong.
        reason: &'static str,
    },
    /// A strategy's name is not known.
    #[error("unknown strategy {name:?}; known are {known}", known = crate::Strategy::NAMES.join(", "))]
    UnknownStrategy {
        /// The name.
        name: String,
    },
}
