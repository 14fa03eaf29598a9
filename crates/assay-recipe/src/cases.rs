//! Statements to time, by name: a TOML file for `assay sql`, and `[[run.case]]` of a recipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::RecipeError;
use crate::word::Words;

/// Statements to be compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaseFile {
    /// Run once, at the beginning.
    pub prepare: Words,
    /// Run once, at the end.
    pub cleanup: Words,
    /// In the order of the results.
    pub case: Vec<StatementCase>,
}

/// One statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatementCase {
    /// Its name in results.
    pub name: String,
    /// The timed statement.
    pub sql: String,
    /// Run before every execution, not timed.
    #[serde(default)]
    pub setup: Words,
    /// Run after every execution, not timed.
    #[serde(default)]
    pub teardown: Words,
    /// Cases with the same value must return the same rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

impl CaseFile {
    /// Parses a file. Fails with the first error.
    pub fn read(text: &str) -> Result<CaseFile, RecipeError> {
        let file: CaseFile = toml::from_str(text).map_err(|error| RecipeError::of_toml(&error, text))?;
        check(&file.case).map_err(|error| RecipeError::new(error).at(None))?;
        Ok(file)
    }

    /// Its text, which `read` parses.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("it is plain data")
    }
}

/// Checks that there are cases, each with a name of its own.
pub(crate) fn check(cases: &[StatementCase]) -> Result<(), String> {
    if cases.is_empty() {
        return Err("no case: add [[case]] with name and sql".to_owned());
    }
    for (number, case) in cases.iter().enumerate() {
        if case.name.trim().is_empty() || case.sql.trim().is_empty() {
            return Err(format!("case {}: name and sql must not be empty", number + 1));
        }
        if cases[..number].iter().any(|other| other.name == case.name) {
            return Err(format!("two cases are named {}", case.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_back_as_it_was_written() {
        let text = "prepare = 'CREATE TABLE t (a int)'\n[[case]]\nname = 'a'\nsql = 'SELECT 1'\nsetup = ['BEGIN', 'X']\n\
                    [[case]]\nname = 'b'\nsql = 'SELECT 2'\nresult = 'r'\n";
        let file = CaseFile::read(text).unwrap();
        assert_eq!(
            (file.prepare.0.len(), file.case[0].setup.0.len(), file.case[1].result.as_deref()),
            (1, 2, Some("r"))
        );
        assert_eq!(CaseFile::read(&file.text()).unwrap(), file);
        let error = CaseFile::read("[[case]]\nname = 'a'\nsqk = 'SELECT 1'\n").unwrap_err();
        assert_eq!((error.place, error.hint.as_deref()), (Some((3, 1)), Some("did you mean `sql`?")));
        let error = CaseFile::read(&text.replace("'b'", "'a'")).unwrap_err();
        assert_eq!(error.message, "two cases are named a");
    }
}
