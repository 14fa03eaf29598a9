//! A page over all records of a library: series with their changes, a grid of tests and versions, and a table with
//! filters. One file, which any web server can serve, and which opens offline.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use serde_json::json;

use crate::digits::figure;
use crate::findings::history::{History, PointFindings, SeriesFindings, version_key};
use crate::findings::library::LibraryEntry;
use crate::output::document::Document;
use crate::output::library::server;
use crate::plain::clean;
use crate::words::history::{change_words, direction, drift_words, extent, power, value};

const CSS: &str = include_str!("../../page/library.css");
const SCRIPT: &str = include_str!("../../page/library.js");
/// Longest text of a cell.
const CELL_WIDTH: usize = 200;
/// Series that the page shows: those that got worse come first.
const SERIES_MAX: usize = 500;
/// Versions of a grid: the latest.
const VERSIONS_MAX: usize = 24;

/// The page, of the records, and their throughput over time and over versions. `page_of`: where the page of a record
/// is, if there is one; relative to this page.
pub fn library_html(
    entries: &[LibraryEntry],
    found: &History,
    by_version: &History,
    mut page_of: impl FnMut(&LibraryEntry) -> Option<String>,
) -> String {
    let records: Vec<_> = entries.iter().map(|entry| row(entry, page_of(entry))).collect();
    let choice = |column: usize, name: &str, of: &dyn Fn(&LibraryEntry) -> String| -> Markup {
        let values: BTreeSet<String> = entries.iter().map(of).filter(|value| !value.is_empty()).collect();
        html! {
            select data-filter=(column) aria-label=(name) {
                option value="" { "any " (name) }
                @for value in &values { option value=(value) { (value) } }
            }
        }
    };
    let heads = ["started", "workload", "server", "sessions", "tps", "p95 ms", "outcome", "machine", "tags", "record"];
    let document = Document {
        title: "assay library",
        preview: ["assay library", ""],
        picture: None,
        style: CSS,
        scripts: &[SCRIPT],
        loads: false,
        data: json!({ "records": records }),
        body: html! {
            h1 { "Library" }
            (series(found))
            (grids(by_version))
            h2 { "Records" }
            div class="filters" {
                input id="words" type="search" placeholder="words, such as commit=abc" aria-label="words";
                (choice(1, "workload", &workload))
                (choice(2, "server", &server))
                (choice(6, "outcome", &|entry| clean(&entry.outcome, CELL_WIDTH)))
                (choice(7, "machine", &|entry| clean(&entry.machine, CELL_WIDTH)))
            }
            p class="quiet" id="number" {}
            table {
                thead { tr {
                    @for (column, head) in heads.iter().enumerate() {
                        th data-sort=(column) class=[(column == 4 || column == 5).then_some("figure")] { (head) }
                    }
                } }
                tbody id="rows" {}
            }
            p { button id="more" hidden { "Show more" } }
            noscript { "The table needs JavaScript." }
        },
    };
    document.html()
}

fn row(entry: &LibraryEntry, page: Option<String>) -> serde_json::Value {
    let tags: Vec<String> = entry.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    json!([
        entry.started.to_string()[..16].replace('T', " "),
        workload(entry),
        server(entry),
        clean(&entry.sessions, CELL_WIDTH),
        entry.tps,
        entry.p95_ns.map(|ns| ns / 1e6),
        clean(&entry.outcome, CELL_WIDTH),
        clean(&entry.machine, CELL_WIDTH),
        clean(&tags.join(" "), CELL_WIDTH),
        entry.path,
        page,
    ])
}

fn workload(entry: &LibraryEntry) -> String {
    let task = if entry.task == "run" { String::new() } else { format!(" {}", entry.task) };
    clean(&format!("{}{task}", entry.workload), CELL_WIDTH)
}

fn series(found: &History) -> Markup {
    let left = found.series.len().saturating_sub(SERIES_MAX);
    html! {
        h2 { "Series: " (clean(&found.metric.name, CELL_WIDTH)) }
        table {
            thead { tr { th { "what" } th { "over time" } th class="figure" { "latest" } th { "changes" } } }
            tbody {
                @for one in found.series.iter().take(SERIES_MAX) { (series_row(found, one)) }
            }
        }
        @if left > 0 { p class="quiet" { "and " (left) " more series" } }
    }
}

fn series_row(found: &History, one: &SeriesFindings) -> Markup {
    let class = |is_worse: Option<bool>| direction(is_worse);
    html! {
        tr {
            td { (clean(&one.name, CELL_WIDTH)) div class="quiet" { (extent(&found.by, one)) "; on " (clean(&one.machine, 120)) } }
            td { (sparkline(one)) }
            td class="figure" {
                @match one.points.last() { Some(point) => (value(&found.metric, point.value)), None => "" }
            }
            td {
                @for change in &one.changes {
                    div class=(class(change.is_worse)) { (class(change.is_worse)) " " (change_words(&found.metric, change)) }
                }
                @if let Some(pending) = &one.pending { div { "pending " (change_words(&found.metric, pending)) } }
                @if let Some(drift) = &one.drift { div class=(class(drift.is_worse)) { (drift_words(drift)) } }
                div class="quiet" { (power(&found.metric, one)) }
            }
        }
    }
}

