//! Reports for people and for programs, from records as assay-record writes them.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;

use assay_record::*;
use assay_report::*;
use example::{example, example_with_telemetry, latencies, spread};

/// A plain run: one stage, one server on the same machine, one type, closed loop.
fn plain() -> Record {
    let mut record = example();
    record.status = Status::Complete;
    record.elapsed_ns = 2_150_000_000;
    record.types.truncate(1);
    (record.rules, record.rates) = (Vec::new(), Vec::new());
    record.stages.truncate(1);
    record.manifest.load = Load::Closed;
    record.manifest.targets = vec!["mysql://app@127.0.0.1:3306/shop".into()];
    record.environment.servers.truncate(1);
    record.environment.servers[0] = RecordedServer {
        product: "MariaDB".into(),
        version: "10.11.14-MariaDB".into(),
        place: Place::Local,
        ..RecordedServer::default()
    };
    let stage = &mut record.stages[0];
    stage.targets.clear();
    (stage.session_transactions_min, stage.session_transactions_max) = (120, 130);
    stage.intervals.iter_mut().for_each(|interval| {
        interval.transactions.truncate(1);
        interval.backlog = 0;
    });
    let total = &mut stage.total;
    total.transactions.truncate(1);
    total.transactions[0].failed = 0;
    (total.errors, total.due, total.dropped, total.unstarted) = (vec![], 0, 0, 0);
    total.wait = Latencies::default();
    record
}

/// Where the report of a run without measurements ends.
fn nothing() -> Record {
    let mut record = plain();
    record.status = Status::Failed;
    record.failure = Some("cannot connect to 127.0.0.1:3306\n  connection refused".into());
    record.stages.clear();
    record.environment.servers.clear();
    record
}

fn warnings(change: impl FnOnce(&mut Record)) -> Vec<Warning> {
    let mut record = plain();
    change(&mut record);
    findings(&record).warnings
}

fn narrow_and_plain(text: &str) {
    plain_to(80, text);
}

fn plain_to(width: usize, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{} columns: {line}", line.chars().count());
        assert!(!line.contains(char::is_control) && line.trim_end() == line, "{line:?}");
    }
}

