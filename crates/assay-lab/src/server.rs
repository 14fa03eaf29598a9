//! One server or front started by assay: its folder, its state on disk, its life cycle.
//!
//! Everything needed to stop it and to clean up after it is in its folder before it runs, so that another command can
//! do so if this process is killed. No process is signaled unless the folder identifies it as ours.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use assay_client::Client;
use assay_seam::Nanos;
use assay_secret::{Concealed, text_without_secrets, value_without_secrets};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::fault::{At, Fault, Result};
use crate::front::Place;
use crate::helpers;
use crate::home::{Home, free_port};
use crate::placement::{Placement, Undo, memory};
use crate::process::{self, Identity, Launch, PID_FILE, Running, log_tail, missing_library, read_bounded};
use crate::product::{Binaries, Configuration, InEffect, Product, Role, ServerSetting, Site};
use crate::products::Products;
use crate::settings;
use crate::wait::{self, Stopwatch};

/// The content of `server.json` in a server's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerState {
    pub(crate) format: u32,
    /// Its name.
    pub name: String,
    /// The name of the group that it belongs to: its own name, or its primary's.
    pub group: String,
    /// What it is.
    pub what: What,
    /// Its programs.
    pub binaries: Binaries,
    /// The user it runs as.
    pub account: Account,
    /// On 127.0.0.1.
    pub port: u16,
    /// That of the product's second protocol, likewise. 0: none.
    #[serde(default)]
    pub second_port: u16,
    /// The process that will end it: when that is gone, the server is stale. `None`: it stays.
    pub owner: Option<Identity>,
    /// Requested placement.
    pub placement: Placement,
    /// What to undo when it has ended.
    pub undo: Vec<Undo>,
    /// How long a start may take.
    pub patience: Duration,
    /// When it was made.
    pub made: SystemTime,
}

/// What kind of server it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A server with data.
    Database {
        /// Its data directory.
        data: PathBuf,
        /// Its role in a topology.
        role: Role,
        /// With the server's own names; without those that determined the layout.
        settings: Vec<ServerSetting>,
        /// The user's configuration file.
        file: Option<Concealed>,
        /// Lines about who may log in.
        access: Vec<String>,
        /// The settings in effect.
        in_effect: Vec<InEffect>,
    },
    /// A front of other servers.
    Front {
        /// Ports.
        behind: Vec<u16>,
        /// With the front's own names.
        settings: Vec<ServerSetting>,
        /// Names and passwords.
        accounts: Vec<(String, Concealed)>,
        /// The product of the servers behind it: `postgres`.
        scheme: String,
    },
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It runs.
    Running,
    /// It was stopped cleanly.
    Stopped,
    /// It ended without being stopped.
    Died,
    /// The process that it was started for is gone.
    Stale,
}

impl Status {
    /// A word for lists.
    pub fn name(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Stopped => "stopped",
            Status::Died => "died",
            Status::Stale => "stale",
        }
    }
}

/// How a server was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerStop {
    /// The last signal that was needed; `None`: it was not running.
    pub by: Option<Signal>,
    /// How long that took.
    pub took: Duration,
}

/// A server started by assay. Dropping the value does not stop the server.
#[derive(Debug)]
pub struct Server {
    home: Home,
    state: Mutex<ServerState>,
    running: Mutex<Option<Running>>,
}

/// How long a server has after SIGTERM, and after each harsher signal.
const LAST_PATIENCE: Duration = Duration::from_secs(10);
/// How long an administrator's statement may take.
const STATEMENT: Nanos = Nanos::from_secs(600);
const STATE: &str = "server.json";
/// Largest `server.json` read.
const STATE_BYTES_MAX: u64 = 4 << 20;
/// Beside it, for its owner alone, if a setting holds a password: without it, the server could not be started again.
const PASSWORDS: &str = "passwords.json";
const FORMAT: u32 = 1;

