//! The guide and the README: their commands run. That their links lead somewhere, `tests/tidy` checks.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::support::{Nenrin, Reply, Running, Site, get, until};

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

/// A command of a page.
struct Line {
    command: String,
    /// Whether it is run: its block is marked `console`. Of the others, which need data, a database or a
    /// terminal, only the arguments are read.
    is_run: bool,
}

/// The lines in blocks: those marked `console` begin with a dollar sign, others with the program.
fn commands(text: &str) -> Vec<Line> {
    let mut commands = Vec::new();
    let mut block = None;
    for line in text.lines().map(str::trim) {
        if let Some(kind) = line.strip_prefix("```") {
            block = block.is_none().then_some(kind);
        } else if let Some(kind) = block {
            let is_run = kind == "console";
            let command = if is_run { line.strip_prefix("$ ") } else { Some(line) };
            let command = command.filter(|command| is_run || command.starts_with("nenrin "));
            commands.extend(command.map(|command| Line { command: command.to_owned(), is_run }));
        }
    }
    commands
}

/// Whether a command goes on until it is stopped.
fn goes_on(command: &str) -> bool {
    let words: Vec<&str> = command.split('#').next().unwrap().split_whitespace().collect();
    words.iter().any(|word| ["run", "serve", "demo"].contains(word)) && !words.contains(&"--once")
}

/// The commands name example.com; here it is a site on loopback, whose addresses need leave.
fn on_loopback(command: &str, top: &str) -> String {
    let (command, comment) = command.split_once(" #").unwrap_or((command, ""));
    let mut command = command.replace("https://example.com/", top);
    command = command.replace("--site example.com", "--site 1");
    let needs_leave = command.contains("nenrin collect")
        || (command.contains("nenrin site add") && command.contains(top));
    if needs_leave {
        command += " --allow-private --delay 0s";
    }
    format!("{command} #{comment}")
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
    let lines = commands(&text);
    for Line { command, is_run } in &lines {
        let mut written = on_loopback(command, &site.top());
        if !is_run {
            written = format!("{} --help", written.split(" #").next().unwrap());
        } else if goes_on(command) {
            written = format!("exec {written}");
        }
        let mut shell = Command::new("sh");
        // The same folder, archive and configuration as the program itself has in tests.
        let program = nenrin.command(&[]);
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
            .args(["-c", &written])
            .env("PATH", &path)
            .current_dir(program.get_current_dir().unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let running = Running::of(shell);
        // Its end is Ctrl-C.
        if *is_run && goes_on(command) {
            until("the addresses of interface and replay", || {
                running.stdout().contains("replay     http://")
            });
            running.signal("INT");
        }
        let ran = running.finish();
        assert!(
            ran.code == Some(0),
            "{}: `{command}` ended with {:?}: {}",
            page.display(),
            ran.code,
            ran.said(),
        );
    }
    lines.iter().filter(|line| line.is_run).count()
}

#[test]
fn the_commands_of_the_guide_run() {
    // Chapters that begin with nothing; the others look at a site that was visited twice.
    let from_nothing = ["README.md", "sites.md"];
    let mut ran = 0;
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap().to_owned();
        ran += run_page(&page, !from_nothing.contains(&name.as_str()));
    }
    assert!(ran > 60, "only {ran} commands were found in the guide");
}

#[test]
fn the_reference_has_what_the_program_has() {
    let site = changing_site();
    let nenrin = Nenrin::new();
    nenrin.collect(&[&site.top()]).expect(0);
    nenrin.run(&["reference", "-o", "reference"]).expect(0);
    let folder = nenrin.archive().parent().unwrap().join("reference");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let settings = folder.join("settings.toml");
    nenrin.run(&["--config", settings.to_str().unwrap(), "site", "list"]).expect(0);
    for code in ["0", "1", "2", "3", "4", "130"] {
        assert!(read("exit-codes.md").contains(&format!("\n| {code} | ")), "{code}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(read(&format!("completions/nenrin.{shell}")).contains("NENRIN_COMPLETE"));
    }
    assert!(read("man/nenrin-site-add.1").contains("allow\\-private"));
    assert!(read("commands.md").contains("## nenrin export wacz"));
    let commands = read("commands.md");
    let leaves = commands.split("\n## ").skip(1).filter(|help| !help.contains("\nCommands:"));
    let without: Vec<&str> = leaves
        .filter(|help| !help.contains("Example: "))
        .filter_map(|help| help.lines().next())
        .collect();
    assert_eq!(without, Vec::<&str>::new(), "commands whose help has no example");
    let api: serde_json::Value = serde_json::from_str(&read("openapi.json")).unwrap();
    assert_eq!(api["openapi"], "3.1.0");

    let listening = ["run", "--json", "--interface", "127.0.0.1:0", "--replay", "127.0.0.1:0"];
    let running = nenrin.start(&listening);
    let interface = running.first_line()["interface"].as_str().unwrap().to_owned();
    let (status, _, metrics) = get(&format!("{interface}metrics"));
    running.kill();
    assert_eq!(status, 200);
    let described = read("metrics.md");
    let names: Vec<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(described.contains(&format!("| `{name}` | ")), "{name} is not described");
    }
}

/// The fixed parts of a message in a table of the chapter on trouble: what is between the signs for names.
fn fixed_parts(message: &str) -> Vec<String> {
    let parts = message.split('…').map(|part| part.trim_matches([' ', ';', ',', '?']).to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

#[test]
fn messages_in_the_chapter_on_trouble_are_messages_of_the_program() {
    let chapter = std::fs::read_to_string(root().join("docs/guide/src/trouble.md")).unwrap();
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| "));
    let messages: Vec<&str> = rows
        .filter_map(|row| row.split(" | ").next())
        .filter(|message| *message != "message")
        .collect();
    assert!(messages.len() > 30, "only {} messages", messages.len());
    let mut sources = String::new();
    let mut folders = vec![root().join("src"), root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                sources += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    // Texts may go on in the next line of the source.
    let sources = sources.replace("\\\n", "");
    let sources = sources.split_whitespace().collect::<Vec<_>>().join(" ");
    for message in messages {
        for part in fixed_parts(message) {
            assert!(sources.contains(&part), "no message has `{part}` as in `{message}`");
        }
    }
}
