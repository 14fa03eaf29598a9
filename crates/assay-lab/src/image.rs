//! Images: copies of data directories after a clean shutdown, made once and copied for every start.
//!
//! An image is created as a draft next to its place and then moved there; so is a restored directory. A restore is
//! verified by the image's list of files, with sizes and times. Copy-on-write is used if the filesystem supports it,
//! and reported: it changes the cost of a server's writes. When a limit is reached, the least recently used images are
//! removed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::account::Account;
use crate::fault::{At, Fault, Result};
use crate::home::Home;
use crate::process::read_bounded;
use crate::product::{Binaries, ServerSetting};
use crate::wait::{self, Stopwatch};

/// The environment variable that limits the total size of all images, in bytes or with K, M, G, T.
pub const BOUND_VARIABLE: &str = "ASSAY_IMAGES_MAX";
/// The limit if the variable is not set.
pub const BOUND_DEFAULT: u64 = 20 << 30;

/// What an image contains. Its hash is the image's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// `postgres`.
    pub product: String,
    /// The full version.
    pub version: String,
    /// Binaries of one version that were built differently may write different files.
    pub program: PathBuf,
    /// Settings that determined the layout.
    pub layout: Vec<ServerSetting>,
    /// What was loaded, as a command line; empty for nothing.
    pub prepared: String,
    /// A hash of what the command line does not contain: the text of the workload.
    pub workload: String,
    /// Settings during the load, which may affect how data is stored.
    pub settings: Vec<ServerSetting>,
}

impl Contents {
    /// Contents of an empty data directory.
    pub(crate) fn empty(binaries: &Binaries, layout: &[ServerSetting]) -> Contents {
        Contents {
            product: binaries.product.clone(),
            version: binaries.version.to_string(),
            program: binaries.program.clone(),
            layout: layout.to_vec(),
            prepared: String::new(),
            workload: String::new(),
            settings: Vec::new(),
        }
    }

    /// The image's name: product, version, and 12 digits of the hash.
    pub fn key(&self) -> String {
        let text = serde_json::to_vec(self).expect("it is plain data");
        let hash: String = Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{hash}", self.product, self.version)
    }
}

/// One file of a data directory, by its path in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    bytes: u64,
    /// Since 1970, in nanoseconds.
    changed_ns: u128,
    mode: u32,
    /// SHA-256.
    hash: Option<String>,
}

/// The manifest beside an image's data.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manifest {
    contents: Contents,
    files: BTreeMap<PathBuf, Entry>,
}

/// A stored image.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its name.
    pub key: String,
    /// What it is of.
    pub contents: Contents,
    /// The total size of its files.
    pub bytes: u64,
    /// When it was last made or restored.
    pub used: SystemTime,
}

/// How a directory was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The files share their blocks until one is written (copy-on-write).
    Reflink,
    /// Every byte was copied.
    Copy,
}

/// What a restore did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// How.
    pub method: Method,
    /// The sum of the files.
    pub bytes: u64,
    /// How long the copying took.
    pub took: Duration,
}

/// All images, the most recently used first. Drafts of killed processes are removed.
pub fn list(home: &Home) -> Result<Vec<Image>> {
    let mut images = Vec::new();
    for entry in fs::read_dir(home.images()).into_iter().flatten().flatten() {
        let folder = entry.path();
        let Ok(text) = read_bounded(&folder.join(MANIFEST), MANIFEST_BYTES_MAX) else { continue };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else { continue };
        let used =
            fs::metadata(folder.join(MANIFEST)).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let bytes = manifest.files.values().map(|file| file.bytes).sum();
        let key = entry.file_name().to_string_lossy().into_owned();
        images.push(Image { key, contents: manifest.contents, bytes, used });
    }
    images.sort_by_key(|image| std::cmp::Reverse(image.used));
    Ok(images)
}

