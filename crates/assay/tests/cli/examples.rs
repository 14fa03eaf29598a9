//! The workloads that people copy: each passes its check and its audit on every database, and notices work that was not
//! done. Their pages in docs/examples say what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_workloads::{Workload, builtin};
use serde_json::Value;
use testkit::Kind;

use crate::common::{Folder, words};

fn examples() -> impl Iterator<Item = &'static Workload> {
    builtin().iter().filter(|workload| workload.is_example())
}

/// Options for little data, and for each kind of transaction to occur in a short run.
fn small(name: &str) -> &'static str {
    match name {
        "bulk_upsert" => "--keys 200 --batch 20",
        "documents" => "--documents 200 --lines 2",
        "foreign_keys" => "--orders 50 --orphans 20",
        "full_text" => "--articles 100 --words 10 --searches 50",
        "hot_counters" => "--counters 2 --slots 2 --reads 30",
        "large_values" => "--values 5 --bytes 30000",
        "pagination" => "--rows 200 --size 5 --adds 20",
        "procedures" => "--accounts 50",
        "pubsub" => "--topics 2",
        "queue" => "--jobs 100",
        "soft_deletes" => "--owners 5 --deleted 20",
        "time_series" => "--days 3 --sensors 3 --per-day 10 --inserts 50",
        _ => panic!("{name}: options for a small run, please"),
    }
}

/// Other options of some examples that change what is sent.
const VARIANTS: [(&str, &str); 8] = [
    ("documents", "--store columns"),
    ("foreign_keys", "--keys off"),
    ("pagination", "--style offset"),
    ("procedures", "--call statements"),
    ("pubsub", "--receive listen"),
    ("queue", "--claim wait"),
    ("time_series", "--partitions off"),
    ("bulk_upsert", "--sorted off"),
];

/// Verdicts of a run's audit by the rule's name.
fn verdicts(findings: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
    let rules = findings["stages"][0]["audit"].as_array().unwrap();
    rules.iter().map(|rule| (text(&rule["name"]), text(&rule["verdict"]))).collect()
}

/// The whole life of an example with these options.
#[track_caller]
fn lives(folder: &Folder, workload: &Workload, options: &str, url: &str) {
    let (name, options) = (workload.name, format!("{} {options} --db {url} --quiet", small(workload.name)));
    let load = "--sessions 3 --transactions 60 --check --prepare --no-record --telemetry off --format json";
    let ran = folder.expect(&format!("run {name} {options} {load}"), 0);
    let verdicts = verdicts(&ran.findings());
    assert!(verdicts.len() >= 2, "{name}: {verdicts:?}");
    assert!(verdicts.values().all(|verdict| verdict == "passed"), "{name} at {url}: {verdicts:?}");
    folder.expect(&format!("cleanup {name} {options}"), 0);
}

#[test]
fn every_example_passes_its_audit_on_every_database() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let folder = Folder::new();
            let url = format!("sqlite:{}?synchronous=off", folder.path().join("examples.db").display());
            examples().for_each(|workload| lives(&folder, workload, "", &url));
        });
        for kind in [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present()) {
            scope.spawn(move || {
                let (folder, server) = (Folder::new(), kind.shared());
                let url = server.url(&server.fresh_database().unwrap());
                for workload in examples() {
                    lives(&folder, workload, "", &url);
                    let variant = VARIANTS.iter().find(|(name, _)| *name == workload.name);
                    if let Some((_, options)) = variant.filter(|_| kind == Kind::Postgres) {
                        lives(&folder, workload, options, &url);
                    }
                }
            });
        }
    });
}

/// A run goes on where the one before has ended: what it counts begins anew in each.
#[test]
fn a_second_run_of_the_time_series_adds_later_readings() {
    let folder = Folder::new();
    let options = "--db sqlite:it.db --days 2 --inserts 100";
    folder.expect(&format!("prepare time_series {options} --no-record"), 0);
    folder.write(
        "seconds.lua",
        "function event()
           local con = sysbench.sql.driver():connect()
           local rows, seconds, last = con:query_row('SELECT COUNT(*), COUNT(DISTINCT second), MAX(second) FROM time_series_2')
           assay.log(('%s readings at %s instants up to %s'):format(rows, seconds, last))
         end",
    );
    for (run, found) in
        ["200 readings at 20 instants up to 19", "400 readings at 40 instants up to 39"].iter().enumerate()
    {
        folder.expect(&format!("run time_series {options} --transactions 20 --sessions 2 --check --no-record"), 0);
        let ran = folder.expect("run ./seconds.lua --db sqlite:it.db --transactions 1 --no-record", 0);
        assert!(ran.stderr.contains(found), "run {run}: {}", ran.stderr);
    }
}

