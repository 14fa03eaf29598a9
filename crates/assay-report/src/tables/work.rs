//! The work done in a stage: counts, types, servers, errors, the workload's rates, counters and audit.

use crate::digits::{clock, count, figure, percent};
use crate::findings::audit::{CounterFindings, RateFindings, RuleFindings, RuleUnit, RuleVerdict};
use crate::findings::latency::LatencyFindings;
use crate::findings::outage::ListedOutage;
use crate::findings::run::{ServerFindings, Task};
use crate::findings::stage::StageFindings;
use crate::findings::tally::{ErrorFindings, TallyFindings};
use crate::plain::clean;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};
use crate::words::run::{error_name, per};

const RULE_WIDTH: usize = 36;
const URL_WIDTH: usize = 44;
const MESSAGE_WIDTH: usize = 52;

/// When nothing finished; `None` if that never happened.
pub(crate) fn outages(outages: &[ListedOutage], servers: &[ServerFindings]) -> Option<Table> {
    let several = servers.len() > 1;
    let figures = ["length s", "errors", "throughput back after s"].map(TableColumn::figures);
    let classed = outages.iter().any(|one| !one.errors_by_class.is_empty());
    let row = |one: &ListedOutage| {
        let ListedOutage { target, outage, errors_by_class } = one;
        let back = TableCell::of(outage.recovery_ns, |ns| TableCell::Number(ns as f64 / 1e9));
        let mut row = vec![TableCell::Words(clock(outage.start_ns))];
        row.extend(several.then(|| match target {
            Some(target) => {
                servers.get(*target as usize).map_or(TableCell::Unknown, |server| TableCell::foreign(&server.url))
            }
            None => TableCell::words("all servers"),
        }));
        row.extend([TableCell::Number(outage.length_ns as f64 / 1e9), TableCell::Count(outage.errors), back]);
        let class = |(class, number): (&String, &u64)| format!("{} {}", count(*number), clean(class, NAME_WIDTH));
        row.push(TableCell::words(errors_by_class.iter().map(class).collect::<Vec<_>>().join(", ")));
        row
    };
    let mut columns = vec![TableColumn::words("outage at", NAME_WIDTH)];
    columns.extend(several.then(|| TableColumn::figures("server")));
    columns.extend(figures);
    columns.extend(classed.then(|| TableColumn::words("errors by class", MESSAGE_WIDTH)));
    (!outages.is_empty()).then(|| Table::new(columns).with_rows(outages.iter().map(row)))
}

/// Transactions and statements, and their durations. `all`: also classes without any. A machine test has operations,
/// and no statements.
pub(crate) fn throughput(total: &TallyFindings, task: Task, all: bool) -> Table {
    let figures = ["total", "per s"].map(TableColumn::figures);
    let latencies = ["p50 ms", "p99 ms", "max ms"].map(|head| TableColumn::figures(head).roomy());
    let (number, rate, service) = (&total.statements_by_class, &total.qps_by_class, &total.statement_service);
    let row = |name: &str, number: u64, rate: f64, of: Option<&LatencyFindings>| {
        let latencies = |of: &LatencyFindings| [of.p50_ns, of.p99_ns, of.max_ns].map(TableCell::ns);
        let of = of.map_or([const { TableCell::Blank }; 3], latencies);
        let head = [TableCell::words(name), TableCell::Count(number), TableCell::Number(rate)];
        head.into_iter().chain(of).collect::<Vec<_>>()
    };
    let (what, has_statements) = match task {
        Task::Machine => ("operations", false),
        Task::Run | Task::Prepare | Task::Check => ("transactions", true),
    };
    let rows = [
        (true, row(what, total.transactions, total.tps, Some(&total.response))),
        (total.statements > 0, row("statements", total.statements, total.qps, None)),
        (number.read > 0, row("  read", number.read, rate.read, Some(&service.read))),
        (number.write > 0, row("  write", number.write, rate.write, Some(&service.write))),
        (number.other > 0, row("  other (like COMMIT)", number.other, rate.other, Some(&service.other))),
    ];
    let columns = [TableColumn::words("throughput", NAME_WIDTH)].into_iter().chain(figures).chain(latencies);
    let shown = rows.into_iter().take(if has_statements { 5 } else { 1 }).filter(|(is, _)| all || *is);
    Table::new(columns).with_rows(shown.map(|(_, row)| row))
}

