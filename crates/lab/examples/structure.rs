//! The structure experiment from the command line, on mirrored folders or made-up servers.
//!
//! `cargo run --release -p nenrin-lab --example structure -- --mirrors DIR --out OUT`, where DIR holds
//! `SITE/VISIT/…` (visits numbered from 1) and each `--host SITE=HOST` names a host of a site.

use std::path::{Path, PathBuf};

use clap::Parser;
use nenrin_lab::structure::{MirrorSite, StructureOptions, SyntheticWeb, load_mirrors, run};

#[derive(Parser)]
struct Arguments {
    /// A folder of `SITE/VISIT/…`; without it, servers are made up.
    #[arg(long)]
    mirrors: Option<PathBuf>,
    /// A host under which the pages of a site link to each other.
    #[arg(long = "host", value_name = "SITE=HOST")]
    hosts: Vec<String>,
    /// Made-up tops do not announce changes.
    #[arg(long)]
    silent_tops: bool,
    /// Visits to learn from.
    #[arg(long, default_value_t = 4)]
    learn: usize,
    /// Where `report.html` and `results.json` go.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let history = match &arguments.mirrors {
        Some(folder) => load_mirrors(&mirror_sites(folder, &arguments.hosts)?)?,
        None => SyntheticWeb { tops_announce: !arguments.silent_tops, ..SyntheticWeb::default() }
            .history(),
    };
    let options = StructureOptions {
        learning_visits: arguments.learn,
        out: arguments.out,
        ..StructureOptions::default()
    };
    let outcome = run(&history, &options)?;
    #[expect(clippy::print_stdout, reason = "an example is a command")]
    {
        println!("{:#}", outcome.results);
    }
    Ok(())
}

fn mirror_sites(folder: &Path, hosts: &[String]) -> std::io::Result<Vec<MirrorSite>> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    names.sort();
    let site = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folders = (1..).map(|visit: u32| path.join(visit.to_string()));
        let folders = folders.take_while(|folder| folder.is_dir()).collect();
        let hosts = hosts.iter().filter_map(|host| host.split_once('='));
        let hosts = hosts.filter(|(site, _)| *site == name).map(|(_, host)| host.to_owned());
        MirrorSite { hosts: hosts.collect(), kind: "mirror".to_owned(), name, folders }
    };
    Ok(names.into_iter().map(site).collect())
}
