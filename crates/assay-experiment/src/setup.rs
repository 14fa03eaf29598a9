//! Converts the setup of a cell to descriptions of servers and specs of runs.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use assay_lab::placement::{Cpus, Transparent};
use assay_lab::{Behind, Description, FrontDescription, Placement, ServerSetting};
use assay_options::OptionValue;
use assay_process::diagnostics::{Trouble, nearest};
use assay_process::url_text;
use assay_recipe::{Action, Data, Generator, Part, Recipe, RecipeServer, Setup, Step, When, Word, filled};
use assay_run::assignment::Assignment;
use assay_run::plan::TIME_DEFAULT;
use assay_seam::Nanos;
use assay_spec::{
    ChildSpec, ChildWork, Concealed, IoSpec, OutputSpec, RunSpec, Sessions, SpecOption, SqlSpec, Wrong, values,
};

use crate::arguments::{ArgumentParser, WorkloadArguments};
use crate::cases::spec_of_case;
use crate::experiment::{WrongKey, stopped};

/// What the trials of a cell execute, checked.
pub struct Runs {
    /// The measured run, without its databases.
    pub measured: ChildSpec,
    /// Loads the data, without a database; `None`: nothing is loaded.
    pub prepare: Option<Assignment>,
    /// Whether statements are prepared at the protocol level.
    pub prepared: bool,
    /// A separate run before the measured one.
    pub warmup: Nanos,
    /// Planned seconds of the measured run and its warm-up.
    seconds: f64,
    /// The most sessions of a ladder.
    pub sessions_max: u32,
}

/// Assumed duration of starting a server from a small image and of stopping it.
const START_STOP_S: f64 = 2.5;
/// Assumed duration of timed statements or files if it is unknown.
const SECONDS_UNKNOWN: f64 = 10.0;

/// What the trials of one cell execute, and how long that is planned to take.
pub struct PlannedCell {
    /// Shared with cells that differ in their servers only.
    pub runs: Rc<Runs>,
    /// Planned seconds of a trial, with its steps and the starts of its servers.
    pub seconds: f64,
}

impl Runs {
    /// Those of each cell. Steps with a run of their own are checked too. Cells that ask for the same share it.
    pub fn of_all(recipe: &Recipe, parser: &dyn ArgumentParser) -> Result<Vec<PlannedCell>, WrongKey> {
        for (last, key) in lasts(recipe) {
            duration("last", &last).map_err(|trouble| WrongKey { key, trouble })?;
        }
        let parser: &dyn ArgumentParser = &Remembering { parser, known: Mutex::default() };
        let mut known: HashMap<(&assay_recipe::Run, &Data, &Generator, String), Rc<Runs>> = HashMap::new();
        let mut of_steps: HashMap<(usize, String), f64> = HashMap::new();
        let phases: Vec<&Step> = recipe.phases().collect();
        let mut planned = Vec::with_capacity(recipe.cells.len());
        for cell in &recipe.cells {
            stopped().map_err(|trouble| WrongKey { key: Vec::new(), trouble })?;
            let setup = &cell.setup;
            check_servers(setup)?;
            let database = database(setup);
            let key = (&setup.run, &setup.data, &setup.generator, database.clone());
            let runs = match known.get(&key) {
                Some(runs) => runs.clone(),
                None => {
                    let runs = Rc::new(Runs::of(setup, &phases, parser)?);
                    known.insert(key, runs.clone());
                    runs
                }
            };
            let mut seconds = runs.seconds;
            for (number, step) in recipe.steps.iter().enumerate().filter(|(_, step)| step.when != When::Measure) {
                let of_step = match of_steps.get(&(number, database.clone())) {
                    Some(seconds) => *seconds,
                    None => {
                        let found = seconds_of(step, setup, parser).map_err(|trouble| WrongKey {
                            key: vec!["step".to_owned(), (number + 1).to_string()],
                            trouble: within(&format!("step {}", step.name), trouble),
                        })?;
                        of_steps.insert((number, database.clone()), found);
                        found
                    }
                };
                let is_done = step.only.is_empty() || step.is_for(&recipe.levels_of(cell));
                seconds += if is_done && step.when != When::DuringMeasure { of_step } else { 0.0 };
            }
            let started = setup.server.values().filter(|server| server.product.is_some());
            seconds += started.map(|server| START_STOP_S * f64::from(1 + server.replicas)).sum::<f64>();
            planned.push(PlannedCell { runs, seconds });
        }
        Ok(planned)
    }

