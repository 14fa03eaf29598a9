//! `assay sql`: times statements against each other, as hyperfine does for commands.
//!
//! Each case runs once per round, in an order drawn from the seed, on one connection. Only the statement itself is
//! timed, from sending it to its last row. The record is like that of a run, with the cases as its transaction types.

pub(super) mod bench;
pub(super) mod large;

use std::path::Path;

use assay_io::clock::Clock;
use assay_recipe::CaseFile;
use assay_record as record;
use assay_record::{Histogram, Latencies, Record, Status, Time};
use assay_seam::ConnectOptions;
use assay_spec::{CaseSpec, Concealed, OutputSpec, SqlSpec};

use crate::command_line::SqlOptions;
use assay_process::diagnostics::{Exit, Trouble, nearest};
use assay_process::interrupt;
use assay_process::scratch::Scratch;
use assay_process::terminal;
use assay_run::{identity, live, plan, record_of, render, server_settings};
use bench::{Bench, CasesEnded};

/// What the command line asks for. Reads files with cases, and a URL on stdin.
pub fn spec(options: &SqlOptions) -> Result<SqlSpec, Trouble> {
    let url = match options.db.as_deref() {
        Some("-") => Some(url_from_stdin()?),
        url => url.map(str::to_owned),
    };
    Ok(SqlSpec {
        url: url.map(Concealed::from),
        runs: options.runs,
        warmup: options.warmup,
        cold: options.cold,
        base: options.base.clone(),
        same_result: options.same_result,
        explain: options.explain,
        counters: options.counters,
        setup: options.setup.clone(),
        teardown: options.teardown.clone(),
        session_sql: options.session_sql.iter().map(|sql| Concealed::from(sql.as_str())).collect(),
        seed: options.result.seed,
        tags: options.result.tags.iter().cloned().collect(),
        ..cases(&options.statements)?
    })
}

/// Times the cases, prints the result, and writes a record. `words`: the command line.
pub fn run(spec: &SqlSpec, output: &OutputSpec, words: &[String]) -> Result<Exit, Trouble> {
    live::may_write(output.record.as_deref(), output.force)?;
    let all = spec.all_cases();
    names_differ(&all)?;
    let base = base(spec)?;
    let scratch = if spec.url.is_none() { Some(Scratch::new()?) } else { None };
    let url = match (&spec.url, &scratch) {
        (Some(url), _) => url.reveal().to_owned(),
        (None, Some(scratch)) => scratch.url(),
        (None, None) => unreachable!("made when there is no URL"),
    };
    let session_sql: Vec<String> = spec.session_sql.iter().map(|sql| sql.reveal().to_owned()).collect();
    let connect = ConnectOptions { session_sql, ..ConnectOptions::default() };
    let target = plan::target(&url, &connect)?;
    let seed = spec.seed.unwrap_or_else(plan::random_seed);
    let started = Time::from(std::time::SystemTime::now());
    let clock = Clock::start();
    let begun = clock.now();
    let mut bench = Bench::open(spec, all, (&url, &target), (clock, seed), output.quiet)?;
    let ended = bench.run();
    let cold = bench.cold;
    let (facts, cases, counters_of) = bench.finish();
    if let (CasesEnded::Failed(trouble), true) = (&ended, cases.iter().all(|case| case.executions.is_empty())) {
        return Err(trouble.clone());
    }
    if matches!(ended, CasesEnded::Interrupted) && cases.iter().all(|case| case.executions.is_empty()) {
        return Err(Trouble::new(interrupt::exit(), "interrupted before anything was measured"));
    }
    let elapsed = clock.now() - begun;
    let place = record_of::place(&target);
    let settings = server_settings::read(&target, place);
    let (product, version, tls) = (facts.product, facts.version, facts.tls);
    let mut server = record::RecordedServer { product, version, tls, place, ..record::RecordedServer::default() };
    settings.into_record(&mut server);
    let stage = stage(&cases, started);
    let failures = cases.iter().filter_map(|case| Some(format!("{}: {}", case.name, case.failure.as_ref()?)));
    let failures: Vec<String> = failures.collect();
    let (status, failure) = match &ended {
        CasesEnded::Interrupted => (Status::Interrupted, None),
        CasesEnded::Failed(trouble) => (Status::Failed, Some(trouble.cause.clone())),
        CasesEnded::Complete if !failures.is_empty() => (Status::Failed, Some(failures.join("\n"))),
        CasesEnded::Complete => (Status::Complete, None),
    };
    let mut record = Record {
        status,
        failure,
        started,
        elapsed_ns: elapsed.0,
        manifest: record::Manifest {
            command: words.to_vec(),
            workload: "sql".to_owned(),
            seed,
            sessions: vec![1],
            limit: record::Limit { time_ns: None, transactions: Some(spec.runs * cases.len() as u64) },
            workers: 1,
            session_sql: spec.session_sql.iter().map(Concealed::shown).collect(),
            targets: vec![target.database.display()],
            ..record::Manifest::default()
        },
        environment: record::Environment { servers: vec![server], ..record_of::this_machine() },
        types: cases.iter().map(|case| case.name.clone()).collect(),
        stages: vec![stage],
        tags: spec.tags.clone(),
        cases: Some(record::Cases {
            base,
            warmup: spec.warmup_rounds().try_into().unwrap_or(u32::MAX),
            cold,
            counters_of,
            suite: None,
            cases,
        }),
        ..record_of::begun_now()
    };
    identity::write_down(&mut record);
    conclude(output, &record, ended)
}

