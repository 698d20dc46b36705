//! The gallery of bad servers, as far as one exchange shows them: each a line that says what the
//! server sends and what the result must be. Further kinds are further lines.
//!
//! Every kind must end within its time whatever it sends, and must not make the client work or
//! remember more than its limits. Kinds that need several pages are in the program's own tests.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::secure::Authority;
use super::*;

/// What a server does, one after the other. At the end it waits for the client to go away.
#[derive(Clone)]
enum Do {
    Send(Vec<u8>),
    /// The same bytes, so many times.
    Repeat(Vec<u8>, usize),
    /// The same bytes until the client goes away.
    Endless(Vec<u8>),
    /// One byte at a time, with this pause.
    Drip(Vec<u8>, u64),
    Wait(u64),
    Close,
}

/// What the result must be.
enum Must {
    /// This status, and a body of this length.
    Bring(u16, u64),
    /// A failure of one of these kinds.
    Fail(&'static [&'static str]),
    /// Either is right, as long as it ends.
    End,
}

use Do::{Close, Drip, Endless, Repeat, Send, Wait};
use Must::{Bring, End, Fail};

struct Kind {
    name: &'static str,
    script: Vec<Do>,
    must: Must,
}

fn kind(name: &'static str, script: impl Into<Vec<Do>>, must: Must) -> Kind {
    Kind { name, script: script.into(), must }
}

fn send(bytes: impl AsRef<[u8]>) -> Do {
    Send(bytes.as_ref().to_vec())
}

/// A whole answer, then the end of the connection.
fn says(name: &'static str, answer: impl AsRef<[u8]>, must: Must) -> Kind {
    kind(name, [send(answer), Close], must)
}

