//! Visits of the log in few bytes: each says only what differs from the one before it.

use crate::{Outcome, PageId, ServerId, SiteId};

use super::rows;

/// A portion is closed before it would grow beyond this: two fill a page of the database.
const BYTES_MAX: usize = 2_000;

const HAS_DETAIL: u8 = 1 << 3;
const OTHER_SITE: u8 = 1 << 4;
const OTHER_SERVER: u8 = 1 << 5;
const OTHER_STATUS: u8 = 1 << 6;
const HAS_BODY: u8 = 1 << 7;
const OUTCOME: u8 = 7;

/// A visit as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) at_s: i64,
    pub(super) page: PageId,
    pub(super) site: SiteId,
    pub(super) outcome: Outcome,
    pub(super) status: u16,
    pub(super) elapsed_ms: u32,
    pub(super) received_bytes: u64,
    pub(super) detail: Option<String>,
}

/// What the next visit is compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Last {
    at_s: i64,
    site: u32,
    server: u32,
}

/// Consecutive visits of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Portion {
    /// The number of its first visit.
    pub(super) id: i64,
    /// How many visits it has.
    pub(super) count: i64,
    pub(super) bytes: Vec<u8>,
    last: Last,
}

impl Portion {
    /// An empty one whose first visit will have this number.
    pub(super) fn begin(id: i64) -> Self {
        Self { id, ..Self::default() }
    }

    /// A stored one, to go on with; `None` if it is damaged.
    pub(super) fn resume(id: i64, bytes: Vec<u8>) -> Option<Self> {
        let mut reader = Reader::new(&bytes);
        let mut count = 0;
        while !reader.is_at_end() {
            reader.visit()?;
            count += 1;
        }
        let last = reader.last;
        Some(Self { id, count, bytes, last })
    }

    /// Adds a visit; returns `false`, and does nothing, if it does not fit.
    pub(super) fn push(&mut self, visit: &Logged) -> bool {
        let before = self.bytes.len();
        write(&mut self.bytes, self.last, visit);
        if before > 0 && self.bytes.len() > BYTES_MAX {
            self.bytes.truncate(before);
            return false;
        }
        self.last = Last::after(visit);
        self.count += 1;
        true
    }
}

impl Last {
    fn after(visit: &Logged) -> Self {
        Self { at_s: visit.at_s, site: visit.site.0, server: visit.page.server().0 }
    }
}

/// The visits of a stored portion, oldest first; `None` if it is damaged.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Logged>> {
    let mut reader = Reader::new(bytes);
    let mut visits = Vec::new();
    while !reader.is_at_end() {
        visits.push(reader.visit()?);
    }
    Some(visits)
}

/// The status that is left out because it follows from the outcome.
fn usual_status(outcome: Outcome) -> u16 {
    match outcome {
        Outcome::Changed | Outcome::Same => 200,
        Outcome::NotModified => 304,
        Outcome::Gone => 404,
        Outcome::Refused | Outcome::Failed => 0,
    }
}

