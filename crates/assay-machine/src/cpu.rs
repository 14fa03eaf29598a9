//! The processor: an event finds all primes below a limit by trial division.

use std::hint::black_box;
use std::sync::Arc;

use crate::barrier::remainder;
use crate::{Counts, MachineFault, MachineTest, TestThread};

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTest {
    /// Numbers below it are tried. 1 <= primes_below.
    pub primes_below: u64,
}

/// The primes in 3..limit. Each candidate is divided by everything from 2 up to its root; the root and the comparison
/// are made with floating point, as the test of the same name does.
fn primes_below(limit: u64) -> u64 {
    let mut primes = 0;
    for candidate in 3..limit {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2_u64;
        while divisor as i64 as f64 <= root {
            if remainder(candidate, divisor) == 0 {
                break;
            }
            divisor += 1;
        }
        primes += u64::from(divisor as i64 as f64 > root);
    }
    primes
}

impl MachineTest for CpuTest {
    type Worker = CpuTest;

    fn worker(self: &Arc<Self>, _: u32) -> Result<CpuTest, MachineFault> {
        Ok(**self)
    }
}

impl TestThread for CpuTest {
    type Request = ();

    fn next(&mut self) -> Option<()> {
        Some(())
    }

    fn execute(&mut self, (): (), _: &Counts) -> Result<(), MachineFault> {
        black_box(primes_below(self.primes_below));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_found() {
        // 25 primes below 100, without 2.
        assert_eq!([1, 2, 3, 4, 100, 10_000].map(primes_below), [0, 0, 0, 1, 24, 1228]);
    }
}
