//! Metrics for Prometheus: the final state of records as OpenMetrics 1.0, and a run in progress in the older text
//! format (0.0.4), which every scraper reads.
//!
//! Names start with `assay_`, units are seconds and bytes, counters end in `_total`. Label values are escaped, and
//! limited in length and number.

use std::fmt::Write as _;

use assay_record::{Event, Interval, Reading, Readings, ScopeKind, Status, coarse_bounds_ns};

use crate::findings::interval::{IntervalFindings, interval_findings};
use crate::findings::latency::LatencyFindings;
use crate::findings::report::Report;
use crate::findings::run::Findings;
use crate::findings::telemetry::ScopeFindings;
use crate::plain::clean;

const LABEL_WIDTH: usize = 120;
/// Most error kinds and transaction types per stage.
const SERIES_MAX: usize = 200;

/// Metrics by name, each with its samples.
#[derive(Default)]
struct MetricsText {
    metrics: Vec<MetricFamily>,
}

struct MetricFamily {
    name: String,
    kind: String,
    help: String,
    samples: String,
}

impl MetricsText {
    fn sample(
        &mut self,
        (name, kind, help): (&'static str, &'static str, &'static str),
        labels: &[(&str, &str)],
        value: f64,
    ) {
        self.sample_of("", (name, kind, help), labels, value);
    }

    fn sample_of(&mut self, suffix: &str, definition: Definition, labels: &[(&str, &str)], value: f64) {
        self.sample_named(suffix, definition, labels, value);
    }

    fn sample_named(
        &mut self,
        suffix: &str,
        (name, kind, help): (&str, &str, &str),
        labels: &[(&str, &str)],
        value: f64,
    ) {
        let at = self.metrics.iter().position(|metric| metric.name == name).unwrap_or_else(|| {
            let [name, kind, help] = [name, kind, help].map(str::to_owned);
            self.metrics.push(MetricFamily { name, kind, help, samples: String::new() });
            self.metrics.len() - 1
        });
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.metrics[at].samples, "{name}{suffix}{labels} {value}").expect("writing to memory does not fail");
    }

    /// Renders the older text format.
    fn text(&self) -> String {
        self.metrics.iter().map(|metric| metric.text(&metric.name)).collect()
    }

    /// Renders OpenMetrics: a counter's name lacks the `_total` of its samples, and the file has an end marker.
    fn open_metrics(&self) -> String {
        let text = |metric: &MetricFamily| match metric.kind.as_str() {
            "counter" => metric.text(metric.name.trim_end_matches("_total")),
            _ => metric.text(&metric.name),
        };
        let all: String = self.metrics.iter().map(text).collect();
        all + "# EOF\n"
    }
}

impl MetricFamily {
    fn text(&self, name: &str) -> String {
        format!("# HELP {name} {}\n# TYPE {name} {}\n{}", self.help, self.kind, self.samples)
    }
}

fn escaped(value: &str) -> String {
    clean(value, LABEL_WIDTH).replace('\\', "\\\\").replace('"', "\\\"")
}

