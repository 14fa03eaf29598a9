//! What a process of this program does for the one that started it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::option::{SpecOption, of, put};
use crate::{FleetSpec, IoSpec, OptionForm, OutputSpec, RunSpec, SqlSpec, Wrong, read};

/// A child gets all of it on its stdin: everybody on a machine can read the arguments of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChildSpec {
    /// What it does.
    pub work: ChildWork,
    /// What becomes of the result.
    #[serde(default)]
    pub output: OutputSpec,
    /// Who shares the work; `None`: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetSpec>,
}

/// What a child does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildWork {
    /// A run, or another command of a workload.
    Run(Box<RunSpec>),
    /// `assay sql`.
    Sql(Box<SqlSpec>),
    /// `assay io`.
    Io(Box<IoSpec>),
}

/// Options of commands with a workload that are not part of a `RunSpec`.
const OPTIONS: [SpecOption; 15] = [
    of("format", "output.format", OptionForm::Value),
    of("record", "output.record", OptionForm::Value),
    of("force", "output.force", OptionForm::Switch),
    of("no-record", "output.no_record", OptionForm::Switch),
    of("journal", "output.journal", OptionForm::Value),
    of("history", "output.history", OptionForm::Value),
    of("metrics-listen", "output.metrics_listen", OptionForm::Value),
    of("verbose", "output.verbose", OptionForm::Switch),
    of("quiet", "output.quiet", OptionForm::Switch),
    of("fleet", "fleet.url", OptionForm::Value),
    of("agents", "fleet.agents", OptionForm::Value),
    of("fleet-creds", "fleet.credentials", OptionForm::Value),
    of("fleet-ca", "fleet.ca", OptionForm::Value),
    of("db-from-agent-env", "fleet.db_from_agent_env", OptionForm::Switch),
    of("lease", "fleet.lease", OptionForm::Value),
];

impl ChildSpec {
    /// A run or another command of a workload by this process alone.
    pub fn of_run(spec: RunSpec, output: OutputSpec) -> ChildSpec {
        ChildSpec { work: ChildWork::Run(Box::new(spec)), output, fleet: None }
    }

    /// As a trial of an experiment or a duel: with this seed unless it has its own, this record, and nothing on the
    /// terminal.
    #[must_use]
    pub fn as_trial(&self, seed: u64, record: &Path) -> ChildSpec {
        let mut trial = self.clone();
        let own = match &mut trial.work {
            ChildWork::Run(spec) => &mut spec.generator.seed,
            ChildWork::Sql(spec) => &mut spec.seed,
            ChildWork::Io(spec) => &mut spec.seed,
        };
        own.get_or_insert(seed);
        (trial.output.record, trial.output.quiet) = (Some(record.to_owned()), true);
        trial
    }

    /// Reads what `to_json_with_passwords` has written.
    pub fn from_json(text: &str) -> Result<ChildSpec, Wrong> {
        read::from_json(text)
    }

    /// For the process that executes it: through a pipe, never a file.
    pub fn to_json_with_passwords(&self) -> String {
        let mut value = self.outside_of_work();
        value["work"] = match &self.work {
            ChildWork::Run(spec) => json!({ "run": spec.to_value_with_passwords() }),
            ChildWork::Sql(spec) => json!({ "sql": spec.to_value_with_passwords() }),
            ChildWork::Io(spec) => json!({ "io": spec }),
        };
        value.to_string()
    }

    /// The option of `output` or `fleet` with this name; `-` and `_` mean the same.
    pub fn option(name: &str) -> Option<&'static SpecOption> {
        let name = name.replace('_', "-");
        OPTIONS.iter().find(|option| option.name == name)
    }

    /// With one value of `output` or `fleet` set, as text. Does not check whether the values fit together.
    pub fn with(&self, option: &SpecOption, text: &str) -> Result<ChildSpec, Wrong> {
        let mut value = self.outside_of_work();
        put(&mut value, option.path, text.into());
        // Without the work, whose passwords would be lost.
        value["work"] = json!({ "io": {} });
        let changed: ChildSpec = read::from_value(&value)?;
        Ok(ChildSpec { work: self.work.clone(), ..changed })
    }

    /// Checks that the values of `output` and `fleet` fit together.
    pub fn check(&self) -> Result<(), Wrong> {
        match &self.fleet {
            Some(fleet) if fleet.url.reveal().is_empty() => {
                Err(Wrong::new("fleet", "options of a fleet need its NATS server: {fleet.url}"))
            }
            _ => Ok(()),
        }
    }

    fn outside_of_work(&self) -> Value {
        let mut value = json!({ "output": self.output });
        if let Some(fleet) = &self.fleet {
            value["fleet"] = serde_json::to_value(fleet).expect("a spec is plain data");
            value["fleet"]["url"] = fleet.url.reveal().into();
        }
        value
    }

    /// The name of the option at a path of `output` or `fleet`.
    pub(crate) fn option_at(path: &str) -> Option<String> {
        OPTIONS.iter().find(|option| option.path == path).map(|option| option.name.to_owned())
    }
}
