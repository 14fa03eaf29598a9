//! pgbench as a program: runs a command line, with pgbench's output, log files and exit codes.
//!
//! The engine runs first what comes before a run, or the initialization, in one session, then the clients, one session
//! each. Their Lua reports to `desk`, and `life` watches a run. The program that provides the `Process` prints, exits,
//! reads clocks and handles signals.

mod desk;
mod life;
mod plan;
mod process;

pub use process::Process;

use std::sync::Arc;

use assay_engine::{End, Observer, Outcome, Plan, RunError, Target};
use assay_options::OptionValue;
use assay_script::{Entry, Program, TopLevel};

use crate::arguments::{Arguments, Partitioning, RefusedArguments, ScriptArgument};
use crate::{PgbenchFront, Script, builtin, check_parameters, compile, report};
use desk::{Desk, words_of};
use life::Life;

/// Exit code of anything that could not be run, and of a run that a client did not finish.
const FAILED: u8 = 1;
const ABORTED: u8 = 2;

/// What the session before the clients does.
const SETUP: &str = "local S = assay.share(\"pgbench_setup\")\n\
                     function before() S.before() end\n\
                     function initialize() S.initialize() end\n";

/// Runs a command line, starting with the program's name; returns the exit code.
pub fn run(process: &'static dyn Process, words: &[String]) -> u8 {
    let arguments = match Arguments::parse(&words[1..], &|name| process.variable(name)) {
        Ok(arguments) => arguments,
        Err(RefusedArguments::Print(text)) => return u8::from(!process.print(&text)),
        Err(RefusedArguments::Tell(text)) => {
            process.complain(&text);
            return 0;
        }
        Err(RefusedArguments::Mistake(text)) => {
            process.complain(&text);
            return FAILED;
        }
    };
    match work(process, &arguments) {
        Ok(code) => code,
        Err(text) => {
            if !text.is_empty() {
                process.complain(&format!("pgbench: error: {text}\n"));
            }
            FAILED
        }
    }
}

/// The exit code, or the error; empty if that was printed.
fn work(process: &'static dyn Process, arguments: &Arguments) -> Result<u8, String> {
    let scripts = if arguments.initialize { Vec::new() } else { read_scripts(process, arguments)? };
    let desk = Arc::new(Desk::new(process, &scripts));
    let target = plan::target(process, arguments)?;
    let seed = arguments.seed.unwrap_or_else(|| process.seed());
    if arguments.initialize {
        let options = plan::options_of_initialization(arguments, &target);
        alone(arguments, &desk, &target, "initialize", options, seed)?;
        return Ok(0);
    }
    if arguments.tells_seed {
        process.complain(&format!("pgbench: setting random seed to {seed}\n"));
    }
    if arguments.debug {
        process.complain(&plan::told(arguments, &target));
    }
    alone(arguments, &desk, &target, "before", plan::options_of_setup(arguments, &target), seed)?;
    let found = desk.found();
    let scale = found.scale.or(arguments.scale).unwrap_or(1);
    let partitions = found.partitions.filter(|(_, count)| *count > 0 && arguments.has_builtin());
    let program = program_of_clients(arguments, &scripts, &desk, scale, seed)?;
    let plan = plan::of_clients(arguments, &program, &desk, target, seed);
    run_clients(arguments, &scripts, &desk, plan, scale, partitions)
}

fn read_scripts(process: &dyn Process, arguments: &Arguments) -> Result<Vec<Script>, String> {
    let read = |source: &ScriptArgument| {
        let (name, text) = match source {
            ScriptArgument::Builtin(place) => {
                let builtin = &builtin::BUILTINS[*place];
                (builtin.shown(), builtin.text.to_owned())
            }
            ScriptArgument::File(path) => {
                let bytes = process.read(path);
                let bytes = bytes.map_err(|error| format!("could not open file \"{path}\": {}", words_of(&error)))?;
                (path.clone(), String::from_utf8_lossy(&bytes).into_owned())
            }
        };
        let script = Script::parse(&name, &text).map_err(|error| error.0)?;
        check_parameters(&script, arguments.mode)?;
        Ok(script)
    };
    arguments.scripts.iter().map(|(source, _)| read(source)).collect()
}

