//! The Debian package: the program, its pages and completions in Debian's folders, by `dpkg-deb` alone.
//!
//! It runs nothing when it is installed or removed. `/usr/lib/assay/` has `sysbench` and `pgbench`, which are assay
//! under these names: who wants them in place of the originals puts that folder first in PATH.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::contents::Contents;
use super::shared::VERSION;
use xtask::steps::run;

/// Names under which assay behaves as another program.
const FRONTS: [&str; 2] = ["sysbench", "pgbench"];

/// Builds `assay_VERSION_ARCHITECTURE.deb` in `dist`.
pub(super) fn pack(contents: &Contents, is_static: bool, scratch: &Path, dist: &Path) -> Result<PathBuf> {
    let tree = scratch.join("debian");
    let folder = |path: &str| -> Result<PathBuf> {
        let folder = tree.join(path);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let program = folder("usr/bin")?.join("assay");
    fs::copy(contents.program(), &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let fronts = folder("usr/lib/assay")?;
    for front in FRONTS {
        symlink("../../bin/assay", fronts.join(front))?;
    }
    let pages = folder("usr/share/man/man1")?;
    for page in fs::read_dir(contents.manual())? {
        let page = page?.path();
        compress(&page, &pages.join(page.file_name().context("it is a file")?))?;
    }
    for (from, to) in [
        ("assay.bash", "usr/share/bash-completion/completions/assay"),
        ("_assay", "usr/share/zsh/vendor-completions/_assay"),
        ("assay.fish", "usr/share/fish/vendor_completions.d/assay.fish"),
    ] {
        let to = tree.join(to);
        fs::create_dir_all(to.parent().context("it has a folder")?)?;
        fs::copy(contents.completions().join(from), to)?;
    }
    let texts = folder("usr/share/doc/assay")?;
    fs::copy(contents.text("LICENSE"), texts.join("copyright"))?;
    fs::copy(contents.text("README.md"), texts.join("README.md"))?;
    compress(&contents.text("CHANGELOG.md"), &texts.join("changelog"))?;
    run(Command::new("cp").arg("--recursive").arg(contents.docs()).arg(texts.join("docs")))?;
    let architecture = architecture()?;
    let kilobytes = size_of(&tree)?.div_ceil(1024);
    fs::write(folder("DEBIAN")?.join("control"), control(&architecture, is_static, kilobytes))?;
    modes(&tree)?;
    let file = dist.join(format!("assay_{VERSION}_{architecture}.deb"));
    // Times of files would differ from build to build.
    run(Command::new("dpkg-deb")
        .env("SOURCE_DATE_EPOCH", "0")
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&tree)
        .arg(&file))?;
    Ok(file)
}

/// The package's description. It suggests what encrypted connections check certificates with, and what downloads
/// servers.
fn control(architecture: &str, is_static: bool, kilobytes: u64) -> String {
    let depends = if is_static { "" } else { "Depends: libc6, libgcc-s1\n" };
    format!(
        "Package: assay\nVersion: {VERSION}\nArchitecture: {architecture}\nMaintainer: assay <assay@localhost>\n\
         Installed-Size: {kilobytes}\n{depends}Suggests: ca-certificates, maven, unzip, xz-utils\n\
         Section: database\nPriority: optional\n\
         Description: database performance lab in one program\n \
         Runs workloads of sysbench, pgbench and TPC-C and its own in Lua against\n \
         PostgreSQL, MySQL, MariaDB and SQLite, measures them, and compares the results.\n"
    )
}

/// Debian's name for this machine's processor.
fn architecture() -> Result<String> {
    let output = Command::new("dpkg").arg("--print-architecture").output().context("dpkg")?;
    ensure!(output.status.success(), "dpkg --print-architecture: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// `TO.gz`, without name and time.
fn compress(from: &Path, to: &Path) -> Result<()> {
    let output = Command::new("gzip").args(["--no-name", "--best", "--stdout"]).arg(from).output()?;
    ensure!(output.status.success(), "gzip {}: {}", from.display(), output.status);
    let mut name = to.as_os_str().to_owned();
    name.push(".gz");
    Ok(fs::write(name, output.stdout)?)
}

/// Bytes of all files in a folder.
fn size_of(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let (entry, path) = (entry.as_ref().map(fs::DirEntry::metadata), entry.as_ref().map(fs::DirEntry::path));
        let (Ok(found), Ok(path)) = (entry, path) else { continue };
        let found = found?;
        bytes += if found.is_dir() { size_of(&path)? } else { found.len() };
    }
    Ok(bytes)
}

/// Independent of the umask: programs and folders 755, other files 644.
fn modes(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_dir() {
            modes(&entry.path())?;
        } else if found.is_file() {
            let is_program = found.permissions().mode() & 0o100 != 0;
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))?;
        }
    }
    Ok(())
}
