//! Runs that agents share, over a real NATS server, and everything that may go wrong between them.
//!
//! All agents are processes of this machine. Each test has an account of its own on the NATS server, so that none sees
//! another's agents. What depends on NATS is tested with the oldest and the newest server, the rest with the newest.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use assay_fleet::{Answer, Bus, Presence};
use assay_record::{Fold, Follow, Record, Status};
use nix::sys::signal::Signal;
use testkit::{Kind, Machines, Nats, NatsProgram};

use super::common::{Folder, Ran, Started};

/// Accounts on a shared server; each test takes the next.
const ACCOUNTS: usize = 20;

/// Whether there is what these tests need.
fn present() -> bool {
    Kind::Postgres.present() && NatsProgram::present()
}

fn accounts() -> String {
    let account = |number| {
        format!("A{number}: {{ jetstream: enabled, users: [{{ user: user{number}, password: secret{number} }}] }}\n")
    };
    format!("accounts {{\n{}}}\n", (0..ACCOUNTS).map(account).collect::<String>())
}

/// The URL of an account that no other test uses, of a server that tests share.
fn nats(program: &NatsProgram) -> String {
    static SHARED: Mutex<Vec<(String, Nats, usize)>> = Mutex::new(Vec::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = shared.iter().position(|(version, ..)| *version == program.version).unwrap_or_else(|| {
        shared.push((program.version.clone(), Nats::start(program, &accounts()).unwrap(), 0));
        shared.len() - 1
    });
    let (_, nats, next) = &mut shared[at];
    let number = std::mem::replace(next, *next + 1);
    assert!(number < ACCOUNTS, "more tests than accounts");
    nats.url(&format!("user{number}:secret{number}"))
}

/// Every session inserts twenty rows, which its random numbers decide.
const TWENTY: &str = r#"--- Twenty rows of each session.
function prepare()
  sysbench.sql.driver():connect():query("CREATE TABLE drawn(tid INTEGER, i INTEGER, n INTEGER)")
end
function thread_init() con = sysbench.sql.driver():connect() i = 0 end
function event()
  if i == 20 then return true end
  i = i + 1
  con:query(string.format("INSERT INTO drawn VALUES (%d, %d, %d)", sysbench.tid, i, sysbench.rand.uniform(1, 1000000)))
end
"#;

/// All rows that sessions have inserted, in few words.
const ROWS: &str = "SELECT md5(string_agg(concat_ws(',', tid, i, n), ';' ORDER BY tid, i, n)) || count(*) FROM drawn";

/// Statements that take their time.
const SLEEPY: &str = r#"--- Sleeps in the server.
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT pg_sleep(0.02)") end
"#;

/// A folder with the scripts, an account, and a database.
struct Lab {
    folder: Folder,
    nats: String,
    database: String,
}

impl Lab {
    fn new() -> Lab {
        Lab::at(nats(&NatsProgram::newest()))
    }

    fn at(nats: String) -> Lab {
        let folder = Folder::new();
        folder.write("twenty.lua", TWENTY);
        folder.write("sleepy.lua", SLEEPY);
        let database = Kind::Postgres.shared().fresh_database().unwrap();
        Lab { folder, nats, database }
    }

    /// Once for every version of NATS, at the same time.
    fn for_all(test: impl Fn(&Lab) + Sync) {
        if !present() {
            return;
        }
        std::thread::scope(|scope| {
            for program in NatsProgram::all() {
                let (test, name) = (&test, format!("NATS {}", program.version));
                let run = move || test(&Lab::at(nats(&program)));
                std::thread::Builder::new().name(name).spawn_scoped(scope, run).unwrap();
            }
        });
    }

    fn url(&self) -> String {
        Kind::Postgres.shared().url(&self.database)
    }

    fn sql(&self, statement: &str) -> String {
        Kind::Postgres.shared().sql(&self.database, statement).unwrap()
    }

    /// An agent that is ready.
    fn agent(&self, name: &str, options: &str) -> Started<'_> {
        let mut agent = self.folder.start(&format!("agent --nats {} --name {name} {options}", self.nats));
        agent.wait_for("is ready");
        agent
    }

    /// Waits until so many agents are free.
    fn wait_for_free(&self, number: usize) {
        let line = format!("fleet status --nats {}", self.nats);
        while self.folder.expect(&line, 0).stdout.matches("  free").count() != number {}
    }

    fn agents<const N: usize>(&self, names: [&str; N]) -> [Started<'_>; N] {
        names.map(|name| self.agent(name, ""))
    }

    /// A command with a lease short enough to lose agents, and long enough for slow ones on a busy machine.
    fn short_lease(&self, command: &str) -> String {
        self.line(command, 2).replace("--lease 60s", "--lease 10s")
    }

    /// A command of the coordinator.
    fn line(&self, command: &str, agents: usize) -> String {
        format!("{command} --db {} --fleet {} --agents {agents} --lease 60s", self.url(), self.nats)
    }

    #[track_caller]
    fn expect(&self, command: &str, agents: usize, code: i32) -> Ran {
        self.folder.expect(&self.line(command, agents), code)
    }

    fn record(&self, name: &str) -> Record {
        Record::read(&self.folder.path().join(name)).unwrap()
    }
}

