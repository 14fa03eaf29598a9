//! Words, options, configuration files, finding a test, and messages about mistakes.

use testkit::{Kind, ServerSetup};

use crate::bench::Bench;

/// A script with an option of every kind.
const OPTIONS: &str = r#"
sysbench.cmdline.options = {
  rows = { "Rows", 5 }, ["two-words"] = { "Text", "x" }, flag = { "Switch", false }, nothing = { "No default" },
  items = { "List", { "a", "b" } }, bytes = { "Bytes", 1024, sysbench.cmdline.ARG_SIZE },
  whole = { "Integer", 7, sysbench.cmdline.ARG_INT },
}
local function shown(value)
  if type(value) == "table" then return "{" .. table.concat(value, ";") .. "}" end
  return type(value) .. ":" .. tostring(value)
end
function prepare()
  for _, name in ipairs { "rows", "two_words", "flag", "nothing", "items", "bytes", "whole", "threads", "mysql_host" } do
    print(name, shown(sysbench.opt[name]))
  end
end
function event() end
"#;

fn bench() -> Bench {
    Bench::new(&[
        ("options.lua", OPTIONS),
        ("free.lua", "function prepare() print(sysbench.opt.rows, sysbench.opt.flag, type(sysbench.opt.threads)) end"),
        ("empty.lua", "function event() end"),
        ("stray", "print('a file without an ending', sysbench.cmdline.script_path)"),
        ("folder/inner.lua", "print('inner', sysbench.cmdline.command)"),
        ("broken.lua", "x = = 1"),
        ("bang.lua", "#!/usr/bin/env sysbench\nprint('behind the shebang')"),
        ("conf", "threads=4 # comment\nmysql-host=a, b\n\nno equals sign\nverbosity=2\n"),
    ])
}

#[test]
fn words_and_options_are_read_as_the_original_reads_them() {
    let bench = bench();
    for line in [
        "options.lua prepare",
        "prepare --threads=2 options.lua",
        "--threads=2 options.lua --rows=8 prepare --rows=9",
        "options.lua prepare --two_words=y --two-words= --flag --items=c,d,e --bytes=16K --whole=-3",
        "options.lua prepare --flag=off --flag=1 --items= --bytes=2X --rows=abc --nothing",
        "options.lua prepare --rows= --whole= --mysql_host=",
        "free.lua prepare --rows=1M --flag",
        "free.lua prepare --",
        "options.lua prepare --",
    ] {
        assert!(!bench.same(line).stdout.is_empty());
    }
}

#[test]
fn mistakes_are_told_in_the_same_words_with_the_same_exit_code() {
    let bench = bench();
    for line in [
        "a b c",
        "options.lua run extra",
        "nosuch run",
        "options.lua nosuch",
        "options.lua cleanup",
        "free.lua help",
        "free.lua run",
        "broken.lua run",
        "options.lua prepare --other=1",
        "options.lua prepare --flag=yes",
        "options.lua prepare --whole=1.5",
        "options.lua prepare --mysql-dry-run=maybe",
        "empty.lua run --threads=abc",
        "empty.lua run --threads=0",
        "empty.lua run --verbosity=9",
        "empty.lua run --percentile=200",
        "empty.lua run --percentile=0 --histogram",
        "empty.lua run --rand-type=foo",
        "empty.lua run --thread-stack-size=abc",
        "empty.lua run --report-checkpoints=a,b",
        "empty.lua run --forced-shutdown=abc",
        "empty.lua run --db-driver=foo --events=1",
        "--version",
        "--help=off",
        "",
    ] {
        bench.same(line);
    }
}

