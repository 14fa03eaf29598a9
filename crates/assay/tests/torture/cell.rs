//! One cell: a run that is harmed, and what it must have kept.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use assay_record::{Record, Status, Tally};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Kind, Mounted, Proxy, Server};

use crate::common::{Folder, Ran, assert_nothing_is_lost};
use crate::harms::{End, Harm, PASSWORD};
use crate::loads::{Load, WORKLOAD};

/// A fault and a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) harm: Harm,
    pub(crate) load: Load,
}

/// What a harm can get hold of.
pub(crate) struct Scene<'a> {
    pub(crate) server: &'a Server,
    /// Its data are on it.
    pub(crate) disk: Option<&'a Mounted>,
    /// One per database.
    proxies: Vec<Proxy>,
    databases: Vec<String>,
    /// How many sessions use the first database.
    pub(crate) sessions_on_first: usize,
    record: PathBuf,
}

impl Scene<'_> {
    /// The way to the first database, the one that suffers.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxies[0]
    }

    pub(crate) fn database(&self) -> &str {
        &self.databases[0]
    }

    /// Transactions in the record, as far as it is on disk.
    pub(crate) fn done_in_record(&self) -> u64 {
        Record::read(&self.record).map_or(0, |record| done(&record))
    }

    /// The keys in the tables.
    fn rows(&self) -> BTreeSet<u64> {
        let rows = |database| self.server.sql(database, "SELECT id FROM kept;").unwrap();
        self.databases.iter().flat_map(|database| numbers(&rows(database))).collect()
    }
}

/// Room for the databases of the next cells.
impl Drop for Scene<'_> {
    fn drop(&mut self) {
        self.proxies.clear();
        let forcibly = if self.server.kind() == Kind::Postgres { " WITH (FORCE)" } else { "" };
        for database in &self.databases {
            let _ = self.server.sql("", &format!("DROP DATABASE {database}{forcibly};"));
        }
    }
}

/// What a cell showed.
pub(crate) struct Showed {
    code: Option<i32>,
    status: Status,
    done: u64,
    rows: u64,
    /// Rows of transactions that were not reported as done.
    unreported: u64,
    in_doubt: u64,
    retries: u64,
    reconnects: u64,
    errors: u64,
    failed: u64,
    unfinished: u64,
    /// Dropped and unstarted.
    not_started: u64,
}

/// How long a run may take in all, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// More on stderr would be a flood.
const STDERR_MAX: usize = 40_000;

impl Cell {
    /// Runs it. Panics with a description if it showed what it must not.
    pub(crate) fn run(self, server: &Server, disk: Option<&Mounted>) -> Showed {
        let Cell { harm, load } = self;
        let folder = Folder::new();
        folder.write("kept.lua", WORKLOAD);
        let databases: Vec<String> = (0..load.targets()).map(|_| server.fresh_database().unwrap()).collect();
        let proxies: Vec<Proxy> = databases.iter().map(|_| Proxy::to(server.port()).unwrap()).collect();
        for database in &databases {
            folder.expect(&format!("prepare ./kept.lua --no-record --quiet --db {}", server.url(database)), 0);
        }
        let url = |(database, proxy): (&String, &Proxy)| {
            let port = |port: u16| format!(":{port}/");
            let url = server.url_as(&harm.user(), database).replace(&port(server.port()), &port(proxy.port()));
            format!("--db {url}")
        };
        let urls: Vec<String> = databases.iter().zip(&proxies).map(url).collect();
        let sessions_on_first = load.sessions_on_first();
        let record = folder.path().join("r.json.zst");
        let scene = Scene { server, disk, proxies, databases, sessions_on_first, record };
        let output = "--interval 100ms --grace 2s --record r.json.zst --journal kept.csv";
        let (urls, load_options) = (urls.join(" "), load.options());
        let mut run = folder.start(&format!("run ./kept.lua {urls} {load_options} {} {output}", harm.options()));

        let ran = within(PATIENCE, run.pid(), || {
            while run.wait_for_interval(load.sessions()) == 0.0 {}
            harm.inflict(&scene, &mut run);
            if load.ends() {
                folder.write("go", "");
            } else if harm.end() == End::Completes {
                for _ in 0..2 {
                    while run.wait_for_interval(load.sessions()) == 0.0 {}
                }
                run.signal(Signal::SIGINT);
            }
            run.finish()
        });
        self.judge(&scene, &folder, &ran)
    }

