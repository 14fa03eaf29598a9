//! One trial: starts a server from its image, runs the steps and the load, and removes the server.
//!
//! The load is a separate run of this program, as a person would start it, so that its record is complete. Each part is
//! timed.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use assay_io::clock::Clock;
use assay_lab::filesystem::MadeFilesystem;
use assay_lab::product::Settled;
use assay_lab::{Description, Home, Placement, Status, Topology};
use assay_process::bar::Bar;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::surroundings;
use assay_process::terminal;
use assay_process::title;
use assay_process::url_text;
use assay_recipe::{Action, Cell, PhaseResult, Step, When, filled};
use assay_record::{Attribute, Event, Record, StepTime, read_end};
use assay_report::{Findings, MetricUnit};
use assay_run::assignment::Assignment;
use assay_run::client::{self, Client, text};
use assay_run::lab::{self, Kept};
use assay_run::{failure, plan};
use assay_seam::{ConnectOptions, Nanos};
use assay_spec::{ChildSpec, ChildWork, Concealed, OutputSpec, RunSpec};

use crate::arguments::ArgumentParser;
use crate::child;
use crate::experiment::{interrupted, stopped};
use crate::outside::{OWNER, Outside};
use crate::setup::{Runs, asked, description, duration, load_of_phase, load_of_step, prepare_words, warm_up};

/// What a trial needs.
pub(crate) struct Trial<'a> {
    pub(crate) home: &'a Home,
    /// The name of its server, while that exists.
    pub(crate) server: String,
    pub(crate) cell: &'a Cell,
    /// Factors with the cell's levels, for commands.
    pub(crate) levels: Vec<(String, String)>,
    pub(crate) runs: &'a Runs,
    /// Reads the lines of steps.
    pub(crate) parser: &'a dyn ArgumentParser,
    pub(crate) steps: &'a [Step],
    pub(crate) round: u32,
    pub(crate) seed: u64,
    /// Path of its record.
    pub(crate) record: PathBuf,
    /// Path of its log.
    pub(crate) log: PathBuf,
    /// What the steps that settle its servers have reached.
    pub(crate) reached: Mutex<Vec<Attribute>>,
    /// Durations of parts of its steps, in seconds.
    pub(crate) noted: Mutex<Vec<(String, f64)>>,
    /// The folder of its files, if it measures a filesystem made for it.
    pub(crate) files: Mutex<Option<PathBuf>>,
    /// The line about the experiment on a terminal.
    pub(crate) bar: Option<&'a Bar>,
}

/// What was timed, and what steps returned.
#[derive(Default)]
pub(crate) struct Timed {
    /// Seconds by part, in order.
    pub(crate) seconds: Vec<(String, f64)>,
    /// Values by step, in order.
    pub(crate) values: Vec<(String, f64)>,
    /// What disturbed the measured run from outside.
    pub(crate) outside: Vec<String>,
    /// When steps ran during the measured run, in the order of their start.
    pub(crate) steps: Vec<StepTime>,
    /// What was measured one after the other, with the results of the loads.
    pub(crate) phases: Vec<PhaseResult>,
    pub(crate) measured: Vec<Findings>,
}

/// The value of a step.
enum Amount {
    /// A time, shown like the duration of a step.
    Seconds(f64),
    /// In whatever unit it has.
    Plain(f64),
}

/// Time limit for a server to settle, or to stop.
const PATIENCE: Duration = Duration::from_secs(600);
/// A login may take this long.
const LOGIN: Nanos = Nanos::from_secs(60);
/// A statement of a recipe may.
const STATEMENT: Nanos = Nanos::from_secs(24 * 3600);
/// Lines of a server's log that a failure shows.
const LOG_LINES: usize = 20;

/// A server of a trial.
pub(crate) struct Node<'a> {
    /// Its name in the recipe.
    name: &'a str,
    described: &'a assay_recipe::RecipeServer,
    /// The started servers; `None`: it was already running.
    kept: Option<Kept>,
    /// The URL for the load.
    url: String,
    /// Its data directory, where the recipe names a folder for it. Gone after the servers.
    _data: Option<DataFolder>,
    /// The filesystem that was made for it. Gone after the data.
    _filesystem: Option<MadeFilesystem>,
}

/// A data directory outside the lab's own folder, which is removed at the end.
struct DataFolder(PathBuf);

impl Drop for DataFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Node<'_> {
    fn topology(&self) -> Option<&Topology> {
        self.kept.as_ref().map(Kept::topology)
    }

    /// The server itself, with the loaded database: a pooler might interpret some statements.
    fn primary_url(&self) -> String {
        self.topology().map_or(self.url.clone(), |topology| topology.primary.url("app"))
    }

    /// Where load goes that is meant for one of its servers: `primary`, `replica1`, a front; `None`: for all of it.
    fn url_of(&self, part: Option<&str>) -> Result<String, Trouble> {
        match (part, self.topology()) {
            (Some(part), Some(topology)) => {
                Ok(with_parameters(server_of(topology, Some(part))?.url("app"), self.described))
            }
            _ => Ok(self.url.clone()),
        }
    }
}

