//! The recipe as a document: paths into it, setting values, and the differences between two documents.

use std::ops::Range;

use assay_record::{is_secret, masked, text_without_logins, text_without_secrets};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

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

/// A value for display, without quotes around text and without passwords; the items of a list with commas in between.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => masked(text),
        Value::Boolean(on) => if *on { "on" } else { "off" }.to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The document without passwords.
pub(crate) fn public(document: &Table) -> Table {
    document.iter().map(|(key, value)| (key.clone(), public_value(key, value))).collect()
}

fn public_value(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(public_text_of(key, text)),
        Value::Array(items) => Value::Array(items.iter().map(|item| public_value(key, item)).collect()),
        Value::Table(inner) => Value::Table(public(inner)),
        _ if is_secret(key) => Value::String(HIDDEN.to_owned()),
        other => other.clone(),
    }
}

const HIDDEN: &str = "***";

fn public_text_of(key: &str, text: &str) -> String {
    if is_secret(key) && !text.is_empty() { HIDDEN.to_owned() } else { masked(text) }
}

/// A path with a value from the command line, without a password.
pub fn public_setting(set: &str) -> String {
    match set.split_once('=') {
        Some((path, value)) => {
            let key = path.trim_end().rsplit('.').next().unwrap_or_default().trim_end_matches('"');
            format!("{path}={}", public_text_of(key, value))
        }
        None => text_without_secrets(set),
    }
}

/// The text of a document without passwords; everything else, such as comments, is as it was.
pub(crate) fn public_text(text: &str) -> String {
    let Ok(parsed) = toml::de::DeTable::parse(text) else { return text_without_secrets(text) };
    let mut secrets = Vec::new();
    find_secrets(parsed.get_ref(), &mut secrets);
    // Comments may contain more.
    text_without_logins(&replaced(text, secrets))
}

/// The text with other values at these places.
fn replaced(text: &str, mut values: Vec<(Range<usize>, String)>) -> String {
    values.sort_by_key(|(span, _)| span.start);
    let (mut all, mut from) = (String::new(), 0);
    for (span, value) in values {
        all += &text[from..span.start];
        all += &Value::String(value).to_string();
        from = span.end;
    }
    all + &text[from..]
}

/// The text of a recipe in which the URL of each server is what `resolve` returns for the one written, which may be a
/// name. Everything else is as it was; a text that is not TOML is not changed.
pub fn with_urls<E>(text: &str, resolve: &dyn Fn(&str) -> Result<String, E>) -> Result<String, E> {
    let Ok(parsed) = toml::de::DeTable::parse(text) else { return Ok(text.to_owned()) };
    let mut urls = Vec::new();
    find_urls(parsed.get_ref(), &mut urls);
    let mut changed = Vec::new();
    for (span, written) in urls {
        let url = resolve(&written)?;
        if url != written {
            changed.push((span, url));
        }
    }
    Ok(replaced(text, changed))
}

/// The same for a value from the command line.
pub fn value_with_urls<E>(value: &str, resolve: &dyn Fn(&str) -> Result<String, E>) -> Result<String, E> {
    let text = format!("url = {value}");
    match toml::de::DeTable::parse(&text) {
        Ok(_) => Ok(with_urls(&text, resolve)?.split_off("url = ".len())),
        Err(_) => resolve(value),
    }
}

/// Whether a key or path sets the URL of a server.
pub fn is_url(path: &str) -> bool {
    path == "url" || path.ends_with(".url")
}

fn find_urls(table: &DeTable<'_>, found: &mut Vec<(Range<usize>, String)>) {
    fn of_value(key: &str, value: &Spanned<DeValue<'_>>, found: &mut Vec<(Range<usize>, String)>) {
        match value.get_ref() {
            DeValue::String(text) if is_url(key) => found.push((value.span(), text.to_string())),
            DeValue::Array(items) => items.iter().for_each(|item| of_value(key, item, found)),
            DeValue::Table(inner) => find_urls(inner, found),
            _ => {}
        }
    }
    table.iter().for_each(|(key, value)| of_value(key.get_ref(), value, found));
}

