//! Names the version with its commit and the day of that commit, where the sources are a git checkout.

use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
    };
    let version = env!("CARGO_PKG_VERSION");
    let head = git(&["log", "-1", "--format=%h %cs %ct", "HEAD"]).filter(|_| {
        // A package that lies inside somebody else's checkout is not of its commit.
        git(&["rev-parse", "--show-toplevel"]).as_deref()
            == std::env::var("CARGO_MANIFEST_DIR").ok().as_deref()
    });
    let parts: Vec<&str> =
        head.as_deref().map(|head| head.split(' ').collect()).unwrap_or_default();
    let (name, built_s) = match parts[..] {
        [commit, day, seconds] => (format!("{version} ({commit}, {day})"), seconds),
        _ => (version.to_owned(), "0"),
    };
    println!("cargo::rustc-env=NENRIN_VERSION={name}");
    println!("cargo::rustc-env=NENRIN_COMMITTED_S={built_s}");
    println!("cargo::rerun-if-changed=build.rs");
    // The file changes with every commit and every other branch that is checked out.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}
