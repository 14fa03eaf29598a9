//! A run that several processes shared: their records become one.
//!
//! Counts and histograms are added, interval by interval: the percentiles of the whole are those of all transactions
//! together, never a mean of percentiles. What each agent did is kept beside it.

use std::collections::BTreeMap;

use assay_measure::{Generator, Interval, Latencies, Tally};

use crate::agents::{AgentPart, AgentStage};
use crate::host::{self, Host};
use crate::stage::Stage;
use crate::time::Time;
use crate::trial::Record;

/// One agent's contribution, as known when all are added up.
#[derive(Clone, Debug, Default)]
pub struct Share {
    /// Name, number, status, failure and clocks; the rest comes from the record.
    pub agent: AgentPart,
    /// How late it began each stage.
    pub late_ns: Vec<u64>,
    /// Its measurements; `None`: nothing arrived.
    pub record: Option<Record>,
}

impl Record {
    /// Takes in what the agents of the run measured; `self` holds what was asked for, and where. `starts_ns`: when the
    /// measured part of each stage began, since the start of the run.
    pub fn take_shares(&mut self, shares: Vec<Share>, starts_ns: &[u64]) {
        let records: Vec<(u32, &Record)> =
            shares.iter().filter_map(|share| Some((share.agent.number, share.record.as_ref()?))).collect();
        let agents = u32::try_from(shares.len()).unwrap_or(u32::MAX);
        for (_, record) in &records {
            for name in &record.types {
                if !self.types.contains(name) {
                    self.types.push(name.clone());
                }
            }
            for rule in &record.rules {
                if !self.rules.iter().any(|known| known.name == rule.name) {
                    self.rules.push(rule.clone());
                }
            }
            for rate in &record.rates {
                if !self.rates.iter().any(|known| known.name == rate.name) {
                    self.rates.push(rate.clone());
                }
            }
            if let Some(work) = &record.work {
                self.work.get_or_insert_default().add_named(work);
            }
            for (name, value) in &record.manifest.options {
                self.manifest.options.entry(name.clone()).or_insert_with(|| value.clone());
            }
            if let Some(found) = &record.manifest.found {
                self.manifest.found.get_or_insert_default().extend(found.iter().cloned());
            }
            for (name, asked) in &record.manifest.asked {
                self.manifest.asked.insert(name.clone(), asked.clone());
                self.manifest
                    .options
                    .extend(record.manifest.options.get(name).map(|value| (name.clone(), value.clone())));
            }
            for (server, theirs) in self.environment.servers.iter_mut().zip(&record.environment.servers) {
                if server.product.is_empty() {
                    (server.product, server.version) = (theirs.product.clone(), theirs.version.clone());
                    server.tls.clone_from(&theirs.tls);
                }
            }
        }
        let stages = records.iter().map(|(_, record)| record.stages.len()).max().unwrap_or(0);
        self.stages = (0..stages)
            .filter_map(|number| {
                let of_stage: Vec<(u32, &Record, &Stage)> = records
                    .iter()
                    .filter_map(|(agent, record)| Some((*agent, *record, record.stages.get(number)?)))
                    .collect();
                let start_ns = starts_ns.get(number).copied();
                stage(&of_stage, agents, &self.types, self.started, start_ns)
            })
            .collect();
        let hosts: Vec<&Host> = records.iter().map(|(_, record)| &record.environment.host).collect();
        let (cpus, memory_bytes) = host::of_all_machines(&hosts);
        let host = &mut self.environment.host;
        (host.cpus, host.memory_bytes, host.cpu_list) = (cpus, memory_bytes, String::new());
        self.manifest.workers = records.iter().map(|(_, record)| record.manifest.workers).sum();
        if let Some((_, record)) = records.first() {
            self.environment.host.cpu_model.clone_from(&record.environment.host.cpu_model);
            self.environment.host.kernel.clone_from(&record.environment.host.kernel);
            self.manifest.event_loop.clone_from(&record.manifest.event_loop);
            self.environment.facts.clone_from(&record.environment.facts);
        }
        drop(records);
        self.agents = shares.into_iter().map(|share| part(share, agents)).collect();
        let hosts: Vec<&str> =
            self.agents.iter().map(|agent| agent.host.name.as_str()).filter(|name| !name.is_empty()).collect();
        self.environment.host.name = some_of(&hosts);
    }
}

