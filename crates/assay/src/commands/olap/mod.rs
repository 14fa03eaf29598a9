//! `assay olap`: executes the queries of an analytical workload on one or more databases.
//!
//! Every database is checked before the first query runs: one whose load did not finish would look fast. Each database
//! has a record of its own, like that of `assay sql`, with the queries as its cases; several databases are then
//! compared, by their times and by the rows that they returned.

mod answer;
mod streams;
mod suite;

use assay_options::OptionValue;
use assay_process::diagnostics::{Exit, Trouble, nearest};
use assay_process::{interrupt, terminal};
use assay_record::{self as record, Cases, QueryStream, Record, Status, StreamQuery};
use assay_run::assignment::Assignment;
use assay_run::plan::{self, ProcessOptions};
use assay_run::{exec, identity, library, live, record_of, render, server_settings};
use assay_script::NamedQuery;
use assay_spec::{Format, OutputSpec};

use crate::command_line::OlapOptions;
use crate::commands::sql::stage;
use suite::{Declared, Ended, Population, Suite, population};

/// Executes the queries, prints the results, and writes a record for each database.
pub fn run(assignment: &Assignment, options: &OlapOptions) -> Result<Exit, Trouble> {
    let (output, urls) = (options.result.output(), assignment.urls());
    if urls.is_empty() {
        let examples = assay_products::examples();
        return Err(Trouble::usage("olap needs a database: --db URL").hint(format!("use --db {}", examples.join(", "))));
    }
    if output.format == Format::Csv && urls.len() > 1 {
        return Err(Trouble::usage("--format csv is for one database").hint("use --format json, or one --db"));
    }
    if options.timeout.is_some_and(|limit| limit.0 == 0) {
        return Err(Trouble::usage("--timeout 0s: nothing would have the time to run").hint("leave it out: no limit"));
    }
    let path = |number: usize| match &output.record {
        Some(path) if number > 0 => Some(exec::numbered(path, number as u64 + 1)),
        path => path.clone(),
    };
    for number in 0..urls.len() {
        live::may_write(path(number).as_deref(), output.force)?;
    }
    let mut seeded = assignment.clone();
    seeded.spec.generator.seed.get_or_insert_with(plan::random_seed);
    // All of them are checked before the first query runs.
    let mut suites = Vec::new();
    for url in &urls {
        suites.push(Suite::open(declared(&seeded, url, options)?, url, &seeded, options)?);
    }
    let mut records = Vec::new();
    for (number, suite) in suites.into_iter().enumerate() {
        let (record, ended) = on_database(suite, options);
        if record.cases.iter().flat_map(|cases| &cases.cases).all(|case| case.rows.is_none() && case.failure.is_none())
        {
            return Err(match ended {
                Ended::Failed(trouble) => trouble,
                _ => Trouble::new(interrupt::exit(), "interrupted before anything was measured"),
            });
        }
        let output = OutputSpec { record: path(number), ..output.clone() };
        if urls.len() == 1 || output.format == Format::Text {
            terminal::result(&render::result(&record, output.format, terminal::view(false)))?;
        }
        let path = live::kept(&record, &output)?;
        let name = path.as_ref().map_or_else(|| format!("record {}", number + 1), |path| path.display().to_string());
        if let (Some(path), false) = (path, output.quiet) {
            terminal::say(&format!("record: {}\n", path.display()));
        }
        records.push((name, record));
        match ended {
            Ended::Complete => {}
            Ended::Interrupted => return Ok(interrupt::exit()),
            Ended::Failed(trouble) => return Err(trouble),
        }
    }
    conclude(&records, &output)
}

fn declared(assignment: &Assignment, url: &str, options: &OlapOptions) -> Result<Declared, Trouble> {
    let process = ProcessOptions { quiet: true, ..ProcessOptions::default() };
    let plan = plan::of_queries(assignment, &process, &[url.to_owned()])?;
    let name = &assignment.workload.name;
    let of_stream = |number: u64, held: &[String]| {
        let mut setup = plan.setup.clone();
        setup.options.push(("stream".to_owned(), OptionValue::Number(number as f64)));
        setup.options.push(("loaded".to_owned(), OptionValue::List(held.to_vec())));
        let declared = plan.program.queries(&setup);
        declared.map_err(|error| library::script_trouble(format!("queries() of workload {name} failed"), &error))
    };
    let found = of_stream(0, &[])?;
    if found.queries.is_empty() {
        return Err(Trouble::new(Exit::Workload, format!("queries() of workload {name} declared no query"))
            .hint("call assay.query{ name = \"Q1\", text = \"SELECT …\" } in it: see docs/lua-api.md"));
    }
    let known = || found.queries.iter().map(|query| query.name.as_str());
    if let Some(wanted) = options.queries.iter().find(|wanted| known().all(|name| name != *wanted)) {
        let trouble = Trouble::usage(format!("--query {wanted}: there is no such query"));
        return Err(match nearest(wanted, known()) {
            Some(near) => trouble.hint(format!("did you mean {near}?")),
            None => trouble.hint(format!("there are: {}", known().collect::<Vec<_>>().join(", "))),
        });
    }
    // What the queries are depends on what the tables hold.
    let Population { tables, answers } = match &found.loaded {
        Some(loaded) => population(loaded, assignment, url)?,
        None => Population::default(),
    };
    let rows = tables.iter().map(|(table, rows)| format!("{table}={rows}"));
    let held: Vec<String> = rows.chain(answers.iter().map(|(name, answer)| format!("{name}={answer}"))).collect();
    let found = of_stream(0, &held)?;
    let is_wanted = |query: &NamedQuery| options.queries.is_empty() || options.queries.contains(&query.name);
    let wanted = |all: Vec<NamedQuery>| -> Vec<NamedQuery> { all.into_iter().filter(is_wanted).collect() };
    let streams = (1..=options.streams).map(|number| Ok(wanted(of_stream(number, &held)?.queries)));
    let streams = streams.collect::<Result<Vec<_>, Trouble>>()?;
    let all = found.queries.len();
    let queries = wanted(found.queries);
    let scale = found.scale.filter(|_| queries.len() == all);
    Ok(Declared { queries, tables, found: found.found, scale, streams, plan })
}

