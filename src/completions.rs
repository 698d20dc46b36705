//! Completing commands in a shell, with the names of sites and policies.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, CompletionCandidate},
    env::Shells,
};
use nenrin_archive::{Archive, OpenOptions};

use crate::{
    cli::Cli,
    exit::{Exit, usage},
};

/// The variable by which a shell asks for completions.
const ASKED: &str = "NENRIN_COMPLETE";

/// Answers a shell that asks for completions, and ends the process then.
pub(crate) fn answer() {
    CompleteEnv::with_factory(Cli::command).var(ASKED).complete();
}

/// `nenrin completions`.
pub(crate) fn print(shell: &str) -> anyhow::Result<Exit> {
    std::io::stdout().write_all(&script(shell)?)?;
    Ok(Exit::Done)
}

/// What a shell reads at its start to complete our commands.
pub(crate) fn script(shell: &str) -> anyhow::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let Some(found) = shells.completer(shell) else {
        let known = shells.names().collect::<Vec<_>>().join(", ");
        return Err(usage(anyhow::anyhow!("`{shell}` is not a known shell; write one of {known}")));
    };
    let mut script = Vec::new();
    found.write_registration(ASKED, "nenrin", "nenrin", "nenrin", &mut script)?;
    Ok(script)
}

/// The names of the sites in the archive of the environment or in this folder.
pub(crate) fn sites() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let folder = std::env::var_os("NENRIN_ARCHIVE").unwrap_or_else(|| "./nenrin-data".into());
        let sites = Archive::open(folder.as_ref(), &OpenOptions::reading())
            .ok()
            .and_then(|archive| archive.state().sites().ok());
        let names = sites.unwrap_or_default().into_iter().filter(|site| site.removed.is_none());
        names
            .map(|site| CompletionCandidate::new(nenrin_lang::shown(&site.name).into_owned()))
            .collect()
    })
}

/// Revisit policies.
pub(crate) fn policies() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        ["auto", "auto(fair=0.5)", "mle.mix(0.1-10,2nd=7d)", "aimd(d=1d,r=0.5)", "every(7d)"]
            .into_iter()
            .map(CompletionCandidate::new)
            .collect()
    })
}
