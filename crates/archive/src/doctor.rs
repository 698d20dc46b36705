//! Looks at the machine and the archive, and says what is wrong and what to do.
//!
//! The program gathers [`Machine`]; the rules that judge it are pure.

use std::path::Path;

use serde::Serialize;

use crate::{Archive, Result, counted, readable_bytes, readable_date};

/// How a thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Good,
    /// It works, with a drawback.
    Notice,
    /// It does not work, or soon will not.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in a word or two.
    pub about: &'static str,
    /// How it is.
    pub health: Health,
    /// What was seen.
    pub seen: String,
    /// What to do about it; empty when it is good.
    pub advice: String,
}

impl Finding {
    /// Something that is as it should be.
    pub fn good(about: &'static str, seen: impl Into<String>) -> Self {
        Self { about, health: Health::Good, seen: seen.into(), advice: String::new() }
    }

    fn notice(about: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { about, health: Health::Notice, seen: seen.into(), advice: advice.into() }
    }

    /// Something that does not work, and what to do about it.
    pub fn problem(
        about: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { about, health: Health::Problem, seen: seen.into(), advice: advice.into() }
    }
}

/// What the program saw of the machine it runs on.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Seconds since the epoch by the machine's clock.
    pub now_s: i64,
    /// When this program was built, so that no right clock shows an earlier time.
    pub built_s: i64,
    /// Free bytes on the archive's disk.
    pub free_bytes: Option<u64>,
    /// Below this collecting pauses (`disk.min_free`).
    pub min_free_bytes: u64,
    /// The kind of file system, if it is one that is known to differ from a local disk.
    pub file_system: Option<FileSystem>,
    /// Why nothing can be written in the archive's folder.
    pub unwritable: Option<String>,
    /// Files that this process may have open.
    pub descriptors: Option<u64>,
    /// Memory that programs can still have.
    pub free_memory_bytes: Option<u64>,
    /// Host names that were looked up, with the error if there was one.
    pub names: Vec<(String, Option<String>)>,
    /// Addresses where interface and replay listen: setting, address, error.
    pub listening: Vec<(&'static str, String, Option<String>)>,
    /// The process that writes to the archive now, so that its addresses are in use.
    pub is_running: bool,
    /// Where a browser was found.
    pub browser: Option<String>,
    /// The contact that servers see.
    pub contact: String,
}

/// File systems that are not on a local disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// In memory: gone after a restart.
    Memory,
    /// On another machine.
    Network,
}

impl FileSystem {
    /// The kind of the file system of a folder, by the magic number of statfs(2).
    pub fn of(folder: &Path) -> Option<Self> {
        const TMPFS: u64 = 0x0102_1994;
        const RAMFS: u64 = 0x8584_58f6;
        const NFS: u64 = 0x6969;
        const SMB: u64 = 0xfe53_4d42;
        const CIFS: u64 = 0xff53_4d42;
        let kind = rustix::fs::statfs(folder).ok()?.f_type as u64 & 0xffff_ffff;
        match kind {
            TMPFS | RAMFS => Some(Self::Memory),
            NFS | SMB | CIFS => Some(Self::Network),
            _ => None,
        }
    }
}

/// Memory that programs can still have, as Linux says it.
pub fn free_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Fewer open files than this run out with the default 64 requests and 512 connections of readers.
const DESCRIPTORS_LEAST: u64 = 1_024;
/// Collecting with default settings stays below this.
const MEMORY_LEAST: u64 = 512 << 20;
/// Less than this is gone within days on a large site.
const DISK_NOTICE: u64 = 5 << 30;
/// A clock may be this far behind the newest visit, for machines that share an archive.
const CLOCK_BEHIND_S: i64 = 300;

