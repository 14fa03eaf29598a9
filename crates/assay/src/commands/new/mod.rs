//! `assay new`: files to start from, which run at once.

use std::path::Path;

use assay_process::diagnostics::{Exit, Trouble, nearest};
use assay_process::{files, terminal};

use crate::command_line::{NewFileOptions, NewOptions, NewWhat};

/// A workload with everything that most need; `{NAME}` is its name.
const WORKLOAD: &str = include_str!("workload.lua");

/// A recipe with the parts that most need.
const RECIPE: &str = include_str!("recipe.toml");

/// The schema that the first line of a recipe names.
const SCHEMA: &str = "recipe.schema.json";

/// Writes what is asked for, and says how to run it.
pub fn run(options: &NewOptions) -> Result<Exit, Trouble> {
    match &options.what {
        NewWhat::Workload { name, how } => workload(name, how),
        NewWhat::Recipe { name, how } => recipe(name, how),
    }
}

fn workload(name: &str, how: &NewFileOptions) -> Result<Exit, Trouble> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(Trouble::usage(format!("{name} is not a name of a workload")).hint("use letters, digits and _"));
    }
    let text = match &how.from {
        None => WORKLOAD.replace("{NAME}", name),
        Some(from) => {
            let all = || assay_workloads::builtin().iter().filter(|workload| workload.runnable);
            let found = all().find(|workload| workload.name == from);
            let copied = found.ok_or_else(|| unknown(from, "workload", "assay list", all().map(|one| one.name)))?;
            copied.text.to_owned()
        }
    };
    let file = format!("{name}.lua");
    write(Path::new(&file), &text, how.force)?;
    terminal::say(&format!(
        "{file} written\n  on SQLite, nothing to install:  assay run ./{file}\n  on your server:  assay run ./{file} --db \
         postgres://USER@HOST/DATABASE --prepare --check\n  its options:  assay run ./{file} --help\n"
    ));
    Ok(Exit::Success)
}

fn recipe(name: &str, how: &NewFileOptions) -> Result<Exit, Trouble> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(Trouble::usage(format!("{name} is not a name of a recipe")).hint("use letters, digits, - and _"));
    }
    let text = match &how.from {
        None => RECIPE,
        Some(from) => {
            let all = || assay_recipe::shipped().iter();
            let found = all().find(|(known, _)| known == from);
            found.ok_or_else(|| unknown(from, "recipe", "assay lab list", all().map(|(name, _)| *name)))?.1
        }
    };
    let file = format!("{name}.toml");
    write(Path::new(&file), &format!("#:schema ./{SCHEMA}\n{text}"), how.force)?;
    write(Path::new(SCHEMA), &format!("{:#}\n", assay_recipe::schema()), true)?;
    terminal::say(&format!(
        "{file} and {SCHEMA} written\n  what it would do:  assay lab plan ./{file} --scale tiny\n  run it:  assay lab run \
         ./{file} --scale tiny\n"
    ));
    Ok(Exit::Success)
}

fn unknown<'a>(name: &str, what: &str, list: &str, known: impl Iterator<Item = &'a str>) -> Trouble {
    let trouble = Trouble::usage(format!("there is no built-in {what} {name}"));
    match nearest(name, known) {
        Some(near) => trouble.hint(format!("did you mean {near}?")),
        None => trouble.hint(format!("`{list}` shows them")),
    }
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Trouble> {
    if path.exists() && !force {
        return Err(Trouble::usage(format!("{} is there already", path.display())).hint("--force replaces it"));
    }
    files::write(path, text).map_err(|error| Trouble::environment(format!("cannot write {}: {error}", path.display())))
}
