//! The final report, for people: readable without colour, at most 100 columns, units in the heads.
//!
//! Formats what `findings` made and computes nothing. A run of several stages is a table of them, then the details of
//! the last one; every stage's details are in the JSON.

use assay_record::{Arrival, Load, OptionValue, Place, Status, Terminals};
use serde::Serialize;

use crate::audit::{CounterFindings, RateFindings, RuleFindings, RuleVerdict, Unit};
use crate::cells::{NONE, Table, clean, count, figure, ms, percent, seconds, wrap};
use crate::findings::{
    ErrorFindings, Findings, GeneratorFindings, LatencyFindings, StageFindings, TallyFindings, TypeFindings,
};
use crate::throughput::SteadyFindings;
use crate::warning::{Advice, Warning};

/// Between facts in one line.
pub(crate) const DOT: &str = " · ";
const NAME_WIDTH: usize = 24;
const RULE_WIDTH: usize = 36;
const FACT_WIDTH: usize = 80;
const MESSAGE_WIDTH: usize = 52;
const FAILURE_LINES_MAX: usize = 40;
/// Of one run; a made-up record could have millions of stages.
const WARNINGS_MAX: usize = 200;
/// With the same advice.
const CAUSES_MAX: usize = 12;

/// The final report.
pub fn text(findings: &Findings) -> String {
    let mut text = head(findings);
    if let [_, _, ..] = findings.stages[..] {
        text += &format!("\n{}", ladder(&findings.stages));
    }
    if let Some(stage) = findings.stages.last() {
        text += &details(stage, findings);
    }
    if !findings.errors.is_empty() {
        text += &format!("\n{}", errors(&findings.errors));
    }
    for (causes, hint) in warnings_by_hint([("", findings)]) {
        text.push('\n');
        for cause in causes {
            text += &wrap("warning: ", cause.split(' '), " ");
        }
        if !hint.is_empty() {
            text += &wrap("  hint: ", hint.split(' '), " ");
        }
    }
    text
}

fn head(findings: &Findings) -> String {
    let sessions: Vec<String> = findings.stages.iter().map(|stage| count(stage.sessions.into())).collect();
    let sessions = match sessions[..] {
        [] => "no sessions".into(),
        [ref one] if one == "1" => "1 session".into(),
        _ => format!("{} sessions", sessions.join(", ")),
    };
    let mut facts = vec![clean(&findings.workload, FACT_WIDTH), servers(findings), sessions, load(findings)];
    facts.extend(findings.limit.time_ns.map(seconds));
    facts.extend(findings.limit.transactions.map(|most| format!("{} transactions", count(most))));
    if findings.warmup_ns > 0 {
        facts.push(format!("after {} of warm-up", seconds(findings.warmup_ns)));
    }
    facts.push(format!("seed {}", findings.seed));
    facts.extend(findings.distribution.as_ref().map(|name| format!("{} rows", clean(name, NAME_WIDTH))));
    let mut text = wrap("", facts, DOT);
    let took = seconds(findings.elapsed_ns);
    let ended = match findings.status {
        Status::Running => format!("not finished, {took} recorded"),
        Status::Complete => format!("complete in {took}"),
        Status::Interrupted => format!("interrupted after {took}"),
        Status::Failed => format!("failed after {took}"),
    };
    text += &wrap("", [ended, format!("started {}", findings.started), clean(&findings.tool, NAME_WIDTH)], DOT);
    if !findings.options.is_empty() {
        let option =
            |(name, value): (&String, &OptionValue)| format!("{}={}", clean(name, NAME_WIDTH), option_value(value));
        text += &wrap("options: ", findings.options.iter().map(option), ", ");
    }
    if let Some(failure) = &findings.failure {
        text.push('\n');
        for (number, line) in failure.lines().take(FAILURE_LINES_MAX).enumerate() {
            text += &wrap(if number == 0 { "error: " } else { "  " }, clean(line, 2000).split(' '), " ");
        }
    }
    text
}

