//! Where the browser is, and how it is started so that it has no way out but the proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::RenderOptions;

const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// The browser's program, if there is one: the one of the options, or the first that is found.
pub fn chromium(options: &RenderOptions) -> Option<PathBuf> {
    if let Some(program) = &options.program {
        return program.is_file().then(|| program.clone());
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|p| p.is_file());
    NAMES.iter().find_map(|name| found(name))
}

/// A browser without a window that does nothing of its own accord, with a profile of its own.
pub fn command(program: &Path, profile: &Path, with_sandbox: bool) -> Command {
    let mut command = quiet(program, profile, with_sandbox);
    command.args(["--headless", "--lang=en", "--mute-audio", "--hide-scrollbars"]);
    command
}

/// A browser that does nothing of its own accord, with a profile of its own.
fn quiet(program: &Path, profile: &Path, with_sandbox: bool) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage"])
        .args(["--disable-extensions", "--no-default-browser-check", "--no-pings"])
        .args(["--disable-client-side-phishing-detection", "--disable-domain-reliability"])
        .args(["--disable-breakpad", "--disable-quic"])
        .args(["--metrics-recording-only", "--password-store=basic"])
        .arg(format!("--user-data-dir={}", profile.display()));
    if !with_sandbox {
        command.arg("--no-sandbox");
    }
    command
}

/// The same, or one with a window, with one proxy as its whole network.
pub(crate) fn fenced(
    options: &RenderOptions,
    (program, is_visible): (&Path, bool),
    profile: &Path,
    (proxy_port, proxy_key): (u16, &str),
) -> Command {
    let made = if is_visible { quiet } else { command };
    let mut command = made(program, profile, !options.as_root);
    let (width, height) = options.window;
    command
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--proxy-server=http://127.0.0.1:{proxy_port}"))
        // Otherwise loopback would be reached without the proxy.
        .arg("--proxy-bypass-list=<-loopback>")
        // Names are not looked up, not even in advance.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        .arg("--force-webrtc-ip-handling-policy=disable_non_proxied_udp")
        .arg(format!("--ignore-certificate-errors-spki-list={proxy_key}"))
        .arg(format!("--js-flags=--max-old-space-size={}", options.script_memory_mb))
        .arg("about:blank");
    command
}

/// Whether this process is root's.
pub(crate) fn is_root() -> bool {
    // The owner of the process's own folder; elsewhere than on Linux it is not known.
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0)
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}

/// How often the list of connections is read to find one.
#[cfg(target_os = "linux")]
const LIST_READINGS: usize = 5;

/// Whether the program at the other end of a connection over loopback is of the user of this process;
/// elsewhere than on Linux it is not known, and taken to be.
pub(crate) fn is_of_this_user(peer: SocketAddr) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(own) = std::fs::metadata("/proc/self") else { return false };
        // The list may leave a connection out while others come and go.
        let owner = (0..LIST_READINGS)
            .find_map(|_| owner_of(&std::fs::read_to_string("/proc/self/net/tcp").ok()?, peer));
        owner == Some(own.uid())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = peer;
        true
    }
}

/// The user to whom the local end of a connection belongs, by the system's list of connections.
#[cfg(target_os = "linux")]
fn owner_of(connections: &str, local: SocketAddr) -> Option<u32> {
    let SocketAddr::V4(local) = local else { return None };
    // Addresses are written as the machine holds them.
    let address = u32::from_ne_bytes(local.ip().octets());
    let wanted = format!("{address:08X}:{:04X}", local.port());
    connections.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        (fields.next()? == wanted).then(|| fields.nth(5)?.parse().ok())?
    })
}

/// The memory of a process and of all below it, in bytes; 0 where it is not known.
pub(crate) fn memory_of(root: u32) -> u64 {
    let Ok(folder) = std::fs::read_dir("/proc") else { return 0 };
    let mut parents: Vec<(u32, u32, u64)> = Vec::new();
    for entry in folder.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may contain anything; the numbers follow after it.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<&str> = rest.split(' ').collect();
        let parent = fields.get(1).and_then(|f| f.parse().ok()).unwrap_or(0);
        let pages: u64 = fields.get(21).and_then(|f| f.parse().ok()).unwrap_or(0);
        parents.push((id, parent, pages * PAGE_BYTES));
    }
    let mut below = vec![root];
    let mut at = 0;
    while let Some(&id) = below.get(at) {
        at += 1;
        below.extend(parents.iter().filter(|p| p.1 == id && p.0 != id).map(|p| p.0));
        if below.len() > parents.len() + 1 {
            break;
        }
    }
    parents.iter().filter(|p| below.contains(&p.0)).map(|p| p.2).sum()
}

/// The usual size of a page of memory.
const PAGE_BYTES: u64 = 4096;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_connection_is_known() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
               0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n\
               1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n";
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(owner_of(list, at(50_000)), Some(1000));
        assert_eq!(owner_of(list, at(8_080)), Some(0));
        assert_eq!(owner_of(list, at(1)), None);
    }
}
