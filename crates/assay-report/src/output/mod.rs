//! Whole reports for people and programs, assembled from findings, words and charts. Nothing is computed here.

pub(crate) mod bisection;
pub(crate) mod comparison_text;
pub(crate) mod csv;
mod cycle;
pub(crate) mod data;
mod document;
pub(crate) mod experiment;
pub(crate) mod explanation;
pub(crate) mod history;
pub(crate) mod json;
pub(crate) mod lab;
pub(crate) mod library;
pub(crate) mod library_page;
pub(crate) mod live_page;
pub(crate) mod markdown;
pub(crate) mod page;
pub(crate) mod parquet;
pub(crate) mod progress;
pub(crate) mod prometheus;
pub(crate) mod series;
pub(crate) mod shown;
pub(crate) mod suites;
pub(crate) mod text;