/// An order for the only share of a run.
fn order_of(run: &str, version: &str, url: &str) -> assay_fleet::Order {
    assay_fleet::Order {
        run: run.to_owned(),
        from: "a test".to_owned(),
        protocol: assay_fleet::PROTOCOL,
        version: version.to_owned(),
        number: 0,
        agents: 1,
        spec: serde_json::json!({
            "workload": { "name": "oltp_point_select" },
            "target": { "urls": [url] },
            "generator": { "seed": 1, "workers": 1 },
        }),
        files: Vec::new(),
        database: assay_fleet::Database::Spec,
        lease_ms: 60_000,
    }
}

fn count(record: &Record) -> u64 {
    record.stages.iter().flat_map(|stage| &stage.total.transactions).map(|one| one.count).sum()
}

#[test]
fn three_agents_do_the_work_of_one_process_and_leave_one_record() {
    Lab::for_all(|lab| {
        let _agents = lab.agents(["a", "b", "c"]);
        let url = lab.url();
        lab.folder.expect(&format!("prepare twenty.lua --db {url} --no-record"), 0);
        lab.folder.expect(&format!("run twenty.lua --db {url} --sessions 7 --seed 5 --no-record"), 0);
        let alone = lab.sql(ROWS);
        lab.sql("TRUNCATE drawn");
        let ran = lab.expect("run twenty.lua --sessions 7 --seed 5 --record x.json --tag kind=fleet", 3, 0);
        assert_eq!(lab.sql(ROWS), alone, "{}", ran.shown());
        assert!(ran.stdout.contains("3 agents"), "{}", ran.stdout);

        let record = lab.record("x.json");
        assert_eq!((record.status, count(&record)), (Status::Complete, 140));
        let stage = &record.stages[0];
        assert_eq!(stage.total.transactions[0].response.count, 140);
        assert_eq!(stage.intervals.iter().map(|interval| interval.response.count).sum::<u64>(), 140);
        let names: Vec<(&str, u32, u64)> = record
            .agents
            .iter()
            .map(|agent| (agent.name.as_str(), agent.stages[0].sessions, agent.stages[0].transactions))
            .collect();
        assert_eq!(names, [("a", 3, 60), ("b", 2, 40), ("c", 2, 40)]);
        for agent in &record.agents {
            // One machine, one clock.
            let clock = agent.clock_before.unwrap();
            assert!(clock.offset_ns.unsigned_abs() <= clock.bound_ns + 1_000_000, "{clock:?}");
            assert!(agent.clock_after.is_some());
        }
        // Neither password of the bus is anywhere.
        let text = std::fs::read_to_string(lab.folder.path().join("x.json")).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert!(!ran.shown().contains("secret"), "{}", ran.shown());

        let shown = lab.folder.expect("show x.json --agents", 0);
        assert!(shown.stdout.contains("\nagent "), "{}", shown.stdout);
        assert!(!lab.folder.expect("show x.json", 0).stdout.contains("\nagent "));
        for (command, head) in [
            ("report x.json", "\nagent "),
            ("report x.json --markdown -", "| agent |"),
            ("report x.json --html -", ">Agents<"),
            ("compare x.json", "\nagent "),
        ] {
            let shown = |options: &str| lab.folder.expect(&format!("{command} {options}"), 0).stdout;
            assert!(shown("--agents").contains(head), "{command}: {}", shown("--agents"));
            assert!(!shown("").contains(head), "{command}");
        }
        lab.folder.expect("report x.json --agents --last 1s", 2);
        lab.folder.expect("compare x.json --agents --format json", 2);
        lab.wait_for_free(3);
        let doctor = lab.folder.expect(&format!("fleet doctor --nats {}", lab.nats), 0);
        assert!(doctor.stdout.contains("agent c: "), "{}", doctor.stdout);
        assert!(doctor.stdout.ends_with("3 agents are ready\n"), "{}", doctor.stdout);
    });
}