/// The different ones, up to three by name.
fn some_of(hosts: &[&str]) -> String {
    let mut names: Vec<&str> = hosts.to_vec();
    names.sort_unstable();
    names.dedup();
    match &names[..] {
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second}, {third} and {} more", rest.len())
        }
        _ => names.join(", "),
    }
}

/// How many of `sessions` an agent drives.
fn own_sessions(sessions: u32, agent: u32, agents: u32) -> u32 {
    sessions / agents.max(1) + u32::from(agent < sessions % agents.max(1))
}

fn part(share: Share, agents: u32) -> AgentPart {
    let Share { mut agent, late_ns, record } = share;
    let Some(record) = record else { return agent };
    agent.host = record.environment.host;
    let of_stage = |(number, stage): (usize, Stage)| AgentStage {
        sessions: own_sessions(stage.sessions, agent.number, agents),
        late_ns: late_ns.get(number).copied().unwrap_or(0),
        measured_ns: stage.measured_ns,
        transactions: saturating(stage.total.transactions.iter().map(|one| one.count)),
        errors: saturating(stage.total.errors.iter().map(|one| one.count)),
        response: Latencies::sum(stage.total.transactions.iter().map(|one| &one.response)),
        lag: stage.total.lag,
        generator: stage.generator,
    };
    agent.stages = record.stages.into_iter().enumerate().map(of_stage).collect();
    agent
}

/// `None` when no agent has begun it.
fn stage(
    parts: &[(u32, &Record, &Stage)],
    agents: u32,
    types: &[String],
    started: Time,
    start_ns: Option<u64>,
) -> Option<Stage> {
    let (_, _, first) = parts.first()?;
    let stages = || parts.iter().map(|(_, _, stage)| *stage);
    let measured_ns = stages().map(|stage| stage.measured_ns).max().unwrap_or(0);
    let served = || parts.iter().filter(|(agent, _, stage)| own_sessions(stage.sessions, *agent, agents) > 0);
    let targets = stages().map(|stage| stage.targets.len()).max().unwrap_or(0);
    let at = |ns: u64| Time::from_unix_ms(started.unix_ms() + ns / 1_000_000);
    Some(Stage {
        sessions: first.sessions,
        rate_per_s: first.rate_per_s,
        started: start_ns.map_or(first.started, at),
        start_ns: start_ns.or(first.start_ns),
        measured_ns,
        total: tally(stages().map(|stage| &stage.total), types),
        targets: (0..targets)
            .map(|number| tally(stages().filter_map(|stage| stage.targets.get(number)), types))
            .collect(),
        session_transactions_min: served().map(|(_, _, stage)| stage.session_transactions_min).min().unwrap_or(0),
        session_transactions_max: served().map(|(_, _, stage)| stage.session_transactions_max).max().unwrap_or(0),
        generator: Generator::sum(stages().map(|stage| &stage.generator)),
        // Agents are halted one by one.
        halts_ns: None,
        intervals: intervals(parts, types, measured_ns),
    })
}

/// What an agent that was lost had under way has not ended, as far as anybody knows.
fn tally<'a>(parts: impl Iterator<Item = &'a Tally>, types: &[String]) -> Tally {
    let parts: Vec<&Tally> = parts.collect();
    let mut counters: Vec<String> = Vec::new();
    for counter in parts.iter().flat_map(|part| &part.counters) {
        if !counters.contains(&counter.name) {
            counters.push(counter.name.clone());
        }
    }
    // Agents meet types and counters in different order.
    let mut sum = Tally::default().arrange(types, &counters);
    parts.into_iter().for_each(|part| sum.add(&part.clone().arrange(types, &counters)));
    sum.unfinished = sum.unfinished.saturating_add(sum.due.saturating_sub(sum.accounted()));
    sum.at_rest()
}

