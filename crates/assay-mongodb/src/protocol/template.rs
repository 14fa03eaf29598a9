//! A statement as a BSON command with gaps: compiled once, filled and sent for each execution.
//!
//! What the URL says about concerns and preference is added here to the commands that take it, unless the statement
//! says otherwise. Lengths of documents around a gap are known only once it is filled; everything else is copied.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use assay_seam::{Class, Effect, StatementError, Value};

use crate::protocol::bson;
use crate::protocol::json::{self, Gap, Node};
use crate::protocol::transaction::Control;

/// What the URL adds to commands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Additions {
    /// Where commands are executed.
    pub(super) database: String,
    /// Of commands that write.
    pub(super) write_concern: Option<Node>,
    /// Of commands that read.
    pub(super) read_concern: Option<Node>,
    /// Of commands that read.
    pub(super) read_preference: Option<Node>,
}

impl Additions {
    pub(super) fn reads_secondaries(&self) -> bool {
        let mode = self.read_preference.as_ref().and_then(|preference| preference.field("mode"));
        matches!(mode, Some(Node::Text(mode)) if mode == "secondary")
    }

    /// Within a transaction only its first command and its commit have concerns, and the primary executes all.
    fn within_a_transaction(&self) -> Additions {
        Additions { database: self.database.clone(), ..Additions::default() }
    }
}

/// How the answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The documents of its cursor, or else the names and values of its fields.
    Usual,
    /// The number of documents in `n`: a write.
    Written,
    /// The document in `value`.
    Modified,
    /// The number in `n`: a row of its own.
    Counted,
    /// A row for each of `values`.
    Distinct,
}

/// A compiled statement.
#[derive(Debug)]
pub(super) struct Template {
    body: Body,
    /// Within a transaction; `None`: the same.
    within: Option<Body>,
    gaps: usize,
    /// It holds a password: not compressed, as MongoDB wants it.
    pub(super) is_secret: bool,
    /// What it does to the transaction.
    pub(super) control: Option<Control>,
    pub(super) reading: Reading,
    pub(super) effect: Effect,
    /// Fields that become columns; empty: a row has the document as text.
    pub(super) columns: Box<[Box<str>]>,
}

