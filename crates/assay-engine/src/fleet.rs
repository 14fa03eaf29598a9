//! A run that several processes share: what one of them has to know of the others.
//!
//! Agent `k` of `n` drives the sessions whose number is `k` modulo `n`, with the workers whose number is: the same
//! sessions, with the same seeds and the same part of the schedule, as that many more workers of one process would
//! have. What a script has in common over all its sessions (`assay.claim`, `assay.barrier`) is asked of the fleet.
//! How agents reach each other is not known here.

use assay_seam::Nanos;

/// One of the processes that share a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Counted from 0. number < agents
    pub number: u32,
    /// All of them. 1 <= agents
    pub agents: u32,
}

impl Agent {
    /// A process that shares its run with nobody.
    pub const ALONE: Agent = Agent { number: 0, agents: 1 };

    /// Number, over all agents that have as many workers each, of this agent's worker `own`.
    pub fn worker(self, own: usize) -> usize {
        self.number as usize + own * self.agents as usize
    }

    /// Its part of `total` things that are dealt to agents in turn, such as sessions; the parts of all add up.
    pub fn part_of(self, total: u64) -> u64 {
        let (agents, number) = (u64::from(self.agents), u64::from(self.number));
        total / agents + u64::from(number < total % agents)
    }
}

/// Where agents wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// Before sessions connect: the first agent has run the script's `init`.
    Sessions,
    /// Before a stage begins: every session of it is ready.
    Stage(usize),
    /// Before the script's `done`: every session has ended.
    Done,
}

/// The other processes of a run. Called from several threads; never blocks.
pub trait Fleet: Send + Sync {
    /// Which of them this process is.
    fn agent(&self) -> Agent;

    /// Asks for the next number of a named counter that all agents share, counted from 0. `granted` is called once,
    /// from any thread, unless the run ends before.
    fn claim(&self, name: &[u8], granted: Box<dyn FnOnce(u64) + Send>);

    /// All sessions of this process that have not ended wait at the barrier of this generation, counted from 1.
    /// `opened` is called once those of all agents do, unless the run ends before.
    fn arrive(&self, generation: u64, opened: Box<dyn FnOnce() + Send>);

    /// All sessions of this process have ended: none will arrive at a barrier again.
    fn leave(&self);

    /// Says that this process waits at `gate`, and asks whether all others have come as far: when to go on, on the
    /// clock of `now`. Asked again and again; a session's statements do not wait for the answer.
    fn passes(&self, gate: Gate, now: Nanos) -> Option<Nanos>;
}
