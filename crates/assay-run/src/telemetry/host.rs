//! A remote machine, read from a Prometheus node exporter over HTTP.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

use assay_telemetry::node_exporter;

use super::sampler::{Moment, Readings, SampleSource};

/// If it has not answered by then, it is queried again at the next sample.
const PATIENCE: Duration = Duration::from_secs(1);
/// An exporter with all collectors returns about 100 KiB.
const BYTES_MAX: u64 = 16 << 20;
const PORT: u16 = 9100;

/// Where a node exporter is: `http://HOST[:PORT][/PATH][#DEVICE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostUrl {
    host: String,
    port: u16,
    path: String,
    /// The drive under the data directory.
    device: Option<String>,
}

impl FromStr for HostUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<HostUrl, String> {
        let wrong =
            || "expected http://HOST[:PORT][/PATH][#DEVICE], such as http://db1:9100 or http://db1#nvme0n1".to_owned();
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let (rest, device) = match rest.split_once('#') {
            Some((rest, device)) if !device.is_empty() => (rest, Some(device.to_owned())),
            Some(_) => return Err(wrong()),
            None => (rest, None),
        };
        let (place, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        // Colons within brackets belong to an address.
        let port = place.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let (host, port) = match port {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (place, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || text.contains(char::is_whitespace) || host.contains('@') {
            return Err(wrong());
        }
        let path = if path.trim_matches('/').is_empty() { "/metrics" } else { path };
        Ok(HostUrl { host: host.to_owned(), port, path: path.to_owned(), device })
    }
}

impl HostUrl {
    /// The exporter's current text, or the reason why there is none.
    fn fetch(&self) -> Result<String, String> {
        let failed = |error: std::io::Error| format!("http://{}:{}{}: {error}", self.host, self.port, self.path);
        let end = Instant::now() + PATIENCE;
        let mut addresses = (self.host.as_str(), self.port).to_socket_addrs().map_err(failed)?;
        let address = addresses.next().ok_or_else(|| format!("{} has no address", self.host))?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        // HTTP 1.0, so that the answer is not chunked.
        let request =
            format!("GET {} HTTP/1.0\r\nHost: {}:{}\r\nAccept: text/plain\r\n\r\n", self.path, self.host, self.port);
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let (mut answer, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || answer.len() as u64 > BYTES_MAX {
                return Err(format!("http://{}:{} did not answer in time", self.host, self.port));
            }
            stream.set_read_timeout(Some(left)).map_err(failed)?;
            match stream.read(&mut buffer).map_err(failed)? {
                0 => break,
                length => answer.extend_from_slice(&buffer[..length]),
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        match head.split_whitespace().nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ => {
                let first = head.lines().next().unwrap_or_default();
                Err(format!("http://{}:{}{} answered {first:?}", self.host, self.port, self.path))
            }
        }
    }

    /// An error in words if it does not answer like a node exporter.
    pub fn check(&self) -> Result<(), String> {
        let text = self.fetch()?;
        if node_exporter::values(&text, None).is_empty() {
            return Err(format!("http://{}:{}{} is not a node exporter", self.host, self.port, self.path));
        }
        Ok(())
    }

    /// Facts about the machine; none if it does not answer.
    pub fn facts(&self) -> BTreeMap<String, String> {
        self.fetch().map(|text| node_exporter::facts(&text)).unwrap_or_default()
    }
}

/// A machine to sample.
pub(super) struct Host(pub(super) HostUrl);

impl SampleSource for Host {
    fn open(&mut self, _: &mut Readings) {}

    fn sample(&mut self, _: Moment, readings: &mut Readings) {
        let text = match self.0.fetch() {
            Ok(text) => text,
            Err(reason) => return node_exporter::metrics().for_each(|metric| readings.lack(metric, &reason)),
        };
        let values = node_exporter::values(&text, self.0.device.as_deref());
        for metric in node_exporter::metrics().filter(|metric| !values.iter().any(|(known, ..)| known == metric)) {
            let of_device = metric.starts_with("device_").then_some(self.0.device.as_ref()).flatten();
            let reason = match of_device {
                Some(device) => format!("the node exporter knows no device {device}"),
                None => "the node exporter does not report it".to_owned(),
            };
            readings.lack(metric, &reason);
        }
        let of_drive = self.0.device.as_ref().map(|device| format!(" of {device}")).unwrap_or_default();
        for (metric, source, value) in values {
            let of_drive = if metric.starts_with("device_") { of_drive.as_str() } else { "" };
            readings.put(metric, &format!("{source}{of_drive}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_exporter_may_leave_out_what_is_usual() {
        let url = |text: &str| text.parse::<HostUrl>();
        let of = |host: &str, port, path: &str, device: Option<&str>| {
            Ok(HostUrl { host: host.into(), port, path: path.into(), device: device.map(Into::into) })
        };
        assert_eq!(url("http://db1"), of("db1", 9100, "/metrics", None));
        assert_eq!(url("http://10.0.0.1:80/#sda"), of("10.0.0.1", 80, "/metrics", Some("sda")));
        assert_eq!(url("http://[::1]/node?collect[]=cpu"), of("::1", 9100, "/node?collect[]=cpu", None));
        assert_eq!(url("http://[::1]:1"), of("::1", 1, "/metrics", None));
        for wrong in ["db1", "https://db1", "http://", "http://db1:x", "http://db1#", "http://a b", "http://me@db1"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