/// A defect of an example: its name, a text and the replacement, and the rule of the audit, or words of the check, that
/// notices.
const DEFECTS: [(&str, &str, &str, &str); 17] = [
    (
        "bulk_upsert",
        "updates = bulk_upsert.updates + 1\"",
        "updates = bulk_upsert.updates\"",
        "rows upserted in the table",
    ),
    ("bulk_upsert", "quantity = bulk_upsert.quantity + excluded", "quantity = excluded", "quantity in the table"),
    ("documents", "function() change:perform(", "function() local _ = (", "changes in the documents"),
    ("documents", "find:execute(customer)", "find:execute(customer % 3)", "wrong finds"),
    ("foreign_keys", "  delete:perform(order)\n  note:perform(order)\n", "", "removed orders in the tables"),
    ("foreign_keys", "and REFERENCE or", "and \"\" or", "lines without an order refused"),
    (
        "full_text",
        "insert:perform(article(\"fresh\"))",
        "insert:perform(article(\"stale\"))",
        "added articles that a search finds",
    ),
    ("full_text", "count:row(\"topic\" ..", "count:row(\"top\" ..", "searches with a wrong number of hits"),
    ("hot_counters", "SET n = n + 1", "SET n = n", "additions in the table"),
    (
        "large_values",
        "store:perform(version, value(id, version), id)",
        "store:perform(version, value(id, 0), id)",
        "values are missing or wrong",
    ),
    ("large_values", "  store:perform(version, value(id, version), id)\n", "", "values stored in the table"),
    ("pagination", "created < ? OR id < ?", "created < ? OR id <= ?", "rows seen twice in a visit"),
    ("procedures", "    note:perform(low, high, amount)\n", "", "transfers in the ledger"),
    (
        "pubsub",
        "number = tonumber((latest:row(to)))",
        "number = tonumber((latest:row(to))) + uniform(0, 1) * 10 ^ 6 * assay.claim('x')",
        "messages missed by subscribers",
    ),
    ("queue", "  finish:perform(tonumber(id))\n", "", "jobs done in the table"),
    ("soft_deletes", "  delete:perform(id)\n", "", "deleted notes in the table"),
    (
        "time_series",
        "opt.days, sensor, now, value\n",
        "opt.days - i % 2, sensor, now, value\n",
        "readings in the table",
    ),
];

#[test]
fn every_example_notices_work_that_was_not_done() {
    let folder = Folder::new();
    for (i, (name, text, instead, noticed)) in DEFECTS.into_iter().enumerate() {
        let workload = examples().find(|workload| workload.name == name).unwrap();
        assert_eq!(workload.text.matches(text).count(), 1, "{name}: {text}");
        folder.write("defect.lua", &workload.text.replace(text, instead));
        let url = format!("sqlite:defect{i}.db?synchronous=off");
        let load = "--transactions 200 --check --prepare --no-record --telemetry off --quiet --verbose";
        let ran = folder.expect(&format!("run ./defect.lua {} --db {url} {load}", small(name)), 1);
        let shown = ran.shown();
        let is_noticed = shown.lines().any(|line| line.contains(noticed) && !line.ends_with("passed"));
        assert!(is_noticed, "{name}, {instead:?}: {shown}");
    }
    let without: Vec<&str> =
        examples().map(|one| one.name).filter(|name| !DEFECTS.iter().any(|defect| defect.0 == *name)).collect();
    assert!(without.is_empty(), "without a defect: {without:?}");
}

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

#[test]
fn every_example_has_a_page_with_its_rules_and_commands_that_are_right() {
    let index = std::fs::read_to_string(page("README.md")).unwrap();
    for workload in examples() {
        let name = workload.name;
        assert!(index.contains(&format!("[{name}]({name}.md)")), "docs/examples/README.md lacks {name}");
        let text = std::fs::read_to_string(page(&format!("{name}.md"))).unwrap();
        let rules = workload.text.split("assay.audit { name = \"").skip(1).map(|rest| rest.split('"').next().unwrap());
        for rule in rules {
            assert!(text.contains(&format!("*{rule}*")), "docs/examples/{name}.md does not explain the rule {rule}");
        }
        let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("assay ")).collect();
        for scheme in ["postgres://", "mysql://", "sqlite:"] {
            assert!(
                commands.iter().any(|line| line.contains(scheme)),
                "docs/examples/{name}.md: no command for {scheme}"
            );
        }
        for command in commands {
            let read = assay::command_line::read(words(command).into_iter().map(Into::into));
            assert!(read.is_ok_and(|read| read.is_some()), "docs/examples/{name}.md: {command}");
        }
    }
}
