//! Lists of options, and the general help text.

use assay_options::{OptionDeclaration, OptionValue};

use crate::options::{DATABASE, DRIVERS, GENERAL, KnownOption, LATENCY, LOG, RANDOM};
use crate::value::ValueKind;

/// A list of options: names in a column of equal width, descriptions, defaults in brackets.
pub fn list(options: &[KnownOption]) -> String {
    let left = |known: &KnownOption| format!("--{}{}", known.name, known.kind.mark());
    let width = options.iter().map(|known| left(known).len()).max().unwrap_or(0);
    options
        .iter()
        .map(|known| {
            let default = known.default.map(|default| format!(" [{default}]")).unwrap_or_default();
            format!("  {:<width$} {}{default}\n", left(known), known.help)
        })
        .collect()
}

/// Help for the options that a script declares.
pub fn declared(options: &[OptionDeclaration]) -> String {
    let left = |option: &OptionDeclaration| format!("--{}{}", option.name, ValueKind::from(option.kind).mark());
    let width = options.iter().map(|option| left(option).len()).max().unwrap_or(0);
    options
        .iter()
        .map(|option| {
            let default = shown(&option.default).map(|default| format!(" [{default}]")).unwrap_or_default();
            format!("  {:<width$} {}{default}\n", left(option), option.description)
        })
        .collect()
}

/// A default, if there is anything to show.
fn shown(default: &OptionValue) -> Option<String> {
    match default {
        OptionValue::None => None,
        OptionValue::Bool(on) => Some(if *on { "on" } else { "off" }.to_owned()),
        OptionValue::Number(number) => Some(number.to_string()),
        OptionValue::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        OptionValue::List(list) => Some(list.join(",")).filter(|text| !text.is_empty()),
    }
}

/// The output of `--help`. `tests`: names of the built-in tests and their descriptions.
pub fn general(tests: &[(&str, &str)]) -> String {
    let mut text = "Usage:\n  sysbench [options]... [testname] [command]\n\n\
                    Commands implemented by most tests: prepare run cleanup help\n\n"
        .to_owned();
    for (title, groups) in [
        ("General options:\n", &[GENERAL][..]),
        ("Pseudo-Random Numbers Generator options:\n", &[RANDOM]),
        ("Log options:\n", &[LOG, LATENCY]),
        ("General database options:\n\n", &[DATABASE]),
    ] {
        text += title;
        for group in groups {
            text += &list(group);
            text += "\n";
        }
    }
    text += "\nCompiled-in database drivers:\n";
    for driver in DRIVERS {
        text += &format!("  {} - {}\n", driver.name, driver.help);
    }
    text += "\n";
    for driver in DRIVERS {
        text += &format!("{} options:\n{}\n", driver.name, list(driver.options));
    }
    if !tests.is_empty() {
        text += "Compiled-in tests:\n";
        for (name, what) in tests {
            text += &format!("  {name} - {what}\n");
        }
        text += "\n";
    }
    text + "See 'sysbench <testname> help' for a list of options for each test.\n\n"
}
