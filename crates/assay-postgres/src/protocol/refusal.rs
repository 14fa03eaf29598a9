//! The server's errors: parses ErrorResponse and classifies its SQLSTATE.
//!
//! Class and retry depend on the five characters, and where several causes share them on the message, which stays the
//! server's. If a limit or a setting caused the error, the hint names it. Source: PostgreSQL manual, appendix A
//! (codes), 55.8 (fields).

use crate::protocol::message::{Body, Broken};
use assay_seam::{Class, Code, Origin, Retry, StatementError};

/// An ErrorResponse.
pub(super) struct ErrorResponse {
    /// The server closes the connection after it.
    pub(super) fatal: bool,
    /// As the server says it.
    severity: String,
    /// The server's function that raised it: unlike the message never translated.
    pub(super) routine: Vec<u8>,
    pub(super) error: StatementError,
}

impl ErrorResponse {
    pub(super) fn read(body: &[u8]) -> Result<ErrorResponse, Broken> {
        let mut body = Body(body);
        let (mut severity, mut state, mut message, mut advice, mut routine, mut position) = Default::default();
        let (mut shown, mut detail, mut query, mut context): (&[u8], &[u8], &[u8], &[u8]) = Default::default();
        loop {
            let field = match body.byte()? {
                0 => break,
                // `V` is `S` in English, from 9.6 on, and comes after it.
                b'S' => {
                    shown = body.text()?;
                    severity = shown;
                    continue;
                }
                b'V' => &mut severity,
                b'D' => &mut detail,
                b'q' => &mut query,
                b'W' => &mut context,
                b'C' => &mut state,
                b'M' => &mut message,
                b'H' => &mut advice,
                b'P' => &mut position,
                b'R' => &mut routine,
                _ => {
                    body.text()?;
                    continue;
                }
            };
            *field = body.text()?;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let state = text(state);
        let message = text(message);
        let (class, retry) = classify(&state, &message);
        let mut details = String::new();
        let titles = [("DETAIL", detail), ("HINT", advice), ("QUERY", query), ("CONTEXT", context)];
        for (title, field) in titles.into_iter().filter(|(_, field)| !field.is_empty()) {
            details.push_str(&format!("\n{title}:  {}", text(field)));
        }
        let ours = hint(&state, &message, routine).map(str::to_owned);
        let hint = ours.or_else(|| Some(text(advice)).filter(|advice| !advice.is_empty()));
        Ok(ErrorResponse {
            fatal: matches!(severity, b"FATAL" | b"PANIC"),
            severity: text(shown),
            routine: routine.to_vec(),
            error: StatementError {
                origin: Origin::Server,
                class,
                code: Code { number: 0, state },
                retry,
                message,
                position: text(position).parse().unwrap_or(0),
                hint,
                details,
            },
        })
    }

    /// The lines of a NoticeResponse, as psql shows them: the context of notices is left out.
    pub(super) fn lines(&self) -> String {
        let details = self.error.details.split("\nCONTEXT:").next().unwrap_or_default();
        format!("{}:  {}{details}\n", self.severity, self.error.message)
    }
}

/// The message of a server that could not start a process for us: `E` and text, without a length or a code.
// report_fork_failure_to_client in src/backend/postmaster/postmaster.c
pub(super) fn before_any_process(bytes: &[u8]) -> Option<Box<StatementError>> {
    let text = bytes.strip_prefix(b"E")?.split(|byte| *byte == 0).next()?;
    let message = std::str::from_utf8(text).ok()?.trim();
    let reads_like_text = !message.is_empty() && !message.contains(char::is_control);
    reads_like_text.then(|| {
        Box::new(StatementError {
            origin: Origin::Server,
            class: Class::Limit,
            code: Code::default(),
            retry: Retry::Reconnect,
            message: message.to_owned(),
            position: 0,
            hint: Some(
                "the server cannot start more processes: raise its limits (`ulimit -u`, TasksMax= of its service, memory), \
                 or use fewer sessions"
                    .into(),
            ),
            details: String::new(),
        })
    })
}

/// The meaning of an SQLSTATE. Unlisted codes have the meaning of their class, the first two characters.
fn classify(state: &str, message: &str) -> (Class, Retry) {
    use Class::*;
    use Retry::*;
    match state {
        "40P01" => (Deadlock, AfterBackoff),
        "40002" => (Constraint, Never),
        "55P03" => (Timeout, AfterBackoff),
        // Only the message says whether `statement_timeout` or somebody cancelled it (pg_cancel_backend).
        "57014" if message.contains("statement timeout") => (Timeout, Never),
        "57014" => (Cancelled, Never),
        // Idle in transaction, transaction and session timeouts: the server hangs up.
        "25P03" | "25P04" | "57P05" => (Timeout, Reconnect),
        // An administrator ended the connection, the server shuts down, crashed or starts.
        "57P01" | "57P02" | "57P03" => (Connection, Reconnect),
        "57P04" => (Missing, Never),
        // PgBouncer before 1.21 has no better code for its own limit.
        "08P01" if message.contains("max_client_conn") => (Limit, Reconnect),
        // Nor for a wrong password.
        "08P01" if message.contains("authentication failed") => (Authentication, Never),
        "08P01" => (Protocol, Never),
        "53300" => (Limit, Reconnect),
        "42501" => (Permission, Never),
        // Refers to a prepared statement that is gone (DEALLOCATE): it is prepared again next time.
        "26000" => (Other, Now),
        "3D000" | "3F000" | "42P01" | "42703" | "42704" | "42883" | "42P02" | "34000" => (Missing, Never),
        "42P03" | "42P04" | "42P05" | "42P06" | "42P07" | "42701" | "42710" | "42712" | "42723" => (Exists, Never),
        _ => match state.get(..2) {
            Some("08") => (Connection, Reconnect),
            Some("23" | "44") => (Constraint, Never),
            Some("28") => (Authentication, Never),
            Some("40") => (Serialization, AfterBackoff),
            Some("42") => (Syntax, Never),
            Some("53" | "54") => (Limit, Never),
            _ => (Other, Never),
        },
    }
}

/// Advice, if we know better than the server.
fn hint(state: &str, message: &str, routine: &[u8]) -> Option<&'static str> {
    Some(match (state, routine) {
        ("53300", b"InitializeSessionUserId") => {
            "the role has its own limit: raise it with ALTER ROLE … CONNECTION LIMIT n, or use fewer sessions"
        }
        ("53300", b"CheckMyDatabase") => {
            "the database has its own limit: raise it with ALTER DATABASE … CONNECTION LIMIT n, or use fewer sessions"
        }
        ("53300", _) => {
            "the server allows max_connections clients, of which superuser_reserved_connections are reserved: use fewer sessions, or raise it (ALTER SYSTEM SET max_connections = n, then restart the server)"
        }
        ("08P01", _) if message.contains("max_client_conn") => {
            "use fewer sessions, or raise PgBouncer's max_client_conn"
        }
        ("08P01", _) if message.contains("authentication failed") => {
            "check user and password: the URL, PGUSER and PGPASSWORD, ~/.pgpass, PgBouncer's auth_file"
        }
        ("28P01", _) => "check user and password: the URL, PGUSER and PGPASSWORD, ~/.pgpass",
        ("28000", b"InitializeSessionUserId") => "check the user name, or create the role first (createuser NAME)",
        ("28000", _) => "the server's pg_hba.conf says who may log in, from where and how",
        ("3D000", _) => "create the database first (createdb NAME), or use another one in the URL",
        ("26000" | "42P05", _) => {
            "the script discarded its prepared statements, or a connection pooler does not support them: for a pooler, turn them off (--prepared off)"
        }
        ("57014", _) if !message.is_ascii() || !message.contains("canceling statement") => {
            "cancelled by somebody, or by statement_timeout: a message that is not in English does not show which"
        }
        ("08001" | "HV00N", _) => {
            "this server cannot reach that of a foreign table: check that it runs, and the host and port that the foreign server has (\\des+ in psql), or that `--foreign` named"
        }
        ("57P03", _) => "the server is starting up, shutting down or recovering",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &[&str], fatal: bool, class: Class, retry: Retry, hint: &str) {
        let mut body: Vec<u8> = fields.iter().flat_map(|field| [field.as_bytes(), b"\0"].concat()).collect();
        body.push(0);
        let refusal = ErrorResponse::read(&body).unwrap();
        assert_eq!((refusal.fatal, refusal.error.class, refusal.error.retry), (fatal, class, retry), "{fields:?}");
        let found = refusal.error.hint.unwrap_or_default();
        assert!(found.contains(hint) && found.is_empty() == hint.is_empty(), "{fields:?}: {found}");
    }

    #[test]
    fn states_tell_class_retry_and_advice() {
        let plain = |state: &str, class, retry| {
            check(&["SERROR", "VERROR", &format!("C{state}"), "Mwords"], false, class, retry, "");
        };
        plain("40P01", Class::Deadlock, Retry::AfterBackoff);
        plain("40001", Class::Serialization, Retry::AfterBackoff);
        plain("55P03", Class::Timeout, Retry::AfterBackoff);
        plain("23505", Class::Constraint, Retry::Never);
        plain("42601", Class::Syntax, Retry::Never);
        plain("42P01", Class::Missing, Retry::Never);
        plain("42P07", Class::Exists, Retry::Never);
        plain("42501", Class::Permission, Retry::Never);
        plain("53100", Class::Limit, Retry::Never);
        plain("08006", Class::Connection, Retry::Reconnect);
        plain("XX000", Class::Other, Retry::Never);
        plain("", Class::Other, Retry::Never);
        let of_57014 = |message: &str, class, hint: &str| {
            check(&["SERROR", "C57014", &format!("M{message}")], false, class, Retry::Never, hint);
        };
        of_57014("canceling statement due to statement timeout", Class::Timeout, "");
        of_57014("canceling statement due to user request", Class::Cancelled, "");
        of_57014("storniere Anfrage wegen Zeitüberschreitung der Anfrage", Class::Cancelled, "not in English");
        check(&["SFATAL", "C57P01"], true, Class::Connection, Retry::Reconnect, "");
        check(&["SFATAL", "C53300"], true, Class::Limit, Retry::Reconnect, "superuser_reserved_connections");
        check(&["SFATAL", "C53300", "RCheckMyDatabase"], true, Class::Limit, Retry::Reconnect, "ALTER DATABASE");
        check(&["SFATAL", "C08P01", "Mno more (max_client_conn)"], true, Class::Limit, Retry::Reconnect, "PgBouncer");
        check(
            &["SFATAL", "C08P01", "MSASL authentication failed"],
            true,
            Class::Authentication,
            Retry::Never,
            "auth_file",
        );
        check(&["SERROR", "C08001"], false, Class::Connection, Retry::Reconnect, "foreign table");
        check(&["SFATAL", "C28P01"], true, Class::Authentication, Retry::Never, "PGPASSWORD");
        check(&["SFATAL", "C3D000"], true, Class::Missing, Retry::Never, "createdb");
        check(&["SFEHLER", "VERROR", "C22012", "HTry one."], false, Class::Other, Retry::Never, "Try one.");
        check(&["SSCHWERWIEGEND", "VFATAL", "C57P02"], true, Class::Connection, Retry::Reconnect, "");
    }

    #[test]
    fn the_servers_words_are_kept() {
        let refusal = ErrorResponse::read(b"SERROR\0C22012\0Mdivision by zero\0Rint4div\0\0").unwrap();
        assert_eq!(refusal.error.to_string(), "server: division by zero (22012)");
        assert_eq!(refusal.routine, b"int4div");
        assert!(ErrorResponse::read(b"SERROR\0C22012").is_err());
        assert!(ErrorResponse::read(b"SERROR\0").is_err());
    }
}
