//! A MySQL or MariaDB server's address and login: URL, `~/.my.cnf`, environment.
//!
//! What the URL omits comes from the `[client]` section of `~/.my.cnf`, then from MYSQL_HOST, MYSQL_TCP_PORT,
//! MYSQL_UNIX_PORT and MYSQL_PWD, then from the client's defaults. One difference from the `mysql` client: without a
//! socket anywhere, `localhost` means TCP to 127.0.0.1. Other sections, `!include` and login paths are not read.
//! Source: MySQL 8.0 manual, 4.2.2.2 "Using Option Files", 4.9 "Environment Variables".

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use assay_seam::url::{HostPort, Url};
use assay_seam::{ConnectOptions, Endpoint, Nanos, Surroundings, TargetError, TlsMode, TlsSettings};
use assay_wire::templates::Templates;

use super::result::KnownColumns;

const DEFAULT_PORT: u16 = 3306;

/// Everything a connection needs. `Debug` omits the password.
pub(super) struct MySqlServer {
    pub(super) user: String,
    /// Empty: none.
    pub(super) password: String,
    /// Empty: none.
    pub(super) database: String,
    pub(super) endpoint: Endpoint,
    pub(super) tls: TlsSettings,
    pub(super) connect: ConnectOptions,
    pub(super) templates: Templates,
    pub(super) columns: KnownColumns,
    pub(super) connect_timeout: Option<Nanos>,
    /// The URL without a password.
    pub(super) display: String,
    /// How the server first refused LOAD DATA.
    pub(super) file_refusal: OnceLock<String>,
}

impl MySqlServer {
    /// A server without a URL.
    pub(super) fn bare(endpoint: Endpoint, mode: TlsMode, connect: ConnectOptions) -> MySqlServer {
        MySqlServer {
            user: "user".into(),
            password: "secret".into(),
            database: "db".into(),
            endpoint,
            tls: TlsSettings { mode, ..TlsSettings::default() },
            connect,
            templates: Templates::default(),
            columns: KnownColumns::default(),
            connect_timeout: None,
            display: String::new(),
            file_refusal: OnceLock::new(),
        }
    }
}

impl std::fmt::Debug for MySqlServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.display)
    }
}

/// The options of a URL, and those of an option file that are used. In the file, the `ssl` ones have `ssl-` names only.
const URL_OPTIONS: [(&str, &str); 9] = [
    ("socket", "socket"),
    ("charset", "charset"),
    ("connect-timeout", "connect-timeout"),
    ("sslmode", "ssl-mode"),
    ("ssl-mode", "ssl-mode"),
    ("sslrootcert", "ssl-ca"),
    ("ssl-ca", "ssl-ca"),
    ("ssl-cert", "ssl-cert"),
    ("ssl-key", "ssl-key"),
];

