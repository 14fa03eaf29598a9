//! docs/findings.schema.json against all JSON output: the schema knows every field, and rejects wrong ones.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;

use assay_record::*;
use assay_report::*;
use example::{example, example_of_a_fleet, example_of_cases, example_of_isolation, example_with_telemetry};
use serde_json::{Value, json as value};

/// A ladder in an open loop, with errors, an audit and two servers.
fn ladder() -> Findings {
    findings(&example())
}

/// A closed loop with terminals, with this many thousandths of the example's throughput.
fn trial(thousandths: u64) -> Findings {
    let mut record = example();
    record.status = Status::Complete;
    record.manifest.load = Load::Closed;
    record.manifest.terminals = Some(Terminals { number: 640, think_scale: 0.5 });
    for one in record.stages.iter_mut().flat_map(|stage| &mut stage.total.transactions) {
        one.count = one.count * thousandths / 1000;
    }
    findings(&record)
}

/// A search whose rate changed in every stage and came from a file: more than any real run does.
fn searched(search: Search) -> Findings {
    let mut record = example();
    record.manifest.profile = vec![RatePoint { at_ns: 0, per_s: 100.0 }];
    record.manifest.trace = Some(Trace { file: "arrivals.txt".into(), arrivals: 7 });
    record.manifest.search = Some(search);
    record.stages[0].rate_per_s = Some(100.0);
    findings(&record)
}

/// Minutes at one transaction per millisecond: steady, or as `rate` changes it.
fn minutes(rate: impl Fn(u64) -> u64) -> Findings {
    let mut record = example();
    record.stages.truncate(1);
    let second = |second| Interval {
        start_ns: second * 1_000_000_000,
        length_ns: 1_000_000_000,
        transactions: vec![rate(second), 0],
        ..record.stages[0].intervals[0].clone()
    };
    record.stages[0].intervals = (0..120).map(second).collect();
    findings(&record)
}

/// With telemetry.
fn watched() -> Findings {
    findings(&example_with_telemetry())
}

fn compared() -> Comparison {
    let (before, after) = ([1000, 1005, 995, 1010, 990].map(trial), [900, 905, 895, 910, 890].map(trial));
    let names: Vec<String> = (1..=5).map(|n| format!("{n}.json.zst")).collect();
    let side = |name, trials| Side { name, records: &names, trials };
    let mut comparison = compare(side("baseline", &before[..]), side("candidate", &after[..]), 0.03);
    let conditions: Vec<Condition> = ["tps < -3%", "p99 > +10%"].iter().map(|text| text.parse().unwrap()).collect();
    comparison.conditions = conditions.iter().map(|condition| condition.judge(&comparison)).collect();
    comparison
}

/// A pivot table, a line chart and a column chart.
fn asked(report: &Report) -> Vec<Shown> {
    let table = PivotAsked {
        rows: "sessions".into(),
        only: Vec::new(),
        columns: Some("setting".into()),
        value: "tps".into(),
        ratio_to: Some(BEST.into()),
        of: OfTrials::All,
        best_of: None,
        fault_above: None,
    };
    let chart = |kind| {
        let values = vec!["tps".into()];
        ShowAsked::Chart(ChartAsked {
            kind,
            x: None,
            color: None,
            facet: None,
            values,
            ratio_to: None,
            references: Vec::new(),
            best_of: None,
            facet_rows: None,
            own_scales: false,
            whole_run: false,
        })
    };
    let asked = [ShowAsked::Table(table), chart(ChartKind::Dots), chart(ChartKind::Bars)];
    shown(&Experiment::of_report(report, &["setting".into()]).unwrap(), &asked).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/findings.schema.json")).unwrap()
}

/// The schema of one kind of output, which rejects unlisted fields.
fn strict(kind: &str) -> jsonschema::Validator {
    let mut schema = schema();
    schema.as_object_mut().unwrap().remove("anyOf");
    schema["$ref"] = value!(format!("#/$defs/{kind}"));
    forbid_unknown_fields(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

fn forbid_unknown_fields(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.insert("additionalProperties".into(), value!(false));
            }
            members.values_mut().for_each(forbid_unknown_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_unknown_fields),
        _ => (),
    }
}

