//! Pages and the data behind their charts, from good and bad records.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;
mod hostile;

use assay_record::*;
use assay_report::*;
use example::{example, example_that_is_long, example_with_telemetry};
use hostile::hostile;

fn told(records: Vec<Record>) -> Report {
    let file = |number: usize| format!("r{number}.json.zst");
    report(records.iter().enumerate().map(|(number, record)| (file(number), findings(record))).collect())
}

/// The page without our own style and scripts.
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
    shop.lua ran on 2 servers (PostgreSQL 15.14) with 16, 64 sessions, one after another (Poisson 2,000 tx/s, 2 s each). The run was interrupted before it was complete.
    The highest throughput was with 64 sessions: 2,400 transactions per second, half of them within 3.18 ms and 99% within 8.52 ms.
    Steady state unknown: needs at least 30 s (this run: 2 s).
    12 transactions failed; 18 errors, most often deadlock 40P01.
    The generator was not the bottleneck: it used 2.5% of the machine, its busiest worker was 6.0% busy, its lag p99 was 0.0892 ms.
    ");
    let mut other = example();
    other.manifest.session_sql.clear();
    insta::assert_snapshot!(summary(&told(vec![example(), other, example()])).join("\n"), @r"
    3 records of 2 settings.
    SET application_name = 'shop': 2,400 transactions per second with 64 sessions, the median of 2 trials (too few for a confidence interval; spread 0%).
    no session SQL: The highest throughput was with 64 sessions: 2,400 transactions per second, half of them within 3.18 ms and 99% within 8.52 ms.
    No verdict on no session SQL against SET application_name = 'shop': p99 ms 8.52 → 8.52, ±0.0% (no interval); a confidence interval needs at least 4 trials per side (there are 1).
    ");
}

#[test]
fn a_page_is_the_same_from_the_copy_at_the_end_of_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json.zst");
    let mut record = example_that_is_long();
    // The quantiles of a stage are between the response times of its intervals.
    for stage in &mut record.stages {
        stage.total.transactions[0].response = Latencies::sum(stage.intervals.iter().map(|one| &one.response));
        stage.measured_ns = 600_000_000_000;
    }
    record.write(&path).unwrap();
    let thinned = Record::read_thinned(&path).unwrap();
    let buckets = |record: &Record| record.stages[0].intervals[1].response.values().len();
    assert!(buckets(&thinned) < buckets(&record) / 2);
    let found = [&record, &thinned].map(findings);
    assert!(found[0].stages[0].response_intervals.p99_ns.is_some());
    assert!(found[0] == found[1]);
    let [of_events, of_copy] = found.map(|found| html(&report(vec![("r.json.zst".into(), found)]), &[]));
    assert!(of_events == of_copy);
}

