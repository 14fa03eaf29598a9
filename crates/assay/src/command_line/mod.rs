//! The command line: fixed options, declared in a file for each subject, and options declared by the workload.
//!
//! Parsing takes two passes. The first only finds the workload; its script is loaded, and its declarations become real
//! options of the subcommand: listed by `--help`, typed, refused with the nearest name if misspelled. The second pass
//! is clap's; `mistakes` rewords its errors. `-` and `_` mean the same in option names.

mod compare;
mod fleet;
mod generator;
mod io;
mod lab;
mod load;
mod mistakes;
mod options;
mod report;
mod run;
mod server;
mod shared;
mod sql;
mod target;
mod workload;

pub use compare::*;
pub use fleet::*;
pub use generator::*;
pub use io::IoOptions;
pub use lab::*;
pub use load::*;
pub use options::*;
pub use report::*;
pub use run::*;
pub use server::*;
pub use shared::{Format, ResultOptions, tag};
pub use sql::SqlOptions;
pub use target::*;
pub use workload::Workload;

use std::ffi::OsString;
use std::sync::Arc;

use assay_options::{OptionDeclaration, OptionKind, OptionValue};
use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches};

use crate::diagnostics::Trouble;
use crate::{library, registry, values};
use mistakes::explain;
use options::CommandLine;
use workload::shown;

/// A parsed command line.
pub struct Invocation {
    /// What to do.
    pub subcommand: Subcommand,
    /// The workload, for subcommands that take one.
    pub workload: Option<Workload>,
    /// The arguments as given, starting with the program's name, passwords masked.
    pub words: Vec<String>,
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
    let text = |word: OsString| word.into_string();
    let words: Result<Vec<String>, OsString> = words.into_iter().map(text).collect();
    let words = words.map_err(|word| Trouble::usage(format!("{} is not UTF-8", word.display())))?;
    let words: Vec<String> = words.iter().map(|word| with_hyphens(word)).collect();
    let words = with_negative_values(asking_for_help(words));
    let mut command = CommandLine::command();
    let found = find_workload(&command, &words)?;
    let mut declared = Vec::new();
    let mut words_now = words.clone();
    if let Some((subcommand, workload)) = &found {
        declared = addable(&command, subcommand, workload.program.options());
        words_now = with_switch_values(words_now, &declared);
        let heading = format!("Options of {}", workload.name);
        command = command.mut_subcommand(subcommand, |command| {
            command.next_help_heading(heading).args(declared.iter().map(workload_argument))
        });
    }
    let matches = match command.try_get_matches_from_mut(&words_now) {
        Ok(matches) => matches,
        Err(error) => {
            let of = found.as_ref().map(|(_, workload)| workload.name.as_str());
            return explain(&error, &command, of, &words).map(|()| None);
        }
    };
    let parsed = CommandLine::from_arg_matches(&matches).map_err(|error| Trouble::usage(error.to_string()))?;
    let workload = found.map(|(subcommand, workload)| {
        let matches = matches.subcommand_matches(&subcommand).expect("the subcommand was found by name");
        Workload { given: given(matches, &declared), ..workload }
    });
    Ok(Some(Invocation { subcommand: parsed.subcommand, workload, words: assay_record::without_secrets(&words) }))
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

/// The subcommand's name and the workload that `words` name, loaded; `None` if they name none.
fn find_workload(command: &clap::Command, words: &[String]) -> Result<Option<(String, Workload)>, Trouble> {
    let Some(subcommand) = words.get(1).and_then(|name| command.find_subcommand(name)) else { return Ok(None) };
    if !subcommand.get_arguments().any(|argument| argument.get_id() == "workload") {
        return Ok(None);
    }
    let mut names = Vec::new();
    let mut database = None;
    let mut rest = words[2..].iter();
    while let Some(word) = rest.next() {
        let Some(option) = word.strip_prefix("--") else {
            // `-v` and `-h` are no names.
            names.extend(Some(word.as_str()).filter(|word| !word.starts_with('-')));
            continue;
        };
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let fixed = subcommand.get_arguments().find(|argument| argument.get_long() == Some(name));
        let takes_value = fixed.is_some_and(|argument| argument.get_action().takes_values());
        let value = value.or_else(|| if takes_value { rest.next().map(String::as_str) } else { None });
        if name == "db" {
            database = database.or(value.map(str::to_owned));
        }
        if name == "server" {
            // A product is also a scheme; an invalid one is refused when the server is started.
            let product = value.and_then(|value| value.split(':').next());
            let known = product.filter(|name| assay_lab::binaries::product(name).is_ok());
            database = database.or(known.map(|name| format!("{name}:")));
        }
    }
    // An option's value may come before the name (`--tables 4 oltp_read_only`), and only the workload knows which
    // options take one. So it is the first argument that names a workload or, if none does, the first argument.
    let Some(name) = names.iter().find(|name| library::is_script(name)).or(names.first()) else { return Ok(None) };
    let driver = match database {
        Some(url) => registry::driver_of(&url)?.dialect,
        None => registry::EMBEDDED.dialect,
    };
    let program = library::load(name, subcommand.get_name(), words, driver)?;
    let workload = Workload { name: (*name).to_owned(), program: Arc::new(program), given: Vec::new() };
    Ok(Some((subcommand.get_name().to_owned(), workload)))
}

/// The workload's options that do not hide a fixed one (scripts written for sysbench sometimes declare `threads`).
fn addable(command: &clap::Command, subcommand: &str, options: &[OptionDeclaration]) -> Vec<OptionDeclaration> {
    let subcommand = command.find_subcommand(subcommand).expect("it was found before");
    let fixed = |name: &str| name == "help" || subcommand.get_arguments().any(|fixed| fixed.get_long() == Some(name));
    options.iter().filter(|option| !fixed(&long_name(option))).cloned().collect()
}

fn long_name(option: &OptionDeclaration) -> String {
    option.name.replace('_', "-")
}

fn workload_argument(option: &OptionDeclaration) -> Arg {
    let (kind, name) = (option.kind, long_name(option));
    let value_name = match kind {
        OptionKind::Bool => "on|off",
        OptionKind::Int | OptionKind::Double => "N",
        OptionKind::Size => "BYTES",
        OptionKind::Text => "TEXT",
        OptionKind::File => "FILE",
        OptionKind::List => "A,B,…",
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
        .overrides_with(option.key())
        .value_parser(move |text: &str| option_value(kind, text));
    match kind {
        OptionKind::Bool => argument.num_args(0..=1).require_equals(true).default_missing_value("on"),
        OptionKind::Int | OptionKind::Double => argument.allow_negative_numbers(true),
        _ => argument,
    }
}

/// Parses a workload option. An empty value clears it, as sysbench scripts expect.
fn option_value(kind: OptionKind, text: &str) -> Result<OptionValue, String> {
    Ok(match kind {
        OptionKind::Bool => OptionValue::Bool(values::switch(text)?),
        OptionKind::Int | OptionKind::Double | OptionKind::Size if text.is_empty() => OptionValue::Number(0.0),
        OptionKind::Int => OptionValue::Number(values::integer(text)? as f64),
        OptionKind::Double => OptionValue::Number(values::number(text)?),
        OptionKind::Size => OptionValue::Number(values::size(text)? as f64),
        OptionKind::Text => OptionValue::Text(text.to_owned()),
        OptionKind::File => OptionValue::None,
        OptionKind::List => {
            OptionValue::List(text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect())
        }
    })
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
