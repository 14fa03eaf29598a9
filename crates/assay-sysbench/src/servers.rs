//! Converts `--mysql-…`, `--pgsql-…` and `--sqlite-…` to server URLs, in the order in which connections are assigned to
//! them.
//!
//! Text in, text out: nothing is opened or resolved here. What the original's client libraries look up themselves (an
//! environment variable, whether a file exists) comes from `Surroundings`.

use std::path::Path;

use assay_options::OptionValue;
use assay_seam::url::{HostPort, Url, encoded};
use assay_seam::{Class, StatementError, Surroundings, conninfo};

use crate::options::Options;

/// The servers of this driver (`mysql`, `pgsql`, `sqlite`), or why a server cannot be connected to, in the words of the
/// client library. At least one.
pub fn urls(driver: &str, options: &Options, look: &dyn Surroundings) -> Vec<Result<String, StatementError>> {
    match driver {
        "pgsql" => vec![pgsql(options)],
        "sqlite" => vec![Ok(format!("sqlite:{}", options.text("sqlite_db")))],
        _ => mysql(options, look),
    }
}

/// Why no connection is made. MySQL's C client has numbers for its own errors.
pub fn refusal(driver: &str, class: Class, message: String) -> StatementError {
    let mut error = StatementError::client(class, message);
    if driver == "mysql" {
        error.code.number = match class {
            Class::Host => 2005,
            Class::Encryption => 2026,
            _ => 2000,
        };
        if class == Class::Encryption {
            error.message = format!("TLS/SSL error: {}", error.message);
        }
    }
    error
}

/// Sockets in turn; without any, every port of every host.
fn mysql(options: &Options, look: &dyn Surroundings) -> Vec<Result<String, StatementError>> {
    let login = login(options);
    let database = encoded(options.text("mysql_db"));
    let tls = mysql_tls(options, look);
    let sockets = options.list("mysql_socket");
    let url = |place: &str, more: &str| {
        let words = tls.clone()?;
        let words: Vec<&str> =
            [more].into_iter().chain(words.iter().map(String::as_str)).filter(|word| !word.is_empty()).collect();
        Ok(format!("mysql://{login}{place}/{database}?{}", words.join("&")))
    };
    if !sockets.is_empty() {
        return sockets.iter().map(|socket| url("", &format!("socket={}", encoded(socket)))).collect();
    }
    // An option that was cleared counts as not given.
    let or = |list: &[String], default: &str| match list {
        [] => vec![default.to_owned()],
        list => list.to_vec(),
    };
    let mut urls = Vec::new();
    for host in &or(options.list("mysql_host"), "localhost") {
        for port in &or(options.list("mysql_port"), "3306") {
            urls.push(match default_socket(host, port, look) {
                Some(socket) => url("", &format!("socket={}", encoded(&socket))),
                None => url(&format!("{}:{}", bracketed(host), dialled(port)), ""),
            });
        }
    }
    urls
}

/// A text's port as C parses it: its digits, the lower 16 bits of them. Nobody listens on port 0, which a URL cannot
/// contain, nor on port 1.
fn dialled(port: &str) -> u16 {
    let text = port.trim_start();
    let (sign, text) = text.strip_prefix('-').map_or((1, text.trim_start_matches('+')), |text| (-1, text));
    let digits = text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let number: i64 = digits.parse().unwrap_or(0);
    ((sign * number) as u16).max(1)
}

/// For MySQL's clients `localhost` is a socket. If there is none, or a port is given, we use TCP.
fn default_socket(host: &str, port: &str, look: &dyn Surroundings) -> Option<String> {
    if host != "localhost" || port != "3306" {
        return None;
    }
    let named = look.variable("MYSQL_UNIX_PORT");
    let usual = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"].map(str::to_owned);
    named.into_iter().chain(usual).find(|path| look.mode(Path::new(path)).is_some())
}

