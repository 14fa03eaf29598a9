//! The recipe as a document: paths into it, setting values, and the differences between two documents.

use toml::{Table, Value};

use crate::error::{RecipeError, place};

/// The segments of a path in TOML's syntax: `server.db.settings."a.b"`.
pub(crate) fn segments(path: &str) -> Result<Vec<String>, RecipeError> {
    let wrong = || RecipeError::new(format!("`{path}` is not a path such as run.time or server.db.settings.work_mem"));
    let mut table: Table = format!("{path} = 0").parse().map_err(|_| wrong())?;
    let mut segments = Vec::new();
    loop {
        let mut keys = table.into_iter();
        let (Some((key, value)), None) = (keys.next(), keys.next()) else { return Err(wrong()) };
        segments.push(key);
        match value {
            Value::Table(inner) => table = inner,
            _ => return Ok(segments),
        }
    }
}

/// Sets the value at a path; missing tables are created. An item of a list is found by its name, or by its number from
/// 1: `step.build.after`.
pub(crate) fn set(table: &mut Table, path: &[String], value: Value) -> Result<(), RecipeError> {
    let [first, rest @ ..] = path else { return Err(RecipeError::new("the path is empty")) };
    if rest.is_empty() {
        table.insert(first.clone(), value);
        return Ok(());
    }
    match table.entry(first.clone()).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, rest, value).map_err(|error| error.within(first)),
        Value::Array(items) if items.iter().all(Value::is_table) && rest.len() > 1 => {
            let inner = item(items, &rest[0]).map_err(|error| error.within(first))?;
            set(inner, &rest[1..], value).map_err(|error| error.within(&format!("{first}.{}", rest[0])))
        }
        _ => Err(RecipeError::new(format!("`{first}` is not a table"))),
    }
}

/// The table with this name, or this number from 1.
fn item<'a>(items: &'a mut [Value], wanted: &str) -> Result<&'a mut Table, RecipeError> {
    let name = |item: &Value| item.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<String> = items.iter().filter_map(name).collect();
    let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let at = items.iter().position(|item| name(item).as_deref() == Some(wanted)).or(number);
    let found = at.and_then(|at| items.get_mut(at)).and_then(Value::as_table_mut);
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    found.ok_or_else(|| RecipeError::new(format!("there is no `{wanted}`")).meant(wanted, &known))
}

/// A value from the command line: TOML, or else text.
pub(crate) fn value_of(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    let only = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    only.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The position of a key in the text: line and column. Items of lists are counted from 1.
pub(crate) fn place_of(text: &str, path: &[&str]) -> Option<(usize, usize)> {
    let parsed = toml::de::DeTable::parse(text).ok()?;
    let (mut table, mut names) = (parsed.get_ref(), path.iter());
    loop {
        let name = names.next()?;
        let (key, mut value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
        let mut span = key.span();
        let number = names.clone().next().and_then(|name| name.parse::<usize>().ok()?.checked_sub(1));
        if let (Some(items), Some(number)) = (value.get_ref().as_array(), number) {
            value = items.get(number)?;
            span = value.span();
            names.next();
        }
        if names.len() == 0 {
            return Some(place(text, &span));
        }
        table = value.get_ref().as_table()?;
    }
}

/// The value at a path; items of lists are counted from 1.
pub(crate) fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?.checked_sub(1)?),
        table => table.get(name),
    })
}

/// A value for display, without quotes around text; the items of a list with commas in between.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(on) => if *on { "on" } else { "off" }.to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Every value of a document with its path, in the document's order.
pub fn values(table: &Table) -> Vec<(String, String)> {
    let mut all = Vec::new();
    flatten("", table, &mut all);
    all
}

fn flatten(above: &str, table: &Table, all: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match value {
            Value::Table(inner) => flatten(&path, inner, all),
            Value::Array(items) if items.iter().any(Value::is_table) => {
                for (number, item) in items.iter().enumerate() {
                    let path = format!("{path}.{}", number + 1);
                    match item {
                        Value::Table(inner) => flatten(&path, inner, all),
                        other => all.push((path, shown(other))),
                    }
                }
            }
            other => all.push((path, shown(other))),
        }
    }
}

