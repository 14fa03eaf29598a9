//! The supported databases: the only list of them. One row makes a product known to every command.

#![forbid(unsafe_code)]

use std::sync::LazyLock;

use assay_clickhouse::ClickHouse;
use assay_fronts::{HaProxy, PgBouncer};
use assay_lab::front::Front;
use assay_lab::product::Product;
use assay_lab::{Home, Products};
use assay_mongodb::Mongo;
use assay_mysql::{MARIADB, MYSQL};
use assay_postgres::Postgres;
use assay_seam::{Dialect, Driver};
use assay_telemetry::{Checkup, LiveQuestions, Questions, ServerQuestions, SettingFacts, StatementQuestions};

/// Products that share a driver: all of a crate.
#[derive(Debug)]
pub struct Family {
    /// How to talk to them.
    pub driver: Driver,
    /// What to write after `--db`, for hints.
    pub example: &'static str,
    /// What to ask them during a run.
    pub questions: Questions,
    /// What is known about their settings.
    pub settings: SettingFacts,
    /// Servers that can be started; empty: none.
    pub servers: &'static [&'static dyn Product],
    /// How to recognize its servers, if they wait for their clients to speak first.
    pub greeting: Option<Greeting>,
}

/// What a server that says nothing is asked, to find out whether it is of this family.
#[derive(Clone, Copy, Debug)]
pub struct Greeting {
    /// Bytes to send.
    pub say: &'static [u8],
    /// Whether these bytes are its complete answer.
    pub is_answer: fn(&[u8]) -> bool,
}

/// Every family, in the order in which it is listed to users.
pub static FAMILIES: [Family; 6] = [
    Family {
        driver: assay_postgres::DRIVER,
        example: "postgres://USER@HOST/DATABASE",
        questions: assay_postgres::QUESTIONS,
        settings: assay_postgres::SETTINGS,
        servers: &[&Postgres],
        greeting: Some(Greeting { say: assay_postgres::GREETING, is_answer: assay_postgres::is_greeting }),
    },
    Family {
        driver: assay_mysql::DRIVER,
        example: "mysql://USER@HOST/DATABASE",
        questions: assay_mysql::QUESTIONS,
        settings: assay_mysql::SETTINGS,
        servers: &[&MYSQL, &MARIADB],
        greeting: None,
    },
    Family {
        driver: assay_clickhouse::DRIVER,
        example: "clickhouse://USER@HOST/DATABASE",
        questions: assay_clickhouse::QUESTIONS,
        settings: assay_clickhouse::SETTINGS,
        servers: &[&ClickHouse],
        greeting: None,
    },
    Family {
        driver: assay_sqlite::DRIVER,
        example: "sqlite:FILE",
        questions: assay_sqlite::QUESTIONS,
        settings: assay_sqlite::SETTINGS,
        servers: &[],
        greeting: None,
    },
    Family {
        driver: assay_duckdb::DRIVER,
        example: "duckdb:FILE",
        questions: assay_duckdb::QUESTIONS,
        settings: assay_duckdb::SETTINGS,
        servers: &[],
        greeting: None,
    },
    Family {
        driver: assay_mongodb::DRIVER,
        example: "mongodb://USER@HOST/DATABASE",
        questions: assay_mongodb::QUESTIONS,
        settings: assay_mongodb::SETTINGS,
        servers: &[&Mongo::MongoDb, &Mongo::FerretDb],
        greeting: None,
    },
];

/// The database that needs no server: used if none is given.
pub const EMBEDDED: Driver = assay_sqlite::DRIVER;

/// Programs in front of servers.
const FRONTS: &[&dyn Front] = &[&PgBouncer, &HaProxy];

static PRODUCTS: LazyLock<Products> = LazyLock::new(|| Products {
    databases: FAMILIES.iter().flat_map(|family| family.servers.iter().copied()).collect(),
    fronts: FRONTS.to_vec(),
});

/// What the lab can start.
pub fn products() -> &'static Products {
    &PRODUCTS
}

/// The lab's usual folder.
pub fn home() -> Home {
    Home::usual(products())
}

/// A URL with the scheme of a product such as `postgres:15`, for what depends on the kind of database only.
pub fn url_of_product(product: &str) -> String {
    let name = product.split(':').next().unwrap_or_default();
    // An unknown product is refused when its server is started.
    let scheme = products().product(name).map_or(name, |product| product.scheme());
    format!("{scheme}://localhost/x")
}

/// The driver for URLs with this scheme, in lower case.
pub fn driver(scheme: &str) -> Option<&'static Driver> {
    drivers().find(|driver| driver.schemes.contains(&scheme))
}

/// What to write after `--db`, for hints: the database that needs no server first.
pub fn examples() -> Vec<&'static str> {
    let mut families: Vec<&Family> = FAMILIES.iter().collect();
    families.sort_by_key(|family| family.driver.dialect.name != EMBEDDED.dialect.name);
    families.into_iter().map(|family| family.example).collect()
}

/// Such a URL of a server.
pub fn server_example() -> &'static str {
    FAMILIES.iter().find(|family| !family.servers.is_empty()).map_or("", |family| family.example)
}

/// Every driver.
pub fn drivers() -> impl Iterator<Item = &'static Driver> {
    FAMILIES.iter().map(|family| &family.driver)
}

/// The dialect with this name; a plain one if there is none.
pub fn dialect(name: &'static str) -> Dialect {
    by_dialect(name).map_or(Dialect::plain(name), |family| family.driver.dialect)
}

/// What is known about the settings of a server, by its driver's name.
pub fn setting_facts(driver: &str) -> &'static SettingFacts {
    by_dialect(driver).map_or(&SettingFacts::NONE, |family| &family.settings)
}

/// What to ask a server of this product and version, as it reports them at login; nothing for unknown products.
pub fn server_questions(product: &str, version: &str) -> ServerQuestions {
    questions(product).map_or_else(ServerQuestions::default, |known| (known.server)(product, version))
}

/// What a test of a connection asks such a server; nothing for unknown products.
pub fn checkup(product: &str) -> Checkup {
    questions(product).map_or(Checkup::NONE, |known| known.checkup)
}

/// What to ask such a server about a single statement.
pub fn statement_questions(product: &str, version: &str) -> StatementQuestions {
    let unknown =
        StatementQuestions { no_counters: "the counters of this server are unknown", ..StatementQuestions::default() };
    questions(product).map_or(unknown, |known| (known.statement)(product, version))
}

/// What to ask such a server about its sessions and statements at this moment; nothing for unknown products.
pub fn live_questions(product: &str, version: &str) -> LiveQuestions {
    questions(product).map_or_else(LiveQuestions::default, |known| (known.live)(product, version))
}

fn questions(product: &str) -> Option<&'static Questions> {
    FAMILIES.iter().map(|family| &family.questions).find(|known| known.products.contains(&product))
}

fn by_dialect(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.driver.dialect.name == name)
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
            // What a plain server is asked: none of the extensions is there.
            let without = plan.without_extensions.iter().map(|(_, question)| question);
            let asked = plan.questions.iter().chain(without).flat_map(|question| &question.asked);
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
        for (product, version) in
            [("PostgreSQL", "14.2"), ("ClickHouse", "18.16.1"), ("SQLite", "3.46"), ("Other", "1")]
        {
            let questions = statement_questions(product, version);
            assert!(questions.counters.is_empty() && !questions.no_counters.is_empty(), "{product}");
        }
        assert!(!statement_questions("PostgreSQL", "15.18 (Debian 15.18-0+deb12u1)").counters.is_empty());
    }
}
