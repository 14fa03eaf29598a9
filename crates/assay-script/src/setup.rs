//! What the sessions of a state will do, and what they see.

use std::sync::Arc;

use assay_options::OptionValue;
use assay_seam::Dialect;

use crate::front::ScriptFront;
use crate::random::Distribution;

/// What the sessions of a state will do, and what they see.
#[derive(Clone, Debug)]
pub struct Setup {
    /// `sysbench.cmdline.command`; empty: there is none.
    pub command: String,
    /// What each session runs.
    pub entry: Entry,
    /// Everything in `sysbench.opt`, including core options; keys as `OptionDeclaration::key`.
    pub options: Vec<(String, OptionValue)>,
    /// The kind of database.
    pub driver: Dialect,
    /// The run's seed.
    pub seed: u64,
    /// Sessions of the whole run, in all states; numbers passed to `add_session` are below it. >= 1
    pub sessions: u32,
    /// For `sysbench.rand`.
    pub distribution: Distribution,
    /// `sysbench.cmdline.argv`, the program's name first.
    pub argv: Vec<String>,
    /// The front end for the scripts' output; `None`: the engine, by `Request::Log`.
    pub front: Option<Arc<dyn ScriptFront>>,
}

/// What a session runs after the script's top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `thread_init` → `Request::Ready` → `thread_run` → `thread_done`.
    Thread,
    /// The entry of `sysbench.cmdline.commands` or the global function of this name: once, without arguments.
    Function(String),
    /// `init` → `Request::Ready` → (the run; the answer after it: `Report` for the last report's hook, as with
    /// `Reports`, then `Done`) → `done`, in one environment. Each may be absent.
    Main,
    /// Only the top level.
    TopLevel,
    /// Reports the top level's declarations to the program. The top level sees no options.
    Declare,
    /// Report hooks: `Request::Ready`, and again after each `Answer::Report`; ends on `Answer::Done`.
    Reports,
}
