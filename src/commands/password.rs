//! `nenrin config set-password`: a password's hash in the configuration file.

use std::{
    io::{BufRead, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context as _;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::serve::random_bytes;
use crate::{
    cli::SetPasswordArgs,
    config::Config,
    exit::{Exit, usage},
    table::say,
};

/// Shorter ones are guessed within days, although guesses are slowed down.
const MIN_CHARS: usize = 8;

pub(super) fn set(file: Option<&Path>, args: &SetPasswordArgs) -> anyhow::Result<Exit> {
    let Some(file) = file else {
        return Err(usage(anyhow::anyhow!(
            "the hash is kept in the configuration file; name it with --config FILE (it is made if there is none)"
        )));
    };
    let password = read_password()?;
    if password.chars().count() < MIN_CHARS {
        return Err(usage(anyhow::anyhow!("a password needs at least {MIN_CHARS} characters")));
    }
    let hash = nenrin_web::hash_password(&password, random_bytes()?)?;
    let field = if args.reader { "reader_password" } else { "password" };
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(usage(
                anyhow::Error::new(error).context(format!("cannot read {}", file.display())),
            ));
        }
    };
    let after = nenrin_lang::with_setting(&before, "serve", field, &hash);
    toml::from_str::<Config>(&after)
        .context("the configuration would not be right any more; nothing was written")?;
    write(file, &after).with_context(|| format!("cannot write {}", file.display()))?;
    say(format!("serve.{field} is set in {}; it counts from the next start", file.display()))?;
    Ok(Exit::Done)
}

/// From the terminal without showing it, or a line of standard input.
fn read_password() -> anyhow::Result<String> {
    let input = std::io::stdin();
    let is_terminal = input.is_terminal();
    let ask = |question: &str| -> anyhow::Result<String> {
        if is_terminal {
            let mut out = std::io::stderr();
            write!(out, "{question}: ")?;
            out.flush()?;
        }
        let mut line = String::new();
        input.lock().read_line(&mut line)?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    };
    if !is_terminal {
        return ask("");
    }
    let shown = tcgetattr(&input)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Now, &hidden)?;
    let typed = ask("password").and_then(|first| {
        let again = ask("\nonce more")?;
        Ok((first, again))
    });
    tcsetattr(&input, OptionalActions::Now, &shown)?;
    let (first, again) = typed?;
    if first != again {
        return Err(usage(anyhow::anyhow!("the two differ; nothing was changed")));
    }
    Ok(first)
}

/// Readable by its owner alone where it is new, and whole at any moment.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let aside = file.with_extension("toml.new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut new = options.open(&aside)?;
    if let Ok(known) = std::fs::metadata(file) {
        new.set_permissions(known.permissions())?;
    }
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    std::fs::rename(&aside, file)
}
