//! What an experiment needs of this machine, checked before it starts: programs, known settings, disk space.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use assay_lab::binaries::BinarySource;
use assay_lab::placement::Cpus;
use assay_lab::product::Binaries;
use assay_lab::{Account, Description, Home, binaries, filesystem, image, topology};
use assay_options::OptionValue;
use assay_process::diagnostics::Trouble;
use assay_recipe::{Action, RecipeServer};
use assay_run::lab;
use assay_run::workload::Workload;
use assay_seam::Nanos;
use assay_spec::values::display_duration;
use nix::sys::statvfs::statvfs;

use crate::experiment::{Experiment, WrongKey};
use crate::setup::{Runs, description, prepare_words};
use crate::trial::loading;

/// The part of `plan` about servers.
pub struct Found {
    /// A line for each product and for everything that is missing.
    pub text: String,
    /// A line about the disk.
    pub disk: String,
    /// What is said when the disk is thought to be too small; `None`: it suffices, or nobody knows.
    pub too_small: Option<String>,
}

/// Bytes of data, as far as they are known.
#[derive(Default)]
struct Disk {
    /// Sizes of existing images, by key.
    kept: BTreeMap<String, u64>,
    /// Estimated sizes of images that are still to be loaded; `None`: unknown.
    loaded: BTreeMap<String, Option<u64>>,
    /// The most that the servers of one trial copy.
    copies: u64,
}

/// Checks the servers of all cells. Missing programs are reported; an unknown setting is an error. `fetch`: gets
/// programs that can be downloaded or unpacked, and gets a line before each; `None`: they are reported, and their
/// settings not checked.
pub fn look(experiment: &Experiment, runs: &[Runs], fetch: Option<&dyn Fn(&str)>) -> Result<Found, Trouble> {
    Home::check()?;
    let recipe = &experiment.recipe;
    let home = assay_products::home();
    let mut products: BTreeMap<String, String> = BTreeMap::new();
    let mut checked: Vec<&RecipeServer> = Vec::new();
    let mut all = Disk::default();
    for (cell, runs) in recipe.cells.iter().zip(runs) {
        let mut of_cell = 0;
        for (name, server) in &cell.setup.server {
            let Some(product) = &server.product else {
                products.insert(format!("{name}: already running"), String::new());
                continue;
            };
            let known = products.entry(product.clone()).or_default();
            let prepare = runs.prepare.as_ref().filter(|_| cell.setup.holds_data(name));
            let servers = u64::from(1 + server.replicas);
            let (described, programs) = match found(&home, server, fetch)? {
                Programs::Here(described, programs) => (described, programs),
                Programs::ToFetch(words) => {
                    *known = format!(": {words}");
                    if let Some(prepare) = prepare {
                        let bytes = estimated_bytes(product, &prepare.workload);
                        all.loaded.insert(format!("{product} {}", prepare_words(prepare).join(" ")), bytes);
                        of_cell += bytes.unwrap_or(0) * servers;
                    }
                    continue;
                }
                Programs::Missing(words) => {
                    *known = format!(": missing: {words}");
                    continue;
                }
            };
            if !checked.contains(&server) {
                described.check_settings(home.products, &programs).map_err(|fault| {
                    let unknown = |asked: &&String| fault.cause.ends_with(&format!(" has no setting {asked}"));
                    let setting = server.settings.keys().find(unknown);
                    let key = ["server", name, "settings"].into_iter().chain(setting.map(String::as_str));
                    experiment.located(WrongKey { key: key.map(str::to_owned).collect(), trouble: fault.into() })
                })?;
                checked.push(server);
            }
            let Some(prepare) = prepare else { continue };
            let loading = loading(&described, &cell.setup, prepare, &programs)?;
            let line = prepare_words(prepare).join(" ");
            let hash = lab::hash_of_workload(Some(&prepare.workload.name));
            let key = loading.contents(home.products, &programs, &line, &hash)?.key();
            let kept = image::list(&home)?.into_iter().find(|one| one.key == key);
            let bytes = match kept {
                Some(kept) => {
                    all.kept.insert(key, kept.bytes);
                    Some(kept.bytes)
                }
                None => {
                    let bytes = estimated_bytes(product, &prepare.workload);
                    all.loaded.insert(key, bytes);
                    bytes
                }
            };
            of_cell += bytes.unwrap_or(0) * servers;
        }
        all.copies = all.copies.max(of_cell);
    }
    let mut text = String::new();
    for (product, state) in &products {
        text += &format!("  {product}{state}\n");
    }
    for (name, server) in &recipe.cells[0].setup.server {
        if server.replicas > 0 {
            text += &format!("  {} behind {name}\n", count(server.replicas as usize, "replica"));
        }
    }
    text += &fronts_and_filesystems(&home, experiment)?;
    for cpus in recipe.cells.iter().filter_map(|cell| cell.setup.generator.cpus.as_ref()).collect::<BTreeSet<_>>() {
        if let Err(fault) = Cpus::of_this_machine(cpus) {
            text += &format!("  generator.cpus: missing: {}\n", fault.cause);
        }
    }
    let drops = recipe.steps.iter().any(|step| step.action == Action::DropCaches);
    if drops && !nix::unistd::geteuid().is_root() {
        text += "  drop_caches: missing: only root can empty the page cache\n";
    }
    let free = free_bytes(&home.cache);
    let too_small = all.too_small(&home, free);
    Ok(Found { text, disk: all.words(&home, free), too_small })
}