    fn of(setup: &Setup, phases: &[&Step], parser: &dyn ArgumentParser) -> Result<Runs, WrongKey> {
        let load = &setup.run;
        let prepare = prepare(setup, parser)?;
        if !load.case.is_empty() {
            return Ok(Runs { prepare, ..Runs::plain(ChildWork::Sql(Box::new(cases(setup)?))) });
        }
        if let Some(line) = &load.io {
            let time = load.time.as_ref().and_then(|Word(text)| values::duration(text).ok());
            let steps = load.sessions.0.len().max(1) as f64;
            let seconds = time.map_or(SECONDS_UNKNOWN, |time| time.as_secs_f64() * steps);
            return Ok(Runs { seconds, ..Runs::plain(ChildWork::Io(Box::new(files(setup, line, parser)?))) });
        }
        if !phases.is_empty() {
            has_no_meaning(&[("warmup", load.warmup.is_some())], "steps that are measured: make it one of them")?;
            return Runs::of_phases(setup, phases, prepare, parser);
        }
        let reading =
            ArgumentLine::start(parser, &["run", &load.workload], &["run", "workload"], "run", &database(setup))?;
        let (assignment, measured) = with_keys_of_run(reading, setup, &[])?;
        let warmup = load.warmup.as_ref().map_or(Ok(Nanos::ZERO), |Word(text)| duration("run.warmup", text));
        let warmup = warmup.map_err(|trouble| WrongKey { key: key(&["run", "warmup"]), trouble })?;
        let spec = assignment.spec;
        Ok(Runs {
            prepare,
            prepared: spec.target.prepared,
            warmup,
            seconds: warmup.as_secs_f64() + seconds_of_load(&spec),
            sessions_max: spec.load.sessions_max(),
            measured,
        })
    }

    /// Checks the lines of all phases. What they take from results of earlier ones is 1 here.
    fn of_phases(
        setup: &Setup,
        phases: &[&Step],
        prepare: Option<Assignment>,
        parser: &dyn ArgumentParser,
    ) -> Result<Runs, WrongKey> {
        let mut all: Option<Runs> = None;
        let mut seconds = 0.0;
        for step in phases {
            let wrong = |trouble: Trouble| WrongKey {
                key: vec!["step".to_owned(), step.name.clone()],
                trouble: within(&format!("step {}", step.name), trouble),
            };
            let line = match &step.action {
                Action::Run { line, .. } => line,
                Action::Rest(text) => {
                    seconds += duration("rest", text).map_err(wrong)?.as_secs_f64();
                    continue;
                }
                _ => continue,
            };
            let sample =
                |line: &str| filled(line, &|_| Ok("1".to_owned())).map_err(|words| wrong(Trouble::usage(words)));
            let (assignment, measured) = load_of_phase(&sample(line)?, setup, parser).map_err(wrong)?;
            if let Some(beside) = &step.beside {
                load_of_step(&sample(beside)?, setup, parser).map_err(wrong)?;
            }
            let spec = assignment.spec;
            // An interval that is narrow at once needs no more than the fewest runs.
            seconds += seconds_of_load(&spec) * if step.until.is_some() { 3.0 } else { 1.0 };
            let known =
                all.get_or_insert_with(|| Runs { measured: measured.clone(), ..Runs::plain(measured.work.clone()) });
            known.prepared |= spec.target.prepared;
            known.sessions_max = known.sessions_max.max(spec.load.sessions_max());
        }
        Ok(Runs { prepare, seconds, ..all.expect("a recipe with phases has a load") })
    }

