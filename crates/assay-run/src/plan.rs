//! Converts a spec to the engine's `Plan`.
//!
//! Finds every error that can be found before the first connect: URLs, certificate files, names that do not resolve,
//! commands that a workload does not have.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use assay_engine::{
    Arrival, Connects, Deal, EventLoop, Ignore, Limit, Load, NeededEndpoints, OnError, Plan, Policy, Rate, Stage,
    Target, Unresolved, sessions_per_state,
};
use assay_io::process::{self, FilesLimit};
use assay_io::{Address, Backend, Clock, ConnectError};
use assay_options::OptionValue;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_record::Place;
use assay_report::{Promise, PromisedFigure, next_rate, next_sessions};
use assay_script::{Distribution, DistributionKind, Entry, Setup};
use assay_seam::{ConnectOptions, Endpoint, Nanos};
use assay_spec::{GeneratorSpec, IoChoice, LoadSpec, RunSpec, TargetSpec, Terminals};

use crate::assignment::Assignment;
use crate::client::{Client, USER};
use crate::record_of::place;
use crate::workload::Workload;
use crate::{load_model, registry};

/// Measured time if neither a time nor a number of transactions is given.
pub const TIME_DEFAULT: Nanos = Nanos::from_secs(10);
/// Multiplier for keying and think times, if none is given.
pub const THINK_SCALE: f64 = 1.0;
/// How long a script may block all other sessions of its worker.
const HOLD_MAX: Nanos = Nanos::from_secs(60);
/// How long transactions in flight and `thread_done` may take after an interrupt: with what follows, the program ends
/// within ten seconds (`signals`).
const GRACE_INTERRUPTED: Nanos = Nanos::from_secs(4);
/// How long the system's resolver may take: longer than its usual two attempts of five seconds for two name servers.
const LOOKUP_MAX: Duration = Duration::from_secs(30);
/// A server that does not answer a login within this time is considered absent.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(30);

/// The default of `--io`.
const IO_VARIABLE: &str = "ASSAY_IO";
/// More replies than one system call ever returns.
const BATCH_MAX: usize = 4096;

/// Standard streams, records, scripts.
const FILES_OF_OUR_OWN: u64 = 56;
/// Event loop, its waker, the scheduler's account.
const FILES_PER_WORKER: u64 = 4;

/// Which part of a run this process does.
#[derive(Clone, Default)]
pub enum Role {
    /// All of it.
    #[default]
    Alone,
    /// None: it leads agents.
    Lead,
    /// An agent's.
    Agent(Arc<dyn assay_engine::Fleet>),
}

impl Role {
    /// How many of so many sessions this process has.
    pub fn sessions_here(&self, sessions: u32) -> u32 {
        match self {
            Role::Alone => sessions,
            Role::Lead => 0,
            Role::Agent(fleet) => fleet.agent().part_of(sessions.into()) as u32,
        }
    }

    /// The other processes, for the plan.
    pub fn fleet(&self) -> Option<Arc<dyn assay_engine::Fleet>> {
        match self {
            Role::Agent(fleet) => Some(fleet.clone()),
            Role::Alone | Role::Lead => None,
        }
    }
}

/// What a process adds to a spec.
#[derive(Clone, Default)]
pub struct ProcessOptions {
    /// Which part of the run it does.
    pub role: Role,
    /// Print only results, warnings and errors.
    pub quiet: bool,
    /// It writes what the script logs.
    pub journal: bool,
    /// Only servers that the URLs name are used.
    pub only_named: bool,
}

