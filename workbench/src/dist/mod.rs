//! Packages of a release, in `target/dist/`: an archive, a Debian package, a container image, debug symbols, a list of
//! what they are made of (SBOM), and checksums.
//!
//! Static, so that it runs on any Linux with the same processor, if the toolchain can build for musl: its target is
//! installed (`rustup target add`) and so is a C compiler for it (`apt-get install musl-tools`). Otherwise it needs the
//! C library of the build machine, or a newer one, which is reported; there is then no image, which would lack one.
//!
//! All files are identical for identical programs and trees.

mod archive;
mod checksums;
mod contents;
mod debian;
mod image;
mod sbom;
mod shared;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use contents::Contents;
use shared::VERSION;
use xtask::steps::{cargo, root, run};

/// Builds the program and packs everything.
pub(crate) fn run_all() -> Result<()> {
    let musl = format!("{ARCH}-unknown-linux-musl");
    let missing = missing_for(&musl);
    if let Some(missing) = &missing {
        println!("not static, {missing}: the program needs the C library of this machine or a newer one, no image");
    }
    let is_static = missing.is_none();
    let (target, program) = if is_static {
        run(cargo(&["build", "--release", "--package", "assay", "--target", &musl])
            .args(PACKED)
            .env(compiler_variable(&musl), "musl-gcc"))?;
        (musl.clone(), format!("{musl}/release/assay"))
    } else {
        run(cargo(&["build", "--release", "--package", "assay"]).args(PACKED))?;
        (format!("{ARCH}-unknown-linux-gnu"), "release/assay".to_owned())
    };
    let metadata = cargo(&["metadata", "--format-version", "1", "--locked", "--filter-platform", &target]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).context("reading cargo metadata")?;
    let folder = target_folder()?;
    for file in pack(&folder.join(program), &target, is_static, &metadata, &folder.join("dist"))? {
        println!("{} {}", fs::metadata(&file)?.len(), file.display());
    }
    Ok(())
}

