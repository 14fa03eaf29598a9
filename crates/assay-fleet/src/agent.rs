//! An agent: it registers itself, takes orders, and reports on its share of a run.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::bus::{Bus, BusError, Wire, claim_subject, order_subject, orders_subject, ping_subject, report_subject};
use crate::messages::{Answer, Order, Orders, Pong, Presence, Refusal, Report};

/// Present on the bus until it is dropped.
pub struct Member {
    presence: Arc<Mutex<Presence>>,
    changed: Arc<Notify>,
    orders: Receiver<Arrived>,
    tasks: Vec<JoinHandle<()>>,
}

/// An order that wants an answer.
pub struct Arrived {
    /// What is asked.
    pub order: Order,
    reply: oneshot::Sender<Answer>,
}

impl Arrived {
    /// Answers it.
    pub fn answer(self, answer: Answer) {
        // The coordinator may be gone.
        let _ = self.reply.send(answer);
    }
}

/// How often an agent renews its entry in the list.
const PRESENT_EVERY: Duration = Duration::from_secs(2);
/// How often it reports on a share if nothing happens.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Maximum of news kept until they are acknowledged; beyond it, the oldest are dropped.
const NEWS_MAX: usize = 10_000;
/// Approximate maximum size of the news in one report.
const NEWS_BYTES_MAX: usize = 200_000;
/// Between attempts to claim a number from a coordinator that does not answer.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(2);
const CLAIM_PAUSE: Duration = Duration::from_millis(100);

impl Bus {
    /// Becomes an agent.
    pub fn join(&self, presence: Presence) -> Result<Member, BusError> {
        let id = presence.id.clone();
        let presence = Arc::new(Mutex::new(presence));
        let (sender, orders) = mpsc::channel();
        let changed = Arc::new(Notify::new());
        let subscribe = |subject: String| {
            let client = self.wire.client.clone();
            let said = subject.clone();
            self.wait_for(async move { client.subscribe(subject).await })
                .map_err(|error| BusError::NoAnswer { who: said, reason: error.to_string() })
        };
        let mut pings = subscribe(ping_subject(&id))?;
        let mut asked = subscribe(order_subject(&id))?;
        let mut tasks = Vec::new();
        let (wire, present) = (self.wire.clone(), presence.clone());
        tasks.push(self.spawn(async move {
            while let Some(ping) = pings.next().await {
                let Some(reply) = ping.reply else { continue };
                let pong = Pong { busy: lock(&present).busy.clone(), reading: wire.reading() };
                let bytes = serde_json::to_vec(&pong).expect("numbers and text");
                let _ = wire.client.publish(reply, bytes.into()).await;
                let _ = wire.client.flush().await;
            }
        }));
        let (wire, present, news) = (self.wire.clone(), presence.clone(), changed.clone());
        tasks.push(self.spawn(async move {
            while let Some(message) = asked.next().await {
                let Some(reply) = message.reply else { continue };
                let (wire, present, sender) = (wire.clone(), present.clone(), sender.clone());
                let news = news.clone();
                // The answer takes a while, and another coordinator may ask meanwhile.
                tokio::spawn(async move {
                    let answer = consider(&message.payload, &present, &sender).await;
                    news.notify_one();
                    let bytes = serde_json::to_vec(&answer).expect("text");
                    let _ = wire.client.publish(reply, bytes.into()).await;
                    let _ = wire.client.flush().await;
                });
            }
        }));
        let (wire, present, news) = (self.wire.clone(), presence.clone(), changed.clone());
        tasks.push(self.spawn(async move {
            loop {
                let (id, bytes) = {
                    let presence = lock(&present);
                    (presence.id.clone(), serde_json::to_vec(&*presence).expect("text"))
                };
                if let Ok(store) = wire.members().await {
                    let _ = store.put(id, bytes.into()).await;
                }
                let _ = tokio::time::timeout(PRESENT_EVERY, news.notified()).await;
            }
        }));
        Ok(Member { presence, changed, orders, tasks })
    }

