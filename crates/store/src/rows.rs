//! A versions chunk: the records of many versions, column by column.

use std::net::IpAddr;

use crate::Digest;
use crate::digest::BodyKey;
use crate::heads::{HeadReader, HeadWriter};
use crate::squeeze;
use crate::wire::{Malformed, Reader, put_bytes, put_signed, put_varint};

/// Records in one chunk: more compress better, fewer are quicker to read.
pub(crate) const MAX_ROWS: usize = 4096;
/// Raw bytes of one chunk, so that reading it cannot fill the memory.
const MAX_RAW_BYTES: usize = 64 << 20;
/// Protocol, TLS and truncation are short words.
pub const MAX_WORD_BYTES: usize = 255;

/// One version as the pack records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: u64,
    pub(crate) group: u32,
    pub(crate) url: String,
    pub(crate) visited_at_s: i64,
    pub(crate) status: u16,
    pub(crate) protocol: String,
    pub(crate) tls: Option<String>,
    pub(crate) server_address: Option<IpAddr>,
    pub(crate) request_head: Vec<u8>,
    pub(crate) response_head: Vec<u8>,
    pub(crate) body_bytes: u64,
    pub(crate) digest: Digest,
    pub(crate) truncated: Option<String>,
}

impl Row {
    /// About how much memory and pack this takes, for bounding batches.
    pub(crate) fn weight_bytes(&self) -> usize {
        self.url.len() + self.request_head.len() + self.response_head.len() + 200
    }
}

pub(crate) fn encode(rows: &[Row], durable_bytes: u64, level: i32) -> Vec<u8> {
    assert!(rows.len() <= MAX_ROWS, "callers bound their batches");
    let mut raw = Vec::new();
    let words = put_words(&mut raw, rows);
    let mut last = (0u64, 0u32, 0i64);
    for row in rows {
        put_signed(&mut raw, row.id.wrapping_sub(last.0) as i64);
        last.0 = row.id;
    }
    for row in rows {
        put_signed(&mut raw, i64::from(row.group) - i64::from(last.1));
        last.1 = row.group;
    }
    for row in rows {
        put_signed(&mut raw, row.visited_at_s.wrapping_sub(last.2));
        last.2 = row.visited_at_s;
    }
    rows.iter().for_each(|row| put_varint(&mut raw, u64::from(row.status)));
    for word in 0..4 {
        rows.iter().for_each(|row| put_varint(&mut raw, find(&words, &row_words(row)[word])));
    }
    rows.iter().for_each(|row| put_varint(&mut raw, row.body_bytes));
    put_urls(&mut raw, rows);
    let (mut requests, mut responses) = (HeadWriter::default(), HeadWriter::default());
    for row in rows {
        requests.push(&row.request_head, &row.url, row.visited_at_s, row.body_bytes);
        responses.push(&row.response_head, &row.url, row.visited_at_s, row.body_bytes);
    }
    requests.finish(&mut raw);
    responses.finish(&mut raw);

    let mut out = Vec::new();
    put_varint(&mut out, durable_bytes);
    put_varint(&mut out, rows.len() as u64);
    put_varint(&mut out, raw.len() as u64);
    // Digests do not compress; among the others they would only disturb.
    rows.iter().for_each(|row| out.extend_from_slice(&row.digest.0));
    out.extend_from_slice(&squeeze::compress(&raw, level, b""));
    out
}

pub(crate) fn decode(payload: &[u8]) -> Result<Vec<Row>, Malformed> {
    let (digests, raw) = unpack(payload)?;
    decode_columns(&mut Reader::new(&raw), digests, &|_| true)
}

/// The digests, and the columns decompressed.
fn unpack(payload: &[u8]) -> Result<(Vec<Digest>, Vec<u8>), Malformed> {
    let mut reader = Reader::new(payload);
    reader.varint()?;
    let count = reader.count(MAX_ROWS)?;
    let raw_bytes = reader.count(MAX_RAW_BYTES)?;
    let digests = column(count, || reader.array().map(Digest))?;
    let raw = squeeze::decompress(reader.rest(), raw_bytes, b"")?;
    Ok((digests, raw))
}

