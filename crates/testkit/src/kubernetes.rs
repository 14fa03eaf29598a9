//! Checks Kubernetes manifests against the schemas that Kubernetes publishes, which the Python package
//! `kubernetes-validate` ships.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{absent, cache};

const PACKAGE: &str = "kubernetes-validate==1.37.0";
/// The oldest and the newest that the package knows.
const VERSIONS: [&str; 2] = ["1.25", "1.37"];

/// Whether the schemas are on this machine; says aloud where not.
pub fn has_kubernetes_schemas() -> bool {
    folder().is_ok_and(|folder| folder.exists()) || absent("no schemas of Kubernetes (cargo xtask install)")
}

/// Whether they can be fetched: there is a Python with pip.
pub fn has_pip() -> bool {
    python().is_some()
}

/// Whether `fetch_kubernetes_schemas` has something to do.
pub fn misses_kubernetes_schemas() -> bool {
    !folder().is_ok_and(|folder| folder.exists())
}

/// Fetches them.
pub fn fetch_kubernetes_schemas() -> Result<()> {
    let folder = folder()?;
    if folder.exists() {
        return Ok(());
    }
    let parent = folder.parent().expect("it is in the cache");
    fs::create_dir_all(parent)?;
    let draft = tempfile::Builder::new().prefix("draft-").tempdir_in(parent)?;
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", PACKAGE, "--target"];
    let output = Command::new(python().context("no Python with pip")?).args(install).arg(draft.path()).output()?;
    ensure!(output.status.success(), "pip cannot install {PACKAGE}: {}", String::from_utf8_lossy(&output.stderr));
    fs::rename(draft.keep(), folder)?;
    Ok(())
}

/// Fails with Kubernetes' own words unless every object in the manifest is one of Kubernetes, old or new, without any
/// field that it does not know.
pub fn check_manifest(manifest: &Path) -> Result<()> {
    let mut command = Command::new(python().context("no Python with pip")?);
    command.env("PYTHONPATH", folder()?).args(["-m", "kubernetes_validate", "--strict", "--quiet"]);
    command.args(VERSIONS.iter().flat_map(|version| ["--kubernetes-version", version])).arg(manifest);
    let output = command.output()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

/// The folder for this version of Python: the package has compiled parts.
fn folder() -> Result<PathBuf> {
    let version = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"];
    let output = Command::new(python().context("no Python with pip")?).args(version).output()?;
    let version = String::from_utf8(output.stdout)?;
    Ok(cache().join("kubernetes-validate").join(version.trim()))
}

/// A Python that can install packages: that of the user, or Debian's.
fn python() -> Option<&'static str> {
    let has_pip = |program: &&str| {
        let output = Command::new(program).args(["-m", "pip", "--version"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    ["python3", "/usr/bin/python3"].into_iter().find(has_pip)
}
