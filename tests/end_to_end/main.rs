//! The real program against real servers on loopback.
//!
//! `support` runs the program and serves the sites; the other modules are tests by theme.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests look at real clocks and sockets, and a broken one may panic"
)]

mod bad_days;
mod bad_input;
mod bad_servers;
mod bounded;
mod cases;
mod collecting;
mod continuous;
mod downloads;
mod faithful;
mod floods;
mod following;
mod gallery;
mod guide;
mod hostile;
mod json;
mod judging;
mod keeping;
mod killing;
mod logins;
mod machines;
mod mirrors;
mod newcomer;
mod rendering;
mod searching;
mod second_look;
mod serving;
mod strangers;
mod support;
mod tables;
mod trouble;
mod warc;
mod watching;
