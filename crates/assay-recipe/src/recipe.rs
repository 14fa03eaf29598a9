//! A recipe: its text with the changes by a scale and the command line, and the resulting cells.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::document::{at, place_of, public, public_setting, public_text, segments, set, value_of};
use crate::error::RecipeError;
use crate::expression::names;
use crate::grid::{Cell, Factor, SETUP, cells, factors};
use crate::setup::{Data, Generator, RecipeServer, Run};
use crate::step::{Action, Step, When, WrittenStep};
use crate::word::{Word, Words};

/// One experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Heading of the results.
    pub title: String,
    /// The question that it answers; may be empty.
    pub question: String,
    /// What to look for in its results; may be empty.
    pub look_at: String,
    /// Requirements that cannot be checked, such as a second drive; shown by `plan`.
    pub needs: Vec<String>,
    /// The factors, in the order written.
    pub factors: Vec<Factor>,
    /// At least one.
    pub cells: Vec<Cell>,
    /// How often, and in what order.
    pub trials: Trials,
    /// Actions around trials, in the order written.
    pub steps: Vec<Step>,
    /// The tables and charts of its results.
    pub shows: Vec<Show>,
    /// The part of each run that is shown; `None`: all of it.
    pub part: Option<Part>,
    /// Names of its scales.
    pub scales: Vec<String>,
    /// The document after applying scale and `--set`.
    pub document: Table,
    /// Its text.
    text: String,
    /// Hash, in 16 hexadecimal digits, of everything that affects its results: all but the number of rounds and what is
    /// shown.
    pub hash: String,
}

/// How often, and in what order.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trials {
    /// Rounds: trials of each cell. 1 <= count
    pub count: u32,
    /// Seed of the order within rounds, and of every run.
    pub seed: u64,
    /// How often a cell's spoiled trials are repeated.
    pub repeats: u32,
    /// Number of rounds at the start that are run but not shown. 0 <= drop < count
    pub drop: u32,
}

impl Default for Trials {
    fn default() -> Trials {
        Trials { count: 3, seed: 1, repeats: 1, drop: 0 }
    }
}

/// A pivot table of results. Axes are factors, `sessions`, or `case`: the statements of `[[run.case]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableAsked {
    /// A row per level.
    pub rows: String,
    /// Only these levels of `rows`; empty: all.
    #[serde(default)]
    pub only: Vec<String>,
    /// A column per level; `None`: one column.
    pub columns: Option<String>,
    /// A metric such as `tps`, `p99`, `new_order.p99`; `per_price`; or the name of a step, for its seconds or its
    /// value.
    #[serde(default = "tps")]
    pub value: String,
    /// The level by which the others are divided: one of `columns`, or of `rows` without columns; or `best`.
    #[serde(default, deserialize_with = "word")]
    #[schemars(with = "Option<Word>")]
    pub ratio_to: Option<String>,
    /// `worst`, `best` or `second-best`: the one trial that stands for a cell; `None`: all of them, with an interval.
    pub of: Option<String>,
    /// A factor of which only the best level is shown, chosen separately in each place; it is not an axis.
    pub best_of: Option<String>,
    /// Percent: a level that is worse than `ratio_to` by more than this is named as a fault.
    pub fault_above: Option<u32>,
    /// Only the last part of each run, such as `30m`; `None`: as the recipe says.
    #[serde(default, deserialize_with = "word")]
    #[schemars(with = "Option<Word>")]
    pub last: Option<String>,
    /// `steady`: only the steady part of each run.
    pub from: Option<PartStart>,
}

/// A part of each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The last part, such as `30m`.
    Last(String),
    /// From where throughput is steady to the end; runs that are not steady are left out.
    Steady,
}

/// Where a part of a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartStart {
    /// Where throughput is steady.
    Steady,
}

impl Part {
    fn of(last: Option<String>, from: Option<PartStart>) -> Result<Option<Part>, RecipeError> {
        match (last, from) {
            (Some(_), Some(_)) => Err(RecipeError::new("both last and from: give one")),
            (Some(last), None) => Ok(Some(Part::Last(last))),
            (None, Some(PartStart::Steady)) => Ok(Some(Part::Steady)),
            (None, None) => Ok(None),
        }
    }
}

fn tps() -> String {
    "tps".to_owned()
}

fn word<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    crate::word::Word::deserialize(deserializer).map(|word| Some(word.0))
}

type JsonTable = serde_json::Map<String, serde_json::Value>;

