//! The measured path against a null server, for counting: `measured-path PROTOCOL WORKLOAD TRANSACTIONS SESSIONS`.
//!
//! Runs the workload with so many sessions on one worker as `assay run` would, with everything switched on but the
//! kernel, and prints how many statements were answered. It measures nothing itself: `cargo xtask instructions` runs it
//! twice under callgrind and divides what the longer run costs more by the statements that it ran more.

#![forbid(unsafe_code)]

use assay_engine::{Control, End, Notice, Observer, run_inline};
use measured_path::{Null, NullMySql, NullPostgres, NullServer, plan_of};

struct Nobody;

impl Observer for Nobody {
    fn notice(&mut self, _notice: Notice<'_>) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [protocol, workload, transactions, sessions] = &arguments[..] else {
        panic!("usage: measured-path postgres|mysql WORKLOAD TRANSACTIONS SESSIONS");
    };
    let (server, url): (Box<dyn NullServer>, _) = match &**protocol {
        "postgres" => (Box::<NullPostgres>::default(), "postgres://app@127.0.0.1:1/bench?sslmode=disable"),
        "mysql" => (Box::<NullMySql>::default(), "mysql://app@127.0.0.1:1/bench?ssl-mode=disabled"),
        other => panic!("no protocol {other}"),
    };
    let plan = plan_of(&[
        workload,
        "--db",
        url,
        "--sessions",
        sessions,
        "--workers=1",
        "--seed=1",
        "--time=0",
        "--transactions",
        transactions,
    ]);
    let outcome = run_inline(plan, Null::new(server), &Control::default(), &mut Nobody);
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    let total = &outcome.stages[0].total;
    assert!(total.errors.is_empty(), "{:?}", total.errors);
    println!("{}", total.statements.iter().map(|class| class.count).sum::<u64>());
}
