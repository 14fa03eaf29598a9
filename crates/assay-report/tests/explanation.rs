//! Why two results differ: invented records, in each of which one thing is different.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;

use std::collections::BTreeMap;

use assay_record::*;
use assay_report::*;
use example::{example, spread};

const SECONDS: u64 = 40;
const SESSIONS: u64 = 16;

/// What a transaction costs: counters by name, and milliseconds by wait event. The rest of its time is the network's.
#[derive(Clone, Default)]
struct Costs {
    /// Of the server, at any time.
    levels: BTreeMap<&'static str, u64>,
    server: BTreeMap<&'static str, f64>,
    machine: BTreeMap<&'static str, f64>,
    waits: BTreeMap<&'static str, f64>,
}

fn usual() -> Costs {
    Costs {
        levels: BTreeMap::from([("data_bytes", 100 << 20), ("purge_lag", 200)]),
        server: BTreeMap::from([
            ("checkpoints_requested", 0.0),
            ("cpu_wait_us", 20.0),
            ("buffer_reads", 60.0),
            ("buffer_misses", 0.5),
            ("log_bytes", 800.0),
            ("log_full_pages", 0.01),
            ("log_fsyncs", 1.0),
            ("cpu_us", 900.0),
            ("temporary_bytes", 0.0),
            ("lock_waits", 0.01),
        ]),
        machine: BTreeMap::from([
            ("cpu_user_us", 1000.0),
            ("cpu_system_us", 400.0),
            ("cpu_steal_us", 1.0),
            ("context_switches", 12.0),
            ("device_queue_us", 500.0),
        ]),
        waits: BTreeMap::from([
            ("CPU", 0.9),
            ("IO:WALSync", 1.0),
            ("IO:DataFileRead", 0.3),
            ("Lock:transactionid", 0.1),
            ("LWLock:WALInsert", 0.05),
        ]),
    }
}

/// A run whose transactions take 2 ms and what they wait more than usual.
fn run(costs: &Costs, change: impl Fn(&mut Record)) -> Record {
    let usual_ms: f64 = usual().waits.values().sum();
    let ms = 2.4 + costs.waits.values().sum::<f64>() - usual_ms;
    let tps = (SESSIONS as f64 * 1000.0 / ms) as u64;
    let mut record = example();
    record.status = Status::Complete;
    record.work = None;
    record.rules.clear();
    record.rates.clear();
    record.manifest.load = Load::Closed;
    record.manifest.sessions = vec![SESSIONS as u32];
    record.manifest.limit.time_ns = Some(SECONDS * 1_000_000_000);
    record.manifest.targets.truncate(1);
    record.environment.servers.truncate(1);
    record.environment.started = None;
    record.types = vec!["shop".into()];
    record.stages.truncate(1);
    // Chance, the same in each run.
    let of_second = |second: u64| tps * (100 + (second * 37 % 5)) / 102;
    let stage = &mut record.stages[0];
    stage.targets.clear();
    stage.start_ns = Some(1_000_000_000);
    stage.measured_ns = SECONDS * 1_000_000_000;
    stage.generator.cpu_user_ns = 0;
    stage.generator.cpu_system_ns = 0;
    stage.intervals = (0..SECONDS)
        .map(|second| Interval {
            start_ns: second * 1_000_000_000,
            length_ns: 1_000_000_000,
            transactions: vec![of_second(second)],
            sessions: SESSIONS as u32,
            response: spread(of_second(second), 1_000_000, 4_000_000),
            ..Interval::default()
        })
        .collect();
    let count = (0..SECONDS).map(of_second).sum();
    let total = &mut stage.total;
    total.transactions.truncate(1);
    total.transactions[0] = TransactionTally {
        name: "shop".into(),
        count,
        response: spread(count, 1_000_000, 4_000_000),
        ..TransactionTally::default()
    };
    (total.errors, total.counters, total.due) = (vec![], vec![], count);
    record.telemetry = Some(telemetry(costs, of_second));
    change(&mut record);
    record
}

