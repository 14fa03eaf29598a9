//! Whole commands against real MariaDB and MySQL servers.
//!
//! Each test has a database of its own on a server of this process; what stops or reconfigures a server starts one for
//! itself. Waiting is for something that is said or seen, never for a time.

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

/// Checks the same of each of them; what they say is to be the same too.
fn on_each(check: impl FnMut(Kind)) {
    insta::allow_duplicates! { kinds().for_each(check) }
}

/// Runs the command `go` of a script on `url` with these options, in a folder.
fn go(folder: &Folder, script: &str, url: &str, options: &str) -> Ran {
    folder.write("it.lua", &format!("sysbench.cmdline.commands = {{go = {{function()\n{script}\nend}}}}\n"));
    folder.run(&format!("exec ./it.lua go --db '{url}' {options}"))
}

/// What a script's command said, without what is a server's own: its port, and the folder of its files.
fn said(server: &Server, ran: &Ran) -> String {
    let place = server.socket().parent().expect("a socket lies in a folder").to_str().expect("a path in ASCII");
    let known = [(place, "[SERVER]"), (&*server.port().to_string(), "[PORT]")];
    assert_eq!(ran.stdout, "", "{}", ran.shown());
    testkit::redact::replace(&ran.stderr, &known).replace('\t', " ")
}
