//! What a file from somebody else asks to execute: a record, a spec, or the recipe of an experiment that was copied.
//!
//! Such a file is data: it may be shown, compared and repeated by everybody. What it would execute beyond that needs
//! `--trust`, and is shown first: shell commands, programs and libraries of its choice, scripts outside the current
//! folder, settings by which a server starts programs, and statements that do more than set or read something. What the
//! command line itself asks for is the user's own.

use std::path::{Path, PathBuf};

use assay_process::diagnostics::Trouble;
use assay_process::terminal;
use assay_spec::{Concealed, RunSpec};

/// What was found in one file, in words such as `the shell command of --kill-check: pkill postgres`.
#[derive(Debug, Default)]
pub struct Asked(Vec<String>);

impl Asked {
    /// What a spec asks for. `given`: whether the command line has an option, which then counts instead.
    pub fn by_spec(spec: &RunSpec, given: impl Fn(&str) -> bool) -> Asked {
        let mut asked = Asked::default();
        if let Some(command) = spec.kill_check.as_ref().filter(|_| !given("kill-check")) {
            asked.command("--kill-check", command.reveal());
        }
        if !given("workload") {
            asked.script(&spec.workload.name);
        }
        if let Some(server) = &spec.server {
            if let Some(path) = server.binaries.as_ref().filter(|_| !given("binaries")) {
                asked.program(path);
            }
            if let Some(path) = server.config.as_ref().filter(|_| !given("server-config")) {
                asked.file("the configuration file", path);
            }
            let all = [("set", &server.settings), ("front-set", &server.front_settings)];
            for setting in all.into_iter().filter(|(option, _)| !given(option)).flat_map(|(_, settings)| settings) {
                let (name, value) = setting.reveal().split_once('=').unwrap_or((setting.reveal(), ""));
                asked.setting(name, value);
            }
        }
        if !given("db") && !given("server") {
            spec.target.urls.iter().map(Concealed::reveal).for_each(|url| asked.url(url));
        }
        if !given("session-sql") {
            spec.target.session_sql.iter().map(Concealed::reveal).for_each(|sql| asked.statement(sql));
        }
        asked
    }

    /// A shell command.
    pub fn command(&mut self, of: &str, line: &str) {
        self.0.push(format!("the shell command of {of}: {line}"));
    }

    /// A workload; one that ships with this program is its own.
    pub fn script(&mut self, name: &str) {
        if !assay_workloads::builtin().iter().any(|one| one.name == name) {
            let with_ending = PathBuf::from(format!("{name}.lua"));
            self.file("the script", if with_ending.is_file() { &with_ending } else { Path::new(name) });
        }
    }

    /// A folder or archive with a server's programs.
    pub fn program(&mut self, path: &Path) {
        self.0.push(format!("the server's programs in {}", path.display()));
    }

    /// A file that is executed; one below the current folder is the user's own.
    pub fn file(&mut self, what: &str, path: &Path) {
        let Ok(found) = path.canonicalize() else { return };
        let is_here = std::env::current_dir().and_then(|here| here.canonicalize()).is_ok_and(|here| {
            // Everything is below the root.
            here.parent().is_some() && found.starts_with(here)
        });
        if !is_here {
            self.0.push(format!("{what} {}", path.display()));
        }
    }

    /// A server's setting.
    pub fn setting(&mut self, name: &str, value: &str) {
        const PARTS: [&str; 7] = ["command", "preload", "librar", "plugin", "init_file", "init_connect", "program"];
        let plain = name.trim().to_ascii_lowercase().replace('-', "_");
        let is_off = ["", "off", "0"].contains(&value.trim());
        if !is_off && PARTS.iter().any(|part| plain.contains(part)) {
            self.0.push(format!("the server's setting {} = {}", name.trim(), value.trim()));
        }
    }

    /// A database's URL.
    pub fn url(&mut self, url: &str) {
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let library = query.split('&').find_map(|one| one.strip_prefix("library="));
        if let Some(library) = library {
            self.0.push(format!("the library {library}"));
        }
    }

    /// A statement for every connection.
    pub fn statement(&mut self, sql: &str) {
        if !is_harmless(sql) {
            self.0.push(format!("the statement of --session-sql: {sql}"));
        }
    }

    /// Each thing once, for what occurs in many cells.
    #[must_use]
    pub fn once(mut self) -> Asked {
        let mut known = std::collections::BTreeSet::new();
        self.0.retain(|one| known.insert(one.clone()));
        self
    }

