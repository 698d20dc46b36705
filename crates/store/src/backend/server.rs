//! A real server of objects for tests: SeaweedFS, which `scripts/test` installs.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A running server with one bucket. It is stopped when dropped.
pub(crate) struct ObjectServer {
    process: Child,
    /// Of S3, the master, the volumes and the filer.
    ports: [u16; 4],
    folder: tempfile::TempDir,
    /// Who may do what; everyone everything if not set.
    identities: Option<PathBuf>,
    /// Whether it takes its disk for full.
    is_full: bool,
}

/// Where `scripts/test` installs it, or another place by `NENRIN_WEED`.
fn program() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = package.ancestors().map(|folder| folder.join("target/weed/bin/weed"));
    let named = std::env::var_os("NENRIN_WEED").map(PathBuf::from);
    named.into_iter().chain(installed).find(|path| path.is_file())
}

/// A free port whose number plus 10,000, which the server takes as well, is free too.
fn port() -> u16 {
    loop {
        let found = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = 20_000 + found % 20_000;
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}

fn spawn(
    program: &Path,
    folder: &Path,
    [s3, master, volume, filer]: [u16; 4],
    identities: Option<&Path>,
    is_full: bool,
) -> Child {
    Command::new(program)
        .arg("server")
        .args(is_full.then_some("-volume.minFreeSpace=100"))
        .args(identities.map(|path| format!("-s3.config={}", path.display())))
        .arg(format!("-dir={}", folder.display()))
        .args(["-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=5"])
        .args(["-master.volumeSizeLimitMB=64", "-master.telemetry=false"])
        // Ports that are not chosen here would be in the way of a second server.
        .args(["-s3.port.iceberg=0", "-s3.port.lance=0"])
        .arg(format!("-s3.port={s3}"))
        .arg(format!("-master.port={master}"))
        .arg(format!("-volume.port={volume}"))
        .arg(format!("-filer.port={filer}"))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl ObjectServer {
    pub(crate) const BUCKET: &str = "nenrin-test";

    /// Starts one; `None` where it is not installed, unless tests must not be left out.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = program() else {
            assert!(std::env::var_os("CI").is_none(), "SeaweedFS is missing: run scripts/test");
            eprintln!("SKIPPED: SeaweedFS is not installed; `scripts/test` installs it");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let ports = [port(), port(), port(), port()];
        let process = spawn(&program, folder.path(), ports, None, false);
        let server = Self { process, ports, folder, identities: None, is_full: false };
        server.wait();
        Some(server)
    }

    /// Stops it at once, as a crash would.
    pub(crate) fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again after [`stop`](Self::stop).
    pub(crate) fn resume(&mut self) {
        let program = program().expect("it was there before");
        let identities = self.identities.as_deref();
        self.process = spawn(&program, self.folder.path(), self.ports, identities, self.is_full);
        self.wait();
    }

    /// Starts it again with a disk that counts as full, or no longer: it can be read, not written.
    #[allow(dead_code, reason = "only some of the tests that include this file fill it")]
    pub(crate) fn fill(&mut self, is_full: bool) {
        self.is_full = is_full;
        self.stop();
        self.resume();
    }

    /// Starts it again with these identities, as SeaweedFS writes them.
    #[allow(dead_code, reason = "only some of the tests that include this file restrict")]
    pub(crate) fn restrict(&mut self, identities: &str) {
        let path = self.folder.path().join("identities.json");
        std::fs::write(&path, identities).unwrap();
        self.identities = Some(path);
        self.stop();
        self.resume();
    }

    fn wait(&self) {
        for _ in 0..600 {
            // It is made, was there, or may not be made.
            let is_up = |answer: String| {
                ["200", "409", "403"].iter().any(|n| answer.starts_with(&format!("HTTP/1.1 {n}")))
            };
            if self.make_bucket().is_ok_and(is_up) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the server of objects did not start");
    }

    #[expect(clippy::disallowed_methods, reason = "the server of a test")]
    fn make_bucket(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[0]))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let request = format!(
            "PUT /{} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            Self::BUCKET
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// The address of a prefix in the bucket.
    pub(crate) fn address(&self, prefix: &str) -> String {
        let (bucket, port) = (Self::BUCKET, self.ports[0]);
        format!("s3://{bucket}/{prefix}?endpoint=http://127.0.0.1:{port}&anonymous")
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.stop();
    }
}
