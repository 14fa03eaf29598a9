//! A query to a server, and how to read its answer.

use assay_seam::{Cell, Rows};

use crate::innodb::checkpoint_age;
use crate::replica_set::lag_us;

/// Everything to ask one server.
#[derive(Clone, Debug, Default)]
pub struct ServerQuestions {
    /// Those that the server does not refuse are asked from then on.
    pub questions: Vec<Question>,
    /// More of them, each for a database with this extension. Without it they would leave errors in the server's log.
    pub of_extensions: Vec<(&'static str, Question)>,
    /// More of them, each for a server without this extension: with it, the answer is not the whole truth.
    pub without_extensions: Vec<(&'static str, Question)>,
    /// Returns the names of a database's extensions, or of a server's plugins.
    pub extensions_sql: &'static str,
    /// What active sessions wait for: rows of a name and a number of sessions. Asked more often than the others.
    pub waits: Option<Waits>,
    /// Questions that identify the server's process if it is local, one value each.
    pub process: ProcessQuestion,
    /// Counters of the server that are off by default, with the question that reads them.
    pub switched: Option<Switched>,
    /// Keeps our own statements out of the server's statement statistics, if the user may do that.
    pub unwatch_sql: &'static str,
    /// Sent before each sample. It makes the server publish what our own connection did so far.
    pub publish_sql: &'static str,
    /// Which statements sessions execute, and how to ask for their plans.
    pub running: Option<Running>,
    /// Prefix of a question to learn how many buffers it reads, if the server can tell: see `buffers_read`.
    pub explain: &'static str,
}

/// Counters that are switched on for a run, and off again afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    /// Names of those that are off, one per row; the first query that is not refused counts.
    pub off_sql: [String; 2],
    /// The statement that switches one on; `{}` is its name.
    pub on_sql: &'static str,
    /// The statement that switches it off again.
    pub undo_sql: &'static str,
    /// Asked once they are on.
    pub question: Question,
}

/// How to sample waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Rows of a name and a number of sessions.
    pub sql: &'static str,
    /// `None`: always.
    pub condition: Option<Condition>,
}

/// What must hold, or the answers are not the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Asked once, when connected. It holds if the answer is `YES`.
    pub sql: &'static str,
    /// The reason to report if it does not.
    pub refused: &'static str,
}

/// How to learn which statements the load executes, and how the server would execute them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Rows of a statement that a session of our user executed lately in our database, only if its text is complete.
    pub sql: &'static str,
    /// Answers the plan of the statement `{}`, whose values are in its text.
    pub explain: &'static str,
    /// Answers the plan of the statement `{}` with the parameters `$1`, …, for which `{nulls}` stands: the plan that
    /// is made without knowing them.
    pub explain_prepared: &'static str,
}

/// How to find the process of a local server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessQuestion {
    /// Names of its program (`/proc/PID/comm`).
    pub programs: &'static [&'static str],
    /// Whether the server is the process that listens at the address of our connection.
    pub listens: bool,
    /// Returns the process or thread that serves our own connection.
    pub own_sql: &'static str,
    /// Returns the file with the server's process id; empty: the process of our connection is a child of the server's.
    pub file_sql: &'static str,
    /// Answers the data directory.
    pub folder_sql: &'static str,
    /// For servers that answer names and values instead of all this: the server's process id.
    pub pid: NamedAnswer,
    /// Likewise: the data directory.
    pub folder: NamedAnswer,
}

/// A value among rows of a name and a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedAnswer {
    /// Empty: there is none.
    pub sql: &'static str,
    /// Its name.
    pub name: &'static str,
}

/// One query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The query.
    pub sql: String,
    /// The form of its answer.
    pub shape: Shape,
    /// Its metrics.
    pub asked: Vec<Asked>,
    /// Asked only at both ends of a stage, because the answer costs reads that the server counts.
    pub at_ends: bool,
    /// Asked only within a stage: the server publishes what connections do so late that, at its beginning, the work of
    /// our login and preparations would be counted as the load's.
    pub late: bool,
    /// The server does not count what this reads.
    pub uncounted: bool,
    /// Not asked again if the first answer has no values: only some servers have what it asks for, such as replicas.
    pub of_some: bool,
    /// `None`: always asked.
    pub condition: Option<Condition>,
    /// Lists the statements of ours that this question must not count. They replace `OWN_IDS` in it.
    pub own_ids_sql: &'static str,
}

/// Where the numbers of our own statements go in a question: an array's literal.
pub const OWN_IDS: &str = "'{}'";

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One row with a column for each metric, in their order.
    Row,
    /// Rows of a name, which is the metric's source, and a value.
    Named,
    /// The text of `SHOW ENGINE INNODB STATUS`: see `innodb::checkpoint_age`.
    InnodbStatus,
    /// Any number of rows; the source is the name of a column, whose values are added up.
    SumOfColumns,
    /// Any number of rows; the source is the name of a column, whose largest value counts.
    MostOfColumns,
    /// Any number of rows with whole seconds in `maxwait` and the rest in `maxwait_us`; the longest counts.
    LongestWait,
    /// The reply to MongoDB's `replSetGetStatus` as names and values: how far the last secondary is behind the primary,
    /// in microseconds.
    ReplicaSetStatus,
}

