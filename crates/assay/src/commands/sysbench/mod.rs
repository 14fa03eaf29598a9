//! `assay sysbench …`: sysbench's command line, reports and exit codes. Also what the binary does when it is called
//! `sysbench`.
//!
//! Words are understood and reports written by assay-sysbench; here a test is found and carried out. `built_in` lists the
//! built-in ones and `machine` carries them out; for scripts `plan` makes of options what the engine runs, `life` tells a
//! run as it goes.

pub mod built_in;
pub mod link;
pub mod machine;

pub mod life;
pub mod plan;
pub mod span;
pub mod target;
pub mod voice;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use assay_engine::{End, Outside};
use assay_options::OptionDeclaration;
use assay_script::{Entry, Installed, Library, Program, TopLevel};
use assay_sysbench::options::key_of;
use assay_sysbench::{Arguments, CoreSettings, Level, Options, UsageError, help, originals, report, settings};

use crate::diagnostics::Trouble;
use crate::{library, signals, terminal};
use built_in::{TESTS, Test};
use life::{Life, say_untold};
use plan::Parts;
use voice::Voice;

/// Exit code of anything that went wrong.
const FAILED: u8 = 1;

/// A command line that was understood, and the voice to answer in.
pub struct Front {
    arguments: Arguments,
    /// Of the core and the databases; those of the test come when it is known.
    options: Options,
    settings: CoreSettings,
    voice: Arc<Voice>,
    /// As given, the program's name first.
    words: Vec<String>,
    /// What the script's top level did to the database, when it was run to learn what it declares.
    before: Outside,
}

/// Does what the words say, the program's name first.
pub fn run(words: Vec<String>) -> Result<ExitCode, Trouble> {
    let folder = match words.get(1).map(|word| word.split_once('=').unwrap_or((word, ""))) {
        Some(("--install-link", "")) => words.get(2),
        Some(("--install-link", _)) => words.get(1),
        _ => {
            signals::stop_listening()?;
            return Ok(obey(words).into());
        }
    };
    let folder = folder.map(|word| word.trim_start_matches("--install-link="));
    let folder = folder.ok_or_else(|| Trouble::usage("--install-link needs a folder").hint("such as ~/bin"))?;
    link::install(Path::new(folder))?;
    Ok(ExitCode::SUCCESS)
}

/// The exit code.
fn obey(words: Vec<String>) -> u8 {
    let arguments = match Arguments::parse(&words[1..], &read_file) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error.to_string()),
    };
    for complaint in &arguments.complaints {
        terminal::say(&format!("{complaint}\n"));
    }
    if arguments.test_option {
        terminal::say(
            "WARNING: the --test option is deprecated. You can pass a script name or path on the command line without \
             any options.\n",
        );
    }
    if arguments.options.is_on("help") {
        let tests: Vec<(&str, &str)> = TESTS.iter().map(|test| (test.name, test.what)).collect();
        return print(&help::general(&tests));
    }
    if arguments.options.is_on("version") {
        return print(&format!("sysbench {}\n", assay_sysbench::VERSION));
    }
    match Front::new(arguments, words) {
        Ok(front) => front.run(),
        Err(code) => code,
    }
}

impl Front {
    /// Checks the core's options; a refusal has been told.
    fn new(arguments: Arguments, words: Vec<String>) -> Result<Front, u8> {
        let mut arguments = arguments;
        let mut options = arguments.options.clone();
        let verbosity =
            settings::verbosity(&options).map_err(|refusal| print(&format!("{}\n", refusal.message)).max(FAILED))?;
        let voice = Arc::new(Voice::new(verbosity));
        for warning in settings::replace_old_names(&mut options) {
            // At any verbosity.
            voice.with(|_| format!("WARNING: {warning}\n"));
        }
        if settings::is_endless(&options) {
            voice.say(Level::Warning, "Both event and time limits are disabled, running an endless test");
        }
        let settings = settings::settings(&options).map_err(|refusal| {
            voice.say(refusal.level.unwrap_or(Level::Fatal), &refusal.message);
            FAILED
        })?;
        plan::check_workers().map_err(|message| refuse(&message))?;
        voice.with(|log| log.text(Level::Notice, &report::banner(&assay_script::luajit_version())));
        arguments.options = options.clone();
        Ok(Front { arguments, options, settings, voice, words, before: Outside::default() })
    }

