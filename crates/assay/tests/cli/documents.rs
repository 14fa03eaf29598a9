//! The examples of README.md and docs/ run as they are written.
//!
//! Every fenced block of `sh` is run command by command in a folder of its own, with throw-away servers; every block of
//! `lua` is run as a workload, inside the context that the text around it assumes (`CONTEXTS`). Only what a test cannot
//! have is replaced:
//!
//! * the reader's databases (`…@host/bench`, `--db …`, `--mysql-host=db1`), by empty ones;
//! * times and sizes, by small ones (`shortened`);
//! * what a reader has at hand: `my.lua` (and `transfers.lua`, as it is called there) is the first example of
//!   docs/lua-api.md, `old/` and `new/` hold records, and tables that a block uses but does not prepare are there.
//!
//! A comment `exits with N` in a command is checked. A block that no test can run says so, and why, in the line above
//! it: `<!-- not run: it takes a day -->`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use regex::{Captures, Regex};
use testkit::{Kind, ServerSetup};

use crate::common::Folder;
use crate::comparisons::records;

/// Documents with examples that run; all others have none.
const README: &str = "README.md";
const LUA: &str = "docs/lua-api.md";
const SYSBENCH: &str = "docs/from-sysbench.md";
const CONNECTIONS: &str = "docs/many-connections.md";
const TPCC: &str = "docs/tpcc.md";
const PGBENCH: &str = "docs/pgbench.md";
const CAPACITY: &str = "docs/capacity.md";
const TUTORIAL_POSTGRES: &str = "docs/tutorial-postgres.md";
const TUTORIAL_MYSQL: &str = "docs/tutorial-mysql.md";
const IDEA: &str = "docs/idea-to-charts.md";
const ISOLATION: &str = "docs/isolation.md";
const OLAP: &str = "docs/olap.md";
const PARQUET: &str = "docs/parquet.md";
const RUNNABLE: [&str; 13] = [
    README,
    LUA,
    SYSBENCH,
    CONNECTIONS,
    TPCC,
    PGBENCH,
    CAPACITY,
    TUTORIAL_POSTGRES,
    TUTORIAL_MYSQL,
    IDEA,
    ISOLATION,
    OLAP,
    PARQUET,
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A fenced block.
#[derive(Debug)]
struct Block {
    /// `README.md:12`: where it begins.
    place: String,
    language: String,
    text: String,
    /// Why it is not run.
    excuse: Option<String>,
}

/// The blocks of a document.
fn blocks(document: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let fence = Regex::new(r"(?ms)^(?:<!-- not run: ([^\n]*?) ?-->\n)?```([^\n]*)\n(.*?)^```\n").unwrap();
    let block = |found: Captures<'_>| Block {
        place: format!("{document}:{}", text[..found.get(2).unwrap().start()].lines().count()),
        language: found[2].to_owned(),
        text: found[3].to_owned(),
        excuse: found.get(1).map(|excuse| excuse.as_str().to_owned()),
    };
    fence.captures_iter(&text).map(block).collect()
}

#[test]
fn every_block_of_the_documents_is_run_or_says_why_not() {
    let indented = Regex::new(r"(?m)^    (assay|cargo|sysbench) ").unwrap();
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()));
    for document in docs.chain([README, "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(str::to_owned)) {
        if !document.ends_with(".md") {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&document)).unwrap();
        let blocks = blocks(&document);
        assert_eq!(2 * blocks.len(), text.matches("```").count(), "{document}: a fence that is not seen as one");
        let excused = blocks.iter().filter(|block| block.excuse.is_some()).count();
        assert_eq!(excused, text.matches("<!-- not run:").count(), "{document}: an excuse that stands above no block");
        for Block { place, language, excuse, .. } in &blocks {
            match (language.as_str(), excuse) {
                ("text", None) => {}
                ("python", None) => assert_eq!(document, PARQUET, "{place}: no test runs this"),
                ("sh" | "lua", Some(excuse)) => {
                    assert!(excuse.split(' ').count() > 3, "{place}: {excuse:?} says nothing")
                }
                ("sh" | "lua", None) => assert!(
                    RUNNABLE.contains(&document.as_str()),
                    "{place}: no test runs the examples of this document"
                ),
                _ => panic!("{place}: write ```sh, ```lua or ```text: {language:?}"),
            }
        }
        assert!(!indented.is_match(&text), "{document}: put the example into a block of sh, so that it is run");
    }
}