/// The first line of stdin. Unlike an argument, nobody else can read it.
fn url_from_stdin() -> Result<String, Trouble> {
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| Trouble::environment(format!("--db -: cannot read stdin: {error}")))?;
    match line.trim() {
        "" => {
            Err(Trouble::usage("--db -: there is no URL on stdin").hint("such as: echo \"$URL\" | assay sql --db - …"))
        }
        url => Ok(url.to_owned()),
    }
}

/// Prints the result, writes the record, and returns how it went.
fn conclude(output: &OutputSpec, record: &Record, ended: CasesEnded) -> Result<Exit, Trouble> {
    terminal::result(&render::result(record, output.format, terminal::view(false)))?;
    if let (Some(path), false) = (live::kept(record, output)?, output.quiet) {
        terminal::say(&format!("record: {}\n", path.display()));
    }
    let found = assay_report::findings(record).cases.expect("it was put there");
    match ended {
        CasesEnded::Failed(trouble) => Err(trouble),
        CasesEnded::Interrupted => Ok(interrupt::exit()),
        CasesEnded::Complete => {
            let failed: Vec<&str> =
                found.cases.iter().filter(|case| case.failure.is_some()).map(|case| case.name.as_str()).collect();
            if !failed.is_empty() {
                let what = if failed.len() == 1 { "case" } else { "cases" };
                let why = found.cases.iter().find_map(|case| case.failure.as_deref()).unwrap_or_default();
                return Err(Trouble::new(Exit::Server, format!("the server refused {what} {}", failed.join(", ")))
                    .detail(why)
                    .hint("correct the statement, or see whether its tables and rights are there"));
            }
            if !found.disagreements.is_empty() {
                return Err(Trouble::new(Exit::Difference, "cases that should return the same rows do not"));
            }
            Ok(Exit::Success)
        }
    }
}

/// The cases from the command line and its files, with the statements around them.
fn cases(statements: &[String]) -> Result<SqlSpec, Trouble> {
    let mut all = SqlSpec::default();
    let several = statements.len() > 1;
    for (word, number) in statements.iter().zip(1..) {
        if Path::new(word).extension().is_some_and(|ending| ending == "toml") {
            let text = assay_record::read_text(word.as_ref(), assay_record::WRITTEN_BYTES_MAX)
                .map_err(|error| Trouble::environment(format!("cannot read {word}: {error}")))?;
            let file = CaseFile::read(&text).map_err(|error| {
                let trouble = Trouble::usage(format!("cannot use {word}"));
                let place = error.place.map_or(String::new(), |(line, column)| format!("{word}:{line}:{column}: "));
                let trouble = trouble.detail(format!("{place}{error}"));
                error.hint.iter().cloned().fold(trouble, Trouble::hint)
            })?;
            all.prepare.extend(file.prepare.0);
            all.cleanup.extend(file.cleanup.0);
            all.cases.extend(file.case.into_iter().map(assay_experiment::spec_of_case));
        } else {
            let name = if several { format!("sql{number}") } else { "sql".to_owned() };
            let is_file = word.ends_with(".sql") && !word.contains(char::is_whitespace);
            let sql = match is_file {
                true => assay_record::read_text(word.as_ref(), assay_record::LISTED_BYTES_MAX)
                    .map_err(|error| Trouble::environment(format!("cannot read {word}")).detail(error.to_string()))?,
                false => word.clone(),
            };
            all.cases.push(CaseSpec { name, sql, ..CaseSpec::default() });
        }
    }
    Ok(all)
}