/// One experiment.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "assay recipe")]
#[serde(deny_unknown_fields)]
struct WrittenRecipe {
    title: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    look_at: String,
    #[serde(default)]
    needs: Vec<String>,
    // The four parts of a cell are parsed again for each cell; here they are checked at their position in the text.
    #[serde(default, rename = "server")]
    _server: BTreeMap<String, RecipeServer>,
    #[serde(default, rename = "data")]
    _data: Data,
    #[serde(default, rename = "run")]
    _run: Run,
    #[serde(default, rename = "generator")]
    _generator: Generator,
    /// Factors, by their names or by the paths that they set.
    #[serde(default)]
    #[schemars(with = "JsonTable")]
    grid: Table,
    /// Combinations of levels that are left out.
    #[serde(default)]
    #[schemars(with = "Vec<JsonTable>")]
    except: Vec<Table>,
    #[serde(default)]
    trials: Trials,
    #[serde(default)]
    step: Vec<WrittenStep>,
    #[serde(default)]
    show: Vec<WrittenShow>,
    last: Option<Word>,
    from: Option<PartStart>,
    /// Paths and their values, by the name of the scale.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, JsonTable>")]
    scale: BTreeMap<String, Table>,
}

/// An output of the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    /// A pivot table.
    Table(TableAsked),
    /// A chart, by the name of its kind: the key of `WrittenShow`. Who draws it knows what that looks like.
    Chart(&'static str, ChartAsked),
}

/// A chart of results. Axes are factors, or `sessions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChartAsked {
    /// The horizontal axis; not over time.
    pub x: Option<String>,
    /// One color per level.
    pub color: Option<String>,
    /// One panel per level.
    pub facet: Option<String>,
    /// One row of panels per level.
    pub facet_rows: Option<String>,
    /// Each panel has a vertical axis of its own; otherwise those in a row share one.
    pub own_scales: bool,
    /// Metrics, each with a row of panels; empty: `tps`.
    pub value: Words,
    /// `best`: bars and boxes as a share of the best.
    pub ratio_to: Option<String>,
    /// Values that others are held against, by name, such as what the device does without a server.
    pub reference: BTreeMap<String, Word>,
    /// A factor of which only the best level is shown, chosen separately in each place; it is not an axis.
    pub best_of: Option<String>,
    /// Over time: all steps of a ladder one after the other, instead of a panel for each.
    pub whole_run: bool,
    /// Only the last part of each run, such as `30m`; `None`: as the recipe says.
    #[serde(deserialize_with = "word")]
    #[schemars(with = "Option<Word>")]
    pub last: Option<String>,
    /// `steady`: only the steady part of each run.
    pub from: Option<PartStart>,
}

impl Show {
    /// Only this part of each run is shown; `None`: as the recipe says.
    pub fn part(&self) -> Option<Part> {
        let (last, from) = match self {
            Show::Table(table) => (&table.last, table.from),
            Show::Chart(_, chart) => (&chart.last, chart.from),
        };
        Part::of(last.clone(), from).expect("both together are refused when a recipe is read")
    }
}

/// One `[[show]]`: a table, or a chart by the name of its kind.
macro_rules! shown {
    ($($kind:ident)*) => {
        #[derive(Clone, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct WrittenShow {
            table: Option<TableAsked>,
            $($kind: Option<ChartAsked>,)*
        }

        impl WrittenShow {
            const KEYS: &[&str] = &["table", $(stringify!($kind)),*];

            fn given(self) -> Vec<Show> {
                let table = self.table.map(Show::Table);
                let charts = [$((stringify!($kind), self.$kind)),*];
                let charts = charts.into_iter().filter_map(|(kind, chart)| Some(Show::Chart(kind, chart?)));
                table.into_iter().chain(charts).collect()
            }
        }
    };
}

// The kinds that assay-report draws: a test of the binary compares them.
shown! { boxes jitter dots lines bars curves stack }

/// The JSON Schema of recipes, for editors. It follows from the types that parse them.
pub fn schema() -> serde_json::Value {
    schema_for!(WrittenRecipe).to_value()
}

