//! Everything that sockets do, over io_uring.

use assay_io::{Backend, Clock, Kernel};

#[path = "sockets/cases.rs"]
mod cases;
#[path = "sockets/tls.rs"]
mod tls;

/// Uses epoll, with a message, where the kernel has no io_uring or forbids it.
fn kernel() -> Kernel {
    let (backend, why) = Backend::best(usize::MAX, 1);
    if let Some(why) = why {
        println!("tested over epoll, for io_uring is not used: {why}");
    }
    Kernel::new(backend, Clock::start(), backend.batch_default()).unwrap()
}
