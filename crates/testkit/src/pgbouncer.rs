//! A PgBouncer in transaction mode in front of a throw-away PostgreSQL.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use nix::sys::signal::Signal;

use crate::Kind;
use crate::folder::hand_over;
use crate::server::{Plan, Server};

impl Server {
    /// Starts a PgBouncer in transaction mode in front of this PostgreSQL; every database of it can be reached.
    ///
    /// `accounts`: names and passwords of those who log in by SCRAM, here and at the server behind; without any,
    /// `app` and `postgres` get in without a password, and `sql` works through it. `max_clients` is its `max_client_conn`.
    pub fn pgbouncer(&self, accounts: &[(&str, &str)], max_clients: u32) -> Result<Server> {
        if let Err(why) = Kind::PgBouncer.available() {
            bail!(why);
        }
        let behind = self.port();
        Server::start(Kind::PgBouncer, |folder, port| plan(folder, port, behind, accounts, max_clients))
    }
}

fn plan(folder: &Path, port: u16, behind: u16, accounts: &[(&str, &str)], max_clients: u32) -> Result<Plan> {
    let users = folder.join("users.txt");
    let listed = if accounts.is_empty() { &[("app", ""), ("postgres", "")] } else { accounts };
    let lines: Vec<String> = listed.iter().map(|(name, password)| format!("\"{name}\" \"{password}\"\n")).collect();
    fs::write(&users, lines.concat())?;
    hand_over(&users)?;

    let auth = if accounts.is_empty() { "trust" } else { "scram-sha-256" };
    let file = folder.join("pgbouncer.ini");
    fs::write(
        &file,
        format!(
            "[databases]\n\
             * = host=127.0.0.1 port={behind}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir = {}\n\
             auth_type = {auth}\n\
             auth_file = {}\n\
             admin_users = postgres\n\
             pool_mode = transaction\n\
             default_pool_size = 20\n\
             max_client_conn = {max_clients}\n",
            folder.display(),
            users.display()
        ),
    )?;
    Ok(Plan {
        program: Kind::PgBouncer.program("pgbouncer"),
        arguments: vec![file.into()],
        socket: folder.join(format!(".s.PGSQL.{port}")),
        stale: None,
        stop: Signal::SIGTERM,
        administrator: "postgres",
        version: Kind::PgBouncer.version()?,
        certificates: None,
    })
}
