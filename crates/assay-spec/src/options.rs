//! The options of `assay run`, which set values of its spec: one table for all directions.

use crate::option::{OptionForm, SpecOption, clear, get, of, put, set, text, words_of};
use crate::{ChildSpec, RunSpec, Wrong};

use OptionForm::{Each, Joined, Switch, Value as One};

const OPTIONS: [SpecOption; 52] = [
    of("db", "target.urls", Each),
    of("prepared", "target.prepared", One),
    of("session-sql", "target.session_sql", Each),
    of("connect-rate", "target.connect_rate", One),
    of("connect-pending", "target.connect_pending", One),
    of("network-timeout", "target.network_timeout", One),
    of("server", "server.product", One),
    of("binaries", "server.binaries", One),
    of("set", "server.settings", Each),
    of("server-config", "server.config", One),
    of("server-cpus", "server.cpus", One),
    of("server-memory", "server.memory", One),
    of("front", "server.fronts", Each),
    of("front-set", "server.front_settings", Each),
    of("sessions", "load.sessions", Joined),
    of("terminals", "load.terminals", One),
    of("connections", "load.connections", One),
    of("think-scale", "load.think_scale", One),
    of("time", "load.time", One),
    of("transactions", "load.transactions", One),
    of("warmup", "load.warmup", One),
    of("rate", "load.rate", One),
    of("rate-file", "load.rate_file", One),
    of("find-rate", "load.find_rate", Each),
    of("arrival", "load.arrival", One),
    of("backlog-max", "load.backlog_max", One),
    of("grace", "load.grace", One),
    of("trials", "trials", One),
    of("prepare", "prepare", Switch),
    of("check", "check", Switch),
    of("kill-check", "kill_check", One),
    of("retries", "errors.retries", One),
    of("ignore-errors", "errors.ignore", Joined),
    of("on-error", "errors.on_error", One),
    of("reconnect-time", "errors.reconnect_time", One),
    of("seed", "generator.seed", One),
    of("workers", "generator.workers", One),
    of("cpus", "generator.cpus", One),
    of("io", "generator.io", One),
    of("batch", "generator.batch", One),
    of("poll", "generator.poll", One),
    of("rand-type", "generator.rand_type", One),
    of("rand-spec-iter", "generator.rand_spec_iter", One),
    of("rand-spec-pct", "generator.rand_spec_pct", One),
    of("rand-spec-res", "generator.rand_spec_res", One),
    of("rand-pareto-h", "generator.rand_pareto_h", One),
    of("rand-zipfian-exp", "generator.rand_zipfian_exp", One),
    of("interval", "interval", One),
    of("telemetry", "telemetry.level", One),
    of("host-metrics", "telemetry.host_metrics", Each),
    of("pooler", "telemetry.poolers", Each),
    of("tag", "tags", Each),
];

/// Options that replace each other: giving one of them clears the others, with what depends on them.
const REPLACED: [(&str, &[&str]); 8] = [
    ("db", &["server"]),
    ("server", &["target.urls", "kill_check"]),
    ("rate", &["load.rate_file", "load.find_rate", "load.terminals", "load.connections", "load.think_scale"]),
    ("rate-file", &["load.rate", "load.find_rate", "load.terminals", "load.connections", "load.think_scale"]),
    ("find-rate", &["load.rate", "load.rate_file", "load.terminals", "load.connections", "load.think_scale"]),
    (
        "terminals",
        &["load.sessions", "load.rate", "load.rate_file", "load.find_rate", "load.arrival", "load.backlog_max"],
    ),
    ("sessions", &["load.terminals", "load.connections", "load.think_scale"]),
    ("transactions", &["load.find_rate"]),
];

/// All of them, in the order of the help.
pub fn options() -> &'static [SpecOption] {
    &OPTIONS
}

/// The one with this name; `-` and `_` mean the same.
pub fn option(name: &str) -> Option<&'static SpecOption> {
    let name = name.replace('_', "-");
    OPTIONS.iter().find(|option| option.name == name)
}

impl SpecOption {
    /// Whether it is an option of `assay run`, or of another command of a workload.
    pub fn is_of(&self, task: &str) -> bool {
        let of_all = ["load.sessions", "tags", "telemetry.level"].contains(&self.path)
            || ["target.", "generator."].iter().any(|part| self.path.starts_with(part));
        task == "run" || of_all
    }
}

impl RunSpec {
    /// With one value set, as text, by the name of its option. Does not check whether the values fit together.
    pub fn with(&self, name: &str, text: &str) -> Result<RunSpec, Wrong> {
        set(self.to_value_with_passwords(), &OPTIONS, name, text)
    }

    /// With those values of `other` that these options set, and its options of the workload.
    pub fn with_options_of(&self, other: &RunSpec, names: &[String]) -> RunSpec {
        let (mut value, other_value) = (self.to_value_with_passwords(), other.to_value_with_passwords());
        for option in names.iter().filter_map(|name| option(name)) {
            for path in REPLACED.iter().filter(|(name, _)| *name == option.name).flat_map(|(_, cleared)| *cleared) {
                let is_given = names.iter().any(|name| crate::option(name).is_some_and(|other| other.path == *path));
                if !is_given {
                    clear(&mut value, path);
                }
            }
            match get(&other_value, option.path) {
                Some(given) => put(&mut value, option.path, given.clone()),
                None => clear(&mut value, option.path),
            }
        }
        let mut merged = RunSpec::from_value(&value).expect("both are specs");
        merged.workload.options.extend(other.workload.options.clone());
        merged
    }

