//! Reads a server's settings, for the record.
//!
//! Over a separate connection, after the run, so that it costs the measured sessions nothing: no connection slot and no
//! time. A refusal is not an error: the record then has no settings.

use std::collections::BTreeMap;

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_process::interrupt;
use assay_products::setting_facts;
use assay_record::{self as record, Place};
use assay_seam::{Nanos, Rows};
use assay_telemetry::{Identity, SettingFacts};

use crate::client::{Client, identity, text};
use crate::telemetry;

/// A server that has not answered by then is not waited for.
const PATIENCE: Nanos = Nanos::from_secs(5);
/// Limit after an interrupt, when the user waits for the prompt.
const PATIENCE_INTERRUPTED: Nanos = Nanos::from_secs(1);

/// A server's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// By name: those that affect performance, and those that differ from their defaults.
    pub values: BTreeMap<String, String>,
    /// Origin of the values that differ.
    pub origins: BTreeMap<String, String>,
    /// Facts about a local server's process and drive.
    pub facts: BTreeMap<String, String>,
    /// What it says it is; `None`: it was not asked.
    pub identity: Option<Identity>,
}

impl ServerSettings {
    /// Puts everything into the record.
    pub fn into_record(self, server: &mut record::RecordedServer) {
        (server.settings, server.origins, server.facts) = (self.values, self.origins, self.facts);
        if let Some(identity) = self.identity {
            (server.version, server.product) = (identity.version_shown(), identity.product);
        }
    }
}

/// The settings of one server; none if it refuses.
pub fn read(target: &Target, place: Place) -> ServerSettings {
    let facts = setting_facts(target.database.driver());
    if facts.queries.is_empty() {
        return ServerSettings::default();
    }
    let patience = if interrupt::control().is_stopped() { PATIENCE_INTERRUPTED } else { PATIENCE };
    let Ok(mut client) = Client::open_as_session(target, Clock::start(), patience, None) else {
        return ServerSettings::default();
    };
    let rows = facts.queries.iter().find_map(|sql| client.ask(sql, patience).ok());
    let mut found = rows.map_or_else(ServerSettings::default, |rows| settings(&rows, facts));
    keep_what_differs(&mut found, facts);
    found.identity = Some(identity(&mut client, patience));
    if place == Place::Local {
        found.facts = telemetry::server_facts(&mut client);
    }
    client.close();
    found
}

/// Omits settings with their compiled-in defaults, from a server that does not report which differ from them.
fn keep_what_differs(found: &mut ServerSettings, facts: &SettingFacts) {
    let defaults = found.values.get("version").and_then(|version| (facts.defaults)(version));
    let Some(defaults) = defaults.filter(|_| found.origins.is_empty()) else { return };
    let origins = &mut found.origins;
    found.values.retain(|name, value| match (defaults.of)(name) {
        Some(default) if default == value => defaults.recorded.contains(&name.as_str()),
        Some(_) => {
            origins.insert(name.clone(), "not compiled in".to_owned());
            true
        }
        // A fact about one machine or server.
        None => true,
    });
}

/// Name, value and origin of each row.
fn settings(rows: &Rows, facts: &SettingFacts) -> ServerSettings {
    let mut found = ServerSettings::default();
    for row in 0..rows.len(0) {
        let (Some(name), Some(value)) = (text(rows, row, 0), text(rows, row, 1)) else { continue };
        if let Some(origin) = text(rows, row, 2) {
            found.origins.insert(name.clone(), origin);
        }
        let value = if facts.may_hold_secret(&name) && !value.is_empty() { "***".to_owned() } else { value };
        found.values.insert(name, value);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_mysql_5_7_only_what_differs_is_kept() {
        let pairs = [
            ("version", "5.7.22"),
            ("innodb_buffer_pool_size", "268435456"),
            ("sync_binlog", "1"),
            ("wait_timeout", "28800"),
            ("port", "3306"),
        ];
        let values = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut found = ServerSettings { values, ..ServerSettings::default() };
        keep_what_differs(&mut found, setting_facts("mysql"));
        let names: Vec<&str> = found.values.keys().map(String::as_str).collect();
        assert_eq!(names, ["innodb_buffer_pool_size", "port", "sync_binlog", "version"]);
        assert_eq!(found.origins.keys().collect::<Vec<_>>(), ["innodb_buffer_pool_size"]);
    }

    #[test]
    fn settings_that_may_hold_secrets_are_masked() {
        let mut rows = Rows::default();
        rows.begin_set(3);
        for (name, value) in
            [("primary_conninfo", "password=x"), ("password_encryption", "md5"), ("archive_command", "")]
        {
            rows.push_text(name.as_bytes()).unwrap();
            rows.push_text(value.as_bytes()).unwrap();
            rows.push_null();
        }
        let values = settings(&rows, setting_facts("pgsql")).values.into_values().collect::<Vec<_>>();
        assert_eq!(values, ["", "md5", "***"]);
    }
}