/// Outcomes of each type of transaction; `None` if there is only one type and no intended rollback.
pub(crate) fn types(stage: &StageFindings, task: Task) -> Option<Table> {
    let total = &stage.total;
    // For parts of a run, records have only successful transactions by type.
    let known = |count: Option<u64>| count.map_or(TableCell::Unknown, TableCell::Count);
    let ended: Vec<_> = total.types.iter().filter(|one| one.has_ended()).collect();
    if ended.len() < 2 && total.rolled_back.is_none_or(|count| count == 0) {
        return None;
    }
    let figures = |head: &str| TableColumn::figures(head);
    let is_machine = task == Task::Machine;
    let what = if is_machine { "operations" } else { "transactions" };
    let mut columns = vec![
        TableColumn::words(what, NAME_WIDTH),
        figures("done"),
        if is_machine { figures("per s") } else { figures("per s").roomy() },
        figures("share"),
    ];
    // Operations of a machine test cannot fail.
    if !is_machine {
        columns.extend([figures("rolled back"), figures("failed"), figures("retries").from(80)]);
    }
    Some(Table::new(columns).with_rows(ended.into_iter().map(|one| {
        let share = TableCell::Words(format!("{}%", figure(one.share * 100.0)));
        let mut row =
            vec![TableCell::foreign(&one.name), TableCell::Count(one.transactions), TableCell::Number(one.tps), share];
        if !is_machine {
            row.extend([known(one.rolled_back), known(one.failed), known(one.retries)]);
        }
        row
    })))
}

/// Servers side by side; `None` if there is only one.
pub(crate) fn targets(servers: &[ServerFindings], tallies: &[TallyFindings]) -> Option<Table> {
    if tallies.is_empty() {
        return None;
    }
    let figures = [("tx/s", 0), ("stmt/s", 100), ("p50 ms", 80), ("p99 ms", 0), ("failed", 100), ("errors", 80)];
    let figures = figures.map(|(head, from)| TableColumn::figures(head).from(from));
    let [first, last] = [TableColumn::words("server", URL_WIDTH), TableColumn::words("version", NAME_WIDTH).from(120)];
    let table = Table::new([first].into_iter().chain(figures).chain([last]));
    Some(table.with_rows(servers.iter().zip(tallies).map(|(server, tally)| {
        [
            TableCell::foreign(&server.url),
            TableCell::Number(tally.tps),
            TableCell::Number(tally.qps),
            TableCell::ns(tally.response.p50_ns),
            TableCell::ns(tally.response.p99_ns),
            TableCell::Count(tally.failed),
            TableCell::Count(tally.errors),
            TableCell::foreign(&format!("{} {}", server.product, server.version)),
        ]
    })))
}

/// Errors by kind, the most frequent first; `None` if there were none.
pub(crate) fn errors(errors: &[ErrorFindings]) -> Option<Table> {
    let columns = [
        TableColumn::words("error", usize::MAX),
        TableColumn::figures("count"),
        TableColumn::words("in the server's words", MESSAGE_WIDTH),
    ];
    let row = |error: &ErrorFindings| {
        let name = format!("{} ({})", error_name(error), clean(&error.origin, 12));
        [TableCell::Words(name), TableCell::Count(error.count), TableCell::foreign(&error.message)]
    };
    (!errors.is_empty()).then(|| Table::new(columns).with_rows(errors.iter().map(row)))
}

