//! ClickHouse's settings: those of sessions, in the profile of all users.
//!
//! Settings of the server itself, such as `mark_cache_size`, keep the values of its package: the oldest supported
//! version does not show them, so nobody could say whether they are in effect.

use std::ffi::OsString;
use std::path::PathBuf;

use assay_client::Client;
use assay_lab::fault::{Fault, Result};
use assay_lab::product::{Configuration, Configure, InEffect, ServerSetting, Site};

use super::ClickHouse;

const FILES: [&str; 2] = ["config.xml", "users.xml"];

impl Configure for ClickHouse {
    fn layout(&self) -> &'static [&'static str] {
        &[]
    }

    fn huge_page_settings(&self) -> Vec<ServerSetting> {
        Vec::new()
    }

    fn configuration_files(&self) -> &'static [&'static str] {
        &FILES
    }

    fn configuration(&self, site: &Site<'_>, wanted: &Configuration<'_>) -> Result<Vec<(PathBuf, String)>> {
        if wanted.file.is_some() {
            return Err(Fault::usage("assay cannot add its paths to a configuration file of ClickHouse")
                .hint("give settings of sessions one by one: --set max_threads=4"));
        }
        let mut profile = String::new();
        for asked in wanted.settings {
            let is_name =
                |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let Some(value) = asked.value.as_deref().filter(|_| is_name(&asked.name)) else {
                return Err(Fault::usage(format!("setting {:?} is not a name with a value", asked.name))
                    .hint("write --set max_threads=4"));
            };
            profile += &format!("      <{0}>{1}</{0}>\n", asked.name, escaped(value));
        }
        // A server that was made before it had this port goes on without it.
        let http = match site.second_port {
            0 => String::new(),
            port => format!("<http_port>{port}</http_port>"),
        };
        let inner = |name: &str| escaped(&site.folder.join(name).display().to_string());
        let config = format!(
            "<?xml version=\"1.0\"?>\n<!-- Written by assay, overwritten at every start. -->\n<yandex>\n  \
             <logger><level>warning</level><console>1</console></logger>\n  <listen_host>127.0.0.1</listen_host>\n  \
             <tcp_port>{}</tcp_port>{http}\n  <path>{}/</path>\n  <tmp_path>{}/</tmp_path>\n  \
             <user_files_path>{}/</user_files_path>\n  <format_schema_path>{}/</format_schema_path>\n  \
             <mark_cache_size>5368709120</mark_cache_size>\n  <timezone>UTC</timezone>\n  \
             <users_config>{}</users_config>\n  <default_profile>default</default_profile>\n  \
             <default_database>default</default_database>\n  \
             <query_log><database>system</database><table>query_log</table></query_log>\n</yandex>\n",
            site.port,
            escaped(&site.data.display().to_string()),
            inner("tmp"),
            inner("files"),
            inner("schemas"),
            FILES[1],
        );
        let user = |name: &str| {
            format!(
                "    <{name}>\n      <password></password>\n      <networks><ip>127.0.0.1</ip></networks>\n      \
                 <profile>default</profile>\n      <quota>default</quota>\n    </{name}>\n"
            )
        };
        let users = format!(
            "<?xml version=\"1.0\"?>\n<yandex>\n  <profiles>\n    <default>\n{profile}    </default>\n  </profiles>\n  \
             <users>\n{}{}  </users>\n  <quotas><default></default></quotas>\n</yandex>\n",
            user("app"),
            user("default"),
        );
        Ok(vec![(site.folder.join(FILES[0]), config), (site.folder.join(FILES[1]), users)])
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        vec![format!("--config-file={}", site.folder.join(FILES[0]).display()).into()]
    }

    fn known_settings(&self, _: &Site<'_>) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn has_settings_without_value(&self) -> bool {
        false
    }

    /// The program cannot list them: a server with an unknown setting does not start, and names it.
    fn may_know(&self, _: &Site<'_>, _: &str, _: &Configuration<'_>) -> bool {
        true
    }

    fn in_effect(
        &self,
        session: &mut Client,
        settings: &[ServerSetting],
    ) -> std::result::Result<Vec<InEffect>, String> {
        let mut all = Vec::new();
        for one in settings {
            let sql = format!("SELECT value FROM system.settings WHERE name = '{}'", one.name);
            let value = session.rows(&sql)?.pop().and_then(|row| row.into_iter().next().flatten());
            let same = value.is_some() && value == one.value;
            all.push(InEffect { name: one.name.clone(), asked: one.value.clone(), value, same });
        }
        Ok(all)
    }
}

/// As text of an element.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