    fn plain(work: ChildWork) -> Runs {
        Runs {
            measured: ChildSpec { work, output: OutputSpec::default(), fleet: None },
            prepare: None,
            prepared: false,
            warmup: Nanos::ZERO,
            seconds: SECONDS_UNKNOWN,
            sessions_max: 1,
        }
    }

    /// The command line of the measured run, for display.
    pub fn shown(&self) -> Vec<String> {
        match &self.measured.work {
            ChildWork::Run(spec) => spec.words(),
            ChildWork::Sql(spec) => spec.words(),
            ChildWork::Io(spec) => spec.words(),
        }
    }
}

/// The load of a line with the keys of `[run]` and `[generator]`. `kept`: options that the line sets itself, and that
/// keys leave alone.
fn with_keys_of_run(
    mut reading: ArgumentLine,
    setup: &Setup,
    kept: &[String],
) -> Result<(Assignment, ChildSpec), WrongKey> {
    let (load, generator) = (&setup.run, &setup.generator);
    let is_kept = |name: &str| kept.iter().any(|known| *known == name.replace('_', "-"));
    reading.refuse_what_the_lab_sets(load.options.keys())?;
    let options = load.options.iter().filter(|(name, _)| !is_kept(name));
    reading.options(&options.map(|(name, value)| (name.clone(), value.clone())).collect(), &["run", "options"])?;
    let sessions = (!load.sessions.0.is_empty()).then(|| load.sessions.0.join(","));
    let workers = generator.workers.map(|workers| workers.to_string());
    let fields = [
        ("cpus", generator.cpus.as_ref(), ["generator", "cpus"]),
        ("workers", workers.as_ref(), ["generator", "workers"]),
        ("rate", load.rate.as_ref().map(|Word(rate)| rate), ["run", "rate"]),
        ("sessions", sessions.as_ref(), ["run", "sessions"]),
        ("time", load.time.as_ref().map(|Word(time)| time), ["run", "time"]),
    ];
    for (option, text, key) in fields {
        if let Some(text) = text.filter(|_| !is_kept(option)) {
            reading.set(option, text, &key)?;
        }
    }
    let session_sql = load.session_sql.iter().map(|sql| Concealed::from(sql.as_str()));
    reading.assignment.spec.target.session_sql.extend(session_sql);
    // A server that goes away ends its trial: that is a result.
    if !reading.given.iter().any(|name| name == "reconnect-time") {
        reading.assignment.spec.errors.reconnect_time = Nanos::ZERO;
    }
    reading.finish()
}

/// The load of a phase: its line, and what `[run]` and `[generator]` say besides.
pub(crate) fn load_of_phase(
    line: &str,
    setup: &Setup,
    parser: &dyn ArgumentParser,
) -> Result<(Assignment, ChildSpec), Trouble> {
    let load = || {
        let reading = ArgumentLine::start(parser, &["run", line], &[], "run", &database(setup))?;
        let kept = reading.given.clone();
        with_keys_of_run(reading, setup, &kept)
    };
    load().map_err(|wrong: WrongKey| wrong.trouble)
}

/// Checks what the trials of a cell start, as far as that does not depend on this machine.
fn check_servers(setup: &Setup) -> Result<(), WrongKey> {
    for (name, server) in &setup.server {
        let product = server.product.iter().filter_map(|product| product.split(':').next()).next();
        product.map(|name| assay_products::products().product(name)).transpose().map_err(|fault| {
            let key = ["server", name, "product"].map(str::to_owned).to_vec();
            WrongKey { trouble: within(&key.join("."), fault.into()), key }
        })?;
    }
    // Loading would drop and create tables of a server that is not ours.
    let is_other = |name: &str, server: &RecipeServer| server.url.is_some() && setup.holds_data(name);
    let other = setup.server.iter().find(|(name, server)| is_other(name, server));
    if let (Some((name, _)), Some(line)) = (other, &setup.data.prepare) {
        let cause = format!(
            "data.prepare: the server {name} is already running (url), and only servers that the lab starts are loaded"
        );
        let hint = format!("load it once by `assay prepare {line} --db URL`, and remove data.prepare");
        let key = ["data", "prepare"].map(str::to_owned).to_vec();
        return Err(WrongKey { key, trouble: Trouble::usage(cause).hint(hint) });
    }
    Ok(())
}

