//! Watching a run while it goes on: notes, the record as it grows, the page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use assay_record::{Follow, Record};
use nix::sys::signal::Signal;
use testkit::{Browser, BrowserView};

use crate::common::{Folder, ONE_TABLE};

#[test]
fn a_note_is_in_the_record_of_its_run() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let mut run = folder.start("run ./one_table.lua --time 0 --interval 100ms --record r.json.zst");
    run.wait_for_interval(1);
    let noted = folder.expect(&format!("note --run {} 'dropped the' index", run.pid()), 0);
    assert!(noted.stderr.starts_with("noted in the run of process"), "{}", noted.shown());
    run.signal(Signal::SIGINT);
    assert_eq!(run.finish().code, Some(0));
    let record = Record::read(&folder.path().join("r.json.zst")).unwrap();
    assert_eq!(record.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(), ["dropped the index"]);
    let shown = folder.expect("show r.json.zst", 0).stdout;
    assert!(shown.contains("notes: 0:0") && shown.contains("dropped the index"), "{shown}");
    // On the axis of every chart over time.
    folder.expect("report r.json.zst --json r.json", 0);
    let json = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let marked = json["entries"][0]["charts"].as_array().unwrap().iter();
    let marked: Vec<&str> = marked
        .filter(|chart| chart["marks"].as_array().unwrap().iter().any(|mark| mark["text"] == "dropped the index"))
        .filter_map(|chart| chart["id"].as_str())
        .collect();
    assert!(marked.starts_with(&["throughput-1", "latency-1", "heat-1"]), "{marked:?}");
}

#[test]
fn a_note_without_a_run_and_an_empty_one_are_refused() {
    let folder = Folder::new();
    let refused = folder.expect("note --run 999999999 hello", 2).complaint();
    assert!(refused.contains("no run of process 999999999 is in progress"), "{refused}");
    let refused = folder.expect("note ' '", 2).complaint();
    assert!(refused.contains("the note is empty"), "{refused}");
    let refused = folder.expect("top", 2).complaint();
    assert!(refused.contains("needs a terminal"), "{refused}");
}

#[test]
fn a_record_grows_with_every_second() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let mut run = folder.start("run ./one_table.lua --time 0 --record r.json.zst");
    run.wait_for_interval(1);
    run.wait_for_interval(1);
    let mut follow = Follow::open(&folder.path().join("r.json.zst")).unwrap();
    let mut intervals = 0;
    while intervals < 2 {
        let news = follow.news().unwrap();
        intervals += news.iter().filter(|event| matches!(event, assay_record::Event::Interval(_))).count();
        std::thread::yield_now();
    }
    run.signal(Signal::SIGINT);
    assert_eq!(run.finish().code, Some(0));
}

fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_page_of_a_run_grows_and_ends_as_its_report() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let port = testkit::free_port().unwrap();
    let line = format!("run ./one_table.lua --time 0 --interval 100ms --record r.json.zst --serve=127.0.0.1:{port}");
    let mut run = folder.start(&line);
    run.wait_for_interval(1);
    let page = ask(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("connect-src 'self'"), "{page}");
    assert!(ask(port, "GET /else HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask(port, "POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    // A viewer that connects and reads nothing costs nothing.
    let mut slow = TcpStream::connect(("127.0.0.1", port)).unwrap();
    slow.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut viewer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    viewer.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(viewer).lines().map(Result::unwrap).filter(|line| line.starts_with("data: "));
    let versions: Vec<u64> = (0..2).map(|_| lines.next().unwrap()["data: ".len()..].parse().unwrap()).collect();
    assert!(versions[0] < versions[1], "{versions:?}");
    let report = ask(port, "GET /report HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(report.contains("one_table") && report.contains("throughput-1"), "{report}");
    run.signal(Signal::SIGINT);
    // The last version, while the process waits for its viewers.
    let last = lines.last().unwrap();
    assert!(last["data: ".len()..].parse::<u64>().unwrap() > versions[1]);
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_page_elsewhere_has_a_token() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let port = testkit::free_port().unwrap();
    let mut run = folder.start(&format!("run ./one_table.lua --time 0 --interval 100ms --serve=0.0.0.0:{port}"));
    run.wait_for(&format!("page: http://0.0.0.0:{port}/"));
    assert!(ask(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask(port, "GET /report HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 404"));
    run.wait_for_interval(1);
    run.signal(Signal::SIGINT);
    let ran = run.finish();
    let token = ran.stderr.split(&format!("page: http://0.0.0.0:{port}/")).nth(1).unwrap().lines().next().unwrap();
    assert!(token.len() == 33 && token.ends_with('/'), "{token}");
}

#[test]
fn a_browser_shows_the_numbers_of_the_finished_run() {
    if !Browser::present() {
        return;
    }
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let port = testkit::free_port().unwrap();
    let line = format!("run ./one_table.lua --time 0 --interval 100ms --record r.json.zst --serve=127.0.0.1:{port}");
    let mut run = folder.start(&line);
    run.wait_for_interval(1);
    let mut browser = Browser::start().unwrap();
    let view = BrowserView { width: 1400, height: 900, dark: false };
    browser.open_url(&format!("http://127.0.0.1:{port}/"), view).unwrap();
    let mut wait_until = |what: &str| {
        let wait = format!(
            "new Promise(done => {{ const look = () => {{ const frame = document.querySelector('iframe:not(.next)'); \
             if (frame && ({what})) done(frame.contentDocument.querySelector('header').textContent); \
             else setTimeout(look, 50); }}; look(); }})"
        );
        browser.evaluate(&wait).unwrap().as_str().unwrap().to_owned()
    };
    let first = wait_until("frame.contentDocument.querySelectorAll('canvas').length > 1");
    let first_version = "frame.dataset.version !== '0'";
    wait_until(first_version);
    run.signal(Signal::SIGINT);
    let last = wait_until("document.getElementById('state').textContent === 'the run is over'");
    assert_eq!(run.finish().code, Some(0));
    assert_ne!(first, last);
    let findings = folder.expect("show r.json.zst --format json", 0).findings();
    let transactions = findings["stages"][0]["total"]["transactions"].as_u64().unwrap();
    folder.expect("report r.json.zst --html r.html", 0);
    let html = std::fs::read_to_string(folder.path().join("r.html")).unwrap();
    let heading = html.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap();
    assert!(last.contains(heading), "{last} has not {heading} of {transactions} transactions");
}
