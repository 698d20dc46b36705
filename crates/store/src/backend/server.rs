//! A real server of objects for tests: SeaweedFS, which `scripts/test` installs.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A running server with one bucket. It is stopped when dropped.
pub(super) struct ObjectServer {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

/// Where `scripts/test` installs it, or another place by `NENRIN_WEED`.
fn program() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/weed/bin/weed");
    let named = std::env::var_os("NENRIN_WEED").map(PathBuf::from);
    named.or(Some(installed)).filter(|path| path.is_file())
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

impl ObjectServer {
    pub(super) const BUCKET: &str = "nenrin-test";

    /// Starts one; `None` where it is not installed, unless tests must not be left out.
    pub(super) fn start() -> Option<Self> {
        let Some(program) = program() else {
            assert!(std::env::var_os("CI").is_none(), "SeaweedFS is missing: run scripts/test");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let (s3, master, volume, filer) = (port(), port(), port(), port());
        let process = Command::new(program)
            .arg("server")
            .arg(format!("-dir={}", folder.path().display()))
            .args(["-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=5"])
            .arg("-master.volumeSizeLimitMB=64")
            .arg(format!("-s3.port={s3}"))
            .arg(format!("-master.port={master}"))
            .arg(format!("-volume.port={volume}"))
            .arg(format!("-filer.port={filer}"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port: s3, _folder: folder };
        for _ in 0..120 {
            if server.make_bucket().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        panic!("the server of objects did not start");
    }

    #[expect(clippy::disallowed_methods, reason = "the server of a test")]
    fn make_bucket(&self) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
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
    pub(super) fn address(&self, prefix: &str) -> String {
        let (bucket, port) = (Self::BUCKET, self.port);
        format!("s3://{bucket}/{prefix}?endpoint=http://127.0.0.1:{port}&anonymous")
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
