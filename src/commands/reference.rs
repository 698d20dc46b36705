use std::{fmt::Write as _, path::Path};

use anyhow::Context as _;
use clap::CommandFactory;
use nenrin_archive::Figures;

use super::Context;
use crate::{
    cli::{Cli, EXIT_CODES},
    completions,
    exit::Exit,
    table::say,
};

/// `nenrin reference`: what the program knows about itself, as files.
pub(super) fn reference(context: &Context, folder: &Path) -> anyhow::Result<Exit> {
    let write = |name: &str, text: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    for inner in ["man", "completions"] {
        let inner = folder.join(inner);
        std::fs::create_dir_all(&inner)
            .with_context(|| format!("cannot create {}", inner.display()))?;
    }
    let man = folder.join("man");
    clap_mangen::generate_to(Cli::command(), &man)
        .with_context(|| format!("cannot write {}", man.display()))?;
    for shell in ["bash", "zsh", "fish"] {
        write(&format!("completions/nenrin.{shell}"), &completions::script(shell)?)?;
    }
    let mut collecting = Figures::default();
    collecting.free_bytes = Some(0);
    let api = serde_json::to_string_pretty(&nenrin_web::api_document())?;
    write("commands.md", commands().as_bytes())?;
    write("exit-codes.md", exit_codes().as_bytes())?;
    write("settings.toml", crate::config::Config::default().as_file().as_bytes())?;
    write("metrics.md", nenrin_web::metrics_document(collecting.metrics()).as_bytes())?;
    write("openapi.json", api.as_bytes())?;
    if !context.json {
        say(format!(
            "man pages, completions, commands.md, exit-codes.md, settings.toml, metrics.md and openapi.json are in {}",
            folder.display()
        ))?;
    }
    Ok(Exit::Done)
}

/// The exit codes of every command, as in its `--help`.
fn exit_codes() -> String {
    let codes = EXIT_CODES.trim_start_matches("Exit codes: ").trim_end_matches('.');
    let rows = codes.split(" · ").filter_map(|code| code.split_once(' '));
    let rows = rows.map(|(code, meaning)| format!("| {code} | {meaning} |\n"));
    format!("# Exit codes\n\n| code | meaning |\n|---|---|\n{}", rows.collect::<String>())
}

/// The help of every command, one after the other.
fn commands() -> String {
    let mut text = "# Commands\n".to_owned();
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut waiting = vec![root];
    while let Some(mut command) = waiting.pop() {
        let help = command.render_long_help();
        let name = command.get_bin_name().unwrap_or("nenrin").to_owned();
        let _ = write!(text, "\n## {name}\n\n```\n{help}\n```\n");
        let inner: Vec<_> =
            command.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
        waiting.extend(inner.into_iter().rev());
    }
    text
}
