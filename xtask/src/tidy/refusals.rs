//! What each crate must not know: enforces the last column of ARCHITECTURE.md's table.
//!
//! Each word of the column is listed below with the packages that a crate with this word must not reach in any way, and
//! with text that must not occur in its code. `in protocol: sockets` restricts one module of a crate: the crate may
//! reach the packages, but the module's code must not name them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::file::File;
use super::metadata::{list, text};
use super::places::product_lines;

/// A word of the column, the packages it stands for, and text that reveals them.
const WORDS: [(&str, &[&str], &[&str]); 18] = [
    ("sockets", &["assay-io", "mio", "io-uring"], &["std::net", "os::unix::net"]),
    ("clocks", &["assay-io"], &CLOCKS),
    ("time", &["assay-io"], &CLOCKS),
    (
        "protocols",
        &[
            "assay-wire",
            "assay-clickhouse",
            "assay-duckdb",
            "assay-mongodb",
            "assay-mysql",
            "assay-postgres",
            "assay-products",
            "assay-sqlite",
            "postgres-protocol",
        ],
        &["clickhouse::", "postgres::", "mysql::", "mongodb::"],
    ),
    (
        "databases",
        &[
            "assay-wire",
            "assay-clickhouse",
            "assay-duckdb",
            "assay-mongodb",
            "assay-mysql",
            "assay-postgres",
            "assay-products",
            "assay-sqlite",
            "rusqlite",
        ],
        &["clickhouse", "duckdb", "mongodb", "mysql", "pgsql", "postgres", "sqlite"],
    ),
    ("Lua", &["assay-luajit", "assay-script", "mlua-sys"], &["lua_State"]),
    // Options of workloads reach the engine as values, through assay-script.
    // Messages name options; what was given arrives as a spec.
    ("command lines", &["clap"], &["env::args"]),
    ("option names", &["clap"], &["\"--", "`--"]),
    ("files", &[], &["std::fs", "File::open", "File::create"]),
    ("processes", &["assay-lab", "nix"], &["std::process", "crate::server"]),
    (
        "products",
        &[
            "assay-clickhouse",
            "assay-duckdb",
            "assay-fronts",
            "assay-mongodb",
            "assay-mysql",
            "assay-postgres",
            "assay-products",
            "assay-sqlite",
        ],
        &["ClickHouse", "DuckDb", "Postgres", "MySql", "MariaDb", "MongoDb", "PgBouncer", "HaProxy"],
    ),
    ("terminals", &["indicatif"], &["is_terminal", "\\x1b", "\\u{1b}"]),
    ("the live types of the engine", &["assay-engine"], &[]),
    ("formatting", &[], &["format!(", "write!(", "Display for"]),
    ("how it was measured", &["assay-engine", "assay-io", "assay-script", "assay-seam"], &[]),
    ("streams", &[], &["io::stdin", "io::stdout", "io::stderr"]),
    ("the process", &["signal-hook"], &["std::process", "std::env", "process::exit("]),
    ("everything else", &["assay-seam", "assay-options", "assay-io", "assay-script", "assay-record"], &["std::net"]),
];

const CLOCKS: [&str; 3] = ["Instant::now", "SystemTime::now", "thread::sleep"];

pub(super) fn complaints(metadata: &Value, files: &[File]) -> Vec<String> {
    let table = files.iter().find(|file| file.path == "ARCHITECTURE.md").map_or("", |file| &file.text);
    let rows: Vec<(&str, &str)> = table.lines().filter_map(row).collect();
    let mut complaints = Vec::new();
    for package in members(metadata) {
        if !rows.iter().any(|(name, _)| *name == package) {
            complaints.push(format!("ARCHITECTURE.md: its table of crates lacks {package}"));
        }
    }
    for (name, refuses) in rows {
        let reached = reached(metadata, name);
        let (module, words) = module(refuses);
        for word in words.split(", ").filter(|word| *word != "–") {
            let Some((_, packages, texts)) = WORDS.iter().find(|(known, _, _)| *known == word) else {
                complaints
                    .push(format!("ARCHITECTURE.md: what {name} refuses to know, {word:?}, is not in refusals.rs"));
                continue;
            };
            let Some(module) = module else {
                let packages = packages.iter().filter(|package| **package != name && reached.contains(**package));
                complaints.extend(
                    packages.map(|package| format!("{name}: refuses to know {word}, and depends on {package}")),
                );
                complaints.extend(given_away(name, &format!("crates/{name}/src/"), word, texts, files));
                continue;
            };
            let inside = format!("crates/{name}/src/{module}/");
            if !files.iter().any(|file| file.path.starts_with(&inside)) {
                complaints.push(format!("ARCHITECTURE.md: {name} has no module {module}"));
            }
            let paths: Vec<String> = packages.iter().map(|package| package.replace('-', "_") + "::").collect();
            let texts: Vec<&str> = texts.iter().copied().chain(paths.iter().map(String::as_str)).collect();
            complaints.extend(given_away(&format!("{name}'s {module}"), &inside, word, &texts, files));
        }
    }
    complaints
}

/// `in protocol: sockets, clocks`: the module that refuses, and what it refuses.
fn module(refuses: &str) -> (Option<&str>, &str) {
    let split = refuses.strip_prefix("in ").and_then(|rest| rest.split_once(": "));
    split.map_or((None, refuses), |(module, words)| (Some(module.trim_matches('`')), words))
}

/// Crate and refusals of a line of the table; `None` for a line about several crates, which refuse nothing.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [name, _, refuses] = cells[..] else { return None };
    (name.starts_with("assay") && !name.contains(',')).then_some((name, refuses))
}