/// How a command is written.
#[derive(Debug)]
struct Body {
    steps: Box<[Step]>,
    /// What is copied, and names.
    bytes: Box<[u8]>,
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

impl Template {
    /// Compiles a statement.
    pub(super) fn new(text: &[u8], additions: &Additions) -> Result<Template, StatementError> {
        let mut command = json::parse(text)?;
        let Node::Document(fields) = &command else { return Err(refused("a command is a document", "")) };
        let Some((name, _)) = fields.first() else {
            return Err(refused("the command is empty", r#"write its name first: {"ping": 1}"#));
        };
        let name = name.to_ascii_lowercase();
        refuse_unsupported(&name, &command)?;
        let reading = match &*name {
            "insert" | "update" | "delete" => Reading::Written,
            "findandmodify" => Reading::Modified,
            "count" => Reading::Counted,
            "distinct" => Reading::Distinct,
            _ => Reading::Usual,
        };
        let columns = match &*name {
            "find" => command.field("projection").map(included).unwrap_or_default(),
            "findandmodify" => command.field("fields").map(included).unwrap_or_default(),
            "aggregate" => columns_of_pipeline(command.field("pipeline")),
            "count" => vec!["n".into()],
            "listcollections" => vec!["name".into(), "type".into()],
            "listindexes" => vec!["name".into(), "key".into()],
            "distinct" => match command.field("key") {
                Some(Node::Text(key)) => vec![key.as_str().into()],
                _ => vec!["value".into()],
            },
            _ => Vec::new(),
        };
        let control = Control::of(&name, &command, additions)?;
        if control.is_some() {
            add_field(&mut command, "$db", &Node::Text("admin".to_owned()));
        }
        let compiled = |additions: &Additions| {
            let mut command = command.clone();
            add(&mut command, &name, additions);
            let mut compiler = Compiler::default();
            compiler.document(&command);
            compiler.copy_rest();
            (Body { steps: compiler.steps.into(), bytes: compiler.bytes.into() }, compiler.gaps)
        };
        let (body, gaps) = compiled(additions);
        let within = additions.within_a_transaction();
        let within = (within != *additions && control.is_none()).then(|| compiled(&within).0);
        Ok(Template {
            within,
            body,
            gaps,
            is_secret: matches!(&*name, "createuser" | "updateuser" | "saslstart" | "saslcontinue" | "authenticate"),
            control,
            reading,
            effect: effect(&name, &command),
            columns: columns.into(),
        })
    }

    /// How many parameters it has.
    pub(super) fn gaps(&self) -> usize {
        self.gaps
    }

    /// Appends the command, outside of a transaction: see `write_within`.
    pub(super) fn write(
        &self,
        parameters: &[Value<'_>],
        opened: &mut Vec<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        self.write_within(None, parameters, opened, out)
    }

    /// Appends the command. `transaction`: the elements that travel with it in a transaction. `opened` is scratch
    /// space. Fails, leaving an incomplete command in `out`, if a parameter is missing or its value cannot have the
    /// type of its gap. Allocates nothing if `out` and `opened` have room.
    pub(super) fn write_within(
        &self,
        transaction: Option<&[u8]>,
        parameters: &[Value<'_>],
        opened: &mut Vec<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        if parameters.len() != self.gaps {
            let message =
                format!("the statement has {} placeholders, {} parameters were given", self.gaps, parameters.len());
            return Err(StatementError::client(Class::Syntax, message));
        }
        let body = self.within.as_ref().filter(|_| transaction.is_some()).unwrap_or(&self.body);
        let mut values = parameters.iter();
        opened.clear();
        let start = out.len();
        for step in &body.steps {
            match step {
                Step::Copy(range) => out.extend_from_slice(body.slice(range)),
                Step::Open => opened.push(bson::begin(out)),
                Step::Close => bson::end(opened.pop().expect("a document was opened"), out),
                Step::Gap(gap, range) => {
                    let value = values.next().expect("there are as many parameters as gaps");
                    write_value(*value, *gap, body.slice(range), out)?;
                }
            }
        }
        if let Some(elements) = transaction {
            bson::extend(start, elements, out);
        }
        Ok(())
    }
}

impl Body {
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

fn refused_value(message: String, hint: &str) -> StatementError {
    let hint = (!hint.is_empty()).then(|| hint.to_owned());
    StatementError { hint, ..StatementError::client(Class::Syntax, message) }
}

fn refused(message: &str, hint: &str) -> StatementError {
    refused_value(message.to_owned(), hint)
}

/// What would be sent as asked, and answered in a way that this driver does not follow.
fn refuse_unsupported(name: &str, command: &Node) -> Result<(), StatementError> {
    let of_transaction = ["startTransaction", "autocommit", "txnNumber", "lsid"];
    let has = |field: &&str| command.field(field).is_some() && name != field.to_ascii_lowercase();
    if let Some(field) = of_transaction.into_iter().find(has) {
        return Err(refused_value(
            format!("`{field}` is added to the commands of a transaction, and cannot be given"),
            r#"begin the transaction with the statement {"startTransaction": 1}, and end it with {"commitTransaction": 1}"#,
        ));
    }
    if command.field("tailable").is_some_and(|value| !value.is_false()) {
        return Err(refused("tailable cursors are not supported: they have no end", "leave out `tailable`"));
    }
    if let Some(Node::Array(stages)) = command.field("pipeline")
        && stages.first().is_some_and(|stage| stage.field("$changeStream").is_some())
    {
        return Err(refused("change streams are not supported: they have no end", "read the documents themselves"));
    }
    let unacknowledged = |concern: &Node| matches!(concern.field("w"), Some(Node::Int32(0)));
    if command.field("writeConcern").is_some_and(unacknowledged) {
        return Err(refused(UNACKNOWLEDGED, "use {\"w\": 1} or more"));
    }
    Ok(())
}

/// Why a write concern of 0 is refused.
pub(super) const UNACKNOWLEDGED: &str = "w=0 is not supported: without an answer there is no response time to measure";

fn effect(name: &str, command: &Node) -> Effect {
    match name {
        "insert" | "update" | "delete" | "findandmodify" => Effect::ChangesRows,
        "starttransaction" => Effect::Begins,
        "committransaction" => Effect::Commits,
        "find"
        | "count"
        | "distinct"
        | "explain"
        | "ping"
        | "hello"
        | "ismaster"
        | "serverstatus"
        | "buildinfo"
        | "getparameter"
        | "getcmdlineopts"
        | "listcollections"
        | "listindexes"
        | "listdatabases"
        | "collstats"
        | "dbstats"
        | "validate"
        | "currentop"
        | "hostinfo"
        | "connectionstatus"
        | "replsetgetstatus"
        | "getdefaultrwconcern"
        | "aborttransaction" => Effect::Reads,
        "aggregate" => {
            let stages = match command.field("pipeline") {
                Some(Node::Array(stages)) => stages.as_slice(),
                _ => &[],
            };
            let writes = |stage: &Node| stage.field("$out").is_some() || stage.field("$merge").is_some();
            if stages.iter().any(writes) { Effect::Other } else { Effect::Reads }
        }
        _ => Effect::Other,
    }
}

/// The fields that a projection includes, in its order.
fn included(projection: &Node) -> Vec<Box<str>> {
    let Node::Document(fields) = projection else { return Vec::new() };
    // One that only excludes says nothing about what is left.
    fields.iter().filter(|(_, value)| !value.is_false()).map(|(name, _)| name.as_str().into()).collect()
}

/// The fields of the documents that a pipeline returns, if its last stage names them.
fn columns_of_pipeline(pipeline: Option<&Node>) -> Vec<Box<str>> {
    let Some(Node::Array(stages)) = pipeline else { return Vec::new() };
    // These pass documents on as they are.
    let changes = |stage: &&Node| {
        let Node::Document(fields) = stage else { return true };
        !matches!(fields.first(), Some((name, _)) if matches!(&**name, "$sort" | "$limit" | "$skip" | "$match"))
    };
    let Some(Node::Document(stage)) = stages.iter().rev().find(changes) else { return Vec::new() };
    match stage.first() {
        Some((name, Node::Document(fields))) if name == "$group" => {
            fields.iter().map(|(name, _)| name.as_str().into()).collect()
        }
        Some((name, projection)) if name == "$project" => included(projection),
        Some((name, Node::Text(field))) if name == "$count" => vec![field.as_str().into()],
        Some((name, _)) if name == "$sortByCount" => vec!["_id".into(), "count".into()],
        _ => Vec::new(),
    }
}

/// Adds what the command takes and does not have.
fn add(command: &mut Node, name: &str, additions: &Additions) {
    let reads = matches!(name, "find" | "aggregate" | "count" | "distinct");
    let writes = matches!(
        name,
        "insert"
            | "update"
            | "delete"
            | "findandmodify"
            | "create"
            | "createindexes"
            | "drop"
            | "dropindexes"
            | "dropdatabase"
            | "collmod"
            | "renamecollection"
    );
    let mut adds = |field: &str, value: Option<&Node>| {
        if let Some(value) = value {
            add_field(command, field, value);
        }
    };
    if reads {
        adds("readConcern", additions.read_concern.as_ref());
        adds("$readPreference", additions.read_preference.as_ref());
    }
    if writes {
        adds("writeConcern", additions.write_concern.as_ref());
    }
    if name == "aggregate" {
        adds("cursor", Some(&Node::Document(Vec::new())));
    }
    adds("$db", Some(&Node::Text(additions.database.clone())));
}

/// Adds a field, unless there is one of this name.
fn add_field(command: &mut Node, field: &str, value: &Node) {
    let Node::Document(fields) = command else { return };
    if fields.iter().all(|(known, _)| known != field) {
        fields.push((field.to_owned(), value.clone()));
    }
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

/// The templates of prepared statements, each stored once for all connections: thousands of sessions prepare the same
/// dozen texts. Not asked when a statement is executed.
#[derive(Debug, Default)]
pub(super) struct Templates(Mutex<HashMap<Box<[u8]>, Weak<Template>>>);

/// Up to this many are never worth cleaning up.
const FEW: usize = 64;

impl Templates {
    /// That of this text, compiled if no connection has it.
    pub(super) fn get(&self, text: &[u8], additions: &Additions) -> Result<Arc<Template>, StatementError> {
        // What a panicked thread left behind is complete.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = held.get(text).and_then(Weak::upgrade) {
            return Ok(template);
        }
        if held.len() >= FEW {
            held.retain(|_, template| template.strong_count() > 0);
        }
        let template = Arc::new(Template::new(text, additions)?);
        held.insert(text.into(), Arc::downgrade(&template));
        Ok(template)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::bson::Document;
    use crate::protocol::shown;

    fn additions() -> Additions {
        Additions { database: "db".into(), ..Additions::default() }
    }

    /// The command that is sent, as text.
    fn sent(text: &str, parameters: &[Value<'_>]) -> Result<String, StatementError> {
        let (mut out, mut opened) = (Vec::new(), Vec::new());
        Template::new(text.as_bytes(), &additions())?.write(parameters, &mut opened, &mut out)?;
        let (document, rest) = Document::read(&out).unwrap();
        assert!(rest.is_empty() && opened.is_empty());
        let mut shown = Vec::new();
        shown::document(document, &mut shown).unwrap();
        Ok(String::from_utf8(shown).unwrap())
    }

    #[test]
    fn parameters_fill_gaps_at_any_depth() {
        assert_eq!(
            sent(
                r#"{"find": "users", "filter": {"_id": ?, "a": {"$in": [?, 2, ?]}}, "limit": ?, "hint": {"b": 1}}"#,
                &[Value::Text(b"x"), Value::Int(1), Value::Int(1 << 40), Value::Null],
            )
            .unwrap(),
            r#"{"find":"users","filter":{"_id":"x","a":{"$in":[1,2,1099511627776]}},"limit":null,"hint":{"b":1},"$db":"db"}"#
        );
        assert_eq!(
            sent(
                r#"{"insert": "t", "documents": [{"a": {"$oid": ?}, "b": {"$date": ?}, "c": {"$numberLong": ?}, "d": {"$numberDouble": ?}, "e": ?, "f": ?}], "$db": "other"}"#,
                &[
                    Value::Text(b"0123456789abcdef01234567"),
                    Value::Int(1500),
                    Value::Int(1),
                    Value::Int(1),
                    Value::Bytes(b"\0"),
                    Value::Double(0.5)
                ],
            )
            .unwrap(),
            r#"{"insert":"t","documents":[{"a":{"$oid":"0123456789abcdef01234567"},"b":{"$date":"1970-01-01T00:00:01.500Z"},"c":1,"d":1.0,"e":{"$binary":{"base64":"AA==","subType":"00"}},"f":0.5}],"$db":"other"}"#
        );
    }

    #[test]
    fn what_the_url_says_is_added_unless_the_statement_says_otherwise() {
        let concern = |w: i32| Node::Document(vec![("w".into(), Node::Int32(w))]);
        let additions = Additions { write_concern: Some(concern(2)), read_concern: Some(concern(3)), ..additions() };
        let sent = |text: &str| {
            let (mut out, mut opened, mut shown) = (Vec::new(), Vec::new(), Vec::new());
            Template::new(text.as_bytes(), &additions).unwrap().write(&[], &mut opened, &mut out).unwrap();
            shown::document(Document::read(&out).unwrap().0, &mut shown).unwrap();
            String::from_utf8(shown).unwrap()
        };
        assert_eq!(sent(r#"{"drop": "t"}"#), r#"{"drop":"t","writeConcern":{"w":2},"$db":"db"}"#);
        assert_eq!(
            sent(r#"{"drop": "t", "writeConcern": {"w": 1}}"#),
            r#"{"drop":"t","writeConcern":{"w":1},"$db":"db"}"#
        );
        assert_eq!(
            sent(r#"{"aggregate": "t", "pipeline": []}"#),
            r#"{"aggregate":"t","pipeline":[],"readConcern":{"w":3},"cursor":{},"$db":"db"}"#
        );
        assert_eq!(sent(r#"{"ping": 1}"#), r#"{"ping":1,"$db":"db"}"#);
    }

    #[test]
    fn columns_are_those_that_the_command_names() {
        let columns = |text: &str| Template::new(text.as_bytes(), &additions()).unwrap().columns.join(",");
        assert_eq!(columns(r#"{"find": "t"}"#), "");
        assert_eq!(columns(r#"{"find": "t", "projection": {"b": 1, "_id": 0, "a": true}}"#), "b,a");
        assert_eq!(columns(r#"{"find": "t", "projection": {"b": 0}}"#), "");
        assert_eq!(
            columns(r#"{"aggregate": "t", "pipeline": [{"$group": {"_id": null, "n": {"$sum": 1}}}]}"#),
            "_id,n"
        );
        assert_eq!(columns(r#"{"aggregate": "t", "pipeline": [{"$count": "n"}, {"$limit": 1}]}"#), "n");
        assert_eq!(columns(r#"{"aggregate": "t", "pipeline": [{"$project": {"a": "$b"}}]}"#), "a");
        assert_eq!(columns(r#"{"count": "t"}"#), "n");
        assert_eq!(columns(r#"{"listIndexes": "t"}"#), "name,key");
        assert_eq!(columns(r#"{"distinct": "t", "key": "a"}"#), "a");
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        let error = |text: &str, parameters: &[Value<'_>]| sent(text, parameters).unwrap_err().message;
        assert!(error(r#"{"insert": "t", "autocommit": false}"#, &[]).starts_with("`autocommit` is added to"));
        assert!(error(r#"{"insert": "t", "startTransaction": true}"#, &[]).starts_with("`startTransaction` is added"));
        assert_eq!(error(r#"{"startTransaction": 1, "x": 1}"#, &[]), "startTransaction has no field `x`");
        assert_eq!(
            error(r#"{"startTransaction": 1, "readConcern": {"level": ?}}"#, &[]),
            "startTransaction has no parameters: it is not sent"
        );
        assert!(error(r#"{"find": "t", "tailable": true}"#, &[]).starts_with("tailable cursors"));
        assert!(error(r#"{"aggregate": "t", "pipeline": [{"$changeStream": {}}]}"#, &[]).starts_with("change streams"));
        assert!(error(r#"{"insert": "t", "writeConcern": {"w": 0}}"#, &[]).starts_with("w=0 is not supported"));
        assert_eq!(error("{}", &[]), "the command is empty");
        assert_eq!(
            error(r#"{"find": "t", "filter": {"a": ?}}"#, &[]),
            "the statement has 1 placeholders, 0 parameters were given"
        );
        assert_eq!(
            error(r#"{"find": "t", "filter": {"a": {"$oid": ?}}}"#, &[Value::Text(b"x")]),
            "the parameter for `a` is another text, and must be a text of 24 hexadecimal digits"
        );
        assert_eq!(
            error(r#"{"find": "t", "filter": {"a": ?}}"#, &[Value::Text(b"\xff")]),
            "the parameter for `a` is not UTF-8 text"
        );
        assert_eq!(
            error(r#"{"find": "t", "limit": {"$numberInt": ?}}"#, &[Value::Int(1 << 40)]),
            "the parameter for `limit` is an integer, and must be an integer of 32 bits"
        );
    }

    #[test]
    fn what_a_statement_does_is_known_by_its_name() {
        let effect = |text: &str| Template::new(text.as_bytes(), &additions()).unwrap().effect;
        assert_eq!(effect(r#"{"find": "t"}"#), Effect::Reads);
        assert_eq!(effect(r#"{"findAndModify": "t"}"#), Effect::ChangesRows);
        assert_eq!(effect(r#"{"aggregate": "t", "pipeline": [{"$match": {}}]}"#), Effect::Reads);
        assert_eq!(effect(r#"{"aggregate": "t", "pipeline": [{"$out": "u"}]}"#), Effect::Other);
        assert_eq!(effect(r#"{"shutdown": 1}"#), Effect::Other);
    }

    #[test]
    fn a_text_is_held_once() {
        let templates = Templates::default();
        let first = templates.get(br#"{"ping": 1}"#, &additions()).unwrap();
        assert!(Arc::ptr_eq(&first, &templates.get(br#"{"ping": 1}"#, &additions()).unwrap()));
        for n in 0..1000 {
            templates.get(format!("{{\"ping\": {n}}}").as_bytes(), &additions()).unwrap();
        }
        assert!(templates.0.lock().unwrap().len() <= FEW + 1);
    }
}
