//! Options of the commands that write files to start from: `new`, `lua`, `schema`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `new`.
#[derive(Args, Clone)]
pub struct NewOptions {
    /// What to write
    #[command(subcommand)]
    pub what: NewWhat,
}

/// What can be written.
#[derive(clap::Subcommand, Clone)]
pub enum NewWhat {
    /// Write a workload, NAME.lua: a commented one that runs at once, or a copy of a built-in one
    Workload {
        /// Name: letters, digits and _
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        #[allow(missing_docs, reason = "a doc comment would become help text")]
        how: NewFileOptions,
    },
    /// Write a recipe, NAME.toml, and the schema by which editors check it
    Recipe {
        /// Name: letters, digits, - and _
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        #[allow(missing_docs, reason = "a doc comment would become help text")]
        how: NewFileOptions,
    },
}

/// How a file is written.
#[derive(Args, Clone)]
pub struct NewFileOptions {
    /// Copy this built-in one, such as `queue` (see `assay list`) or `versions` (see `assay lab list`)
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

/// Options of `lua`.
#[derive(Args, Clone)]
pub struct LuaOptions {
    /// What to do
    #[command(subcommand)]
    pub action: LuaAction,
}

/// What can be done for authors of workloads.
#[derive(clap::Subcommand, Clone)]
pub enum LuaAction {
    /// Write types and descriptions of the Lua API for lua-language-server
    Stubs {
        /// Where to write it [default: stdout]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// Options of `schema`.
#[derive(Args, Clone)]
pub struct SchemaOptions {
    /// Which format
    #[arg(value_name = "FORMAT")]
    pub format: SchemaFormat,
}

/// A format with a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaFormat {
    /// Recipes of experiments, for editors
    Recipe,
    /// Records of runs, decompressed
    Record,
    /// Results: `--format json`, and `report --json`
    Findings,
}
