//! The virtual network and clock, observed from both ends: what arrives, in which order, and when.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;

/// Does what the first word of a message says; keeps a log of what it saw.
#[derive(Clone, Default)]
struct Scripted {
    seen: Rc<RefCell<Vec<String>>>,
    refuses: bool,
}

impl Scripted {
    fn note(&self, now: Nanos, what: &str) {
        self.seen.borrow_mut().push(format!("{} {what}", now.0 / 1_000));
    }
}

impl ScriptedServer for Scripted {
    fn accepts(&mut self, _: Nanos) -> bool {
        !self.refuses
    }

    fn connected(&mut self, now: Nanos, peer: PeerId, out: &mut ServerOut) {
        self.note(now, &format!("connected {}", peer.0));
        out.reply(b"hello");
    }

    fn received(&mut self, now: Nanos, peer: PeerId, bytes: &[u8], out: &mut ServerOut) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.note(now, &format!("received {} {text}", peer.0));
        match text.split(' ').next().unwrap() {
            "slow" => out.after(ms(5)).reply(b"slow answer"),
            "stall" => out.reply(b"before").stall(ms(1000)).reply(b"after"),
            "close" => out.reply(b"bye").close(),
            "reset" => out.reset(),
            "tell" => out.to(PeerId(0)).reply(b"told"),
            _ => out.reply(bytes),
        };
    }

    fn tls(&mut self, now: Nanos, peer: PeerId) -> Option<TlsFacts> {
        self.note(now, "tls");
        (peer.0 == 0).then(|| TlsFacts { server_end_point: None, cipher: "none".into() })
    }

    fn closed(&mut self, now: Nanos, peer: PeerId, _: &mut ServerOut) {
        self.note(now, &format!("closed {}", peer.0));
    }

    fn killed(&mut self, now: Nanos) {
        self.note(now, "killed");
    }
}

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn place() -> Address {
    Address::Tcp("10.0.0.1:5432".parse().unwrap())
}

fn network(settings: NetworkSettings) -> (Network, Scripted) {
    let (mut network, server) = (Network::new(settings), Scripted::default());
    network.listen(place(), Box::new(server.clone()));
    (network, server)
}

/// What happens until `until`, one line per event: instant in µs, socket, event.
fn events(network: &mut Network, until: Nanos) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        network.wait(Some(until)).unwrap();
        let mut idle = true;
        while let Some(event) = network.next_event() {
            idle = false;
            let (id, what) = match event {
                IoEvent::Connected(id) => (id, "connected".to_owned()),
                IoEvent::Received(id) => (id, String::from_utf8_lossy(network.received()).into_owned()),
                IoEvent::Secured(id, facts) => (id, format!("secured {}", facts.cipher)),
                IoEvent::Closed(id, why) => (id, format!("closed: {why}")),
            };
            lines.push(format!("{} {} {what}", network.now().0 / 1_000, id.0));
        }
        if idle && network.now() >= until {
            return lines;
        }
    }
}

#[test]
fn a_round_trip_takes_the_latency_both_ways() {
    let (mut network, server) = network(NetworkSettings::default());
    let id = network.connect(&place(), None).unwrap();
    assert_eq!(events(&mut network, ms(1)), ["200 0 connected", "200 0 hello"]);
    network.send(id, b"ping");
    assert_eq!(events(&mut network, ms(2)), ["1200 0 ping"]);
    network.send(id, b"slow");
    network.send(id, b"fast");
    assert_eq!(events(&mut network, ms(10)), ["7200 0 slow answer", "7200 0 fast"], "replies keep their order");
    network.close(id);
    assert_eq!(events(&mut network, ms(11)), Vec::<String>::new());
    assert_eq!(
        *server.seen.borrow(),
        ["100 connected 0", "1100 received 0 ping", "2100 received 0 slow", "2100 received 0 fast", "10100 closed 0"]
    );
}

#[test]
fn a_stalled_server_does_nothing_for_anybody_until_it_is_over() {
    let (mut network, server) = network(NetworkSettings::default());
    let first = network.connect(&place(), None).unwrap();
    let second = network.connect(&place(), None).unwrap();
    events(&mut network, ms(1));
    network.send(second, b"slow");
    events(&mut network, ms(2));
    network.send(first, b"stall");
    events(&mut network, ms(3));
    network.send(second, b"late");
    let third = network.connect(&place(), None).unwrap();
    assert_eq!(events(&mut network, ms(500)), ["3200 2 connected"], "its kernel still accepts");
    assert_eq!(
        events(&mut network, ms(2000)),
        ["1002200 0 after", "1002200 1 slow answer", "1002200 1 late", "1002200 2 hello"]
    );
    assert_eq!(server.seen.borrow()[4..], ["1002100 received 1 late", "1002100 connected 2"]);
    let _ = third;
}

#[test]
fn refusals_closes_and_resets_are_told_once_and_the_id_is_dead() {
    let (mut network, server) = network(NetworkSettings::default());
    let elsewhere = Address::Tcp("10.0.0.2:1".parse().unwrap());
    network.connect(&elsewhere, None).unwrap();
    network.listen(elsewhere.clone(), Box::new(Scripted { refuses: true, ..Scripted::default() }));
    network.connect(&elsewhere, None).unwrap();
    let [closing, resetting] = [(); 2].map(|()| network.connect(&place(), None).unwrap());
    assert_eq!(
        events(&mut network, ms(1)),
        [
            "200 0 closed: connecting to 10.0.0.2:1: connection refused",
            "200 1 closed: connecting to 10.0.0.2:1: connection refused",
            "200 2 connected",
            "200 3 connected",
            "200 2 hello",
            "200 3 hello"
        ]
    );
    network.send(closing, b"close");
    network.send(resetting, b"reset");
    assert_eq!(
        events(&mut network, ms(2)),
        [
            "1200 2 bye",
            "1200 2 closed: 10.0.0.1:5432 closed the connection",
            "1200 3 closed: lost the connection to 10.0.0.1:5432: connection reset by peer"
        ]
    );
    network.send(closing, b"ping");
    network.close(resetting);
    assert_eq!(events(&mut network, ms(3)), Vec::<String>::new());
    assert_eq!(server.seen.borrow().len(), 4, "{:?}", server.seen.borrow());
}

