//! The papers' experiments, on the shipped code: `nenrin lab order|revisit|budget|structure`.

use std::{
    io::{self, Write as _},
    path::Path,
};

use nenrin_lab::{experiment::Experiment, summary::Summary};

use super::Context;
use crate::{
    exit::{Exit, usage},
    table::{Table, print_json, print_table, say},
};

/// Carries out an experiment. Programs get all results in one line, people the tables.
pub(super) fn run(context: &Context, experiment: &dyn Experiment) -> anyhow::Result<Exit> {
    let archive = experiment.reads_archive().then(|| context.open_to_read()).transpose()?;
    let mut note = |step: &str| tracing::info!("{step}");
    // A file that is missing or wrong is an error of the input.
    let findings = experiment.run(archive.as_ref(), &mut note).map_err(usage)?;
    if context.json {
        print_json(&findings.results)?;
        return Ok(Exit::Done);
    }
    for (number, mut summary) in findings.tables.into_iter().enumerate() {
        if number > 0 {
            say("")?;
        }
        if let Some(title) = summary.title.take() {
            say(title)?;
        }
        print_summary(summary)?;
    }
    written(findings.out.as_deref())
}

/// Says where the report is: not among the results, which may be piped to a program.
pub(super) fn written(out: Option<&Path>) -> anyhow::Result<Exit> {
    if let Some(out) = out {
        writeln!(io::stderr(), "written to {}", out.join("report.html").display())?;
    }
    Ok(Exit::Done)
}

pub(super) fn print_summary(summary: Summary) -> io::Result<()> {
    let mut table = Table::new(&summary.headings);
    summary.rows.into_iter().for_each(|row| table.row(row));
    print_table(&table)
}
