//! Prepared statements: what is stored for each, and how an execution is encoded.
//!
//! A statement outlives its socket: the server's id is dropped, the text stays. Parameter types are sent again only if
//! they changed, because the server remembers them. Source: MySQL internals, "COM_STMT_EXECUTE".

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use assay_seam::{Effect, StatementId, Value};
use assay_wire::placeholders::Template;

use super::packet::write_lenenc;
use super::result::{BLOB, Column, DOUBLE, LONGLONG, NULL, VAR_STRING};

/// A prepared statement.
#[derive(Debug)]
pub(super) struct Statement {
    /// The caller's name for it.
    pub(super) id: StatementId,
    /// Whether it may be deferred.
    pub(super) effect: Effect,
    /// Where it was prepared.
    pub(super) form: Form,
}

/// Where a statement was prepared.
#[derive(Debug)]
pub(super) enum Form {
    /// On the server.
    Binary {
        /// Its text, which connections share.
        template: Arc<Template>,
        /// The server's id; `None` if it must be prepared again first.
        server: Option<u32>,
        /// The type last sent for each parameter; `UNSENT` at first.
        types: Types,
        /// The columns of its results as last described, if the server describes them once.
        columns: Option<Arc<Vec<Column>>>,
    },
    /// On our side: its parameters are substituted into the text.
    Text(Arc<Template>),
}

impl Statement {
    /// For an execution as text.
    pub(super) fn text(&self) -> &Template {
        match &self.form {
            Form::Binary { template, .. } | Form::Text(template) => template,
        }
    }
}

/// A type for each parameter of a statement: most have few, and there may be many statements.
#[derive(Debug)]
pub(super) enum Types {
    /// Within the statement.
    Few {
        /// At most 7.
        count: u8,
        /// The first `count` of them.
        types: [u8; 7],
    },
    /// More than 7.
    Many(Box<[u8]>),
}

impl Types {
    /// For so many parameters, none of which was sent.
    pub(super) fn unsent(parameters: u16) -> Types {
        match u8::try_from(parameters) {
            Ok(count @ 0..=7) => Types::Few { count, types: [UNSENT; 7] },
            _ => Types::Many(vec![UNSENT; parameters.into()].into()),
        }
    }
}

impl Deref for Types {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Types::Few { count, types } => &types[..usize::from(*count)],
            Types::Many(types) => types,
        }
    }
}

impl DerefMut for Types {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Types::Few { count, types } => &mut types[..usize::from(*count)],
            Types::Many(types) => types,
        }
    }
}

/// Not a column type.
pub(super) const UNSENT: u8 = 0xFF;

const COM_STMT_EXECUTE: u8 = 0x17;

/// Where the server's id stands in the payload.
const ID: std::ops::Range<usize> = 1..5;
const HEADER_LEN: usize = 10;

/// Appends the payload of an execution; `name_statement` writes the server's id into it later. `parameters` has as many
/// values as `types`. Allocates nothing if `payload` has room.
pub(super) fn write_execute(types: &mut [u8], parameters: &[Value<'_>], payload: &mut Vec<u8>) {
    // No cursor, one iteration.
    payload.extend_from_slice(&[COM_STMT_EXECUTE, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    if parameters.is_empty() {
        return;
    }
    let nulls = payload.len();
    payload.resize(nulls + parameters.len().div_ceil(8), 0);
    let mut changed = false;
    for (i, (value, known)) in parameters.iter().zip(types.iter_mut()).enumerate() {
        let kind = match value {
            Value::Int(_) => LONGLONG,
            Value::Double(_) => DOUBLE,
            Value::Text(_) => VAR_STRING,
            Value::Bytes(_) => BLOB,
            Value::Null => {
                payload[nulls + i / 8] |= 1 << (i % 8);
                // The type does not matter: keep what the server knows.
                if *known == UNSENT { NULL } else { *known }
            }
        };
        changed |= kind != *known;
        *known = kind;
    }
    payload.push(changed.into());
    if changed {
        payload.extend(types.iter().flat_map(|&kind| [kind, 0]));
    }
    for value in parameters {
        match *value {
            Value::Null => {}
            Value::Int(value) => payload.extend_from_slice(&value.to_le_bytes()),
            Value::Double(value) => payload.extend_from_slice(&value.to_le_bytes()),
            Value::Text(text) | Value::Bytes(text) => {
                write_lenenc(text.len(), payload);
                payload.extend_from_slice(text);
            }
        }
    }
}

/// Writes the server's id into the payload of an execution.
pub(super) fn name_statement(payload: &mut [u8], server: u32) {
    payload[ID].copy_from_slice(&server.to_le_bytes());
}

/// Inserts the parameter types into the payload of an execution that omitted them, for a statement prepared again.
pub(super) fn attach_types(payload: &mut Vec<u8>, types: &[u8]) {
    let flag = HEADER_LEN + types.len().div_ceil(8);
    if !types.is_empty() && payload[flag] == 0 {
        payload[flag] = 1;
        payload.splice(flag + 1..flag + 1, types.iter().flat_map(|&kind| [kind, 0]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_sent_first_and_when_they_change() {
        let mut types = [UNSENT; 3];
        let mut encoded = |parameters: &[Value<'_>; 3]| {
            let mut payload = Vec::new();
            write_execute(&mut types, parameters, &mut payload);
            (payload.split_off(HEADER_LEN), types)
        };
        let (first, _) = encoded(&[Value::Int(1), Value::Null, Value::Text(b"ab")]);
        assert_eq!(first, [&[0b010, 1, 8, 0, 6, 0, 253, 0][..], &1i64.to_le_bytes(), b"\x02ab"].concat());
        let (second, _) = encoded(&[Value::Null, Value::Null, Value::Text(b"")]);
        assert_eq!(second, [0b011, 0, 0]);
        let (third, types) = encoded(&[Value::Int(2), Value::Double(0.5), Value::Null]);
        assert_eq!(third, [&[0b100, 1, 8, 0, 5, 0, 253, 0][..], &2i64.to_le_bytes(), &0.5f64.to_le_bytes()].concat());
        assert_eq!(types, [8, 5, 253]);
    }

    #[test]
    fn an_execution_without_types_can_be_given_them_later() {
        let mut types = [UNSENT, UNSENT];
        let parameters = [Value::Int(7), Value::Text(b"x")];
        let (mut with, mut without) = (Vec::new(), Vec::new());
        write_execute(&mut types, &parameters, &mut with);
        write_execute(&mut types, &parameters, &mut without);
        assert!(without.len() < with.len());
        for payload in [&mut with, &mut without] {
            name_statement(payload, 0x01020304);
            attach_types(payload, &types);
        }
        assert_eq!(with, without);
        assert_eq!(with[..6], [0x17, 4, 3, 2, 1, 0]);
    }
}