fn telemetry(costs: &Costs, of_second: impl Fn(u64) -> u64) -> Telemetry {
    let began_ns: Vec<u64> = (0..=SECONDS).map(|second| (second + 1) * 1_000_000_000).collect();
    let done: Vec<u64> = (0..=SECONDS).map(|second| (0..second).map(&of_second).sum()).collect();
    let series = |(metric, each): (&&'static str, &f64)| Series {
        metric: (*metric).into(),
        unit: if metric.ends_with("_us") { Unit::Us } else { Unit::Count },
        reading: Reading::Counter,
        source: "a view".into(),
        values: done.iter().map(|done| Some((*done as f64 * each) as u64)).collect(),
        own: Vec::new(),
        includes_own: false,
    };
    // A thousand looks per second, so that little is lost by rounding.
    let event = |(name, ms): (&&'static str, &f64)| {
        let seen = |second: u64| if second == 0 { 0.0 } else { of_second(second - 1) as f64 * ms };
        WaitEvent { name: (*name).into(), sessions: (0..=SECONDS).map(|second| seen(second) as u32).collect() }
    };
    let level = |(metric, value): (&&'static str, &u64)| Series {
        metric: (*metric).into(),
        unit: Unit::Count,
        reading: Reading::Gauge,
        source: "a view".into(),
        values: done.iter().map(|_| Some(*value)).collect(),
        own: Vec::new(),
        includes_own: false,
    };
    let scope = |kind, costs: &BTreeMap<&'static str, f64>, waits| Scope {
        kind,
        target: 0,
        began_ns: began_ns.clone(),
        ended_ns: began_ns.clone(),
        series: costs.iter().map(series).collect(),
        absent: Vec::new(),
        waits,
        log: Vec::new(),
        log_left_out: 0,
        statements: Vec::new(),
    };
    let waits = Waits {
        looks: (0..=SECONDS).map(|second| if second == 0 { 0 } else { 1000 }).collect(),
        events: costs.waits.iter().map(event).collect(),
    };
    let mut server = scope(ScopeKind::Server, &costs.server, (!costs.waits.is_empty()).then_some(waits));
    server.series.extend(costs.levels.iter().map(level));
    Telemetry {
        full: false,
        every_ns: 1_000_000_000,
        scopes: vec![server, scope(ScopeKind::Machine, &costs.machine, None)],
        interventions: Vec::new(),
        plans: Vec::new(),
        cost: Cost::default(),
    }
}

fn explained(baseline: &Record, candidate: &Record) -> (Explanation, String) {
    let [baseline, candidate] = [baseline, candidate].map(|record| vec![findings(record)]);
    let [before, after] = ["a.json.zst", "b.json.zst"].map(|path| vec![path.to_owned()]);
    let found = compare(
        Side { name: "baseline", records: &before, trials: &baseline },
        Side { name: "candidate", records: &after, trials: &candidate },
        0.03,
    );
    let explanation = explain(&found, &baseline, &candidate).unwrap();
    let text = explanation_text(&explanation, &found);
    (explanation, text)
}

