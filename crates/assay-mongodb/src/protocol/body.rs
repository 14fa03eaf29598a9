//! The BSON of a command with gaps, and of the values that fill them.
//!
//! Lengths of documents around a gap are known only once it is filled; everything else is copied.

use std::ops::Range;

use assay_seam::{Class, StatementError, Value};

use crate::protocol::bson;
use crate::protocol::json::{self, Gap, Node};

/// How a command is written.
#[derive(Debug)]
pub(super) struct Body {
    steps: Box<[Step]>,
    /// What is copied, and names.
    bytes: Box<[u8]>,
    gaps: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// These of `bytes`.
    Copy(Range<u32>),
    /// A document begins.
    Open,
    /// The document that began last ends.
    Close,
    /// The next parameter, with its name in `bytes`.
    Gap(Gap, Range<u32>),
}

impl Body {
    /// Compiles a document.
    pub(super) fn new(command: &Node) -> Body {
        let mut compiler = Compiler::default();
        compiler.document(command);
        compiler.copy_rest();
        Body { steps: compiler.steps.into(), bytes: compiler.bytes.into(), gaps: compiler.gaps }
    }

    /// How many parameters it has.
    pub(super) fn gaps(&self) -> usize {
        self.gaps
    }

    /// Appends the document. `opened` is scratch space. Fails, leaving an incomplete document in `out`, if a parameter
    /// is missing or its value cannot have the type of its gap. Allocates nothing if `out` and `opened` have room.
    pub(super) fn write(
        &self,
        parameters: &[Value<'_>],
        opened: &mut Vec<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        if parameters.len() != self.gaps {
            let message =
                format!("the statement has {} placeholders, {} parameters were given", self.gaps, parameters.len());
            return Err(refused_value(message, ""));
        }
        let mut values = parameters.iter();
        opened.clear();
        for step in &self.steps {
            match step {
                Step::Copy(range) => out.extend_from_slice(self.slice(range)),
                Step::Open => opened.push(bson::begin(out)),
                Step::Close => bson::end(opened.pop().expect("a document was opened"), out),
                Step::Gap(gap, range) => {
                    let value = values.next().expect("there are as many parameters as gaps");
                    write_value(*value, *gap, self.slice(range), out)?;
                }
            }
        }
        Ok(())
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        &self.bytes[range.start as usize..range.end as usize]
    }
}

/// Writes an element. Allocates nothing if `out` has room.
pub(super) fn write_value(value: Value<'_>, gap: Gap, name: &[u8], out: &mut Vec<u8>) -> Result<(), StatementError> {
    match (value, gap) {
        (Value::Null, _) => bson::name(bson::NULL, name, out),
        (Value::Int(value), Gap::Plain) => match i32::try_from(value) {
            Ok(value) => {
                bson::name(bson::INT32, name, out);
                out.extend_from_slice(&value.to_le_bytes());
            }
            Err(_) => {
                bson::name(bson::INT64, name, out);
                out.extend_from_slice(&value.to_le_bytes());
            }
        },
        (Value::Int(value), Gap::Int32) if i32::try_from(value).is_ok() => {
            bson::name(bson::INT32, name, out);
            out.extend_from_slice(&(value as i32).to_le_bytes());
        }
        (Value::Int(value), Gap::Int64 | Gap::Date) => {
            bson::name(if gap == Gap::Date { bson::DATE } else { bson::INT64 }, name, out);
            out.extend_from_slice(&value.to_le_bytes());
        }
        (Value::Int(value), Gap::Double) => {
            bson::name(bson::DOUBLE, name, out);
            out.extend_from_slice(&(value as f64).to_le_bytes());
        }
        (Value::Double(value), Gap::Plain | Gap::Double) => {
            bson::name(bson::DOUBLE, name, out);
            out.extend_from_slice(&value.to_le_bytes());
        }
        (Value::Text(text), Gap::Plain) => {
            if std::str::from_utf8(text).is_err() {
                let message = format!("the parameter for `{}` is not UTF-8 text", String::from_utf8_lossy(name));
                let hint = "pass binary data with the type `b`: con:prepare(text, \"b\")";
                return Err(refused_value(message, hint));
            }
            bson::name(bson::TEXT, name, out);
            bson::text(text, out);
        }
        (Value::Text(text), Gap::ObjectId) if json::object_id(text).is_some() => {
            bson::name(bson::OBJECT_ID, name, out);
            out.extend_from_slice(&json::object_id(text).expect("it was read above"));
        }
        (Value::Bytes(bytes), Gap::Plain) => {
            bson::name(bson::BINARY, name, out);
            bson::binary(0, bytes, out);
        }
        (value, gap) => {
            let wanted = match gap {
                Gap::ObjectId => "a text of 24 hexadecimal digits",
                Gap::Date => "an integer: milliseconds since 1970",
                Gap::Int32 => "an integer of 32 bits",
                Gap::Int64 => "an integer",
                Gap::Double => "a number",
                Gap::Plain => "a value",
            };
            let found = match value {
                Value::Null => "NULL",
                Value::Int(_) => "an integer",
                Value::Double(_) => "a double",
                Value::Text(_) => "another text",
                Value::Bytes(_) => "binary data",
            };
            let name = String::from_utf8_lossy(name);
            return Err(refused_value(format!("the parameter for `{name}` is {found}, and must be {wanted}"), ""));
        }
    }
    Ok(())
}

/// A statement or a parameter that is not sent. No `hint`: empty.
pub(super) fn refused_value(message: String, hint: &str) -> StatementError {
    let hint = (!hint.is_empty()).then(|| hint.to_owned());
    StatementError { hint, ..StatementError::client(Class::Syntax, message) }
}

/// These fields as elements; `None` if there are gaps in them.
pub(super) fn elements_of(fields: &[(&str, &Node)]) -> Option<Box<[u8]>> {
    let mut compiler = Compiler::default();
    fields.iter().for_each(|(name, value)| compiler.element(name, value));
    (compiler.gaps == 0).then(|| compiler.bytes.into())
}

#[derive(Default)]
struct Compiler {
    steps: Vec<Step>,
    bytes: Vec<u8>,
    /// `bytes` from here on are not in a step yet.
    copied: usize,
    gaps: usize,
}

impl Compiler {
    fn copy_rest(&mut self) {
        if self.copied < self.bytes.len() {
            self.steps.push(Step::Copy(self.copied as u32..self.bytes.len() as u32));
            self.copied = self.bytes.len();
        }
    }

