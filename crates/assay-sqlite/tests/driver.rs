//! The driver through the traits that the engine uses: connections on one thread, and a clock that advances only on
//! request.

use assay_seam::{
    Cell, Class, ConnectOptions, Connection, Database, Exchange, Nanos, NoSurroundings, Operation, Progress, Reply,
    Retry, Rows, RowsPool, RowsWanted, StatementError, StatementId, Value,
};
use assay_sqlite::DRIVER;

/// A folder with a database in it, and the clock of the test.
struct Bench {
    folder: tempfile::TempDir,
    pool: RowsPool,
    now: Nanos,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap(), pool: RowsPool::default(), now: Nanos::ZERO }
    }

    fn database(&self, parameters: &str, options: &ConnectOptions) -> Box<dyn Database> {
        let path = self.folder.path().join("test.db");
        (DRIVER.open)(&format!("sqlite:{}?{parameters}", path.display()), options, &NoSurroundings).unwrap()
    }

    fn connect(&mut self, database: &dyn Database) -> Client {
        let mut client = Client(database.connection());
        let progress =
            client.0.on_connected(&mut Exchange { out: &mut Vec::new(), pool: &mut self.pool, now: self.now });
        assert!(matches!(progress, Progress::Ready), "{progress:?}");
        client
    }

    /// `count` connections to one database with the default settings.
    fn clients<const COUNT: usize>(&mut self) -> [Client; COUNT] {
        let database = self.database("", &ConnectOptions::default());
        [(); COUNT].map(|()| self.connect(&*database))
    }

    fn begin(&mut self, client: &mut Client, operation: Operation<'_>) -> Progress {
        client.0.execute(&operation, &mut Exchange { out: &mut Vec::new(), pool: &mut self.pool, now: self.now })
    }

    fn go_on(&mut self, client: &mut Client) -> Progress {
        client.0.on_timeout(&mut Exchange { out: &mut Vec::new(), pool: &mut self.pool, now: self.now })
    }

    fn run(&mut self, client: &mut Client, operation: Operation<'_>) -> Reply {
        match self.begin(client, operation) {
            Progress::Reply(reply) => reply,
            other => panic!("not answered at once: {other:?}"),
        }
    }

    /// The answer to a text as `affected`, then each set as `[1 'a' NULL|2 …]`, then the error's class and message.
    fn say(&mut self, client: &mut Client, sql: &str) -> String {
        let reply = self.run(client, Operation::Query { text: sql.as_bytes(), rows: RowsWanted::Keep });
        show(&reply)
    }

    fn prepare(&mut self, client: &mut Client, id: u32, sql: &str) -> String {
        let reply = self.run(client, Operation::Prepare { statement: StatementId(id), text: sql.as_bytes() });
        show(&reply)
    }

    fn execute(&mut self, client: &mut Client, id: u32, parameters: &[Value<'_>]) -> String {
        let reply =
            self.run(client, Operation::Execute { statement: StatementId(id), parameters, rows: RowsWanted::Keep });
        show(&reply)
    }
}

#[test]
fn rows_that_nobody_wants_are_counted() {
    let mut bench = Bench::new();
    let [mut one] = bench.clients();
    let text = b"SELECT 1 UNION ALL SELECT 2; SELECT 3, 4";
    let reply = bench.run(&mut one, Operation::Query { text, rows: RowsWanted::Count });
    let rows = reply.rows.unwrap();
    assert_eq!((rows.sets(), rows.len(0), rows.len(1)), (2, 2, 1));
    assert_eq!((rows.columns(0), rows.cell(0, 0, 0)), (0, None));
}

struct Client(Box<dyn Connection>);

fn show(reply: &Reply) -> String {
    let mut text = reply.affected.to_string();
    if let Some(rows) = &reply.rows {
        for set in 0..rows.sets() {
            let cell = |row, column| match rows.cell(set, row, column).unwrap() {
                Cell::Null => "NULL".into(),
                Cell::Int(value) => value.to_string(),
                Cell::Double(value) => format!("{value:?}"),
                Cell::Text(bytes) => format!("'{}'", String::from_utf8_lossy(bytes)),
            };
            let row = |row| (0..rows.columns(set)).map(|column| cell(row, column)).collect::<Vec<_>>().join(" ");
            text += &format!(" [{}]", (0..rows.len(set)).map(row).collect::<Vec<_>>().join("|"));
        }
    }
    if let Some(error) = &reply.error {
        text += &format!(" {}: {}", error.class, error.message);
    }
    text
}

