//! The servers of a plan: the result of `servers`, opened and resolved.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_engine::{NeededEndpoints, Target, Unresolved};
use assay_io::Address;
use assay_seam::{Class, ConnectOptions, Endpoint, StatementError, Surroundings, dry, unusable};

use super::process::Process;
use crate::servers::refusal;
use crate::{Options, servers};

/// The servers to which connections are assigned, those of each driver in order. A script may name any driver; errors
/// in a driver's options are reported when it connects.
pub(super) fn targets(process: &dyn Process, options: &Options) -> Vec<Target> {
    if options.is_on("mysql_compression") && !["pgsql", "sqlite"].contains(&options.text("db_driver")) {
        process.complain("WARNING: --mysql-compression is not honored: nothing is compressed\n");
    }
    ["mysql", "pgsql", "sqlite"].into_iter().flat_map(|driver| targets_of(process, driver, options)).collect()
}

fn targets_of(process: &dyn Process, driver: &'static str, options: &Options) -> Vec<Target> {
    if driver == "mysql" && options.is_on("mysql_dry_run") {
        return vec![Target { database: Arc::from(dry::database("mysql")), addresses: Vec::new(), tls: Vec::new() }];
    }
    let connect = ConnectOptions {
        prepared: options.text("db_ps_mode") != "disable",
        unnamed: false,
        session_sql: Vec::new(),
        application_name: "",
        notices: None,
    };
    let target = |url: Result<String, StatementError>| url.and_then(|url| target(process, driver, &url, &connect));
    let unusable = |error| Target {
        database: Arc::from(unusable::database(driver, error)),
        addresses: Vec::new(),
        tls: Vec::new(),
    };
    let urls = servers::urls(driver, options, process.surroundings());
    urls.into_iter().map(|url| target(url).unwrap_or_else(unusable)).collect()
}

fn target(
    process: &dyn Process,
    driver: &'static str,
    url: &str,
    connect: &ConnectOptions,
) -> Result<Target, StatementError> {
    // The C client of MySQL does not read `~/.my.cnf` by default; libpq has its variables and its files.
    let all = process.surroundings();
    let surroundings: &dyn Surroundings = if driver == "mysql" { &PasswordOnly(all) } else { all };
    let database =
        process.open(url, connect, surroundings).map_err(|message| refusal(driver, Class::Other, message))?;
    Target::resolve(database, NeededEndpoints::Any, Address::resolve).map_err(|unresolved| match unresolved {
        Unresolved::Tls(error) => refusal(driver, Class::Encryption, error.message),
        Unresolved::Address(Endpoint::Tcp { host, .. }, _) if driver == "mysql" => {
            refusal(driver, Class::Host, format!("Unknown server host '{host}' (-2)"))
        }
        Unresolved::Address(_, error) => refusal(driver, Class::Host, error.message),
    })
}

/// No files, and only the variable with the password.
struct PasswordOnly<'a>(&'a dyn Surroundings);

impl Surroundings for PasswordOnly<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.variable(name).filter(|_| name == "MYSQL_PWD")
    }

    fn read(&self, _: &Path) -> Option<Vec<u8>> {
        None
    }

    fn mode(&self, _: &Path) -> Option<u32> {
        None
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn user(&self) -> Option<String> {
        None
    }
}
