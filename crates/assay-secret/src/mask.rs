//! Removes passwords from command lines, recipes, statements and messages.
//!
//! It knows where passwords are written: in URLs, options, connection strings, SQL (`PASSWORD 'x'`, `IDENTIFIED BY
//! 'x'`, options of foreign servers), JSON, and arguments of well-known programs. Text may be quoted within text.

/// Stands for a password. In a URL, it is none.
pub const HIDDEN: &str = "***";

/// One value without its passwords: a URL, which may contain blanks and quotes, or a text of several words.
pub fn masked(text: &str) -> String {
    let is_url = text.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(is_of_scheme));
    if is_url { without_secrets([text]).concat() } else { text_without_secrets(text) }
}

fn is_of_scheme(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+-.".contains(c)
}

/// The value of a setting or option without its passwords; with such a name, all of it is one.
pub fn value_without_secrets(name: &str, value: &str) -> String {
    if is_secret(name) && !value.is_empty() { HIDDEN.to_owned() } else { masked(value) }
}

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
        let hidden = without_parameter(&without_login(&without_userinfo(argument)));
        // Several words in one argument: a statement, or a command line of its own.
        if hidden.contains(char::is_whitespace) { text_without_secrets(&hidden) } else { hidden }
    };
    arguments.into_iter().map(hide).collect()
}

/// A text with every password in it replaced by `***`: in URLs with or without their scheme, after options and
/// parameters. For text whose words are not known one by one, such as a recipe or a message.
pub fn text_without_secrets(text: &str) -> String {
    if !may_hold_secret(text.as_bytes()) {
        return text.to_owned();
    }
    without_identified(&without_values(&text_without_logins(text)))
}

/// Whether any of the words occurs that go with a password. Most text has none, and needs no more work.
pub(crate) fn may_hold_secret(text: &[u8]) -> bool {
    const SIGNS: [&[u8]; 14] = [
        b"@",
        b"://",
        b"pass",
        b"pwd",
        b"secret",
        b"token",
        b"access_key",
        b"api_key",
        b"private_key",
        b"account_key",
        b"identified",
        b"authorization",
        b"mysql",
        b"mariadb",
    ];
    let begins = |at: usize| {
        let rest = &text[at..];
        SIGNS.iter().any(|sign| rest.len() >= sign.len() && rest[..sign.len()].eq_ignore_ascii_case(sign))
    };
    let is_first = |byte: u8| matches!(byte | 0x20, b'p' | b's' | b't' | b'a' | b'i' | b'm' | b':') || byte == b'@';
    (0..text.len()).any(|at| is_first(text[at]) && begins(at)) || contains(text, b"curl ")
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// A program whose arguments may hold a password without the word.
#[derive(Clone, Copy, PartialEq)]
enum Tool {
    /// `-psecret`
    Mysql,
    /// `-p secret`, `-psecret`
    Sshpass,
    /// `-u user:secret`
    Curl,
    /// `Authorization: Bearer secret`
    Header,
}

impl Tool {
    fn of(word: &str) -> Option<Tool> {
        if word.eq_ignore_ascii_case("authorization:") {
            return Some(Tool::Header);
        }
        match word.rsplit('/').next()? {
            "sshpass" => Some(Tool::Sshpass),
            "curl" | "wget" => Some(Tool::Curl),
            name if name.starts_with("mysql") || name.starts_with("mariadb") => {
                name.chars().all(|c| c.is_ascii_lowercase() || c == '-').then_some(Tool::Mysql)
            }
            _ => None,
        }
    }

    /// The word without its password; whether the next word is one.
    fn hide(self, word: &str) -> (Option<String>, bool) {
        match self {
            Tool::Mysql | Tool::Sshpass if word.len() > 2 && word.starts_with("-p") => {
                (Some(format!("-p{HIDDEN}")), false)
            }
            Tool::Sshpass => (None, word == "-p"),
            Tool::Header => (None, ["bearer", "basic", "token"].iter().any(|kind| word.eq_ignore_ascii_case(kind))),
            Tool::Curl | Tool::Mysql => (None, false),
        }
    }
}

/// Masks passwords in URLs, and after options such as `--my-password`: text with another syntax stays as it is.
pub fn text_without_logins(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (mut value_follows, mut login_follows) = (false, false);
        let mut tool = None;
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
            from = end;
            if std::mem::take(&mut value_follows) && !word.starts_with("--") {
                hidden.push_str(HIDDEN);
                continue;
            }
            if std::mem::take(&mut login_follows)
                && let Some((user, _)) = word.split_once(':')
            {
                hidden.push_str(&format!("{user}:{HIDDEN}"));
                continue;
            }
            tool = Tool::of(word).or(tool.filter(|_| !matches!(word, ";" | "|" | "&&" | "||" | "&")));
            let (shorter, is_next) = tool.map_or((None, false), |tool| tool.hide(word));
            let option = word.strip_prefix("--").unwrap_or_default();
            value_follows = is_next || !option.contains('=') && is_secret(option);
            login_follows = tool == Some(Tool::Curl) && matches!(word, "-u" | "--user" | "-U" | "--proxy-user");
            hidden.push_str(&shorter.unwrap_or_else(|| without_login(&without_userinfo(word))));
        }
    }
    hidden
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    /// `password=x`
    Equals,
    /// `password: 'x'`, `password => 'x'`, `PASSWORD('x')`
    Sign,
    /// `PASSWORD 'x'`
    Blanks,
}

