//! The whole measured path, from the script through engine and protocol to the histograms and back, does not allocate
//! per statement once it is warm.
//!
//! In a file of its own, because the counting allocator covers the whole test program. Lua's own memory is not counted,
//! and sockets are tested in assay-io.

use allocation_counter::measure;
use assay_engine::{Control, End, Notice, Observer, run_inline};
use measured_path::{Null, NullMySql, NullPostgres, NullServer, plan_of};

struct Nobody;

impl Observer for Nobody {
    fn notice(&mut self, _notice: Notice<'_>) {}
}

/// Number of allocations of a whole run, and of statements it ran.
fn allocations(server: Box<dyn NullServer>, words: &[&str], transactions: u64) -> (u64, u64) {
    let transactions = transactions.to_string();
    let plan = plan_of(&[words, &["--sessions=20", "--workers=1", "--transactions", &transactions]].concat());
    let mut statements = 0;
    let counted = measure(|| {
        let outcome = run_inline(plan, Null::new(server), &Control::default(), &mut Nobody);
        assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
        statements = outcome.stages[0].total.statements.iter().map(|class| class.count).sum();
    });
    (counted.count_total, statements)
}

/// A longer run allocates as often as a shorter one; a difference is a buffer that grew late, not one per statement.
#[track_caller]
fn check<S: NullServer + Default + 'static>(words: &[&str], transactions: u64) {
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
    check::<NullPostgres>(&["oltp_point_select", POSTGRES, "--time=0"], 4000);
    check::<NullMySql>(&["oltp_point_select", MYSQL, "--time=0"], 4000);
    check::<NullPostgres>(&["oltp_read_write", POSTGRES, "--time=0"], 400);
    check::<NullMySql>(&["oltp_read_write", MYSQL, "--time=0"], 400);
    // Text that is different every time, in the protocols without prepared statements.
    check::<NullPostgres>(&["select_random_points", POSTGRES, "--time=0"], 4000);
}

#[test]
fn an_open_loop_allocates_nothing_per_transaction_once_warm() {
    let words = ["oltp_point_select", POSTGRES, "--time=0", "--rate=50000", "--arrival=poisson"];
    check::<NullPostgres>(&words, 4000);
}
