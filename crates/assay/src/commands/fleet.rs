//! `assay fleet`: which agents are there, whether they can work together, and what they have left behind.

use std::path::Path;

use assay_fleet::{Bus, Presence, mismatch};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_record::{AgentPart, DEFAULT_FOLDER, Record, Share, Status};
use assay_run::live::{existing, may_write, unwritable};

use crate::command_line::{CollectOptions, FleetAction, FleetCommandOptions, NatsOptions};

/// Who connects.
const NAME: &str = "assay fleet";

/// Does it.
pub fn run(options: &FleetCommandOptions) -> Result<Exit, Trouble> {
    match &options.action {
        FleetAction::Status(nats) => status(nats),
        FleetAction::Doctor(nats) => doctor(nats),
        FleetAction::Collect(options) => collect(options),
    }
}

fn status(nats: &NatsOptions) -> Result<Exit, Trouble> {
    let bus = Bus::connect(&nats.nats(), NAME)?;
    let agents = bus.agents()?;
    let mut text = match agents.len() {
        0 => format!("no agents at {0}\nstart one on each load machine: assay agent --nats {0}\n", bus.url()),
        _ => table(&agents),
    };
    let mut runs: Vec<(String, usize, usize)> = Vec::new();
    for stored in bus.stored()? {
        // What an agent is busy with is not left behind.
        if agents.iter().any(|agent| agent.busy.as_ref() == Some(&stored.run)) {
            continue;
        }
        match runs.iter_mut().find(|(run, _, _)| *run == stored.run) {
            Some((_, shares, bytes)) => (*shares, *bytes) = (*shares + 1, *bytes + stored.bytes),
            None => runs.push((stored.run, 1, stored.bytes)),
        }
    }
    for (run, shares, bytes) in runs {
        text +=
            &format!("result of run {run}: {shares} shares, {bytes} bytes; get it with `assay fleet collect {run}`\n");
    }
    terminal::result(&text)?;
    Ok(Exit::Success)
}

fn table(agents: &[Presence]) -> String {
    let row = |agent: &Presence| {
        let state = match (&agent.busy, agent.share) {
            _ if !agent.answers => "does not answer".to_owned(),
            (Some(run), _) => format!("busy with run {run}"),
            (None, Some(share)) => format!("free, share {share}"),
            (None, None) => "free".to_owned(),
        };
        let (cpus, files) = (agent.cpus.to_string(), agent.files.to_string());
        [agent.name.clone(), agent.host.clone(), cpus, files, agent.version.clone(), state]
    };
    let heads = ["agent", "host", "CPUs", "files", "version", "state"];
    assay_report::listing(heads, &[2, 3], agents.iter().map(row).collect())
}

/// Checks for everything that would prevent a run.
fn doctor(nats: &NatsOptions) -> Result<Exit, Trouble> {
    let bus = Bus::connect(&nats.nats(), NAME)?;
    let privacy =
        if bus.is_private() { "encrypted or local" } else { "not encrypted: database passwords are not sent" };
    let mut text = format!("NATS {} at {}, {privacy}\n", bus.server_version(), bus.url());
    let mut wrong = Vec::new();
    let probe = format!("doctor-{}", std::process::id());
    bus.store(&probe, 0, b"assay")?;
    if bus.fetch(&probe, 0)?.as_deref() != Some(b"assay") {
        wrong.push("the object store does not return what was stored".to_owned());
    }
    bus.forget(&probe)?;
    let agents = bus.agents()?;
    let ids: Vec<String> = agents.iter().map(|agent| agent.id.clone()).collect();
    for (agent, clock) in agents.iter().zip(bus.clocks(&ids)) {
        let name = &agent.name;
        if let Some((theirs, ours)) = mismatch(&agent.version, agent.protocol) {
            wrong.push(format!("agent {name} runs {theirs}, but this is {ours}"));
        }
        let Some(clock) = clock else {
            wrong.push(format!("agent {name} does not answer"));
            continue;
        };
        let ms = |ns: i64| ns as f64 / 1e6;
        let (offset, bound) = (ms(clock.wall_ns), ms(clock.bound_ns as i64));
        let database = if agent.has_database { ", ASSAY_DB is set" } else { "" };
        let privacy = if agent.is_private { "" } else { ", not encrypted" };
        text += &format!(
            "agent {name}: {} CPUs, {} files, clock {offset:+.3} ms ± {bound:.3} ms{database}{privacy}\n",
            agent.cpus, agent.files
        );
    }
    if agents.is_empty() {
        wrong.push(format!("no agents: start them with `assay agent --nats {}`", bus.url()));
    }
    if wrong.is_empty() {
        let busy = agents.iter().filter(|agent| agent.busy.is_some()).count();
        let busy = if busy == 0 { String::new() } else { format!(", {busy} of them busy") };
        text += &format!(
            "{} ready{busy}\n",
            if ids.len() == 1 { "1 agent is".to_owned() } else { format!("{} agents are", ids.len()) }
        );
    }
    terminal::result(&text)?;
    match wrong.is_empty() {
        true => Ok(Exit::Success),
        false => {
            let first = Trouble::new(Exit::Fleet, wrong.remove(0));
            Err(wrong.into_iter().fold(first, Trouble::detail))
        }
    }
}

