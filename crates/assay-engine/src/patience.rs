//! When a wait without any progress is worth a line for the user, and which.

use assay_seam::Nanos;

use crate::messages::Wait;
use crate::observer::Warning;

/// Time without progress before a line names what is being waited for; doubled for each further line.
const FIRST: Nanos = Nanos::from_secs(10);

/// One wait, from its start or from the last progress.
pub(crate) struct Patience {
    since: Nanos,
    /// When the next line is due.
    next: Nanos,
    /// Answers to the present question are worth a line: the first one gets it.
    asks: bool,
    /// Whether a worker named a server since the last question, and whether none did before it.
    has_named: bool,
    in_script: bool,
}

impl Patience {
    pub(crate) fn new(now: Nanos) -> Patience {
        Patience { since: now, next: now + FIRST, asks: false, has_named: true, in_script: false }
    }

    /// Whether it is time to find out what is waited for; true once for each line.
    pub(crate) fn is_over(&mut self, now: Nanos) -> bool {
        let is_over = now >= self.next;
        if is_over {
            self.next = now + (now - self.since);
            self.asks = true;
            self.in_script = !std::mem::take(&mut self.has_named);
        }
        is_over
    }

    /// The line for what a worker waits for. A script may do something else than wait for a server; that is worth a
    /// line if `sessions` get ready, but a command may compute as long as it likes. Workers answer independently: only
    /// if no answer named a server the last time is this one believed.
    pub(crate) fn judge(&mut self, longest: Option<Wait>, sessions: bool, now: Nanos) -> Option<Warning> {
        self.has_named |= longest.is_some();
        let warning = match longest {
            Some(wait) if now - wait.since < FIRST => {
                // The question came a little too early.
                self.next = self.next.min(wait.since + FIRST);
                return None;
            }
            Some(wait) => Warning::Waiting { target: Some(wait.target), what: wait.what, waited: now - wait.since },
            None if sessions && self.in_script => {
                Warning::Waiting { target: None, what: "the script's preparation", waited: now - self.since }
            }
            _ => return None,
        };
        if !std::mem::take(&mut self.asks) {
            return None;
        }
        self.next = now + (now - self.since);
        Some(warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_is_told_after_ten_seconds_and_then_ever_more_rarely() {
        let second = Nanos::from_secs;
        let mut patience = Patience::new(second(5));
        let times: Vec<u64> = (5..200).filter(|now| patience.is_over(second(*now))).collect();
        assert_eq!(times, [15, 25, 45, 85, 165]);
    }

    #[test]
    fn only_an_answer_that_is_late_is_told_and_once_for_all_workers() {
        let second = Nanos::from_secs;
        let wait = |since| Some(Wait { target: 1, what: "a login", since: second(since) });
        let mut patience = Patience::new(Nanos::ZERO);
        assert!(patience.is_over(second(12)));
        assert_eq!(patience.judge(wait(3), true, second(12)), None);
        let waited = second(11);
        let late = Warning::Waiting { target: Some(1), what: "a login", waited };
        assert_eq!(patience.judge(wait(1), true, second(12)), Some(late));
        assert_eq!(patience.judge(wait(1), true, second(12)), None);
        assert!(!patience.is_over(second(13)), "it was reported");
        assert!(patience.is_over(second(30)));
        assert_eq!(patience.judge(None, true, second(30)), None, "another worker may wait for a server");
        assert!(patience.is_over(second(60)));
        assert_eq!(patience.judge(None, false, second(60)), None, "a command may compute");
        assert!(patience.judge(None, true, second(60)).is_some());
    }

    #[test]
    fn a_wait_that_began_shortly_after_the_first_question_is_asked_about_when_it_is_late() {
        let second = Nanos::from_secs;
        let mut patience = Patience::new(Nanos::ZERO);
        let wait = Wait { target: 0, what: "a statement", since: second(1) };
        assert!(patience.is_over(second(10)));
        // Two workers, one of them without sessions.
        assert_eq!(patience.judge(Some(wait), true, second(10)), None);
        assert_eq!(patience.judge(None, true, second(10)), None);
        assert!(patience.is_over(second(11)));
        assert_eq!(patience.judge(None, true, second(11)), None, "a worker named a server");
        let late = Warning::Waiting { target: Some(0), what: "a statement", waited: second(10) };
        assert_eq!(patience.judge(Some(wait), true, second(11)), Some(late));
    }
}