#[test]
fn events_of_a_socket_closed_by_the_client_never_surface() {
    let (mut network, _) = network(NetworkSettings::default());
    let id = network.connect(&place(), None).unwrap();
    network.wait(None).unwrap();
    assert!(matches!(network.next_event(), Some(IoEvent::Connected(_))));
    network.close(id);
    assert_eq!(events(&mut network, ms(1)), Vec::<String>::new());
}

#[test]
fn a_killed_server_resets_and_refuses_until_it_is_restarted() {
    let (mut network, server) = network(NetworkSettings::default());
    network.kill(&place(), ms(10));
    network.restart(&place(), ms(20));
    let id = network.connect(&place(), None).unwrap();
    events(&mut network, ms(9));
    network.send(id, b"slow");
    assert_eq!(
        events(&mut network, ms(15)),
        ["10100 0 closed: lost the connection to 10.0.0.1:5432: connection reset by peer"]
    );
    network.connect(&place(), None).unwrap();
    assert_eq!(events(&mut network, ms(19)), ["15200 1 closed: connecting to 10.0.0.1:5432: connection refused"]);
    events(&mut network, ms(20));
    network.connect(&place(), None).unwrap();
    assert_eq!(events(&mut network, ms(25)), ["20200 2 connected", "20200 2 hello"]);
    assert_eq!(*server.seen.borrow(), ["100 connected 0", "9100 received 0 slow", "10000 killed", "20100 connected 2"]);
}

#[test]
fn a_server_may_answer_one_peer_because_of_another() {
    let (mut network, _) = network(NetworkSettings::default());
    network.connect(&place(), None).unwrap();
    let second = network.connect(&place(), None).unwrap();
    events(&mut network, ms(1));
    network.send(second, b"tell");
    assert_eq!(events(&mut network, ms(2)), ["1200 0 told"]);
}

#[test]
fn encryption_is_the_servers_choice() {
    let (mut network, _) = network(NetworkSettings::default());
    let [first, second] = [(); 2].map(|()| network.connect(&place(), None).unwrap());
    events(&mut network, ms(1));
    network.start_tls(first);
    network.start_tls(second);
    assert_eq!(events(&mut network, ms(2)), ["1200 0 secured none", "1200 1 closed: 10.0.0.1:5432 does not speak TLS"]);
}

#[test]
fn a_wake_ends_the_next_wait_without_moving_the_clock() {
    let (mut network, _) = network(NetworkSettings::default());
    network.waker().wake();
    network.wait(Some(ms(5))).unwrap();
    assert_eq!(network.now(), Nanos::ZERO);
    network.wait(Some(ms(5))).unwrap();
    assert_eq!(network.now(), ms(5));
}

#[test]
fn waiting_for_what_never_comes_is_an_error_instead_of_a_hang() {
    assert!(Network::new(NetworkSettings::default()).wait(None).is_err());
}

#[test]
fn events_cost_time_when_asked_to() {
    let (mut network, _) = network(NetworkSettings { event_cost: Nanos::from_micros(7), ..NetworkSettings::default() });
    network.connect(&place(), None).unwrap();
    network.connect(&place(), None).unwrap();
    network.wait(None).unwrap();
    assert!(network.next_event().is_some() && network.next_event().is_some());
    assert_eq!((network.received_at().0, network.now().0), (200_000, 214_000));
    network.wait(Some(Nanos::from_micros(210))).unwrap();
    assert_eq!(network.now().0, 214_000, "a past instant does not turn the clock back");
}

/// 40 sockets that echo at instants and in pieces that depend on the seed.
fn jumble(seed: u64) -> Vec<String> {
    let settings = NetworkSettings { seed, jitter: ms(1), split_max: 4, ..NetworkSettings::default() };
    let (mut network, _) = network(settings);
    let ids: Vec<_> = (0..40).map(|_| network.connect(&place(), None).unwrap()).collect();
    let mut lines = events(&mut network, ms(5));
    for id in &ids {
        network.send(*id, format!("echo number {}", id.0).as_bytes());
    }
    lines.extend(events(&mut network, ms(15)));
    lines
}

#[test]
fn a_seed_repeats_every_event_and_another_one_does_not() {
    assert_eq!(jumble(7), jumble(7));
    assert_ne!(jumble(7), jumble(8));
}

#[test]
fn pieces_join_to_what_was_sent_in_every_seed() {
    for seed in 0..50 {
        let mut text = vec![String::new(); 40];
        for line in jumble(seed) {
            let mut parts = line.splitn(3, ' ').skip(1);
            let id: usize = parts.next().unwrap().parse().unwrap();
            let what = parts.next().unwrap();
            assert!(what == "connected" || what.len() <= 4, "seed {seed}: {line}");
            text[id] += what;
        }
        for (id, text) in text.iter().enumerate() {
            assert_eq!(*text, format!("connectedhelloecho number {id}"), "seed {seed}");
        }
    }
}
