//! What goes wrong in a cell: how it is done, what shows that it is felt, how it is put right, and how the run ends.

use std::io::{Read, Write};
use std::net::TcpStream;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Fault, Kind, Mounted, Proxy, Server, ServerSetup, Way};

use crate::cell::Scene;
use crate::common::Started;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    /// Network faults that end after a while.
    Reset,
    Refused,
    Blackhole,
    RequestsLost,
    AnswersLost,
    RequestsCut,
    AnswersCut,
    GarbageToServer,
    GarbageToClient,
    Trickle,
    /// Network faults in runs without retries.
    ResetUnretried,
    AnswersLostUnretried,
    /// Permanent network faults.
    RefusedForGood,
    SilentForGood,
    GarbageForGood,
    /// Faults of the load generator.
    AssayKilled,
    AssayTerminated,
    AssayInterrupted,
    /// Faults of the server.
    Stopped,
    BackendKilled,
    ServerKilled,
    Restarted,
    DiskFull,
    DiskFullForGood,
    ConnectionsExhausted,
    ExhaustedForGood,
    LoginChanged,
}

/// How a run must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It recovers, and completes its work.
    Completes,
    /// It gives up with this exit code and words on stderr.
    GivesUp(i32, &'static [&'static str]),
    /// It gets this signal, and ends in order.
    Signaled(Signal),
    /// It is killed itself.
    Killed,
}

