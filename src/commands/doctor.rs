use std::{
    net::{TcpListener, ToSocketAddrs},
    path::Path,
};

use nenrin_archive::{
    Archive, ArchiveError, DiskGuard, OpenOptions, counted,
    doctor::{self, FileSystem, Finding, Health, Machine},
};
use nenrin_state::Schedule;
use serde_json::json;

use super::Context;
use crate::{
    clock,
    exit::Exit,
    table::{print_json, say},
};

/// Sites whose host names are looked up.
const NAMES_TRIED: usize = 3;

/// `nenrin doctor`.
pub(super) fn doctor(context: &Context) -> anyhow::Result<Exit> {
    let (archive, mut found) = open(context)?;
    let mut machine = machine(context, archive.as_ref());
    machine.is_running =
        machine.unwritable.is_none() && archive.as_ref().is_some_and(Archive::is_shared);
    found.splice(0..0, machine.findings());
    if let Some(archive) = &archive {
        found.extend(archive.examine(clock::now_s())?);
    }
    let count = |health| found.iter().filter(|finding| finding.health == health).count() as u64;
    let (problems, notices) = (count(Health::Problem), count(Health::Notice));
    let exit = if problems > 0 { Exit::Partly } else { Exit::Done };
    if context.json {
        print_json(&json!({
            "version": env!("NENRIN_VERSION"), "archive": context.archive, "problems": problems,
            "notices": notices, "findings": found,
        }))?;
        return Ok(exit);
    }
    say(format!("nenrin {}, archive {}", env!("NENRIN_VERSION"), context.archive.display()))?;
    for finding in &found {
        let sign = match finding.health {
            Health::Good => "ok",
            Health::Notice => "note",
            Health::Problem => "PROBLEM",
        };
        say(format!("{sign:<8}{:<12}{}", finding.about, finding.seen))?;
        if finding.health != Health::Good {
            say(format!("{:20}→ {}", "", finding.advice))?;
        }
    }
    say(match (problems, notices) {
        (0, 0) => "\nEverything is as it should be.".to_owned(),
        _ => format!("\n{}, {}", counted(problems, "problem"), counted(notices, "note")),
    })?;
    Ok(exit)
}

/// The archive, if there is one that opens; otherwise what is wrong with it.
fn open(context: &Context) -> anyhow::Result<(Option<Archive>, Vec<Finding>)> {
    let options = OpenOptions::checking().with_bucket_s(context.config.state.bucket.as_s());
    match Archive::open(&context.archive, &options) {
        Ok(archive) => Ok((Some(archive), Vec::new())),
        Err(ArchiveError::NoArchive { .. }) => {
            let seen = format!("there is none in {} yet", context.archive.display());
            Ok((None, vec![Finding::good("archive", seen)]))
        }
        Err(error) => {
            let error = anyhow::Error::from(error);
            let advice = nenrin_archive::advice(error.chain())
                .unwrap_or("`nenrin reindex` makes damaged indexes again from the packs");
            Ok((None, vec![Finding::problem("archive", format!("{error:#}"), advice)]))
        }
    }
}

fn machine(context: &Context, archive: Option<&Archive>) -> Machine {
    let config = &context.config;
    // The folder may not exist yet: then the one that it will be made in counts.
    let folder =
        context.archive.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let addresses =
        [("serve.interface", &config.serve.interface), ("serve.replay", &config.serve.replay)];
    Machine {
        now_s: clock::now_s(),
        built_s: env!("NENRIN_COMMITTED_S").parse().unwrap_or(0),
        free_bytes: DiskGuard::new(folder, 0).free_bytes(),
        min_free_bytes: config.disk.min_free.0,
        file_system: FileSystem::of(folder),
        unwritable: tempfile::tempfile_in(folder).err().map(|error| error.to_string()),
        descriptors: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        free_memory_bytes: doctor::free_memory_bytes(),
        names: archive.map(names).unwrap_or_default(),
        listening: addresses
            .into_iter()
            .map(|(setting, address)| {
                let error = TcpListener::bind(address.as_str()).err();
                (setting, address.clone(), error.map(|error| error.to_string()))
            })
            .collect(),
        is_running: false,
        browser: nenrin_render::chromium(&config.render_options())
            .map(|program| program.display().to_string()),
        contact: config.contact.clone(),
    }
}

/// The host names of the first sites that are collected by themselves, looked up. Those of imported
/// archives need not be there any more.
fn names(archive: &Archive) -> Vec<(String, Option<String>)> {
    let sites = archive.state().sites().unwrap_or_default();
    sites
        .iter()
        .filter(|site| site.conditions.schedule != Schedule::Manual)
        .filter_map(|site| site.conditions.tops.first())
        .take(NAMES_TRIED)
        .map(|top| {
            let host = top.server().host().to_owned();
            let error = (host.as_str(), 80).to_socket_addrs().err();
            (host, error.map(|error| error.to_string()))
        })
        .collect()
}
