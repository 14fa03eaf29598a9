//! The spec itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use assay_options::OptionValue;
use assay_seam::Nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Concealed, LoadSpec, Wrong, read};

/// Version of the format. A field never changes its meaning under the same number.
pub const VERSION: u32 = 1;

/// Everything that a run, or another command of a workload, is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSpec {
    /// `VERSION`.
    #[serde(deserialize_with = "version")]
    pub version: u32,
    /// `run`, or a command of the workload, such as `prepare`.
    pub task: String,
    /// What to run.
    pub workload: WorkloadSpec,
    /// Which databases, and how to talk to them.
    pub target: TargetSpec,
    /// A server to start first, and to remove at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerSpec>,
    /// How much work, and when.
    pub load: LoadSpec,
    /// What to do about errors.
    pub errors: ErrorSpec,
    /// The load generator.
    pub generator: GeneratorSpec,
    /// What is read beside the load.
    pub telemetry: TelemetrySpec,
    /// Labels of the record.
    #[serde(deserialize_with = "tags")]
    pub tags: BTreeMap<String, String>,
    /// Length of a reporting interval.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "interval")]
    pub interval: Nanos,
    /// Number of trials, each with its own record and seed.
    #[serde(deserialize_with = "read::at_least_one")]
    pub trials: u64,
    /// Prepare the tables first if they are missing.
    #[serde(deserialize_with = "read::switch")]
    pub prepare: bool,
    /// Check the tables before and after the run.
    #[serde(deserialize_with = "read::switch")]
    pub check: bool,
    /// Shell command that crashes and restarts the server in the middle of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_check: Option<Concealed>,
}

impl Default for RunSpec {
    fn default() -> RunSpec {
        RunSpec {
            version: VERSION,
            task: "run".to_owned(),
            workload: WorkloadSpec::default(),
            target: TargetSpec::default(),
            server: None,
            load: LoadSpec::default(),
            errors: ErrorSpec::default(),
            generator: GeneratorSpec::default(),
            telemetry: TelemetrySpec::default(),
            tags: BTreeMap::new(),
            interval: Nanos::from_secs(1),
            trials: 1,
            prepare: false,
            check: false,
            kill_check: None,
        }
    }
}

impl RunSpec {
    /// Reads a spec. The values are not checked beyond their types and ranges: see `check`.
    pub fn from_json(text: &str) -> Result<RunSpec, Wrong> {
        read::from_json(text)
    }

    /// The same from parsed JSON.
    pub fn from_value(value: &Value) -> Result<RunSpec, Wrong> {
        read::from_value(value)
    }

    /// As JSON, without passwords.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("a spec is plain data")
    }

    /// As JSON with passwords, for another process that executes it: through a pipe or an encrypted bus, never a file.
    pub fn to_value_with_passwords(&self) -> Value {
        let mut value = self.to_value();
        let texts = |all: &[Concealed]| Value::from(all.iter().map(Concealed::reveal).collect::<Vec<_>>());
        value["target"]["urls"] = texts(&self.target.urls);
        value["target"]["session_sql"] = texts(&self.target.session_sql);
        value["telemetry"]["host_metrics"] = texts(&self.telemetry.host_metrics);
        value["telemetry"]["poolers"] = texts(&self.telemetry.poolers);
        value["workload"]["options"] = serde_json::to_value(&self.workload.options).expect("options are plain data");
        if let Some(server) = &self.server {
            value["server"]["settings"] = texts(&server.settings);
            value["server"]["front_settings"] = texts(&server.front_settings);
        }
        if let Some(command) = &self.kill_check {
            value["kill_check"] = command.reveal().into();
        }
        value
    }

    /// Whether it holds a password.
    pub fn has_passwords(&self) -> bool {
        self.to_value() != self.to_value_with_passwords()
    }
}

/// The workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadSpec {
    /// Built-in workload, or path of a script.
    pub name: String,
    /// The options that are not left at their defaults, by `OptionDeclaration::key`.
    #[serde(serialize_with = "without_passwords")]
    pub options: BTreeMap<String, OptionValue>,
}

