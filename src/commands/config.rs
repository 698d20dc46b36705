use nenrin_notify::SendTest;

use super::Context;
use crate::{
    clock,
    exit::{Exit, usage},
    table::{print_json, say},
};

/// `nenrin config`.
pub(super) fn config(context: &Context) -> anyhow::Result<Exit> {
    if context.json {
        print_json(&context.config.settings())?;
    } else {
        say(context.config.as_file())?;
    }
    Ok(Exit::Done)
}

/// `nenrin config test-mail`.
pub(super) fn test_mail(context: &Context) -> anyhow::Result<Exit> {
    let settings = &context.config.mail;
    let letter = SendTest::send(settings, super::serve::mail_password(), clock::now_s());
    super::serve::runtime()?.block_on(letter).map_err(usage)?;
    say(format!("sent to {}", settings.to.join(", ")))?;
    Ok(Exit::Done)
}
