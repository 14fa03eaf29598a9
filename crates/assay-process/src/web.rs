//! The HTTP server of live metrics and of pages over records. It reads: other methods than GET and HEAD are refused.
//!
//! A page of somebody else that the user's browser shows must not read ours: a request is answered only if its `Host`
//! is the address that it arrived at, or a name of this machine for itself (DNS rebinding). Beyond a loopback address,
//! the path begins with a token, or the request has it as `Authorization: Bearer`.
//!
//! hyper, on a thread of its own with its own runtime: nothing on the measured path ever waits for it. It listens
//! before it returns, so that a port in use is reported immediately, and until the process ends. Connections, requests
//! and their time are limited.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};

/// A client that needs longer for the head of its request is not a browser or Prometheus.
const HEAD_TIME_MAX: Duration = Duration::from_secs(2);
/// Longest connection: a large record over a slow line.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(600);
const CONNECTIONS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 << 10;

/// What a request gets.
#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    kind: &'static str,
    body: Vec<u8>,
    /// Instead of the body: versions, as they come.
    versions: Option<watch::Receiver<Version>>,
}

/// What is new on a page that moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Its number.
    pub number: u64,
    /// It is the last one.
    pub is_last: bool,
}

/// Tells every viewer about versions. A viewer that is slow gets the newest one only, and nobody waits for it.
#[derive(Clone, Debug)]
pub struct Versions(Arc<watch::Sender<Version>>);

impl Default for Versions {
    fn default() -> Versions {
        Versions(Arc::new(watch::Sender::new(Version::default())))
    }
}

impl Versions {
    /// There is a new version.
    pub fn set(&self, version: Version) {
        self.0.send_replace(version);
    }

    /// The newest one.
    pub fn newest(&self) -> Version {
        *self.0.borrow()
    }

    /// Number of viewers.
    pub fn viewers(&self) -> usize {
        self.0.receiver_count()
    }

    /// The answer for a viewer: server-sent events, until the last version.
    pub fn answer(&self) -> Answer {
        let mut versions = self.0.subscribe();
        versions.mark_changed();
        let (status, kind) = (StatusCode::OK, "text/event-stream");
        Answer { status, kind, body: Vec::new(), versions: Some(versions) }
    }
}

impl Answer {
    /// Content of this MIME type.
    pub fn of(kind: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status: StatusCode::OK, kind, body: body.into(), versions: None }
    }

    /// Nothing has this address.
    pub fn missing(words: impl Into<String>) -> Answer {
        Answer::text(StatusCode::NOT_FOUND, words)
    }

    /// Something failed here.
    pub fn failure(words: impl Into<String>) -> Answer {
        Answer::text(StatusCode::INTERNAL_SERVER_ERROR, words)
    }

    fn text(status: StatusCode, words: impl Into<String>) -> Answer {
        let body = (words.into() + "\n").into_bytes();
        Answer { status, kind: "text/plain; charset=utf-8", body, versions: None }
    }
}

/// The environment variable with the token of servers beyond loopback; without it, the token is random.
pub const TOKEN_VARIABLE: &str = "ASSAY_TOKEN";
/// A token that can be guessed is none.
const TOKEN_LENGTH_MIN: usize = 16;

/// Where a server listens.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Its address.
    pub address: SocketAddr,
    /// For a browser, with the token if it needs one; ends in a slash.
    pub url: String,
}

/// Serves at `address`, on a thread of this name. `answer` gets the path of a request, decoded, without its query and
/// the token.
pub fn serve(
    address: SocketAddr,
    thread: &str,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> io::Result<Listening> {
    let token = if address.ip().is_loopback() { None } else { Some(token()?) };
    serve_with(address, token, thread, answer)
}

fn serve_with(
    address: SocketAddr,
    token: Option<String>,
    thread: &str,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> io::Result<Listening> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let path = token.as_ref().map_or(String::new(), |token| format!("{token}/"));
    let server = Arc::new(Server { token, answer: Box::new(answer) });
    std::thread::Builder::new().name(thread.to_owned()).spawn(move || runtime.block_on(accept(listener, server)))?;
    Ok(Listening { address, url: format!("http://{address}/{path}") })
}

fn token() -> io::Result<String> {
    let Some(given) = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()) else {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;
        return Ok(random.map(|byte| format!("{byte:02x}")).concat());
    };
    let is_plain = given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    match is_plain && given.len() >= TOKEN_LENGTH_MIN {
        true => Ok(given),
        false => Err(io::Error::other(format!(
            "{TOKEN_VARIABLE} must have at least {TOKEN_LENGTH_MIN} letters, digits, - and _"
        ))),
    }
}

