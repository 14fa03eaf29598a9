//! Opens a database by its URL, with a hint if the URL is wrong.

use assay_process::diagnostics::{Trouble, nearest};
use assay_process::surroundings::ThisMachine;
use assay_process::url_text;
use assay_products::{drivers, examples};
use assay_seam::{ConnectOptions, Database, Driver};

/// The driver for a URL, chosen by its scheme.
pub fn driver_of(url: &str) -> Result<&'static Driver, Trouble> {
    let schemes = || drivers().flat_map(|driver| driver.schemes.iter().copied());
    let all = || schemes().map(|scheme| format!("{scheme}:")).collect::<Vec<_>>().join(", ");
    if url.trim().is_empty() {
        return Err(Trouble::usage("--db: the URL is empty").hint(format!("use {}", examples().join(", "))));
    }
    let Some((scheme, _)) = url.split_once(':') else {
        return Err(Trouble::usage(format!("{url} is neither a URL of a database nor the name of one"))
            .detail(format!("known: {}", all()))
            .hint(format!("use {}", examples().join(", ")))
            .hint("`assay db list` shows the names"));
    };
    let scheme = scheme.to_ascii_lowercase();
    if let Some(driver) = assay_products::driver(&scheme) {
        return Ok(driver);
    }
    let shown = url_text::masked(url);
    if shown != url && !url.contains("://") {
        return Err(Trouble::usage(format!("--db {shown} does not start with the database product"))
            .detail(format!("known: {}", all()))
            .hint(format!("use {}", examples().join(", "))));
    }
    let trouble = Trouble::usage(format!("unknown database product {scheme} in --db {shown}"))
        .detail(format!("known: {}", all()));
    Err(match nearest(&scheme, schemes()) {
        Some(near) => trouble.hint(format!("did you mean {near}:?")),
        None => trouble,
    })
}

/// Parses a database URL, completed from the environment and the user's files.
pub fn open(url: &str, options: &ConnectOptions) -> Result<Box<dyn Database>, Trouble> {
    (driver_of(url)?.open)(url, options, &ThisMachine).map_err(Trouble::from)
}
