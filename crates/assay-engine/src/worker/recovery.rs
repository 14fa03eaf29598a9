//! The steps from a failure to the answer that the script waits for: open transactions are rolled back, broken links
//! reconnect, then comes the pause before the next attempt.
//!
//! Pure: `next` looks at the session's links and says what to do; the sessions do it and ask again.

use assay_script::Answer;
use assay_seam::Nanos;

use super::link::Link;

/// See the module.
#[derive(Debug)]
pub(super) struct Recovery {
    answer: Answer,
    /// Whether an open transaction is rolled back first.
    rolls_back: bool,
    /// Pause before the answer; zero once it is over.
    pause: Nanos,
    pub(super) started: Nanos,
    /// Reconnect attempts so far.
    pub(super) attempts: u32,
}

/// The next step.
#[derive(Debug)]
pub(super) enum RecoveryStep {
    /// Roll this link back, and ask again when that is answered.
    RollBack(usize),
    /// It is still in a transaction after the rollback: close it, and ask again.
    Sever(usize),
    /// Reconnect this link, and ask again when it is ready.
    Connect(usize),
    /// A link is connecting: ask again when it is ready.
    Wait,
    /// Ask again after this long.
    Pause(Nanos),
    /// Give the script its answer.
    GoOn(Answer),
}

impl Recovery {
    /// The script gets `answer` after `pause`.
    pub(super) fn new(answer: Answer, rolls_back: bool, pause: Nanos, started: Nanos) -> Recovery {
        Recovery { answer, rolls_back, pause, started, attempts: 0 }
    }

    /// The next step, given the session's links.
    pub(super) fn next<'a>(&mut self, links: impl Iterator<Item = (usize, &'a Link)>) -> RecoveryStep {
        for (number, link) in links {
            if self.rolls_back && link.is_open() && link.machine.in_transaction() {
                return if link.rolled_back { RecoveryStep::Sever(number) } else { RecoveryStep::RollBack(number) };
            }
            if link.is_broken() {
                return RecoveryStep::Connect(number);
            }
            if !link.is_open() {
                return RecoveryStep::Wait;
            }
        }
        match std::mem::take(&mut self.pause) {
            Nanos::ZERO => RecoveryStep::GoOn(std::mem::replace(&mut self.answer, Answer::Done)),
            pause => RecoveryStep::Pause(pause),
        }
    }
}
