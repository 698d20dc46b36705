//! `auto`: visits one page after the other, and every visit updates the beliefs about the rest.

mod beliefs;
mod calibration;
mod cells;
mod evidence;
mod fragments;
mod gaussian;
mod layout;
mod options;
mod page_spread;
mod plan;
mod server;
mod stored;
mod templates;

pub use beliefs::{Beliefs, SharedBeliefs};
pub use evidence::{Evidence, Hint};
pub use options::AutoOptions;
pub use plan::{AutoRound, AutoServer, RoundEstimate};
pub use templates::templates_from_links;
