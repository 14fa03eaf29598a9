//! What a session waits for, by the server's name of the event.
//!
//! PostgreSQL names a type and an event (`Lock:transactionid`), the performance schema of MySQL and MariaDB an
//! instrument (`wait/io/file/innodb/innodb_log_file`); where it is off, there is what a session does by the list of
//! sessions (`state/Waiting for table metadata lock`), which has no name for waiting for a row, or for a page.

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitClass {
    /// It works, or the server does not name what it waits for.
    None,
    /// Locks held by other transactions.
    Locks,
    /// Locks inside the server.
    InternalLocks,
    /// The log: its buffer, its writing, its flushing.
    Log,
    /// Reads of data files.
    Reads,
    /// Writes to data files.
    Writes,
    /// The client: it sends, or has not received yet.
    Client,
    /// A timer: `pg_sleep`, `SLEEP`.
    Sleeps,
    /// A replica's confirmation.
    Replication,
    /// Other processes of the server, such as parallel workers.
    Processes,
    /// An extension of the server.
    Extension,
    /// Something else.
    Other,
}

/// Of the performance schema, these are not waits: an access to a table includes the work for it, and an idle session
/// has nothing to do.
const WORK: [&str; 3] = ["cpu", "idle", "wait/io/table/"];

/// Where an event's name begins with the first, and has the second in it, it is of the class. The first that fits
/// counts.
const CLASSES: [(&str, &str, WaitClass); 51] = [
    ("syncrep", "", WaitClass::Replication),
    ("ipc:syncrep", "", WaitClass::Replication),
    ("ipc:walsenderwait", "", WaitClass::Replication),
    ("ipc:commitdelay", "", WaitClass::Log),
    ("timeout:commitdelay", "", WaitClass::Log),
    ("timeout:spindelay", "", WaitClass::InternalLocks),
    ("timeout:", "", WaitClass::Sleeps),
    ("lock:", "", WaitClass::Locks),
    ("bufferpin", "", WaitClass::InternalLocks),
    ("buffer:", "", WaitClass::InternalLocks),
    ("lwlock", "syncrep", WaitClass::Replication),
    ("lwlock", "wal", WaitClass::Log),
    ("lwlock", "", WaitClass::InternalLocks),
    ("io:", "wal", WaitClass::Log),
    ("io:", "datafileread", WaitClass::Reads),
    ("io:", "datafileprefetch", WaitClass::Reads),
    ("io:", "aio", WaitClass::Reads),
    ("io:", "datafile", WaitClass::Writes),
    ("io:", "buffilewrite", WaitClass::Writes),
    ("io:", "buffileread", WaitClass::Reads),
    ("io:", "slruread", WaitClass::Reads),
    ("io:", "slru", WaitClass::Writes),
    ("ipc:", "", WaitClass::Processes),
    ("extension", "", WaitClass::Extension),
    ("client", "", WaitClass::Client),
    ("wait/lock/", "", WaitClass::Locks),
    ("wait/synch/", "binlog", WaitClass::Log),
    ("wait/synch/", "redo", WaitClass::Log),
    ("wait/synch/", "log", WaitClass::Log),
    ("wait/synch/", "semisync", WaitClass::Replication),
    ("wait/synch/", "sleep", WaitClass::Sleeps),
    ("wait/synch/cond/sql/item_func_sleep", "", WaitClass::Sleeps),
    ("wait/synch/", "", WaitClass::InternalLocks),
    ("wait/io/file/", "innodb_data_file", WaitClass::Reads),
    ("wait/io/file/", "dblwr", WaitClass::Writes),
    ("wait/io/file/", "log", WaitClass::Log),
    ("wait/io/socket/", "", WaitClass::Client),
    ("state/", "sleep", WaitClass::Sleeps),
    ("state/", "semi-sync", WaitClass::Replication),
    ("state/", "wsrep", WaitClass::Replication),
    ("state/", "handler commit", WaitClass::Log),
    ("state/", "binlog", WaitClass::Log),
    ("state/query end", "", WaitClass::Log),
    ("state/commit", "", WaitClass::Log),
    ("state/", "lock", WaitClass::Locks),
    ("state/sending to client", "", WaitClass::Client),
    ("state/writing to net", "", WaitClass::Client),
    ("state/reading from net", "", WaitClass::Client),
    ("state/waiting", "", WaitClass::Other),
    ("state/", "", WaitClass::None),
    ("", "", WaitClass::Other),
];

/// The class of an event.
pub(crate) fn wait_class(event: &str) -> WaitClass {
    let event = event.to_lowercase();
    if WORK.iter().any(|work| event.starts_with(work)) {
        return WaitClass::None;
    }
    let class = CLASSES.iter().find(|(begin, part, _)| event.starts_with(begin) && event.contains(part));
    class.map_or(WaitClass::Other, |(_, _, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_each_product_are_classed_by_what_is_waited_for() {
        for (event, class) in [
            ("CPU", WaitClass::None),
            ("Lock:transactionid", WaitClass::Locks),
            ("LWLock:BufferMapping", WaitClass::InternalLocks),
            ("LWLock:WALInsert", WaitClass::Log),
            ("LWLockTranche:lock_manager", WaitClass::InternalLocks),
            ("IO:WALSync", WaitClass::Log),
            ("IO:WalSync", WaitClass::Log),
            ("IO:DataFileRead", WaitClass::Reads),
            ("IO:DataFileExtend", WaitClass::Writes),
            ("IO:AioIoCompletion", WaitClass::Reads),
            ("Timeout:PgSleep", WaitClass::Sleeps),
            ("Timeout:SpinDelay", WaitClass::InternalLocks),
            ("IPC:SyncRep", WaitClass::Replication),
            ("IPC:ExecuteGather", WaitClass::Processes),
            ("Extension:Extension", WaitClass::Extension),
            ("Client:ClientWrite", WaitClass::Client),
            ("wait/lock/metadata/sql/mdl", WaitClass::Locks),
            ("wait/lock/table/sql/handler", WaitClass::Locks),
            ("wait/io/table/sql/handler", WaitClass::None),
            ("wait/io/file/innodb/innodb_log_file", WaitClass::Log),
            ("wait/io/file/innodb/innodb_data_file", WaitClass::Reads),
            ("wait/io/file/sql/binlog", WaitClass::Log),
            ("wait/synch/cond/sql/Item_func_sleep::cond", WaitClass::Sleeps),
            ("wait/synch/mutex/innodb/trx_sys_mutex", WaitClass::InternalLocks),
            ("wait/io/socket/sql/client_connection", WaitClass::Client),
            ("idle", WaitClass::None),
            ("state/User sleep", WaitClass::Sleeps),
            ("state/Waiting for table metadata lock", WaitClass::Locks),
            ("state/User lock", WaitClass::Locks),
            ("state/waiting for handler commit", WaitClass::Log),
            ("state/Commit", WaitClass::Log),
            ("state/Waiting for semi-sync ACK from slave", WaitClass::Replication),
            ("state/Sending data", WaitClass::None),
            ("state/executing", WaitClass::None),
            ("Something:New", WaitClass::Other),
        ] {
            assert_eq!(wait_class(event), class, "{event}");
        }
    }
}
