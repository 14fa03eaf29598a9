//! A spec with its workload, loaded and checked: what can be executed.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use assay_options::{OptionDeclaration, OptionKind, OptionValue};
use assay_process::diagnostics::Trouble;
use assay_record::{Record, WRITTEN_BYTES_MAX, is_pipe, read_text};
use assay_report::Promise;
use assay_script::Program;
use assay_seam::Dialect;
use assay_spec::{RunSpec, Wrong, values};

use crate::telemetry::HostUrl;
use crate::workload::Workload;
use crate::{library, load_model, names, registry};

/// Names in `sysbench.opt` that every script finds, besides those of our options (`script_options` in `plan`).
const NAMES_OF_SYSBENCH: [&str; 6] = ["threads", "events", "report_interval", "percentile", "verbosity", "db_driver"];

/// What is to be done, with what that needs.
#[derive(Clone)]
pub struct Assignment {
    /// What is asked for.
    pub spec: RunSpec,
    /// Its workload.
    pub workload: Workload,
    /// The command line, program name first, without passwords.
    pub words: Vec<String>,
}

impl Assignment {
    /// Loads the workload of a spec. Its command line is one that would ask for the same.
    pub fn load(spec: RunSpec) -> Result<Assignment, Trouble> {
        let words: Vec<String> = ["assay".to_owned()].into_iter().chain(spec.words()).collect();
        let program = library::load(&spec.workload.name, &spec.task, &words, dialect(&spec, None)?)?;
        let assignment = Assignment::new(spec, Arc::new(program), words)?;
        assignment.check()?;
        Ok(assignment)
    }

    /// Gives the options of the workload their kinds.
    pub fn new(mut spec: RunSpec, program: Arc<Program>, words: Vec<String>) -> Result<Assignment, Wrong> {
        for (key, value) in &mut spec.workload.options {
            let wrong = |value: &str, reason: &str| Wrong::value(format!("workload.options.{key}"), value, reason);
            let declared = program.options().iter().find(|option| option.key() == *key);
            let declared = declared.ok_or_else(|| wrong("", "the workload has no such option"))?;
            *value = typed(declared, value).map_err(|(text, reason)| wrong(&text, &reason))?;
            // A script that opens it would wait for ever.
            if let OptionValue::Text(text) = value
                && is_pipe(Path::new(text))
            {
                return Err(wrong(text, "it is a named pipe, which may have no writer: write it to a file first"));
            }
        }
        let load = &mut spec.load;
        if spec.task == "run" && load.sessions.is_none() && load.terminals.is_none() && load.find_rate.is_empty() {
            load.sessions = program.sessions().map(Into::into);
        }
        let given = spec.workload.options.clone().into_iter().collect();
        let workload = Workload { name: spec.workload.name.clone(), program, given };
        Ok(Assignment { spec, workload, words })
    }

    /// Applies every rule that needs no server.
    pub fn check(&self) -> Result<(), Wrong> {
        let spec = &self.spec;
        for promise in &spec.load.find_rate {
            let parsed: Result<Promise, _> = promise.parse();
            let parsed = parsed.map_err(|error| Wrong::value("load.find_rate", promise, &error.to_string()))?;
            if let Some(name) = &parsed.of {
                names::check_type("", name, &self.workload).map_err(|trouble| {
                    let reason = trouble.cause.trim_start_matches(": ");
                    let wrong = Wrong::value("load.find_rate", promise, reason);
                    trouble.hints.iter().cloned().fold(wrong, Wrong::hint)
                })?;
            }
        }
        if let Some(rate) = &spec.load.rate {
            let made = load_model::rate_of(rate);
            made.map_err(|reason| Wrong::value("load.rate", &rate.to_string(), &reason))?;
        }
        for url in &spec.telemetry.host_metrics {
            let parsed: Result<HostUrl, _> = url.reveal().parse();
            parsed.map_err(|reason| Wrong::value("telemetry.host_metrics", &url.shown(), &reason))?;
        }
        self.check_variables()?;
        spec.check()
    }

    /// Every variable that the script of pgbench leaves to its user has a value, and not one that is meant for us.
    fn check_variables(&self) -> Result<(), Wrong> {
        for (name, place) in self.workload.program.needed() {
            if assay_spec::option(&name.replace('_', "-")).is_some() || NAMES_OF_SYSBENCH.contains(&name.as_str()) {
                return Err(Wrong::new("", taken(name, place)));
            }
            if !self.workload.given.iter().any(|(given, _)| given == name) {
                let option = name.replace('_', "-");
                return Err(Wrong::new("", format!("{place}: nothing sets :{name}: give --{option} VALUE")));
            }
        }
        Ok(())
    }

    /// The same workload on the same databases, with another command.
    #[must_use]
    pub fn with_task(&self, task: &str, sessions: Option<u32>) -> Assignment {
        let mut other = self.clone();
        task.clone_into(&mut other.spec.task);
        other.spec.load.sessions = sessions.map(Into::into);
        other
    }

