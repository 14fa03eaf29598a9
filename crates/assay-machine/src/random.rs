//! Random numbers for the tests: xoroshiro128+ (Blackman and Vigna 2016), 128 bits of state, seeded by assay-random's.
//! That one is for seeds and rare numbers; this costs less per number, which is what a memory test measures beside.

/// A generator. Each worker has its own.
#[derive(Clone, Debug)]
pub(crate) struct WorkerRandom([u64; 2]);

/// What 53 random bits are scaled with, to be a number in [0, 1).
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

impl WorkerRandom {
    /// The numbers of stream `stream` of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> WorkerRandom {
        let mut seeds = assay_random::Random::new(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        WorkerRandom([seeds.bits(), seeds.bits()])
    }

    /// 64 random bits.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        let [a, b] = self.0;
        let both = a ^ b;
        self.0 = [a.rotate_left(55) ^ both ^ (both << 14), both.rotate_left(36)];
        a.wrapping_add(b)
    }

    /// A number in [0, 1).
    #[inline(always)]
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * UNIT
    }

    /// A number in 0..n. 0 < n < 2^63.
    #[inline(always)]
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        debug_assert!(0 < n && n <= i64::MAX as u64);
        let scaled = (self.next() >> 11) as f64 * (n as i64 as f64 * UNIT);
        // SAFETY: 0 <= scaled < 2^63; the conversion that checks this costs as much as drawing the number.
        unsafe { scaled.to_int_unchecked::<i64>() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_and_the_seed_decides() {
        let mut random = WorkerRandom::new(7, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let draw = |seed, stream| WorkerRandom::new(seed, stream).next();
        assert_eq!(draw(7, 1), draw(7, 1));
        assert_ne!(draw(7, 1), draw(7, 2));
        assert_ne!(draw(7, 1), draw(8, 1));
    }
}
