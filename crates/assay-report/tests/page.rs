//! Pages and what is behind their charts, from records good and bad.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;

use assay_record::*;
use assay_report::*;
use example::example;

fn told(records: Vec<Record>) -> Report {
    let file = |number: usize| format!("r{number}.json.zst");
    report(records.iter().enumerate().map(|(number, record)| (file(number), findings(record))).collect())
}

/// A record whose every text tries to become something else.
fn hostile() -> Record {
    const ATTACK: &str =
        "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`--><!--\u{202e}\x1b[31m\0 =cmd()|x";
    let mut record = example();
    let attack = || ATTACK.to_owned();
    record.failure = Some(attack());
    record.status = Status::Failed;
    (record.tool.name, record.tool.version) = (attack(), attack());
    let manifest = &mut record.manifest;
    (manifest.workload, manifest.command, manifest.targets) = (attack(), vec![attack()], vec![attack(), attack()]);
    (manifest.session_sql, manifest.distribution) = (vec![attack()], Some(attack()));
    manifest.options =
        [(attack(), OptionValue::Text(attack())), ("l".into(), OptionValue::List(vec![attack()]))].into();
    let environment = &mut record.environment;
    (environment.host, environment.kernel, environment.cpu_model) = (attack(), attack(), attack());
    for server in &mut environment.servers {
        (server.product, server.version, server.tls) = (attack(), attack(), Some(attack()));
        server.settings = [(attack(), attack())].into();
    }
    record.types = vec![attack(), attack()];
    for stage in &mut record.stages {
        for tally in [&mut stage.total].into_iter().chain(&mut stage.targets) {
            tally.transactions.iter_mut().for_each(|one| one.name = attack());
            for error in &mut tally.errors {
                (error.origin, error.class, error.state, error.message) = (attack(), attack(), attack(), attack());
            }
        }
    }
    record
}

/// The page without the style and scripts that are ours.
fn markup(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, rest) = rest.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (data, _) = rest.split_once("</script>\n<script>").unwrap();
    format!("{before}{body}{data}")
}