/// Whether there is an image with these contents.
pub fn exists(home: &Home, contents: &Contents) -> bool {
    home.images().join(contents.key()).join(MANIFEST).is_file()
}

/// Removes an image.
pub fn remove(home: &Home, key: &str) -> Result<()> {
    if discard(home, key)? {
        return Ok(());
    }
    Err(Fault::usage(format!("image {key} does not exist")).hint("`assay server images` lists them"))
}

/// Removes an image; false if there is none, for example because another process has just removed it.
fn discard(home: &Home, key: &str) -> Result<bool> {
    let _lock = lock(home, key)?;
    let folder = home.images().join(key);
    let manifest = folder.join(MANIFEST);
    if !manifest.is_file() {
        return Ok(false);
    }
    // Without its manifest it is not an image, even if the rest cannot be removed.
    fs::remove_file(&manifest).at("remove", &manifest)?;
    fs::remove_dir_all(&folder).at("remove", &folder)?;
    Ok(true)
}

/// Makes an image of a data directory whose server was stopped cleanly. An existing image with the same contents is
/// kept instead.
pub fn make(home: &Home, contents: &Contents, data: &Path, say: &dyn Fn(&str)) -> Result<()> {
    home.make()?;
    let key = contents.key();
    let _lock = lock(home, &key)?;
    if exists(home, contents) {
        return Ok(());
    }
    let files = files_of(data)?;
    let bytes: u64 = files.values().map(|file| file.bytes).sum();
    make_room(home, bytes, bound()?, say)?;
    let draft = home.images().join(format!(".draft-{key}"));
    remove_all(&draft)?;
    let folder = home.images().join(&key);
    remove_all(&folder)?;
    let made = fs::create_dir(&draft).at("create", &draft).and_then(|()| {
        let copied = Copy { from: data, to: &draft.join(DATA), owner: None }.run(&files, say)?;
        let files = with_hashes(&draft.join(DATA), copied)?;
        let manifest = Manifest { contents: contents.clone(), files };
        let path = draft.join(MANIFEST);
        fs::write(&path, serde_json::to_vec(&manifest).expect("it is plain data")).at("write", &path)?;
        fs::rename(&draft, &folder).at("keep", &folder)
    });
    if made.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    made
}

/// Restores an image to `data`, which must not exist; it appears complete or not at all.
pub fn restore(home: &Home, key: &str, data: &Path, account: &Account, say: &dyn Fn(&str)) -> Result<Restored> {
    let _lock = lock(home, key)?;
    let manifest = manifest(home, key)?;
    let name = data.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let draft = data.with_file_name(format!(".draft-{name}"));
    remove_all(&draft)?;
    let from = home.images().join(key).join(DATA);
    let watch = Stopwatch::start();
    let method =
        if can_reflink(&from, data.parent().unwrap_or(Path::new("/"))) { Method::Reflink } else { Method::Copy };
    let copied = match method {
        Method::Reflink => reflink(&from, &draft, account),
        Method::Copy => {
            let copied = Copy { from: &from, to: &draft, owner: Some(account) }.run(&manifest.files, say);
            copied.map(drop)
        }
    };
    let whole =
        copied.and_then(|()| same(&draft, &manifest.files)).and_then(|()| fs::rename(&draft, data).at("keep", data));
    if let Err(fault) = whole {
        let _ = fs::remove_dir_all(&draft);
        return Err(fault);
    }
    // This was the last use.
    let path = home.images().join(key).join(MANIFEST);
    if let Ok(file) = File::options().append(true).open(&path) {
        let _ = file.set_modified(wait::now());
    }
    let bytes = manifest.files.values().map(|file| file.bytes).sum();
    Ok(Restored { method, bytes, took: watch.elapsed() })
}

