//! Finding records among many, and their history.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use assay_record::{Existing, Record, Status, Time};
use insta::assert_snapshot;

use crate::common::Folder;

const DAY: u64 = 86_400_000;

/// Records of the same run, a day apart: `throughput` is a factor for each.
fn fill(folder: &Path, throughput: &[f64], change: impl Fn(usize, &mut Record)) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assay-record/tests/records/0.1.0.json.zst");
    let mut record = Record::read(&shipped).unwrap();
    record.status = Status::Complete;
    record.environment.host.name = "lab1".into();
    record.stages.truncate(1);
    let length = record.stages[0].measured_ns;
    for (number, factor) in throughput.iter().enumerate() {
        let mut record = record.clone();
        record.started = Time::from_unix_ms(1_767_225_600_000 + number as u64 * DAY);
        record.manifest.seed = number as u64;
        record.tags.insert("commit".into(), format!("c{number:03}"));
        for stage in &mut record.stages {
            stage.measured_ns = (length as f64 / factor) as u64;
        }
        change(number, &mut record);
        record.create(&folder.join(format!("{number:03}.json.zst")), Existing::Keep).unwrap();
    }
}

/// Noise of about 2 % that is always the same.
fn noise(number: usize) -> f64 {
    1.0 + ((number * 7919 % 101) as f64 - 50.0) / 2_500.0
}

