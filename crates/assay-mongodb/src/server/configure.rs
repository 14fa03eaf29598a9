//! Settings: the options of the program, one per line in a file of ours, which is kept with the results.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use assay_client::Client;
use assay_lab::fault::{Fault, Result};
use assay_lab::process::output;
use assay_lab::product::{Configuration, Configure, InEffect, Role, ServerSetting, Site};

use super::{Mongo, SET_NAME};

pub(super) const FILE: &str = "options";

/// Parameters are set by an option of their own, once for each: `setParameter.ttlMonitorSleepSecs=5`.
const PARAMETER: &str = "setParameter.";

impl Mongo {
    /// Options that place the server: nobody may set them.
    fn own_options(self, site: &Site<'_>) -> Vec<String> {
        let data = site.data.display();
        match self {
            Mongo::MongoDb => vec![
                format!("--dbpath={data}"),
                format!("--port={}", site.port),
                "--bind_ip=127.0.0.1".to_owned(),
                "--nounixsocket".to_owned(),
            ],
            Mongo::FerretDb => vec![
                "--handler=sqlite".to_owned(),
                format!("--sqlite-url=file:{data}/"),
                format!("--state-dir={data}"),
                format!("--listen-addr=127.0.0.1:{}", site.port),
                "--debug-addr=-".to_owned(),
                "--telemetry=disable".to_owned(),
            ],
        }
    }

    /// Options that a setting replaces.
    fn usual_options(self, role: &Role) -> Vec<String> {
        match (self, role) {
            (Mongo::FerretDb, _) => vec!["--log-level=warn".to_owned()],
            (Mongo::MongoDb, Role::Alone) => Vec::new(),
            (Mongo::MongoDb, Role::Primary | Role::Replica { .. }) => vec![format!("--replSet={SET_NAME}")],
        }
    }

    fn example(self) -> &'static str {
        match self {
            Mongo::MongoDb => "--set wiredTigerCacheSizeGB=1",
            Mongo::FerretDb => "--set log-level=info",
        }
    }
}

