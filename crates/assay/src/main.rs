//! `assay`: the program; it runs workloads, measures them and reports the results.
//!
//! The whole tool in a screen. Options are declared in `command_line`; each subcommand is a file in `commands/`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use assay::command_line::{self, Subcommand};
use assay::commands::{
    agent, bisect, child, compare, completions, db, duel, explain, fleet, history, io, lab, library, list, lua, manual,
    new, note, olap, pgbench, report, run, schema, serve, server, show, sql, sysbench, tag, top,
};
use assay::signals;
use assay_process::diagnostics::{self, Exit, Trouble};
use assay_process::{events, screen, terminal, title};
use assay_record::{Event, Exited};
use assay_run::execute;

fn main() -> ExitCode {
    title::hide_passwords();
    install_panic_hook();
    let ended = work();
    signals::wait_for_quit();
    diagnostics::report(ended)
}

fn work() -> Result<ExitCode, Trouble> {
    events::begin().map_err(|error| Trouble::environment(format!("cannot write events: {error}")))?;
    signals::listen()?;
    if events::is_child() {
        return ended(child::run());
    }
    let arguments = events::arguments();
    if let Some(words) = command_line::words_of("sysbench", arguments.clone())? {
        return sysbench::run(words);
    }
    if let Some(words) = command_line::words_of("pgbench", arguments.clone())? {
        return pgbench::run(words);
    }
    let Some(invocation) = command_line::parse(arguments)? else { return Ok(ExitCode::SUCCESS) };
    let assignment = || invocation.assignment.as_ref().expect("the subcommand takes a workload, which was loaded");
    let words = &invocation.words;
    ended(match &invocation.subcommand {
        Subcommand::Run(options) if options.print_spec => run::print_spec(assignment()),
        Subcommand::Run(options) => execute(assignment(), &options.output.output(), options.fleet.spec().as_ref()),
        Subcommand::Prepare(options) => execute(assignment(), &options.output(), options.fleet.spec().as_ref()),
        Subcommand::Check(options) => execute(assignment(), &options.output(), options.fleet.spec().as_ref()),
        Subcommand::Cleanup(options) => execute(assignment(), &options.common.output(), None),
        Subcommand::Exec(options) => execute(assignment(), &options.common.output(), None),
        Subcommand::List(options) => list::run(options.what, words),
        Subcommand::Show(options) => show::run(options),
        Subcommand::Tag(options) => tag::run(options),
        Subcommand::Compare(options) => compare::run(options),
        Subcommand::Explain(options) => explain::run(options),
        Subcommand::Duel(options) => duel::run(options),
        Subcommand::Bisect(options) => bisect::run(options),
        Subcommand::Report(options) => report::run(options),
        Subcommand::Library(options) => library::run(options),
        Subcommand::History(options) => history::run(options),
        Subcommand::Serve(options) => serve::run(options),
        Subcommand::Completions(options) => completions::run(options),
        Subcommand::Manual(options) => manual::run(options),
        Subcommand::Top(options) => top::run(options),
        Subcommand::Note(options) => note::run(options),
        Subcommand::Db(options) => db::run(options),
        Subcommand::New(options) => new::run(options),
        Subcommand::Lua(options) => lua::run(options),
        Subcommand::Schema(options) => schema::run(options),
        Subcommand::Server(options) => server::run(options),
        Subcommand::Sql(options) => sql::run(&sql::spec(options)?, &options.result.output(), words),
        Subcommand::Olap(options) => olap::run(assignment(), options),
        Subcommand::Io(options) => io::run(&options.spec(), &options.result.output(), words),
        Subcommand::Lab(options) => lab::run(options),
        Subcommand::Agent(options) => agent::run(options),
        Subcommand::Fleet(options) => fleet::run(options),
        Subcommand::Sysbench | Subcommand::Pgbench => unreachable!("its words are its own: see above"),
    })
}

/// Reports the end of the work to the process that started this one.
fn ended(exit: Result<Exit, Trouble>) -> Result<ExitCode, Trouble> {
    let exit = exit?;
    events::tell(|| Event::Exited(Exited { code: exit as u8, ..Exited::default() }));
    Ok(exit.into())
}

/// Reports a panic, which is always a bug in assay, and exits with `Exit::Bug`. The default hook would exit
/// with 101 from the main thread and keep running after a panic in a worker, with numbers nobody should trust.
fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map_or_else(|| "unknown place".to_owned(), ToString::to_string);
        let backtrace = std::backtrace::Backtrace::force_capture();
        let trouble = Trouble::new(Exit::Bug, format!("assay {} has a bug: {message}", env!("CARGO_PKG_VERSION")))
            .detail(place)
            .detail(backtrace.to_string())
            .hint("please report this with the command line and the lines above; do not trust the results of this run");
        events::tell(|| Event::Exited(trouble.exited()));
        screen::restore();
        terminal::say(&trouble.text(terminal::stderr_color()));
        std::process::exit(Exit::Bug as i32);
    }));
}
