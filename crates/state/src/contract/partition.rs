use crate::{
    Change, Committed, CrawlState, Division, Epoch, NumberedMail, PartitionId, Partitioning,
    Received, SiteId, StateError,
};

/// A state object is the state of one partition. What concerns a page of another partition leaves
/// in the same commit as mail. The receiver takes it in with [`Change::MailTaken`], which records in
/// the same transaction how far it has read, so that nothing is lost or counted twice.
pub trait PartitionState: CrawlState {
    /// How the archive is divided, and which part of it this is.
    fn partition(&self) -> (Partitioning, PartitionId);

    /// Takes the partition over: commits under earlier epochs fail from now on.
    fn take_over(&self) -> Result<Epoch, StateError>;

    /// As [`CrawlState::commit`], by a holder that may have lost the partition: fails with
    /// [`StateError::Superseded`] if it was taken over since.
    fn commit_under(&self, epoch: Epoch, changes: &[Change]) -> Result<Committed, StateError>;

    /// Mail to another partition, after a number.
    fn outbox(
        &self,
        to: PartitionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedMail>, StateError>;

    /// The number of the last mail of another partition that was taken in.
    fn mail_read(&self, from: PartitionId) -> Result<u64, StateError>;

    /// What pages got of scores from other partitions.
    fn received(&self) -> Result<Vec<Received>, StateError>;

    /// Whether a round of a site may begin or go on here: none begins before all partitions have
    /// ended the one before.
    fn may_begin_round(&self, site: SiteId) -> Result<bool, StateError>;

    /// How the visits of a day are divided, of a site or of the whole archive; `None` if there is one
    /// partition only.
    fn division(&self, site: Option<SiteId>, day: i64) -> Result<Option<Division>, StateError>;
}
