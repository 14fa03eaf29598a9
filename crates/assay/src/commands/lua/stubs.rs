//! Stubs of the Lua API for lua-language-server: types from `stubs.lua`, descriptions from the headings of
//! docs/lua-api.md.

const TYPES: &str = include_str!("stubs.lua");
const PAGE: &str = include_str!("../../../../../docs/lua-api.md");

/// The classes of what the page calls by short names.
const CLASSES: [(&str, &str); 4] =
    [("drv:", "Driver:"), ("con:", "Connection:"), ("stmt:", "Statement:"), ("loader:", "Loader:")];

/// The stubs with the descriptions above each function.
pub(super) fn text() -> String {
    let described = descriptions();
    let mut text = String::new();
    // Annotations belong to the function below them, and the description goes above both.
    let mut annotations = String::new();
    for line in TYPES.lines() {
        if line.starts_with("---") {
            annotations += &format!("{line}\n");
            continue;
        }
        if let Some(name) = function_of(line) {
            let found = described.iter().find(|(known, _)| known == name);
            let words = found.map(|(_, words)| words.as_str()).unwrap_or_default();
            text.extend(words.split_terminator('\n').map(|line| format!("--- {line}\n")));
        }
        text += &format!("{annotations}{line}\n");
        annotations.clear();
    }
    text
}

/// `assay.claim` in `function assay.claim(name) end`.
fn function_of(line: &str) -> Option<&str> {
    line.strip_prefix("function ")?.split('(').next()
}

/// Names of functions with their descriptions, from the page's headings that are calls: what stands below one, without
/// tables.
fn descriptions() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for section in PAGE.split("\n#### `").skip(1) {
        let (calls, below) = section.split_once('\n').unwrap_or((section, ""));
        let below = below.split("\n#").next().unwrap_or_default();
        let lines = below.lines().filter(|line| !line.starts_with('|'));
        let words = lines.collect::<Vec<_>>().join(" ");
        for call in calls.trim_end_matches('`').split("`, `") {
            let name = call.split(['(', '{', ' ']).next().unwrap_or_default();
            let class = CLASSES.iter().find_map(|(short, class)| Some(format!("{class}{}", name.strip_prefix(short)?)));
            let name = class.unwrap_or_else(|| name.to_owned());
            if all.iter().all(|(known, _)| *known != name) {
                all.push((name, wrapped(&format!("`{call}`: {words}"))));
            }
        }
    }
    all
}

/// Lines of about 100 characters.
fn wrapped(words: &str) -> String {
    let mut text = String::new();
    let mut length = 0;
    for word in words.split_whitespace() {
        if length > 0 && length + word.chars().count() > 100 {
            text.push('\n');
            length = 0;
        } else if length > 0 {
            text.push(' ');
        }
        text.push_str(word);
        length += word.chars().count() + 1;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_call_of_the_page_is_a_function_of_the_stubs_with_its_description() {
        let functions: BTreeSet<&str> = TYPES.lines().filter_map(function_of).collect();
        let elsewhere = ["print", "io.write", "sysbench.cmdline.own_rows", "sysbench.cmdline.sessions"];
        let calls = |name: &str| CLASSES.iter().any(|(_, class)| name.starts_with(class)) || name.starts_with("assay.");
        let described: Vec<String> = descriptions().into_iter().map(|(name, _)| name).collect();
        let missing: Vec<&String> = described
            .iter()
            .filter(|name| calls(name) && !functions.contains(name.as_str()) && !elsewhere.contains(&name.as_str()))
            .collect();
        assert!(missing.is_empty(), "not in stubs.lua: {missing:?}");
        let undescribed: Vec<&&str> = functions
            .iter()
            .filter(|name| name.starts_with("assay.") && !described.iter().any(|known| known == *name))
            .collect();
        assert!(undescribed.is_empty(), "not in docs/lua-api.md: {undescribed:?}");
        let text = text();
        assert!(text.contains("--- `assay.claim(name)`: The next number of a counter"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("function ")).count(), functions.len());
    }
}