/// A grid of tests and versions for each product that was measured in several versions.
fn grids(found: &History) -> Markup {
    let mut products: BTreeMap<&str, Vec<&SeriesFindings>> = BTreeMap::new();
    for one in &found.series {
        products.entry(&one.product).or_default().push(one);
    }
    html! {
        @for (product, mut rows) in products {
            @let versions = versions(&rows);
            @if versions.len() > 1 {
                @let () = rows.sort_by(|a, b| (&a.name, &a.machine).cmp(&(&b.name, &b.machine)));
                h2 { (clean(product, CELL_WIDTH)) " by version: " (clean(&found.metric.name, CELL_WIDTH)) }
                p class="quiet" { "Medians of the records; with 95% intervals from five records on." }
                div class="wide" {
                    table class="grid" {
                        thead { tr {
                            th { "what" }
                            @for version in &versions { th class="figure" { (clean(version, 40)) } }
                        } }
                        tbody {
                            @for one in rows.iter().take(SERIES_MAX) { (grid_row(found, one, &versions)) }
                        }
                    }
                }
                @if rows.len() > SERIES_MAX { p class="quiet" { "and " (rows.len() - SERIES_MAX) " more" } }
            }
        }
    }
}

/// The latest versions of these series, in order.
fn versions<'a>(rows: &[&'a SeriesFindings]) -> Vec<&'a str> {
    let labels = rows.iter().flat_map(|one| &one.points).map(|point| point.label.as_str());
    let mut all: Vec<&str> = labels.filter(|label| !label.is_empty()).collect();
    all.sort_by_key(|label| version_key(label));
    all.dedup();
    all.split_off(all.len().saturating_sub(VERSIONS_MAX))
}

fn grid_row(found: &History, one: &SeriesFindings, versions: &[&str]) -> Markup {
    let cell = |point: &PointFindings| -> Markup {
        let interval = point.low.zip(point.high);
        let records = point.records.len();
        html! {
            (value(&found.metric, point.value))
            @if let Some((low, high)) = interval {
                div class="quiet" { "[" (value(&found.metric, low)) ", " (value(&found.metric, high)) "]" }
            } @else {
                div class="quiet" { (records) @if records == 1 { " record" } @else { " records" } }
            }
        }
    };
    let changed = |version: &str| one.changes.iter().find(|change| change.label == version);
    html! {
        tr {
            td { (clean(&one.name, CELL_WIDTH)) div class="quiet" { "on " (clean(&one.machine, 120)) } }
            @for version in versions {
                @let point = one.points.iter().find(|point| point.label == *version);
                td class={ "figure " (changed(version).map_or("", |change| direction(change.is_worse))) } {
                    @match point { Some(point) => (cell(point)), None => "" }
                }
            }
        }
    }
}

/// Means of neighboring points as a line, with a dot at each change.
fn sparkline(one: &SeriesFindings) -> Markup {
    const WIDTH: f64 = 240.0;
    const HEIGHT: f64 = 40.0;
    const POINTS: usize = 120;
    if one.points.len() < 2 {
        return html! {};
    }
    let batch = one.points.len().div_ceil(POINTS);
    let means: Vec<f64> = one
        .points
        .chunks(batch)
        .map(|points| points.iter().map(|point| point.value).sum::<f64>() / points.len() as f64)
        .collect();
    let low = means.iter().copied().fold(f64::INFINITY, f64::min);
    let high = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let x = |at: f64| 3.0 + at / (means.len() - 1).max(1) as f64 * (WIDTH - 6.0);
    let y = |value: f64| HEIGHT - 4.0 - (value - low) / (high - low).max(f64::MIN_POSITIVE) * (HEIGHT - 8.0);
    let line: Vec<String> =
        means.iter().enumerate().map(|(at, mean)| format!("{:.1},{:.1}", x(at as f64), y(*mean))).collect();
    let changes = one.changes.iter().map(|change| change.at / batch).filter(|at| *at < means.len());
    let label = format!("from {} to {}", figure(low), figure(high));
    html! {
        svg width=(WIDTH) height=(HEIGHT) role="img" aria-label=(label) {
            title { (label) }
            path d=(format!("M{}", line.join("L")));
            @for at in changes { circle cx=(format!("{:.1}", x(at as f64))) cy=(format!("{:.1}", y(means[at]))) r="3"; }
        }
    }
}