/// Reads each line once: thousands of cells may have the same.
struct Remembering<'a> {
    parser: &'a dyn ArgumentParser,
    known: Mutex<HashMap<Vec<String>, WorkloadArguments>>,
}

impl ArgumentParser for Remembering<'_> {
    fn workload(&self, words: Vec<String>) -> Result<Option<WorkloadArguments>, Trouble> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = known.get(&words) {
            return Ok(Some(read.clone()));
        }
        let read = self.parser.workload(words.clone())?;
        known.extend(read.clone().map(|read| (words, read)));
        Ok(read)
    }

    fn files(&self, words: Vec<String>) -> Result<Option<(IoSpec, OutputSpec)>, Trouble> {
        self.parser.files(words)
    }

    fn database(&self, word: &str) -> Result<String, Trouble> {
        self.parser.database(word)
    }
}

/// Statements that are timed, without their database.
fn cases(setup: &Setup) -> Result<SqlSpec, WrongKey> {
    let load = &setup.run;
    let unused = [
        ("sessions", !load.sessions.0.is_empty()),
        ("rate", load.rate.is_some()),
        ("time", load.time.is_some()),
        ("warmup", load.warmup.is_some()),
    ];
    has_no_meaning(&unused, "[[run.case]]")?;
    let mut spec = SqlSpec { cases: load.case.iter().cloned().map(spec_of_case).collect(), ..SqlSpec::default() };
    for (name, Word(text)) in &load.options {
        let at = key(&["run", "options", name]);
        known_option(name, &at, SqlSpec::options(), &["db"])?;
        spec = spec.with(name, text).map_err(|wrong| wrong_in_options(&wrong, &at))?;
    }
    spec.session_sql.extend(load.session_sql.iter().map(|sql| Concealed::from(sql.as_str())));
    Ok(spec)
}

/// Files without a server.
fn files(setup: &Setup, line: &str, parser: &dyn ArgumentParser) -> Result<IoSpec, WrongKey> {
    let load = &setup.run;
    has_no_meaning(&[("rate", load.rate.is_some()), ("warmup", load.warmup.is_some())], "run.io")?;
    let wrong = |trouble: Trouble| WrongKey { key: key(&["run", "io"]), trouble: within("run.io", trouble) };
    let words = ["assay".to_owned(), "io".to_owned()].into_iter().chain(split(line).map_err(wrong)?);
    let Some((mut spec, output)) = parser.files(words.collect()).map_err(wrong)? else {
        return Err(wrong(Trouble::usage("not the options of `assay io`")));
    };
    if output.record.is_some() || output.no_record || spec.seed.is_some() {
        return Err(wrong(Trouble::usage("--record, --no-record and --seed are set by the experiment")));
    }
    // Which key set which value.
    let mut keys: Vec<(String, Vec<String>)> = Vec::new();
    let in_options = load.options.iter().map(|(name, Word(text))| (name.as_str(), text.clone(), ["run", "options"]));
    let sessions = (!load.sessions.0.is_empty()).then(|| ("readers", load.sessions.0.join(","), ["run", "sessions"]));
    let time = load.time.as_ref().map(|Word(time)| ("time", time.clone(), ["run", "time"]));
    for (name, text, at) in in_options.chain(sessions).chain(time) {
        let at = key(&at).into_iter().chain((at[1] == "options").then(|| name.to_owned())).collect::<Vec<_>>();
        known_option(name, &at, IoSpec::options(), &[])?;
        spec = spec.with(name, &text).map_err(|wrong| wrong_in_options(&wrong, &at))?;
        keys.push((name.replace('-', "_"), at));
    }
    spec.check().map_err(|wrong| {
        let at = keys.iter().rev().find(|(path, _)| *path == wrong.path).map(|(_, at)| at.clone());
        wrong_in_options(&wrong, &at.unwrap_or_else(|| key(&["run", "io"])))
    })?;
    Ok(spec)
}

