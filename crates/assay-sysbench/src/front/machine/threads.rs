//! `threads`: the scheduler.

use crate::options::KnownOption;
use crate::{LogLevel, ValueKind};
use assay_machine::threads::Threads;

use super::{Invocation, PlainTest, announce, invalid, no_command, plan, run};

/// Its options.
pub(in crate::front) const OPTIONS: &[KnownOption] = &[
    KnownOption {
        name: "thread-yields",
        kind: ValueKind::Int,
        default: Some("1000"),
        help: "number of yields to do per request",
    },
    KnownOption { name: "thread-locks", kind: ValueKind::Int, default: Some("8"), help: "number of locks per thread" },
];

/// Runs a command.
pub(in crate::front) fn obey(invocation: &Invocation, command: &str) -> u8 {
    if command != "run" {
        return no_command(invocation, "threads", command);
    }
    let [yields, locks] = ["thread_yields", "thread_locks"].map(|key| invocation.options.int(key));
    let Ok(times) = u64::try_from(yields) else { return invalid(invocation, "thread-yields", yields) };
    let Some(number) = usize::try_from(locks).ok().filter(|number| *number > 0) else {
        return invalid(invocation, "thread-locks", locks);
    };
    announce(invocation);
    invocation.console.say(LogLevel::Info, "Doing thread subsystem performance test");
    invocation.console.say(LogLevel::Info, &format!("Thread yields per test: {yields} Locks used: {locks}"));
    run(invocation, Threads::new(times, number), &PlainTest, &plan(invocation, invocation.settings.events))
}
