//! The queries on one database: one connection, each query several times in a row.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_lab::Server;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::url_text::masked;
use assay_process::{interrupt, terminal};
use assay_recipe::order;
use assay_record::{self as record, Case, Cases, Cold, Execution, Record};
use assay_run::assignment::Assignment;
use assay_run::client::{Client, Refused, text};
use assay_run::{lab, next, plan, record_of};
use assay_script::NamedQuery;
use assay_seam::{Class, ConnectOptions, Nanos, Rows, ServerFacts};
use assay_telemetry::StatementQuestions;
use sha2::{Digest, Sha256};

use crate::command_line::OlapOptions;
use crate::commands::sql::bench::{connect, server_of};

/// The queries of the workload for a database, as far as they are wanted, and the table with its numbers of rows.
pub(super) struct Declared {
    pub(super) plan: assay_engine::Plan,
    pub(super) queries: Vec<NamedQuery>,
    pub(super) loaded: Option<String>,
}

/// A database whose tables are complete, ready for its queries.
pub(super) struct Suite<'a> {
    options: &'a OlapOptions,
    assignment: &'a Assignment,
    plan: assay_engine::Plan,
    url: &'a str,
    target: Target,
    clock: Clock,
    client: Client,
    questions: StatementQuestions,
    /// For restarts before the first execution of each query.
    server: Option<Server>,
    cold: Option<Cold>,
    tables: BTreeMap<String, u64>,
    cases: Vec<Case>,
}

/// How it ended.
pub(super) enum Ended {
    Complete,
    Interrupted,
    /// An error that concerns more than one query.
    Failed(Trouble),
}

/// Limit for a statement without `--timeout`, and for what a server needs to notice its own time limit.
const PATIENCE: Nanos = Nanos::from_secs(24 * 3600);
/// Time limit for a server to stop and to start.
const RESTART: Duration = Duration::from_secs(600);
/// Larger results are compared by their hash alone.
const ANSWER_BYTES_MAX: usize = 64 << 10;

