use std::borrow::Borrow;

use crate::{Record, RecordType};

/// A record with its request, if one was found.
#[derive(Debug)]
pub struct Paired<T = Record> {
    /// A response, revisit or resource record, or one that needs no request.
    pub record: T,
    /// The request record.
    pub request: Option<T>,
}

impl<T> Paired<T> {
    fn alone(record: T) -> Self {
        Self { record, request: None }
    }
}

/// Finds the request of each response. The two are next to each other, in either order. Records may
/// carry additional data.
#[derive(Debug)]
pub struct Pairing<T = Record> {
    /// A response that may be followed by its request.
    response: Option<T>,
    /// A request that may be followed by its response.
    request: Option<T>,
}

impl<T> Default for Pairing<T> {
    fn default() -> Self {
        Self { response: None, request: None }
    }
}

impl<T: Borrow<Record>> Pairing<T> {
    /// Takes the next record of a file; returns the records that are complete now.
    pub fn next(&mut self, record: T) -> Vec<Paired<T>> {
        match record.borrow().kind {
            RecordType::Request => self.take_request(record),
            RecordType::Response | RecordType::Revisit => self.take_response(record),
            _ => {
                let mut ready: Vec<Paired<T>> = self.finish().into_iter().collect();
                ready.push(Paired::alone(record));
                ready
            }
        }
    }

    /// The record left at the end of a file.
    pub fn finish(&mut self) -> Option<Paired<T>> {
        self.request = None;
        self.response.take().map(Paired::alone)
    }

    fn take_request(&mut self, request: T) -> Vec<Paired<T>> {
        match self.response.take() {
            Some(record) if belong_together(record.borrow(), request.borrow()) => {
                vec![Paired { record, request: Some(request) }]
            }
            waiting => {
                self.request = Some(request);
                waiting.map(Paired::alone).into_iter().collect()
            }
        }
    }

    fn take_response(&mut self, record: T) -> Vec<Paired<T>> {
        let mut ready: Vec<Paired<T>> =
            self.response.take().map(Paired::alone).into_iter().collect();
        match self.request.take() {
            Some(request) if belong_together(record.borrow(), request.borrow()) => {
                ready.push(Paired { record, request: Some(request) });
            }
            _ => self.response = Some(record),
        }
        ready
    }
}

/// Whether one names the other, or neither names any and page and time are the same.
fn belong_together(response: &Record, request: &Record) -> bool {
    let names = |one: &Record, other: &Record| {
        one.fields.all("WARC-Concurrent-To").any(|id| !id.is_empty() && id == other.id())
    };
    let names_any = |record: &Record| record.fields.get("WARC-Concurrent-To").is_some();
    names(response, request)
        || names(request, response)
        || (!names_any(response)
            && !names_any(request)
            && response.target_uri() == request.target_uri()
            && response.fields.get("WARC-Date") == request.fields.get("WARC-Date"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fields;

    fn record(kind: &str, id: &str, other: &str) -> Record {
        let mut fields = Fields::default();
        fields.push("WARC-Type", kind);
        fields.push("WARC-Record-ID", id);
        fields.push("WARC-Target-URI", "http://e.com/");
        fields.push("WARC-Date", "2024-01-01T00:00:00Z");
        if !other.is_empty() {
            fields.push("WARC-Concurrent-To", other);
        }
        Record { block: id.as_bytes().to_vec().into(), ..Record::new(0, fields) }
    }

    fn paired(records: Vec<Record>) -> Vec<(String, Option<String>)> {
        let mut pairing = Pairing::default();
        let mut ready: Vec<Paired> =
            records.into_iter().flat_map(|record| pairing.next(record)).collect();
        ready.extend(pairing.finish());
        let text = |request: Record| String::from_utf8(request.block.to_vec()).unwrap();
        ready.into_iter().map(|p| (p.record.id().to_owned(), p.request.map(text))).collect()
    }

    #[test]
    fn requests_are_found_before_and_behind_their_responses() {
        let pair = |a: &str, b: &str| (a.to_owned(), (!b.is_empty()).then(|| b.to_owned()));
        let behind = vec![
            record("response", "a", ""),
            record("request", "b", "a"),
            record("response", "c", ""),
            record("request", "d", "c"),
        ];
        assert_eq!(paired(behind), [pair("a", "b"), pair("c", "d")]);
        let before = vec![
            record("warcinfo", "w", ""),
            record("request", "a", ""),
            record("response", "b", "a"),
            record("request", "c", ""),
            record("response", "d", "c"),
        ];
        assert_eq!(paired(before), [pair("w", ""), pair("b", "a"), pair("d", "c")]);
        let alone = vec![
            record("response", "a", "x"),
            record("request", "b", "y"),
            record("revisit", "c", "z"),
        ];
        assert_eq!(paired(alone), [pair("a", ""), pair("c", "")]);
    }
}
