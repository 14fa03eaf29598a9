//! Lints of what is compiled for the tests, with the same dependencies.
//!
//! `cargo clippy` checks every dependency once more, because what it needs of them is not what a build makes: that took
//! longer than the lints themselves. As cargo's wrapper of the compiler, this program compiles a crate of the workspace
//! and then shows it to Clippy.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, bail};

/// Set for cargo: the program is the wrapper of the compiler.
const IS_WRAPPER: &str = "ASSAY_XTASK_WRAPS_RUSTC";
/// Name of this program's copy: compiling the workspace replaces the program itself. Under another name, everything
/// would be compiled again.
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

/// Compiles, and lints what was compiled. Returns whether both succeeded; warnings are not failures.
pub(crate) fn compile(arguments: &[OsString]) -> Result<ExitCode> {
    let [compiler, arguments @ ..] = arguments else { bail!("cargo named no compiler") };
    let run = |program: &OsStr, arguments: &mut dyn Iterator<Item = &OsString>| {
        let status = Command::new(program).args(arguments).status();
        status.with_context(|| format!("running {}", program.display()))
    };
    if !compiles(arguments) {
        return Ok(code(run(compiler, &mut arguments.iter())?));
    }
    // Clippy says what the compiler would, too.
    let quiet = ["--cap-lints", "allow"].map(OsString::from);
    let compiled = run(compiler, &mut arguments.iter().chain(&quiet))?;
    if !compiled.success() {
        return Ok(code(compiled));
    }
    let folder = tempfile::tempdir().context("a folder for what Clippy writes")?;
    Ok(code(run(clippy(compiler)?.as_os_str(), &mut for_lints(arguments, folder.path()).iter())?))
}

/// Whether these compile a crate; otherwise cargo asks about the compiler.
fn compiles(arguments: &[OsString]) -> bool {
    arguments.windows(2).any(|pair| pair[0] == "--crate-name" && pair[1] != "___")
}

fn code(status: ExitStatus) -> ExitCode {
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The program beside the compiler itself, as `cargo clippy` finds it.
fn clippy(compiler: &OsStr) -> Result<PathBuf> {
    let said =
        Command::new(compiler).args(["--print", "sysroot"]).output().context("asking the compiler for its place")?;
    Ok(Path::new(String::from_utf8_lossy(&said.stdout).trim()).join("bin/clippy-driver"))
}

/// The arguments with which Clippy reads what these compile, and writes to this folder only.
fn for_lints(arguments: &[OsString], folder: &Path) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if text.starts_with("--emit=") {
            continue;
        }
        if text == "--out-dir" {
            rest.next();
        } else if text == "-C" {
            // What was compiled incrementally is the compiler's own.
            let option = rest.next().filter(|option| !option.to_string_lossy().starts_with("incremental="));
            kept.extend(option.into_iter().flat_map(|option| [argument.clone(), option.clone()]));
        } else if let Some(formats) = text.strip_prefix("--json=") {
            // Cargo would take Clippy's files for the compiler's.
            let formats: Vec<&str> = formats.split(',').filter(|format| *format != "artifacts").collect();
            kept.push(format!("--json={}", formats.join(",")).into());
        } else {
            kept.push(argument.clone());
        }
    }
    kept.extend(["--emit=metadata".into(), "--out-dir".into(), folder.into()]);
    kept
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
             lib -C opt-level=1 -L dependency=/t/deps --extern nix=/t/deps/libnix-1.rmeta --emit=metadata --out-dir /aside",
        );
        assert_eq!(for_lints(&compiler, Path::new("/aside")), expected);
        for question in ["-vV", "- --crate-name ___ --print=file-names --crate-type bin"] {
            assert!(!compiles(&words(question)), "{question}");
        }
        assert!(compiles(&compiler));
    }
}
