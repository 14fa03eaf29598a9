//! The random numbers of `sysbench.rand`: one generator per session, seeded only from (seed, session), until the script
//! chooses another seed (`assay.seed`).
//!
//! So a session's statements are the same in every run, whatever the timing and however sessions are distributed over
//! workers. Ranges are inclusive and wrap at 2³², as in sysbench. Not for secrets.

use assay_random::{Random, mixed};

/// What `sysbench.rand.default` draws from, and the parameters of all distributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// `--rand-type`.
    pub kind: DistributionKind,
    /// `--rand-spec-iter`: uniforms averaged by `gaussian` and `special`. >= 1
    pub iterations: u32,
    /// `--rand-spec-pct`: size of the hot center of `special`, percent of the range.
    pub special_percent: f64,
    /// `--rand-spec-res`: how many of 100 draws of `special` fall into its center.
    pub special_hits: f64,
    /// `--rand-pareto-h`: 0 < h < 1.
    pub pareto_h: f64,
    /// `--rand-zipfian-exp`: >= 0.
    pub zipfian_exponent: f64,
}

/// Names of `--rand-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributionKind {
    /// All values are equally likely.
    Uniform,
    /// A bell around the middle.
    Gaussian,
    /// A bell, and most draws uniformly from a small hot center.
    Special,
    /// Low values hottest, by a power law.
    Pareto,
    /// Low values hottest, by Zipf's law.
    Zipfian,
}

impl Default for Distribution {
    /// Uniform; the parameters are sysbench's defaults.
    fn default() -> Distribution {
        Distribution {
            kind: DistributionKind::Uniform,
            iterations: 12,
            special_percent: 1.0,
            special_hits: 75.0,
            pareto_h: 0.2,
            zipfian_exponent: 0.8,
        }
    }
}

impl DistributionKind {
    /// By the name users write.
    pub fn from_name(name: &str) -> Option<DistributionKind> {
        Some(match name {
            "uniform" => DistributionKind::Uniform,
            "gaussian" => DistributionKind::Gaussian,
            "special" => DistributionKind::Special,
            "pareto" => DistributionKind::Pareto,
            "zipfian" => DistributionKind::Zipfian,
            _ => return None,
        })
    }

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            DistributionKind::Uniform => "uniform",
            DistributionKind::Gaussian => "gaussian",
            DistributionKind::Special => "special",
            DistributionKind::Pareto => "pareto",
            DistributionKind::Zipfian => "zipfian",
        }
    }
}

/// xoshiro256++ (Blackman & Vigna 2019), seeded through SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Rng([u64; 4]);

impl Rng {
    /// Independent streams for every pair of `seed` and `stream`.
    pub(crate) fn new(seed: u64, stream: u64) -> Rng {
        let mut seeds = Random::new(mixed(seed) ^ mixed(stream ^ 0x6a09_e667_f3bc_c909).rotate_left(32));
        Rng(std::array::from_fn(|_| seeds.bits()))
    }

