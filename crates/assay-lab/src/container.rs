//! Container images as a source of programs: their files, without a container.
//!
//! An image that docker or podman has pulled is unpacked into the lab's cache. Its programs then run in this tree of
//! files as ordinary processes: with the machine's network, process ids, devices and users, and the lab's folders in
//! their place. So CPUs, memory, signals and logs are the same as for any other server, without a daemon in between.
//! Nothing is pulled here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::account::{Account, is_root};
use crate::fault::{At, Blame, Fault, Result};
use crate::process::{is_on_path, output};
use crate::version::Version;

/// Programs that manage images, in the order in which they are tried.
const ENGINES: [&str; 2] = ["docker", "podman"];

/// An image on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerImage {
    /// `docker` or `podman`.
    pub engine: &'static str,
    /// The engine's name for it, with its tag.
    pub name: String,
    /// The version in its tag: 15 of `postgres:15-bookworm`.
    pub version: Version,
}

/// The local images of a product. An engine that is not installed, or whose daemon is not running, has none.
pub(crate) fn images(product: &str) -> Vec<ContainerImage> {
    let of = |engine: &'static str| {
        let listed = Command::new(engine)
            .args(["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"])
            .stdin(Stdio::null())
            .output();
        let text = listed.ok().filter(|listed| listed.status.success()).map(|listed| listed.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.lines().filter_map(|name| image_of(engine, name.trim(), product)).collect::<Vec<_>>()
    };
    ENGINES.into_iter().filter(|engine| is_on_path(engine)).flat_map(of).collect()
}

/// The engines that are installed, for hints.
pub(crate) fn engines() -> Vec<&'static str> {
    ENGINES.into_iter().filter(|engine| is_on_path(engine)).collect()
}

/// `docker.io/library/postgres:15-bookworm` is version 15 of `postgres`.
fn image_of(engine: &'static str, name: &str, product: &str) -> Option<ContainerImage> {
    let (repository, tag) = name.rsplit_once(':')?;
    let digits: String = tag.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let version = digits.trim_end_matches('.').parse().ok()?;
    (repository.rsplit('/').next() == Some(product)).then(|| ContainerImage { engine, name: name.to_owned(), version })
}

/// The identity of an image: its hash, because the next pull of the same name may be a different image.
pub(crate) fn identity(engine: &str, name: &str) -> Result<String> {
    let mut inspect = Command::new(engine);
    inspect.args(["image", "inspect", "--format", "{{.Id}}", name]);
    let id = output(&format!("find the image {name}"), &mut inspect).map_err(|fault| {
        Fault { blame: Blame::Environment, ..fault }.hint(format!("get it first: {engine} pull {name}"))
    })?;
    Ok(id.trim().trim_start_matches("sha256:").chars().take(12).collect())
}

/// Writes the files of an image into an empty folder.
pub(crate) fn unpack(engine: &str, name: &str, tree: &Path) -> Result<()> {
    let mut create = Command::new(engine);
    // The command never runs, but an image without one needs it.
    let id = output(&format!("unpack the image {name}"), create.args(["create", name, "true"]))?;
    let id = id.lines().last().unwrap_or_default().trim().to_owned();
    // Devices and the kernel's files come from the machine.
    let mut pipe = Command::new("sh");
    pipe.args(["-c", r#""$1" export "$2" | tar -xf - --no-same-owner --exclude=dev/* --exclude=proc/* -C "$3""#, "sh"]);
    let unpacked = output(&format!("unpack the image {name}"), pipe.args([engine, &id]).arg(tree));
    let _ = Command::new(engine).args(["rm", &id]).stdin(Stdio::null()).output();
    unpacked?;
    for folder in ["dev", "proc", "sys", "etc"] {
        let folder = tree.join(folder);
        fs::create_dir_all(&folder).at("create", &folder)?;
    }
    Ok(())
}

/// Folders in which an image may have the programs of any product.
pub(crate) fn places(tree: &Path) -> Vec<PathBuf> {
    let usual = ["usr/sbin", "usr/local/sbin", "usr/bin", "usr/local/bin", "usr/libexec"];
    let mut places: Vec<PathBuf> = usual.iter().map(|place| tree.join(place)).collect();
    for above in ["usr", "opt", "usr/local"] {
        let folders = fs::read_dir(tree.join(above)).into_iter().flatten().flatten();
        places.extend(folders.map(|folder| folder.path().join("bin")));
    }
    places
}

/// A command that runs a program of a tree. `program`: its path in the tree. `folders`: they have the same paths in the
/// tree.
pub(crate) fn command(tree: &Path, account: &Account, program: &Path, folders: &[&Path]) -> Command {
    let mut command = Command::new("unshare");
    let user = match is_root() {
        true => account.numbers(),
        false => {
            // An ordinary user may have a private view of the files, as itself.
            command.args(["--user", "--map-current-user", "--keep-caps"]);
            String::new()
        }
    };
    // ENTER keeps its mounts to itself. `unshare` would do it, but fails in a chroot whose root is not a mount point.
    command.args(["--mount", "--propagation", "unchanged", "sh", "-ec", ENTER, "assay"]).arg(tree).arg(user);
    command.arg(folders.len().to_string()).args(folders).arg(program).current_dir("/");
    command
}

/// Each program replaces the previous one (exec), so that the process id stays the same. Mounts are visible only to
/// this process and its children, and end with them.
const ENTER: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
tree=$1 user=$2 folders=$3
shift 3
mount --make-rprivate / 2>/dev/null || {
  mount --bind "$tree" "$tree"
  mount --make-private "$tree"
}
while [ "$folders" -gt 0 ]; do
  mkdir -p "$tree$1"
  mount --bind "$1" "$tree$1"
  shift
  folders=$((folders - 1))
done
for kernel in dev proc sys; do mount --rbind "/$kernel" "$tree/$kernel"; done
for names in passwd group; do
  [ -e "$tree/etc/$names" ] || : >"$tree/etc/$names"
  mount --bind "/etc/$names" "$tree/etc/$names"
done
case $user in
'') exec chroot "$tree" "$@" ;;
*) exec chroot --userspec="$user" --groups= "$tree" "$@" ;;
esac
"#;

/// The image in `--binaries container:IMAGE`; `None` for anything else.
pub(crate) fn named(path: &Path) -> Option<String> {
    path.to_str()?.strip_prefix("container:").map(str::to_owned)
}

/// The engine that has an image of this name.
pub(crate) fn engine_of(name: &str) -> Result<&'static str> {
    let engines = engines();
    if engines.is_empty() {
        return Err(Fault::environment(format!("the image {name} needs docker or podman, and neither is installed"))
            .hint("apt-get install podman"));
    }
    let mut last = None;
    for engine in engines {
        match identity(engine, name) {
            Ok(_) => return Ok(engine),
            Err(fault) => last = Some(fault),
        }
    }
    Err(last.expect("there is an engine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_a_product_are_known_by_their_name_and_tag() {
        let check = |name: &str, expected: Option<&str>| {
            let found = image_of("podman", name, "postgres").map(|image| image.version.to_string());
            assert_eq!(found.as_deref(), expected, "{name}");
        };
        check("postgres:15", Some("15"));
        check("docker.io/library/postgres:15.4-alpine3.18", Some("15.4"));
        check("localhost:5000/postgres:9.6", Some("9.6"));
        check("postgres:latest", None);
        check("some/mysql:8.0", None);
        check("postgres-exporter:1", None);
    }
}