/// Where the examples of a block run.
struct Place {
    folder: Folder,
    variables: BTreeMap<String, String>,
    /// URLs of the reader's two databases.
    databases: [String; 2],
    maria_url: String,
    maria_words: String,
}

impl Place {
    fn new() -> Place {
        let folder = Folder::new();
        for name in ["bin", "path", "old", "new"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_assay"), folder.path().join("path/assay")).unwrap();
        folder.write("my.lua", &first_example());
        folder.write("transfers.lua", &first_example());
        let select = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;";
        folder.write("my.sql", &format!("\\set aid random(1, 100000 * :scale)\n{select}\n"));
        folder.write("shop.lua", SHOP);
        folder.write("arrivals.txt", "0\n0.125\n0.25\n");
        records(&folder, "old/a", &[1000, 1005, 995, 1010, 990], |_| ());
        records(&folder, "new/b", &[900, 905, 895, 910, 890], |_| ());
        let (postgres, maria) = (Kind::Postgres.shared(), Kind::MariaDb.shared());
        let name = maria.fresh_database().unwrap();
        Place {
            variables: BTreeMap::new(),
            databases: [(); 2].map(|()| postgres.url(&postgres.fresh_database().unwrap())),
            maria_url: maria.url(&name),
            maria_words: format!(
                "--mysql-host=127.0.0.1 --mysql-port={} --mysql-user=app --mysql-db={name}",
                maria.port()
            ),
            folder,
        }
    }

    /// The line with databases that exist.
    fn with_databases(&self, line: &str) -> String {
        let mut next = self.databases.iter().cycle();
        let each = Regex::new("--db …").unwrap();
        let line = each.replace_all(line, |_: &Captures<'_>| format!("--db {}", next.next().unwrap())).into_owned();
        let line = match line.strip_suffix(" bench") {
            Some(command) if command.starts_with("assay pgbench") => format!("{command} '{}'", self.databases[0]),
            _ => line.clone(),
        };
        line.replace("postgres://app@host/bench", &self.databases[0])
            .replace("mariadb://app@host/bench", &self.maria_url)
            .replace("--mysql-host=db1", &self.maria_words)
    }

    fn sh(&self, line: &str) -> Output {
        let path = format!("{0}/path:{0}/bin:/usr/bin:/bin", self.folder.path().display());
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.folder.path()).stdin(Stdio::null()).env_clear().env("PATH", path);
        for (name, value) in self.folder.command("").get_envs() {
            command.env(name, value.unwrap());
        }
        command.envs(&self.variables).output().unwrap()
    }

    /// Runs a command, and fails unless it exits as it should.
    #[track_caller]
    fn expect(&self, place: &str, line: &str) {
        let promised = Regex::new(r"# .*exits with (\d+)").unwrap();
        let mut code = promised.captures(line).map_or(0, |found| found[1].parse().unwrap());
        let output = self.sh(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Tables of a test are too small for the audit, so it fails.
        if line.contains("tpcc") && line.contains(" --check") && stderr.contains("new-orders on full-size tables") {
            code = 1;
        }
        assert_eq!(
            output.status.code(),
            Some(code),
            "{place}: {line}\n{}\n{stderr}",
            String::from_utf8_lossy(&output.stdout)
        );
    }

    /// Creates the tables that commands use but do not prepare.
    #[track_caller]
    fn prepare_for(&self, place: &str, lines: &[String]) {
        let text = lines.join("\n");
        let mut urls: Vec<&String> = self.databases.iter().filter(|url| text.contains(*url)).collect();
        if text.contains(&self.maria_url) || text.contains(&self.maria_words) {
            urls.push(&self.maria_url);
        }
        let prepares = |name: &str| lines.iter().any(|line| line.contains("prepare") && line.contains(name));
        for (used, prepare) in [
            ("oltp_", "prepare oltp_read_write --tables 8"),
            ("tpcc", "prepare tpcc --warehouses 100"),
            ("my.lua", "prepare my.lua"),
            ("--scale", "prepare tpcb --scale 1"),
        ] {
            if text.contains(used) && !prepares(used) {
                for url in &urls {
                    self.expect(place, &shortened(&format!("assay {prepare} --db {url}")));
                }
            }
        }
    }
}

/// The line with times and sizes suitable for a test.
fn shortened(line: &str) -> String {
    let mut line = line.to_owned();
    for (long, short) in [
        (r"--time( |=)\d+[a-z]+", "--time${1}500ms"),
        (r"(--find-rate|--sessions auto)(.*) --time 500ms", "$1$2 --time 200ms"),
        (r"--time=\d+\b", "--time=1"),
        (r"--warmup \w+", "--warmup 200ms"),
        (r"--table-size( |=)\w+", "--table-size${1}1000"),
        (r"--warehouses \d+", "--warehouses 2"),
        (r"--terminals \d+( |$)", "--terminals 20$1"),
        (r"--connections \d+", "--connections 10"),
        (r"--sessions \d{3,}", "--sessions 64"),
        (r"(pgbench .*)-T 60", "${1}-T 1"),
        (r"(pgbench .*)-s 50", "${1}-s 1"),
        (r"--scale 50", "--scale 1"),
        (r"(prepare tpcc .*)$", "$1 --customers 60 --items 200"),
    ] {
        line = Regex::new(long).unwrap().replace_all(&line, short).into_owned();
    }
    let is_endless = line.starts_with("assay run ") && !line.contains("--time ") && !line.contains("--help");
    if is_endless { format!("{line} --time 500ms") } else { line }
}

#[test]
fn examples_are_shortened_and_nothing_else() {
    let check = |line: &str, short: &str| assert_eq!(shortened(line), short);
    check("assay run a --sessions 1,2,4 --time 30s", "assay run a --sessions 1,2,4 --time 500ms");
    check(
        "assay run a --sessions 19000 --time 10m --warmup 1m",
        "assay run a --sessions 64 --time 500ms --warmup 200ms",
    );
    check("assay run a --terminals 10/warehouse", "assay run a --terminals 10/warehouse --time 500ms");
    check("assay run a --help", "assay run a --help");
    check("sysbench a --table-size=1000000 --time=60 run", "sysbench a --table-size=1000 --time=1 run");
    check("assay check a --tables 8 --table-size 1M", "assay check a --tables 8 --table-size 1000");
}

/// Runs all blocks of `sh`.
#[track_caller]
fn run(document: &str) {
    if [Kind::Postgres, Kind::MariaDb].into_iter().any(|kind| !kind.present()) {
        return;
    }
    let mut commands = 0;
    for block in blocks(document).into_iter().filter(|block| block.language == "sh" && block.excuse.is_none()) {
        let mut place = Place::new();
        let joined = block.text.replace("\\\n", " ");
        // Comments go to the end of a line, and stay there.
        let lines: Vec<String> = joined
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
                format!("{} # {comment}", shortened(&place.with_databases(command.trim())))
            })
            .collect();
        place.prepare_for(&block.place, &lines);
        for line in &lines {
            match line.strip_prefix("export ").and_then(|rest| rest.split(" # ").next()?.split_once('=')) {
                Some((name, value)) => drop(place.variables.insert(name.to_owned(), value.to_owned())),
                None => place.expect(&block.place, line),
            }
            commands += 1;
        }
    }
    assert!(commands > 0, "{document} has no examples");
}

