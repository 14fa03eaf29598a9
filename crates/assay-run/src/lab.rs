//! Servers that a run starts: from a spec to the lab's description, until they must be gone, and what the record says
//! of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use assay_lab::placement::Cpus;
use assay_lab::product::InEffect;
use assay_lab::server::What;
use assay_lab::{
    Description, Fault, FrontDescription, Home, Placement, Server, ServerSetting, Topology, Wanted, image, topology,
};
use assay_process::diagnostics::Trouble;
use assay_process::terminal;
use assay_record::{self as record, Attribute, AttributeScope};
use assay_seam::Nanos;
use assay_spec::{Concealed, ServerSpec};
use sha2::{Digest, Sha256};

use crate::client::Client;
use crate::{library, registry};

/// The server of a run.
pub fn description(spec: &ServerSpec) -> Result<Description, Trouble> {
    let texts = |all: &[Concealed]| all.iter().map(|text| text.reveal().to_owned()).collect::<Vec<_>>();
    let wanted: Wanted = spec.product.parse()?;
    Ok(Description {
        settings: settings_of(&wanted, &texts(&spec.settings))?,
        file: spec.config.as_deref().map(read).transpose()?,
        placement: Placement {
            cpus: spec.cpus.as_deref().map(Cpus::of_this_machine).transpose()?,
            memory_bytes: spec.memory,
            ..Placement::default()
        },
        fronts: fronts(&spec.fronts, &texts(&spec.front_settings))?,
        binaries: spec.binaries.clone(),
        ..Description::of(wanted)
    })
}

/// The values of `--set`: `NAME=VALUE`, or `NAME` if the product has settings without a value.
pub fn settings_of(wanted: &Wanted, words: &[String]) -> Result<Vec<ServerSetting>, Trouble> {
    let settings = settings(words);
    // An unknown product is refused when it is looked for.
    if let Ok(product) = assay_products::products().product(&wanted.product) {
        let named = |fault: Fault| Fault { cause: format!("--set {}", fault.cause), ..fault };
        assay_lab::check_form(product, &settings).map_err(named)?;
    }
    Ok(settings)
}

/// Settings as given: `NAME=VALUE`.
pub fn settings(words: &[String]) -> Vec<ServerSetting> {
    words.iter().map(|word| ServerSetting::parse(word)).collect()
}

/// A configuration file.
pub fn read(path: &Path) -> Result<String, Trouble> {
    record::read_text(path, record::WRITTEN_BYTES_MAX)
        .map_err(|error| Trouble::environment(format!("cannot read {}: {error}", path.display())))
}

/// All settings belong to the last front: the one that gets the load.
pub fn fronts(words: &[String], set: &[String]) -> Result<Vec<FrontDescription>, Trouble> {
    let mut fronts = words.iter().map(|word| FrontDescription::parse(word)).collect::<Result<Vec<_>, Fault>>()?;
    if let Some(last) = fronts.last_mut() {
        last.settings = settings(set);
    }
    Ok(fronts)
}

/// A pooler that gives a client another connection for each transaction must know prepared statements, or it forwards
/// them to a connection that does not. It is asked what it does: that depends on its settings, not only on its version.
pub fn can_prepare_statements(topology: &Topology, prepared: bool) -> Result<(), Trouble> {
    let poolers = topology.fronts.iter().filter(|front| prepared && is_pooler(front));
    for pooler in poolers {
        let version = pooler.snapshot().binaries.version;
        let trouble = |reason: &str, hint: &str| {
            let cause = format!("PgBouncer {version} cannot serve prepared statements: {reason}");
            Err(Trouble::usage(cause).hint(format!("{hint}, or add `--prepared off`")))
        };
        match PreparedStatements::of(&configuration_of(pooler)?) {
            PreparedStatements::Served => {}
            PreparedStatements::SwitchedOff => trouble(
                "max_prepared_statements is 0, and clients share connections",
                "give `--front-set max_prepared_statements=200`",
            )?,
            PreparedStatements::Unknown => trouble(
                "clients share connections, and versions before 1.21 do not keep track of them",
                "give `--front-set pool_mode=session`",
            )?,
        }
    }
    Ok(())
}

/// What a pooler does with prepared statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreparedStatements {
    /// They work.
    Served,
    /// It could keep track of them, and must not.
    SwitchedOff,
    /// It does not know them.
    Unknown,
}

impl PreparedStatements {
    /// By the settings that are in effect.
    fn of(settings: &[assay_client::Row]) -> PreparedStatements {
        let value = |name: &str| {
            let row = settings.iter().find(|row| row.first().and_then(Option::as_deref) == Some(name))?;
            row.get(1)?.as_deref()
        };
        match (value("pool_mode"), value("max_prepared_statements")) {
            // A client keeps its connection.
            (Some("session"), _) => PreparedStatements::Served,
            (_, None) => PreparedStatements::Unknown,
            (_, Some("0")) => PreparedStatements::SwitchedOff,
            (_, Some(_)) => PreparedStatements::Served,
        }
    }
}