/// Agents begin at one instant, so intervals of one start belong together. Those behind an agent's last, which may be
/// longer than the others, join it.
fn intervals(parts: &[(u32, &Record, &Stage)], types: &[String], measured_ns: u64) -> Vec<Interval> {
    let ends: Vec<u64> = parts.iter().filter_map(|(_, _, stage)| Some(stage.intervals.last()?.start_ns)).collect();
    let latest = ends.iter().copied().max().unwrap_or(0);
    let usual = parts.first().map_or(0, |(_, record, _)| record.manifest.interval_ns);
    // One that ended long before the others was lost.
    let last = ends.iter().copied().filter(|end| end.saturating_add(usual) >= latest).min().unwrap_or(latest);
    let mut by_start: BTreeMap<u64, Vec<(&[String], &Interval)>> = BTreeMap::new();
    for (_, record, stage) in parts {
        for interval in &stage.intervals {
            by_start.entry(interval.start_ns.min(last)).or_default().push((&record.types, interval));
        }
    }
    let starts: Vec<u64> = by_start.keys().copied().chain([measured_ns]).collect();
    let length = |number: usize| starts[number + 1].saturating_sub(starts[number]);
    let sum = |(number, parts): (usize, Vec<_>)| Interval { length_ns: length(number), ..Interval::sum(&parts, types) };
    by_start.into_values().enumerate().map(sum).collect()
}

