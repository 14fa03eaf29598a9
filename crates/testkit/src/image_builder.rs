//! Builds container images, with whatever this machine has for it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::aloud;

/// Podman, Buildah, or Docker with a running daemon.
pub struct ImageBuilder {
    program: &'static str,
    /// Images of podman and Buildah; Docker keeps them in its daemon.
    store: TempDir,
}

impl ImageBuilder {
    /// Nothing installs one: where none works, that is reported past the test harness, and no failure.
    pub fn find() -> Option<ImageBuilder> {
        let store = tempfile::tempdir().ok()?;
        let works = |program: &&'static str| {
            command(program, store.path()).arg("info").output().is_ok_and(|output| output.status.success())
        };
        let found = ["podman", "buildah", "docker"].into_iter().find(works);
        if found.is_none() {
            aloud(
                "SKIPPED ALOUD: no container image is built: neither podman nor buildah is installed, and no Docker daemon runs",
            );
        }
        Some(ImageBuilder { program: found?, store })
    }

    /// Builds the image of the `Containerfile` in a folder, and returns its configuration as JSON.
    pub fn build(&self, folder: &Path, name: &str) -> Result<String> {
        let file = folder.join("Containerfile");
        let run = |arguments: &[&str]| -> Result<String> {
            let output = command(self.program, self.store.path()).args(arguments).output().context(self.program)?;
            ensure!(output.status.success(), "{}: {}", self.program, String::from_utf8_lossy(&output.stderr));
            Ok(String::from_utf8(output.stdout)?)
        };
        let place = folder.display().to_string();
        run(&["build", "--tag", name, "--file", &file.display().to_string(), &place])?;
        let inspect: &[&str] =
            if self.program == "buildah" { &["inspect", "--type", "image", name] } else { &["image", "inspect", name] };
        let found = run(inspect)?;
        run(&["rmi", name])?;
        Ok(found)
    }
}

fn command(program: &str, store: &Path) -> Command {
    let mut command = Command::new(program);
    if program != "docker" {
        // Neither images nor settings of the user are touched, and no kernel feature is needed.
        command.args(["--storage-driver", "vfs", "--root"]).arg(store.join("images"));
        command.arg("--runroot").arg(store.join("run"));
    }
    command
}