/// With a session for each worker, an arrival decides who sends the next statement of its session, and nothing else
/// does: neither how fast the machine is, nor which of the workers stands still.
#[test]
fn open_loops_of_agents_send_what_as_many_workers_of_one_process_send() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    lab.folder.write("drawn.lua", &TWENTY.replace("if i == 20 then return true end", ""));
    let arrivals: String = (0..60).map(|i| format!("{}\n", f64::from(i * i) / 4000.0)).collect();
    lab.folder.write("arrivals", &arrivals);
    let _agents = lab.agents(["a", "b", "c"]);
    lab.folder.expect(&format!("prepare drawn.lua --db {} --no-record", lab.url()), 0);
    for load in [
        "--arrival poisson --rate 100 --transactions 60 --time 1h",
        "--rate 100 --transactions 60 --time 1h",
        "--rate-file arrivals --transactions 60 --time 1h",
    ] {
        let run = format!("run drawn.lua --sessions 3 --seed 5 {load} --no-record");
        lab.sql("TRUNCATE drawn");
        lab.folder.expect(&format!("{run} --workers 3 --db {}", lab.url()), 0);
        let alone = lab.sql(ROWS);
        lab.sql("TRUNCATE drawn");
        let ran = lab.expect(&format!("{run} --workers 1"), 3, 0);
        assert_eq!(lab.sql(ROWS), alone, "{load}: {}", ran.shown());
        assert_eq!(alone[32..].trim(), "60", "{load}");
    }
}

/// An entry that is replaced while the list is read is sent again.
#[test]
fn an_agent_is_listed_once() {
    Lab::for_all(|lab| {
        let nats = assay_fleet::Nats { url: lab.nats.clone(), ..assay_fleet::Nats::default() };
        let bus = Bus::connect(&nats, "a test").unwrap();
        let presence = Presence { id: "one".to_owned(), name: "one".to_owned(), cpus: 1, ..Presence::default() };
        let member = bus.join(presence).unwrap();
        while bus.agents().unwrap().is_empty() {}
        let lists = std::thread::scope(|scope| {
            let lists = scope.spawn(|| (0..200).map(|_| bus.agents().unwrap().len()).collect::<Vec<_>>());
            while !lists.is_finished() {
                // Renews its entry.
                member.release();
                std::thread::yield_now();
            }
            lists.join().unwrap()
        });
        assert_eq!(lists.iter().filter(|agents| **agents != 1).count(), 0, "{lists:?}");
        bus.leave(member);
    });
}

/// A command that begins right after another ended takes its agents, and one that begins during it does not.
#[test]
fn whether_an_agent_is_busy_is_what_it_says_and_not_what_its_entry_said_before() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let bus = Bus::connect(&assay_fleet::Nats { url: lab.nats, ..assay_fleet::Nats::default() }, "a test").unwrap();
    let presence = Presence { id: "one".to_owned(), name: "one".to_owned(), cpus: 1, ..Presence::default() };
    let member = bus.join(presence).unwrap();
    let busy = || bus.agents().unwrap().into_iter().find(|agent| agent.id == "one").map(|agent| agent.busy);
    while busy().is_none() {}
    for round in 0..20 {
        let order = order_of(&format!("run{round}"), "any", "postgres://app@localhost/none");
        let answers = std::thread::scope(|scope| {
            let asking = scope.spawn(|| bus.order(&[("one".to_owned(), order)]));
            member.next_order(Duration::from_secs(60)).unwrap().answer(Answer::Taken);
            asking.join().unwrap()
        });
        assert!(matches!(answers[0], Ok(Answer::Taken)));
        assert_eq!(busy(), Some(Some(format!("run{round}"))));
        assert!(bus.is_any_busy_with(&format!("run{round}"), &["one".to_owned()]));
        member.release();
        assert_eq!(busy(), Some(None), "round {round}");
    }
    bus.leave(member);
}

#[test]
fn agents_prepare_and_check_tables_together() {
    Lab::for_all(|lab| {
        let _agents = lab.agents(["a", "b"]);
        let options = "oltp_read_write --tables 3 --table-size 20000";
        lab.expect(&format!("prepare {options} --sessions 4 --seed 3 --record p.json"), 2, 0);
        assert_eq!(count(&lab.record("p.json")), 60_000);
        let sum = "SELECT count(*), sum(k), sum(hashtext(c)::bigint) FROM sbtest2";
        let together = lab.sql(sum);
        lab.expect(&format!("check {options} --sessions 2"), 2, 0);
        lab.folder.expect(&format!("cleanup {options} --db {}", lab.url()), 0);
        lab.folder.expect(&format!("prepare {options} --seed 3 --db {} --no-record", lab.url()), 0);
        assert_eq!(lab.sql(sum), together);
        // What is not right is found by whichever agent looks.
        lab.sql("DELETE FROM sbtest3 WHERE id = 5");
        lab.expect(&format!("check {options} --sessions 2"), 2, 1);
    });
}

