//! Logging in: every authentication plugin, and every place that holds a password.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;

use insta::assert_snapshot;
use testkit::{Kind, Server, ServerSetup, Tls};

use crate::common::Folder;
use crate::{go, on_each, said};

/// Prints its user at the server, and whether the connection is encrypted.
pub(crate) const WHO: &str = r#"
local con = sysbench.sql.driver():connect()
local user, database = con:query_row("SELECT CURRENT_USER(), DATABASE()")
local _, cipher = con:query_row("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
print(user, database, cipher == "" and "plain" or "TLS")
"#;

/// Who we are on the server of `url`, or why it refused the login.
pub(crate) fn who(server: &Server, url: &str) -> String {
    said(server, &go(&Folder::new(), WHO, url, ""))
}

/// A server of this kind that offers TLS, with a user for each of its plugins, named like the plugin; all passwords are
/// `right`.
pub(crate) fn encrypting(kind: Kind) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 2] = [const { OnceLock::new() }; 2];
    SERVERS[usize::from(kind == Kind::MySql)].get_or_init(|| {
        let certificate_names = vec!["localhost".to_owned()];
        let server =
            kind.start(&ServerSetup { tls: Tls::Offered, certificate_names, ..ServerSetup::default() }).unwrap();
        let create = plugins(kind).map(|plugin| create(kind, plugin, plugin, "right")).concat();
        server.sql("", &create).unwrap();
        server
    })
}

/// Plugins that check passwords.
fn plugins(kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::MariaDb => ["mysql_native_password", "ed25519"],
        _ => ["mysql_native_password", "caching_sha2_password"],
    }
}

/// The statements that create a user with all privileges for a plugin.
fn create(kind: Kind, user: &str, plugin: &str, password: &str) -> String {
    let how = match kind {
        Kind::MariaDb => format!("VIA {plugin} USING PASSWORD('{password}')"),
        _ => format!("WITH {plugin} BY '{password}'"),
    };
    format!("CREATE USER {user}@'%' IDENTIFIED {how}; GRANT ALL ON *.* TO {user}@'%';")
}

#[test]
fn every_plugin_lets_the_right_password_in_over_every_channel() {
    on_each(|kind| {
        let server = encrypting(kind);
        for plugin in plugins(kind) {
            let account = format!("{plugin}@% app");
            let url = |parameters: &str| format!("{}{parameters}", server.url_as(&format!("{plugin}:right"), "app"));
            let socket = format!("mysql://{plugin}:right@/app?socket={}", server.socket().display());
            // The first login of a new account needs the full authentication of caching_sha2_password.
            assert_eq!(who(server, &url("?sslmode=disable")), format!("{account} plain\n"), "{kind:?}");
            assert_eq!(who(server, &url("")), format!("{account} TLS\n"), "{kind:?}");
            assert_eq!(who(server, &socket), format!("{account} plain\n"), "{kind:?}");
        }
    });
}

