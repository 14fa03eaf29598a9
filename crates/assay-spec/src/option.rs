//! One option of a command line that sets a value of a spec, and values at paths.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Wrong, read};

/// An option, of `assay run` for example.
#[derive(Debug, PartialEq, Eq)]
pub struct SpecOption {
    /// Without hyphens in front: `connect-rate`.
    pub name: &'static str,
    /// Path of the value that it sets: `target.connect_rate`.
    pub path: &'static str,
    /// How it is written.
    pub form: OptionForm,
}

/// How an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// With a value.
    Value,
    /// Without one.
    Switch,
    /// Once for each item of a list.
    Each,
    /// Once, with commas between the items.
    Joined,
}

pub(crate) const fn of(name: &'static str, path: &'static str, form: OptionForm) -> SpecOption {
    SpecOption { name, path, form }
}

/// A spec with one value set, as text, by the name of its option.
pub(crate) fn set<T: DeserializeOwned>(
    mut value: Value,
    options: &[SpecOption],
    name: &str,
    text: &str,
) -> Result<T, Wrong> {
    let hyphens = name.replace('_', "-");
    let option = options.iter().find(|option| option.name == hyphens);
    let option = option.ok_or_else(|| Wrong::value("", "", &format!("there is no option --{name}")))?;
    put(&mut value, option.path, text.into());
    read::from_value(&value)
}

/// The options that set what differs from the default.
pub(crate) fn words_of(value: &Value, default: &Value, options: &[SpecOption]) -> Vec<String> {
    let mut words = Vec::new();
    for option in options {
        let Some(given) = get(value, option.path).filter(|given| get(default, option.path) != Some(given)) else {
            continue;
        };
        let name = option.name;
        match (option.form, given) {
            (OptionForm::Switch, Value::Bool(true)) => words.push(format!("--{name}")),
            (OptionForm::Switch, _) => {}
            (OptionForm::Each, Value::Object(items)) => {
                words.extend(items.iter().map(|(key, value)| format!("--{name}={key}={}", text(value))));
            }
            (OptionForm::Each, Value::Array(items)) => {
                words.extend(items.iter().map(|item| format!("--{name}={}", text(item))))
            }
            (OptionForm::Each | OptionForm::Joined | OptionForm::Value, value) => {
                words.push(format!("--{name}={}", text(value)))
            }
        }
    }
    words
}

/// A value as written on a command line.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Object(_) => unreachable!("tags are written one by one"),
    }
}

pub(crate) fn get<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| value.get(part)).filter(|value| !value.is_null())
}

pub(crate) fn put(value: &mut Value, path: &str, new: Value) {
    let place = path.split('.').fold(value, |value, part| {
        if !value.is_object() {
            *value = Value::Object(serde_json::Map::new());
        }
        &mut value[part]
    });
    *place = new;
}

pub(crate) fn clear(value: &mut Value, path: &str) {
    let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = parent.split('.').filter(|part| !part.is_empty()).try_fold(value, |value, part| value.get_mut(part));
    if let Some(object) = parent.and_then(Value::as_object_mut) {
        object.remove(key);
    }
}
