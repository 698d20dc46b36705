//! WARC, ARC, CDXJ and WACZ files: read, written and indexed in bounded memory.
//!
//! Read in this order:
//! - [`RecordReader`]: the [`Record`]s of a WARC or ARC file, behind damage too;
//! - [`HttpResponse`]: what a response record holds;
//! - [`Pairing`]: which request belongs to which response;
//! - [`Capture`], [`Revisit`], [`RecordWriter`]: visits as records, in a file;
//! - [`CdxLine`], [`CdxWriter`], [`SortedLines`]: indexes of such files;
//! - [`ZipReader`], [`WaczWriter`]: many files as one package.
//!
//! It knows no archive of ours, no clock and no network, follows no path that a file names, and
//! never keeps more of a file than one record. What is written and read is described in
//! `docs/warc.md`.

mod arc;
mod capture;
mod cdxj;
mod date;
mod digest;
mod error;
mod http;
mod members;
mod pairing;
mod reader;
mod record;
mod sort;
mod wacz;
mod writer;
mod zip;

pub use capture::{Capture, CaptureFields, Revisit, RevisitProfile, write_warcinfo};
pub use cdxj::{CdxFields, CdxLine, CdxWriter, cdx_key};
pub use date::{date_digits, iso_date, parse_date};
pub use digest::{DigestAlgorithm, digest_matches};
pub use error::WarcError;
pub use http::{HttpResponse, archived_head, request_method, split_message, status};
pub use pairing::{Paired, Pairing};
pub use reader::{ReadOptions, RecordReader};
pub use record::{Block, Deflated, Fields, Packed, Record, RecordType};
pub use sort::SortedLines;
pub use wacz::{PackageAbout, PageLine, WaczWriter};
pub use writer::{Compressed, RecordWriter, Written};
pub use zip::{Entry, Section, ZipPart, ZipReader, ZipWriter};
