//! Text that may hold a password.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::mask::{HIDDEN, masked};

/// Text that may hold a password, such as a URL. It is written and shown without it: `postgres://me:***@host/db`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Concealed {
    text: String,
    is_password: bool,
}

impl Concealed {
    /// A password itself: nothing of it is shown.
    pub fn password(text: impl Into<String>) -> Concealed {
        Concealed { text: text.into(), is_password: true }
    }

    /// With the password, for whoever connects. Never written down, nor passed as an argument of a process.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Without it.
    pub fn shown(&self) -> String {
        match self.is_password && !self.text.is_empty() {
            true => HIDDEN.to_owned(),
            false => masked(&self.text),
        }
    }

    /// Whether it holds one.
    pub fn has_secret(&self) -> bool {
        self.shown() != self.text
    }
}

impl From<String> for Concealed {
    fn from(text: String) -> Concealed {
        Concealed { text, is_password: false }
    }
}

impl From<&str> for Concealed {
    fn from(text: &str) -> Concealed {
        Concealed::from(text.to_owned())
    }
}

impl fmt::Debug for Concealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown().fmt(f)
    }
}

impl Serialize for Concealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

/// A single value in any notation.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected text, a number, true or false")]
enum Scalar {
    Switch(bool),
    Count(u64),
    Integer(i64),
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Concealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Concealed, D::Error> {
        Ok(Concealed::from(match Scalar::deserialize(deserializer)? {
            Scalar::Switch(on) => if on { "on" } else { "off" }.to_owned(),
            Scalar::Count(value) => value.to_string(),
            Scalar::Integer(value) => value.to_string(),
            Scalar::Number(value) => value.to_string(),
            Scalar::Text(text) => text,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concealed_text_is_neither_printed_nor_serialized() {
        for text in ["postgres://me:s3cret@h/d", "primary_conninfo=host=h password=s3cret", "--my-password s3cret"] {
            let concealed = Concealed::from(text);
            let written = serde_json::to_string(&concealed).unwrap();
            assert!(concealed.has_secret() && concealed.reveal() == text);
            assert!(!format!("{concealed:?} {written}").contains("s3cret"), "{concealed:?}");
        }
        let password = Concealed::password("s3cret");
        assert_eq!((password.shown().as_str(), password.reveal()), ("***", "s3cret"));
        let plain: Concealed = serde_json::from_str("5").unwrap();
        assert_eq!((plain.reveal(), plain.has_secret()), ("5", false));
    }
}