fn write(bytes: &mut Vec<u8>, last: Last, visit: &Logged) {
    let (site, server) = (visit.site.0, visit.page.server().0);
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = rows::outcome_number(visit.outcome)
        | flag(visit.detail.is_some(), HAS_DETAIL)
        | flag(site != last.site, OTHER_SITE)
        | flag(server != last.server, OTHER_SERVER)
        | flag(visit.status != usual_status(visit.outcome), OTHER_STATUS)
        | flag(visit.received_bytes > 0, HAS_BODY);
    bytes.push(flags);
    put(bytes, zigzag(visit.at_s.wrapping_sub(last.at_s)));
    if flags & OTHER_SITE != 0 {
        put(bytes, site.into());
    }
    if flags & OTHER_SERVER != 0 {
        put(bytes, server.into());
    }
    bytes.extend_from_slice(&visit.page.0.to_le_bytes()[..5]);
    // The fifth byte would hold a bit of the server's number.
    let end = bytes.len() - 1;
    bytes[end] &= 0x7f;
    put(bytes, visit.elapsed_ms.into());
    if flags & OTHER_STATUS != 0 {
        put(bytes, visit.status.into());
    }
    if flags & HAS_BODY != 0 {
        put(bytes, visit.received_bytes);
    }
    if let Some(detail) = &visit.detail {
        put(bytes, detail.len() as u64);
        bytes.extend_from_slice(detail.as_bytes());
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    last: Last,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, last: Last::default() }
    }

    fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    fn visit(&mut self) -> Option<Logged> {
        let flags = self.take(1)?[0];
        let outcome = *Outcome::ALL.get(usize::from(flags & OUTCOME))?;
        let at_s = self.last.at_s.wrapping_add(unzigzag(self.varint()?));
        let site = self.number(flags & OTHER_SITE, self.last.site)?;
        let server = self.number(flags & OTHER_SERVER, self.last.server)?;
        let mut hash = [0; 8];
        hash[..5].copy_from_slice(self.take(5)?);
        let page = PageId(i64::from(server) << PageId::HASH_BITS | i64::from_le_bytes(hash));
        let elapsed_ms = self.varint()?.try_into().ok()?;
        let status = match flags & OTHER_STATUS {
            0 => usual_status(outcome),
            _ => self.varint()?.try_into().ok()?,
        };
        let received_bytes = if flags & HAS_BODY != 0 { self.varint()? } else { 0 };
        let detail = match flags & HAS_DETAIL {
            0 => None,
            _ => {
                let length = self.varint()?.try_into().ok()?;
                Some(String::from_utf8(self.take(length)?.to_vec()).ok()?)
            }
        };
        let site = SiteId(site);
        self.last = Last { at_s, site: site.0, server: ServerId(server).0 };
        Some(Logged { at_s, page, site, outcome, status, elapsed_ms, received_bytes, detail })
    }

    fn number(&mut self, is_other: u8, last: u32) -> Option<u32> {
        if is_other == 0 { Some(last) } else { self.varint()?.try_into().ok() }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_visit() -> impl Strategy<Value = Logged> {
        let page = (1_u32..9, 0..1_i64 << PageId::HASH_BITS)
            .prop_map(|(server, hash)| PageId(i64::from(server) << PageId::HASH_BITS | hash));
        let outcome = (0..6_usize).prop_map(|n| Outcome::ALL[n]);
        let status = prop_oneof![Just(200), Just(304), Just(404), any::<u16>()];
        let bytes = prop_oneof![Just(0), any::<u64>()];
        (
            any::<i64>(),
            page,
            1_u32..4,
            outcome,
            status,
            any::<u32>(),
            bytes,
            any::<Option<String>>(),
        )
            .prop_map(
                |(at_s, page, site, outcome, status, elapsed_ms, received_bytes, detail)| {
                    let site = SiteId(site);
                    Logged { at_s, page, site, outcome, status, elapsed_ms, received_bytes, detail }
                },
            )
    }

    proptest! {
        #[test]
        fn visits_come_back_whether_written_at_once_or_resumed(
            visits in prop::collection::vec(any_visit(), 0..40),
        ) {
            let mut portion = Portion::begin(7);
            let mut kept = Vec::new();
            for visit in visits {
                portion = Portion::resume(portion.id, portion.bytes.clone()).unwrap();
                if portion.push(&visit) {
                    kept.push(visit);
                }
            }
            prop_assert_eq!(portion.count, kept.len() as i64);
            prop_assert!(kept.len() < 2 || portion.bytes.len() <= BYTES_MAX);
            prop_assert_eq!(read(&portion.bytes).unwrap(), kept);
        }

        #[test]
        fn damage_is_noticed_or_read_but_never_a_panic(bytes: Vec<u8>) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn an_unchanged_visit_takes_about_ten_bytes() {
        let mut portion = Portion::begin(1);
        for n in 0..100 {
            assert!(portion.push(&Logged {
                at_s: 1_800_000_000 + n * 20,
                page: PageId((3 << PageId::HASH_BITS) + n * 987_654_321),
                site: SiteId(1),
                outcome: Outcome::NotModified,
                status: 304,
                elapsed_ms: 250,
                received_bytes: 0,
                detail: None,
            }));
        }
        assert!(portion.bytes.len() <= 910, "{}", portion.bytes.len());
    }
}