impl Trial<'_> {
    /// Runs it. Afterwards nothing of it is left running, however it ended.
    pub(crate) fn run(&self) -> Result<Timed, Trouble> {
        let mut parts = Timed::default();
        let made = match &self.cell.setup.run.filesystem {
            Some(words) => Some(MadeFilesystem::make(&self.place_for_files(None), &self.server, words)?),
            None => None,
        };
        let folder = made.as_ref().map(|made| made.folder().to_owned());
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = folder;
        let mut nodes = Vec::new();
        for (name, described) in &self.cell.setup.server {
            nodes.push(self.start(name, described, &mut parts)?);
        }
        let done = self.around(&nodes, &mut parts).map_err(|trouble| with_log(trouble, &nodes));
        let watch = Instant::now();
        if done.is_ok() && nodes.iter().any(|node| node.kept.is_some()) {
            for topology in nodes.iter().filter_map(Node::topology) {
                let ended = topology.stop(PATIENCE)?;
                if let Some((name, _)) = ended.iter().find(|(_, ended)| ended.by.is_none()) {
                    let trouble = Trouble::new(Exit::Server, format!("{name} exited during the trial"));
                    return Err(with_log(trouble, &nodes));
                }
            }
            parts.seconds.push(("stop".to_owned(), watch.elapsed().as_secs_f64()));
        }
        let recorded = lab::recorded(&nodes.iter().filter_map(Node::topology).collect::<Vec<_>>());
        drop(nodes);
        done?;
        if let Some(mut recorded) = recorded {
            recorded.identity.append(&mut self.reached.lock().unwrap_or_else(PoisonError::into_inner));
            for record in self.records(&parts) {
                complete_record(&record, recorded.clone())?;
            }
        }
        self.steps(When::AfterTrial, &[], &mut parts)?;
        parts.seconds.append(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(parts)
    }

    /// Where the file of a filesystem is made: in the folder of the recipe, or among the lab's own.
    fn place_for_files(&self, folder: Option<&Path>) -> PathBuf {
        folder.map_or_else(|| self.home.cache.join("filesystems"), Path::to_owned)
    }

    /// Starts a server, from its image if data is loaded.
    fn start<'a>(
        &self,
        name: &'a str,
        described: &'a assay_recipe::RecipeServer,
        parts: &mut Timed,
    ) -> Result<Node<'a>, Trouble> {
        if let Some(url) = &described.url {
            let url = with_parameters(url.clone(), described);
            return Ok(Node { name, described, kept: None, url, _data: None, _filesystem: None });
        }
        let several = self.cell.setup.server.len() > 1;
        let own = if several { format!("{}-{name}", self.server) } else { self.server.clone() };
        let folder = described.data.as_ref().map(PathBuf::from);
        let filesystem = match &described.filesystem {
            Some(words) => Some(MadeFilesystem::make(&self.place_for_files(folder.as_deref()), &own, words)?),
            None => None,
        };
        let folder = filesystem.as_ref().map(|made| made.folder().to_owned()).or(folder);
        let data = folder.map(|folder| DataFolder(folder.join(&own)));
        let mut description = Description {
            name: Some(own),
            data: data.as_ref().map(|folder| folder.0.clone()),
            ..description(name, described).map_err(|wrong| wrong.trouble)?
        };
        if let Some(prepare) = self.runs.prepare.as_ref().filter(|_| self.cell.setup.holds_data(name)) {
            let watch = Instant::now();
            let (key, made) = self.image(&description, prepare)?;
            description.image = Some(key);
            if made {
                parts.seconds.push(("load".to_owned(), watch.elapsed().as_secs_f64()));
            }
        }
        let kept = Kept::new(Topology::start(self.home, &description, &|words| self.say(words))?);
        lab::can_prepare_statements(kept.topology(), self.runs.prepared)?;
        for timing in &kept.topology().timings {
            add(&mut parts.seconds, &timing.part, timing.took.as_secs_f64());
        }
        let topology = kept.topology();
        let url = if described.socket { topology.primary.socket_url("app") } else { topology.url() };
        Ok(Node {
            name,
            described,
            kept: Some(kept),
            url: with_parameters(url, described),
            _data: data,
            _filesystem: filesystem,
        })
    }

    /// The image with the loaded data, and whether it was created now. It is loaded with the layout settings and those
    /// of `[data]`, not with the cell's own: cells share it.
    fn image(&self, description: &Description, prepare: &Assignment) -> Result<(String, bool), Trouble> {
        let say = |words: &str| self.say(words);
        let loading = loading(description, &self.cell.setup, prepare, &description.find_binaries(self.home, &say)?)?;
        let words = prepare_words(prepare);
        let load = |topology: &Topology| {
            self.say(&format!("loading once: {}", url_text::shell_line(&words)));
            let mut spec = prepare.spec.clone();
            spec.target.urls = vec![topology.primary.url("app").into()];
            self.child(&aside(spec), "assay prepare").map_err(|trouble| with_log_of(trouble, topology))
        };
        let loaded = lab::load_once(self.home, &loading, &words, &say, load)?;
        Ok((loaded.key, loaded.servers.is_some()))
    }

    /// From the servers' answers to the end of the measured run.
    fn around(&self, nodes: &[Node<'_>], parts: &mut Timed) -> Result<(), Trouble> {
        for node in nodes.iter().filter(|node| !node.described.sql.is_empty()) {
            run_sql(&node.primary_url(), &node.described.sql).map_err(|trouble| Trouble {
                cause: format!("server.{}.sql: {}", node.name, trouble.cause),
                ..trouble
            })?;
        }
        self.steps(When::BeforeTrial, nodes, parts)?;
        let urls = self.urls(&self.cell.setup.targets(), nodes)?;
        if let (ChildWork::Run(spec), Nanos(1..)) = (&self.runs.measured.work, self.runs.warmup) {
            let mut spec = warm_up(spec, self.runs.warmup);
            spec.target.urls = urls.iter().map(|url| url.as_str().into()).collect();
            self.timed("warm-up", parts, || self.child(&aside(spec), "the warm-up"))?;
        }
        self.steps(When::BeforeMeasure, nodes, parts)?;
        if self.steps.iter().any(|step| step.when == When::Measure) {
            self.phases(nodes, parts)?;
            return self.steps(When::AfterMeasure, nodes, parts);
        }
        let run = self.load(&self.runs.measured, &urls, &self.record)?;
        let outside = Outside::look(nodes.iter().all(|node| node.kept.is_some()));
        let (begun, ended) = (OnceLock::new(), AtomicBool::new(false));
        let beside: Vec<&Step> = self.own_steps(When::DuringMeasure).collect();
        let (ran, beside) = std::thread::scope(|scope| {
            let (begun, ended) = (&begun, &ended);
            let start = |step| (step, scope.spawn(move || self.beside(step, nodes, begun, ended)));
            let beside: Vec<_> = beside.into_iter().map(start).collect();
            let ran = self.timed("run", parts, || {
                child(&run, "the run", &self.log, &interrupt::run, |event| self.hear(event, begun))
            });
            ended.store(true, Ordering::Relaxed);
            let ended = beside.into_iter().map(|(step, thread)| (step, thread.join().expect("steps do not panic")));
            (ran, ended.collect::<Vec<_>>())
        });
        ran?;
        parts.outside = outside.since();
        for (step, done) in beside {
            let (started, took, value) = done.map_err(|trouble| of_step(step, trouble))?;
            parts.add(&step.name, took, value);
            let length_ns = (took * 1e9) as u64;
            parts.steps.push(StepTime { name: step.name.clone(), started: started.into(), length_ns });
        }
        parts.steps.sort_by_key(|step| step.started);
        self.steps(When::AfterMeasure, nodes, parts)
    }

    /// Measures one phase after the other.
    fn phases(&self, nodes: &[Node<'_>], parts: &mut Timed) -> Result<(), Trouble> {
        // Its name says that this attempt was made.
        let log = File::create(&self.log);
        log.map_err(|error| Trouble::environment(format!("cannot write {}: {error}", self.log.display())))?;
        let outside = Outside::look(nodes.iter().all(|node| node.kept.is_some()));
        let mut known: Vec<(String, Findings)> = Vec::new();
        for step in self.own_steps(When::Measure) {
            stopped()?;
            if let Action::Run { line, .. } = &step.action {
                self.phase(step, line, nodes, &mut known, parts).map_err(|trouble| of_step(step, trouble))?;
                continue;
            }
            let watch = Instant::now();
            let value = self.step(step, nodes).map_err(|trouble| of_step(step, trouble))?;
            let value = value.map(|(Amount::Plain(value) | Amount::Seconds(value))| value);
            let (name, seconds) = (step.name.clone(), watch.elapsed().as_secs_f64());
            self.say(&format!("  {name}: {seconds:.1} s"));
            parts.phases.push(PhaseResult { name, record: None, beside: None, seconds, value });
        }
        parts.outside = outside.since();
        parts.measured = known.into_iter().map(|(_, findings)| findings).collect();
        Ok(())
    }

    /// Runs the load of a phase, as often as it takes. `known`: results of the loads so far, by phase.
    fn phase(
        &self,
        step: &Step,
        line: &str,
        nodes: &[Node<'_>],
        known: &mut Vec<(String, Findings)>,
        parts: &mut Timed,
    ) -> Result<(), Trouble> {
        let so_far: &[(String, Findings)] = known;
        let fill = |text: &str| filled(text, &|name| result_of(so_far, name)).map_err(Trouble::usage);
        let setup = &self.cell.setup;
        let (_, load) = load_of_phase(&fill(line)?, setup, self.parser)?;
        let beside =
            step.beside.as_ref().map(|line| Ok::<_, Trouble>(load_of_step(&fill(line)?, setup, self.parser)?.1));
        let beside = beside.transpose()?.map(in_background);
        let targets = if step.on.is_empty() { setup.targets() } else { setup.named(&step.on) };
        let urls = self.urls(&targets, nodes)?;
        let mut values = Vec::new();
        loop {
            let number = parts.phases.len() + 1;
            let (record, log) = self.files_of_phase(number, &step.name);
            let run = self.load(&load, &urls, &record)?;
            let watch = Instant::now();
            let beside_record = match &beside {
                None => {
                    child(&run, "its run", &log, &interrupt::run, |_| {})?;
                    None
                }
                Some(beside) => {
                    let (its_record, its_log) = self.files_of_phase(number, &format!("{} beside", step.name));
                    let background = self.load(beside, &urls, &its_record)?;
                    self.with_background((&run, log.as_path()), (&background, its_log.as_path()))?;
                    Some(inside(&its_record))
                }
            };
            let found = Record::read(&record).map_err(|error| Trouble::environment(error.to_string()))?;
            let findings = assay_report::findings(&found);
            self.say(&format!("  {}: {}", step.name, assay_report::trial_words(&findings)));
            parts.phases.push(PhaseResult {
                name: step.name.clone(),
                record: Some(inside(&record)),
                beside: beside_record,
                seconds: watch.elapsed().as_secs_f64(),
                value: None,
            });
            let is_known = match &step.until {
                None => true,
                Some(until) => {
                    let value = assay_report::metric_value(&findings, &until.metric);
                    let (value, _) = value.ok_or_else(|| {
                        Trouble::usage(format!("until: the run has no metric {}, or did not measure it", until.metric))
                    })?;
                    values.push(value);
                    let half = assay_report::half_width(&values).filter(|_| values.len() >= 3);
                    let is_last = values.len() >= until.at_most as usize;
                    if let (Some(half), true) = (half.filter(|half| *half > until.within), is_last) {
                        self.say(&format!(
                            "  {}: {} is known within {:.1}% after {} runs, not within {}%",
                            step.name,
                            until.metric,
                            half * 100.0,
                            values.len(),
                            until.within * 100.0
                        ));
                    }
                    is_last || half.is_some_and(|half| half <= until.within)
                }
            };
            known.retain(|(name, _)| *name != step.name);
            known.push((step.name.clone(), findings));
            if is_known {
                return Ok(());
            }
        }
    }

    /// A run with another one in the background, which begins before it and is interrupted after it.
    fn with_background(
        &self,
        (run, log): (&ChildSpec, &Path),
        (background, its_log): (&ChildSpec, &Path),
    ) -> Result<(), Trouble> {
        let (begun, ended) = (OnceLock::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (begun, ended) = (&begun, &ended);
            let beside = scope.spawn(move || {
                let until = |command: Command| interrupt::run_until(command, ended);
                let heard = |event: Event| {
                    if matches!(event, Event::StageStarted(_)) {
                        let _ = begun.set(());
                    }
                };
                let done = child(background, "the load in the background", its_log, &until, heard);
                // A run that we interrupted has not failed.
                if ended.load(Ordering::Relaxed) { Ok(()) } else { done }
            });
            while begun.get().is_none() && !beside.is_finished() && !interrupt::control().is_stopped() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let ran = child(run, "its run", log, &interrupt::run, |_| {});
            ended.store(true, Ordering::Relaxed);
            let beside = beside.join().expect("a load in the background does not panic");
            ran.and(beside)
        })
    }

    /// The record and the log of a phase's run.
    fn files_of_phase(&self, number: usize, name: &str) -> (PathBuf, PathBuf) {
        let own = format!("{number:03}-{}", plain(name));
        let file = self.record.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = file.split('.').next().unwrap_or_default().to_owned();
        let record = self.record.with_file_name(format!("{stem}.{own}.json.zst"));
        (record, self.log.with_extension(format!("{own}.log")))
    }

    /// An event of the run: since when it is measured, and what the line on the terminal shows.
    fn hear(&self, event: Event, begun: &OnceLock<Instant>) {
        match (event, self.bar) {
            (Event::StageStarted(stage), _) => _ = begun.set(child::instant(stage.started)),
            (Event::Interval(interval), Some(bar)) => bar.add(&interval.interval),
            _ => {}
        }
    }

    /// A step during the run; returns its start, its seconds and its value. If the run is over before the step is due,
    /// the recipe is wrong.
    fn beside(
        &self,
        step: &Step,
        nodes: &[Node<'_>],
        begun: &OnceLock<Instant>,
        ended: &AtomicBool,
    ) -> Result<(SystemTime, f64, Option<Amount>), Trouble> {
        let after = step.after.as_deref().unwrap_or("0s");
        let after = Duration::from_nanos(duration("after", after)?.0);
        while begun.get().is_none_or(|begun| Instant::now() < *begun + after) {
            if ended.load(Ordering::Relaxed) || interrupt::control().is_stopped() {
                return Err(Trouble::usage("the run ended before the step was due")
                    .hint("increase run.time, or decrease after"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let (started, watch) = (SystemTime::now(), Instant::now());
        let value = self.step(step, nodes)?;
        Ok((started, watch.elapsed().as_secs_f64(), value))
    }

    /// Runs this program to its end. Its output is kept, and is the cause if it fails.
    fn child(&self, spec: &ChildSpec, what: &str) -> Result<(), Trouble> {
        child(spec, what, &self.log, &interrupt::run, |_| {})
    }

    /// A run on these databases, with the seed of this trial.
    fn load(&self, run: &ChildSpec, urls: &[String], record: &Path) -> Result<ChildSpec, Trouble> {
        let mut trial = run.as_trial(self.seed, record);
        let mut databases = urls.iter().map(|url| Concealed::from(url.as_str()));
        match &mut trial.work {
            ChildWork::Run(spec) => spec.target.urls = databases.collect(),
            ChildWork::Sql(_) if urls.len() > 1 => {
                let cause = format!("[[run.case]] is timed on one server, not on {}", urls.len());
                return Err(Trouble::usage(cause).hint("choose one of them with run.on"));
            }
            ChildWork::Sql(spec) => spec.url = databases.next(),
            ChildWork::Io(spec) => {
                let made = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                spec.folder = made.clone().unwrap_or_else(|| spec.folder.clone());
            }
        }
        Ok(trial)
    }

    /// A run of a step, of which one metric may be shown: times in seconds.
    fn run_of_step(
        &self,
        step: &Step,
        (line, metric): (&str, Option<&str>),
        nodes: &[Node<'_>],
    ) -> Result<Option<Amount>, Trouble> {
        let record = self.log.with_extension(format!("{}.json.zst", plain(&step.name)));
        let setup = &self.cell.setup;
        let targets = if step.on.is_empty() { setup.targets() } else { setup.named(&step.on) };
        let (_, load) = load_of_step(line, setup, self.parser)?;
        let run = self.load(&load, &self.urls(&targets, nodes)?, &record)?;
        let log = self.log.with_extension(format!("{}.log", plain(&step.name)));
        let beside = step.when == When::DuringMeasure;
        child(&run, "its run", &log, if beside { &interrupt::run_beside } else { &interrupt::run }, |_| {})?;
        let Some(metric) = metric else { return Ok(None) };
        let record = Record::read(&record).map_err(|error| Trouble::environment(error.to_string()))?;
        let found = assay_report::metric_value(&assay_report::findings(&record), metric);
        let Some((value, unit)) = found else {
            return Err(Trouble::usage(format!("value = {metric}: the run has no such metric, or did not measure it")));
        };
        Ok(Some(if unit == MetricUnit::Ns { Amount::Seconds(value / 1e9) } else { Amount::Plain(value) }))
    }

    /// URLs of these servers and parts of them.
    fn urls(&self, targets: &[(&str, Option<&str>)], nodes: &[Node<'_>]) -> Result<Vec<String>, Trouble> {
        let urls = targets.iter().filter_map(|(name, part)| {
            let node = nodes.iter().find(|node| node.name == *name)?;
            Some(node.url_of(*part))
        });
        urls.collect()
    }

    /// The steps that are due then in this cell.
    fn own_steps(&self, when: When) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.when == when && step.is_for(&self.levels))
    }

    /// The steps that are due now. `nodes`: the servers, where they run.
    pub(crate) fn steps(&self, when: When, nodes: &[Node<'_>], parts: &mut Timed) -> Result<(), Trouble> {
        for step in self.own_steps(when) {
            stopped()?;
            let watch = Instant::now();
            let value = self.step(step, nodes).map_err(|trouble| of_step(step, trouble))?;
            parts.add(&step.name, watch.elapsed().as_secs_f64(), value);
        }
        Ok(())
    }

    /// Keeps the result, for the record.
    fn keep(&self, step: &Step, settled: Settled) {
        let reached = Attribute::step(&step.name, &settled.reached, settled.complete);
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).extend(reached);
    }

    /// Keeps the duration of a part of a step, for results: `restart stop`.
    fn note(&self, step: &Step, part: &str, since: Instant) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push((format!("{} {part}", step.name), since.elapsed().as_secs_f64()));
    }

    /// Does what a step says; its value, where it has one.
    fn step(&self, step: &Step, nodes: &[Node<'_>]) -> Result<Option<Amount>, Trouble> {
        let (named, part) = match self.cell.setup.named(&step.on).first() {
            Some((name, part)) => (Some(*name), *part),
            None => (self.cell.setup.loaded().first().copied(), None),
        };
        let node = nodes.iter().find(|node| Some(node.name) == named);
        let ours = || {
            node.and_then(Node::topology).ok_or_else(|| {
                Trouble::usage("it needs a server started by the lab (product, not url)").hint("use sql instead")
            })
        };
        match &step.action {
            Action::Sql(statements) => {
                let node = node.expect("a recipe with SQL where no server runs is refused");
                let url = if part.is_some() { node.url_of(part)? } else { node.primary_url() };
                return value_of(step, run_sql(&url, statements)?);
            }
            Action::Command(line) => {
                let said = self.command(line, nodes, step.when == When::DuringMeasure)?;
                return value_of(step, Some(said));
            }
            Action::Checkpoint => self.keep(step, ours()?.checkpoint(PATIENCE)?),
            Action::Settle => self.keep(step, ours()?.settle(PATIENCE)?),
            Action::Restart => {
                let server = server_of(ours()?, step.node.as_deref())?;
                let watch = Instant::now();
                server.stop(PATIENCE)?;
                self.note(step, "stop", watch);
                let watch = Instant::now();
                server.restart(PATIENCE)?;
                self.note(step, "start", watch);
            }
            Action::Crash => {
                let server = server_of(ours()?, step.node.as_deref())?;
                server.kill()?;
                let watch = Instant::now();
                server.restart(PATIENCE)?;
                self.note(step, "start", watch);
            }
            Action::Rest(text) => rest(Duration::from_nanos(duration("rest", text)?.0))?,
            Action::DropCaches => lab::drop_caches()?,
            Action::Run { line, metric } => return self.run_of_step(step, (line, metric.as_deref()), nodes),
        }
        Ok(None)
    }

    /// Runs a shell command, which gets the trial and its servers in its environment; returns what it printed.
    /// `beside`: the measured run is under way.
    fn command(&self, line: &str, nodes: &[Node<'_>], beside: bool) -> Result<String, Trouble> {
        let failed = |error: std::io::Error| Trouble::environment(format!("cannot run {line}: {error}"));
        let mut command = title::shell(line);
        // Files, not pipes: what the command leaves in the background may hold them.
        let (printed, complained) = (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
        command.stdin(Stdio::null());
        command.stdout(printed.try_clone().map_err(failed)?).stderr(complained.try_clone().map_err(failed)?);
        command.env("ASSAY_ROUND", self.round.to_string()).env("ASSAY_CELL", &self.cell.name);
        command.env("ASSAY_SESSIONS", self.runs.sessions_max.to_string());
        for (factor, level) in &self.levels {
            command.env(format!("ASSAY_LEVEL_{}", upper(factor)), level);
        }
        command.env("ASSAY", surroundings::own_program().map_err(failed)?);
        command.env(OWNER, std::process::id().to_string());
        let first = self.cell.setup.loaded().first().copied();
        for node in nodes {
            let primary = node.name == first.unwrap_or_default();
            let mut set = |name: &str, value: &std::ffi::OsStr| {
                command.env(format!("{name}_{}", upper(node.name)), value);
                if primary {
                    command.env(name, value);
                }
            };
            set("ASSAY_URL", node.url.as_ref());
            if let Some(topology) = node.topology() {
                let state = topology.primary.snapshot();
                let replicas: Vec<String> = topology.replicas.iter().map(|replica| replica.url("app")).collect();
                set("ASSAY_PRIMARY_URL", topology.primary.url("app").as_ref());
                set("ASSAY_REPLICA_URLS", replicas.join(" ").as_ref());
                set("ASSAY_SERVER", state.name.as_ref());
                set("ASSAY_PORT", state.port.to_string().as_ref());
                let pid = topology.primary.identity().map_or(String::new(), |process| process.pid.to_string());
                set("ASSAY_PID", pid.as_ref());
                if let assay_lab::server::What::Database { data, .. } = &state.what {
                    set("ASSAY_DATA", data.as_ref());
                }
                set("ASSAY_PROGRAM", state.binaries.program.as_ref());
                set("ASSAY_FOLDER", topology.primary.folder().as_ref());
            }
        }
        let status = if beside { interrupt::run_beside(command) } else { interrupt::run(command) }.map_err(failed)?;
        stopped()?;
        let read = |mut file: File| {
            let mut bytes = Vec::new();
            file.rewind().and_then(|()| file.take(PRINTED_MAX).read_to_end(&mut bytes)).map_err(failed)?;
            Ok::<_, Trouble>(String::from_utf8_lossy(&bytes).into_owned())
        };
        if status.success() {
            return read(printed);
        }
        let (first, rest) = line.trim().split_once('\n').map_or((line, ""), |(first, _)| (first, " …"));
        let cause = format!("`{first}{rest}` ended with {status}");
        Err(Trouble::environment(cause).detail(last_lines(&read(complained)?)))
    }

    fn timed(&self, part: &str, parts: &mut Timed, work: impl FnOnce() -> Result<(), Trouble>) -> Result<(), Trouble> {
        stopped()?;
        let watch = Instant::now();
        let done = work();
        parts.seconds.push((part.to_owned(), watch.elapsed().as_secs_f64()));
        done
    }

    fn say(&self, words: &str) {
        say(self.bar, words);
    }

    /// The records of what was measured.
    pub(crate) fn records(&self, parts: &Timed) -> Vec<PathBuf> {
        if parts.phases.is_empty() {
            return vec![self.record.clone()];
        }
        let all = parts.phases.iter().flat_map(|phase| phase.record.iter().chain(&phase.beside));
        all.filter_map(|inside| Some(self.record.with_file_name(Path::new(inside).file_name()?))).collect()
    }
}

/// The run knows only a URL; the record should also say which server that was.
fn complete_record(record: &Path, started: assay_record::StartedServer) -> Result<(), Trouble> {
    assay_record::change(record, |record| record.environment.started = Some(started))
        .map_err(|error| Trouble::environment(format!("the record of the trial: {error}")))
}

/// A record's path in the experiment's folder.
fn inside(record: &Path) -> String {
    format!("records/{}", record.file_name().unwrap_or_default().to_string_lossy())
}

/// A load that lasts as long as another one, unless it says how long.
fn in_background(mut load: ChildSpec) -> ChildSpec {
    if let ChildWork::Run(spec) = &mut load.work {
        spec.load.time = spec.load.time.or(Some(STATEMENT));
    }
    load
}

/// A metric of an earlier phase, `PHASE.METRIC`: times in seconds.
fn result_of(known: &[(String, Findings)], name: &str) -> Result<String, String> {
    let of = |(phase, findings): &(String, Findings)| {
        let metric = name.strip_prefix(phase.as_str())?.strip_prefix('.')?;
        let (value, unit) = assay_report::metric_value(findings, metric)?;
        Some(if unit == MetricUnit::Ns { value / 1e9 } else { value })
    };
    let found = known.iter().find_map(of);
    found.map(|value| value.to_string()).ok_or_else(|| format!("no earlier phase has measured {name}"))
}

/// A part of a trial that is not measured.
fn aside(spec: RunSpec) -> ChildSpec {
    ChildSpec::of_run(spec, OutputSpec { no_record: true, quiet: true, ..OutputSpec::default() })
}

/// Runs this program to its end, by `run`. What it prints is kept in `log`.
fn child(
    spec: &ChildSpec,
    what: &str,
    log: &Path,
    run: &dyn Fn(Command) -> std::io::Result<ExitStatus>,
    heard: impl FnMut(Event) + Send,
) -> Result<(), Trouble> {
    let failed = |error: std::io::Error| Trouble::environment(format!("cannot run {what}: {error}"));
    let file = File::create(log).map_err(failed)?;
    let ended = child::execute(spec, file.into(), run, heard).map_err(failed)?;
    stopped()?;
    match ended.trouble(what) {
        Some(trouble) if ended.exited.is_none() => {
            Err(trouble.detail(last_lines(&String::from_utf8_lossy(&read_end(log, LOG_BYTES).unwrap_or_default()))))
        }
        Some(trouble) => Err(trouble),
        None => Ok(()),
    }
}

/// What is read of the output of a command, and of the end of a log.
const PRINTED_MAX: u64 = 1 << 20;
const LOG_BYTES: u64 = 64 << 10;

/// The end of a log.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Writes a line above the one that is drawn.
pub(crate) fn say(bar: Option<&Bar>, words: &str) {
    let say = || terminal::say(&format!("{words}\n"));
    match bar {
        Some(bar) => bar.above(say),
        None => say(),
    }
}

impl Timed {
    /// A step that is done. Its seconds are what tables show of it, unless it has a value.
    fn add(&mut self, step: &str, took: f64, amount: Option<Amount>) {
        match amount {
            Some(Amount::Plain(value)) => self.values.push((step.to_owned(), value)),
            Some(Amount::Seconds(seconds)) => self.seconds.push((step.to_owned(), seconds)),
            None => self.seconds.push((step.to_owned(), took)),
        }
    }
}

/// The number that a step returned, where it is to return one.
fn value_of(step: &Step, said: Option<String>) -> Result<Option<Amount>, Trouble> {
    if !step.value {
        return Ok(None);
    }
    let said = said.unwrap_or_default();
    match said.trim().parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(Amount::Plain(value))),
        _ => Err(Trouble::usage(format!("value = true: {:?} is not a number", said.trim()))),
    }
}

fn of_step(step: &Step, trouble: Trouble) -> Trouble {
    Trouble { cause: format!("step {}: {}", step.name, trouble.cause), ..trouble }
}

fn with_parameters(url: String, described: &assay_recipe::RecipeServer) -> String {
    described.parameters.iter().fold(url, |url, (name, value)| {
        let sign = if url.contains('?') { '&' } else { '?' };
        format!("{url}{sign}{name}={value}")
    })
}

/// Several servers' parts with the same name are one part.
fn add(parts: &mut Vec<(String, f64)>, part: &str, seconds: f64) {
    match parts.iter_mut().find(|(known, _)| known == part) {
        Some((_, sum)) => *sum += seconds,
        None => parts.push((part.to_owned(), seconds)),
    }
}

/// As part of a variable's name.
fn upper(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// As part of a file's name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The server of a topology that a step names: `primary`, `replica1`, or a front.
fn server_of<'a>(topology: &'a Topology, node: Option<&str>) -> Result<&'a assay_lab::Server, Trouble> {
    let Some(name) = node.filter(|name| *name != "primary") else { return Ok(&topology.primary) };
    let replicas = topology.replicas.iter().enumerate().map(|(at, one)| (format!("replica{}", at + 1), one));
    let fronts = topology.fronts.iter().map(|front| (front.snapshot().binaries.product, front));
    let all: Vec<(String, &assay_lab::Server)> = replicas.chain(fronts).collect();
    all.iter().find(|(known, _)| known == name).map(|(_, server)| *server).ok_or_else(|| {
        let known: Vec<&str> = ["primary"].into_iter().chain(all.iter().map(|(known, _)| known.as_str())).collect();
        Trouble::usage(format!("node = {name}: there is no such server"))
            .hint(format!("there are: {}", known.join(", ")))
    })
}

/// What is started for loading data, once for all cells that share it.
pub(crate) fn loading(
    description: &Description,
    setup: &assay_recipe::Setup,
    prepare: &Assignment,
    binaries: &assay_lab::product::Binaries,
) -> Result<Description, Trouble> {
    let line = prepare_words(prepare).join(" ");
    let layout = description.contents(assay_products::products(), binaries, &line, "")?.layout;
    Ok(Description {
        settings: layout.into_iter().chain(asked(&setup.data.settings)).collect(),
        file: None,
        // Where a cell's server may run, and how much memory it has, is no matter of what it holds.
        placement: Placement::default(),
        data: None,
        replicas: 0,
        fronts: Vec::new(),
        ..description.clone()
    })
}

/// With the end of the log of a server that crashed, or that is to blame.
fn with_log(trouble: Trouble, nodes: &[Node<'_>]) -> Trouble {
    nodes.iter().filter_map(Node::topology).fold(trouble, with_log_of)
}

fn with_log_of(trouble: Trouble, topology: &Topology) -> Trouble {
    let died = |server: &&assay_lab::Server| server.status() != Status::Running;
    match topology.servers().find(died) {
        Some(server) => {
            let cause = format!("the server died: {}", trouble.cause);
            // Advice to check whether it is running no longer helps.
            let details = trouble.details.into_iter().filter(|line| !line.starts_with("hint: ")).collect();
            let trouble = Trouble { cause, details, hints: Vec::new(), ..trouble };
            trouble.detail(format!("the end of the log of {}:", server.name())).detail(server.log_tail(LOG_LINES))
        }
        // It may have lost a process and be recovering.
        None if trouble.exit == Exit::Server => {
            let server = &topology.primary;
            let words = format!("the end of the log of {}:", server.name());
            trouble.detail(words).detail(server.log_tail(LOG_LINES))
        }
        None => trouble,
    }
}

/// Runs statements one by one; the first value of the last one's rows. Ctrl-C ends the wait for an answer.
fn run_sql(url: &str, statements: &[String]) -> Result<Option<String>, Trouble> {
    let target = plan::target(url, &ConnectOptions::default())?;
    let mut client = Client::open_as_session(&target, Clock::start(), LOGIN, Some(client::USER))
        .map_err(|error| failure::cannot_connect(&target, &error))?;
    let mut value = None;
    for statement in statements {
        let rows = client.ask(statement, STATEMENT).map_err(|words| {
            if interrupt::control().is_stopped() {
                return interrupted();
            }
            Trouble::new(Exit::Server, format!("the server refused {statement}")).detail(words)
        })?;
        value = text(&rows, 0, 0);
        client.reuse(rows);
    }
    client.close();
    Ok(value)
}

/// Waits, in short steps that a signal ends.
fn rest(time: Duration) -> Result<(), Trouble> {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        stopped()?;
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
    Ok(())
}
