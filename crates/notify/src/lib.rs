//! Messages to people and programs about what happened in the archive.
//!
//! Read in this order:
//! - [`Notifier`]: follows what happens, evaluates watches, and hands messages to the receivers;
//! - [`Webhook`]: a program that gets signed messages;
//! - [`MailSettings`] and [`Mailer`]: e-mail over SMTP;
//! - [`Letter`]: a subject and a text, as plain text and as HTML; everything that is sent by e-mail is
//!   one, also what other parts of the program write ([`digest`] is one of them).
//!
//! What came from the web is text in every message: a title can neither add a header nor an element.

mod digest;
mod letter;
mod mail;
mod notifier;
mod receivers;
mod webhooks;

pub use digest::digest;
pub use letter::{Letter, about_hits, about_incidents};
pub use mail::{MailError, MailSettings, Mailer, Security};
pub use notifier::{Links, Notifier, SendTest};
pub use webhooks::Webhook;