#[test]
fn the_examples_of_the_readme_run() {
    run(README);
}

#[test]
fn the_examples_of_the_lua_page_run() {
    run(LUA);
}

#[test]
fn the_examples_of_coming_from_sysbench_run() {
    run(SYSBENCH);
}

#[test]
fn the_examples_of_many_connections_run() {
    run(CONNECTIONS);
}

#[test]
fn the_examples_of_tpcc_run() {
    run(TPCC);
}

#[test]
fn the_examples_of_coming_from_pgbench_run() {
    run(PGBENCH);
}

#[test]
fn the_examples_of_analytical_queries_run() {
    run(OLAP);
}

#[test]
fn the_examples_of_capacity_run() {
    run(CAPACITY);
}

#[test]
fn the_examples_of_the_tutorials_and_of_isolation_run() {
    [TUTORIAL_POSTGRES, TUTORIAL_MYSQL, IDEA, ISOLATION].into_iter().for_each(run);
}

#[test]
fn the_examples_for_pandas_polars_and_duckdb_read_what_was_written() {
    if !testkit::has_table_readers() {
        return;
    }
    let folder = Folder::new();
    for side in ["old", "new"] {
        std::fs::create_dir(folder.path().join(side)).unwrap();
    }
    let tagged = |record: &mut assay_record::Record| drop(record.tags.insert("disk".into(), "nvme".into()));
    records(&folder, "old/a", &[1000, 1010], tagged);
    records(&folder, "new/b", &[900], |record| {
        record.stages[0].start_ns = Some(0);
        record.telemetry = Some(telemetry());
    });
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assay-record/tests/records/0.1.0.json.zst");
    std::fs::copy(shipped, folder.path().join("new/shipped.zst")).unwrap();
    let blocks = blocks(PARQUET);
    let written = blocks.iter().find(|block| block.language == "sh").unwrap();
    let records = "old/a-1.json.zst old/a-2.json.zst new/b-1.json.zst new/shipped.zst";
    let line = written.text.trim().trim_start_matches("assay ").replace("old/*.zst new/*.zst", records);
    folder.expect(&line, 0);
    for block in blocks.iter().filter(|block| block.language == "python") {
        let output = testkit::run_python(folder.path(), &block.text).unwrap();
        assert!(output.status.success(), "{}: {}", block.place, String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).lines().count() > 2, "{}", block.place);
    }
    // The same figures as in CSV, by name and by type; and every column is documented.
    folder.expect(
        "report old/a-1.json.zst new/b-1.json.zst new/shipped.zst --csv i.csv --telemetry-csv t.csv --parquet again",
        0,
    );
    let document = std::fs::read_to_string(root().join(PARQUET)).unwrap();
    let checked = testkit::run_python(folder.path(), SAME_AS_CSV).unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    for name in String::from_utf8(checked.stdout).unwrap().lines() {
        let suffix = name.strip_prefix("response_ns");
        let is_named = document.contains(&format!("`{name}`")) || suffix.is_some_and(|it| document.contains(it));
        assert!(is_named, "{PARQUET} does not name the column {name}");
    }
}