/// The settings of a pooler, as its console lists them: name and value.
fn configuration_of(pooler: &Server) -> Result<Vec<assay_client::Row>, Trouble> {
    let url = console_of(pooler);
    let client = Client::open_url(registry::driver_of(&url)?, &url, CONSOLE);
    let rows = client.and_then(|mut client| client.rows("SHOW CONFIG"));
    rows.map_err(|error| Trouble::environment(format!("cannot ask PgBouncer for its settings: {error}")))
}

/// How long PgBouncer's console may take to answer.
const CONSOLE: Nanos = Nanos::from_secs(30);

fn is_pooler(front: &Server) -> bool {
    front.snapshot().binaries.product == "pgbouncer"
}

/// Its administrator: see the lab's configuration for it.
fn console_of(pooler: &Server) -> String {
    pooler.url("pgbouncer").replacen("://app@", "://postgres@", 1)
}

/// The admin console of the pooler that gets the load; `None`: the load goes elsewhere.
pub fn pooler(topology: &Topology) -> Option<String> {
    topology.fronts.last().filter(|front| is_pooler(front)).map(console_of)
}

/// Reports servers left by a killed process. Only the user touches them.
pub fn tell_of_stale(home: &Home) {
    let stale: Vec<String> = topology::stale(home).iter().map(Server::name).collect();
    if !stale.is_empty() {
        let names = stale.join(", ");
        terminal::say(&format!(
            "left behind by a killed process: {names}\n  stop them: assay server stop --all-stale\n"
        ));
    }
}

/// What the command line of a `prepare` does not contain: the text of the built-in workloads, and of all files that a
/// script loads. SHA-256, so that any build of assay finds the images of any other.
pub fn hash_of_workload(name: Option<&String>) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &[u8]| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    assay_workloads::builtin().iter().for_each(|builtin| add(builtin.text.as_bytes()));
    name.map(|name| library::files(name)).unwrap_or_default().iter().for_each(|text| add(text));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Data that is loaded once and kept as an image.
pub struct Loaded {
    /// The image.
    pub key: String,
    /// The servers that loaded the data, if that was now. They are still running.
    pub servers: Option<Kept>,
}

/// The image with what a `prepare` loads. `line`: its arguments, without passwords, starting with the workload's name.
/// If there is no such image yet, servers are started, filled by `load`, and their data is kept.
pub fn load_once(
    home: &Home,
    description: &Description,
    line: &[String],
    say: &dyn Fn(&str),
    load: impl FnOnce(&Topology) -> Result<(), Trouble>,
) -> Result<Loaded, Trouble> {
    let binaries = description.find_binaries(home, say)?;
    let contents = description.contents(home.products, &binaries, &line.join(" "), &hash_of_workload(line.first()))?;
    if image::exists(home, &contents) {
        return Ok(Loaded { key: contents.key(), servers: None });
    }
    let kept = Kept::new(Topology::start(home, description, say)?);
    load(kept.topology())?;
    kept.topology().keep_image(home, &contents, say)?;
    Ok(Loaded { key: contents.key(), servers: Some(kept) })
}

impl Loaded {
    /// Servers with the data: those that have loaded it, or new ones.
    pub fn start(self, home: &Home, description: Description, say: &dyn Fn(&str)) -> Result<Kept, Trouble> {
        if let Some(kept) = self.servers {
            return Ok(kept);
        }
        let description = Description { image: Some(self.key), ..description };
        Ok(Kept::new(Topology::start(home, &description, say)?))
    }
}

/// Servers that end with this process, unless they are let go.
pub struct Kept(Option<Topology>);

impl Kept {
    /// Keeps running servers.
    pub fn new(topology: Topology) -> Kept {
        Kept(Some(topology))
    }

    /// The servers.
    pub fn topology(&self) -> &Topology {
        self.0.as_ref().expect("it is there until it is let go or dropped")
    }

    /// From now on they outlive this process.
    pub fn let_stay(mut self) -> Result<(), Trouble> {
        let topology = self.0.take().expect("it is there until it is let go or dropped");
        Ok(topology.let_stay()?)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(topology) = self.0.take() else { return };
        if let Err(fault) = topology.stop(STOP).and_then(|_| topology.remove()) {
            terminal::say(&format!("warning: a server of this run could not be removed: {fault}\n"));
        }
    }
}

/// How long a run's server may take to stop cleanly before it is killed: its data is discarded.
const STOP: Duration = Duration::from_secs(5);

/// Kills and removes immediately what this process has started or is starting: for an exit without unwinding.
pub fn remove() {
    assay_lab::server::remove_own(&assay_products::home());
}

/// The part of a run's record about the servers that were started for it, the one under load first; `None` without any.
pub fn recorded(topologies: &[&Topology]) -> Option<record::StartedServer> {
    let topology = topologies.first()?;
    let state = topology.primary.snapshot();
    let file = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let files = topology.servers().flat_map(|server| {
        let own = server.name() == state.name;
        let name = server.name();
        server.configuration().into_iter().map(move |(path, text)| {
            let file = file(&path);
            (if own { file } else { format!("{name}/{file}") }, text)
        })
    });
    let nanos = |took: Duration| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    Some(record::StartedServer {
        product: state.binaries.product.clone(),
        version: state.binaries.version.to_string(),
        program: state.binaries.program.display().to_string(),
        identity: identity(topologies),
        configuration: files.collect(),
        timings_ns: topology.timings.iter().map(|timing| (timing.part.clone(), nanos(timing.took))).collect(),
    })
}

