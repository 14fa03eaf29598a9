//! Every kind of server really starts, does what its settings say, and survives what tests do to it.

#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use testkit::{Kind, ServerSetup, Tls};

const DATABASES: [Kind; 4] = [Kind::Postgres, Kind::Postgres18, Kind::MariaDb, Kind::MySql];

#[test]
fn every_database_answers_queries_and_has_the_user_app() {
    for kind in DATABASES.into_iter().filter(|kind| kind.present()) {
        let server = kind.shared();
        assert_eq!(server.sql("app", "SELECT 1 + 1;").unwrap(), "2\n", "{kind:?}");
        assert!(server.sql("app", "SELECT version();").unwrap().contains(server.version()), "{kind:?}");
        assert!(server.sql("app", "SELECT nonsense;").unwrap_err().to_string().contains("nonsense"), "{kind:?}");
        let one = server.fresh_database().unwrap();
        let other = server.fresh_database().unwrap();
        server.sql(&one, "CREATE TABLE t (id int);").unwrap();
        assert!(server.sql(&other, "SELECT * FROM t;").is_err(), "{kind:?}");
        assert!(server.socket().exists());
        TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    }
}

#[test]
fn a_killed_or_stopped_server_comes_back_on_its_port_with_its_data() {
    for kind in DATABASES.into_iter().filter(|kind| kind.present()) {
        let server = kind.start(&ServerSetup::default()).unwrap();
        server.sql("app", "CREATE TABLE kept (id int); INSERT INTO kept VALUES (7);").unwrap();
        let port = server.port();
        for end in [testkit::Server::kill9, testkit::Server::stop] {
            end(&server).unwrap();
            TcpStream::connect(("127.0.0.1", port)).expect_err("nobody listens");
            server.sql("app", "SELECT 1;").expect_err("nobody answers");
            server.restart().unwrap();
            assert_eq!(server.port(), port);
            assert_eq!(server.sql("app", "SELECT id FROM kept;").unwrap(), "7\n", "{kind:?}");
        }
    }
}