/// Values with passwords, and what they are without them.
fn find_secrets(table: &DeTable<'_>, found: &mut Vec<(Range<usize>, String)>) {
    fn of_value(key: &str, value: &Spanned<DeValue<'_>>, found: &mut Vec<(Range<usize>, String)>) {
        match value.get_ref() {
            DeValue::String(text) => {
                let public = public_text_of(key, text);
                if public != **text {
                    found.push((value.span(), public));
                }
            }
            DeValue::Array(items) => items.iter().for_each(|item| of_value(key, item, found)),
            DeValue::Table(inner) => find_secrets(inner, found),
            _ if is_secret(key) => found.push((value.span(), HIDDEN.to_owned())),
            _ => {}
        }
    }
    table.iter().for_each(|(key, value)| of_value(key.get_ref(), value, found));
}

/// Every value of a document with its path, in the document's order.
pub fn values(table: &Table) -> Vec<(String, String)> {
    let mut all = Vec::new();
    flatten("", &public(table), &mut all);
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
    fn a_recipe_loses_its_passwords_and_keeps_everything_else() {
        let text = "# postgres://a:s3cret@h\n[server.db]\nurl = \"postgres://app:s3 \\\"cret@h/d\" # kept\n\
                    parameters = { password = 's3cret', ssl = 'on' }\n[run]\nworkload = 'x --my-password s3cret -v'\n\
                    [grid]\nhost = { \"server.db.url\" = ['pg://a:s3cret@b', 'pg://a@c'] }\n";
        let public = public_text(text);
        assert!(!public.contains("cret") && public.contains("# kept") && public.contains("ssl = 'on'"), "{public}");
        assert_eq!(public_text(&public), public);
        let document = |text: &str| text.parse::<Table>().unwrap();
        assert_eq!(super::public(&document(text)), super::public(&document(&public)));
        assert_eq!(document(&public)["server"]["db"]["url"].as_str(), Some("postgres://app:***@h/d"));
        // What the folder keeps is read as the same experiment.
        for (set, kept) in [
            ("server.db.url=postgres://u:s3 cret@h", "server.db.url=postgres://u:***@h"),
            ("run.options.my_password=s3cret", "run.options.my_password=***"),
            ("run.options.my_token=5", "run.options.my_token=***"),
            ("server.db.url=[\"a://u:s3cret@h\", \"a://v@h\"]", "server.db.url=[\"a://u:***@h\", \"a://v@h\"]"),
            ("run.time=10s", "run.time=10s"),
        ] {
            assert_eq!(public_setting(set), kept);
            let of = |set: &str| {
                let (path, value) = set.split_once('=').unwrap();
                let mut table = Table::new();
                super::set(&mut table, &segments(path).unwrap(), value_of(value)).unwrap();
                super::public(&table)
            };
            assert_eq!(of(set), of(kept));
        }
        let plain = "a = 'b'\n[c]\nd = [1, 'e@f', \"g\"]\n";
        assert_eq!(public_text(plain), plain);
    }

    #[test]
    fn names_of_databases_become_urls_and_everything_else_stays() {
        let text = "# prod\n[server.db]\nurl = 'prod' # kept\n[scale.tiny]\n\"server.db.url\" = 'test'\n\
                    [grid]\nhost = { \"server.db.url\" = ['prod', 'pg://a@c'] }\nname = { \"run.name\" = ['prod'] }\n";
        let resolve = |word: &str| match word {
            "prod" => Ok("pg://app@h/\"d".to_owned()),
            "none" => Err("unknown"),
            other => Ok(other.to_owned()),
        };
        assert_eq!(
            with_urls(text, &resolve).unwrap(),
            "# prod\n[server.db]\nurl = 'pg://app@h/\"d' # kept\n[scale.tiny]\n\"server.db.url\" = 'test'\n\
             [grid]\nhost = { \"server.db.url\" = ['pg://app@h/\"d', 'pg://a@c'] }\nname = { \"run.name\" = ['prod'] }\n"
        );
        assert_eq!(with_urls("[server.db]\nurl = \"none\"", &resolve), Err("unknown"));
        assert_eq!(with_urls("not TOML", &resolve).unwrap(), "not TOML");
        assert_eq!(value_with_urls("prod", &resolve).unwrap(), "pg://app@h/\"d");
        assert_eq!(value_with_urls("['prod', 'pg://a']", &resolve).unwrap(), "['pg://app@h/\"d', 'pg://a']");
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
