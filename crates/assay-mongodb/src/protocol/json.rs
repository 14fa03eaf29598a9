//! Reads a statement: a document in MongoDB's extended JSON (version 2) with `?` for parameters.
//!
//! The order of fields is kept: the first names the command. Numbers without a fraction are integers of 32 bits if they
//! fit, else of 64; with a fraction or an exponent they are doubles. Source: MongoDB Extended JSON v2, "Type
//! Representations".

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use assay_seam::{Class, StatementError};

/// Documents within documents of a statement.
const DEPTH_MAX: usize = 100;

/// A part of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Document(Vec<(String, Node)>),
    Array(Vec<Node>),
    /// A parameter.
    Gap(Gap),
    Double(f64),
    Int32(i32),
    Int64(i64),
    Text(String),
    Bool(bool),
    Null,
    ObjectId([u8; 12]),
    /// Milliseconds since 1970.
    Date(i64),
    Binary {
        subtype: u8,
        bytes: Vec<u8>,
    },
    Timestamp {
        seconds: u32,
        increment: u32,
    },
    Regex {
        pattern: String,
        options: String,
    },
    MinKey,
    MaxKey,
}

/// The type that a parameter's value becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// That of the value.
    Plain,
    /// `{"$oid": ?}`
    ObjectId,
    /// `{"$date": ?}`
    Date,
    /// `{"$numberInt": ?}`
    Int32,
    /// `{"$numberLong": ?}`
    Int64,
    /// `{"$numberDouble": ?}`
    Double,
}

impl Node {
    /// A field of a document.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        match self {
            Node::Document(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Whether a field is set to 0 or false; anything else includes it.
    pub(super) fn is_false(&self) -> bool {
        matches!(self, Node::Bool(false) | Node::Int32(0) | Node::Int64(0)) || *self == Node::Double(0.0)
    }
}

/// Reads a whole statement. An error has the position of what is wrong.
pub(super) fn parse(text: &[u8]) -> Result<Node, StatementError> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let start = std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default();
        syntax("the statement is not UTF-8 text".into(), start.chars().count())
    })?;
    let mut reader = Reader { text, at: 0 };
    reader.space();
    if !reader.rest().starts_with('{') {
        let start: String = reader.rest().chars().take(20).collect();
        let mut error =
            syntax(format!("a statement for MongoDB is a command in JSON, and this begins with `{start}`"), 0);
        error.hint = Some(r#"such as {"find": "users", "filter": {"_id": ?}}; see docs/mongodb.md"#.into());
        return Err(error);
    }
    let node = reader.value(0)?;
    reader.space();
    if !reader.rest().is_empty() {
        return Err(reader.wrong("the end of the statement: one statement is one command"));
    }
    Ok(node)
}

fn syntax(message: String, before: usize) -> StatementError {
    StatementError { position: before as u32 + 1, ..StatementError::client(Class::Syntax, message) }
}