/// The plan of `assay run`. `urls`: at least one.
pub fn of_run(assignment: &Assignment, process: &ProcessOptions, urls: &[String]) -> Result<Plan, Trouble> {
    let Assignment { spec, workload, .. } = assignment;
    if !workload.program.defines("event") && !workload.program.defines("thread_run") {
        return Err(Trouble::new(
            Exit::Workload,
            format!("workload {} cannot be run: it defines no event()", workload.name),
        )
        .hint(commands_of(workload)));
    }
    let (load, errors) = (&spec.load, &spec.errors);
    let rate = load.rate.as_ref().map(load_model::rate_of).transpose().map_err(Trouble::usage)?;
    let trace = load.rate_file.as_deref().map(load_model::trace).transpose()?;
    let time = load.time.filter(|time| *time > Nanos::ZERO);
    let unlimited = load.time.is_none() && load.transactions.is_none();
    let limit = Limit {
        time: if unlimited { Some(length_of(rate.as_ref(), trace.as_deref())) } else { time },
        transactions: load.transactions,
    };
    let terminals = load.terminals.as_ref().map(|terminals| number_of_terminals(terminals, workload)).transpose()?;
    let ladder = match terminals {
        // A connection for which no terminal would wait is one too many.
        Some(terminals) => vec![load.connections.unwrap_or(assay_spec::CONNECTIONS).min(terminals)],
        None => load.steps(),
    };
    let sessions = ladder.iter().copied().max().unwrap_or(1);
    let entry = Entry::Thread;
    let part = Part { entry, sessions, threads: sessions, terminals: terminals.unwrap_or(0), limit };
    let mut plan = part.plan(assignment, process, urls)?;
    if spec.kill_check.is_some() {
        if !workload.program.defines("verify") {
            return Err(Trouble::new(Exit::Workload, format!("workload {} cannot be kill-checked", workload.name))
                .hint("it has no function verify() that looks for acknowledged transactions: see docs/lua-api.md"));
        }
        plan.setup.options.push(("kill_check".to_owned(), OptionValue::Bool(true)));
    }
    if process.journal {
        plan.setup.options.push(("journal".to_owned(), OptionValue::Bool(true)));
    }
    plan.stages = ladder.iter().map(|sessions| Stage::of(*sessions)).collect();
    plan.warmup = load.warmup;
    plan.interval = spec.interval;
    (plan.grace, plan.grace_interrupted) = (load.grace, load.grace.min(GRACE_INTERRUPTED));
    let arrival = match load.arrival {
        None | Some(assay_spec::Arrival::Constant) => Arrival::Constant,
        Some(assay_spec::Arrival::Poisson) => Arrival::Poisson,
    };
    if let Some(rate) = rate {
        plan.load = Load::Open { rate, arrival, backlog_max: load.backlog_max };
    }
    if let Some(arrivals) = trace {
        plan.load = Load::Trace { arrivals, backlog_max: load.backlog_max };
    }
    let promises: Vec<Promise> = load.find_rate.iter().filter_map(|promise| promise.parse().ok()).collect();
    if let Some(rate) = Some(&promises).filter(|all| !all.is_empty()).and_then(|all| next_rate(&[], all)) {
        plan.load = Load::Open { rate: rate.into(), arrival, backlog_max: load.backlog_max };
        plan.stages = vec![Stage { sessions, rate: Some(rate) }];
    }
    if load.searches_sessions() {
        plan.stages = next_sessions(&[], sessions).into_iter().map(Stage::of).collect();
    }
    if let Some(terminals) = terminals {
        let think_scale = load.think_scale.unwrap_or(THINK_SCALE);
        plan.setup.options.extend([
            ("think_scale".to_owned(), OptionValue::Number(think_scale)),
            ("warmup".to_owned(), OptionValue::Number(load.warmup.as_secs_f64())),
        ]);
        plan.load = Load::Terminals { terminals, think_scale };
    }
    plan.policy = Policy {
        ignore: match errors.ignore.iter().any(|code| code == "all") {
            true => Ignore::All,
            false => Ignore::Codes(errors.ignore.clone()),
        },
        retries: u32::try_from(errors.retries).unwrap_or(u32::MAX),
        on_error: match errors.on_error {
            // Errors are what the check looks for.
            _ if promises.iter().any(|one| one.figure == PromisedFigure::Errors) => OnError::Continue,
            assay_spec::OnError::Stop => OnError::Stop,
            assay_spec::OnError::Continue => OnError::Continue,
        },
        reconnect: errors.reconnect_time,
        ..plan.policy
    };
    Ok(plan)
}