fn error(progress: Progress) -> Box<StatementError> {
    match progress {
        Progress::Reply(Reply { error: Some(error), .. }) | Progress::Failed(error) => error,
        other => panic!("no error: {other:?}"),
    }
}

fn waits(progress: &Progress) -> bool {
    matches!(progress, Progress::Wait(_))
}

#[test]
fn values_of_every_type_come_back_as_they_went() {
    let mut bench = Bench::new();
    let [mut one] = bench.clients();
    assert_eq!(bench.say(&mut one, "CREATE TABLE t(i INTEGER, d REAL, s TEXT, b BLOB)"), "0");
    assert_eq!(bench.prepare(&mut one, 7, "INSERT INTO t VALUES(?, ?, ?, ?)"), "0");
    let values = [Value::Int(-5), Value::Double(0.25), Value::Text(b"it's"), Value::Null];
    assert_eq!(bench.execute(&mut one, 7, &values), "1");
    assert_eq!(bench.execute(&mut one, 7, &[Value::Null, Value::Null, Value::Text(b""), Value::Text(b"x")]), "1");
    assert_eq!(bench.say(&mut one, "SELECT * FROM t"), "0 [-5 0.25 'it's' NULL|NULL NULL '' 'x']");
    assert_eq!(bench.say(&mut one, "SELECT i FROM t WHERE 0"), "0 []");
    assert_eq!(bench.say(&mut one, "INSERT INTO t(i) VALUES(9), (10) RETURNING i"), "2 [9|10]");
    assert_eq!(one.0.server().product, "SQLite");
}

#[test]
fn affected_counts_the_rows_of_data_changes_only() {
    let mut bench = Bench::new();
    let [mut one] = bench.clients();
    assert_eq!(bench.say(&mut one, "CREATE TABLE t(a UNIQUE); CREATE TABLE l(a)"), "0");
    assert_eq!(
        bench.say(&mut one, "INSERT INTO t VALUES(1),(2),(3); UPDATE t SET a=a+10 WHERE a>1; SELECT 1"),
        "5 [1]"
    );
    assert_eq!(bench.say(&mut one, "UPDATE t SET a=0 WHERE a=99"), "0");
    assert_eq!(bench.say(&mut one, "REPLACE INTO t VALUES(1)"), "1");
    assert_eq!(bench.say(&mut one, "CREATE INDEX i ON t(a); BEGIN; SELECT count(*) FROM t; COMMIT"), "0 [3]");
    let trigger = "CREATE TRIGGER x AFTER DELETE ON t BEGIN INSERT INTO l VALUES(old.a); END; DELETE FROM t WHERE a=1;";
    assert_eq!(bench.say(&mut one, trigger), "1");
    assert_eq!(bench.say(&mut one, "SELECT * FROM l; DROP TABLE t; -- done"), "0 [1]");
}

#[test]
fn a_transaction_is_seen_from_begin_to_its_end() {
    let mut bench = Bench::new();
    let [mut one] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(a PRIMARY KEY)");
    for (sql, expected) in [("BEGIN", true), ("INSERT INTO t VALUES(1)", true), ("COMMIT", false), ("BEGIN", true)] {
        bench.say(&mut one, sql);
        assert_eq!(one.0.in_transaction(), expected, "after {sql}");
    }
    assert_eq!(bench.say(&mut one, "INSERT INTO t VALUES(1)"), "0 constraint: UNIQUE constraint failed: t.a");
    assert!(one.0.in_transaction(), "a refused statement does not end it");
    bench.say(&mut one, "ROLLBACK");
    assert!(!one.0.in_transaction());
}