/// A metric in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The metric's name.
    pub metric: &'static str,
    /// The server's name for the value.
    pub source: &'static str,
    /// Factor from the server's value to the metric's.
    pub scale: u64,
    /// Subtracted from it: our own connection.
    pub less: u64,
    /// Our own part of the server's count.
    pub own: OwnPart,
}

/// What the server's count includes of the work that it does for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnPart {
    /// Nothing.
    None,
    /// Every statement that was executed.
    Statements,
    /// Every statement, and every one that was prepared: a transaction each.
    Transactions,
    /// Every question about waits.
    Waits,
    /// The buffers that our questions read, as the server's plans tell.
    Buffers,
    /// The execution time of our statements, unless `ServerQuestions::unwatch_sql` was permitted.
    Watched,
}

impl Shape {
    /// Whether it is read by the names of columns, which answers to prepared statements do not have.
    pub fn has_names(self) -> bool {
        matches!(self, Shape::SumOfColumns | Shape::MostOfColumns | Shape::LongestWait)
    }
}

impl Asked {
    /// Unchanged.
    pub const fn of(metric: &'static str, source: &'static str) -> Asked {
        Asked { metric, source, scale: 1, less: 0, own: OwnPart::None }
    }

    /// With our own part.
    pub const fn with(self, own: OwnPart) -> Asked {
        Asked { own, ..self }
    }

    fn scaled(&self, value: u64) -> u64 {
        value.saturating_mul(self.scale).saturating_sub(self.less)
    }

    fn value(&self, cell: Cell<'_>) -> Option<u64> {
        Some(self.scaled(number(cell)?))
    }
}

impl Question {
    /// Asked with every sample.
    pub fn new(sql: String, shape: Shape, asked: Vec<Asked>) -> Question {
        let (at_ends, late, uncounted, of_some) = Default::default();
        Question { sql, shape, asked, at_ends, late, uncounted, of_some, condition: None, own_ids_sql: "" }
    }