/// Compares every byte of an image with what was stored.
pub fn verify(home: &Home, key: &str) -> Result<()> {
    let manifest = manifest(home, key)?;
    let data = home.images().join(key).join(DATA);
    same(&data, &manifest.files)?;
    let now = with_hashes(&data, manifest.files.clone())?;
    let changed = manifest.files.iter().find(|(path, file)| now.get(*path) != Some(file));
    match changed {
        None => Ok(()),
        Some((path, _)) => Err(damaged(key, &format!("the contents of {} differ", path.display()))),
    }
}

const MANIFEST: &str = "image.json";
/// It has a line for each file of a data directory.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;
const DATA: &str = "data";

fn damaged(key: &str, what: &str) -> Fault {
    Fault::environment(format!("image {key} is damaged: {what}"))
        .hint(format!("remove it with `assay server images --remove {key}`; it is created again when needed"))
}

fn manifest(home: &Home, key: &str) -> Result<Manifest> {
    let path = home.images().join(key).join(MANIFEST);
    let text = read_bounded(&path, MANIFEST_BYTES_MAX).at("read", &path)?;
    serde_json::from_slice(&text).map_err(|error| damaged(key, &error.to_string()))
}

/// Held while an image is made, restored or removed: two processes may want the same one.
fn lock(home: &Home, key: &str) -> Result<File> {
    home.make()?;
    let path = home.images().join(format!(".lock-{key}"));
    let file = File::options().create(true).truncate(false).write(true).open(&path).at("write", &path)?;
    file.lock().at("lock", &path)?;
    Ok(file)
}

fn remove_all(folder: &Path) -> Result<()> {
    if folder.exists() { fs::remove_dir_all(folder).at("remove", folder) } else { Ok(()) }
}

/// Removes the least recently used images until there is room for `bytes` more.
fn make_room(home: &Home, bytes: u64, bound: u64, say: &dyn Fn(&str)) -> Result<()> {
    if bytes > bound {
        return Err(Fault::environment(format!("an image of {} MB exceeds the limit for all images", bytes >> 20))
            .hint(format!("raise the limit of {} MB with {BOUND_VARIABLE}", bound >> 20)));
    }
    let mut images = list(home)?;
    let mut sum: u64 = images.iter().map(|image| image.bytes).sum();
    while sum + bytes > bound {
        let Some(oldest) = images.pop() else { break };
        say(&format!("removing image {}, {} MB, to stay below {} MB", oldest.key, oldest.bytes >> 20, bound >> 20));
        discard(home, &oldest.key)?;
        sum -= oldest.bytes;
    }
    Ok(())
}

/// The limit for the total size of all images.
pub fn bound() -> Result<u64> {
    let Some(text) = std::env::var_os(BOUND_VARIABLE).filter(|text| !text.is_empty()) else { return Ok(BOUND_DEFAULT) };
    let text = text.to_string_lossy().to_ascii_uppercase();
    let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let unit = units.iter().find_map(|(unit, bits)| text.strip_suffix(unit).map(|number| (number.to_owned(), *bits)));
    let (digits, bits) = unit.unwrap_or((text.clone(), 0));
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << bits));
    bytes.ok_or_else(|| Fault::usage(format!("{BOUND_VARIABLE}={text} is not a size")).hint("such as 50G"))
}

/// The files of a data directory.
fn files_of(data: &Path) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let place = data.join(&folder);
        for entry in fs::read_dir(&place).at("read", &place)? {
            let entry = entry.at("read", &place)?;
            let (path, metadata) = (folder.join(entry.file_name()), entry.metadata().at("look at", &entry.path())?);
            if metadata.is_symlink() {
                return Err(Fault::environment(format!(
                    "{} points outside the data directory",
                    entry.path().display()
                ))
                .hint("an image is one folder: tablespaces and log directories must be inside it"));
            }
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                files.insert(path, entry_of(&metadata));
            }
        }
    }
    Ok(files)
}

fn entry_of(metadata: &fs::Metadata) -> Entry {
    let changed = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    let changed_ns = u128::try_from(changed).unwrap_or(0);
    Entry { bytes: metadata.len(), changed_ns, mode: metadata.permissions().mode() & 0o7777, hash: None }
}