#[test]
fn a_suspended_server_answers_when_resumed() {
    for kind in DATABASES.into_iter().filter(|kind| kind.present()) {
        let server = kind.start(&ServerSetup::default()).unwrap();
        let pid = server.pid().unwrap();
        server.suspend().unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        // The kernel stops a process with many threads one thread at a time.
        while !state().contains("State:\tT") {
            std::thread::yield_now();
        }
        server.resume().unwrap();
        assert_eq!(server.sql("app", "SELECT 1;").unwrap(), "1\n", "{kind:?}");
    }
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_folder() {
    for kind in DATABASES.into_iter().filter(|kind| kind.present()) {
        let server = kind.start(&ServerSetup::default()).unwrap();
        let process = format!("/proc/{}", server.pid().unwrap());
        let folder = server.socket().parent().unwrap().to_owned();
        assert!(Path::new(&process).exists() && folder.exists());
        drop(server);
        assert!(!Path::new(&process).exists() && !folder.exists(), "{kind:?}");
    }
}

/// Runs itself again as the test that is killed while its servers run.
#[test]
fn a_killed_test_leaves_no_process_and_no_folder() {
    const NAME: &str = "a_killed_test_leaves_no_process_and_no_folder";
    let Some(kind) = DATABASES.into_iter().find(|kind| kind.present()) else { return };
    if std::env::var_os("TESTKIT_TO_BE_KILLED").is_some() {
        let server = kind.shared();
        println!("running\t{}\t{}", server.pid().unwrap(), server.socket().parent().unwrap().display());
        loop {
            std::thread::park();
        }
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env("TESTKIT_TO_BE_KILLED", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("running\t")).unwrap();
    let [_, pid, folder] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
    child.kill().unwrap();
    child.wait().unwrap();
    // Orphans may be reaped late here, so a zombie counts as gone.
    let runs = || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    let start = Instant::now();
    while runs() || Path::new(folder).exists() {
        assert!(start.elapsed().as_secs() < 30, "process {pid} or {folder} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn settings_reach_the_server() {
    let setting =
        |line: &str| ServerSetup { config: vec![line.to_owned()], max_connections: 33, ..ServerSetup::default() };
    for kind in DATABASES.into_iter().filter(|kind| kind.present()) {
        let server = match kind {
            Kind::Postgres | Kind::Postgres18 => kind.start(&setting("work_mem = '5MB'")),
            _ => kind.start(&setting("sort_buffer_size = 5M")),
        };
        let question = match kind {
            Kind::Postgres | Kind::Postgres18 => {
                "SELECT current_setting('work_mem'), current_setting('max_connections');"
            }
            _ => "SELECT CONCAT(@@sort_buffer_size DIV 1048576, 'MB'), @@max_connections;",
        };
        assert_eq!(server.unwrap().sql("", question).unwrap(), "5MB\t33\n", "{kind:?}");
    }
}

#[test]
fn a_server_that_cannot_start_says_why_in_its_own_words() {
    for kind in DATABASES.into_iter().filter(|kind| kind.present()) {
        let config = vec!["no_such_setting = 1".to_owned()];
        let error = kind.start(&ServerSetup { config, ..ServerSetup::default() }).map(|_| ()).unwrap_err();
        assert!(format!("{error:#}").contains("no_such_setting"), "{kind:?}: {error:#}");
    }
}

/// Logs in over TCP with a real client.
fn psql(port: u16, connection: &str, environment: &[(&str, &str)]) -> Result<String, String> {
    let output = Command::new(Kind::Postgres.program("psql"))
        .args(["-XAtq", "-c", "SELECT current_user", &format!("host=127.0.0.1 port={port} {connection}")])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

#[test]
fn postgres_checks_passwords_as_its_access_lines_say() {
    for kind in [Kind::Postgres, Kind::Postgres18].into_iter().filter(|kind| kind.present()) {
        let access = ["host all plain all password", "host all old all md5", "host all new all scram-sha-256"];
        let access = access.map(str::to_owned).to_vec();
        let server = kind.start(&ServerSetup { access, ..ServerSetup::default() }).unwrap();
        let roles = "CREATE ROLE plain LOGIN PASSWORD 'secret'; CREATE ROLE new LOGIN PASSWORD 'secret';
                     SET password_encryption = 'md5'; CREATE ROLE old LOGIN PASSWORD 'secret';";
        server.sql("app", roles).unwrap();
        for user in ["plain", "old", "new"] {
            let connection = format!("dbname=app user={user}");
            assert_eq!(psql(server.port(), &connection, &[("PGPASSWORD", "secret")]).as_deref(), Ok(user), "{kind:?}");
            let refused = psql(server.port(), &connection, &[("PGPASSWORD", "wrong")]).unwrap_err();
            assert!(refused.contains("password authentication failed"), "{kind:?}: {refused}");
        }
        assert!(psql(server.port(), "dbname=app user=app", &[]).unwrap_err().contains("no pg_hba.conf entry"));
    }
}

#[test]
fn postgres_encrypts_with_a_certificate_of_its_own_ca() {
    for kind in [Kind::Postgres, Kind::Postgres18].into_iter().filter(|kind| kind.present()) {
        let server = kind.start(&ServerSetup { tls: Tls::Required, ..ServerSetup::default() }).unwrap();
        let verify = |root: &Path| {
            let connection = format!("dbname=app user=app sslmode=verify-full sslrootcert={}", root.display());
            psql(server.port(), &connection, &[])
        };
        assert_eq!(verify(&server.certificates().ca).as_deref(), Ok("app"));
        assert!(verify(&server.certificates().stranger).unwrap_err().contains("certificate verify failed"));
        let plain = psql(server.port(), "dbname=app user=app sslmode=disable", &[]).unwrap_err();
        assert!(plain.contains("no encryption"), "{plain}");
    }
}

/// Runs MariaDB's client.
fn mariadb(port: u16, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(Kind::MariaDb.program("mariadb"))
        .args([
            "--no-defaults",
            "-BN",
            "--protocol=tcp",
            "--host=127.0.0.1",
            "-e",
            "SELECT SUBSTRING_INDEX(USER(), '@', 1)",
        ])
        .arg(format!("--port={port}"))
        .args(arguments)
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

#[test]
fn mysql_and_mariadb_check_passwords_with_every_plugin() {
    for (kind, plugins) in [
        (Kind::MariaDb, ["mysql_native_password", "ed25519"]),
        (Kind::MySql, ["mysql_native_password", "caching_sha2_password"]),
    ] {
        if !kind.present() {
            continue;
        }
        let server = kind.start(&ServerSetup { tls: Tls::Offered, ..ServerSetup::default() }).unwrap();
        for plugin in plugins {
            let password = match kind {
                Kind::MariaDb => format!("VIA {plugin} USING PASSWORD('secret')"),
                _ => format!("WITH {plugin} BY 'secret'"),
            };
            server.sql("", &format!("CREATE USER jane@'%' IDENTIFIED {password};")).unwrap();
            let ca = format!("--ssl-ca={}", server.certificates().ca.display());
            let login = |word: &str| mariadb(server.port(), &["--user=jane", &format!("--password={word}"), &ca]);
            assert_eq!(login("secret").as_deref(), Ok("jane"), "{kind:?} {plugin}");
            assert!(login("wrong").unwrap_err().contains("Access denied"), "{kind:?} {plugin}");
            server.sql("", "DROP USER jane@'%';").unwrap();
        }
    }
}

#[test]
fn mysql_and_mariadb_refuse_plain_connections_where_tls_is_required() {
    for kind in [Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present()) {
        let server = kind.start(&ServerSetup { tls: Tls::Required, ..ServerSetup::default() }).unwrap();
        let refused = mariadb(server.port(), &["--user=app", "--skip-ssl"]).unwrap_err();
        // MariaDB does not give the reason; the same login with TLS, below, shows it.
        assert!(refused.contains("insecure transport") || refused.contains("Access denied"), "{kind:?}: {refused}");
        assert_eq!(mariadb(server.port(), &["--user=app", "--ssl"]).as_deref(), Ok("app"), "{kind:?}");
        let off = kind.start(&ServerSetup::default()).unwrap();
        assert!(mariadb(off.port(), &["--user=app", "--ssl-verify-server-cert"]).is_err(), "{kind:?}");
        assert_eq!(mariadb(off.port(), &["--user=app"]).as_deref(), Ok("app"), "{kind:?}");
    }
}

#[test]
fn pgbouncer_passes_logins_on_with_and_without_passwords() {
    if !Kind::PgBouncer.present() || !Kind::Postgres.present() {
        return;
    }
    let access = vec!["host all jane all scram-sha-256".to_owned(), "host all app all trust".to_owned()];
    let server = Kind::Postgres.start(&ServerSetup { access, ..ServerSetup::default() }).unwrap();
    server.sql("app", "CREATE ROLE jane LOGIN PASSWORD 'secret';").unwrap();

    let open = server.pgbouncer(&[], 100).unwrap();
    assert_eq!(psql(open.port(), "dbname=app user=app", &[]).as_deref(), Ok("app"));
    let closed = server.pgbouncer(&[("jane", "secret")], 100).unwrap();
    assert_eq!(psql(closed.port(), "dbname=app user=jane", &[("PGPASSWORD", "secret")]).as_deref(), Ok("jane"));
    let refused = psql(closed.port(), "dbname=app user=jane", &[("PGPASSWORD", "wrong")]).unwrap_err();
    assert!(refused.contains("authentication failed"), "{refused}");
}
