//! The `nenrin` program: commands, configuration, the driver, and the only clock.
//!
//! Read in this order: `cli` (what people type), `commands` (what each does), `driver` (carries out
//! the machine's commands), `config`, `exit`, `table`. The work itself is in
//! the `nenrin-archive` library.

mod cli;
mod clock;
mod commands;
mod completions;
mod config;
mod driver;
mod exit;
mod table;

use clap::Parser;

fn main() -> std::process::ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    give_memory_back();
    completions::answer();
    let cli = cli::Cli::parse();
    start_log(cli.verbose, cli.log_format);
    leave_out_expected_panics();
    allow_files();
    let exit = commands::run(cli).unwrap_or_else(|error| {
        report(&error);
        exit::code_of(&error)
    });
    std::process::ExitCode::from(exit as u8)
}

#[expect(clippy::print_stderr, reason = "the program's last word goes to the person who ran it")]
fn report(error: &anyhow::Error) {
    // A reader that closed its end (`| head`) has seen enough.
    let broken_pipe = error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    });
    if !broken_pipe {
        let advice = nenrin_archive::advice(error.chain());
        let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
        eprintln!("nenrin: {}", nenrin_lang::shown(&format!("{}{advice}", causes(error))));
    }
}

/// An error with its causes, each once: many errors name their cause in their own text.
fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Large blocks go back to the system when they are freed. As it comes, glibc keeps them: a heap for
/// each of many threads, and ever larger blocks in each. Bad servers at once then take twice as much.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "mallopt only sets numbers, before any other thread runs")]
fn give_memory_back() {
    use libc::{M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, mallopt};
    let settings = [(M_ARENA_MAX, 2), (M_MMAP_THRESHOLD, 256 << 10), (M_TRIM_THRESHOLD, 1 << 20)];
    // SAFETY: the settings are glibc's own, and nothing else allocates meanwhile.
    let _ = settings.map(|(setting, value)| unsafe { mallopt(setting, value) });
}

/// Takes as many file descriptors as the system gives to this process. Many systems set a low limit at
/// first, for old programs; any process may raise it.
fn allow_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A system that refuses leaves it as it was.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A picture that makes a decoder fail is stored unchanged: not worth a message.
fn leave_out_expected_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !nenrin_store::panic_is_expected() {
            usual(panic);
        }
    }));
}

fn start_log(verbose: u8, format: cli::LogFormat) {
    let default = match verbose {
        0 => "warn",
        1 => "nenrin=info,warn",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("NENRIN_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        cli::LogFormat::Json => log.json().flatten_event(true).init(),
        cli::LogFormat::Text => {
            log.with_ansi(table::has_colours(&std::io::stderr())).init();
        }
    }
}
