//! The coordinator of a run: finds agents, gives them shares, starts them together, and shows their sum.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use assay_engine::{End, Outcome, Plan};
use assay_fleet::{
    Answer, Bus, Database, Gate, LeadEvent, Leader, Nats, Offsets, Order, PROTOCOL, Presence, Refusal, ShareEnded,
    mismatch,
};
use assay_io::Clock;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_record::{
    self as record, AgentPart, ClockOffset, Fold, Host, Interval, ReadHistory, Record, Share, StageInterval, Status,
};
use assay_seam::Nanos;
use assay_spec::{FleetSpec, RunSpec};

use crate::fleet::{parcel, trouble_of};

/// What is to be shared.
pub struct Work<'a> {
    /// What is asked for, with a seed. Without a number of workers: as many as the smallest agent has CPUs.
    pub spec: &'a RunSpec,
    /// The databases, with passwords.
    pub urls: &'a [String],
    /// All sessions take part.
    pub is_parallel: bool,
    /// The plan, of which this process does nothing itself.
    pub plan: &'a Plan,
    /// Print only warnings.
    pub quiet: bool,
}

/// The agents of a run, with their shares.
pub struct Crew {
    bus: Bus,
    run: String,
    leader: Leader,
    agents: Vec<Presence>,
    clocks: Vec<Option<Offsets>>,
    /// By number.
    heard: Vec<Heard>,
    is_unreachable: bool,
}

/// The record of an agent, as far as it has sent it: used if what it stored cannot be fetched.
#[derive(Clone, Default)]
struct Heard {
    fold: Fold,
    /// Intervals that are not in any totals yet.
    waiting: Vec<record::Event>,
}

impl Heard {
    fn take(&mut self, event: record::Event) {
        match event {
            record::Event::Interval(_) => self.waiting.push(event),
            record::Event::SoFar(_) => {
                self.waiting.drain(..).for_each(|interval| self.fold.take(interval));
                self.fold.take(event);
            }
            _ => self.fold.take(event),
        }
    }
}

/// What a run came to.
pub struct Course {
    /// How each agent's share ended; `None`: the agent was lost.
    pub ended: Vec<Option<ShareEnded>>,
    /// The user interrupted.
    pub interrupted: bool,
    /// Since the start of the run.
    pub elapsed: Nanos,
    /// When the measured part of each stage began, since the start of the run.
    pub starts_ns: Vec<u64>,
}

/// Watches a run from the coordinator.
pub trait Screen {
    /// The run begins: the clock of all instants, and the start on it.
    fn begins(&mut self, clock: Clock, started: Nanos);
    /// A stage will begin; when its measured part does, since the start of the run.
    fn stage_begins(&mut self, stage: usize, measured_from: Nanos);
    /// An interval of all agents.
    fn interval(&mut self, stage: usize, interval: &Interval, types: &[String]);
    /// Sums: sessions ready and wanted, rows loaded and expected.
    fn progress(&mut self, ready: u32, wanted: u32, loaded: u64, expected: u64, elapsed: Nanos);
    /// A line of a script.
    fn line(&mut self, text: &str);
    /// Something to do about.
    fn warning(&mut self, text: &str);
    /// Gets ready for a stage, in little time. Returns how long after the call it can start.
    fn get_ready(&self) -> Nanos;
}

/// Agents that have just been started are waited for this long.
const GATHER_TIME: Duration = Duration::from_secs(10);
/// Agents are free as soon as they hear that the run is over. One that is gone does not answer, and is not waited for.
const DISMISS_TIME: Duration = Duration::from_secs(10);
/// From the order to start until the first stage: enough time to reach every agent over any network.
const AHEAD_FIRST: Duration = Duration::from_secs(3);
/// Lead of later stages, during which everybody waits.
const AHEAD: Duration = Duration::from_secs(1);
/// Time between two checks.
const LOOK_AROUND: Duration = Duration::from_millis(100);
/// An agent whose intervals are missing for this long is named.
const LAG_TIME: Duration = Duration::from_secs(3);

