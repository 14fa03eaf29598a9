//! Runs of this user that are in progress on this machine: each has a small file in a folder of the user.
//!
//! A file of a process that has ended, or whose number another process has now, is ignored and removed. Notes for a run
//! are files beside it; the run takes and removes them, which tells the writer that they arrived.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use assay_record::{Note, Time};
use serde::{Deserialize, Serialize};

use crate::files;

/// A run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Underway {
    /// Its process.
    pub process: u32,
    /// When that started, in ticks since the machine did: tells it from a later process of the same number.
    started_ticks: u64,
    /// Its workload.
    pub workload: String,
    /// Its databases, without passwords.
    pub targets: Vec<String>,
    /// The record that it writes; `None`: none.
    pub record: Option<PathBuf>,
    /// Start of the run.
    pub started: Time,
}

/// The announcement of this process's run; it ends when this is dropped.
#[derive(Debug)]
pub struct Announced {
    path: PathBuf,
    notes: String,
}

impl Announced {
    /// Announces a run of this process; `None`: there is no folder for announcements, so that nobody can find it.
    pub fn begin(workload: &str, targets: &[String], record: Option<&Path>, started: Time) -> Option<Announced> {
        let folder = folder().ok()?;
        let process = std::process::id();
        let run = Underway {
            process,
            started_ticks: ticks_of(process)?,
            workload: workload.to_owned(),
            targets: targets.to_vec(),
            record: record.and_then(|path| std::path::absolute(path).ok()),
            started,
        };
        let path = folder.join(format!("{process}.json"));
        files::write(&path, serde_json::to_vec(&run).ok()?).ok()?;
        Some(Announced { path, notes: format!("{process}.note-") })
    }

    /// Notes that arrived since the last call.
    pub fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> = Vec::new();
        for file in self.note_files() {
            let note = assay_record::read_file(&file, assay_record::WRITTEN_BYTES_MAX)
                .ok()
                .and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let _ = fs::remove_file(&file);
            notes.extend(note);
        }
        notes.sort_by_key(|note| note.at.unix_ms());
        notes
    }

    fn note_files(&self) -> Vec<PathBuf> {
        let Some(entries) = self.path.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return Vec::new() };
        let is_ours =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&self.notes));
        entries.flatten().map(|entry| entry.path()).filter(is_ours).collect()
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        for file in self.note_files() {
            let _ = fs::remove_file(file);
        }
        // It stays if there are other runs.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// Ends the announcement of this process's run, which is about to quit.
pub fn remove() {
    let _ = fs::remove_file(place().join(format!("{}.json", std::process::id())));
    let _ = fs::remove_dir(place());
}

/// All runs in progress, the latest first.
pub fn all() -> Vec<Underway> {
    let entries = existing_folder().and_then(fs::read_dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs = Vec::new();
    for path in entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")) {
        let Ok(bytes) = assay_record::read_file(&path, assay_record::WRITTEN_BYTES_MAX) else { continue };
        match serde_json::from_slice::<Underway>(&bytes) {
            Ok(run) if run.goes_on() => runs.push(run),
            // Its process was killed.
            Ok(_) => _ = fs::remove_file(&path),
            Err(_) => {}
        }
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.started.unix_ms()));
    runs
}

/// The run of this process, if it is announced.
pub fn own() -> Option<Underway> {
    all().into_iter().find(|run| run.process == std::process::id())
}

impl Underway {
    /// Whether its process still exists.
    pub fn goes_on(&self) -> bool {
        ticks_of(self.process) == Some(self.started_ticks)
    }

    /// Leaves a note for the run, and returns the file that the run will take.
    pub fn leave(&self, text: &str) -> io::Result<PathBuf> {
        let note = Note { at: Time::from(SystemTime::now()), text: note_text(text) };
        let (folder, unique) = (folder()?, format!("{}-{}", std::process::id(), note.at.unix_ms()));
        let path = folder.join(format!("{}.note-{unique}", self.process));
        files::write(&path, serde_json::to_vec(&note)?)?;
        Ok(path)
    }
}

/// One line without control characters and passwords.
fn note_text(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    assay_record::text_without_secrets(line.trim()).chars().take(CHARACTERS_MAX).collect()
}

/// The folder of this user, made if it is missing.
fn folder() -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(place()) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => existing_folder(),
    }
}

fn place() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match runtime.filter(|folder| folder.is_dir()) {
        Some(folder) => folder.join("assay"),
        None => std::env::temp_dir().join(format!("assay-runs-{}", nix::unistd::Uid::effective())),
    }
}

/// The folder, to which nobody else can write.
fn existing_folder() -> io::Result<PathBuf> {
    let (folder, user) = (place(), nix::unistd::Uid::effective());
    let found = fs::symlink_metadata(&folder)?;
    let is_ours = found.is_dir() && found.uid() == user.as_raw() && found.mode() & 0o022 == 0;
    match is_ours {
        true => Ok(folder),
        false => Err(io::Error::other(format!("{} is not a folder of this user alone", folder.display()))),
    }
}

/// When a process started (field 22 of `/proc/PID/stat`); `None`: it does not exist, or is only waited for.
fn ticks_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may contain anything, but it ends with the last parenthesis.
    let mut rest = stat[stat.rfind(')')? + 1..].split_whitespace();
    if rest.next()? == "Z" {
        return None;
    }
    rest.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_takes_its_notes_and_is_gone() {
        let announced = Announced::begin("tpcc", &["postgres://h/d".into()], None, Time::from_unix_ms(5)).unwrap();
        let ours = || all().into_iter().find(|run| run.process == std::process::id());
        let run = ours().unwrap();
        assert_eq!((run.workload.as_str(), run.goes_on()), ("tpcc", true));
        let file = run.leave("dropped\nthe index ").unwrap();
        assert!(file.exists());
        let texts: Vec<String> = announced.notes().into_iter().map(|note| note.text).collect();
        assert_eq!((texts, file.exists()), (vec!["dropped the index".to_owned()], false));
        assert_eq!(announced.notes(), []);
        drop(announced);
        assert_eq!(ours(), None);
        let other = Underway { started_ticks: run.started_ticks + 1, ..run };
        assert!(!other.goes_on(), "another process of the same number");
    }
}
