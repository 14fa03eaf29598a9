//! Values in a recipe that are one word or several, in any notation.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Text, or a number or boolean as text: settings and options are spelled as their server or workload wants them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Word(pub String);

/// One word or a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Words(pub Vec<String>);

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct WordVisitor;

impl Visitor<'_> for WordVisitor {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, true or false")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word, E> {
        Ok(Word(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Word, E> {
        Ok(Word(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Word, E> {
        Ok(Word(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Word, E> {
        Ok(Word(value.to_string()))
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Word, E> {
        Ok(Word(if on { "on" } else { "off" }.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        deserializer.deserialize_any(WordVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words(vec![text.to_owned()]))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Words, E> {
        Ok(Words(vec![value.to_string()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Words, A::Error> {
        let mut words = Vec::new();
        while let Some(Word(word)) = items.next_element()? {
            words.push(word);
        }
        Ok(Words(words))
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

impl JsonSchema for Word {
    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl JsonSchema for Words {
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<Word>();
        json_schema!({ "anyOf": [word, { "type": "array", "items": word }] })
    }
}
