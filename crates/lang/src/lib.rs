//! The languages for people, used by the interface and by replay.
//!
//! Read in this order:
//! - [`Lang`]: English or Japanese, by the reader's choice or their browser's;
//! - [`Lang::t`]: texts of pages, both languages side by side where they are used;
//! - [`Reason`]: why a visit brought no page, as data, and in words of either language;
//! - [`SettingsFile`]: mistakes in a file of settings, with line and way out;
//! - [`shown()`]: text from the web on a terminal;
//! - [`Table`]: lists in a terminal;
//! - [`Hint`]: why a page is visited sooner than planned, and [`IncidentDetail`]: what an incident is
//!   about, likewise;
//! - [`Lang::translate`]: sentences that the program wrote in English (errors of forms, the policy's
//!   reason for a time), in the reader's language.
//!
//! This is not a translation framework: there are no message files and no third language.

mod colour;
mod hint;
mod incident;
mod lang;
mod mistakes;
mod phrases;
mod reason;
mod render_reason;
mod shown;
mod table;
mod translate;

pub use colour::Colour;
pub use hint::Hint;
pub use incident::{IncidentDetail, readable_bytes, serialize_incident_detail};
pub use lang::{LANG_COOKIE, Lang};
pub use mistakes::{SettingsFile, with_setting};
pub use reason::{Network, Reason, Step, Undecoded, Unfetched, serialize_reason};
pub use render_reason::RenderReason;
pub use shown::{escaped, shown, shown_json, wrapped};
pub use table::Table;
