//! The JSON Schema of recipes, for editors, generated from the types that parse them.
//!
//! A recipe's types are read from a deserializer that has no text: it returns whatever they request, and records the
//! requests. So the schema cannot disagree with the parser.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// The requests are recorded here.
struct Probe<'a>(&'a RefCell<Value>);

/// The schema of what `read` parses.
pub(crate) fn schema_of<T>(read: impl FnOnce(&RefCell<Value>) -> Result<T, Error>) -> Value {
    let found = RefCell::new(json!({}));
    read(&found).map(drop).expect("everything that the types ask for is handed out");
    found.into_inner()
}

pub(crate) fn probe<'de, T: serde::Deserialize<'de>>(found: &RefCell<Value>) -> Result<T, Error> {
    T::deserialize(Probe(found))
}

/// What a visitor says it expects: the only name that types with several forms have here.
struct Wanted<'a>(&'a dyn Expected);

impl fmt::Display for Wanted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! scalar {
    ($($method:ident $visit:ident $value:expr, $kind:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            *self.0.borrow_mut() = $kind;
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    scalar! {
        deserialize_bool visit_bool true, json!({ "type": "boolean" });
        deserialize_i8 visit_i8 1, json!({ "type": "integer" });
        deserialize_i16 visit_i16 1, json!({ "type": "integer" });
        deserialize_i32 visit_i32 1, json!({ "type": "integer" });
        deserialize_i64 visit_i64 1, json!({ "type": "integer" });
        deserialize_u8 visit_u8 1, json!({ "type": "integer", "minimum": 0 });
        deserialize_u16 visit_u16 1, json!({ "type": "integer", "minimum": 0 });
        deserialize_u32 visit_u32 1, json!({ "type": "integer", "minimum": 0 });
        deserialize_u64 visit_u64 1, json!({ "type": "integer", "minimum": 0 });
        deserialize_f32 visit_f32 1.0, json!({ "type": "number" });
        deserialize_f64 visit_f64 1.0, json!({ "type": "number" });
        deserialize_char visit_char 'x', json!({ "type": "string" });
        deserialize_str visit_str "x", json!({ "type": "string" });
        deserialize_string visit_str "x", json!({ "type": "string" });
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let expected = Wanted(&visitor).to_string();
        let scalar = json!({ "type": ["string", "number", "boolean"] });
        *self.0.borrow_mut() = match expected.as_str() {
            "text, a number, true or false" => scalar,
            "one value, or a list of them" => json!({ "anyOf": [scalar, { "type": "array", "items": scalar }] }),
            _ => json!({}),
        };
        visitor.visit_str("x")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let item = RefCell::new(json!({}));
        let value = visitor.visit_seq(Items { item: &item, left: 1 });
        *self.0.borrow_mut() = json!({ "type": "array", "items": item.into_inner() });
        value
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let fields = RefCell::new(Map::new());
        let value = visitor.visit_map(Fields { names: &["x"], found: &fields });
        let of_values = fields.into_inner().remove("x").unwrap_or(json!({}));
        *self.0.borrow_mut() = json!({ "type": "object", "additionalProperties": of_values });
        value
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let fields = RefCell::new(Map::new());
        let value = visitor.visit_map(Fields { names, found: &fields });
        *self.0.borrow_mut() =
            json!({ "type": "object", "properties": fields.into_inner(), "additionalProperties": false });
        value
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0.borrow_mut() = json!({ "enum": variants });
        visitor.visit_enum(variants[0].into_deserializer())
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    serde::forward_to_deserialize_any! { i128 u128 bytes byte_buf unit unit_struct ignored_any }
}

/// A list with one item.
struct Items<'a> {
    item: &'a RefCell<Value>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(Probe(self.item)).map(Some)
    }
}

/// Every field once.
struct Fields<'a> {
    names: &'a [&'static str],
    found: &'a RefCell<Map<String, Value>>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.names.first() else { return Ok(None) };
        let name: StrDeserializer<'_, Error> = (*name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let value = RefCell::new(json!({}));
        let read = seed.deserialize(Probe(&value))?;
        self.found.borrow_mut().insert(self.names[0].to_owned(), value.into_inner());
        self.names = &self.names[1..];
        Ok(read)
    }
}