/// The measured time of an unlimited stage: as long as its load lasts. What is due last needs time to start.
fn length_of(rate: Option<&Rate>, trace: Option<&[Nanos]>) -> Nanos {
    let last_point = rate.and_then(|rate| rate.points().last()).map_or(Nanos::ZERO, |point| point.at);
    let last = trace.and_then(|trace| trace.last().copied()).map_or(last_point, |last| last + Nanos::from_secs(1));
    if last > Nanos::ZERO { last } else { TIME_DEFAULT }
}

/// How long a stage is measured, if the spec determines it; `None`: until something else ends it.
pub fn time_of(load: &LoadSpec) -> Option<Nanos> {
    match load.time {
        None if load.transactions.is_some() || load.rate_file.is_some() || load.searches() => None,
        None => {
            let rate = load.rate.as_ref().and_then(|rate| load_model::rate_of(rate).ok());
            Some(length_of(rate.as_ref(), None))
        }
        time => time.filter(|time| *time > Nanos::ZERO),
    }
}

/// `10/warehouse` is ten times the value of the workload's option `warehouses`.
fn number_of_terminals(terminals: &Terminals, workload: &Workload) -> Result<u32, Trouble> {
    let Some(per) = &terminals.per else { return Ok(terminals.number) };
    let options = workload.options_in_effect();
    let key = per.replace('-', "_");
    let named = options.iter().find(|(known, _)| *known == key || *known == format!("{key}s"));
    let Some((key, OptionValue::Number(value))) = named else {
        return Err(Trouble::usage(format!(
            "--terminals {}/{per}: {per} is not a numeric option of {}",
            terminals.number, workload.name
        ))
        .hint(format!("`assay run {} --help` lists them", workload.name)));
    };
    let number = f64::from(terminals.number) * value;
    if number < 1.0 || number > f64::from(u32::MAX) {
        let name = key.replace('_', "-");
        return Err(Trouble::usage(format!(
            "--terminals {}/{per}: with --{name} {value}, the number of terminals is {number}",
            terminals.number
        ))
        .hint(format!("give --{name}")));
    }
    Ok(number as u32)
}

/// Whether a command runs in all sessions.
pub fn is_parallel(workload: &Workload, command: &str) -> bool {
    workload.program.commands().iter().any(|declared| declared.name == command && declared.parallel)
}

/// Refuses a command that the workload does not have.
pub fn must_have(workload: &Workload, command: &str) -> Result<(), Trouble> {
    if workload.has_command(command) {
        return Ok(());
    }
    let trouble = Trouble::usage(format!("workload {} has no command {command}", workload.name));
    Err(trouble.hint(commands_of(workload)))
}

fn commands_of(workload: &Workload) -> String {
    let commands = workload.commands();
    if commands.is_empty() {
        "define `function event()`, which is one transaction, or a command such as `function prepare()`".to_owned()
    } else {
        format!("its commands are: {}", commands.join(", "))
    }
}

/// The plan of a workload's command, such as `prepare`: the task of the spec.
pub fn of_command(assignment: &Assignment, process: &ProcessOptions, urls: &[String]) -> Result<Plan, Trouble> {
    let Assignment { spec, workload, .. } = assignment;
    must_have(workload, &spec.task)?;
    // A command that runs once may still need the number of sessions: bulk_insert creates a table for each.
    let given = spec.load.sessions.as_ref().map(|_| spec.load.sessions_max());
    let threads = given.unwrap_or_else(|| u32::try_from(workers(&spec.generator)).unwrap_or(u32::MAX));
    let sessions = if is_parallel(workload, &spec.task) { threads } else { 1 };
    let entry = Entry::Function(spec.task.clone());
    let mut plan =
        Part { entry, sessions, threads, terminals: 0, limit: Limit::default() }.plan(assignment, process, urls)?;
    if process.quiet {
        plan.setup.options.push(("quiet".to_owned(), OptionValue::Bool(true)));
    }
    Ok(plan)
}

