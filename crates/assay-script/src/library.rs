//! Finds scripts: files, and the built-in workloads.
//!
//! A name is resolved in sysbench's order (exact file, module on the search path, built-in), with one difference: an
//! exact file counts only if the name looks like a file (it has a `/` or ends in `.lua`). So a stray file called
//! `oltp_read_write` in the current directory is not run by accident; `sysbench_order` restores sysbench's behavior.

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
    /// Whether an exact file wins whatever its name looks like.
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
pub struct Source {
    /// Name for output: the path as given, or `NAME.lua` for a built-in.
    pub display: String,
    /// The file; `None` for a built-in.
    pub path: Option<PathBuf>,
    /// The unmodified text, including a shebang line.
    pub text: Vec<u8>,
}

impl Library {
    /// Finds a script by file path, module name or built-in name. The error lists near built-in names.
    pub fn find(&self, name: &str) -> Result<Source, ScriptError> {
        let looks_like_a_file = name.contains('/') || name.ends_with(".lua");
        // A pipe is as good as a file: `/dev/stdin`, or what a shell makes of `<(…)`.
        let is_there = |path: &Path| path.exists() && !path.is_dir();
        if (looks_like_a_file || self.sysbench_order) && is_there(Path::new(name)) {
            return read(Path::new(name), name);
        }
        let file = name.replace('.', "/");
        for template in self.search_path(None).split(';') {
            let candidate = template.replace('?', &file);
            if Path::new(&candidate).is_file() {
                if let Some((name, text)) = self.stand_in(&candidate) {
                    return Ok(Source { display: format!("{name}.lua"), path: None, text: text.into() });
                }
                return read(Path::new(&candidate), &candidate);
            }
        }
        let module = name.strip_suffix(".lua").unwrap_or(name).trim_start_matches("./");
        if let Some(text) = self.module(module) {
            let display = format!("{module}.lua");
            return Ok(Source { display, path: None, text: text.into() });
        }
        if let Some(text) = self.installed(name) {
            return Ok(Source { display: name.to_owned(), path: None, text: text.into() });
        }
        let near = self.near(name);
        Err(ScriptError {
            message: if looks_like_a_file {
                format!("cannot find the script `{name}`")
            } else {
                format!("cannot find a workload `{name}`: no such built-in, file or module")
            },
            hint: Some(match near.as_slice() {
                [] => "`assay list` shows the built-in workloads; for your own file, give its path".to_owned(),
                names => format!("did you mean {}?", names.join(" or ")),
            }),
            ..ScriptError::default()
        })
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

fn read(path: &Path, display: &str) -> Result<Source, ScriptError> {
    match std::fs::read(path) {
        Ok(text) => Ok(Source { display: display.to_owned(), path: Some(path.to_owned()), text }),
        Err(error) => Err(ScriptError::from_message(&format!("cannot read the script {display}: {error}"), "")),
    }
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
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
    fn a_module_on_the_path_comes_before_a_built_in_and_a_stray_file_only_when_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tpcc.lua"), "-- mine").unwrap();
        let mut library = library(&format!("{}/?.lua", folder.path().display()));
        assert_eq!(library.find("tpcc").unwrap().text, b"-- mine");
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
}
