//! The server's error numbers: class, whether to retry, and what the user can do.
//!
//! Sources: MySQL 8.0 Server Error Message Reference; MariaDB Error Codes. Numbers above 1900 are not shared: MariaDB
//! uses 1901–1999 and 4000–4999.

use assay_seam::{Class, Code, Origin, Retry, StatementError};

use super::packet::{Reader, violation};

/// The statement cannot be prepared: substitute its parameters on our side.
pub(super) const NOT_PREPARABLE: u32 = 1295;
/// The server does not know the prepared statement (a proxy changed servers).
pub(super) const UNKNOWN_STATEMENT: u32 = 1243;
/// The server, or a proxy before it, lacks COM_STMT_BULK_EXECUTE (ER_UNKNOWN_COM_ERROR) or lost the statement.
pub(super) const BULK_REFUSED: [u32; 2] = [1047, UNKNOWN_STATEMENT];
/// LOAD DATA LOCAL is disabled: numbers of older servers, of MySQL 8, of MariaDB, of a client library in between.
pub(super) const INFILE_REFUSED: [u32; 4] = [1148, 3948, 4166, 2068];
/// Whether the server refused a statement as such: unknown to it, or not for this user. Other products than MySQL and
/// MariaDB use their own numbers.
pub(super) fn is_of_statement(error: &StatementError) -> bool {
    error.retry == Retry::Never && matches!(error.class, Class::Syntax | Class::Permission | Class::Other)
}

/// The victim's whole transaction was rolled back, which no status flag shows.
pub(super) const DEADLOCK: u32 = 1213;

/// Wrong user, password or host; or no TLS where the account wants it.
pub(super) const ACCESS_DENIED: u32 = 1045;

const TOO_MANY_CONNECTIONS: u32 = 1040;

/// Reads an ERR packet. Before the login it has no SQLSTATE.
pub(super) fn read_error(payload: &[u8]) -> Box<StatementError> {
    let mut reader = Reader(payload);
    let (Some(0xFF), Some(number)) = (reader.u8(), reader.u16()) else {
        return violation("sent an error packet that is cut short");
    };
    let mut state = String::new();
    if let [b'#', text @ ..] = reader.0
        && let Some((letters, message)) = text.split_first_chunk::<5>()
    {
        state = String::from_utf8_lossy(letters).into_owned();
        reader.0 = message;
    }
    let number = u32::from(number);
    let (class, retry) = meaning(number, &state);
    Box::new(StatementError {
        origin: Origin::Server,
        class,
        code: Code { number, state },
        retry,
        message: String::from_utf8_lossy(reader.0).into_owned(),
        position: 0,
        hint: hint(number).map(str::to_string),
        details: String::new(),
    })
}

fn meaning(number: u32, state: &str) -> (Class, Retry) {
    match number {
        1213 | 1614 => (Class::Deadlock, Retry::AfterBackoff),
        // Record changed since read; certification failures of group replication and Galera.
        1020 | 3101 | 1180 => (Class::Serialization, Retry::AfterBackoff),
        // Lock waits: plain, XA, NOWAIT.
        1205 | 1613 | 3572 => (Class::Timeout, Retry::AfterBackoff),
        // Statement time limits of MariaDB and MySQL.
        1969 | 3024 => (Class::Timeout, Retry::Never),
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1364 | 1451 | 1452 | 1557 | 1586 | 1761 | 1762 | 3819 | 4025 => {
            (Class::Constraint, Retry::Never)
        }
        1021 | 1037 | 1038 | 1040 | 1041 | 1114 | 1129 | 1135 | 1153 | 1197 | 1203 | 1206 | 1226 | 1390 | 1461 => {
            (Class::Limit, Retry::Never)
        }
        1064 | 1065 | 1149 => (Class::Syntax, Retry::Never),
        1008 | 1049 | 1051 | 1054 | 1091 | 1109 | 1146 | 1176 | 1305 => (Class::Missing, Retry::Never),
        1007 | 1050 | 1060 | 1061 | 1304 | 1359 => (Class::Exists, Retry::Never),
        1045 | 1130 | 1251 | 1524 | 1698 | 1820 | 1862 | 2059 | 3118 | 3159 | 4151 => {
            (Class::Authentication, Retry::Never)
        }
        1044 | 1142 | 1143 | 1148 | 1227 | 1290 | 1370 | 1410 | 1419 | 1792 | 1836 | 2068 | 3948 | 4166 => {
            (Class::Permission, Retry::Never)
        }
        1317 => (Class::Cancelled, Retry::Never),
        // A node of a cluster that is not ready for queries yet.
        1047 if state == "08S01" => (Class::Connection, Retry::AfterBackoff),
        // Server shuts down; connection killed, idle for too long, broken; 2006 and 2013 come from proxies.
        1042
        | 1043
        | 1053
        | 1077
        | 1079
        | 1152
        | 1158..=1161
        | 1184
        | 1189
        | 1190
        | 1927
        | 2002
        | 2003
        | 2006
        | 2013
        | 4031 => (Class::Connection, Retry::Reconnect),
        _ => match state.get(..2) {
            Some("08") => (Class::Connection, Retry::Reconnect),
            Some("23") => (Class::Constraint, Retry::Never),
            Some("28") => (Class::Authentication, Retry::Never),
            Some("40") => (Class::Serialization, Retry::AfterBackoff),
            _ => (Class::Other, Retry::Never),
        },
    }
}

