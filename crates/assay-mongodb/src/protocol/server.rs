//! A MongoDB server's address and login: the URL `mongodb://user:password@host,host/database?option=value`, or
//! `mongodb+srv://user:password@name/database?option=value`.
//!
//! Options have the names of MongoDB's connection strings, in any case. One that would change what is measured and is
//! not supported is refused with the reason; others are unknown. Source: MongoDB manual, "Connection Strings".

use std::path::PathBuf;
use std::sync::OnceLock;

use assay_seam::url::{HostPort, Url};
use assay_seam::{ConnectOptions, Endpoint, Nanos, TargetError, TlsMode, TlsSettings};

use crate::protocol::additions::Additions;
use crate::protocol::compression::Compressor;
use crate::protocol::json::Node;
use crate::protocol::scram::{Mechanism, Salted};
use crate::protocol::seeds::{Seeds, wrong};
use crate::protocol::template::{Templates, UNACKNOWLEDGED};

const DEFAULT_PORT: u16 = 27017;
const DEFAULT_DATABASE: &str = "test";

/// Everything a connection needs. `Debug` omits the password.
pub(super) struct MongoServer {
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) tls: TlsSettings,
    pub(super) credentials: Option<Credentials>,
    pub(super) salted: Salted,
    pub(super) topology: Topology,
    pub(super) additions: Additions,
    /// Those that may be used, the preferred one first.
    pub(super) compressors: Vec<Compressor>,
    pub(super) application_name: String,
    pub(super) connect: ConnectOptions,
    pub(super) templates: Templates,
    pub(super) connect_timeout: Option<Nanos>,
    /// Product and version, once a connection has asked.
    pub(super) version: OnceLock<(String, String)>,
    /// The URL without a password.
    pub(super) display: String,
}

impl std::fmt::Debug for MongoServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.display)
    }
}

/// Who logs in, and how.
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: String,
    /// The database where the user was created.
    pub(super) source: String,
    pub(super) method: Method,
}

/// How to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// SCRAM with the best hash that the user has.
    Scram,
    Only(Mechanism),
    Plain,
    X509,
}

/// Which servers may be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Topology {
    /// The replica set's name.
    pub(super) set: Option<String>,
    /// Whatever the server is, it is used.
    pub(super) direct: bool,
    /// Reads go to a secondary.
    pub(super) secondary: bool,
}

/// Options that are supported.
const OPTIONS: [&str; 22] = [
    "appName",
    "authMechanism",
    "authSource",
    "compressors",
    "connectTimeoutMS",
    "directConnection",
    "journal",
    "readConcernLevel",
    "readPreference",
    "replicaSet",
    "retryReads",
    "retryWrites",
    "srvServiceName",
    "ssl",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsAllowInvalidHostnames",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "w",
    "wtimeoutMS",
    "zlibCompressionLevel",
];

/// Options that are refused, and why.
const REFUSED: [(&str, &str); 11] = [
    ("authMechanismProperties", "no supported authMechanism has properties"),
    ("loadBalanced", "load balancers of MongoDB's protocol are not supported: name the servers"),
    ("maxPoolSize", "each session has a connection of its own: use `--sessions`"),
    ("maxStalenessSeconds", "servers are not chosen by how far they lag behind: name one with directConnection=true"),
    ("minPoolSize", "each session has a connection of its own: use `--sessions`"),
    ("readPreferenceTags", "servers are not chosen by tags: name one with directConnection=true"),
    ("serverSelectionTimeoutMS", "use connectTimeoutMS"),
    ("srvMaxHosts", "the primary could be a server that is left out"),
    ("socketTimeoutMS", "use \"maxTimeMS\" in commands"),
    ("tlsCertificateKeyFilePassword", "encrypted keys are not supported: decrypt it with `openssl pkey`"),
    ("tlsInsecure", "use tlsAllowInvalidCertificates=true"),
];

