//! `assay report RECORD…`: pages, tables, charts and time series from one or more records.
//!
//! assay-report creates everything; this file reads records and writes files. Nothing is written before every record
//! was read.

use std::fs;
use std::path::{Path, PathBuf};

use assay_process::diagnostics::{self, Exit, Trouble};
use assay_process::{files, terminal};
use assay_record::Record;
use assay_report::{
    Chart, ChartAsked, ChartKind, DataTable, Experiment, Findings, NoChart, NoWindow, PictureOptions, PivotAsked,
    Report, ShowAsked, Shown, StageFindings, SteadyFindings, View, Window,
};

use crate::command_line::{PictureFiles, ReportOptions, ShownOptions, Theme, WindowStart};
use crate::commands::trials;

/// More records than this are an archive, not a report.
pub const RECORDS_MAX: usize = 200;

/// Writes what was requested; without a request, the report of every record to stdout.
pub fn run(options: &ReportOptions) -> Result<Exit, Trouble> {
    if options.records.len() > RECORDS_MAX {
        return Err(Trouble::usage(format!("{} records are too many for one report", options.records.len()))
            .hint(format!("the maximum is {RECORDS_MAX}")));
    }
    let window = window(&options.shown)?;
    may_write_all(options)?;
    let needs_readings = options.telemetry_csv.is_some() || options.parquet.is_some() || asks_for_more(&options.shown);
    // A window sums up the histograms of its intervals.
    let reads = if window.is_some() { Record::read } else { Record::read_thinned };
    let trials = trials::read(&options.records, reads, |path, record| {
        let mut findings = match options.public {
            true => found(path, &public(path, record)?, window)?,
            false => found(path, record, window)?,
        };
        if !needs_readings {
            assay_report::forget_undrawn(&mut findings);
        }
        Ok(findings)
    })?;
    let mut records = trials::pairs(trials);
    if options.public {
        records.iter_mut().for_each(|(file, _)| *file = name_of(file));
    }
    let preview = preview(options)?;
    let report = Report {
        title: options.title.clone(),
        picture: preview.as_ref().map(|(address, _)| address.clone()),
        agents: options.agents,
        notes: options.shown.mark.clone(),
        ..assay_report::report(records)
    };
    match window {
        None => suggest_steady(&report),
        Some(Window::Last { ns }) => say_if_whole(&report, ns),
        Some(_) => {}
    }
    let shown = shown(&report, &options.shown)?;
    type Output = fn(&Report, &[Shown]) -> Result<String, Trouble>;
    let outputs: [(_, Output); 7] = [
        (&options.html, |report, shown| Ok(assay_report::html(report, shown))),
        (&options.markdown, |report, shown| Ok(assay_report::markdown(report, shown))),
        (&options.csv, |report, shown| match shown {
            [] => Ok(assay_report::intervals_csv(report)),
            shown => Ok(assay_report::shown_csv(shown)),
        }),
        (&options.telemetry_csv, |report, _| Ok(assay_report::telemetry_csv(report))),
        (&options.json, |report, shown| Ok(assay_report::report_json(report, shown))),
        (&options.prometheus, |report, _| Ok(assay_report::prometheus(report))),
        (&options.otava, |report, _| {
            let mixed = |error: assay_report::MixedSeries| Trouble::usage(error.to_string());
            assay_report::change_points_csv(report).map_err(mixed)
        }),
    ];
    // All of them are created before the first is written: one may fail.
    let mut texts = Vec::new();
    for (path, output) in outputs {
        if let Some(path) = path {
            texts.push((path, output(&report, &shown)?));
        }
    }
    let asked_for: Vec<&Chart> = shown.iter().filter_map(Shown::chart).collect();
    let draws = preview.is_some() || options.pictures.svg.is_some() || options.pictures.png.is_some();
    let all = (draws && asked_for.is_empty()).then(|| assay_report::charts(&report));
    let charts: Vec<&Chart> = all.as_ref().map_or(asked_for, |all| all.iter().collect());
    let mut asked = !texts.is_empty() || options.parquet.is_some();
    for (path, text) in texts {
        write(path, text.as_bytes())?;
    }
    if let Some(folder) = &options.parquet {
        folder_for(folder, "parquet", "one file per table")?;
        for table in DataTable::ALL {
            let path = folder.join(format!("{}.parquet", table.name()));
            write_bytes(&path, &assay_report::parquet(&report, table))?;
        }
    }
    let looks = looks(&options.pictures, options.title.clone());
    if let (Some((_, path)), Some(first)) = (&preview, charts.first()) {
        let (width, height) = PREVIEW_SIZE;
        write(path, &assay_report::png(first, &PictureOptions { width, height, ..looks.clone() }))?;
    }
    asked |= draw(&options.pictures, &charts, &looks)?;
    if !asked && !shown.is_empty() {
        terminal::result(&assay_report::shown_text(&shown, terminal::view(false).width))?;
    } else if !asked {
        for entry in &report.entries {
            let view = View { agents: options.agents, ..terminal::view(false) };
            terminal::result(&format!("{}\n", assay_report::text_in(&entry.findings, view)))?;
        }
        if let Some(compared) = assay_report::suites(&report) {
            terminal::result(&assay_report::suites_text(&compared, terminal::view(false).width))?;
        }
    }
    // The process ends: freeing a million small pieces would be for nothing.
    std::mem::forget(report);
    Ok(Exit::Success)
}

