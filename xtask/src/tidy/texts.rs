//! What the text of every file must and must not contain.

use super::file::File;

/// Paths on the machines of the authors, which readers do not have.
const PRIVATE_PLACES: [&str; 2] = [concat!("../", "shared"), concat!("/wo", "rk/")];

/// British spellings. The project uses American ones, like the databases; an alias may keep a British one.
const BRITISH: [&str; 8] = [
    concat!("col", "our"),
    concat!("behavi", "our"),
    concat!("cata", "logue"),
    concat!("lic", "ence"),
    concat!("initial", "is"),
    concat!("synchron", "is"),
    concat!("neighb", "our"),
    concat!("fav", "our"),
];

pub(super) fn complaints(files: &[File]) -> Vec<String> {
    files.iter().flat_map(|file| head(file).into_iter().chain(lines(file))).collect()
}

/// A file starts with its purpose.
fn head(file: &File) -> Option<String> {
    let (mark, what) = match file.path.as_str() {
        path if path.ends_with(".rs") => ("//!", "`//!`: what the file is for, how it fits, what it refuses to do"),
        path if path.starts_with("workloads/") && path.ends_with(".lua") => ("---", "`---`: what the workload is"),
        _ => return None,
    };
    (!file.text.starts_with(mark)).then(|| format!("{}:1: does not begin with {what}", file.path))
}

fn lines(file: &File) -> Vec<String> {
    let rust = file.path.ends_with(".rs");
    let mut in_tests = rust && file.path.contains("/tests/");
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let mut complain = |what: &str| complaints.push(format!("{}:{}: {what}", file.path, number + 1));
        if PRIVATE_PLACES.iter().any(|place| line.contains(place)) {
            complain("names a place outside the project");
        }
        let lower = line.to_lowercase();
        if let Some(word) = BRITISH.iter().find(|word| lower.contains(**word) && !line.contains("alias = ")) {
            complain(&format!("British spelling: {word}"));
        }
        if !rust {
            continue;
        }
        let code = line.trim_start();
        // Unit tests are at the end of a file.
        in_tests |= code.starts_with("#[cfg(test)]");
        if code.starts_with("#[ignore") {
            complain("a test that is not run proves nothing; without its server it says so: testkit's Kind::present");
        }
        if in_tests && !code.starts_with("//") && code.contains(concat!("thread::", "sleep")) {
            complain("a test that sleeps is slow or flaky; wait for the event, or use virtual time");
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = complaints(&[File { path: path.to_owned(), text: text.to_owned() }]);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (complaint, part) in found.iter().zip(expected) {
            assert!(complaint.contains(part), "{complaint:?} lacks {part:?}");
        }
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        check("crates/x/src/lib.rs", "//! Head.\n", &[]);
        check("crates/x/src/lib.rs", "use std::fs;\n", &["lib.rs:1: does not begin with `//!`"]);
        check("workloads/x.lua", "local x = 1\n", &["x.lua:1: does not begin with `---`"]);
        check("crates/x/tests/data/x.lua", "local x = 1\n", &[]);
    }

    #[test]
    fn a_test_that_proves_nothing_is_found() {
        let ignored = ["//! Head.\n#[", "ignore]\nfn never() {}\n"].concat();
        check("crates/x/tests/x.rs", &ignored, &["x.rs:2: a test that is not run"]);
        let sleeps = concat!("//! Head.\nfn f() { std::thread::", "sleep(d) }\n");
        check("crates/x/tests/x.rs", sleeps, &["x.rs:2: a test that sleeps"]);
        check("crates/x/src/x.rs", sleeps, &[]);
        let unit = concat!("//! Head.\n#[cfg(test)]\nmod tests { fn f() { std::thread::", "sleep(d) } }\n");
        check("crates/x/src/x.rs", unit, &["x.rs:3: a test that sleeps"]);
    }

    #[test]
    fn a_british_spelling_is_found() {
        check("docs/x.md", &format!("Its {} is red.", BRITISH[0]), &["x.md:1: British spelling"]);
        check("docs/x.md", &format!("alias = {:?}", BRITISH[0]), &[]);
    }

    #[test]
    fn a_private_place_is_found() {
        check("docs/x.md", &format!("see {}/x", PRIVATE_PLACES[0]), &["x.md:1: names a place"]);
        check("docs/x.md", &format!("see {}x", PRIVATE_PLACES[1]), &["x.md:1: names a place"]);
        check("docs/x.md", "see docs/y.md for how workers work/rest", &[]);
    }
}
