//! Finds scripts: files, and the built-in workloads.
//!
//! A name that looks like a file (it has a `/` or ends in `.lua`) is a file; any other name is a built-in workload or,
//! if there is none of that name, a module on the search path. So a stray `oltp_read_write` or `tpcc.lua` in the
//! current directory is not run by accident. `sysbench_order` restores sysbench's order: exact file, module on the
//! search path, built-in.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::failure::ScriptError;

/// The places scripts are looked for.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Built-in modules: name as in `require(name)`, and text.
    pub modules: Vec<(&'static str, &'static str)>,
    /// Those that are parts of others: never suggested for a mistyped name.
    pub parts: Vec<&'static str>,
    /// The search path in Lua's form (`./?.lua;…`) instead of the default and of `LUA_PATH`.
    pub path: Option<String>,
    /// Whether an exact file wins whatever its name looks like, and a module on the search path over a built-in.
    pub sysbench_order: bool,
    /// The folder searched after all others.
    pub installed: Option<Installed>,
}

/// A folder of scripts installed by another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Where.
    pub folder: PathBuf,
    /// Whether they are unmodified, at least those that our modules replace: then the modules are used, which do the
    /// same and need less memory.
    pub original: bool,
}

/// A script's text and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptSource {
    /// Name for output: the path as given, or `NAME.lua` for a built-in.
    pub display: String,
    /// The file; `None` for a built-in.
    pub path: Option<PathBuf>,
    /// The unmodified text, including a shebang line.
    pub text: Vec<u8>,
}

impl Library {
    /// Finds a script by file path, module name or built-in name. The error lists near built-in names.
    pub fn find(&self, name: &str) -> Result<ScriptSource, ScriptError> {
        let looks_like_a_file = name.contains('/') || name.ends_with(".lua");
        // A pipe is as good as a file: `/dev/stdin`, or what a shell makes of `<(…)`.
        let is_there = |path: &Path| path.exists() && !path.is_dir();
        if (looks_like_a_file || self.sysbench_order) && is_there(Path::new(name)) {
            return read(Path::new(name), name);
        }
        if let Some(text) = self.workload(name) {
            return Ok(ScriptSource { display: format!("{name}.lua"), path: None, text: text.into() });
        }
        let file = name.replace('.', "/");
        for template in self.search_path(None).split(';') {
            let candidate = template.replace('?', &file);
            if Path::new(&candidate).is_file() {
                if let Some((name, text)) = self.stand_in(&candidate) {
                    return Ok(ScriptSource { display: format!("{name}.lua"), path: None, text: text.into() });
                }
                return read(Path::new(&candidate), &candidate);
            }
        }
        let module = name.strip_suffix(".lua").unwrap_or(name).trim_start_matches("./");
        if let Some(text) = self.module(module) {
            let display = format!("{module}.lua");
            return Ok(ScriptSource { display, path: None, text: text.into() });
        }
        if let Some(text) = self.installed(name) {
            return Ok(ScriptSource { display: name.to_owned(), path: None, text: text.into() });
        }
        let near = self.near(name);
        Err(ScriptError {
            message: if looks_like_a_file {
                format!("cannot find the script `{name}`")
            } else {
                format!("cannot find a workload `{name}`: no such built-in, file or module")
            },
            hint: Some(match near.as_slice() {
                _ if looks_like_a_file && Path::new(name).is_dir() => {
                    "it is a folder: give the path of a script".to_owned()
                }
                [] if !looks_like_a_file && Path::new(name).is_file() => format!("to run the file, write ./{name}"),
                [] if looks_like_a_file => "check its path; `assay list` shows the built-in workloads".to_owned(),
                [] => "`assay list` shows the built-in workloads; for your own file, give its path".to_owned(),
                names => format!("did you mean {}?", names.join(" or ")),
            }),
            ..ScriptError::default()
        })
    }

    /// The file in the current folder that has the name of a built-in workload, and is not run because of that.
    pub fn passed_over(&self, name: &str) -> Option<String> {
        self.workload(name)?;
        let file = format!("./{name}.lua");
        Path::new(&file).is_file().then_some(file)
    }