/// Packs `program` into the folder `dist`, which is emptied first. Returns the files.
fn pack(
    program: &Path,
    target: &str,
    is_static: bool,
    metadata: &serde_json::Value,
    dist: &Path,
) -> Result<Vec<PathBuf>> {
    if dist.exists() {
        fs::remove_dir_all(dist)?;
    }
    fs::create_dir_all(dist)?;
    let scratch = tempfile::tempdir()?;
    let contents = Contents::of(program, &root(), &scratch.path().join("contents"))?;
    let name = format!("assay-{VERSION}-{target}");
    let mut files = vec![
        archive::pack(&contents, &name, dist)?,
        debian::pack(&contents, is_static, scratch.path(), dist)?,
        contents.put_symbols(&dist.join(format!("{name}.debug")))?,
    ];
    if is_static {
        files.push(image::pack(&contents, &dist.join(format!("{name}.oci.tar")))?);
    }
    let sbom = dist.join(format!("assay-{VERSION}.cdx.json"));
    fs::write(&sbom, format!("{:#}\n", sbom::of(metadata)?))?;
    files.push(sbom);
    files.push(checksums::write(&files, &dist.join("SHA256SUMS"))?);
    Ok(files)
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

/// What the release profile does without: line tables, packed in a file of their own, and optimizing everything, at
/// link time too.
const PACKED: [&str; 8] = [
    "--config",
    "profile.release.debug = 'line-tables-only'",
    "--config",
    "profile.release.lto = 'thin'",
    "--config",
    "profile.release.opt-level = 3",
    "--config",
    // The level of the last crate is that of the link.
    "profile.release.package.assay.opt-level = 3",
];

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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_missing_for_a_static_program_is_named() {
        let missing = missing_for("x86_64-unknown-linux-nowhere").unwrap();
        assert_eq!(
            missing,
            "the target x86_64-unknown-linux-nowhere is not installed (rustup target add x86_64-unknown-linux-nowhere)"
        );
        assert_eq!(compiler_variable("x86_64-unknown-linux-musl"), "CC_x86_64_unknown_linux_musl");
    }

    /// Copies of all lengths up to 300 with all overlaps, compared with copies by bytes through another buffer.
    const COPIES: &str = r#"
        #include <stdio.h>
        #include <stddef.h>
        void *copied(void *, const void *, size_t);
        void *moved(void *, const void *, size_t);
        static unsigned char ours[1200], right[1200], between[300];
        int main(void) {
            unsigned seed = 1, checks = 0;
            for (int n = 0; n < 300; n++) for (int to = 100; to < 900; to += 1 + (to < 200 || to > 700) * 7) {
                int from = 400;
                for (int i = 0; i < 1200; i++) ours[i] = right[i] = (seed = seed * 1103515245 + 12345) >> 16;
                for (int i = 0; i < n; i++) between[i] = right[from + i];
                for (int i = 0; i < n; i++) right[to + i] = between[i];
                void *(*copy)(void *, const void *, size_t) = to + n <= from || from + n <= to ? copied : moved;
                if (copy(ours + to, ours + from, n) != ours + to) return 2;
                for (int i = 0; i < 1200; i++) if (ours[i] != right[i]) return printf("%d bytes to %d\n", n, to), 1;
                checks++;
            }
            return checks < 100000;
        }"#;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_static_program_copies_memory_right() {
        let folder = tempfile::tempdir().unwrap();
        let (checks, program) = (folder.path().join("checks.c"), folder.path().join("checks"));
        fs::write(&checks, COPIES).unwrap();
        // Under names of their own, beside those of the C library.
        let names = ["-Dmemmove=moved", "-Dmemcpy=copied"];
        let flags = ["-O2", "-fno-builtin", "-fno-tree-loop-distribute-patterns"];
        let source = root().join("crates/assay/src/musl/copy.c");
        // An alias is written as a text.
        let text = fs::read_to_string(source).unwrap().replace("alias(\"memmove\")", "alias(\"moved\")");
        let copy = folder.path().join("copy.c");
        fs::write(&copy, text).unwrap();
        output(Command::new("cc").args(flags).args(names).arg("-o").arg(&program).args([&copy, &checks]));
        output(&mut Command::new(program));
    }

    /// A program in place of assay: it is an executable of this machine, and writes manual pages and completions.
    fn stand_in(folder: &Path) -> PathBuf {
        let source = folder.join("stand_in.rs");
        let text = r#"
            use std::{env, fs, path::Path};
            fn main() {
                let words: Vec<String> = env::args().collect();
                match words[1].as_str() {
                    "manual" => {
                        fs::create_dir_all(&words[2]).unwrap();
                        fs::write(Path::new(&words[2]).join("assay.1"), ".TH assay 1\n").unwrap();
                    }
                    "completions" => println!("completions for {}", words[2]),
                    _ => println!("assay stand-in"),
                }
            }"#;
        fs::write(&source, text).unwrap();
        let program = folder.join("stand_in");
        run(Command::new("rustc").arg("-g").arg("-o").arg(&program).arg(&source)).unwrap();
        program
    }

    fn output(command: &mut Command) -> String {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        // Dumps of sections have bytes that are not text.
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn a_program_becomes_an_archive_a_package_an_image_symbols_and_a_list_with_right_checksums() {
        let folder = tempfile::tempdir().unwrap();
        let program = stand_in(folder.path());
        let metadata = cargo(&["metadata", "--format-version", "1", "--locked", "--offline"]).output().unwrap();
        let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
        let pack_into = |name: &str| pack(&program, "here", true, &metadata, &folder.path().join(name)).unwrap();
        let files = pack_into("dist");
        let dist = folder.path().join("dist");
        let checked = output(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&dist));
        assert_eq!(checked.matches(": OK").count(), files.len() - 1, "{checked}");

        let archive = dist.join(format!("assay-{VERSION}-here.tar.gz"));
        let listed = output(Command::new("tar").arg("-tzf").arg(&archive));
        for inside in ["assay", "README.md", "LICENSE", "docs/lab.md", "man/man1/assay.1", "completions/_assay"] {
            assert!(listed.contains(&format!("assay-{VERSION}-here/{inside}\n")), "{inside}: {listed}");
        }

        // Unpacked as dpkg does, without touching this machine; the programs run from there.
        let package = files.iter().find(|file| file.extension().is_some_and(|end| end == "deb")).unwrap();
        let unpacked = folder.path().join("unpacked");
        output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&unpacked));
        assert_eq!(output(Command::new(unpacked.join("usr/bin/assay")).arg("x")), "assay stand-in\n");
        assert_eq!(output(Command::new(unpacked.join("usr/lib/assay/sysbench")).arg("x")), "assay stand-in\n");
        assert!(unpacked.join("usr/share/doc/assay/docs/examples/queue.md").is_file());
        let described = output(Command::new("dpkg-deb").arg("--field").arg(package));
        assert!(described.contains("Package: assay\n") && described.contains("Installed-Size: "), "{described}");
        let owned = output(Command::new("dpkg-deb").arg("--contents").arg(package));
        assert!(owned.lines().all(|line| line.contains(" root/root ")), "{owned}");

        // Without debug information the program is smaller; the symbols have it, and belong to this program.
        let installed = fs::metadata(unpacked.join("usr/bin/assay")).unwrap();
        assert!(installed.len() < fs::metadata(&program).unwrap().len());
        assert_eq!(installed.permissions().mode() & 0o777, 0o755);
        let link =
            output(Command::new("readelf").args(["--string-dump=.gnu_debuglink"]).arg(unpacked.join("usr/bin/assay")));
        assert!(link.contains("assay.debug"), "{link}");
        let sections = output(
            Command::new("readelf")
                .args(["--section-headers", "--wide"])
                .arg(dist.join(format!("assay-{VERSION}-here.debug"))),
        );
        assert!(sections.contains(".debug_line"), "{sections}");

        // Each blob of the image has the name of its checksum, and the manifest names blobs that are there.
        let image = folder.path().join("image");
        fs::create_dir(&image).unwrap();
        output(
            Command::new("tar")
                .arg("-xf")
                .arg(dist.join(format!("assay-{VERSION}-here.oci.tar")))
                .arg("-C")
                .arg(&image),
        );
        let read = |path: &Path| -> serde_json::Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
        let blob = |described: &serde_json::Value| {
            let digest = described["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let path = image.join("blobs/sha256").join(digest);
            let bytes = fs::read(&path).unwrap();
            assert_eq!(
                (checksums::of(&bytes).as_str(), described["size"].as_u64()),
                (digest, Some(bytes.len() as u64))
            );
            path
        };
        let manifest = read(&blob(&read(&image.join("index.json"))["manifests"][0]));
        let config = read(&blob(&manifest["config"]));
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        let listed = output(Command::new("tar").arg("-tvf").arg(layer));
        assert!(listed.contains("-rwxr-xr-x 0/0") && listed.contains("./usr/bin/assay\n"), "{listed}");

        let again = pack_into("again");
        for (one, other) in files.iter().zip(&again) {
            assert!(
                fs::read(one).unwrap() == fs::read(other).unwrap(),
                "{} differs from build to build",
                one.display()
            );
        }
    }
}