/// How much of the pack was durable when the chunk was written: a gap before it is damage, not a
/// torn tail.
pub(crate) fn durable_bytes(payload: &[u8]) -> Result<u64, Malformed> {
    Reader::new(payload).varint()
}

/// One row of a chunk, without building the others.
pub(crate) fn decode_row(payload: &[u8], id: u64) -> Result<Option<Row>, Malformed> {
    let (digests, raw) = unpack(payload)?;
    Ok(decode_columns(&mut Reader::new(&raw), digests, &|found| found == id)?.pop())
}

/// Which versions are in a chunk, and the digests of their bodies: far less work than the rows.
pub(crate) struct Digests {
    ids: Vec<u64>,
    digests: Vec<Digest>,
}

impl Digests {
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let (digests, raw) = unpack(payload)?;
        let mut raw = Reader::new(&raw);
        read_words(&mut raw)?;
        let mut id = 0u64;
        let ids = column(digests.len(), || {
            id = id.wrapping_add(raw.signed()? as u64);
            Ok(id)
        })?;
        Ok(Self { ids, digests })
    }

    pub(crate) fn get(&self, id: u64) -> Option<Digest> {
        let at = self.ids.iter().position(|found| *found == id)?;
        self.digests.get(at).copied()
    }
}

/// What catching up needs of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    pub(crate) id: u64,
    pub(crate) group: u32,
    pub(crate) key: BodyKey,
    pub(crate) body_bytes: u64,
}

/// The keys of all rows, without building URLs and heads.
pub(crate) fn decode_keys(payload: &[u8]) -> Result<Vec<RowKey>, Malformed> {
    let (digests, raw) = unpack(payload)?;
    let mut raw = Reader::new(&raw);
    read_words(&mut raw)?;
    let count = digests.len();
    let ids = column(count, || raw.signed())?;
    let groups = column(count, || raw.signed())?;
    column(count, || raw.signed())?;
    // Status, protocol, TLS, server address, truncation.
    column(5 * count, || raw.varint())?;
    let lengths = column(count, || raw.varint())?;
    let (mut id, mut group) = (0u64, 0i64);
    let key = |at: usize| {
        id = id.wrapping_add(ids[at] as u64);
        group = group.wrapping_add(groups[at]);
        let group = u32::try_from(group).map_err(|_| Malformed("group too large"))?;
        Ok(RowKey { id, group, key: digests[at].key(), body_bytes: lengths[at] })
    };
    (0..count).map(key).collect()
}

fn decode_columns(
    raw: &mut Reader<'_>,
    digests: Vec<Digest>,
    wanted: &dyn Fn(u64) -> bool,
) -> Result<Vec<Row>, Malformed> {
    let count = digests.len();
    let words = read_words(raw)?;
    let ids = column(count, || raw.signed())?;
    let groups = column(count, || raw.signed())?;
    let times = column(count, || raw.signed())?;
    let statuses = column(count, || raw.varint())?;
    let protocols = column(count, || raw.count(words.len()))?;
    let tls = column(count, || raw.count(words.len()))?;
    let addresses = column(count, || raw.count(words.len()))?;
    let truncations = column(count, || raw.count(words.len()))?;
    let lengths = column(count, || raw.varint())?;
    let mut urls = UrlReader::new(raw, count)?;
    let mut requests = HeadReader::new(raw)?;
    let mut responses = HeadReader::new(raw)?;

    let (mut id, mut group, mut time_s) = (0u64, 0i64, 0i64);
    let mut rows = Vec::new();
    let mut url = Vec::new();
    for (at, digest) in digests.into_iter().enumerate() {
        urls.next(&mut url)?;
        id = id.wrapping_add(ids[at] as u64);
        group = group.wrapping_add(groups[at]);
        time_s = time_s.wrapping_add(times[at]);
        if !wanted(id) {
            requests.skip()?;
            responses.skip()?;
            continue;
        }
        let text = |word: usize| -> Result<Option<String>, Malformed> {
            let word = word.checked_sub(1).map(|at| words[at].to_vec());
            word.map(String::from_utf8).transpose().map_err(|_| Malformed("not text"))
        };
        let url = String::from_utf8(url.clone()).map_err(|_| Malformed("url is not text"))?;
        rows.push(Row {
            id,
            group: u32::try_from(group).map_err(|_| Malformed("group too large"))?,
            request_head: requests.next(&url, time_s, lengths[at])?,
            response_head: responses.next(&url, time_s, lengths[at])?,
            url,
            visited_at_s: time_s,
            status: u16::try_from(statuses[at]).map_err(|_| Malformed("status too large"))?,
            protocol: text(protocols[at])?.unwrap_or_default(),
            tls: text(tls[at])?,
            server_address: addresses[at]
                .checked_sub(1)
                .map(|at| read_address(words[at]))
                .transpose()?,
            body_bytes: lengths[at],
            digest,
            truncated: text(truncations[at])?,
        });
    }
    Ok(rows)
}

