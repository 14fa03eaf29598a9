//! Several trials, duels of two settings, and `compare`.

use std::path::Path;

use assay_record::{OptionValue, Rate, Record, Status};
use insta::assert_snapshot;
use nix::sys::signal::Signal;

use crate::common::{Folder, ONE_TABLE};

/// Records made from one that is kept in the tree: `SIDE-N.json.zst`, with this many thousandths of its throughput.
pub(crate) fn records(folder: &Folder, side: &str, thousandths: &[u64], mend: impl Fn(&mut Record)) {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../assay-record/tests/records/0.1.0.json.zst");
    for (number, factor) in thousandths.iter().enumerate() {
        let mut record = Record::read(Path::new(kept)).unwrap();
        record.status = Status::Complete;
        record.stages.truncate(1);
        record.stages[0].total.transactions.iter_mut().for_each(|one| one.count = one.count * factor / 1000);
        mend(&mut record);
        record.write(&folder.path().join(format!("{side}-{}.json.zst", number + 1))).unwrap();
    }
}

/// Five trials per side; the candidate's are 10 % slower.
fn slower() -> Folder {
    let folder = Folder::new();
    records(&folder, "a", &[1000, 1005, 995, 1010, 990], |_| ());
    records(&folder, "b", &[900, 905, 895, 910, 890], |record| {
        record.manifest.session_sql = vec!["SET fsync = on".into()];
    });
    folder
}

const SIDES: &str = "compare --baseline a-1.json.zst a-2.json.zst a-3.json.zst a-4.json.zst a-5.json.zst \
    --candidate b-1.json.zst b-2.json.zst b-3.json.zst b-4.json.zst b-5.json.zst";