/// `PostgreSQL 15.14`, or with several targets how many, since a table of them follows.
fn servers(findings: &Findings) -> String {
    match &findings.targets[..] {
        [target] if target.product.is_empty() => clean(&target.url, FACT_WIDTH),
        [target] => {
            let encrypted = target.tls.as_ref().map(|tls| format!(" ({})", clean(tls, 40))).unwrap_or_default();
            format!("{} {}{encrypted}", clean(&target.product, NAME_WIDTH), clean(&target.version, 40))
        }
        targets => format!("{} servers", targets.len()),
    }
}

pub(crate) fn load(findings: &Findings) -> String {
    if let Some(Terminals { number, think_scale }) = findings.terminals {
        let scale =
            if think_scale == 1.0 { String::new() } else { format!(", think times × {}", figure(think_scale)) };
        return format!("shared by {} terminals{scale}", count(number.into()));
    }
    match &findings.load {
        Load::Closed => "closed loop".into(),
        Load::Open { rate_per_s, arrival, .. } => {
            let arrival = match arrival {
                Arrival::Constant => "constant",
                Arrival::Poisson => "poisson",
            };
            format!("{arrival} {} tx/s", figure(*rate_per_s))
        }
    }
}

pub(crate) fn option_value(value: &OptionValue) -> String {
    match value {
        OptionValue::Bool(value) => value.to_string(),
        OptionValue::Int(value) => value.to_string(),
        OptionValue::Number(value) => value.to_string(),
        OptionValue::Text(value) => clean(value, FACT_WIDTH / 2),
        OptionValue::List(values) => clean(&values.join(","), FACT_WIDTH / 2),
    }
}

/// A row per step, at most 80 columns; the rest is in the details and the JSON.
fn ladder(stages: &[StageFindings]) -> String {
    let mut table = Table::default();
    // Short steps have no interval; a column of dashes says nothing.
    let halves: Vec<Option<f64>> = stages.iter().map(half_interval).collect();
    let known = halves.iter().any(Option::is_some);
    let head = ["sessions", "tx/s", "±", "p50 ms", "p95 ms", "p99 ms", "failed", "CPU µs/tx"];
    table.row(head.into_iter().filter(|name| known || *name != "±"));
    for (stage, half) in stages.iter().zip(halves) {
        let (total, response) = (&stage.total, &stage.total.response);
        let mut row = vec![count(stage.sessions.into()), figure(total.tps)];
        row.extend(known.then(|| half.map_or(NONE.into(), figure)));
        row.extend([response.p50_ns, response.p95_ns, response.p99_ns].map(ms));
        row.push(count(total.failed));
        let cpu = stage.generator.and_then(|generator| generator.cpu_ns_per_transaction);
        row.push(cpu.map_or(NONE.into(), micros));
        let remarks = [(stage.knee, "knee"), (stage.best, "most tx/s")];
        let remarks: Vec<&str> = remarks.into_iter().filter(|(is, _)| *is).map(|(_, remark)| remark).collect();
        row.extend((!remarks.is_empty()).then(|| remarks.join(", ")));
        table.row(row);
    }
    let mut text = table.text();
    if stages.iter().any(|stage| stage.knee) {
        text += "knee: no later step has 5% more transactions per second\n";
    } else if stages.last().is_some_and(|stage| stage.best) {
        text += "no knee: throughput still grows at the last step\n";
    }
    text
}

/// Half the width of the interval of the steady throughput, when that is all of the stage's.
fn half_interval(stage: &StageFindings) -> Option<f64> {
    match stage.throughput.steady {
        SteadyFindings::Steady { start_ns: 0, tps_low: Some(low), tps_high: Some(high), .. } => {
            Some((high - low) / 2.0)
        }
        _ => None,
    }
}

