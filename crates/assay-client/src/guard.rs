//! Ends the statements of an embedded database that take too long, or that nobody waits for any more.
//!
//! Such a database answers inside the call, so that the thread that waits cannot look at a clock or at the user:
//! another thread does, for as long as the connection lives. A statement costs two locks that nobody else wants.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use assay_io::clock::Clock;
use assay_seam::{Interrupter, Nanos};

use crate::waiting::Waiting;

/// The thread, and what it watches.
pub(crate) struct Guard {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<()>>,
}

struct Watched {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Of the statement in progress.
    deadline: Option<Nanos>,
    is_over: bool,
}

impl Guard {
    /// `turn`: how long an interrupt may go unnoticed.
    pub(crate) fn start(
        interrupter: Interrupter,
        clock: Clock,
        waiting: Option<&'static dyn Waiting>,
        turn: Nanos,
    ) -> Option<Guard> {
        let watched = Arc::new(Watched { state: Mutex::default(), changed: Condvar::new() });
        let shared = Arc::clone(&watched);
        let watch = move || {
            let mut state = lock(&shared.state);
            while !state.is_over {
                let is_late = |deadline: Nanos| clock.now() >= deadline || waiting.is_some_and(Waiting::is_over);
                if state.deadline.is_some_and(is_late) {
                    interrupter();
                }
                let pause = Duration::from_nanos(turn.0);
                let waited = shared.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
            }
        };
        let thread = std::thread::Builder::new().name("guard".to_owned()).spawn(watch).ok()?;
        Some(Guard { watched, thread: Some(thread) })
    }

    /// A statement begins that may take until then.
    pub(crate) fn begin(&self, deadline: Nanos) {
        lock(&self.watched.state).deadline = Some(deadline);
    }

    /// It has ended: the next one is not interrupted for it.
    pub(crate) fn end(&self) {
        lock(&self.watched.state).deadline = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        lock(&self.watched.state).is_over = true;
        self.watched.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
