//! Prints the result in the requested format. Numbers and words come from assay-report.

use assay_record::Record;
use assay_report::View;
use assay_spec::Format;

/// The report of `record`.
pub fn result(record: &Record, format: Format, view: View) -> String {
    let findings = assay_report::findings(record);
    match format {
        Format::Text => assay_report::text_in(&findings, view),
        Format::Json => assay_report::json(&findings),
        Format::Csv => assay_report::csv(&findings),
    }
}
