//! What an experiment needs of this machine, checked before it starts: programs, known settings, disk space.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use assay_lab::binaries::BinarySource;
use assay_lab::placement::Cpus;
use assay_lab::product::Binaries;
use assay_lab::{Account, Description, Home, SettingsCheck, binaries, filesystem, image, topology};
use assay_options::OptionValue;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_recipe::{Action, Cell, Data, Recipe, RecipeServer, Setup, Word};
use assay_run::assignment::Assignment;
use assay_run::lab;
use assay_run::workload::Workload;
use assay_seam::Nanos;
use assay_spec::values::display_duration;
use nix::sys::statvfs::statvfs;

use crate::experiment::{Experiment, WrongKey, stopped};
use crate::setup::{PlannedCell, description, prepare_words};
use crate::trial::loading;

/// What was found out about the servers of an experiment and this machine.
pub struct Found {
    /// A line for each product, front and filesystem.
    pub text: String,
    /// A line about the disk.
    pub disk: String,
    /// What is said when the disk is thought to be too small; `None`: it suffices, or nobody knows.
    pub too_small: Option<String>,
    /// What cannot run here, each cause once.
    pub obstacles: Vec<Obstacle>,
}

/// Why cells cannot run here.
pub struct Obstacle {
    /// What is wrong or missing, with the key of the recipe that asks for it.
    wrong: WrongKey,
    /// Cells, by their index.
    cells: BTreeSet<usize>,
}

impl Found {
    /// An error if some cell cannot run here.
    pub fn refuse_any(self, experiment: &Experiment) -> Result<Found, Trouble> {
        if self.obstacles.is_empty() {
            return Ok(self);
        }
        let mut all = self.obstacles.into_iter();
        let trouble = all.next().expect("there is one").trouble(experiment);
        let others = all.map(|other| format!("nor: {}", other.trouble(experiment).cause));
        let trouble = others.fold(trouble, |trouble, words| trouble.detail(words));
        let cause = format!("cannot run here: {}", trouble.cause);
        Err(Trouble { exit: Exit::Usage, cause, ..trouble })
    }

    /// An error if a value is wrong, or if no cell can run here. Cells that cannot become failed trials, and are
    /// warned of.
    pub fn refuse_wrong(&mut self, experiment: &Experiment) -> Result<(), Trouble> {
        let wrong = self.obstacles.iter().position(|one| one.wrong.trouble.exit == Exit::Usage);
        let unfit: BTreeSet<usize> = self.obstacles.iter().flat_map(|one| &one.cells).copied().collect();
        let all = (unfit.len() == experiment.recipe.cells.len()).then_some(0);
        if let Some(number) = wrong.or(all) {
            let trouble = self.obstacles.swap_remove(number).trouble(experiment);
            return Err(Trouble { cause: format!("cannot run here: {}", trouble.cause), ..trouble });
        }
        for one in std::mem::take(&mut self.obstacles) {
            terminal::say(&format!("warning: cannot run here: {}\n", one.trouble(experiment).cause));
        }
        Ok(())
    }
}

