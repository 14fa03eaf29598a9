//! A whole run of a bundled workload against a simulated PostgreSQL server: command line, plan, script, protocol,
//! engine and record, with a virtual network and clock.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use assay::command_line;
use assay_engine::{Control, Notice, Observer, Outcome, Stage, run_inline};
use assay_io::sim::{Network, NetworkSettings, PeerId, ScriptedServer, ServerOut};
use assay_record::{Search, Status};
use assay_report::{CapacityFindings, Promise, SearchState};
use assay_run::{plan, record_of};
use assay_seam::Nanos;

/// Answers as a PostgreSQL server does (protocol 3.0) without storing data: SELECT returns one row, everything else
/// changes one. One UPDATE in a hundred deadlocks, and the whole server stalls once.
struct Postgres {
    statements: Rc<Cell<u64>>,
    stall: Option<Nanos>,
    /// One request after the other, with this service time; when the last one will be done.
    queue: Option<(Nanos, Nanos)>,
    prepared: Vec<Prepared>,
    bound: Kind,
}

struct Prepared {
    peer: PeerId,
    name: Vec<u8>,
    kind: Kind,
    parameters: u16,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Select,
    Write,
    Begin,
    Commit,
}

impl Kind {
    fn of(sql: &[u8]) -> Kind {
        match sql.get(..6) {
            Some(b"SELECT") => Kind::Select,
            Some(b"BEGIN") => Kind::Begin,
            Some(b"COMMIT") | Some(b"ROLLBA") => Kind::Commit,
            _ if sql.starts_with(b"BEGIN") => Kind::Begin,
            _ => Kind::Write,
        }
    }
}