#[test]
fn the_full_exchange_of_caching_sha2_password_works_over_every_channel_and_makes_the_fast_one_work() {
    if !Kind::MySql.present() {
        return;
    }
    let server = encrypting(Kind::MySql);
    // Without a key pair the server accepts no password over a plain connection, unless it has cached the account.
    let config = vec!["caching_sha2_password_private_key_path = none.pem".to_owned()];
    let keyless = Kind::MySql.start(&ServerSetup { tls: Tls::Offered, config, ..ServerSetup::default() }).unwrap();
    let users = ["plain", "sealed", "local"];
    for server in [server, &keyless] {
        server
            .sql("", &users.map(|user| create(Kind::MySql, user, "caching_sha2_password", "right")).concat())
            .unwrap();
    }
    let url = |server: &Server, user: &str, channel: &str| match channel {
        "local" => format!("mysql://{user}:right@/app?socket={}", server.socket().display()),
        "sealed" => server.url_as(&format!("{user}:right"), "app?sslmode=require"),
        _ => server.url_as(&format!("{user}:right"), "app?sslmode=disable"),
    };
    for channel in users {
        let mode = if channel == "sealed" { "TLS" } else { "plain" };
        assert_eq!(who(server, &url(server, channel, channel)), format!("{channel}@% app {mode}\n"));
    }
    assert_snapshot!(who(&keyless, &url(&keyless, "sealed", "plain")), @r"
    error: mysql://sealed@127.0.0.1:[PORT]/app?sslmode=disable refused the connection
      Access denied for user 'sealed'@'127.0.0.1' (using password: YES) (1045)

    hint: check user and password; an account is a user name and the host it connects from; it may also want TLS, which `sslmode=disable` forbids
    ");
    for channel in ["sealed", "local"] {
        let mode = if channel == "sealed" { "TLS" } else { "plain" };
        assert_eq!(who(&keyless, &url(&keyless, channel, channel)), format!("{channel}@% app {mode}\n"));
        assert_eq!(
            who(&keyless, &url(&keyless, channel, "plain")),
            format!("{channel}@% app plain\n"),
            "{}",
            keyless.log_tail(20)
        );
    }
}

#[test]
fn many_sessions_of_one_new_account_log_in_at_once() {
    on_each(|kind| {
        let server = encrypting(kind);
        let plugin = plugins(kind)[1];
        server.sql("", &create(kind, "crowd", plugin, "r%40ght")).unwrap();
        let url = server.url_as("crowd:r%2540ght", "app?sslmode=disable");
        let folder = Folder::new();
        folder.write("in.lua", "function event() end\nfunction thread_init() sysbench.sql.driver():connect() end");
        folder.expect(&format!("run ./in.lua --db {url} --sessions 40 --transactions 1 --no-record"), 0);
    });
}

#[test]
fn a_wrong_password_is_refused_by_every_plugin() {
    on_each(|kind| {
        let server = encrypting(kind);
        for plugin in plugins(kind) {
            let plain = who(server, &server.url_as(&format!("{plugin}:wrong"), "app?sslmode=disable"));
            assert!(plain.contains("(1045)") && plain.contains("it may also want TLS"), "{plain}");
            for channel in ["prefer", "require"] {
                let url = server.url_as(&format!("{plugin}:wrong"), &format!("app?sslmode={channel}"));
                let said = who(server, &url).replace(plugin, "[USER]").replace("?sslmode=require", "");
                assert_snapshot!(said, @r"
                error: mysql://[USER]@127.0.0.1:[PORT]/app refused the connection
                  Access denied for user '[USER]'@'127.0.0.1' (using password: YES) (1045)

                hint: check user and password; an account is a user name and the host it connects from
                ");
            }
        }
    });
}

#[test]
fn a_password_that_is_not_given_or_not_wanted_is_told_apart() {
    on_each(|kind| {
        let server = encrypting(kind);
        let said = |user: &str| who(server, &server.url_as(user, "app"));
        assert_snapshot!(said("mysql_native_password"), @r"
        error: mysql://mysql_native_password@127.0.0.1:[PORT]/app refused the connection
          Access denied for user 'mysql_native_password'@'127.0.0.1' (using password: NO) (1045)

        hint: check user and password; an account is a user name and the host it connects from
        ");
        assert_snapshot!(said("app:needless"), @r"
        error: mysql://app@127.0.0.1:[PORT]/app refused the connection
          Access denied for user 'app'@'127.0.0.1' (using password: YES) (1045)

        hint: check user and password; an account is a user name and the host it connects from
        ");
        assert_snapshot!(said("nobody:x"), @r"
        error: mysql://nobody@127.0.0.1:[PORT]/app refused the connection
          Access denied for user 'nobody'@'127.0.0.1' (using password: YES) (1045)

        hint: check user and password; an account is a user name and the host it connects from
        ");
    });
}

#[test]
fn a_database_that_is_not_there_or_not_allowed_is_named() {
    on_each(|kind| {
        let server = kind.shared();
        server.sql("", "CREATE USER IF NOT EXISTS guest@'%';").unwrap();
        assert_snapshot!(who(server, &server.url("nowhere")).replace("mariadb:", "mysql:"), @r"
        error: mysql://app@127.0.0.1:[PORT]/nowhere refused the connection
          Unknown database 'nowhere' (1049)

        hint: create it: `CREATE DATABASE name`, or name another after the `/` of the URL
        ");
        assert_snapshot!(who(server, &server.url_as("guest", "app")).replace("mariadb:", "mysql:"), @r"
        error: mysql://guest@127.0.0.1:[PORT]/app refused the connection
          Access denied for user 'guest'@'%' to database 'app' (1044)

        hint: grant access: `GRANT ALL ON database.* TO user`
        ");
    });
}

#[test]
fn the_option_file_and_variables_stand_in_for_the_url() {
    on_each(|kind| {
        let server = encrypting(kind);
        let folder = Folder::new();
        folder.write("it.lua", &format!("sysbench.cmdline.commands = {{go = {{function()\n{WHO}\nend}}}}\n"));
        let asked = |url: &str, variables: &[(&str, &str)], code: i32| {
            said(server, &folder.expect_with(variables, &format!("exec ./it.lua go --db {url}"), code))
        };
        let port = server.port().to_string();
        let here = [("MYSQL_HOST", "127.0.0.1"), ("MYSQL_TCP_PORT", &*port), ("MYSQL_PWD", "right")];
        assert_eq!(asked("mysql://mysql_native_password@/app", &here, 0), "mysql_native_password@% app TLS\n");
        let socket = [("MYSQL_UNIX_PORT", server.socket().to_str().unwrap()), ("MYSQL_PWD", "right")];
        assert_eq!(asked("mysql://mysql_native_password@/app", &socket, 0), "mysql_native_password@% app plain\n");

        let file = format!(
            "[mysql]\nuser = other\n[client]\nuser = mysql_native_password # us\npassword = \"right\"\n\
             host = 127.0.0.1\nport = {port}\nssl-mode = REQUIRED\n[mysqld]\nuser = other\n"
        );
        let file = folder.write(".my.cnf", &file);
        assert_eq!(asked("mysql:///app", &[], 0), "mysql_native_password@% app TLS\n");
        assert_eq!(asked("mysql:///app", &[("MYSQL_PWD", "wrong")], 0), "mysql_native_password@% app TLS\n");
        // The URL takes precedence.
        let url = server.url_as("mysql_native_password:wrong", "app");
        assert!(asked(&url, &[], 4).contains("using password: YES"));
        assert_eq!(asked("mysql://app:@/app?sslmode=disable", &[], 0), "app@% app plain\n");
        // A file that everybody can write is ignored.
        fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
        let url = server.url_as("mysql_native_password", "app");
        assert!(asked(&url, &[], 4).contains("using password: NO"));
    });
}

#[test]
fn a_password_shows_nowhere() {
    on_each(|kind| {
        let server = encrypting(kind);
        server.sql("", &create(kind, "discreet", plugins(kind)[1], "unmistakable")).unwrap();
        let folder = Folder::new();
        folder
            .write("it.lua", "function event() end\nfunction thread_init() con = sysbench.sql.driver():connect() end");
        let url = server.url_as("discreet:unmistakable", "app");
        let ran = folder.expect(&format!("run ./it.lua --db {url} --transactions 1 --record r.json.zst"), 0);
        assert!(!ran.shown().contains("unmistakable"), "{}", ran.shown());
        let shown = folder.expect("show r.json.zst --format json", 0);
        assert!(shown.stdout.contains("discreet") && !shown.stdout.contains("unmistakable"), "{}", shown.stdout);
    });
}
