//! Findings in words, shared by all outputs, so that everything has the same name everywhere.

pub(crate) mod audit;
pub(crate) mod capacity;
pub(crate) mod cases;
pub(crate) mod comparison;
pub(crate) mod effects;
pub(crate) mod explanation;
pub(crate) mod facts;
pub(crate) mod generator;
pub(crate) mod history;
pub(crate) mod isolation;
pub(crate) mod outage;
pub(crate) mod plans;
pub(crate) mod run;
pub(crate) mod steadiness;
pub(crate) mod subject;
pub(crate) mod suites;
pub(crate) mod summary;
pub(crate) mod telemetry;
pub(crate) mod trial;
pub(crate) mod verdict;
pub(crate) mod warning;
pub(crate) mod window;