/// Which databases, and how to talk to them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TargetSpec {
    /// Databases: sessions are spread evenly. None: a server to start, or a temporary database.
    #[serde(deserialize_with = "read::each")]
    pub urls: Vec<Concealed>,
    /// Use protocol-level prepared statements.
    #[serde(deserialize_with = "read::switch")]
    pub prepared: bool,
    /// Statements to run on every new connection.
    #[serde(deserialize_with = "read::each")]
    pub session_sql: Vec<Concealed>,
    /// Connections opened per second; `None`: unlimited.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::positive")]
    pub connect_rate: Option<f64>,
    /// Most connections being opened at the same time.
    #[serde(deserialize_with = "read::at_least_one")]
    pub connect_pending: u64,
    /// A connection is lost if the server's host acknowledges nothing for this long; 0: no limit.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "network_timeout")]
    pub network_timeout: Nanos,
}

impl Default for TargetSpec {
    fn default() -> TargetSpec {
        TargetSpec {
            urls: Vec::new(),
            prepared: true,
            session_sql: Vec::new(),
            connect_rate: None,
            connect_pending: 64,
            network_timeout: Nanos::from_secs(30),
        }
    }
}

/// A server that is started for a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSpec {
    /// `postgres:17`.
    pub product: String,
    /// Folder or archive with its programs, or `container:IMAGE`; `None`: found by product and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binaries: Option<PathBuf>,
    /// `NAME=VALUE`, named as in its configuration file.
    #[serde(deserialize_with = "read::each")]
    pub settings: Vec<Concealed>,
    /// Configuration file; `settings` override it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// CPUs it may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Memory limit in bytes, including its page cache.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::size")]
    pub memory: Option<u64>,
    /// Poolers and proxies in front of it.
    #[serde(deserialize_with = "read::each")]
    pub fronts: Vec<String>,
    /// `NAME=VALUE`, of the last front.
    #[serde(deserialize_with = "read::each")]
    pub front_settings: Vec<Concealed>,
}

/// What to do about errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorSpec {
    /// Retries of a transaction after a deadlock, serialization failure or lost connection.
    #[serde(deserialize_with = "read::count")]
    pub retries: u64,
    /// Codes of errors that fail the transaction but not the run, or `all`.
    #[serde(deserialize_with = "codes")]
    pub ignore: Vec<String>,
    /// What to do on any other error.
    pub on_error: OnError,
    /// How long to try to reconnect after losing a connection.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "read::duration")]
    pub reconnect_time: Nanos,
}

impl Default for ErrorSpec {
    fn default() -> ErrorSpec {
        ErrorSpec { retries: 10, ignore: Vec::new(), on_error: OnError::Stop, reconnect_time: Nanos::from_secs(60) }
    }
}

/// What an unexpected error does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// It ends the run.
    Stop,
    /// It is counted.
    Continue,
}

/// The load generator: threads and random numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GeneratorSpec {
    /// Seed of the random numbers; `None`: a random one.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::count")]
    pub seed: Option<u64>,
    /// Threads that drive the sessions; `None`: one per CPU.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::at_least_one")]
    pub workers: Option<u64>,
    /// CPUs for the load generator; `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// How sockets are served; `None`: the environment says, else `IoChoice::Auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<IoChoice>,
    /// Replies handled between two system calls; `None`: a default of the event loop.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::at_least_one")]
    pub batch: Option<u64>,
    /// How long a worker looks for replies before it sleeps.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "read::duration")]
    pub poll: Nanos,
    /// Distribution of the rows that statements access: `uniform`, `gaussian`, `special`, `pareto`, `zipfian`.
    pub rand_type: String,
    /// gaussian, special: number of uniform values averaged.
    #[serde(deserialize_with = "read::at_least_one")]
    pub rand_spec_iter: u64,
    /// special: size of the hot center, in percent of the rows.
    #[serde(deserialize_with = "read::number")]
    pub rand_spec_pct: f64,
    /// special: percentage of accesses that go to the hot center.
    #[serde(deserialize_with = "read::number")]
    pub rand_spec_res: f64,
    /// pareto: parameter h.
    #[serde(deserialize_with = "read::number")]
    pub rand_pareto_h: f64,
    /// zipfian: exponent.
    #[serde(deserialize_with = "read::number")]
    pub rand_zipfian_exp: f64,
}

