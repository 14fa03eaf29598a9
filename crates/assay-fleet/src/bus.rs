//! The connection to NATS: the list of agents, requests, stored results.
//!
//! The client has its own thread. Everything here blocks its caller until it is done or has timed out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use async_nats::jetstream::stream::{self, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, kv, object_store};
use async_nats::{Client, ConnectOptions, ServerAddr};
use futures_util::StreamExt;
use futures_util::future::join_all;
use tokio::io::AsyncReadExt;
use tokio::runtime::{Builder, Runtime};

use crate::clock::{ClockReading, Offsets, Ping, best};
use crate::messages::{Answer, Order, Pong, Presence};

/// Where NATS is, and how to log in.
#[derive(Clone, Debug, Default)]
pub struct Nats {
    /// `nats://HOST:PORT`, `tls://…`, with a user and a password or a token where it wants one.
    pub url: String,
    /// A credentials file as NATS has them.
    pub credentials: Option<PathBuf>,
    /// Certificates to trust beside those of the system.
    pub ca: Option<PathBuf>,
}

/// Why the bus cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The URL is wrong.
    #[error("{0} is not a NATS URL, such as nats://10.0.0.1:4222")]
    Url(String),
    /// A file cannot be read, or is not what it should be.
    #[error("cannot use {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No answer, or the login was refused.
    #[error("cannot connect to NATS at {url}: {reason}")]
    Connect {
        /// Without user and password.
        url: String,
        /// In the client's words.
        reason: String,
    },
    /// JetStream is off, or full, or not allowed.
    #[error("NATS at {url} cannot store results: {reason}")]
    JetStream {
        /// Without user and password.
        url: String,
        /// In the server's words.
        reason: String,
    },
    /// A request was not answered.
    #[error("no answer from {who}: {reason}")]
    NoAnswer {
        /// Who was asked.
        who: String,
        /// In the client's words.
        reason: String,
    },
}

/// A connection to NATS.
pub struct Bus {
    runtime: Runtime,
    pub(crate) wire: Wire,
}

/// What tasks use of it.
#[derive(Clone)]
pub(crate) struct Wire {
    pub(crate) client: Client,
    context: jetstream::Context,
    epoch: Instant,
    url: Arc<str>,
    is_private: bool,
}

/// A stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The run.
    pub run: String,
    /// The agent's number.
    pub number: u32,
    /// How large it is.
    pub bytes: usize,
}

/// The bucket with the list of agents. Entries expire: an agent that disappeared is forgotten.
const MEMBERS: &str = "assay-agents";
const MEMBER_AGE_MAX: Duration = Duration::from_secs(10);
/// The bucket of results. Those that nobody collects expire after a week.
const RESULTS: &str = "assay-results";
const RESULT_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An agent loads the script and looks up the database before it answers.
const ORDER_TIMEOUT: Duration = Duration::from_secs(30);
/// Pings of each agent; the shortest round trip counts.
const PINGS: usize = 10;
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// The client never sees the end of a list of results if one is replaced meanwhile, so the list is requested again.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);
const LISTS: usize = 5;

/// Not a number after the slash: results are listed without histories.
fn history_name(run: &str, number: u32) -> String {
    format!("{run}/{number}.history")
}

