//! Everything that sockets do, over epoll that looks for events before it sleeps.

use assay_io::{Backend, Clock, Io, Kernel};
use assay_seam::Nanos;

#[path = "sockets/cases.rs"]
mod cases;

fn kernel() -> Kernel {
    let kernel = Kernel::new(Backend::Epoll, Clock::start(), Backend::Epoll.batch_default()).unwrap();
    kernel.polling(Nanos::from_millis(1))
}

#[test]
fn what_is_polled_in_vain_is_counted() {
    let mut io = kernel();
    let start = io.now();
    let until = start + Nanos::from_millis(5);
    while io.now() < until {
        io.wait(Some(until)).unwrap();
    }
    // The first look may send, and is not counted.
    assert!(io.polled() > Nanos::ZERO && io.polled() < io.now() - start, "{}", io.polled());
}
