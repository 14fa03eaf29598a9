//! The coordinator's view of a run: what agents have reported, and what follows from it.
//!
//! Pure: from what arrives and when, it decides which gates and barriers may open, and which agents are silent or lost.
//! Instants are those of any monotonic clock.

use std::collections::HashMap;
use std::time::Duration;

use crate::messages::{Gate, OpenGate, Orders, Report, ShareEnded};

/// Something for the user, or for the record.
#[derive(Clone, Debug, PartialEq)]
pub enum LeadEvent {
    /// An event of an agent's share.
    News(u32, String),
    /// This many events of an agent's share were dropped before they could be sent.
    Missed(u32, u64),
    /// An agent's share is over.
    Ended(u32, ShareEnded),
    /// There was no message from an agent for a while.
    Silent(u32, Duration),
    /// There is a message from it again.
    Back(u32),
    /// The bus has been unreachable for this long.
    Unreachable(Duration),
    /// The bus can be reached again.
    Reachable,
    /// An agent has been silent for the length of the lease: the run no longer waits for it.
    Lost(u32),
}

/// Sums over agents, for the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leading {
    /// Sessions ready, and wanted.
    pub ready: u32,
    /// All of the stage.
    pub wanted: u32,
    /// Rows loaded, and expected.
    pub loaded: u64,
    /// 0: not known.
    pub expected: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Lead {
    agents: Vec<Agent>,
    orders: Orders,
    claims: HashMap<Vec<u8>, u64>,
    /// What was granted to which claim of which agent: one that asks again gets the same.
    granted: HashMap<(u32, u64), u64>,
    lease: Duration,
    /// Agents that are silent for this long are named.
    patience: Duration,
    /// The last `on_time`; `None`: no messages are expected yet.
    looked_at: Option<Duration>,
}

/// If `on_time` was not called for this long, this process was stopped or cut off, not the agents.
const GAP_MAX: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Default)]
struct Agent {
    report: Report,
    heard_at: Duration,
    silent: bool,
    lost: bool,
}

impl Agent {
    /// Nothing more is expected of it.
    fn is_out(&self) -> bool {
        self.lost || self.report.ended.is_some()
    }
}

impl Lead {
    /// For a run of so many agents, all heard of at `now`.
    pub fn new(agents: u32, lease: Duration, now: Duration) -> Lead {
        let agent = Agent { heard_at: now, ..Agent::default() };
        Lead {
            agents: vec![agent; agents as usize],
            orders: Orders { heard: vec![0; agents as usize], ..Orders::default() },
            claims: HashMap::new(),
            granted: HashMap::new(),
            lease,
            patience: lease / 3,
            looked_at: None,
        }
    }

    /// All agents have taken their shares: from now on, they are expected to send reports.
    pub fn watch(&mut self, now: Duration) {
        self.looked_at = Some(now);
        self.agents.iter_mut().for_each(|agent| agent.heard_at = now);
    }

    /// The orders for all agents.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// Sums for the screen.
    pub fn leading(&self) -> Leading {
        let mut sums = Leading::default();
        for Agent { report, .. } in &self.agents {
            sums.ready += report.ready;
            sums.wanted += report.wanted;
            sums.loaded += report.loaded;
            sums.expected += report.expected;
        }
        sums
    }

    /// How late an agent began each stage.
    pub fn late_ns(&self, agent: u32) -> &[u64] {
        &self.agents[agent as usize].report.late_ns
    }

    /// How an agent's share ended; `None`: it has not, or the agent was lost.
    pub fn ended(&self, agent: u32) -> Option<&ShareEnded> {
        self.agents[agent as usize].report.ended.as_ref()
    }

    /// Whether the run no longer waits for an agent.
    pub fn is_lost(&self, agent: u32) -> bool {
        self.agents[agent as usize].lost
    }

    /// Whether every agent has ended or is lost.
    pub fn is_over(&self) -> bool {
        self.agents.iter().all(Agent::is_out)
    }

    /// Takes an agent's report. Returns what is new in it.
    pub fn on_report(&mut self, report: Report, now: Duration) -> Vec<LeadEvent> {
        let number = report.number;
        let Some(agent) = self.agents.get_mut(number as usize) else { return Vec::new() };
        if agent.lost {
            return Vec::new();
        }
        let mut events = Vec::new();
        if std::mem::take(&mut agent.silent) {
            events.push(LeadEvent::Back(number));
        }
        let heard = &mut self.orders.heard[number as usize];
        if report.first > *heard {
            let missed = report.first - *heard;
            events.push(LeadEvent::Missed(number, missed));
            *heard = report.first;
        }
        for (at, news) in (report.first..).zip(&report.news) {
            if at == *heard {
                *heard += 1;
                events.push(LeadEvent::News(number, news.clone()));
            }
        }
        if let (None, Some(ended)) = (&agent.report.ended, &report.ended) {
            events.push(LeadEvent::Ended(number, ended.clone()));
        }
        (agent.report, agent.heard_at) = (Report { news: Vec::new(), ..report }, now);
        self.open_barriers();
        events
    }

