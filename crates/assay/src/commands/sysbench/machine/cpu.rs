//! `cpu`: primes.

use assay_machine::cpu::Cpu;
use assay_machine::{Fault, Snapshot};
use assay_sysbench::options::Known;
use assay_sysbench::{Level, ValueKind};

use super::{Front, Manner, announce, fail, no_command, per_second, plan, run, say};

/// Its options.
pub const OPTIONS: &[Known] = &[Known {
    name: "cpu-max-prime",
    kind: ValueKind::Int,
    default: Some("10000"),
    help: "upper limit for primes generator",
}];

struct Speed;

impl Manner for Speed {
    fn block(&self, front: &Front, snapshot: &Snapshot) {
        say(front, "CPU speed:");
        say(front, &format!("    events per second: {:8.2}", per_second(snapshot, snapshot.events as f64)));
    }
}

/// Carries out a command.
pub fn obey(front: &mut Front, command: &str) -> u8 {
    if command != "run" {
        return no_command(front, "cpu", command);
    }
    let limit = front.options().int("cpu_max_prime");
    let Some(primes_below) = u64::try_from(limit).ok().filter(|limit| *limit > 0) else {
        return fail(front, &Fault::new(format!("Invalid value of cpu-max-prime: {limit}.")));
    };
    announce(front);
    front.voice().say(Level::Info, "Doing CPU performance benchmark\n");
    say(front, &format!("Prime numbers limit: {primes_below}\n"));
    run(front, Cpu { primes_below }, &Speed, &plan(front, front.settings().events))
}
