//! Explains why a run failed: cause, place, and what to try, depending on what was tried.

use std::path::Path;

use assay_engine::{Plan, RunError, Target};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_script::{Failure, ScriptError};
use assay_seam::{Class, Code, Origin, StatementError};

use crate::library;
use crate::workload::Workload;

/// Describes a run's error. `prepare`: the command that would create missing tables.
pub fn trouble(error: &RunError, plan: &Plan, workload: &Workload, prepare: Option<&str>) -> Trouble {
    match error {
        RunError::Connect { target, connected, wanted, error, .. } => {
            let reached = Reached { connected: *connected, wanted: *wanted, pending_max: plan.connects.pending_max };
            connect(&plan.targets[*target], &reached, error)
        }
        RunError::Statement { target, transaction, retries, error, failure } => {
            let after = if *retries == 0 { String::new() } else { format!(" after {retries} retries") };
            let mut trouble =
                Trouble::new(Exit::Server, format!("workload {} failed in `{transaction}`{after}", workload.name))
                    .detail(format!(
                        "{}: {} ({}{})",
                        plan.targets[*target].database.display(),
                        error.message,
                        if error.code == Code::default() { String::new() } else { format!("{}, ", error.code) },
                        error.class
                    ));
            // The server of a foreign table: only the details have its address.
            if error.class == Class::Connection {
                trouble = trouble.detail(error.details.split("\nCONTEXT:").next().unwrap_or_default().trim_start());
            }
            // Where a built-in workload first needs its tables helps nobody.
            let is_file = Path::new(&workload.name).extension().is_some();
            if is_file || error.class != Class::Missing || prepare.is_none() {
                trouble = trouble.detail(place(&failure.message, &failure.traceback));
            }
            statement_hints(trouble, error, failure, plan, prepare)
        }
        RunError::Script(error) => library::script_trouble(format!("workload {} failed", workload.name), error),
        RunError::Held { workers, sessions, waited, is_measured } => {
            let exit = if interrupt::control().is_stopped() { interrupt::exit() } else { Exit::Workload };
            Trouble::new(exit, format!("workload {} did not end", workload.name))
                .detail(RunError::held(*workers, *sessions, *waited, *is_measured))
                .hint(
                    "a C function does not return: a long string operation, `os.execute`, `io.popen` or FFI in the \
                     script, or an embedded database",
                )
        }
        RunError::Environment(message) => Trouble::environment(message.clone()),
    }
}

/// Whether an error means that the workload's tables are missing.
pub fn is_missing_table(error: &RunError) -> bool {
    matches!(error, RunError::Statement { error, .. } if error.class == Class::Missing)
}

/// Whether an error means that a table, or something else, exists already.
pub fn is_existing_table(error: &RunError) -> bool {
    matches!(error, RunError::Statement { error, .. } if error.class == Class::Exists)
}

/// How far a run came with its connections.
struct Reached {
    connected: u32,
    wanted: u32,
    pending_max: usize,
}

/// Explains why the only connection of a command could not be made.
pub fn cannot_connect(target: &Target, error: &StatementError) -> Trouble {
    connect(target, &Reached { connected: 0, wanted: 1, pending_max: 1 }, error)
}

fn connect(target: &Target, reached: &Reached, error: &StatementError) -> Trouble {
    let Reached { connected, wanted, pending_max } = *reached;
    let database = &target.database;
    let progress =
        if connected == 0 { String::new() } else { format!(" for more than {connected} of {wanted} sessions") };
    let verb = match error.origin {
        _ if target.addresses.is_empty() => format!("cannot open {}", database.display()),
        Origin::Server => format!("{} refused the connection{progress}", database.display()),
        _ => format!("cannot connect to {}{progress}", database.display()),
    };
    let code = if error.code == Code::default() { String::new() } else { format!(" ({})", error.code) };
    let trouble = Trouble::new(Exit::Server, verb).detail(format!("{}{code}", error.message));
    let limits = || {
        format!(
            "the server has {connected} connections and may have reached a limit (see its log): open files \
             (LimitNOFILE=, `ulimit -n`; open_files_limit), threads (thread_pool_max_threads, `ulimit -u`), time for logins \
             (connect_timeout), or room in its connection queue (back_log, net.core.somaxconn; lower `--connect-pending`, \
             now {pending_max}, or set `--connect-rate`)"
        )
    };
    let general = || match (error.origin, error.class) {
        (_, Class::Limit) => format!("lower `--sessions`, or raise the server's connection limit above {wanted}"),
        (_, Class::Authentication) => {
            "check the user and password in `--db`, the environment or the configuration files".to_owned()
        }
        (_, Class::Missing) => "name a database that exists in `--db`, or create it on the server".to_owned(),
        (Origin::Network, Class::Timeout) => {
            "check the host and port in `--db`, that no firewall blocks them, and that the server is not hanging"
                .to_owned()
        }
        (_, Class::Protocol) => {
            "check that host and port in `--db` are those of this product: another program may listen there".to_owned()
        }
        (Origin::Network, _) => "check host and port in `--db`, and that the server is running".to_owned(),
        _ => "check `--db`".to_owned(),
    };
    // It hangs, or closes the connection.
    let reached = error.origin == Origin::Network && connected > 0;
    let advice = || database.advice(error, wanted as usize);
    let hint = if reached { error.hint.clone().unwrap_or_else(limits) } else { advice().unwrap_or_else(general) };
    trouble.hint(hint)
}

fn statement_hints(
    trouble: Trouble,
    error: &StatementError,
    failure: &Failure,
    plan: &Plan,
    prepare: Option<&str>,
) -> Trouble {
    let trouble = match (&error.hint, error.class, prepare) {
        (Some(hint), _, _) if error.class != Class::Missing => trouble.hint(hint),
        (_, Class::Missing, Some(prepare)) => {
            let trouble = trouble.hint(format!("are the tables prepared? {prepare}"));
            return match plan.setup.command == "run" {
                true => trouble.hint("or add `--prepare` to prepare the tables before the run"),
                false => trouble,
            };
        }
        _ => trouble,
    };
    let code = error.code.to_string();
    let command = plan.setup.command != "run";
    match error.class {
        _ if command || error.code == Code::default() => trouble,
        // It fails every time.
        Class::Syntax => match ScriptError::from(failure).place() {
            Some(place) => trouble.hint(format!("correct the statement in {place}")),
            None => trouble.hint("correct the statement"),
        },
        Class::Deadlock | Class::Serialization => trouble.hint("lower `--sessions`, or raise `--retries`"),
        _ => trouble
            .hint(format!("to count such errors and continue: `--ignore-errors {code}` or `--on-error continue`")),
    }
}

/// The position in the script: the first line of Lua's message if it starts with a position, and the script's frames.
fn place(message: &str, traceback: &str) -> String {
    let error = ScriptError { message: message.to_owned(), traceback: traceback.to_owned(), ..ScriptError::default() };
    let first = error.message.lines().next().unwrap_or_default();
    if error.traceback.is_empty() { first.to_owned() } else { format!("{first}\n{}", error.traceback) }
}
