//! Parses `scheme://user:password@host:port,host:port/database?key=value`.
//!
//! One parser for all drivers, which decide what the parts mean. Nothing is looked up or completed here. A message
//! never repeats the text between `//` and `@`, nor anything that might belong there: a password with a `/` that is not
//! percent-encoded moves into other parts.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::database::TargetError;

/// A URL's parts, percent-decoded. `Display` and `Debug` omit the password, and every option whose name mentions one.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    /// Lower case, without `:`.
    pub scheme: String,
    /// `None` when absent or empty.
    pub user: Option<String>,
    /// `None` when absent; may be empty.
    pub password: Option<String>,
    /// In the order written; empty without hosts. A host is never empty unless it has a port.
    pub hosts: Vec<HostPort>,
    /// What follows the first `/` after the hosts; empty when absent.
    pub path: String,
    /// In the order written.
    pub options: Vec<(String, String)>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// Name or address, an IPv6 address without its brackets; PostgreSQL also has a socket's directory here.
    pub name: String,
    /// 1 … 65535.
    pub port: Option<u16>,
}

impl Url {
    /// Parses a URL. An error names the part that is wrong.
    pub fn parse(text: &str) -> Result<Url, TargetError> {
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| wrong("a database URL must have the form scheme://…"))?;
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(authority_end);
        if rest.contains('@') || text.contains('#') {
            return Err(TargetError {
                hint: Some("in a user name or password write / as %2F, ? as %3F, # as %23, @ as %40".into()),
                ..wrong("the database URL has an `@` after its `/` or `?`, or a `#`")
            });
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            // As records and experiments show it: to be found elsewhere, as if it were not there.
            Some((user, "***")) => (user, None),
            Some((user, password)) => (user, Some(decode(password, "password")?)),
            None => (login, None),
        };
        let hosts = match hosts {
            "" => Vec::new(),
            hosts => hosts.split(',').map(host).collect::<Result<_, _>>()?,
        };
        let mut options = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            options.push((decode(key, "option")?, decode(value, "option")?));
        }
        Ok(Url {
            scheme: scheme.to_ascii_lowercase(),
            user: Some(decode(user, "user name")?).filter(|user| !user.is_empty()),
            password,
            hosts,
            path: decode(path.strip_prefix('/').unwrap_or(path), "path")?,
            options,
        })
    }
}

fn host(text: &str) -> Result<HostPort, TargetError> {
    let (name, port) = match text.strip_prefix('[') {
        Some(address) => {
            let (address, port) = address.split_once(']').ok_or_else(|| wrong("the database URL lacks a `]`"))?;
            match port.strip_prefix(':') {
                None if !port.is_empty() => return Err(wrong("a `]` in the database URL is not followed by `:`")),
                port => (address, port.unwrap_or("")),
            }
        }
        None if text.matches(':').count() > 1 => {
            let hint = Some("put an IPv6 address in brackets: [::1]:5432".into());
            return Err(TargetError { hint, ..wrong("a host of the database URL has several `:`") });
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = match port {
        "" => None,
        port => match port.parse::<u16>() {
            Ok(port @ 1..) => Some(port),
            _ => return Err(wrong("a port in the database URL is not a number from 1 to 65535")),
        },
    };
    Ok(HostPort { name: decode(name, "host")?, port })
}

fn decode(text: &str, part: &str) -> Result<String, TargetError> {
    match decoded(text) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Err(Undecodable::Percent) => Err(TargetError {
            hint: Some("write a % itself as %25".into()),
            ..wrong(&format!("the {part} in the database URL has a `%` without two digits"))
        }),
        Ok(_) | Err(Undecodable::Text) => Err(wrong(&format!("the {part} in the database URL is not UTF-8 text"))),
    }
}

/// Why a percent-encoded text is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// A `%` is not followed by two hexadecimal digits.
    Percent,
    /// It is not UTF-8 once decoded.
    Text,
}

/// Replaces `%41` by `A`, for URLs of any shape.
pub fn decoded(text: &str) -> Result<String, Undecodable> {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    if text.match_indices('%').any(|(at, _)| !digit(bytes.get(at + 1)) || !digit(bytes.get(at + 2))) {
        return Err(Undecodable::Percent);
    }
    percent_decode_str(text).decode_utf8().map(Cow::into_owned).map_err(|_| Undecodable::Text)
}

/// The opposite: everything that could be mistaken for the structure of a URL is written as `%41`.
pub fn encoded(text: &str) -> impl fmt::Display {
    utf8_percent_encode(text, ESCAPED)
}

