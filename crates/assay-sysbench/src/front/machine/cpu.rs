//! `cpu`: primes.

use crate::options::KnownOption;
use crate::{LogLevel, ValueKind};
use assay_machine::cpu::CpuTest;
use assay_machine::{MachineFault, Snapshot};

use super::{Invocation, Manner, announce, fail, no_command, per_second, plan, run, say};

/// Its options.
pub(in crate::front) const OPTIONS: &[KnownOption] = &[KnownOption {
    name: "cpu-max-prime",
    kind: ValueKind::Int,
    default: Some("10000"),
    help: "upper limit for primes generator",
}];

struct CpuSpeed;

impl Manner for CpuSpeed {
    fn block(&self, invocation: &Invocation, snapshot: &Snapshot) {
        say(invocation, "CPU speed:");
        say(invocation, &format!("    events per second: {:8.2}", per_second(snapshot, snapshot.events as f64)));
    }
}

/// Runs a command.
pub(in crate::front) fn obey(invocation: &Invocation, command: &str) -> u8 {
    if command != "run" {
        return no_command(invocation, "cpu", command);
    }
    let limit = invocation.options.int("cpu_max_prime");
    let Some(primes_below) = u64::try_from(limit).ok().filter(|limit| *limit > 0) else {
        return fail(invocation, &MachineFault::new(format!("Invalid value of cpu-max-prime: {limit}.")));
    };
    announce(invocation);
    invocation.console.say(LogLevel::Info, "Doing CPU performance benchmark\n");
    say(invocation, &format!("Prime numbers limit: {primes_below}\n"));
    run(invocation, CpuTest { primes_below }, &CpuSpeed, &plan(invocation, invocation.settings.events))
}
