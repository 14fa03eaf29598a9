//! A PostgreSQL server's address and login: the URL, completed as in libpq.
//!
//! What the URL omits is taken from a service file, the `PG*` variables, `~/.pgpass` and `~/.postgresql`, then from
//! libpq's defaults: without a host, the unix socket in /var/run/postgresql (Debian's directory; /tmp if the socket is
//! only there), the operating system's user, and a database with the user's name. Unsupported parameters are refused,
//! not ignored. Source: PostgreSQL manual, 34.1.1, 34.1.2, 34.15 to 34.17, 34.19.

use std::path::{Path, PathBuf};

use crate::protocol::login::{ChannelBinding, Credentials};
use crate::protocol::{passfile, service};
use assay_seam::url::{HostPort, Url};
use assay_seam::{ConnectOptions, Endpoint, Nanos, Surroundings, TargetError, TlsMode, TlsSettings};
use assay_wire::templates::Templates;

/// One server, as all its connections know it.
pub(super) struct PostgresServer {
    pub(super) credentials: Credentials,
    pub(super) database: String,
    pub(super) application_name: String,
    /// Command-line options for the server's process (`-c name=value`); empty if there are none.
    pub(super) options: String,
    pub(super) client_encoding: String,
    /// Settings that libpq takes from environment variables.
    pub(super) session: Vec<(&'static str, String)>,
    pub(super) tls: TlsSettings,
    pub(super) connect: ConnectOptions,
    pub(super) templates: Templates,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) connect_timeout: Option<Nanos>,
    /// The URL without a password.
    pub(super) display: String,
}

