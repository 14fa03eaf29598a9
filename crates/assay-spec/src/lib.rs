//! What a run is asked to do, as one value that can be written down and read back.
//!
//! Command lines, recipes, duels and fleets produce a `RunSpec`; one function executes it, and the record keeps it.
//! Rules that need neither a server nor a script are checked here (`RunSpec::check`), and a wrong value is reported
//! with its path, such as `load.sessions`, so that whoever produced the spec can point at its own option or key.
//!
//! Serialized, a spec contains no passwords: see `Concealed`.

#![forbid(unsafe_code)]

mod child;
mod files;
mod fuzz;
mod load;
mod option;
mod options;
mod output;
mod read;
mod rules;
mod spec;
mod statements;
pub mod values;
mod wrong;

pub use assay_secret::Concealed;
pub use child::{ChildSpec, ChildWork};
pub use files::IoSpec;
pub use fuzz::fuzz_spec;
pub use load::{AUTO_MAX, Arrival, CONNECTIONS, LoadSpec, RateSpec, SESSIONS_OF_SEARCH, Sessions, Terminals};
pub use option::{OptionForm, SpecOption};
pub use options::{option, options};
pub use output::{FleetSpec, Format, OutputSpec};
pub use spec::{ErrorSpec, GeneratorSpec, IoChoice, OnError, RunSpec, ServerSpec, TargetSpec, TelemetryLevel};
pub use spec::{TelemetrySpec, VERSION, WorkloadSpec, error_code, tag};
pub use statements::{CaseSpec, SqlSpec};
pub use values::{INTERVAL_MIN, LEASE_MIN, NETWORK_TIMEOUT_MAX, NETWORK_TIMEOUT_MIN};
pub use wrong::Wrong;
