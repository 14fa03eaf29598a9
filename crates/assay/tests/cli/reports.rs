//! `assay report` and live metrics, as users see them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::common::{Folder, ONE_TABLE};
use insta::assert_snapshot;
use testkit::Mounted;

#[test]
fn a_report_is_written_in_every_form_asked_for() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.expect("run ./one_table.lua --time 500ms --interval 100ms --record r.json.zst", 0);
    let line = "report r.json.zst --html r.html --markdown r.md --csv r.csv --json r.json --prometheus r.prom --otava r.otava \
        --svg pictures --png pictures";
    let ran = folder.expect(line, 0);
    assert_eq!(ran.stdout, "");
    assert_snapshot!(ran.stderr, @r"
    wrote r.html
    wrote r.md
    wrote r.csv
    wrote r.json
    wrote r.prom
    wrote r.otava
    wrote pictures/one_table-throughput.svg
    wrote pictures/one_table-latency.svg
    wrote pictures/one_table-heat.svg
    wrote pictures/one_table-percentiles.svg
    wrote pictures/one_table-boxes.svg
    wrote pictures/one_table-throughput.png
    wrote pictures/one_table-latency.png
    wrote pictures/one_table-heat.png
    wrote pictures/one_table-percentiles.png
    wrote pictures/one_table-boxes.png
    ");
    let content = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(content("r.html").starts_with(b"<!DOCTYPE html>"));
    assert!(content("pictures/one_table-heat.png").starts_with(b"\x89PNG"));
    folder.expect("report r.json.zst --html page.html --address https://host/bench/", 0);
    let page = String::from_utf8(content("page.html")).unwrap();
    assert!(
        page.contains("<meta property=\"og:image\" content=\"https://host/bench/page.png\">"),
        "no picture in its head"
    );
    assert!(content("page.png").starts_with(b"\x89PNG"));
    folder.expect("report r.json.zst --html - --address https://host/bench/", 2);
    // A record stays what it is.
    let ran = folder.expect("report r.json.zst --html r.json.zst", 5);
    assert!(ran.stderr.contains("it is a record, which is not replaced"), "{}", ran.shown());
    folder.expect("report r.json.zst --svg own --title Mine --size 700x400 --theme dark", 0);
    let picture = String::from_utf8(content("own/one_table-heat.svg")).unwrap();
    assert!(picture.contains(">Mine</text>") && picture.contains("width=\"700\" height=\"400\""), "{picture}");
    let stdout = folder.expect("report r.json.zst --markdown -", 0).stdout;
    // Both contain the temporary database's name; only one is redacted.
    assert_eq!(stdout.lines().count(), String::from_utf8(content("r.md")).unwrap().lines().count());
    assert!(stdout.starts_with("# one\\_table on SQLite"), "{stdout}");
    // Without any output option it prints what `show` prints.
    let text = folder.expect("report r.json.zst", 0).stdout;
    assert_eq!(text.trim_end(), folder.expect("show r.json.zst", 0).stdout.trim_end());
}

#[test]
fn a_public_report_names_no_place_and_notes_are_in_every_chart_over_time() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.write("one.sql", "select 1");
    folder.expect(
        "run ./one_table.lua --db sqlite:secret.db --time 1s --interval 100ms --record r.json.zst --prepare",
        0,
    );
    let outputs = "--html p.html --markdown p.md --csv p.csv --json p.json --telemetry-csv t.csv";
    folder.expect(&format!("report r.json.zst --public --mark 0:00=begin {outputs}"), 0);
    let place = folder.path().to_string_lossy().into_owned();
    for name in ["p.html", "p.md", "p.csv", "p.json", "t.csv"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        for hidden in [place.as_str(), "secret.db", "kernel command line", "/proc/"] {
            assert!(!text.contains(hidden), "{name} has {hidden}");
        }
    }
    let page = std::fs::read_to_string(folder.path().join("p.html")).unwrap();
    assert!(page.contains("<h1>") && page.contains(" tx/s, p99 "), "the answer is the heading");
    assert!(page.matches("\"text\":\"begin\"").count() >= 3, "throughput, latency, heat map");
    // A file with a statement is read.
    let ran = folder.expect("sql --db sqlite:secret.db one.sql --runs 2", 0);
    assert!(ran.stdout.contains("select 1"), "{}", ran.stdout);
}

