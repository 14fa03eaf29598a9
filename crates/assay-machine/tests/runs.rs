//! Complete runs of each test through the crate's interface: the counts match what was requested.

use std::sync::Arc;

use assay_machine::cpu::CpuTest;
use assay_machine::memory::{Access, MemoryOperation, MemoryOptions, MemoryTest};
use assay_machine::mutex::Mutexes;
use assay_machine::threads::Threads;
use assay_machine::{MachinePlan, MachineTest, Snapshot, TestMoment, run};

/// A run of three threads; the times at which threads were ready, started, and finished.
#[track_caller]
fn check<T: MachineTest>(test: T, events: Option<u64>) -> Snapshot {
    let mut moments = Vec::new();
    let plan = MachinePlan { events, ..MachinePlan::new(3) };
    let outcome = run(&Arc::new(test), &plan, |moment| match moment {
        TestMoment::Ready(_) => moments.push("ready"),
        TestMoment::Started => moments.push("started"),
        TestMoment::Done => moments.push("done"),
        _ => (),
    });
    let outcome = outcome.unwrap_or_else(|fault| panic!("{:?}", fault.lines));
    assert_eq!(moments, ["ready", "ready", "ready", "started", "done"]);
    let (snapshot, latencies) = (outcome.snapshot, outcome.unfinished);
    assert_eq!(latencies, None);
    assert_eq!(snapshot.latencies.buckets.iter().sum::<u64>(), snapshot.events);
    assert_eq!(snapshot.shares.len(), 3);
    assert!(snapshot.latencies.min * snapshot.events.max(1) as u32 <= snapshot.latencies.sum);
    assert!(snapshot.latencies.sum <= snapshot.total * 3);
    snapshot
}

#[test]
fn the_processor_finds_its_primes_as_often_as_is_allowed() {
    let snapshot = check(CpuTest { primes_below: 1000 }, Some(50));
    assert_eq!((snapshot.events, snapshot.reads, snapshot.writes), (50, 0, 0));
}

#[test]
fn memory_is_moved_until_the_total_is() {
    let options = MemoryOptions {
        block: 1 << 12,
        total: 1 << 20,
        threads: 3,
        local: false,
        huge: false,
        operation: MemoryOperation::Write,
        access: Access::Sequential,
        seed: 1,
    };
    for (operation, access, local) in [
        (MemoryOperation::Write, Access::Sequential, false),
        (MemoryOperation::Read, Access::Random, true),
        (MemoryOperation::Write, Access::Random, true),
    ] {
        let options = MemoryOptions { operation, access, local, ..options };
        let snapshot = check(MemoryTest::new(options).unwrap(), None);
        // Each thread transfers its share, in whole blocks.
        assert!((252..=256).contains(&snapshot.events), "{}", snapshot.events);
    }
}

#[test]
fn a_block_that_no_word_fits_into_is_refused() {
    for (bytes, right) in [(0, false), (4, false), (8, true), (12, false), (1 << 20, true)] {
        assert_eq!(MemoryTest::is_block_size(bytes), right, "{bytes}");
    }
}

#[test]
fn every_thread_fights_once_for_its_locks() {
    let snapshot = check(Mutexes::new(7, 1000, 1, 5), None);
    assert_eq!(snapshot.events, 3);
    assert!(snapshot.shares.iter().all(|share| share.events == 1));
}

#[test]
fn threads_yield_as_many_events_as_are_allowed() {
    assert_eq!(check(Threads::new(10, 2), Some(60)).events, 60);
}