/// Reading records may take long: what cannot be written is refused before.
fn may_write_all(options: &ReportOptions) -> Result<(), Trouble> {
    let files = [
        ("html", &options.html),
        ("markdown", &options.markdown),
        ("csv", &options.csv),
        ("telemetry-csv", &options.telemetry_csv),
        ("json", &options.json),
        ("prometheus", &options.prometheus),
        ("otava", &options.otava),
    ];
    let refused = |option: &str, path: &Path, why: String| {
        Trouble::environment(format!("cannot write {}", path.display())).detail(format!("--{option}: {why}"))
    };
    for (option, path) in files.iter().filter_map(|(option, path)| Some((option, path.as_ref()?))) {
        if path != Path::new("-") {
            files::may_write(path).map_err(|why| refused(option, path, why))?;
        }
    }
    let folders = [
        ("parquet", &options.parquet, "one file per table"),
        ("svg", &options.pictures.svg, "one file per chart"),
        ("png", &options.pictures.png, "one file per chart"),
    ];
    for (option, path, what) in folders.iter().filter_map(|(option, path, what)| Some((option, path.as_ref()?, what))) {
        files::may_fill(path).map_err(|why| match path.is_file() {
            true => refused(option, path, why).hint(format!("--{option} needs a folder: it writes {what}")),
            false => refused(option, path, why),
        })?;
    }
    Ok(())
}

fn looks(asked: &PictureFiles, title: Option<String>) -> PictureOptions {
    PictureOptions {
        title,
        width: asked.size.0,
        height: asked.size.1,
        theme: match asked.theme {
            Theme::Light => assay_report::Theme::Light,
            Theme::Dark => assay_report::Theme::Dark,
        },
    }
}

/// Writes charts in the formats that were requested, if any.
pub fn pictures(asked: &PictureFiles, charts: &[&Chart]) -> Result<(), Trouble> {
    draw(asked, charts, &looks(asked, None)).map(drop)
}

/// Whether any format was requested.
fn draw(asked: &PictureFiles, charts: &[&Chart], looks: &PictureOptions) -> Result<bool, Trouble> {
    type Picture = fn(&Chart, &PictureOptions) -> Vec<u8>;
    let formats: [(_, &str, Picture); 2] = [
        (&asked.svg, "svg", |chart, looks| assay_report::svg(chart, looks).into_bytes()),
        (&asked.png, "png", assay_report::png),
    ];
    for (folder, ending, picture) in formats {
        let Some(folder) = folder else { continue };
        folder_for(folder, ending, "one file per chart")?;
        for chart in charts {
            write(&folder.join(format!("{}.{ending}", chart.file)), &picture(chart, looks))?;
        }
    }
    Ok(asked.svg.is_some() || asked.png.is_some())
}

/// A PNG has twice as many pixels in both directions: 1200 × 640, which previews show whole.
const PREVIEW_SIZE: (u32, u32) = (600, 320);