#[test]
fn readings_that_no_chart_draws_are_not_missed() {
    let mut record = example_with_telemetry();
    for scope in &mut record.telemetry.as_mut().unwrap().scopes {
        let other =
            scope.series.iter().map(|series| Series { metric: format!("{}_2", series.metric), ..series.clone() });
        let others: Vec<Series> = other.collect();
        scope.series.extend(others);
    }
    let mut some = findings(&record);
    forget_undrawn(&mut some);
    let kept = |name: &str| !some.stages[0].telemetry[0].metric(name).unwrap().points.is_empty();
    assert!(kept("log_bytes") && !kept("log_bytes_2"));
    let pages = [findings(&record), some.clone()].map(|found| html(&report(vec![("r.json.zst".into(), found)]), &[]));
    assert!(pages[0] == pages[1]);
    let texts = [findings(&record), some].map(|found| format!("{}{}", text(&found), json(&found)));
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn an_error_without_a_code_is_named_by_its_class() {
    let mut record = example();
    record.stages.truncate(1);
    let total = &mut record.stages[0].total;
    total.errors.truncate(1);
    (total.errors[0].class, total.errors[0].state) = ("connection".into(), String::new());
    (total.errors[0].number, total.errors[0].count) = (0, 1);
    total.transactions.iter_mut().for_each(|one| one.failed = 0);
    let troubles = summary(&told(vec![record])).into_iter().find(|words| words.contains("error")).unwrap();
    assert_eq!(troubles, "No transaction failed; 1 error, connection.");
}

#[test]
fn a_ladder_that_stops_growing_has_its_knee_in_words_table_and_chart() {
    let mut record = example();
    let last = record.stages[1].clone();
    record.stages.push(Stage { sessions: 128, ..last });
    record.rates =
        vec![Rate { name: "orders".into(), of: None, rolled_back: false, per_ns: 60_000_000_000, nominal: None }];
    let report = told(vec![record]);
    assert!(summary(&report)[1].ends_with(" Beyond 64 sessions, throughput hardly grew."), "{:?}", summary(&report));
    let page = html(&report, &[]);
    let markup = markup(&page);
    assert_eq!(markup.matches("<td class=\"words\">knee, most tx/s</td>").count(), 1);
    let charts = charts(&report);
    let ladder = charts.of_all.iter().find(|chart| chart.id == "ladder-throughput").unwrap();
    assert!(matches!(&ladder.marks[..], [Mark { from: 64.0, to: 64.0, kind: MarkKind::Knee, .. }]));
    assert!(markup.contains("<h1>144,000 orders with 64 sessions, p99 8.52 ms</h1>"), "{markup}");
    for told in [
        "<dt>steady</dt><dd>unknown: needs",
        "<dt>variation</dt><dd>coefficient of ",
        "<td>144,000</td><td>per min</td>",
    ] {
        assert!(markup.contains(told), "{told}");
    }
    assert!(markup.contains("Audit: 1 FAILED, 4 passed"), "{markup}");
    // The page answers questions in the order in which readers ask them.
    let at = |heading: &str| markup.find(&format!(">{heading}</a></h2>")).unwrap_or_else(|| panic!("no {heading}"));
    let headings = ["Ladder", "Response times", "Steadiness", "Over time", "Work", "Audit", "Errors", "Settings"];
    assert!(headings.map(at).is_sorted(), "{markup}");
}

#[test]
fn an_embedded_database_is_not_a_generator_in_the_way_or_out_of_it() {
    let mut record = example();
    record.environment.servers.iter_mut().for_each(|server| server.place = Place::Embedded);
    record.stages.iter_mut().for_each(|stage| stage.generator.busiest_worker_ppm = 1_000_000);
    let last = summary(&told(vec![record])).pop().unwrap();
    assert!(last.starts_with("The database ran inside the generator; the figures include both: it used "), "{last}");
    assert!(last.contains("100% busy"), "{last}");
}

#[test]
fn nothing_in_a_record_becomes_markup() {
    let mut other = hostile();
    other.manifest.session_sql.push("</dd><script>other".into());
    let page = html(&told(vec![hostile(), hostile(), other]), &[]);
    let markup = markup(&page);
    for forbidden in ["<script", "<img", "<!--", "\u{202e}", "\x1b", "\0"] {
        assert!(!markup.contains(forbidden), "{forbidden:?} in {markup}");
    }
    assert!(markup.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
    // Two scripts of ours and the data: no text ends one of them or begins another.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (3, 3));
    assert!(!page.contains(" onerror=alert(2)>") || !markup.contains("<img"));
}

#[test]
fn a_page_names_no_other_place() {
    let page = html(&told(vec![example()]), &[]);
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
    let page = html(&told(vec![record]), &[]);
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
    assert!(page.contains("more rows"));
}

#[test]
fn an_hour_of_ten_records_makes_a_page_of_a_few_megabytes_with_every_second() {
    let mut record = example();
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    let interval = stage.intervals[0].clone();
    stage.measured_ns = 3_600_000_000_000;
    stage.intervals = (0..3600)
        .map(|second| Interval {
            start_ns: second * 1_000_000_000,
            transactions: vec![1000 + second * 7919 % 997, 200],
            ..interval.clone()
        })
        .collect();
    let report = told(vec![record; 10]);
    let page = html(&report, &[]);
    assert!(page.len() < 16 << 20, "{} bytes", page.len());
    let ChartBody::Lines { lines } = &charts(&report).of_entries[9][0].body else { panic!("throughput is a line") };
    assert_eq!(lines[0].y.len(), 3600);
}

#[test]
fn a_record_in_which_nothing_happened_makes_a_page() {
    let mut record = example();
    record.stages.clear();
    record.environment.servers.clear();
    record.manifest.targets.clear();
    let page = html(&told(vec![record]), &[]);
    assert!(page.contains("Nothing was measured."));
    assert!(html(&told(vec![]), &[]).contains("No records."));
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
            "SET application_name = 'shop', trial 2",
            "SET synchronous_commit TO off, trial 1",
            "SET synchronous_commit TO off, trial 2"
        ]
    );
}

