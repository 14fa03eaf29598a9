//! Options of `assay lab`.

use std::path::PathBuf;

use assay_experiment::ExperimentChoice;
use clap::Args;

use crate::command_line::report::PictureFiles;

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
    /// List the built-in recipes
    List,
    /// Show what an experiment will do and how long it will take
    Plan(RecipeOptions),
    /// Run an experiment, or resume one that was interrupted
    Run(LabRunOptions),
    /// Show the progress of experiments
    Status(LabFolderOptions),
    /// Show the results of an experiment
    Show(LabShowOptions),
    /// Pack an experiment into one archive
    Bundle(LabBundleOptions),
    /// Print the JSON Schema of recipes, for editors
    Schema,
}

/// Which experiment.
#[derive(Args, Clone)]
pub struct RecipeOptions {
    /// Recipe: a TOML file, or the name of a built-in recipe (see `assay lab list`)
    #[arg(value_name = "RECIPE")]
    pub recipe: Option<String>,
    /// Scale of the recipe, such as tiny [default: full, the recipe as written]
    #[arg(long, value_name = "NAME")]
    pub scale: Option<String>,
    /// Override a value of the recipe, such as run.time=10s or trials.count=5; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Without a recipe: the server to start for every trial, such as postgres:15
    #[arg(long, value_name = "PRODUCT:VERSION", conflicts_with = "recipe")]
    pub server: Option<String>,
    /// Without a recipe: a server setting, or the path of a recipe value, with the values to compare; may be repeated
    #[arg(long, value_name = "NAME=VALUE,…", requires = "server", conflicts_with = "recipe")]
    pub vary: Vec<String>,
    /// Without a recipe, after `--`: the workload with its options, as for `assay run`
    #[arg(last = true, value_name = "WORKLOAD", requires = "server", conflicts_with = "recipe")]
    pub words: Vec<String>,
}

impl RecipeOptions {
    /// For the experiment.
    pub fn choice(&self) -> ExperimentChoice {
        let RecipeOptions { recipe, scale, set, server, vary, words } = self.clone();
        ExperimentChoice { recipe, scale, set, server, vary, words, trust: false }
    }
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
    /// Run the recipe in the folder of an experiment or in an unpacked bundle, whose commands others may have written
    #[arg(long)]
    pub trust: bool,
    /// Retry failed trials
    #[arg(long)]
    pub again_failed: bool,
}

/// Options of `lab status`.
#[derive(Args, Clone)]
pub struct LabFolderOptions {
    /// Folder of the experiment [default: all in assay-lab]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// Options of `lab show`.
#[derive(Args, Clone)]
pub struct LabShowOptions {
    /// Folder of the experiment, or a bundle; several from different machines are compared [default: the last one in
    /// assay-lab]
    #[arg(value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// Tables in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// CSV with one row per trial and ladder step, with every metric
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// HTML page with the charts of all records: one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub pictures: PictureFiles,
}

/// Options of `lab bundle`.
#[derive(Args, Clone)]
pub struct LabBundleOptions {
    /// Folder of the experiment [default: the last one in assay-lab]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Archive to write [default: NAME.tar.gz in the current folder]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
