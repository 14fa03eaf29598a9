//! An experiment's folder: its recipe, its journal, records and logs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use assay_process::diagnostics::Trouble;
use assay_process::{files, terminal};
use assay_recipe::{JournalEvent, Recipe, TrialProgress, differences, line, public_setting};
use assay_record::{LISTED_BYTES_MAX, Time, WRITTEN_BYTES_MAX, read_end, read_file, read_text, text_without_secrets};
use serde_json::Value;

use crate::experiment::{Experiment, ExperimentChoice, JOURNAL, trouble};

/// The default folder of experiments.
pub const DEFAULT: &str = "assay-lab";

/// Bytes for the record and the logs of a trial.
const ROOM: usize = 1 << 20;
const RECIPE: &str = "recipe.toml";
const EXPERIMENT: &str = "experiment.json";

/// An experiment on disk.
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// With its scale and overridden values.
    pub recipe: Recipe,
    /// What the journal says.
    pub progress: TrialProgress,
    journal: Option<File>,
}

impl Folder {
    /// The default path of an experiment.
    pub fn usual(experiment: &Experiment) -> PathBuf {
        Path::new(DEFAULT).join(format!("{}-{}", experiment.name, &experiment.recipe.hash[..8]))
    }

    /// Creates the folder, or continues in it. Locked until the process ends.
    pub fn open(path: PathBuf, experiment: Experiment, choice: &ExperimentChoice) -> Result<Folder, Trouble> {
        check_place(&path)?;
        for folder in [path.clone(), path.join("records"), path.join("logs")] {
            fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        }
        let kept = path.join(EXPERIMENT);
        let recipe = experiment.recipe;
        if kept.exists() {
            let before = Folder::read(&path)?.recipe;
            if before.hash != recipe.hash {
                let differ = differences(&before.document, &recipe.document);
                let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
                let lines = differ.iter().map(|(path, a, b)| format!("{path}: {} -> {}", shown(a), shown(b)));
                return Err(Trouble::usage(format!("{} contains another experiment", path.display()))
                    .detail(lines.collect::<Vec<_>>().join("\n"))
                    .hint("choose another folder with --folder"));
            }
        }
        // Passwords stay in the recipe that the user keeps: an experiment's folder is passed on.
        let sets: Vec<String> = choice.set.iter().map(|set| public_setting(set)).collect();
        let asked = serde_json::json!({ "scale": choice.scale, "set": sets });
        for (name, text) in [(RECIPE, recipe.public_text()), (EXPERIMENT, format!("{asked:#}\n"))] {
            let file = path.join(name);
            // Usually unchanged when an experiment is resumed, which works on a full disk, too.
            if read_file(&file, WRITTEN_BYTES_MAX).is_ok_and(|known| known == text.as_bytes()) {
                continue;
            }
            files::write(&file, text).map_err(|error| unwritable(&file, &error))?;
        }
        let file = path.join(JOURNAL);
        let cut_off = read_end(&file, 1).is_ok_and(|text| text.last().is_some_and(|last| *last != b'\n'));
        let opened =
            File::options().create(true).append(true).open(&file).map_err(|error| unwritable(&file, &error))?;
        if opened.try_lock().is_err() {
            return Err(Trouble::environment(format!(
                "another assay process is running the experiment in {}",
                path.display()
            )));
        }
        let mut folder = Folder { progress: progress(&path), path, recipe, journal: Some(opened) };
        if cut_off {
            folder.append("\n")?;
        }
        let hash = folder.recipe.hash.clone();
        folder.add(JournalEvent::Opened { hash, at: now(), tool: env!("CARGO_PKG_VERSION").to_owned() })?;
        Ok(folder)
    }