pub(super) fn read(
    url: &str,
    options: &ConnectOptions,
    surroundings: &dyn Surroundings,
) -> Result<MySqlServer, TargetError> {
    let url = Url::parse(url)?;
    let mut given = HashMap::new();
    for (key, value) in &url.options {
        let known = URL_OPTIONS.iter().find(|(name, _)| *name == key.replace('_', "-"));
        let Some((_, name)) = known else {
            let names = URL_OPTIONS.map(|(name, _)| name).join(", ");
            return Err(wrong(format!("unknown option `{key}` in the database URL"), Some(names)));
        };
        given.insert(*name, value.clone());
    }
    if url.hosts.len() > 1 {
        let hint = "give `--db` once per server: sessions are spread over them";
        return Err(wrong("the database URL names several hosts".into(), Some(hint.into())));
    }
    if let Some(charset) = given.get("charset").filter(|charset| !charset.eq_ignore_ascii_case("utf8mb4")) {
        let hint =
            format!("scripts are UTF-8; to change a session's character set: --session-sql 'SET NAMES {charset}'");
        return Err(wrong(format!("charset `{charset}` in the database URL is not utf8mb4"), Some(hint)));
    }
    let file = option_file(surroundings);
    let setting = |name: &str| given.get(name).or_else(|| file.get(name)).cloned().filter(|value| !value.is_empty());
    let user = url.user.clone().or_else(|| setting("user")).or_else(|| surroundings.user());
    let user = user.ok_or_else(|| wrong("the database URL names no user".into(), None))?;
    let variable = |name: &str| surroundings.variable(name).filter(|value| !value.is_empty());
    let password = url.password.clone().or_else(|| setting("password")).or_else(|| variable("MYSQL_PWD"));
    let database = Some(url.path.clone()).filter(|path| !path.is_empty()).or_else(|| setting("database"));
    let database = database.unwrap_or_default();
    if database.contains('/') {
        return Err(wrong(format!("the database name `{database}` in the URL holds a `/`"), None));
    }
    let connect_timeout = match setting("connect-timeout").map(|text| (text.parse().map(Nanos::from_secs), text)) {
        None | Some((Ok(Nanos::ZERO), _)) => None,
        Some((Ok(timeout), _)) => Some(timeout),
        Some((Err(_), text)) => {
            return Err(wrong(format!("connect_timeout is not a number of seconds: `{text}`"), None));
        }
    };
    let (endpoint, host) = endpoint(&url, &given, &file, surroundings)?;
    let tls = tls(&given, &file, matches!(endpoint, Endpoint::Unix(_)), &host)?;
    let mut display = Url {
        scheme: "mysql".into(),
        user: Some(user.clone()),
        password: None,
        hosts: Vec::new(),
        path: database.clone(),
        options: Vec::new(),
    };
    match &endpoint {
        Endpoint::Unix(path) => display.options.push(("socket".into(), path.display().to_string())),
        Endpoint::Tcp { port, .. } => {
            let port = Some(*port).filter(|port| *port != DEFAULT_PORT);
            display.hosts.push(HostPort { name: host, port });
            let (word, _, _) = MODES.iter().find(|(_, _, mode)| *mode == tls.mode).expect("every mode has a word");
            if tls.mode != TlsMode::Prefer {
                display.options.push(("sslmode".into(), (*word).into()));
            }
        }
        Endpoint::Embedded => {}
    }
    Ok(MySqlServer {
        user,
        password: password.unwrap_or_default(),
        database,
        endpoint,
        tls,
        connect: options.clone(),
        templates: Templates::default(),
        columns: KnownColumns::default(),
        connect_timeout,
        display: display.to_string(),
        file_refusal: OnceLock::new(),
    })
}

type Parameters<'a> = HashMap<&'a str, String>;

/// Where to connect, and the host's name as written. A host or socket in the URL overrides both of any found elsewhere.
fn endpoint(
    url: &Url,
    given: &Parameters<'_>,
    file: &Parameters<'_>,
    surroundings: &dyn Surroundings,
) -> Result<(Endpoint, String), TargetError> {
    let tcp = |name: &str, port: Option<u16>| -> Result<(Endpoint, String), TargetError> {
        let port = match port {
            Some(port) => port,
            None => {
                let found = file.get("port").map(|port| ("port in ~/.my.cnf", port.clone()));
                let variable = || surroundings.variable("MYSQL_TCP_PORT").map(|port| ("MYSQL_TCP_PORT", port));
                match found.or_else(variable).filter(|(_, port)| !port.is_empty() && port != "0") {
                    None => DEFAULT_PORT,
                    Some((place, port)) => {
                        port.parse().map_err(|_| wrong(format!("{place} is not a port: `{port}`"), None))?
                    }
                }
            }
        };
        let name = if name.is_empty() { "localhost" } else { name };
        let host = if name == "localhost" { "127.0.0.1" } else { name };
        Ok((Endpoint::Tcp { host: host.into(), port }, name.to_string()))
    };
    let unix = |path: &str| Ok((Endpoint::Unix(PathBuf::from(path)), "localhost".to_string()));
    let host = url.hosts.first();
    match (given.get("socket").filter(|path| !path.is_empty()), host) {
        (Some(path), None) => return unix(path),
        (Some(path), Some(host)) if host.name == "localhost" && host.port.is_none() => return unix(path),
        (Some(_), Some(_)) => {
            return Err(wrong("the database URL names both a host and a socket".into(), None));
        }
        (None, Some(host)) => return tcp(&host.name, host.port),
        (None, None) => {}
    }
    let local = |host: &&String| *host != "localhost";
    match (file.get("host").filter(local), file.get("socket")) {
        (Some(host), _) => return tcp(host, None),
        (None, Some(path)) => return unix(path),
        (None, None) => {}
    }
    let variable = |name: &str| surroundings.variable(name).filter(|value| !value.is_empty());
    match (variable("MYSQL_HOST").filter(|host| host != "localhost"), variable("MYSQL_UNIX_PORT")) {
        (Some(host), _) => tcp(&host, None),
        (None, Some(path)) => unix(&path),
        (None, None) => tcp("localhost", None),
    }
}

