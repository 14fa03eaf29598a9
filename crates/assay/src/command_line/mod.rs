//! The command line: fixed options, declared in a file for each subject, and options declared by the workload.
//!
//! Parsing takes two passes. The first only finds the workload; its script is loaded, and its declarations become real
//! options of the subcommand: listed by `--help`, typed, refused with the nearest name if misspelled. The second pass
//! is clap's; `mistakes` rewords its errors. `-` and `_` mean the same in option names.

mod bisect;
mod compare;
mod conversion;
mod db;
mod fleet;
mod generator;
pub mod help;
mod io;
mod lab;
mod load;
mod mistakes;
mod new;
mod olap;
mod options;
mod records;
mod report;
mod run;
mod server;
mod shared;
mod sql;
mod target;
mod top;

pub use bisect::*;
pub use compare::*;
pub use db::*;
pub use fleet::*;
pub use generator::*;
pub use io::IoOptions;
pub use lab::*;
pub use load::*;
pub use new::*;
pub use olap::OlapOptions;
pub use options::*;
pub use records::*;
pub use report::*;
pub use run::*;
pub use server::*;
pub use shared::ResultOptions;
pub use sql::SqlOptions;
pub use target::*;
pub use top::*;

use std::ffi::OsString;
use std::sync::Arc;

use assay_options::{OptionDeclaration, OptionKind, OptionValue};
use assay_process::diagnostics::Trouble;
use assay_process::terminal;
use assay_script::Program;
use assay_spec::{RunSpec, values};
use clap::builder::StyledStr;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches};

use assay_run::assignment::{self, Assignment, option_value, shown, taken};
use assay_run::trust::Asked;
use assay_run::{library, registry};

use crate::databases;
use mistakes::explain;
use options::CommandLine;

/// A parsed command line.
pub struct Invocation {
    /// What to do.
    pub subcommand: Subcommand,
    /// What to do with a workload, for subcommands that take one.
    pub assignment: Option<Assignment>,
    /// The arguments as given, starting with the program's name, passwords masked.
    pub words: Vec<String>,
    /// Names of the options of `assay run` that were given.
    pub given: Vec<String>,
}

/// The arguments for a front such as `sysbench`, starting with its name: those after `assay sysbench`, or all of them
/// if the program is called `sysbench`. `None`: another command line.
pub fn words_of(front: &str, words: impl IntoIterator<Item = OsString>) -> Result<Option<Vec<String>>, Trouble> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let called = |word: &OsString| std::path::Path::new(word).file_name().is_some_and(|name| name == front);
    if !words.first().is_some_and(called) {
        if words.get(1).is_none_or(|word| word != front) {
            return Ok(None);
        }
        words.remove(0);
    }
    let text = |word: OsString| word.into_string().map_err(|word| word.display().to_string());
    let words: Result<Vec<String>, String> = words.into_iter().map(text).collect();
    words.map(Some).map_err(|word| Trouble::usage(format!("{word} is not UTF-8")))
}

/// Parses a command line that starts with the program's name. `Ok(None)`: it asked for help or the version, which was
/// printed.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Option<Invocation>, Trouble> {
    let invocation = read(words)?;
    if let Some(assignment) = invocation.as_ref().and_then(|invocation| invocation.assignment.as_ref()) {
        assignment.check()?;
    }
    Ok(invocation)
}

