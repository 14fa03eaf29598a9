//! What a script declares at its top level: options and commands.
//!
//! Typing follows sysbench: a default's Lua type decides, or an explicit `sysbench.cmdline.ARG_*`. Parsing is more
//! generous in one point: any number may carry a size suffix (`--table-size=1M`).

/// An entry of `sysbench.cmdline.options`.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionDeclaration {
    /// As declared; `-` and `_` mean the same. `key` is the canonical form.
    pub name: String,
    /// The help text.
    pub description: String,
    /// How values are read.
    pub kind: OptionKind,
    /// What the script sees when the user says nothing. `None`: no default was declared.
    pub default: OptionValue,
}

/// How an option's text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// No value, `on`, `true`, `1`; `off`, `false`, `0`.
    Bool,
    /// A whole number of 32 bits.
    Int,
    /// A number.
    Double,
    /// Bytes.
    Size,
    /// Anything.
    Text,
    /// Comma-separated.
    List,
}

/// A value as scripts see it in `sysbench.opt`.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum OptionValue {
    /// `nil`.
    #[default]
    None,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array of strings.
    List(Vec<String>),
}

/// An entry of `sysbench.cmdline.commands` that holds a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandDeclaration {
    /// As on the command line.
    pub name: String,
    /// Runs in every session (`sysbench.cmdline.PARALLEL_COMMAND`); else in one.
    pub parallel: bool,
}

/// A text that is no value of its option's kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct InvalidValue {
    /// What was given.
    pub text: String,
    /// What would have been right: "a whole number", …
    pub wanted: &'static str,
}

impl OptionDeclaration {
    /// The name with `_` for `-`: the key in `sysbench.opt`.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }
}

impl OptionKind {
    /// Reads the value of `--name=text`, or of a bare `--name` when `text` is `None`.
    pub fn parse(self, text: Option<&str>) -> Result<OptionValue, InvalidValue> {
        let _ = text;
        todo!()
    }
}
