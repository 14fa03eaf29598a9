//! The runs themselves: one connection, rounds in random order, and untimed queries around each run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_lab::{Server, Status, server};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::events;
use assay_process::interrupt;
use assay_process::terminal;
use assay_recipe::order;
use assay_record::{Case, Cold, QueryPlan};
use assay_run::client::{self, Client, Refused, text};
use assay_run::{failure, lab};
use assay_seam::{Cell, Nanos, Rows, ServerFacts};
use assay_spec::{CaseSpec, SqlSpec};
use assay_telemetry::{StatementQuestions, has_plan, is_pushed_down, read_plan};

use crate::commands::sql::large::{self, Collect, Collected, row_hash};

/// Everything that is needed to run the cases, and the results so far.
pub(super) struct Bench<'a> {
    spec: &'a SqlSpec,
    /// With the statements around them.
    described: Vec<CaseSpec>,
    quiet: bool,
    target: &'a Target,
    clock: Clock,
    seed: u64,
    client: Client,
    questions: StatementQuestions,
    /// For restarts before each run.
    server: Option<Server>,
    /// Preparation for each run.
    pub(super) cold: Option<Cold>,
    cases: Vec<Case>,
}

/// How it ended.
pub(super) enum CasesEnded {
    Complete,
    Interrupted,
    /// An error that concerns more than one case.
    Failed(Trouble),
}

/// Time limit of a statement.
const PATIENCE: Nanos = Nanos::from_secs(24 * 3600);
/// Time limit of a login.
const LOGIN: Nanos = Nanos::from_secs(60);
/// Time limit for a server to stop and to start.
const RESTART: Duration = Duration::from_secs(600);
/// Between two progress lines.
const SAY_EVERY: Duration = Duration::from_secs(5);

impl<'a> Bench<'a> {
    /// Connects, and finds out what the server supports.
    pub(super) fn open(
        spec: &'a SqlSpec,
        described: Vec<CaseSpec>,
        (url, target): (&str, &'a Target),
        (clock, seed): (Clock, u64),
        quiet: bool,
    ) -> Result<Bench<'a>, Trouble> {
        let server = if spec.cold { Some(server_of(url)?) } else { None };
        let client = connect(target, clock)?;
        let facts = client.server();
        let questions = assay_products::statement_questions(&facts.product, &facts.version);
        if spec.counters {
            has_counters(&questions)?;
        }
        let case = |case: &CaseSpec| Case {
            name: case.name.clone(),
            sql: case.sql.clone(),
            setup: case.setup.clone(),
            teardown: case.teardown.clone(),
            result: case.result.clone(),
            ..Case::default()
        };
        let cases: Vec<Case> = described.iter().map(case).collect();
        Ok(Bench { spec, described, quiet, target, clock, seed, client, questions, server, cold: None, cases })
    }

    /// Runs everything. `cleanup` always runs.
    pub(super) fn run(&mut self) -> CasesEnded {
        if let Err(trouble) = self.run_all(&self.spec.prepare) {
            return CasesEnded::Failed(trouble);
        }
        let ended = self.rounds();
        let cleaned = self.run_all(&self.spec.cleanup);
        match (ended, cleaned) {
            (CasesEnded::Complete, Err(trouble)) => CasesEnded::Failed(trouble),
            (ended, _) => ended,
        }
    }

    /// What the server reported about itself, the cases, and the scope of their counters.
    pub(super) fn finish(self) -> (ServerFacts, Vec<Case>, Option<String>) {
        let facts = self.client.server();
        self.client.close();
        (facts, self.cases, self.spec.counters.then(|| scope_of_counters(&self.questions)))
    }

    fn rounds(&mut self) -> CasesEnded {
        let warmup = self.spec.warmup_rounds();
        let mut said = Instant::now();
        for round in 0..warmup + self.spec.runs {
            let timed = round.checked_sub(warmup).map(|round| round as u32 + 1);
            if timed == Some(1) {
                events::tell(|| events::stage(0, 1, None, Duration::ZERO));
            }
            if said.elapsed() >= SAY_EVERY && !self.quiet {
                said = Instant::now();
                terminal::say(&match timed {
                    Some(number) => format!("round {number} of {}\n", self.spec.runs),
                    None => format!("warm-up {} of {warmup}\n", round + 1),
                });
            }
            for case in order(self.cases.len(), round as u32 + 1, self.seed) {
                if interrupt::control().is_stopped() {
                    return CasesEnded::Interrupted;
                }
                if self.cases[case].failure.is_some() {
                    continue;
                }
                if let Err(trouble) = self.one(case, timed) {
                    return CasesEnded::Failed(trouble);
                }
            }
        }
        for case in self.cases.iter_mut().filter(|case| case.failure.is_none()) {
            case.pushed_down = pushed_down(&mut self.client, &self.questions, &case.sql);
        }
        if self.spec.counters {
            for case in 0..self.cases.len() {
                if interrupt::control().is_stopped() {
                    return CasesEnded::Interrupted;
                }
                if let Err(trouble) = self.count(case) {
                    return CasesEnded::Failed(trouble);
                }
            }
        }
        CasesEnded::Complete
    }

