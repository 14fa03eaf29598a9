//! The kinds of requests of sessions, as numbers shared by the prelude and Rust.

/// Defines `Ask` and the numbers of its requests, from 1, in the order given.
macro_rules! asked {
    ($($request:ident),+ $(,)?) => {
        /// What a session requests: `core.ask` in `src/lua/core.lua`, in the same order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Ask {
            $($request,)+
            /// The script itself yielded something.
            Stray,
            /// Lua gave up the coroutine.
            Broken,
        }

        const ORDER: &[Ask] = &[$(Ask::$request),+];
    };
}

asked! {
    Connect, Disconnect, Reconnect, Query, Prepare, Execute, Close, Load, Ready, Next, Type, Failed, Stop, Sleep,
    Claim, Barrier, Expect, Log, Finished, Died, Declared, Declare, Rollback, Defer, Flush, Leave, Pipe,
    Synchronize, InTransaction, Plain, Executed, Perform, Notification, Row,
}

impl Ask {
    #[inline]
    pub(crate) fn from_number(number: f64) -> Ask {
        ORDER.get((number as usize).wrapping_sub(1)).copied().unwrap_or(Ask::Stray)
    }
}
