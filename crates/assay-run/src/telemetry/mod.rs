//! Samples servers and their machine during a run, for the record.
//!
//! One thread per server and one for the machine, each with its own connection or files, none of them a worker: a
//! server that does not answer delays only its own samples. Samples are taken at whole seconds since the start of the
//! measured part, so that they coincide with intervals; connections are open only during stages, because a server's
//! last connection slot belongs to the load.

mod data_folder;
mod hardware;
mod host;
mod machine;
mod pace;
mod process;
mod sampler;
mod server;
mod server_log;
mod statement_uses;
mod statements;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_engine::Target;
use assay_io::Clock;
use assay_record::{Cost, KnownScope, Place, Readings, ScopeKind};
use assay_seam::Nanos;

pub use host::HostUrl;
pub use machine::facts as machine_facts;
pub use process::throttled_us;

use host::Host;
use machine::Machine;
use process::Device;
use sampler::{Command, EVERY, Sampler, Shared};
use server::ServerBeside;

use crate::client::Client;

/// How long a stage waits for its samplers: enough to connect to a nearby server and query its capabilities.
const READY_WITHIN: Nanos = Nanos::from_millis(150);
/// A stage is announced this long before it starts to samplers that are ready.
const AHEAD: Nanos = Nanos::from_millis(10);
/// A sampler that still waits for its server this long after the run is abandoned.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to sample in addition to servers, and how much.
#[derive(Clone, Default)]
pub struct Beside {
    /// Whether reports show everything, and expensive counters are read, too.
    pub full: bool,
    /// The admin console of the pooler in front of each server, by the server's number.
    pub poolers: Vec<Target>,
    /// The node exporter on the machine of each server, by the server's number.
    pub hosts: Vec<HostUrl>,
    /// The only server is a pooler's admin console.
    pub is_console: bool,
}

/// The samplers of a run.
pub struct Samplers {
    full: bool,
    all: Vec<Handle>,
    /// Cost, and numbers of interventions and plans, as of the last news.
    told: Option<(Cost, usize, usize)>,
}

/// A thread that samples.
struct Handle {
    commands: Sender<Command>,
    /// Disconnected when the thread has ended.
    done: Receiver<()>,
    shared: Arc<Mutex<Shared>>,
    known: KnownScope,
}

/// Facts about a local server's process and the drive under its data directory; none if it was not found.
pub fn server_facts(client: &mut Client) -> BTreeMap<String, String> {
    let server = client.server();
    let plan = assay_products::server_questions(&server.product, &server.version);
    process::find(client, &plan.process).map_or_else(|_| BTreeMap::new(), |found| found.facts)
}

impl Samplers {
    /// Starts sampling the servers outside this process. Instants count from `started` on `clock`. `None`: there are
    /// none.
    pub fn start(
        targets: &[Target],
        places: &[Place],
        beside: &Beside,
        clock: Clock,
        started: Nanos,
    ) -> Option<Samplers> {
        let full = beside.full;
        let mut all = Vec::new();
        let mut local: Option<(usize, Device)> = None;
        for (number, (target, place)) in targets.iter().zip(places).enumerate() {
            if *place == Place::Embedded {
                continue;
            }
            let found = (*place == Place::Local).then(Device::default);
            if let (Some(found), None) = (&found, &local) {
                local = Some((number, Arc::clone(found)));
            }
            let (target, pooler) = (target.clone(), beside.poolers.get(number).cloned());
            let number_of = u32::try_from(number).unwrap_or(u32::MAX);
            let is_console = beside.is_console;
            let server = move || match is_console {
                false => ServerBeside::new((number_of, target), pooler, (full, clock), found),
                true => ServerBeside::of_console(target, clock),
            };
            all.push(Handle::start(ScopeKind::Server, number, (clock, started), server));
        }
        for (number, host) in beside.hosts.iter().take(targets.len()).enumerate() {
            let host = host.clone();
            all.push(Handle::start(ScopeKind::Machine, number, (clock, started), move || Host(host)));
        }
        if let (Some((number, found)), true) = (local, beside.hosts.is_empty()) {
            all.push(Handle::start(ScopeKind::Machine, number, (clock, started), move || Machine::new(found)));
        }
        (!all.is_empty()).then_some(Samplers { full, all, told: None })
    }

    /// Waits, not long, until the samplers are ready for a stage. Returns how long after the call it can start.
    pub fn get_ready(&self, clock: Clock) -> Nanos {
        let asked = clock.now();
        let (opening, opened) = mpsc::channel();
        self.order(&Command::Open(opening));
        // Nobody sends anything: the channel is closed once every sampler has dropped the command.
        while opened.recv_timeout(Duration::from_nanos((asked + READY_WITHIN - clock.now()).0)).is_ok() {}
        clock.now() - asked + AHEAD
    }

