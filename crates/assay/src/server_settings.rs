//! Reads a server's settings, for the record.
//!
//! On one connection of its own, after the run, so that it takes nothing from the measured sessions: no connection slot
//! and no time. Not being told is no error: the record then has no settings.

use std::collections::BTreeMap;

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_record::Place;
use assay_seam::{Nanos, Rows};

use crate::client::{Client, text};
use crate::telemetry;

/// A server that has not answered by then is not waited for.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// What a server is set to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// By name: what matters to performance, and what differs from its default.
    pub values: BTreeMap<String, String>,
    /// Where values that differ came from.
    pub origins: BTreeMap<String, String>,
    /// Facts of a local server's process and drive.
    pub facts: BTreeMap<String, String>,
}

/// The settings of one server; none when it would not say.
pub fn read(target: &Target, place: Place) -> Settings {
    let queries = target.database.settings_queries();
    if queries.is_empty() {
        return Settings::default();
    }
    let Ok(mut client) = Client::open(target, Clock::start(), PATIENCE) else { return Settings::default() };
    let rows = queries.iter().find_map(|sql| client.ask(sql, PATIENCE).ok());
    let mut found = rows.map_or_else(Settings::default, |rows| settings(&rows));
    if place == Place::Local {
        found.facts = telemetry::server_facts(&mut client);
    }
    client.close();
    found
}

/// Name, value and origin of each row.
fn settings(rows: &Rows) -> Settings {
    let mut found = Settings::default();
    for row in 0..rows.len(0) {
        let (Some(name), Some(value)) = (text(rows, row, 0), text(rows, row, 1)) else { continue };
        if let Some(origin) = text(rows, row, 2) {
            found.origins.insert(name.clone(), origin);
        }
        let value = if may_hold_secrets(&name) && !value.is_empty() { "***".to_owned() } else { value };
        found.values.insert(name, value);
    }
    found
}

/// Connection strings, and shell commands in which people put passwords.
fn may_hold_secrets(name: &str) -> bool {
    let inside = ["conninfo", "passphrase", "secret"];
    name.ends_with("password") || name.ends_with("_command") || inside.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let values = settings(&rows).values.into_values().collect::<Vec<_>>();
        assert_eq!(values, ["", "md5", "***"]);
    }
}
