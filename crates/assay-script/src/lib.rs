//! LuaJIT: workload scripts whose sessions are coroutines that yield requests.
//!
//! A `Program` is a script loaded once to learn its options and commands. A `State` is one `lua_State` holding up to
//! some hundred sessions, each a coroutine with its own global environment; the engine resumes a session with an
//! `Answer` and gets its next `Request`. A script reaches the world in no other way.

pub mod request;

pub use request::{Answer, ConnectionNumber, Decision, Failure, Request, Slot, Verdict};
