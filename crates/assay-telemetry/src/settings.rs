//! A product's settings: how to read them from a server, which of them matter to a comparison, and which may contain a
//! password. A product's crate has such a table.

/// What is known about the settings of one product's servers.
#[derive(Clone, Copy, Debug)]
pub struct SettingFacts {
    /// Queries for the settings that affect performance or differ from their defaults: rows of a name, a value, and the
    /// value's origin (NULL: default or unknown). The first query that is not refused is used; which one works depends
    /// on product and version. Empty: there are none. Executed once, outside the measured path.
    pub queries: &'static [&'static str],
    /// The defaults of servers of this version, if their query does not report which settings differ from them.
    pub defaults: fn(version: &str) -> Option<Defaults>,
    /// Settings that may differ between runs of one setting. The lists are deliberately short: any other difference
    /// makes two settings. docs/methodology.md explains it to users.
    pub harmless: &'static [Harmless],
    /// Settings that name folders. They do not matter if the filesystem and the drive below them are known.
    pub folders: &'static [&'static str],
    /// Whether the value of a setting with this name may contain a password; `may_hold_secret` adds what is common to
    /// all products.
    pub is_secret: fn(name: &str) -> bool,
}

/// Settings that never make a server faster or slower.
#[derive(Clone, Copy, Debug)]
pub struct Harmless {
    /// Why they do not matter, such as `names`.
    pub why: &'static str,
    /// Their names.
    pub names: &'static [&'static str],
}

/// Compiled-in defaults.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The default of a setting; `None`: there is none that is the same everywhere.
    pub of: fn(name: &str) -> Option<&'static str>,
    /// Settings worth recording even with their default.
    pub recorded: &'static [&'static str],
}

impl SettingFacts {
    /// A product whose settings are unknown.
    pub const NONE: SettingFacts =
        SettingFacts { queries: &[], defaults: |_| None, harmless: &[], folders: &[], is_secret: |_| false };

    /// Why this setting may differ between runs of one setting; `None`: it matters. `knows_drive`: whether the
    /// filesystem and the drive below the server's folders are known.
    pub fn harmless_because(&self, name: &str, knows_drive: bool) -> Option<&'static str> {
        let listed = self.harmless.iter().find(|one| one.names.contains(&name)).map(|one| one.why);
        listed.or_else(|| (knows_drive && self.folders.contains(&name)).then_some("folders on a known drive"))
    }

    /// Whether the value of this setting may contain a password, by its name.
    pub fn may_hold_secret(&self, name: &str) -> bool {
        let common = name.ends_with("password") || ["passphrase", "secret"].iter().any(|part| name.contains(part));
        common || (self.is_secret)(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_does_not_matter_if_its_drive_is_known() {
        let facts = SettingFacts {
            harmless: &[Harmless { why: "addresses", names: &["port"] }],
            folders: &["datadir"],
            ..SettingFacts::NONE
        };
        assert_eq!(facts.harmless_because("port", false), Some("addresses"));
        assert_eq!(facts.harmless_because("datadir", true), Some("folders on a known drive"));
        assert_eq!(facts.harmless_because("datadir", false), None);
        assert_eq!(facts.harmless_because("work_mem", true), None);
    }
}
