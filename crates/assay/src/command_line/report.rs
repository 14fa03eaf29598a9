//! Options of `assay report`.

use assay_report::{ChartKind, OfTrials};
use assay_seam::Nanos;
use assay_spec::values;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Options of `report`. A `-` instead of a file is stdout.
#[derive(Args, Clone)]
pub struct ReportOptions {
    /// Records written by `assay run`; records with the same settings are grouped as trials
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<std::path::PathBuf>,
    /// HTML page with charts: one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<std::path::PathBuf>,
    /// Summary and tables in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<std::path::PathBuf>,
    /// CSV with one row per interval, and one per interval for each transaction type and statement class
    #[arg(long, value_name = "FILE")]
    pub csv: Option<std::path::PathBuf>,
    /// CSV of server and machine telemetry: one row per reading, with time, scope, metric and value
    #[arg(long, value_name = "FILE")]
    pub telemetry_csv: Option<std::path::PathBuf>,
    /// Folder for tables as Parquet files: trials.parquet, intervals.parquet and telemetry.parquet
    #[arg(long, value_name = "FOLDER")]
    pub parquet: Option<std::path::PathBuf>,
    /// JSON with all findings and the data of every chart
    #[arg(long, value_name = "FILE")]
    pub json: Option<std::path::PathBuf>,
    /// Final results in the OpenMetrics format, for Prometheus
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<std::path::PathBuf>,
    /// CSV with one row per record, oldest first, for change point detection with Apache Otava
    #[arg(long, value_name = "FILE")]
    pub otava: Option<std::path::PathBuf>,
    /// Charts as files.
    #[command(flatten)]
    pub pictures: PictureFiles,
    /// Show each agent of a fleet separately: in the text, the page and the Markdown
    #[arg(long, conflicts_with_all = ["last", "from", "to"])]
    pub agents: bool,
    /// Address at which the page will stand, such as https://host/bench.html, so that links to it are shown with a
    /// chart: a PNG of the first one is written beside the page
    #[arg(long, value_name = "URL", requires = "html", value_parser = address)]
    pub address: Option<String>,
    /// Leave out places: URLs, paths, names of machines, command lines of kernels and processes
    #[arg(long)]
    pub public: bool,
    /// Title of the page, the Markdown and the charts [default: workload and server; for a chart, what it shows]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Window, charts and tables of settings.
    #[command(flatten)]
    pub shown: ShownOptions,
}

/// Charts as files.
#[derive(Args, Clone)]
pub struct PictureFiles {
    /// Folder for the charts as SVG files
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<std::path::PathBuf>,
    /// Folder for the charts as PNG files
    #[arg(long, value_name = "FOLDER")]
    pub png: Option<std::path::PathBuf>,
    /// Width and height of charts; a PNG has twice as many pixels in each direction
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "960x460", value_parser = picture_size)]
    pub size: (u32, u32),
    /// Background of charts
    #[arg(long, value_name = "light|dark", hide_possible_values = true, value_enum, default_value = "light")]
    pub theme: Theme,
}

