//! Pages of our own, written with `maud`, which escapes everything that came from outside.

pub(crate) mod banner;
pub(crate) mod calendar;
pub(crate) mod diff;
pub(crate) mod framed;
pub(crate) mod front;
mod layout;
pub(crate) mod missing;
pub(crate) mod parts;

use layout::{as_value, in_interface, to_add};
pub(crate) use layout::{layout, record_link, watch_link};