impl Machine {
    /// Judges what was seen of the machine.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = vec![self.disk(), self.file_system(), self.folder(), self.clock()];
        found.extend(self.limits());
        found.extend(self.names.iter().map(|(name, error)| name_finding(name, error.as_deref())));
        found.extend(self.listening.iter().map(|place| self.listening_finding(place)));
        found.push(self.browser());
        found.push(if self.contact.is_empty() {
            Finding::notice(
                "contact",
                "no contact is set",
                "write `contact = \"https://example.org/about\"` into a file and start with `--config FILE`, so that the people behind a server can reach you",
            )
        } else {
            Finding::good("contact", self.contact.clone())
        });
        found
    }

    fn disk(&self) -> Finding {
        let Some(free) = self.free_bytes else {
            return Finding::notice(
                "disk",
                "the disk does not say how much space is free",
                "watch the free space yourself; collecting cannot pause before the disk is full",
            );
        };
        let seen = format!("{} free", readable_bytes(free));
        if free < self.min_free_bytes {
            Finding::problem(
                "disk",
                format!("{seen}; collecting pauses below {}", readable_bytes(self.min_free_bytes)),
                "free some space, run `nenrin compact`, set a quota, or lower `disk.min_free`",
            )
        } else if free < DISK_NOTICE {
            Finding::notice("disk", seen, "`nenrin stats` shows how much each site takes")
        } else {
            Finding::good("disk", seen)
        }
    }

    fn file_system(&self) -> Finding {
        match self.file_system {
            None => Finding::good("file system", "a local disk"),
            Some(FileSystem::Memory) => Finding::notice(
                "file system",
                "the archive is in memory",
                "put it on a disk with --archive; everything here is lost at the next restart",
            ),
            Some(FileSystem::Network) => Finding::notice(
                "file system",
                "the archive is on a network file system",
                "use a local disk: locks and syncs of the database are not reliable over a network",
            ),
        }
    }

    fn folder(&self) -> Finding {
        match &self.unwritable {
            None => Finding::good("permission", "the archive's folder can be written to"),
            Some(error) => Finding::problem(
                "permission",
                format!("nothing can be written to the archive's folder: {error}"),
                "run as the user who owns the folder, or change its owner; reading still works",
            ),
        }
    }

    fn clock(&self) -> Finding {
        let seen = format!("{} UTC", readable_date(self.now_s));
        if self.now_s < self.built_s {
            return Finding::problem(
                "clock",
                format!("{seen}, which is before this program was made"),
                "set the clock: visits get the date that it shows",
            );
        }
        Finding::good("clock", seen)
    }

    fn limits(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        if let Some(files) = self.descriptors {
            let seen = format!("{files} files may be open");
            found.push(if files < DESCRIPTORS_LEAST {
                Finding::notice("limits", seen, "allow at least 1024 with `ulimit -n 1024`")
            } else {
                Finding::good("limits", seen)
            });
        }
        if let Some(bytes) = self.free_memory_bytes {
            let seen = format!("{} of memory available", readable_bytes(bytes));
            found.push(if bytes < MEMORY_LEAST {
                Finding::notice("memory", seen, "lower `fetch.memory` and `crawl.parallel`")
            } else {
                Finding::good("memory", seen)
            });
        }
        found
    }

    fn listening_finding(&self, place: &(&'static str, String, Option<String>)) -> Finding {
        let (setting, address, error) = place;
        match error {
            None => Finding::good("address", format!("{address} is free for {setting}")),
            Some(_) if self.is_running => {
                Finding::good("address", format!("{address} is in use while the archive is open"))
            }
            Some(error) => Finding::problem(
                "address",
                format!("{address} cannot be used for {setting}: {error}"),
                format!("stop the program that uses it, or set {setting} to another address"),
            ),
        }
    }

    fn browser(&self) -> Finding {
        match &self.browser {
            Some(path) => Finding::good("browser", path.clone()),
            None => Finding::notice(
                "browser",
                "no Chromium was found",
                "install the package `chromium` if sites need a browser; all others do without",
            ),
        }
    }
}

