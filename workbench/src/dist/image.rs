//! The container image: an OCI archive with the static program alone, run by a user without rights.
//!
//! An archive of a few JSON texts and one layer, so no daemon and no other tool is needed. `podman load -i FILE` and
//! `docker load -i FILE` (Docker 25 or later) read it, `skopeo copy oci-archive:FILE …` pushes it.

use std::env::consts::ARCH;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::checksums;
use super::contents::Contents;
use super::shared::{VERSION, tar};

/// Nobody in particular.
const USER: &str = "65532";

/// Writes the archive, and returns its path.
pub(super) fn pack(contents: &Contents, to: &Path) -> Result<PathBuf> {
    let scratch = tempfile::tempdir()?;
    let (layout, files) = (scratch.path().join("layout"), scratch.path().join("files"));
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    // Layers are compressed when they are pushed.
    let layer = scratch.path().join("layer.tar");
    fill(contents, &files)?;
    tar(&files, ".", &layer, &[])?;
    let layer = fs::read(layer)?;
    let layer_digest = format!("sha256:{}", checksums::of(&layer));
    let config = serde_json::to_vec(&config(&layer_digest))?;
    let put = |media_type: &str, bytes: &[u8]| -> Result<Value> {
        let digest = checksums::of(bytes);
        fs::write(blobs.join(&digest), bytes)?;
        Ok(json!({ "mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len() }))
    };
    let layer = put("application/vnd.oci.image.layer.v1.tar", &layer)?;
    let config = put("application/vnd.oci.image.config.v1+json", &config)?;
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({ "schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer] });
    let mut manifest = put(manifest_type, &serde_json::to_vec(&manifest)?)?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": format!("assay:{VERSION}") });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    fs::write(layout.join("index.json"), serde_json::to_vec(&index)?)?;
    fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tar(&layout, ".", to, &[])?;
    Ok(to.to_owned())
}

/// The files of the image: the program, a folder for temporary files, and one to work in.
fn fill(contents: &Contents, files: &Path) -> Result<()> {
    for (folder, mode) in [("usr/bin", 0o755), ("tmp", 0o1777), ("work", 0o1777), ("etc", 0o755)] {
        fs::create_dir_all(files.join(folder))?;
        fs::set_permissions(files.join(folder), fs::Permissions::from_mode(mode))?;
    }
    for folder in [".", "usr"] {
        fs::set_permissions(files.join(folder), fs::Permissions::from_mode(0o755))?;
    }
    let program = files.join("usr/bin/assay");
    fs::copy(contents.program(), &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let passwd = files.join("etc/passwd");
    fs::write(&passwd, format!("assay:x:{USER}:{USER}::/work:/sbin/nologin\n"))?;
    fs::set_permissions(&passwd, fs::Permissions::from_mode(0o644))?;
    Ok(())
}

/// How the image runs: `podman run IMAGE run tpcc …`.
fn config(layer: &str) -> Value {
    let architecture = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", "HOME=/work"],
            "Entrypoint": ["/usr/bin/assay"],
            "WorkingDir": "/work",
            "Labels": { "org.opencontainers.image.title": "assay", "org.opencontainers.image.version": VERSION },
        },
        "rootfs": { "type": "layers", "diff_ids": [layer] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_runs_assay_without_rights() {
        let config = config("sha256:0");
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/assay"]));
    }
}
