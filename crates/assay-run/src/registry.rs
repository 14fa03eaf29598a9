//! The supported databases: the only list of their drivers and questions.

use assay_process::diagnostics::{Trouble, nearest};
use assay_process::surroundings::ThisMachine;
use assay_process::url_text;
use assay_seam::{ConnectOptions, Database, Dialect, Driver};
use assay_telemetry::{Questions, ServerQuestions, StatementQuestions};

/// Every kind of database, in the order it is listed to users.
pub const DRIVERS: &[Driver] = &[assay_postgres::DRIVER, assay_mysql::DRIVER, assay_sqlite::DRIVER];

/// What to ask each of them.
const QUESTIONS: &[Questions] = &[assay_postgres::QUESTIONS, assay_mysql::QUESTIONS, assay_sqlite::QUESTIONS];

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

/// What to ask a server of this product and version, as it reports them at login; nothing for unknown products.
pub fn server_questions(product: &str, version: &str) -> ServerQuestions {
    questions(product).map_or_else(ServerQuestions::default, |known| (known.server)(product, version))
}

/// What to ask such a server about a single statement.
pub fn statement_questions(product: &str, version: &str) -> StatementQuestions {
    let unknown =
        StatementQuestions { no_counters: "the counters of this server are unknown", ..StatementQuestions::default() };
    questions(product).map_or(unknown, |known| (known.statement)(product, version))
}

fn questions(product: &str) -> Option<&'static Questions> {
    QUESTIONS.iter().find(|known| known.products.contains(&product))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_of_every_version_asks_for_metrics_that_have_a_name() {
        let postgres = ["9.6.24", "10.23", "13.23", "14.24", "15.19 (Debian 15)", "16.15", "17.11", "18.6"];
        let versions = postgres.map(|version| ("PostgreSQL", version)).into_iter().chain([
            ("MySQL", "5.7.22"),
            ("MySQL", "8.0.12"),
            ("MySQL", "8.0.31"),
            ("MariaDB", "10.2.11-MariaDB"),
            ("MariaDB", "10.11.5-MariaDB"),
            ("MariaDB", "11.4.5-MariaDB"),
        ]);
        for (product, version) in versions {
            let plan = server_questions(product, version);
            assert!(!plan.questions.is_empty(), "{product} {version}");
            let asked = plan.questions.iter().flat_map(|question| &question.asked);
            let metrics: Vec<&str> = asked.map(|asked| asked.metric).collect();
            for metric in &metrics {
                assert!(assay_telemetry::metric(metric).is_some(), "{metric}");
                let times = metrics.iter().filter(|other| *other == metric).count();
                assert_eq!(times, 1, "{product} {version} {metric}");
            }
            for needed in ["log_bytes", "buffer_misses", "checkpoint_age_bytes", "active_sessions", "data_bytes"] {
                assert!(metrics.contains(&needed), "{product} {version} {needed}");
            }
        }
    }

    #[test]
    fn servers_without_counters_say_why() {
        for (product, version) in [("PostgreSQL", "14.2"), ("SQLite", "3.46"), ("Other", "1")] {
            let questions = statement_questions(product, version);
            assert!(questions.counters.is_empty() && !questions.no_counters.is_empty(), "{product}");
        }
        assert!(!statement_questions("PostgreSQL", "15.18 (Debian 15.18-0+deb12u1)").counters.is_empty());
    }
}
