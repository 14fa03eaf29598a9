//! `~/.pgpass`: lines of `host:port:database:user:password`.
//!
//! The first line whose four fields match gives the password; `*` matches everything, `\` escapes the next character,
//! `#` starts a comment line. Source: PostgreSQL manual, 34.16.

/// The key of a password.
#[derive(Clone, Copy)]
pub(super) struct Login<'a> {
    /// `localhost` also for the default socket's directory.
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// The password for `login` in a file's `content`.
pub(super) fn find(content: &[u8], login: Login<'_>) -> Option<Vec<u8>> {
    let port = login.port.to_string();
    let wanted = [login.host, &port, login.database, login.user].map(str::as_bytes);
    content.split(|&byte| byte == b'\n').find_map(|line| {
        let mut rest = line.strip_suffix(b"\r").unwrap_or(line);
        if rest.starts_with(b"#") {
            return None;
        }
        for wanted in wanted {
            let end = field_end(rest)?;
            if &rest[..end] != b"*" && unescape(&rest[..end]) != wanted {
                return None;
            }
            rest = &rest[end + 1..];
        }
        Some(unescape(rest))
    })
}

/// Offset of the first `:` that no backslash escapes.
fn field_end(line: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b':' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied();
    while let Some(byte) = bytes.next() {
        // A backslash at the very end stands for itself.
        plain.push(if byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_line_gives_the_password() {
        let content = b"# localhost:5432:db:me:comment\r\nbroken line\nlocalhost:5432:db:you:no\n\
            localhost:5433:*:me:port\nlocalhost:*:d\\:b:me:p\\:a\\\\s\\s:x\\\r\n*:*:*:me:any\n";
        let check = |host, port, database, user, expected: Option<&str>| {
            let found = find(content, Login { host, port, database, user });
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{host} {port} {database} {user}");
        };
        check("localhost", 5432, "db", "you", Some("no"));
        check("localhost", 5433, "db", "me", Some("port"));
        check("localhost", 5432, "d:b", "me", Some(r"p:a\ss:x\"));
        check("elsewhere", 5432, "db", "me", Some("any"));
        check("localhost", 5432, "db", "nobody", None);
    }
}