/// The same without checking whether the options fit together.
pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Option<Invocation>, Trouble> {
    let text = |word: OsString| word.into_string();
    let words: Result<Vec<String>, OsString> = words.into_iter().map(text).collect();
    let words = words.map_err(|word| Trouble::usage(format!("{} is not UTF-8", word.display())))?;
    let words: Vec<String> = words.iter().map(|word| with_hyphens(word)).collect();
    let words = databases::with_urls(with_negative_values(asking_for_help(words)))?;
    let mut command = help::with_examples(CommandLine::command());
    if words.iter().any(|word| word == "-h") {
        command = help::brief(command);
    }
    let found = find_workload(&command, &words)?;
    let mut declared = Vec::new();
    let mut words_now = words.clone();
    if let Some(found) = &found {
        declared = addable(&command, &found.subcommand, found.program.options());
        let mut needed = found.program.needed().iter();
        if let Some((name, place)) = needed.find(|(name, _)| !declared.iter().any(|option| option.key() == *name)) {
            return Err(Trouble::usage(taken(name, place)));
        }
        words_now = with_switch_values(words_now, &declared);
        command = with_options_of(command, found, &declared);
    }
    let matches = match command.try_get_matches_from_mut(&words_now) {
        Ok(matches) => matches,
        Err(error) => {
            let of = found.as_ref().map(|found| found.name.as_str());
            return explain(&error, &command, of, &words).map(|()| None);
        }
    };
    let parsed = CommandLine::from_arg_matches(&matches).map_err(|error| Trouble::usage(error.to_string()))?;
    let words = assay_record::without_secrets(&words);
    let (mut assignment, mut names) = (None, Vec::new());
    if let Some((Found { subcommand, name, program, base }, mut spec)) = found.zip(parsed.subcommand.spec()) {
        let matches = matches.subcommand_matches(&subcommand).expect("the subcommand was found by name");
        names = given_names(&command, &subcommand, matches);
        spec.workload.options.extend(given(matches, &declared));
        spec.workload.name = name;
        let is_own = base.is_none();
        if let Some(base) = base {
            spec = base.with_options_of(&spec, &names);
            databases::with_passwords(&mut spec.target.urls)?;
            spec.check_passwords()?;
        }
        // The words of a run that repeats another do not say what it does.
        let own = || ["assay".to_owned()].into_iter().chain(spec.words()).collect();
        let words = if is_own { words.clone() } else { own() };
        assignment = Some(Assignment::new(spec, program, words)?);
    }
    Ok(Some(Invocation { subcommand: parsed.subcommand, assignment, words, given: names }))
}

/// All commands, with the options of the built-in workload that the words name. Scripts of users are not executed for
/// that, and databases are not looked up.
pub fn definition_of(words: &[String]) -> clap::Command {
    let command = definition();
    let is_builtin = |word: &&String| assay_workloads::builtin().iter().any(|one| one.runnable && one.name == **word);
    let named: Vec<String> = words.iter().take(2).chain(words.iter().skip(2).find(is_builtin)).cloned().collect();
    match find_workload(&command, &named) {
        Ok(Some(found)) if named.len() == 3 => {
            let declared = addable(&command, &found.subcommand, found.program.options());
            with_options_of(command, &found, &declared)
        }
        _ => command,
    }
}

/// A command with the options that a workload declares.
fn with_options_of(command: clap::Command, found: &Found, declared: &[OptionDeclaration]) -> clap::Command {
    let heading = format!("Options of {}", found.name);
    command.mut_subcommand(&found.subcommand, |command| {
        command.next_help_heading(heading).args(declared.iter().map(workload_argument))
    })
}

/// Names of the options that were given.
fn given_names(command: &clap::Command, subcommand: &str, matches: &ArgMatches) -> Vec<String> {
    let arguments = command.find_subcommand(subcommand).into_iter().flat_map(clap::Command::get_arguments);
    let is_given = |argument: &&Arg| {
        matches.try_contains_id(argument.get_id().as_str()).is_ok_and(|known| known)
            && matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    arguments.filter(is_given).filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

/// `help run tpcc` is `run tpcc --help`.
fn asking_for_help(mut words: Vec<String>) -> Vec<String> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".to_owned());
    }
    words
}

/// `--table_size=5` is `--table-size=5`.
fn with_hyphens(word: &str) -> String {
    // A whole command line in one argument, as for `duel`, is not an option.
    let end = word.find(['=', ' ']).unwrap_or(word.len());
    if word.starts_with("--") { word[..end].replace('_', "-") + &word[end..] } else { word.to_owned() }
}

/// `--time -5s` is `--time=-5s`: the value is refused, not an unknown option.
fn with_negative_values(words: Vec<String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        let is_negative = word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        match joined.last_mut().filter(|before| is_negative && before.starts_with("--") && !before.contains(['=', ' ']))
        {
            Some(before) => before.push_str(&format!("={word}")),
            None => joined.push(word),
        }
    }
    joined
}