    /// Leaves the list immediately, before its entry expires.
    pub fn leave(&self, member: Member) {
        let id = lock(&member.presence).id.clone();
        drop(member);
        let wire = self.wire.clone();
        self.wait_for(async move {
            let gone = async {
                if let Ok(store) = wire.members().await {
                    let _ = store.purge(id).await;
                }
            };
            let _ = tokio::time::timeout(CLAIM_TIMEOUT, gone).await;
        });
    }

    /// Takes part in a run from now on.
    pub fn take_part(&self, order: &Order) -> Result<Part, BusError> {
        let subject = orders_subject(&order.run);
        let client = self.wire.client.clone();
        let mut heard = self
            .wait_for(async { client.subscribe(subject.clone()).await })
            .map_err(|error| BusError::NoAnswer { who: subject, reason: error.to_string() })?;
        let view = Arc::new(Mutex::new(AgentView {
            report: Report { number: order.number, ..Report::default() },
            heard_at: self.wire.now(),
            ..AgentView::default()
        }));
        let changed = Arc::new(Notify::new());
        let mut tasks = Vec::new();
        let (wire, of_task, news) = (self.wire.clone(), view.clone(), changed.clone());
        let number = order.number as usize;
        tasks.push(self.spawn(async move {
            while let Some(message) = heard.next().await {
                let Ok(orders) = serde_json::from_slice::<Orders>(&message.payload) else { continue };
                let opened = lock(&of_task).on_orders(orders, number, wire.now());
                for open in opened {
                    open();
                }
                news.notify_one();
            }
        }));
        let (wire, of_task, news) = (self.wire.clone(), view.clone(), changed.clone());
        let subject = report_subject(&order.run);
        tasks.push(self.spawn(async move {
            loop {
                let report = lock(&of_task).report_to_send();
                let bytes = serde_json::to_vec(&report).expect("text");
                wire.publish(subject.clone(), bytes).await;
                let _ = tokio::time::timeout(REPORT_EVERY, news.notified()).await;
                // Many changes at once are one report.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }));
        Ok(Part {
            wire: self.wire.clone(),
            runtime: tokio_handle(self),
            run: order.run.clone(),
            number: order.number,
            lease: Duration::from_millis(order.lease_ms),
            view,
            changed,
            tasks,
        })
    }
}

fn tokio_handle(bus: &Bus) -> tokio::runtime::Handle {
    bus.wait_for(async { tokio::runtime::Handle::current() })
}

/// The answer to an order. A busy agent refuses; otherwise the agent's own thread decides.
async fn consider(payload: &[u8], presence: &Mutex<Presence>, sender: &mpsc::Sender<Arrived>) -> Answer {
    let order: Order = match serde_json::from_slice(payload) {
        Ok(order) => order,
        Err(error) => return refused(format!("the order cannot be read: {error}")),
    };
    {
        let mut presence = lock(presence);
        if let Some(run) = &presence.busy {
            return refused(format!("agent {} is busy with run {run}", presence.name));
        }
        presence.busy = Some(order.run.clone());
    }
    let (reply, answer) = oneshot::channel();
    let answer = match sender.send(Arrived { order, reply }) {
        Ok(()) => answer.await.unwrap_or_else(|_| refused("the agent is leaving".to_owned())),
        Err(_) => refused("the agent is leaving".to_owned()),
    };
    if answer != Answer::Taken {
        lock(presence).busy = None;
    }
    answer
}

fn refused(cause: String) -> Answer {
    Answer::Refused(Refusal { cause, ..Refusal::default() })
}

impl Member {
    /// The next order; `None`: none came within this time.
    pub fn next_order(&self, patience: Duration) -> Option<Arrived> {
        self.orders.recv_timeout(patience).ok()
    }

    /// Makes it available for another run.
    pub fn release(&self) {
        lock(&self.presence).busy = None;
        self.changed.notify_one();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// An agent's part in a run, until it is dropped.
pub struct Part {
    wire: Wire,
    runtime: tokio::runtime::Handle,
    run: String,
    number: u32,
    lease: Duration,
    view: Arc<Mutex<AgentView>>,
    changed: Arc<Notify>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct AgentView {
    report: Report,
    orders: Orders,
    /// When the coordinator was last heard, on our monotonic clock.
    heard_at: Duration,
    news: VecDeque<String>,
    claims: u64,
    /// What to do when a barrier opens.
    opened: Vec<(u64, Opened)>,
}

type Opened = Box<dyn FnOnce() + Send>;

impl AgentView {
    /// Takes orders. Returns what their barriers release.
    fn on_orders(&mut self, orders: Orders, number: usize, now: Duration) -> Vec<Opened> {
        self.heard_at = now;
        let heard = orders.heard.get(number).copied().unwrap_or(0);
        while self.report.first < heard && !self.news.is_empty() {
            self.news.pop_front();
            self.report.first += 1;
        }
        let open = orders.barrier;
        // They may overtake each other.
        if open >= self.orders.barrier && orders.gates.len() >= self.orders.gates.len() {
            let stop = self.orders.stop || orders.stop;
            self.orders = Orders { stop, ..orders };
        }
        let (opened, waiting) = std::mem::take(&mut self.opened).into_iter().partition(|(barrier, _)| *barrier <= open);
        self.opened = waiting;
        opened.into_iter().map(|(_, open): (u64, Opened)| open).collect()
    }

    fn report_to_send(&self) -> Report {
        let mut bytes = 0;
        let fits = |news: &&String| {
            bytes += news.len();
            // One at least.
            bytes < NEWS_BYTES_MAX || bytes == 0
        };
        let mut news: Vec<String> = self.news.iter().take_while(fits).cloned().collect();
        if news.is_empty() {
            news.extend(self.news.front().cloned());
        }
        Report { news, ..self.report.clone() }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) number: u32,
    pub(crate) claim: u64,
    pub(crate) name: Vec<u8>,
}

impl Part {
    /// Changes what is reported.
    pub fn report(&self, change: impl FnOnce(&mut Report)) {
        let changed = {
            let mut view = lock(&self.view);
            let before = view.report.clone();
            change(&mut view.report);
            view.report != before
        };
        if changed {
            self.changed.notify_one();
        }
    }

    /// Adds something that happened to the next report.
    pub fn add_news(&self, news: String) {
        let mut view = lock(&self.view);
        if view.news.len() == NEWS_MAX {
            view.news.pop_front();
            view.report.first += 1;
        }
        view.news.push_back(news);
        drop(view);
        self.changed.notify_one();
    }

    /// The last orders of the coordinator.
    pub fn orders<T>(&self, look: impl FnOnce(&Orders) -> T) -> T {
        look(&lock(&self.view).orders)
    }

    /// There was no message from the coordinator for the length of the lease.
    pub fn is_abandoned(&self) -> bool {
        self.wire.now().saturating_sub(lock(&self.view).heard_at) > self.lease
    }

    /// Our monotonic clock, as the coordinator's instants are given on it.
    pub fn now_ns(&self) -> i64 {
        self.wire.reading().monotonic_ns
    }

    /// Asks for the next number of a counter until the answer arrives.
    pub fn claim(&self, name: &[u8], granted: Box<dyn FnOnce(u64) + Send>) {
        let claim = {
            let mut view = lock(&self.view);
            view.claims += 1;
            view.claims
        };
        let question = Claim { number: self.number, claim, name: name.to_owned() };
        let bytes = serde_json::to_vec(&question).expect("text");
        let (wire, view, subject) = (self.wire.clone(), self.view.clone(), claim_subject(&self.run));
        self.runtime.spawn(async move {
            while !lock(&view).orders.over {
                let reply = wire.request(subject.clone(), bytes.clone(), CLAIM_TIMEOUT).await;
                if let Some(number) = reply.ok().and_then(|reply| serde_json::from_slice(&reply).ok()) {
                    return granted(number);
                }
                tokio::time::sleep(CLAIM_PAUSE).await;
            }
        });
    }

    /// All sessions here wait at a barrier.
    pub fn arrive(&self, barrier: u64, opened: Opened) {
        let mut view = lock(&self.view);
        view.report.barrier = barrier;
        view.opened.push((barrier, opened));
        drop(view);
        self.changed.notify_one();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        lock(&self.view).orders.over = true;
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A poisoned lock only says that another thread panicked, which ends the program anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