#[test]
fn stages_of_a_ladder_change_together_and_an_interrupt_ends_all_with_a_report() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let agents = lab.agents(["a", "b"]);
    let mut run = lab.folder.start(&lab.line("run sleepy.lua --sessions 1,4 --time 1s --record x.json", 2));
    run.wait_for("step 2 of 2");
    let ran = run.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let record = lab.record("x.json");
    assert_eq!(record.stages.iter().map(|stage| stage.sessions).collect::<Vec<_>>(), [1, 4]);
    // The second agent has no session of the first stage.
    assert_eq!(record.agents[1].stages.iter().map(|stage| stage.sessions).collect::<Vec<_>>(), [0, 2]);

    let mut run = lab.folder.start(&lab.line("run sleepy.lua --sessions 4 --time 1h --record y.json", 2));
    run.wait_for_interval(4);
    // Others can follow the record, as that of one process.
    let mut follow = Follow::open(&lab.folder.path().join("y.json")).unwrap();
    let mut followed = Fold::default();
    while followed.record().and_then(|record| record.stages.first()).is_none_or(|stage| stage.intervals.len() < 2) {
        follow.news().unwrap().into_iter().for_each(|event| followed.take(event));
        std::thread::yield_now();
    }
    run.signal(Signal::SIGINT);
    let ran = run.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.shown());
    assert!(ran.stdout.contains("interrupted after"), "{}", ran.stdout);
    follow.news().unwrap().into_iter().for_each(|event| followed.take(event));
    let followed = followed.record().unwrap();
    assert_eq!((followed.status, followed.stages[0].sessions), (Status::Interrupted, 4));
    let record = lab.record("y.json");
    assert_eq!(record.status, Status::Interrupted);
    assert!(record.agents.iter().all(|agent| agent.status == Status::Interrupted && agent.stages.len() == 1));
    // They are free again.
    for mut agent in agents {
        agent.signal(Signal::SIGTERM);
        agent.wait_for("stopped");
        assert_eq!(agent.finish().code, Some(0));
    }
}

#[test]
fn an_agent_that_is_killed_or_frozen_leaves_a_partial_result_that_says_so() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let _first = lab.agent("a", "");
    for (signal, name) in [(Signal::SIGKILL, "killed"), (Signal::SIGSTOP, "frozen")] {
        let other = lab.agent(name, "");
        let mut run =
            lab.folder.start(&lab.short_lease("run sleepy.lua --sessions 4 --time 8s --record x.json --force"));
        run.wait_for_interval(4);
        other.signal(signal);
        // Its entry stays for some seconds, in which it is neither free nor busy.
        let listed = lab.folder.expect(&format!("fleet status --nats {}", lab.nats), 0).stdout;
        let line = listed.lines().find(|line| line.starts_with(name));
        assert!(line.is_none_or(|line| line.ends_with("does not answer")), "{listed}");
        run.wait_for(&format!("agent {name} is lost"));
        let ran = run.finish();
        assert_eq!(ran.code, Some(6), "{}", ran.shown());
        assert!(ran.stderr.contains(&format!("error: lost 1 of 2 agents: {name}")), "{}", ran.stderr);
        assert!(ran.stdout.contains(&format!("error: lost 1 of 2 agents: {name}")), "{}", ran.stdout);
        let record = lab.record("x.json");
        assert_eq!(record.status, Status::Failed);
        let states: Vec<Status> = record.agents.iter().map(|agent| agent.status).collect();
        assert_eq!(states, [Status::Complete, Status::Running]);
        assert!(count(&record) > 0);
        if signal == Signal::SIGSTOP {
            // It wakes up to a run that is over, and is free again.
            other.signal(Signal::SIGCONT);
        }
    }
}

#[test]
fn agents_whose_coordinator_is_killed_stop_and_their_results_are_collected() {
    Lab::for_all(|lab| {
        let mut agents = lab.agents(["a", "b"]);
        let mut run = lab.folder.start(&lab.short_lease("run sleepy.lua --sessions 4 --time 1h --record lost.json"));
        run.wait_for_interval(4);
        run.signal(Signal::SIGKILL);
        run.finish();
        for agent in &mut agents {
            agent.wait_for("the coordinator is gone");
        }
        // What belongs to a run that an agent is busy with is not listed.
        lab.wait_for_free(2);
        let status = lab.folder.expect(&format!("fleet status --nats {}", lab.nats), 0);
        assert!(status.stdout.contains("2 shares"), "{}", status.stdout);
        lab.folder.expect(&format!("fleet collect --nats {} --record x.json", lab.nats), 0);
        let record = lab.record("x.json");
        assert_eq!((record.status, record.agents.len()), (Status::Interrupted, 2));
        assert!(record.agents.iter().all(|agent| agent.stages[0].transactions > 0));
        assert_eq!(record.stages[0].sessions, 4);
        // Nothing is left.
        let again = lab.folder.expect(&format!("fleet collect --nats {}", lab.nats), 6);
        assert!(again.stderr.contains("no results to collect"), "{}", again.stderr);
    });
}

#[test]
fn a_nats_server_that_restarts_or_is_away_or_has_no_room_is_said() {
    if !present() {
        return;
    }
    for program in NatsProgram::all() {
        let own = Nats::start(&program, "").unwrap();
        check_a_nats_server_that_goes_away(&own, &Lab::at(own.url("")));
    }
}

