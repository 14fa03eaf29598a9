//! What may stand only in certain places: reading a clock, printing, exiting, naming a database.
//!
//! These are invariants of ARCHITECTURE.md that no type can hold. Tests may do what they like.

use super::File;

/// Text of code, the only places it may stand in, and where it belongs.
const PLACES: [(&[&str], &[&str], &str); 3] = [
    (
        &["Instant::now", "SystemTime::now"],
        // Assay-machine has no database on its path, and threads of its own.
        &["crates/assay-io/", "crates/assay-machine/", "crates/assay/"],
        "only assay-io reads a clock; machines are told `now`",
    ),
    (
        &["println!", "print!(", "eprint!(", "dbg!(", "process::exit", "stdout()", "stderr()"],
        &["crates/assay/"],
        "only the binary prints and exits",
    ),
    (
        &["postgres::DRIVER", "mysql::DRIVER", "assay_sqlite::"],
        &["crates/assay/src/registry.rs"],
        "databases are named in the registry and nowhere else",
    ),
];

pub(super) fn complaints(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| is_product(&file.path)).flat_map(of_file).collect()
}

/// Sources that end up in the program.
fn is_product(path: &str) -> bool {
    let source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    source && !path.starts_with("crates/testkit/") && !path.ends_with("/tests.rs") && !path.contains("/tests/")
}

fn of_file(file: &File) -> Vec<String> {
    let product = file.text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut complaints = Vec::new();
    for (number, line) in product.lines().enumerate() {
        for (texts, places, reason) in PLACES {
            let found = !line.trim_start().starts_with("//") && texts.iter().any(|text| line.contains(text));
            if found && !places.iter().any(|place| file.path.starts_with(place)) {
                complaints.push(format!("{}:{}: {reason}", file.path, number + 1));
            }
        }
    }
    complaints
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
        check("crates/assay/src/run.rs", "mysql::DRIVER", &[&format!("crates/assay/src/run.rs:1: {}", reason(2))]);
        check("crates/assay/src/registry.rs", "mysql::DRIVER", &[]);
        check("crates/assay-engine/src/run.rs", "// println! is for others\n#[cfg(test)]\nprintln!()", &[]);
        check("crates/assay-engine/tests/a.rs", "println!()", &[]);
    }
}
