//! Timed actions before and after a trial.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::RecipeError;
use crate::expression::bound;
use crate::word::{Word, Words};

/// An action around a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The name of its duration in results.
    pub name: String,
    /// When it is due.
    pub when: When,
    /// Its action.
    pub action: Action,
    /// The server that it affects, by its name in the recipe; empty: the first that is loaded. SQL may go to a part of
    /// it, such as `db.replica1`, and a run to several.
    pub on: Vec<String>,
    /// The part of that server: `primary`, `replica1`, or a front such as `pgbouncer`.
    pub node: Option<String>,
    /// Whether the number that SQL or a command returns is its value in results, instead of its seconds.
    pub value: bool,
    /// Levels of factors, by factor: the step is for their cells only; empty: for all.
    pub only: BTreeMap<String, Vec<String>>,
    /// With `When::DuringMeasure`: how long after the start of the measured run, such as `10s`.
    pub after: Option<String>,
    /// With `When::Measure`: arguments of `assay run` for a load in the background of its own run.
    pub beside: Option<String>,
    /// With `When::Measure`: how often its run is repeated; `None`: it is done once.
    pub until: Option<Until>,
}

/// Repeats a run until a metric of it is known well enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    /// `tps`
    pub metric: String,
    /// Half the width of its confidence interval, as a share of its mean. 0 < within < 1
    pub within: f64,
    /// Most runs. 3 <= at_most
    pub at_most: u32,
}

/// Runs of a phase before an interval says anything.
pub(crate) const RUNS_MIN: u32 = 3;
/// Most runs where the recipe says nothing.
const RUNS_MAX: u32 = 10;

impl Until {
    /// Parses `tps within 2%`.
    fn parse(text: &str, at_most: Option<u32>) -> Result<Until, String> {
        let expected = || format!("until = {text:?}: expected a metric and a share, such as \"tps within 2%\"");
        let (metric, share) = text.split_once(" within ").ok_or_else(expected)?;
        let percent: f64 =
            share.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok()).ok_or_else(expected)?;
        let at_most = at_most.unwrap_or(RUNS_MAX);
        if metric.trim().is_empty() || !(percent > 0.0 && percent < 100.0) {
            return Err(expected());
        }
        if at_most < RUNS_MIN {
            return Err(format!("at_most = {at_most}: an interval needs at least {RUNS_MIN} runs"));
        }
        Ok(Until { metric: metric.trim().to_owned(), within: percent / 100.0, at_most })
    }
}

/// When a step is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Before the first trial of a round; no server runs.
    BeforeRound,
    /// After the server has started; before the warm-up.
    BeforeTrial,
    /// After the warm-up, right before the measured run.
    BeforeMeasure,
    /// A phase: what is measured is the sequence of these, in the order written, on servers that stay.
    Measure,
    /// During the measured run; see `Step::after`.
    DuringMeasure,
    /// Right after the measured run; the server is still running.
    AfterMeasure,
    /// After the server was stopped.
    AfterTrial,
    /// After the last trial of a round; no server runs.
    AfterRound,
}

impl Step {
    /// Whether it is for a cell with these levels, by factor.
    pub fn is_for(&self, levels: &[(String, String)]) -> bool {
        self.only.iter().all(|(factor, only)| levels.iter().any(|(name, level)| name == factor && only.contains(level)))
    }
}

impl When {
    /// As written in recipes.
    pub fn name(self) -> &'static str {
        match self {
            When::BeforeRound => "before-round",
            When::BeforeTrial => "before-trial",
            When::BeforeMeasure => "before-measure",
            When::Measure => "measure",
            When::DuringMeasure => "during-measure",
            When::AfterMeasure => "after-measure",
            When::AfterTrial => "after-trial",
            When::AfterRound => "after-round",
        }
    }

    /// Whether the trial's server runs.
    pub fn has_server(self) -> bool {
        matches!(
            self,
            When::BeforeTrial | When::BeforeMeasure | When::Measure | When::DuringMeasure | When::AfterMeasure
        )
    }
}