/// The plan of a kill check's last part: the workload's `verify`, in one session.
pub fn of_verify(assignment: &Assignment, process: &ProcessOptions, urls: &[String]) -> Result<Plan, Trouble> {
    let entry = Entry::Function("verify".to_owned());
    Part { entry, sessions: 1, threads: 1, terminals: 0, limit: Limit::default() }.plan(assignment, process, urls)
}

/// The plan of one session that declares the queries of an analytical workload.
pub fn of_queries(assignment: &Assignment, process: &ProcessOptions, urls: &[String]) -> Result<Plan, Trouble> {
    let Assignment { workload, .. } = assignment;
    if !workload.program.defines("queries") {
        return Err(Trouble::usage(format!("workload {} has no queries", workload.name))
            .hint("flights and tpch_like have; a script declares them in `function queries()`: see docs/olap.md"));
    }
    let entry = Entry::Function("queries".to_owned());
    Part { entry, sessions: 1, threads: 1, terminals: 0, limit: Limit::default() }.plan(assignment, process, urls)
}

/// The parts of a plan that differ between `run` and the commands.
struct Part {
    entry: Entry,
    sessions: u32,
    /// The value for the script: `sysbench.opt.threads`.
    threads: u32,
    /// `sysbench.opt.terminals`; 0: every session is a user.
    terminals: u32,
    limit: Limit,
}

impl Part {
    fn plan(self, assignment: &Assignment, process: &ProcessOptions, urls: &[String]) -> Result<Plan, Trouble> {
        let Assignment { spec, workload, words } = assignment;
        let (target, generator) = (&spec.target, &spec.generator);
        if let Some(cpus) = &generator.cpus {
            // Before the workers start, which stay on our CPUs.
            assay_lab::placement::Cpus::of_this_machine(cpus)?.pin_ourselves()?;
        }
        let mut targets = targets(urls, target)?;
        if !process.only_named {
            targets.iter_mut().for_each(add_members);
        }
        let workers = workers(generator);
        let here = process.role.sessions_here(self.sessions);
        ports_suffice(&targets, here)?;
        files_suffice(&targets, here, workers)?;
        let driver = targets[0].database.driver();
        if let Some(other) = targets.iter().find(|target| target.database.driver() != driver) {
            return Err(Trouble::usage(format!(
                "the databases are of different kinds: {driver}, {}",
                other.database.driver()
            ))
            .hint("SQL differs between database products: do one run per product"));
        }
        // An embedded database has no sockets.
        let event_loop = match targets.iter().all(|target| target.addresses.is_empty()) {
            true => EventLoop::of(Backend::Epoll),
            false => event_loop(generator, here as usize, process.quiet)?,
        };
        let shares = generator.cpus.is_none() && targets.iter().any(|target| place(target) == Place::Local);
        if event_loop.polls > Nanos(0) && shares && !process.quiet {
            terminal::say(
                "--poll takes CPU time from the server, which is on this machine, too, unless `--cpus` sets the load generator apart\n",
            );
        }
        if workload.program.draws_own_rows() && generator.rand_type != "uniform" {
            let name = &workload.name;
            return Err(Trouble::usage(format!("--rand-type {} has no effect on {name}", generator.rand_type))
                .hint("leave it out: the workload itself determines which rows it accesses"));
        }
        let seed = generator.seed.unwrap_or_else(random_seed);
        let setup = Setup {
            command: spec.task.clone(),
            entry: self.entry.clone(),
            options: self.script_options(assignment, driver, seed),
            driver: targets[0].database.dialect(),
            seed,
            sessions: self.sessions,
            distribution: distribution(generator),
            argv: words.to_vec(),
            front: None,
        };
        Ok(Plan {
            program: Arc::clone(&workload.program),
            setup,
            targets,
            stages: vec![Stage::of(self.sessions)],
            load: Load::Closed,
            limit: self.limit,
            warmup: Nanos::ZERO,
            interval: Nanos::from_secs(1),
            policy: Policy {
                ignore: Ignore::Codes(Vec::new()),
                retries: 10,
                restart_ignored: false,
                on_error: OnError::Stop,
                rollback: true,
                errors_outside_apart: false,
                carried_over_count: false,
                must_complete: true,
                failed_prepares_count: true,
                failures_are_alone: false,
                sessions_leave_alone: false,
                grace_bounds_leaving: true,
                reconnect: Nanos::from_secs(60),
            },
            connects: Connects {
                pending_max: usize::try_from(target.connect_pending).unwrap_or(usize::MAX),
                rate: target.connect_rate,
                timeout: CONNECT_TIMEOUT,
                silence_max: Some(target.network_timeout).filter(|limit| *limit > Nanos::ZERO),
                deal: Deal::BySession,
            },
            workers,
            fleet: process.role.fleet(),
            event_loop,
            sessions_per_state: sessions_per_state(here as usize, workers),
            grace: Nanos::from_secs(10),
            grace_interrupted: GRACE_INTERRUPTED,
            hold_max: HOLD_MAX,
        })
    }

