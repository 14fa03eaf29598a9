//! Counts, rates and latencies of a stage, or of one server in it.

use std::collections::BTreeMap;

use assay_record as record;
use assay_record::ByClass;
use serde::Serialize;

use crate::findings::arithmetic::{class_sum, map, per_second, ratio, sum};
use crate::findings::audit;
use crate::findings::latency::{LatencyFindings, all, curve, distribution, latency_findings};

/// Counts, rates and latencies of a stage, or of one target in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TallyFindings {
    /// Successful transactions.
    pub transactions: u64,
    /// Successful transactions per second.
    pub tps: f64,
    /// Successful statements.
    pub statements: u64,
    /// Successful statements per second.
    pub qps: f64,
    /// Statements by class.
    pub statements_by_class: ByClass<u64>,
    /// Statements per second by class.
    pub qps_by_class: ByClass<f64>,
    /// Rolled back on purpose: not in `transactions`. `None`: unknown for parts of a run.
    pub rolled_back: Option<u64>,
    /// Failed transactions.
    pub failed: u64,
    /// Retries of transactions.
    pub retries: u64,
    /// Retries after the answer to a commit was lost: the server may have committed that attempt, too. `None`: as
    /// above.
    pub retries_in_doubt: Option<u64>,
    /// Failed after the answer to a commit was lost. `None`: as above.
    pub failed_in_doubt: Option<u64>,
    /// Errors, including retried ones.
    pub errors: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Started, but not finished when the grace period was over.
    pub unfinished: u64,
    /// Ended together with their session because the script wanted that, without being counted.
    pub stopped: u64,
    /// Response times of all types together.
    pub response: LatencyFindings,
    /// Service times of all types together.
    pub service: LatencyFindings,
    /// Open loop and terminals: how long due transactions waited for a free session.
    pub wait: LatencyFindings,
    /// Lag of the generator.
    pub lag: LatencyFindings,
    /// Service times of statements.
    pub statement_service: ByClass<LatencyFindings>,
    /// By transaction type.
    pub types: Vec<TypeFindings>,
    /// By kind, the most frequent first.
    pub errors_by_kind: Vec<ErrorFindings>,
    /// Response times for a chart of percentiles: how many nines (1 is 90 %, 2 is 99 %), and nanoseconds; both ascend.
    #[serde(skip)]
    pub response_curve: Vec<(f64, u64)>,
}

/// One transaction type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeFindings {
    /// Its name.
    pub name: String,
    /// Successful.
    pub transactions: u64,
    /// Successful transactions per second.
    pub tps: f64,
    /// Share of all transactions that ended, whether or not they were rolled back on purpose: the mix. 0 … 1
    pub share: f64,
    /// Rolled back on purpose: not in `transactions`, but in the latencies. `None`, here and below: records do not keep
    /// it for parts of a run.
    pub rolled_back: Option<u64>,
    /// Given up.
    pub failed: Option<u64>,
    /// Retries.
    pub retries: Option<u64>,
    /// done − due.
    pub response: LatencyFindings,
    /// done − sent.
    pub service: LatencyFindings,
}

impl TypeFindings {
    /// Whether there is anything to report: if a workload names its types, its own name is unused.
    pub(crate) fn has_ended(&self) -> bool {
        self.transactions > 0 || self.rolled_back > Some(0) || self.failed > Some(0)
    }
}

/// One kind of error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorFindings {
    /// Origin of the error.
    pub origin: String,
    /// Its class.
    pub class: String,
    /// Errno if there is one, else SQLSTATE, else empty.
    pub code: String,
    /// Number of occurrences.
    pub count: u64,
    /// The message of the first occurrence.
    pub message: String,
}

pub(crate) fn tally_findings(tally: &record::Tally, measured_ns: u64) -> TallyFindings {
    let rate = |count| per_second(count, measured_ns);
    let transactions = sum(tally.transactions.iter().map(|transaction| transaction.count));
    let ended = sum(tally.transactions.iter().map(audit::ended));
    let statements = map(&tally.statements, |class| class.count);
    let statements_all = class_sum(statements);
    let response = all(tally.transactions.iter().map(|transaction| &transaction.response));
    TallyFindings {
        transactions,
        tps: rate(transactions),
        statements: statements_all,
        qps: rate(statements_all),
        statements_by_class: statements,
        qps_by_class: map(&statements, |&count| rate(count)),
        rolled_back: Some(sum(tally.transactions.iter().map(|transaction| transaction.rolled_back))),
        failed: sum(tally.transactions.iter().map(|transaction| transaction.failed)),
        retries: sum(tally.transactions.iter().map(|transaction| transaction.retries)),
        retries_in_doubt: Some(sum(tally.transactions.iter().map(|transaction| transaction.retries_in_doubt))),
        failed_in_doubt: Some(sum(tally.transactions.iter().map(|transaction| transaction.failed_in_doubt))),
        errors: sum(tally.errors.iter().map(|error| error.count)),
        reconnects: tally.reconnects,
        unfinished: tally.unfinished,
        stopped: tally.stopped,
        response: latency_findings(&response),
        service: latency_findings(&all(tally.transactions.iter().map(|transaction| &transaction.service))),
        wait: latency_findings(&distribution(&tally.wait)),
        lag: latency_findings(&distribution(&tally.lag)),
        statement_service: map(&tally.statements, |class| latency_findings(&distribution(&class.service))),
        types: tally.transactions.iter().map(|transaction| type_findings(transaction, ended, measured_ns)).collect(),
        errors_by_kind: errors_by_kind(&tally.errors),
        response_curve: curve(&response),
    }
}

/// `ended`: transactions of all types.
fn type_findings(transaction: &record::TransactionTally, ended: u64, measured_ns: u64) -> TypeFindings {
    TypeFindings {
        name: transaction.name.clone(),
        transactions: transaction.count,
        tps: per_second(transaction.count, measured_ns),
        share: ratio(audit::ended(transaction) as f64, ended as f64).unwrap_or(0.0),
        rolled_back: Some(transaction.rolled_back),
        failed: Some(transaction.failed),
        retries: Some(transaction.retries),
        response: latency_findings(&distribution(&transaction.response)),
        service: latency_findings(&distribution(&transaction.service)),
    }
}

/// Adds up errors by kind. One kind may occur in several stages; its first message represents all.
pub(crate) fn errors_by_kind<'a>(errors: impl IntoIterator<Item = &'a record::ErrorTally>) -> Vec<ErrorFindings> {
    let mut kinds: BTreeMap<_, ErrorFindings> = BTreeMap::new();
    for error in errors {
        let code = if error.number == 0 { error.state.clone() } else { error.number.to_string() };
        let kind = kinds.entry((&error.origin, &error.class, code.clone())).or_insert_with(|| ErrorFindings {
            origin: error.origin.clone(),
            class: error.class.clone(),
            code,
            count: 0,
            message: error.message.clone(),
        });
        kind.count = kind.count.saturating_add(error.count);
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    kinds
}