impl Obstacle {
    /// With its place, and the cells if they are not all.
    fn trouble(self, experiment: &Experiment) -> Trouble {
        let (own, all) = (self.cells.len(), experiment.recipe.cells.len());
        let first = self.cells.first().map(|cell| experiment.recipe.cells[*cell].name.clone());
        let trouble = experiment.located(self.wrong);
        match first {
            Some(first) if own < all && own == 1 => trouble.detail(format!("this concerns 1 of {all} cells: {first}")),
            Some(first) if own < all => {
                trouble.detail(format!("this concerns {own} of {all} cells, the first is {first}"))
            }
            _ => trouble,
        }
    }
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

/// Checks what all cells need of this machine. `fetch`: gets programs that can be downloaded or unpacked, and gets a
/// line before each; `None`: they are reported, and their settings not checked.
pub fn look(experiment: &Experiment, planned: &[PlannedCell], fetch: Option<&dyn Fn(&str)>) -> Result<Found, Trouble> {
    Home::check()?;
    let recipe = &experiment.recipe;
    let home = assay_products::home();
    let mut looking = Looking::new(&home, fetch)?;
    let mut disk = Disk::default();
    for (number, (cell, planned)) in recipe.cells.iter().zip(planned).enumerate() {
        stopped()?;
        let mut of_cell = 0;
        for (name, server) in &cell.setup.server {
            let prepare = planned.runs.prepare.as_ref().filter(|_| cell.setup.holds_data(name));
            let bytes = looking.server(number, (name, server), &cell.setup, prepare, &mut disk)?;
            of_cell += bytes * u64::from(1 + server.replicas);
        }
        looking.machine(number, &cell.setup);
        disk.copies = disk.copies.max(of_cell);
    }
    for (number, step) in recipe.steps.iter().enumerate() {
        if step.action == Action::DropCaches && !nix::unistd::geteuid().is_root() {
            let key = vec!["step".to_owned(), (number + 1).to_string()];
            let trouble = Trouble::environment(format!("step {}: only root can empty the page cache", step.name));
            let is_for = |(_, cell): &(usize, &Cell)| step.is_for(&recipe.levels_of(cell));
            let cells = recipe.cells.iter().enumerate().filter(is_for).map(|(number, _)| number);
            looking.obstacles.push(Obstacle { wrong: WrongKey { key, trouble }, cells: cells.collect() });
        }
    }
    looking.check_values(recipe)?;
    let mut text = String::new();
    for (product, state) in &looking.products {
        text += &format!("  {product}{state}\n");
    }
    for (name, server) in &recipe.cells[0].setup.server {
        if server.replicas > 0 {
            text += &format!("  {} behind {name}\n", count(server.replicas as usize, "replica"));
        }
    }
    looking.others.iter().for_each(|line| text += &format!("  {line}\n"));
    let free = free_bytes(&home.cache);
    let too_small = disk.too_small(&home, free);
    Ok(Found { text, disk: disk.words(&home, free), too_small, obstacles: looking.obstacles })
}

/// What is looked at once, however many cells need it.
struct Looking<'a> {
    home: &'a Home,
    fetch: Option<&'a dyn Fn(&str)>,
    account: Account,
    images: Vec<image::Image>,
    /// By product and named programs.
    programs: HashMap<(String, Option<String>), Programs>,
    settings: SettingsCheck,
    /// Servers that were checked, with what is wrong with them.
    servers: HashMap<(String, RecipeServer), Result<Box<Description>, WrongKey>>,
    /// Sizes of data, by server and load.
    sizes: HashMap<(String, Data, RecipeServer), u64>,
    /// Hashes of workloads that load data.
    hashes: HashMap<String, String>,
    /// Words about CPUs, fronts and filesystems of which is known whether they are here.
    machine: HashMap<String, Option<Trouble>>,
    products: BTreeMap<String, String>,
    /// Lines about fronts and filesystems.
    others: BTreeSet<String>,
    obstacles: Vec<Obstacle>,
}

