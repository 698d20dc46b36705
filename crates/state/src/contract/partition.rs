use crate::{
    Change, Committed, CrawlState, Epoch, NumberedMail, PartitionId, Partitioning, StateError,
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
}
