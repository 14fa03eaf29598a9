//! What `assay sql` is asked to do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::option::{OptionForm, SpecOption, of, set, words_of};
use crate::spec::tags;
use crate::{Concealed, Wrong, read};

/// Statements that are timed against each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SqlSpec {
    /// The statements, in the order of the results.
    pub cases: Vec<CaseSpec>,
    /// Statements to run once, at the beginning.
    pub prepare: Vec<String>,
    /// Statements to run once, at the end.
    pub cleanup: Vec<String>,
    /// The database; `None`: an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Concealed>,
    /// Timed runs of each case.
    #[serde(deserialize_with = "read::at_least_one")]
    pub runs: u64,
    /// Untimed runs of each case before them; `None`: see `warmup_rounds`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::count")]
    pub warmup: Option<u64>,
    /// Restart the server before every run, and drop the page cache if permitted.
    #[serde(deserialize_with = "read::switch")]
    pub cold: bool,
    /// The case to which the others are compared, or `fastest`; `None`: the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// All cases must return the same rows.
    #[serde(deserialize_with = "read::switch")]
    pub same_result: bool,
    /// Get the plan of each run.
    #[serde(deserialize_with = "read::switch")]
    pub explain: bool,
    /// Read the server's counters before and after a run of each case.
    #[serde(deserialize_with = "read::switch")]
    pub counters: bool,
    /// Untimed statements before every run of every case.
    #[serde(deserialize_with = "read::each")]
    pub setup: Vec<String>,
    /// Untimed statements after every run of every case.
    #[serde(deserialize_with = "read::each")]
    pub teardown: Vec<String>,
    /// Statements to run on every new connection.
    #[serde(deserialize_with = "read::each")]
    pub session_sql: Vec<Concealed>,
    /// Seed of the order of cases; `None`: a random one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::count")]
    pub seed: Option<u64>,
    /// Labels of the record.
    #[serde(deserialize_with = "tags")]
    pub tags: BTreeMap<String, String>,
}

/// A statement, with those around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseSpec {
    /// Its name in results.
    pub name: String,
    /// The timed statement.
    pub sql: String,
    /// Untimed statements before every run.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Untimed statements after every run.
    #[serde(default)]
    pub teardown: Vec<String>,
    /// Cases with the same value must return the same rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// Options of `assay sql` that set its values.
const OPTIONS: [SpecOption; 12] = [
    of("db", "url", OptionForm::Value),
    of("runs", "runs", OptionForm::Value),
    of("warmup", "warmup", OptionForm::Value),
    of("cold", "cold", OptionForm::Switch),
    of("base", "base", OptionForm::Value),
    of("same-result", "same_result", OptionForm::Switch),
    of("explain", "explain", OptionForm::Switch),
    of("counters", "counters", OptionForm::Switch),
    of("setup", "setup", OptionForm::Each),
    of("teardown", "teardown", OptionForm::Each),
    of("session-sql", "session_sql", OptionForm::Each),
    of("tag", "tags", OptionForm::Each),
];

impl Default for SqlSpec {
    fn default() -> SqlSpec {
        SqlSpec {
            cases: Vec::new(),
            prepare: Vec::new(),
            cleanup: Vec::new(),
            url: None,
            runs: 10,
            warmup: None,
            cold: false,
            base: None,
            same_result: false,
            explain: false,
            counters: false,
            setup: Vec::new(),
            teardown: Vec::new(),
            session_sql: Vec::new(),
            seed: None,
            tags: BTreeMap::new(),
        }
    }
}

impl SqlSpec {
    /// The options that set its values.
    pub fn options() -> &'static [SpecOption] {
        &OPTIONS
    }

    /// With one value set, as text, by the name of its option; `-` and `_` mean the same.
    pub fn with(&self, name: &str, text: &str) -> Result<SqlSpec, Wrong> {
        set(self.to_value_with_passwords(), &OPTIONS, name, text)
    }

    /// The cases with the statements around all of them.
    pub fn all_cases(&self) -> Vec<CaseSpec> {
        let around = |case: &CaseSpec| CaseSpec {
            setup: self.setup.iter().chain(&case.setup).cloned().collect(),
            teardown: case.teardown.iter().chain(&self.teardown).cloned().collect(),
            result: if self.same_result { Some("all".to_owned()) } else { case.result.clone() },
            ..case.clone()
        };
        self.cases.iter().map(around).collect()
    }

    /// Untimed runs of each case: a restarted server should be cold.
    pub fn warmup_rounds(&self) -> u64 {
        self.warmup.unwrap_or(u64::from(!self.cold))
    }

    /// A command line for people, without the program's name and without passwords. It has the statements of the
    /// cases, but not their names.
    pub fn words(&self) -> Vec<String> {
        let value = |spec: &SqlSpec| serde_json::to_value(spec).expect("a spec is plain data");
        let statements = self.cases.iter().map(|case| case.sql.clone());
        let options = words_of(&value(self), &value(&SqlSpec::default()), &OPTIONS);
        ["sql".to_owned()].into_iter().chain(statements).chain(options).collect()
    }

    pub(crate) fn to_value_with_passwords(&self) -> Value {
        let mut value = serde_json::to_value(self).expect("a spec is plain data");
        value["session_sql"] = self.session_sql.iter().map(Concealed::reveal).collect();
        if let Some(url) = &self.url {
            value["url"] = url.reveal().into();
        }
        value
    }
}