impl Crew {
    /// Finds agents and gives them their shares. None has connected to the database yet when this returns, and none
    /// will if any refuses.
    pub fn gather(fleet: &FleetSpec, work: &Work<'_>) -> Result<Crew, Trouble> {
        let FleetSpec { url, credentials, ca, .. } = fleet;
        let nats = Nats { url: url.reveal().to_owned(), credentials: credentials.clone(), ca: ca.clone() };
        let bus = Bus::connect(&nats, "assay coordinator")?;
        let run = run_name(work.plan.program.name());
        let agents = choose(&bus, fleet.agents, work)?;
        let total = agents.len() as u32;
        let spec = parcel::spec(work.spec, if fleet.db_from_agent_env { &[] } else { work.urls }, &agents);
        if spec.has_passwords() {
            check_encryption(&bus, &agents)?;
        }
        let room = bus.message_bytes_max() / 10 * 7;
        let files = parcel::files(&spec, room)?;
        let lease = Duration::from_nanos(fleet.lease.0);
        let order = |number: u32| Order {
            run: run.clone(),
            from: format!("{}:{}", assay_io::process::HostFacts::get().name, std::process::id()),
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            number,
            agents: total,
            spec: spec.to_value_with_passwords(),
            files: files.clone(),
            database: if fleet.db_from_agent_env { Database::AgentEnvironment } else { Database::Spec },
            lease_ms: fleet.lease.0 / 1_000_000,
        };
        // From here on, agents receive our orders: one that has taken its share waits for the first gate.
        let leader = bus.lead(&run, total, lease)?;
        let orders: Vec<(String, Order)> =
            (0..).zip(&agents).map(|(number, agent)| (agent.id.clone(), order(number))).collect();
        let answers = bus.order(&orders);
        let ids: Vec<String> = agents.iter().map(|agent| agent.id.clone()).collect();
        let mut refused: Vec<Trouble> = Vec::new();
        for (agent, answer) in agents.iter().zip(answers) {
            match answer {
                Ok(Answer::Taken) => {}
                Ok(Answer::Refused(refusal)) => refused.push(trouble_of(&agent.name, &refusal)),
                Err(error) => refused.push(trouble_of(
                    &agent.name,
                    &Refusal { cause: format!("no answer: {error}"), ..Refusal::default() },
                )),
            }
        }
        if !refused.is_empty() {
            leader.with(|lead| {
                lead.stop();
                lead.end();
            });
            wait_until_free(&bus, &run, &ids);
            return Err(refusal_of_all(refused, agents.len()));
        }
        leader.watch();
        let clocks = bus.clocks(&ids);
        let heard = vec![Heard::default(); agents.len()];
        Ok(Crew { bus, run, leader, agents, clocks, heard, is_unreachable: false })
    }

    /// Names of the agents, by number.
    pub fn names(&self) -> Vec<String> {
        self.agents.iter().map(|agent| agent.name.clone()).collect()
    }

    /// Leads the run to its end.
    pub fn lead(&mut self, plan: &Plan, screen: &mut dyn Screen) -> Course {
        let clock = Clock::start();
        let started = clock.now();
        screen.begins(clock, started);
        let mut table = IntervalTable::new(self.agents.len());
        let mut course = Course {
            ended: vec![None; self.agents.len()],
            interrupted: false,
            elapsed: Nanos::ZERO,
            starts_ns: Vec::new(),
        };
        loop {
            course.elapsed = clock.now() - started;
            if interrupt::control().is_stopped() && !course.interrupted {
                course.interrupted = true;
                self.leader.with(|lead| lead.stop());
                screen.warning(match self.is_unreachable {
                    true => {
                        "interrupted: agents cannot be told while NATS is unreachable; they stop when the lease ends"
                    }
                    false => {
                        "interrupted: agents are finishing their transactions; press Ctrl-C again to quit immediately"
                    }
                });
            }
            if course.interrupted && self.is_unreachable {
                // Nothing more will come.
                for event in self.leader.with(|lead| lead.lose_all()) {
                    self.hear(event, &mut table, screen, &mut course);
                }
            }
            if let Some(gate) = self.leader.with(|lead| lead.gate()) {
                self.open(gate, plan, (clock, started), screen, &mut course);
            }
            // Asked first: an end that comes while nothing is heard has an event that is still to be heard.
            let is_over = self.leader.with(|lead| lead.is_over());
            let event = self.leader.next_event(LOOK_AROUND);
            let is_quiet = event.is_none();
            if let Some(event) = event {
                self.hear(event, &mut table, screen, &mut course);
            }
            let sums = self.leader.with(|lead| lead.leading());
            screen.progress(sums.ready, sums.wanted, sums.loaded, sums.expected, course.elapsed);
            let out: Vec<bool> = (0..self.agents.len() as u32)
                .map(|agent| self.leader.with(|lead| lead.is_lost(agent) || lead.ended(agent).is_some()))
                .collect();
            table.show(&out, screen);
            for agent in table.laggards(&out) {
                screen.warning(&format!("agent {} lags behind: its intervals are late", self.agents[agent].name));
            }
            if is_quiet && is_over {
                table.show(&vec![true; self.agents.len()], screen);
                return course;
            }
        }
    }

