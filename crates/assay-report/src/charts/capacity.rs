//! A search for a rate: the promised value by offered rate, with the promise as a line.

use crate::charts::chart::{AxisScale, Chart, ChartBody, ChartLine, LINES_MAX, NAME_WIDTH, axis, rounded};
use crate::findings::capacity::{Capacity, CapacityFindings};
use crate::findings::promise::{Promise, PromisedFigure};
use crate::findings::report::ReportEntry;
use crate::plain::clean;

/// One chart for each promise that any record searched with.
pub(crate) fn capacities(entries: &[ReportEntry]) -> Vec<Chart> {
    let searches: Vec<(&ReportEntry, &CapacityFindings, &[String])> = entries
        .iter()
        .filter_map(|entry| match entry.findings.capacity.as_ref() {
            Some(found) => match &found.of {
                Capacity::Rate { promises } => Some((entry, found, promises.as_slice())),
                Capacity::Sessions { .. } => None,
            },
            None => None,
        })
        .take(LINES_MAX - 1)
        .collect();
    let mut texts: Vec<&String> = searches.iter().flat_map(|(_, _, promises)| *promises).collect();
    texts.sort();
    texts.dedup();
    texts.iter().take(CHARTS_MAX).enumerate().filter_map(|(number, text)| chart(number, text, &searches)).collect()
}

const CHARTS_MAX: usize = 8;

fn chart(number: usize, text: &str, searches: &[(&ReportEntry, &CapacityFindings, &[String])]) -> Option<Chart> {
    let promise: Promise = text.parse().ok()?;
    let (scale, unit, label) = match promise.figure {
        PromisedFigure::Errors => (AxisScale::Linear, 1e2, "errors, %"),
        PromisedFigure::Percentile(_) | PromisedFigure::Max => (AxisScale::Log, 1e-6, "response time, ms"),
    };
    let several = searches.len() > 1;
    let name = clean(text.split('<').next().unwrap_or_default().trim(), NAME_WIDTH);
    let mut lines: Vec<ChartLine> = Vec::new();
    for (entry, found, promises) in searches {
        let Some(at) = promises.iter().position(|own| own == text) else { continue };
        let decided = found.looks.iter().filter(|look| look.too_few.is_none());
        let mut points: Vec<(f64, Option<f64>)> =
            decided.map(|look| (look.at, look.values.get(at).copied().flatten())).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.partial_cmp(&a.1).unwrap_or(std::cmp::Ordering::Equal)));
        // For several looks at one rate, the worst.
        points.dedup_by_key(|point| point.0);
        lines.push(ChartLine {
            name: if several { clean(&format!("{name}, {}", entry.name), NAME_WIDTH) } else { name.clone() },
            group: entry.setting,
            dots: false,
            stacked: false,
            band: Vec::new(),
            x: points.iter().map(|(rate, _)| *rate).collect(),
            y: points.iter().map(|(_, value)| value.filter(|v| *v > 0.0).map(|v| rounded(v * unit))).collect(),
        });
    }
    let all = || lines.iter().flat_map(|line| &line.x).copied();
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if !low.is_finite() {
        return None;
    }
    let group = lines.iter().map(|line| line.group).max().unwrap_or(0) + 1;
    let limit = Some(rounded(promise.limit * unit));
    lines.push(ChartLine {
        x: vec![low, high],
        y: vec![limit, limit],
        ..ChartLine::new(&clean(text, NAME_WIDTH), group)
    });
    let x = axis("offered transactions per second", if high >= 8.0 * low { AxisScale::Log } else { AxisScale::Linear });
    let title = format!("Capacity: {name} by offered rate");
    Some(Chart::new(
        format!("capacity-{}", number + 1),
        &title,
        "level line: promise",
        [x, axis(label, scale)],
        ChartBody::Lines { lines },
    ))
}