/// Runs a function of the set-up in a session of its own.
fn alone(
    arguments: &Arguments,
    desk: &Arc<Desk>,
    target: &Target,
    function: &str,
    options: Vec<(String, OptionValue)>,
    seed: u64,
) -> Result<(), String> {
    let program = load("pgbench", SETUP, desk)?;
    let entry = Entry::Function(function.to_owned());
    let plan = plan::of_session(arguments, &Arc::new(program), desk, target.clone(), entry, options, seed);
    let outcome = assay_engine::run(plan, desk.process.control(), &mut Silent);
    match conclusion(&outcome, desk) {
        None => Ok(()),
        Some(text) => Err(text),
    }
}

fn load(name: &str, text: &str, desk: &Arc<Desk>) -> Result<Program, String> {
    let top = TopLevel {
        command: Some("run".to_owned()),
        argv: Vec::new(),
        driver: desk.process.dialect("pgsql"),
        front: Some(desk.clone()),
        may_use_database: false,
    };
    Program::from_text(desk.process.library(), name, text, &top).map_err(|error| error.message)
}

fn program_of_clients(
    arguments: &Arguments,
    scripts: &[Script],
    desk: &Arc<Desk>,
    scale: u32,
    seed: u64,
) -> Result<Arc<Program>, String> {
    let mut variables = vec![
        ("scale".to_owned(), scale.to_string()),
        ("random_seed".to_owned(), seed.cast_signed().to_string()),
        ("default_seed".to_owned(), ((seed >> 1) ^ 0x5bd1_e995).to_string()),
    ];
    variables.extend(arguments.variables.iter().cloned());
    let weights: Vec<u64> = arguments.scripts.iter().map(|(_, weight)| *weight).collect();
    let front = PgbenchFront {
        mode: arguments.mode,
        timed: arguments.per_command,
        debug: arguments.debug,
        variables: &variables,
        weights: &weights,
    };
    load("pgbench", &compile(scripts, &front), desk).map(Arc::new)
}

fn run_clients(
    arguments: &Arguments,
    scripts: &[Script],
    desk: &Arc<Desk>,
    plan: Plan,
    scale: u32,
    partitions: Option<(Partitioning, u32)>,
) -> Result<u8, String> {
    let process = desk.process;
    let mut life = Life::new(arguments, desk, scripts.len())?;
    let outcome = assay_engine::run(plan, process.control(), &mut life);
    let begun = life.has_begun();
    let figures = life.figures(&outcome);
    if let Some(text) = conclusion(&outcome, desk) {
        if !begun {
            return Err(text);
        }
        if !text.is_empty() {
            process.complain(&format!("pgbench: error: {text}\n"));
        }
    }
    if arguments.exit_on_abort && desk.aborted() > 0 {
        return Ok(ABORTED);
    }
    let text = report::report(arguments, scripts, scale, partitions, &figures);
    if !process.print(&text) {
        return Ok(FAILED);
    }
    if desk.aborted() > 0 || matches!(outcome.end, End::Failed(_)) {
        process.complain("pgbench: error: Run was aborted; the above results are incomplete.\n");
        return Ok(ABORTED);
    }
    Ok(0)
}

/// Why a run did not end normally; empty if its sessions have reported it.
fn conclusion(outcome: &Outcome, desk: &Desk) -> Option<String> {
    match &outcome.end {
        End::Complete | End::Interrupted => (!outcome.success).then(String::new),
        End::Failed(_) if desk.has_told() => Some(String::new()),
        End::Failed(error) => Some(match error {
            RunError::Connect { error, .. } | RunError::Statement { error, .. } => error.message.clone(),
            RunError::Script(error) => error.message.clone(),
            RunError::Held { workers, sessions, waited, is_measured } => {
                RunError::held(*workers, *sessions, *waited, *is_measured)
            }
            RunError::Environment(message) => message.clone(),
        }),
    }
}

/// Whatever runs alone reports everything itself.
struct Silent;

impl Observer for Silent {
    fn notice(&mut self, _: assay_engine::Notice<'_>) {}
}
