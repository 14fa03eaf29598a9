//! A loaded script: its text, and what its top level declared.

use std::sync::{Arc, OnceLock};

use crate::asked::Ask;
use crate::declared::Declared;
use crate::failure::ScriptError;
use crate::front::ScriptFront;
use crate::library::{Library, ScriptSource};
use crate::random::Distribution;
use crate::request::{Answer, Request};
use crate::rule::{Declaration, LoadedTables, NamedQuery};
use crate::script::Script;
use crate::setup::{Entry, Setup};
use crate::state::{LuaState, Opening};
use assay_options::{CommandDeclaration, OptionDeclaration, OptionValue};
use assay_seam::{Dialect, RowsPool};

/// A script, known but not running. Shared by all workers.
#[derive(Debug)]
pub struct Program {
    pub(crate) script: Script,
    /// Empty until the top level has run to its end: see `is_declared`.
    pub(crate) declared: Arc<OnceLock<Declared>>,
    description: Option<String>,
}

/// What an analytical workload asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queries {
    /// In the order of their declaration.
    pub queries: Vec<NamedQuery>,
    /// The table that says how many rows each table has, and what else to ask.
    pub loaded: Option<LoadedTables>,
    /// Scale factor of the data.
    pub scale: Option<f64>,
    /// Options about the tables, with their values in them.
    pub found: Vec<(String, OptionValue)>,
}

/// What a script's top level sees before its options are known.
#[derive(Clone, Debug, Default)]
pub struct TopLevel {
    /// `sysbench.cmdline.command`.
    pub command: Option<String>,
    /// `sysbench.cmdline.argv`, the program's name first.
    pub argv: Vec<String>,
    /// The kind of database, for scripts that query it at top level.
    pub driver: Dialect,
    /// The front that the top level writes to. With a command, this is the last run in what sysbench calls the main
    /// state; without one `Entry::TopLevel` runs the top level again, with all its output. See `Setup::front`.
    pub front: Option<Arc<dyn ScriptFront>>,
    /// Whether it may use the database: then it stops there, and a session of `Entry::Declare` has to run it.
    pub may_use_database: bool,
}

impl Program {
    /// Finds `name` and runs its top level once, in a temporary state.
    pub fn load(library: &Arc<Library>, name: &str, top: &TopLevel) -> Result<Program, ScriptError> {
        Program::from_source(library, name, library.find(name)?, top)
    }

    /// Loads a program from a text (a script from standard input, a test). `display` is its name in messages.
    pub fn from_text(
        library: &Arc<Library>,
        display: &str,
        text: &str,
        top: &TopLevel,
    ) -> Result<Program, ScriptError> {
        let source = ScriptSource { display: display.to_owned(), path: None, text: text.into() };
        Program::from_source(library, display, source, top)
    }

    /// Loads a program from a source that was already found: a pipe can only be read once.
    pub fn from_source(
        library: &Arc<Library>,
        given: &str,
        source: ScriptSource,
        top: &TopLevel,
    ) -> Result<Program, ScriptError> {
        let file = given.rsplit('/').next().unwrap_or(given);
        let name = file.strip_suffix(".lua").unwrap_or(file).to_owned();
        let description = describe(&String::from_utf8_lossy(&source.text));
        let script = Script { library: Arc::clone(library), source, given: given.to_owned(), name };
        let declared = declare(&script, top).map_err(|error| script.placed(error))?;
        if let (None, Some(declared)) = (&top.front, &declared) {
            script.check_names(&declared.globals)?;
        }
        let declared = Arc::new(declared.map(OnceLock::from).unwrap_or_default());
        Ok(Program { script, declared, description })
    }

    /// Whether the script's declarations are known. Not if the top level uses the database and may: then a session of
    /// `Entry::Declare` has to run it.
    pub fn is_declared(&self) -> bool {
        self.declared.get().is_some()
    }

    fn declared(&self) -> &Declared {
        static NOTHING: Declared = Declared::nothing();
        self.declared.get().unwrap_or(&NOTHING)
    }

    /// Options in the order of their names.
    pub fn options(&self) -> &[OptionDeclaration] {
        &self.declared().options
    }

    /// The options that a run has to be given, by key, and where the script uses each.
    pub fn needed(&self) -> &[(String, String)] {
        &self.declared().needed
    }

    /// Whether the script declared an option table at all (sysbench then refuses unknown options).
    pub fn declares_options(&self) -> bool {
        self.declared().has_options
    }

    /// Whether the workload itself decides which rows it accesses, so that no distribution can be chosen.
    pub fn draws_own_rows(&self) -> bool {
        self.declared().own_rows
    }

    /// Sessions of a run that does not say how many, if the workload has an opinion.
    pub fn sessions(&self) -> Option<u32> {
        Some(self.declared().sessions).filter(|sessions| *sessions > 0)
    }

