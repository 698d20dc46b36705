//! What each command does.

mod changes;
mod collect;
mod config;
mod demo;
mod diff;
mod doctor;
pub(crate) mod experiments;
mod lab;
mod look;
mod mirror;
mod password;
mod preview;
mod progress;
mod prune;
mod reference;
mod removal;
mod run;
mod search;
mod serve;
mod sites;
mod storage;
mod structure;
mod upkeep;
mod warc;
mod watch;
mod worker;

use std::path::PathBuf;

use nenrin_archive::{Archive, ArchiveError, OpenOptions, SharedArchive, SharedPlaces};

use crate::{
    cli::{Cli, Command, ConfigCommand, ExportCommand, ImportCommand},
    clock, completions,
    config::Config,
    exit::{Exit, usage},
};

/// What every command needs to know.
pub(crate) struct Context {
    pub archive: PathBuf,
    /// Where the archive is, if several workers share it.
    pub shared: Option<SharedPlaces>,
    pub config: Config,
    /// Where the configuration was read from.
    pub config_file: Option<PathBuf>,
    pub json: bool,
}

impl Context {
    /// Opens the archive that several workers share, if this is one; makes it if it `creates`.
    pub(crate) fn open_shared(&self, creates: bool) -> anyhow::Result<Option<SharedArchive>> {
        let Some(places) = &self.shared else { return Ok(None) };
        let bucket_s = creates.then(|| self.config.state.bucket.as_s());
        let opened = SharedArchive::open(places, &self.archive, bucket_s, clock::now_ms());
        Ok(Some(opened.map_err(usage)?))
    }

    /// The same where only such an archive will do.
    pub(crate) fn shared(&self, creates: bool) -> anyhow::Result<SharedArchive> {
        let why = "name an archive that workers share with --state and --content";
        self.open_shared(creates)?.ok_or_else(|| usage(anyhow::anyhow!(why)))
    }

    /// Opens the archive.
    pub(crate) fn open(&self, options: OpenOptions) -> anyhow::Result<Archive> {
        if let Some(shared) = self.open_shared(options.creates())? {
            return Ok(shared.read()?);
        }
        let options = options.with_bucket_s(self.config.state.bucket.as_s());
        Archive::open(&self.archive, &options).map_err(|error| {
            let advice = match &error {
                ArchiveError::NotAFolder { .. } => "name one for the archive with --archive",
                ArchiveError::NoArchive { .. } => {
                    "name one with --archive, or begin one with `nenrin collect URL`"
                }
                ArchiveError::Locked { .. } => {
                    "stop it, use its interface, or name another archive with --archive"
                }
                _ => return error.into(),
            };
            usage(anyhow::anyhow!("{error}; {advice}"))
        })
    }

    /// Opens the archive to read.
    pub(crate) fn open_to_read(&self) -> anyhow::Result<Archive> {
        self.open(OpenOptions::reading())
    }

    /// Opens the archive to write, if there is one.
    pub(crate) fn open_to_change(&self) -> anyhow::Result<Archive> {
        self.open(OpenOptions::changing())
    }

    /// Opens the archive to write, and creates it on first use.
    pub(crate) fn open_to_write(&self) -> anyhow::Result<Archive> {
        self.open(OpenOptions::writing())
    }
}

/// Runs the command line.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    // Before the configuration is read: it makes the file if there is none.
    if let Command::Config { command: Some(ConfigCommand::SetPassword(args)) } = &cli.command {
        return password::set(cli.config.as_deref(), args);
    }
    if let Command::Completions { shell } = &cli.command {
        return completions::print(shell);
    }
    let config = Config::load(cli.config.as_deref())?;
    let (archive, config_file, json, partitions) =
        (cli.archive, cli.config, cli.json, cli.partitions);
    let shared = cli.state.zip(cli.content);
    let shared = shared.map(|(state, content)| SharedPlaces { state, content, partitions });
    let context = Context { archive, shared, config, config_file, json };
    context.shared.as_ref().map_or(Ok(()), |_| refuse_shared(&cli.command))?;
    match cli.command {
        Command::Run(args) => run::run(&context, &args),
        Command::Demo(args) => demo::demo(&context, &args),
        Command::Collect(args) => collect::collect(&context, &args),
        Command::Site(command) => sites::site(&context, command),
        Command::Log(args) => look::log(&context, &args),
        Command::Pages(args) => look::pages(&context, &args),
        Command::Versions(args) => look::versions(&context, &args),
        Command::Cat(args) => look::cat(&context, &args),
        Command::Changes(args) => changes::changes(&context, &args),
        Command::Diff(args) => diff::diff(&context, &args),
        Command::Watch(command) => watch::watch(&context, &command),
        Command::Serve(args) => serve::serve(&context, &args),
        Command::Import(ImportCommand::Mirror(args)) => mirror::import(&context, &args),
        Command::Import(ImportCommand::Warc(args)) => warc::import(&context, &args),
        Command::Import(ImportCommand::History(args)) => mirror::history(&context, &args),
        Command::Export(ExportCommand::Mirror(args)) => mirror::export(&context, &args),
        Command::Export(ExportCommand::Warc(args)) => warc::export(&context, &args),
        Command::Export(ExportCommand::Wacz(args)) => warc::package(&context, &args),
        Command::Export(ExportCommand::Parquet { output, folder }) => {
            warc::tables(&context, &output.or(folder).unwrap_or_default())
        }
        Command::Export(ExportCommand::Page(args)) => warc::page(&context, &args),
        Command::Export(ExportCommand::Cdxj(args)) => warc::index(&context, &args),
        Command::Prune(args) => prune::prune(&context, &args),
        Command::Doctor => doctor::doctor(&context),
        Command::Reference { output } => reference::reference(&context, &output),
        Command::Compact => upkeep::compact(&context),
        Command::Migrate(args) => upkeep::migrate(&context, &args),
        Command::Backup(args) => upkeep::backup(&context, &args),
        Command::Stats => upkeep::stats(&context),
        Command::Workers => worker::list(&context),
        Command::Verify(args) => upkeep::verify(&context, &args),
        Command::Reindex { search: true } => search::reindex(&context),
        Command::Reindex { search: false } => upkeep::reindex(&context),
        Command::Search(args) => search::search(&context, &args),
        Command::Blame(args) => search::blame(&context, &args),
        Command::Config { command: Some(ConfigCommand::TestMail) } => config::test_mail(&context),
        // Completions were printed before the configuration was read.
        Command::Config { .. } | Command::Completions { .. } => config::config(&context),
        Command::Lab(command) => lab::lab(&context, &command),
    }
}

/// What only an archive in a folder can do, and the way out.
fn refuse_shared(command: &Command) -> anyhow::Result<()> {
    let way_out = match command {
        Command::Collect(_) | Command::Demo(_) => "use `nenrin site add` and `nenrin run`",
        Command::Backup(_) => "save the database with pg_dump, and after that copy the bucket",
        Command::Verify(args) if args.repair || args.accept_loss => {
            "put back the objects from a backup of the bucket, and run `nenrin reindex`"
        }
        _ => return Ok(()),
    };
    Err(usage(anyhow::anyhow!("this does not work on an archive that workers share; {way_out}")))
}