    /// The text of the built-in workload with this name. `None` in sysbench's order, and for parts of workloads: there,
    /// files come first.
    fn workload(&self, name: &str) -> Option<&'static str> {
        let is_one = !self.sysbench_order && !self.parts.contains(&name);
        is_one.then(|| self.module(name)).flatten()
    }

    /// The text of a script file and of every file that it loads, directly or through another, each once: modules by
    /// `require`, files by `dofile` and `loadfile`, libraries in C. Built-ins are left out.
    ///
    /// Calls are found in the text, not by running it: a function that no command has called yet may load a module,
    /// too. If a name is computed, every Lua file in the folder of the file that computes it counts.
    ///
    /// # Errors
    /// The script cannot be found or read. A file that it names and that does not exist is left out: what loads it may
    /// never run.
    pub fn files(&self, name: &str) -> Result<Vec<Vec<u8>>, ScriptError> {
        let script = self.find(name)?;
        let Some(path) = script.path else { return Ok(Vec::new()) };
        let folder = folder_of(&path).to_owned();
        let (lua, c) = (self.search_path(Some(&folder)), self.search_cpath());
        let mut known = vec![path];
        let mut texts = vec![script.text];
        let mut at = 0;
        while at < texts.len() {
            let mut loaded = Vec::new();
            for call in loads(&texts[at]) {
                match call {
                    Loads::Module(name) => loaded.extend(on_path(&lua, &name).or_else(|| on_path(&c, &name))),
                    Loads::File(name) => loaded.push(PathBuf::from(name)),
                    Loads::Computed => loaded.extend(lua_files(folder_of(&known[at]))),
                }
            }
            for path in loaded {
                if let (false, Ok(text)) = (known.contains(&path), std::fs::read(&path)) {
                    known.push(path);
                    texts.push(text);
                }
            }
            at += 1;
        }
        Ok(texts)
    }

    /// A built-in module's text.
    pub fn module(&self, name: &str) -> Option<&'static str> {
        self.modules.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The text of a built-in that used to be installed as a file: for a path that does not exist, such as
    /// `/usr/share/sysbench/tests/include/oltp_legacy/oltp.lua` or `/usr/share/sysbench/oltp_read_only.lua`.
    pub fn installed(&self, path: &str) -> Option<&'static str> {
        let path = path.strip_suffix(".lua")?;
        let ends_with = |known: &&(&'static str, _)| {
            path.strip_suffix(known.0).is_some_and(|folder| {
                let old = known.0.contains('/');
                folder.ends_with('/') && (old || folder.ends_with("/sysbench/") || folder.ends_with("/src/lua/"))
            })
        };
        self.modules.iter().find(ends_with).map(|(_, text)| *text)
    }

    /// The module that replaces a file: its name and text.
    pub(crate) fn stand_in(&self, path: &str) -> Option<(&'static str, &'static str)> {
        let installed = self.installed.as_ref().filter(|installed| installed.original)?;
        let name = Path::new(path).strip_prefix(&installed.folder).ok()?.to_str()?.strip_suffix(".lua")?;
        self.modules.iter().find(|(known, _)| *known == name).copied()
    }

    /// `package.path` for a script in the folder `script`: `path`, else `LUA_PATH`, else sysbench's own with the
    /// script's folder after the current one. In `LUA_PATH`, `;;` means the default.
    pub(crate) fn search_path(&self, script: Option<&Path>) -> String {
        let mut parts: Vec<String> = ["./?.lua", "./?/init.lua", "./src/lua/?.lua"].map(str::to_owned).to_vec();
        if let Some(folder) =
            script.map(|folder| folder.display().to_string()).filter(|folder| !folder.is_empty() && folder != ".")
        {
            parts.insert(1, format!("{folder}/?.lua"));
            parts.insert(2, format!("{folder}/?/init.lua"));
        }
        if let Ok(home) = std::env::var("HOME") {
            for folder in ["share/lua/5.1", "share/lua"] {
                parts.push(format!("{home}/.luarocks/{folder}/?.lua"));
                parts.push(format!("{home}/.luarocks/{folder}/?/init.lua"));
            }
        }
        parts.extend(["/usr/local/share/lua/5.1/?.lua", "/usr/share/lua/5.1/?.lua"].map(str::to_owned));
        parts.extend(self.installed.iter().map(|installed| format!("{}/?.lua", installed.folder.display())));
        let own = parts.join(";");
        match self.path.clone().or_else(|| std::env::var("LUA_PATH").ok()) {
            Some(path) => path.replace(";;", &format!(";{own};")).trim_matches(';').to_owned(),
            None => own,
        }
    }

    /// `package.cpath`, by the same rules.
    pub(crate) fn search_cpath(&self) -> String {
        let mut own = "./?.so".to_owned();
        if let Ok(home) = std::env::var("HOME") {
            own.push_str(&format!(";{home}/.luarocks/lib/lua/5.1/?.so;{home}/.luarocks/lib/lua/?.so"));
        }
        own.push_str(";/usr/local/lib/lua/5.1/?.so;/usr/lib/lua/5.1/?.so");
        // Debian's folders.
        own.push_str(&format!(";/usr/lib/{}-linux-gnu/lua/5.1/?.so", std::env::consts::ARCH));
        match std::env::var("LUA_CPATH") {
            Ok(path) => path.replace(";;", &format!(";{own};")).trim_matches(';').to_owned(),
            Err(_) => own,
        }
    }

    /// Built-in names a user may have meant, nearest first, at most three.
    fn near(&self, name: &str) -> Vec<String> {
        let mut near: Vec<(usize, &str)> = self
            .modules
            .iter()
            .filter(|(known, _)| !self.parts.contains(known))
            .map(|(known, _)| (distance(name, known), *known))
            .filter(|(distance, known)| !known.contains('/') && (*distance <= known.len() / 3 || known.contains(name)))
            .collect();
        near.sort_unstable();
        near.into_iter().take(3).map(|(_, name)| format!("`{name}`")).collect()
    }
}