impl Configure for Mongo {
    fn layout(&self) -> &'static [&'static str] {
        match self {
            Mongo::MongoDb => &["storageengine", "directoryperdb", "wiredtigerdirectoryforindexes"],
            Mongo::FerretDb => &[],
        }
    }

    fn layout_at_every_start(&self) -> bool {
        true
    }

    fn huge_page_settings(&self) -> Vec<ServerSetting> {
        Vec::new()
    }

    fn configuration_files(&self) -> &'static [&'static str] {
        &[FILE]
    }

    fn configuration(&self, site: &Site<'_>, wanted: &Configuration<'_>) -> Result<Vec<(PathBuf, String)>> {
        if wanted.file.is_some() {
            return Err(Fault::usage("assay gives settings to this server as options of its program, not in a file")
                .hint(format!("give them one by one: {}", self.example())));
        }
        let own = self.own_options(site);
        let mut options = self.usual_options(wanted.role);
        for asked in wanted.settings {
            let option = option(asked)
                .filter(|option| !option.contains('\n'))
                .ok_or_else(|| not_an_option(asked).hint(format!("write {}", self.example())))?;
            if own.iter().any(|own| name_of(own) == name_of(&option)) {
                return Err(Fault::usage(format!("setting {} is assay's own", asked.name)).hint("leave it out"));
            }
            options.retain(|earlier| name_of(earlier) != name_of(&option));
            options.push(option);
        }
        options.splice(0..0, own);
        Ok(vec![(site.folder.join(FILE), options.join("\n") + "\n")])
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        options(site).into_iter().map(OsString::from).collect()
    }

    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>> {
        let mut command = site.command(&site.binaries.program);
        Ok(listed(&output("list its options", command.arg("--help"))?))
    }

    /// The list is not complete: some options of WiredTiger are hidden, and parameters have a list of their own. A
    /// server with one that it does not know does not start, and names it.
    fn may_know(&self, _: &Site<'_>, name: &str, _: &Configuration<'_>) -> bool {
        *self == Mongo::MongoDb && (name.starts_with("wiredTiger") || name.starts_with(PARAMETER))
    }

    /// Options are in effect if the server runs: it does not start with one that it does not understand, and nothing
    /// changes them later. Parameters are read.
    fn in_effect(
        &self,
        session: &mut Client,
        settings: &[ServerSetting],
    ) -> std::result::Result<Vec<InEffect>, String> {
        let mut all = Vec::new();
        for one in settings {
            let value = match one.name.strip_prefix(PARAMETER) {
                None => one.value.clone(),
                Some(name) => {
                    let rows = session.rows(&format!(r#"{{"getParameter": 1, "{name}": 1, "$db": "admin"}}"#))?;
                    rows.into_iter().find_map(|row| match row.as_slice() {
                        [Some(shown), value] if shown == name => value.clone(),
                        _ => None,
                    })
                }
            };
            let same = mean_the_same(one.value.as_deref(), value.as_deref());
            all.push(InEffect { name: one.name.clone(), asked: one.value.clone(), value, same });
        }
        Ok(all)
    }
}

/// The options as they were written.
pub(super) fn options(site: &Site<'_>) -> Vec<String> {
    let text = fs::read_to_string(site.folder.join(FILE)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A setting as an option of the program, if it has the form of one.
fn option(asked: &ServerSetting) -> Option<String> {
    let is_name = |name: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic()) && name.bytes().all(is_part)
    };
    match (asked.name.strip_prefix(PARAMETER), &asked.value) {
        (Some(name), Some(value)) if is_name(name) => Some(format!("--setParameter={name}={value}")),
        (None, value) if is_name(&asked.name) && asked.name != "setParameter" => Some(match value {
            Some(value) => format!("--{}={value}", asked.name),
            None => format!("--{}", asked.name),
        }),
        _ => None,
    }
}

fn not_an_option(asked: &ServerSetting) -> Fault {
    let fault = Fault::usage(format!("setting {:?} is not an option of the server's program", asked.name));
    match asked.name.starts_with("setParameter") {
        true => fault.hint(format!("write --set {PARAMETER}NAME=VALUE")),
        false => fault,
    }
}

/// Which option it is; a parameter is one by itself.
fn name_of(option: &str) -> &str {
    let parts = if option.starts_with("--setParameter=") { 2 } else { 1 };
    let end = option.match_indices('=').nth(parts - 1).map_or(option.len(), |(at, _)| at);
    &option[..end]
}

/// Names of options in a help text: `-f [ --config ] arg`, `--listen-addr="127.0.0.1:27017"`.
fn listed(help: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in help.match_indices("--") {
        let rest = &help[at + 2..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
        let name = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', '-']);
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// `1` and `true`, `5` and `5.0`.
fn mean_the_same(asked: Option<&str>, shown: Option<&str>) -> bool {
    let truth = |text: &str| match text {
        "true" | "1" | "on" => Some(true),
        "false" | "0" | "off" => Some(false),
        _ => None,
    };
    match (asked, shown) {
        (Some(asked), Some(shown)) => {
            let numbers = asked.parse::<f64>().ok().zip(shown.parse::<f64>().ok());
            asked == shown
                || numbers.is_some_and(|(asked, shown)| asked == shown)
                || truth(asked).is_some_and(|asked| truth(shown) == Some(asked))
        }
        (asked, shown) => asked == shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_options_and_parameters_have_one_each() {
        let of = |text: &str| option(&ServerSetting::parse(text));
        assert_eq!(of("wiredTigerCacheSizeGB=1.5").as_deref(), Some("--wiredTigerCacheSizeGB=1.5"));
        assert_eq!(of("directoryperdb").as_deref(), Some("--directoryperdb"));
        assert_eq!(of("setParameter.a=1").as_deref(), Some("--setParameter=a=1"));
        for wrong in ["", "-x=1", "a b=1", "setParameter=a=1", "setParameter.a", "setParameter.=1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(name_of("--setParameter=a=1"), "--setParameter=a");
        assert_eq!([name_of("--a=1=2"), name_of("--a")], ["--a", "--a"]);
    }

    #[test]
    fn options_are_found_in_a_help_text() {
        let help = "Options:\n  -f [ --config ] arg    File\n  --bind_ip arg  Addresses\n      \
                    --listen-addr=\"127.0.0.1:27017\"  Listen ($X).\n  --[no-]debug -- --log-level=\"info\"\n";
        assert_eq!(listed(help), ["config", "bind_ip", "listen-addr", "log-level"]);
    }

    #[test]
    fn values_are_compared_by_what_they_mean() {
        for (asked, shown) in [("1", "true"), ("off", "false"), ("5", "5.0"), ("x", "x")] {
            assert!(mean_the_same(Some(asked), Some(shown)), "{asked} {shown}");
        }
        assert!(!mean_the_same(Some("1"), Some("2")) && !mean_the_same(Some("1"), None));
        assert!(mean_the_same(None, None));
    }
}
