//! `--metrics-listen`: live metrics of a run for Prometheus.
//!
//! A separate thread serves a text that the coordinating thread updates once per interval: no session and no worker
//! ever waits for it. It listens before the run starts, so that a port in use is reported immediately, and until the
//! process ends, over several trials, too. One request at a time, each limited in size and time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use assay_process::diagnostics::Trouble;

/// The served text.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<String>>);

/// A client that takes longer is not Prometheus.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: usize = 8 << 10;

impl Metrics {
    /// Serves at `address`; a second call continues with the first one's listener.
    pub fn listen(address: SocketAddr) -> Result<Metrics, Trouble> {
        static SERVED: OnceLock<Metrics> = OnceLock::new();
        if let Some(served) = SERVED.get() {
            return Ok(served.clone());
        }
        let failed = |error: std::io::Error| {
            let trouble = Trouble::environment(format!("cannot serve metrics at {address}")).detail(error.to_string());
            match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    trouble.hint("another program is listening there: choose another port")
                }
                _ => trouble
                    .hint("use an address of this machine and a free port, such as `--metrics-listen 127.0.0.1:9090`"),
            }
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let metrics = Metrics::default();
        let served = metrics.clone();
        let serve = move || {
            for stream in listener.incoming() {
                match stream {
                    // A client that disconnects does no harm.
                    Ok(stream) => drop(served.answer(stream)),
                    // Out of file descriptors, for example: do not spin.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        std::thread::Builder::new().name("metrics".into()).spawn(serve).map_err(failed)?;
        Ok(SERVED.get_or_init(|| metrics).clone())
    }

    /// The text to serve from now on.
    pub fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = text;
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let end = Instant::now() + REQUEST_TIME_MAX;
        stream.set_write_timeout(Some(REQUEST_TIME_MAX))?;
        let mut request = Vec::new();
        let mut buffer = [0; 1024];
        while !request.windows(4).any(|four| four == b"\r\n\r\n") {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
                return Ok(());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut buffer)? {
                0 => return Ok(()),
                length => request.extend_from_slice(&buffer[..length]),
            }
        }
        let line = String::from_utf8_lossy(&request);
        let mut words = line.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (status, body) = match (method, path.split('?').next().unwrap_or_default()) {
            ("GET" | "HEAD", "/metrics" | "/") => {
                ("200 OK", self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone())
            }
            ("GET" | "HEAD", _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
            _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        let body = if method == "HEAD" { "" } else { &body };
        stream.write_all(format!("{head}{body}").as_bytes())
    }
}
