//! Histories of the papers by their facts, and others that show one rule each.

use assay_isolation::{Outcome, STAMP_SHIFT};
use insta::assert_snapshot;

use crate::written::{Append, Count, Counter, List, Read, Total, Write, Written, summary};

fn check(history: Written) -> String {
    summary(&history.check())
}

#[test]
fn an_empty_history_and_a_serial_one_have_every_level() {
    assert_snapshot!(check(Written::default()), @"holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable, strong-session-serializable, strict-serializable");
    let serial = Written::default()
        .ok(1, (0, 1), &[Append(1, 1), List(1, vec![1])])
        .ok(2, (2, 3), &[List(1, vec![1]), Append(1, 2)])
        .ok(1, (4, 5), &[List(1, vec![1, 2]), Append(2, 1)]);
    assert_snapshot!(check(serial), @"holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable, strong-session-serializable, strict-serializable");
}

/// Elle, section 3 and 7.1 (TiDB): T1 read a list without T2's element, and appended after it.
#[test]
fn elles_read_skew_in_tidb_is_a_lost_update() {
    let history = Written::default()
        .ok(0, (0, 1), &[Append(34, 2), Append(34, 1)])
        .ok(1, (10, 20), &[List(34, vec![2, 1]), Append(36, 5), Append(34, 4)])
        .ok(2, (11, 21), &[Append(34, 5)])
        .ok(3, (30, 31), &[List(34, vec![2, 1, 5, 4])]);
    assert_snapshot!(check(history), @"
    LostUpdate × 1
    holds: read-uncommitted, read-committed
    ");
}

/// Elle, section 7.2 (YugaByte DB): two transactions that each missed the other's append.
#[test]
fn elles_anti_dependency_cycle_in_yugabyte_is_write_skew() {
    let history = Written::default()
        .ok(1, (0, 10), &[Append(3, 837), List(4, vec![874, 877, 883])])
        .ok(2, (1, 11), &[Append(4, 885), List(3, vec![831, 833, 836])])
        .ok(
            0,
            (0, 1),
            &[Append(3, 831), Append(3, 833), Append(3, 836), Append(4, 874), Append(4, 877), Append(4, 883)],
        )
        .ok(3, (12, 13), &[List(3, vec![831, 833, 836, 837]), List(4, vec![874, 877, 883, 885])]);
    assert_snapshot!(check(history), @"
    WriteSkew × 1
    holds: read-uncommitted, read-committed, snapshot-isolation
    ");
}

/// Elle, section 7.3 (FaunaDB): a transaction did not see its own append.
#[test]
fn elles_internal_inconsistency_in_faunadb_is_found() {
    let history = Written::default().ok(1, (0, 1), &[Append(0, 6), List(0, vec![])]);
    assert_snapshot!(check(history), @"
    Internal × 1
    holds:
    ");
}

/// Elle, section 7.4 (Dgraph): a read from before a write that had ended.
#[test]
fn elles_stale_read_in_dgraph_is_found_by_sessions_and_real_time() {
    let history = Written::default().ok(1, (0, 1), &[Write(540, 2, 0, 0)]).ok(1, (2, 3), &[Read(540, 0, 0)]).ok(
        2,
        (4, 5),
        &[Read(540, 1, 2)],
    );
    assert_snapshot!(check(history), @"
    ReadSkew (Session) × 1
    UnreadOwnWrite × 1
    StaleRead × 1
    holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable
    ");
}

#[test]
fn a_transaction_with_unknown_outcome_counts_if_its_write_was_read() {
    let history = Written::default()
        .unknown(1, 0, &[List(2, vec![]), Append(1, 1)])
        .ok(2, (1, 5), &[List(1, vec![]), Append(2, 1)])
        .unknown(3, 6, &[Append(1, 99)]);
    assert_snapshot!(check(history), @"holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable, strong-session-serializable, strict-serializable");
    let read = Written::default()
        .unknown(1, 0, &[List(2, vec![]), Append(1, 1)])
        .ok(2, (1, 5), &[List(1, vec![]), Append(2, 1)])
        .ok(3, (6, 7), &[List(1, vec![1]), List(2, vec![1])]);
    assert_snapshot!(check(read), @"
    WriteSkew × 1
    holds: read-uncommitted, read-committed, snapshot-isolation
    ");
}

#[test]
fn values_of_nobody_are_garbage_unless_the_history_is_partial() {
    let history = || Written::default().ok(1, (0, 1), &[List(1, vec![7]), Read(2, 1, 9)]);
    assert_snapshot!(check(history()), @"
    GarbageRead × 2
    holds:
    ");
    let mut partial = history();
    partial.0.set_partial();
    assert_snapshot!(check(partial), @"holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable, strong-session-serializable, strict-serializable");
}

#[test]
fn appends_that_nobody_read_come_after_all_reads() {
    let history = Written::default()
        .ok(1, (0, 10), &[List(1, vec![]), Append(1, 1)])
        .ok(2, (0, 10), &[List(1, vec![]), Append(1, 2)])
        .ok(3, (0, 10), &[Append(1, 3)]);
    assert_snapshot!(check(history), @"
    LostUpdate × 1
    WriteSkew × 1
    holds: read-uncommitted, read-committed
    ");
    let one_after_the_other = Written::default()
        .ok(1, (0, 1), &[List(1, vec![]), Append(1, 1)])
        .ok(2, (2, 3), &[Append(1, 2)])
        .ok(3, (4, 5), &[Append(1, 3)]);
    assert_snapshot!(check(one_after_the_other), @"holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable, strong-session-serializable, strict-serializable");
}

#[test]
fn a_sum_that_changed_is_reported() {
    assert_snapshot!(check(Written::default().ok(1, (0, 1), &[Total(99, 100)])), @"
    WrongTotal × 1
    holds: read-uncommitted, read-committed
    ");
}

#[test]
fn long_forks_are_not_snapshot_isolation() {
    let history = Written::default()
        .ok(1, (0, 9), &[Append(1, 1)])
        .ok(2, (0, 9), &[Append(2, 1)])
        .ok(3, (0, 9), &[List(1, vec![1]), List(2, vec![])])
        .ok(4, (0, 9), &[List(1, vec![]), List(2, vec![1])]);
    assert_snapshot!(check(history), @"
    LongFork × 1
    holds: read-uncommitted, read-committed
    ");
}

#[test]
fn a_counterexample_is_the_shortest_cycle_with_its_reasons() {
    let history = Written::default().ok(7, (0, 9), &[Read(1, 0, 0), Write(2, 20, 0, 0)]).ok(
        8,
        (1, 8),
        &[Read(2, 0, 0), Write(1, 10, 0, 0)],
    );
    assert_snapshot!(format!("{:#?}", history.check().anomalies[0].example), @r#"
    Example {
        steps: [
            ExampleStep {
                transaction: 0,
                session: 7,
                begin: 0,
                end: Some(
                    9,
                ),
                outcome: "ok",
                operations: [
                    "read(1): 0 of version 0",
                    "write(2, 20) as version 1, after 0",
                ],
            },
            ExampleStep {
                transaction: 1,
                session: 8,
                begin: 1,
                end: Some(
                    8,
                ),
                outcome: "ok",
                operations: [
                    "read(2): 0 of version 0",
                    "write(1, 10) as version 1, after 0",
                ],
            },
        ],
        links: [
            ExampleLink {
                from: 0,
                to: 1,
                relation: ReadWrite,
                key: Some(
                    1,
                ),
            },
            ExampleLink {
                from: 1,
                to: 0,
                relation: ReadWrite,
                key: Some(
                    2,
                ),
            },
        ],
    }
    "#);
}

#[test]
fn a_history_is_exported_for_elle() {
    let history = Written::default()
        .ok(0, (0, 4), &[Append(1, 1), List(1, vec![1])])
        .unknown(1, 2, &[Append(1, 2)])
        .failed(1, (5, 6), &[Read(2, 0, 0), Write(2, 3, 0, 0)]);
    let mut text = String::new();
    history.0.write_edn(&mut text).expect("a String takes everything");
    assert_snapshot!(text, @"
    {:index 0, :time 0, :type :invoke, :process 0, :f :txn, :value [[:append 1 1] [:r 1 nil]]}
    {:index 1, :time 2, :type :invoke, :process 1, :f :txn, :value [[:append 1 2]]}
    {:index 2, :time 4, :type :ok, :process 0, :f :txn, :value [[:append 1 1] [:r 1 [1]]]}
    {:index 3, :time 5, :type :invoke, :process 2, :f :txn, :value [[:r 2 nil] [:w 2 3]]}
    {:index 4, :time 6, :type :fail, :process 2, :f :txn, :value [[:r 2 nil] [:w 2 3]]}
    {:index 5, :time 9223372036854775807, :type :info, :process 1, :f :txn, :value [[:append 1 2]]}
    ");
}

/// Orders of TPC-C's districts get their numbers from such a counter.
#[test]
fn a_counter_that_counts_every_transaction_once_is_in_order() {
    let history = Written::default()
        .ok(1, (0, 10), &[Count(1, 3001)])
        .failed(2, (11, 12), &[Count(1, 3002)])
        .ok(3, (13, 14), &[Count(1, 3002), Counter(2, 7)])
        .unknown(4, 15, &[Count(1, 3003)])
        .ok(5, (20, 30), &[Counter(1, 3004)])
        .ok(5, (31, 32), &[Count(1, 3004)]);
    assert_snapshot!(check(history), @"holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable, strong-session-serializable, strict-serializable");
}

#[test]
fn two_transactions_that_count_from_the_same_value_are_a_lost_update_or_a_lost_write() {
    let concurrent = Written::default().ok(1, (0, 10), &[Count(1, 5)]).ok(2, (1, 9), &[Count(1, 5)]);
    assert_snapshot!(check(concurrent), @"
    LostUpdate × 1
    holds: read-uncommitted, read-committed
    ");
    // As after a crash that lost the first.
    let later = Written::default().ok(1, (0, 10), &[Count(1, 5)]).ok(2, (20, 30), &[Count(1, 5)]);
    assert_snapshot!(check(later), @"
    LostWrite × 1
    holds:
    ");
}

#[test]
fn values_of_counters_that_nobody_gave_them_are_found() {
    let aborted = Written::default().ok(1, (0, 1), &[Count(1, 5)]).failed(2, (2, 9), &[Count(1, 6)]).ok(
        3,
        (3, 4),
        &[Counter(1, 7)],
    );
    assert_snapshot!(check(aborted), @"
    AbortedRead × 1
    holds: read-uncommitted
    ");
    let garbage = Written::default().ok(1, (0, 1), &[Count(1, 5)]).ok(2, (2, 3), &[Counter(1, 9)]);
    assert_snapshot!(check(garbage), @"
    GarbageRead × 1
    holds:
    ");
    let stale = Written::default().ok(1, (0, 1), &[Count(1, 5)]).ok(2, (2, 3), &[Counter(1, 5)]);
    assert_snapshot!(check(stale), @"
    ReadSkew (RealTime) × 1
    StaleRead × 1
    holds: read-uncommitted, read-committed, repeatable-read, snapshot-isolation, serializable, strong-session-serializable
    ");
}

#[test]
fn a_fault_is_counted_once_however_many_transactions_see_it() {
    let mut sums = Written::default();
    for at in 0..300 {
        let found = if at < 100 { 400 } else { 397 + at / 250 };
        sums.add(at as u32 % 3, Outcome::Ok, (at as u64, at as u64 + 2), &[Total(found, 400)]);
    }
    assert_eq!(summary(&sums.check()).lines().next(), Some("WrongTotal × 2"));
    let mut values = Written::default().failed(1, (0, 1), &[Append(1, 5)]);
    for at in 2..200 {
        values.add(at as u32 % 3, Outcome::Ok, (at, at + 2), &[List(1, vec![5]), List(2, vec![99])]);
    }
    let found = summary(&values.check());
    assert!(found.starts_with("GarbageRead × 1\nAbortedRead × 1\n"), "{found}");
}

#[test]
fn only_transactions_that_met_others_are_concurrent() {
    let apart = Written::default().ok(1, (0, 10), &[Append(1, 1)]).ok(1, (10, 20), &[Append(1, 2)]).ok(
        2,
        (20, 30),
        &[Append(1, 3)],
    );
    assert_eq!(apart.check().concurrent, Some(0));
    let met = Written::default()
        .ok(1, (0, 40), &[Append(1, 1)])
        .ok(2, (5, 10), &[Append(1, 2)])
        .ok(2, (15, 20), &[Append(1, 3)])
        .failed(3, (35, 60), &[Append(1, 4)])
        .ok(2, (50, 55), &[Append(1, 5)])
        .ok(1, (70, 75), &[Append(1, 6)]);
    assert_eq!(met.check().concurrent, Some(4));
}

#[test]
fn values_with_the_stamp_of_another_run_are_foreign_and_not_garbage_of_this_one() {
    let (own, other) = ((7 << STAMP_SHIFT) + 1, (8 << STAMP_SHIFT) + 1);
    let history = Written::default()
        .ok(1, (0, 3), &[Append(1, own), List(1, vec![own])])
        .ok(2, (1, 4), &[List(1, vec![own, other]), Read(2, 1, other)])
        .ok(2, (5, 6), &[Write(3, own + 2, 1, other)]);
    assert_eq!(history.check().foreign, 3);
    let alone = Written::default().ok(1, (0, 3), &[Append(1, own), List(1, vec![own])]);
    assert_eq!(alone.check().foreign, 0);
}

/// Elle reads one process at a time: an invocation, then its completion, then the next invocation.
#[test]
fn every_process_of_an_exported_history_completes_what_it_invokes_before_it_goes_on() {
    let mut history = Written::default();
    let mut begun = 0;
    // A second attempt begins at the instant at which the first one failed, and some take no time at all.
    for (outcome, took) in
        [(Outcome::Failed, 5), (Outcome::Failed, 0), (Outcome::Ok, 3), (Outcome::Failed, 0), (Outcome::Ok, 0)]
    {
        for session in 1..3 {
            history.add(session, outcome, (begun, begun + took), &[Append(1, begun * 10 + u64::from(session))]);
        }
        begun += took;
    }
    history.add(1, Outcome::Unknown, (begun, u64::MAX), &[Append(1, 900)]);
    history.add(1, Outcome::Ok, (begun + 1, begun + 2), &[Append(1, 901)]);
    let mut text = String::new();
    history.0.write_edn(&mut text).unwrap();
    let field = |line: &str, name: &str| {
        let after = line.split_once(&format!(":{name} ")).unwrap().1;
        after.split([',', ' ']).next().unwrap().to_owned()
    };
    let (mut open, mut time) = (std::collections::BTreeMap::new(), 0);
    for line in text.lines() {
        let (process, kind) = (field(line, "process"), field(line, "type"));
        let before = open.insert(process, kind == ":invoke").unwrap_or(false);
        assert_ne!(before, kind == ":invoke", "{line}\n{text}");
        let now: u64 = field(line, "time").parse().unwrap();
        assert!(now >= time, "{line}");
        time = now;
    }
    assert_eq!(text.matches(":type :fail").count(), 6);
}
