//! MongoDB's settings: those that its command line or its file of configuration set. What has its default is not
//! reported.

use assay_telemetry::{Harmless, SettingFacts};

/// What is known about them.
pub const SETTINGS: SettingFacts = SettingFacts {
    queries: &[r#"{"getCmdLineOpts": 1, "$db": "admin"}"#],
    harmless: &[
        Harmless {
            why: "addresses",
            names: &["parsed.net.bindIp", "parsed.net.port", "parsed.net.unixDomainSocket.pathPrefix"],
        },
        Harmless {
            why: "names of files",
            names: &[
                "parsed.config",
                "parsed.net.tls.CAFile",
                "parsed.net.tls.certificateKeyFile",
                "parsed.processManagement.fork",
                "parsed.processManagement.pidFilePath",
                "parsed.security.keyFile",
                "parsed.systemLog.destination",
                "parsed.systemLog.path",
            ],
        },
    ],
    folders: &["parsed.storage.dbPath"],
    // The words of the command line are not told apart.
    is_secret: |name| name.starts_with("argv"),
    ..SettingFacts::NONE
};