#[test]
fn what_is_said_at_all_is_said_in_the_same_words() {
    let top = "print('first') io.write('and') error('boom')";
    let connects = "function thread_init() sysbench.sql.driver():connect() end function event() end";
    let bench = Bench::new(&[
        ("top.lua", top),
        ("in/none.lua", "x = 1"),
        ("empty.lua", "function event() end"),
        ("connects.lua", connects),
        ("numbers.lua", "print(1) print(sysbench.opt) print(2) error('late')"),
    ]);
    for line in [
        // A deprecated name is reported at any verbosity.
        "empty.lua run --num-threads=1 --max-requests=2 --verbosity=0",
        // What a top level printed before it failed remains.
        "top.lua",
        "top.lua run",
        "numbers.lua",
        // The file's name, without its folder.
        "in/none.lua run",
        // A port is parsed as C does.
        "connects.lua run --mysql-host=127.0.0.1 --mysql-port=abc",
        "connects.lua run --mysql-host=127.0.0.1 --mysql-port=99999",
        "connects.lua run --mysql-host=127.0.0.1 --mysql-port=0",
        "connects.lua run --mysql-host=127.0.0.1 --mysql-port=1.5",
        "connects.lua run --mysql-host=127.0.0.1 --mysql-port=",
        "connects.lua run --mysql-host=",
    ] {
        bench.same(line);
    }
    let server = Kind::Postgres.start(&ServerSetup {
        access: vec!["host all all 127.0.0.1/32 scram-sha-256".to_owned()],
        ..ServerSetup::default()
    });
    let port = server.unwrap().port();
    bench.same(&format!(
        "connects.lua run --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port={port} --pgsql-user=app"
    ));
}

#[test]
fn a_test_is_a_file_or_a_module() {
    let bench = bench();
    for line in ["stray", "./stray", "folder/inner.lua x", "folder/inner x", "options help", "bang.lua"] {
        bench.same(line);
    }
}

#[test]
fn a_configuration_file_counts_where_it_is_named() {
    let bench = bench();
    for line in [
        "options.lua prepare --config-file=conf --verbosity=3",
        "--config-file=conf --threads=7 --verbosity=3 options.lua prepare",
        "--threads=7 --config-file=conf --verbosity=3 options.lua prepare",
    ] {
        bench.same(line);
    }
    // Better than the original, which ignores a configuration file's values for a script's own options.
    let bench = Bench::new(&[("options.lua", OPTIONS), ("own", "rows=42\n")]);
    let ours = bench.ours("options.lua prepare --config-file=own");
    assert!(ours.stdout.contains("rows\tnumber:42\n"), "{}", ours.stdout);
}

#[test]
fn old_names_of_options_still_work() {
    let bench = bench();
    bench.same("empty.lua run --max-requests=4 --max-time=5");
    bench.same("--test=empty.lua run --events=2");
    bench.same("--test=empty.lua --num-threads=1 --max-requests=3 run");
    bench.same("free.lua prepare --num-threads=3");
}

#[test]
fn a_script_on_standard_input_runs_its_top_level_whatever_the_command() {
    let bench = bench().with_input("print(sysbench.cmdline.command, sysbench.tid, sysbench.opt)");
    for line in ["", "-", "- run", "- anything --threads=3"] {
        bench.same(line);
    }
}

#[test]
fn sizes_of_tables_may_have_a_suffix() {
    // The original reads 1M as 1.
    let ours = bench().ours("options.lua prepare --rows=1M");
    assert!(ours.stdout.contains("rows\tnumber:1048576\n"), "{}", ours.stdout);
}

#[test]
fn the_link_makes_the_program_a_sysbench() {
    let folder = tempfile::tempdir().unwrap();
    let assay = || std::process::Command::new(env!("CARGO_BIN_EXE_assay"));
    let install = || assay().args(["sysbench", "--install-link"]).arg(folder.path()).output().unwrap();
    assert!(install().status.success());
    assert!(install().status.success(), "a second time it is there already");
    let version = |mut command: std::process::Command| {
        String::from_utf8(command.arg("--version").output().unwrap().stdout).unwrap()
    };
    assert_eq!(version(std::process::Command::new(folder.path().join("sysbench"))), "sysbench 1.0.20\n");
    let mut named = assay();
    named.arg("sysbench");
    assert_eq!(version(named), "sysbench 1.0.20\n");
    std::fs::remove_file(folder.path().join("sysbench")).unwrap();
    std::fs::write(folder.path().join("sysbench"), "another program").unwrap();
    let refused = install();
    assert_eq!(refused.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("already exists"));
}
