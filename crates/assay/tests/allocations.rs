//! The whole measured path, from the script through engine and protocol to the histograms and back, allocates nothing per
//! statement once it is warm.
//!
//! A file of its own, since the counting allocator serves the whole test program. Lua's memory is Lua's own matter, and
//! what sockets take is counted beside them, in assay-io.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use assay_engine::{Control, End, Notice, Observer, run_inline};

mod null;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Nobody;

impl Observer for Nobody {
    fn notice(&mut self, _notice: Notice<'_>) {}
}

/// Allocations of a whole run, and statements it ran.
fn allocations(server: Box<dyn null::Server>, words: &[&str], transactions: u64) -> (u64, u64) {
    let transactions = transactions.to_string();
    let plan = null::plan_of(&[words, &["--sessions=20", "--workers=1", "--transactions", &transactions]].concat());
    let before = ALLOCATIONS.get();
    let outcome = run_inline(plan, null::Null::new(server), &Control::default(), &mut Nobody);
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    let statements = outcome.stages[0].total.statements.iter().map(|class| class.count).sum();
    (ALLOCATIONS.get() - before, statements)
}

/// A longer run allocates as often as a shorter one: what comes on top is a buffer that grew late, not one per
/// statement.
#[track_caller]
fn check<S: null::Server + Default + 'static>(words: &[&str], transactions: u64) {
    let (short, few) = allocations(Box::<S>::default(), words, transactions);
    let (long, many) = allocations(Box::<S>::default(), words, 4 * transactions);
    assert!(many > few + 5000, "{few} and {many} statements");
    let more = long.saturating_sub(short);
    println!("{words:?}: {more} allocations in {} statements", many - few);
    assert!(more * 500 < many - few, "{more} allocations in {} statements", many - few);
}

const POSTGRES: &str = "--db=postgres://app@127.0.0.1:1/bench?sslmode=disable";
const MYSQL: &str = "--db=mysql://app@127.0.0.1:1/bench?ssl-mode=disabled";

#[test]
fn statements_of_the_bundled_workloads_allocate_nothing_once_warm() {
    check::<null::Postgres>(&["oltp_point_select", POSTGRES, "--time=0"], 4000);
    check::<null::MySql>(&["oltp_point_select", MYSQL, "--time=0"], 4000);
    check::<null::Postgres>(&["oltp_read_write", POSTGRES, "--time=0"], 400);
    check::<null::MySql>(&["oltp_read_write", MYSQL, "--time=0"], 400);
    // Text that differs every time, in the protocols without preparation.
    check::<null::Postgres>(&["select_random_points", POSTGRES, "--time=0"], 4000);
}

#[test]
fn an_open_loop_allocates_nothing_per_transaction_once_warm() {
    let words = ["oltp_point_select", POSTGRES, "--time=0", "--rate=50000", "--arrival=poisson"];
    check::<null::Postgres>(&words, 4000);
}