    fn open(
        &mut self,
        gate: Gate,
        plan: &Plan,
        (clock, started): (Clock, Nanos),
        screen: &mut dyn Screen,
        course: &mut Course,
    ) {
        let Gate::Stage(stage) = gate else { return self.leader.with(|lead| lead.open(gate, Vec::new())) };
        let ids: Vec<String> = self.agents.iter().map(|agent| agent.id.clone()).collect();
        for (known, found) in self.clocks.iter_mut().zip(self.bus.clocks(&ids)) {
            // Before the first stage too: clocks drift while thousands connect.
            *known = found.or(*known);
        }
        let ahead = if stage == 0 { AHEAD_FIRST } else { AHEAD } + Duration::from_nanos(screen.get_ready().0);
        let ahead_ns = i64::try_from(ahead.as_nanos()).unwrap_or(i64::MAX);
        let begin = self.bus.reading().monotonic_ns + ahead_ns;
        let at = |clock: &Option<Offsets>| begin + clock.map_or(0, |offsets| offsets.monotonic_ns);
        let at_ns = self.clocks.iter().map(at).collect();
        let measured_from = clock.now() - started + Nanos(ahead.as_nanos() as u64) + plan.warmup;
        screen.stage_begins(stage as usize, measured_from);
        course.starts_ns.resize(stage as usize + 1, measured_from.0);
        self.leader.with(|lead| lead.open(gate, at_ns));
    }

    fn hear(&mut self, event: LeadEvent, table: &mut IntervalTable, screen: &mut dyn Screen, course: &mut Course) {
        let name = |agent: u32| self.agents[agent as usize].name.clone();
        match event {
            LeadEvent::News(agent, line) => {
                let Some(event) = record::Event::of_line(&line) else { return };
                match &event {
                    record::Event::Connected(connected) => table.name(agent as usize, connected.types.clone()),
                    record::Event::Interval(interval) => table.add(agent as usize, (**interval).clone()),
                    record::Event::Notice(notice) if notice.warning => {
                        screen.warning(&format!("agent {}: {}", name(agent), notice.text));
                    }
                    record::Event::Notice(notice) => screen.line(&notice.text),
                    _ => {}
                }
                self.heard[agent as usize].take(event);
            }
            LeadEvent::Missed(agent, events) => screen.warning(&format!(
                "agent {}: {events} lines and intervals are missing from the live view",
                name(agent)
            )),
            LeadEvent::Ended(agent, ended) => {
                // The first error ends a run, wherever it is.
                if ended.failure.is_some() || (ended.interrupted && !course.interrupted) {
                    self.leader.with(|lead| lead.stop());
                }
                course.ended[agent as usize] = Some(ended);
            }
            LeadEvent::Silent(agent, silence) => {
                screen.warning(&format!("agent {} has been silent for {:.0} s", name(agent), silence.as_secs_f64()))
            }
            LeadEvent::Unreachable(silence) => {
                self.is_unreachable = true;
                screen.warning(&format!(
                    "NATS at {} has been unreachable for {:.0} s: the run ends when the lease does, unless it comes back",
                    self.bus.url(),
                    silence.as_secs_f64()
                ));
            }
            LeadEvent::Reachable => {
                self.is_unreachable = false;
                screen.warning(&format!("NATS at {} can be reached again", self.bus.url()));
            }
            LeadEvent::Back(agent) => screen.warning(&format!("agent {} is back", name(agent))),
            LeadEvent::Lost(agent) => screen.warning(&format!(
                "agent {} is lost: the run continues without it, and the result is partial",
                name(agent)
            )),
        }
    }