    /// The values in an answer, by metric. NULLs, missing values and texts are omitted.
    pub fn read(&self, rows: &Rows) -> Vec<(Asked, u64)> {
        match self.shape {
            Shape::Row => self.in_row(rows),
            Shape::Named => self.by_name(rows),
            Shape::InnodbStatus => {
                let text = match rows.cell(0, 0, rows.columns(0).saturating_sub(1)) {
                    Some(Cell::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                    _ => return Vec::new(),
                };
                let age = checkpoint_age(&text);
                self.asked.iter().copied().zip(age).collect()
            }
            Shape::SumOfColumns => self.over_rows(rows, u64::saturating_add),
            Shape::MostOfColumns => self.over_rows(rows, u64::max),
            Shape::LongestWait => {
                let Some((seconds, us)) = column(rows, "maxwait").zip(column(rows, "maxwait_us")) else {
                    return Vec::new();
                };
                let waits = (0..rows.len(0)).filter_map(|row| {
                    let seconds = number(rows.cell(0, row, seconds)?)?;
                    Some(seconds.saturating_mul(1_000_000).saturating_add(number(rows.cell(0, row, us)?)?))
                });
                self.asked.iter().copied().zip(waits.max()).collect()
            }
            Shape::ReplicaSetStatus => self.asked.iter().copied().zip(lag_us(rows)).collect(),
        }
    }

    /// One value for each column.
    fn over_rows(&self, rows: &Rows, both: fn(u64, u64) -> u64) -> Vec<(Asked, u64)> {
        let one = |asked: &Asked| {
            let column = column(rows, asked.source)?;
            let values = (0..rows.len(0)).filter_map(|row| number(rows.cell(0, row, column)?));
            values.reduce(both).map(|value| (*asked, asked.scaled(value)))
        };
        self.asked.iter().filter_map(one).collect()
    }

    fn in_row(&self, rows: &Rows) -> Vec<(Asked, u64)> {
        let values = self.asked.iter().enumerate();
        values.filter_map(|(column, asked)| Some((*asked, asked.value(rows.cell(0, 0, column)?)?))).collect()
    }

    fn by_name(&self, rows: &Rows) -> Vec<(Asked, u64)> {
        let mut found = Vec::new();
        for row in 0..rows.len(0) {
            let Some(Cell::Text(name)) = rows.cell(0, row, 0) else { continue };
            let Some(value) = rows.cell(0, row, 1) else { continue };
            // A name may have several metrics.
            let asked = self.asked.iter().filter(|asked| asked.source.as_bytes().eq_ignore_ascii_case(name));
            found.extend(asked.filter_map(|asked| Some((*asked, asked.value(value)?))));
        }
        found
    }
}

/// The column of this name.
fn column(rows: &Rows, name: &str) -> Option<usize> {
    (0..rows.columns(0)).find(|column| rows.label(0, *column) == Some(name.as_bytes()))
}

/// Buffers that a statement read, in the text of its `EXPLAIN (ANALYZE, BUFFERS)`.
pub fn buffers_read(plan: &str) -> u64 {
    // Those of the first step include the steps below it. Planning has its own, after the plan.
    let steps = plan.lines().map(str::trim).take_while(|line| *line != "Planning:");
    let buffers = steps.into_iter().find_map(|line| line.strip_prefix("Buffers: "));
    let shared = buffers.and_then(|line| line.split(", ").find_map(|part| part.strip_prefix("shared ")));
    let counts = shared.into_iter().flat_map(str::split_whitespace).filter_map(|word| word.split_once('='));
    let read = counts.filter(|(name, _)| matches!(*name, "hit" | "read"));
    read.filter_map(|(_, count)| count.parse::<u64>().ok()).sum()
}

/// Servers return numbers in many forms, for example sums as decimals with a fraction.
fn number(cell: Cell<'_>) -> Option<u64> {
    match cell {
        Cell::Null => None,
        Cell::Int(value) => Some(u64::try_from(value).unwrap_or(0)),
        Cell::Double(value) => value.is_finite().then_some(value.max(0.0) as u64),
        Cell::Text(text) => {
            let text = std::str::from_utf8(text).ok()?.trim();
            let whole = text.split('.').next().unwrap_or_default();
            match whole.strip_prefix('-') {
                Some(_) => Some(0),
                None => whole.parse().ok(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: usize, cells: &[Option<&str>]) -> Rows {
        let mut rows = Rows::default();
        rows.begin_set(columns);
        for cell in cells {
            match cell {
                Some(text) => rows.push_text(text.as_bytes()).unwrap(),
                None => rows.push_null(),
            }
        }
        rows
    }

    fn question(shape: Shape, asked: &[Asked]) -> Question {
        Question::new(String::new(), shape, asked.to_vec())
    }

    #[test]
    fn values_of_a_row_are_read_by_place_and_what_is_null_is_left_out() {
        let asked = ["commits", "log_bytes", "deadlocks", "purge_lag"].map(|name| Asked::of(name, ""));
        let found = question(Shape::Row, &asked).read(&rows(4, &[Some("12"), None, Some("3.5"), Some("-7")]));
        let found: Vec<_> = found.iter().map(|(asked, value)| (asked.metric, *value)).collect();
        assert_eq!(found, [("commits", 12), ("deadlocks", 3), ("purge_lag", 0)]);
    }

    #[test]
    fn the_buffers_of_a_plan_are_those_of_its_first_step() {
        let plan = "Aggregate (actual rows=1 loops=1)\n  Buffers: shared hit=36 read=2 dirtied=1, temp read=9\n\
                    \x20 ->  Seq Scan on pg_class (actual rows=3 loops=1)\n        Buffers: shared hit=30\n\
                    Planning:\n  Buffers: shared hit=7\n";
        assert_eq!(buffers_read(plan), 38);
        assert_eq!(buffers_read("Result\nPlanning:\n  Buffers: shared hit=7\n"), 0);
        assert_eq!(buffers_read("Result\n  Buffers: temp read=3\nExecution Time: 1 ms"), 0);
    }

    #[test]
    fn columns_of_a_pooler_are_found_by_name_and_summed() {
        let mut rows = Rows::default();
        rows.begin_set(4);
        ["database", "cl_active", "maxwait", "maxwait_us"].iter().for_each(|name| rows.push_label(name.as_bytes()));
        for cell in ["app", "7", "0", "900", "pgbouncer", "1", "2", "5"] {
            rows.push_text(cell.as_bytes()).unwrap();
        }
        let asked = [
            Asked { less: 1, ..Asked::of("pooler_clients_active", "cl_active") },
            Asked::of("pooler_clients_waiting", "cl_waiting"),
        ];
        let value = |found: Vec<(Asked, u64)>| found.into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(value(question(Shape::SumOfColumns, &asked).read(&rows)), [7]);
        assert_eq!(value(question(Shape::MostOfColumns, &asked).read(&rows)), [6]);
        let asked = [Asked::of("pooler_wait_max_us", "")];
        assert_eq!(value(question(Shape::LongestWait, &asked).read(&rows)), [2_000_005]);
    }

    #[test]
    fn values_of_names_are_scaled_and_ourselves_are_not_counted() {
        let asked = [
            Asked { scale: 1000, ..Asked::of("lock_wait_us", "Innodb_row_lock_time") },
            Asked { less: 1, ..Asked::of("active_sessions", "Threads_running") },
        ];
        let answer = rows(2, &[Some("Threads_running"), Some("5"), Some("INNODB_ROW_LOCK_TIME"), Some("7")]);
        let found = question(Shape::Named, &asked).read(&answer);
        let found: Vec<_> = found.iter().map(|(asked, value)| (asked.metric, *value)).collect();
        assert_eq!(found, [("active_sessions", 4), ("lock_wait_us", 7000)]);
    }
}
