//! The queries on one database: one connection, each query several times in a row.

use std::collections::BTreeMap;
use std::time::Duration;

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_lab::Server;
use assay_options::OptionValue;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::url_text::masked;
use assay_process::{interrupt, terminal};
use assay_recipe::order;
use assay_record::{self as record, Case, Cases, Cold, Record, is_same_digest};
use assay_run::assignment::Assignment;
use assay_run::client::Client;
use assay_run::{lab, next, plan, record_of};
use assay_script::{LoadedTables, NamedQuery};
use assay_seam::{ConnectOptions, Nanos, ServerFacts};
use assay_spec::CaseSpec;
use assay_telemetry::StatementQuestions;

use crate::command_line::OlapOptions;
use crate::commands::olap::answer::{Answer, refusal, too_late};
use crate::commands::olap::streams::Streams;
use crate::commands::sql::bench::{
    connect, counted, has_counters, plan as plan_of, pushed_down, scope_of_counters, server_of, warn_of_counters,
};
use crate::commands::sql::large::{self, Collected};

/// The queries of the workload for a database, as far as they are wanted, and what its tables hold.
pub(super) struct Declared {
    pub(super) plan: assay_engine::Plan,
    pub(super) queries: Vec<NamedQuery>,
    /// Rows of each table.
    pub(super) tables: BTreeMap<String, u64>,
    /// Options about the tables, with their values in them.
    pub(super) found: Vec<(String, OptionValue)>,
    /// Scale factor of the data; `None` if only some of the queries are wanted.
    pub(super) scale: Option<f64>,
    /// The queries of each parallel stream.
    pub(super) streams: Vec<Vec<NamedQuery>>,
}

/// A database whose tables are complete, ready for its queries.
pub(super) struct Suite<'a> {
    options: &'a OlapOptions,
    assignment: &'a Assignment,
    plan: assay_engine::Plan,
    target: Target,
    clock: Clock,
    client: Client,
    questions: StatementQuestions,
    /// For restarts before the first execution of each query.
    server: Option<Server>,
    cold: Option<Cold>,
    tables: BTreeMap<String, u64>,
    found: Vec<(String, OptionValue)>,
    scale: Option<f64>,
    cases: Vec<Case>,
    /// Queries of the parallel streams.
    parallel: Vec<Vec<NamedQuery>>,
    streams: Vec<record::QueryStream>,
}

/// How it ended.
pub(super) enum Ended {
    Complete,
    Interrupted,
    /// An error that concerns more than one query.
    Failed(Trouble),
}

/// Limit for a statement without `--timeout`.
const PATIENCE: Nanos = Nanos::from_secs(24 * 3600);
/// What a server may need to notice its own time limit, and to say so. After that, the connection is closed.
const GRACE: Nanos = Nanos::from_secs(2);
/// Time limit for a server to stop and to start.
const RESTART: Duration = Duration::from_secs(600);

impl<'a> Suite<'a> {
    /// Connects.
    pub(super) fn open(
        declared: Declared,
        url: &str,
        assignment: &'a Assignment,
        options: &'a OlapOptions,
    ) -> Result<Suite<'a>, Trouble> {
        let Declared { plan, queries, tables, scale, found, streams: parallel } = declared;
        let session_sql = assignment.spec.target.session_sql.iter().map(|sql| sql.reveal().to_owned()).collect();
        let target = plan::target(url, &ConnectOptions { session_sql, ..ConnectOptions::default() })?;
        let server = if options.cold { Some(server_of(url)?) } else { None };
        let clock = Clock::start();
        let client = connect(&target, clock)?;
        let facts = client.server();
        let questions = assay_products::statement_questions(&facts.product, &facts.version);
        if options.counters {
            has_counters(&questions)?;
        }
        let case = |query: assay_script::NamedQuery| Case { name: query.name, sql: query.text, ..Case::default() };
        let cases = queries.into_iter().map(case).collect();
        let mut suite = Suite {
            options,
            assignment,
            plan,
            target,
            clock,
            client,
            questions,
            server,
            cold: None,
            tables,
            found,
            scale,
            cases,
            parallel,
            streams: Vec::new(),
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
        record_of::put_found(&mut record, record_of::options(self.found.clone()));
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
        match self.beside().and_then(|()| self.in_parallel()) {
            Err(trouble) => Ended::Failed(trouble),
            Ok(()) if interrupt::control().is_stopped() => Ended::Interrupted,
            Ok(()) => Ended::Complete,
        }
    }

    /// What is asked about each query after its timed executions.
    fn beside(&mut self) -> Result<(), Trouble> {
        for case in 0..self.cases.len() {
            let kept = &mut self.cases[case];
            kept.pushed_down = pushed_down(&mut self.client, &self.questions, &kept.sql);
            if kept.failure.is_some() || interrupt::control().is_stopped() {
                continue;
            }
            if self.options.explain
                && let Err(words) = plan_of(&mut self.client, &self.questions, kept)
            {
                terminal::say(&format!("warning: no plan of {}: {words}\n", kept.name));
                self.reconnect()?;
            }
            if self.options.counters {
                self.count(case)?;
            }
        }
        Ok(())
    }