    /// What agents have measured: their records, and their clocks once more.
    pub fn shares(&self, course: &Course) -> Vec<Share> {
        let ids: Vec<String> = self.agents.iter().map(|agent| agent.id.clone()).collect();
        let after = if self.bus.is_connected() { self.bus.clocks(&ids) } else { vec![None; ids.len()] };
        // A server that is restarting is back by then; one that is not is waited for once, not for each agent.
        let give_up = Instant::now() + if course.interrupted { Duration::ZERO } else { GATHER_TIME };
        let mut shares = Vec::new();
        for (number, agent) in (0..).zip(&self.agents) {
            let ended = course.ended[number as usize].as_ref();
            let fetched = self.fetch(number, ended.is_some_and(|ended| ended.stored), give_up);
            let heard = || self.heard[number as usize].fold.clone().finish();
            let record = fetched.and_then(|bytes| Record::from_bytes(&bytes)).or_else(heard);
            let status = match ended {
                None => Status::Running,
                Some(ShareEnded { failure: Some(_), .. }) => Status::Failed,
                Some(ShareEnded { interrupted: true, .. }) => Status::Interrupted,
                Some(_) => Status::Complete,
            };
            let offset = |clock: Option<Offsets>| {
                clock.map(|found| ClockOffset { offset_ns: found.wall_ns, bound_ns: found.bound_ns })
            };
            let part = AgentPart {
                name: agent.name.clone(),
                number,
                status,
                failure: ended.and_then(|ended| ended.failure.as_ref()).map(|failure| failure.cause.clone()),
                host: Host { name: agent.host.clone(), ..Host::default() },
                clock_before: offset(self.clocks[number as usize]),
                clock_after: offset(after[number as usize]),
                ..AgentPart::default()
            };
            let late_ns = self.leader.with(|lead| lead.late_ns(number).to_vec());
            shares.push(Share { agent: part, late_ns, record });
        }
        shares
    }

    /// The histories of agents that stored theirs, by number.
    pub fn histories(&self, course: &Course) -> Vec<Option<ReadHistory>> {
        let numbers = 0..self.agents.len() as u32;
        let fetched = |number: u32| {
            course.ended[number as usize].as_ref().filter(|ended| ended.stored)?;
            ReadHistory::from_bytes(&self.bus.fetch_history(&self.run, number).ok()??).ok()
        };
        numbers.map(fetched).collect()
    }

    /// `is_stored`: the agent says so, and the server may be restarting. `give_up`: when a server that cannot be
    /// reached is no longer waited for.
    fn fetch(&self, number: u32, is_stored: bool, give_up: Instant) -> Option<Vec<u8>> {
        let begun = Instant::now();
        loop {
            if !self.bus.is_connected() {
                if Instant::now() > give_up {
                    return None;
                }
                std::thread::sleep(LOOK_AROUND);
                continue;
            }
            match self.bus.fetch(&self.run, number) {
                Ok(Some(bytes)) => return Some(bytes),
                Ok(None) if !is_stored => return None,
                _ if begun.elapsed() > GATHER_TIME => return None,
                _ => std::thread::sleep(LOOK_AROUND),
            }
        }
    }

    /// Agents are free, and nothing of the run is kept on the bus: its record is safe.
    pub fn dismiss(self) {
        self.leader.with(|lead| lead.end());
        if !self.bus.is_connected() {
            return;
        }
        let _ = self.bus.forget(&self.run);
        let ids: Vec<String> = self.agents.iter().map(|agent| agent.id.clone()).collect();
        wait_until_free(&self.bus, &self.run, &ids);
    }