    /// The core's settings.
    pub fn settings(&self) -> &CoreSettings {
        &self.settings
    }

    /// Options in effect, those of the test included.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The seed in effect; another one in every process unless one was given.
    pub fn seed(&self) -> u64 {
        match self.settings.seed {
            0 => plan::random_seed(),
            seed => seed as u64,
        }
    }

    /// What stands behind an option on the command line, unread.
    pub fn as_written(&self, key: &str) -> Option<String> {
        let options = self.words.iter().rev().filter_map(|word| word.strip_prefix("--")?.split_once('='));
        options.into_iter().find(|(name, _)| key_of(name) == key).map(|(_, value)| value.to_owned())
    }

    /// A command that cannot be: the exit code.
    pub fn refuse(&self, message: &str) -> u8 {
        refuse(message)
    }

    /// Where to say things.
    pub fn voice(&self) -> &Arc<Voice> {
        &self.voice
    }

    fn run(mut self) -> u8 {
        let Some(name) = self.arguments.test.clone().filter(|name| name != "-") else { return self.run_input() };
        if let Some(test) = TESTS.iter().find(|test| test.name == name) {
            return self.run_test(test);
        }
        let Ok(source) = LIBRARY.find(&name) else {
            return self.fail(&format!("Cannot find benchmark '{name}': no such built-in test, file or module"));
        };
        match &source.path {
            None => self.voice.say(Level::Info, &format!("Script {name}: built in")),
            Some(path) if path != Path::new(&name) => {
                self.voice.say(Level::Info, &format!("Script {name}: {}", path.display()));
            }
            Some(_) => {}
        }
        let program = match Program::from_source(&LIBRARY, &name, source, &self.top_level()) {
            Ok(program) => Arc::new(program),
            // Told by the script's own session.
            Err(_) => return FAILED,
        };
        if !program.is_declared() {
            self.voice.expect_again();
            let command = self.arguments.command.as_deref().unwrap_or_default();
            let (code, did) = self.run_entry(&program, command, Entry::Declare, 1, "main chunk");
            if code != 0 {
                return code;
            }
            self.before = did;
        }
        if let Err(error) = self.take_options(program.declares_options().then(|| program.options())) {
            return refuse(&error.to_string());
        }
        match self.arguments.command.clone() {
            Some(command) => self.run_command(&name, &program, &command),
            None => self.run_top_level(&program),
        }
    }

    /// A script on standard input: its top level alone, whatever the command.
    fn run_input(&mut self) -> u8 {
        let mut text = String::new();
        if let Err(error) = std::io::stdin().read_to_string(&mut text) {
            return self.fail(&format!("cannot read standard input: {error}"));
        }
        let program = match Program::from_text(&LIBRARY, "stdin", &text, &self.top_level()) {
            Ok(program) => Arc::new(program),
            // Told by the script's own session.
            Err(_) => return FAILED,
        };
        match self.take_options(program.declares_options().then(|| program.options())) {
            Ok(()) => self.run_top_level(&program),
            Err(error) => refuse(&error.to_string()),
        }
    }

    fn run_test(&mut self, test: &Test) -> u8 {
        let declared: Vec<OptionDeclaration> = test.options.iter().map(built_in::declaration).collect();
        if let Err(error) = self.take_options(Some(&declared)) {
            return refuse(&error.to_string());
        }
        match self.arguments.command.clone().as_deref() {
            None => refuse(&format!("The '{0}' test requires a command argument. See 'sysbench {0} help'", test.name)),
            Some("help") => print(&format!("{} options:\n{}\n", test.name, help::list(test.options))),
            Some(command) => (test.run)(self, command),
        }
    }

    /// The second pass: the test's own options.
    fn take_options(&mut self, declared: Option<&[OptionDeclaration]>) -> Result<(), UsageError> {
        self.options = self.arguments.complete(declared)?;
        Ok(())
    }

