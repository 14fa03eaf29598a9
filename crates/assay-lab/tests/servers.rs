//! Every product really starts with the requested settings, placement, replicas and fronts; errors name their cause;
//! and nothing is left behind.
//!
//! One version of each product is enough for most tests. The oldest and the newest version of each are started too, and
//! all versions by `cargo xtask test --matrix` (`ASSAY_TEST_MATRIX`).

#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use assay_client::Client;
use assay_lab::binaries::{self, BinarySource};
use assay_lab::placement::{Cpus, Transparent, cpus, memory};
use assay_lab::process::{Identity, PID_FILE};
use assay_lab::server::What;
use assay_lab::{
    Account, Blame, Description, Fault, FrontDescription, Home, Placement, Server, ServerSetting, Status, Topology,
};
use assay_lab::{image, topology};
use assay_products::products;
use assay_seam::Nanos;
use nix::sys::signal::Signal;
use testkit::{Kind, Mounted, aloud, installed, root};

const PATIENCE: Duration = Duration::from_secs(90);
const HAPROXY: &str = "/usr/sbin/haproxy";

/// A description of a server with a unique name.
fn of(wanted: &str) -> Description {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let name = format!("{}-lab-{}", wanted.replace(':', "-"), NEXT.fetch_add(1, Ordering::Relaxed));
    Description { name: Some(name), patience: PATIENCE, ..Description::of(wanted.parse().unwrap()) }
}

fn home() -> Home {
    testkit::home().unwrap()
}

/// A topology that is removed at the end of the test.
struct Guard(Topology);

impl std::ops::Deref for Guard {
    type Target = Topology;

    fn deref(&self) -> &Topology {
        &self.0
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        for server in self.0.servers() {
            let _ = server.kill();
            let _ = server.remove();
        }
    }
}

#[track_caller]
fn start(description: &Description) -> Guard {
    Guard(Topology::start(&home(), description, &|_| ()).unwrap_or_else(|fault| panic!("{fault}")))
}

#[track_caller]
fn refused(description: &Description) -> Fault {
    let name = description.name.clone().unwrap();
    let fault = match Topology::start(&home(), description, &|_| ()) {
        Err(fault) => fault,
        Ok(topology) => {
            drop(Guard(topology));
            panic!("it started");
        }
    };
    assert!(!home().server(&name).exists(), "something is left of {name}");
    fault
}

fn value(server: &Server, sql: &str) -> String {
    server.session().unwrap().value(sql).unwrap()
}

/// What the tests can rely on: two versions of PostgreSQL, one of each other product.
fn here() -> Vec<&'static str> {
    let all = [
        (Kind::Postgres, "postgres"),
        (Kind::Postgres18, "postgres:18"),
        (Kind::MariaDb, "mariadb"),
        (Kind::MySql, "mysql:8.0"),
    ];
    all.into_iter().filter(|(kind, _)| kind.present()).map(|(_, wanted)| wanted).collect()
}

#[test]
fn a_server_has_the_settings_that_were_asked_for_and_says_what_it_made_of_them() {
    for wanted in here() {
        let settings = match wanted.starts_with("postgres") {
            true => {
                vec![
                    ServerSetting::new("work_mem", "5MB"),
                    ServerSetting::new("SHARED_BUFFERS", "20480kB"),
                    ServerSetting::new("my.own", "x"),
                ]
            }
            false => vec![
                ServerSetting::new("sort-buffer-size", "5M"),
                ServerSetting::new("innodb_buffer_pool_size", "130M"),
                ServerSetting::parse("skip-name-resolve"),
            ],
        };
        let topology = start(&Description { settings, ..of(wanted) });
        let found: Vec<(String, bool)> =
            topology.in_effect.iter().map(|one| (one.value.clone().unwrap_or_default(), one.same)).collect();
        let expected = match wanted {
            "postgres" | "postgres:18" => [("5MB", true), ("20MB", true), ("x", true)],
            // The buffer pool is a multiple of 128 MB.
            "mysql:8.0" => [("5242880", true), ("268435456", false), ("ON", true)],
            _ => [("5242880", true), ("136314880", true), ("ON", true)],
        };
        assert_eq!(found, expected.map(|(value, same)| (value.to_owned(), same)), "{wanted}");
        let (_, text) = &topology.primary.configuration()[0];
        assert!(text.contains("5M"), "{text}");
    }
}

