//! Duels of two settings on one server.

use crate::common::Folder;
use crate::{on_every_version, versions};

#[test]
fn a_duel_of_two_session_settings_compares_their_throughput() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (folder, url) = (Folder::new(), server.url(&server.fresh_database().unwrap()));
        let common = format!("oltp_update_index --db {url} --tables 1 --table-size 100 --transactions 40 --prepare");
        let ran = folder.expect(
            &format!(
                "duel --common '{common}' '--session-sql \"SET synchronous_commit=on\"' \
                 '--session-sql \"SET synchronous_commit=off\"' --trials 2 --format json --quiet"
            ),
            0,
        );
        let found = ran.findings();
        // Compares settings, not speed: that depends on the machine.
        let differences = found["differences"].as_array().unwrap();
        let of_session = differences.iter().find(|one| one["what"] == "session SQL").expect("it differs");
        assert_eq!(of_session["candidate"][0], "SET synchronous_commit=off");
        assert!(differences.iter().all(|one| one["kind"] != "work" && one["kind"] != "generator"), "{found}");
        let tps = &found["stages"][0]["metrics"][0];
        assert_eq!(
            (tps["name"].as_str(), tps["change"]["verdict"]["kind"].as_str()),
            (Some("tps"), Some("cannot_tell"))
        );
        for side in ["baseline", "candidate"] {
            let values = tps[side]["values"].as_array().unwrap();
            assert!(values.len() == 2 && values.iter().all(|value| value.as_f64() > Some(0.0)), "{found}");
        }
    });
}

/// A server that is slow on purpose: each transaction takes this many seconds on any machine, and needs no CPU.
const NAP: &str = r#"
sysbench.cmdline.options = { nap = {"Seconds that the server sleeps", 0.02} }
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT pg_sleep(" .. sysbench.opt.nap .. ")") end
"#;

#[test]
fn a_duel_of_two_searches_compares_what_a_server_can_take() {
    let Some(kind) = versions().next() else { return };
    let server = kind.shared();
    let (folder, url) = (Folder::new(), server.url(&server.fresh_database().unwrap()));
    folder.write("nap.lua", NAP);
    let common = format!("./nap.lua --db {url} --sessions 2 --find-rate \"max < 1m\" --time 500ms");
    let line =
        format!("duel --common '{common}' '--nap 0.01' '--nap 0.02' --trials 1 --records r --format json --quiet");
    let found = folder.expect(&line, 0).findings();
    assert_eq!(found["headline"], "capacity");
    let differences: Vec<_> = found["differences"].as_array().unwrap().iter().map(|one| &one["what"]).collect();
    assert_eq!(differences, ["option nap"]);
    let capacity = &found["stages"][0]["metrics"][0];
    assert_eq!(capacity["name"], "capacity");
    assert_eq!(capacity["change"]["verdict"]["kind"], "cannot_tell", "one trial each: {capacity}");
    // Two sessions end 100 or 50 in 500 ms, and have two more in flight: the rest of what is due is not
    // started.
    for (side, name, most) in [("a", "baseline", 210.0), ("b", "candidate", 110.0)] {
        let shown = folder.expect(&format!("show r/{side}-1.json.zst --format json"), 0).findings();
        let of_side = &shown["capacity"];
        // On a machine busy with other tests, the generator may wait for a CPU as well.
        assert!(["found", "shared_cpus"].contains(&of_side["state"].as_str().unwrap()), "{side}: {of_side}");
        let (low, high) = (of_side["low"].as_f64().unwrap(), of_side["high"].as_f64().unwrap());
        assert!(low < most && high > low && high < low * 1.06, "{side}: {of_side}");
        assert_eq!(capacity[name]["values"][0].as_f64(), Some(low), "{capacity}");
    }
}
