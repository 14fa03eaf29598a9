//! Which crate may depend on which, and what no crate may depend on.
//!
//! A crate exists to forbid a dependency, so the table below is the architecture: products (postgres, mysql), scripts
//! (script) and schedules (engine) meet in the seam and do not know each other's internals, the lab starts servers
//! without knowing a product, only assay-io uses the kernel's interfaces, results (record, stats, report) do not depend
//! on how they were measured, and only assay-run and the binary above it know everything. A new arrow is an event: it
//! needs a paragraph in its commit.

use serde_json::Value;

use super::file::File;
use super::metadata::{list, text};
use xtask::steps::root;

/// A crate, its allowed dependencies, and additional ones of its tests.
const ARROWS: [(&str, &[&str], &[&str]); 42] = [
    ("assay-secret", &[], &[]),
    ("assay-seam", &[], &[]),
    ("assay-options", &[], &[]),
    ("assay-random", &[], &[]),
    ("assay-measure", &[], &[]),
    ("assay-isolation", &[], &["assay-random"]),
    ("assay-wire", &["assay-seam"], &[]),
    ("assay-postgres", &["assay-client", "assay-lab", "assay-seam", "assay-telemetry", "assay-wire"], &[]),
    ("assay-mysql", &["assay-client", "assay-lab", "assay-seam", "assay-telemetry", "assay-wire"], &[]),
    ("assay-clickhouse", &["assay-client", "assay-lab", "assay-seam", "assay-telemetry", "assay-wire"], &[]),
    ("assay-mongodb", &["assay-client", "assay-lab", "assay-seam", "assay-telemetry"], &[]),
    ("assay-sqlite", &["assay-random", "assay-seam", "assay-telemetry"], &[]),
    ("assay-duckdb", &["assay-seam", "assay-telemetry"], &[]),
    ("assay-luajit", &[], &[]),
    ("assay-script", &["assay-isolation", "assay-luajit", "assay-options", "assay-random", "assay-seam"], &[]),
    ("assay-io", &["assay-random", "assay-seam"], &["assay-mysql", "assay-postgres", "testkit"]),
    (
        "assay-engine",
        &["assay-io", "assay-isolation", "assay-measure", "assay-random", "assay-script", "assay-seam"],
        &["assay-options", "assay-sqlite", "assay-stats", "testkit"],
    ),
    ("assay-client", &["assay-io", "assay-seam"], &[]),
    ("assay-telemetry", &["assay-seam"], &[]),
    ("assay-machine", &["assay-random"], &[]),
    ("assay-fleet", &[], &[]),
    ("assay-lab", &["assay-client", "assay-seam", "assay-secret"], &["assay-products", "testkit"]),
    ("assay-fronts", &["assay-lab"], &[]),
    (
        "assay-products",
        &[
            "assay-clickhouse",
            "assay-duckdb",
            "assay-fronts",
            "assay-lab",
            "assay-mongodb",
            "assay-mysql",
            "assay-postgres",
            "assay-seam",
            "assay-sqlite",
            "assay-telemetry",
        ],
        &[],
    ),
    ("assay-recipe", &["assay-random", "assay-record"], &[]),
    ("assay-record", &["assay-isolation", "assay-measure", "assay-secret"], &[]),
    ("assay-spec", &["assay-options", "assay-record", "assay-seam", "assay-secret"], &[]),
    ("assay-stats", &["assay-random"], &[]),
    ("assay-report", &["assay-isolation", "assay-record", "assay-stats"], &["assay-random", "testkit"]),
    ("assay-library", &["assay-record", "assay-report"], &[]),
    ("assay-top", &["assay-record", "assay-report"], &[]),
    (
        "assay-pgbench",
        &["assay-engine", "assay-io", "assay-measure", "assay-options", "assay-script", "assay-seam"],
        &[],
    ),
    (
        "assay-sysbench",
        &["assay-engine", "assay-io", "assay-machine", "assay-measure", "assay-options", "assay-script", "assay-seam"],
        &[],
    ),
    (
        "assay-workloads",
        &[],
        &["assay-mysql", "assay-options", "assay-postgres", "assay-script", "assay-seam", "assay-sqlite", "testkit"],
    ),
    (
        "assay-process",
        &[
            "assay-engine",
            "assay-fleet",
            "assay-io",
            "assay-lab",
            "assay-record",
            "assay-report",
            "assay-seam",
            "assay-spec",
            "assay-top",
        ],
        &[],
    ),
    (
        "assay-run",
        &[
            "assay-client",
            "assay-engine",
            "assay-fleet",
            "assay-io",
            "assay-isolation",
            "assay-lab",
            "assay-options",
            "assay-pgbench",
            "assay-process",
            "assay-products",
            "assay-record",
            "assay-report",
            "assay-script",
            "assay-seam",
            "assay-spec",
            "assay-telemetry",
            "assay-top",
            "assay-workloads",
        ],
        &[],
    ),
    (
        "assay-experiment",
        &[
            "assay-io",
            "assay-lab",
            "assay-options",
            "assay-process",
            "assay-products",
            "assay-recipe",
            "assay-record",
            "assay-report",
            "assay-run",
            "assay-seam",
            "assay-spec",
            "assay-telemetry",
        ],
        &[],
    ),
    (
        "assay",
        &[
            "assay-engine",
            "assay-experiment",
            "assay-fleet",
            "assay-io",
            "assay-lab",
            "assay-library",
            "assay-machine",
            "assay-options",
            "assay-pgbench",
            "assay-process",
            "assay-products",
            "assay-recipe",
            "assay-record",
            "assay-report",
            "assay-run",
            "assay-script",
            "assay-seam",
            "assay-spec",
            "assay-stats",
            "assay-sysbench",
            "assay-telemetry",
            "assay-top",
            "assay-workloads",
        ],
        &["measured-path", "testkit"],
    ),
    ("measured-path", &["assay", "assay-engine", "assay-io", "assay-run", "assay-seam"], &[]),
    ("testkit", &["assay-lab", "assay-products"], &[]),
    ("workbench", &["assay-record", "testkit", "xtask"], &[]),
    (
        "xtask",
        &[],
        &[
            "assay-clickhouse",
            "assay-experiment",
            "assay-mongodb",
            "assay-mysql",
            "assay-pgbench",
            "assay-postgres",
            "assay-random",
            "assay-recipe",
            "assay-record",
            "assay-spec",
            "assay-sqlite",
            "assay-wire",
        ],
    ),
];