#[test]
fn a_configuration_file_is_checked_and_compared_as_single_settings_are() {
    for wanted in here() {
        let (text, wrong, near, expected) = match wanted.starts_with("postgres") {
            true => (
                "# ours\nwork_mem = 6MB  # enough\nmax_connections = 40\n",
                "work_mem = 6MB\nmax_conections = 40\n",
                "max_connections",
                [("work_mem", "6MB"), ("max_connections", "41")],
            ),
            false => (
                "[client]\nport = 1\n[mysqld]\nsort_buffer_size = 6M\nmax-connections = 40\n",
                "[mysqld]\nmax_conections = 40\n",
                "max_connections",
                [("sort_buffer_size", "6291456"), ("max_connections", "41")],
            ),
        };
        // A setting given by name overrides the file.
        let settings = vec![ServerSetting::new("max_connections", "41")];
        let topology = start(&Description { file: Some(text.to_owned()), settings, ..of(wanted) });
        let found: Vec<(String, Option<String>, bool)> =
            topology.in_effect.iter().map(|one| (one.name.clone(), one.value.clone(), one.same)).collect();
        let expected = expected.map(|(name, value)| (name.to_owned(), Some(value.to_owned()), true));
        assert_eq!(found, expected, "{wanted}");
        let fault = refused(&Description { file: Some(wrong.to_owned()), ..of(wanted) });
        assert_eq!(fault.hints, [format!("did you mean {near}?")], "{fault}");
        assert_eq!(fault.details, ["line 2 of the configuration file: max_conections = 40"], "{fault}");
    }
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_name_and_a_wrong_value_in_the_servers_words() {
    for wanted in here() {
        let (name, near, wrong) = match wanted.starts_with("postgres") {
            true => ("shared_bufers", "shared_buffers", ("shared_buffers", "many")),
            false => ("innodb-bufer-pool-size", "innodb_buffer_pool_size", ("innodb_flush_method", "sometimes")),
        };
        let fault = refused(&Description { settings: vec![ServerSetting::new(name, "1GB")], ..of(wanted) });
        assert_eq!(
            (fault.blame, &*fault.hints[0]),
            (Blame::Usage, &*format!("did you mean {near}?")),
            "{wanted}: {fault}"
        );
        let fault = refused(&Description { settings: vec![ServerSetting::new(wrong.0, wrong.1)], ..of(wanted) });
        let words = fault.details.join("\n");
        assert!(fault.cause.contains("did not start") && words.contains(wrong.1), "{wanted}: {fault}");
    }
}

#[test]
fn a_stopped_server_comes_back_with_its_data_and_a_removed_one_leaves_nothing() {
    for wanted in here() {
        let topology = start(&of(wanted));
        let server = &topology.primary;
        server.session().unwrap().run(&["CREATE TABLE IF NOT EXISTS kept (id int)"]).unwrap_or_else(|_| {
            server.session().unwrap().run(&["CREATE TABLE app.kept (id int)"]).unwrap();
        });
        let identity = server.identity().unwrap();
        assert_eq!(server.status(), Status::Running);
        let ended = server.stop(PATIENCE).unwrap();
        assert!(matches!(ended.by, Some(Signal::SIGINT | Signal::SIGTERM)), "{wanted}: {ended:?}");
        assert!(!identity.runs() && server.status() == Status::Stopped && server.session().is_err());
        assert_eq!(server.stop(PATIENCE).unwrap().by, None);
        // Another process finds the server by its name.
        let again = Server::open(&home(), &server.name()).unwrap();
        again.restart(PATIENCE).unwrap();
        assert_eq!((again.status(), again.port()), (Status::Running, server.port()));
        let count = match wanted.starts_with("postgres") {
            true => "SELECT count(*) FROM kept",
            false => "SELECT count(*) FROM app.kept",
        };
        assert_eq!(value(&again, count), "0");
        assert!(again.remove().unwrap_err().cause.contains("still running"));
        again.stop(PATIENCE).unwrap();
        again.remove().unwrap();
        assert!(!home().server(&server.name()).exists());
    }
}

#[test]
fn faults_of_a_start_name_their_cause() {
    let known = refused(&of("postgers"));
    assert_eq!((known.blame, &*known.hints[0]), (Blame::Usage, "did you mean postgres?"));
    let version = refused(&of("postgres:7"));
    assert!(
        version.cause.contains("postgres:7 is neither installed") && version.details[0].contains("9.6.24"),
        "{version}"
    );
    let folder = tempfile::tempdir().unwrap();
    let empty = refused(&Description { binaries: Some(folder.path().to_owned()), ..of("postgres") });
    assert!(empty.cause.contains("no postgres in"), "{empty}");
    let name = refused(&Description { name: Some("no good/name".to_owned()), ..of("postgres") });
    assert!(name.cause.contains("is not a valid server name"), "{name}");
    if !Kind::Postgres.present() {
        return;
    }
    // A port in use.
    let first = start(&of("postgres"));
    let taken = refused(&Description { port: Some(first.primary.port()), ..of("postgres") });
    assert!(taken.hints.iter().any(|hint| hint.contains("is in use")), "{taken}");
    // A name in use; its server is left alone.
    let same = Description { name: Some(first.primary.name()), ..of("postgres") };
    let fault = Topology::start(&home(), &same, &|_| ()).unwrap_err();
    assert!(fault.cause.contains("already"), "{fault}");
    assert_eq!(first.primary.status(), Status::Running);
    // A data directory in use, of another version, or missing.
    let What::Database { data, .. } = first.primary.snapshot().what else { unreachable!() };
    let used = refused(&Description { data: Some(data), ..of("postgres") });
    assert!(used.cause.contains("in use"), "{used}");
    let folder = open_folder();
    fs::write(folder.path().join("PG_VERSION"), "9.4\n").unwrap();
    let old = refused(&Description { data: Some(folder.path().to_owned()), ..of("postgres") });
    assert!(old.cause.contains("belongs to PostgreSQL 9.4"), "{old}");
    fs::remove_file(folder.path().join("PG_VERSION")).unwrap();
    fs::write(folder.path().join("letter"), "dear reader").unwrap();
    let other = refused(&Description { data: Some(folder.path().to_owned()), ..of("postgres") });
    assert!(other.cause.contains("nor a data directory"), "{other}");
}

#[test]
fn a_taken_port_and_a_data_directory_in_use_are_named_by_every_product() {
    for wanted in here() {
        let first = start(&of(wanted));
        let taken = refused(&Description { port: Some(first.primary.port()), ..of(wanted) });
        assert!(taken.hints.iter().any(|hint| hint.contains("is in use")), "{wanted}: {taken}");
        let What::Database { data, .. } = first.primary.snapshot().what else { unreachable!() };
        let used = refused(&Description { data: Some(data), ..of(wanted) });
        assert!(used.cause.contains("in use"), "{wanted}: {used}");
        assert_eq!(value(&first.primary, "SELECT 1"), "1");
        // A server that is suspended and cannot react to a stop is killed.
        let identity = first.primary.identity().unwrap();
        first.primary.suspend();
        let ended = first.primary.stop(Duration::from_millis(50)).unwrap();
        assert!(ended.by == Some(Signal::SIGKILL) && !identity.runs(), "{wanted}: {ended:?}");
        first.primary.restart(PATIENCE).unwrap();
        assert_eq!(value(&first.primary, "SELECT 1"), "1");
    }
}

#[test]
fn a_data_directory_that_the_servers_user_may_not_write_is_named() {
    let Some(wanted) = here().first().copied().filter(|_| root("another user's folder")) else { return };
    let first = start(&of(wanted));
    first.primary.stop(PATIENCE).unwrap();
    let What::Database { data, .. } = first.primary.snapshot().what else { unreachable!() };
    // A copy that belongs to root, in a folder that others can only read.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("data");
    let copied = std::process::Command::new("cp").args(["-r", "--no-preserve=ownership"]).args([&data, &copy]).status();
    assert!(copied.unwrap().success());
    let fault = refused(&Description { data: Some(copy.clone()), ..of(wanted) });
    assert!(fault.to_string().contains("ermission denied"), "{fault}");
    assert!(copy.join("PG_VERSION").is_file());
}

#[test]
fn an_image_is_restored_by_sharing_blocks_where_the_filesystem_can() {
    let Some(wanted) = here().first().copied().filter(|_| root("a disk of its own")) else { return };
    let disks = tempfile::tempdir().unwrap();
    for (kind, options) in [("btrfs", ["-q", "-f"]), ("xfs", ["-q", "-f"])] {
        let disk = disks.path().join(kind);
        fs::File::create(&disk).unwrap().set_len(512 << 20).unwrap();
        let Ok(made) = std::process::Command::new(format!("mkfs.{kind}")).args(options).arg(&disk).output() else {
            // `cargo xtask install` installs one of them; either will do.
            assert!(kind == "xfs" || testkit::absent("mkfs.btrfs is missing"));
            continue;
        };
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let Some(mounted) = Mounted::new(&["-o", "loop", disk.to_str().unwrap()]) else { return };
        let home = Home::at(mounted.path().join("lab"), products());
        let topology =
            Topology::start(&home, &of(wanted), &|_| ()).map(Guard).unwrap_or_else(|fault| panic!("{fault}"));
        let restored = topology.restored.unwrap();
        assert_eq!(restored.method, image::Method::Reflink, "{kind}");
        assert_eq!(value(&topology.primary, "SELECT 1"), "1");
        // What the server wrote since then is not in the image.
        topology.stop(PATIENCE).unwrap();
        for image in image::list(&home).unwrap() {
            image::verify(&home, &image.key).unwrap();
        }
    }
}

#[test]
fn a_folder_too_deep_for_a_socket_is_said() {
    for wanted in here() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = Home::at(folder.path().join("a".repeat(100)), products());
        let fault = Topology::start(&home, &of(wanted), &|_| ()).map(Guard).map(drop).unwrap_err();
        assert_eq!(fault.hints, ["choose a folder with a shorter path with ASSAY_LAB"], "{wanted}: {fault}");
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_half_made() {
    let Some(wanted) = here().first().copied() else { return };
    // Too small to initialize a data directory; then large enough for that, but too small for its image.
    for size in ["size=20M", "size=62M"] {
        let Some(mounted) = Mounted::new(&["-t", "tmpfs", "-o", size, "tmpfs"]) else { return };
        let home = Home::at(mounted.path().join("lab"), products());
        let fault = Topology::start(&home, &of(wanted), &|_| ()).map(Guard).map(drop).unwrap_err();
        let words = fault.to_string();
        assert!(words.contains("free some space") && fault.blame == Blame::Environment, "{size}: {words}");
        assert_eq!(image::list(&home).unwrap().len(), 0);
        for (place, hidden) in [("servers", false), ("images", true)] {
            let left = fs::read_dir(home.cache.join(place)).unwrap().map(|entry| entry.unwrap().file_name());
            let left: Vec<_> = left.filter(|name| !(hidden && name.to_string_lossy().starts_with(".lock"))).collect();
            assert!(left.is_empty(), "{size}: {left:?}");
        }
    }
}

/// A folder that the servers' user can write.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

#[test]
fn a_program_that_cannot_run_says_which_library_or_permission_is_missing() {
    let folder = open_folder();
    let program = folder.path().join("postgres");
    let script = |text: &str| {
        // Whoever writes the file must have closed it before it is executed, so another process writes it.
        let made = std::process::Command::new("sh")
            .args(["-c", "printf '%s' \"$1\" >\"$2\" && chmod 755 \"$2\"", "sh", text])
            .arg(&program)
            .status();
        assert!(made.unwrap().success());
        refused(&Description { binaries: Some(program.clone()), ..of("postgres") })
    };
    let library = script(
        "#!/bin/sh\necho 'postgres: error while loading shared libraries: libaio.so.1: cannot open' >&2; exit 127\n",
    );
    assert!(library.cause.contains("libaio.so.1 is missing") && library.hints[0].contains("libaio1"), "{library}");
    let other = script("#!/bin/sh\necho 'frobnicator 1.0'\n");
    assert!(other.cause.contains("is not PostgreSQL"), "{other}");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o600)).unwrap();
    let fault = refused(&Description { binaries: Some(program.clone()), ..of("postgres") });
    assert!(fault.cause.contains("is not allowed to run"), "{fault}");
}

