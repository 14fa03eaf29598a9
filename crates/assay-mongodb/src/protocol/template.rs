//! A statement as a BSON command with gaps: compiled once, filled and sent for each execution.
//!
//! What the URL says about concerns and preference is added here to the commands that take it, unless the statement
//! says otherwise.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use assay_seam::{Effect, StatementError, Value};

use crate::protocol::additions::{Additions, add, add_field};
use crate::protocol::body::{Body, refused_value};
use crate::protocol::bson;
use crate::protocol::json::{self, Node};
use crate::protocol::transaction::Control;

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
    /// It holds a password: not compressed, as MongoDB wants it.
    pub(super) is_secret: bool,
    /// What it does to the transaction.
    pub(super) control: Option<Control>,
    pub(super) reading: Reading,
    pub(super) effect: Effect,
    /// Fields that become columns; empty: a row has the document as text.
    pub(super) columns: Box<[Box<str>]>,
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
            Body::new(&command)
        };
        let within = additions.within_a_transaction();
        let within = (within != *additions && control.is_none()).then(|| compiled(&within));
        Ok(Template {
            within,
            body: compiled(additions),
            is_secret: matches!(&*name, "createuser" | "updateuser" | "saslstart" | "saslcontinue" | "authenticate"),
            control,
            reading,
            effect: effect(&name, &command),
            columns: columns.into(),
        })
    }

    /// How many parameters it has.
    pub(super) fn gaps(&self) -> usize {
        self.body.gaps()
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

    /// Appends the command, as `Body::write` does. `transaction`: the elements that travel with it in a transaction.
    pub(super) fn write_within(
        &self,
        transaction: Option<&[u8]>,
        parameters: &[Value<'_>],
        opened: &mut Vec<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), StatementError> {
        let body = self.within.as_ref().filter(|_| transaction.is_some()).unwrap_or(&self.body);
        let start = out.len();
        body.write(parameters, opened, out)?;
        if let Some(elements) = transaction {
            bson::extend(start, elements, out);
        }
        Ok(())
    }
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