    /// `sysbench.opt`: the names that scripts written for sysbench look up, then the workload's own.
    fn script_options(&self, assignment: &Assignment, driver: &str, seed: u64) -> Vec<(String, OptionValue)> {
        let Assignment { spec: RunSpec { generator, load, .. }, workload, .. } = assignment;
        let rate = load.rate.as_ref().filter(|_| self.entry == Entry::Thread).map_or(0.0, |rate| rate.points[0].1);
        let number = OptionValue::Number;
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let core = [
            ("threads", number(f64::from(self.threads))),
            ("databases", number(assignment.spec.target.urls.len().max(1) as f64)),
            ("terminals", number(f64::from(self.terminals))),
            ("events", number(self.limit.transactions.unwrap_or(0) as f64)),
            ("time", number(self.limit.time.unwrap_or(Nanos::ZERO).as_secs_f64())),
            ("rate", number(rate)),
            ("report_interval", number(1.0)),
            ("percentile", number(95.0)),
            ("verbosity", number(3.0)),
            ("db_driver", text(driver)),
            ("rand_type", text(&generator.rand_type)),
            ("rand_seed", number(seed as f64)),
            ("rand_spec_iter", number(generator.rand_spec_iter as f64)),
            ("rand_spec_pct", number(generator.rand_spec_pct)),
            ("rand_spec_res", number(generator.rand_spec_res)),
            ("rand_pareto_h", number(generator.rand_pareto_h)),
            ("rand_zipfian_exp", number(generator.rand_zipfian_exp)),
        ];
        let mut options: Vec<(String, OptionValue)> = core.map(|(key, value)| (key.to_owned(), value)).into();
        for (key, value) in workload.options_in_effect() {
            // A script that declares `threads` itself sees the actual value.
            if !options.iter().any(|(known, _)| *known == key) {
                options.push((key, value));
            }
        }
        options
    }
}

fn targets(urls: &[String], options: &TargetSpec) -> Result<Vec<Target>, Trouble> {
    let connect = ConnectOptions {
        prepared: options.prepared,
        unnamed: false,
        session_sql: options.session_sql.iter().map(|sql| sql.reveal().to_owned()).collect(),
        ..ConnectOptions::default()
    };
    urls.iter().map(|url| named(url, &connect)).collect()
}

/// Endpoints queried beside the load.
pub fn beside(url: &str) -> Result<Target, Trouble> {
    target(url, &ConnectOptions::default())
}

