//! From `--mysql-…`, `--pgsql-…` and `--sqlite-…` to the servers of a plan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_engine::Target;
use assay_io::{Address, Tls};
use assay_script::OptionValue;
use assay_sysbench::Options;
use assay_wire::{ConnectOptions, Endpoint, Surroundings, TlsMode, dry};

use crate::surroundings::ThisMachine;
use crate::{registry, terminal};

/// The servers that connections are dealt to, in the order of their turns. An unknown driver has the default's: a
/// script that never asks for a database does not need one.
pub fn targets(options: &Options) -> Result<Vec<Target>, String> {
    if options.is_on("mysql_dry_run") && options.text("db_driver") == "mysql" {
        return Ok(vec![Target { database: Arc::from(dry::database("mysql")), addresses: Vec::new(), tls: None }]);
    }
    let urls = match options.text("db_driver") {
        "pgsql" => vec![pgsql(options)],
        "sqlite" => vec![format!("sqlite:{}", options.text("sqlite_db"))],
        _ => mysql(options),
    };
    let compression = options.is_on("mysql_compression") && options.text("db_driver") == "mysql";
    if compression {
        terminal::say("WARNING: --mysql-compression is not honoured: nothing is compressed\n");
    }
    let connect = ConnectOptions { prepared: options.text("db_ps_mode") != "disable", session_sql: Vec::new() };
    urls.iter().map(|url| target(url, &connect)).collect()
}

fn target(url: &str, connect: &ConnectOptions) -> Result<Target, String> {
    let driver = registry::driver_of(url).map_err(|trouble| trouble.cause)?;
    // The C client of MySQL reads no `~/.my.cnf` on its own; libpq has its variables and its file of passwords.
    let surroundings: &dyn Surroundings = if driver.name == "mysql" { &Nothing } else { &ThisMachine };
    let database = (driver.open)(url, connect, surroundings).map_err(|error| error.to_string())?;
    let settings = database.tls();
    let tls = match settings.mode {
        TlsMode::Disable => None,
        _ => Some(Arc::new(Tls::new(&settings).map_err(|error| error.to_string())?)),
    };
    let mut addresses = Vec::new();
    for endpoint in database.endpoints() {
        // A host that is not found is an error of whoever connects to it.
        addresses.extend(Address::resolve(&endpoint).unwrap_or_else(|_| vec![nowhere(&endpoint)]));
    }
    Ok(Target { database: Arc::from(database), addresses, tls })
}

/// An address that refuses a connection to a host that does not exist.
fn nowhere(endpoint: &Endpoint) -> Address {
    match endpoint {
        Endpoint::Tcp { host, .. } => Address::Unix(PathBuf::from(format!("/nonexistent/{host}"))),
        Endpoint::Unix(path) => Address::Unix(path.clone()),
        Endpoint::Embedded => Address::Unix(PathBuf::from("/nonexistent")),
    }
}

/// Sockets in turn; without any, every port of every host.
fn mysql(options: &Options) -> Vec<String> {
    let login = login(options, "mysql");
    let database = escaped(options.text("mysql_db"));
    let words = mysql_tls(options);
    let sockets = options.list("mysql_socket");
    let url = |place: &str, more: &str| {
        let words: Vec<&str> =
            [more].into_iter().chain(words.iter().map(String::as_str)).filter(|word| !word.is_empty()).collect();
        format!("mysql://{login}{place}/{database}?{}", words.join("&"))
    };
    if !sockets.is_empty() {
        return sockets.iter().map(|socket| url("", &format!("socket={}", escaped(socket)))).collect();
    }
    // An option that was cleared is as if it had not been given.
    let or = |list: &[String], default: &str| match list {
        [] => vec![default.to_owned()],
        list => list.to_vec(),
    };
    let mut urls = Vec::new();
    for host in &or(options.list("mysql_host"), "localhost") {
        for port in &or(options.list("mysql_port"), "3306") {
            urls.push(match default_socket(host, port) {
                Some(socket) => url("", &format!("socket={}", escaped(&socket))),
                None => url(&format!("{}:{port}", bracketed(host)), ""),
            });
        }
    }
    urls
}