fn column<T>(
    count: usize,
    mut next: impl FnMut() -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    (0..count).map(|_| next()).collect()
}

fn row_words(row: &Row) -> [Option<Vec<u8>>; 4] {
    let address = row.server_address.map(|address| match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    });
    let text = |word: &Option<String>| word.as_ref().map(|word| word.clone().into_bytes());
    [Some(row.protocol.clone().into_bytes()), text(&row.tls), address, text(&row.truncated)]
}

/// The few different words of all rows, once each.
fn put_words(raw: &mut Vec<u8>, rows: &[Row]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = rows.iter().flat_map(row_words).flatten().collect();
    words.sort_unstable();
    words.dedup();
    put_varint(raw, words.len() as u64);
    words.iter().for_each(|word| put_bytes(raw, word));
    words
}

fn read_words<'a>(raw: &mut Reader<'a>) -> Result<Vec<&'a [u8]>, Malformed> {
    let count = raw.count(4 * MAX_ROWS)?;
    column(count, || raw.bytes(MAX_WORD_BYTES))
}

/// Zero means no word; the others count from one.
fn find(words: &[Vec<u8>], word: &Option<Vec<u8>>) -> u64 {
    let at = |word: &Vec<u8>| words.binary_search(word).map_or(0, |at| at as u64 + 1);
    word.as_ref().map_or(0, at)
}

fn read_address(bytes: &[u8]) -> Result<IpAddr, Malformed> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        Ok(IpAddr::from(v4))
    } else if let Ok(v6) = <[u8; 16]>::try_from(bytes) {
        Ok(IpAddr::from(v6))
    } else {
        Err(Malformed("not an address"))
    }
}

/// Each URL as what it shares with the one before, and its own rest.
fn put_urls(raw: &mut Vec<u8>, rows: &[Row]) {
    let mut before: &[u8] = b"";
    let mut rests = Vec::new();
    for row in rows {
        let url = row.url.as_bytes();
        let shared = url.iter().zip(before).take_while(|(a, b)| a == b).count();
        put_varint(raw, shared as u64);
        put_varint(raw, (url.len() - shared) as u64);
        rests.extend_from_slice(&url[shared..]);
        before = url;
    }
    raw.extend_from_slice(&rests);
}

/// Restores the URLs, in order.
struct UrlReader<'a> {
    lengths: Reader<'a>,
    rests: Reader<'a>,
}

impl<'a> UrlReader<'a> {
    fn new(raw: &mut Reader<'a>, count: usize) -> Result<Self, Malformed> {
        let limit = nenrin_urls::MAX_URL_BYTES;
        let lengths = raw.clone();
        let mut joined = 0;
        for _ in 0..count {
            raw.count(limit)?;
            joined += raw.count(limit)?;
        }
        Ok(Self { lengths, rests: Reader::new(raw.take(joined)?) })
    }

