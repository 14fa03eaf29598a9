//! The index file: brought up to date with the records, by several threads and safely beside other indexers.
//!
//! Changes are written in transactions of many records. A full disk, a crash or an interrupt leaves what the last
//! transaction had, and the next update goes on from there.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use assay_record::Record;
use assay_report::SettingKind;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::files::{Candidate, Refused, Stamp, candidates};
use crate::head::{Head, ReadFile, read};
use crate::schema::{APPLICATION, COLUMNS, DROP, TABLES, VERSION};

/// Name of the index in the folder of its records.
pub const INDEX_FILE: &str = ".assay-library.sqlite";

/// How long to wait for another indexer, which writes in short transactions.
const BUSY: Duration = Duration::from_secs(30);
/// Files per transaction.
const BATCH: usize = 500;

/// The index of a folder of records.
#[derive(Debug)]
pub struct Library {
    folder: PathBuf,
    pub(crate) connection: Connection,
}

/// What an update needs to know.
#[derive(Clone, Copy)]
pub struct Update<'a> {
    /// Reads every file again, whatever the index says.
    pub rebuild: bool,
    /// Nanoseconds since 1970: files that changed just now are read again by the next update.
    pub now_ns: i64,
    /// Threads that read records. 1 <= threads
    pub threads: usize,
    /// Completes the identity of records of earlier versions.
    pub complete: &'a (dyn Fn(&mut Record) + Sync),
    /// Called now and then with the number of files read, and of all to read; false ends the update early.
    pub progress: &'a dyn Fn(usize, usize) -> bool,
}

/// What an update did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    /// Candidates below the folder.
    pub files: usize,
    /// Files that were read: new, changed, or not settled.
    pub read: usize,
    /// Files that are not there any more.
    pub removed: usize,
    /// Folders and files that could not be listed, with the reason.
    pub unlisted: Vec<Refused>,
    /// Whether `progress` ended it early.
    pub stopped: bool,
}