/// Whether a directory has exactly these files, by size and time.
fn same(data: &Path, files: &BTreeMap<PathBuf, Entry>) -> Result<()> {
    let found = files_of(data)?;
    let plain = |file: &Entry| (file.bytes, file.changed_ns);
    let differs = files.iter().find(|(path, file)| found.get(*path).map(plain) != Some(plain(file)));
    let extra = found.keys().find(|path| !files.contains_key(*path));
    match differs.map(|(path, _)| path).or(extra) {
        None => Ok(()),
        Some(path) => Err(Fault::environment(format!("{} differs from the image", data.join(path).display()))
            .hint("another program may be writing there")),
    }
}

fn with_hashes(data: &Path, files: BTreeMap<PathBuf, Entry>) -> Result<BTreeMap<PathBuf, Entry>> {
    let mut buffer = vec![0; 1 << 20];
    let mut hashed = BTreeMap::new();
    for (path, entry) in files {
        let place = data.join(&path);
        let mut file = File::open(&place).at("read", &place)?;
        let mut hasher = Sha256::new();
        loop {
            let length = file.read(&mut buffer).at("read", &place)?;
            if length == 0 {
                break;
            }
            hasher.update(&buffer[..length]);
        }
        let hash = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        hashed.insert(path, Entry { hash: Some(hash), ..entry });
    }
    Ok(hashed)
}

/// Whether files of one folder can share their blocks with files of the other.
fn can_reflink(from: &Path, to: &Path) -> bool {
    let name = format!(".reflink-{}", std::process::id());
    let source = from.with_file_name(&name);
    let target = to.join(&name);
    // A nonempty file: an empty one has no blocks to share.
    let tried = fs::write(&source, vec![1; 1 << 16]).is_ok()
        && Command::new("cp")
            .arg("--reflink=always")
            .args([&source, &target])
            .output()
            .is_ok_and(|it| it.status.success());
    let _ = fs::remove_file(&source);
    let _ = fs::remove_file(&target);
    tried
}

fn reflink(from: &Path, to: &Path, account: &Account) -> Result<()> {
    let mut copy = Command::new("cp");
    crate::process::output("restore the image", copy.args(["-a", "--reflink=always"]).arg(from).arg(to))?;
    own_all(to, account)
}

fn own_all(folder: &Path, account: &Account) -> Result<()> {
    account.own(folder)?;
    for entry in fs::read_dir(folder).at("read", folder)? {
        let entry = entry.at("read", folder)?;
        if entry.path().is_dir() {
            own_all(&entry.path(), account)?;
        } else {
            account.own(&entry.path())?;
        }
    }
    Ok(())
}

/// A copy of a directory, byte by byte.
struct Copy<'a> {
    from: &'a Path,
    to: &'a Path,
    /// The owner of the copies; `None`: the current user.
    owner: Option<&'a Account>,
}

