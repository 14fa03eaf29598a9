//! The option file, and variables.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use assay_client::Client;
use assay_lab::fault::Result;
use assay_lab::process::output;
use assay_lab::product::{Binaries, Configuration, Configure, InEffect, Role, ServerSetting, Site};

use super::Member;
use super::lifecycle::socket;

const FILE: &str = "my.cnf";

impl Configure for Member {
    fn layout(&self) -> &'static [&'static str] {
        &["innodb_page_size", "innodb_data_file_path", "innodb_undo_tablespaces", "lower_case_table_names"]
    }

    fn layout_at_every_start(&self) -> bool {
        true
    }

    fn huge_page_settings(&self) -> Vec<ServerSetting> {
        vec![ServerSetting { name: "large-pages".to_owned(), value: None }]
    }

    fn configuration_files(&self) -> &'static [&'static str] {
        &[FILE]
    }

    fn configuration(&self, site: &Site<'_>, wanted: &Configuration<'_>) -> Result<Vec<(PathBuf, String)>> {
        let mut special = (self.special)(site, wanted.role);
        if !asks_for_tls(wanted) {
            special.extend((self.without_tls)(&site.binaries.version).map(str::to_owned));
        }
        Ok(configuration(site, wanted, &special))
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        vec![format!("--defaults-file={}", site.folder.join(FILE).display()).into()]
    }

    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>> {
        known_settings(site, &(self.environment)(site.binaries))
    }

    fn may_know(&self, _: &Site<'_>, name: &str, wanted: &Configuration<'_>) -> bool {
        may_know(name, wanted)
    }

    fn refuses(&self, site: &Site<'_>, settings: &[&ServerSetting]) -> Option<String> {
        refuses(site, &(self.environment)(site.binaries), settings)
    }

    fn settings_of_file(&self, text: &str) -> Vec<ServerSetting> {
        settings_of_file(text, self.name)
    }

    fn in_effect(
        &self,
        session: &mut Client,
        settings: &[ServerSetting],
    ) -> std::result::Result<Vec<InEffect>, String> {
        in_effect(session, settings)
    }
}

/// Otherwise it is off: with their defaults, some versions would offer it to clients that prefer it, and others not.
fn asks_for_tls(wanted: &Configuration<'_>) -> bool {
    let is_about_it = |setting: &ServerSetting| {
        let name = setting.name.to_ascii_lowercase().replace('-', "_");
        ["ssl", "tls", "secure_transport"].iter().any(|word| name.contains(word))
    };
    wanted.all.iter().any(is_about_it)
}

/// Paths that it needs if it is not where it was built for.
pub(super) fn places(binaries: &Binaries) -> Vec<String> {
    if binaries.is_installed() {
        return Vec::new();
    }
    let base = binaries.base();
    vec![format!("basedir = {}", base.display()), format!("lc_messages_dir = {}", base.join("share").display())]
}

/// The `[mysqld]` section. `special`: lines of one of the products, after the common ones.
fn configuration(site: &Site<'_>, wanted: &Configuration<'_>, special: &[String]) -> Vec<(PathBuf, String)> {
    let mut lines = vec![
        "# Written by assay, overwritten at every start.".to_owned(),
        "[mysqld]".to_owned(),
        format!("datadir = {}", site.data.display()),
        format!("socket = {}", socket(site).display()),
        format!("pid_file = {}", site.folder.join("server.pid").display()),
        // At its start a server deletes temporary tables there, including those of others.
        format!("tmpdir = {}", site.folder.display()),
        format!("port = {}", site.port),
        "bind_address = 127.0.0.1".to_owned(),
        "skip_name_resolve".to_owned(),
        // If the buffer pool is reloaded automatically, the second start is a different experiment from the first.
        "innodb_buffer_pool_dump_at_shutdown = OFF".to_owned(),
        "innodb_buffer_pool_load_at_startup = OFF".to_owned(),
    ];
    match wanted.role {
        Role::Alone => {}
        Role::Primary => lines.extend(["server_id = 1".to_owned(), "log_bin = binlog".to_owned()]),
        Role::Replica { number, .. } => {
            let relay = format!("relay_log = {}", site.folder.join("relay").display());
            lines.extend([format!("server_id = {}", number + 1), relay, "read_only = ON".to_owned()]);
        }
    }
    lines.extend(special.iter().cloned());
    lines.extend(wanted.file.iter().flat_map(|file| file.lines()).map(str::to_owned));
    if wanted.file.is_some() {
        // The file may have started another section.
        lines.push("[mysqld]".to_owned());
    }
    lines.extend(wanted.settings.iter().map(|asked| match &asked.value {
        Some(value) => format!("{} = {value}", asked.name),
        None => asked.name.clone(),
    }));
    vec![(site.folder.join(FILE), lines.join("\n") + "\n")]
}