/// A counter and a level, read once a second.
fn telemetry() -> assay_record::Telemetry {
    use assay_record::{Cost, Reading, Scope, ScopeKind, Series, Telemetry, Unit};
    let at: Vec<u64> = (0..=3).map(|second| second * 1_000_000_000).collect();
    let series = |metric: &str, reading, values: [u64; 4]| Series {
        metric: metric.into(),
        unit: Unit::Count,
        reading,
        source: "a view".into(),
        values: values.map(Some).to_vec(),
        own: Vec::new(),
        includes_own: false,
    };
    let scope = Scope {
        kind: ScopeKind::Server,
        target: 0,
        began_ns: at.clone(),
        ended_ns: at,
        series: vec![
            series("commits", Reading::Counter, [0, 100, 250, 400]),
            series("dirty_pages", Reading::Gauge, [5, 6, 7, 8]),
        ],
        absent: Vec::new(),
        waits: None,
        log: Vec::new(),
        log_left_out: 0,
        statements: Vec::new(),
    };
    let cost = Cost::default();
    Telemetry { full: false, every_ns: 1_000_000_000, scopes: vec![scope], cost, interventions: vec![], plans: vec![] }
}

const SAME_AS_CSV: &str = r#"
import pandas, pyarrow.parquet
names = set()
for table, csv in ("trials", None), ("intervals", "i.csv"), ("telemetry", "t.csv"):
    path = f"again/{table}.parquet"
    schema = pyarrow.parquet.read_schema(path)
    names.update(name for name in schema.names if not name.startswith(("option_", "tag_")))
    frame = pandas.read_parquet(path)
    assert len(frame) > 0, path
    assert str(schema.field("setting").type) == "uint64" and str(schema.field("file").type) == "string", schema
    if table != "telemetry":
        assert str(schema.field("time").type) == "timestamp[ms, tz=UTC]", schema
        assert frame.tag_disk.dropna().unique().tolist() == ["nvme"], frame.tag_disk
    if csv:
        expected = pandas.read_csv(csv)
        assert list(expected.columns) == list(frame.columns), (expected.columns, frame.columns)
        assert len(expected) == len(frame)
        for column in frame.columns:
            if frame[column].dtype.kind in "uif":
                left, right = frame[column].astype(float), expected[column].astype(float)
                assert ((left - right).abs() <= 1e-9 * right.abs()).where(right.notna(), left.isna()).all(), column
            elif column != "time":
                assert (frame[column].isna() == expected[column].isna()).all(), column