#[test]
fn records_are_found_and_handed_to_other_commands() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.1, 0.9], |number, record| {
        record.manifest.workload = if number == 1 { "tpcc" } else { "oltp_read_only" }.into();
    });
    folder.write("foreign.json", "{}");
    assert_snapshot!(folder.run("library workload=oltp_* --quiet").shown(), @"
    exit 0
    --- stdout
    2 of 3 records

    started                                             sessions    tps  p95 ms
    2026-01-01 00:00  oltp_read_only  PostgreSQL 15.14        16  1,200    6.59  complete  000.json.zst
    2026-01-03 00:00  oltp_read_only  PostgreSQL 15.14        16  1,080    6.59  complete  002.json.zst
    --- stderr
    1 file is not a readable record: see --problems
    ");
    assert_snapshot!(folder.run("library commit=c001 --paths").shown(), @"
    exit 0
    --- stdout
    001.json.zst
    ");
    assert_snapshot!(folder.run("library --problems").shown(), @"
    exit 0
    --- stdout
    foreign.json: not a record of assay, or damaged: missing field `format` at line 1 column 2
    ");
    assert_snapshot!(folder.run("library comit=c001").shown(), @"
    exit 2
    --- stderr
    error: comit=c001: no record has a tag or setting comit

    hint: did you mean commit?
    ");
    assert_snapshot!(folder.run("library here there").shown(), @"
    exit 2
    --- stderr
    error: two folders: here and there

    hint: a condition is KEY=VALUE, such as workload=tpcc
    ");
    let paths = folder.expect("library commit!=c001 --paths", 0).stdout.replace('\n', " ");
    folder.expect(&format!("tag {paths} disk=nvme"), 0);
    let found = folder.expect("library disk=nvme --json --limit 1", 0).findings();
    assert_eq!((&found["matched"], &found["entries"][0]["path"]), (&2.into(), &"002.json.zst".into()));
}

#[test]
fn a_history_shows_when_it_got_worse_and_what_changed_with_it() {
    let folder = Folder::new();
    let throughput: Vec<f64> = (0..60).map(|number| noise(number) * if number < 40 { 1.0 } else { 0.9 }).collect();
    fill(folder.path(), &throughput, |number, record| {
        if number >= 40 {
            record.tool.version = "0.1.1".into();
        }
    });
    assert_snapshot!(folder.run("history --by commit --quiet").shown(), @"
    exit 0
    --- stdout
    tps got worse: −10.0% [−10.7, −9.5] at c040

    shop.lua, PostgreSQL, 16 sessions
      60 values of commit, 2026-01-01 … 2026-03-01; on lab1, AMD EPYC 7B13, 4 CPUs, 16 GiB
      ▆▇█▇▇▆▇█▇▇▆▇█▇▇▆▇█▇▇▆▇█▇█▆▇█▇█▇▇█▇█▇▇▆▇█▂▃▂▃▃▂▃▂▃▃▂▃▂▃▃▂▃▂▃▃
      worse    −10.0% [−10.7, −9.5] at c040, the first after c039: 1,201 → 1,080
               changed with it: tool assay 0.1.0 → assay 0.1.1
      noise 1.5%; ten more points would show a change of 4.5%
      to acknowledge it: acknowledged 985d1217 tps c040 REASON
    ");
    let failed = folder.expect("history --by commit --fail-if-worse --format markdown", 1);
    assert_snapshot!(failed.shown(), @"
    exit 1
    --- stdout
    <!-- assay history -->
    **tps** got worse in 1 series

    | what | where | change | changed with it |
    | --- | --- | ---: | --- |
    | shop.lua, PostgreSQL, 16 sessions (985d1217) | c040 | −10% | changed with it: tool assay 0.1.0 → assay 0.1.1 |
    --- stderr
    error: tps got worse (--fail-if-worse)
    ");
    let id = folder.expect("history --by commit --format json", 0).findings()["series"][0]["id"].clone();
    folder
        .write("assay-history.txt", &format!("# known\nacknowledged {} tps c040 the new tool\n", id.as_str().unwrap()));
    let known = folder.expect("history --by commit --fail-if-worse", 0).stdout;
    let words: Vec<&str> = known.split_whitespace().collect();
    assert!(words.join(" ").contains("acknowledged: the new tool"), "{known}");
    folder.write("assay-history.txt", "acknowledge everything");
    assert_snapshot!(folder.run("history").shown(), @"
    exit 2
    --- stderr
    error: ./assay-history.txt: line 1: expected `acknowledged|baseline SERIES METRIC POINT REASON…`
    ");
    folder.write("assay-history.txt", "");
    assert_snapshot!(folder.run("history --metric tsp").shown(), @"
    exit 2
    --- stderr
    error: no record has the figure tsp

    hint: did you mean tps?
    ");
}

#[test]
fn another_machine_starts_a_series_of_its_own() {
    let folder = Folder::new();
    let throughput: Vec<f64> = (0..40).map(|number| noise(number) * if number < 20 { 1.0 } else { 0.5 }).collect();
    fill(folder.path(), &throughput, |number, record| {
        if number >= 20 {
            record.environment.host.name = "lab2".into();
        }
    });
    assert_snapshot!(folder.expect("history --fail-if-worse", 0).shown(), @"
    exit 0
    --- stdout
    tps: no new change for the worse in 2 series of results

    shop.lua, PostgreSQL, 16 sessions
      20 records, 2026-01-01 … 2026-01-20; on lab1, AMD EPYC 7B13, 4 CPUs, 16 GiB
      ▂▅▇▃▆▂▅█▄▆▂▅█▄▇▃▅█▄▇
      noise 1.4%; ten more points would show a change of 4.2%

    shop.lua, PostgreSQL, 16 sessions
      20 records, 2026-01-21 … 2026-02-09; on lab2, AMD EPYC 7B13, 4 CPUs, 16 GiB
      ▃▅█▄▆▃▅█▄▇▃▅█▄▇▃▆▂▄▇
      another machine before, whose results are a series of their own: lab1, AMD EPYC 7B13, 4 CPUs, 16
        GiB
      noise 1.5%; ten more points would show a change of 4.4%
    ");
}

#[test]
fn two_results_without_a_difference_have_nothing_to_explain() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.01, 0.99, 1.0, 1.005, 0.995, 1.01, 0.99], |_, _| ());
    let sides = "--baseline 000.json.zst 001.json.zst 002.json.zst 003.json.zst \
                 --candidate 004.json.zst 005.json.zst 006.json.zst 007.json.zst";
    assert_snapshot!(folder.expect(&format!("explain {sides}"), 0).shown(), @"
    exit 0
    --- stdout
    No difference in p99 that chance does not explain: 8.52 ms → 8.52 ms, ±0.0% [±0.0, ±0.0].
    ! the trials of baseline differ in their settings: tag commit is c000 or c001 or c002 or c003
    ! 16 transactions of baseline failed; no figure includes them
    ! the trials of candidate differ in their settings: tag commit is c004 or c005 or c006 or c007
    ! 16 transactions of candidate failed; no figure includes them

    baseline:  4 trials: 000.json.zst, …
    candidate: 4 trials: 004.json.zst, …
    ");
}

#[test]
fn a_page_over_all_records_is_one_file() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.1, 0.9], |_, record| drop(record.tags.insert("note".into(), "</script><b>".into())));
    folder.write("001.html", "the page of a record");
    folder.expect("library --html index.html", 0);
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(page.contains("\"001.html\"") && page.contains("\"002.json.zst\",null"), "{page}");
    assert_eq!(page.matches("</script>").count(), 2, "text from a record must not end the script");
    assert!(!page.contains("http://") && !page.contains("https://"));
}

/// One of the scripts of `action/`, with what GitHub would set. The tested program is in the PATH.
fn step(folder: &Folder, script: &str, variables: &[(&str, &str)]) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action").join(script);
    let program = Path::new(env!("CARGO_BIN_EXE_assay")).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("bash");
    command.arg(script).current_dir(folder.path()).envs(variables.iter().copied()).env("PATH", path);
    command.env("RUNNER_TEMP", folder.path()).env("GITHUB_OUTPUT", folder.path().join("outputs"));
    command.env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md")).output().unwrap()
}

#[test]
fn the_action_compares_and_keeps_one_comment_up_to_date() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.01, 0.99, 1.0, 0.8, 0.81, 0.79, 0.8], |_, record| {
        record.tags.clear();
    });
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let variables = [
        ("BASELINE", "00[0-3].json.zst"),
        ("CANDIDATE", "00[4-7].json.zst"),
        ("FAIL_IF", "tps < -10%\n"),
        ("FAIL_IF_UNSURE", "true"),
        ("MARGIN", "3%"),
        ("TITLE", "queue"),
    ];
    let compared = step(&folder, "compare.sh", &variables);
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let outputs = read("outputs");
    let (markdown, status) = outputs.trim().split_once('\n').unwrap();
    let markdown = markdown.strip_prefix("markdown=").unwrap();
    assert_eq!(status, "status=1");
    let summary = read("summary.md");
    assert!(summary.starts_with("### queue: **failed**\n\n````text\n"), "{summary}");
    assert!(summary.contains("error: --fail-if is met: tps < -10%"), "{summary}");
    assert!(summary.contains("<details><summary>Why</summary>") && summary.contains("Throughput fell ("), "{summary}");

    // What GitHub would get: the comments are asked for, then one is created or changed.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let variables = [
        ("GITHUB_API_URL", &*address),
        ("GITHUB_REPOSITORY", "a/b"),
        ("NUMBER", "7"),
        ("TITLE", "queue"),
        ("TOKEN", "secret"),
        ("MARKDOWN", markdown),
    ];
    let other = r#"[{"id": 1, "body": "Nice"}]"#;
    let ours = r#"[{"id": 1, "body": "Nice"}, {"id": 2, "body": "<!-- assay compare: queue -->\nold"}]"#;
    for (comments, expected) in
        [(other, "POST /repos/a/b/issues/7/comments"), (ours, "PATCH /repos/a/b/issues/comments/2")]
    {
        let asked = std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                [comments, "{}"].map(|answer| {
                    let mut stream = listener.accept().unwrap().0;
                    let request = request(&mut stream);
                    let head =
                        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", answer.len());
                    stream.write_all((head + answer).as_bytes()).unwrap();
                    request
                })
            });
            let commented = step(&folder, "comment.sh", &variables);
            assert!(commented.status.success(), "{}", String::from_utf8_lossy(&commented.stderr));
            asked.join().unwrap()
        });
        assert!(asked[0].starts_with("GET /repos/a/b/issues/7/comments?per_page=100&page=1 "), "{}", asked[0]);
        assert!(asked.iter().all(|one| one.contains("\r\nAuthorization: Bearer secret\r\n")), "{asked:?}");
        assert!(asked[1].starts_with(expected), "{}", asked[1]);
        let (_, body) = asked[1].split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["body"], format!("<!-- assay compare: queue -->\n{summary}"));
    }
    // Too few trials to tell are neither: whether a condition is meant, or the difference.
    for condition in ["tps < -10%", ""] {
        let variables = [("BASELINE", "000.json.zst"), ("CANDIDATE", "004.json.zst"), ("FAIL_IF", condition)];
        let others = [("FAIL_IF_UNSURE", "false"), ("MARGIN", "3%"), ("TITLE", "few")];
        let compared = step(&folder, "compare.sh", &[&variables[..], &others].concat());
        assert!(compared.status.success() && read("outputs").ends_with("status=0\n"), "{}", read("outputs"));
        assert!(read("summary.md").contains("### few: cannot tell\n"), "{}", read("summary.md"));
        std::fs::remove_file(folder.path().join("summary.md")).unwrap();
    }
    // Records that are not there are neither a pass nor a difference.
    let variables = [("BASELINE", "no.zst"), ("CANDIDATE", "no.zst"), ("FAIL_IF", ""), ("FAIL_IF_UNSURE", "false")];
    let compared = step(&folder, "compare.sh", &[&variables[..], &[("MARGIN", "3%"), ("TITLE", "queue")]].concat());
    assert!(compared.status.success() && read("outputs").ends_with("status=5\n"), "{}", read("outputs"));
}