    /// The first trouble of an agent, or that some were lost; `None`: all did their share.
    pub fn trouble(&self, course: &Course) -> Option<Trouble> {
        for (agent, ended) in self.agents.iter().zip(&course.ended) {
            if let Some(failure) = ended.as_ref().and_then(|ended| ended.failure.as_ref()) {
                return Some(trouble_of(&agent.name, failure));
            }
        }
        let lost: Vec<&str> = self
            .agents
            .iter()
            .zip(&course.ended)
            .filter(|(_, ended)| ended.is_none())
            .map(|(agent, _)| agent.name.as_str())
            .collect();
        if !lost.is_empty() {
            let cause = format!("lost {} of {} agents: {}", lost.len(), self.agents.len(), lost.join(", "));
            return Some(
                Trouble::new(Exit::Fleet, cause)
                    .detail("the result is partial: what they had not sent is missing")
                    .hint("see the output of these agents; `assay fleet status` lists those that are running"),
            );
        }
        let stopped = self
            .agents
            .iter()
            .zip(&course.ended)
            .find(|(_, ended)| !course.interrupted && ended.as_ref().is_some_and(|ended| ended.interrupted));
        stopped.map(|(agent, _)| {
            Trouble::new(Exit::Fleet, format!("agent {} was stopped before the run ended", agent.name))
                .detail("the result is partial: all agents stopped with it")
        })
    }

    /// The run, as `assay fleet collect` knows it.
    pub fn run(&self) -> &str {
        &self.run
    }
}

/// The next command wants these agents; until they have heard that this run is over, they wait for us.
fn wait_until_free(bus: &Bus, run: &str, ids: &[String]) {
    let begun = Instant::now();
    while begun.elapsed() < DISMISS_TIME && bus.is_any_busy_with(run, ids) {
        std::thread::sleep(LOOK_AROUND);
    }
}

/// A command of a workload, by all agents. Errors and interrupts are troubles.
pub fn command(fleet: &FleetSpec, work: &Work<'_>, screen: &mut dyn Screen) -> Result<Outcome, Trouble> {
    can_be_shared(work.plan)?;
    let mut crew = Crew::gather(fleet, work)?;
    let course = crew.lead(work.plan, screen);
    let trouble = crew.trouble(&course);
    crew.dismiss();
    let ended = || course.ended.iter().flatten();
    match trouble {
        Some(trouble) => Err(trouble),
        None => Ok(Outcome {
            end: if course.interrupted { End::Interrupted } else { End::Complete },
            loaded: ended().map(|ended| ended.loaded).sum(),
            success: ended().all(|ended| ended.success),
            elapsed: course.elapsed,
            ..Outcome::nothing_yet(work.plan.targets.len())
        }),
    }
}

/// An embedded database is on one machine.
pub fn can_be_shared(plan: &Plan) -> Result<(), Trouble> {
    match plan.targets.iter().find(|target| target.addresses.is_empty()) {
        None => Ok(()),
        Some(target) => Err(Trouble::usage(format!("agents cannot share {}", target.database.display()))
            .hint("--fleet needs a database server: --db postgres://HOST/NAME or mysql://HOST/NAME")),
    }
}

/// `tpcc-20260102T030405-1f`: what and when, and whose.
fn run_name(workload: &str) -> String {
    let stem = workload.rsplit('/').next().unwrap_or(workload);
    let stem: String = stem.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect();
    let time = assay_record::Time::from(std::time::SystemTime::now()).compact();
    let time: String = time.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{stem}-{time}-{:x}", std::process::id())
}

/// The agents of a run, by the number of their share.
fn choose(bus: &Bus, wanted: Option<u32>, work: &Work<'_>) -> Result<Vec<Presence>, Trouble> {
    let begun = Instant::now();
    let mut told = false;
    let (all, free) = loop {
        let all = bus.agents()?;
        // One that was killed is still listed for a while.
        let is_free = |agent: &&Presence| agent.answers && agent.busy.is_none();
        let free: Vec<Presence> = all.iter().filter(is_free).cloned().collect();
        let enough = free.len() >= wanted.unwrap_or(1) as usize;
        if enough || begun.elapsed() >= GATHER_TIME || interrupt::control().is_stopped() {
            break (all, free);
        }
        if !std::mem::replace(&mut told, true) && !work.quiet {
            terminal::say(&format!("waiting for agents: {} of {} are free\n", free.len(), wanted.unwrap_or(1)));
        }
        std::thread::sleep(LOOK_AROUND);
    };
    let number = wanted.map_or(free.len(), |wanted| wanted as usize);
    if free.is_empty() || free.len() < number {
        let trouble = Trouble::new(Exit::Fleet, format!("{} of {} agents are free", free.len(), number.max(1)));
        let busy = all.iter().filter_map(|agent| Some((&agent.name, agent.busy.as_ref()?)));
        let trouble =
            busy.fold(trouble, |trouble, (name, run)| trouble.detail(format!("agent {name} is busy with run {run}")));
        return Err(trouble.hint(format!("start more agents: assay agent --nats {}", bus.url())));
    }
    let other = |agent: &Presence| Some((agent.name.clone(), mismatch(&agent.version, agent.protocol)?));
    if let Some((name, (theirs, ours))) = free.iter().find_map(other) {
        let cause = format!("agent {name} runs {theirs}, but the coordinator runs {ours}");
        return Err(Trouble::new(Exit::Fleet, cause).hint("install the same version everywhere"));
    }
    let sessions = work.plan.setup.sessions;
    if number > sessions as usize && work.is_parallel {
        return Err(Trouble::usage(format!("{sessions} sessions are too few for {number} agents"))
            .hint("use more --sessions or fewer --agents"));
    }
    by_share(free, number)
}