    /// Counts one more execution of a query.
    fn count(&mut self, case: usize) -> Result<(), Trouble> {
        let kept = &mut self.cases[case];
        let described = CaseSpec { name: kept.name.clone(), sql: kept.sql.clone(), ..CaseSpec::default() };
        match counted(&mut self.client, &self.questions, &described) {
            Ok(counters) => kept.counters = counters,
            Err(words) => {
                warn_of_counters(&kept.name, &words);
                self.reconnect()?;
            }
        }
        Ok(())
    }

    /// The queries with everything measured.
    pub(super) fn finish(self) -> Cases {
        let suite = record::Suite {
            random_order: self.options.order == "random",
            runs: self.options.runs.try_into().unwrap_or(u32::MAX),
            timeout_ns: self.options.timeout.map(|limit| limit.0),
            tables: self.tables,
            scale: self.scale,
            streams: self.streams,
        };
        self.client.close();
        let counters_of = self.options.counters.then(|| scope_of_counters(&self.questions));
        Cases { cold: self.cold, counters_of, suite: Some(suite), cases: self.cases, ..Cases::default() }
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
        let limit = self.options.timeout;
        let patience = self.patience();
        let found = large::execute::<Answer>(&mut self.client, &self.cases[case].sql, patience);
        let kept = &mut self.cases[case];
        let Collected { answer, elapsed, is_large, reads } = match found {
            Ok(found) => found,
            // Not the server's doing.
            Err(_) if interrupt::control().is_stopped() => return Ok(false),
            Err((refused, elapsed)) => {
                let (words, timed_out) = refusal(refused, elapsed, limit);
                (kept.failure, kept.timed_out) = (Some(words), timed_out);
                if !self.client.is_open() {
                    self.reconnect()?;
                }
                return Ok(false);
            }
        };
        if let Some(words) = too_late(elapsed, limit) {
            (kept.failure, kept.timed_out) = (Some(words), true);
            return Ok(false);
        }
        let (count, digest) = (answer.rows(), answer.digest());
        let known = kept.rows.zip(kept.digest.as_ref());
        kept.result_changed |= known.is_some_and(|(rows, known)| rows != count || !is_same_digest(known, &digest));
        kept.large_result |= is_large;
        if round == 1 {
            kept.answer = answer.kept();
        }
        (kept.rows, kept.digest) = (Some(count), Some(digest));
        kept.executions.push(large::execution(round, elapsed, reads, None));
        Ok(true)
    }

    /// The parallel streams, if any are wanted.
    fn in_parallel(&mut self) -> Result<(), Trouble> {
        let parallel = std::mem::take(&mut self.parallel);
        if parallel.is_empty() {
            return Ok(());
        }
        let streams = Streams {
            target: &self.target,
            clock: self.clock,
            limit: self.options.timeout,
            limit_sql: self.limit_sql(),
            seed: self.plan.setup.seed,
            patience: self.patience(),
            quiet: self.options.result.quiet,
            known: &self.cases,
        };
        let (streams, differ) = streams.run(&parallel)?;
        self.streams = streams;
        for case in self.cases.iter_mut().filter(|case| differ.contains(&case.name)) {
            case.result_changed = true;
        }
        Ok(())
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
        self.client = connect(&self.target, self.clock)?;
        self.limit_time()
    }

    /// Lets the server cancel what takes too long. A database that cannot executes it to its end.
    fn limit_time(&mut self) -> Result<(), Trouble> {
        let Some(sql) = self.limit_sql() else { return Ok(()) };
        let refused = |words: String| Trouble::new(Exit::Server, "the server refused --timeout").detail(words);
        self.client.rows(&sql).map(drop).map_err(refused)
    }

    /// How long a query is waited for. An embedded database has no time limit of its own: there it is exact.
    fn patience(&self) -> Nanos {
        let grace = if self.questions.time_limit.is_some() { GRACE } else { Nanos::ZERO };
        self.options.timeout.map_or(PATIENCE, |limit| limit + grace)
    }

    fn limit_sql(&self) -> Option<String> {
        let (limit, statement) = self.options.timeout.zip(self.questions.time_limit)?;
        Some(statement((limit.0 / 1_000_000).max(1)))
    }
}

/// What a database holds.
#[derive(Default)]
pub(super) struct Population {
    /// Rows of each table.
    pub(super) tables: BTreeMap<String, u64>,
    /// Answers to the workload's questions about them, by name.
    pub(super) answers: Vec<(String, String)>,
}

/// What a database holds: the rows must be as many as were loaded. A load that was killed has not written how many
/// these are.
pub(super) fn population(loaded: &LoadedTables, assignment: &Assignment, url: &str) -> Result<Population, Trouble> {
    let session_sql = assignment.spec.target.session_sql.iter().map(|sql| sql.reveal().to_owned()).collect();
    let target = plan::target(url, &ConnectOptions { session_sql, ..ConnectOptions::default() })?;
    let mut client = connect(&target, Clock::start())?;
    let LoadedTables { table: loaded, questions } = loaded;
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
    let mut answers = Vec::new();
    for (name, question) in questions {
        let answer = client.value(question);
        let cause = || format!("the tables of {} cannot be read on {database}", assignment.workload.name);
        answers.push((name.clone(), answer.map_err(|words| Trouble::new(Exit::Server, cause()).detail(words))?));
    }
    client.close();
    Ok(Population { tables, answers })
}