#[test]
fn a_chart_shows_the_figures_of_the_findings() {
    let report = told(vec![example()]);
    let charts = charts(&report);
    let chart = |id: &str| charts.iter().find(|chart| chart.id == id).unwrap();
    let lines = |id: &str| match &chart(id).body {
        ChartBody::Lines { lines } => lines.clone(),
        _ => panic!("{id} has no lines"),
    };
    // Two stages of two seconds; the second starts 2.1 s after the first.
    let throughput = &lines("throughput-1")[0];
    assert_eq!(throughput.x, [1.0, 2.0, 2.1, 3.1, 4.1]);
    assert_eq!(throughput.y, [Some(1200.0), Some(1200.0), None, Some(2400.0), Some(2400.0)]);
    let marks: Vec<&str> = chart("throughput-1").marks.iter().map(|mark| mark.text.as_str()).collect();
    assert_eq!(marks, ["16 sessions", "64 sessions", "6 errors", "12 errors"]);
    let ladder = &lines("ladder-throughput")[0];
    assert_eq!((&ladder.x[..], &ladder.y[..]), (&[16.0, 64.0][..], &[Some(1200.0), Some(2400.0)][..]));
    // Two nines are p99.
    let curve = &lines("percentiles")[1];
    let p99 = curve.x.iter().position(|nines| *nines == 2.0).unwrap();
    assert_eq!(curve.y[p99], Some(8.5197));
    let ChartBody::Heat { columns, edges, cells } = &chart("heat-1").body else { panic!("no heat map") };
    assert_eq!(columns, &[(0.0, 1.0), (1.0, 2.0), (2.1, 3.1), (3.1, 4.1)]);
    assert!(edges.len() == cells[0].len() + 1 && edges[0] <= 1.0 && edges[edges.len() - 1] >= 5.0);
    let sums: Vec<f64> = cells.iter().map(|column| column.iter().sum::<f64>().round()).collect();
    assert_eq!(sums, [1200.0, 1200.0, 2400.0, 2400.0]);
}

#[test]
fn an_outage_is_marked_where_nothing_finished() {
    let mut record = example();
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    let interval = stage.intervals[0].clone();
    let second = |number: u64, count: u64| Interval {
        start_ns: number * 1_000_000_000,
        transactions: vec![count, 0],
        response: if count > 0 { interval.response.clone() } else { Latencies::default() },
        errors: 0,
        ..interval.clone()
    };
    stage.intervals =
        [100, 100, 0, 0, 100, 11, 100].iter().enumerate().map(|(i, count)| second(i as u64, *count)).collect();
    let report = told(vec![record]);
    let charts = charts(&report);
    let marks = &charts.of_entries[0][0].marks;
    assert_eq!(marks.len(), 1, "{marks:?}");
    assert_eq!((marks[0].from, marks[0].to, marks[0].kind), (2.0, 4.0, MarkKind::Outage));
}

