//! Distributions of values: trials by setting, box plots of throughput, response times by percentile.

use assay_stats::{Scale, box_figures};

use crate::charts::chart::{
    AxisScale, Boxed, Chart, ChartBody, ChartLine, LINES_MAX, NAME_WIDTH, Quartiles, STAGES_MAX, axis, rounded,
};
use crate::digits::count;
use crate::findings::metric::{TrialsFindings, trials_findings};
use crate::findings::report::{Report, Setting};
use crate::findings::stage::StageFindings;
use crate::plain::clean;
use crate::words::run::step;

const BOXES_MAX: usize = 48;
const OUTSIDE_MAX: usize = 60;
/// With fewer values, a box would have hardly fewer numbers than the values themselves.
const BOX_MIN: usize = 10;

/// The basis of the verdicts: every trial of every setting as a point, with median and interval.
pub(crate) fn trials(report: &Report, settings: &[Setting]) -> Option<Chart> {
    if report.entries.len() < 2 {
        return None;
    }
    let is_latency = report.comparisons.first().is_some_and(|comparison| comparison.headline == "p99");
    let value = |stage: &StageFindings| match is_latency {
        true => stage.total.response.p99_ns.map(|ns| ns as f64 / 1e6),
        false => Some(stage.total.tps),
    };
    let boxes = stages(settings).into_iter().take(BOXES_MAX).filter_map(|one| {
        let TrialsFindings { values, median, low, high, .. } =
            trials_findings(&one.stages.iter().filter_map(|stage| value(stage)).collect::<Vec<_>>(), Scale::Ratio)?;
        Some(Boxed {
            name: one.name,
            group: one.group,
            count: values.len(),
            median: rounded(median),
            quartiles: None,
            interval: low.zip(high).map(|(low, high)| (rounded(low), rounded(high))),
            points: values.into_iter().map(rounded).collect(),
        })
    });
    let boxes: Vec<Boxed> = boxes.collect();
    let caption = match boxes.iter().any(|one| one.interval.is_some()) {
        true => "bar: 95% interval",
        false => "points: trials",
    };
    let (title, label) = match (is_latency, settings.len()) {
        (true, _) => ("Response time by setting, p99", "response time, p99, ms"),
        (false, 1) => ("Throughput by trial", "transactions per second"),
        (false, _) => ("Throughput by setting", "transactions per second"),
    };
    Some(Chart::new(
        "trials",
        title,
        caption,
        [axis("", AxisScale::Names), axis(label, AxisScale::Around)],
        ChartBody::Boxes { boxes },
    ))
}

/// The intervals of all trials of a setting in one box.
pub(crate) fn boxes(settings: &[Setting]) -> Option<Chart> {
    let all = stages(settings);
    let many = all.len();
    let of_stages = |one: Stages| {
        let tps = one.stages.iter().flat_map(|stage| &stage.intervals).map(|interval| interval.tps).collect();
        let found = boxed(tps).filter(|found| found.count > 1)?;
        Some(Boxed { name: one.name, group: one.group, ..found })
    };
    let boxes: Vec<Boxed> = all.into_iter().take(BOXES_MAX).filter_map(of_stages).collect();
    let caption = match boxes.iter().any(|one| one.quartiles.is_some()) {
        _ if many > BOXES_MAX => format!("first {BOXES_MAX} of {}", count(many as u64)),
        true => "dots: beyond 1.5 IQR".into(),
        false => "dots: intervals".into(),
    };
    Some(Chart::new(
        "boxes",
        "Throughput distribution",
        caption,
        [axis("", AxisScale::Names), axis("transactions per second", AxisScale::Linear)],
        ChartBody::Boxes { boxes },
    ))
}

/// Points if there are few values, else a box with outliers; `None` without values.
pub(crate) fn boxed(values: Vec<f64>) -> Option<Boxed> {
    let found = box_figures(values.iter().copied())?;
    let few = found.count < BOX_MIN;
    let step = found.outside.len().div_ceil(OUTSIDE_MAX).max(1);
    let points = if few { values } else { found.outside.into_iter().step_by(step).collect() };
    Some(Boxed {
        name: String::new(),
        group: 0,
        count: found.count,
        median: rounded(found.median),
        quartiles: (!few).then(|| Quartiles {
            low: rounded(found.low),
            lower: rounded(found.lower_quartile),
            upper: rounded(found.upper_quartile),
            high: rounded(found.high),
        }),
        interval: None,
        points: points.into_iter().map(rounded).collect(),
    })
}

/// A line per setting and step; if there are too many, for the best step of every setting.
pub(crate) fn percentiles(settings: &[Setting]) -> Option<Chart> {
    let all = stages(settings);
    let few = all.len() <= LINES_MAX;
    let single = settings.iter().all(|setting| setting.trials.iter().all(|trial| trial.findings.stages.len() == 1));
    let shown = all.into_iter().filter(|one| few || single || one.stages.iter().any(|stage| stage.best));
    let lines: Vec<ChartLine> = shown.take(LINES_MAX).map(|one| percentile_line(&one)).collect();
    let banded = lines.iter().any(|line| !line.band.is_empty());
    Some(Chart::new(
        "percentiles",
        "Response time by percentile",
        if banded { "log scale; band: range" } else { "log scale" },
        [axis("percentile", AxisScale::Nines), axis("response time, ms", AxisScale::Log)],
        ChartBody::Lines { lines },
    ))
}

/// The curves of all trials have the same percentiles, up to their ends. The line ends where the first of them does:
/// the median of fewer trials may be lower than that of all, and a distribution has no percentile below another.
fn percentile_line(one: &Stages) -> ChartLine {
    let curves = one.stages.iter().map(|stage| &stage.total.response_curve).filter(|curve| !curve.is_empty());
    let curves: Vec<&Vec<(f64, u64)>> = curves.collect();
    let mut line = ChartLine::new(&one.name, one.group);
    let length = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    for at in 0..length {
        let values = curves.iter().map(|curve| rounded(curve[at].1 as f64 / 1e6));
        let values: Vec<f64> = values.filter(|ms| *ms > 0.0).collect();
        if values.len() == curves.len() {
            line.push(rounded(curves[0][at].0), &values);
        }
    }
    if one.stages.len() == 1 {
        line.band.clear();
    }
    line
}

/// Stages with one number of sessions, or of a search with one rate, from all trials of a setting.
struct Stages<'a> {
    /// The shortest length that can be distinguished.
    name: String,
    group: usize,
    stages: Vec<&'a StageFindings>,
}

fn stages<'a>(settings: &[Setting<'a>]) -> Vec<Stages<'a>> {
    let mut all = Vec::new();
    for setting in settings {
        let mut of_setting: Vec<Stages> = Vec::new();
        for findings in setting.trials.iter().map(|trial| &trial.findings) {
            for stage in findings.stages.iter().take(STAGES_MAX) {
                let name = step(findings, stage);
                match of_setting.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.stages.push(stage),
                    None => of_setting.push(Stages { name, group: setting.number, stages: vec![stage] }),
                }
            }
        }
        let ladder = of_setting.len() > 1;
        all.extend(of_setting.into_iter().map(|one| {
            let name = match (settings.len() > 1, ladder) {
                (false, _) => one.name.clone(),
                (true, false) => setting.name.to_owned(),
                (true, true) => format!("{}, {}", setting.name, one.name),
            };
            Stages { name: clean(&name, NAME_WIDTH), ..one }
        }));
    }
    all
}
