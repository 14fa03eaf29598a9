//! Servers that belong together: a primary, its replicas, and its fronts.
//!
//! A replica is a second copy of the same data directory, which the server then keeps up to date. So it needs no
//! program but the server's own, and one image serves both.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_secret::Concealed;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::binaries::{self, Introduction};
use crate::fault::{At, Fault, Result};
use crate::front::Front;
use crate::home::Home;
use crate::image::{self, Contents, Restored};
use crate::placement::Placement;
use crate::product::{Binaries, InEffect, Origin, Product, Role, ServerSetting, Settled};
use crate::products::Products;
use crate::server::{self, Server, ServerStop, Status, What};
use crate::settings;
use crate::version::{Version, Wanted};
use crate::wait::{self, Stopwatch};

/// What to start. `Description::of` is the simplest one; the fields say what differs from it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Product and version.
    pub wanted: Wanted,
    /// Its name; `None`: derived from the product's.
    pub name: Option<String>,
    /// A folder, an archive, or the server program; `None`: the first of `binaries::sources`.
    pub binaries: Option<PathBuf>,
    /// With the server's own names.
    pub settings: Vec<ServerSetting>,
    /// The text of a whole file in the product's own format.
    pub file: Option<String>,
    /// Lines about who may log in, in the product's own format; they replace those that let in everybody on this
    /// machine.
    pub access: Vec<String>,
    /// CPUs and memory for each server of the topology.
    pub placement: Placement,
    /// An existing user; `None`: the current one, or `nobody` for root.
    pub run_as: Option<String>,
    /// Where its data goes; `None`: in the lab's folder.
    pub data: Option<PathBuf>,
    /// The image to start from; `None`: an empty data directory.
    pub image: Option<String>,
    /// `None`: a free one.
    pub port: Option<u16>,
    /// The number of replicas.
    pub replicas: u32,
    /// Its fronts, the nearest first.
    pub fronts: Vec<FrontDescription>,
    /// How long each server may take to answer, and replicas to catch up.
    pub patience: Duration,
}

/// A front to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontDescription {
    /// `pgbouncer` or `haproxy`.
    pub name: String,
    /// With its own names.
    pub settings: Vec<ServerSetting>,
    /// Names and passwords for logins with SCRAM, for a front that has its own; empty: `app` and the administrator
    /// without a password.
    pub accounts: Vec<(String, Concealed)>,
    /// What it fronts, if it is the nearest to the servers.
    pub behind: Behind,
}

/// The servers to which a front connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behind {
    /// The primary.
    #[default]
    Primary,
    /// The replicas, in turn.
    Replicas,
    /// The primary and its replicas, in turn.
    All,
}

impl FrontDescription {
    /// Reads `pgbouncer`, `haproxy` or `haproxy:replicas`.
    pub fn parse(text: &str) -> Result<FrontDescription> {
        let (name, behind) = match text.split_once(':') {
            None => (text, Behind::Primary),
            Some((name, "primary")) => (name, Behind::Primary),
            Some((name, "replicas")) => (name, Behind::Replicas),
            Some((name, "all")) => (name, Behind::All),
            Some((_, other)) => {
                return Err(Fault::usage(format!("the front {text}: {other} is not known"))
                    .hint("haproxy:primary, haproxy:replicas or haproxy:all"));
            }
        };
        Ok(FrontDescription { name: name.to_owned(), settings: Vec::new(), accounts: Vec::new(), behind })
    }
}

impl Description {
    /// A server with all defaults.
    pub fn of(wanted: Wanted) -> Description {
        Description {
            wanted,
            name: None,
            binaries: None,
            settings: Vec::new(),
            file: None,
            access: Vec::new(),
            placement: Placement::default(),
            run_as: None,
            data: None,
            image: None,
            port: None,
            replicas: 0,
            fronts: Vec::new(),
            patience: Duration::from_secs(90),
        }
    }

    /// The programs to start it with; fetched if needed.
    pub fn find_binaries(&self, home: &Home, say: &dyn Fn(&str)) -> Result<Binaries> {
        let account = Account::choose(self.run_as.as_deref())?;
        binaries::find(home, &self.wanted, self.binaries.as_deref(), &account, say)
    }

