//! Flushing InnoDB, and MyRocks if it is loaded.

use std::time::Duration;

use assay_client::Client;
use assay_lab::product::Settled;
use assay_lab::wait::{self, Stopwatch};

/// Makes InnoDB flush its dirty pages as fast as possible, until almost none are left. There is no command for it:
/// settings that make it hurry are set, and restored.
pub(super) fn settle(session: &mut Client, patience: Duration) -> std::result::Result<Settled, String> {
    // Each with the value that makes it hurry.
    let hurry = [
        ("innodb_max_dirty_pages_pct_lwm", "0"),
        ("innodb_max_dirty_pages_pct", "0"),
        ("innodb_idle_flush_pct", "100"),
    ];
    let mut before = Vec::new();
    for (name, value) in hurry {
        let shown = one(session, &format!("SHOW GLOBAL VARIABLES LIKE '{name}'"));
        if let Some(shown) = shown.filter(|_| session.rows(&format!("SET GLOBAL {name} = {value}")).is_ok()) {
            before.push((name, shown));
        }
    }
    let written = write_out(session, patience);
    // In reverse order, because the server limits some settings by others.
    for (name, value) in before.iter().rev() {
        session.rows(&format!("SET GLOBAL {name} = {value}"))?;
    }
    let mut settled = written?;
    if let Some((words, done)) = rocks(session) {
        settled.reached.push(words);
        settled.complete &= done;
    }
    Ok(settled)
}

/// Waits for the pages, then for the checkpoint that follows them.
fn write_out(session: &mut Client, patience: Duration) -> std::result::Result<Settled, String> {
    let watch = Stopwatch::start();
    let mut dirty = 0;
    let clean = wait::until(patience, || {
        let pages = one(session, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'");
        dirty = pages.and_then(|pages| pages.parse::<u64>().ok()).ok_or("it does not say how many pages are dirty")?;
        Ok::<_, String>((dirty <= DIRTY_PAGES).then_some(()))
    })?;
    let mut reached = vec![format!("{dirty} dirty pages")];
    // Some versions make no checkpoint while nothing is written: the current state is reported.
    let left = patience.saturating_sub(watch.elapsed()).min(CHECKPOINT_PATIENCE);
    let mut age = checkpoint_age(session);
    let _ = wait::until(left, || {
        age = checkpoint_age(session);
        Ok::<_, ()>(age.is_none_or(|age| age <= CHECKPOINT_AGE).then_some(()))
    });
    reached.extend(age.map(|age| format!("checkpoint age {age} bytes")));
    Ok(Settled { reached, complete: clean.is_some() })
}

/// Bytes of redo log that a recovery would have to read; `None`: not reported.
fn checkpoint_age(session: &mut Client) -> Option<u64> {
    let row = session.rows("SHOW ENGINE INNODB STATUS").ok()?.into_iter().next()?;
    age_in(row.last()?.as_ref()?)
}

fn age_in(status: &str) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(name)?.trim_start_matches([' ', '=', ':']).trim().parse().ok())
    };
    number("Log sequence number")?.checked_sub(number("Last checkpoint at")?)
}

/// This little hardly matters for a recovery.
const CHECKPOINT_AGE: u64 = 64 << 10;
/// A checkpoint follows the pages within a second, if it follows at all.
const CHECKPOINT_PATIENCE: Duration = Duration::from_secs(5);
/// This few are always dirty again.
const DIRTY_PAGES: u64 = 32;

/// Flushes MyRocks, if it is loaded: the result in words, and whether it is complete.
fn rocks(session: &mut Client) -> Option<(String, bool)> {
    one(session, "SHOW GLOBAL VARIABLES LIKE 'rocksdb_force_flush_memtable_now'")?;
    let orders = ["rocksdb_force_flush_memtable_now", "rocksdb_force_flush_memtable_and_lzero_now"];
    let refused = orders.iter().find_map(|order| session.rows(&format!("SET GLOBAL {order} = 1")).err());
    Some(match refused {
        None => ("MyRocks flushed, level 0 compacted".to_owned(), true),
        Some(words) => (format!("MyRocks was not flushed: {words}"), false),
    })
}

/// The name and value of a global variable, or of a status variable.
fn one(session: &mut Client, sql: &str) -> Option<String> {
    session.rows(sql).ok()?.into_iter().next()?.into_iter().nth(1).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_the_checkpoint_is_read_from_every_versions_words() {
        let old = "LOG\n---\nLog sequence number 2543\nLog flushed up to   2543\nLast checkpoint at  2500\n";
        let new = "Log sequence number          19574219\nLog buffer assigned up to    19574219\n\
                   Last checkpoint at           19574219\n";
        assert_eq!((age_in(old), age_in(new), age_in("nothing")), (Some(43), Some(0), None));
    }
}
