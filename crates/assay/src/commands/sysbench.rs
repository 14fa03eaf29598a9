//! `assay sysbench …`: sysbench's command line, reports and exit codes. Also what the binary does when it is called
//! `sysbench`.
//!
//! Everything specific to sysbench is in assay-sysbench; this file provides the process. `--install-link` is our own.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::{Arc, LazyLock};

use assay_engine::Control;
use assay_process::diagnostics::Trouble;
use assay_process::interrupt;
use assay_process::surroundings::ThisMachine;
use assay_process::terminal;
use assay_record::Existing;
use assay_run::{library, registry};
use assay_script::{Installed, Library};
use assay_seam::{ConnectOptions, Database, Dialect, Surroundings};
use assay_sysbench::front::{self, MachineReport, Process};
use assay_sysbench::originals;

use crate::{machine_record, signals};

/// Runs a command line, starting with the program's name.
pub fn run(words: Vec<String>) -> Result<ExitCode, Trouble> {
    let folder = match words.get(1).map(|word| word.split_once('=').unwrap_or((word, ""))) {
        Some(("--install-link", "")) => words.get(2),
        Some(("--install-link", _)) => words.get(1),
        _ => {
            signals::stop_listening()?;
            let (words, record) = without_record(words)?;
            let shown = assay_record::without_secrets(&words);
            // As long as the program runs.
            let process: &'static ThisProcess = Box::leak(Box::new(ThisProcess { record, shown }));
            return Ok(front::run(process, words).into());
        }
    };
    let folder = folder.map(|word| word.trim_start_matches("--install-link="));
    let folder = folder.ok_or_else(|| Trouble::usage("--install-link needs a folder").hint("such as ~/bin"))?;
    install_link(Path::new(folder))?;
    Ok(ExitCode::SUCCESS)
}

/// The arguments without `--assay-record=FILE`, which sysbench does not know, and the file.
fn without_record(mut words: Vec<String>) -> Result<(Vec<String>, Option<PathBuf>), Trouble> {
    const OPTION: &str = "--assay-record";
    let Some(at) = words.iter().position(|word| word.split('=').next() == Some(OPTION)) else {
        return Ok((words, None));
    };
    let word = words.remove(at);
    let file = match word.split_once('=') {
        Some((_, file)) => Some(file.to_owned()),
        None => (at < words.len()).then(|| words.remove(at)),
    };
    let file = file.filter(|file| !file.is_empty());
    let file = file.ok_or_else(|| Trouble::usage(format!("{OPTION} needs a file")).hint("such as cpu.json.zst"))?;
    assay_record::may_create(Path::new(&file), Existing::Keep)
        .map_err(|error| Trouble::usage(error.to_string()).hint("choose another file, or delete this one"))?;
    match words.iter().any(|word| MACHINE_TESTS.contains(&word.trim_start_matches("--test="))) {
        true => Ok((words, Some(PathBuf::from(file)))),
        false => Err(Trouble::usage(format!("{OPTION} is for tests of the machine: {}", MACHINE_TESTS.join(", ")))
            .hint("for a record of a workload: `assay run`")),
    }
}

const MACHINE_TESTS: [&str; 5] = ["fileio", "cpu", "memory", "threads", "mutex"];

/// Creates a link called `sysbench` in the folder, for scripts with a shebang and old wrappers. An existing link of
/// ours is left alone.
fn install_link(folder: &Path) -> Result<(), Trouble> {
    let trouble = |what: String| Trouble::environment(what);
    let program = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .map_err(|error| trouble(format!("cannot find assay's own executable: {error}")))?;
    let link = folder.join("sysbench");
    match std::os::unix::fs::symlink(&program, &link) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if link.canonicalize().ok().as_ref() != Some(&program) {
                return Err(trouble(format!("{} already exists and is another program", link.display()))
                    .hint("choose another folder, earlier in PATH"));
            }
        }
        Err(error) => {
            return Err(trouble(format!("cannot create the link {}: {error}", link.display()))
                .hint("choose an existing folder that you can write to"));
        }
    }
    Ok(terminal::result(&format!("{} -> {}\n", link.display(), program.display()))?)
}

/// What the front gets.
#[derive(Debug)]
struct ThisProcess {
    /// Path for the record of a machine test.
    record: Option<PathBuf>,
    /// The command line, without passwords.
    shown: Vec<String>,
}

impl Process for ThisProcess {
    fn print(&self, text: &[u8]) -> bool {
        terminal::result_bytes(text).is_ok()
    }

    fn complain(&self, text: &str) {
        terminal::say(text);
    }

    fn input(&self) -> io::Result<String> {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        Ok(text)
    }

    fn exit(&self, code: i32) -> ! {
        process::exit(code)
    }

    fn control(&self) -> &'static Control {
        interrupt::control()
    }

    fn stop_asked(&self) -> fn() -> bool {
        || interrupt::control().is_stopped()
    }

    fn hear_interrupts(&self, yes: bool) {
        signals::hear_interrupts(yes);
    }

    fn ignore_closed_pipes(&self) {
        signals::ignore_closed_pipes();
    }

    fn exit_code_interrupted(&self) -> u8 {
        interrupt::exit() as u8
    }

    fn surroundings(&self) -> &'static dyn Surroundings {
        &ThisMachine
    }

    fn open(
        &self,
        url: &str,
        options: &ConnectOptions,
        surroundings: &dyn Surroundings,
    ) -> Result<Box<dyn Database>, String> {
        let driver = registry::driver_of(url).map_err(|trouble| trouble.cause)?;
        (driver.open)(url, options, surroundings).map_err(|error| error.message)
    }

    fn dialect(&self, name: &'static str) -> Dialect {
        assay_products::dialect(name)
    }

    fn library(&self) -> &'static Arc<Library> {
        &LIBRARY
    }

    fn keeps_machine_reports(&self) -> bool {
        self.record.is_some()
    }

    fn machine_report(&self, report: &MachineReport<'_>) {
        let Some(path) = &self.record else { return };
        if let Err(error) = machine_record::of(report, &self.shown).create(path, Existing::Keep) {
            terminal::say(&format!("warning: {error}\n"));
        }
    }
}

/// Built-in workloads and files, in sysbench's order.
static LIBRARY: LazyLock<Arc<Library>> = LazyLock::new(|| {
    let folder = installed_scripts(std::env::var_os("PATH").unwrap_or_default());
    let original = originals::are_original(|name| std::fs::read(folder.join(name).with_extension("lua")).ok());
    let installed = Some(Installed { folder, original });
    Arc::new(Library { sysbench_order: true, installed, ..Library::clone(library::library()) })
});

/// The scripts folder of the `sysbench` that would run without us.
fn installed_scripts(path: OsString) -> PathBuf {
    let own = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    let programs = std::env::split_paths(&path).map(|folder| folder.join("sysbench").canonicalize().ok());
    let other = programs.flatten().find(|program| Some(program) != own.as_ref());
    let scripts = other.and_then(|program| Some(program.parent()?.parent()?.join("share/sysbench")));
    scripts.filter(|folder| folder.is_dir()).unwrap_or_else(|| PathBuf::from("/usr/share/sysbench"))
}
