//! From a cell's setup to what is started: descriptions of servers, command lines of runs.

use std::path::PathBuf;

use assay_lab::placement::{Cpus, Transparent};
use assay_lab::{Asked, Description, FrontDescription, Placement};
use assay_recipe::{Server, Setup, Word};
use assay_seam::Nanos;

use crate::command_line::{self, RunOptions, Subcommand};
use crate::diagnostics::Trouble;
use crate::{url_text, values};

/// A cell's command lines, checked.
pub(super) struct Lines {
    /// After `assay run`, without the database.
    pub(super) run: Vec<String>,
    /// The same without sessions and times.
    pub(super) bare: Vec<String>,
    /// After `assay prepare`; `None`: nothing is loaded.
    pub(super) prepare: Option<Vec<String>>,
    pub(super) options: Box<RunOptions>,
    /// A run of its own before the measured one.
    pub(super) warmup: Nanos,
}

impl Lines {
    /// Reads what a cell says as the command line would.
    pub(super) fn of(setup: &Setup) -> Result<Lines, Trouble> {
        let words =
            |line: &str| url_text::shell_words(line).map_err(|reason| Trouble::usage(format!("{line}: {reason}")));
        let option = |(name, Word(value)): (&String, &Word)| format!("--{}={value}", name.replace('_', "-"));
        let load = &setup.run;
        let mut run = words(&load.workload)?;
        run.extend(load.options.iter().map(option));
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
        let (_, server) = setup.only_server();
        let database = match (&server.product, &server.url) {
            (Some(product), _) => format!("{}://localhost/x", product.split(':').next().unwrap_or_default()),
            (None, url) => url.clone().unwrap_or_default(),
        };
        let options = run_options(&run, &database)?;
        let prepare = setup.data.prepare.as_ref().map(|line| {
            let mut prepare = words(line)?;
            prepare.extend(setup.data.options.iter().map(option));
            let check = with(&["prepare"], &prepare, &database);
            command_line::parse(check).map_err(|trouble| within("data.prepare", trouble))?;
            Ok::<_, Trouble>(prepare)
        });
        let warmup = load.warmup.as_ref().map_or(Ok(Nanos::ZERO), |Word(text)| {
            values::duration(text).map_err(|reason| Trouble::usage(format!("run.warmup = {text}: {reason}")))
        })?;
        let bare = without(&run, &["sessions", "time", "transactions", "warmup"]);
        Ok(Lines { run, bare, prepare: prepare.transpose()?, options, warmup })
    }

    /// Seconds that the measured run and its warm-up are planned to take; loading and the server's start come on top.
    pub(super) fn seconds(&self) -> f64 {
        let load = &self.options.load;
        let stage = load.time.unwrap_or(Nanos::from_secs(10)).0 + load.warmup.0;
        (self.warmup.0 + stage * load.steps().len() as u64) as f64 / 1e9
    }

    /// The warm-up's words: the most sessions of a ladder, for its own time.
    pub(super) fn warm_up(&self) -> Vec<String> {
        let most = self.options.load.steps().into_iter().max().unwrap_or(1);
        let mut words = self.bare.clone();
        words.extend([format!("--sessions={most}"), format!("--time={}", values::display_duration(self.warmup))]);
        words
    }
}

fn with(first: &[&str], words: &[String], database: &str) -> Vec<std::ffi::OsString> {
    let line = ["assay"].iter().chain(first).map(|word| (*word).to_owned()).chain(words.iter().cloned());
    line.chain([format!("--db={database}")]).map(Into::into).collect()
}

fn run_options(words: &[String], database: &str) -> Result<Box<RunOptions>, Trouble> {
    let parsed = command_line::parse(with(&["run"], words, database)).map_err(|trouble| within("run", trouble))?;
    let Some(Subcommand::Run(options)) = parsed.map(|invocation| invocation.subcommand) else {
        return Err(Trouble::usage("run.workload is not a workload followed by its options"));
    };
    if options.load.searches() {
        return Err(Trouble::usage("run: an experiment applies the same load to every cell and cannot search for a rate or a number of sessions")
            .hint("set run.sessions and run.rate to numbers; `assay run` can search"));
    }
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

/// Words without some options and their values.
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

/// What is started for a cell's trials, without its image.
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
    let front = |(name, front): (&String, &assay_recipe::Front)| FrontDescription {
        name: name.clone(),
        settings: asked(&front.settings),
        accounts: Vec::new(),
    };
    // The nearest to the server comes first: a pooler, then a proxy.
    let fronts: Vec<FrontDescription> = server.front.iter().rev().map(front).collect();
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

/// Settings in the server's own words; one without a value is only named.
pub(super) fn asked(settings: &std::collections::BTreeMap<String, Word>) -> Vec<Asked> {
    let one = |(name, Word(value)): (&String, &Word)| Asked {
        name: name.clone(),
        value: (!value.is_empty()).then(|| value.clone()),
    };
    settings.iter().map(one).collect()
}