    /// Types of transactions that the top level has named; scripts may name others later.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.declared().types.iter().map(String::as_str)
    }

    /// Custom commands in the order of their names.
    pub fn commands(&self) -> &[CommandDeclaration] {
        &self.declared().commands
    }

    /// Whether the top level left a global function of this name (`event`, `prepare`, `thread_init`, …).
    pub fn defines(&self, global: &str) -> bool {
        self.declared().globals.contains(global)
    }

    /// Whether the top level left a function of this name in `sysbench.hooks`.
    pub fn hooks(&self, name: &str) -> bool {
        self.declared().hooks.contains(name)
    }

    /// What its `queries()` declares for these options and this kind of database, in this order. It may not use the
    /// database.
    pub fn queries(&self, setup: &Setup) -> Result<Queries, ScriptError> {
        let mut state = LuaState::new(self, setup)?;
        let slot = state.add_session(0)?;
        let (mut found, mut pool) = (Queries::default(), RowsPool::default());
        loop {
            let asked = state.advance(slot, Answer::Done, &mut pool);
            match state.request(slot, asked, &mut pool) {
                Request::Declare(Declaration::Query(query)) => found.queries.push(query),
                Request::Declare(Declaration::Loaded(tables)) => found.loaded = Some(tables),
                Request::Declare(Declaration::Scale(factor)) => found.scale = Some(factor),
                Request::Declare(Declaration::Found(name, value)) => found.found.push((name, value)),
                Request::Finished { .. } => return Ok(found),
                Request::Died(failure) => return Err(ScriptError::from(&failure)),
                Request::Declare(_) | Request::Log(_) => {}
                _ => {
                    let mut error = ScriptError::from_message("queries() uses the database, or waits", "");
                    error.file = Some(self.script.source.display.clone());
                    error.hint = Some("it only declares queries: assay.query{…}".to_owned());
                    return Err(error);
                }
            }
        }
    }

    /// The error of a session of this setup that ended its work inside a database transaction.
    pub fn left_open(&self, setup: &Setup) -> ScriptError {
        let display = &self.script.source.display;
        let what = match &setup.entry {
            Entry::Function(name) => format!("{name}()"),
            Entry::Main => "init() or done()".to_owned(),
            Entry::Thread if display.ends_with(".sql") => "the script".to_owned(),
            Entry::Thread if !self.defines("event") => "thread_run()".to_owned(),
            _ => "event()".to_owned(),
        };
        let event = self.declared().event.as_ref().filter(|_| setup.entry == Entry::Thread);
        ScriptError {
            message: format!("{what} ended inside a database transaction, whose changes are lost"),
            file: Some(event.map_or(display, |(file, _)| file).clone()),
            line: event.map(|(_, line)| *line),
            traceback: String::new(),
            hint: Some("end every transaction with COMMIT or ROLLBACK, also after an error".to_owned()),
        }
    }

    /// The script's name, without folder and `.lua`.
    pub fn name(&self) -> &str {
        &self.script.name
    }

    /// The file's opening `---` comment: its first paragraph, on one line.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
}

impl LuaState {
    /// Compiles the script without running it.
    pub fn new(program: &Program, setup: &Setup) -> Result<LuaState, ScriptError> {
        let (entry, entry_name) = match &setup.entry {
            Entry::Thread => ("thread", ""),
            Entry::Function(name) => ("function", name.as_str()),
            Entry::Main => ("main", ""),
            Entry::TopLevel => ("top_level", ""),
            Entry::Declare => ("declare", ""),
            Entry::Reports => ("reports", ""),
        };
        let mut state = LuaState::open(
            &program.script,
            &Opening {
                entry,
                entry_name,
                command: Some(setup.command.as_str()).filter(|command| !command.is_empty()),
                options: Some(&setup.options),
                driver: setup.driver,
                seed: setup.seed,
                sessions: setup.sessions,
                distribution: setup.distribution,
                argv: &setup.argv,
                front: setup.front.clone(),
            },
        )?;
        state.declared = Arc::clone(&program.declared);
        Ok(state)
    }
}

/// Runs a script's top level in a state of its own and reads its declarations; `None` if it uses the database and may.
fn declare(script: &Script, top: &TopLevel) -> Result<Option<Declared>, ScriptError> {
    let mut state = LuaState::open(
        script,
        &Opening {
            entry: "declare",
            entry_name: "",
            command: top.command.as_deref(),
            options: None,
            driver: top.driver,
            seed: 0,
            sessions: 1,
            distribution: Distribution::default(),
            argv: &top.argv,
            front: top.front.clone(),
        },
    )?;
    let slot = state.add_session(0)?;
    let mut pool = RowsPool::default();
    loop {
        let asked = state.advance(slot, Answer::Done, &mut pool);
        match asked {
            // Every session will print this again.
            Ask::Log | Ask::Type | Ask::Expect | Ask::Declare => {}
            Ask::Declared => {
                return state.read_declared(slot).map(Some);
            }
            Ask::Finished => return Ok(Some(Declared::default())),
            Ask::Died | Ask::Stray | Ask::Broken => {
                let Request::Died(failure) = state.request(slot, asked, &mut pool) else {
                    unreachable!("asked to die")
                };
                return Err(ScriptError::from(&failure));
            }
            // Without a command there is only the top level, and it may use the database: `Entry::TopLevel` runs it.
            _ if top.command.is_none() => return Ok(Some(Declared::default())),
            _ if top.may_use_database => return Ok(None),
            _ => {
                let mut error = ScriptError::from_message(
                    "the script uses the database (or waits) at its top level, outside any function",
                    "",
                );
                error.file = Some(script.source.display.clone());
                error.hint = Some("connect in `thread_init()`, or in the function of a command".to_owned());
                return Err(error);
            }
        }
    }
}

/// The first block of `---` lines, if only blank lines and a shebang come before it.
fn describe(text: &str) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for line in text.lines().skip_while(|line| line.starts_with('#') || line.trim().is_empty()) {
        let Some(comment) = line.trim().strip_prefix("---").map(str::trim) else { break };
        if comment.is_empty() {
            break;
        }
        words.extend(comment.split_whitespace());
    }
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_comment_describes_a_script() {
        assert_eq!(
            describe("#!/usr/bin/env assay\n\n--- Reads rows\n--- by key.\n---\n--- More.\nlocal x").as_deref(),
            Some("Reads rows by key.")
        );
        assert_eq!(describe("-- a plain comment\nlocal x"), None);
    }
}
