//! A ClickHouse server's address and login: the URL `clickhouse://user:password@host:port/database?sslmode=…`, or
//! `clickhouse+http://` and `clickhouse+https://` for its HTTP interface.
//!
//! What the URL omits: the user `default`, no password or CLICKHOUSE_PASSWORD, the host localhost, the database
//! `default`, and the port: 9000 or 9440 with TLS; 8123 for HTTP, 8443 for HTTPS. A port either requires TLS or does
//! not speak it, so no mode tries both. HTTPS verifies the certificate and its host, as every client does, unless
//! `sslmode` says otherwise.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use assay_seam::url::{HostPort, Url};
use assay_seam::{ConnectOptions, Endpoint, Nanos, Surroundings, TargetError, TlsMode, TlsSettings};
use assay_wire::templates::Templates;

use super::http::coding::Coding;

const PORT: u16 = 9000;
const TLS_PORT: u16 = 9440;
const HTTP_PORT: u16 = 8123;
const HTTPS_PORT: u16 = 8443;

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
    /// How it is used over HTTP; `None`: by the native protocol.
    pub(super) http: Option<Http>,
}

/// What only the HTTP interface needs.
pub(super) struct Http {
    /// Header `Host`.
    pub(super) host: String,
    /// Of results, and of rows that are loaded.
    pub(super) coding: Coding,
    /// The server sends nothing before a query is done.
    pub(super) waits: bool,
    /// How long the server keeps an idle session, in seconds.
    pub(super) session_timeout: u32,
    pub(super) run: Arc<HttpRun>,
}

/// What all connections to a server over HTTP have in common.
#[derive(Debug)]
pub(super) struct HttpRun {
    /// Begins the names of all sessions and queries. Nobody else has the same.
    pub(super) prefix: String,
    /// Sessions so far.
    pub(super) sessions: AtomicU64,
    /// Queries whose connections were closed while they were running: the server continues.
    pub(super) left: Mutex<Vec<String>>,
}

impl HttpRun {
    pub(super) fn new() -> HttpRun {
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("the kernel has random numbers");
        let prefix = format!("assay-{:016x}", u64::from_le_bytes(random));
        HttpRun { prefix, sessions: AtomicU64::new(0), left: Mutex::default() }
    }
}

impl std::fmt::Debug for ClickHouseServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.display)
    }
}

/// Ports where ClickHouse speaks HTTP: it would wait for the rest of a request, and we for its answer.
const HTTP_PORTS: [u16; 2] = [HTTP_PORT, HTTPS_PORT];

const OPTIONS: [&str; 5] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout"];
const HTTP_OPTIONS: [&str; 3] = ["compression", "session_timeout", "wait_end_of_query"];

