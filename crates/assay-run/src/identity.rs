//! What a record says of its run's identity besides what follows from its other fields: server settings that may differ
//! between trials of one setting. They name things and folders, or count, and none makes a server faster or slower; a
//! product's crate lists them.

use assay_record::{Attribute, AttributeScope, Record};
use assay_telemetry::SettingFacts;

/// Writes down what distinguishes the run, before its record is written for the last time.
pub fn write_down(record: &mut Record) {
    note_harmless(record);
    record.identify();
}

/// Completes a record of an earlier version, which only lists the settings.
pub fn complete(record: &mut Record) {
    if record.identity.is_empty() {
        note_harmless(record);
    }
}

fn note_harmless(record: &mut Record) {
    let of = record.manifest.targets.len();
    for (place, server) in record.environment.servers.iter().enumerate() {
        let facts = record.manifest.targets.get(place).map_or(&SettingFacts::NONE, |url| setting_facts(url));
        let knows_drive = server.facts.contains_key("filesystem");
        let is_harmless = |name: &&String| facts.harmless_because(name, knows_drive).is_some();
        let note = |name: &String| {
            let unknown = Attribute::unknown(AttributeScope::Server, name);
            Attribute { matters: false, ..unknown.numbered(place, of) }
        };
        record.identity.extend(server.settings.keys().filter(is_harmless).map(note));
    }
}

/// What is known about the settings of the server at this URL.
fn setting_facts(url: &str) -> &'static SettingFacts {
    let driver = url.split_once(':').and_then(|(scheme, _)| assay_products::driver(scheme));
    driver.map_or(&SettingFacts::NONE, |driver| assay_products::setting_facts(driver.dialect.name))
}

#[cfg(test)]
mod tests {
    use assay_record::RecordedServer;

    use super::*;

    #[test]
    fn settings_that_only_name_things_do_not_distinguish_runs() {
        let record = |port: &str, folder: &str, filesystem: Option<&str>| {
            let mut record = Record::default();
            record.manifest.targets = vec!["postgres://db".to_owned()];
            let pairs = [("port", port), ("data_directory", folder), ("work_mem", "4MB")];
            let settings = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let facts = filesystem.map(|name| ("filesystem".to_owned(), name.to_owned())).into_iter().collect();
            record.environment.servers = vec![RecordedServer { settings, facts, ..RecordedServer::default() }];
            record
        };
        // As an earlier version left it, and as it is written now.
        for written in [false, true] {
            let differ = |one: Record, other: Record| {
                let findings = [one, other].map(|mut record| {
                    if written {
                        write_down(&mut record);
                    }
                    complete(&mut record);
                    assay_report::findings(&record)
                });
                let [one, other] = findings;
                let all = assay_report::differences(&[one], &[other]);
                all.into_iter().map(|one| one.what).collect::<Vec<_>>()
            };
            assert!(differ(record("5432", "/a", Some("ext4")), record("5433", "/b", Some("ext4"))).is_empty());
            // If the drives are unknown, two folders may be on different ones.
            assert_eq!(differ(record("5432", "/a", None), record("5433", "/b", None)), ["server data_directory"]);
        }
    }
}