/// To MySQL's clients `localhost` is a socket. Where there is none, or a port is named, we go by TCP.
fn default_socket(host: &str, port: &str) -> Option<String> {
    if host != "localhost" || port != "3306" {
        return None;
    }
    let named = std::env::var("MYSQL_UNIX_PORT").ok();
    let usual = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"].map(str::to_owned);
    named.into_iter().chain(usual).find(|path| Path::new(path).exists())
}

/// 1.0 has a switch, and file names that are fixed; the development branch has modes and options for the files.
fn mysql_tls(options: &Options) -> Vec<String> {
    let text = match options.get("mysql_ssl") {
        Some(OptionValue::Bool(on)) => if *on { "on" } else { "off" }.to_owned(),
        _ => options.text("mysql_ssl").to_ascii_lowercase(),
    };
    let mode = match text.as_str() {
        "off" | "false" | "0" | "disabled" => return vec!["ssl-mode=disabled".to_owned()],
        // As MySQL's C library does when it is only given files.
        "on" | "true" | "1" | "" => "preferred",
        mode => mode,
    };
    let mut words = vec![format!("ssl-mode={}", escaped(mode))];
    for (option, fixed) in [("ssl-ca", "cacert.pem"), ("ssl-cert", "client-cert.pem"), ("ssl-key", "client-key.pem")] {
        let given = options.text(&format!("mysql_{}", option.replace('-', "_")));
        let file = if given.is_empty() && Path::new(fixed).exists() { fixed } else { given };
        if !file.is_empty() {
            words.push(format!("{option}={}", escaped(file)));
        }
    }
    words
}

fn pgsql(options: &Options) -> String {
    let host = options.text("pgsql_host");
    let words = format!("sslmode={}", escaped(options.text("pgsql_sslmode")));
    let (login, database, port) =
        (login(options, "pgsql"), escaped(options.text("pgsql_db")), options.int("pgsql_port"));
    if host.starts_with('/') || host.is_empty() {
        format!("postgres://{login}/{database}?host={}&port={port}&{words}", escaped(host))
    } else {
        format!("postgres://{login}{}:{port}/{database}?{words}", bracketed(host))
    }
}

fn login(options: &Options, driver: &str) -> String {
    let (user, password) = (options.text(&format!("{driver}_user")), options.text(&format!("{driver}_password")));
    let password = if password.is_empty() { String::new() } else { format!(":{}", escaped(password)) };
    format!("{}{password}@", escaped(user))
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { escaped(host) }
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// No variables, no files.
struct Nothing;

impl Surroundings for Nothing {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(given: &[(&str, OptionValue)]) -> Options {
        let mut options = Options::defaults();
        given.iter().for_each(|(key, value)| options.set(key, value.clone()));
        options
    }

    fn list(items: &[&str]) -> OptionValue {
        OptionValue::List(items.iter().map(|item| (*item).to_owned()).collect())
    }

    #[test]
    fn ports_cycle_faster_than_hosts_and_sockets_take_their_place() {
        let given = options(&[("mysql_host", list(&["a", "b"])), ("mysql_port", list(&["1", "2"]))]);
        let urls = mysql(&given);
        let urls: Vec<&str> = urls.iter().map(|url| url.split(['@', '?']).nth(1).unwrap()).collect();
        assert_eq!(urls, ["a:1/sbtest", "a:2/sbtest", "b:1/sbtest", "b:2/sbtest"]);
        let given = options(&[("mysql_socket", list(&["/a b", "/c"]))]);
        assert_eq!(
            mysql(&given),
            [
                "mysql://sbtest@/sbtest?socket=%2Fa%20b&ssl-mode=disabled",
                "mysql://sbtest@/sbtest?socket=%2Fc&ssl-mode=disabled"
            ]
        );
    }

    #[test]
    fn passwords_and_modes_of_encryption_find_their_way_into_the_url() {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let given = options(&[
            ("pgsql_password", text("p@ss/w")),
            ("pgsql_host", text("::1")),
            ("pgsql_sslmode", text("require")),
        ]);
        assert_eq!(pgsql(&given), "postgres://sbtest:p%40ss%2Fw@[::1]:5432/sbtest?sslmode=require");
        let tls = |word: &str| mysql_tls(&options(&[("mysql_ssl", text(word))])).remove(0);
        assert_eq!(
            ["off", "on", "", "VERIFY_CA"].map(tls),
            ["ssl-mode=disabled", "ssl-mode=preferred", "ssl-mode=preferred", "ssl-mode=verify_ca"]
        );
    }
}
