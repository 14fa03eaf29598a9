//! Servers that are not there, or refuse.

use std::net::TcpListener;

use crate::harness::{Folder, ONE_TABLE};
use insta::assert_snapshot;

#[test]
fn a_server_that_is_down_is_named_with_cause_and_advice() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for scheme in ["postgres", "mysql"] {
        let url = format!("{scheme}://app:secret@127.0.0.1:{port}/bench");
        let ran = folder.run(&format!("run ./one_table.lua --no-record --db {url}"));
        let shown = testkit::redact::replace(&ran.shown(), &[(&port.to_string(), "[PORT]")]);
        match scheme {
            "postgres" => assert_snapshot!(shown, @r"
            exit 4
            --- stderr
            error: cannot connect to postgres://app@127.0.0.1:[PORT]/bench
              connecting to 127.0.0.1:[PORT]: connection refused

            hint: check that the server runs and listens on this address and port
            "),
            _ => assert_snapshot!(shown, @r"
            exit 4
            --- stderr
            error: cannot connect to mysql://app@127.0.0.1:[PORT]/bench
              connecting to 127.0.0.1:[PORT]: connection refused

            hint: check that the server runs and listens on this address and port
            "),
        }
    }
}