fn read(path: &Path, display: &str) -> Result<ScriptSource, ScriptError> {
    // One that this process has already, such as that of `<(…)`, has a writer.
    let is_open = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if !is_open && std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        let message = format!("cannot read the script {display}: it is a named pipe, which may have no writer");
        return Err(ScriptError::from_message(&message, ""));
    }
    match std::fs::read(path) {
        Ok(text) => Ok(ScriptSource { display: display.to_owned(), path: Some(path.to_owned()), text }),
        Err(error) => Err(ScriptError::from_message(&format!("cannot read the script {display}: {error}"), "")),
    }
}

/// A call that loads a file.
#[derive(Debug, PartialEq, Eq)]
enum Loads {
    /// `require "name"`
    Module(String),
    /// `dofile("path")`
    File(String),
    /// The name is not a literal.
    Computed,
}

/// Calls of `require`, `dofile` and `loadfile` in the text of a script. Those in comments and strings are found, too.
fn loads(text: &[u8]) -> Vec<Loads> {
    let text = String::from_utf8_lossy(text);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for function in ["require", "dofile", "loadfile"] {
        for (at, _) in text.match_indices(function) {
            let rest = &text[at + function.len()..];
            if rest.starts_with(is_name) || text[..at].ends_with(|c: char| is_name(c) || c == '.') {
                continue;
            }
            let rest = rest.trim_start();
            let argument = rest.strip_prefix('(').unwrap_or(rest).trim_start();
            let literal = [("\"", "\""), ("'", "'"), ("[[", "]]")].iter().find_map(|(open, close)| {
                let (name, after) = argument.strip_prefix(open)?.split_once(close)?;
                // `require("a" .. b)` computes its name.
                (!name.contains('\\') && !after.trim_start().starts_with("..")).then(|| name.to_owned())
            });
            found.push(match literal {
                Some(name) if function == "require" => Loads::Module(name),
                Some(name) => Loads::File(name),
                // `local load = require` calls it under another name.
                None => Loads::Computed,
            });
        }
    }
    found
}

/// The first file on a search path of Lua that is there.
fn on_path(templates: &str, module: &str) -> Option<PathBuf> {
    let file = module.replace('.', "/");
    templates.split(';').map(|template| PathBuf::from(template.replace('?', &file))).find(|path| path.is_file())
}

