//! One record, one number: all outputs agree, and match what was put into the record.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;

use std::collections::BTreeMap;

use assay_report::*;
use example::example;
use serde_json::Value;

/// The rows of a CSV by column name. No cell of the example contains a comma.
fn rows(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    lines.map(|line| head.iter().copied().zip(line.split(',')).collect()).collect()
}

/// The sample in a Prometheus text whose line begins with `name` and has all of `labels`.
#[track_caller]
fn sample(text: &str, name: &str, labels: &[&str]) -> f64 {
    let is = |line: &&str| line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label));
    let found: Vec<&str> = text.lines().filter(is).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
    found[0].rsplit(' ').next().unwrap().parse().unwrap()
}

/// The cells of the first table line that begins with `name`.
#[track_caller]
fn cells<'a>(text: &'a str, name: &str, between: &str) -> Vec<&'a str> {
    let line =
        text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name} in {text}"));
    line.split(between).map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn every_output_says_the_same_of_a_record() {
    // Second stage: each of 2 servers ran 2 x 1,000 `shop` and 2 x 200 `refund` in 2 s.
    let (transactions, tps, statements, qps) = (4800, 2400.0, 14_400, 7200.0);
    let found = findings(&example());
    let both = report(vec![("r.json.zst".into(), found.clone())]);
    let json: Value = serde_json::from_str(&json(&found)).unwrap();
    let total = &json["stages"][1]["total"];
    assert_eq!([&total["transactions"], &total["statements"]], [transactions, statements]);
    assert_eq!([&total["tps"], &total["qps"]], [tps, qps]);
    let ns = |name: &str| total["response"][name].as_u64().unwrap();
    let (p50, p95, p99, max) = (ns("p50_ns"), ns("p95_ns"), ns("p99_ns"), ns("max_ns"));
    // Uniform between 1 and 5 ms and, for a sixth of them, between 1 and 9 ms: HDR rounds up by less than a thousandth.
    for (found, exact) in [(p50, 3_181_818.0), (max, 9e6)] {
        assert!((exact * 0.999..exact * 1.003).contains(&(found as f64)), "{found} {exact}");
    }

    let csv = csv(&found);
    let row =
        rows(&csv).into_iter().find(|row| row["stage"] == "1" && row["target"].is_empty() && row["type"].is_empty());
    let row = row.unwrap();
    assert_eq!([row["transactions"], row["tps"], row["statements"], row["qps"]], ["4800", "2400", "14400", "7200"]);
    let expected = [p50, p95, p99, max].map(|ns| ns.to_string());
    assert_eq!(["p50", "p95", "p99", "max"].map(|name| row[&*format!("response_ns_{name}")].to_owned()), expected);

    let otava = change_points_csv(&both).unwrap();
    let row = &rows(&otava)[0];
    assert_eq!([row["sessions_64_tps"], row["sessions_64_qps"]], ["2400", "7200"]);
    for (name, ns) in [("p50", p50), ("p95", p95), ("p99", p99)] {
        assert_eq!(row[&*format!("sessions_64_{name}_ms")].parse::<f64>().unwrap(), ns as f64 / 1e6);
    }

    let seconds = intervals_csv(&both);
    let of_stage = |name: &str| -> Vec<f64> {
        let is_total =
            |row: &&BTreeMap<&str, &str>| row["stage"] == "1" && row["type"].is_empty() && row["class"].is_empty();
        rows(&seconds).iter().filter(is_total).map(|row| row[name].parse().unwrap()).collect()
    };
    assert_eq!(
        of_stage("transactions").iter().sum::<f64>(),
        json["stages"][1]["intervals"][0]["tps"].as_f64().unwrap() * 2.0
    );

    let exposed = prometheus(&both);
    let labels = ["stage=\"1\""];
    let of_types: f64 = ["shop", "refund"]
        .map(|one| sample(&exposed, "assay_transactions_total", &[labels[0], &format!("type=\"{one}\"")]))
        .iter()
        .sum();
    assert_eq!(of_types, f64::from(transactions));
    let of_classes: f64 = ["read", "write", "other"]
        .map(|one| sample(&exposed, "assay_statements_total", &[labels[0], &format!("class=\"{one}\"")]))
        .iter()
        .sum();
    assert_eq!(of_classes, f64::from(statements));

    // As shown to people: three digits.
    let shown = [p50, p95, p99].map(|ns| format!("{:.2}", ns as f64 / 1e6));
    let text = text_in(&found, View { width: 120, ..View::default() });
    assert_eq!(cells(&text, "transactions  ", "  ")[1..3], ["4,800", "2,400"]);
    assert_eq!(cells(&text, "statements", "  ")[1..3], ["14,400", "7,200"]);
    let all = cells(&text, "all ", "  ");
    assert_eq!([all[4], all[6], all[7]], shown);
    let steps = cells(&text, "64 ", "  ");
    assert_eq!(steps[2..6], ["2,400", &shown[0], &shown[1], &shown[2]]);
    let markdown = markdown(&both, &[]);
    let row = cells(&markdown, "| 64 sessions", "|");
    assert_eq!(row[1..6], ["2,400", "7,200", &shown[0], &shown[1], &shown[2]]);
    let page = html(&both, &[]);
    let row = page.split("<th scope=\"row\">64</th>").nth(1).unwrap().split("</tr>").next().unwrap();
    let row: Vec<&str> = row.split(['<', '>']).filter(|cell| cell.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(row[..5], ["2,400", "7,200", &shown[0], &shown[1], &shown[2]]);
    // The points of the charts, too.
    let charts = charts(&both);
    let ladder = charts.of_all.iter().find(|chart| chart.id == "ladder-throughput").unwrap();
    let ChartBody::Lines { lines } = &ladder.body else { panic!("a ladder is lines") };
    assert_eq!(lines[0].y, [1200.0, 2400.0].map(Some));
}
