//! The watchdog's view of a `State`: which script line has held the worker, and a way to end it.

/// A handle on one `State` for another thread. Outlives the state harmlessly.
#[derive(Clone)]
pub struct Guard {}

impl Guard {
    /// Changes with every resume and its end; odd while Lua runs. One relaxed load.
    pub fn generation(&self) -> u64 {
        todo!()
    }

    /// Makes the Lua code that runs in resume `generation` report where it is; `place` has it a moment later. Does
    /// nothing when that resume is over. A C function that blocks reports only when it returns.
    pub fn inspect(&self, generation: u64) {
        let _ = generation;
        todo!()
    }

    /// Where the code inspected last was: `file:line, in function 'name'`. Taken once.
    pub fn place(&self) -> Option<String> {
        todo!()
    }

    /// Raises a Lua error with this message in the script code that runs in resume `generation`, again and again
    /// until the resume ends, so that no `pcall` of the script can swallow it.
    pub fn interrupt(&self, generation: u64, message: &str) {
        let _ = (generation, message);
        todo!()
    }
}
