//! What a server sends unasked: notifications (NOTIFY), until somebody asks for them, and the end of the connection.

use std::collections::VecDeque;

use crate::protocol::message::{Body, Broken};
use assay_seam::{Class, Reply, RowsPool, StatementError};

/// More are dropped, and the next one who asks is told.
const WAITING_MAX: usize = 1000;

/// What the server said without being asked.
#[derive(Default)]
pub(super) struct Unasked {
    /// It ended the connection while nothing was in flight, or after a reply.
    pub(super) goodbye: Option<Box<StatementError>>,
    pub(super) notifications: Notifications,
}

/// Those that wait.
#[derive(Default)]
pub(super) struct Notifications {
    waiting: VecDeque<Notification>,
    /// How many were dropped since somebody asked.
    dropped: u64,
}

struct Notification {
    channel: Box<[u8]>,
    payload: Box<[u8]>,
}

impl Notifications {
    /// Adds the one in a NotificationResponse.
    pub(super) fn add(&mut self, body: &[u8]) -> Result<(), Broken> {
        let mut body = Body(body);
        let _process = body.i32()?;
        let (channel, payload) = (body.text()?.into(), body.text()?.into());
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(Notification { channel, payload });
        } else {
            self.dropped += 1;
        }
        Ok(())
    }

    /// The oldest one as a row, or an error if some were dropped.
    pub(super) fn take(&mut self, pool: &mut RowsPool) -> Option<Reply> {
        if self.dropped > 0 {
            let dropped = std::mem::take(&mut self.dropped);
            let message = format!(
                "{dropped} notifications were dropped: {WAITING_MAX} were waiting for con:notification already"
            );
            return Some(Reply::failed(StatementError::client(Class::Limit, message)));
        }
        let Notification { channel, payload } = self.waiting.pop_front()?;
        let mut rows = pool.take();
        rows.begin_set(2);
        // At most 8,000 bytes, as PostgreSQL has it; a longer one would be cut to nothing.
        for text in [channel, payload] {
            if rows.push_text(&text).is_err() {
                rows.push_null();
            }
        }
        Some(Reply { rows: Some(rows), ..Reply::default() })
    }
}