#[test]
fn a_planted_cause_is_the_first_one() {
    type Plant = fn(&mut Costs);
    let planted: [(Mechanism, Plant); 24] = [
        (Mechanism::Locks, |costs| {
            costs.waits.insert("Lock:transactionid", 3.0);
            costs.server.insert("lock_waits", 0.4);
        }),
        (Mechanism::PagesPerTransaction, |costs| {
            costs.server.extend([("buffer_reads", 900.0), ("cpu_us", 3900.0), ("buffer_misses", 4.0)]);
            costs.waits.insert("CPU", 3.9);
        }),
        (Mechanism::Misses, |costs| {
            costs.server.insert("buffer_misses", 9.0);
            costs.waits.insert("IO:DataFileRead", 2.5);
        }),
        (Mechanism::SlowReads, |costs| {
            costs.waits.insert("IO:DataFileRead", 2.5);
            costs.machine.insert("device_queue_us", 3000.0);
        }),
        (Mechanism::LogVolume, |costs| {
            costs.server.extend([("log_bytes", 9000.0), ("log_full_pages", 1.1)]);
            costs.waits.extend([("IO:WALSync", 2.0), ("IO:WALWrite", 0.5)]);
        }),
        (Mechanism::LogWaits, |costs| costs.waits.extend([("IO:WALSync", 3.5)])),
        (Mechanism::InternalLocks, |costs| costs.waits.extend([("LWLock:BufferMapping", 1.5)])),
        (Mechanism::ServerCpu, |costs| {
            costs.server.insert("cpu_us", 2900.0);
            costs.waits.insert("CPU", 2.9);
        }),
        (Mechanism::OtherProcesses, |costs| {
            costs.waits.insert("CPU", 2.0);
            costs.machine.extend([("cpu_user_us", 1900.0), ("context_switches", 12.5)]);
        }),
        (Mechanism::Steal, |costs| {
            costs.waits.insert("CPU", 2.0);
            costs.machine.insert("cpu_steal_us", 1100.0);
        }),
        (Mechanism::Sleeps, |costs| {
            costs.waits.insert("Timeout:PgSleep", 17.0);
            costs.machine.insert("context_switches", 30.0);
        }),
        (Mechanism::Sleeps, |costs| costs.waits.extend([("state/User sleep", 3.0)])),
        (Mechanism::Replication, |costs| costs.waits.extend([("IPC:SyncRep", 3.0)])),
        (Mechanism::Replication, |costs| costs.waits.extend([("state/Waiting for semi-sync ACK from slave", 3.0)])),
        (Mechanism::Processes, |costs| costs.waits.extend([("IPC:ExecuteGather", 3.0)])),
        (Mechanism::Extension, |costs| costs.waits.extend([("Extension:Extension", 3.0)])),
        (Mechanism::OtherWaits, |costs| costs.waits.extend([("Something:New", 3.0)])),
        (Mechanism::Locks, |costs| costs.waits.extend([("state/Waiting for table metadata lock", 3.0)])),
        (Mechanism::Locks, |costs| {
            // By the server's count alone.
            costs.waits.insert("state/updating", 3.0);
            costs.server.extend([("lock_waits", 0.4), ("lock_wait_us", 2900.0)]);
        }),
        (Mechanism::Writes, |costs| costs.waits.extend([("IO:DataFileExtend", 3.0)])),
        // Nothing in the server takes longer.
        (Mechanism::Outside, |costs| {
            costs.waits.insert("Client:ClientRead", 3.0);
            costs.machine.insert("context_switches", 30.0);
        }),
        (Mechanism::Bloat, |costs| {
            costs.levels.extend([("data_bytes", 900 << 20), ("purge_lag", 90_000)]);
            costs.server.extend([("buffer_reads", 900.0), ("cpu_us", 3900.0), ("buffer_misses", 4.0)]);
            costs.waits.insert("CPU", 3.9);
        }),
        (Mechanism::Checkpoints, |costs| {
            costs.server.extend([("checkpoints_requested", 0.0003), ("log_bytes", 9000.0), ("log_full_pages", 1.1)]);
            costs.waits.extend([("IO:WALSync", 2.0), ("IO:DataFileWrite", 0.5)]);
        }),
        (Mechanism::CpuWaits, |costs| {
            costs.waits.insert("CPU", 3.0);
            costs.server.insert("cpu_wait_us", 2100.0);
        }),
    ];
    let mut costs = usual();
    costs.server.insert("lock_wait_us", 10.0);
    let baseline = run(&costs, |_| ());
    for (mechanism, plant) in planted {
        let mut costs = costs.clone();
        plant(&mut costs);
        let (found, text) = explained(&baseline, &run(&costs, |_| ()));
        assert!(found.differs && found.settings.is_empty(), "{mechanism:?}: {text}");
        assert_eq!(found.causes.first().map(|cause| cause.mechanism), Some(mechanism), "{text}");
    }
}

