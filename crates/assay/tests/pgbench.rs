//! Conformance with pgbench: the same command lines for PostgreSQL's pgbench 15 and for our binary called as `pgbench`.
//!
//! Each runs in a folder with the same files, on the same server, in its own database. Exit code, stdout and stderr
//! must be identical once times and rates are masked. Tests avoid races: nothing depends on which transaction is first,
//! or on how many fit into a time.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use regex::Regex;
use testkit::{Kind, Server};

struct Bench {
    folder: tempfile::TempDir,
    server: &'static Server,
    databases: [String; 2],
}

/// The masked result of a command.
#[derive(Debug, PartialEq, Eq)]
struct Did {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Debian keeps the programs of a version in a folder of their own.
fn oracle() -> PathBuf {
    let path = PathBuf::from("/usr/lib/postgresql/15/bin/pgbench");
    assert!(path.is_file(), "{} is missing; `cargo xtask install` gets what the tests need", path.display());
    path
}

fn masked(text: &[u8], database: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"(?m)^pgbench \((?:PostgreSQL\) )?15.*$", "pgbench (#)"),
            // Once for each packet in pgbench.
            (r"(?m)^pgbench: client \d+ receiving\n", ""),
            (r"random seed to \d+", "random seed to #"),
            // Their number depends on the time.
            (r"(?m)^\d+ of \d+ tuples .*\n", ""),
            (r"\s+-?\d+\.\d+", " #"),
            (r"(?m)^number of transactions actually processed: \d+$", "number of transactions actually processed: #"),
            (r"nan%", "NaN%"),
            // pgbench 15.20 names the option without an `s`, as the help does.
            (r"-c/--clients\b", "-c/--client"),
        ]
        .map(|(rule, to)| (Regex::new(rule).expect("a valid expression"), to))
        .into()
    });
    let text = String::from_utf8_lossy(text).replace(database, "[DATABASE]");
    RULES.iter().fold(text, |text, (rule, to)| rule.replace_all(&text, *to).into_owned())
}

impl Bench {
    fn new() -> Bench {
        Bench::on(Kind::Postgres)
    }

    fn on(kind: Kind) -> Bench {
        testkit::accept_interrupts();
        let server = kind.shared();
        let databases = [(); 2].map(|()| server.fresh_database().unwrap());
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_assay"), folder.path().join("bin/pgbench")).unwrap();
        Bench { folder, server, databases }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn command(&self, program: &Path, database: &str, words: &[String]) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        command
            .arg0("pgbench")
            .args(words)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.server.port().to_string())
            .env("PGUSER", "app")
            .env("PGDATABASE", database)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The results of both, the oracle's first; they run at the same time.
    fn both(&self, line: &str) -> [Did; 2] {
        let words = words(line);
        let programs = [oracle(), self.folder.path().join("bin/pgbench")];
        let children: Vec<_> = programs
            .iter()
            .zip(&self.databases)
            .map(|(program, database)| self.command(program, database, &words).spawn().unwrap())
            .collect();
        let mut children = children.into_iter().zip(&self.databases).map(|(child, database)| {
            let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
            Did { code: status.code(), stdout: masked(&stdout, database), stderr: masked(&stderr, database) }
        });
        [(); 2].map(|()| children.next().expect("there are two"))
    }

    /// The differences, if there are any.
    fn difference(&self, line: &str) -> Option<String> {
        let [theirs, ours] = self.both(line);
        (theirs != ours).then(|| format!("pgbench {line}\n=== pgbench 15: {theirs:#?}\n=== ours: {ours:#?}\n"))
    }

