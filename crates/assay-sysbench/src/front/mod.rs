//! sysbench as a program: finds and runs a test, with sysbench's output.
//!
//! `built_in` lists the built-in tests and `machine` runs them; for scripts, `plan` turns options into the engine's
//! plan, and `narrator` prints the course of the run. The program that provides the `Process` prints, exits and handles
//! signals.

mod built_in;
mod console;
mod invocation;
mod machine;
mod narrator;
mod plan;
mod process;
mod targets;
mod totals;

pub use process::{MachineReport, Process};

use std::path::Path;
use std::sync::Arc;

use assay_engine::{End, Notice, Observer, Outside};
use assay_options::OptionDeclaration;
use assay_script::{Entry, Program, TopLevel};

use crate::options::key_of;
use crate::{Arguments, LogLevel, UsageError, help, report, settings};
use built_in::{BuiltInTest, TESTS};
use console::Console;
use invocation::{FAILED, Invocation, refuse};
use narrator::{Narrator, say_untold};
use plan::ScriptPlans;

/// Runs a command line, starting with the program's name; returns the exit code.
pub fn run(process: &'static dyn Process, words: Vec<String>) -> u8 {
    let arguments = match Arguments::parse(&words[1..], &read_file) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(process, &error.to_string()),
    };
    for complaint in &arguments.complaints {
        process.complain(&format!("{complaint}\n"));
    }
    if arguments.test_option {
        process.complain(
            "WARNING: the --test option is deprecated. You can pass a script name or path on the command line without \
             any options.\n",
        );
    }
    if arguments.options.is_on("help") {
        let tests: Vec<(&str, &str)> = TESTS.iter().map(|test| (test.name, test.what)).collect();
        return print(process, &help::general(&tests));
    }
    if arguments.options.is_on("version") {
        return print(process, &format!("sysbench {}\n", crate::VERSION));
    }
    match RunningFront::new(process, arguments, words) {
        Ok(front) => front.run(),
        Err(code) => code,
    }
}

/// A parsed command line in progress.
struct RunningFront {
    arguments: Arguments,
    /// Has only the options of the core and the databases until the test's own are known.
    invocation: Invocation,
    /// What the script's top level did to the database when it was run for its declarations.
    before: Outside,
}

impl RunningFront {
    /// Checks the core's options; an error was printed.
    fn new(process: &'static dyn Process, arguments: Arguments, words: Vec<String>) -> Result<RunningFront, u8> {
        let mut arguments = arguments;
        let mut options = arguments.options.clone();
        let verbosity = settings::verbosity(&options)
            .map_err(|refusal| print(process, &format!("{}\n", refusal.message)).max(FAILED))?;
        let console = Arc::new(Console::new(process, verbosity, options.text("luajit_cmd")));
        for warning in settings::replace_old_names(&mut options) {
            // At any verbosity.
            console.with(|_| format!("WARNING: {warning}\n"));
        }
        if settings::is_endless(&options) {
            console.say(LogLevel::Warning, "Both event and time limits are disabled, running an endless test");
        }
        let settings = settings::settings(&options).map_err(|refusal| {
            console.say(refusal.level.unwrap_or(LogLevel::Fatal), &refusal.message);
            FAILED
        })?;
        plan::check_workers(process).map_err(|message| refuse(process, &message))?;
        console.with(|log| log.text(LogLevel::Notice, &report::banner(&assay_script::luajit_version())));
        arguments.options = options.clone();
        let invocation = Invocation { process, options, settings, console, words, test: Default::default() };
        Ok(RunningFront { arguments, invocation, before: Outside::default() })
    }

    fn run(mut self) -> u8 {
        let Some(name) = self.arguments.test.clone().filter(|name| name != "-") else { return self.run_input() };
        if let Some(test) = TESTS.iter().find(|test| test.name == name) {
            return self.run_test(test);
        }
        let library = self.invocation.process.library();
        let Ok(source) = library.find(&name) else {
            return self.fail(&format!("Cannot find benchmark '{name}': no such built-in test, file or module"));
        };
        match &source.path {
            None => self.invocation.console.say(LogLevel::Info, &format!("Script {name}: built in")),
            Some(path) if path != Path::new(&name) => {
                self.invocation.console.say(LogLevel::Info, &format!("Script {name}: {}", path.display()));
            }
            Some(_) => {}
        }
        let program = match Program::from_source(library, &name, source, &self.top_level()) {
            Ok(program) => Arc::new(program),
            // Printed by the script's own session.
            Err(_) => return FAILED,
        };
        if !program.is_declared() {
            self.invocation.console.expect_again();
            let command = self.arguments.command.as_deref().unwrap_or_default();
            let (code, did) = self.run_entry(&program, command, Entry::Declare, 1, "main chunk");
            if code != 0 {
                return code;
            }
            self.before = did;
        }
        if let Err(error) = self.take_options(program.declares_options().then(|| program.options())) {
            return self.invocation.refuse(&error.to_string());
        }
        match self.arguments.command.clone() {
            Some(command) => self.run_command(&name, &program, &command),
            None => self.run_top_level(&program),
        }
    }

    /// A script on standard input: only its top level, whatever the command.
    fn run_input(&mut self) -> u8 {
        let text = match self.invocation.process.input() {
            Ok(text) => text,
            Err(error) => return self.fail(&format!("cannot read standard input: {error}")),
        };
        let library = self.invocation.process.library();
        let program = match Program::from_text(library, "stdin", &text, &self.top_level()) {
            Ok(program) => Arc::new(program),
            // Printed by the script's own session.
            Err(_) => return FAILED,
        };
        match self.take_options(program.declares_options().then(|| program.options())) {
            Ok(()) => self.run_top_level(&program),
            Err(error) => self.invocation.refuse(&error.to_string()),
        }
    }

