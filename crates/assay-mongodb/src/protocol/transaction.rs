//! A transaction over several commands: what travels with each of them.
//!
//! It begins with the first command after `startTransaction`, which the server never sees. An error of the
//! server ends it there, and it stays open here until it is aborted, as in a SQL database. Source: MongoDB manual,
//! "Transactions", "Server Sessions".

use assay_seam::{Class, StatementError};

use crate::protocol::additions::Additions;
use crate::protocol::body::elements_of;
use crate::protocol::bson::{self, Document, Malformed};
use crate::protocol::json::Node;

/// What a statement does to the transaction.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Control {
    /// It begins one, with these elements for its first command, and those for its commit.
    Start {
        first: Box<[u8]>,
        last: Box<[u8]>,
    },
    /// `concern`: it has a write concern of its own.
    Commit {
        concern: bool,
    },
    Abort {
        concern: bool,
    },
}

impl Control {
    /// Of a command of this name; `None`: it is one like others.
    pub(super) fn of(name: &str, command: &Node, additions: &Additions) -> Result<Option<Control>, StatementError> {
        let concern = command.field("writeConcern").is_some();
        match name {
            "committransaction" => Ok(Some(Control::Commit { concern })),
            "aborttransaction" => Ok(Some(Control::Abort { concern })),
            "starttransaction" => {
                let Node::Document(fields) = command else { return Ok(None) };
                let known = |name: &str| matches!(name, "readConcern" | "writeConcern");
                if let Some((name, _)) = fields.iter().skip(1).find(|(name, _)| !known(name)) {
                    return Err(wrong(format!("startTransaction has no field `{name}`"), STARTS));
                }
                if additions.reads_secondaries() {
                    return Err(wrong(
                        "transactions are executed by the primary, and the URL says readPreference=secondary"
                            .to_owned(),
                        "leave out readPreference",
                    ));
                }
                let element = |field: &str, usual: Option<&Node>| match command.field(field).or(usual) {
                    Some(value) => elements_of(&[(field, value)])
                        .ok_or_else(|| wrong("startTransaction has no parameters: it is not sent".to_owned(), STARTS)),
                    None => Ok(Box::default()),
                };
                Ok(Some(Control::Start {
                    first: element("readConcern", additions.read_concern.as_ref())?,
                    last: element("writeConcern", additions.write_concern.as_ref())?,
                }))
            }
            _ => Ok(None),
        }
    }
}

const STARTS: &str =
    r#"such as {"startTransaction": 1, "readConcern": {"level": "snapshot"}, "writeConcern": {"w": "majority"}}"#;

fn wrong(message: String, hint: &str) -> StatementError {
    StatementError { hint: Some(hint.to_owned()), ..StatementError::client(Class::Syntax, message) }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    /// The server does not know of it.
    Starting,
    Open,
}

/// The transaction of a connection, and the server's session that it is in.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    state: State,
    /// The session's id, chosen when it is first needed.
    session: Option<[u8; 16]>,
    /// Of the last transaction of the session.
    number: i64,
    first: Box<[u8]>,
    last: Box<[u8]>,
    /// What travels with a command.
    elements: Vec<u8>,
}

impl Transaction {
    pub(super) fn is_open(&self) -> bool {
        self.state != State::None
    }

    /// Whether the server knows of it.
    pub(super) fn is_sent(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn start(&mut self, first: &[u8], last: &[u8]) {
        self.state = State::Starting;
        self.session.get_or_insert_with(random_uuid);
        self.number += 1;
        if *self.first != *first {
            self.first = first.into();
        }
        if *self.last != *last {
            self.last = last.into();
        }
    }

    /// Elements for the next command; `None` outside of a transaction. `ends`: it is the last, without a write concern
    /// of its own.
    pub(super) fn elements(&mut self, ends: bool) -> Option<&[u8]> {
        let session = self.session.filter(|_| self.is_open())?;
        let out = &mut self.elements;
        out.clear();
        bson::document_element("lsid", out, |out| {
            bson::name(bson::BINARY, b"id", out);
            bson::binary(UUID, &session, out);
        });
        bson::name(bson::INT64, b"txnNumber", out);
        out.extend_from_slice(&self.number.to_le_bytes());
        bson::bool_element("autocommit", false, out);
        if self.state == State::Starting {
            bson::bool_element("startTransaction", true, out);
            out.extend_from_slice(&self.first);
        }
        if ends {
            out.extend_from_slice(&self.last);
        }
        Some(out)
    }

    /// A command with the elements was sent.
    pub(super) fn on_sent(&mut self) {
        if self.state == State::Starting {
            self.state = State::Open;
        }
    }

    /// It was committed or aborted.
    pub(super) fn end(&mut self) {
        self.state = State::None;
    }

    /// The connection is gone, and with it the server's interest in the session.
    pub(super) fn on_closed(&mut self) {
        (self.state, self.session) = (State::None, None);
    }
}

/// Binary subtype.
const UUID: u8 = 4;

/// RFC 9562, version 4.
fn random_uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel has random numbers");
    bytes[6] = (bytes[6] & 0x0F) | 0x40;
    bytes[8] = (bytes[8] & 0x3F) | 0x80;
    bytes
}

/// Whether the reply to a commit leaves open if it was done.
pub(super) fn is_in_doubt(reply: Document<'_>) -> Result<bool, Malformed> {
    const MAX_TIME_EXPIRED: i64 = 50;
    if reply.is_true("ok")? {
        return Ok(false);
    }
    let unknown = |label: bson::Bson<'_>| label == bson::Bson::Text(b"UnknownTransactionCommitResult");
    let mut labelled = false;
    for label in reply.inner("errorLabels")?.elements() {
        labelled |= unknown(label?.1);
    }
    Ok(labelled || reply.integer("code")? == Some(MAX_TIME_EXPIRED))
}
