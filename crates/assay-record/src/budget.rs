//! Reads JSON into values of at most so many bytes.
//!
//! A text of a few kilobytes can stand for gigabytes: `[{},{},…]` where each `{}` becomes a value with many fields. So
//! what a record becomes is counted while it is made: the size of each item of a list or map, each text, and
//! each histogram, which is deflated in the text.

use std::cell::Cell;
use std::fmt;

use assay_measure::inflated_bytes;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// Bytes that the values of a record may still need.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u64>,
    /// `inflated_bytes` before.
    inflated: u64,
    is_exceeded: Cell<bool>,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Budget {
        Budget { left: Cell::new(bytes), inflated: inflated_bytes(), is_exceeded: Cell::new(false) }
    }

    /// Whether a value was given up because it would have needed more.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Reads a value, and takes what it needs from the budget.
    pub(crate) fn read<T: DeserializeOwned>(&self, json: &[u8]) -> serde_json::Result<T> {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let value = T::deserialize(Counted { inner: &mut reader, budget: self })?;
        reader.end().map(|()| value)
    }

    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        match self.left.get().checked_sub(bytes as u64) {
            Some(left) if left >= inflated_bytes().wrapping_sub(self.inflated) => {
                self.left.set(left);
                Ok(())
            }
            _ => {
                self.is_exceeded.set(true);
                Err(E::custom("it needs more memory than a record of its size may"))
            }
        }
    }
}

/// A deserializer, visitor, seed or access, with the budget.
struct Counted<'b, T> {
    inner: T,
    budget: &'b Budget,
}

impl<'b, T> Counted<'b, T> {
    fn with<U>(&self, inner: U) -> Counted<'b, U> {
        Counted { inner, budget: self.budget }
    }
}

macro_rules! forward {
    ($($name:ident)*) => {
        $(fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$name(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Counted<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_tuple(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_tuple_struct(name, length, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_enum(name, variants, visitor)
    }
}

macro_rules! visit {
    ($($name:ident: $type:ty;)*) => {
        $(fn $name<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$name(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Counted<'_, V> {
    type Value = V::Value;

    visit! {
        visit_bool: bool;
        visit_i64: i64;
        visit_i128: i128;
        visit_u64: u64;
        visit_u128: u128;
        visit_f64: f64;
        visit_char: char;
    }

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.budget.take(text.len())?;
        self.inner.visit_str(text)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.budget.take(text.len())?;
        self.inner.visit_borrowed_str(text)
    }

    fn visit_string<E: Error>(self, text: String) -> Result<V::Value, E> {
        self.budget.take(text.len())?;
        self.inner.visit_string(text)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.visit_some(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.visit_newtype_struct(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let inner = self.with(inner);
        self.inner.visit_seq(inner)
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let inner = self.with(inner);
        self.inner.visit_map(inner)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let inner = self.with(inner);
        self.inner.visit_enum(inner)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Counted<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.deserialize(inner)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.budget.take(size_of::<S::Value>())?;
        let seed = self.with(seed);
        self.inner.next_element_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.budget.take(size_of::<S::Value>())?;
        let seed = self.with(seed);
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.budget.take(size_of::<S::Value>())?;
        let seed = self.with(seed);
        self.inner.next_value_seed(seed)
    }
}

impl<'de, 'b, A: EnumAccess<'de>> EnumAccess<'de> for Counted<'b, A> {
    type Error = A::Error;
    type Variant = Counted<'b, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let budget = self.budget;
        let (value, inner) = self.inner.variant_seed(Counted { inner: seed, budget })?;
        Ok((value, Counted { inner, budget }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        // An event is moved into a list.
        self.budget.take(size_of::<S::Value>())?;
        let seed = self.with(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.tuple_variant(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_a_text_becomes_is_counted_and_not_the_text() {
        let read = |json: &str, bytes: u64| {
            let budget = Budget::new(bytes);
            let read = budget.read::<Vec<[Option<u64>; 2]>>(json.as_bytes());
            (read.is_ok(), budget.is_exceeded())
        };
        let items = format!("[{}[null,1]]", "[null,null],".repeat(999));
        assert_eq!(read(&items, 64 << 10), (true, false));
        assert_eq!(read(&items, 31 << 10), (false, true));
        assert_eq!(read("[1]", 64 << 10), (false, false));
        assert_eq!(read("[[1,2]] x", 64 << 10), (false, false));
        let budget = Budget::new(1000);
        let map: BTreeMap<String, Option<f64>> = budget.read(br#"{"a":1.5,"b":null}"#).unwrap();
        assert_eq!(map, BTreeMap::from([("a".to_owned(), Some(1.5)), ("b".to_owned(), None)]));
        assert!(budget.read::<String>(format!("\"{}\"", "x".repeat(1000)).as_bytes()).is_err() && budget.is_exceeded());
    }
}