    /// Independent streams for every pair of `text` and `stream`.
    pub(crate) fn of_text(text: &[u8], stream: u64) -> Rng {
        // FNV-1a; `new` mixes its bits.
        let hash = text
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        Rng::new(hash, stream)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// In [0, 1), 53 bits.
    #[inline]
    pub(crate) fn double(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// In 0 … n − 1; bias below 2⁻³². `n` <= 2³².
    #[inline]
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// In `low` … `high`.
    #[inline]
    pub(crate) fn uniform(&mut self, low: u32, high: u32) -> u32 {
        let size = range(low, high);
        low.wrapping_add(self.below(size) as u32)
    }

    /// The mean of `iterations` uniforms, scaled to the range.
    pub(crate) fn gaussian(&mut self, low: u32, high: u32, iterations: u32) -> u32 {
        let iterations = iterations.max(1);
        let sum: f64 = (0..iterations).map(|_| self.double()).sum();
        low.wrapping_add((range(low, high) as f64 * (sum / f64::from(iterations))) as u32)
    }

    /// With probability `special_hits` % from a hot center of about `special_percent` % of the range, else from a bell.
    ///
    /// One number u decides which, and the position in the center, as sysbench's draws show: below 1 − hits it is the
    /// bell; else the offset is (t − d) / 2 + (d + 1) · u, where t is the greatest offset and d its `special_percent`
    /// %.
    pub(crate) fn special(&mut self, low: u32, high: u32, distribution: &Distribution) -> u32 {
        let (u, greatest) = (self.double(), high.wrapping_sub(low));
        let t = f64::from(greatest);
        let offset = if u * 100.0 < 100.0 - distribution.special_hits {
            let iterations = distribution.iterations.max(1);
            t * ((0..iterations).map(|_| self.double()).sum::<f64>() / f64::from(iterations))
        } else {
            let d = t * (distribution.special_percent / 100.0);
            (t - d) / 2.0 + (d + 1.0) * u
        };
        low.wrapping_add((offset as u32).min(greatest))
    }

    /// `low + ⌊size · u^p⌋` with p = ln h / ln(1 − h): a share 1 − h of draws falls into a share h of the range.
    pub(crate) fn pareto(&mut self, low: u32, high: u32, h: f64) -> u32 {
        let power = h.ln() / (1.0 - h).ln();
        let size = range(low, high);
        low.wrapping_add(((size as f64 * self.double().powf(power)) as u64).min(size - 1) as u32)
    }

    /// Bounded Zipf, rank 1 = `low`. Source: Hörmann & Derflinger 1996, "Rejection-inversion to generate variates
    /// from monotone discrete distributions".
    pub(crate) fn zipfian(&mut self, low: u32, high: u32, zipf: &mut Zipf) -> u32 {
        let size = range(low, high);
        zipf.prepare(size);
        loop {
            let u = zipf.h_n + self.double() * (zipf.h_x1 - zipf.h_n);
            let x = zipf.h_inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, size as f64);
            if k - x <= zipf.s || u >= zipf.h(k + 0.5) - zipf.density(k) {
                return low.wrapping_add(k as u32 - 1);
            }
        }
    }

    /// From the distribution selected by `--rand-type`.
    pub(crate) fn draw(&mut self, low: u32, high: u32, distribution: &Distribution, zipf: &mut Zipf) -> u32 {
        match distribution.kind {
            DistributionKind::Uniform => self.uniform(low, high),
            DistributionKind::Gaussian => self.gaussian(low, high, distribution.iterations),
            DistributionKind::Special => self.special(low, high, distribution),
            DistributionKind::Pareto => self.pareto(low, high, distribution.pareto_h),
            DistributionKind::Zipfian => self.zipfian(low, high, zipf),
        }
    }

    /// Copies `format` to `target`, every `#` replaced by a digit, every `@` by a letter. Lengths are equal.
    pub(crate) fn fill(&mut self, format: &[u8], target: &mut [u8]) {
        for (format, target) in format.chunks(DRAWN).zip(target.chunks_mut(DRAWN)) {
            for ((from, to), drawn) in format.iter().zip(target).zip(self.sixteen_bits(format.len())) {
                // Without branches, the compiler vectorizes this for eight at a time.
                let letter = *from == b'@';
                let (base, zero) = if letter { (26, b'a') } else { (10, b'0') };
                let made = zero + share(drawn, base);
                *to = if letter || *from == b'#' { made } else { *from };
            }
        }
    }

    /// One number for each of `count` characters, four per draw; those after them are 0. `count <= DRAWN`
    fn sixteen_bits(&mut self, count: usize) -> [u16; DRAWN] {
        let mut drawn = [0; DRAWN];
        for four in drawn.as_chunks_mut().0.iter_mut().take(count.div_ceil(4)) {
            let x = self.next();
            *four = [x as u16, (x >> 16) as u16, (x >> 32) as u16, (x >> 48) as u16];
        }
        drawn
    }

    /// `low` … `high` characters, each from `0` to `z`; returns how many. `target` holds `high`.
    pub(crate) fn varied(&mut self, low: u32, high: u32, target: &mut [u8]) -> usize {
        let length = self.uniform(low, high) as usize;
        for to in &mut target[..length] {
            *to = self.uniform(u32::from(b'0'), u32::from(b'z')) as u8;
        }
        length
    }

    /// `low` … `high` characters, each a letter or a digit; returns how many. `target` holds `high`.
    pub(crate) fn alphanumeric(&mut self, low: u32, high: u32, target: &mut [u8]) -> usize {
        let length = self.uniform(low, high) as usize;
        for piece in target[..length].chunks_mut(DRAWN) {
            let drawn = self.sixteen_bits(piece.len());
            for (to, drawn) in piece.iter_mut().zip(drawn) {
                let n = share(drawn, 62);
                let upper = if n >= 10 { b'A' - (b'9' + 1) } else { 0 };
                let lower = if n >= 36 { b'a' - (b'Z' + 1) } else { 0 };
                *to = b'0' + n + upper + lower;
            }
        }
        length
    }
}

/// How many characters are drawn at a time.
const DRAWN: usize = 64;

/// 0 … base − 1, uniform but for 1/65,536 of all draws.
fn share(drawn: u16, base: u16) -> u8 {
    ((u32::from(drawn) * u32::from(base)) >> 16) as u8
}

/// LuaJIT's own `math.random`: Tausworthe's generator with period 2²²³, seeded as LuaJIT seeds it. Scripts that never
/// seed it draw the same numbers in every session of sysbench. Source: L'Ecuyer 1999, "Tables of maximally
/// equidistributed combined LFSR generators", table 3.
#[derive(Clone, Debug)]
pub(crate) struct Tausworthe([u64; 4]);

impl Tausworthe {
    pub(crate) fn new(seed: f64) -> Tausworthe {
        // The minimum seed of each part, which must have a nonzero bit: 2^1, 2^6, 2^9, 2^17.
        let mut seed = seed;
        let mut parts = Tausworthe([1u64, 6, 9, 17].map(|bit| {
            seed = seed * std::f64::consts::PI + std::f64::consts::E;
            let bits = seed.to_bits();
            if bits < 1 << bit { bits + (1 << bit) } else { bits }
        }));
        for _ in 0..10 {
            parts.next();
        }
        parts
    }

