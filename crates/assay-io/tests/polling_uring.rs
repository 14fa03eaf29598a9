//! Everything that sockets do, over io_uring that looks for completions before it sleeps.

use assay_io::{Backend, Clock, Kernel};
use assay_seam::Nanos;

#[path = "sockets/cases.rs"]
mod cases;
#[path = "sockets/polling.rs"]
mod polling;

/// Uses epoll, with a message, where the kernel has no io_uring or forbids it.
fn kernel() -> Kernel {
    let (backend, why) = Backend::best(usize::MAX, 1);
    if let Some(why) = why {
        println!("tested over epoll, for io_uring is not used: {why}");
    }
    let kernel = Kernel::new(backend, Clock::start(), backend.batch_default()).unwrap();
    kernel.polling(Nanos::from_millis(1))
}