/// libpq's word, MySQL's word, meaning.
const MODES: [(&str, &str, TlsMode); 5] = [
    ("disable", "disabled", TlsMode::Disable),
    ("prefer", "preferred", TlsMode::Prefer),
    ("require", "required", TlsMode::Require),
    ("verify-ca", "verify-ca", TlsMode::VerifyCa),
    ("verify-full", "verify-identity", TlsMode::VerifyFull),
];

fn tls(given: &Parameters<'_>, file: &Parameters<'_>, unix: bool, host: &str) -> Result<TlsSettings, TargetError> {
    let setting = |name: &str| given.get(name).or_else(|| file.get(name)).filter(|value| !value.is_empty());
    let path = |name: &str| setting(name).map(PathBuf::from);
    let root = path("ssl-ca");
    let mode = match setting("ssl-mode") {
        Some(word) => {
            let lower = word.to_ascii_lowercase().replace('_', "-");
            let known = MODES.iter().find(|(ours, theirs, _)| *ours == lower || *theirs == lower);
            let words = MODES.map(|(word, _, _)| word).join(", ");
            known.ok_or_else(|| wrong(format!("unknown sslmode `{word}`"), Some(words)))?.2
        }
        // As in the client: naming a root means using it. But a socket never leaves the machine.
        None if root.is_some() && !unix => TlsMode::VerifyCa,
        None => TlsMode::Prefer,
    };
    let mode = if unix && mode <= TlsMode::Prefer { TlsMode::Disable } else { mode };
    let client = match (path("ssl-cert"), path("ssl-key")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(wrong("ssl-cert and ssl-key must be given together".into(), None)),
    };
    Ok(TlsSettings { mode, root, client, server_name: host.into(), each_host: false })
}

/// The `[client]` section of `~/.my.cnf`; empty if there is no such file. Like the client, ignores a file that
/// everybody may write.
fn option_file(surroundings: &dyn Surroundings) -> Parameters<'static> {
    let path = surroundings.home().map(|home| home.join(".my.cnf"));
    let path = path.filter(|path| surroundings.mode(path).is_none_or(|mode| mode & 0o002 == 0));
    let content = path.and_then(|path| surroundings.read(&path)).unwrap_or_default();
    client_section(&String::from_utf8_lossy(&content))
}

/// The options we use, by our names for them.
const FILE_OPTIONS: [&str; 11] = [
    "user",
    "password",
    "host",
    "port",
    "socket",
    "database",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "connect-timeout",
];

fn client_section(text: &str) -> Parameters<'static> {
    let mut settings = HashMap::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.split(']').next().is_some_and(|name| name.trim() == "client");
            continue;
        }
        // A comment's first character is part of an invalid name.
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let name = name.trim().replace('_', "-");
        let known = FILE_OPTIONS.into_iter().find(|known| *known == name);
        if inside && let Some(name) = known {
            settings.insert(name, file_value(value.trim()));
        } else if inside && matches!(name.as_str(), "skip-ssl" | "disable-ssl") {
            settings.insert("ssl-mode", "disable".to_string());
        }
    }
    settings
}

/// A value without its quotes or the comment after it, with escapes replaced.
fn file_value(text: &str) -> String {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let body = match quote.and_then(|quote| text[1..].rfind(quote).map(|end| &text[1..=end])) {
        Some(quoted) => quoted,
        None => text.split('#').next().unwrap_or("").trim_end(),
    };
    let mut value = String::new();
    let mut letters = body.chars();
    while let Some(letter) = letters.next() {
        match (letter, letters.clone().next()) {
            ('\\', Some(escaped @ ('b' | 't' | 'n' | 'r' | '\\' | 's' | '"' | '\''))) => {
                letters.next();
                value.push(match escaped {
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'r' => '\r',
                    's' => ' ',
                    other => other,
                });
            }
            _ => value.push(letter),
        }
    }
    value
}