impl Bus {
    /// Connects; `name` is what the server lists. Fails when nobody answers within seconds.
    pub fn connect(nats: &Nats, name: &str) -> Result<Bus, BusError> {
        let address: ServerAddr = nats.url.parse().map_err(|_| BusError::Url(without_login(&nats.url)))?;
        let url = without_login(&nats.url);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fleet")
            .enable_all()
            .build()
            .map_err(|error| BusError::Connect { url: url.clone(), reason: error.to_string() })?;
        let is_encrypted = address.tls_required() || nats.ca.is_some();
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT_TIMEOUT)
            .require_tls(is_encrypted)
            // A server that restarts is waited for; how long is for the lease to say.
            .max_reconnects(None)
            .reconnect_delay_callback(|attempts| Duration::from_millis((50 * attempts as u64).min(500)))
            .event_callback(|_| async {});
        if let Some(path) = &nats.credentials {
            let text = std::fs::read_to_string(path)
                .map_err(|error| BusError::File { path: path.clone(), reason: error.to_string() })?;
            options = options
                .credentials(&text)
                .map_err(|error| BusError::File { path: path.clone(), reason: error.to_string() })?;
        } else if let (Some(user), Some(password)) = (address.username(), address.password()) {
            options = options.user_and_password(user.to_owned(), password.to_owned());
        } else if let Some(token) = address.username() {
            options = options.token(token.to_owned());
        }
        if let Some(path) = &nats.ca {
            // The client would say only that no connection came about.
            std::fs::read(path).map_err(|error| BusError::File { path: path.clone(), reason: error.to_string() })?;
            options = options.add_root_certificates(path.clone());
        }
        let local = is_loopback(address.host());
        let connected =
            runtime.block_on(async { tokio::time::timeout(2 * CONNECT_TIMEOUT, options.connect(address)).await });
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(BusError::Connect { url, reason: chain(&error) }),
            Err(_) => return Err(BusError::Connect { url, reason: "no answer".to_owned() }),
        };
        let is_private = local || is_encrypted || client.server_info().tls_required;
        let context = {
            // It begins a task.
            let _entered = runtime.enter();
            jetstream::new(client.clone())
        };
        let wire = Wire { client, context, epoch: Instant::now(), url: url.into(), is_private };
        runtime.block_on(wire.members())?;
        Ok(Bus { runtime, wire })
    }

    /// Nobody can listen in: the connection is encrypted, or does not leave this machine.
    pub fn is_private(&self) -> bool {
        self.wire.is_private
    }

    /// The server, without user and password.
    pub fn url(&self) -> &str {
        &self.wire.url
    }

    /// Version of the server.
    pub fn server_version(&self) -> String {
        self.wire.client.server_info().version
    }

    /// Maximum size of a message.
    pub fn message_bytes_max(&self) -> usize {
        self.wire.client.max_payload()
    }

    /// Our clocks.
    pub fn reading(&self) -> ClockReading {
        self.wire.reading()
    }

    /// Agents that are there, by name, and which of them answer. Whether one is busy is what it says now; its entry in
    /// the list may be some seconds old.
    pub fn agents(&self) -> Result<Vec<Presence>, BusError> {
        self.runtime.block_on(async {
            let mut agents = self.wire.agents().await?;
            let pongs = join_all(agents.iter().map(|agent| self.wire.ping(&agent.id))).await;
            for (agent, pong) in agents.iter_mut().zip(pongs) {
                if let Some(pong) = pong {
                    (agent.busy, agent.answers) = (pong.busy, true);
                }
            }
            Ok(agents)
        })
    }

    /// Whether one of these agents says that it is busy with this run.
    pub fn is_any_busy_with(&self, run: &str, ids: &[String]) -> bool {
        let pongs = self.runtime.block_on(join_all(ids.iter().map(|id| self.wire.ping(id))));
        pongs.into_iter().flatten().any(|pong| pong.busy.as_deref() == Some(run))
    }

    /// Asks agents to take shares of a run, all at once.
    pub fn order(&self, orders: &[(String, Order)]) -> Vec<Result<Answer, BusError>> {
        let ask = |(id, order): &(String, Order)| {
            let (wire, id) = (self.wire.clone(), id.clone());
            let bytes = serde_json::to_vec(order).expect("an order is text");
            async move {
                let reply = wire.request(order_subject(&id), bytes, ORDER_TIMEOUT).await?;
                serde_json::from_slice(&reply)
                    .map_err(|error| BusError::NoAnswer { who: format!("agent {id}"), reason: error.to_string() })
            }
        };
        self.runtime.block_on(join_all(orders.iter().map(ask)))
    }

    /// How far the clocks of these agents are ahead of ours; `None` for one that does not answer.
    pub fn clocks(&self, ids: &[String]) -> Vec<Option<Offsets>> {
        let ask = async |id: &String| {
            let mut pings = Vec::new();
            for _ in 0..PINGS {
                let sent = self.wire.reading();
                let Some(pong) = self.wire.ping(id).await else { break };
                pings.push(Ping { sent, there: pong.reading, received: self.wire.reading() });
            }
            best(&pings)
        };
        self.runtime.block_on(join_all(ids.iter().map(ask)))
    }

    /// Stores the result of an agent, replacing an earlier one.
    pub fn store(&self, run: &str, number: u32, result: &[u8]) -> Result<(), BusError> {
        self.put(&format!("{run}/{number}"), result)
    }

    /// Stores the history of an agent's transactions.
    pub fn store_history(&self, run: &str, number: u32, history: &[u8]) -> Result<(), BusError> {
        self.put(&history_name(run, number), history)
    }

    fn put(&self, name: &str, result: &[u8]) -> Result<(), BusError> {
        self.runtime.block_on(async {
            let store = self.wire.results().await?;
            store.put(name, &mut &result[..]).await.map_err(|error| self.wire.refused(&error))?;
            Ok(())
        })
    }

    /// Stores a result in the background. A failure does not matter: the next result will follow.
    pub fn store_soon(&self, run: &str, number: u32, result: Vec<u8>) {
        let (wire, name) = (self.wire.clone(), format!("{run}/{number}"));
        self.runtime.spawn(async move {
            if let Ok(store) = wire.results().await {
                let _ = store.put(name.as_str(), &mut &result[..]).await;
            }
        });
    }

    /// The stored result of an agent; `None`: there is none.
    pub fn fetch(&self, run: &str, number: u32) -> Result<Option<Vec<u8>>, BusError> {
        self.get(&format!("{run}/{number}"))
    }

    /// The stored history of an agent's transactions; `None`: there is none.
    pub fn fetch_history(&self, run: &str, number: u32) -> Result<Option<Vec<u8>>, BusError> {
        self.get(&history_name(run, number))
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, BusError> {
        self.runtime.block_on(async {
            let store = self.wire.results().await?;
            let mut object = match store.get(name).await {
                Ok(object) => object,
                Err(error) if error.kind() == object_store::GetErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(self.wire.refused(&error)),
            };
            let mut bytes = Vec::new();
            let read = tokio::time::timeout(ORDER_TIMEOUT, object.read_to_end(&mut bytes)).await;
            match read {
                Ok(Ok(_)) => Ok(Some(bytes)),
                Ok(Err(error)) => Err(self.wire.refused(&error)),
                Err(error) => Err(self.wire.refused(&error)),
            }
        })
    }

    /// All stored results, by run and number.
    pub fn stored(&self) -> Result<Vec<Stored>, BusError> {
        self.runtime.block_on(async {
            for _ in 0..LISTS {
                if let Ok(stored) = tokio::time::timeout(LIST_TIMEOUT, self.wire.stored()).await {
                    return stored;
                }
            }
            let waited = LIST_TIMEOUT.as_secs() * LISTS as u64;
            let reason = format!("no complete list within {waited} s");
            Err(BusError::JetStream { url: self.url().to_owned(), reason })
        })
    }

    /// Forgets the results of a run.
    pub fn forget(&self, run: &str) -> Result<(), BusError> {
        for stored in self.stored()?.into_iter().filter(|stored| stored.run == run) {
            self.runtime.block_on(async {
                let store = self.wire.results().await?;
                // There may be none.
                let _ = store.delete(history_name(&stored.run, stored.number)).await;
                let name = format!("{}/{}", stored.run, stored.number);
                store.delete(name).await.map_err(|error| self.wire.refused(&error))
            })?;
        }
        Ok(())
    }

    /// Whether the server can be reached at this moment.
    pub fn is_connected(&self) -> bool {
        self.wire.is_connected()
    }

    /// Runs something beside whatever else is done, until it ends or the bus is dropped.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
        self.runtime.spawn(task)
    }

    pub(crate) fn wait_for<T>(&self, task: impl Future<Output = T>) -> T {
        self.runtime.block_on(task)
    }
}