    /// The next number of a counter. The same claim of an agent always gets the same.
    pub fn on_claim(&mut self, agent: u32, claim: u64, name: &[u8]) -> u64 {
        *self.granted.entry((agent, claim)).or_insert_with(|| match self.claims.get_mut(name) {
            Some(next) => {
                *next += 1;
                *next
            }
            None => {
                self.claims.insert(name.to_owned(), 0);
                0
            }
        })
    }

    /// Time has passed. Returns who is silent, and who is lost.
    pub fn on_time(&mut self, now: Duration) -> Vec<LeadEvent> {
        let mut events = Vec::new();
        let Some(looked_at) = &mut self.looked_at else { return events };
        let gap = now.saturating_sub(std::mem::replace(looked_at, now));
        for (number, agent) in (0..).zip(&mut self.agents) {
            if gap > GAP_MAX {
                agent.heard_at = (agent.heard_at + gap).min(now);
            }
            let silence = now.saturating_sub(agent.heard_at);
            if agent.is_out() {
                continue;
            }
            if silence >= self.lease {
                agent.lost = true;
                events.push(LeadEvent::Lost(number));
            } else if silence >= self.patience && !std::mem::replace(&mut agent.silent, true) {
                events.push(LeadEvent::Silent(number, silence));
            }
        }
        self.open_barriers();
        events
    }

    /// The bus has been unreachable for this long. Agents give up after the length of the lease, and so do we: nothing
    /// that they send could arrive any more.
    pub fn on_unreachable(&mut self, since: Duration) -> Vec<LeadEvent> {
        if since < self.lease { Vec::new() } else { self.lose_all() }
    }

    /// No longer waits for any agent.
    pub fn lose_all(&mut self) -> Vec<LeadEvent> {
        let mut events = Vec::new();
        for (number, agent) in (0..).zip(&mut self.agents).filter(|(_, agent)| !agent.is_out()) {
            agent.lost = true;
            events.push(LeadEvent::Lost(number));
        }
        events
    }

    /// The gate at which every agent waits that is still there, unless it is open.
    pub fn gate(&self) -> Option<Gate> {
        let mut gates = self.agents.iter().filter(|agent| !agent.is_out()).map(|agent| agent.report.waits);
        let gate = gates.next()??;
        let is_open = self.orders.gates.iter().any(|open| open.gate == gate);
        (!is_open && gates.all(|other| other == Some(gate))).then_some(gate)
    }

    /// Opens it; `at_ns`: on each agent's monotonic clock, or empty.
    pub fn open(&mut self, gate: Gate, at_ns: Vec<i64>) {
        self.orders.gates.push(OpenGate { gate, at_ns });
    }

    /// Tells agents to stop.
    pub fn stop(&mut self) {
        self.orders.stop = true;
    }

