//! Things allowed only in certain places: reading a clock, printing, exiting, naming a database, writing a file.
//!
//! These are invariants of ARCHITECTURE.md that no type can enforce. Tests are exempt.

use super::file::File;

/// Text in code, the only places where it may occur, and where it belongs.
const PLACES: [(&[&str], &[&str], &str); 5] = [
    (
        &["Instant::now", "SystemTime::now"],
        // assay-machine measures without a database, in its own threads. assay-lab starts servers before a trial, and
        // waits for them.
        &[
            "crates/assay-io/",
            "crates/assay-experiment/",
            "crates/assay-machine/",
            "crates/assay-fleet/",
            "crates/assay-lab/src/wait.rs",
            "crates/assay-process/",
            "crates/assay-run/",
            "crates/assay/",
        ],
        "only assay-io reads a clock; machines are told `now`",
    ),
    (
        &["println!", "print!(", "eprint!(", "dbg!(", "stdout()", "stderr()"],
        &["crates/assay-process/"],
        "only assay-process prints",
    ),
    (&["process::exit"], &["crates/assay/"], "only the binary exits"),
    (
        &["clickhouse::DRIVER", "postgres::DRIVER", "mysql::DRIVER", "mongodb::DRIVER", "assay_sqlite::"],
        &["crates/assay-products/"],
        "databases are named in assay-products and nowhere else",
    ),
    (
        &["fs::write(", "File::create("],
        &[
            "crates/assay-process/src/files.rs",
            // Streams, which grow during a run.
            "crates/assay-run/src/journal.rs",
            "crates/assay/src/commands/pgbench.rs",
            "crates/assay-experiment/src/trial.rs",
            // Temporary files.
            "crates/assay-run/src/fleet/parcel.rs",
            "crates/assay-experiment/src/folder.rs",
            // Files of the kernel, of servers, and records, which are written in the same way.
            "crates/assay-run/src/lab.rs",
            "crates/assay-lab/",
            "crates/assay-postgres/src/server/",
            "crates/assay-record/",
        ],
        "files of results are written by files.rs, which leaves them complete or not at all",
    ),
];

pub(super) fn complaints(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| is_product(&file.path)).flat_map(of_file).collect()
}

/// Sources that become part of the program.
fn is_product(path: &str) -> bool {
    let source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let helper = ["crates/measured-path/", "crates/testkit/"].iter().any(|folder| path.starts_with(folder));
    source && !helper && !path.ends_with("/tests.rs") && !path.contains("/tests/")
}

fn of_file(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in product_lines(file) {
        for (texts, places, reason) in PLACES {
            let found = texts.iter().any(|text| line.contains(text));
            if found && !places.iter().any(|place| file.path.starts_with(place)) {
                complaints.push(format!("{}:{number}: {reason}", file.path));
            }
        }
    }
    complaints
}

/// The lines of a source that become part of the program, with their numbers, without comments.
pub(super) fn product_lines(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let comment = if file.path.ends_with(".lua") { "--" } else { "//" };
    let product = if is_product(&file.path) || file.path.ends_with(".lua") { &*file.text } else { "" };
    let lines: Vec<&str> = product.lines().collect();
    // Tests are at the end of a file; those in a file of their own are declared anywhere.
    let elsewhere = |at: usize| lines.get(at + 1).is_some_and(|next| next.ends_with(';'));
    let tests = (0..lines.len()).find(|at| lines[*at].trim() == "#[cfg(test)]" && !elsewhere(*at));
    let end = tests.unwrap_or(lines.len());
    (1..).zip(lines.into_iter().take(end)).filter(move |(_, line)| !line.trim_start().starts_with(comment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(complaints(&[File { path: path.to_owned(), text: text.to_owned() }]), expected);
    }

    #[test]
    fn clocks_output_and_databases_are_found_outside_their_places() {
        let reason = |number: usize| PLACES[number].2;
        check("crates/assay-io/src/clock.rs", "Instant::now()", &[]);
        check(
            "crates/assay-engine/src/run.rs",
            "\nInstant::now()",
            &[&format!("crates/assay-engine/src/run.rs:2: {}", reason(0))],
        );
        check(
            "crates/assay-wire/src/a.rs",
            "eprintln!(\"x\")",
            &[&format!("crates/assay-wire/src/a.rs:1: {}", reason(1))],
        );
        check("crates/assay/src/run.rs", "mysql::DRIVER", &[&format!("crates/assay/src/run.rs:1: {}", reason(3))]);
        check("crates/assay-products/src/lib.rs", "mysql::DRIVER", &[]);
        check("crates/assay/src/a.rs", "std::fs::write(x, y)", &[&format!("crates/assay/src/a.rs:1: {}", reason(4))]);
        check("crates/assay/src/a.rs", "files::write(x, y)", &[]);
        check("crates/assay-engine/src/run.rs", "// println! is for others\n#[cfg(test)]\nprintln!()", &[]);
        check("crates/assay-engine/tests/a.rs", "println!()", &[]);
    }
}
