//! `mongodb+srv://`: the servers and some options behind a name in DNS.
//!
//! Source: the specification "Initial DNS Seedlist Discovery" of MongoDB's drivers. SRV records name the servers, which
//! must be in the domain of the name, so that nobody else's DNS can take over a login; a TXT record may name the
//! replica set and where users are created. Everything else stands in the URL, whose options win.

use assay_seam::url::{HostPort, Url};
use assay_seam::{Surroundings, TargetError};

pub(super) const SCHEME: &str = "mongodb+srv";

const SERVICE: &str = "mongodb";

/// What DNS says about a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seeds {
    /// Not empty.
    pub(super) hosts: Vec<HostPort>,
    pub(super) set: Option<String>,
    pub(super) source: Option<String>,
}

impl Seeds {
    /// Looks up the only host of a URL with this scheme.
    pub(super) fn look_up(url: &Url, around: &dyn Surroundings) -> Result<Seeds, TargetError> {
        let (name, service) = (name_of(url)?, service_of(url));
        let record = format!("_{service}._tcp.{name}");
        let found = around.services(&record)?;
        if found.is_empty() {
            return Err(wrong(
                format!("{record} has no SRV records in DNS"),
                "check the host; a server that is named itself has a URL that begins with mongodb://",
            ));
        }
        let mut seeds = Seeds::default();
        for (host, port) in found {
            let host = host.to_ascii_lowercase();
            if !belongs(&host, &name) {
                return Err(wrong(
                    format!("{record} in DNS names the server {host}, which is not in the domain of {name}"),
                    "such a record is not trusted: correct it, or name the server itself: mongodb://HOST/DATABASE",
                ));
            }
            if port == 0 {
                return Err(wrong(format!("{record} in DNS names the server {host} with port 0"), "correct it"));
            }
            seeds.hosts.push(HostPort { name: host, port: Some(port) });
        }
        match around.texts(&name)?.as_slice() {
            [] => {}
            [text] => seeds.read_text(text, &name)?,
            _ => return Err(wrong(format!("{name} has several TXT records in DNS"), "leave only one of them")),
        }
        Ok(seeds)
    }

