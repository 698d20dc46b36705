//! The guide and the README: their commands run, and their links lead somewhere.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::support::{Nenrin, Reply, Site};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page that people read.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs/guide/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => pages.push(path),
            }
        }
    }
    pages.sort();
    pages
}

/// The commands in blocks marked `console`: lines that begin with a dollar sign.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_console = false;
    for line in text.lines() {
        if let Some(kind) = line.trim().strip_prefix("```") {
            is_console = kind == "console";
        } else if let Some(command) = line.trim().strip_prefix("$ ").filter(|_| is_console) {
            commands.push(command.to_owned());
        }
    }
    commands
}

/// The commands name example.com; here it is a site on loopback, whose addresses need leave.
fn on_loopback(command: &str, top: &str) -> String {
    let collects = command.contains("nenrin collect");
    let mut command =
        command.replace("https://example.com/", top).replace("--site example.com", "--site 1");
    if collects {
        command += " --allow-private --delay 0s";
    }
    command
}

/// A front page that is different at every request, and a page below it.
fn changing_site() -> Site {
    let edition = AtomicU32::new(0);
    Site::serve(move |request| match request.path.as_str() {
        "/" => Reply::html(format!(
            "<html><title>Rings</title><h1>Every tree has rings</h1><p>version {}, an oak</p>\
             <a href='/inner'>more</a></html>",
            edition.fetch_add(1, Ordering::SeqCst)
        )),
        "/inner" => Reply::html("<html><title>Inner</title><p>the inner page</p></html>"),
        _ => Reply::status("404 Not Found"),
    })
}

/// Runs all commands of one page in a folder of its own.
fn run_page(page: &Path, is_collected: bool) -> usize {
    let text = std::fs::read_to_string(page).unwrap();
    let site = changing_site();
    let nenrin = Nenrin::new().with_config(
        "contact = \"https://example.org/bot\"\n[serve]\ninterface = \"127.0.0.1:0\"\nreplay = \"127.0.0.1:0\"\n",
    );
    if is_collected {
        for _ in 0..2 {
            nenrin.collect(&[&site.top()]).expect(0);
        }
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_nenrin"));
    let path = format!(
        "{}:{}",
        binary.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let commands = commands(&text);
    for command in &commands {
        let mut shell = Command::new("sh");
        // The same folder, archive and configuration as the program itself has in tests.
        let program = nenrin.command(&[]);
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let ran = shell
            .args(["-c", &on_loopback(command, &site.top())])
            .env("PATH", &path)
            .current_dir(program.get_current_dir().unwrap())
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}: `{command}` ended with {:?}: {}{}",
            page.display(),
            ran.status.code(),
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr),
        );
    }
    commands.len()
}

#[test]
fn the_commands_of_the_guide_run() {
    // Chapters that begin with nothing; the others look at a site that was visited twice.
    let from_nothing = ["sites.md"];
    let mut ran = 0;
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        ran += run_page(&page, !from_nothing.contains(&name.as_str()));
    }
    assert!(ran > 60, "only {ran} commands were found in the guide");
}

#[test]
fn the_links_of_the_guide_lead_somewhere() {
    let link = regex::Regex::new(r"\]\(([^)#\s]+)(#[^)\s]*)?\)").unwrap();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if !target.contains("://") {
                let file = page.parent().unwrap().join(target);
                assert!(file.exists(), "{} links to {target}", page.display());
            }
        }
    }
}
