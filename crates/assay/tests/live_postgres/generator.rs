//! What a run reports about the generator: correct figures, and a warning when the generator was the bottleneck.

use std::process::{Child, Command};

use serde_json::Value;
use testkit::ServerSetup;

use crate::common::{Folder, ONE_TABLE};
use crate::versions;

#[test]
fn what_the_generator_says_it_used_is_what_the_kernel_counted() {
    let Some(kind) = versions().next() else { return };
    let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
    folder.write("one_table.lua", ONE_TABLE);
    let common = format!("./one_table.lua --db {}", server.url("app"));
    folder.expect(&format!("prepare {common}"), 0);
    let line = format!("run {common} --sessions 4 --transactions 2000 --format json --no-record");
    let plain = folder.command(&line);
    // The shell's `times` adds the CPU time of its children, ours, to the output.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" && times", "sh"]).arg(plain.get_program()).args(plain.get_args());
    shell.current_dir(folder.path()).env_clear();
    for (name, value) in plain.get_envs() {
        shell.env(name, value.unwrap());
    }
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (json, times) = text.rsplit_once("}\n").unwrap();
    let findings: Value = serde_json::from_str(&format!("{json}}}")).unwrap();
    // `0m0.120s 0m0.240s` of the shell, then of its children.
    let seconds = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    let counted: f64 = times.lines().nth(1).unwrap().split_whitespace().map(seconds).sum();
    let generator = &findings["stages"][0]["generator"];
    let told = generator["cpu_ns"].as_u64().unwrap() as f64 / 1e9;
    // Start, connecting and the report are not part of the measurement.
    assert!(told <= counted + 0.02 && told > counted * 0.3, "told {told} s, counted {counted} s");
    let statements = findings["stages"][0]["total"]["statements"].as_u64().unwrap() as f64;
    let each = generator["cpu_ns_per_statement"].as_f64().unwrap();
    assert!((each * statements / 1e9 / told - 1.0).abs() < 1e-6, "{generator}");
}

#[test]
fn a_worker_that_polls_is_not_called_busy() {
    let Some(kind) = versions().next() else { return };
    let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
    folder.write("one_table.lua", ONE_TABLE);
    let common = format!("./one_table.lua --db {}", server.url("app"));
    folder.expect(&format!("prepare {common}"), 0);
    for io in ["epoll", "uring"] {
        let paced =
            format!("run {common} --workers 1 --rate 50 --time 1s --poll 1s --io {io} --format json --no-record");
        let ran = folder.run(&paced);
        if ran.code == Some(5) && ran.stderr.contains("cannot use io_uring") {
            testkit::refused("the kernel has no io_uring or forbids it");
            continue;
        }
        assert!(ran.code == Some(0) && ran.stderr.contains("--poll takes CPU time from the server"), "{}", ran.shown());
        let findings: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(findings["event_loop"]["polls_ns"], 1_000_000_000);
        let generator = &findings["stages"][0]["generator"];
        assert!(generator["busiest_worker"].as_f64().unwrap() < 0.5, "{generator}");
    }
}

/// A process that uses all of one CPU.
struct Busy(Child);

impl Busy {
    fn on(cpu: usize) -> Busy {
        Busy(Command::new("taskset").args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A CPU that this process may use.
fn a_cpu() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().parse().unwrap()
}

/// Findings of the command, restricted to one CPU.
fn on_one_cpu(folder: &Folder, line: &str) -> Value {
    let plain = folder.command(line);
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", &a_cpu().to_string()]).arg(plain.get_program()).args(plain.get_args());
    pinned.current_dir(folder.path()).env_clear();
    for (name, value) in plain.get_envs() {
        pinned.env(name, value.unwrap());
    }
    let output = pinned.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_generator_that_is_starved_of_cpu_says_so_and_one_that_is_not_does_not() {
    let Some(kind) = versions().next() else { return };
    let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
    folder.write("one_table.lua", ONE_TABLE);
    let common = format!("./one_table.lua --db {}", server.url("app"));
    folder.expect(&format!("prepare {common}"), 0);
    let told = |findings: &Value| {
        let warnings = findings["warnings"].as_array().unwrap();
        warnings.iter().any(|warning| warning["kind"] == "generator_starved")
    };
    let waited = |findings: &Value| findings["stages"][0]["generator"]["waited_for_cpu"].as_f64();
    let closed = format!("run {common} --sessions 8 --time 1s --format json --no-record");
    let open = format!("{closed} --rate 200");

    // A machine with other load may starve it too, and then it is reported.
    let findings = on_one_cpu(&folder, &open);
    let Some(share) = waited(&findings) else {
        assert!(!std::path::Path::new("/proc/self/schedstat").exists(), "the kernel counts it");
        testkit::refused("the kernel does not count how long a thread waits for a CPU");
        return;
    };
    assert_eq!(told(&findings), share >= 0.2, "{findings}");

    let _busy: Vec<Busy> = (0..6).map(|_| Busy::on(a_cpu())).collect();
    for line in [&closed, &open] {
        let findings = on_one_cpu(&folder, line);
        let share = waited(&findings).unwrap();
        // A process that sleeps much is scheduled soon: how long an open loop waits depends on the scheduler.
        assert!(share >= if line == &closed { 0.2 } else { 0.02 }, "{line}: {}", findings["stages"][0]["generator"]);
        assert_eq!(told(&findings), share >= 0.2, "{line}: {}", findings["stages"][0]["generator"]);
        assert!(findings["stages"][0]["generator"]["busiest_worker"].as_f64() >= Some(share));
    }
}
