use std::io;
use std::time::Duration;

/// Why a page could not be rendered. The page is not to blame for any of these.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// There is no browser on this machine.
    #[error("no Chromium was found; install it, or set render.program")]
    NoBrowser,
    /// As root the browser cannot use its sandbox.
    #[error(
        "as root, Chromium runs without its sandbox; run as another user, or allow it with render.as_root"
    )]
    Root,
    /// There is no display on which a window could open.
    #[error(
        "there is no display for a window; log in elsewhere, save the cookies as a cookies.txt, and \
         give it with `nenrin site set SITE --cookies FILE`"
    )]
    NoDisplay,
    /// The browser does not start or ended by itself.
    #[error("Chromium ended: {0}")]
    Gone(String),
    /// It says that something did not work.
    #[error("Chromium refused {method}: {why}")]
    Refused {
        /// The method of its protocol.
        method: String,
        /// What it says.
        why: String,
    },
    /// It does not answer any more.
    #[error("Chromium did not answer {method} within {after:?}")]
    Silent {
        /// The method of its protocol.
        method: String,
        /// How long was waited.
        after: Duration,
    },
    /// A pipe, a socket or a file failed.
    #[error("rendering: {0}")]
    Io(#[from] io::Error),
    /// A certificate for the proxy could not be made.
    #[error("a certificate for the browser could not be made: {0}")]
    Certificate(String),
}
