//! What only an event loop that polls does.

use assay_io::Io;
use assay_seam::Nanos;

use crate::kernel;

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
