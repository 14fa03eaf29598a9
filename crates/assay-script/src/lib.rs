//! LuaJIT: workload scripts whose sessions are coroutines that yield requests.
//!
//! A `Program` is a script loaded once to learn its options and commands. A `LuaState` is one `lua_State` with up to
//! some hundred sessions, each a coroutine with its own global environment; the engine resumes a session with an
//! `Answer` and gets its next `Request`. This is a script's only way to the outside world.

mod asked;
mod bytecode;
mod declared;
pub mod failure;
pub mod front;
pub mod guard;
pub mod library;
mod native;
mod plain;
mod prelude;
pub mod program;
pub mod random;
pub mod request;
pub mod rule;
mod script;
pub mod setup;
mod stack;
pub mod state;
mod terminals;
mod version;

pub use failure::ScriptError;
pub use front::{ScriptFront, Severity};
pub use guard::Guard;
pub use library::{Installed, Library, ScriptSource};
pub use native::{Key, Marks};
pub use program::{Program, Queries, TopLevel};
pub use random::{Distribution, DistributionKind};
pub use request::{Answer, ConnectionNumber, Decision, Failure, Footprint, Report, Request, Slot, Verdict};
pub use rule::{Declaration, LoadedTables, Measure, NamedQuery, NamedRate, Rule};
pub use setup::{Entry, Setup};
pub use state::LuaState;
pub use version::luajit_version;
