//! Tests that cannot run here. Each says so aloud, with its reason, or fails where tests must be complete.
//!
//! `ASSAY_TEST_STRICT=1`, or `CI`: every skipped test fails. `ASSAY_TEST_STRICT=installed`: only those fail that lack
//! something that can be installed; what this user or the kernel does not allow is skipped aloud. All functions here
//! return whether the test can go on, so that a test reads `if !root("huge pages") { return; }`; `cargo xtask tidy`
//! finds tests that return early without one of them.

use std::io::Write;
use std::path::Path;

/// Which skipped tests are failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strict {
    No,
    Installed,
    All,
}

fn strict(variable: Option<&str>, ci: bool) -> Strict {
    match variable {
        Some("installed") => Strict::Installed,
        None | Some("") if !ci => Strict::No,
        _ => Strict::All,
    }
}

fn strict_here() -> Strict {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    strict(variable("ASSAY_TEST_STRICT").as_deref(), variable("CI").is_some())
}

/// Something that a test needs is not installed. Always false.
#[track_caller]
pub fn absent(why: &str) -> bool {
    assert!(strict_here() == Strict::No, "{why}");
    aloud(&format!("SKIPPED ALOUD: {why}"));
    false
}

/// This user or the kernel does not allow what a test needs. Always false.
#[track_caller]
pub fn refused(why: &str) -> bool {
    assert!(strict_here() != Strict::All, "{why} (ASSAY_TEST_STRICT=installed skips what is not allowed here)");
    aloud(&format!("SKIPPED ALOUD: {why}"));
    false
}

/// Whether a file is there that `cargo xtask install` installs.
#[track_caller]
pub fn installed(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let missing = || format!("{} is missing (`cargo xtask install` gets what the tests need)", path.display());
    path.exists() || absent(&missing())
}

/// Whether this is root, which `what` needs.
#[track_caller]
pub fn root(what: &str) -> bool {
    nix::unistd::geteuid().is_root() || refused(&format!("{what}: needs root"))
}

/// Whether every version of every server is tested: `ASSAY_TEST_MATRIX`. Nobody misses these tests otherwise, so that
/// they are never failures.
pub fn matrix() -> bool {
    let wanted = std::env::var_os("ASSAY_TEST_MATRIX").is_some();
    if !wanted {
        aloud("SKIPPED ALOUD: only with ASSAY_TEST_MATRIX=1, or `cargo xtask test --matrix`");
    }
    wanted
}

/// Reports something past the test harness, which hides the output of passing tests, with the name of the test.
pub fn aloud(what: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "{test}: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_skipped_depends_on_the_variables() {
        assert_eq!(strict(None, false), Strict::No);
        assert_eq!(strict(Some(""), false), Strict::No);
        assert_eq!(strict(None, true), Strict::All);
        assert_eq!(strict(Some("1"), false), Strict::All);
        // What `cargo xtask test` sets is more exact than what a CI system does.
        assert_eq!(strict(Some("installed"), true), Strict::Installed);
    }
}