    /// The value of a document or an array.
    fn document(&mut self, node: &Node) {
        let has_gaps = has_gaps(node);
        let start = match has_gaps {
            true => {
                self.copy_rest();
                self.steps.push(Step::Open);
                0
            }
            false => bson::begin(&mut self.bytes),
        };
        match node {
            Node::Document(fields) => fields.iter().for_each(|(name, value)| self.element(name, value)),
            Node::Array(items) => {
                items.iter().enumerate().for_each(|(place, item)| self.element(&place.to_string(), item));
            }
            _ => unreachable!("it is a document or an array"),
        }
        if has_gaps {
            self.copy_rest();
            self.steps.push(Step::Close);
        } else {
            bson::end(start, &mut self.bytes);
        }
    }

    fn element(&mut self, name: &str, value: &Node) {
        let name = name.as_bytes();
        let kind = match value {
            Node::Gap(gap) => {
                self.copy_rest();
                self.bytes.extend_from_slice(name);
                self.steps.push(Step::Gap(*gap, self.copied as u32..self.bytes.len() as u32));
                self.copied = self.bytes.len();
                self.gaps += 1;
                return;
            }
            Node::Document(_) => bson::DOCUMENT,
            Node::Array(_) => bson::ARRAY,
            Node::Double(_) => bson::DOUBLE,
            Node::Int32(_) => bson::INT32,
            Node::Int64(_) => bson::INT64,
            Node::Text(_) => bson::TEXT,
            Node::Bool(_) => bson::BOOL,
            Node::Null => bson::NULL,
            Node::ObjectId(_) => bson::OBJECT_ID,
            Node::Date(_) => bson::DATE,
            Node::Binary { .. } => bson::BINARY,
            Node::Timestamp { .. } => bson::TIMESTAMP,
            Node::Regex { .. } => bson::REGEX,
            Node::MinKey => bson::MIN_KEY,
            Node::MaxKey => bson::MAX_KEY,
        };
        let out = &mut self.bytes;
        bson::name(kind, name, out);
        match value {
            Node::Document(_) | Node::Array(_) => self.document(value),
            Node::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            Node::Int32(value) => out.extend_from_slice(&value.to_le_bytes()),
            Node::Int64(value) | Node::Date(value) => out.extend_from_slice(&value.to_le_bytes()),
            Node::Text(value) => bson::text(value.as_bytes(), out),
            Node::Bool(value) => out.push((*value).into()),
            Node::ObjectId(id) => out.extend_from_slice(id),
            Node::Binary { subtype, bytes } => bson::binary(*subtype, bytes, out),
            Node::Timestamp { seconds, increment } => {
                out.extend_from_slice(&increment.to_le_bytes());
                out.extend_from_slice(&seconds.to_le_bytes());
            }
            Node::Regex { pattern, options } => {
                for text in [pattern, options] {
                    out.extend_from_slice(text.as_bytes());
                    out.push(0);
                }
            }
            Node::Null | Node::MinKey | Node::MaxKey | Node::Gap(_) => {}
        }
    }
}

fn has_gaps(node: &Node) -> bool {
    match node {
        Node::Gap(_) => true,
        Node::Document(fields) => fields.iter().any(|(_, value)| has_gaps(value)),
        Node::Array(items) => items.iter().any(has_gaps),
        _ => false,
    }
}