    /// Refuses the file `of`, or shows what it executes if it is trusted.
    pub fn check(&self, of: &str, is_trusted: bool) -> Result<(), Trouble> {
        if self.0.is_empty() {
            return Ok(());
        }
        if is_trusted {
            terminal::say(&format!("executing what {of} asks for:\n  {}\n", self.0.join("\n  ")));
            return Ok(());
        }
        let trouble = Trouble::usage(format!("{of} asks to execute what others may have written into it"));
        let trouble = self.0.iter().fold(trouble, |trouble, one| trouble.detail(one));
        Err(trouble.hint("if you trust it, give the same command with --trust"))
    }
}

/// Whether the statement only sets or reads something within the database.
fn is_harmless(sql: &str) -> bool {
    const BEGINS: [&str; 7] = ["set", "select", "pragma", "use", "values", "show", "reset"];
    const PARTS: [&str; 14] = [
        "program",
        "outfile",
        "dumpfile",
        "load",
        "lo_export",
        "lo_import",
        "pg_read",
        "pg_write",
        "dblink",
        "sys_",
        "system",
        "extension",
        "execute",
        "url(",
    ];
    let lower = sql.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '(').collect();
    let statements = lower.split(';').map(str::trim).filter(|one| !one.is_empty());
    let begins = |one: &str| BEGINS.contains(&one.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default());
    statements.into_iter().all(begins) && !words.iter().any(|word| PARTS.iter().any(|part| word.starts_with(part)))
}

#[cfg(test)]
mod tests {
    use assay_spec::{ServerSpec, WorkloadSpec};

    use super::*;

    #[test]
    fn a_spec_asks_for_what_it_would_execute_and_for_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("evil.lua");
        std::fs::write(&script, "function event() end").unwrap();
        let of = |change: &dyn Fn(&mut RunSpec)| {
            let mut spec = RunSpec::default();
            spec.workload.name = "tpcc".to_owned();
            change(&mut spec);
            Asked::by_spec(&spec, |_| false).0
        };
        let with_setting = |setting: &str| {
            of(&|spec| spec.server = Some(ServerSpec { settings: vec![setting.into()], ..ServerSpec::default() }))
        };
        let with_sql = |sql: &str| of(&|spec| spec.target.session_sql = vec![sql.into()]);
        assert_eq!(of(&|_| ()), [""; 0]);
        assert_eq!(
            of(&|spec| spec.kill_check = Some("touch x".into())),
            ["the shell command of --kill-check: touch x"]
        );
        let script = script.display().to_string();
        assert_eq!(of(&|spec| spec.workload.name = script.clone()), [format!("the script {script}")]);
        assert_eq!(of(&|spec| spec.workload.name = "src/lib.rs".to_owned()), [""; 0]);
        let binaries = Some(ServerSpec { binaries: Some("/x".into()), ..ServerSpec::default() });
        assert_eq!(of(&|spec| spec.server = binaries.clone()), ["the server's programs in /x"]);
        assert_eq!(of(&|spec| spec.target.urls = vec!["duckdb:a?library=/x.so".into()]), ["the library /x.so"]);
        for setting in
            ["archive_command=rm x", "shared_preload_libraries=x", "plugin-load-add=x", "ssl_passphrase_command=x"]
        {
            assert_eq!(with_setting(setting).len(), 1, "{setting}");
        }
        for setting in ["shared_buffers=1GB", "archive_command=", "restore_command=off", "max_execution_time=5"] {
            assert_eq!(with_setting(setting), [""; 0], "{setting}");
        }
        for sql in ["COPY t FROM PROGRAM 'x'", "SET a = 1; DROP TABLE t", "LOAD 'x'", "SELECT lo_export(1, '/x')"] {
            assert_eq!(with_sql(sql).len(), 1, "{sql}");
        }
        for sql in ["SET synchronous_commit = off", "SELECT 1; SELECT 'x'", "pragma cache_size=5;", ""] {
            assert_eq!(with_sql(sql), [""; 0], "{sql}");
        }
        let workload = WorkloadSpec { name: "tpcc".to_owned(), ..WorkloadSpec::default() };
        let spec = RunSpec { kill_check: Some("touch x".into()), workload, ..RunSpec::default() };
        let own = Asked::by_spec(&spec, |option| option == "kill-check");
        assert!(own.check("r.json", false).is_ok());
        let refused = Asked::by_spec(&spec, |_| false).check("r.json", false).unwrap_err();
        assert_eq!(refused.details, ["the shell command of --kill-check: touch x"]);
    }
}
