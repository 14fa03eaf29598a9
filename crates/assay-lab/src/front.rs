//! Programs in front of servers, without data of their own: a pooler, a proxy. Only their configuration and command;
//! the rest is the same as for a server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::product::Asked;
use crate::version::Version;

/// A front.
pub trait Front: Sync {
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

    /// Its configuration files; the first contains the settings.
    fn configuration(&self, place: &Place<'_>) -> Vec<(PathBuf, String)>;

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
    pub settings: &'a [Asked],
    /// Names and passwords for logins with SCRAM; empty: `app` and `postgres` get in without one.
    pub accounts: &'a [(String, String)],
}
