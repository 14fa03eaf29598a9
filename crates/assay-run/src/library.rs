//! The available scripts: the built-in workloads, and files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use assay_process::diagnostics::{Exit, Trouble};
use assay_script::{Library, Program, ScriptError, ScriptSource, TopLevel};
use assay_seam::Dialect;

/// Built-in workloads and the search path for files.
pub fn library() -> &'static Arc<Library> {
    static LIBRARY: LazyLock<Arc<Library>> = LazyLock::new(|| {
        let all = assay_workloads::builtin();
        // Once per process, which needs them until it ends.
        let translated = assay_pgbench::builtin_workloads();
        let translated = translated.into_iter().map(|(name, text)| (&*name.leak(), &*text.leak()));
        let pgbench: Vec<(&str, &str)> = assay_pgbench::MODULES.iter().copied().chain(translated).collect();
        let modules =
            all.iter().map(|workload| (workload.name, workload.text)).chain(pgbench.iter().copied()).collect();
        let parts = all.iter().filter(|workload| !workload.runnable).map(|workload| workload.name);
        let parts = parts.chain(pgbench.iter().map(|(name, _)| *name)).collect();
        Arc::new(Library { modules, parts, ..Library::default() })
    });
    &LIBRARY
}

/// Loads a workload's script: runs its top level once, to learn its options and commands.
pub fn load(name: &str, command: &str, words: &[String], driver: Dialect) -> Result<Program, Trouble> {
    if name.trim().is_empty() {
        return Err(Trouble::usage("no workload given")
            .hint("`assay list` shows the built-in workloads; try `assay run oltp_read_write`"));
    }
    let top = TopLevel {
        command: Some(command.to_owned()),
        argv: words.to_vec(),
        driver,
        front: None,
        may_use_database: false,
    };
    if is_pgbench_script(name) {
        let source = of_pgbench(name)?;
        return Program::from_source(library(), name, source, &top)
            .map_err(|error| script_trouble(format!("script {name} cannot be loaded"), &error));
    }
    Program::load(library(), name, &top).map_err(|error| match error.file {
        // Without a file there was nothing to load: the name is wrong, not the script.
        None => not_found(error),
        Some(_) => script_trouble(format!("workload {name} cannot be loaded"), &error),
    })
}

/// Whether this is the name of a script.
pub fn is_script(name: &str) -> bool {
    is_pgbench_script(name) || library().find(name).is_ok()
}

/// The text of a script and of every file that it loads; empty for a built-in workload, and for a script that cannot be
/// read, which is reported when it is loaded.
pub fn files(name: &str) -> Vec<Vec<u8>> {
    if is_pgbench_script(name) {
        return assay_record::read_file(Path::new(name), assay_record::LISTED_BYTES_MAX).into_iter().collect();
    }
    library().files(name).unwrap_or_default()
}

/// The texts in which a workload may name its counters and types: its own files; of a built-in workload, all of those.
pub fn texts(name: &str) -> Vec<Vec<u8>> {
    let own = files(name);
    match own.is_empty() {
        true => assay_workloads::builtin().iter().map(|builtin| builtin.text.as_bytes().to_vec()).collect(),
        false => own,
    }
}

/// A pgbench script is recognized by the end of its name.
fn is_pgbench_script(name: &str) -> bool {
    name.ends_with(".sql") && Path::new(name).is_file()
}

/// A pgbench script, as Lua.
fn of_pgbench(name: &str) -> Result<ScriptSource, Trouble> {
    let text = assay_record::read_file(Path::new(name), assay_record::LISTED_BYTES_MAX)
        .map_err(|error| Trouble::environment(format!("cannot read the script {name}: {error}")))?;
    let script = assay_pgbench::Script::parse(name, &String::from_utf8_lossy(&text))
        .map_err(|error| Trouble::new(Exit::Workload, format!("script {name} cannot be loaded")).detail(error.0))?;
    let text = assay_pgbench::workload(&script).into_bytes();
    Ok(ScriptSource { display: name.to_owned(), path: Some(PathBuf::from(name)), text })
}

fn not_found(error: ScriptError) -> Trouble {
    // The name of a file: a built-in could not be meant.
    let is_file =
        ["cannot find the script", "cannot read the script"].iter().any(|text| error.message.starts_with(text));
    let trouble = if is_file { Trouble::environment(error.message) } else { Trouble::usage(error.message) };
    match error.hint {
        Some(hint) => trouble.hint(hint),
        None if is_file => trouble,
        None => trouble.hint("see `assay list` for the built-in workloads, or give the path of a file: ./my.lua"),
    }
}

/// Whether a built-in workload refused to go on, in words for its user: where in its source does not matter.
fn is_refusal(error: &ScriptError) -> bool {
    let is_built_in = |name: &str| assay_workloads::builtin().iter().any(|one| one.name == name);
    let mut frames = error.traceback.lines();
    error.file.is_none()
        && frames.all(|frame| frame.trim().split_once(".lua:").is_some_and(|(name, _)| is_built_in(name)))
}

/// A script's error: `file:line: message`, then the script's own frames.
pub fn script_trouble(cause: String, error: &ScriptError) -> Trouble {
    // A script that refuses an option names it, and it is the user's mistake: Lua's positions would not help.
    if let Some(option) =
        error.message.strip_prefix("--").filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    {
        return Trouble::usage(format!("--{}", option.lines().next().unwrap_or_default()));
    }
    let place = match (&error.file, error.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        _ => String::new(),
    };
    // What the database holds does not fit the command, as a file that exists already.
    let is_unfit = is_refusal(error) && error.message.contains("already exist");
    let exit = if is_unfit { Exit::Usage } else { Exit::Workload };
    let mut trouble = Trouble::new(exit, cause).detail(format!("{place}{}", error.message));
    if !is_refusal(error) {
        trouble = trouble.detail(&error.traceback);
    }
    match &error.hint {
        Some(hint) => trouble.hint(hint),
        None => trouble,
    }
}
