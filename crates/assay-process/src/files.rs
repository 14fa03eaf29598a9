//! Writes the files of results: each is complete, or not there.
//!
//! The content goes to a file beside the target, which then takes its name. A full disk, an interrupt or a crash leaves
//! what was there before.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// The first bytes of a zstd frame, as in records, histories and archives.
const COMPRESSED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether a file can be written there, before anything is done for it. The error is a lowercase fragment.
pub fn may_write(path: &Path) -> Result<(), String> {
    if path.as_os_str().is_empty() {
        return Err("the name is empty".to_owned());
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err("it is a folder".to_owned()),
        // A device or a pipe.
        Ok(found) if !found.is_file() => return Ok(()),
        _ => {}
    }
    may_write_in(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// The same for a folder in which files will be written, and which is created if it is not there.
pub fn may_fill(folder: &Path) -> Result<(), String> {
    if folder.as_os_str().is_empty() {
        return Err("the name is empty".to_owned());
    }
    let nearest = folder.ancestors().map(|one| if one.as_os_str().is_empty() { Path::new(".") } else { one });
    match nearest.into_iter().find(|one| one.exists()) {
        Some(there) => may_write_in(there),
        None => Err("no such folder".to_owned()),
    }
}

fn may_write_in(folder: &Path) -> Result<(), String> {
    match fs::metadata(folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(format!("{} is not a folder", folder.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(format!("there is no folder {}", folder.display()));
        }
        Err(error) => return Err(error.to_string()),
    }
    // Rights, file systems that are read-only, and quotas: only an attempt shows them all.
    tempfile::Builder::new().prefix(".assay-").tempfile_in(folder).map(drop).map_err(|error| {
        let why = if error.kind() == io::ErrorKind::PermissionDenied { "permission denied" } else { "not writable" };
        format!("{}: {why}", folder.display())
    })
}

/// Writes `content`, replacing a file of that name; but not a record, which nobody can make again.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let is_regular = fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut first = [0; COMPRESSED.len()];
    if is_regular && File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == COMPRESSED {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is a record, which is not replaced"));
    }
    write_by(path, |file| file.write_all(content.as_ref()))
}

/// Writes a file whose content is produced by a function.
pub fn write_by(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let found = fs::metadata(path).ok();
    // A device or a pipe (`/dev/stdout`) must not be replaced by a file.
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        return fill(&mut File::options().write(true).open(path)?);
    }
    // What a link points to is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The umask applies: tempfile's own default would hide results from the user's group. Its errors would name this
    // file.
    let create = |path: &Path| File::options().write(true).create_new(true).open(path);
    let mut aside = tempfile::Builder::new().prefix(".assay-").suffix(".tmp").make_in(folder, create)?;
    if let Some(found) = found {
        aside.as_file().set_permissions(found.permissions())?;
    }
    fill(aside.as_file_mut())?;
    aside.as_file().sync_all()?;
    aside.persist(&target)?;
    // A rename is durable only when its folder is.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[track_caller]
    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "").unwrap();
        assert_eq!(may_write(&at("new.html")), Ok(()));
        assert_eq!(may_write(&at("file")), Ok(()));
        assert_eq!(may_write(Path::new("/dev/null")), Ok(()));
        assert_eq!(may_write(Path::new("")), Err("the name is empty".to_owned()));
        assert_eq!(may_write(folder.path()), Err("it is a folder".to_owned()));
        assert_eq!(may_write(&at("no/x")), Err(format!("there is no folder {}", at("no").display())));
        assert!(may_write(&at("file/x")).is_err());
        assert_eq!(may_fill(&at("a/b/c")), Ok(()));
        assert_eq!(may_fill(&at("file")), Err(format!("{} is not a folder", at("file").display())));
        assert!(may_fill(&at("file/x")).is_err());
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        write(&path, "one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let failed = write_by(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::from_raw_os_error(28))
        });
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(28));
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(folder.path())),
            ("one", vec!["page.html".into()])
        );
        std::os::unix::fs::symlink("page.html", folder.path().join("link")).unwrap();
        write(&folder.path().join("link"), "two").unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(folder.path())),
            ("two", vec!["link".into(), "page.html".into()])
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        write(Path::new("/dev/null"), "three").unwrap();
        let record = folder.path().join("record.zst");
        fs::write(&record, [0x28, 0xb5, 0x2f, 0xfd, 0]).unwrap();
        assert_eq!(write(&record, "five").unwrap_err().to_string(), "it is a record, which is not replaced");
        assert_eq!(fs::read(&record).unwrap().len(), 5);
        let missing = write(&folder.path().join("no/page.html"), "four").unwrap_err();
        assert_eq!(missing.to_string(), "No such file or directory (os error 2)");
    }
}