/// The index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The folder cannot be listed.
    #[error("cannot list the folder {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of that name is something else.
    #[error("{path} is not an index of records")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The folder's drive is full.
    #[error("no space left for the index {path}")]
    Full {
        /// The index.
        path: PathBuf,
    },
    /// It cannot be written.
    #[error("cannot write the index {path}: its folder or file is read-only")]
    ReadOnly {
        /// The index.
        path: PathBuf,
    },
    /// Anything else.
    #[error("cannot use the index {path}")]
    Index {
        /// The index.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl Library {
    /// Opens the index of `folder`, or creates it: in the folder, or at `index`. A damaged one is replaced.
    pub fn open(folder: &Path, index: Option<&Path>) -> Result<Library, LibraryError> {
        fs::read_dir(folder).map_err(|source| LibraryError::Folder { path: folder.to_owned(), source })?;
        let path = index.map_or_else(|| folder.join(INDEX_FILE), Path::to_owned);
        let failed = |source: rusqlite::Error| failure(&path, source);
        let opened = connect(&path).or_else(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) if is_index(&path) => {
                let _ = fs::remove_file(&path);
                connect(&path)
            }
            _ => Err(error),
        });
        match opened.map_err(failed)? {
            Some(connection) => Ok(Library { folder: folder.to_owned(), connection }),
            None => Err(LibraryError::Foreign { path }),
        }
    }

    /// The folder of its records.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads what is new or has changed, and forgets what is gone.
    pub fn update(&mut self, update: &Update<'_>) -> Result<Updated, LibraryError> {
        let path = self.connection.path().map(PathBuf::from).unwrap_or_default();
        let listed = candidates(&self.folder);
        let listed = listed.map_err(|source| LibraryError::Folder { path: self.folder.clone(), source })?;
        self.write(listed, update).map_err(|source| failure(&path, source))
    }

    fn write(
        &mut self,
        (listed, unlisted): (Vec<Candidate>, Vec<Refused>),
        update: &Update<'_>,
    ) -> Result<Updated, rusqlite::Error> {
        let mut known = self.known()?;
        let files = listed.len();
        let is_new = |candidate: &Candidate| {
            let stamp = known.remove(&candidate.path).map(|(_, stamp)| stamp);
            update.rebuild || stamp != Some(Some(candidate.stamp))
        };
        let news: Vec<Candidate> = listed.into_iter().filter(is_new).collect();
        // A folder that cannot be listed now may be there again next time.
        let is_unlisted = |path: &str| unlisted.iter().any(|(below, _)| Path::new(path).starts_with(below));
        let gone: Vec<i64> = known.iter().filter(|(path, _)| !is_unlisted(path)).map(|(_, (id, _))| *id).collect();
        for ids in gone.chunks(BATCH) {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            ids.iter().try_for_each(|id| forget(&transaction, *id))?;
            transaction.commit()?;
        }
        let (next, folder) = (AtomicUsize::new(0), self.folder.clone());
        let (now_ns, complete) = (update.now_ns, update.complete);
        let (sender, receiver) = sync_channel(BATCH);
        let stopped = std::thread::scope(|scope| {
            for _ in 0..update.threads.max(1) {
                let (sender, next, news, folder) = (sender.clone(), &next, &news, &folder);
                scope.spawn(move || {
                    while let Some(candidate) = news.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if sender.send(read(folder, candidate, now_ns, complete)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            self.take(receiver, news.len(), update)
        })?;
        Ok(Updated { files, read: news.len(), removed: gone.len(), unlisted, stopped })
    }

    /// Writes what the readers send; dropping `receiver` ends them. Returns whether it ended early.
    fn take(&mut self, receiver: Receiver<ReadFile>, all: usize, update: &Update<'_>) -> Result<bool, rusqlite::Error> {
        let mut done = 0;
        loop {
            let Ok(first) = receiver.recv() else { return Ok(false) };
            let mut batch = vec![first];
            // The lock is not held while records are read.
            batch.extend(receiver.iter().take(BATCH - 1));
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for file in &batch {
                put(&transaction, file)?;
            }
            transaction.commit()?;
            done += batch.len();
            if !(update.progress)(done, all) {
                return Ok(true);
            }
        }
    }

    /// Known files, with their stamps.
    fn known(&self) -> Result<HashMap<String, (i64, Option<Stamp>)>, rusqlite::Error> {
        let mut statement = self.connection.prepare("SELECT path, id, size, mtime_ns FROM file")?;
        let rows = statement.query_map([], |row| {
            let stamp = match (row.get(2)?, row.get(3)?) {
                (Some(size), Some(mtime_ns)) => Some(Stamp { size, mtime_ns }),
                _ => None,
            };
            Ok((row.get(0)?, (row.get(1)?, stamp)))
        })?;
        rows.collect()
    }
}

/// `None`: the file is a database of somebody else.
fn connect(path: &Path) -> Result<Option<Connection>, rusqlite::Error> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    let pragma =
        |connection: &Connection, name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    // Everything can be made again, so nothing is worth waiting for the drive.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cache_size", -65_536)?;
    let is_ours = |connection: &Connection| -> Result<bool, rusqlite::Error> {
        Ok(pragma(connection, "application_id")? == APPLICATION && pragma(connection, "user_version")? == VERSION)
    };
    if !is_ours(&connection)? {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another indexer may have been faster.
        if !is_ours(&transaction)? {
            let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables > 0 && pragma(&transaction, "application_id")? != APPLICATION {
                return Ok(None);
            }
            transaction.execute_batch(DROP)?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()?;
        }
    }
    Ok(Some(connection))
}

/// Whether a file that SQLite refuses is a damaged index of ours, or may be one: it has our name.
fn is_index(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == INDEX_FILE)
}

fn failure(path: &Path, source: rusqlite::Error) -> LibraryError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => LibraryError::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            LibraryError::ReadOnly { path }
        }
        Some(ErrorCode::NotADatabase) => LibraryError::Foreign { path },
        _ => LibraryError::Index { path, source },
    }
}

fn forget(transaction: &Transaction<'_>, id: i64) -> Result<(), rusqlite::Error> {
    for statement in [
        "DELETE FROM tag WHERE record = ?",
        "DELETE FROM figure WHERE metric IN (SELECT id FROM metric) AND record = ?",
        "DELETE FROM record WHERE id = ?",
        "DELETE FROM file WHERE id = ?",
    ] {
        transaction.prepare_cached(statement)?.execute([id])?;
    }
    Ok(())
}

fn put(transaction: &Transaction<'_>, file: &ReadFile) -> Result<(), rusqlite::Error> {
    let known = "SELECT id FROM file WHERE path = ?";
    let known: Option<i64> = transaction.prepare_cached(known)?.query_row([&file.path], |row| row.get(0)).optional()?;
    if let Some(id) = known {
        forget(transaction, id)?;
    }
    let problem = file.content.as_ref().err();
    let (size, mtime_ns) = (file.stamp.map(|stamp| stamp.size), file.stamp.map(|stamp| stamp.mtime_ns));
    transaction
        .prepare_cached("INSERT INTO file (path, size, mtime_ns, problem) VALUES (?, ?, ?, ?)")?
        .execute(params![file.path, size, mtime_ns, problem])?;
    let id = transaction.last_insert_rowid();
    match &file.content {
        Ok(head) => put_head(transaction, id, head),
        Err(_) => Ok(()),
    }
}