fn saturating(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use assay_measure::TransactionTally;

    use super::*;
    use crate::status::Status;
    use crate::trial::Manifest;

    /// A latency distribution of these values.
    fn latencies(values: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        values.iter().for_each(|value| latencies.record(*value));
        latencies
    }

    /// Values over six orders of magnitude, some many times.
    fn values(seed: u64, count: u64) -> Vec<u64> {
        let value =
            |i: u64| (seed + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10u64.pow((3 + (seed + i) % 6) as u32) + 1;
        (0..count).map(value).collect()
    }

    fn transaction(name: &str, values: &[u64]) -> TransactionTally {
        let response = latencies(values);
        TransactionTally { name: name.into(), count: response.count, response, ..TransactionTally::default() }
    }

    /// A record of one stage of 5 sessions with these types and one interval per list.
    fn record(types: &[&str], by_type: &[Vec<u64>], lengths: &[u64]) -> Record {
        let total = Tally {
            transactions: types.iter().zip(by_type).map(|(name, values)| transaction(name, values)).collect(),
            due: by_type.iter().map(|values| values.len() as u64).sum(),
            ..Tally::default()
        };
        let mut start_ns = 0;
        let mut intervals = Vec::new();
        for length_ns in lengths {
            let transactions = by_type.iter().map(|values| values.len() as u64).collect();
            let response = latencies(&by_type.concat());
            intervals.push(Interval { start_ns, length_ns: *length_ns, transactions, response, ..Interval::default() });
            start_ns += length_ns;
        }
        let measured_ns = start_ns;
        let stage = Stage {
            sessions: 5,
            rate_per_s: None,
            started: Time::default(),
            start_ns: Some(9),
            measured_ns,
            total,
            targets: Vec::new(),
            session_transactions_min: 3,
            session_transactions_max: 4,
            generator: Generator { workers: 2, cpu_user_ns: 7, busiest_worker_ppm: 5, ..Generator::default() },
            halts_ns: None,
            intervals,
        };
        let manifest = Manifest { interval_ns: 10, workers: 2, ..Manifest::default() };
        let types = types.iter().map(|name| (*name).to_owned()).collect();
        Record { manifest, types, stages: vec![stage], status: Status::Complete, ..Record::default() }
    }

    fn merged(records: Vec<Option<Record>>) -> Record {
        let share = |(number, record): (usize, Option<Record>)| {
            let status = record.as_ref().map_or(Status::Running, |record| record.status);
            let agent = AgentPart { number: number as u32, status, ..AgentPart::default() };
            Share { agent, late_ns: Vec::new(), record }
        };
        let mut whole = Record::default();
        whole.take_shares(records.into_iter().enumerate().map(share).collect(), &[30]);
        whole
    }

    #[test]
    fn the_distribution_of_the_whole_is_that_of_all_values_together() {
        let parts: Vec<Vec<u64>> = (0..7).map(|agent| values(agent * 1000, agent * 143)).collect();
        let sum = Latencies::sum(&parts.iter().map(|part| latencies(part)).collect::<Vec<_>>());
        let all = latencies(&parts.concat());
        assert_eq!((sum.count, sum.min_ns, sum.max_ns, sum.sum_ns), (all.count, all.min_ns, all.max_ns, all.sum_ns));
        let [sum, all] = [sum, all].map(|one| one.histogram().unwrap());
        for ppm in (0..=1_000_000).step_by(500) {
            let quantile = f64::from(ppm) / 1e6;
            assert_eq!(sum.value_at_quantile(quantile), all.value_at_quantile(quantile), "{quantile}");
        }
        assert_eq!(Latencies::sum([]), Latencies::default());
    }

    #[test]
    fn types_that_agents_met_in_another_order_are_added_by_name() {
        let one = record(&["shop", "buy", "look"], &[vec![], vec![10, 20], vec![5]], &[10, 10]);
        let other = record(&["shop", "look"], &[vec![], vec![7, 8, 9]], &[10, 10]);
        let whole = merged(vec![Some(one), Some(other)]);
        assert_eq!(whole.types, ["shop", "buy", "look"]);
        let counts: Vec<u64> = whole.stages[0].total.transactions.iter().map(|one| one.count).collect();
        assert_eq!(counts, [0, 2, 4]);
        assert_eq!(whole.stages[0].intervals[1].transactions, [0, 2, 4]);
        assert_eq!(whole.stages[0].total.due, 6);
        assert_eq!(whole.stages[0].intervals[0].response.count, 6);
        assert_eq!(whole.stages[0].start_ns, Some(30));
    }

    #[test]
    fn what_agents_did_is_added_and_kept_apart() {
        let of_agent = || record(&["shop"], &[vec![3]], &[10]);
        let whole = merged(vec![Some(of_agent()), Some(of_agent()), None]);
        let generator = whole.stages[0].generator;
        assert_eq!((generator.workers, generator.cpu_user_ns, generator.busiest_worker_ppm), (4, 14, 5));
        let sessions: Vec<Vec<u32>> =
            whole.agents.iter().map(|agent| agent.stages.iter().map(|stage| stage.sessions).collect()).collect();
        // The lost one's share is not known to have been done.
        assert_eq!(sessions, [vec![2], vec![2], vec![]]);
        assert_eq!(whole.agents[2].status, Status::Running);
        assert_eq!((whole.manifest.workers, whole.stages[0].session_transactions_min), (4, 3));
    }

    #[test]
    fn intervals_of_one_start_belong_together_and_the_last_may_be_longer() {
        let one = record(&["shop"], &[vec![1]], &[10, 10, 13]);
        let other = record(&["shop"], &[vec![1]], &[10, 10, 10, 4]);
        let lost = record(&["shop"], &[vec![1]], &[10]);
        let whole = merged(vec![Some(one), Some(other), Some(lost)]);
        let found: Vec<(u64, u64, u64)> = whole.stages[0]
            .intervals
            .iter()
            .map(|interval| (interval.start_ns, interval.length_ns, interval.transactions[0]))
            .collect();
        assert_eq!(found, [(0, 10, 3), (10, 10, 2), (20, 14, 3)]);
        assert_eq!(whole.stages[0].measured_ns, 34);
    }
}
