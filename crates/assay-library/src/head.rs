//! The head of a record as a row of the index.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use assay_record::{ReadError, Record, Status};
use assay_report::{LibraryFigures, SettingKind, findings, library_figures, settings_in_effect};
use sha2::{Digest, Sha256};

use crate::files::{Candidate, Stamp};

/// A file of the library after it was read.
pub(crate) struct ReadFile {
    pub(crate) path: String,
    /// As it was before it was read; `None`: it changed meanwhile, or may change unnoticed, and is read again next
    /// time.
    pub(crate) stamp: Option<Stamp>,
    pub(crate) content: Result<Box<Head>, String>,
}

/// What the index knows of a record.
pub(crate) struct Head {
    pub(crate) started_ms: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) outcome: &'static str,
    pub(crate) workload: String,
    pub(crate) task: String,
    pub(crate) product: String,
    pub(crate) version: String,
    pub(crate) host: String,
    pub(crate) machine: String,
    pub(crate) assay: String,
    pub(crate) experiment: Option<String>,
    pub(crate) sessions: String,
    /// The same for copies of one trial.
    pub(crate) trial: String,
    pub(crate) figures: LibraryFigures,
    pub(crate) tags: BTreeMap<String, String>,
    /// Settings that matter, by name, without tags.
    pub(crate) settings: Vec<(SettingKind, String, String)>,
    /// The same for the same settings.
    pub(crate) identity: String,
}

/// Completes the identity of a record of an earlier version.
pub(crate) type Complete<'a> = &'a (dyn Fn(&mut Record) + Sync);

/// Reads the file of a candidate. `now_ns`: files that changed this recently may change again within the resolution of
/// their times.
pub(crate) fn read(folder: &Path, candidate: &Candidate, now_ns: i64, complete: Complete<'_>) -> ReadFile {
    /// Coarsest resolution of file times: FAT.
    const RESOLUTION_NS: i64 = 2_000_000_000;
    let path = folder.join(&candidate.path);
    let content = Record::read_head(&path).map(|mut record| {
        complete(&mut record);
        Box::new(head_of(&record))
    });
    let after = fs::metadata(&path).ok().map(|metadata| Stamp::of(&metadata));
    let is_settled = after == Some(candidate.stamp) && (now_ns - candidate.stamp.mtime_ns).abs() > RESOLUTION_NS;
    ReadFile {
        path: candidate.path.clone(),
        stamp: is_settled.then_some(candidate.stamp),
        content: content.map_err(|error| reason(&error)),
    }
}

/// Without the path, which stands beside it.
fn reason(error: &ReadError) -> String {
    let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    match error {
        ReadError::Io { .. } => format!("cannot be read{source}"),
        ReadError::NotARecord { .. } => "not a record of assay".to_owned(),
        ReadError::CutOff { .. } => "incomplete: nothing of the run was written, or the file was cut off".to_owned(),
        ReadError::Damaged { .. } => format!("damaged{source}"),
        ReadError::Content { .. } => format!("not a record of assay, or damaged{source}"),
        ReadError::Event { number, .. } => format!("event {number} cannot be read{source}"),
        ReadError::TooLarge { .. } | ReadError::TooMuch { .. } => "too large for a record".to_owned(),
        ReadError::Format { format, .. } => format!("format {format} of records, which this assay does not know"),
    }
}

fn head_of(record: &Record) -> Head {
    let found = findings(record);
    let settings = settings_in_effect(&found);
    let settings: Vec<_> = settings.into_iter().filter(|(kind, _, _)| *kind != SettingKind::Tag).collect();
    let mut identity = Sha256::new();
    for (_, what, value) in &settings {
        identity.update(format!("{what}\0{value}\0"));
    }
    let host = &record.environment.host;
    let gib = (host.memory_bytes + (1 << 29)) >> 30;
    let machine = format!("{}, {}, {} CPUs, {gib} GiB", host.name.to_lowercase(), host.cpu_model, host.cpus);
    let server = found.targets.first();
    let sessions: Vec<String> = record.stages.iter().map(|stage| stage.sessions.to_string()).collect();
    Head {
        started_ms: record.started.unix_ms(),
        elapsed_ns: record.elapsed_ns,
        outcome: match (record.status, record.environment.trial.as_ref()) {
            (_, Some(trial)) if !trial.rejected.is_empty() => "rejected",
            (Status::Running, _) => "unfinished",
            (Status::Complete, _) => "complete",
            (Status::Interrupted, _) => "interrupted",
            (Status::Failed, _) => "failed",
        },
        workload: record.manifest.workload.clone(),
        task: if record.manifest.task.is_empty() { "run".to_owned() } else { record.manifest.task.clone() },
        product: server.map(|server| server.product.clone()).unwrap_or_default(),
        version: server.map(|server| server.version.clone()).unwrap_or_default(),
        host: host.name.to_lowercase(),
        machine,
        assay: record.tool.version.clone(),
        experiment: record.environment.trial.as_ref().map(|trial| trial.experiment.clone()),
        sessions: sessions.join(","),
        trial: format!("{}-{}-{}", record.started.unix_ms(), record.manifest.seed, record.elapsed_ns),
        figures: library_figures(&found),
        tags: record.tags.clone(),
        identity: hex(&identity.finalize()[..12]),
        settings,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
