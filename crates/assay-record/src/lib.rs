//! The record: the file that a trial leaves behind, and the only place that defines its format.
//!
//! Types here are serialized and versioned (`FORMAT`); the binary converts the engine's live types into them. They
//! contain what was measured, as integers with the unit in the field's name, and derive nothing: percentiles and rates
//! are computed in `assay-report`. docs/record.md describes the format for people, docs/record.schema.json for
//! programs.

#![forbid(unsafe_code)]

mod agents;
mod attribute;
mod budget;
mod cases;
mod columns;
mod copy;
mod disk;
mod event;
mod experiment;
mod file;
mod fleet;
mod fuzz;
mod history;
mod host;
mod identity;
mod isolation;
mod journal;
mod note;
mod public;
mod source;
mod stage;
mod started;
mod status;
mod stream;
mod tags;
mod telemetry;
mod time;
mod trial;
mod trial_id;

pub use assay_measure::{
    BadHistogram, Bucket, ByClass, CounterSum, CounterTally, EncodedHistogram, ErrorTally, Generator, Histogram,
    Interval, Latencies, QUANTILES_PPM, STAGE_QUANTILES_PPM, StatementTally, TableTotal, Tally, TargetInterval,
    Thinner, TransactionTally, Work, WorkTally, coarse_bounds_ns,
};

pub use agents::{AgentPart, AgentStage, ClockOffset};
pub use assay_secret::{
    is_secret, json_without_secrets, masked, text_without_logins, text_without_secrets, without_secrets,
};
pub use attribute::{Attribute, AttributeScope};
pub use cases::{Case, Cases, Cold, Execution, QueryPlan, QueryStream, StreamQuery, Suite, is_same_digest};
pub use disk::{
    COMPRESSED_BYTES_MAX, DECOMPRESSED_BYTES_MAX, DEFAULT_FOLDER, Existing, LISTED_BYTES_MAX, ReadError,
    WRITTEN_BYTES_MAX, WriteError, is_pipe, may_create, open_file, read_end, read_file, read_text,
};
pub use event::{
    Connected, Connecting, Ended, Event, Exited, Fold, KnownScope, Moment, Notice, Readings, ScopeReadings, ServerName,
    StageInterval, StageStarted, Started, Totals, WaitReadings,
};
pub use experiment::{RecordedTrial, StepTime};
pub use fleet::Share;
pub use fuzz::fuzz_record;
pub use history::{HistoryFile, ReadHistory, history_path};
pub use host::Host;
pub use isolation::Isolation;
pub use journal::{journal_head, journal_line};
pub use note::Note;
pub use stage::Stage;
pub use started::StartedServer;
pub use status::Status;
pub use stream::{Follow, RecordFile};
pub use tags::{ChangeError, change, tag};
pub use telemetry::{
    Absent, Cost, Intervention, LogLine, Reading, Scope, ScopeKind, Series, StatementPlans, StatementUse, Telemetry,
    Unit, WaitEvent, Waits,
};
pub use time::Time;
pub use trial::{
    Arrival, Environment, EventLoop, FORMAT, Limit, Load, Manifest, Measure, OnError, OptionValue, Place, Policy, Rate,
    RatePoint, Record, RecordedServer, Rule, Search, Terminals, Tool, Trace,
};
pub use trial_id::TrialId;
