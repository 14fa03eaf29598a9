//! An invented record with something in every field: a ladder of two stages, two servers, two transaction types.

use std::collections::BTreeMap;

use assay_isolation::{History, IsolationLevel, Outcome, check, log};
use assay_record::*;

/// The record. Its numbers are consistent, as those of a real run are.
pub(crate) fn example() -> Record {
    Record {
        format: FORMAT,
        tool: Tool { name: "assay".into(), version: "0.1.0".into() },
        status: Status::Interrupted,
        failure: None,
        started: Time::from_unix_ms(1_773_500_966_535),
        elapsed_ns: 4_600_000_000,
        manifest: manifest(),
        environment: environment(),
        types: vec!["shop".into(), "refund".into()],
        rules: rules(),
        rates: vec![Rate {
            name: "spm".into(),
            of: Some("shop".into()),
            rolled_back: true,
            per_ns: 60_000_000_000,
            nominal: Some(150_000.0),
        }],
        stages: vec![stage(16, 1_773_500_966_635, 1), stage(64, 1_773_500_968_735, 2)],
        telemetry: None,
        identity: identity(),
        tags: BTreeMap::new(),
        cases: None,
        work: Some(work()),
        isolation: None,
        agents: Vec::new(),
        notes: Vec::new(),
        damaged_lines: Vec::new(),
    }
}

/// The same with telemetry and tags: a server that writes 600 bytes of log per transaction, and a device whose counter
/// is reset in the second stage.
#[allow(dead_code, reason = "not every test that shares this file needs it")]
pub(crate) fn example_with_telemetry() -> Record {
    let mut record = example();
    let names = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    record.tags = names(&[("disk", "nvme"), ("ticket", "PERF-7")]);
    record.environment.facts = names(&[("swappiness", "60"), ("transparent huge pages", "madvise")]);
    let server = &mut record.environment.servers[0];
    server.place = Place::Local;
    server.origins = names(&[("shared_buffers", "configuration file")]);
    server.facts = names(&[("command line", "postgres -D /data"), ("filesystem", "ext4")]);
    // A sample at the start, the middle and the end of each stage, each lasting a millisecond.
    let began_ns: Vec<u64> = [0, 1, 2].map(|second| 100_000_000 + second * 1_000_000_000).to_vec();
    let began_ns: Vec<u64> = began_ns.iter().copied().chain(began_ns.iter().map(|at| at + 2_100_000_000)).collect();
    for (stage, start_ns) in record.stages.iter_mut().zip([100_000_000, 2_200_000_000]) {
        stage.start_ns = Some(start_ns);
    }
    let series = |metric: &str, unit, reading, source: &str, values: [u64; 6]| Series {
        metric: metric.into(),
        unit,
        reading,
        source: source.into(),
        values: values.map(Some).to_vec(),
        own: Vec::new(),
        includes_own: false,
    };
    // 1,200 transactions per second in the first stage, 2,400 in the second.
    let log = [0, 720_000, 1_440_000, 1_440_000, 2_880_000, 4_320_000];
    let ended_ns: Vec<u64> = began_ns.iter().map(|at| at + 1_000_000).collect();
    let mut age = series("checkpoint_age_bytes", Unit::Bytes, Reading::Gauge, "LSN − redo LSN", [0, 1, 2, 3, 4, 5]);
    age.values[0] = None;
    record.telemetry = Some(Telemetry {
        full: false,
        every_ns: 1_000_000_000,
        scopes: vec![
            Scope {
                kind: ScopeKind::Server,
                target: 0,
                began_ns: began_ns.clone(),
                ended_ns: ended_ns.clone(),
                series: vec![series("log_bytes", Unit::Bytes, Reading::Counter, "pg_current_wal_lsn()", log), age],
                absent: vec![Absent { metric: "dirty_pages".into(), reason: "permission denied".into() }],
                waits: Some(Waits {
                    looks: vec![0, 10, 10, 10, 10, 10],
                    events: vec![
                        WaitEvent { name: "CPU".into(), sessions: vec![0, 20, 20, 20, 40, 40] },
                        WaitEvent { name: "IO:WALSync".into(), sessions: vec![0, 10, 10, 10, 0, 0] },
                    ],
                }),
                log: vec![LogLine { at_ns: 4_000_000_000, text: "LOG:  checkpoint starting: time".into() }],
                log_left_out: 2,
                statements: vec![StatementUse {
                    text: "SELECT c FROM sbtest1 WHERE id=$1".into(),
                    calls: 1000,
                    time_us: 250_000,
                    rows: 1000,
                    page_reads: Some(12),
                    read_rows: Some(1000),
                    read_bytes: Some(120_000),
                    memory_bytes_max: Some(65_536),
                    failures: Some(1),
                }],
            },
            Scope {
                kind: ScopeKind::Machine,
                target: 0,
                began_ns,
                ended_ns,
                series: vec![series(
                    "device_written_bytes",
                    Unit::Bytes,
                    Reading::Counter,
                    "/proc/diskstats vda",
                    [1_000_000, 1_100_000, 1_200_000, 1_200_000, 100_000, 200_000],
                )],
                absent: Vec::new(),
                waits: None,
                log: Vec::new(),
                log_left_out: 0,
                statements: Vec::new(),
            },
        ],
        interventions: Vec::new(),
        plans: Vec::new(),
        cost: Cost { cpu_ns: 8_000_000, server_cpu_ns: Some(6_000_000), statements: 12, statements_ns: 6_000_000 },
    });
    record
}

