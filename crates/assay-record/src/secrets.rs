//! Removes passwords from command lines, recipes and messages before they are written down or shown.
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
        without_parameter(&without_login(&without_userinfo(argument)))
    };
    arguments.into_iter().map(hide).collect()
}

/// A text with every password in it replaced by `***`: in URLs with or without their scheme, after options and
/// parameters. For text whose words are not known one by one, such as a recipe or a message.
pub fn text_without_secrets(text: &str) -> String {
    without_values(&text_without_logins(text))
}

/// Masks passwords in URLs only: text with another syntax stays as it is.
pub fn text_without_logins(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut value_follows = false;
        let mut from = 0;
        while from < line.len() {
            let is_end = |c: char| c.is_whitespace() || QUOTES.contains(&c);
            let end = line[from..].find(is_end).map_or(line.len(), |at| from + at);
            if end == from {
                let end = from + line[from..].chars().next().map_or(1, char::len_utf8);
                // In backticks an option is only mentioned.
                value_follows &= &line[from..end] != "`";
                hidden.push_str(&line[from..end]);
                from = end;
                continue;
            }
            let word = &line[from..end];
            if std::mem::take(&mut value_follows) && !word.starts_with("--") {
                hidden.push_str(HIDDEN);
            } else {
                let option = word.strip_prefix("--").unwrap_or_default();
                value_follows = !option.contains('=') && is_secret(option);
                hidden.push_str(&without_login(&without_userinfo(word)));
            }
            from = end;
        }
    }
    hidden
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// `password = "secret"` → `password = "***"`; a value without quotes ends with its word.
fn without_values(text: &str) -> String {
    let (mut hidden, mut from) = (String::new(), 0);
    while let Some(equals) = text[from..].find('=').map(|at| from + at) {
        hidden.push_str(&text[from..=equals]);
        let before = text[..equals].trim_end_matches([' ', '\t']);
        let (name, is_spaced) = (before.trim_end_matches(QUOTES), before.len() < equals);
        from = equals + 1;
        if !is_secret(name) {
            continue;
        }
        let value = text[from..].trim_start_matches([' ', '\t']);
        let start = text.len() - value.len();
        let quoted = value.chars().next().filter(|first| QUOTES.contains(first));
        if quoted.is_none() && !is_spaced && start > from {
            continue;
        }
        let (open, value) = quoted.map_or((0, value), |_| (1, &value[1..]));
        let end = match quoted {
            Some(quote) => value.find([quote, '\n']),
            None => value.find(|c: char| c.is_whitespace() || QUOTES.contains(&c) || ['&', ';', ',', ')'].contains(&c)),
        };
        let end = end.unwrap_or(value.len());
        hidden.push_str(&text[from..start + open]);
        // An option without a value, such as in a list of options, is not a secret.
        hidden.push_str(if end == 0 { "" } else { HIDDEN });
        from = start + open + end;
    }
    hidden + &text[from..]
}

/// Whether an option or a key of this name holds a password.
pub fn is_secret(name: &str) -> bool {
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

/// `user:secret@host` → `user:***@host`, alone or as the value of an option: a URL without its scheme.
fn without_login(word: &str) -> String {
    let value = word.find('=').filter(|_| word.starts_with("--")).map_or(0, |at| at + 1);
    let (option, rest) = word.split_at(value);
    let is_user = |user: &str| !user.is_empty() && user.chars().all(|c| c.is_alphanumeric() || "._-+%".contains(c));
    let is_host = |host: &str| host.starts_with(|c: char| c.is_alphanumeric() || "[/?".contains(c));
    match rest.split_once(':').and_then(|(user, rest)| Some((user, rest.rsplit_once('@')?))) {
        Some((user, (secret, host))) if is_user(user) && !secret.starts_with("//") && is_host(host) => {
            format!("{option}{user}:{HIDDEN}@{host}")
        }
        _ => word.to_owned(),
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
            ("--db=app:s3cret@host/db", "--db=app:***@host/db"),
            ("--db app:s3cret@host:5432/db", "--db app:***@host:5432/db"),
            ("--db=app:a@s3cret@[::1]:5432/db", "--db=app:***@[::1]:5432/db"),
            ("--server postgres:15 --db sqlite:a.db", "--server postgres:15 --db sqlite:a.db"),
        ] {
            let hidden = without_secrets(written.split(' ')).join(" ");
            assert_eq!(hidden, recorded);
            assert!(!hidden.contains("s3cret"));
        }
    }

    #[test]
    fn a_text_loses_its_passwords_and_nothing_else() {
        for (written, shown) in [
            (
                "url = \"postgres://app:s3cret@h/db\" # or mysql://a:s3cret@b",
                "url = \"postgres://app:***@h/db\" # or mysql://a:***@b",
            ),
            (
                "run = 'x --db=app:s3cret@h/db --my-password s3cret -v'",
                "run = 'x --db=app:***@h/db --my-password *** -v'",
            ),
            ("my_password = \"s3 cret\"\nb = 1", "my_password = \"***\"\nb = 1"),
            ("\"run.options.my_password\" = 's3cret'", "\"run.options.my_password\" = '***'"),
            ("c = \"host=h password='s3 cret' dbname=d\"", "c = \"host=h password='***' dbname=d\""),
            ("{\"cause\":\"--my-password=s3cret, x\"}", "{\"cause\":\"--my-password=***, x\"}"),
            ("a?password=s3cret&x=1 postgres://h/d?a=1", "a?password=***&x=1 postgres://h/d?a=1"),
            (
                "postgres://USER@HOST/DATABASE, --password= or PGPASSWORD",
                "postgres://USER@HOST/DATABASE, --password= or PGPASSWORD",
            ),
            ("12:30 a@b.c: x = 5; ünï: ”=“", "12:30 a@b.c: x = 5; ünï: ”=“"),
        ] {
            let text = text_without_secrets(written);
            assert_eq!(text, shown);
            assert_eq!(text_without_secrets(&text), shown);
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
