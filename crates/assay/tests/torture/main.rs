//! The torture matrix: every load meets every fault, and nothing may be lost.
//!
//! Each cell is a run of the binary against a real server behind a `testkit::Proxy`. After some transactions were
//! reported, something goes wrong; then it is put right again, or it is not. Whatever it was, the run must end in time
//! with the right exit code, account for every transaction that was due, and agree with the table that it wrote: each
//! transaction inserts a row with a key of its own, and the journal lists the keys of those that were reported as done.
//!
//! Every fault and every load occurs at least once per protocol; with `ASSAY_TEST_MATRIX` in all combinations on each
//! product, and the table of what every cell showed goes to stderr.

mod cell;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the other whole-command tests: each uses what it needs")]
mod common;
mod harms;
mod loads;

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use testkit::{Kind, Mounted, Server, refused};

use cell::{Cell, Showed};
use harms::Harm;
use loads::Load;

#[test]
fn nothing_is_lost_on_postgres() {
    torture(Kind::Postgres);
}

#[test]
fn nothing_is_lost_on_mariadb() {
    torture(Kind::MariaDb);
}

#[test]
fn nothing_is_lost_on_mysql() {
    torture(Kind::MySql);
}

/// Cells on the shared server at a time.
const AT_ONCE: usize = 3;

/// Runs the cells of a product, and fails if one of them did.
fn torture(kind: Kind) {
    if !kind.present() {
        return;
    }
    let is_whole = std::env::var_os("ASSAY_TEST_MATRIX").is_some();
    // Made here, on the test's own thread, so that the line about its absence has the test's name.
    let disk = Mounted::new(&["-t", "tmpfs", "-o", "size=400M", "tmpfs"]);
    let (cells, left_out): (Vec<Cell>, Vec<Cell>) =
        chosen(kind, is_whole).into_iter().partition(|cell| disk.is_some() || !cell.harm.needs_own_disk());
    for cell in left_out {
        refused(&format!("{cell}: needs a disk of its own"));
    }
    let (own, shared): (Vec<Cell>, Vec<Cell>) = cells.into_iter().partition(|cell| cell.harm.needs_own_server());
    let (own, shared) = (Mutex::new(own.into_iter()), Mutex::new(shared.into_iter()));
    let results = Mutex::new(Vec::new());
    let work_off = |cells: &Mutex<std::vec::IntoIter<Cell>>, server: &Server, disk: Option<&Mounted>| {
        loop {
            let Some(cell) = cells.lock().unwrap().next() else { return };
            let started = Instant::now();
            let showed = catch_unwind(AssertUnwindSafe(|| cell.run(server, disk)));
            let showed = showed.map_err(|panic| {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
            });
            results.lock().unwrap().push((cell, showed, started.elapsed().as_secs_f64()));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| work_off(&shared, kind.shared(), None));
        }
        scope.spawn(|| {
            let server = harms::own_server(kind, disk.as_ref());
            work_off(&own, &server, disk.as_ref());
        });
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(cell, ..)| *cell);
    let table = table(kind, &results);
    if is_whole {
        // Past the test harness, which hides the output of passing tests.
        let _ = std::io::stderr().write_all(table.as_bytes());
    } else {
        println!("{table}");
    }
    let failures = results.iter().filter_map(|(cell, showed, _)| Some(format!("{cell}: {}", showed.as_ref().err()?)));
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{} cells failed on {}:\n{}", failures.len(), kind.name(), failures.join("\n\n"));
}

/// All cells, or each harm with one load, such that every load occurs; the products differ in which. MariaDB and MySQL
/// have a protocol in common, so they share the harms then. `ASSAY_TORTURE`: those with this in their names.
fn chosen(kind: Kind, is_whole: bool) -> Vec<Cell> {
    let named = std::env::var("ASSAY_TORTURE").unwrap_or_default();
    let loads = Load::ALL.len();
    let is_chosen = |i: usize, j: usize| match kind {
        _ if is_whole => true,
        Kind::MariaDb if i.is_multiple_of(2) => false,
        Kind::MySql if i % 2 == 1 => false,
        _ => (i + kind as usize) % loads == j,
    };
    let harms = Harm::ALL.into_iter().enumerate();
    let all =
        harms.flat_map(|(i, harm)| Load::ALL.into_iter().enumerate().map(move |(j, load)| (i, j, Cell { harm, load })));
    let chosen = all.filter(|(i, j, cell)| is_chosen(*i, *j) && cell.to_string().contains(&named));
    chosen.map(|(_, _, cell)| cell).collect()
}

/// What every cell showed.
fn table(kind: Kind, results: &[(Cell, Result<Showed, String>, f64)]) -> String {
    let mut text = format!("torture of {}: {} cells\n{}\n", kind.name(), results.len(), Showed::HEAD);
    for (cell, showed, seconds) in results {
        let showed = showed.as_ref().map_or_else(|_| "FAILED".to_owned(), ToString::to_string);
        let _ = writeln!(text, "{:<26} {:<13} {showed} {seconds:>5.1}", cell.harm.name(), cell.load.name());
    }
    text
}
