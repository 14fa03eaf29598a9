//! A run that several processes shared: their records become one.
//!
//! Counts and histograms are added, interval by interval: the percentiles of the whole are those of all transactions
//! together, never a mean of percentiles. What each agent did is kept beside it.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::agents::{AgentPart, AgentStage};
use crate::latencies::{EncodedHistogram, Latencies};
use crate::measurements::{
    ByClass, CounterTally, ErrorTally, Generator, Interval, Stage, StatementTally, Tally, TargetInterval,
    TransactionTally,
};
use crate::time::Time;
use crate::trial::Record;

/// What is known of an agent when the shares are put together.
#[derive(Clone, Debug, Default)]
pub struct Share {
    /// Name, number, status, failure and clocks; the rest comes from the record.
    pub agent: AgentPart,
    /// How late it began each stage.
    pub late_ns: Vec<u64>,
    /// What it measured; `None`: nothing arrived.
    pub record: Option<Record>,
}

impl Latencies {
    /// All of `parts` together: exact in everything that each is exact in.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Latencies>) -> Latencies {
        let parts: Vec<&Latencies> = parts.into_iter().filter(|part| part.count > 0).collect();
        let histograms: Vec<&EncodedHistogram> = parts.iter().filter_map(|part| part.histogram.as_ref()).collect();
        let histogram = match histograms[..] {
            [] => None,
            [one] => Some(one.clone()),
            [first, ..] => {
                let mut sum: Histogram<u64> = first.decode();
                sum.auto(true);
                for other in &histograms[1..] {
                    // One that grows takes any value.
                    let _ = sum.add(other.decode());
                }
                Some(EncodedHistogram::new(&sum))
            }
        };
        Latencies {
            count: saturating(parts.iter().map(|part| part.count)),
            min_ns: parts.iter().map(|part| part.min_ns).min().unwrap_or(0),
            max_ns: parts.iter().map(|part| part.max_ns).max().unwrap_or(0),
            sum_ns: parts.iter().fold(0, |sum, part| sum.saturating_add(part.sum_ns)),
            over: saturating(parts.iter().map(|part| part.over)),
            histogram,
        }
    }
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
            for (name, value) in &record.manifest.options {
                self.manifest.options.entry(name.clone()).or_insert_with(|| value.clone());
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
        let hosts = || records.iter().map(|(_, record)| &record.environment.host);
        self.environment.host.cpus = hosts().map(|host| host.cpus).sum();
        self.environment.host.memory_bytes = saturating(hosts().map(|host| host.memory_bytes));
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
        total: tally(&stages().map(|stage| &stage.total).collect::<Vec<_>>(), types),
        targets: (0..targets)
            .map(|number| tally(&stages().filter_map(|stage| stage.targets.get(number)).collect::<Vec<_>>(), types))
            .collect(),
        session_transactions_min: served().map(|(_, _, stage)| stage.session_transactions_min).min().unwrap_or(0),
        session_transactions_max: served().map(|(_, _, stage)| stage.session_transactions_max).max().unwrap_or(0),
        generator: generator(&stages().map(|stage| &stage.generator).collect::<Vec<_>>()),
        intervals: intervals(parts, types, measured_ns),
    })
}

/// Workers and machines of agents add up; what is said of the busiest is said of the busiest of all.
fn generator(parts: &[&Generator]) -> Generator {
    let sum = |of: fn(&Generator) -> u64| saturating(parts.iter().map(|part| of(part)));
    Generator {
        cpu_user_ns: sum(|part| part.cpu_user_ns),
        cpu_system_ns: sum(|part| part.cpu_system_ns),
        switches_involuntary: sum(|part| part.switches_involuntary),
        switches_voluntary: sum(|part| part.switches_voluntary),
        turns: sum(|part| part.turns),
        events: sum(|part| part.events),
        cpu_wait_ns: parts.iter().map(|part| part.cpu_wait_ns).collect::<Option<Vec<_>>>().map(saturating),
        longest_wait_ppm: parts.iter().filter_map(|part| part.longest_wait_ppm).max(),
        busiest_worker_ppm: parts.iter().map(|part| part.busiest_worker_ppm).max().unwrap_or(0),
        workers: parts.iter().map(|part| part.workers).sum(),
        memory_max_bytes: sum(|part| part.memory_max_bytes),
    }
}