    /// Refuses replicas and fronts that do not go together with each other or with the product.
    pub fn check_parts(&self, products: &Products) -> Result<()> {
        let product = products.product(&self.wanted.product)?;
        if self.replicas > 0 && product.replication().is_none() {
            return Err(Fault::usage(format!("{} has no replicas", product.title())));
        }
        for (number, described) in self.fronts.iter().enumerate() {
            let name = &described.name;
            let front = products.front(name)?;
            if described.behind != Behind::Primary && number > 0 {
                return Err(Fault::usage(format!("{name} is in front of another front, not of servers"))
                    .hint("put the front that is nearest to the servers first"));
            }
            let servers = match described.behind {
                Behind::Primary => 1,
                Behind::Replicas => self.replicas,
                Behind::All => 1 + self.replicas,
            };
            if servers == 0 {
                return Err(
                    Fault::usage(format!("there are no replicas behind {name}")).hint("add them with `--replicas`")
                );
            }
            if servers > 1 && !front.takes_several() {
                return Err(Fault::usage(format!("{name} supports one server, not {servers}"))
                    .hint("put haproxy in front of the servers, and it in front of haproxy"));
            }
            if !front.speaks(product.name()) {
                return Err(Fault::usage(format!("{} does not work with {}", front.name(), product.title())));
            }
        }
        Ok(())
    }

    /// The contents of an image of it after `prepared`, a command line, was run on it. `workload`: a hash of what the
    /// command line does not contain.
    pub fn contents(
        &self,
        products: &Products,
        binaries: &Binaries,
        prepared: &str,
        workload: &str,
    ) -> Result<Contents> {
        let product = products.product(&self.wanted.product)?;
        let (layout, settings) =
            settings::divide(product, &settings::all(product, self.file.as_deref(), &self.settings));
        let (prepared, workload) = (prepared.to_owned(), workload.to_owned());
        Ok(Contents { prepared, workload, settings, ..Contents::empty(binaries, &layout) })
    }
}

/// Duration of a part of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// `data`, `start`, …
    pub part: String,
    /// How long.
    pub took: Duration,
}

/// Running servers. Dropping it does not stop them: see `stop`.
#[derive(Debug)]
pub struct Topology {
    /// The primary, or the only one.
    pub primary: Server,
    /// They follow it, and had caught up when this was created.
    pub replicas: Vec<Server>,
    /// The nearest to the primary first.
    pub fronts: Vec<Server>,
    /// The settings in effect in the primary.
    pub in_effect: Vec<InEffect>,
    /// How its data was restored, if it came from an image of the user's.
    pub restored: Option<Restored>,
    /// Each part of the start.
    pub timings: Vec<Timing>,
}

impl Topology {
    /// Starts what is described and returns when everything answers and replicas have caught up. If it fails,
    /// everything is removed. `say` reports slow steps. The servers are stale once this process is gone, until
    /// `let_stay`.
    pub fn start(home: &Home, description: &Description, say: &dyn Fn(&str)) -> Result<Topology> {
        let watch = Stopwatch::start();
        let product = home.products.product(&description.wanted.product)?;
        let account = Account::choose(description.run_as.as_deref())?;
        settings::check_form(product, &description.settings)?;
        description.check_parts(home.products)?;
        let fronts = front_programs(home.products, description, &account)?;
        let binaries = binaries::find(home, &description.wanted, description.binaries.as_deref(), &account, say)?;
        let timings = vec![Timing { part: "binaries".to_owned(), took: watch.elapsed() }];
        let mut start = Start { home, description, product, account, binaries, say, timings, made: Vec::new() };
        let started = start.all(&fronts);
        if started.is_err() {
            // The last one first: fronts and replicas before the primary.
            for server in start.made.iter().filter_map(|name| Server::open(home, name).ok()).rev() {
                let _ = server.kill().and_then(|()| server.remove());
            }
        }
        started
    }

    /// The URL for the load: the last front, or the server itself.
    pub fn url(&self) -> String {
        self.fronts.last().unwrap_or(&self.primary).url("app")
    }