#[test]
fn an_outage_is_as_long_in_a_chart_as_in_words() {
    let mut record = example();
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    let interval = Interval { transactions: vec![100, 0], errors: 0, ..stage.intervals[0].clone() };
    stage.measured_ns = 8_000_000_000;
    stage.intervals = (0..8).map(|second| Interval { start_ns: second * 1_000_000_000, ..interval.clone() }).collect();
    stage.intervals[2].first_done_ns = Some(2_000_000_000);
    stage.intervals[2].last_done_ns = Some(2_400_000_000);
    (stage.intervals[3].transactions, stage.intervals[3].response) = (vec![0, 0], Latencies::default());
    stage.intervals[4].first_done_ns = Some(4_300_000_000);
    stage.intervals[4].last_done_ns = Some(5_000_000_000);
    let text = text(&findings(&record));
    assert!(text.contains("! no service for 1.90 s from 0:02 (24% of the time)"), "{text}");
    let charts = charts(&told(vec![record]));
    let marks: Vec<&Mark> = charts.of_entries[0][0].marks.iter().filter(|mark| mark.kind == MarkKind::Outage).collect();
    assert_eq!(
        marks.iter().map(|mark| (mark.from, mark.to, &*mark.text)).collect::<Vec<_>>(),
        [(2.4, 4.3, "no service for 1.90 s from 0:02")]
    );
}

#[test]
fn no_output_passes_on_what_a_hostile_record_wants_to_do() {
    let report = told(vec![hostile(), hostile()]);
    let commands = |text: &str| {
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(hidden), "{text}");
    };
    // Markdown: no markup, no link, no mention, and no fence ends early.
    let text = markdown(&report, &[]);
    commands(&text);
    let (before, code) = text.split_once("````sh\n").expect(&text);
    assert!(
        !before.contains('<')
            && !before.replace("\\]", "").contains("](")
            && !before.contains('@')
            && !before.contains("://"),
        "{before}"
    );
    assert!(code.split_once("\n````\n").unwrap().0.contains("```"), "{code}");
    assert!(text.lines().all(|line| !line.starts_with("# h")));
    // CSV: a cell that could be a formula is text, and quotes are doubled.
    for text in [intervals_csv(&report), csv(&report.entries[0].findings)] {
        commands(&text);
        assert!(text.contains(",\"'=cmd|"), "{text}");
        assert!(!text.contains(",=cmd") && !text.contains("\n=cmd"));
    }
    let text = change_points_csv(&report).unwrap();
    commands(&text);
    assert!(!text.contains(['"', '\'', '=', '<']), "{text}");
    assert_eq!(text.lines().map(|line| line.matches(',').count()).collect::<Vec<_>>(), [18; 3]);
    // Prometheus: every line is a comment or a sample, whatever is in the labels.
    let text = prometheus(&report);
    commands(&text);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap();
        assert!(line.starts_with("assay_") && value.parse::<f64>().is_ok(), "{line}");
        let unescaped = line.replace("\\\\", "").replace("\\\"", "");
        assert!(unescaped.matches('"').count() % 2 == 0, "{line}");
    }
    // Comparisons: as text for terminals, and as CSV.
    let mut other = hostile();
    other.manifest.session_sql.push("\x1b]0;other\x07".into());
    let both = told(vec![hostile(), other]);
    commands(&comparison_text(&both.comparisons[0]));
    commands(&grid_text(&both.comparisons));
    let text = comparison_csv(&both.comparisons);
    commands(&text);
    assert!(!text.contains(",=cmd") && !text.contains("\n=cmd"), "{text}");
    // Pictures: XML without injected elements.
    for chart in charts(&report).iter() {
        let text = svg(chart, &PictureOptions::default());
        commands(&text);
        assert!(!text.contains("<script") && !text.contains("<img"), "{text}");
        assert!(png(chart, &PictureOptions::default()).starts_with(b"\x89PNG"));
    }
}

#[test]
fn every_interval_is_a_row_of_the_csv() {
    let text = intervals_csv(&told(vec![example()]));
    let lines: Vec<&str> = text.lines().collect();
    // Two stages of two intervals: total, two types, three classes.
    assert_eq!(lines.len(), 1 + 4 * 6);
    assert!(lines[0].ends_with(",cpus_used,type,class,time,server,load,seed,option_items,option_refund_share,option_regions,option_secondary,option_table"));
    let settings = "2026-03-14T15:09:26.635Z,2 servers (PostgreSQL 15.14),\"Poisson 2,000 tx/s\",18446744073709551615,100000,0.25,\"north,south\",false,orders";
    let interval = "shop.lua,r0.json.zst,0,shop.lua,0,16,0,1000000000";
    assert_eq!(
        lines[1],
        format!(
            "{interval},1200,1200,3600,1000000,2999999.5008333335,3000319,4599807,4800511,\
             4960255,4997119,5000000,3,2,1,0,0,0.05,,,{settings}"
        )
    );
    assert_eq!(lines[2], format!("{interval},1000,1000{}shop,,{settings}", ",".repeat(16)));
    assert_eq!(lines[3], format!("{interval},200,200{}refund,,{settings}", ",".repeat(16)));
    assert_eq!(lines[5], format!("{interval},,,1200{}write,{settings}", ",".repeat(16)));
}

