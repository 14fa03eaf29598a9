//! Notes that the user wrote during a run.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// What the user did or saw during a run, in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When it was written.
    pub at: Time,
    /// Its text, without control characters.
    pub text: String,
}
