//! What a workload declares at its top level (options and commands), and the values of its options.
//!
//! Code that parses a command line, runs a script or reports options needs these types, but neither LuaJIT nor a
//! database. Typing follows sysbench: a default's Lua type decides, or an explicit `sysbench.cmdline.ARG_*`. Parsing is
//! more generous in one point: any number may have a size suffix (`--table-size=1M`).

#![forbid(unsafe_code)]

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An entry of `sysbench.cmdline.options`.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionDeclaration {
    /// As declared; `-` and `_` mean the same. `key` is the canonical form.
    pub name: String,
    /// The help text.
    pub description: String,
    /// How values are read.
    pub kind: OptionKind,
    /// The values that a text may have; empty: any.
    pub choices: Vec<String>,
    /// Accepted, because the workload shares its options with others, but it does nothing here.
    pub unused: bool,
    /// The numbers that a user may give.
    pub bounds: Bounds,
    /// What the script sees if the user does not set it: the declared default, else an empty text, 0 or an empty list.
    pub default: OptionValue,
}

/// The numbers that a user may give to an option.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Only whole numbers.
    pub whole: bool,
    /// The smallest.
    pub low: Option<f64>,
    /// The largest.
    pub high: Option<f64>,
}

impl Bounds {
    /// What is wrong with a number; `None`: it is within the bounds.
    pub fn refuse(self, value: f64) -> Option<String> {
        if self.whole && value.fract() != 0.0 {
            return Some("expected a whole number, such as 250, 10k or 1M".to_owned());
        }
        let is_within = self.low.is_none_or(|low| value >= low) && self.high.is_none_or(|high| value <= high);
        (!is_within).then(|| match (self.low, self.high) {
            (Some(low), Some(high)) => format!("must be from {low} to {high}"),
            (Some(low), None) => format!("must be at least {low}"),
            (None, high) => format!("must be at most {}", high.unwrap_or(f64::INFINITY)),
        })
    }
}

/// How an option's text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// No value, `on`, `true`, `1`; `off`, `false`, `0`.
    Bool,
    /// A whole number of 32 bits.
    Int,
    /// A number.
    Double,
    /// Bytes.
    Size,
    /// Anything.
    Text,
    /// Comma-separated.
    List,
    /// The name of a file of options; the script does not see it.
    File,
}

/// A value as scripts see it in `sysbench.opt`.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum OptionValue {
    /// `nil`.
    #[default]
    None,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array of strings.
    List(Vec<String>),
}

impl Serialize for OptionValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OptionValue::None => serializer.serialize_none(),
            OptionValue::Bool(on) => serializer.serialize_bool(*on),
            OptionValue::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                serializer.serialize_i64(*value as i64)
            }
            OptionValue::Number(value) if value.is_finite() => serializer.serialize_f64(*value),
            // JSON has no infinity.
            OptionValue::Number(value) => serializer.collect_str(value),
            OptionValue::Text(text) => serializer.serialize_str(text),
            OptionValue::List(items) => serializer.collect_seq(items),
        }
    }
}

impl<'de> Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OptionValue, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