/// The warm-up before a run: the most sessions of a ladder, for its own time.
pub(crate) fn warm_up(spec: &RunSpec, time: Nanos) -> RunSpec {
    let mut spec = spec.clone();
    let sessions = Sessions::from(spec.load.sessions_max());
    let load = &mut spec.load;
    load.sessions = Some(sessions);
    (load.time, load.transactions, load.warmup) = (Some(time), None, Nanos::ZERO);
    load.find_rate.clear();
    if !load.is_open() {
        (load.arrival, load.backlog_max) = (None, None);
    }
    if load.terminals.is_some() {
        load.sessions = None;
    }
    spec
}

/// Refuses an option that does not exist, or that the experiment sets.
fn known_option(name: &str, at: &[String], options: &[SpecOption], set: &[&str]) -> Result<(), WrongKey> {
    let hyphens = name.replace('_', "-");
    let wrong = |trouble| Err(WrongKey { key: at.to_vec(), trouble: within(&at.join("."), trouble) });
    if set.contains(&hyphens.as_str()) {
        return wrong(Trouble::usage(format!("--{hyphens} is set by the experiment")));
    }
    match options.iter().any(|option| option.name == hyphens) {
        true => Ok(()),
        false => wrong(unknown(name, options.iter().map(|option| option.name.replace('-', "_")).collect())),
    }
}

fn unknown(name: &str, known: Vec<String>) -> Trouble {
    let trouble = Trouble::usage(format!("there is no option {name}"));
    match nearest(&name.replace('-', "_"), known.iter().map(String::as_str)) {
        Some(near) => trouble.hint(format!("did you mean {near}?")),
        None => trouble,
    }
}

/// A wrong value of a run without a workload, named by its key.
fn wrong_in_options(wrong: &Wrong, at: &[String]) -> WrongKey {
    let (cause, hint) = wrong.words(|path| if path == wrong.path { at.join(".") } else { path.to_owned() });
    WrongKey { key: at.to_vec(), trouble: Trouble { hints: hint.into_iter().collect(), ..Trouble::usage(cause) } }
}

/// A line of arguments in a recipe, to which its keys add options.
struct ArgumentLine {
    assignment: Assignment,
    /// Names of the options in the line and from keys.
    given: Vec<String>,
    /// What becomes of the result. Its work is not set.
    child: ChildSpec,
    /// Which key set which value of the spec.
    keys: Vec<(String, Vec<String>)>,
    /// The key of the line.
    line: Vec<String>,
    /// Where the line is, in messages.
    place: &'static str,
}

impl ArgumentLine {
    /// Parses the line as the command line would. `database`: a URL, because dialects have options of their own.
    fn start(
        parser: &dyn ArgumentParser,
        [task, text]: &[&str; 2],
        line: &[&str],
        place: &'static str,
        database: &str,
    ) -> Result<ArgumentLine, WrongKey> {
        let wrong = |trouble| WrongKey { key: key(line), trouble: within(place, trouble) };
        let words = split(text).map_err(wrong)?;
        let words = ["assay".to_owned(), (*task).to_owned()].into_iter().chain(words);
        let words = words.chain([format!("--db={database}")]).collect();
        let Some(parsed) = parser.workload(words).map_err(wrong)? else {
            return Err(wrong(Trouble::usage("not a workload followed by its options")));
        };
        let WorkloadArguments { assignment, given, output, fleet } = parsed;
        let child = ChildSpec { fleet, ..ChildSpec::of_run(RunSpec::default(), output) };
        Ok(ArgumentLine { assignment, given, child, keys: Vec::new(), line: key(line), place })
    }

