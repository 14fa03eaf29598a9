//! Whole commands against real MariaDB and MySQL servers.
//!
//! Each test has its own database on a server of this process; tests that stop or reconfigure a server start their own.
//! Tests wait for output or a state, never for a fixed time.

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the other whole-command tests: each uses what it needs")]
mod common;
mod encryption;
mod errors;
mod logins;
mod outages;
mod scripts;
mod several;
mod statements;
mod telemetry;
mod workloads;

use testkit::{Kind, Server};

use common::{Folder, Ran};

/// Those of the two servers that can be started here.
fn kinds() -> impl Iterator<Item = Kind> {
    [Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present())
}

/// Runs the same check on each of them; their messages must be the same too.
fn on_each(check: impl FnMut(Kind)) {
    insta::allow_duplicates! { kinds().for_each(check) }
}

/// Runs the command `go` of a script on `url` with these options, in a folder.
fn go(folder: &Folder, script: &str, url: &str, options: &str) -> Ran {
    folder.write("it.lua", &format!("sysbench.cmdline.commands = {{go = {{function()\n{script}\nend}}}}\n"));
    folder.run(&format!("exec ./it.lua go --db '{url}' {options}"))
}

/// The output of a script's command, without the server's port and the folder of its files.
fn said(server: &Server, ran: &Ran) -> String {
    let place = server.socket().parent().expect("a socket lies in a folder").to_str().expect("a path in ASCII");
    let known = [(place, "[SERVER]"), (&*server.port().to_string(), "[PORT]")];
    assert_eq!(ran.stdout, "", "{}", ran.shown());
    testkit::redact::replace(&ran.stderr, &known).replace('\t', " ")
}