struct Server {
    /// `None`: whoever reaches a loopback address is this machine.
    token: Option<String>,
    answer: Box<dyn Fn(&str) -> Answer + Send + Sync>,
}

impl Server {
    /// `head`: of a GET or HEAD that has arrived at `local`.
    fn answer(&self, head: &Head, local: IpAddr) -> Answer {
        if !head.hosts.iter().all(|host| is_own(host, local)) {
            let words = format!("403: this server answers for localhost and for the address {local} only");
            return Answer::text(StatusCode::FORBIDDEN, words);
        }
        let Some(token) = &self.token else { return (self.answer)(&head.path) };
        let path = head.path.strip_prefix('/').unwrap_or_default();
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let is_in_path = is_same(first, token);
        match is_in_path || head.bearer.as_ref().is_some_and(|bearer| is_same(bearer, token)) {
            true if is_in_path => (self.answer)(&format!("/{rest}")),
            true => (self.answer)(&head.path),
            false => Answer::missing("nothing is here: the path must begin with the token that assay has printed"),
        }
    }
}

/// Compares without telling by its time how much is the same.
fn is_same(one: &str, other: &str) -> bool {
    let differing = one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differing == 0
}

/// What matters of a request's head.
struct Head {
    /// Decoded.
    path: String,
    /// Every name that the request gives for this server, with or without a port.
    hosts: Vec<String>,
    bearer: Option<String>,
}

impl Head {
    /// `None`: it says twice for whom it is. A client that sends no such header is not a browser.
    fn of(request: &Request<Incoming>) -> Option<Head> {
        let named: Vec<_> = request.headers().get_all(HOST).iter().collect();
        if named.len() > 1 {
            return None;
        }
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let of_url = request.uri().authority().map(ToString::to_string);
        let hosts = named.into_iter().map(text).chain(of_url).collect();
        let bearer = request.headers().get(AUTHORIZATION).map(text);
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer ").map(|token| token.trim().to_owned()));
        let path = percent_encoding::percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
        Some(Head { path, hosts, bearer })
    }
}

