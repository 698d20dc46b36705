//! What the crawl machine relies on.

mod due;
mod imports;
mod learnt;
mod rounds;

pub use self::{due::*, imports::*, learnt::*, rounds::*};