struct Reader<'a> {
    text: &'a str,
    /// A character begins here, or it is the end.
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn wrong(&self, expected: &str) -> StatementError {
        self.wrong_at(self.at, expected)
    }

    fn wrong_at(&self, at: usize, expected: &str) -> StatementError {
        let before = self.text[..at].chars().count();
        let found: String = self.text[at..].chars().take(20).collect();
        let found = if found.is_empty() { "the text ends".into() } else { format!("found `{found}`") };
        syntax(
            format!("the command is not extended JSON: expected {expected} at character {}, {found}", before + 1),
            before,
        )
    }

    /// Skips space and this character, if it is next.
    fn takes(&mut self, letter: char) -> bool {
        self.space();
        let found = self.rest().starts_with(letter);
        self.at += if found { letter.len_utf8() } else { 0 };
        found
    }

    fn value(&mut self, depth: usize) -> Result<Node, StatementError> {
        self.space();
        if depth > DEPTH_MAX {
            return Err(self.wrong("at most 100 documents within each other"));
        }
        let rest = self.rest();
        for (word, node) in [("true", Node::Bool(true)), ("false", Node::Bool(false)), ("null", Node::Null)] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(node);
            }
        }
        match rest.bytes().next() {
            Some(b'{') => self.document(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Node::Text),
            Some(b'?') => {
                self.at += 1;
                Ok(Node::Gap(Gap::Plain))
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.wrong("a value")),
        }
    }

    fn document(&mut self, depth: usize) -> Result<Node, StatementError> {
        let start = self.at;
        self.at += 1;
        let mut fields = Vec::new();
        if !self.takes('}') {
            loop {
                self.space();
                let key_at = self.at;
                if !self.rest().starts_with('"') {
                    return Err(self.wrong("a field's name in double quotes"));
                }
                let key = self.string()?;
                if key.contains('\0') {
                    return Err(self.wrong_at(key_at, "a field's name without a NUL character"));
                }
                if !self.takes(':') {
                    return Err(self.wrong("`:`"));
                }
                fields.push((key, self.value(depth + 1)?));
                if self.takes('}') {
                    break;
                }
                if !self.takes(',') {
                    return Err(self.wrong("`,` or `}`"));
                }
            }
        }
        match typed(&fields) {
            Ok(None) => Ok(Node::Document(fields)),
            Ok(Some(node)) => Ok(node),
            Err(expected) => Err(self.wrong_at(start, &expected)),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Node, StatementError> {
        self.at += 1;
        let mut items = Vec::new();
        if self.takes(']') {
            return Ok(Node::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.takes(']') {
                return Ok(Node::Array(items));
            }
            if !self.takes(',') {
                return Err(self.wrong("`,` or `]`"));
            }
        }
    }

    fn number(&mut self) -> Result<Node, StatementError> {
        let end = self.rest().find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let text = &self.rest()[..end.unwrap_or(self.rest().len())];
        let node = match text.contains(['.', 'e', 'E']) {
            true => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Node::Double),
            false => text.parse::<i64>().ok().map(integer),
        };
        let node = node.ok_or_else(|| self.wrong("a number of 64 bits"))?;
        self.at += text.len();
        Ok(node)
    }

    /// The text in double quotes that begins here.
    fn string(&mut self) -> Result<String, StatementError> {
        let start = self.at;
        self.at += 1;
        let mut string = String::new();
        loop {
            let mut letters = self.rest().chars();
            let letter = letters.next().ok_or_else(|| self.wrong_at(start, "a text that ends with `\"`"))?;
            self.at += letter.len_utf8();
            match letter {
                '"' => return Ok(string),
                '\\' => string.push(self.escaped()?),
                '\0'..='\x1F' => return Err(self.wrong_at(self.at - 1, "no control character in a text")),
                letter => string.push(letter),
            }
        }
    }

    /// After a backslash.
    fn escaped(&mut self) -> Result<char, StatementError> {
        let escape = self.at - 1;
        let letter = self.rest().chars().next();
        self.at += letter.map_or(0, char::len_utf8);
        Ok(match letter {
            Some(letter @ ('"' | '\\' | '/')) => letter,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let wrong = |this: &Self| this.wrong_at(escape, "an escape sequence of JSON");
                let first = self.four_digits().ok_or_else(|| wrong(self))?;
                let code = match first {
                    0xD800..=0xDBFF if self.rest().starts_with("\\u") => {
                        self.at += 2;
                        let second = self.four_digits().filter(|second| (0xDC00..=0xDFFF).contains(second));
                        let second = second.ok_or_else(|| wrong(self))?;
                        0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                    }
                    first => first,
                };
                char::from_u32(code).ok_or_else(|| wrong(self))?
            }
            _ => return Err(self.wrong_at(escape, "an escape sequence of JSON")),
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(code)
    }
}

fn integer(value: i64) -> Node {
    i32::try_from(value).map_or(Node::Int64(value), Node::Int32)
}

/// The value of a document that stands for a type of its own, such as `{"$oid": "…"}`; `None` for any other document.
/// An error says what was expected instead.
fn typed(fields: &[(String, Node)]) -> Result<Option<Node>, String> {
    let [(key, value)] = fields else { return Ok(None) };
    let of_text = |wanted: &str| match value {
        Node::Text(text) => Ok(text.as_str()),
        _ => Err(format!("{wanted} after \"{key}\"")),
    };
    let gap = |kind| (*value == Node::Gap(Gap::Plain)).then_some(Ok(Some(Node::Gap(kind))));
    let node = match key.as_str() {
        "$oid" => {
            if let Some(gap) = gap(Gap::ObjectId) {
                return gap;
            }
            let wanted = "24 hexadecimal digits";
            Node::ObjectId(object_id(of_text(wanted)?.as_bytes()).ok_or_else(|| format!("{wanted} after \"$oid\""))?)
        }
        "$date" => {
            if let Some(gap) = gap(Gap::Date) {
                return gap;
            }
            match value {
                Node::Int32(millis) => Node::Date((*millis).into()),
                Node::Int64(millis) => Node::Date(*millis),
                _ => {
                    let wanted = "a time such as \"2026-01-31T10:00:00.000Z\", or milliseconds since 1970,";
                    let of = |text: &str| humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok();
                    let since: Duration = of(of_text(wanted)?).ok_or_else(|| format!("{wanted} after \"$date\""))?;
                    Node::Date(since.as_millis() as i64)
                }
            }
        }
        "$numberInt" => match gap(Gap::Int32) {
            Some(gap) => return gap,
            None => Node::Int32(number(of_text("a number in quotes")?)?),
        },
        "$numberLong" => match gap(Gap::Int64) {
            Some(gap) => return gap,
            None => Node::Int64(number(of_text("a number in quotes")?)?),
        },
        "$numberDouble" => match gap(Gap::Double) {
            Some(gap) => return gap,
            None => Node::Double(match of_text("a number in quotes")? {
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                "NaN" => f64::NAN,
                text => number(text)?,
            }),
        },
        "$numberDecimal" => return Err("another type: $numberDecimal is not supported in statements".into()),
        "$binary" => {
            let part = |name| match value.field(name) {
                Some(Node::Text(text)) => Some(text.as_str()),
                _ => None,
            };
            let subtype = part("subType").and_then(|text| u8::from_str_radix(text, 16).ok());
            let bytes = part("base64").and_then(|text| STANDARD.decode(text).ok());
            let both = subtype.zip(bytes);
            let wanted = || "{\"base64\": \"…\", \"subType\": \"00\"} after \"$binary\"".to_owned();
            let (subtype, bytes) = both.ok_or_else(wanted)?;
            Node::Binary { subtype, bytes }
        }
        "$timestamp" => {
            let part = |name| match value.field(name) {
                Some(Node::Int32(number)) => u32::try_from(*number).ok(),
                Some(Node::Int64(number)) => u32::try_from(*number).ok(),
                _ => None,
            };
            let both = part("t").zip(part("i"));
            let wanted = || "{\"t\": seconds, \"i\": increment} after \"$timestamp\"".to_owned();
            let (seconds, increment) = both.ok_or_else(wanted)?;
            Node::Timestamp { seconds, increment }
        }
        "$regularExpression" => match (value.field("pattern"), value.field("options")) {
            (Some(Node::Text(pattern)), Some(Node::Text(options)))
                if !pattern.contains('\0') && !options.contains('\0') =>
            {
                Node::Regex { pattern: pattern.clone(), options: options.clone() }
            }
            _ => return Err("{\"pattern\": \"…\", \"options\": \"\"} after \"$regularExpression\"".into()),
        },
        "$minKey" => Node::MinKey,
        "$maxKey" => Node::MaxKey,
        _ => return Ok(None),
    };
    Ok(Some(node))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("a number of this type instead of \"{text}\""))
}

/// Twelve bytes in hexadecimal digits.
pub(super) fn object_id(text: &[u8]) -> Option<[u8; 12]> {
    let digits: &[u8; 24] = text.try_into().ok()?;
    let mut id = [0; 12];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |letter: u8| char::from(letter).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Node) {
        let found = parse(format!("{{\"a\": {text}}}").as_bytes()).unwrap();
        assert_eq!(found, Node::Document(vec![("a".into(), expected)]), "{text}");
    }

    #[test]
    fn values_have_the_types_of_extended_json() {
        check("1", Node::Int32(1));
        check("-2147483649", Node::Int64(-2_147_483_649));
        check("1.0", Node::Double(1.0));
        check("1e3", Node::Double(1000.0));
        check(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é""#, Node::Text("a\"\\/\u{8}\u{c}\n\r\té😀é".into()));
        check("[true, false , null,?]", {
            Node::Array(vec![Node::Bool(true), Node::Bool(false), Node::Null, Node::Gap(Gap::Plain)])
        });
        check(r#"{"$oid": "0123456789abcdefABCDEF00"}"#, {
            Node::ObjectId([0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0xAB, 0xCD, 0xEF, 0])
        });
        check(r#"{"$oid": ?}"#, Node::Gap(Gap::ObjectId));
        check(r#"{"$date": "1970-01-01T00:00:01.5Z"}"#, Node::Date(1500));
        check(r#"{"$date": {"$numberLong": "-1"}}"#, Node::Date(-1));
        check(r#"{"$numberLong": "7"}"#, Node::Int64(7));
        check(r#"{"$numberDouble": "-Infinity"}"#, Node::Double(f64::NEG_INFINITY));
        check(r#"{"$binary": {"base64": "AQI=", "subType": "0"}}"#, Node::Binary { subtype: 0, bytes: vec![1, 2] });
        check(r#"{"$timestamp": {"t": 4294967295, "i": 2}}"#, Node::Timestamp { seconds: u32::MAX, increment: 2 });
        check(r#"{"$regularExpression": {"pattern": "^a", "options": "i"}}"#, {
            Node::Regex { pattern: "^a".into(), options: "i".into() }
        });
        check(r#"{"$minKey": 1}"#, Node::MinKey);
        check(r#"{"$gte": 1}"#, Node::Document(vec![("$gte".into(), Node::Int32(1))]));
        check("{}", Node::Document(vec![]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, position, message) in [
            ("SELECT 1", 1, "a statement for MongoDB is a command in JSON, and this begins with `SELECT 1`"),
            ("", 1, "a statement for MongoDB is a command in JSON, and this begins with ``"),
            ("{\"é\": 1 2}", 9, "the command is not extended JSON: expected `,` or `}` at character 9, found `2}`"),
            (
                "{a: 1}",
                2,
                "the command is not extended JSON: expected a field's name in double quotes at character 2, found `a: 1}`",
            ),
            ("{\"a\": ", 7, "the command is not extended JSON: expected a value at character 7, the text ends"),
            (
                "{\"a\": \"x",
                7,
                "the command is not extended JSON: expected a text that ends with `\"` at character 7, found `\"x`",
            ),
            (
                "{\"a\": {\"$oid\": \"1\"}}",
                7,
                "the command is not extended JSON: expected 24 hexadecimal digits after \"$oid\" at character 7, found `{\"$oid\": \"1\"}}`",
            ),
            (
                "{} {}",
                4,
                "the command is not extended JSON: expected the end of the statement: one statement is one command at character 4, found `{}`",
            ),
            (
                "{\"a\": 99999999999999999999}",
                7,
                "the command is not extended JSON: expected a number of 64 bits at character 7, found `99999999999999999999`",
            ),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.message.as_str(), error.position), (message, position), "{text}");
        }
        assert!(parse(b"{\"\xff\": 1}").unwrap_err().message.contains("not UTF-8"));
        let deep = "{\"a\":".repeat(200);
        assert!(parse(deep.as_bytes()).unwrap_err().message.contains("at most 100"));
    }
}