/// A workload that a command line names, loaded.
struct Found {
    /// The subcommand's name.
    subcommand: String,
    /// The workload's name.
    name: String,
    program: Arc<Program>,
    /// The spec to which options are added; `None`: the options are everything.
    base: Option<RunSpec>,
}

/// Whether a workload's name is the path of a script.
fn is_path(name: &str) -> bool {
    name.contains('/') || [".lua", ".sql"].iter().any(|ending| name.ends_with(ending))
}

/// The workload that `words` name; `None` if they name none.
fn find_workload(command: &clap::Command, words: &[String]) -> Result<Option<Found>, Trouble> {
    let Some(subcommand) = words.get(1).and_then(|name| command.find_subcommand(name)) else { return Ok(None) };
    if !subcommand.get_arguments().any(|argument| argument.get_id() == "workload") {
        return Ok(None);
    }
    let mut names = Vec::new();
    let (mut database, mut base, mut again, mut moved) = (None, None, None, None);
    let mut rest = words[2..].iter();
    while let Some(word) = rest.next() {
        let Some(option) = word.strip_prefix("--") else {
            // `-v` and `-h` are no names.
            names.extend(Some(word.as_str()).filter(|word| !word.starts_with('-')));
            continue;
        };
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let fixed = subcommand.get_arguments().find(|argument| argument.get_long() == Some(name));
        // One that needs `=` has no value in the next word.
        let takes_value =
            fixed.is_some_and(|argument| argument.get_action().takes_values() && !argument.is_require_equals_set());
        let value = value.or_else(|| if takes_value { rest.next().map(String::as_str) } else { None });
        if name == "db" {
            database = database.or(value.map(str::to_owned));
        }
        if name == "server" {
            // An unknown product is refused when the server is started.
            let product = value.and_then(|value| value.split(':').next());
            let known = product.filter(|name| assay_products::products().product(name).is_ok());
            database = database.or(known.map(assay_products::url_of_product));
        }
        if name == "workload" && fixed.is_some() {
            moved = moved.or(value);
        }
        base = match (name, value) {
            ("again", Some(path)) if base.is_none() => {
                again = Some(path);
                Some((path, assignment::recorded(path.as_ref())?))
            }
            ("spec", Some(path)) if base.is_none() => Some((path, assignment::written(path.as_ref())?)),
            _ => base,
        };
    }
    if let (Some(moved), None) = (moved, &base) {
        return Err(Trouble::usage("--workload says where the script of --again RECORD is now")
            .hint(format!("without a record, write it without an option: assay run {moved}")));
    }
    if let Some((path, mut base)) = base {
        if let (Some(record), Some(script)) =
            (again, names.iter().find(|name| library::is_script(name) || is_path(name)))
        {
            return Err(Trouble::usage(format!("--again {record} says itself what to run: {}", base.workload.name))
                .hint(format!("if that script is now {script}: assay run --again {record} --workload {script}")));
        }
        if let Some(moved) = moved {
            moved.clone_into(&mut base.workload.name);
        }
        let (subcommand, name) = (subcommand.get_name().to_owned(), base.workload.name.clone());
        if let Some(record) = again.filter(|_| is_path(&name) && !std::path::Path::new(&name).is_file()) {
            return Err(Trouble::environment(match moved {
                Some(moved) => format!("--workload {moved}: there is no such file"),
                None => format!("{record} repeats {name}, which is not there"),
            })
            .hint(format!("name it where it is now: assay run --again {record} --workload PATH")));
        }
        trusted(path, &base, words)?;
        let driver = assignment::dialect(&base, database)?;
        let words: Vec<String> = ["assay".to_owned()].into_iter().chain(base.words()).collect();
        let program = Arc::new(library::load(&name, &base.task, &words, driver)?);
        return Ok(Some(Found { subcommand, name, program, base: Some(base) }));
    }
    // An option's value may come before the name (`--tables 4 oltp_read_only`), and only the workload knows which
    // options take one. So it is the first argument that names a workload or, if none does, the first argument.
    let Some(name) = names.iter().find(|name| library::is_script(name)).or(names.first()) else { return Ok(None) };
    let driver = match database {
        Some(url) => registry::driver_of(&url)?.dialect,
        None => assay_products::EMBEDDED.dialect,
    };
    if let Some(file) = library::library().passed_over(name) {
        terminal::say(&format!("{name} is the built-in workload here; to run the file of this folder, write {file}\n"));
    }
    let program = Arc::new(library::load(name, subcommand.get_name(), words, driver)?);
    let (subcommand, name) = (subcommand.get_name().to_owned(), (*name).to_owned());
    Ok(Some(Found { subcommand, name, program, base: None }))
}