    fn ours(&self, line: &str) -> Did {
        let program = self.folder.path().join("bin/pgbench");
        let output = self.command(&program, &self.databases[1], &words(line)).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Did { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Every line does the same in both.
    #[track_caller]
    fn same(&self, lines: &[&str]) {
        let wrong: Vec<String> = lines.iter().filter_map(|line| self.difference(line)).collect();
        assert!(wrong.is_empty(), "{} of {} lines differ:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
    }

    /// Compares scripts: options, and the text of `f.sql`.
    #[track_caller]
    fn same_scripts(&self, scripts: &[(&str, &str)]) {
        let mut wrong = Vec::new();
        for (options, text) in scripts {
            self.write("f.sql", text);
            if let Some(difference) = self.difference(&format!("-n -t 1 -f f.sql {options}")) {
                wrong.push(format!("{text:?}\n{difference}"));
            }
        }
        assert!(wrong.is_empty(), "{} of {} scripts differ:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
    }

    fn rows(&self, of: usize, query: &str) -> String {
        self.server.sql(&self.databases[of], query).unwrap()
    }
}

/// Splits at blanks; `'…'` protects them.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(i, part)| match i % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn command_lines_are_understood_and_refused_alike() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.write("e.sql", "SELECT 1;\n");
    bench.same(&[
        // Nothing exists yet.
        "-n -t 1",
        "-n -t 1 -f e.sql",
        "-c 0",
        "-c x",
        "-c 1.5",
        "-c ''",
        "-c -1",
        "-j 0",
        "-j x",
        "-T 0",
        "-T x",
        "-t 0",
        "-t -5",
        "-t 1 -T 1",
        "-M foo",
        "-M SIMPLE",
        "-b nosuch",
        "-b s",
        "-b list",
        "-S -b list",
        "-b tpcb@x",
        "-b tpcb@-1",
        "-b tpcb@99999999999",
        "-f nosuch.sql",
        "-f e.sql@x",
        "-f e.sql@0 -t 1",
        "-D x",
        "-D 1x=2",
        "-D =2",
        "-R 0",
        "-R x",
        "-R -1",
        "-L 0",
        "-L x",
        "-P 0",
        "-P x",
        "-F 5",
        "-F 50",
        "-F 101",
        "-i -F 5",
        "-i -F x",
        "-i -c 2",
        "-i -t 2",
        "-i -S",
        "-i -r",
        "-i -l",
        "-i -M prepared",
        "-i -D a=b",
        "-q",
        "-q -t 1",
        "-i -I x",
        "-i -I ''",
        "-I dt",
        "-s 0",
        "-s x",
        "--foreign-keys",
        "--unlogged-tables",
        "--tablespace=x",
        "--index-tablespace=x",
        "--nosuch",
        "--nosuch=5",
        "-z",
        "-nz",
        "-c",
        "--client",
        "--help=1",
        "--log=5",
        "--sampling-rate=2",
        "--sampling-rate=0",
        "--sampling-rate=x",
        "--sampling-rate=0.5",
        "--aggregate-interval=0",
        "--aggregate-interval=1",
        "-l --aggregate-interval=0",
        "-l --aggregate-interval=5 -T 3",
        "-l --aggregate-interval=2 -T 3",
        "-l --sampling-rate=0.1 --aggregate-interval=1 -T 2",
        "--progress-timestamp",
        "--max-tries=-1",
        "--max-tries=0",
        "--max-tries=x",
        "--random-seed=x",
        "--log-prefix=x",
        "--partitions=2",
        "-i --partitions=x",
        "-i --partitions=-1",
        "--partition-method=foo",
        "-i --partition-method=hash",
        "--show-script=x",
        "--show-script=tpcb",
        "--show-script=simple-update",
        "--show-script=select",
        "a b",
        "a b c",
        "-p 1 -h 127.0.0.1 -t 1",
        "-U nosuchuser -t 1",
        "nosuchdb -t 1",
        "'dbname=nosuchdb user=app' -t 1",
    ]);
}

#[test]
fn initialization_and_runs_report_alike() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.write("e.sql", "SELECT 1;\n");
    bench.write("u.sql", "\\set aid random(1, 10)\nUPDATE pgbench_accounts SET abalance = 1 WHERE aid = :aid;\n");
    bench.same(&[
        "-i -q -n",
        "-i -I dtG",
        "-i -I f",
        "-i -I d",
        "-i -I 'd t'",
        "-i -I dtgp --index-tablespace=nosuch",
        "-i -I dt --tablespace=nosuch",
        "-i -q -I dtgvpf --unlogged-tables --partitions=3 --fillfactor=80",
        "-n -t 2",
        "-i -q -I dtGvp --partitions=2 --partition-method=hash -s 2",
        "-n -t 2 -S",
        "-i -q --foreign-keys -s 2",
        "-t 3",
        "-v -t 2",
        "-b t -t 1 -n",
        "-n -S -t 3 -c 4 -j 2",
        "-n -c 2 -j 5 -t 1",
        "-n -S -M prepared -t 2",
        "-n -S -M extended -t 2",
        "-n -M prepared -t 3 -c 2",
        "-n -M extended -t 3",
        "-n -N -t 2 -r",
        "-n -r -t 2",
        "-n -r -t 2 --max-tries=3 --failures-detailed",
        "-n -t 2 --max-tries=2",
        "-n -t 2 --failures-detailed",
        "-n -T 1 -S",
        "-n -T 1 --max-tries=0 -S",
        "-n -t 2 -C",
        "-n -t 2 -C -S -M prepared -c 2",
        "-n -t 2 -L 60000",
        "-n -t 2 -R 1000",
        "-n -t 2 -R 1000 -L 60000 -S",
        "-n -t 2 -R 1000 -P 60",
        "-n -t 2 -s 5",
        "-n -t 2 -s 5 -f e.sql",
        "-n -t 2 -f e.sql",
        "-n -t 2 -f e.sql -r",
        "-n -t 2 -f u.sql -M prepared",
        "-t 1 -f e.sql",
        "-n --cli=2 -t 1",
        "-n --random-seed=5 -t 1",
        "-nSt 1",
        "-n -b select@1 -b tpcb@0 -t 4",
        "-n -f e.sql@2 -f e.sql@0 -t 4 -r",
        "-n -t 1 -D scale=1 -S",
        "--verbose-errors -n -t 1",
        "-n -T 1 -P 60 -S",
    ]);
    // Each runs on the other's tables, and balances hold.
    for of in 0..2 {
        let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) - (SELECT sum(tbalance) FROM pgbench_tellers) > -100000000";
        assert_eq!(bench.rows(of, sums).trim(), "t");
    }
    let shape = "SELECT table_name, column_name, data_type, is_nullable, character_maximum_length FROM information_schema.columns \
                 WHERE table_name LIKE 'pgbench%' ORDER BY table_name, ordinal_position";
    assert_eq!(bench.rows(0, shape), bench.rows(1, shape));
    let keys = "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype IN ('p', 'f') \
                AND conrelid::regclass::text LIKE 'pgbench%' ORDER BY 1, 2";
    assert_eq!(bench.rows(0, keys), bench.rows(1, keys));
    let content =
        "SELECT count(*), sum(aid), sum(bid), count(DISTINCT filler), max(length(filler)) FROM pgbench_accounts";
    assert_eq!(bench.rows(0, content), bench.rows(1, content));
}

#[test]
fn scripts_are_read_and_carried_out_alike() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.same_scripts(&[
        ("", ""),
        ("", "-- just a comment\n"),
        ("", ";\n;;\n"),
        ("", "SELECT 1"),
        ("-r", "SELECT 1;  -- c1\n/* block; */ SELECT 2 ; -- foo; bar\n SELECT $a$;$a$, (1), ';' ; \\set x 1\nSELECT 3;SELECT 4; SELECT 5 \\;  SELECT 6;\n"),
        ("-r", "\\set x 1 + \\\n 2\nSELECT :x\n  FROM pg_class\n  WHERE oid = :x;\n"),
        ("", "\\foo\n"),
        ("", "\\set\n"),
        ("", "\\set x\n"),
        ("", "\\set 1x 2\n"),
        ("", "\\set x 1 +\n"),
        ("", "\\set x 1 1\n"),
        ("", "\\set x (1\n"),
        ("", "\\set x 1)\n"),
        ("", "\\set x @\n"),
        ("", "\\set x 1 $ 2\n"),
        ("", "\\set x 1 > 2 > 3\n"),
        ("", "\\set x case when 1 then 2\n"),
        ("", "\\set x foo(1)\n"),
        ("", "\\set x random(1)\n"),
        ("", "\\set x greatest()\n"),
        ("", "\\set x hash(1,2,3)\n"),
        ("", "\\set x 99999999999999999999\n"),
        ("", "\\set x 1e400\n"),
        ("", "\\set x 1/0\n"),
        ("", "\\set x mod(1,0)\n"),
        ("", "\\set x 9223372036854775807 + 1\n"),
        ("", "\\set x -9223372036854775808 - 1\n"),
        ("", "\\set x 4611686018427387904 * 2\n"),
        ("", "\\set x -9223372036854775808 / -1\n"),
        ("", "\\set x :undefined + 1\n"),
        ("", "\\set x random(5,1)\n"),
        ("", "\\set x random_zipfian(1,10,0.5)\n"),
        ("", "\\set x random_gaussian(1,10,1.0)\n"),
        ("", "\\set x random_exponential(1,10,0)\n"),
        ("", "\\set x permute(1,0)\n"),
        ("", "\\set x true + 1\n"),
        ("", "\\set x 5 and true\n"),
        ("", "\\set x not 5\n"),
        ("", "\\set x 1 = true\n"),
        ("", "\\set x sqrt(true)\n"),
        ("", "\\set x int(1e30)\n"),
        ("-D x=abc", "\\set y :x + 1\n"),
        ("-D x=1.5", "\\set y :x + 1\nSELECT :y, :x, ':x';\n"),
        ("-D x=true", "\\if :x\nSELECT 1;\n\\endif\n"),
        ("", "\\setrandom x 1 10\n"),
        ("", "\\set x 1\n\\set y debug(:x) + debug(2.5) * debug(-7)\nSELECT 1;\n\\set z debug(:y is null)\n"),
        ("", "\\sleep\n"),
        ("", "\\sleep 1 xx\n"),
        ("", "\\sleep abc ms\n"),
        ("", "\\sleep -1 ms\n"),
        ("", "\\sleep 1 ms extra\n"),
        ("-r", "\\set z 5\n\\sleep :z us\nSELECT 1;\n"),
        ("", "\\if true\nSELECT 1;\n"),
        ("", "\\else\n"),
        ("", "\\endif\n"),
        ("", "\\elif 1\n"),
        ("", "\\if 1\n\\else\n\\else\n\\endif\n"),
        ("", "\\if 1\n\\else\n\\elif 1\n\\endif\n"),
        ("", "\\if 0\nSELECT 1/0;\n\\elif null\nSELECT 2/0;\n\\elif 0.0\nSELECT 3/0;\n\\else\nSELECT 4;\n\\endif\n"),
        ("", "\\if 1 > 0\n\\if false\nSELECT 1/0;\n\\endif\n\\else\nSELECT 2/0;\n\\endif\n"),
        ("", "\\gset\n"),
        ("", "\\set x 1\n\\gset\n"),
        ("", "SELECT 1 AS a, 2 AS b \\gset p_\nSELECT 1/(:p_a - 1);\n"),
        ("-M prepared", "SELECT 1 AS a, 2 AS b \\gset\nSELECT 1 + :a::int;\n"),
        ("", "SELECT 1 AS a WHERE false \\gset\n"),
        ("", "SELECT 1 AS a UNION ALL SELECT 2 \\gset\n"),
        ("", "SELECT 1 AS a UNION ALL SELECT 2 \\aset\nSELECT 1/(:a - 2);\n"),
        ("", "SELECT 1 AS a \\; SELECT 2 AS b \\gset\nSELECT 1/(:b - 2);\n"),
        ("", "SELECT 1 AS a \\; SELECT 2 AS b \\aset\nSELECT 1/(:a - 1), :b;\n"),
        ("", "SELECT 1/0;\n"),
        ("", "SELECT 1;\nSELECT * FROM nosuch;\n"),
        ("", "SELECT 'a long text that is longer than what is shown of a line', nosuch, 'and more behind it, and more' ;\n"),
        ("", "SELECT 1,\n  2, nosuch,\n 3;\n"),
        ("-M prepared", "SELECT 1/0;\n"),
        ("-M extended", "SELECT 1/0;\n"),
        ("-M extended -D a=1", "SELECT 1;\nSELECT :a,\n  nosuch, :a;\n"),
        ("-M prepared -D a=1", "SELECT 1;\nSELECT :a,\n  nosuch, :a;\n"),
        ("-M prepared -D a=3", "SELECT 1/(:a::int - 3);\n"),
        ("-c 3", "SELECT 1/(:client_id - 5);\n"),
        ("", "COPY pg_class FROM STDIN;\n"),
        ("", "\\shell true\nSELECT 1;\n"),
        ("", "\\setshell x echo 5\nSELECT 1/(:x - 5);\n"),
        ("", "\\setshell x false\n"),
        ("", "\\setshell x echo abc\n"),
        ("", "\\shell\n"),
        ("", "\\setshell x\n"),
        ("", "\\startpipeline\nSELECT 1;\n\\endpipeline\n"),
        ("-M prepared", "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n"),
        (
            "-M prepared",
            "CREATE TABLE IF NOT EXISTS p(n int);\n\\startpipeline\nBEGIN;\nINSERT INTO p VALUES (:client_id);\n\
             UPDATE p SET n = n + 1;\nCOMMIT;\n\\endpipeline\nSELECT 1/(count(*) - 1) FROM p;\n",
        ),
        (
            "-M prepared",
            "CREATE TABLE IF NOT EXISTS q(n int);\n\\startpipeline\nINSERT INTO q VALUES (1);\nSELECT 1/0;\nSELECT 3;\n\
             \\endpipeline\nSELECT 4;\n",
        ),
        ("-M prepared", "SELECT 1/(count(*) - 1) FROM q;\n"),
        (
            "-M extended",
            "CREATE TABLE IF NOT EXISTS q(n int);\n\\set x 3\n\\startpipeline\nINSERT INTO q VALUES (:x);\n\
             \\sleep 1 us\nSELECT 2, :x;\n\\endpipeline\nSELECT 1/(count(*) - 1) FROM q;\n",
        ),
        ("-M extended", "\\startpipeline\nSELECT 1;\nSELECT 1/0;\n\\endpipeline\n"),
        ("-M prepared", "\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline\n"),
        ("-M prepared", "\\endpipeline\n"),
        ("-M prepared", "\\startpipeline\n\\startpipeline\n"),
        ("-M prepared", "\\startpipeline\nSELECT 1;\n"),
    ]);
}