impl<'a> Suite<'a> {
    /// Connects, and checks that the tables have the rows that were loaded.
    pub(super) fn open(
        declared: Declared,
        url: &'a str,
        assignment: &'a Assignment,
        options: &'a OlapOptions,
    ) -> Result<Suite<'a>, Trouble> {
        let Declared { plan, queries, loaded } = declared;
        let session_sql = assignment.spec.target.session_sql.iter().map(|sql| sql.reveal().to_owned()).collect();
        let target = plan::target(url, &ConnectOptions { session_sql, ..ConnectOptions::default() })?;
        let server = if options.cold { Some(server_of(url)?) } else { None };
        let clock = Clock::start();
        let mut client = connect(&target, clock, url)?;
        let facts = client.server();
        let questions = assay_products::statement_questions(&facts.product, &facts.version);
        let tables = match loaded {
            Some(table) => population(&mut client, &table, assignment, url)?,
            None => BTreeMap::new(),
        };
        let case = |query: assay_script::NamedQuery| Case { name: query.name, sql: query.text, ..Case::default() };
        let cases = queries.into_iter().map(case).collect();
        let mut suite = Suite {
            options,
            assignment,
            plan,
            url,
            target,
            clock,
            client,
            questions,
            server,
            cold: None,
            tables,
            cases,
        };
        suite.limit_time()?;
        Ok(suite)
    }

    pub(super) fn now(&self) -> Nanos {
        self.client.now()
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn server(&self) -> ServerFacts {
        self.client.server()
    }

    /// What is known before the first query.
    pub(super) fn record(&self) -> Record {
        let mut record = record_of::begun_command(&self.plan, self.assignment);
        // A command of a workload counts rows or checks; this one runs.
        record.manifest.task = record::Manifest::default().task;
        record
    }

    /// Executes every query.
    pub(super) fn run(&mut self) -> Ended {
        let is_random = self.options.order == "random";
        let all = match is_random {
            true => order(self.cases.len(), 1, self.plan.setup.seed),
            false => (0..self.cases.len()).collect(),
        };
        for case in all {
            if let Err(trouble) = self.query(case) {
                return Ended::Failed(trouble);
            }
            if interrupt::control().is_stopped() {
                return Ended::Interrupted;
            }
        }
        Ended::Complete
    }

    /// The queries with everything measured.
    pub(super) fn finish(self) -> Cases {
        let suite = record::Suite {
            random_order: self.options.order == "random",
            runs: self.options.runs.try_into().unwrap_or(u32::MAX),
            timeout_ns: self.options.timeout.map(|limit| limit.0),
            tables: self.tables,
        };
        self.client.close();
        Cases { cold: self.cold, suite: Some(suite), cases: self.cases, ..Cases::default() }
    }

    /// All executions of a query. Errors are those that concern all queries.
    fn query(&mut self, case: usize) -> Result<(), Trouble> {
        if self.server.is_some() {
            self.cool()?;
        }
        for round in 1..=u32::try_from(self.options.runs).unwrap_or(u32::MAX) {
            if interrupt::control().is_stopped() || !self.execute(case, round)? {
                break;
            }
        }
        let case = &self.cases[case];
        if !self.options.result.quiet && !interrupt::control().is_stopped() {
            let times = case.executions.iter().map(|one| format!("{} ms", assay_report::ms(Some(one.elapsed_ns))));
            let end = match (&case.failure, case.timed_out) {
                (Some(_), true) => "timed out".to_owned(),
                (Some(_), false) => "failed".to_owned(),
                (None, _) if case.rows == Some(1) => "1 row".to_owned(),
                (None, _) => format!("{} rows", assay_report::count(case.rows.unwrap_or(0))),
            };
            let words: Vec<String> = times.chain([end]).collect();
            terminal::say(&format!("{}: {}\n", case.name, words.join(", ")));
        }
        Ok(())
    }

    /// One execution; false: the query is given up.
    fn execute(&mut self, case: usize, round: u32) -> Result<bool, Trouble> {
        let before = self.client.now();
        let answer = self.client.attempt(&self.cases[case].sql, PATIENCE);
        let elapsed = self.client.now() - before;
        let limit = self.options.timeout;
        let kept = &mut self.cases[case];
        let rows = match answer {
            Ok(rows) => rows,
            // Not the server's doing.
            Err(_) if interrupt::control().is_stopped() => return Ok(false),
            Err(refused) => {
                let (class, words) = match refused {
                    Refused::Server(error) => {
                        (error.class, format!("{} ({}){}", error.message, error.code, error.hint_words()))
                    }
                    Refused::Lost(words) => (Class::Connection, words),
                };
                kept.timed_out = limit.is_some_and(|limit| match class {
                    Class::Timeout => true,
                    // A server whose messages are not English.
                    Class::Cancelled => elapsed >= limit,
                    _ => false,
                });
                kept.failure = Some(words);
                if !self.client.is_open() {
                    self.reconnect()?;
                }
                return Ok(false);
            }
        };
        if let Some(limit) = limit.filter(|limit| elapsed > *limit) {
            kept.timed_out = true;
            kept.failure = Some(format!("ended after {elapsed}, the time limit is {limit}"));
            self.client.reuse(rows);
            return Ok(false);
        }
        let (count, digest) = digest(&rows);
        let known = kept.rows.zip(kept.digest.as_ref());
        kept.result_changed |= known.is_some_and(|known| known != (count, &digest));
        if round == 1 {
            kept.answer = kept_rows(&rows);
        }
        (kept.rows, kept.digest) = (Some(count), Some(digest));
        kept.executions.push(Execution { round, elapsed_ns: elapsed.0, plan: None });
        self.client.reuse(rows);
        Ok(true)
    }

    /// Restarts the server, drops the page cache if permitted, and reconnects.
    fn cool(&mut self) -> Result<(), Trouble> {
        let server = self.server.as_ref().expect("it is asked for only where there is one");
        server.restart(RESTART)?;
        self.cold = Some(match lab::drop_caches() {
            Ok(()) => Cold::RestartedCachesDropped,
            Err(_) => Cold::Restarted,
        });
        self.reconnect()
    }

    fn reconnect(&mut self) -> Result<(), Trouble> {
        self.client = connect(&self.target, self.clock, self.url)?;
        self.limit_time()
    }

    /// Lets the server cancel what takes too long. A database that cannot executes it to its end.
    fn limit_time(&mut self) -> Result<(), Trouble> {
        let Some((limit, statement)) = self.options.timeout.zip(self.questions.time_limit) else { return Ok(()) };
        let sql = statement((limit.0 / 1_000_000).max(1));
        let refused = |words: String| Trouble::new(Exit::Server, "the server refused --timeout").detail(words);
        self.client.rows(&sql).map(drop).map_err(refused)
    }
}