/// Agents by the number of their share: those that want a certain share get it, the others get the rest by name.
fn by_share(free: Vec<Presence>, number: usize) -> Result<Vec<Presence>, Trouble> {
    let mut seats: Vec<Option<Presence>> = vec![None; number];
    let mut rest = Vec::new();
    for agent in free {
        match agent.share.map(|share| share as usize) {
            Some(share) if share < number && seats[share].is_none() => seats[share] = Some(agent),
            Some(_) => {}
            None => rest.push(agent),
        }
    }
    let mut rest = rest.into_iter();
    let seats: Option<Vec<Presence>> = seats.into_iter().map(|seat| seat.or_else(|| rest.next())).collect();
    seats.ok_or_else(|| {
        Trouble::new(Exit::Fleet, format!("there are not {number} agents with different shares"))
            .hint("an agent started with --share takes only that share; see `assay fleet status`")
    })
}

/// Refuses to send a password over a connection that is not encrypted.
fn check_encryption(bus: &Bus, agents: &[Presence]) -> Result<(), Trouble> {
    let open = agents.iter().find(|agent| !agent.is_private);
    let whose = match (bus.is_private(), open) {
        (true, None) => return Ok(()),
        (false, _) => "this connection to NATS is not encrypted".to_owned(),
        (true, Some(agent)) => format!("agent {}'s connection to NATS is not encrypted", agent.name),
    };
    Err(Trouble::usage("the database password would be sent unencrypted")
        .detail(whose)
        .hint("use TLS (tls://HOST), or --db-from-agent-env with the variable ASSAY_DB on each agent"))
}

fn refusal_of_all(mut refused: Vec<Trouble>, agents: usize) -> Trouble {
    let number = refused.len();
    let first = refused.remove(0);
    let more = refused.into_iter().map(|trouble| trouble.cause);
    let trouble = Trouble { cause: first.cause.clone(), ..first };
    let trouble = more.fold(trouble, |trouble, cause| trouble.detail(cause));
    trouble.detail(format!("{number} of {agents} agents refused their share; nothing was started"))
}

/// Intervals of all agents, until every agent's is there.
struct IntervalTable {
    rows: BTreeMap<(u32, u64), Row>,
    /// The last of each agent.
    last: Vec<Option<(u32, u64)>>,
    shown: Option<(u32, u64)>,
    types: Vec<String>,
    /// Those of each agent, in its own order.
    named: Vec<Vec<String>>,
    lagging: BTreeSet<usize>,
}

struct Row {
    since: Instant,
    parts: Vec<Option<(Vec<String>, Interval)>>,
}

impl IntervalTable {
    fn new(agents: usize) -> IntervalTable {
        IntervalTable {
            rows: BTreeMap::new(),
            last: vec![None; agents],
            shown: None,
            types: Vec::new(),
            named: vec![Vec::new(); agents],
            lagging: BTreeSet::new(),
        }
    }

    /// Names of the transaction types of an agent, in the order of its next intervals.
    fn name(&mut self, agent: usize, types: Vec<String>) {
        for name in &types {
            if !self.types.contains(name) {
                self.types.push(name.clone());
            }
        }
        self.named[agent] = types;
    }

