//! Logging in: every authentication method and every sslmode, against servers that support them and servers that do
//! not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;

use insta::assert_snapshot;
use testkit::{Kind, Server, ServerSetup, Tls};

use crate::common::Folder;
use crate::on_every_version;

/// Prints its user at the server, and whether the server sees TLS.
const WHO: &str = r#"
sysbench.cmdline.commands = {who = {function()
  local con = sysbench.sql.driver():connect()
  print(con:query_row([[SELECT current_user, current_database(), CASE WHEN ssl THEN 'TLS' ELSE 'plain' END
    FROM pg_stat_ssl WHERE pid = pg_backend_pid()]]))
end}}
"#;

/// A role for every rule of pg_hba.conf, named like it; all passwords are `right`. The server's certificate is valid
/// for localhost only.
fn server(kind: Kind) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 2] = [const { OnceLock::new() }; 2];
    SERVERS[usize::from(kind == Kind::Postgres18)].get_or_init(|| {
        let mut access = vec!["hostssl all sealed 127.0.0.1/32 trust".to_owned()];
        access.extend(
            ["hostnossl all bare 127.0.0.1/32 trust", "host all banned 127.0.0.1/32 reject"].map(str::to_owned),
        );
        for (role, method) in
            [("trusting", "trust"), ("plain", "password"), ("hashed", "md5"), ("scram", "scram-sha-256")]
        {
            access.push(format!("local all {role} {method}"));
            access.push(format!("host all {role} 127.0.0.1/32 {method}"));
        }
        let certificate_names = vec!["localhost".to_owned()];
        let settings = ServerSetup { access, certificate_names, tls: Tls::Offered, ..ServerSetup::default() };
        let server = kind.start(&settings).unwrap();
        let roles = ["sealed", "bare", "banned", "trusting", "plain", "scram"];
        let roles = roles.map(|role| format!("CREATE ROLE {role} LOGIN PASSWORD 'right';")).concat();
        server
            .sql("", &format!("{roles} SET password_encryption = 'md5'; CREATE ROLE hashed LOGIN PASSWORD 'right';"))
            .unwrap();
        server
    })
}

/// The output of a command that asks the server of `url` who we are: a line, or the error.
fn asked(folder: &Folder, server: &Server, variables: &[(&str, &str)], url: &str) -> String {
    folder.write("who.lua", WHO);
    let mut command = folder.command(&format!("exec ./who.lua who --db {url}"));
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let socket_folder = server.socket().parent().unwrap().to_str().unwrap();
    let home = folder.path().to_str().unwrap();
    let port = server.port().to_string();
    let mut known = vec![(home, "[HOME]"), (socket_folder, "[SERVER]"), (&*port, "[PORT]")];
    let certificate = url.split(['?', '&']).find_map(|part| part.strip_prefix("sslrootcert="));
    known.extend(certificate.and_then(|path| path.rsplit_once('/')).map(|(folder, _)| (folder, "[CERTIFICATES]")));
    testkit::redact::replace(std::str::from_utf8(&output.stderr).unwrap(), &known).replace('\t', " ")
}

/// Connects as a role, with parameters in the URL.
fn asked_as(server: &Server, host: &str, role: &str, parameters: &str) -> String {
    asked(&Folder::new(), server, &[], &format!("postgres://{role}@{host}:{}/app{parameters}", server.port()))
}

#[test]
fn every_method_of_authentication_lets_the_right_password_in() {
    on_every_version(|kind| {
        let server = server(kind);
        for role in ["trusting", "plain", "hashed", "scram"] {
            let said = asked_as(server, "127.0.0.1", &format!("{role}:right"), "?sslmode=disable");
            assert_eq!(said, format!("{role} app plain\n"), "{}", server.version());
            let said = asked_as(server, "127.0.0.1", &format!("{role}:right"), "");
            assert_eq!(said, format!("{role} app TLS\n"), "{}", server.version());
            let socket = server.socket().parent().unwrap().display();
            let url = format!("postgres://{role}:right@/app?host={socket}&port={}", server.port());
            assert_eq!(asked(&Folder::new(), server, &[], &url), format!("{role} app plain\n"), "{}", server.version());
        }
    });
}

