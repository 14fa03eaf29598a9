//! Tables of statements compared by `assay sql`.

use crate::digits::with_interval;
use crate::findings::cases::{CaseFindings, CasesFindings};
use crate::findings::plans::{CasePlans, CellPlans};
use crate::plain::clean;
use crate::tables::experiment::contrast_words;
use crate::tables::suites::{has_foreign, has_reads, pushed_down, pushed_down_column, reads, reads_columns};
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};

/// A row per case: times, ratio, rows.
pub(crate) fn cases(found: &CasesFindings) -> Table {
    let base = found.base.as_ref().map_or(String::new(), |base| clean(base, NAME_WIDTH));
    let several = found.cases.len() > 1;
    let mut columns = vec![
        TableColumn::words("case", NAME_WIDTH),
        TableColumn::figures("runs").from(90),
        TableColumn::figures("median ms"),
        TableColumn::figures("min"),
        TableColumn::figures("max"),
    ];
    columns.extend(several.then(|| TableColumn::figures(format!("ratio to {base}"))));
    columns.push(TableColumn::figures("rows"));
    let has_foreign = has_foreign(found);
    columns.extend(has_foreign.then(pushed_down_column));
    let has_reads = has_reads(found);
    columns.extend(has_reads.then(reads_columns).into_iter().flatten());
    columns.push(TableColumn::words("", 40));
    let row = |case: &CaseFindings| {
        let mut cells = vec![TableCell::foreign(&case.name), TableCell::Count(case.runs), median(case)];
        cells.extend([TableCell::ns(case.min_ns), TableCell::ns(case.max_ns)]);
        cells.extend(several.then(|| match &case.ratio {
            Some(ratio) => TableCell::words(contrast_words(&ratio.found, "runs")),
            None => TableCell::Blank,
        }));
        cells.push(TableCell::of(case.rows, TableCell::Count));
        cells.extend(has_foreign.then(|| pushed_down(case)));
        cells.extend(has_reads.then(|| reads(case)).into_iter().flatten());
        cells.push(TableCell::words(remark(case, found)));
        cells
    };
    Table::new(columns).with_rows(found.cases.iter().map(row))
}

fn median(case: &CaseFindings) -> TableCell {
    match (case.median_ns, case.low_ns, case.high_ns) {
        (Some(median), Some(low), Some(high)) => TableCell::words(with_interval(median / 1e6, low / 1e6, high / 1e6)),
        (median, ..) => TableCell::of(median, TableCell::Ms),
    }
}

fn remark(case: &CaseFindings, found: &CasesFindings) -> String {
    let words = if case.failure.is_some() {
        "failed"
    } else if case.result_changed {
        "rows changed"
    } else if case.plans.len() > 1 {
        "plan changed"
    } else if found.fastest.as_ref() == Some(&case.name) && found.cases.len() > 1 {
        "fastest"
    } else {
        return match &found.fastest_candidates[..] {
            [lowest, rival] if *lowest == case.name => {
                format!("not told apart from {}", clean(rival, NAME_WIDTH))
            }
            [lowest, rivals @ ..] if *lowest == case.name => format!("not told apart from {} others", rivals.len()),
            _ => String::new(),
        };
    };
    words.to_owned()
}

/// A row per counter that increased in any case, a column per case; `None` if there is none.
pub(crate) fn counters(found: &CasesFindings) -> Option<Table> {
    let mut names: Vec<&String> = found.cases.iter().flat_map(|case| case.counters.keys()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let heads = found.cases.iter().map(|case| TableColumn::figures(clean(&case.name, NAME_WIDTH)));
    let table = Table::new([TableColumn::words("counter", 40)].into_iter().chain(heads));
    let row = |name: &&String| {
        let cell =
            |case: &CaseFindings| TableCell::of(case.counters.get(*name), |value| TableCell::Number(*value as f64));
        [TableCell::foreign(name)].into_iter().chain(found.cases.iter().map(cell)).collect::<Vec<_>>()
    };
    Some(table.with_rows(names.iter().map(row)).with_caption("Counters, per execution"))
}

/// The same of the trials of an experiment: a table per cell.
pub(crate) fn counters_of_cells(all: &[CellPlans]) -> Vec<Table> {
    let of_cell = |cell: &CellPlans| {
        let mut names: Vec<&String> = cell.cases.iter().flat_map(|case| case.counters.keys()).collect();
        names.sort();
        names.dedup();
        let heads = cell.cases.iter().map(|case| TableColumn::figures(clean(&case.name, NAME_WIDTH)));
        let table = Table::new([TableColumn::words("counter", 40)].into_iter().chain(heads));
        let row = |name: &&String| {
            let value = |case: &CasePlans| TableCell::Number(case.counters.get(*name).copied().unwrap_or(0.0));
            [TableCell::foreign(name)].into_iter().chain(cell.cases.iter().map(value)).collect::<Vec<_>>()
        };
        let place = if cell.place.is_empty() { String::new() } else { format!(", {}", clean(&cell.place, NAME_WIDTH)) };
        let caption = format!("Server counters per execution, median of the trials{place}");
        (!names.is_empty()).then(|| table.with_rows(names.iter().map(row)).with_caption(caption))
    };
    all.iter().filter_map(of_cell).collect()
}
