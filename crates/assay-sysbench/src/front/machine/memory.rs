//! `memory`: blocks read and written.

use crate::ValueKind;
use crate::options::KnownOption;
use assay_machine::Snapshot;
use assay_machine::memory::{Access, MemoryOperation, MemoryOptions, MemoryTest};

use super::{Invocation, MIB, Manner, announce, fail, invalid, no_command, per_second, plan, run, say};

/// Its options.
pub(in crate::front) const OPTIONS: &[KnownOption] = &[
    KnownOption {
        name: "memory-block-size",
        kind: ValueKind::Size,
        default: Some("1K"),
        help: "size of memory block for test",
    },
    KnownOption {
        name: "memory-total-size",
        kind: ValueKind::Size,
        default: Some("100G"),
        help: "total size of data to transfer",
    },
    KnownOption {
        name: "memory-scope",
        kind: ValueKind::Text,
        default: Some("global"),
        help: "memory access scope {global,local}",
    },
    KnownOption {
        name: "memory-hugetlb",
        kind: ValueKind::Bool,
        default: Some("off"),
        help: "allocate memory from HugeTLB pool",
    },
    KnownOption {
        name: "memory-oper",
        kind: ValueKind::Text,
        default: Some("write"),
        help: "type of memory operations {read, write, none}",
    },
    KnownOption {
        name: "memory-access-mode",
        kind: ValueKind::Text,
        default: Some("seq"),
        help: "memory access mode {seq,rnd}",
    },
];

struct MemorySpeed(MemoryOptions);

impl MemorySpeed {
    fn mib(&self, snapshot: &Snapshot) -> f64 {
        snapshot.events as f64 * self.0.block as f64 / MIB
    }
}

impl Manner for MemorySpeed {
    fn block(&self, invocation: &Invocation, snapshot: &Snapshot) {
        let (events, mib) = (snapshot.events, self.mib(snapshot));
        let rate = per_second(snapshot, events as f64);
        say(invocation, &format!("Total operations: {events} ({rate:8.2} per second)\n"));
        if self.0.operation != MemoryOperation::None {
            let rate = per_second(snapshot, mib);
            say(invocation, &format!("{mib:4.2} MiB transferred ({rate:4.2} MiB/sec)\n"));
        }
    }

    fn line(&self, invocation: &Invocation, snapshot: &Snapshot) -> bool {
        let line = format!("{:4.2} MiB/sec", per_second(snapshot, self.mib(snapshot)));
        invocation.console.with(|log| log.timestamp(snapshot.total.as_secs_f64(), &line));
        true
    }
}

/// The options, or the exit code if they were refused.
fn options(invocation: &Invocation) -> Result<MemoryOptions, u8> {
    let given = &invocation.options;
    let block = given.number("memory_block_size") as u64;
    if !MemoryTest::is_block_size(block) {
        let value = invocation.as_written("memory_block_size").unwrap_or_else(|| block.to_string());
        return Err(invalid(invocation, "memory-block-size", value));
    }
    let word = |key: &str| given.text(key).to_owned();
    let local = match word("memory_scope").as_str() {
        "global" => false,
        "local" => true,
        other => return Err(invalid(invocation, "memory-scope", other)),
    };
    let operation = match word("memory_oper").as_str() {
        "read" => MemoryOperation::Read,
        "write" => MemoryOperation::Write,
        "none" => MemoryOperation::None,
        other => return Err(invalid(invocation, "memory-oper", other)),
    };
    let access = match word("memory_access_mode").as_str() {
        "seq" => Access::Sequential,
        "rnd" => Access::Random,
        other => return Err(invalid(invocation, "memory-access-mode", other)),
    };
    Ok(MemoryOptions {
        block: block as usize,
        total: given.number("memory_total_size") as u64,
        threads: invocation.settings.threads,
        local,
        huge: given.is_on("memory_hugetlb"),
        operation,
        access,
        seed: invocation.seed(),
    })
}

/// Runs a command.
pub(in crate::front) fn obey(invocation: &Invocation, command: &str) -> u8 {
    if command != "run" {
        return no_command(invocation, "memory", command);
    }
    let options = match options(invocation) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let test = match MemoryTest::new(options) {
        Ok(test) => test,
        Err(fault) => return fail(invocation, &fault),
    };
    announce(invocation);
    let given = &invocation.options;
    say(invocation, "Running memory speed test with the following options:");
    say(invocation, &format!("  block size: {}KiB", options.block / 1024));
    say(invocation, &format!("  total size: {}MiB", options.total / 1_048_576));
    say(invocation, &format!("  operation: {}", given.text("memory_oper")));
    say(invocation, &format!("  scope: {}\n", given.text("memory_scope")));
    // As in the original: the total size is the limit, whatever --events is.
    run(invocation, test, &MemorySpeed(options), &plan(invocation, None))
}