    /// Whether they were asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.orders.stop
    }

    /// Tells agents that the run is over.
    pub fn end(&mut self) {
        self.orders.over = true;
    }

    /// All whose sessions have not all ended wait at the next one. A lost agent's sessions had something to do before
    /// it: the others do not go on without them.
    fn open_barriers(&mut self) {
        if self.agents.iter().any(|agent| agent.lost) {
            return;
        }
        let present = || self.agents.iter().filter(|agent| agent.report.ended.is_none() && !agent.report.left);
        if let Some(all) = present().map(|agent| agent.report.barrier).min() {
            self.orders.barrier = self.orders.barrier.max(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lead(agents: u32) -> Lead {
        let mut lead = Lead::new(agents, 15 * SECOND, SECOND);
        lead.watch(SECOND);
        lead
    }

    #[test]
    fn a_bus_that_stays_unreachable_loses_all_agents_when_the_lease_ends() {
        let mut lead = lead(2);
        assert_eq!(lead.on_unreachable(14 * SECOND), []);
        assert!(!lead.is_over());
        assert_eq!(lead.on_unreachable(15 * SECOND), [LeadEvent::Lost(0), LeadEvent::Lost(1)]);
        assert!(lead.is_over());
        assert_eq!(lead.on_unreachable(16 * SECOND), []);
    }

    /// Every second from one instant to another.
    fn pass(lead: &mut Lead, from: u32, to: u32) -> Vec<LeadEvent> {
        (from + 1..=to).flat_map(|second| lead.on_time(second * SECOND)).collect()
    }

    fn report(number: u32) -> Report {
        Report { number, ..Report::default() }
    }

    #[test]
    fn a_gate_opens_when_all_that_are_left_wait_at_it() {
        let mut lead = lead(3);
        let at = |number| Report { waits: Some(Gate::Stage(0)), ..report(number) };
        lead.on_report(at(0), SECOND);
        lead.on_report(at(1), SECOND);
        assert_eq!(lead.gate(), None);
        lead.on_report(Report { ended: Some(ShareEnded::default()), ..report(2) }, SECOND);
        assert_eq!(lead.gate(), Some(Gate::Stage(0)));
        lead.open(Gate::Stage(0), vec![1, 2, 3]);
        assert_eq!(lead.gate(), None);
    }

    #[test]
    fn a_barrier_opens_when_all_have_arrived_or_left_and_never_without_one_that_was_lost() {
        let mut lead = lead(3);
        let at = |number, barrier| Report { barrier, ..report(number) };
        lead.on_report(at(0, 1), SECOND);
        lead.on_report(at(1, 1), SECOND);
        assert_eq!(lead.orders().barrier, 0);
        lead.on_report(Report { left: true, ..report(2) }, SECOND);
        assert_eq!(lead.orders().barrier, 1);
        lead.on_report(at(0, 2), 10 * SECOND);
        lead.on_report(Report { left: true, ..report(2) }, 10 * SECOND);
        pass(&mut lead, 1, 20);
        assert!(lead.is_lost(1) && !lead.is_lost(0));
        assert_eq!(lead.orders().barrier, 1);
    }

    #[test]
    fn news_that_are_said_again_count_once() {
        let mut lead = lead(1);
        let first = Report { news: vec!["a".to_owned(), "b".to_owned()], ..report(0) };
        assert_eq!(lead.on_report(first.clone(), SECOND).len(), 2);
        assert_eq!(lead.on_report(first, SECOND), []);
        let more = Report { first: 1, news: vec!["b".to_owned(), "c".to_owned()], ..report(0) };
        assert_eq!(lead.on_report(more, SECOND), [LeadEvent::News(0, "c".to_owned())]);
        assert_eq!(lead.orders().heard, [3]);
        // Too many for the agent to keep.
        let late = Report { first: 7, news: vec!["h".to_owned()], ..report(0) };
        assert_eq!(lead.on_report(late, SECOND).len(), 2);
        assert_eq!(lead.orders().heard, [8]);
    }

    #[test]
    fn a_claim_that_is_repeated_gets_the_same_number() {
        let mut lead = lead(2);
        let granted = [(0, 1), (1, 1), (0, 1), (0, 2), (1, 1)].map(|(agent, claim)| lead.on_claim(agent, claim, b"x"));
        assert_eq!(granted, [0, 1, 0, 2, 1]);
        assert_eq!(lead.on_claim(1, 2, b"y"), 0);
    }

    #[test]
    fn a_silent_agent_is_named_and_then_lost_for_good() {
        let mut lead = lead(2);
        assert_eq!(pass(&mut lead, 1, 5), []);
        lead.on_report(report(1), 6 * SECOND);
        assert_eq!(pass(&mut lead, 5, 7), [LeadEvent::Silent(0, 5 * SECOND)]);
        assert_eq!(lead.on_report(report(0), 8 * SECOND), [LeadEvent::Back(0)]);
        lead.on_report(Report { ended: Some(ShareEnded::default()), ..report(1) }, 9 * SECOND);
        assert_eq!(pass(&mut lead, 7, 23), [LeadEvent::Silent(0, 5 * SECOND), LeadEvent::Lost(0)]);
        assert!(lead.is_over());
        // Later messages are useless: the others have continued without it.
        assert_eq!(lead.on_report(Report { news: vec!["late".to_owned()], ..report(0) }, 24 * SECOND), []);
    }

    #[test]
    fn a_coordinator_that_was_stopped_calls_no_agent_silent() {
        let mut lead = lead(1);
        assert_eq!(pass(&mut lead, 1, 4), []);
        assert_eq!(lead.on_time(60 * SECOND), []);
        assert_eq!(pass(&mut lead, 60, 62), [LeadEvent::Silent(0, 5 * SECOND)]);
    }
}
