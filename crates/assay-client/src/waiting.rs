//! Who waits for the answers of a server.

use assay_seam::Nanos;

/// Whoever waits for answers, and may give up.
pub trait Waiting: Sync {
    /// Whether to stop waiting.
    fn is_over(&self) -> bool;

    /// There has been no answer from this server for so long.
    fn waited(&self, server: &str, time: Nanos);
}
