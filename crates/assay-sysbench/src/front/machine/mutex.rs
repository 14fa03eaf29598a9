//! `mutex`: locks.

use crate::options::KnownOption;
use crate::{LogLevel, ValueKind};
use assay_machine::mutex::Mutexes;

use super::{Invocation, PlainTest, announce, invalid, no_command, plan, run};

/// Its options.
pub(in crate::front) const OPTIONS: &[KnownOption] = &[
    KnownOption { name: "mutex-num", kind: ValueKind::Int, default: Some("4096"), help: "total size of mutex array" },
    KnownOption {
        name: "mutex-locks",
        kind: ValueKind::Int,
        default: Some("50000"),
        help: "number of mutex locks to do per thread",
    },
    KnownOption {
        name: "mutex-loops",
        kind: ValueKind::Int,
        default: Some("10000"),
        help: "number of empty loops to do outside mutex lock",
    },
];

/// Runs a command.
pub(in crate::front) fn obey(invocation: &Invocation, command: &str) -> u8 {
    if command != "run" {
        return no_command(invocation, "mutex", command);
    }
    let [num, locks, loops] = ["mutex_num", "mutex_locks", "mutex_loops"].map(|key| invocation.options.int(key));
    // With zero locks the original never ends.
    let Some(number) = usize::try_from(num).ok().filter(|number| *number > 0) else {
        return invalid(invocation, "mutex-num", num);
    };
    let Some(rounds) = u64::try_from(locks).ok().filter(|rounds| *rounds > 0) else {
        return invalid(invocation, "mutex-locks", locks);
    };
    let Ok(between) = usize::try_from(loops) else { return invalid(invocation, "mutex-loops", loops) };
    announce(invocation);
    invocation.console.say(LogLevel::Info, "Doing mutex performance test");
    let test = Mutexes::new(number, rounds, between, invocation.seed());
    run(invocation, test, &PlainTest, &plan(invocation, invocation.settings.events))
}