impl Recipe {
    /// Parses a recipe. `scale`: one of its own, or `full`, which changes nothing. `sets`: paths with values from the
    /// command line. Fails with the first error.
    pub fn read(text: &str, scale: Option<&str>, sets: &[(String, String)]) -> Result<Recipe, RecipeError> {
        // From the text first: these errors have a position.
        let written: WrittenRecipe = toml::from_str(text).map_err(|error| RecipeError::of_toml(&error, text))?;
        let mut document: Table = text.parse().map_err(|error| RecipeError::of_toml(&error, text))?;
        document.remove("scale");
        let scales: Vec<String> = written.scale.keys().cloned().collect();
        if let Some(name) = scale.filter(|name| *name != "full") {
            let Some(values) = written.scale.get(name) else {
                let mut known: Vec<&str> = scales.iter().map(String::as_str).collect();
                known.push("full");
                return Err(RecipeError::new(format!("unknown scale {name}")).meant(name, &known));
            };
            for (path, value) in values {
                let place = place_of(text, &["scale", name, path]);
                let done = put(&mut document, path, value.clone());
                done.map_err(|error| error.within(&format!("scale {name}, `{path}`")).at(place))?;
            }
        }
        for (path, value) in sets {
            let done = put(&mut document, path, value_of(value));
            done.map_err(|error| error.within(&format!("--set {}", public_setting(&format!("{path}={value}")))))?;
        }
        let written = typed(&document)?;
        let factors = factors(&written.grid, text)?;
        let has_phases = written.step.iter().any(WrittenStep::is_phase_with_load);
        let cells = cells(&document, &factors, &written.except, text, has_phases)?;
        let numbered = written.step.into_iter().zip(1..);
        // A list of a scale or of the command line has no place in the text.
        let own: Table = text.parse().unwrap_or_default();
        let place_in = |list: &str, number: usize, key: &str| {
            let is_own = own.get(list) == document.get(list);
            let number = number.to_string();
            let paths = [&[list, &number, key][..], &[list, &number]];
            paths.into_iter().filter(|_| is_own).find_map(|path| place_of(text, path))
        };
        let of_step = |(step, number): (WrittenStep, usize)| {
            let steps = step.steps(number).map_err(|error| error.at(place_in("step", number, "name")));
            steps.map(|steps| steps.into_iter().map(move |step| (step, number)))
        };
        let numbered: Vec<(Step, usize)> =
            numbered.map(of_step).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        for (step, number) in &numbered {
            known_levels(step, &factors).map_err(|error| error.at(place_in("step", *number, "only")))?;
        }
        known_phases(&numbered).map_err(|(error, number)| error.at(place_in("step", number, "name")))?;
        for (step, number) in numbered.iter().filter(|(step, _)| !step.on.is_empty()) {
            let what = format!("step {}", step.name);
            let mut checked = cells.iter().map(|cell| cell.setup.check_targets(&what, &step.on));
            checked.try_for_each(|one| one.map_err(|error| error.at(place_in("step", *number, "on"))))?;
        }
        let steps: Vec<Step> = numbered.into_iter().map(|(step, _)| step).collect();
        if written.trials.count == 0 {
            return Err(RecipeError::new("trials.count must be at least 1").at(place_of(text, &["trials", "count"])));
        }
        if written.trials.drop >= written.trials.count {
            let error = RecipeError::new("trials.drop must be less than trials.count: nothing would be shown");
            return Err(error.at(place_of(text, &["trials", "drop"])));
        }
        let mut cases: Vec<&str> =
            cells.iter().flat_map(|cell| &cell.setup.run.case).map(|case| case.name.as_str()).collect();
        cases.sort_unstable();
        cases.dedup();
        let shows = shows(
            written.show,
            &Axes { factors: &factors, cases, phases: phases(&steps).map(|step| step.name.as_str()).collect() },
            &|number| place_in("show", number, ""),
        )?;
        Ok(Recipe {
            title: written.title,
            question: written.question,
            look_at: written.look_at,
            needs: written.needs,
            hash: hash(&document, &written.trials),
            factors,
            cells,
            trials: written.trials,
            steps,
            shows,
            part: Part::of(written.last.map(|Word(last)| last), written.from)?,
            scales,
            document,
            text: text.to_owned(),
        })
    }

    /// Its text as written, without passwords: what may be kept. It is the recipe of the same experiment.
    pub fn public_text(&self) -> String {
        public_text(&self.text)
    }

    /// What is measured in one trial after the other, in order; none: the load of `[run]`.
    pub fn phases(&self) -> impl Iterator<Item = &Step> {
        phases(&self.steps)
    }

    /// The names of a cell's levels, by factor.
    pub fn levels_of(&self, cell: &Cell) -> Vec<(String, String)> {
        let levels = self.factors.iter().zip(&cell.levels);
        levels.map(|(factor, level)| (factor.name.clone(), factor.levels[*level].name.clone())).collect()
    }

    /// The position of the key that sets a value of a cell, such as `run.time`, or of the factor that does: line and
    /// column. `None`: a scale or the command line sets it.
    pub fn place(&self, path: &[&str]) -> Option<(usize, usize)> {
        let sets = |set: &str| segments(set).is_ok_and(|set| set == path);
        let factor =
            self.factors.iter().find(|one| one.levels.iter().any(|level| level.sets.iter().any(|(set, _)| sets(set))));
        if let Some(factor) = factor {
            return place_of(&self.text, &["grid", &factor.name]);
        }
        let own: Table = self.text.parse().ok()?;
        (at(&own, path)? == at(&self.document, path)?).then(|| place_of(&self.text, path))?
    }
}

fn phases(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| step.when == When::Measure)
}