    fn run_test(&mut self, test: &'static BuiltInTest) -> u8 {
        self.invocation.test = (test.name, test.options.iter().map(|known| key_of(known.name)).collect());
        let declared: Vec<OptionDeclaration> = test.options.iter().map(built_in::declaration).collect();
        if let Err(error) = self.take_options(Some(&declared)) {
            return self.invocation.refuse(&error.to_string());
        }
        match self.arguments.command.clone().as_deref() {
            None => self
                .invocation
                .refuse(&format!("The '{0}' test requires a command argument. See 'sysbench {0} help'", test.name)),
            Some("help") => self.print(&format!("{} options:\n{}\n", test.name, help::list(test.options))),
            Some(command) => (test.run)(&self.invocation, command),
        }
    }

    /// The second pass: the test's own options.
    fn take_options(&mut self, declared: Option<&[OptionDeclaration]>) -> Result<(), UsageError> {
        self.invocation.options = self.arguments.complete(declared)?;
        Ok(())
    }

    fn run_command(&self, name: &str, program: &Arc<Program>, command: &str) -> u8 {
        if let Some(declared) = program.commands().iter().find(|declared| declared.name == command) {
            let sessions = if declared.parallel { self.invocation.settings.threads } else { 1 };
            return self.run_function(program, command, sessions, "sysbench.cmdline.call_command");
        }
        let missing = || {
            self.invocation.refuse(&format!("'{}' test does not implement the '{command}' command.", file_name(name)))
        };
        match command {
            // An error in it is printed, but not a failure.
            "help" if program.defines("help") => {
                self.run_function(program, command, 1, command);
                0
            }
            "help" if program.declares_options() => {
                self.print(&format!("{} options:\n", file_name(name)));
                self.run_function(program, command, 1, command)
            }
            "prepare" | "cleanup" if program.defines(command) => self.run_function(program, command, 1, command),
            "help" | "prepare" | "cleanup" => missing(),
            "run" => self.run_events(name, program),
            _ => self.invocation.refuse(&format!("Unknown command: {command}")),
        }
    }

    fn run_events(&self, name: &str, program: &Arc<Program>) -> u8 {
        if !program.defines("event") {
            return self.fail(&format!("cannot find the event() function in {}", file_name(name)));
        }
        let plans = self.plans(program);
        let plan = plans.run();
        // An environment around the run counts what its own top level does.
        let before = if plan.has_main_session() { Outside::default() } else { self.before };
        let mut narrator = Narrator::new(&plans, &before);
        let outcome = assay_engine::run(plan, self.invocation.process.control(), &mut narrator);
        narrator.conclude(&outcome)
    }

    /// Runs a command in this many sessions. `shown`: its name in the error.
    fn run_function(&self, program: &Arc<Program>, command: &str, sessions: u32, shown: &str) -> u8 {
        if sessions > 1 {
            self.invocation.console.say(LogLevel::Notice, "Initializing worker threads...\n");
        }
        self.run_entry(program, command, Entry::Function(command.to_owned()), sessions, shown).0
    }

    fn run_top_level(&self, program: &Arc<Program>) -> u8 {
        // It was run up to its first statement, for its declarations, and starts again.
        self.invocation.console.expect_again();
        let command = self.arguments.command.as_deref().unwrap_or_default();
        self.run_entry(program, command, Entry::TopLevel, 1, "main chunk").0
    }

    /// The exit code, and what was done to the database.
    fn run_entry(
        &self,
        program: &Arc<Program>,
        command: &str,
        entry: Entry,
        sessions: u32,
        shown: &str,
    ) -> (u8, Outside) {
        let plan = self.plans(program).command(command, entry, sessions);
        let outcome = assay_engine::run(plan, self.invocation.process.control(), &mut Silent(&self.invocation));
        let code = match &outcome.end {
            End::Complete => u8::from(!outcome.success),
            End::Interrupted => self.invocation.process.exit_code_interrupted(),
            End::Failed(error) => {
                say_untold(&self.invocation.console, shown, error);
                FAILED
            }
        };
        (code, outcome.outside)
    }

    fn plans<'a>(&'a self, program: &'a Arc<Program>) -> ScriptPlans<'a> {
        ScriptPlans { program, invocation: &self.invocation }
    }

    fn top_level(&self) -> TopLevel {
        TopLevel {
            command: self.arguments.command.clone(),
            argv: self.invocation.words.clone(),
            driver: self.invocation.process.dialect(plan::driver_name(&self.invocation.options)),
            front: Some(self.invocation.console.clone()),
            may_use_database: true,
        }
    }

    fn print(&self, text: &str) -> u8 {
        print(self.invocation.process, text)
    }

    fn fail(&self, message: &str) -> u8 {
        self.invocation.console.say(LogLevel::Fatal, message);
        FAILED
    }
}

/// Commands print only what they print themselves.
struct Silent<'a>(&'a Invocation);

impl Observer for Silent<'_> {
    fn notice(&mut self, _: Notice<'_>) {}

    fn logged_in(&mut self, _: usize) {
        self.0.note_login();
    }
}

fn read_file(path: &str) -> Result<String, String> {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|error| words_of(&error))
}

/// As in C's library.
fn words_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn print(process: &dyn Process, text: &str) -> u8 {
    u8::from(!process.print(text.as_bytes()))
}
