//! Converts the setup of a cell to descriptions of servers and command lines of runs.

use std::path::PathBuf;

use assay_lab::placement::{Cpus, Transparent};
use assay_lab::{Asked, Behind, Description, FrontDescription, Placement};
use assay_recipe::{Action, CaseFile, Cell, Recipe, Server, Setup, Step, When, Word};
use assay_seam::Nanos;

use crate::command_line::{self, RunOptions, Subcommand};
use crate::commands::lab::experiment::WrongKey;
use crate::diagnostics::Trouble;
use crate::{url_text, values};

/// A cell's command lines, checked.
pub(super) struct Lines {
    /// Arguments of `assay`, without the database.
    pub(super) run: Vec<String>,
    /// The same without sessions and times.
    bare: Vec<String>,
    /// Arguments of `assay prepare`; `None`: nothing is loaded.
    pub(super) prepare: Option<Vec<String>>,
    /// The statements to time, as a file; `None`: a different kind of run.
    pub(super) case_file: Option<String>,
    /// Whether statements are prepared at the protocol level.
    pub(super) prepared: bool,
    /// A separate run before the measured one.
    pub(super) warmup: Nanos,
    /// Planned seconds of the measured run and its warm-up.
    pub(super) seconds: f64,
    /// The most sessions of a ladder.
    pub(super) sessions_max: u32,
}

/// Assumed duration of starting a server from a small image and of stopping it.
const START_STOP_S: f64 = 2.5;
/// Assumed duration of timed statements or files if it is unknown.
const SECONDS_UNKNOWN: f64 = 10.0;

impl Lines {
    /// Those of each cell. Steps with a run of their own are checked too, and time that steps are known to take is
    /// added.
    pub(super) fn of_all(recipe: &Recipe) -> Result<Vec<Lines>, WrongKey> {
        let of_cell = |cell: &Cell| {
            for (name, server) in &cell.setup.server {
                let product = server.product.iter().filter_map(|product| product.split(':').next()).next();
                product.map(assay_lab::binaries::product).transpose().map_err(|fault| {
                    let key = ["server", name, "product"].map(str::to_owned).to_vec();
                    WrongKey { trouble: within(&key.join("."), fault.into()), key }
                })?;
            }
            // Loading would drop and create tables of a server that is not ours.
            let is_other = |name: &str, server: &Server| server.url.is_some() && cell.setup.holds_data(name);
            let other = cell.setup.server.iter().find(|(name, server)| is_other(name, server));
            if let (Some((name, _)), Some(line)) = (other, &cell.setup.data.prepare) {
                let cause = format!(
                    "data.prepare: the server {name} is already running (url), and only servers that the lab starts are loaded"
                );
                let hint = format!("load it once by `assay prepare {line} --db URL`, and remove data.prepare");
                let key = ["data", "prepare"].map(str::to_owned).to_vec();
                return Err(WrongKey { key, trouble: Trouble::usage(cause).hint(hint) });
            }
            let wrong = |trouble: Trouble| WrongKey { key: wrong_key(&cell.setup, &trouble.cause), trouble };
            let mut lines = Lines::of(&cell.setup).map_err(wrong)?;
            for (step, number) in recipe.steps.iter().zip(1..) {
                let seconds = seconds_of(step, &cell.setup).map_err(|trouble| WrongKey {
                    key: vec!["step".to_owned(), number.to_string()],
                    trouble: within(&format!("step {}", step.name), trouble),
                })?;
                lines.seconds += if step.when == When::DuringMeasure { 0.0 } else { seconds };
            }
            let started = cell.setup.server.values().filter(|server| server.product.is_some());
            lines.seconds += started.map(|server| START_STOP_S * f64::from(1 + server.replicas)).sum::<f64>();
            Ok(lines)
        };
        for (last, key) in lasts(recipe) {
            duration("last", last).map_err(|trouble| WrongKey { key, trouble })?;
        }
        recipe.cells.iter().map(of_cell).collect()
    }

