//! How a server is found and which user is used: variables, files, several hosts, encryption.

use std::sync::OnceLock;

use testkit::{Kind, Server, ServerSetup, Tls};

use crate::bench::{Bench, Did, options};

const FILES: [(&str, &str); 2] = [
    (
        "it.lua",
        "function prepare()
           local con = sysbench.sql.driver():connect()
           if sysbench.opt.db_driver == 'pgsql' then
             print(con:query_row([[SELECT current_setting('application_name'), current_setting('TimeZone'),
               current_setting('DateStyle'), current_setting('client_encoding'), current_setting('work_mem'),
               ssl, current_user FROM pg_stat_ssl WHERE pid = pg_backend_pid()]]))
           else
             local cipher = select(2, con:query_row([[SHOW STATUS LIKE 'Ssl_cipher']]))
             print(cipher == '' and 'plain' or 'TLS')
           end
         end
         function event() end",
    ),
    ("services", "[one]\napplication_name=served\nhost=nosuch\nport=1\n[two]\nsslmode=require\n"),
];

/// A bench with environment variables.
fn bench(variables: &[(&str, &str)]) -> Bench {
    variables.iter().fold(Bench::new(&FILES), |bench, (name, value)| bench.with(name, value))
}

/// Both give the same result.
#[track_caller]
fn same_on_postgres(variables: &[(&str, &str)], more: &str) -> Did {
    let bench = bench(variables);
    let server = Kind::Postgres.shared();
    let line = format!("it.lua prepare {} {more}", options(server, &server.fresh_database().unwrap()));
    bench.same(&line)
}

#[test]
fn variables_of_libpq_hold() {
    let did = same_on_postgres(
        &[("PGAPPNAME", "me"), ("PGTZ", "UTC"), ("PGDATESTYLE", "German"), ("PGOPTIONS", "-c work_mem=7MB")],
        "",
    );
    assert!(did.stdout.contains("me\tUTC\tGerman, DMY\tUTF8\t7MB\tf\tapp\n"), "{}", did.stdout);
    assert!(same_on_postgres(&[("PGCLIENTENCODING", "LATIN1")], "").stdout.contains("\tLATIN1\t"));
    // Nothing else names connections.
    assert!(same_on_postgres(&[], "").stdout.contains("\n\t"));
    // Options take precedence, and they have defaults.
    assert_eq!(same_on_postgres(&[("PGHOST", "nosuch"), ("PGUSER", "nobody"), ("PGPORT", "1")], "").code, Some(0));
    assert_eq!(same_on_postgres(&[("PGHOST", "127.0.0.1")], "--pgsql-host=").code, Some(0));
}

#[test]
fn a_server_without_tls_is_not_enough_where_tls_is_required() {
    for variables in [
        &[("PGSSLMODE", "require")][..],
        &[("PGREQUIRESSL", "1")],
        &[("PGSERVICEFILE", "services"), ("PGSERVICE", "two"), ("PGSSLMODE", "disable")],
    ] {
        let did = same_on_postgres(variables, "");
        assert!(did.stdout.contains("server does not support SSL, but SSL was required"), "{}", did.stdout);
    }
}

#[test]
fn a_service_gives_what_options_leave_open() {
    let did = same_on_postgres(&[("PGSERVICEFILE", "services"), ("PGSERVICE", "one")], "");
    assert!(did.stdout.contains("\nserved\t"), "{}", did.stdout);
    same_on_postgres(&[("PGSERVICEFILE", "services"), ("PGSERVICE", "three")], "");
    same_on_postgres(&[("PGSERVICEFILE", "nowhere"), ("PGSERVICE", "three")], "");
}

#[test]
fn a_database_may_be_a_connection_string_and_a_host_a_list() {
    let bench = bench(&[]);
    let server = Kind::Postgres.shared();
    let common = format!("it.lua prepare --db-driver=pgsql --pgsql-port={} --pgsql-user=app", server.port());
    for line in [
        "--pgsql-host=127.0.0.2,127.0.0.1 --pgsql-db=app",
        "--pgsql-host=nosuch.invalid,127.0.0.1 --pgsql-db=app",
        "--pgsql-host=127.0.0.1 '--pgsql-db=dbname=app application_name=conn options=-c\\ work_mem=9MB'",
        "--pgsql-host=127.0.0.1 --pgsql-db=postgresql://nobody@nosuch:1/app?application_name=uri",
        "--pgsql-host=127.0.0.1 '--pgsql-db=dbname=app application_name'",
    ] {
        let did = bench.same(&format!("{common} {line}"));
        assert_eq!(did.code, Some(i32::from(line.ends_with("name'"))), "{}", did.shown());
    }
}

#[test]
fn an_event_that_never_connects_needs_no_options_that_can_be_used() {
    let bench = Bench::new(&[("it.lua", "function event() end")]).with("PGSSLMODE", "nonsense");
    bench.same("it.lua run --events=1 --db-driver=pgsql");
    bench.same("it.lua run --events=1 --mysql-ssl=on");
}

