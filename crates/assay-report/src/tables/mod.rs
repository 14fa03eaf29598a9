//! Findings as tables, each defined once, and their formats: terminal, Markdown, HTML and CSV.

pub(crate) mod agents;
pub(crate) mod as_csv;
pub(crate) mod as_html;
pub(crate) mod as_markdown;
pub(crate) mod as_text;
pub(crate) mod cases;
pub(crate) mod comparison;
pub(crate) mod experiment;
pub(crate) mod figures;
pub(crate) mod generator;
pub(crate) mod latency;
pub(crate) mod stages;
pub(crate) mod suites;
pub(crate) mod table;
pub(crate) mod telemetry;
pub(crate) mod work;
