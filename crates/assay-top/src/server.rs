//! What a server says at this moment about its sessions and statements: not in records, which keep sums and samples.

use std::collections::HashMap;

/// One session of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionRow {
    /// The number by which it can be ended.
    pub id: String,
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
    /// Where its client is.
    pub client: String,
    /// What it does, as the server names it.
    pub state: String,
    /// What it waits for; empty: nothing, or not known.
    pub wait: String,
    /// Seconds in this state; `None`: not known.
    pub age_s: Option<f64>,
    /// Its statement, or its last one.
    pub statement: String,
}

/// The sums of one normalized statement since the server counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementRow {
    /// Identifies it.
    pub id: String,
    /// Executions.
    pub calls: f64,
    /// Execution time of all of them.
    pub time_us: f64,
    /// Rows returned or changed.
    pub rows: f64,
    /// Pages read from outside the server's memory; `None`: the server does not count them by statement.
    pub misses: Option<f64>,
    /// Its text.
    pub text: String,
}

/// Sums at three instants: when they were first read, and the last two times.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    first: HashMap<String, StatementRow>,
    before: HashMap<String, StatementRow>,
    now: Vec<StatementRow>,
    times: [f64; 3],
    /// Whether those listings were of all statements; what is missing in one of the most expensive is not new.
    is_all: [bool; 3],
}

impl Statements {
    /// The sums at another instant, in seconds on any clock. `is_all`: of all statements, not only the most expensive.
    pub fn take(&mut self, at_s: f64, rows: Vec<StatementRow>, is_all: bool) {
        let by_id = |rows: &[StatementRow]| rows.iter().map(|row| (row.id.clone(), row.clone())).collect();
        if self.times[2] == 0.0 {
            (self.first, self.times[0], self.is_all[0]) = (by_id(&rows), at_s, is_all);
            (self.before, self.times[1], self.is_all[1]) = (by_id(&rows), at_s, is_all);
        } else {
            (self.before, self.times[1], self.is_all[1]) = (by_id(&self.now), self.times[2], self.is_all[2]);
        }
        (self.now, self.times[2], self.is_all[2]) = (rows, at_s, is_all);
    }

    /// What was added since the first reading, or since the last one, and the seconds between. A statement whose sums
    /// decreased was counted anew, and has what it has now.
    pub fn since(&self, first: bool) -> (f64, Vec<StatementRow>) {
        let (from, number) = if first { (&self.first, 0) } else { (&self.before, 1) };
        let row = |now: &StatementRow| {
            let before = from.get(&now.id).filter(|before| before.calls <= now.calls);
            let less = |now: f64, before: Option<f64>| (now - before.unwrap_or(0.0)).max(0.0);
            StatementRow {
                calls: less(now.calls, before.map(|row| row.calls)),
                time_us: less(now.time_us, before.map(|row| row.time_us)),
                rows: less(now.rows, before.map(|row| row.rows)),
                misses: now.misses.map(|misses| less(misses, before.and_then(|row| row.misses))),
                ..now.clone()
            }
        };
        let is_known = |row: &&StatementRow| self.is_all[number] || from.contains_key(&row.id);
        let rows = self.now.iter().filter(is_known).map(row).filter(|row| row.calls > 0.0).collect();
        (self.times[2] - self.times[number], rows)
    }
}

/// What the server said last; an error says why it did not.
#[derive(Clone, Debug)]
pub struct ServerNow {
    /// Its name and version, once known.
    pub name: String,
    /// Its sessions.
    pub sessions: Result<Vec<SessionRow>, String>,
    /// Its statements; only changes are kept.
    pub statements: Result<Statements, String>,
    /// Why no session can be ended from here; `None`: it can.
    pub cannot_end: Option<String>,
}

impl ServerNow {
    /// Nothing is asked, for this reason.
    pub fn silent(reason: &str) -> ServerNow {
        ServerNow {
            name: String::new(),
            sessions: Err(reason.to_owned()),
            statements: Err(reason.to_owned()),
            cannot_end: Some(reason.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_what_was_added() {
        let row =
            |id: &str, calls: f64| StatementRow { id: id.into(), calls, time_us: calls * 10.0, ..Default::default() };
        let mut statements = Statements::default();
        statements.take(1.0, vec![row("a", 5.0), row("b", 7.0)], true);
        assert_eq!(statements.since(true), (0.0, Vec::new()));
        statements.take(2.0, vec![row("a", 6.0), row("b", 7.0)], false);
        statements.take(4.0, vec![row("a", 8.0), row("b", 2.0), row("c", 1.0)], true);
        let calls = |first| {
            let (seconds, rows) = statements.since(first);
            (seconds, rows.into_iter().map(|row| (row.id, row.calls)).collect::<Vec<_>>())
        };
        let named = |rows: &[(&str, f64)]| rows.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(calls(true), (3.0, named(&[("a", 3.0), ("b", 2.0), ("c", 1.0)])));
        // The listing before was not of all statements, so `c` may have been there.
        assert_eq!(calls(false), (2.0, named(&[("a", 2.0), ("b", 2.0)])));
    }
}
