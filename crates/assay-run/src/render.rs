//! Results in the requested format. Numbers and words come from assay-report.

use assay_record::Record;
use assay_report::{Findings, Group, Side, View};
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

/// The trials of one setting, under a name.
pub fn group(name: &str, trials: Vec<(String, Findings)>) -> Group {
    let (records, trials) = trials.into_iter().unzip();
    Group { name: name.to_owned(), records, trials }
}

/// The summary of one setting's trials, in the requested format.
pub fn summary(of: &Group, format: Format) -> String {
    let summary = assay_report::summarize(side(of));
    match format {
        Format::Text => assay_report::summary_text(&summary),
        Format::Json => assay_report::json(&summary),
        Format::Csv => assay_report::summary_csv(&summary),
    }
}

/// One setting, as a side of a comparison.
pub fn side(group: &Group) -> Side<'_> {
    Side { name: &group.name, records: &group.records, trials: &group.trials }
}