/// Without a sample of its waits, a server that reads from its operating system's memory shows only more misses.
#[test]
fn a_cache_that_became_too_small_is_named_though_reads_have_no_wait_event() {
    let unsampled = |costs: &Costs| run(costs, |record| record.telemetry.as_mut().unwrap().scopes[0].waits = None);
    let mut costs = usual();
    let baseline = unsampled(&costs);
    costs.server.extend([("buffer_misses", 9.0), ("buffer_reads", 68.0), ("cpu_us", 1500.0)]);
    costs.waits.insert("CPU", 2.9);
    let (found, text) = explained(&baseline, &unsampled(&costs));
    assert_eq!(found.causes.first().map(|cause| cause.mechanism), Some(Mechanism::Misses), "{text}");
    assert!(text.replace('\n', " ").contains("cache is too small"), "{text}");
}

#[test]
fn counters_that_a_server_publishes_late_have_no_value_in_a_stage_that_is_too_short_or_that_they_lack() {
    let shown = |seconds: u64, commits: f64| {
        let mut costs = usual();
        costs.server.extend([("commits", commits), ("rollbacks", 0.0)]);
        let record = run(&costs, |record| {
            let stage = &mut record.stages[0];
            stage.measured_ns = seconds * 1_000_000_000;
            stage.intervals.truncate(seconds as usize);
            stage.total.transactions[0].count = stage.intervals.iter().map(|one| one.transactions[0]).sum();
            stage.total.statements.read.count = 3 * stage.total.transactions[0].count;
            let scope = &mut record.telemetry.as_mut().unwrap().scopes[0];
            for series in &mut scope.series {
                let is_late = ["commits", "rollbacks", "buffer_reads"].contains(&series.metric.as_str());
                series.source = if is_late { "pg_stat_database.xact_commit" } else { "pg_current_wal_lsn()" }.into();
            }
        });
        let scope = findings(&record).stages[0].telemetry[0].clone();
        let reads = scope.metric("buffer_reads").map(|one| one.per_transaction.unwrap().round());
        let reason = scope.absent.iter().find(|one| one.metric == "buffer_reads").map(|one| one.reason.clone());
        assert!(scope.metric("log_bytes").is_some());
        (reads, reason.unwrap_or_default())
    };
    assert_eq!(shown(20, 1.0), (Some(60.0), String::new()));
    assert_eq!(shown(10, 1.0), (Some(60.0), String::new()));
    for seconds in [1, 3, 9] {
        let (reads, reason) = shown(seconds, 1.0);
        let needed = "publish it up to 1.00 s late: a stage needs at least 10.0 s for it";
        assert!(reads.is_none() && reason.contains(needed), "{seconds} s: {reads:?}, {reason}");
    }
    // Sessions without tables publish nothing until they end.
    let (reads, reason) = shown(20, 0.104);
    assert!(reads.is_none() && reason.contains("only 0.10 commits and rollbacks per transaction"), "{reason}");
}

/// Both are published together, so that their ratio is known in any stage.
#[test]
fn an_explanation_uses_late_counters_per_commit() {
    let short = |pages: f64, cpu_ms: f64| {
        let mut costs = usual();
        costs.server.extend([("commits", 1.0), ("buffer_reads", pages), ("cpu_us", 1000.0 * cpu_ms)]);
        costs.waits.insert("CPU", cpu_ms);
        run(&costs, |record| {
            let stage = &mut record.stages[0];
            stage.measured_ns = 3_000_000_000;
            stage.intervals.truncate(3);
            stage.total.transactions[0].count = stage.intervals.iter().map(|one| one.transactions[0]).sum();
            for series in &mut record.telemetry.as_mut().unwrap().scopes[0].series {
                if ["commits", "buffer_reads", "buffer_misses"].contains(&series.metric.as_str()) {
                    series.source = "pg_stat_database.blks_read".into();
                }
            }
        })
    };
    let [before, after] = [(60.0, 0.9), (900.0, 3.9)].map(|(pages, cpu)| vec![findings(&short(pages, cpu)); 4]);
    let names: Vec<String> = (1..=4).map(|number| format!("{number}.json.zst")).collect();
    let side = |name, trials| Side { name, records: &names, trials };
    let found = compare(side("baseline", &before[..]), side("candidate", &after[..]), 0.03);
    let explanation = explain(&found, &before, &after).unwrap();
    let text = explanation_text(&explanation, &found);
    assert_eq!(explanation.causes.first().map(|one| one.mechanism), Some(Mechanism::PagesPerTransaction), "{text}");
    assert!(text.replace('\n', " ").contains("server.buffer_reads 60.0 → 900 per commit"), "{text}");
}

