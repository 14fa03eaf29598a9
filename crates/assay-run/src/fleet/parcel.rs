//! The contents of an order: what to do, and the files that it names.

use std::path::{Path, PathBuf};

use assay_fleet::{File, Presence};
use assay_process::diagnostics::{Exit, Trouble};
use assay_spec::{Concealed, RunSpec, TelemetryLevel, TelemetrySpec};

/// What agents are asked to do: the load alone. What is read beside it, records and trials are the coordinator's.
/// `urls`: the databases; empty: each agent has its own.
pub fn spec(all: &RunSpec, urls: &[String], agents: &[Presence]) -> RunSpec {
    let mut spec = all.clone();
    spec.target.urls = urls.iter().map(|url| Concealed::from(url.as_str())).collect();
    spec.telemetry = TelemetrySpec { level: TelemetryLevel::Off, ..TelemetrySpec::default() };
    spec.tags.clear();
    (spec.trials, spec.prepare, spec.check, spec.server) = (1, false, false, None);
    let fewest_cpus = || agents.iter().map(|agent| agent.cpus).min().unwrap_or(1).into();
    spec.generator.workers = Some(spec.generator.workers.unwrap_or_else(fewest_cpus));
    spec
}

/// The files that a spec names: the script with the modules beside it, and arrival times. `bytes_max`: of all.
pub fn files(spec: &RunSpec, bytes_max: usize) -> Result<Vec<File>, Trouble> {
    let workload = &spec.workload.name;
    let mut files = Vec::new();
    let script = Path::new(workload);
    if script.is_file() {
        let folder = script.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push(File { name: workload.clone(), path: format!("script/{name}"), text: read(script)? });
        for path in modules(folder) {
            if path.file_name() != script.file_name() || path.parent() != Some(folder) {
                let below = path.strip_prefix(folder).unwrap_or(&path);
                let path_there = format!("script/{}", below.display());
                files.push(File { name: String::new(), path: path_there, text: read(&path)? });
            }
        }
    }
    if let Some(path) = &spec.load.rate_file {
        files.push(File { name: path.display().to_string(), path: "rate-file".to_owned(), text: read(path)? });
    }
    let bytes: usize = files.iter().map(|file| file.text.len()).sum();
    if bytes > bytes_max {
        return Err(Trouble::new(
            Exit::Fleet,
            format!("the script, the Lua files beside it and the arrival times have {bytes} bytes, but a message of this NATS server may have only {bytes_max}"),
        )
        .hint("put the script into a folder of its own, or raise max_payload of the NATS server"));
    }
    Ok(files)
}

/// Lua files in a folder, and in folders in it.
fn modules(folder: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let inner: Vec<PathBuf> = list(folder).iter().filter(|path| path.is_dir()).flat_map(|path| list(path)).collect();
    let is_lua = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "lua") && path.is_file();
    let mut found: Vec<PathBuf> = list(folder).into_iter().chain(inner).filter(is_lua).collect();
    found.sort();
    found
}

fn read(path: &Path) -> Result<String, Trouble> {
    assay_record::read_text(path, assay_record::LISTED_BYTES_MAX)
        .map_err(|error| Trouble::environment(format!("cannot read {}: {error}", path.display())))
}

/// Puts the files into a folder, where the spec then names them.
pub fn unpack(spec: &mut RunSpec, files: &[File], folder: &Path) -> Result<(), Trouble> {
    let failed = |error: std::io::Error| Trouble::environment(format!("cannot store the script: {error}"));
    for file in files {
        let is_inside = Path::new(&file.path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_inside {
            return Err(Trouble::new(
                Exit::Fleet,
                format!("the order contains a file outside its folder: {}", file.path),
            ));
        }
        let path = folder.join(&file.path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        std::fs::write(&path, &file.text).map_err(failed)?;
        if !file.name.is_empty() && spec.workload.name == file.name {
            spec.workload.name = path.display().to_string();
        }
        if spec.load.rate_file.as_deref() == Some(Path::new(&file.name)) {
            spec.load.rate_file = Some(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_asked_for_the_load_alone() {
        let mut all = RunSpec::default();
        for (name, text) in
            [("db", "postgres://a:b@h/d"), ("tag", "a=b"), ("check", "on"), ("trials", "3"), ("rate", "5")]
        {
            all = all.with(name, text).unwrap();
        }
        let agents = [4, 2].map(|cpus| Presence { cpus, ..Presence::default() });
        assert_eq!(spec(&all, &[], &agents).words(), ["run", "", "--rate=5", "--workers=2", "--telemetry=off"]);
        let urls = all.target.urls.iter().map(|url| url.reveal().to_owned()).collect::<Vec<_>>();
        assert_eq!(spec(&all, &urls, &agents).target, all.target);
    }

    #[test]
    fn a_script_travels_with_its_modules_and_is_found_again() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let script = here.path().join("my.lua");
        std::fs::create_dir(here.path().join("lib")).unwrap();
        for (name, text) in [
            ("my.lua", "-- one"),
            ("other.lua", "-- two"),
            ("lib/x.lua", "-- three"),
            ("notes", "no"),
            ("times", "0.1"),
        ] {
            std::fs::write(here.path().join(name), text).unwrap();
        }
        let mut spec = RunSpec::default();
        spec.workload.name = script.display().to_string();
        spec.load.rate_file = Some(here.path().join("times"));
        let files = files(&spec, 1000).unwrap();
        assert!(super::files(&spec, 10).is_err());
        unpack(&mut spec, &files, there.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&spec.workload.name).unwrap(), "-- one");
        assert_eq!(std::fs::read_to_string(spec.load.rate_file.as_ref().unwrap()).unwrap(), "0.1");
        assert!(there.path().join("script/lib/x.lua").is_file() && !there.path().join("script/notes").exists());
        let outside = File { name: String::new(), path: "../x".to_owned(), text: String::new() };
        assert!(unpack(&mut spec, &[outside], there.path()).is_err());
    }
}