for name in sorted(names):
    print(name)
"#;

/// A workload with several transaction types.
const SHOP: &str = "
for _, name in ipairs { 'browse', 'order', 'refund' } do
  assay.transaction(name, function() assay.sleep(0.001) end)
end
function event() end";

/// The workload at the top of docs/lua-api.md.
fn first_example() -> String {
    blocks(LUA).into_iter().find(|block| block.language == "lua").expect("it has one").text
}

/// The context of the blocks of docs/lua-api.md that are only part of a workload, with the block at `{}`, found by a
/// word in it; and what the report of a run then contains.
const CONTEXTS: [(&str, &str, &str); 12] = [
    ("order lines", "{}", "browse"),
    ("rename:perform", "{}", "statements"),
    ("chunks of notes", "function event() end\n{}", ""),
    (
        "every deposit arrived",
        r#"
        function total() return tonumber((sysbench.sql.driver():connect():query_row("SELECT SUM(balance) FROM accounts"))) end
        {}"#,
        "every deposit arrived",
    ),
    ("assay.constant(\"names\"", "{}", ""),
    ("keys are ", "{}", ""),
    (
        "load_a_part",
        r#"
        sysbench.cmdline.options = { accounts = {"How many accounts there are", 100} }
        function event() end
        {}"#,
        "",
    ),
    (
        "commit:execute()",
        r#"
        function thread_init()
          con = sysbench.sql.driver():connect()
          begin, commit = con:prepare("BEGIN", ""), con:prepare("COMMIT", "")
          take = con:prepare("UPDATE accounts SET balance = balance - ? WHERE id = ?", "ii")
          give = con:prepare("UPDATE accounts SET balance = balance + ? WHERE id = ?", "ii")
        end
        function event()
          local amount, from, to = 1, sysbench.rand.uniform(1, 50), sysbench.rand.uniform(51, 100)
          {}
        end"#,
        "statements",
    ),
    (
        "orders rolled back",
        r#"
        sysbench.cmdline.options = { warehouses = {"Warehouses", 1} }
        {}
        local new_order = assay.transaction("new_order", function(lines)
          assay.count("order_lines", lines)
          if sysbench.rand.uniform(1, 100) == 1 then assay.count("remote_lines") end
          if sysbench.rand.uniform(1, 100) == 1 then assay.rolled_back() end
        end)
        local payment = assay.transaction("payment", function() end)
        function event()
          if sysbench.rand.uniform(1, 2) == 1 then new_order(sysbench.rand.uniform(5, 15)) else payment() end
        end"#,
        "remote order lines",
    ),
    (
        "assay.acknowledge(",
        r#"
        function prepare() sysbench.sql.driver():connect():query("CREATE TABLE orders (id SERIAL PRIMARY KEY)") end
        function thread_init() con = sysbench.sql.driver():connect() end
        function insert_order() return tonumber((con:query_row("INSERT INTO orders VALUES (DEFAULT) RETURNING id"))) end
        {}"#,
        "",
    ),
    (
        "function terminal_init()",
        r#"
        local keying, thinking = { buy = 0.01, look = 0.02 }, { buy = 0.02, look = 0.01 }
        function choose_next(user)
          user.next = user.next or (sysbench.rand.uniform(1, 2) == 1 and "buy" or "look")
          return user.next
        end
        function exponential(mean) return -mean / 1000 * math.log(1 - math.random()) end
        local transactions = {
          buy = assay.transaction("buy", function(user) user.next = nil end),
          look = assay.transaction("look", function(user) user.next = nil end),
        }
        {}"#,
        "look",
    ),
    (
        "assay.share(\"oltp_sql\")",
        r#"
        local function dialect()
        {}
        end
        function thread_init() con = sysbench.sql.driver():connect() end
        function event()
          assert(dialect().begin == "BEGIN IMMEDIATE" and dialect().commit == "COMMIT")
          con:query("SELECT 1")
        end"#,
        "",
    ),
];