/// Sorted by name.
fn lua_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "lua")).collect();
    files.sort();
    files
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Levenshtein distance in characters.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(path: &str) -> Library {
        Library {
            modules: vec![
                ("oltp_read_write", "-- rw"),
                ("oltp_read_only", "-- ro"),
                ("tpcc", "-- tpcc"),
                ("tpcc_load", "-- part"),
            ],
            parts: vec!["tpcc_load"],
            path: Some(path.to_owned()),
            ..Library::default()
        }
    }

    #[test]
    fn a_misspelled_name_is_answered_with_the_nearest_ones() {
        let error = library("/nowhere/?.lua").find("oltp_read_wirte").unwrap_err();
        assert_eq!(error.to_string(), "cannot find a workload `oltp_read_wirte`: no such built-in, file or module");
        assert_eq!(error.hint.as_deref(), Some("did you mean `oltp_read_write`?"));
    }

    #[test]
    fn a_built_in_workload_comes_before_files_of_its_name_unless_their_path_is_given() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["tpcc.lua", "tpcc_load.lua", "mine.lua"] {
            std::fs::write(folder.path().join(name), "-- mine").unwrap();
        }
        let mut library = library(&format!("{}/?.lua", folder.path().display()));
        assert_eq!(library.find("tpcc").unwrap().text, b"-- tpcc");
        assert_eq!(library.find(folder.path().join("tpcc.lua").to_str().unwrap()).unwrap().text, b"-- mine");
        assert_eq!(library.find("tpcc_load").unwrap().text, b"-- mine"); // a part of a workload, which files replace
        assert_eq!(library.find("mine").unwrap().text, b"-- mine");
        library.sysbench_order = true;
        assert_eq!(library.find("tpcc").unwrap().text, b"-- mine");
        library.sysbench_order = false;
        assert_eq!(library.find("oltp_read_only").unwrap().text, b"-- ro");
        let exact = folder.path().join("oltp");
        std::fs::write(&exact, "-- exact").unwrap();
        assert_eq!(library.find(exact.to_str().unwrap()).unwrap().text, b"-- exact");
        library.path = Some("/nowhere/?.lua".to_owned());
        assert_eq!(library.find("tpcc").unwrap().display, "tpcc.lua");
    }

    #[test]
    fn a_script_that_was_once_installed_is_found_under_its_old_path() {
        let mut library = library("/nowhere/?.lua");
        library.modules.push(("tests/include/oltp_legacy/oltp", "-- old"));
        for (path, text) in [
            ("/opt/x/sysbench/oltp_read_only.lua", Some("-- ro")),
            ("./sysbench/tests/include/oltp_legacy/oltp.lua", Some("-- old")),
            ("/opt/x/oltp_read_only.lua", None),
            ("tests/include/oltp_legacy/nosuch.lua", None),
        ] {
            assert_eq!(library.find(path).ok().map(|found| String::from_utf8(found.text).unwrap()).as_deref(), text);
        }
    }

    #[test]
    fn modules_stand_for_installed_scripts_that_nobody_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["oltp_read_only", "my"] {
            std::fs::write(folder.path().join(format!("{name}.lua")), "-- installed").unwrap();
        }
        for (original, read_only) in [(true, "-- ro"), (false, "-- installed")] {
            let mut library = Library { path: None, ..library("") };
            library.sysbench_order = true;
            library.installed = Some(Installed { folder: folder.path().to_owned(), original });
            if std::env::var_os("LUA_PATH").is_none() {
                assert_eq!(library.find("oltp_read_only").unwrap().text, read_only.as_bytes());
                assert_eq!(library.find("my").unwrap().text, b"-- installed");
            }
            assert_eq!(library.find("oltp_read_write").unwrap().text, b"-- rw");
        }
    }

    #[test]
    fn the_scripts_folder_is_searched_after_the_current_one() {
        let library = Library::default();
        if std::env::var_os("LUA_PATH").is_none() {
            assert!(
                library.search_path(Some(Path::new("/s"))).starts_with("./?.lua;/s/?.lua;/s/?/init.lua;./?/init.lua")
            );
        }
    }

    #[test]
    fn files_are_all_that_a_script_loads() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let other = folder.path().join("other.txt");
        write("a.lua", &format!("local b = require 'b'\nfunction prepare() dofile(\"{}\") end", other.display()));
        write("b.lua", "return require([[c.d]])");
        std::fs::create_dir(folder.path().join("c")).unwrap();
        write("c/d.lua", "require('b') -- in a circle");
        write("other.txt", "x = 1");
        write("unrelated.lua", "");
        let script = folder.path().join("a.lua").display().to_string();
        let texts = |script: &str| -> Vec<String> {
            let files = Library::default().files(script).unwrap();
            files.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
        };
        let found = texts(&script);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[1..].contains(&"return require([[c.d]])".to_owned()), "{found:?}");
        assert!(found.contains(&"x = 1".to_owned()), "{found:?}");
        // A computed name may be that of any file in the folder.
        write("b.lua", "return require('c.' .. name)");
        assert!(texts(&script).contains(&String::new()), "unrelated.lua is missing");
    }

    #[test]
    fn calls_that_load_files_are_found_in_the_text() {
        let check = |text: &str, expected: &[Loads]| assert_eq!(loads(text.as_bytes()), expected, "{text}");
        check("require('a.b')", &[Loads::Module("a.b".to_owned())]);
        check("local x = require \"a\" .. 'b'", &[Loads::Computed]);
        check("pcall(require, 'a')", &[Loads::Computed]);
        check("loadfile [[a]]", &[Loads::File("a".to_owned())]);
        check("requires = 1; my.require('a'); dofiles('b')", &[]);
    }
}
