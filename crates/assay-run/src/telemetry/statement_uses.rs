//! What a server counts for its statements: from before the first stage to the end of each.

use std::collections::HashMap;

use assay_record::StatementUse;
use assay_seam::{Nanos, Rows};
use assay_telemetry::LiveQuestions;
use assay_telemetry::live::STATEMENTS_MAX;

use super::sampler::Readings;
use crate::client::{Client, text};

/// At most this many statements are kept.
const KEPT_MAX: usize = 30;
/// Statements about the server itself: telemetry's own, and those of other watchers.
const ABOUT_SERVER: [&str; 6] =
    ["performance_schema", "information_schema", "assay_telemetry", "pg_stat_", "pg_extension", "pg_backend_pid"];

/// The counts before the first stage.
pub(super) struct StatementUses {
    questions: LiveQuestions,
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
        if questions.statements_sql.is_empty() {
            return None;
        }
        readings.statements += 1;
        let answer = client.ask(questions.statements_condition, patience).ok()?;
        let is_counted = text(&answer, 0, 0).as_deref() == Some("YES");
        client.reuse(answer);
        if !is_counted {
            return None;
        }
        let before = ask(client, &questions, patience, readings)?;
        Some(StatementUses { questions, is_all: before.len() < STATEMENTS_MAX, before })
    }

    /// What was counted since.
    pub(super) fn read(&self, client: &mut Client, patience: Nanos, readings: &mut Readings) {
        let Some(now) = ask(client, &self.questions, patience, readings) else { return };
        let since = |(id, now): (String, StatementUse)| {
            let before = self.before.get(&id).cloned();
            let before = before.or_else(|| self.is_all.then(StatementUse::default))?;
            // Counts that were reset are those since then.
            let less = |now: u64, before: u64| if now >= before { now - before } else { now };
            Some(StatementUse {
                calls: less(now.calls, before.calls),
                time_us: less(now.time_us, before.time_us),
                rows: less(now.rows, before.rows),
                page_reads: now.page_reads.map(|reads| less(reads, before.page_reads.unwrap_or(0))),
                text: now.text,
            })
        };
        let is_load = |one: &StatementUse| {
            let is_question = ["SHOW ", "SELECT @@"].iter().any(|head| one.text.starts_with(head));
            one.calls > 0 && !is_question && !ABOUT_SERVER.iter().any(|word| one.text.contains(word))
        };
        let mut all: Vec<StatementUse> = now.into_iter().filter_map(since).filter(is_load).collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.time_us));
        all.truncate(KEPT_MAX);
        readings.counted(all);
    }
}

fn ask(
    client: &mut Client,
    questions: &LiveQuestions,
    patience: Nanos,
    readings: &mut Readings,
) -> Option<HashMap<String, StatementUse>> {
    readings.statements += 1;
    let rows = client.ask(questions.statements_sql, patience).ok()?;
    let all = (0..rows.len(0)).filter_map(|row| of_row(&rows, row)).collect();
    client.reuse(rows);
    Some(all)
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
    };
    Some((text(rows, row, 0)?, counted))
}
