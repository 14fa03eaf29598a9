//! An event loop against real sockets on loopback, with plain threads as peers. `crate::kernel` selects the kernel
//! interface.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_io::process::{Scheduler, Usage};
use assay_io::{Address, Closed, Io, IoEvent, Kernel, SocketId};
use assay_seam::{Endpoint, Nanos};
use testkit::Cable;

/// A listener and, in a thread, `serve` for each of the first `count` connections, one after the other.
fn serve(count: usize, mut serve: impl FnMut(TcpStream) + Send + 'static) -> (Address, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        for _ in 0..count {
            serve(listener.accept().unwrap().0);
        }
    });
    (address, thread)
}

fn echo(mut stream: impl Read + Write) {
    let mut buffer = vec![0; 100_000];
    while let Ok(n) = stream.read(&mut buffer)
        && n > 0
        && stream.write_all(&buffer[..n]).is_ok()
    {}
}

/// Takes events until `done` returns true, calling it with each. Fails after 20 s without an event.
fn drive(io: &mut Kernel, mut done: impl FnMut(&mut Kernel, IoEvent) -> bool) {
    let mut last = Instant::now();
    loop {
        io.wait(Some(io.now() + Nanos::from_secs(1))).unwrap();
        while let Some(event) = io.next_event() {
            last = Instant::now();
            if done(io, event) {
                return;
            }
        }
        assert!(last.elapsed() < Duration::from_secs(20), "nothing happens");
    }
}

fn connected(io: &mut Kernel, address: &Address) -> SocketId {
    let id = io.connect(address, None).unwrap();
    drive(io, |_, event| match event {
        IoEvent::Connected(this) => this == id,
        event => panic!("{event:?}"),
    });
    id
}

/// The bytes that one socket receives until it is closed, and why it was closed.
fn read_to_end(io: &mut Kernel) -> (Vec<u8>, Closed) {
    let (mut bytes, mut why) = (Vec::new(), None);
    drive(io, |io, event| match event {
        IoEvent::Received(_) => {
            bytes.extend_from_slice(io.received());
            false
        }
        IoEvent::Closed(_, closed) => {
            why = Some(closed);
            true
        }
        event => panic!("{event:?}"),
    });
    (bytes, why.unwrap())
}

/// Bytes that depend on their position, so that a lost or repeated piece is found.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

#[test]
fn replies_cut_into_single_bytes_arrive_whole_and_in_order() {
    let (address, thread) = serve(1, |mut stream| {
        stream.set_nodelay(true).unwrap();
        let mut request = [0; 5];
        stream.read_exact(&mut request).unwrap();
        for byte in b"a long answer in many pieces" {
            stream.write_all(&[*byte]).unwrap();
        }
    });
    let mut io = crate::kernel();
    let id = connected(&mut io, &address);
    io.send(id, b"he");
    io.send(id, b"llo");
    let (bytes, why) = read_to_end(&mut io);
    assert_eq!(String::from_utf8(bytes).unwrap(), "a long answer in many pieces");
    assert_eq!(why.message, format!("{address} closed the connection"));
    thread.join().unwrap();
}

/// Sends and expects back `len` bytes through a peer that reads slowly, so that our send buffer fills.
fn transfer_both_ways(io: &mut Kernel, id: SocketId, len: usize) {
    let sent = pattern(len);
    let mut bytes = Vec::new();
    io.send(id, &sent[..10]);
    io.send(id, &sent[10..]);
    drive(io, |io, event| match event {
        IoEvent::Received(_) => {
            bytes.extend_from_slice(io.received());
            bytes.len() >= len
        }
        event => panic!("{event:?}"),
    });
    assert!(bytes == sent, "the echo differs");
}

#[test]
fn large_transfers_survive_full_send_buffers() {
    let (address, thread) = serve(1, echo);
    let mut io = crate::kernel();
    let id = connected(&mut io, &address);
    for _ in 0..3 {
        transfer_both_ways(&mut io, id, 20_000_000);
    }
    io.close(id);
    thread.join().unwrap();
}

