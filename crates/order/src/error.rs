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
    /// A page id is not larger than the last: ids must grow with discovery.
    #[error("page id {id} is not larger than the last known id {last}")]
    IdNotAscending {
        /// The id that was to be added.
        id: u64,
        /// The last id added.
        last: u64,
    },
    /// A strategy's name is not known.
    #[error("unknown strategy {name:?}; known are {known}", known = crate::Strategy::NAMES.join(", "))]
    UnknownStrategy {
        /// The name.
        name: String,
    },
}