/// The same with so many intervals that its file is long.
#[allow(dead_code, reason = "not every test that shares this file needs it")]
pub(crate) fn example_that_is_long() -> Record {
    let mut record = example_with_telemetry();
    let mut random = 1_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let errors = [("deadlock".to_owned(), 3)].into();
    for stage in &mut record.stages {
        let first = stage.intervals[0].clone();
        let interval = |number: u64| Interval {
            start_ns: number * 1_000_000_000,
            transactions: (0..number % 4).map(|_| next()).collect(),
            errors: next() % 3,
            due: (!number.is_multiple_of(3)).then(&mut next),
            first_done_ns: (!number.is_multiple_of(2)).then_some(number),
            errors_by_class: if number.is_multiple_of(50) {
                Clone::clone(&errors)
            } else {
                first.errors_by_class.clone()
            },
            response: match number % 20 {
                0 => Latencies::default(),
                _ => latencies((0..400).map(|_| 100_000 + next() % 50_000_000).collect::<Vec<_>>()).at_rest(),
            },
            ..first.clone()
        };
        stage.intervals = (0..600).map(interval).collect();
    }
    for scope in &mut record.telemetry.as_mut().unwrap().scopes {
        let samples = scope.began_ns.len();
        for (number, series) in scope.series.iter_mut().enumerate() {
            series.own = (0..samples as u64).map(|at| (at % 2 == number as u64 % 2).then_some(at)).collect();
        }
    }
    record
}

/// The example, made by two agents, one of which was lost before it sent anything.
#[allow(dead_code, reason = "not every test that shares this file needs it")]
pub(crate) fn example_of_a_fleet() -> Record {
    let mut record = example();
    let clock = ClockOffset { offset_ns: -1_200_000, bound_ns: 90_000 };
    let agent = |number| AgentPart { name: format!("load{number}"), number, ..AgentPart::default() };
    let first =
        AgentPart { status: Status::Complete, failure: Some("no room".into()), clock_before: Some(clock), ..agent(0) };
    let shares = vec![
        Share { agent: first, late_ns: vec![7], record: Some(example()) },
        Share { agent: agent(1), ..Share::default() },
    ];
    record.take_shares(shares, &[]);
    record
}