/// `password = "secret"` → `password = "***"`; a value without quotes ends with its word.
fn without_values(text: &str) -> String {
    let is_of_name = |c: char| c.is_alphanumeric() || "_-.$".contains(c);
    let (mut hidden, mut from, mut at) = (String::new(), 0, 0);
    while let Some(start) = text[at..].find(is_of_name).map(|found| at + found) {
        let end = text[start..].find(|c| !is_of_name(c)).map_or(text.len(), |found| start + found);
        at = end;
        let name = &text[start..end];
        if !is_secret(name) {
            continue;
        }
        let Some((value_at, between)) = value_after(text, name, end) else { continue };
        let value = &text[value_at..];
        let quoted = delimiter(value);
        let (open, length) = match quoted {
            Some(quote) => (quote.len(), quoted_length(&value[quote.len()..], quote)),
            None if between != Between::Equals => continue,
            None => {
                let is_end =
                    |c: char| c.is_whitespace() || QUOTES.contains(&c) || ['&', ';', ',', ')', '\\'].contains(&c);
                (0, value.find(is_end).unwrap_or(value.len()))
            }
        };
        hidden.push_str(&text[from..value_at + open]);
        // An option without a value, such as in a list of options, is not a secret.
        hidden.push_str(if length == 0 { "" } else { HIDDEN });
        from = value_at + open + length;
        at = from;
    }
    hidden + &text[from..]
}

/// Where the value of a secret name begins that ends at `end`, and what is between; `None`: it has none here.
fn value_after(text: &str, name: &str, end: usize) -> Option<(usize, Between)> {
    let blanks = |at: usize| text.len() - text[at..].trim_start_matches([' ', '\t']).len();
    let after_quote = text.len() - text[end..].trim_start_matches('\\').trim_start_matches(QUOTES).len();
    let is_key = after_quote > end;
    let at = blanks(after_quote);
    let rest = &text[at..];
    let lower = name.to_ascii_lowercase();
    if rest.starts_with("=>") || rest.starts_with(":=") {
        return Some((blanks(at + 2), Between::Sign));
    }
    if rest.starts_with('=') {
        let value = blanks(at + 1);
        let is_spaced = at > end;
        // `--password= or PGPASSWORD`: a list of options.
        let is_none = delimiter(&text[value..]).is_none() && !is_spaced && value > at + 1;
        return (!is_none).then_some((value, Between::Equals));
    }
    if rest.starts_with(':') {
        // `unexpected token: 'x'` is a message.
        return (is_key || !lower.ends_with("token")).then(|| (blanks(at + 1), Between::Sign));
    }
    if rest.starts_with('(') && !is_key {
        return Some((blanks(at + 1), Between::Sign));
    }
    let is_of_sql = ["password", "passwd", "passphrase", "secret"].iter().any(|word| lower.ends_with(word));
    // Not `"`: that is a name in SQL.
    let is_text = rest.starts_with('\'') || rest.starts_with("\\'");
    (is_of_sql && !is_key && at > end && is_text).then_some((at, Between::Blanks))
}