    /// One run of a case. Errors are those that concern all cases; if the server refuses the case, that is its result.
    fn one(&mut self, case: usize, round: Option<u32>) -> Result<(), Trouble> {
        if self.server.is_some() {
            self.cool()?;
        }
        let described = self.described[case].clone();
        let ran = self.attempt(&described, case, round);
        match ran {
            Ok(()) => Ok(()),
            // Not the server's doing.
            Err(_) if interrupt::control().is_stopped() => Ok(()),
            Err(words) => {
                self.cases[case].failure = Some(words);
                // An aborted transaction would block the other cases.
                if self.client.is_open() {
                    let _ = run_words(&mut self.client, &described.teardown);
                }
                self.reconnect()
            }
        }
    }

    fn attempt(&mut self, described: &CaseSpec, case: usize, round: Option<u32>) -> Result<(), String> {
        run_words(&mut self.client, &described.setup)?;
        let plan = if self.spec.explain && round.is_some() {
            plan(&mut self.client, &self.questions, &mut self.cases[case])?
        } else {
            None
        };
        let found = large::execute::<Hashed>(&mut self.client, &described.sql, PATIENCE);
        let Collected { answer, elapsed, is_large, reads } = found.map_err(|(refused, _)| words_of(refused))?;
        let (count, digest) = (answer.rows, format!("{:016x}", answer.sum));
        run_words(&mut self.client, &described.teardown)?;
        let Some(round) = round else { return Ok(()) };
        let kept = &mut self.cases[case];
        let known = kept.rows.zip(kept.digest.as_ref());
        kept.result_changed |= known.is_some_and(|known| known != (count, &digest));
        (kept.rows, kept.digest) = (Some(count), Some(digest));
        kept.large_result |= is_large;
        kept.executions.push(large::execution(round, elapsed, reads, plan));
        Ok(())
    }

    /// Counts one more run of a case.
    fn count(&mut self, case: usize) -> Result<(), Trouble> {
        if self.cases[case].failure.is_some() {
            return Ok(());
        }
        match counted(&mut self.client, &self.questions, &self.described[case]) {
            Ok(counters) => self.cases[case].counters = counters,
            Err(words) => {
                warn_of_counters(&self.cases[case].name, &words);
                self.reconnect()?;
            }
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
        self.client = connect(self.target, self.clock)?;
        Ok(())
    }

    fn reconnect(&mut self) -> Result<(), Trouble> {
        self.client = connect(self.target, self.clock)?;
        Ok(())
    }

    fn run_all(&mut self, statements: &[String]) -> Result<(), Trouble> {
        run_words(&mut self.client, statements)
            .map_err(|words| Trouble::new(Exit::Server, "the server refused a statement").detail(words))
    }
}

fn run_words(client: &mut Client, statements: &[String]) -> Result<(), String> {
    for sql in statements {
        let rows = client.ask(sql, PATIENCE).map_err(|words| format!("{sql}: {words}"))?;
        client.reuse(rows);
    }
    Ok(())
}

/// The plan that the server would use now, as an index into the case's plans.
pub(in crate::commands) fn plan(
    client: &mut Client,
    questions: &StatementQuestions,
    case: &mut Case,
) -> Result<Option<u32>, String> {
    let Some(explain) = questions.explain.filter(|_| has_plan(&case.sql)) else { return Ok(None) };
    let rows = client.ask(&format!("{explain}{}", case.sql), PATIENCE)?;
    let read = read_plan(&rows);
    client.reuse(rows);
    if let Some(known) = case.plans.iter().position(|plan| plan.shape == read.shape) {
        return Ok(Some(known as u32));
    }
    let json = questions.explain_json.and_then(|explain| {
        let rows = client.ask(&format!("{explain}{}", case.sql), PATIENCE).ok()?;
        let lines: Vec<String> = (0..rows.len(0)).filter_map(|row| text(&rows, row, 0)).collect();
        Some(lines.join("\n"))
    });
    case.plans.push(QueryPlan { text: read.text, json, shape: read.shape });
    Ok(Some(case.plans.len() as u32 - 1))
}

/// Refuses `--counters` where a product has none.
pub(in crate::commands) fn has_counters(questions: &StatementQuestions) -> Result<(), Trouble> {
    if questions.counters.is_empty() {
        return Err(Trouble::usage(format!("no counters: {}", questions.no_counters)).hint("leave out --counters"));
    }
    Ok(())
}

/// Whose work counters count.
pub(in crate::commands) fn scope_of_counters(questions: &StatementQuestions) -> String {
    if questions.of_session { "session" } else { "database" }.to_owned()
}

pub(in crate::commands) fn warn_of_counters(case: &str, words: &str) {
    terminal::say(&format!("warning: no counters of {case}: {words}\n"));
}

/// By how much counters grew in one more run of a case, minus what reading them adds.
pub(in crate::commands) fn counted(
    client: &mut Client,
    questions: &StatementQuestions,
    case: &CaseSpec,
) -> Result<BTreeMap<String, i64>, String> {
    // Some servers count a transaction when it ends, so the statements around the case are counted, too. The first read
    // fills the server's caches for later ones.
    counters(client, questions)?;
    let first = counters(client, questions)?;
    let second = counters(client, questions)?;
    run_words(client, &case.setup)?;
    let rows = client.ask(&case.sql, PATIENCE)?;
    client.reuse(rows);
    run_words(client, &case.teardown)?;
    let third = counters(client, questions)?;
    let difference = |name: &String| {
        let at = |all: &BTreeMap<String, i64>| all.get(name).copied().unwrap_or(0);
        (at(&third) - at(&second)) - (at(&second) - at(&first))
    };
    Ok(third.keys().map(|name| (name.clone(), difference(name))).filter(|(_, by)| *by != 0).collect())
}

fn counters(client: &mut Client, questions: &StatementQuestions) -> Result<BTreeMap<String, i64>, String> {
    let mut found = BTreeMap::new();
    for sql in questions.counters {
        let rows = client.ask(sql, PATIENCE)?;
        found.clear();
        for row in 0..rows.len(0) {
            let value = text(&rows, row, 1).and_then(|value| value.parse().ok());
            if let (Some(name), Some(value)) = (text(&rows, row, 0), value) {
                found.insert(name, value);
            }
        }
        client.reuse(rows);
    }
    Ok(found)
}

pub(in crate::commands) fn connect(target: &Target, clock: Clock) -> Result<Client, Trouble> {
    Client::open_as_session(target, clock, LOGIN, Some(client::USER))
        .map_err(|error| failure::cannot_connect(target, &error))
}

/// Whether another server executes all of this statement; see `is_pushed_down`.
pub(in crate::commands) fn pushed_down(client: &mut Client, questions: &StatementQuestions, sql: &str) -> Option<bool> {
    let explain = questions.explain_remote.filter(|_| has_plan(sql))?;
    let rows = client.ask(&format!("{explain}{sql}"), LOGIN).ok()?;
    let found = is_pushed_down(&rows);
    client.reuse(rows);
    found
}

/// The lab's running server with this URL.
pub(in crate::commands) fn server_of(url: &str) -> Result<Server, Trouble> {
    let home = assay_products::home();
    let leads_to = |server: &Server| {
        let own = server.url("");
        let place = own.split_once('@').map_or("", |(_, place)| place);
        let place = place.trim_end_matches('/');
        server.product().is_some() && url.contains(&format!("@{place}/"))
    };
    let running = |server: &Server| matches!(server.status(), Status::Running | Status::Stale);
    server::all(&home).into_iter().find(|server| running(server) && leads_to(server)).ok_or_else(|| {
        Trouble::usage("--cold: this server was not started by `assay server`, so it cannot be restarted")
            .hint("start one: DB=$(assay server start postgres --prepare 'tpcc --warehouses 1')")
    })
}

/// Why a case has no rows, and the hint if there is one.
fn words_of(refused: Refused) -> String {
    match refused {
        Refused::Server(error) => format!("{}{}", error.message, error.hint_words()),
        Refused::Lost(reason) => reason,
    }
}

/// Number of rows, and a hash that does not depend on their order: the sum of the hashes of rows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hashed {
    rows: u64,
    sum: u64,
}