    /// Parses a cell as the command line would.
    fn of(setup: &Setup) -> Result<Lines, Trouble> {
        let load = &setup.run;
        if !load.case.is_empty() {
            return Lines::of_cases(setup);
        }
        if let Some(line) = &load.io {
            return Lines::of_io(setup, line);
        }
        let mut run = words(&load.workload)?;
        run.insert(0, "run".to_owned());
        run.extend(load.options.iter().filter_map(option));
        run.extend(load.session_sql.iter().map(|sql| format!("--session-sql={sql}")));
        let generator = &setup.generator;
        run.extend(generator.cpus.iter().map(|cpus| format!("--cpus={cpus}")));
        run.extend(generator.workers.iter().map(|workers| format!("--workers={workers}")));
        run.extend(load.rate.iter().map(|rate| format!("--rate={rate}")));
        let sessions = &load.sessions.0;
        run.extend((!sessions.is_empty()).then(|| format!("--sessions={}", sessions.join(","))));
        run.extend(load.time.iter().map(|time| format!("--time={time}")));
        // A server that goes away ends its trial: that is a result.
        if !run.iter().any(|word| word.starts_with("--reconnect-time")) {
            run.push("--reconnect-time=0s".to_owned());
        }
        let options = run_options(&run, &database(setup))?;
        let warmup = load.warmup.as_ref().map_or(Ok(Nanos::ZERO), |Word(text)| duration("run.warmup", text))?;
        let asked = &options.load;
        let steps = asked.steps();
        // The number of stages of a search is unknown; a dozen is usual.
        let stages = if asked.searches() { STAGES_OF_SEARCH } else { steps.len() as u64 };
        let stage = asked.time.unwrap_or(TIME_DEFAULT).0 + asked.warmup.0;
        Ok(Lines {
            bare: without(&run, &["sessions", "time", "transactions", "warmup", "find-rate", "max-rate"]),
            prepare: prepare(setup)?,
            case_file: None,
            prepared: options.target.prepared,
            warmup,
            seconds: (warmup.0 + stage * stages) as f64 / 1e9,
            sessions_max: steps.into_iter().max().unwrap_or(1),
            run,
        })
    }

    /// Statements that are timed.
    fn of_cases(setup: &Setup) -> Result<Lines, Trouble> {
        let load = &setup.run;
        let mut run = vec!["sql".to_owned()];
        run.extend(load.options.iter().filter_map(option));
        run.extend(load.session_sql.iter().map(|sql| format!("--session-sql={sql}")));
        taken(
            "run",
            &[
                ("sessions", !load.sessions.0.is_empty()),
                ("rate", load.rate.is_some()),
                ("time", load.time.is_some()),
                ("warmup", load.warmup.is_some()),
            ],
            "[[run.case]]",
        )?;
        let check = run.iter().cloned().chain(["SELECT 1".to_owned()]).collect::<Vec<_>>();
        command_line::parse(with(&check, &database(setup))).map_err(|trouble| within("run.options", trouble))?;
        let file = CaseFile { case: load.case.clone(), ..CaseFile::default() };
        Ok(Lines { case_file: Some(file.text()), ..Lines::plain(run, prepare(setup)?) })
    }

    /// Files without a server.
    fn of_io(setup: &Setup, line: &str) -> Result<Lines, Trouble> {
        let load = &setup.run;
        let mut run = words(line)?;
        run.insert(0, "io".to_owned());
        run.extend(load.options.iter().filter_map(option));
        run.extend((!load.sessions.0.is_empty()).then(|| format!("--readers={}", load.sessions.0.join(","))));
        run.extend(load.time.iter().map(|time| format!("--time={time}")));
        taken("run", &[("rate", load.rate.is_some()), ("warmup", load.warmup.is_some())], "run.io")?;
        let line = ["assay".to_owned()].into_iter().chain(run.iter().cloned()).map(Into::into);
        command_line::parse(line).map_err(|trouble| within("run.io", trouble))?;
        let time = load.time.as_ref().and_then(|Word(text)| values::duration(text).ok());
        let steps = load.sessions.0.len().max(1) as f64;
        let seconds = time.map_or(SECONDS_UNKNOWN, |time| time.as_secs_f64() * steps);
        Ok(Lines { seconds, ..Lines::plain(run, None) })
    }

    fn plain(run: Vec<String>, prepare: Option<Vec<String>>) -> Lines {
        Lines {
            bare: run.clone(),
            run,
            prepare,
            case_file: None,
            prepared: false,
            warmup: Nanos::ZERO,
            seconds: SECONDS_UNKNOWN,
            sessions_max: 1,
        }
    }

    /// The arguments of the warm-up: the most sessions of a ladder, with its own time.
    pub(super) fn warm_up(&self) -> Vec<String> {
        let mut words = self.bare.clone();
        let (most, time) = (self.sessions_max, values::display_duration(self.warmup));
        words.extend([format!("--sessions={most}"), format!("--time={time}")]);
        words
    }
}

