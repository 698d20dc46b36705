use super::Context;
use crate::{
    exit::Exit,
    table::{print_json, say},
};

/// `nenrin config`.
pub(super) fn config(context: &Context) -> anyhow::Result<Exit> {
    let settings = context.config.settings();
    if context.json {
        print_json(&settings)?;
        return Ok(Exit::Done);
    }
    say(
        "# The effective configuration. A file with these lines, given by --config, changes them.",
    )?;
    let mut section = "";
    for setting in &settings {
        let (table, field) = setting.name.rsplit_once('.').unwrap_or(("", setting.name));
        if table != section {
            say(format!("\n[{table}]"))?;
            section = table;
        }
        let number = setting.value.parse::<f64>().is_ok();
        let value = if number { setting.value.clone() } else { format!("{:?}", setting.value) };
        let changed = match setting.value == setting.default {
            true => String::new(),
            false => format!("  # default: {}", setting.default),
        };
        say(format!("# {}\n{field} = {value}{changed}", setting.reason))?;
    }
    Ok(Exit::Done)
}
