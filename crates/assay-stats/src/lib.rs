//! Statistics, pure: numbers in, numbers out. Nothing here formats, opens files or reads a clock.
//!
//! Every method names its source, and every interval is tested to hold its level (`tests/coverage.rs`). All intervals
//! are at `LEVEL`. What the data does not show is `None` or has a reason; no method guesses.

#![forbid(unsafe_code)]

pub mod audit;
mod bisection;
mod blocks;
mod boxes;
mod cells;
mod changes;
mod comparison;
mod cosines;
mod distribution;
mod levels;
mod mean;
mod quantile;
mod recent;
mod scale;
mod search;
mod spread;
mod steady;
mod student;
mod trials;
mod variability;
mod waves;

pub use bisection::{Bisection, BisectionLimits, NextTrial};
pub use blocks::{Blocks, Contrast, Observation};
pub use boxes::{BoxFigures, box_figures};
pub use cells::{CellValue, Cells};
pub use changes::Shift;
pub use comparison::{Change, MARGIN_DEFAULT, TRIALS_MAX, TRIALS_MIN, Verdict, change};
pub use distribution::Distribution;
pub use levels::{CONFIRMED_BY, CORRELATION_MAX, Drift, JUDGED_MIN, LENGTH_MAX, LevelChange, Levels, levels};
pub use mean::{Estimate, LENGTH_MIN, mean_interval, ratio_interval};
pub use quantile::{Second, quantile_interval};
pub use scale::{Measure, Scale};
pub use search::{Bracket, Look, NextLook, SearchPlan, bracket_of};
pub use spread::Missing;
pub use steady::{Excursion, STEADY_LENGTH_MIN, Steadiness, Steady, Tolerance, Unsteady, course};
pub use trials::{TrialCenter, drift, half_width, trials};
pub use variability::{Variability, variability};
pub use waves::{Waves, waves};

/// How often an interval holds the true value: 95 times of 100.
pub const LEVEL: f64 = 0.95;