/// Reads any value; whether it is of an option's kind is for its reader to say.
struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = OptionValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, true, false, or a list of texts")
    }

    fn visit_unit<E: Error>(self) -> Result<OptionValue, E> {
        Ok(OptionValue::None)
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<OptionValue, E> {
        Ok(OptionValue::Bool(on))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<OptionValue, E> {
        Ok(OptionValue::Number(value as f64))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<OptionValue, E> {
        Ok(OptionValue::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<OptionValue, E> {
        Ok(OptionValue::Number(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OptionValue, E> {
        Ok(OptionValue::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OptionValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(OptionValue::List(list))
    }
}

/// An entry of `sysbench.cmdline.commands` that holds a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandDeclaration {
    /// As on the command line.
    pub name: String,
    /// Runs in every session (`sysbench.cmdline.PARALLEL_COMMAND`); else in one.
    pub parallel: bool,
}

/// A text that is not a value of its option's kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct InvalidValue {
    /// The given text.
    pub text: String,
    /// What would be valid: "a whole number", …
    pub wanted: &'static str,
}

impl OptionDeclaration {
    /// The name with `_` for `-`: the key in `sysbench.opt`.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Whether a text is one of the choices. An empty one clears the option.
    pub fn allows(&self, text: &str) -> bool {
        text.is_empty() || self.choices.is_empty() || self.choices.iter().any(|choice| choice == text)
    }
}

impl OptionKind {
    /// Parses the value of `--name=text`, or of a bare `--name` if `text` is `None`. An empty text clears the option:
    /// 0, "" or an empty list.
    pub fn parse(self, text: Option<&str>) -> Result<OptionValue, InvalidValue> {
        let wanted = |wanted| InvalidValue { text: text.unwrap_or_default().to_owned(), wanted };
        let given = text.unwrap_or_default();
        match self {
            OptionKind::Bool => match text {
                None | Some("on" | "true" | "1") => Ok(OptionValue::Bool(true)),
                Some("off" | "false" | "0") => Ok(OptionValue::Bool(false)),
                Some(_) => Err(wanted("`on` or `off`")),
            },
            OptionKind::Text => Ok(OptionValue::Text(given.to_owned())),
            OptionKind::File => Ok(OptionValue::None),
            OptionKind::List => {
                Ok(OptionValue::List(given.split(',').map(str::to_owned).filter(|item| !item.is_empty()).collect()))
            }
            OptionKind::Int | OptionKind::Double | OptionKind::Size if given.is_empty() => Ok(OptionValue::Number(0.0)),
            OptionKind::Int => match number(given) {
                Some(value) if value.fract() == 0.0 && i32::try_from(value as i64).is_ok() => {
                    Ok(OptionValue::Number(value))
                }
                _ => Err(wanted("a whole number of at most 32 bits")),
            },
            OptionKind::Double => number(given).map(OptionValue::Number).ok_or_else(|| wanted("a number")),
            OptionKind::Size => match number(given) {
                Some(value) if value >= 0.0 => Ok(OptionValue::Number(value.trunc())),
                _ => Err(wanted("a size such as 4096, 16K or 2G")),
            },
        }
    }
}

/// A number with an optional suffix K, M, G or T, each 1024 times the previous one.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, factor) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 1u64 << 10),
        'M' => (&text[..text.len() - 1], 1 << 20),
        'G' => (&text[..text.len() - 1], 1 << 30),
        'T' => (&text[..text.len() - 1], 1 << 40),
        _ => (text, 1),
    };
    digits.parse::<f64>().ok().map(|value| value * factor as f64).filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: OptionKind, text: Option<&str>, wanted: Result<OptionValue, &str>) {
        let found = kind.parse(text).map_err(|error| error.to_string());
        assert_eq!(found, wanted.map_err(str::to_owned), "{kind:?} {text:?}");
    }

    #[test]
    fn values_are_read_by_kind() {
        use OptionKind::*;
        use OptionValue as Value;
        check(Bool, None, Ok(Value::Bool(true)));
        check(Bool, Some("off"), Ok(Value::Bool(false)));
        check(Bool, Some("maybe"), Err("`maybe` is not `on` or `off`"));
        check(Int, Some("-12"), Ok(Value::Number(-12.0)));
        check(Int, Some("1.5"), Err("`1.5` is not a whole number of at most 32 bits"));
        check(Int, Some("4294967296"), Err("`4294967296` is not a whole number of at most 32 bits"));
        check(Double, Some("0.5"), Ok(Value::Number(0.5)));
        check(Double, Some("1M"), Ok(Value::Number(1_048_576.0)));
        check(Double, Some("abc"), Err("`abc` is not a number"));
        check(Size, Some("16k"), Ok(Value::Number(16_384.0)));
        check(Size, Some("16x"), Err("`16x` is not a size such as 4096, 16K or 2G"));
        check(Text, None, Ok(Value::Text(String::new())));
        check(List, Some("a,b"), Ok(Value::List(vec!["a".into(), "b".into()])));
    }

    #[test]
    fn an_empty_value_clears_an_option() {
        check(OptionKind::Int, Some(""), Ok(OptionValue::Number(0.0)));
        check(OptionKind::Text, Some(""), Ok(OptionValue::Text(String::new())));
        check(OptionKind::List, Some(""), Ok(OptionValue::List(Vec::new())));
    }
}
