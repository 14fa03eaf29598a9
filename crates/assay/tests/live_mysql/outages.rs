//! Servers that crash, come back or stay away, and interrupts by the user.

#[path = "../common/outages.rs"]
mod shared;

use insta::assert_snapshot;

use crate::on_each;

#[test]
fn a_killed_server_that_comes_back_is_an_outage_in_the_intervals_and_no_end() {
    on_each(shared::comes_back);
}

#[test]
fn a_server_that_stays_away_ends_the_run_with_what_was_measured() {
    on_each(|kind| {
        assert_snapshot!(shared::stays_away(kind), @r"
        error: cannot connect to mysql://app@127.0.0.1:[PORT]/app
          connecting to 127.0.0.1:[PORT]: connection refused

        hint: check that the server is running and listening on this address and port
        ");
    });
}

#[test]
fn an_interrupt_ends_a_run_with_report_and_record() {
    on_each(|kind| shared::is_interrupted(kind, ""));
}