/// Scripts become Lua, which allows few levels, registers and constants.
#[test]
fn long_and_deep_scripts_run_as_in_pgbench() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    let nested = |before: &str, after: &str, times: usize| {
        let (before, after) = (before.repeat(times), after.repeat(times));
        format!("\\set x {before}1{after}\nSELECT 'is ' || :x || nosuch;\n")
    };
    let list = |item: &str, times: usize| vec![item; times].join(", ");
    let scripts = [
        ("", nested("(", ")", 1_000)),
        ("", nested("(", ")", 9_000)),
        ("", nested("(", ")", 11_000)),
        ("", nested("", " + 1", 1_000)),
        ("", nested("2 * (1 + ", " - 2)", 1_000)),
        ("", nested("- ", "", 501)),
        ("", nested("abs(-", ")", 500)),
        ("", nested("case when false then 5 else ", " end", 300)),
        ("", nested("case when true and ", " > 0 then 3 end", 50)),
        ("", format!("\\set x {}true\nSELECT :x / 0;\n", "false or not null is null and true or ".repeat(300))),
        ("", format!("\\set x greatest({})\n", list("1", 16))),
        ("", format!("\\set x greatest({})\n", list("1", 17))),
        ("-D a=1", format!("SELECT {}, nosuch;\n", list(":a", 2_000))),
        ("-D a=1", format!("SELECT 1{};\nSELECT nosuch;\n", " \\; SELECT :a".repeat(500))),
        ("-D a=1 -M extended", format!("SELECT {}, nosuch;\n", list(":a", 250))),
        ("-D a=1 -M prepared", format!("SELECT {};\nSELECT 1 / 0;\n", list(":a::int", 255))),
        ("-D a=1 -M prepared", format!("SELECT {};\n", list(":a::int", 256))),
        ("", format!("{}SELECT 1 / 0;\n{}", "\\if true\n".repeat(300), "\\endif\n".repeat(300))),
        ("", format!("\\if 0\n{}\\else\nSELECT 1 / 0;\n\\endif\n", "SELECT nosuch;\n".repeat(5_000))),
        ("", format!("{}SELECT 1 / (:x - 3000);\n", "\\set x 0\n".to_owned() + &"\\set x :x + 1\n".repeat(3_000))),
    ];
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|(options, text)| (*options, text.as_str())).collect();
    bench.same_scripts(&scripts);
}