#[test]
fn a_full_disk_leaves_the_old_file_or_none() {
    let Some(disk) = Mounted::new(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"]) else { return };
    let (folder, disk) = (Folder::new(), disk.path());
    folder.write("one_table.lua", ONE_TABLE);
    // Ten intervals: their charts need more than is left, which one of five transactions might not.
    folder.expect("run ./one_table.lua --time 1s --interval 100ms --record a.json", 0);
    std::fs::write(disk.join("old.html"), "old").unwrap();
    std::fs::write(disk.join("filler"), vec![1; 240 << 10]).unwrap();
    let there = || -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let at = disk.display();
    let mut lines = vec![format!("report a.json --html {at}/old.html"), format!("manual {at}")];
    for (option, name) in [("--html", "new.html"), ("--png", ""), ("--svg", "")] {
        lines.push(format!("report a.json {option} {at}/{name} --size 4000x4000"));
    }
    for line in lines {
        let ran = folder.expect(&line, 5);
        assert!(ran.stderr.contains("No space left on device"), "{line}: {}", ran.shown());
        let left: Vec<String> = there().into_iter().filter(|name| !name.ends_with(".svg")).collect();
        assert_eq!(left, ["filler", "old.html"], "{line}");
        assert!(there().iter().all(|name| std::fs::metadata(disk.join(name)).unwrap().len() > 0), "{line}");
    }
    assert_eq!(std::fs::read_to_string(disk.join("old.html")).unwrap(), "old");
}

#[test]
fn what_cannot_be_reported_is_said_and_nothing_is_written() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.expect("run ./one_table.lua --transactions 5 --sessions 1 --record a.json", 0);
    folder.expect("run ./one_table.lua --transactions 5 --sessions 2 --record b.json", 0);
    assert_snapshot!(folder.run("report a.json b.json --html x.html --otava x.csv").shown(), @r"
    exit 2
    --- stderr
    error: a time series needs records of the same workload: a.json ran one_table with 1 session, b.json ran one_table with 2 sessions
    ");
    assert_snapshot!(folder.run("report a.json absent.json --html x.html").shown(), @r"
    exit 5
    --- stderr
    error: cannot read record absent.json
      No such file or directory (os error 2)
    ");
    assert_snapshot!(folder.run("report a.json --html no/x.html").shown(), @r"
    exit 5
    --- stderr
    error: cannot write no/x.html
      --html: there is no folder no
    ");
    assert_snapshot!(folder.run("report a.json --svg b.json").shown(), @r"
    exit 5
    --- stderr
    error: cannot write b.json
      --svg: b.json is not a folder

    hint: --svg needs a folder: it writes one file per chart
    ");
    assert_snapshot!(folder.run("report a.json --svg x --size 100x9").shown(), @r"
    exit 2
    --- stderr
    error: --size 100x9: expected two numbers from 320 to 8000, such as 1200x600
    ");
    assert_eq!(folder.names(), ["a.json", "b.json", "one_table.lua"]);
}

#[test]
fn metrics_are_served_while_a_run_goes_on() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let port = testkit::free_port().unwrap();
    let mut run =
        folder.start(&format!("run ./one_table.lua --time 0 --interval 100ms --metrics-listen 127.0.0.1:{port}"));
    run.wait_for_interval(1);
    run.wait_for_interval(1);
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{answer}");
    let transactions =
        answer.lines().find_map(|line| line.strip_prefix("assay_transactions_total{type=\"one_table\"} "));
    assert!(transactions.unwrap().parse::<u64>().unwrap() > 0, "{answer}");
    assert!(
        answer.contains("\nassay_response_seconds_bucket{le=\"+Inf\"} ") && answer.contains("\nassay_sessions 1\n")
    );
    let (_, text) = answer.split_once("\r\n\r\n").unwrap();
    let read = testkit::metric_families(text, testkit::Exposition::Text).unwrap();
    assert!(read.iter().any(|family| family.starts_with("assay_response_seconds histogram ")), "{read:#?}");
    assert!(ask("GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    run.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_port_in_use_is_said_before_anything_runs() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let shown = folder.run(&format!("run ./one_table.lua --quiet --metrics-listen 127.0.0.1:{port}")).shown();
    assert_snapshot!(shown.replace(&port.to_string(), "[PORT]"), @r"
    exit 5
    --- stderr
    error: cannot serve metrics at 127.0.0.1:[PORT]
      Address already in use (os error 98)

    hint: another program is listening there: choose another port
    ");
    assert_eq!(folder.names(), ["one_table.lua"]);
    assert_snapshot!(folder.run("run ./one_table.lua --metrics-listen nowhere").shown(), @r"
    exit 2
    --- stderr
    error: --metrics-listen nowhere: expected an IP address and a port up to 65535, such as 127.0.0.1:9200
    ");
}
