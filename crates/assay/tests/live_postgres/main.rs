//! Whole commands against real PostgreSQL servers of two versions, PgBouncer, and SQLite where it has the same
//! behavior.
//!
//! Each test has its own database on a server of this process; tests that stop or reconfigure a server start their own.
//! Tests wait for output or a state, never for a fixed time.

mod bisections;
mod causes;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the other whole-command tests: each uses what it needs")]
mod common;
mod duels;
mod errors;
mod fleet;
mod generator;
mod logins;
mod outages;
mod repeats;
mod scripts;
mod several;
mod telemetry;
mod vanished;
mod workloads;

use testkit::Kind;

/// The oldest and the newest version available to tests.
const VERSIONS: [Kind; 2] = [Kind::Postgres, Kind::Postgres18];

/// Checks every version that can be started here. Expected text is the same for all.
fn on_every_version(check: impl FnMut(Kind)) {
    insta::allow_duplicates! { versions().for_each(check) }
}

/// Those that can be started here.
fn versions() -> impl Iterator<Item = Kind> {
    VERSIONS.into_iter().filter(|kind| kind.present())
}
