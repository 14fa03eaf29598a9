//! The random numbers of `sysbench.rand`: one generator per session, seeded from (seed, session) and nothing else.

/// What `sysbench.rand.default` draws from, and the parameters of all distributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// `--rand-type`.
    pub kind: DistributionKind,
    /// `--rand-spec-iter`: uniforms averaged by `gaussian` and `special`. >= 1
    pub iterations: u32,
    /// `--rand-spec-pct`: size of the hot centre of `special`, percent of the range.
    pub special_percent: f64,
    /// `--rand-spec-res`: how many of 100 draws of `special` fall into its centre.
    pub special_hits: f64,
    /// `--rand-pareto-h`: 0 < h < 1.
    pub pareto_h: f64,
    /// `--rand-zipfian-exp`: >= 0.
    pub zipfian_exponent: f64,
}

/// Names of `--rand-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistributionKind {
    /// Every value alike.
    Uniform,
    /// A bell around the middle.
    Gaussian,
    /// A bell, and most draws uniformly from a small hot centre.
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