#[test]
fn unix_sockets_work_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let thread = thread::spawn(move || echo(listener.accept().unwrap().0));
    let mut io = crate::kernel();
    let address = Address::resolve(&Endpoint::Unix(path)).unwrap().remove(0);
    let id = io.connect(&address, None).unwrap();
    io.send(id, b"early"); // before `Connected`: kept
    let mut bytes = Vec::new();
    drive(&mut io, |io, event| {
        if let IoEvent::Received(_) = event {
            bytes.extend_from_slice(io.received());
        }
        bytes == b"early"
    });
    for _ in 0..3 {
        transfer_both_ways(&mut io, id, 5_000_000);
    }
    io.close(id);
    thread.join().unwrap();
}

#[test]
fn a_thousand_sockets_are_served_side_by_side() {
    const SOCKETS: usize = 1_000;
    const ROUNDS: usize = 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    // The peer mirrors our own loop: one thread, all sockets in turn.
    let thread = thread::spawn(move || {
        let mut streams: Vec<TcpStream> = (0..SOCKETS).map(|_| listener.accept().unwrap().0).collect();
        let mut message = [0; 16];
        for _ in 0..ROUNDS {
            for stream in &mut streams {
                stream.read_exact(&mut message).unwrap();
                stream.write_all(&message).unwrap();
            }
        }
    });
    let mut io = crate::kernel();
    let mut pending: HashMap<SocketId, usize> = HashMap::new();
    for i in 0..SOCKETS {
        pending.insert(io.connect(&address, None).unwrap(), i);
        // Our listener's backlog is 128: connect in portions.
        if i % 64 == 63 {
            let mut count = 0;
            drive(&mut io, |_, event| {
                assert!(matches!(event, IoEvent::Connected(_)), "{event:?}");
                count += 1;
                count == 64
            });
        }
    }
    let mut opened = SOCKETS / 64 * 64;
    drive(&mut io, |_, event| {
        opened += usize::from(matches!(event, IoEvent::Connected(_)));
        opened == SOCKETS
    });
    let say = |round: usize, i: usize| format!("{round:08}{i:08}").into_bytes();
    let mut rounds = vec![0; SOCKETS];
    for (id, i) in &pending {
        io.send(*id, &say(0, *i));
    }
    let mut left = SOCKETS;
    drive(&mut io, |io, event| {
        let id = match event {
            IoEvent::Received(id) => id,
            // The peer closes all sockets once it has answered the last of them.
            IoEvent::Closed(id, _) if rounds[pending[&id]] == ROUNDS => return false,
            event => panic!("{event:?}"),
        };
        let i = pending[&id];
        assert_eq!(io.received(), say(rounds[i], i));
        rounds[i] += 1;
        if rounds[i] < ROUNDS {
            let next = say(rounds[i], i);
            io.send(id, &next);
        } else {
            left -= 1;
        }
        left == 0
    });
    thread.join().unwrap();
}

#[test]
fn a_flood_on_one_socket_does_not_starve_another() {
    let (address, thread) = serve(2, {
        let mut second = false;
        move |mut stream| {
            if std::mem::replace(&mut second, true) {
                return echo(stream);
            }
            thread::spawn(move || {
                let block = [7; 65_536];
                while stream.write_all(&block).is_ok() {}
            });
        }
    });
    let mut io = crate::kernel();
    let flood = connected(&mut io, &address);
    let quiet = io.connect(&address, None).unwrap();
    let (mut flooded, mut answers) = (0, 0);
    drive(&mut io, |io, event| {
        match event {
            IoEvent::Received(id) if id == flood => flooded += io.received().len(),
            IoEvent::Connected(id) | IoEvent::Received(id) => {
                assert_eq!(id, quiet);
                answers += 1;
                io.send(quiet, b"ping");
            }
            event => panic!("{event:?}"),
        }
        answers >= 200 && flooded >= 50_000_000
    });
    io.close(flood);
    io.close(quiet);
    thread.join().unwrap();
}