/// The names of the crates that are part of the program.
fn members(metadata: &Value) -> Vec<&str> {
    let members = list(metadata, "workspace_members");
    let packages = list(metadata, "packages").iter().filter(|package| members.contains(&package["id"]));
    packages.map(|package| text(package, "name")).filter(|name| name.starts_with("assay")).collect()
}

/// Every package that becomes part of a program because of this one.
fn reached<'a>(metadata: &'a Value, name: &str) -> BTreeSet<&'a str> {
    let packages = list(metadata, "packages");
    let nodes = list(&metadata["resolve"], "nodes");
    let mut reached = BTreeSet::new();
    let mut ids: Vec<&Value> = packages.iter().filter(|package| package["name"] == name).map(|it| &it["id"]).collect();
    while let Some(id) = ids.pop() {
        let Some(package) = packages.iter().find(|package| package["id"] == *id) else { continue };
        if !reached.insert(text(package, "name")) {
            continue;
        }
        let deps = nodes.iter().find(|node| node["id"] == *id).map_or(&[][..], |node| list(node, "deps"));
        let linked = |dep: &&Value| list(dep, "dep_kinds").iter().any(|kind| kind["kind"].is_null());
        ids.extend(deps.iter().filter(linked).map(|dep| &dep["pkg"]));
    }
    reached
}

/// Lines of the code in a folder with text that reveals the word. `name`: whose code it is.
fn given_away(name: &str, inside: &str, word: &str, texts: &[&str], files: &[File]) -> Vec<String> {
    let sources = files.iter().filter(|file| file.path.starts_with(inside));
    let mut found = Vec::new();
    for file in sources {
        for (number, line) in product_lines(file) {
            if texts.iter().any(|text| line.contains(text)) {
                found.push(format!("{}:{number}: {name} refuses to know {word}", file.path));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = "| crate | what it does | what it refuses to know |\n| --- | --- | --- |\n";

    /// A workspace of assay-stats, which depends on `dependency`, which depends on mio.
    fn workspace(dependency: &str, kind: Option<&str>) -> Value {
        let dep = |on: &str| json!({ "pkg": on, "dep_kinds": [{ "kind": kind }] });
        json!({
            "workspace_members": ["assay-stats"],
            "packages": [
                { "id": "assay-stats", "name": "assay-stats" },
                { "id": dependency, "name": dependency },
                { "id": "mio", "name": "mio" },
            ],
            "resolve": { "nodes": [
                { "id": "assay-stats", "deps": [dep(dependency)] },
                { "id": dependency, "deps": [dep("mio")] },
            ] },
        })
    }

    #[track_caller]
    fn check(refuses: &str, metadata: &Value, code: &str, expected: &[&str]) {
        let table = format!("{TABLE}| assay-stats | numbers | {refuses} |\n");
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [file("ARCHITECTURE.md", &table), file("crates/assay-stats/src/a.rs", code)];
        assert_eq!(complaints(metadata, &files), expected);
    }

    #[test]
    fn a_package_that_is_refused_is_found_behind_another() {
        let reached = ["assay-stats: refuses to know sockets, and depends on mio"];
        check("sockets", &workspace("between", None), "", &reached);
        check("sockets", &workspace("between", Some("dev")), "", &[]);
        check("formatting", &workspace("between", None), "", &[]);
        check("–", &workspace("between", None), "", &[]);
    }

    #[test]
    fn text_that_is_refused_is_found_in_code_only() {
        let none = workspace("between", Some("dev"));
        let found = ["crates/assay-stats/src/a.rs:2: assay-stats refuses to know formatting"];
        check("clocks, formatting", &none, "// format!(\nlet x = format!(\"\");\n", &found);
        check("formatting", &none, "#[cfg(test)]\nmod tests { format!(\"\") }\n", &[]);
    }

    #[test]
    fn a_module_must_not_name_what_its_crate_may_reach() {
        let table = format!("{TABLE}| assay-stats | numbers | in `pure`: sockets, processes |\n");
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let check = |path: &str, text: &str| {
            let pure = file("crates/assay-stats/src/pure/mod.rs", "");
            let files = [file("ARCHITECTURE.md", &table), pure, file(path, text)];
            complaints(&workspace("between", None), &files)
        };
        let inside = "crates/assay-stats/src/pure/a.rs";
        let found = |word: &str| [format!("{inside}:1: assay-stats's pure refuses to know {word}")];
        assert_eq!(check(inside, "use std::net::TcpStream;\n"), found("sockets"));
        assert_eq!(check(inside, "use assay_io::Io;\n"), found("sockets"));
        assert_eq!(check(inside, "use crate::server::start;\n"), found("processes"));
        assert_eq!(check(inside, "use assay_lab::Server;\n"), found("processes"));
        assert_eq!(check("crates/assay-stats/src/other.rs", "use std::net::TcpStream;\n"), [""; 0]);
        let gone = complaints(&workspace("between", None), &[file("ARCHITECTURE.md", &table)]);
        assert_eq!(gone, ["ARCHITECTURE.md: assay-stats has no module pure"; 2]);
    }

    #[test]
    fn words_and_crates_that_are_not_in_the_tables_are_found() {
        let none = workspace("between", Some("dev"));
        let unknown = r#"ARCHITECTURE.md: what assay-stats refuses to know, "the weather", is not in refusals.rs"#;
        check("the weather", &none, "", &[unknown]);
        let missing = ["ARCHITECTURE.md: its table of crates lacks assay-stats"];
        assert_eq!(complaints(&none, &[]), missing);
    }
}
