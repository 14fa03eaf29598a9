//! The numbers derived from records: every number of a report is computed in these files, and no sentence is written
//! here.

pub(crate) mod agents;
pub(crate) mod arithmetic;
pub(crate) mod audit;
pub(crate) mod best;
pub(crate) mod capacity;
pub(crate) mod cases;
pub(crate) mod comparison;
pub(crate) mod condition;
pub(crate) mod course;
pub(crate) mod derived;
pub(crate) mod experiment;
pub(crate) mod factors;
pub(crate) mod interval;
pub(crate) mod judgment;
pub(crate) mod latency;
pub(crate) mod limit;
pub(crate) mod loaded;
pub(crate) mod metric;
pub(crate) mod metric_unit;
pub(crate) mod outage;
pub(crate) mod plans;
pub(crate) mod promise;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod setting;
pub(crate) mod shares;
pub(crate) mod stage;
pub(crate) mod summary;
pub(crate) mod tally;
pub(crate) mod telemetry;
pub(crate) mod throughput;
pub(crate) mod verdict;
pub(crate) mod warning;
pub(crate) mod whole_run;
pub(crate) mod window;