fn details(stage: &StageFindings, findings: &Findings) -> String {
    let mut text = String::from("\n");
    if let [.., _, _] = findings.stages[..] {
        text += &format!("with {} sessions, for {}:\n\n", count(stage.sessions.into()), seconds(stage.measured_ns));
    }
    text += &throughput(&stage.total);
    for (number, (name, facts)) in over_time(stage).into_iter().enumerate() {
        text += if number == 0 { "\n" } else { "" };
        text += &wrap(&format!("{name:11}"), facts, DOT);
    }
    if !stage.rates.is_empty() {
        text += &format!("\n{}", rates(&stage.rates));
    }
    if stage.counters.iter().any(|one| !one.audited) {
        text += &format!("\n{}", counters(&stage.counters));
    }
    if stage.total.types.iter().filter(|one| has_ended(one)).count() > 1 || stage.total.rolled_back > 0 {
        text += &format!("\n{}", types(&stage.total));
    }
    if !stage.targets.is_empty() {
        text += &format!("\n{}", targets(stage, findings));
    }
    text += &format!("\n{}", latencies(&stage.total));
    let known = latency_intervals(stage);
    text += &if known.is_empty() { "\n".into() } else { wrap("at 95%     ", known, DOT) + "\n" };
    if let Some(open) = &stage.open {
        let facts = [
            format!("{} due ({} per s)", count(open.due), figure(open.due_per_s)),
            format!("{} dropped", count(open.dropped)),
            format!("{} not begun at the end", count(open.unstarted)),
            format!("backlog at most {}", count(open.backlog_max)),
        ];
        text += &wrap("open loop  ", facts, DOT);
    }
    if let Some(queue) = &stage.queue {
        let facts = [
            format!("{} due", count(queue.due)),
            format!("{} not begun at the end", count(queue.unstarted)),
            format!("at most {} waiting for a connection", count(queue.waiting_max)),
        ];
        text += &wrap("terminals  ", facts, DOT);
    }
    let total = &stage.total;
    let outcome = [
        format!("{} failed", count(total.failed)),
        format!("{} errors", count(total.errors)),
        format!("{} retries", count(total.retries)),
        format!("{} reconnects", count(total.reconnects)),
        format!("{} unfinished", count(total.unfinished)),
    ];
    text += &wrap("trouble    ", outcome, DOT);
    if let Some(figures) = &stage.generator {
        let (least, most) = (count(stage.session_transactions_min), count(stage.session_transactions_max));
        let mean = figure(stage.session_transactions_mean);
        text += &wrap("fairness   ", [format!("{least} to {most} transactions per session, {mean} on average")], DOT);
        text += &generator(figures, &stage.total.lag, findings);
    }
    if !stage.audit.is_empty() {
        text += &format!("\n{}", audit(&stage.audit));
    }
    text
}

fn throughput(total: &TallyFindings) -> String {
    let mut table = Table::default();
    let (number, rate) = (&total.statements_by_class, &total.qps_by_class);
    table.row(["throughput", "total", "per s"]);
    for (name, number, rate) in [
        ("transactions", total.transactions, total.tps),
        ("statements", total.statements, total.qps),
        ("  read", number.read, rate.read),
        ("  write", number.write, rate.write),
        ("  other", number.other, rate.other),
    ] {
        table.row([name.to_owned(), count(number), figure(rate)]);
    }
    table.text()
}

fn rates(rates: &[RateFindings]) -> String {
    let mut table = Table::default();
    for one in rates {
        table.row(rate(one));
    }
    table.text()
}

fn counters(counters: &[CounterFindings]) -> String {
    let mut table = Table::default();
    table.row(COUNTERS_HEAD);
    for one in counters.iter().filter(|one| !one.audited) {
        table.row(counted(one));
    }
    table.text()
}

pub(crate) const COUNTERS_HEAD: [&str; 4] = ["counted", "total", "per s", "mean"];

/// Name, sum, rate, and the mean of a transaction that counted anything.
pub(crate) fn counted(one: &CounterFindings) -> [String; 4] {
    let mean = one.mean.map_or(NONE.into(), figure);
    [clean(&one.name, RULE_WIDTH), count(one.sum), figure(one.per_s), mean]
}