#[test]
fn what_the_peer_said_before_it_hung_up_is_read_before_the_close() {
    for len in [1, 65_536, 300_000] {
        let (address, thread) = serve(1, move |mut stream| stream.write_all(&pattern(len)).unwrap());
        let mut io = crate::kernel();
        connected(&mut io, &address);
        thread.join().unwrap(); // the bytes and the end are there before we look
        let (bytes, why) = read_to_end(&mut io);
        assert!(bytes == pattern(len), "{} of {len} bytes", bytes.len());
        assert_eq!(why, Closed { message: format!("{address} closed the connection"), hint: None, tls: false });
    }
}

#[test]
fn the_last_words_of_a_server_are_read_even_when_a_send_fails_first() {
    let (address, thread) = serve(1, |mut stream| {
        stream.write_all(b"FATAL: shutting down").unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    });
    let mut io = crate::kernel();
    let id = connected(&mut io, &address);
    thread.join().unwrap();
    for _ in 0..10 {
        io.send(id, b"select 1"); // the first is answered by a reset, a later one fails
    }
    let (bytes, why) = read_to_end(&mut io);
    assert!(bytes.is_empty() || bytes == b"FATAL: shutting down");
    assert!(why.message.contains(&address.to_string()), "{why}");
}

#[test]
fn a_reset_is_told_as_one() {
    let (address, thread) = serve(1, |mut stream| {
        stream.read_exact(&mut [0]).unwrap(); // not before the connect is over
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: the descriptor is open, and `linger` lives through the call with the size given.
        let result = unsafe {
            libc::setsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of_val(&linger) as libc::socklen_t,
            )
        };
        assert_eq!(result, 0);
    });
    let mut io = crate::kernel();
    let id = connected(&mut io, &address);
    io.send(id, b"?");
    let (bytes, why) = read_to_end(&mut io);
    thread.join().unwrap();
    assert!(bytes.is_empty());
    assert_eq!(why.message, format!("lost the connection to {address}: connection reset by peer"));
}

/// The error of a refused connect, whether immediate or later.
fn refusal(address: &Address) -> Closed {
    let mut io = crate::kernel();
    match io.connect(address, None) {
        Err(error) => Closed { message: error.message, hint: error.hint, tls: false },
        Ok(_) => read_to_end(&mut io).1,
    }
}

#[test]
fn refused_connects_name_the_address_and_what_to_do() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let why = refusal(&Address::Tcp(free));
    assert_eq!(why.message, format!("connecting to {free}: connection refused"));
    assert!(why.hint.unwrap().contains("check that the server is running"));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("absent.sock");
    let why = refusal(&Address::Unix(path.clone()));
    assert_eq!(why.message, format!("connecting to {}: no such file or directory", path.display()));
    assert!(why.hint.unwrap().contains("start the server"));

    drop(UnixListener::bind(&path).unwrap());
    let why = refusal(&Address::Unix(path.clone()));
    assert_eq!(why.message, format!("connecting to {}: connection refused", path.display()));
    assert!(why.hint.unwrap().contains("no server is listening"));
}

#[test]
fn a_full_backlog_of_a_unix_socket_names_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("busy.sock");
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: the descriptor is a listening socket; listening again only changes its backlog.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 1) }, 0);
    let address = Address::Unix(path);
    let mut io = crate::kernel();
    let error = (0..10).find_map(|_| io.connect(&address, None).err()).expect("the backlog is 1");
    assert!(error.message.ends_with("resource temporarily unavailable"), "{error}");
    assert!(error.hint.unwrap().contains("net.core.somaxconn"));
}

#[test]
fn an_address_that_takes_no_connection_is_told_at_once() {
    let broadcast = Address::Tcp("255.255.255.255:1".parse().unwrap());
    let error = crate::kernel().connect(&broadcast, None).unwrap_err();
    assert!(error.message.starts_with("connecting to 255.255.255.255:1: "), "{error}");
}

