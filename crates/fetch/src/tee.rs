use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Permission;
use crate::head::{Cut, HeadCutter};

/// An HTTP/1 connection that records the exact bytes of the request and of the response head, which
/// the HTTP library does not give out.
pub(crate) struct Tee<T> {
    io: T,
    permission: Permission,
    recorder: Recorder,
}

/// The other end of a [`Tee`], for the side that sends requests.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    request: Vec<u8>,
    /// `None` between exchanges.
    head: Option<HeadCutter>,
    answer_bytes: u64,
    after_head_bytes: u64,
    head_parts: u32,
    is_head_too_large: bool,
}

/// In so many parts may a response head arrive: it is looked at again from its beginning with each.
const MAX_HEAD_PARTS: u32 = 4096;

/// What is wrong with a head in more parts.
pub(crate) const TOO_MANY_PARTS: &str = "its head comes in more than 4096 parts";

/// What is wrong with a connection that brings far more than bodies.
pub(crate) const TOO_MUCH: &str = "it sends far more than its answer";

impl Recorder {
    /// Starts recording one exchange, with this limit for the response head.
    pub(crate) fn begin(&self, max_head_bytes: usize) {
        *self.record() =
            Record { head: Some(HeadCutter::new(max_head_bytes)), ..Record::default() };
    }

    /// Whether any byte of an answer has arrived.
    pub(crate) fn is_answered(&self) -> bool {
        self.record().answer_bytes > 0
    }

    /// Whether the connection was cut because the head is too large.
    pub(crate) fn is_head_too_large(&self) -> bool {
        self.record().is_head_too_large
    }

    /// Whether the connection was cut because the head came in too many parts.
    pub(crate) fn has_too_many_parts(&self) -> bool {
        self.record().head_parts > MAX_HEAD_PARTS
    }

    /// The request and the response head; `None` if the head is not complete.
    pub(crate) fn take_heads(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut record = self.record();
        let head = record.head.take()?.into_head()?;
        Some((std::mem::take(&mut record.request), head))
    }

    /// Number of bytes received after the head so far, including any transfer coding.
    pub(crate) fn after_head_bytes(&self) -> u64 {
        self.record().after_head_bytes
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        // A record is consistent between any two statements that change it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    fn sent(&mut self, bytes: &[u8]) {
        if self.head.is_some() {
            self.request.extend_from_slice(bytes);
        }
    }

    fn received(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u64;
        self.answer_bytes += length;
        self.head_parts += u32::from(self.head.is_some());
        if self.head.is_some() && self.head_parts > MAX_HEAD_PARTS {
            return Err(io::Error::other(TOO_MANY_PARTS));
        }
        match self.head.as_mut().map(|head| head.take(bytes)) {
            None => self.after_head_bytes += length,
            Some(Cut::Complete { surplus }) => self.after_head_bytes += surplus as u64,
            Some(Cut::More) => {}
            Some(Cut::TooLarge) => {
                self.is_head_too_large = true;
                return Err(io::Error::other("the response head is too large"));
            }
        }
        Ok(())
    }
}

impl<T> Tee<T> {
    pub(crate) fn new(io: T, permission: Permission) -> (Self, Recorder) {
        let recorder = Recorder::default();
        (Self { io, permission, recorder: recorder.clone() }, recorder)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Tee<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                Poll::Ready(self.recorder.record().received(&buffer.filled()[before..]))
            }
            // Many servers end TLS without notice. A cut is still noticed in bodies that have a
            // length or chunks; for others the end of the connection is the end.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Tee<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.permission.check()?;
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.recorder.record().sent(&bytes[..count]);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

/// What an HTTP/2 connection may read beside bodies: heads, settings, pings. Far more than any
/// honest server sends in one exchange.
const FREE_BYTES: u64 = 4 << 20;

/// What may be on the wire for each byte of a body: small frames have heads of nine bytes.
const WIRE_PER_BODY: u64 = 16;

/// A connection that ends when it brings far more than bodies.
pub(crate) struct Metered<T> {
    io: T,
    permission: Permission,
    meter: Meter,
}

/// The other end of a [`Metered`] connection.
#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// An exchange begins.
    pub(crate) fn begin(&self) {
        self.0.store(FREE_BYTES, Ordering::Relaxed);
    }

    pub(crate) fn allow(&self, body_bytes: usize) {
        self.0.fetch_add(WIRE_PER_BODY * body_bytes as u64, Ordering::Relaxed);
    }

    /// Whether the connection was cut.
    pub(crate) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn received(&self, bytes: u64) -> io::Result<()> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.fetch_sub(bytes.min(left), Ordering::Relaxed);
        match bytes <= left {
            true => Ok(()),
            false => Err(io::Error::other(TOO_MUCH)),
        }
    }
}

impl<T> Metered<T> {
    pub(crate) fn new(io: T, permission: Permission) -> (Self, Meter) {
        let meter = Meter::default();
        meter.begin();
        (Self { io, permission, meter: meter.clone() }, meter)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                Poll::Ready(self.meter.received((buffer.filled().len() - before) as u64))
            }
            other => other,
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.permission.check()?;
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
