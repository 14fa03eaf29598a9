//! Databases by name: `--db prod` stands for a URL in `databases.toml` in the user's configuration folder.
//!
//! Names are replaced by URLs in the words of a command line, before anything else sees them: specs, records and
//! messages have URLs only. The file has no passwords. They come from the product's own files and variables, or where
//! an entry says: from a command, or a file that only the user can read.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use assay_process::diagnostics::{Trouble, nearest};
use assay_process::{files, terminal, title, url_text};
use assay_seam::url::{Url, encoded};
use assay_spec::Concealed;
use serde::{Deserialize, Serialize};

/// The variable with a name or a URL for commands that are given neither `--db` nor a server.
pub const VARIABLE: &str = "ASSAY_DB";

/// Commands that use `VARIABLE`.
const COMMANDS: [&str; 7] = ["run", "prepare", "check", "cleanup", "exec", "sql", "olap"];

/// Options that say by themselves which database is used, or that nothing is done.
const DECIDED: [&str; 7] = ["--db", "--server", "--again", "--spec", "--db-from-agent-env", "--help", "-h"];

/// An entry of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Where it is, without a password.
    pub url: String,
    /// Shell command that prints the password in its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_command: Option<String>,
    /// File whose first line is the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
}

/// The file.
#[derive(Debug, Default)]
pub struct Databases {
    path: PathBuf,
    /// The entries.
    pub all: BTreeMap<String, Named>,
}

impl Databases {
    /// Reads the file; without one there are no entries.
    pub fn read() -> Result<Databases, Trouble> {
        let path = path()?;
        let text = match assay_record::read_text(&path, assay_record::WRITTEN_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Databases { path, all: BTreeMap::new() });
            }
            Err(error) => return Err(Trouble::environment(format!("cannot read {}: {error}", path.display()))),
        };
        // It may contain commands that are executed.
        if mode(&path) & 0o022 != 0 {
            return Err(Trouble::environment(format!("{} can be changed by other users", path.display()))
                .hint(format!("chmod 600 {}", path.display())));
        }
        let all: BTreeMap<String, Named> = toml::from_str(&text).map_err(|error| {
            Trouble::usage(format!("{}: {}", path.display(), error.message())).hint("`assay db add` writes entries")
        })?;
        for (name, named) in &all {
            named.check(name).map_err(|trouble| trouble.detail(format!("in {}", path.display())))?;
        }
        Ok(Databases { path, all })
    }

    /// Writes the file, for the user's eyes only.
    pub fn write(&self) -> Result<(), Trouble> {
        let written = || {
            fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
            files::write(&self.path, toml::to_string(&self.all).expect("it is plain data"))?;
            fs::set_permissions(&self.path, Permissions::from_mode(0o600))
        };
        written().map_err(|error| Trouble::environment(format!("cannot write {}: {error}", self.path.display())))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entry with this name.
    pub fn find(&self, name: &str) -> Result<&Named, Trouble> {
        self.all.get(name).ok_or_else(|| {
            let trouble = Trouble::usage(format!("no database is named {name}"));
            match nearest(name, self.all.keys().map(String::as_str)) {
                Some(near) => trouble.hint(format!("did you mean {near}?")),
                None => trouble.hint(format!("`assay db list` shows the names; add it: assay db add {name} URL")),
            }
        })
    }
}

impl Named {
    /// Checks the entry itself, not the server.
    pub fn check(&self, name: &str) -> Result<(), Trouble> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.starts_with('-') || !name.bytes().all(is_name) {
            return Err(Trouble::usage(format!("{name} is not a name")).hint("use letters, digits, - _ and ."));
        }
        assay_run::registry::driver_of(&self.url)?;
        if url_text::masked(&self.url) != self.url {
            return Err(Trouble::usage(format!("{name}: the URL contains a password, which is not stored"))
                .hint("leave it out, and use ~/.pgpass or ~/.my.cnf, --password-command or --password-file"));
        }
        if self.password_command.is_some() && self.password_file.is_some() {
            return Err(Trouble::usage(format!("{name}: the password comes from a command or from a file, not both")));
        }
        Ok(())
    }

    /// Whether the file with the password is there, if it is in one. Who may read it matters when it is used.
    pub fn has_password_file(&self) -> Result<(), String> {
        let Some(path) = &self.password_file else { return Ok(()) };
        fs::read(path).map(drop).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }

    /// The URL with the password, if the entry says where it is.
    pub fn url(&self, name: &str) -> Result<String, Trouble> {
        let password = match (&self.password_command, &self.password_file) {
            (Some(command), _) => output(command).map_err(|why| failed(name, &why))?,
            (None, Some(file)) => content(file).map_err(|why| failed(name, &why))?,
            (None, None) => return Ok(self.url.clone()),
        };
        let first = password.lines().next().unwrap_or_default();
        with_password(&self.url, first).map_err(|why| failed(name, &why))
    }
}

fn failed(name: &str, why: &str) -> Trouble {
    Trouble::environment(format!("no password for {name}: {why}"))
}

