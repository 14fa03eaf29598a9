//! `assay pgbench …`: pgbench's command line, reports, log files and exit codes. Also what the binary does when it is
//! called `pgbench`.
//!
//! assay-pgbench parses arguments, translates scripts to Lua and formats lines; here the engine runs them: first what
//! comes before a run, or the initialization, in one session, then the clients, one session each. Their Lua reports to
//! `desk`, and `life` watches a run.

mod desk;
mod life;
mod plan;

use std::process::ExitCode;
use std::sync::Arc;

use assay_engine::{End, Observer, Outcome, Plan, RunError, Target};
use assay_options::OptionValue;
use assay_pgbench::arguments::{Arguments, Partitioning, Refusal, Source};
use assay_pgbench::{Front, Script, builtin, compile, report};
use assay_script::{Entry, Program, TopLevel};

use crate::diagnostics::Trouble;
use crate::{library, registry, signals, terminal};
use desk::{Desk, words_of};
use life::Life;

/// Exit code of anything that could not be run, and of a run that a client did not finish.
const FAILED: u8 = 1;
const ABORTED: u8 = 2;

/// What the session before the clients does.
const SETUP: &str = "local S = assay.share(\"pgbench_setup\")\n\
                     function before() S.before() end\n\
                     function initialize() S.initialize() end\n";

/// Runs a command line, starting with the program's name.
pub fn run(words: Vec<String>) -> Result<ExitCode, Trouble> {
    signals::stop_listening()?;
    Ok(obey(&words).into())
}

/// The exit code.
fn obey(words: &[String]) -> u8 {
    let arguments = match Arguments::parse(&words[1..], &|name| std::env::var(name).ok()) {
        Ok(arguments) => arguments,
        Err(Refusal::Print(text)) => return u8::from(terminal::result(&text).is_err()),
        Err(Refusal::Tell(text)) => {
            terminal::say(&text);
            return 0;
        }
        Err(Refusal::Mistake(text)) => {
            terminal::say(&text);
            return FAILED;
        }
    };
    match work(&arguments) {
        Ok(code) => code,
        Err(text) => {
            if !text.is_empty() {
                terminal::say(&format!("pgbench: error: {text}\n"));
            }
            FAILED
        }
    }
}

/// The exit code, or the error; empty if that was printed.
fn work(arguments: &Arguments) -> Result<u8, String> {
    let scripts = if arguments.initialize { Vec::new() } else { read_scripts(arguments)? };
    let desk = Arc::new(Desk::new(&scripts));
    let target = plan::target(arguments)?;
    let seed = arguments.seed.unwrap_or_else(crate::plan::random_seed);
    if arguments.initialize {
        let options = plan::options_of_initialization(arguments, &target);
        alone(arguments, &desk, &target, "initialize", options, seed)?;
        return Ok(0);
    }
    if arguments.tells_seed {
        terminal::say(&format!("pgbench: setting random seed to {seed}\n"));
    }
    if arguments.debug {
        terminal::say(&plan::told(arguments, &target));
    }
    alone(arguments, &desk, &target, "before", plan::options_of_setup(arguments, &target), seed)?;
    let found = desk.found();
    let scale = found.scale.or(arguments.scale).unwrap_or(1);
    let partitions = found.partitions.filter(|(_, count)| *count > 0 && arguments.has_builtin());
    let program = program_of_clients(arguments, &scripts, &desk, scale, seed)?;
    let plan = plan::of_clients(arguments, &program, &desk, target, seed);
    run_clients(arguments, &scripts, &desk, plan, scale, partitions)
}

fn read_scripts(arguments: &Arguments) -> Result<Vec<Script>, String> {
    let read = |source: &Source| {
        let (name, text) = match source {
            Source::Builtin(place) => {
                let builtin = &builtin::BUILTINS[*place];
                (builtin.shown(), builtin.text.to_owned())
            }
            Source::File(path) => {
                let bytes = match path.as_str() {
                    "-" => {
                        let mut bytes = Vec::new();
                        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
                    }
                    path => std::fs::read(path),
                };
                let bytes = bytes.map_err(|error| format!("could not open file \"{path}\": {}", words_of(&error)))?;
                (path.clone(), String::from_utf8_lossy(&bytes).into_owned())
            }
        };
        let script = Script::parse(&name, &text).map_err(|error| error.0)?;
        assay_pgbench::check_parameters(&script, arguments.mode)?;
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
    let outcome = assay_engine::run(plan, signals::control(), &mut Silent);
    match conclusion(&outcome, desk) {
        None => Ok(()),
        Some(text) => Err(text),
    }
}

fn load(name: &str, text: &str, desk: &Arc<Desk>) -> Result<Program, String> {
    let top = TopLevel {
        command: Some("run".to_owned()),
        argv: Vec::new(),
        driver: registry::dialect("pgsql"),
        front: Some(desk.clone()),
        may_use_database: false,
    };
    Program::from_text(library::library(), name, text, &top).map_err(|error| error.message)
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
    let front = Front {
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
    let mut life = Life::new(arguments, desk, scripts.len())?;
    let outcome = assay_engine::run(plan, signals::control(), &mut life);
    let begun = life.has_begun();
    let figures = life.figures(&outcome);
    if let Some(text) = conclusion(&outcome, desk) {
        if !begun {
            return Err(text);
        }
        if !text.is_empty() {
            terminal::say(&format!("pgbench: error: {text}\n"));
        }
    }
    if arguments.exit_on_abort && desk.aborted() > 0 {
        return Ok(ABORTED);
    }
    let text = report::report(arguments, scripts, scale, partitions, &figures);
    if terminal::result(&text).is_err() {
        return Ok(FAILED);
    }
    if desk.aborted() > 0 || matches!(outcome.end, End::Failed(_)) {
        terminal::say("pgbench: error: Run was aborted; the above results are incomplete.\n");
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