/// What `server.json` does not contain.
#[derive(PartialEq, Serialize, Deserialize)]
struct Passwords {
    /// Names and values.
    settings: Vec<(String, Option<String>)>,
    file: Option<String>,
    accounts: Vec<(String, String)>,
}

impl Passwords {
    /// Those in the description of a server; `None`: there are none.
    fn of(what: &What) -> Option<Passwords> {
        let revealed = |settings: &[ServerSetting]| -> Vec<(String, Option<String>)> {
            settings.iter().map(|one| (one.name.clone(), one.value.clone())).collect()
        };
        let is_public = |one: &ServerSetting| {
            one.value.as_ref().is_none_or(|value| value_without_secrets(&one.name, value) == *value)
        };
        let (settings, passwords) = match what {
            What::Database { settings, file, .. } => {
                let file = file.as_ref().filter(|file| file.has_secret()).map(|file| file.reveal().to_owned());
                (settings, Passwords { settings: revealed(settings), file, accounts: Vec::new() })
            }
            What::Front { settings, accounts, .. } => {
                let accounts = accounts.iter().map(|(name, password)| (name.clone(), password.reveal().to_owned()));
                (settings, Passwords { settings: revealed(settings), file: None, accounts: accounts.collect() })
            }
        };
        let has_none = settings.iter().all(is_public) && passwords.file.is_none() && passwords.accounts.is_empty();
        (!has_none).then_some(passwords)
    }

    fn put_into(self, what: &mut What) {
        let (kept, accounts) = match what {
            What::Database { settings, file, .. } => {
                *file = self.file.map(Concealed::from).or(file.take());
                (settings, None)
            }
            What::Front { settings, accounts, .. } => (settings, Some(accounts)),
        };
        *kept = self.settings.into_iter().map(|(name, value)| ServerSetting { name, value }).collect();
        if let Some(accounts) = accounts {
            *accounts =
                self.accounts.into_iter().map(|(name, password)| (name, Concealed::password(password))).collect();
        }
    }
}

impl ServerState {
    pub(crate) fn new(name: &str, group: &str, what: What, binaries: Binaries, account: Account) -> ServerState {
        ServerState {
            format: FORMAT,
            name: name.to_owned(),
            group: group.to_owned(),
            what,
            binaries,
            account,
            port: 0,
            second_port: 0,
            owner: Some(Identity::own()),
            placement: Placement::default(),
            undo: Vec::new(),
            patience: Duration::from_secs(90),
            made: wait::now(),
        }
    }

    fn product(&self, products: &Products) -> Option<&'static dyn Product> {
        matches!(self.what, What::Database { .. }).then(|| products.product(&self.binaries.product).ok()).flatten()
    }

    fn title(&self, products: &Products) -> String {
        let product = self.product(products);
        let title = product.map_or_else(|| self.binaries.product.clone(), |product| product.title().to_owned());
        format!("{title} {}", self.binaries.version)
    }
}

/// All servers, by name. Other folders are ignored.
pub fn all(home: &Home) -> Vec<Server> {
    let entries = fs::read_dir(&home.servers).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names.iter().filter_map(|name| Server::open(home, name).ok()).collect()
}

