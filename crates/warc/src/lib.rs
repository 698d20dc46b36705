//! Reads, writes and indexes WARC, ARC, CDXJ and WACZ files in bounded memory.
//!
//! Read in this order:
//! - [`RecordReader`]: the [`Record`]s of a WARC or ARC file, also after damage;
//! - [`HttpResponse`]: the content of a response record;
//! - [`Pairing`]: finds the request of each response;
//! - [`Capture`], [`Revisit`], [`RecordWriter`]: visits as records in a file;
//! - [`CdxLine`], [`CdxWriter`], [`SortedLines`]: indexes of such files;
//! - [`ZipReader`], [`WaczWriter`]: many files as one package.
//!
//! This crate knows nothing of our archive, of clocks or of the network, follows no path that a
//! file names, and never holds more of a file than one record. `docs/warc.md` describes what is
//! written and read.

mod arc;
mod capture;
mod cdxj;
mod date;
mod digest;
mod error;
mod http;
mod large;
mod members;
mod pairing;
mod reader;
mod record;
mod sort;
mod surt;
mod wacz;
mod writer;
mod zip;

pub use capture::{BodyDigests, Capture, CaptureFields, Revisit, RevisitProfile, write_warcinfo};
pub use cdxj::{CdxFields, CdxLine, CdxWriter};
pub use date::{date_digits, iso_date, parse_date};
pub use digest::{DigestAlgorithm, DigestCheck, Digesting, digest_matches};
pub use error::WarcError;
pub use http::{HttpResponse, archived_head, received_head, request_method, split_message, status};
pub use large::{copy_without_chunks, is_chunked};
pub use pairing::{Paired, Pairing};
pub use reader::{ReadOptions, RecordReader};
pub use record::{Block, Deflated, Fields, Packed, Record, RecordType};
pub use sort::SortedLines;
pub use surt::cdx_key;
pub use wacz::{PackageAbout, PageLine, WaczWriter};
pub use writer::{Compressed, Give, RecordWriter, Written};
pub use zip::{Entry, Section, ZipPart, ZipReader, ZipWriter};
