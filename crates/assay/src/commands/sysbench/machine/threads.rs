//! `threads`: the scheduler.

use assay_machine::threads::Threads;
use assay_sysbench::options::Known;
use assay_sysbench::{Level, ValueKind};

use super::{Front, Plain, announce, invalid, no_command, plan, run};

/// Its options.
pub const OPTIONS: &[Known] = &[
    Known {
        name: "thread-yields",
        kind: ValueKind::Int,
        default: Some("1000"),
        help: "number of yields to do per request",
    },
    Known { name: "thread-locks", kind: ValueKind::Int, default: Some("8"), help: "number of locks per thread" },
];

/// Carries out a command.
pub fn obey(front: &mut Front, command: &str) -> u8 {
    if command != "run" {
        return no_command(front, "threads", command);
    }
    let [yields, locks] = ["thread_yields", "thread_locks"].map(|key| front.options().int(key));
    let Ok(times) = u64::try_from(yields) else { return invalid(front, "thread-yields", yields) };
    let Some(number) = usize::try_from(locks).ok().filter(|number| *number > 0) else {
        return invalid(front, "thread-locks", locks);
    };
    announce(front);
    front.voice().say(Level::Info, "Doing thread subsystem performance test");
    front.voice().say(Level::Info, &format!("Thread yields per test: {yields} Locks used: {locks}"));
    run(front, Threads::new(times, number), &Plain, &plan(front, front.settings().events))
}
