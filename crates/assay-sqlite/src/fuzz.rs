//! Arbitrary bytes split into statements.

use crate::split::statement_end;

/// As a text of several statements: nothing may panic or stand still.
pub fn fuzz_split(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut rest = &*text;
    while !rest.is_empty() {
        let end = statement_end(rest);
        assert!(end > 0, "a statement without a character");
        rest = &rest[end..];
    }
}
