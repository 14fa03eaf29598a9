//! Which servers an agent may load.

use std::fmt;
use std::str::FromStr;

/// Text in which `*` stands for anything: `db*.example.net:5432`, `10.0.0.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Whether all of `text` is of this form.
    pub fn covers(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Pattern, String> {
        if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(Pattern(text.to_owned())) }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_the_rest_for_itself() {
        let check = |pattern: &str, text: &str| pattern.parse::<Pattern>().unwrap().covers(text);
        assert!(check("db1", "db1") && !check("db1", "db10") && !check("db1", "xdb1"));
        assert!(
            check("db*", "db10:5432") && check("*", "") && check("*.lab", "db.lab") && !check("*.lab", "db.lab.com")
        );
        assert!(check("db*.lab:5*", "db7.lab:5432") && !check("db*.lab:5*", "db7.lab:4432"));
        assert!(check("a*a", "aa") && !check("a*a", "a"));
        assert!("".parse::<Pattern>().is_err());
    }
}