#[test]
fn commands_are_read_as_in_pgbench_to_the_last_detail() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.same_scripts(&[
        ("-r", "\\sleep 1ms\n\\sleep 5us\n\\sleep 0s\n\\sleep 0 S\n\\sleep -1ms\n\\sleep +1MS\n"),
        ("", "\\sleep 10xx\n"),
        ("", "\\sleep 1.5ms\n"),
        ("", "\\sleep ms\n"),
        ("", "\\sleep 1m s\n"),
        ("-D x=1", "\\sleep :x us\n\\sleep :xus\n"),
        ("", "SELECT \\gset\nSELECT 1 / 0;\n"),
        ("", "SELECT \\aset\nSELECT 1 / 0;\n"),
        ("", "SELECT WHERE false \\gset\nSELECT 1 / 0;\n"),
        ("", "SELECT FROM generate_series(1, 3) \\gset\n"),
        ("", "SELECT 1 \\gset\n"),
        ("", "SELECT 1 \\aset\n"),
        ("", "SELECT 1 AS \"not a name\" \\gset\n"),
        ("", "SELECT 1 AS a, 2 AS b \\gset x-\n"),
        ("", "SELECT 1 AS a \\gset 1x\n"),
        ("", "SELECT 1 AS a \\gset p_ q_\n"),
        ("", "SELECT 1 AS a \\gset\n\\gset\n"),
        ("", "SELECT 1 AS a \\gset\n\\aset\n"),
        ("", "BEGIN \\gset\n"),
        ("", "SELECT NULL AS a \\gset\nSELECT ':a';\nSELECT 1 / length(':a');\n"),
        ("", "SELECT NULL AS a \\gset\n\\if :a is null\n\\endif\n"),
        ("", "\\set x debug(null)\n\\set x debug(true)\n\\set x debug(1.5)\n\\set x debug(-1)\n"),
        ("", "\\set x 1 + not true\n"),
        ("", "\\set x debug((1 = 1) = (not 2 = 3))\n"),
        ("", "\\set x debug(1 isnull isnull)\n\\set x debug(- ~ 1 + 1)\n\\set x debug(not 1 is null)\n"),
        ("", "\\set x debug(abs(,-1))\n\\set x debug(greatest(,1,2))\n"),
        ("", "\\set x greatest(1,,2)\n"),
        ("", "\\set x abs(,)\n"),
        ("", "\\set x foo + 1\n"),
        ("", "\\set x abs 1\n"),
        ("", "\\set x random(1 2)\n"),
        ("", "\\set x 1 is 2\n"),
        ("", "\\set x 1 is not\n"),
        ("", "\\set x case\n"),
        ("", "\\set x case 1 when 1 then 1 end\n"),
        ("", "\\set x case when 1 else 2 end\n"),
        ("", "\\set x case when 1 then 2 when 3 end\n"),
        ("", "\\set x case when (1 then 2 end\n"),
        ("", "\\set x (case when 1 then 2 end\n"),
        ("", "\\set x 5 - 9223372036854775808\n"),
        ("", "\\set x debug(5 - -9223372036854775807)\n"),
        ("", "\\set x debug(1) < debug(2) and debug(3) = debug(4)\n"),
        ("", "\\set x debug(1) and debug(2)\n"),
        ("", "\\SLEEP 1 us\n\\SetShell x echo abc\n"),
        ("", "\\IF 1\nSELECT 1/0;\n\\ENDIF\n"),
        ("", "\\ELSE\n"),
        ("", "\\\n"),
        ("", "\\aset\n"),
        ("", "\\else x\n"),
        ("-M prepared", "\\startpipeline x\n"),
        ("", "\\set \"x\" 1\n"),
        ("", "\\sleep \"1\" us\n"),
        ("", "\\setshell x echo \"5\"\nSELECT 1 / (:x - 5);\n"),
        ("", "\\setshell 1x echo 1\n"),
        ("", "\\shell echo :undefined\n"),
        ("-D b=nan -D c=inf", "\\set x debug(:b)\n\\set x debug(:c)\n"),
        ("-D b=9223372036854775808", "\\set x debug(:b)\n"),
        ("-D b=1e400", "\\set x debug(:b)\n"),
        ("'-Db=5 '", "\\set x debug(:b)\n"),
        ("--random-seed=-1", "\\set x debug(:random_seed)\n"),
        ("--random-seed=18446744073709551616", "SELECT 1;\n"),
        ("-L 0.0001", "SELECT 1;\n"),
        ("", "\\set x debug(null and false)\n\\set x debug(true and null)\n\\set x debug(false or null)\n"),
        ("", "\\set x true and 1\n"),
        ("", "\\set x debug(case when null then 1 when 0 then 2 when 2.0 then debug(3) else debug(4) end)\n"),
        ("", "\\if false\n\\elif 1 / 0\n\\endif\n"),
        ("-d", "\\if false\nSELECT 1;\n\\elif true\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\n"),
        ("-d", "\\if 0\nSELECT 1;\n\\elif 0\nSELECT 2;\n\\elif 1\nSELECT 3;\n\\elif 1\n\\else\nSELECT 4;\n\\endif\n"),
        ("-d", "\\if 1\n\\if 0\nSELECT 3;\n\\else\nSELECT 4;\n\\endif\n\\elif 1\nSELECT 1;\n\\else\n\\endif\n"),
        ("-d -D x=1", "SELECT :x;\nBEGIN;\nSELECT 2;\nEND;\n"),
        ("-d -t 2 -M prepared -D x=1", "SELECT :x;\nSELECT 2;\n"),
        ("-d -t 2 -M extended -D x=1", "SELECT :x;\nSELECT 2;\n"),
        ("-d -C -t 2", "SELECT 1;\n"),
        ("", "BEGIN;\nSELECT 1;\n"),
        ("-M prepared", "BEGIN;\nSELECT 1;\n"),
        ("-M extended -t 3", "BEGIN;\nSELECT 1;\n"),
        ("-M prepared", "\\startpipeline\nBEGIN;\nSELECT 1;\n\\endpipeline\n"),
    ]);
}

