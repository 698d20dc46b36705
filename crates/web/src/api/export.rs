//! A site as a WARC file, written while it is downloaded.

use std::{
    io::{self, Write},
    sync::Arc,
};

use axum::{
    body::{Body, Bytes},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use tokio::sync::mpsc;

use super::call::Call;
use crate::{WebError, format};

/// Parts of the file that may wait for a slow reader.
const WAITING: usize = 4;
const PART_BYTES: usize = 256 << 10;

pub(super) fn export(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    // Whole days, including the last one.
    let from_s = call.day("from")?.map_or(i64::MIN, |day| day * format::DAY_S);
    let to_s = call.day("to")?.map_or(i64::MAX, |day| (day + 1) * format::DAY_S - 1);
    let (sender, mut parts) = mpsc::channel(WAITING);
    let control = Arc::clone(&call.app.control);
    // It may take hours, so it does not use the threads that answer pages.
    std::thread::spawn(move || {
        let out = Parts { part: Vec::with_capacity(PART_BYTES), sender: sender.clone() };
        if let Err(error) = control.export_warc(site.id, (from_s, to_s), Box::new(out)) {
            // Breaking off the stream is the only way left to show that it is incomplete.
            let _ = sender.blocking_send(Err(io::Error::other(error)));
        }
    });
    let name: String = site
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' })
        .collect();
    let headers = [
        (header::CONTENT_TYPE, "application/warc".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.warc.gz\"")),
    ];
    let body = Body::from_stream(stream::poll_fn(move |context| parts.poll_recv(context)));
    Ok((StatusCode::OK, headers, body).into_response())
}

/// Sends what is written, in parts.
struct Parts {
    part: Vec<u8>,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.part.extend_from_slice(bytes);
        if self.part.len() >= PART_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.part.is_empty() {
            return Ok(());
        }
        let part = std::mem::replace(&mut self.part, Vec::with_capacity(PART_BYTES));
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Ok(part.into())).map_err(gone)
    }
}