impl Collect for Hashed {
    fn add(&mut self, rows: &Rows) {
        for set in 0..rows.sets() {
            let columns = rows.columns(set);
            for row in 0..rows.len(set) {
                let cells = (0..columns).map(|column| match rows.cell(set, row, column) {
                    Some(Cell::Text(text)) => Some(text.to_vec()),
                    Some(Cell::Int(number)) => Some(number.to_string().into_bytes()),
                    Some(Cell::Double(number)) => Some(number.to_string().into_bytes()),
                    Some(Cell::Null) | None => None,
                });
                self.sum = self.sum.wrapping_add(row_hash(&(set as u64).to_le_bytes(), cells));
                self.rows += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[[Option<&str>; 2]]) -> Rows {
        let mut rows = Rows::default();
        rows.begin_set(2);
        cells.iter().flatten().for_each(|cell| match cell {
            Some(cell) => rows.push_text(cell.as_bytes()).unwrap(),
            None => rows.push_null(),
        });
        rows
    }

    #[test]
    fn a_digest_does_not_depend_on_the_order_of_rows_and_on_nothing_less() {
        let all = [[Some("a"), Some("b")], [Some("c"), None]];
        let digest = |parts: &[&[[Option<&str>; 2]]]| {
            let mut found = Hashed::default();
            parts.iter().for_each(|part| found.add(&rows(part)));
            found
        };
        let hash = digest(&[&all]);
        assert_eq!((hash.rows, &hash), (2, &digest(&[&[all[1]], &[all[0]]])));
        for other in [
            [[Some("ab"), Some("")], [Some("c"), None]],
            [[Some("b"), Some("a")], [Some("c"), None]],
            [[Some("a"), Some("b")], [Some("c"), Some("")]],
            [[Some("a"), Some("b")], [Some("a"), Some("b")]],
        ] {
            assert_ne!(digest(&[&other]), hash);
        }
    }
}