/// A database with its addresses.
pub fn target(url: &str, connect: &ConnectOptions) -> Result<Target, Trouble> {
    let mut target = named(url, connect)?;
    add_members(&mut target);
    Ok(target)
}

/// Adds servers that the URL does not name, as those that it names list them: one of them may be the one to use, now or
/// later.
fn add_members(target: &mut Target) {
    let patience = target.database.connect_timeout().unwrap_or(MEMBERS_MAX);
    for endpoint in Client::members(target, Clock::start(), patience, Some(USER)) {
        // A name or an address that is not known here is meant for others, such as those in a container's network.
        if let Ok(found) = look_up(&endpoint) {
            let _ = target.add(&endpoint, found);
        }
    }
}

/// How long each named server has to list the others.
const MEMBERS_MAX: Nanos = Nanos::from_secs(5);

/// A database with the addresses that its URL names.
fn named(url: &str, connect: &ConnectOptions) -> Result<Target, Trouble> {
    let database = registry::open(url, connect)?;
    let shown = database.display();
    Target::resolve(database, NeededEndpoints::All, look_up).map_err(|unresolved| {
        let (exit, error) = match unresolved {
            Unresolved::Tls(error) => (Exit::Environment, error),
            Unresolved::Address(_, error) => (Exit::Server, error),
        };
        let trouble = Trouble::new(exit, format!("cannot use {shown}: {}", error.message));
        match error.hint {
            Some(hint) => trouble.hint(hint),
            None => trouble,
        }
    })
}

/// The addresses of an endpoint. Nothing is waited for once the user has interrupted, or after `LOOKUP_MAX`: the
/// resolver itself cannot be stopped, so it gets a thread that may be left behind.
fn look_up(endpoint: &Endpoint) -> Result<Vec<Address>, ConnectError> {
    let host = match endpoint {
        Endpoint::Tcp { host, .. } => host,
        Endpoint::Unix(_) | Endpoint::Embedded => return Address::resolve(endpoint),
    };
    let ((answer, answers), endpoint) = (mpsc::channel(), endpoint.clone());
    std::thread::spawn(move || answer.send(Address::resolve(&endpoint)));
    let mut waited = Duration::ZERO;
    while waited < LOOKUP_MAX && !interrupt::control().is_stopped() {
        match answers.recv_timeout(LOOK_AROUND) {
            Ok(found) => return found,
            Err(_) => waited += LOOK_AROUND,
        }
        if waited == LOOKUP_TOLD {
            terminal::say(&format!("looking up the host {host}: no answer for 10 s; press Ctrl-C to end\n"));
        }
    }
    if interrupt::control().is_stopped() {
        return Ok(Vec::new());
    }
    Err(ConnectError {
        message: format!("looking up the host {host}: no answer within {} s", LOOKUP_MAX.as_secs()),
        hint: Some("check the name servers in /etc/resolv.conf, or use an IP address".to_owned()),
    })
}

/// How often an interrupt is looked for.
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// Length of a wait before the first line about it.
const LOOKUP_TOLD: Duration = Duration::from_secs(10);

/// Every session is an open file, or three with SQLite (database, log, shared memory); better reported now than after a
/// thousand connects.
fn files_suffice(targets: &[Target], sessions: u32, workers: usize) -> Result<(), Trouble> {
    let each = if targets.iter().any(|target| target.addresses.is_empty()) { 3 } else { 1 };
    let needed = each * u64::from(sessions) + FILES_PER_WORKER * workers as u64 + FILES_OF_OUR_OWN;
    // A limit that cannot be read is not checked.
    match FilesLimit::raise() {
        Ok(limit) if limit.soft < needed => Err(Trouble::environment(format!(
            "{sessions} sessions need {needed} open files, and this process may have {} (ulimit -n)",
            limit.soft
        ))
        .hint("raise the hard limit (`ulimit -Hn`, LimitNOFILE= of a service, limits.conf), or lower `--sessions`")),
        _ => Ok(()),
    }
}