/// Reads a URL whose servers are named in it.
pub(super) fn read(url: &str, options: &ConnectOptions) -> Result<MongoServer, TargetError> {
    read_with(&Url::parse(url)?, None, options)
}

/// Reads a URL. `seeds`: what DNS says about its name.
pub(super) fn read_with(
    url: &Url,
    seeds: Option<&Seeds>,
    options: &ConnectOptions,
) -> Result<MongoServer, TargetError> {
    let written = given(url)?;
    let (given, hosts) = match seeds {
        None => (written.clone(), &url.hosts),
        Some(seeds) => (with_seeds(&written, seeds, url)?, &seeds.hosts),
    };
    if let (None, Some(_)) = (seeds, written.iter().find(|(name, _)| *name == "srvServiceName")) {
        return Err(wrong("srvServiceName in a URL without mongodb+srv://".into(), "leave it out"));
    }
    let text = |name: &str| given.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
    let truth = |name: &'static str| match text(name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => Err(wrong(format!("{name} in the database URL cannot be `{other}`"), "it may be true or false")),
    };
    for name in ["retryWrites", "retryReads"] {
        if truth(name)? == Some(true) {
            let message = format!("{name}=true is not supported: a retry within a statement would hide an error");
            let hint = format!("use {name}=false; `--retries` starts failed transactions again, and counts that");
            return Err(wrong(message, &hint));
        }
    }
    if url.path.contains(['/', '.', ' ', '"', '$']) {
        return Err(wrong(format!("the database name `{}` in the URL is not one of MongoDB's", url.path), ""));
    }
    let database = if url.path.is_empty() { DEFAULT_DATABASE } else { &url.path };
    let (endpoints, host) = endpoints(hosts);
    let tls = tls(&given, &host, &endpoints)?;
    let topology = Topology {
        set: text("replicaSet").map(str::to_owned),
        direct: truth("directConnection")? == Some(true),
        secondary: match text("readPreference") {
            None | Some("primary") => false,
            Some("secondary") => true,
            Some(other @ ("primaryPreferred" | "secondaryPreferred" | "nearest")) => {
                return Err(wrong(
                    format!("readPreference={other} is not supported: a run must know which server it loads"),
                    "use primary or secondary, or name one server with directConnection=true",
                ));
            }
            Some(other) => {
                let message = format!("readPreference in the database URL cannot be `{other}`");
                return Err(wrong(message, "it may be primary or secondary"));
            }
        },
    };
    if topology.direct && endpoints.len() > 1 {
        let message = "directConnection=true in the database URL, which names several hosts".into();
        return Err(wrong(message, "name one, or give `--db` once per server: sessions are spread over them"));
    }
    let connect_timeout = match text("connectTimeoutMS").map(|text| (text.parse().map(Nanos::from_millis), text)) {
        None | Some((Ok(Nanos::ZERO), _)) => None,
        Some((Ok(timeout), _)) => Some(timeout),
        Some((Err(_), text)) => {
            return Err(wrong(format!("connectTimeoutMS in the database URL is not a number: `{text}`"), ""));
        }
    };
    let credentials = credentials(url, &text, &tls)?;
    let read_preference = topology.secondary || topology.direct;
    let mode = if topology.secondary { "secondary" } else { "primaryPreferred" };
    let additions = Additions {
        database: database.to_owned(),
        write_concern: write_concern(&text, truth("journal")?)?,
        read_concern: text("readConcernLevel").map(read_concern).transpose()?,
        read_preference: read_preference.then(|| document(&[("mode", Node::Text(mode.to_owned()))])),
    };
    let of_url = |name: &str| written.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    let display = Url {
        scheme: url.scheme.clone(),
        user: url.user.clone(),
        password: None,
        hosts: shown(&url.hosts),
        path: database.to_owned(),
        options: OPTIONS
            .iter()
            .filter(|name| !matches!(**name, "appName" | "connectTimeoutMS" | "retryReads" | "retryWrites"))
            .filter_map(|name| Some(((*name).to_owned(), of_url(name)?)))
            .collect(),
    };
    Ok(MongoServer {
        endpoints,
        tls,
        credentials,
        salted: Salted::default(),
        topology,
        additions,
        compressors: compressors(&text)?,
        application_name: text("appName").unwrap_or(options.application_name).to_owned(),
        connect: options.clone(),
        templates: Templates::default(),
        connect_timeout,
        version: OnceLock::new(),
        display: display.to_string(),
    })
}