/// One stage with these rates, one second each.
fn of_rates(rates: &[u64]) -> Record {
    let mut record = example();
    record.manifest.load = Load::Closed;
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    let interval = stage.intervals[0].clone();
    stage.measured_ns = rates.len() as u64 * 1_000_000_000;
    let second = |(number, rate): (usize, &u64)| Interval {
        start_ns: number as u64 * 1_000_000_000,
        transactions: vec![*rate, 0],
        first_done_ns: Some(number as u64 * 1_000_000_000),
        last_done_ns: Some((number as u64 + 1) * 1_000_000_000),
        ..interval.clone()
    };
    stage.intervals = rates.iter().enumerate().map(second).collect();
    record
}

/// With a setting that no other example has.
fn of_setting(name: &str, record: Record) -> Record {
    let manifest = Manifest { session_sql: vec![name.into()], ..record.manifest };
    Record { manifest, ..record }
}

fn chart_of<'a>(charts: &'a Charts, id: &str) -> &'a Chart {
    charts.iter().find(|chart| chart.id == id).unwrap_or_else(|| panic!("no chart {id}"))
}

fn lines_of(chart: &Chart) -> &[ChartLine] {
    match &chart.body {
        ChartBody::Lines { lines } => lines,
        _ => panic!("{} has no lines", chart.id),
    }
}

#[test]
fn seconds_are_dots_under_their_rolling_median() {
    let mut rates = vec![1000; 60];
    rates[30] = 5000;
    let report = told(vec![of_rates(&rates)]);
    let charts = charts(&report);
    let [dots, median] = lines_of(chart_of(&charts, "throughput-1")) else { panic!("two lines") };
    assert_eq!((&*dots.name, dots.dots, dots.y[30]), ("each second", true, Some(5000.0)));
    assert_eq!((&*median.name, median.dots, median.y[30]), ("median of 5 s", false, Some(1000.0)));
    assert_eq!(dots.group, median.group);
    // The same on the page and in pictures.
    let picture = svg(chart_of(&charts, "throughput-1"), &PictureOptions::default());
    assert_eq!(picture.matches("fill-opacity=\"0.4\"").count(), 60);
    assert!(html(&report, &[]).contains("\"dots\":true"));
}

#[test]
fn types_and_classes_have_their_own_course() {
    let report = told(vec![example()]);
    let charts = charts(&report);
    let names = |id: &str| lines_of(chart_of(&charts, id)).iter().map(|line| line.name.clone()).collect::<Vec<_>>();
    assert_eq!(names("types-1"), ["shop", "refund"]);
    assert_eq!(
        lines_of(chart_of(&charts, "types-1"))[1].y,
        [200.0, 200.0, f64::NAN, 400.0, 400.0].map(|y| Some(y).filter(|y| y.is_finite()))
    );
    assert_eq!(names("statements-1"), ["read", "write", "other"]);
}

