//! What all packages have in common: the stripped program with its symbols apart, manual pages, completions, texts, and
//! the documentation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use xtask::steps::run;

/// Files from the tree.
const FILES: [&str; 3] = ["README.md", "LICENSE", "CHANGELOG.md"];

/// Shells, with the names of their files.
const SHELLS: [(&str, &str); 3] = [("bash", "assay.bash"), ("zsh", "_assay"), ("fish", "assay.fish")];

/// A folder with `assay`, `assay.debug`, `man/man1/`, `completions/`, `docs/` and texts.
pub(super) struct Contents {
    folder: PathBuf,
}

impl Contents {
    /// Collects them in `folder`, which must not exist. `tree`: where the texts are.
    pub(super) fn of(program: &Path, tree: &Path, folder: &Path) -> Result<Contents> {
        let contents = Contents { folder: folder.to_owned() };
        fs::create_dir_all(contents.completions())?;
        strip(program, folder)?;
        for file in FILES {
            fs::copy(tree.join(file), folder.join(file)).with_context(|| format!("copying {file}"))?;
        }
        run(Command::new("cp").arg("--recursive").arg(tree.join("docs")).arg(contents.docs()))?;
        run(Command::new(program).arg("manual").arg(contents.manual()))?;
        for (shell, file) in SHELLS {
            let output = Command::new(program).args(["completions", shell]).output()?;
            ensure!(output.status.success(), "assay completions {shell}: {}", output.status);
            fs::write(contents.completions().join(file), output.stdout)?;
        }
        Ok(contents)
    }

    /// The program, without debug information but with the names of its functions.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("assay")
    }

    /// The folder of the manual pages.
    pub(super) fn manual(&self) -> PathBuf {
        self.folder.join("man/man1")
    }

    /// The folder of the completions.
    pub(super) fn completions(&self) -> PathBuf {
        self.folder.join("completions")
    }

    /// The folder of the documentation, to which the README refers.
    pub(super) fn docs(&self) -> PathBuf {
        self.folder.join("docs")
    }

    /// A text from the tree.
    pub(super) fn text(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Copies everything but the symbols to `to`.
    pub(super) fn copy_to(&self, to: &Path) -> Result<()> {
        run(Command::new("cp").arg("--recursive").arg(&self.folder).arg(to))?;
        fs::remove_file(to.join("assay.debug"))?;
        Ok(())
    }

    /// Copies the symbols to `to`, and returns that.
    pub(super) fn put_symbols(&self, to: &Path) -> Result<PathBuf> {
        fs::copy(self.folder.join("assay.debug"), to)?;
        Ok(to.to_owned())
    }
}

/// Puts line tables into `assay.debug`, and the program without them beside it. A backtrace finds them by the link in
/// the program if the file is in the program's folder, or in `.debug` or `/usr/lib/debug` below it.
fn strip(program: &Path, folder: &Path) -> Result<()> {
    let (stripped, symbols) = (folder.join("assay"), folder.join("assay.debug"));
    let objcopy = || Command::new("objcopy");
    run(objcopy().arg("--only-keep-debug").arg("--compress-debug-sections=zlib").arg(program).arg(&symbols))?;
    // Function names stay, for panics.
    run(objcopy().arg("--strip-debug").arg(program).arg(&stripped))?;
    run(objcopy().arg("--add-gnu-debuglink=assay.debug").arg("assay").current_dir(folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::steps::root;

    #[test]
    fn what_goes_along_is_in_the_tree() {
        assert!(FILES.iter().all(|file| root().join(file).is_file()));
    }
}
