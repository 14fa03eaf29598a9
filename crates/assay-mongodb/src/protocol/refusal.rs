//! The server's errors: class, whether to retry, and what the user can do.
//!
//! Sources: MongoDB manual, "Error Codes"; mongodb/mongo, src/mongo/base/error_codes.yml. Labels decide where a code
//! says too little.

use assay_seam::{Class, Code, Origin, Retry, StatementError};

use crate::protocol::bson::{Bson, Document, Malformed};

/// The server refused to execute a write, because it is not the primary.
pub(super) const NOT_PRIMARY: [u32; 3] = [10107, 13435, 13436];

const DUPLICATE: u32 = 11000;
const UNAUTHORIZED: u32 = 13;
const AUTHENTICATION_FAILED: u32 = 18;

/// The error for a peer that breaks the protocol. `what`: "sent …".
pub(super) fn violation(what: &str) -> Box<StatementError> {
    let message = format!("the server broke MongoDB's protocol: it {what}");
    let mut error = StatementError::client(Class::Protocol, message);
    error.hint = Some(
        "is this a MongoDB server, and does its port expect TLS (`tls=true` in the URL)? Otherwise check what is between \
         this machine and the server"
            .to_owned(),
    );
    Box::new(error)
}

/// The error of a reply, if it has one: of the command, of its first write that failed, or of its write concern.
pub(super) fn of_reply(reply: Document<'_>) -> Result<Option<Box<StatementError>>, Malformed> {
    if !reply.is_true("ok")? {
        return error(reply, reply).map(Some);
    }
    let mut failed = reply.inner("writeErrors")?.elements();
    if let Some(first) = failed.next() {
        let (_, Bson::Document(first)) = first? else { return Err(Malformed) };
        let mut error = error(first, reply)?;
        let others = failed.count();
        if others > 0 {
            error.details = format!("\nand {others} more writes of this command failed");
        }
        return Ok(Some(error));
    }
    match reply.get("writeConcernError")? {
        Some(Bson::Document(concern)) => {
            let mut error = error(concern, reply)?;
            error.message = format!("the write was done, and its write concern was not satisfied: {}", error.message);
            if error.class == Class::Other {
                error.class = Class::Timeout;
            }
            Ok(Some(error))
        }
        _ => Ok(None),
    }
}

/// `reply`: where the labels are.
fn error(document: Document<'_>, reply: Document<'_>) -> Result<Box<StatementError>, Malformed> {
    let number = document.integer("code")?.and_then(|code| u32::try_from(code).ok()).unwrap_or_default();
    let text =
        |name: &str| document.text(name).map(|text| String::from_utf8_lossy(text.unwrap_or_default()).into_owned());
    let (mut message, name) = (text("errmsg")?, text("codeName")?);
    if message.is_empty() {
        message = if name.is_empty() { "the server gives no reason".to_owned() } else { name };
    }
    let (mut class, mut retry) = meaning(number);
    if class == Class::Other {
        for label in reply.inner("errorLabels")?.elements() {
            match label? {
                (_, Bson::Text(b"TransientTransactionError")) => {
                    (class, retry) = (Class::Serialization, Retry::AfterBackoff)
                }
                (_, Bson::Text(b"RetryableWriteError")) => (class, retry) = (Class::Connection, Retry::Reconnect),
                _ => {}
            }
        }
    }
    Ok(Box::new(StatementError {
        origin: Origin::Server,
        class,
        code: Code { number, state: String::new() },
        retry,
        message,
        position: 0,
        hint: hint(number).map(str::to_owned),
        details: String::new(),
    }))
}

fn meaning(number: u32) -> (Class, Retry) {
    match number {
        // Write conflicts; snapshots that are too old or not there yet.
        112 | 239 | 246 | 251 => (Class::Serialization, Retry::AfterBackoff),
        // Waits for locks.
        24 | 46 => (Class::Timeout, Retry::AfterBackoff),
        // maxTimeMS, and write concerns that were not satisfied in time.
        50 | 64 | 262 => (Class::Timeout, Retry::Never),
        121 | DUPLICATE | 11001 | 12582 => (Class::Constraint, Retry::Never),
        AUTHENTICATION_FAILED | 11 | 8000 => (Class::Authentication, Retry::Never),
        UNAUTHORIZED | 33 => (Class::Permission, Retry::Never),
        26 | 27 => (Class::Missing, Retry::Never),
        48 | 68 | 85 | 86 => (Class::Exists, Retry::Never),
        2 | 4 | 9 | 14 | 40 | 52 | 59 | 72 | 40324 | 40414 | 40415 => (Class::Syntax, Retry::Never),
        11601 => (Class::Cancelled, Retry::Never),
        // Another server is the primary, this one stops, or it cannot reach the others.
        6 | 7 | 89 | 91 | 133 | 134 | 189 | 9001 | 10107 | 11600 | 11602 | 13435 | 13436 => {
            (Class::Connection, Retry::Reconnect)
        }
        10334 | 17280 | 17419 | 146 | 292 | 14031 => (Class::Limit, Retry::Never),
        _ => (Class::Other, Retry::Never),
    }
}

