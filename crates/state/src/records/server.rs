//! What is known of a server.

use std::collections::BTreeMap;

use nenrin_urls::Server;

use crate::ServerId;

/// A copy of a server's robots.txt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsCopy {
    /// When the last good answer (2xx or 4xx) came.
    pub good_at_s: i64,
    /// Its status.
    pub status: u16,
    /// Its body; empty unless 2xx.
    pub body: Vec<u8>,
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRecord {
    /// Its number.
    pub id: ServerId,
    /// Its name.
    pub server: Server,
    /// The last good robots.txt.
    pub robots: Option<RobotsCopy>,
    /// When robots.txt was last asked for, with or without success.
    pub robots_tried_s: Option<i64>,
    /// When the server was last asked for anything.
    pub asked_ms: Option<i64>,
    /// Until when it is not asked for anything.
    pub resting_until_ms: Option<i64>,
    /// Failures in a row: doubles the rest.
    pub strikes: u32,
    /// What was learnt of it, by name: JSON that the state only keeps.
    pub notes: BTreeMap<String, String>,
    /// How far its pages' intervals are stretched because it cannot keep up; 100 is not at all.
    pub stretch_percent: u32,
}

/// When a server was asked, and how it coped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerPace {
    /// The server.
    pub server: ServerId,
    /// When the last request ended.
    pub asked_ms: i64,
    /// Until when it is not asked for anything.
    pub resting_until_ms: Option<i64>,
    /// Failures in a row.
    pub strikes: u32,
    /// How far its pages' intervals are stretched; 100 is not at all.
    pub stretch_percent: u32,
}

/// Something learnt of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNote {
    /// The server.
    pub server: ServerId,
    /// What it is about.
    pub name: String,
    /// What was learnt, as JSON; empty forgets it.
    pub value: String,
}