/// Name, figure, time it is in, and what of the possible that is.
pub(crate) fn rate(one: &RateFindings) -> Vec<String> {
    let possible = |(share, nominal)| format!("{} of the {} possible", percent(share), figure(nominal));
    let mut row = vec![clean(&one.name, NAME_WIDTH), figure(one.rate), per(one.per_ns)];
    row.extend(one.efficiency.zip(one.nominal).map(possible));
    row
}

fn per(ns: u64) -> String {
    match ns {
        1_000_000_000 => "per s".into(),
        60_000_000_000 => "per min".into(),
        3_600_000_000_000 => "per h".into(),
        ns => format!("per {}", seconds(ns)),
    }
}

/// Whether there is anything to say of a type: a workload that names its types leaves its own name unused.
fn has_ended(one: &TypeFindings) -> bool {
    one.transactions > 0 || one.rolled_back > 0 || one.failed > 0
}

fn types(total: &TallyFindings) -> String {
    let mut table = Table::default();
    table.row(["transactions", "done", "share", "rolled back", "failed", "retries"]);
    for one in total.types.iter().filter(|one| has_ended(one)) {
        table.row([
            clean(&one.name, NAME_WIDTH),
            count(one.transactions),
            format!("{}%", figure(one.share * 100.0)),
            count(one.rolled_back),
            count(one.failed),
            count(one.retries),
        ]);
    }
    table.text()
}

fn audit(rules: &[RuleFindings]) -> String {
    let mut table = Table::default();
    table.row(["audit", "observed", "allowed", ""]);
    for rule in rules {
        table.row(audited(rule));
    }
    table.text()
}

/// Name, observed, allowed, verdict.
pub(crate) fn audited(rule: &RuleFindings) -> [String; 4] {
    let name = match rule.clause.as_str() {
        "" => clean(&rule.name, RULE_WIDTH),
        clause => format!("{} ({})", clean(&rule.name, RULE_WIDTH), clean(clause, 16)),
    };
    let value = |value: f64| match rule.unit {
        Unit::Share => format!("{}%", figure(value * 100.0)),
        Unit::Mean => figure(value),
        Unit::Ns => format!("{} ms", figure(value / 1e6)),
    };
    let allowed = match (rule.low, rule.high) {
        (Some(low), Some(high)) => format!("{} to {}", value(low), value(high)),
        (Some(low), None) => format!("at least {}", value(low)),
        (None, Some(high)) => format!("at most {}", value(high)),
        (None, None) => "anything".to_owned(),
    };
    let verdict = match rule.verdict {
        RuleVerdict::Passed => "passed",
        RuleVerdict::Failed => "FAILED",
        RuleVerdict::TooShort => "run too short to tell",
    };
    [name, rule.observed.map_or(NONE.into(), value), allowed, verdict.to_owned()]
}

