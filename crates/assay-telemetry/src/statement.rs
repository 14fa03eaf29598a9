//! What a server reports about a single statement: its plan, and the counters that it increased.

use assay_seam::{Cell, Rows};

use crate::literals::plan_without_literals;

/// Questions about statements.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementQuestions {
    /// Prefix of a statement to get its plan as text. `None`: not supported.
    pub explain: Option<&'static str>,
    /// Prefix of a statement to get its plan as JSON.
    pub explain_json: Option<&'static str>,
    /// Prefix of a statement to get the plan that says which parts other servers execute. `None`: there are none.
    pub explain_remote: Option<&'static str>,
    /// Asked one after the other; the last one returns rows of a counter and its value. Empty: not supported.
    pub counters: &'static [&'static str],
    /// Whether these counters belong to the session alone; otherwise other sessions' work is included.
    pub of_session: bool,
    /// Why there are no counters.
    pub no_counters: &'static str,
    /// The statement after which the server cancels statements of this session that take longer than so many
    /// milliseconds. `None`: it cannot.
    pub time_limit: Option<fn(u64) -> String>,
}

/// A plan as returned by a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanRead {
    /// As text, one line per step.
    pub text: String,
    /// The plan without estimates, which change even if the plan does not.
    pub shape: String,
}

impl PlanRead {
    /// Without the values in its conditions.
    pub fn without_literals(self) -> PlanRead {
        PlanRead { text: plan_without_literals(&self.text), shape: plan_without_literals(&self.shape) }
    }
}

/// Parses the answer to `StatementQuestions::explain`. Its columns identify the product.
pub fn read_plan(rows: &Rows) -> PlanRead {
    let cell = |row, column| rows.cell(0, row, column).map_or(String::new(), shown);
    let (mut text, mut shape) = (Vec::new(), Vec::new());
    // SQLite: the parent of a step.
    let mut above: Vec<String> = Vec::new();
    for row in 0..rows.len(0) {
        match rows.columns(0) {
            1 => {
                let line = cell(row, 0);
                shape.push(line.split_once("  (cost=").map_or(line.as_str(), |(shape, _)| shape).trim_end().to_owned());
                text.push(line);
            }
            4 => {
                let (id, parent) = (cell(row, 0), cell(row, 1));
                while above.last().is_some_and(|last| *last != parent) {
                    above.pop();
                }
                let line = format!("{}{}", "  ".repeat(above.len()), cell(row, 3));
                above.push(id);
                shape.push(line.clone());
                text.push(line);
            }
            columns => {
                let names: &[&str] = if columns == MYSQL.len() { &MYSQL } else { &MARIADB };
                let step = |keep: &dyn Fn(&str) -> bool| {
                    let known = names.iter().enumerate().map(|(at, name)| (*name, cell(row, at)));
                    let said = known.filter(|(name, value)| keep(name) && !value.is_empty());
                    said.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
                };
                text.push(step(&|_| true));
                shape.push(step(&|name| name != "rows" && name != "filtered"));
            }
        }
    }
    PlanRead { text: text.join("\n"), shape: shape.join("\n") }
}

const MARIADB: [&str; 10] =
    ["id", "select_type", "table", "type", "possible_keys", "key", "key_len", "ref", "rows", "Extra"];
const MYSQL: [&str; 12] = [
    "id",
    "select_type",
    "table",
    "partitions",
    "type",
    "possible_keys",
    "key",
    "key_len",
    "ref",
    "rows",
    "filtered",
    "Extra",
];

/// Whether another server executes the whole statement: its plan, the answer to `StatementQuestions::explain_remote`,
/// is a single foreign scan, and nothing is filtered, joined, grouped or sorted here. Expressions of its output may be
/// calculated here. `None`: no part of it is executed elsewhere.
pub fn is_pushed_down(rows: &Rows) -> Option<bool> {
    let line = |row| rows.cell(0, row, 0).map_or(String::new(), shown);
    let lines: Vec<String> = (0..rows.len(0)).map(line).collect();
    let is_foreign = |line: &String| line.trim_start_matches([' ', '-', '>']).starts_with(FOREIGN_SCAN);
    let is_local = |line: &String| {
        let line = line.trim_start();
        ["->", "Filter:", "InitPlan", "SubPlan", "CTE"].iter().any(|start| line.starts_with(start))
    };
    let is_some = lines.iter().any(|line| is_foreign(line) || line.contains("Async Foreign Scan"));
    is_some.then(|| lines.first().is_some_and(is_foreign) && !lines.iter().any(is_local))
}

const FOREIGN_SCAN: &str = "Foreign Scan";

/// NULL is omitted.
fn shown(cell: Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Cell::Int(number) => number.to_string(),
        Cell::Double(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&[&str]]) -> Rows {
        let mut rows = Rows::default();
        rows.begin_set(cells[0].len());
        cells.iter().flat_map(|row| row.iter()).for_each(|cell| match *cell {
            "NULL" => rows.push_null(),
            cell => rows.push_text(cell.as_bytes()).unwrap(),
        });
        rows
    }

    #[test]
    fn a_statement_is_pushed_down_if_nothing_is_done_here() {
        let of = |lines: &[&str]| is_pushed_down(&rows(&lines.iter().map(std::slice::from_ref).collect::<Vec<_>>()));
        let sql = "  Remote SQL: SELECT a FROM t -> b";
        assert_eq!(of(&["Foreign Scan", "  Output: (count(*))", "  Relations: Aggregate on (t)", sql]), Some(true));
        assert_eq!(of(&["Foreign Scan on public.t", "  Output: a", "  Filter: (t.a > 1)", sql]), Some(false));
        assert_eq!(of(&["Sort", "  Sort Key: a", "  ->  Foreign Scan on public.t", sql]), Some(false));
        assert_eq!(of(&["Append", "  ->  Async Foreign Scan on public.t"]), Some(false));
        assert_eq!(of(&["Foreign Scan on public.t", "  InitPlan 1 (returns $0)", "    ->  Result", sql]), Some(false));
        assert_eq!(of(&["Seq Scan on public.t", "  Filter: (t.a = 'Foreign Scan'::text)"]), None);
    }

    #[test]
    fn estimates_are_no_part_of_a_plans_shape() {
        let plan = read_plan(&rows(&[
            &["Sort  (cost=1.00..2.00 rows=3 width=4)"],
            &["  ->  Seq Scan on t  (cost=0.00..35.50 rows=2550 width=4)"],
            &["        Filter: (id = 1)"],
        ]));
        assert_eq!(plan.shape, "Sort\n  ->  Seq Scan on t\n        Filter: (id = 1)");
        let line = ["1", "SIMPLE", "t", "ref", "a", "a", "4", "const", "17", "NULL"];
        let plan = read_plan(&rows(&[&line]));
        let start = "id=1 select_type=SIMPLE table=t type=ref possible_keys=a key=a key_len=4 ref=const";
        assert_eq!((plan.text, plan.shape), (format!("{start} rows=17"), start.to_owned()));
        let tree = [["2", "0", "0", "SCAN a"], ["5", "0", "0", "LIST"], ["7", "5", "0", "SEARCH b"]];
        let plan = read_plan(&rows(&[&tree[0], &tree[1], &tree[2]]));
        assert_eq!(plan.text, "SCAN a\nLIST\n  SEARCH b");
    }
}