fn check_a_nats_server_that_goes_away(own: &Nats, lab: &Lab) {
    let _agents = lab.agents(["a", "b"]);
    let line = format!("run sleepy.lua --sessions 4 --time 3s --record x.json --force --db {}", lab.url());
    let line = format!("{line} --fleet {} --agents 2 --lease 60s", lab.nats);
    let mut run = lab.folder.start(&line);
    run.wait_for_interval(4);
    own.restart().unwrap();
    let ran = run.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let record = lab.record("x.json");
    assert_eq!(record.status, Status::Complete);
    assert!(record.agents.iter().all(|agent| agent.status == Status::Complete));
    // What it had stored is gone with it, but not what had arrived.
    let mut run = lab.folder.start(&line.replace("--time 3s", "--time 10m").replace("--lease 60s", "--lease 10s"));
    // Agents send totals every 5 s, at the end of an interval, the first of them possibly 1 or 2 s into the stage: the
    // second are certain to have arrived when an interval after the eighth is shown. A record ends with its last
    // totals.
    for _ in 0..10 {
        run.wait_for_interval(4);
    }
    own.kill().unwrap();
    let ran = run.finish();
    assert_eq!(ran.code, Some(6), "{}", ran.shown());
    assert!(ran.shown().contains("lost 2 of 2 agents"), "{}", ran.shown());
    let record = lab.record("x.json");
    assert_eq!((record.status, record.agents.len()), (Status::Failed, 2));
    assert!(count(&record) > 0 && record.stages[0].intervals.len() >= 3, "{}", ran.shown());
    let ran = lab.folder.expect(&line, 6);
    assert!(ran.stderr.starts_with("error: cannot connect to NATS at nats://127.0.0.1:"), "{}", ran.stderr);
    let ran = lab.folder.expect("fleet status --nats 'not a url'", 2);
    assert!(ran.stderr.contains("--nats not a url: expected the URL of a NATS server"), "{}", ran.stderr);
}

#[test]
fn no_password_of_a_database_is_stored_on_the_bus() {
    if !present() {
        return;
    }
    let own = Nats::start(&NatsProgram::newest(), "").unwrap();
    let lab = Lab::at(own.url(""));
    let mut agents = lab.agents(["a", "b"]);
    let secret = |command: &str| lab.short_lease(command).replace("app@", "app:hidden@");
    let mut run = lab.folder.start(&secret("run sleepy.lua --sessions 4 --time 1h --no-record"));
    run.wait_for_interval(4);
    // Results stay on the bus only if nobody collects them.
    run.signal(Signal::SIGKILL);
    run.finish();
    for agent in &mut agents {
        agent.wait_for("the coordinator is gone");
    }
    lab.wait_for_free(2);
    let stored = own.stored().unwrap();
    let has = |words: &str| stored.windows(words.len()).any(|at| at == words.as_bytes());
    let runs = lab.folder.expect(&format!("fleet status --nats {}", lab.nats), 0).stdout;
    let run = runs.split([' ', ':']).find(|word| word.starts_with("sleepy")).unwrap_or_else(|| panic!("{runs}"));
    assert!(has(run), "what the agents stored is not where it is looked for");
    assert!(!has("hidden"));
    // The results themselves are compressed.
    lab.folder.expect(&format!("fleet collect --nats {} --record x.json", lab.nats), 0);
    let record = lab.record("x.json");
    assert_eq!(record.agents.len(), 2);
    let text = format!("{record:?}");
    assert!(text.contains("app@") && !text.contains("hidden"), "{text}");
}

#[test]
fn tls_is_used_and_its_certificate_is_checked() {
    if !present() {
        return;
    }
    for program in NatsProgram::all() {
        let (own, made) = Nats::with_tls(&program).unwrap();
        let folder = Folder::new();
        let url = format!("tls://localhost:{}", own.port());
        let ran = folder.expect(&format!("fleet status --nats {url} --ca {}", made.ca.display()), 0);
        assert!(ran.stdout.starts_with("no agents"), "{}", ran.stdout);
        let ran = folder.expect(&format!("fleet status --nats {url}"), 6);
        assert!(ran.stderr.contains("cannot connect to NATS"), "{}", ran.stderr);
    }
}