/// External crates that only certain crates may use.
const OUTSIDERS: [(&str, &[&str]); 7] = [
    // Only assay-io touches sockets.
    ("mio", &["assay-io"]),
    ("io-uring", &["assay-io", "assay-machine"]),
    // The kernel's raw interface; other system calls go through nix or the standard library.
    ("libc", &["assay-io", "assay-machine"]),
    // Its declarations alone would not link with any library.
    ("mlua-sys", &["assay-luajit"]),
    // The measured path has no async runtime. A fleet's message bus has one, and the HTTP server of metrics and
    // pages, each on a thread of its own.
    ("tokio", &["assay-fleet", "assay-process"]),
    ("hyper", &["assay-process"]),
    ("async-std", &[]),
];

/// Crates that need unsafe code: the boundaries to the kernel, to Lua, to DuckDB, and to the machine.
const UNSAFE: [&str; 4] = ["assay-duckdb", "assay-io", "assay-machine", "assay-script"];

/// Dependencies that the tables do not allow, and unknown crates.
pub(super) fn complaints(metadata: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in members(metadata) {
        let name = text(package, "name");
        let Some((_, allowed, in_tests)) = ARROWS.iter().find(|(one, _, _)| *one == name) else {
            complaints.push(format!("{name}: not in the table of crate dependencies, xtask/src/tidy/arrows.rs"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let on = text(dependency, "name");
            let for_tests = text(dependency, "kind") == "dev";
            let ours = ARROWS.iter().any(|(one, _, _)| *one == on);
            if ours && !allowed.contains(&on) && !(for_tests && in_tests.contains(&on)) {
                let what = if for_tests { "may not depend on, even for tests," } else { "may not depend on" };
                complaints.push(format!("{name}: {what} {on}"));
            }
            if OUTSIDERS.iter().any(|(one, friends)| *one == on && !friends.contains(&name)) {
                complaints.push(format!("{name}: may not depend on {on}"));
            }
        }
    }
    complaints
}

/// Crate roots (libraries and programs) that do not forbid unsafe code.
pub(super) fn unsafe_roots(metadata: &Value, files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in members(metadata).filter(|package| !UNSAFE.contains(&text(package, "name"))) {
        for target in list(package, "targets") {
            let kinds = list(target, "kind");
            if !kinds.iter().any(|kind| kind == "lib" || kind == "bin") {
                continue;
            }
            let path = text(target, "src_path");
            let inside = path.strip_prefix(&format!("{}/", root().display())).unwrap_or(path);
            let forbids = |file: &&File| file.path == inside && file.text.contains("#![forbid(unsafe_code)]");
            if !files.iter().any(|file| forbids(&file)) {
                complaints.push(format!("{inside}: lacks #![forbid(unsafe_code)]"));
            }
        }
    }
    complaints
}

fn members(metadata: &Value) -> impl Iterator<Item = &Value> {
    let members = list(metadata, "workspace_members");
    list(metadata, "packages").iter().filter(|package| members.contains(&package["id"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workspace(name: &str, dependency: &str, kind: Option<&str>) -> Value {
        json!({
            "workspace_members": ["one"],
            "packages": [{
                "id": "one",
                "name": name,
                "dependencies": [{ "name": dependency, "kind": kind }],
                "targets": [{ "kind": ["lib"], "src_path": format!("{}/crates/one/src/lib.rs", root().display()) }],
            }],
        })
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        let check = |name, dependency, kind| complaints(&workspace(name, dependency, kind));
        assert_eq!(check("assay-engine", "assay-seam", None), [""; 0]);
        assert_eq!(check("assay-wire", "assay-io", None), ["assay-wire: may not depend on assay-io"]);
        assert_eq!(check("assay", "testkit", Some("dev")), [""; 0]);
        assert_eq!(check("assay", "testkit", None), ["assay: may not depend on testkit"]);
        assert_eq!(check("assay-wire", "mio", None), ["assay-wire: may not depend on mio"]);
        assert_eq!(check("assay-engine", "libc", None), ["assay-engine: may not depend on libc"]);
        assert_eq!(check("assay-io", "tokio", None), ["assay-io: may not depend on tokio"]);
        assert!(check("assay-new", "serde", None)[0].contains("not in the table"));
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_code_is_found() {
        let check = |name, text: &str| {
            let file = File { path: "crates/one/src/lib.rs".to_owned(), text: text.to_owned() };
            unsafe_roots(&workspace(name, "serde", None), &[file])
        };
        assert_eq!(check("assay-wire", "#![forbid(unsafe_code)]\n"), [""; 0]);
        assert_eq!(check("assay-wire", "fn f() {}\n"), ["crates/one/src/lib.rs: lacks #![forbid(unsafe_code)]"]);
        assert_eq!(check("assay-io", "fn f() {}\n"), [""; 0]);
    }
}