#[test]
fn a_page_says_in_words_what_ran_and_what_came_of_it() {
    insta::assert_snapshot!(summary(&told(vec![example()])).join("\n"), @r"
    shop.lua ran on 2 servers with 16, 64 sessions, one after the other (poisson 2,000 tx/s, 2 s each). The run was interrupted before its end.
    It was fastest with 64 sessions: 2,400 transactions per second, half of them within 3.18 ms and 99% within 8.52 ms.
    12 transactions failed; 18 errors were met, most often deadlock 40P01.
    The generator was not in the way: it used 2.5% of the machine, its busiest worker was 6.0% busy, its lag p99 was 0.0892 ms.
    ");
    let mut other = example();
    other.manifest.session_sql.clear();
    insta::assert_snapshot!(summary(&told(vec![example(), other, example()])).join("\n"), @r"
    3 records of 2 settings.
    SET application_name = 'shop': 2,400 to 2,400 transactions per second in 2 trials.
    no session SQL: It was fastest with 64 sessions: 2,400 transactions per second, half of them within 3.18 ms and 99% within 8.52 ms.
    ");
}

#[test]
fn nothing_in_a_record_becomes_markup() {
    let page = html(&told(vec![hostile(), hostile()]));
    let markup = markup(&page);
    for forbidden in ["<script", "<img", "<!--", "\u{202e}", "\x1b", "\0"] {
        assert!(!markup.contains(forbidden), "{forbidden:?} in {markup}");
    }
    assert!(markup.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    // Two scripts of ours and the figures: nothing ends one early or begins another.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (3, 3));
    assert!(!page.contains(" onerror=alert(2)>") || !markup.contains("<img"));
}

#[test]
fn a_page_names_no_other_place() {
    let page = html(&told(vec![example()]));
    assert!(page.contains("default-src 'none'"));
    let markup = markup(&page);
    for reference in ["src=", "href=\"http", "url(", "@import"] {
        let allowed = markup.matches("default-src=").count();
        assert_eq!(markup.matches(reference).count(), allowed, "{reference}");
    }
}

#[test]
fn a_made_up_record_of_thousands_of_parts_makes_a_page_that_opens() {
    let mut record = example();
    let stage = &mut record.stages[0];
    let interval = Interval { response: Latencies::default(), ..stage.intervals[0].clone() };
    stage.intervals = (0..30_000)
        .map(|number| Interval { start_ns: number * 1_000_000_000, errors: number % 2, ..interval.clone() })
        .collect();
    let (error, one) = (stage.total.errors[0].clone(), stage.total.transactions[0].clone());
    stage.total.errors =
        (0..5_000).map(|number| ErrorTally { number, message: "x".repeat(5_000), ..error.clone() }).collect();
    stage.total.transactions =
        vec![TransactionTally { response: Latencies::default(), service: Latencies::default(), ..one }; 2_000];
    record.stages = vec![record.stages[0].clone(); 2];
    record.environment.servers[0].settings = (0..50_000).map(|number| (number.to_string(), "y".repeat(100))).collect();
    let page = html(&told(vec![record]));
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
    assert!(page.contains("more rows"));
}

#[test]
fn a_record_in_which_nothing_happened_makes_a_page() {
    let mut record = example();
    record.stages.clear();
    record.environment.servers.clear();
    record.manifest.targets.clear();
    let page = html(&told(vec![record]));
    assert!(page.contains("Nothing was measured."));
    assert!(html(&told(vec![])).contains("There is no record."));
}

#[test]
fn records_of_one_setting_are_trials_and_others_are_named_by_what_differs() {
    let mut off = example();
    off.manifest.session_sql = vec!["SET synchronous_commit TO off".into()];
    off.manifest.seed = 5;
    let names: Vec<String> =
        told(vec![example(), off.clone(), example(), off]).entries.into_iter().map(|entry| entry.name).collect();
    assert_eq!(
        names,
        [
            "SET application_name = 'shop', trial 1",
            "SET synchronous_commit TO off, trial 1",
            "SET application_name = 'shop', trial 2",
            "SET synchronous_commit TO off, trial 2"
        ]
    );
}

#[test]
fn a_chart_shows_the_figures_of_the_findings() {
    let report = told(vec![example()]);
    let chart = |id: &str| report.entries[0].charts.iter().chain(&report.charts).find(|chart| chart.id == id).unwrap();
    let lines = |id: &str| match &chart(id).body {
        Body::Lines { lines } => lines.clone(),
        _ => panic!("{id} has no lines"),
    };
    // Two stages of two seconds, the second 2.1 s after the first.
    let throughput = &lines("throughput-1")[0];
    assert_eq!(throughput.x, [1.0, 2.0, 2.1, 3.1, 4.1]);
    assert_eq!(throughput.y, [Some(1200.0), Some(1200.0), None, Some(2400.0), Some(2400.0)]);
    let marks: Vec<&str> = chart("throughput-1").marks.iter().map(|mark| mark.text.as_str()).collect();
    assert_eq!(marks, ["16 sessions", "64 sessions", "6 errors", "12 errors"]);
    let ladder = &lines("ladder-throughput")[0];
    assert_eq!((&ladder.x[..], &ladder.y[..]), (&[16.0, 64.0][..], &[Some(1200.0), Some(2400.0)][..]));
    // The percentile of two nines is p99.
    let curve = &lines("percentiles")[1];
    let p99 = curve.x.iter().position(|nines| *nines == 2.0).unwrap();
    assert_eq!(curve.y[p99], Some(8.5197));
    let Body::Heat { columns, edges, cells } = &chart("heat-1").body else { panic!("no heat map") };
    assert_eq!(columns, &[(0.0, 1.0), (1.0, 2.0), (2.1, 3.1), (3.1, 4.1)]);
    assert!(edges.len() == cells[0].len() + 1 && edges[0] <= 1.0 && edges[edges.len() - 1] >= 5.0);
    let sums: Vec<f64> = cells.iter().map(|column| column.iter().sum::<f64>().round()).collect();
    assert_eq!(sums, [1200.0, 1200.0, 2400.0, 2400.0]);
}

#[test]
fn a_stall_is_marked_where_throughput_fell_below_a_tenth() {
    let mut record = example();
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    let interval = stage.intervals[0].clone();
    let second = |number: u64, count: u64| Interval {
        start_ns: number * 1_000_000_000,
        transactions: vec![count, 0],
        errors: 0,
        ..interval.clone()
    };
    stage.intervals =
        [100, 100, 9, 0, 100, 11, 100].iter().enumerate().map(|(i, count)| second(i as u64, *count)).collect();
    let report = told(vec![record]);
    let marks = &report.entries[0].charts[0].marks;
    assert_eq!(marks.len(), 1, "{marks:?}");
    assert_eq!((marks[0].from, marks[0].to, marks[0].kind), (2.0, 4.0, MarkKind::Stall));
}