#[test]
fn a_named_data_directory_is_kept_and_started_again() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = open_folder();
    let data = folder.path().join("data");
    let description = Description { data: Some(data.clone()), ..of("postgres") };
    let first = start(&description);
    first.primary.session().unwrap().run(&["CREATE TABLE kept (id int)"]).unwrap();
    first.stop(PATIENCE).unwrap();
    first.remove().unwrap();
    assert!(data.join("PG_VERSION").is_file());
    let second = start(&description);
    assert_eq!(value(&second.primary, "SELECT count(*) FROM kept"), "0");
}

#[test]
fn a_server_that_hangs_at_its_stop_is_killed_within_a_bound_and_a_dead_one_is_seen() {
    if !Kind::Postgres.present() {
        return;
    }
    let topology = start(&of("postgres"));
    let server = &topology.primary;
    let identity = server.identity().unwrap();
    server.suspend();
    let ended = server.stop(Duration::from_millis(50)).unwrap();
    assert!(matches!(ended.by, Some(Signal::SIGKILL)), "{ended:?}");
    assert!(!identity.runs() && server.status() == Status::Stopped);
    server.restart(PATIENCE).unwrap();
    // It ends by itself.
    server.identity().unwrap().kill(PATIENCE);
    assert_eq!(server.status(), Status::Died);
    server.restart(PATIENCE).unwrap();
    assert_eq!(server.status(), Status::Running);
}

