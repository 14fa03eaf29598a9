//! Which file to open, and how: the URL `duckdb:FILE?parameter=value&…`.

use assay_seam::{ConnectOptions, FileUrl, Surroundings, TargetError};

use crate::library::VARIABLE;

/// The database file, and how it is opened.
#[derive(Debug)]
pub(crate) struct FileSettings {
    /// As the user wrote it, decoded.
    pub(crate) path: String,
    /// DuckDB's configuration, in the order of `PARAMETERS`.
    pub(crate) configuration: Vec<(&'static str, String)>,
    /// The shared library; `None`: the one that the system finds.
    pub(crate) library: Option<String>,
    /// Keep statements prepared, or prepare them for every execution.
    pub(crate) prepared: bool,
    /// Run on every new connection.
    pub(crate) session_sql: Vec<String>,
}

/// DuckDB's own settings, with an example each. It checks their values itself. Source: DuckDB's documentation,
/// "Configuration".
const PARAMETERS: [(&str, &str); 5] = [
    ("threads", "threads=2"),
    ("memory_limit", "memory_limit=4GB"),
    ("temp_directory", "temp_directory=/var/tmp"),
    ("access_mode", "access_mode=read_only"),
    (DOWNLOADS, "autoinstall_known_extensions=true"),
];

/// Whether DuckDB downloads extensions that a statement needs. Off unless the URL says otherwise: a benchmark that
/// loads code from the network measures something else the next time.
pub(crate) const DOWNLOADS: &str = "autoinstall_known_extensions";

const LIBRARY: &str = "library";

impl FileSettings {
    /// Parses a `duckdb:` URL. An error names the part that is wrong.
    pub(crate) fn read(
        url: &str,
        options: &ConnectOptions,
        surroundings: &dyn Surroundings,
    ) -> Result<FileSettings, TargetError> {
        let FileUrl { path, parameters } =
            FileUrl::parse(url, "duckdb", "bench.duckdb", "would be empty in each command")?;
        let mut values: [Option<String>; PARAMETERS.len()] = Default::default();
        let mut library = surroundings.variable(VARIABLE).filter(|path| !path.is_empty());
        for (name, value) in parameters {
            if name == LIBRARY {
                library = Some(value).filter(|path| !path.is_empty());
                continue;
            }
            let Some(index) = PARAMETERS.iter().position(|(known, _)| *known == name) else {
                let known: Vec<&str> = PARAMETERS.iter().map(|(known, _)| *known).chain([LIBRARY]).collect();
                let hint = format!("the parameters are {}", known.join(", "));
                return Err(refuse(format!("duckdb has no parameter {name}"), Some(hint)));
            };
            if value.is_empty() || value.contains('\0') {
                let hint = format!("write for example {}", PARAMETERS[index].1);
                return Err(refuse(format!("{name} needs a value"), Some(hint)));
            }
            values[index] = Some(value);
        }
        let configuration =
            PARAMETERS.iter().zip(values).filter_map(|((name, _), value)| Some((*name, value?))).collect();
        let session_sql = options.session_sql.clone();
        Ok(FileSettings { path, configuration, library, prepared: options.prepared, session_sql })
    }

    /// The URL that opens the same file in the same way. It does not name the library: records have DuckDB's version.
    pub(crate) fn url(&self) -> String {
        let parameters = self.configuration.iter().map(|(name, value)| (*name, value.clone()));
        FileUrl::shown("duckdb", &self.path, parameters)
    }
}

fn refuse(message: String, hint: Option<String>) -> TargetError {
    TargetError { message, hint, is_missing: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_seam::NoSurroundings;

    fn display(url: &str) -> Result<String, TargetError> {
        FileSettings::read(url, &ConnectOptions::default(), &NoSurroundings).map(|settings| settings.url())
    }

    #[track_caller]
    fn refused(url: &str, message: &str, hint: &str) {
        let error = display(url).unwrap_err();
        assert_eq!((error.message.as_str(), error.hint.as_deref().unwrap_or_default()), (message, hint));
    }

    #[test]
    fn the_url_it_shows_opens_the_same_database() {
        for (written, shown) in [
            ("duckdb:bench.duckdb", "duckdb:bench.duckdb"),
            ("duckdb:///tmp/a%20b", "duckdb:/tmp/a%20b"),
            ("duckdb:x?library=/lib/l.so&memory_limit=1GB&threads=2", "duckdb:x?threads=2&memory_limit=1GB"),
        ] {
            assert_eq!(display(written).unwrap(), shown);
            assert_eq!(display(shown).unwrap(), shown);
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_advice() {
        let example = "write duckdb:bench.duckdb or duckdb:/var/tmp/bench.duckdb";
        refused("duckdb:", "a duckdb: URL needs a file", example);
        refused("duckdb://host/x", "a duckdb: URL has no host", example);
        refused("duckdb:x?threads=", "threads needs a value", "write for example threads=2");
        refused(
            "duckdb::memory:",
            "duckdb::memory: would be empty in each command",
            "for a database in memory, use a file such as duckdb:/dev/shm/bench.duckdb",
        );
        refused(
            "duckdb:x?cache=1",
            "duckdb has no parameter cache",
            "the parameters are threads, memory_limit, temp_directory, access_mode, autoinstall_known_extensions, library",
        );
    }
}
