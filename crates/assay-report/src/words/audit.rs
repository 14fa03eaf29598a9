//! The result of an audit in one line.

use crate::digits::count;
use crate::findings::audit::{RuleFindings, RuleVerdict};

/// `17 passed, 4 need a longer run`; empty without rules.
pub(crate) fn audit_words(rules: &[RuleFindings]) -> Option<String> {
    let number = |verdict: RuleVerdict| rules.iter().filter(|rule| rule.verdict == verdict).count() as u64;
    let [failed, passed, short, unread] =
        [RuleVerdict::Failed, RuleVerdict::Passed, RuleVerdict::TooShort, RuleVerdict::NotRead].map(number);
    let parts = [
        (failed, format!("{} FAILED", count(failed))),
        (passed, format!("{} passed", count(passed))),
        (short, format!("{} {} a longer run", count(short), if short == 1 { "needs" } else { "need" })),
        (unread, format!("{} without data: the tables were not read", count(unread))),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|(number, _)| *number > 0).map(|(_, words)| words).collect();
    (!rules.is_empty()).then(|| parts.join(", "))
}