fn message(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

const ROW_DESCRIPTION: &[u8] = b"\0\x01c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
const DATA_ROW: &[u8] = b"\0\x01\0\0\0\x05hello";
const DEADLOCK: &[u8] = b"SERROR\0VERROR\0C40P01\0Mdeadlock detected\0\0";

impl Postgres {
    fn run(&mut self, kind: Kind, replies: &mut Vec<u8>) -> bool {
        let number = self.statements.get() + 1;
        self.statements.set(number);
        match kind {
            Kind::Select => {
                message(replies, b'D', DATA_ROW);
                message(replies, b'C', b"SELECT 1\0");
            }
            Kind::Write if number.is_multiple_of(100) => {
                message(replies, b'E', DEADLOCK);
                return false;
            }
            Kind::Write => message(replies, b'C', b"UPDATE 1\0"),
            Kind::Begin => message(replies, b'C', b"BEGIN\0"),
            Kind::Commit => message(replies, b'C', b"COMMIT\0"),
        }
        true
    }

    fn answer(&mut self, peer: PeerId, tag: u8, body: &[u8], replies: &mut Vec<u8>) {
        let text = |from: &[u8]| from.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        match tag {
            b'Q' => {
                let kind = Kind::of(body);
                if kind == Kind::Select {
                    message(replies, b'T', ROW_DESCRIPTION);
                }
                self.run(kind, replies);
                message(replies, b'Z', b"I");
            }
            b'P' => {
                let name = text(body);
                let sql = &body[name.len() + 1..];
                let parameters = sql.iter().filter(|byte| **byte == b'$').count() as u16;
                self.prepared.push(Prepared { peer, name, kind: Kind::of(sql), parameters });
                message(replies, b'1', b"");
            }
            b'D' => {
                let name = text(&body[1..]);
                let prepared = self.prepared(peer, &name);
                let mut parameters = prepared.parameters.to_be_bytes().to_vec();
                parameters.extend(std::iter::repeat_n([0, 0, 0, 23], prepared.parameters.into()).flatten());
                message(replies, b't', &parameters);
                match prepared.kind {
                    Kind::Select => message(replies, b'T', ROW_DESCRIPTION),
                    _ => message(replies, b'n', b""),
                }
            }
            b'B' => {
                let portal = text(body);
                let name = text(&body[portal.len() + 1..]);
                self.bound = self.prepared(peer, &name).kind;
                message(replies, b'2', b"");
            }
            b'E' => {
                let kind = self.bound;
                self.run(kind, replies);
            }
            b'S' => message(replies, b'Z', b"I"),
            b'C' => message(replies, b'3', b""),
            _ => {}
        }
    }

    fn prepared(&self, peer: PeerId, name: &[u8]) -> &Prepared {
        let known = |known: &&Prepared| known.peer == peer && known.name == name;
        self.prepared.iter().rev().find(known).expect("only prepared statements are run")
    }
}

impl ScriptedServer for Postgres {
    fn received(&mut self, now: Nanos, peer: PeerId, bytes: &[u8], out: &mut ServerOut) {
        let mut replies = Vec::new();
        if bytes.get(4..8) == Some(&196_608u32.to_be_bytes()) {
            message(&mut replies, b'R', &[0; 4]);
            message(&mut replies, b'S', b"server_version\x0017.0 (simulated)\0");
            message(&mut replies, b'K', &[0, 0, 0, peer.0 as u8, 0, 0, 0, 1]);
            message(&mut replies, b'Z', b"I");
        } else {
            let mut rest = bytes;
            while let [tag, a, b, c, d, ..] = *rest {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                let (this, next) = rest.split_at(length + 1);
                self.answer(peer, tag, &this[5..], &mut replies);
                rest = next;
            }
        }
        if self.stall.is_some_and(|at| now >= at) {
            self.stall = None;
            out.stall(Nanos::from_millis(300));
        }
        if replies.is_empty() {
            return;
        }
        let service = match &mut self.queue {
            None => Nanos::from_micros(50),
            Some((service, free)) => {
                *free = now.max(*free) + *service;
                *free - now
            }
        };
        out.after(service).reply(&replies);
    }
}

struct Nobody;

impl Observer for Nobody {
    fn notice(&mut self, _notice: Notice<'_>) {}
}

/// Runs a command line in the virtual world; returns the record's bytes, and the statements that the server received.
fn simulate(folder: &Path, seed: &str, extra: &[&str]) -> (Vec<u8>, u64) {
    let fixed = [
        "assay",
        "run",
        "oltp_read_write",
        "--db",
        "postgres://app@10.0.0.1:5432/bench?sslmode=disable",
        "--sessions",
        "2,5",
        "--time",
        "2s",
        "--interval",
        "500ms",
        "--seed",
        seed,
        "--tables",
        "3",
        "--workers",
        "1",
    ];
    let words = fixed.iter().chain(extra).map(Into::into);
    let invocation = command_line::parse(words).expect("the command line is right").expect("it runs something");
    let assignment = invocation.assignment.expect("it names a workload");
    let plan = plan::of_run(&assignment, &plan::ProcessOptions::default(), &assignment.urls()).expect("a plan");

    let statements = Rc::new(Cell::new(0));
    let settings = NetworkSettings {
        jitter: Nanos::from_micros(40),
        split_max: 7,
        event_cost: Nanos(900),
        ..NetworkSettings::default()
    };
    let mut network = Network::new(settings);
    let server = Postgres {
        statements: statements.clone(),
        stall: Some(Nanos::from_millis(900)),
        queue: None,
        prepared: Vec::new(),
        bound: Kind::Select,
    };
    network.listen(plan.targets[0].addresses[0].clone(), Box::new(server));
    let outcome = run_inline(plan.clone(), network, &Control::default(), &mut Nobody);

    let mut record = record_of::begun(&plan, &assignment, None);
    record.started = assay_record::Time::from_unix_ms(1_767_323_045_000);
    record_of::fill(&mut record, &outcome, record_of::status(&outcome.end, None));
    assert_eq!(record.status, Status::Complete, "{:?}", outcome.end);
    let path = folder.join("record.json.zst");
    record.write(&path).expect("the folder is writable");
    (std::fs::read(&path).expect("just written"), statements.get())
}

#[test]
fn the_same_seed_and_simulated_server_give_the_same_record_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    for extra in [&[][..], &["--rate", "800", "--arrival", "poisson"], &["--prepared", "off"]] {
        let first = simulate(folder.path(), "1", extra);
        let second = simulate(folder.path(), "1", extra);
        assert!(first.0 == second.0, "two records of the same run differ with {extra:?}");
        let other = simulate(folder.path(), "2", extra);
        assert!(first.0 != other.0, "another seed gave the same record with {extra:?}");
    }
}

#[test]
fn what_the_record_counts_is_what_the_server_ran() {
    let folder = tempfile::tempdir().unwrap();
    let (_, ran) = simulate(folder.path(), "3", &[]);
    let record = assay_record::Record::read(&folder.path().join("record.json.zst")).unwrap();
    assert_eq!(record.environment.servers[0].version, "17.0 (simulated)");
    let mut counted = 0;
    for stage in &record.stages {
        let statements = &stage.total.statements;
        let deadlocks: u64 = stage.total.errors.iter().map(|error| error.count).sum();
        assert!(
            deadlocks > 0 && stage.total.errors.iter().all(|error| error.state == "40P01"),
            "{:?}",
            stage.total.errors
        );
        counted += statements.read.count + statements.write.count + statements.other.count + deadlocks;
        // The stall of 300 ms shows in the response times of its stage.
        let response = &stage.total.transactions[0].response;
        assert_eq!(response.max_ns > 300_000_000, stage.sessions == 2, "{response:?}");
    }
    // The rollback before a retry is the engine's own statement, and is not counted.
    assert!(counted <= ran && ran - counted < ran / 50, "{counted} of {ran}");
}

/// Decides on the next stage of a search from the stages in the record so far.
struct Searching {
    record: assay_record::Record,
}

impl Observer for Searching {
    fn notice(&mut self, _notice: Notice<'_>) {}

    fn next_stage(&mut self, so_far: &Outcome) -> Option<Stage> {
        record_of::fill(&mut self.record, so_far, (Status::Running, None));
        let stages = &self.record.stages;
        match self.record.manifest.search.clone()? {
            Search::Sessions { max } => assay_report::next_sessions(stages, max).map(Stage::of),
            Search::Rate { promises } => {
                let promises: Vec<Promise> = promises.iter().map(|text| text.parse().unwrap()).collect();
                let rate = assay_report::next_rate(stages, &promises)?;
                Some(Stage { sessions: stages.last()?.sessions, rate: Some(rate) })
            }
        }
    }
}

/// Searches in the virtual world, on a server that does one point select after the other.
fn search(words: &str, service: Nanos, settings: NetworkSettings) -> CapacityFindings {
    let db = "--db postgres://app@10.0.0.1:5432/bench?sslmode=disable";
    let line = format!("assay run oltp_point_select {db} --seed 1 --workers 1 {words}");
    let invocation = command_line::parse(line.split(' ').map(Into::into)).unwrap().unwrap();
    let assignment = invocation.assignment.expect("it names a workload");
    let plan = plan::of_run(&assignment, &plan::ProcessOptions::default(), &assignment.urls()).expect("a plan");
    let mut network = Network::new(settings);
    let statements = Rc::new(Cell::new(0));
    let queue = Some((service, Nanos::ZERO));
    let server = Postgres { statements, stall: None, queue, prepared: Vec::new(), bound: Kind::Select };
    network.listen(plan.targets[0].addresses[0].clone(), Box::new(server));
    let mut searching = Searching { record: record_of::begun(&plan, &assignment, None) };
    let outcome = run_inline(plan, network, &Control::default(), &mut searching);
    let mut record = searching.record;
    record_of::fill(&mut record, &outcome, record_of::status(&outcome.end, None));
    assert_eq!(record.status, Status::Complete, "{:?}", outcome.end);
    assay_report::findings(&record).capacity.expect("it searched")
}

#[test]
fn the_fewest_sessions_that_keep_a_server_busy_are_found() {
    // 3.5 ms each way and 0.5 ms of service: one session does 133 per second, the server 2,000, and 95 % of that needs
    // 14.25 sessions.
    let settings = NetworkSettings { latency: Nanos::from_micros(3500), ..NetworkSettings::default() };
    let found = search("--sessions auto:64 --time 2s", Nanos::from_micros(500), settings);
    assert_eq!(found.state, SearchState::Found, "{found:?}");
    let high = found.high.unwrap();
    assert!((14.0..=17.0).contains(&high), "{found:?}");
}

#[test]
fn a_generator_that_cannot_keep_the_rate_is_not_taken_for_the_server() {
    // The server could do 100,000 per second; each event costs us 0.5 ms.
    let settings = NetworkSettings { event_cost: Nanos::from_micros(500), ..NetworkSettings::default() };
    let words = "--sessions 64 --find-rate p99<50ms --time 2s";
    let found = search(words, Nanos::from_micros(10), settings);
    assert_eq!(found.state, SearchState::GeneratorLimit, "{found:?}");
    assert!((1500.0..=2100.0).contains(&found.low.unwrap()), "{found:?}");
}