fn put_head(transaction: &Transaction<'_>, id: i64, head: &Head) -> Result<(), rusqlite::Error> {
    let identity = identity_of(transaction, head)?;
    let figure = |name: &str| head.figures.iter().find(|(metric, _)| metric.name == name).map(|(_, value)| *value);
    transaction
        .prepare_cached(
            "INSERT INTO record (id, started_ms, elapsed_ns, outcome, workload, task, product, version, host, machine, \
             assay, experiment, sessions, trial, identity, tps, p95_ns) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            id,
            saturated(head.started_ms),
            saturated(head.elapsed_ns),
            head.outcome,
            head.workload,
            head.task,
            head.product,
            head.version,
            head.host,
            head.machine,
            head.assay,
            head.experiment,
            head.sessions,
            head.trial,
            identity,
            figure("tps"),
            figure("p95"),
        ])?;
    for (metric, value) in &head.figures {
        let text = serde_json::to_string(metric).expect("metrics become JSON");
        transaction
            .prepare_cached("INSERT OR IGNORE INTO metric (name, of) VALUES (?, ?)")?
            .execute([&metric.name, &text])?;
        if !COLUMNS.iter().any(|(name, _)| *name == metric.name) {
            transaction
                .prepare_cached(
                    "INSERT INTO figure (metric, record, value) SELECT id, ?, ? FROM metric WHERE name = ?",
                )?
                .execute(params![id, value, metric.name])?;
        }
    }
    for (key, value) in &head.tags {
        let insert = "INSERT INTO tag (record, key, value) VALUES (?, ?, ?)";
        transaction.prepare_cached(insert)?.execute(params![id, key, value])?;
    }
    Ok(())
}

fn identity_of(transaction: &Transaction<'_>, head: &Head) -> Result<i64, rusqlite::Error> {
    let known = "SELECT id FROM identity WHERE hash = ?";
    if let Some(id) = transaction.prepare_cached(known)?.query_row([&head.identity], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    transaction.prepare_cached("INSERT INTO identity (hash) VALUES (?)")?.execute([&head.identity])?;
    let identity = transaction.last_insert_rowid();
    for (kind, name, value) in &head.settings {
        let kind = kind_name(*kind);
        transaction
            .prepare_cached("INSERT OR IGNORE INTO setting (kind, name, short, value) VALUES (?, ?, ?, ?)")?
            .execute([kind, name, short(name), value])?;
        transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO identity_setting (identity, setting) \
                 SELECT ?, id FROM setting WHERE name = ? AND value = ? AND kind = ?",
            )?
            .execute(params![identity, name, value, kind])?;
    }
    Ok(identity)
}

pub(crate) fn kind_name(kind: SettingKind) -> &'static str {
    match kind {
        SettingKind::Work => "work",
        SettingKind::Generator => "generator",
        SettingKind::Server => "server",
        SettingKind::Session => "session",
        SettingKind::Tag => "tag",
    }
}

/// `work_mem` of `server work_mem`, `tables` of `option tables`.
fn short(name: &str) -> &str {
    let rest =
        ["option ", "server ", "front ", "step "].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(name);
    match rest.split_once(' ') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => rest,
    }
}

fn saturated(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use assay_record::{Existing, Time};

    use super::*;

    #[test]
    fn a_full_disk_leaves_the_index_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record::read(Path::new("../assay-record/tests/records/0.1.0.json.zst")).unwrap();
        let mut add = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                record.tags.insert("number".into(), number.to_string());
                record.create(&folder.path().join(format!("{number}.json.zst")), Existing::Keep).unwrap();
            }
        };
        let (complete, progress) = (|_: &mut Record| (), |_, _| true);
        let update = Update { rebuild: false, now_ns: 0, threads: 2, complete: &complete, progress: &progress };
        let number = |library: &Library| library.find(&[], 0, Time::default()).unwrap().unwrap().records;
        add(0..3);
        let mut library = Library::open(folder.path(), None).unwrap();
        library.update(&update).unwrap();
        // SQLite reports a file that must not grow as it reports a full drive.
        let pages: i64 = library.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        library.connection.pragma_update(None, "max_page_count", pages).unwrap();
        add(3..60);
        assert!(matches!(library.update(&update), Err(LibraryError::Full { .. })));
        assert_eq!(number(&library), 3);
        let mut library = Library::open(folder.path(), None).unwrap();
        library.update(&update).unwrap();
        assert_eq!(number(&library), 60);
    }
}