fn manifest() -> Manifest {
    Manifest {
        spec: Some(serde_json::json!({ "version": 1, "task": "run" })),
        task: String::new(),
        command: ["assay", "run", "shop.lua", "--db", "postgres://app:***@db1/shop", "--sessions", "16,64"]
            .map(String::from)
            .to_vec(),
        workload: "shop.lua".into(),
        options: BTreeMap::from([
            ("items".into(), OptionValue::Int(100_000)),
            ("refund_share".into(), OptionValue::Number(0.25)),
            ("regions".into(), OptionValue::List(vec!["north".into(), "south".into()])),
            ("secondary".into(), OptionValue::Bool(false)),
            ("table".into(), OptionValue::Text("orders".into())),
        ]),
        asked: BTreeMap::new(),
        found: None,
        seed: u64::MAX,
        distribution: Some("uniform".into()),
        sessions: vec![16, 64],
        load: Load::Open { rate_per_s: 2000.0, arrival: Arrival::Poisson, backlog_max: Some(1000) },
        profile: Vec::new(),
        trace: None,
        search: None,
        terminals: None,
        limit: Limit { time_ns: Some(2_000_000_000), transactions: None },
        warmup_ns: 100_000_000,
        interval_ns: 1_000_000_000,
        policy: Policy {
            ignore: vec!["23505".into()],
            retries: 10,
            restart_ignored: false,
            on_error: OnError::Continue,
            reconnect_ns: 60_000_000_000,
        },
        workers: 2,
        event_loop: Some(EventLoop {
            backend: "epoll".into(),
            fallback: Some("a security policy (seccomp, as in many containers, or an LSM) forbids it".into()),
            batch_max: 64,
            polls_ns: 50_000,
        }),
        prepared: true,
        session_sql: vec!["SET application_name = 'shop'".into()],
        targets: vec!["postgres://app@db1:5432/shop".into(), "postgres://app@db2:5432/shop".into()],
    }
}

/// What whoever knew more than the other fields say has noted.
fn identity() -> Vec<Attribute> {
    let harmless = Attribute::unknown(AttributeScope::Server, "port").numbered(0, 2);
    let default = Some("10".to_owned());
    vec![
        Attribute { default, ..Attribute::unknown(AttributeScope::Option, "items") },
        Attribute { matters: false, ..harmless },
    ]
}

fn rules() -> Vec<Rule> {
    let rule = |name: &str, measure, low, high| {
        let clause = "3.2".into();
        Rule { name: name.into(), clause, measure, low, high }
    };
    let share = Measure::Share { part: "gifts".into(), whole: "shop".into() };
    vec![
        rule("gifts", share, Some(0.2), Some(0.3)),
        rule("items per shop", Measure::Mean { of: "items".into() }, Some(3.5), None),
        rule("refunds", Measure::Mix { of: "refund".into() }, Some(0.04), Some(0.06)),
        rule("shop rolled back", Measure::RolledBack { of: "shop".into() }, None, Some(0.01)),
        rule("gifts in the tables", Measure::Growth { total: "gifts".into(), of: "gifts".into(), most: 3 }, None, None),
        rule("spm", Measure::Rate { of: "spm".into() }, None, Some(150_000.0)),
        rule("shop p90", Measure::Percentile { of: "shop".into(), ppm: 900_000 }, None, Some(5e9)),
    ]
}

/// There are two servers, so it is not compared.
fn work() -> Work {
    let shop = WorkTally { name: "shop".into(), count: 9_000, rolled_back: 90, unknown: 2 };
    let gifts = CounterSum { name: "gifts".into(), sum: 2_250 };
    let total = TableTotal { name: "gifts".into(), before: Some(10.0), after: Some(2_261.0) };
    Work { transactions: vec![shop], counters: vec![gifts], totals: vec![total] }
}

fn environment() -> Environment {
    let server = |tls: Option<&str>| RecordedServer {
        product: "PostgreSQL".into(),
        version: "15.14".into(),
        tls: tls.map(String::from),
        place: Place::Remote,
        settings: BTreeMap::from([("shared_buffers".into(), "128MB".into())]),
        ..RecordedServer::default()
    };
    Environment {
        host: Host {
            name: "load1".into(),
            kernel: "Linux 6.1.0-18-amd64".into(),
            cpu_model: "AMD EPYC 7B13".into(),
            cpus: 4,
            cpu_list: String::new(),
            memory_bytes: 16 << 30,
        },
        facts: BTreeMap::new(),
        trial: Some(RecordedTrial {
            experiment: "0123456789abcdef".into(),
            round: 2,
            cell: "memory=1G".into(),
            rejected: vec!["the machine swapped 200 pages per second".into()],
            steps: vec![StepTime {
                name: "crash".into(),
                started: Time::from_unix_ms(1_773_500_000_000),
                length_ns: 7,
            }],
        }),
        servers: vec![server(None), server(Some("TLSv1.3 TLS_AES_256_GCM_SHA384"))],
        started: Some(StartedServer {
            product: "postgres".into(),
            version: "15.14".into(),
            program: "/usr/lib/postgresql/15/bin/postgres".into(),
            identity: vec![
                Attribute::setting("shared_buffers", Some("131072kB".into()), Some("128MB".into()), true),
                Attribute::placement("pinned CPUs", "0-3".into()),
                Attribute::memory("memory limit", 4 << 30),
                Attribute::front(0, 1, "pgbouncer".into()),
                Attribute::restored("copy"),
                Attribute::new(AttributeScope::Step, "settle", "complete"),
                Attribute {
                    matters: false,
                    ..Attribute::new(AttributeScope::Step, "settle: reached", "vacuumed and analyzed")
                },
            ],
            configuration: BTreeMap::from([("postgresql.conf".into(), "shared_buffers = '131072kB'\n".into())]),
            timings_ns: BTreeMap::from([("start".into(), 800_000_000)]),
        }),
    }
}