/// What distinguishes these servers from others of the same product and version.
fn identity(topologies: &[&Topology]) -> Vec<Attribute> {
    let mut all = Vec::new();
    let fronts: usize = topologies.iter().map(|topology| topology.fronts.len()).sum();
    let mut before = 0;
    for (place, topology) in topologies.iter().enumerate() {
        let placement = topology.primary.snapshot().placement;
        let setting = |one: &InEffect| Attribute::setting(&one.name, one.asked.clone(), one.value.clone(), one.same);
        let own = (topology.in_effect.iter().map(setting))
            .chain(placement.cpus.map(|cpus| Attribute::placement("pinned CPUs", cpus.to_string())))
            .chain(placement.memory_bytes.map(|bytes| Attribute::memory("memory limit", bytes)))
            .chain(placement.huge_pages_bytes.map(|bytes| Attribute::memory("reserved huge pages", bytes)))
            .chain(placement.transparent.map(|when| Attribute::placement("transparent huge pages", when.to_string())))
            .chain(
                (!topology.replicas.is_empty())
                    .then(|| Attribute::new(AttributeScope::Replica, "replicas", topology.replicas.len().to_string())),
            )
            .chain(topology.restored.map(|restored| {
                Attribute::restored(match restored.method {
                    image::Method::Reflink => "reflink",
                    image::Method::Copy => "copy",
                })
            }));
        all.extend(own.map(|one| one.numbered(place, topologies.len())));
        for (number, front) in topology.fronts.iter().enumerate() {
            let behind_primary = topology.primary.snapshot().port;
            all.extend(
                identity_of_front(front, number == 0, behind_primary)
                    .into_iter()
                    .map(|one| one.numbered(before + number, fronts)),
            );
        }
        before += topology.fronts.len();
    }
    all
}

/// `is_nearest`: nothing is between it and the servers, of which the primary has this port.
fn identity_of_front(front: &Server, is_nearest: bool, primary: u16) -> Vec<Attribute> {
    let state = front.snapshot();
    let What::Front { behind, settings, .. } = &state.what else { return Vec::new() };
    let servers = match (behind.contains(&primary), behind.len()) {
        (true, 1) => "primary",
        (true, _) => "all",
        (false, _) => "replicas",
    };
    let program = format!("{} {}", state.binaries.product, state.binaries.version);
    let program = Attribute::new(AttributeScope::Front, "front", program);
    let servers = is_nearest.then(|| Attribute::new(AttributeScope::Front, "servers", servers));
    let settings = settings.iter().map(|one| {
        let value = one.value.clone().unwrap_or_default();
        Attribute { asked: one.value.clone(), ..Attribute::new(AttributeScope::Front, &one.name, value) }
    });
    [program].into_iter().chain(servers).chain(settings).collect()
}

/// Empties the machine's page cache. Dirty pages are written first, because the kernel keeps them otherwise.
pub fn drop_caches() -> Result<(), Trouble> {
    let synced = Command::new("sync").status().map(drop);
    synced.and_then(|()| std::fs::write("/proc/sys/vm/drop_caches", "3")).map_err(|error| {
        Trouble::environment(format!("cannot empty the page cache: {error}"))
            .hint("this needs root; without this step, restarted servers find a warm page cache")
    })
}

/// Settings that the server changed.
pub fn differences(in_effect: &[InEffect]) -> String {
    let differs = |one: &&InEffect| !one.same && one.value.is_some();
    let line = |one: &InEffect| {
        let (asked, value) = (one.asked.as_deref().unwrap_or("on"), one.value.as_deref().unwrap_or_default());
        format!("  {}: requested {asked}, in effect {value}\n", one.name)
    };
    in_effect.iter().filter(differs).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the console of PgBouncer 1.18, 1.21 and 1.24 lists them.
    #[test]
    fn prepared_statements_are_served_where_clients_keep_their_connection_or_the_pooler_keeps_track() {
        let served = |mode: &str, most: Option<&str>| {
            let row = |name: &str, value: &str| vec![Some(name.to_owned()), Some(value.to_owned()), None];
            let mut rows = vec![row("max_client_conn", "10000"), row("pool_mode", mode)];
            rows.extend(most.map(|most| row("max_prepared_statements", most)));
            PreparedStatements::of(&rows)
        };
        for most in [None, Some("0"), Some("200")] {
            assert_eq!(served("session", most), PreparedStatements::Served);
        }
        for mode in ["transaction", "statement"] {
            assert_eq!(served(mode, None), PreparedStatements::Unknown);
            assert_eq!(served(mode, Some("0")), PreparedStatements::SwitchedOff);
            assert_eq!(served(mode, Some("200")), PreparedStatements::Served);
        }
    }
}
