//! Results of any size: rows beyond a limit are collected while they arrive, and not kept.

use std::sync::{Arc, Mutex};

use assay_record::Execution;
use assay_run::client::{Client, Refused};
use assay_seam::{Nanos, Outlet, Rows, ServerReads};
use sha2::{Digest, Sha256};

/// Rows of one result that are kept until it has arrived; further ones are collected before that.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// What is known of rows, from one or several parts of a result.
pub(in crate::commands) trait Collect: Default + Send + 'static {
    /// Adds the rows of a part.
    fn add(&mut self, rows: &Rows);
}

/// Rows that were collected.
pub(in crate::commands) struct Collected<T> {
    pub(in crate::commands) answer: T,
    /// From sending the statement to its last row.
    pub(in crate::commands) elapsed: Nanos,
    /// Whether rows were collected before the last one had arrived: that is in the time, too.
    pub(in crate::commands) is_large: bool,
    /// What the server read, if it says so.
    pub(in crate::commands) reads: Option<ServerReads>,
}

/// Executes a statement, and collects its rows. Also returns the time until the server refused it.
pub(in crate::commands) fn execute<T: Collect>(
    client: &mut Client,
    sql: &str,
    patience: Nanos,
) -> Result<Collected<T>, (Refused, Nanos)> {
    let parts = Arc::new(Mutex::new((T::default(), false)));
    let of_outlet = Arc::clone(&parts);
    let take = move |rows: &Rows| {
        let (answer, is_large) = &mut *of_outlet.lock().expect("nobody panics with it");
        answer.add(rows);
        *is_large = true;
    };
    let before = client.now();
    let rest = client.attempt_large(sql, patience, Outlet { bytes_max: KEPT_BYTES_MAX, take: Box::new(take) });
    let elapsed = client.now() - before;
    let rest = rest.map_err(|refused| (refused, elapsed))?;
    let (mut answer, is_large) = std::mem::take(&mut *parts.lock().expect("nobody panics with it"));
    answer.add(&rest);
    client.reuse(rest);
    Ok(Collected { answer, elapsed, is_large, reads: client.reads() })
}

/// For the record.
pub(in crate::commands) fn execution(
    round: u32,
    elapsed: Nanos,
    reads: Option<ServerReads>,
    plan: Option<u32>,
) -> Execution {
    let (read_rows, read_bytes) = (reads.map(|reads| reads.rows), reads.map(|reads| reads.bytes));
    Execution { round, elapsed_ns: elapsed.0, plan, read_rows, read_bytes }
}

/// A hash of a row after `before`; cells without a value are NULL. The sum of such hashes does not depend on the order
/// of rows.
pub(in crate::commands) fn row_hash<T: AsRef<[u8]>>(before: &[u8], cells: impl Iterator<Item = Option<T>>) -> u64 {
    let mut hasher = Sha256::new_with_prefix(before);
    for cell in cells {
        let bytes = cell.as_ref().map(T::as_ref);
        hasher.update(bytes.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        hasher.update(bytes.unwrap_or_default());
    }
    u64::from_le_bytes(hasher.finalize()[..8].try_into().expect("8 bytes"))
}