#[test]
fn channel_binding_that_is_required_takes_scram_over_tls() {
    on_every_version(|kind| {
        let server = server(kind);
        let said = |role: &str, parameters: &str| asked_as(server, "127.0.0.1", role, parameters);
        assert_eq!(said("scram:right", "?channel_binding=require"), "scram app TLS\n");
        assert_eq!(said("scram:right", "?channel_binding=disable"), "scram app TLS\n");
        assert_snapshot!(said("scram:right", "?channel_binding=require&sslmode=disable"), @r"
        error: cannot connect to postgres://scram@127.0.0.1:[PORT]/app?channel_binding=require&sslmode=disable
          channel_binding=require, but the server does not offer it or TLS is not in use

        hint: this needs TLS (sslmode=require) and a role with a scram-sha-256 password
        ");
        assert_snapshot!(said("hashed:right", "?channel_binding=require"), @r"
        error: cannot connect to postgres://hashed@127.0.0.1:[PORT]/app?channel_binding=require
          channel_binding=require, but the server does not use channel binding

        hint: this needs TLS (sslmode=require) and a role with a scram-sha-256 password
        ");
        assert_snapshot!(said("scram:wrong", "?channel_binding=require"), @r#"
        error: postgres://scram@127.0.0.1:[PORT]/app?channel_binding=require refused the connection
          password authentication failed for user "scram" (28P01)

        hint: check user and password: the URL, PGUSER and PGPASSWORD, ~/.pgpass
        "#);
    });
}

#[test]
fn a_wrong_password_is_refused_by_every_method() {
    on_every_version(|kind| {
        let server = server(kind);
        for role in ["plain", "hashed", "scram"] {
            let said = asked_as(server, "127.0.0.1", &format!("{role}:wrong"), "").replace(role, "[ROLE]");
            assert_snapshot!(said, @r#"
            error: postgres://[ROLE]@127.0.0.1:[PORT]/app refused the connection
              password authentication failed for user "[ROLE]" (28P01)

            hint: check user and password: the URL, PGUSER and PGPASSWORD, ~/.pgpass
            "#);
            let said = asked_as(server, "127.0.0.1", role, "").replace(role, "[ROLE]");
            assert_snapshot!(said, @r"
            error: cannot connect to postgres://[ROLE]@127.0.0.1:[PORT]/app
              the server asks for a password for user [ROLE]

            hint: give one in the URL, in PGPASSWORD or in ~/.pgpass
            ");
        }
    });
}

#[test]
fn a_role_database_or_rule_that_is_not_there_is_named() {
    on_every_version(|kind| {
        let server = server(kind);
        let said = |url: &str| asked(&Folder::new(), server, &[], &url.replace("[PORT]", &server.port().to_string()));
        assert_snapshot!(said("postgres://trusting@127.0.0.1:[PORT]/nowhere"), @r#"
        error: postgres://trusting@127.0.0.1:[PORT]/nowhere refused the connection
          database "nowhere" does not exist (3D000)

        hint: create the database first (createdb NAME), or use another one in the URL
        "#);
        assert_snapshot!(said("postgres://stranger@127.0.0.1:[PORT]/app?sslmode=disable"), @r#"
        error: postgres://stranger@127.0.0.1:[PORT]/app?sslmode=disable refused the connection
          no pg_hba.conf entry for host "127.0.0.1", user "stranger", database "app", no encryption (28000)

        hint: the server's pg_hba.conf says who may log in, from where and how
        "#);
        assert_snapshot!(said("postgres://banned@127.0.0.1:[PORT]/app?sslmode=disable"), @r#"
        error: postgres://banned@127.0.0.1:[PORT]/app?sslmode=disable refused the connection
          pg_hba.conf rejects connection for host "127.0.0.1", user "banned", database "app", no encryption (28000)

        hint: the server's pg_hba.conf says who may log in, from where and how
        "#);
    });
}

#[test]
fn a_role_that_does_not_exist_is_told_apart_from_a_missing_rule() {
    on_every_version(|kind| {
        let server = kind.shared();
        assert_snapshot!(asked_as(server, "127.0.0.1", "stranger", ""), @r#"
        error: postgres://stranger@127.0.0.1:[PORT]/app refused the connection
          role "stranger" does not exist (28000)

        hint: check the user name, or create the role first (createuser NAME)
        "#);
    });
}

#[test]
fn a_password_file_and_variables_stand_in_for_the_url() {
    on_every_version(|kind| {
        let server = server(kind);
        let (folder, port) = (Folder::new(), server.port().to_string());
        let passwords =
            folder.write(".pgpass", &format!("# passwords\n127.0.0.1:{port}:*:scram:right\n*:*:*:*:wrong\n"));
        let readable_by = |mode| fs::set_permissions(&passwords, fs::Permissions::from_mode(mode)).unwrap();
        let url = format!("postgres://scram@127.0.0.1:{port}/app");
        readable_by(0o600);
        assert_eq!(asked(&folder, server, &[], &url), "scram app TLS\n");
        readable_by(0o644);
        assert_snapshot!(asked(&folder, server, &[], &url), @r"
        error: cannot connect to postgres://scram@127.0.0.1:[PORT]/app
          the server asks for a password for user scram

        hint: [HOME]/.pgpass was ignored because others may read it: chmod 0600 [HOME]/.pgpass
        ");

        let elsewhere = folder.write("passwords", &format!("localhost:{port}:app:plain:right\n"));
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
        let variables = [
            ("PGHOST", "localhost"),
            ("PGPORT", &*port),
            ("PGUSER", "plain"),
            ("PGDATABASE", "app"),
            ("PGSSLMODE", "disable"),
            ("PGPASSFILE", elsewhere.to_str().unwrap()),
        ];
        assert_eq!(asked(&folder, server, &variables, "postgres://"), "plain app plain\n");
        let variables = [("PGPASSWORD", "right"), ("PGDATABASE", "elsewhere"), ("PGUSER", "stranger")];
        assert_eq!(asked(&folder, server, &variables, &url), "scram app TLS\n", "the URL goes first");
        // PgBouncer and others understand the same messages.
        let socket = server.socket().parent().unwrap().to_str().unwrap();
        let variables = [("PGHOST", socket), ("PGPORT", &*port), ("PGPASSWORD", "right")];
        assert_eq!(asked(&folder, server, &variables, "postgres://hashed@/app"), "hashed app plain\n");
    });
}

#[test]
fn passwords_are_shown_nowhere() {
    on_every_version(|kind| {
        let server = server(kind);
        let folder = Folder::new();
        folder.write("one.lua", "function event() sysbench.sql.driver():connect():query('SELECT 1') end");
        let url = format!("postgres://scram:right@127.0.0.1:{}/app", server.port());
        let ran = folder.expect(&format!("run ./one.lua --db {url} --transactions 1 --record r.json.zst"), 0);
        let shown = folder.expect("show r.json.zst --format json", 0);
        assert!(!ran.shown().contains("right") && !shown.shown().contains("right"), "{}", shown.shown());
        assert!(shown.stdout.contains(&format!("postgres://scram@127.0.0.1:{}/app", server.port())));
    });
}

#[test]
fn every_sslmode_does_what_it_does_in_libpq() {
    on_every_version(|kind| {
        let (encrypting, plain) = (server(kind), kind.shared());
        let ca = encrypting.certificates().ca.display().to_string();
        let with_tls = |host: &str, mode: &str| asked_as(encrypting, host, "trusting", &format!("?sslmode={mode}"));
        for (mode, seen) in [("disable", "plain"), ("allow", "plain"), ("prefer", "TLS"), ("require", "TLS")] {
            assert_eq!(with_tls("127.0.0.1", mode), format!("trusting app {seen}\n"), "{mode}");
        }
        let verify_ca = format!("verify-ca&sslrootcert={ca}");
        let verify_full = format!("verify-full&sslrootcert={ca}");
        // A root certificate turns require into verify-ca.
        for mode in [&verify_ca, &format!("require&sslrootcert={ca}")] {
            assert_eq!(with_tls("127.0.0.1", mode), "trusting app TLS\n", "{mode}");
        }
        assert_eq!(with_tls("localhost", &verify_full), "trusting app TLS\n");
        assert_snapshot!(with_tls("127.0.0.1", &verify_full), @r"
        error: cannot connect to postgres://trusting@127.0.0.1:[PORT]/app?sslrootcert=[CERTIFICATES]/ca.pem&sslmode=verify-full
          TLS handshake with 127.0.0.1:[PORT]: the server's certificate is valid for localhost, not for 127.0.0.1

        hint: connect by a name that the certificate has, or check only its chain (`verify-ca`)
        ");

        let without = |mode: &str| asked_as(plain, "127.0.0.1", "app", &format!("?sslmode={mode}"));
        for mode in ["disable", "allow", "prefer"] {
            assert_eq!(without(mode), "app app plain\n", "{mode}");
        }
        for mode in ["require", &verify_ca, &verify_full] {
            assert_snapshot!(without(mode).replace("sslrootcert=[CERTIFICATES]/ca.pem&", "").replace(mode.split('&').next().unwrap(), "[MODE]"), @r"
            error: cannot connect to postgres://app@127.0.0.1:[PORT]/app?sslmode=[MODE]
              the server does not offer TLS

            hint: turn on ssl in the server, or connect with ?sslmode=disable
            ");
        }
    });
}

#[test]
fn a_certificate_that_a_stranger_signed_is_refused() {
    on_every_version(|kind| {
        let server = server(kind);
        let stranger = server.certificates().stranger.display().to_string();
        for mode in ["require", "verify-ca", "verify-full"] {
            let said = asked_as(server, "localhost", "trusting", &format!("?sslmode={mode}&sslrootcert={stranger}"));
            assert_snapshot!(said.replace("verify-full", "verify-ca"), @r"
            error: cannot connect to postgres://trusting@localhost:[PORT]/app?sslrootcert=[CERTIFICATES]/stranger.pem&sslmode=verify-ca
              TLS handshake with 127.0.0.1:[PORT]: the server's certificate is signed by an unknown authority

            hint: give the root certificate that signed it, or do not verify (`require`)
            ");
        }
        let absent = asked_as(server, "localhost", "trusting", "?sslmode=verify-full");
        assert_snapshot!(absent, @r"
        error: cannot connect to postgres://trusting@localhost:[PORT]/app?sslmode=verify-full
          TLS handshake with 127.0.0.1:[PORT]: the server's certificate is signed by an unknown authority

        hint: give the root certificate that signed it, or do not verify (`require`)
        ");
    });
}

#[test]
fn a_server_that_insists_on_tls_or_on_none_is_met_by_the_modes_that_try_both() {
    on_every_version(|kind| {
        let server = server(kind);
        let said = |role: &str, mode: &str| asked_as(server, "127.0.0.1", role, &format!("?sslmode={mode}"));
        for mode in ["allow", "prefer", "require"] {
            assert_eq!(said("sealed", mode), "sealed app TLS\n", "{mode}");
        }
        for mode in ["disable", "allow", "prefer"] {
            assert_eq!(said("bare", mode), "bare app plain\n", "{mode}");
        }
        assert_snapshot!(said("sealed", "disable"), @r#"
        error: postgres://sealed@127.0.0.1:[PORT]/app?sslmode=disable refused the connection
          no pg_hba.conf entry for host "127.0.0.1", user "sealed", database "app", no encryption (28000)

        hint: the server's pg_hba.conf says who may log in, from where and how
        "#);
        assert_snapshot!(said("bare", "require"), @r#"
        error: postgres://bare@127.0.0.1:[PORT]/app?sslmode=require refused the connection
          no pg_hba.conf entry for host "127.0.0.1", user "bare", database "app", SSL encryption (28000)

        hint: the server's pg_hba.conf says who may log in, from where and how
        "#);
    });
}

#[test]
fn a_client_certificate_is_shown_when_the_server_wants_one() {
    on_every_version(|kind| {
        let access = vec!["hostssl all app 127.0.0.1/32 cert".to_owned()];
        let server = kind.start(&ServerSetup { access, tls: Tls::Offered, ..ServerSetup::default() }).unwrap();
        let (certificate, key) = &server.certificates().client;
        let shown = format!("?sslcert={}&sslkey={}", certificate.display(), key.display());
        assert_eq!(asked_as(&server, "127.0.0.1", "app", &shown), "app app TLS\n");
        assert_snapshot!(asked_as(&server, "127.0.0.1", "app", "?sslmode=require"), @r"
        error: postgres://app@127.0.0.1:[PORT]/app?sslmode=require refused the connection
          connection requires a valid client certificate (28000)

        hint: the server's pg_hba.conf says who may log in, from where and how
        ");
    });
}

/// Each of the two waits for the other to speak; the name of the other product comes before the login times out.
#[test]
fn a_mysql_url_of_a_postgresql_server_is_suspected_by_name() {
    on_every_version(|kind| {
        let (folder, port) = (Folder::new(), kind.shared().port());
        let url = format!("mysql://root@127.0.0.1:{port}/x?connect-timeout=6");
        let ran = folder.expect(&format!("run oltp_point_select --db {url} --time 1s --no-record"), 4);
        let words = "waits for its client to speak first: is its URL postgres://USER@HOST/DATABASE?";
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    });
}