/// Everywhere the recipe names a last part of the time, and the key there.
fn lasts(recipe: &Recipe) -> Vec<(&str, Vec<String>)> {
    let of_shows = recipe
        .shows
        .iter()
        .zip(1..)
        .filter_map(|(show, number): (_, u32)| Some((show.last()?, vec!["show".to_owned(), number.to_string()])));
    recipe.last.iter().map(|last| (last.as_str(), vec!["last".to_owned()])).chain(of_shows).collect()
}

/// The key whose value is to blame: the option that the message names, or what the message starts with.
fn wrong_key(setup: &Setup, cause: &str) -> Vec<String> {
    let named =
        cause.split("--").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next());
    let load = &setup.run;
    let given = [
        ("sessions", !load.sessions.0.is_empty()),
        ("time", load.time.is_some()),
        ("rate", load.rate.is_some()),
        ("session_sql", !load.session_sql.is_empty()),
    ];
    let name = named.unwrap_or_default().replace('-', "_");
    let path: Vec<&str> = match (cause.split(':').next().unwrap_or_default(), name.as_str()) {
        ("data.prepare", _) => vec!["data", "prepare"],
        ("run", "cpus") => vec!["generator", "cpus"],
        ("run", "workers") => vec!["generator", "workers"],
        ("run", name) if given.contains(&(name, true)) => vec!["run", name],
        ("run", name) => match load.options.keys().find(|key| key.replace('-', "_") == name) {
            Some(key) => vec!["run", "options", key],
            None => vec!["run", "workload"],
        },
        (key, _) => key.split(' ').next().unwrap_or_default().split('.').collect(),
    };
    path.into_iter().map(str::to_owned).collect()
}

/// How long a step waits or runs its own load; 0 for a step whose duration nobody knows.
fn seconds_of(step: &Step, setup: &Setup) -> Result<f64, Trouble> {
    match &step.action {
        Action::Rest(text) => duration("rest", text).map(Nanos::as_secs_f64),
        Action::Run { line, .. } => {
            let options = run_options(&run_words(line)?, &database(setup))?;
            let stage = options.load.time.unwrap_or(TIME_DEFAULT).0 + options.load.warmup.0;
            Ok(Nanos(stage * options.load.steps().len() as u64).as_secs_f64())
        }
        _ => Ok(0.0),
    }
}

/// Arguments of `assay`, for the run of a step.
pub(super) fn run_words(line: &str) -> Result<Vec<String>, Trouble> {
    Ok(["run".to_owned()].into_iter().chain(words(line)?).collect())
}

/// A duration in a recipe.
pub(super) fn duration(key: &str, text: &str) -> Result<Nanos, Trouble> {
    values::duration(text).map_err(|reason| Trouble::usage(format!("{key} = {text}: {reason}")))
}

/// Of a run that says nothing.
const TIME_DEFAULT: Nanos = Nanos::from_secs(10);
const STAGES_OF_SEARCH: u64 = 12;

fn words(line: &str) -> Result<Vec<String>, Trouble> {
    url_text::shell_words(line).map_err(|reason| Trouble::usage(format!("{line}: {reason}")))
}

fn option((name, Word(value)): (&String, &Word)) -> Option<String> {
    let name = name.replace('_', "-");
    match (SWITCHES.contains(&name.as_str()), value.as_str()) {
        (true, "on") => Some(format!("--{name}")),
        (true, "off") => None,
        _ => Some(format!("--{name}={value}")),
    }
}

/// Options without a value.
const SWITCHES: [&str; 8] = ["cold", "explain", "counters", "same-result", "direct", "dsync", "check", "prepare"];

/// A database for parsing a command line: dialects have options of their own.
fn database(setup: &Setup) -> String {
    match setup.first_server() {
        Some(Server { product: Some(product), .. }) => {
            format!("{}://localhost/x", product.split(':').next().unwrap_or_default())
        }
        Some(Server { url: Some(url), .. }) => url.clone(),
        _ => String::new(),
    }
}

/// Arguments of `assay prepare`.
fn prepare(setup: &Setup) -> Result<Option<Vec<String>>, Trouble> {
    let Some(line) = &setup.data.prepare else { return Ok(None) };
    let mut prepare = words(line)?;
    prepare.extend(setup.data.options.iter().filter_map(option));
    let check: Vec<String> = ["prepare".to_owned()].into_iter().chain(prepare.iter().cloned()).collect();
    command_line::parse(with(&check, &database(setup))).map_err(|trouble| within("data.prepare", trouble))?;
    Ok(Some(prepare))
}

