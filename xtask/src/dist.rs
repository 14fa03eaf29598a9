//! A release archive: the program, its manual pages and completions, README and license, in `target/dist/`.
//!
//! Static, so that it runs on any Linux with the same processor, if the toolchain can build for musl: its target is
//! installed (`rustup target add`) and so is a C compiler for it (`apt-get install musl-tools`). Otherwise it needs the
//! C library of the build machine, or a newer one, which is reported.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::steps::{cargo, root, run};

/// Files from the tree.
const FILES: [&str; 3] = ["README.md", "LICENSE", "CHANGELOG.md"];

/// Builds the program and packs the archive.
pub(crate) fn run_all() -> Result<()> {
    let musl = format!("{ARCH}-unknown-linux-musl");
    let target = missing_for(&musl);
    if let Some(missing) = &target {
        println!("not static, {missing}: the program needs the C library of this machine or a newer one");
    }
    let (name, program) = match target {
        None => {
            run(cargo(&["build", "--release", "--package", "assay", "--target", &musl])
                .env(compiler_variable(&musl), "musl-gcc"))?;
            (musl.clone(), format!("{musl}/release/assay"))
        }
        Some(_) => {
            run(&mut cargo(&["build", "--release", "--package", "assay"]))?;
            (format!("{ARCH}-unknown-linux-gnu"), "release/assay".to_owned())
        }
    };
    let archive = pack(&target_folder()?.join(program), &name)?;
    println!("{}", archive.display());
    Ok(())
}

/// Why nothing can be built for `target`; `None` if it can.
fn missing_for(target: &str) -> Option<String> {
    let installed = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let library = installed.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    if !library.is_some_and(|folder| Path::new(folder.trim()).is_dir()) {
        return Some(format!("the target {target} is not installed (rustup target add {target})"));
    }
    let compiler = Command::new("musl-gcc").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let works = compiler.is_ok_and(|status| status.success());
    (!works).then(|| "there is no musl-gcc (apt-get install musl-tools)".to_owned())
}

/// The variable in which crates that compile C look for their compiler: `CC_x86_64_unknown_linux_musl`.
fn compiler_variable(target: &str) -> String {
    format!("CC_{}", target.replace('-', "_"))
}

/// As reported by cargo, whatever the configuration is.
fn target_folder() -> Result<PathBuf> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    Ok(metadata["target_directory"].as_str().context("cargo names its target folder")?.into())
}

/// An archive `assay-VERSION-TARGET.tar.gz` of a folder with that name, identical for identical files.
fn pack(program: &Path, target: &str) -> Result<PathBuf> {
    let name = format!("assay-{}-{target}", env!("CARGO_PKG_VERSION"));
    let dist = target_folder()?.join("dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let (pages, completions) = (folder.join("man/man1"), folder.join("completions"));
    fs::create_dir_all(&completions)?;
    let copy = |from: &Path, name: &str| {
        fs::copy(from, folder.join(name)).with_context(|| format!("copying {}", from.display()))
    };
    copy(program, "assay")?;
    // Function names stay, for panics; the other debug information is four fifths of the file.
    run(Command::new("strip").arg("--strip-debug").arg(folder.join("assay")))?;
    for file in FILES {
        copy(&root().join(file), file)?;
    }
    run(Command::new(program).arg("manual").arg(&pages))?;
    for (shell, file) in [("bash", "assay.bash"), ("zsh", "_assay"), ("fish", "assay.fish")] {
        let output = Command::new(program).args(["completions", shell]).output()?;
        ensure!(output.status.success(), "assay completions {shell}: {}", output.status);
        fs::write(completions.join(file), output.stdout)?;
    }
    let archive = dist.join(format!("{name}.tar.gz"));
    run(Command::new("tar")
        .args([
            "--create",
            "--gzip",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mtime=@0",
            "--file",
        ])
        .arg(&archive)
        .arg("--directory")
        .arg(&dist)
        .arg(&name))?;
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_along_is_in_the_tree() {
        assert!(FILES.iter().all(|file| root().join(file).is_file()));
    }

    #[test]
    fn what_is_missing_for_a_static_program_is_named() {
        let missing = missing_for("x86_64-unknown-linux-nowhere").unwrap();
        assert_eq!(
            missing,
            "the target x86_64-unknown-linux-nowhere is not installed (rustup target add x86_64-unknown-linux-nowhere)"
        );
        assert_eq!(compiler_variable("x86_64-unknown-linux-musl"), "CC_x86_64_unknown_linux_musl");
    }
}