fn name_finding(name: &str, error: Option<&str>) -> Finding {
    match error {
        None => Finding::good("name", format!("{name} is found")),
        Some(error) => Finding::problem(
            "name",
            format!("{name} is not found: {error}"),
            "check the address of the site, and the name servers in /etc/resolv.conf",
        ),
    }
}

impl Archive {
    /// Looks for damage and for things that nobody needs any more, as `verify` without reading the
    /// versions does.
    pub fn examine(&self, now_s: i64) -> Result<Vec<Finding>> {
        let verified = self.verify(false, &mut |_, _| {})?;
        let mut found = Vec::new();
        if verified.is_sound() {
            let (packs, versions) = (verified.store.packs, verified.store.versions);
            found.push(Finding::good(
                "archive",
                format!("{} in {}", counted(versions, "version"), counted(packs, "pack")),
            ));
        } else {
            let lines = verified.text(false).join("; ");
            found.push(Finding::problem(
                "archive",
                lines,
                "run `nenrin verify --deep`, then `nenrin verify --repair` or `nenrin reindex`",
            ));
        }
        let newest = self.state().rounds(None, 1)?.first().map(|round| round.started_s);
        if let Some(newest) = newest
            && newest > now_s + CLOCK_BEHIND_S
        {
            found.push(Finding::problem(
                "clock",
                format!("the newest round began on {} UTC, in the future", readable_date(newest)),
                "set the clock; if it was wrong before, pages are visited as if that had been now",
            ));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> Machine {
        Machine {
            now_s: 2_000,
            built_s: 1_000,
            free_bytes: Some(100 << 30),
            min_free_bytes: 512 << 20,
            descriptors: Some(65_536),
            free_memory_bytes: Some(8 << 30),
            names: vec![("example.com".into(), None)],
            listening: vec![("serve.interface", "127.0.0.1:8080".into(), None)],
            browser: Some("/usr/bin/chromium".into()),
            contact: "https://example.com/bot".into(),
            ..Machine::default()
        }
    }

    fn worst(machine: &Machine) -> Vec<(&'static str, Health)> {
        let found = machine.findings();
        for finding in &found {
            assert_eq!(finding.advice.is_empty(), finding.health == Health::Good, "{finding:?}");
        }
        found
            .into_iter()
            .filter(|finding| finding.health != Health::Good)
            .map(|finding| (finding.about, finding.health))
            .collect()
    }

    #[test]
    fn a_healthy_machine_has_nothing_to_mend() {
        assert!(worst(&healthy()).is_empty());
    }

    #[test]
    fn each_trouble_is_named() {
        use Health::{Notice, Problem};
        type Change = fn(&mut Machine);
        let cases: &[(&'static str, Health, Change)] = &[
            ("disk", Problem, |m| m.free_bytes = Some(1)),
            ("disk", Notice, |m| m.free_bytes = Some(1 << 30)),
            ("disk", Notice, |m| m.free_bytes = None),
            ("file system", Notice, |m| m.file_system = Some(FileSystem::Memory)),
            ("file system", Notice, |m| m.file_system = Some(FileSystem::Network)),
            ("permission", Problem, |m| m.unwritable = Some("no".into())),
            ("clock", Problem, |m| m.now_s = 999),
            ("limits", Notice, |m| m.descriptors = Some(256)),
            ("memory", Notice, |m| m.free_memory_bytes = Some(1 << 20)),
            ("name", Problem, |m| m.names[0].1 = Some("no such name".into())),
            ("address", Problem, |m| m.listening[0].2 = Some("in use".into())),
            ("browser", Notice, |m| m.browser = None),
            ("contact", Notice, |m| m.contact.clear()),
        ];
        for (about, health, change) in cases {
            let mut machine = healthy();
            change(&mut machine);
            assert_eq!(worst(&machine), [(*about, *health)]);
        }
    }

    #[test]
    fn addresses_of_a_running_archive_are_in_use_by_itself() {
        let mut machine = healthy();
        machine.listening[0].2 = Some("in use".into());
        machine.is_running = true;
        assert!(worst(&machine).is_empty());
    }
}
