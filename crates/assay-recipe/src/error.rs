//! Errors in a recipe: the cause, the position, and the nearest known name.

use std::ops::Range;

/// An invalid recipe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecipeError {
    /// A lowercase fragment, without the position.
    pub message: String,
    /// Line and column in the recipe's text, both from 1; `None` for values set elsewhere.
    pub place: Option<(usize, usize)>,
    /// What to do.
    pub hint: Option<String>,
}

impl RecipeError {
    pub(crate) fn new(message: impl Into<String>) -> RecipeError {
        RecipeError { message: message.into(), place: None, hint: None }
    }

    /// From the parser, or about a field that is unknown or has the wrong type.
    pub(crate) fn of_toml(error: &toml::de::Error, text: &str) -> RecipeError {
        let message = error.message().trim().replace('\n', "; ");
        let message = message
            .replace("expected u32", "expected a whole number")
            .replace("expected u64", "expected a whole number");
        let hint = nearest_field(&message);
        RecipeError { message, place: error.span().map(|span| place(text, &span)), hint }
    }

    #[must_use]
    pub(crate) fn at(self, place: Option<(usize, usize)>) -> RecipeError {
        RecipeError { place: self.place.or(place), ..self }
    }

    #[must_use]
    pub(crate) fn within(self, what: &str) -> RecipeError {
        RecipeError { message: format!("{what}: {}", self.message), ..self }
    }

    #[must_use]
    pub(crate) fn meant(self, word: &str, names: &[&str]) -> RecipeError {
        let hint = nearest(word, names).map(|name| format!("did you mean `{name}`?"));
        let known = (!names.is_empty()).then(|| format!("known: {}", names.join(", ")));
        RecipeError { hint: hint.or(known), ..self }
    }
}

/// Line and column of a span's start, from 1.
pub(crate) fn place(text: &str, span: &Range<usize>) -> (usize, usize) {
    let before = &text[..span.start.min(text.len())];
    let line = before.matches('\n').count() + 1;
    (line, before.chars().rev().take_while(|c| *c != '\n').count() + 1)
}

/// The name most similar to `word`, if one is similar enough.
fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let alike = names.iter().map(|name| (strsim::jaro_winkler(word, name), *name));
    alike.filter(|(alike, _)| *alike > 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Serde's message: "unknown field `tiem`, expected one of `time`, `rate`".
fn nearest_field(message: &str) -> Option<String> {
    let rest = message.split_once("unknown field ").or_else(|| message.split_once("unknown variant "))?.1;
    let mut names = rest.split('`').skip(1).step_by(2);
    let word = names.next()?;
    let names: Vec<&str> = names.collect();
    nearest(word, &names).map(|name| format!("did you mean `{name}`?"))
}