#[test]
fn a_plain_run_is_reported_in_full() {
    let text = text_in(&findings(&plain()), View { verbose: true, ..View::default() });
    narrow_and_plain(&text);
    insta::assert_snapshot!(text, @"
    shop.lua · MariaDB 10.11.14-MariaDB · 16 sessions · closed loop · 2 s
    warm-up 0.1 s · uniform rows
    1,000 tx/s  p50 3.00 · p95 4.80 · p99 4.96 · max 5.00 ms

    steady      unknown: needs at least 30 s (this run: 2 s)
    variation   coefficient of variation 0% · lowest second 1,000 tx/s · no outages
    errors      4 retries

    throughput             total  per s
    transactions           2,000  1,000
    statements             7,200  3,600
      read                 2,400  1,200
      write                2,400  1,200
      other (like COMMIT)  2,400  1,200

    counted  total  per s  mean
    gifts      500    250  1.00
    items    8,000  4,000  4.00

    response ms    count     p50     p90     p95     p99   p99.9     max
    shop           2,000    3.00    4.60    4.80    4.96    5.00    5.00
    service time   2,000    2.90    4.50    4.70    4.86    4.90    4.90
    generator lag  2,402  0.0460  0.0812  0.0856  0.0892  0.0900  0.0900

    fairness    120 to 130 transactions per session, 125 on average
    generator   13.9 µs CPU per statement · 1.2% of 4 CPUs
                busiest of 2 workers 3.0% busy · waited 0.4% for a CPU
                lag p99 0.0892 ms · 24 MiB · 0.504 context switches per statement
                2.00 events per turn · over epoll, polling for 50.0 µs
    io_uring    not used: a security policy (seccomp, as in many containers, or an
                LSM) forbids it

    complete in 2.1 s · started 2026-03-14T15:09:26.535Z · assay 0.1.0
    seed 18446744073709551615 · items=100000 · refund_share=0.25
    regions=north,south · secondary=false · table=orders
    server: pinned CPUs 0-3, memory limit 4 GiB, front pgbouncer, image copy
            step settle complete, step settle: reached vacuumed and analyzed
    ");
}

#[test]
fn a_ladder_is_a_table_of_stages_and_the_details_of_the_last() {
    let text = text(&findings(&example()));
    narrow_and_plain(&text);
    insta::assert_snapshot!(text, @"
    shop.lua · 2 servers (PostgreSQL 15.14) · 16, 64 sessions · Poisson 2,000 tx/s
    2 s each · warm-up 0.1 s
    120,000 spm with 64 sessions · 2,400 tx/s · shop p95 4.80 · p99 4.96 ms
    no knee: throughput still grows at the last step

    ! the run was interrupted: the figures cover the time until then

    sessions                 tx/s  p50 ms  p99 ms
    16        ██████        1,200    3.18    8.52
    64        ████████████  2,400    3.18    8.52  most tx/s

    steady      unknown: needs at least 30 s (this run: 2 s)
    variation   coefficient of variation 0% · lowest second 2,400 tx/s · no outages
    open loop   4,812 due (2,406/s) · 1 dropped · 1 not started · backlog max 1
    errors      8 failed transactions · 12 errors · 16 retries
    audit       1 FAILED, 5 passed · `assay show -v` lists every rule

    ! 12 transactions failed (0.2%); not included in the latencies

    with 64 sessions, for 2 s:

    throughput              total  per s
    transactions            4,800  2,400
    statements             14,400  7,200
      read                  4,800  2,400
      write                 4,800  2,400
      other (like COMMIT)   4,800  2,400

    spm  120,000  per min  80% of the 150,000 possible

    transactions   done  share  rolled back  failed  retries
    shop          4,000  83.3%            0       4        8
    refund          800  16.7%            0       4        8

    server                         tx/s  p50 ms  p99 ms  errors
    postgres://app@db1:5432/shop  1,200    3.18    8.52       6
    postgres://app@db2:5432/shop  1,200    3.18    8.52       6

    response ms    count     p50     p90     p95     p99   p99.9     max
    shop           4,000    3.00    4.60    4.80    4.96    5.00    5.00
    refund           800    5.00    8.20    8.60    8.92       –    9.00
    all            4,800    3.18    4.93    6.60    8.52    8.96    9.00
    waiting        4,800   0.200   0.360   0.380   0.396   0.400   0.400
    service time   4,800    3.08    4.83    6.50    8.42    8.86    8.90
    generator lag  4,804  0.0460  0.0812  0.0856  0.0892  0.0900  0.0900

    audit          observed         allowed
    refunds (3.2)     16.7%  4.00% to 6.00%  FAILED

    error                      count
    deadlock 40P01 (server)       12  deadlock detected
    constraint 23505 (server)      6  duplicate key value violates un…

    interrupted after 4.6 s · started 2026-03-14T15:09:26.535Z · assay 0.1.0
    seed 18446744073709551615
    server: pinned CPUs 0-3, memory limit 4 GiB, front pgbouncer, image copy
            step settle complete, step settle: reached vacuumed and analyzed
    ");
}

#[test]
fn a_run_that_measured_nothing_says_why() {
    let text = text(&findings(&nothing()));
    narrow_and_plain(&text);
    insta::assert_snapshot!(text, @"
    shop.lua · mysql://app@127.0.0.1:3306/shop · no sessions · closed loop · 2 s
    warm-up 0.1 s

    error: cannot connect to 127.0.0.1:3306
      connection refused

    failed after 2.1 s · started 2026-03-14T15:09:26.535Z · assay 0.1.0
    seed 18446744073709551615
    server: pinned CPUs 0-3, memory limit 4 GiB, front pgbouncer, image copy
            step settle complete, step settle: reached vacuumed and analyzed
    ");
}

#[test]
fn a_stage_without_transactions_has_no_figures_rather_than_zeros() {
    let mut record = plain();
    let stage = &mut record.stages[0];
    (stage.total, stage.generator, stage.measured_ns) = (Tally::default(), Generator::default(), 0);
    stage.total.transactions.push(TransactionTally { name: "shop".into(), ..TransactionTally::default() });
    stage.intervals = vec![Interval::default()];
    let text = text(&findings(&record));
    narrow_and_plain(&text);
    insta::assert_snapshot!(text, @"
    shop.lua · MariaDB 10.11.14 · 16 sessions · closed loop · 2 s · warm-up 0.1 s

    ! no transaction finished

    throughput    total  per s
    transactions      0      0

    response ms    count  p50  p90  p95  p99  p99.9  max
    shop               0    –    –    –    –      –    –
    service time       0    –    –    –    –      –    –
    generator lag      0    –    –    –    –      –    –

    complete in 2.1 s · started 2026-03-14T15:09:26.535Z · assay 0.1.0
    seed 18446744073709551615
    server: pinned CPUs 0-3, memory limit 4 GiB, front pgbouncer, image copy
            step settle complete, step settle: reached vacuumed and analyzed
    ");
}

#[test]
fn a_partial_record_does_not_pretend_to_know_its_last_stage() {
    let mut record = plain();
    record.status = Status::Running;
    record.stages[0].generator = Generator::default();
    let findings = findings(&record);
    assert_eq!(findings.warnings, [Warning::EndedEarly { status: Status::Running }]);
    let text = text(&findings);
    assert!(!text.contains("\ngenerator   ") && !text.contains("fairness"), "{text}");
}

#[test]
fn the_csv_has_a_row_per_stage_server_and_type() {
    insta::assert_snapshot!(csv(&findings(&example())), @r#"
    stage,sessions,measured_ns,target,type,transactions,tps,failed,retries,statements,qps,errors,response_ns_min,response_ns_mean,response_ns_p50,response_ns_p90,response_ns_p95,response_ns_p99,response_ns_p999,response_ns_max,service_ns_p50,service_ns_p99,lag_ns_p99,lag_ns_max
    0,16,2000000000,,,2400,1200,4,8,7200,3600,6,1000000,3333332.8341666665,3182591,4931583,6594559,8519679,8962047,9000000,3082239,8421375,89151,90000
    0,16,2000000000,,shop,2000,1000,2,4,,,,1000000,2999999.5005,3000319,4599807,4800511,4960255,4997119,5000000,2899967,4861951,,
    0,16,2000000000,,refund,400,200,2,4,,,,1000000,4999999.5025,4993023,8200191,8601599,8921087,,9000000,4890623,8822783,,
    0,16,2000000000,postgres://app@db1:5432/shop,,1200,600,2,4,3600,1800,3,1000000,3333332.835,3178495,4931583,6590463,8519679,8962047,9000000,3080191,8421375,89151,90000
    0,16,2000000000,postgres://app@db1:5432/shop,shop,1000,500,1,2,,,,1000000,2999999.501,2998271,4599807,4800511,4960255,4997119,5000000,2899967,4861951,,
    0,16,2000000000,postgres://app@db1:5432/shop,refund,200,100,1,2,,,,1000000,4999999.505,4980735,8196095,8601599,8921087,,9000000,4882431,8822783,,
    0,16,2000000000,postgres://app@db2:5432/shop,,1200,600,2,4,3600,1800,3,1000000,3333332.835,3178495,4931583,6590463,8519679,8962047,9000000,3080191,8421375,89151,90000
    0,16,2000000000,postgres://app@db2:5432/shop,shop,1000,500,1,2,,,,1000000,2999999.501,2998271,4599807,4800511,4960255,4997119,5000000,2899967,4861951,,
    0,16,2000000000,postgres://app@db2:5432/shop,refund,200,100,1,2,,,,1000000,4999999.505,4980735,8196095,8601599,8921087,,9000000,4882431,8822783,,
    1,64,2000000000,,,4800,2400,8,16,14400,7200,12,1000000,3333332.83375,3182591,4927487,6598655,8519679,8962047,9000000,3082239,8421375,89151,90000
    1,64,2000000000,,shop,4000,2000,4,8,,,,1000000,2999999.50025,3000319,4603903,4800511,4960255,4997119,5000000,2899967,4861951,,
    1,64,2000000000,,refund,800,400,4,8,,,,1000000,4999999.50125,4997119,8200191,8601599,8921087,,9000000,4898815,8822783,,
    1,64,2000000000,postgres://app@db1:5432/shop,,2400,1200,4,8,7200,3600,6,1000000,3333332.8341666665,3182591,4931583,6594559,8519679,8962047,9000000,3082239,8421375,89151,90000
    1,64,2000000000,postgres://app@db1:5432/shop,shop,2000,1000,2,4,,,,1000000,2999999.5005,3000319,4599807,4800511,4960255,4997119,5000000,2899967,4861951,,
    1,64,2000000000,postgres://app@db1:5432/shop,refund,400,200,2,4,,,,1000000,4999999.5025,4993023,8200191,8601599,8921087,,9000000,4890623,8822783,,
    1,64,2000000000,postgres://app@db2:5432/shop,,2400,1200,4,8,7200,3600,6,1000000,3333332.8341666665,3182591,4931583,6594559,8519679,8962047,9000000,3082239,8421375,89151,90000
    1,64,2000000000,postgres://app@db2:5432/shop,shop,2000,1000,2,4,,,,1000000,2999999.5005,3000319,4599807,4800511,4960255,4997119,5000000,2899967,4861951,,
    1,64,2000000000,postgres://app@db2:5432/shop,refund,400,200,2,4,,,,1000000,4999999.5025,4993023,8200191,8601599,8921087,,9000000,4890623,8822783,,
    "#);
}

#[test]
fn csv_names_are_quoted_and_cannot_become_formulas() {
    let mut record = plain();
    record.stages[0].total.transactions[0].name = "=cmd|'/c calc'!A1, \"x\"\n".into();
    let csv = csv(&findings(&record));
    assert!(csv.contains(r#","'=cmd|'/c calc'!A1, ""x""","#), "{csv}");
    let columns: Vec<usize> = csv.lines().take(2).map(|line| line.split(',').count()).collect();
    assert_eq!(columns, [24, 24]);
}

#[test]
fn the_json_holds_what_the_text_shows() {
    let json: serde_json::Value = serde_json::from_str(&json(&findings(&example()))).unwrap();
    let last = &json["stages"][1];
    assert_eq!(last["total"]["tps"], 2400.0);
    assert_eq!(last["total"]["qps_by_class"]["read"], 2400.0);
    assert_eq!(last["total"]["types"][1]["name"], "refund");
    assert_eq!(last["total"]["response"]["min_ns"], 1_000_000);
    assert_eq!(last["open"]["due"], 4812);
    assert_eq!(last["intervals"][1]["backlog"], 1);
    assert_eq!(json["errors"][0]["code"], "40P01");
    assert_eq!(json["errors"][0]["count"], 12);
    assert_eq!(json["warnings"][0]["kind"], "ended_early");
    assert_eq!(json["seed"], u64::MAX);
    assert_eq!(json["targets"][1]["place"], "remote");
    assert_eq!((&json["stages"][0]["best"], &last["best"]), (&false.into(), &true.into()));
}

#[test]
fn the_figures_are_those_of_the_values_measured() {
    let mut record = plain();
    let total = &mut record.stages[0].total;
    // 1 ms … 1,000 ms, one of each; measured for 2 s.
    total.transactions[0].response = latencies((1..=1000).map(|ms| ms * 1_000_000));
    total.transactions[0].count = 1000;
    let findings = findings(&record);
    let response = findings.stages[0].total.response;
    assert_eq!((response.count, response.min_ns, response.max_ns), (1000, Some(1_000_000), Some(1_000_000_000)));
    assert_eq!(response.mean_ns, Some(500_500_000.0));
    for (found, exact_ms) in [
        (response.p50_ns, 500.0),
        (response.p90_ns, 900.0),
        (response.p95_ns, 950.0),
        (response.p99_ns, 990.0),
        (response.p999_ns, 999.0),
    ] {
        let ms = found.unwrap() as f64 / 1e6;
        assert!((exact_ms..exact_ms * 1.001).contains(&ms), "{ms} for {exact_ms}");
    }
    assert_eq!(findings.stages[0].total.tps, 500.0);
    // 100 ms of CPU for 2,400 statements of each class.
    let generator = findings.stages[0].generator.unwrap();
    assert_eq!(generator.cpu_ns_per_statement, Some(100e6 / 7200.0));
    assert_eq!(generator.cpu_share_of_machine, 0.1 / (2.0 * 4.0));
    assert_eq!(generator.cpu_share_of_workers, 0.1 / (2.0 * 2.0));
}

#[test]
fn types_are_merged_by_their_values_not_their_quantiles() {
    let mut record = example();
    let total = &mut record.stages[1].total;
    total.transactions[0].response = latencies((1..=500).map(|us| us * 1000));
    total.transactions[1].response = latencies((501..=1000).map(|us| us * 1000));
    let all = findings(&record).stages[1].total.response;
    assert_eq!((all.count, all.min_ns, all.max_ns, all.mean_ns), (1000, Some(1000), Some(1_000_000), Some(500_500.0)));
    assert!((500_000..500_500).contains(&all.p50_ns.unwrap()));
    assert!((990_000..991_000).contains(&all.p99_ns.unwrap()));
}

#[test]
fn a_quiet_complete_run_has_no_warnings() {
    assert_eq!(warnings(|_| ()), []);
}

#[test]
fn a_busy_worker_is_a_warning_whose_advice_knows_the_machine() {
    let advice = |workers, cpus, sessions, place, cpu_s: u64| {
        let warnings = warnings(|record| {
            record.environment.host.cpus = cpus;
            record.environment.servers[0].place = place;
            let stage = &mut record.stages[0];
            stage.sessions = sessions;
            stage.generator.workers = workers;
            stage.generator.busiest_worker_ppm = 950_000;
            (stage.generator.cpu_user_ns, stage.generator.cpu_system_ns) = (cpu_s * 1_000_000_000, 0);
        });
        match warnings[..] {
            [Warning::GeneratorBusy { advice, busiest_worker: 0.95, stage: 0 }] => Some(advice),
            [] => None,
            _ => panic!("{warnings:?}"),
        }
    };
    // The stage lasts 2 s, so a worker that computes all the time uses about 2 s of CPU.
    assert_eq!(advice(1, 4, 16, Place::Remote, 2), Some(Advice::AddWorkers { workers: 1, useful: 4 }));
    assert_eq!(advice(1, 4, 2, Place::Remote, 2), Some(Advice::AddWorkers { workers: 1, useful: 2 }));
    assert_eq!(advice(1, 4, 16, Place::Local, 2), Some(Advice::AddWorkers { workers: 1, useful: 4 }));
    assert_eq!(advice(1, 4, 1, Place::Remote, 2), Some(Advice::LargerMachine));
    assert_eq!(advice(4, 4, 16, Place::Remote, 8), Some(Advice::LargerMachine));
    assert_eq!(advice(4, 4, 16, Place::Remote, 1), Some(Advice::QuietMachine));
    assert_eq!(advice(4, 4, 16, Place::Local, 4), Some(Advice::SeparateFromServer));
    assert_eq!(advice(1, 4, 16, Place::Local, 1), Some(Advice::SeparateFromServer));
    assert_eq!(advice(1, 4, 16, Place::Embedded, 2), None);
}

#[test]
fn a_worker_that_waited_for_a_cpu_is_a_warning_whose_advice_knows_the_machine() {
    let starved = |ppm, place, cpu_s: u64| {
        let warnings = warnings(|record| {
            record.environment.host.cpus = 2;
            record.environment.servers[0].place = place;
            let generator = &mut record.stages[0].generator;
            // A worker that waits for locks is busy too, but CPU is not its bottleneck.
            (generator.longest_wait_ppm, generator.busiest_worker_ppm) = (ppm, 950_000);
            (generator.cpu_user_ns, generator.cpu_system_ns) = (cpu_s * 1_000_000_000, 0);
        });
        match warnings[..] {
            [Warning::GeneratorStarved { advice, waited_for_cpu: 0.2, stage: 0 }] => Some(advice),
            [] | [Warning::GeneratorBusy { .. }] => None,
            _ => panic!("{warnings:?}"),
        }
    };
    // The stage lasts 2 s: 4 s of CPU time is all there is.
    assert_eq!(starved(Some(200_000), Place::Remote, 3), Some(Advice::LargerMachine));
    assert_eq!(starved(Some(200_000), Place::Remote, 1), Some(Advice::QuietMachine));
    assert_eq!(starved(Some(200_000), Place::Local, 1), Some(Advice::SeparateFromServer));
    assert_eq!(starved(Some(200_000), Place::Embedded, 1), None);
    assert_eq!(starved(Some(199_999), Place::Local, 1), None);
    assert_eq!(starved(None, Place::Local, 1), None);
}

#[test]
fn lag_is_a_warning_only_where_it_shows_in_the_response_times() {
    let late = |lag_ns, response_ns| {
        warnings(|record| {
            record.stages[0].total.lag = spread(10_000, lag_ns, lag_ns);
            record.stages[0].total.transactions[0].response = spread(10_000, response_ns, response_ns);
        })
    };
    assert_eq!(late(190_000, 1_000_000), []);
    assert_eq!(late(50_000, 100_000), []);
    assert!(matches!(
        late(210_000, 1_000_000)[..],
        [Warning::GeneratorLate { advice: Advice::SeparateFromServer, .. }]
    ));
}

#[test]
fn too_few_transactions_for_a_p99_of_lag_do_not_put_the_blame_for_a_late_generator_on_the_rate() {
    let late = |unstarted| {
        let mut record = plain();
        record.manifest.load = Load::Open { rate_per_s: 50.0, arrival: Arrival::Constant, backlog_max: None };
        let total = &mut record.stages[0].total;
        (total.due, total.unstarted) = (100, unstarted);
        total.transactions[0].count = 40;
        total.transactions[0].response = spread(40, 400_000_000, 400_000_000);
        total.lag = spread(40, 1_000, 399_000_000);
        findings(&record)
    };
    let overloaded = late(60);
    let is_late = |one: &Warning| matches!(one, Warning::GeneratorLate { lag_ns: 399_000_000, .. });
    assert!(overloaded.warnings.iter().any(is_late), "{:?}", overloaded.warnings);
    let text = text(&overloaded);
    assert!(text.contains("the generator was late: the largest lag is 399 ms, the median"), "{text}");
    // With a few transactions, one may be late by chance.
    assert!(!late(0).warnings.iter().any(is_late));
}

#[test]
fn an_overloaded_open_loop_is_a_warning_and_the_last_moment_is_not() {
    let undone = |due, dropped, unstarted| {
        warnings(|record| {
            record.manifest.load = Load::Open { rate_per_s: 2000.0, arrival: Arrival::Constant, backlog_max: None };
            let total = &mut record.stages[0].total;
            (total.due, total.dropped, total.unstarted) = (due, dropped, unstarted);
        })
    };
    assert_eq!(undone(4000, 0, 40), []);
    let expected =
        Warning::Overload { stage: 0, due: 4000, undone: 41, wait_p50_ns: None, service_p50_ns: Some(2_899_967) };
    assert_eq!(undone(4000, 1, 40), [expected]);
}

#[test]
fn an_open_loop_whose_transactions_wait_longer_than_they_take_is_overloaded_though_all_are_done() {
    let mut record = plain();
    record.manifest.load = Load::Open { rate_per_s: 1000.0, arrival: Arrival::Constant, backlog_max: None };
    let total = &mut record.stages[0].total;
    total.due = 2000;
    total.wait = spread(2000, 990_000_000, 990_000_000);
    total.transactions[0].response = spread(2000, 1_000_000_000, 1_000_000_000);
    total.transactions[0].service = spread(2000, 10_000_000, 10_000_000);
    let text = text(&findings(&record));
    let line = text.lines().position(|line| line.starts_with("! the rate was too high")).expect("it is said first");
    assert!(line < text.lines().position(|line| line.starts_with("throughput")).unwrap(), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("waited 990 ms or longer for a session, and then took 10.0 ms"), "{text}");
}

/// Two minutes at 1,000 per second with 2 % noise; `rate` changes each second's count.
fn two_minutes(seed: u64, rate: impl Fn(u64, f64) -> f64) -> Record {
    let mut random = assay_random::Random::new(seed);
    let done: Vec<u64> = (0..120).map(|t| rate(t, 1000.0 * (1.0 + 0.02 * random.normal())) as u64).collect();
    let mut record = plain();
    let each: Vec<(u64, u64, u64)> =
        (0u64..).zip(done).map(|(t, count)| (count, t * 1000 + 1, t * 1000 + 999)).collect();
    seconds(&mut record, &each, 1_000_000);
    record
}

#[test]
fn a_run_that_changed_or_stood_still_is_never_steady() {
    for seed in 0..20 {
        for at in [12, 36, 60, 72, 84, 96, 108] {
            let dropped = findings(&two_minutes(seed, |t, rate| if t < at { rate } else { 0.6 * rate }));
            let throughput = &dropped.stages[0].throughput;
            let from = at * 1_000_000_000;
            let is_true = match throughput.steady.unwrap() {
                SteadyFindings::Shifted => true,
                SteadyFindings::Steady { start_ns, .. } => at <= 30 && start_ns == from,
                _ => false,
            };
            assert!(is_true, "{seed} {at} {throughput:?}");
            let [shift] = throughput.shifts[..] else { panic!("{seed} {at} {throughput:?}") };
            assert!(shift.start_ns == from && (shift.tps_after - 600.0).abs() < 10.0, "{shift:?}");
        }
        let dead = findings(&two_minutes(seed, |t, rate| if t < 96 { rate } else { 0.0 }));
        assert_eq!(dead.stages[0].throughput.steady, Some(SteadyFindings::Outage));
        let stopped = findings(&two_minutes(seed, |t, rate| if (50..53).contains(&t) { 0.0 } else { rate }));
        assert_eq!(stopped.stages[0].throughput.steady, Some(SteadyFindings::Outage));
        assert_eq!(stopped.stages[0].throughput.shifts, []);
        // A trickle remains: not an outage, but not steady either.
        let trickle = findings(&two_minutes(seed, |t, rate| if (50..53).contains(&t) { 0.05 * rate } else { rate }));
        assert!(matches!(
            trickle.stages[0].throughput.steady.unwrap(),
            SteadyFindings::Dip { start_ns: 50_000_000_000, .. }
        ));
        let even = findings(&two_minutes(seed, |_, rate| rate));
        assert!(
            matches!(even.stages[0].throughput.steady.unwrap(), SteadyFindings::Steady { start_ns: 0, .. }),
            "{seed}"
        );
    }
}

#[test]
fn an_open_loop_is_steady_only_if_its_response_times_and_its_backlog_are() {
    let steady = |response_ms: &dyn Fn(u64) -> u64, backlog: &dyn Fn(u64) -> u64| {
        let mut record = two_minutes(1, |_, rate| rate);
        record.manifest.load = Load::Open { rate_per_s: 1000.0, arrival: Arrival::Poisson, backlog_max: None };
        record.stages[0].total.due = 120_000;
        for (t, interval) in (0..).zip(&mut record.stages[0].intervals) {
            let ns = response_ms(t) * 1_000_000;
            (interval.response, interval.backlog) = (spread(1000, ns, ns), backlog(t));
        }
        findings(&record).stages[0].throughput.steady.unwrap()
    };
    assert!(matches!(steady(&|t| 10 + t % 3, &|_| 0), SteadyFindings::Steady { .. }));
    let shifted = steady(&|t| if t < 70 { 10 + t % 3 } else { 30 + t % 3 }, &|_| 0);
    assert!(matches!(shifted, SteadyFindings::ResponseShifted { start_ns: 70_000_000_000, .. }), "{shifted:?}");
    // A quarter more is a fifth of the later level.
    let slower = steady(&|t| if t < 70 { 100 + t % 3 } else { 125 + t % 3 }, &|_| 0);
    assert!(matches!(slower, SteadyFindings::ResponseShifted { .. }), "{slower:?}");
    let stalled = steady(&|t| if (70..73).contains(&t) { 200 } else { 100 + t * t % 7 }, &|_| 0);
    assert!(
        matches!(stalled, SteadyFindings::ResponseExcursion { start_ns: 70_000_000_000, length_ns: 3_000_000_000, .. }),
        "{stalled:?}"
    );
    let slower = steady(&|t| 10 + t / 4 + t % 3, &|_| 0);
    assert!(matches!(slower, SteadyFindings::ResponseTrend { change } if change > 0.5), "{slower:?}");
    let waiting = steady(&|t| 10 + t % 3, &|t| 20 * t);
    assert!(matches!(waiting, SteadyFindings::Backlog { first: 400, .. }), "{waiting:?}");
}

#[test]
fn what_the_end_of_a_run_cannot_show_is_said() {
    let said = |rate: &dyn Fn(u64, f64) -> f64| {
        let record = two_minutes(2, rate);
        let found = findings(&record);
        let text = text_in(&found, View { width: 160, ..View::default() });
        (
            found.stages[0].throughput.steady.unwrap(),
            text.lines().find(|line| line.starts_with("steady")).unwrap().to_owned(),
        )
    };
    // A tenth less in the last three seconds.
    let (found, line) = said(&|t, rate| if t < 117 { rate } else { 0.9 * rate });
    let SteadyFindings::Steady { start_ns: 0, judged_from_ns: 0, judged_to_ns, .. } = found else {
        panic!("{found:?}")
    };
    assert!((110..=117).contains(&(judged_to_ns / 1_000_000_000)), "{found:?}");
    let last = 120 - judged_to_ns / 1_000_000_000;
    let words = format!("yes, from the start to 1:{} · the last {last} s are too short to judge", 60 - last);
    assert!(line.contains(&words), "{line}");
    let (found, line) = said(&|_, rate| rate);
    assert!(matches!(found, SteadyFindings::Steady { judged_to_ns: 120_000_000_000, .. }), "{found:?}");
    assert!(line.contains("yes, from the start · 1,0") || line.contains("yes, from the start · 99"), "{line}");
    // Half of it, at the end or in the middle.
    for at in [60, 117] {
        let (found, line) = said(&|t, rate| if (at..at + 3).contains(&t) { 0.5 * rate } else { rate });
        let SteadyFindings::Dip { start_ns, length_ns: 3_000_000_000, .. } = found else { panic!("{at} {found:?}") };
        assert_eq!(start_ns, at * 1_000_000_000);
        assert!(line.contains("no: throughput dropped to ") && line.contains(" for 3 s"), "{line}");
    }
    // Too noisy to show a tenth.
    let (found, line) = said(&|_, rate| 1000.0 + 12.0 * (rate - 1000.0));
    assert!(matches!(found, SteadyFindings::Unclear { change } if change > 0.1), "{found:?}");
    assert!(line.contains("unknown: throughput varies too much to show a change below 33%"), "{line}");
}

#[test]
fn an_outage_is_a_warning_unless_few_transactions_could_be_expected() {
    let still = |per_interval: u64| {
        warnings(|record| {
            let stage = &mut record.stages[0];
            let counts = [per_interval, 0, 0, per_interval, 0];
            let interval = |(number, &count): (usize, &u64)| Interval {
                start_ns: number as u64 * 1_000_000_000,
                length_ns: 1_000_000_000,
                transactions: vec![count],
                ..Interval::default()
            };
            stage.intervals = counts.iter().enumerate().map(interval).collect();
            stage.measured_ns = 5_000_000_000;
            stage.total.transactions[0].count = 2 * per_interval;
        })
    };
    let longest = OutageFindings {
        start_ns: 1_000_000_000,
        length_ns: 2_000_000_000,
        to_end: false,
        errors: 0,
        recovery_ns: Some(0),
        halted_ns: None,
    };
    let expected = Warning::Outage { stage: 0, target: None, times: 1, longest, length_ns: 2_000_000_000, share: 0.4 };
    assert_eq!(still(1000), [expected, Warning::LowerBounds { stage: 0, unfinished: 0 }]);
    assert!(matches!(still(10)[..], [Warning::TooShort { transactions: 20, .. }]));
}

/// A stage of a closed loop: for each second the number of transactions, and when the first and the last of them ended.
fn seconds(record: &mut Record, each: &[(u64, u64, u64)], took: u64) {
    let stage = &mut record.stages[0];
    let interval = |(number, &(count, first_ms, last_ms)): (usize, &(u64, u64, u64))| Interval {
        start_ns: number as u64 * 1_000_000_000,
        length_ns: 1_000_000_000,
        transactions: vec![count],
        response: spread(count, took, took),
        first_done_ns: (count > 0).then_some(first_ms * 1_000_000),
        last_done_ns: (count > 0).then_some(last_ms * 1_000_000),
        ..Interval::default()
    };
    stage.intervals = each.iter().enumerate().map(interval).collect();
    stage.measured_ns = each.len() as u64 * 1_000_000_000;
    let all = each.iter().map(|(count, ..)| count).sum();
    for transaction in &mut stage.total.transactions {
        (transaction.count, transaction.failed) = (0, 0);
        (transaction.response, transaction.service) = Default::default();
    }
    let transaction = &mut stage.total.transactions[0];
    (transaction.count, transaction.response, transaction.service) =
        (all, spread(all, took, took), spread(all, took, took));
}

#[test]
fn a_stall_is_as_long_as_nothing_finished_not_as_the_whole_seconds_in_it() {
    let mut record = example();
    record.stages.truncate(1);
    // From 2.4 s to 5.4 s: two of the seconds are empty.
    let each = [
        (1000, 1, 999),
        (1000, 1001, 1999),
        (400, 2001, 2400),
        (0, 0, 0),
        (0, 0, 0),
        (600, 5400, 5999),
        (1000, 6001, 6999),
        (1000, 7001, 7999),
    ];
    seconds(&mut record, &each, 1_000_000);
    let findings = findings(&record);
    let throughput = &findings.stages[0].throughput;
    let outage = OutageFindings {
        start_ns: 2_400_000_000,
        length_ns: 3_000_000_000,
        to_end: false,
        errors: 0,
        recovery_ns: Some(600_000_000),
        halted_ns: None,
    };
    assert_eq!(throughput.outages, [outage]);
    let is_told = |warning: &Warning| matches!(warning, Warning::Outage { longest, .. } if *longest == outage);
    assert!(findings.warnings.iter().any(is_told), "{:?}", findings.warnings);
}

/// The process was suspended from 1.2 s to 4.8 s, in the middle of a transaction on an embedded database, which counts
/// in the second in which it was running.
#[test]
fn an_outage_ends_with_its_first_transaction_also_when_intervals_were_sent_late() {
    let mut record = example();
    record.stages.truncate(1);
    let each = [(1000, 1, 999), (200, 1001, 4801), (0, 0, 0), (0, 0, 0), (200, 4802, 5001), (1000, 5002, 5999)];
    seconds(&mut record, &each, 1_000_000);
    let outages = &findings(&record).stages[0].throughput.outages;
    let found: Vec<(u64, u64)> = outages.iter().map(|outage| (outage.start_ns, outage.length_ns)).collect();
    assert_eq!(found, [(2_000_000_000, 2_802_000_000)]);
}

#[test]
fn transactions_of_a_second_that_end_together_are_no_stall() {
    let mut record = example();
    record.stages.truncate(1);
    let each = [(16, 990, 999), (0, 0, 0), (32, 2001, 2999), (16, 3990, 3999), (0, 0, 0), (32, 5001, 5999)].repeat(10);
    let mut at = 0;
    let each: Vec<_> = each
        .into_iter()
        .map(|(count, first, last)| {
            at += 1;
            (count, (at - 1) * 1000 + first % 1000, (at - 1) * 1000 + last % 1000)
        })
        .collect();
    seconds(&mut record, &each, 1_000_000_000);
    let findings = findings(&record);
    assert_eq!(findings.stages[0].throughput.outages, []);
    assert!(!findings.warnings.iter().any(|warning| matches!(warning, Warning::Outage { .. })));
}

#[test]
fn an_outage_while_assay_itself_did_not_run_says_so() {
    let said = |sampled: &[u64], halts_ms: Option<&[[u64; 2]]>| {
        let mut record = example_with_telemetry();
        record.stages.truncate(1);
        let mut each = vec![(1000, 1, 999), (1000, 1001, 1999), (1000, 2001, 2999)];
        each.extend([(0, 0, 0)].repeat(5));
        each.extend([(1000, 8001, 8999), (1000, 9001, 9999)]);
        seconds(&mut record, &each, 1_000_000);
        let start_ns = record.stages[0].start_ns.unwrap();
        for scope in &mut record.telemetry.as_mut().unwrap().scopes {
            scope.began_ns = sampled.iter().map(|second| start_ns + second * 1_000_000_000).collect();
            scope.ended_ns = scope.began_ns.iter().map(|at| at + 1_000_000).collect();
            scope.series.iter_mut().for_each(|series| series.values = vec![Some(0); sampled.len()]);
            scope.waits = None;
        }
        let halts = |all: &[[u64; 2]]| all.iter().map(|span| span.map(|ms| start_ns + ms * 1_000_000)).collect();
        record.stages[0].halts_ns = halts_ms.map(halts);
        text(&findings(&record)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let outage = "! no service for 5.00 s from 0:02 (50% of the time)";
    let halted = |length: &str| {
        format!("{outage}; assay itself was not running for {length} of it hint: assay or its machine was suspended")
    };
    let searched = format!("{outage} hint: look for restarts, checkpoints and locks in the server's log at that time ");
    let unknown = searched.trim_end().to_owned() + "; whether assay itself was running then is not known";
    let (every, not_every, none) = (&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10][..], &[0, 1, 2, 8, 9, 10][..], &[][..]);
    for (sampled, halts_ms, words) in [
        (every, None, &searched),
        (not_every, None, &halted("5.00 s")),
        (none, None, &unknown),
        // What it noticed itself counts more than missing samples.
        (not_every, Some(&[][..]), &searched),
        (none, Some(&[[1_000, 1_900], [3_100, 7_900]]), &halted("4.80 s")),
        (every, Some(&[[2_900, 3_600], [8_500, 20_000]]), &searched),
    ] {
        let said = said(sampled, halts_ms);
        assert!(said.contains(words), "{words}\n{said}");
    }
}

#[test]
fn an_embedded_database_has_no_log_in_which_to_look_for_an_outage() {
    for (place, expected) in [
        (Place::Local, "look for restarts, checkpoints and locks in the server's log at that time"),
        (Place::Embedded, "look for statements that took that long, checkpoints and locks of the file at that time"),
    ] {
        let mut record = example();
        record.stages.truncate(1);
        let mut each = vec![(1000, 1, 999), (1000, 1001, 1999)];
        each.extend([(0, 0, 0)].repeat(5));
        each.extend([(1000, 7001, 7999), (1000, 8001, 8999)]);
        seconds(&mut record, &each, 1_000_000);
        record.stages[0].halts_ns = Some(Vec::new());
        record.environment.servers.iter_mut().for_each(|server| server.place = place);
        let said = text(&findings(&record)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{place:?}: {said}");
    }
}

#[test]
fn an_outage_comes_before_every_figure_and_its_percentiles_are_lower_bounds() {
    let mut record = example();
    record.stages.truncate(1);
    let mut each = vec![(1000, 1, 999), (1000, 1001, 1999), (1000, 2001, 2999)];
    each.extend([(0, 0, 0)].repeat(17));
    seconds(&mut record, &each, 52_000_000);
    record.stages[0].total.unfinished = 64;
    record.manifest.load = Load::Closed;
    let text = text(&findings(&record));
    narrow_and_plain(&text);
    let begin: Vec<&str> = text.lines().take_while(|line| !line.starts_with("throughput")).collect();
    let place = |head: &str| begin.iter().position(|line| line.starts_with(head)).unwrap();
    let outage = place("! no service");
    assert_eq!(begin[outage], "! no service for 17.0 s from 0:02 to the end (85% of the time)");
    let answer = begin.iter().position(|line| line.contains(" spm ")).unwrap();
    assert!(answer < outage && outage < place("steady "), "{text}");
    let response = text.lines().find(|line| line.starts_with("shop  ")).unwrap();
    let response: Vec<&str> = response.split_whitespace().collect();
    assert_eq!(response.join(" "), "shop 3,000 ≥52.0 ≥52.0 ≥52.0 ≥52.0 ≥52.0 ≥52.0");
    assert!(text.contains("64 transactions had not finished"), "{text}");
}

#[test]
fn retries_in_doubt_are_told_apart() {
    let mut record = example();
    record.stages.truncate(1);
    record.stages[0].total.transactions[0].retries_in_doubt = 1;
    let shown = text(&findings(&record));
    assert!(shown.contains("retries (1 in doubt)"), "{shown}");
    assert!(shown.contains("1 of the retries followed a lost answer to a commit"), "{shown}");
    record.stages[0].total.transactions[0].retries_in_doubt = 0;
    record.stages[0].total.transactions[0].failed_in_doubt = 1;
    let text = text(&findings(&record));
    assert!(text.contains("failed transactions (1 in doubt)"), "{text}");
    assert!(text.contains("1 of the failed transactions lost the answer to a commit"), "{text}");
}

#[test]
fn a_pooler_that_loses_prepared_statements_is_pointed_out_although_the_run_survives() {
    let lost = |state: &str, number| {
        warnings(|record| {
            let mut error = example().stages[0].total.errors[0].clone();
            (error.state, error.number, error.count) = (state.into(), number, 2235);
            record.stages[0].total.errors = vec![error];
        })
    };
    assert!(matches!(lost("26000", 0)[..], [Warning::StatementsLost { errors: 2235 }]));
    assert!(matches!(lost("HY000", 1243)[..], [Warning::StatementsLost { errors: 2235 }]));
    assert!(lost("40001", 0).is_empty());
}

#[test]
fn the_largest_backlog_is_that_of_any_instant() {
    let mut record = example();
    record.stages.truncate(1);
    record.stages[0].intervals[0].backlog_max = Some(2026);
    assert_eq!(findings(&record).stages[0].open.unwrap().backlog_max, 2026);
}

#[test]
fn what_did_not_go_well_is_told() {
    assert!(matches!(
        warnings(|record| record.status = Status::Running)[..],
        [Warning::EndedEarly { status: Status::Running }]
    ));
    assert!(matches!(
        warnings(|record| record.stages[0].total.transactions[0].failed = 2000)[..],
        [Warning::Failures { failed: 2000, share: 0.5 }]
    ));
    assert!(matches!(
        warnings(|record| record.stages[0].total.lag = latencies([1000, 4_000_000_000_000]))[..],
        [Warning::OverRange { stage: 0, count: 1 }]
    ));
}

#[test]
fn every_warning_is_put_in_words() {
    let mut all = findings(&example());
    let add = Advice::AddWorkers { workers: 1, useful: 4 };
    all.warnings = vec![
        Warning::EndedEarly { status: Status::Failed },
        Warning::EndedEarly { status: Status::Running },
        Warning::NoTransactions { stage: 0 },
        Warning::TooShort { stage: 1, transactions: 412, transactions_needed: 1000 },
        Warning::Outage {
            stage: 1,
            target: None,
            times: 3,
            longest: OutageFindings {
                start_ns: 67_000_000_000,
                length_ns: 1_512_000_000,
                to_end: false,
                errors: 0,
                recovery_ns: None,
                halted_ns: None,
            },
            length_ns: 3_000_000_000,
            share: 0.02,
        },
        Warning::LowerBounds { stage: 1, unfinished: 64 },
        Warning::LowerBounds { stage: 0, unfinished: 0 },
        Warning::InDoubt { retries: 3, failed: 0 },
        Warning::InDoubt { retries: 0, failed: 2 },
        Warning::StatementsLost { errors: 2235 },
        Warning::Overload { stage: 0, due: 20_000, undone: 1234, wait_p50_ns: None, service_p50_ns: None },
        Warning::Overload {
            stage: 0,
            due: 20_000,
            undone: 0,
            wait_p50_ns: Some(990_000_000),
            service_p50_ns: Some(10_000_000),
        },
        Warning::OverRange { stage: 0, count: 5 },
        Warning::GeneratorBusy { stage: 0, busiest_worker: 0.973, advice: add },
        Warning::GeneratorBusy { stage: 0, busiest_worker: 0.973, advice: Advice::LargerMachine },
        Warning::GeneratorStarved { stage: 0, waited_for_cpu: 0.324, advice: Advice::QuietMachine },
        Warning::GeneratorLate {
            stage: 1,
            lag_ns: 812_000,
            response_p50_ns: 1_900_000,
            advice: Advice::SeparateFromServer,
        },
        Warning::GeneratorLate { stage: 1, lag_ns: 812_000, response_p50_ns: 1_900_000, advice: Advice::QuietMachine },
        Warning::Failures { failed: 7, share: 0.0012 },
    ];
    let text = text(&all);
    narrow_and_plain(&text);
    insta::assert_snapshot!(text.split_once("\nwith 64 sessions, for").unwrap().0, @"
    shop.lua · 2 servers (PostgreSQL 15.14) · 16, 64 sessions · Poisson 2,000 tx/s
    2 s each · warm-up 0.1 s
    120,000 spm with 64 sessions · 2,400 tx/s · shop p95 4.80 · p99 4.96 ms
    no knee: throughput still grows at the last step

    ! the run failed: the figures cover the time until then

    ! the record has no end: the run was killed, or is still going on

    ! no transaction finished with 16 sessions

    ! no service for 3.00 s in 3 outages, the longest 1.51 s from 1:07 with 64
      sessions (2.0% of the time)
      hint: look for restarts, checkpoints and locks in the server's log at that
            time; whether assay itself was running then is not known

    ! the rate was too high with 16 sessions: of 20,000 transactions due, 1,234 were
      dropped or not started
    ! the rate was too high with 16 sessions: half of the transactions waited 990 ms
      or longer for a session, and then took 10.0 ms
      hint: lower `--rate`, or add `--sessions` if the server has capacity left

    sessions                 tx/s  p50 ms  p99 ms
    16        ██████        1,200    3.18    8.52
    64        ████████████  2,400    3.18    8.52  most tx/s

    steady      unknown: needs at least 30 s (this run: 2 s)
    variation   coefficient of variation 0% · lowest second 2,400 tx/s · no outages
    open loop   4,812 due (2,406/s) · 1 dropped · 1 not started · backlog max 1
    errors      8 failed transactions · 12 errors · 16 retries
    audit       1 FAILED, 5 passed · `assay show -v` lists every rule

    ! only 412 transactions with 64 sessions: p99.9 needs 1,000
      hint: run longer (`--time`)

    ! the latencies with 64 sessions are lower bounds: 64 transactions had not
      finished when the grace period was over

    ! the latencies with 16 sessions are lower bounds: a closed loop hides an
      outage, since each session waits it out only once
      hint: measure with `--rate` to see how long users would have waited

    ! 3 of the retries followed a lost answer to a commit: the server may have
      committed both runs

    ! 2 of the failed transactions lost the answer to a commit: the server may have
      committed them

    ! 2,235 errors said that a prepared statement does not exist: a connection
      pooler may not support them
      hint: turn prepared statements off (`--prepared off`)

    ! 5 latencies with 16 sessions exceed one hour; quantiles show the largest for
      them

    ! the generator was the bottleneck with 16 sessions: its busiest worker was 97%
      busy
      hint: add workers (`--workers 4`; there were 1)

    ! the generator was the bottleneck with 16 sessions: its busiest worker was 97%
      busy
      hint: run the generator on a machine with more CPUs

    ! the generator was starved of CPU time with 16 sessions: a worker waited 32% of
      the time for a CPU, which adds to the latencies
    ! the generator was late with 64 sessions: lag p99 is 0.812 ms, the median
      response 1.90 ms
      hint: something else delayed the workers: look for other load on this machine

    ! the generator was late with 64 sessions: lag p99 is 0.812 ms, the median
      response 1.90 ms
      hint: server and generator compete for the same CPUs: run the generator on
            another machine

    ! 7 transactions failed (0.1%); not included in the latencies
    ");
}

#[test]
fn live_lines_stand_under_their_heads_and_agree_with_the_report() {
    let record = example();
    let mut extreme = record.stages[1].intervals[1].clone();
    extreme.start_ns = 86_399_000_000_000;
    (extreme.statements.read, extreme.errors, extreme.backlog) = (123_456_789, 98_765_432, u64::MAX);
    extreme.response = spread(5, 4_000_000, 3_600_000_000_000);
    let mut lines = vec![interval_header(LineOf::Open)];
    let quick = Interval { response: spread(1000, 1_700, 9_900), ..Interval::default() };
    let [first, last] = [&record.stages[0].intervals[0], &record.stages[1].intervals[1]];
    for interval in [first, last, &extreme, &quick, &Interval::default()] {
        lines.push(interval_line(&interval_findings(interval), LineOf::Open));
    }
    lines.push(interval_header(LineOf::Closed));
    lines.push(interval_line(&interval_findings(&record.stages[0].intervals[0]), LineOf::Closed));
    plain_to(100, &lines.join("\n"));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    time s sessions    tx/s  stmt/s  read/s write/s other/s p50 ms p95 ms p99 ms errors retries backlog
       1.0       16   1,200   3,600   1,200   1,200   1,200   3.00   4.80   4.96      3       2       0
       2.0       64   2,400   7,200   2,400   2,400   2,400   3.00   4.80   4.96      6       4       1
    86400.0       64   2,400    123M    123M   2,400   2,400 1,801k      –      –  98.8M       4   18.4E
       0.0        0       0       0       0       0       0 0.0058 0.0095 0.0098      0       0       0
       0.0        0       0       0       0       0       0      –      –      –      0       0       0
    time s sessions    tx/s  stmt/s  read/s write/s other/s p50 ms p95 ms p99 ms errors retries
       1.0       16   1,200   3,600   1,200   1,200   1,200   3.00   4.80   4.96      3       2
    "#);
}

#[test]
fn a_command_is_reported_in_one_line() {
    insta::assert_snapshot!(loaded_text(&loaded(400_000, 2_500_000_000)), @"400,000 rows in 2.5 s (160,000 rows/s)");
    insta::assert_snapshot!(loaded_text(&loaded(1, 0)), @"1 row in 0 s (0 rows/s)");
}

#[test]
fn hostile_names_cannot_command_the_terminal() {
    let mut record = example();
    let bad = "\x1b]0;owned\x07\u{202e}\n\rx".repeat(50);
    record.manifest.workload = bad.clone();
    record.manifest.options.insert(bad.clone(), OptionValue::Text(bad.clone()));
    record.manifest.options.insert("list".into(), OptionValue::List(vec![bad.clone(); 3]));
    record.manifest.distribution = Some(bad.clone());
    record.manifest.targets = vec![bad.clone(); 2];
    record.tool.version = bad.clone();
    record.failure = Some(bad.clone());
    for server in &mut record.environment.servers {
        (server.product, server.version, server.tls) = (bad.clone(), bad.clone(), Some(bad.clone()));
    }
    for stage in &mut record.stages {
        stage.total.transactions[0].name = bad.clone();
        let error = &mut stage.total.errors[0];
        for text in [&mut error.origin, &mut error.class, &mut error.state, &mut error.message] {
            text.clone_from(&bad);
        }
    }
    let hostile = |findings: &Findings| {
        let text = text(findings) + &csv(findings);
        assert!(!text.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'));
    };
    hostile(&findings(&record));
    record.manifest.targets.truncate(1);
    hostile(&findings(&record));
}

#[test]
fn impossible_figures_do_no_harm() {
    let mut record = example();
    record.environment.host.cpus = 0;
    record.elapsed_ns = u64::MAX;
    for stage in &mut record.stages {
        stage.measured_ns = 1;
        stage.sessions = u32::MAX;
        stage.generator = Generator {
            cpu_user_ns: u64::MAX,
            cpu_system_ns: u64::MAX,
            switches_involuntary: u64::MAX,
            switches_voluntary: u64::MAX,
            turns: 0,
            events: u64::MAX,
            busiest_worker_ppm: u32::MAX,
            cpu_wait_ns: Some(u64::MAX),
            longest_wait_ppm: Some(u32::MAX),
            workers: u32::MAX,
            memory_max_bytes: u64::MAX,
        };
        let total = &mut stage.total;
        for transaction in &mut total.transactions {
            (transaction.count, transaction.failed, transaction.retries) = (u64::MAX, u64::MAX, u64::MAX);
            let response = &mut transaction.response;
            (response.over, response.min_ns, response.max_ns, response.sum_ns) = (u64::MAX, u64::MAX, 0, u128::MAX);
        }
        (total.due, total.dropped, total.unstarted) = (u64::MAX, u64::MAX, u64::MAX);
        total.errors.iter_mut().for_each(|error| error.count = u64::MAX);
        total.statements.read.count = u64::MAX;
        for interval in &mut stage.intervals {
            (interval.start_ns, interval.length_ns, interval.cpu_ns) = (u64::MAX, u64::MAX, u64::MAX);
            interval.transactions = vec![u64::MAX; 3];
        }
    }
    let findings = findings(&record);
    let json = json(&findings);
    assert!(!json.contains("NaN") && !json.contains("inf"));
    for text in [text(&findings), csv(&findings)] {
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

#[test]
fn the_record_kept_in_the_tree_gives_the_same_report() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../assay-record/tests/records/0.1.0.json.zst");
    let record = Record::read(std::path::Path::new(path)).unwrap();
    let mut same = example();
    // What 0.1.0 did not know yet.
    (same.rules, same.rates) = (Vec::new(), Vec::new());
    (same.manifest.event_loop, same.environment.started) = (None, None);
    for stage in &mut same.stages {
        (stage.total.wait, stage.generator.longest_wait_ppm) = (Latencies::default(), None);
        stage.total.counters.clear();
    }
    assert_eq!(text(&findings(&record)), text(&findings(&same)));
}

#[test]
fn every_field_of_records_and_findings_is_documented() {
    let mut keys = std::collections::BTreeSet::new();
    let mut record = example();
    record.manifest.options.clear();
    record.environment.servers.iter_mut().for_each(|server| server.settings.clear());
    record.environment.started.iter_mut().for_each(|started| started.configuration.clear());
    collect_keys(&serde_json::to_value(&record).unwrap(), &mut keys);
    let mut findings = findings(&record);
    findings.warnings.push(Warning::NoTransactions { stage: 0 });
    collect_keys(&serde_json::from_str(&json(&findings)).unwrap(), &mut keys);
    assert!(keys.len() > 100, "{}", keys.len());
    let document = include_str!("../../../docs/record.md");
    let words: Vec<&str> = document.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    // Named together with its counterpart `…_min`; a figure of one warning.
    let elsewhere = ["session_transactions_mean", "session_transactions_max", "share", "stage"];
    let missing: Vec<_> =
        keys.iter().filter(|key| !words.contains(&key.as_str()) && !elsewhere.contains(&key.as_str())).collect();
    assert!(missing.is_empty(), "not in docs/record.md: {missing:?}");
}

fn collect_keys(value: &serde_json::Value, keys: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(members) => {
            keys.extend(members.keys().cloned());
            members.values().for_each(|value| collect_keys(value, keys));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|value| collect_keys(value, keys)),
        _ => (),
    }
}

#[test]
fn what_was_read_is_told_by_second_and_by_transaction_and_a_counter_that_began_anew_is_marked() {
    let found = findings(&example_with_telemetry());
    let [first, second] = &found.stages[..] else { panic!("there are two stages") };
    let log = first.telemetry[0].metric("log_bytes").unwrap();
    // 720,000 bytes and 1,200 transactions per second, three tenths of them on this server, except for half a
    // millisecond at either end; too short for a confidence interval.
    assert_eq!((log.per_s, log.per_transaction_low), (Some(720_000.0), None));
    assert!((log.per_transaction.unwrap() - 2000.0).abs() < 0.6, "{log:?}");
    // A record without the first sample has one value less, and not a zero.
    let age = first.telemetry[0].metric("checkpoint_age_bytes").unwrap();
    assert_eq!(
        (age.mean, age.max, age.last, age.points.iter().next().unwrap().value),
        (Some(1.5), Some(2.0), Some(2.0), None)
    );
    let waits = first.telemetry[0].waits.as_ref().unwrap();
    let waits: Vec<_> = waits.iter().map(|one| (one.event.as_str(), one.sessions)).collect();
    assert_eq!(waits, [("CPU", 2.0), ("IO:WALSync", 1.0)]);
    let written = second.telemetry[1].metric("device_written_bytes").unwrap();
    assert_eq!((written.per_s, written.resets_ns.as_slice()), (Some(100_000.0), &[1_000_500_000][..]));
    assert!(written.points.iter().all(|point| point.value.is_none_or(|value| value >= 0.0)), "{written:?}");
    let sampling = found.sampling.unwrap();
    assert_eq!((sampling.cpu_share, sampling.statements_per_s), (0.002, 3.0));
    assert_eq!(sampling.absent[0].reason, "permission denied");
}

#[test]
fn what_sampling_adds_is_subtracted_and_a_counter_that_stands_still_under_load_is_no_zero() {
    let mut record = example_with_telemetry();
    let scope = &mut record.telemetry.as_mut().unwrap().scopes[0];
    let like = |metric: &str, source: &str, values: [u64; 6]| {
        let of = scope.series[0].clone();
        Series { metric: metric.into(), source: source.into(), values: values.map(Some).to_vec(), ..of }
    };
    // A server that publishes late: our 20 per second arrive with the second sample.
    let mut commits = like("commits", "xact_commit", [0, 1_200, 2_440, 2_440, 4_860, 7_280]);
    commits.own = [0, 20, 40, 40, 60, 80].map(Some).to_vec();
    let mut cpu = like("cpu_us", "/proc", [0, 5, 9, 9, 12, 20]);
    cpu.includes_own = true;
    let statements = like("statements", "Questions", [7; 6]);
    let handled = like("rollbacks", "Com_rollback", [0; 6]);
    let autocommit = like("commits", "Com_commit", [3; 6]);
    scope.series.extend([commits.clone(), cpu, statements, handled]);
    let found = findings(&record);
    let server = &found.stages[0].telemetry[0];
    let metric = |name: &str| server.metric(name).unwrap();
    assert_eq!((metric("commits").per_s, metric("commits").own_per_s), (Some(1_200.0), Some(20.0)));
    assert!(metric("cpu_us").includes_own && metric("cpu_us").own_per_s.is_none());
    assert_eq!(metric("rollbacks").per_s, Some(0.0));
    assert_eq!((server.absent.len(), server.absent[0].metric.as_str()), (1, "statements"), "{:?}", server.absent);
    let text = text(&found);
    assert!(text.contains("not counted by the server: statements"), "{text}");
    assert!(text.contains("CPU includes telemetry's own 3.00 statements/s"), "{text}");

    let scope = &mut record.telemetry.as_mut().unwrap().scopes[0];
    scope.series.retain(|series| series.metric != "commits");
    scope.series.push(autocommit);
    let absent = findings(&record).stages[1].telemetry[0].absent.clone();
    let reason = absent.iter().find(|one| one.metric == "commits").map(|one| one.reason.as_str());
    assert!(reason.is_some_and(|reason| reason.contains("it counts COMMIT statements")), "{absent:?}");
}

#[test]
fn the_report_says_what_a_transaction_cost_the_server_and_its_machine() {
    let report = text(&findings(&example_with_telemetry()));
    let from = report.find("\nserver      number").unwrap() + 1;
    let lines: Vec<&str> = report[from..].lines().take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    server      number 1 · per transaction: 1.95 KiB log
    waits       CPU 100%
    telemetry   cost 0.20% of a CPU in assay, 0.15% in the server
                3.00 statements/s on servers · 0.500 ms each
    ");
    assert!(report.contains("tags: disk=nvme, ticket=PERF-7"), "{report}");
}

#[test]
fn records_are_trials_of_one_setting_only_when_nothing_differs_that_may_matter() {
    let groups_of = |change: &dyn Fn(&mut Record)| {
        let mut other = example_with_telemetry();
        other.started = Time::from_unix_ms(1_773_600_000_000);
        change(&mut other);
        let both = [example_with_telemetry(), other];
        let records = both.iter().enumerate().map(|(number, record)| (number.to_string(), findings(record))).collect();
        groups(records).into_iter().map(|group| group.name).collect::<Vec<_>>()
    };
    fn set(record: &mut Record, place: usize, name: &str, value: &str) {
        record.environment.servers[place].settings.insert(name.into(), value.into());
    }
    type Change = fn(&mut Record);
    let harmless: [Change; 4] = [
        |_| {},
        |record| record.environment.host.name = "LOAD1".into(),
        |record| drop(record.environment.servers[0].facts.insert("command line".into(), "postgres -D /other".into())),
        // The record says that it does not matter.
        |record| set(record, 0, "port", "5433"),
    ];
    for change in harmless {
        assert_eq!(groups_of(&change).len(), 1);
    }
    let matters: [(Change, [&str; 2]); 4] = [
        (
            |record| drop(record.environment.servers[0].facts.insert("filesystem".into(), "xfs".into())),
            ["1 filesystem=ext4", "1 filesystem=xfs"],
        ),
        (
            |record| drop(record.environment.facts.insert("swappiness".into(), "1".into())),
            ["swappiness 60", "swappiness 1"],
        ),
        (|record| drop(record.tags.insert("disk".into(), "sata".into())), ["disk=nvme", "disk=sata"]),
        // The record says so of the other server only.
        (|record| set(record, 1, "port", "5433"), ["no 2 port", "2 port=5433"]),
    ];
    for (change, names) in matters {
        assert_eq!(groups_of(&change), names);
    }
}

#[test]
fn readings_are_rows_of_time_scope_metric_and_value() {
    let report = report(vec![("a.json.zst".into(), findings(&example_with_telemetry()))]);
    let rows = telemetry_csv(&report);
    let rows: Vec<&str> = rows.lines().filter(|row| !row.contains("waits")).take(5).collect();
    insta::assert_snapshot!(rows.join("\n"), @r"
    record,file,setting,stage,sessions,time_ns,scope,target,metric,unit,value
    shop.lua,a.json.zst,0,0,16,1000500000,server,0,log_bytes,bytes_per_s,720000
    shop.lua,a.json.zst,0,0,16,2000500000,server,0,log_bytes,bytes_per_s,720000
    shop.lua,a.json.zst,0,0,16,1000500000,server,0,checkpoint_age_bytes,bytes,1
    shop.lua,a.json.zst,0,0,16,2000500000,server,0,checkpoint_age_bytes,bytes,2
    ");
    let tagged = intervals_csv(&report);
    assert!(tagged.lines().next().unwrap().ends_with(",option_table,tag_disk,tag_ticket"), "{tagged}");
    assert!(tagged.lines().nth(1).unwrap().ends_with(",nvme,PERF-7"), "{tagged}");
    let metrics = prometheus(&report);
    assert!(metrics.contains("assay_server_log_bytes_per_transaction{"), "{metrics}");
    assert!(metrics.contains("tag_disk=\"nvme\""), "{metrics}");
}

/// A search with these stages: rates, and how many transactions were due but not started.
fn searched(looks: &[(f64, u64)]) -> Record {
    let mut record = plain();
    record.manifest.load = Load::Open { rate_per_s: 100.0, arrival: Arrival::Constant, backlog_max: None };
    record.manifest.search = Some(Search::Rate { promises: vec!["p99 < 10ms".into(), "errors < 1%".into()] });
    let stage = record.stages[0].clone();
    record.stages = looks
        .iter()
        .map(|(rate, unstarted)| {
            let mut stage = Stage { rate_per_s: Some(*rate), ..stage.clone() };
            (stage.total.due, stage.total.unstarted) = (2000 + unstarted, *unstarted);
            stage
        })
        .collect();
    record.manifest.sessions = record.stages.iter().map(|stage| stage.sessions).collect();
    record
}

#[test]
fn a_search_is_concluded_from_the_stages_of_its_record() {
    let looks = [(100.0, 0), (400.0, 0), (1600.0, 900), (400.0, 0), (420.0, 500), (420.0, 500), (400.0, 0)];
    let found = findings(&searched(&looks));
    let capacity = found.capacity.as_ref().unwrap();
    assert_eq!((capacity.state, capacity.low, capacity.high), (SearchState::Found, Some(400.0), Some(420.0)));
    let said = text_in(&found, View { width: 120, ..View::default() });
    plain_to(120, &said);
    assert!(said.contains("capacity 400 tx/s: p99 < 10ms and errors < 1% holds there, and not at 420 tx/s"), "{said}");
    assert!(said.contains("50.0  not all started or finished"), "{said}");
    // Overload beyond capacity is part of a search, so it is not a warning.
    assert!(!said.contains("the rate was too high"), "{said}");
    let unfinished = findings(&searched(&looks[..3])).capacity.unwrap();
    assert_eq!((unfinished.state, unfinished.low), (SearchState::Unfinished, Some(400.0)));
}

/// A search for `promises` whose stages had this rate and this many transactions of this length.
fn searched_with(promises: &[&str], looks: &[(f64, u64, u64)]) -> Record {
    let mut record = searched(&looks.iter().map(|(rate, ..)| (*rate, 0)).collect::<Vec<_>>());
    record.manifest.search = Some(Search::Rate { promises: promises.iter().map(|&text| text.into()).collect() });
    for (stage, (_, count, ms)) in record.stages.iter_mut().zip(looks) {
        let one = &mut stage.total.transactions[0];
        (stage.total.due, one.count) = (*count, *count);
        one.response = spread(*count, ms * 1_000_000, ms * 1_000_000);
        stage.total.lag = Latencies::default();
    }
    record
}

fn next(promise: &str, looks: &[(f64, u64, u64)]) -> Option<f64> {
    next_rate(&searched_with(&[promise], looks).stages, &[promise.parse().unwrap()])
}

#[test]
fn a_look_goes_on_until_a_promise_has_enough_transactions() {
    let capacity =
        |promise: &str, looks: &[(f64, u64, u64)]| findings(&searched_with(&[promise], looks)).capacity.unwrap();
    let few = (100.0, 30, 1);
    // A hundred for p99, twenty for p95, a thousand for p99.9 and for a thousandth of errors.
    for (promise, stages) in [("p95 < 10ms", 1), ("p99 < 10ms", 4), ("max < 10ms", 1), ("errors < 1%", 4)] {
        for before in 1..stages {
            assert_eq!(next(promise, &vec![few; before]), Some(100.0), "{promise} {before}");
            let look = capacity(promise, &vec![few; before]).looks[before - 1].clone();
            assert_eq!((look.kept, look.stages, look.values[0]), (false, before, None), "{promise}");
            assert_eq!(look.too_few.map(|few| few.transactions), Some(30 * before as u64));
        }
        assert_eq!(next(promise, &vec![few; stages]), Some(400.0), "{promise}");
        assert!(capacity(promise, &vec![few; stages]).looks[stages - 1].kept);
    }
    assert_eq!(next("p99.9 < 10ms", &[few; 19]), Some(100.0));
    assert_eq!(next("p99.9 < 1ms", &[(100.0, 2000, 3)]), Some(25.0));
    // What no further transaction can change is decided at once, without a number.
    let broken = capacity("p99 < 10ms", &[(100.0, 30, 20)]);
    assert_eq!((&broken.looks[0].broken[..], broken.looks[0].values[0]), (&[0][..], None));
    assert_eq!(next("p99 < 10ms", &[(100.0, 30, 20)]), Some(25.0));
    // One slow transaction of a hundred keeps it, so one of thirty decides nothing.
    let mut record = searched_with(&["p99 < 10ms"], &[few]);
    record.stages[0].total.transactions[0].response.max_ns = 50_000_000;
    assert_eq!(next_rate(&record.stages, &["p99 < 10ms".parse().unwrap()]), Some(100.0));
}

#[test]
fn a_search_that_cannot_get_enough_transactions_ends_without_an_answer() {
    let mut looks = vec![(100.0, 200, 20), (25.0, 50, 20)];
    looks.extend([(6.25, 3, 1); 19]);
    assert_eq!(next("p99 < 10ms", &looks), Some(6.25));
    looks.push((6.25, 3, 1));
    assert_eq!(next("p99 < 10ms", &looks), None);
    let found = findings(&searched_with(&["p99 < 10ms"], &looks)).capacity.unwrap();
    assert_eq!((found.state, found.low, found.high), (SearchState::TooFew, None, Some(25.0)));
    assert_eq!(
        capacity_words(&found),
        "capacity unknown; below 25.0 tx/s: p99 needs 100 transactions, and 20 stages at 6.25 tx/s had 60: give each \
         more `--time`"
    );
}

#[test]
fn a_promise_about_transactions_that_do_not_occur_is_never_kept() {
    let promise = "shops.p99 < 10ms";
    let looks = [(100.0, 2000, 1)];
    assert_eq!(next(promise, &looks), None);
    let found = findings(&searched_with(&[promise], &looks)).capacity.unwrap();
    assert_eq!((found.state, found.low), (SearchState::UnknownType, None));
    assert_eq!((found.unknown_types, found.known_types), (vec!["shops".to_owned()], vec!["shop".to_owned()]));
    let said = text_in(&findings(&searched_with(&[promise], &looks)), View { width: 120, ..View::default() });
    assert!(said.contains("capacity unknown: there are no transactions of type shops, only shop"), "{said}");
    // Before the first transaction nothing is known about their types.
    assert_eq!(next_rate(&[], &[promise.parse().unwrap()]), Some(100.0));
    assert_eq!(next("shop.p99 < 10ms", &looks), Some(400.0));
}

#[test]
fn a_capacity_that_delays_of_the_generator_may_have_decided_says_so() {
    let looks: Vec<(f64, u64, u64)> =
        [(100.0, 1), (400.0, 1), (420.0, 20), (420.0, 20), (400.0, 1)].map(|(rate, ms)| (rate, 2000, ms)).to_vec();
    let said = |change: &dyn Fn(&mut Stage)| {
        let mut record = searched_with(&["p99 < 10ms"], &looks);
        record.environment.servers[0].place = Place::Embedded;
        record.stages[2..4].iter_mut().for_each(change);
        capacity_words(findings(&record).capacity.as_ref().unwrap())
    };
    let plain = "capacity 400 tx/s: p99 < 10ms holds there, and not at 420 tx/s";
    assert_eq!(said(&|_| {}), plain);
    assert_eq!(
        said(&|stage| stage.generator.longest_wait_ppm = Some(350_000)),
        format!("{plain}; but there assay itself waited for a CPU for 35% of the time: the capacity may be higher")
    );
    let late = said(&|stage| {
        stage.generator.longest_wait_ppm = Some(0);
        stage.total.lag = spread(2000, 4_000_000, 4_000_000);
    });
    assert!(late.starts_with(plain) && late.contains("assay itself was 4.00 ms late"), "{late}");
    // A generator that was the limit at every rate says nothing about the server.
    let mut record = searched_with(&["p99 < 10ms"], &[(100.0, 200, 20), (25.0, 200, 20), (6.25, 200, 20)]);
    record.stages.push(Stage { rate_per_s: Some(1.56), ..record.stages[0].clone() });
    record.stages.extend([1.0, 1.0].map(|rate| Stage { rate_per_s: Some(rate), ..record.stages[0].clone() }));
    assert_eq!(findings(&record).capacity.unwrap().state, SearchState::NotEven);
    record.environment.servers[0].place = Place::Remote;
    record.stages.iter_mut().for_each(|stage| stage.generator.busiest_worker_ppm = 990_000);
    let words = capacity_words(findings(&record).capacity.as_ref().unwrap());
    assert!(
        words.starts_with("capacity unknown: ") && words.ends_with("the load generator was the bottleneck"),
        "{words}"
    );
}

#[test]
fn a_rate_that_the_generator_could_not_make_is_no_limit_of_the_server() {
    let mut record = searched(&[(100.0, 0), (400.0, 0), (420.0, 500), (420.0, 500), (400.0, 0)]);
    record.environment.servers[0].place = Place::Remote;
    record.stages[2..4].iter_mut().for_each(|stage| stage.generator.busiest_worker_ppm = 990_000);
    let capacity = findings(&record).capacity.unwrap();
    assert_eq!((capacity.state, capacity.low), (SearchState::GeneratorLimit, Some(400.0)));
}

#[test]
fn where_server_and_generator_compete_for_cpus_the_interval_is_that_of_both() {
    let mut record = searched(&[(100.0, 0), (400.0, 0), (420.0, 500), (420.0, 500), (400.0, 0)]);
    record.environment.servers[0].place = Place::Local;
    record.stages[1..].iter_mut().for_each(|stage| stage.generator.longest_wait_ppm = Some(300_000));
    let found = findings(&record);
    let capacity = found.capacity.as_ref().unwrap();
    assert_eq!((capacity.state, capacity.low, capacity.high), (SearchState::SharedCpus, Some(400.0), Some(420.0)));
    let said = text_in(&found, View { width: 160, ..View::default() });
    let words = "capacity at least 400 tx/s: p99 < 10ms and errors < 1% holds there, and not at 420 tx/s, where \
                 server and load generator compete for the same CPUs";
    assert!(said.contains(words), "{said}");
}

/// A search for the number of sessions that is enough, with the throughput of each look.
fn knee_of(looks: &[(u32, u64)]) -> Findings {
    let mut record = plain();
    record.manifest.search = Some(Search::Sessions { max: 64 });
    record.status = Status::Complete;
    let stage = record.stages[0].clone();
    record.stages = looks
        .iter()
        .map(|(sessions, tps)| {
            let mut stage = stage.clone();
            (stage.sessions, stage.measured_ns) = (*sessions, 1_000_000_000);
            stage.total.transactions.truncate(1);
            stage.total.transactions[0].count = *tps;
            stage.total.transactions[0].rolled_back = 0;
            stage
        })
        .collect();
    findings(&record)
}

#[test]
fn a_knee_has_the_throughput_that_it_is_said_to_have() {
    let growing = [(1, 2500), (2, 5000), (4, 8858), (8, 8900)];
    let found = knee_of(&[&growing[..], &[(3, 7000), (4, 8800), (3, 7100)]].concat());
    let capacity = found.capacity.as_ref().unwrap();
    assert_eq!((capacity.state, capacity.high), (SearchState::Found, Some(4.0)));
    let knee = |found: &Findings| found.stages.iter().find(|stage| stage.knee).map(|one| (one.sessions, one.total.tps));
    assert_eq!(knee(&found).map(|(sessions, _)| sessions), Some(4));
    // One of three looks was disturbed: the others decide, and one of them is shown.
    let found = knee_of(&[&growing[..], &[(3, 7000), (4, 349), (4, 8700), (3, 7100)]].concat());
    assert_eq!(found.capacity.as_ref().unwrap().high, Some(4.0));
    assert!(knee(&found).unwrap().1 > 8000.0);
    // The server became slow for good: there is no knee where it is slow.
    let slow =
        [(3, 349), (4, 349), (4, 349), (5, 349), (6, 349), (8, 349), (8, 349), (2, 349), (2, 349), (1, 349), (1, 349)];
    for until in 3..=slow.len() {
        let found = knee_of(&[&growing[..], &slow[..until]].concat());
        let words = capacity_words(found.capacity.as_ref().unwrap());
        let reached = knee(&found).map_or(f64::INFINITY, |(_, tps)| tps);
        assert!(reached >= 0.8 * 8858.0, "after {until} slow looks: {words}, {reached} tx/s");
        assert!(!words.starts_with("knee at ") || reached.is_finite(), "{words}");
    }
    let found = knee_of(&[&growing[..], &slow].concat());
    let words = capacity_words(found.capacity.as_ref().unwrap());
    assert!(words.starts_with("knee unknown"), "{words}");
}

#[test]
fn what_is_missing_in_a_record_is_said_and_is_not_an_outage() {
    let mut record = plain();
    let second = 1_000_000_000;
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    stage.measured_ns = 10 * second;
    let interval = |number: u64| Interval {
        start_ns: number * second,
        length_ns: second,
        transactions: vec![1000],
        first_done_ns: Some(number * second + 1000),
        last_done_ns: Some((number + 1) * second - 1000),
        response: spread(1000, 1_000_000, 2_000_000),
        ..Interval::default()
    };
    stage.intervals = (0..10).filter(|number| *number != 3 && *number != 7).map(interval).collect();
    record.damaged_lines = vec![6];
    let text = text(&findings(&record));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("! line 6 of the record is damaged: 0:03 to 0:04, 0:07 to 0:08 are missing"), "{text}");
    assert!(!words.contains("no service") && !words.contains("outages, the longest"), "{text}");
    // A second without a transaction that the record has is an outage.
    record.stages[0].intervals = (0..10).map(interval).collect();
    record.damaged_lines.clear();
    let third = &mut record.stages[0].intervals[3];
    (third.transactions, third.response) = (vec![0], Latencies::default());
    (third.first_done_ns, third.last_done_ns) = (None, None);
    assert!(assay_report::text(&findings(&record)).contains("no service for 1.00 s"));
}

/// Trials of one setting whose numbers of transactions differ have curves of different lengths.
#[test]
fn a_curve_of_percentiles_never_falls() {
    let trial = |transactions: u64, slowest: u64| {
        let mut record = plain();
        record.stages[0].total.transactions.truncate(1);
        let one = &mut record.stages[0].total.transactions[0];
        (one.count, one.rolled_back) = (transactions, 0);
        one.response = spread(transactions, 1_000_000, slowest);
        findings(&record)
    };
    // The shorter two were slower.
    let trials = [trial(100_000, 3_000_000), trial(2000, 90_000_000), trial(2000, 80_000_000)];
    let named = |(number, one): (usize, Findings)| (format!("{number}.json.zst"), one);
    let report = report(trials.into_iter().enumerate().map(named).collect());
    let all = charts(&report);
    let chart = all.of_all.iter().find(|chart| chart.id == "percentiles").unwrap();
    let ChartBody::Lines { lines } = &chart.body else { panic!("{chart:?}") };
    for line in lines {
        let shown: Vec<f64> = line.y.iter().flatten().copied().collect();
        assert!(shown.len() > 20 && shown.is_sorted(), "{shown:?}");
    }
}

#[test]
fn searches_are_compared_by_what_they_found() {
    let trial = |low: f64| findings(&searched(&[(100.0, 0), (low, 0), (low * 1.04, 500), (low * 1.04, 500), (low, 0)]));
    let (before, after) = ([400.0, 410.0, 405.0, 395.0].map(trial), [800.0, 810.0, 805.0, 795.0].map(trial));
    let names: Vec<String> = (1..=4).map(|n| format!("{n}.json.zst")).collect();
    let side = |name, trials| Side { name, records: &names, trials };
    let compared = compare(side("A", &before[..]), side("B", &after[..]), 0.03);
    let change = compared.stages[0].metric("capacity").unwrap().change.unwrap();
    assert_eq!((compared.headline.as_str(), change.verdict), ("capacity", ChangeVerdict::Better));
    assert!(change.ratio.is_some_and(|ratio| (ratio - 2.0).abs() < 0.05), "{change:?}");
    assert!(!compared.differences.iter().any(|one| ["sessions", "load"].contains(&one.what.as_str())));
}

#[test]
fn a_report_fits_terminals_of_60_80_and_120_columns() {
    for record in [plain(), example()] {
        for width in [60, 80, 120] {
            for verbose in [false, true] {
                let text = text_in(&findings(&record), View { width, verbose, color: false, agents: false });
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width} columns, {verbose}: {line}\n{text}");
                }
            }
        }
    }
    let colored = text_in(&findings(&example()), View { color: true, ..View::default() });
    assert!(colored.contains("\u{1b}[1m120,000 spm\u{1b}[0m") && colored.contains("\u{1b}[1;33m!"), "{colored}");
}

#[test]
fn what_repeats_a_run_has_its_seed_and_writes_over_no_record() {
    let mut record = plain();
    record.manifest.seed = 7;
    let words = "assay run tpcc --record a.json --trials=5 --seed 1 --time 5s --journal=b.csv";
    record.manifest.command = words.split(' ').map(str::to_owned).collect();
    let page = markdown(&report(vec![("a.json".into(), findings(&record))]), &[]);
    assert!(page.contains("\nassay run tpcc --time 5s --seed 7\n"), "{page}");
}

#[test]
fn the_line_of_a_running_trial_fits_any_terminal_and_keeps_what_counts() {
    let progress = Progress {
        label: "trial 2 of 5".into(),
        elapsed_ns: 252_000_000_000,
        total_ns: Some(600_000_000_000),
        tps: (0..40).map(|n| 900.0 + f64::from(n)).chain([0.0, 987.0]).collect(),
        p99_ns: Some(20_000_000),
        errors: 0,
    };
    let at = |width: usize| progress_line(&progress, View { width, ..View::default() });
    insta::assert_snapshot!([60, 80, 120].map(at).join("\n"), @r"
    [####------] 4:12 / 10:00  987 tx/s  p99 20.0 ms  0 errors
    [#####--------] 4:12 / 10:00  987 tx/s  p99 20.0 ms  0 errors  trial 2 of 5
    [########------------] 4:12 / 10:00  5:48 left  987 tx/s  p99 20.0 ms  0 errors  trial 2 of 5  ██████████████████████▁█
    ");
    for width in 60..=120 {
        assert!(at(width).chars().count() < width, "{width}: {}", at(width));
    }
    let endless = Progress { total_ns: None, label: String::new(), tps: vec![], p99_ns: None, ..progress };
    insta::assert_snapshot!(progress_line(&endless, View::default()), @"4:12");
}

/// Records of one series with these values, a day apart.
fn history_records(workload: &str, values: &[f64]) -> Vec<HistoryRecord> {
    let record = |(number, value): (usize, &f64)| HistoryRecord {
        path: format!("{workload}-{number:03}.json.zst"),
        started: Time::from_unix_ms(1_767_225_600_000 + number as u64 * 86_400_000),
        value: *value,
        machine: "lab1".into(),
        workload: workload.into(),
        product: "PostgreSQL".into(),
        version: "17.2".into(),
        tags: Default::default(),
        settings: Default::default(),
    };
    values.iter().enumerate().map(record).collect()
}

fn history_of(records: Vec<HistoryRecord>) -> History {
    let metric = Metric { name: "tps".into(), unit: MetricUnit::PerSecond, better: Better::Higher };
    history(records, &HistoryAsked { metric, by: HistoryBy::Time, margin: 0.03, notes: Vec::new() })
}

/// Noise of 1 % that is the same every time.
fn noisy(level: f64, number: usize) -> f64 {
    level * (1.0 + 0.01 * ((number * 7919 % 13) as f64 - 6.0) / 4.0)
}

#[test]
fn a_regression_that_was_mended_is_listed_and_does_not_hide_the_next_one() {
    let level = |number: usize| match number {
        50..64 => 500.0,
        120.. => 900.0,
        _ => 1000.0,
    };
    let all: Vec<f64> = (0..140).map(|number| noisy(level(number), number)).collect();
    let mended = history_of(history_records("shop", &all[..120]));
    let text = history_text(&mended);
    assert!(!mended.is_alarming() && text.contains("; recovered since"), "{text}");
    let answer = "tps: no new change for the worse; 1 change for the worse since recovered from";
    assert_eq!(text.lines().next(), Some(answer));
    let again = history_of(history_records("shop", &all));
    assert!(again.is_alarming() && history_text(&again).starts_with("tps got worse: −10."), "{}", history_text(&again));
}

#[test]
fn a_history_says_how_many_series_it_could_judge() {
    let calm = |length: usize| (0..length).map(|number| noisy(1000.0, number)).collect::<Vec<f64>>();
    let first = |records: Vec<HistoryRecord>| history_text(&history_of(records)).lines().next().unwrap().to_owned();
    let all = |lengths: &[usize]| {
        let series = lengths.iter().enumerate();
        first(series.flat_map(|(number, length)| history_records(&format!("w{number}"), &calm(*length))).collect())
    };
    assert_eq!(all(&[30, 30]), "tps: no new change for the worse in 2 series of results");
    let few = "tps: cannot tell whether it got worse: all 3 series have fewer than 14 points, too few to judge";
    assert_eq!(all(&[3, 1, 2]), few);
    let some = all(&[30, 2, 3]);
    assert!(
        some.starts_with("tps: no new change for the worse in 1 of 3 series of results; the other 2 have"),
        "{some}"
    );
    assert!(all(&[5]).starts_with("tps: too few points to tell whether it got worse"), "{}", all(&[5]));
    // One run that got nothing done, and one without a value, silence nothing.
    let mut odd: Vec<f64> = (0..60).map(|number| noisy(if number < 40 { 1000.0 } else { 900.0 }, number)).collect();
    (odd[10], odd[20]) = (0.0, f64::NAN);
    assert!(first(history_records("shop", &odd)).starts_with("tps got worse: −10."));
}
