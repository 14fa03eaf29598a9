//! The result in the form asked for. Numbers and words come from assay-report.

use assay_record::Record;

use crate::command_line::Format;

/// What `record` says.
pub fn result(record: &Record, format: Format) -> String {
    let findings = assay_report::findings(record);
    match format {
        Format::Text => assay_report::text(&findings),
        Format::Json => assay_report::json(&findings),
        Format::Csv => assay_report::csv(&findings),
    }
}
