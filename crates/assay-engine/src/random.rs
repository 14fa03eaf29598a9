//! The engine's own random numbers: arrival gaps and jitter.
//!
//! Scripts have their own generators (assay-script); keeping these apart means that neither the schedule nor a
//! retry changes what a session sends.

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, any seed is a good seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The same `seed` and `stream` give the same numbers; different streams are independent.
    pub(crate) fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1]: its logarithm is finite.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}