#[test]
fn the_first_workload_of_the_lua_page_lives_on_every_database() {
    let folder = Folder::new();
    folder.write("my.lua", &first_example());
    let mut urls = vec!["sqlite:my.db".to_owned()];
    let kinds = [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present());
    urls.extend(kinds.map(|kind| kind.shared().url(&kind.shared().fresh_database().unwrap())));
    for url in urls {
        folder.expect(&format!("prepare my.lua --db {url} --accounts 100"), 0);
        let ran = folder
            .expect(&format!("run my.lua --db {url} --accounts 100 --transactions 50 --sessions 2 --no-record"), 0);
        assert!(ran.stdout.contains("transfer "), "{}", ran.shown());
        for command in ["check", "exec"] {
            let name = if command == "exec" { "my.lua total" } else { "my.lua" };
            folder.expect(&format!("{command} {name} --db {url} --accounts 100"), 0);
        }
        folder.expect(&format!("cleanup my.lua --db {url}"), 0);
    }
}

#[test]
fn the_other_blocks_of_the_lua_page_run_where_they_belong() {
    if !Kind::Postgres.present() {
        return;
    }
    let server = Kind::Postgres.start(&ServerSetup::default()).unwrap();
    let blocks: Vec<Block> = blocks(LUA).into_iter().filter(|block| block.language == "lua").skip(1).collect();
    assert_eq!(blocks.len(), CONTEXTS.len(), "each block has a context, and each context a block");
    for (word, context, reported) in CONTEXTS {
        let block =
            blocks.iter().find(|block| block.text.contains(word)).unwrap_or_else(|| panic!("no block has {word}"));
        let folder = Folder::new();
        folder.write("my.lua", &first_example());
        folder.write("it.lua", &context.replace("{}", &block.text));
        let database = server.fresh_database().unwrap();
        let url = server.url(&database);
        let run = format!("run it.lua --db {url} --no-record");
        match word {
            "chunks of notes" => {
                folder.expect(&format!("prepare it.lua --db {url} --sessions 3"), 0);
                let there = server.sql(&database, "SELECT COUNT(*), MAX(id) FROM notes").unwrap();
                assert_eq!(there, "10000\t10000\n", "{}", block.place);
            }
            "load_a_part" => {
                folder.expect(&format!("prepare it.lua --db {url} --sessions 3"), 0);
                let there = server.sql(&database, "SELECT COUNT(*), SUM(id) FROM accounts").unwrap();
                assert_eq!(there, "100\t5050\n", "{}", block.place);
            }
            "assay.acknowledge(" => {
                folder.expect(&format!("prepare it.lua --db {url}"), 0);
                let wait = "until test -e back; do sleep 0.1; done";
                let line = format!("{run} --sessions 2 --rate 50 --time 3s --kill-check '{wait}'");
                let mut started = folder.start(&line);
                started.wait_for("kill check: ");
                server.kill9().unwrap();
                server.restart().unwrap();
                folder.write("back", "");
                let ran = started.finish();
                assert_eq!(ran.code, Some(0), "{}: {}", block.place, ran.shown());
                assert!(ran.stderr.contains("none lost"), "{}: {}", block.place, ran.shown());
            }
            _ => {
                folder.expect(&format!("prepare my.lua --db {url} --accounts 100"), 0);
                let load = if word.contains("terminal") { "--terminals 6 --connections 2" } else { "--sessions 2" };
                let ran = folder.expect(&format!("{run} {load} --transactions 60 --verbose"), 0);
                assert!(ran.stdout.contains(reported), "{}: {}", block.place, ran.shown());
            }
        }
    }
}