/// The variables that `--verbose --help` lists, after a line of dashes.
/// The program that lists its settings with their values, after it has parsed `options`.
fn listing(site: &Site<'_>, environment: &[(String, String)], options: &[String]) -> Command {
    let mut command = site.command(&site.binaries.program);
    let places = places(site.binaries);
    command.arg("--no-defaults").args(places.iter().map(|line| format!("--{}", line.replace(" = ", "="))));
    command.args(options).args(["--verbose", "--help"]);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

fn refuses(site: &Site<'_>, environment: &[(String, String)], settings: &[&ServerSetting]) -> Option<String> {
    let option = |one: &&ServerSetting| match &one.value {
        Some(value) => format!("--{}={value}", one.name),
        None => format!("--{}", one.name),
    };
    let options: Vec<String> = settings.iter().map(option).collect();
    let said = listing(site, environment, &options).stdin(Stdio::null()).output().ok()?.stderr;
    let said = String::from_utf8_lossy(&said);
    // A plugin that is not loaded, or files that are not there, say nothing about a value.
    let about_a_value = ["Error while setting value", "wasn't recognized", "due to invalid value", "Character set '"];
    let line = said.lines().find(|line| about_a_value.iter().any(|words| line.contains(words)))?;
    let words = line.rsplit_once("] ").map_or(line, |(_, words)| words);
    let program = site.binaries.program.file_name().unwrap_or_default().to_string_lossy();
    let words = words.trim_start_matches("Buffered error: ").trim_start_matches(&format!("{program}: "));
    Some(words.to_owned())
}

fn known_settings(site: &Site<'_>, environment: &[(String, String)]) -> Result<Vec<String>> {
    let text = output("list its settings", &mut listing(site, environment, &[]))?;
    let list = text.lines().skip_while(|line| !line.starts_with("----")).skip(1);
    let listed = list.take_while(|line| !line.is_empty()).filter_map(|line| line.split(' ').next());
    Ok(listed.filter(|name| !name.is_empty()).map(underscored).collect())
}

/// A plugin adds settings that the program does not list.
fn may_know(name: &str, wanted: &Configuration<'_>) -> bool {
    let name = underscored(name);
    let loads = |text: &str| underscored(text).contains("plugin_load") || text.contains("early-plugin-load");
    let loaded = wanted.settings.iter().any(|asked| loads(&asked.name)) || wanted.file.is_some_and(loads);
    // `loose_` tells a server to ignore the option if it is unknown.
    name.starts_with("loose_") || loaded
}

/// As variables are spelled: an option's `-` is a variable's `_`.
fn underscored(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

fn in_effect(session: &mut Client, settings: &[ServerSetting]) -> std::result::Result<Vec<InEffect>, String> {
    let mut all = Vec::new();
    for one in settings {
        let written = underscored(&one.name);
        // `skip_x` and `disable_x` mean that `x` is off.
        let variable = written.trim_start_matches("loose_");
        let off = ["skip_", "disable_"].iter().find_map(|prefix| variable.strip_prefix(prefix));
        let mut shown = |name: &str| -> std::result::Result<Option<String>, String> {
            let rows =
                session.rows(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name = '{}'", name.replace('\'', "''")))?;
            Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(1).flatten()))
        };
        let (value, wanted) = match (shown(variable)?, off) {
            (Some(value), _) => (Some(value), one.value.clone().unwrap_or_else(|| "ON".to_owned())),
            (None, Some(off)) => (shown(off)?, "OFF".to_owned()),
            (None, None) => (None, String::new()),
        };
        let same = value.as_deref().is_some_and(|value| is_in_effect(variable, &wanted, value));
        all.push(InEffect { name: one.name.clone(), asked: one.value.clone(), value, same });
    }
    Ok(all)
}

/// Whether a variable shows what was requested, in the way in which it shows that.
fn is_in_effect(variable: &str, asked: &str, shown: &str) -> bool {
    match variable {
        // Requested with the name of its files, shown as a switch.
        "log_bin" if !mean_the_same(asked, "OFF") => mean_the_same("ON", shown),
        // Shown with all options that there are.
        "wsrep_provider_options" => {
            let all: Vec<&str> = shown.split(';').map(str::trim).collect();
            asked
                .split(';')
                .map(str::trim)
                .filter(|one| !one.is_empty())
                .all(|one| all.iter().any(|shown| shown.replace(' ', "").eq_ignore_ascii_case(&one.replace(' ', ""))))
        }
        _ => mean_the_same(asked, shown),
    }
}

/// `1G` and `1073741824`, `on` and `1`.
fn mean_the_same(asked: &str, shown: &str) -> bool {
    let plain = |text: &str| text.trim().trim_matches(['\'', '"']).to_ascii_uppercase();
    let switch = |text: &str| match text {
        "ON" | "1" | "TRUE" | "YES" => Some(true),
        "OFF" | "0" | "FALSE" | "NO" => Some(false),
        _ => None,
    };
    let (asked, shown) = (plain(asked), plain(shown));
    if let (Some(asked), Some(shown)) = (switch(&asked), switch(&shown)) {
        return asked == shown;
    }
    match (number(&asked), number(&shown)) {
        (Some(asked), Some(shown)) => asked == shown,
        _ => asked == shown,
    }
}

fn number(text: &str) -> Option<f64> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40), ("P", 50)];
    let unit = units.iter().find_map(|(unit, bits)| text.strip_suffix(unit).map(|number| (number, 1u64 << bits)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    digits.parse::<f64>().ok().map(|number| number * factor as f64)
}

/// The settings of the sections that a server reads; lines before any section count, because our own come before them.
fn settings_of_file(text: &str, product: &str) -> Vec<ServerSetting> {
    let mut ours = true;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let base = section.split_once('-').map_or(section, |(base, _)| base);
            ours = ["server", "mysqld"].contains(&base)
                || (product == "mariadb" && ["mariadb", "mariadbd"].contains(&base));
        } else if ours && !line.is_empty() && !line.starts_with(['#', ';', '!']) {
            let line = line.split(" #").next().unwrap_or_default();
            let asked = ServerSetting::parse(line);
            let value = asked.value.map(|value| value.trim_matches(['\'', '"']).to_owned());
            found.push(ServerSetting { value, ..asked });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        for (asked, shown) in [
            ("1G", "1073741824"),
            ("on", "ON"),
            ("1", "ON"),
            ("0", "OFF"),
            ("O_DIRECT", "o_direct"),
            ("75", "75.000000"),
        ] {
            assert!(mean_the_same(asked, shown), "{asked} {shown}");
        }
        for (asked, shown) in [("130M", "134217728"), ("2", "1"), ("off", "ON"), ("ROW", "MIXED")] {
            assert!(!mean_the_same(asked, shown), "{asked} {shown}");
        }
        assert!(is_in_effect("log_bin", "binlog", "ON") && is_in_effect("log_bin", "off", "OFF"));
        assert!(!is_in_effect("log_bin", "binlog", "OFF") && !is_in_effect("log_bin", "off", "ON"));
        let options = "base_port = 4567; gcache.size = 1G; gmcast.listen_addr = tcp://127.0.0.1:24567; ";
        assert!(is_in_effect("wsrep_provider_options", "gcache.size=1G", options));
        assert!(!is_in_effect("wsrep_provider_options", "gcache.size=2G;base_port=4567", options));
    }

    #[test]
    fn settings_are_read_from_the_sections_of_a_server() {
        let text = "max_connections = 7\n[client]\nport=1\n[mysqld]\n# no\nsort-buffer-size=5M # why\n!include x\n\
                    skip-name-resolve\n[mysqld-8.0]\ntmp_table_size = '1M'\n[mariadb]\nthread_handling = pool-of-threads\n";
        let read = |product: &str| -> Vec<String> {
            let all = settings_of_file(text, product);
            all.into_iter().map(|asked| format!("{}={}", asked.name, asked.value.unwrap_or_default())).collect()
        };
        let common = ["max_connections=7", "sort-buffer-size=5M", "skip-name-resolve=", "tmp_table_size=1M"];
        assert_eq!(read("mysql"), common);
        assert_eq!(read("mariadb"), [&common[..], &["thread_handling=pool-of-threads"]].concat());
    }
}