/// DETAIL, HINT and CONTEXT of errors, and notices, as libpq shows them.
#[test]
fn everything_the_server_says_is_shown() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    for of in 0..2 {
        bench.rows(
            of,
            "CREATE TABLE one(a int PRIMARY KEY); INSERT INTO one VALUES (1); \
             CREATE FUNCTION fail() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / 0; END $$",
        );
    }
    let again = "DO $$ BEGIN RAISE 'again' USING ERRCODE = '40001', DETAIL = 'because'; END $$;\n";
    let mut wrong = Vec::new();
    for mode in ["simple", "extended", "prepared"] {
        for (options, text) in [
            ("", "DO $$ BEGIN RAISE EXCEPTION 'x' USING HINT = 'h', DETAIL = 'd'; END $$;\n"),
            ("", "DO $$ BEGIN RAISE NOTICE 'n' USING HINT = 'h', DETAIL = 'd'; END $$;\nSELECT 1;\n"),
            ("", "DO $$ BEGIN RAISE WARNING 'w'; RAISE INFO 'i'; RAISE LOG 'l'; END $$;\n"),
            ("", "INSERT INTO one VALUES (1);\n"),
            ("", "SELECT fail();\n"),
            ("-D x=abc", "SELECT :x::int;\n"),
            ("", "SELECT pg_terminate_backend(pg_backend_pid());\n"),
            ("-C -t 2", "SELECT pg_terminate_backend(pg_backend_pid());\n"),
            ("--verbose-errors", again),
            ("--verbose-errors --max-tries=3", again),
            ("--debug --max-tries=2", again),
        ] {
            bench.write("f.sql", text);
            if options == "-D x=abc" && mode == "simple" {
                continue;
            }
            wrong.extend(bench.difference(&format!("-n -t 1 -f f.sql -M {mode} {options}")));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Tables that a builtin script needs are looked for first.
#[test]
fn missing_tables_are_reported_before_the_run() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    let missing = ["-n -t 1", "-t 1 -S", "-n -b si -t 1 -s 3"];
    bench.same(&missing);
    for of in 0..2 {
        bench.rows(of, "CREATE TABLE pgbench_branches(bid int)");
    }
    bench.same(&missing);
    for of in 0..2 {
        bench.rows(of, "CREATE TABLE pgbench_accounts(aid int, abalance int)");
    }
    bench.same(&["-n -t 1 -S", "-n -t 1 -S -s 7"]);
    bench.same(&["-i nosuchdb", "-i -h 127.0.0.1 -p 1", "-n -C -c 2 nosuchdb", "-i -q", "-t 1 -s 5", "-v -t 1 -s 4"]);
}

/// The first line names the server's version only if it is another one than pgbench's.
#[test]
fn the_first_line_names_two_versions_only_if_they_differ() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.write("e.sql", "SELECT 1;\n");
    let server = bench.rows(1, "SHOW server_version");
    let ours = assay_pgbench_version(&bench);
    let first = bench.ours("-n -t 1 -f e.sql").stdout.lines().next().unwrap().to_owned();
    let expected = match server.trim().split(' ').next() {
        Some(version) if version == ours => format!("pgbench ({})", server.trim()),
        _ => format!("pgbench ({ours}, server {})", server.trim()),
    };
    assert_eq!(first, expected);
}

fn assay_pgbench_version(bench: &Bench) -> String {
    let line = bench.ours("--version").stdout;
    line.split(' ').nth(2).expect("pgbench (PostgreSQL) and the version").trim().to_owned()
}