/// Refuses keys that this kind of run does not use.
fn taken(table: &str, keys: &[(&str, bool)], kind: &str) -> Result<(), Trouble> {
    match keys.iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(Trouble::usage(format!("{table}.{key} has no meaning for {kind}"))),
        None => Ok(()),
    }
}

fn with(words: &[String], database: &str) -> Vec<std::ffi::OsString> {
    let line = ["assay".to_owned()].into_iter().chain(words.iter().cloned());
    line.chain([format!("--db={database}")]).map(Into::into).collect()
}

fn run_options(words: &[String], database: &str) -> Result<Box<RunOptions>, Trouble> {
    let parsed = command_line::parse(with(words, database)).map_err(|trouble| within("run", trouble))?;
    let Some(Subcommand::Run(options)) = parsed.map(|invocation| invocation.subcommand) else {
        return Err(Trouble::usage("run.workload is not a workload followed by its options"));
    };
    let output = &options.output;
    let taken = [
        (options.target.db.len() > 1, "--db"),
        (output.record.is_some() || output.no_record, "--record and --no-record"),
        (options.load.trials > 1, "--trials"),
        (options.generator.seed.is_some(), "--seed"),
        (options.load.kill_check.is_some(), "--kill-check"),
    ];
    match taken.into_iter().find(|(given, _)| *given) {
        Some((_, name)) => Err(Trouble::usage(format!("run: {name} is set by the experiment"))
            .hint("use trials.count and trials.seed; records are in the experiment's folder")),
        None => Ok(options),
    }
}

fn within(what: &str, trouble: Trouble) -> Trouble {
    Trouble { cause: format!("{what}: {}", trouble.cause), ..trouble }
}

/// Arguments without some options and their values.
fn without(words: &[String], options: &[&str]) -> Vec<String> {
    let mut left = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let name = word.strip_prefix("--").map(|name| name.split('=').next().unwrap_or_default().replace('_', "-"));
        if !name.is_some_and(|name| options.contains(&name.as_str())) {
            left.push(word.clone());
        } else if !word.contains('=') {
            rest.next();
        }
    }
    left
}

/// The servers to start for a cell's trials, without their image.
pub(super) fn description(server: &Server) -> Result<Description, Trouble> {
    let product = server.product.as_ref().expect("a server without one is not started");
    let size = |name: &str, text: &String| {
        values::size(text).map_err(|reason| Trouble::usage(format!("server {name} = {text}: {reason}")))
    };
    let thp = |text: &String| {
        text.parse::<Transparent>()
            .map_err(|reason| Trouble::usage(format!("server transparent_huge_pages = {text}: {reason}")))
    };
    let file = |path: &String| {
        std::fs::read_to_string(path).map_err(|error| Trouble::environment(format!("cannot read {path}: {error}")))
    };
    let front = |(name, front): (&String, &assay_recipe::Front)| {
        let words = front.behind.as_ref().map_or_else(|| name.clone(), |behind| format!("{name}:{behind}"));
        FrontDescription::parse(&words)
            .map(|described| FrontDescription { settings: asked(&front.settings), ..described })
    };
    // The nearest to the server comes first: a pooler, then a proxy; but a proxy comes first if there are several
    // servers.
    let mut fronts = server.front.iter().rev().map(front).collect::<Result<Vec<FrontDescription>, _>>()?;
    fronts.sort_by_key(|front| front.behind == Behind::Primary);
    Ok(Description {
        binaries: server.binaries.as_ref().map(PathBuf::from),
        settings: asked(&server.settings),
        file: server.config.as_ref().map(file).transpose()?,
        placement: Placement {
            cpus: server.cpus.as_deref().map(Cpus::of_this_machine).transpose()?,
            memory_bytes: server.memory.as_ref().map(|text| size("memory", text)).transpose()?,
            huge_pages_bytes: server.huge_pages.as_ref().map(|text| size("huge_pages", text)).transpose()?,
            transparent: server.transparent_huge_pages.as_ref().map(thp).transpose()?,
        },
        replicas: server.replicas,
        fronts,
        ..Description::of(product.parse()?)
    })
}

/// Settings with the server's own names; some have no value.
pub(super) fn asked(settings: &std::collections::BTreeMap<String, Word>) -> Vec<Asked> {
    let one = |(name, Word(value)): (&String, &Word)| Asked {
        name: name.clone(),
        value: (!value.is_empty()).then(|| value.clone()),
    };
    settings.iter().map(one).collect()
}
