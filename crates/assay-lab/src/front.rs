//! What stands before servers and has no data of its own: a pooler, a proxy. Only where it runs, what it reads and what
//! it is called; its life is a server's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::product::Asked;
use crate::version::Version;

/// A front.
pub trait Front: Sync {
    /// What users write, and its program.
    fn name(&self) -> &'static str;

    /// Whether it can stand before several servers.
    fn takes_several(&self) -> bool {
        false
    }

    /// Whether it can stand before servers whose URLs have this scheme.
    fn speaks(&self, scheme: &str) -> bool;

    /// The version in what its program says; `None`: it is another program.
    fn version_said(&self, words: &str) -> Option<Version>;

    /// What to ask it for that.
    fn version_argument(&self) -> &'static str;

    /// The files that tell it what to do; the first holds the settings.
    fn configuration(&self, place: &Place<'_>) -> Vec<(PathBuf, String)>;

    /// Arguments of its program.
    fn arguments(&self, place: &Place<'_>) -> Vec<OsString>;
}

/// Where a front lives, and its configuration.
pub struct Place<'a> {
    /// Its files.
    pub folder: &'a Path,
    /// On 127.0.0.1.
    pub port: u16,
    /// Ports of the servers behind it, on 127.0.0.1. Not empty.
    pub behind: &'a [u16],
    /// In the front's own words.
    pub settings: &'a [Asked],
    /// Names and passwords of those who log in by SCRAM; empty: `app` and `postgres` get in without one.
    pub accounts: &'a [(String, String)],
}