#[test]
fn credentials_files_let_in_users_of_their_account_only() {
    if !present() {
        return;
    }
    for program in NatsProgram::all() {
        let (own, operator) = Nats::with_operator(&program).unwrap();
        let lab = Lab::at(own.url(""));
        let [one, two, stranger] =
            ["one", "two", "stranger"].map(|account| operator.credentials(account).unwrap().display().to_string());
        let _agents = ["a", "b"].map(|name| lab.agent(name, &format!("--creds {one}")));
        let status =
            |options: &str, code| lab.folder.expect(&format!("fleet status --nats {} {options}", lab.nats), code);
        assert_eq!(status(&format!("--creds {one}"), 0).stdout.matches("  free").count(), 2);
        let run = lab.line("run sleepy.lua --sessions 4 --time 1s --record x.json", 2);
        let ran = lab.folder.expect(&format!("{run} --fleet-creds {one}"), 0);
        // What a login consists of stays in its file.
        let secret = std::fs::read_to_string(&one).unwrap();
        let written = std::fs::read_to_string(lab.folder.path().join("x.json")).unwrap() + &ran.shown();
        for line in secret.lines().filter(|line| line.len() > 20 && !line.starts_with("---")) {
            assert!(!written.contains(line), "{written}");
        }
        // Another account has agents of its own, which are none.
        assert!(status(&format!("--creds {two}"), 0).stdout.starts_with("no agents"));
        for options in ["", &format!("--creds {stranger}")] {
            let ran = status(options, 6);
            assert!(
                ran.stderr.contains("cannot connect to NATS") && ran.stderr.contains("authorization"),
                "{}",
                ran.stderr
            );
        }
        let ran = status("--creds no.creds", 5);
        assert!(ran.stderr.starts_with("error: cannot use no.creds: "), "{}", ran.stderr);
    }
}