/// Every `--option` (60 s) in a document gives the default of that option, and other numbers that come from the code
/// must match it.
#[test]
fn numbers_in_the_documents_are_those_of_the_code() {
    let definition = assay::command_line::definition();
    let default_of = |name: &str| -> Vec<String> {
        let commands = definition.get_subcommands().flat_map(|one| std::iter::once(one).chain(one.get_subcommands()));
        let arguments = commands.flat_map(|command| command.get_arguments());
        let of_name = arguments.filter(|argument| argument.get_long() == Some(name));
        of_name.flat_map(|one| one.get_default_values().iter().map(|value| value.to_string_lossy().into())).collect()
    };
    let stated = Regex::new(r"`--([a-z-]+)`\s+\((\d+) ?([a-zA-Z]*)( by default)?[),:;]").unwrap();
    let mut found = 0;
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let docs = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()));
    for document in docs.chain([README, "CHANGELOG.md"].map(str::to_owned)).filter(|name| name.ends_with(".md")) {
        let text = std::fs::read_to_string(root().join(&document)).unwrap();
        for one in stated.captures_iter(&text) {
            let value = format!("{}{}", &one[2], &one[3]);
            assert!(default_of(&one[1]).contains(&value), "{document}: {}", &one[0]);
            found += 1;
        }
    }
    assert!(found >= 4, "only {found} defaults were found: is the pattern still right?");

    let uring = assay_io::SESSIONS_FOR_URING;
    let (time, images) = (assay_run::plan::TIME_DEFAULT, assay_lab::image::BOUND_DEFAULT >> 30);
    let (packed, unpacked) = (assay_record::COMPRESSED_BYTES_MAX >> 20, assay_record::DECOMPRESSED_BYTES_MAX >> 30);
    let (records, rows) = (assay::commands::report::RECORDS_MAX, assay_report::ROWS_MAX);
    let points = format!("{},{:03}", assay_report::POINTS_MAX / 1000, assay_report::POINTS_MAX % 1000);
    // TPC-C: conditions that are statements, nine about keys and distributions, and two that execute transactions;
    // keying and think times.
    let lua = |name: &str| assay_workloads::builtin().iter().find(|one| one.name == name).expect("it is built in").text;
    let of_statements = lua("tpcc_sql_check").lines().filter(|line| *line == "  {").count();
    let transactions = ["new_order", "payment", "order_status", "delivery", "stock_level"];
    let times = |of: &str| {
        let stated = Regex::new(&format!(r"{of} = (\d+)")).unwrap();
        let of_one = |name: &str| stated.captures(lua(&format!("tpcc_{name}"))).expect("it has times")[1].to_owned();
        transactions.map(of_one).join(", ")
    };
    for (document, sentence) in [
        ("CHANGELOG.md", format!("a worker has {uring} sessions or more")),
        ("docs/capacity.md", format!("`--time` ({time} unless given)")),
        ("docs/servers.md", format!("`ASSAY_IMAGES_MAX` ({images}G)")),
        ("docs/record.md", format!("records of {packed} MiB, {unpacked} GiB unpacked; {records} records in a report")),
        ("docs/record.md", format!("at most {points} points per line")),
        ("docs/record.md", format!("tables with {rows} rows")),
        ("docs/tpcc.md", format!("with {} conditions: {of_statements} are one statement", of_statements + 21)),
        ("docs/tpcc.md", format!("(keying {} s; thinking {} s", times("keying"), times("thinking"))),
    ] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&sentence), "{document} does not say: {sentence}");
    }

    let readme = std::fs::read_to_string(root().join(README)).unwrap();
    let (_, table) = readme.split_once("### Exit codes").expect("README.md has the exit codes");
    let row = Regex::new(r"(?m)^\| (\d[\d, ]*) \|").unwrap();
    let listed = row.captures_iter(table).flat_map(|row| row[1].split(", ").map(str::to_owned).collect::<Vec<_>>());
    let codes = assay_process::diagnostics::Exit::ALL.map(|(exit, _)| (exit as i32).to_string());
    assert_eq!(listed.collect::<Vec<_>>(), codes);
}

/// The top of README.md is what the program makes of a record in the tree, whatever machine this is.
#[test]
fn the_screen_and_the_chart_of_the_readme_are_what_the_program_prints() {
    let folder = Folder::new();
    let remedy = "`cargo xtask front` writes them anew";
    let readme = std::fs::read_to_string(root().join(README)).unwrap();
    let front = root().join("docs/front");
    let record = front.join("run.json.zst").display().to_string();
    let screen = folder.expect(&format!("show {record}"), 0).stdout;
    let head: Vec<&str> = screen.trim().lines().take(24).collect();
    assert!(
        readme.contains(&format!("\n{}\n…\n```\n", head.join("\n"))),
        "README.md is not true any more, {remedy}:\n{screen}"
    );
    for theme in ["light", "dark"] {
        folder.expect(&format!("report {record} --size 860x330 --theme {theme} --svg {theme}"), 0);
        let made = folder.path().join(theme).join("oltp_read_write-latency.svg");
        let kept = front.join(format!("latency-{theme}.svg"));
        assert_eq!(std::fs::read(made).unwrap(), std::fs::read(kept).unwrap(), "latency-{theme}.svg: {remedy}");
    }
}
