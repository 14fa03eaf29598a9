//! SRV and TXT records, which the system's resolver does not look up.
//!
//! A question goes to each name server in turn, over UDP, and over TCP if the answer was truncated. Nothing is cached,
//! and names are complete: search domains are not tried. Called before a run; blocks for at most `WAIT_MAX` times
//! `ROUNDS` for each name server.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};

use crate::os_error;

/// The environment variable that names another name server for these records: its IP address, and a port if it is not
/// 53.
pub const VARIABLE: &str = "ASSAY_NAME_SERVER";

/// How long a name server has to answer.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// How often each is asked.
const ROUNDS: u32 = 2;
/// As many as the system's resolver uses.
const SERVERS_MAX: usize = 3;
const PORT: u16 = 53;
/// A UDP message has at most so many bytes (RFC 1035, 4.2.1); what does not fit is truncated.
const UDP_BYTES_MAX: usize = 512;

/// Where a service is: an SRV record (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// Lower ones come first.
    pub priority: u16,
    /// Among those of equal priority.
    pub weight: u16,
    /// Without the final dot.
    pub host: String,
    /// 1 … 65535.
    pub port: u16,
}

/// Why there are no records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// It has more than 255 bytes, or a part of more than 63.
    #[error("{0} is too long for a name in DNS")]
    Name(String),
    /// What the variable names is not an address.
    #[error("{VARIABLE}={0} is not an IP address, or one with a port such as 10.0.0.2:53")]
    Server(String),
    /// The name server says so.
    #[error("the name server {server} knows no name {name}")]
    NoSuchName {
        /// That it was asked for.
        name: String,
        /// Its address.
        server: SocketAddr,
    },
    /// No name server has answered the question.
    #[error("looking up {name}: the name server {server} {why}")]
    NoAnswer {
        /// That they were asked for.
        name: String,
        /// The last one.
        server: SocketAddr,
        /// Its mistake.
        why: String,
    },
}

/// The name servers to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers(Vec<SocketAddr>);

impl NameServers {
    /// Those of this machine, or the one that `variable` names.
    pub fn of_machine(variable: Option<&str>) -> Result<NameServers, DnsError> {
        if let Some(named) = variable.filter(|named| !named.is_empty()) {
            let address = named.parse().or_else(|_| named.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)));
            return address.map(|address| NameServers(vec![address])).map_err(|_| DnsError::Server(named.to_owned()));
        }
        let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        Ok(NameServers::of_file(&text))
    }

    /// Those of a `resolv.conf`; without any, the machine itself.
    fn of_file(text: &str) -> NameServers {
        let of_line = |line: &str| {
            let mut words = line.split_whitespace();
            let address = words.next().filter(|word| *word == "nameserver").and_then(|_| words.next())?;
            Some(SocketAddr::new(address.parse().ok()?, PORT))
        };
        let mut found: Vec<SocketAddr> = text.lines().filter_map(of_line).take(SERVERS_MAX).collect();
        if found.is_empty() {
            found.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
        }
        NameServers(found)
    }

    /// The SRV records of a name, sorted by priority and then by descending weight; empty if the name does not exist.
    pub fn services(&self, name: &str) -> Result<Vec<Service>, DnsError> {
        let mut found = self.records(name, TYPE::SRV, |data| match data {
            RData::SRV(record) => Some(Service {
                priority: record.priority,
                weight: record.weight,
                host: record.target.to_string().trim_end_matches('.').to_owned(),
                port: record.port,
            }),
            _ => None,
        })?;
        found.sort_by(|a, b| (a.priority, b.weight, &a.host, a.port).cmp(&(b.priority, a.weight, &b.host, b.port)));
        Ok(found)
    }

    /// The TXT records of a name, each with its parts as one text; what is not UTF-8 has replacement characters.
    pub fn texts(&self, name: &str) -> Result<Vec<String>, DnsError> {
        let found = self.records(name, TYPE::TXT, |data| match data {
            RData::TXT(record) => Some(
                String::try_from(record).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
            _ => None,
        });
        match found {
            // A name may have other records only.
            Err(DnsError::NoSuchName { .. }) => Ok(Vec::new()),
            found => found,
        }
    }

    fn records<T>(&self, name: &str, kind: TYPE, read: fn(RData<'_>) -> Option<T>) -> Result<Vec<T>, DnsError> {
        let too_long = |_| DnsError::Name(name.to_owned());
        let mut number = [0; 2];
        // A server that answers before it was asked would have to guess it.
        SystemRandom::new().fill(&mut number).expect("the kernel has random numbers");
        let mut query = Packet::new_query(u16::from_be_bytes(number));
        query.set_flags(PacketFlag::RECURSION_DESIRED);
        let asked = Name::new(name).map_err(too_long)?;
        query.questions.push(Question::new(asked, kind.into(), CLASS::IN.into(), false));
        let bytes = query.build_bytes_vec().map_err(too_long)?;
        let mut last = None;
        for server in std::iter::repeat_n(&self.0, ROUNDS as usize).flatten() {
            let answer = match exchange(*server, &query, &bytes) {
                Ok(answer) => answer,
                Err(why) => {
                    last = Some((*server, why.to_string()));
                    continue;
                }
            };
            let Ok(packet) = Packet::parse(&answer) else {
                last = Some((*server, "sent an answer that is damaged".to_owned()));
                continue;
            };
            match packet.rcode() {
                RCODE::NoError => {
                    // The name may be an alias of another: what it leads to is there as well.
                    return Ok(packet.answers.into_iter().filter_map(|record| read(record.rdata)).collect());
                }
                RCODE::NameError => {
                    return Err(DnsError::NoSuchName { name: name.to_owned(), server: *server });
                }
                code => last = Some((*server, format!("answered {code:?}"))),
            }
        }
        let (server, why) = last.expect("there is a name server");
        Err(DnsError::NoAnswer { name: name.to_owned(), server, why })
    }
}

/// Why a name server gave no answer, to follow its address in a sentence.
struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure(match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("did not answer within {} s", WAIT_MAX.as_secs()),
            _ => format!("cannot be asked: {}", os_error::words(&error)),
        })
    }
}