/// Actions of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs statements on the primary, one after the other.
    Sql(Vec<String>),
    /// Runs a shell command, which gets the topology in its environment.
    Command(String),
    /// Makes the primary write everything that is only in memory.
    Checkpoint,
    /// Settles the primary.
    Settle,
    /// Stops a server cleanly and starts it again.
    Restart,
    /// Kills a server (SIGKILL) and starts it again, which recovers from its log.
    Crash,
    /// Empties the machine's page cache (root only).
    DropCaches,
    /// Waits this long, such as `30s`.
    Rest(String),
    /// A run of its own.
    Run {
        /// Arguments of `assay run`: `read_after_write --rate 20 --time 10s`.
        line: String,
        /// The metric that is its value in results; `None`: its seconds.
        metric: Option<String>,
    },
}

/// A step as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenStep {
    name: Option<String>,
    when: When,
    sql: Option<Words>,
    command: Option<String>,
    #[serde(default)]
    checkpoint: bool,
    #[serde(default)]
    settle: bool,
    #[serde(default)]
    restart: bool,
    #[serde(default)]
    crash: bool,
    #[serde(default)]
    drop_caches: bool,
    rest: Option<Word>,
    run: Option<String>,
    #[serde(default)]
    on: Words,
    node: Option<String>,
    value: Option<Word>,
    /// Levels of factors, by factor: the step is for their cells only.
    #[serde(default)]
    only: BTreeMap<String, Words>,
    after: Option<Word>,
    /// With when = "measure": values, by name; the step is done once for each of them, and `{NAME}` is the value.
    #[serde(default)]
    each: BTreeMap<String, Words>,
    /// With when = "measure": arguments of `assay run` for a load in the background.
    beside: Option<String>,
    /// With when = "measure": repeat the run until a metric is known so well: "tps within 2%".
    until: Option<String>,
    /// With until: most runs.
    at_most: Option<u32>,
}

impl WrittenStep {
    /// Whether it measures a load.
    pub(crate) fn is_phase_with_load(&self) -> bool {
        self.when == When::Measure && self.run.is_some()
    }