fn tally(parts: &[&Tally], types: &[String]) -> Tally {
    let sum = |of: fn(&Tally) -> u64| saturating(parts.iter().map(|part| of(part)));
    let latencies = |of: fn(&Tally) -> &Latencies| Latencies::sum(parts.iter().map(|part| of(part)));
    let class = |of: fn(&ByClass<StatementTally>) -> &StatementTally| StatementTally {
        count: saturating(parts.iter().map(|part| of(&part.statements).count)),
        service: Latencies::sum(parts.iter().map(|part| &of(&part.statements).service)),
    };
    let transactions = transactions(parts, types);
    // What an agent that was lost had under way has not ended, as far as anybody knows.
    let ended = saturating(transactions.iter().map(|one| one.count + one.rolled_back + one.failed));
    let gone = sum(|part| part.stopped + part.dropped + part.unstarted + part.unfinished);
    let under_way = sum(|part| part.due).saturating_sub(ended.saturating_add(gone));
    Tally {
        transactions,
        counters: counters(parts),
        statements: ByClass {
            read: class(|classes| &classes.read),
            write: class(|classes| &classes.write),
            other: class(|classes| &classes.other),
        },
        errors: errors(parts),
        reconnects: sum(|part| part.reconnects),
        due: sum(|part| part.due),
        dropped: sum(|part| part.dropped),
        unstarted: sum(|part| part.unstarted),
        unfinished: sum(|part| part.unfinished).saturating_add(under_way),
        stopped: sum(|part| part.stopped),
        wait: latencies(|part| &part.wait),
        lag: latencies(|part| &part.lag),
    }
}

/// By name, in the order of `types`: agents meet types in different order.
fn transactions(parts: &[&Tally], types: &[String]) -> Vec<TransactionTally> {
    let of_type = |name: &String| {
        let of_type: Vec<&TransactionTally> =
            parts.iter().flat_map(|part| &part.transactions).filter(|one| one.name == *name).collect();
        let sum = |of: fn(&TransactionTally) -> u64| saturating(of_type.iter().map(|one| of(one)));
        TransactionTally {
            name: name.clone(),
            count: sum(|one| one.count),
            rolled_back: sum(|one| one.rolled_back),
            failed: sum(|one| one.failed),
            retries: sum(|one| one.retries),
            retries_in_doubt: sum(|one| one.retries_in_doubt),
            failed_in_doubt: sum(|one| one.failed_in_doubt),
            response: Latencies::sum(of_type.iter().map(|one| &one.response)),
            service: Latencies::sum(of_type.iter().map(|one| &one.service)),
        }
    };
    types.iter().map(of_type).collect()
}

fn counters(parts: &[&Tally]) -> Vec<CounterTally> {
    let mut sums: Vec<CounterTally> = Vec::new();
    for counter in parts.iter().flat_map(|part| &part.counters) {
        match sums.iter_mut().find(|known| known.name == counter.name) {
            Some(known) => {
                known.transactions = known.transactions.saturating_add(counter.transactions);
                known.sum = known.sum.saturating_add(counter.sum);
                known.squares = known.squares.saturating_add(counter.squares);
            }
            None => sums.push(counter.clone()),
        }
    }
    sums
}

fn errors(parts: &[&Tally]) -> Vec<ErrorTally> {
    let mut sums: Vec<ErrorTally> = Vec::new();
    let same = |a: &ErrorTally, b: &ErrorTally| {
        (&a.origin, &a.class, a.number, &a.state) == (&b.origin, &b.class, b.number, &b.state)
    };
    for error in parts.iter().flat_map(|part| &part.errors) {
        match sums.iter_mut().find(|known| same(known, error)) {
            Some(known) => known.count = known.count.saturating_add(error.count),
            None => sums.push(error.clone()),
        }
    }
    sums
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
    by_start.into_values().enumerate().map(|(number, of_start)| sum(&of_start, types, length(number))).collect()
}

