//! Several machines behind slow links to the servers of this one.
//!
//! Each machine is a network namespace with a virtual cable to a hub. Ports of the hub lead to the servers, which
//! listen on loopback of the real machine, so that nothing leaves it. The kernel delays the packets of a cable (netem);
//! without netem, the hub's ports do. Without namespaces, the programs run on the real machine and the hub's ports are
//! on loopback. Anything but the first is reported past the test harness.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns, unshare};

use crate::aloud;
use crate::cable::run;

/// See the module. They vanish with the programs that were started on them.
pub struct Machines(Vec<Machine>);

struct Machine {
    /// `None`: it is the real machine.
    network: Option<File>,
    /// Ports of the hub, one for each server.
    servers: Vec<SocketAddr>,
}

impl Machines {
    /// A machine for each delay, which packets take in either direction. `servers`: ports on loopback of the real
    /// machine.
    pub fn new(delays: &[Duration], servers: &[u16]) -> Result<Machines> {
        let hub = network().and_then(|hub| connected(&hub, delays).map(|(machines, slow)| (hub, machines, slow)));
        let (hub, networks, is_slow) = match hub {
            Ok((hub, machines, slow)) => (Some(hub), machines.into_iter().map(Some).collect(), slow),
            Err(error) => {
                aloud(&format!("no network namespaces here, so all agents are on this machine: {error:#}"));
                (None, delays.iter().map(|_| None).collect::<Vec<_>>(), false)
            }
        };
        let mut machines = Vec::new();
        for (number, (network, delay)) in (1..).zip(networks.into_iter().zip(delays)) {
            let host = if hub.is_some() { hub_address(number) } else { Ipv4Addr::LOCALHOST };
            let relay_delay = if is_slow { Duration::ZERO } else { *delay };
            let mut ports = Vec::new();
            for server in servers {
                let listener = within(hub.as_ref(), || TcpListener::bind((host, 0)))?;
                ports.push(listener.local_addr()?);
                relay(listener, *server, relay_delay);
            }
            machines.push(Machine { network, servers: ports });
        }
        Ok(Machines(machines))
    }

    /// Where a server is, seen from a machine. Both are counted from 0.
    pub fn address(&self, machine: usize, server: usize) -> SocketAddr {
        self.0[machine].servers[server]
    }

    /// Does something on a machine: the closure, and programs that it starts, see only the hub.
    pub fn on<T: Send>(&self, machine: usize, act: impl FnOnce() -> T + Send) -> T {
        within(self.0[machine].network.as_ref(), act)
    }
}

/// On the cable of machine `number`, counted from 1.
fn hub_address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, number, 1)
}

/// A network of its own, which lives as long as this file, its sockets, and the programs in it.
fn network() -> Result<File> {
    let made = thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).context("making a network namespace")?;
        File::open("/proc/thread-self/ns/net").context("opening a network namespace")
    });
    made.join().expect("nothing in it panics")
}

/// Runs a closure on a thread in this network; `None`: in that of the caller.
fn within<T: Send>(network: Option<&File>, act: impl FnOnce() -> T + Send) -> T {
    let Some(network) = network else { return act() };
    let name = thread::current().name().unwrap_or("a test").to_owned();
    thread::scope(|scope| {
        let inside = || {
            setns(network, CloneFlags::CLONE_NEWNET).expect("it was made by this process");
            act()
        };
        let thread = thread::Builder::new().name(name).spawn_scoped(scope, inside).expect("a thread can be started");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Networks with a cable to the hub, and whether the cables delay packets.
fn connected(hub: &File, delays: &[Duration]) -> Result<(Vec<File>, bool)> {
    let mut machines = Vec::new();
    let mut is_slow = true;
    for (number, delay) in (1..).zip(delays) {
        let machine = network()?;
        let there = format!("/proc/{}/fd/{}", std::process::id(), machine.as_raw_fd());
        let netem =
            |device: &str| run("tc", &format!("qdisc add dev {device} root netem delay {}us", delay.as_micros()));
        let near = format!("machine{number}");
        let slowed = within(Some(hub), || {
            run("ip", &format!("link add {near} type veth peer name hub netns {there}"))?;
            run("ip", &format!("addr add {}/24 dev {near}", hub_address(number)))?;
            run("ip", &format!("link set {near} up"))?;
            anyhow::Ok(netem(&near))
        })?;
        let slowed_too = within(Some(&machine), || {
            run("ip", "link set lo up")?;
            run("ip", &format!("addr add {}/24 dev hub", Ipv4Addr::new(10, 77, number, 2)))?;
            run("ip", "link set hub up")?;
            anyhow::Ok(netem("hub"))
        })?;
        if let (Err(error), _) | (_, Err(error)) = (slowed, slowed_too)
            && std::mem::replace(&mut is_slow, false)
        {
            aloud(&format!("the kernel cannot delay packets, so relays do: {error:#}"));
        }
        machines.push(machine);
    }
    Ok((machines, is_slow))
}

/// Connects clients of a listener to a server on loopback of the calling thread's machine. Everything takes `delay`, in
/// either direction.
fn relay(listener: TcpListener, server: u16, delay: Duration) {
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            // Each side notices when the other hangs up.
            let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { continue };
            for (from, to) in [(near, far), (far_too, near_too)] {
                thread::spawn(move || forward(from, to, delay));
            }
        }
    });
}

fn forward(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        thread::sleep(delay);
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