impl Harm {
    pub(crate) const ALL: [Harm; 27] = [
        Harm::Reset,
        Harm::Refused,
        Harm::Blackhole,
        Harm::RequestsLost,
        Harm::AnswersLost,
        Harm::RequestsCut,
        Harm::AnswersCut,
        Harm::GarbageToServer,
        Harm::GarbageToClient,
        Harm::Trickle,
        Harm::ResetUnretried,
        Harm::AnswersLostUnretried,
        Harm::RefusedForGood,
        Harm::SilentForGood,
        Harm::GarbageForGood,
        Harm::AssayKilled,
        Harm::AssayTerminated,
        Harm::AssayInterrupted,
        Harm::Stopped,
        Harm::BackendKilled,
        Harm::ServerKilled,
        Harm::Restarted,
        Harm::DiskFull,
        Harm::DiskFullForGood,
        Harm::ConnectionsExhausted,
        Harm::ExhaustedForGood,
        Harm::LoginChanged,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Harm::Reset => "reset",
            Harm::Refused => "refused",
            Harm::Blackhole => "black hole",
            Harm::RequestsLost => "half-open: requests lost",
            Harm::AnswersLost => "half-open: answers lost",
            Harm::RequestsCut => "request cut in half",
            Harm::AnswersCut => "answer cut in half",
            Harm::GarbageToServer => "garbage to the server",
            Harm::GarbageToClient => "garbage to the client",
            Harm::Trickle => "one byte at a time",
            Harm::ResetUnretried => "reset, no retries",
            Harm::AnswersLostUnretried => "answers lost, no retries",
            Harm::RefusedForGood => "refused for good",
            Harm::SilentForGood => "silent for good",
            Harm::GarbageForGood => "garbage for good",
            Harm::AssayKilled => "assay: SIGKILL",
            Harm::AssayTerminated => "assay: SIGTERM",
            Harm::AssayInterrupted => "assay: SIGINT",
            Harm::Stopped => "server stopped, continued",
            Harm::BackendKilled => "backend killed",
            Harm::ServerKilled => "server killed",
            Harm::Restarted => "server restarted",
            Harm::DiskFull => "disk full",
            Harm::DiskFullForGood => "disk full for good",
            Harm::ConnectionsExhausted => "connections exhausted",
            Harm::ExhaustedForGood => "exhausted for good",
            Harm::LoginChanged => "password changed",
        }
    }

    /// Whether it harms the server itself, not only the way to it.
    pub(crate) fn needs_own_server(self) -> bool {
        self >= Harm::Stopped
    }

    /// Whether it fills the disk with the server's data, which must be a disk that nothing else uses.
    pub(crate) fn needs_own_disk(self) -> bool {
        matches!(self, Harm::DiskFull | Harm::DiskFullForGood)
    }

    /// More options of the run.
    pub(crate) fn options(self) -> &'static str {
        match self {
            Harm::RefusedForGood | Harm::ExhaustedForGood => "--reconnect-time 300ms",
            Harm::ResetUnretried | Harm::AnswersLostUnretried => "--retries 0 --on-error continue",
            Harm::GarbageToClient => "--on-error continue",
            Harm::DiskFull => "--on-error continue --body 4000",
            Harm::DiskFullForGood => "--body 4000",
            _ => "",
        }
    }

    pub(crate) fn end(self) -> End {
        match self {
            Harm::RefusedForGood => End::GivesUp(4, &["connection refused", "hint: "]),
            Harm::SilentForGood | Harm::AssayInterrupted => End::Signaled(Signal::SIGINT),
            Harm::AssayTerminated => End::Signaled(Signal::SIGTERM),
            Harm::AssayKilled => End::Killed,
            Harm::GarbageForGood => End::GivesUp(4, &["kept.lua:", "protocol"]),
            Harm::DiskFullForGood => End::GivesUp(4, &["kept.lua:", "hint: "]),
            Harm::ExhaustedForGood => End::GivesUp(4, &["oo many", "hint: "]),
            Harm::LoginChanged => End::GivesUp(4, &["jane", "hint: check user and password"]),
            _ => End::Completes,
        }
    }

    /// The fault of the network that it consists of.
    fn fault(self) -> Option<Fault> {
        Some(match self {
            Harm::Reset | Harm::ResetUnretried => Fault::Reset,
            Harm::Refused | Harm::RefusedForGood => Fault::Refuse,
            Harm::Blackhole | Harm::SilentForGood => Fault::Blackhole,
            Harm::RequestsLost => Fault::HalfOpen(Way::ToServer),
            Harm::AnswersLost | Harm::AnswersLostUnretried => Fault::HalfOpen(Way::ToClient),
            Harm::RequestsCut => Fault::Truncate(Way::ToServer),
            Harm::AnswersCut => Fault::Truncate(Way::ToClient),
            Harm::GarbageToServer => Fault::Garbage(Way::ToServer, SEED),
            Harm::GarbageToClient | Harm::GarbageForGood => Fault::Garbage(Way::ToClient, SEED),
            Harm::Trickle => Fault::Trickle,
            _ => return None,
        })
    }

    /// Does it to a run that has reported transactions, and puts it right again once it was felt, if it ever is.
    pub(crate) fn inflict(self, scene: &Scene<'_>, run: &mut Started<'_>) {
        let (server, proxy) = (scene.server, scene.proxy());
        if let Some(fault) = self.fault() {
            proxy.inflict(fault);
        }
        match self {
            Harm::Reset | Harm::ResetUnretried | Harm::RefusedForGood | Harm::GarbageForGood => {}
            Harm::Refused => {
                run.wait_for("is unavailable");
                proxy.heal();
            }
            Harm::Blackhole
            | Harm::RequestsLost
            | Harm::AnswersLost
            | Harm::AnswersLostUnretried
            | Harm::SilentForGood => {
                felt(run, proxy, scene.sessions_on_first);
                (0..3).for_each(|_| run.wait_for_any_interval());
                if self == Harm::SilentForGood {
                    return run.signal(Signal::SIGINT);
                }
                proxy.heal();
            }
            Harm::RequestsCut | Harm::AnswersCut | Harm::GarbageToServer | Harm::GarbageToClient | Harm::Trickle => {
                felt(run, proxy, scene.sessions_on_first);
                (0..3).for_each(|_| run.wait_for_any_interval());
                proxy.heal();
            }
            Harm::AssayKilled => {
                while scene.done_in_record() == 0 {
                    run.wait_for_any_interval();
                }
                run.signal(Signal::SIGKILL);
            }
            Harm::AssayTerminated => run.signal(Signal::SIGTERM),
            Harm::AssayInterrupted => run.signal(Signal::SIGINT),
            Harm::Stopped => {
                server.suspend().unwrap();
                (0..5).for_each(|_| run.wait_for_any_interval());
                server.resume().unwrap();
            }
            Harm::BackendKilled => {
                kill_backend(server, scene.database());
                run.wait_for_errors();
            }
            Harm::ServerKilled => {
                server.kill9().unwrap();
                run.wait_for("is unavailable");
                server.restart().unwrap();
            }
            Harm::Restarted => server.restart().unwrap(),
            Harm::DiskFull | Harm::DiskFullForGood => {
                let ballast = Ballast::fill(scene.disk.expect("the server's data are on it"));
                if self == Harm::DiskFull {
                    run.wait_for_errors();
                    drop(ballast);
                } else {
                    run.wait_for("error: ");
                }
            }
            Harm::ConnectionsExhausted | Harm::ExhaustedForGood => {
                // The run notices nothing until others have taken the places of its connections.
                proxy.inflict(Fault::Blackhole);
                felt(run, proxy, scene.sessions_on_first);
                end_connections(server, scene.database());
                let held = take_all_connections(server);
                proxy.inflict(Fault::Reset);
                run.wait_for(if self == Harm::ExhaustedForGood { "error: " } else { "is unavailable" });
                drop(held);
            }
            Harm::LoginChanged => {
                set_password(server, "changed");
                proxy.inflict(Fault::Reset);
                run.wait_for("error: ");
                set_password(server, PASSWORD);
            }
        }
    }

    /// The user of the run, as in a URL.
    pub(crate) fn user(self) -> String {
        if self == Harm::LoginChanged { format!("jane:{PASSWORD}") } else { "app".to_owned() }
    }
}

