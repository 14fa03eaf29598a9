//! Lints of what is compiled for the tests, with the same dependencies.
//!
//! `cargo clippy` checks every dependency once more, because what it needs of them is not what a build makes: that took
//! longer than the lints themselves. As cargo's wrapper of the compiler, this program compiles a crate of the workspace
//! and then shows it to Clippy.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result};

/// Set for cargo: the program is the wrapper of the compiler.
const IS_WRAPPER: &str = "ASSAY_XTASK_WRAPS_RUSTC";
/// Of this program's copy. Compiling it replaces the original, and another name would compile everything anew.
const COPY: &str = "xtask-lints";

/// This program as the wrapper of the compiler.
pub(crate) struct Wrapper(PathBuf);

impl Wrapper {
    /// Copies this program.
    ///
    /// # Errors
    /// It cannot be copied: it was replaced already, or the disk is full.
    pub(crate) fn new() -> Result<Wrapper> {
        let program = std::env::current_exe().context("where this program lies")?;
        let copy = program.with_file_name(COPY);
        let aside = program.with_file_name(format!("{COPY}.{}", std::process::id()));
        fs::copy(&program, &aside)
            .and_then(|_| fs::rename(&aside, &copy))
            .with_context(|| format!("copying {} to {}", program.display(), copy.display()))?;
        Ok(Wrapper(copy))
    }

    /// The command of cargo that lints what it compiles of the workspace.
    pub(crate) fn around(&self, mut cargo: Command) -> Command {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", &self.0).env(IS_WRAPPER, "1");
        cargo
    }
}

/// The compiler and its arguments, if cargo called us for them.
pub(crate) fn wrapped() -> Option<Vec<OsString>> {
    std::env::var_os(IS_WRAPPER)?;
    Some(std::env::args_os().skip(1).collect())
}

/// Compiles, and lints what was compiled. Returns whether both went well; warnings are no errors.
pub(crate) fn compile(arguments: &[OsString]) -> Result<bool> {
    let [compiler, arguments @ ..] = arguments else { anyhow::bail!("cargo named no compiler") };
    let folder = tempfile::tempdir().context("a folder for what Clippy writes")?;
    let Some(to_lint) = for_lints(arguments, folder.path()) else {
        // A question about the compiler.
        return Ok(status(Command::new(compiler).args(arguments))?.success());
    };
    // Clippy says what the compiler would, too.
    let compiled = status(Command::new(compiler).args(arguments).args(["--cap-lints", "allow"]))?;
    Ok(compiled.success() && status(Command::new(clippy(compiler)?).args(to_lint))?.success())
}

fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("running {}", command.get_program().display()))
}

/// The program beside the compiler itself, as `cargo clippy` finds it.
fn clippy(compiler: &OsStr) -> Result<PathBuf> {
    let said =
        Command::new(compiler).args(["--print", "sysroot"]).output().context("asking the compiler for its place")?;
    Ok(Path::new(String::from_utf8_lossy(&said.stdout).trim()).join("bin/clippy-driver"))
}

/// The arguments with which Clippy reads what these compile, and writes to this folder only. `None`: they compile
/// nothing.
fn for_lints(arguments: &[OsString], folder: &Path) -> Option<Vec<OsString>> {
    let is_crate = arguments.windows(2).any(|pair| pair[0] == "--crate-name" && pair[1] != "___");
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if text == "--out-dir" {
            rest.next();
        } else if text == "-C" {
            // What was compiled incrementally is the compiler's own.
            kept.extend(rest.next().filter(|option| !option.to_string_lossy().starts_with("incremental=")).map(
                |option| {
                    let mut both = OsString::from("-C");
                    both.push(option);
                    both
                },
            ));
        } else if let Some(formats) = text.strip_prefix("--json=") {
            // Cargo is told only of the compiler's files.
            let formats: Vec<&str> = formats.split(',').filter(|format| *format != "artifacts").collect();
            kept.push(format!("--json={}", formats.join(",")).into());
        } else if !text.starts_with("--emit=") {
            kept.push(argument.clone());
        }
    }
    kept.extend(["--emit=metadata".into(), "--out-dir".into(), folder.into()]);
    is_crate.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn clippy_writes_nothing_where_the_compiler_does() {
        let compiler = words(
            "--crate-name assay_io --edition=2024 src/lib.rs --error-format=json --json=diagnostic-rendered-ansi,artifacts \
             --crate-type lib --emit=dep-info,metadata,link -C opt-level=1 -C incremental=/t/incremental --out-dir /t/deps \
             -L dependency=/t/deps --extern nix=/t/deps/libnix-1.rmeta",
        );
        let expected = words(
            "--crate-name assay_io --edition=2024 src/lib.rs --error-format=json --json=diagnostic-rendered-ansi --crate-type \
             lib -Copt-level=1 -L dependency=/t/deps --extern nix=/t/deps/libnix-1.rmeta --emit=metadata --out-dir /aside",
        );
        assert_eq!(for_lints(&compiler, Path::new("/aside")), Some(expected));
        for question in ["-vV", "- --crate-name ___ --print=file-names --crate-type bin"] {
            assert_eq!(for_lints(&words(question), Path::new("/aside")), None, "{question}");
        }
    }
}