fn names_differ(cases: &[CaseSpec]) -> Result<(), Trouble> {
    if let Some(empty) = cases.iter().find(|case| case.sql.trim().is_empty()) {
        return Err(Trouble::usage(format!("the statement of {} is empty", empty.name))
            .hint("write statements or files with statements: `assay sql --db URL 'select 1' other.sql`"));
    }
    let mut names: Vec<&String> = cases.iter().map(|case| &case.name).collect();
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(Trouble::usage(format!("two cases are named {}", pair[0])).hint("give each a name of its own"))
        }
        None => Ok(()),
    }
}

/// The case by which the others are divided; `None`: the fastest.
fn base(spec: &SqlSpec) -> Result<Option<String>, Trouble> {
    let names = || spec.cases.iter().map(|case| case.name.as_str());
    match spec.base.as_deref() {
        None => Ok(names().next().map(str::to_owned)),
        Some("fastest") => Ok(None),
        Some(name) if names().any(|known| known == name) => Ok(Some(name.to_owned())),
        Some(name) => {
            let trouble = Trouble::usage(format!("--base {name}: there is no such case"));
            Err(match nearest(name, names()) {
                Some(near) => trouble.hint(format!("did you mean {near}?")),
                None => trouble.hint(format!("there are: {}", names().collect::<Vec<_>>().join(", "))),
            })
        }
    }
}

/// The cases as transactions, for comparisons.
pub(super) fn stage(cases: &[record::Case], started: Time) -> record::Stage {
    let times = |case: &record::Case| -> Vec<u64> { case.executions.iter().map(|one| one.elapsed_ns).collect() };
    let tally = |case: &record::Case| {
        let found = latencies(&times(case));
        record::TransactionTally {
            name: case.name.clone(),
            count: found.count,
            failed: u64::from(case.failure.is_some()),
            response: found.clone(),
            service: found,
            ..record::TransactionTally::default()
        }
    };
    let all: Vec<u64> = cases.iter().flat_map(times).collect();
    let transactions: Vec<record::TransactionTally> = cases.iter().map(tally).collect();
    let statements = record::StatementTally { count: all.len() as u64, service: latencies(&all) };
    let finished = transactions.iter().map(|one| one.count).sum();
    record::Stage {
        sessions: 1,
        started,
        measured_ns: all.iter().sum(),
        total: record::Tally {
            due: finished + transactions.iter().map(|one| one.failed).sum::<u64>(),
            transactions,
            statements: record::ByClass { read: statements, ..record::ByClass::default() },
            ..record::Tally::default()
        },
        session_transactions_min: finished,
        session_transactions_max: finished,
        generator: record::Generator { workers: 1, ..record::Generator::default() },
        ..record::Stage::default()
    }
}

fn latencies(times: &[u64]) -> Latencies {
    let mut histogram = Histogram::<u64>::new(3).expect("3 digits are allowed");
    times.iter().for_each(|time| histogram.record(*time).expect("it grows as it needs"));
    let (min_ns, max_ns) = (times.iter().copied().min().unwrap_or(0), times.iter().copied().max().unwrap_or(0));
    let sum_ns = times.iter().map(|time| u128::from(*time)).sum();
    Latencies::of(times.len() as u64, (min_ns, max_ns), sum_ns, (!times.is_empty()).then_some(&histogram))
}
