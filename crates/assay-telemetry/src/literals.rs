//! Statements and plans without the values in them, so that those of the same form are the same text.

/// The text of a statement with `?` in place of numbers and strings, and without comments and superfluous spaces. Lists
/// of values become one value: their lengths vary.
pub fn without_literals(sql: &str) -> String {
    let mut text = scan(sql).0.split_whitespace().collect::<Vec<_>>().join(" ");
    for (list, one) in [("?, ?", "?"), ("?,?", "?"), ("(?), (?)", "(?)"), ("(?),(?)", "(?)")] {
        while text.contains(list) {
            text = text.replace(list, one);
        }
    }
    text
}

/// The lines of a plan whose conditions are without values.
pub(crate) fn plan_without_literals(plan: &str) -> String {
    // Numbers elsewhere are part of the plan: `Workers Planned: 2`.
    let is_condition = |line: &str| [" Cond: ", " Filter: ", " Key: "].iter().any(|word| line.contains(word));
    let line = |line: &str| match line.split_once(": ") {
        Some((name, condition)) if is_condition(line) => format!("{name}: {}", without_literals(condition)),
        _ => line.to_owned(),
    };
    plan.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The number of parameters `$1`, `$2`, … of a statement of PostgreSQL.
pub fn parameters(sql: &str) -> usize {
    scan(sql).1
}

/// Whether a text is one statement that can be asked for its plan: nothing in it can be executed by asking.
pub fn has_plan(sql: &str) -> bool {
    let first = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(').split_whitespace().next();
    let known = ["select", "insert", "update", "delete", "with", "values", "table", "replace", "merge"];
    first.is_some_and(|first| known.contains(&first.to_ascii_lowercase().as_str()))
}

/// The text with `?` in place of literals, and its highest parameter.
fn scan(sql: &str) -> (String, usize) {
    let (mut out, mut highest) = (String::new(), 0);
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_in_word = out.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        let length = match first {
            '\'' => {
                let has_escapes = out.ends_with(['e', 'E']);
                out.push('?');
                quoted(rest, '\'', has_escapes)
            }
            '"' | '`' => {
                let length = quoted(rest, first, false);
                out.push_str(&rest[..length]);
                length
            }
            '$' if !is_in_word => {
                let digits = digits(&rest[1..]);
                if digits > 0 {
                    highest = highest.max(rest[1..=digits].parse().unwrap_or(0));
                    out.push_str(&rest[..=digits]);
                    1 + digits
                } else if let Some(length) = dollar_quoted(rest) {
                    out.push('?');
                    length
                } else {
                    out.push('$');
                    1
                }
            }
            '0'..='9' if !is_in_word => {
                out.push('?');
                rest.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(rest.len())
            }
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            other => {
                out.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    (out, highest)
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Length of a quoted text at the start of this one; a doubled quote does not end it.
fn quoted(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        let is_doubled = c == quote && chars.peek().is_some_and(|(_, next)| *next == quote);
        if is_doubled || (c == '\\' && has_escapes) {
            chars.next();
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Length of `$tag$ … $tag$`.
fn dollar_quoted(text: &str) -> Option<usize> {
    let end = text[1..].find('$')? + 2;
    let tag = &text[..end];
    let is_tag = tag[1..end - 1].chars().all(|c| c.is_alphanumeric() || c == '_');
    is_tag.then(|| text[end..].find(tag).map_or(text.len(), |at| end + at + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_one_form_are_one_text() {
        for (sql, expected) in [
            ("SELECT c FROM sbtest12 WHERE id=7", "SELECT c FROM sbtest12 WHERE id=?"),
            ("SELECT c\n  FROM t WHERE id = -17.5e3 -- why\n AND x", "SELECT c FROM t WHERE id = -? AND x"),
            ("SELECT 'it''s', E'a\\'b', \"Col 1\", $$x;y$$, $a$'$a$", "SELECT ?, E?, \"Col 1\", ?"),
            ("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "INSERT INTO t VALUES (?)"),
            ("SELECT * FROM t WHERE id IN (1,2,3) AND k = $2", "SELECT * FROM t WHERE id IN (?) AND k = $2"),
            ("SELECT 'ü' /* 1 */ , 'unfinished", "SELECT ? , ?"),
        ] {
            assert_eq!(without_literals(sql), expected);
        }
        assert_eq!(parameters("SELECT $1, '$9', a$7 FROM t WHERE x BETWEEN $2 AND $11"), 11);
    }

    #[test]
    fn a_plan_keeps_the_numbers_that_belong_to_it() {
        let plan = "Gather\n  Workers Planned: 2\n  ->  Index Scan using t_1 on t\n        Index Cond: (id = 17)\n\
                    \x20       Filter: (c = 'x'::text)";
        let expected = "Gather\n  Workers Planned: 2\n  ->  Index Scan using t_1 on t\n        Index Cond: (id = ?)\n\
                        \x20       Filter: (c = ?::text)";
        assert_eq!(plan_without_literals(plan), expected);
    }

    #[test]
    fn only_statements_with_a_plan_are_explained() {
        assert!(
            has_plan("  SELECT 1") && has_plan("(select 1) union select 2") && has_plan("with a as (select 1) table a")
        );
        assert!(!has_plan("CREATE TABLE t (a int)") && !has_plan("") && !has_plan("VACUUM t"));
    }
}