#[test]
fn events_of_closed_sockets_never_surface_and_ids_are_not_reused() {
    let (address, thread) = serve(3, |mut stream| {
        stream.write_all(b"hello").unwrap();
    });
    let mut io = crate::kernel();
    let ids: Vec<_> = (0..2).map(|_| io.connect(&address, None).unwrap()).collect();
    let mut connects = 0;
    // Whether one `wait` reports both or not, the second is closed while the first is handled.
    drive(&mut io, |io, event| {
        let IoEvent::Connected(id) = event else { panic!("{event:?}") };
        connects += 1;
        io.close(ids[usize::from(id == ids[0])]);
        io.close(id);
        io.send(id, b"into the void");
        true
    });
    let third = io.connect(&address, None).unwrap();
    assert!(!ids.contains(&third));
    thread.join().unwrap();
    let mut bytes = Vec::new();
    drive(&mut io, |io, event| match event {
        IoEvent::Connected(id) => {
            assert_eq!(id, third);
            false
        }
        IoEvent::Received(id) => {
            assert_eq!(id, third);
            bytes.extend_from_slice(io.received());
            false
        }
        IoEvent::Closed(id, _) => id == third,
        event => panic!("{event:?}"),
    });
    assert_eq!((connects, &bytes[..]), (1, &b"hello"[..]));
}

#[test]
fn a_waker_ends_a_wait_from_another_thread() {
    let (to_waker, wakers) = mpsc::channel::<assay_io::Waker>();
    let thread = thread::spawn(move || {
        for waker in wakers {
            waker.wake();
        }
    });
    let mut io = crate::kernel();
    for _ in 0..100 {
        to_waker.send(io.waker()).unwrap();
        io.wait(None).unwrap();
        assert!(io.next_event().is_none());
    }
    let waker = io.waker();
    drop(io);
    waker.wake();
    drop(to_waker);
    thread.join().unwrap();
}

#[test]
fn a_socket_that_owes_an_answer_delays_neither_wakers_nor_instants_nor_its_own_end() {
    // It answers the second byte, and ends the stream at the third.
    let (address, server) = serve(1, |mut stream| {
        stream.read_exact(&mut [0; 2]).unwrap();
        stream.write_all(b"answer").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    });
    let (to_waker, wakers) = mpsc::channel::<assay_io::Waker>();
    let thread = thread::spawn(move || {
        for waker in wakers {
            waker.wake();
        }
    });
    let mut io = crate::kernel();
    let id = connected(&mut io, &address);
    io.send(id, b"1");
    for _ in 0..5 {
        to_waker.send(io.waker()).unwrap();
        io.wait(None).unwrap();
        assert!(io.next_event().is_none());
    }
    for ms in [1, 15, 25, 60] {
        let until = io.now() + Nanos::from_millis(ms);
        while io.now() < until {
            io.wait(Some(until)).unwrap();
            assert!(io.next_event().is_none());
        }
    }
    io.send(id, b"2");
    drive(&mut io, |io, event| {
        assert!(matches!(event, IoEvent::Received(this) if this == id) && io.received() == b"answer", "{event:?}");
        true
    });
    io.send(id, b"3");
    assert_eq!(read_to_end(&mut io).0, b"");
    server.join().unwrap();
    drop(to_waker);
    thread.join().unwrap();
}

#[test]
fn a_past_instant_does_not_sleep() {
    let mut io = crate::kernel();
    let before = Usage::of_thread();
    for _ in 0..100 {
        io.wait(Some(Nanos::ZERO)).unwrap();
        let now = io.now();
        io.wait(Some(now)).unwrap();
    }
    // A sleeping thread gives up the CPU; that others then use it is not an error.
    assert_eq!((Usage::of_thread() - before).switches_voluntary, 0);
}