    /// One for each value of `each`.
    pub(crate) fn steps(self, number: usize) -> Result<Vec<Step>, RecipeError> {
        if self.when != When::Measure {
            return Ok(vec![self.step(number)?]);
        }
        let mut all: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (name, Words(values)) in &self.each {
            let with = |one: &Vec<(String, String)>| {
                let with = |value: &String| one.iter().cloned().chain([(name.clone(), value.clone())]).collect();
                values.iter().map(with).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        if all.is_empty() {
            return Err(RecipeError::new(format!("step {number}: each has no values")));
        }
        let bind = |values: &[(String, String)]| {
            let fill = |text: &Option<String>| text.as_ref().map(|text| bound(text, values)).transpose();
            let filled = || {
                let mut one = self.clone();
                (one.name, one.run, one.beside) = (fill(&self.name)?, fill(&self.run)?, fill(&self.beside)?);
                // Without its values in the name, all would have the same.
                if one.name == self.name {
                    let words = values.iter().map(|(name, value)| format!(" {name}={value}"));
                    one.name = one.name.map(|name| name + &words.collect::<String>());
                }
                Ok::<_, String>(one)
            };
            filled().map_err(|reason| RecipeError::new(format!("step {number}: {reason}")))?.step(number)
        };
        all.iter().map(|values| bind(values)).collect()
    }

    /// `number` counts from 1.
    pub(crate) fn step(self, number: usize) -> Result<Step, RecipeError> {
        let mut actions: Vec<(&str, Action)> = Vec::new();
        actions.extend(self.sql.map(|Words(statements)| ("sql", Action::Sql(statements))));
        actions.extend(self.command.map(|command| ("command", Action::Command(command))));
        actions.extend(self.checkpoint.then_some(("checkpoint", Action::Checkpoint)));
        actions.extend(self.settle.then_some(("settle", Action::Settle)));
        actions.extend(self.restart.then_some(("restart", Action::Restart)));
        actions.extend(self.crash.then_some(("crash", Action::Crash)));
        actions.extend(self.drop_caches.then_some(("drop_caches", Action::DropCaches)));
        actions.extend(self.rest.map(|Word(time)| ("rest", Action::Rest(time))));
        // A boolean is a word too.
        let value = self.value.map(|Word(value)| value).filter(|value| value != "off");
        let metric = value.clone().filter(|value| value != "on");
        actions.extend(self.run.map(|line| ("run", Action::Run { line, metric: metric.clone() })));
        let count = actions.len();
        let (1, Some((kind, action))) = (count, actions.pop()) else {
            return Err(RecipeError::new(format!(
                "step {number} has {count} actions: use exactly one of sql, command, checkpoint, settle, restart, crash, \
                 drop_caches, rest, run"
            )));
        };
        let needs_server = !matches!(action, Action::Command(_) | Action::DropCaches | Action::Rest(_));
        if needs_server && !self.when.has_server() {
            let mut error = RecipeError::new(format!("step {number}: no server is running when {kind} is due"));
            error.hint = Some("use when = \"before-trial\", \"before-measure\" or \"after-measure\"".to_owned());
            return Err(error);
        }
        if self.node.is_some() && !matches!(action, Action::Restart | Action::Crash) {
            return Err(RecipeError::new(format!("step {number}: node is for restart and crash")));
        }
        if self.when == When::DuringMeasure && matches!(action, Action::Rest(_)) {
            return Err(RecipeError::new(format!("step {number}: {kind} cannot be done beside the measured run")));
        }
        let is_run = matches!(action, Action::Run { .. });
        if self.when == When::Measure {
            if self.name.is_none() {
                return Err(RecipeError::new(format!("step {number}: a step that is measured needs a name")));
            }
            if value.is_some() && is_run {
                let mut error = RecipeError::new(format!("step {number}: a step that is measured has all its metrics"));
                error.hint = Some(
                    "leave out value, and show one of them: table = { rows = \"phase\", value = \"p99\" }".to_owned(),
                );
                return Err(error);
            }
            if !is_run && (self.beside.is_some() || self.until.is_some()) {
                return Err(RecipeError::new(format!("step {number}: beside and until are for a run")));
            }
        } else if self.beside.is_some() || self.until.is_some() || !self.each.is_empty() {
            return Err(RecipeError::new(format!(
                "step {number}: each, beside and until are for steps with when = \"measure\""
            )));
        }
        if self.at_most.is_some() && self.until.is_none() {
            return Err(RecipeError::new(format!("step {number}: at_most needs until")));
        }
        let until = self.until.as_ref().map(|text| Until::parse(text, self.at_most)).transpose();
        let until = until.map_err(|reason| RecipeError::new(format!("step {number}: {reason}")))?;
        let may_return = matches!(action, Action::Sql(_) | Action::Command(_)) || is_run;
        let in_trial = !matches!(self.when, When::BeforeRound | When::AfterRound);
        if value.is_some() && !(may_return && in_trial) {
            return Err(RecipeError::new(format!(
                "step {number}: value is for sql, command and run, before, during and after a trial"
            )));
        }
        match (&metric, is_run, value.is_some()) {
            (None, true, true) => {
                let mut error = RecipeError::new(format!("step {number}: the value of a run is one of its metrics"));
                error.hint = Some("such as value = \"p99\"".to_owned());
                return Err(error);
            }
            (Some(metric), false, _) => {
                let mut error = RecipeError::new(format!("step {number}: value = {metric} is for a run"));
                error.hint = Some("sql and command return a number with value = true".to_owned());
                return Err(error);
            }
            _ => {}
        }
        if self.on.0.len() > 1 && !is_run {
            return Err(RecipeError::new(format!("step {number}: {kind} is for one server, but `on` has several")));
        }
        let has_part = self.on.0.iter().any(|name| name.contains('.'));
        if has_part && !is_run && kind != "sql" {
            let mut error =
                RecipeError::new(format!("step {number}: `on` names a server for {kind}, not a part of it"));
            error.hint = Some("restart and crash take a part as node = \"replica1\"".to_owned());
            return Err(error);
        }
        if self.after.is_some() != (self.when == When::DuringMeasure) {
            let mut error =
                RecipeError::new(format!("step {number}: after and when = \"during-measure\" belong together"));
            error.hint = Some("such as when = \"during-measure\", after = \"10s\"".to_owned());
            return Err(error);
        }
        Ok(Step {
            name: self.name.unwrap_or_else(|| kind.to_owned()),
            when: self.when,
            action,
            on: self.on.0,
            node: self.node,
            value: value.is_some() && !is_run,
            only: self.only.into_iter().map(|(factor, Words(levels))| (factor, levels)).collect(),
            after: self.after.map(|Word(after)| after),
            beside: self.beside,
            until,
        })
    }
}