/// Whether throughput was steady, and how even: what is told, and its facts.
pub(crate) fn over_time(stage: &StageFindings) -> Vec<(&'static str, Vec<String>)> {
    let found = &stage.throughput;
    if stage.measured_ns == 0 {
        return Vec::new();
    }
    let steady = match found.steady {
        SteadyFindings::Steady { start_ns, tps, tps_low, tps_high } => {
            let from = if start_ns == 0 { "from the start".into() } else { format!("from {} on", seconds(start_ns)) };
            let known = match (tps_low, tps_high) {
                (Some(low), Some(high)) => format!(" [{}, {}] at 95%", figure(low), figure(high)),
                _ => "; too short for an interval, its seconds depend on each other too much".into(),
            };
            vec![from, format!("{} tx/s{known}", figure(tps))]
        }
        SteadyFindings::TooShort { needed_ns } => {
            let (measured, needed) = (seconds(stage.measured_ns), seconds(needed_ns));
            vec![format!("not known, nor how sure the throughput is: {measured} are too short, {needed} are enough")]
        }
        SteadyFindings::Late { start_ns } => {
            vec![format!("no: throughput changed about {} after the start, in the second half", seconds(start_ns))]
        }
        SteadyFindings::Trend { change } => {
            let goes = if change < 0.0 { "falls" } else { "rises" };
            vec![format!("no: throughput {goes} by {} of its mean from start to end", percent(change.abs()))]
        }
        SteadyFindings::Waves { count } => {
            vec![format!("no: {count:.0} waves are too few to average over")]
        }
    };
    let mut facts = Vec::new();
    facts.extend(found.variation.map(|share| format!("by {} (coefficient of variation)", percent(share))));
    // With fewer than a hundred the lowest hundredth is the lowest one.
    let step = if found.step_ns == 1_000_000_000 { "second" } else { "interval" };
    let lowest = if found.steps > 100 { format!("lowest 1% of {step}s") } else { format!("lowest {step}") };
    facts.extend(found.tps_lowest_1pct.map(|tps| format!("{lowest} {} tx/s", figure(tps))));
    if let Some(start_ns) = found.stall_start_ns {
        let (most, all) = (seconds(found.stall_ns_max), seconds(found.below_tenth_ns));
        facts.push(format!("longest stall {most}, {} after the start", seconds(start_ns)));
        facts.push(format!("{all} below 10% of the median"));
    } else if found.variation.is_some() {
        facts.push("no stalls".into());
    }
    let waves = found.waves.map(|waves| (seconds(waves.period_ns), percent(waves.strength)));
    facts.extend(waves.map(|(period, strength)| format!("waves of {period} ({strength} of the variance)")));
    let told = [("steady", steady), ("varies", facts)];
    told.into_iter().filter(|(_, facts)| !facts.is_empty()).collect()
}

/// How well the quantiles of response times are known, at 95 %.
pub(crate) fn latency_intervals(stage: &StageFindings) -> Vec<String> {
    let found = &stage.response_intervals;
    let known = [("p50", found.p50_ns), ("p95", found.p95_ns), ("p99", found.p99_ns)];
    let shown = |(name, interval): (&str, Option<(u64, u64)>)| {
        interval.map(|(low, high)| format!("{name} [{}, {}] ms", ms(Some(low)), ms(Some(high))))
    };
    known.into_iter().filter_map(shown).collect()
}

fn targets(stage: &StageFindings, findings: &Findings) -> String {
    let mut table = Table::default();
    table.row(["server", "tx/s", "stmt/s", "p50 ms", "p99 ms", "failed", "errors"]);
    for (target, tally) in findings.targets.iter().zip(&stage.targets) {
        let version = format!("{} {}", target.product, target.version);
        table.row([
            clean(&target.url, 44),
            figure(tally.tps),
            figure(tally.qps),
            ms(tally.response.p50_ns),
            ms(tally.response.p99_ns),
            count(tally.failed),
            count(tally.errors),
            clean(&version, NAME_WIDTH),
        ]);
    }
    table.text()
}

