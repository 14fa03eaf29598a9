//! Arbitrary bytes read as statements with placeholders.

use assay_seam::Value;

use crate::placeholders::{Dialect, Template};

/// As a statement in every dialect: nothing may panic, and no byte of the text is lost.
pub fn fuzz_placeholders(data: &[u8]) {
    for dialect in [
        Dialect::Postgres { standard_strings: true },
        Dialect::Postgres { standard_strings: false },
        Dialect::MySql { backslash_escapes: true },
        Dialect::MySql { backslash_escapes: false },
    ] {
        let template = Template::new(data, dialect);
        let mut out = Vec::new();
        template.write_numbered(&mut out);
        assert!(out.len() >= data.len(), "a part of the text is missing");
        out.clear();
        let parameters = vec![Value::Text(data); template.placeholders()];
        // A value may have no literal.
        let _ = template.write_substituted(&parameters[..parameters.len().min(8)], dialect, &mut out);
    }
}
