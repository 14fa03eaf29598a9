//! `assay report RECORD…`: pages, tables, pictures and series of what one or several runs left behind.
//!
//! Everything is made in assay-report; here records are read and files are written. Nothing is written before every record
//! was read.

use std::fs;
use std::path::Path;

use assay_report::{Chart, PictureOptions, Report};

use crate::command_line::{ReportOptions, Theme};
use crate::commands::show;
use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// More records than this are no report but an archive.
const RECORDS_MAX: usize = 200;

/// Writes what was asked for; with nothing asked for, the report of every record to stdout.
pub fn run(options: &ReportOptions) -> Result<Exit, Trouble> {
    if options.records.len() > RECORDS_MAX {
        return Err(Trouble::usage(format!("{} records are too many for one report", options.records.len()))
            .hint(format!("name at most {RECORDS_MAX}")));
    }
    let mut records = Vec::new();
    for path in &options.records {
        records.push((path.display().to_string(), assay_report::findings(&show::read(path)?)));
    }
    let report = Report { title: options.title.clone(), ..assay_report::report(records) };
    type Output = fn(&Report) -> Result<String, Trouble>;
    let outputs: [(_, Output); 7] = [
        (&options.html, |report| Ok(assay_report::html(report))),
        (&options.markdown, |report| Ok(assay_report::markdown(report))),
        (&options.csv, |report| Ok(assay_report::intervals_csv(report))),
        (&options.telemetry_csv, |report| Ok(assay_report::telemetry_csv(report))),
        (&options.json, |report| Ok(assay_report::report_json(report))),
        (&options.prometheus, |report| Ok(assay_report::prometheus(report))),
        (&options.otava, |report| {
            let mixed = |error: assay_report::MixedSeries| Trouble::usage(error.to_string());
            assay_report::change_points_csv(report).map_err(mixed)
        }),
    ];
    // All of them are made before the first is written: one may refuse.
    let mut texts = Vec::new();
    for (path, output) in outputs {
        if let Some(path) = path {
            texts.push((path, output(&report)?));
        }
    }
    let charts = assay_report::charts(&report);
    let mut asked = !texts.is_empty();
    for (path, text) in texts {
        write(path, text.as_bytes())?;
    }
    let looks = PictureOptions {
        title: options.title.clone(),
        width: options.size.0,
        height: options.size.1,
        theme: match options.theme {
            Theme::Light => assay_report::Theme::Light,
            Theme::Dark => assay_report::Theme::Dark,
        },
    };
    type Picture = fn(&Chart, &PictureOptions) -> Vec<u8>;
    let pictures: [(_, &str, Picture); 2] = [
        (&options.svg, "svg", |chart, looks| assay_report::svg(chart, looks).into_bytes()),
        (&options.png, "png", assay_report::png),
    ];
    for (folder, ending, picture) in pictures {
        if let Some(folder) = folder {
            asked = true;
            fs::create_dir_all(folder).map_err(|error| {
                let trouble = unwritable(folder, &error);
                if !folder.is_file() {
                    return trouble;
                }
                trouble.hint(format!("--{ending} takes a folder, for a picture of each chart"))
            })?;
            for chart in charts.iter() {
                write(&folder.join(format!("{}.{ending}", chart.file)), &picture(chart, &looks))?;
            }
        }
    }
    if !asked {
        for entry in &report.entries {
            terminal::result(&format!("{}\n", assay_report::text_in(&entry.findings, terminal::view(false))))?;
        }
    }
    Ok(Exit::Success)
}

/// Writes `content` to a file and says so, or to stdout.
fn write(path: &Path, content: &[u8]) -> Result<(), Trouble> {
    if path == Path::new("-") {
        return Ok(terminal::result_bytes(content)?);
    }
    fs::write(path, content).map_err(|error| unwritable(path, &error))?;
    terminal::say(&format!("wrote {}\n", path.display()));
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::environment(format!("cannot write {}", path.display())).detail(error.to_string())
}