    /// The command line that has this spec, without the program's name and without passwords: `run tpcc --time=5s`.
    pub fn words(&self) -> Vec<String> {
        let value = self.to_value();
        let mut words = vec![self.task.clone(), self.workload.name.clone()];
        words.extend(words_of(&value, &RunSpec::default().to_value(), &OPTIONS));
        let options = value["workload"]["options"].as_object().into_iter().flatten();
        words.extend(options.map(|(key, value)| format!("--{}={}", key.replace('_', "-"), text(value))));
        words
    }
}

impl Wrong {
    /// Cause and hint for a command line, which names values by their options.
    pub fn as_options(&self) -> (String, Option<String>) {
        self.words(|path| match option_at(path) {
            Some(name) => format!("--{name}"),
            None => path.to_owned(),
        })
    }
}

/// The option that sets the value at a path, or the list that contains it.
pub(crate) fn option_at(path: &str) -> Option<String> {
    if let Some(key) = path.strip_prefix("workload.options.") {
        return Some(key.replace('_', "-"));
    }
    let list = path.split('[').next().unwrap_or(path);
    let is_it = |option: &&SpecOption| {
        option.path == list || list.strip_prefix(option.path).is_some_and(|rest| rest.starts_with('.'))
    };
    let own = OPTIONS.iter().find(is_it).map(|option| option.name.to_owned());
    own.or_else(|| ChildSpec::option_at(path))
}

#[cfg(test)]
mod tests {
    use assay_options::OptionValue;

    use super::*;
    use crate::Sessions;

    #[test]
    fn every_option_sets_its_value_and_is_written_back() {
        let texts = [
            ("prepared", "off"),
            ("connect-rate", "2.5"),
            ("network-timeout", "0s"),
            ("server-memory", "4096"),
            ("sessions", "1,2,4"),
            ("terminals", "10/warehouse"),
            ("rate", "0s:100,1m:2000"),
            ("arrival", "poisson"),
            ("on-error", "continue"),
            ("ignore-errors", "1213,40001"),
            ("io", "epoll"),
            ("telemetry", "full"),
            ("tag", "disk=nvme"),
            ("rand-type", "zipfian"),
            ("think-scale", "0.5"),
            ("db", "postgres://app@h/d"),
        ];
        let numbers = [
            "pending",
            "connections",
            "transactions",
            "max",
            "trials",
            "retries",
            "seed",
            "workers",
            "batch",
            "iter",
            "pct",
            "res",
            "-h",
            "exp",
        ];
        let times = ["time", "warmup", "grace", "interval", "poll"];
        for option in options() {
            let (name, known) = (option.name, texts.iter().find(|(name, _)| *name == option.name));
            let text = match known {
                Some((_, text)) => *text,
                None if option.form == Switch => "on",
                None if numbers.iter().any(|end| name.ends_with(end)) => "7",
                None if times.iter().any(|end| name.ends_with(end)) => "7s",
                None => "text",
            };
            let spec = RunSpec::default().with(name, text).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
            let word = if option.form == Switch { format!("--{name}") } else { format!("--{name}={text}") };
            assert!(spec.words().contains(&word), "{name}: {:?}", spec.words());
            assert_eq!(RunSpec::from_value(&spec.to_value()), Ok(spec));
        }
    }

    #[test]
    fn a_wrong_value_is_reported_with_its_path() {
        for (text, path, cause) in [
            (
                r#"{"load":{"time":"soon"}}"#,
                "load.time",
                "--time soon: expected a duration, such as 500ms, 30s, 10m or 1h30m",
            ),
            (r#"{"load":{"sessions":[1,0]}}"#, "load.sessions", "--sessions 1,0: must be at least 1"),
            (r#"{"interval":"10ms"}"#, "interval", "--interval 10ms: must be at least 100ms"),
            (r#"{"version":2}"#, "version", "version 2: this assay reads version 1 of a spec"),
            (
                r#"{"errors":{"on_error":"panic"}}"#,
                "errors.on_error",
                "--on-error: unknown variant `panic`, expected `stop` or `continue`",
            ),
        ] {
            let wrong = RunSpec::from_json(text).unwrap_err();
            assert_eq!((wrong.path.as_str(), wrong.as_options().0.as_str()), (path, cause));
        }
    }

    #[test]
    fn given_options_replace_those_that_exclude_them() {
        let base = RunSpec::default().with("rate", "100").unwrap().with("server", "postgres:17").unwrap();
        let other = RunSpec::default().with("terminals", "5").unwrap().with("db", "sqlite:a.db").unwrap();
        let merged = base.with_options_of(&other, &["terminals".to_owned(), "db".to_owned()]);
        assert_eq!(merged.words(), ["run", "", "--db=sqlite:a.db", "--terminals=5"]);
        let more = RunSpec::default().with("sessions", "1,2").unwrap();
        let merged = merged.with_options_of(&more, &["sessions".to_owned()]);
        assert_eq!(merged.load.sessions, Some(Sessions { steps: vec![1, 2], auto: false }));
        assert_eq!(merged.load.terminals, None);
    }

    #[test]
    fn a_written_spec_has_no_passwords() {
        let mut spec = RunSpec::default().with("db", "postgres://me:hunter2@h/d").unwrap();
        spec.target.session_sql = vec!["SET x = 'postgres://me:hunter2@h'".into()];
        spec.telemetry.poolers = vec!["me:hunter2@h/pgbouncer".into()];
        spec.kill_check = Some("psql postgres://me:hunter2@h -c x".into());
        spec.workload.options.insert("my_password".to_owned(), OptionValue::Text("hunter2".to_owned()));
        let written = [spec.to_value().to_string(), format!("{spec:?}"), spec.words().join(" ")];
        assert!(!written[0].contains("hunter2") && !written[2].contains("hunter2"), "{written:?}");
        assert!(spec.has_passwords());
        assert_eq!(RunSpec::from_value(&spec.to_value_with_passwords()), Ok(spec));
    }
}
