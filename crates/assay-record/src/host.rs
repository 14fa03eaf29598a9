//! The machine of a load generator.

use serde::{Deserialize, Serialize};

/// A machine, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its host name.
    #[serde(rename = "host")]
    pub name: String,
    /// Its kernel's name and release, such as `Linux 6.1.0-18-amd64`.
    pub kernel: String,
    /// Its CPU's name.
    pub cpu_model: String,
    /// CPUs that the process was allowed to use. 1 <= cpus
    pub cpus: u32,
    /// Its memory.
    pub memory_bytes: u64,
}
