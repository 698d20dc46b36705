use std::error::Error as _;
use std::io;
use std::net::IpAddr;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nenrin_urls::ProxyServer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::head::{render_request, render_response, status_digits};
use crate::prepared::Prepared;
use crate::request::host_header;
use crate::tee::{Meter, Metered, Recorder, TOO_MANY_PARTS, TOO_MUCH, Tee};
use crate::{FetchFailure, FetchOptions};

/// HTTP/2 flow control: how many bytes of one body may arrive before we read them.
const HTTP2_WINDOW_BYTES: u32 = 512 * 1024;

/// The smallest buffer that the HTTP/1 library accepts.
const MIN_HTTP1_BUFFER_BYTES: usize = 8192;

/// An open connection that carries one exchange at a time. Dropping it closes it at once, whatever
/// the server still sends.
pub(crate) struct Connection {
    sender: Sender,
    task: JoinHandle<()>,
    /// The server's address, unless only a proxy knows it.
    pub(crate) address: Option<IpAddr>,
    /// The proxy that gets whole requests.
    proxy: Option<ProxyServer>,
    /// The version of TLS.
    pub(crate) tls: Option<String>,
}

enum Sender {
    Http1 { sender: http1::SendRequest<Full<Bytes>>, recorder: Recorder },
    Http2 { sender: http2::SendRequest<Full<Bytes>>, meter: Meter },
}

/// A failure on a connection.
pub(crate) struct Broken {
    pub(crate) failure: FetchFailure,
    /// The connection ended before any byte of an answer. If it was idle before, the server had
    /// most likely closed it in the meantime, and the request can be sent again.
    pub(crate) is_unanswered: bool,
}

