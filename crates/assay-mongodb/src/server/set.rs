//! Replica sets of one to three members or more, as the lab starts them.
//!
//! The primary begins as a set of itself; each replica starts empty, is added, and copies the data. The primary has the
//! highest priority, so it is elected again after a restart. Members are named by their ports, and a copied data
//! directory runs on another one: then the configuration is forced to name that. No real server could be used where
//! this was written: it follows MongoDB's manual ("Replica Set Configuration", "Change Hostnames").

use std::fs;

use assay_client::Client;
use assay_lab::fault::{At, Result};
use assay_lab::product::{Replicate, Role, Site};
use assay_lab::version::Version;
use serde_json::{Value, json};

use super::{Mongo, configure};

const PRIORITY_OF_PRIMARY: u32 = 2;

/// Brings a server with the option `replSet` into its set, and says why it is not ready yet.
pub(super) fn check_ready(session: &mut Client, site: &Site<'_>, role: &Role) -> std::result::Result<(), String> {
    let options = configure::options(site);
    let Some(name) = name(&options) else { return Ok(()) };
    let is_replica = matches!(role, Role::Replica { .. });
    let own = host(site.port);
    let Some(config) = configuration(session)? else {
        if is_replica {
            // The primary adds it.
            return Ok(());
        }
        let config = json!({"_id": name, "members": [member(0, &own, PRIORITY_OF_PRIMARY)]});
        session.rows(&format!(r#"{{"replSetInitiate": {config}, "$db": "admin"}}"#))?;
        return Err("its replica set is being initiated".to_owned());
    };
    if !names(&config, &own) {
        let config = alone(config, &own);
        session.rows(&format!(r#"{{"replSetReconfig": {config}, "force": true, "$db": "admin"}}"#))?;
        return Err("its replica set is being reconfigured".to_owned());
    }
    let greeting = session.rows(r#"{"isMaster": 1, "$db": "admin"}"#)?;
    let is = |field: &str| {
        greeting
            .iter()
            .any(|row| matches!(row.as_slice(), [Some(name), Some(value)] if name == field && value == "true"))
    };
    match is("ismaster") || is_replica && is("secondary") {
        true => Ok(()),
        false if is_replica => Err("it is neither the primary nor a secondary of its replica set".to_owned()),
        false => Err("it is not the primary of its replica set".to_owned()),
    }
}

impl Replicate for Mongo {
    /// It copies the data of its set, so it starts without any.
    fn become_replica(&self, site: &Site<'_>, _: &Role) -> Result<()> {
        fs::remove_dir_all(site.data).at("replace", site.data)?;
        fs::create_dir(site.data).at("create", site.data)?;
        site.account.own(site.data)
    }

    fn follow(
        &self,
        _: &Version,
        (primary, _): (&mut Client, u16),
        replica: &mut Client,
    ) -> std::result::Result<(), String> {
        let address = replica.address().ok_or("the replica is not reached over TCP")?;
        let config = configuration(primary)?.ok_or("the primary has no replica set")?;
        let config = with_member(config, &host(address.port()));
        primary.rows(&format!(r#"{{"replSetReconfig": {config}, "$db": "admin"}}"#)).map(drop)
    }

    fn caught_up(
        &self,
        _: &Version,
        primary: &mut Client,
        replica: &mut Client,
        _: u32,
    ) -> std::result::Result<bool, String> {
        let (ahead, behind) = (last_write(primary)?, last_write(replica)?);
        // A member becomes a secondary once it has copied everything.
        Ok(behind.is_secondary && behind.at >= ahead.at)
    }
}

/// The last write of a member.
struct LastWrite {
    is_secondary: bool,
    /// Seconds, and number within the second.
    at: (u64, u64),
}

fn last_write(session: &mut Client) -> std::result::Result<LastWrite, String> {
    let greeting = session.rows(r#"{"isMaster": 1, "$db": "admin"}"#)?;
    let text = |field: &str| {
        greeting.iter().find_map(|row| match row.as_slice() {
            [Some(name), Some(value)] if name == field => Some(value.as_str()),
            _ => None,
        })
    };
    let at = text("lastWrite.opTime.ts").and_then(|text| serde_json::from_str::<Value>(text).ok());
    let part = |name: &str| at.as_ref().and_then(|at| at["$timestamp"][name].as_u64()).unwrap_or_default();
    Ok(LastWrite { is_secondary: text("secondary") == Some("true"), at: (part("t"), part("i")) })
}

/// The set's name in the options of a program.
fn name(options: &[String]) -> Option<&str> {
    options.iter().find_map(|option| option.strip_prefix("--replSet="))
}

fn host(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn member(id: u64, host: &str, priority: u32) -> Value {
    json!({"_id": id, "host": host, "priority": priority})
}

/// The configuration of a member's set; `None`: it has none yet.
fn configuration(session: &mut Client) -> std::result::Result<Option<Value>, String> {
    let rows = session.rows(r#"{"find": "system.replset", "limit": 1, "singleBatch": true, "$db": "local"}"#)?;
    let Some(text) = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()) else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| format!("the configuration of the replica set: {error}"))
}

fn names(config: &Value, host: &str) -> bool {
    config["members"].as_array().is_some_and(|members| members.iter().any(|member| member["host"] == host))
}

/// The next version of a configuration, with this member alone.
fn alone(config: Value, host: &str) -> Value {
    let mut config = next(config);
    config["members"] = json!([member(0, host, PRIORITY_OF_PRIMARY)]);
    config
}

/// The next version of a configuration, with one more member.
fn with_member(config: Value, host: &str) -> Value {
    let mut config = next(config);
    if let Some(members) = config["members"].as_array_mut() {
        let id = members.iter().filter_map(|member| member["_id"].as_u64()).max().map_or(0, |last| last + 1);
        members.push(member(id, host, 1));
    }
    config
}

fn next(mut config: Value) -> Value {
    config["version"] = json!(config["version"].as_u64().unwrap_or_default() + 1);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_keeps_what_it_has_and_names_other_members() {
        let config: Value = serde_json::from_str(
            r#"{"_id": "rs", "version": 4, "members": [{"_id": 2, "host": "127.0.0.1:1", "priority": 2.0}],
                "settings": {"replicaSetId": {"$oid": "0123456789abcdef01234567"}}}"#,
        )
        .unwrap();
        assert!(names(&config, "127.0.0.1:1") && !names(&config, "127.0.0.1:2"));
        let both = with_member(config.clone(), "127.0.0.1:2");
        assert_eq!(both["version"], 5);
        assert_eq!(both["members"][1], json!({"_id": 3, "host": "127.0.0.1:2", "priority": 1}));
        assert_eq!(both["settings"], config["settings"]);
        let moved = alone(config, "127.0.0.1:2");
        assert_eq!(moved["members"], json!([{"_id": 0, "host": "127.0.0.1:2", "priority": 2}]));
        assert_eq!(name(&["--port=1".to_owned(), "--replSet=rs".to_owned()]), Some("rs"));
    }
}