/// The picture for previews of links to the page: its address, and its file.
fn preview(options: &ReportOptions) -> Result<Option<(String, PathBuf)>, Trouble> {
    let (Some(address), Some(page)) = (&options.address, &options.html) else { return Ok(None) };
    let Some(name) = page.file_stem().filter(|_| page != Path::new("-")) else {
        return Err(Trouble::usage("--address needs a page in a file: its picture is written beside it"));
    };
    let name = format!("{}.png", name.to_string_lossy());
    let folder = address.rsplit_once('/').map_or(address.as_str(), |(folder, _)| folder);
    Ok(Some((format!("{folder}/{name}"), page.with_file_name(name))))
}

/// Of very many names, the ones that were probably meant.
fn unfit(error: NoChart) -> Trouble {
    const KNOWN_MAX: usize = 12;
    let NoChart::Unknown(unknown) = &error else { return Trouble::usage(error.to_string()) };
    let known: Vec<&str> = unknown.known.split(", ").collect();
    if known.len() <= KNOWN_MAX {
        return Trouble::usage(error.to_string());
    }
    let near = diagnostics::nearest_few(&unknown.name, known, 3).join(", ");
    Trouble::usage(format!("no {} {:?}", unknown.what, unknown.name))
        .hint(format!("the nearest are {near}; `assay list metrics` lists all"))
}

fn public(path: &Path, record: &Record) -> Result<Record, Trouble> {
    let unknown = || Trouble::environment(format!("cannot leave out the places in {}", path.display()));
    record.clone().public().ok_or_else(unknown)
}

