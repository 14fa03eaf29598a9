//! `assay agent`: takes shares of runs that are started elsewhere, until it is stopped.

use std::sync::Arc;
use std::time::Duration;

use assay_fleet::{Bus, PROTOCOL, Presence};
use assay_io::process::{FilesLimit, HostFacts};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_process::url_text;
use assay_run::fleet::DATABASE_VARIABLE;
use assay_run::fleet::share::{AgentHost, remove_left_behind, serve};
use assay_run::plan;

use crate::command_line::AgentOptions;
use crate::databases;

/// Between two looks whether somebody wants it to end.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// Waits for orders, and does one after the other.
pub fn run(options: &AgentOptions) -> Result<Exit, Trouble> {
    let host = HostFacts::get();
    // There may be several on a machine.
    let name = options.name.clone().unwrap_or_else(|| format!("{}:{}", host.name, std::process::id()));
    remove_left_behind();
    let bus = Arc::new(Bus::connect(&options.nats.nats(), &format!("assay agent {name}"))?);
    let presence = Presence {
        id: format!("{:x}{:x}", std::process::id(), plan::random_seed()),
        name: name.clone(),
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host.name,
        cpus: u32::try_from(host.cpus).unwrap_or(u32::MAX),
        files: FilesLimit::raise().map_or(0, |limit| limit.soft),
        share: options.share,
        allow_db: options.allow_db.iter().map(|pattern| url_text::masked(&pattern.to_string())).collect(),
        has_database: std::env::var_os(DATABASE_VARIABLE).is_some_and(|url| !url.is_empty()),
        is_private: bus.is_private(),
        busy: None,
        answers: true,
    };
    let member = bus.join(presence)?;
    terminal::say(&format!("agent {name} is ready at {}\n", bus.url()));
    let host = AgentHost { bus: bus.clone(), name, allow_db: &options.allow_db, resolve: &databases::resolve };
    while !interrupt::control().is_stopped() {
        let Some(arrived) = member.next_order(LOOK_AROUND) else { continue };
        // One that refused is free already, and may have taken another order.
        if !serve(&host, arrived) {
            continue;
        }
        member.release();
        if options.once {
            bus.leave(member);
            return Ok(Exit::Success);
        }
    }
    bus.leave(member);
    // It is meant to end this way.
    Ok(Exit::Success)
}
