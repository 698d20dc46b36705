use std::{fmt::Write as _, path::Path};

use anyhow::Context as _;
use clap::CommandFactory;
use nenrin_archive::Figures;

use super::Context;
use crate::{cli::Cli, exit::Exit, table::say};

/// `nenrin reference`: what the program knows about itself, as files.
pub(super) fn reference(context: &Context, folder: &Path) -> anyhow::Result<Exit> {
    let man = folder.join("man");
    std::fs::create_dir_all(&man).with_context(|| format!("cannot create {}", man.display()))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    clap_mangen::generate_to(Cli::command(), &man)
        .with_context(|| format!("cannot write {}", man.display()))?;
    write("commands.md", &commands())?;
    write("settings.toml", &crate::config::Config::default().as_file())?;
    write("metrics.md", &Figures::description())?;
    write("openapi.json", &serde_json::to_string_pretty(&nenrin_web::api_document())?)?;
    if !context.json {
        say(format!(
            "man pages, commands.md, settings.toml, metrics.md and openapi.json are in {}",
            folder.display()
        ))?;
    }
    Ok(Exit::Done)
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
