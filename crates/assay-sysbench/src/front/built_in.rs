//! The built-in tests, which need no script.

use assay_options::{OptionDeclaration, OptionKind};

use super::invocation::Invocation;
use super::machine;
use crate::options::{KnownOption, default_of};
use crate::value::ValueKind;

/// A test that is part of the program.
pub(super) struct BuiltInTest {
    /// As on the command line.
    pub(super) name: &'static str,
    /// For the list of tests.
    pub(super) what: &'static str,
    /// Its own options.
    pub(super) options: &'static [KnownOption],
    /// Runs a command other than `help`; returns the exit code.
    pub(super) run: fn(&Invocation, &str) -> u8,
}

/// All of them, in the order of the list.
pub(super) const TESTS: &[BuiltInTest] = &[
    BuiltInTest {
        name: "fileio",
        what: "File I/O test",
        options: machine::fileio::OPTIONS,
        run: machine::fileio::obey,
    },
    BuiltInTest { name: "cpu", what: "CPU performance test", options: machine::cpu::OPTIONS, run: machine::cpu::obey },
    BuiltInTest {
        name: "memory",
        what: "Memory functions speed test",
        options: machine::memory::OPTIONS,
        run: machine::memory::obey,
    },
    BuiltInTest {
        name: "threads",
        what: "Threads subsystem performance test",
        options: machine::threads::OPTIONS,
        run: machine::threads::obey,
    },
    BuiltInTest {
        name: "mutex",
        what: "Mutex performance test",
        options: machine::mutex::OPTIONS,
        run: machine::mutex::obey,
    },
];

/// A known option as if a script had declared it.
pub(super) fn declaration(known: &KnownOption) -> OptionDeclaration {
    let kind = match known.kind {
        ValueKind::Bool => OptionKind::Bool,
        ValueKind::Int => OptionKind::Int,
        ValueKind::Double => OptionKind::Double,
        ValueKind::Size | ValueKind::Bytes => OptionKind::Size,
        ValueKind::List => OptionKind::List,
        ValueKind::Text | ValueKind::SwitchOrText => OptionKind::Text,
        ValueKind::File => OptionKind::File,
    };
    OptionDeclaration {
        name: known.name.to_owned(),
        description: known.help.to_owned(),
        kind,
        choices: Vec::new(),
        unused: false,
        bounds: assay_options::Bounds::default(),
        default: default_of(known),
    }
}