    fn next(&mut self) -> u64 {
        let mut result = 0;
        for (part, (k, q, s)) in self.0.iter_mut().zip([(63, 31, 18), (58, 19, 28), (55, 24, 7), (47, 21, 8)]) {
            let z = *part;
            *part = ((z << q ^ z) >> (k - s)) ^ ((z & (u64::MAX << (64 - k))) << s);
            result ^= *part;
        }
        result
    }

    /// In [0, 1), 52 bits.
    pub(crate) fn double(&mut self) -> f64 {
        f64::from_bits(self.next() & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000) - 1.0
    }
}

/// How many values are in `low` … `high`; a range that runs backwards wraps at 2³².
#[inline]
fn range(low: u32, high: u32) -> u64 {
    u64::from(high.wrapping_sub(low)) + 1
}

/// What Zipf's law needs for one range size, kept between draws.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    exponent: f64,
    size: u64,
    h_x1: f64,
    h_n: f64,
    s: f64,
}

impl Zipf {
    pub(crate) fn new(exponent: f64) -> Zipf {
        Zipf { exponent: exponent.max(0.0), size: 0, h_x1: 0.0, h_n: 0.0, s: 0.0 }
    }

    fn prepare(&mut self, size: u64) {
        if self.size != size {
            self.size = size;
            self.h_x1 = self.h(1.5) - 1.0;
            self.h_n = self.h(size as f64 + 0.5);
            self.s = 2.0 - self.h_inverse(self.h(2.5) - self.density(2.0));
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// An antiderivative of the density, (x^(1−q) − 1) / (1 − q), also exact at q = 1.
    fn h(&self, x: f64) -> f64 {
        let (log, q) = (x.ln(), 1.0 - self.exponent);
        if (q * log).abs() < 1e-8 { log * (1.0 + q * log / 2.0) } else { (q * log).exp_m1() / q }
    }

    fn h_inverse(&self, x: f64) -> f64 {
        let q = 1.0 - self.exponent;
        let t = (x * q).max(-1.0);
        if t.abs() < 1e-8 { (x * (1.0 - t / 2.0)).exp() } else { (t.ln_1p() / q).exp() }
    }
}

/// A bijection of 32-bit numbers (Wellons 2018, "lowbias32"), shifted by `seed`: makes `unique()` look random.
pub(crate) fn permute(mut x: u32, seed: u32) -> u32 {
    x = x.wrapping_add(seed);
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(kind: DistributionKind, low: u32, high: u32) -> Vec<u32> {
        let distribution = Distribution { kind, ..Distribution::default() };
        let mut zipf = Zipf::new(distribution.zipfian_exponent);
        let mut rng = Rng::new(7, 3);
        (0..100_000).map(|_| rng.draw(low, high, &distribution, &mut zipf)).collect()
    }

    /// Share of draws in `low` … `high`.
    fn share(draws: &[u32], low: u32, high: u32) -> f64 {
        draws.iter().filter(|&&x| (low..=high).contains(&x)).count() as f64 / draws.len() as f64
    }

    #[test]
    fn every_distribution_stays_in_its_range_and_reaches_most_of_it() {
        for kind in ["uniform", "gaussian", "special", "pareto", "zipfian"] {
            let kind = DistributionKind::from_name(kind).unwrap();
            let all = draws(kind, 11, 20);
            assert_eq!(share(&all, 11, 20), 1.0, "{kind:?}");
            assert!((13..=17).all(|x| all.contains(&x)), "{kind:?}");
            assert!(draws(kind, 5, 5).iter().all(|&x| x == 5), "{kind:?} of one value");
        }
    }

    #[test]
    fn distributions_have_their_shapes() {
        let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 0.01, "{value}, expected {wanted}");
        near(share(&draws(DistributionKind::Uniform, 1, 1000), 1, 100), 0.1);
        // The mean of 12 uniforms has standard deviation 1/12.
        near(share(&draws(DistributionKind::Gaussian, 1, 12_000), 5_001, 7_000), 0.683);
        // 75 % in the central 1 %; 1 % of the range contains about 4.8 % of the bell.
        near(share(&draws(DistributionKind::Special, 1, 10_000), 4_951, 5_050), 0.75 + 0.25 * 0.048);
        // h = 0.2: 80 % of draws in the lowest 20 %.
        near(share(&draws(DistributionKind::Pareto, 1, 10_000), 1, 2_000), 0.8);
        // P(rank <= k) = H(k) / H(n), summed exactly.
        let harmonic = |n: u32| (1..=n).map(|k| f64::from(k).powf(-0.8)).sum::<f64>();
        near(share(&draws(DistributionKind::Zipfian, 1, 1000), 1, 1), harmonic(1) / harmonic(1000));
        near(share(&draws(DistributionKind::Zipfian, 1, 1000), 1, 50), harmonic(50) / harmonic(1000));
    }

    #[test]
    fn zipfian_works_for_any_exponent_and_the_whole_range_of_numbers() {
        for exponent in [0.0, 0.5, 1.0, 1.5] {
            let mut rng = Rng::new(1, 1);
            let mut zipf = Zipf::new(exponent);
            assert!((0..10_000).all(|_| rng.zipfian(1, 3, &mut zipf) <= 3));
            rng.zipfian(0, u32::MAX, &mut zipf);
        }
    }

    #[test]
    fn streams_differ_by_seed_and_by_session_and_repeat() {
        let first = |seed, stream| Rng::new(seed, stream).next();
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(2, 1));
        assert_ne!(first(0, 0), first(0, 1));
    }