    /// Refuses options that the experiment itself sets.
    fn refuse_what_the_lab_sets<'a>(&self, options: impl Iterator<Item = &'a String>) -> Result<(), WrongKey> {
        const SET: [&str; 6] = ["server", "record", "no-record", "trials", "seed", "kill-check"];
        let in_line = SET.iter().find(|name| self.given.iter().any(|given| given == *name)).copied();
        let in_line = in_line.or((self.assignment.spec.target.urls.len() > 1).then_some("db"));
        let in_table = options.map(|name| (name, name.replace('_', "-")));
        let mut in_table = in_table.filter(|(_, name)| name == "db" || SET.contains(&name.as_str()));
        let (name, at) = match (in_line, in_table.next()) {
            (Some(name), _) => (name.to_owned(), self.line.clone()),
            (None, Some((written, name))) => (name, key(&["run", "options", written])),
            (None, None) => return Ok(()),
        };
        let trouble = Trouble::usage(format!("run: --{name} is set by the experiment"))
            .hint("use trials.count and trials.seed; records are in the experiment's folder");
        Err(WrongKey { key: at, trouble })
    }

    /// Sets the options of a table.
    fn options(&mut self, options: &BTreeMap<String, Word>, table: &[&str]) -> Result<(), WrongKey> {
        for (name, Word(text)) in options {
            let key: Vec<&str> = table.iter().copied().chain([name.as_str()]).collect();
            self.set(name, text, &key)?;
        }
        Ok(())
    }

    /// Sets an option: one of a spec, one of the workload, or one about the result.
    fn set(&mut self, name: &str, text: &str, at: &[&str]) -> Result<(), WrongKey> {
        let at = key(at);
        let own_key = name.replace('-', "_");
        let (task, workload) = (&self.assignment.spec.task, self.assignment.workload.program.options());
        let of_spec = assay_spec::option(name).filter(|option| option.is_of(task));
        let of_result = ChildSpec::option(name).filter(|_| task == "run");
        let path = match (of_spec, of_result) {
            (Some(option), _) => {
                let changed = self.assignment.spec.with(name, text).map_err(|wrong| self.wrong_at(&at, &wrong))?;
                self.assignment.spec = changed;
                self.given.push(option.name.to_owned());
                option.path.to_owned()
            }
            (None, Some(option)) => {
                self.child = self.child.with(option, text).map_err(|wrong| self.wrong_at(&at, &wrong))?;
                option.path.to_owned()
            }
            (None, None) if workload.iter().any(|option| option.key() == own_key) => {
                let value = OptionValue::Text(text.to_owned());
                self.assignment.spec.workload.options.insert(own_key.clone(), value);
                format!("workload.options.{own_key}")
            }
            (None, None) => {
                let known = assay_spec::options().iter().map(|option| option.name.replace('-', "_"));
                let trouble = unknown(name, known.chain(workload.iter().map(|option| option.key())).collect());
                return Err(WrongKey { trouble: within(&at.join("."), trouble), key: at });
            }
        };
        self.keys.push((path, at));
        Ok(())
    }

    /// Checks what all of it comes to. Returns it without a database, also as what a child does.
    fn finish(self) -> Result<(Assignment, ChildSpec), WrongKey> {
        let Assignment { spec, workload, words } = self.assignment.clone();
        let checked = Assignment::new(spec, workload.program, words)
            .and_then(|all| all.check().map(|()| all))
            .and_then(|all| self.child.check().map(|()| all));
        let mut assignment = checked.map_err(|wrong| {
            let set = self.keys.iter().rev().find(|(path, _)| wrong.path.starts_with(path.as_str()));
            self.wrong_at(set.map_or(&self.line, |(_, key)| key), &wrong)
        })?;
        assignment.spec.target.urls.clear();
        let work = ChildWork::Run(Box::new(assignment.spec.clone()));
        Ok((assignment, ChildSpec { work, ..self.child }))
    }

    /// A wrong value, which its message names by the key that set it.
    fn wrong_at(&self, at: &[String], wrong: &Wrong) -> WrongKey {
        let options = |path: &str| Wrong::new(path, format!("{{{path}}}")).as_options().0;
        let (cause, hint) = wrong.words(|path| match self.keys.iter().rev().find(|(set, _)| set == path) {
            Some((_, key)) => key.join("."),
            None if path == wrong.path && at != self.line => at.join("."),
            None => options(path),
        });
        let trouble = Trouble { hints: hint.into_iter().collect(), ..Trouble::usage(cause) };
        let trouble = if at == self.line { within(self.place, trouble) } else { trouble };
        WrongKey { key: at.to_vec(), trouble }
    }
}

