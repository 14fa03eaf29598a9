//! Every sslmode, against servers that offer TLS, that do not, and that require it.

use insta::assert_snapshot;
use testkit::{Kind, Server, ServerSetup, Tls};

use crate::logins::{encrypting, who};
use crate::on_each;

/// The output of `who` for user `app` at a host with these URL parameters.
fn asked(server: &Server, host: &str, parameters: &str) -> String {
    who(server, &format!("mysql://app@{host}:{}/app?{parameters}", server.port()))
}

#[test]
fn without_tls_on_the_server_only_the_modes_that_insist_fail() {
    on_each(|kind| {
        let server = kind.shared();
        for mode in ["disable", "prefer"] {
            assert_eq!(asked(server, "127.0.0.1", &format!("sslmode={mode}")), "app@% app plain\n", "{kind:?} {mode}");
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            let said = asked(server, "127.0.0.1", &format!("sslmode={mode}")).replace(mode, "[MODE]");
            let said = said.replace(server.version(), "[VERSION]");
            let said = said.split_once("-MariaDB").map_or(said.clone(), |(before, after)| {
                format!("{before}{}", after.trim_start_matches(|letter| letter != ')'))
            });
            assert_snapshot!(said, @r"
            error: cannot connect to mysql://app@127.0.0.1:[PORT]/app?sslmode=[MODE]
              the server ([VERSION]) does not offer TLS

            hint: give the server a certificate (ssl_cert, ssl_key), or use `sslmode=prefer`
            ");
        }
    });
}

#[test]
fn with_tls_on_the_server_every_mode_but_disable_uses_it() {
    on_each(|kind| {
        let server = encrypting(kind);
        let ca = server.certificates().ca.display();
        assert_eq!(asked(server, "localhost", "sslmode=disable"), "app@% app plain\n", "{kind:?}");
        for mode in ["sslmode=prefer", "sslmode=require", "ssl-mode=REQUIRED", &format!("ssl-ca={ca}")] {
            assert_eq!(asked(server, "localhost", mode), "app@% app TLS\n", "{kind:?} {mode}");
        }
        for mode in ["verify-ca", "verify-full", "VERIFY_IDENTITY"] {
            let said = asked(server, "localhost", &format!("sslmode={mode}&sslrootcert={ca}"));
            assert_eq!(said, "app@% app TLS\n", "{kind:?} {mode}");
        }
    });
}

#[test]
fn a_certificate_of_another_authority_or_for_another_host_is_refused_where_it_is_looked_at() {
    on_each(|kind| {
        let server = encrypting(kind);
        let files = server.certificates();
        let said = |host: &str, mode: &str, root: &std::path::Path| {
            asked(server, host, &format!("sslmode={mode}&sslrootcert={}", root.display()))
        };
        assert_eq!(said("127.0.0.1", "verify-ca", &files.ca), "app@% app TLS\n", "{kind:?}");
        assert_snapshot!(said("localhost", "verify-ca", &files.stranger), @r"
        error: cannot connect to mysql://app@localhost:[PORT]/app?sslmode=verify-ca
          TLS handshake with 127.0.0.1:[PORT]: the server's certificate is signed by an unknown authority

        hint: give the root certificate that signed it, or do not verify (`require`)
        ");
        // As in libpq, a root certificate in the URL is always used.
        assert!(said("localhost", "require", &files.stranger).contains("an unknown authority"));
        assert_snapshot!(said("127.0.0.1", "verify-full", &files.ca), @r"
        error: cannot connect to mysql://app@127.0.0.1:[PORT]/app?sslmode=verify-full
          TLS handshake with 127.0.0.1:[PORT]: the server's certificate is valid for localhost, not for 127.0.0.1

        hint: connect by a name that the certificate has, or check only its chain (`verify-ca`)
        ");
        assert_snapshot!(said("localhost", "verify-full", std::path::Path::new("/nowhere/ca.pem")), @"error: cannot use mysql://app@localhost:[PORT]/app?sslmode=verify-full: reading /nowhere/ca.pem: no such file or directory");
    });
}

#[test]
fn accounts_that_require_tls_let_nobody_in_without() {
    on_each(|kind| {
        let server = encrypting(kind);
        let users = "CREATE USER encrypted@'%' REQUIRE SSL; CREATE USER certified@'%' REQUIRE X509;
            GRANT ALL ON *.* TO encrypted@'%'; GRANT ALL ON *.* TO certified@'%';";
        server.sql("", users).unwrap();
        let url = |user: &str, parameters: &str| server.url_as(user, &format!("app?{parameters}"));
        assert_eq!(who(server, &url("encrypted", "")), "encrypted@% app TLS\n", "{kind:?}");
        assert_snapshot!(who(server, &url("encrypted", "sslmode=disable")), @r"
        error: mysql://encrypted@127.0.0.1:[PORT]/app?sslmode=disable refused the connection
          Access denied for user 'encrypted'@'127.0.0.1' (using password: NO) (1045)

        hint: check user and password; an account is a user name and the host it connects from; it may also want TLS, which `sslmode=disable` forbids
        ");
        assert_snapshot!(who(server, &url("certified", "")), @r"
        error: mysql://certified@127.0.0.1:[PORT]/app refused the connection
          Access denied for user 'certified'@'127.0.0.1' (using password: NO) (1045)

        hint: check user and password; an account is a user name and the host it connects from
        ");
        let (certificate, key) = &server.certificates().client;
        let client = format!("ssl-cert={}&ssl-key={}", certificate.display(), key.display());
        assert_eq!(who(server, &url("certified", &client)), "certified@% app TLS\n", "{kind:?}");
    });
}

#[test]
fn a_server_that_requires_tls_says_so_or_is_explained() {
    on_each(|kind| {
        let server = kind.start(&ServerSetup { tls: Tls::Required, ..ServerSetup::default() }).unwrap();
        assert_eq!(asked(&server, "127.0.0.1", ""), "app@% app TLS\n", "{kind:?}");
        let said = asked(&server, "127.0.0.1", "sslmode=disable");
        match kind {
            Kind::MariaDb => assert_snapshot!(said, @r"
            error: mysql://app@127.0.0.1:[PORT]/app?sslmode=disable refused the connection
              Access denied for user 'app'@'127.0.0.1' (using password: NO) (1045)

            hint: check user and password; an account is a user name and the host it connects from; it may also want TLS, which `sslmode=disable` forbids
            "),
            _ => assert_snapshot!(said, @r"
            error: mysql://app@127.0.0.1:[PORT]/app?sslmode=disable refused the connection
              Connections using insecure transport are prohibited while --require_secure_transport=ON. (3159)

            hint: the server wants encryption: add `sslmode=require` to the URL
            "),
        }
        let socket = format!("mysql://app@/app?socket={}", server.socket().display());
        assert_eq!(who(&server, &socket), "app@% app plain\n", "{kind:?}");
    });
}
