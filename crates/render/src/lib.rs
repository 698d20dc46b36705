//! Shows a page in a headless Chromium that has no network: whatever it asks for is answered by the
//! caller, through a proxy inside this process.
//!
//! Read in this order:
//! - [`Answers`] and [`Answer`]: what the caller gives for each request of a page;
//! - [`Renderer`]: renders one page after the other, and starts the browser anew when it must;
//! - [`Rendering`]: what came of it: text, links, pictures, requests, and what was missing;
//! - [`log_in`]: a window in which a person logs in;
//! - [`RenderOptions`]: the program, and every limit with its reason;
//! - [`Cdp`]: the browser's own protocol, over a pipe that ends with either side.
//!
//! Not here: when to render, and fetching what was missing: `crawl` does
//! ([why](../../../docs/decisions/0016-rendering.md)).

mod authority;
mod cdp;
mod error;
mod options;
mod page;
mod program;
mod proxy;
mod renderer;
mod rendering;
mod window;

pub use cdp::{Cdp, CdpEvent};
pub use error::RenderError;
pub use options::RenderOptions;
pub use program::{chromium, command};
pub use proxy::{Answer, Answers, Asked, WholeRequest};
pub use renderer::Renderer;
pub use rendering::{Ended, RenderedLink, Rendering, Request, SentBody};
pub use window::log_in;
