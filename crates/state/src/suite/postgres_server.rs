//! A PostgreSQL server of its own for tests: in a temporary folder, on a free loopback port, by a
//! user without privileges.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// A running server. It is stopped when dropped.
pub struct PostgresServer {
    folder: PathBuf,
    port: u16,
    process: Option<Child>,
}

/// The user that the server runs as where tests run as root, which the server refuses.
const USER: &str = "postgres";

fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.retain(|folder| folder.join("initdb").is_file());
    folders.sort();
    folders.pop().expect("PostgreSQL is not installed: `apt-get install postgresql`")
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("`id` says who we are");
    output.stdout.trim_ascii() == b"0"
}

/// A program of the server, as a user without privileges.
fn program(name: &str) -> Command {
    let path = programs().join(name);
    if !is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(path);
    command
}

impl PostgresServer {
    /// Makes and starts a server.
    pub fn start(folder: &Path) -> Self {
        let folder = folder.join("postgres");
        std::fs::create_dir_all(&folder).unwrap();
        if is_root() {
            let owner = format!("{USER}:{USER}");
            let mut at = folder.parent();
            while let Some(parent) = at.filter(|parent| parent.starts_with(std::env::temp_dir())) {
                let _ = Command::new("chmod").arg("a+x").arg(parent).status();
                at = parent.parent();
            }
            assert!(Command::new("chown").arg(&owner).arg(&folder).status().unwrap().success());
        }
        let data = folder.join("data");
        let made = program("initdb")
            .arg("-D")
            .arg(&data)
            .args(["-U", USER, "--auth", "trust", "--no-sync", "--no-locale", "-E", "UTF8"])
            .current_dir(&folder)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "initdb failed");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut server = Self { folder, port, process: None };
        server.resume();
        server
    }

    /// Starts the server again after [`stop`](Self::stop).
    pub fn resume(&mut self) {
        let log = std::fs::File::create(self.folder.join("log")).unwrap();
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.folder.display()),
            "fsync=off".to_owned(),
            "max_connections=200".to_owned(),
        ];
        let mut command = program("postgres");
        command.arg("-D").arg(self.folder.join("data")).current_dir(&self.folder);
        for setting in &settings {
            command.arg("-c").arg(setting);
        }
        let process = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.process = Some(process);
        for _ in 0..600 {
            let ready = program("pg_isready")
                .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
                .current_dir(&self.folder)
                .status();
            if ready.unwrap().success() {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL did not start:\n{log}");
    }

    /// Stops the server at once, as a crash would.
    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let _ = program("pg_ctl")
            .args(["stop", "-m", "immediate", "-D"])
            .arg(self.folder.join("data"))
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .status();
        let _ = process.kill();
        let _ = process.wait();
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection string for an archive of some name.
    pub fn address(&self, archive: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres?archive={archive}", self.port)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}
