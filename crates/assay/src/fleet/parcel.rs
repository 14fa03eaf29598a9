//! The contents of an order: the words of a command line, and the files that they name.

use std::path::{Path, PathBuf};

use assay_fleet::File;

use crate::diagnostics::{Exit, Trouble};

/// Options that are the coordinator's alone: where results go, where the bus is, and what holds passwords of others.
const OURS: [&str; 15] = [
    "db",
    "fleet",
    "agents",
    "fleet-creds",
    "fleet-ca",
    "lease",
    "record",
    "tag",
    "journal",
    "pooler",
    "host-metrics",
    "metrics-listen",
    "trials",
    "format",
    "telemetry",
];
/// The same without a value.
const OUR_SWITCHES: [&str; 7] = ["db-from-agent-env", "no-record", "force", "quiet", "verbose", "prepare", "check"];

/// The words for agents: those of the command line without what is the coordinator's, and without the databases, which
/// are said apart.
pub fn words(all: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = all.iter();
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").unwrap_or_default();
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = name.replace('_', "-");
        if OURS.contains(&name.as_str()) {
            if value.is_none() {
                words.next();
            }
        } else if !OUR_SWITCHES.contains(&name.as_str()) && word != "-v" {
            kept.push(word.clone());
        }
    }
    kept
}

/// The files that the words name: the script with the modules beside it, and arrival times. `bytes_max`: of all.
pub fn files(workload: &str, rate_file: Option<&Path>, bytes_max: usize) -> Result<Vec<File>, Trouble> {
    let mut files = Vec::new();
    let script = Path::new(workload);
    if script.is_file() {
        let folder = script.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push(File { word: workload.to_owned(), path: format!("script/{name}"), text: read(script)? });
        for path in modules(folder) {
            if path.file_name() != script.file_name() || path.parent() != Some(folder) {
                let below = path.strip_prefix(folder).unwrap_or(&path);
                let path_there = format!("script/{}", below.display());
                files.push(File { word: String::new(), path: path_there, text: read(&path)? });
            }
        }
    }
    if let Some(path) = rate_file {
        files.push(File { word: path.display().to_string(), path: "rate-file".to_owned(), text: read(path)? });
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
    std::fs::read_to_string(path)
        .map_err(|error| Trouble::environment(format!("cannot read {}: {error}", path.display())))
}

/// Puts the files into a folder; the words, which name them there.
pub fn unpack(words: &[String], files: &[File], folder: &Path) -> Result<Vec<String>, Trouble> {
    let failed = |error: std::io::Error| Trouble::environment(format!("cannot store the script: {error}"));
    let mut words = words.to_vec();
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
        if file.word.is_empty() {
            continue;
        }
        for word in &mut words {
            if *word == file.word {
                *word = path.display().to_string();
            } else if let Some((option, value)) = word.split_once('=')
                && option.starts_with("--")
                && value == file.word
            {
                *word = format!("{option}={}", path.display());
            }
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn agents_get_the_words_that_say_what_to_do() {
        let all = line(
            "assay run my.lua --db postgres://a@b/c --fleet nats://u:p@h --agents 3 --sessions 5 --tag=a=b --record x -v \
             --db_from_agent_env --table_size=5",
        );
        assert_eq!(words(&all), line("assay run my.lua --sessions 5 --table_size=5"));
    }

    #[test]
    fn a_script_travels_with_its_modules_and_is_found_again() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let script = here.path().join("my.lua");
        std::fs::create_dir(here.path().join("lib")).unwrap();
        for (name, text) in [("my.lua", "-- one"), ("other.lua", "-- two"), ("lib/x.lua", "-- three"), ("notes", "no")]
        {
            std::fs::write(here.path().join(name), text).unwrap();
        }
        let name = script.display().to_string();
        let files = files(&name, None, 1000).unwrap();
        assert!(super::files(&name, None, 10).is_err());
        let given = vec!["assay".to_owned(), "run".to_owned(), name, "--rate=5".to_owned()];
        let words = unpack(&given, &files, there.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&words[2]).unwrap(), "-- one");
        assert_eq!(words[3], "--rate=5");
        assert!(there.path().join("script/lib/x.lua").is_file() && !there.path().join("script/notes").exists());
        let outside = File { word: String::new(), path: "../x".to_owned(), text: String::new() };
        assert!(unpack(&given, &[outside], there.path()).is_err());
    }
}
