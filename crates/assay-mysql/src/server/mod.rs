//! The servers of MySQL and MariaDB, for the lab.

use std::fmt;
use std::process::Command;

use assay_client::Client;
use assay_lab::fault::Result;
use assay_lab::product::{Artifact, Binaries, Product, Replicate, Role, Site};
use assay_lab::version::Version;
use assay_seam::Driver;

mod configure;
mod install;
mod lifecycle;
mod mariadb;
mod mysql;
mod replicate;
mod settle;

pub use mariadb::MARIADB;
pub use mysql::MYSQL;

/// One of the products: what distinguishes it from the other. They have the rest in common.
pub struct Member {
    name: &'static str,
    other_names: &'static [&'static str],
    title: &'static str,
    /// Names of the server program.
    programs: &'static [&'static str],
    /// Names of the client program.
    clients: &'static [&'static str],
    /// Folders of the server program, below the root.
    places: &'static [&'static str],
    package: &'static str,
    catalog: &'static [Artifact],
    /// Whether the output of `--version` is this product's.
    is_said: fn(&str) -> bool,
    environment: fn(&Binaries) -> Vec<(String, String)>,
    /// The command that creates an empty data directory, without the layout settings.
    initializer: fn(&Site<'_>) -> Command,
    /// Lines of the configuration that only this product needs.
    special: fn(&Site<'_>, &Role) -> Vec<String>,
    /// A line that turns off TLS, if a version would offer it by default.
    without_tls: fn(&Version) -> Option<&'static str>,
    become_replica: fn(&Site<'_>) -> Result<()>,
    follow: Follow,
    caught_up: fn(primary: &mut Client, replica: &mut Client) -> std::result::Result<bool, String>,
}

/// `Replicate::follow`.
type Follow = fn(&Version, (&mut Client, u16), &mut Client) -> std::result::Result<(), String>;

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

impl Product for Member {
    fn name(&self) -> &'static str {
        self.name
    }

    fn other_names(&self) -> &'static [&'static str] {
        self.other_names
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn driver(&self) -> Driver {
        crate::DRIVER
    }

    fn replication(&self) -> Option<&dyn Replicate> {
        Some(self)
    }
}
