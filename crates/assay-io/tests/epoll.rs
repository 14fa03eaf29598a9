//! Everything that sockets do, over epoll.

use assay_io::{Backend, Clock, Kernel};

#[path = "sockets/cases.rs"]
mod cases;
#[path = "sockets/tls.rs"]
mod tls;

fn kernel() -> Kernel {
    Kernel::new(Backend::Epoll, Clock::start(), Backend::Epoll.batch_default()).unwrap()
}