/// The differences between two documents: path, value before, value after; `None` if it is not set.
pub fn differences(before: &Table, after: &Table) -> Vec<(String, Option<String>, Option<String>)> {
    let (before, after) = (values(before), values(after));
    let find = |all: &[(String, String)], path: &str| all.iter().find(|(one, _)| one == path).map(|(_, v)| v.clone());
    let mut paths: Vec<&String> = after.iter().map(|(path, _)| path).collect();
    paths.extend(before.iter().map(|(path, _)| path).filter(|path| find(&after, path).is_none()));
    let all = paths.into_iter().map(|path| (path.clone(), find(&before, path), find(&after, path)));
    all.filter(|(_, before, after)| before != after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_as_toml_does() {
        assert_eq!(segments("run.time").unwrap(), ["run", "time"]);
        assert_eq!(segments(r#"server.db.settings."a.b""#).unwrap(), ["server", "db", "settings", "a.b"]);
        for wrong in ["", "run.", "run time", "a = 1\nb"] {
            assert!(segments(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_item_of_a_list_is_found_by_its_name_or_its_number() {
        let mut table: Table = "[[step]]\nname = 'build'\nafter = '1m'\n[[step]]\nrest = '5m'\n".parse().unwrap();
        let mut put = |path: &str| set(&mut table, &segments(path).unwrap(), Value::String("3s".to_owned()));
        put("step.build.after").unwrap();
        put("step.2.rest").unwrap();
        let wrong = ["step.biuld.after", "step.3.rest", "step.0.rest", "step.build"].map(|path| put(path).unwrap_err());
        assert_eq!(
            values(&table),
            [("step.1.name", "build"), ("step.1.after", "3s"), ("step.2.rest", "3s")]
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(wrong[0].message, "step: there is no `biuld`");
        assert_eq!(wrong[0].hint.as_deref(), Some("did you mean `build`?"));
        assert_eq!(wrong[1].message, "step: there is no `3`");
        assert_eq!(wrong[3].message, "`step` is not a table");
    }

    #[test]
    fn keys_and_items_of_lists_have_places() {
        let text = "title = 't'\n[run]\ntime = '1s'\n[[step]]\nrest = '1s'\n[[step]]\nname = 'b'\n";
        assert_eq!(place_of(text, &["run", "time"]), Some((3, 1)));
        assert_eq!(place_of(text, &["step", "2", "name"]), Some((7, 1)));
        assert_eq!(place_of(text, &["step", "2"]).map(|(line, _)| line), Some(6));
        assert_eq!(place_of(text, &["step", "3"]), None);
        assert_eq!(place_of(text, &["run", "tiem"]), None);
    }

    #[test]
    fn values_from_the_command_line_are_toml_or_text() {
        assert_eq!(value_of("3"), Value::Integer(3));
        assert_eq!(value_of("[1, 4]").as_array().map(Vec::len), Some(2));
        assert_eq!(value_of("10s"), Value::String("10s".to_owned()));
        assert_eq!(value_of("1\nb = 2"), Value::String("1\nb = 2".to_owned()));
    }

    #[test]
    fn differences_name_paths_and_both_values() {
        let table = |text: &str| text.parse::<Table>().unwrap();
        let found = differences(&table("[run]\ntime = '5m'\na = 1"), &table("[run]\ntime = '10s'\nb = [1, 2]"));
        let of = |path: &str, before: Option<&str>, after: Option<&str>| {
            (path.to_owned(), before.map(str::to_owned), after.map(str::to_owned))
        };
        let expected =
            [of("run.time", Some("5m"), Some("10s")), of("run.b", None, Some("1,2")), of("run.a", Some("1"), None)];
        assert_eq!(found, expected);
    }
}