/// Files of 1.0, which has no options for them.
const TLS_FILES: [(&str, &str); 3] =
    [("ssl-ca", "cacert.pem"), ("ssl-cert", "client-cert.pem"), ("ssl-key", "client-key.pem")];

/// 1.0 has a switch and fixed file names; the development branch has modes and options for the files.
fn mysql_tls(options: &Options, look: &dyn Surroundings) -> Result<Vec<String>, StatementError> {
    let text = match options.get("mysql_ssl") {
        Some(OptionValue::Bool(on)) => if *on { "on" } else { "off" }.to_owned(),
        _ => options.text("mysql_ssl").to_ascii_lowercase(),
    };
    let exists = |name: &str| look.mode(Path::new(name)).is_some();
    let given = |option: &str| options.text(&format!("mysql_{}", option.replace('-', "_"))).to_owned();
    let any_given = TLS_FILES.iter().any(|(option, _)| !given(option).is_empty());
    let (mode, files): (&str, Vec<String>) = match text.as_str() {
        "off" | "false" | "0" | "disabled" => return Ok(vec!["ssl-mode=disabled".to_owned()]),
        // Given files are used: the server's certificate is verified.
        "on" | "true" | "1" | "" if any_given => {
            let mode = if given("ssl-ca").is_empty() { "required" } else { "verify_ca" };
            (mode, TLS_FILES.iter().map(|(option, _)| given(option)).collect())
        }
        "on" | "true" | "1" | "" => {
            if !TLS_FILES.iter().all(|(_, fixed)| exists(fixed)) {
                return Err(refusal("mysql", Class::Encryption, "No such file or directory (2)".to_owned()));
            }
            ("verify_ca", TLS_FILES.iter().map(|(_, fixed)| (*fixed).to_owned()).collect())
        }
        mode => {
            let file = |option: &str, fixed: &str| match given(option) {
                file if file.is_empty() && exists(fixed) => fixed.to_owned(),
                file => file,
            };
            (mode, TLS_FILES.iter().map(|(option, fixed)| file(option, fixed)).collect())
        }
    };
    let words = TLS_FILES.iter().zip(files).filter(|(_, file)| !file.is_empty());
    let words = words.map(|((option, _), file)| format!("{option}={}", encoded(&file)));
    Ok([format!("ssl-mode={}", encoded(mode))].into_iter().chain(words).collect())
}

/// Cleared options count as not given: libpq's variables apply. A database's name may be a whole connection string;
/// options override it.
fn pgsql(options: &Options) -> Result<String, StatementError> {
    let database = options.text("pgsql_db");
    let other = |message| refusal("pgsql", Class::Other, message);
    let mut parameters = if database.starts_with("postgres://") || database.starts_with("postgresql://") {
        of_url(Url::parse(database).map_err(|error| other(error.message))?)
    } else if conninfo::is_one(database) {
        conninfo::parse(database).map_err(other)?
    } else {
        vec![("dbname".to_owned(), database.to_owned())]
    };
    let port = Some(options.int("pgsql_port")).filter(|port| *port != 0).map(|port| port.to_string());
    for (name, value) in [
        ("host", options.text("pgsql_host")),
        ("port", &port.unwrap_or_default()),
        ("user", options.text("pgsql_user")),
        ("password", options.text("pgsql_password")),
        ("sslmode", options.text("pgsql_sslmode")),
    ] {
        parameters.push((name.to_owned(), value.to_owned()));
    }
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let words: Vec<String> = given.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    Ok(format!("postgres:///?{}", words.join("&")))
}

/// The parts of a URL as parameters.
fn of_url(url: Url) -> Vec<(String, String)> {
    let list = |part: &dyn Fn(&HostPort) -> String| url.hosts.iter().map(part).collect::<Vec<_>>().join(",");
    let ports = list(&|host| host.port.map_or(String::new(), |port| port.to_string()));
    let parts = [
        ("host", list(&|host| host.name.clone())),
        ("port", if ports.contains(|c: char| c.is_ascii_digit()) { ports } else { String::new() }),
        ("user", url.user.clone().unwrap_or_default()),
        ("password", url.password.clone().unwrap_or_default()),
        ("dbname", url.path.clone()),
    ];
    parts.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(url.options).collect()
}

