//! From pgbench's options to the engine's `Plan`.

use std::sync::Arc;

use assay_engine::{
    Arrival, Connects, Deal, EventLoop, Ignore, Limit, Load, NeededEndpoints, OnError, Plan, Policy, Stage, Target,
    Unresolved, sessions_per_state,
};
use assay_io::process::FilesLimit;
use assay_io::{Address, Backend};
use assay_options::OptionValue;
use assay_script::{Distribution, Entry, Program, Setup};
use assay_seam::url::encoded;
use assay_seam::{ConnectOptions, Endpoint, Nanos, conninfo};

use super::Process;
use super::desk::Desk;
use crate::arguments::{Arguments, Mode, Partitioning};

/// Longer than anybody waits.
const FOREVER: Nanos = Nanos::from_secs(10 * 365 * 86_400);
/// A server that does not answer a login within this time is considered absent.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(60);
/// A connection is lost if the server's machine has acknowledged nothing for this long, as in `assay run`.
const SILENCE_MAX: Nanos = Nanos::from_secs(30);
/// Concurrent connects.
const CONNECTS_PENDING: usize = 64;

/// More transactions than can ever start.
const TRANSACTIONS_MAX: u64 = 1 << 60;

/// The server, opened and resolved; or why not, in libpq's words.
pub(super) fn target(process: &dyn Process, arguments: &Arguments) -> Result<Target, String> {
    let connect = ConnectOptions {
        // The initialization learns the types of columns so, and loads in binary form.
        prepared: arguments.initialize || arguments.mode != Mode::Simple,
        unnamed: arguments.mode == Mode::Extended,
        session_sql: Vec::new(),
        application_name: "pgbench",
        notices: Some(process.complainer()),
    };
    let purpose = if arguments.initialize { "initialization" } else { "setup" };
    let setup_failed = |text: String| format!("{text}\npgbench: error: could not create connection for {purpose}");
    let database = process.open(&url(arguments)?, &connect).map_err(setup_failed)?;
    Target::resolve(database, NeededEndpoints::Any, Address::resolve).map_err(|unresolved| match unresolved {
        Unresolved::Address(Endpoint::Tcp { host, .. }, _) => {
            setup_failed(format!("could not translate host name \"{host}\" to address: Name or service not known"))
        }
        Unresolved::Address(_, error) | Unresolved::Tls(error) => setup_failed(error.message),
    })
}

/// The database's name may be a URL, or a whole connection string; the rest comes from libpq's variables.
fn url(arguments: &Arguments) -> Result<String, String> {
    let database = arguments.database.clone().unwrap_or_default();
    if database.starts_with("postgres://") || database.starts_with("postgresql://") {
        return Ok(database);
    }
    let mut parameters: Vec<(String, String)> = Vec::new();
    for (name, value) in [("host", &arguments.host), ("port", &arguments.port), ("user", &arguments.user)] {
        parameters.extend(value.iter().map(|value| (name.to_owned(), value.clone())));
    }
    if conninfo::is_one(&database) {
        parameters.extend(conninfo::parse(&database)?);
    } else if !database.is_empty() {
        parameters.push(("dbname".to_owned(), database));
    }
    let words: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    Ok(format!("postgres:///?{}", words.join("&")))
}

/// libpq's description of where it tried to connect.
fn place(target: &Target) -> String {
    match target.database.endpoints().first() {
        Some(Endpoint::Unix(path)) => format!("connection to server on socket \"{}\"", path.display()),
        Some(Endpoint::Tcp { host, port }) => {
            let address = match target.addresses.first() {
                Some(Address::Tcp(address)) if address.ip().to_string() != *host => format!(" ({})", address.ip()),
                _ => String::new(),
            };
            format!("connection to server at \"{host}\"{address}, port {port}")
        }
        _ => "connection to server".to_owned(),
    }
}

