//! Options of `assay lab`.

use std::path::PathBuf;

use clap::Args;

/// Options of `lab`.
#[derive(Args, Clone)]
pub struct LabOptions {
    /// What to do
    #[command(subcommand)]
    pub action: LabAction,
}

/// What can be done with experiments.
#[derive(clap::Subcommand, Clone)]
pub enum LabAction {
    /// List the recipes that come with assay
    List,
    /// Print what an experiment will do, and how long it will take
    Plan(RecipeOptions),
    /// Run an experiment, or go on with one that was interrupted
    Run(LabRunOptions),
    /// Print how far experiments are
    Status(LabFolderOptions),
    /// Print the results of an experiment
    Show(LabShowOptions),
    /// Pack an experiment into one archive
    Bundle(LabBundleOptions),
}

/// Which experiment.
#[derive(Args, Clone)]
pub struct RecipeOptions {
    /// Recipe: a TOML file, or the name of one that comes with assay (see `assay lab list`)
    #[arg(value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// One of the recipe's scales, such as tiny [default: full, the recipe as it stands]
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Set a value of the recipe, such as run.time=10s or trials.count=5; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Without a recipe: the server to start for every trial, such as postgres:15
    #[arg(long, value_name = "PRODUCT:VERSION", conflicts_with = "recipe")]
    pub server: Option<String>,
    /// Without a recipe: a setting of the server, or a path of a recipe, with the values to compare; may be repeated
    #[arg(long, value_name = "NAME=VALUE,…", requires = "server")]
    pub vary: Vec<String>,
    /// Without a recipe, after `--`: the workload with its options, as for `assay run`
    #[arg(last = true, value_name = "WORKLOAD", requires = "server")]
    pub words: Vec<String>,
}

/// Options of `lab run`.
#[derive(Args, Clone)]
pub struct LabRunOptions {
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub recipe: RecipeOptions,
    /// Folder for journal, records and logs [default: assay-lab/NAME-HASH]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Try the cells that failed again
    #[arg(long)]
    pub again_failed: bool,
}

/// Options of `lab status`.
#[derive(Args, Clone)]
pub struct LabFolderOptions {
    /// An experiment's folder [default: all in assay-lab]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// Options of `lab show`.
#[derive(Args, Clone)]
pub struct LabShowOptions {
    /// An experiment's folder, or a bundle [default: the only one in assay-lab]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// A row per trial and step of its ladder, with every metric
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// A page with the charts of all records, in one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Options of `lab bundle`.
#[derive(Args, Clone)]
pub struct LabBundleOptions {
    /// An experiment's folder [default: the only one in assay-lab]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// The archive [default: NAME.tar.gz here]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
