//! A wrong value, and where it is.

/// Why a spec cannot be executed. Texts name values by their paths in braces, such as `{load.sessions}`: `words`
/// replaces them with the names that the reader knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Path of the wrong value, such as `load.sessions`; empty: the whole text.
    pub path: String,
    cause: String,
    hint: Option<String>,
}

impl Wrong {
    /// `cause` is a sentence that contains the path in braces.
    pub fn new(path: impl Into<String>, cause: impl Into<String>) -> Wrong {
        Wrong { path: path.into(), cause: cause.into(), hint: None }
    }

    /// For a value that cannot be read: `reason` is a lowercase fragment.
    pub fn value(path: impl Into<String>, value: &str, reason: &str) -> Wrong {
        let path = path.into();
        let cause = match (path.as_str(), value) {
            ("", _) => reason.to_owned(),
            (_, "") => format!("{{{path}}}: {reason}"),
            _ => format!("{{{path}}} {value}: {reason}"),
        };
        Wrong { path, cause, hint: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Wrong {
        self.hint = Some(hint.into());
        self
    }

    /// Cause and hint, with values named by `name`.
    pub fn words(&self, name: impl Fn(&str) -> String) -> (String, Option<String>) {
        let named = |text: &String| named(text, &name);
        (named(&self.cause), self.hint.as_ref().map(named))
    }
}

fn named(text: &str, name: impl Fn(&str) -> String) -> String {
    let (mut named, mut rest) = (String::new(), text);
    while let Some((before, (path, after))) =
        rest.split_once('{').and_then(|(b, rest)| Some((b, rest.split_once('}')?)))
    {
        named.push_str(before);
        named.push_str(&name(path));
        rest = after;
    }
    named + rest
}
