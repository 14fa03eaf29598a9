//! A ClickHouse server's address and login: the URL `clickhouse://user:password@host:port/database?sslmode=…`.
//!
//! What the URL omits: the user `default`, no password or CLICKHOUSE_PASSWORD, the host localhost, the port 9000 or
//! 9440 with TLS, the database `default`. A port either requires TLS or does not speak it, so no mode tries both.

use std::path::PathBuf;

use assay_seam::url::{HostPort, Url};
use assay_seam::{ConnectOptions, Endpoint, Nanos, Surroundings, TargetError, TlsMode, TlsSettings};
use assay_wire::templates::Templates;

const PORT: u16 = 9000;
const TLS_PORT: u16 = 9440;

/// Everything a connection needs. `Debug` omits the password.
pub(super) struct ClickHouseServer {
    pub(super) user: String,
    /// Empty: none.
    pub(super) password: String,
    pub(super) database: String,
    pub(super) endpoint: Endpoint,
    pub(super) tls: TlsSettings,
    pub(super) connect_timeout: Option<Nanos>,
    /// Run on every new connection.
    pub(super) session_sql: Vec<String>,
    pub(super) templates: Templates,
    /// The URL without a password.
    pub(super) display: String,
}

impl std::fmt::Debug for ClickHouseServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.display)
    }
}

/// Ports where ClickHouse speaks HTTP: it would wait for the rest of a request, and we for its answer.
const HTTP_PORTS: [u16; 2] = [8123, 8443];

const OPTIONS: [&str; 5] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout"];

const MODES: [(&str, TlsMode); 4] = [
    ("disable", TlsMode::Disable),
    ("require", TlsMode::Require),
    ("verify-ca", TlsMode::VerifyCa),
    ("verify-full", TlsMode::VerifyFull),
];

pub(super) fn read(
    url: &str,
    options: &ConnectOptions,
    surroundings: &dyn Surroundings,
) -> Result<ClickHouseServer, TargetError> {
    let url = Url::parse(url)?;
    if let Some((key, _)) = url.options.iter().find(|(key, _)| !OPTIONS.contains(&key.as_str())) {
        let hint = format!("{}; settings of a session: --session-sql 'SET name = value'", OPTIONS.join(", "));
        return Err(wrong(format!("unknown option `{key}` in the database URL"), Some(hint)));
    }
    let given = |name: &str| {
        let found = url.options.iter().rev().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    if url.hosts.len() > 1 {
        let hint = "give `--db` once per server: sessions are spread over them";
        return Err(wrong("the database URL names several hosts".into(), Some(hint.into())));
    }
    if url.path.contains('/') {
        return Err(wrong(format!("the database name `{}` in the URL holds a `/`", url.path), None));
    }
    let mode = match given("sslmode") {
        None => TlsMode::Disable,
        Some(word) => {
            let known = MODES.iter().find(|(known, _)| *known == word);
            let words = || MODES.map(|(word, _)| word).join(", ");
            known.ok_or_else(|| wrong(format!("unknown sslmode `{word}`"), Some(words())))?.1
        }
    };
    let connect_timeout = match given("connect_timeout").map(str::parse::<u64>) {
        None | Some(Ok(0)) => None,
        Some(Ok(seconds)) => Some(Nanos::from_secs(seconds)),
        Some(Err(_)) => return Err(wrong("connect_timeout is not a number of seconds".into(), None)),
    };
    let client = match (given("sslcert"), given("sslkey")) {
        (Some(certificate), Some(key)) => Some((PathBuf::from(certificate), PathBuf::from(key))),
        (None, None) => None,
        _ => return Err(wrong("sslcert and sslkey must be given together".into(), None)),
    };
    let usual_port = if mode == TlsMode::Disable { PORT } else { TLS_PORT };
    let host = url.hosts.first().map(|host| host.name.clone()).filter(|name| !name.is_empty());
    let host = host.unwrap_or_else(|| "localhost".to_owned());
    let port = url.hosts.first().and_then(|host| host.port).unwrap_or(usual_port);
    if HTTP_PORTS.contains(&port) {
        let message = format!("port {port} is where ClickHouse speaks HTTP, and assay its native protocol");
        return Err(wrong(message, Some(format!("usually port {PORT}, or {TLS_PORT} with TLS"))));
    }
    let or_default = |text: &str| if text.is_empty() { "default".to_owned() } else { text.to_owned() };
    let (user, database) = (or_default(url.user.as_deref().unwrap_or_default()), or_default(&url.path));
    let password = url.password.clone().or_else(|| surroundings.variable("CLICKHOUSE_PASSWORD")).unwrap_or_default();
    let shown = url.options.iter().filter(|(key, _)| key != "connect_timeout").cloned().collect();
    let display = Url {
        scheme: "clickhouse".into(),
        user: Some(user.clone()),
        password: None,
        hosts: vec![HostPort { name: host.clone(), port: Some(port).filter(|port| *port != usual_port) }],
        path: database.clone(),
        options: shown,
    };
    Ok(ClickHouseServer {
        user,
        password,
        database,
        endpoint: Endpoint::Tcp { host: if host == "localhost" { "127.0.0.1".into() } else { host.clone() }, port },
        tls: TlsSettings {
            mode,
            root: given("sslrootcert").map(PathBuf::from),
            client,
            server_name: host,
            each_host: false,
        },
        connect_timeout,
        session_sql: options.session_sql.clone(),
        templates: Templates::default(),
        display: display.to_string(),
    })
}

fn wrong(message: String, hint: Option<String>) -> TargetError {
    TargetError { message, hint, is_missing: false }
}

#[cfg(test)]
pub(super) mod tests {
    use assay_seam::NoSurroundings;

    use super::*;

    pub(in crate::protocol) fn server(url: &str, session_sql: &[&str]) -> ClickHouseServer {
        let session_sql = session_sql.iter().map(|sql| (*sql).to_owned()).collect();
        read(url, &ConnectOptions { session_sql, ..ConnectOptions::default() }, &NoSurroundings).unwrap()
    }

    #[test]
    fn what_a_url_omits_is_the_usual() {
        for (url, display, port) in [
            ("clickhouse://", "clickhouse://default@localhost/default", 9000),
            ("clickhouse://me:secret@h:9001/flights", "clickhouse://me@h:9001/flights", 9001),
            ("clickhouse://h?sslmode=require", "clickhouse://default@h/default?sslmode=require", 9440),
        ] {
            let server = server(url, &[]);
            assert_eq!(server.display, display);
            assert!(matches!(server.endpoint, Endpoint::Tcp { port: found, .. } if found == port), "{url}");
            assert!(!format!("{server:?}").contains("secret"));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (url, message) in [
            ("clickhouse://h?max_threads=1", "unknown option `max_threads` in the database URL"),
            ("clickhouse://h?sslmode=prefer", "unknown sslmode `prefer`"),
            ("clickhouse://h:8123", "port 8123 is where ClickHouse speaks HTTP, and assay its native protocol"),
            ("clickhouse://h,i", "the database URL names several hosts"),
            ("clickhouse://h/a/b", "the database name `a/b` in the URL holds a `/`"),
            ("clickhouse://h?connect_timeout=x", "connect_timeout is not a number of seconds"),
            ("clickhouse://h?sslcert=a", "sslcert and sslkey must be given together"),
        ] {
            let error = read(url, &ConnectOptions::default(), &NoSurroundings).unwrap_err();
            assert_eq!(error.message, message, "{url}");
        }
    }
}
