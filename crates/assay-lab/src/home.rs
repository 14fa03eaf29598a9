//! Where the lab stores things: running servers, downloaded binaries, images of data directories.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::account::is_root;
use crate::fault::{At, Fault, Result};
use crate::products::Products;

/// The environment variable for the lab's folder.
pub const VARIABLE: &str = "ASSAY_LAB";

/// The lab's folder, and what it can start.
#[derive(Clone, Debug)]
pub struct Home {
    /// A folder for each server.
    pub servers: PathBuf,
    /// Binaries and images.
    pub cache: PathBuf,
    /// What can be started.
    pub products: &'static Products,
}

impl Home {
    /// `ASSAY_LAB` if it is set; for root `/var/cache/assay`, because an unprivileged user must be able to read it;
    /// otherwise `$XDG_CACHE_HOME/assay` or `~/.cache/assay`.
    pub fn usual(products: &'static Products) -> Home {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = || variable("XDG_CACHE_HOME").or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
        let folder = match variable(VARIABLE) {
            Some(folder) => folder,
            None if is_root() => PathBuf::from("/var/cache/assay"),
            None => base().unwrap_or_else(std::env::temp_dir).join("assay"),
        };
        Home::at(folder, products)
    }

    /// Everything in one folder.
    pub fn at(folder: impl Into<PathBuf>, products: &'static Products) -> Home {
        let cache = folder.into();
        Home { servers: cache.join("servers"), cache, products }
    }

    /// The folder of a server.
    pub fn server(&self, name: &str) -> PathBuf {
        self.servers.join(name)
    }

    pub(crate) fn binaries(&self) -> PathBuf {
        self.cache.join("binaries")
    }

    pub(crate) fn images(&self) -> PathBuf {
        self.cache.join("images")
    }

    /// Fails if `ASSAY_LAB` is not, and cannot become, a folder: an error in it would look like a lab without servers.
    pub fn check() -> Result<()> {
        let Some(folder) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) else {
            return Ok(());
        };
        let wrong = |reason: &str| Err(Fault::usage(format!("{VARIABLE}={}: {reason}", folder.display())));
        match folder.parent() {
            _ if !folder.is_absolute() => wrong("not an absolute path"),
            _ if folder.exists() && !folder.is_dir() => wrong("not a folder"),
            Some(parent) if !parent.is_dir() => wrong(&format!("there is no folder {}", parent.display())),
            _ => Ok(()),
        }
    }

    /// Creates missing folders.
    pub(crate) fn make(&self) -> Result<()> {
        Home::check()?;
        for folder in [self.servers.clone(), self.binaries(), self.images()] {
            fs::create_dir_all(&folder).at("create", &folder)?;
        }
        Ok(())
    }
}

/// A free port, below the range that the kernel uses for clients' ports: a load test's connections must not take it
/// before the server listens on it, or while the server is restarted.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (0..1000)
        .map(|_| 15_000 + ((std::process::id() * 97 + NEXT.fetch_add(1, Ordering::Relaxed) * 13) % 17_000) as u16)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .ok_or_else(|| Fault::environment("no free port between 15000 and 32000"))
}
