//! `assay bisect` over builds of a real server.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use testkit::Kind;

use crate::common::Folder;

/// A "build": the installed programs, with the options that the commit has added to the server.
const BUILD: &str = r#"
set -e
mkdir -p "$2/bin"
for program in "$3"/*; do ln -s "$program" "$2/bin/"; done
rm "$2/bin/postgres"
printf '#!/bin/sh\nexec "%s" "$@" %s\n' "$3/postgres" "$(git show "$1:options")" > "$2/bin/postgres"
chmod 755 "$2/bin/postgres"
"#;

const LOOKUPS: &str = r#"--- Single rows by their key.
function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE t AS SELECT i AS id, repeat('x', 100) AS pad FROM generate_series(1, 50000) i")
  con:query("CREATE INDEX t_id ON t (id)")
  con:query("VACUUM ANALYZE t")
end
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT pad FROM t WHERE id = " .. sysbench.rand.uniform(1, 50000)) end
"#;

/// Starts a server for each trial.
#[test]
fn a_bisection_over_builds_of_a_server_finds_the_commit() {
    if !Kind::Postgres.present() || !testkit::matrix() {
        return;
    }
    let folder = Folder::new();
    // The server's user reads the builds.
    let builds = tempfile::tempdir_in(testkit::lab_folder().unwrap()).unwrap();
    fs::set_permissions(builds.path(), Permissions::from_mode(0o755)).unwrap();
    let git = |words: &[&str]| -> String {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
        let output = Command::new("git").args(identity).args(words).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    let slow = "-c enable_indexscan=off -c enable_bitmapscan=off";
    let commits = ["", "-c jit=off", slow, &format!("{slow} -c jit=off")].map(|options| {
        folder.write("options", options);
        git(&["add", "options"]);
        git(&["commit", "--quiet", "--message", "options"]);
        git(&["rev-parse", "HEAD"])
    });
    folder.write("build.sh", BUILD);
    folder.write("lookups.lua", LOOKUPS);
    let programs = Kind::Postgres.program("postgres").parent().unwrap().display().to_string();
    let builds = builds.path().display().to_string();
    let line = format!(
        "bisect './lookups.lua --server postgres --prepare --sessions 2 --warmup 200ms --time 1s' \
         --commits {}..{} --build 'sh build.sh {{}} {builds}/{{}} {programs}' --binaries '{builds}/{{}}' --records found",
        commits[0], commits[3]
    );
    let found = folder.expect(&line, 0);
    assert!(found.stdout.starts_with(&format!("{} is the first bad one (", commits[2])), "{}", found.shown());
    assert!(found.stdout.contains("The plan of SELECT pad FROM t WHERE id = ? changed:"), "{}", found.shown());
}