#[test]
fn all_that_is_written_as_json_satisfies_the_schema_which_knows_every_field() {
    let published = jsonschema::validator_for(&schema()).unwrap();
    let waves = |second| if second % 20 < 10 { 1500 } else { 500 };
    let trials = [trial(1000), trial(1010)];
    let names = ["1.json".to_owned(), "2.json".to_owned()];
    let records = [ladder(), trial(1000), trial(1010), minutes(waves)].map(|found| ("x.json".to_owned(), found));
    let told = report(records.to_vec());
    let mut asked_otherwise = example();
    asked_otherwise.manifest.asked = [("items".to_owned(), OptionValue::Int(5))].into();
    let mut asked_otherwise = findings(&asked_otherwise);
    asked_otherwise.warnings.push(Warning::Copies { files: vec!["copy.json".into()] });
    let copied = [asked_otherwise.clone()];
    let mut queries = example_of_cases();
    let tables = [("ontime".to_owned(), 1000)].into();
    let query = StreamQuery { failure: Some("no memory".into()), timed_out: true, ..StreamQuery::default() };
    let streams = vec![QueryStream { queries: vec![query], ..QueryStream::default() }];
    queries.cases.as_mut().unwrap().suite =
        Some(Suite { tables, timeout_ns: Some(1), scale: Some(0.1), streams, ..Suite::default() });
    let mut killed = ladder();
    killed.stages[0].generator = None;
    let part = findings_within(&example(), Window::Between { from_ns: 0, to_ns: None }).unwrap();
    for (kind, text) in [
        ("findings", json(&ladder())),
        ("findings", json(&trial(1000))),
        ("findings", json(&killed)),
        ("findings", json(&asked_otherwise)),
        ("summary", json(&summarize(Side { name: "copied", records: &names[..1], trials: &copied }))),
        ("findings", json(&watched())),
        ("findings", json(&findings(&example_of_cases()))),
        ("findings", json(&findings(&queries))),
        ("findings", json(&findings(&example_of_a_fleet()))),
        ("findings", json(&findings(&example_of_isolation()))),
        ("findings", json(&searched(Search::Rate { promises: vec!["p99 < 3ms".into(), "nonsense".into()] }))),
        ("findings", json(&searched(Search::Sessions { max: 64 }))),
        ("findings", json(&minutes(|_| 1000))),
        ("findings", json(&minutes(waves))),
        ("findings", json(&part)),
        ("findings", json(&minutes(|second| 500 + 10 * second))),
        ("findings", json(&minutes(|second| if second < 90 { 1000 } else { 400 }))),
        ("summary", json(&summarize(Side { name: "both", records: &names, trials: &trials }))),
        ("comparison", json(&compared())),
        ("report", report_json(&told, &[])),
        ("report", report_json(&told, &asked(&told))),
    ] {
        let found: Value = serde_json::from_str(&text).unwrap();
        if let Err(error) = strict(kind).validate(&found) {
            panic!("{kind}: {error} at {}", error.instance_path());
        }
        assert!(published.is_valid(&found));
        let mut newer = found.clone();
        newer["added_later"] = value!(1);
        assert!(published.is_valid(&newer) && !strict(kind).is_valid(&newer));
    }
    assert!(published.is_valid(&value!([serde_json::to_value(compared()).unwrap()])), "a grid is an array");
}

#[test]
fn what_is_missing_or_impossible_does_not_satisfy_the_schema() {
    let published = jsonschema::validator_for(&schema()).unwrap();
    let refused = |mut found: Value, at: &str, wrong: Value| {
        assert!(published.is_valid(&found));
        *found.pointer_mut(at).unwrap() = wrong;
        assert!(!published.is_valid(&found), "{at}");
    };
    let run = serde_json::to_value(ladder()).unwrap();
    refused(run.clone(), "/stages/0/total/lag/count", value!(-1));
    refused(run.clone(), "/stages/0/throughput/steady/kind", value!("perhaps"));
    refused(run, "/status", Value::Null);
    let comparison = serde_json::to_value(compared()).unwrap();
    refused(comparison.clone(), "/stages/0/metrics/0/change/verdict/kind", value!("faster"));
    refused(comparison, "/conditions/0/stages/0/outcome", value!(true));
}