    fn judge(self, scene: &Scene<'_>, folder: &Folder, ran: &Ran) -> Showed {
        // A run without an end of its own has done all its work when it is interrupted.
        let is_endless = !self.load.ends();
        let (code, status) = match self.harm.end() {
            End::Completes if is_endless => (Some(0), Status::Interrupted),
            End::Completes => (Some(0), Status::Complete),
            End::GivesUp(code, _) => (Some(code), Status::Failed),
            End::Killed => (None, Status::Running),
            End::Signaled(_) if is_endless => (Some(0), Status::Interrupted),
            End::Signaled(signal) => (Some(128 + signal as i32), Status::Interrupted),
        };
        assert_eq!(ran.code, code, "{}", ran.shown());
        if let End::GivesUp(_, words) = self.harm.end() {
            let missing: Vec<_> = words.iter().filter(|word| !ran.stderr.contains(*word)).collect();
            assert!(missing.is_empty(), "{missing:?} is not in {}", ran.shown());
        }
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(PASSWORD), "{}", ran.shown());
            let is_raw = |c: char| c.is_control() && c != '\n';
            assert!(!text.contains(is_raw), "control characters: {:?}", ran.shown());
        }
        assert!(ran.stderr.len() < STDERR_MAX, "{}", ran.shown());

        let record = Record::read(&scene.record).unwrap();
        assert_nothing_is_lost(&record);
        let showed = self.read(scene, folder.path(), ran, &record);
        assert_eq!(showed.status, status, "{showed}\n{}", ran.shown());
        showed
    }

    /// What the record, the journal and the tables have, which must agree.
    fn read(self, scene: &Scene<'_>, folder: &Path, ran: &Ran, record: &Record) -> Showed {
        let sum = |of: fn(&Tally) -> u64| sum(record, of);
        let done = done(record);
        let failed = sum(|total| total.transactions.iter().map(|one| one.failed).sum());
        let in_doubt =
            sum(|total| total.transactions.iter().map(|one| one.retries_in_doubt + one.failed_in_doubt).sum());
        let journal = std::fs::read_to_string(folder.join("kept.csv")).unwrap();
        let lines: Vec<&str> = journal.lines().skip(1).filter_map(|line| line.rsplit(',').next()).collect();
        let reported: BTreeSet<u64> = numbers(&lines.join("\n")).into_iter().collect();
        let rows = scene.rows();
        let unreported = rows.difference(&reported).count() as u64;
        let showed = Showed {
            code: ran.code,
            status: record.status,
            done,
            rows: rows.len() as u64,
            unreported,
            in_doubt,
            retries: sum(|total| total.transactions.iter().map(|one| one.retries).sum()),
            reconnects: sum(|total| total.reconnects),
            errors: sum(|total| total.errors.iter().map(|error| error.count).sum()),
            failed,
            unfinished: sum(|total| total.unfinished + total.stopped),
            not_started: sum(|total| total.dropped + total.unstarted),
        };
        let context = || format!("{}\n{showed}\n{}", Showed::HEAD, ran.shown());
        let lost: Vec<_> = reported.difference(&rows).collect();
        assert!(lost.is_empty(), "reported as done, but not in the table: {lost:?}\n{}", context());
        assert_eq!(lines.len(), reported.len(), "reported twice\n{}", context());
        if self.harm.end() == End::Killed {
            assert!(done <= rows.len() as u64, "{}", context());
            return showed;
        }
        // What ends in the warm-up is in the journal only.
        let has_warmup = self.load == Load::WarmUp;
        let agrees = if has_warmup { done <= lines.len() as u64 } else { done == lines.len() as u64 };
        assert!(agrees, "{} lines in the journal\n{}", lines.len(), context());
        let not_measured = if has_warmup { u64::from(self.load.sessions()) } else { 0 };
        let explained = in_doubt + showed.unfinished + not_measured;
        assert!(unreported <= explained, "rows that nothing explains: {unreported} > {explained}\n{}", context());
        showed
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.harm.name(), self.load.name())
    }
}

impl Showed {
    pub(crate) const HEAD: &'static str = "fault                      load          exit status         done   rows unreported in doubt retries reconnects errors failed unfinished not started    s";
}

impl Display for Showed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        let status = format!("{:?}", self.status).to_lowercase();
        let Showed { done, rows, unreported, in_doubt, retries, reconnects, errors, failed, unfinished, .. } = self;
        write!(
            f,
            "{code:>4} {status:<11} {done:>6} {rows:>6} {unreported:>10} {in_doubt:>8} {retries:>7} {reconnects:>10} \
             {errors:>6} {failed:>6} {unfinished:>10} {:>11}",
            self.not_started
        )
    }
}

/// Successful transactions.
fn done(record: &Record) -> u64 {
    sum(record, |total| total.transactions.iter().map(|one| one.count).sum())
}

/// Over all stages.
fn sum(record: &Record, of: fn(&Tally) -> u64) -> u64 {
    record.stages.iter().map(|stage| of(&stage.total)).sum()
}

/// Kills the run if `work`, which waits for its end, takes longer.
fn within<T>(time: Duration, run: Pid, work: impl FnOnce() -> T) -> T {
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                let _ = kill(run, Signal::SIGKILL);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// One number per line.
fn numbers(text: &str) -> Vec<u64> {
    text.lines().map(|line| line.trim().parse().unwrap()).collect()
}
