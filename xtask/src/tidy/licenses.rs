//! Licenses of all dependencies: only those that require nothing but a notice.

use serde_json::Value;
use spdx::{Expression, LicenseReq, ParseMode};

use super::metadata::{list, text};

/// Names as in https://spdx.org/licenses.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Packages whose license, considering all alternatives, is not allowed.
pub(super) fn complaints(metadata: &Value) -> Vec<String> {
    list(metadata, "packages").iter().filter_map(complaint).collect()
}

fn complaint(package: &Value) -> Option<String> {
    let what = format!("{} {}", text(package, "name"), text(package, "version"));
    let license = text(package, "license");
    if license.is_empty() {
        return Some(format!("{what}: names no license"));
    }
    // Older packages write MIT/Apache-2.0.
    match Expression::parse_mode(license, ParseMode::LAX) {
        Err(error) => Some(format!("{what}: license {license:?}: {}", error.reason)),
        Ok(expression) => (!expression.evaluate(allowed)).then(|| format!("{what}: license {license} is not allowed")),
    }
}

fn allowed(requirement: &LicenseReq) -> bool {
    // An exception only adds permissions.
    requirement.license.id().is_some_and(|id| ALLOWED.contains(&id.name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(license: Option<&str>, expected: bool) {
        let package = json!({ "name": "x", "version": "1.0.0", "license": license });
        let complaint = complaint(&package);
        assert_eq!(complaint.is_none(), expected, "{complaint:?}");
    }

    #[test]
    fn licenses_are_judged_by_their_meaning() {
        check(Some("MIT"), true);
        check(Some("MIT/Apache-2.0"), true);
        check(Some("GPL-2.0-only OR MIT"), true);
        check(Some("GPL-2.0-only AND MIT"), false);
        check(Some("(MIT OR GPL-3.0-only) AND ISC"), true);
        check(Some("Apache-2.0 WITH LLVM-exception"), true);
        check(Some("AGPL-3.0-only"), false);
        check(Some("anything goes"), false);
        check(None, false);
    }
}
