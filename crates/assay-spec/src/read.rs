//! Reads and writes values of a spec: whatever a command line understands as text is understood here, too.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

use assay_seam::Nanos;

use crate::{Wrong, values};

/// Reads a spec from its text.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    let value =
        serde_json::from_str(text).map_err(|error| Wrong::value("", "", &format!("not a spec in JSON: {error}")))?;
    from_value(&value)
}

/// Reads a spec from parsed JSON. A wrong value is reported with its path.
pub(crate) fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Wrong> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let reason = error.into_inner().to_string();
        // A value that could be read says what it is: `soon: expected a duration`.
        match (path.is_empty(), reason.split_once(": ")) {
            (false, Some((value, reason))) => Wrong::value(path, value, reason),
            _ => Wrong::value(path, "", &reason),
        }
    })
}

/// A single value in any notation.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, a number, true or false")]
enum Scalar {
    Switch(bool),
    Count(u64),
    Integer(i64),
    Number(f64),
    Text(String),
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Scalar::Switch(on) => if on { "on" } else { "off" }.to_owned(),
            Scalar::Count(value) => value.to_string(),
            Scalar::Integer(value) => value.to_string(),
            Scalar::Number(value) => value.to_string(),
            Scalar::Text(text) => text,
        }
    }
}

/// One value, or a list.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a value or a list")]
enum Scalars {
    One(Scalar),
    Many(Vec<Scalar>),
}

pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Scalar::deserialize(deserializer).map(Scalar::text)
}

/// A list, or one text, which is split at commas.
pub(crate) fn separated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match Scalars::deserialize(deserializer)? {
        Scalars::One(one) => one.text().split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect(),
        Scalars::Many(all) => all.into_iter().map(Scalar::text).collect(),
    })
}

/// A list, or its only item.
pub(crate) fn each<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(match Scalars::deserialize(deserializer)? {
        Scalars::One(one) => vec![one.text().into()],
        Scalars::Many(all) => all.into_iter().map(|one| one.text().into()).collect(),
    })
}

/// Whole numbers: a list, or one text, which is split at commas.
pub(crate) fn counts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    let count = |text: String| any_count(&text).map_err(|reason| D::Error::custom(format!("{text}: {reason}")));
    separated(deserializer)?.into_iter().map(count).collect()
}

/// Parses a value whose text `parse` understands. The error names the value.
pub(crate) fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    let text = text(deserializer)?;
    parse(&text).map_err(|reason| D::Error::custom(format!("{text}: {reason}")))
}

fn parsed_if_given<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let Some(scalar) = Option::<Scalar>::deserialize(deserializer)? else { return Ok(None) };
    let text = scalar.text();
    parse(&text).map(Some).map_err(|reason| D::Error::custom(format!("{text}: {reason}")))
}

/// A whole number of up to 64 bits.
pub(crate) fn any_count(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| values::count(text, 0))
}

macro_rules! readers {
    ($read:ident: $($name:ident: $type:ty = $parse:expr;)*) => {
        $(pub(crate) fn $name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
            $read(deserializer, $parse)
        })*
    };
}

readers! {
    parsed:
    count: u64 = any_count;
    at_least_one: u64 = |text| values::count(text, 1);
    number: f64 = values::number;
    switch: bool = values::switch;
    duration: Nanos = values::duration;
    size: u64 = values::size;
}

/// The same for values that may be absent.
pub(crate) mod optional {
    use super::*;

    readers! {
        parsed_if_given:
        count: Option<u64> = any_count;
        at_least_one: Option<u64> = |text| values::count(text, 1);
        sessions: Option<u32> = values::sessions;
        positive: Option<f64> = values::positive;
        not_negative: Option<f64> = values::not_negative;
        duration: Option<Nanos> = values::duration;
        size: Option<u64> = values::size;
    }
}

pub(crate) fn write_duration<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&values::exact_duration(*time))
}

pub(crate) fn write_optional_duration<S: Serializer>(time: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => write_duration(time, serializer),
        None => serializer.serialize_none(),
    }
}