/// A connection to one address and port takes a local port of its own.
fn ports_suffice(targets: &[Target], sessions: u32) -> Result<(), Trouble> {
    let Some((first, last)) = process::local_ports() else { return Ok(()) };
    let ports = u64::from(last.saturating_sub(first)) + 1;
    // A name's other addresses are tried only if the first one fails.
    let mut needed: BTreeMap<SocketAddr, u64> = BTreeMap::new();
    for target in targets {
        if let Some(Address::Tcp(address)) = target.addresses.first() {
            *needed.entry(*address).or_default() += u64::from(sessions) / targets.len() as u64;
        }
    }
    match needed.into_iter().find(|(_, needed)| *needed > ports) {
        None => Ok(()),
        Some((address, needed)) => Err(Trouble::environment(format!(
            "{needed} connections to {address} need as many local ports, and this machine has {ports} \
             (net.ipv4.ip_local_port_range is {first} {last})"
        ))
        .hint(
            "widen it (`sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"`), let the server listen on more addresses \
             or ports and give `--db` for each, or use a unix socket",
        )),
    }
}

/// Sessions of a command that agents share, where none are given: as many as this machine would use, for each.
pub fn sessions_of_fleet(agents: Option<u32>) -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cpus).unwrap_or(u32::MAX).saturating_mul(agents.unwrap_or(1))
}

fn workers(generator: &GeneratorSpec) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    generator.workers.map_or(cpus, |workers| usize::try_from(workers).unwrap_or(usize::MAX))
}

fn event_loop(generator: &GeneratorSpec, sessions: usize, quiet: bool) -> Result<EventLoop, Trouble> {
    let choice = match generator.io {
        Some(choice) => choice,
        None => match std::env::var(IO_VARIABLE) {
            Ok(text) if !text.is_empty() => match text.to_ascii_lowercase().as_str() {
                "auto" => IoChoice::Auto,
                "epoll" => IoChoice::Epoll,
                "uring" => IoChoice::Uring,
                _ => return Err(Trouble::usage(format!("{IO_VARIABLE}={text}: it must be auto, epoll or uring"))),
            },
            _ => IoChoice::Auto,
        },
    };
    let best = match choice {
        IoChoice::Epoll => (Backend::Epoll, None),
        IoChoice::Auto => Backend::best(sessions, workers(generator)),
        IoChoice::Uring => Backend::best(usize::MAX, 1),
    };
    let (backend, fallback) = match best {
        (backend, None) => (backend, None),
        (_, Some(why)) if choice == IoChoice::Uring => {
            return Err(Trouble::environment(format!("cannot use io_uring: {why}"))
                .hint("allow io_uring, or use `--io epoll`, which always works and needs more CPU per statement"));
        }
        (backend, Some(why)) => {
            if !quiet {
                terminal::say(&format!("{backend} instead of io_uring: {why}\n"));
            }
            (backend, Some(why))
        }
    };
    let batch_max =
        generator.batch.map_or(backend.batch_default(), |batch| usize::try_from(batch).unwrap_or(usize::MAX));
    Ok(EventLoop { backend, fallback, batch_max: batch_max.min(BATCH_MAX), polls: generator.poll })
}

fn distribution(options: &GeneratorSpec) -> Distribution {
    Distribution {
        kind: DistributionKind::from_name(&options.rand_type).expect("a checked spec has one of these names"),
        iterations: u32::try_from(options.rand_spec_iter).unwrap_or(u32::MAX),
        special_percent: options.rand_spec_pct,
        special_hits: options.rand_spec_res,
        pareto_h: options.rand_pareto_h,
        zipfian_exponent: options.rand_zipfian_exp,
    }
}

/// A seed that is easy to type: six digits allow a million different runs.
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // The keys of a hash map come from the system's random numbers.
    RandomState::new().hash_one(std::process::id()) % 1_000_000
}
