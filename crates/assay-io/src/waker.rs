//! Interrupting a sleeping event loop from another thread.

/// Wakes one `Io`. Cheap to clone; waking a loop that is gone does nothing.
#[derive(Clone, Debug)]
pub struct Waker {}

impl Waker {
    /// Makes the loop's present or next `wait` return at once.
    pub fn wake(&self) {}
}