#[test]
fn what_an_agent_cannot_do_is_refused_before_anything_is_started() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let server = Kind::Postgres.shared();
    // It may open few files.
    let mut few = Command::new("/bin/sh");
    let program = env!("CARGO_BIN_EXE_assay");
    few.args(["-c", "ulimit -n 100; exec \"$@\"", "sh", program, "agent", "--nats", &lab.nats, "--name", "few"]);
    let few = Ended(few.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let _other = lab.agent("other", &format!("--allow-db 127.0.0.1:{}", server.port()));
    lab.wait_for_free(2);
    let ran = lab.expect("run sleepy.lua --sessions 600 --time 1s --record x.json", 2, 5);
    assert!(ran.stderr.contains("error: agent few: 300 sessions need"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 2 agents refused their share; nothing was started"), "{}", ran.stderr);
    assert_eq!(lab.folder.names().iter().filter(|name| name.ends_with(".json")).count(), 0);
    drop(few);

    lab.folder.write("wrong.lua", "function event() end\nerror('broken here')\n");
    let ran = lab.expect("run wrong.lua --time 1s", 1, 3);
    assert!(ran.stderr.contains("broken here"), "{}", ran.stderr);

    // Another server than it may load, whose address the coordinator itself never connects to.
    let elsewhere = lab.line("run sleepy.lua --time 1s", 1).replace(&lab.url(), "postgres://app@127.0.0.1:1/x");
    let ran = lab.folder.expect(&elsewhere, 6);
    assert!(ran.stderr.contains("agent other may not load postgres://app@127.0.0.1:1/x"), "{}", ran.stderr);
    let ran = lab.expect("run sleepy.lua --time 1s --db-from-agent-env", 1, 5);
    assert!(ran.stderr.contains("ASSAY_DB is not set on agent other"), "{}", ran.stderr);
    let ran = lab.folder.expect(&format!("run sleepy.lua --time 1s --fleet {} --db sqlite:x.db", lab.nats), 2);
    assert!(ran.stderr.contains("agents cannot share sqlite:x.db"), "{}", ran.stderr);
    // The server refuses the agents' logins: their words, once they have tried.
    let absent = lab.line("run sleepy.lua --time 1s --no-record", 1).replace(&lab.database, "nosuch");
    let ran = lab.folder.expect(&absent, 4);
    assert!(ran.stderr.contains("agent other: "), "{}", ran.stderr);
}

/// The name means something where the agent is, not where the run is started.
#[test]
fn an_agent_finds_its_own_database_by_name() {
    if !present() {
        return;
    }
    let (lab, server) = (Lab::new(), Kind::Postgres.shared());
    let own = server.fresh_database().unwrap();
    let home = Folder::new();
    home.write("twenty.lua", TWENTY);
    home.expect(&format!("db add bench {}", server.url(&own)), 0);
    home.expect("prepare twenty.lua --db bench", 0);
    lab.folder.expect(&format!("prepare twenty.lua --db {}", lab.url()), 0);
    let agent = |name: &str, database: &str| {
        let line = format!("agent --nats {} --name {name}", lab.nats);
        let mut agent = home.start_with(&[("ASSAY_DB", database)], &line);
        agent.wait_for("is ready");
        agent
    };
    let far = agent("far", "bench");
    lab.wait_for_free(1);
    lab.expect("run twenty.lua --sessions 2 --no-record --db-from-agent-env", 1, 0);
    assert_eq!(server.sql(&own, "SELECT count(*) FROM drawn").unwrap().trim(), "40");
    assert_eq!(lab.sql("SELECT count(*) FROM drawn").trim(), "0");
    drop(far);
    let _lost = agent("lost", "benhc");
    lab.wait_for_free(1);
    let ran = lab.expect("run twenty.lua --sessions 2 --no-record --db-from-agent-env", 1, 2);
    assert!(ran.stderr.contains("agent lost: no database is named benhc"), "{}", ran.stderr);
}

/// An agent of another version, and one whose connection others can read: neither is more than an entry.
#[test]
fn agents_of_another_version_and_passwords_in_the_clear_are_refused() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let nats = assay_fleet::Nats { url: lab.nats.clone(), ..assay_fleet::Nats::default() };
    let bus = Bus::connect(&nats, "a test").unwrap();
    let presence = Presence {
        id: "odd".to_owned(),
        name: "odd".to_owned(),
        protocol: assay_fleet::PROTOCOL,
        version: "0.0.9".to_owned(),
        cpus: 1,
        ..Presence::default()
    };
    let old = bus.join(presence.clone()).unwrap();
    let ran = lab.expect("run sleepy.lua --time 1s --no-record", 1, 6);
    assert!(
        ran.stderr.contains("error: agent odd runs assay 0.0.9, but the coordinator runs assay "),
        "{}",
        ran.stderr
    );
    bus.leave(old);
    let open = bus.join(Presence { version: env!("CARGO_PKG_VERSION").to_owned(), ..presence }).unwrap();
    let secret = lab.line("run sleepy.lua --time 1s --no-record", 1).replace("app@", "app:hidden@");
    let ran = lab.folder.expect(&secret, 2);
    assert!(ran.stderr.contains("password would be sent unencrypted"), "{}", ran.stderr);
    assert!(!ran.shown().contains("hidden"), "{}", ran.shown());
    bus.leave(open);

    // A coordinator of another version is refused by the agent, and so is a second one.
    let _agent = lab.agent("a", "");
    lab.wait_for_free(1);
    let id = bus.agents().unwrap()[0].id.clone();
    let order = |version: &str| order_of("other", version, &lab.url());
    let Ok(Answer::Refused(refusal)) = &bus.order(&[(id.clone(), order("0.0.9"))])[0] else { panic!("it took that") };
    assert!(refusal.cause.starts_with("the coordinator runs assay 0.0.9"), "{refusal:?}");
    assert!(matches!(&bus.order(&[(id.clone(), order(env!("CARGO_PKG_VERSION")))])[0], Ok(Answer::Taken)));
    let Ok(Answer::Refused(refusal)) = &bus.order(&[(id, order("any"))])[0] else { panic!("it took that too") };
    assert_eq!(refusal.cause, "agent a is busy with run other");
}

#[test]
fn two_coordinators_do_not_share_an_agent_and_clocks_that_are_apart_are_measured() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let _first = lab.agent("a", "");
    // Five seconds ahead; its monotonic clock is the machine's.
    let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    if !testkit::installed(library) {
        return;
    }
    // Not by the program of that name: it would not take its child along when it is killed.
    let mut ahead = Command::new(env!("CARGO_BIN_EXE_assay"));
    ahead.args(["agent", "--nats", &lab.nats, "--name", "ahead"]).env("LD_PRELOAD", library).env("FAKETIME", "+5s");
    ahead.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
    let ahead = ahead.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _ahead = Ended(ahead);
    lab.wait_for_free(2);
    let mut run = lab.folder.start(&lab.line("run sleepy.lua --sessions 4 --time 1h --record x.json", 2));
    run.wait_for_interval(4);
    let second = lab.expect("run sleepy.lua --sessions 4 --time 2s --no-record", 1, 6);
    assert!(second.stderr.contains("error: 0 of 1 agents are free"), "{}", second.stderr);
    assert!(second.stderr.contains("is busy with run sleepy-"), "{}", second.stderr);
    run.signal(Signal::SIGINT);
    let ran = run.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.shown());
    let record = lab.record("x.json");
    let clock = |name: &str| {
        record.agents.iter().find(|agent| agent.name == name).and_then(|agent| agent.clock_before).unwrap()
    };
    let (here, there) = (clock("a"), clock("ahead"));
    assert!(here.offset_ns.abs() < 1_000_000_000, "{here:?}");
    let off = (there.offset_ns - 5_000_000_000).unsigned_abs();
    assert!(off <= there.bound_ns + 50_000_000, "{there:?}");
    // They began together all the same.
    assert_eq!(record.stages[0].intervals[0].sessions, 4);
}

