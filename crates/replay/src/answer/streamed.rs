//! A body that is read from the archive while it is sent.

use std::{
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::HttpBody;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use nenrin_urls::VersionId;
use tokio::task::JoinHandle;

use crate::{Archive, ArchiveError};

/// As much is in memory of a body that is being sent.
const PART_BYTES: usize = 512 << 10;

/// A part of a version's body. Nothing is read before the client has taken what came before, so a
/// slow client holds no thread and little memory.
pub(crate) struct Streamed {
    archive: Arc<dyn Archive>,
    version: VersionId,
    left: Range<u64>,
    reading: Option<JoinHandle<Result<Bytes, ArchiveError>>>,
}

impl Streamed {
    pub(crate) fn new(archive: Arc<dyn Archive>, version: VersionId, range: Range<u64>) -> Self {
        Self { archive, version, left: range, reading: None }
    }

    /// Reads the next part where waiting for a disk is allowed.
    fn read(&self) -> JoinHandle<Result<Bytes, ArchiveError>> {
        let (archive, version, from) = (self.archive.clone(), self.version, self.left.start);
        let length = usize::try_from(self.left.end - from).unwrap_or(usize::MAX).min(PART_BYTES);
        tokio::task::spawn_blocking(move || archive.read_part(version, from, length))
    }
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = ArchiveError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ArchiveError>>> {
        if self.left.is_empty() {
            return Poll::Ready(None);
        }
        let mut reading = self.reading.take().unwrap_or_else(|| self.read());
        let Poll::Ready(read) = Pin::new(&mut reading).poll(context) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        let stopped = |why: String| ArchiveError::new("read a part of a version", why);
        let part = read.unwrap_or_else(|error| Err(stopped(error.to_string())));
        let part = part.and_then(|part| match part.is_empty() {
            true => Err(stopped("the body ends too early".to_owned())),
            false => Ok(part),
        });
        // What is cut off by an error is seen by the client: the length was announced.
        match &part {
            Ok(part) => self.left.start += part.len() as u64,
            Err(error) => {
                tracing::error!(%error, version = %self.version, "a body was not sent to its end");
                self.left.start = self.left.end;
            }
        }
        Poll::Ready(Some(part.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.end - self.left.start)
    }
}
