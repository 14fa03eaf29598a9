//! The queries once more, in parallel: each stream executes all of them on a connection of its own, in an order of its
//! own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{interrupt, terminal};
use assay_recipe::order;
use assay_record::{Case, QueryStream, StreamQuery, is_same_digest};
use assay_run::client::Client;
use assay_script::NamedQuery;
use assay_seam::Nanos;

use crate::commands::olap::answer::{Answer, refusal, too_late};
use crate::commands::sql::bench::connect;
use crate::commands::sql::large::{self, Collected};

/// What all streams share.
pub(super) struct Streams<'a> {
    pub(super) target: &'a Target,
    pub(super) clock: Clock,
    /// The time limit of a query, and the statement by which the server keeps it, if it can.
    pub(super) limit: Option<Nanos>,
    pub(super) limit_sql: Option<String>,
    pub(super) seed: u64,
    /// Limit for a statement.
    pub(super) patience: Nanos,
    pub(super) quiet: bool,
    /// Results known from before: a query with the same text must return the same rows.
    pub(super) known: &'a [Case],
}

/// A stream that has ended.
struct Ended {
    start: Nanos,
    end: Nanos,
    queries: Vec<StreamQuery>,
    /// Names of queries that returned other rows than before.
    differ: Vec<String>,
}

impl Streams<'_> {
    /// Executes the queries of each stream, all streams at once. Also returns the names of queries that returned other
    /// rows than before.
    pub(super) fn run(&self, queries: &[Vec<NamedQuery>]) -> Result<(Vec<QueryStream>, Vec<String>), Trouble> {
        // Nobody starts before everybody is connected.
        let (barrier, is_given_up) = (Barrier::new(queries.len()), AtomicBool::new(false));
        let (barrier, is_given_up) = (&barrier, &is_given_up);
        let ended: Result<Vec<Ended>, Trouble> = thread::scope(|scope| {
            let running: Vec<_> = (1..)
                .zip(queries)
                .map(|(number, queries)| scope.spawn(move || self.stream(number, queries, barrier, is_given_up)))
                .collect();
            running.into_iter().map(|stream| stream.join().expect("a stream does not panic")).collect()
        });
        let ended = ended?;
        let first = ended.iter().map(|stream| stream.start).min().unwrap_or(Nanos::ZERO);
        let differ = ended.iter().flat_map(|stream| stream.differ.clone()).collect();
        let stream = |one: Ended| QueryStream {
            start_ns: (one.start - first).0,
            end_ns: (one.end - first).0,
            queries: one.queries,
        };
        Ok((ended.into_iter().map(stream).collect(), differ))
    }

    fn stream(
        &self,
        number: u32,
        queries: &[NamedQuery],
        barrier: &Barrier,
        is_given_up: &AtomicBool,
    ) -> Result<Ended, Trouble> {
        let client = self.open();
        if client.is_err() {
            is_given_up.store(true, Ordering::Relaxed);
        }
        barrier.wait();
        let mut client = client?;
        let start = self.clock.now();
        let mut ended = Ended { start, end: start, queries: Vec::new(), differ: Vec::new() };
        // Round 1 is the order of the queries that are executed one after the other.
        for at in order(queries.len(), number + 1, self.seed) {
            if interrupt::control().is_stopped() || is_given_up.load(Ordering::Relaxed) {
                return Ok(ended);
            }
            let query = &queries[at];
            let found = large::execute::<Answer>(&mut client, &query.text, self.patience);
            ended.end = self.clock.now();
            let (elapsed, failure, timed_out) = match found {
                Ok(Collected { answer, elapsed, .. }) => {
                    if self.differs(query, &answer) {
                        ended.differ.push(query.name.clone());
                    }
                    let late = too_late(elapsed, self.limit);
                    let timed_out = late.is_some();
                    (elapsed, late, timed_out)
                }
                Err(_) if interrupt::control().is_stopped() => return Ok(ended),
                Err((refused, elapsed)) => {
                    let (words, timed_out) = refusal(refused, elapsed, self.limit);
                    (elapsed, Some(words), timed_out)
                }
            };
            ended.queries.push(StreamQuery { name: query.name.clone(), elapsed_ns: elapsed.0, failure, timed_out });
            if !client.is_open() {
                client = self.open()?;
            }
        }
        if !self.quiet {
            let length = assay_report::ms(Some((ended.end - ended.start).0));
            terminal::say(&format!("stream {number}: {} queries, {length} ms\n", ended.queries.len()));
        }
        Ok(ended)
    }

    fn open(&self) -> Result<Client, Trouble> {
        let mut client = connect(self.target, self.clock)?;
        let refused = |words: String| Trouble::new(Exit::Server, "the server refused --timeout").detail(words);
        self.limit_sql.iter().try_for_each(|sql| client.rows(sql).map(drop).map_err(refused))?;
        Ok(client)
    }

    fn differs(&self, query: &NamedQuery, answer: &Answer) -> bool {
        let known = self.known.iter().find(|case| case.name == query.name && case.sql == query.text);
        let known = known.and_then(|case| Some((case.rows?, case.digest.clone()?)));
        known.is_some_and(|(rows, known)| rows != answer.rows() || !is_same_digest(&known, &answer.digest()))
    }
}
