//! The library: an index over all records below a folder, and questions to it.
//!
//! The records stay the truth. The index is an SQLite file beside them (`INDEX_FILE`), made from their heads, and can
//! be deleted at any time. `Library::update` reads only files that are new or have changed; `Library::find` answers
//! from the index alone. This crate neither prints nor reads a clock.

#![forbid(unsafe_code)]

mod files;
mod head;
mod index;
mod past;
mod query;
mod schema;

pub use files::{Candidate, Refused, Stamp, candidates};
pub use index::{INDEX_FILE, Library, LibraryError, Update, Updated};
pub use past::Past;
pub use query::{BadFilter, Filter, Found, KEYS};