/// pgbench 19's `--continue-on-error`, and `-d` as from 17 on: there is no such pgbench here to compare with.
#[test]
fn options_of_later_versions_work() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.rows(1, "CREATE TABLE once(n int PRIMARY KEY); CREATE SEQUENCE turn");
    bench.write("f.sql", "BEGIN;\nINSERT INTO once SELECT nextval('turn') % 4;\nEND;\n");
    let database = &bench.databases[1];
    let line = "-n -f f.sql -t 10 --continue-on-error --failures-detailed -r -l --max-tries=5 --pgbench-version=19";
    let ran = bench.ours(&format!("{line} -d {database}"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    for line in [
        "number of transactions actually processed: 4/10",
        "number of failed transactions: 6 (60.000%)",
        "number of serialization failures: 0 (0.000%)",
        "number of other failures: 6 (60.000%)",
        "total number of retries: 0",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    let names = std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = names.into_iter().find(|path| path.to_string_lossy().contains("pgbench_log.")).expect("a log file");
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().filter(|line| line.split(' ').nth(2) == Some("other")).count(), 6, "{log}");
    let told = bench.ours("-n -f f.sql -t 1 --continue-on-error --verbose-errors");
    let error = "pgbench: client 0 got an error in command 1 (SQL) of script 0; ERROR:  duplicate key value";
    assert!(
        told.code == Some(0) && told.stderr.starts_with(error) && told.stderr.contains("\nDETAIL:  Key"),
        "{told:?}"
    );
    // A lost connection still ends the client.
    bench.write("g.sql", "SELECT pg_terminate_backend(pg_backend_pid());\n");
    let lost = bench.ours("-n -f g.sql -t 2 --continue-on-error");
    assert!(lost.code == Some(2) && lost.stderr.contains("FATAL:  terminating connection"), "{lost:?}");
}

/// There is no pgbench 18 here to compare with, and pgbench 15 fails on PostgreSQL 18.
#[test]
fn statements_and_messages_of_the_initialization_are_those_of_the_servers_version() {
    let kind = |table: &str| format!("SELECT relpersistence FROM pg_class WHERE relname = '{table}'");
    let unlogged = "-i -q -I dt --unlogged-tables --partitions=3";
    for server in [Kind::Postgres, Kind::Postgres18].into_iter().filter(|server| server.present()) {
        let bench = Bench::on(server);
        let is_new = server == Kind::Postgres18;
        let ran = bench.ours(unlogged);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("\ncreating 3 partitions...\n"), "{ran:?}");
        for (table, persistence) in [
            ("pgbench_accounts_1", "u"),
            ("pgbench_accounts_3", "u"),
            ("pgbench_accounts", if is_new { "p" } else { "u" }),
            ("pgbench_branches", if is_new { "p" } else { "u" }),
            ("pgbench_history", if is_new { "p" } else { "u" }),
        ] {
            assert_eq!(bench.rows(1, &kind(table)).trim(), persistence, "{table}");
        }
        // Without partitions, all are unlogged in all versions.
        assert_eq!(bench.ours("-i -q -I dtgvp --unlogged-tables").code, Some(0));
        assert_eq!(bench.rows(1, &kind("pgbench_accounts")).trim(), "u");
        let told = |options: &str| bench.ours(&format!("-i -q {options}")).stderr;
        let table = " tuples (100%) of pgbench_accounts done (elapsed ";
        assert_eq!(told("").contains(table), is_new, "{}", told(""));
        assert!(told("--pgbench-version=15").contains(" tuples (100%) done (elapsed "));
        assert!(told("--pgbench-version=17").contains(table));
        // As pgbench 15 does.
        let refused = bench.ours(&format!("{unlogged} --pgbench-version=15"));
        assert_eq!(refused.code, Some(if is_new { 1 } else { 0 }), "{refused:?}");
        assert_eq!(bench.ours(&format!("{unlogged} --pgbench-version=18")).code, Some(0));
        assert_eq!(bench.rows(1, &kind("pgbench_accounts")).trim(), "p");
    }
}

/// Each client waits for a lock that the other one keeps until it disconnects.
#[test]
fn a_client_whose_time_is_over_disconnects_though_another_waits_for_it() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.write("lock.sql", "SELECT pg_advisory_lock(4711);\n");
    for line in [
        "-T 1",
        "-T 1 -j 2",
        "-T 1 -j 2 -M prepared",
        "-T 1 -j 2 -R 100",
        "-T 1 -P 1",
        "-t 5 -j 2",
        "-t 5 -j 2 -R 1000",
    ] {
        let ran = bench.ours(&format!("-n -f lock.sql -c 2 {line}"));
        assert!(ran.code == Some(0) && ran.stdout.contains("\ntps = "), "{line}: {ran:?}");
    }
}