/// Which part of runs is shown, and how their settings are put beside each other.
#[derive(Args, Clone)]
pub struct ShownOptions {
    /// Use only the end of each run
    #[arg(long, value_name = "DURATION", value_parser = values::duration, conflicts_with_all = ["from", "to"], help_heading = "Window")]
    pub last: Option<Nanos>,
    /// Use each run from this time on; `steady`: from the start of its steady part
    #[arg(long, value_name = "TIME|steady", value_parser = window_start, help_heading = "Window")]
    pub from: Option<WindowStart>,
    /// Use each run up to this time
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Window")]
    pub to: Option<Nanos>,
    /// Chart of the settings, over time or over --x (docs/charts.md); may be repeated
    #[arg(
        long,
        value_name = "KIND",
        value_parser = chart_kinds(),
        help_heading = "Charts and tables of settings"
    )]
    pub chart: Vec<ChartKind>,
    /// Factor on the x axis: a setting, option, fact or tag that differs, `sessions`, or `setting` for all remaining
    /// differences
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub x: Option<String>,
    /// Factor shown as colors
    #[arg(long = "color", alias = "colour", value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub color: Option<String>,
    /// Factor shown as panels side by side
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub facet: Option<String>,
    /// Factor shown as rows of panels: a grid with --facet as its columns
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub facet_rows: Option<String>,
    /// Give each panel a vertical axis of its own; otherwise panels in a row share one
    #[arg(long, help_heading = "Charts and tables of settings")]
    pub own_scales: bool,
    /// Note at a time since the start, in every chart over time, such as 12:30=checkpoint; may be repeated
    #[arg(long, value_name = "TIME=TEXT", value_parser = mark, help_heading = "Charts and tables of settings")]
    pub mark: Vec<(f64, String)>,
    /// Pivot table with one row per level of this factor
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub rows: Option<String>,
    /// Factor with one column per level
    #[arg(long, value_name = "FACTOR", requires = "rows", help_heading = "Charts and tables of settings")]
    pub columns: Option<String>,
    /// Metrics as in `assay compare`; over time also telemetry, such as server.log_bytes
    #[arg(
        long,
        value_name = "METRIC,…",
        value_delimiter = ',',
        default_value = "tps",
        help_heading = "Charts and tables of settings"
    )]
    pub value: Vec<String>,
    /// Level to which the others are compared as ratios; `best`: all values in percent of the best
    #[arg(long, value_name = "LEVEL", help_heading = "Charts and tables of settings")]
    pub ratio_to: Option<String>,
    /// Factor of which only the best level is shown, in each place by itself: the curve of bests
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub best_of: Option<String>,
    /// Over time: show all steps of a ladder one after the other, instead of a panel for each
    #[arg(long, help_heading = "Charts and tables of settings")]
    pub whole_run: bool,
    /// Trials to use in tables: all, worst, best or second-best
    #[arg(
        long,
        value_name = "TRIALS",
        value_parser = of_trials(),
        hide_possible_values = true,
        default_value = "all",
        help_heading = "Charts and tables of settings"
    )]
    pub of: OfTrials,
}

/// Where a window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowStart {
    /// Since the start of the measured part.
    At(Nanos),
    /// Where throughput was steady.
    Steady,
}

/// `12:30=checkpoint`, `1:02:30=…`, `750s=…`: seconds since the start, and the text.
fn mark(text: &str) -> Result<(f64, String), String> {
    let wrong = || "expected a time and a text, such as 12:30=checkpoint or 90s=restart".to_owned();
    let (time, words) = text.split_once('=').filter(|(_, words)| !words.is_empty()).ok_or_else(wrong)?;
    let parts: Vec<&str> = time.split(':').collect();
    let seconds = match &parts[..] {
        [_] => values::duration(time).map_err(|_| wrong())?.0 as f64 / 1e9,
        [first, others @ ..] if others.len() <= 2 => {
            let part = |text: &str| text.parse::<u32>().map_err(|_| wrong());
            let is_sixtieth = |text: &&str| text.len() == 2 && text.parse::<u32>().is_ok_and(|value| value < 60);
            if !others.iter().all(is_sixtieth) {
                return Err(wrong());
            }
            let first = f64::from(part(first)?);
            others.iter().try_fold(first, |sum, text| Ok::<_, String>(sum * 60.0 + f64::from(part(text)?)))?
        }
        _ => return Err(wrong()),
    };
    Ok((seconds, words.to_owned()))
}

fn chart_kinds() -> impl TypedValueParser<Value = ChartKind> {
    let names = PossibleValuesParser::new(ChartKind::ALL.map(ChartKind::name));
    names.map(|name| ChartKind::of_name(&name).expect("other names are refused"))
}

fn of_trials() -> impl TypedValueParser<Value = OfTrials> {
    let names = PossibleValuesParser::new(OfTrials::ALL.map(OfTrials::name));
    names.map(|name| OfTrials::of_name(&name).expect("other names are refused"))
}

fn window_start(text: &str) -> Result<WindowStart, String> {
    match text {
        "steady" => Ok(WindowStart::Steady),
        text => values::duration(text).map(WindowStart::At).map_err(|reason| match reason.starts_with("expected") {
            true => format!("{reason}, or steady"),
            false => reason,
        }),
    }
}

/// Background of charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Theme {
    /// White.
    Light,
    /// Nearly black.
    Dark,
}

fn picture_size(text: &str) -> Result<(u32, u32), String> {
    let sizes = assay_report::PICTURE_SIZES;
    let wrong = || format!("expected two numbers from {} to {}, such as 1200x600", sizes.start(), sizes.end());
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let one = |text: &str| text.parse().ok().filter(|size| sizes.contains(size)).ok_or_else(wrong);
    Ok((one(width)?, one(height)?))
}

/// The address of a page on the web.
fn address(text: &str) -> Result<String, String> {
    let is_web = ["https://", "http://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    if is_web { Ok(text.to_owned()) } else { Err("expected an address such as https://host/bench.html".to_owned()) }
}