/// One interval of all agents; at least one of them is in `parts`. Each with the names of its types.
pub fn interval_of_all(parts: &[(&[String], &Interval)], types: &[String]) -> Interval {
    sum(parts, types, parts.iter().map(|(_, interval)| interval.length_ns).max().unwrap_or(0))
}

fn sum(parts: &[(&[String], &Interval)], types: &[String], length_ns: u64) -> Interval {
    let intervals = || parts.iter().map(|(_, interval)| *interval);
    let add = |of: fn(&Interval) -> u64| saturating(intervals().map(of));
    let all = |of: fn(&Interval) -> Option<u64>| intervals().map(of).collect::<Option<Vec<_>>>().map(saturating);
    let of_type = |name: &String| {
        let of_agent = |(names, interval): &(&[String], &Interval)| {
            let number = names.iter().position(|known| known == name)?;
            interval.transactions.get(number).copied()
        };
        saturating(parts.iter().filter_map(of_agent))
    };
    let targets = intervals().map(|interval| interval.targets.len()).max().unwrap_or(0);
    let target = |number: usize| {
        let of_target = || intervals().filter_map(|interval| interval.targets.get(number));
        TargetInterval {
            transactions: saturating(of_target().map(|target| target.transactions)),
            first_done_ns: of_target().filter_map(|target| target.first_done_ns).min(),
            last_done_ns: of_target().filter_map(|target| target.last_done_ns).max(),
            errors_by_class: by_class(of_target().map(|target| &target.errors_by_class)),
        }
    };
    Interval {
        start_ns: intervals().map(|interval| interval.start_ns).min().unwrap_or(0),
        length_ns,
        transactions: types.iter().map(of_type).collect(),
        statements: ByClass {
            read: add(|interval| interval.statements.read),
            write: add(|interval| interval.statements.write),
            other: add(|interval| interval.statements.other),
        },
        errors: add(|interval| interval.errors),
        retries: add(|interval| interval.retries),
        failed: add(|interval| interval.failed),
        reconnects: add(|interval| interval.reconnects),
        due: all(|interval| interval.due),
        backlog: add(|interval| interval.backlog),
        backlog_max: all(|interval| interval.backlog_max),
        first_done_ns: intervals().filter_map(|interval| interval.first_done_ns).min(),
        last_done_ns: intervals().filter_map(|interval| interval.last_done_ns).max(),
        errors_by_class: by_class(intervals().map(|interval| &interval.errors_by_class)),
        targets: (0..targets).map(target).collect(),
        sessions: intervals().map(|interval| interval.sessions).fold(0, u32::saturating_add),
        cpu_ns: add(|interval| interval.cpu_ns),
        cpu_wait_ns: all(|interval| interval.cpu_wait_ns),
        response: Latencies::sum(intervals().map(|interval| &interval.response)),
    }
}

fn by_class<'a>(parts: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (class, count) in parts.flatten() {
        let sum: &mut u64 = sums.entry(class.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    sums
}

fn saturating(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;
    use crate::trial::Manifest;

    /// A latency distribution of these values.
    fn latencies(values: &[u64]) -> Latencies {
        Latencies {
            count: values.len() as u64,
            min_ns: values.iter().copied().min().unwrap_or(0),
            max_ns: values.iter().copied().max().unwrap_or(0),
            sum_ns: values.iter().map(|value| u128::from(*value)).sum(),
            over: 0,
            histogram: (!values.is_empty()).then(|| EncodedHistogram::of(values.iter().map(|value| (*value, 1)))),
        }
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
        let [sum, all] = [sum, all].map(|one| one.histogram.unwrap().decode());
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
