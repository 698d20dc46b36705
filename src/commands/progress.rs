//! Progress bars on standard error, where a person looks at it.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use super::Context;

/// How far a command has come.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar that counts these.
    pub(super) fn counting(context: &Context, unit: &str) -> Self {
        Self::styled(context, &format!("{{bar:40}} {{pos}} of {{len}} {unit}, {{eta}} left"))
    }

    /// A bar that counts.
    fn plain(context: &Context) -> Self {
        match context.json || !std::io::stderr().is_terminal() {
            true => Self(ProgressBar::hidden()),
            false => Self(ProgressBar::new(0)),
        }
    }

    /// A bar of this look.
    pub(super) fn styled(context: &Context, template: &str) -> Self {
        let Self(bar) = Self::plain(context);
        match ProgressStyle::with_template(template) {
            Ok(style) => Self(bar.with_style(style)),
            Err(_) => Self(bar),
        }
    }

    /// What the archive reports its progress to.
    pub(super) fn progress(&self) -> impl FnMut(u64, u64) + use<> {
        let bar = self.0.clone();
        move |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        }
    }

    /// Takes the bar off the screen.
    pub(super) fn finish(self) {
        self.0.finish_and_clear();
    }
}