#[test]
fn timers_are_punctual() {
    let mut io = crate::kernel();
    let scheduler = Scheduler::of_thread();
    let waited = || scheduler.as_ref().and_then(Scheduler::turns).map_or(Nanos::ZERO, |turns| turns.waited);
    let mut late: Vec<u64> = (0..500)
        .map(|i| {
            let before = waited();
            let until = io.now() + Nanos::from_micros(100 + 37 * (i % 50));
            io.wait(Some(until)).unwrap();
            assert!(io.now() >= until, "woke early");
            // If others had the CPU when the timer was due, that is not the timer's fault.
            (io.received_at() - until - (waited() - before)).0 / 1_000
        })
        .collect();
    late.sort_unstable();
    println!("timer lateness in µs: p50 {} p99 {} max {}", late[250], late[495], late[499]);
    // A timeout of epoll_wait would be a millisecond late in the median.
    assert!(late[250] < 900, "{late:?}");
}

/// The port of a server made of plain threads.
fn port(address: &Address) -> u16 {
    let Address::Tcp(address) = address else { panic!("{address} has no port") };
    address.port()
}

/// Takes events until `done`, polling the peer of `asking` again and again, as a session does that waits for its
/// answer.
fn watch(io: &mut Kernel, asking: SocketId, limit: Nanos, mut done: impl FnMut(&mut Kernel, Option<IoEvent>) -> bool) {
    let begun = Instant::now();
    while !done(io, None) {
        io.wait(Some(io.now() + Nanos(limit.0 / 8))).unwrap();
        while let Some(event) = io.next_event() {
            if done(io, Some(event)) {
                return;
            }
        }
        io.close_if_silent(asking, limit);
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing happens");
    }
}

#[test]
fn a_host_that_vanishes_is_noticed_whether_it_owes_an_answer_or_not() {
    if !Cable::present() {
        return;
    }
    let (servers, _threads): (Vec<_>, Vec<_>) = [serve(1, echo), serve(1, echo)].into_iter().unzip();
    Cable::between(&[port(&servers[0]), port(&servers[1])], |cable, far| {
        let addresses = [Address::Tcp(far[0]), Address::Tcp(far[1])];
        let mut io = crate::kernel();
        let limit = Nanos::from_secs(2);
        let ids = addresses.each_ref().map(|address| connected(&mut io, address));
        for id in ids {
            io.keep_alive(id, limit);
            transfer_both_ways(&mut io, id, 1000);
        }
        cable.pull();
        let [idle, asking] = ids;
        io.send(asking, b"anybody there?");
        let mut lost = HashMap::new();
        watch(&mut io, asking, limit, |_, event| {
            match event {
                Some(IoEvent::Closed(id, closed)) => drop(lost.insert(id, closed)),
                Some(event) => panic!("{event:?}"),
                None => {}
            }
            lost.len() == 2
        });
        for (id, address) in [idle, asking].into_iter().zip(&addresses) {
            assert_eq!(lost[&id].message, format!("lost the connection to {address}: its host no longer answers"));
            assert!(lost[&id].hint.as_ref().is_some_and(|hint| hint.contains("--network-timeout")), "{:?}", lost[&id]);
        }
    });
}

#[test]
fn a_server_that_reads_nothing_for_long_is_not_a_host_that_vanished() {
    if !Cable::present() {
        return;
    }
    let (go_on, wait) = mpsc::channel::<()>();
    let (server, _thread) = serve(1, move |stream| {
        wait.recv().unwrap();
        echo(stream);
    });
    Cable::between(&[port(&server)], |_, far| {
        let mut io = crate::kernel();
        let id = connected(&mut io, &Address::Tcp(far[0]));
        let limit = Nanos::from_secs(2);
        io.keep_alive(id, limit);
        // More than all buffers on the way can hold.
        let sent = pattern(30_000_000);
        io.send(id, &sent);
        let until = io.now() + Nanos(2 * limit.0);
        watch(&mut io, id, limit, |io, event| match event {
            Some(event) => panic!("{event:?}"),
            None => io.now() >= until,
        });
        go_on.send(()).unwrap();
        let mut bytes = Vec::new();
        drive(&mut io, |io, event| match event {
            IoEvent::Received(_) => {
                bytes.extend_from_slice(io.received());
                bytes.len() >= sent.len()
            }
            event => panic!("{event:?}"),
        });
        assert!(bytes == sent, "the echo differs");
    });
}