/// Two seconds. Every target ran `factor` times 1,000 `shop` and 200 `refund` transactions with one statement of each
/// class, with latencies spread evenly.
fn stage(sessions: u32, started_ms: u64, factor: u64) -> Stage {
    let target = tally(factor);
    Stage {
        sessions,
        rate_per_s: None,
        started: Time::from_unix_ms(started_ms),
        start_ns: None,
        measured_ns: 2_000_000_000,
        total: tally(2 * factor),
        targets: vec![target.clone(), target],
        session_transactions_min: 2400 * factor / u64::from(sessions) - 5,
        session_transactions_max: 2400 * factor / u64::from(sessions) + 5,
        generator: Generator {
            cpu_user_ns: 40_000_000 * factor,
            cpu_system_ns: 60_000_000 * factor,
            switches_involuntary: 30 * factor,
            switches_voluntary: 3600 * factor,
            turns: 3600 * factor,
            events: 7200 * factor,
            cpu_wait_ns: Some(10_000_000 * factor),
            longest_wait_ppm: Some(4_000 * factor as u32),
            busiest_worker_ppm: 30_000 * factor as u32,
            workers: 2,
            memory_max_bytes: 24 << 20,
        },
        halts_ns: Some(vec![[600_000_000, 1_200_000_000]]),
        intervals: (0..2).map(|number| interval(number, sessions, factor)).collect(),
    }
}

fn interval(number: u64, sessions: u32, factor: u64) -> Interval {
    let target = |share: u64| TargetInterval {
        transactions: 120 * share * factor,
        first_done_ns: Some(number * 1_000_000_000 + share * 1_000_000),
        last_done_ns: Some((number + 1) * 1_000_000_000 - share * 1_000_000),
        errors_by_class: [("deadlock".to_owned(), factor)].into(),
    };
    Interval {
        start_ns: number * 1_000_000_000,
        length_ns: 1_000_000_000,
        transactions: vec![1000 * factor, 200 * factor],
        statements: ByClass { read: 1200 * factor, write: 1200 * factor, other: 1200 * factor },
        errors: 3 * factor,
        retries: 2 * factor,
        failed: factor,
        reconnects: 0,
        due: Some(1300 * factor),
        backlog: number,
        backlog_max: Some(number),
        first_done_ns: Some(number * 1_000_000_000 + 1_000_000),
        last_done_ns: Some((number + 1) * 1_000_000_000 - 1_000_000),
        errors_by_class: [("deadlock".to_owned(), 2 * factor), ("connection".to_owned(), factor)].into(),
        targets: vec![target(3), target(7)],
        sessions,
        cpu_ns: 50_000_000 * factor,
        cpu_wait_ns: Some(5_000_000 * factor),
        response: spread(1200 * factor, 1_000_000, 5_000_000),
    }
}