fn login(options: &Options) -> String {
    let (user, password) = (options.text("mysql_user"), options.text("mysql_password"));
    let password = if password.is_empty() { String::new() } else { format!(":{}", encoded(password)) };
    format!("{}{password}@", encoded(user))
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { encoded(host).to_string() }
}

#[cfg(test)]
mod tests {
    use assay_seam::NoSurroundings;

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
        let urls = mysql(&given, &NoSurroundings).into_iter().map(|url| url.unwrap());
        let urls: Vec<String> = urls.map(|url| url.split(['@', '?']).nth(1).unwrap().to_owned()).collect();
        assert_eq!(urls, ["a:1/sbtest", "a:2/sbtest", "b:1/sbtest", "b:2/sbtest"]);
        let given = options(&[("mysql_socket", list(&["/a b", "/c"]))]);
        assert_eq!(
            mysql(&given, &NoSurroundings),
            [
                Ok("mysql://sbtest@/sbtest?socket=%2Fa%20b&ssl-mode=disabled".to_owned()),
                Ok("mysql://sbtest@/sbtest?socket=%2Fc&ssl-mode=disabled".to_owned())
            ]
        );
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn modes_of_encryption_are_those_of_both_branches() {
        let tls =
            |given: &[(&str, OptionValue)]| mysql_tls(&options(given), &NoSurroundings).map(|words| words.join(" "));
        let mode = |word: &str| tls(&[("mysql_ssl", text(word))]).map_err(|error| (error.code.number, error.message));
        assert_eq!(mode("off").unwrap(), "ssl-mode=disabled");
        assert_eq!(mode("VERIFY_CA").unwrap(), "ssl-mode=verify_ca");
        let missing = (2026, "TLS/SSL error: No such file or directory (2)".to_owned());
        assert_eq!(["on", ""].map(|word| mode(word).unwrap_err()), [missing.clone(), missing]);
        let given = tls(&[("mysql_ssl", text("on")), ("mysql_ssl_ca", text("/ca"))]);
        assert_eq!(given.unwrap(), "ssl-mode=verify_ca ssl-ca=%2Fca");
    }

    #[test]
    fn options_of_postgres_go_before_a_connection_string_and_cleared_ones_are_open() {
        let url = |given: &[(&str, OptionValue)]| pgsql(&options(given)).map_err(|error| error.message);
        let given =
            [("pgsql_password", text("p@ss/w")), ("pgsql_host", text("::1")), ("pgsql_sslmode", text("require"))];
        assert_eq!(
            url(&given).unwrap(),
            "postgres:///?dbname=sbtest&host=%3A%3A1&port=5432&user=sbtest&password=p%40ss%2Fw&sslmode=require"
        );
        let string = text("dbname=x host=y application_name='a b'");
        let cleared = [("pgsql_db", string), ("pgsql_host", text("")), ("pgsql_user", text(""))];
        assert_eq!(url(&cleared).unwrap(), "postgres:///?dbname=x&host=y&application_name=a%20b&port=5432");
        let uri =
            [("pgsql_db", text("postgresql://u@h/d?connect_timeout=3")), ("pgsql_port", OptionValue::Number(0.0))];
        assert_eq!(
            url(&uri).unwrap(),
            "postgres:///?host=h&user=u&dbname=d&connect_timeout=3&host=localhost&user=sbtest"
        );
        assert_eq!(
            url(&[("pgsql_db", text("dbname=x y"))]).unwrap_err(),
            "missing \"=\" after \"y\" in connection info string"
        );
    }
}
