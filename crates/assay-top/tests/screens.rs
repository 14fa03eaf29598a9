//! Every screen, drawn into a buffer, with numbers that follow from a record that is made here.

use assay_record::{
    Absent, ByClass, Cost, Interval, Latencies, Load, Note, Reading, Record, RecordedServer, Scope, ScopeKind, Series,
    Stage, Status, Tally, Telemetry, Time, TransactionTally, Unit, WaitEvent, Waits,
};
use assay_top::{Key, Scene, Screen, Seen, ServerNow, SessionRow, StatementRow, Statements, View, draw, plain};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

const SECOND: u64 = 1_000_000_000;

fn response(number: u64) -> Latencies {
    let mut all = Latencies::default();
    (1..=1000).for_each(|value| all.record(value * 10_000 + number));
    all
}

/// Ninety seconds with 100 transactions in the first second, 101 in the second, …; the log grows by 1,000 bytes each.
fn record() -> Record {
    let seconds = 90;
    let interval = |number: u64| Interval {
        start_ns: number * SECOND,
        length_ns: SECOND,
        transactions: vec![100 + number],
        statements: ByClass { read: 300, write: 200, other: 100 },
        errors: number % 2,
        due: Some(200),
        backlog: number,
        sessions: 8,
        cpu_ns: SECOND / 4,
        response: response(number),
        ..Interval::default()
    };
    let began: Vec<u64> = (0..=seconds).map(|second| SECOND + second * SECOND).collect();
    let counter = |metric: &str, unit, each: u64| Series {
        metric: metric.into(),
        unit,
        reading: Reading::Counter,
        source: format!("{metric} of the server"),
        values: (0..=seconds).map(|second| Some(each * second * (199 + second) / 2)).collect(),
        own: Vec::new(),
        includes_own: false,
    };
    let scope = Scope {
        kind: ScopeKind::Server,
        target: 0,
        ended_ns: began.clone(),
        began_ns: began,
        series: vec![counter("commits", Unit::Count, 1), counter("log_bytes", Unit::Bytes, 1000)],
        absent: vec![Absent { metric: "dirty_pages".into(), reason: "permission denied".into() }],
        waits: Some(Waits {
            looks: vec![10; 91],
            events: vec![
                WaitEvent { name: "CPU".into(), sessions: vec![20; 91] },
                WaitEvent { name: "IO:WALSync".into(), sessions: vec![5; 91] },
            ],
        }),
        log: Vec::new(),
        log_left_out: 0,
        statements: Vec::new(),
    };
    let mut record = Record { format: assay_record::FORMAT, status: Status::Running, ..Record::default() };
    record.started = Time::from_unix_ms(1_700_000_000_000);
    record.manifest.workload = "shop".into();
    record.manifest.targets = vec!["postgres://app@h/bench".into()];
    record.manifest.interval_ns = SECOND;
    record.manifest.limit.time_ns = Some(300 * SECOND);
    record.manifest.load =
        Load::Open { rate_per_s: 200.0, arrival: assay_record::Arrival::Constant, backlog_max: None };
    record.environment.host.cpus = 4;
    record.environment.servers =
        vec![RecordedServer { product: "PostgreSQL".into(), version: "17.2 (x)".into(), ..RecordedServer::default() }];
    record.types = vec!["buy".into()];
    record.notes = vec![Note { at: Time::from_unix_ms(1_700_000_061_000), text: "dropped the index".into() }];
    let all = TransactionTally { name: "buy".into(), count: 13_005, response: response(0), ..Default::default() };
    record.stages = vec![Stage {
        sessions: 8,
        started: Time::from_unix_ms(1_700_000_001_000),
        start_ns: Some(SECOND),
        measured_ns: seconds * SECOND,
        total: Tally { transactions: vec![all], ..Tally::default() },
        intervals: (0..seconds).map(interval).collect(),
        ..Stage::default()
    }];
    record.telemetry = Some(Telemetry {
        full: false,
        every_ns: SECOND,
        scopes: vec![scope],
        cost: Cost::default(),
        interventions: Vec::new(),
        plans: Vec::new(),
    });
    record
}