fn key(path: &[&str]) -> Vec<String> {
    path.iter().map(|part| (*part).to_owned()).collect()
}

/// Planned seconds of a load.
fn seconds_of_load(spec: &RunSpec) -> f64 {
    let load = &spec.load;
    // The number of stages of a search is unknown; a dozen is usual.
    let stages = if load.searches() { STAGES_OF_SEARCH } else { load.steps().len() as u64 };
    Nanos((load.time.unwrap_or(TIME_DEFAULT).0 + load.warmup.0) * stages).as_secs_f64()
}

/// Everywhere the recipe names a last part of the time, and the key there.
fn lasts(recipe: &Recipe) -> Vec<(String, Vec<String>)> {
    let of_shows = recipe
        .shows
        .iter()
        .zip(1..)
        .filter_map(|(show, number): (_, u32)| Some((show.part()?, vec!["show".to_owned(), number.to_string()])));
    let all = recipe.part.iter().map(|part| (part.clone(), vec!["last".to_owned()])).chain(of_shows);
    let last = |(part, key)| match part {
        Part::Last(last) => Some((last, key)),
        Part::Steady => None,
    };
    all.filter_map(last).collect()
}

/// How long a step waits or runs its own load; 0 for a step whose duration nobody knows.
fn seconds_of(step: &Step, setup: &Setup, parser: &dyn ArgumentParser) -> Result<f64, Trouble> {
    match &step.action {
        Action::Rest(text) => duration("rest", text).map(Nanos::as_secs_f64),
        Action::Run { line, .. } => {
            let spec = load_of_step(line, setup, parser)?.0.spec;
            let stage = spec.load.time.unwrap_or(TIME_DEFAULT).0 + spec.load.warmup.0;
            Ok(Nanos(stage * spec.load.steps().len() as u64).as_secs_f64())
        }
        _ => Ok(0.0),
    }
}

/// The run of a step.
pub(crate) fn load_of_step(
    line: &str,
    setup: &Setup,
    parser: &dyn ArgumentParser,
) -> Result<(Assignment, ChildSpec), Trouble> {
    let unlocated = |wrong: WrongKey| wrong.trouble;
    let reading = ArgumentLine::start(parser, &["run", line], &[], "run", &database(setup)).map_err(unlocated)?;
    reading.refuse_what_the_lab_sets(std::iter::empty()).map_err(unlocated)?;
    reading.finish().map_err(unlocated)
}

/// A duration in a recipe.
pub(crate) fn duration(key: &str, text: &str) -> Result<Nanos, Trouble> {
    values::duration(text).map_err(|reason| Trouble::usage(format!("{key} = {text}: {reason}")))
}

const STAGES_OF_SEARCH: u64 = 12;

fn split(line: &str) -> Result<Vec<String>, Trouble> {
    url_text::shell_words(line).map_err(|reason| Trouble::usage(format!("{line}: {reason}")))
}

/// A database for parsing a command line: dialects have options of their own.
fn database(setup: &Setup) -> String {
    match setup.first_server() {
        Some(RecipeServer { product: Some(product), .. }) => assay_products::url_of_product(product),
        Some(RecipeServer { url: Some(url), .. }) => url.clone(),
        _ => String::new(),
    }
}

/// Loads the data of a cell.
fn prepare(setup: &Setup, parser: &dyn ArgumentParser) -> Result<Option<Assignment>, WrongKey> {
    let Some(line) = &setup.data.prepare else { return Ok(None) };
    let mut reading =
        ArgumentLine::start(parser, &["prepare", line], &["data", "prepare"], "data.prepare", &database(setup))?;
    reading.options(&setup.data.options, &["data", "options"])?;
    Ok(Some(reading.finish()?.0))
}