impl Copy<'_> {
    /// Copies these files, with their times and permissions, on as many threads as there are CPUs, at most 4. Returns
    /// the files as copied. Reports slow copies every few seconds.
    fn run(&self, files: &BTreeMap<PathBuf, Entry>, say: &dyn Fn(&str)) -> Result<BTreeMap<PathBuf, Entry>> {
        self.folders()?;
        let all: Vec<(&PathBuf, &Entry)> = files.iter().collect();
        let total: u64 = files.values().map(|file| file.bytes).sum();
        let (next, copied) = (AtomicUsize::new(0), AtomicU64::new(0));
        let copy_all = |tell: &dyn Fn(u64)| -> Result<()> {
            while let Some((path, entry)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.file(path, entry)?;
                tell(copied.fetch_add(entry.bytes, Ordering::Relaxed) + entry.bytes);
            }
            Ok(())
        };
        let (watch, told) = (Stopwatch::start(), Cell::new(Duration::ZERO));
        let tell = |bytes: u64| {
            // Less and less often: the lines stay in logs.
            if watch.elapsed() > (told.get() * 2).max(BETWEEN_WORDS) {
                told.set(watch.elapsed());
                say(&format!("copied {} of {} MB", bytes >> 20, total >> 20));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| copy_all(&|_| ()))).collect();
            let own = copy_all(&tell);
            others.into_iter().map(|thread| thread.join().expect("it does not panic")).fold(own, Result::and)
        })?;
        Ok(files.clone())
    }

    fn folders(&self) -> Result<()> {
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let (from, to) = (self.from.join(&folder), self.to.join(&folder));
            fs::create_dir(&to).at("create", &to)?;
            let mode = fs::metadata(&from).at("look at", &from)?.permissions();
            fs::set_permissions(&to, mode).at("change", &to)?;
            self.own(&to)?;
            for entry in fs::read_dir(&from).at("read", &from)? {
                let entry = entry.at("read", &from)?;
                if entry.file_type().at("look at", &entry.path())?.is_dir() {
                    folders.push(folder.join(entry.file_name()));
                }
            }
        }
        Ok(())
    }

    fn file(&self, path: &Path, entry: &Entry) -> Result<()> {
        let (from, to) = (self.from.join(path), self.to.join(path));
        let source = File::open(&from).at("read", &from)?;
        let found = source.metadata().at("look at", &from)?;
        let target = if found.blocks() * 512 < found.len() {
            // Compressed tables have holes, which are what they save.
            let mut copy = Command::new("cp");
            copy.arg("--sparse=auto").arg("--").arg(&from).arg(&to);
            crate::process::output("copy a file with holes", &mut copy)?;
            File::options().write(true).open(&to).at("write", &to)?
        } else {
            let target = File::create_new(&to).at("create", &to)?;
            // The kernel copies, without the bytes passing through here.
            std::io::copy(&mut &source, &mut &target).at("write", &to)?;
            target
        };
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(entry.changed_ns).unwrap_or(0));
        target.set_times(FileTimes::new().set_modified(changed)).at("write", &to)?;
        target.set_permissions(fs::Permissions::from_mode(entry.mode)).at("change", &to)?;
        self.own(&to)
    }

    fn own(&self, path: &Path) -> Result<()> {
        self.owner.map_or(Ok(()), |account| account.own(path))
    }
}

