//! The built-in workloads: the Lua files of the folder `workloads/`, by name.
//!
//! Only texts. What they mean, declare and do is found out by whoever runs them (`assay-script`), in the same way as
//! for a file of the user's own; a new file is one more line in `WORKLOADS`, and a test finds the one that was
//! forgotten.

#![forbid(unsafe_code)]

/// One Lua file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// As on the command line and in `require`: the file's name without `.lua`, or for an old script the end of its
    /// path.
    pub name: &'static str,
    /// Relative to the folder `workloads/`.
    pub path: &'static str,
    /// The Lua text.
    pub text: &'static str,
    /// It is for everybody to run. Otherwise it is a module that others require, or an old script.
    pub runnable: bool,
}

impl Workload {
    /// It is in `workloads/examples`: made to be copied and changed.
    pub fn is_example(&self) -> bool {
        self.path.starts_with("examples/")
    }
}

/// All of them, sorted by name.
pub fn builtin() -> &'static [Workload] {
    WORKLOADS
}

/// Scripts of sysbench 0.5: known by the path under which they were installed.
macro_rules! legacy {
    ($name:literal) => {
        Workload {
            name: concat!("tests/include/oltp_legacy/", $name),
            path: concat!("oltp_legacy/", $name, ".lua"),
            text: include_str!(concat!("../../../workloads/oltp_legacy/", $name, ".lua")),
            runnable: false,
        }
    };
}

macro_rules! workload {
    ($folder:literal, $name:literal, $runnable:literal) => {
        Workload {
            name: $name,
            path: concat!($folder, "/", $name, ".lua"),
            text: include_str!(concat!("../../../workloads/", $folder, "/", $name, ".lua")),
            runnable: $runnable,
        }
    };
}

const WORKLOADS: &[Workload] = &[
    workload!("oltp", "bulk_insert", true),
    workload!("examples", "bulk_upsert", true),
    workload!("availability", "connects", true),
    workload!("examples", "documents", true),
    workload!("olap", "flights", true),
    workload!("olap", "flights_data", false),
    workload!("olap", "flights_foreign", false),
    workload!("olap", "flights_queries", false),
    workload!("examples", "foreign_keys", true),
    workload!("examples", "full_text", true),
    workload!("examples", "hot_counters", true),
    workload!("insert", "insert_benchmark", true),
    workload!("isolation", "isolation", true),
    workload!("shared", "isolation_levels", false),
    workload!("isolation", "isolation_sql", false),
    workload!("examples", "large_values", true),
    workload!("olap", "olap_common", false),
    workload!("oltp", "oltp_common", false),
    workload!("oltp", "oltp_delete", true),
    workload!("oltp", "oltp_insert", true),
    workload!("oltp", "oltp_microbenchmark", true),
    workload!("oltp", "oltp_mongodb", false),
    workload!("oltp", "oltp_mysql", false),
    workload!("oltp", "oltp_pgsql", false),
    workload!("oltp", "oltp_point_select", true),
    workload!("oltp", "oltp_read_only", true),
    workload!("oltp", "oltp_read_write", true),
    workload!("oltp", "oltp_sql", false),
    workload!("oltp", "oltp_sqlite", false),
    workload!("oltp", "oltp_tables", false),
    workload!("oltp", "oltp_transactions", false),
    workload!("oltp", "oltp_update_index", true),
    workload!("oltp", "oltp_update_non_index", true),
    workload!("oltp", "oltp_write_only", true),
    workload!("examples", "pagination", true),
    workload!("shared", "prepare_lock", false),
    workload!("examples", "procedures", true),
    workload!("examples", "pubsub", true),
    workload!("examples", "queue", true),
    workload!("availability", "read_after_write", true),
    workload!("oltp", "select_random_points", true),
    workload!("oltp", "select_random_ranges", true),
    workload!("examples", "soft_deletes", true),
    legacy!("bulk_insert"),
    legacy!("common"),
    legacy!("delete"),
    legacy!("insert"),
    legacy!("oltp"),
    legacy!("oltp_simple"),
    legacy!("parallel_prepare"),
    legacy!("select"),
    legacy!("select_random_points"),
    legacy!("select_random_ranges"),
    legacy!("update_index"),
    legacy!("update_non_index"),
    workload!("examples", "time_series", true),
    workload!("tpcb", "tpcb", true),
    workload!("tpcb", "tpcb_common", false),
    workload!("tpcb", "tpcb_select_only", true),
    workload!("tpcb", "tpcb_simple_update", true),
    workload!("tpcc", "tpcc", true),
    workload!("tpcc", "tpcc_check", false),
    workload!("tpcc", "tpcc_common", false),
    workload!("tpcc", "tpcc_customers", false),
    workload!("tpcc", "tpcc_delivery", false),
    workload!("tpcc", "tpcc_documents", false),
    workload!("tpcc", "tpcc_documents_check", false),
    workload!("tpcc", "tpcc_draws", false),
    workload!("tpcc", "tpcc_inspection", false),
    workload!("tpcc", "tpcc_isolation", false),
    workload!("tpcc", "tpcc_load", false),
    workload!("tpcc", "tpcc_mongodb", false),
    workload!("tpcc", "tpcc_mysql", false),
    workload!("tpcc", "tpcc_new_order", false),
    workload!("tpcc", "tpcc_order_status", false),
    workload!("tpcc", "tpcc_payment", false),
    workload!("tpcc", "tpcc_pgsql", false),
    workload!("tpcc", "tpcc_population", false),
    workload!("tpcc", "tpcc_procedures", false),
    workload!("tpcc", "tpcc_rows", false),
    workload!("tpcc", "tpcc_sql", false),
    workload!("tpcc", "tpcc_sql_check", false),
    workload!("tpcc", "tpcc_sqlite", false),
    workload!("tpcc", "tpcc_statistics", false),
    workload!("tpcc", "tpcc_stock_level", false),
    workload!("tpcc", "tpcc_thorough", false),
    workload!("tpcc", "tpcc_totals", false),
    workload!("tpcc", "tpcc_verify", false),
    workload!("tpcc", "tpcc_watch", false),
    workload!("olap", "tpch_like", true),
    workload!("olap", "tpch_like_clickhouse", false),
    workload!("olap", "tpch_like_queries", false),
    workload!("olap", "tpch_like_words", false),
    workload!("ycsb", "ycsb", true),
    workload!("ycsb", "ycsb_distributions", false),
    workload!("ycsb", "ycsb_mongodb", false),
    workload!("ycsb", "ycsb_sql", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_listed_once_in_order() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
        let mut found = Vec::new();
        for folder in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
            for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                let folder = folder.file_name().unwrap().to_string_lossy().into_owned();
                found.push(format!("{folder}/{}", file.file_name().unwrap().to_string_lossy()));
            }
        }
        found.sort();
        let mut listed: Vec<&str> = builtin().iter().map(|workload| workload.path).collect();
        assert!(builtin().is_sorted_by_key(|workload| workload.name));
        listed.sort();
        assert_eq!(listed, found);
    }
}
