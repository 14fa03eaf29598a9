//! Server settings: their names come from the server's program; after the start, the values in effect are compared.

use crate::fault::{Fault, Result, nearest};
use crate::product::{Configuration, Product, ServerSetting, Site};

/// Refuses settings that the server does not know, with the nearest name.
pub(crate) fn check(product: &dyn Product, site: &Site<'_>, wanted: &Configuration<'_>) -> Result<()> {
    if wanted.all.is_empty() {
        return Ok(());
    }
    check_names(product, site, wanted, &product.known_settings(site)?)
}

/// The same where the names that it knows are there.
pub(crate) fn check_names(
    product: &dyn Product,
    site: &Site<'_>,
    wanted: &Configuration<'_>,
    known: &[String],
) -> Result<()> {
    for asked in wanted.all {
        let name = plain(&asked.name);
        let variants = ["", "skip_", "disable_", "enable_"];
        let is_known = variants
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(|name| known.iter().any(|known| plain(known) == name)));
        // Layout settings were checked when the data directory was created.
        if is_known || product.may_know(site, &asked.name, wanted) {
            continue;
        }
        let version = &site.binaries.version;
        let fault = Fault::usage(format!("{} {version} has no setting {}", product.title(), asked.name));
        let line = wanted.file.filter(|_| !wanted.settings.contains(asked)).and_then(|file| line_of(file, &asked.name));
        let fault = match line {
            Some((number, line)) => fault.detail(format!("line {number} of the configuration file: {line}")),
            None => fault,
        };
        return Err(match nearest(&name, known.iter().map(String::as_str)) {
            Some(near) => fault.hint(format!("did you mean {near}?")),
            None => fault,
        });
    }
    Ok(())
}

/// Settings of a file and from the command line: of two with the same name, the later one wins.
pub(crate) fn all(product: &dyn Product, file: Option<&str>, settings: &[ServerSetting]) -> Vec<ServerSetting> {
    let given: Vec<ServerSetting> = file.map(|text| product.settings_of_file(text)).unwrap_or_default();
    let mut kept: Vec<ServerSetting> = Vec::new();
    for asked in given.into_iter().chain(settings.iter().cloned()) {
        kept.retain(|earlier| plain(&earlier.name) != plain(&asked.name));
        kept.push(asked);
    }
    kept
}

/// Refuses settings without a name, and without a value where all settings of the product have one.
pub fn check_form(product: &dyn Product, settings: &[ServerSetting]) -> Result<()> {
    let is_wrong = |asked: &&ServerSetting| {
        asked.name.is_empty() || (asked.value.is_none() && !product.has_settings_without_value())
    };
    match settings.iter().find(is_wrong) {
        Some(ServerSetting { name, value }) => {
            let value = value.as_ref().map_or(String::new(), |value| format!("={value}"));
            Err(Fault::usage(format!("{name}{value}: expected NAME=VALUE")))
        }
        None => Ok(()),
    }
}

/// The settings whose values the program refuses, each with what it says.
pub(crate) fn refused(
    product: &dyn Product,
    site: &Site<'_>,
    settings: &[ServerSetting],
) -> Vec<(ServerSetting, String)> {
    let all: Vec<&ServerSetting> = settings.iter().collect();
    if product.refuses(site, &all).is_none() {
        return Vec::new();
    }
    let each = settings.iter().filter_map(|one| Some((one.clone(), product.refuses(site, &[one])?)));
    each.collect()
}

/// The form in which names are compared.
fn plain(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

/// The last line of a file that starts with a name, and its number.
fn line_of<'a>(file: &'a str, name: &str) -> Option<(usize, &'a str)> {
    let of_name = |line: &str| {
        let first = line.trim_start().split(|c: char| c == '=' || c.is_whitespace()).next();
        first.is_some_and(|first| plain(first) == plain(name))
    };
    let mut numbered = (1..).zip(file.lines()).collect::<Vec<_>>().into_iter().rev();
    numbered.find(|(_, line)| of_name(line)).map(|(number, line)| (number, line.trim()))
}

/// Splits settings into those that determine the layout of the data directory and the others.
pub(crate) fn divide(product: &dyn Product, all: &[ServerSetting]) -> (Vec<ServerSetting>, Vec<ServerSetting>) {
    all.iter().cloned().partition(|asked| product.layout().contains(&&*plain(&asked.name)))
}
