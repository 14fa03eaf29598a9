//! Databases by name, and the files that `assay new`, `lua` and `schema` write.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use testkit::Kind;

use crate::common::Folder;

const FILE: &str = ".config/assay/databases.toml";

#[test]
fn a_name_stands_for_its_url_and_the_file_is_the_user_s_own() {
    let folder = Folder::new();
    assert_snapshot!(folder.run("db list").shown(), @"
    exit 0
    --- stderr
    no names; such as: assay db add prod postgres://app@host/bench
    ");
    folder.expect("db add small sqlite:small.db", 0);
    folder.expect("db add prod postgres://app@db.example/bench --password-command 'pass show prod'", 0);
    let mode = std::fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_snapshot!(folder.expect("db list", 0).stdout, @"
    prod   postgres://app@db.example/bench  password from `pass show prod`
    small  sqlite:small.db
    ");
    assert_snapshot!(folder.run("db add small sqlite:other.db").shown(), @"
    exit 2
    --- stderr
    error: there is a database named small already

    hint: --force replaces it, `assay db list` shows it
    ");

    let tables = "--tables 1 --table-size 100";
    let prepared = folder.expect(&format!("prepare oltp_point_select --db small {tables} --no-record"), 0);
    assert!(prepared.stderr.starts_with("small: sqlite:small.db\n"), "{}", prepared.shown());
    let run = format!("run oltp_point_select --db=small {tables} --transactions 5 --record r.json --quiet");
    let ran = folder.expect(&run, 0);
    assert_eq!(ran.stderr, "", "{}", ran.shown());
    let spec = folder.expect("run --again r.json --print-spec", 0).stdout;
    let spec: Value = serde_json::from_str(&spec).unwrap();
    assert_eq!(spec["target"]["urls"], serde_json::json!(["sqlite:small.db"]));
    let refused = folder.expect(&format!("run oltp_point_select --db smal {tables}"), 2);
    assert_snapshot!(refused.shown(), @"
    exit 2
    --- stderr
    error: no database is named smal

    hint: did you mean small?
    ");
    folder.expect("db remove small", 0);
    folder.expect("db remove small", 2);
}

#[test]
fn the_variable_names_the_database_of_a_command_without_one_and_a_run_says_which() {
    let folder = Folder::new();
    let small = [("ASSAY_DB", "sqlite:small.db")];
    let load = "--tables 1 --table-size 100 --no-record";
    let prepared = folder.expect_with(&small, &format!("prepare oltp_point_select {load}"), 0);
    assert!(prepared.stderr.starts_with("ASSAY_DB: sqlite:small.db\n"), "{}", prepared.shown());
    let ran = folder.expect_with(&small, &format!("run oltp_point_select {load} --time 300ms --interval 100ms"), 0);
    assert!(ran.stderr.starts_with("ASSAY_DB: sqlite:small.db\ndatabase: sqlite:small.db\ntime s"), "{}", ran.shown());
    // Another one is given.
    let run = format!("run oltp_point_select {load} --db sqlite:none.db --transactions 1");
    assert!(!folder.expect_with(&small, &run, 4).stderr.contains("ASSAY_DB"));
    let ran = folder.expect(&format!("run oltp_point_select {load} --transactions 1"), 0);
    assert!(ran.stderr.starts_with("no --db: using an embedded SQLite database in "), "{}", ran.shown());
}

#[test]
fn a_recipe_may_name_its_database() {
    let folder = Folder::new();
    folder.expect("db add here sqlite:here.db", 0);
    folder.expect("db add there sqlite:there.db", 0);
    let load = "--tables 1 --table-size 100";
    for name in ["here", "there"] {
        folder.expect(&format!("prepare oltp_point_select {load} --db {name} --no-record --quiet"), 0);
    }
    folder.write(
        "named.toml",
        &format!(
            "title = 'Which one?'\n[server.db]\nurl = 'here'\n\
             [run]\nworkload = 'oltp_point_select {load}'\ntime = '200ms'\noptions = {{ telemetry = 'off' }}\n\
             [grid]\nplace = {{ \"server.db.url\" = ['here', 'there'] }}\n[trials]\ncount = 1\n"
        ),
    );
    let ran = folder.expect("lab run named.toml --folder named", 0);
    // Levels, copy and records have the URLs.
    assert!(ran.stdout.contains("sqlite:there.db"), "{}", ran.shown());
    let kept = std::fs::read_to_string(folder.path().join("named/recipe.toml")).unwrap();
    assert!(kept.contains("url = \"sqlite:here.db\""), "{kept}");
    // Another database under the same name is another experiment.
    let refused = folder.expect("lab run named.toml --folder named --set server.db.url=there", 2);
    assert!(refused.stderr.contains("sqlite:there.db"), "{}", refused.shown());
    folder.expect("lab plan named.toml --set server.db.url=nowhere", 2);
}

#[test]
fn a_password_comes_from_a_command_or_a_private_file_and_is_never_stored() {
    let folder = Folder::new();
    let refused = folder.expect("db add prod postgres://app:hunter2@127.0.0.1:1/bench", 2);
    assert!(!refused.shown().contains("hunter2"), "{}", refused.shown());
    let path = [("PATH", "/usr/bin:/bin")];
    let print = "run oltp_point_select --print-spec --db";
    let url = "postgres://app@127.0.0.1:1/bench";
    folder.expect(&format!("db add prod {url} --password-command 'printf hunter2'"), 0);
    let printed = folder.expect_with(&path, &format!("{print} prod"), 0);
    assert!(printed.stdout.contains("postgres://app:***@127.0.0.1:1/bench"), "{}", printed.shown());
    assert!(!printed.shown().contains("hunter2"), "{}", printed.shown());

    // A spec that was written without the password gets it from the entry with the same URL.
    folder.write("spec.json", &printed.stdout);
    folder.expect(&format!("db add prod {url} --force --password-command 'touch asked && printf hunter2'"), 0);
    assert!(!folder.names().contains(&"asked".to_owned()));
    let again = folder.expect_with(&path, "run --spec spec.json --print-spec", 0);
    assert_eq!(again.stdout, printed.stdout);
    assert!(folder.names().contains(&"asked".to_owned()), "{:?}", folder.names());

    folder.expect("db remove prod", 0);
    let secret = folder.write("secret", "hunter2\n");
    folder.expect(&format!("db add filed {url} --password-file secret"), 0);
    let printed = folder.run(&format!("{print} filed"));
    assert_snapshot!(printed.shown(), @"
    exit 5
    --- stderr
    error: no password for filed: [FOLDER]/secret can be read by other users: chmod 600 [FOLDER]/secret
    ");
    std::fs::set_permissions(secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(folder.expect(&format!("{print} filed"), 0).stdout.contains("app:***@"));

    folder.expect(&format!("db add failing {url} --password-command false"), 0);
    assert_snapshot!(folder.run(&format!("{print} failing")).shown(), @"
    exit 5
    --- stderr
    error: no password for failing: `false` failed (exit status: 1)
    ");
    // Somebody else could have written commands into it.
    std::fs::set_permissions(folder.path().join(FILE), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(folder.expect("db list", 5).stderr.contains("can be changed by other users"));
}

#[test]
fn a_test_of_a_database_says_what_telemetry_lacks_and_how_to_grant_it() {
    let cases = [
        (Kind::Postgres, "CREATE ROLE plain LOGIN;", "GRANT pg_monitor TO plain"),
        (
            Kind::MariaDb,
            "CREATE USER plain@'%'; GRANT SELECT ON *.* TO plain@'%';",
            "GRANT PROCESS ON *.* TO 'plain'@'%'",
        ),
        (
            Kind::MySql,
            "CREATE USER plain@'%'; GRANT SELECT ON *.* TO plain@'%';",
            "GRANT PROCESS ON *.* TO 'plain'@'%'",
        ),
    ];
    for (kind, create, grant) in cases {
        if !kind.present() {
            continue;
        }
        let (folder, server) = (Folder::new(), kind.shared());
        let database = server.fresh_database().unwrap();
        server.sql("", create).unwrap();
        folder.expect(&format!("db add plain {}", server.url_as("plain", &database)), 0);
        let lacking = folder.expect("db test plain", 0).stdout;
        assert!(lacking.contains(&format!("grant it: {grant}\n")), "{lacking}");
        assert!(lacking.contains("connections that the server allows: "), "{lacking}");
        assert!(lacking.contains("round trip  median "), "{lacking}");
        server.sql("", &format!("{grant};")).unwrap();
        let ready = folder.expect("db test plain", 0).stdout;
        assert!(!ready.contains("grant it") && !ready.contains("refused"), "{ready}");
        server
            .sql(
                "",
                &create.split("CREATE").nth(1).map_or(String::new(), |rest| {
                    let user = rest.split_whitespace().nth(1).unwrap().trim_end_matches(';').to_owned();
                    let what = if kind == Kind::Postgres { "ROLE" } else { "USER" };
                    format!("DROP {what} {user};")
                }),
            )
            .unwrap();
    }
    let folder = Folder::new();
    let sqlite = folder.expect("db test sqlite:small.db", 0).stdout;
    assert!(sqlite.contains("server      SQLite "), "{sqlite}");
    let refused = folder.expect("db test postgres://app@127.0.0.1:1/bench", 4).stderr;
    assert!(refused.starts_with("error: cannot connect to postgres://app@127.0.0.1:1/bench\n"), "{refused}");
}

#[test]
fn a_new_workload_runs_at_once_and_its_audit_holds() {
    let folder = Folder::new();
    let said = folder.expect("new workload mine", 0).stderr;
    assert!(said.starts_with("mine.lua written\n"), "{said}");
    let ran = folder.expect("run ./mine.lua --check --transactions 100 --format json --no-record", 0);
    let rules = ran.findings()["stages"][0]["audit"].clone();
    assert!(rules.as_array().unwrap().iter().all(|rule| rule["verdict"] == "passed"), "{rules}");
    let text = std::fs::read_to_string(folder.path().join("mine.lua")).unwrap();
    folder.write("mine.lua", &text.replace("  note:perform(amount)\n", ""));
    folder.expect("run ./mine.lua --check --transactions 100 --no-record", 1);

    assert_snapshot!(folder.run("new workload mine").shown(), @"
    exit 2
    --- stderr
    error: mine.lua is there already

    hint: --force replaces it
    ");
    folder.expect("new workload mine --force --from queue", 0);
    let copied = std::fs::read_to_string(folder.path().join("mine.lua")).unwrap();
    assert!(copied.starts_with("--- Job queue in a table"), "{copied}");
    assert_snapshot!(folder.run("new workload other --from queu").shown(), @"
    exit 2
    --- stderr
    error: there is no built-in workload queu

    hint: did you mean queue?
    ");
}

#[test]
fn a_new_recipe_runs_at_once() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.expect("new recipe mine", 0);
    let lab = testkit::lab_folder().unwrap();
    let variables = [("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
    let shorter = "--set trials.count=1 --set run.time=300ms --set run.warmup=0s --set run.sessions=1";
    let ran = folder.expect_with(&variables, &format!("lab run ./mine.toml --scale tiny {shorter}"), 0);
    assert!(ran.stdout.contains("commit"), "{}", ran.shown());

    folder.expect("new recipe copied --from keyset", 0);
    let text = std::fs::read_to_string(folder.path().join("copied.toml")).unwrap();
    assert!(text.starts_with("#:schema ./recipe.schema.json\n# Keyset or offset?\n"), "{text}");
    let written = std::fs::read_to_string(folder.path().join("recipe.schema.json")).unwrap();
    assert_eq!(folder.expect("schema recipe", 0).stdout, written);
}

/// Scripts see these, but only our own use them.
const UNDOCUMENTED: [&str; 2] = ["assay.run_plain", "assay.run_straight"];

#[test]
fn the_stubs_have_every_function_of_the_lua_api() {
    let folder = Folder::new();
    folder.expect("lua stubs stubs.lua", 0);
    let stubs = std::fs::read_to_string(folder.path().join("stubs.lua")).unwrap();
    folder.write(
        "names.lua",
        r#"
local function names(prefix, object)
  for name, value in pairs(object) do
    if type(name) == "string" and type(value) == "function" and name:sub(1, 2) ~= "__" then print(prefix .. name) end
  end
end
sysbench.cmdline.commands = { names = { function()
  names("assay.", assay)
  names("rand.", sysbench.rand)
  names("sql.", sysbench.sql)
  names("histogram.", sysbench.histogram)
  names("cmdline.", sysbench.cmdline)
  local con = sysbench.sql.driver():connect()
  local loader = con:loader("t", "a")
  for _, name in ipairs { "db_connect", "db_disconnect", "db_query", "db_bulk_insert_init", "db_bulk_insert_next",
    "db_bulk_insert_done", "db_prepare", "db_bind_param", "db_bind_result", "db_execute", "db_store_results",
    "db_free_results", "db_close", "sb_rand", "sb_rand_uniform", "sb_rand_gaussian", "sb_rand_special", "sb_rand_str",
    "sb_rand_uniq", "sb_rnd" } do
    names("", { [name] = _G[name] })
  end
  for prefix, object in pairs { ["Connection:"] = con, ["Driver:"] = con.driver, ["Loader:"] = loader } do
    names(prefix, getmetatable(object).__index)
  end
end } }"#,
    );
    let said = folder.expect("exec ./names.lua names --db sqlite:names.db", 0).stderr;
    // Parts of a loop over results that drivers here do not have, and of fronts.
    let foreign = ["Connection:check_error", "Connection:more_results", "Connection:next_result"];
    let missing: Vec<&str> = said
        .lines()
        .filter(|name| !stubs.contains(&format!("\nfunction {name}(")))
        .filter(|name| !foreign.contains(name) && !UNDOCUMENTED.contains(name))
        .collect();
    assert!(said.lines().count() > 60 && missing.is_empty(), "{missing:?}");
    // The result is Lua, too.
    folder.expect("exec ./stubs.lua nothing --db sqlite:names.db", 2);
}

/// What a checker concludes from the stubs alone. It does not see that one function fills a variable of the file before
/// another one uses it, so that its opinions on values that may be nil are left out.
const OF_STUBS: [&str; 7] = [
    "doc-syntax-error",
    "duplicate-doc-field",
    "missing-parameter",
    "redundant-parameter",
    "syntax-error",
    "type-not-found",
    "undefined-global",
];

#[test]
fn a_language_server_understands_the_stubs_and_the_examples_with_them() {
    if !testkit::matrix() || !testkit::has_lua_checker() {
        return;
    }
    let folder = Folder::new();
    folder.expect("lua stubs assay.lua", 0);
    folder.write(".emmyrc.json", r#"{ "runtime": { "version": "LuaJIT" } }"#);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/examples");
    for example in std::fs::read_dir(examples).unwrap().map(Result::unwrap) {
        std::fs::copy(example.path(), folder.path().join(example.file_name())).unwrap();
    }
    let check = || testkit::check_lua(folder.path()).unwrap();
    let found: Vec<String> =
        check().into_iter().filter(|line| OF_STUBS.iter().any(|kind| line.ends_with(&format!("[{kind}]")))).collect();
    assert_eq!(found, Vec::<String>::new());
    // What is not in the stubs is found.
    folder.write("wrong.lua", "function event() assay.no_such_function(nowhere) end");
    let found = check().join("\n");
    assert!(found.contains("nowhere") && found.contains("no_such_function"), "{found}");
}
