//! What coordinators and agents say to each other. JSON: a fleet sends few messages, and people read them.

use serde::{Deserialize, Serialize};

use crate::clock::ClockReading;

/// Version of these messages. Both sides must have the same, and the same version of the program.
pub const PROTOCOL: u32 = 3;

/// Another process's program and ours in words, such as `assay 0.1.0`; `None`: they can work together. Unreleased
/// builds may differ only in their protocol.
pub fn mismatch(version: &str, protocol: u32) -> Option<(String, String)> {
    let ours = env!("CARGO_PKG_VERSION");
    match (version == ours, protocol == PROTOCOL) {
        (true, true) => None,
        (true, false) => {
            let said = |protocol: u32| format!("a build of assay {ours} with fleet protocol {protocol}");
            Some((said(protocol), said(PROTOCOL)))
        }
        (false, _) => Some((format!("assay {version}"), format!("assay {ours}"))),
    }
}

/// The shortest lease: a coordinator sends its orders every second.
pub const LEASE_MIN: std::time::Duration = std::time::Duration::from_secs(3);

/// An entry in the list of agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Unique; the last part of its subjects.
    pub id: String,
    /// For people.
    pub name: String,
    /// `PROTOCOL` of the agent.
    pub protocol: u32,
    /// Version of its program.
    pub version: String,
    /// Its machine.
    pub host: String,
    /// CPUs that it may use. 1 <= cpus
    pub cpus: u32,
    /// Files that it may open.
    pub files: u64,
    /// The share it wants, from 0; `None`: any.
    pub share: Option<u32>,
    /// Databases that it may load; empty: any.
    pub allow_db: Vec<String>,
    /// It takes a database from its own environment.
    pub has_database: bool,
    /// Its connection to NATS is encrypted, or stays on its machine.
    pub is_private: bool,
    /// The run that it is busy with.
    pub busy: Option<String>,
    /// It answered when the list was read.
    #[serde(skip)]
    pub answers: bool,
}

/// An agent's answer to a ping. One with an older protocol sends only its clocks; its entry in the list says which
/// protocol it has.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pong {
    /// Its clocks.
    #[serde(flatten)]
    pub(crate) reading: ClockReading,
    /// The run that it is busy with.
    pub(crate) busy: Option<String>,
}

/// A share of a run, asked of an agent.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// The run.
    pub run: String,
    /// Who asks, for people.
    pub from: String,
    /// `PROTOCOL` of the coordinator.
    pub protocol: u32,
    /// Version of its program.
    pub version: String,
    /// Which share, from 0, of how many.
    pub number: u32,
    /// All agents of the run. number < agents
    pub agents: u32,
    /// What to do: a spec of assay-spec. May hold passwords: never written down.
    pub spec: serde_json::Value,
    /// Files that the spec names: scripts, arrival times.
    pub files: Vec<File>,
    /// Where the database is.
    pub database: Database,
    /// An agent stops when it has heard nothing for this long.
    pub lease_ms: u64,
}

/// Where an agent learns of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Database {
    /// From the spec.
    Spec,
    /// From its own environment.
    AgentEnvironment,
}

/// A file that is sent with an order.
#[derive(Clone, Serialize, Deserialize)]
pub struct File {
    /// As the spec names it; empty: it lies beside one that is named.
    pub name: String,
    /// Path below the folder of the order, with `/`.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// An agent's answer to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Accepted: it waits at the first gate.
    Taken,
    /// Refused.
    Refused(Refusal),
}

/// Why something is refused, or failed: cause, place, what to do, and the exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// As of the program.
    pub exit: u8,
    /// One line.
    pub cause: String,
    /// Where, and in whose words.
    pub details: Vec<String>,
    /// What to do.
    pub hints: Vec<String>,
}

/// Where agents wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Before sessions connect.
    Sessions,
    /// Before a stage, from 0.
    Stage(u32),
    /// Before the script's `done`.
    Done,
}

/// A coordinator's message to all agents of its run, every second and after each change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// The highest barrier that is open.
    pub barrier: u64,
    /// Gates that are open.
    pub gates: Vec<OpenGate>,
    /// Start no more transactions, and end.
    pub stop: bool,
    /// The run is over: results were fetched, or given up.
    pub over: bool,
    /// News received of each agent, by its number.
    pub heard: Vec<u64>,
}

/// A gate that may be passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenGate {
    /// Which.
    pub gate: Gate,
    /// When, on the monotonic clock of each agent, by its number; empty: at once.
    pub at_ns: Vec<i64>,
}

/// An agent's report on its share, every second and after each change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its number.
    pub number: u32,
    /// The gate at which it waits.
    pub waits: Option<Gate>,
    /// The barrier at which all its sessions wait, or have waited.
    pub barrier: u64,
    /// All its sessions have ended.
    pub left: bool,
    /// Sessions ready.
    pub ready: u32,
    /// Sessions wanted.
    pub wanted: u32,
    /// Rows loaded.
    pub loaded: u64,
    /// Rows its scripts expect.
    pub expected: u64,
    /// How late it began each stage.
    pub late_ns: Vec<u64>,
    /// Number of the first of `news`, from 0.
    pub first: u64,
    /// Events of the share that the coordinator has not acknowledged yet, oldest first; their text is not read here.
    pub news: Vec<String>,
    /// Its share is over.
    pub ended: Option<ShareEnded>,
}

/// How a share ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareEnded {
    /// Why it failed; `None`: it did not fail.
    pub failure: Option<Refusal>,
    /// It was stopped before it was complete.
    pub interrupted: bool,
    /// No session returned failure.
    pub success: bool,
    /// Rows loaded.
    pub loaded: u64,
    /// The record of the share is stored.
    pub stored: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_said() {
        let ours = env!("CARGO_PKG_VERSION");
        assert_eq!(mismatch(ours, PROTOCOL), None);
        assert_eq!(mismatch("0.0.9", 1), Some(("assay 0.0.9".to_owned(), format!("assay {ours}"))));
        let (theirs, here) = mismatch(ours, 1).unwrap();
        assert!(
            theirs.ends_with(" with fleet protocol 1") && here.ends_with(&format!(" {PROTOCOL}")),
            "{theirs}, {here}"
        );
    }

    /// Otherwise an agent of another version would be treated as one that does not answer.
    #[test]
    fn the_answer_of_an_older_agent_is_understood_and_an_older_coordinator_understands_ours() {
        let older = ClockReading { monotonic_ns: -5, wall_ns: 1_700_000_000_000_000_000 };
        let heard: Pong = serde_json::from_slice(&serde_json::to_vec(&older).unwrap()).unwrap();
        assert_eq!((heard.reading, heard.busy), (older, None));
        let ours = Pong { reading: older, busy: Some("r".to_owned()) };
        let heard: ClockReading = serde_json::from_slice(&serde_json::to_vec(&ours).unwrap()).unwrap();
        assert_eq!(heard, older);
    }
}
