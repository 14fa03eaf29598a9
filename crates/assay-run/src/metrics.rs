//! `--metrics-listen`: live metrics of a run for Prometheus.
//!
//! The server gives a text that the coordinating thread updates once per interval: no session and no worker ever waits
//! for it. It listens before the run starts, so that a port in use is reported immediately, and until the process ends,
//! over several trials, too.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use assay_process::diagnostics::Trouble;
use assay_process::terminal;
use assay_process::web::{self, Answer};

/// The served text.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<String>>);

impl Metrics {
    /// Serves at `address`; a second call continues with the first one's listener.
    pub fn listen(address: SocketAddr) -> Result<Metrics, Trouble> {
        static SERVED: OnceLock<Metrics> = OnceLock::new();
        if let Some(served) = SERVED.get() {
            return Ok(served.clone());
        }
        let metrics = Metrics::default();
        let served = metrics.clone();
        let answer = move |path: &str| match path {
            "/metrics" | "/" => Answer::of("text/plain; version=0.0.4; charset=utf-8", served.text()),
            _ => Answer::missing("metrics are at /metrics"),
        };
        let listening = web::serve(address, "metrics", answer).map_err(|error| {
            let trouble = Trouble::environment(format!("cannot serve metrics at {address}")).detail(error.to_string());
            match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    trouble.hint("another program is listening there: choose another port")
                }
                _ => trouble
                    .hint("use an address of this machine and a free port, such as `--metrics-listen 127.0.0.1:9090`"),
            }
        })?;
        if !address.ip().is_loopback() {
            terminal::say(&format!("metrics: {}metrics\n", listening.url));
        }
        Ok(SERVED.get_or_init(|| metrics).clone())
    }

    /// The text to serve from now on.
    pub fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