#[test]
fn two_sides_are_compared_with_their_interval_and_what_differs() {
    assert_snapshot!(slower().run(SIDES).shown(), @r"
    exit 0
    --- stdout
    no difference found: p99 ms 8.52 → 8.52, ±0.0% [±0.0, ±0.0] at 95% is within
    ±3.0%

    ! 20 transactions of baseline failed; no figure includes them

    ! 20 transactions of candidate failed; no figure includes them

    baseline   baseline · shop.lua · 5 trials · PostgreSQL 15.14
               a-1.json.zst … a-5.json.zst
    candidate  candidate · shop.lua · 5 trials · PostgreSQL 15.14
               b-1.json.zst … b-5.json.zst

    the sides differ in:
      session SQL: SET application_name = 'shop' → SET fsync = on

    16 sessions         baseline    candidate                change
    tx/s               1,200 ±12    1,080 ±12  −10.0% [−11.4, −8.6]  slower
    p50 ms               3.18 ±0      3.18 ±0    ±0.0% [±0.0, ±0.0]  the same
    p95 ms               6.59 ±0      6.59 ±0    ±0.0% [±0.0, ±0.0]  the same
    p99 ms               8.52 ±0      8.52 ±0    ±0.0% [±0.0, ±0.0]  the same
    assay CPU µs/tx  41.67 ±0.40  46.30 ±0.50  +11.1% [+9.4, +12.8]  more
    shop p99 ms          4.96 ±0      4.96 ±0    ±0.0% [±0.0, ±0.0]  the same
    refund p99 ms        8.92 ±0      8.92 ±0    ±0.0% [±0.0, ±0.0]  the same
    ");
}

#[test]
fn a_condition_that_is_met_exits_with_1_and_one_that_is_not_with_0() {
    let folder = slower();
    let met = folder.expect(&format!("{SIDES} --fail-if 'tps < -3%' --fail-if 'shop.p99 > +10%'"), 1);
    assert!(met.stdout.contains("fail-if tps < -3%: met: the change is −10.0%\n"), "{}", met.shown());
    assert!(met.stdout.contains("fail-if shop.p99 > +10%: not met: the change is ±0.0%\n"), "{}", met.shown());
    assert_eq!(met.stderr, "error: --fail-if is met: tps < -3%\n");
    folder.expect(&format!("{SIDES} --fail-if 'tps < -20%'"), 0);

    // The same for throughputs that a workload names itself.
    let named = |record: &mut Record| {
        let (of, per_ns) = (Some("shop".to_owned()), 60_000_000_000);
        record.rates = vec![Rate { name: "tpmC".into(), of, rolled_back: true, per_ns, nominal: None }];
    };
    let folder = Folder::new();
    records(&folder, "a", &[1000, 1005, 995, 1010, 990], named);
    records(&folder, "b", &[900, 905, 895, 910, 890], named);
    let met = folder.expect(&format!("{SIDES} --fail-if 'tpmC < -3%'"), 1);
    assert!(met.stdout.contains("fail-if tpmC < -3%: met: the change is −10.0%\n"), "{}", met.shown());
    folder.expect(&format!("{SIDES} --fail-if 'tpmC < -20%'"), 0);
}

#[test]
fn a_change_that_may_be_chance_fails_only_with_fail_if_unsure() {
    let folder = Folder::new();
    // The medians rise, but most pairs fall.
    records(&folder, "a", &[997, 1000, 1348], |_| ());
    records(&folder, "b", &[865, 1146, 1167], |_| ());
    let sides = "compare --baseline a-1.json.zst a-2.json.zst a-3.json.zst \
        --candidate b-1.json.zst b-2.json.zst b-3.json.zst";
    let up = folder.expect(&format!("{sides} --fail-if 'tps < -3%'"), 0).stdout;
    assert!(up.contains(" +14.6% (no interval)  cannot tell\n"), "{up}");
    assert!(up.contains("fail-if tps < -3%: not met: the change is +14.6%\n"), "{up}");
    let unsure = format!("{sides} --fail-if 'tps > +3%' --fail-if 'shop.p99 > +10%'");
    let told = folder.expect(&unsure, 0).stdout;
    let words =
        "fail-if tps > +3%: cannot tell: the change is +14.6%, but a confidence interval\nneeds 4 trials per side\n";
    assert!(told.contains(words), "{told}");
    let failed = folder.expect(&format!("{unsure} --fail-if-unsure"), 1);
    assert_snapshot!(failed.stderr, @r"
    error: --fail-if may be met (--fail-if-unsure): tps > +3%

    hint: run more trials for a narrower confidence interval
    ");
}

#[test]
fn a_condition_that_cannot_be_understood_is_a_mistake() {
    let folder = slower();
    assert_snapshot!(folder.run(&format!("{SIDES} --fail-if 'tsp < -3%'")).shown(), @r"
    exit 2
    --- stderr
    error: --fail-if tsp < -3%: there is no metric tsp

    hint: did you mean tps?
    ");
    // Nothing resembles it: a few names, and where all are.
    let ran = folder.expect(&format!("{SIDES} --fail-if 'zzz > 3%'"), 2);
    assert!(ran.stderr.contains("hint: there are ") && ran.stderr.contains(", such as "), "{}", ran.shown());
    assert_snapshot!(folder.run(&format!("{SIDES} --fail-if 'tps = 3'")).shown(), @r"
    exit 2
    --- stderr
    error: --fail-if tps = 3: expected a metric, < or >, and a change in percent, such as 'tps < -3%' or 'p99 > +10%'
    ");
    assert_snapshot!(folder.run("compare a-1.json.zst a-2.json.zst --fail-if 'tps < -3%'").shown(), @r"
    exit 2
    --- stderr
    error: --fail-if has nothing to compare: all records have the same settings (shop.lua)

    hint: give the records of each side with --baseline and --candidate
    ");
    assert_snapshot!(folder.run("compare --baseline a-1.json.zst").shown(), @r"
    exit 2
    --- stderr
    error: --candidate <RECORD>... is missing

    hint: `assay compare --help` has examples
    ");
    assert_snapshot!(folder.run("compare a-1.json.zst --margin 0").shown(), @r"
    exit 2
    --- stderr
    error: --margin 0: expected a percentage above 0, such as 3%
    ");
}

#[test]
fn records_of_several_settings_are_a_grid() {
    let folder = slower();
    records(&folder, "c", &[1000, 1005, 995, 1010], |record| {
        record.manifest.options.insert("items".into(), OptionValue::Int(5));
    });
    let all = "compare a-1.json.zst a-2.json.zst a-3.json.zst a-4.json.zst b-1.json.zst b-2.json.zst b-3.json.zst \
        b-4.json.zst c-1.json.zst c-2.json.zst c-3.json.zst c-4.json.zst";
    assert_snapshot!(folder.run(all).shown(), @r"
    exit 0
    --- stdout
    baseline   items=100000, application_name … · shop.lua · 4 trials
               PostgreSQL 15.14 · a-1.json.zst … a-4.json.zst
               items=100000, fsync = on · shop.lua · 4 trials · PostgreSQL 15.14
               b-1.json.zst … b-4.json.zst
                 session SQL: SET application_name = 'shop' → SET fsync = on
               items=5, application_name = 'sh… · shop.lua · 4 trials
               PostgreSQL 15.14 · c-1.json.zst … c-4.json.zst
                 option items: 100000 → 5

    ! not all settings did the same work from the same machine, so the server alone
      does not explain a ratio

    ! 16 transactions of items=100000, application_name … failed; no figure includes
      them

    ! 16 transactions of items=100000, fsync = on failed; no figure includes them

    ! 16 transactions of items=5, application_name = 'sh… failed; no figure includes
      them

    with 16 sessions

    setting                            tx/s   ratio  p50 ms   ratio  p99 ms   ratio
    items=100000, application_name …  1,203       1    3.18       1    8.52       1
    items=100000, fsync = on          1,083   0.900    3.18  1.000*    8.52  1.000*
    items=5, application_name = 'sh…  1,203  1.000*    3.18  1.000*    8.52  1.000*

    * the 95% confidence interval of the ratio includes 1: this may be chance
    ? too few trials: a confidence interval needs at least 4 per setting
    ");
    let csv = folder.expect(&format!("{all} --format csv"), 0).stdout;
    // Names of settings contain commas, in quotes.
    let outside = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
    let columns: Vec<usize> = csv.lines().map(outside).collect();
    assert!(columns.len() > 40 && columns.iter().all(|count| *count == columns[0]), "{csv}");
}

#[test]
fn records_of_one_setting_are_summed_up() {
    let folder = slower();
    assert_snapshot!(folder.run("compare a-1.json.zst a-2.json.zst a-3.json.zst a-4.json.zst a-5.json.zst").shown(), @r"
    exit 0
    --- stdout
    5 trials with 16 sessions:

    trial      tx/s  p50 ms  p95 ms  p99 ms  assay CPU µs/tx  failed
    1         1,200    3.18    6.59    8.52             41.7       4
    2         1,206    3.18    6.59    8.52             41.5       4
    3         1,194    3.18    6.59    8.52             41.9       4
    4         1,212    3.18    6.59    8.52             41.3       4
    5         1,188    3.18    6.59    8.52             42.1       4
    median    1,200    3.18    6.59    8.52             41.7
    95% low   1,189    3.18    6.59    8.52             41.3
    95% high  1,212    3.18    6.59    8.52             42.1
    spread     2.0%      0%      0%      0%             2.0%

    ! 20 transactions of shop.lua failed; no figure includes them
    ");
    let json = folder.expect("compare a-1.json.zst a-2.json.zst --format json", 0).findings();
    assert_eq!(json["stages"][0]["metrics"][0]["trials"]["values"].as_array().unwrap().len(), 2);
}

#[test]
fn a_trial_in_several_files_counts_once() {
    let folder = slower();
    let path = |name: &str| folder.path().join(name);
    let copied = Record::read(&path("a-1.json.zst")).unwrap();
    copied.write(&path("copy.json")).unwrap();
    std::fs::hard_link(path("a-1.json.zst"), path("link.json.zst")).unwrap();
    std::os::unix::fs::symlink("a-1.json.zst", path("symbolic.json.zst")).unwrap();
    let same = "a-1.json.zst ./a-1.json.zst copy.json link.json.zst symbolic.json.zst";
    // A copy may have been tagged.
    folder.expect("tag copy.json disk=nvme", 0);
    assert_snapshot!(folder.run(&format!("compare {same}")).shown(), @r"
    exit 0
    --- stdout
    1 trial with 16 sessions:

    trial   tx/s  p50 ms  p95 ms  p99 ms  assay CPU µs/tx  failed
    1      1,200    3.18    6.59    8.52             41.7       4
    a confidence interval needs at least 5 trials

    ! a-1.json.zst was also given as ./a-1.json.zst, copy.json, link.json.zst and 1
      more: a trial counts once

    ! 4 transactions of shop.lua failed; no figure includes them
    --- stderr
    warning: these files hold the same trial, which counts once: a-1.json.zst, ./a-1.json.zst, copy.json, link.json.zst, symbolic.json.zst
    ");
    let ran = folder.expect(&format!("compare --baseline {same} --candidate b-1.json.zst b-2.json.zst"), 0);
    assert!(ran.stdout.contains("no verdict on candidate against baseline"), "{}", ran.shown());
    let json =
        folder.expect(&format!("compare --baseline {same} --candidate b-1.json.zst --format json"), 0).findings();
    assert_eq!(json["baseline"]["records"].as_array().unwrap().len(), 1);
    assert_eq!(json["baseline"]["copies"][0][0], "a-1.json.zst");
    assert_eq!(json["baseline"]["copies"][0][1].as_array().unwrap().len(), 4);
    // Two of them, and one that is in four files.
    folder.expect(&format!("report {same} a-2.json.zst --json r.json --html r.html --markdown r.md --csv r.csv"), 0);
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&read("r.json")).unwrap();
    assert_eq!(report["entries"].as_array().unwrap().len(), 2, "{report}");
    for name in ["r.json", "r.html", "r.md"] {
        assert!(read(name).contains("symbolic.json.zst") || read(name).contains("and 1 more"), "{name}");
    }
    let trials = |text: &str| text.lines().filter(|line| line.contains("a-1.json.zst")).count();
    assert_eq!(trials(&read("r.csv")), trials(&folder.expect("report a-1.json.zst --csv -", 0).stdout));
}

#[test]
fn a_trial_on_both_sides_is_refused() {
    let folder = slower();
    std::fs::copy(folder.path().join("a-2.json.zst"), folder.path().join("b-6.json.zst")).unwrap();
    let line = "compare --baseline a-1.json.zst a-2.json.zst --candidate b-1.json.zst b-6.json.zst";
    assert_snapshot!(folder.run(line).shown(), @r"
    exit 2
    --- stderr
    error: the same trial is on both sides of the comparison
      --baseline a-2.json.zst and --candidate b-6.json.zst hold the same trial

    hint: give each side the records of its own trials; for the trials of one setting: assay compare RECORD…
    ");
}

#[test]
fn several_trials_leave_a_record_each_and_are_summed_up() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let ran = folder.expect("run ./one_table.lua --transactions 20 --trials 3 --seed 7 --record t.json --quiet", 0);
    assert!(ran.stdout.starts_with("3 trials with 1 session:\n\ntrial "), "{}", ran.shown());
    assert_eq!(folder.names(), ["one_table.lua", "t-1.json", "t-2.json", "t-3.json"]);
    let seed = |name: &str| Record::read(&folder.path().join(name)).unwrap().manifest.seed;
    assert_eq!(["t-1.json", "t-2.json", "t-3.json"].map(seed), [7, 8, 9]);
    let json = folder.expect("run ./one_table.lua --transactions 20 --trials 2 --no-record --quiet --format json", 0);
    assert_eq!(json.findings()["stages"][0]["metrics"][0]["trials"]["values"].as_array().unwrap().len(), 2);
}

#[test]
fn an_interrupt_ends_all_trials_and_sums_up_what_there_is() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let mut started = folder.start("run ./one_table.lua --time 10m --trials 3 --interval 100ms --no-record");
    started.wait_for("   0.2   ");
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.shown());
    assert!(ran.stdout.contains("1 trial with 1 session") && ran.stdout.contains("was interrupted"), "{}", ran.shown());
}

#[test]
fn a_duel_takes_turns_and_compares_the_sides() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let common = "duel --common './one_table.lua --transactions 30' --trials 2 --records d";
    let ran = folder.expect(&format!("{common} --table-size=10 'assay run --table-size 20'"), 0);
    let turns: Vec<&str> =
        ran.stderr.lines().filter_map(|line| line.strip_prefix("trial ")?.split(':').next()).collect();
    assert_eq!(turns, ["1 of 2, A", "1 of 2, B", "2 of 2, B", "2 of 2, A"], "{}", ran.shown());
    for text in [
        "A  assay run ./one_table.lua --transactions 30 --table-size=10\n",
        "! the sides did different work",
        "  option table_size: 10 → 20\n",
        "2 trials",
        "cannot tell",
    ] {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.shown());
    }
    let read = |name: &str| Record::read(&folder.path().join("d").join(name)).unwrap().manifest;
    let seeds = ["a-1", "b-1", "a-2", "b-2"].map(|name| read(&format!("{name}.json.zst")).seed);
    assert!(seeds[0] == seeds[1] && seeds[2] == seeds[3] && seeds[0] != seeds[2], "{seeds:?}");
    // Never overwrites records of another run.
    let again = folder.expect(&format!("{common} --table-size=10 --table-size=20"), 2);
    assert!(again.stderr.contains("d already contains the records of a duel"), "{}", again.shown());
}

#[test]
fn mistakes_in_the_commands_of_a_duel_are_found_before_anything_runs() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let told = |line: &str| folder.run(line).shown();
    assert_snapshot!(told("duel './one_table.lua' './one_table.lua --tabel-size 5'"), @r"
    exit 2
    --- stderr
    error: B: there is no option --tabel-size

    hint: did you mean --table-size?
    ");
    assert_snapshot!(told("duel ./one_table.lua './one_table.lua \"'"), @r"
    exit 2
    --- stderr
    error: B: unclosed quote, or a backslash at the end
    ");
    assert_snapshot!(told("duel ./one_table.lua './one_table.lua --record x'"), @r"
    exit 2
    --- stderr
    error: B: the duel itself sets --record and --no-record

    hint: pass --trials and --records to the duel itself, outside the quotes
    ");
    assert_snapshot!(told("duel ./one_table.lua"), @r"
    exit 2
    --- stderr
    error: <B> is missing

    hint: `assay duel --help` has examples
    ");
    assert_eq!(folder.names(), ["one_table.lua"]);
}

#[test]
fn an_interrupted_duel_keeps_what_it_has() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let mut started =
        folder.start("duel --common ./one_table.lua '--transactions 5' '--time 10m' --trials 3 --records d");
    started.wait_for("trial 1 of 3, A");
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.shown());
    assert!(folder.path().join("d/a-1.json.zst").is_file(), "{}", ran.shown());
    assert!(!folder.path().join("d/a-2.json.zst").exists(), "{}", ran.shown());
}

#[test]
fn a_trial_that_fails_ends_the_duel_with_its_code() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let line = "duel --common './one_table.lua --transactions 5' '' '--db postgres://127.0.0.1:1/x?sslmode=disable'";
    let ran = folder.expect(line, 4);
    assert!(ran.stderr.ends_with("error: trial 1 of B ended with exit code 4\n"), "{}", ran.shown());
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_record_that_is_the_reason() {
    let folder = Folder::new();
    let task = |task: &'static str| move |record: &mut Record| record.manifest.task = task.into();
    records(&folder, "run", &[1000, 1010], |_| ());
    records(&folder, "load", &[1000], task("prepare"));
    records(&folder, "check", &[1000], task("check"));
    records(&folder, "cut", &[1000], |record| {
        record.status = Status::Running;
        record.environment.servers.iter_mut().for_each(|server| server.settings.clear());
    });
    for (other, words) in [
        ("load-1", "load-1.json.zst is a load (assay prepare), not a run"),
        ("check-1", "check-1.json.zst is a check (assay check), not a run"),
        ("cut-1", "cut-1.json.zst is incomplete: its server settings are missing, so the sides cannot be compared"),
    ] {
        for command in ["compare", "explain"] {
            let other = format!("{other}.json.zst");
            let complaint = folder.expect(&format!("{command} run-1.json.zst {other}"), 2).complaint();
            assert!(complaint.contains(words), "{complaint}");
            let sides = format!("{command} --baseline {other} --candidate run-1.json.zst");
            let complaint = folder.expect(&sides, 2).complaint();
            assert!(complaint.contains(words), "{complaint}");
        }
    }
    // Of a folder of records, the runs are compared.
    let compared = folder.expect("compare run-1.json.zst load-1.json.zst run-2.json.zst", 0);
    assert!(compared.stderr.contains("left out, because they are not runs: load-1.json.zst"), "{}", compared.shown());
    let rows = folder.expect("compare load-1.json.zst", 0).stdout;
    assert!(rows.contains("rows/s") && !rows.contains("tps"), "{rows}");
}
