//! Removes passwords from a command line before it is recorded.
//!
//! When in doubt, it removes too much: the manifest has the servers a second time, from URLs without passwords. It
//! knows where passwords are written (URLs, options, connection strings), not which statements contain one.

const HIDDEN: &str = "***";

/// The arguments with every password replaced by `***`.
pub fn without_secrets<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut value_follows = false;
    let hide = |argument: S| {
        let argument = argument.as_ref();
        if std::mem::take(&mut value_follows) {
            return HIDDEN.to_owned();
        }
        if let Some(option) = argument.strip_prefix("--") {
            let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            if is_secret(name) {
                value_follows = value.is_none();
                return value.map_or_else(|| argument.to_owned(), |_| format!("--{name}={HIDDEN}"));
            }
        }
        without_parameter(&without_userinfo(argument))
    };
    arguments.into_iter().map(hide).collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "pwd", "secret", "token"].iter().any(|word| name.ends_with(word))
}

/// `scheme://user:secret@host` → `scheme://user:***@host`, up to the last `@`: a password that should have been
/// percent-encoded may contain one, or a slash.
fn without_userinfo(text: &str) -> String {
    let Some(start) = text.find("://").map(|at| at + 3) else { return text.to_owned() };
    let Some(end) = text[start..].rfind('@').map(|at| start + at) else { return text.to_owned() };
    match text[start..end].find(':') {
        Some(colon) => format!("{}:{HIDDEN}{}", &text[..start + colon], &text[end..]),
        None => text.to_owned(),
    }
}

/// `…password=secret…` → `…password=***…`, in the query of a URL or in a connection string.
fn without_parameter(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut hidden, mut from) = (String::new(), 0);
    while let Some(equals) = lower[from..].find('=').map(|at| from + at) {
        hidden.push_str(&text[from..=equals]);
        from = equals + 1;
        let name = lower[..equals].trim_end();
        if is_secret(name) {
            // A quoted value may contain anything: nothing after it is worth the risk.
            let value = text[from..].trim_start();
            let end = value.find(['&', ' ', ';']).filter(|_| !value.starts_with(['\'', '"']));
            hidden.push_str(HIDDEN);
            from = text.len() - value.len() + end.unwrap_or(value.len());
        }
    }
    hidden + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_taken_out_wherever_they_are_written() {
        for (written, recorded) in [
            ("assay run tpcc", "assay run tpcc"),
            ("--db postgres://app@host:5432/db", "--db postgres://app@host:5432/db"),
            ("--db postgres://app:s3cret@host/db", "--db postgres://app:***@host/db"),
            ("--db=mysql://app:a@b/s3cret@host", "--db=mysql://app:***@host"),
            ("--db postgres://h/db?password=s3cret&x=1", "--db postgres://h/db?password=***&x=1"),
            ("--db postgres://h/db?user=a&PASSWORD=s3cret", "--db postgres://h/db?user=a&PASSWORD=***"),
            ("--mysql-password=s3cret --time=5", "--mysql-password=*** --time=5"),
            ("--mysql_password= run", "--mysql_password=*** run"),
            ("--pgsql-password s3cret run", "--pgsql-password *** run"),
            ("--password --s3cret run", "--password *** run"),
            ("--table-size=1M --range-token s3cret", "--table-size=1M --range-token ***"),
        ] {
            let hidden = without_secrets(written.split(' ')).join(" ");
            assert_eq!(hidden, recorded);
            assert!(!hidden.contains("s3cret"));
        }
    }

    #[test]
    fn a_connection_string_loses_its_password_even_when_it_is_quoted() {
        for (written, recorded) in [
            ("host=h password=s3cret dbname=d", "host=h password=*** dbname=d"),
            ("host=h password='s3 cret' dbname=d", "host=h password=***"),
            ("password = s3cret", "password =***"),
        ] {
            assert_eq!(without_secrets([written]), [recorded]);
        }
    }
}