/// A line for each front and each filesystem of any cell, with what is missing for it.
fn fronts_and_filesystems(home: &Home, experiment: &Experiment) -> Result<String, Trouble> {
    let mut lines = BTreeSet::new();
    let account = Account::choose(None)?;
    for cell in &experiment.recipe.cells {
        let servers = cell.setup.server.iter();
        for (name, front) in servers.flat_map(|(name, server)| server.front.keys().map(move |front| (name, front))) {
            let found = home.products.front(front).and_then(|front| topology::front_binaries(front, &account));
            let missing = found.err().map_or(String::new(), |fault| {
                let hints: String = fault.hints.iter().map(|hint| format!("; {hint}")).collect();
                format!(": missing: {}{hints}", fault.cause)
            });
            lines.insert(format!("  {front} before {name}{missing}\n"));
        }
        let of_servers = cell.setup.server.values().filter_map(|server| server.filesystem.as_ref());
        for words in of_servers.chain(&cell.setup.run.filesystem) {
            let missing = filesystem::missing(words).map_or(String::new(), |words| format!(": missing: {words}"));
            lines.insert(format!("  filesystem {words}{missing}\n"));
        }
    }
    Ok(lines.into_iter().collect())
}

/// A server's programs.
enum Programs {
    Here(Box<Description>, Binaries),
    /// How they will come here.
    ToFetch(String),
    /// Why they cannot run here, or the server's description cannot be applied.
    Missing(String),
}

fn found(home: &Home, server: &RecipeServer, fetch: Option<&dyn Fn(&str)>) -> Result<Programs, Trouble> {
    let described = match description(server) {
        Err(trouble) => return Ok(Programs::Missing(trouble.cause)),
        Ok(described) => described,
    };
    let wanted = &described.wanted;
    if described.binaries.is_none() {
        let all = binaries::sources(home, home.products.product(&wanted.product)?, &Account::choose(None)?);
        let source = all.iter().find(|source| wanted.fits(&binaries::version_of(source)));
        match (source, fetch) {
            (None, _) => return Ok(Programs::Missing(format!("see `assay server sources {}`", wanted.product))),
            (Some(BinarySource::Catalog(_, artifact)), None) => {
                let words = format!("{}, {} MB, will be downloaded", artifact.version, artifact.megabytes);
                return Ok(Programs::ToFetch(words));
            }
            (Some(BinarySource::Container(image)), None) => {
                return Ok(Programs::ToFetch(format!("will be unpacked from the image {}", image.name)));
            }
            (Some(BinarySource::Here(_) | BinarySource::Catalog(..) | BinarySource::Container(_)), _) => {}
        }
    }
    match described.find_binaries(home, fetch.unwrap_or(&|_| {})) {
        Ok(programs) => Ok(Programs::Here(Box::new(described), programs)),
        Err(fault) => {
            let hints: String = fault.hints.iter().map(|hint| format!("; {hint}")).collect();
            Ok(Programs::Missing(format!("{}{hints}", fault.cause)))
        }
    }
}

