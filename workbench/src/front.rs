//! The terminal screen and the chart at the top of README.md: from the record of a real run in the tree, so that they
//! show what today's program makes of it. A test of the binary compares them.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use testkit::{Kind, ServerSetup};

use xtask::steps::{cargo, root, run};

#[derive(Args)]
pub(crate) struct Options {
    /// Make a new run first, for a minute, on a PostgreSQL of its own
    #[arg(long)]
    run: bool,
}

const FOLDER: &str = "docs/front";
const RECORD: &str = "docs/front/run.json.zst";
const BEGIN: &str = "<!-- written by `cargo xtask front` from here -->\n";
const END: &str = "<!-- to here -->\n";
/// The command as shown; the record has the complete one.
const TYPED: &str = "assay run oltp_read_write --db postgres://app@host/bench --tables 4 --table-size 100k \\
      --sessions 16 --rate 200 --time 1m --warmup 5s";
/// The part of the report above the details.
const LINES: usize = 24;
const CHART: &str = "oltp_read_write-latency";

/// Writes screen and chart from the record in the tree.
pub(crate) fn run_all(options: &Options) -> Result<()> {
    fs::create_dir_all(root().join(FOLDER))?;
    if options.run {
        measure()?;
    }
    let pictures = tempfile::tempdir()?;
    for theme in ["light", "dark"] {
        let folder = pictures.path().join(theme);
        let folder_name = folder.to_str().context("a folder whose name is not text")?;
        run(&mut assay(&["report", RECORD, "--size", "860x330", "--theme", theme, "--svg", folder_name]))?;
        fs::copy(folder.join(format!("{CHART}.svg")), root().join(format!("{FOLDER}/latency-{theme}.svg")))?;
    }
    let output = assay(&["show", RECORD]).output()?;
    ensure!(output.status.success(), "assay show: {}", String::from_utf8_lossy(&output.stderr));
    let report = String::from_utf8(output.stdout)?;
    let head: Vec<&str> = report.trim().lines().take(LINES).collect();
    let screen = format!("```text\n$ {TYPED}\n{}\n…\n```\n", head.join("\n"));
    let path = root().join("README.md");
    let text = fs::read_to_string(&path)?;
    fs::write(&path, between(&text, &screen).context("README.md lost the marks between which the screen stands")?)?;
    Ok(())
}

/// `text` with new content between the marks.
fn between(text: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{new}{END}{after}"))
}

/// An open loop on a PostgreSQL of its own.
fn measure() -> Result<()> {
    let settings =
        ServerSetup { config: vec!["fsync = on".into(), "shared_buffers = 256MB".into()], ..ServerSetup::default() };
    let server = Kind::Postgres.start(&settings)?;
    let url = server.url(&server.fresh_database()?);
    let tables = ["--db", &url, "--tables", "4", "--table-size", "100k"];
    run(assay(&["prepare", "oltp_read_write"]).args(tables))?;
    let record = root().join(RECORD);
    if record.exists() {
        fs::remove_file(&record)?;
    }
    let load = ["--sessions", "16", "--rate", "200", "--time", "1m", "--warmup", "5s", "--quiet", "--record", RECORD];
    run(assay(&["run", "oltp_read_write"]).args(tables).args(load))
}

/// The program of this tree, in its root.
fn assay(words: &[&str]) -> Command {
    let mut command = cargo(&["run", "--quiet", "--bin", "assay", "--"]);
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn the_readme_has_a_place_for_screen_and_chart() {
        let readme = fs::read_to_string(root().join("README.md")).unwrap();
        let changed = between(&readme, "new\n").unwrap();
        assert!(changed.contains(&format!("{BEGIN}new\n{END}")));
        assert_eq!(between(&changed, "").unwrap(), between(&readme, "").unwrap());
        let files: Vec<PathBuf> = ["run.json.zst", "latency-light.svg", "latency-dark.svg"]
            .map(|name| Path::new(FOLDER).join(name))
            .into_iter()
            .filter(|path| !root().join(path).is_file() || !readme.contains("docs/front/"))
            .collect();
        assert!(files.is_empty(), "missing: {files:?}");
    }
}