/// Checks names of phases, and those that lines of phases refer to: only earlier ones have results. The error comes
/// with the number of the step.
fn known_phases(steps: &[(Step, usize)]) -> Result<(), (RecipeError, usize)> {
    let mut known: Vec<&str> = Vec::new();
    let mut measured: Vec<&str> = Vec::new();
    let has_phases = steps.iter().any(|(step, _)| step.when == When::Measure);
    for (step, number) in steps {
        let wrong = |message: String| (RecipeError::new(message), *number);
        if step.when == When::DuringMeasure && has_phases {
            let (mut error, number) = wrong(format!("step {}: nothing is during a sequence of phases", step.name));
            error.hint = Some("give the phase a load in the background: beside = \"…\"".to_owned());
            return Err((error, number));
        }
        if step.when != When::Measure {
            continue;
        }
        if known.contains(&step.name.as_str()) {
            return Err(wrong(format!("two steps that are measured are named {}", step.name)));
        }
        let line = match &step.action {
            Action::Run { line, .. } => Some(line),
            _ => None,
        };
        for text in line.into_iter().chain(&step.beside) {
            let named = names(text).map_err(|reason| wrong(format!("step {}: {reason}", step.name)))?;
            for name in named {
                if !measured.iter().any(|phase| name.strip_prefix(phase).is_some_and(|rest| rest.starts_with('.'))) {
                    let error = wrong(format!(
                        "step {}: {name} is no value of each, and no metric of an earlier phase",
                        step.name
                    ));
                    let error = (error.0.meant(name.split('.').next().unwrap_or_default(), &measured), error.1);
                    return Err(error);
                }
            }
        }
        known.push(&step.name);
        measured.extend(line.map(|_| step.name.as_str()));
    }
    Ok(())
}

/// Checks the factors and levels that a step is for.
fn known_levels(step: &Step, factors: &[Factor]) -> Result<(), RecipeError> {
    let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
    for (name, levels) in &step.only {
        let Some(factor) = factors.iter().find(|factor| factor.name == *name) else {
            let error = RecipeError::new(format!("step {}: only: there is no factor {name}", step.name));
            return Err(error.meant(name, &names));
        };
        let known: Vec<&str> = factor.levels.iter().map(|level| level.name.as_str()).collect();
        // A scale may have fewer levels than the recipe.
        if !levels.iter().any(|level| known.contains(&level.as_str())) {
            let level = levels.first().map_or("", String::as_str);
            let error = RecipeError::new(format!("step {}: only: {name} has no level {level}", step.name));
            return Err(error.meant(level, &known));
        }
    }
    Ok(())
}

/// Sets a value in the document, which must still be a recipe afterwards.
fn put(document: &mut Table, path: &str, value: Value) -> Result<(), RecipeError> {
    set(document, &segments(path)?, value)?;
    typed(document).map(drop)
}

fn typed(document: &Table) -> Result<WrittenRecipe, RecipeError> {
    Value::Table(document.clone()).try_into().map_err(|error| RecipeError::of_toml(&error, ""))
}