fn server() -> ServerNow {
    let session = |id: &str, state: &str, age_s: f64| SessionRow {
        id: id.into(),
        user: "app".into(),
        database: "bench".into(),
        client: "10.0.0.1:5000".into(),
        state: state.into(),
        wait: "Lock:tuple".into(),
        age_s: Some(age_s),
        statement: "UPDATE stock\nSET n = 1".into(),
    };
    let row = |id: &str, calls: f64| StatementRow {
        id: id.into(),
        calls,
        time_us: calls * 2000.0,
        rows: calls * 3.0,
        misses: Some(calls),
        text: format!("SELECT {id}"),
    };
    let mut statements = Statements::default();
    statements.take(1.0, vec![row("1", 10.0), row("2", 10.0)], true);
    statements.take(3.0, vec![row("1", 30.0), row("2", 110.0)], true);
    ServerNow {
        name: "PostgreSQL 17.2".into(),
        sessions: Ok(vec![session("11", "active", 0.5), session("12", "idle in transaction", 7.0)]),
        statements: Ok(statements),
        cannot_end: None,
    }
}

fn picture(record: &Record, view: &mut View, (width, height): (u16, u16)) -> Buffer {
    let seen = Seen::of(record, view.at_ns, view.width_ns(), view.whole);
    let server = server();
    let scene = Scene {
        seen: &seen,
        server: &server,
        source: "run.json.zst",
        is_live: true,
        notices: &[],
        trouble: None,
        color: false,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(&scene, view, frame.area(), frame.buffer_mut())).unwrap().buffer.clone()
}

/// A screen as text. Charts, which are dots, are left out: lines without a letter or digit, and those with braille.
fn words(record: &Record, view: &mut View, size: (u16, u16)) -> String {
    let text = plain(&picture(record, view, size));
    let is_dots = |line: &&str| line.chars().any(|c| ('\u{2800}'..='\u{28ff}').contains(&c) || "│┌└─┐┘".contains(c));
    text.lines().filter(|line| !is_dots(line)).map(|line| format!("{line}\n")).collect()
}

fn at(screen: Screen) -> View {
    View { screen, ..View::default() }
}