impl Default for GeneratorSpec {
    fn default() -> GeneratorSpec {
        GeneratorSpec {
            seed: None,
            workers: None,
            cpus: None,
            io: None,
            batch: None,
            poll: Nanos(0),
            rand_type: "uniform".to_owned(),
            rand_spec_iter: 12,
            rand_spec_pct: 1.0,
            rand_spec_res: 75.0,
            rand_pareto_h: 0.2,
            rand_zipfian_exp: 0.8,
        }
    }
}

/// How sockets are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoChoice {
    /// io_uring where it pays and can be had, else epoll.
    Auto,
    /// epoll.
    Epoll,
    /// io_uring, or not at all.
    Uring,
}

/// What is read beside the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetrySpec {
    /// How much.
    pub level: TelemetryLevel,
    /// Node exporters on the servers' machines, in the order of the servers.
    #[serde(deserialize_with = "read::each")]
    pub host_metrics: Vec<Concealed>,
    /// Admin consoles of poolers, in the order of the servers.
    #[serde(deserialize_with = "read::each")]
    pub poolers: Vec<Concealed>,
}

impl Default for TelemetrySpec {
    fn default() -> TelemetrySpec {
        TelemetrySpec { level: TelemetryLevel::On, host_metrics: Vec::new(), poolers: Vec::new() }
    }
}

/// How much is sampled from servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TelemetryLevel {
    /// Nothing.
    Off,
    /// What matters.
    On,
    /// All of it, which may cost the server something.
    Full,
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    read::parsed(deserializer, |text| match text.parse() {
        Ok(VERSION) => Ok(VERSION),
        _ => Err(format!("this assay reads version {VERSION} of a spec")),
    })
}

fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    read::parsed(deserializer, crate::values::interval)
}

fn network_timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
    read::parsed(deserializer, crate::values::network_timeout)
}

fn codes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let codes = read::separated(deserializer)?;
    let checked =
        |code: String| error_code(&code).map_err(|reason| serde::de::Error::custom(format!("{code}: {reason}")));
    codes.into_iter().map(checked).collect()
}

/// The code of an error, or `all`.
pub fn error_code(text: &str) -> Result<String, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_state = text.len() == 5
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_digit());
    if is_number || is_state || text == "all" {
        return Ok(text.to_owned());
    }
    Err("expected an error number such as 1213, an SQLSTATE such as 40001, or all".to_owned())
}

/// A tag: `disk=nvme`. Keys are column names and labels too.
pub fn tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as disk=nvme")?;
    let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match is_name && key.len() <= TAG_LENGTH_MAX && value.len() <= TAG_LENGTH_MAX {
        true => Ok((key.to_owned(), value.to_owned())),
        false => Err(format!(
            "a key starts with a letter or _ and contains only letters, digits and _; key and value are at most {TAG_LENGTH_MAX} bytes long"
        )),
    }
}

const TAG_LENGTH_MAX: usize = 100;

/// A table, or texts such as `disk=nvme`.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected KEY=VALUE, such as disk=nvme")]
enum Tags {
    Table(BTreeMap<String, String>),
    Text(String),
    Texts(Vec<String>),
}

pub(crate) fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let texts = match Tags::deserialize(deserializer)? {
        Tags::Table(table) => table.into_iter().map(|(key, value)| format!("{key}={value}")).collect(),
        Tags::Text(text) => vec![text],
        Tags::Texts(texts) => texts,
    };
    let checked = |text: &String| tag(text).map_err(|reason| serde::de::Error::custom(format!("{text}: {reason}")));
    texts.iter().map(checked).collect()
}

fn without_passwords<S: Serializer>(options: &BTreeMap<String, OptionValue>, serializer: S) -> Result<S::Ok, S::Error> {
    let shown = |(key, value): (&String, &OptionValue)| {
        let value = match value {
            OptionValue::Text(text) if assay_record::is_secret(key) && !text.is_empty() => {
                OptionValue::Text("***".into())
            }
            OptionValue::Text(text) => OptionValue::Text(Concealed::from(text.as_str()).shown()),
            other => other.clone(),
        };
        (key.clone(), value)
    };
    serializer.collect_map(options.iter().map(shown))
}
