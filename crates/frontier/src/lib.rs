//! What may be fetched next: paper 004's short-term queue and server access scheduler.
//!
//! Read in this order:
//! - [`Frontier`]: one priority queue per server; lets one request per server go at a time;
//! - [`Pace`]: how soon a server may be asked again, learnt from its answers;
//! - [`Politeness`]: the settings behind it.
//!
//! The frontier knows neither pages nor sites: it queues whatever it is given, and holds only what
//! is due soon. What is due later rests in the state's buckets. It reads no clock.

mod pace;
mod queue;

pub use pace::{Feedback, Pace, Politeness};
pub use queue::{Frontier, FrontierStats, ServerKey};
