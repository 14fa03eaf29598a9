//! Unpacks the bundle of an experiment, which may come from anybody.
//!
//! Only folders and plain files are made, below a fresh folder, and no more than `LIMITS` allow. A bundle with anything
//! else is refused as a whole, and nothing of it stays. `tar` reads the format; its own way of unpacking would follow
//! links of the archive and fill the disk.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use assay_process::diagnostics::Trouble;
use flate2::read::GzDecoder;
use tar::{Archive, EntryType, PaxExtensions};

/// How large a bundle may be.
#[derive(Clone, Copy)]
struct Limits {
    /// All its files together.
    bytes: u64,
    /// Files and folders.
    files: u64,
}

/// A record has some 100 kB, and an experiment some hundred of them.
const LIMITS: Limits = Limits { bytes: 4 << 30, files: 100_000 };
/// Longest name of a file, with what else an archive says about it.
const NAME_MAX: u64 = 64 << 10;

/// A bundle's content, in a temporary folder.
pub fn unpack(archive: &Path) -> Result<tempfile::TempDir, Trouble> {
    let failed = |error: io::Error| Trouble::environment(format!("cannot unpack {}: {error}", archive.display()));
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = assay_record::open_file(archive).map_err(failed)?;
    match unpack_to(folder.path(), GzDecoder::new(file), LIMITS) {
        Ok(()) => Ok(folder),
        Err(RefusedArchive::Broken) => {
            Err(Trouble::usage(format!("{} is neither an experiment's folder nor a bundle", archive.display())))
        }
        Err(RefusedArchive::Unsafe(what)) => {
            Err(Trouble::usage(format!("{} is not unpacked: {what}", archive.display()))
                .hint("a bundle has plain files only: `assay lab bundle` makes one"))
        }
        Err(RefusedArchive::Local(error)) => Err(failed(error)),
    }
}

/// Why an archive was not unpacked.
#[derive(Debug)]
enum RefusedArchive {
    /// It is not an archive, or not a whole one.
    Broken,
    /// What it contains.
    Unsafe(String),
    /// This machine cannot write.
    Local(io::Error),
}

fn unpack_to(folder: &Path, bytes: impl Read, limits: Limits) -> Result<(), RefusedArchive> {
    // Only the system's own errors have a number.
    let broken = |error: io::Error| match error.raw_os_error() {
        Some(_) => RefusedArchive::Local(error),
        None => RefusedArchive::Broken,
    };
    let mut archive = Archive::new(bytes);
    // Raw: `tar` itself would read names of any length into memory.
    let entries = archive.entries().map_err(broken)?.raw(true);
    let (mut left, mut files) = (limits.bytes, 0);
    let mut long_name: Option<Vec<u8>> = None;
    for entry in entries {
        let mut entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        let size = entry.header().entry_size().map_err(broken)?;
        if matches!(kind, EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader) {
            if size > NAME_MAX {
                return Err(RefusedArchive::Unsafe("the name of a file is longer than 64 KiB".to_owned()));
            }
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(broken)?;
            match kind {
                EntryType::GNULongName => {
                    text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
                    long_name = Some(text);
                }
                EntryType::XHeader => long_name = path_of(&text).or(long_name),
                _ => {}
            }
            continue;
        }
        let name = long_name.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let shown = String::from_utf8_lossy(&name).into_owned();
        let path =
            folder.join(below(&shown).ok_or_else(|| RefusedArchive::Unsafe(format!("it contains the path {shown}")))?);
        files += 1;
        if files > limits.files {
            return Err(RefusedArchive::Unsafe(format!("it contains more than {} files", limits.files)));
        }
        match kind {
            EntryType::Directory => fs::create_dir_all(&path).map_err(RefusedArchive::Local)?,
            EntryType::Regular | EntryType::Continuous => {
                left = left.checked_sub(size).ok_or_else(|| {
                    RefusedArchive::Unsafe(format!(
                        "its files have more than {} GiB",
                        limits.bytes as f64 / f64::from(1 << 30)
                    ))
                })?;
                if let Some(above) = path.parent() {
                    fs::create_dir_all(above).map_err(RefusedArchive::Local)?;
                }
                let file = OpenOptions::new().write(true).create_new(true).open(&path);
                let mut file = file.map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => RefusedArchive::Unsafe(format!("it contains {shown} twice")),
                    _ => RefusedArchive::Local(error),
                })?;
                let copied = io::copy(&mut entry, &mut file).map_err(broken)?;
                if copied != size {
                    return Err(RefusedArchive::Broken);
                }
            }
            EntryType::Symlink | EntryType::Link => {
                return Err(RefusedArchive::Unsafe(format!("it contains a link: {shown}")));
            }
            _ => return Err(RefusedArchive::Unsafe(format!("it contains something that is not a file: {shown}"))),
        }
    }
    Ok(())
}

