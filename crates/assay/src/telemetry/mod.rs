//! Samples servers and their machine during a run, for the record.
//!
//! A thread per server and one for the machine, each with its own connection or files, none of them a worker: a server
//! that does not answer stalls its own readings and nothing else. Samples are taken at the ends of seconds since the
//! stage began to be measured, so that they fall together with intervals; connections are open only during stages,
//! since a server's last connection belongs to the load.

mod data_folder;
mod hardware;
mod host;
mod machine;
mod process;
mod sampler;
mod server;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_engine::Target;
use assay_io::Clock;
use assay_record::{Cost, Place, ScopeKind, Telemetry};
use assay_seam::Nanos;

pub use host::HostUrl;
pub use machine::facts as machine_facts;

use host::Host;
use machine::Machine;
use process::Device;
use sampler::{Command, EVERY, Sampler, Shared};
use server::Server;

use crate::client::Client;

/// A stage is announced this long before it begins: enough to connect to a server nearby and learn what it has.
pub const AHEAD: Nanos = Nanos::from_millis(150);
/// A sampler that still waits for its server when the run is over is left to itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is read beside what the servers say of themselves, and how much.
#[derive(Clone, Default)]
pub struct Beside {
    /// Reports show everything, and counters that cost something are read too.
    pub full: bool,
    /// The administration of the pooler before each server, by the server's number.
    pub poolers: Vec<Target>,
    /// The node exporter on the machine of each server, by the server's number.
    pub hosts: Vec<HostUrl>,
}

/// The samplers of a run.
pub struct Samplers {
    full: bool,
    all: Vec<Handle>,
}

/// A thread that samples.
struct Handle {
    commands: Sender<Command>,
    /// Hangs up when the thread has ended.
    done: Receiver<()>,
    shared: Arc<Mutex<Shared>>,
}

/// Facts of a local server's process and of the drive under its data directory; none where it was not found.
pub fn server_facts(client: &mut Client) -> BTreeMap<String, String> {
    let server = client.server();
    let plan = assay_telemetry::plan(&server.product, &server.version);
    process::find(client, &plan.process).map_or_else(|_| BTreeMap::new(), |found| found.facts)
}

impl Samplers {
    /// Begins to sample the servers that are not inside this process. Instants count from `started` on `clock`.
    /// `None`: there are none.
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
            let server = move || Server::new(target, pooler, (full, clock), found);
            all.push(Handle::start(ScopeKind::Server, number, (clock, started), server));
        }
        for (number, host) in beside.hosts.iter().take(targets.len()).enumerate() {
            let host = host.clone();
            all.push(Handle::start(ScopeKind::Machine, number, (clock, started), move || Host(host)));
        }
        if let (Some((number, found)), true) = (local, beside.hosts.is_empty()) {
            all.push(Handle::start(ScopeKind::Machine, number, (clock, started), move || Machine::new(found)));
        }
        (!all.is_empty()).then_some(Samplers { full, all })
    }

    /// A stage will be measured from this instant on, since the start of the run.
    pub fn stage_begins(&self, measured_from: Nanos) {
        self.order(Command::Begin(measured_from));
    }

    /// A stage is over.
    pub fn stage_ends(&self) {
        self.order(Command::End);
    }

    /// Everything read so far.
    pub fn so_far(&self) -> Telemetry {
        let mut telemetry = Telemetry { full: self.full, every_ns: EVERY.0, ..Telemetry::default() };
        for handle in &self.all {
            let shared = handle.shared.lock().expect("samplers do not panic");
            telemetry.scopes.push(shared.scope());
            let Cost { cpu_ns, statements, statements_ns } = shared.cost;
            telemetry.cost.cpu_ns += cpu_ns;
            telemetry.cost.statements += statements;
            telemetry.cost.statements_ns += statements_ns;
            telemetry.interventions.extend(shared.interventions.iter().cloned());
        }
        telemetry
    }

    /// Ends sampling; waits for a sample under way, though not for long.
    pub fn finish(&self) {
        self.order(Command::Stop);
        for handle in &self.all {
            let _ = handle.done.recv_timeout(PATIENCE);
        }
    }

    fn order(&self, command: Command) {
        for handle in &self.all {
            // One that has ended is not interested.
            let _ = handle.commands.send(command);
        }
    }
}

impl Handle {
    /// The source is made in the thread that uses it.
    fn start<S: sampler::Source>(
        kind: ScopeKind,
        target: usize,
        (clock, started): (Clock, Nanos),
        source: impl FnOnce() -> S + Send + 'static,
    ) -> Handle {
        let shared = Arc::new(Mutex::new(Shared::new(kind, target)));
        let (commands, inbox) = mpsc::channel();
        let (running, done) = mpsc::channel();
        let sampler = Sampler::new(Arc::clone(&shared), clock, started);
        // Without a thread there are no readings, and the record says nothing of them.
        let _ = std::thread::Builder::new().name(format!("telemetry {target}")).spawn(move || {
            sampler.run(source(), &inbox);
            drop(running);
        });
        Handle { commands, done, shared }
    }
}

#[cfg(test)]
mod tests {
    use super::sampler::{Readings, Source};
    use super::*;

    /// A server that never answers.
    struct Stalled(Receiver<()>);

    impl Source for Stalled {
        fn open(&mut self, _: &mut Readings) {
            let _ = self.0.recv();
        }

        fn sample(&mut self, _: &mut Readings) {}
    }

    #[test]
    fn a_sampler_that_stalls_does_not_stall_the_run() {
        let (clock, (answer, never)) = (Clock::start(), mpsc::channel());
        let stalled = Handle::start(ScopeKind::Server, 0, (clock, clock.now()), || Stalled(never));
        let samplers = Samplers { full: false, all: vec![stalled] };
        // All of these return although nothing answers; the last one after some patience.
        samplers.stage_begins(Nanos::ZERO);
        samplers.stage_ends();
        assert!(samplers.so_far().scopes[0].began_ns.is_empty());
        samplers.finish();
        drop(answer);
    }
}