/// The arguments of `assay prepare` that determine what is loaded.
pub fn prepare_words(prepare: &Assignment) -> Vec<String> {
    prepare.spec.words().split_off(1)
}

/// Refuses keys that this kind of run does not use.
fn has_no_meaning(keys: &[(&str, bool)], kind: &str) -> Result<(), WrongKey> {
    match keys.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(WrongKey {
            key: key(&["run", name]),
            trouble: Trouble::usage(format!("run.{name} has no meaning for {kind}")),
        }),
        None => Ok(()),
    }
}

fn within(what: &str, trouble: Trouble) -> Trouble {
    Trouble { cause: format!("{what}: {}", trouble.cause), ..trouble }
}

/// The servers to start for a cell's trials, without their image. `name`: the recipe's, for messages.
pub(crate) fn description(name: &str, server: &RecipeServer) -> Result<Description, WrongKey> {
    let product = server.product.as_ref().expect("a server without one is not started");
    let wrong = |part: &str, value: &str, trouble: Trouble| {
        let key = ["server", name, part].map(str::to_owned).to_vec();
        WrongKey { trouble: within(&format!("{} {value:?}", key.join(".")), trouble), key }
    };
    let size =
        |part: &str, text: &String| values::size(text).map_err(|reason| wrong(part, text, Trouble::usage(reason)));
    let of_machine = |text: &String| Cpus::of_this_machine(text).map_err(|fault| wrong("cpus", text, fault.into()));
    let thp = |text: &String| {
        text.parse::<Transparent>()
            .map_err(|reason| wrong("transparent_huge_pages", text, Trouble::usage(reason.to_string())))
    };
    let file = |path: &String| {
        assay_record::read_text(Path::new(path), assay_record::WRITTEN_BYTES_MAX)
            .map_err(|error| wrong("config", path, Trouble::environment(format!("cannot read it: {error}"))))
    };
    let front = |(front, described): (&String, &assay_recipe::RecipeFront)| {
        let words = described.behind.as_ref().map_or_else(|| front.clone(), |behind| format!("{front}:{behind}"));
        FrontDescription::parse(&words)
            .map(|parsed| FrontDescription { settings: asked(&described.settings), ..parsed })
            .map_err(|fault| wrong("front", &words, fault.into()))
    };
    // The nearest to the server comes first: a pooler, then a proxy; but a proxy comes first if there are several
    // servers.
    let mut fronts = server.front.iter().rev().map(front).collect::<Result<Vec<FrontDescription>, _>>()?;
    fronts.sort_by_key(|front| front.behind == Behind::Primary);
    let wanted = product.parse().map_err(|fault: assay_lab::Fault| wrong("product", product, fault.into()))?;
    Ok(Description {
        binaries: server.binaries.as_ref().map(PathBuf::from),
        settings: asked(&server.settings),
        file: server.config.as_ref().map(file).transpose()?,
        placement: Placement {
            cpus: server.cpus.as_ref().map(of_machine).transpose()?,
            memory_bytes: server.memory.as_ref().map(|text| size("memory", text)).transpose()?,
            huge_pages_bytes: server.huge_pages.as_ref().map(|text| size("huge_pages", text)).transpose()?,
            transparent: server.transparent_huge_pages.as_ref().map(thp).transpose()?,
        },
        replicas: server.replicas,
        fronts,
        ..Description::of(wanted)
    })
}

/// Settings with the server's own names; some have no value.
pub(crate) fn asked(settings: &std::collections::BTreeMap<String, Word>) -> Vec<ServerSetting> {
    let one = |(name, Word(value)): (&String, &Word)| ServerSetting {
        name: name.clone(),
        value: (!value.is_empty()).then(|| value.clone()),
    };
    settings.iter().map(one).collect()
}
