//! What a server counts for its statements: from before the first stage to the end of each.

use std::collections::HashMap;

use assay_record::StatementUse;
use assay_seam::{Nanos, Rows};
use assay_telemetry::live::STATEMENTS_MAX;
use assay_telemetry::{LiveQuestions, StatementLog};

use super::sampler::Readings;
use crate::client::{Client, text};

/// At most this many statements are kept.
const KEPT_MAX: usize = 30;
/// A server writes its log, and adds it up, within this time.
const LOG_PATIENCE: Nanos = Nanos::from_secs(10);
/// What is absent if there are none.
const ABSENT: &str = "statements by text";
/// Statements about the server itself: telemetry's own, and those of other watchers.
const ABOUT_SERVER: [&str; 6] =
    ["performance_schema", "information_schema", "assay_telemetry", "pg_stat_", "pg_extension", "pg_backend_pid"];

/// The counts before the first stage.
pub(super) struct StatementUses {
    sql: String,
    /// Where they are counted; `None`: by the server, since its start.
    log: Option<StatementLog>,
    before: HashMap<String, StatementUse>,
    /// Whether these are all: then a statement that is not there was not executed before.
    is_all: bool,
}

impl StatementUses {
    /// Counts from now on; `None`: the server counts no statements, or does not let us see them.
    pub(super) fn begin(
        client: &mut Client,
        questions: LiveQuestions,
        patience: Nanos,
        readings: &mut Readings,
    ) -> Option<StatementUses> {
        if let Some(log) = questions.log {
            return StatementUses::of_log(client, log, readings);
        }
        let sql = questions.statements_sql;
        if sql.is_empty() || !holds(client, questions.statements_condition, patience, readings) {
            return None;
        }
        let before = ask(client, sql, patience, readings).ok()?;
        Some(StatementUses { sql: sql.to_owned(), log: None, is_all: before.len() < STATEMENTS_MAX, before })
    }

    /// The log's times may be whole seconds: what it has of the present one is not ours.
    fn of_log(client: &mut Client, log: StatementLog, readings: &mut Readings) -> Option<StatementUses> {
        let patience = LOG_PATIENCE;
        readings.statements += 2;
        let rows = client.ask(log.now_sql, patience).ok()?;
        let sql = log.sql.replace("{since}", &text(&rows, 0, 0)?);
        client.reuse(rows);
        // Where it is refused, `read` says so.
        let _ = client.ask(log.flush_sql, patience).map(|rows| client.reuse(rows));
        let is_there = holds(client, log.condition.sql, patience, readings);
        let before = if is_there { ask(client, &sql, patience, readings).ok()? } else { HashMap::new() };
        Some(StatementUses { sql, log: Some(log), before, is_all: true })
    }

    /// What the log has. A server may log a statement after it has answered it, so that its last ones can be missing on
    /// a busy machine: the log is written and read again until nothing is added.
    fn read_log(
        &self,
        log: &StatementLog,
        client: &mut Client,
        patience: Nanos,
        readings: &mut Readings,
    ) -> Result<HashMap<String, StatementUse>, String> {
        let mut calls_before = None;
        for read in 1.. {
            readings.statements += 1;
            match client.ask(log.flush_sql, patience) {
                Ok(rows) => client.reuse(rows),
                Err(reason) => return Err(format!("{}: {reason}", log.flush_sql)),
            }
            if read == 1 && !holds(client, log.condition.sql, patience, readings) {
                return Err(log.condition.refused.to_owned());
            }
            let now = ask(client, &self.sql, patience, readings)?;
            let calls: u64 = now.values().map(|one| one.calls + one.failures.unwrap_or(0)).sum();
            if calls_before == Some(calls) || read == LOG_READS_MAX {
                return Ok(now);
            }
            calls_before = Some(calls);
        }
        unreachable!("the last read returns")
    }

    /// What was counted since.
    pub(super) fn read(&self, client: &mut Client, patience: Nanos, readings: &mut Readings) {
        let patience = if self.log.is_some() { LOG_PATIENCE } else { patience };
        let now = match &self.log {
            Some(log) => match self.read_log(log, client, patience, readings) {
                Ok(now) => now,
                Err(reason) => return readings.lack(ABSENT, &reason),
            },
            None => match ask(client, &self.sql, patience, readings) {
                Ok(now) => now,
                Err(_) => return,
            },
        };
        let since = |(id, now): (String, StatementUse)| {
            let before = self.before.get(&id).cloned();
            let before = before.or_else(|| self.is_all.then(StatementUse::default))?;
            // Counts that were reset are those since then.
            let less = |now: u64, before: u64| if now >= before { now - before } else { now };
            let less_of = |now: Option<u64>, before: Option<u64>| now.map(|now| less(now, before.unwrap_or(0)));
            Some(StatementUse {
                calls: less(now.calls, before.calls),
                time_us: less(now.time_us, before.time_us),
                rows: less(now.rows, before.rows),
                page_reads: less_of(now.page_reads, before.page_reads),
                read_rows: less_of(now.read_rows, before.read_rows),
                read_bytes: less_of(now.read_bytes, before.read_bytes),
                failures: less_of(now.failures, before.failures),
                ..now
            })
        };
        let is_load = |one: &StatementUse| {
            let is_question = ["SHOW ", "SELECT @@"].iter().any(|head| one.text.starts_with(head));
            let is_executed = one.calls > 0 || one.failures.is_some_and(|failures| failures > 0);
            is_executed && !is_question && !ABOUT_SERVER.iter().any(|word| one.text.contains(word))
        };
        let mut all: Vec<StatementUse> = now.into_iter().filter_map(since).filter(is_load).collect();
        all.sort_by_key(|one| std::cmp::Reverse((one.time_us, one.calls)));
        all.truncate(KEPT_MAX);
        if let Some(log) = self.log.filter(|_| all.is_empty()) {
            readings.lack(ABSENT, log.condition.refused);
        }
        readings.counted(all);
    }
}

/// How often a log is read at most until it has no more of the load than the time before.
const LOG_READS_MAX: usize = 5;

/// Whether the answer is `YES`.
fn holds(client: &mut Client, sql: &str, patience: Nanos, readings: &mut Readings) -> bool {
    readings.statements += 1;
    client.ask(sql, patience).is_ok_and(|rows| {
        let holds = text(&rows, 0, 0).as_deref() == Some("YES");
        client.reuse(rows);
        holds
    })
}

fn ask(
    client: &mut Client,
    sql: &str,
    patience: Nanos,
    readings: &mut Readings,
) -> Result<HashMap<String, StatementUse>, String> {
    readings.statements += 1;
    let rows = client.ask(sql, patience)?;
    let all = (0..rows.len(0)).filter_map(|row| of_row(&rows, row)).collect();
    client.reuse(rows);
    Ok(all)
}

fn of_row(rows: &Rows, row: usize) -> Option<(String, StatementUse)> {
    let number = |column: usize| text(rows, row, column)?.parse::<f64>().ok().map(|value| value.round() as u64);
    let words = assay_record::text_without_secrets(&text(rows, row, 5)?);
    let counted = StatementUse {
        text: words.split_whitespace().collect::<Vec<_>>().join(" "),
        calls: number(1)?,
        time_us: number(2)?,
        rows: number(3)?,
        page_reads: number(4),
        read_rows: number(6),
        read_bytes: number(7),
        memory_bytes_max: number(8),
        failures: number(9),
    };
    Some((text(rows, row, 0)?, counted))
}