fn text(value: impl Into<String>) -> OptionValue {
    OptionValue::Text(value.into())
}

fn number(value: impl Into<f64>) -> OptionValue {
    OptionValue::Number(value.into())
}

/// The first lines of `-d`.
pub(super) fn told(arguments: &Arguments, target: &Target) -> String {
    let (host, port) = match target.database.endpoints().first() {
        Some(Endpoint::Unix(path)) => {
            let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
            (text(path.parent().map(|folder| folder.as_os_str())), text(path.extension()))
        }
        Some(Endpoint::Tcp { host, port }) => (host.clone(), port.to_string()),
        _ => Default::default(),
    };
    let length = match arguments.time {
        Some(seconds) => format!("duration: {seconds}"),
        None => format!("nxacts: {}", arguments.transactions.unwrap_or(0)),
    };
    format!(
        "pgbench: pghost: {host} pgport: {port} nclients: {} {length} dbName: {}\n",
        arguments.clients,
        database(target),
    )
}

/// The database's name.
fn database(target: &Target) -> String {
    let url = target.database.display();
    let path = url.split('?').next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What every session sees.
fn common(target: &Target) -> Vec<(String, OptionValue)> {
    [("place", text(place(target))), ("database", text(database(target)))]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
}

/// What comes before the clients.
pub(super) fn options_of_setup(arguments: &Arguments, target: &Target) -> Vec<(String, OptionValue)> {
    let vacuums = !arguments.no_vacuum;
    let more = [
        ("finds_scale", OptionValue::Bool(arguments.has_builtin())),
        ("scale_given", OptionValue::Bool(arguments.scale.is_some())),
        ("vacuums", OptionValue::Bool(vacuums)),
        ("vacuums_all", OptionValue::Bool(vacuums && arguments.vacuum_all)),
        ("version", text(crate::VERSION)),
    ];
    common(target).into_iter().chain(more.map(|(key, value)| (key.to_owned(), value))).collect()
}

/// The settings of the initialization.
pub(super) fn options_of_initialization(arguments: &Arguments, target: &Target) -> Vec<(String, OptionValue)> {
    let method = if arguments.partition_method == Some(Partitioning::Hash) { "hash" } else { "range" };
    let more = [
        ("steps", text(&arguments.steps)),
        ("scale", number(arguments.scale.unwrap_or(1))),
        ("fillfactor", number(arguments.fillfactor)),
        ("quiet", OptionValue::Bool(arguments.quiet)),
        ("pgbench_version", number(arguments.version.unwrap_or(0))),
        ("unlogged", OptionValue::Bool(arguments.unlogged)),
        ("tablespace", text(&arguments.tablespace)),
        ("index_tablespace", text(&arguments.index_tablespace)),
        ("partitions", number(arguments.partitions)),
        ("partition_method", text(method)),
    ];
    common(target).into_iter().chain(more.map(|(key, value)| (key.to_owned(), value))).collect()
}

fn options_of_clients(arguments: &Arguments, target: &Target) -> Vec<(String, OptionValue)> {
    let mode = match arguments.mode {
        Mode::Simple => "simple",
        Mode::Extended => "extended",
        Mode::Prepared => "prepared",
    };
    let more = [
        ("tries", number(arguments.tries)),
        ("latency_limit", number(arguments.latency_limit.unwrap_or(0.0) / 1000.0)),
        ("rate", number(arguments.rate.unwrap_or(0.0))),
        ("transactions", number(arguments.transactions.unwrap_or(0) as f64)),
        ("reconnects", OptionValue::Bool(arguments.reconnects)),
        ("verbose_errors", OptionValue::Bool(arguments.verbose_errors)),
        ("continues", OptionValue::Bool(arguments.continue_on_error)),
        ("mode", text(mode)),
        ("journal", OptionValue::Bool(keeps_journal(arguments))),
    ];
    common(target).into_iter().chain(more.map(|(key, value)| (key.to_owned(), value))).collect()
}

/// Whether each transaction is reported separately.
pub(super) fn keeps_journal(arguments: &Arguments) -> bool {
    arguments.logs || arguments.rate.is_some() || arguments.latency_limit.is_some()
}

/// The clients.
pub(super) fn of_clients(
    arguments: &Arguments,
    program: &Arc<Program>,
    desk: &Arc<Desk>,
    target: Target,
    seed: u64,
) -> Plan {
    let options = options_of_clients(arguments, &target);
    let mut plan = of_session(arguments, program, desk, target, Entry::Thread, options, seed);
    let clients = arguments.clients;
    plan.setup.sessions = clients;
    plan.stages = vec![Stage::of(clients)];
    plan.workers = workers(arguments.threads, clients);
    plan.event_loop = EventLoop::of(Backend::best(clients as usize, plan.workers).0);
    plan.sessions_per_state = sessions_per_state(clients as usize, plan.workers);
    plan.limit = Limit {
        time: arguments.time.map(Nanos::from_secs),
        transactions: match arguments.transactions {
            // Clients have the same number each, and count it themselves.
            _ if arguments.rate.is_some() => None,
            Some(each) => Some(each * u64::from(clients)),
            // With a limit in numbers, transactions started within the time count, as in pgbench, not those completed.
            None => Some(TRANSACTIONS_MAX),
        },
    };
    plan.interval = Nanos::from_secs(u64::from(arguments.progress.unwrap_or(1)));
    if let Some(rate) = arguments.rate {
        plan.load = Load::Open { rate: rate.into(), arrival: Arrival::Poisson, backlog_max: None };
    }
    if arguments.exit_on_abort {
        desk.exit_on_abort();
    }
    plan
}

/// OS threads that drive these clients: as requested, but no more than there are CPUs.
fn workers(threads: u32, clients: u32) -> usize {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    cpus.min(threads.min(clients) as usize)
}

/// One session.
pub(super) fn of_session(
    arguments: &Arguments,
    program: &Arc<Program>,
    desk: &Arc<Desk>,
    target: Target,
    entry: Entry,
    options: Vec<(String, OptionValue)>,
    seed: u64,
) -> Plan {
    // If it cannot be raised, the first connect that fails reports it.
    let _ = FilesLimit::raise();
    Plan {
        program: Arc::clone(program),
        setup: Setup {
            command: if arguments.initialize { "prepare" } else { "run" }.to_owned(),
            entry,
            options,
            driver: target.database.dialect(),
            seed,
            sessions: 1,
            distribution: Distribution::default(),
            argv: Vec::new(),
            front: Some(desk.clone()),
        },
        targets: vec![target],
        stages: vec![Stage::of(1)],
        load: Load::Closed,
        limit: Limit::default(),
        warmup: Nanos::ZERO,
        interval: Nanos::from_secs(1),
        policy: Policy {
            // Clients handle errors themselves.
            ignore: Ignore::All,
            retries: 0,
            restart_ignored: false,
            on_error: OnError::Continue,
            rollback: true,
            errors_outside_apart: false,
            carried_over_count: false,
            must_complete: false,
            failed_prepares_count: true,
            failures_are_alone: false,
            // Another client may wait for its connection, or for its locks.
            sessions_leave_alone: true,
            grace_bounds_leaving: true,
            reconnect: Nanos::ZERO,
        },
        connects: Connects {
            pending_max: CONNECTS_PENDING,
            rate: None,
            timeout: CONNECT_TIMEOUT,
            silence_max: Some(SILENCE_MAX),
            deal: Deal::BySession,
        },
        workers: 1,
        fleet: None,
        event_loop: EventLoop::of(Backend::best(1, 1).0),
        sessions_per_state: 1,
        grace: FOREVER,
        grace_interrupted: Nanos::from_secs(1),
        hold_max: FOREVER,
    }
}