/// Throughput as defined by the workload, and its share of the possible maximum; `None` if it defines none.
pub(crate) fn rates(rates: &[RateFindings]) -> Option<Table> {
    let columns = [
        TableColumn::words("", RULE_WIDTH),
        TableColumn::figures(""),
        TableColumn::figures(""),
        TableColumn::words("", NAME_WIDTH * 2),
    ];
    let possible = |(share, nominal)| format!("{} of the {} possible", percent(share), figure(nominal));
    let row = |one: &RateFindings| {
        let remark = match (one.efficiency.zip(one.nominal), one.rolled_back) {
            (Some(of), _) => possible(of),
            (None, 0) => String::new(),
            (None, rolled_back) => format!("without {} rolled back by design", count(rolled_back)),
        };
        [
            TableCell::foreign(&one.name),
            TableCell::Number(one.rate),
            TableCell::Words(per(one.per_ns)),
            TableCell::Words(remark),
        ]
    };
    (!rates.is_empty()).then(|| Table::new(columns).with_rows(rates.iter().map(row)))
}

/// Workload counters that no rule of its audit uses; `None` if there are none.
pub(crate) fn counters(counters: &[CounterFindings]) -> Option<Table> {
    let figures = ["total", "per s", "mean"].map(TableColumn::figures);
    let row = |one: &CounterFindings| {
        [
            TableCell::foreign(&one.name),
            TableCell::Count(one.sum),
            TableCell::Number(one.per_s),
            TableCell::of(one.mean, TableCell::Number),
        ]
    };
    let rows: Vec<_> = counters.iter().filter(|one| !one.audited).map(row).collect();
    let columns = [TableColumn::words("counted", RULE_WIDTH)].into_iter().chain(figures);
    (!rows.is_empty()).then(|| Table::new(columns).with_rows(rows))
}

/// The workload's own rules; `all`: also those that passed, and those for which the run was too short. `None` if there
/// are none.
pub(crate) fn audit(rules: &[RuleFindings], all: bool) -> Option<Table> {
    let rules: Vec<&RuleFindings> = rules.iter().filter(|rule| all || rule.is_alarming()).collect();
    let columns = [
        TableColumn::words("audit", usize::MAX),
        TableColumn::figures("observed"),
        TableColumn::figures("allowed"),
        TableColumn::words("", RULE_WIDTH),
    ];
    (!rules.is_empty()).then(|| Table::new(columns).with_rows(rules.into_iter().map(audited)))
}

fn audited(rule: &RuleFindings) -> [TableCell; 4] {
    let name = match rule.clause.as_str() {
        "" => clean(&rule.name, RULE_WIDTH),
        clause => format!("{} ({})", clean(&rule.name, RULE_WIDTH), clean(clause, 16)),
    };
    let value = |value: f64| match rule.unit {
        RuleUnit::Share => format!("{}%", figure(value * 100.0)),
        RuleUnit::Mean => figure(value),
        RuleUnit::Ns => format!("{} ms", figure(value / 1e6)),
        RuleUnit::Count => count(value.max(0.0).round() as u64),
    };
    let allowed = match (rule.low, rule.high) {
        (Some(low), Some(high)) if low == high => value(low),
        (Some(low), Some(high)) => format!("{} to {}", value(low), value(high)),
        (Some(low), None) => format!("at least {}", value(low)),
        (None, Some(high)) => format!("at most {}", value(high)),
        (None, None) => "anything".to_owned(),
    };
    let verdict = match (rule.verdict, rule.enough) {
        (RuleVerdict::Passed, _) => TableCell::words("passed"),
        (RuleVerdict::Failed, _) => TableCell::words("FAILED"),
        (RuleVerdict::TooShort, Some(enough)) if rule.count > 0 => {
            TableCell::Words(format!("too short: {} of about {}", count(rule.count), count(rounded(enough))))
        }
        (RuleVerdict::TooShort, _) => TableCell::words("too short"),
        (RuleVerdict::NotRead, _) => TableCell::words("tables not read"),
    };
    let observed = TableCell::of(rule.observed, |observed| TableCell::Words(value(observed)));
    [TableCell::Words(name), observed, TableCell::Words(allowed), verdict]
}

/// To two digits, upwards.
fn rounded(number: u64) -> u64 {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.div_ceil(unit).saturating_mul(unit)
}