impl<'a> Looking<'a> {
    fn new(home: &'a Home, fetch: Option<&'a dyn Fn(&str)>) -> Result<Looking<'a>, Trouble> {
        Ok(Looking {
            home,
            fetch,
            account: Account::choose(None)?,
            images: image::list(home)?,
            programs: HashMap::new(),
            settings: SettingsCheck::default(),
            servers: HashMap::new(),
            sizes: HashMap::new(),
            hashes: HashMap::new(),
            machine: HashMap::new(),
            products: BTreeMap::new(),
            others: BTreeSet::new(),
            obstacles: Vec::new(),
        })
    }

    fn obstacle(&mut self, cell: usize, wrong: &WrongKey) {
        let is_same =
            |one: &&mut Obstacle| one.wrong.key == wrong.key && one.wrong.trouble.cause == wrong.trouble.cause;
        match self.obstacles.iter_mut().find(is_same) {
            Some(known) => _ = known.cells.insert(cell),
            None => self.obstacles.push(Obstacle { wrong: wrong.clone(), cells: BTreeSet::from([cell]) }),
        }
    }

    /// Looks at a server of a cell. Returns the bytes of its data, as far as they are known.
    fn server(
        &mut self,
        cell: usize,
        (name, server): (&str, &RecipeServer),
        setup: &Setup,
        prepare: Option<&Assignment>,
        disk: &mut Disk,
    ) -> Result<u64, Trouble> {
        let Some(product) = &server.product else {
            self.products.insert(format!("{name}: already running"), String::new());
            return Ok(0);
        };
        let key = (name.to_owned(), server.clone());
        if !self.servers.contains_key(&key) {
            let described = self.described(name, server);
            self.servers.insert(key.clone(), described);
        }
        let described = match &self.servers[&key] {
            Ok(described) => described.clone(),
            Err(wrong) => {
                let wrong = wrong.clone();
                self.obstacle(cell, &wrong);
                self.products.entry(product.clone()).or_default();
                return Ok(0);
            }
        };
        let Some(prepare) = prepare else { return Ok(0) };
        let key = (name.to_owned(), setup.data.clone(), server.clone());
        if let Some(known) = self.sizes.get(&key) {
            return Ok(*known);
        }
        let line = prepare_words(prepare).join(" ");
        let programs = &self.programs[&(product.clone(), server.binaries.clone())];
        let bytes = match programs {
            Programs::Here(programs) => {
                let loading = loading(&described, setup, prepare, programs)?;
                self.settings.check_names(self.home.products, &loading, programs)?;
                let hash = self.hashes.entry(prepare.workload.name.clone());
                let hash = hash.or_insert_with(|| lab::hash_of_workload(Some(&prepare.workload.name)));
                let key = loading.contents(self.home.products, programs, &line, hash)?.key();
                match self.images.iter().find(|one| one.key == key) {
                    Some(kept) => {
                        disk.kept.insert(key, kept.bytes);
                        Some(kept.bytes)
                    }
                    None => {
                        let estimate = || estimated_bytes(product, &prepare.workload);
                        *disk.loaded.entry(key).or_insert_with(estimate)
                    }
                }
            }
            Programs::ToFetch(_) => {
                let estimate = || estimated_bytes(product, &prepare.workload);
                *disk.loaded.entry(format!("{product} {line}")).or_insert_with(estimate)
            }
            Programs::Missing(_) => None,
        };
        self.sizes.insert(key, bytes.unwrap_or(0));
        Ok(bytes.unwrap_or(0))
    }

    /// What would be started, if it can be.
    fn described(&mut self, name: &str, server: &RecipeServer) -> Result<Box<Description>, WrongKey> {
        let product = server.product.as_ref().expect("it is started");
        let in_key = |parts: &[&str]| ["server", name].iter().chain(parts).map(|part| (*part).to_owned()).collect();
        let wrong = |parts: &[&str], trouble: Trouble| {
            let key: Vec<String> = in_key(parts);
            WrongKey { trouble: Trouble { cause: format!("{}: {}", key.join("."), trouble.cause), ..trouble }, key }
        };
        let described = description(name, server)?;
        described
            .check_parts(self.home.products)
            .map_err(|fault| wrong(&[if server.front.is_empty() { "replicas" } else { "front" }], fault.into()))?;
        for front in server.front.keys() {
            let found = self.machine.entry(format!("{front} before {name}")).or_insert_with(|| {
                let found = self.home.products.front(front);
                found.and_then(|front| topology::front_binaries(front, &self.account)).err().map(Trouble::from)
            });
            self.others.insert(format!("{front} before {name}"));
            if let Some(trouble) = found {
                return Err(wrong(&["front", front], trouble.clone()));
            }
        }
        if let Some(words) = &server.filesystem {
            self.others.insert(format!("filesystem {words}"));
            let found = self.machine.entry(format!("filesystem {words}"));
            if let Some(trouble) = found.or_insert_with(|| filesystem::missing(words).map(Trouble::environment)) {
                return Err(wrong(&["filesystem"], trouble.clone()));
            }
        }
        let key = (product.clone(), server.binaries.clone());
        if !self.programs.contains_key(&key) {
            let found = found(self.home, &described, self.fetch, &self.account);
            self.programs.insert(key.clone(), found.unwrap_or_else(Programs::Missing));
        }
        let state = self.products.entry(product.clone()).or_default();
        match &self.programs[&key] {
            Programs::Here(programs) => {
                self.settings.check_names(self.home.products, &described, programs).map_err(|fault| {
                    let unknown = |asked: &&String| fault.cause.ends_with(&format!(" has no setting {asked}"));
                    let setting = server.settings.keys().find(unknown).map(String::as_str);
                    let parts: Vec<&str> = ["settings"].into_iter().chain(setting).collect();
                    WrongKey { key: in_key(&parts), trouble: fault.into() }
                })?;
            }
            Programs::ToFetch(words) => *state = format!(": {words}"),
            Programs::Missing(trouble) => {
                let part = if server.binaries.is_some() { "binaries" } else { "product" };
                return Err(wrong(&[part], trouble.clone()));
            }
        }
        Ok(Box::new(described))
    }

    /// Looks for what a cell needs besides servers.
    fn machine(&mut self, cell: usize, setup: &Setup) {
        if let Some(words) = &setup.run.filesystem {
            self.others.insert(format!("filesystem {words}"));
            let found = self.machine.entry(format!("filesystem {words}"));
            let found = found.or_insert_with(|| filesystem::missing(words).map(Trouble::environment)).clone();
            self.need(cell, &["run", "filesystem"], words, found);
        }
        if let Some(cpus) = &setup.generator.cpus {
            let found = self.machine.entry(format!("CPUs {cpus}"));
            let found = found.or_insert_with(|| Cpus::of_this_machine(cpus).err().map(Trouble::from)).clone();
            self.need(cell, &["generator", "cpus"], cpus, found);
        }
    }

    fn need(&mut self, cell: usize, key: &[&str], value: &str, missing: Option<Trouble>) {
        if let Some(trouble) = missing {
            let key: Vec<String> = key.iter().map(|part| (*part).to_owned()).collect();
            let cause = format!("{} {value:?}: {}", key.join("."), trouble.cause);
            self.obstacle(cell, &WrongKey { key, trouble: Trouble { cause, ..trouble } });
        }
    }

    /// Finds settings whose values their programs refuse.
    fn check_values(&mut self, recipe: &Recipe) -> Result<(), Trouble> {
        let here = self.programs.values().filter_map(|programs| match programs {
            Programs::Here(programs) => Some((**programs).clone()),
            _ => None,
        });
        let here: Vec<Binaries> = here.collect();
        for (setting, words) in self.settings.refused(self.home.products, &here)? {
            let asked = setting.value.unwrap_or_default();
            for (number, cell) in recipe.cells.iter().enumerate() {
                let has_it = |settings: &BTreeMap<String, Word>| {
                    settings.get(&setting.name).is_some_and(|Word(value)| *value == asked)
                };
                let mut servers = cell.setup.server.iter().filter(|(_, server)| has_it(&server.settings));
                let key = match servers.next() {
                    Some((name, _)) => vec!["server", name, "settings", &setting.name],
                    None if has_it(&cell.setup.data.settings) => vec!["data", "settings", &setting.name],
                    None => continue,
                };
                let key: Vec<String> = key.into_iter().map(str::to_owned).collect();
                let trouble = Trouble::usage(format!("{} {asked:?}: {words}", key.join(".")));
                self.obstacle(number, &WrongKey { key, trouble });
            }
        }
        Ok(())
    }
}

