use super::Context;
use crate::{
    exit::Exit,
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
