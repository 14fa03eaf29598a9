//! A throw-away PostgreSQL: data directory, configuration, pg_hba.conf.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use crate::folder::{copy_template, hand_over, run, unprivileged};
use crate::server::Plan;
use crate::{Certificates, Kind, Settings, Tls};

/// Lays out a server in `folder` and says how to run it.
pub(crate) fn plan(kind: Kind, settings: &Settings, folder: &Path, port: u16) -> Result<Plan> {
    let data = folder.join("data");
    let version = kind.version()?;
    copy_template(&format!("postgresql-{version}"), &data, |data| initdb(kind, data))?;

    let mut config = vec![
        "listen_addresses = '127.0.0.1'".to_owned(),
        format!("port = {port}"),
        format!("unix_socket_directories = '{}'", folder.display()),
        format!("max_connections = {}", settings.max_connections),
        // The data is thrown away, and a killed server (not a killed machine) finds every commit in the page cache.
        "fsync = off".to_owned(),
        "full_page_writes = off".to_owned(),
    ];
    let certificates = match settings.tls {
        Tls::Off => None,
        Tls::Offered | Tls::Required => {
            let made = Certificates::make(folder, &settings.certificate_names)?;
            hand_over(&made.server.0)?;
            hand_over(&made.server.1)?;
            config.push("ssl = on".to_owned());
            config.push(format!("ssl_ca_file = '{}'", made.ca.display()));
            config.push(format!("ssl_cert_file = '{}'", made.server.0.display()));
            config.push(format!("ssl_key_file = '{}'", made.server.1.display()));
            Some(made)
        }
    };
    config.extend(settings.config.iter().cloned());
    let mut file = OpenOptions::new().append(true).open(data.join("postgresql.conf"))?;
    writeln!(file, "{}", config.join("\n"))?;

    let host = if settings.tls == Tls::Required { "hostssl" } else { "host" };
    let mut access = vec!["local all postgres trust".to_owned()];
    match settings.access.as_slice() {
        [] => access.extend(["local all all trust".to_owned(), format!("{host} all all 127.0.0.1/32 trust")]),
        given => access.extend(given.iter().cloned()),
    }
    fs::write(data.join("pg_hba.conf"), access.join("\n") + "\n")?;

    Ok(Plan {
        program: kind.program("postgres"),
        arguments: vec!["-D".into(), data.clone().into()],
        socket: folder.join(format!(".s.PGSQL.{port}")),
        stale: Some(data.join("postmaster.pid")),
        stop: Signal::SIGINT,
        administrator: "postgres",
        version,
        certificates,
    })
}

/// An empty cluster with the superuser `postgres` and a superuser and database `app`.
fn initdb(kind: Kind, data: &Path) -> Result<()> {
    run(unprivileged(kind.program("initdb")).arg("-D").arg(data).args([
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
        "--no-sync",
    ]))?;
    let mut single = unprivileged(kind.program("postgres"))
        .args(["--single", "-D"])
        .arg(data)
        .arg("postgres")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = single.stdin.take().context("asked for a pipe")?;
    input.write_all(b"CREATE ROLE app SUPERUSER LOGIN\nCREATE DATABASE app OWNER app\n")?;
    drop(input);
    let output = single.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && !said.contains("ERROR"), "creating the role app: {said}");
    Ok(())
}
