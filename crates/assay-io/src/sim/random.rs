//! Chance that repeats: SplitMix64 (Steele, Lea & Flood 2014). Good enough to jumble a network, and its sequence is
//! ours, so no update of a crate changes what a seed means.

#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Uniform in 0 ..= `max`, up to a bias of `max` / 2⁶⁴.
    pub(super) fn up_to(&mut self, max: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = z ^ (z >> 31);
        ((u128::from(z) * (u128::from(max) + 1)) >> 64) as u64
    }
}