/// What a command prints. The error is a lowercase fragment.
fn output(command: &str) -> Result<String, String> {
    let shell = title::shell(command).stdin(Stdio::inherit()).stderr(Stdio::inherit()).output();
    let output = shell.map_err(|error| format!("cannot start /bin/sh: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{command}` failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("the output of `{command}` is not UTF-8"))
}

/// A file that nobody else can read. The error is a lowercase fragment.
fn content(path: &Path) -> Result<String, String> {
    let text = assay_record::read_text(path, assay_record::WRITTEN_BYTES_MAX)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    match mode(path) & 0o077 {
        0 => Ok(text),
        _ => Err(format!("{} can be read by other users: chmod 600 {}", path.display(), path.display())),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).map_or(0, |found| found.permissions().mode())
}

/// The error is a lowercase fragment without the password.
fn with_password(url: &str, password: &str) -> Result<String, String> {
    if password.is_empty() {
        return Err("it is empty".to_owned());
    }
    let parsed = Url::parse(url).map_err(|error| error.message)?;
    let (scheme, rest) = url.split_once("://").expect("it was parsed");
    // What is before the hosts is the user, because there is no password yet.
    match (parsed.user, rest.split_once('@')) {
        (Some(_), Some((user, hosts))) => Ok(format!("{scheme}://{user}:{}@{hosts}", encoded(password))),
        _ => Err("the URL names no user".to_owned()),
    }
}

/// `$XDG_CONFIG_HOME/assay/databases.toml`, or below `~/.config`.
fn path() -> Result<PathBuf, Trouble> {
    let variable = std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let folder = variable.or_else(|| home().map(|home| home.join(".config")));
    let folder = folder.ok_or_else(|| Trouble::environment("neither XDG_CONFIG_HOME nor HOME is set"))?;
    Ok(folder.join("assay/databases.toml"))
}

/// The URL of a name; a URL is its own. Without any names, a word that is not a URL is left to be refused as one.
pub fn resolve(word: &str) -> Result<String, Trouble> {
    if !is_name(word) {
        return Ok(word.to_owned());
    }
    let databases = Databases::read()?;
    if databases.all.is_empty() {
        return Ok(word.to_owned());
    }
    databases.find(word)?.url(word)
}

/// URLs of a spec that was written down, with the passwords that were removed from them then: those of the entries with
/// the same URL. Others stay as they are.
pub fn with_passwords(urls: &mut [Concealed]) -> Result<(), Trouble> {
    for url in urls {
        *url = Concealed::from(with_password_of(url.reveal())?);
    }
    Ok(())
}

/// The same for one URL.
pub fn with_password_of(url: &str) -> Result<String, Trouble> {
    let Some((user, rest)) = url.split_once(":***@") else { return Ok(url.to_owned()) };
    let plain = format!("{user}@{rest}");
    let databases = Databases::read()?;
    match databases.all.iter().find(|(_, named)| named.url == plain) {
        Some((name, named)) => named.url(name),
        None => Ok(url.to_owned()),
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word != "-" && !word.contains(':')
}

/// The words of a command line with URLs in place of names, and with the database of `VARIABLE` if the command needs
/// one and the words name none. What a name or the variable stands for is printed, unless they ask for silence.
pub fn with_urls(words: Vec<String>) -> Result<Vec<String>, Trouble> {
    let is_quiet = words.iter().any(|word| ["--quiet", "--help", "-h"].contains(&word.as_str()));
    let told = |from: &str, url: &str| {
        if !is_quiet {
            terminal::say(&format!("{from}: {}\n", url_text::masked(url)));
        }
    };
    let mut replaced: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        let is_value = replaced.last().is_some_and(|before| before == "--db");
        let (head, value) = match word.strip_prefix("--db=") {
            Some(value) => ("--db=", value),
            None if is_value => ("", word.as_str()),
            None => {
                replaced.push(word);
                continue;
            }
        };
        let url = resolve(value)?;
        if url != value {
            told(value, &url);
        }
        replaced.push(format!("{head}{url}"));
    }
    let is_decided = |word: &String| DECIDED.contains(&word.split('=').next().unwrap_or_default());
    let needs_one = replaced.get(1).is_some_and(|command| COMMANDS.contains(&command.as_str()));
    let variable = std::env::var(VARIABLE).ok().filter(|value| !value.is_empty());
    if let Some(value) = variable.filter(|_| needs_one && !replaced.iter().any(is_decided)) {
        let url = resolve(&value)?;
        told(VARIABLE, &url);
        // Before the others: what follows `--` is not an option.
        replaced.insert(2, format!("--db={url}"));
    }
    Ok(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(url: &str) -> Named {
        Named { url: url.to_owned(), password_command: None, password_file: None }
    }

    #[test]
    fn a_password_is_put_behind_the_user_and_escaped() {
        let put = |url: &str| with_password(url, "p@ss/word");
        assert_eq!(put("postgres://app@h:5432/bench?a=b").unwrap(), "postgres://app:p%40ss%2Fword@h:5432/bench?a=b");
        assert_eq!(put("mysql://app@h1,h2/bench").unwrap(), "mysql://app:p%40ss%2Fword@h1,h2/bench");
        assert_eq!(put("postgres://h/bench").unwrap_err(), "the URL names no user");
        assert_eq!(with_password("postgres://app@h/bench", "").unwrap_err(), "it is empty");
    }

    #[test]
    fn entries_with_passwords_or_strange_names_are_refused() {
        let cause = |name: &str, url: &str| named(url).check(name).unwrap_err().cause;
        assert!(named("postgres://app@h/bench").check("prod-1").is_ok());
        assert_eq!(
            cause("prod", "postgres://app:secret@h/bench"),
            "prod: the URL contains a password, which is not stored"
        );
        assert_eq!(cause("a b", "sqlite:a.db"), "a b is not a name");
        assert_eq!(cause("prod", "oracle://h"), "unknown database product oracle in --db oracle://h");
    }
}
