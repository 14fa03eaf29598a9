//! What the loop allocates while it works, and what an idle socket costs, counted by the allocator.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use allocation_counter::measure;
use assay_io::{Address, Backend, Clock, Io, IoEvent, Kernel, SocketId, Tls};
use assay_seam::{Nanos, TlsMode, TlsSettings};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Takes events until `done` returns true.
fn drive(io: &mut Kernel, mut done: impl FnMut(&mut Kernel, IoEvent) -> bool) {
    let started = io.now();
    loop {
        io.wait(Some(io.now() + Nanos::from_millis(500))).unwrap();
        while let Some(event) = io.next_event() {
            if done(io, event) {
                return;
            }
        }
        assert!(io.now() - started < Nanos::from_secs(30), "nothing happens");
    }
}

/// Sends 100 bytes and takes its echo, `rounds` times.
fn echo(io: &mut Kernel, id: SocketId, rounds: usize) {
    let message = [9; 100];
    for _ in 0..rounds {
        io.send(id, &message);
        let mut left = message.len();
        drive(io, |io, event| match event {
            IoEvent::Received(_) => {
                left -= io.received().len();
                left == 0
            }
            event => panic!("{event:?}"),
        });
    }
}

fn serve(mut stream: impl Read + Write) {
    let mut buffer = [0; 4096];
    while let Ok(n) = stream.read(&mut buffer)
        && n > 0
        && stream.write_all(&buffer[..n]).is_ok()
    {}
}

fn calls_per_round(io: &mut Kernel, id: SocketId) -> f64 {
    echo(io, id, 50); // warm-up
    measure(|| echo(io, id, 200)).count_total as f64 / 200.0
}

/// A loop over epoll, and one over io_uring where the kernel has it.
fn both() -> Vec<Kernel> {
    let backends = [Backend::Epoll, Backend::best(usize::MAX, 1).0];
    backends.map(|backend| Kernel::new(backend, Clock::start(), backend.batch_default()).unwrap()).into()
}

#[test]
fn a_plain_round_trip_allocates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sock");
    let (tcp, unix) = (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind(&path).unwrap());
    let addresses = [Address::Tcp(tcp.local_addr().unwrap()), Address::Unix(path)];
    let threads = [
        thread::spawn(move || (0..2).for_each(|_| serve(tcp.accept().unwrap().0))),
        thread::spawn(move || (0..2).for_each(|_| serve(unix.accept().unwrap().0))),
    ];
    for address in &addresses {
        for mut io in both() {
            let id = io.connect(address, None).unwrap();
            drive(&mut io, |_, event| matches!(event, IoEvent::Connected(_)));
            assert_eq!(calls_per_round(&mut io, id), 0.0, "{address}");
            io.close(id);
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn an_idle_socket_costs_its_slot() {
    const SOCKETS: usize = 400;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let thread = thread::spawn(move || (0..2 * SOCKETS).map(|_| listener.accept().unwrap().0).collect::<Vec<_>>());
    for mut io in both() {
        let counted = measure(|| {
            for _ in 0..SOCKETS {
                let id = io.connect(&address, None).unwrap();
                drive(&mut io, |_, event| matches!(event, IoEvent::Connected(this) if this == id));
            }
        });
        let bytes = counted.bytes_current / SOCKETS as i64;
        println!("bytes per idle socket: {bytes}");
        assert!(bytes < 200, "{bytes}");
    }
    drop(thread.join().unwrap());
}

#[test]
fn an_encrypted_socket_keeps_no_buffers_and_allocates_little() {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let thread = thread::spawn(move || {
            let serve = |stream: TcpStream| {
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                thread::spawn(|| serve(StreamOwned::new(connection, stream)))
            };
            let threads: Vec<_> = (0..20).map(|_| serve(listener.accept().unwrap().0)).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        let settings = TlsSettings { mode: TlsMode::Require, ..TlsSettings::default() };
        let tls = Arc::new(Tls::new(&settings).unwrap());
        let mut io = both().pop().unwrap();
        let connect = |io: &mut Kernel| {
            let id = io.connect(&address, Some(&tls)).unwrap();
            drive(io, |io, event| match event {
                IoEvent::Connected(_) => {
                    io.start_tls(id);
                    false
                }
                IoEvent::Secured(..) => true,
                event => panic!("{event:?}"),
            });
            echo(io, id, 5);
            id
        };
        let first = connect(&mut io);
        let calls = calls_per_round(&mut io, first);
        let mut others = Vec::with_capacity(19);
        let counted = measure(|| others.extend((1..20).map(|_| connect(&mut io))));
        let bytes = counted.bytes_current / others.len() as i64;
        println!("{:?}: {calls} allocations per round trip, {bytes} bytes per idle session", version.version);
        // Both allocations are rustls's own, one per record sent and one per record received; a buffer of ours would be
        // 16 KiB.
        assert!(calls <= 3.0 && bytes <= 8192);
        others.into_iter().chain([first]).for_each(|id| io.close(id));
        thread.join().unwrap();
    }
}