#[test]
fn errors_are_sorted_into_classes() {
    let mut bench = Bench::new();
    let [mut one] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(a CHECK(a < 9))");
    for (sql, expected) in [
        ("SELEC 1", "0 syntax: near \"SELEC\": syntax error"),
        ("SELECT (", "0 syntax: incomplete input"),
        ("SELECT 1; SELECT * FROM nix", "0 [1] missing: no such table: nix"),
        ("SELECT b FROM t", "0 missing: no such column: b"),
        ("INSERT INTO t(b) VALUES(1)", "0 missing: table t has no column named b"),
        ("CREATE TABLE t(x)", "0 exists: table t already exists"),
        ("INSERT INTO t VALUES(9)", "0 constraint: CHECK constraint failed: a < 9"),
        ("SELECT ?", "0 syntax: the statement has 1 placeholders, 0 values were given"),
        ("", "0"),
        (" ; -- nothing", "0"),
    ] {
        assert_eq!(bench.say(&mut one, sql), expected, "{sql}");
    }
    let reply = bench.run(&mut one, Operation::Query { text: b"INSERT INTO t VALUES(9)", rows: RowsWanted::Keep });
    assert_eq!(reply.error.unwrap().code.number, 275, "SQLITE_CONSTRAINT_CHECK");
    assert_eq!(
        bench.prepare(&mut one, 1, "SELECT 1; SELECT 2"),
        "0 syntax: a prepared statement must be a single statement"
    );
    assert_eq!(bench.prepare(&mut one, 2, "SELECT ?, ?"), "0");
    assert_eq!(
        bench.execute(&mut one, 2, &[Value::Null]),
        "0 syntax: the statement has 2 placeholders, 1 values were given"
    );
    assert_eq!(bench.execute(&mut one, 3, &[]), "0 other: statement 3 was never prepared");
    assert_eq!(
        show(&bench.run(&mut one, Operation::Query { text: b"SELECT '\xff'", rows: RowsWanted::Keep })),
        "0 syntax: the statement is not valid UTF-8; pass binary data as parameters"
    );
}

#[test]
fn a_closed_statement_is_forgotten_and_closing_twice_succeeds() {
    let mut bench = Bench::new();
    let [mut one] = bench.clients();
    bench.prepare(&mut one, 1, "SELECT 1");
    for _ in 0..2 {
        assert_eq!(show(&bench.run(&mut one, Operation::Close { statement: StatementId(1) })), "0");
    }
    assert_eq!(bench.execute(&mut one, 1, &[]), "0 other: statement 1 was never prepared");
}

#[test]
fn statements_survive_a_reconnect_and_a_changed_schema() {
    let mut bench = Bench::new();
    let [mut one, mut two] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    for id in 0..100 {
        bench.prepare(&mut one, id, &format!("SELECT a, {id} FROM t WHERE a = ?"));
    }
    bench.say(&mut one, "BEGIN");
    assert!(!one.0.on_closed(), "there is no other way to log in");
    assert!(!one.0.in_transaction());
    let closed = bench.run(&mut one, Operation::Query { text: b"SELECT 1", rows: RowsWanted::Keep }).error.unwrap();
    assert_eq!((closed.class, closed.retry), (Class::Connection, Retry::Reconnect));
    let progress = one.0.on_connected(&mut Exchange { out: &mut Vec::new(), pool: &mut bench.pool, now: bench.now });
    assert!(matches!(progress, Progress::Ready));
    for id in 0..100 {
        assert_eq!(bench.execute(&mut one, id, &[Value::Int(1)]), format!("0 [1 {id}]"));
    }
    bench.say(&mut two, "DROP TABLE t; CREATE TABLE t(z, a); INSERT INTO t VALUES(5, 1)");
    assert_eq!(bench.execute(&mut one, 42, &[Value::Int(1)]), "0 [1 42]");
}

#[test]
fn unprepared_execution_gives_the_same_answers() {
    let mut bench = Bench::new();
    let database = bench.database("", &ConnectOptions { prepared: false, ..ConnectOptions::default() });
    let mut one = bench.connect(&*database);
    bench.prepare(&mut one, 1, "SELECT ? + 1");
    assert_eq!(bench.execute(&mut one, 1, &[Value::Int(1)]), "0 [2]");
    assert_eq!(bench.prepare(&mut one, 2, "SELEC"), "0", "nothing is sent before it is executed");
    assert_eq!(bench.execute(&mut one, 2, &[]), "0 syntax: near \"SELEC\": syntax error");
}