/// The options with those of DNS, and encryption, before them: a later one wins.
fn with_seeds(written: &Given, seeds: &Seeds, url: &Url) -> Result<Vec<(&'static str, String)>, TargetError> {
    let is_written = |name: &str| written.iter().any(|(key, _)| *key == name);
    if written.iter().any(|(key, value)| *key == "directConnection" && value == "true") {
        let message = "directConnection=true in a mongodb+srv:// URL, which stands for several servers".into();
        return Err(wrong(message, "name the server itself: mongodb://HOST/DATABASE?directConnection=true"));
    }
    let mut all = Vec::new();
    if !is_written("tls") && !is_written("ssl") {
        all.push(("tls", "true".to_owned()));
    }
    all.extend(seeds.set.clone().map(|set| ("replicaSet", set)));
    // Without a user nobody logs in.
    all.extend(seeds.source.clone().filter(|_| url.user.is_some()).map(|source| ("authSource", source)));
    all.extend_from_slice(written);
    Ok(all)
}

/// The options by their canonical names.
fn given(url: &Url) -> Result<Vec<(&'static str, String)>, TargetError> {
    let mut given = Vec::new();
    for (key, value) in &url.options {
        if let Some((name, why)) = REFUSED.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
            return Err(wrong(format!("the option {name} of MongoDB URLs is not supported"), why));
        }
        let Some(name) = OPTIONS.iter().find(|name| name.eq_ignore_ascii_case(key)) else {
            let hint = format!("the options are {}", OPTIONS.join(", "));
            return Err(wrong(format!("unknown option `{key}` in the database URL"), &hint));
        };
        if value.is_empty() {
            return Err(wrong(format!("the option {name} in the database URL has no value"), "leave it out"));
        }
        given.push((*name, value.clone()));
    }
    Ok(given)
}

/// Where to connect, and the first host's name.
fn endpoints(hosts: &[HostPort]) -> (Vec<Endpoint>, String) {
    let of = |host: &HostPort| match host.name.as_str() {
        name if name.starts_with('/') => Endpoint::Unix(PathBuf::from(name)),
        name => {
            let name = if name.is_empty() { "localhost" } else { name };
            Endpoint::Tcp { host: name.to_owned(), port: host.port.unwrap_or(DEFAULT_PORT) }
        }
    };
    let endpoints: Vec<Endpoint> = hosts.iter().map(of).collect();
    match hosts.first() {
        Some(first) if !first.name.is_empty() => (endpoints, first.name.clone()),
        Some(_) => (endpoints, "localhost".into()),
        None => (vec![Endpoint::Tcp { host: "localhost".into(), port: DEFAULT_PORT }], "localhost".into()),
    }
}

/// The place of a member, by the name that its set has for it; `None` if that is not the name of a host.
pub(super) fn endpoint_of(name: &str) -> Option<Endpoint> {
    let (host, port) = match name.rsplit_once(':') {
        // An IPv6 address without a port has a `:` before its `]`.
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok().filter(|port| *port > 0)?),
        _ => (name, DEFAULT_PORT),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let is_host = !host.is_empty() && host.len() <= HOST_NAME_MAX && host.chars().all(is_name);
    is_host.then(|| Endpoint::Tcp { host: host.to_owned(), port })
}

const HOST_NAME_MAX: usize = 255;

