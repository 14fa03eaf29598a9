//! Everything that sockets do, over epoll that looks for events before it sleeps.

use assay_io::{Backend, Clock, Kernel};
use assay_seam::Nanos;

#[path = "sockets/cases.rs"]
mod cases;
#[path = "sockets/polling.rs"]
mod polling;

fn kernel() -> Kernel {
    let kernel = Kernel::new(Backend::Epoll, Clock::start(), Backend::Epoll.batch_default()).unwrap();
    kernel.polling(Nanos::from_millis(1))
}
