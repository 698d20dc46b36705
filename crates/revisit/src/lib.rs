//! When to come again to a page, and how many visits each page gets.
//!
//! Read in this order:
//! - [`Observation`]: what one visit taught (changed, same, nothing);
//! - [`PageHistory`]: what is kept of a page's observations, in a few bytes;
//! - [`RevisitPolicy`]: takes an observation into the history and answers with the [`Next`] due
//!   time and the [`Reason`] for it, within [`Limits`]; [`SharedByPages`] is its budget and memory;
//! - [`PolicySpec`]: the policies by name, such as `mle.mix(0.1-10,2nd=7d)`, and how to build them;
//! - [`AutoPolicy`]: our default, with the [`ChangeClocks`] that pages share and a [`Budget`] kept
//!   by moving the price of a visit; [`Forecast`] says what other budgets would bring;
//! - [`allocate`]: paper 002's division of a fixed number of visits by [`Claim`]s and [`Weights`];
//! - [`Signal`]: hints from feeds, sitemaps and pushes;
//! - [`Companions`]: which pages tend to change together, by [`Circle`]s, learnt from every visit;
//! - [`RevisitSettings`]: how one site's pages are revisited, with [`PathInterval`]s and a budget,
//!   and [`CollectingWindow`]: when the site may be asked at all;
//! - [`PageRevisitScheduler`]: paper 004's part of that name, what the crawler calls after a visit;
//! - [`Overflow`]: stretches the intervals of a server that cannot keep up.
//!
//! Nothing here reads a clock, keeps a queue or knows a URL scheme: times are handed in as seconds
//! since the epoch, and the caller keeps the histories and the buckets of due pages.

mod auto;
mod budget;
mod companions;
mod duration;
mod error;
mod fixed;
mod gaps;
mod history;
mod limits;
mod missed;
mod mle;
mod observation;
mod outcome;
mod overflow;
mod page_groups;
mod policy;
mod scheduler;
mod settings;
mod share;
mod signal;
mod spec;
mod stepped;
mod varint;
mod window;

pub use auto::{
    AutoPolicy, AutoTuning, Budget, ChangeClocks, ClockTuning, Forecast, ForecastPoint,
};
pub use budget::{Allocation, Claim, VisitBounds, Weights, allocate};
pub use companions::{Circle, Companions, NEAR_MAX, PagesByPath, Seen, pages_near};
pub use duration::rounded;
pub use error::RevisitError;
pub use history::PageHistory;
pub use limits::{DAY_S, Limits};
pub use missed::Missed;
pub use mle::{MleKind, MleSpec};
pub use observation::Observation;
pub use outcome::Outcome;
pub use overflow::Overflow;
pub use page_groups::PageGroups;
pub use policy::{Explanation, Neighbourhood, Next, Reason, RevisitPolicy, Rule, SharedByPages};
pub use scheduler::{FAILED_S, KnownPage, NEWS, PageRevisitScheduler, Planned, WORTH_MAX_S, Why};
pub use settings::{PathInterval, RevisitSettings};
pub use signal::{Signal, SignalKind};
pub use spec::PolicySpec;
pub use window::{CollectingWindow, is_open, next_turn_s};