    /// Makes the URL of the next row out of that of the row before.
    fn next(&mut self, url: &mut Vec<u8>) -> Result<(), Malformed> {
        let limit = nenrin_urls::MAX_URL_BYTES;
        let shared = self.lengths.count(limit)?;
        if shared > url.len() {
            return Err(Malformed("url shares more than there is"));
        }
        url.truncate(shared);
        url.extend_from_slice(self.rests.take(self.lengths.count(limit)?)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row() -> impl Strategy<Value = Row> {
        let head = prop_oneof![
            Just(b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 5\r\n\r\n".to_vec()),
            Just(b"GET / HTTP/1.1\r\nHost: a\x01D\x01\r\n\r\n".to_vec()),
            Just(b"GET /a/b HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
            proptest::collection::vec(any::<u8>(), 0..60),
        ];
        let numbers = (any::<u32>(), any::<i64>(), any::<u16>(), 0..9u64);
        let words = ("[a-z/0-9.]{0,9}", proptest::option::of("[a-z]{1,5}"));
        let address = proptest::option::of(any::<std::net::IpAddr>());
        (
            numbers,
            words,
            address,
            "https://[a-c]{1,3}/[a-c/]{0,5}",
            head.clone(),
            head,
            any::<u64>(),
        )
            .prop_map(|(numbers, words, address, url, request_head, response_head, id)| {
                Row {
                    id,
                    group: numbers.0,
                    url,
                    visited_at_s: numbers.1,
                    status: numbers.2,
                    protocol: words.0,
                    tls: words.1.clone(),
                    server_address: address,
                    request_head,
                    response_head,
                    body_bytes: numbers.3,
                    digest: Digest::of(&id.to_le_bytes()),
                    truncated: words.1,
                }
            })
    }

    proptest! {
        #[test]
        fn rows_come_back_exactly(rows in proptest::collection::vec(row(), 0..40), durable: u64) {
            let decoded = decode(&encode(&rows, durable, 3)).unwrap();
            let payload = encode(&rows, durable, 3);
            let digests = Digests::decode(&payload).unwrap();
            for row in &rows {
                prop_assert_eq!(digests.get(row.id), Some(row.digest));
                prop_assert_eq!(decode_row(&payload, row.id), Ok(Some(row.clone())));
            }
            let keys = decode_keys(&payload).unwrap();
            prop_assert_eq!(keys.len(), rows.len());
            for (key, row) in keys.iter().zip(&rows) {
                prop_assert_eq!((key.id, key.group, key.key), (row.id, row.group, row.digest.key()));
                prop_assert_eq!(key.body_bytes, row.body_bytes);
            }
            prop_assert_eq!(decoded, rows);
            prop_assert_eq!(durable_bytes(&payload), Ok(durable));
        }

        #[test]
        fn junk_never_panics(junk: Vec<u8>) {
            let _ = decode(&junk);
            let _ = Digests::decode(&junk);
            let _ = decode_keys(&junk);
            let _ = decode_columns(&mut Reader::new(&junk), vec![Digest::of(b""); 3], &|_| true);
        }
    }

    #[test]
    fn an_unchanged_visit_costs_a_few_bytes_beside_its_digest() {
        let rows: Vec<Row> = (0..1000u64)
            .map(|n| Row {
                id: n,
                group: 1,
                url: format!("https://example.org/page-{}", n / 8),
                visited_at_s: 1_700_000_000 + 86_400 * (n as i64 % 8),
                status: 200,
                protocol: "http/1.1".into(),
                tls: None,
                server_address: None,
                request_head: format!("GET /page-{} HTTP/1.1\r\n\r\n", n / 8).into(),
                response_head: [
                    b"HTTP/1.1 200 OK\r\nDate: ",
                    &http_date(1_700_000_001 + 86_400 * (n as i64 % 8))[..],
                    b"\r\nContent-Length: 1234\r\nContent-Type: text/html\r\n\r\n",
                ]
                .concat(),
                body_bytes: 1234,
                digest: Digest::of(b""),
                truncated: None,
            })
            .collect();
        let bytes = encode(&rows, 0, 19).len() - 32 * rows.len();
        assert!(bytes < 4 * rows.len(), "{} bytes a row", bytes as f64 / rows.len() as f64);
    }

    fn http_date(time_s: i64) -> Vec<u8> {
        crate::http_date::write(time_s).unwrap()
    }
}