#[test]
fn the_run_at_its_end_and_in_the_middle() {
    let record = record();
    insta::assert_snapshot!(words(&record, &mut at(Screen::Run), (80, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/s due 1:30 of 5:00  live
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    tx/s 189  stmt/s 600 (read 300 write 200 other 100)  sessions 8
    response ms: p50 5.00  p95 9.50  p99 9.90  slowest 10.0
    errors/s 1.00  retries/s 0  failed/s 0  reconnects/s 0  due/s 200  backlog 89
    generator 0.250 of 4 CPUs
    throughput, tx/s  each second 189        response, ms  p50 5.00  p95 9.50
    0:00                0:45            1:30  0:00               0:45           1:30
    by type, since the start of the step
    type                     tx/s  share   p50 ms   p95 ms   p99 ms  failed  retries
    buy                       145   100%     5.00     9.50     9.90       0        0
    ? help  q quit  space pause  t last 2:00  / filter  s sort  w write
    ");
    // After thirty seconds of measurement, its sums are not known.
    let mut view = View { width: 0, ..View::replay(91 * SECOND, 31 * SECOND, 1.0) };
    insta::assert_snapshot!(words(&record, &mut view, (80, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/ 0:30 of 5:00  replay ×1
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    tx/s 129  stmt/s 600 (read 300 write 200 other 100)  sessions 8
    response ms: p50 5.00  p95 9.50  p99 9.90  slowest 10.0
    errors/s 1.00  retries/s 0  failed/s 0  reconnects/s 0  due/s 200  backlog 29
    generator 0.250 of 4 CPUs
    throughput, tx/s  each second 129        response, ms  p50 5.00  p95 9.50
    0:00                0:15            0:30  0:00               0:15           0:30
    by type, in the visible time; percentiles by type are known at a step's end
    type                     tx/s  share   p50 ms   p95 ms   p99 ms  failed  retries
    buy                       115   100%        –        –        –       –        –
    ? help  q quit  space pause  t last 0:30  / filter  s sort  w write
    ");
}

#[test]
fn waits_statements_and_sessions() {
    let record = record();
    insta::assert_snapshot!(words(&record, &mut at(Screen::Waits), (80, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/s due 1:30 of 5:00  live
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    waits, sessions  CPU 2.00  IO:WALSync 0.500
     0:00                                    0:45                               1:30
    sessions, by 10 looks per second; CPU: not waiting
    what active sessions wait for                 now     mean   share
    CPU                                          2.00     2.00     80%
    IO:WALSync                                  0.500    0.500     20%

    ? help  q quit  space pause  t last 2:00  / filter  s sort  w write
    ");
    insta::assert_snapshot!(words(&record, &mut at(Screen::Statements), (80, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/s due 1:30 of 5:00  live
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    the load: 600 statements/s (read 300, write 200, other 100)
    by execution time since the last reading, 2.00 s
      calls/s     ms/s  mean ms    rows/s misses/s statement
         50.0      100     2.00       150     50.0 SELECT 2
         10.0     20.0     2.00      30.0     10.0 SELECT 1
















    ? help  q quit  space pause  t last 2:00  / filter  s sort  w write
    ");
    insta::assert_snapshot!(words(&record, &mut at(Screen::Sessions), (80, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/s due 1:30 of 5:00  live
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    2 sessions of the server, as it lists them now; k: end the chosen one
    id       user      state       wait              age s statement
    11       app       active      Lock:tuple        0.500 UPDATE stock SET n = 1
    12       app       idle in tra Lock:tuple         7.00 UPDATE stock SET n = 1

















    ? help  q quit  space pause  t last 2:00  / filter  s sort  w write
    ");
}

#[test]
fn metrics_have_rates_or_a_reason() {
    let record = record();
    insta::assert_snapshot!(words(&record, &mut at(Screen::Server), (100, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/s due · run.json.zst      1:30 of 5:00  live
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    Log written, MiB per second  log 0.180
       0:00                                             0:45                                        1:30
    metric                                now         mean    per tx          max source
    commits                               189          145      1.00          189 commits of the server
    log_bytes                         185 KiB      141 KiB   1,000 B      185 KiB log_bytes of the serve
    dirty_pages                             –            –         –            – absent: permission den

    ? help  q quit  space pause  t last 2:00  / filter  s sort  w write
    ");
    insta::assert_snapshot!(words(&record, &mut at(Screen::Machine), (80, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/s due 1:30 of 5:00  live
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    CPUs used in the last interval, of 4: generator 0.250
    metrics of the server's machine are not known: it is another one, or no sample w



















    ? help  q quit  space pause  t last 2:00  / filter  s sort  w write
    ");
    insta::assert_snapshot!(words(&record, &mut at(Screen::Pooler), (80, 24)), @r"
    assay top: shop · PostgreSQL 17.2 · 8 sessions · 200 tx/s due 1:30 of 5:00  live
    1 run  2 waits  3 statements  4 sessions  5 server  6 machine  7 pooler
    no figures of a pooler: none is watched; `--pooler URL` names its admin console
    no lag of replicas: the server has none, or only they know it (MySQL, MariaDB)



















    ? help  q quit  space pause  t last 2:00  / filter  s sort  w write
    ");
}

#[test]
fn rows_are_sorted_filtered_and_chosen() {
    let record = record();
    let mut view = at(Screen::Sessions);
    words(&record, &mut view, (80, 24));
    assert_eq!((view.rows, view.row_id.as_deref()), (2, Some("11")));
    view.key(Key::Down);
    words(&record, &mut view, (80, 24));
    assert_eq!(view.row_id.as_deref(), Some("12"));
    // By age, the oldest first: id, user, state, wait, age.
    (0..5).for_each(|_| _ = view.key(Key::Char('s')));
    view.key(Key::Up);
    words(&record, &mut view, (80, 24));
    assert_eq!(view.row_id.as_deref(), Some("12"));
    "/active\n".chars().for_each(|c| _ = view.key(if c == '\n' { Key::Enter } else { Key::Char(c) }));
    words(&record, &mut view, (80, 24));
    assert_eq!((view.rows, view.row_id.as_deref()), (1, Some("11")));
}

#[test]
fn nothing_of_any_size_and_of_any_record_panics() {
    let mut broken = record();
    broken.stages[0].intervals[3].start_ns = u64::MAX;
    broken.telemetry.as_mut().unwrap().scopes[0].ended_ns.truncate(5);
    let mut before = record();
    before.stages.clear();
    let mut idle = record();
    idle.stages[0].intervals.clear();
    for record in [&record(), &broken, &before, &idle, &Record::default()] {
        for screen in Screen::ALL {
            for size in [(1, 1), (60, 16), (80, 24), (160, 50), (300, 100)] {
                for whole in [false, true] {
                    let mut view = View { whole, help: whole, ..at(screen) };
                    picture(record, &mut view, size);
                    let mut replay = View { screen, ..View::replay(assay_top::length(record), 7 * SECOND, 3.0) };
                    picture(record, &mut replay, size);
                }
            }
        }
    }
}

#[test]
fn no_color_means_none() {
    for screen in Screen::ALL {
        let buffer = picture(&record(), &mut at(screen), (160, 50));
        assert!(buffer.content.iter().all(|cell| cell.fg == ratatui::style::Color::Reset), "{}", screen.name());
    }
}

#[test]
fn a_note_is_on_the_charts() {
    let text = plain(&picture(&record(), &mut at(Screen::Run), (160, 50)));
    assert!(text.contains("dropped the index"), "{text}");
}
