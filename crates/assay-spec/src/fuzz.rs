//! Arbitrary bytes read as a spec.

use crate::RunSpec;

/// As the JSON of a spec: nothing may panic, and what was read is the same after it was written and read once more,
/// with its passwords.
pub fn fuzz_spec(data: &[u8]) {
    let Ok(spec) = RunSpec::from_json(&String::from_utf8_lossy(data)) else { return };
    let _ = spec.check();
    spec.to_value();
    let again = RunSpec::from_value(&spec.to_value_with_passwords()).expect("a spec can be read as it was written");
    assert_eq!(again, spec);
}
