//! Histories in the form that Elle reads.

use std::fmt::{self, Write};

use crate::history::{History, Operation, Outcome};

impl History {
    /// Writes the history as EDN: an invocation and a completion per transaction, in the order of their instants, with
    /// `:r`, `:append` and `:w` operations. Registers are written as `rw-register` histories, without the numbers of
    /// their versions; counters and totals are left out.
    pub fn write_edn(&self, text: &mut dyn Write) -> fmt::Result {
        // Of equal instants, invocations come first: such transactions are concurrent. But the next transaction of a
        // session, such as a second attempt, begins after the one before it has ended, even within one instant.
        let mut events: Vec<(u64, u32, usize, bool)> = Vec::with_capacity(2 * self.len());
        let mut ends = crate::hash::IntMap::<u32, (u64, u32)>::default();
        for (index, transaction) in self.transactions().enumerate() {
            let (last, place) = ends.get(&transaction.session).copied().unwrap_or_default();
            let follows = place > 0 && last != u64::MAX && transaction.begin <= last;
            let begin = if follows { (last, place + 1) } else { (transaction.begin, 0) };
            let end = (transaction.end, 1).max((begin.0, begin.1 + 1));
            events.push((begin.0, begin.1, index, true));
            events.push((end.0, end.1, index, false));
            ends.insert(transaction.session, end);
        }
        events.sort_unstable();
        // A process of Elle whose operation has an unknown outcome is never used again.
        let mut processes = crate::hash::IntMap::<u32, u64>::default();
        let mut of_transaction = vec![0u64; self.len()];
        let mut fresh = self.transactions().map(|one| u64::from(one.session) + 1).max().unwrap_or(0);
        for (number, (instant, _, index, is_begin)) in events.into_iter().enumerate() {
            let transaction = self.transaction(index);
            if is_begin {
                let process = processes.entry(transaction.session).or_insert(u64::from(transaction.session));
                of_transaction[index] = *process;
                if transaction.outcome == Outcome::Unknown {
                    *process = fresh;
                    fresh += 1;
                }
            }
            let kind = match transaction.outcome {
                _ if is_begin => "invoke",
                Outcome::Ok => "ok",
                Outcome::Failed => "fail",
                Outcome::Unknown => "info",
            };
            let process = of_transaction[index];
            write!(text, "{{:index {number}, :time {}, :type :{kind}, ", instant.min(i64::MAX as u64))?;
            write!(text, ":process {process}, :f :txn, :value [")?;
            let mut separator = "";
            for operation in transaction.operations() {
                let knows = !is_begin;
                match operation {
                    Operation::Write { replaced: Some(before), .. } if before.is_counted() => continue,
                    Operation::Read { version, .. } if version.is_counted() => continue,
                    Operation::Append { key, value } => write!(text, "{separator}[:append {key} {value}]")?,
                    Operation::Write { key, value, .. } => write!(text, "{separator}[:w {key} {value}]")?,
                    Operation::ReadList { key, .. } | Operation::Read { key, .. } if !knows => {
                        write!(text, "{separator}[:r {key} nil]")?;
                    }
                    Operation::ReadList { key, values } => {
                        write!(text, "{separator}[:r {key} [")?;
                        for (i, value) in values.iter().enumerate() {
                            write!(text, "{}{value}", if i > 0 { " " } else { "" })?;
                        }
                        text.write_str("]]")?;
                    }
                    Operation::Read { key, version } if version.number == 0 => {
                        write!(text, "{separator}[:r {key} nil]")?;
                    }
                    Operation::Read { key, version } => write!(text, "{separator}[:r {key} {}]", version.value)?,
                    Operation::Total { .. } => continue,
                }
                separator = " ";
            }
            text.write_str("]}\n")?;
        }
        Ok(())
    }
}