/// Whether a `Host` is a name of this machine for itself, or the address at which the request has arrived. The port may
/// be another one: that of a tunnel.
fn is_own(host: &str, local: IpAddr) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':').or(port.is_empty().then_some("0"))),
        None => host.split_once(':').map_or((host, Some("0")), |(name, port)| (name, Some(port))),
    };
    if port.is_none_or(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address.to_canonical() == local.to_canonical(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

async fn accept(listener: TcpListener, server: Arc<Server>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime does I/O");
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("it is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(local) = stream.local_addr() else { continue };
                let server = Arc::clone(&server);
                let service = service_fn(move |request| answered(request, Arc::clone(&server), local.ip()));
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIME_MAX)
                    .max_buf_size(HEAD_BYTES_MAX)
                    .keep_alive(false)
                    .title_case_headers(true)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    // A client that disconnects does no harm.
                    let _ = tokio::time::timeout(CONNECTION_TIME_MAX, connection).await;
                    drop(place);
                });
            }
            // Out of file descriptors, for example: do not spin.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answered(
    request: Request<Incoming>,
    server: Arc<Server>,
    local: IpAddr,
) -> Result<Response<Body>, Infallible> {
    let found = match (request.method(), Head::of(&request)) {
        (_, None) => Answer::text(StatusCode::BAD_REQUEST, "400: a request has one Host"),
        (&Method::GET | &Method::HEAD, Some(head)) => {
            let found = tokio::task::spawn_blocking(move || server.answer(&head, local)).await;
            found.unwrap_or_else(|_| Answer::failure("internal error"))
        }
        _ => Answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET"),
    };
    let body = match found.versions {
        Some(versions) => events(versions),
        None => Full::new(Bytes::from(found.body)).boxed_unsync(),
    };
    let mut response = Response::new(body);
    *response.status_mut() = found.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(found.kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // No page of others may show ours in a frame.
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("frame-ancestors 'self'"));
    // What is measured now is not what it was a second ago.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// A line now and then, so that a viewer who is gone is noticed.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Versions as server-sent events, each when the viewer has taken the one before.
fn events(versions: watch::Receiver<Version>) -> Body {
    let next = |state: Option<watch::Receiver<Version>>| async {
        let mut versions = state?;
        let (text, rest) = match tokio::time::timeout(ALIVE_EVERY, versions.changed()).await {
            Err(_) => (":\n\n".to_owned(), Some(versions)),
            // The page was closed.
            Ok(Err(_)) => return None,
            Ok(Ok(())) => {
                let Version { number, is_last } = *versions.borrow_and_update();
                let kind = if is_last { "event: over\n" } else { "" };
                (format!("{kind}data: {number}\n\n"), (!is_last).then_some(versions))
            }
        };
        Some((Ok(Frame::data(Bytes::from(text))), rest))
    };
    StreamBody::new(stream::unfold(Some(versions), next)).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn paths_are_decoded_and_only_reading_is_allowed() {
        let answer = |path: &str| match path {
            "/a b" => Answer::of("text/plain", "found"),
            _ => Answer::missing("nothing there"),
        };
        let address = serve("127.0.0.1:0".parse().unwrap(), "test", answer).unwrap().address;
        let found = ask(address, "GET /a%20b?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(found.starts_with("HTTP/1.1 200 OK\r\n") && found.ends_with("\r\n\r\nfound"), "{found}");
        let head = ask(address, "HEAD /a%20b HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            ("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
            ("POST /a%20b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx", "405"),
            ("DELETE /a%20b HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            assert!(ask(address, request).starts_with(&format!("HTTP/1.1 {status} ")), "{request}");
        }
        // A client that says nothing does not keep others waiting.
        let _silent = TcpStream::connect(address).unwrap();
        assert!(ask(address, "GET /a%20b HTTP/1.0\r\n\r\n").ends_with("found"));
        assert_eq!(serve(address, "test", answer).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn only_requests_for_this_machine_are_answered() {
        let listening = serve("127.0.0.1:0".parse().unwrap(), "test", |_| Answer::of("text/plain", "found")).unwrap();
        let status = |head: &str| ask(listening.address, head)[9..12].to_owned();
        for host in ["localhost", "LOCALHOST.:99", "127.0.0.1", "127.0.0.1:80", "127.1.2.3", "[::1]", "[::1]:8642"] {
            assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")), "200", "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0",
            "[::2]",
            "[::1]x",
            "localhost:x",
            "",
            "localhost@evil.example",
        ] {
            assert_eq!(status(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")), "403", "{host}");
        }
        for (head, wanted) in [
            ("GET / HTTP/1.0\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", "400"),
            ("GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n", "403"),
            ("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "403"),
            ("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
        ] {
            assert_eq!(status(head), wanted, "{head:?}");
        }
    }

    #[test]
    fn beyond_loopback_a_request_needs_the_token() {
        let token = || Some("0123456789abcdef".to_owned());
        let answer = |path: &str| Answer::of("text/plain", format!("at {path}"));
        let listening = serve_with("127.0.0.1:0".parse().unwrap(), token(), "test", answer).unwrap();
        assert_eq!(listening.url, format!("http://{}/0123456789abcdef/", listening.address));
        let get = |path: &str, more: &str| {
            let answer = ask(listening.address, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n"));
            format!("{} {}", &answer[9..12], answer.rsplit("\r\n\r\n").next().unwrap().trim())
        };
        assert_eq!(get("/0123456789abcdef/metrics", ""), "200 at /metrics");
        assert_eq!(get("/0123456789abcdef", ""), "200 at /");
        assert_eq!(get("/metrics", "Authorization: Bearer 0123456789abcdef\r\n"), "200 at /metrics");
        for (path, more) in [("/metrics", ""), ("/", ""), ("/0123456789abcdeF/", ""), ("/0123456789abcde/x", "")] {
            assert_eq!(&get(path, more)[..3], "404", "{path}");
        }
        assert_eq!(&get("/", "Authorization: Bearer x\r\n")[..3], "404");
        // What is not on this machine alone always has one.
        let open = serve("0.0.0.0:0".parse().unwrap(), "test", answer).unwrap();
        let path = open.url.rsplit_once(&format!(":{}/", open.address.port())).unwrap().1;
        assert_eq!(path.len(), 33);
    }
}
