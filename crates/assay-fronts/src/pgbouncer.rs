//! PgBouncer in front of one PostgreSQL server, in transaction mode by default.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use assay_lab::front::{Front, Place};
use assay_lab::version::Version;

/// The pooler.
#[derive(Debug)]
pub struct PgBouncer;

impl Front for PgBouncer {
    fn name(&self) -> &'static str {
        "pgbouncer"
    }

    fn speaks(&self, scheme: &str) -> bool {
        scheme.starts_with("postgres")
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        words.contains("PgBouncer").then(|| Version::find(words)).flatten()
    }

    fn version_argument(&self) -> &'static str {
        "--version"
    }

    fn configuration_files(&self) -> &'static [&'static str] {
        &["pgbouncer.ini", "users.txt"]
    }

    fn configuration(&self, place: &Place<'_>) -> Vec<(PathBuf, String)> {
        let users = place.folder.join("users.txt");
        let accounts = if place.accounts.is_empty() {
            vec![("app".to_owned(), "".into()), ("postgres".to_owned(), "".into())]
        } else {
            place.accounts.to_vec()
        };
        let listed: Vec<String> =
            accounts.iter().map(|(name, password)| format!("\"{name}\" \"{}\"\n", password.reveal())).collect();
        let auth = if place.accounts.is_empty() { "trust" } else { "scram-sha-256" };
        let mut lines = vec![
            "; Written by assay, overwritten at every start.".to_owned(),
            "[databases]".to_owned(),
            format!("* = host=127.0.0.1 port={}", place.behind[0]),
            "[pgbouncer]".to_owned(),
            "listen_addr = 127.0.0.1".to_owned(),
            format!("listen_port = {}", place.port),
            format!("unix_socket_dir = {}", place.folder.display()),
            format!("auth_type = {auth}"),
            format!("auth_file = {}", users.display()),
            "admin_users = postgres".to_owned(),
            "pool_mode = transaction".to_owned(),
            // Clients set how their server prints numbers; a pool cannot keep these settings apart.
            "ignore_startup_parameters = extra_float_digits".to_owned(),
            "max_client_conn = 10000".to_owned(),
        ];
        // If a name occurs twice, the later line wins.
        let settings = place.settings.iter();
        lines.extend(settings.map(|one| format!("{} = {}", one.name, one.value.as_deref().unwrap_or_default())));
        vec![(place.folder.join("pgbouncer.ini"), lines.join("\n") + "\n"), (users, listed.concat())]
    }

    fn socket(&self, folder: &Path, port: u16) -> Option<PathBuf> {
        Some(folder.join(format!(".s.PGSQL.{port}")))
    }

    fn arguments(&self, place: &Place<'_>) -> Vec<OsString> {
        vec![place.folder.join("pgbouncer.ini").into()]
    }
}
