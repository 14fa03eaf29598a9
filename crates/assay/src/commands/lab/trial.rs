//! One trial: a server from its image, what is done around the load, the load itself, and the end of it all.
//!
//! The load is a run of our own program, as a person would start it, so that its record holds what every record holds.
//! What happens here is timed part by part.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assay_lab::sql::Session;
use assay_lab::{Description, Home, Status, Topology, image};
use assay_recipe::{Action, Cell, Step, When};
use assay_record::Record;

use crate::commands::lab::setup::{Lines, asked, description};
use crate::diagnostics::{Exit, Trouble};
use crate::lab::{self, Kept};
use crate::{registry, signals, terminal, url_text, values};

/// What a trial needs to know.
pub(super) struct Trial<'a> {
    pub(super) home: &'a Home,
    /// What its server is called, while it is there.
    pub(super) server: String,
    pub(super) cell: &'a Cell,
    /// Factors with the cell's levels, for commands.
    pub(super) levels: Vec<(String, String)>,
    pub(super) lines: &'a Lines,
    pub(super) steps: &'a [Step],
    pub(super) round: u32,
    pub(super) seed: u64,
    /// Where its record goes.
    pub(super) record: PathBuf,
    /// Where what it says goes.
    pub(super) log: PathBuf,
}

/// Seconds by part, in order.
pub(super) type Parts = Vec<(String, f64)>;

/// A server may take this long to come to rest, or to stop.
const PATIENCE: Duration = Duration::from_secs(600);
/// Of a server's log, in a failure.
const LOG_LINES: usize = 20;