/// Removes folders that processes were making or deleting when they ended, if `is_over` says so of a process id.
fn remove_leftovers(home: &Home, is_over: impl Fn(u32) -> bool) {
    for entry in fs::read_dir(&home.servers).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_hidden = name.starts_with(".draft-") || name.starts_with(".gone-");
        // The end of the name is `unique`.
        let pid = name.rsplit('-').nth(1).and_then(|pid| pid.parse().ok());
        if is_hidden && pid.is_some_and(&is_over) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether this process makes no more servers.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Held while a server's folder is being made: `remove_own` finds it as a whole, or not at all.
static MAKING: Mutex<()> = Mutex::new(());

/// Kills and removes the servers that end with this process, whether they run or are being started. It makes no more
/// of them: for an exit while other threads go on.
pub fn remove_own(home: &Home) {
    ENDS.store(true, Ordering::SeqCst);
    helpers::kill();
    drop(MAKING.lock().unwrap_or_else(PoisonError::into_inner));
    for server in all(home).into_iter().filter(Server::is_own).rev() {
        // Another thread may start its process after `kill` has looked for one: `remove` then refuses.
        let _ = wait::until(LAST_PATIENCE, || {
            let is_gone = server.kill().and_then(|()| server.remove()).is_ok() || !server.folder().exists();
            Ok::<_, ()>(is_gone.then_some(()))
        });
    }
    remove_leftovers(home, |pid| pid == std::process::id());
}

/// How to run a server.
struct Rendered {
    /// Its program, or the one that becomes it, and its arguments.
    words: Vec<OsString>,
    environment: Vec<(String, String)>,
}

impl Server {
    /// Creates a server's folder, with only its state in it. `state.name` must not be taken.
    pub(crate) fn create(home: &Home, state: ServerState) -> Result<Server> {
        home.make()?;
        remove_leftovers(home, |pid| Identity::of(pid).is_none());
        let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = || ENDS.load(Ordering::SeqCst).then(|| Fault::usage("this process is ending"));
        if let Some(fault) = ends() {
            return Err(fault);
        }
        let draft = home.servers.join(format!(".draft-{}-{}", state.name, unique()));
        let _ = fs::remove_dir_all(&draft);
        fs::create_dir(&draft).at("create", &draft)?;
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).at("change", &draft)?;
        state.account.own(&draft)?;
        write_state(&draft, &state)?;
        let folder = home.server(&state.name);
        if let Err(error) = fs::rename(&draft, &folder) {
            let _ = fs::remove_dir_all(&draft);
            return Err(match error.kind() {
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => taken(&state.name),
                _ => Fault::file("create", &folder, &error),
            });
        }
        drop(making);
        let server = Server { home: home.clone(), state: Mutex::new(state), running: Mutex::new(None) };
        match ends() {
            None => Ok(server),
            Some(fault) => server.remove().and(Err(fault)),
        }
    }

    /// A server that was started before, by any process.
    pub fn open(home: &Home, name: &str) -> Result<Server> {
        let path = home.server(name).join(STATE);
        let missing = || Fault::usage(format!("there is no server {name}")).hint("`assay server list` shows them");
        let text = read_bounded(&path, STATE_BYTES_MAX).map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(),
            _ => Fault::file("read", &path, &error),
        })?;
        let unreadable = |path: &Path, error: serde_json::Error| {
            Fault::environment(format!("{} cannot be read: {error}", path.display()))
                .hint("it was written by another version of assay; use that version to stop the server")
        };
        let mut state: ServerState = serde_json::from_slice(&text).map_err(|error| unreadable(&path, error))?;
        let path = path.with_file_name(PASSWORDS);
        if let Ok(text) = read_bounded(&path, STATE_BYTES_MAX) {
            let passwords: Passwords = serde_json::from_slice(&text).map_err(|error| unreadable(&path, error))?;
            passwords.put_into(&mut state.what);
        }
        Ok(Server { home: home.clone(), state: Mutex::new(state), running: Mutex::new(None) })
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.state().name.clone()
    }

    /// Its state on disk.
    pub fn snapshot(&self) -> ServerState {
        self.state().clone()
    }

    /// Its folder: configuration, log, socket, and usually its data.
    pub fn folder(&self) -> PathBuf {
        self.home.server(&self.state().name)
    }

    /// Its TCP port on 127.0.0.1; kept over restarts.
    pub fn port(&self) -> u16 {
        self.state().port
    }

    /// Its product, if it has data.
    pub fn product(&self) -> Option<&'static dyn Product> {
        self.state().product(self.home.products)
    }

    /// Its unix socket; for a front without one, its folder.
    pub fn socket(&self) -> PathBuf {
        let (state, folder) = (self.snapshot(), self.folder());
        match (self.product(), &state.what) {
            (Some(product), What::Database { data, .. }) => product.socket(&site(&state, &folder, data)),
            _ => {
                let front = self.home.products.front(&state.binaries.product).ok();
                front.and_then(|front| front.socket(&folder, state.port)).unwrap_or(folder)
            }
        }
    }

    /// A URL over TCP for the user `app`, who may do everything and needs no password unless the server was started
    /// with other logins.
    pub fn url(&self, database: &str) -> String {
        let state = self.state();
        let (product, only_there) = match &state.what {
            What::Front { scheme, .. } => (scheme, true),
            What::Database { role, .. } => (&state.binaries.product, matches!(role, Role::Replica { .. })),
        };
        match self.home.products.product(product) {
            Ok(product) => product.url(state.port, only_there, database),
            Err(_) => format!("{product}://app@127.0.0.1:{}/{database}", state.port),
        }
    }

    /// The same by the product's second protocol, if it has one.
    pub fn second_url(&self, database: &str) -> Option<String> {
        let port = self.state().second_port;
        let scheme = self.product()?.second_scheme().filter(|_| port != 0)?;
        Some(format!("{scheme}://app@127.0.0.1:{port}/{database}"))
    }

    /// A URL over its unix socket; for a front, over TCP.
    pub fn socket_url(&self, database: &str) -> String {
        let (state, folder) = (self.snapshot(), self.folder());
        match (self.product(), &state.what) {
            (Some(product), What::Database { data, .. }) => product.socket_url(&site(&state, &folder, data), database),
            _ => self.url(database),
        }
    }

    /// The process that was started last; `None`: it was stopped cleanly, or never ran.
    pub fn identity(&self) -> Option<Identity> {
        process::identity_in(&self.folder())
    }

    /// What is with it now.
    pub fn status(&self) -> Status {
        let stale = self.state().owner.as_ref().is_some_and(|owner| !owner.runs());
        match self.identity() {
            _ if stale => Status::Stale,
            None => Status::Stopped,
            Some(identity) if identity.runs() => Status::Running,
            Some(_) => Status::Died,
        }
    }

    /// The last `lines` of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        log_tail(&self.folder(), lines)
    }

    /// Its configuration files, without passwords.
    pub fn configuration(&self) -> Vec<(PathBuf, String)> {
        let front = || self.home.products.front(&self.state().binaries.product).ok();
        let names = match self.product() {
            Some(product) => product.configuration_files(),
            None => front().map_or(&[][..], |front| front.configuration_files()),
        };
        let paths = names.iter().map(|name| self.folder().join(name));
        let accounts = match &self.state().what {
            What::Front { accounts, .. } => accounts.clone(),
            What::Database { .. } => Vec::new(),
        };
        let public = |text: String| {
            let quoted = |(_, password): &(String, Concealed)| (format!("\"{}\"", password.reveal()), password.shown());
            let hidden = accounts.iter().map(quoted).filter(|(quoted, _)| quoted.len() > 2);
            let text = hidden.fold(text, |text, (quoted, shown)| text.replace(&quoted, &format!("\"{shown}\"")));
            text_without_secrets(&text)
        };
        paths.filter_map(|path| fs::read_to_string(&path).ok().map(|text| (path, public(text)))).collect()
    }

    /// An administrator's connection. Fronts have none.
    pub fn session(&self) -> Result<Client> {
        let (state, folder) = (self.snapshot(), self.folder());
        let (Some(product), What::Database { data, .. }) = (self.product(), &state.what) else {
            return Err(Fault::usage(format!("{} is not a database server", state.name)));
        };
        let url = product.administrator(&site(&state, &folder, data));
        Client::open_url(&product.driver(), &url, STATEMENT)
            .map_err(|words| Fault::server(format!("cannot connect to {}", state.name)).detail(words))
    }

    /// The client program for it, and its arguments.
    pub fn client(&self) -> Option<(PathBuf, Vec<String>)> {
        let (state, folder) = (self.snapshot(), self.folder());
        let (names, arguments) = match (self.product(), &state.what) {
            (Some(product), What::Database { data, .. }) => product.client(&site(&state, &folder, data)),
            (_, What::Front { scheme, .. }) => {
                // For a front: as if it were the server behind it.
                let behind = self.home.products.product(scheme).ok()?;
                behind.client(&Site { port: state.port, ..site(&state, &folder, &folder) })
            }
            _ => return None,
        };
        let on_path = |name: &&&str| crate::process::is_on_path(name);
        let own = names.iter().map(|name| state.binaries.beside(&[name])).find(|path| path.is_file());
        let found = own.or_else(|| names.iter().find(on_path).map(PathBuf::from));
        found.map(|program| (program, arguments))
    }

    /// Starts it, on a free port if none was chosen (`state.port` is 0). If that fails, nothing is left running.
    pub(crate) fn start(&self) -> Result<()> {
        let _lock = self.lock()?;
        let chosen = self.port();
        let choose_second = || -> Result<()> {
            if self.product().is_some_and(|product| product.second_scheme().is_some()) {
                self.state().second_port = free_port()?;
            }
            Ok(())
        };
        if chosen != 0 {
            choose_second()?;
            return self.launch().map_err(|fault| match self.says_in_use() {
                true => fault.hint(format!("port {chosen} is in use: choose another with `--port`, or leave it out")),
                false => fault,
            });
        }
        let mut last = None;
        for _ in 0..ATTEMPTS {
            self.state().port = free_port()?;
            choose_second()?;
            match self.launch() {
                Err(fault) if self.says_in_use() => last = Some(fault),
                ended => return ended,
            }
        }
        Err(last.expect("it was tried at least once"))
    }

    /// Whether its last message is that another process has its port.
    fn says_in_use(&self) -> bool {
        let words = self.log_tail(50).to_lowercase();
        words.contains("in use") || words.contains("cannot bind socket")
    }

    /// Starts it again on the same port and data; stops it first if it runs.
    pub fn restart(&self, patience: Duration) -> Result<()> {
        self.stop(patience)?;
        let _lock = self.lock()?;
        self.launch()
    }

    /// One start.
    fn launch(&self) -> Result<()> {
        let folder = self.folder();
        let mut state = self.snapshot();
        if let Some(identity) = process::identity_in(&folder).filter(Identity::runs) {
            return Err(Fault::usage(format!("{} is already running as process {}", state.name, identity.pid)));
        }
        let rendered = self.render(&state)?;
        let name = state.name.clone();
        state.undo = state.placement.prepare(&name, &state.account)?;
        self.save(state.clone())?;
        let launch = Launch {
            program: &state.binaries.program,
            words: &rendered.words,
            environment: &rendered.environment,
            account: state.binaries.tree.is_none().then_some(&state.account),
            folder: &folder,
        };
        let watch = Stopwatch::start();
        let started = launch.start(|process| state.placement.apply(process, &state.undo));
        let mut running = match started {
            Ok(running) => running,
            Err(fault) => {
                self.undo();
                return Err(fault);
            }
        };
        let ready = self.wait_until_ready(&state, &mut running, watch);
        let ready = ready.and_then(|()| state.placement.verify(&running.identity));
        let identity = running.identity.clone();
        *lock(&self.running) = Some(running);
        if let Err(fault) = ready {
            identity.kill(LAST_PATIENCE);
            self.bury();
            return Err(fault);
        }
        Ok(())
    }

    /// Writes its configuration and returns how to run it.
    fn render(&self, state: &ServerState) -> Result<Rendered> {
        let folder = self.folder();
        let program = &state.binaries.program;
        let (files, command, environment) = match &state.what {
            What::Database { data, role, settings, file, access, .. } => {
                let product = self.home.products.product(&state.binaries.product)?;
                let site = site(state, &folder, data);
                let file = file.as_ref().map(Concealed::reveal);
                let all = settings::all(product, file, settings);
                let wanted = Configuration { file, settings, all: &all, access, role };
                settings::check(product, &site, &wanted)?;
                // Left by a killed process, whose id stays in use until somebody has waited for it.
                let mut lock = product.socket(&site).into_os_string();
                lock.push(".lock");
                let _ = fs::remove_file(lock);
                for stale in product.stale_files() {
                    if product.in_use(data).is_none() {
                        let _ = fs::remove_file(data.join(stale));
                    }
                }
                let environment = product.environment(&state.binaries);
                (product.configuration(&site, &wanted)?, site.command(program), environment)
            }
            What::Front { behind, settings, accounts, .. } => {
                let front = self.home.products.front(&state.binaries.product)?;
                let place = Place { folder: &folder, port: state.port, behind, settings, accounts };
                (front.configuration(&place), Command::new(program), Vec::new())
            }
        };
        let has_accounts = matches!(&state.what, What::Front { accounts, .. } if !accounts.is_empty());
        for (path, text) in &files {
            fs::write(path, text).at("write", path)?;
            state.account.own(path)?;
            if has_accounts || text_without_secrets(text) != *text {
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).at("change", path)?;
            }
        }
        let arguments = match &state.what {
            What::Database { data, .. } => {
                self.home.products.product(&state.binaries.product)?.arguments(&site(state, &folder, data))
            }
            What::Front { behind, settings, accounts, .. } => {
                let place = Place { folder: &folder, port: state.port, behind, settings, accounts };
                self.home.products.front(&state.binaries.product)?.arguments(&place)
            }
        };
        let words = [command.get_program()].into_iter().chain(command.get_args()).map(OsString::from);
        Ok(Rendered { words: words.chain(arguments).collect(), environment })
    }

    fn wait_until_ready(&self, state: &ServerState, running: &mut Running, watch: Stopwatch) -> Result<()> {
        let (mut last, folder) = (String::new(), self.folder());
        let answers = wait::until(state.patience, || {
            if helpers::is_interrupted() {
                return Err(Fault::interrupted());
            }
            if let Some(status) = running.ended() {
                return Err(self.died(state, &status));
            }
            let answer = match &state.what {
                What::Database { data, role, .. } => self.session().and_then(|mut session| {
                    let product = self.home.products.product(&state.binaries.product)?;
                    product.check_ready(&mut session, &site(state, &folder, data), role).map_err(Fault::server)
                }),
                What::Front { .. } => TcpStream::connect(("127.0.0.1", state.port))
                    .map(drop)
                    .map_err(|error| Fault::server(error.to_string())),
            };
            Ok(answer.map_err(|fault| last = fault.details.first().unwrap_or(&fault.cause).clone()).ok())
        })?;
        if answers.is_some() {
            return Ok(());
        }
        let seconds = watch.elapsed().as_secs();
        Err(Fault::server(format!("{} does not answer after {seconds} s", state.title(self.home.products)))
            .detail(format!("last attempt to connect: {last}"))
            .detail(self.log_tail(LOG_LINES))
            .hint("if it is only slow, give it more time with `--patience`"))
    }

    fn died(&self, state: &ServerState, status: &str) -> Fault {
        let words = self.log_tail(LOG_LINES);
        let fault = Fault::server(format!(
            "{} did not start: {}",
            state.title(self.home.products),
            status.replace("exit status: ", "it exited with status ")
        ))
        .detail(&words);
        let killed = state.undo.iter().any(|undo| matches!(undo, Undo::Group(group) if memory::kills(group) > 0));
        match missing_library(&words) {
            Some(library) => fault.hint(format!("install the package that contains {library}")),
            None if crate::fault::is_full(&words) => fault.hint(crate::fault::FULL),
            // The kernel takes 107 bytes at most.
            None if words.contains("too long") && words.to_lowercase().contains("socket") => {
                fault.hint("choose a folder with a shorter path with ASSAY_LAB")
            }
            None if killed => fault.hint("the kernel killed it for using more memory than its limit allows"),
            None => fault,
        }
    }

    /// Stops it cleanly; if it does not end within `patience`, it gets harsher signals, 10 s each, and finally SIGKILL.
    pub fn stop(&self, patience: Duration) -> Result<ServerStop> {
        let watch = Stopwatch::start();
        let _lock = match self.lock() {
            // Another thread has removed it: this process is about to end.
            Err(_) if !self.folder().exists() => return Ok(ServerStop { by: None, took: watch.elapsed() }),
            lock => lock?,
        };
        let Some(identity) = self.identity().filter(Identity::runs) else {
            self.bury();
            return Ok(ServerStop { by: None, took: watch.elapsed() });
        };
        let state = self.snapshot();
        let signals =
            state.product(self.home.products).map_or(&[Signal::SIGTERM][..], |product| product.stop_signals());
        let processes: Vec<Identity> = identity.children().into_iter().chain([identity.clone()]).collect();
        for (number, signal) in signals.iter().enumerate() {
            identity.signal(*signal);
            let wait = if number == 0 { patience } else { LAST_PATIENCE };
            // While we are its parent, it is gone only after we have waited for it.
            if self.reap() || process::gone(&processes, wait) {
                self.bury();
                return Ok(ServerStop { by: Some(*signal), took: watch.elapsed() });
            }
        }
        self.kill()?;
        Ok(ServerStop { by: Some(Signal::SIGKILL), took: watch.elapsed() })
    }

    /// Kills it as a crash would: no goodbye to clients, no shutdown. Returns when none of its processes are left.
    pub fn kill(&self) -> Result<()> {
        let Some(identity) = self.identity() else { return Ok(()) };
        if !identity.kill(LAST_PATIENCE) {
            return Err(Fault::environment(format!("cannot kill process {}: it is stuck in the kernel", identity.pid))
                .hint("the kernel log (dmesg) may show why"));
        }
        self.bury();
        Ok(())
    }

    /// Stops its processes (SIGSTOP): connections stay open and nothing answers.
    pub fn suspend(&self) {
        self.identity().iter().for_each(Identity::suspend);
    }

    /// Continues its processes.
    pub fn resume(&self) {
        self.identity().iter().for_each(Identity::resume);
    }

    /// Removes its folder, including its data, but not a data directory given by the user. It must not be running.
    pub fn remove(&self) -> Result<()> {
        if let Some(identity) = self.identity().filter(Identity::runs) {
            return Err(Fault::usage(format!("{} is still running as process {}", self.name(), identity.pid)));
        }
        self.undo();
        // Moved away first: another process may want the name while the files are deleted.
        let (folder, gone) = (self.folder(), self.home.servers.join(format!(".gone-{}-{}", self.name(), unique())));
        match fs::rename(&folder, &gone) {
            Err(_) if !folder.exists() => return Ok(()),
            renamed => renamed.at("remove", &folder)?,
        }
        // A start that was given up may still be writing a file there; its next one has no place any more.
        let removed = wait::until(REMOVE_PATIENCE, || match fs::remove_dir_all(&gone) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(None),
            ended => ended.map(Some),
        });
        removed.at("remove", &gone).map(drop)
    }

    /// Before its start: sets its role.
    pub(crate) fn set_role(&self, new: &Role) -> Result<()> {
        let mut state = self.snapshot();
        if let What::Database { role, .. } = &mut state.what {
            role.clone_from(new);
        }
        self.save(state)
    }

    /// Whether it ends with this process.
    pub(crate) fn is_own(&self) -> bool {
        self.state().owner.as_ref() == Some(&Identity::own())
    }

    /// From now on it does not end with this process.
    pub(crate) fn let_stay(&self) -> Result<()> {
        let state = ServerState { owner: None, ..self.snapshot() };
        self.save(state)
    }

    /// Compares the requested settings with those in effect, and stores the result.
    pub(crate) fn ask_what_is_in_effect(&self) -> Result<Vec<InEffect>> {
        let mut state = self.snapshot();
        let Some(product) = state.product(self.home.products) else { return Ok(Vec::new()) };
        let What::Database { settings, file, in_effect, .. } = &mut state.what else { return Ok(Vec::new()) };
        let asked = settings::all(product, file.as_ref().map(Concealed::reveal), settings);
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let found = product
            .in_effect(&mut self.session()?, &asked)
            .map_err(|words| Fault::server("cannot query the settings in effect").detail(words))?;
        let found: Vec<InEffect> = found.into_iter().map(InEffect::public).collect();
        in_effect.clone_from(&found);
        self.save(state)?;
        Ok(found)
    }

    /// Waits for the ended process, if it is our child.
    fn reap(&self) -> bool {
        lock(&self.running).as_mut().is_some_and(|running| running.ended().is_some())
    }

    /// After its end: undoes its changes to the machine.
    fn bury(&self) {
        if let Some(mut running) = lock(&self.running).take() {
            let _ = wait::until(LAST_PATIENCE, || Ok::<_, ()>(running.ended()));
        }
        let _ = fs::remove_file(self.folder().join(PID_FILE));
        self.undo();
    }

    fn undo(&self) {
        let mut state = self.snapshot();
        if state.undo.is_empty() {
            return;
        }
        state.undo.iter().rev().for_each(Undo::apply);
        state.undo.clear();
        let _ = self.save(state);
    }

    fn save(&self, state: ServerState) -> Result<()> {
        write_state(&self.folder(), &state)?;
        *self.state() = state;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        lock(&self.state)
    }

    /// Held while it is started or stopped: two commands may want to at once.
    fn lock(&self) -> Result<File> {
        let path = self.folder().join(".lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path).at("write", &path)?;
        file.lock().at("lock", &path)?;
        Ok(file)
    }
}