/// Between two progress messages of a copy.
const BETWEEN_WORDS: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::Products;

    static NOTHING: Products = Products { databases: Vec::new(), fronts: Vec::new() };

    fn contents(prepared: &str) -> Contents {
        Contents {
            product: "postgres".to_owned(),
            version: "15.1".to_owned(),
            program: "/bin/postgres".into(),
            layout: Vec::new(),
            prepared: prepared.to_owned(),
            workload: String::new(),
            settings: Vec::new(),
        }
    }

    /// A folder with a data directory of two files.
    fn laid_out() -> (tempfile::TempDir, Home, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("original");
        fs::create_dir_all(data.join("base/1")).unwrap();
        fs::write(data.join("base/1/table"), vec![7; 100_000]).unwrap();
        fs::write(data.join("VERSION"), "15").unwrap();
        let home = Home::at(folder.path().join("lab"), &NOTHING);
        (folder, home, data)
    }

    fn account() -> Account {
        Account::choose(None).unwrap()
    }

    #[test]
    fn a_restored_directory_equals_the_image_and_belongs_to_the_servers_user() {
        use std::os::unix::fs::MetadataExt;
        let (folder, home, data) = laid_out();
        let one = contents("tpcc --warehouses 2");
        make(&home, &one, &data, &|_| ()).unwrap();
        assert!(exists(&home, &one) && !exists(&home, &contents("tpcc --warehouses 3")));
        let restored = folder.path().join("restored");
        let done = restore(&home, &one.key(), &restored, &account(), &|_| ()).unwrap();
        assert_eq!((done.bytes, files_of(&restored).unwrap()), (100_002, files_of(&data).unwrap()));
        let owner = fs::metadata(restored.join("base/1/table")).unwrap().uid();
        assert_eq!(owner == 0, account().name == "root");
        verify(&home, &one.key()).unwrap();
        assert_eq!(list(&home).unwrap()[0].key, one.key());
        remove(&home, &one.key()).unwrap();
        assert!(list(&home).unwrap().is_empty() && remove(&home, &one.key()).is_err());
    }

    #[test]
    fn a_damaged_image_is_found_by_its_sizes_and_by_its_content() {
        let (folder, home, data) = laid_out();
        make(&home, &contents(""), &data, &|_| ()).unwrap();
        let key = contents("").key();
        let table = home.images().join(&key).join("data/base/1/table");
        let changed = fs::metadata(&table).unwrap().modified().unwrap();
        fs::write(&table, vec![8; 100_000]).unwrap();
        File::options().append(true).open(&table).unwrap().set_modified(changed).unwrap();
        assert!(verify(&home, &key).unwrap_err().cause.contains("the contents of base/1/table differ"));
        fs::write(&table, "short").unwrap();
        let restored = folder.path().join("restored");
        let fault = restore(&home, &key, &restored, &account(), &|_| ()).unwrap_err();
        assert!(fault.cause.contains("differs from the image"), "{fault}");
        assert!(!restored.exists() && !folder.path().join(".draft-restored").exists());
    }

    #[test]
    fn what_a_killed_process_left_behind_is_no_image_and_in_nobodys_way() {
        let (folder, home, data) = laid_out();
        let key = contents("").key();
        // Killed while it made the image, and while it restored it.
        fs::create_dir_all(home.images().join(format!(".draft-{key}")).join("data/base")).unwrap();
        fs::create_dir_all(folder.path().join(".draft-restored/base")).unwrap();
        // Killed while it removed one.
        fs::create_dir_all(home.images().join(&key).join("data")).unwrap();
        assert!(list(&home).unwrap().is_empty() && !exists(&home, &contents("")));
        make(&home, &contents(""), &data, &|_| ()).unwrap();
        restore(&home, &key, &folder.path().join("restored"), &account(), &|_| ()).unwrap();
        assert!(!home.images().join(format!(".draft-{key}")).exists());
        assert!(!folder.path().join(".draft-restored").exists());
    }

    #[test]
    fn a_link_out_of_the_data_directory_is_refused() {
        let (_folder, home, data) = laid_out();
        std::os::unix::fs::symlink("/tmp", data.join("pg_tblspc")).unwrap();
        let fault = make(&home, &contents(""), &data, &|_| ()).unwrap_err();
        assert!(fault.cause.contains("pg_tblspc points outside"), "{fault}");
        assert!(list(&home).unwrap().is_empty());
    }

    #[test]
    fn images_that_were_not_used_for_longest_make_room() {
        let (_folder, home, data) = laid_out();
        for name in ["a", "b", "c"] {
            make(&home, &contents(name), &data, &|_| ()).unwrap();
        }
        let age = |name: &str, seconds: u64| {
            let path = home.images().join(contents(name).key()).join(MANIFEST);
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        for (name, seconds) in [("a", 300), ("b", 100), ("c", 200)] {
            age(name, seconds);
        }
        let said = std::cell::RefCell::new(Vec::new());
        make_room(&home, 100_000, 300_010, &|words| said.borrow_mut().push(words.to_owned())).unwrap();
        let kept: Vec<String> = list(&home).unwrap().into_iter().map(|image| image.contents.prepared).collect();
        assert_eq!(kept, ["a", "c"]);
        assert_eq!(said.borrow().len(), 1);
        let fault = make_room(&home, 100, 99, &|_| ()).unwrap_err();
        assert!(fault.cause.contains("exceeds the limit for all images"), "{fault}");
    }
}
