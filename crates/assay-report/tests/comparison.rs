//! Comparisons, grids and summaries of trials as text, from invented records.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;

use assay_record::*;
use assay_report::*;
use example::{example, example_with_telemetry, spread};

/// One trial: a run with `rate(second)` transactions in each second and latencies up to `slowest_ms`.
fn trial(seconds: u64, slowest_ms: u64, rate: impl Fn(u64) -> u64) -> Record {
    let mut record = example();
    record.status = Status::Complete;
    record.manifest.load = Load::Closed;
    record.manifest.sessions = vec![16];
    record.manifest.limit.time_ns = Some(seconds * 1_000_000_000);
    record.manifest.targets.truncate(1);
    record.environment.servers.truncate(1);
    record.environment.started = None;
    record.types = vec!["shop".into()];
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    stage.targets.clear();
    stage.measured_ns = seconds * 1_000_000_000;
    stage.intervals = (0..seconds)
        .map(|second| Interval {
            start_ns: second * 1_000_000_000,
            length_ns: 1_000_000_000,
            transactions: vec![rate(second)],
            sessions: 16,
            response: spread(rate(second), 1_000_000, slowest_ms * 1_000_000),
            ..Interval::default()
        })
        .collect();
    let count = (0..seconds).map(&rate).sum();
    let total = &mut stage.total;
    total.transactions.truncate(1);
    total.transactions[0] = TransactionTally {
        name: "shop".into(),
        count,
        response: spread(count, 1_000_000, slowest_ms * 1_000_000),
        service: spread(count, 900_000, slowest_ms * 1_000_000),
        ..TransactionTally::default()
    };
    (total.errors, total.due, total.dropped, total.unstarted) = (vec![], 0, 0, 0);
    record
}

fn plain(rate: u64, slowest_ms: u64) -> Findings {
    findings(&trial(2, slowest_ms, |_| rate))
}

fn compared(baseline: &[Findings], candidate: &[Findings]) -> Comparison {
    let names = |side: &str, count| -> Vec<String> { (1..=count).map(|n| format!("{side}-{n}.json.zst")).collect() };
    let (before, after) = (names("a", baseline.len()), names("b", candidate.len()));
    compare(
        Side { name: "baseline", records: &before, trials: baseline },
        Side { name: "candidate", records: &after, trials: candidate },
        0.03,
    )
}

#[track_caller]
fn narrow_and_plain(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        assert!(!line.contains(char::is_control) && line.trim_end() == line, "{line:?}");
    }
}

/// The comparison, as text, after `mend` changed the candidate's trials.
fn shown(rates: [&[u64]; 2], mend: impl Fn(&mut Record)) -> String {
    let side = |rates: &[u64], mend: &dyn Fn(&mut Record)| -> Vec<Findings> {
        let one = |rate: &u64| {
            let mut record = trial(2, 10_000 / rate, |_| *rate);
            mend(&mut record);
            findings(&record)
        };
        rates.iter().map(one).collect()
    };
    let text = comparison_text(&compared(&side(rates[0], &|_| ()), &side(rates[1], &mend)));
    narrow_and_plain(&text);
    text
}

