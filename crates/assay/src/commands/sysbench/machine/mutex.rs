//! `mutex`: locks.

use assay_machine::mutex::Mutexes;
use assay_sysbench::options::Known;
use assay_sysbench::{Level, ValueKind};

use super::{Front, Plain, announce, invalid, no_command, plan, run};

/// Its options.
pub const OPTIONS: &[Known] = &[
    Known { name: "mutex-num", kind: ValueKind::Int, default: Some("4096"), help: "total size of mutex array" },
    Known {
        name: "mutex-locks",
        kind: ValueKind::Int,
        default: Some("50000"),
        help: "number of mutex locks to do per thread",
    },
    Known {
        name: "mutex-loops",
        kind: ValueKind::Int,
        default: Some("10000"),
        help: "number of empty loops to do outside mutex lock",
    },
];

/// Carries out a command.
pub fn obey(front: &mut Front, command: &str) -> u8 {
    if command != "run" {
        return no_command(front, "mutex", command);
    }
    let [num, locks, loops] = ["mutex_num", "mutex_locks", "mutex_loops"].map(|key| front.options().int(key));
    // With none of them the original never ends.
    let Some(number) = usize::try_from(num).ok().filter(|number| *number > 0) else {
        return invalid(front, "mutex-num", num);
    };
    let Some(rounds) = u64::try_from(locks).ok().filter(|rounds| *rounds > 0) else {
        return invalid(front, "mutex-locks", locks);
    };
    let Ok(between) = usize::try_from(loops) else { return invalid(front, "mutex-loops", loops) };
    announce(front);
    front.voice().say(Level::Info, "Doing mutex performance test");
    let test = Mutexes::new(number, rounds, between, front.seed());
    run(front, test, &Plain, &plan(front, front.settings().events))
}
