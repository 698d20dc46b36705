use crate::{Record, RecordType};

/// A record that can be used, with its request where one was found.
#[derive(Debug)]
pub struct Paired {
    /// A response, revisit or resource record, or another that stands for itself.
    pub record: Record,
    /// The request record's block.
    pub request: Option<Vec<u8>>,
}

/// Finds the request of each response. They stand side by side, in either order.
#[derive(Debug, Default)]
pub struct Pairing {
    /// A response that waits for a request behind it.
    response: Option<Record>,
    /// A request that waits for a response behind it.
    request: Option<Record>,
}

impl Pairing {
    /// Takes the next record of a file; gives back what nothing can be added to any more.
    pub fn next(&mut self, record: Record) -> Vec<Paired> {
        match record.kind {
            RecordType::Request => self.take_request(record),
            RecordType::Response | RecordType::Revisit => self.take_response(record),
            _ => {
                let mut ready: Vec<Paired> = self.finish().into_iter().collect();
                ready.push(Paired { record, request: None });
                ready
            }
        }
    }

    /// What is left at the end of a file.
    pub fn finish(&mut self) -> Option<Paired> {
        self.request = None;
        self.response.take().map(|record| Paired { record, request: None })
    }

    fn take_request(&mut self, request: Record) -> Vec<Paired> {
        match self.response.take() {
            Some(record) if belong_together(&record, &request) => {
                vec![Paired { record, request: Some(request.block) }]
            }
            waiting => {
                self.request = Some(request);
                waiting.map(|record| Paired { record, request: None }).into_iter().collect()
            }
        }
    }

    fn take_response(&mut self, record: Record) -> Vec<Paired> {
        let mut ready: Vec<Paired> = self
            .response
            .take()
            .map(|record| Paired { record, request: None })
            .into_iter()
            .collect();
        match self.request.take() {
            Some(request) if belong_together(&record, &request) => {
                ready.push(Paired { record, request: Some(request.block) });
            }
            _ => self.response = Some(record),
        }
        ready
    }
}

/// One names the other, or neither names any and they are of one page and time.
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
        Record { block: id.into(), ..Record::new(0, fields) }
    }

    fn paired(records: Vec<Record>) -> Vec<(String, Option<String>)> {
        let mut pairing = Pairing::default();
        let mut ready: Vec<Paired> =
            records.into_iter().flat_map(|record| pairing.next(record)).collect();
        ready.extend(pairing.finish());
        let text = |block: Vec<u8>| String::from_utf8(block).unwrap();
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
