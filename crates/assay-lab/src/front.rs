//! Programs in front of servers, without data of their own: a pooler, a proxy. Only their configuration and command;
//! the rest is the same as for a server.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use assay_secret::Concealed;

use crate::product::ServerSetting;
use crate::version::Version;

/// A front.
pub trait Front: Debug + Sync {
    /// The name users write, and its program.
    fn name(&self) -> &'static str;

    /// Whether it supports several servers.
    fn takes_several(&self) -> bool {
        false
    }

    /// Whether it supports servers whose URLs have this scheme.
    fn speaks(&self, scheme: &str) -> bool;

    /// The version in its program's output; `None`: it is another program.
    fn version_said(&self, words: &str) -> Option<Version>;

    /// The argument that prints the version.
    fn version_argument(&self) -> &'static str;

    /// Names of its configuration files, in its folder; the first contains the settings.
    fn configuration_files(&self) -> &'static [&'static str];

    /// Its configuration files, with their paths, in the same order.
    fn configuration(&self, place: &Place<'_>) -> Vec<(PathBuf, String)>;

    /// Its unix socket, if it has one.
    fn socket(&self, folder: &Path, port: u16) -> Option<PathBuf> {
        let _ = (folder, port);
        None
    }

    /// Arguments of its program.
    fn arguments(&self, place: &Place<'_>) -> Vec<OsString>;
}

/// The place of a front, and its configuration.
pub struct Place<'a> {
    /// Its files.
    pub folder: &'a Path,
    /// On 127.0.0.1.
    pub port: u16,
    /// Ports of the servers behind it, on 127.0.0.1. Not empty.
    pub behind: &'a [u16],
    /// With the front's own names.
    pub settings: &'a [ServerSetting],
    /// Names and passwords for logins with SCRAM; empty: `app` and the administrator get in without one.
    pub accounts: &'a [(String, Concealed)],
}