/// From the second transaction on, a script of integers and SQL runs without Lua until a decision is needed.
#[test]
fn what_happens_after_the_first_transaction_is_the_same() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    for of in 0..2 {
        bench.rows(
            of,
            "CREATE TABLE once(n int PRIMARY KEY, mode text); CREATE TABLE seen(mode text, v bigint); CREATE SEQUENCE turn; \
             CREATE FUNCTION by_turns(code text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('turn') % 3 = 0 THEN RAISE EXCEPTION 'by turns' USING ERRCODE = code; END IF; RETURN 1; END $$",
        );
    }
    let scripts = [
        // The second insert is refused; the values in its text are shown.
        ("", "\\set n 7\nINSERT INTO once VALUES (:n);\n"),
        ("-D x=10", "\\set x :x * 1000000\nINSERT INTO seen VALUES ('product', :x);\n"),
        ("-D x=4", "\\set x :x - 1\n\\set y 6 / :x\nINSERT INTO seen VALUES ('quotient', :y);\n"),
        ("-D x=4", "\\set x :x - 1\n\\set y mod(7, :x) - -5 % 3\nINSERT INTO seen VALUES ('rest', :y);\n"),
        ("-D x=1", "\\set x :x * 3\n\\set y random(:x, 9)\nSELECT :y;\n"),
        ("-D x=9007199254740990", "\\set x :x + 1\nINSERT INTO seen VALUES ('large', :x);\n"),
        ("-D x=05", "\\set y 1\nINSERT INTO seen VALUES ('given', :x);\n"),
        ("-D x=1.5", "\\set y 2\nINSERT INTO seen VALUES ('halves', :x::numeric * :y::int);\n"),
        ("", "BEGIN;\nSELECT by_turns('40001');\nEND;\n"),
        ("--failures-detailed --verbose-errors", "SELECT by_turns('40P01');\n"),
        ("--max-tries=3", "SELECT by_turns('40001');\n"),
        ("-D a=5", "SELECT :a FROM gone;\nDROP TABLE gone;\n"),
    ];
    let mut wrong = Vec::new();
    for (options, text) in scripts {
        bench.write("f.sql", text);
        for mode in ["simple", "extended", "prepared"] {
            for of in 0..2 {
                bench.rows(of, "TRUNCATE once; SELECT setval('turn', 1); CREATE TABLE IF NOT EXISTS gone(n int)");
            }
            wrong.extend(bench.difference(&format!("-n -t 9 -f f.sql -M {mode} {options}")));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    let seen = "SELECT mode, v, count(*) FROM seen GROUP BY 1, 2 ORDER BY 1, 2";
    assert_eq!(bench.rows(0, seen), bench.rows(1, seen));
}

/// Expressions that both compute; random functions are not among them.
const EXPRESSIONS: &[&str] = &[
    "1 + 2 * 3",
    "5 / 2",
    "5.0 / 2",
    "-5 / 2",
    "-5 % 3",
    "5.7 % 2",
    "2.0",
    "1e10",
    "1.0/3",
    "pi()",
    "sqrt(2.0)",
    "abs(-17)",
    "abs(-2.5)",
    "power(2, 3)",
    "pow(2.5, 2)",
    "power(3, 40)",
    "int(5.4 + 3.8)",
    "int(2.5)",
    "int(3.5)",
    "int(-2.5)",
    "double(5432)",
    "greatest(5, 4, 3.0, 2)",
    "greatest(1, 2.5)",
    "least(5, 4, 3, 2)",
    "1 = 2",
    "case when true then 1 else 2 end",
    "case when 1 > 2 then 3 when 2 > 1 then 4 else 5 end",
    "case when null then 1 else 2 end",
    "mod(54, 32)",
    "3 & 6",
    "1 | 2 & 4",
    "1 << 3",
    "5 >> 1",
    "-1 >> 1",
    "1 << 63",
    "~5",
    "~1 + 1",
    "5 # 3",
    "not false",
    "1 is null",
    "not 1 = 2",
    "1 = 1 is true",
    "1 is true",
    "null is true",
    "true is not false",
    "5 isnull",
    "5 notnull",
    "1 <> 2 and 3 >= 2",
    "true or 1 > 2",
    "exp(1)",
    "ln(10)",
    "hash(10, 5432)",
    "hash_fnv1a(10, 5432)",
    "hash_murmur2(10, 5432)",
    "hash(0, 0)",
    "hash_fnv1a(-1, -1)",
    "hash_murmur2(-1, -1)",
    "hash(1.7, 0)",
    "hash_fnv1a(9223372036854775807, 42)",
    "9223372036854775807",
    "-9223372036854775808",
    "4503599627370496 * 1000",
    "9007199254740993 - 1",
    "9223372036854775807 / 3",
    "-9223372036854775807 % 10",
    "1e100",
    "0.1 + 0.2",
    "123456789012345678.5",
    "1e15",
    "1e16",
    "double(7)/3",
    "1.5e-7",
    "int(-5.5)",
    "1 - 2 - 3",
    "- 2 - - 3",
    "7 # 2 | 1",
    ".5",
    "5 = 5.0",
    "2 < 2.5",
    "0 * -1",
    "-0.0",
    "mod(5.5, 2)",
    "TRUE AND False",
    "ABS(-2)",
    "3 != 4",
];

#[test]
fn expressions_have_the_same_values() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    for of in 0..2 {
        bench.rows(of, "CREATE TABLE found(mode text, n int, v text)");
    }
    for (mode, value) in [("simple", "':v'"), ("prepared", ":v::text"), ("extended", ":v::text")] {
        let commands = EXPRESSIONS.iter().enumerate();
        let text: String = commands
            .map(|(i, expression)| {
                format!("\\set v {expression}\nINSERT INTO found VALUES ('{mode}', {i}, {value});\n")
            })
            .collect();
        bench.write("f.sql", &text);
        bench.same(&[&format!("-n -t 1 -f f.sql -M {mode}")]);
    }
    let query = "SELECT concat_ws('|', mode, n, v) FROM found ORDER BY mode, n";
    let [theirs, ours] = [0, 1].map(|of| bench.rows(of, query));
    for (theirs, ours) in theirs.lines().zip(ours.lines()) {
        let number: usize = theirs.split('|').nth(1).unwrap().parse().unwrap();
        assert_eq!(theirs, ours, "{}", EXPRESSIONS[number]);
    }
    assert_eq!(ours.lines().count(), 3 * EXPRESSIONS.len());
}

/// Only the code decides: raised for every third number of a sequence, for example.
const MAY_FAIL: &str = "CREATE SEQUENCE s; CREATE FUNCTION may_fail(every int) RETURNS int LANGUAGE plpgsql AS $$ \
     BEGIN IF nextval('s') % every = 0 THEN RAISE EXCEPTION 'by turns' USING ERRCODE = '40001'; END IF; RETURN 1; END $$";

/// Serialization failures without a race: the second of two transactions in one script cannot continue.
#[test]
fn failed_transactions_are_tried_again_counted_and_logged() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.rows(1, MAY_FAIL);
    bench.write("f.sql", "BEGIN;\nSELECT may_fail(:every);\nEND;\n");
    let tried = bench.ours("-n -f f.sql -D every=3 -t 20 --max-tries=2 --failures-detailed -r -l");
    assert_eq!(tried.code, Some(0), "{tried:?}");
    for line in [
        "number of transactions actually processed: 20/20",
        "number of serialization failures: 0 (0.000%)",
        "number of transactions retried: 9 (45.000%)",
        "total number of retries: 9",
        "           0           9  SELECT may_fail(:every);",
    ] {
        assert!(tried.stdout.contains(line), "{line}: {}", tried.stdout);
    }
    let given_up = bench.ours("-n -f f.sql -D every=1 -t 5 --failures-detailed");
    assert_eq!(given_up.code, Some(0), "{given_up:?}");
    for line in ["processed: 0/5", "number of failed transactions: 5 (100.000%)", "number of serialization failures: 5"]
    {
        assert!(given_up.stdout.contains(line), "{line}: {}", given_up.stdout);
    }
    let names = std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let log = names.into_iter().find(|path| path.to_string_lossy().contains("pgbench_log.")).expect("a log file");
    let log = std::fs::read_to_string(log).unwrap();
    let retries: u64 = log.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!((log.lines().count(), retries), (20, 9), "{log}");
}

/// The same of a workload, where the engine tries again, in the middle of a plain program.
#[test]
fn failed_transactions_of_workloads_are_tried_again() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.rows(1, MAY_FAIL);
    bench.write("f.sql", "\\set every 3 + 0\nBEGIN;\nSELECT may_fail(:every);\nEND;\n");
    let url = bench.server.url(&bench.databases[1]);
    let run = |line: &str| {
        let mut assay = Command::new(env!("CARGO_BIN_EXE_assay"));
        let line = format!("{line} --db {url} --sessions 1 --no-record");
        assay.args(words(&line)).current_dir(bench.folder.path()).output().unwrap()
    };
    let ran = run("run f.sql --transactions 20 --retries 2 --format json");
    assert!(ran.status.success(), "{ran:?}");
    let findings: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let total = &findings["stages"][0]["total"];
    assert_eq!((&total["transactions"], &total["retries"]), (&20.into(), &9.into()), "{total}");
    // Any other error ends the run, and is shown where it stands in the script.
    bench.write("g.sql", "\\set left :left - 1\nSELECT 1;\nSELECT 10 / :left;\n");
    let ran = run("run g.sql --transactions 20 --left 5");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(4) && said.contains("g.sql:3: SQL error, errno = 0, state = '22012'"), "{said}");
}