fn wrong(message: String, hint: Option<String>) -> TargetError {
    TargetError { message, hint, is_missing: false }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::*;

    #[derive(Default)]
    pub(in crate::protocol) struct Fake {
        variables: HashMap<&'static str, &'static str>,
        file: Option<&'static str>,
        mode: u32,
    }

    impl Surroundings for Fake {
        fn variable(&self, name: &str) -> Option<String> {
            self.variables.get(name).map(|value| (*value).to_string())
        }
        fn read(&self, path: &Path) -> Option<Vec<u8>> {
            assert_eq!(path, Path::new("/home/me/.my.cnf"));
            self.file.map(|text| text.as_bytes().to_vec())
        }
        fn mode(&self, _path: &Path) -> Option<u32> {
            self.file.map(|_| self.mode)
        }
        fn home(&self) -> Option<PathBuf> {
            Some("/home/me".into())
        }
        fn user(&self) -> Option<String> {
            Some("me".into())
        }
    }

    /// A server for the tests of other files.
    pub(in crate::protocol) fn server(url: &str, prepared: bool) -> MySqlServer {
        let options = ConnectOptions { prepared, ..ConnectOptions::default() };
        read(url, &options, &Fake::default()).unwrap()
    }

    fn check_in(surroundings: &Fake, url: &str, expected: &str) {
        let found = match read(url, &ConnectOptions::default(), surroundings) {
            Err(error) => format!("{error} [{}]", error.hint.clone().unwrap_or_default()),
            Ok(server) => {
                assert!(server.password.is_empty() || !format!("{server:?}").contains(&server.password));
                let endpoint = match &server.endpoint {
                    Endpoint::Tcp { host, port } => format!("{host}:{port}"),
                    other => format!("{other:?}"),
                };
                let root = server.tls.root.as_ref().map_or(String::new(), |path| path.display().to_string());
                format!("{} | {} {endpoint} {:?} {root}", server.display, server.password, server.tls.mode)
            }
        };
        assert_eq!(found.trim_end(), expected, "{url}");
    }

    fn check(url: &str, expected: &str) {
        check_in(&Fake::default(), url, expected);
    }

    #[test]
    fn urls_name_account_server_and_database() {
        check("mysql://", "mysql://me@localhost |  127.0.0.1:3306 Prefer");
        check("mysql:///shop", "mysql://me@localhost/shop |  127.0.0.1:3306 Prefer");
        check("mariadb://app:s%40f@db:3307/shop", "mysql://app@db:3307/shop | s@f db:3307 Prefer");
        check("mysql://app@[::1]/x", "mysql://app@[::1]/x |  ::1:3306 Prefer");
        check(
            "mysql://app:pw@/x?socket=/run/m.sock",
            "mysql://app@/x?socket=/run/m.sock | pw Unix(\"/run/m.sock\") Disable",
        );
        check(
            "mysql://a,b/x",
            "the database URL names several hosts [give `--db` once per server: sessions are spread over them]",
        );
        check("mysql://db/x?socket=/s", "the database URL names both a host and a socket []");
    }

    #[test]
    fn tls_modes_have_the_words_of_both_clients() {
        for (word, mode) in [
            ("sslmode=disable", "Disable"),
            ("ssl-mode=DISABLED", "Disable"),
            ("sslmode=require", "Require"),
            ("ssl_mode=REQUIRED", "Require"),
            ("sslmode=verify-ca", "VerifyCa"),
            ("ssl-mode=VERIFY_CA", "VerifyCa"),
            ("ssl-mode=VERIFY_IDENTITY", "VerifyFull"),
        ] {
            let server = server(&format!("mysql://db/x?{word}"), true);
            assert_eq!(format!("{:?}", server.tls.mode), mode, "{word}");
        }
        check("mysql://db?ssl-ca=/ca.pem", "mysql://me@db?sslmode=verify-ca |  db:3306 VerifyCa /ca.pem");
        check("mysql://db?sslmode=prefer&ssl-ca=/ca.pem", "mysql://me@db |  db:3306 Prefer /ca.pem");
        check("mysql://db?sslmode=allow", "unknown sslmode `allow` [disable, prefer, require, verify-ca, verify-full]");
        check("mysql://db?ssl-cert=/c", "ssl-cert and ssl-key must be given together []");
    }

    #[test]
    fn unknown_options_are_refused() {
        check(
            "mysql://db?sslmod=require",
            "unknown option `sslmod` in the database URL [socket, charset, connect-timeout, sslmode, ssl-mode, sslrootcert, ssl-ca, \
             ssl-cert, ssl-key]",
        );
        check("mysql://db?charset=UTF8MB4", "mysql://me@db |  db:3306 Prefer");
        check(
            "mysql://db?charset=latin1",
            "charset `latin1` in the database URL is not utf8mb4 [scripts are UTF-8; to change a session's character \
             set: --session-sql 'SET NAMES latin1']",
        );
    }

    #[test]
    fn connecting_may_be_given_a_limit() {
        let limit = |url| server(url, true).connect_timeout;
        assert_eq!(limit("mysql://db?connect_timeout=5"), Some(Nanos::from_secs(5)));
        assert_eq!(limit("mysql://db?connect_timeout=0"), None);
        check("mysql://db?connect_timeout=-1", "connect_timeout is not a number of seconds: `-1` []");
    }

    const FILE: &str = "\
# password = no
[mysql]
password = no
[client]
user = admin  # the boss
password = \"a#b \\\"c\\\" \\s\"
port=3310
ssl_mode = required
[client-mariadb]
user = no
";

    #[test]
    fn the_option_file_completes_the_url() {
        let file = Fake { file: Some(FILE), mode: 0o600, ..Fake::default() };
        check_in(
            &file,
            "mysql://",
            "mysql://admin@localhost:3310?sslmode=require | a#b \"c\"   127.0.0.1:3310 Require",
        );
        check_in(&file, "mysql://u:p@h:1?sslmode=disable", "mysql://u@h:1?sslmode=disable | p h:1 Disable");
        check_in(&Fake { mode: 0o666, ..file }, "mysql://", "mysql://me@localhost |  127.0.0.1:3306 Prefer");
        let socket = Fake { file: Some("[client]\nsocket=/s\n"), ..Fake::default() };
        check_in(&socket, "mysql:///x", "mysql://me@/x?socket=/s |  Unix(\"/s\") Disable");
        check_in(&socket, "mysql://localhost/x", "mysql://me@localhost/x |  127.0.0.1:3306 Prefer");
        let host = Fake { file: Some("[client]\nsocket=/s\nhost=db\nport=x\n"), ..Fake::default() };
        check_in(&host, "mysql:///x", "port in ~/.my.cnf is not a port: `x` []");
        check_in(&host, "mysql://:7/x", "mysql://me@localhost:7/x |  127.0.0.1:7 Prefer");
    }

    #[test]
    fn the_environment_completes_what_is_still_open() {
        let variables = HashMap::from([("MYSQL_PWD", "pw"), ("MYSQL_HOST", "db"), ("MYSQL_TCP_PORT", "3311")]);
        let env = Fake { variables, ..Fake::default() };
        check_in(&env, "mysql:///x", "mysql://me@db:3311/x | pw db:3311 Prefer");
        check_in(&env, "mysql://u:word@h:1/x", "mysql://u@h:1/x | word h:1 Prefer");
        let both = Fake { file: Some("[client]\npassword=file\nhost=other\n"), ..env };
        check_in(&both, "mysql:///x", "mysql://me@other:3311/x | file other:3311 Prefer");
        let socket = Fake { variables: HashMap::from([("MYSQL_UNIX_PORT", "/s")]), ..Fake::default() };
        check_in(&socket, "mysql:///x", "mysql://me@/x?socket=/s |  Unix(\"/s\") Disable");
        check_in(&socket, "mysql://h/x", "mysql://me@h/x |  h:3306 Prefer");
    }
}