    #[test]
    fn filled_strings_keep_what_is_no_placeholder_and_use_every_digit_and_letter() {
        let format = b"###-@@@@@@@@@@@".repeat(100);
        let mut target = vec![0; format.len()];
        Rng::new(1, 1).fill(&format, &mut target);
        for (from, to) in format.iter().zip(&target) {
            assert!(match from {
                b'#' => to.is_ascii_digit(),
                b'@' => to.is_ascii_lowercase(),
                other => other == to,
            });
        }
        assert!((b'0'..=b'9').chain(b'a'..=b'z').all(|c| target.contains(&c)));
    }

    #[test]
    fn every_digit_and_letter_is_as_likely_as_the_others_wherever_it_stands() {
        let format = [b"#".repeat(101), b"@".repeat(261)].concat();
        let (mut rng, mut target, mut seen) = (Rng::new(3, 1), vec![0; format.len()], [0_u32; 128]);
        let mut digits_at = vec![0; 101];
        for _ in 0..10_000 {
            rng.fill(&format, &mut target);
            target.iter().for_each(|c| seen[usize::from(*c)] += 1);
            digits_at.iter_mut().zip(&target).for_each(|(sum, c)| *sum += u32::from(*c - b'0'));
        }
        for (c, n) in (0_u8..).zip(seen) {
            let range = match c {
                b'0'..=b'9' => 99_500..102_500, // 101,000 ± 302
                b'a'..=b'z' => 98_900..101_900, // 2,610,000 / 26 = 100,385 ± 311
                _ => 0..1,
            };
            assert!(range.contains(&n), "{:?} came {n} times", char::from(c));
        }
        assert!(digits_at.iter().all(|sum| (43_500..46_500).contains(sum)), "{digits_at:?}"); // 45,000 ± 287
    }

    #[test]
    fn alphanumeric_text_has_every_length_and_uses_every_letter_and_digit_alike() {
        let (mut rng, mut target) = (Rng::new(5, 5), [0; 50]);
        let (mut lengths, mut seen) = ([0_u32; 51], [0_u32; 128]);
        for _ in 0..20_000 {
            let length = rng.alphanumeric(26, 50, &mut target);
            lengths[length] += 1;
            target[..length].iter().for_each(|c| seen[usize::from(*c)] += 1);
        }
        assert!(lengths[..26].iter().all(|n| *n == 0) && lengths[26..].iter().all(|n| (650..950).contains(n)));
        for (c, n) in (0_u8..).zip(seen) {
            let range = if c.is_ascii_alphanumeric() { 11_800..12_720 } else { 0..1 }; // 760,000 / 62 = 12,258 ± 110
            assert!(range.contains(&n), "{:?} came {n} times", char::from(c));
        }
    }

    #[test]
    fn tausworthe_draws_what_luajit_draws() {
        let mut unseeded = Tausworthe::new(0.0);
        assert_eq!(format!("{:.14}", unseeded.double()), "0.79420629243124");
        assert_eq!([unseeded.double(), unseeded.double()].map(|u| (u * 10.0) as u32 + 1), [7, 6]);
        assert_eq!((Tausworthe::new(5.0).double() * 100.0) as u32 + 1, 19);
    }

    #[test]
    fn the_permutation_never_repeats() {
        let mut seen: Vec<u32> = (0..200_000).map(|x| permute(x, 99)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 200_000);
    }
}