#[test]
fn a_faster_candidate_is_found_with_its_interval_and_what_differs_stands_first() {
    let text = shown([&[1000, 1010, 990, 1005, 995], &[1250, 1260, 1240, 1255, 1245]], |record| {
        record.manifest.session_sql = vec!["SET synchronous_commit=off".into()];
        record.environment.servers[0].settings.insert("synchronous_commit".into(), "off".into());
    });
    insta::assert_snapshot!(text, @r"
    candidate is faster than baseline: tx/s 1,000 → 1,250, +25.0% [+23.4, +26.6] at
    95%, in 25 of 25 pairs of trials

    baseline   baseline · shop.lua · 5 trials · PostgreSQL 15.14
               a-1.json.zst … a-5.json.zst
    candidate  candidate · shop.lua · 5 trials · PostgreSQL 15.14
               b-1.json.zst … b-5.json.zst

    the sides differ in:
      server synchronous_commit: none → off
      session SQL: SET application_name = 'shop' → SET synchronous_commit=off

    16 sessions         baseline    candidate                 change
    tx/s             1000.0 ±9.7  1250.0 ±9.7  +25.0% [+23.4, +26.6]  faster
    p50 ms            5.50 ±0.50   4.50 ±0.50  −18.2% [−27.3, −10.0]  faster
    p95 ms            9.55 ±0.95   7.65 ±0.95  −20.0% [−29.8, −11.0]  faster
    p99 ms            9.91 ±0.99   7.93 ±0.99  −20.0% [−30.0, −11.1]  faster
    assay CPU µs/tx  50.00 ±0.48  40.00 ±0.31  −20.0% [−21.0, −19.0]  less
    spm              60,000 ±582  75,000 ±582  +25.0% [+23.4, +26.6]  faster
    ");
}

#[test]
fn sides_with_one_number_of_sessions_each_are_compared_whatever_it_is() {
    let text = shown([&[1000, 1010, 990, 1005, 995], &[1250, 1260, 1240, 1255, 1245]], |record| {
        record.stages[0].sessions = 32;
    });
    assert!(text.contains("the sides did different work") && text.contains("  sessions: 16 → 32\n"), "{text}");
    assert!(text.contains("\n16 → 32 sessions ") && text.contains("+25.0% [+23.4, +26.6]  faster"), "{text}");
}

#[test]
fn a_change_that_is_not_that_of_the_medians_is_explained() {
    let note = "a change is the median of the ratios of all pairs of trials";
    assert!(shown([&[2000, 1500, 1290, 1270], &[1790, 1820, 1390, 1270]], |_| ()).contains(note));
    assert!(!shown([&[1000, 1010, 990, 1005], &[1250, 1260, 1240, 1255]], |_| ()).contains(note));
}

#[test]
fn one_trial_per_side_cannot_tell() {
    insta::assert_snapshot!(shown([&[1000], &[1250]], |_| ()), @r"
    no verdict on candidate against baseline: tx/s 1,000 → 1,250, +25.0% (no
    interval); a confidence interval needs at least 4 trials per side (there are 1)

    baseline   baseline · shop.lua · 1 trial · PostgreSQL 15.14 · a-1.json.zst
    candidate  candidate · shop.lua · 1 trial · PostgreSQL 15.14 · b-1.json.zst

    16 sessions      baseline  candidate                change
    tx/s                1,000      1,250  +25.0% (no interval)  cannot tell
    p50 ms               5.50       4.50  −18.2% (no interval)  cannot tell
    p95 ms               9.55       7.65  −19.9% (no interval)  cannot tell
    p99 ms               9.91       7.93  −20.0% (no interval)  cannot tell
    assay CPU µs/tx      50.0       40.0  −20.0% (no interval)  cannot tell
    spm                60,000     75,000  +25.0% (no interval)  cannot tell
    ");
}

#[test]
fn noisy_trials_cannot_tell_and_say_how_many_could() {
    insta::assert_snapshot!(shown([&[1000, 1100, 900, 1050, 950], &[1020, 1120, 900, 1060, 950]], |_| ()), @r"
    cannot tell whether candidate is faster or slower than baseline: tx/s 1,000 →
    1,020 (+2.0%), median of pairs +1.0% [−13.6, +17.8] at 95%; 158 more trials per
    side (163 in all) would find a difference of 3.0% four times out of five

    baseline   baseline · shop.lua · 5 trials · PostgreSQL 15.14
               a-1.json.zst … a-5.json.zst
    candidate  candidate · shop.lua · 5 trials · PostgreSQL 15.14
               b-1.json.zst … b-5.json.zst

    16 sessions           baseline      candidate                change
    tx/s                 1,000 ±97     1,020 ±120  +1.0% [−13.6, +17.8]  cannot tell
    p50 ms              5.50 ±0.60     5.00 ±0.93  ±0.0% [−18.2, +10.0]  cannot tell
    p95 ms                9.6 ±1.1       8.6 ±1.8  ±0.0% [−19.9, +11.0]  cannot tell
    p99 ms                9.9 ±1.2       8.9 ±1.8  ±0.0% [−20.0, +11.1]  cannot tell
    assay CPU µs/tx      50.0 ±5.2      49.0 ±6.3  −0.9% [−15.1, +15.8]  cannot tell
    spm              60,000 ±5,815  61,200 ±7,175  +1.0% [−13.6, +17.8]  cannot tell
    a change is the median of the ratios of all pairs of trials, not of the medians;
    ±0 where the two have opposite signs
    ");
}

#[test]
fn sides_that_agree_have_no_difference() {
    let text = shown([&[1000, 1004, 996, 1002, 998], &[1001, 1003, 997, 1000, 999]], |_| ());
    assert!(text.contains("no difference found: tx/s"), "{text}");
}

#[test]
fn other_work_other_hosts_and_broken_trials_are_told_before_any_number() {
    let text = shown([&[1000, 1000], &[1250, 1260]], |record| {
        record.status = Status::Interrupted;
        record.manifest.workload = "other.lua".into();
        record.manifest.options.insert("items".into(), OptionValue::Int(5));
        record.environment.host.name = "load\u{1b}[2J2".into();
        record.stages[0].total.transactions[0].failed = 3;
    });
    insta::assert_snapshot!(text, @r#"
    not comparable: shop.lua and other.lua are different workloads; tx/s 1,000 →
    1,255, +25.5% (no interval)

    ! trial 1 of candidate was interrupted; what it measured until then is included

    ! trial 2 of candidate was interrupted; what it measured until then is included

    ! 6 transactions of candidate failed; no figure includes them

    baseline   baseline · shop.lua · 2 trials · PostgreSQL 15.14 · a-1.json.zst
               a-2.json.zst
    candidate  candidate · other.lua · 2 trials · PostgreSQL 15.14 · b-1.json.zst
               b-2.json.zst

    ! the sides did different work, so the server alone does not explain a change:
      workload: shop.lua → other.lua
      option items: 100000 → 5

    ! the load came from different machines, which may explain a change:
      host: load1 → load\u{1b}[2j2

    16 sessions      baseline  candidate                change
    tx/s                1,000      1,255  +25.5% (no interval)  cannot tell
    p50 ms               5.50       4.25  −22.7% (no interval)  cannot tell
    p95 ms               9.55       7.18  −24.9% (no interval)  cannot tell
    p99 ms               9.91       7.44  −25.0% (no interval)  cannot tell
    assay CPU µs/tx      50.0       39.8  −20.3% (no interval)  cannot tell
    spm                60,000     75,300  +25.5% (no interval)  cannot tell
    "#);
}

#[test]
fn trials_of_different_settings_on_one_side_are_told() {
    let mut other = trial(2, 10, |_| 1000);
    other.manifest.options.insert("items".into(), OptionValue::Int(5));
    let text = comparison_text(&compared(&[plain(1000, 10), findings(&other)], &[plain(1000, 10)]));
    let wanted = "! the trials of baseline differ in their settings: option items is 100000 or 5\n";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn what_the_generator_did_to_a_trial_is_called_as_in_its_own_report() {
    let busy: fn(&mut Record) = |record| record.stages[0].generator.busiest_worker_ppm = 970_000;
    let starved: fn(&mut Record) = |record| record.stages[0].generator.longest_wait_ppm = Some(320_000);
    let late: fn(&mut Record) = |record| record.stages[0].total.lag = spread(2000, 5_000_000, 9_000_000);
    for (mend, words) in [(busy, "was the bottleneck"), (starved, "was starved of CPU time"), (late, "was late")] {
        let mut record = trial(2, 10, |_| 1000);
        mend(&mut record);
        let found = findings(&record);
        let warning = found.warnings.iter().find(|warning| warning.is_of_generator()).unwrap();
        let own = warning_words(warning, &found).0;
        let beside = comparison_text(&compared(std::slice::from_ref(&found), &[plain(1000, 10)]));
        let page = summary(&report(vec![("x.json".into(), found)])).join(" ");
        for told in [own, beside, page] {
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            let all = ["was the bottleneck", "was starved of cpu time", "was late"];
            let said: Vec<&str> =
                all.into_iter().filter(|one| told.contains(&format!("the generator {one}"))).collect();
            assert_eq!(said, [words.to_lowercase()], "{told}");
        }
    }
}

#[test]
fn one_trial_has_neither_a_median_nor_a_spread() {
    let names = ["a.json".to_owned()];
    let text = summary_text(&summarize(Side { name: "one", records: &names, trials: &[plain(1000, 10)] }));
    assert!(text.contains("1,000") && !text.contains("median ") && !text.contains("spread"), "{text}");
}

#[test]
fn a_large_ratio_has_no_more_digits_than_are_known() {
    let text = grid_text(&[compared(&[plain(100, 10)], &[plain(1600, 10)])]);
    assert!(text.contains(" 16.0? ") && !text.contains("16.0003"), "{text}");
}

#[test]
fn without_a_database_named_the_temporary_one_is_no_difference() {
    let in_folder = |name: &str| {
        let mut record = trial(2, 10, |_| 1000);
        record.manifest.command = vec!["assay".into(), "run".into(), "shop.lua".into()];
        record.manifest.targets = vec![format!("sqlite:/tmp/{name}/assay.db")];
        findings(&record)
    };
    assert_eq!(differences(&[in_folder("a")], &[in_folder("b")]), []);
}

#[test]
fn a_grid_has_a_row_per_setting_and_ratios_to_the_first() {
    let setting = |rates: &[u64]| -> Vec<Findings> { rates.iter().map(|rate| plain(*rate, 10_000 / rate)).collect() };
    let first = setting(&[1000, 1010, 990, 1005]);
    let others = [("cache=2G", setting(&[1250, 1260, 1240, 1255])), ("cache=3G", setting(&[1001, 1011, 989, 1006]))];
    let (records, one) = (["a".to_owned(), "b".into(), "c".into(), "d".into()], setting(&[1500]));
    let baseline = Side { name: "cache=1G", records: &records, trials: &first };
    let mut all: Vec<Comparison> =
        others.iter().map(|(name, trials)| compare(baseline, Side { name, records: &records, trials }, 0.03)).collect();
    all.push(compare(baseline, Side { name: "cache=4G", records: &records[..1], trials: &one }, 0.03));
    let text = grid_text(&all);
    narrow_and_plain(&text);
    insta::assert_snapshot!(text, @r"
    baseline   cache=1G · shop.lua · 4 trials · PostgreSQL 15.14 · a … d
               cache=2G · shop.lua · 4 trials · PostgreSQL 15.14 · a … d
               cache=3G · shop.lua · 4 trials · PostgreSQL 15.14 · a … d
               cache=4G · shop.lua · 1 trial · PostgreSQL 15.14 · a

    with 16 sessions

    setting    tx/s   ratio  p50 ms   ratio  p99 ms   ratio
    cache=1G  1,003       1    5.25       1    9.42       1
    cache=2G  1,253   1.249    4.25   0.809    7.44   0.789
    cache=3G  1,004  1.001*    5.00  1.000*    8.92  1.000*
    cache=4G  1,500  1.496?    3.50  0.667?    5.95  0.632?

    * the 95% confidence interval of the ratio includes 1: this may be chance
    ? too few trials: a confidence interval needs at least 4 per setting
    ");
}

#[test]
fn several_trials_are_summed_up_by_their_median() {
    let trials: Vec<Findings> = [1000, 1010, 990, 1005, 995].map(|rate| plain(rate, 10_000 / rate)).into();
    let records: Vec<String> = (1..=5).map(|n| format!("a-{n}.json.zst")).collect();
    let text = summary_text(&summarize(Side { name: "shop", records: &records, trials: &trials }));
    narrow_and_plain(&text);
    insta::assert_snapshot!(text, @r"
    5 trials with 16 sessions:

    trial      tx/s  p50 ms  p95 ms  p99 ms  assay CPU µs/tx  failed
    1         1,000    5.50    9.55    9.91             50.0       0
    2         1,010    5.00    8.60    8.92             49.5       0
    3           990    5.50    9.55    9.92             50.5       0
    4         1,005    5.00    8.61    8.92             49.8       0
    5           995    5.50    9.56    9.92             50.3       0
    median    1,000    5.50    9.55    9.91             50.0
    95% low     990    5.00    8.60    8.92             49.5
    95% high  1,010    5.50    9.56    9.92             50.5
    spread     2.0%    9.1%     10%     10%             2.0%
    ");
    let two = Side { name: "shop", records: &records[..2], trials: &trials[..2] };
    assert!(summary_text(&summarize(two)).contains("a confidence interval needs at least 5 trials"));
}

#[test]
fn conditions_are_met_by_real_changes_only() {
    let side =
        |rates: &[u64]| -> Vec<Findings> { rates.iter().map(|rate| plain(*rate, 10_000 / rate.max(&1))).collect() };
    let check = |baseline: &[u64], candidate: &[u64], condition: &str| {
        let comparison = compared(&side(baseline), &side(candidate));
        let found = condition.parse::<Condition>().unwrap().judge(&comparison);
        (found.stages[0].outcome, found.is_met(), found.is_unsure())
    };
    let steady = [1000, 1010, 990, 1005];
    let slower = [800, 810, 790, 805];
    assert_eq!(check(&steady, &slower, "tps < -3%"), (Judged::Met, true, false));
    assert_eq!(check(&steady, &slower, "tps < -25%"), (Judged::NotMet, false, false));
    assert_eq!(check(&steady, &slower, "shop.p99 > +5%"), (Judged::Met, true, false));
    assert_eq!(check(&slower, &steady, "tps < -3%"), (Judged::NotMet, false, false));
    // The trials differ more among each other than the two sides do.
    let chance = check(&[1000, 1200, 800, 1100], &[950, 1150, 750, 1050], "tps < -3%");
    assert_eq!(chance, (Judged::MayBeChance, false, true));
    assert_eq!(check(&[1000], &[900], "tps < -3%"), (Judged::TooFewTrials, false, true));
    assert_eq!(check(&[1000], &[990], "tps < -3%"), (Judged::NotMet, false, false));
    assert_eq!(check(&[0], &[900], "tps < -3%"), (Judged::Unknown, false, true));
}

#[test]
fn the_names_of_all_metrics_can_be_listed() {
    let comparison = compared(&[plain(1000, 10)], &[plain(1000, 10)]);
    let names = metric_names(&comparison);
    assert_eq!(names[..5], ["tps", "qps", "p50", "p90", "p95"]);
    assert!(names.contains(&"cpu_per_transaction") && names.contains(&"shop.p99"), "{names:?}");
}

#[test]
fn a_run_of_two_minutes_has_an_interval_and_its_waves_and_stalls_are_told() {
    let text = |rate: &dyn Fn(u64) -> u64| {
        let text = text(&findings(&trial(120, 20, rate)));
        let wanted = |line: &&str| {
            ["steady ", "shifts ", "variation ", "        ", "at 95%"].iter().any(|head| line.starts_with(head))
        };
        text.lines()
            .filter(wanted)
            .filter(|line| !["CPU", "lag p99", "per turn"].iter().any(|of_generator| line.contains(of_generator)))
            .collect::<Vec<_>>()
            .join("\n")
    };
    // The decimals of a quadratic sequence have no pattern that matters here.
    let noise = |t: u64| ((t * t) as f64 * 0.618_034).fract();
    insta::assert_snapshot!(text(&|t| 1000 + (40.0 * noise(t)) as u64), @r"
    steady      yes, from the start · 1,020 tx/s [1,018, 1,022] at 95%
    variation   coefficient of variation 1.2% · lowest 1% of seconds 1,001 tx/s
                no outages
    at 95%      p50 [10.5, 10.5] ms · p95 [19.1, 19.1] ms · p99 [19.8, 19.8] ms
    ");
    insta::assert_snapshot!(text(&|t| if t < 20 { 400 + 30 * t } else { 1000 + (40.0 * noise(t)) as u64 }), @r"
    steady      yes, from 0:20 on · 1,021 tx/s [1,018, 1,023] at 95%
    variation   coefficient of variation 15% · lowest 1% of seconds 415 tx/s
                no outages
    at 95%      p50 [10.5, 10.5] ms · p95 [19.1, 19.1] ms · p99 [19.8, 19.8] ms
    ");
    insta::assert_snapshot!(text(&|t| if t % 20 < 3 { 50 } else { 1000 + (40.0 * noise(t)) as u64 }), @r"
    steady      no: throughput dropped to 50.0 tx/s at 0:00 for 3 s
    variation   coefficient of variation 40% · lowest 1% of seconds 50.0 tx/s
                no outages · waves of 20 s (99% of the variance)
    at 95%      p50 [10.5, 10.5] ms · p95 [19.1, 19.1] ms · p99 [19.8, 19.8] ms
    ");
    insta::assert_snapshot!(text(&|t| 1000 - 3 * t + (40.0 * noise(t)) as u64), @r"
    steady      no: throughput falls by 42% of its mean from start to end
    variation   coefficient of variation 12% · lowest 1% of seconds 661 tx/s
                no outages
    at 95%      p50 [10.5, 10.5] ms · p95 [19.1, 19.1] ms · p99 [19.8, 19.8] ms
    ");
    insta::assert_snapshot!(text(&|t| 1000 + (200.0 * (t as f64 / 5.0).sin() + 40.0 * noise(t)) as u64), @r"
    steady      unknown: 4 waves are too few to average over
    variation   coefficient of variation 8.0% · lowest 1% of seconds 1,000 tx/s
                no outages · waves of 31.5 s (98% of the variance)
    at 95%      p50 [10.5, 10.5] ms · p95 [19.1, 19.1] ms · p99 [19.8, 19.8] ms
    ");
    insta::assert_snapshot!(text(&|t| if t < 80 { 500 } else { 1000 } + (40.0 * noise(t)) as u64), @r"
    steady      no: throughput changed at 1:20
    shifts      519 → 1,022 tx/s (+97.1%) at 1:20
    variation   coefficient of variation 35% · lowest 1% of seconds 501 tx/s
                no outages
    at 95%      p50 [10.5, 10.5] ms · p95 [19.1, 19.1] ms · p99 [19.8, 19.8] ms
    ");
}

#[test]
fn short_intervals_are_put_together_to_seconds() {
    let mut record = trial(60, 20, |_| 1000);
    let stage = &mut record.stages[0];
    stage.intervals = (0..605)
        .map(|at| Interval {
            start_ns: at * 100_000_000,
            length_ns: 100_000_000,
            // Every other tenth of a second is a stall, but no whole second is.
            transactions: vec![if at % 2 == 0 { 200 } else { 0 }],
            response: spread(if at % 2 == 0 { 200 } else { 0 }, 1_000_000, 5_000_000),
            ..Interval::default()
        })
        .collect();
    let throughput = findings(&record).stages[0].throughput.clone();
    assert_eq!((throughput.step_ns, throughput.steps), (1_000_000_000, 61));
    assert_eq!((&throughput.outages[..], throughput.tps_p50), (&[][..], Some(1000.0)));
}

#[test]
fn the_knee_is_the_step_after_which_throughput_stops_growing() {
    let knee = |rates: &[u64]| {
        let mut record = trial(2, 10, |_| 1000);
        let stage = record.stages[0].clone();
        record.stages.clear();
        for (step, rate) in rates.iter().enumerate() {
            let mut stage = stage.clone();
            stage.sessions = 1 << step;
            stage.total.transactions[0].count = *rate;
            record.stages.push(stage);
        }
        findings(&record).stages.iter().position(|stage| stage.knee)
    };
    assert_eq!(knee(&[100, 200, 400, 410, 390]), Some(2));
    assert_eq!(knee(&[100, 200, 400]), None);
    // A dip in between is not the end of the growth.
    assert_eq!(knee(&[100, 200, 190, 400, 405]), Some(3));
    assert_eq!(knee(&[400, 300, 200]), Some(0));
    assert_eq!((knee(&[100]), knee(&[0, 0])), (None, None));
}

#[test]
fn a_closed_and_an_open_loop_are_not_steps_of_a_ladder() {
    let side = |load: Load| {
        let mut record = trial(4, 10, |_| 1000);
        record.manifest.load = load;
        vec![findings(&record)]
    };
    let open = |rate_per_s| Load::Open { rate_per_s, arrival: Arrival::Constant, backlog_max: None };
    let words = |one: &[Findings], other: &[Findings]| {
        let text = comparison_text(&compared(one, other));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let both = words(&side(Load::Closed), &side(open(1000.0)));
    let expected = "not comparable: candidate ran with constant 1000 tx/s instead of closed loop: p99 ms ";
    assert!(both.starts_with(expected) && !both.contains("ladder"), "{both}");
    let rates = words(&side(open(500.0)), &side(open(1000.0)));
    assert!(rates.contains("ran with another load") && rates.contains("compares two loads, not"), "{rates}");
}

/// The first line says something, whatever the sides are.
#[test]
fn a_comparison_without_a_verdict_says_why() {
    let of = |task: &str, load: Load, count: u64| {
        let mut record = trial(4, 10, |_| count);
        record.manifest.task = task.into();
        record.manifest.load = load;
        vec![findings(&record)]
    };
    let open = || Load::Open { rate_per_s: 10.0, arrival: Arrival::Constant, backlog_max: None };
    let run = |count| of("run", Load::Closed, count);
    for (one, other, expected) in [
        (
            run(1000),
            of("prepare", Load::Closed, 1000),
            "not comparable: baseline is a run, candidate is a load (assay prepare)",
        ),
        (
            of("check", Load::Closed, 1000),
            run(1000),
            "not comparable: baseline is a check (assay check), candidate is a run",
        ),
        (run(1000), run(0), "no verdict"),
        (
            of("run", open(), 2),
            of("run", open(), 1000),
            "no verdict: baseline has no p99 ms: it needs at least 100 transactions",
        ),
        (
            of("run", open(), 2),
            of("run", open(), 2),
            "no verdict: neither side has a p99 ms: it needs at least 100 transactions",
        ),
    ] {
        let text = comparison_text(&compared(&one, &other));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.starts_with(expected), "{expected}: {text}");
    }
}

#[test]
fn loads_have_rows_wherever_runs_have_transactions() {
    let load = |count| {
        let mut record = trial(4, 10, |_| count);
        record.manifest.task = "prepare".into();
        findings(&record)
    };
    let sides = [1000, 2000].map(|count| vec![load(count); 4]);
    let found = compared(&sides[0], &sides[1]);
    let explanation = explain(&found, &sides[0], &sides[1]).unwrap();
    let texts =
        [comparison_text(&found), explanation_text(&explanation, &found), grid_text(&[found.clone(), found.clone()])];
    for text in texts {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("rows/s") && !words.contains("tps") && !words.contains("tx/s"), "{text}");
        assert!(!words.contains("transaction takes"), "{text}");
    }
}

#[test]
fn sides_that_differ_in_sessions_are_steps_of_a_ladder_and_no_question() {
    let side = |sessions: u32, rate: u64| {
        let mut record = trial(4, 10, |_| rate);
        record.stages[0].sessions = sessions;
        vec![findings(&record)]
    };
    let text = comparison_text(&compared(&side(1, 100), &side(64, 7100)));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("ran with 64 sessions instead of 1: tx/s 100 → 7,100, +7000%"), "{text}");
    assert!(words.contains("two steps of a ladder") && !words.contains("cannot tell whether"), "{text}");
}

#[test]
fn throughput_that_falls_from_trial_to_trial_is_pointed_out() {
    let side = |rates: [u64; 5]| rates.map(|rate| plain(rate, 10_000 / rate)).to_vec();
    let text = comparison_text(&compared(&side([1000, 980, 960, 940, 920]), &side([1000, 1010, 990, 1005, 995])));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("! throughput drifts over the trials of"), "{text}");
    assert!(words.contains("−8.3% from the first to the last"), "{text}");
    assert_eq!(words.matches("drifts").count(), 1, "{text}");
}

/// A trial of a server setting that implies another one, in the order of starts.
fn with_buffers(number: u64, buffers: &str, sessions: u32, rate: u64) -> (String, Findings) {
    let mut record = trial(30, 5, |second| rate + second % 3);
    record.started = Time::from_unix_ms(record.started.unix_ms() + number * 60_000);
    record.manifest.sessions = vec![sessions];
    record.stages[0].sessions = sessions;
    let settings = &mut record.environment.servers[0].settings;
    settings.insert("shared_buffers".into(), buffers.into());
    settings.insert("wal_buffers".into(), format!("{buffers} by 32"));
    (format!("{number}.json.zst"), findings(&record))
}

/// Three rounds of three sizes at two session counts; the machine is slower in the last round.
fn grid() -> Report {
    let mut records = Vec::new();
    for (round, slow) in [(0, 0), (1, 3), (2, 40)] {
        for (at, (buffers, rate)) in [("1GB", 900), ("16MB", 400), ("128MB", 700)].into_iter().enumerate() {
            for (step, sessions) in [4, 16].into_iter().enumerate() {
                let number = round * 6 + at as u64 * 2 + step as u64;
                records.push(with_buffers(number, buffers, sessions, rate * (step as u64 + 1) - slow + number % 5));
            }
        }
    }
    report(records)
}

fn table(rows: &str, columns: Option<&str>, ratio_to: Option<&str>, of: OfTrials) -> ShowAsked {
    let [columns, ratio_to] = [columns, ratio_to].map(|name| name.map(str::to_owned));
    ShowAsked::Table(PivotAsked {
        rows: rows.into(),
        only: Vec::new(),
        columns,
        value: "tps".into(),
        ratio_to,
        of,
        best_of: None,
        fault_above: None,
    })
}

fn drawn(kind: ChartKind, x: Option<&str>, color: Option<&str>, facet: Option<&str>, values: &[&str]) -> ChartAsked {
    let [x, color, facet] = [x, color, facet].map(|name| name.map(str::to_owned));
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    ChartAsked {
        kind,
        x,
        color,
        facet,
        values,
        ratio_to: None,
        references: Vec::new(),
        best_of: None,
        facet_rows: None,
        own_scales: false,
        whole_run: false,
    }
}

fn show(report: &Report, asked: &[ShowAsked], axes: &[&str]) -> Result<Vec<Shown>, NoChart> {
    let axes: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
    assay_report::shown(&Experiment::of_report(report, &axes)?, asked)
}

#[test]
fn records_become_pivot_tables_with_ratios() {
    let asked = [
        table("sessions", Some("shared_buffers"), Some("128MB"), OfTrials::All),
        table("shared_buffers", None, Some("best"), OfTrials::Worst),
    ];
    let shown = show(&grid(), &asked, &["sessions", "shared_buffers"]).unwrap();
    let json: serde_json::Value = serde_json::from_str(&report_json(&grid(), &shown)).unwrap();
    let (asked, cell) = (&json["asked_tables"], &json["asked_tables"][0]["cells"][0]);
    assert_eq!((&asked[0]["rows"], &asked[0]["columns"]), (&"sessions".into(), &"shared_buffers".into()));
    assert_eq!((&cell["row"], &cell["column"], &cell["verdict"]), (&"4".into(), &"16MB".into(), &"less".into()));
    assert!(cell["low"].as_f64() < cell["value"].as_f64() && cell["ratio"].as_f64() < Some(0.6), "{cell}");
    assert_eq!((&asked[1]["cells"][2]["of_best"], &asked[1]["columns"]), (&1.0.into(), &serde_json::Value::Null));
    // Sizes are in numeric order, and an implied setting is not a setting of its own.
    insta::assert_snapshot!(shown_text(&shown, 120), @r"
    tps
    sessions  shared_buffers 16MB  shared_buffers 128MB  shared_buffers 1GB          16MB / 128MB        1GB / 128MB
    4                     389 ±10               688 ±18             887 ±24  0.566 [0.534, 0.599]  1.29 [1.22, 1.37]
    16                    789 ±13             1,388 ±23           1,789 ±29  0.568 [0.549, 0.589]  1.29 [1.24, 1.34]

    Standard deviation between trials of a cell: at most 1.6%.
    Largest drift, last round / first round: 0.934 [0.900, 0.969]; it does not affect the ratios.
    Ratios with 95% confidence intervals that hold for the whole table; `same`: no difference above 3%; `? n rounds`: inconclusive, n rounds in total would find a difference of 3% four times out of five.

    tps, worst trial, sessions=4
    shared_buffers  tps, worst trial
    16MB                    365  42%
    128MB                   662  77%
    1GB                    863  100%

    tps, worst trial, sessions=16
    shared_buffers  tps, worst trial
    16MB                    761  43%
    128MB                 1,363  77%
    1GB                  1,764  100%

    Percentages: of the best in the table.
    No confidence intervals: a single trial stands for its cell.
    ");
    insta::assert_snapshot!(shown_csv(&shown[..1]), @r"
    table,sessions,shared_buffers,value,low,high,of_best,ratio,ratio_low,ratio_high,verdict,difference,difference_low,difference_high,lowest,highest
    ,4,16MB,389.2668562774365,379.2164540561362,399.58362506519114,,0.5657352651821366,0.5343017386803417,0.5990180587119209,less,,,,,
    ,4,128MB,688.072461157452,670.3072574661732,706.3084973791523,,,,,,,,,,
    ,4,1GB,887.4933198465634,864.5793093436555,911.0146220943153,,1.28982537442881,1.2181597693568995,1.3657071415178212,more,,,,,
    ,16,16MB,788.7481578346935,776.0311848633125,801.6735262993346,,0.5684441342760412,0.5486061492140322,0.5889994748614696,less,,,,,
    ,16,128MB,1387.55615596109,1365.1846119437046,1410.2943067929261,,,,,,,,,,
    ,16,1GB,1788.5810462364834,1759.7437848163677,1817.8908694314364,,1.2890152506999788,1.2440302403072596,1.335626950777937,more,,,,,
    ");
}

#[test]
fn the_best_level_of_a_factor_is_chosen_at_each_step_of_a_ladder() {
    let ShowAsked::Table(plain) = table("sessions", None, None, OfTrials::All) else { panic!("it is a table") };
    let best = ShowAsked::Table(PivotAsked { best_of: Some("shared_buffers".into()), ..plain });
    let curves = drawn(ChartKind::Curves, None, None, None, &["tps"]);
    let curve = ShowAsked::Chart(ChartAsked { best_of: Some("shared_buffers".into()), ..curves });
    let text = shown_text(&show(&grid(), &[best, curve], &["sessions", "shared_buffers"]).unwrap(), 80);
    assert!(text.contains("tps, best shared_buffers") && text.contains("Best: 1GB with 4, 16 sessions."), "{text}");
    assert!(text.contains("(band: range, best shared_buffers)") && text.contains("899 [863, 901]"), "{text}");
}

#[test]
fn a_table_may_have_some_levels_only() {
    let ShowAsked::Table(plain) = table("shared_buffers", Some("sessions"), None, OfTrials::All) else {
        panic!("it is a table")
    };
    let few = ShowAsked::Table(PivotAsked { only: vec!["1GB".into(), "16MB".into()], ..plain.clone() });
    let csv = shown_csv(&show(&grid(), &[few], &["sessions", "shared_buffers"]).unwrap());
    let levels: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(levels, ["16MB", "16MB", "1GB", "1GB"], "{csv}");
    // The values are those of the whole table.
    let all = shown_csv(&show(&grid(), &[ShowAsked::Table(plain)], &["sessions", "shared_buffers"]).unwrap());
    let value = |csv: &str| -> f64 {
        let line = csv.lines().find(|line| line.starts_with(",1GB,16,")).unwrap();
        line.split(',').nth(3).unwrap().parse().unwrap()
    };
    assert!((value(&csv) - value(&all)).abs() < 1e-6, "{csv}{all}");
}

#[test]
fn the_seconds_of_a_run_have_a_spread_and_may_be_near_zero() {
    let record = trial(30, 5, |second| if (10..12).contains(&second) { 20 } else { 1000 });
    let name = |value: &str| {
        ShowAsked::Table(PivotAsked {
            rows: "sessions".into(),
            only: Vec::new(),
            columns: None,
            value: value.into(),
            ratio_to: None,
            of: OfTrials::All,
            best_of: None,
            fault_above: None,
        })
    };
    let report = report(vec![("a".into(), findings(&record))]);
    let asked = ["near_zero", "tps_min", "tps_median"].map(name);
    let csv = shown_csv(&show(&report, &asked, &["sessions"]).unwrap());
    let values = csv.lines().filter_map(|line| line.split(',').nth(2)?.parse::<f64>().ok());
    assert_eq!(values.map(f64::round).collect::<Vec<_>>(), [2.0, 20.0, 1000.0], "{csv}");
}

/// Trials of two settings whose throughput was near zero for so many seconds each.
fn near_zero(baseline: &[u64], candidate: &[u64]) -> Report {
    let of = |buffers: &'static str, number: usize, seconds: u64| {
        let mut record = trial(30, 5, |second| if (10..10 + seconds).contains(&second) { 20 } else { 1000 });
        record.started = Time::from_unix_ms(record.started.unix_ms() + number as u64 * 60_000);
        record.environment.servers[0].settings.insert("shared_buffers".into(), buffers.into());
        (format!("{number}.json.zst"), findings(&record))
    };
    let trials = baseline.iter().map(|seconds| ("1GB", *seconds)).chain(candidate.iter().map(|one| ("16MB", *one)));
    report(trials.enumerate().map(|(number, (buffers, seconds))| of(buffers, number, seconds)).collect())
}

#[test]
fn counts_with_zeros_have_intervals_of_their_own_and_are_compared_by_their_difference() {
    let ShowAsked::Table(asked) = table("shared_buffers", None, Some("1GB"), OfTrials::All) else { unreachable!() };
    let asked = [ShowAsked::Table(PivotAsked { value: "near_zero".into(), ..asked })];
    let of = |baseline: &[u64], candidate: &[u64]| {
        let report = near_zero(baseline, candidate);
        let shown = show(&report, &asked, &["shared_buffers"]).unwrap();
        (shown_text(&shown, 100), shown_csv(&shown), report_json(&report, &shown))
    };
    let (text, csv, json) = of(&[0, 0, 0], &[4, 6, 5]);
    let row = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    let one = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(one(&row("1GB")), "1GB 0", "{text}");
    assert_eq!(one(&row("16MB")), "16MB 5.0 ±2.5 +5.00 [+2.52, +7.48]", "{text}");
    assert!(text.contains("difference to 1GB") && !text.contains("ratio"), "{text}");
    let csv = csv.lines().find(|line| line.starts_with(",16MB,")).unwrap();
    assert!(csv.starts_with(",16MB,5,2.5") && csv.contains(",,,,more,5,2.5"), "{csv}");
    assert!(json.contains("\"ratio\":null,\"ratio_low\":null,\"ratio_high\":null,\"difference\":5.0,"), "{json}");
    // Of two trials, the lowest and the highest are known, and nothing else.
    let (text, csv, _) = of(&[1, 3], &[4, 6]);
    assert!(text.contains("2.00 (1.00 … 3.00)") && text.contains("5.00 (4.00 … 6.00)"), "{text}");
    assert!(csv.lines().any(|line| line.starts_with(",16MB,5,,,") && line.ends_with(",4,6")), "{csv}");
}

#[test]
fn a_percentage_is_that_of_the_figures_before_it_or_says_of_what() {
    // Medians 1,200 and 1,600; of the pairs of trials, the median is another one.
    let side = |rates: &[u64]| rates.iter().map(|rate| plain(*rate, 5)).collect::<Vec<Findings>>();
    let [before, after] = [&[1000, 1010, 1200, 1990, 2000], &[1500, 1590, 1600, 3900, 3950]].map(|all| side(all));
    let text = comparison_text(&compared(&before, &after));
    let answer = text.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(answer.contains("tx/s 1,200 → 1,600 (+33.3%), median of pairs +"), "{answer}");
    // The number of trials is that for the difference which the sentence names.
    assert!(
        answer.contains("more trials per side (") && answer.contains("a difference of 3.0% four times"),
        "{answer}"
    );
}

#[test]
fn what_differs_beside_the_factors_is_never_pooled() {
    let (name, mut other) = with_buffers(40, "1GB", 4, 100);
    other.tags.insert("disk".into(), "slow".into());
    let mut records: Vec<(String, Findings)> =
        grid().entries.into_iter().map(|entry| (entry.file, entry.findings)).collect();
    records.push((name, other));
    let report = report(records);
    let bars = ShowAsked::Chart(drawn(ChartKind::Bars, Some("shared_buffers"), Some("sessions"), None, &["tps"]));
    let shown = show(&report, &[bars], &["shared_buffers", "sessions"]).unwrap();
    insta::assert_snapshot!(shown_text(&shown, 120), @r"
    Throughput by shared_buffers (n = 1 to 3 trials, 95% intervals)
    no disk, transactions per second
    shared_buffers                 low  value   high
    16MB             4 sessions    368    389    412  ███████▒
                    16 sessions    765    789    813  ███████████████▒
    128MB            4 sessions    650    688    728  █████████████▒
                    16 sessions  1,347  1,388  1,430  ██████████████████████████▒▒
    1GB              4 sessions    839    887    939  ████████████████▒▒
                    16 sessions  1,736  1,789  1,843  ██████████████████████████████████▒▒

    disk=slow, transactions per second
    shared_buffers              low  value  high
    1GB             4 sessions  101    101   101  ████████████████████████████████████
    ");
    let error = show(&report, &[], &["shared_bufers"]).err().unwrap();
    insta::assert_snapshot!(error, @r#"no record has a setting "shared_bufers"; there are: shared_buffers, wal_buffers, disk, sessions, setting"#);
    let missing = table("shared_buffers", None, Some("2GB"), OfTrials::All);
    insta::assert_snapshot!(show(&report, &[missing], &["shared_buffers"]).err().unwrap(), @r#"no level of shared_buffers to divide by: "2GB"; there are: 16MB, 128MB, 1GB, best"#);
    let unfit = ShowAsked::Chart(drawn(ChartKind::Dots, Some("sessions"), None, None, &["tps"]));
    insta::assert_snapshot!(show(&report, &[unfit], &["setting"]).err().unwrap(), @"dots, lines and stack are drawn over time: name factors as color or facet");
    let unknown = ShowAsked::Chart(drawn(ChartKind::Lines, None, None, None, &["tpmC"]));
    insta::assert_snapshot!(show(&report, &[unknown], &["setting"]).err().unwrap(), @r#"no trial has over time a value "tpmC"; there are: tps, qps, p50, p90, p95, p99, p999, mean, max, errors, retries, failed, backlog, cpus_used, shop.tps"#);
}

#[test]
fn charts_of_settings_share_their_axes_in_every_output() {
    let asked = [
        ShowAsked::Chart(drawn(ChartKind::Boxes, Some("shared_buffers"), None, Some("sessions"), &["tps"])),
        ShowAsked::Chart(drawn(ChartKind::Dots, None, None, Some("shared_buffers"), &["tps", "p99"])),
        ShowAsked::Chart(drawn(ChartKind::Curves, Some("sessions"), Some("shared_buffers"), None, &["p99"])),
    ];
    let report = grid();
    let shown = show(&report, &asked, &["sessions", "shared_buffers"]).unwrap();
    let charts: Vec<&Chart> = shown.iter().filter_map(Shown::chart).collect();
    let names: Vec<&str> = charts.iter().map(|chart| chart.file.as_str()).collect();
    assert_eq!(names, ["boxes-tps", "dots-tps-p99", "curves-p99"]);
    let panels = |chart: &Chart| match &chart.body {
        ChartBody::Panels { across, panels, .. } => {
            (*across, panels.iter().map(|panel| panel.name.clone()).collect::<Vec<_>>())
        }
        _ => panic!("{chart:?}"),
    };
    assert_eq!(panels(charts[0]), (2, vec!["sessions=4".into(), "sessions=16".into()]));
    let device = vec![("device".to_owned(), 2_500.0)];
    let curves = drawn(ChartKind::Curves, Some("sessions"), Some("shared_buffers"), None, &["tps"]);
    let held = ShowAsked::Chart(ChartAsked { references: device, ..curves });
    let text = assay_report::shown_text(&show(&report, &[held], &["sessions", "shared_buffers"]).unwrap(), 80);
    insta::assert_snapshot!(text, @r"
    Throughput by sessions (band: range)
    transactions per second
    sessions  shared_buffers=16MB  shared_buffers=128MB    shared_buffers=1GB  device
    4              401 [365, 403]        698 [662, 705]        899 [863, 901]   2,500
    16             802 [761, 804]  1,399 [1,363, 1,401]  1,800 [1,764, 1,802]   2,500
    ");
    let (across, dots) = panels(charts[1]);
    assert_eq!((across, dots.len(), dots[0].as_str()), (6, 12, "shared_buffers=16MB, sessions=4"));
    let svg = svg(charts[0], &PictureOptions::default());
    assert!(svg.contains(">16MB</text>") && svg.contains(">sessions=16</text>") && !svg.contains("NaN"), "{svg}");
    for chart in &charts {
        assert!(png(chart, &PictureOptions::default()).starts_with(b"\x89PNG"));
    }
    let page = html(&report, &shown);
    assert!(page.contains("id=\"chart-asked-1\"") && page.contains("on-dark") && page.contains("Results"));
    assert!(markdown(&report, &shown).contains("### Throughput by shared\\_buffers"));
    // Every box is in the table, with its number of seconds: three trials of 30.
    let figures = shown_csv(&shown[..1]);
    assert_eq!(figures.lines().filter(|line| line.ends_with(",90")).count(), 6, "{figures}");
}

#[test]
fn a_window_is_as_a_run_of_its_own() {
    let record = trial(120, 5, |second| if second < 60 { 1000 } else { 600 });
    let last = findings_within(&record, Window::Last { ns: 60_000_000_000 }).unwrap();
    let stage = &last.stages[0];
    assert_eq!((stage.total.tps, stage.total.transactions, stage.intervals.len()), (600.0, 36_000, 60));
    assert_eq!(
        stage.window.map(|of| (of.from_ns, of.to_ns, of.of_ns)),
        Some((60_000_000_000, 120_000_000_000, 120_000_000_000))
    );
    assert_eq!((stage.intervals[0].start_ns, stage.throughput.shifts.len()), (0, 0));
    assert!(stage.total.response.p99_ns.is_some() && stage.total.types[0].response == stage.total.response);
    assert_eq!(stage.total.service.count, 0);
    let told = report(vec![("a.json".into(), last.clone())]);
    let throughput = charts(&told).iter().next().unwrap().clone();
    assert_eq!((&*throughput.caption, &*throughput.x.label), ("1:00 to 2:00", "time since the start of the window"));
    assert!(text(&last).contains("Only 1:00 to 2:00 is shown"), "{}", text(&last));
    let told_plainly = text(&last).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told_plainly.contains("records keep them for whole runs only: service times"), "{told_plainly}");
    // One type: its failures and retries are those of all. Of several, records do not say whose they were.
    let mut troubled = record.clone();
    troubled.stages[0].intervals.iter_mut().for_each(|one| (one.failed, one.retries) = (1, 2));
    let within = |record: &Record| findings_within(record, Window::Last { ns: 60_000_000_000 }).unwrap();
    let of_types = |record: &Record| {
        let types = within(record).stages.remove(0).total.types;
        types.into_iter().map(|one| (one.rolled_back, one.failed, one.retries)).collect::<Vec<_>>()
    };
    let mut several = troubled.clone();
    let second = TransactionTally { name: "second".into(), count: 1, ..TransactionTally::default() };
    troubled.stages[0].total.transactions.truncate(1);
    assert_eq!(of_types(&troubled), [(None, Some(60), Some(120))]);
    several.stages[0].total.transactions = vec![troubled.stages[0].total.transactions[0].clone(), second];
    assert_eq!(of_types(&several), [(None, None, None); 2]);
    let total = within(&several).stages.remove(0).total;
    assert_eq!((total.failed, total.retries, total.rolled_back, total.retries_in_doubt), (60, 120, None, None));
    let figures = csv(&within(&several));
    let second = figures.lines().find(|line| line.contains(",second,")).unwrap();
    assert!(second.contains(",second,0,0,,,"), "{figures}");
    let mut with_errors = record.clone();
    for (number, interval) in with_errors.stages[0].intervals.iter_mut().enumerate().skip(59) {
        interval.errors = if number == 70 { 5 } else { 1 };
        let class = if number == 70 { "deadlock" } else { "connection" };
        interval.errors_by_class.insert(class.into(), interval.errors);
    }
    let found = findings_within(&with_errors, Window::Last { ns: 60_000_000_000 }).unwrap();
    let errors: Vec<(&str, u64)> = found.errors.iter().map(|error| (&*error.class, error.count)).collect();
    assert_eq!(errors, [("connection", 59), ("deadlock", 5)]);
    // If the window covers the whole run, only values unknown for parts of a run change.
    let whole = findings_within(&record, Window::Between { from_ns: 0, to_ns: None }).unwrap();
    let all = findings(&record);
    let [part, of_all] = [&whole, &all].map(|of| of.stages[0].total.response);
    assert_eq!((part.count, part.min_ns, part.max_ns), (of_all.count, of_all.min_ns, of_all.max_ns));
    assert_eq!(
        (&whole.stages[0].throughput, &whole.stages[0].intervals),
        (&all.stages[0].throughput, &all.stages[0].intervals)
    );
    let between = |from: u64, to: u64| {
        findings_within(&record, Window::Between { from_ns: from * 1_000_000_000, to_ns: Some(to * 1_000_000_000) })
    };
    assert_eq!(between(50, 70).unwrap().stages[0].total.tps, 800.0);
    assert!(matches!(between(130, 140), Err(NoWindow::Empty { .. })));
    assert_eq!(findings_within(&record, Window::Steady { to_ns: None }), Err(NoWindow::NotSteady));
    let steady = trial(120, 5, |second| if second < 20 { 300 } else { 1000 + second % 7 });
    let found = findings_within(&steady, Window::Steady { to_ns: None }).unwrap();
    assert_eq!(found.stages[0].window.map(|of| of.from_ns), Some(20_000_000_000));
}

/// The names of settings of three trials with this session SQL and these tags.
fn names(sql: [&str; 3], tags: [&str; 3]) -> Vec<String> {
    let records = sql.iter().zip(tags).enumerate().map(|(number, (sql, tag))| {
        let mut record = trial(2, 5, |_| 1000);
        record.manifest.session_sql = vec![(*sql).to_owned()];
        record.environment.servers[0].settings.insert("work_mem".into(), format!("{number}MB"));
        if !tag.is_empty() {
            record.tags.insert("disk".into(), tag.to_owned());
        }
        (format!("{number}.json.zst"), findings(&record))
    });
    let names: Vec<String> = groups(records.collect()).into_iter().map(|group| group.name).collect();
    assert!(names.iter().all(|name| name.chars().count() <= 32), "{names:?}");
    names
}

#[test]
fn settings_are_called_by_what_differs_as_briefly_as_needed() {
    assert_eq!(names(["SET a = 1", "SET a = 2", "SET a = 3"], ["x", "y", "z"]), ["disk=x", "disk=y", "disk=z"]);
    // What all statements have in common is not part of the names.
    let long = |value: &str| format!("SET some_setting_with_a_long_name TO {value}");
    let [one, two, three] = ["on", "off", "auto"].map(long);
    assert_eq!(names([&one, &two, &three], [""; 3]), ["work_mem=0MB, on", "work_mem=1MB, off", "work_mem=2MB, auto"]);
    // What is still too long is left out if something else distinguishes the settings.
    let long = |letter: &str| letter.repeat(40);
    let [one, two, three] = ["a", "b", "c"].map(long);
    assert_eq!(names([&one, &two, &three], [""; 3]), ["work_mem=0MB", "work_mem=1MB", "work_mem=2MB"]);
}

#[test]
fn outages_of_single_servers_are_listed_with_their_errors() {
    let mut record = trial(10, 5, |_| 1000);
    record.manifest.targets = vec!["postgres://one".into(), "postgres://two".into()];
    let second = |number: u64| number * 1_000_000_000;
    for (number, interval) in (0..).zip(&mut record.stages[0].intervals) {
        // The second server is down from 3.2 s to 5.7 s.
        let away = match number {
            3 => (100, Some((second(3), second(3) + 200_000_000))),
            4 => (0, None),
            5 => (200, Some((second(5) + 700_000_000, second(6)))),
            _ => (500, Some((second(number), second(number + 1)))),
        };
        let target = |(transactions, done): (u64, Option<(u64, u64)>)| TargetInterval {
            transactions,
            first_done_ns: done.map(|(first, _)| first),
            last_done_ns: done.map(|(_, last)| last),
            errors_by_class: Default::default(),
        };
        interval.targets = vec![target((500, Some((second(number), second(number + 1))))), target(away)];
        (interval.first_done_ns, interval.last_done_ns) = (Some(second(number)), Some(second(number + 1)));
        if number == 4 {
            interval.targets[1].errors_by_class.insert("connection".into(), 7);
        }
    }
    let found = findings(&record);
    let stage = &found.stages[0];
    assert!(stage.throughput.outages.is_empty());
    let [outage] = &stage.outages[..] else { panic!("{:?}", stage.outages) };
    assert_eq!(
        (outage.target, outage.outage.start_ns, outage.outage.length_ns),
        (Some(1), 3_200_000_000, 2_500_000_000)
    );
    assert_eq!((outage.outage.errors, outage.errors_by_class["connection"]), (7, 7));
    assert_eq!(outage.outage.recovery_ns, Some(300_000_000));
    let text = text(&found);
    assert!(text.contains("1 outage of a single server") && !text.contains("no outages"), "{text}");
    let headline = text.lines().find(|line| line.starts_with("! ")).unwrap();
    assert_eq!(headline, "! postgres://two: no service for 2.50 s from 0:03 (25% of the time)");
    assert!(text.contains("7 connection"), "{text}");
}

#[test]
fn tables_and_charts_of_loads_count_rows_and_those_of_mixed_work_say_only_per_second() {
    let task = |task: &str, name: &str| {
        let mut record = trial(40, 5, |_| 1000);
        record.manifest.task = task.into();
        (name.to_owned(), findings(&record))
    };
    let loads = [task("prepare", "a.json"), task("prepare", "b.json")];
    let of_loads = report(loads.to_vec());
    let text = markdown(&of_loads, &[]);
    assert!(text.contains("rows/s") && text.contains("CPU µs/row") && !text.contains("tx/s"), "{text}");
    assert!(text.contains("1,000 rows per second") && !text.contains("transactions per second"), "{text}");
    let labels = |report: &Report| charts(report).iter().map(|chart| chart.y.label.clone()).collect::<Vec<_>>();
    assert!(labels(&of_loads).contains(&"rows per second".to_owned()), "{:?}", labels(&of_loads));
    let names = ["a.json".to_owned(), "b.json".to_owned()];
    let trials = loads.map(|(_, findings)| findings);
    let summed = summary_text(&summarize(Side { name: "loads", records: &names, trials: &trials }));
    assert!(summed.contains("rows/s") && !summed.contains("tx/s"), "{summed}");
    let mixed = report(vec![task("prepare", "a.json"), task("run", "b.json")]);
    assert!(markdown(&mixed, &[]).contains("| per s"), "{}", markdown(&mixed, &[]));
}

#[test]
fn ports_of_servers_that_were_started_for_their_runs_make_no_settings() {
    let record = |port: u16, parameters: &str, is_started: bool| {
        let url = format!("postgres://app@127.0.0.1:{port}/app{parameters}");
        let mut record = trial(2, 5, |_| 1000);
        record.manifest.command = ["assay", "run", "shop.lua", "--db", &url].map(str::to_owned).to_vec();
        record.manifest.targets = vec![url];
        record.environment.started = is_started.then(StartedServer::default);
        (format!("{port}.json"), findings(&record))
    };
    let settings = |records: [(String, Findings); 2]| report(records.to_vec()).settings;
    assert_eq!(settings([record(5000, "", true), record(5001, "", true)]), 1);
    assert_eq!(settings([record(5000, "", true), record(5001, "?sslmode=require", true)]), 2);
    assert_eq!(settings([record(5000, "", false), record(5001, "", false)]), 2);
}

/// A record of a run on a server that was started for it.
fn started() -> Record {
    let mut record = trial(2, 5, |_| 1000);
    record.manifest.command = ["assay", "run", "--db", "x"].map(str::to_owned).to_vec();
    record.manifest.options.insert("scale".into(), OptionValue::Int(10));
    record.manifest.event_loop = Some(EventLoop { backend: "epoll".into(), batch_max: 64, ..EventLoop::default() });
    record.environment.started = Some(StartedServer {
        identity: vec![
            Attribute::setting("work_mem", Some("4MB".into()), Some("4MB".into()), true),
            Attribute::placement("pinned CPUs", "0-3".into()),
            Attribute::memory("memory limit", 4 << 30),
            Attribute::memory("reserved huge pages", 1 << 30),
            Attribute::new(AttributeScope::Replica, "replicas", "2"),
            Attribute::front(0, 1, "pgbouncer 1.25.0".into()),
            Attribute::new(AttributeScope::Front, "pool_mode", "session"),
            Attribute::restored("reflink"),
            Attribute::new(AttributeScope::Step, "settle", "complete"),
        ],
        ..StartedServer::default()
    });
    record
}

#[test]
fn records_that_differ_in_one_thing_are_never_trials_of_one_setting() {
    fn identity(record: &mut Record) -> &mut Vec<Attribute> {
        &mut record.environment.started.as_mut().unwrap().identity
    }
    type Change = (&'static str, fn(&mut Record));
    let changes: [Change; 46] = [
        ("workload", |record| record.manifest.workload = "other".into()),
        ("task", |record| record.manifest.task = "prepare".into()),
        ("option scale", |record| _ = record.manifest.options.insert("scale".into(), OptionValue::Int(11))),
        ("option scale (asked)", |record| _ = record.manifest.asked.insert("scale".into(), OptionValue::Int(11))),
        ("distribution of rows", |record| record.manifest.distribution = Some("zipfian".into())),
        ("sessions", |record| record.stages[0].sessions += 1),
        ("load", |record| {
            record.manifest.load = Load::Open { rate_per_s: 1e3, arrival: Arrival::Constant, backlog_max: None };
        }),
        ("rate over time", |record| record.manifest.profile = vec![RatePoint::default()]),
        ("trace", |record| record.manifest.trace = Some(Trace::default())),
        ("terminals", |record| record.manifest.terminals = Some(Terminals { number: 5, think_scale: 1.0 })),
        ("time", |record| record.manifest.limit.time_ns = Some(77)),
        ("time", |record| record.manifest.limit.time_ns = record.manifest.limit.time_ns.map(|time| time + 40_000_000)),
        ("transactions", |record| record.manifest.limit.transactions = Some(77)),
        ("warm-up", |record| record.manifest.warmup_ns += 1_000_000_000),
        ("retries", |record| record.manifest.policy.retries += 1),
        ("ignored errors", |record| record.manifest.policy.ignore.push("1213".into())),
        ("on error", |record| record.manifest.policy.on_error = OnError::Stop),
        ("restarts after ignored errors", |record| record.manifest.policy.restart_ignored = true),
        ("time to reconnect", |record| record.manifest.policy.reconnect_ns += 1_000_000_000),
        ("session SQL", |record| record.manifest.session_sql = vec!["SET work_mem = '1MB'".into()]),
        ("prepared statements", |record| record.manifest.prepared ^= true),
        ("workers", |record| record.manifest.workers += 1),
        ("event loop", |record| record.manifest.event_loop.as_mut().unwrap().backend = "io_uring".into()),
        ("batch", |record| record.manifest.event_loop.as_mut().unwrap().batch_max = 1),
        ("tool", |record| record.tool.version = "99".into()),
        ("host", |record| record.environment.host.name = "other".into()),
        ("kernel", |record| record.environment.host.kernel = "Linux 7".into()),
        ("CPU", |record| record.environment.host.cpu_model = "other".into()),
        ("CPUs", |record| record.environment.host.cpus += 1),
        ("memory", |record| record.environment.host.memory_bytes += 1 << 30),
        ("swappiness", |record| _ = record.environment.facts.insert("swappiness".into(), "1".into())),
        ("agents", |record| record.agents = vec![AgentPart::default()]),
        ("tag disk", |record| _ = record.tags.insert("disk".into(), "nvme".into())),
        ("server URL", |record| record.manifest.targets[0] = "postgres://other".into()),
        ("server version", |record| record.environment.servers[0].version = "1".into()),
        ("server TLS", |record| record.environment.servers[0].tls = Some("TLSv1.3".into())),
        ("server fsync", |record| _ = record.environment.servers[0].settings.insert("fsync".into(), "off".into())),
        ("server filesystem", |record| {
            record.environment.servers[0].facts.insert("filesystem".into(), "xfs".into());
        }),
        ("server pinned CPUs", |record| identity(record)[1].in_effect = Some("4-7".into())),
        ("server memory limit", |record| drop(identity(record).remove(2))),
        ("server reserved huge pages", |record| drop(identity(record).remove(3))),
        ("replicas", |record| drop(identity(record).remove(4))),
        ("front", |record| drop(identity(record).remove(5))),
        ("front pool_mode", |record| identity(record)[6].in_effect = Some("transaction".into())),
        ("image", |record| identity(record)[7].in_effect = Some("copy".into())),
        // Something that no field describes.
        ("isolation", |record| {
            record.identity.push(Attribute::new(AttributeScope::Run, "isolation", "serializable"));
        }),
    ];
    // As an earlier version left it, and with its identity written down.
    let of = |change: fn(&mut Record)| {
        let mut record = started();
        change(&mut record);
        let earlier = findings(&record);
        record.identify();
        [earlier, findings(&record)]
    };
    let [base, _] = of(|_| {});
    let settings = |other: &Findings| {
        let both = vec![("a.json".to_owned(), base.clone()), ("b.json".to_owned(), other.clone())];
        groups(both).len()
    };
    let same = of(|record| {
        record.manifest.seed = 1;
        let reached = Attribute::new(AttributeScope::Step, "settle: reached", "12 dirty pages");
        identity(record).push(Attribute { matters: false, ..reached });
        record.environment.servers[0].settings.insert("port".into(), "5433".into());
        record.identity.push(Attribute { matters: false, ..Attribute::unknown(AttributeScope::Server, "port") });
    });
    for same in same {
        assert_eq!(settings(&same), 1);
    }
    for (what, change) in changes {
        for other in of(change) {
            let differences = differences(std::slice::from_ref(&base), std::slice::from_ref(&other));
            let names: Vec<&str> = differences.iter().map(|one| &*one.what).collect();
            assert_eq!((settings(&other), &*names), (2, &[what][..]));
        }
    }
    for not_settled in of(|record| identity(record)[8].in_effect = Some("not complete".into())) {
        assert_eq!(settings(&not_settled), 2);
    }
    let shown = text(&of(|record| identity(record)[0] = asked_for_more())[1]);
    assert!(shown.contains("front pgbouncer 1.25.0") && shown.contains("work_mem 4MB (asked: 8MB)"), "{shown}");
}

fn asked_for_more() -> Attribute {
    Attribute::setting("work_mem", Some("8MB".into()), Some("4MB".into()), false)
}

#[test]
fn an_experiment_whose_trials_are_encrypted_only_in_part_says_so_unless_that_was_asked_for() {
    let notes = |path: &str, encrypted: [bool; 2]| {
        let trial = |cell: usize| {
            let mut record = started();
            record.environment.servers[0].tls = encrypted[cell].then(|| "TLSv1.3".into());
            ExperimentTrial { cell, round: 0, findings: findings(&record), parts: Vec::new(), values: Vec::new() }
        };
        let levels = ["one", "two"].map(|name| Level::new(name.into(), vec![path.into()]));
        let factors = vec![Factor { name: "version".into(), levels: levels.into() }];
        let cell = |level| ExperimentCell { levels: vec![level], price_per_hour: None, failed: 0 };
        let experiment = Experiment::new(factors, [0, 1].map(cell).into(), [0, 1].map(trial).into(), 1);
        let results = LabResults {
            title: "",
            question: "",
            look_at: "",
            measured: 2,
            planned: 2,
            seed: 1,
            hash: "",
            failures: Vec::new(),
            disturbed: (0, 0),
            shown: Vec::new(),
            left_out: Vec::new(),
            experiment: Some(experiment),
        };
        results.text(200).contains("Connections were encrypted in 1 of the 2 measured trials only")
    };
    assert!(notes("server.db.product", [false, true]));
    assert!(!notes("server.db.product", [true, true]) && !notes("server.db.product", [false, false]));
    assert!(!notes("server.db.parameters.ssl-mode", [false, true]));
}

#[test]
fn a_level_shows_what_was_in_effect_and_what_was_asked_for() {
    let trial = |cell: usize, change: &dyn Fn(&mut Record)| {
        let mut record = started();
        change(&mut record);
        ExperimentTrial { cell, round: 0, findings: findings(&record), parts: Vec::new(), values: Vec::new() }
    };
    let with = |one: &Attribute| {
        let one = one.clone();
        move |record: &mut Record| record.environment.started.as_mut().unwrap().identity[0] = one.clone()
    };
    let half = |record: &mut Record| _ = record.manifest.asked.insert("scale".into(), OptionValue::Int(20));
    let level = |name: &str, path: &str| Level::new(name.into(), vec![path.into()]);
    let factor = |name: &str, levels: Vec<Level>| Factor { name: name.into(), levels };
    let memory = "server.db.settings.work_mem";
    let cells = |number: usize| {
        (0..number).map(|level| ExperimentCell { levels: vec![level], price_per_hour: None, failed: 0 }).collect()
    };
    let asked = |factor: &str, base: &str| {
        [ShowAsked::Table(PivotAsked {
            rows: factor.into(),
            only: Vec::new(),
            columns: None,
            value: "tps".into(),
            ratio_to: Some(base.into()),
            of: OfTrials::All,
            best_of: None,
            fault_above: None,
        })]
    };
    let levels = vec![level("4MB", memory), level("8MB", memory), level("much", memory)];
    let trials = vec![trial(0, &|_| {}), trial(1, &with(&asked_for_more())), trial(2, &with(&asked_for_more()))];
    let experiment = Experiment::new(vec![factor("memory", levels)], cells(3), trials, 1);
    let table = shown_text(&assay_report::shown(&experiment, &asked("memory", "8MB")).unwrap(), 80);
    assert!(table.contains("4MB (asked: 8MB)") && table.contains("much (work_mem 4MB, asked: 8MB)"), "{table}");
    let levels = vec![level("10", "run.scale"), level("20", "run.scale")];
    let trials = vec![trial(0, &|_| {}), trial(1, &half)];
    let experiment = Experiment::new(vec![factor("scale", levels)], cells(2), trials, 1);
    let table = shown_text(&assay_report::shown(&experiment, &asked("scale", "10")).unwrap(), 80);
    assert!(table.contains("10 (asked: 20)"), "{table}");
    // Records by a setting of theirs.
    let mut other = started();
    with(&asked_for_more())(&mut other);
    other.environment.servers[0].settings.insert("work_mem".into(), "4MB".into());
    let report = report(vec![("a.json".into(), findings(&other)), ("b.json".into(), findings(&started()))]);
    let table = shown_text(&show(&report, &asked("work_mem", "none"), &["work_mem"]).unwrap(), 80);
    assert!(table.contains("4MB (asked: 8MB)"), "{table}");
}

#[test]
fn a_value_that_only_some_levels_have_gets_no_empty_panels_for_the_others() {
    let step = ["checkpoint", "stop"];
    let trial = |cell: usize| ExperimentTrial {
        cell,
        round: 0,
        findings: findings(&started()),
        parts: Vec::new(),
        values: vec![(step[cell % 2].into(), 1.0 + cell as f64)],
    };
    let levels = |names: [&str; 2]| names.map(|name| Level::new(name.into(), vec!["run.tag".into()])).to_vec();
    let factors = vec![
        Factor { name: "cache".into(), levels: levels(["small", "large"]) },
        Factor { name: "end".into(), levels: levels(step) },
    ];
    let cell = |at: usize| ExperimentCell { levels: vec![at / 2, at % 2], price_per_hour: None, failed: 0 };
    let experiment = Experiment::new(factors, (0..4).map(cell).collect(), (0..4).map(trial).collect(), 1);
    let bars = ShowAsked::Chart(drawn(ChartKind::Bars, Some("cache"), None, Some("end"), &step));
    insta::assert_snapshot!(shown_text(&assay_report::shown(&experiment, &[bars]).unwrap(), 80), @r"
    Checkpoint, stop by cache (1 trial each)
    end=checkpoint, checkpoint
    cache   low  value  high
    small  1.00   1.00  1.00  ████████████
    large  3.00   3.00  3.00  ████████████████████████████████████

    end=stop, stop
    cache   low  value  high
    small  2.00   2.00  2.00  ██████████████████
    large  4.00   4.00  4.00  ████████████████████████████████████
    ");
}

#[test]
fn a_comparison_of_figures_is_that_of_findings() {
    let mut records: Vec<Record> = (1..=6).map(|rate| trial(20, 30, move |second| 100 * rate + second)).collect();
    records.extend([example(), example_with_telemetry()]);
    for baseline in &records {
        for candidate in &records {
            let whole = compared(&[findings(baseline)], &[findings(candidate)]);
            let without = |record: &Record| {
                let mut record = record.clone();
                for interval in record.stages.iter_mut().flat_map(|stage| &mut stage.intervals) {
                    let Latencies { count, min_ns, max_ns, sum_ns, .. } = interval.response;
                    interval.response = Latencies::of(count, (min_ns, max_ns), sum_ns, None);
                }
                figures(&record)
            };
            let found = compared(&[without(baseline)], &[without(candidate)]);
            assert_eq!(json(&found), json(&whole));
            assert_eq!(comparison_text(&found), comparison_text(&whole));
        }
    }
    assert!(figures(&records[7]).stages.iter().all(|stage| stage.intervals.is_empty()));
}