impl Disk {
    /// Bytes that images and a trial still take, as far as they are known.
    fn wanted(&self) -> u64 {
        self.loaded.values().flatten().sum::<u64>() + self.copies
    }

    fn too_small(&self, home: &Home, free: Option<u64>) -> Option<String> {
        let free = free.filter(|free| *free < self.wanted())?;
        let (wanted, cache) = (size(self.wanted()), home.cache.display());
        Some(format!("the data needs about {wanted} more in {cache}, where {} are free", size(free)))
    }

    fn words(&self, home: &Home, free: Option<u64>) -> String {
        if self.kept.is_empty() && self.loaded.is_empty() {
            return String::new();
        }
        let kept = self.kept.values().sum::<u64>();
        let loaded = self.loaded.values().flatten().sum::<u64>();
        let unknown = self.loaded.values().filter(|bytes| bytes.is_none()).count();
        let parts = [
            (kept > 0).then(|| format!("{} of images", size(kept))),
            (loaded > 0).then(|| format!("about {} to be loaded", size(loaded))),
            (unknown > 0).then(|| format!("{} of unknown size to be loaded", count(unknown, "image"))),
            (self.copies > 0).then(|| format!("{} for a trial", size(self.copies))),
            free.map(|free| format!("{} free in {}", size(free), home.cache.display())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let missing = self.too_small(home, free).map_or(String::new(), |words| format!("disk: missing: {words}\n"));
        format!("disk: {}\n{missing}", parts.join(", "))
    }
}

/// Free space of the file system under a folder; `None`: unknown.
fn free_bytes(folder: &Path) -> Option<u64> {
    let found = statvfs(existing(folder)).ok()?;
    Some(found.blocks_available() * found.fragment_size())
}

/// What an image with this data will take, about: its rows, and what the server adds. `None`: the workload is none of
/// ours.
fn estimated_bytes(product: &str, workload: &Workload) -> Option<u64> {
    let options = workload.options_in_effect();
    let number = |name: &str| {
        options.iter().find(|(key, _)| key == name).and_then(|(_, value)| match value {
            OptionValue::Number(value) => Some(*value),
            _ => None,
        })
    };
    let rows = |name: &str, bytes: f64| number(name).map(|number| number * bytes);
    let data = match workload.name.as_str() {
        "tpcc" => rows("warehouses", WAREHOUSE),
        "tpcb" | "tpcb_simple_update" | "tpcb_select_only" => rows("scale", BRANCH),
        name if name.starts_with("oltp_") || name.starts_with("select_random_") => {
            rows("table_size", ROW).and_then(|table| Some(table * number("tables")?))
        }
        _ => None,
    };
    // PostgreSQL keeps segments of its log, as many as the load filled, up to max_wal_size.
    let log = |data: f64| if product.starts_with("postgres") { data.min(WAL_MAX) } else { 0.0 };
    let empty = match product.split(':').next() {
        Some("postgres") => 50e6,
        Some("mariadb") => 110e6,
        _ => 180e6,
    };
    data.map(|data| (empty + data + log(data)) as u64)
}

/// Bytes of a warehouse of TPC-C, of a branch of TPC-B with its accounts, and of a row of the OLTP tables, with their
/// indexes: as measured after loading, on PostgreSQL and InnoDB alike within a fifth.
const WAREHOUSE: f64 = 105e6;
const BRANCH: f64 = 15e6;
const ROW: f64 = 260.0;
/// The default of max_wal_size.
const WAL_MAX: f64 = 1.07e9;

/// The folder itself, or its nearest existing parent.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        more => format!("{:.1} GB", more as f64 / 1e9),
    }
}

/// `3 cells`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// In minutes, or seconds where it is short.
pub fn about(seconds: f64) -> String {
    let whole = if seconds < 120.0 { seconds.ceil() } else { (seconds / 60.0).ceil() * 60.0 };
    display_duration(Nanos::from_secs(whole as u64))
}
