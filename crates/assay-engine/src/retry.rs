//! What happens after an error: the script gets it as a restart or a failure; then the transaction is retried or
//! ignored, or the run ends.
//!
//! Pure decisions based on the plan's `Policy`; the worker carries them out.

use assay_random::Random;
use assay_script::Verdict;
use assay_seam::{Class, Nanos, Origin, Retry, StatementError};

use crate::plan::{OnError, Policy};

/// What to do about a failed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Retry it after this pause.
    Again(Nanos),
    /// Count it as failed, continue with the next.
    GiveUp,
    /// End the run.
    EndRun,
}

/// How the script learns of `error` in the middle of a transaction.
pub(crate) fn verdict(policy: &Policy, error: &StatementError) -> Verdict {
    let retried = error.retry != Retry::Never && policy.retries > 0;
    if policy.ignore.covers(error) || retried { Verdict::Restart } else { Verdict::Fatal }
}

/// What to do about a transaction whose last statement error was `error` (`None`: the script itself asked for a
/// restart), after `retries` retries.
pub(crate) fn remedy(policy: &Policy, error: Option<&StatementError>, retries: u32, random: &mut Random) -> Remedy {
    let ignored = error.is_some_and(|error| policy.ignore.covers(error));
    // What the script restarts itself, including its hook, is unlimited, as in sysbench.
    if policy.restart_ignored && (ignored || error.is_none()) {
        return Remedy::Again(Nanos::ZERO);
    }
    // Retrying comes first; only what still fails afterwards is ignored.
    let retry = error.map_or(Retry::Now, |error| error.retry);
    if retry != Retry::Never && retries < policy.retries {
        return Remedy::Again(if retry == Retry::AfterBackoff { pause(retries, random) } else { Nanos::ZERO });
    }
    if ignored || policy.on_error == OnError::Continue { Remedy::GiveUp } else { Remedy::EndRun }
}

/// Advice about an error that the run survives. Deadlocks and the like need none: the servers' own hint is to retry the
/// transaction.
pub(crate) fn advice(error: &StatementError) -> Option<&String> {
    error.hint.as_ref().filter(|_| !matches!(error.class, Class::Deadlock | Class::Serialization))
}

/// Whether to try again after a failed reconnect: a server that is starting, full or away may come back; a refused
/// password stays refused.
pub(crate) fn may_come_back(error: &StatementError) -> bool {
    error.origin == Origin::Network
        || error.retry != Retry::Never
        || matches!(error.class, Class::Connection | Class::Limit | Class::Cancelled | Class::Timeout)
}

/// Pause before retry `attempt + 1` (counted from 0): 1 ms doubling to 128 ms, with ± 50 % jitter so that victims of
/// one deadlock do not collide again.
fn pause(attempt: u32, random: &mut Random) -> Nanos {
    jittered(Nanos::from_millis(1 << attempt.min(7)), random)
}

/// Pause before reconnect attempt `attempt` (counted from 0): 10 ms doubling to 640 ms, with ± 50 % jitter.
pub(crate) fn reconnect_pause(attempt: u32, random: &mut Random) -> Nanos {
    jittered(Nanos::from_millis(10 << attempt.min(6)), random)
}

fn jittered(pause: Nanos, random: &mut Random) -> Nanos {
    Nanos((pause.0 as f64 * (0.5 + random.unit())) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Ignore;
    use assay_seam::Code;

    fn policy(ignore: Ignore, on_error: OnError) -> Policy {
        Policy {
            ignore,
            retries: 2,
            restart_ignored: false,
            on_error,
            rollback: true,
            errors_outside_apart: false,
            carried_over_count: false,
            must_complete: true,
            failed_prepares_count: true,
            failures_are_alone: false,
            sessions_leave_alone: false,
            grace_bounds_leaving: true,
            reconnect: Nanos::from_secs(1),
        }
    }

    fn error(number: u32, state: &str, retry: Retry) -> StatementError {
        let mut error = StatementError::client(Class::Other, "words");
        error.code = Code { number, state: state.to_owned() };
        error.retry = retry;
        error
    }

    fn check(policy: &Policy, error: Option<&StatementError>, retries: u32) -> &'static str {
        match remedy(policy, error, retries, &mut Random::of_stream(1, 1)) {
            Remedy::Again(Nanos::ZERO) => "again now",
            Remedy::Again(_) => "again later",
            Remedy::GiveUp => "give up",
            Remedy::EndRun => "end run",
        }
    }

    #[test]
    fn retries_are_bounded_and_what_follows_is_the_policy() {
        let deadlock = error(1213, "40001", Retry::AfterBackoff);
        let none = Ignore::Codes(Vec::new());
        let stop = policy(none.clone(), OnError::Stop);
        assert_eq!(check(&stop, Some(&deadlock), 1), "again later");
        assert_eq!(check(&stop, Some(&deadlock), 2), "end run");
        assert_eq!(check(&policy(none.clone(), OnError::Continue), Some(&deadlock), 2), "give up");
        assert_eq!(check(&stop, Some(&error(1062, "23000", Retry::Never)), 0), "end run");
        assert_eq!(check(&stop, None, 0), "again now");
        let ignore = policy(Ignore::Codes(vec!["1213".into()]), OnError::Stop);
        assert_eq!(check(&ignore, Some(&deadlock), 1), "again later");
        assert_eq!(check(&ignore, Some(&deadlock), 2), "give up");
        assert_eq!(check(&ignore, Some(&error(0, "40P01", Retry::AfterBackoff)), 0), "again later");
        assert_eq!(check(&policy(Ignore::All, OnError::Stop), Some(&error(1, "", Retry::Never)), 0), "give up");
        let sysbench = Policy { restart_ignored: true, ..ignore };
        assert_eq!(check(&sysbench, Some(&deadlock), 1000), "again now");
        assert_eq!(check(&sysbench, None, 1000), "again now");
    }

    #[test]
    fn pauses_grow_and_stay_bounded() {
        let mut random = Random::of_stream(3, 3);
        for attempt in 0..40 {
            let pause = pause(attempt, &mut random);
            assert!(pause >= Nanos(500_000) && pause <= Nanos::from_millis(192), "{attempt}: {pause}");
        }
    }
}