    /// `authSource=admin&replicaSet=rs`
    fn read_text(&mut self, text: &str, name: &str) -> Result<(), TargetError> {
        let options = Url::parse(&format!("{SCHEME}://h/?{text}"))
            .map_err(|_| wrong(format!("the TXT record of {name} in DNS is not a list of options"), "correct it"))?;
        for (key, value) in options.options {
            let is = |name: &str| key.eq_ignore_ascii_case(name);
            match () {
                () if value.is_empty() => {
                    let message = format!("the option {key} in the TXT record of {name} has no value");
                    return Err(wrong(message, "correct the record"));
                }
                () if is("replicaSet") => self.set = Some(value),
                () if is("authSource") => self.source = Some(value),
                () if is("loadBalanced") && value == "false" => {}
                () if is("loadBalanced") => {
                    return Err(wrong(
                        format!("{name} is a load balancer (TXT record in DNS), which is not supported"),
                        "name the servers behind it: mongodb://HOST1,HOST2/DATABASE",
                    ));
                }
                () => {
                    return Err(wrong(
                        format!("the TXT record of {name} in DNS has the option {key}"),
                        "it may have authSource, replicaSet and loadBalanced: others belong into the URL",
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The only host, without a final dot.
fn name_of(url: &Url) -> Result<String, TargetError> {
    let example = "write mongodb+srv://USER@HOST/DATABASE, with the name that has the SRV records";
    match url.hosts.as_slice() {
        [host] if host.port.is_some() => {
            Err(wrong("a mongodb+srv:// URL has no port: SRV records name the ports".into(), "leave out the port"))
        }
        [host] if host.name.starts_with('/') || host.name.parse::<core::net::IpAddr>().is_ok() => {
            Err(wrong("a mongodb+srv:// URL names a host that has no SRV records".into(), example))
        }
        [host] if !host.name.trim_matches('.').is_empty() => Ok(host.name.trim_end_matches('.').to_ascii_lowercase()),
        hosts => {
            let message = if hosts.len() > 1 { "names several hosts" } else { "names no host" };
            Err(wrong(format!("the mongodb+srv:// URL {message}"), example))
        }
    }
}

fn service_of(url: &Url) -> &str {
    let of = |(key, value): &'_ (String, String)| key.eq_ignore_ascii_case("srvServiceName") && !value.is_empty();
    url.options.iter().rev().find(|option| of(option)).map_or(SERVICE, |(_, value)| value)
}

/// Whether a server is in the domain of the name: what follows its first part, or the name itself if it has fewer than
/// three parts.
fn belongs(host: &str, name: &str) -> bool {
    let domain = match name.split('.').count() {
        0..3 => name,
        _ => name.split_once('.').map_or(name, |(_, domain)| domain),
    };
    host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// An error in a URL, or in what DNS says about it.
pub(super) fn wrong(message: String, hint: &str) -> TargetError {
    TargetError { message, hint: (!hint.is_empty()).then(|| hint.to_owned()), is_missing: false }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// A DNS with one name, and what it says.
    struct Dns {
        services: Vec<(&'static str, u16)>,
        texts: Vec<&'static str>,
    }

    impl Surroundings for Dns {
        fn variable(&self, _: &str) -> Option<String> {
            None
        }

        fn read(&self, _: &Path) -> Option<Vec<u8>> {
            None
        }

        fn mode(&self, _: &Path) -> Option<u32> {
            None
        }

        fn home(&self) -> Option<PathBuf> {
            None
        }

        fn user(&self) -> Option<String> {
            None
        }

        fn services(&self, name: &str) -> Result<Vec<(String, u16)>, TargetError> {
            assert!(name == "_mongodb._tcp.c.example.com" || name == "_own._tcp.c.example.com", "{name}");
            Ok(self.services.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect())
        }

        fn texts(&self, name: &str) -> Result<Vec<String>, TargetError> {
            assert_eq!(name, "c.example.com");
            Ok(self.texts.iter().map(|text| (*text).to_owned()).collect())
        }
    }

    const HOSTS: [(&str, u16); 2] = [("db1.example.com", 27017), ("DB2.example.com", 27018)];

    fn seeds(url: &str, services: &[(&'static str, u16)], texts: &[&'static str]) -> Result<Seeds, String> {
        let dns = Dns { services: services.to_vec(), texts: texts.to_vec() };
        Seeds::look_up(&Url::parse(url).unwrap(), &dns).map_err(|error| {
            assert!(error.hint.is_some(), "{error:?}");
            error.message
        })
    }

    #[test]
    fn a_name_stands_for_servers_and_two_options() {
        let found = seeds("mongodb+srv://C.example.com./d", &HOSTS, &["authSource=users&replicaSet=rs"]).unwrap();
        let hosts: Vec<String> =
            found.hosts.iter().map(|host| format!("{}:{}", host.name, host.port.unwrap())).collect();
        assert_eq!(hosts, ["db1.example.com:27017", "db2.example.com:27018"]);
        assert_eq!((found.source.as_deref(), found.set.as_deref()), (Some("users"), Some("rs")));
        let plain = seeds("mongodb+srv://c.example.com/?srvServiceName=own", &HOSTS, &[]).unwrap();
        assert_eq!((plain.source, plain.set), (None, None));
        assert!(seeds("mongodb+srv://c.example.com", &HOSTS, &["loadBalanced=false"]).is_ok());
    }

    #[test]
    fn what_is_not_trusted_or_not_clear_is_refused() {
        let refused = |url: &str, services: &[(&'static str, u16)], texts: &[&'static str]| {
            seeds(url, services, texts).unwrap_err()
        };
        let url = "mongodb+srv://c.example.com/d";
        for (found, expected) in [
            (refused(url, &[], &[]), "_mongodb._tcp.c.example.com has no SRV records in DNS"),
            (
                refused(url, &[("db.evil.com", 1)], &[]),
                "_mongodb._tcp.c.example.com in DNS names the server db.evil.com, which is not in the domain of c.example.com",
            ),
            (
                refused(url, &[("evilexample.com", 1)], &[]),
                "_mongodb._tcp.c.example.com in DNS names the server evilexample.com, which is not in the domain of c.example.com",
            ),
            (
                refused(url, &[("db.example.com", 0)], &[]),
                "_mongodb._tcp.c.example.com in DNS names the server db.example.com with port 0",
            ),
            (refused(url, &HOSTS, &["a=1", "b=2"]), "c.example.com has several TXT records in DNS"),
            (refused(url, &HOSTS, &["tls=false"]), "the TXT record of c.example.com in DNS has the option tls"),
            (
                refused(url, &HOSTS, &["authSource="]),
                "the option authSource in the TXT record of c.example.com has no value",
            ),
            (
                refused(url, &HOSTS, &["authSource=%"]),
                "the TXT record of c.example.com in DNS is not a list of options",
            ),
            (
                refused(url, &HOSTS, &["loadBalanced=true"]),
                "c.example.com is a load balancer (TXT record in DNS), which is not supported",
            ),
            (
                refused("mongodb+srv://c.example.com:1/d", &HOSTS, &[]),
                "a mongodb+srv:// URL has no port: SRV records name the ports",
            ),
            (refused("mongodb+srv://a.b.c,d.e.f/d", &HOSTS, &[]), "the mongodb+srv:// URL names several hosts"),
            (refused("mongodb+srv:///d", &HOSTS, &[]), "the mongodb+srv:// URL names no host"),
            (
                refused("mongodb+srv://10.0.0.1/d", &HOSTS, &[]),
                "a mongodb+srv:// URL names a host that has no SRV records",
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn servers_of_a_short_name_are_below_it() {
        for (host, name, expected) in [
            ("db.example.com", "c.example.com", true),
            ("a.b.example.com", "c.example.com", true),
            ("example.com", "c.example.com", false),
            ("db.example.com", "example.com", true),
            ("example.com", "example.com", false),
            ("other.com", "example.com", false),
            ("db.local", "local", true),
            ("local", "local", false),
        ] {
            assert_eq!(belongs(host, name), expected, "{host} {name}");
        }
    }
}