/// The quote with which a value begins: perhaps escaped, or doubled within a quoted text; `None`: it is not quoted.
fn delimiter(value: &str) -> Option<&str> {
    let escapes = value.len() - value.trim_start_matches('\\').len();
    let quote = value[escapes..].chars().next().filter(|first| QUOTES.contains(first))?;
    let after = &value[escapes + 1..];
    // Two and nothing else are an empty text.
    let is_doubled = escapes == 0
        && quote != '`'
        && after.starts_with(quote)
        && after[1..].starts_with(|c: char| !c.is_whitespace() && !",;)&'\"\\".contains(c));
    Some(&value[..escapes + 1 + usize::from(is_doubled)])
}

/// The length of what is before the closing quote, or before the end of the line.
fn quoted_length(value: &str, quote: &str) -> usize {
    let mut at = 0;
    while let Some(found) = value[at..].find(quote).map(|found| at + found) {
        let end = found + quote.len();
        if let Some(line) = value[at..found].find('\n') {
            return at + line;
        }
        let is_escaped = quote.len() == 1 && value[..found].ends_with('\\') && !value[..found].ends_with("\\\\");
        let is_pair = quote.len() == 1 && value[end..].starts_with(quote);
        match (is_escaped, is_pair) {
            (true, _) => at = end,
            (false, true) => at = end + 1,
            (false, false) => return found,
        }
    }
    value[at..].find('\n').map_or(value.len(), |line| at + line)
}

/// `IDENTIFIED BY 'secret'` → `IDENTIFIED BY '***'`, up to the end of the statement.
fn without_identified(text: &str) -> String {
    const WORD: &str = "identified";
    let lower = text.to_ascii_lowercase();
    let (mut hidden, mut from, mut at) = (String::new(), 0, 0);
    while let Some(start) = lower[at..].find(WORD).map(|found| at + found) {
        at = start + WORD.len();
        let rest = lower[at..].trim_start();
        if rest.len() == lower.len() - at || !["by", "with", "via"].iter().any(|word| rest.starts_with(word)) {
            continue;
        }
        while let Some(open) = text[at..].find(['\'', '"', ';', '\n']).map(|found| at + found) {
            // Of an escaped quote, the escape belongs to it.
            let escapes = text[..open].len() - text[..open].trim_end_matches('\\').len();
            let Some(quote) = delimiter(&text[open - escapes..]) else { break };
            let value = open - escapes + quote.len();
            let length = quoted_length(&text[value..], quote);
            if length > 0 {
                hidden.push_str(&text[from..value]);
                hidden.push_str(HIDDEN);
                from = value + length;
            }
            at = (value + length + quote.len()).min(text.len());
        }
    }
    hidden + &text[from..]
}