/// Agents far away hear everything late, begin in time all the same, and know the way to the database themselves.
#[test]
fn five_agents_on_distant_machines_do_the_work_of_one_process() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let server = Kind::Postgres.shared();
    let (login, place) = lab.nats.rsplit_once('@').unwrap();
    let nats_port = place.rsplit_once(':').unwrap().1.parse().unwrap();
    let delays = [0, 10, 20, 40, 150].map(Duration::from_millis);
    let machines = Machines::new(&delays, &[nats_port, server.port()]).unwrap();
    let agents: Vec<Started<'_>> = (0..delays.len())
        .map(|machine| {
            let database = lab.url().replace(&place_of(server.port()), &machines.address(machine, 1).to_string());
            let line = format!("agent --nats {login}@{} --name far{machine}", machines.address(machine, 0));
            let mut agent = machines.on(machine, || lab.folder.start_with(&[("ASSAY_DB", &database)], &line));
            agent.wait_for("is ready");
            agent
        })
        .collect();
    lab.wait_for_free(agents.len());
    let doctor = lab.folder.expect(&format!("fleet doctor --nats {}", lab.nats), 0);
    assert_eq!(doctor.stdout.matches("ASSAY_DB is set").count(), agents.len(), "{}", doctor.stdout);

    lab.folder.expect(&format!("prepare twenty.lua --db {} --no-record", lab.url()), 0);
    lab.folder.expect(&format!("run twenty.lua --db {} --sessions 12 --seed 5 --no-record", lab.url()), 0);
    let alone = lab.sql(ROWS);
    lab.sql("TRUNCATE drawn");
    // The coordinator's own password is not sent, so no connection has to be encrypted.
    let own = lab.line("run twenty.lua --sessions 12 --seed 5 --record x.json --db-from-agent-env", agents.len());
    let ran = lab.folder.expect(&own.replace("app@", "app:hidden@"), 0);
    assert_eq!(lab.sql(ROWS), alone, "{}", ran.shown());
    let record = lab.record("x.json");
    assert_eq!((record.status, count(&record)), (Status::Complete, 240));
    for (delay, agent) in delays.iter().zip(&record.agents) {
        let clock = agent.clock_before.unwrap();
        // It is this machine's clock, and the bound says how well that can be known.
        assert!(u128::from(clock.bound_ns) >= delay.as_nanos(), "{}: {clock:?}", agent.name);
        assert!(clock.offset_ns.unsigned_abs() <= clock.bound_ns, "{}: {clock:?}", agent.name);
        assert!(agent.stages[0].transactions > 0, "{}", ran.shown());
    }
    let written = std::fs::read_to_string(lab.folder.path().join("x.json")).unwrap() + &ran.shown();
    assert!(!written.contains("hidden"), "{written}");
}

fn place_of(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// A file of docs/fleet.
fn documented(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet").join(name)).unwrap()
}

#[test]
fn the_documented_manifest_is_one_of_kubernetes_and_starts_agents() {
    let manifest = documented("kubernetes.yaml");
    if testkit::has_kubernetes_schemas() {
        let folder = Folder::new();
        testkit::check_manifest(&folder.write("manifest.yaml", &manifest)).unwrap();
        let broken = manifest.replace("completions: 6", "completions: six");
        let error = testkit::check_manifest(&folder.write("broken.yaml", &broken)).unwrap_err().to_string();
        assert!(error.contains("spec.completions"), "{error}");
    }
    let help = Folder::new().expect("agent --help", 0).stdout;
    for option in ["--nats", "--share", "--once", "--allow-db"] {
        assert!(manifest.contains(option) && help.contains(option), "{option}");
    }
}

#[test]
fn an_image_is_built_from_the_documented_container_file() {
    let Some(builder) = testkit::ImageBuilder::find() else { return };
    let context = Folder::new();
    context.write("Containerfile", &documented("Containerfile"));
    // Any program will do: nothing runs it.
    std::fs::copy(env!("CARGO_BIN_EXE_assay"), context.path().join("assay")).unwrap();
    let found = builder.build(context.path(), "assay-test").unwrap();
    assert!(found.contains("/assay") && found.contains("65532:65532"), "{found}");
}

/// Ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sessions of all agents are checked together.
#[test]
fn the_histories_of_agents_are_checked_as_one() {
    if !present() {
        return;
    }
    let lab = Lab::new();
    let _agents = lab.agents(["a", "b"]);
    lab.folder.expect(&format!("prepare isolation --db {} --keys 8", lab.url()), 0);
    let load = "--model register --keys 8 --sessions 4 --transactions 200 --retries 1000";
    let ran = lab.expect(&format!("run isolation {load} --expect strict-serializable --record x.json"), 2, 0);
    let isolation = lab.record("x.json").isolation.unwrap();
    assert_eq!((isolation.verdict.committed, isolation.verdict.sessions), (200, 4), "{}", ran.shown());
    assert!(!isolation.verdict.partial && isolation.verdict.keys == 8, "{}", ran.shown());
    // A lost update needs the writes of both.
    let line = format!("run isolation {load} --level read-committed --expect repeatable-read --operations 8");
    let ran = lab.expect(&line, 2, 1);
    assert!(ran.stdout.starts_with("repeatable read violated in "), "{}", ran.shown());
}