    /// An existing experiment, read-only.
    pub fn read(path: &Path) -> Result<Folder, Trouble> {
        let read = |name: &str| {
            let file = path.join(name);
            read_text(&file, WRITTEN_BYTES_MAX).map_err(|error| {
                Trouble::environment(format!("{} is not an experiment's folder", path.display()))
                    .detail(format!("{}: {error}", file.display()))
            })
        };
        if !path.join(RECIPE).exists() && all_in(path).next().is_some() {
            return Err(Trouble::usage(format!("{} contains experiments, and is not one itself", path.display()))
                .hint("`assay lab status` lists those in assay-lab; name the folder of one"));
        }
        let text = read(RECIPE)?;
        let asked: Value = serde_json::from_str(&read(EXPERIMENT)?).map_err(|error| {
            Trouble::environment(format!("{} is damaged: {error}", path.join(EXPERIMENT).display()))
        })?;
        let words = |value: &Value| value.as_str().map(str::to_owned);
        let sets = asked["set"].as_array().into_iter().flatten().filter_map(words);
        let sets: Vec<(String, String)> =
            sets.filter_map(|set| set.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()))).collect();
        let place = path.join(RECIPE).display().to_string();
        let recipe = Recipe::read(&text, asked["scale"].as_str(), &sets).map_err(|error| trouble(&error, &place))?;
        Ok(Folder { progress: progress(path), path: path.to_owned(), recipe, journal: None })
    }

    /// Whether a process runs it: that one holds the lock of the journal.
    pub fn is_running(&self) -> bool {
        File::open(self.path.join(JOURNAL)).is_ok_and(|journal| journal.try_lock_shared().is_err())
    }

    /// Appends an event to the journal.
    pub fn add(&mut self, event: JournalEvent) -> Result<(), Trouble> {
        // Commands and servers repeat what they were given.
        let event = match event {
            JournalEvent::Failed { round, cell, name, attempt, at, cause, details } => {
                let (cause, details) =
                    (text_without_secrets(&cause), details.iter().map(|line| text_without_secrets(line)));
                JournalEvent::Failed { round, cell, name, attempt, at, cause, details: details.collect() }
            }
            event => event,
        };
        self.append(&line(&event))?;
        self.progress.add(event);
        Ok(())
    }

    /// An error if a record may not fit on the disk any more.
    pub fn can_write(&self) -> Result<(), Trouble> {
        let path = self.path.join("room");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0; ROOM])?;
            file.sync_all()
        });
        let _ = fs::remove_file(&path);
        written.map_err(|error| {
            Trouble::environment(format!("cannot write {}: {error}", self.path.display()))
                .hint("free some space, then run the same command again to resume")
        })
    }

    fn append(&mut self, text: &str) -> Result<(), Trouble> {
        let journal = self.journal.as_mut().expect("the folder was opened to be written");
        let written = journal.write_all(text.as_bytes()).and_then(|()| journal.sync_data());
        written.map_err(|error| unwritable(&self.path.join(JOURNAL), &error))
    }
}

/// Refuses a folder with other files. What an experiment that was killed at its start has left may be there.
fn check_place(path: &Path) -> Result<(), Trouble> {
    if path.exists() && !path.is_dir() {
        return Err(Trouble::usage(format!("{} is not a folder", path.display())).hint("choose a new folder"));
    }
    let is_ours = |name: &std::ffi::OsStr| {
        let name = name.to_string_lossy();
        [RECIPE, EXPERIMENT, JOURNAL, "records", "logs", "room"].contains(&&*name) || name.starts_with('.')
    };
    let entries = || fs::read_dir(path).into_iter().flatten().flatten();
    let is_experiment = path.join(EXPERIMENT).exists();
    match entries().find(|entry| !is_experiment && !is_ours(&entry.file_name())) {
        Some(entry) => Err(Trouble::usage(format!("{} is not empty and not an experiment", path.display()))
            .detail(format!("it contains {}", entry.file_name().to_string_lossy()))
            .hint("choose a new folder with --folder")),
        None => Ok(()),
    }
}

/// The experiment if none is named: the one that was worked on last.
pub fn chosen(named: Option<&PathBuf>) -> Result<PathBuf, Trouble> {
    if let Some(path) = named {
        return Ok(path.clone());
    }
    let written = |path: &PathBuf| fs::metadata(path.join(JOURNAL)).and_then(|metadata| metadata.modified()).ok();
    let none = || Trouble::usage(format!("no experiment in {DEFAULT}")).hint("give its folder");
    all().into_iter().max_by_key(written).ok_or_else(none)
}

/// The folders of all experiments, sorted.
pub fn all() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = all_in(Path::new(DEFAULT)).collect();
    all.sort();
    all
}

fn all_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join(JOURNAL).is_file())
}

/// Reports other experiments with the same recipe, and the differences.
pub(crate) fn tell_of_relatives(name: &str, own: &Path, recipe: &Recipe) {
    let prefix = format!("{name}-");
    let is_relative = |path: &PathBuf| {
        path != own && path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&prefix))
    };
    for path in all().into_iter().filter(is_relative) {
        let Ok(other) = Folder::read(&path) else { continue };
        let differ = differences(&other.recipe.document, &recipe.document);
        let of = |(path, a, b): &(String, Option<String>, Option<String>)| {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
            format!("  {path}: {} there, {} here\n", shown(a), shown(b))
        };
        terminal::say(&format!("{} contains another experiment with this recipe\n", path.display()));
        terminal::say(&differ.iter().take(8).map(of).collect::<String>());
    }
}

/// Wall-clock time for the journal.
pub(crate) fn now() -> String {
    Time::from(SystemTime::now()).to_string()
}

fn progress(path: &Path) -> TrialProgress {
    TrialProgress::of_text(&String::from_utf8_lossy(
        &read_file(&path.join(JOURNAL), LISTED_BYTES_MAX).unwrap_or_default(),
    ))
}

/// The trouble of a file that cannot be written.
pub fn unwritable(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::environment(format!("cannot write {}: {error}", path.display()))
        .hint("choose another folder with --folder")
}
