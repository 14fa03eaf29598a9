//! The coordinator's side of the bus: sends what `lead` decides, and passes it the reports of agents.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::agent::{Claim, lock};
use crate::bus::{Bus, BusError, Wire, claim_subject, orders_subject, report_subject};
use crate::lead::{Lead, LeadEvent};
use crate::messages::Report;

/// A bus that cannot be reached for this long is reported; one that restarts is back sooner.
const UNREACHABLE: Duration = Duration::from_secs(2);
/// How often a coordinator repeats its orders.
const EVERY: Duration = Duration::from_secs(1);

/// Leads a run until it is dropped.
pub struct Leader {
    lead: Arc<Mutex<Lead>>,
    events: Receiver<LeadEvent>,
    changed: Arc<Notify>,
    wire: Wire,
    tasks: Vec<JoinHandle<()>>,
}

impl Bus {
    /// Begins to lead a run of so many agents.
    pub fn lead(&self, run: &str, agents: u32, lease: Duration) -> Result<Leader, BusError> {
        let lead = Arc::new(Mutex::new(Lead::new(agents, lease, self.wire.now())));
        let changed = Arc::new(Notify::new());
        let (sender, events) = mpsc::channel();
        let subscribe = |subject: String| {
            let client = self.wire.client.clone();
            let said = subject.clone();
            self.wait_for(async move { client.subscribe(subject).await })
                .map_err(|error| BusError::NoAnswer { who: said, reason: error.to_string() })
        };
        let mut reports = subscribe(report_subject(run))?;
        let mut claims = subscribe(claim_subject(run))?;
        let mut tasks = Vec::new();
        let (wire, of_task, news, told) = (self.wire.clone(), lead.clone(), changed.clone(), sender.clone());
        tasks.push(self.spawn(async move {
            while let Some(message) = reports.next().await {
                let Ok(report) = serde_json::from_slice::<Report>(&message.payload) else { continue };
                let mut lead = lock(&of_task);
                let before = lead.orders().clone();
                let events = lead.on_report(report, wire.now());
                if *lead.orders() != before {
                    news.notify_one();
                }
                // Before anybody sees what the report has changed.
                events.into_iter().for_each(|event| drop(told.send(event)));
            }
        }));
        let (wire, of_task) = (self.wire.clone(), lead.clone());
        tasks.push(self.spawn(async move {
            while let Some(message) = claims.next().await {
                let (Some(reply), Ok(claim)) = (message.reply, serde_json::from_slice::<Claim>(&message.payload))
                else {
                    continue;
                };
                let number = lock(&of_task).on_claim(claim.number, claim.claim, &claim.name);
                let bytes = serde_json::to_vec(&number).expect("a number");
                let _ = wire.client.publish(reply, bytes.into()).await;
            }
        }));
        let (wire, of_task, news) = (self.wire.clone(), lead.clone(), changed.clone());
        let subject = orders_subject(run);
        tasks.push(self.spawn(async move {
            let mut connected_at = wire.now();
            let mut is_reported = false;
            loop {
                let now = wire.now();
                let mut events = Vec::new();
                // While we are disconnected, agents are not silent: their reports cannot reach us.
                if wire.is_connected() {
                    connected_at = now;
                    events.extend(std::mem::take(&mut is_reported).then_some(LeadEvent::Reachable));
                    events.extend(lock(&of_task).on_time(now));
                } else {
                    let since = now.saturating_sub(connected_at);
                    if since >= UNREACHABLE && !std::mem::replace(&mut is_reported, true) {
                        events.push(LeadEvent::Unreachable(since));
                    }
                    events.extend(lock(&of_task).on_unreachable(since));
                }
                events.into_iter().for_each(|event| drop(sender.send(event)));
                let bytes = serde_json::to_vec(lock(&of_task).orders()).expect("text");
                // Without a connection it would wait for one.
                let _ = tokio::time::timeout(EVERY, wire.publish(subject.clone(), bytes)).await;
                let _ = tokio::time::timeout(EVERY, news.notified()).await;
            }
        }));
        Ok(Leader { lead, events, changed, wire: self.wire.clone(), tasks })
    }
}

impl Leader {
    /// The next event; `None`: none came within this time.
    pub fn next_event(&self, patience: Duration) -> Option<LeadEvent> {
        self.events.recv_timeout(patience).ok()
    }

    /// All agents have taken their shares: from now on they are expected to be heard.
    pub fn watch(&self) {
        let now = self.wire.now();
        self.with(|lead| lead.watch(now));
    }

    /// Looks at the run, or decides something.
    pub fn with<T>(&self, act: impl FnOnce(&mut Lead) -> T) -> T {
        let mut lead = lock(&self.lead);
        let before = lead.orders().clone();
        let result = act(&mut lead);
        if *lead.orders() != before {
            self.changed.notify_one();
        }
        result
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