    /// The databases, with their passwords.
    pub fn urls(&self) -> Vec<String> {
        self.spec.target.urls.iter().map(|url| url.reveal().to_owned()).collect()
    }
}

/// Why a variable cannot be given: `--NAME` is an option of ours.
pub fn taken(name: &str, place: &str) -> String {
    let option = name.replace('_', "-");
    format!(
        "{place}: nothing sets :{name}, and --{option} is an option of assay itself: rename the variable, or \\set it"
    )
}

/// The dialect of a spec's databases, which its script sees. `url`: instead of its own.
pub fn dialect(spec: &RunSpec, url: Option<String>) -> Result<Dialect, Trouble> {
    let url = url.or_else(|| spec.target.urls.first().map(|url| url.reveal().to_owned()));
    if let Some(url) = url {
        return registry::driver_of(&url).map(|driver| driver.dialect);
    }
    // An unknown product is refused when the server is started.
    let product = spec.server.as_ref().and_then(|server| server.product.split(':').next());
    let product = product.and_then(|name| assay_products::products().product(name).ok());
    Ok(product.map_or(assay_products::EMBEDDED.dialect, |product| product.driver().dialect))
}

/// The spec of a recorded run, with the seed that it had.
pub fn recorded(path: &Path) -> Result<RunSpec, Trouble> {
    let manifest = Record::read(path)?.manifest;
    let Some(spec) = &manifest.spec else {
        return Err(Trouble::usage(format!("{} does not say what to repeat", path.display()))
            .detail("it was written by an earlier version of assay, or is not the record of a workload")
            .hint(format!("its command line was: {}", assay_process::url_text::shell_line(&manifest.command))));
    };
    let mut spec = RunSpec::from_value(spec).map_err(|wrong| in_file(path, Trouble::from(wrong)))?;
    spec.generator.seed = Some(manifest.seed);
    Ok(spec)
}

/// A spec in a file, or on stdin if that is `-`.
pub fn written(path: &Path) -> Result<RunSpec, Trouble> {
    let text = match path.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin().take(WRITTEN_BYTES_MAX)),
        _ => read_text(path, WRITTEN_BYTES_MAX),
    };
    let text = text.map_err(|error| Trouble::environment(format!("cannot read {}: {error}", path.display())))?;
    let spec = RunSpec::from_json(&text).map_err(|wrong| in_file(path, Trouble::from(wrong)))?;
    match spec.workload.name.is_empty() {
        false => Ok(spec),
        true => Err(in_file(path, Trouble::usage("workload.name is missing"))
            .hint("`assay run WORKLOAD --print-spec` prints a whole spec")),
    }
}

fn in_file(path: &Path, trouble: Trouble) -> Trouble {
    Trouble { cause: format!("{}: {}", path.display(), trouble.cause), ..trouble }
}

/// The value in the option's kind. The error has the value as text, and the reason.
fn typed(option: &OptionDeclaration, value: &OptionValue) -> Result<OptionValue, (String, String)> {
    match (option.kind, value) {
        (_, OptionValue::None)
        | (OptionKind::Bool, OptionValue::Bool(_))
        | (OptionKind::List, OptionValue::List(_)) => Ok(value.clone()),
        (OptionKind::Int | OptionKind::Double | OptionKind::Size, OptionValue::Number(number)) => {
            match option.bounds.refuse(*number) {
                Some(reason) => Err((shown(value), reason)),
                None => Ok(value.clone()),
            }
        }
        (_, value) => {
            let text = shown(value);
            option_value(option, &text).map_err(|reason| (text, reason))
        }
    }
}

/// Parses a workload option. An empty value clears it, as sysbench scripts expect.
pub fn option_value(option: &OptionDeclaration, text: &str) -> Result<OptionValue, String> {
    if !option.allows(text) {
        return Err(format!("expected {}", any_of(&option.choices)));
    }
    let bounded = |value: f64| match option.bounds.refuse(value) {
        Some(reason) => Err(reason),
        None => Ok(OptionValue::Number(value)),
    };
    Ok(match option.kind {
        OptionKind::Bool => OptionValue::Bool(values::switch(text)?),
        OptionKind::Int | OptionKind::Double | OptionKind::Size if text.is_empty() => bounded(0.0)?,
        OptionKind::Int => bounded(values::integer(text)? as f64)?,
        OptionKind::Double if option.bounds.whole => bounded(values::integer(text)? as f64)?,
        OptionKind::Double => bounded(values::number(text)?)?,
        OptionKind::Size => bounded(values::size(text)? as f64)?,
        OptionKind::Text => OptionValue::Text(text.to_owned()),
        OptionKind::File => OptionValue::None,
        OptionKind::List => {
            OptionValue::List(text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect())
        }
    })
}

/// `stop, go or wait`.
fn any_of(words: &[String]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        _ => words.concat(),
    }
}

/// A value as written on the command line.
pub fn shown(value: &OptionValue) -> String {
    match value {
        OptionValue::None => String::new(),
        OptionValue::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        OptionValue::Number(value) => value.to_string(),
        OptionValue::Text(text) => text.clone(),
        OptionValue::List(items) => items.join(","),
    }
}
