//! Checks Kubernetes manifests against the schemas that Kubernetes publishes, which the Python package
//! `kubernetes-validate` ships.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::absent;
use crate::python::Packages;

const SCHEMAS: Packages = Packages { name: "kubernetes-validate", wanted: &["kubernetes-validate==1.37.0"] };
/// The oldest and the newest that the package knows.
const VERSIONS: [&str; 2] = ["1.25", "1.37"];

/// Whether the schemas are on this machine; says aloud where not.
pub fn has_kubernetes_schemas() -> bool {
    SCHEMAS.are_present() || absent("no schemas of Kubernetes (cargo xtask install)")
}

/// Whether `fetch_kubernetes_schemas` has something to do.
pub fn misses_kubernetes_schemas() -> bool {
    !SCHEMAS.are_present()
}

/// Fetches them.
pub fn fetch_kubernetes_schemas() -> Result<()> {
    SCHEMAS.fetch()
}

/// Fails with Kubernetes' own words unless every object in the manifest is one of Kubernetes, old or new, without any
/// field that it does not know.
pub fn check_manifest(manifest: &Path) -> Result<()> {
    let mut command = SCHEMAS.python()?;
    command.args(["-m", "kubernetes_validate", "--strict", "--quiet"]);
    command.args(VERSIONS.iter().flat_map(|version| ["--kubernetes-version", version])).arg(manifest);
    let output = command.output()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    Ok(())
}