/// Parameters we read, and the variables that replace them.
const PARAMETERS: &[(&str, &str)] = &[
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("dbname", "PGDATABASE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("service", "PGSERVICE"),
    ("hostaddr", "PGHOSTADDR"),
    ("application_name", "PGAPPNAME"),
    ("fallback_application_name", ""),
    ("client_encoding", "PGCLIENTENCODING"),
    ("options", "PGOPTIONS"),
    ("passfile", "PGPASSFILE"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    ("gssencmode", "PGGSSENCMODE"),
    ("require_auth", "PGREQUIREAUTH"),
    ("requirepeer", "PGREQUIREPEER"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("sslcompression", "PGSSLCOMPRESSION"),
    ("sslcrl", "PGSSLCRL"),
    ("sslcrldir", "PGSSLCRLDIR"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslsni", "PGSSLSNI"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("replication", ""),
];

/// Variables that are settings of the session, and their names there.
const OF_SESSION: [(&str, &str); 3] = [("PGDATESTYLE", "datestyle"), ("PGTZ", "timezone"), ("PGGEQO", "geqo")];

/// Parameters of libpq of which only these values are supported, which we implement anyway. Empty: none.
const FIXED: &[(&str, &[&str])] = &[
    ("target_session_attrs", &["any"]),
    ("load_balance_hosts", &["disable"]),
    ("gssencmode", &["disable", "prefer"]),
    ("sslnegotiation", &["postgres"]),
    ("sslcompression", &["0"]),
    ("sslsni", &["1"]),
    ("replication", &["false", "off", "no", "0"]),
    ("require_auth", &[]),
    ("requirepeer", &[]),
    ("sslcertmode", &["allow"]),
    ("sslcrl", &[]),
    ("sslcrldir", &[]),
    ("ssl_min_protocol_version", &["TLSv1.2", "TLSv1.1", "TLSv1"]),
    ("ssl_max_protocol_version", &["TLSv1.3"]),
];

const DEFAULT_PORT: u16 = 5432;
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

struct Parameters<'a> {
    url: Url,
    /// Parameters of the service.
    service: Vec<(String, String)>,
    surroundings: &'a dyn Surroundings,
}

impl Parameters<'_> {
    /// The last such option of the URL, or what is found elsewhere.
    fn get(&self, name: &str) -> Option<String> {
        self.option(name).or_else(|| self.elsewhere(name))
    }

    /// From the service, or else the variable.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let of_service = self.service.iter().find(|(key, value)| key == name && !value.is_empty());
        of_service.map(|(_, value)| value.clone()).or_else(|| self.variable(name))
    }

    fn option(&self, name: &str) -> Option<String> {
        self.url.options.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let (_, variable) = PARAMETERS.iter().find(|(key, _)| *key == name)?;
        self.surroundings.variable(variable).filter(|value| !value.is_empty())
    }

    fn in_home(&self, name: &str) -> Option<PathBuf> {
        Some(self.surroundings.home()?.join(name))
    }

    fn exists(&self, path: &Path) -> bool {
        self.surroundings.mode(path).is_some()
    }
}

pub(super) fn read(
    url: &str,
    options: &ConnectOptions,
    surroundings: &dyn Surroundings,
) -> Result<PostgresServer, TargetError> {
    let mut url = Url::parse(url)?;
    if url.options.iter().any(|(key, value)| key == "ssl" && value == "true") {
        // JDBC's spelling; libpq knows it, too.
        url.options.retain(|(key, _)| key != "ssl");
        url.options.push(("sslmode".into(), "require".into()));
    }
    let mut parameters = Parameters { url, service: Vec::new(), surroundings };
    if let Some(name) = parameters.get("service") {
        let found = service::parameters(&name, surroundings);
        parameters.service = found.map_err(|message| wrong(&message, "correct the service's name, or its file"))?;
    }
    check_parameters(&parameters)?;

    let user = parameters.option("user").or_else(|| parameters.url.user.clone());
    let user = user
        .or_else(|| parameters.elsewhere("user"))
        .or_else(|| surroundings.user())
        .ok_or_else(|| wrong("no user name for PostgreSQL", "set one in the URL (postgres://USER@…) or in PGUSER"))?;
    let path = Some(parameters.url.path.clone()).filter(|path| !path.is_empty());
    let database = parameters.option("dbname").or(path).or_else(|| parameters.elsewhere("dbname"));
    let database = database.unwrap_or_else(|| user.clone());

    let hosts = hosts(&parameters)?;
    let tls = tls(&parameters, &hosts)?;
    let (password, password_hint) = password(&parameters, &hosts, &user, &database)?;
    let channel_binding = match parameters.get("channel_binding").as_deref() {
        None | Some("prefer") => ChannelBinding::Prefer,
        Some("disable") => ChannelBinding::Disable,
        Some("require") => ChannelBinding::Require,
        Some(other) => return Err(unknown("channel_binding", other, "disable, prefer or require")),
    };
    let connect_timeout = match parameters.get("connect_timeout").map(|text| (text.trim().parse::<i64>(), text)) {
        None => None,
        Some((Ok(secs), _)) => u64::try_from(secs).ok().filter(|&secs| secs > 0).map(Nanos::from_secs),
        Some((Err(_), text)) => return Err(unknown("connect_timeout", &text, "a number of seconds")),
    };
    Ok(PostgresServer {
        display: display(&parameters.url, &user, &database, &hosts, tls.mode),
        endpoints: endpoints(&parameters, &hosts)?,
        application_name: parameters
            .get("application_name")
            .or_else(|| parameters.get("fallback_application_name"))
            .unwrap_or_else(|| options.application_name.to_owned()),
        client_encoding: parameters
            .get("client_encoding")
            .filter(|encoding| encoding != "auto")
            .unwrap_or_else(|| "UTF8".into()),
        session: OF_SESSION
            .iter()
            .filter_map(|(variable, name)| Some((*name, surroundings.variable(variable)?)))
            .filter(|(_, value)| !value.eq_ignore_ascii_case("default"))
            .collect(),
        options: parameters.get("options").unwrap_or_default(),
        credentials: Credentials { user, password, password_hint, channel_binding },
        database,
        tls,
        connect: options.clone(),
        templates: Templates::default(),
        connect_timeout,
    })
}

/// Refuses what we do not support.
fn check_parameters(parameters: &Parameters<'_>) -> Result<(), TargetError> {
    for (key, value) in &parameters.url.options {
        let known = PARAMETERS.iter().any(|(name, _)| name == key);
        if !known {
            return Err(wrong(
                &format!("the connection parameter {key} of PostgreSQL is not supported"),
                "pass server settings in options: ?options=-c%20NAME%3DVALUE",
            ));
        }
        if value.is_empty() && key != "password" {
            return Err(wrong(&format!("the parameter {key} in the PostgreSQL URL has no value"), "leave it out"));
        }
    }
    if let Some((key, _)) = parameters.service.iter().find(|(key, _)| !PARAMETERS.iter().any(|(name, _)| name == key)) {
        return Err(wrong(
            &format!("the connection parameter {key} of PostgreSQL is not supported"),
            "remove it from the service",
        ));
    }
    for (name, values) in FIXED {
        if let Some(value) =
            parameters.get(name).filter(|value| !values.iter().any(|one| one.eq_ignore_ascii_case(value)))
        {
            return Err(match values.first() {
                Some(instead) => unknown(name, &value, instead),
                None => {
                    wrong(&format!("{name} is not supported for PostgreSQL"), "unset it; assay would not enforce it")
                }
            });
        }
    }
    Ok(())
}

/// The hosts with their ports; a name with a leading `/` is a socket's directory. Never empty.
fn hosts(parameters: &Parameters<'_>) -> Result<Vec<(String, u16)>, TargetError> {
    let url = &parameters.url;
    let named = parameters.option("host");
    let from_authority = named.is_none() && !url.hosts.is_empty();
    // An address without a name.
    let elsewhere = || parameters.elsewhere("host").or_else(|| parameters.get("hostaddr"));
    let written: Vec<HostPort> = match named.or_else(elsewhere) {
        _ if from_authority => url.hosts.clone(),
        Some(list) => list.split(',').map(|name| HostPort { name: name.to_owned(), port: None }).collect(),
        None => vec![HostPort { name: String::new(), port: None }],
    };
    let mut ports = Vec::new();
    for text in parameters.get("port").iter().flat_map(|list| list.split(',')) {
        match text.parse::<u16>() {
            Ok(port @ 1..) => ports.push(port),
            _ => return Err(unknown("port", text, "a number from 1 to 65535")),
        }
    }
    if ports.len() > 1 && ports.len() != written.len() {
        return Err(wrong("there are not as many ports as hosts", "give one port, or one for each host"));
    }
    let hosts: Vec<_> = written
        .into_iter()
        .enumerate()
        .map(|(i, host)| {
            let port = host.port.or(ports.get(i).or(ports.first()).copied()).unwrap_or(DEFAULT_PORT);
            let name = if host.name.is_empty() { default_socket(parameters, port) } else { host.name };
            (name, port)
        })
        .collect();
    let sockets = hosts.iter().filter(|(name, _)| name.starts_with('/')).count();
    if sockets > 0 && sockets < hosts.len() {
        return Err(wrong("socket directories and hosts are mixed in one PostgreSQL URL", "give --db twice"));
    }
    Ok(hosts)
}

fn default_socket(parameters: &Parameters<'_>, port: u16) -> String {
    let there = |directory: &&str| parameters.exists(&socket(directory, port));
    SOCKET_DIRECTORIES.into_iter().find(there).unwrap_or(SOCKET_DIRECTORIES[0]).to_owned()
}

fn socket(directory: &str, port: u16) -> PathBuf {
    Path::new(directory).join(format!(".s.PGSQL.{port}"))
}

/// Where the hosts are: at their `hostaddr`, if given.
fn endpoints(parameters: &Parameters<'_>, hosts: &[(String, u16)]) -> Result<Vec<Endpoint>, TargetError> {
    let mut places: Vec<String> = hosts.iter().map(|(name, _)| name.clone()).collect();
    if let Some(addresses) = parameters.get("hostaddr") {
        let addresses: Vec<&str> = addresses.split(',').collect();
        if addresses.len() != hosts.len() {
            return Err(wrong("there are not as many addresses (hostaddr) as hosts", "give one for each host"));
        }
        for (place, address) in places.iter_mut().zip(addresses).filter(|(_, address)| !address.is_empty()) {
            *place = address.to_owned();
        }
    }
    let endpoint = |(place, (_, port)): (String, &(String, u16))| match place.starts_with('/') {
        true => Endpoint::Unix(socket(&place, *port)),
        false => Endpoint::Tcp { host: place, port: *port },
    };
    Ok(places.into_iter().zip(hosts).map(endpoint).collect())
}

/// Unix sockets are never encrypted. A root certificate turns `require` into `verify-ca`; `system` requires
/// `verify-full`, as in libpq.
fn tls(parameters: &Parameters<'_>, hosts: &[(String, u16)]) -> Result<TlsSettings, TargetError> {
    // PGREQUIRESSL is older than PGSSLMODE.
    let required = || parameters.surroundings.variable("PGREQUIRESSL").filter(|value| value.starts_with('1'));
    let written = parameters.get("sslmode").or_else(|| required().map(|_| "require".to_owned()));
    let default_root = parameters.in_home(".postgresql/root.crt").filter(|path| parameters.exists(path));
    let system = parameters.get("sslrootcert").is_some_and(|name| name == "system");
    let root = match parameters.get("sslrootcert") {
        Some(_) if system => None,
        Some(path) => Some(PathBuf::from(path)),
        None => default_root,
    };
    let mode = match written.as_deref() {
        None if system => TlsMode::VerifyFull,
        Some("verify-full") => TlsMode::VerifyFull,
        Some(weak) if system => return Err(unknown("sslmode", weak, "verify-full, which sslrootcert=system needs")),
        Some("disable") => TlsMode::Disable,
        Some("allow") => TlsMode::Allow,
        None | Some("prefer") => TlsMode::Prefer,
        Some("require") if root.is_some() => TlsMode::VerifyCa,
        Some("require") => TlsMode::Require,
        Some("verify-ca") => TlsMode::VerifyCa,
        Some(other) => {
            return Err(unknown("sslmode", other, "disable, allow, prefer, require, verify-ca or verify-full"));
        }
    };
    if hosts[0].0.starts_with('/') {
        return Ok(TlsSettings::default());
    }
    if mode == TlsMode::VerifyFull && hosts.iter().any(|(name, _)| *name != hosts[0].0) {
        return Err(wrong("sslmode=verify-full works with a single host name only", "give --db once for each host"));
    }
    let file = |parameter, name| parameters.get(parameter).map(PathBuf::from).or_else(|| parameters.in_home(name));
    let given = parameters.get("sslcert").is_some() || parameters.get("sslkey").is_some();
    let client = file("sslcert", ".postgresql/postgresql.crt").zip(file("sslkey", ".postgresql/postgresql.key"));
    let client =
        client.filter(|(certificate, key)| given || (parameters.exists(certificate) && parameters.exists(key)));
    Ok(TlsSettings { mode, root, client, server_name: hosts[0].0.clone(), each_host: false })
}

/// The password and, if a password file was ignored, why.
fn password(
    parameters: &Parameters<'_>,
    hosts: &[(String, u16)],
    user: &str,
    database: &str,
) -> Result<(Option<Vec<u8>>, Option<String>), TargetError> {
    let given = parameters
        .option("password")
        .or_else(|| parameters.url.password.clone())
        .filter(|password| !password.is_empty());
    if let Some(password) = given.or_else(|| parameters.elsewhere("password")) {
        return Ok((Some(password.into_bytes()), None));
    }
    let Some(path) = parameters.get("passfile").map(PathBuf::from).or_else(|| parameters.in_home(".pgpass")) else {
        return Ok((None, None));
    };
    match parameters.surroundings.mode(&path) {
        Some(mode) if mode & 0o077 != 0 => {
            let path = path.display();
            return Ok((None, Some(format!("{path} was ignored because others may read it: chmod 0600 {path}"))));
        }
        _ => {}
    }
    let Some(content) = parameters.surroundings.read(&path) else { return Ok((None, None)) };
    let mut found = hosts.iter().map(|(name, port)| {
        let host = if SOCKET_DIRECTORIES.contains(&name.as_str()) { "localhost" } else { name };
        passfile::find(&content, passfile::Login { host, port: *port, database, user })
    });
    let first = found.next().flatten();
    if found.any(|other| other != first) {
        let message = format!("{} has different passwords for the hosts of the same URL", path.display());
        return Err(wrong(&message, "give --db once for each host"));
    }
    Ok((first, None))
}

/// The canonical URL, without a password.
fn display(url: &Url, user: &str, database: &str, hosts: &[(String, u16)], mode: TlsMode) -> String {
    let hidden = ["host", "port", "user", "password", "passfile", "service", "dbname", "sslmode"];
    let mut options: Vec<_> = url.options.iter().filter(|(key, _)| !hidden.contains(&key.as_str())).cloned().collect();
    let mut shown = Vec::new();
    if hosts[0].0.starts_with('/') {
        let list = |part: fn(&(String, u16)) -> String| hosts.iter().map(part).collect::<Vec<_>>().join(",");
        options.push(("host".into(), list(|host| host.0.clone())));
        if hosts.iter().any(|host| host.1 != DEFAULT_PORT) {
            options.push(("port".into(), list(|host| host.1.to_string())));
        }
    } else {
        shown.extend(hosts.iter().map(|(name, port)| HostPort { name: name.clone(), port: Some(*port) }));
        let mode = match mode {
            TlsMode::Disable => "disable",
            TlsMode::Allow => "allow",
            TlsMode::Prefer => "prefer",
            TlsMode::Require => "require",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyFull => "verify-full",
        };
        if mode != "prefer" {
            options.push(("sslmode".into(), mode.into()));
        }
    }
    let scheme = "postgres".to_owned();
    Url { scheme, user: Some(user.into()), password: None, hosts: shown, path: database.into(), options }.to_string()
}

fn unknown(parameter: &str, value: &str, instead: &str) -> TargetError {
    wrong(&format!("{parameter} cannot be `{value}` for PostgreSQL"), &format!("use {instead}"))
}

fn wrong(message: &str, hint: &str) -> TargetError {
    TargetError { message: message.into(), hint: Some(hint.into()), is_missing: false }
}
