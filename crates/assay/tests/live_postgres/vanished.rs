//! A server whose host vanishes: the cable between two machines is pulled (network namespaces, root).

use insta::assert_snapshot;
use nix::sys::signal::Signal;
use testkit::{Cable, Kind, ServerSetup, Tls, redact};

use crate::common::{Folder, ONE_TABLE};

/// Commands that never finish.
const ENDLESS: &str = r#"
local function connect() return sysbench.sql.driver():connect() end
function prepare()
  local con = connect()
  con:query("CREATE TABLE much (n INTEGER)")
  local loader = con:loader("much", "n")
  print("in the middle")
  for n = 1, 1e15 do loader:row(n % 1000) end
end
function check()
  local con = connect()
  con:query("SELECT 1")
  print("in the middle")
  con:query("SELECT pg_sleep(100000)")
end
function event() end
"#;

/// A server with TLS, and the two machines; `None` where they cannot be created.
fn with_cable(test: impl FnOnce(&Cable, &Folder, &str) + Send) {
    if !Kind::Postgres.present() || !Cable::present() {
        return;
    }
    let server = Kind::Postgres.start(&ServerSetup { tls: Tls::Required, ..ServerSetup::default() }).unwrap();
    Cable::between(&[server.port()], |cable, far| {
        let folder = Folder::new();
        folder.write("one_table.lua", ONE_TABLE);
        folder.write("endless.lua", ENDLESS);
        test(cable, &folder, &format!("--db postgres://app@{}/app?sslmode=require&connect_timeout=2", far[0]));
    });
}

/// Without what differs between runs.
fn shown(stderr: &str) -> String {
    let port = port_in(stderr);
    let error = &stderr[stderr.find("error:").unwrap_or_else(|| panic!("{stderr}"))..];
    redact::replace(error, &[(&port, "[PORT]")])
}

/// The port on the far machine.
fn port_in(text: &str) -> String {
    let after = text.split("10.77.0.2:").nth(1).unwrap_or_else(|| panic!("{text}"));
    after.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn a_run_goes_on_when_the_host_of_its_server_is_back() {
    with_cable(|cable, folder, db| {
        folder.expect(&format!("prepare ./one_table.lua {db}"), 0);
        let limits = "--sessions 3 --time 0 --interval 100ms --network-timeout 2s";
        let mut started = folder.start(&format!("run ./one_table.lua {db} {limits} --format json --no-record"));
        while started.wait_for_interval(3) == 0.0 {}
        cable.pull();
        started.wait_for("is unavailable");
        cable.plug();
        started.wait_for("is back");
        while started.wait_for_interval(3) == 0.0 {}
        started.signal(Signal::SIGINT);
        let ran = started.finish();
        assert_eq!(ran.code, Some(0), "{}", ran.shown());
        let total = &ran.findings()["stages"][0]["total"];
        assert_eq!((&total["reconnects"], &total["failed"]), (&3.into(), &0.into()), "{total}");
        let errors = total["errors_by_kind"].to_string();
        assert!(errors.contains("its host no longer answers"), "{errors}");
    });
}

#[test]
fn a_vanished_host_is_told_with_what_to_do_about_it() {
    with_cable(|cable, folder, db| {
        folder.expect(&format!("prepare ./one_table.lua {db}"), 0);
        let limits = "--sessions 3 --time 10m --interval 100ms --network-timeout 2s --retries 0";
        let mut started = folder.start(&format!("run ./one_table.lua {db} {limits} --no-record"));
        while started.wait_for_interval(3) == 0.0 {}
        cable.pull();
        let ran = started.finish();
        assert_eq!(ran.code, Some(4), "{}", ran.shown());
        assert_snapshot!(shown(&ran.stderr), @r"
        error: workload ./one_table.lua failed in `one_table`
          postgres://app@10.77.0.2:[PORT]/app?connect_timeout=2&sslmode=require: lost the connection to 10.77.0.2:[PORT]: its host no longer answers (connection)
          ./one_table.lua:36: SQL error, errno = 0, state = '': lost the connection to 10.77.0.2:[PORT]: its host no longer answers
          ./one_table.lua:36: in function 'event'

        hint: the server's machine is down, or the network drops packets; `--network-timeout` sets how long to wait for a response from the host
        ");
    });
}

#[test]
fn a_load_and_a_long_statement_end_when_the_host_vanishes() {
    with_cable(|cable, folder, db| {
        let commands = ["prepare", "check"].map(|command| {
            let mut started = folder.start(&format!("{command} ./endless.lua {db} --network-timeout 2s --sessions 1"));
            started.wait_for("in the middle");
            started
        });
        cable.pull();
        for started in commands {
            let ran = started.finish();
            assert_eq!(ran.code, Some(4), "{}", ran.shown());
            assert!(ran.stderr.contains("its host no longer answers"), "{}", ran.shown());
        }
    });
}

#[test]
fn an_interrupt_ends_a_run_whose_server_s_host_has_vanished() {
    with_cable(|cable, folder, db| {
        folder.expect(&format!("prepare ./one_table.lua {db}"), 0);
        let limits = "--sessions 3 --time 10m --interval 100ms --network-timeout 0 --grace 1s";
        let mut started = folder.start(&format!("run ./one_table.lua {db} {limits} --format json --no-record"));
        while started.wait_for_interval(3) == 0.0 {}
        cable.pull();
        while started.wait_for_interval(3) > 0.0 {}
        started.signal(Signal::SIGINT);
        let ran = started.finish();
        assert_eq!(ran.code, Some(130), "{}", ran.shown());
        assert_eq!(ran.findings()["stages"][0]["total"]["unfinished"], 3, "{}", ran.shown());
    });
}
