//! The DevTools protocol over a pipe. The browser ends when the pipe does, so that none is left
//! behind, however this process ends; and no port is open to others.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use crate::RenderError;

/// The longest message that is taken from the browser: a picture of a whole page in base64.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// Events that wait to be looked at; with more, the browser waits.
const EVENTS: usize = 10_000;

/// How long any call may take unless its caller says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something that the browser reports.
#[derive(Debug, Clone)]
pub struct CdpEvent {
    /// Its method, such as `Page.loadEventFired`.
    pub method: String,
    /// Its parameters.
    pub params: Value,
    /// The session that it belongs to; none for the browser itself.
    pub session: Option<String>,
}

/// A running browser and the way to talk to it.
pub struct Cdp {
    process: Child,
    calls: mpsc::Sender<Vec<u8>>,
    waiting: Waiting,
    next_id: u64,
    /// What the browser reports, in order.
    pub events: mpsc::Receiver<CdpEvent>,
}

type Waiting = Arc<Mutex<BTreeMap<u64, oneshot::Sender<Value>>>>;

impl Cdp {
    /// Starts a browser; the command has all of its arguments but those of the pipe.
    ///
    /// # Errors
    /// What starting the program says.
    pub fn start(mut browser: std::process::Command) -> Result<Self, RenderError> {
        browser.arg("--remote-debugging-pipe");
        // The browser speaks on the descriptors 3 and 4; only a shell can put them there without
        // code that the compiler does not check.
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null", "sh"])
            .arg(browser.get_program())
            .args(browser.get_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut process = shell.spawn()?;
        let gone = || RenderError::Gone("it has no pipe".to_owned());
        let input = process.stdin.take().ok_or_else(gone)?;
        let output = process.stdout.take().ok_or_else(gone)?;
        let (calls, queue) = mpsc::channel(64);
        let (reported, events) = mpsc::channel(EVENTS);
        let waiting = Waiting::default();
        tokio::spawn(write(input, queue));
        tokio::spawn(read(output, waiting.clone(), reported));
        Ok(Self { process, calls, waiting, next_id: 0, events })
    }

    /// The number of the browser's first process.
    pub fn process(&self) -> Option<u32> {
        self.process.id()
    }

    /// Calls a method, of a session or of the browser itself.
    ///
    /// # Errors
    /// [`RenderError::Refused`] with what the browser says, [`RenderError::Silent`] if it does not
    /// answer in time, [`RenderError::Gone`] if it has ended.
    pub async fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, RenderError> {
        self.call_within(session, method, params, PATIENCE).await
    }

    /// The same with a limit of its own.
    ///
    /// # Errors
    /// As [`Cdp::call`].
    pub async fn call_within(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
        after: Duration,
    ) -> Result<Value, RenderError> {
        let answer = self.ask(session, method, params).await?;
        match tokio::time::timeout(after, answer).await {
            Ok(found) => Self::result(method, found),
            Err(_) => Err(RenderError::Silent { method: method.to_owned(), after }),
        }
    }

    /// What an answer says.
    pub(crate) fn result(
        method: &str,
        found: Result<Value, oneshot::error::RecvError>,
    ) -> Result<Value, RenderError> {
        match found {
            Ok(mut answer) if answer["error"].is_null() => Ok(answer["result"].take()),
            Ok(answer) => Err(RenderError::Refused {
                method: method.to_owned(),
                why: answer["error"]["message"].as_str().unwrap_or("it failed").to_owned(),
            }),
            Err(_) => Err(RenderError::Gone("the pipe was closed".to_owned())),
        }
    }

    /// Calls a method without waiting for its answer.
    ///
    /// # Errors
    /// [`RenderError::Gone`] if the browser has ended.
    pub async fn tell(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<(), RenderError> {
        self.ask(session, method, params).await.map(drop)
    }

    /// Sends a call; its answer may be waited for elsewhere.
    pub(crate) async fn ask(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<oneshot::Receiver<Value>, RenderError> {
        self.next_id += 1;
        let id = self.next_id;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            // Answers that nobody waits for any more.
            waiting.retain(|_, sender| !sender.is_closed());
            waiting.insert(id, sender);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let gone = |_| RenderError::Gone("the pipe was closed".to_owned());
        self.calls.send(bytes).await.map_err(gone)?;
        Ok(answer)
    }

    /// Ends the browser and waits until it is gone.
    pub async fn end(mut self) {
        drop(self.process.kill().await);
    }
}

async fn write(mut input: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = queue.recv().await {
        if input.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read(output: ChildStdout, waiting: Waiting, reported: mpsc::Sender<CdpEvent>) {
    let mut output = BufReader::with_capacity(1 << 16, output);
    let mut message = Vec::new();
    loop {
        message.clear();
        match read_message(&mut output, &mut message).await {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(&message) else { continue };
        if let Some(id) = value["id"].as_u64() {
            let sender = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            if let Some(sender) = sender {
                // Whoever asked may have given up.
                let _ = sender.send(value);
            }
            continue;
        }
        let Some(method) = value["method"].as_str().map(str::to_owned) else { continue };
        let session = value["sessionId"].as_str().map(str::to_owned);
        let event = CdpEvent { method, params: value["params"].take(), session };
        // An event beyond those that wait is lost, not the browser's answers behind it.
        let _ = reported.try_send(event);
    }
    // Whoever waits hears that no answer comes.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

async fn read_message(
    output: &mut BufReader<ChildStdout>,
    message: &mut Vec<u8>,
) -> std::io::Result<bool> {
    loop {
        let part = output.fill_buf().await?;
        if part.is_empty() {
            return Ok(false);
        }
        let end = part.iter().position(|byte| *byte == 0);
        let taken = end.unwrap_or(part.len());
        if message.len() + taken > MAX_MESSAGE_BYTES {
            return Err(std::io::Error::other("the browser's message is too long"));
        }
        message.extend_from_slice(&part[..taken]);
        output.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Ok(true);
        }
    }
}
