//! Text that may hold a password.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::read;

/// Text that may hold a password, such as a URL. It is written and shown without it: `postgres://me:***@host/db`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Concealed(String);

impl Concealed {
    /// With the password, for whoever connects. Never written down, nor passed as an argument of a process.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Without it.
    pub fn shown(&self) -> String {
        assay_record::without_secrets([&self.0]).concat()
    }
}

impl From<String> for Concealed {
    fn from(text: String) -> Concealed {
        Concealed(text)
    }
}

impl From<&str> for Concealed {
    fn from(text: &str) -> Concealed {
        Concealed(text.to_owned())
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

impl<'de> Deserialize<'de> for Concealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Concealed, D::Error> {
        read::text(deserializer).map(Concealed)
    }
}