#[test]
fn the_password_of_mysql_may_be_a_variable() {
    let server = Kind::MariaDb.shared();
    let database = server.fresh_database().unwrap();
    let sql = "CREATE OR REPLACE USER secretive IDENTIFIED BY 'right'; GRANT ALL ON *.* TO secretive";
    server.sql("", sql).unwrap();
    for (variable, option, code) in [("right", "", 0), ("wrong", "", 1), ("wrong", "--mysql-password=right", 0)] {
        let bench = bench(&[("MYSQL_PWD", variable)]);
        let line = format!("it.lua prepare {} --mysql-user=secretive {option}", options(server, &database));
        assert_eq!(bench.same(&line).code, Some(code), "{variable} {option}");
    }
}

/// A server with TLS.
fn encrypting(kind: Kind) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 2] = [const { OnceLock::new() }; 2];
    let names = vec!["localhost".to_owned()];
    SERVERS[usize::from(kind == Kind::Postgres)].get_or_init(|| {
        kind.start(&ServerSetup { tls: Tls::Offered, certificate_names: names, ..ServerSetup::default() }).unwrap()
    })
}

/// A bench with the three files that `--mysql-ssl=on` reads; `root`: the CA's.
fn with_certificates(server: &Server, root: &std::path::Path) -> Bench {
    let bench = bench(&[]);
    let files = server.certificates();
    for (name, file) in
        [("cacert.pem", root), ("client-cert.pem", &*files.client.0), ("client-key.pem", &*files.client.1)]
    {
        std::fs::copy(file, bench.path(name)).unwrap();
    }
    bench
}

#[test]
fn mysql_ssl_verifies_the_server_with_the_files_that_it_is_given() {
    let server = encrypting(Kind::MariaDb);
    let files = server.certificates();
    let line = format!("it.lua prepare {}", options(server, &server.fresh_database().unwrap()));
    let did = with_certificates(server, &files.ca).same(&format!("{line} --mysql-ssl=on"));
    assert!(did.stdout.ends_with("TLS\n"), "{}", did.stdout);
    // All three files, or none.
    let did = bench(&[]).same(&format!("{line} --mysql-ssl=on"));
    assert!(did.stdout.contains("FATAL: error 2026: TLS/SSL error: No such file or directory (2)\n"), "{}", did.stdout);
    // The original shows OpenSSL's message.
    let stranger = with_certificates(server, &files.stranger);
    let (oracle, ours) =
        (stranger.oracle(&format!("{line} --mysql-ssl=on")), stranger.ours(&format!("{line} --mysql-ssl=on")));
    assert_eq!((oracle.code, ours.code), (Some(1), Some(1)));
    for did in [&oracle, &ours] {
        assert!(did.stdout.contains("FATAL: error 2026: TLS/SSL error: "), "{}", did.stdout);
    }
    // Modes of the development branch.
    let ours = |mode: &str| bench(&[]).ours(&format!("{line} --mysql-ssl={mode}"));
    assert!(ours("REQUIRED").stdout.ends_with("TLS\n"));
    assert!(ours("VERIFY_CA").stdout.contains("FATAL: error 2026: TLS/SSL error: "), "{}", ours("VERIFY_CA").stdout);
    let verified = bench(&[]).ours(&format!("{line} --mysql-ssl=VERIFY_CA --mysql-ssl-ca={}", files.ca.display()));
    assert!(verified.stdout.ends_with("TLS\n"), "{}", verified.stdout);
}

#[test]
fn a_mysql_server_without_tls_is_told_as_such() {
    let server = Kind::MariaDb.shared();
    let line = format!("it.lua prepare {}", options(server, &server.fresh_database().unwrap()));
    let did = bench(&[]).ours(&format!("{line} --mysql-ssl=REQUIRED"));
    assert!(did.stdout.contains("FATAL: error 2026: TLS/SSL error: the server ("), "{}", did.stdout);
    // The original continues without encryption.
    let encrypting = encrypting(Kind::MariaDb);
    let bench = with_certificates(encrypting, &encrypting.certificates().ca);
    let did = bench.ours(&format!("{line} --mysql-ssl=on"));
    assert_eq!(did.code, Some(1));
    assert!(did.stdout.contains("does not offer TLS\n"), "{}", did.stdout);
}

#[test]
fn certificates_are_verified_as_the_variables_of_libpq_say() {
    let server = encrypting(Kind::Postgres);
    let files = server.certificates();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let line = format!("it.lua prepare {}", options(server, "app"));
    let run = |root: &str, mode: &str| bench(&[("PGSSLROOTCERT", root), ("PGSSLMODE", mode)]);
    let did = run(&path(&files.ca), "verify-ca").same(&line);
    assert!(did.stdout.contains("\tt\tapp\n"), "{}", did.stdout);
    let stranger = run(&path(&files.stranger), "verify-ca");
    for did in [stranger.oracle(&line), stranger.ours(&line)] {
        assert_eq!(did.code, Some(1), "{}", did.shown());
        assert!(did.stdout.contains(" failed: SSL error: "), "{}", did.stdout);
    }
}
