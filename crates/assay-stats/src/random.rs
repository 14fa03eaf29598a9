//! Random numbers for resampling: small, and the same on every machine.

/// SplitMix64. Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators".
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0 .. below`, whose bias is below `below` / 2^64.
    pub(crate) fn index(&mut self, below: usize) -> usize {
        ((u128::from(self.next()) * below as u128) >> 64) as usize
    }

    /// Normal with mean 0 and variance 1. Source: Box & Muller 1958.
    pub(crate) fn normal(&mut self) -> f64 {
        let mut uniform = || ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (radius, angle) = (uniform(), uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
