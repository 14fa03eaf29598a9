//! Starts a server: converts its kind and setup to a request to the lab.

use std::sync::OnceLock;

use anyhow::{Result, anyhow, bail};
use assay_lab::{Account, Description, FrontDescription, topology};

use crate::folder::{home, name_of, private_folder};
use crate::{Certificates, Kind, Server, ServerSetup, Tls};

impl Kind {
    /// Starts a server of this kind; returns once it answers queries. Takes about a second.
    pub fn start(self, setup: &ServerSetup) -> Result<Server> {
        if let Err(why) = self.available() {
            bail!(why);
        }
        let wanted = match self.wanted() {
            Some(wanted) => wanted,
            None => bail!("a pgbouncer needs a server behind it: Server::pgbouncer"),
        };
        let certificates = match setup.tls {
            Tls::Off => None,
            Tls::Offered | Tls::Required => Some(certificates(setup)?),
        };
        let is_postgres = matches!(self, Kind::Postgres | Kind::Postgres18);
        let lines = if is_postgres {
            postgres(setup, certificates.as_ref())
        } else {
            mysql(self, setup, certificates.as_ref())
        };
        let access = match (setup.access.as_slice(), setup.tls) {
            ([], Tls::Required) => {
                ["local all all trust", "hostssl all all 127.0.0.1/32 trust"].map(str::to_owned).into()
            }
            (given, _) => given.to_vec(),
        };
        let name = Some(name_of(self.name())?);
        let (file, data) = (Some(lines.join("\n")), setup.data.clone());
        let description = Description { file, access, name, data, ..Description::of(wanted) };
        let started = topology::Topology::start(&home()?, &description, &|_| ()).map_err(|fault| anyhow!("{fault}"))?;
        Ok(Server::new(self, started.primary, certificates))
    }

    /// The server of this kind that all tests of this process share, with default settings. Starts on first use.
    ///
    /// Do not stop, suspend or reconfigure it. Panics if it cannot be started: call `present` first.
    pub fn shared(self) -> &'static Server {
        static SHARED: [OnceLock<Server>; 5] = [const { OnceLock::new() }; 5];
        SHARED[self as usize].get_or_init(|| self.start(&ServerSetup::default()).expect("the server starts"))
    }
}

/// Starts a version of the catalog, such as `mysql:5.7.22`, with these lines in its configuration.
pub fn start_version(wanted: &str, config: &[&str]) -> Result<Server> {
    let (product, _) = wanted.split_once(':').unwrap_or((wanted, ""));
    let kind = match product {
        "postgres" => Kind::Postgres,
        "mysql" => Kind::MySql,
        _ => Kind::MariaDb,
    };
    let file = Some(config.join("\n"));
    let wanted = wanted.parse().map_err(|fault| anyhow!("{fault}"))?;
    let description = Description { file, name: Some(name_of(kind.name())?), ..Description::of(wanted) };
    let started = topology::Topology::start(&home()?, &description, &|_| ()).map_err(|fault| anyhow!("{fault}"))?;
    Ok(Server::new(kind, started.primary, None))
}

impl Server {
    /// Starts a PgBouncer in transaction mode in front of this PostgreSQL; all its databases can be reached.
    ///
    /// `accounts`: names and passwords for logins with SCRAM, here and on the server behind; without any, `app` and
    /// `postgres` get in without a password, and `sql` works through it. `max_clients` is its `max_client_conn`.
    pub fn pgbouncer(&self, accounts: &[(&str, &str)], max_clients: u32) -> Result<Server> {
        if let Err(why) = Kind::PgBouncer.available() {
            bail!(why);
        }
        let described = FrontDescription {
            name: "pgbouncer".to_owned(),
            settings: vec![assay_lab::ServerSetting::new("max_client_conn", &max_clients.to_string())],
            accounts: accounts
                .iter()
                .map(|(name, password)| ((*name).to_owned(), assay_lab::Concealed::password(*password)))
                .collect(),
            behind: assay_lab::Behind::Primary,
        };
        let name = name_of("pgbouncer")?;
        let front = topology::before(&home()?, &name, self.lab(), &described).map_err(|fault| anyhow!("{fault}"))?;
        Ok(Server::new(Kind::PgBouncer, front, None))
    }
}

/// PEM files that the server's user can read.
fn certificates(setup: &ServerSetup) -> Result<Certificates> {
    let made = Certificates::make(&private_folder("certificates")?, &setup.certificate_names)?;
    let account = Account::choose(None)?;
    account.own(&made.server.0)?;
    account.own(&made.server.1)?;
    Ok(made)
}

/// Lines of postgresql.conf.
fn postgres(setup: &ServerSetup, certificates: Option<&Certificates>) -> Vec<String> {
    let mut lines = vec![
        format!("max_connections = {}", setup.max_connections),
        // The data is discarded, and after a kill of the server (not of the machine) every commit is in the page cache.
        "fsync = off".to_owned(),
        "full_page_writes = off".to_owned(),
    ];
    if let Some(made) = certificates {
        lines.push("ssl = on".to_owned());
        lines.push(format!("ssl_ca_file = '{}'", made.ca.display()));
        lines.push(format!("ssl_cert_file = '{}'", made.server.0.display()));
        lines.push(format!("ssl_key_file = '{}'", made.server.1.display()));
    }
    lines.extend(setup.config.iter().cloned());
    lines
}

/// Lines of the `[mysqld]` section.
fn mysql(kind: Kind, setup: &ServerSetup, certificates: Option<&Certificates>) -> Vec<String> {
    let mut lines = vec![
        "performance_schema = OFF".to_owned(),
        format!("max_connections = {}", setup.max_connections),
        // As above.
        "innodb_flush_log_at_trx_commit = 2".to_owned(),
        "innodb_doublewrite = OFF".to_owned(),
    ];
    lines.push(if kind == Kind::MariaDb { "plugin_load_add = auth_ed25519" } else { "disable_log_bin" }.to_owned());
    match certificates {
        None => lines.push("ssl = OFF".to_owned()),
        Some(made) => {
            lines.push(format!("ssl_ca = {}", made.ca.display()));
            lines.push(format!("ssl_cert = {}", made.server.0.display()));
            lines.push(format!("ssl_key = {}", made.server.1.display()));
        }
    }
    if setup.tls == Tls::Required {
        lines.push("require_secure_transport = ON".to_owned());
    }
    lines.extend(setup.config.iter().cloned());
    lines
}
