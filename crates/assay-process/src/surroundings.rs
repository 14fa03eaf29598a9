//! What drivers may read besides a URL: environment, files, the user.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assay_io::dns::{self, DnsError, NameServers};
use assay_seam::{Surroundings, TargetError};

/// Where this program can be started from again. A program that was replaced on the drive meanwhile (an upgrade) goes
/// by its process, since what is there now is another version.
pub fn own_program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    Ok(if path.exists() { path } else { PathBuf::from(format!("/proc/{}/exe", std::process::id())) })
}

/// The real machine.
pub struct ThisMachine;

impl Surroundings for ThisMachine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        assay_record::read_file(path, assay_record::WRITTEN_BYTES_MAX).ok()
    }

    fn mode(&self, path: &Path) -> Option<u32> {
        std::fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o7777)
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
    }

    fn user(&self) -> Option<String> {
        nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten().map(|user| user.name)
    }

    fn services(&self, name: &str) -> Result<Vec<(String, u16)>, TargetError> {
        let found = name_servers().and_then(|servers| servers.services(name)).map_err(|error| unknown(&error))?;
        Ok(found.into_iter().map(|service| (service.host, service.port)).collect())
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, TargetError> {
        name_servers().and_then(|servers| servers.texts(name)).map_err(|error| unknown(&error))
    }
}

fn name_servers() -> Result<NameServers, DnsError> {
    NameServers::of_machine(std::env::var(dns::VARIABLE).ok().as_deref())
}

fn unknown(error: &DnsError) -> TargetError {
    let hint = match error {
        DnsError::Name(_) | DnsError::NoSuchName { .. } => "check the spelling of the host".to_owned(),
        DnsError::Server(_) => format!("correct {}, or unset it", dns::VARIABLE),
        DnsError::NoAnswer { .. } => format!(
            "check the name servers in /etc/resolv.conf, name another one ({}=IP:PORT), or name the servers themselves \
             in the URL",
            dns::VARIABLE
        ),
    };
    let is_missing = matches!(error, DnsError::NoSuchName { .. } | DnsError::NoAnswer { .. });
    TargetError { message: error.to_string(), hint: Some(hint), is_missing }
}