/// Puts the stored shares of a run together.
fn collect(options: &CollectOptions) -> Result<Exit, Trouble> {
    may_write(options.record.as_deref(), options.force)?;
    let bus = Bus::connect(&options.nats.nats(), NAME)?;
    let stored = bus.stored()?;
    let mut runs: Vec<String> = stored.iter().map(|stored| stored.run.clone()).collect();
    runs.dedup();
    let run = match (&options.run, &runs[..]) {
        (Some(run), _) if runs.contains(run) => run.clone(),
        (Some(run), _) => {
            return Err(Trouble::new(Exit::Fleet, format!("no results of run {run}")).detail(names(&runs)));
        }
        (None, [run]) => run.clone(),
        (None, []) => return Err(Trouble::new(Exit::Fleet, "no results to collect")),
        (None, _) => return Err(Trouble::usage("there are results of several runs: specify one").detail(names(&runs))),
    };
    if let Some(agent) = bus.agents()?.into_iter().find(|agent| agent.busy.as_ref() == Some(&run)) {
        let cause = format!("agent {} is still busy with run {run}", agent.name);
        return Err(Trouble::new(Exit::Fleet, cause)
            .hint("agents stop some seconds after their coordinator is gone (--lease): try again"));
    }
    let mut records = Vec::new();
    for share in stored.iter().filter(|stored| stored.run == run) {
        let record = bus.fetch(&run, share.number)?.and_then(|bytes| Record::from_bytes(&bytes));
        records.extend(record.map(|record| (share.number, record)));
    }
    let whole = put_together(records)
        .ok_or_else(|| Trouble::new(Exit::Fleet, format!("the results of run {run} are damaged")))?;
    let path = match &options.record {
        Some(path) => whole.create(path, existing(options.force)).map(|()| path.clone()),
        None => whole.write_new(Path::new(DEFAULT_FOLDER)),
    };
    let path = path.map_err(unwritable)?;
    bus.forget(&run)?;
    terminal::result(&format!("{}\n", path.display()))?;
    let missing: Vec<String> = whole
        .agents
        .iter()
        .filter(|agent| agent.status == Status::Running)
        .map(|agent| format!("share {} of {}", agent.number + 1, whole.agents.len()))
        .collect();
    if !missing.is_empty() {
        terminal::say(&format!("partial: {} incomplete\n", missing.join(", ")));
    }
    Ok(Exit::Success)
}

fn names(runs: &[String]) -> String {
    runs.join("\n")
}

/// The record of a run from those of its shares; `None`: there are none.
fn put_together(mut records: Vec<(u32, Record)>) -> Option<Record> {
    let (_, first) = records.first()?;
    let agents = u32::try_from(first.agents.len()).unwrap_or(u32::MAX);
    let mut whole = Record { stages: Vec::new(), agents: Vec::new(), ..first.clone() };
    whole.started = records.iter().map(|(_, record)| record.started).min()?;
    whole.elapsed_ns = records.iter().map(|(_, record)| record.elapsed_ns).max()?;
    whole.status = Status::Interrupted;
    whole.failure = None;
    let share = |number: u32| {
        let at = records.iter().position(|(of, _)| *of == number);
        let record = at.map(|at| records.swap_remove(at).1);
        let signed = record.as_ref().and_then(|record| record.agents.get(number as usize)).cloned().unwrap_or_default();
        let late_ns = signed.stages.iter().map(|stage| stage.late_ns).collect();
        let status = record.as_ref().map_or(Status::Running, |record| record.status);
        Share { agent: AgentPart { number, status, stages: Vec::new(), ..signed }, late_ns, record }
    };
    let shares = (0..agents).map(share).collect();
    whole.take_shares(shares, &[]);
    Some(whole)
}
