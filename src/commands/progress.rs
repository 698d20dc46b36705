//! How far a command has come, on standard error: a bar where a person looks at it, elsewhere a line
//! now and then.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::Context;
use crate::clock;

/// Off a terminal, a line at most this often.
const LINE_EVERY_MS: i64 = 10_000;

/// How far a command has come.
pub(super) struct Bar(ProgressBar, bool);

impl Bar {
    /// A bar that counts these.
    pub(super) fn counting(context: &Context, unit: &str) -> Self {
        Self::styled(context, &format!("{{bar:40}} {{pos}} of {{len}} {unit}, {{eta}} left"))
    }

    /// A bar that counts.
    fn plain(context: &Context) -> Self {
        match context.json || !io::stderr().is_terminal() {
            true => Self(ProgressBar::hidden(), !context.json),
            false => Self(ProgressBar::new(0), false),
        }
    }

    /// A bar of this look.
    pub(super) fn styled(context: &Context, template: &str) -> Self {
        let Self(bar, has_lines) = Self::plain(context);
        match ProgressStyle::with_template(template) {
            Ok(style) => Self(bar.with_style(style), has_lines),
            Err(_) => Self(bar, has_lines),
        }
    }

    /// What the archive reports its progress to.
    pub(super) fn progress(&self) -> impl FnMut(u64, u64) + use<> {
        let (bar, has_lines) = (self.0.clone(), self.1);
        let (mut last_ms, mut last_percent) = (clock::now_ms(), 0);
        move |done, all| {
            bar.set_length(all);
            bar.set_position(done);
            let percent = done * 100 / all.max(1);
            if has_lines && percent > last_percent && clock::now_ms() - last_ms >= LINE_EVERY_MS {
                (last_ms, last_percent) = (clock::now_ms(), percent);
                // Standard error may be closed.
                let _ = writeln!(io::stderr(), "{percent}% done");
            }
        }
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(self) {
        self.0.finish_and_clear();
    }
}