/// The part that determines the results: more rounds are more of the same experiment.
fn hash(document: &Table, trials: &Trials) -> String {
    // A changed password does not make it another experiment.
    let document = public(document);
    let parts = SETUP.iter().chain(&["grid", "except", "step"]);
    let parts: Vec<(&str, Option<&Value>)> = parts.map(|part| (*part, document.get(*part))).collect();
    let text = serde_json::to_vec(&(parts, trials.seed)).expect("it is plain data");
    Sha256::digest(&text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Axes that are not factors: steps of a ladder, statements to compare, steps that are measured.
const SESSIONS: &str = "sessions";
const CASE: &str = "case";
const PHASE: &str = "phase";
/// Not a level: whichever is best.
const BEST: &str = "best";
/// Which trial may stand for a cell.
const OF: [&str; 3] = ["worst", "best", "second-best"];

fn shows(
    shown: Vec<WrittenShow>,
    axes: &Axes<'_>,
    place: &dyn Fn(usize) -> Option<(usize, usize)>,
) -> Result<Vec<Show>, RecipeError> {
    let mut shows = Vec::new();
    for (show, number) in shown.into_iter().zip(1..) {
        let fault = |message: String| RecipeError::new(format!("show {number}: {message}")).at(place(number));
        let mut given = show.given();
        let count = given.len();
        let (1, Some(show)) = (count, given.pop()) else {
            return Err(fault(format!("shows {count} things: use exactly one of {}", WrittenShow::KEYS.join(", "))));
        };
        let checked = match &show {
            Show::Table(table) => check(table, axes),
            Show::Chart(_, chart) => {
                let places = [&chart.x, &chart.color, &chart.facet].into_iter().flatten();
                let part = Part::of(chart.last.clone(), chart.from).map(|_| ());
                let best = axes.is_left_out(chart.best_of.as_ref(), &places.clone().collect::<Vec<_>>());
                [part, best]
                    .into_iter()
                    .chain(places.map(|axis| axes.know(axis)).chain(chart.reference.iter().map(is_number)))
                    .collect()
            }
        };
        checked.map_err(|error| error.within(&format!("show {number}")).at(place(number)))?;
        shows.push(show);
    }
    Ok(shows)
}

/// Possible rows, columns, colors and panels.
struct Axes<'a> {
    factors: &'a [Factor],
    /// Statements that are timed.
    cases: Vec<&'a str>,
    /// Steps that are measured.
    phases: Vec<&'a str>,
}

impl Axes<'_> {
    /// Checks the factor of `best_of`: one of which only the best level is shown has no place of its own.
    fn is_left_out(&self, best_of: Option<&String>, places: &[&String]) -> Result<(), RecipeError> {
        let Some(factor) = best_of else { return Ok(()) };
        let names: Vec<&str> = self.factors.iter().map(|factor| factor.name.as_str()).collect();
        if !names.contains(&factor.as_str()) {
            return Err(RecipeError::new(format!("best_of: there is no factor {factor}")).meant(factor, &names));
        }
        match places.contains(&factor) {
            true => Err(RecipeError::new(format!(
                "best_of = {factor}: only its best level is shown, so it cannot be an axis"
            ))),
            false => Ok(()),
        }
    }

    /// The names of an axis's levels; empty: sessions, which have none.
    fn levels(&self, axis: &str) -> Vec<&str> {
        match self.factors.iter().find(|factor| factor.name == axis) {
            Some(factor) => factor.levels.iter().map(|level| level.name.as_str()).collect(),
            None if axis == CASE => self.cases.clone(),
            None if axis == PHASE => self.phases.clone(),
            None => Vec::new(),
        }
    }

    /// Checks `only`. A scale may have fewer levels than the recipe, but not none of them.
    fn have_levels(&self, axis: &str, only: &[String]) -> Result<(), RecipeError> {
        let Some(first) = only.first() else { return Ok(()) };
        if axis == SESSIONS {
            return Err(RecipeError::new("only: the steps of a ladder are shown together; choose levels of a factor"));
        }
        let known = self.levels(axis);
        match only.iter().any(|level| known.contains(&level.as_str())) {
            true => Ok(()),
            false => Err(RecipeError::new(format!("only: {axis} has no level {first}")).meant(first, &known)),
        }
    }

    fn know(&self, axis: &str) -> Result<(), RecipeError> {
        let mut names: Vec<&str> = self.factors.iter().map(|factor| factor.name.as_str()).collect();
        names.push(SESSIONS);
        names.extend((!self.cases.is_empty()).then_some(CASE));
        names.extend((!self.phases.is_empty()).then_some(PHASE));
        match names.contains(&axis) {
            true => Ok(()),
            false => Err(RecipeError::new(format!("there is no factor {axis}")).meant(axis, &names)),
        }
    }
}

fn is_number((name, value): (&String, &Word)) -> Result<(), RecipeError> {
    let number = value.0.parse::<f64>().is_ok_and(f64::is_finite);
    number.then_some(()).ok_or_else(|| RecipeError::new(format!("reference {name} is not a number")))
}

