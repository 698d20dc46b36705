//! Reads a page as it was at a date:
//! `cargo run --example as_of -- ARCHIVE https://example.com/ 2024-03-01`

use std::{
    error::Error,
    io::{self, Write},
    path::Path,
};

use nenrin_archive::{Archive, Edge, OpenOptions, parse_date, readable_date};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, url, date] = &arguments[..] else {
        return Err("usage: as_of ARCHIVE URL DATE".into());
    };
    let archive = Archive::open(Path::new(folder), &OpenOptions::reading())?;
    let at_s = parse_date(date, Edge::Last)?;
    let Some(page) = archive.as_of(url, at_s)? else {
        return Err(format!("{url} has no version of {} or before", readable_date(at_s)).into());
    };
    let mut out = io::stdout().lock();
    writeln!(out, "{} as of {}", page.url(), readable_date(page.at_s()))?;
    writeln!(out, "status {}, {}", page.status(), page.header("content-type").unwrap_or_default())?;
    writeln!(out)?;
    out.write_all(&page.decoded_body()?)?;
    Ok(())
}
