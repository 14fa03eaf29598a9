//! The agents of a fleet, each apart.

use assay_record as record;
use assay_record::{AgentPart, ClockOffset, Status};
use serde::Serialize;

use crate::findings::arithmetic::per_second;
use crate::findings::latency::{LatencyFindings, distribution, latency_findings};

/// One agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentFindings {
    /// Its name.
    pub name: String,
    /// Which share it had, from 0.
    pub number: u32,
    /// Outcome of its share; `running`: the agent was lost.
    pub status: Status,
    /// Why it failed.
    pub failure: Option<String>,
    /// Its machine.
    pub host: String,
    /// CPUs that it could use.
    pub cpus: u32,
    /// Its clock against the coordinator's, before the run.
    pub clock_before: Option<ClockOffset>,
    /// Offset of its clock after the run.
    pub clock_after: Option<ClockOffset>,
    /// Its share of each stage.
    pub stages: Vec<AgentStageFindings>,
}

/// An agent's share of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentStageFindings {
    /// Sessions that it drove.
    pub sessions: u32,
    /// Delay of its start against the agreed time.
    pub late_ns: u64,
    /// Transactions that finished well.
    pub transactions: u64,
    /// Transactions per second of its measured time.
    pub tps: f64,
    /// Number of errors.
    pub errors: u64,
    /// Response times of all types.
    pub response: LatencyFindings,
    /// sent − due.
    pub lag: LatencyFindings,
    /// CPU time of the agent, of all CPUs that it could use, 0 … 1; `None`: not known.
    pub cpu_share: Option<f64>,
    /// Share of the measured time the busiest worker was not asleep, 0 … 1.
    pub busiest_worker: f64,
}

/// Findings about the agents of a record.
pub(crate) fn agent_findings(agents: &[AgentPart]) -> Vec<AgentFindings> {
    let agent = |agent: &AgentPart| AgentFindings {
        name: agent.name.clone(),
        number: agent.number,
        status: agent.status,
        failure: agent.failure.clone(),
        host: agent.host.name.clone(),
        cpus: agent.host.cpus,
        clock_before: agent.clock_before,
        clock_after: agent.clock_after,
        stages: agent.stages.iter().map(|stage| stage_findings(stage, agent.host.cpus)).collect(),
    };
    agents.iter().map(agent).collect()
}

fn stage_findings(stage: &record::AgentStage, cpus: u32) -> AgentStageFindings {
    let generator = &stage.generator;
    let cpu = generator.cpu_user_ns.saturating_add(generator.cpu_system_ns) as f64;
    let available = stage.measured_ns as f64 * f64::from(cpus);
    AgentStageFindings {
        sessions: stage.sessions,
        late_ns: stage.late_ns,
        transactions: stage.transactions,
        tps: per_second(stage.transactions, stage.measured_ns),
        errors: stage.errors,
        response: latency_findings(&distribution(&stage.response)),
        lag: latency_findings(&distribution(&stage.lag)),
        cpu_share: (available > 0.0).then(|| cpu / available),
        busiest_worker: f64::from(generator.busiest_worker_ppm) / 1e6,
    }
}