/// Refuses a spec that asks to execute something, unless the words say that it is trusted.
fn trusted(path: &str, spec: &RunSpec, words: &[String]) -> Result<(), Trouble> {
    let is_given = |name: &str| {
        let option = |word: &String| word.strip_prefix("--").map(|word| word.split('=').next() == Some(name));
        words.iter().filter_map(option).any(|is_it| is_it)
    };
    // Whoever only looks at a spec executes nothing but its script.
    let is_shown = is_given("print-spec");
    let asked = match is_shown {
        true => Asked::by_spec(spec, |option| option != "workload" || is_given(option)),
        false => Asked::by_spec(spec, is_given),
    };
    asked.check(if path == "-" { "the spec" } else { path }, is_given("trust"))
}

/// The workload's options that do not hide a fixed one (scripts written for sysbench sometimes declare `threads`).
fn addable(command: &clap::Command, subcommand: &str, options: &[OptionDeclaration]) -> Vec<OptionDeclaration> {
    let subcommand = command.find_subcommand(subcommand).expect("it was found before");
    let fixed = |name: &str| name == "help" || subcommand.get_arguments().any(|fixed| fixed.get_long() == Some(name));
    options.iter().filter(|option| !fixed(&long_name(option))).cloned().collect()
}

/// More choices than these are left to the description.
const CHOICES_SHOWN: usize = 4;

fn long_name(option: &OptionDeclaration) -> String {
    option.name.replace('_', "-")
}

fn workload_argument(option: &OptionDeclaration) -> Arg {
    let (kind, name, declared) = (option.kind, long_name(option), option.clone());
    let value_name = match kind {
        OptionKind::Bool => "on|off".to_owned(),
        OptionKind::Int | OptionKind::Double => "N".to_owned(),
        OptionKind::Size => "BYTES".to_owned(),
        OptionKind::Text if (1..=CHOICES_SHOWN).contains(&option.choices.len()) => option.choices.join("|"),
        OptionKind::Text => "TEXT".to_owned(),
        OptionKind::File => "FILE".to_owned(),
        OptionKind::List => "A,B,…".to_owned(),
    };
    let default = match shown(&option.default) {
        text if text.is_empty() => text,
        text => format!(" [default: {text}]"),
    };
    let argument = Arg::new(option.key())
        .long(name)
        .value_name(value_name)
        .help(StyledStr::from(format!("{}{default}", option.description)))
        .action(ArgAction::Set)
        .hide(option.unused)
        .overrides_with(option.key())
        .value_parser(move |text: &str| option_value(&declared, text));
    match kind {
        OptionKind::Bool => argument.num_args(0..=1).require_equals(true).default_missing_value("on"),
        OptionKind::Int | OptionKind::Double => argument.allow_negative_numbers(true),
        _ => argument,
    }
}

/// A switch may have no value, so clap cannot tell whether the next argument is its value: `--skip-trx off` becomes
/// `--skip-trx=off` here, and `--skip-trx oltp_read_only` remains two arguments.
fn with_switch_values(words: Vec<String>, declared: &[OptionDeclaration]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        let before = joined.last().and_then(|before| before.strip_prefix("--"));
        let option = before.and_then(|name| declared.iter().find(|option| long_name(option) == name));
        match option {
            Some(option) if option.kind == OptionKind::Bool && values::switch(&word).is_ok() => {
                joined.last_mut().expect("it has an option").push_str(&format!("={word}"));
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// The workload options that the user gave.
fn given(matches: &ArgMatches, declared: &[OptionDeclaration]) -> Vec<(String, OptionValue)> {
    let value = |option: &OptionDeclaration| matches.get_one::<OptionValue>(&option.key()).cloned();
    declared.iter().filter_map(|option| Some((option.key(), value(option)?))).collect()
}
