//! The supported databases: the only list of them.

use assay_seam::{ConnectOptions, Database, Dialect, Driver};

use crate::diagnostics::{Trouble, nearest};
use crate::surroundings::ThisMachine;
use crate::url_text;

/// Every kind of database, in the order it is listed to users.
pub const DRIVERS: &[Driver] = &[assay_postgres::DRIVER, assay_mysql::DRIVER, assay_sqlite::DRIVER];

/// The database that needs no server: used if none is given.
pub const EMBEDDED: Driver = assay_sqlite::DRIVER;

/// What to write after `--db`, for hints.
pub const EXAMPLES: [&str; 3] = ["sqlite:FILE", "postgres://USER@HOST/DATABASE", "mysql://USER@HOST/DATABASE"];

/// The driver for a URL, chosen by its scheme.
pub fn driver_of(url: &str) -> Result<&'static Driver, Trouble> {
    let schemes = || DRIVERS.iter().flat_map(|driver| driver.schemes.iter().copied());
    let all = || schemes().map(|scheme| format!("{scheme}:")).collect::<Vec<_>>().join(", ");
    let Some((scheme, _)) = url.split_once(':') else {
        return Err(Trouble::usage("--db needs a URL that starts with the database product")
            .detail(format!("known: {}", all()))
            .hint(format!("use {}", EXAMPLES.join(", "))));
    };
    let scheme = scheme.to_ascii_lowercase();
    if let Some(driver) = DRIVERS.iter().find(|driver| driver.schemes.contains(&scheme.as_str())) {
        return Ok(driver);
    }
    let shown = url_text::masked(url);
    if shown != url && !url.contains("://") {
        return Err(Trouble::usage(format!("--db {shown} does not start with the database product"))
            .detail(format!("known: {}", all()))
            .hint(format!("use {}", EXAMPLES.join(", "))));
    }
    let trouble = Trouble::usage(format!("unknown database product {scheme} in --db {shown}"))
        .detail(format!("known: {}", all()));
    Err(match nearest(&scheme, schemes()) {
        Some(near) => trouble.hint(format!("did you mean {near}:?")),
        None => trouble,
    })
}

/// The kind of database with this name; a plain one if there is none.
pub fn dialect(name: &'static str) -> Dialect {
    let known = DRIVERS.iter().find(|driver| driver.dialect.name == name);
    known.map_or(Dialect::plain(name), |driver| driver.dialect)
}

/// Parses a database URL, completed from the environment and the user's files.
pub fn open(url: &str, options: &ConnectOptions) -> Result<Box<dyn Database>, Trouble> {
    (driver_of(url)?.open)(url, options, &ThisMachine).map_err(Trouble::from)
}