fn latencies(total: &TallyFindings) -> String {
    let mut table = Table::default();
    table.row(["response ms", "count", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"]);
    let mut row = |name: &str, latencies: &LatencyFindings| {
        let figures = [
            ms(latencies.min_ns),
            latencies.mean_ns.map_or(NONE.into(), |ns| figure(ns / 1e6)),
            ms(latencies.p50_ns),
            ms(latencies.p90_ns),
            ms(latencies.p95_ns),
            ms(latencies.p99_ns),
            ms(latencies.p999_ns),
            ms(latencies.max_ns),
        ];
        table.row([clean(name, NAME_WIDTH), count(latencies.count)].into_iter().chain(figures));
    };
    for one in total.types.iter().filter(|one| total.types.len() == 1 || has_ended(one)) {
        row(&one.name, &one.response);
    }
    if total.types.len() > 1 {
        row("all", &total.response);
    }
    if total.wait.count > 0 {
        row("waiting", &total.wait);
    }
    row("service time", &total.service);
    row("our lag", &total.lag);
    table.text()
}

fn generator(generator: &GeneratorFindings, lag: &LatencyFindings, findings: &Findings) -> String {
    let embedded = findings.targets.iter().any(|target| target.place == Place::Embedded);
    let workers = match generator.workers {
        1 => "its worker".to_owned(),
        workers => format!("busiest of {} workers", count(workers.into())),
    };
    let cpus = if findings.cpus == 1 { "1 CPU".into() } else { format!("{} CPUs", count(findings.cpus.into())) };
    let mut facts = vec![
        format!("{} of {cpus}", percent(generator.cpu_share_of_machine)),
        format!("{workers} {} busy", percent(generator.busiest_worker)),
        format!("lag p99 {} ms", ms(lag.p99_ns)),
        format!("{} MiB", count(generator.memory_max_bytes >> 20)),
    ];
    if let Some(cpu) = generator.cpu_ns_per_statement {
        let database = if embedded { ", database included" } else { "" };
        facts.insert(0, format!("{} µs CPU per statement{database}", micros(cpu)));
    }
    if let Some(waited) = generator.waited_for_cpu {
        facts.insert(facts.len() - 2, format!("waited {} for a CPU", percent(waited)));
    }
    facts.extend(generator.switches_per_statement.map(|n| format!("{} context switches per statement", figure(n))));
    // An embedded database answers without an event.
    let events = generator.events_per_turn.filter(|_| !embedded);
    facts.extend(events.map(|n| format!("{} events per turn", figure(n))));
    facts.extend(findings.event_loop.as_ref().map(|event_loop| format!("over {}", event_loop.backend)));
    let mut text = wrap("generator  ", facts, DOT);
    if let Some(why) = findings.event_loop.as_ref().and_then(|event_loop| event_loop.fallback.as_ref()) {
        text += &wrap("io_uring   ", format!("not used: {}", clean(why, 2 * MESSAGE_WIDTH)).split(' '), " ");
    }
    text
}

pub(crate) fn micros(ns: f64) -> String {
    figure(ns / 1e3)
}

fn errors(errors: &[ErrorFindings]) -> String {
    let mut table = Table::default();
    table.row(["error", "count"]);
    for error in errors {
        let code = if error.code.is_empty() { "no code" } else { &error.code };
        let name = format!("{} {} ({})", clean(&error.class, NAME_WIDTH), clean(code, 12), clean(&error.origin, 12));
        table.row([name, count(error.count), clean(&error.message, MESSAGE_WIDTH)]);
    }
    table.text()
}

/// The warnings of all runs (what to call each, which may be nothing, and its findings): what is wrong, and what to do about it, which
/// may be nothing. The steps of a ladder, and trials, often have the same trouble: what to do is said once.
pub(crate) fn warnings_by_hint<'a>(
    runs: impl IntoIterator<Item = (&'a str, &'a Findings)>,
) -> Vec<(Vec<String>, String)> {
    let mut told: Vec<(Vec<String>, String)> = Vec::new();
    for (name, findings) in runs {
        for warning in findings.warnings.iter().take(WARNINGS_MAX) {
            let (cause, hint) = warning_words(warning, findings);
            let cause = if name.is_empty() { cause } else { format!("{name}: {cause}") };
            match told.iter_mut().find(|(_, known)| *known == hint && !hint.is_empty()) {
                Some((causes, _)) if causes.len() < CAUSES_MAX => causes.push(cause),
                Some((causes, _)) => causes[CAUSES_MAX - 1] = "and more of the same".into(),
                None => told.push((vec![cause], hint)),
            }
        }
    }
    told
}

/// What is wrong, and what to do about it, which may be empty.
pub fn warning_words(warning: &Warning, findings: &Findings) -> (String, String) {
    let stage = |number: &usize| match &findings.stages[..] {
        [_] => String::new(),
        stages => {
            format!(" with {}", crate::chart::sessions(stages.get(*number).map_or(0, |stage| stage.sessions)))
        }
    };
    match warning {
        Warning::EndedEarly { status: Status::Failed } => {
            ("the run failed: the figures cover what was done until then".into(), String::new())
        }
        Warning::EndedEarly { status: Status::Running } => {
            ("the run was killed: this is the last of its partial records".into(), String::new())
        }
        Warning::EndedEarly { .. } => {
            ("the run was interrupted: the figures cover what was done until then".into(), String::new())
        }
        Warning::NoTransactions { stage: number } => {
            (format!("no transaction finished{}", stage(number)), String::new())
        }
        Warning::TooShort { stage: number, transactions, transactions_needed } => (
            format!(
                "only {} transactions{}: p99.9 needs {}",
                count(*transactions),
                stage(number),
                count(*transactions_needed)
            ),
            "run longer (`--time`)".into(),
        ),
        Warning::Failures { failed, share } => (
            format!("{} transactions failed ({}); they are in no latency above", count(*failed), percent(*share)),
            String::new(),
        ),
        Warning::Standstill { stage: number, intervals, start_ns, length_ns } => (
            format!(
                "nothing finished in {} of the intervals{}, {} in all, the first {} after the start",
                count(*intervals),
                stage(number),
                seconds(*length_ns),
                seconds(*start_ns)
            ),
            "look at the server's checkpoints, locks and restarts at that time".into(),
        ),
        Warning::Overload { stage: number, due, undone } => (
            format!(
                "the rate was too high{}: of {} transactions due, {} were dropped or not begun",
                stage(number),
                count(*due),
                count(*undone)
            ),
            "lower `--rate`, or add `--sessions` if the server has room".into(),
        ),
        Warning::GeneratorBusy { stage: number, busiest_worker, advice: what } => (
            format!(
                "the generator was the bottleneck{}: its busiest worker was {} busy",
                stage(number),
                percent(*busiest_worker)
            ),
            advice(what),
        ),
        Warning::GeneratorStarved { stage: number, waited_for_cpu, advice: what } => (
            format!(
                "the generator was starved{}: a worker waited {} of the time for a CPU, and answers waited with it",
                stage(number),
                percent(*waited_for_cpu)
            ),
            advice(what),
        ),
        Warning::GeneratorLate { stage: number, lag_ns, response_p50_ns, advice: what } => (
            format!(
                "the generator itself was late{}: {} is {} ms, the median response {} ms",
                stage(number),
                lag_name(findings.stages.get(*number)),
                ms(Some(*lag_ns)),
                ms(Some(*response_p50_ns))
            ),
            advice(what),
        ),
        Warning::OverRange { stage: number, count: values } => (
            format!(
                "{} latencies{} exceed one hour; quantiles show the largest for them",
                count(*values),
                stage(number)
            ),
            String::new(),
        ),
    }
}

/// What a warning about lag is about.
fn lag_name(stage: Option<&StageFindings>) -> &'static str {
    if stage.is_some_and(|stage| stage.total.lag.p99_ns.is_none()) { "the largest lag" } else { "lag p99" }
}

