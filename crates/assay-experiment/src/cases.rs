//! Statements that are timed.

use assay_recipe::StatementCase;
use assay_spec::CaseSpec;

/// A case of a file or a recipe.
pub fn spec_of_case(case: StatementCase) -> CaseSpec {
    let StatementCase { name, sql, setup, teardown, result } = case;
    CaseSpec { name, sql, setup: setup.0, teardown: teardown.0, result }
}
