//! A network of two machines that can be disconnected: what a client sees when the server's host vanishes.
//!
//! Both machines are network namespaces of this process's threads, so that the machine's own network is not touched and
//! nothing is left behind. On the far machine, a port leads to a server on the loopback interface of the real machine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};

use crate::{proxy, refused, root};

const NEAR: &str = "10.77.0.1/24";
const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// The cable, and the machine at its far end.
pub struct Cable {
    orders: Sender<Order>,
    done: Receiver<Result<SocketAddr>>,
}

enum Order {
    /// Opens a port; connections to it are forwarded.
    Listen(Sender<TcpStream>),
    /// Takes the link up or down.
    Link(&'static str),
}

impl Cable {
    /// Whether two machines can be created here, which needs root and the program `ip`; see `refused`.
    pub fn present() -> bool {
        if !root("a network namespace") {
            return false;
        }
        let tried = thread::spawn(|| Cable::lay().map(drop)).join().expect("nothing in it panics");
        match tried {
            Ok(()) => true,
            Err(error) => refused(&format!("no network namespaces here (they need `ip` of iproute2): {error:#}")),
        }
    }

    /// Runs a test on the near machine: the closure's thread, and the programs that it starts, see only the far one.
    /// `servers`, on loopback of the real machine, are at the addresses passed to the closure, in this order. Panics if
    /// the machines cannot be created: call `present` first.
    pub fn between<T: Send>(servers: &[u16], test: impl FnOnce(&Cable, &[SocketAddr]) -> T + Send) -> T {
        let calls: Vec<Sender<TcpStream>> = servers.iter().map(|port| forward(*port)).collect();
        let name = thread::current().name().unwrap_or("a test").to_owned();
        thread::scope(|scope| {
            let near = move || {
                let cable = Cable::lay().expect("it could be done a moment ago");
                let ports = calls.into_iter().map(|calls| cable.order(Order::Listen(calls)));
                let addresses: Vec<SocketAddr> = ports.collect::<Result<_>>().expect("all ports are free");
                test(&cable, &addresses)
            };
            let thread = thread::Builder::new().name(name).spawn_scoped(scope, near).expect("a thread can be started");
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Unplugs the far end: no packet gets through, without any error.
    pub fn pull(&self) {
        self.order(Order::Link("down")).expect("the link is there");
    }

    /// Puts the plug back.
    pub fn plug(&self) {
        self.order(Order::Link("up")).expect("the link is there");
    }

    fn order(&self, order: Order) -> Result<SocketAddr> {
        self.orders.send(order)?;
        self.done.recv()?
    }

    /// Makes the calling thread the near machine.
    fn lay() -> Result<Cable> {
        let (orders, inbox) = mpsc::channel();
        let (tell, done) = mpsc::channel();
        let (tell_id, id) = mpsc::channel();
        thread::spawn(move || {
            let made = unshare(CloneFlags::CLONE_NEWNET).context("making a network namespace");
            let _ = tell_id.send(made.and_then(|()| thread_id()));
            // Dropped, the cable ends the orders, and the last thread takes its machine along.
            for order in inbox {
                let _ = tell.send(obey(order));
            }
        });
        let far = id.recv().context("the far machine")??;
        unshare(CloneFlags::CLONE_NEWNET).context("making a network namespace")?;
        ip(&format!("link add near type veth peer name far netns {far}"))?;
        for command in ["link set lo up", "link set near up", &format!("addr add {NEAR} dev near")] {
            ip(command)?;
        }
        let cable = Cable { orders, done };
        cable.order(Order::Link("up"))?;
        Ok(cable)
    }
}

/// On the far machine.
fn obey(order: Order) -> Result<SocketAddr> {
    match order {
        Order::Listen(calls) => {
            let listener = TcpListener::bind((FAR, 0))?;
            let address = listener.local_addr()?;
            thread::spawn(move || listener.incoming().map_while(io::Result::ok).try_for_each(|call| calls.send(call)));
            Ok(address)
        }
        Order::Link(state) => {
            ip(&format!("link set far {state}"))?;
            ip(&format!("addr replace {FAR}/24 dev far"))?;
            Ok((FAR, 0).into())
        }
    }
}

/// Connects its clients to a port on loopback of the calling thread's machine.
fn forward(port: u16) -> Sender<TcpStream> {
    let (calls, inbox) = mpsc::channel();
    let state = Arc::default();
    thread::spawn(move || inbox.into_iter().for_each(|call| proxy::connect(&state, call, port)));
    calls
}

/// The kernel's number of the calling thread.
fn thread_id() -> Result<String> {
    let path = std::fs::read_link("/proc/thread-self")?;
    Ok(path.file_name().context("/proc/thread-self leads somewhere")?.to_string_lossy().into_owned())
}

fn ip(arguments: &str) -> Result<()> {
    run("ip", arguments)
}

/// Runs a program of iproute2 on the calling thread's machine.
pub(crate) fn run(program: &str, arguments: &str) -> Result<()> {
    let output = Command::new(program).args(arguments.split(' ')).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("running `{program}`"))?;
    ensure!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