#[test]
fn logs_hold_a_sample_or_sums_of_all_transactions() {
    if !Kind::Postgres.present() {
        return;
    }
    let bench = Bench::new();
    bench.write("e.sql", "SELECT 1;\n");
    let logged = |options: &str| {
        let ran = bench.ours(&format!("-n -f e.sql -t 500 -c 2 -l --log-prefix=part {options}"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let names = std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let path = names.into_iter().find(|path| path.to_string_lossy().contains("part.")).expect("a log file");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        text
    };
    assert_eq!(logged("").lines().count(), 1000);
    let sample = logged("--sampling-rate=0.1").lines().count();
    assert!((30..=300).contains(&sample), "{sample} of 1000");
    let sums = logged("--aggregate-interval=1");
    let counted: u64 = sums.lines().map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(counted, 1000, "{sums}");
}

/// A script as a workload, and pgbench's tables from `assay prepare`.
#[test]
fn scripts_are_workloads_on_every_database() {
    let folder = tempfile::tempdir().unwrap();
    let assay = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.args(words(line)).current_dir(folder.path()).env_clear().env("HOME", folder.path());
        let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Did { code: status.code(), stdout: text(&stdout), stderr: text(&stderr) }
    };
    let move_money = "-- one transfer\n\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\n\\if :delta <> 0\nBEGIN;\n\
                      UPDATE pgbench_accounts\n  SET abalance = abalance + :delta WHERE aid = :aid;\n\
                      UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = 1;\n\
                      UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;\n\
                      INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (1, 1, :aid, :delta);\nCOMMIT;\n\\endif\n";
    std::fs::write(folder.path().join("move.sql"), move_money).unwrap();
    let keep_rows = "SELECT abalance AS a, aid AS b FROM pgbench_accounts WHERE aid = 3 \\gset was_\n\
                     UPDATE pgbench_accounts SET abalance = :was_a + 1 WHERE aid = :was_b;\n\
                     SELECT tid FROM pgbench_tellers WHERE tid < 3 ORDER BY tid \\aset\n\
                     UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = :tid;\n";
    std::fs::write(folder.path().join("keep.sql"), keep_rows).unwrap();
    let mixed = "local connection\n\
                 function thread_init() connection = sysbench.sql.driver():connect() end\n\
                 function prepare()\n\
                   local c = sysbench.sql.driver():connect()\n\
                   c:query(\"UPDATE pgbench_accounts SET abalance = 0 WHERE aid = 3\")\n\
                   c:query(\"UPDATE pgbench_tellers SET tbalance = 0 WHERE tid = 2\")\n\
                 end\n\
                 function check()\n\
                   local c = sysbench.sql.driver():connect()\n\
                   local kept = c:query_row(\"SELECT abalance FROM pgbench_accounts WHERE aid = 3\")\n\
                   local last = c:query_row(\"SELECT tbalance FROM pgbench_tellers WHERE tid = 2\")\n\
                   assert(tonumber(kept) == 7 and tonumber(last) == 7, kept .. \" \" .. last)\n\
                 end\n\
                 local read = assay.transaction(\"read\", function() connection:query(\"SELECT 1\") end)\n\
                 local write = assay.transaction(\"write\", function()\n\
                   connection:query(\"UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1\")\n\
                 end)\n\
                 function event() read() end\n";
    std::fs::write(folder.path().join("mixed.lua"), mixed).unwrap();
    std::fs::write(folder.path().join("wrong.sql"), "SELECT 1;\n\nSELECT *\nFROM nosuch;\n").unwrap();
    // These run without Lua after their first transaction; the second until a value is not an integer.
    let plain = "\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
                 UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
                 SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nCOMMIT;\n";
    std::fs::write(folder.path().join("plain.sql"), plain).unwrap();
    let ends = "\\set left :left - 1\nSELECT :left;\n\n\\set share 10 / :left\n";
    std::fs::write(folder.path().join("ends.sql"), ends).unwrap();
    let mut urls = vec!["sqlite:a.db".to_owned()];
    for kind in [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present()) {
        urls.push(kind.shared().url(&kind.shared().fresh_database().unwrap()));
    }
    for url in urls {
        let expect = |line: &str, code: i32| {
            let did = assay(&format!("{line} --db {url}"));
            assert_eq!(did.code, Some(code), "{line} --db {url}: {did:#?}");
            did
        };
        expect("prepare tpcb --sessions 2", 0);
        let ran =
            expect("run move.sql --scale 1 --transactions 40 --sessions 2 --retries 9 --no-record --format json", 0);
        let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(findings["stages"][0]["total"]["transactions"], 40, "{}", ran.stdout);
        expect("run tpcb --transactions 40 --sessions 2 --retries 9 --no-record --check", 0);
        let ran =
            expect("run plain.sql --scale 1 --transactions 60 --sessions 2 --retries 9 --no-record --format json", 0);
        let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let total = &findings["stages"][0]["total"];
        assert!(total["transactions"] == 60 && total["statements"].as_u64() >= Some(4 * 60), "{total}");
        let ended = expect("run ends.sql --left 5 --transactions 9 --sessions 1 --no-record", 3);
        assert!(ended.stderr.contains("ends.sql:4: division by zero"), "{}", ended.stderr);
        let refused = expect("run wrong.sql --transactions 1 --no-record", 4);
        assert!(refused.stderr.contains("wrong.sql:3: "), "{}", refused.stderr);
        expect("prepare ./mixed.lua", 0);
        expect("run keep.sql --transactions 7 --sessions 1 --no-record", 0);
        expect("check ./mixed.lua", 0);
        let mix = "--mix read=3,write=1 --rate 2000 --arrival poisson --transactions 200 --sessions 4 --seed 1";
        let ran = expect(&format!("run ./mixed.lua {mix} --retries 9 --no-record --format json"), 0);
        let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let of = |name: &str| {
            let types = findings["stages"][0]["total"]["types"].as_array().expect("types");
            types.iter().find(|kind| kind["name"] == name).and_then(|kind| kind["transactions"].as_u64()).unwrap_or(0)
        };
        assert_eq!(of("read") + of("write"), 200, "{}", ran.stdout);
        assert!((20..=80).contains(&of("write")), "{}", ran.stdout);
        let misspelled = expect("run move.sql --scael 1", 2);
        assert!(misspelled.stderr.contains("--scale"), "{}", misspelled.stderr);
    }
}