impl From<FetchFailure> for Broken {
    fn from(failure: FetchFailure) -> Self {
        Self { failure, is_unanswered: false }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Opens HTTP/1 on a stream, as lenient towards odd servers as the library can be.
    pub(crate) async fn http1<T>(
        stream: T,
        address: Option<IpAddr>,
        tls: Option<String>,
        options: &FetchOptions,
    ) -> hyper::Result<Self>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (tee, recorder) = Tee::new(stream, options.permission.clone());
        let (sender, connection) = http1::Builder::new()
            .title_case_headers(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .max_headers(options.max_headers)
            .max_buf_size(options.max_head_bytes.saturating_add(MIN_HTTP1_BUFFER_BYTES))
            .handshake(TokioIo::new(tee))
            .await?;
        // The code that waits for a response sees how the connection ends.
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender: Sender::Http1 { sender, recorder }, task, address, proxy: None, tls })
    }

    /// Opens HTTP/2 on a stream.
    pub(crate) async fn http2<T>(
        stream: T,
        address: Option<IpAddr>,
        tls: Option<String>,
        options: &FetchOptions,
    ) -> hyper::Result<Self>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Above its limit the library reports a broken protocol. With a higher limit most heads
        // that are too large reach us and get the right error.
        let max_list_bytes = options.max_head_bytes.saturating_mul(4);
        let (stream, meter) = Metered::new(stream, options.permission.clone());
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(HTTP2_WINDOW_BYTES)
            .initial_connection_window_size(HTTP2_WINDOW_BYTES)
            .max_header_list_size(u32::try_from(max_list_bytes).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(stream))
            .await?;
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender: Sender::Http2 { sender, meter }, task, address, proxy: None, tls })
    }

    /// The same connection, which leads to a proxy that gets whole requests.
    pub(crate) fn with_proxy(mut self, proxy: ProxyServer) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Waits until a request can be sent; fails if the connection has ended.
    pub(crate) async fn ready(&mut self) -> hyper::Result<()> {
        match &mut self.sender {
            Sender::Http1 { sender, .. } => sender.ready().await,
            Sender::Http2 { sender, .. } => sender.ready().await,
        }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1 { sender, .. } => sender.is_closed(),
            Sender::Http2 { sender, .. } => sender.is_closed(),
        }
    }

    /// Sends the request and waits for the response head.
    pub(crate) async fn send(
        &mut self,
        prepared: &Prepared<'_>,
        options: &FetchOptions,
    ) -> Result<Response<Incoming>, Broken> {
        let outcome = match &mut self.sender {
            Sender::Http1 { sender, recorder } => {
                let request = prepared.http1_request(self.proxy.as_ref())?;
                recorder.begin(options.max_head_bytes);
                sender.send_request(request).await
            }
            Sender::Http2 { sender, meter } => {
                meter.begin();
                sender.send_request(prepared.http2_request()?).await
            }
        };
        outcome.map_err(|error| self.broken(&error, prepared, options))
    }

    /// Explains an error that came before the response head.
    fn broken(
        &self,
        error: &hyper::Error,
        prepared: &Prepared<'_>,
        options: &FetchOptions,
    ) -> Broken {
        let (is_answered, is_too_large) = match &self.sender {
            Sender::Http1 { recorder, .. } => {
                (recorder.is_answered(), recorder.is_head_too_large())
            }
            Sender::Http2 { .. } => (false, is_http2_flood(error)),
        };
        let excess = match &self.sender {
            Sender::Http1 { recorder, .. } => {
                recorder.has_too_many_parts().then_some(TOO_MANY_PARTS)
            }
            Sender::Http2 { meter, .. } => meter.is_spent().then_some(TOO_MUCH),
        };
        if let Some(reason) = excess {
            prepared.protocol(reason.to_owned()).into()
        } else if is_too_large || error.is_parse_too_large() {
            prepared.head_too_large(options).into()
        } else if is_closed_by_server(error) {
            let failure = FetchFailure::Closed { host: prepared.host() };
            Broken { failure, is_unanswered: !is_answered }
        } else {
            prepared.protocol(error_text(error)).into()
        }
    }

    /// The heads of the exchange: as recorded for HTTP/1, as written by us for HTTP/2.
    pub(crate) fn heads(
        &self,
        response: &Response<Incoming>,
        prepared: &Prepared<'_>,
        options: &FetchOptions,
    ) -> Result<(Vec<u8>, Vec<u8>), Broken> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(prepared.protocol("it switches to another protocol".into()).into());
        }
        let (request_head, response_head) = match &self.sender {
            Sender::Http1 { recorder, .. } => recorder.take_heads().ok_or_else(|| Broken {
                failure: prepared.protocol("it answered before the request was sent".into()),
                is_unanswered: !recorder.is_answered(),
            })?,
            Sender::Http2 { .. } => {
                (prepared_head(prepared), render_response(response.status(), response.headers()))
            }
        };
        // What only the proxy was sent is not part of the request.
        let request_head = match self.proxy {
            Some(_) => prepared_head(prepared),
            None => request_head,
        };
        if response_head.len() > options.max_head_bytes
            || response.headers().len() > options.max_headers
        {
            return Err(prepared.head_too_large(options).into());
        }
        if status_digits(&response_head) != Some(response.status().as_str().as_bytes()) {
            return Err(prepared.protocol("its status line is ambiguous".into()).into());
        }
        Ok((request_head, response_head))
    }

    /// So much of a body came: what is around it on the wire may be in proportion.
    pub(crate) fn allow(&self, body_bytes: usize) {
        if let Sender::Http2 { meter, .. } = &self.sender {
            meter.allow(body_bytes);
        }
    }

    /// How many more bytes came than Content-Length announced, as far as they were read.
    pub(crate) fn surplus_bytes(&self, announced: Option<u64>) -> u64 {
        match (&self.sender, announced) {
            (Sender::Http1 { recorder, .. }, Some(announced)) => {
                recorder.after_head_bytes().saturating_sub(announced)
            }
            _ => 0,
        }
    }
}

/// A request as it would be written to the server itself.
fn prepared_head(prepared: &Prepared<'_>) -> Vec<u8> {
    let host = host_header(prepared.url);
    let post = prepared.post.map(|body| &body[..]);
    render_request(prepared.url.path_and_query(), &host, &prepared.headers, post)
}

/// Whether the connection was closed or broke, rather than carried something wrong.
fn is_closed_by_server(error: &hyper::Error) -> bool {
    let is_io = error.source().is_some_and(|source| source.is::<io::Error>());
    let is_http2_end = http2_error(error).is_some_and(|error| {
        let is_refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
        error.is_io() || (error.is_remote() && (error.is_go_away() || is_refused))
    });
    let is_end = error.is_incomplete_message() || error.is_canceled() || error.is_closed();
    is_end || is_io || is_http2_end
}

/// Whether our HTTP/2 library gave up on a header block that would not end.
fn is_http2_flood(error: &hyper::Error) -> bool {
    http2_error(error).is_some_and(|error| {
        error.is_library() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM)
    })
}

fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    error.source().and_then(|source| source.downcast_ref())
}

/// An error with its causes.
pub(crate) fn error_text(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
