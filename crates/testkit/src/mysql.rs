//! A throw-away MySQL or MariaDB: data directory and option file.

use std::fs;
use std::path::Path;

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::folder::{copy_template, hand_over, run, unprivileged};
use crate::server::Plan;
use crate::{Certificates, Kind, Settings, Tls};

/// Lays out a server in `folder` and says how to run it.
pub(crate) fn plan(kind: Kind, settings: &Settings, folder: &Path, port: u16) -> Result<Plan> {
    let data = folder.join("data");
    let version = kind.version()?;
    copy_template(&format!("{}-{version}", kind.name()), &data, |data| initialize(kind, data))?;

    let socket = folder.join("mysql.sock");
    let init = folder.join("init.sql");
    // Run at every start before anyone can connect; one statement a line.
    fs::write(
        &init,
        "CREATE DATABASE IF NOT EXISTS app;\nCREATE USER IF NOT EXISTS app@'%';\nGRANT ALL ON *.* TO app@'%' WITH GRANT OPTION;\n",
    )?;
    let mut config = vec![
        "[mysqld]".to_owned(),
        format!("datadir = {}", data.display()),
        format!("socket = {}", socket.display()),
        format!("pid_file = {}", folder.join("server.pid").display()),
        format!("init_file = {}", init.display()),
        // A server that starts clears it of temporary tables, those of others too.
        format!("tmpdir = {}", folder.display()),
        format!("port = {port}"),
        "bind_address = 127.0.0.1".to_owned(),
        "skip_name_resolve".to_owned(),
        "performance_schema = OFF".to_owned(),
        format!("max_connections = {}", settings.max_connections),
        // The data is thrown away, and a killed server (not a killed machine) finds every commit in the page cache.
        "innodb_flush_log_at_trx_commit = 2".to_owned(),
        "innodb_doublewrite = OFF".to_owned(),
    ];
    match kind {
        Kind::MariaDb => config.push("plugin_load_add = auth_ed25519".to_owned()),
        _ => config.extend(unpacked_mysql(kind)),
    }
    let certificates = match settings.tls {
        Tls::Off => {
            config.push("ssl = OFF".to_owned());
            None
        }
        Tls::Offered | Tls::Required => {
            let made = Certificates::make(folder, &settings.certificate_names)?;
            hand_over(&made.server.1)?;
            config.push(format!("ssl_ca = {}", made.ca.display()));
            config.push(format!("ssl_cert = {}", made.server.0.display()));
            config.push(format!("ssl_key = {}", made.server.1.display()));
            if settings.tls == Tls::Required {
                config.push("require_secure_transport = ON".to_owned());
            }
            Some(made)
        }
    };
    config.extend(settings.config.iter().cloned());
    let file = folder.join("my.cnf");
    fs::write(&file, config.join("\n") + "\n")?;

    Ok(Plan {
        program: kind.program(if kind == Kind::MariaDb { "mariadbd" } else { "mysqld" }),
        arguments: vec![format!("--defaults-file={}", file.display()).into()],
        socket,
        stale: None,
        stop: Signal::SIGTERM,
        administrator: "root",
        version,
        certificates,
    })
}

/// What MySQL needs to be told when it does not lie where it was built for, and what to leave out.
fn unpacked_mysql(kind: Kind) -> Vec<String> {
    let program = kind.program("mysqld");
    let base = program.parent().and_then(Path::parent).expect("the program lies in BASE/bin");
    vec![
        format!("basedir = {}", base.display()),
        format!("lc_messages_dir = {}", base.join("share").display()),
        "mysqlx = OFF".to_owned(),
        "disable_log_bin".to_owned(),
    ]
}

/// An empty data directory; `root` has no password and gets in on the unix socket.
fn initialize(kind: Kind, data: &Path) -> Result<()> {
    let datadir = format!("--datadir={}", data.display());
    if kind == Kind::MariaDb {
        return run(unprivileged(kind.program("mariadb-install-db")).args([
            "--no-defaults",
            &datadir,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--innodb-log-file-size=8M", // It is copied for every server, and grows to what the server is told.
        ]));
    }
    let mut command = unprivileged(kind.program("mysqld"));
    command.args(["--no-defaults", "--initialize-insecure", "--innodb-redo-log-capacity=8M", &datadir]);
    for option in unpacked_mysql(kind) {
        command.arg(format!("--{}", option.replace(" = ", "=")));
    }
    run(&mut command)
}
