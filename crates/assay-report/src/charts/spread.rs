//! How values are spread: boxes of throughput, and response times by percentile.

use assay_stats::box_figures;

use crate::charts::chart::{Body, Boxed, Chart, LINES_MAX, Line, NAME_WIDTH, STAGES_MAX, Scale, axis, rounded};
use crate::digits::count;
use crate::findings::report::Entry;
use crate::findings::stage::StageFindings;
use crate::plain::clean;
use crate::words::run::sessions;

const BOXES_MAX: usize = 48;
const OUTSIDE_MAX: usize = 60;

pub(crate) fn boxes(entries: &[Entry]) -> Option<Chart> {
    let all = stages(entries).count();
    let boxed = |(name, _, stage): (String, usize, &StageFindings)| {
        let found = box_figures(stage.intervals.iter().map(|interval| interval.tps)).filter(|found| found.count > 1)?;
        let step = found.outside.len().div_ceil(OUTSIDE_MAX).max(1);
        Some(Boxed {
            name,
            count: found.count,
            low: rounded(found.low),
            lower_quartile: rounded(found.lower_quartile),
            median: rounded(found.median),
            upper_quartile: rounded(found.upper_quartile),
            high: rounded(found.high),
            outside: found.outside.into_iter().step_by(step).map(rounded).collect(),
        })
    };
    let caption = "Every interval is a value: the box holds the middle half of them, its line is the median, whiskers reach to \
        the last value within 1.5 box heights, points lie beyond.";
    let caption = if all > BOXES_MAX {
        format!("{caption} Only the first {BOXES_MAX} of {}.", count(all as u64))
    } else {
        caption.into()
    };
    Some(Chart {
        id: "boxes".into(),
        title: "How even throughput was".into(),
        caption,
        x: axis("", Scale::Names),
        y: axis("transactions per second", Scale::Linear),
        marks: Vec::new(),
        body: Body::Boxes { boxes: stages(entries).take(BOXES_MAX).filter_map(boxed).collect() },
    })
}

/// A line for every stage; where they are too many, for the best stage of every record.
pub(crate) fn percentiles(entries: &[Entry]) -> Option<Chart> {
    let all: Vec<_> = stages(entries).collect();
    let few = all.len() <= LINES_MAX;
    let shown = all
        .into_iter()
        .filter(|(_, _, stage)| few || stage.best || entries.iter().all(|entry| entry.findings.stages.len() == 1));
    let line = |(name, group, stage): (String, usize, &StageFindings)| {
        let points = stage.total.response_curve.iter().filter(|(_, ns)| *ns > 0);
        let (x, y) = points.map(|(nines, ns)| (rounded(*nines), Some(ms(*ns)))).unzip();
        Line { name, group, x, y }
    };
    Some(Chart {
        id: "percentiles".into(),
        title: "Response time by percentile".into(),
        caption: "Each step to the right is ten times rarer: read how slow the slowest of 10, 100, 1,000 transactions are. Logarithmic. \
            Lines end where too few transactions were measured to go on."
            .into(),
        x: axis("percentile", Scale::Nines),
        y: axis("response time, ms", Scale::Log),
        marks: Vec::new(),
        body: Body::Lines { lines: shown.take(LINES_MAX).map(line).collect() },
    })
}

/// A name for each stage of each record, as short as can be told apart.
fn stages(entries: &[Entry]) -> impl Iterator<Item = (String, usize, &StageFindings)> {
    let several = entries.len() > 1;
    entries.iter().flat_map(move |entry| {
        let ladder = entry.findings.stages.len() > 1;
        entry.findings.stages.iter().take(STAGES_MAX).map(move |stage| {
            let name = match (several, ladder) {
                (false, _) => sessions(stage.sessions),
                (true, false) => entry.name.clone(),
                (true, true) => format!("{}, {}", entry.name, sessions(stage.sessions)),
            };
            (clean(&name, NAME_WIDTH), entry.setting, stage)
        })
    })
}

fn ms(ns: u64) -> f64 {
    rounded(ns as f64 / 1e6)
}