/// Number of ports to try.
const ATTEMPTS: u32 = 5;
/// Lines of a log in an error message.
const LOG_LINES: usize = 20;
/// For files that are written into a folder while it is removed.
const REMOVE_PATIENCE: Duration = Duration::from_secs(2);

/// A text that is unique among all processes and threads.
fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn taken(name: &str) -> Fault {
    Fault::usage(format!("there is already a server {name}"))
        .hint("choose another with `--name`, or stop and remove it")
}

pub(crate) fn site<'a>(state: &'a ServerState, folder: &'a Path, data: &'a Path) -> Site<'a> {
    let (port, second_port) = (state.port, state.second_port);
    Site { binaries: &state.binaries, account: &state.account, folder, data, port, second_port }
}

fn write_state(folder: &Path, state: &ServerState) -> Result<()> {
    if let Some(passwords) = Passwords::of(&state.what) {
        write_private(folder, PASSWORDS, &serde_json::to_vec(&passwords).expect("it is plain data"))?;
    }
    write_private(folder, STATE, &serde_json::to_vec_pretty(state).expect("it is plain data"))
}

/// Replaces a file that only its owner may read.
fn write_private(folder: &Path, name: &str, text: &[u8]) -> Result<()> {
    let (path, draft) = (folder.join(name), folder.join(".draft-state"));
    let mut options = File::options();
    let file = options.create(true).truncate(true).write(true).mode(0o600).open(&draft);
    file.and_then(|mut file| file.write_all(text)).at("write", &draft)?;
    fs::rename(&draft, &path).at("keep", &path)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
