//! Runs of this program as separate processes, and what they report.
//!
//! A process of its own for each run keeps memory, connections and crashes of one from the next. It reads what to do
//! from its stdin, so that nobody else sees passwords, and its events arrive through a pipe (`events` is the other end
//! of both).

use std::io::{BufRead, BufReader, Error, PipeReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{events, surroundings};
use assay_record::{Event, Exited, Time};
use assay_spec::ChildSpec;

/// How a run ended.
pub struct ChildEnded {
    /// Exit status of its process.
    pub status: ExitStatus,
    /// What it reported last; `None`: it was killed.
    pub exited: Option<Exited>,
}

/// Runs a process of this program to its end, by `run`. `heard` gets each event as it happens.
pub fn execute(
    spec: &ChildSpec,
    stderr: Stdio,
    run: &dyn Fn(Command) -> std::io::Result<ExitStatus>,
    heard: impl FnMut(Event) + Send,
) -> Result<ChildEnded, Error> {
    let (reader, writer) = std::io::pipe()?;
    let (theirs, mut ours) = std::io::pipe()?;
    let mut command = Command::new(surroundings::own_program()?);
    command.arg(events::CHILD).stdin(theirs).stdout(writer).stderr(stderr);
    let input = spec.to_json_with_passwords();
    std::thread::scope(|scope| {
        // It may be more than a pipe holds. A process that ends before it has read everything says why.
        scope.spawn(move || ours.write_all(input.as_bytes()));
        let listening = scope.spawn(|| listen(reader, heard));
        let status = run(command);
        let exited = listening.join().expect("a listener does not panic");
        status.map(|status| ChildEnded { status, exited })
    })
}

/// Reads events until the stream ends.
fn listen(reader: PipeReader, mut heard: impl FnMut(Event)) -> Option<Exited> {
    let mut exited = None;
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        match Event::of_line(&line) {
            Some(Event::Exited(how)) => exited = Some(how),
            Some(event) => heard(event),
            None => {}
        }
    }
    exited
}

impl ChildEnded {
    /// The error of a run that failed; `what`: what ran.
    pub fn trouble(&self, what: &str) -> Option<Trouble> {
        if self.status.success() {
            return None;
        }
        let exit = self.status.code().and_then(Exit::of_code).unwrap_or(Exit::Bug);
        let Exited { cause, details, hints, .. } = self.exited.clone().unwrap_or_default();
        let trouble = Trouble::new(exit, format!("{what}: {}", cause.as_deref().unwrap_or("it was killed")));
        let lines = details.into_iter().chain(hints.into_iter().map(|hint| format!("hint: {hint}")));
        Some(lines.filter(|line| !line.trim().is_empty()).fold(trouble, |trouble, line| trouble.detail(line.trim())))
    }
}

/// Converts a time to an instant of this process's clock.
pub fn instant(time: Time) -> Instant {
    let (now, at) = (SystemTime::now(), UNIX_EPOCH + std::time::Duration::from_millis(time.unix_ms()));
    match at.duration_since(now) {
        Ok(ahead) => Instant::now() + ahead,
        Err(error) => Instant::now().checked_sub(error.duration()).unwrap_or_else(Instant::now),
    }
}
