//! The user that servers run as: never root, and never a user created for this purpose.

use std::ffi::OsStr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{Uid, User, geteuid};
use serde::{Deserialize, Serialize};

use crate::fault::{At, Fault, Result};

/// An existing user of this machine that is not root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    pub name: String,
    uid: u32,
    gid: u32,
}

/// The user for servers if we are root and no other is named.
const DEFAULT: &str = "nobody";

impl Account {
    /// The user that servers run as: the current one, or for root `run_as`, or else `nobody`.
    pub fn choose(run_as: Option<&str>) -> Result<Account> {
        let me = geteuid();
        if me.is_root() {
            let name = run_as.unwrap_or(DEFAULT);
            let account = Account::of(User::from_name(name).ok().flatten(), name)?;
            return match account.uid {
                0 => Err(Fault::usage(format!("cannot run servers as {name}: that is root"))
                    .hint("choose an unprivileged user with `--run-as`")),
                _ => Ok(account),
            };
        }
        let account = Account::of(User::from_uid(me).ok().flatten(), &format!("of number {me}"))?;
        match run_as {
            Some(other) if other != account.name => Err(Fault::environment(format!(
                "only root can run a server as {other}; the current user is {}",
                account.name
            ))
            .hint("leave out `--run-as`, or use sudo")),
            _ => Ok(account),
        }
    }

    fn of(user: Option<User>, name: &str) -> Result<Account> {
        let user = user.ok_or_else(|| {
            Fault::environment(format!("cannot run a server as {name}: there is no such user"))
                .hint("choose an existing unprivileged user with `--run-as`; assay does not create users")
        })?;
        Ok(Account { name: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() })
    }

    /// A command that runs as this user, in a folder that everybody can enter, without passwords in its environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(assay_secret::is_secret) {
                command.env_remove(name);
            }
        }
        if geteuid().is_root() {
            // The standard library drops supplementary groups together with the user.
            command.uid(self.uid).gid(self.gid);
            // Root's own folder, where this user may not write.
            command.env_remove("TMPDIR");
        }
        command.current_dir("/");
        command
    }

    /// Whether this user can enter a folder; true if nobody knows.
    pub(crate) fn can_enter(&self, folder: &Path) -> bool {
        let asked = self.command("test").arg("-x").arg(folder).status();
        !asked.is_ok_and(|status| !status.success())
    }

    /// `uid:gid`.
    pub(crate) fn numbers(&self) -> String {
        format!("{}:{}", self.uid, self.gid)
    }

    /// Makes this user the owner of a file or folder.
    pub fn own(&self, path: &Path) -> Result<()> {
        if geteuid().is_root() { chown(path, Some(self.uid), Some(self.gid)).at("hand over", path) } else { Ok(()) }
    }

    /// The group id, for the kernel's list of who may use huge pages.
    pub(crate) fn group(&self) -> u32 {
        self.gid
    }
}

/// Whether this process may change the machine's settings.
pub(crate) fn is_root() -> bool {
    Uid::effective().is_root()
}