    /// A stage will be measured from this instant on, since the start of the run.
    pub fn stage_begins(&self, measured_from: Nanos) {
        self.order(&Command::Begin(measured_from));
    }

    /// A stage is over.
    pub fn stage_ends(&self) {
        self.order(&Command::End);
    }

    /// What was read since the last call; `None`: nothing. The first call returns what there is.
    pub fn news(&mut self) -> Option<Readings> {
        let mut readings = Readings {
            full: self.full,
            every_ns: EVERY.0,
            cost: Cost::default(),
            interventions: Vec::new(),
            plans: Vec::new(),
            scopes: Vec::new(),
        };
        let mut in_servers = Vec::new();
        let mut is_new = false;
        for handle in &mut self.all {
            let shared = handle.shared.lock().expect("samplers do not panic");
            let (scope, has_grown) = shared.news(&mut handle.known);
            is_new |= has_grown;
            readings.scopes.push(scope);
            let Cost { cpu_ns, server_cpu_ns, statements, statements_ns } = shared.cost;
            readings.cost.cpu_ns += cpu_ns;
            if statements > 0 {
                in_servers.push(server_cpu_ns);
            }
            readings.cost.statements += statements;
            readings.cost.statements_ns += statements_ns;
            readings.interventions.extend(shared.interventions.iter().cloned());
            readings.plans.extend(shared.plans.iter().cloned());
        }
        // With several servers, a partial sum is not reported.
        let of_all: Option<Vec<u64>> = in_servers.into_iter().collect();
        readings.cost.server_cpu_ns = of_all.filter(|all| !all.is_empty()).map(|all| all.iter().sum());
        let told = (readings.cost, readings.interventions.len(), readings.plans.len());
        let before = self.told.replace(told);
        is_new |= before != Some(told);
        if before.is_some_and(|(_, _, plans)| plans == told.2) {
            readings.plans.clear();
        }
        is_new.then_some(readings)
    }

    /// Leaves out all samples of which `news` has told: whoever was told keeps them.
    pub fn let_go(&mut self) {
        for handle in &mut self.all {
            handle.shared.lock().expect("samplers do not panic").let_go(&mut handle.known);
        }
    }

    /// Leaves out the first samples of a scope, of which `news` has told.
    pub fn forget(&mut self, scope: usize, samples: usize) {
        if let Some(handle) = self.all.get_mut(scope) {
            handle.shared.lock().expect("samplers do not panic").forget(samples, &mut handle.known);
        }
    }

    /// Ends sampling; waits briefly for a sample in progress.
    pub fn finish(&self) {
        self.order(&Command::Stop);
        for handle in &self.all {
            let _ = handle.done.recv_timeout(PATIENCE);
        }
    }

    fn order(&self, command: &Command) {
        for handle in &self.all {
            // A sampler that has ended does not listen.
            let _ = handle.commands.send(command.clone());
        }
    }
}

impl Handle {
    /// The source is created in the thread that uses it.
    fn start<S: sampler::SampleSource>(
        kind: ScopeKind,
        target: usize,
        (clock, started): (Clock, Nanos),
        source: impl FnOnce() -> S + Send + 'static,
    ) -> Handle {
        let shared = Arc::new(Mutex::new(Shared::new(kind, target)));
        let (commands, inbox) = mpsc::channel();
        let (running, done) = mpsc::channel();
        let sampler = Sampler::new(Arc::clone(&shared), clock, started);
        // Without a thread there are no readings, and the record does not mention them.
        let _ = std::thread::Builder::new().name(format!("telemetry {target}")).spawn(move || {
            sampler.run(source(), &inbox);
            drop(running);
        });
        Handle { commands, done, shared, known: KnownScope::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::sampler::{self, Moment, SampleSource};
    use super::*;

    /// A server that never answers.
    struct Stalled(Receiver<()>);

    impl SampleSource for Stalled {
        fn open(&mut self, _: &mut sampler::Readings) {
            let _ = self.0.recv();
        }

        fn sample(&mut self, _: Moment, _: &mut sampler::Readings) {}
    }

    #[test]
    fn a_sampler_that_stalls_does_not_stall_the_run() {
        let (clock, (answer, never)) = (Clock::start(), mpsc::channel());
        let stalled = Handle::start(ScopeKind::Server, 0, (clock, clock.now()), || Stalled(never));
        let mut samplers = Samplers { full: false, all: vec![stalled], told: None };
        // All of these return although nothing answers; the last one after a while.
        assert!(samplers.get_ready(clock) >= READY_WITHIN);
        samplers.stage_begins(Nanos::ZERO);
        samplers.stage_ends();
        assert!(samplers.news().unwrap().scopes[0].began_ns.is_empty());
        assert_eq!(samplers.news(), None);
        samplers.finish();
        drop(answer);
    }
}
