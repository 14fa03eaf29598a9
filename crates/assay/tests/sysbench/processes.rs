//! The process: signals, pipes, and processes that a script starts.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::Kind;

use crate::bench::{Bench, masked, options};

/// Runs that never end by themselves: by name, with a script.
const ENDLESS: [(&str, &str); 4] = [
    ("loop.lua", "function event() while true do end end"),
    ("ffi.lua", "ffi.cdef('int poll(void *, unsigned long, int);') function event() ffi.C.poll(nil, 0, -1) end"),
    ("sleep.lua", "ffi.cdef('int usleep(unsigned int);') function event() while true do ffi.C.usleep(1000000) end end"),
    (
        "statement.lua",
        "function thread_init() con = sysbench.sql.driver():connect() end function event() con:query('SELECT SLEEP(60)') end",
    ),
];

/// A running program.
struct Started {
    child: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
}

impl Started {
    fn new(mut command: std::process::Command) -> Started {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Started { child, stdout, said: String::new() }
    }

    /// Waits until it has printed `text`.
    fn wait_for(mut self, text: &str) -> Started {
        while !self.said.contains(text) {
            let length = self.stdout.read_line(&mut self.said).unwrap();
            assert!(length > 0, "it ended without printing {text:?}: {}", self.said);
        }
        self
    }

    /// How it ends after this signal: exit code, the signal that killed it, and its whole output.
    fn after(mut self, signal: Signal) -> (Option<i32>, Option<i32>, String) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
        self.stdout.read_to_string(&mut self.said).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), status.signal(), masked(self.said.as_bytes()))
    }

    /// The signal that kills it when its output is closed.
    fn after_its_reader_went_away(self) -> Option<i32> {
        let Started { mut child, stdout, .. } = self;
        drop(stdout);
        child.wait().unwrap().signal()
    }
}

/// The command line for the script, with a server if it needs one.
fn line(name: &str) -> String {
    let server = Kind::MariaDb.shared();
    let database =
        if name == "statement.lua" { options(server, &server.fresh_database().unwrap()) } else { String::new() };
    format!("{name} run --time=0 {database}")
}

#[test]
fn one_sigterm_ends_whatever_is_going_on_and_nothing_more_is_printed() {
    let bench = Bench::new(&ENDLESS);
    for (name, _) in ENDLESS {
        let line = line(name);
        let [oracle, ours] = bench
            .both(&line)
            .map(|command| Started::new(command).wait_for("Threads started!\n\n").after(Signal::SIGTERM));
        assert_eq!((oracle.0, oracle.1), (None, Some(Signal::SIGTERM as i32)), "{name}");
        assert_eq!(oracle, ours, "{name}");
    }
}

#[test]
fn one_sigint_ends_whatever_is_going_on_with_a_report() {
    let bench = Bench::new(&ENDLESS);
    for (name, _) in ENDLESS {
        let [_, ours] = bench.both(&line(name));
        let (code, _, said) = Started::new(ours).wait_for("Threads started!\n\n").after(Signal::SIGINT);
        assert_eq!(code, Some(130), "{name}: {said}");
        assert!(said.contains("Threads fairness:\n"), "{name}: {said}");
    }
    let [_, ours] = bench.both("cpu run --cpu-max-prime=2000000000 --time=0");
    let (code, _, said) = Started::new(ours).wait_for("Threads started!\n\n").after(Signal::SIGINT);
    assert_eq!((code, said.contains("Threads fairness:\n")), (Some(130), true), "{said}");
}

#[test]
fn sessions_that_are_not_held_are_in_the_report_of_an_interrupt() {
    let bench = Bench::new(&[(
        "it.lua",
        "local n = 0
         function event() n = n + 1 if n == 4 then print('held') while true do end end end",
    )]);
    let [_, ours] = bench.both("it.lua run --time=0 --report-interval=1");
    let (code, _, said) = Started::new(ours).wait_for("held").after(Signal::SIGINT);
    assert_eq!(code, Some(130));
    assert!(said.contains("    total number of events:"), "{said}");
}