    fn add(&mut self, agent: usize, said: StageInterval) {
        let StageInterval { stage, interval } = said;
        let key = (stage, interval.start_ns);
        self.last[agent] = self.last[agent].max(Some(key));
        // Too late for the screen; the record has it.
        if self.shown >= Some(key) {
            return;
        }
        let agents = self.last.len();
        let row = self.rows.entry(key).or_insert_with(|| Row { since: Instant::now(), parts: vec![None; agents] });
        row.parts[agent] = Some((self.named[agent].clone(), interval));
    }

    /// Agents that are not out, whose part of the oldest interval has been missing for long; each is named once.
    fn laggards(&mut self, out: &[bool]) -> Vec<usize> {
        let Some((key, row)) = self.rows.first_key_value() else { return Vec::new() };
        if row.since.elapsed() < LAG_TIME {
            return Vec::new();
        }
        let late = |agent: &usize| !out[*agent] && self.last[*agent] < Some(*key);
        let late: Vec<usize> = (0..out.len()).filter(late).collect();
        late.into_iter().filter(|agent| self.lagging.insert(*agent)).collect()
    }

    /// Shows, in order, what is complete: whoever is out is not waited for.
    fn show(&mut self, out: &[bool], screen: &mut dyn Screen) {
        while let Some((key, row)) = self.rows.first_key_value() {
            let is_there = |agent: usize| out[agent] || self.last[agent] >= Some(*key) || self.lagging.contains(&agent);
            if !(0..out.len()).all(is_there) {
                return;
            }
            let parts: Vec<(&[String], &Interval)> =
                row.parts.iter().flatten().map(|(types, interval)| (types.as_slice(), interval)).collect();
            let interval = Interval::sum(&parts, &self.types);
            screen.interval(key.0 as usize, &interval, &self.types);
            self.shown = Some(*key);
            self.rows.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, share: Option<u32>) -> Presence {
        Presence { name: name.to_owned(), share, ..Presence::default() }
    }

    #[test]
    fn agents_that_want_a_share_get_it() {
        let free = vec![agent("a", None), agent("b", Some(0)), agent("c", None), agent("d", Some(2))];
        let names: Vec<String> = by_share(free.clone(), 3).unwrap().into_iter().map(|agent| agent.name).collect();
        assert_eq!(names, ["b", "a", "d"]);
        assert!(by_share(vec![agent("b", Some(0)), agent("d", Some(0))], 2).is_err());
    }

    #[derive(Default)]
    struct Shown(Vec<(usize, u64, u32)>);

    impl Screen for Shown {
        fn begins(&mut self, _: Clock, _: Nanos) {}
        fn stage_begins(&mut self, _: usize, _: Nanos) {}
        fn interval(&mut self, stage: usize, interval: &Interval, _: &[String]) {
            self.0.push((stage, interval.start_ns, interval.sessions));
        }
        fn progress(&mut self, _: u32, _: u32, _: u64, _: u64, _: Nanos) {}
        fn line(&mut self, _: &str) {}
        fn warning(&mut self, _: &str) {}
        fn get_ready(&self) -> Nanos {
            Nanos::ZERO
        }
    }

    #[test]
    fn an_interval_is_shown_when_every_agent_that_is_left_has_sent_it() {
        let (mut table, mut shown) = (IntervalTable::new(2), Shown::default());
        let said = |stage: u32, start_ns: u64, sessions: u32| {
            let interval = Interval { start_ns, sessions, ..Interval::default() };
            StageInterval { stage, interval }
        };
        table.add(0, said(0, 0, 3));
        table.add(0, said(0, 1, 3));
        table.show(&[false, false], &mut shown);
        assert_eq!(shown.0, []);
        table.add(1, said(0, 0, 2));
        table.show(&[false, false], &mut shown);
        assert_eq!(shown.0, [(0, 0, 5)]);
        // One that ended sends no more.
        table.show(&[false, true], &mut shown);
        assert_eq!(shown.0, [(0, 0, 5), (0, 1, 3)]);
        table.add(1, said(0, 1, 2));
        table.show(&[false, true], &mut shown);
        assert_eq!(shown.0.len(), 2);
    }
}
