//! Two settings of one server in turns.

use crate::common::Folder;
use crate::on_every_version;

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
        // Setting, not speed: the machine that runs tests decides that.
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