#[test]
fn settings_and_session_statements_hold_on_every_connection() {
    let mut bench = Bench::new();
    let options =
        ConnectOptions { session_sql: vec!["CREATE TEMP TABLE mine(a); SELECT 1".into()], ..ConnectOptions::default() };
    let database = bench
        .database("synchronous=full&page_size=8192&cache_size=-100&foreign_keys=off&journal_mode=delete", &options);
    let mut one = bench.connect(&*database);
    assert_eq!(bench.say(&mut one, "PRAGMA synchronous"), "0 [2]");
    assert_eq!(bench.say(&mut one, "PRAGMA page_size; PRAGMA cache_size"), "0 [8192] [-100]");
    assert_eq!(bench.say(&mut one, "PRAGMA foreign_keys; PRAGMA journal_mode"), "0 [0] ['delete']");
    assert_eq!(bench.say(&mut one, "SELECT * FROM mine"), "0 []");
    let [mut plain] = Bench::new().clients();
    assert_eq!(bench.say(&mut plain, "PRAGMA journal_mode; PRAGMA synchronous"), "0 ['wal'] [1]");
}

#[test]
fn a_file_that_cannot_be_opened_says_what_to_check() {
    let mut bench = Bench::new();
    let mut open = |path: &str| {
        let database = (DRIVER.open)(&format!("sqlite:{path}"), &ConnectOptions::default(), &NoSurroundings).unwrap();
        let mut exchange = Exchange { out: &mut Vec::new(), pool: &mut bench.pool, now: bench.now };
        error(database.connection().on_connected(&mut exchange))
    };
    let missing = open("/nonexistent/x.db");
    assert_eq!(missing.class, Class::Connection);
    assert!(missing.hint.unwrap().contains("the folder of /nonexistent/x.db exists"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, "this is no database, but long enough to have a header if it were one".repeat(20)).unwrap();
    let other = open(path.to_str().unwrap());
    assert_eq!((other.code.number, other.message.as_str()), (26, "file is not a database"));
    assert!(other.hint.unwrap().ends_with("is not a SQLite database: choose another file"));
}

#[test]
fn two_sessions_on_one_thread_take_turns_at_the_write_lock() {
    let mut bench = Bench::new();
    let [mut one, mut two] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(a, b)");
    bench.prepare(&mut two, 1, "INSERT INTO t VALUES(?, ?)");
    bench.say(&mut one, "BEGIN IMMEDIATE; INSERT INTO t VALUES(1, 'one')");

    // The parameters are no longer there when it is retried.
    let parameters = [String::from("two"), String::from("too")];
    let values = [Value::Text(parameters[0].as_bytes()), Value::Text(parameters[1].as_bytes())];
    let first = bench
        .begin(&mut two, Operation::Execute { statement: StatementId(1), parameters: &values, rows: RowsWanted::Keep });
    drop(parameters);
    let mut pauses = Vec::new();
    let mut progress = first;
    for _ in 0..12 {
        let Progress::Wait(pause) = progress else { panic!("{progress:?}") };
        pauses.push(pause.0);
        bench.now += pause;
        progress = bench.go_on(&mut two);
    }
    assert!((25_000..75_000).contains(&pauses[0]), "{pauses:?}");
    assert!(pauses[6..].iter().all(|pause| (1_600_000..4_800_000).contains(pause)), "{pauses:?}");

    bench.say(&mut one, "COMMIT");
    let Progress::Reply(reply) = bench.go_on(&mut two) else { panic!("still waiting") };
    assert_eq!(show(&reply), "1");
    assert_eq!(bench.say(&mut one, "SELECT * FROM t"), "0 [1 'one'|'two' 'too']");
}

#[test]
fn a_text_of_several_statements_goes_on_where_it_met_the_lock() {
    let mut bench = Bench::new();
    let [mut one, mut two] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(a); BEGIN IMMEDIATE");
    let sql =
        b"SELECT 'once'; CREATE TEMP TABLE mine(a); INSERT INTO mine VALUES(1); INSERT INTO t VALUES(1); SELECT 'done'";
    assert!(waits(&bench.begin(&mut two, Operation::Query { text: sql, rows: RowsWanted::Keep })));
    assert!(waits(&bench.go_on(&mut two)));
    bench.say(&mut one, "COMMIT");
    let Progress::Reply(reply) = bench.go_on(&mut two) else { panic!("still waiting") };
    assert_eq!(show(&reply), "2 ['once'] ['done']");
}

#[test]
fn waiting_ends_with_an_error_that_names_the_remedy() {
    let mut bench = Bench::new();
    let database = bench.database("busy_timeout=20", &ConnectOptions::default());
    let (mut one, mut two) = (bench.connect(&*database), bench.connect(&*database));
    bench.say(&mut one, "CREATE TABLE t(a); BEGIN IMMEDIATE");
    let mut progress =
        bench.begin(&mut two, Operation::Query { text: b"SELECT 1; BEGIN IMMEDIATE", rows: RowsWanted::Keep });
    while let Progress::Wait(pause) = progress {
        bench.now += pause;
        progress = bench.go_on(&mut two);
    }
    let Progress::Reply(reply) = progress else { panic!("{progress:?}") };
    assert!((20.0..26.0).contains(&bench.now.as_millis_f64()), "{}", bench.now);
    assert_eq!(show(&reply), format!("0 [1] busy: database is locked for {}", bench.now));
    let error = reply.error.unwrap();
    assert_eq!((error.retry, error.code.number), (Retry::AfterBackoff, 5));
    assert!(error.hint.unwrap().contains("busy_timeout="));
}

#[test]
fn pauses_differ_between_connections_and_repeat_with_the_run() {
    let pauses = || {
        let mut bench = Bench::new();
        let [mut one, mut two, mut three] = bench.clients();
        bench.say(&mut one, "CREATE TABLE t(a); BEGIN IMMEDIATE");
        [&mut two, &mut three].map(|client| {
            format!("{:?}", bench.begin(client, Operation::Query { text: b"BEGIN IMMEDIATE", rows: RowsWanted::Keep }))
        })
    };
    let [two, three] = pauses();
    assert_ne!(two, three);
    assert_eq!(pauses(), [two, three]);
}

#[test]
fn a_reader_that_wants_to_write_starts_over_instead_of_waiting() {
    let mut bench = Bench::new();
    let [mut one, mut two] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(a); INSERT INTO t VALUES(0)");
    let write = Operation::Query { text: b"UPDATE t SET a=a+1", rows: RowsWanted::Keep };

    assert_eq!(bench.say(&mut two, "BEGIN; SELECT a FROM t"), "0 [0]");
    bench.say(&mut one, "BEGIN IMMEDIATE; UPDATE t SET a=5");
    let locked = error(bench.begin(&mut two, write));
    assert_eq!((locked.class, locked.retry, locked.code.number), (Class::Serialization, Retry::AfterBackoff, 5));
    bench.say(&mut one, "COMMIT");
    let stale = error(bench.begin(&mut two, write));
    assert_eq!((stale.class, stale.retry, stale.code.number), (Class::Serialization, Retry::AfterBackoff, 517));
    assert!(stale.hint.unwrap().contains("BEGIN IMMEDIATE"));
    assert!(two.0.in_transaction(), "the engine rolls back");

    assert_eq!(bench.say(&mut two, "ROLLBACK; BEGIN; UPDATE t SET a=a+1; SELECT a FROM t; COMMIT"), "1 [6]");
}

#[test]
fn a_transaction_that_has_not_read_yet_can_wait() {
    let mut bench = Bench::new();
    let [mut one, mut two] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(a); INSERT INTO t VALUES(0); BEGIN IMMEDIATE; UPDATE t SET a=1");
    bench.say(&mut two, "BEGIN");
    assert!(waits(&bench.begin(&mut two, Operation::Query { text: b"UPDATE t SET a=a+1", rows: RowsWanted::Keep })));
    bench.say(&mut one, "COMMIT");
    let Progress::Reply(reply) = bench.go_on(&mut two) else { panic!("still waiting") };
    assert_eq!(show(&reply), "1");
}

#[test]
fn without_wal_a_commit_waits_for_readers_and_no_two_sessions_block_each_other() {
    let mut bench = Bench::new();
    let database = bench.database("journal_mode=delete", &ConnectOptions::default());
    let (mut one, mut two) = (bench.connect(&*database), bench.connect(&*database));
    bench.say(&mut one, "CREATE TABLE t(a); INSERT INTO t VALUES(0)");
    bench.say(&mut two, "BEGIN; SELECT a FROM t");
    bench.say(&mut one, "BEGIN IMMEDIATE; UPDATE t SET a=1");
    assert!(waits(&bench.begin(&mut one, Operation::Query { text: b"COMMIT", rows: RowsWanted::Keep })));
    let refused = error(bench.begin(&mut two, Operation::Query { text: b"UPDATE t SET a=2", rows: RowsWanted::Keep }));
    assert_eq!(refused.class, Class::Serialization);
    bench.say(&mut two, "ROLLBACK");
    let Progress::Reply(reply) = bench.go_on(&mut one) else { panic!("still waiting") };
    assert_eq!(show(&reply), "0");
    assert_eq!(bench.say(&mut two, "SELECT a FROM t"), "0 [1]");
}

#[test]
fn opening_waits_for_a_file_that_somebody_holds() {
    let mut bench = Bench::new();
    let rollback = bench.database("journal_mode=delete", &ConnectOptions::default());
    let mut one = bench.connect(&*rollback);
    bench.say(&mut one, "CREATE TABLE t(a); BEGIN EXCLUSIVE");
    let mut two = Client(bench.database("", &ConnectOptions::default()).connection());
    let first = two.0.on_connected(&mut Exchange { out: &mut Vec::new(), pool: &mut bench.pool, now: bench.now });
    assert!(waits(&first), "{first:?}");
    bench.say(&mut one, "COMMIT");
    let second = bench.go_on(&mut two);
    assert!(matches!(second, Progress::Ready), "{second:?}");
    assert_eq!(bench.say(&mut two, "PRAGMA journal_mode"), "0 ['wal']");
}

fn batch(ids: impl Iterator<Item = i64>) -> Rows {
    let mut rows = Rows::default();
    rows.begin_set(2);
    for id in ids {
        rows.push_int(id);
        rows.push_text(format!("row {id}").as_bytes()).unwrap();
    }
    rows
}

#[test]
fn a_load_is_all_or_nothing() {
    let mut bench = Bench::new();
    let [mut one] = bench.clients();
    bench.say(&mut one, "CREATE TABLE t(id INTEGER PRIMARY KEY, s TEXT)");
    let mut load = |bench: &mut Bench, ids: Vec<i64>| {
        let rows = batch(ids.into_iter());
        show(&bench.run(&mut one, Operation::Load { table: b"t", columns: b"id,s", rows: &rows, frozen: false }))
    };
    assert_eq!(load(&mut bench, (1..=1000).collect()), "1000");
    assert_eq!(load(&mut bench, vec![1001, 1002, 5]), "0 constraint: UNIQUE constraint failed: t.id");
    assert_eq!(load(&mut bench, vec![]), "0");
    assert_eq!(bench.say(&mut one, "SELECT count(*), max(id), max(s) FROM t"), "0 [1000 1000 'row 999']");
    assert!(!one.0.in_transaction());

    bench.say(&mut one, "BEGIN; INSERT INTO t VALUES(2000, 'mine')");
    let rows = batch([2001, 5].into_iter());
    let reply = bench.run(&mut one, Operation::Load { table: b"t", columns: b"", rows: &rows, frozen: false });
    assert_eq!(show(&reply), "0 constraint: UNIQUE constraint failed: t.id");
    assert!(one.0.in_transaction(), "the open transaction goes on without the load");
    assert_eq!(bench.say(&mut one, "COMMIT; SELECT count(*), max(id) FROM t"), "0 [1001 2000]");
}

#[test]
fn a_load_waits_for_the_lock_with_its_own_copy_of_the_rows() {
    let mut bench = Bench::new();
    let [mut one, mut two] = bench.clients();
    bench
        .say(&mut one, "CREATE TABLE t(id INTEGER PRIMARY KEY, s TEXT); BEGIN IMMEDIATE; INSERT INTO t VALUES(5, 'x')");
    let rows = batch(1..=3);
    assert!(waits(
        &bench.begin(&mut two, Operation::Load { table: b"t", columns: b"id,s", rows: &rows, frozen: false })
    ));
    drop(rows);
    assert!(waits(&bench.go_on(&mut two)));
    bench.say(&mut one, "COMMIT");
    let Progress::Reply(reply) = bench.go_on(&mut two) else { panic!("still waiting") };
    assert_eq!(show(&reply), "3");
    assert_eq!(bench.say(&mut one, "SELECT id, s FROM t"), "0 [1 'row 1'|2 'row 2'|3 'row 3'|5 'x']");
}
