//! What a run says of the generator itself.

use std::process::Command;

use testkit::Settings;

use crate::common::{Folder, ONE_TABLE};
use crate::versions;

#[test]
fn what_the_generator_says_it_used_is_what_the_kernel_counted() {
    let Some(kind) = versions().next() else { return };
    let (folder, server) = (Folder::new(), kind.start(&Settings::default()).unwrap());
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
    let findings: serde_json::Value = serde_json::from_str(&format!("{json}}}")).unwrap();
    // `0m0.120s 0m0.240s` of the shell, then of its children.
    let seconds = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    };
    let counted: f64 = times.lines().nth(1).unwrap().split_whitespace().map(seconds).sum();
    let generator = &findings["stages"][0]["generator"];
    let told = generator["cpu_ns"].as_u64().unwrap() as f64 / 1e9;
    // Start, connecting and the report are not in the measured part.
    assert!(told <= counted + 0.02 && told > counted * 0.3, "told {told} s, counted {counted} s");
    let statements = findings["stages"][0]["total"]["statements"].as_u64().unwrap() as f64;
    let each = generator["cpu_ns_per_statement"].as_f64().unwrap();
    assert!((each * statements / 1e9 / told - 1.0).abs() < 1e-6, "{generator}");
}