/// The hosts without what is usual.
fn shown(hosts: &[HostPort]) -> Vec<HostPort> {
    if hosts.is_empty() {
        return vec![HostPort { name: "localhost".into(), port: None }];
    }
    let of = |host: &HostPort| HostPort {
        name: if host.name.is_empty() { "localhost".into() } else { host.name.clone() },
        port: host.port.filter(|port| *port != DEFAULT_PORT),
    };
    hosts.iter().map(of).collect()
}

type Given = [(&'static str, String)];

fn tls(given: &Given, host: &str, endpoints: &[Endpoint]) -> Result<TlsSettings, TargetError> {
    let text = |name: &str| given.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| value.as_str());
    let is_on = |name: &str| text(name) == Some("true");
    for name in ["tls", "ssl", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames"] {
        if let Some(other) = text(name).filter(|value| !matches!(*value, "true" | "false")) {
            return Err(wrong(format!("{name} in the database URL cannot be `{other}`"), "it may be true or false"));
        }
    }
    let files = ["tlsCAFile", "tlsCertificateKeyFile", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames"];
    let wanted = is_on("tls") || is_on("ssl");
    if let Some(name) = files.into_iter().find(|name| text(name).is_some() && !wanted) {
        return Err(wrong(format!("{name} in the database URL, without tls=true"), "add tls=true, or leave it out"));
    }
    if !wanted {
        return Ok(TlsSettings::default());
    }
    if endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Unix(_))) {
        return Err(wrong("tls=true in the database URL, which names a unix socket".into(), "leave out tls=true"));
    }
    let mode = match (is_on("tlsAllowInvalidCertificates"), is_on("tlsAllowInvalidHostnames")) {
        (true, _) => TlsMode::Require,
        (false, true) => TlsMode::VerifyCa,
        (false, false) => TlsMode::VerifyFull,
    };
    let pair = text("tlsCertificateKeyFile").map(|path| (PathBuf::from(path), PathBuf::from(path)));
    // With a root, `Require` would check the chain, as libpq does.
    let root = text("tlsCAFile").filter(|_| mode != TlsMode::Require).map(PathBuf::from);
    Ok(TlsSettings { mode, root, client: pair, server_name: host.to_owned(), each_host: true })
}

fn credentials<'a>(
    url: &Url,
    text: &dyn Fn(&str) -> Option<&'a str>,
    tls: &TlsSettings,
) -> Result<Option<Credentials>, TargetError> {
    let method = match text("authMechanism") {
        None => Method::Scram,
        Some("SCRAM-SHA-256") => Method::Only(Mechanism::Sha256),
        Some("SCRAM-SHA-1") => Method::Only(Mechanism::Sha1),
        Some("PLAIN") => Method::Plain,
        Some("MONGODB-X509") => Method::X509,
        Some(other) => {
            return Err(wrong(
                format!("authMechanism={other} is not supported"),
                "it may be SCRAM-SHA-256, SCRAM-SHA-1, PLAIN or MONGODB-X509",
            ));
        }
    };
    let external = matches!(method, Method::Plain | Method::X509);
    let source = text("authSource").map(str::to_owned);
    let source = source.unwrap_or_else(|| match url.path.as_str() {
        _ if external => "$external".into(),
        "" => "admin".into(),
        path => path.into(),
    });
    match method {
        Method::Plain if tls.mode == TlsMode::Disable => {
            return Err(wrong("authMechanism=PLAIN would send the password in clear".into(), "add tls=true"));
        }
        Method::X509 if tls.client.is_none() => {
            return Err(wrong(
                "authMechanism=MONGODB-X509 needs a certificate".into(),
                "add tls=true&tlsCertificateKeyFile=FILE, a PEM file with the certificate and its key",
            ));
        }
        Method::X509 => {}
        _ if url.user.is_none() => {
            if text("authMechanism").is_some() || text("authSource").is_some() {
                let message = "the database URL says how to log in, and names no user".into();
                return Err(wrong(message, "write mongodb://USER:PASSWORD@HOST/DATABASE"));
            }
            return Ok(None);
        }
        _ => {}
    }
    let password = url.password.clone().unwrap_or_default();
    Ok(Some(Credentials { user: url.user.clone().unwrap_or_default(), password, source, method }))
}