/// A whole request.
fn request(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut buffer).unwrap();
        text.extend_from_slice(&buffer[..length]);
        let so_far = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = so_far.split_once("\r\n\r\n") else { continue };
        let wanted = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
        if body.len() >= wanted.unwrap_or(0) {
            return so_far;
        }
    }
}

#[test]
fn a_folder_is_served_while_it_grows() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.1], |_, _| ());
    folder.write("private.txt", "not a record");
    let address = format!("127.0.0.1:{}", testkit::free_port().unwrap());
    let mut served = folder.start(&format!("serve --listen {address}"));
    served.wait_for(&format!("serving 2 records at http://{address}/"));
    let ask = |path: &str| -> String {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = ask("/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8"), "{page}");
    assert!(page.contains("\"001.json.zst\",\"page/001.json.zst\""), "{page}");
    let record = ask("/page/001.json.zst");
    assert!(record.contains("shop.lua"), "{record}");
    for path in ["/private.txt", "/page/private.txt", "/page/../private.txt", "/page/%2e%2e/etc/passwd", "/page/"] {
        assert!(ask(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    let other = Folder::new();
    fill(other.path(), &[1.0, 1.1, 0.9], |_, _| ());
    std::fs::copy(other.path().join("002.json.zst"), folder.path().join("002.json.zst")).unwrap();
    while !ask("/").contains("\"002.json.zst\"") {
        std::thread::yield_now();
    }
    let taken = folder.run(&format!("serve --listen {address}"));
    assert_eq!(taken.code, Some(5), "{}", taken.shown());
    served.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(served.finish().code, Some(0));
}

#[test]
fn a_bisection_finds_the_first_bad_value_and_continues_from_its_records() {
    let folder = Folder::new();
    // A transaction takes a millisecond, from 40 on ten times as long. It sleeps most of the time, so that a trial
    // needs no CPU, and takes so long that a worker that waits for a CPU once does not look like ten of them.
    folder.write("slower.lua", SLEEPER);
    let line = "bisect './slower.lua --rows {} --transactions 60' --values 1,2,3,4,40,41,42 --records found --quiet";
    let found = folder.expect(line, 0).stdout;
    assert!(found.starts_with("40 is the first bad one ("), "{found}");
    let files = std::fs::read_dir(folder.path().join("found")).unwrap().count();
    assert_eq!(folder.expect(line, 0).stdout, found);
    assert_eq!(std::fs::read_dir(folder.path().join("found")).unwrap().count(), files);
}

#[test]
fn a_bisection_without_a_difference_says_so() {
    let folder = Folder::new();
    folder.write("slower.lua", SLOWER);
    let line =
        "bisect './slower.lua --rows 5 --tag at={} --transactions 60' --values a,b,c --ends 4 --margin 900% --quiet";
    assert_snapshot!(folder.expect(line, 1).stderr, @"error: the ends do not differ");
    assert_snapshot!(folder.run("bisect 'x --rows {}' --values 1").stderr, @"error: a search needs at least two candidates: a good one and a bad one");
}

/// What a build makes is how many statements a transaction has.
const BUILD: &str = r#"
set -e
echo "$1" >> built.txt
git show "$1:rows" > rows-built
if grep -q broken rows-built; then exit 1; fi
mkdir -p builds
mv rows-built "builds/$1"
"#;

const BUILT: &str = r#"
sysbench.cmdline.options = { candidate = { "what was built", "" } }
function event()
    for i = 1, rows do con:query("SELECT " .. i) end
end
function thread_init()
    drv = sysbench.sql.driver(); con = drv:connect()
    rows = tonumber(io.open("builds/" .. sysbench.opt.candidate):read("*l"))
end
"#;

#[test]
fn a_bisection_builds_commits_skips_those_that_do_not_build_and_continues() {
    let folder = Folder::new();
    let git = |words: &[&str]| -> String {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let output = std::process::Command::new("git").args(identity).args(words).current_dir(folder.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    let commit = |rows: &str| {
        folder.write("rows", rows);
        git(&["add", "rows"]);
        git(&["commit", "--quiet", "--message", rows]);
        git(&["rev-parse", "HEAD"])
    };
    let commits = ["1", "2", "broken", "40", "41"].map(commit);
    folder.write("build.sh", BUILD);
    folder.write("built.lua", BUILT);
    let line = format!(
        "bisect './built.lua --candidate {{}} --transactions 600' --commits {}..{} --build 'sh build.sh {{}}' \
         --records found",
        commits[0], commits[4]
    );
    let found = folder.expect(&line, 0);
    let range = format!("the first bad one is among {} … {}", commits[2], commits[3]);
    assert!(found.stdout.starts_with(&range), "{}", found.shown());
    assert!(found.stderr.contains(&format!("{} does not build: it is skipped", commits[2])), "{}", found.stderr);
    let built = || std::fs::read_to_string(folder.path().join("built.txt")).unwrap();
    let builds = built();
    assert_eq!(builds.lines().filter(|line| *line == commits[0]).count(), 1, "built once: {builds}");
    // Nothing is built or measured again.
    let again = folder.expect(&line, 0);
    assert_eq!((again.stdout, built()), (found.stdout, builds));
    // Another search does not use these records.
    let other = folder.expect(&line.replace("--transactions 60", "--transactions 61"), 2).stderr;
    assert!(other.starts_with("error: found has the records of another search"), "{other}");
}

#[test]
fn versions_are_those_that_the_lab_can_start() {
    let folder = Folder::new();
    let refused = |range: &str| folder.run(&format!("bisect 'x --server {{}}' --versions {range} --quiet")).stderr;
    assert_snapshot!(refused("postgres:15"), @"error: --versions postgres:15: expected PRODUCT:FIRST..LAST");
    let two = "error: --versions postgres..18: expected two versions, such as postgres:9.6..18\n";
    assert_eq!(refused("postgres..18"), two);
    let unknown = refused("postgres:98..99");
    assert!(unknown.starts_with("error: --versions postgres:98..99: fewer than two such versions are"), "{unknown}");
    assert!(unknown.contains("available versions of postgres: 9.6"), "{unknown}");
    // A workload that is not there: each version of the range was a candidate.
    let tried = refused("postgres:9.6..18");
    assert!(tried.starts_with("error: postgres:9.6"), "{tried}");
}

/// How long a transaction sleeps depends on the option.
const SLEEPER: &str = r#"
local assay = require("assay")
sysbench.cmdline.options = { rows = { "from 40 on, a transaction takes ten times as long", 1 } }
function event() assay.sleep(sysbench.opt.rows < 40 and 0.001 or 0.01) end
"#;

const SLOWER: &str = r#"
sysbench.cmdline.options = { rows = { "statements per transaction", 1 } }
function event()
    for i = 1, sysbench.opt.rows do con:query("SELECT " .. i) end
end
function thread_init() drv = sysbench.sql.driver(); con = drv:connect() end
"#;
