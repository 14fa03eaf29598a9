//! Which file to open, and how: the URL `sqlite:FILE?parameter=value&…`.
//!
//! Parameters are the pragmas that change what a benchmark measures, each with its allowed values; anything else is
//! refused. A pragma's text is never built from user input.

use std::path::{Path, PathBuf};

use assay_seam::{ConnectOptions, FileUrl, Nanos, TargetError};

/// The database file, and how every connection to it opens it.
#[derive(Debug)]
pub(crate) struct FileSettings {
    /// As the user wrote it, decoded.
    pub(crate) path: String,
    /// As given or by default, in the order of `PARAMETERS`.
    parameters: Vec<(&'static str, PragmaValue)>,
    /// How long one operation waits for a lock before it fails.
    pub(crate) busy_timeout: Nanos,
    /// Keep statements prepared, or prepare them for every execution.
    pub(crate) prepared: bool,
    /// Run on every new connection.
    pub(crate) session_sql: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PragmaValue {
    Word(&'static str),
    Number(i64),
}

/// The allowed values of a parameter.
enum Allowed {
    Words(&'static [&'static str]),
    Numbers(i64, i64),
}

const BUSY_TIMEOUT: &str = "busy_timeout";
const BUSY_TIMEOUT_DEFAULT: Nanos = Nanos::from_secs(5);

/// Every parameter, in the order they are applied. Source: https://sqlite.org/pragma.html.
const PARAMETERS: &[(&str, Allowed)] = &[
    // Milliseconds; ours, not the pragma: see the head of lib.rs.
    (BUSY_TIMEOUT, Allowed::Numbers(0, 3_600_000)),
    ("page_size", Allowed::Numbers(512, 65_536)),
    ("journal_mode", Allowed::Words(&["wal", "delete", "truncate", "persist", "memory", "off"])),
    ("synchronous", Allowed::Words(&["off", "normal", "full", "extra"])),
    // Pages; negative: KiB.
    ("cache_size", Allowed::Numbers(i32::MIN as i64, i32::MAX as i64)),
    // Bytes.
    ("mmap_size", Allowed::Numbers(0, 1 << 40)),
    ("temp_store", Allowed::Words(&["default", "file", "memory"])),
    // Pages; 0 switches automatic checkpoints off.
    ("wal_autocheckpoint", Allowed::Numbers(0, i32::MAX as i64)),
    ("foreign_keys", Allowed::Words(&["on", "off"])),
];

impl FileSettings {
    /// Parses a `sqlite:` URL. An error names the part that is wrong.
    pub(crate) fn read(url: &str, options: &ConnectOptions) -> Result<FileSettings, TargetError> {
        let FileUrl { path, parameters } =
            FileUrl::parse(url, "sqlite", "bench.db", "would give every session a database of its own")?;
        let mut values: Vec<Option<PragmaValue>> = PARAMETERS.iter().map(|_| None).collect();
        for (name, value) in parameters {
            let Some(index) = PARAMETERS.iter().position(|(known, _)| *known == name) else {
                let known: Vec<&str> = PARAMETERS.iter().map(|(known, _)| *known).collect();
                return Err(refuse(
                    format!("sqlite has no parameter {name}"),
                    Some(format!("the parameters are {}", known.join(", "))),
                ));
            };
            values[index] = Some(PARAMETERS[index].1.read(&name, &value)?);
        }
        for ((name, _), value) in PARAMETERS.iter().zip(&mut values) {
            match *name {
                "journal_mode" => value.get_or_insert(PragmaValue::Word("wal")),
                "synchronous" => value.get_or_insert(PragmaValue::Word("normal")),
                _ => continue,
            };
        }
        let parameters: Vec<_> =
            PARAMETERS.iter().zip(&values).filter_map(|((name, _), value)| Some((*name, (*value)?))).collect();
        let busy_timeout = parameters.iter().find_map(|parameter| match *parameter {
            (BUSY_TIMEOUT, PragmaValue::Number(millis)) => Some(Nanos::from_millis(millis.unsigned_abs())),
            _ => None,
        });
        Ok(FileSettings {
            path,
            parameters,
            busy_timeout: busy_timeout.unwrap_or(BUSY_TIMEOUT_DEFAULT),
            prepared: options.prepared,
            session_sql: options.session_sql.clone(),
        })
    }

    /// The file name for SQLite: never a `file:` URI, `:memory:` or an empty name, which mean something else.
    pub(crate) fn file(&self) -> PathBuf {
        Path::new(".").join(&self.path)
    }

    /// The URL that opens the same file in the same way.
    pub(crate) fn url(&self) -> String {
        let parameters = self.parameters.iter().map(|(name, value)| match value {
            PragmaValue::Word(word) => (*name, (*word).to_owned()),
            PragmaValue::Number(number) => (*name, number.to_string()),
        });
        FileUrl::shown("sqlite", &self.path, parameters)
    }

    /// What to set on a new connection, in this order: `page_size` before `journal_mode`, which creates the file.
    pub(crate) fn pragmas(&self) -> impl Iterator<Item = (&'static str, PragmaValue)> {
        self.parameters.iter().copied().filter(|(name, _)| *name != BUSY_TIMEOUT)
    }
}

impl Allowed {
    fn read(&self, name: &str, value: &str) -> Result<PragmaValue, TargetError> {
        match *self {
            Allowed::Words(words) => {
                let found = words.iter().find(|word| word.eq_ignore_ascii_case(value));
                found.map(|word| PragmaValue::Word(word)).ok_or_else(|| {
                    refuse(format!("{name} cannot be {value:?}"), Some(format!("it may be {}", words.join(", "))))
                })
            }
            Allowed::Numbers(min, max) => {
                let number = value.parse().ok().filter(|number| (min..=max).contains(number));
                number.map(PragmaValue::Number).ok_or_else(|| {
                    refuse(
                        format!("{name} cannot be {value:?}"),
                        Some(format!("it may be a number from {min} to {max}")),
                    )
                })
            }
        }
    }
}

fn refuse(message: String, hint: Option<String>) -> TargetError {
    TargetError { message, hint, is_missing: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(url: &str) -> Result<String, TargetError> {
        FileSettings::read(url, &ConnectOptions::default()).map(|settings| settings.url())
    }

    #[track_caller]
    fn refused(url: &str, message: &str, hint: &str) {
        let error = display(url).unwrap_err();
        assert_eq!((error.message.as_str(), error.hint.as_deref().unwrap_or_default()), (message, hint));
    }

    #[test]
    fn paths_are_taken_as_written_and_settings_shown_with_their_defaults() {
        let defaults = "journal_mode=wal&synchronous=normal";
        assert_eq!(display("sqlite:bench.db").unwrap(), format!("sqlite:bench.db?{defaults}"));
        assert_eq!(display("sqlite:///tmp/a.db").unwrap(), format!("sqlite:/tmp/a.db?{defaults}"));
        assert_eq!(display("sqlite:/tmp/a%20%3F.db").unwrap(), format!("sqlite:/tmp/a%20%3F.db?{defaults}"));
        assert_eq!(
            display("sqlite:x?cache_size=-65536&synchronous=FULL&journal_mode=delete&busy_timeout=10").unwrap(),
            "sqlite:x?busy_timeout=10&journal_mode=delete&synchronous=full&cache_size=-65536"
        );
    }

    #[test]
    fn the_url_it_shows_opens_the_same_database() {
        let url = display("sqlite:a%25b%3Fc?page_size=8192").unwrap();
        assert_eq!(display(&url).unwrap(), url);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_advice() {
        let example = "write sqlite:bench.db or sqlite:/var/tmp/bench.db";
        refused("sqlite:", "a sqlite: URL needs a file", example);
        refused("sqlite:?synchronous=off", "a sqlite: URL needs a file", example);
        refused("sqlite://host/x", "a sqlite: URL has no host", example);
        refused(
            "sqlite::memory:",
            "sqlite::memory: would give every session a database of its own",
            "for a database in memory, use a file such as sqlite:/dev/shm/bench.db",
        );
        refused("sqlite:x?synchronous=maybe", "synchronous cannot be \"maybe\"", "it may be off, normal, full, extra");
        refused("sqlite:x?mmap_size=-1", "mmap_size cannot be \"-1\"", "it may be a number from 0 to 1099511627776");
        refused("sqlite:x%4", "\"x%4\" has a % without two hexadecimal digits", "write %25 for %");
        refused("sqlite:x%ff", "\"x%ff\" is not UTF-8 once decoded", "");
        refused(
            "sqlite:x?sync=full",
            "sqlite has no parameter sync",
            "the parameters are busy_timeout, page_size, journal_mode, synchronous, cache_size, mmap_size, temp_store, \
             wal_autocheckpoint, foreign_keys",
        );
    }
}