/// Whether an option or a key of this name holds a password.
pub fn is_secret(name: &str) -> bool {
    const ENDS: [&str; 10] = [
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "access_key",
        "api_key",
        "private_key",
        "account_key",
    ];
    let ends_with = |end: &str| {
        let begin = name.len().checked_sub(end.len());
        begin.and_then(|begin| name.get(begin..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
    };
    ENDS.iter().any(|end| ends_with(end))
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

/// `user:secret@host` → `user:***@host`, alone or as a value: a URL without its scheme.
fn without_login(word: &str) -> String {
    // `--tag=a=user:secret@host`: the last one before the login.
    let value = word.split(':').next().and_then(|before| before.rfind('=')).map_or(0, |at| at + 1);
    let (option, rest) = word.split_at(value);
    let is_user = |user: &str| !user.is_empty() && user.chars().all(|c| c.is_alphanumeric() || "._-+%".contains(c));
    let is_host = |host: &str| host.starts_with(|c: char| c.is_alphanumeric() || "[/?".contains(c));
    match rest.split_once(':').and_then(|(user, rest)| Some((user, rest.rsplit_once('@')?))) {
        // `name:postgres://app@host` is no login.
        Some((user, (secret, host)))
            if is_user(user) && !secret.starts_with("//") && !secret.contains("://") && is_host(host) =>
        {
            format!("{option}{user}:{HIDDEN}@{host}")
        }
        _ => word.to_owned(),
    }
}

/// `…password=secret…` → `…password=***…`, in the query of a URL or in a connection string.
fn without_parameter(text: &str) -> String {
    let (mut hidden, mut from) = (String::new(), 0);
    while let Some(equals) = text[from..].find('=').map(|at| from + at) {
        hidden.push_str(&text[from..=equals]);
        from = equals + 1;
        let name = text[..equals].trim_end();
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
            check(written, shown);
        }
    }

    #[track_caller]
    fn check(written: &str, shown: &str) {
        let text = text_without_secrets(written);
        assert_eq!(text, shown);
        assert_eq!(text_without_secrets(&text), shown);
    }

    #[test]
    fn connection_strings_within_other_texts_lose_their_passwords() {
        for (written, shown) in [
            ("primary_conninfo=host=h password=s3cret user=u", "primary_conninfo=host=h password=*** user=u"),
            ("--tag=a=me:s3cret@h", "--tag=a=me:***@h"),
            ("prod:postgres://app@host", "prod:postgres://app@host"),
            (
                "primary_conninfo = 'host=h password=''s3 cret'' user=u'",
                "primary_conninfo = 'host=h password=''***'' user=u'",
            ),
            (r"primary_conninfo = 'host=h password=\'s3 cret\''", r"primary_conninfo = 'host=h password=\'***\''"),
            (r#"{"a":"password=\"s3 cret\" b"}"#, r#"{"a":"password=\"***\" b"}"#),
            ("password='' host=h", "password='' host=h"),
            ("password = 'it''s s3cret' host=h", "password = '***' host=h"),
            (r"password='it\'s s3cret' host=h", "password='***' host=h"),
            ("SELECT dblink('host=h password=s3cret', 'SELECT 1')", "SELECT dblink('host=h password=***', 'SELECT 1')"),
        ] {
            check(written, shown);
        }
    }

    #[test]
    fn statements_lose_their_passwords() {
        for (written, shown) in [
            ("CREATE USER a PASSWORD 's3cret' LOGIN", "CREATE USER a PASSWORD '***' LOGIN"),
            ("ALTER ROLE a ENCRYPTED PASSWORD 's3''cret'", "ALTER ROLE a ENCRYPTED PASSWORD '***'"),
            ("CREATE USER a@b IDENTIFIED BY 's3cret'; SELECT 'x'", "CREATE USER a@b IDENTIFIED BY '***'; SELECT 'x'"),
            ("GRANT x TO a identified with y by \"s3cret\"", "GRANT x TO a identified with y by \"***\""),
            ("SET PASSWORD FOR a = PASSWORD('s3cret')", "SET PASSWORD FOR a = PASSWORD('***')"),
            (
                "CREATE USER MAPPING FOR u SERVER s OPTIONS (user 'u', password 's3cret')",
                "CREATE USER MAPPING FOR u SERVER s OPTIONS (user 'u', password '***')",
            ),
            (
                "CREATE SECRET (TYPE s3, KEY_ID 'k', SECRET 's3cret')",
                "CREATE SECRET (TYPE s3, KEY_ID 'k', SECRET '***')",
            ),
            ("CHANGE MASTER TO MASTER_PASSWORD='s3cret', x=1", "CHANGE MASTER TO MASTER_PASSWORD='***', x=1"),
            ("CALL f(password => 's3cret')", "CALL f(password => '***')"),
        ] {
            check(written, shown);
        }
    }

    #[test]
    fn documents_and_commands_lose_their_passwords() {
        for (written, shown) in [
            (r#"{"password": "s3cret", "n": 1}"#, r#"{"password": "***", "n": 1}"#),
            ("aws_secret_access_key: 's3cret'", "aws_secret_access_key: '***'"),
            ("mysql -uroot -ps3cret -P3306 | pgbench -p 5432", "mysql -uroot -p*** -P3306 | pgbench -p 5432"),
            ("sshpass -p s3cret ssh h", "sshpass -p *** ssh h"),
            ("curl -u me:s3cret http://h/", "curl -u me:*** http://h/"),
            ("curl -H 'Authorization: Bearer s3cret' h", "curl -H 'Authorization: Bearer ***' h"),
            ("PGPASSWORD=s3cret psql", "PGPASSWORD=*** psql"),
            ("--tag db=me:s3cret@h", "--tag db=me:***@h"),
        ] {
            check(written, shown);
        }
    }

    #[test]
    fn messages_about_passwords_stay_as_they_are() {
        for message in [
            "Access denied for user 'me'@'localhost' (using password: YES)",
            "password authentication failed for user \"me\"",
            "syntax error: unexpected token: 'FROM', unexpected token 'x'",
            "`--password` needs a value; --password-file FILE",
            "password_encryption = scram-sha-256",
            "prod:postgres://app@host/bench",
            "mysql: -p is missing; mysqld --port 3306",
        ] {
            let shown = text_without_secrets(message);
            assert_eq!(shown, message);
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
