//! The metrics by name: the same for all products, with the unit as a suffix unless it is a count.

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What its values are in.
    pub unit: Unit,
    /// Whether differences count, or values.
    pub reading: Reading,
}

/// What values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Us,
}

/// How values are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It grows; differences count.
    Counter,
    /// The value at that instant.
    Gauge,
}

/// The metric of this name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

const fn counter(name: &'static str, unit: Unit) -> Metric {
    Metric { name, unit, reading: Reading::Counter }
}

const fn gauge(name: &'static str, unit: Unit) -> Metric {
    Metric { name, unit, reading: Reading::Gauge }
}

/// All of them: servers' first, then those of their processes, then machines'.
pub const METRICS: &[Metric] = &[
    counter("commits", Unit::Count),
    counter("rollbacks", Unit::Count),
    counter("write_conflicts", Unit::Count),
    // Pages requested, and those of them that were not in the server's own memory.
    counter("buffer_reads", Unit::Count),
    counter("buffer_misses", Unit::Count),
    counter("bytes_read", Unit::Bytes),
    counter("pages_written", Unit::Count),
    counter("doublewrite_pages", Unit::Count),
    // Pages flushed, by reason: to keep the checkpoint young, while idle, because the log is nearly full, to free
    // memory.
    counter("flush_adaptive_pages", Unit::Count),
    counter("flush_background_pages", Unit::Count),
    counter("flush_sync_pages", Unit::Count),
    counter("flush_lru_pages", Unit::Count),
    gauge("dirty_pages", Unit::Count),
    counter("log_bytes", Unit::Bytes),
    counter("log_written_bytes", Unit::Bytes),
    counter("log_full_pages", Unit::Count),
    counter("log_fsyncs", Unit::Count),
    // Times the log buffer was full.
    counter("log_buffer_full", Unit::Count),
    gauge("checkpoint_age_bytes", Unit::Bytes),
    gauge("checkpoint_age_limit_bytes", Unit::Bytes),
    counter("checkpoints_timed", Unit::Count),
    counter("checkpoints_requested", Unit::Count),
    // Old row versions that have not been purged yet.
    gauge("purge_lag", Unit::Count),
    // Transactions started since the oldest snapshot still in use.
    gauge("oldest_snapshot_age", Unit::Count),
    // Of the replica that is furthest behind: log that it has not applied yet, and how old its state is.
    gauge("replica_lag_bytes", Unit::Bytes),
    gauge("replica_lag_us", Unit::Us),
    counter("lock_waits", Unit::Count),
    counter("lock_wait_us", Unit::Us),
    counter("deadlocks", Unit::Count),
    counter("temporary_bytes", Unit::Bytes),
    counter("temporary_disk_tables", Unit::Count),
    gauge("active_sessions", Unit::Count),
    // Statements counted by digest, and their execution time.
    counter("statements", Unit::Count),
    counter("statement_us", Unit::Us),
    gauge("data_bytes", Unit::Bytes),
    // Disk space used by the files in the data directory.
    gauge("data_folder_bytes", Unit::Bytes),
    counter("rocksdb_stall_us", Unit::Us),
    counter("rocksdb_compact_read_bytes", Unit::Bytes),
    counter("rocksdb_compact_written_bytes", Unit::Bytes),
    counter("rocksdb_flush_written_bytes", Unit::Bytes),
    counter("rocksdb_wal_bytes", Unit::Bytes),
    counter("rocksdb_wal_syncs", Unit::Count),
    // Commands of document databases.
    counter("find_commands", Unit::Count),
    counter("insert_commands", Unit::Count),
    counter("update_commands", Unit::Count),
    counter("delete_commands", Unit::Count),
    counter("getmore_commands", Unit::Count),
    counter("aggregate_commands", Unit::Count),
    gauge("connections", Unit::Count),
    // Memory that the server has accounted for.
    gauge("tracked_memory_bytes", Unit::Bytes),
    // What a column store calculates from time to time: since its start, memory of its process and of its allocator,
    // most parts in a partition, what replicas have still to do.
    gauge("uptime_us", Unit::Us),
    gauge("resident_bytes", Unit::Bytes),
    gauge("allocated_bytes", Unit::Bytes),
    gauge("allocator_resident_bytes", Unit::Bytes),
    gauge("mark_cache_bytes", Unit::Bytes),
    gauge("partition_parts_max", Unit::Count),
    gauge("replication_queue", Unit::Count),
    // The pooler in front of the server: clients and server connections, the longest wait of a client, and sums.
    gauge("pooler_clients_active", Unit::Count),
    gauge("pooler_clients_waiting", Unit::Count),
    gauge("pooler_servers_active", Unit::Count),
    gauge("pooler_servers_idle", Unit::Count),
    gauge("pooler_wait_max_us", Unit::Us),
    counter("pooler_transactions", Unit::Count),
    counter("pooler_statements", Unit::Count),
    counter("pooler_wait_us", Unit::Us),
    // The server's processes.
    counter("cpu_us", Unit::Us),
    counter("cpu_wait_us", Unit::Us),
    gauge("processes", Unit::Count),
    // Processor events; groups that share a hardware counter are extrapolated from the time they had it.
    counter("cycles", Unit::Count),
    counter("instructions", Unit::Count),
    counter("dtlb_load_misses", Unit::Count),
    counter("llc_load_misses", Unit::Count),
    // Time for which these were enabled, and for which the hardware counted.
    counter("hardware_enabled_us", Unit::Us),
    counter("hardware_running_us", Unit::Us),
    // Its control group.
    counter("cgroup_cpu_us", Unit::Us),
    counter("cgroup_throttled_us", Unit::Us),
    gauge("cgroup_memory_bytes", Unit::Bytes),
    counter("cgroup_refaults", Unit::Count),
    // The machine.
    counter("cpu_user_us", Unit::Us),
    counter("cpu_system_us", Unit::Us),
    counter("cpu_iowait_us", Unit::Us),
    counter("cpu_steal_us", Unit::Us),
    counter("cpu_idle_us", Unit::Us),
    counter("context_switches", Unit::Count),
    counter("device_reads", Unit::Count),
    counter("device_read_bytes", Unit::Bytes),
    counter("device_writes", Unit::Count),
    counter("device_written_bytes", Unit::Bytes),
    counter("device_flushes", Unit::Count),
    // Time in which at least one operation was in progress, and the same summed over operations: the first is at most
    // the elapsed time, the second divided by it is the mean queue length.
    counter("device_busy_us", Unit::Us),
    counter("device_queue_us", Unit::Us),
    gauge("memory_free_bytes", Unit::Bytes),
    gauge("memory_cached_bytes", Unit::Bytes),
    gauge("memory_dirty_bytes", Unit::Bytes),
    gauge("memory_writeback_bytes", Unit::Bytes),
    gauge("huge_page_bytes", Unit::Bytes),
    counter("major_faults", Unit::Count),
    counter("pressure_cpu_us", Unit::Us),
    counter("pressure_io_us", Unit::Us),
    counter("pressure_memory_us", Unit::Us),
    counter("network_received_bytes", Unit::Bytes),
    counter("network_sent_bytes", Unit::Bytes),
    counter("tcp_retransmits", Unit::Count),
];