/// A server's programs.
enum Programs {
    Here(Box<Binaries>),
    /// How they will come here.
    ToFetch(String),
    /// Why they cannot run here.
    Missing(Trouble),
}

fn found(
    home: &Home,
    described: &Description,
    fetch: Option<&dyn Fn(&str)>,
    account: &Account,
) -> Result<Programs, Trouble> {
    let wanted = &described.wanted;
    if described.binaries.is_none() && fetch.is_none() {
        let all = binaries::sources(home, home.products.product(&wanted.product)?, account);
        match all.iter().find(|source| wanted.fits(&binaries::version_of(source))) {
            Some(BinarySource::Catalog(_, artifact)) => {
                let words = format!("{}, {} MB, will be downloaded", artifact.version, artifact.megabytes);
                return Ok(Programs::ToFetch(words));
            }
            Some(BinarySource::Container(image)) => {
                return Ok(Programs::ToFetch(format!("will be unpacked from the image {}", image.name)));
            }
            Some(BinarySource::Here(_)) | None => {}
        }
    }
    Ok(Programs::Here(Box::new(described.find_binaries(home, fetch.unwrap_or(&|_| {}))?)))
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
        // Without a number, prepare loads one.
        "tpcc" => number("warehouses").map(|warehouses| warehouses.max(1.0) * WAREHOUSE),
        "tpcb" | "tpcb_simple_update" | "tpcb_select_only" => number("scale").map(|scale| scale.max(1.0) * BRANCH),
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