/// Everything measured on one database.
fn on_database(mut suite: Suite<'_>, options: &OlapOptions) -> (Record, Ended) {
    let mut record = suite.record();
    let begun = suite.now();
    let ended = suite.run();
    record.elapsed_ns = (suite.now() - begun).0;
    let place = record_of::place(suite.target());
    let settings = server_settings::read(suite.target(), place);
    let facts = suite.server();
    let (product, version, tls) = (facts.product, facts.version, facts.tls);
    let mut server = record::RecordedServer { product, version, tls, place, ..record::RecordedServer::default() };
    settings.into_record(&mut server);
    record.environment.servers = vec![server];
    let cases = suite.finish();
    // A query that took too long is a result.
    let refused = cases.cases.iter().filter(|case| !case.timed_out);
    let failures = refused.filter_map(|case| Some(format!("{}: {}", case.name, case.failure.as_ref()?)));
    let failures: Vec<String> = failures.chain(refused_in_streams(&cases)).collect();
    (record.status, record.failure) = match &ended {
        Ended::Interrupted => (Status::Interrupted, None),
        Ended::Failed(trouble) => (Status::Failed, Some(trouble.cause.clone())),
        Ended::Complete if !failures.is_empty() => (Status::Failed, Some(failures.join("\n"))),
        Ended::Complete => (Status::Complete, None),
    };
    record.types = cases.cases.iter().map(|case| case.name.clone()).collect();
    record.stages = vec![stage(&cases.cases, record.started)];
    record.manifest.limit =
        record::Limit { time_ns: None, transactions: Some(options.runs.saturating_mul(cases.cases.len() as u64)) };
    record.cases = Some(cases);
    identity::write_down(&mut record);
    (record, ended)
}

/// Compares several databases, and returns how it went.
fn conclude(records: &[(String, Record)], output: &OutputSpec) -> Result<Exit, Trouble> {
    let found = records.iter().map(|(name, record)| (name.clone(), assay_report::findings(record)));
    let report = assay_report::report(found.collect());
    let compared = assay_report::suites(&report);
    if let Some(compared) = &compared {
        terminal::result(&match output.format {
            Format::Json => assay_report::report_json(&report, &[]),
            _ => format!("\n{}", assay_report::suites_text(compared, terminal::view(false).width)),
        })?;
    }
    let differs = compared.is_some_and(|found| !found.disagreements.is_empty() || !found.tables.is_empty());
    if differs {
        return Err(Trouble::new(Exit::Difference, "databases that should return the same rows do not"));
    }
    let cases = records.iter().flat_map(|(_, record)| record.cases.iter().flat_map(|cases| &cases.cases));
    let failed: Vec<&str> =
        cases.filter(|case| case.failure.is_some() && !case.timed_out).map(|case| case.name.as_str()).collect();
    if !failed.is_empty() {
        let what = if failed.len() == 1 { "query" } else { "queries" };
        let mut cases = records.iter().flat_map(|(_, record)| record.cases.iter().flat_map(|cases| &cases.cases));
        let why = cases.find_map(|case| case.failure.as_deref().filter(|_| !case.timed_out)).unwrap_or_default();
        return Err(Trouble::new(Exit::Server, format!("the server refused {what} {}", failed.join(", ")))
            .detail(why)
            .hint("see whether the tables are loaded (assay prepare) and the query suits this product"));
    }
    let cases = records.iter().filter_map(|(_, record)| record.cases.as_ref());
    if let Some(refused) = cases.flat_map(refused_in_streams).next() {
        return Err(Trouble::new(Exit::Server, "the server refused a query of a stream").detail(refused));
    }
    Ok(Exit::Success)
}

/// What was refused in parallel streams; a query that took too long is a result.
fn refused_in_streams(cases: &Cases) -> Vec<String> {
    let streams = cases.suite.iter().flat_map(|suite| &suite.streams).zip(1..);
    let refused = |(stream, number): (&QueryStream, u32)| {
        let refused = stream.queries.iter().filter(|query| !query.timed_out);
        let words = |query: &StreamQuery| Some(format!("{}, stream {number}: {}", query.name, query.failure.as_ref()?));
        refused.filter_map(words).collect::<Vec<_>>()
    };
    streams.flat_map(refused).collect()
}