fn http1() -> Vec<Kind> {
    const CUT: Must = Fail(&["body-cut"]);
    const BAD: Must = Fail(&["protocol"]);
    const GONE: Must = Fail(&["closed"]);
    const HEAD: Must = Fail(&["head-too-large"]);
    let ok = "HTTP/1.1 200 OK\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let head = |lines: &str| format!("{ok}{lines}\r\n");
    let chunks = |body: &str| format!("{chunked}{body}");
    vec![
        says("a good answer", head("Content-Length: 2\r\n") + "ok", Bring(200, 2)),
        says("a body up to the end", head("") + "to the end", Bring(200, 10)),
        says("nothing at all", "", GONE),
        says("one byte", "H", GONE),
        says("half a status line", "HTTP/1.1 20", GONE),
        says("half a head", "HTTP/1.1 200 OK\r\nServer: x", GONE),
        says("a head without its empty line", "HTTP/1.1 200 OK\r\nServer: x\r\n", GONE),
        says("SSH", "SSH-2.0-OpenSSH_9.6\r\n", BAD),
        says("SMTP", "220 mail.example ESMTP\r\n\r\n", BAD),
        says("FTP", "220 FTP ready\r\n\r\n", BAD),
        says("HTML without a head", "<html><body>hello</body></html>\r\n\r\n", BAD),
        says("zeros", [0; 1000], BAD),
        says("random bytes", [0xfe, 0x17, 0x99, 0x0a, 0x0d, 0x0a].repeat(50), BAD),
        says(
            "a TLS alert on a plain port",
            b"\x15\x03\x03\x00\x02\x02\x28",
            Fail(&["protocol", "closed"]),
        ),
        says(
            "HTTP/2 frames on a plain port",
            b"\0\0\0\x04\0\0\0\0\0",
            Fail(&["protocol", "closed"]),
        ),
        says("HTTP/0.9", "hello\r\n\r\n", BAD),
        says("HTTP/3 in its status line", "HTTP/3.0 200 OK\r\n\r\n", BAD),
        says("a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", BAD),
        says("a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", BAD),
        says("a status that is a word", "HTTP/1.1 OK fine\r\n\r\n", BAD),
        says("a negative status", "HTTP/1.1 -200 OK\r\n\r\n", BAD),
        says("status 000", "HTTP/1.1 000 Zero\r\n\r\n", BAD),
        says("status 999", "HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n", Bring(999, 0)),
        says("no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Bring(200, 0)),
        says(
            "a reason with escape codes",
            "HTTP/1.1 200 \x1b[2J\r\nContent-Length: 0\r\n\r\n",
            End,
        ),
        says(
            "lines that end in LF alone",
            "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
            Bring(200, 2),
        ),
        says("a line that ends in CR alone", "HTTP/1.1 200 OK\rContent-Length: 2\r\n\r\nok", End),
        says(
            "empty lines in front",
            "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            Bring(200, 2),
        ),
        says(
            "a header without a colon",
            head("Nonsense\r\nContent-Length: 2\r\n") + "ok",
            Bring(200, 2),
        ),
        says("a header without a name", head(": x\r\nContent-Length: 2\r\n") + "ok", Bring(200, 2)),
        says("a folded header", head("X: a\r\n b\r\nContent-Length: 2\r\n") + "ok", Bring(200, 2)),
        says("a NUL in a header", head("X: a\0b\r\nContent-Length: 2\r\n") + "ok", End),
        says(
            "a header in Latin-1",
            [b"HTTP/1.1 200 OK\r\nX: \xe9\xff\r\nContent-Length: 2\r\n\r\nok".as_slice()].concat(),
            Bring(200, 2),
        ),
        says(
            "two lengths that agree",
            head("Content-Length: 2\r\nContent-Length: 2\r\n") + "ok",
            Bring(200, 2),
        ),
        says(
            "two lengths that differ",
            head("Content-Length: 2\r\nContent-Length: 5\r\n") + "ok",
            Fail(&["protocol", "body-cut"]),
        ),
        says(
            "a list of lengths",
            head("Content-Length: 2, 5\r\n") + "ok",
            Fail(&["protocol", "body-cut"]),
        ),
        says(
            "a negative length",
            head("Content-Length: -1\r\n") + "ok",
            Fail(&["protocol", "body-cut"]),
        ),
        says(
            "a length that is a word",
            head("Content-Length: two\r\n") + "ok",
            Fail(&["protocol", "body-cut"]),
        ),
        says(
            "a length beyond 64 bits",
            head("Content-Length: 99999999999999999999999\r\n"),
            Fail(&["protocol", "too-large"]),
        ),
        says(
            "a length of a terabyte",
            head("Content-Length: 1000000000000\r\n"),
            Fail(&["too-large"]),
        ),
        says(
            "a length and chunks",
            head("Content-Length: 99\r\nTransfer-Encoding: chunked\r\n") + "2\r\nok\r\n0\r\n\r\n",
            Bring(200, 2),
        ),
        says("less than announced", head("Content-Length: 9\r\n") + "ok", CUT),
        says("more than announced", head("Content-Length: 2\r\n") + "much more", CUT),
        says(
            "a line break more than announced",
            head("Content-Length: 2\r\n") + "ok\r\n",
            Bring(200, 2),
        ),
        says("two answers", (head("Content-Length: 2\r\n") + "ok").repeat(2), CUT),
        says("chunks", chunks("2\r\nok\r\n0\r\n\r\n"), Bring(200, 2)),
        says("chunks with an extension", chunks("2;a=b\r\nok\r\n0\r\n\r\n"), Bring(200, 2)),
        says("chunks with trailers", chunks("2\r\nok\r\n0\r\nX: y\r\n\r\n"), Bring(200, 2)),
        says("chunks without an end", chunks("2\r\nok\r\n"), CUT),
        says("a chunk that is cut", chunks("9\r\nok"), CUT),
        says("a chunk size that is no number", chunks("zz\r\nok\r\n0\r\n\r\n"), CUT),
        says("a negative chunk size", chunks("-2\r\nok\r\n0\r\n\r\n"), CUT),
        says("a chunk size beyond 64 bits", chunks("fffffffffffffffff\r\nok\r\n"), CUT),
        says("a chunk of eight exabytes", chunks("7fffffffffffffff\r\nok\r\n"), CUT),
        says("an empty chunk size", chunks("\r\nok\r\n0\r\n\r\n"), CUT),
        says("a chunk longer than its size", chunks("1\r\nok\r\n0\r\n\r\n"), CUT),
        says("chunks without CR", chunks("2\nok\n0\n\n"), Fail(&["body-cut"])),
        says("an unknown transfer coding", head("Transfer-Encoding: gzip\r\n") + "x", End),
        says("chunked twice", head("Transfer-Encoding: chunked, chunked\r\n") + "0\r\n\r\n", End),
        says(
            "101 switching protocols",
            "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            Fail(&["protocol", "closed"]),
        ),
        says("100 and nothing more", "HTTP/1.1 100 Continue\r\n\r\n", GONE),
        says(
            "103 with links, then the answer",
            format!(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{ok}Content-Length: 2\r\n\r\nok"
            ),
            Bring(200, 2),
        ),
        says("204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", End),
        says("304 with a body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok", End),
        says("a head of 300 lines", head(&"X: y\r\n".repeat(300)), HEAD),
        says("a header of 100 KB", head(&format!("X: {}\r\n", "y".repeat(100_000))), HEAD),
        kind(
            "endless headers",
            [send(ok), Endless(b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(100))],
            HEAD,
        ),
        kind(
            "an endless header",
            [send("HTTP/1.1 200 OK\r\nX: "), Endless(vec![b'y'; 4096])],
            HEAD,
        ),
        kind("an endless status line", [send("HTTP/1.1 200 "), Endless(vec![b'y'; 4096])], HEAD),
        kind(
            "endless 100",
            [Endless(b"HTTP/1.1 100 Continue\r\n\r\n".repeat(50))],
            Fail(&["head-too-large", "protocol"]),
        ),
        kind(
            "endless empty lines",
            [Endless(b"\r\n".repeat(1000))],
            Fail(&["head-too-large", "protocol"]),
        ),
        kind("an endless body", [send(head("")), Endless(vec![0; 65536])], Fail(&["too-large"])),
        kind(
            "endless chunks",
            [
                send(chunked),
                Endless(b"1000\r\n".iter().copied().chain([b'x'; 4096]).chain(*b"\r\n").collect()),
            ],
            Fail(&["too-large"]),
        ),
        kind("endless one-byte chunks", [send(chunked), Endless(b"1\r\nx\r\n".repeat(500))], CUT),
        kind(
            "an endless chunk extension",
            [send(chunked), send("1;a="), Endless(vec![b'b'; 4096])],
            CUT,
        ),
        kind(
            "endless small chunk extensions",
            [send(chunked), Endless(b"1;abcdefgh=ijklmnop\r\nx\r\n".repeat(100))],
            CUT,
        ),
        kind(
            "endless trailers",
            [send(chunks("0\r\n")), Endless(b"X: yyyyyyyyyyyyyyyy\r\n".repeat(50))],
            CUT,
        ),
        kind(
            "an endless chunk size",
            [send(chunked), Endless(vec![b'0'; 4096])],
            Fail(&["body-cut", "timeout"]),
        ),
        kind("silence", [Wait(60_000)], Fail(&["timeout"])),
        kind("silence after a status line", [send(ok), Wait(60_000)], Fail(&["timeout"])),
        kind(
            "silence inside a body",
            [send(head("Content-Length: 9\r\n") + "ok"), Wait(60_000)],
            Fail(&["timeout"]),
        ),
        kind("silence inside a chunk", [send(chunks("9\r\nok")), Wait(60_000)], Fail(&["timeout"])),
        kind(
            "a head that drips",
            [Drip(format!("{ok}X: {}", "y".repeat(1000)).into_bytes(), 20)],
            Fail(&["timeout"]),
        ),
        kind(
            "a body that drips",
            [send(head("Content-Length: 9999\r\n")), Drip(vec![b'x'; 9999], 20)],
            Fail(&["timeout"]),
        ),
        kind(
            "chunks that drip",
            [send(chunked), Drip(b"1\r\nx\r\n".repeat(1000), 20)],
            Fail(&["timeout"]),
        ),
        kind(
            "a body of 4 MB, then drips",
            [
                send(head("Content-Length: 9999999\r\n")),
                Repeat(vec![b'x'; 1 << 20], 4),
                Drip(vec![b'x'; 9999], 50),
            ],
            Fail(&["timeout"]),
        ),
        kind(
            "a good head in single bytes",
            [Drip((head("Content-Length: 2\r\n") + "ok").into_bytes(), 1), Close],
            Bring(200, 2),
        ),
        kind(
            "an end in the middle of a large body",
            [send(head("Content-Length: 9999999\r\n")), Repeat(vec![b'x'; 1 << 20], 2), Close],
            CUT,
        ),
    ]
}

/// A TLS server that speaks plain bytes after the client's first message.
fn tls() -> Vec<Kind> {
    const BAD: Must = Fail(&["tls", "closed"]);
    let record = |kind: u8, bytes: &[u8]| {
        let length = (bytes.len() as u16).to_be_bytes();
        [&[kind, 3, 3], &length[..], bytes].concat()
    };
    vec![
        says("TLS: the end at once", "", BAD),
        says("TLS: plain HTTP", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", BAD),
        says("TLS: alert handshake failure", b"\x15\x03\x03\x00\x02\x02\x28", BAD),
        says("TLS: alert unknown name", b"\x15\x03\x03\x00\x02\x02\x70", BAD),
        says("TLS: alert protocol version", b"\x15\x03\x01\x00\x02\x02\x46", BAD),
        says("TLS: alert close", b"\x15\x03\x03\x00\x02\x01\x00", BAD),
        says("TLS: an alert of one byte", b"\x15\x03\x03\x00\x01\x02", BAD),
        says("TLS: a record longer than allowed", b"\x16\x03\x03\xff\xff", BAD),
        says("TLS: an unknown record", record(99, b"hello"), BAD),
        says("TLS: data before the handshake", record(23, b"hello"), BAD),
        says("TLS: zeros", [0; 500], BAD),
        says("TLS: random bytes", [0x16, 0x03, 0x03, 0x00, 0x05, 1, 2, 3, 4, 5].repeat(9), BAD),
        says("TLS: a client's hello", record(22, b"\x01\x00\x00\x02\x03\x03"), BAD),
        says("TLS: half a server's hello", record(22, b"\x02\x00\x00\x46\x03\x03"), BAD),
        says("TLS: a hello of SSL 3", b"\x16\x03\x00\x00\x06\x02\x00\x00\x02\x03\x00", BAD),
        says("TLS: a handshake of 16 MB", record(22, b"\x02\xff\xff\xff\x03\x03"), BAD),
        says("TLS: a change of cipher alone", record(20, b"\x01"), BAD),
        kind("TLS: endless changes of cipher", [Endless(record(20, b"\x01"))], BAD),
        kind("TLS: endless warnings", [Endless(record(21, b"\x01\x5a"))], BAD),
        kind("TLS: endless empty records", [Endless(record(22, b""))], BAD),
        kind(
            "TLS: an endless handshake",
            [send(record(22, b"\x0b\xff\xff\xff")), Endless(record(22, &[0; 8192]))],
            BAD,
        ),
        kind("TLS: silence", [Wait(60_000)], Fail(&["timeout"])),
        kind(
            "TLS: a hello that drips",
            [Drip(record(22, &[2; 4000]), 20)],
            Fail(&["timeout", "tls"]),
        ),
    ]
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH: u8 = 5;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` in the table of HPACK.
const STATUS_200: &[u8] = &[0x88];

/// A header that is in no table.
fn header(name: &str, value: &str) -> Vec<u8> {
    [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
}

/// What an HTTP/2 server sends after TLS and its empty settings, as an answer on stream 1.
fn http2() -> Vec<Kind> {
    const BAD: Must = Fail(&["protocol", "closed"]);
    const CUT: Must = Fail(&["body-cut", "protocol", "closed"]);
    let head = || frame(HEADERS, END_HEADERS, 1, STATUS_200);
    let head_with = |more: &[u8]| frame(HEADERS, END_HEADERS, 1, &[STATUS_200, more].concat());
    let all = |frames: &[Vec<u8>]| frames.concat();
    let settings = |pairs: &[(u16, u32)]| {
        let pair =
            |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        frame(SETTINGS, 0, 0, &pairs.iter().flat_map(pair).collect::<Vec<u8>>())
    };
    let plain = |bytes: &[u8]| frame(HEADERS, END_HEADERS, 1, bytes);
    vec![
        says("h2: a good answer", all(&[head(), frame(DATA, END_STREAM, 1, b"ok")]), Bring(200, 2)),
        says("h2: no body", frame(HEADERS, END_HEADERS | END_STREAM, 1, STATUS_200), Bring(200, 0)),
        says(
            "h2: trailers",
            all(&[
                head(),
                frame(DATA, 0, 1, b"ok"),
                frame(HEADERS, END_HEADERS | END_STREAM, 1, &header("x", "y")),
            ]),
            Bring(200, 2),
        ),
        says("h2: the end at once", "", BAD),
        says("h2: HTTP/1 instead of frames", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", BAD),
        says("h2: zeros", [0; 900], BAD),
        says("h2: go away", frame(GO_AWAY, 0, 0, &[0; 8]), BAD),
        says(
            "h2: go away in the middle",
            all(&[head(), frame(GO_AWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2])]),
            CUT,
        ),
        says("h2: go away that is too short", frame(GO_AWAY, 0, 0, &[0; 3]), BAD),
        says("h2: reset, refused", frame(RESET, 0, 1, &[0, 0, 0, 7]), BAD),
        says("h2: reset, internal error", frame(RESET, 0, 1, &[0, 0, 0, 2]), BAD),
        says("h2: reset, HTTP/1.1 required", frame(RESET, 0, 1, &[0, 0, 0, 13]), BAD),
        says("h2: reset after the head", all(&[head(), frame(RESET, 0, 1, &[0, 0, 0, 2])]), CUT),
        says("h2: reset of another stream", frame(RESET, 0, 9, &[0, 0, 0, 2]), BAD),
        says("h2: reset of stream 0", frame(RESET, 0, 0, &[0, 0, 0, 2]), BAD),
        says("h2: reset of a wrong length", frame(RESET, 0, 1, &[0; 3]), BAD),
        says("h2: data before a head", frame(DATA, END_STREAM, 1, b"ok"), BAD),
        says("h2: data on stream 0", frame(DATA, 0, 0, b"ok"), BAD),
        says("h2: a head on stream 0", frame(HEADERS, END_HEADERS, 0, STATUS_200), BAD),
        says(
            "h2: a head on a stream nobody opened",
            frame(HEADERS, END_HEADERS, 3, STATUS_200),
            BAD,
        ),
        says(
            "h2: a head that goes on with data",
            all(&[frame(HEADERS, 0, 1, STATUS_200), frame(DATA, END_STREAM, 1, b"ok")]),
            BAD,
        ),
        says("h2: a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, STATUS_200), BAD),
        says(
            "h2: a continuation on another stream",
            all(&[frame(HEADERS, 0, 1, STATUS_200), frame(CONTINUATION, END_HEADERS, 3, b"")]),
            BAD,
        ),
        says("h2: no status", plain(&header("x", "y")), BAD),
        says("h2: an empty head", plain(b""), BAD),
        says("h2: a status that is a word", plain(&header(":status", "abc")), BAD),
        says("h2: status 99", plain(&header(":status", "99")), BAD),
        says("h2: status 1000", plain(&header(":status", "1000")), BAD),
        says("h2: two statuses", plain(&[STATUS_200, STATUS_200].concat()), BAD),
        says("h2: a status behind a header", plain(&[&header("x", "y"), STATUS_200].concat()), BAD),
        says("h2: a request's field in an answer", head_with(&header(":path", "/")), CUT),
        says("h2: a header in capitals", head_with(&header("X-Capital", "y")), BAD),
        says("h2: a header with a line break", head_with(&header("x", "a\r\nb: c")), BAD),
        says(
            "h2: a connection header",
            all(&[head_with(&header("connection", "close")), frame(DATA, END_STREAM, 1, b"ok")]),
            End,
        ),
        says(
            "h2: a transfer coding",
            all(&[
                head_with(&header("transfer-encoding", "chunked")),
                frame(DATA, END_STREAM, 1, b"ok"),
            ]),
            End,
        ),
        says(
            "h2: less than announced",
            all(&[head_with(&header("content-length", "9")), frame(DATA, END_STREAM, 1, b"ok")]),
            CUT,
        ),
        says(
            "h2: more than announced",
            all(&[head_with(&header("content-length", "1")), frame(DATA, END_STREAM, 1, b"ok")]),
            CUT,
        ),
        says(
            "h2: a length and no body",
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                &[STATUS_200, &header("content-length", "9")].concat(),
            ),
            CUT,
        ),
        says(
            "h2: a length of a terabyte",
            head_with(&header("content-length", "1000000000000")),
            Fail(&["too-large"]),
        ),
        says("h2: 101", plain(&header(":status", "101")), BAD),
        says("h2: HPACK index 0", plain(&[0x80]), BAD),
        says("h2: HPACK index beyond the table", plain(&[0xfe]), BAD),
        says("h2: an HPACK number without end", plain(&[0xff; 40]), BAD),
        says("h2: HPACK that is cut", plain(&[0x00, 0x7f, 0x20]), BAD),
        says(
            "h2: bad Huffman code",
            plain(&[STATUS_200, &[0, 0x81, 0xff, 0x01, b'x']].concat()),
            BAD,
        ),
        says("h2: an HPACK table of 1 GB", plain(&[0x3f, 0xe1, 0xff, 0xff, 0xff, 0x03]), BAD),
        says(
            "h2: padding longer than the frame",
            all(&[head(), frame(DATA, 8 | END_STREAM, 1, &[200, b'o', b'k'])]),
            CUT,
        ),
        says(
            "h2: a head with padding",
            frame(HEADERS, END_HEADERS | END_STREAM | 8, 1, &[2, 0x88, 0, 0]),
            Bring(200, 0),
        ),
        says(
            "h2: a frame larger than allowed",
            all(&[head(), frame(DATA, END_STREAM, 1, &[0; 20_000])]),
            CUT,
        ),
        says("h2: settings of a wrong length", frame(SETTINGS, 0, 0, &[0; 5]), BAD),
        says("h2: settings on a stream", frame(SETTINGS, 0, 1, b""), BAD),
        says("h2: a confirmation with content", frame(SETTINGS, 1, 0, &[0; 6]), BAD),
        says("h2: a window beyond its limit", settings(&[(4, u32::MAX)]), BAD),
        says("h2: frames smaller than allowed", settings(&[(5, 1)]), BAD),
        says(
            "h2: unknown settings",
            all(&[settings(&[(0x99, 1), (0xfff0, 2)]), head(), frame(DATA, END_STREAM, 1, b"ok")]),
            Bring(200, 2),
        ),
        says(
            "h2: no table",
            all(&[settings(&[(1, 0)]), head(), frame(DATA, END_STREAM, 1, b"ok")]),
            Bring(200, 2),
        ),
        says("h2: a window update of 0", frame(WINDOW, 0, 0, &[0; 4]), BAD),
        says(
            "h2: a window that overflows",
            frame(WINDOW, 0, 0, &[0x7f, 0xff, 0xff, 0xff]).repeat(3),
            BAD,
        ),
        says("h2: a ping of a wrong length", frame(PING, 0, 0, &[0; 3]), BAD),
        says("h2: a ping on a stream", frame(PING, 0, 1, &[0; 8]), BAD),
        says(
            "h2: a promise that nobody wants",
            all(&[
                frame(PUSH, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
                head(),
                frame(DATA, END_STREAM, 1, b"ok"),
            ]),
            End,
        ),
        says(
            "h2: a promise of a stream of ours",
            frame(PUSH, END_HEADERS, 1, &[0, 0, 0, 3, 0x82]),
            BAD,
        ),
        says(
            "h2: a priority of itself",
            all(&[
                frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 9]),
                head(),
                frame(DATA, END_STREAM, 1, b"ok"),
            ]),
            End,
        ),
        says(
            "h2: unknown frames between",
            all(&[
                frame(0xbb, 0xff, 1, b"??"),
                head(),
                frame(0xcc, 0, 0, &[9; 99]),
                frame(DATA, END_STREAM, 1, b"ok"),
            ]),
            Bring(200, 2),
        ),
        says(
            "h2: 103, then the answer",
            all(&[plain(&header(":status", "103")), head(), frame(DATA, END_STREAM, 1, b"ok")]),
            Bring(200, 2),
        ),
        says(
            "h2: data after the end",
            all(&[head(), frame(DATA, END_STREAM, 1, b"ok"), frame(DATA, 0, 1, b"more")]),
            End,
        ),
        kind(
            "h2: endless pings",
            [Endless(frame(PING, 0, 0, &[7; 8]).repeat(50))],
            Fail(&["protocol", "closed", "timeout"]),
        ),
        kind(
            "h2: endless settings",
            [Endless(frame(SETTINGS, 0, 0, b"").repeat(50))],
            Fail(&["protocol", "closed", "timeout"]),
        ),
        kind(
            "h2: endless priorities",
            [Endless(frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 9]).repeat(50))],
            Fail(&["protocol", "closed", "timeout"]),
        ),
        kind(
            "h2: endless unknown frames",
            [Endless(frame(0xbb, 0, 0, &[9; 999]))],
            Fail(&["protocol", "closed", "timeout"]),
        ),
        kind(
            "h2: endless window updates",
            [Endless(frame(WINDOW, 0, 1, &[0, 0, 0, 1]).repeat(50))],
            Fail(&["protocol", "closed", "timeout"]),
        ),
        kind(
            "h2: endless 103",
            [Endless(plain(&header(":status", "103")))],
            Fail(&["protocol", "closed", "head-too-large", "timeout"]),
        ),
        kind(
            "h2: endless continuations",
            [
                send(frame(HEADERS, 0, 1, STATUS_200)),
                Endless(frame(CONTINUATION, 0, 1, &header("x", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"))),
            ],
            Fail(&["protocol", "closed", "head-too-large"]),
        ),
        kind(
            "h2: endless empty continuations",
            [
                send(frame(HEADERS, 0, 1, STATUS_200)),
                Endless(frame(CONTINUATION, 0, 1, b"").repeat(50)),
            ],
            Fail(&["protocol", "closed", "head-too-large"]),
        ),
        kind(
            "h2: endless resets of other streams",
            [Endless(frame(RESET, 0, 1, &[0, 0, 0, 8]).repeat(50))],
            Fail(&["protocol", "closed", "timeout"]),
        ),
        kind(
            "h2: endless data",
            [send(head()), Endless(frame(DATA, 0, 1, &[0; 16_000]))],
            Fail(&["too-large", "body-cut"]),
        ),
        kind(
            "h2: endless frames of one byte",
            [send(head()), Endless(frame(DATA, 0, 1, b"x").repeat(50))],
            CUT,
        ),
        kind(
            "h2: endless empty data",
            [send(head()), Endless(frame(DATA, 0, 1, b"").repeat(50))],
            CUT,
        ),
        kind("h2: endless padding", [send(head()), Endless(frame(DATA, 8, 1, &[255; 256]))], CUT),
        kind("h2: silence", [Wait(60_000)], Fail(&["timeout"])),
        kind(
            "h2: silence inside a body",
            [send(head()), send(frame(DATA, 0, 1, b"ok")), Wait(60_000)],
            Fail(&["timeout"]),
        ),
        kind(
            "h2: a head that drips",
            [Drip(frame(HEADERS, 0, 1, &[0; 4000]), 20)],
            Fail(&["timeout"]),
        ),
    ]
}

async fn play(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), script: &[Do]) {
    for step in script {
        let sent = match step {
            Send(bytes) => stream.write_all(bytes).await,
            Repeat(bytes, times) => {
                let mut sent = Ok(());
                for _ in 0..*times {
                    sent = sent.and(stream.write_all(bytes).await);
                }
                sent
            }
            Endless(bytes) => loop {
                if let Err(error) = stream.write_all(bytes).await {
                    break Err(error);
                }
            },
            Drip(bytes, pause_ms) => {
                let mut sent = Ok(());
                for byte in bytes {
                    sent = sent.and(stream.write_all(&[*byte]).await).and(stream.flush().await);
                    tokio::time::sleep(Duration::from_millis(*pause_ms)).await;
                    if sent.is_err() {
                        break;
                    }
                }
                sent
            }
            Wait(ms) => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                Ok(())
            }
            Close => stream.shutdown().await,
        };
        if sent.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
    // Closing with bytes unread would reset the connection under the answer.
    let rest = async { while stream.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {} };
    let _ = timeout(Duration::from_secs(5), rest).await;
}

/// Reads until the head of the client's first request is there: an answer before it breaks the rules of HTTP/2.
async fn read_http2_request(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    stream.read_exact(&mut [0; b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()]).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize]).await?;
        if head[3] == HEADERS {
            return Ok(());
        }
    }
}

/// How the server is reached.
#[derive(Clone, Copy, PartialEq)]
enum Via {
    Plain,
    Tls,
    Http2,
}

/// Fetches from a server of this kind; says what is wrong with the result, if anything.
async fn try_kind(authority: &Authority, via: Via, kind: Kind) -> Option<String> {
    let (script, acceptor) = (Arc::new(kind.script), authority.acceptor(&["h2"]));
    let server = TestServer::start(move |mut stream, _| {
        let (script, acceptor) = (Arc::clone(&script), acceptor.clone());
        let playing: Pin<Box<dyn Future<Output = ()> + core::marker::Send>> =
            Box::pin(async move {
                match via {
                    Via::Plain => {
                        super::server::read_request(&mut stream).await;
                        play(&mut stream, &script).await;
                    }
                    Via::Tls => {
                        let _ = stream.read(&mut [0; 4096]).await;
                        play(&mut stream, &script).await;
                    }
                    Via::Http2 => {
                        let Ok(mut stream) = acceptor.accept(stream).await else { return };
                        let _ = stream.write_all(&frame(SETTINGS, 0, 0, b"")).await;
                        let _ = stream.flush().await;
                        if read_http2_request(&mut stream).await.is_ok() {
                            play(&mut stream, &script).await;
                        }
                    }
                }
            });
        playing
    })
    .await;
    let scheme = if via == Via::Plain { "http" } else { "https" };
    let mut request = request(&format!("{scheme}://localhost:{}/", server.address.port()));
    request.limit = Some(BodyLimit::Whole(20_000_000));
    let hosts = vec![("localhost".to_owned(), server.address.ip())];
    let fetcher = Fetcher::new(FetchOptions {
        hosts,
        extra_roots_der: vec![authority.root_der.clone()],
        tls_timeout: Duration::from_secs(6),
        head_timeout: Duration::from_secs(6),
        idle_timeout: Duration::from_secs(6),
        total_timeout: Duration::from_secs(20),
        ..quick()
    })
    .unwrap();
    let outcome = match timeout(Duration::from_secs(30), fetcher.fetch(&request)).await {
        Ok(outcome) => outcome,
        Err(_) => return Some(format!("{}: it did not end", kind.name)),
    };
    let is_right = match (&kind.must, &outcome) {
        (Bring(status, length), Ok(exchange)) => {
            (exchange.status, exchange.body.len()) == (*status, *length)
        }
        (Fail(kinds), Err(failure)) => kinds.contains(&failure.kind()),
        (End, _) => true,
        _ => false,
    };
    let came = match outcome {
        Ok(exchange) => format!("{}, {} bytes", exchange.status, exchange.body.len()),
        Err(failure) => format!("{}: {failure}", failure.kind()),
    };
    (!is_right).then(|| format!("{}: {came}", kind.name))
}

/// All of them, a few at a time.
async fn all_are_right(via: Via, kinds: Vec<Kind>) {
    let authority = Arc::new(Authority::new());
    let turns = Arc::new(Semaphore::new(12));
    let count = kinds.len();
    let trying: Vec<_> = kinds
        .into_iter()
        .map(|kind| {
            let (authority, turns) = (Arc::clone(&authority), Arc::clone(&turns));
            tokio::spawn(async move {
                let _turn = turns.acquire().await;
                try_kind(&authority, via, kind).await
            })
        })
        .collect();
    let mut wrong = Vec::new();
    for tried in trying {
        wrong.extend(tried.await.unwrap());
    }
    assert!(wrong.is_empty(), "{} of {count} kinds:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_http1_servers() {
    all_are_right(Via::Plain, http1()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_tls_servers() {
    all_are_right(Via::Tls, tls()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_http2_servers() {
    all_are_right(Via::Http2, http2()).await;
}