impl Trial<'_> {
    /// Runs it. Nothing of it is left running afterwards, however it ended.
    pub(super) fn run(&self) -> Result<Parts, Trouble> {
        let mut parts = Parts::new();
        let (_, server) = self.cell.setup.only_server();
        let Some(url) = &server.url else {
            let kept = self.start(&mut parts)?;
            let done = self.around(Some(kept.topology()), &kept.topology().url(), &mut parts);
            let done = done.map_err(|trouble| with_log(trouble, &kept));
            let watch = Instant::now();
            if done.is_ok() {
                let ended = kept.topology().stop(PATIENCE)?;
                parts.push(("stop".to_owned(), watch.elapsed().as_secs_f64()));
                if let Some((name, _)) = ended.iter().find(|(_, ended)| ended.by.is_none()) {
                    let trouble = Trouble::new(Exit::Server, format!("{name} exited during the trial"));
                    return Err(with_log(trouble, &kept));
                }
            }
            let recorded = lab::recorded(kept.topology());
            drop(kept);
            done?;
            self.complete_record(recorded)?;
            self.steps(When::AfterTrial, None, &mut parts)?;
            return Ok(parts);
        };
        self.around(None, url, &mut parts)?;
        self.steps(When::AfterTrial, None, &mut parts)?;
        Ok(parts)
    }

    fn start(&self, parts: &mut Parts) -> Result<Kept, Trouble> {
        let (_, server) = self.cell.setup.only_server();
        let mut description = Description { name: Some(self.server.clone()), ..description(server)? };
        if let Some(words) = &self.lines.prepare {
            let watch = Instant::now();
            let (key, made) = self.image(&description, words)?;
            description.image = Some(key);
            if made {
                parts.push(("load".to_owned(), watch.elapsed().as_secs_f64()));
            }
        }
        let kept = Kept::new(Topology::start(self.home, &description, &say)?);
        lab::can_prepare_statements(kept.topology(), self.lines.options.target.prepared)?;
        parts.extend(kept.topology().timings.iter().map(|timing| (timing.part.clone(), timing.took.as_secs_f64())));
        Ok(kept)
    }

    /// The image with the loaded data, and whether it was made now. It is loaded with the settings that decide the
    /// layout and those of `[data]`, not with the cell's own: cells share it.
    fn image(&self, description: &Description, words: &[String]) -> Result<(String, bool), Trouble> {
        let binaries = description.find_binaries(self.home, &say)?;
        let line = words.join(" ");
        let workload = lab::hash_of_workload(words.first());
        let layout = description.contents(&binaries, &line, &workload)?.layout;
        let loading = Description {
            settings: layout.into_iter().chain(asked(&self.cell.setup.data.settings)).collect(),
            file: None,
            replicas: 0,
            fronts: Vec::new(),
            ..description.clone()
        };
        let contents = loading.contents(&binaries, &line, &workload)?;
        if image::exists(self.home, &contents) {
            return Ok((contents.key(), false));
        }
        terminal::say(&format!("loading once: {}\n", url_text::shell_line(words)));
        let kept = Kept::new(Topology::start(self.home, &loading, &say)?);
        let mut command = vec!["prepare".to_owned()];
        command.extend(words.iter().cloned());
        command.extend([format!("--db={}", kept.topology().primary.url("app")), "--quiet".to_owned()]);
        self.child(&command, "assay prepare").map_err(|trouble| with_log(trouble, &kept))?;
        kept.topology().keep_image(self.home, &contents, &say)?;
        Ok((contents.key(), true))
    }

    /// From the server's answer to the end of the measured run.
    fn around(&self, topology: Option<&Topology>, url: &str, parts: &mut Parts) -> Result<(), Trouble> {
        let (_, server) = self.cell.setup.only_server();
        if !server.sql.is_empty() {
            run_sql(topology, url, &server.sql)?;
        }
        let place = Some((topology, url));
        self.steps(When::BeforeTrial, place, parts)?;
        if self.lines.warmup.0 > 0 {
            let mut words = vec!["run".to_owned()];
            words.extend(self.lines.warm_up());
            words.extend([format!("--db={url}"), "--no-record".to_owned(), "--quiet".to_owned()]);
            words.push(format!("--seed={}", self.seed.wrapping_add(1 << 32)));
            self.timed("warmup", parts, || self.child(&words, "the warm-up"))?;
        }
        self.steps(When::BeforeMeasure, place, parts)?;
        let mut words = vec!["run".to_owned()];
        words.extend(self.lines.run.iter().cloned());
        words.extend([format!("--db={url}"), "--record".to_owned(), self.record.display().to_string()]);
        words.extend(["--quiet".to_owned(), format!("--seed={}", self.seed)]);
        self.timed("run", parts, || self.child(&words, "assay run"))?;
        self.steps(When::AfterMeasure, place, parts)
    }

    /// Runs our own program to its end. What it says is kept, and is the cause when it fails.
    fn child(&self, words: &[String], what: &str) -> Result<(), Trouble> {
        let failed = |error: std::io::Error| Trouble::environment(format!("cannot run {what}: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        let log = File::create(&self.log).map_err(failed)?;
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let status = signals::run(command).map_err(failed)?;
        if signals::control().is_stopped() {
            return Err(interrupted());
        }
        if status.success() {
            return Ok(());
        }
        let exit = status.code().and_then(Exit::of_code).unwrap_or(Exit::Bug);
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let mut lines = said.lines().skip_while(|line| !line.starts_with("error: "));
        let cause = lines.next().and_then(|line| line.strip_prefix("error: ")).unwrap_or("it was killed");
        Err(Trouble::new(exit, format!("{what}: {cause}")).detail(lines.map(str::trim).collect::<Vec<_>>().join("\n")))
    }

    /// The steps that are due now. `place`: the server, where it runs.
    pub(super) fn steps(
        &self,
        when: When,
        place: Option<(Option<&Topology>, &str)>,
        parts: &mut Parts,
    ) -> Result<(), Trouble> {
        for step in self.steps.iter().filter(|step| step.when == when) {
            let done = self.timed(&step.name, parts, || self.step(&step.action, place));
            done.map_err(|trouble| Trouble { cause: format!("step {}: {}", step.name, trouble.cause), ..trouble })?;
        }
        Ok(())
    }

    fn step(&self, action: &Action, place: Option<(Option<&Topology>, &str)>) -> Result<(), Trouble> {
        let ours = || {
            place.and_then(|(topology, _)| topology).ok_or_else(|| {
                Trouble::usage("it needs a server started by the lab (product, not url)").hint("use sql instead")
            })
        };
        match action {
            Action::Sql(statements) => {
                let (topology, url) = place.expect("a recipe with SQL where no server runs is refused");
                run_sql(topology, url, statements)
            }
            Action::Checkpoint => Ok(ours()?.checkpoint()?),
            Action::Settle => Ok(ours()?.settle(PATIENCE).map(drop)?),
            Action::Rest(text) => {
                let time =
                    values::duration(text).map_err(|reason| Trouble::usage(format!("rest = {text}: {reason}")))?;
                rest(Duration::from_nanos(time.0))
            }
            Action::DropCaches => drop_caches(),
            Action::Command(line) => self.command(line, place),
        }
    }

    /// Runs a shell command, which finds the trial and its servers in the environment.
    fn command(&self, line: &str, place: Option<(Option<&Topology>, &str)>) -> Result<(), Trouble> {
        let failed = |error: std::io::Error| Trouble::environment(format!("cannot run {line}: {error}"));
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("ASSAY_ROUND", self.round.to_string()).env("ASSAY_CELL", &self.cell.name);
        for (factor, level) in &self.levels {
            let name: String =
                factor.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
            command.env(format!("ASSAY_LEVEL_{name}"), level);
        }
        if let Some((topology, url)) = place {
            command.env("ASSAY_URL", url);
            if let Some(topology) = topology {
                let state = topology.primary.snapshot();
                let replicas: Vec<String> = topology.replicas.iter().map(|replica| replica.url("app")).collect();
                command
                    .env("ASSAY_PRIMARY_URL", topology.primary.url("app"))
                    .env("ASSAY_REPLICA_URLS", replicas.join(" "))
                    .env("ASSAY_SERVER", &state.name)
                    .env("ASSAY_PORT", state.port.to_string())
                    .env("ASSAY_PROGRAM", &state.binaries.program)
                    .env("ASSAY_FOLDER", topology.primary.folder());
            }
        }
        command.stderr(File::create(&self.log).map_err(failed)?);
        let status = signals::run(command).map_err(failed)?;
        if signals::control().is_stopped() {
            return Err(interrupted());
        }
        if status.success() {
            return Ok(());
        }
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        Err(Trouble::environment(format!("`{line}` ended with {status}")).detail(said))
    }

    fn timed(&self, part: &str, parts: &mut Parts, work: impl FnOnce() -> Result<(), Trouble>) -> Result<(), Trouble> {
        if signals::control().is_stopped() {
            return Err(interrupted());
        }
        let watch = Instant::now();
        let done = work();
        parts.push((part.to_owned(), watch.elapsed().as_secs_f64()));
        done
    }

    /// The run knows a URL only; the record is to say which server that was, too.
    fn complete_record(&self, started: assay_record::StartedServer) -> Result<(), Trouble> {
        let failed = |words: String| Trouble::environment(format!("the record of the trial: {words}"));
        let mut record = Record::read(&self.record).map_err(|error| failed(error.to_string()))?;
        record.environment.started = Some(started);
        record.write(&self.record).map_err(|error| failed(error.to_string()))
    }
}

/// Ctrl-C or SIGTERM came.
pub(super) fn interrupted() -> Trouble {
    Trouble::new(signals::exit(), "interrupted")
}

fn say(words: &str) {
    terminal::say(&format!("{words}\n"));
}

/// With the end of the log of a server that died.
fn with_log(trouble: Trouble, kept: &Kept) -> Trouble {
    let died = |server: &&assay_lab::Server| server.status() != Status::Running;
    match kept.topology().servers().find(died) {
        Some(server) => {
            trouble.detail(format!("{} died; the end of its log:", server.name())).detail(server.log_tail(LOG_LINES))
        }
        None => trouble,
    }
}

fn run_sql(topology: Option<&Topology>, url: &str, statements: &[String]) -> Result<(), Trouble> {
    // The primary itself, in the database that is loaded: a pooler might take some statements for its own.
    let url = topology.map_or(url.to_owned(), |topology| topology.primary.url("app"));
    let mut session = Session::open(registry::driver_of(&url)?, &url, PATIENCE).map_err(|words| {
        Trouble::new(Exit::Server, format!("cannot connect to {}", url_text::masked(&url))).detail(words)
    })?;
    for statement in statements {
        session
            .rows(statement)
            .map_err(|words| Trouble::new(Exit::Server, format!("the server refused {statement}")).detail(words))?;
    }
    Ok(())
}

/// Waits, in short turns that a signal ends.
fn rest(time: Duration) -> Result<(), Trouble> {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if signals::control().is_stopped() {
            return Err(interrupted());
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
    Ok(())
}

/// What was written goes to the disk first: the kernel keeps pages that it still has to write.
fn drop_caches() -> Result<(), Trouble> {
    let synced = Command::new("sync").status().map(drop);
    synced.and_then(|()| std::fs::write("/proc/sys/vm/drop_caches", "3")).map_err(|error| {
        Trouble::environment(format!("cannot empty the page cache: {error}"))
            .hint("this needs root; without this step, restarted servers find a warm page cache")
    })
}