fn write_concern<'a>(
    text: &dyn Fn(&str) -> Option<&'a str>,
    journal: Option<bool>,
) -> Result<Option<Node>, TargetError> {
    let mut fields = Vec::new();
    match text("w").map(|w| (w.parse::<i32>(), w)) {
        None => {}
        Some((Ok(0), _)) => return Err(wrong(UNACKNOWLEDGED.into(), "use w=1 or more")),
        Some((Ok(number @ 1..=50), _)) => fields.push(("w", Node::Int32(number))),
        Some((Ok(number), _)) => {
            let message = format!("w in the database URL cannot be {number}");
            return Err(wrong(message, "it may be a number from 1 to 50, majority, or the name of a write concern"));
        }
        Some((Err(_), name)) => fields.push(("w", Node::Text(name.to_owned()))),
    }
    fields.extend(journal.map(|journal| ("j", Node::Bool(journal))));
    match text("wtimeoutMS").map(|text| (text.parse::<i32>(), text)) {
        None => {}
        Some((Ok(millis @ 0..), _)) => fields.push(("wtimeout", Node::Int32(millis))),
        Some((_, text)) => return Err(wrong(format!("wtimeoutMS in the database URL is not a number: `{text}`"), "")),
    }
    Ok((!fields.is_empty()).then(|| document(&fields)))
}

fn compressors<'a>(text: &dyn Fn(&str) -> Option<&'a str>) -> Result<Vec<Compressor>, TargetError> {
    let names = text("compressors");
    let level = match (text("zlibCompressionLevel"), names.is_some_and(|names| names.split(',').any(|it| it == "zlib")))
    {
        (None | Some("-1"), _) => 6,
        (Some(_), false) => {
            let message = "zlibCompressionLevel in the database URL, without compressors=zlib".into();
            return Err(wrong(message, "add compressors=zlib, or leave it out"));
        }
        (Some(level), true) => level.parse().ok().filter(|level| *level <= 9).ok_or_else(|| {
            let message = format!("zlibCompressionLevel in the database URL cannot be `{level}`");
            wrong(message, "it may be a number from 0 to 9, or -1 for the usual one")
        })?,
    };
    let of = |name: &str| match name {
        "snappy" => Ok(Compressor::Snappy),
        "zlib" => Ok(Compressor::Zlib(level)),
        "zstd" => Ok(Compressor::Zstd),
        _ => {
            let message = format!("compressors in the database URL cannot be `{name}`");
            Err(wrong(message, "it may be zstd, snappy or zlib, or several: the first that the server has is used"))
        }
    };
    names.into_iter().flat_map(|names| names.split(',')).map(of).collect()
}

fn read_concern(level: &str) -> Result<Node, TargetError> {
    match level {
        "local" | "available" | "majority" | "linearizable" => Ok(document(&[("level", Node::Text(level.to_owned()))])),
        "snapshot" => Err(wrong(
            "readConcernLevel=snapshot is not supported: it needs sessions".into(),
            "use local, available, majority or linearizable",
        )),
        _ => Err(wrong(
            format!("readConcernLevel in the database URL cannot be `{level}`"),
            "it may be local, available, majority or linearizable",
        )),
    }
}

