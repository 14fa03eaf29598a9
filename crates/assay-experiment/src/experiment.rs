//! Finds the experiment: a recipe by file or name, or the arguments of the command line.

use std::path::Path;

use assay_process::diagnostics::{Trouble, nearest};
use assay_process::{interrupt, url_text};
use assay_recipe::{Action, Recipe, RecipeError, from_words, is_url, shipped, value_with_urls, with_urls};
use assay_run::assignment::Assignment;
use assay_run::trust::Asked;
use assay_spec::RunSpec;

use crate::arguments::{ArgumentParser, WorkloadArguments};

/// The journal in the folder of an experiment.
pub(crate) const JOURNAL: &str = "journal.jsonl";

/// What the user asks for: a recipe, or a server with what varies and a workload.
#[derive(Clone, Debug, Default)]
pub struct ExperimentChoice {
    /// A file, or the name of a built-in recipe.
    pub recipe: Option<String>,
    /// A scale of the recipe.
    pub scale: Option<String>,
    /// Values of the recipe to override: `PATH=VALUE`.
    pub set: Vec<String>,
    /// Without a recipe: `PRODUCT:VERSION` of the server.
    pub server: Option<String>,
    /// Without a recipe: `NAME=VALUE,VALUE`.
    pub vary: Vec<String>,
    /// Without a recipe: the workload with its options.
    pub words: Vec<String>,
    /// Run a recipe that is not the user's own.
    pub trust: bool,
}

/// A recipe and its origin.
pub struct Experiment {
    /// Name for the folder: the file's name without its ending, or the recipe's own.
    pub name: String,
    /// Where its text is from: `sorts.toml`, `recipe tuning`.
    place: String,
    /// What it says.
    pub recipe: Recipe,
}

impl Experiment {
    /// The one that the command line requests.
    pub fn of(choice: &ExperimentChoice, parser: &dyn ArgumentParser) -> Result<Experiment, Trouble> {
        let (name, place, text) = match (&choice.recipe, &choice.server) {
            (Some(recipe), _) => found(recipe)?,
            (None, Some(server)) => {
                ("command-line".to_owned(), "the command line".to_owned(), made(server, choice, parser)?)
            }
            (None, None) => {
                return Err(Trouble::usage("no recipe given").hint("`assay lab list` shows the built-in recipes"));
            }
        };
        let sets = choice.set.iter().map(|set| {
            let (path, value) =
                set.split_once('=').ok_or_else(|| Trouble::usage(format!("--set {set} is not PATH=VALUE")))?;
            let value = match is_url(path.trim()) {
                true => value_with_urls(value, &|word| parser.database(word))?,
                false => value.to_owned(),
            };
            Ok((path.to_owned(), value))
        });
        let sets = sets.collect::<Result<Vec<_>, Trouble>>()?;
        // Before anything else sees them, so that an experiment is one of a database, whatever its name is.
        let text = with_urls(&text, &|word| parser.database(word))?;
        let recipe = Recipe::read(&text, choice.scale.as_deref(), &sets).map_err(|error| trouble(&error, &place))?;
        Ok(Experiment { name, place, recipe })
    }

    /// Refuses a recipe that was copied with the results of an experiment, perhaps of somebody else, and asks to
    /// execute something, unless it is trusted. A recipe elsewhere was chosen by the user, like a script.
    pub fn check_trust(&self, is_trusted: bool) -> Result<(), Trouble> {
        let path = Path::new(&self.place);
        if !path.is_file() || !path.with_file_name(JOURNAL).is_file() {
            return Ok(());
        }
        let mut asked = Asked::default();
        for step in &self.recipe.steps {
            match &step.action {
                Action::Command(line) => asked.command("a step", line),
                Action::Sql(all) => all.iter().for_each(|sql| asked.statement(sql)),
                _ => {}
            }
        }
        let servers = self.recipe.cells.iter().flat_map(|cell| cell.setup.server.values());
        for server in servers {
            server.binaries.iter().for_each(|path| asked.program(Path::new(path)));
            server.config.iter().for_each(|path| asked.file("the configuration file", Path::new(path)));
            server.url.iter().for_each(|url| asked.url(url));
            server.settings.iter().for_each(|(name, value)| asked.setting(name, &value.0));
        }
        for run in self.recipe.cells.iter().map(|cell| &cell.setup.run) {
            run.workload.split_whitespace().next().into_iter().for_each(|name| asked.script(name));
            run.session_sql.iter().for_each(|sql| asked.statement(sql));
        }
        asked.once().check(&self.place, is_trusted)
    }