    /// All servers in the order in which they are stopped: the primary last.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        self.fronts.iter().rev().chain(&self.replicas).chain([&self.primary])
    }

    /// The servers keep running when this process has ended.
    pub fn let_stay(&self) -> Result<()> {
        self.servers().try_for_each(Server::let_stay)
    }

    /// Settles the primary, for at most `patience`: see `Product::settle`.
    pub fn settle(&self, patience: Duration) -> Result<Settled> {
        let state = self.primary.snapshot();
        let product = self.primary.product().expect("a primary has data");
        let settled = product.settle(&mut self.primary.session()?, &state.binaries.version, patience);
        settled.map_err(|words| Fault::server("cannot settle the server").detail(words))
    }

    /// Makes the primary write everything that is only in memory, for at most `patience`.
    pub fn checkpoint(&self, patience: Duration) -> Result<Settled> {
        let state = self.primary.snapshot();
        let product = self.primary.product().expect("a primary has data");
        let done = product.checkpoint(&mut self.primary.session()?, &state.binaries.version, patience);
        done.map_err(|words| Fault::server("the server made no checkpoint").detail(words))
    }

    /// Stops everything cleanly and returns how each server ended. Servers that do not stop are killed.
    pub fn stop(&self, patience: Duration) -> Result<Vec<(String, ServerStop)>> {
        self.servers().map(|server| Ok((server.name(), server.stop(patience)?))).collect()
    }

    /// Removes what was stopped.
    pub fn remove(&self) -> Result<()> {
        self.servers().try_for_each(Server::remove)
    }

    /// Stops the server cleanly, keeps its data as an image of `contents`, and starts it again.
    pub fn keep_image(&self, home: &Home, contents: &Contents, say: &dyn Fn(&str)) -> Result<()> {
        let patience = self.primary.snapshot().patience;
        let ended = self.primary.stop(patience)?;
        let state = self.primary.snapshot();
        let What::Database { data, .. } = &state.what else { unreachable!("a primary has data") };
        if ended.by == Some(nix::sys::signal::Signal::SIGKILL) {
            return Err(Fault::server(format!("{} had to be killed, so no image was made of its data", state.name)));
        }
        image::make(home, contents, data, say)?;
        self.primary.restart(patience)
    }
}

/// The servers of a group, in the order in which they are stopped: fronts, replicas, the primary. `name`: of any of
/// them.
pub fn group(home: &Home, name: &str) -> Result<Vec<Server>> {
    let named = Server::open(home, name)?.snapshot();
    if named.name != named.group {
        return Ok(vec![Server::open(home, name)?]);
    }
    let rank = |server: &Server| {
        let state = server.snapshot();
        let rank = match state.what {
            What::Front { .. } => 0,
            What::Database { role: Role::Replica { .. }, .. } => 1,
            What::Database { .. } => 2,
        };
        // The front that was started last is the farthest from the server.
        (rank, std::cmp::Reverse(state.made))
    };
    let mut members: Vec<Server> = server::all(home);
    members.retain(|server| server.snapshot().group == named.group);
    members.sort_by_key(rank);
    Ok(members)
}

/// Servers whose starter is gone.
pub fn stale(home: &Home) -> Vec<Server> {
    server::all(home).into_iter().filter(|server| server.status() == Status::Stale).collect()
}

/// A start in progress.
struct Start<'a> {
    home: &'a Home,
    description: &'a Description,
    product: &'static dyn Product,
    account: Account,
    binaries: Binaries,
    say: &'a dyn Fn(&str),
    timings: Vec<Timing>,
    /// Names of the servers so far, the primary first.
    made: Vec<String>,
}

