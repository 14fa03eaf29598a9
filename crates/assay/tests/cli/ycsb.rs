//! YCSB on tables: its audit on every database, work that was not done is noticed, and numbers are drawn as by YCSB.

use std::collections::BTreeMap;

use assay_workloads::builtin;
use insta::assert_snapshot;
use serde_json::Value;
use testkit::Kind;

use crate::common::Folder;

const LOAD: &str = "--sessions 4 --transactions 300 --retries 1000 --no-record --telemetry off --quiet";

#[test]
fn ycsb_keeps_its_audit_on_every_database() {
    let folder = Folder::new();
    let servers = [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present());
    let mut urls: Vec<String> =
        servers.map(|kind| kind.shared().url(&kind.shared().fresh_database().unwrap())).collect();
    urls.push(format!("sqlite:{}?synchronous=off", folder.path().join("ycsb.db").display()));
    for url in urls {
        for layout in ["columns", "json"] {
            let common = format!("--db {url} --layout {layout} --audit-updates on --recordcount 500");
            folder.expect(&format!("prepare ycsb {common} --sessions 2 --no-record"), 0);
            // The number of rules: reads and updates have one of their own.
            for (mix, rules) in [
                ("--core-workload a", 3),
                ("--core-workload d", 3),
                ("--core-workload e", 2),
                ("--core-workload f --readallfields false --writeallfields true", 3),
            ] {
                let ran = folder.expect(&format!("run ycsb {common} {mix} {LOAD} --check --format json"), 0);
                let findings = ran.findings();
                let audit = findings["stages"][0]["audit"].as_array().cloned().unwrap_or_default();
                assert_eq!(audit.len(), rules, "{mix} at {url}: {audit:?}");
                assert!(audit.iter().all(|rule| rule["verdict"] != "failed"), "{mix} at {url}: {audit:?}");
            }
            folder.expect(&format!("cleanup ycsb --db {url}"), 0);
        }
    }
}

#[test]
fn updates_inserts_and_reads_that_were_not_done_are_noticed() {
    let folder = Folder::new();
    let text = builtin().iter().find(|workload| workload.name == "ycsb").unwrap().text;
    let defects = [
        ("    of_field(write_one, all.update, \"tt\"):perform(value(), key)\n", "", "updates in the records"),
        ("    insert:perform(key_of(own_record, set), values())\n", "", "records inserted"),
        (
            "local statement = set.readallfields and read or",
            "key = key .. 'x' local statement = set.readallfields and read or",
            "reads that found nothing",
        ),
    ];
    for (number, (right, wrong, noticed)) in defects.into_iter().enumerate() {
        assert_eq!(text.matches(right).count(), 1, "{right}");
        folder.write("defect.lua", &text.replace(right, wrong));
        let mix = "--readproportion 0.4 --updateproportion 0.3 --insertproportion 0.3 --audit-updates on";
        let line =
            format!("run ./defect.lua --db sqlite:{number}.db?synchronous=off {mix} --recordcount 500 --prepare");
        let ran = folder.expect(&format!("{line} {LOAD} --check --verbose"), 1);
        let is_noticed = ran.shown().lines().any(|line| line.contains(noticed) && line.ends_with("FAILED"));
        assert!(is_noticed, "{wrong}: {}", ran.shown());
    }
}