/// The whole answer of a name server.
fn exchange(server: SocketAddr, query: &Packet<'_>, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    // Connected: what others send is dropped.
    socket.connect(server)?;
    socket.send(bytes)?;
    let until = Instant::now() + WAIT_MAX;
    let mut buffer = [0; UDP_BYTES_MAX];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(ErrorKind::TimedOut).into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut buffer)?;
        let answer = &buffer[..length];
        // A truncated one may end within a record, so its head is read first.
        match head_of_answer(answer, query.id()) {
            None => {}
            Some(Head { is_truncated: true }) => return over_tcp(server, query, bytes),
            Some(Head { is_truncated: false }) => return Ok(answer.to_vec()),
        }
    }
}

fn over_tcp(server: SocketAddr, query: &Packet<'_>, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect_timeout(&server, WAIT_MAX)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    stream.set_write_timeout(Some(WAIT_MAX))?;
    let length = u16::try_from(bytes.len()).expect("a question is short");
    stream.write_all(&[&length.to_be_bytes(), bytes].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    match head_of_answer(&answer, query.id()) {
        Some(Head { is_truncated: false }) => Ok(answer),
        _ => Err(Failure("sent something that is not the answer".to_owned())),
    }
}

struct Head {
    is_truncated: bool,
}

/// `None`: it is not the answer to the question of this number.
fn head_of_answer(bytes: &[u8], number: u16) -> Option<Head> {
    let [first, second, flags, _, ..] = *bytes else { return None };
    const RESPONSE: u8 = 0x80;
    const TRUNCATED: u8 = 0x02;
    let is_answer = u16::from_be_bytes([first, second]) == number && flags & RESPONSE != 0;
    is_answer.then_some(Head { is_truncated: flags & TRUNCATED != 0 })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{SRV, TXT};

    use super::*;

    #[test]
    fn name_servers_are_those_of_the_file_or_of_the_variable() {
        let of = |text: &str| NameServers::of_file(text).0.iter().map(ToString::to_string).collect::<Vec<_>>();
        let file = "# nameserver 1.1.1.1\nsearch x\nnameserver 10.0.0.2\nnameserver ::1 \nnameserver x\noptions a\n";
        assert_eq!(of(file), ["10.0.0.2:53", "[::1]:53"]);
        assert_eq!(of(""), ["127.0.0.1:53"]);
        let named = |text: &str| NameServers::of_machine(Some(text)).map(|found| found.0[0].to_string());
        assert_eq!(named("10.1.1.1").as_deref(), Ok("10.1.1.1:53"));
        assert_eq!(named("[::1]:8600").as_deref(), Ok("[::1]:8600"));
        assert_eq!(
            named("dns.example").unwrap_err().to_string(),
            "ASSAY_NAME_SERVER=dns.example is not an IP address, or one with a port such as 10.0.0.2:53"
        );
    }

    /// A name server on loopback that answers so many questions. `answer`: changes the reply to one of these bytes;
    /// `None`: none is sent. Over TCP it answers whatever truncated it over UDP.
    fn serve(
        questions: usize,
        answer: impl Fn(&mut Packet<'_>, bool) -> Option<Vec<u8>> + Send + 'static,
    ) -> NameServers {
        // The port may be taken for TCP.
        let (socket, address, tcp) = std::iter::repeat_with(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = socket.local_addr().unwrap();
            TcpListener::bind(address).map(|tcp| (socket, address, tcp))
        })
        .take(100)
        .find_map(Result::ok)
        .unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            for _ in 0..questions {
                let (length, client) = socket.recv_from(&mut buffer).unwrap();
                let query = Packet::parse(&buffer[..length]).unwrap();
                let mut reply = query.clone().into_reply();
                if let Some(bytes) = answer(&mut reply, false) {
                    socket.send_to(&bytes, client).unwrap();
                    if bytes[2] & 2 != 0 {
                        let (mut stream, _) = tcp.accept().unwrap();
                        let mut asked = vec![0; length + 2];
                        stream.read_exact(&mut asked).unwrap();
                        assert_eq!(asked[2..], buffer[..length]);
                        let mut reply = query.into_reply();
                        let bytes = answer(&mut reply, true).unwrap();
                        let length = (bytes.len() as u16).to_be_bytes();
                        stream.write_all(&[&length[..], &bytes].concat()).unwrap();
                    }
                }
            }
        });
        NameServers(vec![address])
    }

    fn record<'a>(name: &'a str, data: RData<'a>) -> ResourceRecord<'a> {
        ResourceRecord::new(Name::new(name).unwrap(), CLASS::IN, 60, data)
    }

    fn srv(priority: u16, weight: u16, port: u16, target: &str) -> RData<'_> {
        RData::SRV(SRV { priority, weight, port, target: Name::new(target).unwrap() })
    }

    #[test]
    fn services_come_in_the_order_in_which_to_try_them() {
        let servers = serve(1, |reply, _| {
            let name = "_mongodb._tcp.c.test";
            reply.answers.push(record(name, srv(1, 9, 27018, "d3.c.test")));
            reply.answers.push(record(name, srv(0, 1, 27017, "d2.c.test")));
            reply.answers.push(record(name, srv(0, 5, 27017, "d1.c.test")));
            Some(reply.build_bytes_vec_compressed().unwrap())
        });
        let found = servers.services("_mongodb._tcp.c.test").unwrap();
        let shown: Vec<String> = found.iter().map(|one| format!("{}:{}", one.host, one.port)).collect();
        assert_eq!(shown, ["d1.c.test:27017", "d2.c.test:27017", "d3.c.test:27018"]);
    }

    #[test]
    fn a_truncated_answer_is_asked_for_over_tcp() {
        let servers = serve(1, |reply, is_whole| {
            if !is_whole {
                reply.set_flags(PacketFlag::TRUNCATION);
                let mut bytes = reply.build_bytes_vec().unwrap();
                // It ends within what would be a record.
                bytes[7] = 3;
                bytes.push(0xC0);
                return Some(bytes);
            }
            let long = "x".repeat(200);
            let text = TXT::new().with_string("authSource=admin&").unwrap().with_string(&long).unwrap();
            for _ in 0..5 {
                reply.answers.push(record("c.test", RData::TXT(text.clone())).into_owned());
            }
            Some(reply.build_bytes_vec().unwrap())
        });
        let found = servers.texts("c.test").unwrap();
        assert_eq!((found.len(), found[0].len()), (5, 217));
    }

    #[test]
    fn what_a_name_server_refuses_has_its_words() {
        let refused = |code: RCODE, questions| {
            let servers = serve(questions, move |reply, _| {
                *reply.rcode_mut() = code;
                Some(reply.build_bytes_vec().unwrap())
            });
            let shown = servers.services("c.test").unwrap_err().to_string();
            shown.replace(&servers.0[0].to_string(), "[SERVER]")
        };
        assert_eq!(refused(RCODE::NameError, 1), "the name server [SERVER] knows no name c.test");
        assert_eq!(
            refused(RCODE::ServerFailure, 2),
            "looking up c.test: the name server [SERVER] answered ServerFailure"
        );
        let long = format!("{}.test", "x".repeat(64));
        let name = NameServers::of_file("").services(&long).unwrap_err();
        assert_eq!(name, DnsError::Name(long));
        let empty = serve(1, |reply, _| Some(reply.build_bytes_vec().unwrap()));
        assert_eq!(empty.services("c.test").unwrap(), []);
        let damaged = serve(2, |reply, _| {
            let mut bytes = reply.build_bytes_vec().unwrap();
            bytes[7] = 1;
            Some(bytes)
        });
        assert!(damaged.services("c.test").unwrap_err().to_string().contains("an answer that is damaged"));
    }

    #[test]
    fn the_next_name_server_is_asked_if_one_is_not_there_and_strangers_are_not_believed() {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut servers = serve(1, |reply, _| {
            // First an answer to another question, which is skipped.
            reply.answers.push(record("c.test", srv(0, 0, 1, "a.test")));
            Some(reply.build_bytes_vec().unwrap())
        });
        servers.0.insert(0, gone);
        assert_eq!(servers.services("c.test").unwrap().len(), 1);
        assert!(head_of_answer(&[0, 7, 0x80, 0], 8).is_none() && head_of_answer(&[0, 8, 0, 0], 8).is_none());
        assert!(head_of_answer(&[0, 8, 0x82, 0], 8).is_some_and(|head| head.is_truncated));
        assert!(head_of_answer(&[0, 8], 8).is_none());
    }
}