/// Seconds that a server keeps an idle session, unless the URL says otherwise. Its own limit is usually 3600.
const SESSION_TIMEOUT: u32 = 600;

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
    let (is_http, is_https) = (url.scheme.starts_with("clickhouse+http"), url.scheme == "clickhouse+https");
    let known = || OPTIONS.iter().chain(HTTP_OPTIONS.iter().filter(|_| is_http));
    if let Some((key, _)) = url.options.iter().find(|(key, _)| !known().any(|known| known == key)) {
        let known = known().copied().collect::<Vec<_>>().join(", ");
        let hint = format!("{known}; settings of a session: --session-sql 'SET name = value'");
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
        None if is_https => TlsMode::VerifyFull,
        None => TlsMode::Disable,
        Some(word) => {
            let known = MODES.iter().find(|(known, _)| *known == word);
            let words = || MODES.map(|(word, _)| word).join(", ");
            known.ok_or_else(|| wrong(format!("unknown sslmode `{word}`"), Some(words())))?.1
        }
    };
    match mode {
        TlsMode::Disable if is_https => {
            let hint = "write clickhouse+http://";
            return Err(wrong("clickhouse+https with sslmode=disable".into(), Some(hint.into())));
        }
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull if is_http && !is_https => {
            let hint = "write clickhouse+https://";
            return Err(wrong("clickhouse+http is not encrypted".into(), Some(hint.into())));
        }
        _ => {}
    }
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
    let usual_port = match (is_http, mode) {
        (false, TlsMode::Disable) => PORT,
        (false, _) => TLS_PORT,
        (true, TlsMode::Disable) => HTTP_PORT,
        (true, _) => HTTPS_PORT,
    };
    let host = url.hosts.first().map(|host| host.name.clone()).filter(|name| !name.is_empty());
    let host = host.unwrap_or_else(|| "localhost".to_owned());
    let port = url.hosts.first().and_then(|host| host.port).unwrap_or(usual_port);
    if HTTP_PORTS.contains(&port) && !is_http {
        let message = format!("port {port} is where ClickHouse speaks HTTP, and clickhouse:// its native protocol");
        let hint = format!(
            "write clickhouse+http:// or clickhouse+https://; the native port is {PORT}, or {TLS_PORT} with TLS"
        );
        return Err(wrong(message, Some(hint)));
    }
    let or_default = |text: &str| if text.is_empty() { "default".to_owned() } else { text.to_owned() };
    let (user, database) = (or_default(url.user.as_deref().unwrap_or_default()), or_default(&url.path));
    let password = url.password.clone().or_else(|| surroundings.variable("CLICKHOUSE_PASSWORD")).unwrap_or_default();
    if is_http && [&user, &password].iter().any(|text| text.bytes().any(|byte| byte.is_ascii_control())) {
        return Err(wrong("user or password has a control character, which no header can hold".into(), None));
    }
    let http = if is_http { Some(read_http(&given, &host, port)?) } else { None };
    let shown = url.options.iter().filter(|(key, _)| key != "connect_timeout").cloned().collect();
    let display = Url {
        scheme: url.scheme.clone(),
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
        http,
    })
}

fn read_http<'a>(given: &dyn Fn(&str) -> Option<&'a str>, host: &str, port: u16) -> Result<Http, TargetError> {
    let coding = match given("compression") {
        None | Some("none") => Coding::Identity,
        Some(word) => Coding::of(word.as_bytes())
            .ok_or_else(|| wrong(format!("unknown compression `{word}`"), Some("none, gzip, zstd".to_owned())))?,
    };
    let waits = match given("wait_end_of_query") {
        None | Some("0") => false,
        Some("1") => true,
        Some(word) => return Err(wrong(format!("wait_end_of_query is `{word}`"), Some("0, 1".to_owned()))),
    };
    let session_timeout = match given("session_timeout").map(str::parse::<u32>) {
        None => SESSION_TIMEOUT,
        Some(Ok(seconds @ 1..)) => seconds,
        Some(_) => return Err(wrong("session_timeout is not a number of seconds".into(), None)),
    };
    let host = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok(Http { host, coding, waits, session_timeout, run: Arc::new(HttpRun::new()) })
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
            ("clickhouse+http://h", "clickhouse+http://default@h/default", 8123),
            ("clickhouse+https://me:secret@h/b", "clickhouse+https://me@h/b", 8443),
            ("clickhouse+https://h:1?sslmode=require", "clickhouse+https://default@h:1/default?sslmode=require", 1),
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
            ("clickhouse://h:8123", "port 8123 is where ClickHouse speaks HTTP, and clickhouse:// its native protocol"),
            ("clickhouse://h?compression=gzip", "unknown option `compression` in the database URL"),
            ("clickhouse+http://h?compression=br", "unknown compression `br`"),
            ("clickhouse+http://h?wait_end_of_query=yes", "wait_end_of_query is `yes`"),
            ("clickhouse+http://h?session_timeout=0", "session_timeout is not a number of seconds"),
            ("clickhouse+http://h?sslmode=require", "clickhouse+http is not encrypted"),
            ("clickhouse+https://h?sslmode=disable", "clickhouse+https with sslmode=disable"),
            ("clickhouse+http://a%0D%0Ab@h", "user or password has a control character, which no header can hold"),
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