/// Rows of each table, which must be as many as were loaded. A load that was killed has not written how many these are.
fn population(
    client: &mut Client,
    loaded: &str,
    assignment: &Assignment,
    url: &str,
) -> Result<BTreeMap<String, u64>, Trouble> {
    let name = &assignment.workload.name;
    let mut of_one = assignment.clone();
    of_one.spec.target.urls = vec![url.into()];
    let load = next::prepare_command(&of_one);
    let wrong = |cause: String, words: Option<String>| {
        let trouble = Trouble::new(Exit::Difference, cause);
        let trouble = words.into_iter().fold(trouble, Trouble::detail);
        trouble.hint(format!("load it again: {}, then {load}", load.replacen(" prepare ", " cleanup ", 1)))
    };
    let database = masked(url);
    let rows = client.rows(&format!("SELECT table_name, row_count FROM {loaded}")).map_err(|words| {
        Trouble::new(Exit::Server, format!("the tables of {name} are not complete on {database}"))
            .detail(words)
            .hint(format!("load them: {load}"))
    })?;
    if rows.is_empty() {
        return Err(wrong(
            format!("the tables of {name} are not complete on {database}"),
            Some("its load did not finish; queries of tables that are half empty would look fast".to_owned()),
        ));
    }
    let mut tables = BTreeMap::new();
    for row in rows {
        let [Some(table), Some(expected)] = &row[..] else { continue };
        let is_name = table.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(wrong(format!("{loaded} does not name a table: {table}"), None));
        }
        let found = client.value(&format!("SELECT COUNT(*) FROM {table}"));
        let found = found.map_err(|words| wrong(format!("a table of {name} is missing on {database}"), Some(words)))?;
        if found != *expected {
            let cause = format!("the tables of {name} are not complete on {database}");
            return Err(wrong(cause, Some(format!("{table} has {found} rows, and {expected} were loaded"))));
        }
        tables.insert(table.clone(), found.parse().unwrap_or(0));
    }
    Ok(tables)
}

/// All rows as text; empty if they are too large to keep.
fn kept_rows(rows: &Rows) -> Vec<Vec<Option<String>>> {
    let row = |row| (0..rows.columns(0)).map(|column| text(rows, row, column)).collect::<Vec<_>>();
    let mut size = 0;
    let mut kept = Vec::new();
    for row in (0..rows.len(0)).map(row) {
        size += row.iter().map(|cell| cell.as_ref().map_or(0, String::len) + 1).sum::<usize>();
        if size > ANSWER_BYTES_MAX {
            return Vec::new();
        }
        kept.push(row);
    }
    kept
}

/// Number of rows, and a hash that does not depend on their order, with numbers rounded to six digits: databases
/// calculate averages with different precision.
fn digest(rows: &Rows) -> (u64, String) {
    let mut sum = 0u64;
    for row in 0..rows.len(0) {
        let mut hasher = Sha256::new();
        for column in 0..rows.columns(0) {
            let cell = text(rows, row, column).map(|text| rounded(&text).unwrap_or(text));
            hasher.update(cell.as_ref().map_or(u64::MAX, |cell| cell.len() as u64).to_le_bytes());
            hasher.update(cell.unwrap_or_default());
        }
        let hash = hasher.finalize();
        sum = sum.wrapping_add(u64::from_le_bytes(hash[..8].try_into().expect("8 bytes")));
    }
    (rows.len(0) as u64, format!("{sum:016x}"))
}

/// A number with six digits; `None`: not a number.
fn rounded(text: &str) -> Option<String> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let number: f64 = text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())?;
    // There is one zero.
    Some(format!("{:.5e}", number + 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Rows {
        let mut rows = Rows::default();
        rows.begin_set(2);
        for cell in texts.iter().flat_map(|row| row.split(' ')) {
            rows.push_text(cell.as_bytes()).unwrap();
        }
        rows
    }

    #[test]
    fn a_digest_depends_on_no_order_and_no_precision() {
        let (count, hash) = digest(&of(&["a 1.50", "b -0"]));
        assert_eq!((count, &hash), (2, &digest(&of(&["b 0.0", "a 1.5000001"])).1));
        for other in [["a 1.51", "b 0"], ["a 1.5", "a 0"], ["a b", "1.5 0"]] {
            assert_ne!(digest(&of(&other)).1, hash, "{other:?}");
        }
    }

    #[test]
    fn large_results_are_not_kept() {
        assert_eq!(kept_rows(&of(&["a 1"])), [[Some("a".to_owned()), Some("1".to_owned())]]);
        let long = "x".repeat(ANSWER_BYTES_MAX);
        assert!(kept_rows(&of(&[&format!("a {long}")])).is_empty());
    }
}