#[test]
fn trials_of_a_setting_are_drawn_as_one() {
    let trials = [1000, 1100, 1200, 1300, 1400, 1500].map(|rate| of_setting("a", of_rates(&[rate; 30])));
    let others = [700, 800].map(|rate| of_setting("b", of_rates(&[rate; 30])));
    let report = told(trials.into_iter().chain(others).collect());
    let charts = charts(&report);
    let [a, b] = lines_of(chart_of(&charts, "throughput-all")) else { panic!("a line for each setting") };
    assert_eq!((&*a.name, a.y[0], a.band[0]), ("a", Some(1250.0), Some((1000.0, 1500.0))));
    assert_eq!((&*b.name, b.y[29], b.band[29], b.group), ("b", Some(750.0), Some((700.0, 800.0)), 1));
    assert_eq!(lines_of(chart_of(&charts, "percentiles")).len(), 2);
    // All seconds of a setting are in one box.
    let ChartBody::Boxes { boxes } = &chart_of(&charts, "boxes").body else { panic!("boxes") };
    assert_eq!(boxes.iter().map(|one| (&*one.name, one.count)).collect::<Vec<_>>(), [("a", 180), ("b", 60)]);
    assert!(boxes[0].quartiles.is_some() && boxes[0].interval.is_none());
    // The verdict: a point for each trial, and the interval where there are enough trials.
    let ChartBody::Boxes { boxes } = &chart_of(&charts, "trials").body else { panic!("boxes") };
    assert_eq!((boxes[0].points.len(), boxes[0].quartiles), (6, None));
    assert!(boxes[0].interval.is_some_and(|(low, high)| low <= boxes[0].median && boxes[0].median <= high));
    assert_eq!((boxes[1].quartiles, boxes[1].interval, boxes[1].points.len()), (None, None, 2));
}

#[test]
fn few_values_are_points_and_no_box() {
    let report = told(vec![of_rates(&[5, 1, 4, 2, 3, 9, 8, 7, 6])]);
    let charts = charts(&report);
    let ChartBody::Boxes { boxes } = &chart_of(&charts, "boxes").body else { panic!("boxes") };
    assert_eq!((boxes[0].quartiles, boxes[0].median), (None, 5.0));
    assert_eq!(boxes[0].points, [5.0, 1.0, 4.0, 2.0, 3.0, 9.0, 8.0, 7.0, 6.0]);
}

#[test]
fn a_picture_says_what_it_is_of_and_looks_as_asked() {
    let report = told(vec![of_setting("a", example()), of_setting("b", example()), of_setting("b", example())]);
    let charts = charts(&report);
    let mut files: Vec<&str> = charts.iter().map(|chart| chart.file.as_str()).collect();
    assert!(files.contains(&"shop-ladder-throughput") && files.contains(&"shop-b-trial-2-heat"), "{files:?}");
    files.sort_unstable();
    files.dedup();
    assert_eq!(files.len(), charts.iter().count());
    for chart in charts.iter() {
        assert!(chart.caption.chars().count() < chart.title.chars().count(), "{}: {}", chart.title, chart.caption);
    }
    let chart = chart_of(&charts, "throughput-1");
    let plain = svg(chart, &PictureOptions::default());
    assert!(plain.contains(">Throughput over time</text>"), "{plain}");
    assert!(
        plain.contains(
            ">shop.lua · 2 servers (PostgreSQL 15.14) · 16, 64 sessions · Poisson 2,000 tx/s · 2026-03-14</text>"
        ),
        "{plain}"
    );
    assert!(plain.contains("width=\"960\" height=\"460\"") && plain.contains("fill=\"#ffffff\""), "{plain}");
    let own = PictureOptions { title: Some("Our shop".into()), width: 500, height: 700, theme: Theme::Dark };
    let picture = svg(chart, &own);
    assert!(
        picture.contains(">Our shop</text>") && picture.contains(">Throughput over time · shop.lua · "),
        "{picture}"
    );
    assert!(picture.contains("width=\"500\" height=\"700\"") && picture.contains("fill=\"#14161a\""), "{picture}");
    for chart in charts.iter() {
        // Nothing is drawn outside the picture.
        let picture = svg(chart, &PictureOptions { width: 320, ..PictureOptions::default() });
        let beside = |text: &str| text.parse::<f32>().is_ok_and(|x| !(0.0..=321.0).contains(&x));
        let places = picture.split(" x=\"").chain(picture.split(" cx=\"")).filter_map(|rest| rest.split('"').next());
        assert_eq!(places.filter(|x| beside(x)).count(), 0, "{picture}");
    }
    assert!(html(&Report { title: Some("Our shop".into()), ..report }, &[]).contains("<h1>Our shop</h1>"));
}

