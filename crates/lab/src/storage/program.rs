//! Compressors that are programs of the system: left out, with a message, where they are missing.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a program can be started.
pub(crate) fn is_there(name: &str) -> bool {
    let asked = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// Counts the output of a program while `feed` writes its input.
pub(crate) fn piped_bytes(
    name: &str,
    arguments: &[&str],
    feed: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut out = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
    let counting = std::thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        let mut count = 0;
        loop {
            match out.read(&mut buffer)? {
                0 => return Ok::<u64, io::Error>(count),
                read => count += read as u64,
            }
        }
    });
    let fed = match child.stdin.take() {
        Some(input) => {
            let mut input = io::BufWriter::with_capacity(1 << 20, input);
            feed(&mut input).and_then(|()| input.flush())
        }
        None => Err(io::Error::other("no standard input")),
    };
    let counted = counting.join().map_err(|_| io::Error::other("the reader failed"))?;
    let status = child.wait()?;
    fed?;
    if !status.success() {
        return Err(io::Error::other(format!("{name} ended with {status}")));
    }
    counted
}

/// Every visit as a commit, packed as closely as git does in reasonable time; returns the bytes of
/// its packs.
pub(crate) fn git_bytes(work: &Path, visits: &[&Path]) -> io::Result<u64> {
    let folder = work.join("git");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let git = |work_tree: Option<&Path>, arguments: &[&str]| -> io::Result<()> {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=lab", "-c", "user.email=lab@localhost"])
            .args(["-c", "core.autocrlf=false", "-c", "gc.auto=0", "-c", "pack.threads=1"])
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .arg("--git-dir")
            .arg(&folder);
        if let Some(work_tree) = work_tree {
            command.arg("--work-tree").arg(work_tree);
        }
        let status = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let status = status.stderr(Stdio::null()).status()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("git {} ended with {status}", arguments[0]))),
        }
    };
    git(None, &["init", "-q", "--bare"])?;
    for visit in visits {
        git(Some(visit), &["add", "-A", "-f", "."])?;
        git(Some(visit), &["commit", "-q", "--allow-empty", "-m", "visit"])?;
    }
    git(None, &["repack", "-a", "-d", "-f", "-q", "--window=50", "--depth=50"])?;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder.join("objects/pack"))? {
        bytes += entry?.metadata()?.len();
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(bytes)
}