    fn run_command(&self, name: &str, program: &Arc<Program>, command: &str) -> u8 {
        if let Some(declared) = program.commands().iter().find(|declared| declared.name == command) {
            let sessions = if declared.parallel { self.settings.threads } else { 1 };
            return self.run_function(program, command, sessions, "sysbench.cmdline.call_command");
        }
        let missing = || refuse(&format!("'{}' test does not implement the '{command}' command.", file_name(name)));
        match command {
            // An error in it is told, and no failure.
            "help" if program.defines("help") => {
                self.run_function(program, command, 1, command);
                0
            }
            "help" if program.declares_options() => {
                print(&format!("{} options:\n", file_name(name)));
                self.run_function(program, command, 1, command)
            }
            "prepare" | "cleanup" if program.defines(command) => self.run_function(program, command, 1, command),
            "help" | "prepare" | "cleanup" => missing(),
            "run" => self.run_events(name, program),
            _ => refuse(&format!("Unknown command: {command}")),
        }
    }

    fn run_events(&self, name: &str, program: &Arc<Program>) -> u8 {
        if !program.defines("event") {
            return self.fail(&format!("cannot find the event() function in {}", file_name(name)));
        }
        let parts = self.parts(program);
        let plan = parts.run();
        // An environment around the run counts what its own top level does.
        let before = if plan.has_frame() { Outside::default() } else { self.before };
        let mut life = Life::new(&parts, &before);
        let outcome = assay_engine::run(plan, signals::control(), &mut life);
        life.conclude(&outcome)
    }

    /// A command, in so many sessions. `shown`: what its error names.
    fn run_function(&self, program: &Arc<Program>, command: &str, sessions: u32, shown: &str) -> u8 {
        if sessions > 1 {
            self.voice.say(Level::Notice, "Initializing worker threads...\n");
        }
        self.run_entry(program, command, Entry::Function(command.to_owned()), sessions, shown).0
    }

    fn run_top_level(&self, program: &Arc<Program>) -> u8 {
        // It was run up to its first statement, to learn what it declares, and begins anew.
        self.voice.expect_again();
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
        let plan = self.parts(program).command(command, entry, sessions);
        let outcome = assay_engine::run(plan, signals::control(), &mut Silent);
        let code = match &outcome.end {
            End::Complete => u8::from(!outcome.success),
            End::Interrupted => signals::exit() as u8,
            End::Failed(error) => {
                say_untold(&self.voice, shown, error);
                FAILED
            }
        };
        (code, outcome.outside)
    }

    fn parts<'a>(&'a self, program: &'a Arc<Program>) -> Parts<'a> {
        Parts { program, settings: &self.settings, options: &self.options, words: &self.words, voice: &self.voice }
    }

    fn top_level(&self) -> TopLevel {
        TopLevel {
            command: self.arguments.command.clone(),
            argv: self.words.clone(),
            driver: plan::driver_name(&self.options),
            host: Some(self.voice.clone()),
        }
    }

    fn fail(&self, message: &str) -> u8 {
        self.voice.say(Level::Fatal, message);
        FAILED
    }
}

/// Commands have nothing to tell but what they print.
struct Silent;

impl assay_engine::Observer for Silent {
    fn notice(&mut self, _: assay_engine::Notice<'_>) {}
}

/// Built-in workloads and files, in sysbench's order.
static LIBRARY: LazyLock<Arc<Library>> = LazyLock::new(|| {
    let folder = installed_scripts(std::env::var_os("PATH").unwrap_or_default());
    let original = originals::are_original(|name| std::fs::read(folder.join(name).with_extension("lua")).ok());
    let installed = Some(Installed { folder, original });
    Arc::new(Library { sysbench_order: true, installed, ..Library::clone(library::library()) })
});

/// Where the `sysbench` that would run without us keeps its scripts.
fn installed_scripts(path: OsString) -> PathBuf {
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    let programs = std::env::split_paths(&path).map(|folder| folder.join("sysbench").canonicalize().ok());
    let other = programs.flatten().find(|program| Some(program) != own.as_ref());
    let scripts = other.and_then(|program| Some(program.parent()?.parent()?.join("share/sysbench")));
    scripts.filter(|folder| folder.is_dir()).unwrap_or_else(|| PathBuf::from("/usr/share/sysbench"))
}

fn read_file(path: &str) -> Result<String, String> {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|error| words_of(&error))
}

/// As C's library says it.
fn words_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A usage error goes to stderr.
fn refuse(message: &str) -> u8 {
    terminal::say(&format!("{message}\n"));
    FAILED
}

fn print(text: &str) -> u8 {
    u8::from(terminal::result(text).is_err())
}
