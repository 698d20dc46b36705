//! Imports WARC, ARC or WACZ files and prints what changed on each page:
//! `cargo run --example import_warc -- ARCHIVE crawl.warc.gz`

use std::{
    error::Error,
    io::{self, Write},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use nenrin_archive::{Archive, OpenOptions, WarcFiles, WarcImportOptions, readable_date, sites};
use nenrin_state::{Outcome, VisitFilter};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, files @ ..] = &arguments[..] else {
        return Err("usage: import_warc ARCHIVE FILE…".into());
    };
    let files = WarcFiles::open(files)?;
    let archive = Archive::open(Path::new(folder), &OpenOptions::writing())?;
    let options = WarcImportOptions::new("imported", now_s()?);
    let imported = archive.import_warc(&files, &options, &mut |_, _| {})?;

    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} versions, {} unchanged visits, {} known before, {} damaged records",
        imported.versions, imported.unchanged, imported.known, imported.damaged
    )?;
    let site = sites::find(&**archive.state(), &options.site)?;
    let mut filter =
        VisitFilter { site: Some(site.id), outcome: Some(Outcome::Changed), ..Default::default() };
    filter.limit = 1000;
    for visit in archive.state().visits(filter)? {
        writeln!(out, "{}  {}", readable_date(visit.at_s), visit.url)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a program of its own has a clock of its own")]
fn now_s() -> Result<i64, Box<dyn Error>> {
    Ok(i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())?)
}
