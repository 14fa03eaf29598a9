//! Passwords: the type of text that may hold one, and how text loses them before anybody else sees it.
//!
//! `Concealed` cannot be printed or serialized with its passwords; only `reveal` returns them. What is not of that type
//! (a recipe, a message of a server, a statement, a command line) passes one of the functions of `mask`, which know
//! where passwords are written, and `json` does the same for every text of a JSON document. When in doubt, they remove
//! too much.

#![forbid(unsafe_code)]

mod concealed;
mod json;
mod mask;

pub use concealed::Concealed;
pub use json::json_without_secrets;
pub use mask::{
    HIDDEN, is_secret, masked, text_without_logins, text_without_secrets, value_without_secrets, without_secrets,
};