#[test]
fn an_explanation_is_a_paragraph_with_what_was_ruled_out() {
    let mut costs = usual();
    costs.waits.insert("Lock:transactionid", 3.0);
    let changed = run(&costs, |record| {
        record.environment.servers[0].settings.insert("deadlock_timeout".into(), "5s".into());
    });
    insta::assert_snapshot!(explained(&run(&usual(), |_| ()), &changed).1, @"
    Throughput fell (6,666 → 3,018 tps, −54.7% [−55.0, −54.5]): a transaction takes 5.30 ms instead of
    2.40 ms. These settings differ: server deadlock_timeout none → 5s. Transactions wait longer for
    locks held by others, 100% of the difference (+2.90 ms per transaction): waiting for locks 0.0999 ms
    → 3.00 ms per transaction, ×30.02.

    baseline:  a.json.zst
    candidate: b.json.zst

    ruled out
      waits for internal locks: waiting for internal locks 0 ms → 0 ms per transaction
      log volume: server.log_bytes 800 → 800 per transaction, ×1.00 [1.00, 1.00]
      waits for the log: waiting for the log 1.05 ms → 1.05 ms per transaction, ×1.00
      buffer misses: server.buffer_misses 0.500 → 0.500 per transaction, ×1.00 [1.00, 1.00]
      slow reads: waiting for reads 0.300 ms → 0.300 ms per transaction, ×1.00
      pages per transaction: server.buffer_reads 60.0 → 60.0 per transaction, ×1.00 [1.00, 1.00]
      CPU time of the server: server.cpu_us 900 → 900 per transaction, ×1.00 [1.00, 1.00]
      CPU time taken by the hypervisor: machine.cpu_steal_us 1.00 → 1.00 per transaction, ×1.00 [1.00, 1.00]
      temporary files: server.temporary_bytes 0 → 0 per transaction
      context switches: machine.context_switches 12.0 → 12.0 per transaction, ×1.00 [1.00, 1.00]
      CPU time of the load generator: cpu 0 ms → 0 ms per transaction
      retries and failures: retries 0 → 0 per transaction

    not measured on both sides: CPU limit of the server, waits in the pooler
    ");
}

#[test]
fn without_a_difference_or_a_cause_it_says_so() {
    let baseline = run(&usual(), |_| ());
    insta::assert_snapshot!(explained(&baseline, &run(&usual(), |_| ())).1, @"
    No difference in throughput that chance does not explain: 6,666 → 6,666 tps, ±0.0% [−0.6, +0.6].

    baseline:  a.json.zst
    candidate: b.json.zst
    ");
    // Slower, and everything else is as before.
    let mut costs = usual();
    costs.waits.insert("state/executing", 2.0);
    insta::assert_snapshot!(explained(&baseline, &run(&costs, |_| ())).1, @"
    Throughput fell (6,666 → 3,636 tps, −45.5% [−45.8, −45.1]): a transaction takes 4.40 ms instead of
    2.40 ms. No explanation found: no setting differs, and nothing that was measured moved with it.

    baseline:  a.json.zst
    candidate: b.json.zst

    ruled out
      waits for locks: waiting for locks 0.0999 ms → 0.0999 ms per transaction, ×1.00
      waits for internal locks: waiting for internal locks 0 ms → 0 ms per transaction
      log volume: server.log_bytes 800 → 800 per transaction, ×1.00 [1.00, 1.00]
      waits for the log: waiting for the log 1.05 ms → 1.05 ms per transaction, ×1.00
      buffer misses: server.buffer_misses 0.500 → 0.500 per transaction, ×1.00 [1.00, 1.00]
      slow reads: waiting for reads 0.300 ms → 0.300 ms per transaction, ×1.00
      pages per transaction: server.buffer_reads 60.0 → 60.0 per transaction, ×1.00 [1.00, 1.00]
      CPU time of the server: server.cpu_us 900 → 900 per transaction, ×1.00 [1.00, 1.00]
      CPU time taken by the hypervisor: machine.cpu_steal_us 1.00 → 1.00 per transaction, ×1.00 [1.00, 1.00]
      temporary files: server.temporary_bytes 0 → 0 per transaction
      context switches: machine.context_switches 12.0 → 12.0 per transaction, ×1.00 [1.00, 1.00]
      CPU time of the load generator: cpu 0 ms → 0 ms per transaction
      retries and failures: retries 0 → 0 per transaction

    not measured on both sides: CPU limit of the server, waits in the pooler
    ");
}

/// A server that only reads writes a few bytes by the way: ten times as many are still nothing.
#[test]
fn a_few_more_bytes_of_log_are_not_a_cause() {
    let reads = |bytes: f64, reads_ms: f64| {
        let mut costs = usual();
        costs.server.extend([("log_bytes", bytes), ("log_full_pages", 0.0), ("log_fsyncs", 0.0)]);
        costs.waits.remove("IO:WALSync");
        costs.waits.insert("IO:DataFileRead", reads_ms);
        run(&costs, |_| ())
    };
    let (found, text) = explained(&reads(6.0, 0.3), &reads(90.0, 2.5));
    assert_eq!(found.causes.iter().map(|cause| cause.mechanism).collect::<Vec<_>>(), [Mechanism::SlowReads], "{text}");
    assert!(text.contains("6.00 → 90.0 per transaction, ×15.0"), "{text}");
    assert!(text.contains("; too few bytes to matter"), "{text}");
    // A row's worth is not nothing.
    let (found, text) = explained(&reads(6.0, 0.3), &reads(900.0, 2.5));
    assert!(found.causes.iter().any(|cause| cause.mechanism == Mechanism::LogVolume), "{text}");
}

#[test]
fn a_plan_that_changed_is_named_before_what_followed_from_it() {
    let with_plan = |costs: &Costs, plan: &str, again: &str| {
        run(costs, |record| {
            let of = |text: &str| QueryPlan { text: text.into(), json: None, shape: text.replace("  (cost=1)", "") };
            record.telemetry.as_mut().unwrap().plans = vec![StatementPlans {
                target: 0,
                statement: "SELECT pad FROM t WHERE id = $1".into(),
                is_generic: true,
                plans: [plan, again].map(of).to_vec(),
            }];
        })
    };
    let mut costs = usual();
    costs.server.extend([("buffer_reads", 900.0), ("cpu_us", 3900.0)]);
    costs.waits.insert("CPU", 3.9);
    let index = "Index Scan using t_id on t  (cost=1)\n  Index Cond: (id = $1)";
    let sequential = "Seq Scan on t  (cost=1)\n  Filter: (id = $1)";
    let baseline = with_plan(&usual(), index, index);
    let (found, text) = explained(&baseline, &with_plan(&costs, sequential, sequential));
    assert_eq!(found.plans.len(), 1);
    let sentence = "The plan of SELECT pad FROM t WHERE id = $1 changed: Index Scan using t_id on t → Seq Scan on t.";
    let words = text.replace('\n', " ");
    assert!(words.contains(&format!("{sentence} Statements touch more pages")), "{text}");
    let listed =
        "plan of SELECT pad FROM t WHERE id = $1, candidate\n  Seq Scan on t  (cost=1)\n    Filter: (id = $1)\n";
    assert!(text.contains(listed), "{text}");
    // A plan seen on both sides does not count as changed.
    let (found, text) = explained(&baseline, &with_plan(&costs, sequential, index));
    assert!(found.plans.is_empty() && !text.contains("plan of"), "{text}");
}

#[test]
fn an_open_loop_is_explained_by_its_p99_and_the_service_times() {
    let open = |costs: &Costs| {
        run(costs, |record| {
            record.manifest.load = Load::Open { rate_per_s: 1000.0, arrival: Arrival::Constant, backlog_max: None };
            let slow = costs.waits["Lock:transactionid"] > 1.0;
            let stage = &mut record.stages[0];
            let count: u64 = stage.intervals.iter().map(|interval| interval.transactions[0]).sum();
            let [low, high] = if slow { [3_000_000, 60_000_000] } else { [1_000_000, 4_000_000] };
            let per_second = 1000;
            for interval in &mut stage.intervals {
                interval.transactions = vec![per_second];
                interval.response = spread(per_second, low, high);
            }
            let one = &mut stage.total.transactions[0];
            one.count = per_second * SECONDS;
            one.response = spread(per_second * SECONDS, low, high);
            one.service = spread(per_second * SECONDS, low, high);
            stage.total.due = per_second * SECONDS;
            let telemetry = record.telemetry.as_mut().unwrap();
            // As many per transaction as before.
            for series in telemetry.scopes.iter_mut().flat_map(|scope| &mut scope.series) {
                series.values.iter_mut().flatten().for_each(|value| *value = *value * per_second * SECONDS / count);
            }
            let waits = telemetry.scopes.iter_mut().filter_map(|scope| scope.waits.as_mut());
            for sessions in waits.flat_map(|waits| &mut waits.events).flat_map(|event| &mut event.sessions) {
                *sessions = (u64::from(*sessions) * per_second * SECONDS / count) as u32;
            }
        })
    };
    let mut costs = usual();
    costs.waits.insert("Lock:transactionid", 30.0);
    let (found, text) = explained(&open(&usual()), &open(&costs));
    assert!(found.differs && found.is_worse, "{text}");
    assert!(text.starts_with("P99 rose (") && text.contains(": a transaction takes "), "{text}");
    assert_eq!(found.causes.first().map(|cause| cause.mechanism), Some(Mechanism::Locks), "{text}");
}

#[test]
fn the_page_and_the_markdown_of_a_comparison_say_why() {
    let mut costs = usual();
    costs.waits.insert("Lock:transactionid", 3.0);
    let changed = run(&costs, |record| {
        record.environment.servers[0].settings.insert("deadlock_timeout".into(), "5s".into());
    });
    let records = [("a.json.zst", run(&usual(), |_| ())), ("b.json.zst", changed)];
    let report = report(records.map(|(path, record)| (path.to_owned(), findings(&record))).into());
    let page = html(&report, &[]);
    let words = "Transactions wait longer for locks held by others, 100% of the difference";
    assert!(page.contains("<h4>Why they differ</h4>") && page.contains(words), "{page}");
    assert!(page.contains("Ruled out (") && page.contains("server.buffer_misses 0.500 → 0.500"), "{page}");
    assert!(markdown(&report, &[]).contains(words));
    // Nothing to explain where nothing differs.
    let settings = |record: &mut Record| drop(record.environment.servers[0].settings.insert("x".into(), "y".into()));
    let records = [("a.json.zst", run(&usual(), |_| ())), ("b.json.zst", run(&usual(), settings))];
    let report = assay_report::report(records.map(|(path, record)| (path.to_owned(), findings(&record))).into());
    assert!(report.comparisons.len() == 1 && !html(&report, &[]).contains("Why they differ"));
}
