//! One `lua_State` and the sessions that live in it.

use assay_wire::RowsPool;

use crate::declare::OptionValue;
use crate::failure::ScriptError;
use crate::guard::Guard;
use crate::program::Program;
use crate::random::Distribution;
use crate::request::{Answer, Request, Slot};

/// What the sessions of a state are to do, and what they see.
#[derive(Clone, Debug)]
pub struct Setup {
    /// `sysbench.cmdline.command`.
    pub command: String,
    /// What each session runs.
    pub entry: Entry,
    /// Everything in `sysbench.opt`, core options included; keys as `OptionDeclaration::key`.
    pub options: Vec<(String, OptionValue)>,
    /// The name of the driver: `pgsql`, `mysql`, `sqlite`.
    pub driver: &'static str,
    /// The run's seed.
    pub seed: u64,
    /// Sessions of the whole run, all states together; numbers given to `add_session` are below it. >= 1
    pub sessions: u32,
    /// For `sysbench.rand`.
    pub distribution: Distribution,
    /// `sysbench.cmdline.argv`, the program's name first.
    pub argv: Vec<String>,
}

/// What a session runs after the script's top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `thread_init` → `Request::Ready` → `thread_run` → `thread_done`.
    Thread,
    /// The entry of `sysbench.cmdline.commands` or the global function of this name: once, without arguments.
    Function(String),
    /// `init` → `Request::Ready` → (the run; answer when it is over) → `done`, in one environment. Either may be absent.
    Frame,
    /// Nothing more.
    TopLevel,
}

/// One `lua_State` with its sessions. Not `Send`: made and used in one thread.
pub struct State {}

impl State {
    /// Compiles the script. Runs none of it.
    pub fn new(program: &Program, setup: &Setup) -> Result<State, ScriptError> {
        let _ = (program, setup);
        todo!()
    }

    /// Makes session `number` (from 0, unique in the run). Its first `resume` (with `Answer::Done`) runs the top level.
    pub fn add_session(&mut self, number: u32) -> Result<Slot, ScriptError> {
        let _ = number;
        todo!()
    }

    /// Runs a session until its next request. Panics when there is no such session or it has ended.
    pub fn resume(&mut self, slot: Slot, answer: Answer, pool: &mut RowsPool) -> Request<'_> {
        let _ = (slot, answer, pool);
        todo!()
    }

    /// Names of transaction types in the order of their first use; index 0 is the workload's own name.
    pub fn transaction_types(&self) -> &[String] {
        todo!()
    }

    /// What the session counted itself with `sb_counter_inc`/`sb_counter_add`, in the order of `SB_CNT_*`.
    pub fn counters(&self, slot: Slot) -> [u64; 8] {
        let _ = slot;
        todo!()
    }

    /// Forgets a session, wherever it is. Its slot is reused.
    pub fn remove(&mut self, slot: Slot, pool: &mut RowsPool) {
        let _ = (slot, pool);
        todo!()
    }

    /// Bytes in use by Lua.
    pub fn memory(&self) -> usize {
        todo!()
    }

    /// For the watchdog.
    pub fn guard(&self) -> Guard {
        todo!()
    }
}
