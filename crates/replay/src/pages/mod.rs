//! Pages of our own, written with `maud`, which escapes everything that came from outside.

pub(crate) mod banner;
pub(crate) mod calendar;
pub(crate) mod diff;
mod layout;
pub(crate) mod missing;

pub(crate) use layout::layout;
use layout::{as_value, in_interface, to_add};