#[test]
fn a_process_of_the_same_number_is_never_taken_for_the_server() {
    if !Kind::Postgres.present() {
        return;
    }
    let topology = start(&of("postgres"));
    let server = &topology.primary;
    let path = server.folder().join(PID_FILE);
    let text = fs::read_to_string(&path).unwrap();
    server.stop(PATIENCE).unwrap();
    // A process of ours that has the process id of the dead server.
    let mut innocent = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let rest = text.split_once(' ').unwrap().1;
    fs::write(&path, format!("{} {rest}", innocent.id())).unwrap();
    assert_eq!(server.status(), Status::Died);
    server.stop(PATIENCE).unwrap();
    server.kill().unwrap();
    assert!(innocent.try_wait().unwrap().is_none());
    drop(innocent.stdin.take());
    innocent.wait().unwrap();
}

#[test]
fn servers_of_a_process_that_is_gone_are_stale_until_they_were_let_stay() {
    if !Kind::Postgres.present() {
        return;
    }
    let topology = start(&of("postgres"));
    let server = &topology.primary;
    assert_eq!(server.snapshot().owner, Some(Identity::own()));
    // As if the owner had ended.
    let mut other = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let owner = Identity::of(other.id()).unwrap();
    let path = server.folder().join("server.json");
    let mut state = server.snapshot();
    state.owner = Some(owner);
    fs::write(&path, serde_json::to_vec(&state).unwrap()).unwrap();
    let names = || -> Vec<String> { topology::stale(&home()).iter().map(Server::name).collect() };
    assert!(!names().contains(&server.name()));
    drop(other.stdin.take());
    other.wait().unwrap();
    assert!(names().contains(&server.name()));
    assert_eq!(Server::open(&home(), &server.name()).unwrap().status(), Status::Stale);
    topology.let_stay().unwrap();
    assert!(!names().contains(&server.name()));
}