fn document(fields: &[(&str, Node)]) -> Node {
    Node::Document(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, display: &str) -> MongoServer {
        let server = read(url, &ConnectOptions::default()).unwrap();
        assert_eq!(server.display, display);
        let again = read(&server.display, &ConnectOptions::default());
        assert!(again.is_ok_and(|again| again.display == server.display), "what is shown reads back");
        server
    }

    #[test]
    fn a_url_says_where_who_and_how() {
        let server = check("mongodb://", "mongodb://localhost/test");
        assert_eq!(server.endpoints, [Endpoint::Tcp { host: "localhost".into(), port: 27017 }]);
        assert!(server.credentials.is_none());
        let server = check(
            "mongodb://me:secret@a:1,b/bench?replicaSet=rs&W=majority&journal=true&wtimeoutMS=9&readConcernLevel=local&appname=x",
            "mongodb://me@a:1,b/bench?journal=true&readConcernLevel=local&replicaSet=rs&w=majority&wtimeoutMS=9",
        );
        assert_eq!(server.endpoints.len(), 2);
        assert_eq!(server.application_name, "x");
        assert_eq!(server.topology, Topology { set: Some("rs".into()), direct: false, secondary: false });
        let credentials = server.credentials.unwrap();
        assert_eq!((&*credentials.user, &*credentials.password, &*credentials.source), ("me", "secret", "bench"));
        assert_eq!(
            server.additions.write_concern,
            Some(document(&[
                ("w", Node::Text("majority".into())),
                ("j", Node::Bool(true)),
                ("wtimeout", Node::Int32(9))
            ]))
        );
        let server = check("mongodb://me@h", "mongodb://me@h/test");
        assert_eq!(server.credentials.unwrap().source, "admin");
        let server = check("mongodb://%2Ftmp%2Fmongodb-27017.sock/d", "mongodb://%2Ftmp%2Fmongodb-27017.sock/d");
        assert_eq!(server.endpoints, [Endpoint::Unix("/tmp/mongodb-27017.sock".into())]);
    }

    #[test]
    fn members_of_a_set_have_a_host_and_a_port() {
        let of = |name: &str| {
            endpoint_of(name).map(|endpoint| match endpoint {
                Endpoint::Tcp { host, port } => format!("{host} {port}"),
                other => panic!("{other:?}"),
            })
        };
        for (name, expected) in
            [("db1:27018", "db1 27018"), ("db1", "db1 27017"), ("[::1]:1", "::1 1"), ("[fe80::1]", "fe80::1 27017")]
        {
            assert_eq!(of(name).as_deref(), Some(expected));
        }
        for name in ["", ":1", "a:0", "a:x", "a:70000", "/tmp/mongodb.sock", "a b:1", &"x".repeat(300)] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_in_dns_stands_for_servers_and_options_which_the_url_overrides() {
        let host = |name: &str| HostPort { name: name.into(), port: Some(27018) };
        let seeds = Seeds {
            hosts: vec![host("a.example.com"), host("b.example.com")],
            set: Some("rs".into()),
            source: Some("users".into()),
        };
        let of = |url: &str| read_with(&Url::parse(url).unwrap(), Some(&seeds), &ConnectOptions::default());
        let server = of("mongodb+srv://me@c.example.com/bench?w=majority").unwrap();
        assert_eq!(server.display, "mongodb+srv://me@c.example.com/bench?w=majority");
        assert_eq!(server.endpoints[1], Endpoint::Tcp { host: "b.example.com".into(), port: 27018 });
        assert_eq!((server.tls.mode, &*server.tls.server_name), (TlsMode::VerifyFull, "a.example.com"));
        assert_eq!(server.topology.set.as_deref(), Some("rs"));
        assert_eq!(server.credentials.unwrap().source, "users");
        let server = of("mongodb+srv://me@c.example.com/bench?ssl=false&replicaSet=other&authSource=x").unwrap();
        assert_eq!((server.tls.mode, server.topology.set.as_deref()), (TlsMode::Disable, Some("other")));
        assert_eq!(server.credentials.unwrap().source, "x");
        assert!(of("mongodb+srv://c.example.com").unwrap().credentials.is_none());
        let direct = of("mongodb+srv://c.example.com/?directConnection=true").unwrap_err();
        assert!(direct.message.contains("which stands for several servers"), "{direct}");
    }

    #[test]
    fn encryption_checks_as_much_as_the_url_says() {
        let mode = |options: &str| read(&format!("mongodb://h/d?{options}"), &ConnectOptions::default()).unwrap().tls;
        assert_eq!(mode("tls=false").mode, TlsMode::Disable);
        let tls = mode("tls=true&tlsCAFile=/ca.pem&tlsCertificateKeyFile=/me.pem");
        assert_eq!((tls.mode, tls.server_name.as_str()), (TlsMode::VerifyFull, "h"));
        assert_eq!((tls.root, tls.client), (Some("/ca.pem".into()), Some(("/me.pem".into(), "/me.pem".into()))));
        assert_eq!(mode("ssl=true&tlsAllowInvalidHostnames=true").mode, TlsMode::VerifyCa);
        assert_eq!(mode("tls=true&tlsAllowInvalidCertificates=true").mode, TlsMode::Require);
    }

    #[test]
    fn what_is_not_supported_is_refused_with_cause_and_remedy() {
        let refused = |url: &str, message: &str, hint: &str| {
            let error = read(url, &ConnectOptions::default()).unwrap_err();
            assert_eq!(error.message, message, "{url}");
            assert!(error.hint.clone().unwrap_or_default().contains(hint), "{error:?}");
            assert!(!format!("{error:?}").contains("secret"));
        };
        refused("mongodb://h/d?srvServiceName=x", "srvServiceName in a URL without mongodb+srv://", "leave it out");
        refused("mongodb://h/d?foo=1", "unknown option `foo` in the database URL", "the options are appName");
        refused("mongodb://h/d?w=0", UNACKNOWLEDGED, "w=1");
        refused("mongodb://h/d?w=-1", "w in the database URL cannot be -1", "majority");
        refused("mongodb://h/d?compressors=lz4", "compressors in the database URL cannot be `lz4`", "zstd, snappy");
        refused(
            "mongodb://h/d?compressors=zlib&zlibCompressionLevel=10",
            "zlibCompressionLevel in the database URL cannot be `10`",
            "0 to 9",
        );
        refused(
            "mongodb://h/d?compressors=zstd&zlibCompressionLevel=1",
            "zlibCompressionLevel in the database URL, without compressors=zlib",
            "leave it out",
        );
        refused(
            "mongodb://h/d?retryWrites=true",
            "retryWrites=true is not supported: a retry within a statement would hide an error",
            "--retries",
        );
        refused("mongodb://h/d?tls=yes", "tls in the database URL cannot be `yes`", "true or false");
        refused("mongodb://h/d?tlsCAFile=x", "tlsCAFile in the database URL, without tls=true", "add tls=true");
        refused(
            "mongodb://a,b/d?directConnection=true",
            "directConnection=true in the database URL, which names several hosts",
            "name one",
        );
        refused(
            "mongodb://h/d?readPreference=nearest",
            "readPreference=nearest is not supported: a run must know which server it loads",
            "primary or secondary",
        );
        refused(
            "mongodb://h/d?readConcernLevel=snapshot",
            "readConcernLevel=snapshot is not supported: it needs sessions",
            "majority",
        );
        refused(
            "mongodb://me:secret@h/d?authMechanism=PLAIN",
            "authMechanism=PLAIN would send the password in clear",
            "tls=true",
        );
        refused(
            "mongodb://h/d?authMechanism=MONGODB-X509&tls=true",
            "authMechanism=MONGODB-X509 needs a certificate",
            "PEM",
        );
        refused("mongodb://h/d?authMechanism=GSSAPI", "authMechanism=GSSAPI is not supported", "SCRAM-SHA-256");
        refused("mongodb://h/d?authSource=admin", "the database URL says how to log in, and names no user", "USER");
        refused("mongodb://h/a.b", "the database name `a.b` in the URL is not one of MongoDB's", "");
        refused("mongodb://h/d?w=", "the option w in the database URL has no value", "leave it out");
    }
}
