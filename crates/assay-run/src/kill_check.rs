//! `assay run --kill-check CMD`: whether the server keeps what it has acknowledged.
//!
//! The run continues normally while the user's command crashes the server in the middle and starts it again. At the end
//! the script's `verify()` looks for everything that it acknowledged (`assay.acknowledge`) before or after the crash. A
//! key that was acknowledged twice is lost, too: the server assigned it again because it had forgotten the first. Keys
//! whose first number is negative are not unique, and may occur again.

use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use assay_engine::{End, Notice, Observer, Outcome, Plan};
use assay_options::OptionValue;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_process::title;
use assay_record::ErrorTally;
use assay_script::Key;
use assay_seam::{Class, Nanos, Origin};

use crate::assignment::Assignment;
use crate::plan::ProcessOptions;
use crate::watch::Watch;
use crate::{engine, failure, plan};

/// Watches a run, and crashes its server half-way through the measured part.
pub struct Crash<'a, 'b> {
    watch: &'b mut Watch<'a>,
    command: String,
    after: Duration,
    running: Option<Running>,
}

/// The command's thread; dropping the sender cancels a command that has not started.
struct Running {
    cancel: mpsc::Sender<()>,
    thread: JoinHandle<Result<(), Trouble>>,
}

impl<'a, 'b> Crash<'a, 'b> {
    /// `command` is for the shell; `plan` has a time limit and one stage.
    pub fn new(watch: &'b mut Watch<'a>, command: &str, plan: &Plan) -> Crash<'a, 'b> {
        let half = plan.limit.time.map_or(0, |time| time.0 / 2);
        let after = Duration::from_nanos(plan.warmup.0 + half);
        Crash { watch, command: command.to_owned(), after, running: None }
    }

    /// The run is over; an error if the command did not do its work during it.
    pub fn finish(self, outcome: &Outcome) -> Result<(), Trouble> {
        let Some(Running { cancel, thread }) = self.running else { return Ok(()) };
        drop(cancel);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        if has_seen_a_crash(outcome) {
            return Ok(());
        }
        Err(Trouble::environment(
            "the --kill-check command did not crash the server: no connection was lost during the run",
        )
        .hint("it must crash the server under test, for example with `kill -9`, and restart it"))
    }
}

impl Observer for Crash<'_, '_> {
    fn get_ready(&self) -> Nanos {
        self.watch.get_ready()
    }

    fn notice(&mut self, notice: Notice<'_>) {
        if matches!(notice, Notice::StageBegins { .. }) && self.running.is_none() {
            let (cancel, cancelled) = mpsc::channel::<()>();
            let (command, after) = (self.command.clone(), self.after);
            let thread = std::thread::spawn(move || match cancelled.recv_timeout(after) {
                Err(RecvTimeoutError::Timeout) => crash(&command),
                _ => Err(Trouble::environment("the run ended before it was time for the --kill-check command")),
            });
            self.running = Some(Running { cancel, thread });
        }
        self.watch.notice(notice);
    }
}

/// No crash leaves a connection intact; behind a pooler that keeps its clients, the server's end shows as errors.
fn has_seen_a_crash(outcome: &Outcome) -> bool {
    outcome.stages.iter().any(|stage| {
        let is_loss =
            |error: &ErrorTally| error.origin == Origin::Network.name() || error.class == Class::Connection.name();
        stage.total.reconnects > 0 || stage.total.errors.iter().any(is_loss)
    })
}

fn crash(command: &str) -> Result<(), Trouble> {
    terminal::say(&format!("kill check: {command}\n"));
    let status = title::shell(command)
        .stdin(Stdio::null())
        .stdout(terminal::aside())
        .status()
        .map_err(|error| Trouble::environment(format!("cannot run the --kill-check command: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Trouble::environment(format!("the --kill-check command failed: {status}"))
        .hint("it must crash the server, restart it, and then exit with status 0"))
}

/// Looks for what was acknowledged, in the one database at `url`.
pub fn verify(keys: Vec<Key>, assignment: &Assignment, quiet: bool, url: &str) -> Result<(), Trouble> {
    let workload = &assignment.workload;
    if keys.is_empty() {
        return Err(Trouble::new(Exit::Workload, format!("workload {} acknowledged nothing", workload.name)).hint(
            "a script must call `assay.acknowledge(…)` after its commits and define a function verify(): see docs/lua-api.md",
        ));
    }
    let acknowledged = keys.len();
    let (text, twice) = listed(keys);
    let process = ProcessOptions { quiet, ..ProcessOptions::default() };
    let mut plan = plan::of_verify(&assignment.with_task("verify", None), &process, &[url.to_owned()])?;
    plan.setup.options.push(("acknowledged".to_owned(), OptionValue::Text(text)));
    let mut watch = Watch::of_command(&plan, quiet, None);
    let outcome = engine::run(&plan, interrupt::control(), &mut watch);
    watch.finish();
    match outcome.end {
        End::Complete => {}
        End::Interrupted => return Err(Trouble::new(interrupt::exit(), "the kill check was interrupted")),
        End::Failed(error) => return Err(failure::trouble(&error, &plan, workload, None)),
    }
    if outcome.success && twice.is_empty() {
        if !quiet {
            terminal::say(&format!("kill check: {acknowledged} acknowledged, none lost in the crash\n"));
        }
        return Ok(());
    }
    let mut trouble = Trouble::new(
        Exit::Difference,
        format!("kill check: of {acknowledged} acknowledged, some were lost in the crash"),
    );
    if !twice.is_empty() {
        let some: Vec<&str> = twice.iter().take(5).map(String::as_str).collect();
        let number = twice.len();
        trouble = trouble.detail(format!("{number} were assigned again after the crash, such as {}", some.join(", ")));
    }
    Err(trouble.hint("the server acknowledges commits before its log is on disk: check synchronous_commit, fsync or innodb_flush_log_at_trx_commit"))
}

/// The keys in order, one per line; and those that occur more than once.
fn listed(mut keys: Vec<Key>) -> (String, Vec<String>) {
    let order = |a: &Key, b: &Key| {
        a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    keys.sort_unstable_by(order);
    let line = |key: &Key| {
        let numbers: Vec<String> = key.iter().take_while(|part| !part.is_nan()).map(f64::to_string).collect();
        numbers.join(" ")
    };
    let twice = keys
        .windows(2)
        .filter(|pair| order(&pair[0], &pair[1]).is_eq() && pair[0][0] >= 0.0)
        .map(|pair| line(&pair[0]))
        .collect();
    let mut text = String::new();
    for key in &keys {
        text.push_str(&line(key));
        text.push('\n');
    }
    (text, twice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_listed_in_order_and_those_given_out_twice_are_named() {
        let none = f64::NAN;
        let keys = vec![[2.0, 3.0, none, none, none], [1.0, 10.0, none, none, none], [2.0, 3.0, none, none, none]];
        let (text, twice) = listed(keys);
        assert_eq!(text, "1 10\n2 3\n2 3\n");
        assert_eq!(twice, ["2 3"]);
    }

    #[test]
    fn keys_that_are_not_unique_may_be_acknowledged_again() {
        let none = f64::NAN;
        let (text, twice) = listed(vec![[-1.0, 5.0, none, none, none], [-1.0, 5.0, none, none, none]]);
        assert_eq!((text.as_str(), twice), ("-1 5\n-1 5\n", Vec::<String>::new()));
    }
}
