//! Charts as SVG. They use classes for colour, so that light and dark are the style sheet's matter,
//! and every figure is reachable as text.

mod calendar;

pub(crate) use calendar::{calendar, first_day};
