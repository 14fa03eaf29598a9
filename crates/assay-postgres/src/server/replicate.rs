//! PostgreSQL's streaming replication.

use std::fs;

use assay_client::Client;
use assay_lab::fault::{At, Result};
use assay_lab::product::{Replicate, Role, Site};
use assay_lab::version::Version;

use super::Postgres;

impl Replicate for Postgres {
    fn become_replica(&self, site: &Site<'_>, role: &Role) -> Result<()> {
        let Role::Replica { primary, number } = role else { return Ok(()) };
        let (name, text) = if site.binaries.version.at_least(12, 0) {
            ("standby.signal", String::new())
        } else {
            ("recovery.conf", format!("standby_mode = on\nprimary_conninfo = '{}'\n", conninfo(*primary, *number)))
        };
        let path = site.data.join(name);
        fs::write(&path, text).at("write", &path)?;
        site.account.own(&path)
    }

    fn follow(&self, _: &Version, _: (&mut Client, u16), _: &mut Client) -> std::result::Result<(), String> {
        // It follows from its start.
        Ok(())
    }

    fn caught_up(
        &self,
        version: &Version,
        primary: &mut Client,
        _: &mut Client,
        number: u32,
    ) -> std::result::Result<bool, String> {
        let (now, replayed) = match version.at_least(10, 0) {
            true => ("pg_current_wal_lsn()", "replay_lsn"),
            false => ("pg_current_xlog_location()", "replay_location"),
        };
        let position = primary.value(&format!("SELECT {now}"))?;
        let following = primary.value(&format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{}' AND state = 'streaming' \
             AND {replayed} >= '{position}'",
            follower(number)
        ))?;
        Ok(following != "0")
    }
}

fn follower(number: u32) -> String {
    format!("assay_replica_{number}")
}

/// How a replica connects to its primary.
pub(super) fn conninfo(primary: u16, number: u32) -> String {
    format!("host=127.0.0.1 port={primary} user=postgres sslmode=disable application_name={}", follower(number))
}