#[test]
fn a_file_for_prometheus_is_open_metrics() {
    let text = prometheus(&told(vec![example(), of_rates(&[1000; 3])]));
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
    let mut families: Vec<(String, String)> = Vec::new();
    let mut samples = std::collections::HashSet::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, _] => assert!(families.iter().all(|(known, _)| known != name), "{name} twice"),
            ["#", "TYPE", name, kind] => families.push((name.into(), kind.into())),
            _ => {
                // Samples follow the head of their family, have its name, and occur once.
                let (name, kind) = families.last().unwrap();
                let (series, value) = line.rsplit_once(' ').unwrap();
                let suffix = series.split('{').next().unwrap().strip_prefix(name.as_str()).unwrap();
                assert_eq!(suffix, if kind == "counter" { "_total" } else { "" }, "{line}");
                assert!(value.parse::<f64>().unwrap() >= 0.0 && samples.insert(series.to_owned()), "{line}");
            }
        }
    }
    // As an independent parser reads it.
    let read = testkit::metric_families(&text, testkit::Exposition::OpenMetrics).unwrap();
    assert!(read.iter().any(|family| family == "assay_errors_of_stage counter 3"), "{read:#?}");
    assert!(testkit::metric_families("x 1\n", testkit::Exposition::OpenMetrics).is_err());
    let of_record = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    assert_eq!(of_record("assay_errors_of_stage_total").len(), 3);
    assert!(of_record("assay_errors_total")[0].contains("class=\"deadlock\",code=\"40P01\"} "), "{text}");
}

#[test]
fn a_series_for_change_points_has_a_row_per_record_the_oldest_first() {
    let mut later = example();
    later.started = Time::from_unix_ms(later.started.unix_ms() + 86_400_000);
    let text = change_points_csv(&told(vec![later.clone(), example()])).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("time,tool,record,sessions_16_tps,sessions_16_qps,"), "{text}");
    assert!(lines[1].starts_with("2026-03-14T15:09:26.535Z,assay_0.1.0,r1.json.zst,1200,3600,3.33"), "{text}");
    assert!(lines[2].starts_with("2026-03-15T15:09:26.535Z,assay_0.1.0,r0.json.zst,1200,3600,3.33"), "{text}");
    later.stages.truncate(1);
    let mixed = change_points_csv(&told(vec![later, example()])).unwrap_err().to_string();
    assert!(
        mixed.starts_with("a time series needs records of the same workload: r1.json.zst ran shop.lua with 16,64"),
        "{mixed}"
    );
}

#[test]
fn live_metrics_add_up_what_the_intervals_hold() {
    let record = example();
    let mut metrics = LiveMetrics::default();
    metrics.take(&Event::Started(Box::new(Started::of(&record))));
    for interval in &record.stages[1].intervals {
        metrics.take(&Event::Interval(Box::new(StageInterval { stage: 1, interval: interval.clone() })));
    }
    let text = metrics.text();
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket")).collect();
    insta::assert_snapshot!(samples.join("\n"), @r#"
    assay_info{workload="shop.lua",tool="assay 0.1.0"} 1
    assay_transactions_total{type="shop"} 4000
    assay_transactions_total{type="refund"} 800
    assay_statements_total{class="read"} 4800
    assay_statements_total{class="write"} 4800
    assay_statements_total{class="other"} 4800
    assay_failed_transactions_total 4
    assay_retries_total 8
    assay_errors_total 12
    assay_reconnects_total 0
    assay_generator_cpu_seconds_total 0.2
    assay_stage 1
    assay_transactions_per_second 2400
    assay_sessions 64
    assay_backlog 1
    assay_response_quantile_seconds{quantile="0.5"} 0.003000319
    assay_response_quantile_seconds{quantile="0.9"} 0.004603903
    assay_response_quantile_seconds{quantile="0.95"} 0.004800511
    assay_response_quantile_seconds{quantile="0.99"} 0.004960255
    assay_response_quantile_seconds{quantile="0.999"} 0.004997119
    assay_response_quantile_seconds{quantile="1"} 0.005
    assay_response_seconds_sum 14.399997602
    assay_response_seconds_count 4800
    "#);
    assert!(text.contains("assay_response_seconds_bucket{le=\"+Inf\"} 4800\n"), "{text}");
}