/// The file's name without its folder.
fn name_of(file: &str) -> String {
    Path::new(file).file_name().map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Says that `--last` leaves nothing out.
fn say_if_whole(report: &Report, last_ns: u64) {
    let stages = || report.entries.iter().flat_map(|entry| &entry.findings.stages);
    if stages().next().is_some() && stages().all(|stage| stage.measured_ns < last_ns) {
        terminal::say("note: no run is as long as --last: everything is shown\n");
    }
}

/// The part of each run that is wanted; `None`: all of it.
fn window(options: &ShownOptions) -> Result<Option<Window>, Trouble> {
    let to_ns = options.to.map(|to| to.0);
    let window = match (options.last, options.from) {
        (Some(last), _) => Window::Last { ns: last.0 },
        (None, Some(WindowStart::Steady)) => Window::Steady { to_ns },
        (None, Some(WindowStart::At(from))) => Window::Between { from_ns: from.0, to_ns },
        (None, None) if to_ns.is_some() => Window::Between { from_ns: 0, to_ns },
        (None, None) => return Ok(None),
    };
    match window {
        Window::Last { ns: 0 } => Err(Trouble::usage("--last 0s leaves nothing of the runs")),
        Window::Between { from_ns, to_ns: Some(to_ns) } if from_ns >= to_ns => {
            Err(Trouble::usage("--from is not before --to"))
        }
        window => Ok(Some(window)),
    }
}

fn found(path: &Path, record: &Record, window: Option<Window>) -> Result<Findings, Trouble> {
    let Some(window) = window else { return Ok(assay_report::findings(record)) };
    assay_report::findings_within(record, window).map_err(|error| {
        let trouble = Trouble::usage(format!("{} cannot be cut to the window: {error}", path.display()));
        match error {
            NoWindow::NotSteady => trouble.hint("name the part: --last 60s, or --from 1m --to 2m"),
            _ => trouble,
        }
    })
}

/// What comes before the steady part affects every figure unless it is left out.
fn suggest_steady(report: &Report) {
    let late = |stage: &StageFindings| match stage.throughput.steady {
        Some(SteadyFindings::Steady { start_ns, .. }) => start_ns > 0,
        _ => false,
    };
    let stages = || report.entries.iter().flat_map(|entry| &entry.findings.stages);
    let number = stages().filter(|stage| late(stage)).count();
    let is_steady = |stage: &StageFindings| matches!(stage.throughput.steady, Some(SteadyFindings::Steady { .. }));
    if number > 0 && stages().all(is_steady) {
        terminal::say("hint: these runs were not steady from the start: --from steady uses their steady part only\n");
    }
}

/// Whether charts or tables of settings are requested, which may be about any reading.
fn asks_for_more(options: &ShownOptions) -> bool {
    let places = [&options.x, &options.color, &options.facet, &options.facet_rows, &options.rows];
    !options.chart.is_empty() || places.iter().any(|place| place.is_some())
}

/// The requested charts and tables of settings.
fn shown(report: &Report, options: &ShownOptions) -> Result<Vec<Shown>, Trouble> {
    let places = [&options.x, &options.color, &options.facet, &options.facet_rows];
    let axes = places.into_iter().chain([&options.rows, &options.columns, &options.best_of]);
    let mut axes: Vec<String> = axes.flatten().cloned().collect();
    let kinds = match (&options.chart[..], &options.rows) {
        // A place for a factor is enough to ask for the chart that it suits.
        ([], None) if options.x.is_some() => vec![ChartKind::Boxes],
        ([], None) if options.facet.is_some() || options.facet_rows.is_some() => vec![ChartKind::Dots],
        ([], None) if options.color.is_some() => vec![ChartKind::Lines],
        (kinds, _) => kinds.to_vec(),
    };
    if kinds.is_empty() && options.rows.is_none() {
        return match options.ratio_to {
            Some(_) => Err(Trouble::usage("--ratio-to needs a table (--rows) or a chart (--chart bars)")),
            None => Ok(Vec::new()),
        };
    }
    // Without placed factors, everything that differs gets a place.
    if axes.iter().all(|axis| axis == "sessions") {
        axes.push("setting".to_owned());
    }
    let mut asked = Vec::new();
    for value in options.value.iter().filter(|_| options.rows.is_some()) {
        asked.push(ShowAsked::Table(PivotAsked {
            rows: options.rows.clone().unwrap_or_default(),
            only: Vec::new(),
            columns: options.columns.clone(),
            value: value.clone(),
            ratio_to: options.ratio_to.clone(),
            of: options.of,
            best_of: options.best_of.clone(),
            fault_above: None,
        }));
    }
    let of_chart = options.ratio_to.clone().filter(|base| options.rows.is_none() || base == assay_report::BEST);
    for kind in kinds {
        asked.push(ShowAsked::Chart(ChartAsked {
            kind,
            x: options.x.clone(),
            color: options.color.clone(),
            facet: options.facet.clone(),
            facet_rows: options.facet_rows.clone(),
            own_scales: options.own_scales,
            values: options.value.clone(),
            ratio_to: of_chart.clone(),
            references: Vec::new(),
            best_of: options.best_of.clone(),
            whole_run: options.whole_run,
        }));
    }
    let experiment = Experiment::of_report(report, &axes).map_err(|error| unfit(error.into()))?;
    let mut shown = assay_report::shown(&experiment, &asked).map_err(unfit)?;
    shown.iter_mut().for_each(|one| one.note(&options.mark));
    Ok(shown)
}

/// Writes `content` to a file and reports it, or to stdout.
fn write(path: &Path, content: &[u8]) -> Result<(), Trouble> {
    // Except in pictures.
    let text = std::str::from_utf8(content).map(|text| assay_report::visible(text, false));
    let content = text.as_ref().map_or(content, |text| text.as_bytes());
    write_bytes(path, content)
}

fn folder_for(folder: &Path, option: &str, what: &str) -> Result<(), Trouble> {
    fs::create_dir_all(folder).map_err(|error| {
        let trouble = unwritable(folder, &error);
        if !folder.is_file() {
            return trouble;
        }
        trouble.hint(format!("--{option} needs a folder: it writes {what}"))
    })
}

/// What is not text, as it is.
fn write_bytes(path: &Path, content: &[u8]) -> Result<(), Trouble> {
    if path == Path::new("-") {
        return Ok(terminal::result_bytes(content)?);
    }
    files::write(path, content).map_err(|error| unwritable(path, &error))?;
    terminal::say(&format!("wrote {}\n", path.display()));
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::environment(format!("cannot write {}", path.display())).detail(error.to_string())
}
