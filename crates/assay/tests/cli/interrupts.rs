//! Ctrl-C, SIGTERM, and being killed.

use nix::sys::signal::Signal;

use crate::common::{Folder, ONE_TABLE};

/// Never finishes a transaction.
const STUCK: &str = r#"--- Sleeps for a minute.
ffi.cdef("int usleep(unsigned int)")
function event()
  print("asleep")
  ffi.C.usleep(60 * 1000 * 1000)
end
"#;

#[test]
fn the_first_interrupt_ends_the_run_with_report_and_record() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let folder = Folder::new();
        folder.write("one_table.lua", ONE_TABLE);
        let mut started = folder.start("run ./one_table.lua --time 10m --interval 100ms");
        started.wait_for("   0.2   ");
        started.signal(signal);
        let ran = started.finish();
        assert_eq!(ran.code, Some(code), "{}", ran.shown());
        assert!(ran.stdout.contains("interrupted"), "{}", ran.shown());
        assert!(ran.stderr.contains("record: assay-records/"), "{}", ran.shown());
        assert_eq!(folder.names(), ["assay-records", "one_table.lua"], "the temporary database is gone");
    }
}

#[test]
fn an_endless_run_is_meant_to_be_interrupted() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let mut started = folder.start("run ./one_table.lua --time 0 --interval 100ms --no-record");
    started.wait_for("   0.2   ");
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
}

#[test]
fn the_second_interrupt_quits_at_once() {
    let folder = Folder::new();
    folder.write("stuck.lua", STUCK);
    let mut started = folder.start("run ./stuck.lua --time 10m --grace 10m");
    started.wait_for("asleep");
    started.signal(Signal::SIGINT);
    started.wait_for("press Ctrl-C again to quit immediately");
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(130), ""), "{}", ran.shown());
    assert_eq!(folder.names(), ["assay-records", "stuck.lua"], "the temporary database is gone");
}

#[test]
fn a_run_that_is_killed_leaves_a_readable_record() {
    let folder = Folder::new();
    // The first stage ends by its transactions, the second never.
    folder.write(
        "one_table.lua",
        &STUCK.replace("function event()", "local n = 0\nfunction event()\n  n = n + 1\n  if n <= 5 then return end"),
    );
    let mut started = folder.start("run ./one_table.lua --sessions 1,1 --transactions 5 --record r.json.zst");
    // The end of a stage writes what is known so far.
    started.wait_for("step 2 of 2");
    started.signal(Signal::SIGKILL);
    assert_eq!(started.finish().code, None);
    let shown = folder.run("show r.json.zst");
    assert_eq!(shown.code, Some(0), "{}", shown.shown());
    assert!(shown.stdout.contains("one_table"), "{}", shown.shown());
}