impl Wire {
    pub(crate) fn reading(&self) -> ClockReading {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        ClockReading { monotonic_ns: nanos(self.epoch.elapsed()), wall_ns: nanos(wall) }
    }

    /// Our monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Whether the server can be reached at this moment.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    pub(crate) async fn publish(&self, subject: String, bytes: Vec<u8>) {
        // A lost message is repeated.
        let _ = self.client.publish(subject, bytes.into()).await;
        let _ = self.client.flush().await;
    }

    pub(crate) async fn request(
        &self,
        subject: String,
        bytes: Vec<u8>,
        timeout: Duration,
    ) -> Result<Vec<u8>, BusError> {
        let who = subject.clone();
        let request = async_nats::Request::new().payload(bytes.into()).timeout(Some(timeout));
        match self.client.send_request(subject, request).await {
            Ok(message) => Ok(message.payload.to_vec()),
            Err(error) => Err(BusError::NoAnswer { who, reason: error.to_string() }),
        }
    }

    /// An agent's answer; `None`: there was none.
    async fn ping(&self, id: &str) -> Option<Pong> {
        let reply = self.request(ping_subject(id), Vec::new(), PING_TIMEOUT).await.ok()?;
        serde_json::from_slice(&reply).ok()
    }

    /// The bucket of members, made when it is missing: a server that restarts has forgotten it.
    pub(crate) async fn members(&self) -> Result<kv::Store, BusError> {
        if let Ok(store) = self.context.get_key_value(MEMBERS).await {
            return Ok(store);
        }
        // The client's own function needs account data that servers send only since 2.10.
        let config = stream::Config {
            name: format!("KV_{MEMBERS}"),
            subjects: vec![format!("$KV.{MEMBERS}.>")],
            max_messages_per_subject: 1,
            max_messages: -1,
            max_bytes: -1,
            max_age: MEMBER_AGE_MAX,
            discard: DiscardPolicy::New,
            storage: StorageType::Memory,
            num_replicas: 1,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        self.context.create_stream(config).await.map_err(|error| self.refused(&error))?;
        self.context.get_key_value(MEMBERS).await.map_err(|error| self.refused(&error))
    }

    async fn results(&self) -> Result<object_store::ObjectStore, BusError> {
        if let Ok(store) = self.context.get_object_store(RESULTS).await {
            return Ok(store);
        }
        let config = object_store::Config {
            bucket: RESULTS.to_owned(),
            max_age: RESULT_AGE_MAX,
            ..object_store::Config::default()
        };
        self.context.create_object_store(config).await.map_err(|error| self.refused(&error))
    }

    async fn stored(&self) -> Result<Vec<Stored>, BusError> {
        let store = self.results().await?;
        let mut list = store.list().await.map_err(|error| self.refused(&error))?;
        let mut found = Vec::new();
        while let Some(Ok(object)) = list.next().await {
            let Some((run, number)) = object.name.rsplit_once('/') else { continue };
            if let Ok(number) = number.parse() {
                found.push(Stored { run: run.to_owned(), number, bytes: object.size });
            }
        }
        found.sort_by(|a, b| (&a.run, a.number).cmp(&(&b.run, b.number)));
        // One that is replaced meanwhile is listed twice.
        found.dedup_by(|a, b| (&a.run, a.number) == (&b.run, b.number));
        Ok(found)
    }

    async fn agents(&self) -> Result<Vec<Presence>, BusError> {
        let store = self.members().await?;
        // The client's own list of keys names a key twice, or never ends, if its entry is replaced meanwhile.
        let mut subjects = store
            .stream
            .info_with_subjects(format!("{}>", store.prefix))
            .await
            .map_err(|error| self.refused(&error))?;
        let mut agents = Vec::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.map_err(|error| self.refused(&error))?;
            let Some(key) = subject.strip_prefix(&store.prefix) else { continue };
            let value = store.get(key).await.map_err(|error| self.refused(&error))?;
            agents.extend(value.and_then(|bytes| serde_json::from_slice::<Presence>(&bytes).ok()));
        }
        agents.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        Ok(agents)
    }

    fn refused(&self, error: &(dyn std::error::Error + 'static)) -> BusError {
        BusError::JetStream { url: self.url.to_string(), reason: chain(error) }
    }
}

/// An error with what caused it.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

pub(crate) fn order_subject(id: &str) -> String {
    format!("assay.agent.{id}.order")
}

pub(crate) fn ping_subject(id: &str) -> String {
    format!("assay.agent.{id}.ping")
}

pub(crate) fn orders_subject(run: &str) -> String {
    format!("assay.run.{run}.orders")
}

pub(crate) fn report_subject(run: &str) -> String {
    format!("assay.run.{run}.report")
}

pub(crate) fn claim_subject(run: &str) -> String {
    format!("assay.run.{run}.claim")
}

/// The URL without what stands before `@`.
fn without_login(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    if scheme.is_empty() { place.to_owned() } else { format!("{scheme}://{place}") }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_not_shown() {
        assert_eq!(without_login("nats://a:b@c@host:4222"), "nats://host:4222");
        assert_eq!(without_login("token@host"), "host");
        assert_eq!(without_login("tls://host"), "tls://host");
    }

    #[test]
    fn what_stays_on_the_machine_is_known() {
        assert!(is_loopback("127.0.0.1") && is_loopback("localhost") && is_loopback("::1"));
        assert!(!is_loopback("10.0.0.1") && !is_loopback("localhost.example.com"));
    }
}
