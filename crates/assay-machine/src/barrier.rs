//! Keeps the compiler from removing or rewriting the measured work.
//!
//! `std::hint::black_box` goes through memory; what stands here leaves a value in its register and costs nothing.

use std::arch::asm;

/// Returns `value`, hidden from the optimizer.
#[inline(always)]
pub(crate) fn opaque(mut value: usize) -> usize {
    // SAFETY: there is no instruction in it.
    unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags, pure)) };
    value
}

/// The remainder of a 64-bit division, by the instruction for it. Compilers put a test in front that takes a shorter
/// division for small numbers, which on some processors is several times as fast and would be another test.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn remainder(dividend: u64, divisor: u64) -> u64 {
    debug_assert!(divisor != 0);
    let remainder;
    // SAFETY: the divisor is never 0 and the upper half of the dividend is 0, so the quotient fits and nothing traps.
    unsafe {
        asm!(
            "div {divisor}",
            divisor = in(reg) divisor,
            inout("rax") dividend => _,
            inout("rdx") 0_u64 => remainder,
            options(pure, nomem, nostack),
        );
    }
    remainder
}

/// The remainder of a 64-bit division.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn remainder(dividend: u64, divisor: u64) -> u64 {
    dividend % divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_those_of_arithmetic() {
        for (dividend, divisor) in [(0, 1), (7, 3), (10_000, 97), (u64::MAX, 10)] {
            assert_eq!(remainder(dividend, divisor), dividend % divisor);
        }
        assert_eq!(opaque(42), 42);
    }
}