fn wrong(message: &str) -> TargetError {
    TargetError { message: message.into(), hint: None, is_missing: false }
}

/// What is escaped when a URL is shown: everything that could be mistaken for its structure.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some(user) = &self.user {
            write!(f, "{}@", encoded(user))?;
        }
        for (i, host) in self.hosts.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            match host.name.contains(':') && !host.name.starts_with('/') {
                true => write!(f, "[{}]", host.name)?,
                false => write!(f, "{}", encoded(&host.name))?,
            }
            if let Some(port) = host.port {
                write!(f, ":{port}")?;
            }
        }
        if !self.path.is_empty() {
            write!(f, "/{}", encoded(&self.path))?;
        }
        let shown = self.options.iter().filter(|(key, _)| !key.to_ascii_lowercase().contains("password"));
        for (i, (key, value)) in shown.enumerate() {
            let value = utf8_percent_encode(value, OPTION_ESCAPED);
            write!(f, "{}{}={value}", if i > 0 { '&' } else { '?' }, encoded(key))?;
        }
        Ok(())
    }
}

/// In an option's value paths stay readable.
const OPTION_ESCAPED: &AsciiSet = &ESCAPED.remove(b'/');

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, user: Option<&str>, password: Option<&str>, hosts: &[(&str, Option<u16>)], rest: &str) {
        let url = Url::parse(text).unwrap();
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (user, password), "{text}");
        let found: Vec<_> = url.hosts.iter().map(|host| (host.name.as_str(), host.port)).collect();
        assert_eq!(found, hosts, "{text}");
        assert_eq!(format!("{}{:?}", url.path, url.options), rest, "{text}");
        let shown = Url::parse(&url.to_string()).unwrap();
        assert_eq!((shown.user, shown.hosts, shown.path), (url.user, url.hosts, url.path), "what is shown reads back");
    }

    #[test]
    fn parts_are_told_apart_and_decoded() {
        check("mysql://", None, None, &[], "[]");
        check("mysql://localhost", None, None, &[("localhost", None)], "[]");
        check("mysql:///db", None, None, &[], "db[]");
        check(
            "Postgres://me:p%40%2Fss:w@h1:1,h2,[::1]:3/d%20b?a=b%26c&d&e=/f",
            Some("me"),
            Some("p@/ss:w"),
            &[("h1", Some(1)), ("h2", None), ("::1", Some(3))],
            r#"d b[("a", "b&c"), ("d", ""), ("e", "/f")]"#,
        );
        check("a://u:@[::1]", Some("u"), Some(""), &[("::1", None)], "[]");
        check("a://:p@h@x:1?k=v", None, Some("p@h"), &[("x", Some(1))], r#"[("k", "v")]"#);
        check("a://%2Frun%2Fpg:77/db", None, None, &[("/run/pg", Some(77))], "db[]");
        check("a://:77/db", None, None, &[("", Some(77))], "db[]");
    }

    #[test]
    fn wrong_urls_are_refused_without_repeating_a_password() {
        for (text, message) in [
            ("localhost/db", "a database URL must have the form scheme://…"),
            ("a://u:secret/x@h/db", "the database URL has an `@` after its `/` or `?`, or a `#`"),
            ("a://u:secret#x@h/db", "the database URL has an `@` after its `/` or `?`, or a `#`"),
            ("a://u:secret", "a port in the database URL is not a number from 1 to 65535"),
            ("a://h:0", "a port in the database URL is not a number from 1 to 65535"),
            ("a://h:65536", "a port in the database URL is not a number from 1 to 65535"),
            ("a://::1", "a host of the database URL has several `:`"),
            ("a://[::1", "the database URL lacks a `]`"),
            ("a://[::1]5", "a `]` in the database URL is not followed by `:`"),
            ("a://u:secret%@h", "the password in the database URL has a `%` without two digits"),
            ("a://u:secret%FF@h", "the password in the database URL is not UTF-8 text"),
            ("a://h/d%00", "the path in the database URL is not UTF-8 text"),
        ] {
            let error = Url::parse(text).unwrap_err();
            assert_eq!(error.message, message, "{text}");
            assert!(!format!("{error:?}").contains("secret"));
        }
    }

    #[test]
    fn a_shown_url_has_no_password() {
        let url = Url::parse("postgres://me:hidden@[::1]:5/d%20b?sslpassword=hidden&sslmode=require&k=/a b").unwrap();
        assert_eq!(url.to_string(), "postgres://me@[::1]:5/d%20b?sslmode=require&k=/a%20b");
        assert_eq!(format!("{url:?}"), url.to_string());
    }
}