    /// A trouble with the place of the key that causes it.
    pub fn located(&self, wrong: WrongKey) -> Trouble {
        let WrongKey { key, trouble } = wrong;
        let key: Vec<&str> = key.iter().map(String::as_str).collect();
        match self.recipe.place(&key) {
            Some((line, column)) => {
                let mut details = vec![format!("{}:{line}:{column}: {}", self.place, key.join("."))];
                details.extend(trouble.details);
                Trouble { details, ..trouble }
            }
            None => trouble,
        }
    }
}

/// Whether Ctrl-C or SIGTERM has arrived.
pub(crate) fn interrupted() -> Trouble {
    Trouble::new(interrupt::exit(), "interrupted")
}

/// An error when somebody has interrupted us.
pub(crate) fn stopped() -> Result<(), Trouble> {
    if interrupt::control().is_stopped() { Err(interrupted()) } else { Ok(()) }
}

/// What is wrong with the value of a key.
#[derive(Clone)]
pub struct WrongKey {
    /// `run`, `time`.
    pub key: Vec<String>,
    /// What to say about it.
    pub trouble: Trouble,
}

/// Name, path and text of a recipe: a file, or a built-in one.
fn found(recipe: &str) -> Result<(String, String, String), Trouble> {
    let path = Path::new(recipe);
    if path.is_file() {
        let text = assay_record::read_text(path, assay_record::WRITTEN_BYTES_MAX)
            .map_err(|error| Trouble::environment(format!("cannot read {recipe}: {error}")))?;
        let name = path.file_stem().map_or(recipe.into(), |stem| stem.to_string_lossy().into_owned());
        return Ok((name, recipe.to_owned(), text));
    }
    let own = shipped().iter().find(|(name, _)| *name == recipe);
    own.map(|(name, text)| ((*name).to_owned(), format!("recipe {name}"), (*text).to_owned())).ok_or_else(|| {
        let trouble = Trouble::usage(format!("{recipe} is neither a file nor a built-in recipe"));
        match nearest(recipe, shipped().iter().map(|(name, _)| *name)) {
            Some(near) => trouble.hint(format!("did you mean {near}?")),
            None => trouble.hint("`assay lab list` shows the built-in recipes"),
        }
    })
}

/// An error in a recipe, with its position.
pub(crate) fn trouble(error: &RecipeError, place: &str) -> Trouble {
    let trouble = Trouble::usage(format!("cannot use {place}"));
    let words = assay_record::text_without_secrets(&error.to_string());
    let trouble = match error.place {
        Some((line, column)) => trouble.detail(format!("{place}:{line}:{column}: {words}")),
        None => trouble.detail(words),
    };
    match &error.hint {
        Some(hint) => trouble.hint(hint.clone()),
        None => trouble,
    }
}

/// The recipe that corresponds to the arguments.
fn made(server: &str, choice: &ExperimentChoice, parser: &dyn ArgumentParser) -> Result<String, Trouble> {
    if choice.words.is_empty() {
        return Err(Trouble::usage("no workload given").hint(
            "write it after `--`, as for `assay run`: assay lab run --server postgres:15 -- tpcc --warehouses 1",
        ));
    }
    let factors = choice.vary.iter().map(|vary| {
        let (path, levels) =
            vary.split_once('=').ok_or_else(|| Trouble::usage(format!("--vary {vary} is not SETTING=LEVEL,LEVEL")))?;
        Ok((path.to_owned(), levels.split(',').map(str::to_owned).collect::<Vec<_>>()))
    });
    let factors = factors.collect::<Result<Vec<_>, Trouble>>()?;
    let line = ["assay", "run"].map(str::to_owned).into_iter().chain(choice.words.iter().cloned());
    let line = line.chain([format!("--db={}", assay_products::url_of_product(server))]);
    let Some(WorkloadArguments { assignment, .. }) = parser.workload(line.collect())? else {
        return Err(Trouble::usage("the words after `--` do not start with a workload"));
    };
    assignment.check()?;
    let Assignment { spec, workload, .. } = &assignment;
    let prepare = workload.has_command("prepare").then(|| {
        let words = RunSpec { workload: spec.workload.clone(), ..RunSpec::default() }.words();
        url_text::shell_line(&words[1..])
    });
    let ladder = spec.load.steps().len() > 1;
    from_words(server, &factors, &url_text::shell_line(&choice.words), prepare.as_deref(), ladder)
        .map_err(|error| trouble(&error, "the command line"))
}