/// Unpacks arbitrary bytes as an archive, compressed or not: nothing may panic, appear beside the folder, or be larger
/// than its limits.
pub fn fuzz_bundle(data: &[u8]) {
    const LIMITS: Limits = Limits { bytes: 64 << 10, files: 16 };
    let around = tempfile::tempdir().expect("a temporary folder can be made");
    for is_compressed in [false, true] {
        let folder = around.path().join(if is_compressed { "compressed" } else { "plain" });
        fs::create_dir(&folder).expect("the folder is new");
        let unpacked = match is_compressed {
            true => unpack_to(&folder, GzDecoder::new(data), LIMITS),
            false => unpack_to(&folder, data, LIMITS),
        };
        let (mut files, mut bytes) = (0, 0);
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read")) {
                let found = entry.metadata().expect("it is there");
                assert!(found.is_dir() || found.is_file(), "a link or a device was unpacked");
                files += u64::from(found.is_file());
                bytes += if found.is_file() { found.len() } else { 0 };
                folders.extend(found.is_dir().then(|| entry.path()));
            }
        }
        assert!(unpacked.is_err() || (files <= LIMITS.files && bytes <= LIMITS.bytes), "a bundle is too large");
    }
    let beside = fs::read_dir(around.path()).expect("it is there").count();
    assert_eq!(beside, 2, "something was unpacked beside the folder");
}

/// A path below a folder; `None` if it leads elsewhere.
pub fn below(name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// The path in an extended header.
fn path_of(extensions: &[u8]) -> Option<Vec<u8>> {
    let mut all = PaxExtensions::new(extensions).flatten();
    all.find(|extension| extension.key_bytes() == b"path").map(|extension| extension.value_bytes().to_owned())
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    const SMALL: Limits = Limits { bytes: 1000, files: 5 };

    fn header(kind: EntryType, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header
    }

    /// A name that `tar` itself would not write.
    fn named(mut header: Header, name: &str) -> Header {
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        header
    }

    fn archive(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (kind, name, content) in entries {
            let mut header = named(header(*kind, content.len() as u64), name);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name("/etc/passwd").unwrap();
                header.set_cksum();
            }
            builder.append(&header, *content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn refusal(entries: &[(EntryType, &str, &[u8])]) -> String {
        let folder = tempfile::tempdir().unwrap();
        match unpack_to(folder.path(), &archive(entries)[..], SMALL) {
            Err(RefusedArchive::Unsafe(words)) => words,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_and_folders_are_unpacked_also_with_long_names() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("{}/{}", "a".repeat(90), "b".repeat(90));
        let mut builder =
            Builder::new(archive(&[(EntryType::Directory, "it/", b""), (EntryType::Regular, "it/x", b"1")]));
        // Without the end of the first archive.
        let length = builder.get_ref().len();
        builder.get_mut().truncate(length - 1024);
        builder.append_data(&mut header(EntryType::Regular, 2), &long, &b"22"[..]).unwrap();
        let bytes = builder.into_inner().unwrap();
        unpack_to(folder.path(), &bytes[..], SMALL).unwrap();
        assert_eq!(fs::read(folder.path().join("it/x")).unwrap(), b"1");
        assert_eq!(fs::read(folder.path().join(long)).unwrap(), b"22");
    }

    #[test]
    fn whatever_could_leave_the_folder_is_refused() {
        let link = EntryType::Symlink;
        assert_eq!(refusal(&[(link, "out", b""), (EntryType::Regular, "out/x", b"1")]), "it contains a link: out");
        assert_eq!(refusal(&[(EntryType::Link, "hard", b"")]), "it contains a link: hard");
        assert_eq!(refusal(&[(EntryType::Regular, "../x", b"1")]), "it contains the path ../x");
        assert_eq!(refusal(&[(EntryType::Regular, "/tmp/x", b"1")]), "it contains the path /tmp/x");
        assert_eq!(refusal(&[(EntryType::Char, "null", b"")]), "it contains something that is not a file: null");
        assert_eq!(refusal(&[(EntryType::Fifo, "pipe", b"")]), "it contains something that is not a file: pipe");
        let twice = [(EntryType::Regular, "x", &b"1"[..]), (EntryType::Regular, "x", b"2")];
        assert_eq!(refusal(&twice), "it contains x twice");
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_written() {
        let large = [b'x'; 1001];
        assert!(refusal(&[(EntryType::Regular, "x", &large)]).starts_with("its files have more than "));
        let many: Vec<String> = (0..6).map(|n| n.to_string()).collect();
        let many: Vec<_> = many.iter().map(|name| (EntryType::Regular, name.as_str(), &b"1"[..])).collect();
        assert_eq!(refusal(&many), "it contains more than 5 files");
        let claimed = named(header(EntryType::GNULongName, 1 << 40), "././@LongLink");
        let folder = tempfile::tempdir().unwrap();
        let result = unpack_to(folder.path(), &claimed.as_bytes()[..], SMALL);
        assert!(matches!(result, Err(RefusedArchive::Unsafe(_))), "{result:?}");
    }

    #[test]
    fn what_is_not_an_archive_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let whole = archive(&[(EntryType::Regular, "x", b"1")]);
        for bytes in [&b"not an archive, but as long as the header of one"[..], &whole[..600]] {
            let result = unpack_to(folder.path(), bytes, SMALL);
            assert!(matches!(result, Err(RefusedArchive::Broken)), "{result:?}");
        }
    }
}