#[test]
fn outside_of_a_run_either_signal_ends_the_process_as_if_it_did_not_listen() {
    let bench = Bench::new(&[
        ("loop.lua", "function prepare() print('begun') while true do end end"),
        ("init.lua", "function init() print('begun') while true do end end function event() end"),
        (
            "thread_init.lua",
            "ffi.cdef('int poll(void *, unsigned long, int);')
             function thread_init() print('begun') ffi.C.poll(nil, 0, -1) end function event() end",
        ),
        ("done.lua", "function event() end function done() print('begun') while true do end end"),
        ("top.lua", "print('begun') while true do end"),
    ]);
    for line in ["loop.lua prepare", "init.lua run", "thread_init.lua run", "done.lua run --events=1", "top.lua run"] {
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let [oracle, ours] =
                bench.both(line).map(|command| Started::new(command).wait_for("begun\n").after(signal));
            assert_eq!(oracle, ours, "{line} {signal}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_process_at_once() {
    let bench = Bench::new(&[("it.lua", "function event() print('event') end")]);
    for line in ["cpu run --time=0 --report-interval=1", "it.lua run --time=0", "it.lua run --time=0 --rate=100"] {
        let died = bench
            .both(line)
            .map(|command| Started::new(command).wait_for("Threads started!\n").after_its_reader_went_away());
        assert_eq!(died, [Some(Signal::SIGPIPE as i32); 2], "{line}");
    }
}

#[test]
fn with_mysql_a_reader_that_goes_away_changes_nothing_once_a_script_has_connected() {
    let script = "function thread_init() con = sysbench.sql.driver():connect() end function event() print('event') end";
    let bench = Bench::new(&[("it.lua", script)]);
    let ended = bench
        .both("it.lua run --time=2 --mysql-dry-run")
        .map(|command| Started::new(command).wait_for("Threads started!\n").after_its_reader_went_away());
    assert_eq!(ended, [None; 2]);
}

/// The sets of ignored signals in lines of /proc/PID/status, of the signals below 29: 32 and 33 belong to the C
/// library. SIGINT, SIGQUIT and SIGHUP are left out: a shell ignores the first two for what it starts in the
/// background, and `nohup` the third, and not everybody leaves it at that.
fn ignored(said: &str) -> Vec<u64> {
    let sets = said.lines().filter_map(|line| line.strip_prefix("SigIgn:"));
    sets.map(|set| u64::from_str_radix(set.trim(), 16).unwrap() & 0x0fff_fff8).collect()
}

#[test]
fn what_a_script_starts_ignores_no_signal() {
    let bench = Bench::new(&[(
        "it.lua",
        "function event()
           os.execute('grep SigIgn /proc/self/status')
           print(io.popen('grep SigIgn /proc/self/status'):read('*a'))
         end",
    )]);
    let said = bench
        .both("it.lua run --events=1 --time=60")
        .map(|command| Started::new(command).wait_for("Threads fairness:").said);
    // What was ignored when these tests were started is inherited; SIGPIPE is ignored by the test alone.
    let own = ignored(&std::fs::read_to_string("/proc/self/status").unwrap())[0] & !(1 << (nix::libc::SIGPIPE - 1));
    for said in said {
        assert_eq!(ignored(&said), [own, own], "{said}");
    }
}

#[test]
fn a_rate_beyond_all_means_ends_the_run_in_the_same_words() {
    let bench = Bench::new(&[("it.lua", "function event() end")]);
    for line in ["it.lua run --rate=2000000000", "cpu run --rate=2000000000"] {
        let (oracle, ours) = (bench.oracle(line), bench.ours(line));
        // Usually: the original ends immediately, whether the line is out or not.
        let fatal = "FATAL: The event queue is full. This means the worker threads are unable to keep up with the \
                     specified event generation rate\n";
        assert_eq!((oracle.code, ours.code), (Some(1), Some(1)));
        assert_eq!(ours.stdout, format!("{}{fatal}", oracle.stdout.trim_end_matches(fatal)));
    }
}

#[test]
fn events_that_wait_take_no_memory() {
    let bench =
        Bench::new(&[("it.lua", "ffi.cdef('int usleep(unsigned int);') function event() ffi.C.usleep(100000) end")]);
    for line in ["it.lua run", "cpu run --cpu-max-prime=100000"] {
        let [_, ours] = bench.both(&format!("{line} --rate=5000000 --time=4"));
        let mut child = Started::new(ours).wait_for("Threads started!\n");
        let status = format!("/proc/{}/status", child.child.id());
        let mut peak = 0;
        // Until the report: the kernel no longer shows a process's memory when it has ended.
        while !child.said.contains("Threads fairness:") && child.stdout.read_line(&mut child.said).unwrap() > 0 {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let figure =
                status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
            peak = figure.unwrap_or(0).max(peak);
        }
        // 20 million were waiting; storing them would need at least 8 bytes each.
        assert!((1_000..150_000).contains(&peak), "{line}: {peak} KiB, {}", child.said);
        child.child.wait().unwrap();
    }
}
