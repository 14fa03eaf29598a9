//! The HTTP server of live metrics and of pages over records. It reads: other methods than GET and HEAD are refused.
//!
//! hyper, on a thread of its own with its own runtime: nothing on the measured path ever waits for it. It listens
//! before it returns, so that a port in use is reported immediately, and until the process ends. Connections, requests
//! and their time are limited.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
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

/// Serves at `address`, on a thread of this name, and returns where it listens. `answer` gets the path of a request,
/// decoded, without its query.
pub fn serve(
    address: SocketAddr,
    thread: &str,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let answer: Arc<Answers> = Arc::new(answer);
    std::thread::Builder::new().name(thread.to_owned()).spawn(move || runtime.block_on(accept(listener, answer)))?;
    Ok(address)
}

type Answers = dyn Fn(&str) -> Answer + Send + Sync;

async fn accept(listener: TcpListener, answer: Arc<Answers>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime does I/O");
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("it is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let answer = Arc::clone(&answer);
                let service = service_fn(move |request| answered(request, Arc::clone(&answer)));
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

async fn answered(request: Request<Incoming>, answer: Arc<Answers>) -> Result<Response<Body>, Infallible> {
    let found = match *request.method() {
        Method::GET | Method::HEAD => {
            let path = percent_encoding::percent_decode_str(request.uri().path()).decode_utf8_lossy().into_owned();
            let found = tokio::task::spawn_blocking(move || answer(&path)).await;
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
        let address = serve("127.0.0.1:0".parse().unwrap(), "test", answer).unwrap();
        let found = ask(address, "GET /a%20b?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(found.starts_with("HTTP/1.1 200 OK\r\n") && found.ends_with("\r\n\r\nfound"), "{found}");
        let head = ask(address, "HEAD /a%20b HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            ("GET /other HTTP/1.1\r\n\r\n", "404"),
            ("POST /a%20b HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "405"),
            ("DELETE /a%20b HTTP/1.1\r\n\r\n", "405"),
            ("nonsense\r\n\r\n", "400"),
        ] {
            assert!(ask(address, request).starts_with(&format!("HTTP/1.1 {status} ")), "{request}");
        }
        // A client that says nothing does not keep others waiting.
        let _silent = TcpStream::connect(address).unwrap();
        assert!(ask(address, "GET /a%20b HTTP/1.1\r\n\r\n").ends_with("found"));
        assert_eq!(serve(address, "test", answer).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
