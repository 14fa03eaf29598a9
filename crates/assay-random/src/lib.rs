//! Seeded random numbers that are the same on every machine and in every version.
//!
//! One generator for everything that must be reproducible from a seed and is not secret: arrival gaps, back-off,
//! resampling, a simulated network, seeding larger generators. Our own code instead of a crate, because an update of a
//! crate could change what a seed means. Source: SplitMix64 in Steele, Lea & Flood 2014, "Fast splittable pseudorandom
//! number generators".

#![forbid(unsafe_code)]

use std::f64::consts::TAU;

/// A generator with one word of state, for which any seed is a good seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator: equal seeds give equal numbers.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// One of many generators of a seed: different streams are independent.
    pub fn of_stream(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
        random.bits();
        random
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number in 0 .. `bound`, uniform but for one part in 2⁶⁴ / `bound`. 1 <= bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in (0, 1] with 53 bits: its logarithm is finite.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A normal number with mean 0 and variance 1. Source: Box & Muller 1958.
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
    }
}

/// Spreads the bits of `word` over all 64. No two words give the same result.
pub const fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers for this seed are Rosetta Code's, of its task "Pseudo-random numbers/Splitmix64".
    #[test]
    fn the_sequence_is_that_of_the_published_algorithm() {
        let mut random = Random::new(1_234_567);
        let numbers = [(); 5].map(|()| random.bits());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        let mut random = Random::new(7);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!([(); 9].map(|()| random.below(1)), [0; 9]);
        assert!((0..1000).any(|_| random.below(u64::MAX) > u64::MAX / 2));
    }

    #[test]
    fn unit_numbers_have_the_mean_of_the_unit_interval_and_a_logarithm() {
        let mut random = Random::new(7);
        let numbers: Vec<f64> = (0..100_000).map(|_| random.unit()).collect();
        assert!(numbers.iter().all(|number| 0.0 < *number && *number <= 1.0));
        assert!((numbers.iter().sum::<f64>() / 1e5 - 0.5).abs() < 0.004);
    }

    #[test]
    fn normal_numbers_have_mean_0_variance_1_and_thin_tails() {
        let mut random = Random::new(7);
        let numbers: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean_of = |f: fn(f64) -> f64| numbers.iter().copied().map(f).sum::<f64>() / numbers.len() as f64;
        assert!(mean_of(|x| x).abs() < 0.01);
        assert!((mean_of(|x| x * x) - 1.0).abs() < 0.02);
        assert!((mean_of(|x| x * x * x * x) - 3.0).abs() < 0.2);
    }

    #[test]
    fn streams_of_a_seed_differ_and_repeat() {
        let first = |seed, stream| Random::of_stream(seed, stream).bits();
        assert_eq!(first(7, 1), first(7, 1));
        let mut all: Vec<u64> = (0..50).flat_map(|seed| (0..50).map(move |stream| first(seed, stream))).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2500);
    }
}