/// The types of transactions that were done.
fn done(findings: &Value) -> Vec<&str> {
    let types = findings["stages"][0]["total"]["types"].as_array().unwrap();
    types.iter().filter(|one| one["transactions"] != 0).map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn a_file_of_properties_is_a_workload() {
    let folder = Folder::new();
    folder.write(
        "workloadx",
        "# A comment\n\nrecordcount=200\noperationcount=9\nworkload=site.ycsb.workloads.CoreWorkload\nreadproportion=0\n\
         updateproportion 0\nscanproportion=1.0\nmaxscanlength = 3\nexponential.percentile: 90\n",
    );
    let run = "run ycsb --db sqlite:x.db --properties workloadx --transactions 20 --no-record --prepare";
    let findings = folder.expect(&format!("{run} --format json"), 0).findings();
    assert_eq!(done(&findings), ["scan"]);
    let of = |name: &str| findings["options"][name].as_f64();
    assert_eq!(
        [of("recordcount"), of("maxscanlength"), of("exponential_percentile"), of("fieldcount")],
        [Some(200.0), Some(3.0), Some(90.0), Some(10.0)]
    );
    let mut warnings = findings["warnings"].as_array().unwrap().iter();
    assert!(!warnings.any(|one| one["kind"] == "other_size"), "{}", findings["warnings"]);
    // What is given on the command line comes first.
    let read = folder.expect(&format!("{run} --readproportion 1 --scanproportion 0 --format json"), 0).findings();
    assert_eq!(done(&read), ["read"]);
    folder.write("wrong", "readproportion=0.5\nreadproportin=0.5\n");
    let wrong = |options: &str| folder.run(&format!("run ycsb --db sqlite:x.db --no-record {options}")).shown();
    assert_snapshot!(wrong("--properties wrong"), @r"
    exit 2
    --- stderr
    error: --properties: line 2 of wrong: the property readproportin is not known here; did you mean readproportion?
    ");
    assert_snapshot!(wrong("--properties absent"), @r"
    exit 2
    --- stderr
    error: --properties: absent: No such file or directory
    ");
    assert_snapshot!(wrong("--readproportion 0 --updateproportion 0"), @r"
    exit 2
    --- stderr
    error: --readproportion and the other proportions are 0: nothing would be done
    ");
    assert_snapshot!(wrong("--minscanlength 9 --maxscanlength 3"), @r"
    exit 2
    --- stderr
    error: --maxscanlength 3: expected at least --minscanlength, 9
    ");
}

#[test]
fn what_a_file_of_properties_leaves_out_is_ycsbs_default_and_what_it_cannot_mean_is_refused() {
    let folder = Folder::new();
    folder.write("bare", "recordcount=300\nworkload=site.ycsb.workloads.CoreWorkload\n");
    let line = "run ycsb --db sqlite:x.db --transactions 400 --no-record --prepare --format json --seed 5";
    let findings = folder.expect(&format!("{line} --properties bare"), 0).findings();
    assert_eq!(done(&findings), ["read", "update"]);
    let options = &findings["options"];
    let shares =
        ["readproportion", "updateproportion", "insertproportion", "scanproportion", "readmodifywriteproportion"];
    assert_eq!(shares.map(|name| options[name].as_f64().unwrap()), [0.95, 0.05, 0.0, 0.0, 0.0]);
    for (name, value) in [
        ("requestdistribution", "uniform"),
        ("scanlengthdistribution", "uniform"),
        ("fieldlengthdistribution", "constant"),
        ("insertorder", "hashed"),
        ("readallfields", "true"),
        ("writeallfields", "false"),
        ("table", "usertable"),
    ] {
        assert_eq!(options[name], value, "{name}");
    }
    let numbers =
        [("fieldcount", 10), ("fieldlength", 100), ("minscanlength", 1), ("maxscanlength", 1000), ("zeropadding", 1)];
    assert!(numbers.iter().all(|(name, value)| options[name] == *value), "{options}");
    // Without a file, a core workload has its own.
    folder.expect("cleanup ycsb --db sqlite:x.db", 0);
    let findings = folder.expect(&format!("{line} --recordcount 300 --core-workload f"), 0).findings();
    assert_eq!(
        (done(&findings), &findings["options"]["requestdistribution"]),
        (vec!["read", "readmodifywrite"], &"zipfian".into())
    );
    for (text, right) in [
        ("readallfields=TRUE\nwriteallfields=False", ""),
        ("recordcount=300\\\n\nreadproportion 0.5\nupdateproportion:0.5", ""),
        ("dataintegrity=false\ninsertstart=0\nstatus.interval=1", ""),
        ("readallfields=yes", "readallfields=yes: expected true or false"),
        ("requestdistribution=zipf", "requestdistribution=zipf: expected one of uniform, zipfian, latest"),
        ("requestdistribution=Zipfian", "requestdistribution=Zipfian: expected one of"),
        ("fieldlengthdistribution=histogram", "expected one of constant, uniform, zipfian"),
        ("scanlengthdistribution=latest", "expected one of uniform, zipfian"),
        ("insertorder=random", "expected one of hashed, ordered"),
        ("readproportion=1.5", "readproportion=1.5: must be from 0 to 1"),
        ("updateproportion=-1", "updateproportion=-1: must be from 0 to 1"),
        ("hotspotdatafraction=2", "must be from 0 to 1"),
        ("hotspotopnfraction=-0.1", "must be from 0 to 1"),
        ("recordcount=0", "recordcount=0: must be at least 1"),
        ("fieldcount=2.5", "fieldcount=2.5: expected a whole number"),
        ("fieldlength=-5", "fieldlength=-5: must be at least 1"),
        ("maxscanlength=many", "maxscanlength=many: expected a whole number"),
        ("zeropadding=nan", "zeropadding=nan: expected a whole number"),
        ("dataintegrity=true", "dataintegrity=true: only false, the default, is supported"),
        ("insertstart=5", "insertstart=5: only 0"),
        ("requestdistribuion=latest", "not known here; did you mean requestdistribution?"),
        ("flavor=vanilla", "the property flavor is not known here\n"),
    ] {
        folder.write("some", &format!("{text}\n"));
        let ran = folder.run("run ycsb --db sqlite:x.db --transactions 2 --no-record --quiet --properties some");
        let is_right =
            if right.is_empty() { ran.code == Some(0) } else { ran.code == Some(2) && ran.stderr.contains(right) };
        assert!(is_right, "{text}: {}", ran.shown());
    }
    for (options, right) in [
        ("--readproportion 1.5", "--readproportion 1.5: must be from 0 to 1"),
        ("--readproportion -1", "--readproportion -1: must be from 0 to 1"),
        (
            "--readproportion 0.9",
            "--readproportion 0.9: with --updateproportion 0.5 the sum of the shares is 1.4, not 1",
        ),
        ("--fieldlength -5", "--fieldlength -5: must be at least 1"),
        ("--recordcount 2.5", "--recordcount 2.5: expected a whole number"),
        ("--table 'bad name;drop'", "--table bad name;drop: expected a name"),
        ("--properties .", "--properties: .: Is a directory"),
        ("--theta 1.5 --zipfian exact", "--theta 1.5: must be from 0 to 1"),
        ("--recordcount 50000", "--recordcount 50000: usertable was loaded with 300 records"),
        ("--recordcount 100", "--recordcount 100: usertable was loaded with 300 records"),
    ] {
        let ran =
            folder.expect(&format!("run ycsb --db sqlite:x.db --transactions 2 --no-record --quiet {options}"), 2);
        assert!(ran.stderr.contains(right), "{options}: {}", ran.shown());
    }
    let findings = folder.expect("run ycsb --db sqlite:x.db --transactions 2 --no-record --format json", 0).findings();
    assert_eq!(findings["options"]["recordcount"], 300);
}

/// Draws from each generator, as `Draws.java` does.
const DRAWS: &str = r#"
local draw = assay.share("ycsb_distributions")

local function count(name, draws, numbers, next_number)
  local counts = {}
  for i = 1, numbers do counts[i] = 0 end
  for _ = 1, draws do
    local number = next_number()
    if number >= 0 and number < numbers then counts[number + 1] = counts[number + 1] + 1 end
  end
  print(name .. " " .. table.concat(counts, " "))
end

sysbench.cmdline.options = { draws = { "", 200000 }, numbers = { "", 200 } }
sysbench.cmdline.commands = { draw = { function()
  local draws, numbers, hashes = sysbench.opt.draws, sysbench.opt.numbers, {}
  for i = 0, numbers - 1 do hashes[i + 1] = tostring(draw.hash(i * i * i * 977)):sub(1, -3) end
  print("hash " .. table.concat(hashes, " "))
  local last = numbers - 1
  local latest = draw.zipfian(last, draw.THETA)
  count("scrambled_zipfian", draws, numbers, draw.scrambled_zipfian(0, last))
  count("zipfian", draws, numbers, draw.zipfian(numbers, draw.THETA))
  count("latest", draws, numbers, function() return last - latest(last) end)
  count("hotspot", draws, numbers, draw.hotspot(0, last, 0.2, 0.8))
  count("exponential", draws, numbers, draw.exponential(95, numbers * 0.8571428571))
  count("uniform", draws, numbers, function() return draw.uniform(0, last) end)
end } }

function event() end
"#;

/// Lines of a name and numbers.
fn read(text: &str) -> BTreeMap<&str, Vec<u64>> {
    fn row(line: &str) -> Option<(&str, Vec<u64>)> {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.map(|word| word.parse().ok()).collect::<Option<_>>()?))
    }
    text.lines().filter_map(row).filter(|(_, numbers)| numbers.len() > 100).collect()
}

/// `draws.txt` was printed by YCSB's own generators (`site.ycsb:core:0.17.0` from Maven), with
/// `java -cp CORE.jar:… Draws.java 200000 200`.
#[test]
fn numbers_are_drawn_as_by_ycsb() {
    let folder = Folder::new();
    folder.write("draws.lua", DRAWS);
    let drawn = folder.expect("exec ./draws.lua draw --db sqlite:x.db --seed 7", 0).stderr;
    let (ours, theirs) = (read(&drawn), read(include_str!("ycsb/draws.txt")));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    assert_eq!(ours.len(), 7);
    assert_eq!(ours["hash"], theirs["hash"]);
    for (name, ours) in ours.iter().filter(|(name, _)| **name != "hash") {
        // Whether both come from one distribution: χ² of two samples of the same size. The seed is fixed.
        let pairs = ours.iter().zip(&theirs[name]).filter(|(one, other)| *one + *other >= 10);
        let terms: Vec<f64> =
            pairs.map(|(one, other)| (*one as f64 - *other as f64).powi(2) / (*one as f64 + *other as f64)).collect();
        let (square, degrees) = (terms.iter().sum::<f64>(), terms.len() as f64);
        let sigmas = (square - degrees) / (2.0 * degrees).sqrt();
        assert!(degrees > 100.0 && sigmas.abs() < 3.0, "{name}: χ² = {square:.1} with {degrees} degrees of freedom");
    }
}