fn hint(number: u32) -> Option<&'static str> {
    Some(match number {
        AUTHENTICATION_FAILED => {
            "check user and password, and `authSource` in the URL: the database where the user was created (default: the \
             database of the URL, else admin)"
        }
        UNAUTHORIZED => {
            "log in as a user with the role readWrite on the database: mongodb://USER:PASSWORD@HOST/DATABASE"
        }
        59 => "this server does not have this command",
        50 | 262 => "raise `maxTimeMS` in the command, or the server's limit, or make the command cheaper",
        64 => "raise `wtimeoutMS` in the URL, or ask fewer servers (`w`)",
        79 | 100 => "the replica set has not as many members, or not that tag: lower `w` in the URL",
        166 => "this collection is a view: name the collection below it",
        20 => "the server does not do this as it is deployed now; transactions and majority reads need a replica set",
        146 | 292 => "add \"allowDiskUse\": true to the command, or raise the server's limit",
        10334 => "a document has at most 16 MiB: make it smaller, or split it",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::additions::Additions;
    use crate::protocol::bson;
    use crate::protocol::template::Template;

    /// The error of a reply that is written in extended JSON.
    fn check(reply: &str, expected: &str) {
        let (mut out, additions) = (Vec::new(), Additions::default());
        Template::new(reply.as_bytes(), &additions).unwrap().write(&[], &mut Vec::new(), &mut out).unwrap();
        let error = of_reply(bson::Document::read(&out).unwrap().0).unwrap();
        let shown = error.map(|e| format!("{e} {} {:?}{}", e.class, e.retry, e.details));
        assert_eq!(shown.unwrap_or_else(|| "none".to_owned()), expected);
    }

    #[test]
    fn errors_are_found_wherever_a_reply_has_them() {
        check(r#"{"ok": 1.0, "n": 1}"#, "none");
        check(r#"{"ok": true, "writeErrors": []}"#, "none");
        check(
            r#"{"ok": 0, "errmsg": "no such command: 'x'", "code": 59, "codeName": "CommandNotFound"}"#,
            "server: no such command: 'x' (59) syntax Never",
        );
        check(r#"{"ok": 0.0}"#, "server: the server gives no reason (no code) other Never");
        check(
            r#"{"n": 0, "ok": 1, "writeErrors": [{"index": 0, "code": 11000, "errmsg": "E11000 duplicate key"}, {"index": 1}]}"#,
            "server: E11000 duplicate key (11000) constraint Never\nand 1 more writes of this command failed",
        );
        check(
            r#"{"n": 1, "ok": 1, "writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"}}"#,
            "server: the write was done, and its write concern was not satisfied: waiting for replication timed out (64) timeout Never",
        );
    }

    #[test]
    fn labels_say_whether_a_retry_makes_sense() {
        check(
            r#"{"ok": 0, "code": 112, "errmsg": "WriteConflict", "errorLabels": ["TransientTransactionError"]}"#,
            "server: WriteConflict (112) serialization AfterBackoff",
        );
        check(
            r#"{"ok": 0, "code": 999, "errmsg": "x", "errorLabels": ["TransientTransactionError"]}"#,
            "server: x (999) serialization AfterBackoff",
        );
        check(
            r#"{"ok": 0, "code": 999, "errmsg": "x", "errorLabels": ["RetryableWriteError"]}"#,
            "server: x (999) connection Reconnect",
        );
        check(
            r#"{"ok": 0, "code": 10107, "errmsg": "not primary"}"#,
            "server: not primary (10107) connection Reconnect",
        );
        check(
            r#"{"ok": 0, "code": 18, "errmsg": "Authentication failed."}"#,
            "server: Authentication failed. (18) authentication Never",
        );
    }
}