#[test]
fn two_labs_at_once_get_servers_of_their_own() {
    if !Kind::Postgres.present() {
        return;
    }
    let names: Vec<(String, u16)> = std::thread::scope(|scope| {
        let start_one = || {
            let description = Description { name: None, ..of("postgres") };
            let topology = start(&description);
            let found = (topology.primary.name(), topology.primary.port());
            assert_eq!(value(&topology.primary, "SELECT 1"), "1");
            found
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(start_one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(names.len(), 3);
}

#[test]
fn replicas_have_caught_up_when_the_start_returns_and_follow_from_then_on() {
    for wanted in here() {
        let description = Description { replicas: 1, ..of(wanted) };
        let topology = start(&description);
        let table = if wanted.starts_with("postgres") { "seen" } else { "app.seen" };
        let create = format!("CREATE TABLE {table} (id int primary key)");
        topology.primary.session().unwrap().run(&[&create, &format!("INSERT INTO {table} VALUES (7)")]).unwrap();
        let replica = &topology.replicas[0];
        let sees = || Ok::<_, ()>(replica.session().unwrap().value(&format!("SELECT id FROM {table}")).ok());
        let seen = assay_lab::wait::until(PATIENCE, sees).unwrap();
        assert_eq!(seen.as_deref(), Some("7"), "{wanted}: {}", replica.log_tail(20));
        let write = topology.replicas[0].url("app");
        assert!(write.contains(&replica.port().to_string()));
        let group: Vec<String> =
            topology::group(&home(), &topology.primary.name()).unwrap().iter().map(Server::name).collect();
        assert_eq!(group, [replica.name(), topology.primary.name()]);
    }
}

#[test]
fn fronts_stand_before_a_server_one_behind_the_other() {
    let front = |name: &str, settings| FrontDescription { settings, ..FrontDescription::parse(name).unwrap() };
    if Kind::MySql.present() {
        let wrong = refused(&Description { fronts: vec![front("pgbouncer", Vec::new())], ..of("mysql:8.0") });
        assert!(wrong.cause.contains("does not work with MySQL"), "{wrong}");
    }
    if !Kind::Postgres.present() || !Kind::PgBouncer.present() || !installed(HAPROXY) {
        return;
    }
    let fronts =
        vec![front("pgbouncer", vec![ServerSetting::new("pool_mode", "session")]), front("haproxy", Vec::new())];
    let topology = start(&Description { fronts, ..of("postgres") });
    assert!(topology.url().contains(&topology.fronts[1].port().to_string()));
    let url = format!("{}?sslmode=disable", topology.url());
    let mut session =
        Client::open_url(assay_products::driver("postgres").unwrap(), &url, Nanos::from_secs(90)).unwrap();
    assert_eq!(session.value("SELECT current_user").unwrap(), "app");
    let (_, text) = &topology.fronts[0].configuration()[0];
    assert!(text.ends_with("pool_mode = session\n"), "{text}");
    let wrong = front("pgbouncer", vec![ServerSetting::new("pool_mode", "sometimes")]);
    let fault = refused(&Description { fronts: vec![wrong], ..of("postgres") });
    assert!(fault.cause.contains("did not start"), "{fault}");
}

#[test]
fn a_proxy_stands_before_several_servers() {
    if !installed(HAPROXY) {
        return;
    }
    let front = |text: &str| FrontDescription::parse(text).unwrap();
    for wanted in here() {
        let fronts = vec![front("haproxy:all")];
        let topology = start(&Description { replicas: 1, fronts, ..of(wanted) });
        let which = match wanted.starts_with("postgres") {
            true => "SELECT pg_is_in_recovery()::int",
            false => "SELECT @@GLOBAL.read_only",
        };
        let driver = topology.primary.product().unwrap().driver();
        let query = if wanted.starts_with("postgres") { "?sslmode=disable" } else { "?ssl-mode=disabled" };
        let url = format!("{}{query}", topology.url());
        let ask = |_| Client::open_url(&driver, &url, Nanos::from_secs(90)).unwrap().value(which).unwrap();
        // They are balanced round-robin, and the proxy itself needs some connections.
        let met: std::collections::BTreeSet<String> = (0..20).map(ask).collect();
        assert_eq!(met.into_iter().collect::<Vec<_>>(), ["0", "1"], "{wanted}");
    }
    assert_eq!(refused(&Description { fronts: vec![front("haproxy:replicas")], ..of("postgres") }).blame, Blame::Usage);
    let pooled = Description { replicas: 1, fronts: vec![front("pgbouncer:all")], ..of("postgres") };
    assert!(refused(&pooled).cause.contains("supports one server, not"));
    assert!(FrontDescription::parse("haproxy:some").unwrap_err().cause.contains("some is not known"));
}

#[test]
fn an_image_of_loaded_data_starts_another_server_with_it() {
    for wanted in here() {
        let description = of(wanted);
        let first = start(&description);
        let table = if wanted.starts_with("postgres") { "loaded" } else { "app.loaded" };
        let create = format!("CREATE TABLE {table} (id int primary key)");
        first.primary.session().unwrap().run(&[&create, &format!("INSERT INTO {table} VALUES (1), (2)")]).unwrap();
        let settled = first.settle(PATIENCE).unwrap();
        let last = match wanted.starts_with("postgres") {
            true => " bytes of WAL since",
            false => " bytes",
        };
        assert!(settled.complete && settled.reached.last().unwrap().ends_with(last), "{wanted}: {settled:?}");
        assert!(first.checkpoint(PATIENCE).unwrap().complete);
        if !wanted.starts_with("postgres") {
            assert!(settled.reached[1].starts_with("checkpoint age "), "{settled:?}");
            // The settings that made it flush faster are restored.
            assert_ne!(value(&first.primary, "SELECT @@innodb_max_dirty_pages_pct + 0"), "0");
        }
        let unique = format!("test {} of {}", description.name.as_ref().unwrap(), std::process::id());
        let contents = description.contents(products(), &first.primary.snapshot().binaries, &unique, "").unwrap();
        assert!(!image::exists(&home(), &contents));
        first.keep_image(&home(), &contents, &|_| ()).unwrap();
        assert_eq!(value(&first.primary, &format!("SELECT count(*) FROM {table}")), "2");
        drop(first);
        let second = Topology::start(&home(), &Description { image: Some(contents.key()), ..of(wanted) }, &|_| ());
        let counted = second.map(|topology| value(&Guard(topology).primary, &format!("SELECT count(*) FROM {table}")));
        image::remove(&home(), &contents.key()).unwrap();
        assert_eq!(counted.unwrap(), "2", "{wanted}");
    }
}

/// Whether this machine allows it; reports if not.
#[test]
fn a_server_runs_on_the_cpus_it_was_given_and_as_a_user_that_is_not_root() {
    let here = here();
    let Some(wanted) = here.first() else { return };
    let cpu = cpus::allowed(std::process::id())[0].1.to_string();
    let last = cpu.rsplit([',', '-']).next().unwrap().to_owned();
    let placement = Placement { cpus: Some(Cpus::of_this_machine(&last).unwrap()), ..Placement::default() };
    let topology = start(&Description { placement: placement.clone(), ..of(wanted) });
    let identity = topology.primary.identity().unwrap();
    for process in identity.children().iter().chain([&identity]) {
        for (_, allowed) in cpus::allowed(process.pid) {
            assert_eq!(Some(allowed), placement.cpus);
        }
        match fs::read_to_string(format!("/proc/{}/status", process.pid)) {
            Ok(status) => assert!(!status.contains("Uid:\t0\t"), "{status}"),
            // The server starts children that do not stay, such as PostgreSQL's workers of autovacuum.
            Err(error) => assert_ne!(process, &identity, "{error}"),
        }
    }
    // Our own process is back where it was.
    assert_eq!(cpus::allowed(std::process::id())[0].1.to_string(), cpu);
    assert!(Cpus::of_this_machine("99999").unwrap_err().cause.contains("no cpu 99999"));
    let fault = Account::choose(Some("no-such-user")).unwrap_err();
    assert!(fault.cause.contains("no-such-user"), "{fault}");
    assert!(!nix::unistd::geteuid().is_root() || Account::choose(Some("root")).unwrap_err().cause.contains("root"));
}

#[test]
fn a_server_has_no_more_memory_than_it_was_given_and_its_group_is_gone_afterwards() {
    let Some(wanted) = here().first().copied().filter(|_| root("a limit of memory")) else { return };
    let bytes = 200 << 20;
    let placement = Placement { memory_bytes: Some(bytes), ..Placement::default() };
    let topology = start(&Description { placement, ..of(wanted) });
    let server = &topology.primary;
    let pid = server.identity().unwrap().pid;
    let (limit, killed) = memory::limit_of(pid).unwrap();
    assert_eq!((limit, killed), (bytes, 0));
    let groups: Vec<PathBuf> = server.snapshot().undo.iter().filter_map(group_of).collect();
    assert!(groups[0].is_dir());
    // The limit is exceeded on purpose: a sort that may use far more memory than there is.
    let hungry = [
        "SET work_mem = '2GB'",
        "SELECT count(*) FROM (SELECT repeat('x', 1000) || i FROM generate_series(1, 1000000) AS g (i) ORDER BY 1) AS s",
    ];
    server.session().unwrap().run(&hungry).unwrap_err();
    // PostgreSQL ends all backends when the kernel kills one, and recovers.
    let killed = assay_lab::wait::until(PATIENCE, || {
        Ok::<_, ()>(memory::limit_of(pid).map(|(_, killed)| killed).filter(|killed| *killed > 0))
    });
    assert!(killed.unwrap().is_some());
    server.stop(PATIENCE).unwrap();
    assert!(!groups[0].exists() && server.snapshot().undo.is_empty());
}

fn group_of(undo: &assay_lab::placement::Undo) -> Option<PathBuf> {
    if let assay_lab::placement::Undo::Group(path) = undo { Some(path.clone()) } else { None }
}

#[test]
fn too_little_memory_is_said_and_undone() {
    let Some(wanted) = here().first().copied().filter(|_| root("a limit of memory")) else { return };
    let placement = Placement { memory_bytes: Some(2 << 20), ..Placement::default() };
    let fault = refused(&Description { placement, ..of(wanted) });
    assert!(fault.to_string().contains("memory"), "{fault}");
}

/// It changes the whole machine, so it is a single test.
#[test]
fn huge_pages_are_used_and_given_back_and_transparent_ones_are_as_before() {
    if here().is_empty() || !root("huge pages") {
        return;
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let state = || {
        (
            read("/proc/sys/vm/nr_hugepages"),
            read("/sys/kernel/mm/transparent_hugepage/enabled"),
            read("/proc/sys/vm/hugetlb_shm_group"),
        )
    };
    let before = state();
    if fs::File::options().write(true).open("/proc/sys/vm/nr_hugepages").is_err() {
        // Root in a container may not; then the test checks the message that a user sees.
        let placement = Placement { huge_pages_bytes: Some(64 << 20), ..Placement::default() };
        let fault = refused(&Description { placement, ..of(here()[0]) });
        assert!(fault.cause.contains("nr_hugepages"), "{fault}");
        return;
    }
    let other = if before.1.contains("[never]") { Transparent::Madvise } else { Transparent::Never };
    for wanted in here() {
        let placement =
            Placement { huge_pages_bytes: Some(100 << 20), transparent: Some(other), ..Placement::default() };
        let buffers =
            if wanted.starts_with("postgres") { "shared_buffers=16MB" } else { "innodb_buffer_pool_size=16M" };
        // The start itself verifies it: some of the server's memory is in huge pages.
        let started = Topology::start(
            &home(),
            &Description { placement, settings: vec![ServerSetting::parse(buffers)], ..of(wanted) },
            &|_| (),
        );
        let topology = match started.map(Guard) {
            Ok(topology) => topology,
            // Memory held by other programs is in the way: then nothing of the change remains.
            Err(fault) if fault.cause.contains("the kernel found room for") => {
                aloud(&format!("SKIPPED ALOUD: {fault}"));
                assert_eq!(state(), before, "{wanted}");
                continue;
            }
            Err(fault) => panic!("{wanted}: {fault}"),
        };
        assert!(state().1.contains(&format!("[{other}]")));
        let (sql, on) = match wanted.starts_with("postgres") {
            true => ("SELECT current_setting('huge_pages')", "on"),
            false => ("SELECT @@large_pages", "1"),
        };
        assert_eq!(value(&topology.primary, sql), on, "{wanted}");
        topology.primary.stop(PATIENCE).unwrap();
        assert_eq!(state(), before, "{wanted}");
    }
    let placement = Placement { huge_pages_bytes: Some(1 << 50), ..Placement::default() };
    let fault = refused(&Description { placement, ..of(here()[0]) });
    assert!(fault.cause.contains("cannot reserve"), "{fault}");
    assert_eq!(state(), before);
}

#[test]
fn myrocks_is_used_where_its_plugin_is() {
    if !Kind::MariaDb.present() || !installed("/usr/lib/mysql/plugin/ha_rocksdb.so") {
        return;
    }
    let settings = vec![
        ServerSetting::new("plugin_load_add", "ha_rocksdb"),
        ServerSetting::new("default_storage_engine", "rocksdb"),
        ServerSetting::new("rocksdb_block_cache_size", "64M"),
    ];
    let topology = start(&Description { settings, ..of("mariadb") });
    assert!(topology.in_effect[1..].iter().all(|one| one.same), "{:?}", topology.in_effect);
    let server = &topology.primary;
    server
        .session()
        .unwrap()
        .run(&["CREATE TABLE app.t (id int primary key)", "INSERT INTO app.t VALUES (1)"])
        .unwrap();
    assert_eq!(value(server, "SELECT engine FROM information_schema.tables WHERE table_name = 't'"), "ROCKSDB");
    let settled = topology.settle(PATIENCE).unwrap();
    assert!(settled.complete && settled.reached.last().unwrap().starts_with("MyRocks flushed"), "{settled:?}");
}

#[test]
fn sources_name_what_is_here_and_what_can_be_fetched() {
    let account = Account::choose(None).unwrap();
    for product in products().databases.iter().copied() {
        let all = binaries::sources(&home(), product, &account);
        let versions: Vec<String> = all.iter().map(|source| binaries::version_of(source).to_string()).collect();
        let oldest = product.catalog().first().map(|artifact| artifact.version);
        assert!(oldest.is_none_or(|oldest| versions.iter().any(|version| version == oldest)), "{versions:?}");
        for source in all {
            if let BinarySource::Catalog(_, artifact) = source {
                assert!(artifact.megabytes > 0 && artifact.coordinates.contains(':'), "{artifact:?}");
            }
        }
    }
}

/// The oldest and the newest version of each product; with `ASSAY_TEST_MATRIX` all of the catalog.
#[test]
fn every_version_of_the_catalog_starts_and_has_a_replica() {
    let mut wrong = Vec::new();
    for wanted in testkit::versions() {
        let description = Description { replicas: 1, ..of(&wanted) };
        match Topology::start(&home(), &description, &|_| ()).map(Guard) {
            Ok(topology) => {
                let version = if wanted.starts_with("postgres") { "SHOW server_version" } else { "SELECT @@version" };
                let said = value(&topology.primary, version);
                if !said.starts_with(wanted.split_once(':').unwrap().1) {
                    wrong.push(format!("{wanted} is {said}"));
                }
            }
            Err(fault) => wrong.push(format!("{wanted}: {fault}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