fn hint(number: u32) -> Option<&'static str> {
    Some(match number {
        TOO_MANY_CONNECTIONS => {
            "the server's max_connections (default 151) is reached: raise it with `SET GLOBAL max_connections = N` \
             and under [mysqld] in my.cnf, or lower `--sessions`"
        }
        1129 => {
            "the server's max_connect_errors (default 100) is reached for this host: run `FLUSH HOSTS` as an \
             administrator, raise it with `SET GLOBAL max_connect_errors = N`, then find out why connects failed"
        }
        1130 => "no account of the server may connect from this host: create one, `CREATE USER 'name'@'%' …`",
        ACCESS_DENIED | 1698 => "check user and password; an account is a user name and the host it connects from",
        1049 => "create it: `CREATE DATABASE name`, or name another after the `/` of the URL",
        1044 => "grant access: `GRANT ALL ON database.* TO user`",
        1370 => {
            "calling a procedure needs a privilege: `GRANT EXECUTE ON database.* TO user`; replacing it needs ALTER ROUTINE"
        }
        1203 => "the server's max_user_connections is reached: raise it, or lower `--sessions`",
        1226 => {
            "the account has reached a limit: raise it, for example with `ALTER USER … WITH MAX_USER_CONNECTIONS N`"
        }
        1461 => {
            "the server's max_prepared_stmt_count (default 16382) is reached: raise it with \
             `SET GLOBAL max_prepared_stmt_count = N`, lower `--sessions`, or pass `--prepared off`"
        }
        1153 => "the statement is larger than the server's max_allowed_packet: raise it, or send less at once",
        1135 => {
            "the server cannot start more threads: use a thread pool (MariaDB: `thread_handling = pool-of-threads`), raise its \
             limits (`ulimit -u`, TasksMax= of its service, vm.max_map_count), or lower `--sessions`"
        }
        1041 | 1037 | 1038 => "the server lacks memory or threads: lower `--sessions`, or raise its limits",
        1114 => "a disk, a tablespace or an in-memory table (tmp_table_size, max_heap_table_size) is full",
        1206 => "raise the server's innodb_buffer_pool_size, or change fewer rows in a transaction",
        1205 => "another transaction held the lock for innodb_lock_wait_timeout (default 50 s)",
        1290 | 1836 => "the server is read-only (`read_only`, `super_read_only`): connect to the primary",
        1820 | 1862 => "the password has expired: `ALTER USER … IDENTIFIED BY …`",
        1251 | 1524 | 2059 => "use a plugin for the account that both sides support, such as mysql_native_password",
        3159 => "the server wants encryption: add `sslmode=require` to the URL",
        _ => return None,
    })
}

/// Advice that depends on the number of sessions.
pub(super) fn advice(error: &StatementError, sessions: usize) -> Option<String> {
    match error.code.number {
        TOO_MANY_CONNECTIONS => Some(format!(
            "the server's max_connections (default 151) is too small for {sessions} sessions: `SET GLOBAL \
             max_connections = {}` (and under [mysqld] in my.cnf, where a start lowers it to what open_files_limit has room \
             for), or lower `--sessions`",
            sessions + sessions / 20 + 10
        )),
        _ if error.origin == Origin::Network && error.class == Class::Timeout => Some(
            "is this a MySQL or MariaDB server? PostgreSQL waits for its client to speak first: then the URL is \
             postgres://…; otherwise check the host and port in `--db`, that no firewall blocks them, and that the server \
             is not hanging"
                .to_owned(),
        ),
        _ => error.hint.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: &[u8], expected: &str) {
        let e = read_error(payload);
        let text = format!("{e} state={} {} {:?} hint={}", e.code.state, e.class, e.retry, e.hint.is_some());
        assert_eq!(text, expected);
    }

    #[test]
    fn errors_are_read_with_and_without_sqlstate() {
        check(
            b"\xff\xbd\x04#40001Deadlock found",
            "server: Deadlock found (1213) state=40001 deadlock AfterBackoff hint=false",
        );
        check(b"\xff\x10\x04Too many connections", "server: Too many connections (1040) state= limit Never hint=true");
        check(b"\xff\x01\x20#23999odd", "server: odd (8193) state=23999 constraint Never hint=false");
        check(
            b"\xff\x17\x04#08S01not ready",
            "server: not ready (1047) state=08S01 connection AfterBackoff hint=false",
        );
        check(b"\xff\x17\x04#08", "server: #08 (1047) state= other Never hint=false");
        check(
            b"\xff\x17",
            "client: the server broke the MySQL protocol: it sent an error packet that is cut short (no code) state= \
             protocol Never hint=true",
        );
    }

    #[test]
    fn too_many_connections_names_a_limit_that_suffices() {
        let error = read_error(b"\xff\x10\x04Too many connections");
        assert!(advice(&error, 200).unwrap().contains("max_connections = 220"));
    }
}