/// For garbage.
const SEED: u64 = 20_261_123;

/// Must not appear anywhere.
pub(crate) const PASSWORD: &str = "kept-secret";

/// Waits until so many connections are damaged.
fn felt(run: &mut Started<'_>, proxy: &Proxy, connections: usize) {
    while proxy.hits() < connections {
        run.wait_for("");
    }
}

/// A server for harms to servers, with its data on this disk.
pub(crate) fn own_server(kind: Kind, disk: Option<&Mounted>) -> Server {
    let access = ["host all jane 127.0.0.1/32 scram-sha-256", "local all all trust", "host all all 127.0.0.1/32 trust"];
    // Logins that go no further keep their places.
    let config = if kind == Kind::Postgres { vec![] } else { vec!["connect_timeout = 600".to_owned()] };
    let setup = ServerSetup {
        config,
        access: access.map(str::to_owned).into(),
        data: disk.map(|disk| disk.path().join("data")),
        max_connections: 40,
        ..ServerSetup::default()
    };
    let server = kind.start(&setup).unwrap();
    let create = match kind {
        Kind::Postgres => format!("CREATE ROLE jane LOGIN SUPERUSER PASSWORD '{PASSWORD}';"),
        _ => format!("CREATE USER jane@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO jane@'127.0.0.1';"),
    };
    server.sql("", &create).unwrap();
    server
}

fn set_password(server: &Server, password: &str) {
    let change = match server.kind() {
        Kind::Postgres => format!("ALTER ROLE jane PASSWORD '{password}';"),
        _ => format!("ALTER USER jane@'127.0.0.1' IDENTIFIED BY '{password}';"),
    };
    server.sql("", &change).unwrap();
}

/// Kills one process of PostgreSQL that serves the database, which makes the others quit as well. MySQL and MariaDB
/// have threads.
fn kill_backend(server: &Server, database: &str) {
    let connections = connections(server, database);
    if server.kind() == Kind::Postgres {
        kill(Pid::from_raw(connections[0]), Signal::SIGKILL).unwrap();
    } else {
        server.sql("", &format!("KILL {};", connections[0])).unwrap();
    }
}

/// The connections to a database, by the process or thread that serves them, in order.
fn connections(server: &Server, database: &str) -> Vec<i32> {
    let query = match server.kind() {
        Kind::Postgres => format!("SELECT pid FROM pg_stat_activity WHERE datname = '{database}' ORDER BY pid"),
        _ => format!("SELECT id FROM information_schema.processlist WHERE db = '{database}' ORDER BY id"),
    };
    server.sql("", &query).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// Ends all connections to a database.
fn end_connections(server: &Server, database: &str) {
    let end = |id| match server.kind() {
        Kind::Postgres => format!("SELECT pg_terminate_backend({id});"),
        _ => format!("KILL {id};"),
    };
    loop {
        let left = connections(server, database);
        if left.is_empty() {
            return;
        }
        // One may be gone in the meantime.
        left.into_iter().for_each(|id| drop(server.sql("", &end(id))));
    }
}

/// A file that fills a disk, removed when dropped.
struct Ballast(std::path::PathBuf);

impl Ballast {
    fn fill(disk: &Mounted) -> Ballast {
        let path = disk.path().join("ballast");
        let mut file = std::fs::File::create(&path).unwrap();
        let chunk = vec![0; 1 << 12];
        while file.write_all(&chunk).is_ok() {}
        Ballast(path)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Connections that keep a server from taking any more.
fn take_all_connections(server: &Server) -> Vec<TcpStream> {
    std::iter::from_fn(|| connection(server)).collect()
}

/// A connection that never gets far; `None`: there are too many.
fn connection(server: &Server) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let is_postgres = server.kind() == Kind::Postgres;
    if is_postgres {
        // The superuser gets the reserved ones, too.
        let mut startup = Vec::from([0, 0, 0, 0, 0, 3, 0, 0]);
        startup.extend(b"user\0app\0database\0app\0\0");
        startup[3] = startup.len() as u8;
        stream.write_all(&startup).unwrap();
    }
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    // PostgreSQL: authenticated, not an error. MySQL: the type behind the packet's header is not that of an error.
    let is_in = if is_postgres { head[0] == b'R' } else { head[4] != 0xff };
    is_in.then_some(stream)
}
