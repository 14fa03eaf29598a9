//! The kinds of requests of sessions, as numbers shared by the prelude and Rust.

/// What a session requests: `core.ask` in `src/lua/core.lua`, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Connect,
    Disconnect,
    Reconnect,
    Query,
    Prepare,
    Execute,
    Close,
    Load,
    Ready,
    Next,
    Type,
    Failed,
    Stop,
    Sleep,
    Claim,
    Barrier,
    Expect,
    Log,
    Finished,
    Died,
    Declared,
    Declare,
    Rollback,
    Defer,
    Flush,
    Leave,
    Pipe,
    Synchronise,
    InTransaction,
    Plain,
    /// The script itself yielded something.
    Stray,
    /// Lua gave up the coroutine.
    Broken,
}

impl Asked {
    #[inline]
    pub(crate) fn from_number(number: f64) -> Asked {
        use Asked::*;
        const ORDER: [Asked; 30] = [
            Connect,
            Disconnect,
            Reconnect,
            Query,
            Prepare,
            Execute,
            Close,
            Load,
            Ready,
            Next,
            Type,
            Failed,
            Stop,
            Sleep,
            Claim,
            Barrier,
            Expect,
            Log,
            Finished,
            Died,
            Declared,
            Declare,
            Rollback,
            Defer,
            Flush,
            Leave,
            Pipe,
            Synchronise,
            InTransaction,
            Plain,
        ];
        ORDER.get((number as usize).wrapping_sub(1)).copied().unwrap_or(Stray)
    }
}