impl Start<'_> {
    fn all(&mut self, fronts: &[(&'static dyn Front, Binaries)]) -> Result<Topology> {
        let description = self.description;
        let mut settings = match self.product.layout_at_every_start() {
            true => description.settings.clone(),
            false => settings::divide(self.product, &description.settings).1,
        };
        let all = settings::all(self.product, description.file.as_deref(), &description.settings);
        let (layout, _) = settings::divide(self.product, &all);
        if description.placement.huge_pages_bytes.is_some() {
            settings.splice(0..0, self.product.huge_page_settings());
        }
        let role = if description.replicas > 0 { Role::Primary } else { Role::Alone };
        let image = match &description.image {
            Some(key) => key.clone(),
            None => self.empty_image(&layout)?,
        };
        let primary = self.create(&description.name, role, &settings)?;
        let name = primary.name();
        let watch = Stopwatch::start();
        let restored = self.lay_out(&primary, &image)?;
        let replicas: Vec<Server> = (1..=description.replicas)
            .map(|number| {
                let role = Role::Replica { primary: 0, number };
                let replica = self.create(&Some(format!("{name}-replica{number}")), role, &settings)?;
                self.lay_out(&replica, &image).map(|_| replica)
            })
            .collect::<Result<_>>()?;
        self.timed("data", watch);
        let watch = Stopwatch::start();
        primary.start()?;
        let in_effect = primary.ask_what_is_in_effect()?;
        self.timed("start", watch);
        if !replicas.is_empty() {
            let watch = Stopwatch::start();
            for (replica, number) in replicas.iter().zip(1..) {
                self.follow(&primary, replica, number)?;
            }
            self.timed("replicas", watch);
        }
        let mut topology = Topology { primary, replicas, fronts: Vec::new(), in_effect, restored, timings: Vec::new() };
        for ((front, programs), described) in fronts.iter().zip(&description.fronts) {
            let watch = Stopwatch::start();
            let started = self.front(&topology, *front, programs, described)?;
            topology.fronts.push(started);
            self.timed(front.name(), watch);
        }
        topology.timings = std::mem::take(&mut self.timings);
        Ok(topology)
    }

    fn timed(&mut self, part: &str, watch: Stopwatch) {
        self.timings.push(Timing { part: part.to_owned(), took: watch.elapsed() });
    }

    /// A server's folder. `name`: as requested, or `None` for the first free one.
    fn create(&mut self, name: &Option<String>, role: Role, settings: &[ServerSetting]) -> Result<Server> {
        let description = self.description;
        if let Some(name) = name {
            check_name(name)?;
        }
        let replica = matches!(role, Role::Replica { .. });
        let version = &self.binaries.version;
        let base = format!("{}-{version}", self.product.name());
        for number in 1.. {
            let made = match (name, number) {
                (Some(name), _) => name.clone(),
                (None, 1) => base.clone(),
                (None, _) => format!("{base}-{number}"),
            };
            let data = match &description.data {
                Some(folder) if !replica => absolute(folder)?,
                _ => self.home.server(&made).join("data"),
            };
            let what = What::Database {
                data,
                role: role.clone(),
                settings: settings.to_vec(),
                file: description.file.clone().map(Concealed::from),
                access: description.access.clone(),
                in_effect: Vec::new(),
            };
            let group = self.made.first().cloned().unwrap_or_else(|| made.clone());
            let mut state = server::ServerState::new(&made, &group, what, self.binaries.clone(), self.account.clone());
            state.placement = description.placement.clone();
            state.patience = description.patience;
            state.port = description.port.filter(|_| !replica).unwrap_or(0);
            let folder_is_taken = self.home.server(&made).exists();
            match Server::create(self.home, state) {
                Ok(server) => {
                    self.made.push(made);
                    return Ok(server);
                }
                // Another process may be choosing at the same time.
                Err(_) if name.is_none() && (folder_is_taken || self.home.server(&made).exists()) => {}
                Err(fault) => return Err(fault),
            }
        }
        unreachable!("numbers do not end")
    }

    /// Gives a server its data.
    fn lay_out(&self, server: &Server, image: &str) -> Result<Option<Restored>> {
        let state = server.snapshot();
        let What::Database { data, .. } = &state.what else { unreachable!("fronts have no data") };
        let outer = data.ancestors().skip(1).find(|folder| folder.exists());
        if let Some(closed) = outer.filter(|folder| !folder.as_os_str().is_empty() && !self.account.can_enter(folder)) {
            let words =
                format!("the user {}, as which the server runs, cannot enter {}", self.account.name, closed.display());
            return Err(Fault::environment(words)
                .hint("choose a data directory that this user can enter, or another user with --run-as"));
        }
        let filled = data.is_dir() && fs::read_dir(data).at("read", data)?.next().is_some();
        if filled {
            return self.check_data(data).map(|()| None);
        }
        if data.is_dir() {
            fs::remove_dir(data).at("replace", data)?;
        }
        // The server's own folder is there, unless another thread has removed it to end the process.
        if !data.starts_with(server.folder())
            && let Some(parent) = data.parent()
        {
            fs::create_dir_all(parent).at("create", parent)?;
        }
        image::restore(self.home, image, data, &self.account, self.say).map(Some)
    }

    /// Whether a data directory given by the user can be used.
    fn check_data(&self, data: &Path) -> Result<()> {
        let description = self.description;
        let place = data.display();
        if !self.product.is_data(data) {
            return Err(Fault::usage(format!(
                "{place} is neither empty nor a data directory of {}",
                self.product.title()
            ))
            .hint("choose an empty folder, or one that does not exist"));
        }
        if let Some(who) = self.product.in_use(data) {
            return Err(Fault::environment(format!("the data directory {place} is in use: {who}"))
                .hint("stop that server first; two servers would destroy the data"));
        }
        if description.image.is_some() || description.replicas > 0 {
            return Err(Fault::usage(format!("{place} contains data, but images and replicas need an empty folder")));
        }
        let found = self.product.data_version(data).and_then(|text| text.parse::<Version>().ok());
        match found {
            Some(version) if !self.product.can_use(&self.binaries.version, &version) => {
                Err(self.other_version(data, &version))
            }
            _ => Ok(()),
        }
    }

    fn other_version(&self, data: &Path, version: &Version) -> Fault {
        let (title, name) = (self.product.title(), self.product.name());
        Fault::usage(format!(
            "the data directory {} belongs to {title} {version}, but this is {title} {}",
            data.display(),
            self.binaries.version
        ))
        .hint(format!("use {name}:{version}, or another folder"))
    }

    /// The image of an empty data directory with the user and the database `app`; created if there is none.
    fn empty_image(&mut self, layout: &[ServerSetting]) -> Result<String> {
        let contents = Contents::empty(&self.binaries, layout);
        let key = contents.key();
        // Held while it is created: others wait instead of creating another one.
        self.home.make()?;
        let path = self.home.cache.join(format!(".lock-empty-{key}"));
        let lock = fs::File::options().create(true).truncate(false).write(true).open(&path).at("write", &path)?;
        lock.lock().at("lock", &path)?;
        if image::exists(self.home, &contents) {
            return Ok(key);
        }
        let watch = Stopwatch::start();
        (self.say)(&format!("creating an empty data directory for {} {}", self.product.title(), self.binaries.version));
        let made = self.make_empty(&contents, layout);
        self.timed("initialize", watch);
        made.map(|()| key)
    }

    fn make_empty(&self, contents: &Contents, layout: &[ServerSetting]) -> Result<()> {
        let name = format!("making-{}-{}", contents.key(), std::process::id());
        let data = self.home.server(&name).join("data");
        let at_start = if self.product.layout_at_every_start() { layout.to_vec() } else { Vec::new() };
        let what = What::Database {
            data: data.clone(),
            role: Role::Alone,
            settings: self.product.first_settings().into_iter().chain(at_start).collect(),
            file: None,
            access: Vec::new(),
            in_effect: Vec::new(),
        };
        let state = server::ServerState::new(&name, &name, what, self.binaries.clone(), self.account.clone());
        let server = Server::create(self.home, state)?;
        let made =
            self.initialize(&server, &data, layout).and_then(|()| image::make(self.home, contents, &data, self.say));
        let _ = server.kill();
        let _ = server.remove();
        made
    }

    fn initialize(&self, server: &Server, data: &Path, layout: &[ServerSetting]) -> Result<()> {
        let (state, folder) = (server.snapshot(), server.folder());
        self.product.initialize(&server::site(&state, &folder, data), layout)?;
        server.start()?;
        let mut session = server.session()?;
        let done = session.run(self.product.first_statements());
        done.map_err(|words| Fault::server("cannot create the user and the database `app`").detail(words))?;
        drop(session);
        let ended = server.stop(state.patience)?;
        if ended.by == Some(nix::sys::signal::Signal::SIGKILL) {
            return Err(Fault::server("the server had to be killed after its data directory was created"));
        }
        Ok(())
    }

    /// Starts a replica and waits until it has caught up.
    fn follow(&self, primary: &Server, replica: &Server, number: u32) -> Result<()> {
        let replication = self.product.replication().expect("checked before the start");
        let role = Role::Replica { primary: primary.port(), number };
        replica.set_role(&role)?;
        let (state, folder) = (replica.snapshot(), replica.folder());
        let What::Database { data, .. } = &state.what else { unreachable!("a replica has data") };
        replication.become_replica(&server::site(&state, &folder, data), &role)?;
        replica.start()?;
        let version = &self.binaries.version;
        let (mut one, mut other) = (primary.session()?, replica.session()?);
        let refused = |words: String| {
            Fault::server(format!("{} does not replicate from its primary", state.name))
                .detail(words)
                .detail(replica.log_tail(10))
        };
        replication.follow(version, (&mut one, primary.port()), &mut other).map_err(refused)?;
        let caught_up = || {
            let caught = replication.caught_up(version, &mut one, &mut other, number);
            caught.map(|yes| yes.then_some(())).map_err(refused)
        };
        match wait::until(self.description.patience, caught_up)? {
            Some(()) => Ok(()),
            None => Err(refused("it did not catch up in time".to_owned())),
        }
    }

    fn front(
        &mut self,
        topology: &Topology,
        front: &'static dyn Front,
        programs: &Binaries,
        described: &FrontDescription,
    ) -> Result<Server> {
        let (primary, replicas) = (&topology.primary, topology.replicas.iter());
        let behind: Vec<&Server> = match (topology.fronts.last(), described.behind) {
            (Some(nearer), _) => vec![nearer],
            (None, Behind::Primary) => vec![primary],
            (None, Behind::Replicas) => replicas.collect(),
            (None, Behind::All) => [primary].into_iter().chain(replicas).collect(),
        };
        let group = primary.name();
        let name = format!("{group}-{}", front.name());
        self.made.push(name.clone());
        let state = front_state(&name, &group, &behind, described, programs, &self.account);
        start_front(self.home, server::ServerState { patience: self.description.patience, ..state })
    }
}

/// Starts a front before a running server, as the same user. It is a group of its own.
pub fn before(home: &Home, name: &str, server: &Server, described: &FrontDescription) -> Result<Server> {
    let account = server.snapshot().account;
    let programs = front_binaries(home.products.front(&described.name)?, &account)?;
    start_front(home, front_state(name, name, &[server], described, &programs, &account))
}

fn front_state(
    name: &str,
    group: &str,
    behind: &[&Server],
    described: &FrontDescription,
    programs: &Binaries,
    account: &Account,
) -> server::ServerState {
    let before = behind[0].snapshot();
    let scheme = match before.what {
        What::Front { scheme, .. } => scheme,
        What::Database { .. } => before.binaries.product,
    };
    let what = What::Front {
        behind: behind.iter().map(|server| server.port()).collect(),
        settings: described.settings.clone(),
        accounts: described.accounts.clone(),
        scheme,
    };
    server::ServerState::new(name, group, what, programs.clone(), account.clone())
}

fn start_front(home: &Home, state: server::ServerState) -> Result<Server> {
    let server = Server::create(home, state)?;
    match server.start() {
        Ok(()) => Ok(server),
        Err(fault) => {
            let _ = server.remove();
            Err(fault)
        }
    }
}

/// The programs of all fronts, found before anything is started.
fn front_programs(
    products: &Products,
    description: &Description,
    account: &Account,
) -> Result<Vec<(&'static dyn Front, Binaries)>> {
    let of = |described: &FrontDescription| {
        let front = products.front(&described.name)?;
        Ok((front, front_binaries(front, account)?))
    };
    description.fronts.iter().map(of).collect()
}

/// A front's program, in one of the system's folders.
pub fn front_binaries(front: &dyn Front, account: &Account) -> Result<Binaries> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from).into_iter().chain(std::env::split_paths(&path));
    let found = folders.map(|folder| folder.join(front.name())).find(|program| program.is_file());
    let missing = || {
        Fault::environment(format!("{} is not installed", front.name()))
            .hint(format!("apt-get install {}", front.name()))
    };
    let program = found.ok_or_else(missing)?;
    let mut command = account.command(&program);
    let said = Introduction::of(command.arg(front.version_argument()), &program, account)?;
    let version = front.version_said(&said.words).ok_or_else(|| match said.status.success() {
        true => said.is_not(&program, front.name()),
        false => said.failed(&program),
    })?;
    Ok(Binaries { product: front.name().to_owned(), version, program, origin: Origin::Installed, tree: None })
}

/// A name becomes a folder, and an argument of commands.
fn check_name(name: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(good) {
        return Err(Fault::usage(format!("{name:?} is not a valid server name"))
            .hint("use letters and digits, with - _ . between them"));
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).at("look at", path)
}
