//! Timed actions before and after a trial.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::RecipeError;
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
            When::DuringMeasure => "during-measure",
            When::AfterMeasure => "after-measure",
            When::AfterTrial => "after-trial",
            When::AfterRound => "after-round",
        }
    }

    /// Whether the trial's server runs.
    pub fn has_server(self) -> bool {
        matches!(self, When::BeforeTrial | When::BeforeMeasure | When::DuringMeasure | When::AfterMeasure)
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
}

impl WrittenStep {
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
        })
    }
}