fn tally(factor: u64) -> Tally {
    let transaction = |name: &str, count: u64, slowest_ns: u64| TransactionTally {
        name: name.into(),
        count,
        rolled_back: 0,
        failed: factor,
        retries: 2 * factor,
        retries_in_doubt: 0,
        failed_in_doubt: 0,
        response: spread(count, 1_000_000, slowest_ns),
        service: spread(count, 900_000, slowest_ns - 100_000),
    };
    let statements = || StatementTally { count: 1200 * factor, service: spread(1200 * factor, 200_000, 1_000_000) };
    Tally {
        transactions: vec![
            transaction("shop", 1000 * factor, 5_000_000),
            transaction("refund", 200 * factor, 9_000_000),
        ],
        statements: ByClass { read: statements(), write: statements(), other: statements() },
        counters: vec![
            CounterTally {
                name: "gifts".into(),
                transactions: 250 * factor,
                sum: 250 * factor,
                squares: 250 * u128::from(factor),
            },
            // Half of 3 items and half of 5.
            CounterTally {
                name: "items".into(),
                transactions: 1000 * factor,
                sum: 4000 * factor,
                squares: 17_000 * u128::from(factor),
            },
        ],
        errors: vec![
            ErrorTally {
                origin: "server".into(),
                class: "deadlock".into(),
                number: 0,
                state: "40P01".into(),
                count: 2 * factor,
                message: "deadlock detected".into(),
            },
            ErrorTally {
                origin: "server".into(),
                class: "constraint".into(),
                number: 0,
                state: "23505".into(),
                count: factor,
                message: "duplicate key value violates unique constraint \"orders_pkey\"".into(),
            },
        ],
        reconnects: 0,
        due: 1203 * factor,
        dropped: 1,
        unstarted: 1,
        unfinished: 0,
        stopped: 0,
        wait: spread(1200 * factor, 0, 400_000),
        lag: spread(1201 * factor, 2_000, 90_000),
        done_ns: None,
    }
}

/// `count` values spread evenly from `from_ns` to `to_ns`, inclusive.
pub(crate) fn spread(count: u64, from_ns: u64, to_ns: u64) -> Latencies {
    let values = (0..count).map(|i| from_ns + (to_ns - from_ns) * i / (count - 1).max(1));
    latencies(values)
}

pub(crate) fn latencies(values: impl IntoIterator<Item = u64>) -> Latencies {
    let mut all = Latencies::default();
    values.into_iter().for_each(|value| all.record(value));
    all
}

/// Two timed statements, one of which was refused.
#[allow(dead_code, reason = "not every test that shares this file needs it")]
pub(crate) fn example_of_cases() -> Record {
    let mut record = example();
    let execution = |round, elapsed_ns| Execution {
        round,
        elapsed_ns,
        plan: Some(0),
        read_rows: Some(1000),
        read_bytes: Some(4000),
    };
    let case = |name: &str, slower: u64| Case {
        name: name.into(),
        sql: "SELECT 1".into(),
        setup: vec!["BEGIN".into()],
        teardown: vec!["ROLLBACK".into()],
        result: Some("rows".into()),
        executions: (1..=6).map(|round| execution(round, 1_000_000 + slower + u64::from(round) * 1_000)).collect(),
        rows: Some(1),
        digest: Some("00000000000000ff".into()),
        result_changed: false,
        large_result: false,
        pushed_down: None,
        plans: vec![QueryPlan { text: "Result".into(), json: Some("[]".into()), shape: "Result".into() }],
        counters: [("blks_hit".to_owned(), 3)].into(),
        failure: None,
        timed_out: false,
        answer: vec![vec![Some("1".into()), None]],
    };
    let refused = Case { name: "c".into(), sql: "SELEC 1".into(), failure: Some("syntax".into()), ..Case::default() };
    record.cases = Some(Cases {
        base: Some("a".into()),
        warmup: 1,
        cold: Some(Cold::RestartedCachesDropped),
        counters_of: Some("database".into()),
        suite: None,
        cases: vec![case("a", 0), case("b", 500_000), refused],
    });
    record
}

/// With a history in which an update was lost.
#[allow(dead_code, reason = "not every test that shares this file needs it")]
pub(crate) fn example_of_isolation() -> Record {
    let mut history = History::new();
    for (session, end) in [(0, 9_000), (1, 12_000)] {
        let mut words = Vec::new();
        log::read_list(&mut words, 7, std::iter::empty());
        log::append(&mut words, 7, session + 1);
        history.push(session as u32, Outcome::Ok, (1_000, end), &words);
    }
    let mut words = Vec::new();
    log::read_list(&mut words, 7, [1, 2].into_iter());
    history.push(2, Outcome::Unknown, (20_000, u64::MAX), &words);
    history.push(3, Outcome::Ok, (20_000, 21_000), &words);
    let isolation = Isolation { level: IsolationLevel::SnapshotIsolation, verdict: check(&history, 0) };
    Record { isolation: Some(isolation), ..example() }
}
