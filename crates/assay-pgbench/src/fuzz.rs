//! Arbitrary bytes read as pgbench's scripts.

use crate::{Mode, PgbenchFront, Script, check_parameters, compile, expression, workload};

/// As a script, which becomes Lua in both ways, and as an expression: nothing may panic.
pub fn fuzz_script(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = expression::parse(&text, 0);
    let Ok(script) = Script::parse("fuzz", &text) else { return };
    workload(&script);
    for mode in [Mode::Simple, Mode::Extended, Mode::Prepared] {
        if check_parameters(&script, mode).is_ok() {
            let front = PgbenchFront { mode, timed: false, debug: false, variables: &[], weights: &[1] };
            compile(std::slice::from_ref(&script), &front);
        }
    }
}
