//! What each command does.

mod collect;
mod config;
mod demo;
mod demo_site;
mod diff;
pub(crate) mod experiments;
mod lab;
mod learnt;
mod look;
mod mirror;
mod overlap;
mod password;
mod preview;
mod prune;
mod removal;
mod run;
mod serve;
mod sites;
pub(crate) mod storage;
mod structure;
mod upkeep;
mod warc;

use std::path::PathBuf;

use crate::{
    archive::{Access, Archive},
    cli::{Cli, Command, ConfigCommand, ExportCommand, ImportCommand},
    config::Config,
    exit::Exit,
};

/// What every command needs to know.
pub(crate) struct Context {
    pub archive: PathBuf,
    pub config: Config,
    /// Where the configuration was read from.
    pub config_file: Option<PathBuf>,
    pub json: bool,
}

impl Context {
    /// Opens the archive.
    pub(crate) fn open(&self, access: Access) -> anyhow::Result<Archive> {
        Archive::open(&self.archive, &self.config, access)
    }
}

/// Runs the command line.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    // Before the configuration is read: it makes the file if there is none.
    if let Command::Config { command: Some(ConfigCommand::SetPassword(args)) } = &cli.command {
        return password::set(cli.config.as_deref(), args);
    }
    let config = Config::load(cli.config.as_deref())?;
    let context = Context { archive: cli.archive, config, config_file: cli.config, json: cli.json };
    match cli.command {
        Command::Run(args) => run::run(&context, &args),
        Command::Demo(args) => demo::demo(&context, &args),
        Command::Collect(args) => collect::collect(&context, &args),
        Command::Site(command) => sites::site(&context, command),
        Command::Log(args) => look::log(&context, &args),
        Command::Pages(args) => look::pages(&context, &args),
        Command::Versions(args) => look::versions(&context, &args),
        Command::Cat(args) => look::cat(&context, &args),
        Command::Diff(args) => diff::diff(&context, &args),
        Command::Serve(args) => serve::serve(&context, &args),
        Command::Import(ImportCommand::Mirror(args)) => mirror::import(&context, &args),
        Command::Import(ImportCommand::Warc(args)) => warc::import(&context, &args),
        Command::Export(ExportCommand::Mirror(args)) => mirror::export(&context, &args),
        Command::Export(ExportCommand::Warc(args)) => warc::export(&context, &args),
        Command::Export(ExportCommand::Wacz(args)) => warc::package(&context, &args),
        Command::Export(ExportCommand::Cdxj(args)) => warc::index(&context, &args),
        Command::Prune(args) => prune::prune(&context, &args),
        Command::Compact => upkeep::compact(&context),
        Command::Stats => upkeep::stats(&context),
        Command::Verify(args) => upkeep::verify(&context, &args),
        Command::Reindex => upkeep::reindex(&context),
        Command::Config { .. } => config::config(&context),
        Command::Lab(command) => lab::lab(&context, &command),
    }
}
