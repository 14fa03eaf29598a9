//! The kinds of servers, where their binaries are, and what to do if they are missing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use assay_lab::{Description, Home, Wanted};
use assay_products::products;

use crate::{absent, cache};

/// A kind of server that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The distribution's PostgreSQL, the newest that is installed (Debian 12: 15).
    Postgres,
    /// PostgreSQL 18.6 from the Maven repository.
    Postgres18,
    /// The distribution's MariaDB (Debian 12: 10.11).
    MariaDb,
    /// MySQL 8.0.31 from the Maven repository.
    MySql,
    /// The distribution's PgBouncer. It has no data of its own: see `Server::pgbouncer`.
    PgBouncer,
}

impl Kind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Kind; 5] = [Kind::Postgres, Kind::Postgres18, Kind::MariaDb, Kind::MySql, Kind::PgBouncer];

    /// A word for file names and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Postgres => "postgres",
            Kind::Postgres18 => "postgres18",
            Kind::MariaDb => "mariadb",
            Kind::MySql => "mysql",
            Kind::PgBouncer => "pgbouncer",
        }
    }

    /// Whether it can be started here; if not, what is missing and how to get it.
    pub fn available(self) -> Result<(), String> {
        let needed = match self {
            Kind::Postgres => vec!["postgres", "initdb", "psql"],
            Kind::Postgres18 => vec!["postgres", "initdb"],
            Kind::MariaDb => vec!["mariadbd", "mariadb-install-db", "mariadb"],
            Kind::MySql => vec!["mysqld"],
            Kind::PgBouncer => vec!["pgbouncer"],
        };
        // Administration uses the distribution's clients.
        let client = match self {
            Kind::Postgres18 | Kind::PgBouncer => Some(Kind::Postgres.program("psql")),
            Kind::MySql => Some(Kind::MariaDb.program("mariadb")),
            Kind::Postgres | Kind::MariaDb => None,
        };
        match needed.iter().map(|name| self.program(name)).chain(client).find(|path| !path.is_file()) {
            None => Ok(()),
            Some(path) => Err(format!(
                "{} cannot be started here: {} is missing (`cargo xtask install` gets what the tests need)",
                self.name(),
                path.display()
            )),
        }
    }

    /// Whether it can be started here, for a test to continue or return; see `absent`.
    pub fn present(self) -> bool {
        match self.available() {
            Ok(()) => true,
            Err(why) => absent(&why),
        }
    }

    /// The lab's name for it; `None` for one without data of its own.
    pub fn wanted(self) -> Option<Wanted> {
        let text = match self {
            Kind::Postgres => "postgres",
            Kind::Postgres18 => "postgres:18.6",
            Kind::MariaDb => "mariadb",
            Kind::MySql => "mysql:8.0.31",
            Kind::PgBouncer => return None,
        };
        Some(text.parse().expect("it is well written"))
    }

    /// Where a program of this kind is, whether it exists or not.
    pub fn program(self, name: &str) -> PathBuf {
        let fetched = |folder: &str| cache().join("binaries").join(folder).join("bin").join(name);
        match self {
            Kind::Postgres18 => fetched("postgres-18.6"),
            Kind::MySql => fetched("mysql-8.0.31"),
            Kind::Postgres => debian_postgres().join(name),
            // The service's folder is not in an ordinary user's PATH.
            Kind::MariaDb | Kind::PgBouncer => {
                let places = [Path::new("/usr/sbin"), Path::new("/usr/bin")];
                let found = places.iter().map(|place| place.join(name)).find(|path| path.is_file());
                found.unwrap_or_else(|| places[0].join(name))
            }
        }
    }

    /// The server's own version number, such as `15.14`, `10.11.14` or `8.0.31`.
    pub fn version(self) -> Result<String> {
        let program = self.program(match self {
            Kind::Postgres | Kind::Postgres18 => "postgres",
            Kind::MariaDb => "mariadbd",
            Kind::MySql => "mysqld",
            Kind::PgBouncer => "pgbouncer",
        });
        let output = Command::new(&program).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = regex::Regex::new(r"\d+(\.\d+)+").expect("a valid expression").find(&text);
        number.map(|found| found.as_str().to_owned()).with_context(|| format!("{program:?} said {text:?} to --version"))
    }
}

/// The binaries of the newest PostgreSQL installed the Debian way, one folder per major version.
fn debian_postgres() -> PathBuf {
    let root = Path::new("/usr/lib/postgresql");
    let versions = std::fs::read_dir(root).into_iter().flatten().flatten();
    let newest = versions
        .filter(|entry| entry.path().join("bin/postgres").is_file())
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .max();
    root.join(newest.unwrap_or(15).to_string()).join("bin")
}

/// Products with versions to start, such as `postgres:9.6.24`: the oldest and the newest of each product in the
/// catalog, which `cargo xtask install` fetches; with `ASSAY_TEST_MATRIX` all of them. Missing ones are reported and
/// omitted.
pub fn versions() -> Vec<String> {
    let matrix = std::env::var_os("ASSAY_TEST_MATRIX").is_some();
    let here = |wanted: &String| {
        let (product, version) = wanted.split_once(':').expect("a version is named");
        let fetched = cache().join("binaries").join(format!("{product}-{version}"));
        matrix || fetched.exists() || absent(&format!("{wanted} is missing (`cargo xtask install` fetches it)"))
    };
    catalog(|place, last| matrix || place == 0 || place == last).into_iter().filter(here).collect()
}

/// Those that are in the Maven repository but not on this machine, with megabytes.
pub fn missing_versions() -> Vec<(String, u32)> {
    let all = products()
        .databases
        .iter()
        .flat_map(|product| product.catalog().iter().map(move |artifact| (product, artifact)));
    let named = all.map(|(product, artifact)| (format!("{}:{}", product.name(), artifact.version), artifact.megabytes));
    let wanted = catalog(|place, last| place == 0 || place == last);
    let missing = |wanted: &str| !cache().join("binaries").join(wanted.replace(':', "-")).exists();
    named.filter(|(name, _)| wanted.contains(name) && missing(name)).collect()
}

/// Fetches them.
pub fn fetch_versions() -> Result<()> {
    for (wanted, _) in missing_versions() {
        let description = Description::of(wanted.parse().expect("it is well written"));
        let found = description.find_binaries(&Home::at(cache(), products()), &|words| println!("{words}"));
        found.map_err(|fault| anyhow!("{fault}"))?;
    }
    Ok(())
}

/// From each product's catalog, in which the oldest version comes first, those selected by position.
fn catalog(chosen: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let mut all = Vec::new();
    for product in &products().databases {
        let versions = product.catalog();
        let places = (0..versions.len()).filter(|place| chosen(*place, versions.len() - 1));
        all.extend(places.map(|place| format!("{}:{}", product.name(), versions[place].version)));
    }
    all
}
