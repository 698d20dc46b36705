//! A thread that keeps the index while a program runs.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use nenrin_archive::Archive;

use crate::keeper::{Keeper, Step};

/// How long the thread waits where there was nothing to do.
const IDLE: Duration = Duration::from_millis(1_500);
/// And where another process keeps the index, or something failed.
const LATER: Duration = Duration::from_secs(20);

/// Keeps the index until it is dropped.
pub struct Keeping {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn is_over(&self) -> bool {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, but not beyond the end.
    fn wait(&self, time: Duration) {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.changed.wait_timeout_while(is_over, time, |is_over| !*is_over);
    }

    fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Keeping {
    /// Starts the thread.
    pub fn start(archive: Arc<Archive>) -> std::io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let seen = stop.clone();
        let work = move || keep(archive, &seen);
        let thread = std::thread::Builder::new().name("search".to_owned()).spawn(work)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.stop.end();
        if let Some(thread) = self.thread.take() {
            // The archive is closed in order only after its last user is done.
            let _ = thread.join();
        }
    }
}

fn keep(archive: Arc<Archive>, stop: &Stop) {
    let mut keeper = Keeper::new(archive);
    let mut last_failure = String::new();
    while !stop.is_over() {
        match keeper.step() {
            Ok(Step::Busy { .. }) => {}
            Ok(Step::Idle) => stop.wait(IDLE),
            Ok(Step::Elsewhere) => stop.wait(LATER),
            Err(error) => {
                let failure = error.to_string();
                if failure != last_failure {
                    tracing::warn!("the search index could not be brought up to date: {failure}");
                    last_failure = failure;
                }
                stop.wait(LATER);
            }
        }
    }
}