fn advice(advice: &Advice) -> String {
    match advice {
        Advice::AddWorkers { workers, useful } => format!("add workers (`--workers {useful}`; there were {workers})"),
        Advice::SeparateFromServer => {
            "server and generator compete for the same CPUs: run the generator on another machine".into()
        }
        Advice::LargerMachine => "run the generator on a machine with more CPUs".into(),
        Advice::QuietMachine => "something else held the workers up: look for other load on this machine".into(),
    }
}

/// What a command (`prepare`) did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// Rows loaded.
    pub rows: u64,
    /// From the first connect to the end.
    pub elapsed_ns: u64,
    /// Rows per second.
    pub rows_per_s: f64,
}

/// The figures of a command that loaded `rows`.
pub fn loaded(rows: u64, elapsed_ns: u64) -> Loaded {
    Loaded { rows, elapsed_ns, rows_per_s: crate::findings::per_second(rows, elapsed_ns) }
}

/// One line: `400,000 rows in 2.5 s (160,000 rows/s)`.
pub fn loaded_text(loaded: &Loaded) -> String {
    let rows = if loaded.rows == 1 { "row" } else { "rows" };
    let took = seconds(loaded.elapsed_ns);
    format!("{} {rows} in {took} ({} rows/s)\n", count(loaded.rows), figure(loaded.rows_per_s))
}
