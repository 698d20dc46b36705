//! The languages of what people read, for the interface and for replay alike.
//!
//! Read in this order:
//! - [`Lang`]: English or Japanese, by the reader's choice or their browser's;
//! - [`Lang::t`]: texts of pages, both languages side by side where they are used;
//! - [`Lang::told`]: sentences that the program noted in English (why a visit failed, why a page is
//!   due), in the reader's language.
//!
//! It is no framework for translation: there are no files of messages and no third language.

mod lang;
mod phrases;
mod told;

pub use lang::{LANG_COOKIE, Lang};
