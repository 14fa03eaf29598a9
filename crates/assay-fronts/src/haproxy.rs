//! HAProxy in front of one or more servers: connections are assigned round-robin, without understanding the protocol.

use std::ffi::OsString;
use std::path::PathBuf;

use assay_lab::front::{Front, Place};
use assay_lab::version::Version;

/// The proxy.
#[derive(Debug)]
pub struct HaProxy;

impl Front for HaProxy {
    fn name(&self) -> &'static str {
        "haproxy"
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn speaks(&self, _scheme: &str) -> bool {
        true
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        words.contains("HAProxy").then(|| Version::find(words)).flatten()
    }

    fn version_argument(&self) -> &'static str {
        "-v"
    }

    fn configuration_files(&self) -> &'static [&'static str] {
        &["haproxy.cfg"]
    }

    fn configuration(&self, place: &Place<'_>) -> Vec<(PathBuf, String)> {
        let mut lines = vec![
            "# Written by assay, overwritten at every start.".to_owned(),
            "defaults".to_owned(),
            "  mode tcp".to_owned(),
            "  balance roundrobin".to_owned(),
            "  timeout connect 10s".to_owned(),
            // Sessions that think are not disconnected.
            "  timeout client 1d".to_owned(),
            "  timeout server 1d".to_owned(),
        ];
        let settings = place.settings.iter();
        lines.extend(settings.map(|one| format!("  {} {}", one.name, one.value.as_deref().unwrap_or_default())));
        lines.extend(["listen servers".to_owned(), format!("  bind 127.0.0.1:{}", place.port)]);
        let servers = place.behind.iter().zip(1..);
        lines.extend(servers.map(|(port, number)| format!("  server s{number} 127.0.0.1:{port}")));
        vec![(place.folder.join("haproxy.cfg"), lines.join("\n") + "\n")]
    }

    fn arguments(&self, place: &Place<'_>) -> Vec<OsString> {
        vec!["-db".into(), "-f".into(), place.folder.join("haproxy.cfg").into()]
    }
}
