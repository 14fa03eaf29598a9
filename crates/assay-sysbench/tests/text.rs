//! Text in, text out: from a command line to the settings of a run, and from its counters to the report.

use assay_options::{OptionDeclaration, OptionKind, OptionValue};
use assay_sysbench::{
    Arguments, CoreSettings, Histogram, Log, LogLevel, PeriodStat, ReportLayout, SessionStat, Shutdown, Style,
    config_file, help, report, settings,
};

/// What `sysbench WORDS` would run with, or the message with which it is refused.
fn read(words: &str) -> Result<(Arguments, CoreSettings), String> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let file = |path: &str| Err(format!("{path} is not there"));
    let arguments = Arguments::parse(&words, &file).map_err(|error| error.to_string())?;
    let mut options = arguments.complete(Some(&[])).map_err(|error| error.to_string())?;
    settings::replace_old_names(&mut options);
    let settings = settings::settings(&options).map_err(|refusal| refusal.message)?;
    Ok((arguments, settings))
}

#[test]
fn a_command_line_becomes_what_a_run_needs() {
    let (arguments, settings) = read(
        "oltp_read_only --threads=16 --time=60 --events=0 --rate=500 --report-interval=10 --percentile=99 \
         --warmup-time=5 --report-checkpoints=30,10 --histogram=on --forced-shutdown=10% --verbosity=5 run",
    )
    .unwrap();
    assert_eq!((arguments.test.as_deref(), arguments.command.as_deref()), (Some("oltp_read_only"), Some("run")));
    let expected = CoreSettings {
        threads: 16,
        events: None,
        time: Some(60),
        warmup: 5,
        shutdown: Shutdown::After(6),
        rate: 500,
        report_interval: 10,
        checkpoints: vec![10, 30],
        percentile: 99,
        histogram: true,
        verbosity: 5,
        layout: ReportLayout::Released,
        ..settings.clone()
    };
    assert_eq!(settings, expected);
}

#[test]
fn the_defaults_are_those_of_sysbench() {
    let (_, settings) = read("x run").unwrap();
    let found = (settings.threads, settings.events, settings.time, settings.percentile, settings.report_interval);
    assert_eq!(found, (1, None, Some(10), 95, 0));
    assert_eq!((settings.rate, settings.shutdown, settings.debug), (0, Shutdown::Off, false));
}

#[test]
fn what_cannot_be_meant_is_refused_in_the_words_that_scripts_know() {
    for (words, message) in [
        ("x --threads=two run", "Invalid value for the 'threads' option: 'two'"),
        ("x --no-such=1 run", "invalid option: --no-such=1"),
        ("x run again", "Unrecognized command line argument: again"),
        ("x --report-checkpoints=1,b run", "Invalid value for --report-checkpoints: 'b'"),
        ("x --report-layout=2.0 run", "Invalid value for --report-layout: '2.0'"),
    ] {
        assert_eq!(read(words).map(|_| ()), Err(message.to_owned()), "{words}");
    }
}

#[test]
fn the_reports_of_both_versions_say_the_same_numbers() {
    let stat = PeriodStat {
        threads_running: 4,
        time_interval: 10.0,
        time_total: 10.0,
        latency_pct: 0.0035,
        events: 1000,
        reads: 14_000,
        writes: 4000,
        other: 2000,
        errors: 3,
        reconnects: 0,
        queue_length: 0,
        concurrency: 0,
        latency_min: 0.001,
        latency_max: 0.009,
        latency_avg: 0.002,
        latency_sum: 2.0,
    };
    let shares = [SessionStat { events: 500, busy: 1.0, min: 0.001, max: 0.009 }; 2];
    let text = |layout| {
        let style = Style { sql: true, layout, percentile: 99, rate: false, by_session: false, counted: false };
        report::cumulative(&mut Log::new(3), &stat, &shares, None, style)
    };
    let (released, master) = (text(ReportLayout::Released), text(ReportLayout::Master));
    assert!(
        released.contains("General statistics:\n    total time:                          10.0000s\n"),
        "{released}"
    );
    assert!(master.contains("Throughput:\n"), "{master}");
    for line in [
        "        total:                           20000\n",
        "    transactions:                        1000   (100.00 per sec.)\n",
        "    ignored errors:                      3      (0.30 per sec.)\n",
        "         99th percentile:                        3.50\n",
        "    events (avg/stddev):           500.0000/0.00\n",
    ] {
        assert!(released.contains(line) && master.contains(line), "{line}{released}{master}");
    }
}

#[test]
fn a_distribution_is_drawn_with_a_line_for_each_bucket_that_has_something() {
    let mut histogram = Histogram::of_latencies();
    histogram.add(1.0, 30);
    histogram.add(2.0, 10);
    assert_eq!(histogram.count(), 40);
    let picture = histogram.picture();
    let drawn: Vec<&str> = picture.lines().filter(|line| line.contains('*')).collect();
    assert_eq!(drawn.len(), 2, "{picture}");
    let stars = |line: &str| line.matches('*').count();
    assert_eq!(stars(drawn[0]), 3 * stars(drawn[1]) + stars(drawn[0]) % 3, "{picture}");
    assert!(report::distribution(&mut Log::new(3), &histogram).contains(picture.trim_end()));
}

#[test]
fn a_level_that_is_not_wanted_is_not_said() {
    let mut log = Log::new(2);
    assert_eq!(log.text(LogLevel::Debug, "x"), "");
    assert_eq!(log.text(LogLevel::Fatal, "gone"), "FATAL: gone\n");
}

#[test]
fn a_file_of_options_has_a_pair_for_each_line_that_is_no_comment() {
    let pairs = config_file::pairs("# a comment\nthreads=4\n\ntable-size=7 # rows\n");
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    assert_eq!(pairs, [("threads", "4"), ("table-size", "7")]);
}

#[test]
fn the_options_of_a_script_are_listed_with_what_they_have_when_nothing_is_said() {
    let option = |name: &str, kind, default| OptionDeclaration {
        name: name.to_owned(),
        description: "What it is".to_owned(),
        kind,
        choices: Vec::new(),
        unused: false,
        bounds: assay_options::Bounds::default(),
        default,
    };
    let text = help::declared(&[
        option("tables", OptionKind::Int, OptionValue::Number(1.0)),
        option("auto_inc", OptionKind::Bool, OptionValue::Bool(true)),
    ]);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("--")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("--tables=N") && lines[0].ends_with("What it is [1]"), "{text}");
    assert!(lines[1].starts_with("--auto_inc[=on|off]") && lines[1].ends_with("What it is [on]"), "{text}");
}