fn check(table: &TableAsked, axes: &Axes<'_>) -> Result<(), RecipeError> {
    for axis in [Some(&table.rows), table.columns.as_ref()].into_iter().flatten() {
        axes.know(axis)?;
    }
    axes.have_levels(&table.rows, &table.only)?;
    if table.columns.as_ref() == Some(&table.rows) {
        return Err(RecipeError::new(format!("rows and columns are both {}", table.rows)));
    }
    Part::of(table.last.clone(), table.from)?;
    if table.fault_above.is_some() && table.ratio_to.as_ref().is_none_or(|base| base == BEST) {
        return Err(RecipeError::new("fault_above needs a level to compare with: ratio_to"));
    }
    let places: Vec<&String> = [Some(&table.rows), table.columns.as_ref()].into_iter().flatten().collect();
    axes.is_left_out(table.best_of.as_ref(), &places)?;
    if let Some(of) = table.of.as_ref().filter(|of| !OF.contains(&of.as_str())) {
        return Err(RecipeError::new(format!("of = {of}")).meant(of, &OF));
    }
    let Some(base) = table.ratio_to.as_ref().filter(|base| *base != BEST) else { return Ok(()) };
    let axis = table.columns.as_ref().unwrap_or(&table.rows);
    if axis == SESSIONS {
        return Err(RecipeError::new(
            "ratio_to needs a level of a factor, not a step of a ladder: steps share one server start",
        ));
    }
    let mut levels = axes.levels(axis);
    if table.columns.is_none() && !table.only.is_empty() {
        levels.retain(|level| table.only.iter().any(|only| only == level));
    }
    match levels.contains(&base.as_str()) {
        true => Ok(()),
        false => Err(RecipeError::new(format!("ratio_to: {axis} has no level {base}")).meant(base, &levels)),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    const BASE: &str = r#"title = "What does durability cost?"

[server.db]
product = "mysql:8.0"
settings = { innodb_buffer_pool_size = "1G" }

[data]
prepare = "tpcc --warehouses 10"

[run]
workload = "tpcc --warehouses 10"
sessions = [1, 4]
time = "5m"

[grid]
sync_binlog = { "server.db.settings.sync_binlog" = [0, 1, 1000] }
memory = { "server.db.settings.innodb_buffer_pool_size" = ["512M", "2G"] }

[scale.tiny]
"run.time" = "10s"
"trials.count" = 2
"#;

    fn read(text: &str) -> Result<Recipe, RecipeError> {
        Recipe::read(text, None, &[])
    }

    fn wrong(text: &str) -> String {
        let error = read(text).unwrap_err();
        let place = error.place.map_or(String::new(), |(line, column)| format!("{line}:{column}: "));
        format!("{place}{}\n{}", error.message, error.hint.unwrap_or_default())
    }

    #[test]
    fn cells_are_all_combinations_with_the_levels_put_in() {
        let recipe = read(BASE).unwrap();
        let names: Vec<&str> = recipe.cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "sync_binlog=0 memory=512M",
                "sync_binlog=0 memory=2G",
                "sync_binlog=1 memory=512M",
                "sync_binlog=1 memory=2G",
                "sync_binlog=1000 memory=512M",
                "sync_binlog=1000 memory=2G"
            ]
        );
        let server = &recipe.cells[5].setup.server["db"];
        assert_eq!(server.settings["sync_binlog"].0, "1000");
        assert_eq!(server.settings["innodb_buffer_pool_size"].0, "2G");
        assert_eq!(recipe.cells[5].setup.run.sessions.0, ["1", "4"]);
        assert_eq!((recipe.trials.count, recipe.scales), (3, vec!["tiny".to_owned()]));
    }

    #[test]
    fn exceptions_leave_cells_out() {
        let text = format!("{BASE}\n[[except]]\nsync_binlog = [0, 1]\nmemory = '2G'\n[[except]]\nsync_binlog = 1000\n");
        let names: Vec<String> = read(&text).unwrap().cells.into_iter().map(|cell| cell.name).collect();
        assert_eq!(names, ["sync_binlog=0 memory=512M", "sync_binlog=1 memory=512M"]);
        assert_snapshot!(wrong(&format!("{BASE}[[except]]\nmemroy = '2G'\n")), @r"
        22:1: except: there is no factor memroy
        did you mean `memory`?
        ");
        assert_snapshot!(wrong(&format!("{BASE}[[except]]\nmemory = '3G'\n")), @r"
        22:1: except: memory has no level 3G
        known: 512M, 2G
        ");
    }

    #[test]
    fn a_level_may_set_several_paths_and_have_a_price() {
        let grid = r#"title = "t"
[server.db]
product = "postgres"
[run]
workload = "w"
[grid.pooler.levels]
direct = {}
pooled = { "server.db.front.pgbouncer.settings.default_pool_size" = 20, "run.options.prepared" = false, price = { per_hour = 0.4 } }
"#;
        let recipe = read(grid).unwrap();
        let setups: Vec<_> = recipe.cells.iter().map(|cell| &cell.setup).collect();
        assert!(setups[0].server["db"].front.is_empty());
        assert_eq!(setups[1].server["db"].front["pgbouncer"].settings["default_pool_size"].0, "20");
        assert_eq!(setups[1].run.options["prepared"].0, "off");
        let prices: Vec<Option<f64>> = recipe.cells.iter().map(|cell| cell.price_per_hour).collect();
        assert_eq!(prices, [None, Some(0.4)]);
    }

    #[test]
    fn a_list_by_itself_is_a_factor_named_like_its_last_segment() {
        let text = BASE.replace(
            "sync_binlog = { \"server.db.settings.sync_binlog\" = [0, 1, 1000] }",
            "\"server.db.settings.a.b\" = [0]",
        );
        let text = text.replace("settings.a.b", "settings.sync_binlog");
        assert_eq!(read(&text).unwrap().factors[0].name, "sync_binlog");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_the_nearest_name() {
        assert_snapshot!(wrong(&BASE.replace("time = ", "tiem = ")), @r"
        13:1: unknown field `tiem`, expected one of `workload`, `case`, `io`, `filesystem`, `on`, `sessions`, `rate`, `warmup`, `time`, `options`, `session_sql`
        did you mean `time`?
        ");
        assert_snapshot!(wrong(&BASE.replace("[1, 4]", "{ a = 1 }")), @r"12:12: invalid type: map, expected one value, or a list of them");
        assert_snapshot!(wrong(&BASE.replace("db.settings.sync_binlog", "db.setings.sync_binlog")), @r"
        16:1: factor sync_binlog, level 0, `server.db.setings.sync_binlog`: unknown field `setings`, expected one of `product`, `url`, `binaries`, `settings`, `config`, `cpus`, `memory`, `huge_pages`, `transparent_huge_pages`, `replicas`, `front`, `sql`, `socket`, `parameters`, `data`, `filesystem`
        did you mean `settings`?
        ");
        assert_snapshot!(wrong(&BASE.replace("server.db.settings.sync_binlog", "sever.db.settings.sync_binlog")), @r"
        16:1: factor sync_binlog, level 0, `sever.db.settings.sync_binlog`: a factor cannot set `sever`
        did you mean `server`?
        ");
        assert_snapshot!(wrong(&BASE.replace("server.db.settings.sync_binlog", "run.workload.x")), @r"16:1: factor sync_binlog, level 0, `run.workload.x`: run: `workload` is not a table");
        assert_snapshot!(wrong(&BASE.replace("product", "#")), @r"cell sync_binlog=0 memory=512M: server.db has neither product nor url");
        assert_snapshot!(wrong(&BASE.replace("title = \"", "title = ")), @r#"1:9: missing opening quote, expected `"`"#);
        assert_snapshot!(wrong(&format!("{BASE}[[step]]\nwhen = 'before-round'\nsql = 'VACUUM'\n")), @r#"
        22:1: step 1: no server is running when sql is due
        use when = "before-trial", "before-measure" or "after-measure"
        "#);
        assert_snapshot!(wrong(&format!("{BASE}[[show]]\nboxes = {{ x = 'memry' }}\n")), @r"
        22:1: show 1: there is no factor memry
        did you mean `memory`?
        ");
        assert_snapshot!(wrong(&format!("{BASE}[[show]]\ntable = {{ rows = 'memry' }}\n")), @r"
        22:1: show 1: there is no factor memry
        did you mean `memory`?
        ");
    }

    #[test]
    fn steps_and_views_for_some_levels_name_levels_that_are_there() {
        let with = |text: &str| wrong(&format!("{BASE}{text}\n"));
        let step = |only: &str| with(&format!("[[step]]\nwhen = 'after-measure'\ncheckpoint = true\nonly = {only}"));
        assert!(step("{ memry = '2G' }").contains("only: there is no factor memry\ndid you mean `memory`?"));
        assert!(step("{ memory = '3G' }").contains("only: memory has no level 3G"));
        let show = |show: &str| with(&format!("[[show]]\ntable = {{ rows = 'memory', {show} }}"));
        assert!(show("best_of = 'memory'").contains("only its best level is shown, so it cannot be an axis"));
        assert!(show("best_of = 'sync'").contains("best_of: there is no factor sync"));
        assert!(show("last = '1m', from = 'steady'").contains("both last and from: give one"));
        let steps = with("[[show]]\ntable = { rows = 'sessions', only = ['1'] }");
        assert!(steps.contains("only: the steps of a ladder are shown together"), "{steps}");
        assert!(show("only = ['9G']").contains("only: memory has no level 9G"));
        assert!(show("only = ['2G'], ratio_to = '512M'").contains("ratio_to: memory has no level 512M"));
        assert!(show("fault_above = 5").contains("fault_above needs a level to compare with: ratio_to"));
        let recipe = read(&format!(
            "{BASE}[[step]]\nwhen = 'after-measure'\ncheckpoint = true\nonly = {{ memory = ['2G'] }}\n[[show]]\nlines = {{ from = 'steady' }}\n"
        ));
        let recipe = recipe.unwrap();
        let levels = |memory: &str| vec![("memory".to_owned(), memory.to_owned())];
        assert!(recipe.steps[0].is_for(&levels("2G")) && !recipe.steps[0].is_for(&levels("512M")));
        assert_eq!(recipe.shows[0].part(), Some(Part::Steady));
    }

    #[test]
    fn scales_and_sets_are_one_mechanism_and_decide_the_experiment() {
        let full = read(BASE).unwrap();
        let tiny = Recipe::read(BASE, Some("tiny"), &[]).unwrap();
        let time = |recipe: &Recipe| recipe.cells[0].setup.run.time.clone().unwrap().0;
        assert_eq!((time(&full), time(&tiny), tiny.trials.count), ("5m".into(), "10s".into(), 2));
        let set = |path: &str, value: &str| Recipe::read(BASE, None, &[(path.to_owned(), value.to_owned())]);
        assert_eq!(time(&set("run.time", "10s").unwrap()), "10s");
        assert_eq!(set("run.sessions", "[8]").unwrap().cells[0].setup.run.sessions.0, ["8"]);
        // More rounds, other texts, comments: the same experiment. A different time: a different one.
        assert_eq!(set("trials.count", "9").unwrap().hash, full.hash);
        assert_eq!(set("title", "another").unwrap().hash, full.hash);
        assert_eq!(read(&format!("# a comment\n{BASE}")).unwrap().hash, full.hash);
        assert_ne!(tiny.hash, full.hash);
        assert_ne!(set("trials.seed", "9").unwrap().hash, full.hash);
        let error = set("run.tiem", "10s").unwrap_err();
        assert!(error.message.starts_with("--set run.tiem=10s: unknown field `tiem`"), "{error:?}");
        let error = Recipe::read(BASE, Some("tny"), &[]).unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.hint.as_deref()),
            ("unknown scale tny", Some("did you mean `tiny`?"))
        );
    }

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let wrong = wrong(text);
        assert!(wrong.contains(words), "{wrong}");
    }

    #[test]
    fn load_and_data_go_to_servers_and_parts_of_them_that_are_there() {
        let text = BASE.replace("sessions = [1, 4]", "on = ['db.primary', 'db.replica1']");
        refused(&text, "run.on: db has no replica1\nknown: primary");
        let text = text.replace("product =", "replicas = 1\nproduct =");
        let setup = &read(&text).unwrap().cells[0].setup;
        assert_eq!(setup.targets(), [("db", Some("primary")), ("db", Some("replica1"))]);
        assert_eq!((setup.loaded(), setup.holds_data("db")), (vec!["db"], true));
        refused(&text.replace("replica1", "replica2"), "run.on: db has no replica2\ndid you mean `replica1`?");
        let text = text.replace("[data]", "[server.other]\nproduct = 'mysql'\n[data]\non = 'other'");
        let setup = &read(&text).unwrap().cells[0].setup;
        assert_eq!((setup.holds_data("db"), setup.holds_data("other")), (false, true));
        refused(&text.replace("on = 'other'", "on = 'third'"), "data.on: there is no server third\n");
    }

    #[test]
    fn steps_return_values_and_rounds_are_dropped_within_limits() {
        let step = "[[step]]\nwhen = 'after-measure'\nvalue = true\n";
        let recipe = read(&format!("{BASE}{step}sql = 'SELECT 1'\n")).unwrap();
        assert!(recipe.steps[0].value);
        refused(&format!("{BASE}{step}checkpoint = true\n"), "step 1: value is for sql, command and run");
        refused(&format!("{BASE}[trials]\ncount = 3\ndrop = 3\n"), "trials.drop must be less than trials.count");
        let table = "[[show]]\ntable = { rows = 'memory', of = 'wrost' }\n";
        refused(&format!("{BASE}{table}"), "show 1: of = wrost\ndid you mean `worst`?");
        let Show::Table(table) = &read(&format!("{BASE}{}", table.replace("wrost", "worst"))).unwrap().shows[0] else {
            panic!()
        };
        assert_eq!(table.of.as_deref(), Some("worst"));
    }

    #[test]
    fn a_step_may_be_a_run_that_goes_to_parts_of_servers_and_shows_one_of_its_metrics() {
        let text = BASE.replace("product =", "replicas = 1\nproduct =");
        let step = "[[step]]\nname = 'lag'\nwhen = 'during-measure'\nafter = '0s'\n";
        let run = "run = 'read_after_write'\non = ['db.primary', 'db.replica1']\n";
        let recipe = read(&format!("{text}{step}{run}value = 'visible.max'\n")).unwrap();
        let Action::Run { line, metric } = &recipe.steps[0].action else { panic!("{:?}", recipe.steps) };
        assert_eq!((line.as_str(), metric.as_deref()), ("read_after_write", Some("visible.max")));
        assert_eq!(recipe.steps[0].on, ["db.primary", "db.replica1"]);
        refused(&format!("{text}{step}{run}value = true\n"), "the value of a run is one of its metrics\nsuch as");
        refused(&format!("{text}{step}sql = 'SELECT 1'\nvalue = 'p99'\n"), "step 1: value = p99 is for a run\n");
        refused(&format!("{text}{step}{}", run.replace("replica1", "replica2")), "step lag: db has no replica2\n");
        let after = "[[step]]\nwhen = 'after-measure'\n";
        refused(&format!("{text}{after}sql = 'SELECT 1'\non = ['db', 'db']\n"), "sql is for one server, but");
        refused(&format!("{text}{after}crash = true\non = 'db.replica1'\n"), "not a part of it\nrestart and crash");
        assert!(read(&format!("{text}{after}sql = 'SELECT 1'\non = 'db.replica1'\n")).is_ok());
    }

    #[test]
    fn a_server_that_is_already_there_takes_sql_only() {
        let text = BASE.replace("product = \"mysql:8.0\"", "url = \"mysql://app@host/bench\"");
        assert_snapshot!(wrong(&text), @r"
        cell sync_binlog=0 memory=512M: server.db is given by its url: it can be changed only by SQL
        use server.db.sql, run.session_sql or steps; or product instead of url
        ");
    }
}