type Definition = (&'static str, &'static str, &'static str);
const INFO: Definition = ("assay_info", "gauge", "Description of the run: always 1.");
const STATUS: Definition = ("assay_run_complete", "gauge", "1 if the run is complete.");
const TRANSACTIONS: Definition = ("assay_transactions_total", "counter", "Successful transactions.");
const STATEMENTS: Definition = ("assay_statements_total", "counter", "Successful statements.");
const FAILED: Definition = ("assay_failed_transactions_total", "counter", "Failed transactions.");
const RETRIES: Definition = ("assay_retries_total", "counter", "Retries of transactions.");
const ERRORS_ALL: Definition = ("assay_errors_of_stage_total", "counter", "Errors of all kinds.");
const ERRORS: Definition = ("assay_errors_total", "counter", "Errors, including retried ones.");
const RECONNECTS: Definition = ("assay_reconnects_total", "counter", "Reconnects.");
const RATE: Definition = ("assay_transactions_per_second", "gauge", "Transactions per second.");
const RESPONSE: Definition = ("assay_response_quantile_seconds", "gauge", "Response time, from due to done.");
const LAG: Definition = ("assay_lag_quantile_seconds", "gauge", "Lag of the load generator.");
const SESSIONS: Definition = ("assay_sessions", "gauge", "Active sessions.");
const BACKLOG: Definition = ("assay_backlog", "gauge", "Transactions due and waiting for a session.");
const CPU: Definition = ("assay_generator_cpu_seconds_total", "counter", "CPU time of the generator.");
const BUSY: Definition = ("assay_generator_busiest_worker_ratio", "gauge", "How busy the busiest worker was, 0 to 1.");
const WAITED: Definition =
    ("assay_generator_cpu_wait_ratio", "gauge", "Largest share of time in which a worker waited for a CPU, 0 to 1.");
const MEMORY: Definition = ("assay_generator_memory_max_bytes", "gauge", "Largest resident set of the generator.");
const WAITS: Definition = ("assay_server_waits", "gauge", "Active sessions by wait event, stage average.");
const STAGE: Definition = ("assay_stage", "gauge", "Current stage, starting from 0.");
const HISTOGRAM: Definition = ("assay_response_seconds", "histogram", "Response times since the start of the run.");

/// The final state of every record.
pub fn prometheus(report: &Report) -> String {
    let mut all = MetricsText::default();
    for entry in &report.entries {
        of_findings(&mut all, &entry.name, &entry.findings);
    }
    all.open_metrics()
}

fn of_findings(all: &mut MetricsText, record: &str, findings: &Findings) {
    let (product, version) = findings.targets.first().map_or(("", ""), |target| (&target.product, &target.version));
    let seed = findings.seed.to_string();
    let tags: Vec<(String, &str)> =
        findings.tags.iter().map(|(name, value)| (tag_label(name), value.as_str())).collect();
    let tags: Vec<(&str, &str)> = tags.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let info = [("record", record), ("workload", &findings.workload), ("product", product), ("version", version)];
    all.sample(INFO, &[&info[..], &[("tool", &findings.tool), ("seed", &seed)], &tags].concat(), 1.0);
    all.sample(STATUS, &[&[("record", record)], &tags[..]].concat(), f64::from(findings.status == Status::Complete));
    for (number, stage) in findings.stages.iter().enumerate().take(SERIES_MAX) {
        let (number, sessions) = (number.to_string(), stage.sessions.to_string());
        let of_stage = [("record", record), ("stage", number.as_str()), ("sessions", sessions.as_str())];
        let of_stage = [&of_stage[..], &tags].concat();
        let and = |name, value| [&of_stage[..], &[(name, value)]].concat();
        let total = &stage.total;
        for one in total.types.iter().take(SERIES_MAX) {
            all.sample(TRANSACTIONS, &and("type", &one.name), one.transactions as f64);
            for (definition, count) in [(FAILED, one.failed), (RETRIES, one.retries)] {
                if let Some(count) = count {
                    all.sample(definition, &and("type", &one.name), count as f64);
                }
            }
            quantiles(all, RESPONSE, &and("type", &one.name), &one.response);
        }
        let classes = &total.statements_by_class;
        for (class, count) in [("read", classes.read), ("write", classes.write), ("other", classes.other)] {
            all.sample(STATEMENTS, &and("class", class), count as f64);
        }
        all.sample(ERRORS_ALL, &of_stage, total.errors as f64);
        for error in total.errors_by_kind.iter().take(SERIES_MAX) {
            let kind = [("origin", error.origin.as_str()), ("class", &error.class), ("code", &error.code)];
            all.sample(ERRORS, &[&of_stage[..], &kind].concat(), error.count as f64);
        }
        all.sample(RECONNECTS, &of_stage, total.reconnects as f64);
        all.sample(RATE, &of_stage, total.tps);
        quantiles(all, LAG, &of_stage, &total.lag);
        if let Some(generator) = stage.generator {
            all.sample(CPU, &of_stage, generator.cpu_ns as f64 / 1e9);
            all.sample(BUSY, &of_stage, generator.busiest_worker);
            if let Some(waited) = generator.waited_for_cpu {
                all.sample(WAITED, &of_stage, waited);
            }
            all.sample(MEMORY, &of_stage, generator.memory_max_bytes as f64);
        }
        of_telemetry(all, &of_stage, &stage.telemetry);
    }
}

/// Rates and levels with the names of telemetry: `assay_server_log_bytes_per_second`,
/// `assay_server_log_bytes_per_transaction`, `assay_machine_memory_dirty_bytes`.
fn of_telemetry(all: &mut MetricsText, of_stage: &[(&str, &str)], scopes: &[ScopeFindings]) {
    for scope in scopes {
        let kind = if scope.scope == ScopeKind::Server { "server" } else { "machine" };
        let target = scope.target.to_string();
        let labels = [of_stage, &[("target", target.as_str())]].concat();
        for one in scope.metrics.iter().take(SERIES_MAX) {
            let metric = one.metric.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
            let mut put = |ending: &str, help: &str, value: Option<f64>| {
                if let Some(value) = value {
                    let name = format!("assay_{kind}_{metric}{ending}");
                    all.sample_named("", (&name, "gauge", help), &labels, value);
                }
            };
            put("_per_second", "Telemetry: rate in the stage.", one.per_s);
            put("_per_transaction", "Telemetry: per successful transaction.", one.per_transaction);
            put("", "Telemetry: mean in the stage.", one.mean);
        }
        for one in scope.waits.iter().flatten().take(SERIES_MAX) {
            all.sample(WAITS, &[&labels[..], &[("event", one.event.as_str())]].concat(), one.sessions);
        }
    }
}

/// A label's name has only letters, digits and `_`.
fn tag_label(tag: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("tag_{}", clean(tag, LABEL_WIDTH).chars().map(safe).collect::<String>())
}

fn quantiles(all: &mut MetricsText, metric: Definition, labels: &[(&str, &str)], latencies: &LatencyFindings) {
    for (quantile, ns) in [
        ("0.5", latencies.p50_ns),
        ("0.9", latencies.p90_ns),
        ("0.95", latencies.p95_ns),
        ("0.99", latencies.p99_ns),
        ("0.999", latencies.p999_ns),
        ("1", latencies.max_ns),
    ] {
        if let Some(ns) = ns {
            all.sample(metric, &[labels, &[("quantile", quantile)]].concat(), ns as f64 / 1e9);
        }
    }
}

/// A run in progress: counters since its start, gauges of its last interval.
#[derive(Clone, Debug, Default)]
pub struct LiveMetrics {
    workload: String,
    tags: Vec<(String, String)>,
    stage: usize,
    transactions: Vec<(String, u64)>,
    statements: [u64; 3],
    /// failed, retries, errors, reconnects
    troubles: [u64; 4],
    cpu_ns: u64,
    buckets: Vec<u64>,
    sum_ns: u128,
    last: Option<IntervalFindings>,
    types: Vec<String>,
    /// By scope.
    telemetry: Vec<Vec<LastReading>>,
}

/// The last reading of a metric of a server or its machine.
#[derive(Clone, Debug)]
struct LastReading {
    name: String,
    target: u32,
    is_counter: bool,
    value: Option<u64>,
}

/// Every fourth bound of the intervals' buckets: 1 µs, 1.6 µs, 2.5 µs, 4 µs, 6.3 µs, 10 µs, … With fewer, the quantiles
/// computed by Prometheus would be guesses; with more, every run would have a thousand series.
const BUCKET_STEP: usize = 4;

impl LiveMetrics {
    /// The next event of the run.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Started(started) => {
                let tags = started.tags.iter().map(|(name, value)| (tag_label(name), value.clone()));
                *self = LiveMetrics {
                    workload: started.manifest.workload.clone(),
                    tags: tags.collect(),
                    types: started.types.clone(),
                    buckets: vec![0; coarse_bounds_ns().len() + 1],
                    ..LiveMetrics::default()
                };
            }
            Event::Connected(connected) => self.types.clone_from(&connected.types),
            Event::Interval(interval) => self.add(interval.stage as usize, &interval.interval),
            Event::Readings(readings) => self.read(readings),
            _ => {}
        }
    }

    fn add(&mut self, stage: usize, interval: &Interval) {
        let findings = interval_findings(interval);
        self.stage = stage;
        for (number, count) in interval.transactions.iter().enumerate().take(SERIES_MAX) {
            if self.transactions.len() <= number {
                self.transactions.push((self.types.get(number).cloned().unwrap_or_default(), 0));
            }
            let so_far = &mut self.transactions[number].1;
            *so_far = so_far.saturating_add(*count);
        }
        let classes = [interval.statements.read, interval.statements.write, interval.statements.other];
        let troubles = [interval.failed, interval.retries, interval.errors, interval.reconnects];
        for (sum, more) in self.statements.iter_mut().zip(classes).chain(self.troubles.iter_mut().zip(troubles)) {
            *sum = sum.saturating_add(more);
        }
        self.cpu_ns = self.cpu_ns.saturating_add(interval.cpu_ns);
        self.sum_ns = self.sum_ns.saturating_add(interval.response.sum_ns);
        for (bucket, count) in findings.buckets.iter() {
            let sum = &mut self.buckets[bucket];
            *sum = sum.saturating_add(count);
        }
        self.last = Some(findings);
    }

    /// Raw counters and levels of servers and their machine.
    fn read(&mut self, readings: &Readings) {
        self.telemetry.resize_with(self.telemetry.len().max(readings.scopes.len()), Vec::new);
        for (known, scope) in self.telemetry.iter_mut().zip(&readings.scopes) {
            for (series, values) in known.iter_mut().zip(&scope.values) {
                series.value = values.last().copied().unwrap_or(series.value);
            }
            let kind = if scope.kind == ScopeKind::Server { "server" } else { "machine" };
            for series in &scope.series {
                let is_counter = series.reading == Reading::Counter;
                let name = format!("assay_{kind}_{}{}", series.metric, if is_counter { "_total" } else { "" });
                let value = series.values.last().copied().flatten();
                known.push(LastReading { name, target: scope.target, is_counter, value });
            }
        }
    }

    /// The current metrics.
    pub fn text(&self) -> String {
        let mut all = MetricsText::default();
        let mut info = vec![("workload", self.workload.as_str())];
        info.push(("tool", concat!("assay ", env!("CARGO_PKG_VERSION"))));
        info.extend(self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        all.sample(INFO, &info, 1.0);
        for (name, count) in &self.transactions {
            all.sample(TRANSACTIONS, &[("type", name)], *count as f64);
        }
        for (class, count) in ["read", "write", "other"].into_iter().zip(self.statements) {
            all.sample(STATEMENTS, &[("class", class)], count as f64);
        }
        for (metric, count) in [FAILED, RETRIES, ERRORS, RECONNECTS].into_iter().zip(self.troubles) {
            all.sample(metric, &[], count as f64);
        }
        all.sample(CPU, &[], self.cpu_ns as f64 / 1e9);
        all.sample(STAGE, &[], self.stage as f64);
        if let Some(last) = &self.last {
            all.sample(RATE, &[], last.tps);
            all.sample(SESSIONS, &[], f64::from(last.sessions));
            all.sample(BACKLOG, &[], last.backlog as f64);
            quantiles(&mut all, RESPONSE, &[], &last.response);
        }
        for one in self.telemetry.iter().flat_map(|scope| scope.iter().take(SERIES_MAX)) {
            let Some(value) = one.value else { continue };
            let definition = (one.name.as_str(), if one.is_counter { "counter" } else { "gauge" }, "Telemetry.");
            all.sample_named("", definition, &[("target", one.target.to_string().as_str())], value as f64);
        }
        let mut below = 0u64;
        let bounds = coarse_bounds_ns();
        for (number, count) in self.buckets.iter().enumerate() {
            below = below.saturating_add(*count);
            if let Some(bound) = bounds.get(number).filter(|_| number % BUCKET_STEP == 0) {
                all.sample_of("_bucket", HISTOGRAM, &[("le", &(*bound as f64 / 1e9).to_string())], below as f64);
            }
        }
        all.sample_of("_bucket", HISTOGRAM, &[("le", "+Inf")], below as f64);
        all.sample_of("_sum", HISTOGRAM, &[], self.sum_ns as f64 / 1e9);
        all.sample_of("_count", HISTOGRAM, &[], below as f64);
        all.text()
    }
}
