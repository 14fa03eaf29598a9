//! The tables of the index.

/// `assay` in the header of the file (SQLite's `application_id`): the index is ours.
pub(crate) const APPLICATION: i32 = 0x6173_6179;
/// Another version is made anew from the records.
pub(crate) const VERSION: i32 = 4;

/// Figures that are columns of `record`, because lists show them.
pub(crate) const COLUMNS: [(&str, &str); 2] = [("tps", "r.tps"), ("p95", "r.p95_ns")];

/// `file` has every candidate: its stamp, and the reason if it is not a record. `record` has few columns, so that
/// questions about all records read little; settings and all figures but the two usual ones are apart, each figure in
/// one place for all records. Most records share their settings with many others: `identity` names such a set. Values
/// are compared whatever the case of their letters, and so is the index of tags, or questions would not use it.
pub(crate) const TABLES: &str = "
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    size INTEGER,
    mtime_ns INTEGER,
    problem TEXT
);
CREATE TABLE record (
    id INTEGER PRIMARY KEY,
    started_ms INTEGER NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    workload TEXT NOT NULL,
    task TEXT NOT NULL,
    product TEXT NOT NULL,
    version TEXT NOT NULL,
    host TEXT NOT NULL,
    machine TEXT NOT NULL,
    assay TEXT NOT NULL,
    experiment TEXT,
    sessions TEXT NOT NULL,
    trial TEXT NOT NULL,
    identity INTEGER NOT NULL,
    tps REAL,
    p95_ns REAL
);
CREATE INDEX record_started ON record (started_ms);
CREATE INDEX record_identity ON record (identity, started_ms);
CREATE INDEX record_workload ON record (workload, started_ms);
CREATE TABLE metric (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, of TEXT NOT NULL);
CREATE TABLE figure (
    metric INTEGER NOT NULL,
    record INTEGER NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (metric, record)
) WITHOUT ROWID;
CREATE TABLE tag (
    record INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (record, key)
) WITHOUT ROWID;
CREATE INDEX tag_value ON tag (key, value COLLATE NOCASE);
CREATE TABLE identity (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE);
CREATE TABLE setting (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    short TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (name, value, kind)
);
CREATE INDEX setting_short ON setting (short);
CREATE TABLE identity_setting (
    identity INTEGER NOT NULL,
    setting INTEGER NOT NULL,
    PRIMARY KEY (identity, setting)
) WITHOUT ROWID;
CREATE INDEX identity_of_setting ON identity_setting (setting);
";

/// Everything of an index, so that it can be made anew within one transaction.
pub(crate) const DROP: &str = "
DROP TABLE IF EXISTS file;
DROP TABLE IF EXISTS record;
DROP TABLE IF EXISTS figures;
DROP TABLE IF EXISTS figure;
DROP TABLE IF EXISTS metric;
DROP TABLE IF EXISTS tag;
DROP TABLE IF EXISTS identity;
DROP TABLE IF EXISTS setting;
DROP TABLE IF EXISTS identity_setting;
";
